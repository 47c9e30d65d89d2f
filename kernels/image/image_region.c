/* Converts an encoded image to one element of a batch: decodes, crops or pads, resizes, flips and normalizes it in one
 * pass over its rows.
 *
 * Decoded rows are stored in a ring buffer with as many rows as the resize has taps (two for bilinear). For each row of
 * the result, the rows in the ring are combined into one row of floats (vertical pass). The horizontal pass computes
 * the normalized result from it, column by column, and writes it to the target. There is neither a complete decoded
 * image nor a float image. A flip reverses the column table; normalization is one multiply-add in the horizontal pass.
 * Color changes are applied to the same row. Only a change of contrast, which needs the mean of the complete image,
 * stores all rows as floats and processes them in a second pass. */
#include "base/arguments.h"
#include "base/halves.h"
#include "base/options.h"
#include "kernels/image/image_colors.h"
#include "kernels/image/image_rows.h"
#include "kernels/image/jpeg.h"
#include "kernels/image/jpeg_scan.h"
#include "kernels/image/png.h"
#include "kernels/image/resize.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct mr_image_scratch {
    mr_jpeg_reader jpeg;
    mr_png_reader png;
    unsigned char *bytes; /* memory of all buffers in `region_walk` */
    size_t capacity_bytes;
    const _Atomic bool *stop; /* null: decoding is never cancelled */
};

void mr_image_scratch_stop(mr_image_scratch *scratch, const _Atomic bool *stop)
{
    scratch->stop = stop;
}

mr_status mr_image_scratch_new(mr_image_scratch **scratch, mr_error *error)
{
    MR_REFUSE_NULL(scratch, error);
    *scratch = calloc(1, sizeof(**scratch));
    return *scratch != nullptr ? MR_OK : mr_fail_memory(error, sizeof(**scratch));
}

void mr_image_scratch_free(mr_image_scratch *scratch)
{
    if (scratch == nullptr) return;
    mr_jpeg_reader_deinit(&scratch->jpeg);
    mr_png_reader_deinit(&scratch->png);
    free(scratch->bytes);
    free(scratch);
}

size_t mr_image_scratch_bytes(const mr_image_scratch *scratch)
{
    if (scratch == nullptr) return 0;
    size_t scan_bytes = scratch->jpeg.scan != nullptr ? mr_jpeg_scan_bytes() : 0;
    return sizeof *scratch + scratch->capacity_bytes + scan_bytes + scratch->jpeg.arena.allocated_bytes +
           scratch->png.arena.allocated_bytes;
}

typedef struct region_walk {
    const _Atomic bool *stop;
    const mr_rows_table *loops;
    const mr_image_options *options;
    mr_image_region region;
    int32_t channels, height, width; /* of the result */
    mr_color_table colors;
    mr_color_chain chain;
    mr_resize_axis rows, columns;
    float row_scale, row_offset, column_scale, column_offset; /* of the resize, in pixels of the region */
    bool lerp; /* each result is interpolated from two adjacent pixels (or is one pixel): weights sum to 1 */
    unsigned char *target;

    mr_jpeg_reader *jpeg; /* either this or png is used */
    mr_png_reader *png;
    unsigned char *image; /* a completely decoded interlaced PNG; otherwise null */
    size_t row_bytes;     /* of a decoded row */
    size_t left_bytes;    /* offset of the region in a decoded row */
    unsigned char *ring;  /* rows.taps decoded rows, ring_stride apart */
    size_t ring_stride;
    int32_t ring_end;    /* number of rows of the region that have been read */
    float *sum;          /* one row of the region after the vertical pass */
    float *wide;         /* one row of the result as floats, if it cannot be written to the target directly */
    float *float_result; /* the result as floats until its mean is known, if contrast changes; otherwise null */
    float *lerp_weights; /* the second weights of the columns */

    mr_image_region window; /* in image coordinates, may extend outside the image; region is its part inside */
    int32_t image_width, image_height;
    bool is_window, is_padded;
    bool has_mean;  /* the mean of the image is needed, for a change of contrast */
    int32_t *order; /* rows of the result in the order of their source rows, if reflection changes it; otherwise null */
} region_walk;

/* ---- Windows ---- */

