/* tfrecord-cat --merge, --split, --shuffle, --diff, --index and --repair-index, run as a user does. */
#include "tests/kill.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>

#include <dirent.h>
#include <sys/stat.h>

static constexpr int COUNT = 300;
static constexpr size_t SIZE_MAX_HERE = 700;

/* Writes records first … first + count - 1 of record_data.h. */
static void write_some(const char *path, int first, int count, mr_record_writer_options options)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    unsigned char bytes[SIZE_MAX_HERE + 1];
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = first; i < first + count; i++) {
        record_fill(i, bytes, record_size(i, SIZE_MAX_HERE));
        CHECK_OK(mr_record_writer_append(writer, bytes, record_size(i, SIZE_MAX_HERE), &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
}

static void run_ok(const char *command)
{
    const program_result *result = program_run("cd '%s' && %s", test_directory(), command);
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s: %d: %s", command, result->exit_code, result->output);
}

static void run_and_see(const char *command, int exit_code, const char *part)
{
    const program_result *result = program_run("cd '%s' && %s", test_directory(), command);
    if (result->exit_code != exit_code || !strstr(result->output, part))
        test_fail(__FILE__, __LINE__, "%s: %d: %s", command, result->exit_code, result->output);
}

/* Stores in order, unless it is null, the number with which each record of a file was written. Returns the number of
 * records. */
static int read_numbers(const char *path, int *order, int count_max)
{
    static unsigned char seen[COUNT];
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    int count = 0;
    memset(seen, 0, sizeof seen);
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {
        CHECK(count < count_max);
        int number = 0;
        unsigned char bytes[SIZE_MAX_HERE + 1];
        for (; number < COUNT; number++) {
            if (seen[number] || record_size(number, SIZE_MAX_HERE) != record.size_bytes) continue;
            record_fill(number, bytes, record.size_bytes);
            if (record.size_bytes == 0 || memcmp(bytes, record.data, record.size_bytes) == 0) break;
        }
        CHECK(number < COUNT);
        seen[number] = 1;
        order[count++] = number;
    }
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
    return count;
}

TEST(cat_merge_reads_every_compression_and_keeps_the_order)
{
    write_some(test_path("a.tfrecord"), 0, 100, (mr_record_writer_options){.index = true});
    write_some(test_path("b.tfrecord.gz"), 100, 100, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    write_some(test_path("c"), 200, 100, (mr_record_writer_options){.compression = MR_COMPRESSION_ZLIB});
    const char *const forms[] = {"none", "gzip", "zlib", "seekable"};
    char command[300];
    for (int i = 0; i < 4; i++) {
        snprintf(command, sizeof command,
                 "cat c | tfrecord-cat --merge --out m-%s --compress %s a.tfrecord b.tfrecord.gz - >said", forms[i],
                 forms[i]);
        run_ok(command);
        int order[COUNT];
        CHECK_EQ(read_numbers(test_path("m-%s", forms[i]), order, COUNT), COUNT);
        /* Records of size 0 cannot be distinguished, so sizes are compared. */
        for (int n = 0; n < COUNT; n++) CHECK_EQ(record_size(order[n], 700), record_size(n, 700));
        CHECK_EQ(access(test_path("m-%s.index", forms[i]), F_OK) == 0, i == 0 || i == 3);
    }
    run_and_see("tfrecord-cat --count m-none m-gzip m-zlib m-seekable", 0, "1200  total");
    run_and_see("tfrecord-cat --diff m-none m-seekable", 0, "the same 300 records");
    run_and_see("tfrecord-cat --record 250 --raw --json m-seekable | tr -d '\\n' | wc -l", 0, "0");
    run_and_see("cat said", 0, "300 records, ");
    /* Standard output, here a pipe, as the output file. */
    run_and_see("tfrecord-cat --merge --out - a.tfrecord | tfrecord-cat --count -", 0, "100");
    run_and_see("tfrecord-cat --merge --out - m-none | head -c 10 | wc -c", 0, "10");
}

TEST(cat_split_is_undone_by_merge)
{
    write_some(test_path("a b.tfrecord"), 0, COUNT, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    run_ok("tfrecord-cat --split 4 --out s.tfrecord 'a b.tfrecord' >said");
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 4; i++) {
        struct stat about;
        CHECK_EQ(stat(test_path("s-%05d-of-00004.tfrecord", i), &about), 0);
        if ((uint64_t)about.st_size < least) least = (uint64_t)about.st_size;
        if ((uint64_t)about.st_size > most) most = (uint64_t)about.st_size;
        CHECK_EQ(access(test_path("s-%05d-of-00004.tfrecord.index", i), F_OK), 0);
    }
    CHECK(most - least <= 2 * (SIZE_MAX_HERE + 16));
    run_and_see("tfrecord-cat --diff s.tfrecord@4 'a b.tfrecord' || tfrecord-cat --diff s@4.tfrecord 'a b.tfrecord'", 0,
                "the same 300 records");
    run_ok("cat 'a b.tfrecord' | tfrecord-cat --split 4 --out p.tfrecord - >said");
    for (int i = 0; i < 4; i++) {
        char command[200];
        snprintf(command, sizeof command, "cmp s-%05d-of-00004.tfrecord p-%05d-of-00004.tfrecord", i, i);
        run_ok(command);
    }
    /* Shards by size, more shards than records, and no records at all. */
    run_ok("tfrecord-cat --merge --shard-size 30K --out z 'a b.tfrecord' >said && ls z-00000-of-0000*");
    run_ok("tfrecord-cat --merge --shards 7 --out e --head 3 'a b.tfrecord' >said && test -f e-00006-of-00007");
    run_and_see("tfrecord-cat --count e@7", 0, "3  total");
    run_ok("tfrecord-cat --split 2 --out n --range 5:5 'a b.tfrecord' >said");
    run_and_see("tfrecord-cat --count n@2", 0, "0  total");
}

TEST(cat_shuffle_follows_from_the_seed_alone)
{
    write_some(test_path("a"), 0, 150, (mr_record_writer_options){0});
    write_some(test_path("b.gz"), 150, 150, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    run_ok("tfrecord-cat --shuffle --seed 7 --out x a b.gz >said");
    run_ok("cat b.gz | tfrecord-cat --shuffle --seed 7 --out y a - >said && cmp x y");
    run_ok("tfrecord-cat --shuffle --seed 8 --out z a b.gz >said && ! cmp -s x z");
    run_ok("tfrecord-cat --shuffle --seed 7 --out s --compress seekable a b.gz >said");
    run_and_see("tfrecord-cat --diff x s", 0, "the same 300 records");
    run_ok("tfrecord-cat --shuffle --seed 7 --shards 3 --out p a b.gz >said");
    run_and_see("tfrecord-cat --diff x p@3", 0, "the same 300 records");
    int order[COUNT], in_place = 0;
    CHECK_EQ(read_numbers(test_path("x"), order, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++) in_place += order[i] == i;
    CHECK(in_place < 20);
    run_ok("tfrecord-cat --shuffle --out empty --range 0:0 a >said");
}

/* Input larger than the memory limit has the same order as with enough memory. */
TEST(cat_shuffle_is_the_same_through_buckets)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    static unsigned char bytes[6 << 20];
    CHECK_OK(mr_record_writer_open(test_path("big"), nullptr, &writer, &error));
    for (int i = 0; i < 3000; i++) {
        /* A few records are larger than a bucket. */
        size_t size = i % 1000 == 500 ? sizeof bytes : (size_t)i * 2654435761u % 8000;
        memset(bytes, 0, size < 100 ? size : 100);
        memcpy(bytes, &i, size < 4 ? size : 4);
        CHECK_OK(mr_record_writer_append(writer, bytes, size, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    run_ok("tfrecord-cat --shuffle --seed 3 --out plenty big >said");
    run_ok("tfrecord-cat --shuffle --seed 3 --out little --memory 4M big >said && cmp plenty little");
    run_and_see("tfrecord-cat --diff --unordered big little", 0, "the same 3000 records");
    run_ok("ls -A | grep -v -e '^big$' -e '^plenty' -e '^little' -e '^said$' | wc -l | grep -x 0");
}

TEST(cat_rewriting_never_replaces_an_input)
{
    write_some(test_path("a"), 0, 50, (mr_record_writer_options){.index = true});
    write_some(test_path("b"), 50, 50, (mr_record_writer_options){0});
    run_ok("cp a keep && ln a hard && ln -s a soft");
    run_and_see("tfrecord-cat --merge --force --out a a b", 1, "is one of the input files");
    run_and_see("tfrecord-cat --shuffle --force --out soft a b", 1, "is one of the input files");
    run_and_see("tfrecord-cat --merge --force --out hard a b", 1, "is one of the input files");
    run_and_see("cat b | tfrecord-cat --shuffle --force --out a a -", 1, "is one of the input files");
    run_and_see("tfrecord-cat --merge --out b a", 1, "--force replaces it");
    run_and_see("tfrecord-cat --merge a b", 2, "--out");
    run_and_see("tfrecord-cat --merge --out . a b", 1, "already exists");
    run_and_see("tfrecord-cat --split 0 --out x a", 2, "shards");
    run_and_see("tfrecord-cat --split 5 --out - a", 2, "standard output");
    run_and_see("tfrecord-cat --merge --shard-size much --out x a", 2, "not a size");
    run_and_see("tfrecord-cat --merge --out x a nothing", 1, "nothing was written");
    run_ok("cmp a keep && test ! -e x");
    /* With --force the index of the replaced file is removed too. */
    run_ok("tfrecord-cat --merge --force --compress gzip --out a b >said && test ! -e a.index && rm -f hard");
    run_and_see("tfrecord-cat --diff a b", 0, "the same 50 records");
}

TEST(cat_rewriting_refuses_damage)
{
    write_some(test_path("a"), 0, 50, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(test_path("a"), &size);
    bytes[record_begin(20, SIZE_MAX_HERE) + 12] ^= 1;
    file_save(test_path("a"), bytes, size);
    free(bytes);
    const char *const commands[] = {"--merge", "--split 3", "--shuffle"};
    for (int i = 0; i < 3; i++) {
        char command[200];
        snprintf(command, sizeof command, "tfrecord-cat %s --out out a; e=$?; ls out*; exit $e", commands[i]);
        run_and_see(command, 1, "nothing was written");
        run_and_see(command, 1, "record 20");
        CHECK(access(test_path("out"), F_OK) != 0 && access(test_path("out.partial"), F_OK) != 0);
    }
}

static mr_string example(mr_example_encoder *encoder, int number, int label)
{
    mr_error error = {0};
    mr_string record;
    char name[32];
    float score[3] = {1, 2, (float)label / 4};
    snprintf(name, sizeof name, "image-%d", number);
    mr_example_add_int64(encoder, "label", label);
    mr_example_add_bytes(encoder, "name", mr_string_from(name));
    mr_example_add_float_list(encoder, "score", score, (size_t)(label == 9 ? 2 : 3));
    if (label == 8) mr_example_add_int64(encoder, "more", 1);
    CHECK_OK(mr_example_finish(encoder, &record, &error));
    return record;
}

static void write_examples(const char *path, int count, int first, int other, int other_label)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < count; i++) {
        mr_string record = example(&encoder, first + i, first + i == other ? other_label : 1);
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

TEST(cat_diff_shows_the_features_that_differ)
{
    write_examples(test_path("a"), 30, 0, -1, 0);
    write_examples(test_path("b"), 30, 0, 17, 5);
    run_and_see("tfrecord-cat --diff a a", 0, "the same 30 records");
    run_and_see("tfrecord-cat --diff a b", 1,
                "record 17 differs\n  label: 1 and 5\n  score: value 2 is 0.25 and 1.25\n1 of 30 records differs\n");
    write_examples(test_path("b"), 30, 0, 17, 9);
    run_and_see("tfrecord-cat --diff a b", 1, "  score: 3 and 2 values\n");
    write_examples(test_path("b"), 28, 0, 17, 8);
    run_and_see("tfrecord-cat --diff a b", 1, "  more: only in the second\n");
    run_and_see("tfrecord-cat --diff a b", 1,
                "records 28 to 29 are only in a\n3 of 30 records differ: 1 changed, 2 only in a, 0 only in b\n");
    write_examples(test_path("b"), 30, 1, -1, 0);
    run_and_see(
        "tfrecord-cat --diff a b", 1,
        "record 0 is only in a\nrecord 29 is only in b\n2 of 30 records differ: 0 changed, 1 only in a, 1 only in b\n");
    write_examples(test_path("c"), 30, 100, -1, 0);
    run_and_see("tfrecord-cat --diff a c", 1, "  name: \"image-0\" and \"image-100\"\n");
    run_and_see("tfrecord-cat --diff a c", 1, "and 20 more records that differ\n30 of 30 records differ\n");
    run_and_see("tfrecord-cat --diff --unordered a b", 1, "1 record is only in a: 0\n1 record is only in b: 29\n");
    run_and_see("tfrecord-cat --diff a", 2, "two FILEs");
    run_and_see("tfrecord-cat --diff a b a", 2, "two FILEs");
    run_and_see("tfrecord-cat --diff a nothing", 1, "nothing");
    write_some(test_path("r"), 0, 30, (mr_record_writer_options){0});
    run_and_see("tfrecord-cat --diff a r", 1, "bytes, different from byte 0 on");
}

/* ---- Differences in order: inserted, removed and changed records ---- */

typedef struct edit {
    int at, removed, added; /* record numbers of a; the first min(removed, added) are changed in place */
} edit;

/* Writes two files whose records are numbers: a with 0 … count - 1, and b with the edits, which are sorted. Inserted
 * numbers differ from all others. */
static void write_edited(const edit *edits, int edit_count, int count)
{
    mr_error error = {0};
    mr_record_writer *a = nullptr, *b = nullptr;
    CHECK_OK(mr_record_writer_open(test_path("a"), nullptr, &a, &error));
    CHECK_OK(mr_record_writer_open(test_path("b"), nullptr, &b, &error));
    int64_t fresh = -1;
    for (int64_t i = 0, left = 0; i <= count; i++) {
        for (int e = 0; e < edit_count; e++) {
            if (edits[e].at != i) continue;
            left = edits[e].removed;
            for (int n = 0; n < edits[e].added; n++, fresh--)
                CHECK_OK(mr_record_writer_append(b, &fresh, sizeof fresh, &error));
        }
        if (i == count) break;
        CHECK_OK(mr_record_writer_append(a, &i, sizeof i, &error));
        if (left-- > 0) continue;
        CHECK_OK(mr_record_writer_append(b, &i, sizeof i, &error));
    }
    CHECK_OK(mr_record_writer_close(a, &error));
    CHECK_OK(mr_record_writer_close(b, &error));
}

static void put_run(char *text, size_t size, int first, int count, const char *file)
{
    size_t used = strlen(text);
    if (count == 1) snprintf(text + used, size - used, "record %d is only in %s\n", first, file);
    if (count > 1)
        snprintf(text + used, size - used, "records %d to %d are only in %s\n", first, first + count - 1, file);
}

/* Checks the report of the edits. */
static void check_edited(const edit *edits, int edit_count, int count)
{
    char expected[4000] = "";
    int shift = 0, removed = 0, added = 0;
    write_edited(edits, edit_count, count);
    for (int e = 0; e < edit_count; e++) {
        put_run(expected, sizeof expected, edits[e].at, edits[e].removed, "a");
        put_run(expected, sizeof expected, edits[e].at + shift, edits[e].added, "b");
        shift += edits[e].added - edits[e].removed;
        removed += edits[e].removed;
        added += edits[e].added;
    }
    size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used,
             "%d of %d records differ%s: 0 changed, %d only in a, %d only in b\n", removed + added,
             shift > 0 ? count + shift : count, removed + added == 1 ? "s" : "", removed, added);
    const program_result *result = program_run("cd '%s' && tfrecord-cat --diff a b", test_directory());
    CHECK_STR(result->output, expected);
    CHECK_EQ(result->exit_code, 1);
}

TEST(cat_diff_aligns_again_after_each_difference)
{
    check_edited((const edit[]){{0, 0, 1}}, 1, 10'000);
    check_edited((const edit[]){{9999, 1, 0}}, 1, 10'000);
    check_edited((const edit[]){{10'000, 0, 3}}, 1, 10'000);
    check_edited((const edit[]){{0, 0, 1}, {20, 1, 0}, {60, 0, 70}, {200, 100, 0}, {1000, 1000, 0}, {5000, 0, 4000}}, 6,
                 10'000);
    check_edited((const edit[]){{3000, 4000, 0}, {7500, 0, 1}, {7501, 0, 2}}, 3, 20'000);
    check_edited((const edit[]){{0, 5, 0}}, 1, 5);
    /* Differences at random positions, which may be at the end of a window. */
    edit edits[8];
    uint64_t state = test_seed();
    for (int round = 0; round < 20; round++) {
        int at = 0, count = 0;
        for (; count < 8; count++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bool adds = state >> 63;
            int size = 1 + (int)(state >> 40) % (round % 2 ? 3 : 200);
            edits[count] = (edit){at, adds ? 0 : size, adds ? size : 0};
            /* Between two edits there are enough equal records to rule out a changed record. */
            at += size + 210 + (int)(state >> 20 & 255);
        }
        check_edited(edits, count, at + 100);
    }
}

TEST(cat_diff_tells_changed_records_from_new_ones)
{
    write_edited((const edit[]){{100, 2, 2}, {500, 1, 2}}, 2, 1000);
    run_and_see("tfrecord-cat --diff a b", 1,
                "record 100 differs\n  8 and 8 bytes, different from byte 0 on\nrecord 101 differs\n  8 and 8 bytes, "
                "different from byte 0 on\n");
    run_and_see("tfrecord-cat --diff a b", 1, "4 of 1001 records differ: 3 changed, 0 only in a, 1 only in b\n");
    /* After an inserted record, the numbers in a and b differ. */
    write_edited((const edit[]){{10, 0, 1}, {500, 1, 1}}, 2, 1000);
    run_and_see(
        "tfrecord-cat --diff a b", 1,
        "record 10 is only in b\nrecord 500 and record 501 of b differ\n  8 and 8 bytes, different from byte 0 on\n");
    /* Several files: shards differ, and messages name the shard and the record's number in it. */
    run_ok("tfrecord-cat --split 3 --out s b >said");
    run_and_see("tfrecord-cat --diff a s@3", 1,
                "record 10 (record 10 of s-00000-of-00003) is only in s-00000-of-00003\nrecord 500 and record 501 of "
                "s-00000-of-00003 (record 167 of s-00001-of-00003) differ\n");
    run_and_see("cat b | tfrecord-cat --diff a -", 1, "2 of 1001 records differ");
    /* A missing record among equal records is found. */
    run_ok("for i in 1 2 3; do cat b; done >x; cat b b >y");
    run_and_see("tfrecord-cat --diff x y", 1, "1001 of 3003 records differ: 0 changed, 1001 only in x, 0 only in y\n");
    /* First more inserted records than the comparison looks ahead. Then files without any common record: all of them
     * are reported as changed, up to the end. */
    write_edited((const edit[]){{10, 0, 9000}}, 1, 10'000);
    run_and_see("tfrecord-cat --diff a b", 1, " of 19000 records differ: ");
    write_edited((const edit[]){{0, 10'000, 10'000}}, 1, 10'000);
    run_and_see("tfrecord-cat --diff a b", 1, "and 9990 more records that differ\n10000 of 10000 records differ\n");
}

TEST(cat_diff_unordered_counts_equal_records)
{
    mr_error error = {0};
    const struct {
        const char *name;
        int ones, twos, threes;
    } files[] = {{"a", 70'000, 3, 0}, {"b", 70'000, 3, 0}, {"c", 69'998, 3, 2}};
    for (int f = 0; f < 3; f++) {
        mr_record_writer *writer = nullptr;
        CHECK_OK(mr_record_writer_open(test_path("%s", files[f].name), nullptr, &writer, &error));
        for (int i = 0; i < files[f].threes; i++) CHECK_OK(mr_record_writer_append(writer, "three", 5, &error));
        for (int i = 0; i < files[f].ones; i++) CHECK_OK(mr_record_writer_append(writer, "one", 3, &error));
        for (int i = 0; i < files[f].twos; i++) CHECK_OK(mr_record_writer_append(writer, "two", 3, &error));
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
    run_and_see("tfrecord-cat --diff --unordered a b", 0, "the same 70003 records");
    run_and_see("tfrecord-cat --diff --unordered --memory 1M a c", 1,
                "2 records are only in a: 0, …\n2 records are only in c: 0, …\n");
    run_and_see("cat c | tfrecord-cat --diff --unordered a -", 1, "the records differ: 70003 and 70003");
    run_and_see("cat b | tfrecord-cat --diff --unordered a -", 0, "the same");
}

/* Several passes, each with the hashes of one range. */
TEST(cat_diff_unordered_goes_in_passes)
{
    mr_error error = {0};
    for (int f = 0; f < 2; f++) {
        mr_record_writer *writer = nullptr;
        CHECK_OK(mr_record_writer_open(test_path("%d", f), nullptr, &writer, &error));
        for (int i = 0; i < 60'000; i++) {
            int number = f == 0 ? i : 59'999 - i;
            if (f == 1 && number % 20'000 == 123) number = -number;
            CHECK_OK(mr_record_writer_append(writer, &number, sizeof number, &error));
        }
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
    run_and_see("tfrecord-cat --diff --unordered --memory 1M 0 1", 1,
                "3 records are only in 0: 123, 20123, 40123\n3 records are only in 1: 19876, 39876, 59876\n");
}

TEST(cat_index_reports_what_it_does)
{
    write_some(test_path("a b"), 0, 50, (mr_record_writer_options){0});
    write_some(test_path("s"), 0, 50,
               (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP, .seek_bytes = 4096});
    write_some(test_path("z"), 0, 50, (mr_record_writer_options){.compression = MR_COMPRESSION_ZLIB});
    run_and_see("tfrecord-cat --index 'a b' s z", 0, "a b: 50 records, created\n");
    run_and_see("tfrecord-cat --index 'a b' s z", 0,
                "a b: 50 records, the index is up to date\ns: 50 records, 4 points, the index is up to date\nz: 50 "
                "records, not "
                "seekable, the index is up to date\n");
    run_ok("touch -d 2001-02-03 'a b' && cp z.index s.index && cp s.index z.index.old && cp 'a b.index' z.index");
    run_and_see("tfrecord-cat --index 'a b' s z", 0,
                "a b: 50 records, the index is up to date\ns: 50 records, 4 points, rebuilt, the index was "
                "stale\nz: 50 records, not seekable, rebuilt, the index was stale\n");
    run_ok("printf x >>'a b.index'");
    run_and_see("tfrecord-cat --index 'a b'", 0, "the index was damaged");
    run_and_see("tfrecord-cat --index -", 2, "standard input");
    run_and_see("tfrecord-cat --index nothing 'a b'", 1, "the index is up to date");
}

TEST(cat_index_goes_to_and_from_dali)
{
    write_some(test_path("a"), 0, 50, (mr_record_writer_options){0});
    write_some(test_path("b"), 5, 50, (mr_record_writer_options){0});
    run_and_see("tfrecord-cat --index --dali a", 0, "DALI's index written");
    run_and_see("rm a.index; tfrecord-cat --index --from-dali a", 0, "a: 50 records, imported from DALI's index");
    run_and_see("tfrecord-cat --index a", 0, "the index is up to date");
    run_and_see("cp a.idx b.idx; tfrecord-cat --index --from-dali b", 1, "b: ");
    CHECK(access(test_path("b.index"), F_OK) != 0);
    run_and_see("tfrecord-cat --repair-index b", 0, "both indexes rebuilt");
    run_and_see("tfrecord-cat --repair-index b", 0, "the index is correct");
    run_and_see("cp a.idx b.idx; tfrecord-cat --repair-index b", 0, "DALI's index rebuilt");
    run_and_see("tfrecord-cat --index --from-dali b", 0, "imported from DALI's index");
    /* An index whose size and time match the file, but whose contents are wrong. */
    run_ok("cp b b2 && touch -r b b2 && cp b.index b2.index");
    size_t size;
    unsigned char *bytes = file_load(test_path("b2.index"), &size), t[4];
    memcpy(t, bytes + 52, 4);
    memcpy(bytes + 52, bytes + 56, 4);
    memcpy(bytes + 56, t, 4);
    uint32_t crc = mr_crc32c_mask(mr_crc32c(0, bytes, size - 4));
    for (int i = 0; i < 4; i++) bytes[size - 4 + (size_t)i] = (unsigned char)(crc >> 8 * i);
    file_save(test_path("b2.index"), bytes, size);
    free(bytes);
    run_and_see("tfrecord-cat --repair-index b2", 0, "the index was wrong");
    run_ok("truncate -s -1 a");
    run_and_see("tfrecord-cat --repair-index a", 1, "truncated");
}

/* ---- Killed runs and full disks ---- */

/* Runs tfrecord-cat in the test's directory and kills it after kill_at changes there (-1: never). Returns true if it
 * ended by itself. changes: receives the number of changes; may be null */
static bool run_and_kill(const char *const *words, int count, int kill_at, int *changes)
{
    const char *program = test_bin("tfrecord-cat");
    char *args[16] = {nullptr};
    int watch = kill_watch(test_directory()), status;
    for (int i = 0; i < count; i++) args[i] = (char *)words[i];
    pid_t child = fork();
    if (child == 0) {
        if (chdir(test_directory()) != 0 || !freopen("/dev/null", "w", stdout)) _exit(1);
        execv(program, args);
        _exit(127);
    }
    int seen = kill_at_change(child, watch, kill_at, &status);
    if (changes) *changes = seen;
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
}

/* Counts the files in the directory whose names begin with start, except partial files and indexes, and checks that
 * each is complete. *half receives the number of partial files. */
static int check_outputs(const char *start, int *half)
{
    int whole = 0;
    *half = 0;
    DIR *directory = opendir(test_directory());
    CHECK(directory != nullptr);
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (strncmp(name, start, strlen(start)) != 0) continue;
        *half += strstr(name, ".partial") != nullptr;
        if (strstr(name, ".partial") || strstr(name, ".index")) continue;
        whole++;
        mr_error error = {0};
        mr_record_reader *reader = nullptr;
        mr_string record;
        mr_status status;
        CHECK_OK(mr_record_reader_open(test_path("%s", name), nullptr, &reader, &error));
        while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {}
        CHECK_STATUS(status, MR_OUT_OF_RANGE);
        mr_record_reader_close(reader);
        mr_record_index index = {0};
        CHECK_OK(mr_record_index_build(test_path("%s", name), 1, &index, &error));
        mr_record_index_deinit(&index);
    }
    closedir(directory);
    return whole;
}

TEST(cat_rewriting_killed_at_any_moment_is_run_again)
{
    if (access(test_bin("tfrecord-cat"), X_OK) != 0) test_skip("tfrecord-cat is not built");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(test_path("in"), nullptr, &writer, &error));
    static unsigned char bytes[9000];
    for (int i = 0; i < 1500; i++) {
        record_fill(i, bytes, 200);
        CHECK_OK(mr_record_writer_append(writer, bytes, (size_t)i * 2654435761u % 9000, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    const char *const commands[][9] = {
        {"tfrecord-cat", "--merge", "--out", "out", "--compress=seekable", "in"},
        {"tfrecord-cat", "--split", "5", "--out", "out", "in"},
        {"tfrecord-cat", "--shuffle", "--memory=4M", "--shards=3", "--out", "out", "in"},
        {"tfrecord-cat", "--merge", "--compress=zlib", "--out", "out", "in"},
    };
    const int counts[] = {1, 5, 3, 1};
    uint64_t state = test_seed();
    int killed = 0, left = 0, half;
    for (int i = 0; i < 4; i++) {
        int changes;
        CHECK(run_and_kill(commands[i], 9, -1, &changes));
        CHECK_EQ(check_outputs("out", &half), counts[i]);
        CHECK_EQ(half, 0);
        run_ok("mkdir whole && mv out* whole");
        for (int round = 0; round < 4; round++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bool ended = run_and_kill(commands[i], 9, (int)((state >> 33) % (uint64_t)changes), nullptr);
            (void)check_outputs("out", &half);
            killed += !ended;
            left += half;
            /* Files left by another command with the same --out are removed too. */
            if (round % 3 == 2) (void)run_and_kill(commands[(i + 1) % 4], 9, changes / 2, nullptr);
            /* Final names are given at the end, one after the other. */
            if (check_outputs("out", &half) > 0) run_ok("rm out*");
            if (!run_and_kill(commands[i], 9, -1, nullptr)) test_fail(__FILE__, __LINE__, "killed");
            CHECK_EQ(check_outputs("out", &half), counts[i]);
            CHECK_EQ(half, 0);
            run_ok("for f in out*; do case $f in *.index) ;; *) cmp $f whole/$f || exit 1;; esac; done");
            run_ok("tfrecord-cat --count out* >counted && rm out*");
        }
        run_ok("rm -r whole");
    }
    CHECK(killed >= 8 && left > 0);
    run_ok("tfrecord-cat --shuffle --memory 4M --shards 3 --out out --force in >said");
    run_and_see("tfrecord-cat --diff --unordered in out@3", 0, "the same 1500 records");
}

TEST(cat_rewriting_has_its_output_alone)
{
    write_some(test_path("in"), 0, 10, (mr_record_writer_options){0});
    /* A run that waits for its input, detected by its partial file. */
    run_ok("mkfifo pipe; { tfrecord-cat --merge --out out pipe & } ; exec 3>pipe; while ! test -e out.partial && kill "
           "-0 $!; do :; done;"
           " tfrecord-cat --split 2 --out out in >second 2>&1; echo $? >>second; cat in >&3; exec 3>&-; wait");
    run_and_see("cat second", 0, "another tfrecord-cat is writing this file\n1\n");
    run_and_see("tfrecord-cat --diff in out", 0, "the same 10 records");
    run_and_see("ls out*", 0, "out\nout.index\n");
    /* An input file is never treated as a leftover, whatever its name. */
    run_ok("cp in x.partial && cp in x-00001-of-00004.partial && touch x.partial.txt");
    run_and_see("tfrecord-cat --merge --out x x.partial", 1, "x.partial: is one of the input files");
    run_and_see("tfrecord-cat --split 2 --out x x-00001-of-00004.partial", 1,
                "x-00001-of-00004.partial: is one of the input files");
    run_ok("cmp in x-00001-of-00004.partial && tfrecord-cat --split 2 --out x in >said");
    run_and_see("echo x*", 0,
                "x-00000-of-00002 x-00000-of-00002.index x-00001-of-00002 x-00001-of-00002.index x.partial.txt\n");
}

TEST(cat_rewriting_on_a_full_disk_leaves_no_file)
{
    write_some(test_path("in"), 0, COUNT, (mr_record_writer_options){0});
    const char *const commands[] = {"--merge", "--split 2", "--shuffle", "--merge --compress zlib"};
    for (int i = 0; i < 4; i++) {
        char command[300];
        snprintf(command, sizeof command,
                 "(ulimit -f 40; trap '' XFSZ; tfrecord-cat %s --out out in); e=$?; ls; exit $e", commands[i]);
        run_and_see(command, 1, "cannot write");
        CHECK(!strstr(program_run("cd '%s' && ls", test_directory())->output, "out"));
    }
}

TEST(cat_rewriting_names_are_safe_to_print)
{
    write_some(test_path("a\n\x1b[31m\xff"), 0, 5, (mr_record_writer_options){0});
    const program_result *result = program_run(
        "cd '%s' && for f in a*; do tfrecord-cat --merge --out \"x$f\" \"$f\" && tfrecord-cat --index \"$f\" && "
        "tfrecord-cat --diff --unordered \"$f\" \"x$f\"; done",
        test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK(!strchr(result->output, 0x1b) && !strchr(result->output, 0xff));
}
