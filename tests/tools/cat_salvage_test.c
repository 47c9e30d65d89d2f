/* tfrecord-cat --verify in detail, and --salvage. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <millrace/image.h>

static mr_string string_of(const mr_tensor *tensor)
{
    return mr_tensor_strings(tensor)[0];
}

/* Creates a noisy JPEG, in which damage in the middle affects only pixels. */
static void make_image(mr_tensor *jpeg)
{
    mr_error error = {0};
    mr_tensor image = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(64, 80, 3), &error));
    record_fill(7, mr_tensor_uint8s(&image), 64 * 80 * 3);
    CHECK_OK(mr_image_encode_jpeg(&image, 90, jpeg, &error));
    mr_tensor_deinit(&image);
}

static void write_images(const char *path)
{
    mr_error error = {0};
    mr_tensor jpeg = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    make_image(&jpeg);
    mr_string whole = string_of(&jpeg);
    char *bytes = malloc(whole.size_bytes);
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 5; i++) {
        mr_string image = {bytes, whole.size_bytes};
        memcpy(bytes, whole.data, whole.size_bytes);
        if (i == 1) image.size_bytes = 100;       /* truncated in the header's tables */
        if (i == 2) image.size_bytes /= 2;        /* valid header, truncated pixels */
        if (i == 3) image = MR_STR("not a JPEG"); /* in a feature named image/encoded */
        mr_example_add_bytes(&encoder, i == 4 ? "left/view" : "image/encoded", image);
        mr_example_add_bytes(&encoder, "note", MR_STR("GIF is not what this is"));
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    mr_tensor_deinit(&jpeg);
    free(bytes);
}

TEST(cat_verify_looks_at_images)
{
    const char *path = test_path("p.tfrecord");
    write_images(path);
    const program_result *result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 1, byte ");
    CHECK_CONTAINS(result->output, "bad image: image/encoded: ");
    CHECK(strstr(result->output, "record 2,") == nullptr);
    CHECK_CONTAINS(result->output, "record 3, byte ");
    CHECK_CONTAINS(result->output, "3 good records, 2 bad, ");
    CHECK_CONTAINS(result->output, "2 faults\n");
    result = program_run("tfrecord-cat --verify --decode %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 2, byte ");
    CHECK_CONTAINS(result->output, "3 faults\n");
    CHECK_EQ(program_run("tfrecord-cat --verify --raw %s", path)->exit_code, 0);
    CHECK_EQ(program_run("tfrecord-cat --decode %s", path)->exit_code, 2);
}

TEST(cat_verify_reads_every_value)
{
    /* The Example itself is valid, but its int64 list ends inside a varint. In the SequenceExample below, a feature
     * list has a damaged step. */
    static const char example[] = "\x0a\x0d\x0a\x0b\x0a\x01y\x12\x06\x1a\x04\x0a\x02\xff\xff";
    const char *path = test_path("e.tfrecord");
    examples_write_one(path, (mr_string){example, sizeof example - 1});
    const program_result *result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 0, byte 0: bad Example: y: its values are damaged");

    static const char sequence[] = "\x12\x0d\x0a\x0b\x0a\x01z\x12\x06\x0a\x04\x1a\x02\x0a\x09";
    examples_write_one(path, (mr_string){sequence, sizeof sequence - 1});
    result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 0, byte 0: bad Example: z: ");

    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    const int64_t numbers[] = {1, 2};
    mr_sequence_add_int64_list(&encoder, "steps", numbers, 2);
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    examples_write_one(path, record);
    mr_sequence_encoder_deinit(&encoder);
    result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 0);
}

