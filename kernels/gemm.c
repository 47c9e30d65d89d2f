/* The loops around the tiles of gemm_tile.c. The result is split into units, blocks of rows and columns. A thread that
 * computes a unit packs a block of B, INNER_BLOCK rows of at most column_block() columns, unless A has so few rows that
 * B is read in place, and multiplies all rows of its unit with it, in one of two orders:
 *
 * - Products of few columns read A in place. A tile's rows stay in the first cache, the block of B in the second.
 * - In others the rows are packed, packed_tiles() at a time, which stay in the second cache. The columns of a tile are
 *   multiplied with all of them, then the next ones. */
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include <assert.h>
#include <string.h>

constexpr int64_t INNER_BLOCK = MR_GEMM_STEPS_MAX;
constexpr int64_t FAR = 4096;             /* rows at this distance and more are slow to read, each on another page */
constexpr int64_t IN_PLACE_COLUMNS = 288; /* of a unit on AVX-512 whose rows are read in place */
constexpr int64_t IN_PLACE_ROWS = 28;     /* of A for which B is read in place: two tiles on AVX-512 */
constexpr int64_t IN_PLACE_ROWS_LOW = 24; /* the same of other tiles */
constexpr int64_t SHORT = 128;            /* steps of a product whose rows are packed for fewer columns */
constexpr int64_t LOW = 96;               /* steps of a product whose rows and 48 columns of B fit in a first cache */
constexpr int64_t PACKED_TILES = 26;      /* on AVX-512; 16 low ones on AVX2, for second caches of 512 KiB */
constexpr int64_t PACKED_LINES = 8;       /* of a transposed A, packed at a time */
constexpr int64_t PACKED_WIDTH = 32;      /* columns of a tile that packs B */
constexpr int64_t PACKED_COLUMNS = 64;    /* of B, packed at a time */
constexpr int64_t PIECE_WORK = 1 << 20;   /* multiplications that are worth another thread: about 10 us */
constexpr int64_t UNIT_WORK = 1 << 22;
constexpr int64_t EVEN_TILES = 8; /* of a block of rows that need not consist of whole ones */

static int64_t ceiling(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

/* The distances of rows, as they are stored. */
static int64_t a_row(const mr_gemm *g)
{
    return g->a_row > 0 ? g->a_row : g->a_transposed ? g->m : g->k;
}

static int64_t b_row(const mr_gemm *g)
{
    return g->b_row > 0 ? g->b_row : g->b_transposed ? g->k : g->n;
}

static int64_t c_row(const mr_gemm *g)
{
    return g->c_row > 0 ? g->c_row : g->n;
}

void mr_gemm_plain(const mr_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (double)g->a[g->a_transposed ? k * a_row(g) + i : i * a_row(g) + k] *
                       (double)g->b[g->b_transposed ? j * b_row(g) + k : k * b_row(g) + j];
            float *c = &g->c[i * c_row(g) + j];
            *c = (g->accumulate ? *c : 0) + (float)sum;
            if (g->bias) *c += g->bias[j];
        }
}

/* Whether the rows of A are far apart. Those at a distance of a multiple of 4 KiB share few sets of the first cache,
 * where they drive each other out; those of a transposed A also need as many entries of the page tables. */
static bool has_far_rows(const mr_gemm *g)
{
    const int64_t stride = a_row(g);
    return stride % 1024 == 0 || (g->a_transposed && stride >= FAR);
}

/* Whether the result is in no cache and few steps are computed for each of its numbers. Whole rows of it are then
 * written faster than a part of many rows. */
static bool is_writing(const mr_gemm *g)
{
    constexpr double LARGE = 1 << 21;
    return g->k < 128 && (double)g->m * (double)g->n > LARGE;
}

/* Whether a row-major B is used in place: if A has too few rows to repay the packing. Columns that do not fill a vector
 * are packed. */
static bool reads_in_place(const mr_gemm *g)
{
    return !g->b_transposed && g->m <= (mr_cpu() == MR_CPU_AVX512 && !g->pairs ? IN_PLACE_ROWS : IN_PLACE_ROWS_LOW);
}

