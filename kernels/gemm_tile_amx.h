/* The micro-kernel of gemm.h for pairs of bfloat16 numbers on the matrix registers of AMX, which hold 16 rows of 64
 * bytes: 16 pairs of A, or 16 columns of B or of the result. Before it includes this header, a file defines, for the
 * constant numbers of registers:
 *
 *   AMX_CONFIGURE(config)            sets the shapes of all registers
 *   AMX_ZERO(to)                     clears a register
 *   AMX_LOAD(to, from, stride)       loads rows at a distance of `stride` bytes
 *   AMX_STORE(from, to, stride)      stores them
 *   AMX_MULTIPLY_ADD(sum, a, b)      sum += a · b, of pairs
 *   AMX_RELEASE()                    gives up the registers, which then need not be saved
 */
#ifndef MR_KERNELS_GEMM_TILE_AMX_H
#define MR_KERNELS_GEMM_TILE_AMX_H

#define TILE_MULTIPLY_ADD mr_vector_multiply_add
#include "kernels/gemm_tile.h"
#include <assert.h>

constexpr int AMX_SIDE = 16;

/* As ldtilecfg reads it. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;
static_assert(sizeof(amx_config) == 64);

/* Adds the products of up to 16 pairs: to registers 0 and 1, or if odd 2 and 3, so that a product need not wait for the
 * one before. A comes into register 4, the columns of B into 5 and 6. */
MR_INLINE void amx_step(const float *a, int64_t a_row, const float *b, int64_t b_step, int64_t b_next, int vectors,
                        bool odd)
{
    constexpr int64_t SIZE = sizeof *a;
    AMX_LOAD(4, a, a_row * SIZE);
    AMX_LOAD(5, b, b_step * SIZE);
    if (vectors > 1) AMX_LOAD(6, b + b_next, b_step * SIZE);
    if (odd) {
        AMX_MULTIPLY_ADD(2, 4, 5);
        if (vectors > 1) AMX_MULTIPLY_ADD(3, 4, 6);
    } else {
        AMX_MULTIPLY_ADD(0, 4, 5);
        if (vectors > 1) AMX_MULTIPLY_ADD(1, 4, 6);
    }
}

/* The last `count` pairs, fewer than 16, with zeros after them. */
MR_INLINE void amx_rest(const float *a, int64_t a_row, int rows, const float *b, int64_t b_step, int64_t b_next,
                        int vectors, int64_t count, bool odd)
{
    float a_rest[AMX_SIDE * AMX_SIDE] = {0}, b_rest[2 * AMX_SIDE * AMX_SIDE] = {0};
    for (int r = 0; r < rows; r++) memcpy(a_rest + r * AMX_SIDE, a + r * a_row, (size_t)count * sizeof *a);
    for (int v = 0; v < vectors; v++)
        for (int64_t k = 0; k < count; k++)
            memcpy(b_rest + (v * AMX_SIDE + k) * AMX_SIDE, b + v * b_next + k * b_step, AMX_SIDE * sizeof *b);
    amx_step(a_rest, AMX_SIDE, b_rest, AMX_SIDE, AMX_SIDE * AMX_SIDE, vectors, odd);
}

/* Rows [first, first + rows) of a tile. */
MR_INLINE void amx_rows(const mr_tile *t, int first, int rows)
{
    float sums[4][AMX_SIDE * AMX_SIDE];
    amx_config config = {.palette = 1};
    bool odd = false;
    for (int i = 0; i < 7; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = (uint8_t)(i < 5 ? rows : AMX_SIDE);
    }
    AMX_CONFIGURE(&config);
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    for (int64_t s = 0; s < t->segments; s++) {
        const float *a = t->a + first * t->a_row + s * t->a_segment, *b = t->b + s * t->length * t->b_step;
        int64_t k = 0;
        for (; k + AMX_SIDE <= t->length; k += AMX_SIDE, odd = !odd)
            amx_step(a + k, t->a_row, b + k * t->b_step, t->b_step, t->b_next, t->vectors, odd);
        if (k == t->length) continue;
        amx_rest(a + k, t->a_row, rows, b + k * t->b_step, t->b_step, t->b_next, t->vectors, t->length - k, odd);
        odd = !odd;
    }
    AMX_STORE(0, sums[0], 64);
    AMX_STORE(1, sums[1], 64);
    AMX_STORE(2, sums[2], 64);
    AMX_STORE(3, sums[3], 64);
    AMX_RELEASE();
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < t->vectors; v++) {
            const mr_vector sum = mr_vector_load(sums[v] + r * AMX_SIDE) + mr_vector_load(sums[v + 2] + r * AMX_SIDE);
            store_row(t->c + (first + r) * t->c_row + v * 16, sum, t->columns - v * 16, t->accumulate,
                      t->bias ? t->bias + v * 16 : nullptr);
        }
}

/* As mr_tile_run, of pairs, with steps of 1 in A. */
MR_INLINE void amx_body(const mr_tile *tile)
{
    mr_tile t = *tile;
    assert(t.pairs && t.a_step == 1 && t.length >= 1);
    if (t.pack != nullptr) {
        for (int v = 0; v < t.vectors; v++)
            for (int64_t k = 0; k < t.segments * t.length; k++)
                memcpy(t.pack + v * t.pack_next + k * 16, t.b + v * t.b_next + k * t.b_step, 16 * sizeof *t.b);
        t.b = t.pack;
        t.b_step = 16;
        t.b_next = t.pack_next;
    }
    for (int first = 0; first < t.rows; first += AMX_SIDE) amx_rows(&t, first, MR_MIN(AMX_SIDE, t.rows - first));
}

#endif
