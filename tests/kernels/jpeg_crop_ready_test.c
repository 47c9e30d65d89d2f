/* Crop-ready JPEGs: the conversion changes the bytes of a file but not its pixels. */
#include "tests/kernels/images.h"
#include "tests/test.h"

static test_bytes ready_of(test_bytes file, const mr_crop_ready_options *options, mr_crop_ready_info *info)
{
    mr_error error = {0};
    mr_tensor ready = {0};
    CHECK_OK(mr_image_crop_ready(file.bytes, file.size_bytes, options, &ready, info, &error));
    mr_string bytes = mr_tensor_strings(&ready)[0];
    test_bytes result = {malloc(bytes.size_bytes), bytes.size_bytes};
    memcpy(result.bytes, bytes.data, bytes.size_bytes);
    mr_tensor_deinit(&ready);
    return result;
}

static void check_same_pixels(test_bytes a, test_bytes b, int kind)
{
    mr_error error = {0};
    for (int way = 0; way < 4; way++) {
        mr_image_decode_options options = {.size = sizeof options,
                                           .accurate_dct = way == 1,
                                           .no_fancy_upsampling = way == 2,
                                           .ratio = way == 3 ? 2 : 1};
        mr_tensor x = {0}, y = {0};
        CHECK_OK(mr_image_decode(a.bytes, a.size_bytes, &options, &x, &error));
        CHECK_OK(mr_image_decode(b.bytes, b.size_bytes, &options, &y, &error));
        CHECK(mr_shape_equal(x.shape, y.shape));
        if (memcmp(x.data, y.data, mr_tensor_size_bytes(&x)) != 0)
            test_fail(__FILE__, __LINE__, "kind %d, way %d: other pixels", kind, way);
        mr_tensor_deinit(&x);
        mr_tensor_deinit(&y);
    }
}

TEST(crop_ready_changes_no_pixel)
{
    static const int sizes[][2] = {{75, 43}, {1, 1}, {16, 16}, {33, 61}, {64, 8}, {200, 120}, {7, 300}};
    for (int kind = 0; kind < test_jpeg_kind_count; kind++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            test_bytes file = test_jpeg(sizes[i][0], sizes[i][1], test_jpeg_kinds[kind]);
            mr_crop_ready_info info = {0};
            test_bytes ready = ready_of(file, nullptr, &info);
            check_same_pixels(file, ready, kind);
            CHECK_EQ(info.mcus_per_row % info.restart_interval, 0);
            CHECK(info.restart_interval >= 1 && info.restart_interval <= 8);
            mr_error error = {0};
            mr_image_info probed = {0};
            CHECK_OK(mr_image_probe(ready.bytes, ready.size_bytes, &probed, &error));
            CHECK(!probed.is_progressive);
            CHECK_EQ(info.source.is_progressive, test_jpeg_kinds[kind].progressive);
            /* A second conversion produces the same bytes. */
            test_bytes again = ready_of(ready, nullptr, nullptr);
            CHECK_EQ(again.size_bytes, ready.size_bytes);
            CHECK(memcmp(again.bytes, ready.bytes, ready.size_bytes) == 0);
            free(again.bytes);
            free(ready.bytes);
            free(file.bytes);
        }
}

TEST(crop_ready_takes_any_segment)
{
    test_bytes file = test_jpeg(200, 60, test_jpeg_kinds[2]);
    static const int32_t segments[] = {1, 2, 5, 13, 26, 1000, 65535};
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
        mr_crop_ready_info info = {0};
        test_bytes ready = ready_of(file, MR_OPTIONS(mr_crop_ready_options, .restart_interval = segments[i]), &info);
        CHECK_EQ(info.restart_interval, segments[i]);
        check_same_pixels(file, ready, 2);
        free(ready.bytes);
    }
    free(file.bytes);
}

/* Inserts a segment after the start marker and the APP0 segment, if there is one. */
static test_bytes with_segment(test_bytes file, int marker, const void *bytes, size_t size_bytes)
{
    size_t at = 2;
    if (file.bytes[3] == 0xe0) at += 2 + (size_t)(file.bytes[4] << 8 | file.bytes[5]);
    test_bytes result = {malloc(file.size_bytes + size_bytes + 4), file.size_bytes + size_bytes + 4};
    memcpy(result.bytes, file.bytes, at);
    unsigned char head[4] = {0xff, (unsigned char)marker, (unsigned char)((size_bytes + 2) >> 8),
                             (unsigned char)(size_bytes + 2)};
    memcpy(result.bytes + at, head, 4);
    memcpy(result.bytes + at + 4, bytes, size_bytes);
    memcpy(result.bytes + at + 4 + size_bytes, file.bytes + at, file.size_bytes - at);
    return result;
}

