/* Readers: read_up_to returns the same as single reads, including damaged and missing files; invalid names and
 * options. */
#include "base/random.h"
#include "tests/test.h"

#include <millrace/queue.h>
#include <millrace/record.h>

constexpr int RECORDS = 8;
constexpr int FILES = 3;

/* A file of RECORDS records of 10 bytes; in records whose bit is set in `damage`, one byte of the payload is
 * changed. */
static void write_records(const char *path, unsigned damage)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    constexpr int RECORD_BYTES = MR_RECORD_HEADER_BYTES + 10 + MR_RECORD_FOOTER_BYTES;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < RECORDS; i++) {
        char text[11];
        snprintf(text, sizeof text, "record %03d", i);
        CHECK_OK(mr_record_writer_append(writer, text, 10, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    FILE *file = fopen(path, "r+b");
    CHECK(file != nullptr);
    for (int i = 0; i < RECORDS; i++) {
        if ((damage >> i & 1) == 0) continue;
        CHECK(fseek(file, i * RECORD_BYTES + MR_RECORD_HEADER_BYTES, SEEK_SET) == 0 && fputc('R', file) != EOF);
    }
    CHECK(fclose(file) == 0);
}

static mr_queue *names_of(const char *const *paths, int count)
{
    mr_error error = {0};
    mr_queue *names = nullptr;
    mr_queue_options options = {
        .size = sizeof options, .capacity = 9, .component_count = 1, .dtypes = {MR_STRING}, .shapes = {MR_SCALAR}};
    CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &options, &names, &error));
    for (int i = 0; i < count; i++) {
        mr_tensor name = {0};
        CHECK_OK(mr_tensor_init_string(&name, mr_string_from(paths[i]), &error));
        CHECK_OK(mr_queue_enqueue(names, &name, &error));
        mr_tensor_deinit(&name);
    }
    mr_queue_close(names, false);
    return names;
}

typedef struct text {
    char bytes[1 << 14];
    size_t size;
} text;

static void add(text *to, mr_string line)
{
    CHECK(to->size + line.size_bytes + 1 < sizeof to->bytes);
    memcpy(to->bytes + to->size, line.data, line.size_bytes);
    to->size += line.size_bytes;
    to->bytes[to->size++] = '\n';
}

/* Keys, values and the names of errors, in order, read `count` at a time; 0: one by one with mr_reader_read. */
static text read_all(mr_reader_kind kind, const mr_reader_options *options, const char *const *paths, int64_t count)
{
    mr_error error = {0};
    mr_reader *reader = nullptr;
    mr_queue *names = names_of(paths, FILES);
    text found = {0};
    int64_t produced = 0;
    CHECK_OK(mr_reader_new(kind, options, &reader, &error));
    for (int calls = 0;; calls++) {
        mr_tensor keys = {0}, values = {0};
        CHECK(calls < 1000);
        mr_status status = count == 0 ? mr_reader_read(reader, names, &keys, &values, &error)
                                      : mr_reader_read_up_to(reader, names, count, &keys, &values, &error);
        if (status == MR_OUT_OF_RANGE) break;
        if (status != MR_OK) {
            add(&found, mr_string_from(mr_status_name(status)));
            add(&found, mr_string_from(error.message));
            continue;
        }
        CHECK(mr_tensor_count(&keys) >= 1 && mr_tensor_count(&keys) == mr_tensor_count(&values));
        for (int64_t i = 0; i < mr_tensor_count(&keys); i++) {
            add(&found, mr_tensor_strings(&keys)[i]);
            add(&found, mr_tensor_strings(&values)[i]);
        }
        produced += mr_tensor_count(&keys);
        mr_tensor_deinit(&keys);
        mr_tensor_deinit(&values);
    }
    CHECK_EQ(mr_reader_records_produced(reader), produced);
    mr_reader_free(reader);
    mr_queue_unref(names);
    return found;
}

static void check_all_counts(mr_reader_kind kind, const mr_reader_options *options, const char *const *paths)
{
    text single = read_all(kind, options, paths, 0);
    CHECK(single.size > 0);
    for (int64_t count = 1; count <= RECORDS + 2; count++) {
        text many = read_all(kind, options, paths, count);
        CHECK_STR(many.bytes, single.bytes);
    }
}

TEST(error_after_some_records_reaches_read_up_to)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0x72656164);
    for (int round = 0; round < 20; round++) {
        char storage[FILES][256];
        const char *paths[FILES];
        for (int f = 0; f < FILES; f++) {
            snprintf(storage[f], sizeof storage[f], "%s", test_path("%d.tfrecord", f));
            paths[f] = storage[f];
            write_records(paths[f], mr_random_next32(&random) & mr_random_next32(&random) & ((1u << RECORDS) - 1));
        }
        if (round % 2 == 1) paths[round / 2 % FILES] = "missing";
        check_all_counts(MR_READER_TF_RECORD, nullptr, paths);
        check_all_counts(MR_READER_FIXED_LENGTH, MR_OPTIONS(mr_reader_options, .record_bytes = 7, .header_bytes = 2),
                         paths);
    }
}

