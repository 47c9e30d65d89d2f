/* Integer scaling: constant images stay constant, averages are preserved, and colors do not bleed at alpha edges. */
#include "tests/kernels/images.h"
#include "tests/test.h"

static mr_tensor filled(mr_dtype dtype, int64_t height, int64_t width, int64_t channels, const int *pixel)
{
    mr_error error = {0};
    mr_tensor image = {0};
    CHECK_OK(mr_tensor_init(&image, dtype, MR_SHAPE(height, width, channels), &error));
    for (int64_t i = 0; i < height * width * channels; i++)
        if (dtype == MR_UINT8)
            ((uint8_t *)image.data)[i] = (uint8_t)pixel[i % channels];
        else
            ((uint16_t *)image.data)[i] = (uint16_t)pixel[i % channels];
    return image;
}

TEST(scale_keeps_a_flat_colour)
{
    static const int64_t sizes[][2] = {{1, 1}, {7, 9}, {100, 3}, {3, 400}, {41, 53}};
    static const int wide[] = {65535, 0, 4711, 65535}, narrow[] = {255, 0, 47, 255};
    mr_error error = {0};
    for (size_t from = 0; from < 5; from++)
        for (size_t to = 0; to < 5; to++)
            for (int channels = 1; channels <= 4; channels++) {
                mr_dtype dtype = (from + to) % 2 == 0 ? MR_UINT8 : MR_UINT16;
                const int *pixel = dtype == MR_UINT8 ? narrow : wide;
                mr_tensor image = filled(dtype, sizes[from][0], sizes[from][1], channels, pixel), scaled = {0};
                for (int64_t i = 1; channels == 2 && i < mr_tensor_count(&image); i += 2) { /* alpha: opaque */
                    if (dtype == MR_UINT8)
                        ((uint8_t *)image.data)[i] = 255;
                    else
                        ((uint16_t *)image.data)[i] = 65535;
                }
                CHECK_OK(mr_image_scale(&image, sizes[to][0], sizes[to][1], &scaled, &error));
                CHECK_EQ(mr_tensor_count(&scaled), sizes[to][0] * sizes[to][1] * channels);
                size_t pixel_bytes = (size_t)channels * mr_dtype_size(dtype);
                for (int64_t i = 0; i < sizes[to][0] * sizes[to][1]; i++)
                    CHECK(memcmp((char *)scaled.data + (size_t)i * pixel_bytes, image.data, pixel_bytes) == 0);
                mr_tensor_deinit(&scaled);
                mr_tensor_deinit(&image);
            }
}

TEST(scale_takes_every_pixel_in)
{
    mr_error error = {0};
    mr_tensor image = {0}, scaled = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(640, 480, 3), &error));
    unsigned char *pixels = test_pixels(480, 640, 3, 3);
    memcpy(image.data, pixels, 640 * 480 * 3);
    CHECK_OK(mr_image_scale(&image, 8, 6, &scaled, &error));
    /* The mean of the source is close to the mean of the result. */
    double before[3] = {0}, after[3] = {0};
    for (int i = 0; i < 640 * 480 * 3; i++) before[i % 3] += pixels[i] / (640.0 * 480);
    for (int i = 0; i < 8 * 6 * 3; i++) after[i % 3] += mr_tensor_uint8s(&scaled)[i] / (8.0 * 6);
    for (int c = 0; c < 3; c++) CHECK_NEAR(after[c], before[c], 1.5);
    free(pixels);
    mr_tensor_deinit(&scaled);
    mr_tensor_deinit(&image);
}

TEST(scale_to_the_same_size_changes_nothing)
{
    mr_error error = {0};
    mr_tensor image = {0}, scaled = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(33, 47, 3), &error));
    unsigned char *pixels = test_pixels(47, 33, 3, 5);
    memcpy(image.data, pixels, 33 * 47 * 3);
    CHECK_OK(mr_image_scale(&image, 33, 47, &scaled, &error));
    CHECK(memcmp(scaled.data, pixels, 33 * 47 * 3) == 0);
    free(pixels);
    mr_tensor_deinit(&scaled);
    mr_tensor_deinit(&image);
}

