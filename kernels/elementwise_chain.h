/* The examination of a call that computes several elementwise nodes (base/elementwise.h). */
#ifndef MR_KERNELS_ELEMENTWISE_CHAIN_H
#define MR_KERNELS_ELEMENTWISE_CHAIN_H

#include "base/kernel.h"

/* result  borrowed, during the call */
typedef mr_status (*mr_elementwise_see)(void *context, const char *node, const mr_tensor *result, mr_error *error);

/* Computes the result of each node, in order, and calls `see` with all of them. Nothing is changed.
 * call    of MR_ELEMENTWISE_OP: node, prepared, device and inputs
 * errors  those of the call; those of see */
mr_status mr_elementwise_visit(const mr_kernel_call *call, mr_elementwise_see see, void *context, mr_error *error);

#endif