/* The source pixel (0 … count - 1) shown at position `at`; -1 for none. */
static int32_t seen_at(int32_t at, int32_t count, mr_image_pad pad)
{
    if (at >= 0 && at < count) return at;
    if (pad == MR_IMAGE_PAD_ZERO) return -1;
    return at < 0 ? -at : 2 * (count - 1) - at;
}

/* The range [begin, begin + count) of source pixels that are visible in a window of target_count pixels at `first`. */
static void set_seen(int32_t first, int32_t target_count, int32_t source_count, mr_image_pad pad, int32_t *begin,
                     int32_t *count)
{
    int32_t low = INT32_MAX, high = -1;
    for (int32_t i = 0; i < target_count; i++) {
        int32_t at = seen_at(first + i, source_count, pad);
        if (at < 0) continue;
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    if (high < 0) low = high = 0; /* only padding: one pixel is decoded, to check that the image can be decoded */
    *begin = low;
    *count = high - low + 1;
}

static mr_status set_window(region_walk *walk, int32_t width, int32_t height, mr_error *error)
{
    const mr_image_options *options = walk->options;
    mr_image_region window = walk->region;
    if (window.width == 0 && window.height == 0) window = mr_image_choose(options, width, height, nullptr);
    int64_t right = (int64_t)window.x + window.width, bottom = (int64_t)window.y + window.height, reach = INT32_MAX / 4;
    if (options->crop == MR_CROP_RANDOM_WINDOW) reach = options->padding;
    int64_t mirrored = width < height ? width - 1 : height - 1;
    if (options->crop == MR_CROP_RANDOM_WINDOW && options->padding_mode == MR_IMAGE_PAD_REFLECT && reach > mirrored)
        return mr_fail(error, MR_INVALID_ARGUMENT, "an image of %d x %d cannot be padded with %d reflected pixels",
                       width, height, options->padding);
    if (window.width != options->width || window.height != options->height || window.x < -reach || window.y < -reach ||
        right > width + reach || bottom > height + reach)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the window of %d x %d pixels at (%d, %d) is not inside the image of %d x %d%s", window.width,
                       window.height, window.x, window.y, width, height, reach > 0 ? " and its padding" : "");
    if (options->padding_mode == MR_IMAGE_PAD_REFLECT &&
        (window.x <= -width || window.y <= -height || right >= 2 * (int64_t)width || bottom >= 2 * (int64_t)height))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "an image of %d x %d cannot be padded by reflection to %d x %d pixels", width, height,
                       window.width, window.height);
    walk->window = window;
    walk->is_window = true;
    walk->is_padded = window.x < 0 || window.y < 0 || right > width || bottom > height;
    mr_image_region *region = &walk->region;
    set_seen(window.x, window.width, width, options->padding_mode, &region->x, &region->width);
    set_seen(window.y, window.height, height, options->padding_mode, &region->y, &region->height);
    return MR_OK;
}

/* One tap for each target pixel. Padding is the pixel after the last one, which is black. */
static void fill_seen(mr_resize_axis *axis, int32_t first, int32_t begin, int32_t source_count, mr_image_pad pad)
{
    for (int32_t i = 0; i < axis->target_count; i++) {
        int32_t at = seen_at(first + i, source_count, pad);
        axis->first[i] = at < 0 ? axis->source_count : at - begin;
        axis->weights[i] = 1.0f;
    }
}

/* Sorts the rows of the result by their source rows (counting sort). */
static void fill_order(region_walk *walk)
{
    const mr_resize_axis *rows = &walk->rows;
    int32_t *begins = walk->order + rows->target_count;
    memset(begins, 0, ((size_t)rows->source_count + 1) * sizeof(*begins));
    for (int32_t y = 0; y < rows->target_count; y++) begins[rows->first[y]]++;
    for (int32_t row = 0, begin = 0; row <= rows->source_count; row++) {
        int32_t count = begins[row];
        begins[row] = begin;
        begin += count;
    }
    for (int32_t y = 0; y < rows->target_count; y++) walk->order[begins[rows->first[y]]++] = y;
}

/* ---- Decoding ---- */

