/* Decoding of a region, with crop and resize in one pass, compared with a separate decode, crop and resize. */
#include "kernels/image/image_rows.h"
#include "tests/kernels/images.h"
#include "tests/test.h"

#include <math.h>

static void check_crop(test_bytes file, const mr_tensor *whole, mr_image_region region, int channels,
                       unsigned char *target, mr_image_scratch *scratch, int kind)
{
    mr_error error = {0};
    mr_image_options options = {.size = sizeof options, .dtype = MR_UINT8, .channels = channels};
    CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error));
    size_t row_bytes = (size_t)(region.width * channels), stride = (size_t)(whole->shape.dims[1] * channels);
    for (int y = 0; y < region.height; y++) {
        const unsigned char *expected =
            mr_tensor_uint8s(whole) + (size_t)(region.y + y) * stride + (size_t)(region.x * channels);
        if (memcmp(target + (size_t)y * row_bytes, expected, row_bytes) != 0)
            test_fail(__FILE__, __LINE__, "kind %d: %d x %d at (%d, %d) of %d x %d: row %d differs", kind, region.width,
                      region.height, region.x, region.y, (int)whole->shape.dims[1], (int)whole->shape.dims[0], y);
    }
}

static void check_crops(int kind, int width, int height, int channels, int count, mr_random *random)
{
    mr_error error = {0};
    test_bytes file = test_jpeg(width, height, test_jpeg_kinds[kind]);
    mr_image_decode_options decode = {.size = sizeof decode, .channels = channels};
    mr_tensor whole = {0};
    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
    unsigned char *target = malloc((size_t)(width * height * channels));
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    for (int i = 0; i < count; i++) {
        mr_image_region region = {0};
        region.width = 1 + (int)mr_random_below(random, (uint64_t)width);
        region.height = 1 + (int)mr_random_below(random, (uint64_t)height);
        region.x = (int)mr_random_below(random, (uint64_t)(width - region.width + 1));
        region.y = (int)mr_random_below(random, (uint64_t)(height - region.height + 1));
        check_crop(file, &whole, region, channels, target, scratch, kind);
    }
    mr_image_scratch_free(scratch);
    free(target);
    mr_tensor_deinit(&whole);
    free(file.bytes);
}

TEST(image_region_equals_a_crop_of_the_full_image)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0);
    for (int kind = 0; kind < test_jpeg_kind_count; kind++)
        for (int size = 0; size < 12; size++) {
            int width = 1 + (int)mr_random_below(&random, 150), height = 1 + (int)mr_random_below(&random, 110);
            check_crops(kind, width, height, test_jpeg_kinds[kind].channels == 4 || size % 4 != 3 ? 3 : 1, 30, &random);
        }
}

/* Every position of a small window: all offsets relative to the blocks. */
TEST(image_region_equals_a_crop_at_every_offset)
{
    mr_error error = {0};
    for (int kind = 0; kind < test_jpeg_kind_count; kind++) {
        int width = 75, height = 43;
        test_bytes file = test_jpeg(width, height, test_jpeg_kinds[kind]);
        mr_image_decode_options decode = {.size = sizeof decode, .channels = 3};
        mr_tensor whole = {0};
        CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
        unsigned char *target = malloc((size_t)(width * height * 3));
        mr_image_scratch *scratch = nullptr;
        CHECK_OK(mr_image_scratch_new(&scratch, &error));
        for (int x = 0; x <= width - 9; x++)
            check_crop(file, &whole, (mr_image_region){x, x % 35, 9, 6, false}, 3, target, scratch, kind);
        for (int y = 0; y <= height - 6; y++)
            check_crop(file, &whole, (mr_image_region){y, y, 9, 6, false}, 3, target, scratch, kind);
        mr_image_scratch_free(scratch);
        free(target);
        mr_tensor_deinit(&whole);
        free(file.bytes);
    }
}

/* The expected result: decode, crop, then resize. */
static mr_tensor by_hand(test_bytes file, const mr_image_options *options, mr_image_region region)
{
    mr_error error = {0};
    int channels = options->channels == 0 ? 3 : options->channels;
    mr_image_decode_options decode = {.size = sizeof decode, .channels = channels};
    mr_tensor whole = {0}, crop = {0}, resized = {0};
    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
    CHECK_OK(mr_tensor_init(&crop, MR_UINT8, MR_SHAPE(region.height, region.width, channels), &error));
    size_t row_bytes = (size_t)(region.width * channels);
    for (int y = 0; y < region.height; y++)
        memcpy(mr_tensor_uint8s(&crop) + (size_t)y * row_bytes,
               mr_tensor_uint8s(&whole) + (size_t)(((region.y + y) * whole.shape.dims[1] + region.x) * channels),
               row_bytes);
    mr_resize_options resize = {
        .size = sizeof resize, .method = options->method, .half_pixel_centers = options->method != MR_RESIZE_AREA};
    CHECK_OK(mr_image_resize(&crop, options->height, options->width, &resize, &resized, &error));
    mr_tensor_deinit(&whole);
    mr_tensor_deinit(&crop);
    return resized;
}

