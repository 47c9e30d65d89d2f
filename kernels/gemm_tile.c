/* The micro-kernel's instances for floats, at every CPU level. */
#define TILE_MULTIPLY_ADD mr_vector_multiply_add
#include "kernels/gemm_tile.h"

#define PLAIN_1(X, rows) X(plain, , rows, 1, false)
#define AVX2_1(X, rows) X(avx2, MR_TARGET_AVX2, rows, 1, true)
#define AVX512_1(X, rows) X(avx512, MR_TARGET_AVX512, rows, 1, true)
#define AVX512_2(X, rows) X(avx512, MR_TARGET_AVX512, rows, 2, true)
ROWS_4(PLAIN_1, TILE)
ROWS_6(AVX2_1, TILE)
ROWS_28(AVX512_1, TILE)
ROWS_14(AVX512_2, TILE)

static const mr_tile_function plain_1[][2][2] = {ROWS_4(PLAIN_1, ENTRY)};
static const mr_tile_function avx2_1[][2][2] = {ROWS_6(AVX2_1, ENTRY)};
static const mr_tile_function avx512_1[][2][2] = {ROWS_28(AVX512_1, ENTRY)};
static const mr_tile_function avx512_2[][2][2] = {ROWS_14(AVX512_2, ENTRY)};

const mr_tile_set mr_tile_floats[3][2] = {
    [MR_CPU_PLAIN] = {{plain_1, 4}},
    [MR_CPU_AVX2] = {{avx2_1, 6}},
    [MR_CPU_AVX512] = {{avx512_1, 28}, {avx512_2, 14}},
};

int mr_tile_vectors_max(void)
{
    return mr_cpu() == MR_CPU_AVX512 ? 2 : 1;
}

int mr_tile_rows_max(int vectors)
{
    return mr_tile_floats[mr_cpu()][vectors - 1].rows_max;
}

void mr_tile_run(const mr_tile *tile)
{
    if (tile->pairs && tile->a_step == 1 && mr_tile_has_amx()) {
        mr_tile_amx(tile);
        return;
    }
    const mr_tile_set *sets = tile->pairs ? mr_tile_pairs : mr_tile_floats[mr_cpu()];
    sets[tile->vectors - 1].functions[tile->rows - 1][tile->pack != nullptr][tile->a_step != 1](tile);
}
