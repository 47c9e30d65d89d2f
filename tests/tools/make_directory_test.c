/* Irregular input directories of tfrecord-make: links that form loops, directories without images, a single class, and
 * directories that cannot be read. Also the counts of the survey. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"
#include "tools/common/stats/images.h"

#include <sys/stat.h>

static void save_jpeg(const char *name, int32_t width, int32_t height)
{
    test_bytes bytes = test_jpeg(width, height, (test_jpeg_options){.horizontal = 2, .vertical = 2});
    file_save(test_path("photos/%s", name), bytes.bytes, bytes.size_bytes);
    free(bytes.bytes);
}

/* Saves two classes of two images each. */
static void make_photos(void)
{
    static const char *const directories[] = {"photos", "photos/cat", "photos/dog"};
    for (int i = 0; i < 3; i++) mkdir(test_path("%s", directories[i]), 0777);
    save_jpeg("cat/1.jpg", 40, 30);
    save_jpeg("cat/2.jpg", 41, 30);
    save_jpeg("dog/1.jpg", 42, 30);
    save_jpeg("dog/2.jpg", 43, 30);
}

TEST(make_reports_cyclic_links_and_continues)
{
    make_photos();
    mkdir(test_path("photos/cat/deep"), 0777);
    save_jpeg("cat/deep/3.jpg", 44, 30);
    CHECK_EQ(symlink("..", test_path("photos/cat/up")), 0);               /* to the input itself */
    CHECK_EQ(symlink("../../cat", test_path("photos/cat/deep/back")), 0); /* to the class */
    CHECK_EQ(symlink(".", test_path("photos/self")), 0);                  /* to its own directory */
    CHECK_EQ(symlink("../cat/deep", test_path("photos/dog/more")), 0);    /* no loop: its images count */
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    /* dog/more/back leads to cat, whose deep leads back to itself. up and back lead to directories that are
     * being read. */
    CHECK_CONTAINS(result->output,
                   "links point to a directory that contains them, and were not followed: cat/deep/back, …");
    CHECK_CONTAINS(result->output, " in 2 classes, ");
    CHECK(strstr(result->output, "contains no images") == nullptr);
    CHECK_CONTAINS(program_run("cd %s; tfrecord-make --survey photos", test_directory())->output,
                   "links point to a directory");
}

TEST(make_names_a_single_link_that_leads_back)
{
    make_photos();
    CHECK_EQ(symlink("..", test_path("photos/cat/up")), 0);
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "photos: 4 images in 2 classes, ");
    CHECK_CONTAINS(result->output, "  1 link points to a directory that contains it, and was not followed: cat/up\n");
}

TEST(make_reads_directories_of_any_depth)
{
    make_photos();
    char path[512] = "cat";
    for (int i = 0; i < 60; i++) {
        strcat(path, "/d");
        mkdir(test_path("photos/%s", path), 0777);
    }
    strcat(path, "/3.jpg");
    save_jpeg(path, 44, 30);
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "photos: 5 images in 2 classes, ");
}

TEST(make_names_directories_without_images)
{
    make_photos();
    mkdir(test_path("photos/empty"), 0777);
    const program_result *result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "\n  1 directory contains no images and is not a class: empty\n");
    mkdir(test_path("photos/notes"), 0777);
    file_save(test_path("photos/notes/a.txt"), "a", 1);
    result = program_run("cd %s; tfrecord-make --out out photos", test_directory());
    CHECK_CONTAINS(result->output, "\n  2 directories contain no images and are not classes: empty, …\n");
    CHECK_CONTAINS(result->output, "notes/a.txt");
}

