/* Detection of formats by content, and the choice of regions. */
#include "tests/kernels/images.h"
#include "tests/test.h"

TEST(image_format_goes_by_content)
{
    static const struct {
        const char *bytes;
        size_t size_bytes;
        mr_status probe, decode;
        const char *message;
    } cases[] = {
        {"", 0, MR_INVALID_ARGUMENT, MR_INVALID_ARGUMENT, "empty"},
        {"this is a text, named .jpg", 26, MR_INVALID_ARGUMENT, MR_INVALID_ARGUMENT, "not an image"},
        {"GIF89a\x0a\x00\x14\x00", 10, MR_OK, MR_UNIMPLEMENTED, "GIF"},
        {"GIF89a", 6, MR_DATA_LOSS, MR_UNIMPLEMENTED, "GIF"},
        {"BM............\x28\x00\x00\x00\x0a\x00\x00\x00\xec\xff\xff\xff\x01\x00\x18\x00", 30, MR_OK, MR_UNIMPLEMENTED,
         "BMP"},
        {"BM............\x28\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x80\x01\x00\x18\x00", 30, MR_DATA_LOSS,
         MR_UNIMPLEMENTED, "BMP"},
        {"\xff\xd8\xff", 3, MR_DATA_LOSS, MR_DATA_LOSS, "truncated"},
        {"\x89PNG\r\n\x1a\n", 8, MR_DATA_LOSS, MR_DATA_LOSS, "truncated"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mr_error error = {0};
        mr_image_info info = {0};
        CHECK_STATUS(mr_image_probe(cases[i].bytes, cases[i].size_bytes, &info, &error), cases[i].probe);
        if (cases[i].probe == MR_OK) {
            CHECK_EQ(info.width, 10);
            CHECK_EQ(info.height, 20);
        }
        mr_tensor image = {0};
        error = (mr_error){0};
        CHECK_STATUS(mr_image_decode(cases[i].bytes, cases[i].size_bytes, nullptr, &image, &error), cases[i].decode);
        CHECK_CONTAINS(error.message, cases[i].message);
    }
}

TEST(image_sixteen_bits_of_a_jpeg)
{
    mr_error error = {0};
    test_bytes file = test_jpeg(20, 10, (test_jpeg_options){0});
    mr_tensor narrow = {0}, wide = {0};
    mr_image_decode_options options = {.size = sizeof options, .dtype = MR_UINT16};
    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, nullptr, &narrow, &error));
    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &options, &wide, &error));
    CHECK_EQ(wide.dtype, MR_UINT16);
    for (int64_t i = 0; i < mr_tensor_count(&narrow); i++)
        CHECK_EQ(((uint16_t *)wide.data)[i], mr_tensor_uint8s(&narrow)[i] * 256);
    mr_tensor_deinit(&narrow);
    mr_tensor_deinit(&wide);
    free(file.bytes);
}

static void check_inside(mr_image_region region, int32_t width, int32_t height)
{
    CHECK(region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1);
    CHECK(region.width <= width - region.x && region.height <= height - region.y);
}

TEST(image_choose_stays_inside)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 5);
    for (int i = 0; i < 4000; i++) {
        mr_image_options options = {.size = sizeof options,
                                    .crop = (mr_crop)(i % 4),
                                    .height = 1 + (int)mr_random_below(&random, 300),
                                    .width = 1 + (int)mr_random_below(&random, 300),
                                    .random_flip_left_right = true,
                                    .fraction = (float)mr_random_unit(&random)};
        int32_t width = 1 + (int)mr_random_below(&random, i % 7 == 0 ? 3 : 900);
        int32_t height = 1 + (int)mr_random_below(&random, i % 5 == 0 ? 3 : 900);
        check_inside(mr_image_choose(&options, width, height, &random), width, height);
        check_inside(mr_image_choose(&options, width, height, nullptr), width, height);
    }
}

TEST(image_choose_centre_has_the_aspect)
{
    mr_image_options options = {.size = sizeof options, .crop = MR_CROP_CENTER, .height = 100, .width = 200};
    mr_image_region region = mr_image_choose(&options, 300, 300, nullptr);
    CHECK_EQ(region.width, 300);
    CHECK_EQ(region.height, 150);
    CHECK_EQ(region.x, 0);
    CHECK_EQ(region.y, 75);
    options.fraction = 0.5f;
    region = mr_image_choose(&options, 300, 300, nullptr);
    CHECK_EQ(region.width, 150);
    CHECK_EQ(region.x, 75);
    CHECK(!region.flip);
}

/* Offsets reach both ends, half of the images are flipped, areas and aspect ratios stay within their limits. */
TEST(image_choose_covers_its_range)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 6);
    mr_image_options options = {
        .size = sizeof options, .crop = MR_CROP_RANDOM, .height = 8, .width = 8, .random_flip_left_right = true};
    int first = 0, last = 0, flips = 0;
    for (int i = 0; i < 2000; i++) {
        mr_image_region region = mr_image_choose(&options, 11, 8, &random);
        CHECK_EQ(region.width, 8);
        first += region.x == 0;
        last += region.x == 3;
        flips += region.flip;
    }
    CHECK(first > 400 && first < 600 && last > 400 && last < 600 && flips > 900 && flips < 1100);
    options = (mr_image_options){.size = sizeof options, .crop = MR_CROP_RANDOM_RESIZED, .height = 8, .width = 8};
    for (int i = 0; i < 2000; i++) {
        mr_image_region region = mr_image_choose(&options, 400, 300, &random);
        double area = (double)region.width * region.height / (400.0 * 300),
               aspect = (double)region.width / region.height;
        CHECK(area > 0.075 && area <= 1.0 && aspect > 0.72 && aspect < 1.39);
    }
}
