/* Damaged compressed record files: the caller receives the error once, whatever stages follow the source. */
#include "tests/pipeline/pipelines.h"
#include "tests/records/record_data.h"

#include <unistd.h>

static constexpr int RECORDS = 300;
static constexpr size_t SIZE_MAX_BYTES = 400;

typedef struct damage {
    const char *name;
    int64_t keep_bytes;  /* remaining size; negative: bytes to cut off; 0: half */
    int64_t flip_offset; /* of the inverted byte; negative: from the end; 0: the middle; INT64_MAX: none */
} damage;

static const damage damages[] = {
    {"last byte missing", -1, INT64_MAX},
    {"trailer missing", -8, INT64_MAX},
    {"cut in half", 0, INT64_MAX},
    {"only a part of the header", 5, INT64_MAX},
    {"wrong checksum in the trailer", INT64_MAX, -6},
    {"flipped byte", INT64_MAX, 0},
};

static void apply(const char *path, const damage *damage)
{
    size_t size = 0;
    unsigned char *bytes = file_load(path, &size);
    int64_t flip = damage->flip_offset, keep = damage->keep_bytes, end = (int64_t)size;
    if (flip != INT64_MAX) bytes[flip < 0 ? end + flip : flip == 0 ? end / 2 : flip] ^= 0xff;
    if (keep <= 0) keep = keep == 0 ? end / 2 : end + keep;
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr);
    size = keep < end ? (size_t)keep : size;
    CHECK_EQ(fwrite(bytes, 1, size, file), size);
    CHECK_EQ(fclose(file), 0);
    free(bytes);
}

static const struct {
    const char *name;
    mr_record_writer_options writing;
    bool keeps_index;
} forms[] = {
    {"GZIP", {.compression = MR_COMPRESSION_GZIP}, false},
    {"ZLIB", {.compression = MR_COMPRESSION_ZLIB}, false},
    {"seekable GZIP without index", {.compression = MR_COMPRESSION_GZIP, .seek_bytes = 8192, .index = true}, false},
    {"seekable GZIP with index", {.compression = MR_COMPRESSION_GZIP, .seek_bytes = 8192, .index = true}, true},
};
static constexpr size_t FORMS = sizeof forms / sizeof *forms, DAMAGES = sizeof damages / sizeof *damages;

static const char *write_damaged(size_t form, const damage *damage)
{
    const char *path = test_path("f.tfrecord");
    record_write(path, RECORDS, SIZE_MAX_BYTES, forms[form].writing);
    if (!forms[form].keeps_index) (void)unlink(test_path("f.tfrecord.index"));
    apply(path, damage);
    return path;
}

/* Counts elements up to the end of the data (MR_OK) or to the first error, which is returned. */
static mr_status run(mr_dataset *d, int32_t threads, int64_t *elements)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    *elements = 0;
    while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK)
        *elements += mr_tensor_count(&element.tensors[0]);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_dataset *source(const char *path, int shuffle)
{
    mr_dataset *d = mr_dataset_records(path);
    return shuffle == 0 ? d : mr_dataset_shuffle(d, .buffer_size = shuffle, .seed = 3);
}

TEST(damaged_compressed_records_are_an_error)
{
    for (size_t f = 0; f < FORMS; f++)
        for (size_t i = 0; i < DAMAGES; i++)
            for (int shuffle = 0; shuffle <= 1000; shuffle = shuffle == 0 ? 20 : shuffle + 980) {
                const char *path = write_damaged(f, &damages[i]);
                for (int threads = 1; threads <= 3; threads += 2) {
                    int64_t elements;
                    mr_status status = run(mr_dataset_batch(source(path, shuffle), 7), threads, &elements);
                    if (status != MR_DATA_LOSS)
                        test_fail(__FILE__, __LINE__, "%s, %s, shuffle %d, %d threads: %s", forms[f].name,
                                  damages[i].name, shuffle, threads, mr_status_name(status));
                }
            }
}

/* With errors ignored the pipeline still ends: at the end of the data, or with an error that ends the input
 * permanently. */
TEST(damaged_compressed_records_end_when_errors_are_ignored)
{
    for (size_t f = 0; f < FORMS; f++)
        for (size_t i = 0; i < DAMAGES; i++) {
            const char *path = write_damaged(f, &damages[i]);
            for (int shuffle = 0; shuffle < 40; shuffle += 20)
                for (int threads = 1; threads <= 3; threads += 2) {
                    int64_t elements;
                    mr_dataset *d = mr_dataset_ignore_errors(source(path, shuffle));
                    mr_status status = run(mr_dataset_prefetch(mr_dataset_batch(d, 7), 2), threads, &elements);
                    CHECK(status == MR_OK || status == MR_DATA_LOSS);
                    CHECK(elements <= RECORDS);
                }
        }
}
