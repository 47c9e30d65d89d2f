/* The conversion of unusual images by tfrecord-make, and of all images when options change them. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>

#include <sys/stat.h>

static void save(const char *name, test_bytes bytes)
{
    file_save(test_path("photos/%s", name), bytes.bytes, bytes.size_bytes);
    free(bytes.bytes);
}

/* The file with an EXIF orientation inserted after its start marker. */
static test_bytes with_orientation(test_bytes file, int orientation)
{
    static const unsigned char segment[36] = "\xff\xe1\0\x22"
                                             "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    test_bytes result = {malloc(file.size_bytes + 36), file.size_bytes + 36};
    memcpy(result.bytes, file.bytes, 2);
    memcpy(result.bytes + 2, segment, 36);
    result.bytes[30] = (unsigned char)orientation;
    memcpy(result.bytes + 38, file.bytes + 2, file.size_bytes - 2);
    free(file.bytes);
    return result;
}

static test_bytes animated(void)
{
    test_bytes png = test_png(40, 30, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 8});
    static const unsigned char chunk[] = "\0\0\0\x08"
                                         "acTL\0\0\0\x02\0\0\0\0\xf3\x8d\x93\x70";
    png.bytes = realloc(png.bytes, png.size_bytes + 20);
    memmove(png.bytes + 33 + 20, png.bytes + 33, png.size_bytes - 33);
    memcpy(png.bytes + 33, chunk, 20);
    png.size_bytes += 20;
    return png;
}

static const test_jpeg_options usual = {.horizontal = 2, .vertical = 2};

/* Saves one image of each unusual kind in the class "odd", and ordinary ones in "plain". */
static const char *make_odd(void)
{
    mkdir(test_path("photos"), 0777);
    mkdir(test_path("photos/odd"), 0777);
    mkdir(test_path("photos/plain"), 0777);
    for (int i = 0; i < 6; i++) save(i % 2 ? "plain/b.jpg" : "plain/a.jpg", test_jpeg(64 + i, 48, usual));
    save("odd/turn.jpg", with_orientation(test_jpeg(96, 64, usual), 6));
    save("odd/turn-odd.jpg", with_orientation(test_jpeg(97, 63, usual), 3));
    save("odd/cmyk.jpg", test_jpeg(60, 50, (test_jpeg_options){.channels = 4}));
    save("odd/wide.png", test_png(50, 40, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 16}));
    save("odd/clear.png", test_png(50, 40, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8}));
    save("odd/moves.png", animated());
    save("odd/name.jpg", test_png(40, 30, (test_png_options){.color_type = PNG_COLOR_TYPE_GRAY, .bits = 8}));
    return test_path("photos");
}

typedef struct found {
    mr_image_info info;
    int64_t height, width, channels;
    char format[8], colorspace[8];
    size_t size_bytes;
    mr_tensor pixels;
} found;

/* The record of an image, decoded. */
static found find(const char *out, const char *name)
{
    mr_error error = {0};
    char **paths = nullptr;
    int32_t count = 0;
    found found = {0};
    CHECK_OK(mr_paths_match(test_path("%s/*.tfrecord", out), &paths, &count, &error));
    for (int32_t i = 0; i < count && !found.pixels.data; i++) {
        mr_record_reader *reader = nullptr;
        mr_string record, text, encoded;
        CHECK_OK(mr_record_reader_open(paths[i], nullptr, &reader, &error));
        while (mr_record_reader_next(reader, &record, &error) == MR_OK) {
            CHECK_OK(mr_example_get_bytes(record, "image/filename", &text, &error));
            if (text.size_bytes != strlen(name) || memcmp(text.data, name, text.size_bytes) != 0) continue;
            CHECK_OK(mr_example_get_bytes(record, "image/encoded", &encoded, &error));
            CHECK_OK(mr_example_get_int64(record, "image/height", &found.height, &error));
            CHECK_OK(mr_example_get_int64(record, "image/width", &found.width, &error));
            CHECK_OK(mr_example_get_int64(record, "image/channels", &found.channels, &error));
            CHECK_OK(mr_example_get_bytes(record, "image/format", &text, &error));
            snprintf(found.format, sizeof found.format, "%.*s", (int)text.size_bytes, text.data);
            CHECK_OK(mr_example_get_bytes(record, "image/colorspace", &text, &error));
            snprintf(found.colorspace, sizeof found.colorspace, "%.*s", (int)text.size_bytes, text.data);
            found.size_bytes = encoded.size_bytes;
            CHECK_OK(mr_image_probe(encoded.data, encoded.size_bytes, &found.info, &error));
            CHECK_EQ(found.info.width, found.width);
            CHECK_EQ(found.info.height, found.height);
            CHECK_OK(mr_image_decode(encoded.data, encoded.size_bytes, nullptr, &found.pixels, &error));
            CHECK_EQ(found.pixels.shape.dims[0], found.height);
            break;
        }
        mr_record_reader_close(reader);
    }
    if (!found.pixels.data) test_fail(__FILE__, __LINE__, "%s is in no record", name);
    mr_paths_free(paths, count);
    return found;
}

