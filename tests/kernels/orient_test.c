/* Orientation: rotation of pixels and of JPEGs, and the EXIF data that specifies it. */
#include "kernels/image/exif.h"
#include "tests/kernels/images.h"
#include "tests/test.h"

/* EXIF data with three entries; the second one is the orientation. */
static const unsigned char little_exif[] = "Exif\0\0II*\0\x08\0\0\0\x03\0"
                                           "\x0f\x01\x02\0\x04\0\0\0abc\0"
                                           "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
                                           "\x1a\x01\x05\0\x01\0\0\0\x32\0\0\0"
                                           "\x11\x22\x33\x44"
                                           "\x48\0\0\0\x01\0\0\0";
static constexpr size_t EXIF_BYTES = sizeof little_exif - 1;

static test_bytes with_exif(test_bytes file, int orientation)
{
    test_bytes result = {malloc(file.size_bytes + EXIF_BYTES + 4), file.size_bytes + EXIF_BYTES + 4};
    memcpy(result.bytes, "\xff\xd8\xff\xe1", 4);
    result.bytes[4] = 0;
    result.bytes[5] = EXIF_BYTES + 2;
    memcpy(result.bytes + 6, little_exif, EXIF_BYTES);
    result.bytes[6 + 6 + 8 + 2 + 12 + 8] = (unsigned char)orientation;
    memcpy(result.bytes + 6 + EXIF_BYTES, file.bytes + 2, file.size_bytes - 2);
    return result;
}

static int orientation_of(mr_string bytes)
{
    mr_error error = {0};
    mr_image_info info = {0};
    CHECK_OK(mr_image_probe(bytes.data, bytes.size_bytes, &info, &error));
    return info.orientation;
}

static mr_tensor decoded(const void *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_tensor image = {0};
    mr_image_decode_options options = {.size = sizeof options, .accurate_dct = true, .no_fancy_upsampling = true};
    CHECK_OK(mr_image_decode(bytes, size_bytes, &options, &image, &error));
    return image;
}

/* Values differ by at most `most`, and by little on average. */
static void check_near(const mr_tensor *a, const mr_tensor *b, int most)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    const uint8_t *x = a->data, *y = b->data;
    int64_t count = mr_tensor_count(a), sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (abs(x[i] - y[i]) > most)
            test_fail(__FILE__, __LINE__, "sample %lld is %d, not %d", (long long)i, x[i], y[i]);
        sum += abs(x[i] - y[i]);
    }
    CHECK((double)sum <= 0.7 * (double)count);
}

