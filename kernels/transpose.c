/* A matrix is transposed in blocks whose lines stay in the first cache, each line of which is read and written at once:
 * rows at a distance of a power of two share few sets of a cache. */
#include "kernels/transpose.h"
#include "kernels/vector.h"
#include <assert.h>

typedef float eight __attribute__((vector_size(32), aligned(4)));
typedef double eight_doubles __attribute__((vector_size(64), aligned(8)));
typedef struct element16 {
    uint64_t words[2];
} element16;

constexpr int64_t BLOCK = 64;

/* Each of four rounds moves one bit of a row's index into the lane's. The last of `count` rows is read again in place
 * of those that don't exist. */
MR_INLINE void transpose_16_body(float *target, int64_t target_row, const float *source, int64_t source_row, int count)
{
    mr_vector rows[16], next[16];
    MR_UNROLL
    for (int i = 0; i < 16; i++) {
        rows[i] = mr_vector_load(source);
        source += i + 1 < count ? source_row : 0;
    }
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
    for (int i = 0; i < 16; i++) mr_vector_store(target + i * target_row, rows[i]);
}

/* No vector may be passed to or from a function of another instruction set: the body is inlined. */
MR_TARGET_AVX512 void mr_transpose_16(float *target, int64_t target_row, const float *source, int64_t source_row)
{
    transpose_16_body(target, target_row, source, source_row, 16);
}

MR_TARGET_AVX512 void mr_transpose_rows(float *target, int64_t target_row, const float *source, int64_t source_row,
                                        int rows)
{
    assert(rows >= 1 && rows <= 16);
    transpose_16_body(target, target_row, source, source_row, rows);
}

MR_INLINE void transpose_doubles_body(double *target, int64_t target_row, const double *source, int64_t source_row,
                                      int count)
{
    eight_doubles rows[8], next[8];
    MR_UNROLL
    for (int i = 0; i < 8; i++) {
        rows[i] = *(const eight_doubles *)source;
        source += i + 1 < count ? source_row : 0;
    }
    MR_UNROLL
    for (int round = 0; round < 3; round++) {
        MR_UNROLL
        for (int i = 0; i < 4; i++) {
            next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        MR_UNROLL
        for (int i = 0; i < 8; i++) rows[i] = next[i];
    }
    MR_UNROLL
    for (int i = 0; i < 8; i++) *(eight_doubles *)(target + i * target_row) = rows[i];
}

MR_TARGET_AVX512 void mr_transpose_double_rows(double *target, int64_t target_row, const double *source,
                                               int64_t source_row, int rows)
{
    assert(rows >= 1 && rows <= 8);
    transpose_doubles_body(target, target_row, source, source_row, rows);
}

/* By steps that AVX2 has: pairs and quads of lanes within 128 bits, then halves. */
MR_TARGET_AVX2 void mr_transpose_8(float *target, int64_t target_row, const float *source, int64_t source_row)
{
    eight rows[8], pairs[8], quads[8];
    MR_UNROLL
    for (int i = 0; i < 8; i++) rows[i] = *(const eight *)(source + i * source_row);
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
        *(eight *)(target + i * target_row) = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        *(eight *)(target + (i + 4) * target_row) = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

#define ELEMENTS(type)                                                                                                 \
    for (int64_t i = 0; i < rows; i++)                                                                                 \
        for (int64_t j = 0; j < columns; j++)                                                                          \
            ((type *)target)[i * target_row + j] = ((const type *)source)[j * source_row + i];

static void transpose_elements(void *target, int64_t target_row, const void *source, int64_t source_row, int64_t rows,
                               int64_t columns, size_t element_size)
{
    switch (element_size) {
    case 1:
        ELEMENTS(uint8_t) break;
    case 2:
        ELEMENTS(uint16_t) break;
    case 4:
        ELEMENTS(uint32_t) break;
    case 8:
        ELEMENTS(uint64_t) break;
    default:
        assert(element_size == 16);
        ELEMENTS(element16)
    }
}

/* Elements in a side of the largest square that registers transpose. */
static int64_t square_side(size_t element_size)
{
    static const int64_t floats[] = {[MR_CPU_PLAIN] = 4, [MR_CPU_AVX2] = 8, [MR_CPU_AVX512] = 16};
    return element_size == 4 ? floats[mr_cpu()] : element_size == 8 ? 4 : 1;
}

static void transpose_square(char *target, int64_t target_row, const char *source, int64_t source_row,
                             size_t element_size, int64_t side)
{
    if (element_size == 8)
        mr_transpose_doubles_4((double *)target, target_row, (const double *)source, source_row);
    else if (side == 16)
        mr_transpose_16((float *)target, target_row, (const float *)source, source_row);
    else if (side == 8)
        mr_transpose_8((float *)target, target_row, (const float *)source, source_row);
    else
        mr_transpose_4((float *)target, target_row, (const float *)source, source_row);
}

static void transpose_block(char *target, int64_t target_row, const char *source, int64_t source_row, int64_t rows,
                            int64_t columns, size_t element_size)
{
    const int64_t size = (int64_t)element_size, side = square_side(element_size);
    const int64_t whole_rows = side > 1 ? rows / side * side : 0, whole_columns = columns / side * side;
    for (int64_t i = 0; i < whole_rows; i += side)
        for (int64_t j = 0; j < whole_columns; j += side)
            transpose_square(target + (i * target_row + j) * size, target_row, source + (j * source_row + i) * size,
                             source_row, element_size, side);
    transpose_elements(target + whole_columns * size, target_row, source + whole_columns * source_row * size,
                       source_row, whole_rows, columns - whole_columns, element_size);
    transpose_elements(target + whole_rows * target_row * size, target_row, source + whole_rows * size, source_row,
                       rows - whole_rows, columns, element_size);
}

void mr_transpose(void *target, int64_t target_row, const void *source, int64_t source_row, int64_t rows,
                  int64_t columns, size_t element_size)
{
    const int64_t size = (int64_t)element_size;
    for (int64_t i = 0; i < rows; i += BLOCK)
        for (int64_t j = 0; j < columns; j += BLOCK)
            transpose_block((char *)target + (i * target_row + j) * size, target_row,
                            (const char *)source + (j * source_row + i) * size, source_row, MR_MIN(BLOCK, rows - i),
                            MR_MIN(BLOCK, columns - j), element_size);
}