static mr_status open_source(region_walk *walk, const void *bytes, size_t size_bytes, mr_image_scratch *scratch,
                             mr_error *error)
{
    const mr_image_options *options = walk->options;
    mr_image_info info = {0};
    MR_TRY(mr_image_probe(bytes, size_bytes, &info, error));
    mr_image_decode_options decode = {.size = sizeof decode,
                                      .channels = walk->channels,
                                      .dtype = MR_UINT8,
                                      .accurate_dct = options->accurate_dct,
                                      .try_recover_truncated = options->accept_truncated,
                                      .accept_damaged = options->accept_damaged,
                                      .pixels_max = options->pixels_max};
    int32_t width, height;
    if (info.format == MR_IMAGE_JPEG) {
        walk->jpeg = &scratch->jpeg;
        MR_TRY(mr_jpeg_reader_open(walk->jpeg, bytes, size_bytes, &decode, error));
        width = walk->jpeg->width;
        height = walk->jpeg->height;
    } else if (info.format == MR_IMAGE_PNG) {
        walk->png = &scratch->png;
        MR_TRY(mr_png_reader_open(walk->png, bytes, size_bytes, &decode, error));
        width = walk->png->width;
        height = walk->png->height;
    } else {
        return mr_fail(error, MR_UNIMPLEMENTED, "%s images are not supported; convert it to JPEG or PNG",
                       mr_image_format_name(info.format));
    }
    walk->image_height = height;
    walk->image_width = width;
    if (options->crop == MR_CROP_RANDOM_WINDOW || options->crop == MR_CROP_CENTER_WINDOW)
        return set_window(walk, width, height, error);
    mr_image_region *region = &walk->region;
    if (region->width == 0 && region->height == 0) {
        region->x = region->y = 0;
        region->width = width;
        region->height = height;
    }
    if (region->x < 0 || region->y < 0 || region->width < 1 || region->height < 1 ||
        region->width > width - region->x || region->height > height - region->y)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the region of %d x %d pixels at (%d, %d) is not inside the image of %d x %d", region->width,
                       region->height, region->x, region->y, width, height);
    return MR_OK;
}

/* A coordinate in the reduced image of the decoder is one of the full image divided by the ratio. The region's edges
 * may then be inside pixels: the region is extended to complete pixels, and the resize starts at the exact edge. */
static mr_status set_ratio(region_walk *walk, mr_error *error)
{
    const mr_image_options *options = walk->options;
    mr_image_region crop = walk->region, *region = &walk->region;
    int32_t ratio = 8;
    while (ratio > 1 && (crop.width / ratio < options->width || crop.height / ratio < options->height)) ratio /= 2;
    if (ratio == 1) return MR_OK;
    MR_TRY(mr_jpeg_reader_set_ratio(walk->jpeg, ratio, error));
    int32_t right = (crop.x + crop.width + ratio - 1) / ratio, bottom = (crop.y + crop.height + ratio - 1) / ratio;
    region->x = crop.x / ratio;
    region->y = crop.y / ratio;
    region->width = right - region->x;
    region->height = bottom - region->y;
    walk->column_scale = (float)crop.width / (float)(ratio * options->width);
    walk->row_scale = (float)crop.height / (float)(ratio * options->height);
    walk->column_offset = (float)(crop.x % ratio) / (float)ratio;
    walk->row_offset = (float)(crop.y % ratio) / (float)ratio;
    return MR_OK;
}

static mr_status start_source(region_walk *walk, mr_error *error)
{
    size_t channels = (size_t)walk->channels;
    if (walk->jpeg != nullptr) {
        MR_TRY(mr_jpeg_reader_start(walk->jpeg, &walk->region, error));
        walk->row_bytes = (size_t)walk->jpeg->row_width * channels;
        walk->left_bytes = (size_t)walk->jpeg->row_left * channels;
    } else {
        assert(walk->png != nullptr);
        walk->row_bytes = walk->png->row_bytes;
        walk->left_bytes = (size_t)walk->region.x * channels;
    }
    return MR_OK;
}

/* Allocates the next part of the scratch memory, or only adds its size if `base` is null. */
static void *carve(unsigned char *base, size_t *used_bytes, size_t size_bytes)
{
    void *part = base != nullptr ? base + *used_bytes : nullptr;
    *used_bytes += (size_bytes + 63) / 64 * 64;
    return part;
}

