/* Color changes, computed in vectors of 16 pixels separated into channels. Products are rounded before they are added,
 * and sums use 48 lanes at every CPU level, so that the bits are the same.
 *
 * TensorFlow converts to hue, saturation and value. For fixed hue and value a channel is v - s·v·k, where k depends
 * only on the hue: scaling the saturation scales the distance of each channel from the largest one. Rotating the hue
 * preserves the largest and the smallest channel values; the position of each channel between them is a trapezoid
 * function of the hue. */
#include "kernels/image/image_colors.h"

#include "kernels/vector.h"

#include <math.h>

/* ---- Loops ---- */

constexpr int period = 3 * MR_LANES; /* in floats: a multiple of both vectors and pixels */

MR_INLINE void affine_levels_body(float *row, const mr_color_affine *affine, int32_t channels, int64_t count)
{
    float scale[period], shift[period];
    for (int i = 0; i < period; i++) {
        scale[i] = affine->scale[i % channels];
        shift[i] = affine->shift[i % channels];
    }
    mr_vector scales[3], shifts[3];
    for (int k = 0; k < 3; k++) {
        scales[k] = mr_vector_load(scale + k * MR_LANES);
        shifts[k] = mr_vector_load(shift + k * MR_LANES);
    }
    int64_t i = 0;
    for (; i + period <= count; i += period)
        for (int k = 0; k < 3; k++) {
            float *at = row + i + (int64_t)k * MR_LANES;
            mr_vector_store(at, mr_vector_load(at) * scales[k] + shifts[k]);
        }
    for (int64_t k = 0; i + k < count; k++) row[i + k] = row[i + k] * scale[k] + shift[k];
}
MR_LEVELS(affine_levels, (float *row, const mr_color_affine *affine, int32_t channels, int64_t count),
          (row, affine, channels, count))

MR_INLINE void sum_levels_body(double sums[3], const float *row, int32_t channels, int64_t count)
{
    mr_vector sum[3] = {};
    float lanes[period];
    int64_t i = 0;
    for (; i + period <= count; i += period)
        for (int k = 0; k < 3; k++) sum[k] += mr_vector_load(row + i + (int64_t)k * MR_LANES);
    for (int k = 0; k < 3; k++) mr_vector_store(lanes + k * MR_LANES, sum[k]);
    for (int64_t k = 0; i + k < count; k++) lanes[k] += row[i + k];
    for (int k = 0; k < period; k++) sums[k % channels] += (double)lanes[k];
}
MR_LEVELS(sum_levels, (double sums[3], const float *row, int32_t channels, int64_t count), (sums, row, channels, count))

#define TAKE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

typedef struct pixels {
    mr_vector red, green, blue;
} pixels;

MR_INLINE pixels split_channels(const float *row)
{
    mr_vector a = mr_vector_load(row), b = mr_vector_load(row + MR_LANES), c = mr_vector_load(row + 2 * MR_LANES);
    mr_vector red = TAKE(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, -1, -1, -1, -1, -1);
    mr_vector green = TAKE(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, -1, -1, -1, -1, -1);
    mr_vector blue = TAKE(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, -1, -1, -1, -1, -1, -1);
    return (pixels){TAKE(red, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29),
                    TAKE(green, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30),
                    TAKE(blue, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31)};
}

MR_INLINE void merge_channels(float *row, pixels p)
{
    mr_vector a = TAKE(p.red, p.green, 0, 16, -1, 1, 17, -1, 2, 18, -1, 3, 19, -1, 4, 20, -1, 5);
    mr_vector b = TAKE(p.red, p.green, 21, -1, 6, 22, -1, 7, 23, -1, 8, 24, -1, 9, 25, -1, 10, 26);
    mr_vector c = TAKE(p.red, p.green, -1, 11, 27, -1, 12, 28, -1, 13, 29, -1, 14, 30, -1, 15, 31, -1);
    mr_vector_store(row, TAKE(a, p.blue, 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15));
    mr_vector_store(row + MR_LANES, TAKE(b, p.blue, 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15));
    mr_vector_store(row + 2 * MR_LANES, TAKE(c, p.blue, 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31));
}

MR_INLINE mr_vector larger(mr_vector a, mr_vector b)
{
    return mr_vector_choose(a > b, a, b);
}

MR_INLINE mr_vector smaller(mr_vector a, mr_vector b)
{
    return mr_vector_choose(a < b, a, b);
}

/* A pixel whose largest channel is not above 0 has no saturation: it becomes gray, as in TensorFlow. If TensorFlow's
 * hue rounds to a full rotation, slightly below red, it treats the pixel as colorless and makes it gray; here it stays
 * red like neighboring hues. */
