/* tfrecord-make --survey and the image statistics of tfrecord-cat --stats, run as programs. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <expat.h>
#include <sys/stat.h>

static const test_jpeg_options usual = {.horizontal = 2, .vertical = 2};

static void save(const char *name, test_bytes bytes)
{
    file_save(test_path("photos/%s", name), bytes.bytes, bytes.size_bytes);
    free(bytes.bytes);
}

/* Saves twelve large images in one class and six small ones in another. */
static void make_plain(void)
{
    static const char *const directories[] = {"photos", "photos/large", "photos/small <&>"};
    for (int i = 0; i < 3; i++) mkdir(test_path("%s", directories[i]), 0777);
    for (int i = 0; i < 12; i++) {
        char name[64];
        snprintf(name, sizeof name, "large/%02d.jpg", i);
        save(name, test_jpeg(1200 + i, 900, usual));
    }
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "small <&>/%02d.png", i);
        save(name, test_png(60, 90 + i, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 8}));
    }
}

TEST(survey_advises_the_resize_that_pays)
{
    make_plain();
    const program_result *result = program_run("LC_ALL=C.UTF-8 tfrecord-make --survey %s", test_path("photos"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "18 images in 2 classes, ");
    CHECK_CONTAINS(result->output, "Classes\n  2 classes; the largest is 2 times the smallest\n");
    CHECK_CONTAINS(result->output, "  0 large      ████████████████████████████████████████  12  66.7 %\n");
    CHECK_CONTAINS(result->output, "Shorter side, pixels\n  60 to 900, half of them 60 to 900\n");
    CHECK_CONTAINS(result->output, "  33 % portrait, 0 % about square, 67 % landscape\n");
    CHECK_CONTAINS(result->output, "  4:3     ████████████████████████████████████████  12  66.7 %\n");
    CHECK_CONTAINS(result->output, "  2:3  ");
    CHECK_CONTAINS(result->output, "no faults: every image was decoded\n");
    CHECK_CONTAINS(result->output,
                   "advice: --shorter-side 512; the median shorter side is 900 pixels, and random crops of 224");
    CHECK_CONTAINS(result->output, "66.7 %");
    CHECK_CONTAINS(result->output, "measured on 12 images");
    CHECK_CONTAINS(result->output, "6 images (33.3 %) with a shorter side below the crop size of 224");
    /* A survey writes no files. */
    CHECK_STR(program_run("ls -A %s", test_directory())->output, "photos\n");
    CHECK_CONTAINS(program_run("tfrecord-make --survey --crop 448 %s", test_path("photos"))->output,
                   "advice: no resize; no image has a shorter side above 1024 pixels");
}

TEST(survey_reports_unusual_and_damaged_images)
{
    make_plain();
    mkdir(test_path("photos/odd"), 0777);
    save("odd/cmyk.jpg", test_jpeg(60, 50, (test_jpeg_options){.channels = 4}));
    save("odd/wide.png", test_png(50, 40, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 16}));
    save("odd/clear.png", test_png(50, 40, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8}));
    save("odd/name.jpg", test_png(40, 30, (test_png_options){.color_type = PNG_COLOR_TYPE_GRAY, .bits = 8}));
    test_bytes cut = test_jpeg(300, 200, usual);
    cut.size_bytes /= 2;
    save("odd/cut\n.jpg", cut);
    file_save(test_path("photos/odd/empty.jpg"), "", 0);
    file_save(test_path("photos/odd/text.jpg"), "this is no image at all", 23);
    file_save(test_path("photos/odd/moving.jpg"), "GIF89a\x20\x00\x10\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,", 20);
    CHECK_EQ(
        program_run("cp '%s' '%s'", test_path("photos/large/00.jpg"), test_path("photos/large/copy.jpg"))->exit_code,
        0);
    const program_result *result = program_run("tfrecord-make --survey %s 2>&1", test_path("photos"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(
        result->output,
        "\n1 image is CMYK, which programs decode differently; --encode jpeg converts it to RGB (odd/cmyk.jpg)\n");
    CHECK_CONTAINS(result->output, "\n1 image has 16 bits per channel");
    CHECK_CONTAINS(result->output, "\n1 image has an alpha channel\n");
    CHECK_CONTAINS(result->output,
                   "\n1 image has another format than its name indicates; its content is used (odd/name.jpg)\n");
    CHECK_CONTAINS(result->output, "1 image is a duplicate");
    CHECK_CONTAINS(result->output, "\n4 of 27 images cannot be used; --on-error skip leaves them out:\n");
    CHECK_CONTAINS(result->output, "1 file is empty (odd/empty.jpg)");
    CHECK_CONTAINS(result->output, "1 file is not an image (odd/text.jpg)");
    CHECK_CONTAINS(result->output,
                   "1 image is WebP, GIF, BMP or TIFF; --encode jpeg or png converts it (odd/moving.jpg)");
    CHECK_CONTAINS(result->output, "1 image is damaged or truncated (odd/cut\\n.jpg)");
    CHECK_CONTAINS(result->output, "  odd/moving.jpg: is GIF; --encode jpeg or --encode png converts it\n");
    CHECK_CONTAINS(result->output, "GIF  ");
    CHECK_CONTAINS(result->output, "CMYK  ");
    /* Truncated images have complete headers. */
    result = program_run("tfrecord-make --survey --no-check %s 2>&1", test_path("photos"));
    CHECK_CONTAINS(result->output, "\n3 of 27 images cannot be used");
}

TEST(survey_does_not_depend_on_threads)
{
    make_plain();
    static char one[1 << 16];
    /* Standard error is discarded because slow machines print progress. */
    static const char command[] = "tfrecord-make --survey --jobs %d %s 2>/dev/null";
    snprintf(one, sizeof one, "%s", program_run(command, 1, test_path("photos"))->output);
    CHECK_STR(program_run(command, 5, test_path("photos"))->output, one);
}

static void XMLCALL take_text(void *context, const char *text, int length)
{
    size_t used = strlen(context);
    if (used + (size_t)length < 50'000) memcpy((char *)context + used, text, (size_t)length);
}

/* The text of an SVG file; checks that it is well-formed. */
static const char *svg_text(const char *path)
{
    static char text[50'000];
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    memset(text, 0, sizeof text);
    XML_Parser parser = XML_ParserCreate("UTF-8");
    XML_SetUserData(parser, text);
    XML_SetCharacterDataHandler(parser, take_text);
    CHECK(XML_Parse(parser, (const char *)bytes, (int)size, 1) == XML_STATUS_OK);
    XML_ParserFree(parser);
    free(bytes);
    return text;
}

TEST(survey_draws_charts)
{
    make_plain();
    const char *svg = test_path("survey.svg"), *photos = test_path("photos");
    CHECK_EQ(program_run("tfrecord-make --survey --svg '%s' %s", svg, photos)->exit_code, 0);
    CHECK_CONTAINS(svg_text(svg), "18 images, ");
    CHECK_CONTAINS(svg_text(svg), "1 small <&>");
    CHECK_CONTAINS(svg_text(svg), "Shorter side, pixels");
    CHECK_CONTAINS(svg_text(svg), "Bytes of an image");
    CHECK_EQ(program_run("tfrecord-make --survey --svg /nowhere/a.svg %s", photos)->exit_code, 1);
    CHECK_EQ(program_run("tfrecord-make --svg a.svg --out x %s", photos)->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-make --survey --crop 0 %s", photos)->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-make --survey %s/none", test_directory())->exit_code, 1);
    CHECK(examples_columns(examples_on_terminal(60, "LC_ALL=C.UTF-8 tfrecord-make --survey %s", photos)) <= 60);
}

TEST(survey_of_tables_without_images)
{
    const char *table = test_path("table.csv");
    file_save(table, "a,b\n1,2\n3,4\n", 12);
    const program_result *result = program_run("tfrecord-make --survey --format table %s", table);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "there are no images to examine");
}

/* The statistics of the same images, stored as records. */
TEST(cat_stats_sums_up_images)
{
    make_plain();
    CHECK_EQ(program_run("tfrecord-make --no-check --out %s %s", test_path("records"), test_path("photos"))->exit_code,
             0);
    const program_result *result = program_run("LC_ALL=C.UTF-8 tfrecord-cat --stats %s", test_path("records"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "18 records, ");
    CHECK_CONTAINS(result->output, "\nimage/encoded  bytes\n");
    CHECK_CONTAINS(result->output, "\n  18 images\n");
    CHECK_CONTAINS(result->output, "  60 to 900, half of them 60 to 900\n");
    CHECK_CONTAINS(result->output, "  1,200 – 1,399  ████████████████████████████████████████  12  66.7 %\n");
    CHECK_CONTAINS(result->output, "  JPEG  ████████████████████████████████████████  12  66.7 %\n");
    CHECK_CONTAINS(result->output, "  1 small <&>  ████████████████████                       6  33.3 %\n");
    CHECK_CONTAINS(program_run("tfrecord-cat --stats --json %s", test_path("records"))->output,
                   "\"formats\": {\"JPEG\": 12, \"PNG\": 6}");
}