static mr_tensor decoded_file(const char *name)
{
    mr_error error = {0};
    mr_tensor pixels = {0};
    size_t size;
    unsigned char *bytes = file_load(test_path("photos/%s", name), &size);
    CHECK_OK(mr_image_decode(bytes, size, nullptr, &pixels, &error));
    free(bytes);
    return pixels;
}

static double distance(const mr_tensor *a, const mr_tensor *b)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    int64_t count = mr_tensor_count(a);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += abs(mr_tensor_uint8s(a)[i] - mr_tensor_uint8s(b)[i]);
    return sum / (double)count;
}

TEST(make_passes_odd_images_and_tells_of_each)
{
    make_odd();
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "2 images have an EXIF orientation");
    CHECK_CONTAINS(result->output, "1 image is CMYK and was kept; programs decode it differently (odd/cmyk.jpg)");
    CHECK_CONTAINS(result->output,
                   "1 image has 16 bits per channel and was kept; most programs decode only 8 (odd/wide.png)");
    CHECK_CONTAINS(result->output, "1 image is animated and was kept");
    CHECK_CONTAINS(result->output,
                   "1 image has another format than its name indicates; its content was used (odd/name.jpg)");
    CHECK_CONTAINS(result->output, "9 images written");
    found found = find("out", "odd/name.jpg");
    CHECK_STR(found.format, "png");
    CHECK_STR(found.colorspace, "Gray");
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/turn.jpg");
    CHECK_EQ(found.info.orientation, 6);
    CHECK_EQ(found.width, 96);
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/cmyk.jpg");
    CHECK_STR(found.colorspace, "CMYK");
    CHECK_EQ(found.channels, 4);
    mr_tensor_deinit(&found.pixels);
    /* Remarks are repeated when existing files are reused. */
    result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_CONTAINS(result->output, "1 image is animated and was kept");
    CHECK_CONTAINS(result->output, "0 images written");
}

TEST(make_rotates_images_upright)
{
    make_odd();
    const program_result *result = program_run("cd %s; tfrecord-make --out out --upright photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 image was rotated upright losslessly (odd/turn.jpg)");
    CHECK_CONTAINS(result->output, "1 image was rotated upright and re-encoded (odd/turn-odd.jpg)");
    static const char *const names[] = {"odd/turn.jpg", "odd/turn-odd.jpg"};
    static const int orientations[] = {6, 3};
    for (int i = 0; i < 2; i++) {
        mr_error error = {0};
        mr_tensor before = decoded_file(names[i]), rotated = {0};
        CHECK_OK(mr_image_orient(&before, orientations[i], &rotated, &error));
        found found = find("out", names[i]);
        CHECK_EQ(found.info.orientation, 0);
        CHECK(distance(&rotated, &found.pixels) < 12);
        mr_tensor_deinit(&found.pixels);
        mr_tensor_deinit(&before);
        mr_tensor_deinit(&rotated);
    }
}

