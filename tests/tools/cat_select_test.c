/* Record selection in tfrecord-cat: directories, globs and pipes as input, ranges, samples and conditions. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <sys/stat.h>

/* The labels of the selected records, as "3 4 5 ". */
static const char *labels(const char *arguments)
{
    const program_result *result =
        program_run("cd '%s' && tfrecord-cat --csv -f label %s | tr -d '\\r' | tail -n +2 | tr '\\n' ' '",
                    test_directory(), arguments);
    CHECK_EQ(result->exit_code, 0);
    return result->output;
}

/* Writes records 0 … 99 to three files: with an index, without one, and compressed. */
static void make_files(void)
{
    examples_write_from(test_path("a.tfrecord"), 0, 30, (mr_record_writer_options){.index = true});
    examples_write_from(test_path("b.tfrecord"), 30, 30, (mr_record_writer_options){0});
    examples_write_from(test_path("c.tfrecord"), 60, 40,
                        (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
}

TEST(cat_range_counts_through_all_files)
{
    make_files();
    CHECK_STR(labels("--range 28:32 a.tfrecord b.tfrecord c.tfrecord"), "28 29 30 31 ");
    CHECK_STR(labels("--range 58:61 a.tfrecord b.tfrecord c.tfrecord"), "58 59 60 ");
    CHECK_STR(labels("--range :2 ."), "0 1 ");
    CHECK_STR(labels("--range 98: ."), "98 99 ");
    CHECK_STR(labels("--range 5:5 ."), "");
    CHECK_STR(labels("--range 100:100 ."), "");
    CHECK_STR(labels("--range 90:9000 --head 2 ."), "90 91 ");
    CHECK_STR(labels("--record 61 ."), "61 ");
    CHECK_STR(labels("--range 28:32 - < a.tfrecord"), "28 29 ");
    CHECK_STR(labels("--range 40:90 --where 'label % 20 == 3' ."), "43 63 83 ");
    CHECK_STR(labels("--where 'label >= 58 && label < 62 || label == 99' --head 3 ."), "58 59 60 ");
    CHECK_STR(labels("--head 0 ."), "");
    CHECK_STR(
        program_run("cd '%s' && tfrecord-cat --count --where 'label >= 58 && label < 62' .", test_directory())->output,
        "4\n");
    CHECK_EQ(program_run("cd '%s' && tfrecord-cat --record 100 .", test_directory())->exit_code, 1);
    CHECK_EQ(program_run("cd '%s' && tfrecord-cat --range 100: .", test_directory())->exit_code, 1);
    CHECK_CONTAINS(program_run("cd '%s' && tfrecord-cat --range 101: .", test_directory())->output,
                   "there is no record 101, only 100");
    static const char *const wrong[] = {
        "--range 3",  "--range x:4",       "--range -1:4", "--range 7:3", "--range 1:0", "--record 1 --range 1:2",
        "--sample x", "--where 'label ='", "--bytes hexa", "--json --csv"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(program_run("cd '%s' && tfrecord-cat %s .", test_directory(), wrong[i])->exit_code, 2);
}

TEST(cat_range_numbers_are_the_same_after_damage)
{
    const char *path = test_path("d.tfrecord");
    mr_error error = {0};
    mr_record_index index = {0};
    examples_write(path, 20, (mr_record_writer_options){0});
    CHECK_OK(mr_record_index_open(path, &index, &error));
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[index.offsets[3] + 20] ^= 1;
    file_save(path, bytes, size);
    free(bytes);
    mr_record_index_deinit(&index);
    CHECK_CONTAINS(program_run("tfrecord-cat --range 5:6 %s", path)->output, "label  int64  5\n");
    CHECK_CONTAINS(program_run("tfrecord-cat --range 5:6 - < %s", path)->output, "label  int64  5\n");
    CHECK_CONTAINS(program_run("tfrecord-cat --record 5 %s", path)->output, "record 5 at ");
    const program_result *result = program_run("tfrecord-cat --record 3 %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 3 at byte");
}

TEST(cat_sample_is_the_same_however_it_is_read)
{
    make_files();
    char first[400];
    snprintf(first, sizeof first, "%s", labels("--sample 10 --seed 7 a.tfrecord b.tfrecord c.tfrecord"));
    int count = 0, last = -1;
    for (char *at = first; *at; count++) {
        int label = (int)strtol(at, &at, 10);
        CHECK(label > last && label < 100);
        last = label;
        at++;
    }
    CHECK_EQ(count, 10);
    /* The sample is the same from a pipe, from a file, and with a condition that is always true. */
    examples_write(test_path("all"), 100, (mr_record_writer_options){0});
    CHECK_STR(labels("--sample 10 --seed 7 - < all"), first);
    CHECK_STR(labels("--sample 10 --seed 7 all"), first);
    CHECK_STR(labels("--sample 10 --seed 7 --where 'label >= 0' all"), first);
    CHECK(strcmp(labels("--sample 10 --seed 8 all"), first) != 0);
    CHECK(strcmp(labels("--sample 10 all"), labels("--sample 10 --seed 0 all")) == 0);
    CHECK_STR(labels("--sample 4 --range 10:13 all"), "10 11 12 ");
    CHECK_STR(labels("--sample 0 all"), "");
    CHECK_CONTAINS(first, labels("--sample 10 --seed 7 --head 2 all"));
    /* A sample is drawn from the records that match the condition. */
    CHECK_STR(labels("--sample 9 --where 'label < 5' a.tfrecord c.tfrecord"), "0 1 2 3 4 ");
    CHECK_STR(labels("--sample 3 --where 'label >= 97' - < all"), "97 98 99 ");
}

TEST(cat_sample_is_fair)
{
    examples_write(test_path("f"), 20, (mr_record_writer_options){0});
    int drawn[20] = {0};
    for (int seed = 0; seed < 60; seed++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "--sample 5 --seed %d f", seed);
        for (const char *at = labels(arguments); *at; at++) drawn[strtol(at, (char **)&at, 10)]++;
    }
    /* The expected count is 15. A fair draw exceeds these limits once in 10,000 runs; the seeds are fixed. */
    for (int i = 0; i < 20; i++) CHECK(drawn[i] >= 3 && drawn[i] <= 29);
}

TEST(cat_accepts_directories_globs_and_unusual_names)
{
    static const char *const names[] = {"x/train-00000-of-00002", "x/train-00001-of-00002",     "x/with space.tfrecord",
                                        "x/new\nline.tfrecord",   "x/bad\xff\x1b[31m.tfrecord", "x/deep/er/plain"};
    CHECK_EQ(program_run("mkdir -p '%s/x/deep/er' '%s/x/empty'", test_directory(), test_directory())->exit_code, 0);
    for (int i = 0; i < 6; i++)
        examples_write_from(test_path("%s", names[i]), 10 * i, 2, (mr_record_writer_options){.index = true});
    file_save(test_path("x/notes.txt"), (const unsigned char *)"nothing of records in here", 26);
    file_save(test_path("x/half.tfrecord.partial"), (const unsigned char *)"half", 4);
    file_save(test_path("x/.hidden.tfrecord"), (const unsigned char *)"hidden", 6);
    /* Sorted by name: bad…, deep/er/plain, new…, train…, with…. */
    CHECK_STR(labels("x"), "40 41 50 51 30 31 0 1 10 11 20 21 ");
    CHECK_STR(labels("x/"), "40 41 50 51 30 31 0 1 10 11 20 21 ");
    CHECK_STR(labels("x/train@2"), "0 1 10 11 ");
    CHECK_STR(labels("'x/train-*' 'x/with space.tfrecord'"), "0 1 10 11 20 21 ");
    CHECK_STR(labels("x/train-*"), "0 1 10 11 ");
    CHECK_STR(labels("'x/d*'"), "50 51 ");
    const program_result *result = program_run("cd '%s' && tfrecord-cat x/empty x/train@2", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no record files in this directory");
    CHECK_CONTAINS(result->output, "label  int64  11");
    /* Every name is escaped before it is printed. */
    result =
        program_run("cd '%s' && tfrecord-cat x && tfrecord-cat --count x && tfrecord-cat --json x", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "x/new\\nline.tfrecord\n");
    CHECK_CONTAINS(result->output, "x/bad\\xff\\x1b[31m.tfrecord\n");
    CHECK(strchr(result->output, '\x1b') == nullptr);
    CHECK(strchr(result->output, '\xff') == nullptr);
}

TEST(cat_where_warns_about_likely_mistakes)
{
    examples_write(test_path("w"), 3, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --where 'lable == 3' %s", test_path("w"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_STR(result->output, "tfrecord-cat: --where: no record has a feature \"lable\"\n");
    result = program_run("tfrecord-cat --where 'label == 1 && text = 3' %s", test_path("w"));
    CHECK_EQ(result->exit_code, 2);
    CHECK_CONTAINS(result->output, "--where: use == for equality\n  label == 1 && text = 3\n                     ^\n");
    char longest[600];
    memset(longest, ' ', sizeof longest);
    memcpy(longest, "label == 1 &&", 13);
    memcpy(longest + 500, "label = 1", 10);
    result = program_run("tfrecord-cat --where '%s' %s", longest, test_path("w"));
    CHECK_EQ(result->exit_code, 2);
    CHECK(examples_columns(result->output) <= 60);
}

TEST(cat_is_quiet_when_nobody_reads_on)
{
    examples_write(test_path("q"), 2'000, (mr_record_writer_options){0});
    static const char *const forms[] = {"", "--json", "--csv -f label", "--json --sample 1900"};
    for (int i = 0; i < 4; i++) {
        const char *path = test_path("q");
        CHECK_EQ(atoi(program_run("tfrecord-cat %s %s %s %s | head -1 | wc -l", forms[i], path, path, path)->output),
                 1);
        /* The same with SIGPIPE ignored, as in some callers' shells. */
        const program_result *result =
            program_run("(trap '' PIPE; tfrecord-cat %s %s %s %s) | head -1 > /dev/null", forms[i], path, path, path);
        CHECK_STR(result->output, "");
    }
}

TEST(cat_writes_the_same_with_one_thread_and_many)
{
    enum { LONG = 5 << 20 };
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    char *bytes = calloc(1, LONG);
    make_files();
    examples_write(test_path("d.tfrecord"), 9'000, (mr_record_writer_options){0});
    mr_example_add_bytes(&encoder, "long", (mr_string){bytes, LONG});
    mr_example_add_int64(&encoder, "label", 5);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    examples_write_one(test_path("long"), record);
    mr_example_encoder_deinit(&encoder);
    free(bytes);
    CHECK_EQ(program_run("cd '%s' && cat d.tfrecord long a.tfrecord > e.tfrecord && rm long a.tfrecord.index",
                         test_directory())
                 ->exit_code,
             0);
    size_t size;
    unsigned char *file = file_load(test_path("e.tfrecord"), &size);
    file[30] ^= 1, file[size - 5] ^= 1;
    file_save(test_path("e.tfrecord"), file, size);
    free(file);
    CHECK_EQ(program_run("cd '%s' && gzip -c e.tfrecord > f.tfrecord", test_directory())->exit_code, 0);
    /* One thread reads a range, all threads read complete files. */
    static const char *const conditions[] = {"", "--where 'label % 3 == 2 && text contains \"dich\" || label == 5'"};
    for (int i = 0; i < 2; i++) {
        const program_result *result =
            program_run("cd '%s'; tfrecord-cat --json %s . > all 2> all.errors; echo $?; tfrecord-cat --json %s "
                        "--range 0:99999 . > "
                        "one 2> one.errors; echo $?; cmp all one && diff all.errors one.errors && wc -l < all",
                        test_directory(), conditions[i], conditions[i]);
        /* 100 + 9,000, and twice 9,000 + 1 + 30, of which two are damaged. */
        CHECK_STR(result->output, i == 0 ? "1\n1\n27158\n" : "1\n1\n9053\n");
        CHECK_EQ(program_run("cd '%s' && rm all one *.errors", test_directory())->exit_code, 0);
    }
}
