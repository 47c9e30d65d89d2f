/* Copies of the operands of a product, in the order in which the tiles of gemm_tile.c read them. */
#include "kernels/gemm.h"
#include "kernels/transpose.h"
#include "kernels/vector.h"
#include <assert.h>
#include <string.h>

/* One panel of a source with contiguous columns. */
static void pack_columns(float *target, const float *from, int64_t rows, int64_t width, int64_t column_stride)
{
    int64_t r = 0;
    if (width == 16 && mr_cpu() == MR_CPU_AVX512)
        for (; r + 16 <= rows; r += 16) {
            for (int64_t c = 0; c < 16; c++) __builtin_prefetch(from + c * column_stride + r + 48);
            mr_transpose_16(target + r * 16, 16, from + r, column_stride);
        }
    if (width == 16 && mr_cpu() == MR_CPU_AVX2)
        for (; r + 8 <= rows; r += 8)
            for (int64_t c = 0; c < 16; c += 8) {
                for (int64_t i = 0; i < 8; i++) __builtin_prefetch(from + (c + i) * column_stride + r + 48);
                mr_transpose_8(target + r * 16 + c, 16, from + c * column_stride + r, column_stride);
            }
    if (width == 16)
        for (; r + 4 <= rows; r += 4)
            for (int64_t c = 0; c < 16; c += 4)
                mr_transpose_4(target + r * 16 + c, 16, from + c * column_stride + r, column_stride);
    for (; r < rows; r++)
        for (int64_t c = 0; c < 16; c++) target[r * 16 + c] = c < width ? from[c * column_stride + r] : 0;
}

/* Copies `count` numbers and zeros up to 16. is_readable: whether all 16 can be read, which is faster. */
static void pack_rest(float *target, const float *from, int64_t count, bool is_readable)
{
    if (!is_readable) {
        memcpy(target, from, (size_t)count * sizeof *target);
        memset(target + count, 0, (size_t)(16 - count) * sizeof *target);
        return;
    }
    uint32_t bits[16];
    memcpy(bits, from, sizeof bits);
    for (int64_t i = 0; i < 16; i++) bits[i] = i < count ? bits[i] : 0;
    memcpy(target, bits, sizeof bits);
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
        if (rest > 0) pack_rest(target + whole * rows, from + whole, rest, (ahead - 1) * row_stride >= 16 - rest);
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
    const mr_four_floats a = *(const mr_four_floats *)from, b = *(const mr_four_floats *)(from + stride);
    const mr_four_floats c = *(const mr_four_floats *)(from + 2 * stride),
                         d = *(const mr_four_floats *)(from + 3 * stride);
    const mr_four_floats e = *(const mr_four_floats *)(from + 4 * stride),
                         f = *(const mr_four_floats *)(from + 5 * stride);
    const mr_four_floats low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                         high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const mr_four_floats low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                         high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const mr_four_floats low_ef = __builtin_shufflevector(e, f, 0, 4, 1, 5),
                         high_ef = __builtin_shufflevector(e, f, 2, 6, 3, 7);
    *(mr_four_floats *)target = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
    *(mr_four_floats *)(target + 4) = __builtin_shufflevector(low_ef, low_ab, 0, 1, 6, 7);
    *(mr_four_floats *)(target + 8) = __builtin_shufflevector(low_cd, low_ef, 2, 3, 6, 7);
    *(mr_four_floats *)(target + 12) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
    *(mr_four_floats *)(target + 16) = __builtin_shufflevector(high_ef, high_ab, 0, 1, 6, 7);
    *(mr_four_floats *)(target + 20) = __builtin_shufflevector(high_cd, high_ef, 2, 3, 6, 7);
}

/* Whole blocks of 16 steps; returns their number of steps. */
static int64_t pack_blocks(float *target, const float *source, int rows, int64_t length, int64_t row_stride)
{
    constexpr int64_t AHEAD = 64; /* numbers of each row */
    int64_t k = 0;
    for (; k + 16 <= length; k += 16) {
        for (int i = 0; i < rows; i++) __builtin_prefetch(source + i * row_stride + k + AHEAD);
        mr_transpose_rows(target + rows * k, rows, source + k, row_stride, rows);
    }
    return k;
}

void mr_rows_pack(float *target, const float *source, int rows, int64_t length, int64_t row_stride, int64_t step)
{
    int64_t k = 0;
    assert(rows >= 1 && rows <= 16 && length >= 0 && (row_stride == 1 || step == 1));
    if (row_stride == 1 && rows == 6) { /* a constant size, which needs no call */
        for (; k < length; k++) memcpy(target + 6 * k, source + k * step, 6 * sizeof *target);
    } else if (row_stride == 1) {
        if (rows > 8 && step >= 16) /* also a constant size; the next step overwrites what is too much */
            for (; k + 1 < length; k++) memcpy(target + rows * k, source + k * step, 16 * sizeof *target);
        for (; k < length; k++) memcpy(target + rows * k, source + k * step, (size_t)rows * sizeof *target);
    } else if (mr_cpu() == MR_CPU_AVX512) {
        k = pack_blocks(target, source, rows, length, row_stride);
    } else if (rows == 6) {
        for (; k + 4 <= length; k += 4) pack_6_by_4(target + 6 * k, source + k, row_stride);
    }
    for (; k < length; k++)
        for (int r = 0; r < rows; r++) target[k * rows + r] = source[r * row_stride + k * step];
}