/* libjpeg-turbo writes rows that are aligned for its vectors with non-temporal stores, which bypass the caches. These
 * rows are read immediately, so they must not be aligned: alignment makes the complete pass 25 % slower. */
constexpr size_t ring_offset_bytes = 8;

/* Whether the target's elements are the floats of a row, in the same order. */
static bool is_in_place(const region_walk *walk)
{
    mr_dtype dtype = walk->options->dtype;
    bool is_planes = walk->options->layout == MR_LAYOUT_NCHW && walk->channels > 1;
    return (dtype == MR_FLOAT || dtype == MR_DTYPE_INVALID) && !is_planes;
}

static size_t lay_out(region_walk *walk, unsigned char *base)
{
    size_t used_bytes = 0, channels = (size_t)walk->channels;
    walk->ring_stride = (walk->row_bytes + channels + mr_rows_slack + 63) / 64 * 64;
    walk->ring = carve(base, &used_bytes, walk->ring_stride * (size_t)walk->rows.taps + ring_offset_bytes);
    if (walk->ring != nullptr) walk->ring += ring_offset_bytes;
    walk->sum = carve(base, &used_bytes, (((size_t)walk->region.width + 1) * channels + mr_rows_slack) * sizeof(float));
    walk->wide = carve(base, &used_bytes, (size_t)walk->width * channels * sizeof(float));
    if (walk->has_mean && !is_in_place(walk))
        walk->float_result =
            carve(base, &used_bytes, (size_t)walk->height * (size_t)walk->width * channels * sizeof(float));
    else if (walk->has_mean)
        walk->float_result = (float *)walk->target;
    walk->lerp_weights = carve(base, &used_bytes, (size_t)walk->width * sizeof(float));
    mr_resize_axis *axes[] = {&walk->rows, &walk->columns};
    for (int i = 0; i < 2; i++) {
        size_t count = (size_t)axes[i]->target_count;
        axes[i]->first = carve(base, &used_bytes, count * sizeof(int32_t));
        axes[i]->weights = carve(base, &used_bytes, count * (size_t)axes[i]->taps * sizeof(float));
    }
    if (walk->png != nullptr && walk->png->interlaced)
        walk->image = carve(base, &used_bytes, walk->row_bytes * (size_t)walk->png->height);
    if (walk->is_padded && walk->options->padding_mode == MR_IMAGE_PAD_REFLECT)
        walk->order =
            carve(base, &used_bytes, ((size_t)walk->height + (size_t)walk->region.height + 1) * sizeof(int32_t));
    return used_bytes;
}

static mr_status ensure_scratch(region_walk *walk, mr_image_scratch *scratch, mr_error *error)
{
    size_t size_bytes = lay_out(walk, nullptr);
    if (size_bytes > scratch->capacity_bytes) {
        size_t capacity_bytes = (size_bytes + size_bytes / 4 + 4095) / 4096 * 4096;
        unsigned char *bytes = aligned_alloc(64, capacity_bytes);
        if (bytes == nullptr) return mr_fail_memory(error, capacity_bytes);
        free(scratch->bytes);
        scratch->bytes = bytes;
        scratch->capacity_bytes = capacity_bytes;
    }
    (void)lay_out(walk, scratch->bytes);
    return MR_OK;
}

/* If two weights sum to 1, or one weight is 1, a table of the second weights is sufficient. */
static void prepare_columns(region_walk *walk)
{
    mr_resize_axis *columns = &walk->columns;
    int32_t count = columns->target_count;
    if (walk->region.flip)
        for (int32_t i = 0, j = count - 1; i < j; i++, j--) {
            int32_t first = columns->first[i];
            columns->first[i] = columns->first[j];
            columns->first[j] = first;
            for (int32_t k = 0; k < columns->taps; k++) {
                float *a = &columns->weights[(int64_t)i * columns->taps + k];
                float *b = &columns->weights[(int64_t)j * columns->taps + k], kept = *a;
                *a = *b;
                *b = kept;
            }
        }
    walk->lerp =
        walk->is_window || walk->options->method == MR_RESIZE_BILINEAR || walk->options->method == MR_RESIZE_NEAREST;
    if (!walk->lerp) return;
    for (int32_t i = 0; i < count; i++) walk->lerp_weights[i] = columns->taps == 2 ? columns->weights[2 * i + 1] : 0.0f;
}