TEST(make_warns_of_a_single_label)
{
    make_photos();
    CHECK(strstr(program_run("cd %s; tfrecord-make --out out photos", test_directory())->output, "warning") == nullptr);
    CHECK_EQ(program_run("rm -r %s", test_path("photos/dog"))->exit_code, 0);
    static const char warning[] = "  warning: all images have the same label, 0 (cat): there is nothing to learn\n";
    CHECK_CONTAINS(program_run("cd %s; tfrecord-make --out one photos", test_directory())->output, warning);
    CHECK_CONTAINS(program_run("cd %s; tfrecord-make --survey photos", test_directory())->output, warning);
    file_save(test_path("photos/list.csv"), "path,label\ncat/1.jpg,3\ncat/2.jpg,3\n", 35);
    CHECK_CONTAINS(program_run("cd %s; tfrecord-make --out two photos/list.csv", test_directory())->output,
                   "have the same label, 3: there is nothing to learn");
}

TEST(make_names_a_directory_that_cannot_be_read)
{
    make_photos();
    if (program_run("setpriv --reuid=65534 --clear-groups true")->exit_code != 0) test_skip("needs root and setpriv");
    CHECK_EQ(chmod(test_path("photos/dog"), 0), 0);
    mkdir(test_path("out"), 0777);
    CHECK_EQ(chmod(test_path("out"), 0777), 0);
    CHECK_EQ(chmod(test_directory(), 0755), 0);
    const program_result *result = program_run(
        "cd %s; chmod 755 . ..; setpriv --reuid=65534 --clear-groups tfrecord-make --out out photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos/dog: permission denied");
    CHECK_STR(program_run("ls -A %s/out", test_directory())->output, "");
}

TEST(survey_charts_exclude_unusable_images)
{
    make_photos();
    test_bytes cut = test_jpeg(3000, 2000, (test_jpeg_options){.horizontal = 2, .vertical = 2});
    file_save(test_path("photos/cat/cut.jpg"), cut.bytes, cut.size_bytes / 2);
    free(cut.bytes);
    file_save(test_path("photos/dog/moving.gif.jpg"), "GIF89a\x20\x4e\x10\x4e\x80\x00\x00\x00\x00\x00\xff\xff\xff,",
              20);
    const program_result *result = program_run("tfrecord-make --survey %s", test_path("photos"));
    CHECK_CONTAINS(result->output, "2 of 6 images cannot be used");
    CHECK_CONTAINS(result->output, "Longer side, pixels\n  40 to 43,");
    CHECK(strstr(result->output, "2,000") == nullptr);
    CHECK_CONTAINS(result->output, "advice: no resize; no image has a shorter side above");
    /* Without the check only headers are read, and this one is valid. */
    result = program_run("tfrecord-make --survey --no-check %s", test_path("photos"));
    CHECK_CONTAINS(result->output, "1 of 6 images cannot be used");
    CHECK_CONTAINS(result->output, "Longer side, pixels\n  40 to 3,000,");
}

/* Prints a chart of images with distinct sizes in bytes and only a few distinct sides. */
static const char *chart_text(int count, const char *title, bool is_utf8)
{
    static char text[1 << 14];
    static chart charts[IMAGES_CHARTS_MAX];
    images images = {0};
    for (int i = 0; i < count; i++) {
        mr_image_info info = {.format = MR_IMAGE_JPEG, .width = 100 + i % 7, .height = 80, .channels = 3, .bits = 8};
        CHECK(images_add(&images, MR_OK, &info, (size_t)(10'000 + 97 * (i * 31 % count))));
    }
    CHECK(images_flush(&images));
    int made = images_charts(&images, 10, charts);
    FILE *file = fmemopen(text, sizeof text, "w");
    for (int i = 0; i < made; i++)
        if (strcmp(charts[i].title, title) == 0) chart_print(file, &charts[i], 80, is_utf8);
    fclose(file);
    images_deinit(&images);
    return text;
}

TEST(survey_marks_counts_that_are_estimates)
{
    CHECK(strstr(chart_text(512, "Bytes of an image", true), "≈") == nullptr);
    CHECK_CONTAINS(chart_text(40'000, "Bytes of an image", true), "  ≈");
    CHECK_CONTAINS(chart_text(40'000, "Bytes of an image", true), "half of them about ");
    CHECK_CONTAINS(chart_text(40'000, "Bytes of an image", false), "  ~");
    CHECK(strstr(chart_text(40'000, "Longer side, pixels", true), "≈") == nullptr);
}