static double element(const mr_tensor *tensor, int64_t at)
{
    return tensor->dtype == MR_UINT8 ? mr_tensor_uint8s(tensor)[at] : (double)mr_tensor_floats(tensor)[at];
}

static double fused(mr_dtype dtype, const void *target, int64_t at)
{
    switch (dtype) {
    case MR_UINT8:
        return ((const uint8_t *)target)[at];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)target)[at]);
    case MR_BFLOAT16:
        return (double)mr_bfloat16_to_float(((const uint16_t *)target)[at]);
    default:
        return (double)((const float *)target)[at];
    }
}

TEST(image_region_resizes_normalises_and_lays_out)
{
    static const mr_dtype dtypes[] = {MR_DTYPE_INVALID, MR_FLOAT, MR_UINT8, MR_HALF, MR_BFLOAT16};
    static const double tolerances[] = {2e-4, 2e-4, 0.5005, 3e-3, 2e-2};
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 8);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes files[] = {test_jpeg(90, 70, test_jpeg_kinds[2]), test_png(61, 47, test_png_kinds[9])};
    for (int i = 0; i < 400; i++) {
        int kind = i / 4 % 5, width = i % 2 == 0 ? 90 : 61, height = i % 2 == 0 ? 70 : 47;
        mr_image_options options = {.size = sizeof options,
                                    .height = 1 + (int)mr_random_below(&random, 100),
                                    .width = 1 + (int)mr_random_below(&random, 100),
                                    .channels = i % 3 == 0 ? 1 : 3,
                                    .method = (mr_resize_method)(i % 4),
                                    .dtype = dtypes[kind],
                                    .layout = i % 7 < 3 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC};
        if (dtypes[kind] != MR_UINT8)
            for (int c = 0; c < 3; c++) {
                options.mean[c] = 100 + 10 * (float)c;
                options.std[c] = 50 + (float)c;
            }
        mr_image_region region = {.width = 1 + (int)mr_random_below(&random, (uint64_t)width),
                                  .height = 1 + (int)mr_random_below(&random, (uint64_t)height),
                                  .flip = i % 5 < 2};
        region.x = (int)mr_random_below(&random, (uint64_t)(width - region.width + 1));
        region.y = (int)mr_random_below(&random, (uint64_t)(height - region.height + 1));
        mr_tensor expected = by_hand(files[i % 2], &options, region);
        void *target = malloc((size_t)(options.height * options.width * options.channels) * sizeof(float));
        CHECK_OK(mr_image_decode_region(files[i % 2].bytes, files[i % 2].size_bytes, &options, region, target, scratch,
                                        &error));
        for (int y = 0; y < options.height; y++)
            for (int x = 0; x < options.width; x++)
                for (int c = 0; c < options.channels; c++) {
                    int from = region.flip ? options.width - 1 - x : x;
                    double value = element(&expected, (y * options.width + from) * options.channels + c);
                    if (dtypes[kind] == MR_UINT8)
                        value = value < 0 ? 0 : value > 255 ? 255 : value;
                    else
                        value = (value - options.mean[c]) / options.std[c];
                    int64_t at = options.layout == MR_LAYOUT_NCHW ? (c * options.height + y) * options.width + x
                                                                  : (y * options.width + x) * options.channels + c;
                    CHECK_NEAR(fused(dtypes[kind], target, at), value, tolerances[kind]);
                }
        free(target);
        mr_tensor_deinit(&expected);
    }
    mr_image_scratch_free(scratch);
    free(files[0].bytes);
    free(files[1].bytes);
}

/* Half and bfloat16 results are the float results rounded to nearest even, in any layout. */
TEST(image_region_narrow_is_the_float_rounded)
{
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(50, 40, test_jpeg_kinds[2]);
    constexpr int count = 23 * 19 * 3;
    float floats[count];
    uint16_t half[count], brain[count];
    for (int i = 0; i < 2; i++) {
        mr_image_options options = {.size = sizeof options,
                                    .height = 23,
                                    .width = 19,
                                    .layout = i == 0 ? MR_LAYOUT_NHWC : MR_LAYOUT_NCHW,
                                    .mean = {124, 117, 104},
                                    .std = {59, 57, 0.001f}};
        mr_image_region region = {3, 5, 40, 31, true};
        void *targets[] = {floats, half, brain};
        static const mr_dtype dtypes[] = {MR_FLOAT, MR_HALF, MR_BFLOAT16};
        for (int d = 0; d < 3; d++) {
            options.dtype = dtypes[d];
            CHECK_OK(
                mr_image_decode_region(file.bytes, file.size_bytes, &options, region, targets[d], scratch, &error));
        }
        for (int at = 0; at < count; at++) {
            CHECK_EQ(half[at], mr_float_to_half(floats[at]));
            CHECK_EQ(brain[at], mr_float_to_bfloat16(floats[at]));
        }
    }
    mr_image_scratch_free(scratch);
    free(file.bytes);
}

