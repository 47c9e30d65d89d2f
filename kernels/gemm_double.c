/* The result is split into units, blocks of rows and columns. A thread packs INNER_BLOCK rows of a unit's columns of B,
 * which stay in the second cache, and the rows of TILES_MAX tiles of A at a time. A tile's rows stay in the first cache
 * while they are multiplied with all columns. */
#include "kernels/gemm_double.h"
#include "kernels/transpose.h"
#include <assert.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wpsabi"

typedef double eight __attribute__((vector_size(64)));
typedef double eight_at __attribute__((vector_size(64), aligned(8), may_alias));

constexpr int LANES = 8, VECTORS_MAX = 3, ROWS_MAX = 14;
constexpr int64_t INNER_BLOCK = 256;
constexpr int64_t PACKED_COLUMNS = 144;             /* of B, packed at a time: a multiple of each tile's width */
constexpr int64_t ROWS_AHEAD = 8;                   /* of B, prefetched while others are packed */
constexpr int64_t COLUMNS_MAX = 4 * PACKED_COLUMNS; /* of a unit */
constexpr int64_t COLUMNS_MIN = PACKED_COLUMNS;     /* of a unit, unless the result has fewer */
constexpr int64_t TILES_MAX = 20;                   /* packed at a time */
constexpr int64_t HEIGHT_MIN = 54;                  /* of a unit */
constexpr double PIECE_WORK = 1 << 19;              /* multiplications that are worth another thread: about 10 us */

/* c[r][j] (+)= sum over k of a[k][r] * b[k][j]: a has `rows` numbers for each k, b whole vectors. */
typedef struct tile {
    const double *a, *b;
    double *c;
    int64_t c_row, length;
    int columns; /* stored: 1 … the tile's width */
    bool accumulate;
} tile;

MR_INLINE void store_row(double *to, eight value, int columns, bool accumulate)
{
    if (columns >= LANES) {
        *(eight_at *)to = accumulate ? *(const eight_at *)to + value : value;
        return;
    }
    for (int i = 0; i < columns; i++) to[i] = accumulate ? to[i] + value[i] : value[i];
}

MR_INLINE eight multiply_add(eight a, eight b, eight sum, bool fused)
{
    return fused ? __builtin_elementwise_fma(a, b, sum) : sum + a * b;
}

/* A tile's constants. unroll: steps of the inner dimension between two jumps. */
typedef struct tile_kind {
    int vectors, unroll;
    bool fused;
    int rows;
} tile_kind;

/* `count` steps. */
MR_INLINE void tile_steps(const tile_kind kind, eight sums[ROWS_MAX][VECTORS_MAX], const double *a, const double *b,
                          const int count)
{
    MR_UNROLL
    for (int i = 0; i < count; i++) {
        const double *from = b + i * kind.vectors * LANES;
        eight columns[VECTORS_MAX];
        MR_UNROLL
        for (int v = 0; v < kind.vectors; v++) columns[v] = *(const eight *)(from + v * LANES);
        MR_UNROLL
        for (int r = 0; r < kind.rows; r++) {
            const eight x = a[i * kind.rows + r] - (eight){};
            MR_UNROLL
            for (int v = 0; v < kind.vectors; v++) sums[r][v] = multiply_add(x, columns[v], sums[r][v], kind.fused);
        }
    }
}

/* kind is a constant in every instance. */
MR_INLINE void tile_body(const tile *t, const tile_kind kind)
{
    eight sums[ROWS_MAX][VECTORS_MAX];
    const double *a = t->a, *b = t->b;
    MR_UNROLL
    for (int r = 0; r < kind.rows; r++)
        for (int v = 0; v < kind.vectors; v++) {
            sums[r][v] = (eight){};
            __builtin_prefetch(t->c + r * t->c_row + v * LANES, 1); /* in no cache if the matrices are large */
        }
    int64_t k = t->length;
    for (; k >= kind.unroll; k -= kind.unroll) {
        tile_steps(kind, sums, a, b, kind.unroll);
        a += kind.unroll * kind.rows;
        b += kind.unroll * kind.vectors * LANES;
    }
    for (; kind.unroll > 1 && k > 0; k--) {
        tile_steps(kind, sums, a, b, 1);
        a += kind.rows;
        b += kind.vectors * LANES;
    }
    MR_UNROLL
    for (int r = 0; r < kind.rows; r++)
        for (int v = 0; v < kind.vectors; v++)
            store_row(t->c + r * t->c_row + v * LANES, sums[r][v], t->columns - v * LANES, t->accumulate);
}

