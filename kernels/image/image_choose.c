/* Checks image options, and draws the random changes of one image. */
#include "base/options.h"
#include "base/random.h"
#include "kernels/image/image_colors.h"

#include <millrace/image.h>

#include <float.h>
#include <math.h>

constexpr int32_t padding_max = 65536;

static mr_status check_numbers(const mr_image_options *options, mr_error *error)
{
    const float numbers[] = {options->fraction, options->area_min, options->area_max, options->aspect_min,
                             options->aspect_max};
    static const char *const names[] = {"fraction", "area_min", "area_max", "aspect_min", "aspect_max"};
    for (int i = 0; i < 5; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1e6f))
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s of a crop is %g (allowed: 0 to 1,000,000)", names[i],
                           (double)numbers[i]);
    for (int c = 0; c < 3; c++)
        if (!isfinite(options->mean[c]) || !isfinite(options->std[c]) ||
            (options->std[c] != 0 && !(fabsf(options->std[c]) >= 1e-30f)))
            return mr_fail(error, MR_INVALID_ARGUMENT, "pixels cannot be normalized with mean %g and std %g",
                           (double)options->mean[c], (double)options->std[c]);
    return MR_OK;
}

static mr_status check_crop(const mr_image_options *options, mr_error *error)
{
    if (options->crop < MR_CROP_NONE || options->crop > MR_CROP_CENTER_WINDOW)
        return mr_fail(error, MR_INVALID_ARGUMENT, "invalid crop %d", (int)options->crop);
    if (options->height == 0 && options->crop != MR_CROP_NONE)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a crop requires height and width");
    if (options->padding < 0 || options->padding > padding_max)
        return mr_fail(error, MR_INVALID_ARGUMENT, "padding must be 0 to %d pixels, not %d", padding_max,
                       options->padding);
    if (options->padding > 0 && options->crop != MR_CROP_RANDOM_WINDOW)
        return mr_fail(error, MR_INVALID_ARGUMENT, "padding requires MR_CROP_RANDOM_WINDOW");
    if (options->padding_mode != MR_IMAGE_PAD_ZERO && options->padding_mode != MR_IMAGE_PAD_REFLECT)
        return mr_fail(error, MR_INVALID_ARGUMENT, "invalid padding mode %d", (int)options->padding_mode);
    return MR_OK;
}

mr_status mr_image_check(const mr_image_options *given, mr_error *error)
{
    mr_image_options own, *options = &own;
    MR_TRY(MR_OPTIONS_READ(mr_image_options, options, given, error));
    if (options->channels != 0 && options->channels != 1 && options->channels != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "images can have 1 or 3 channels, not %d", options->channels);
    if (options->height < 0 || options->width < 0 || (options->height == 0) != (options->width == 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "images cannot have %d x %d pixels", options->width,
                       options->height);
    if (options->method < MR_RESIZE_BILINEAR || options->method > MR_RESIZE_BICUBIC)
        return mr_fail(error, MR_INVALID_ARGUMENT, "invalid resize method %d", (int)options->method);
    if (options->layout != MR_LAYOUT_NHWC && options->layout != MR_LAYOUT_NCHW)
        return mr_fail(error, MR_INVALID_ARGUMENT, "invalid layout %d", (int)options->layout);
    mr_dtype dtype = options->dtype;
    if (dtype != MR_DTYPE_INVALID && dtype != MR_FLOAT && dtype != MR_UINT8 && dtype != MR_HALF && dtype != MR_BFLOAT16)
        return mr_fail(error, MR_INVALID_ARGUMENT, "images can be float, uint8, half or bfloat16, not %s",
                       mr_dtype_name(dtype));
    MR_TRY(check_crop(options, error));
    MR_TRY(mr_color_check_options(options, error));
    return check_numbers(options, error);
}

static float or_else(float value, float otherwise)
{
    return value > 0 ? value : otherwise;
}

static int32_t between(double value, int32_t low, int32_t high)
{
    return !(value > low) ? low : value >= high ? high : (int32_t)value;
}

/* Sets the size to the largest rectangle of the given aspect ratio (width / height), times fraction. */
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

static void choose_position(mr_image_region *region, int32_t width, int32_t height, mr_random *random)
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
        if (!(w >= 1 && h >= 1 && w <= width && h <= height)) continue;
        region->width = (int32_t)w;
        region->height = (int32_t)h;
        choose_position(region, width, height, random);
        return;
    }
    double aspect = (double)width / height;
    largest(region, aspect < aspect_min ? aspect_min : aspect > aspect_max ? aspect_max : aspect, 1, width, height);
    centre(region, width, height);
}

