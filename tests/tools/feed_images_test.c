/* The example feed-images with records that cannot be used, and without any. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>

/* Writes 20 records with images. Record `bare` has no label, and the image of record `broken` is damaged; -1: none. */
static void write_images(const char *path, int bare, int broken)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    test_bytes image = test_jpeg(32, 24, (test_jpeg_options){.horizontal = 1, .vertical = 1});
    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .index = true), &writer, &error));
    for (int i = 0; i < 20; i++) {
        mr_string bytes = i == broken ? MR_STR("no image") : (mr_string){(const char *)image.bytes, image.size_bytes};
        mr_example_add_bytes(&encoder, "image/encoded", bytes);
        if (i != bare) mr_example_add_int64(&encoder, "image/class/label", i);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    free(image.bytes);
}

TEST(feed_images_skips_a_record_and_not_its_batch)
{
    const char *path = test_path("i.tfrecord");
    static const struct {
        int bare, broken;
        const char *summary;
    } cases[] = {
        {-1, -1, "20 images in "}, {7, -1, "19 images in "}, {-1, 3, "19 images in "}, {0, 19, "18 images in "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_images(path, cases[i].bare, cases[i].broken);
        char first[64] = "", skipped[64];
        snprintf(skipped, sizeof skipped, ", %d records skipped, ", (cases[i].bare >= 0) + (cases[i].broken >= 0));
        for (int threads = 1; threads < 4; threads += 2) {
            const program_result *result = program_run("feed-images --threads %d %s", threads, path);
            CHECK_EQ(result->exit_code, 0);
            CHECK_CONTAINS(result->output, cases[i].summary);
            CHECK_CONTAINS(result->output, skipped);
            if (cases[i].bare >= 0) CHECK_CONTAINS(result->output, "image/class/label");
            const char *digest = strstr(result->output, "digest ");
            CHECK(digest != nullptr && (!*first || strncmp(first, digest, 23) == 0));
            snprintf(first, sizeof first, "%.23s", digest);
        }
    }
}

TEST(feed_images_fails_when_there_is_no_image)
{
    const char *path = test_path("e.tfrecord");
    record_write(path, 0, 1, (mr_record_writer_options){0});
    const program_result *result = program_run("feed-images %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "feed-images: there are no records");
    record_write(path, 12, 100, (mr_record_writer_options){0});
    result = program_run("feed-images %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "feed-images: no record could be used");
    CHECK_CONTAINS(result->output, "12 records skipped");
    CHECK_EQ(program_run("feed-images %s/none.tfrecord", test_directory())->exit_code, 1);
    CHECK_EQ(program_run("cd '%s' && mkdir d && feed-images d", test_directory())->exit_code, 1);
}
