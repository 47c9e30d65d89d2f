/* The result is split into units, blocks of rows and columns. A thread packs the rows of TILES_MAX tiles of A at a
 * time, which stay in the second cache, and INNER_BLOCK rows of a unit's columns of B. The columns of a tile are
 * multiplied with all rows, then the next ones. */
#include "kernels/gemm_double.h"
#include "kernels/transpose.h"
#include <assert.h>
#include <string.h>

#if MR_CPU_X86
#define PACKED_NUMBER double
#define PACKED_SUFFIX "d"
#define PACKED_LANES "8"
#include "kernels/gemm_tile_packed.h"
#endif

#pragma clang diagnostic ignored "-Wpsabi"

typedef double eight __attribute__((vector_size(64)));
typedef double eight_at __attribute__((vector_size(64), aligned(8), may_alias));

constexpr int LANES = 8, ROWS_MAX = 14;
constexpr int64_t INNER_BLOCK = 256;
constexpr int64_t PACKED_COLUMNS = 64;               /* of B, packed at a time: a multiple of each tile's width */
constexpr int64_t ROWS_AHEAD = 8;                    /* of B, prefetched while others are packed */
constexpr int64_t COLUMNS_MAX = 16 * PACKED_COLUMNS; /* of a unit */
constexpr int64_t COLUMNS_MIN = 2 * PACKED_COLUMNS;  /* of a unit, unless the result has fewer */
constexpr int64_t TILES_MAX = 24;                    /* packed at a time */
constexpr int64_t HEIGHT_MIN = 54;                   /* of a unit */
constexpr double PIECE_WORK = 1 << 19;               /* multiplications that are worth another thread: about 10 us */

/* c[r][j] (+)= sum over k of a[k][r] * b[k][j]: a has `rows` numbers for each k, b whole vectors.
 * b_step  0, or the distance of the rows of B, which are read in place */
typedef struct tile {
    const double *a, *b;
    double *c;
    int64_t b_step, c_row, length;
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

/* `count` steps. */
MR_INLINE void tile_steps(eight sums[ROWS_MAX], const double *a, const double *b, const int rows, const int count,
                          const bool fused)
{
    MR_UNROLL
    for (int i = 0; i < count; i++) {
        const eight columns = *(const eight *)(b + i * LANES);
        MR_UNROLL
        for (int r = 0; r < rows; r++) sums[r] = multiply_add(a[i * rows + r] - (eight){}, columns, sums[r], fused);
    }
}

/* rows, unroll (steps of the inner dimension between two jumps) and fused are constants in every instance. */
MR_INLINE void tile_body(const tile *t, const int unroll, const bool fused, const int rows)
{
    eight sums[ROWS_MAX];
    const double *a = t->a, *b = t->b;
    MR_UNROLL
    for (int r = 0; r < rows; r++) {
        sums[r] = (eight){};
        __builtin_prefetch(t->c + r * t->c_row, 1); /* in no cache if the matrices are large */
    }
    int64_t k = t->length;
    for (; k >= unroll; k -= unroll) {
        tile_steps(sums, a, b, rows, unroll, fused);
        a += unroll * rows;
        b += unroll * LANES;
    }
    for (; unroll > 1 && k > 0; k--) {
        tile_steps(sums, a, b, rows, 1, fused);
        a += rows;
        b += LANES;
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++) store_row(t->c + r * t->c_row, sums[r], t->columns, t->accumulate);
}

#define TILE_OF(level, target, unroll, fused, rows)                                                                    \
    target static void level##_##rows(const tile *t)                                                                   \
    {                                                                                                                  \
        tile_body(t, unroll, fused, rows);                                                                             \
    }
#define PLAIN(rows) TILE_OF(plain, , 1, false, rows)
#define AVX2(rows) TILE_OF(avx2, MR_TARGET_AVX2, 4, true, rows)
#define PLAIN_ENTRY(rows) plain_##rows,
#define AVX2_ENTRY(rows) avx2_##rows,
#define ROWS_4(X) X(1) X(2) X(3) X(4)
#define ROWS_6(X) ROWS_4(X) X(5) X(6)
ROWS_4(PLAIN)
ROWS_6(AVX2)

#if MR_CPU_X86
MR_INLINE MR_TARGET_AVX512 void packed_body(const tile *tile, const int rows)
{
    const struct tile copy = *tile, *t = &copy; /* so that stores to C do not make the compiler read it again */
    packed_vector sums[PACKED_ROWS_MAX][PACKED_VECTORS];
    const packed_place place = {.a = t->a, .b = t->b, .b_next = LANES, .b_step = t->b_step};
    if (t->b_step == 0)
        packed_multiply(sums, place, (packed_next){}, t->length, rows, false, false, t->c, t->c_row);
    else
        packed_multiply(sums, place, (packed_next){}, t->length, rows, true, false, t->c, t->c_row);
    if (t->columns == PACKED_VECTORS * LANES) {
        packed_store(sums, rows, t->accumulate, t->c, t->c_row);
        return;
    }
    MR_UNROLL
    for (int r = 0; r < rows; r++) {
        double lanes[PACKED_VECTORS * LANES], *to = t->c + r * t->c_row;
        MR_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) *(packed_vector_at *)(lanes + v * LANES) = sums[r][v];
        for (int i = 0; i < t->columns; i++) to[i] = t->accumulate ? to[i] + lanes[i] : lanes[i];
    }
}

