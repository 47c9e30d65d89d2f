/* JPEG decoding: supported and rejected images, and their messages. tests/oracle compares the bytes with
 * TensorFlow's. */
#include "tests/kernels/images.h"
#include "tests/test.h"

static mr_status decode(test_bytes file, mr_image_decode_options options, mr_tensor *image, mr_error *error)
{
    options.size = sizeof options;
    return mr_image_decode(file.bytes, file.size_bytes, &options, image, error);
}

TEST(jpeg_probe_tells_the_header)
{
    mr_error error = {0};
    for (int i = 0; i < test_jpeg_kind_count; i++) {
        test_bytes file = test_jpeg(75, 43, test_jpeg_kinds[i]);
        mr_image_info info = {0};
        CHECK_OK(mr_image_probe(file.bytes, file.size_bytes, &info, &error));
        CHECK_EQ(info.format, MR_IMAGE_JPEG);
        CHECK_EQ(info.width, 75);
        CHECK_EQ(info.height, 43);
        CHECK_EQ(info.channels, test_jpeg_kinds[i].channels == 0 ? 3 : test_jpeg_kinds[i].channels);
        CHECK_EQ(info.is_progressive, test_jpeg_kinds[i].progressive);
        CHECK_EQ(info.orientation, 0);
        free(file.bytes);
    }
}

TEST(jpeg_probe_reads_the_orientation)
{
    static const unsigned char exif[] = {0xff, 0xe1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                         0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0};
    mr_error error = {0};
    test_bytes file = test_jpeg(16, 16, (test_jpeg_options){0});
    size_t size_bytes = file.size_bytes + sizeof(exif);
    unsigned char *bytes = malloc(size_bytes);
    memcpy(bytes, file.bytes, 2);
    memcpy(bytes + 2, exif, sizeof(exif));
    memcpy(bytes + 2 + sizeof(exif), file.bytes + 2, file.size_bytes - 2);
    mr_image_info info = {0};
    CHECK_OK(mr_image_probe(bytes, size_bytes, &info, &error));
    CHECK_EQ(info.orientation, 6);
    CHECK_EQ(info.width, 16);
    mr_tensor image = {0};
    CHECK_OK(mr_image_decode(bytes, size_bytes, nullptr, &image, &error));
    mr_tensor_deinit(&image);
    free(bytes);
    free(file.bytes);
}

TEST(jpeg_truncated_anywhere_is_an_error_or_accepted)
{
    static const int kinds[] = {0, 2, 9, 15};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        test_bytes file = test_jpeg(40, 30, test_jpeg_kinds[kinds[k]]);
        for (size_t size = 0; size < file.size_bytes; size += 1 + size / 60) {
            mr_error error = {0};
            mr_tensor image = {0};
            unsigned char *cut = malloc(size + 1); /* exact size, so that a sanitizer detects reads past the end */
            memcpy(cut, file.bytes, size);
            CHECK(mr_image_decode(cut, size, nullptr, &image, &error) != MR_OK);
            CHECK(error.message[0] != '\0' && strchr(error.message, '\n') == nullptr);
            mr_image_decode_options options = {.size = sizeof options, .try_recover_truncated = true};
            if (mr_image_decode(cut, size, &options, &image, &error) == MR_OK) mr_tensor_deinit(&image);
            free(cut);
        }
        mr_error error = {0};
        mr_tensor image = {0};
        file.size_bytes = file.size_bytes * 3 / 4;
        CHECK_STATUS(decode(file, (mr_image_decode_options){0}, &image, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, "truncated");
        CHECK_OK(decode(file, (mr_image_decode_options){.try_recover_truncated = true}, &image, &error));
        CHECK_EQ(image.shape.dims[0], 30);
        mr_tensor_deinit(&image);
        free(file.bytes);
    }
}