TEST(a_damaged_record_is_reported_once_and_a_reset_forgets_it)
{
    mr_error error = {0};
    mr_reader *reader = nullptr;
    mr_tensor keys = {0}, values = {0};
    const char *path = test_path("damaged.tfrecord");
    write_records(path, 1u << 2);
    for (int reset = 0; reset < 2; reset++) {
        mr_queue *names = names_of(&path, 1);
        CHECK_OK(mr_reader_new(MR_READER_TF_RECORD, nullptr, &reader, &error));
        CHECK_OK(mr_reader_read_up_to(reader, names, 4, &keys, &values, &error));
        CHECK_EQ(mr_tensor_count(&values), 2);
        mr_tensor_deinit(&keys);
        mr_tensor_deinit(&values);
        if (reset == 1) mr_reader_reset(reader);
        mr_status expected = reset == 1 ? MR_OUT_OF_RANGE : MR_DATA_LOSS;
        CHECK_EQ(mr_reader_read(reader, names, &keys, &values, &error), expected);
        if (reset == 0) {
            CHECK_CONTAINS(error.message, "damaged.tfrecord");
            CHECK_OK(mr_reader_read_up_to(reader, names, 100, &keys, &values, &error));
            CHECK_EQ(mr_tensor_count(&values), RECORDS - 3);
            mr_tensor_deinit(&keys);
            mr_tensor_deinit(&values);
        }
        mr_reader_free(reader);
        mr_queue_unref(names);
    }
}

TEST(a_name_that_is_not_one_string_is_refused)
{
    static const mr_string strings[] = {{"a\0b", 3}, {"b", 1}};
    static const int64_t counts[] = {0, 2, 1};
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_queue *names = nullptr;
        mr_reader *reader = nullptr;
        mr_tensor name = {0}, key = {0}, value = {0};
        mr_queue_options options = {.size = sizeof options,
                                    .capacity = 2,
                                    .component_count = 1,
                                    .dtypes = {MR_STRING},
                                    .shapes = {MR_SHAPE_UNKNOWN}};
        CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &options, &names, &error));
        CHECK_OK(mr_tensor_init_strings(&name, MR_SHAPE(counts[i]), strings, &error));
        CHECK_OK(mr_queue_enqueue(names, &name, &error));
        CHECK_OK(mr_reader_new(MR_READER_WHOLE_FILE, nullptr, &reader, &error));
        CHECK_EQ(mr_reader_read(reader, names, &key, &value, &error), MR_INVALID_ARGUMENT);
        mr_tensor_deinit(&name);
        mr_reader_free(reader);
        mr_queue_unref(names);
    }
}

TEST(readers_refuse_null_negative_and_huge_arguments)
{
    mr_error error = {0};
    mr_reader *reader = nullptr;
    mr_tensor key = {0}, value = {0};
    const char *path = test_path("small");
    write_records(path, 0);
    mr_queue *names = names_of(&path, 1);
    CHECK_EQ(mr_reader_new((mr_reader_kind)9, nullptr, &reader, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_new(MR_READER_TEXT_LINE, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_new(MR_READER_FIXED_LENGTH, nullptr, &reader, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(
        mr_reader_new(MR_READER_TEXT_LINE, MR_OPTIONS(mr_reader_options, .skip_header_lines = -1), &reader, &error),
        MR_INVALID_ARGUMENT);
    /* A hop size that overflows ends the file after the first record. */
    CHECK_OK(mr_reader_new(MR_READER_FIXED_LENGTH,
                           MR_OPTIONS(mr_reader_options, .record_bytes = 1, .hop_bytes = SIZE_MAX), &reader, &error));
    CHECK_EQ(mr_reader_read_up_to(reader, names, 0, &key, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_read_up_to(reader, names, INT64_MIN, &key, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_read(nullptr, names, &key, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_read(reader, nullptr, &key, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_read(reader, names, nullptr, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_reader_read(reader, names, &key, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_reader_read_up_to(reader, names, INT64_MAX, &key, &value, &error));
    CHECK_EQ(mr_tensor_count(&key), 1);
    mr_tensor_deinit(&key);
    mr_tensor_deinit(&value);
    CHECK_EQ(mr_reader_read(reader, names, &key, &value, &error), MR_OUT_OF_RANGE);
    mr_reader_free(reader);
    CHECK_EQ(mr_reader_records_produced(nullptr), 0);
    CHECK_EQ(mr_reader_work_units_completed(nullptr), 0);
    mr_reader_reset(nullptr);
    mr_queue_unref(names);
}