/* Whether the rows of A are packed: if there are enough columns to repay it. On AVX2, whose tiles have few rows, those
 * of an A that is not transposed must be long. */
static bool packs_rows(const mr_gemm *g)
{
    switch (mr_cpu()) {
    case MR_CPU_AVX512:
        if (g->pairs && (g->m < 128 || mr_tile_has_amx())) return false;
        if (reads_in_place(g)) return g->n > IN_PLACE_COLUMNS && (g->k > LOW || g->m > mr_tile_rows_max(3));
        if (g->m <= IN_PLACE_ROWS || is_writing(g)) return false;
        if (g->pairs) return g->n > IN_PLACE_COLUMNS;
        if (g->m >= 128 && has_far_rows(g)) return g->n >= (g->a_transposed ? 64 : 128);
        return g->n >= (g->k <= SHORT ? 128 : 160); /* short tiles gain more by the shorter end of a packed one */
    case MR_CPU_AVX2:
        return g->m > IN_PLACE_ROWS_LOW && (g->a_transposed ? g->n >= 96 : g->n >= 256 && g->k > INNER_BLOCK);
    default:
        return false;
    }
}

/* Vectors of the tiles of packed rows. */
static int packed_vectors(void)
{
    return mr_cpu() == MR_CPU_AVX512 ? 2 : 1;
}

/* Tiles whose rows are packed at a time, at most. */
static int64_t packed_tiles(void)
{
    return mr_cpu() == MR_CPU_AVX512 ? PACKED_TILES : 16;
}

/* Columns of a unit. Without packed rows, its block of B takes half of a second cache: 1 MiB, or 512 KiB of older
 * processors. */
static int64_t column_block(const mr_gemm *g)
{
    const bool has_avx512 = mr_cpu() == MR_CPU_AVX512;
    return packs_rows(g) ? (has_avx512 ? 2048 : 512) : has_avx512 ? IN_PLACE_COLUMNS : 128;
}

/* Columns of B that are packed at a time. With packed rows they are packed again for the next packed_tiles(),
 * unless reading B in another order is slow. */
static int64_t panel_columns(const mr_gemm *g)
{
    const bool is_packed_again = g->m <= packed_tiles() * mr_tile_rows_max(packed_vectors()) ||
                                 (packed_vectors() > 1 && !g->b_transposed && g->n < FAR);
    return packs_rows(g) && is_packed_again ? PACKED_COLUMNS : column_block(g);
}

/* The blocks of the inner dimension are of about the same length. */
static int64_t inner_block(const mr_gemm *g)
{
    return ceiling(g->k, ceiling(g->k, INNER_BLOCK));
}

/* Whether the rows of A and 48 columns of B fit in a first cache. */
static bool is_low(const mr_gemm *g)
{
    return reads_in_place(g) && !packs_rows(g) && g->k <= LOW;
}

/* The vectors of the widest tiles. Few high tiles are better than low ones where the first tile, which packs B, is a
 * large part, and for a transposed A, of which each step reads a cache line for few numbers. */
static int vectors_max(const mr_gemm *g, int64_t columns)
{
    const int max = packs_rows(g) ? packed_vectors() : mr_tile_vectors_max(g->pairs);
    if (max < 3) return mr_tile_vectors(columns, max);
    const bool is_high =
        g->a_transposed || (g->m <= 192 && ceiling(g->m, mr_tile_rows_max(2)) < ceiling(g->m, mr_tile_rows_max(3)));
    return mr_tile_vectors(columns, is_high ? 2 : 3);
}

/* Floats of scratch memory for the rows of A: also those that mr_rows_pack changes after the last one. */
static int64_t rows_size(const mr_gemm *g)
{
    if (!packs_rows(g)) return 0;
    const int64_t rows = MR_MIN(g->m, packed_tiles() * mr_tile_rows_max(packed_vectors()));
    return rows * MR_MIN(g->k, INNER_BLOCK) + 16;
}

