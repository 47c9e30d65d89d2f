/* Copies of the operands of a product, in the order in which the tiles of gemm_tile.c read them. */
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include <assert.h>
#include <string.h>

typedef float quad __attribute__((vector_size(16), aligned(4)));
typedef float eight __attribute__((vector_size(32), aligned(4)));

/* Transposes 4 x 4 elements into a panel. */
static void transpose_4(float *target, const float *from, int64_t stride)
{
    quad a = *(const quad *)from, b = *(const quad *)(from + stride);
    quad c = *(const quad *)(from + 2 * stride), d = *(const quad *)(from + 3 * stride);
    quad low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)target = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
    *(quad *)(target + 16) = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
    *(quad *)(target + 32) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
    *(quad *)(target + 48) = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

/* Transposes 16 x 16 elements into a panel: each of four rounds moves one bit of a row's index into the lane's. */
MR_INLINE void transpose_16_body(float *target, const float *from, int64_t stride)
{
    mr_vector rows[16], next[16];
    MR_UNROLL
    for (int i = 0; i < 16; i++) rows[i] = mr_vector_load(from + i * stride);
    MR_UNROLL
    for (int round = 0; round < 4; round++) {
        MR_UNROLL
        for (int i = 0; i < 8; i++) {
            next[2 * i] =
                __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                                      29, 14, 30, 15, 31);
        }
        MR_UNROLL
        for (int i = 0; i < 16; i++) rows[i] = next[i];
    }
    MR_UNROLL
    for (int i = 0; i < 16; i++) mr_vector_store(target + 16 * i, rows[i]);
}

MR_TARGET_AVX512 static void transpose_16(float *target, const float *from, int64_t stride)
{
    transpose_16_body(target, from, stride);
}

/* Transposes 8 x 8 elements into a panel, by steps that AVX2 has: pairs and quads of lanes within 128 bits, then
 * halves. */
MR_TARGET_AVX2 static void transpose_8(float *target, const float *from, int64_t stride)
{
    eight rows[8], pairs[8], quads[8];
    MR_UNROLL
    for (int i = 0; i < 8; i++) rows[i] = *(const eight *)(from + i * stride);
    MR_UNROLL
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    MR_UNROLL
    for (int i = 0; i < 8; i += 4)
        for (int half = 0; half < 2; half++) {
            const eight a = pairs[i + half], b = pairs[i + 2 + half];
            quads[i + 2 * half] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
            quads[i + 2 * half + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    MR_UNROLL
    for (int i = 0; i < 4; i++) {
        const eight a = quads[i], b = quads[i + 4];
        *(eight *)(target + 16 * i) = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        *(eight *)(target + 16 * (i + 4)) = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* One panel of a source with contiguous columns. */
static void pack_columns(float *target, const float *from, int64_t rows, int64_t width, int64_t column_stride)
{
    int64_t r = 0;
    if (width == 16 && mr_cpu() == MR_CPU_AVX512)
        for (; r + 16 <= rows; r += 16) {
            for (int64_t c = 0; c < 16; c++) __builtin_prefetch(from + c * column_stride + r + 48);
            transpose_16(target + r * 16, from + r, column_stride);
        }
    if (width == 16 && mr_cpu() == MR_CPU_AVX2)
        for (; r + 8 <= rows; r += 8)
            for (int64_t c = 0; c < 16; c += 8) {
                for (int64_t i = 0; i < 8; i++) __builtin_prefetch(from + (c + i) * column_stride + r + 48);
                transpose_8(target + r * 16 + c, from + c * column_stride + r, column_stride);
            }
    if (width == 16)
        for (; r + 4 <= rows; r += 4)
            for (int64_t c = 0; c < 16; c += 4)
                transpose_4(target + r * 16 + c, from + c * column_stride + r, column_stride);
    for (; r < rows; r++)
        for (int64_t c = 0; c < 16; c++) target[r * 16 + c] = c < width ? from[c * column_stride + r] : 0;
}

/* All panels of a source with contiguous rows, row by row, as they are in memory. */
static void pack_rows(float *target, const float *from, int64_t rows, int64_t columns, int64_t row_stride)
{
    int64_t whole = columns / 16 * 16, rest = columns - whole, ahead = rows;
    for (int64_t r = 0; r < rows; r++, from += row_stride, target += 16, ahead--) {
        const float *later = from + (ahead > 6 ? 6 * row_stride : 0);
        for (int64_t c = 0; c < whole; c += 16) {
            __builtin_prefetch(later + c);
            memcpy(target + c * rows, from + c, 16 * sizeof *target);
        }
        if (rest == 0) continue;
        memcpy(target + whole * rows, from + whole, (size_t)rest * sizeof *target);
        memset(target + whole * rows + rest, 0, (size_t)(16 - rest) * sizeof *target);
    }
}

void mr_panels_pack(float *target, const float *source, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride)
{
    assert(rows >= 0 && columns >= 0 && (row_stride == 1 || column_stride == 1));
    if (column_stride == 1) {
        pack_rows(target, source, rows, columns, row_stride);
        return;
    }
    for (int64_t first = 0; first < columns; first += 16, target += rows * 16)
        pack_columns(target, source + first * column_stride, rows, MR_MIN(16, columns - first), column_stride);
}

/* Transposes 6 rows of 4 numbers. */
static void pack_6_by_4(float *target, const float *from, int64_t stride)
{
    const quad a = *(const quad *)from, b = *(const quad *)(from + stride);
    const quad c = *(const quad *)(from + 2 * stride), d = *(const quad *)(from + 3 * stride);
    const quad e = *(const quad *)(from + 4 * stride), f = *(const quad *)(from + 5 * stride);
    const quad low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const quad low_ef = __builtin_shufflevector(e, f, 0, 4, 1, 5), high_ef = __builtin_shufflevector(e, f, 2, 6, 3, 7);
    *(quad *)target = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
    *(quad *)(target + 4) = __builtin_shufflevector(low_ef, low_ab, 0, 1, 6, 7);
    *(quad *)(target + 8) = __builtin_shufflevector(low_cd, low_ef, 2, 3, 6, 7);
    *(quad *)(target + 12) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
    *(quad *)(target + 16) = __builtin_shufflevector(high_ef, high_ab, 0, 1, 6, 7);
    *(quad *)(target + 20) = __builtin_shufflevector(high_cd, high_ef, 2, 3, 6, 7);
}

void mr_rows_pack(float *target, const float *source, int rows, int64_t length, int64_t row_stride, int64_t step)
{
    int64_t k = 0;
    assert(rows >= 1 && length >= 0 && (row_stride == 1 || step == 1));
    if (row_stride == 1 && rows == 6) { /* a constant size, which needs no call */
        for (; k < length; k++) memcpy(target + 6 * k, source + k * step, 6 * sizeof *target);
    } else if (row_stride == 1) {
        for (; k < length; k++) memcpy(target + rows * k, source + k * step, (size_t)rows * sizeof *target);
    } else if (rows == 6) {
        for (; k + 4 <= length; k += 4) pack_6_by_4(target + 6 * k, source + k, row_stride);
    }
    for (; k < length; k++)
        for (int r = 0; r < rows; r++) target[k * rows + r] = source[r * row_stride + k * step];
}
