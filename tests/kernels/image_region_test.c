/* The fused path beside a plain decode, a crop and a resize. */
#include "kernels/image_rows.h"
#include "tests/kernels/pictures.h"
#include "tests/test.h"

static void check_crop(test_bytes file, const mr_tensor *whole, mr_image_region region, int channels,
                       unsigned char *target, mr_image_scratch *scratch, int kind)
{
    mr_error error = {0};
    mr_image_options options = {.dtype = MR_UINT8, .channels = channels};
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
    mr_image_decode_options decode = {.channels = channels};
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

TEST(image_region_equals_a_crop_of_the_whole_picture)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0);
    for (int kind = 0; kind < test_jpeg_kind_count; kind++)
        for (int size = 0; size < 12; size++) {
            int width = 1 + (int)mr_random_below(&random, 150), height = 1 + (int)mr_random_below(&random, 110);
            check_crops(kind, width, height, test_jpeg_kinds[kind].channels == 4 || size % 4 != 3 ? 3 : 1, 30, &random);
        }
}

/* Every place of a small window: all phases against the blocks. */
TEST(image_region_equals_a_crop_at_every_offset)
{
    mr_error error = {0};
    for (int kind = 0; kind < test_jpeg_kind_count; kind++) {
        int width = 75, height = 43;
        test_bytes file = test_jpeg(width, height, test_jpeg_kinds[kind]);
        mr_image_decode_options decode = {.channels = 3};
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
