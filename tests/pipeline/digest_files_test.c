/* Digests of sources in files: a copy of a data set with other paths and times has the same digest; changed content or
 * another option changes it. A cache or a snapshot never delivers elements of another data set. */
#include "pipeline/digest.h"
#include "tests/pipeline/pipelines.h"

#include <millrace/formats.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_bytes(const char *path, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr && fwrite(bytes, 1, size_bytes, file) == size_bytes && fclose(file) == 0);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static void write_records(const char *path, mr_compression compression, const char *const *texts, int count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    CHECK_OK(
        mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .compression = compression), &writer, &error));
    for (int i = 0; i < count; i++) CHECK_OK(mr_record_writer_append(writer, texts[i], strlen(texts[i]), &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
}

static void add_member(FILE *file, const char *name, const char *text)
{
    char header[512] = {0}, block[512] = {0};
    snprintf(header, 100, "%s", name);
    snprintf(header + 100, 8, "0000644");
    snprintf(header + 124, 12, "%011o", (unsigned)strlen(text));
    snprintf(header + 136, 12, "%011o", 0u);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    snprintf(block, sizeof block, "%s", text);
    CHECK(fwrite(header, 512, 1, file) == 1 && fwrite(block, 512, 1, file) == 1);
}

static void write_tar(const char *path, const char *const *members, int count)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr);
    for (int i = 0; i < count; i++) add_member(file, members[2 * i], members[2 * i + 1]);
    char end[1024] = {0};
    CHECK(fwrite(end, sizeof end, 1, file) == 1 && fclose(file) == 0);
}

static void write_npy(const char *path, const int64_t *values, int count)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT64, MR_SHAPE(count), values, &error));
    CHECK_OK(mr_npy_save(path, &tensor, &error));
    mr_tensor_deinit(&tensor);
}

/* Writes a data set of every kind into its own directory. change 0 is the original. Every other value changes one thing
 * and keeps sizes and counts where possible. */
enum { CHANGES = 4 };
static void write_all(const char *directory, int change)
{
    char path[512];
#define IN(name) (snprintf(path, sizeof path, "%s/" name, directory), path)
    CHECK_EQ(mkdir(directory, 0777), 0);
    CHECK_EQ(mkdir(IN("images"), 0777), 0);
    CHECK_EQ(mkdir(IN("images/cat"), 0777), 0);
    CHECK_EQ(mkdir(IN("images/dog"), 0777), 0);
    const char *line = change == 1 ? "one\ntwo\nsix\n" : change == 2 ? "one\ntwo\nthree\n" : "one\ntwo\nten\n";
    write_text(IN("a.txt"), line);
    write_text(IN("b.txt"), change == 3 ? "x\n\n" : "xy\n");
    write_text(IN("a.csv"), change == 1   ? "1,2\n3,4\n"
                            : change == 2 ? "1,2\n3,44\n"
                            : change == 3 ? "1,2\n"
                                          : "1,2\n3,5\n");
    const char *records[] = {"aaa", change == 1 ? "bbc" : "bbb", change == 2 ? "cccc" : "ccc", "dd"};
    write_records(IN("a.tfrecord"), MR_COMPRESSION_NONE, records, change == 3 ? 3 : 4);
    write_records(IN("z.gz"), MR_COMPRESSION_GZIP, records, change == 3 ? 3 : 4);
    write_bytes(IN("a.bin"), change == 1 ? "h11112223t" : "h11112222t", change == 2 ? 9 : change == 3 ? 6 : 10);
    const int64_t values[] = {1, change == 1 ? 3 : 2, 3, 4};
    write_npy(IN("a.npy"), values, change == 2 ? 3 : 4);
    if (change == 3) write_npy(IN("a.npy"), (int64_t[]){4, 3, 2, 1}, 4);
    const char *members[] = {"1.jpg",
                             change == 1 ? "j2" : "j1",
                             "1.cls",
                             "3",
                             change == 3 ? "3.jpg" : "2.jpg",
                             change == 2 ? "k12" : "k1",
                             change == 3 ? "3.cls" : "2.cls",
                             "4"};
    write_tar(IN("a.tar"), members, 4);
    write_text(IN("images/cat/1.jpg"), change == 1 ? "cas" : "cat");
    write_text(IN("images/cat/2.jpg"), change == 2 ? "cats" : "CAT");
    write_text(change == 3 ? IN("images/dog/9.jpg") : IN("images/dog/1.jpg"), "dog");
#undef IN
}