#define AVX512(rows)                                                                                                   \
    MR_TARGET_AVX512 static void avx512_##rows(const tile *t)                                                          \
    {                                                                                                                  \
        packed_body(t, rows);                                                                                          \
    }
#define AVX512_ENTRY(rows) avx512_##rows,
PACKED_ROWS(AVX512)
#endif

typedef struct tile_set {
    void (*const *functions)(const tile *t); /* [rows - 1] */
    int rows, vectors;
} tile_set;

static tile_set tiles(void)
{
    static void (*const plain[])(const tile *t) = {ROWS_4(PLAIN_ENTRY)};
    static void (*const avx2[])(const tile *t) = {ROWS_6(AVX2_ENTRY)};
    switch (mr_cpu()) {
#if MR_CPU_X86
        static void (*const avx512[])(const tile *t) = {PACKED_ROWS(AVX512_ENTRY)};
    case MR_CPU_AVX512:
        return (tile_set){avx512, 14, 2};
#endif
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

/* The same of up to 16 rows, on AVX-512. Up to 7 numbers after those of each k, and after the last one, are changed,
 * too: so higher rows come first, and a k before the next one. */
static void turn_wide(double *to, int64_t to_row, const double *from, int64_t from_row, int64_t length, int64_t count)
{
    constexpr int64_t AHEAD = 32; /* numbers of each row that are prefetched */
    int64_t k = 0;
    assert(count >= 1 && count <= 2 * LANES && count <= to_row);
    for (; k + LANES <= length; k += LANES) {
        for (int64_t r = 0; r < count; r++) __builtin_prefetch(from + r * from_row + k + AHEAD);
        for (int64_t r = (count - 1) / LANES * LANES; r >= 0; r -= LANES)
            mr_transpose_double_rows(to + k * to_row + r, to_row, from + r * from_row + k, from_row,
                                     (int)MR_MIN(LANES, count - r));
    }
    for (; k < length; k++)
        for (int64_t r = 0; r < count; r++) to[k * to_row + r] = from[r * from_row + k];
}

static void turn_rows(double *to, int64_t to_row, const double *from, int64_t from_row, int64_t length, int64_t count)
{
    if (mr_cpu() == MR_CPU_AVX512)
        turn_wide(to, to_row, from, from_row, length, count);
    else
        turn[mr_cpu()](to, to_row, from, from_row, length, count);
}

/* Packs numbers [k0, k0 + length) of rows [row, row + count) of A: to[k][row]. */
static void pack_rows(const mr_product *p, double *to, int64_t k0, int64_t length, int64_t row, int64_t count)
{
    const double *a = p->a;
    if (!p->a_transposed) {
        turn_rows(to, count, a + row * p->k + k0, p->k, length, count);
        return;
    }
    int64_t k = 0;
    if (count > LANES && p->m >= 2 * LANES) /* a constant size, which needs no call; the next k overwrites the rest */
        for (; k + 1 < length; k++) memcpy(to + k * count, a + (k0 + k) * p->m + row, 2 * LANES * sizeof *to);
    for (; k < length; k++) memcpy(to + k * count, a + (k0 + k) * p->m + row, (size_t)count * sizeof *to);
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
            turn_rows(to + j * length, width, b + (column + j) * p->k + k0, p->k, length, MR_MIN(width, count - j));
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

/* Doubles of the packed rows, and those that turn_wide changes after the last one. */
static int64_t rows_size(const mr_product *p)
{
    return TILES_MAX * ROWS_MAX * MR_MIN(p->k, INNER_BLOCK) + LANES;
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

/* Whether whole columns of B are read in place: it has few rows to repay the packing, or is in the second cache. */
static bool reads_in_place(const mr_product *p)
{
    constexpr int64_t ROWS = 2 * ROWS_MAX, SIZE = 65536;
    return mr_cpu() == MR_CPU_AVX512 && !p->b_transposed && (p->m <= ROWS || p->k * p->n <= SIZE);
}

typedef struct unit {
    int64_t row0, row1, column0, column1;
    double *rows, *panels; /* packed */
} unit;

/* Columns of B that are packed at a time. Those of a transposed B stay in the first cache if few rows follow. */
static int64_t columns_at_a_time(const job *job)
{
    const mr_product *p = job->product;
    const bool is_narrow = reads_in_place(p) || (p->b_transposed && p->m <= 2 * job->tiles.rows);
    return is_narrow ? job->tiles.vectors * LANES : PACKED_COLUMNS;
}

/* The packed tiles of a unit's rows, for columns [k0, k0 + length) of A. */
typedef struct tile_rows {
    int64_t begins[TILES_MAX + 1]; /* rows: where the tiles begin and end */
    int64_t count, k0, length;
    bool keeps_panels; /* otherwise all columns of B are packed in the same place */
} tile_rows;

static double *panel_at(const unit *u, const tile_rows *rows, int64_t column)
{
    return u->panels + (rows->keeps_panels ? (column - u->column0) * rows->length : 0);
}

/* Multiplies tile i with the columns of B from `column` on. */
static void multiply_tile(const job *job, const unit *u, const tile_rows *rows, int64_t i, int64_t column)
{
    const mr_product *p = job->product;
    const int64_t width = job->tiles.vectors * LANES, begin = rows->begins[i];
    const bool in_place = reads_in_place(p) && column + width <= u->column1;
    const tile t = {.a = u->rows + (begin - rows->begins[0]) * rows->length,
                    .b = in_place ? (const double *)p->b + rows->k0 * p->n + column : panel_at(u, rows, column),
                    .b_step = in_place ? p->n : 0,
                    .c = (double *)p->c + begin * p->n + column,
                    .c_row = p->n,
                    .length = rows->length,
                    .columns = (int)MR_MIN(width, u->column1 - column),
                    .accumulate = rows->k0 > 0};
    job->tiles.functions[rows->begins[i + 1] - begin - 1](&t);
}

/* Packs the columns of B from `column` on that are not read in place, if others were not packed with them. */
static void pack_panels(const job *job, const unit *u, const tile_rows *rows, int64_t column)
{
    const int64_t width = job->tiles.vectors * LANES, step = columns_at_a_time(job), at = column - u->column0;
    if (at % step != 0 || (reads_in_place(job->product) && column + width <= u->column1)) return;
    pack_columns(job->product, panel_at(u, rows, column), rows->k0, rows->length, column,
                 MR_MIN(step, u->column1 - column), width);
}

/* Adds the products of columns [k0, k0 + length) of A for tiles [first, first + count) of the `tiles` tiles of a unit's
 * rows. The first ones of a unit also pack B for all. The rows of products of few steps are written one after the
 * other: the result, which is then larger than A and B, may be in no cache. */
static void multiply_tiles(const job *job, const unit *u, int64_t k0, int64_t length, int64_t tiles, int64_t first,
                           int64_t count)
{
    constexpr int64_t SHORT = 64;
    const mr_product *p = job->product;
    const int64_t width = job->tiles.vectors * LANES, height = u->row1 - u->row0;
    const bool by_rows = p->k <= SHORT;
    tile_rows rows = {.count = count, .k0 = k0, .length = length};
    rows.keeps_panels = by_rows || columns_at_a_time(job) > width;
    assert(count >= 1 && count <= TILES_MAX && length >= 1 && length <= INNER_BLOCK);
    for (int64_t i = 0; i <= count; i++) rows.begins[i] = u->row0 + height * (first + i) / tiles;
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = rows.begins[i];
        pack_rows(p, u->rows + (begin - rows.begins[0]) * length, k0, length, begin, rows.begins[i + 1] - begin);
    }
    for (int64_t column = u->column0; column < u->column1; column += width) {
        if (first == 0) pack_panels(job, u, &rows, column);
        for (int64_t i = 0; !by_rows && i < count; i++) multiply_tile(job, u, &rows, i, column);
    }
    for (int64_t i = 0; by_rows && i < count; i++)
        for (int64_t column = u->column0; column < u->column1; column += width) multiply_tile(job, u, &rows, i, column);
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

/* Divides the result into units, one for each thread: of many columns, for which the rows are packed, and of many rows,
 * for which the columns are. */
static void split(const mr_product *p, int threads, job *job)
{
    const double pieces = (double)p->m * (double)p->n * (double)p->k / PIECE_WORK;
    const int64_t wanted = (int64_t)MR_MAX(1.0, MR_MIN((double)threads, pieces));
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
    job job = {.product = p, .slots = slots, .tiles = tiles()};
    split(p, mr_pool_thread_count(pool), &job);
    mr_pool_for(pool, job.row_blocks * job.column_blocks, 1, multiply_units, &job);
}