TEST(make_shrinks_images_and_never_enlarges)
{
    make_odd();
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --shorter-side 45 photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "5 images were shrunk");
    CHECK_CONTAINS(result->output, "1 CMYK image was converted to RGB");
    found found = find("out", "plain/a.jpg");
    CHECK_EQ(found.height, 45);
    CHECK_EQ(found.width, (68 * 45 + 24) / 48);
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/wide.png");
    CHECK_EQ(found.height, 40); /* was not larger */
    CHECK_EQ(found.info.bits, 16);
    mr_tensor_deinit(&found.pixels);
    /* The orientation is kept although the other metadata is removed. */
    found = find("out", "odd/turn.jpg");
    CHECK_EQ(found.info.orientation, 6);
    CHECK_EQ(found.height, 45);
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/cmyk.jpg");
    CHECK_STR(found.colorspace, "RGB");
    mr_tensor before = decoded_file("odd/cmyk.jpg"), scaled = {0};
    mr_error error = {0};
    CHECK_OK(mr_image_scale(&before, 45, 54, &scaled, &error));
    CHECK(distance(&scaled, &found.pixels) < 25);
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&scaled);
    mr_tensor_deinit(&found.pixels);
}

TEST(make_rotates_resizes_and_encodes_at_once)
{
    make_odd();
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --upright --shorter-side 32 --encode jpeg --quality 80 photos",
                    test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 image is transparent and was kept as PNG (odd/clear.png)");
    CHECK_CONTAINS(result->output, "1 image was reduced from 16 to 8 bits per channel (odd/wide.png)");
    CHECK_CONTAINS(result->output, "1 animated image was reduced to its first frame (odd/moves.png)");
    found found = find("out", "odd/turn.jpg");
    CHECK_EQ(found.info.orientation, 0);
    CHECK_EQ(found.width, 32);
    CHECK_EQ(found.height, 48);
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/clear.png");
    CHECK_STR(found.format, "png");
    CHECK_EQ(found.channels, 4);
    mr_tensor_deinit(&found.pixels);
    found = find("out", "odd/name.jpg");
    CHECK_STR(found.format, "jpeg");
    CHECK_STR(found.colorspace, "Gray");
    mr_tensor_deinit(&found.pixels);
    /* A single thread writes the same bytes. */
    CHECK_EQ(program_run("cd %s; tfrecord-make -j 1 --out one --upright --shorter-side 32 --encode jpeg --quality 80 "
                         "photos; for i in one/*.tfrecord; do cmp $i out/${i#one/} || exit 1; done",
                         test_directory())
                 ->exit_code,
             0);
}