TEST(jpeg_flipped_bits_never_crash)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 2);
    mr_image_scratch *scratch = nullptr;
    mr_error error = {0};
    CHECK_OK(mr_image_scratch_new(&scratch, &error));
    float target[20 * 20 * 3];
    for (int i = 0; i < test_jpeg_kind_count; i++) {
        test_bytes file = test_jpeg(50, 37, test_jpeg_kinds[i]);
        for (int round = 0; round < 40; round++) {
            size_t at = mr_random_below(&random, file.size_bytes);
            unsigned char kept = file.bytes[at];
            file.bytes[at] ^= (unsigned char)(1u << mr_random_below(&random, 8));
            mr_tensor image = {0};
            mr_image_decode_options decode_options = {
                .size = sizeof decode_options, .pixels_max = 1'000'000, .accept_damaged = round % 2 != 0};
            if (decode(file, decode_options, &image, &error) == MR_OK) mr_tensor_deinit(&image);
            mr_image_options options = {.size = sizeof options, .height = 20, .width = 20, .pixels_max = 1'000'000};
            mr_image_region region = {3, 2, 30, 30, true};
            (void)!mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error);
            file.bytes[at] = kept;
        }
        /* After a failure the scratch can be used again. */
        mr_image_options options = {.size = sizeof options, .height = 20, .width = 20};
        mr_image_region region = {3, 2, 30, 30, true};
        CHECK_OK(mr_image_decode_region(file.bytes, file.size_bytes, &options, region, target, scratch, &error));
        free(file.bytes);
    }
    mr_image_scratch_free(scratch);
}

