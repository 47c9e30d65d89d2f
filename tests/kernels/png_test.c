/* PNG: every kind of header, damage, and round trips. tests/oracle compares the bytes with TensorFlow's. */
#include "tests/kernels/images.h"
#include "tests/test.h"

TEST(png_probe_tells_the_header)
{
    static const int channels[] = {[PNG_COLOR_TYPE_GRAY] = 1,
                                   [PNG_COLOR_TYPE_RGB] = 3,
                                   [PNG_COLOR_TYPE_PALETTE] = 3,
                                   [PNG_COLOR_TYPE_GRAY_ALPHA] = 2,
                                   [PNG_COLOR_TYPE_RGB_ALPHA] = 4};
    mr_error error = {0};
    for (int i = 0; i < test_png_kind_count; i++) {
        test_png_options kind = test_png_kinds[i];
        kind.interlaced = i % 2 == 1;
        test_bytes file = test_png(31, 22, kind);
        mr_image_info info = {0};
        CHECK_OK(mr_image_probe(file.bytes, file.size_bytes, &info, &error));
        CHECK_EQ(info.format, MR_IMAGE_PNG);
        CHECK_EQ(info.width, 31);
        CHECK_EQ(info.height, 22);
        CHECK_EQ(info.bits, kind.bits == 16 ? 16 : 8);
        CHECK_EQ(info.is_progressive, kind.interlaced);
        CHECK_EQ(info.channels,
                 channels[kind.color_type] + (kind.transparent && kind.color_type == PNG_COLOR_TYPE_PALETTE));
        free(file.bytes);
    }
}

TEST(png_interlaced_equals_plain)
{
    mr_error error = {0};
    for (int i = 0; i < test_png_kind_count; i++)
        for (int channels = 0; channels <= 4; channels++)
            for (int wide = 0; wide < 2; wide++) {
                mr_image_decode_options options = {
                    .size = sizeof options, .channels = channels, .dtype = wide ? MR_UINT16 : MR_UINT8};
                mr_tensor images[2] = {0};
                for (int interlaced = 0; interlaced < 2; interlaced++) {
                    test_png_options kind = test_png_kinds[i];
                    kind.interlaced = interlaced != 0;
                    test_bytes file = test_png(23, 17, kind);
                    CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &options, &images[interlaced], &error));
                    free(file.bytes);
                }
                CHECK(mr_shape_equal(images[0].shape, images[1].shape));
                CHECK(memcmp(images[0].data, images[1].data, mr_tensor_size_bytes(&images[0])) == 0);
                mr_tensor_deinit(&images[0]);
                mr_tensor_deinit(&images[1]);
            }
}

TEST(png_region_equals_a_crop)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 3);
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    for (int i = 0; i < test_png_kind_count * 2; i++) {
        test_png_options kind = test_png_kinds[i / 2];
        kind.interlaced = i % 2 == 1;
        int width = 41, height = 29, channels = i % 3 == 0 ? 1 : 3;
        test_bytes file = test_png(width, height, kind);
        mr_image_decode_options decode = {.size = sizeof decode, .channels = channels};
        mr_tensor whole = {0};
        CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &decode, &whole, &error));
        for (int round = 0; round < 8; round++) {
            int w = 1 + (int)mr_random_below(&random, 41), h = 1 + (int)mr_random_below(&random, 29);
            mr_image_region region = {(int)mr_random_below(&random, (uint64_t)(width - w + 1)),
                                      (int)mr_random_below(&random, (uint64_t)(height - h + 1)), w, h, false};
            mr_image_options options = {.size = sizeof options, .channels = channels, .dtype = MR_UINT8};
            unsigned char target[41 * 29 * 3];
            CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error));
            for (int y = 0; y < h; y++) {
                const unsigned char *row =
                    mr_tensor_uint8s(&whole) + (size_t)(((region.y + y) * width + region.x) * channels);
                CHECK(memcmp(target + (size_t)(y * w * channels), row, (size_t)(w * channels)) == 0);
            }
        }
        mr_tensor_deinit(&whole);
        free(file.bytes);
    }
    mr_image_scratch_free(scratch);
}

