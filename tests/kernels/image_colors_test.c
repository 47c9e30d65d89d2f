/* Color changes: every vector loop compared bit for bit with plain C, and the fused chain compared with separate
 * steps. */
#include "kernels/image/image_colors.h"
#include "tests/kernels/images.h"
#include "tests/test.h"

#include <math.h>

constexpr int width = 70;

/* ---- Plain C ---- */

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

static float bounded(float value)
{
    return smaller(larger(value, 0), 1);
}

static void saturate(float p[3], float factor)
{
    float high = larger(larger(p[0], p[1]), p[2]), low = smaller(smaller(p[0], p[1]), p[2]), range = high - low;
    float by = range > 0 && high > 0 ? smaller(factor, high / range) : 0;
    for (int c = 0; c < 3; c++) p[c] = high - (high - p[c]) * by;
}

static void turn(float p[3], float by)
{
    float high = larger(larger(p[0], p[1]), p[2]), low = smaller(smaller(p[0], p[1]), p[2]), range = high - low;
    float hue = 0;
    if (range > 0 && p[0] == high)
        hue = (p[1] - p[2]) / range;
    else if (range > 0 && p[1] == high)
        hue = 2 + (p[2] - p[0]) / range;
    else if (range > 0)
        hue = 4 + (p[0] - p[1]) / range;
    hue = (hue < 0 ? hue + 6 : hue) + by;
    hue = hue < 0 ? hue + 6 : hue;
    hue = hue >= 6 ? hue - 6 : hue;
    p[0] = low + range * bounded(fabsf(hue - 3) - 1);
    p[1] = low + range * bounded(2 - fabsf(hue - 2));
    p[2] = low + range * bounded(2 - fabsf(hue - 4));
}

static void link_plain(float *row, const mr_color_link *link, int64_t count)
{
    for (int64_t i = 0; i < count; i++, row += 3) {
        if (link->is_hue)
            turn(row, link->amount);
        else
            saturate(row, link->amount);
        for (int c = 0; c < 3; c++) row[c] = row[c] * link->then.scale[c] + link->then.shift[c];
    }
}

static void affine_plain(float *row, const mr_color_affine *affine, int32_t channels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) row[i] = row[i] * affine->scale[i % channels] + affine->shift[i % channels];
}

static void sum_plain(double sums[3], const float *row, int32_t channels, int64_t count)
{
    float lanes[48] = {0};
    for (int64_t i = 0; i < count; i++) lanes[i % 48] += row[i];
    for (int i = 0; i < 48; i++) sums[i % channels] += (double)lanes[i];
}

/* ---- Loops ---- */

static void check_same(const float *expected, const float *found, const char *name, int level, int64_t count)
{
    for (int i = 0; i < 3 * width; i++)
        if (memcmp(&expected[i], &found[i], sizeof(float)) != 0)
            test_fail(__FILE__, __LINE__, "%s, level %d: element %d of %d pixels is %a, not %a", name, level, i,
                      (int)count, (double)found[i], (double)expected[i]);
}

/* Various colors: equal channels, black, and values outside 0…255. */
static void fill(float *row, mr_random *random)
{
    for (int i = 0; i < 3 * width; i++) {
        int kind = (int)mr_random_below(random, 8);
        row[i] = kind < 3            ? (float)mr_random_below(random, 256)
                 : kind < 5 && i > 0 ? row[i - 1]
                 : kind == 5         ? (float)mr_random_range(random, -300, 600)
                 : kind == 6         ? 0
                                     : (float)mr_random_range(random, 0, 255);
    }
}

