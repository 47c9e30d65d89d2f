/* From an encoded picture to a row of a batch: decode, crop, resize, flip and normalise in one walk down the picture.
 *
 * Decoded rows go round a ring that holds as many of them as the resize has taps (two for bilinear). For each row of the
 * result the ring's rows become one row of floats (vertical pass), and that row, column by column, the normalised result
 * (horizontal pass), written to its place in the target. There is no decoded image and no float image in between. A flip
 * reverses the table of columns; normalising is one multiply-add with the horizontal pass. */
#include "base/random.h"
#include "kernels/image_rows.h"
#include "kernels/jpeg.h"
#include "kernels/png.h"
#include "kernels/resize.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mr_image_scratch {
    mr_jpeg_reader jpeg;
    mr_png_reader png;
    unsigned char *bytes; /* everything below `region_walk` points to */
    size_t capacity_bytes;
};

mr_status mr_image_scratch_new(mr_image_scratch **scratch, mr_error *error)
{
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

/* ---- Choosing ---- */

static float or_else(float value, float otherwise)
{
    return value > 0 ? value : otherwise;
}

static int32_t between(double value, int32_t low, int32_t high)
{
    return value <= low ? low : value >= high ? high : (int32_t)value;
}

/* The largest rectangle of the given aspect (width / height), times fraction. */
static void largest(mr_image_region *region, double aspect, double fraction, int32_t width, int32_t height)
{
    double w = width, h = height;
    if (w > h * aspect)
        w = h * aspect;
    else
        h = w / aspect;
    region->width = between(rint(w * fraction), 1, width);
    region->height = between(rint(h * fraction), 1, height);
}

static void centre(mr_image_region *region, int32_t width, int32_t height)
{
    region->x = (width - region->width) / 2;
    region->y = (height - region->height) / 2;
}

static void place(mr_image_region *region, int32_t width, int32_t height, mr_random *random)
{
    region->y = (int32_t)mr_random_below(random, (uint64_t)(height - region->height) + 1);
    region->x = (int32_t)mr_random_below(random, (uint64_t)(width - region->width) + 1);
}

static void random_resized(mr_image_region *region, const mr_image_options *options, int32_t width, int32_t height,
                           mr_random *random)
{
    double area_min = or_else(options->area_min, 0.08f), area_max = or_else(options->area_max, 1);
    double aspect_min = or_else(options->aspect_min, 3.0f / 4), aspect_max = or_else(options->aspect_max, 4.0f / 3);
    for (int attempt = 0; attempt < 10; attempt++) {
        double area = (double)width * height * mr_random_range(random, area_min, area_max);
        double aspect = exp(mr_random_range(random, log(aspect_min), log(aspect_max)));
        double w = rint(sqrt(area * aspect)), h = rint(sqrt(area / aspect));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        region->width = (int32_t)w;
        region->height = (int32_t)h;
        place(region, width, height, random);
        return;
    }
    double aspect = (double)width / height;
    largest(region, aspect < aspect_min ? aspect_min : aspect > aspect_max ? aspect_max : aspect, 1, width, height);
    centre(region, width, height);
}

mr_image_region mr_image_choose(const mr_image_options *options, int32_t width, int32_t height, mr_random *random)
{
    mr_image_region region = {.width = width, .height = height};
    if (width < 1 || height < 1) return region;
    double aspect =
        options->height > 0 && options->width > 0 ? (double)options->width / options->height : (double)width / height;
    double fraction = or_else(options->fraction, 1);
    switch (random != nullptr || options->crop == MR_CROP_NONE ? options->crop : MR_CROP_CENTER) {
    case MR_CROP_NONE:
        break;
    case MR_CROP_CENTER:
        largest(&region, aspect, fraction, width, height);
        centre(&region, width, height);
        break;
    case MR_CROP_RANDOM:
        largest(&region, aspect, fraction, width, height);
        place(&region, width, height, random);
        break;
    case MR_CROP_RANDOM_RESIZED:
        random_resized(&region, options, width, height, random);
        break;
    }
    if (options->random_flip && random != nullptr) region.flip = (mr_random_next32(random) & 1) != 0;
    return region;
}

/* ---- Decoding ---- */

typedef struct region_walk {
    const mr_rows_table *loops;
    const mr_image_options *options;
    mr_image_region region;
    int32_t channels, height, width; /* of the result */
    float scale[3], shift[3];
    mr_resize_axis rows, columns;
    float row_scale, row_offset, column_scale, column_offset; /* of the resize, in pixels of the region */
    bool lerp; /* each result lies between two neighbours (or is one pixel): weights sum to 1 */
    unsigned char *target;

    mr_jpeg_reader *jpeg; /* one of the two */
    mr_png_reader *png;
    unsigned char *picture; /* an interlaced PNG, decoded whole; else null */
    size_t row_bytes;       /* of a decoded row */
    size_t left_bytes;      /* where the region begins in it */
    unsigned char *ring;    /* rows.taps decoded rows, ring_stride apart */
    size_t ring_stride;
    int32_t ring_end;    /* rows of the region that were read */
    float *sum;          /* one row of the region after the vertical pass */
    float *wide;         /* one row of the result as floats, when it cannot go to the target at once */
    float *lerp_weights; /* columns' second weights */
} region_walk;

static mr_status check_options(const mr_image_options *options, mr_error *error)
{
    if (options->channels != 0 && options->channels != 1 && options->channels != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "pictures are made 1 or 3 channels, not %d", options->channels);
    if (options->height < 0 || options->width < 0 || (options->height == 0) != (options->width == 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "pictures cannot be made %d x %d pixels", options->width,
                       options->height);
    if (options->method < MR_RESIZE_BILINEAR || options->method > MR_RESIZE_BICUBIC)
        return mr_fail(error, MR_INVALID_ARGUMENT, "there is no resize method %d", (int)options->method);
    switch (options->dtype) {
    case MR_DTYPE_INVALID:
    case MR_FLOAT:
    case MR_UINT8:
    case MR_HALF:
    case MR_BFLOAT16:
        return MR_OK;
    default:
        return mr_fail(error, MR_INVALID_ARGUMENT, "pictures are made float, uint8, half or bfloat16, not %s",
                       mr_dtype_name(options->dtype));
    }
}

static mr_status open_source(region_walk *walk, const void *bytes, size_t size_bytes, mr_image_scratch *scratch,
                             mr_error *error)
{
    const mr_image_options *options = walk->options;
    mr_image_info info = {0};
    MR_TRY(mr_image_probe(bytes, size_bytes, &info, error));
    mr_image_decode_options decode = {.channels = walk->channels,
                                      .dtype = MR_UINT8,
                                      .accurate_dct = options->accurate_dct,
                                      .accept_truncated = options->accept_truncated,
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
        return mr_fail(error, MR_UNIMPLEMENTED, "%s pictures are not decoded; convert it to JPEG or PNG",
                       mr_image_format_name(info.format));
    }
    mr_image_region *region = &walk->region;
    if (region->width == 0 && region->height == 0) *region = (mr_image_region){0, 0, width, height, region->flip};
    if (region->x < 0 || region->y < 0 || region->width < 1 || region->height < 1 ||
        region->width > width - region->x || region->height > height - region->y)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the region of %d x %d pixels at (%d, %d) is not inside the picture of %d x %d", region->width,
                       region->height, region->x, region->y, width, height);
    return MR_OK;
}

/* A coordinate of the decoder's smaller picture is one of the whole picture over the ratio. The region's edges then lie
 * between pixels: it grows to whole ones, and the resize begins where the edge is. */
static mr_status set_ratio(region_walk *walk, mr_error *error)
{
    const mr_image_options *options = walk->options;
    mr_image_region whole = walk->region, *region = &walk->region;
    int32_t ratio = 8;
    while (ratio > 1 && (whole.width / ratio < options->width || whole.height / ratio < options->height)) ratio /= 2;
    if (ratio == 1) return MR_OK;
    MR_TRY(mr_jpeg_reader_set_ratio(walk->jpeg, ratio, error));
    int32_t right = (whole.x + whole.width + ratio - 1) / ratio, bottom = (whole.y + whole.height + ratio - 1) / ratio;
    *region = (mr_image_region){.x = whole.x / ratio, .y = whole.y / ratio, .flip = whole.flip};
    region->width = right - region->x;
    region->height = bottom - region->y;
    walk->column_scale = (float)whole.width / (float)(ratio * options->width);
    walk->row_scale = (float)whole.height / (float)(ratio * options->height);
    walk->column_offset = (float)(whole.x % ratio) / (float)ratio;
    walk->row_offset = (float)(whole.y % ratio) / (float)ratio;
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

/* Cuts the next part of the scratch, or only counts when there is none yet. */
static void *carve(unsigned char *base, size_t *used_bytes, size_t size_bytes)
{
    void *part = base != nullptr ? base + *used_bytes : nullptr;
    *used_bytes += (size_bytes + 63) / 64 * 64;
    return part;
}

/* libjpeg-turbo writes rows that are aligned for its vectors past the caches. These rows are read at once, so they must
 * not be aligned: that made the whole walk a quarter slower. */
constexpr size_t ring_offset_bytes = 8;

static size_t lay_out(region_walk *walk, unsigned char *base)
{
    size_t used_bytes = 0, channels = (size_t)walk->channels;
    walk->ring_stride = (walk->row_bytes + channels + mr_rows_slack + 63) / 64 * 64;
    walk->ring = carve(base, &used_bytes, walk->ring_stride * (size_t)walk->rows.taps + ring_offset_bytes);
    if (walk->ring != nullptr) walk->ring += ring_offset_bytes;
    walk->sum = carve(base, &used_bytes, (((size_t)walk->region.width + 1) * channels + mr_rows_slack) * sizeof(float));
    walk->wide = carve(base, &used_bytes, (size_t)walk->width * channels * sizeof(float));
    walk->lerp_weights = carve(base, &used_bytes, (size_t)walk->width * sizeof(float));
    mr_resize_axis *axes[] = {&walk->rows, &walk->columns};
    for (int i = 0; i < 2; i++) {
        size_t count = (size_t)axes[i]->target_count;
        axes[i]->first = carve(base, &used_bytes, count * sizeof(int32_t));
        axes[i]->weights = carve(base, &used_bytes, count * (size_t)axes[i]->taps * sizeof(float));
    }
    if (walk->png != nullptr && walk->png->interlaced)
        walk->picture = carve(base, &used_bytes, walk->row_bytes * (size_t)walk->png->height);
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

/* Where two weights sum to 1, or one is 1, a table of second weights says all. */
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
    walk->lerp = walk->options->method == MR_RESIZE_BILINEAR || walk->options->method == MR_RESIZE_NEAREST;
    if (!walk->lerp) return;
    for (int32_t i = 0; i < count; i++) walk->lerp_weights[i] = columns->taps == 2 ? columns->weights[2 * i + 1] : 0.0f;
}

static mr_status prepare(region_walk *walk, mr_image_scratch *scratch, mr_error *error)
{
    const mr_image_options *options = walk->options;
    walk->height = options->height > 0 ? options->height : walk->region.height;
    walk->width = options->width > 0 ? options->width : walk->region.width;
    for (int c = 0; c < 3; c++) {
        walk->scale[c] = 1.0f / (options->deviation[c] != 0.0f ? options->deviation[c] : 1.0f);
        walk->shift[c] = -options->mean[c] * walk->scale[c];
    }
    /* TensorFlow 2's area method has no half-pixel centres. */
    mr_resize_options resize = {.method = options->method, .half_pixel_centers = options->method != MR_RESIZE_AREA};
    walk->row_scale = mr_resize_scale(&resize, walk->region.height, walk->height);
    walk->column_scale = mr_resize_scale(&resize, walk->region.width, walk->width);
    if (options->approximate_scale && options->height > 0 && walk->jpeg != nullptr) MR_TRY(set_ratio(walk, error));
    walk->rows = (mr_resize_axis){.source_count = walk->region.height, .target_count = walk->height};
    walk->columns = (mr_resize_axis){.source_count = walk->region.width, .target_count = walk->width};
    walk->rows.taps = mr_resize_taps(&resize, walk->rows.source_count, walk->rows.target_count);
    walk->columns.taps = mr_resize_taps(&resize, walk->columns.source_count, walk->columns.target_count);
    MR_TRY(start_source(walk, error));
    MR_TRY(ensure_scratch(walk, scratch, error));
    mr_resize_axis_fill_part(&walk->rows, &resize, walk->row_scale, walk->row_offset);
    mr_resize_axis_fill_part(&walk->columns, &resize, walk->column_scale, walk->column_offset);
    prepare_columns(walk);
    return MR_OK;
}

static unsigned char *ring_row(const region_walk *walk, int32_t row)
{
    return walk->ring + walk->ring_stride * (size_t)(row % walk->rows.taps);
}

/* Reads rows of the region until `end` of them have been read. */
static mr_status read_until(region_walk *walk, int32_t end, mr_error *error)
{
    for (; walk->ring_end < end; walk->ring_end++) {
        unsigned char *row = ring_row(walk, walk->ring_end);
        if (walk->jpeg != nullptr)
            MR_TRY(mr_jpeg_reader_row(walk->jpeg, row, error));
        else if (walk->picture == nullptr)
            MR_TRY(mr_png_reader_row(walk->png, row, error));
        else
            memcpy(row, walk->picture + (size_t)(walk->region.y + walk->ring_end) * walk->row_bytes, walk->row_bytes);
    }
    return MR_OK;
}

static void sum_rows(region_walk *walk, int32_t y)
{
    const mr_resize_axis *rows = &walk->rows;
    size_t count = (size_t)walk->region.width * (size_t)walk->channels;
    const float *weights = rows->weights + (int64_t)y * rows->taps;
    int32_t first = rows->first[y];
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
    if (walk->lerp && channels == 3) {
        walk->loops->lerp3(target, walk->sum, columns->first, walk->lerp_weights, walk->scale, walk->shift,
                           (size_t)walk->width);
        return;
    }
    if (walk->lerp) {
        walk->loops->lerp1(target, walk->sum, columns->first, walk->lerp_weights, walk->scale[0], walk->shift[0],
                           (size_t)walk->width);
        return;
    }
    for (int32_t i = 0; i < walk->width; i++, target += channels) {
        const float *source = walk->sum + (int64_t)columns->first[i] * channels;
        const float *weights = columns->weights + (int64_t)i * taps;
        for (int32_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < taps; k++) sum += weights[k] * source[k * channels + c];
            target[c] = sum * walk->scale[c] + walk->shift[c];
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
        walk->loops->to_half((uint16_t *)walk->target + at, source, count);
        break;
    case MR_BFLOAT16:
        walk->loops->to_bfloat16((uint16_t *)walk->target + at, source, count);
        break;
    default:
        if ((const float *)walk->target + at != source)
            memcpy((float *)walk->target + at, source, count * sizeof(float));
        break;
    }
}

static void finish_row(region_walk *walk, int32_t y)
{
    bool floats = walk->options->dtype == MR_FLOAT || walk->options->dtype == MR_DTYPE_INVALID;
    bool planes = walk->options->layout == MR_LAYOUT_NCHW && walk->channels > 1;
    size_t width = (size_t)walk->width, channels = (size_t)walk->channels, row = (size_t)y;
    float *wide = floats && !planes ? (float *)walk->target + row * width * channels : walk->wide;
    sum_columns(walk, wide);
    if (!planes) {
        store(walk, wide, row * width * channels, width * channels);
        return;
    }
    /* The row of sums has been used and is free to hold one channel at a time. */
    float *plane = walk->sum;
    size_t piece = (size_t)walk->region.width + 1;
    for (size_t c = 0; c < channels; c++)
        for (size_t begin = 0; begin < width; begin += piece) {
            size_t count = width - begin < piece ? width - begin : piece;
            for (size_t i = 0; i < count; i++) plane[i] = wide[(begin + i) * channels + c];
            store(walk, plane, (c * (size_t)walk->height + row) * width + begin, count);
        }
}

static mr_status skip_png_rows(region_walk *walk, mr_error *error)
{
    if (walk->png->interlaced) return mr_png_reader_image(walk->png, walk->picture, error);
    for (int32_t y = 0; y < walk->region.y; y++) MR_TRY(mr_png_reader_row(walk->png, walk->ring, error));
    return MR_OK;
}

/* True when the result is the decoded rows as they are. */
static bool is_plain(const region_walk *walk)
{
    const mr_image_options *options = walk->options;
    bool is_sized = walk->height == walk->region.height && walk->width == walk->region.width && walk->row_offset == 0 &&
                    walk->column_offset == 0 && walk->row_scale == 1 && walk->column_scale == 1;
    bool is_cut = walk->left_bytes > 0 || walk->row_bytes != (size_t)walk->width * (size_t)walk->channels;
    if (options->dtype != MR_UINT8 || !is_sized || is_cut || walk->region.flip || walk->jpeg == nullptr) return false;
    if (options->layout == MR_LAYOUT_NCHW && walk->channels > 1) return false;
    for (int32_t c = 0; c < walk->channels; c++)
        if (walk->scale[c] != 1.0f || walk->shift[c] != 0.0f) return false;
    return true;
}

static mr_status walk_down(region_walk *walk, mr_error *error)
{
    if (is_plain(walk)) {
        for (int32_t y = 0; y < walk->height; y++)
            MR_TRY(mr_jpeg_reader_row(walk->jpeg, walk->target + (size_t)y * walk->row_bytes, error));
        return mr_jpeg_reader_finish(walk->jpeg, error);
    }
    if (walk->png != nullptr) MR_TRY(skip_png_rows(walk, error));
    /* Interpolating reads one pixel past the last, with weight 0. */
    memset(walk->sum + (size_t)walk->region.width * (size_t)walk->channels, 0,
           ((size_t)walk->channels + mr_rows_slack) * sizeof(float));
    for (int32_t y = 0; y < walk->height; y++) {
        MR_TRY(read_until(walk, walk->rows.first[y] + walk->rows.taps, error));
        sum_rows(walk, y);
        finish_row(walk, y);
    }
    MR_TRY(read_until(walk, walk->region.height, error));
    if (walk->jpeg != nullptr) return mr_jpeg_reader_finish(walk->jpeg, error);
    assert(walk->png != nullptr);
    bool all = walk->region.y + walk->region.height == walk->png->height || walk->png->interlaced;
    return all ? mr_png_reader_finish(walk->png, error) : MR_OK;
}

mr_status mr_image_decode_region(const void *bytes, size_t size_bytes, const mr_image_options *options,
                                 mr_image_region region, void *target, mr_image_scratch *scratch, mr_error *error)
{
    MR_TRY(check_options(options, error));
    region_walk walk = {.loops = mr_rows(mr_cpu()),
                        .options = options,
                        .region = region,
                        .channels = options->channels == 0 ? 3 : options->channels,
                        .target = target};
    MR_TRY(open_source(&walk, bytes, size_bytes, scratch, error));
    MR_TRY(prepare(&walk, scratch, error));
    return walk_down(&walk, error);
}