/* And for columns of B. */
static int64_t panels_size(const mr_gemm *g)
{
    if (reads_in_place(g) && g->n % 16 == 0) return 0;
    return mr_panels_size(MR_MIN(g->k, INNER_BLOCK), reads_in_place(g) ? 1 : MR_MIN(g->n, panel_columns(g)));
}

int64_t mr_gemm_scratch(const mr_gemm *g)
{
    if (mr_gemm_is_gemv(g)) return 0;
    return panels_size(g) + rows_size(g);
}

typedef struct gemm_job {
    const mr_gemm *gemm;
    mr_slots *slots;
    int64_t rows_step, columns_step; /* blocks begin at multiples of them, and are of about the same size */
    int64_t row_blocks, column_blocks;
} gemm_job;

typedef struct gemm_unit {
    const mr_gemm *gemm;
    int64_t row0, row1, column0, column1;
    float *panels; /* null, or the packed block of B */
    float *rows;   /* null, or the packed rows of A */
} gemm_unit;

/* Where tile i of the unit's rows begins: they are distributed evenly, so that the last tile is not small. */
static int64_t tile_row(const gemm_unit *u, int64_t i, int64_t tiles)
{
    return u->row0 + (u->row1 - u->row0) * i / tiles;
}

/* The rows of tile i of `tiles`, from column k0 of A. */
static void set_rows(const gemm_unit *u, mr_tile *tile, int rows_max, int64_t k0, int64_t i, int64_t tiles)
{
    const mr_gemm *g = u->gemm;
    const int64_t from = tile_row(u, i, tiles);
    tile->rows = (int)(tile_row(u, i + 1, tiles) - from);
    tile->a = g->a_transposed ? g->a + k0 * a_row(g) + from : g->a + from * a_row(g) + k0;
    tile->a_row = g->a_transposed ? 1 : a_row(g);
    tile->a_step = g->a_transposed ? a_row(g) : 1;
    assert(tile->rows >= 1 && tile->rows <= rows_max && tile->length >= 1);
}

/* Prefetches the rows of tile i of `tiles`, which are next, while columns of this tile are multiplied. Parts of long
 * rows are left to the processor, which finds them itself. */
static void prefetch_rows(const gemm_unit *u, mr_tile *tile, int64_t k0, int64_t i, int64_t tiles)
{
    const mr_gemm *g = u->gemm;
    if (i >= tiles) {
        i -= tiles;
        k0 += tile->length;
    }
    if (k0 >= g->k || i >= tiles) return;
    if (g->a_transposed) { /* the last row: the line of the first one is also the previous tile's */
        tile->ahead = g->a + k0 * a_row(g) + tile_row(u, i + 1, tiles) - 1;
        tile->ahead_step = a_row(g);
    } else if (tile->length == a_row(g)) {
        tile->ahead = g->a + tile_row(u, i, tiles) * a_row(g);
        tile->ahead_step = 16;
    }
}

/* A result in no cache, of which a unit has whole rows: while its other tiles are multiplied, the rows of the next ones
 * are prefetched, from `place` on. */
static void prefetch_result(const gemm_unit *u, mr_tile *tile, int64_t i, int64_t tiles, int64_t *place)
{
    const mr_gemm *g = u->gemm;
    if (!is_writing(g) || u->column1 - u->column0 < c_row(g) || i + 1 >= tiles) return;
    tile->ahead = g->c + tile_row(u, i + 1, tiles) * c_row(g) + *place;
    tile->ahead_step = 16;
    *place += 16 * tile->length;
}

/* Packs rows [k0, k0 + length) of columns [column, column + count) of B. */
static void pack_columns(const mr_gemm *g, float *panels, int64_t k0, int64_t length, int64_t column, int64_t count)
{
    if (g->b_transposed)
        mr_panels_pack(panels, g->b + column * b_row(g) + k0, length, count, 1, b_row(g));
    else
        mr_panels_pack(panels, g->b + k0 * b_row(g) + column, length, count, b_row(g), 1);
}