TEST(image_colors_fast_equals_plain)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 30);
    float source[3 * width], expected[3 * width], found[3 * width];
    for (int level = 0; level <= (int)mr_cpu(); level++) {
        mr_color_table loops = mr_color_loops((mr_cpu_level)level);
        for (int64_t count = 0; count <= width; count++) {
            mr_color_link link = {.is_hue = count % 2 == 0,
                                  .amount =
                                      (float)mr_random_range(&random, count % 2 == 0 ? -6 : 0, count % 2 == 0 ? 6 : 3),
                                  .then = {{0.5f, 1, 2}, {3, 0, -0.1f}}};
            fill(source, &random);
            for (int kind = 0; kind < 2; kind++) {
                memcpy(expected, source, sizeof(source));
                memcpy(found, source, sizeof(source));
                if (kind == 0) {
                    link_plain(expected, &link, count);
                    loops.link(found, &link, count);
                } else {
                    affine_plain(expected, &link.then, count % 3 == 0 ? 1 : 3, 3 * count);
                    loops.affine(found, &link.then, count % 3 == 0 ? 1 : 3, 3 * count);
                }
                check_same(expected, found, kind == 1 ? "affine" : link.is_hue ? "hue" : "saturation", level, count);
            }
            float planes[3][width + 1];
            for (int c = 0; c < 3; c++) planes[c][count] = -1;
            loops.split((float *const[]){planes[0], planes[1], planes[2]}, source, count);
            for (int64_t i = 0; i < 3 * count; i++)
                CHECK(memcmp(&planes[i % 3][i / 3], &source[i], sizeof(float)) == 0);
            for (int c = 0; c < 3; c++) CHECK(planes[c][count] == -1);
            double sums[2][3] = {{1, 2, 3}, {1, 2, 3}};
            sum_plain(sums[0], source, count % 3 == 0 ? 1 : 3, 3 * count);
            loops.sum(sums[1], source, count % 3 == 0 ? 1 : 3, 3 * count);
            CHECK(memcmp(sums[0], sums[1], sizeof(sums[0])) == 0);
        }
    }
}

TEST(image_colors_by_hand)
{
    mr_color_table loops = mr_color_loops(mr_cpu());
    float row[5 * 3] = {200, 0, 0, 200, 100, 0, 50, 50, 50, -10, -20, -30, 255, 255, 0};
    static const float turned[5 * 3] = {0, 200, 0, 0, 200, 100, 50, 50, 50, -30, -10, -20, 0, 255, 255};
    static const float gray[5 * 3] = {200, 200, 200, 200, 200, 200, 50, 50, 50, -10, -10, -10, 255, 255, 255};
    mr_color_link link = {.is_hue = true, .amount = 2, .then = {.scale = {1, 1, 1}}};
    loops.link(row, &link, 5);
    for (int i = 0; i < 15; i++) CHECK_NEAR(row[i], turned[i], 1e-4);
    /* Red with a hue slightly below a full rotation stays red. */
    float red[3] = {230, 25, nextafterf(25, 26)};
    loops.link(red, &(mr_color_link){.amount = 1, .then = {.scale = {1, 1, 1}}}, 1);
    CHECK_NEAR(red[0], 230, 1e-4);
    CHECK_NEAR(red[1], 25, 1e-4);
    link = (mr_color_link){.amount = 0, .then = {.scale = {1, 1, 1}}};
    loops.link(row, &link, 5);
    for (int i = 0; i < 15; i++) CHECK_NEAR(row[i], gray[i], 1e-4);
}

/* ---- The fused chain ---- */

/* Separate steps, each over the complete image. */
static void by_hand(float *pixels, int count, int channels, const mr_image_region *region, const mr_color_step *order)
{
    for (int s = 0; s < 4; s++) {
        double mean[3] = {0};
        for (int i = 0; i < count * channels; i++) mean[i % channels] += (double)pixels[i] / count;
        for (int i = 0; i < count * channels; i++) {
            float middle = (float)mean[i % channels];
            if (order[s] == MR_COLOR_BRIGHTNESS) pixels[i] += 255 * region->brightness;
            if (order[s] == MR_COLOR_CONTRAST && region->contrast != 0)
                pixels[i] = (pixels[i] - middle) * region->contrast + middle;
        }
        for (int i = 0; i < count; i++) {
            if (order[s] == MR_COLOR_SATURATION && region->saturation != 0)
                saturate(pixels + 3 * i, region->saturation);
            if (order[s] == MR_COLOR_HUE && region->hue != 0) turn(pixels + 3 * i, 6 * region->hue);
        }
    }
}

static double element(const void *target, mr_dtype dtype, int at)
{
    return dtype == MR_UINT8      ? ((const uint8_t *)target)[at]
           : dtype == MR_HALF     ? (double)mr_half_to_float(((const uint16_t *)target)[at])
           : dtype == MR_BFLOAT16 ? (double)mr_bfloat16_to_float(((const uint16_t *)target)[at])
                                  : (double)((const float *)target)[at];
}

