/* Invalid and hostile image options: they are rejected with a message, or are safe to use. */
#include "tests/kernels/images.h"
#include "tests/test.h"

#include <math.h>

TEST(image_check_refuses)
{
    mr_error error = {0};
    const struct {
        mr_image_options options;
        const char *why;
    } cases[] = {
        {{.channels = 2}, "channels"},
        {{.height = -1, .width = 5}, "cannot have"},
        {{.height = 5}, "cannot have"},
        {{.method = (mr_resize_method)9}, "resize method"},
        {{.layout = (mr_image_layout)2}, "layout"},
        {{.dtype = MR_INT32}, "int32"},
        {{.crop = (mr_crop)77}, "invalid crop 77"},
        {{.crop = MR_CROP_CENTER}, "height and width"},
        {{.crop = MR_CROP_CENTER, .height = 5, .width = 5, .fraction = NAN}, "fraction"},
        {{.fraction = -1}, "fraction"},
        {{.area_min = INFINITY}, "area_min"},
        {{.area_max = 1e30f}, "area_max"},
        {{.aspect_min = -INFINITY}, "aspect_min"},
        {{.aspect_max = NAN}, "aspect_max"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 5, .width = 5, .padding = -1}, "padding must be"},
        {{.crop = MR_CROP_RANDOM_WINDOW, .height = 5, .width = 5, .padding = INT32_MAX}, "padding must be"},
        {{.crop = MR_CROP_CENTER_WINDOW, .height = 5, .width = 5, .padding = 1}, "RANDOM_WINDOW"},
        {{.padding_mode = (mr_image_pad)2}, "padding mode 2"},
        {{.mean = {0, NAN}}, "normalized"},
        {{.std = {0, 0, INFINITY}}, "normalized"},
        {{.std = {1e-40f}}, "normalized"},
        {{.color = {.brightness = NAN}}, "brightness"},
        {{.color = {.brightness = -0.1f}}, "brightness"},
        {{.color = {.brightness = 3e38f}}, "brightness"},
        {{.color = {.contrast_min = 0.5f}}, "contrast_min"},
        {{.color = {.contrast_min = -1, .contrast_max = 1}}, "contrast_min"},
        {{.color = {.contrast_max = INFINITY}}, "contrast_max"},
        {{.color = {.saturation_min = 2, .saturation_max = 1}}, "saturation_min"},
        {{.color = {.saturation_max = NAN}}, "saturation_max"},
        {{.color = {.hue = 0.6f}}, "hue"},
        {{.color = {.hue = 0.1f}, .channels = 1}, "3 channels"},
        {{.color = {.order = {MR_COLOR_HUE}}}, "order"},
        {{.color = {.order = {MR_COLOR_DEFAULT, MR_COLOR_HUE}}}, "order"},
        {{.color = {.order = {MR_COLOR_HUE, MR_COLOR_HUE, MR_COLOR_CONTRAST, MR_COLOR_SATURATION}}}, "order"},
        {{.color = {.order = {(mr_color_step)77, MR_COLOR_HUE, MR_COLOR_CONTRAST, MR_COLOR_SATURATION}}}, "order"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mr_image_options options = cases[i].options;
        options.size = sizeof options;
        CHECK_STATUS(mr_image_check(&options, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, cases[i].why);
    }
    CHECK_OK(mr_image_check(MR_OPTIONS(mr_image_options), &error));
}

/* The same for changes that the caller specifies instead of drawing them at random. */
TEST(image_check_refuses_regions)
{
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(8, 6, test_jpeg_kinds[2]);
    float target[8 * 6 * 3];
    static const mr_image_region regions[] = {
        {.brightness = NAN}, {.brightness = -INFINITY}, {.contrast = -1},    {.contrast = NAN},
        {.contrast = 1e9f},  {.saturation = -0.5f},     {.saturation = NAN}, {.hue = 1.5f},
    };
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
        CHECK_STATUS(mr_image_decode_region(file.bytes, file.size_bytes, MR_OPTIONS(mr_image_options), regions[i],
                                            target, scratch, &error),
                     MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_decode_region(file.bytes, file.size_bytes, MR_OPTIONS(mr_image_options, .channels = 1),
                                        (mr_image_region){.hue = 0.1f}, target, scratch, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "3 channels");
    mr_image_scratch_free(scratch);
    free(file.bytes);
}

/* A random special value, or a float with random bits. */
static float wild(mr_random *random)
{
    static const float numbers[] = {0, 1, -1, 0.5f, 1e6f, 255, 1e-30f, 1e-45f, 3e38f, INFINITY, NAN, 0.08f, 2};
    uint32_t bits = mr_random_next32(random);
    float number;
    memcpy(&number, &bits, sizeof(number));
    return bits % 4 == 0 ? number : numbers[bits / 4 % (sizeof(numbers) / sizeof(numbers[0]))];
}

static int32_t wild_count(mr_random *random)
{
    static const int32_t counts[] = {0, 1, 2, 7, 20, 33, -1, INT32_MAX, INT32_MIN, 65536};
    return counts[mr_random_below(random, 10)];
}

/* All options that pass the check can be used: random numbers, for images of any size. */
TEST(image_check_lets_nothing_through_that_harms)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 22);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    test_bytes file = test_jpeg(30, 20, test_jpeg_kinds[2]);
    static unsigned char target[40 * 40 * 3 * sizeof(float)];
    int passed = 0;
    for (int i = 0; i < 60000; i++) {
        bool tame = i % 4 != 0;
        mr_image_options options = {
            .size = sizeof options,
            .height = tame ? 1 + (int)mr_random_below(&random, 40) : wild_count(&random),
            .width = tame ? 1 + (int)mr_random_below(&random, 40) : wild_count(&random),
            .channels = (int)mr_random_below(&random, 2) * 3,
            .crop = (mr_crop)mr_random_below(&random, 7),
            .padding_mode = (mr_image_pad)mr_random_below(&random, 2),
            .padding = i % 3 == 0 ? wild_count(&random) : 0,
            .random_flip_left_right = true,
            .method = (mr_resize_method)mr_random_below(&random, 4),
            .dtype = (mr_dtype[]){MR_FLOAT, MR_UINT8, MR_HALF, MR_BFLOAT16}[i % 4],
            .layout = (mr_image_layout)(i % 2),
        };
        mr_color_jitter *color = &options.color;
        float *numbers[] = {&options.fraction,    &options.area_min,    &options.area_max,      &options.aspect_min,
                            &options.aspect_max,  &options.mean[1],     &options.std[2],        &color->brightness,
                            &color->contrast_min, &color->contrast_max, &color->saturation_min, &color->saturation_max,
                            &color->hue};
        for (int k = 0; k < 3; k++) *numbers[mr_random_below(&random, 13)] = wild(&random);
        int32_t width = 1 + (int)mr_random_below(&random, 50000), height = 1 + (int)mr_random_below(&random, 50000);
        if (mr_image_check(&options, &error) != MR_OK) {
            CHECK(error.message[0] != '\0');
            continue;
        }
        passed++;
        mr_image_region region = mr_image_choose(&options, width, height, &random);
        if (options.crop < MR_CROP_RANDOM_WINDOW)
            CHECK(region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1 &&
                  region.width <= width - region.x && region.height <= height - region.y);
        if (options.height > 40 || options.width > 40 || i % 8 != 1) continue;
        region = mr_image_choose(&options, 30, 20, &random);
        (void)!mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error);
    }
    CHECK(passed > 5000);
    mr_image_scratch_free(scratch);
    free(file.bytes);
}