/* Whether the columns of a tile are those of B in place: they fill its vectors. */
static bool reads_columns(const mr_gemm *g, const mr_tile *tile)
{
    return !g->b_transposed && tile->columns == tile->vectors * 16;
}

/* Columns of B from a panel, or in place, from row k0 and `column`, and stored in the panel, if there is one. */
static void set_panel(const mr_gemm *g, mr_tile *tile, float *panel, int64_t k0, int64_t column, bool is_in_place)
{
    assert(panel || is_in_place);
    tile->b = is_in_place ? g->b + k0 * b_row(g) + column : panel;
    tile->b_step = is_in_place ? b_row(g) : 16;
    tile->b_next = is_in_place ? 16 : 16 * tile->length;
    tile->pack = is_in_place ? panel : nullptr;
    tile->pack_next = 16 * tile->length;
}

/* Sets the vectors and columns of a tile at `column`. Columns that do not fill a vector are a tile of their own if the
 * others are read in place. */
static void set_width(const gemm_unit *u, mr_tile *tile, int64_t column, int widest)
{
    const int64_t left = u->column1 - column;
    tile->vectors = mr_tile_vectors(reads_in_place(u->gemm) && left > 16 ? left / 16 * 16 : left, widest);
    tile->columns = (int)MR_MIN(16 * tile->vectors, left);
}

/* Columns [column, column + tile->columns) of B. The first tile of rows reads a row-major B in place and packs it for
 * the next ones, if there are enough; columns that do not fill a vector, and a transposed B, are packed before. */
static void set_columns(const gemm_unit *u, mr_tile *tile, int64_t k0, int64_t column, bool is_first)
{
    const mr_gemm *g = u->gemm;
    const bool is_whole = reads_columns(g, tile);
    if (is_whole && reads_in_place(g)) {
        set_panel(g, tile, nullptr, k0, column, true);
        return;
    }
    float *panel = u->panels + (reads_in_place(g) ? 0 : (column - u->column0) * tile->length);
    assert(u->panels);
    if (is_first && !is_whole) pack_columns(g, panel, k0, tile->length, column, tile->columns);
    set_panel(g, tile, panel, k0, column, is_first && is_whole);
}

static void multiply_block(const gemm_unit *u, int64_t k0, int64_t length)
{
    const mr_gemm *g = u->gemm;
    const int widest = vectors_max(g, u->column1 - u->column0), rows_max = mr_tile_rows_max(widest);
    const int64_t tiles = ceiling(u->row1 - u->row0, rows_max);
    mr_tile tile = {
        .segments = 1, .length = length, .c_row = c_row(g), .accumulate = k0 > 0 || g->accumulate, .pairs = g->pairs};
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t from = tile_row(u, i, tiles);
        int64_t place = 0;
        set_rows(u, &tile, rows_max, k0, i, tiles);
        for (int64_t column = u->column0; column < u->column1; column += tile.vectors * 16) {
            set_width(u, &tile, column, widest);
            tile.c = g->c + from * c_row(g) + column;
            tile.bias = g->bias && k0 + length == g->k ? g->bias + column : nullptr;
            tile.ahead = nullptr;
            set_columns(u, &tile, k0, column, i == 0);
            if (column == u->column0)
                prefetch_rows(u, &tile, k0, i + 1, tiles);
            else
                prefetch_result(u, &tile, i, tiles, &place);
            mr_tile_run(&tile);
        }
    }
}

/* Few short rows: they and some columns of B, which is used in place, are in the first cache together. While a tile is
 * multiplied, a part of the columns that are next is prefetched. */