TEST(jpeg_damage_is_an_error_unless_accepted)
{
    mr_error error = {0};
    test_bytes file = test_jpeg(64, 64, (test_jpeg_options){.restart_rows = 1});
    /* A restart marker at an invalid position: the decoder loses synchronization. */
    size_t at = file.size_bytes / 2;
    file.bytes[at] = 0xff;
    file.bytes[at + 1] = 0xd5;
    mr_tensor image = {0};
    CHECK_STATUS(decode(file, (mr_image_decode_options){0}, &image, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "damaged");
    CHECK_OK(decode(file, (mr_image_decode_options){.accept_damaged = true}, &image, &error));
    mr_tensor_deinit(&image);
    free(file.bytes);
}

/* The frame header's height and width, big-endian, follow its precision. */
static void set_size(test_bytes file, int width, int height)
{
    for (size_t i = 2; i + 9 < file.size_bytes; i++)
        if (file.bytes[i] == 0xff && (file.bytes[i + 1] == 0xc0 || file.bytes[i + 1] == 0xc2)) {
            file.bytes[i + 5] = (unsigned char)(height >> 8);
            file.bytes[i + 6] = (unsigned char)height;
            file.bytes[i + 7] = (unsigned char)(width >> 8);
            file.bytes[i + 8] = (unsigned char)width;
            return;
        }
}

TEST(jpeg_huge_sizes_are_refused_before_memory_is_taken)
{
    mr_error error = {0};
    mr_tensor image = {0};
    for (int progressive = 0; progressive < 2; progressive++) {
        test_bytes file = test_jpeg(16, 16, (test_jpeg_options){.progressive = progressive != 0});
        set_size(file, 60000, 60000);
        CHECK_STATUS(decode(file, (mr_image_decode_options){0}, &image, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "60000 x 60000");
        set_size(file, 0, 10);
        CHECK(decode(file, (mr_image_decode_options){0}, &image, &error) != MR_OK);
        set_size(file, 65535, 2);
        CHECK_STATUS(decode(file, (mr_image_decode_options){0}, &image, &error), MR_INVALID_ARGUMENT);
        set_size(file, 20, 20);
        CHECK_STATUS(decode(file, (mr_image_decode_options){.pixels_max = 399}, &image, &error), MR_INVALID_ARGUMENT);
        free(file.bytes);
    }
}

/* Repeats the last scan many times: each repetition takes a pass over the image. */
TEST(jpeg_with_too_many_scans_is_refused)
{
    mr_error error = {0};
    test_bytes file = test_jpeg(16, 16, (test_jpeg_options){.channels = 1, .progressive = true});
    size_t scan = 0;
    for (size_t i = 0; i + 1 < file.size_bytes; i++)
        if (file.bytes[i] == 0xff && file.bytes[i + 1] == 0xda) scan = i;
    size_t scan_bytes = file.size_bytes - 2 - scan, count = 2000;
    test_bytes bomb = {malloc(file.size_bytes + count * scan_bytes), file.size_bytes - 2};
    memcpy(bomb.bytes, file.bytes, bomb.size_bytes);
    for (size_t i = 0; i < count; i++, bomb.size_bytes += scan_bytes)
        memcpy(bomb.bytes + bomb.size_bytes, file.bytes + scan, scan_bytes);
    bomb.bytes[bomb.size_bytes++] = 0xff;
    bomb.bytes[bomb.size_bytes++] = 0xd9;
    mr_tensor image = {0};
    mr_image_decode_options options = {.size = sizeof options, .accept_damaged = true};
    CHECK_STATUS(decode(bomb, options, &image, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "scans");
    free(bomb.bytes);
    free(file.bytes);
}

TEST(jpeg_refuses_what_it_cannot_make)
{
    mr_error error = {0};
    mr_tensor image = {0};
    test_bytes file = test_jpeg(16, 16, (test_jpeg_options){0});
    CHECK_STATUS(decode(file, (mr_image_decode_options){.channels = 4}, &image, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(decode(file, (mr_image_decode_options){.ratio = 3}, &image, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(decode(file, (mr_image_decode_options){.dtype = MR_FLOAT}, &image, &error), MR_INVALID_ARGUMENT);
    test_bytes cmyk = test_jpeg(16, 16, (test_jpeg_options){.channels = 4});
    CHECK_STATUS(decode(cmyk, (mr_image_decode_options){.channels = 1}, &image, &error), MR_UNIMPLEMENTED);
    free(cmyk.bytes);
    free(file.bytes);
}

TEST(jpeg_ratio_divides_the_size)
{
    mr_error error = {0};
    test_bytes file = test_jpeg(75, 43, (test_jpeg_options){0});
    for (int ratio = 1; ratio <= 8; ratio *= 2) {
        mr_tensor image = {0};
        CHECK_OK(decode(file, (mr_image_decode_options){.ratio = ratio}, &image, &error));
        CHECK_EQ(image.shape.dims[0], (43 + ratio - 1) / ratio);
        CHECK_EQ(image.shape.dims[1], (75 + ratio - 1) / ratio);
        mr_tensor_deinit(&image);
    }
    free(file.bytes);
}

TEST(jpeg_encode_round_trip)
{
    mr_error error = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        mr_tensor image = {0}, bytes = {0}, back = {0};
        CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(40, 56, channels), &error));
        for (int64_t i = 0; i < mr_tensor_count(&image); i++)
            mr_tensor_uint8s(&image)[i] = (uint8_t)(i / (7 * channels));
        CHECK_OK(mr_image_encode_jpeg(&image, 100, &bytes, &error));
        mr_string encoded = mr_tensor_strings(&bytes)[0];
        CHECK_OK(mr_image_decode(encoded.data, encoded.size_bytes, nullptr, &back, &error));
        CHECK(mr_shape_equal(image.shape, back.shape));
        double apart = 0;
        for (int64_t i = 0; i < mr_tensor_count(&image); i++)
            apart += abs(mr_tensor_uint8s(&image)[i] - mr_tensor_uint8s(&back)[i]);
        CHECK(apart / (double)mr_tensor_count(&image) < 6);
        mr_tensor_deinit(&image);
        mr_tensor_deinit(&bytes);
        mr_tensor_deinit(&back);
    }
}

TEST(jpeg_encode_rejects_invalid_images)
{
    mr_error error = {0};
    mr_tensor image = {0}, bytes = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(4, 4, 2), &error));
    CHECK_STATUS(mr_image_encode_jpeg(&image, 90, &bytes, &error), MR_INVALID_ARGUMENT);
    image.shape = MR_SHAPE(4, 8, 1);
    CHECK_STATUS(mr_image_encode_jpeg(&image, 101, &bytes, &error), MR_INVALID_ARGUMENT);
    image.shape = MR_SHAPE(32);
    CHECK_STATUS(mr_image_encode_jpeg(&image, 90, &bytes, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&image);
    CHECK_OK(mr_tensor_init(&image, MR_FLOAT, MR_SHAPE(4, 4, 3), &error));
    CHECK_STATUS(mr_image_encode_jpeg(&image, 90, &bytes, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_encode_png(&image, &bytes, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&image);
}
