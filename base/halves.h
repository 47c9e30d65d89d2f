/* Arrays of the 2-byte types, MR_HALF and MR_BFLOAT16, from and to floats. Every CPU level has the results of
 * mr_half_to_float and its relatives, to the bit. */
#ifndef MR_BASE_HALVES_H
#define MR_BASE_HALVES_H

#include <millrace/tensor.h>

static inline bool mr_is_half(mr_dtype dtype)
{
    return dtype == MR_HALF || dtype == MR_BFLOAT16;
}

void mr_halves_to_floats(float *target, const uint16_t *source, int64_t count, mr_dtype half);
void mr_floats_to_halves(uint16_t *target, const float *source, int64_t count, mr_dtype half);

#endif
