/* Combining rows of elements: target[i] = target[i] op source[i], for the operators that add to or compare with what is
 * already there. */
#ifndef MR_KERNELS_ACCUMULATE_H
#define MR_KERNELS_ACCUMULATE_H

#include "kernels/common.h"

typedef enum mr_accumulation { MR_ADD, MR_SUBTRACT, MR_MAXIMUM, MR_MINIMUM, MR_ACCUMULATION_COUNT } mr_accumulation;
typedef void (*mr_accumulate)(void *target, const void *source, int64_t count);

/* The function for a dtype, or null. Integers wrap; half types are rounded after each operation; complex numbers are
 * added and subtracted only. Adding booleans is their OR. */
mr_accumulate mr_accumulate_find(mr_accumulation kind, mr_dtype dtype);

#endif
