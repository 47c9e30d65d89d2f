/* tfrecord-cat with unusual combinations of options and with values at their limits. Each is an error with a message
 * and never ignored. */
#include "tests/tools/examples.h"

static const program_result *cat(const char *arguments)
{
    return program_run("cd '%s' && timeout 20 tfrecord-cat %s < /dev/null", test_directory(), arguments);
}

TEST(cat_refuses_values_that_are_empty_doubled_or_too_large)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"--record 18446744073709551615 a", "--record: \"18446744073709551615\" is not a number"},
        {"--seed 18446744073709551615 --sample 2 a", "is not a number"},
        {"--head 18446744073709551615 a", "is not a number"},
        {"--range 18446744073709551615: a", "is not A:B"},
        {"--range 5:2 a", "--range: 5:2 ends before it begins"},
        {"--split 18446744073709551615 --out o a", "is not a number"},
        {"--record 1 --record 2 a", "--record is given twice"},
        {"--head 1 -n 2 a", "--head is given twice"},
        {"--bytes hex --bytes text a", "--bytes is given twice"},
        {"--out x --out y --merge a", "--out is given twice"},
        {"--salvage x --salvage y a", "--salvage is given twice"},
        {"--extract x --extract y a", "--extract is given twice"},
        {"--split 2 --split 3 --out o a", "--split is given twice"},
        {"--merge --out '' a", "--out: its value is empty"},
        {"--stats --svg '' a", "--svg: its value is empty"},
        {"--features '' a", "--features: its value is empty"},
        {"--where '' a", "--where: its value is empty"},
        {"--head '' a", "--head: its value is empty"},
        {"--salvage '' a", "--salvage: its value is empty"},
        {"--extract '' a", "--extract: its value is empty"},
        {"--html '' a", "--html: its value is empty"},
        {"--salvage - a", "--salvage -: the output must be a file"},
    };
    examples_write(test_path("a"), 10, (mr_record_writer_options){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const program_result *result = cat(cases[i].arguments);
        CHECK_CONTAINS(result->output, cases[i].part);
        CHECK_EQ(result->exit_code, 2);
    }
    CHECK_STR(program_run("ls -A '%s'", test_directory())->output, "a\n");
    /* Commands without an argument and flags may be repeated. */
    CHECK_EQ(cat("--count --count a")->exit_code, 0);
    CHECK_EQ(cat("--json --raw --raw a")->exit_code, 0);
}

/* In every mode, with and without an index, a range that begins beyond the end is an error and prints no record. */
TEST(cat_reports_a_range_beyond_the_end_in_every_mode)
{
    static const char *const modes[] = {"",
                                        "--json",
                                        "--csv",
                                        "--count",
                                        "--schema",
                                        "--stats",
                                        "--extract e",
                                        "--html h",
                                        "--merge --out m",
                                        "--split 2 --out s",
                                        "--raw",
                                        "--where 'label == 1'",
                                        "--shuffle --out f"};
    static const char *const ranges[] = {"--record 15", "--range 15:", "--range 15:20", "--range 99:100"};
    for (int has_index = 0; has_index < 2; has_index++) {
        examples_write(test_path("a"), 15, (mr_record_writer_options){.index = has_index});
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
            for (size_t j = 0; j < sizeof ranges / sizeof *ranges; j++) {
                char arguments[100];
                snprintf(arguments, sizeof arguments, "%s %s a", modes[i], ranges[j]);
                const program_result *result = cat(arguments);
                CHECK_EQ(result->exit_code, 1);
                CHECK_CONTAINS(result->output,
                               j == 3 ? "there is no record 99, only 15" : "there is no record 15, only 15");
                (void)program_run("cd '%s' && rm -rf e h", test_directory());
            }
    }
    CHECK_STR(program_run("cd '%s' && ls -d m* s-* f* 2>/dev/null | wc -l", test_directory())->output, "0\n");
    CHECK_STR(cat("--count --range 14: a")->output, "1\n");
    CHECK_STR(cat("--count --range 10:99 a")->output, "5\n");
    CHECK_STR(cat("--count --range 15:15 a")->output, "0\n");
}

TEST(cat_verify_counts_records_once)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(test_path("a"), nullptr, &writer, &error));
    for (int i = 0; i < 1000; i++) {
        /* Every tenth record has two faults; the record after it is not an Example. */
        mr_string bad = MR_STR("not an image");
        if (i % 10 == 3) mr_example_add_bytes_list(&encoder, "image/encoded", (mr_string[]){bad, bad}, 2);
        mr_example_add_int64(&encoder, "label", i);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        if (i % 10 == 4) record = MR_STR("plain");
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    for (int jobs = 1; jobs < 4; jobs++) {
        const program_result *result = program_run("tfrecord-cat --verify --jobs %d %s", jobs, test_path("a"));
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, ": 800 good records, 200 bad, ");
        CHECK_CONTAINS(result->output, ", 300 faults\n");
    }
    CHECK_CONTAINS(program_run("tfrecord-cat --verify --raw %s", test_path("a"))->output, ": 1000 good records, ");
}