static const mr_csv_column two_columns[] = {{.index = 0, .dtype = MR_INT64}, {.index = 1, .dtype = MR_INT64}};

enum { SOURCES = 9 };
static mr_dataset *source(int which, const char *directory)
{
    char path[512];
#define IN(name) (snprintf(path, sizeof path, "%s/" name, directory), path)
    switch (which) {
    case 0:
        return mr_dataset_text_lines(IN("*.txt"));
    case 1:
        return mr_dataset_csv(IN("a.csv"), two_columns, 2);
    case 2:
        return mr_dataset_records(IN("a.tfrecord"));
    case 3:
        return mr_dataset_records(IN("z.gz"));
    case 4:
        return mr_dataset_fixed_length(IN("a.bin"), 1);
    case 5:
        return mr_dataset_npy((const char *[]){IN("a.npy")}, 1);
    case 6:
        return mr_dataset_tar(IN("a.tar"), (const char *[]){"jpg", "cls"}, 2);
    case 7:
        return mr_dataset_image_directory(IN("images"));
    case 8:
        return mr_dataset_list_files(IN("*.t*"));
    default:
        return nullptr;
    }
#undef IN
}

static uint64_t digest_of(mr_dataset *dataset)
{
    mr_error error = {0};
    uint64_t digest = 0, again = 0;
    CHECK_OK(mr_dataset_status(dataset, &error));
    CHECK_OK(mr_dataset_digest(dataset, &digest, &error));
    CHECK_OK(mr_dataset_digest(dataset, &again, &error));
    CHECK_EQ(digest, again);
    mr_dataset_free(dataset);
    return digest;
}

static const char *directory_of(const char *name)
{
    static char paths[8][400];
    static int next;
    snprintf(paths[next % 8], sizeof paths[0], "%s/%s", test_directory(), name);
    return paths[next++ % 8];
}

TEST(digest_is_that_of_the_content)
{
    const char *original = directory_of("original"), *copy = directory_of("copy");
    write_all(original, 0);
    usleep(20'000); /* so that the times differ */
    write_all(copy, 0);
    for (int which = 0; which < SOURCES; which++) {
        uint64_t digest = digest_of(source(which, original));
        CHECK_EQ(digest_of(source(which, original)), digest);
        /* list_files delivers paths, so only its digest differs. */
        if ((digest_of(source(which, copy)) == digest) != (which != 8))
            test_fail(__FILE__, __LINE__, "source %d and its copy", which);
    }
    for (int change = 1; change < CHANGES; change++) {
        char name[20];
        snprintf(name, sizeof name, "change-%d", change);
        const char *changed = directory_of(name);
        write_all(changed, change);
        for (int which = 0; which < SOURCES; which++)
            if (digest_of(source(which, changed)) == digest_of(source(which, original)))
                test_fail(__FILE__, __LINE__, "source %d: change %d is not seen", which, change);
    }
}

TEST(digest_covers_the_options_of_sources_in_files)
{
    mr_error error = {0};
    mr_tensor one = {0}, two = {0};
    CHECK_OK(mr_tensor_init_int64(&one, 1, &error));
    CHECK_OK(mr_tensor_init_int64(&two, 2, &error));
    const char *path = directory_of("rows.csv");
    write_text(path, "1;2,3\n4;5,6\n");
    mr_csv_column columns[] = {{.index = 0, .dtype = MR_INT64}, {.index = 1, .dtype = MR_INT64}};
    mr_csv_column other[] = {{.index = 0, .dtype = MR_INT64}, {.index = 2, .dtype = MR_INT64}};
    mr_csv_column floats[] = {{.index = 0, .dtype = MR_INT64}, {.index = 1, .dtype = MR_FLOAT}};
    mr_csv_column ones[] = {{.index = 0, .dtype = MR_INT64}, {.index = 1, .dtype = MR_INT64, .default_value = &one}};
    mr_csv_column twos[] = {{.index = 0, .dtype = MR_INT64}, {.index = 1, .dtype = MR_INT64, .default_value = &two}};
    mr_dataset *all[] = {
        mr_dataset_csv(path, columns, 2),
        mr_dataset_csv(path, columns, 1),
        mr_dataset_csv(path, other, 2),
        mr_dataset_csv(path, floats, 2),
        mr_dataset_csv(path, ones, 2),
        mr_dataset_csv(path, twos, 2),
        mr_dataset_csv(path, columns, 2, .has_header = true),
        mr_dataset_csv(path, columns, 2, .separator = ';'),
        mr_dataset_csv(path, columns, 2, .na_value = ""),
        mr_dataset_csv(path, columns, 2, .na_value = "NA"),
        mr_dataset_csv(path, columns, 2, .column_count = 2),
        mr_dataset_csv(path, columns, 2, .column_count = 3),
        mr_dataset_csv(path, columns, 2, .no_quotes = true),
        mr_dataset_text_lines(path),
        mr_dataset_fixed_length(path, 2),
        mr_dataset_fixed_length(path, 3),
        mr_dataset_fixed_length(path, 2, .header_bytes = 2),
        mr_dataset_fixed_length(path, 2, .footer_bytes = 2),
    };
    uint64_t digests[sizeof all / sizeof *all];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        digests[i] = digest_of(all[i]);
        for (size_t k = 0; k < i; k++)
            if (digests[i] == digests[k]) test_fail(__FILE__, __LINE__, "variants %zu and %zu have one digest", k, i);
    }
    mr_tensor_deinit(&one);
    mr_tensor_deinit(&two);
    const char *tar = directory_of("samples.tar");
    write_tar(tar, (const char *[]){"1.jpg", "a", "1.png", "b", "1.cls", "3"}, 3);
    CHECK(digest_of(mr_dataset_tar(tar, (const char *[]){"jpg"}, 1)) !=
          digest_of(mr_dataset_tar(tar, (const char *[]){"png"}, 1)));
    CHECK(digest_of(mr_dataset_tar(tar, (const char *[]){"jpg"}, 1)) !=
          digest_of(mr_dataset_tar(tar, (const char *[]){"jpg", "cls"}, 2)));
}

