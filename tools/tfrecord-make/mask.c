/* Masks: see mask.h.
 *
 * The pixels of a polygon follow COCO's convention, so that masks are bit-identical to those of COCO's tools: corners
 * are rounded to a grid of fifths of a pixel, edges are drawn on this grid in whole steps, and a column of pixels
 * changes between outside and inside where an edge crosses the column's middle. Runs also go down the columns. So masks
 * are first computed column by column. */
#include "tfrecord-make/mask.h"

#include "common/arena.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static constexpr int64_t GRID = 5;
/* Maximum coordinate of a corner, far outside any image; maximum total edge length of an object, to bound the time. */
static constexpr double CORNER_MAX = 1e6;
static constexpr int64_t STEPS_MAX = 200'000'000;

/* An image stored by columns: pixel (x, y) is at x * height + y. */
typedef struct canvas {
    uint8_t *columns; /* owned */
    int64_t width, height;
} canvas;

/* ---- Polygons ---- */

typedef struct pen {
    canvas *canvas;
    int64_t u, v; /* current grid point */
    bool is_down;
    int64_t steps; /* remaining */
} pen;

/* Moves to the adjacent grid point. If that crosses the middle of a column, all pixels below it in the column change
 * sides. A change past the last pixel of a column marks the first of the next; the next crossing there reverts it. */
static void move_pen(pen *pen, int64_t u, int64_t v)
{
    canvas *canvas = pen->canvas;
    if (pen->is_down && u != pen->u) {
        int64_t left = u < pen->u ? u : pen->u, top = v < pen->v ? v : pen->v;
        int64_t x = (left - GRID / 2) / GRID;
        if (left >= GRID / 2 && (left - GRID / 2) % GRID == 0 && x < canvas->width) {
            double y = ceil(((double)top + 0.5) / (double)GRID - 0.5);
            int64_t row = y<0 ? 0 : y>(double) canvas->height ? canvas->height : (int64_t)y;
            int64_t at = x * canvas->height + row;
            assert(at >= 0 && at <= canvas->width * canvas->height);
            canvas->columns[at] ^= 1;
        }
    }
    *pen = (struct pen){canvas, u, v, true, pen->steps};
}

/* Draws the edge between two grid points. The line is the same in both directions. */
static bool draw_edge(pen *pen, int64_t u, int64_t v, int64_t u_end, int64_t v_end)
{
    int64_t width = llabs(u_end - u), height = llabs(v_end - v), count = width > height ? width : height;
    bool is_flat = width >= height, is_back = is_flat ? u > u_end : v > v_end;
    int64_t u_low = is_back ? u_end : u, v_low = is_back ? v_end : v;
    int64_t u_high = is_back ? u : u_end, v_high = is_back ? v : v_end;
    double slope = count == 0 ? 0 : (double)(is_flat ? v_high - v_low : u_high - u_low) / (double)count;
    if ((pen->steps -= count + 1) < 0) return false;
    for (int64_t i = 0; i <= count; i++) {
        int64_t t = is_back ? count - i : i;
        if (is_flat)
            move_pen(pen, u_low + t, (int64_t)((double)v_low + slope * (double)t + 0.5));
        else
            move_pen(pen, (int64_t)((double)u_low + slope * (double)t + 0.5), v_low + t);
    }
    return true;
}

static mr_status fail_polygon(mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS,
                   "\"segmentation\" has a polygon that is not a list of at least three pairs of x, y");
}

static bool corner_of(const json_t *polygon, size_t i, int64_t *corner)
{
    const json_t *value = json_array_get(polygon, i);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(fabs(number) <= CORNER_MAX)) return false;
    *corner = (int64_t)((double)GRID * number + 0.5);
    return true;
}

/* Marks where columns change sides, then fills: the result in columns is 0 and 1. */
static mr_status draw_polygon(const json_t *polygon, canvas *canvas, int64_t *steps, mr_error *error)
{
    size_t size = json_array_size(polygon);
    int64_t u, v, u_first, v_first, u_next, v_next, pixels = canvas->width * canvas->height;
    if (size < 6 || size % 2 != 0 || !corner_of(polygon, 0, &u) || !corner_of(polygon, 1, &v))
        return fail_polygon(error);
    pen pen = {.canvas = canvas, .steps = *steps};
    u_first = u;
    v_first = v;
    for (size_t i = 2; i <= size; i += 2) {
        bool is_last = i == size;
        u_next = u_first;
        v_next = v_first;
        if (!is_last && (!corner_of(polygon, i, &u_next) || !corner_of(polygon, i + 1, &v_next)))
            return fail_polygon(error);
        if (!draw_edge(&pen, u, v, u_next, v_next))
            return mr_fail(error, MR_DATA_LOSS, "\"segmentation\" has edges that are too long");
        u = u_next;
        v = v_next;
    }
    *steps = pen.steps;
    uint8_t inside = 0;
    for (int64_t i = 0; i < pixels; i++) canvas->columns[i] = inside ^= canvas->columns[i];
    return MR_OK;
}

