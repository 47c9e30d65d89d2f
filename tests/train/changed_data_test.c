/* train-images with damaged or changed data: bad records are skipped up to a limit, and on request a run continues with
 * its weights on other data. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/millrace.h>
#include <sys/stat.h>

/* Writes `count` records of small images to test_path("records"); those in `bad` are not images. */
static void write_records(int count, const int *bad, int bad_count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = {.size = sizeof options, .index = true};
    mr_example_encoder encoder = {0};
    mkdir(test_path("records"), 0777);
    file_save(test_path("records/labels.txt"), "a\nb\n", 4);
    CHECK_OK(mr_record_writer_open(test_path("records/x-train-0.tfrecord"), &options, &writer, &error));
    for (int i = 0; i < count; i++) {
        bool is_bad = false;
        for (int j = 0; j < bad_count; j++) is_bad |= bad[j] == i;
        mr_tensor pixels = {0}, encoded = {0};
        CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(12, 10, 3), &error));
        for (int64_t at = 0; at < mr_tensor_count(&pixels); at++)
            mr_tensor_uint8s(&pixels)[at] = (uint8_t)(at / 3 % (2 + i % 2) * 90 + i);
        CHECK_OK(mr_image_encode_png(&pixels, &encoded, &error));
        mr_example_add_bytes(&encoder, "image/encoded",
                             is_bad ? MR_STR("this is not an image") : mr_tensor_strings(&encoded)[0]);
        mr_example_add_int64(&encoder, "image/class/label", i % 2);
        mr_string record;
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
        mr_tensor_deinit(&pixels);
        mr_tensor_deinit(&encoded);
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
}

static const char *train(const char *arguments, int exit_code)
{
    const program_result *result = program_run("cd %s && train-images records %s", test_directory(), arguments);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "train-images %s: exit code %d: %s", arguments, result->exit_code,
                  result->output);
    return result->output;
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != nullptr; at += strlen(part)) count++;
    return count;
}

/* 40 records and batches of 32: four steps read the data three times. A bad record counts once. */
TEST(train_images_skips_bad_records_within_a_budget)
{
    write_records(40, (int[]){3, 17, 29}, 3);
    const char *output = train("run --steps 4", 0);
    CHECK_EQ(occurrences(output, "train-images: skipped: "), 3);
    CHECK_CONTAINS(output, "x-train-0.tfrecord: record 17");
    CHECK_CONTAINS(output, "3 bad records were skipped (--max-bad-records 10)");
    output = train("run3 --steps 4 --max-bad-records 3", 0);
    CHECK_CONTAINS(output, "3 bad records were skipped (--max-bad-records 3)");
    output = train("run2 --steps 4 --max-bad-records 2", 1);
    CHECK_EQ(occurrences(output, "train-images: skipped: "), 2);
    CHECK_CONTAINS(output, "2 bad records were skipped (--max-bad-records 2)");
    output = train("run0 --steps 4 --max-bad-records 0", 1);
    CHECK_CONTAINS(output, "neither JPEG nor PNG");
    /* The limit may change from one run to the next, and a run resumes after bad records. */
    CHECK_CONTAINS(train("run --steps 6 --max-bad-records 3", 0), "3 bad records were skipped (--max-bad-records 3)");
}

TEST(train_images_does_not_skip_all_records)
{
    write_records(4, (int[]){0, 1, 2, 3}, 4);
    CHECK_CONTAINS(train("run --steps 4 --max-bad-records 3", 1), "3 bad records were skipped");
}

TEST(train_images_continues_with_old_weights_on_changed_data)
{
    write_records(40, nullptr, 0);
    train("run --steps 2", 0);
    write_records(36, nullptr, 0);
    const char *output = train("run --steps 4", 1);
    CHECK_CONTAINS(output, "run/model.ckpt-2: ");
    CHECK_CONTAINS(output, "if the data have changed, restart_data keeps the variables of this checkpoint");
    CHECK_CONTAINS(output, "train-images: --restart-data resumes with the saved weights");
    train("run --steps 4 --restart-data", 0);
    train("run --steps 6", 0);
    char latest[4096];
    mr_error error = {0};
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_CONTAINS(latest, "model.ckpt-6");
    CHECK_CONTAINS(train("run --evaluate --restart-data", 2), "--restart-data has no effect with --evaluate");
    CHECK_CONTAINS(train("run --evaluate --steps 3", 2), "--steps has no effect with --evaluate");
}