#define TILE(level, target, vectors, unroll, fused, rows)                                                              \
    target static void level##_##vectors##_##rows(const tile *t)                                                       \
    {                                                                                                                  \
        tile_body(t, (tile_kind){vectors, unroll, fused, rows});                                                       \
    }
#define ENTRY(level, target, vectors, unroll, fused, rows) level##_##vectors##_##rows,
#define ROWS_4(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)
#define ROWS_6(X, ...) ROWS_4(X, __VA_ARGS__) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6)
#define ROWS_9(X, ...) ROWS_6(X, __VA_ARGS__) X(__VA_ARGS__, 7) X(__VA_ARGS__, 8) X(__VA_ARGS__, 9)
#define ROWS_14(X, ...)                                                                                                \
    ROWS_9(X, __VA_ARGS__)                                                                                             \
    X(__VA_ARGS__, 10) X(__VA_ARGS__, 11) X(__VA_ARGS__, 12) X(__VA_ARGS__, 13) X(__VA_ARGS__, 14)
ROWS_4(TILE, plain, , 1, 1, false)
ROWS_6(TILE, avx2, MR_TARGET_AVX2, 1, 4, true)
ROWS_14(TILE, avx512, MR_TARGET_AVX512, 2, 2, true)
ROWS_9(TILE, avx512, MR_TARGET_AVX512, 3, 4, true)

typedef struct tile_set {
    void (*const *functions)(const tile *t); /* [rows - 1] */
    int rows, vectors;
} tile_set;

/* Wide tiles need fewer loads, but more columns, and more rows that repay the packing of B. */
static tile_set tiles(const mr_product *p)
{
    static void (*const plain[])(const tile *t) = {ROWS_4(ENTRY, plain, , 1, 1, false)};
    static void (*const avx2[])(const tile *t) = {ROWS_6(ENTRY, avx2, , 1, 4, true)};
    static void (*const avx512_2[])(const tile *t) = {ROWS_14(ENTRY, avx512, , 2, 2, true)};
    static void (*const avx512_3[])(const tile *t) = {ROWS_9(ENTRY, avx512, , 3, 4, true)};
    switch (mr_cpu()) {
    case MR_CPU_AVX512:
        return p->n <= 128 || p->m <= 42 ? (tile_set){avx512_2, 14, 2} : (tile_set){avx512_3, 9, 3};
    case MR_CPU_AVX2:
        return (tile_set){avx2, 6, 1};
    default:
        return (tile_set){plain, 4, 1};
    }
}

/* to[k * to_row + r] = from[r * from_row + k] for k < length and r < count: few rows, which are read side by side. */
MR_INLINE void turn_body(double *to, int64_t to_row, const double *from, int64_t from_row, int64_t length,
                         int64_t count)
{
    int64_t r = 0;
    for (; r + 4 <= count; r += 4) {
        const double *line = from + r * from_row;
        int64_t k = 0;
        for (; k + 4 <= length; k += 4) mr_transpose_doubles_4(to + k * to_row + r, to_row, line + k, from_row);
        for (; k < length; k++)
            for (int64_t i = 0; i < 4; i++) to[k * to_row + r + i] = line[i * from_row + k];
    }
    if (r + 2 <= count) {
        const double *line = from + r * from_row, *next = line + from_row;
        for (int64_t k = 0; k < length; k++) {
            to[k * to_row + r] = line[k];
            to[k * to_row + r + 1] = next[k];
        }
        r += 2;
    }
    for (int64_t k = 0; r < count && k < length; k++) to[k * to_row + r] = from[r * from_row + k];
}
MR_LEVELS(turn, (double *to, int64_t to_row, const double *from, int64_t from_row, int64_t length, int64_t count),
          (to, to_row, from, from_row, length, count))

