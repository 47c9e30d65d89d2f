/* Sums of half types, rounded where TensorFlow on x86-64 rounds them: it adds in eight lanes of the type itself, four
 * packets at a time, halves long rows, and only the eight lanes of one row are added in float. */
#include "kernels/sparse.h"

#include <assert.h>

constexpr int64_t LANES = 8, PACKETS = 4;

#define HALF_SUM(suffix, leaf, load, store)                                                                            \
    static uint16_t add_##suffix(uint16_t a, uint16_t b)                                                               \
    {                                                                                                                  \
        return store(load(a) + load(b));                                                                               \
    }                                                                                                                  \
    static uint16_t sum_##suffix(const uint16_t *values, int64_t count)                                                \
    {                                                                                                                  \
        if (count > (leaf) * LANES) {                                                                                  \
            const int64_t left = ((count + 1) / 2 + LANES - 1) / LANES * LANES;                                        \
            return add_##suffix(sum_##suffix(values, left), sum_##suffix(values + left, count - left));                \
        }                                                                                                              \
        uint16_t lanes[PACKETS * LANES] = {}, rest = 0;                                                                \
        float sum = 0;                                                                                                 \
        int64_t i = 0;                                                                                                 \
        for (; i + PACKETS * LANES <= count; i += PACKETS * LANES)                                                     \
            for (int64_t lane = 0; lane < PACKETS * LANES; lane++)                                                     \
                lanes[lane] = add_##suffix(lanes[lane], values[i + lane]);                                             \
        for (int64_t lane = LANES; lane < PACKETS * LANES; lane++)                                                     \
            lanes[lane % LANES] = add_##suffix(lanes[lane % LANES], lanes[lane]);                                      \
        for (; i + LANES <= count; i += LANES)                                                                         \
            for (int64_t lane = 0; lane < LANES; lane++) lanes[lane] = add_##suffix(lanes[lane], values[i + lane]);    \
        for (; i < count; i++) rest = add_##suffix(rest, values[i]);                                                   \
        for (int64_t lane = 0; lane < LANES; lane++) sum += load(lanes[lane]);                                         \
        return add_##suffix(rest, store(sum));                                                                         \
    }
HALF_SUM(half, 200, mr_half_to_float, mr_float_to_half)
HALF_SUM(bfloat16, 128, mr_bfloat16_to_float, mr_float_to_bfloat16)

uint16_t mr_sparse_half_sum(const uint16_t *values, int64_t count, mr_dtype dtype)
{
    assert(count > 0 && (dtype == MR_HALF || dtype == MR_BFLOAT16));
    return dtype == MR_HALF ? sum_half(values, count) : sum_bfloat16(values, count);
}