TEST(png_truncated_anywhere_is_an_error)
{
    test_bytes file = test_png(40, 30, test_png_kinds[9]);
    for (size_t size = 0; size < file.size_bytes; size += 1 + size / 80) {
        mr_error error = {0};
        mr_tensor image = {0};
        unsigned char *cut = malloc(size + 1);
        memcpy(cut, file.bytes, size);
        CHECK(mr_image_decode(cut, size, nullptr, &image, &error) != MR_OK);
        CHECK(error.message[0] != '\0');
        free(cut);
    }
    free(file.bytes);
}

TEST(png_flipped_bits_never_crash)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 4);
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    float target[20 * 20 * 3];
    int refused = 0, rounds = 0;
    for (int i = 0; i < test_png_kind_count; i++) {
        test_png_options kind = test_png_kinds[i];
        kind.interlaced = i % 2 == 0;
        test_bytes file = test_png(33, 33, kind);
        for (int round = 0; round < 30; round++, rounds++) {
            size_t at = mr_random_below(&random, file.size_bytes);
            unsigned char kept = file.bytes[at];
            file.bytes[at] ^= (unsigned char)(1u << mr_random_below(&random, 8));
            mr_tensor image = {0};
            mr_image_decode_options decode = {.size = sizeof decode, .pixels_max = 1'000'000};
            if (mr_image_decode(file.bytes, file.size_bytes, &decode, &image, &error) == MR_OK)
                mr_tensor_deinit(&image);
            else
                refused++;
            mr_image_options options = {.size = sizeof options, .height = 20, .width = 20, .pixels_max = 1'000'000};
            (void)!mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){1, 2, 30, 20, true},
                                          target, scratch, &error);
            file.bytes[at] = kept;
        }
        mr_image_options options = {.size = sizeof options, .height = 20, .width = 20};
        CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, (mr_image_region){1, 2, 30, 20, true},
                                        target, scratch, &error));
        free(file.bytes);
    }
    mr_image_scratch_free(scratch);
    CHECK(refused > rounds * 9 / 10); /* each chunk has a checksum */
}

TEST(png_huge_sizes_are_refused_before_memory_is_taken)
{
    mr_error error = {0};
    mr_tensor image = {0};
    test_bytes file = test_png(16, 16, test_png_kinds[9]);
    memcpy(file.bytes + 16, "\x00\x0f\x00\x00\x00\x0f\x00\x00", 8);
    CHECK_STATUS(mr_image_decode(file.bytes, file.size_bytes, nullptr, &image, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "983040 x 983040");
    memcpy(file.bytes + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
    CHECK_STATUS(mr_image_decode(file.bytes, file.size_bytes, nullptr, &image, &error), MR_INVALID_ARGUMENT);
    memcpy(file.bytes + 16, "\xff\xff\xff\xff\x00\x00\x00\x01", 8);
    CHECK_STATUS(mr_image_decode(file.bytes, file.size_bytes, nullptr, &image, &error), MR_DATA_LOSS);
    free(file.bytes);
}

TEST(png_encode_round_trip)
{
    mr_error error = {0};
    for (int channels = 1; channels <= 4; channels++)
        for (int wide = 0; wide < 2; wide++) {
            mr_tensor image = {0}, bytes = {0}, back = {0};
            mr_dtype dtype = wide ? MR_UINT16 : MR_UINT8;
            CHECK_OK(mr_tensor_init(&image, dtype, MR_SHAPE(13, 19, channels), &error));
            for (size_t i = 0; i < mr_tensor_size_bytes(&image); i++)
                ((uint8_t *)image.data)[i] = (uint8_t)(i * 29 + i / 7);
            CHECK_OK(mr_image_encode_png(&image, &bytes, &error));
            mr_string encoded = mr_tensor_strings(&bytes)[0];
            mr_image_decode_options options = {.size = sizeof options, .dtype = dtype};
            CHECK_OK(mr_image_decode(encoded.data, encoded.size_bytes, &options, &back, &error));
            CHECK(mr_shape_equal(image.shape, back.shape));
            CHECK(memcmp(image.data, back.data, mr_tensor_size_bytes(&image)) == 0);
            mr_tensor_deinit(&image);
            mr_tensor_deinit(&bytes);
            mr_tensor_deinit(&back);
        }
}