/* Packs numbers [k0, k0 + length) of rows [row, row + count) of A: to[k][row]. */
static void pack_rows(const mr_product *p, double *to, int64_t k0, int64_t length, int64_t row, int64_t count)
{
    const double *a = p->a;
    if (!p->a_transposed) {
        turn[mr_cpu()](to, count, a + row * p->k + k0, p->k, length, count);
        return;
    }
    for (int64_t k = 0; k < length; k++) memcpy(to + k * count, a + (k0 + k) * p->m + row, (size_t)count * sizeof *to);
}

/* Packs rows [k0, k0 + length) of columns [column, column + count) of B into panels of `width` columns, the last one
 * padded with zeros: to[panel][k][column]. */
static void pack_columns(const mr_product *p, double *to, int64_t k0, int64_t length, int64_t column, int64_t count,
                         int64_t width)
{
    const double *b = p->b;
    if (count % width != 0) memset(to + count / width * width * length, 0, (size_t)(width * length) * sizeof *to);
    if (p->b_transposed) {
        for (int64_t j = 0; j < count; j += width)
            turn[mr_cpu()](to + j * length, width, b + (column + j) * p->k + k0, p->k, length,
                           MR_MIN(width, count - j));
        return;
    }
    for (int64_t k = 0; k < length; k++) {
        const double *line = b + (k0 + k) * p->n + column;
        double *target = to + k * width;
        int64_t j = 0;
        for (; j + width <= count; j += width, target += width * length)
            for (int64_t i = 0; i < width; i += LANES) {
                __builtin_prefetch(line + j + i + ROWS_AHEAD * p->n);
                *(eight *)(target + i) = *(const eight_at *)(line + j + i);
            }
        for (int64_t i = 0; i < count - j; i++) target[i] = line[j + i];
    }
}

typedef struct job {
    const mr_product *product;
    mr_slots *slots;
    tile_set tiles;
    int64_t row_blocks, column_blocks;
} job;

