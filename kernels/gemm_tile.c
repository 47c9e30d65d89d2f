/* The micro-kernel's instances for floats, at every CPU level. */
#define TILE_MULTIPLY_ADD mr_vector_multiply_add
#include "kernels/gemm_tile.h"

#define PLAIN_1(X, rows) X(plain, , rows, 1, 1, false)
#define AVX2_1(X, rows) X(avx2, MR_TARGET_AVX2, rows, 1, 4, true)
#define AVX512_1(X, rows) X(avx512, MR_TARGET_AVX512, rows, 1, 1, true)
#define AVX512_2(X, rows) X(avx512, MR_TARGET_AVX512, rows, 2, 2, true)
#define AVX512_3(X, rows) X(avx512, MR_TARGET_AVX512, rows, 3, 2, true)
ROWS_4(PLAIN_1, TILE)
ROWS_6(AVX2_1, TILE_PACKED)
ROWS_28(AVX512_1, TILE)
ROWS_14(AVX512_2, TILE_PANELS)
ROWS_9(AVX512_3, TILE_PANELS)

static const mr_tile_function plain_1[][FORM_COUNT] = {ROWS_4(PLAIN_1, ENTRY)};
static const mr_tile_function avx2_1[][FORM_COUNT] = {ROWS_6(AVX2_1, ENTRY_PACKED)};
static const mr_tile_function avx512_1[][FORM_COUNT] = {ROWS_28(AVX512_1, ENTRY)};
static const mr_tile_function avx512_2[][FORM_COUNT] = {ROWS_14(AVX512_2, ENTRY_PANELS)};
static const mr_tile_function avx512_3[][FORM_COUNT] = {ROWS_9(AVX512_3, ENTRY_PANELS)};

const mr_tile_set mr_tile_floats[3][3] = {
    [MR_CPU_PLAIN] = {{plain_1, 4}},
    [MR_CPU_AVX2] = {{avx2_1, 6}},
    [MR_CPU_AVX512] = {{avx512_1, 28}, {avx512_2, 14}, {avx512_3, 9}},
};

int mr_tile_vectors_max(bool pairs)
{
    return mr_cpu() != MR_CPU_AVX512 ? 1 : pairs ? 2 : 3;
}

int mr_tile_rows_max(int vectors)
{
    return mr_tile_floats[mr_cpu()][vectors - 1].rows_max;
}

static tile_form form_of(const mr_tile *tile)
{
    const bool by_rows = tile->a_step == 1;
    if (tile->pack) return by_rows ? BY_ROW_PACKING : BY_COLUMN_PACKING;
    if (tile->b_step != 16 || tile->ahead) return by_rows ? BY_ROW : BY_COLUMN;
    return by_rows ? BY_ROW_PANELS : tile->a_step == tile->rows ? PACKED : BY_COLUMN_PANELS;
}

/* Whether mr_tile_packed multiplies it. */
static bool is_packed(const mr_tile *t)
{
    return mr_cpu() == MR_CPU_AVX512 && t->vectors == 2 && t->a_row == 1 && t->a_step == t->rows && t->segments == 1 &&
           !t->pairs && !t->ahead && !t->pack;
}

void mr_tile_run(const mr_tile *tile)
{
    if (tile->pairs && tile->a_step == 1 && mr_tile_has_amx()) {
        mr_tile_amx(tile);
        return;
    }
    if (is_packed(tile)) {
        mr_tile_packed(tile);
        return;
    }
    const tile_form form = form_of(tile);
    const mr_tile_set *sets = tile->pairs ? mr_tile_pairs : mr_tile_floats[mr_cpu()];
    sets[tile->vectors - 1].functions[tile->rows - 1][form](tile);
}