static bool contains(test_bytes file, const char *text)
{
    return memmem(file.bytes, file.size_bytes, text, strlen(text)) != nullptr;
}

TEST(crop_ready_leaves_metadata_out_and_keeps_the_orientation)
{
    static const unsigned char exif[] = {'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1,   0,   0x12, 1,
                                         3,   0,   1,   0,   0, 0, 6,   0,   0,  0, 0, 0, 0, 0, 'G', 'P', 'S'};
    test_bytes plain = test_jpeg(64, 64, test_jpeg_kinds[2]);
    test_bytes noted = with_segment(plain, 0xfe, "a comment", 9);
    test_bytes profiled = with_segment(noted, 0xe2, "ICC_PROFILE\0\1\1colours", 21);
    test_bytes file = with_segment(profiled, 0xe1, exif, sizeof(exif));
    mr_crop_ready_info info = {0};
    test_bytes ready = ready_of(file, nullptr, &info);
    check_same_pixels(file, ready, 2);
    CHECK(!contains(ready, "a comment") && !contains(ready, "GPS") && !contains(ready, "ICC"));
    CHECK(contains(ready, "JFIF"));
    CHECK(info.profile_dropped && info.orientation_kept);
    CHECK_EQ(info.source.orientation, 6);
    CHECK_EQ(info.metadata_bytes, 13 + 25 + sizeof(exif) + 4);
    mr_error error = {0};
    mr_image_info probed = {0};
    CHECK_OK(mr_image_probe(ready.bytes, ready.size_bytes, &probed, &error));
    CHECK_EQ(probed.orientation, 6);
    free(ready.bytes);

    mr_crop_ready_options options = {.size = sizeof options, .drop_orientation = true, .keep_icc_profile = true};
    ready = ready_of(file, &options, &info);
    CHECK(contains(ready, "ICC_PROFILE") && contains(ready, "colours") && !contains(ready, "Exif"));
    CHECK(!info.profile_dropped && !info.orientation_kept);
    CHECK_EQ(info.source.orientation, 6);
    free(ready.bytes);
    free(file.bytes);
    free(profiled.bytes);
    free(noted.bytes);
    free(plain.bytes);
}

static void check_refused(test_bytes file, mr_status expected, const char *words)
{
    mr_error error = {0};
    mr_tensor ready = {0};
    CHECK_STATUS(mr_image_crop_ready(file.bytes, file.size_bytes, nullptr, &ready, nullptr, &error), expected);
    CHECK_CONTAINS(error.message, words);
    CHECK(ready.data == nullptr);
}

TEST(crop_ready_refuses_in_words)
{
    test_bytes png = test_png(9, 9, test_png_kinds[0]);
    check_refused(png, MR_UNIMPLEMENTED, "PNG");
    free(png.bytes);
    test_bytes file = test_jpeg(64, 64, test_jpeg_kinds[2]);
    check_refused((test_bytes){file.bytes, file.size_bytes / 2}, MR_DATA_LOSS, "truncated");
    check_refused((test_bytes){file.bytes, 0}, MR_INVALID_ARGUMENT, "empty");
    file.bytes[file.size_bytes / 2] = 0xff;
    file.bytes[file.size_bytes / 2 + 1] = 0xd3;
    check_refused(file, MR_DATA_LOSS, "damaged");
    mr_error error = {0};
    mr_tensor ready = {0};
    mr_crop_ready_options options = {.size = sizeof options, .restart_interval = -1};
    CHECK_STATUS(mr_image_crop_ready(file.bytes, file.size_bytes, &options, &ready, nullptr, &error),
                 MR_INVALID_ARGUMENT);
    free(file.bytes);
    /* Truncated before a progressive file's last scan, with a regular end marker. */
    file = test_jpeg(64, 64, test_jpeg_kinds[9]);
    size_t scan = 0;
    for (size_t i = 0; i + 1 < file.size_bytes; i++)
        if (file.bytes[i] == 0xff && file.bytes[i + 1] == 0xda) scan = i;
    file.bytes[scan + 1] = 0xd9;
    check_refused((test_bytes){file.bytes, scan + 2}, MR_UNIMPLEMENTED, "lacks scans");
    free(file.bytes);
}