static mr_status prepare(region_walk *walk, mr_image_scratch *scratch, mr_error *error)
{
    const mr_image_options *options = walk->options;
    walk->height = options->height > 0 ? options->height : walk->region.height;
    walk->width = options->width > 0 ? options->width : walk->region.width;
    walk->has_mean = mr_color_chain_fill(&walk->chain, options, &walk->region, nullptr);
    /* TensorFlow 2's area method does not use half-pixel centers. */
    mr_resize_options resize = {
        .size = sizeof resize, .method = options->method, .half_pixel_centers = options->method != MR_RESIZE_AREA};
    walk->row_scale = mr_resize_scale(&resize, walk->region.height, walk->height);
    walk->column_scale = mr_resize_scale(&resize, walk->region.width, walk->width);
    if (options->approximate_scale && !walk->is_window && options->height > 0 && walk->jpeg != nullptr)
        MR_TRY(set_ratio(walk, error));
    walk->rows = (mr_resize_axis){.source_count = walk->region.height, .target_count = walk->height};
    walk->columns = (mr_resize_axis){.source_count = walk->region.width, .target_count = walk->width};
    walk->rows.taps = mr_resize_taps(&resize, walk->rows.source_count, walk->rows.target_count);
    walk->columns.taps = mr_resize_taps(&resize, walk->columns.source_count, walk->columns.target_count);
    if (walk->is_window) walk->rows.taps = walk->columns.taps = 1;
    MR_TRY(start_source(walk, error));
    MR_TRY(ensure_scratch(walk, scratch, error));
    if (walk->is_window) {
        fill_seen(&walk->rows, walk->window.y, walk->region.y, walk->image_height, options->padding_mode);
        fill_seen(&walk->columns, walk->window.x, walk->region.x, walk->image_width, options->padding_mode);
    } else {
        mr_resize_axis_fill_part(&walk->rows, &resize, walk->row_scale, walk->row_offset);
        mr_resize_axis_fill_part(&walk->columns, &resize, walk->column_scale, walk->column_offset);
    }
    if (walk->order != nullptr) fill_order(walk);
    prepare_columns(walk);
    return MR_OK;
}

static unsigned char *ring_row(const region_walk *walk, int32_t row)
{
    return walk->ring + walk->ring_stride * (size_t)(row % walk->rows.taps);
}

/* Reads the next row of the source. */
static mr_status next_row(region_walk *walk, unsigned char *row, mr_error *error)
{
    if (walk->stop != nullptr && atomic_load_explicit(walk->stop, memory_order_relaxed))
        return mr_fail(error, MR_CANCELLED, "decoding of the image was cancelled");
    return walk->jpeg != nullptr ? mr_jpeg_reader_row(walk->jpeg, row, error)
                                 : mr_png_reader_row(walk->png, row, error);
}

/* Reads rows of the region until `end` of them have been read. */
static mr_status read_until(region_walk *walk, int32_t end, mr_error *error)
{
    for (; walk->ring_end < end; walk->ring_end++) {
        unsigned char *row = ring_row(walk, walk->ring_end);
        if (walk->image == nullptr)
            MR_TRY(next_row(walk, row, error));
        else
            memcpy(row, walk->image + (size_t)(walk->region.y + walk->ring_end) * walk->row_bytes, walk->row_bytes);
    }
    return MR_OK;
}

static void sum_rows(region_walk *walk, int32_t y)
{
    const mr_resize_axis *rows = &walk->rows;
    size_t count = (size_t)walk->region.width * (size_t)walk->channels;
    const float *weights = rows->weights + (int64_t)y * rows->taps;
    int32_t first = rows->first[y];
    if (first == rows->source_count) {
        memset(walk->sum, 0, count * sizeof(float));
        return;
    }
    const unsigned char *source = ring_row(walk, first) + walk->left_bytes;
    if (walk->lerp && rows->taps == 2) {
        walk->loops->blend(walk->sum, source, ring_row(walk, first + 1) + walk->left_bytes, weights[1], count);
    } else {
        walk->loops->weigh(walk->sum, source, weights[0], false, count);
        for (int32_t k = 1; k < rows->taps; k++)
            walk->loops->weigh(walk->sum, ring_row(walk, first + k) + walk->left_bytes, weights[k], true, count);
    }
}