/* Draws the union of polygons. */
static mr_status draw_polygons(const json_t *polygons, canvas *canvas, mr_error *error)
{
    size_t count = json_array_size(polygons), pixels = (size_t)(canvas->width * canvas->height);
    int64_t steps = STEPS_MAX;
    if (count == 0) return mr_fail(error, MR_DATA_LOSS, "has no \"segmentation\", which --masks requires");
    if (count == 1) return draw_polygon(json_array_get(polygons, 0), canvas, &steps, error);
    uint8_t *all = calloc(pixels + 1, 1);
    if (!all) return fail_memory(error, pixels);
    mr_status status = MR_OK;
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        memset(canvas->columns, 0, pixels + 1);
        /* Each polygon costs time proportional to the pixels of the image. */
        steps -= (int64_t)pixels / 8;
        status = steps < 0 ? mr_fail(error, MR_DATA_LOSS, "\"segmentation\" has too many polygons")
                           : draw_polygon(json_array_get(polygons, i), canvas, &steps, error);
        for (size_t j = 0; j < pixels && status == MR_OK; j++) all[j] |= canvas->columns[j];
    }
    memcpy(canvas->columns, all, pixels);
    free(all);
    return status;
}

/* ---- Runs ---- */

/* Runs of pixels, alternately outside and inside. */
typedef struct runs {
    canvas *canvas;
    int64_t at;
    uint8_t value;
} runs;

static bool add_run(runs *runs, int64_t count)
{
    int64_t rest = runs->canvas->width * runs->canvas->height - runs->at;
    if (count < 0 || count > rest) return false;
    memset(runs->canvas->columns + runs->at, runs->value, (size_t)count);
    runs->at += count;
    runs->value ^= 1;
    return true;
}

/* Parses COCO's text of runs: characters from '0' on contain five bits of a number, lowest first, and a sixth bit
 * that is set if more follow; the highest of the last five bits is the sign. From the fourth number on, numbers are
 * differences from the number two before. */
static bool add_text(runs *runs, const char *text, size_t size_bytes)
{
    int64_t before[2] = {0, 0};
    for (size_t i = 0, count = 0; i < size_bytes; count++) {
        uint64_t number = 0;
        unsigned shift = 0, bits;
        do {
            if (i == size_bytes || text[i] < '0' || text[i] > '0' + 63 || shift > 30) return false;
            bits = (unsigned)(text[i++] - '0');
            number |= (uint64_t)(bits & 31) << shift;
            shift += 5;
        } while (bits & 32);
        int64_t value = (int64_t)number - (bits & 16 ? (int64_t)1 << shift : 0);
        if (count > 2) value += before[count % 2];
        before[count % 2] = value;
        if (!add_run(runs, value)) return false;
    }
    return true;
}

static mr_status draw_runs(const json_t *segmentation, canvas *canvas, mr_error *error)
{
    const json_t *size = json_object_get(segmentation, "size"), *counts = json_object_get(segmentation, "counts");
    const json_t *height = json_array_get(size, 0), *width = json_array_get(size, 1);
    if (!json_is_integer(height) || !json_is_integer(width) || json_array_size(size) != 2)
        return mr_fail(error, MR_DATA_LOSS, "\"segmentation\" has no \"size\" with height and width");
    if (json_integer_value(height) != canvas->height || json_integer_value(width) != canvas->width)
        return mr_fail(error, MR_DATA_LOSS,
                       "\"segmentation\" has %" JSON_INTEGER_FORMAT " x %" JSON_INTEGER_FORMAT
                       " pixels, but the image has %" PRId64 " x %" PRId64,
                       json_integer_value(width), json_integer_value(height), canvas->width, canvas->height);
    runs runs = {.canvas = canvas};
    bool is_good = json_is_array(counts) || json_is_string(counts);
    for (size_t i = 0; i < json_array_size(counts) && is_good; i++) {
        const json_t *count = json_array_get(counts, i);
        is_good = json_is_integer(count) && add_run(&runs, json_integer_value(count));
    }
    if (json_is_string(counts)) is_good = add_text(&runs, json_string_value(counts), json_string_length(counts));
    if (is_good && runs.at == canvas->width * canvas->height) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "the \"counts\" of \"segmentation\" do not add up to its size");
}

/* ---- Masks ---- */

mr_status mask_fill(const json_t *segmentation, int64_t width, int64_t height, uint8_t *mask, mr_error *error)
{
    assert(width > 0 && height > 0);
    size_t pixels = (size_t)width * (size_t)height;
    canvas canvas = {calloc(pixels + 1, 1), width, height};
    if (!canvas.columns) return fail_memory(error, pixels);
    mr_status status = json_is_object(segmentation) ? draw_runs(segmentation, &canvas, error)
                                                    : draw_polygons(segmentation, &canvas, error);
    for (int64_t y = 0; y < height && status == MR_OK; y++)
        for (int64_t x = 0; x < width; x++) mask[y * width + x] = canvas.columns[x * height + y];
    free(canvas.columns);
    return status;
}

mr_status mask_encode(uint8_t *mask, const placing *placing, const image_facts *facts, mr_tensor *png, mr_error *error)
{
    int64_t width = facts->info.width, height = facts->info.height;
    int64_t from_width = (int64_t)placing->width, from_height = (int64_t)placing->height;
    mr_tensor image = {0};
    MR_TRY(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(height, width, 1), error));
    uint8_t *pixels = mr_tensor_uint8s(&image);
    if (placing->orientation == 0 && from_width == width && from_height == height) {
        memcpy(pixels, mask, (size_t)(width * height));
    } else {
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                double u = ((double)x + 0.5) / (double)width, v = ((double)y + 0.5) / (double)height;
                placing_undo(placing, &u, &v);
                int64_t column = (int64_t)(u * placing->width), row = (int64_t)(v * placing->height);
                assert(column >= 0 && column < from_width && row >= 0 && row < from_height);
                pixels[y * width + x] = mask[row * from_width + column];
            }
    }
    mr_status status = mr_image_encode_png(&image, png, error);
    mr_tensor_deinit(&image);
    return status;
}
