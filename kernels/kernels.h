/* The kernels of the CPU: every family's table, registered as one.
 *
 * A family is one file with a static table of mr_kernel rows and a line in kernels.c; nothing else names it. */
#ifndef MR_KERNELS_KERNELS_H
#define MR_KERNELS_KERNELS_H

#include "base/kernel.h"

/* Registers all tables of kernels/ with base/kernel.h, once however often it is called. Safe from any thread; call it
 * before the first mr_kernel_find. */
void mr_kernels_register(void);

#endif