TEST(scale_lets_transparent_pixels_have_no_colour)
{
    mr_error error = {0};
    mr_tensor image = {0}, scaled = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(64, 64, 4), &error));
    for (int i = 0; i < 64 * 64; i++) { /* opaque red on the left, transparent green on the right */
        static const uint8_t left[] = {250, 0, 0, 255}, right[] = {0, 255, 0, 0};
        memcpy((uint8_t *)image.data + 4 * (size_t)i, i % 64 < 31 ? left : right, 4);
    }
    CHECK_OK(mr_image_scale(&image, 8, 8, &scaled, &error));
    for (int i = 0; i < 64; i++) {
        const uint8_t *pixel = mr_tensor_uint8s(&scaled) + 4 * (size_t)i;
        if (pixel[3] < 10) continue;
        CHECK_NEAR(pixel[0], 250, 8);
        CHECK_NEAR(pixel[1], 0, 8);
    }
    mr_tensor_deinit(&scaled);
    mr_tensor_deinit(&image);
}

TEST(scale_refuses_what_is_no_image)
{
    mr_error error = {0};
    mr_tensor image = {0}, scaled = {0};
    CHECK_OK(mr_tensor_init(&image, MR_FLOAT, MR_SHAPE(4, 4, 3), &error));
    CHECK_STATUS(mr_image_scale(&image, 2, 2, &scaled, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&image);
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(4, 4, 3), &error));
    CHECK_STATUS(mr_image_scale(&image, 0, 2, &scaled, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_scale(&image, 2, 1 << 21, &scaled, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&image);
}

TEST(probe_names_images_that_are_not_decoded)
{
    static const struct {
        const char *bytes;
        size_t size_bytes;
        mr_image_format format;
        mr_status status;
        int width, height;
        bool animated;
    } files[] = {
        {"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x40\x01\xf0\0\0\0\0", 32, MR_IMAGE_WEBP, MR_OK, 320,
         240, false},
        {"RIFF\x24\0\0\0WEBPVP8L\x18\0\0\0\x2f\x3f\xc1\x3b\0\0\0\0\0\0\0\0\0", 32, MR_IMAGE_WEBP, MR_OK, 320, 240,
         false},
        {"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x3f\x01\0\xef\0\0\0\0", 32, MR_IMAGE_WEBP, MR_OK, 320, 240, true},
        {"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0", 20, MR_IMAGE_WEBP, MR_DATA_LOSS, 0, 0, false},
        {"II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x40\x01\0\0\x01\x01\x04\0\x01\0\0\0\xf0\0\0\0", 34, MR_IMAGE_TIFF,
         MR_UNIMPLEMENTED, 320, 240, false},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0mif1heic",
         24, MR_IMAGE_HEIC, MR_UNIMPLEMENTED, 0, 0, false},
        {"\0\0\0\x18"
         "ftypmif1\0\0\0\0mif1avif",
         24, MR_IMAGE_AVIF, MR_UNIMPLEMENTED, 0, 0, false},
        {"\0\0\0\x18"
         "ftypisom\0\0\0\0isommp41",
         24, MR_IMAGE_UNKNOWN, MR_INVALID_ARGUMENT, 0, 0, false},
        {"\xff\x0a\0\0", 4, MR_IMAGE_JPEG_XL, MR_UNIMPLEMENTED, 0, 0, false},
        {"GIF89a\x40\x01\xf0\0\0\0\0,\0\0\0\0\x40\x01\xf0\0\0\x02\x01x\0,\0\0\0\0\x40\x01\xf0\0\0\x02\x01x\0;", 42,
         MR_IMAGE_GIF, MR_OK, 320, 240, true},
        {"GIF89a\x40\x01\xf0\0\0\0\0!\xf9\x04qqqq\0,\0\0\0\0\x40\x01\xf0\0\0\x02\x01x\0;", 36, MR_IMAGE_GIF, MR_OK, 320,
         240, false},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        mr_error error = {0};
        mr_image_info info = {0};
        mr_tensor image = {0};
        unsigned char *copy =
            malloc(files[i].size_bytes); /* exact size, so that a sanitizer detects reads past the end */
        memcpy(copy, files[i].bytes, files[i].size_bytes);
        CHECK_STATUS(mr_image_probe(copy, files[i].size_bytes, &info, &error), files[i].status);
        CHECK_EQ(info.format, files[i].format);
        CHECK_EQ(info.width, files[i].width);
        CHECK_EQ(info.height, files[i].height);
        CHECK_EQ(info.is_animated, files[i].animated);
        mr_status status = mr_image_decode(copy, files[i].size_bytes, nullptr, &image, &error);
        CHECK_EQ(status, files[i].format == MR_IMAGE_UNKNOWN ? MR_INVALID_ARGUMENT : MR_UNIMPLEMENTED);
        for (size_t size = 0; size < files[i].size_bytes; size++) {
            unsigned char *cut = malloc(size + 1);
            memcpy(cut, files[i].bytes, size);
            (void)mr_image_probe(cut, size, &info, &error);
            free(cut);
        }
        free(copy);
    }
}
