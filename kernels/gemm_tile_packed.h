/* The steps of the micro-kernel for AVX-512 where A is packed, and B is packed or in place, of gemm_tile_packed.c and
 * gemm_double.c. Its instructions are given one by one, since the compiler cannot be told which numbers of A are
 * operands in memory: of every other row, which needs fewer instructions, but a load for each vector. All would be more
 * loads than the processor has time for. Before it includes this header, a file defines
 *
 *   PACKED_NUMBER                   float or double
 *   PACKED_SUFFIX, PACKED_LANES     of its instructions: "s", "16" or "d", "8" */
#ifndef MR_KERNELS_GEMM_TILE_PACKED_H
#define MR_KERNELS_GEMM_TILE_PACKED_H

#include "kernels/common.h"

typedef PACKED_NUMBER packed_vector __attribute__((vector_size(64)));
typedef PACKED_NUMBER packed_vector_at __attribute__((vector_size(64), aligned(sizeof(PACKED_NUMBER)), may_alias));

constexpr int PACKED_ROWS_MAX = 14, PACKED_VECTORS = 2, PACKED_STEP = 16; /* numbers between two steps of B */

/* a[k][row], b[v][k]: vector v of B is at b + v * b_next, its next step PACKED_STEP further, or b_step if B is read in
 * place. */
typedef struct packed_place {
    const PACKED_NUMBER *a, *b;
    int64_t b_next, b_step;
} packed_place;

/* Rows of numbers that are needed next, which are prefetched to the second cache: NEXT_LINES lines at a time. */
typedef struct packed_next {
    const char *line;
    int64_t step;        /* 0: all are prefetched */
    int64_t left, times; /* of this row, and of each one */
    int64_t row_bytes, rows;
} packed_next;

constexpr int64_t NEXT_LINES = 4, NEXT_LINE = 64;

MR_INLINE packed_next packed_next_of(const PACKED_NUMBER *rows, int64_t count, int64_t length, int64_t row)
{
    constexpr int64_t EACH = NEXT_LINES * NEXT_LINE;
    const int64_t times = (length * (int64_t)sizeof *rows + EACH - 1) / EACH;
    return (packed_next){.line = (const char *)rows,
                         .step = EACH,
                         .left = times,
                         .times = times,
                         .row_bytes = row * (int64_t)sizeof *rows,
                         .rows = count};
}

MR_INLINE MR_TARGET_AVX512 void packed_prefetch(packed_next *next)
{
    MR_UNROLL
    for (int i = 0; i < NEXT_LINES; i++) __asm__ volatile("prefetcht1 %0" : : "m"(*(next->line + i * NEXT_LINE)));
    next->line += next->step;
    if (--next->left > 0) return;
    next->line += next->row_bytes - next->times * next->step;
    next->left = next->times;
    if (--next->rows > 0) return;
    next->step = 0;
    next->left = INT64_MAX;
}

MR_INLINE MR_TARGET_AVX512 void packed_step(packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS], const PACKED_NUMBER *a,
                                            const PACKED_NUMBER *b, int64_t b_next, const int rows)
{
    packed_vector columns[PACKED_VECTORS];
    MR_UNROLL
    for (int v = 0; v < PACKED_VECTORS; v++) {
        const packed_vector_at *from = (const packed_vector_at *)(b + v * b_next);
        __asm__ volatile("vmovup" PACKED_SUFFIX " %1, %0" : "=v"(columns[v]) : "m"(*from));
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++) {
        packed_vector x;
        if (r % 2 != 0) __asm__ volatile("vbroadcasts" PACKED_SUFFIX " %1, %0" : "=v"(x) : "m"(a[r]));
        MR_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            if (r % 2 != 0)
                __asm__ volatile("vfmadd231p" PACKED_SUFFIX " %2, %1, %0" : "+v"(sums[r][v]) : "v"(columns[v]), "v"(x));
            else
                __asm__ volatile("vfmadd231p" PACKED_SUFFIX " %2%{1to" PACKED_LANES "%}, %1, %0"
                                 : "+v"(sums[r][v])
                                 : "v"(columns[v]), "m"(a[r]));
        }
    }
}

MR_INLINE MR_TARGET_AVX512 void packed_steps(packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS], packed_place *at,
                                             const int rows, const bool is_in_place, const int count)
{
    constexpr int B_AHEAD = 12;                          /* steps by which B in place is prefetched */
    constexpr int LAST = 64 / sizeof(PACKED_NUMBER) - 1; /* of a vector, which may begin in the columns before */
    MR_UNROLL
    for (int i = 0; i < count; i++) {
        packed_step(sums, at->a + i * rows, at->b + (is_in_place ? 0 : i * PACKED_STEP), at->b_next, rows);
        if (!is_in_place) continue;
        MR_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            const PACKED_NUMBER *ahead = at->b + v * at->b_next + B_AHEAD * at->b_step + LAST;
            __asm__ volatile("prefetcht0 %0" : : "m"(*ahead));
        }
        at->b += at->b_step;
    }
    at->a += count * rows;
    if (!is_in_place) at->b += count * PACKED_STEP;
}

/* sums[r][v] = sum of a[k][r] * b[v][k] over `length` steps. rows, is_in_place and has_next are constants in
 * every instance.
 * c  where the rows of the result will be written */
MR_INLINE MR_TARGET_AVX512 void packed_multiply(packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS], packed_place at,
                                                packed_next next, int64_t length, const int rows,
                                                const bool is_in_place, const bool has_next, const PACKED_NUMBER *c,
                                                int64_t c_row)
{
    constexpr int UNROLL = 4;
    constexpr int C_STEPS = 4; /* of UNROLL steps, before the end, by which the last row of C is prefetched */
    constexpr int64_t LONG = PACKED_ROWS_MAX * UNROLL; /* steps of tiles for which C is prefetched */
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < PACKED_VECTORS; v++) sums[r][v] = (packed_vector){};
    /* A row of C at a time, and late: rows that share a set of the cache would drive each other out again. */
    const int64_t late = length >= LONG ? (rows + C_STEPS) * UNROLL : 0;
    int64_t k = length;
    for (; k >= UNROLL + late; k -= UNROLL) {
        if (has_next) packed_prefetch(&next);
        packed_steps(sums, &at, rows, is_in_place, UNROLL);
    }
    for (int r = late > 0 ? 0 : rows; k >= UNROLL; k -= UNROLL, r++) {
        if (r < rows) {
            MR_UNROLL
            for (int v = 0; v < PACKED_VECTORS; v++)
                __asm__ volatile("prefetchw %0" : : "m"(*((const packed_vector_at *)c + v)));
            c += c_row;
        }
        if (has_next) packed_prefetch(&next);
        packed_steps(sums, &at, rows, is_in_place, UNROLL);
    }
    for (; k > 0; k--) packed_steps(sums, &at, rows, is_in_place, 1);
}

/* Whole vectors of the result, with few branches: short tiles spend much of their time here. */
MR_INLINE MR_TARGET_AVX512 void packed_store(packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS], const int rows,
                                             bool accumulate, PACKED_NUMBER *c, int64_t c_row)
{
    if (accumulate) {
        MR_UNROLL
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < PACKED_VECTORS; v++) sums[r][v] += ((packed_vector_at *)(c + r * c_row))[v];
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < PACKED_VECTORS; v++) ((packed_vector_at *)(c + r * c_row))[v] = sums[r][v];
}

#define PACKED_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

#endif
