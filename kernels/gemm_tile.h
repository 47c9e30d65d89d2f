/* The micro-kernel of gemm.h: one function body in vectors of 16 floats, with an instance for each number of rows that
 * fits in the registers of a CPU level: 28 accumulators of AVX-512's 32 registers, or 12 of AVX2's 16 (two
 * registers for each vector). Before it includes this header, a file defines
 *
 *   TILE_MULTIPLY_ADD(x, b, sum, fused)  sum + x * b for each lane
 */
#ifndef MR_KERNELS_GEMM_TILE_H
#define MR_KERNELS_GEMM_TILE_H

#include "kernels/gemm.h"
#include "kernels/vector.h"

typedef void (*mr_tile_function)(const mr_tile *tile);

/* How the operands are read. */
typedef enum tile_form {
    BY_ROW,         /* a_step is 1 */
    BY_COLUMN,      /* a_row is 1 */
    BY_ROW_PACKING, /* and B is stored */
    BY_COLUMN_PACKING,
    BY_ROW_PANELS, /* a_step is 1, b_step 16; nothing is prefetched */
    BY_COLUMN_PANELS,
    PACKED, /* a_row is 1, a_step the number of rows, b_step 16; nothing is prefetched */
    FORM_COUNT,
} tile_form;

typedef struct mr_tile_set {
    const mr_tile_function (*functions)[FORM_COUNT]; /* [rows - 1] */
    int rows_max;
} mr_tile_set;

/* For one vector and more: floats at every level, and pairs of bfloat16 numbers. */
extern const mr_tile_set mr_tile_floats[3][3], mr_tile_pairs[2];

constexpr int ROWS_MAX = 28, VECTORS_MAX = 3, GROUPS_MAX = 10;
constexpr int64_t PREFETCHED_ROWS = 12; /* of B in memory: the time of as many steps hides that of a load */
constexpr int64_t LAST = 15;            /* float of a vector, whose first ones the tile before has read, if any */

MR_INLINE void store_row(float *to, mr_vector value, int columns, bool accumulate, const float *bias)
{
    if (columns >= 16) {
        if (accumulate) value = mr_vector_load(to) + value;
        mr_vector_store(to, bias ? value + mr_vector_load(bias) : value);
        return;
    }
    float lanes[16];
    memcpy(lanes, &value, sizeof lanes);
    for (int i = 0; i < columns; i++) {
        float sum = accumulate ? to[i] + lanes[i] : lanes[i];
        to[i] = bias ? sum + bias[i] : sum;
    }
}

/* A tile's constants. unroll: steps between two jumps, unless B is stored. */
typedef struct tile_kind {
    int rows, vectors, unroll;
    bool fused;
    tile_form form;
} tile_kind;

MR_INLINE bool is_by_rows(tile_form form)
{
    return form == BY_ROW || form == BY_ROW_PANELS || form == BY_ROW_PACKING;
}

MR_INLINE bool is_packing(tile_form form)
{
    return form == BY_ROW_PACKING || form == BY_COLUMN_PACKING;
}

/* Pointers to the rows of A. */
MR_INLINE int group_count(const tile_kind kind)
{
    return is_by_rows(kind.form) ? (kind.rows + 2) / 3 : 1;
}

/* What changes from step to step. One pointer for each group of three rows: an address can be the pointer plus the row
 * stride times 0, 1 or 2. By default the compiler keeps one pointer for each row, more than there are registers. */
typedef struct tile_place {
    const float *a[GROUPS_MAX], *b, *ahead;
    float *pack;
} tile_place;

/* `count` steps of the inner dimension. Only what is not at a constant distance from the first step is moved between
 * them. */
