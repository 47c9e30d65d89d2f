/* The kernels of the CPU: the tables of all families, registered together.
 *
 * A family is one file with a static table of mr_kernel rows and a line in kernels.c; nothing else refers to it. */
#ifndef MR_KERNELS_KERNELS_H
#define MR_KERNELS_KERNELS_H

#include "base/kernel.h"

/* Registers all tables of kernels/ with base/kernel.h; only the first call has an effect. Safe to call from any thread,
 * but before the first mr_kernel_find. */
void mr_kernels_register(void);

#endif