static void sum_columns(const region_walk *walk, float *target)
{
    const mr_resize_axis *columns = &walk->columns;
    int32_t channels = walk->channels, taps = columns->taps;
    const float *scale = walk->chain.first.scale, *shift = walk->chain.first.shift;
    if (walk->lerp && channels == 3) {
        walk->loops->lerp3(target, walk->sum, columns->first, walk->lerp_weights, scale, shift, (size_t)walk->width);
        return;
    }
    if (walk->lerp) {
        walk->loops->lerp1(target, walk->sum, columns->first, walk->lerp_weights, scale[0], shift[0],
                           (size_t)walk->width);
        return;
    }
    for (int32_t i = 0; i < walk->width; i++, target += channels) {
        const float *source = walk->sum + (int64_t)columns->first[i] * channels;
        const float *weights = columns->weights + (int64_t)i * taps;
        for (int32_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < taps; k++) sum += weights[k] * source[k * channels + c];
            target[c] = sum * scale[c] + shift[c];
        }
    }
}

static void store(const region_walk *walk, const float *source, size_t at, size_t count)
{
    switch (walk->options->dtype) {
    case MR_UINT8:
        walk->loops->to_uint8(walk->target + at, source, count);
        break;
    case MR_HALF:
    case MR_BFLOAT16:
        mr_floats_to_halves((uint16_t *)walk->target + at, source, (int64_t)count, walk->options->dtype);
        break;
    default:
        if ((const float *)walk->target + at != source)
            memcpy((float *)walk->target + at, source, count * sizeof(float));
        break;
    }
}

/* The buffer in which row y of the result is computed, as floats. */
static float *row_of(const region_walk *walk, int32_t y)
{
    size_t at = (size_t)y * (size_t)walk->width * (size_t)walk->channels;
    if (walk->float_result != nullptr) return walk->float_result + at;
    return is_in_place(walk) ? (float *)walk->target + at : walk->wide;
}

static void put_row(region_walk *walk, const float *wide, int32_t y)
{
    size_t width = (size_t)walk->width, channels = (size_t)walk->channels, row = (size_t)y;
    if (walk->options->layout != MR_LAYOUT_NCHW || walk->channels == 1) {
        store(walk, wide, row * width * channels, width * channels);
        return;
    }
    /* Floats are written to their final position. Other types use the buffer of the vertical pass, which is free at
     * that point, except for the zeros after its last pixel. */
    bool is_float = walk->options->dtype == MR_FLOAT || walk->options->dtype == MR_DTYPE_INVALID;
    size_t piece = (size_t)walk->region.width;
    for (size_t begin = 0; begin < width; begin += piece) {
        size_t count = width - begin < piece ? width - begin : piece, at[3];
        float *planes[3];
        for (size_t c = 0; c < 3; c++) {
            at[c] = (c * (size_t)walk->height + row) * width + begin;
            planes[c] = is_float ? (float *)walk->target + at[c] : walk->sum + c * piece;
        }
        walk->colors.split(planes, wide + 3 * begin, (int64_t)count);
        for (size_t c = 0; c < 3; c++) store(walk, planes[c], at[c], count);
    }
}

static void finish_row(region_walk *walk, int32_t y, double sums[3])
{
    float *row = row_of(walk, y);
    sum_columns(walk, row);
    for (int32_t i = 0; i < walk->chain.count; i++) walk->colors.link(row, &walk->chain.links[i], walk->width);
    if (walk->has_mean)
        walk->colors.sum(sums, row, walk->channels, (int64_t)walk->width * walk->channels);
    else
        put_row(walk, row, y);
}

