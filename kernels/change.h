/* Element-wise changes in place, for operators that scatter or accumulate single elements of any dtype. */
#ifndef MR_KERNELS_CHANGE_H
#define MR_KERNELS_CHANGE_H

#include "kernels/common.h"

typedef enum mr_change {
    MR_CHANGE_SET,
    MR_CHANGE_ADD,
    MR_CHANGE_SUB,
    MR_CHANGE_MUL,
    MR_CHANGE_DIV,
    MR_CHANGE_MIN,
    MR_CHANGE_MAX,
    MR_CHANGE_COUNT,
} mr_change;

/* target[i] = target[i] + source[i * step], or another operation, for count elements; step 0: one source for all.
 * Signed integers wrap around. A division by an integer 0 gives 0; see mr_change_divides. */
typedef void (*mr_change_function)(void *target, const void *source, int64_t count, int64_t step);

/* Null if the dtype does not have the operation. Strings have none. */
mr_change_function mr_change_find(mr_change change, mr_dtype dtype);
/* False if the dtype is an integer and an element is 0. */
bool mr_change_divides(const mr_tensor *divisors);

#endif
