/* Transposes of matrices in memory, and of small blocks in registers. */
#ifndef MR_KERNELS_TRANSPOSE_H
#define MR_KERNELS_TRANSPOSE_H

#include "kernels/common.h"

/* target[i * target_row + j] = source[j * source_row + i] for i < rows and j < columns. Strides count elements of 1, 2,
 * 4, 8 or 16 bytes; that of the source may be negative or zero. */
void mr_transpose(void *target, int64_t target_row, const void *source, int64_t source_row, int64_t rows,
                  int64_t columns, size_t element_size);

/* 16 x 16 and 8 x 8 floats, with AVX-512 and AVX2. */
void mr_transpose_16(float *target, int64_t target_row, const float *source, int64_t source_row);
/* Source rows [rows, 16) don't exist: their numbers in the target are undefined. Rows of the target are written in
 * ascending order, so that target_row may be less than 16. */
void mr_transpose_rows(float *target, int64_t target_row, const float *source, int64_t source_row, int rows);
/* The same of up to 8 rows of 8 doubles. */
void mr_transpose_double_rows(double *target, int64_t target_row, const double *source, int64_t source_row, int rows);
void mr_transpose_8(float *target, int64_t target_row, const float *source, int64_t source_row);

typedef float mr_four_floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef double mr_four_doubles __attribute__((vector_size(32), aligned(8), may_alias));

/* The same body for 4 x 4 floats and doubles. */
#define MR_TRANSPOSE_4(name, type, vector)                                                                             \
    MR_INLINE void name(type *target, int64_t target_row, const type *source, int64_t source_row)                      \
    {                                                                                                                  \
        const vector a = *(const vector *)source, b = *(const vector *)(source + source_row);                          \
        const vector c = *(const vector *)(source + 2 * source_row), d = *(const vector *)(source + 3 * source_row);   \
        const vector low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);                                               \
        const vector high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);                                              \
        const vector low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);                                               \
        const vector high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);                                              \
        *(vector *)target = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);                                       \
        *(vector *)(target + target_row) = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);                        \
        *(vector *)(target + 2 * target_row) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);                  \
        *(vector *)(target + 3 * target_row) = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);                  \
    }
MR_TRANSPOSE_4(mr_transpose_4, float, mr_four_floats)
MR_TRANSPOSE_4(mr_transpose_doubles_4, double, mr_four_doubles)

#endif
