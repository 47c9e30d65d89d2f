/* The micro-kernel of gemm.h: one function body in vectors of 16 floats, with an instance for each number of rows that
 * fits in the registers of a CPU level: 28 accumulators of AVX-512's 32 registers, or 12 of AVX2's 16 (two
 * registers for each vector). Before it includes this header, a file defines
 *
 *   TILE_MULTIPLY_ADD(x, b, sum, fused)  sum + x * b for each lane
 */
#ifndef MR_KERNELS_GEMM_TILE_H
#define MR_KERNELS_GEMM_TILE_H

#include "kernels/gemm.h"
#include "kernels/vector.h"

typedef void (*mr_tile_function)(const mr_tile *tile);

/* functions[rows - 1][whether B is stored][whether the steps of A are not 1] */
typedef struct mr_tile_set {
    const mr_tile_function (*functions)[2][2];
    int rows_max;
} mr_tile_set;

/* For one and two vectors: floats at every level, and pairs of bfloat16 numbers. */
extern const mr_tile_set mr_tile_floats[3][2], mr_tile_pairs[2];

constexpr int ROWS_MAX = 28, GROUPS_MAX = 10;
constexpr int64_t PREFETCHED_ROWS = 12; /* of B in memory: the time of as many steps hides that of a load */

MR_INLINE void store_row(float *to, mr_vector value, int columns, bool accumulate, const float *bias)
{
    if (columns >= 16) {
        if (accumulate) value = mr_vector_load(to) + value;
        mr_vector_store(to, bias ? value + mr_vector_load(bias) : value);
        return;
    }
    float lanes[16];
    memcpy(lanes, &value, sizeof lanes);
    for (int i = 0; i < columns; i++) {
        float sum = accumulate ? to[i] + lanes[i] : lanes[i];
        to[i] = bias ? sum + bias[i] : sum;
    }
}

/* rows, vectors, by_rows, packs and fused are constants in every instance. by_rows: a_step is 1; otherwise a_row is
 * 1. */
MR_INLINE void tile_body(const mr_tile *t, const int rows, const int vectors, const bool by_rows, const bool packs,
                         const bool fused)
{
    mr_vector sums[ROWS_MAX][2];
    const int64_t a_row = by_rows ? t->a_row : 1, a_step = by_rows ? 1 : t->a_step;
    const int64_t b_step = t->b_step, b_next = t->b_next;
    const float *b = t->b;
    float *pack = t->pack;
    const int64_t ahead_step = by_rows ? 16 : t->ahead ? t->ahead_step : 0;
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) sums[r][v] = (mr_vector){};
    /* The result is in no cache if the matrices are large. */
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) __builtin_prefetch(t->c + r * t->c_row + v * 16, 1);
    for (int64_t s = 0; s < t->segments; s++) {
        /* One pointer for each group of three rows: an address can be the pointer plus the row stride times 0, 1 or 2.
         * By default the compiler keeps one pointer for each row, more than there are registers. */
        const float *a[GROUPS_MAX], *ahead = t->ahead ? t->ahead + s * t->ahead_segment : b;
        const int groups = by_rows ? (rows + 2) / 3 : 1, group_rows = by_rows ? 3 : ROWS_MAX;
        MR_UNROLL
        for (int g = 0; g < groups; g++) {
            a[g] = t->a + s * t->a_segment + 3 * g * a_row;
            __asm__("" : "+r"(a[g]));
        }
        for (int64_t k = t->length; k > 0; k--) {
            if (!by_rows || !packs) {
                __builtin_prefetch(ahead);
                ahead += ahead_step;
            }
            mr_vector b0 = mr_vector_load(b), b1 = vectors > 1 ? mr_vector_load(b + b_next) : b0;
            if (packs) {
                __builtin_prefetch(b + PREFETCHED_ROWS * b_step);
                mr_vector_store(pack, b0);
                if (vectors > 1) {
                    __builtin_prefetch(b + PREFETCHED_ROWS * b_step + b_next);
                    mr_vector_store(pack + t->pack_next, b1);
                }
                pack += 16;
            }
            MR_UNROLL
            for (int r = 0; r < rows; r++) {
                mr_vector x = mr_vector_of(a[r / group_rows][r % group_rows * a_row]);
                sums[r][0] = TILE_MULTIPLY_ADD(x, b0, sums[r][0], fused);
                if (vectors > 1) sums[r][1] = TILE_MULTIPLY_ADD(x, b1, sums[r][1], fused);
            }
            MR_UNROLL
            for (int g = 0; g < groups; g++) {
                a[g] += a_step;
                __asm__("" : "+r"(a[g]));
            }
            b += b_step;
        }
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            store_row(t->c + r * t->c_row + v * 16, sums[r][v], t->columns - v * 16, t->accumulate,
                      t->bias ? t->bias + v * 16 : nullptr);
}

#define TILE_OF(level, target, rows, vectors, fused, form, by_rows, packs)                                             \
    target static void level##_##vectors##_##form##_##rows(const mr_tile *t)                                           \
    {                                                                                                                  \
        tile_body(t, rows, vectors, by_rows, packs, fused);                                                            \
    }
#define TILE(level, target, rows, vectors, fused)                                                                      \
    TILE_OF(level, target, rows, vectors, fused, by_row, true, false)                                                  \
    TILE_OF(level, target, rows, vectors, fused, by_column, false, false)                                              \
    TILE_OF(level, target, rows, vectors, fused, by_row_packing, true, true)                                           \
    TILE_OF(level, target, rows, vectors, fused, by_column_packing, false, true)
#define ENTRY(level, target, rows, vectors, fused)                                                                     \
    {{level##_##vectors##_by_row_##rows, level##_##vectors##_by_column_##rows},                                        \
     {level##_##vectors##_by_row_packing_##rows, level##_##vectors##_by_column_packing_##rows}},
#define ROWS_4(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)
#define ROWS_6(X, ...) ROWS_4(X, __VA_ARGS__) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6)
#define ROWS_14(X, ...)                                                                                                \
    ROWS_6(X, __VA_ARGS__)                                                                                             \
    X(__VA_ARGS__, 7)                                                                                                  \
    X(__VA_ARGS__, 8)                                                                                                  \
    X(__VA_ARGS__, 9)                                                                                                  \
    X(__VA_ARGS__, 10) X(__VA_ARGS__, 11) X(__VA_ARGS__, 12) X(__VA_ARGS__, 13) X(__VA_ARGS__, 14)
#define ROWS_28(X, ...)                                                                                                \
    ROWS_14(X, __VA_ARGS__)                                                                                            \
    X(__VA_ARGS__, 15)                                                                                                 \
    X(__VA_ARGS__, 16)                                                                                                 \
    X(__VA_ARGS__, 17)                                                                                                 \
    X(__VA_ARGS__, 18)                                                                                                 \
    X(__VA_ARGS__, 19)                                                                                                 \
    X(__VA_ARGS__, 20)                                                                                                 \
    X(__VA_ARGS__, 21)                                                                                                 \
    X(__VA_ARGS__, 22)                                                                                                 \
    X(__VA_ARGS__, 23)                                                                                                 \
    X(__VA_ARGS__, 24) X(__VA_ARGS__, 25) X(__VA_ARGS__, 26) X(__VA_ARGS__, 27) X(__VA_ARGS__, 28)

#endif