MR_INLINE void tile_steps(const mr_tile *t, const tile_kind kind, mr_vector sums[ROWS_MAX][VECTORS_MAX], tile_place *at,
                          const int count)
{
    const bool packs = is_packing(kind.form), by_rows = is_by_rows(kind.form);
    const bool packed = kind.form == PACKED;
    const bool panels = packed || kind.form == BY_ROW_PANELS || kind.form == BY_COLUMN_PANELS;
    const int64_t a_row = by_rows ? t->a_row : 1;
    const int group_rows = by_rows ? 3 : ROWS_MAX;
    MR_UNROLL
    for (int i = 0; i < count; i++) {
        if (!panels && (!packs || !by_rows)) {
            __builtin_prefetch(at->ahead);
            at->ahead += t->ahead_step;
        }
        const float *b = at->b + (panels ? i * 16 : 0);
        mr_vector columns[VECTORS_MAX];
        MR_UNROLL
        for (int v = 0; v < kind.vectors; v++) {
            columns[v] = mr_vector_load(b + v * t->b_next);
            if (!packs) continue;
            __builtin_prefetch(b + v * t->b_next + PREFETCHED_ROWS * t->b_step + LAST);
            mr_vector_store(at->pack + v * t->pack_next, columns[v]);
        }
        if (packs) at->pack += 16;
        const int64_t a_step = by_rows ? i : packed ? i * kind.rows : 0;
        MR_UNROLL
        for (int r = 0; r < kind.rows; r++) {
            mr_vector x = mr_vector_of(at->a[r / group_rows][r % group_rows * a_row + a_step]);
            MR_UNROLL
            for (int v = 0; v < kind.vectors; v++)
                sums[r][v] = TILE_MULTIPLY_ADD(x, columns[v], sums[r][v], kind.fused);
        }
        if (!by_rows && !packed) at->a[0] += t->a_step;
        if (!panels) at->b += t->b_step;
    }
    MR_UNROLL
    for (int g = 0; g < group_count(kind); g++) {
        at->a[g] += by_rows ? count : packed ? count * kind.rows : 0;
        __asm__("" : "+r"(at->a[g]));
    }
    if (panels) at->b += count * 16;
}

/* Whole vectors of the result, with few branches: short tiles spend much of their time here. */
MR_INLINE void store_vectors(const mr_tile *t, const tile_kind kind, mr_vector sums[ROWS_MAX][VECTORS_MAX])
{
    if (t->accumulate) {
        MR_UNROLL
        for (int r = 0; r < kind.rows; r++)
            for (int v = 0; v < kind.vectors; v++) sums[r][v] += mr_vector_load(t->c + r * t->c_row + v * 16);
    }
    MR_UNROLL
    for (int r = 0; r < kind.rows; r++)
        for (int v = 0; v < kind.vectors; v++) mr_vector_store(t->c + r * t->c_row + v * 16, sums[r][v]);
}

/* kind is a constant in every instance. */
MR_INLINE void tile_body(const mr_tile *tile, const tile_kind kind)
{
    mr_tile copy = *tile, *t = &copy; /* so that stores to C do not make the compiler read it again */
    mr_vector sums[ROWS_MAX][VECTORS_MAX];
    const int unroll = is_packing(kind.form) ? 1 : kind.unroll;
    tile_place at = {.b = t->b, .pack = t->pack};
    if (!t->ahead) t->ahead_step = 0;
    if (!t->ahead) t->ahead = t->b;
    MR_UNROLL
    for (int r = 0; r < kind.rows; r++)
        for (int v = 0; v < kind.vectors; v++) sums[r][v] = (mr_vector){};
    constexpr int64_t LONG = 96; /* steps, in which the result can arrive: large matrices are in no cache */
    if (t->length * t->segments >= LONG) {
        MR_UNROLL
        for (int r = 0; r < kind.rows; r++)
            for (int v = 0; v < kind.vectors; v++) __builtin_prefetch(t->c + r * t->c_row + v * 16, 1);
    }
    for (int64_t s = 0; s < t->segments; s++) {
        at.ahead = t->ahead;
        MR_UNROLL
        for (int g = 0; g < group_count(kind); g++) {
            at.a[g] = t->a + s * t->a_segment + 3 * g * t->a_row;
            __asm__("" : "+r"(at.a[g]));
        }
        int64_t k = t->length;
        for (; k >= unroll; k -= unroll) tile_steps(t, kind, sums, &at, unroll);
        for (; unroll > 1 && k > 0; k--) tile_steps(t, kind, sums, &at, 1);
    }
    if (t->columns == 16 * kind.vectors && !t->bias) {
        store_vectors(t, kind, sums);
        return;
    }
    MR_UNROLL
    for (int r = 0; r < kind.rows; r++)
        for (int v = 0; v < kind.vectors; v++)
            store_row(t->c + r * t->c_row + v * 16, sums[r][v], t->columns - v * 16, t->accumulate,
                      t->bias ? t->bias + v * 16 : nullptr);
}

#define TILE_OF(level, target, rows, vectors, unroll, fused, form)                                                     \
    target static void level##_##vectors##_##form##_##rows(const mr_tile *t)                                           \
    {                                                                                                                  \
        tile_body(t, (tile_kind){rows, vectors, unroll, fused, form});                                                 \
    }