static void multiply_low(const gemm_unit *u)
{
    const mr_gemm *g = u->gemm;
    const int widest = vectors_max(g, u->column1 - u->column0), rows_max = mr_tile_rows_max(widest);
    const int64_t tiles = ceiling(u->row1 - u->row0, rows_max);
    mr_tile tile = {.segments = 1, .length = g->k, .c_row = c_row(g), .accumulate = g->accumulate, .pairs = g->pairs};
    for (int64_t column = u->column0; column < u->column1; column += tile.vectors * 16) {
        set_width(u, &tile, column, widest);
        tile.bias = g->bias ? g->bias + column : nullptr;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t next = MR_MIN(column + tile.columns + 16 * i, g->n - 1);
            tile.c = g->c + tile_row(u, i, tiles) * c_row(g) + column;
            tile.ahead = g->b + next;
            tile.ahead_step = b_row(g);
            set_rows(u, &tile, rows_max, 0, i, tiles);
            set_columns(u, &tile, 0, column, i == 0);
            mr_tile_run(&tile);
        }
    }
}

/* Rows that are packed together, for a block of the inner dimension. */
typedef struct packed_rows {
    int64_t begins[PACKED_TILES + 1]; /* where the tiles begin, and the last one ends */
    int64_t count, k0, length;
} packed_rows;

static float *packed_tile(const gemm_unit *u, const packed_rows *p, int64_t i)
{
    assert((p->begins[i + 1] - p->begins[0]) * p->length <= rows_size(u->gemm));
    return u->rows + (p->begins[i] - p->begins[0]) * p->length;
}

/* Packs tile i of an A that is not transposed. */
static void pack_tile(const gemm_unit *u, const packed_rows *p, int64_t i)
{
    const mr_gemm *g = u->gemm;
    const int height = (int)(p->begins[i + 1] - p->begins[i]);
    mr_rows_pack(packed_tile(u, p, i), g->a + p->begins[i] * a_row(g) + p->k0, height, p->length, a_row(g), 1);
}

/* Packs all tiles of a transposed A: those of a few lines before the next lines, since a tile is narrower than a cache
 * line. */
static void pack_transposed(const gemm_unit *u, const packed_rows *p)
{
    const mr_gemm *g = u->gemm;
    for (int64_t k = 0; k < p->length; k += PACKED_LINES)
        for (int64_t i = 0; i < p->count; i++) {
            const int height = (int)(p->begins[i + 1] - p->begins[i]);
            mr_rows_pack(packed_tile(u, p, i) + height * k, g->a + (p->k0 + k) * a_row(g) + p->begins[i], height,
                         MR_MIN(PACKED_LINES, p->length - k), 1, a_row(g));
        }
}

/* Rows of an operand that are needed after the last tile of a group: each tile prefetches `each` of them. */
typedef struct later_rows {
    const float *from;
    int64_t count, length, stride, each;
} later_rows;

/* What is packed after the tiles of `p` were multiplied with the columns that end at `end`: after the last columns the
 * rows of `after`, if there are any, after others the next columns of B, if they are not packed. */
static later_rows find_later(const gemm_unit *u, const packed_rows *p, const packed_rows *after, int64_t end,
                             int64_t packed)
{
    const mr_gemm *g = u->gemm;
    later_rows later = {};
    if (p->length < LOW) return later;
    if (end == u->column1 && after->count > 0) {
        const int64_t row = after->begins[0];
        if (g->a_transposed)
            later = (later_rows){g->a + after->k0 * a_row(g) + row, after->length, after->begins[after->count] - row,
                                 a_row(g)};
        else
            later = (later_rows){g->a + row * a_row(g) + after->k0, after->begins[1] - row, after->length, a_row(g)};
    } else if (end == packed && packed < u->column1 && g->b_transposed) {
        later = (later_rows){g->b + packed * b_row(g) + p->k0, MR_MIN(PACKED_COLUMNS, u->column1 - packed), p->length,
                             b_row(g)};
    } else if (end == packed && packed < u->column1) {
        later = (later_rows){g->b + p->k0 * b_row(g) + packed, p->length, MR_MIN(PACKED_WIDTH, u->column1 - packed),
                             b_row(g)};
    }
    later.each = ceiling(later.count, p->count);
    return later;
}

/* What is prefetched while tile i is multiplied: in the first columns the next tile, which is packed after this one, in
 * others a part of what is needed later. */
