/* The micro-kernel's instances for pairs of bfloat16 numbers: each step adds the products of two numbers to a float.
 * AVX512-BF16 treats subnormal numbers as zero. */
#include "kernels/gemm.h"
#include <string.h>

#if MR_CPU_X86
/* Also of the inline functions: vectors cannot be passed between functions of different instruction sets. */
#pragma clang attribute push(MR_TARGET_AVX512_BF16, apply_to = function)
#define TILE_MULTIPLY_ADD(x, b, sum, fused) __builtin_ia32_dpbf16ps_512(sum, (pairs)(x), (pairs)(b))
typedef __bf16 pairs __attribute__((vector_size(64)));
#include "kernels/gemm_tile.h"

#define PAIRS_1(X, rows) X(pairs, , rows, 1, 1, true)
#define PAIRS_2(X, rows) X(pairs, , rows, 2, 1, true)
ROWS_28(PAIRS_1, TILE)
ROWS_14(PAIRS_2, TILE)
#pragma clang attribute pop

static const mr_tile_function pairs_1[][FORM_COUNT] = {ROWS_28(PAIRS_1, ENTRY)};
static const mr_tile_function pairs_2[][FORM_COUNT] = {ROWS_14(PAIRS_2, ENTRY)};

const mr_tile_set mr_tile_pairs[2] = {{pairs_1, 28}, {pairs_2, 14}};
#else
#define TILE_MULTIPLY_ADD mr_vector_multiply_add
#include "kernels/gemm_tile.h"

const mr_tile_set mr_tile_pairs[2] = {};
#endif