TEST(image_region_refuses)
{
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(30, 20, test_jpeg_kinds[2]);
    float target[10 * 10 * 3];
    mr_image_options options = {.size = sizeof options, .height = 10, .width = 10};
    static const mr_image_region outside[] = {
        {-1, 0, 10, 10, false}, {0, 0, 31, 10, false},         {25, 0, 6, 10, false},       {0, 0, 0, 10, false},
        {0, 15, 10, 6, false},  {INT32_MAX, 0, 10, 10, false}, {1, 1, INT32_MAX, 10, false}};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        CHECK_STATUS(mr_image_decode_region(file.bytes, file.size_bytes, &options, outside[i], target, scratch, &error),
                     MR_INVALID_ARGUMENT);
    CHECK_OK(
        mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){0}, target, scratch, &error));
    options.channels = 2;
    CHECK_STATUS(
        mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){0}, target, scratch, &error),
        MR_INVALID_ARGUMENT);
    options = (mr_image_options){.size = sizeof options, .height = 10};
    CHECK_STATUS(
        mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){0}, target, scratch, &error),
        MR_INVALID_ARGUMENT);
    mr_image_scratch_free(scratch);
    free(file.bytes);
}

/* The region of an image decoded at 1/ratio, computed for each pixel from its coordinates. */
static double reduced(const mr_tensor *whole, int ratio, double x, double y, int channel)
{
    x = (x + 0.5) / ratio - 0.5;
    y = (y + 0.5) / ratio - 0.5;
    int left = (int)floor(x), top = (int)floor(y);
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        int column = left + (k & 1), row = top + (k >> 1);
        double weight = ((k & 1) != 0 ? x - left : 1 - x + left) * ((k >> 1) != 0 ? y - top : 1 - y + top);
        column = column < 0 ? 0 : column;
        row = row < 0 ? 0 : row;
        if (weight == 0) continue;
        sum += weight * mr_tensor_uint8s(whole)[(row * whole->shape.dims[1] + column) * 3 + channel];
    }
    return sum;
}

TEST(image_region_approximate_is_a_resize_of_the_smaller_decode)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 9);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    constexpr int width = 300, height = 220;
    for (int i = 0; i < 60; i++) {
        test_bytes file = test_jpeg(width, height, test_jpeg_kinds[i % test_jpeg_kind_count]);
        int side = 4 + (int)mr_random_below(&random, 40), ratio = 8;
        mr_image_options options = {.size = sizeof options, .height = side, .width = side, .approximate_scale = true};
        mr_image_region region = {.width = side + (int)mr_random_below(&random, (uint64_t)(width - side)),
                                  .height = side + (int)mr_random_below(&random, (uint64_t)(height - side))};
        region.x = (int)mr_random_below(&random, (uint64_t)(width - region.width + 1));
        region.y = (int)mr_random_below(&random, (uint64_t)(height - region.height + 1));
        int smaller = region.width < region.height ? region.width : region.height;
        while (ratio > 1 && smaller < ratio * side) ratio /= 2;
        mr_image_decode_options decode = {.size = sizeof decode, .channels = 3, .ratio = ratio};
        mr_tensor whole = {0};
        CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
        float target[44 * 44 * 3];
        CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error));
        /* Edges differ, since the exact path does not read outside the region; compare the interior. */
        for (int y = 1; y < side - 1; y++)
            for (int x = 1; x < side - 1; x++)
                for (int c = 0; c < 3; c++) {
                    double at_x = region.x + (x + 0.5) * region.width / side - 0.5;
                    double at_y = region.y + (y + 0.5) * region.height / side - 0.5;
                    double got = (double)target[(y * side + x) * 3 + c];
                    double expected = reduced(&whole, ratio, at_x, at_y, c);
                    if (fabs(got - expected) > 2e-2)
                        test_fail(__FILE__, __LINE__,
                                  "kind %d at 1/%d, %d x %d at (%d, %d) to %d: (%d, %d, %d) is %g, not %g",
                                  i % test_jpeg_kind_count, ratio, region.width, region.height, region.x, region.y,
                                  side, x, y, c, got, expected);
                }
        mr_tensor_deinit(&whole);
        free(file.bytes);
    }
    mr_image_scratch_free(scratch);
}