TEST(image_colors_fused_equal_one_after_the_other)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 31);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(48, 40, test_jpeg_kinds[2]);
    constexpr int high = 21, wide = 37, count = high * wide;
    static const mr_dtype dtypes[] = {MR_FLOAT, MR_HALF, MR_BFLOAT16, MR_UINT8};
    float expected[3 * count], target[3 * count];
    for (int i = 0; i < 240; i++) {
        mr_image_options options = {
            .size = sizeof options, .height = high, .width = wide, .channels = i % 5 == 0 ? 1 : 3};
        int channels = options.channels;
        mr_image_region region = {.x = 3, .y = 2, .width = 40, .height = 33, .flip = i % 2 == 0};
        CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, expected, scratch, &error));
        mr_color_step order[4] = {MR_COLOR_BRIGHTNESS, MR_COLOR_CONTRAST, MR_COLOR_SATURATION, MR_COLOR_HUE};
        for (int k = 3; k > 0 && i % 4 != 0; k--) {
            int other = (int)mr_random_below(&random, (uint64_t)k + 1);
            mr_color_step kept = order[k];
            order[k] = order[other];
            order[other] = kept;
        }
        if (i % 4 != 0) memcpy(options.color.order, order, sizeof(order));
        if (mr_random_below(&random, 4) > 0) region.brightness = (float)mr_random_range(&random, -0.4, 0.4);
        if (mr_random_below(&random, 4) > 0) region.contrast = (float)mr_random_range(&random, 0.2, 1.8);
        if (channels == 3 && mr_random_below(&random, 4) > 0) region.saturation = (float)mr_random_range(&random, 0, 2);
        if (channels == 3 && mr_random_below(&random, 4) > 0) region.hue = (float)mr_random_range(&random, -1, 1);
        options.dtype = dtypes[i / 3 % 4];
        options.layout = i % 3 == 0 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC;
        bool bytes = options.dtype == MR_UINT8;
        for (int c = 0; c < 3 && !bytes; c++) {
            options.mean[c] = 100 + 10 * (float)c;
            options.std[c] = 60;
        }
        by_hand(expected, count, channels, &region, order);
        CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error));
        for (int k = 0; k < count * channels; k++) {
            int c = k % channels, pixel = k / channels;
            double value = (double)expected[k];
            if (bytes)
                value = value < 0 ? 0 : value > 255 ? 255 : value;
            else
                value = (value - (double)options.mean[c]) / 60;
            int at = options.layout == MR_LAYOUT_NCHW ? c * count + pixel : k;
            double tolerance = bytes                          ? 0.501
                               : options.dtype == MR_BFLOAT16 ? 3e-2
                               : options.dtype == MR_HALF     ? 4e-3
                                                              : 2e-5;
            CHECK_NEAR(element(target, options.dtype, at), value, tolerance);
        }
    }
    mr_image_scratch_free(scratch);
    free(file.bytes);
}

TEST(image_colors_are_drawn_in_their_range)
{
    mr_image_options options = {.size = sizeof options,
                                .height = 8,
                                .width = 8,
                                .crop = MR_CROP_RANDOM,
                                .random_flip_left_right = true},
                     plain = options;
    options.color = (mr_color_jitter){
        .brightness = 0.25f, .contrast_min = 0.5f, .contrast_max = 1.5f, .saturation_max = 2, .hue = 0.1f};
    double low[4] = {9, 9, 9, 9}, high[4] = {-9, -9, -9, -9};
    for (uint64_t i = 0; i < 2000; i++) {
        mr_random random = mr_random_at(test_seed(), 0, i, 32), again = random;
        mr_image_region region = mr_image_choose(&options, 30, 20, &random);
        mr_image_region without = mr_image_choose(&plain, 30, 20, &again);
        CHECK(region.x == without.x && region.y == without.y && region.flip == without.flip);
        CHECK(without.brightness == 0 && without.contrast == 0 && without.saturation == 0 && without.hue == 0);
        const double drawn[4] = {(double)region.brightness, (double)region.contrast, (double)region.saturation,
                                 (double)region.hue};
        for (int k = 0; k < 4; k++) {
            low[k] = fmin(low[k], drawn[k]);
            high[k] = fmax(high[k], drawn[k]);
        }
    }
    static const double from[4] = {-0.25, 0.5, 0, -0.1}, to[4] = {0.25, 1.5, 2, 0.1};
    for (int k = 0; k < 4; k++) {
        double near = (to[k] - from[k]) / 50;
        CHECK(low[k] >= from[k] - 1e-6 && low[k] < from[k] + near);
        CHECK(high[k] <= to[k] + 1e-6 && high[k] > to[k] - near);
    }
    mr_random random = mr_random_at(test_seed(), 0, 0, 33);
    options.color = (mr_color_jitter){.contrast_max = 1e-40f};
    CHECK(mr_image_choose(&options, 30, 20, &random).contrast > 0); /* 0 means none */
}