/* Applies the remaining color changes once the image's mean is known. */
static void finish_colors(region_walk *walk, const double sums[3])
{
    double mean[3], count = (double)walk->height * walk->width;
    for (int c = 0; c < 3; c++) mean[c] = sums[c] / count;
    (void)mr_color_chain_fill(&walk->chain, walk->options, &walk->region, mean);
    for (int32_t y = 0; y < walk->height; y++) {
        float *row = row_of(walk, y);
        walk->colors.affine(row, &walk->chain.first, walk->channels, (int64_t)walk->width * walk->channels);
        for (int32_t i = 0; i < walk->chain.count; i++) walk->colors.link(row, &walk->chain.links[i], walk->width);
        put_row(walk, row, y);
    }
}

static mr_status skip_png_rows(region_walk *walk, mr_error *error)
{
    if (walk->png->interlaced) return mr_png_reader_image(walk->png, walk->image, error);
    for (int32_t y = 0; y < walk->region.y; y++) MR_TRY(next_row(walk, walk->ring, error));
    return MR_OK;
}

/* True if the result consists of unchanged decoded rows. */
static bool is_plain(const region_walk *walk)
{
    const mr_image_options *options = walk->options;
    bool is_sized = walk->height == walk->region.height && walk->width == walk->region.width && walk->row_offset == 0 &&
                    walk->column_offset == 0 && walk->row_scale == 1 && walk->column_scale == 1;
    bool is_cut = walk->left_bytes > 0 || walk->row_bytes != (size_t)walk->width * (size_t)walk->channels;
    if (options->dtype != MR_UINT8 || !is_sized || is_cut || walk->is_padded || walk->region.flip ||
        walk->jpeg == nullptr)
        return false;
    if (options->layout == MR_LAYOUT_NCHW && walk->channels > 1) return false;
    if (walk->has_mean || walk->chain.count > 0) return false;
    for (int32_t c = 0; c < walk->channels; c++)
        if (walk->chain.first.scale[c] != 1.0f || walk->chain.first.shift[c] != 0.0f) return false;
    return true;
}

static mr_status walk_down(region_walk *walk, mr_error *error)
{
    if (is_plain(walk)) {
        for (int32_t y = 0; y < walk->height; y++)
            MR_TRY(next_row(walk, walk->target + (size_t)y * walk->row_bytes, error));
        return mr_jpeg_reader_finish(walk->jpeg, error);
    }
    if (walk->png != nullptr) MR_TRY(skip_png_rows(walk, error));
    /* Interpolation reads one pixel past the last one, with weight 0. */
    memset(walk->sum + (size_t)walk->region.width * (size_t)walk->channels, 0,
           ((size_t)walk->channels + mr_rows_slack) * sizeof(float));
    double sums[3] = {0};
    for (int32_t i = 0; i < walk->height; i++) {
        int32_t y = walk->order != nullptr ? walk->order[i] : i;
        if (walk->rows.first[y] < walk->region.height)
            MR_TRY(read_until(walk, walk->rows.first[y] + walk->rows.taps, error));
        sum_rows(walk, y);
        finish_row(walk, y, sums);
    }
    if (walk->has_mean) finish_colors(walk, sums);
    MR_TRY(read_until(walk, walk->region.height, error));
    if (walk->jpeg != nullptr) return mr_jpeg_reader_finish(walk->jpeg, error);
    assert(walk->png != nullptr);
    bool all = walk->region.y + walk->region.height == walk->png->height || walk->png->interlaced;
    return all ? mr_png_reader_finish(walk->png, error) : MR_OK;
}

mr_status mr_image_decode_region(const void *bytes, size_t size_bytes, const mr_image_options *given,
                                 mr_image_region region, void *target, mr_image_scratch *scratch, mr_error *error)
{
    MR_REFUSE_NULL(target, error);
    MR_REFUSE_NULL(scratch, error);
    mr_image_options options;
    MR_TRY(MR_OPTIONS_READ(mr_image_options, &options, given, error));
    MR_TRY(mr_image_check(&options, error));
    MR_TRY(mr_color_check_region(&options, &region, error));
    region_walk walk = {.loops = mr_rows(mr_cpu()),
                        .colors = mr_color_loops(mr_cpu()),
                        .options = &options,
                        .region = region,
                        .channels = options.channels == 0 ? 3 : options.channels,
                        .target = target,
                        .stop = scratch->stop};
    MR_TRY(open_source(&walk, bytes, size_bytes, scratch, error));
    MR_TRY(prepare(&walk, scratch, error));
    return walk_down(&walk, error);
}