/* A window is not resized; the part outside the image is padding. An image too small for its window gets the centered
 * window, which decoding rejects. */
static void window(mr_image_region *region, const mr_image_options *options, int32_t width, int32_t height,
                   mr_random *random)
{
    int32_t padding = options->padding > 0 && options->padding <= padding_max ? options->padding : 0;
    int64_t room_y = (int64_t)height + 2 * padding - options->height;
    int64_t room_x = (int64_t)width + 2 * padding - options->width;
    region->height = options->height;
    region->width = options->width;
    centre(region, width, height);
    if (options->crop == MR_CROP_CENTER_WINDOW || random == nullptr || room_y < 0 || room_x < 0) return;
    region->y = (int32_t)mr_random_below(random, (uint64_t)room_y + 1) - padding;
    region->x = (int32_t)mr_random_below(random, (uint64_t)room_x + 1) - padding;
}

/* Draws a factor. It is never 0, which means no change. */
static float factor(float low, float high, mr_random *random)
{
    float value = (float)mr_random_range(random, (double)low, (double)high);
    return value > FLT_MIN ? value : FLT_MIN;
}

static void recolor(mr_image_region *region, const mr_color_jitter *color, mr_random *random)
{
    double brightness = (double)color->brightness, hue = (double)color->hue;
    if (brightness > 0) region->brightness = (float)mr_random_range(random, -brightness, brightness);
    if (color->contrast_max > 0) region->contrast = factor(color->contrast_min, color->contrast_max, random);
    if (color->saturation_max > 0) region->saturation = factor(color->saturation_min, color->saturation_max, random);
    if (hue > 0) region->hue = (float)mr_random_range(random, -hue, hue);
}

mr_image_region mr_image_choose(const mr_image_options *given, int32_t width, int32_t height, mr_random *random)
{
    mr_image_options own, *options = &own;
    mr_image_region region = {.width = width, .height = height};
    if (MR_OPTIONS_READ(mr_image_options, options, given, nullptr) != MR_OK || width < 1 || height < 1) return region;
    double aspect =
        options->height > 0 && options->width > 0 ? (double)options->width / options->height : (double)width / height;
    double fraction = or_else(options->fraction, 1);
    bool is_window = options->crop == MR_CROP_RANDOM_WINDOW || options->crop == MR_CROP_CENTER_WINDOW;
    switch (random != nullptr || options->crop == MR_CROP_NONE || is_window ? options->crop : MR_CROP_CENTER) {
    case MR_CROP_NONE:
        break;
    case MR_CROP_CENTER:
        largest(&region, aspect, fraction, width, height);
        centre(&region, width, height);
        break;
    case MR_CROP_RANDOM:
        largest(&region, aspect, fraction, width, height);
        choose_position(&region, width, height, random);
        break;
    case MR_CROP_RANDOM_RESIZED:
        random_resized(&region, options, width, height, random);
        break;
    case MR_CROP_RANDOM_WINDOW:
    case MR_CROP_CENTER_WINDOW:
        if (options->height > 0 && options->width > 0) window(&region, options, width, height, random);
        break;
    }
    if (random == nullptr) return region;
    if (options->random_flip_left_right) region.flip = (mr_random_next32(random) & 1) != 0;
    recolor(&region, &options->color, random);
    return region;
}