#define TILE(...)                                                                                                      \
    TILE_OF(__VA_ARGS__, BY_ROW)                                                                                       \
    TILE_OF(__VA_ARGS__, BY_COLUMN)                                                                                    \
    TILE_OF(__VA_ARGS__, BY_ROW_PACKING)                                                                               \
    TILE_OF(__VA_ARGS__, BY_COLUMN_PACKING)
#define ENTRY_OF(level, target, rows, vectors, unroll, fused, form) level##_##vectors##_##form##_##rows
#define ENTRY(...)                                                                                                     \
    {ENTRY_OF(__VA_ARGS__, BY_ROW),         ENTRY_OF(__VA_ARGS__, BY_COLUMN),                                          \
     ENTRY_OF(__VA_ARGS__, BY_ROW_PACKING), ENTRY_OF(__VA_ARGS__, BY_COLUMN_PACKING),                                  \
     ENTRY_OF(__VA_ARGS__, BY_ROW),         ENTRY_OF(__VA_ARGS__, BY_COLUMN),                                          \
     ENTRY_OF(__VA_ARGS__, BY_COLUMN)},
/* With functions for panels: fewer instructions for each step. */
#define TILE_PANELS(...)                                                                                               \
    TILE(__VA_ARGS__)                                                                                                  \
    TILE_OF(__VA_ARGS__, BY_ROW_PANELS)                                                                                \
    TILE_OF(__VA_ARGS__, BY_COLUMN_PANELS)
#define ENTRY_PANELS(...)                                                                                              \
    {ENTRY_OF(__VA_ARGS__, BY_ROW),          ENTRY_OF(__VA_ARGS__, BY_COLUMN),                                         \
     ENTRY_OF(__VA_ARGS__, BY_ROW_PACKING),  ENTRY_OF(__VA_ARGS__, BY_COLUMN_PACKING),                                 \
     ENTRY_OF(__VA_ARGS__, BY_ROW_PANELS),   ENTRY_OF(__VA_ARGS__, BY_COLUMN_PANELS),                                  \
     ENTRY_OF(__VA_ARGS__, BY_COLUMN_PANELS)},
/* And for packed rows. */
#define TILE_PACKED(...)                                                                                               \
    TILE_PANELS(__VA_ARGS__)                                                                                           \
    TILE_OF(__VA_ARGS__, PACKED)
#define ENTRY_PACKED(...)                                                                                              \
    {ENTRY_OF(__VA_ARGS__, BY_ROW),         ENTRY_OF(__VA_ARGS__, BY_COLUMN),                                          \
     ENTRY_OF(__VA_ARGS__, BY_ROW_PACKING), ENTRY_OF(__VA_ARGS__, BY_COLUMN_PACKING),                                  \
     ENTRY_OF(__VA_ARGS__, BY_ROW_PANELS),  ENTRY_OF(__VA_ARGS__, BY_COLUMN_PANELS),                                   \
     ENTRY_OF(__VA_ARGS__, PACKED)},
#define ROWS_4(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)
#define ROWS_6(X, ...) ROWS_4(X, __VA_ARGS__) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6)
#define ROWS_9(X, ...) ROWS_6(X, __VA_ARGS__) X(__VA_ARGS__, 7) X(__VA_ARGS__, 8) X(__VA_ARGS__, 9)
#define ROWS_14(X, ...)                                                                                                \
    ROWS_9(X, __VA_ARGS__)                                                                                             \
    X(__VA_ARGS__, 10) X(__VA_ARGS__, 11) X(__VA_ARGS__, 12) X(__VA_ARGS__, 13) X(__VA_ARGS__, 14)
#define ROWS_28(X, ...)                                                                                                \
    ROWS_14(X, __VA_ARGS__)                                                                                            \
    X(__VA_ARGS__, 15)                                                                                                 \
    X(__VA_ARGS__, 16)                                                                                                 \
    X(__VA_ARGS__, 17)                                                                                                 \
    X(__VA_ARGS__, 18)                                                                                                 \
    X(__VA_ARGS__, 19)                                                                                                 \
    X(__VA_ARGS__, 20)                                                                                                 \
    X(__VA_ARGS__, 21)                                                                                                 \
    X(__VA_ARGS__, 22)                                                                                                 \
    X(__VA_ARGS__, 23)                                                                                                 \
    X(__VA_ARGS__, 24) X(__VA_ARGS__, 25) X(__VA_ARGS__, 26) X(__VA_ARGS__, 27) X(__VA_ARGS__, 28)

#endif