TEST(make_encodes_all_jpegs_at_a_quality)
{
    make_odd();
    const program_result *result = program_run("cd %s; tfrecord-make --out out --quality 20 photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "5 images were re-encoded");
    found found = find("out", "plain/a.jpg");
    struct stat about;
    CHECK_EQ(stat(test_path("photos/plain/a.jpg"), &about), 0);
    CHECK(found.size_bytes < (size_t)about.st_size * 2 / 3);
    mr_tensor_deinit(&found.pixels);
}

TEST(make_rewrites_for_crops_without_loss)
{
    make_odd();
    const program_result *result = program_run("cd %s; tfrecord-make --out out --crop-ready photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    static const char *const names[] = {"plain/a.jpg", "plain/b.jpg", "odd/turn.jpg", "odd/cmyk.jpg", "odd/wide.png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found found = find("out", names[i]);
        mr_tensor before = decoded_file(names[i]);
        CHECK(distance(&before, &found.pixels) == 0);
        mr_tensor_deinit(&before);
        mr_tensor_deinit(&found.pixels);
    }
}

TEST(make_finds_images_that_are_there_twice)
{
    make_odd();
    CHECK_EQ(program_run(
                 "cd %s/photos; cp plain/a.jpg plain/c.jpg; cp plain/a.jpg odd/d.jpg; for i in 1 2 3 4 5 6 7 8 9; do "
                 "cp odd/wide.png odd/w$i.png; done",
                 test_directory())
                 ->exit_code,
             0);
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "10 images are duplicates");
    CHECK_CONTAINS(result->output, "1 image occurs again with another label");
    CHECK_CONTAINS(result->output, "another split than the original");
    CHECK_CONTAINS(result->output, "20 images written");
    result = program_run("cd %s; tfrecord-make --out out --duplicates drop photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "10 duplicate images were left out");
    CHECK_CONTAINS(result->output, "10 images written");
    result = program_run("cd %s; tfrecord-make --out stop --duplicates stop photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "are the same image");
    result = program_run("cd %s; tfrecord-make --out ignore --duplicates ignore photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK(!strstr(result->output, "duplicate"));
}

TEST(make_names_unsupported_formats_by_content)
{
    make_odd();
    file_save(test_path("photos/odd/web.jpg"),
              "RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x40\x01\xf0\0\0\0\0", 32);
    file_save(test_path("photos/odd/scan.jpg"), "II*\0\x08\0\0\0\0\0\0\0\0\0", 14);
    file_save(test_path("photos/odd/phone.jpg"),
              "\0\0\0\x18"
              "ftypheic\0\0\0\0mif1heic",
              24);
    file_save(test_path("photos/odd/empty.png"), "", 0);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --on-error skip photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "web.jpg: is WebP; --encode jpeg or --encode png converts it");
    CHECK_CONTAINS(result->output, "scan.jpg: is TIFF; --encode jpeg or --encode png converts it");
    CHECK_CONTAINS(result->output, "phone.jpg: is HEIC, which is not supported");
    CHECK_CONTAINS(result->output, "4 images could not be used and were left out:");
    CHECK_CONTAINS(result->output, "2 images are WebP, GIF, BMP or TIFF; --encode");
    CHECK_CONTAINS(result->output, "1 file is empty (odd/empty.png)");
}

TEST(make_compresses)
{
    make_odd();
    CHECK_EQ(program_run("cd %s; tfrecord-make --out none photos", test_directory())->exit_code, 0);
    static const char *const ways[] = {"gzip", "zlib", "seekable"};
    for (int i = 0; i < 3; i++) {
        const program_result *result = program_run(
            "cd %s; tfrecord-make --out %s --shards 3 --compress %s photos && tfrecord-make -j 1 --out %s1 --shards "
            "3 --compress %s photos",
            test_directory(), ways[i], ways[i], ways[i], ways[i]);
        CHECK_EQ(result->exit_code, 0);
        found found = find(ways[i], "odd/cmyk.jpg");
        mr_tensor_deinit(&found.pixels);
        CHECK_EQ(program_run("cd %s; for i in %s/*.tfrecord; do cmp $i %s1/${i#*/} || exit 1; done", test_directory(),
                             ways[i], ways[i])
                     ->exit_code,
                 0);
    }
    CHECK_EQ(program_run("cd %s; gzip -t < gzip/photos-train-00000-of-00003.tfrecord", test_directory())->exit_code, 0);
}

TEST(make_writes_shards_of_about_the_requested_size)
{
    mkdir(test_path("photos"), 0777);
    mkdir(test_path("photos/a"), 0777);
    for (int i = 0; i < 120; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/%d.jpg", i);
        save(name, test_jpeg(16 + i, 16 + i % 7 * 10, usual));
    }
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --split all=1 --shard-size 60K photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    char **paths = nullptr;
    int32_t count = 0;
    mr_error error = {0};
    CHECK_OK(mr_paths_match(test_path("out/*.tfrecord"), &paths, &count, &error));
    CHECK(count > 3);
    for (int32_t i = 0; i < count; i++) {
        struct stat about;
        CHECK_EQ(stat(paths[i], &about), 0);
        CHECK(about.st_size > 30 << 10 && about.st_size < 75 << 10);
    }
    mr_paths_free(paths, count);
}
