/* The micro-kernel for floats on AVX-512 where A is packed, and B is packed or in place. */
#include "kernels/gemm.h"
#include <assert.h>
#include <stddef.h>

#if MR_CPU_X86
#define PACKED_NUMBER float
#define PACKED_SUFFIX "s"
#define PACKED_LANES "16"
#include "kernels/gemm_tile_packed.h"

MR_INLINE MR_TARGET_AVX512 void store_vector(const mr_tile *t, int row, int v, packed_vector value)
{
    float *to = t->c + row * t->c_row + v * 16;
    const float *bias = t->bias ? t->bias + v * 16 : nullptr;
    const int columns = t->columns - v * 16;
    if (columns >= 16) {
        if (t->accumulate) value = *(const packed_vector_at *)to + value;
        *(packed_vector_at *)to = bias ? value + *(const packed_vector_at *)bias : value;
        return;
    }
    float lanes[16];
    *(packed_vector_at *)lanes = value;
    for (int i = 0; i < columns; i++) {
        const float sum = t->accumulate ? to[i] + lanes[i] : lanes[i];
        to[i] = bias ? sum + bias[i] : sum;
    }
}

MR_INLINE MR_TARGET_AVX512 void tile_body(const mr_tile *tile, const int rows)
{
    const mr_tile copy = *tile, *t = &copy; /* so that stores to C do not make the compiler read it again */
    packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS];
    const packed_place place = {.a = t->a, .b = t->b, .b_next = t->b_next, .b_step = t->b_step};
    const packed_next next = packed_next_of(t->next, t->next_count, t->next_length, t->next_row);
    const bool in_place = t->b_step != PACKED_STEP, has_next = t->next_count > 0;
    if (!in_place && !has_next)
        packed_multiply(sums, place, next, t->length, rows, false, false, t->c, t->c_row);
    else if (!in_place)
        packed_multiply(sums, place, next, t->length, rows, false, true, t->c, t->c_row);
    else if (!has_next)
        packed_multiply(sums, place, next, t->length, rows, true, false, t->c, t->c_row);
    else
        packed_multiply(sums, place, next, t->length, rows, true, true, t->c, t->c_row);
    if (t->columns == PACKED_VECTORS * 16 && !t->bias) {
        packed_store(sums, rows, t->accumulate, t->c, t->c_row);
        return;
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < PACKED_VECTORS; v++) store_vector(t, r, v, sums[r][v]);
}

#define TILE(rows)                                                                                                     \
    MR_TARGET_AVX512 static void tile_##rows(const mr_tile *t)                                                         \
    {                                                                                                                  \
        tile_body(t, rows);                                                                                            \
    }
#define ENTRY(rows) tile_##rows,
PACKED_ROWS(TILE)

void mr_tile_packed(const mr_tile *t)
{
    static void (*const functions[])(const mr_tile *) = {PACKED_ROWS(ENTRY)};
    assert(mr_cpu() == MR_CPU_AVX512 && !t->pairs && !t->pack && t->segments == 1);
    assert(t->rows >= 1 && t->rows <= PACKED_ROWS_MAX && t->vectors == PACKED_VECTORS);
    assert(t->a_row == 1 && t->a_step == t->rows);
    functions[t->rows - 1](t);
}
#else
void mr_tile_packed(const mr_tile *)
{
    unreachable();
}
#endif