/* The digest of a large file samples blocks; the data between them is not read. */
TEST(digest_of_a_large_file_is_sampled)
{
    enum { SIZE_BYTES = 16 << 20 };
    const char *path = directory_of("large.bin");
    char *bytes = calloc(1, SIZE_BYTES);
    CHECK(bytes != nullptr);
    write_bytes(path, bytes, SIZE_BYTES);
    uint64_t zeros = digest_of(mr_dataset_fixed_length(path, 1024));
    for (int at = 0; at < 2; at++) {
        size_t byte = at == 0 ? 0 : SIZE_BYTES - 1;
        bytes[byte] = 1;
        write_bytes(path, bytes, SIZE_BYTES);
        CHECK(digest_of(mr_dataset_fixed_length(path, 1024)) != zeros);
        bytes[byte] = 0;
    }
    free(bytes);
}

/* Workers accept each other's states, but not each other's elements. */
TEST(caches_distinguish_workers)
{
    const char *snapshots = directory_of("workers");
    for (int pass = 0; pass < 2; pass++)
        for (int64_t worker = 0; worker < 2; worker++) {
            int64_t values[8];
            mr_dataset *d = mr_dataset_distribute(mr_dataset_range(0, 8, 1), 4, 2, worker, MR_DISTRIBUTE_PAD);
            CHECK_EQ(numbers_of(mr_dataset_snapshot(d, snapshots), nullptr, values, 8), 4);
            CHECK_EQ(values[0], 2 * worker);
            CHECK_EQ(values[3], 5 + 2 * worker);
        }
}

/* Training and validation data of the same size, with one snapshot directory and one cache. */
TEST(caches_distinguish_data_sets)
{
    const char *training = directory_of("training"), *validation = directory_of("validation");
    const char *snapshots = directory_of("snapshots");
    write_all(training, 0);
    write_all(validation, 1);
    for (int which = 0; which < SOURCES; which++) {
        uint64_t plain[2][16], kept[16];
        char cache[500];
        snprintf(cache, sizeof cache, "%s/%d.cache", test_directory(), which);
        for (int pass = 0; pass < 6; pass++) {
            const char *directory = pass % 2 == 0 ? training : validation;
            mr_error error = {0};
            mr_iterator *iterator = nullptr;
            mr_dataset *d = source(which, directory);
            if (pass >= 2) d = pass < 4 ? mr_dataset_snapshot(d, snapshots) : mr_dataset_cache(d, cache);
            CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, &error));
            int count = digests_of(iterator, pass < 2 ? plain[pass] : kept, 16);
            CHECK(count > 0);
            if (pass >= 2 && memcmp(kept, plain[pass % 2], (size_t)count * sizeof *kept) != 0)
                test_fail(__FILE__, __LINE__, "source %d, pass %d: elements of another data set", which, pass);
            mr_iterator_free(iterator);
            mr_dataset_free(d);
        }
    }
}