MR_INLINE pixels saturated(pixels p, mr_vector factor)
{
    mr_vector zero = {}, high = larger(larger(p.red, p.green), p.blue), low = smaller(smaller(p.red, p.green), p.blue);
    mr_vector range = high - low;
    mr_vector_mask colored = (range > zero) & (high > zero);
    mr_vector full = high / mr_vector_choose(colored, range, mr_vector_of(1)); /* the factor of full saturation */
    mr_vector by = mr_vector_choose(colored, smaller(factor, full), zero);
    return (pixels){high - (high - p.red) * by, high - (high - p.green) * by, high - (high - p.blue) * by};
}

/* Clamps to 0…1. */
MR_INLINE mr_vector bounded(mr_vector value)
{
    return smaller(larger(value, mr_vector_of(0)), mr_vector_of(1));
}

MR_INLINE mr_vector distance(mr_vector a, float b)
{
    mr_vector apart = a - mr_vector_of(b);
    return larger(apart, -apart);
}

/* Rotates the hue, which is measured in sixths of a full rotation: 0 red, 2 green, 4 blue. */
MR_INLINE pixels turned(pixels p, mr_vector by)
{
    mr_vector zero = {}, six = mr_vector_of(6);
    mr_vector high = larger(larger(p.red, p.green), p.blue), low = smaller(smaller(p.red, p.green), p.blue);
    mr_vector range = high - low;
    mr_vector_mask is_red = p.red == high, is_green = p.green == high;
    mr_vector over = mr_vector_choose(is_green, p.blue - p.red, p.red - p.green);
    mr_vector hue = mr_vector_choose(is_green, mr_vector_of(2), mr_vector_of(4));
    over = mr_vector_choose(is_red, p.green - p.blue, over);
    hue = mr_vector_choose(is_red, zero, hue);
    hue += over / mr_vector_choose(range > zero, range, mr_vector_of(1));
    hue = mr_vector_choose(hue < zero, hue + six, hue) + by;
    hue = mr_vector_choose(hue < zero, hue + six, hue);
    hue = mr_vector_choose(hue >= six, hue - six, hue);
    return (pixels){low + range * bounded(distance(hue, 3) - mr_vector_of(1)),
                    low + range * bounded(mr_vector_of(2) - distance(hue, 2)),
                    low + range * bounded(mr_vector_of(2) - distance(hue, 4))};
}

MR_INLINE void link_16(float *row, const mr_color_link *link)
{
    const mr_color_affine *then = &link->then;
    pixels p = split_channels(row);
    p = link->is_hue ? turned(p, mr_vector_of(link->amount)) : saturated(p, mr_vector_of(link->amount));
    p.red = p.red * mr_vector_of(then->scale[0]) + mr_vector_of(then->shift[0]);
    p.green = p.green * mr_vector_of(then->scale[1]) + mr_vector_of(then->shift[1]);
    p.blue = p.blue * mr_vector_of(then->scale[2]) + mr_vector_of(then->shift[2]);
    merge_channels(row, p);
}

MR_INLINE void link_levels_body(float *row, const mr_color_link *link, int64_t count)
{
    int64_t i = 0;
    for (; i + MR_LANES <= count; i += MR_LANES) link_16(row + 3 * i, link);
    if (i == count) return;
    float rest[period] = {};
    size_t rest_bytes = (size_t)(count - i) * 3 * sizeof(float);
    memcpy(rest, row + 3 * i, rest_bytes);
    link_16(rest, link);
    memcpy(row + 3 * i, rest, rest_bytes);
}
MR_LEVELS(link_levels, (float *row, const mr_color_link *link, int64_t count), (row, link, count))

MR_INLINE void split_levels_body(float *const planes[3], const float *row, int64_t count)
{
    int64_t i = 0;
    for (; i + MR_LANES <= count; i += MR_LANES) {
        pixels p = split_channels(row + 3 * i);
        mr_vector_store(planes[0] + i, p.red);
        mr_vector_store(planes[1] + i, p.green);
        mr_vector_store(planes[2] + i, p.blue);
    }
    for (; i < count; i++)
        for (int c = 0; c < 3; c++) planes[c][i] = row[3 * i + c];
}
MR_LEVELS(split_levels, (float *const planes[3], const float *row, int64_t count), (planes, row, count))

mr_color_table mr_color_loops(mr_cpu_level level)
{
    return (mr_color_table){affine_levels[level], sum_levels[level], link_levels[level], split_levels[level]};
}

/* ---- Chains ---- */

static const mr_color_step usual_order[4] = {MR_COLOR_BRIGHTNESS, MR_COLOR_CONTRAST, MR_COLOR_SATURATION, MR_COLOR_HUE};

static const mr_color_step *order_of(const mr_image_options *options)
{
    return options->color.order[0] == MR_COLOR_DEFAULT ? usual_order : options->color.order;
}

