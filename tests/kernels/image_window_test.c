/* Windows, which are cropped or padded but never resized, compared with a complete decode, pixel by pixel. */
#include "tests/kernels/images.h"
#include "tests/test.h"

#include <math.h>

/* The pixel of the image at a position of the window, or -1 for black. */
static int shown(int at, int count, mr_image_pad pad)
{
    if (at >= 0 && at < count) return at;
    if (pad == MR_IMAGE_PAD_ZERO) return -1;
    return at < 0 ? -at : 2 * count - 2 - at;
}

static void check_window(test_bytes file, const mr_image_options *options, mr_image_region window,
                         mr_image_scratch *scratch)
{
    mr_error error = {0};
    mr_tensor whole = {0};
    int channels = options->channels, plane = options->height * options->width;
    mr_image_decode_options decode = {.size = sizeof decode, .channels = channels};
    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
    int height = (int)whole.shape.dims[0], width = (int)whole.shape.dims[1];
    unsigned char *found = malloc((size_t)(plane * channels) + 1);
    found[plane * channels] = 77;
    CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, options, window, found, scratch, &error));
    for (int y = 0; y < options->height; y++)
        for (int x = 0; x < options->width; x++)
            for (int c = 0; c < channels; c++) {
                int row = shown(window.y + y, height, options->padding_mode);
                int column = shown(window.x + (window.flip ? options->width - 1 - x : x), width, options->padding_mode);
                int expected =
                    row < 0 || column < 0 ? 0 : mr_tensor_uint8s(&whole)[(row * width + column) * channels + c];
                int at = y * options->width + x;
                if (found[options->layout == MR_LAYOUT_NCHW ? c * plane + at : at * channels + c] != expected)
                    test_fail(__FILE__, __LINE__, "%d x %d at (%d, %d) of %d x %d, pad %d: (%d, %d, %d) is not %d",
                              options->width, options->height, window.x, window.y, width, height,
                              (int)options->padding_mode, x, y, c, expected);
            }
    CHECK_EQ(found[plane * channels], 77);
    free(found);
    mr_tensor_deinit(&whole);
}

TEST(image_window_is_cut_out_or_padded)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 20);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    for (int i = 0; i < 1200; i++) {
        int width = 2 + (int)mr_random_below(&random, 40), height = 2 + (int)mr_random_below(&random, 40);
        test_png_options png = test_png_kinds[i % test_png_kind_count];
        png.interlaced = i % 8 == 5;
        test_bytes file = i % 3 == 0 ? test_png(width, height, png)
                                     : test_jpeg(width, height, test_jpeg_kinds[i % test_jpeg_kind_count]);
        mr_image_options options = {.size = sizeof options,
                                    .crop = i % 2 == 0 ? MR_CROP_RANDOM_WINDOW : MR_CROP_CENTER_WINDOW,
                                    .padding_mode = i / 2 % 2 == 0 ? MR_IMAGE_PAD_REFLECT : MR_IMAGE_PAD_ZERO,
                                    .channels =
                                        i % 5 == 0 && test_jpeg_kinds[i % test_jpeg_kind_count].channels != 4 ? 1 : 3,
                                    .layout = i % 7 < 3 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC,
                                    .dtype = MR_UINT8,
                                    .random_flip_left_right = true};
        int reach = options.padding_mode == MR_IMAGE_PAD_REFLECT ? (width < height ? width : height) - 1 : 30;
        if (options.crop == MR_CROP_RANDOM_WINDOW) options.padding = (int)mr_random_below(&random, (uint64_t)reach + 1);
        int room = options.crop == MR_CROP_RANDOM_WINDOW ? options.padding : reach;
        options.width = 1 + (int)mr_random_below(&random, (uint64_t)(width + 2 * room));
        options.height = 1 + (int)mr_random_below(&random, (uint64_t)(height + 2 * room));
        CHECK_OK(mr_image_check(&options, &error));
        mr_image_region window = mr_image_choose(&options, width, height, &random);
        CHECK(window.width == options.width && window.height == options.height);
        check_window(file, &options, window, scratch);
        free(file.bytes);
    }
    mr_image_scratch_free(scratch);
}

TEST(image_window_padding_is_normalised_as_black)
{
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(4, 4, test_jpeg_kinds[2]);
    mr_image_options options = {.size = sizeof options,
                                .height = 8,
                                .width = 8,
                                .crop = MR_CROP_CENTER_WINDOW,
                                .mean = {10, 20, 30},
                                .std = {2, 4, 5},
                                .layout = MR_LAYOUT_NCHW};
    float pixels[3 * 64];
    CHECK_OK(
        mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){0}, pixels, scratch, &error));
    for (int i = 0; i < 64; i++) {
        if (i / 8 >= 2 && i / 8 < 6 && i % 8 >= 2 && i % 8 < 6) continue;
        CHECK_NEAR(pixels[i], -5, 1e-6);
        CHECK_NEAR(pixels[64 + i], -5, 1e-6);
        CHECK_NEAR(pixels[128 + i], -6, 1e-6);
    }
    mr_image_scratch_free(scratch);
    free(file.bytes);
}

/* Every offset of a padded 32 x 32 image occurs with about the same frequency in both directions. */
TEST(image_window_is_uniform)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 21);
    mr_image_options options = {
        .size = sizeof options, .height = 32, .width = 32, .crop = MR_CROP_RANDOM_WINDOW, .padding = 4};
    int seen[9][9] = {0};
    for (int i = 0; i < 81 * 100; i++) {
        mr_image_region window = mr_image_choose(&options, 32, 32, &random);
        CHECK(window.x >= -4 && window.x <= 4 && window.y >= -4 && window.y <= 4);
        seen[window.y + 4][window.x + 4]++;
    }
    for (int i = 0; i < 81; i++) CHECK(seen[i / 9][i % 9] > 40 && seen[i / 9][i % 9] < 180);
}

TEST(image_window_refuses)
{
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(10, 8, test_jpeg_kinds[2]);
    float target[40 * 40 * 3];
    const struct {
        mr_image_options options;
        mr_image_region window;
        const char *why;
    } cases[] = {
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 9, .width = 9}, {0}, "is not inside"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 15, .width = 9, .padding = 3}, {0}, "is not inside"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 4, .width = 4, .padding = 2}, {-3, 0, 4, 4, false}, "is not inside"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 4, .width = 4, .padding = 2}, {0, 7, 4, 4, false}, "is not inside"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 4, .width = 4}, {0, 0, 5, 4, false}, "is not inside"},
        {{.crop = MR_CROP_CENTER_WINDOW, .height = 4, .width = 4}, {INT32_MIN, 0, 4, 4, false}, "is not inside"},
        {{.crop = MR_CROP_CENTER_WINDOW, .height = 4, .width = 4}, {0, INT32_MAX, 4, 4, false}, "is not inside"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 4, .width = 4, .padding = 8, .padding_mode = MR_IMAGE_PAD_REFLECT},
         {0, 0, 4, 4, false},
         "cannot be padded"},
        {{.crop = MR_CROP_CENTER_WINDOW, .height = 40, .width = 4, .padding_mode = MR_IMAGE_PAD_REFLECT},
         {0},
         "padded by reflection"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mr_image_options options = cases[i].options;
        options.size = sizeof options;
        CHECK_STATUS(
            mr_image_decode_region(file.bytes, file.size_bytes, &options, cases[i].window, target, scratch, &error),
            MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, cases[i].why);
    }
    mr_image_scratch_free(scratch);
    free(file.bytes);
}