static int64_t ceiling(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

/* Doubles of the packed rows. */
static int64_t rows_size(const mr_product *p)
{
    return TILES_MAX * ROWS_MAX * MR_MIN(p->k, INNER_BLOCK);
}

static int64_t columns_size(const mr_product *p)
{
    return ceiling(MR_MIN(p->n, COLUMNS_MAX), PACKED_COLUMNS) * PACKED_COLUMNS * MR_MIN(p->k, INNER_BLOCK);
}

int64_t mr_gemm_double_scratch(const mr_product *p)
{
    return 2 * (rows_size(p) + columns_size(p));
}

bool mr_gemm_double_repays(const mr_product *p)
{
    return p->m >= 4 && p->n >= 8 && p->k >= 8 && (double)p->m * (double)p->n * (double)p->k >= 1 << 13;
}

typedef struct unit {
    int64_t row0, row1, column0, column1;
    double *rows, *panels; /* packed */
} unit;

/* Adds the products of columns [k0, k0 + length) of A for tiles [first, first + count) of the `tiles` tiles of a unit's
 * rows. The first ones of a unit also pack B for all. */
static void multiply_tiles(const job *job, const unit *u, int64_t k0, int64_t length, int64_t tiles, int64_t first,
                           int64_t count)
{
    const mr_product *p = job->product;
    const int64_t width = job->tiles.vectors * LANES, height = u->row1 - u->row0;
    int64_t rows[TILES_MAX + 1]; /* where the tiles begin and end */
    assert(count >= 1 && count <= TILES_MAX && length >= 1 && length <= INNER_BLOCK);
    for (int64_t i = 0; i <= count; i++) rows[i] = u->row0 + height * (first + i) / tiles;
    for (int64_t i = 0; i < count; i++)
        pack_rows(p, u->rows + (rows[i] - rows[0]) * length, k0, length, rows[i], rows[i + 1] - rows[i]);
    for (int64_t i = 0; i < count; i++) {
        tile t = {.a = u->rows + (rows[i] - rows[0]) * length, .c_row = p->n, .length = length, .accumulate = k0 > 0};
        for (int64_t column = u->column0; column < u->column1; column += width) {
            const int64_t at = column - u->column0;
            if (first + i == 0 && at % PACKED_COLUMNS == 0)
                pack_columns(p, u->panels + at * length, k0, length, column,
                             MR_MIN(PACKED_COLUMNS, u->column1 - column), width);
            t.b = u->panels + at * length;
            t.c = (double *)p->c + rows[i] * p->n + column;
            t.columns = (int)MR_MIN(width, u->column1 - column);
            job->tiles.functions[rows[i + 1] - rows[i] - 1](&t);
        }
    }
}

static void multiply_units(void *context, int64_t begin, int64_t end)
{
    const job *job = context;
    const mr_product *p = job->product;
    int slot;
    unit u = {.rows = (void *)mr_slot_acquire(job->slots, &slot)};
    u.panels = u.rows + rows_size(p);
    const int64_t steps = ceiling(p->k, INNER_BLOCK), groups = ceiling(p->n, PACKED_COLUMNS);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / job->column_blocks, column = i % job->column_blocks;
        u.row0 = p->m * row / job->row_blocks;
        u.row1 = p->m * (row + 1) / job->row_blocks;
        u.column0 = groups * column / job->column_blocks * PACKED_COLUMNS;
        u.column1 = MR_MIN(p->n, groups * (column + 1) / job->column_blocks * PACKED_COLUMNS);
        assert(u.row0 < u.row1 && u.column0 < u.column1 && u.column1 - u.column0 <= COLUMNS_MAX);
        const int64_t tiles = ceiling(u.row1 - u.row0, job->tiles.rows);
        for (int64_t step = 0; step < steps; step++) {
            const int64_t k0 = p->k * step / steps, length = p->k * (step + 1) / steps - k0;
            for (int64_t tile = 0; tile < tiles; tile += TILES_MAX)
                multiply_tiles(job, &u, k0, length, tiles, tile, MR_MIN(TILES_MAX, tiles - tile));
        }
    }
    mr_slot_release(job->slots, slot);
}

/* Divides the result into units: several for each thread, so that one that is interrupted does not delay the others
 * much, of many columns, for which the rows are packed, and of many rows, for which the columns are. */
static void split(const mr_product *p, int threads, job *job)
{
    const double pieces = (double)p->m * (double)p->n * (double)p->k / PIECE_WORK;
    const int64_t wanted = threads == 1 ? 1 : (int64_t)MR_MAX(1.0, MR_MIN(2.0 * threads, pieces));
    job->row_blocks = 1;
    job->column_blocks = ceiling(p->n, COLUMNS_MAX);
    while (job->row_blocks * job->column_blocks < wanted) {
        const int64_t rows = p->m / job->row_blocks, columns = p->n / job->column_blocks;
        if (columns >= 2 * COLUMNS_MIN && (columns >= rows || rows < 2 * HEIGHT_MIN))
            job->column_blocks *= 2;
        else if (rows >= 2 * HEIGHT_MIN)
            job->row_blocks *= 2;
        else
            break;
    }
}

void mr_gemm_double_run(const mr_product *p, mr_slots *slots, mr_pool *pool)
{
    assert(mr_gemm_double_repays(p) && slots->size >= mr_gemm_double_scratch(p));
    job job = {.product = p, .slots = slots, .tiles = tiles(p)};
    split(p, mr_pool_thread_count(pool), &job);
    mr_pool_for(pool, job.row_blocks * job.column_blocks, 1, multiply_units, &job);
}