TEST(orient_moves_each_corner)
{
    /* An image of 3 x 2 pixels, and the result that the standard requires. */
    static const char *const upright[] = {"abcdef", "cbafed", "fedcba", "defabc",
                                          "adbecf", "daebfc", "fcebda", "cfbead"};
    mr_error error = {0};
    mr_tensor image = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(2, 3, 1), &error));
    memcpy(image.data, "abcdef", 6);
    for (int i = 1; i <= 8; i++) {
        mr_tensor turned = {0};
        CHECK_OK(mr_image_orient(&image, i, &turned, &error));
        CHECK_EQ(turned.shape.dims[0], i < 5 ? 2 : 3);
        if (memcmp(turned.data, upright[i - 1], 6) != 0)
            test_fail(__FILE__, __LINE__, "orientation %d gives %.6s", i, (char *)turned.data);
        mr_tensor_deinit(&turned);
    }
    mr_tensor turned = {0};
    CHECK_STATUS(mr_image_orient(&image, 0, &turned, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_orient(&image, 9, &turned, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&image);
}

TEST(upright_jpeg_is_the_rotated_image)
{
    for (int kind = 0; kind < test_jpeg_kind_count; kind++)
        for (int orientation = 2; orientation <= 8; orientation++) {
            mr_error error = {0};
            test_bytes plain = test_jpeg(96, 64, test_jpeg_kinds[kind]), file = with_exif(plain, orientation);
            mr_tensor result = {0}, turned = {0};
            CHECK_OK(mr_image_orient_jpeg(file.bytes, file.size_bytes, &result, &error));
            mr_string upright = mr_tensor_strings(&result)[0];
            CHECK_EQ(orientation_of(upright), 0);
            mr_tensor before = decoded(file.bytes, file.size_bytes), after = decoded(upright.data, upright.size_bytes);
            CHECK_OK(mr_image_orient(&before, orientation, &turned, &error));
            /* Differences are due to rounding: the decoder rounds columns, then rows, halves up; color conversion
             * follows. */
            check_near(&after, &turned, 6);
            mr_tensor_deinit(&turned);
            mr_tensor_deinit(&before);
            mr_tensor_deinit(&after);
            mr_tensor_deinit(&result);
            free(plain.bytes);
            free(file.bytes);
        }
}

TEST(upright_jpeg_loses_nothing)
{
    mr_error error = {0};
    test_bytes plain = test_jpeg(96, 64, test_jpeg_kinds[2]), file = with_exif(plain, 6);
    mr_tensor right = {0}, back = {0};
    CHECK_OK(mr_image_orient_jpeg(file.bytes, file.size_bytes, &right, &error));
    mr_string upright = mr_tensor_strings(&right)[0];
    test_bytes left = with_exif((test_bytes){(unsigned char *)upright.data, upright.size_bytes}, 8);
    CHECK_OK(mr_image_orient_jpeg(left.bytes, left.size_bytes, &back, &error));
    mr_string same = mr_tensor_strings(&back)[0];
    mr_tensor before = decoded(plain.bytes, plain.size_bytes), after = decoded(same.data, same.size_bytes);
    check_near(&after, &before, 0);
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&after);
    mr_tensor_deinit(&right);
    mr_tensor_deinit(&back);
    free(plain.bytes);
    free(file.bytes);
    free(left.bytes);
}

TEST(upright_jpeg_refuses_what_would_not_be_exact)
{
    mr_error error = {0};
    mr_tensor result = {0};
    test_bytes plain = test_jpeg(100, 64, test_jpeg_kinds[2]);
    static const int exact[] = {4, 5, 6};
    for (int orientation = 1; orientation <= 8; orientation++) {
        test_bytes file = with_exif(plain, orientation);
        bool is_exact = orientation == 1;
        for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) is_exact |= exact[i] == orientation;
        CHECK_STATUS(mr_image_orient_jpeg(file.bytes, file.size_bytes, &result, &error),
                     is_exact ? MR_OK : MR_FAILED_PRECONDITION);
        if (is_exact) mr_tensor_deinit(&result);
        for (size_t size = 0; is_exact && size < file.size_bytes - 2; size += 97)
            CHECK(mr_image_orient_jpeg(file.bytes, size, &result, &error) != MR_OK);
        free(file.bytes);
    }
    CHECK_STATUS(mr_image_orient_jpeg(plain.bytes, plain.size_bytes, &result, &error), MR_FAILED_PRECONDITION);
    free(plain.bytes);
}

TEST(exif_orientation_is_taken_out_and_nothing_else)
{
    unsigned char bytes[EXIF_BYTES - 6];
    memcpy(bytes, little_exif + 6, sizeof bytes);
    CHECK_EQ(mr_exif_orientation(bytes, sizeof bytes), 6);
    mr_exif_remove_orientation(bytes, sizeof bytes);
    CHECK_EQ(mr_exif_orientation(bytes, sizeof bytes), 0);
    CHECK_EQ(bytes[8], 2);
    CHECK(memcmp(bytes + 10, little_exif + 16, 12) == 0);     /* the Make tag */
    CHECK(memcmp(bytes + 22, little_exif + 40, 12 + 4) == 0); /* the resolution and the next directory */
    CHECK(memcmp(bytes + 50, little_exif + 56, 8) == 0);      /* the value of the resolution */
    /* Truncated at any position, no byte after the end is read. */
    for (size_t size = 0; size <= sizeof bytes; size++) {
        unsigned char *copy = malloc(size + 1);
        memcpy(copy, little_exif + 6, size);
        CHECK_EQ(mr_exif_orientation(copy, size), size < 34 ? 0 : 6);
        mr_exif_remove_orientation(copy, size);
        CHECK_EQ(mr_exif_orientation(copy, size), 0);
        free(copy);
    }
}
