/* tfrecord-cat under injected failures. In every mode the n-th allocation, write and read fails in turn. Each run must
 * either produce its normal output or report the failure. */
#include "tests/kernels/images.h"
#include "tests/tools/failing.h"
#include "tests/tools/program.h"

#include <millrace/example.h>

static const char FEATURES[] =
    "{\"featuresDict\": {\"features\": {\"label\": {\"pythonClassName\": \"ClassLabel\", \"classLabel\": "
    "{\"numClasses\": \"3\"}}, \"image\": {\"pythonClassName\": \"Image\", \"image\": {\"shape\": {\"dimensions\": "
    "[\"-1\", "
    "\"-1\", \"3\"]}, \"dtype\": \"uint8\", \"encodingFormat\": \"jpeg\"}}}}}";
static const char INFO[] =
    "{\"name\": \"pets\", \"version\": \"1.0.0\", \"description\": \"Pets.\", \"splits\": [{\"name\": "
    "\"train\", \"numBytes\": \"99\", \"shardLengths\": [\"3\", \"4\"]}]}";

static void save(const char *path, const char *text)
{
    file_save(path, (const unsigned char *)text, strlen(text));
}

/* Appends record `number` of the fixture: an image, a label, boxes, text, bytes and numbers. */
static void append(mr_record_writer *writer, mr_example_encoder *encoder, int number)
{
    mr_error error = {0};
    mr_string record;
    char name[32];
    snprintf(name, sizeof name, "cat/%d.jpg", number);
    test_bytes image = test_jpeg(24 + 8 * number, 16, (test_jpeg_options){.horizontal = 1, .vertical = 1});
    const float low[] = {0.25f, 0.5f}, high[] = {0.5f, 1};
    mr_example_add_bytes(encoder, "image", (mr_string){(const char *)image.bytes, image.size_bytes});
    mr_example_add_bytes(encoder, "image/filename", mr_string_from(name));
    mr_example_add_int64(encoder, "label", number % 3);
    mr_example_add_float(encoder, "score", (float)number / 3);
    mr_example_add_bytes(encoder, "say", MR_STR("\"gr\xc3\xbc\xc3\x9f, dich\""));
    mr_example_add_bytes(encoder, "raw", MR_STR("\x00\x01\xff"));
    mr_example_add_float_list(encoder, "image/object/bbox/xmin", low, 2);
    mr_example_add_float_list(encoder, "image/object/bbox/ymin", low, 2);
    mr_example_add_float_list(encoder, "image/object/bbox/xmax", high, 2);
    mr_example_add_float_list(encoder, "image/object/bbox/ymax", high, 2);
    CHECK_OK(mr_example_finish(encoder, &record, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    free(image.bytes);
}

static void write_records(const char *path, int first, int count, mr_record_writer_options options)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = first; i < first + count; i++) append(writer, &encoder, i);
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

/* Creates d, a tfds directory with two files; other, in which one record differs; bad, with a record that is not an
 * Example; and sequence. */
static void make_files(void)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    CHECK_EQ(chdir(test_directory()), 0);
    CHECK_EQ(mkdir("d", 0777), 0);
    save("d/features.json", FEATURES);
    save("d/dataset_info.json", INFO);
    save("d/label.labels.txt", "cat\ndog\nbird\n");
    write_records("d/a.tfrecord", 0, 3, (mr_record_writer_options){.index = true});
    write_records("d/b.tfrecord", 3, 4, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    write_records("other", 1, 3, (mr_record_writer_options){0});
    record_write("bad", 3, 100, (mr_record_writer_options){0});
    mr_example_add_int64(&encoder.context, "length", 2);
    mr_sequence_add_int64_list(&encoder, "tokens", (int64_t[]){1, 2}, 2);
    mr_sequence_add_int64_list(&encoder, "tokens", (int64_t[]){3}, 1);
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open("sequence", nullptr, &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_sequence_encoder_deinit(&encoder);
}

static void check(const char *kind, const char *const *commands, size_t count)
{
    make_files();
    for (size_t i = 0; i < count; i++) failing_each("tfrecord-cat", commands[i], kind);
}
#define COUNT(list) (sizeof list / sizeof *list)

static const char *const showing[] = {
    "d",
    "sequence",
    "--json --jobs 1 d",
    "--json --head 2 d/b.tfrecord",
    "--csv d",
    "--csv bad",
    "--csv --features score,none,lab* d",
    "--about d",
    "--sample 2 d",
    "--record 5 --bytes hex d",
    "--where label==1||say=~'.*ss' d",
    "--count d",
    "--where label==1&&image/filename=~'[0-9]' --count d",
};
static const char *const summaries[] = {
    "--schema d",         "--schema sequence",         "--stats --jobs 1 d",
    "--stats --head 3 d", "--stats --json --jobs 1 d", "--stats --svg o/x.svg --jobs 1 d/a.tfrecord",
};
static const char *const checks[] = {
    "--verify --jobs 1 d",
    "--verify --decode --jobs 1 d/a.tfrecord",
    "--verify --jobs 1 bad d/a.tfrecord",
    "--salvage o/s --jobs 1 d",
    "--diff d/a.tfrecord other",
    "--diff --unordered d/a.tfrecord other",
    "--diff other other",
};
static const char *const rewrites[] = {
    "--merge --out o/m d",
    "--merge --out o/m --compress gzip d",
    "--merge --out o/m --compress seekable --jobs 1 d",
    "--merge --out - d",
    "--merge --out o/m --features !raw,!say --rename label=class,score=x d",
    "--split 2 --out o/s.tfrecord d",
    "--shuffle --seed 3 --out o/x d",
    "--shuffle --out o/x --where label==1 d",
};
static const char *const exports[] = {
    "--extract o/e --jobs 1 d",
    "--html o/h --jobs 1 --head 2 d",
};

TEST(cat_showing_survives_failing_allocations)
{
    check("allocation", showing, COUNT(showing));
}

TEST(cat_summaries_survive_failing_allocations)
{
    check("allocation", summaries, COUNT(summaries));
}

TEST(cat_checks_survive_failing_allocations)
{
    check("allocation", checks, COUNT(checks));
}

TEST(cat_rewrites_survive_failing_allocations)
{
    check("allocation", rewrites, COUNT(rewrites));
}

TEST(cat_exports_survive_failing_allocations)
{
    check("allocation", exports, COUNT(exports));
}

TEST(cat_survives_failing_writes)
{
    check("write", showing, COUNT(showing));
    for (size_t i = 0; i < COUNT(summaries); i++) failing_each("tfrecord-cat", summaries[i], "write");
    for (size_t i = 0; i < COUNT(checks); i++) failing_each("tfrecord-cat", checks[i], "write");
    for (size_t i = 0; i < COUNT(rewrites); i++) failing_each("tfrecord-cat", rewrites[i], "write");
    for (size_t i = 0; i < COUNT(exports); i++) failing_each("tfrecord-cat", exports[i], "write");
}

TEST(cat_survives_failing_reads)
{
    check("read", showing, COUNT(showing));
    for (size_t i = 0; i < COUNT(summaries); i++) failing_each("tfrecord-cat", summaries[i], "read");
    for (size_t i = 0; i < COUNT(checks); i++) failing_each("tfrecord-cat", checks[i], "read");
    for (size_t i = 0; i < COUNT(rewrites); i++) failing_each("tfrecord-cat", rewrites[i], "read");
    for (size_t i = 0; i < COUNT(exports); i++) failing_each("tfrecord-cat", exports[i], "read");
}

TEST(cat_reports_a_full_disk_in_every_mode)
{
    static const char *const commands[] = {
        "d",
        "--json d",
        "--csv d",
        "--about d",
        "--count d",
        "--schema d",
        "--stats d",
        "--stats --json d",
        "--verify d",
        "--salvage o/s d",
        "--index d",
        "--repair-index d",
        "--diff d other",
        "--extract o/e d",
        "--html o/h d",
        "--merge --out o/m d",
        "--split 2 --out o/s d",
        "--shuffle --out o/x d",
        "--help",
        "--help where",
        "--version",
    };
    if (access("/dev/full", W_OK) != 0) test_skip("needs /dev/full");
    make_files();
    for (size_t i = 0; i < COUNT(commands); i++) {
        const program_result *result = program_run(
            "cd '%s' && rm -rf o && mkdir o && (tfrecord-cat %s > /dev/full) 2>&1", test_directory(), commands[i]);
        if (result->exit_code != 1 || !strstr(result->output, "cannot write the output: No space left on device\n"))
            test_fail(__FILE__, __LINE__, "%s: %d: %s", commands[i], result->exit_code, result->output);
    }
    CHECK_CONTAINS(
        program_run("cd '%s' && (tfrecord-cat --merge --out - d > /dev/full) 2>&1", test_directory())->output,
        "the disk is full");
}