static void set_next(const gemm_unit *u, const packed_rows *p, const later_rows *later, mr_tile *tile, int64_t i,
                     bool is_packing)
{
    const mr_gemm *g = u->gemm;
    if (later->count > 0) {
        const int64_t begin = MR_MIN(later->each * i, later->count);
        tile->next = later->from + begin * later->stride;
        tile->next_count = MR_MIN(later->each, later->count - begin);
        tile->next_length = later->length;
        tile->next_row = later->stride;
    } else if (is_packing && i + 1 < p->count && p->length >= LOW) {
        const int64_t row = p->begins[i + 1];
        tile->next = g->a + row * a_row(g) + p->k0;
        tile->next_count = p->begins[i + 2] - row;
        tile->next_length = p->length;
        tile->next_row = a_row(g);
    } else {
        tile->next_count = 0;
    }
}

/* Packs rows and multiplies them with all columns of the unit, which the first rows also pack for the others, or all
 * for themselves, unless they are read in place: PACKED_COLUMNS at a time, or those of a wide tile while it is
 * multiplied.
 * after  the rows that are packed next; none if their count is 0 */
static void multiply_packed(const gemm_unit *u, const packed_rows *p, const packed_rows *after)
{
    const mr_gemm *g = u->gemm;
    const int64_t in_panels = panel_columns(g), length = p->length;
    const bool in_place = reads_in_place(g);
    mr_tile tile = {.a_row = 1,
                    .segments = 1,
                    .length = length,
                    .c_row = c_row(g),
                    .accumulate = p->k0 > 0 || g->accumulate,
                    .pairs = g->pairs};
    assert(p->count >= 1 && p->count <= packed_tiles() && u->rows);
    if (g->a_transposed) pack_transposed(u, p);
    /* Columns before `packed` are in panels. */
    int64_t packed = p->begins[0] == u->row0 || in_panels == PACKED_COLUMNS ? u->column0 : u->column1;
    for (int64_t column = u->column0; column < u->column1; column += 16 * tile.vectors) {
        set_width(u, &tile, column, packed_vectors());
        tile.bias = g->bias && p->k0 + length == g->k ? g->bias + column : nullptr;
        float *panel = in_place ? nullptr : u->panels + (column - u->column0) % in_panels * length;
        const bool is_packed_first = packed == column && packed_vectors() > 1 && reads_columns(g, &tile);
        if (in_place || is_packed_first) {
            packed += tile.columns;
        } else if (packed == column) {
            packed = MR_MIN(u->column1, column + PACKED_COLUMNS);
            pack_columns(g, panel, p->k0, length, column, packed - column);
        }
        const bool is_packing = column == u->column0 && !g->a_transposed;
        later_rows later = {};
        if (!is_packing || column + tile.columns == u->column1)
            later = find_later(u, p, after, column + tile.columns, packed);
        for (int64_t i = 0; i < p->count; i++) {
            if (is_packing) pack_tile(u, p, i);
            tile.a = packed_tile(u, p, i);
            tile.rows = (int)(p->begins[i + 1] - p->begins[i]);
            tile.a_step = tile.rows;
            tile.c = g->c + p->begins[i] * c_row(g) + column;
            if (in_place)
                set_columns(u, &tile, p->k0, column, i == 0);
            else
                set_panel(g, &tile, panel, p->k0, column, is_packed_first && i == 0);
            set_next(u, p, &later, &tile, i, is_packing);
            mr_tile_run(&tile);
        }
    }
}

/* Group `group` of the unit's packed rows, counted over all blocks of the inner dimension; none after the last one. The
 * groups are of about the same size: each may pack B again. */
static packed_rows find_rows(const gemm_unit *u, int64_t group)
{
    const mr_gemm *g = u->gemm;
    const int64_t step = inner_block(g), height = u->row1 - u->row0;
    const int64_t tiles = ceiling(height, mr_tile_rows_max(packed_vectors())), groups = ceiling(tiles, packed_tiles());
    const int64_t first = tiles * (group % groups) / groups, end = tiles * (group % groups + 1) / groups;
    packed_rows p = {.k0 = group / groups * step};
    if (p.k0 >= g->k) return p;
    p.length = MR_MIN(step, g->k - p.k0);
    p.count = end - first;
    for (int64_t i = 0; i <= p.count; i++) p.begins[i] = u->row0 + height * (first + i) / tiles;
    return p;
}