TEST(cat_verify_prints_the_same_with_any_number_of_threads)
{
    const char *path = test_path("j.tfrecord");
    examples_write(path, 20'000, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    for (size_t at = 5'000; at < size; at += 90'001) bytes[at] ^= 4;
    file_save(path, bytes, size);
    free(bytes);
    static char first[1 << 16];
    for (int jobs = 1; jobs <= 4; jobs++) {
        const program_result *result = program_run("tfrecord-cat --verify --jobs %d %s 2>/dev/null", jobs, path);
        CHECK_EQ(result->exit_code, 1);
        if (jobs == 1) memcpy(first, result->output, sizeof first);
        CHECK_STR(result->output, first);
    }
    CHECK_EQ(program_run("tfrecord-cat --verify --jobs 0 %s", path)->exit_code, 2);
    CHECK_EQ(atoi(program_run("tfrecord-cat --verify %s | head -1 | wc -l", path)->output), 1);
}

TEST(cat_salvage_saves_all_good_records)
{
    const char *path = test_path("bad one.tfrecord"), *good = test_path("good.tfrecord"), *out = test_path("out");
    record_write(path, 400, 300, (mr_record_writer_options){0});
    record_write(good, 30, 300, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[record_begin(11, 300) - 1] ^= 1;
    size_t hole = record_begin(70, 300) + 5;
    memmove(bytes + hole, bytes + hole + 400, size - hole - 400);
    file_save(path, bytes, size - 400);
    free(bytes);
    const program_result *result = program_run("tfrecord-cat --salvage %s '%s' %s", out, path, good);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "bad one.tfrecord: record 10, bytes ");
    CHECK_CONTAINS(result->output, ": bad data\n");
    CHECK_CONTAINS(result->output, "good.tfrecord: 30 records saved, 0 regions lost");

    /* The records are those that were written, in order. */
    mr_error error = {0};
    mr_record_index index = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_index_open(out, &index, &error));
    CHECK_EQ(index.origin, MR_INDEX_LOADED);
    CHECK_OK(mr_record_reader_open(out, nullptr, &reader, &error));
    uint64_t came = 0;
    for (int number = 0; mr_record_reader_next(reader, &record, &error) == MR_OK; number++, came++) {
        if (number == 10) number++;
        if (number == 70)
            while (record_begin(number, 300) < hole + 400) number++;
        record_check(record, number < 400 ? number : number - 400, 300);
    }
    mr_record_reader_close(reader);
    CHECK_EQ(came, index.count);
    CHECK(came > 420);
    mr_record_index_deinit(&index);

    size_t report_size;
    char *report = (char *)file_load(test_path("out.report"), &report_size);
    report[report_size] = 0;
    CHECK_CONTAINS(report, "record 10, bytes ");
    CHECK_CONTAINS(report, "2 regions lost");
    free(report);

    /* The salvaged file is complete. An existing output is kept, and an input is never replaced. */
    CHECK_EQ(program_run("tfrecord-cat --verify --raw %s", out)->exit_code, 0);
    CHECK_EQ(program_run("tfrecord-cat --salvage %s %s", out, good)->exit_code, 1);
    CHECK_EQ(program_run("tfrecord-cat --salvage %s --force %s", out, out)->exit_code, 1);
    CHECK_EQ(program_run("tfrecord-cat --salvage %s --force %s", out, good)->exit_code, 0);
    CHECK(access(test_path("out.report"), F_OK) != 0);
    CHECK(access(test_path("out.report.partial"), F_OK) != 0);
    result = program_run("cmp %s %s", out, good);
    CHECK_EQ(result->exit_code, 0);
}

TEST(cat_salvage_leaves_no_partial_file)
{
    const char *path = test_path("in.tfrecord");
    record_write(path, 30, 300, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --salvage %s/none/out %s", test_directory(), path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no such file");
    /* A file size limit fails like a full disk. */
    result = program_run("(trap '' XFSZ; ulimit -f 1; tfrecord-cat --salvage %s %s)", test_path("out"), path);
    CHECK_EQ(result->exit_code, 1);
    result = program_run("ls %s", test_directory());
    CHECK_STR(result->output, "in.tfrecord\n");
}
