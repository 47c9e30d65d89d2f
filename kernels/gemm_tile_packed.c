/* The micro-kernel for AVX-512 where both operands are packed. Its instructions are given one by one, since the
 * compiler cannot be told which numbers of A are operands in memory: of every other row, which needs fewer
 * instructions, but a load for each vector. All would be more loads than the processor has time for. */
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include <assert.h>
#include <stddef.h>

#if MR_CPU_X86
constexpr int ROWS_MAX = 14, VECTORS = 2, UNROLL = 4;
constexpr int AHEAD = 16;    /* steps by which A is prefetched, beyond the end also that of the next tile */
constexpr int C_STEPS = 4;   /* of UNROLL steps, before the end, by which the last row of C is prefetched */
constexpr int64_t LONG = 96; /* steps of tiles for which C is prefetched */

typedef struct place {
    const float *a, *b;
    int64_t b_next;
} place;

MR_INLINE MR_TARGET_AVX512 void multiply_step(mr_vector sums[ROWS_MAX][VECTORS], const place at, const int rows,
                                              const int step)
{
    mr_vector columns[VECTORS];
    MR_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const mr_vector_at *from = (const mr_vector_at *)(at.b + v * at.b_next + step * 16);
        __asm__ volatile("vmovups %1, %0" : "=v"(columns[v]) : "m"(*from));
    }
    const float *a = at.a + step * rows;
    __asm__ volatile("prefetcht0 %0" : : "m"(a[AHEAD * rows]));
    MR_UNROLL
    for (int r = 0; r < rows; r++) {
        mr_vector x;
        if (r % 2 != 0) __asm__ volatile("vbroadcastss %1, %0" : "=v"(x) : "m"(a[r]));
        MR_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            if (r % 2 != 0)
                __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sums[r][v]) : "v"(columns[v]), "v"(x));
            else
                __asm__ volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sums[r][v]) : "v"(columns[v]), "m"(a[r]));
        }
    }
}

MR_INLINE MR_TARGET_AVX512 void multiply_steps(mr_vector sums[ROWS_MAX][VECTORS], place *at, const int rows,
                                               const int count)
{
    MR_UNROLL
    for (int i = 0; i < count; i++) multiply_step(sums, *at, rows, i);
    at->a += count * rows;
    at->b += count * 16;
}

MR_INLINE MR_TARGET_AVX512 void store_vector(const mr_tile *t, int row, int v, mr_vector value)
{
    float *to = t->c + row * t->c_row + v * 16;
    const float *bias = t->bias ? t->bias + v * 16 : nullptr;
    const int columns = t->columns - v * 16;
    if (columns >= 16) {
        if (t->accumulate) value = *(const mr_vector_at *)to + value;
        *(mr_vector_at *)to = bias ? value + *(const mr_vector_at *)bias : value;
        return;
    }
    float lanes[16];
    *(mr_vector_at *)lanes = value;
    for (int i = 0; i < columns; i++) {
        const float sum = t->accumulate ? to[i] + lanes[i] : lanes[i];
        to[i] = bias ? sum + bias[i] : sum;
    }
}

MR_INLINE MR_TARGET_AVX512 void tile_body(const mr_tile *tile, const int rows)
{
    const mr_tile copy = *tile, *t = &copy; /* so that stores to C do not make the compiler read it again */
    mr_vector sums[ROWS_MAX][VECTORS];
    place at = {t->a, t->b, t->b_next};
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) sums[r][v] = (mr_vector){};
    int64_t k = t->length;
    /* A row of C at a time, and late: rows that share a set of the cache would drive each other out again. */
    const int64_t late = k >= LONG ? (rows + C_STEPS) * UNROLL : 0;
    for (; k >= UNROLL + late; k -= UNROLL) multiply_steps(sums, &at, rows, UNROLL);
    const float *c = t->c;
    for (int r = late > 0 ? 0 : rows; k >= UNROLL; k -= UNROLL, r++) {
        if (r < rows) {
            MR_UNROLL
            for (int v = 0; v < VECTORS; v++) __asm__ volatile("prefetchw %0" : : "m"(c[v * 16]));
            c += t->c_row;
        }
        multiply_steps(sums, &at, rows, UNROLL);
    }
    for (; k > 0; k--) multiply_steps(sums, &at, rows, 1);
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) store_vector(t, r, v, sums[r][v]);
}

#define TILE(rows)                                                                                                     \
    MR_TARGET_AVX512 static void tile_##rows(const mr_tile *t)                                                         \
    {                                                                                                                  \
        tile_body(t, rows);                                                                                            \
    }
TILE(1)
TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)

    void mr_tile_packed(const mr_tile *t)
{
    static void (*const functions[ROWS_MAX])(const mr_tile *) = {tile_1,  tile_2,  tile_3,  tile_4, tile_5,
                                                                 tile_6,  tile_7,  tile_8,  tile_9, tile_10,
                                                                 tile_11, tile_12, tile_13, tile_14};
    assert(mr_cpu() == MR_CPU_AVX512 && !t->pairs && !t->pack && t->segments == 1);
    assert(t->rows >= 1 && t->rows <= ROWS_MAX && t->vectors == VECTORS);
    assert(t->a_row == 1 && t->a_step == t->rows && t->b_step == 16);
    functions[t->rows - 1](t);
}
#else
void mr_tile_packed(const mr_tile *)
{
    unreachable();
}
#endif