static void gemm_unit_run(const gemm_unit *u)
{
    const mr_gemm *g = u->gemm;
    const int64_t step = inner_block(g);
    assert(step >= 1 && step <= INNER_BLOCK && u->row1 > u->row0);
    assert(u->column1 > u->column0 && u->column1 - u->column0 <= column_block(g));
    if (packs_rows(g)) {
        packed_rows next = find_rows(u, 0);
        for (int64_t group = 1; next.count > 0; group++) {
            const packed_rows now = next;
            next = find_rows(u, group);
            multiply_packed(u, &now, &next);
        }
    } else if (is_low(g)) {
        multiply_low(u);
    } else {
        for (int64_t k0 = 0; k0 < g->k; k0 += step) multiply_block(u, k0, MR_MIN(step, g->k - k0));
    }
}

/* Where one of `blocks` blocks of whole steps begins in [0, size). */
static int64_t block_begin(int64_t size, int64_t step, int64_t blocks, int64_t index)
{
    return MR_MIN(size, ceiling(size, step) * index / blocks * step);
}

static void gemm_units(void *context, int64_t begin, int64_t end)
{
    const gemm_job *job = context;
    const mr_gemm *g = job->gemm;
    int slot = -1;
    float *floats = job->slots ? mr_slot_acquire(job->slots, &slot) : nullptr;
    gemm_unit u = {.gemm = g};
    if (rows_size(g) > 0) {
        u.rows = floats;
        floats += rows_size(g);
    }
    if (panels_size(g) > 0) u.panels = floats;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / job->column_blocks, column = unit % job->column_blocks;
        u.row0 = block_begin(g->m, job->rows_step, job->row_blocks, row);
        u.row1 = block_begin(g->m, job->rows_step, job->row_blocks, row + 1);
        u.column0 = block_begin(g->n, job->columns_step, job->column_blocks, column);
        u.column1 = block_begin(g->n, job->columns_step, job->column_blocks, column + 1);
        gemm_unit_run(&u);
    }
    if (slot >= 0) mr_slot_release(job->slots, slot);
}

/* Divides the result into units: several for each thread, so that one that is interrupted does not delay the others
 * much, but not much smaller than UNIT_WORK. Units of the same columns pack B again, and those of the same rows read A
 * again, so each is as large as the number of threads allows. If A is packed, too, they are fewer. */