/* Combines a multiply-add with the last one of the chain. */
static void join(mr_color_chain *chain, int c, float scale, float shift)
{
    mr_color_affine *last = chain->count > 0 ? &chain->links[chain->count - 1].then : &chain->first;
    last->scale[c] = last->scale[c] * scale;
    last->shift[c] = last->shift[c] * scale + shift;
}

static const mr_color_affine no_change = {.scale = {1, 1, 1}};

static void add_link(mr_color_chain *chain, bool is_hue, float amount)
{
    chain->links[chain->count++] = (mr_color_link){.is_hue = is_hue, .amount = amount, .then = no_change};
}

static void add_step(mr_color_chain *chain, mr_color_step step, const mr_image_region *region, const double *mean)
{
    switch (step) {
    case MR_COLOR_BRIGHTNESS:
        for (int c = 0; c < 3; c++) join(chain, c, 1, 255 * region->brightness);
        break;
    case MR_COLOR_CONTRAST:
        if (region->contrast == 0 || mean == nullptr) break;
        for (int c = 0; c < 3; c++) {
            float middle = (float)mean[c] * chain->first.scale[c] + chain->first.shift[c];
            join(chain, c, region->contrast, middle - middle * region->contrast);
        }
        break;
    case MR_COLOR_SATURATION:
        if (region->saturation != 0) add_link(chain, false, region->saturation);
        break;
    case MR_COLOR_HUE:
        if (region->hue != 0) add_link(chain, true, 6 * region->hue);
        break;
    case MR_COLOR_DEFAULT:
        break;
    }
}

bool mr_color_chain_fill(mr_color_chain *chain, const mr_image_options *options, const mr_image_region *region,
                         const double *mean)
{
    const mr_color_step *order = order_of(options);
    /* The steps before the multiply-add that contains the contrast. */
    int split = 0, begin = 0, end = 4;
    for (int i = 0; i < 4 && order[i] != MR_COLOR_CONTRAST; i++)
        if ((order[i] == MR_COLOR_SATURATION && region->saturation != 0) ||
            (order[i] == MR_COLOR_HUE && region->hue != 0))
            split = i + 1;
    bool needs_mean = region->contrast != 0 && mean == nullptr;
    if (needs_mean) end = split;
    if (mean != nullptr) begin = split;
    *chain = (mr_color_chain){.first = no_change};
    for (int i = begin; i < end; i++) add_step(chain, order[i], region, mean);
    if (needs_mean) return true;
    for (int c = 0; c < 3; c++) {
        float scale = 1.0f / (options->std[c] != 0.0f ? options->std[c] : 1.0f);
        join(chain, c, scale, -options->mean[c] * scale);
    }
    return false;
}

/* ---- Checks ---- */

constexpr float change_max = 1000;

static mr_status check_number(float value, float low, float high, const char *name, mr_error *error)
{
    if (value >= low && value <= high) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s is %g (allowed: %g to %g)", name, (double)value, (double)low,
                   (double)high);
}

static mr_status check_channels(bool needs_three, const mr_image_options *options, mr_error *error)
{
    if (!needs_three || options->channels != 1) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "saturation and hue require 3 channels, not 1");
}

mr_status mr_color_check_options(const mr_image_options *options, mr_error *error)
{
    const mr_color_jitter *color = &options->color;
    MR_TRY(check_number(color->brightness, 0, change_max, "brightness", error));
    MR_TRY(check_number(color->hue, 0, 0.5f, "hue", error));
    MR_TRY(check_number(color->contrast_max, 0, change_max, "contrast_max", error));
    MR_TRY(check_number(color->contrast_min, 0, color->contrast_max, "contrast_min", error));
    MR_TRY(check_number(color->saturation_max, 0, change_max, "saturation_max", error));
    MR_TRY(check_number(color->saturation_min, 0, color->saturation_max, "saturation_min", error));
    const mr_color_step *order = order_of(options);
    unsigned seen = 0;
    for (int i = 0; i < 4; i++)
        if (order[i] >= MR_COLOR_BRIGHTNESS && order[i] <= MR_COLOR_HUE) seen |= 1u << order[i];
    if (seen != 0x1e || (order == usual_order && (color->order[1] | color->order[2] | color->order[3]) != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the order of color changes must contain each of the four steps once, or none");
    return check_channels(color->saturation_max > 0 || color->hue > 0, options, error);
}

mr_status mr_color_check_region(const mr_image_options *options, const mr_image_region *region, mr_error *error)
{
    MR_TRY(check_number(region->brightness, -change_max, change_max, "brightness", error));
    MR_TRY(check_number(region->contrast, 0, change_max, "contrast", error));
    MR_TRY(check_number(region->saturation, 0, change_max, "saturation", error));
    MR_TRY(check_number(region->hue, -1, 1, "hue", error));
    return check_channels(region->saturation != 0 || region->hue != 0, options, error);
}