static void split(const mr_gemm *g, int threads, gemm_job *job)
{
    static const struct smallest {
        int64_t columns, tiles;
    } smallest[] = {{256, 24}, {256, 12}, {128, 12}, {64, 12}, {64, 4}};
    const int widest = vectors_max(g, g->n);
    const int64_t rows_max = mr_tile_rows_max(widest), tall = mr_tile_rows_max(MR_MIN(2, widest));
    const int64_t each = packs_rows(g) ? 2 : 8;
    const double work = (double)g->m * (double)g->n * (double)g->k, pieces = work / (double)PIECE_WORK;
    const int64_t least = threads == 1 || pieces < 2 ? 1 : (int64_t)MR_MIN(2.0 * threads, pieces);
    const int64_t wanted =
        threads == 1 ? 1 : MR_MAX(least, (int64_t)MR_MIN((double)(each * threads), work / (double)UNIT_WORK));
    const int64_t enough = MR_MIN(4 * threads, wanted);
    const struct smallest *s = smallest;
    for (; s < smallest + 4; s++)
        if (ceiling(g->n, MR_MIN(s->columns, column_block(g))) * ceiling(g->m, s->tiles * tall) >= enough) break;
    const int64_t columns = MR_MIN(column_block(g), MR_MAX(s->columns, ceiling(ceiling(g->n, wanted), 32) * 32));
    job->columns_step = widest == 3 && columns > 128 ? 48 : 32;
    job->column_blocks = ceiling(g->n, columns);
    const int64_t rows = MR_MAX(s->tiles * tall, ceiling(g->m, ceiling(wanted, job->column_blocks)));
    job->row_blocks = ceiling(g->m, rows);
    /* Rows of B in place are read again at less cost than A is packed. */
    if (packs_rows(g) && packed_vectors() > 1 && !g->b_transposed) {
        job->column_blocks = ceiling(g->n, column_block(g));
        job->row_blocks = MR_MAX(1, MR_MIN(ceiling(wanted, job->column_blocks), g->m / (12 * tall)));
        if (job->row_blocks > threads) job->row_blocks = job->row_blocks / threads * threads;
        const int64_t narrow = MR_MIN(ceiling(wanted, job->row_blocks), g->n / s->columns);
        if (job->row_blocks % threads != 0) job->column_blocks = MR_MAX(job->column_blocks, narrow);
    }
    /* Both operands are copied, A for each block of columns and a transposed B for each block of rows: one of them is
     * whole. */
    if (packs_rows(g) && packed_vectors() > 1 && g->b_transposed && threads > 1) {
        const bool by_rows = g->m >= g->n;
        if (by_rows && g->m >= threads * 12 * tall) {
            job->row_blocks = threads;
            job->column_blocks = ceiling(g->n, column_block(g));
        } else if (!by_rows && g->n >= threads * 128 && wanted >= threads) {
            job->row_blocks = 1;
            job->column_blocks = ceiling(ceiling(g->n, column_block(g)), threads) * threads;
        }
    }
    /* Few units are as many for each thread. */
    if (job->row_blocks == 1 && job->column_blocks > threads && job->column_blocks < 4 * threads)
        job->column_blocks = ceiling(job->column_blocks, threads) * threads;
    if (job->column_blocks % threads != 0 && job->row_blocks > threads && job->row_blocks < 4 * threads)
        job->row_blocks = job->row_blocks / threads * threads;
    /* Blocks of many tiles are as high as each other, rather than of whole tiles: no thread has one tile more. */
    job->rows_step = g->m / job->row_blocks >= EVEN_TILES * rows_max ? 1 : rows_max;
}

void mr_gemm_run(const mr_gemm *g, mr_slots *slots, mr_pool *pool)
{
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        for (int64_t i = 0; i < g->m; i++) {
            float *c = g->c + i * c_row(g);
            if (!g->accumulate) memset(c, 0, (size_t)g->n * sizeof *c);
            for (int64_t j = 0; g->bias && j < g->n; j++) c[j] += g->bias[j];
        }
        return;
    }
    if (mr_gemm_is_gemv(g)) {
        mr_gemv_run(g, pool);
        return;
    }
    assert(!g->pairs || mr_cpu_has_bf16());
    assert(a_row(g) >= (g->a_transposed ? g->m : g->k) && b_row(g) >= (g->b_transposed ? g->k : g->n));
    assert(c_row(g) >= g->n);
    assert((slots && slots->size >= mr_gemm_scratch(g)) || mr_gemm_scratch(g) == 0);
    gemm_job job = {.gemm = g, .slots = mr_gemm_scratch(g) > 0 ? slots : nullptr};
    split(g, mr_pool_thread_count(pool), &job);
    const int64_t units = job.row_blocks * job.column_blocks;
    mr_pool_for(pool, units, ceiling(PIECE_WORK, ceiling(g->m * g->n, units) * g->k), gemm_units, &job);
}

mr_status mr_scratch_new(mr_kernel_call *call, int64_t count, mr_buffer **buffer, float **floats, mr_error *error)
{
    static float none[1]; /* for no floats: an address to which 0 can be added */
    *buffer = nullptr;
    *floats = none;
    if (count <= 0) return MR_OK;
    size_t size_bytes;
    if (__builtin_mul_overflow((size_t)count, sizeof(float), &size_bytes))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the scratch memory is too large");
    MR_TRY(call->device->functions->allocate(call->device, size_bytes, buffer, error));
    *floats = mr_buffer_data(*buffer);
    return MR_OK;
}
