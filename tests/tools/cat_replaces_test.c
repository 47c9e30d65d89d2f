/* Outputs never replace an input, and replace an existing file only with --force. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <sys/stat.h>

static const program_result *run(const char *command)
{
    return program_run("cd '%s' && timeout 20 %s < /dev/null", test_directory(), command);
}

static void check_kept(const char *command, int exit_code, const char *message, const char *name)
{
    size_t size, after;
    unsigned char *before = file_load(test_path("%s", name), &size);
    const program_result *result = run(command);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "%s: exit status %d: %s", command, result->exit_code, result->output);
    CHECK_CONTAINS(result->output, message);
    unsigned char *now = file_load(test_path("%s", name), &after);
    if (size != after || memcmp(before, now, size) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s was changed", command, name);
    free(before);
    free(now);
}

static void write_input(const char *name)
{
    examples_write(test_path("%s", name), 10, (mr_record_writer_options){0});
}

TEST(cat_outputs_are_never_inputs)
{
    static const char input[] = "is one of the input files";
    static const struct {
        const char *command, *name;
    } cases[] = {
        {"tfrecord-cat --stats --svg a a", "a"},
        {"tfrecord-cat --stats --svg ./a a --force", "a"},
        {"tfrecord-cat --stats --svg link a --force", "a"},
        {"tfrecord-cat --merge -o o o.index", "o.index"},
        {"tfrecord-cat --merge -o o o.index --force", "o.index"},
        {"tfrecord-cat --merge -o o o.partial --force", "o.partial"},
        {"tfrecord-cat --shuffle -o o o.index --force", "o.index"},
        {"tfrecord-cat --split 2 -o o o-00001-of-00002.index --force", "o-00001-of-00002.index"},
        {"tfrecord-cat --salvage o o.report", "o.report"},
        {"tfrecord-cat --salvage o o.report --force", "o.report"},
        {"tfrecord-cat --salvage o o.index --force", "o.index"},
        {"tfrecord-cat --salvage o o.partial --force", "o.partial"},
        {"tfrecord-cat --salvage o o.index.partial --force", "o.index.partial"},
        {"tfrecord-cat --salvage o o.report.partial --force", "o.report.partial"},
        {"tfrecord-cat --html h h/index.html --raw --force", "h/index.html"},
        {"feed-images --trace a a", "a"},
        {"feed-images --trace a --force b ./a", "a"},
        {"feed-images --trace h/x.tfrecord --force h", "h/x.tfrecord"},
        {"feed-images --trace a --force '?'", "a"},
    };
    CHECK_EQ(mkdir(test_path("h"), 0700), 0);
    write_input("a");
    write_input("b");
    CHECK_EQ(symlink("a", test_path("link")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_input(cases[i].name);
        check_kept(cases[i].command, 1, input, cases[i].name);
        if (strcmp(cases[i].name, "a") != 0 && *cases[i].name != 'h')
            CHECK_EQ(unlink(test_path("%s", cases[i].name)), 0);
        (void)unlink(test_path("a.index"));
        (void)unlink(test_path("a.idx"));
    }
}

TEST(cat_replaces_existing_files_only_with_force)
{
    static const struct {
        const char *command, *name;
    } cases[] = {
        {"tfrecord-cat --stats --svg x a", "x"},      {"tfrecord-cat --stats --svg x --json a", "x"},
        {"tfrecord-cat --merge -o o a", "o.index"},   {"tfrecord-cat --merge --compress gzip -o o a", "o.index"},
        {"tfrecord-cat --salvage o a", "o.index"},    {"tfrecord-cat --salvage o a", "o.report"},
        {"tfrecord-cat --shuffle -o o a", "o.index"}, {"tfrecord-cat --split 1 -o o a", "o-00000-of-00001.index"},
    };
    write_input("a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_input(cases[i].name);
        check_kept(cases[i].command, 1, "already exists; --force replaces it", cases[i].name);
        CHECK_EQ(program_run("cd '%s' && %s --force", test_directory(), cases[i].command)->exit_code, 0);
        CHECK_EQ(program_run("cd '%s' && rm -f o o.* o-* x", test_directory())->exit_code, 0);
    }
}

/* A run that is killed between the two renames leaves an index without its file. */
TEST(cat_replaces_an_index_without_its_file)
{
    write_input("a");
    const program_result *result = run("tfrecord-cat --merge -o o a");
    CHECK_EQ(result->exit_code, 0);
    CHECK(remove(test_path("o")) == 0);
    result = run("tfrecord-cat --merge -o o a");
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
    CHECK_CONTAINS(run("tfrecord-cat --count o")->output, "10");
}

TEST(cat_svg_replaces_an_earlier_svg)
{
    write_input("a");
    write_input("b");
    check_kept("tfrecord-cat --stats --svg a b", 1, "a: already exists; --force replaces it", "a");
    CHECK_EQ(run("tfrecord-cat --stats --svg c.svg a")->exit_code, 0);
    CHECK_EQ(run("tfrecord-cat --stats --svg c.svg b")->exit_code, 0);
    CHECK_EQ(run("grep -q '<title>b</title>' c.svg")->exit_code, 0);
    CHECK_EQ(run("tfrecord-cat --stats --svg b a --force")->exit_code, 0);
    CHECK_EQ(run("echo '<svg xmlns=\"other\">' > d.svg")->exit_code, 0);
    check_kept("tfrecord-cat --stats --svg d.svg a", 1, "d.svg: already exists; --force replaces it", "d.svg");
    CHECK_EQ(run("tfrecord-cat --stats --force a")->exit_code, 2);
}

TEST(feed_images_trace_replaces_only_with_force)
{
    write_input("a");
    write_input("t");
    check_kept("feed-images --trace t a", 1, "--trace t: already exists; --force replaces it", "t");
    CHECK_CONTAINS(run("feed-images --trace t --force a")->output, "no record could be used");
    CHECK_EQ(run("feed-images --force a")->exit_code, 2);
}

TEST(feed_images_checks_the_range_of_numbers)
{
    static const char *const wrong[] = {"--seed 99999999999999999999",
                                        "--seed 9223372036854775808",
                                        "--seed -1",
                                        "--epochs 99999999999999999999",
                                        "--threads 1025",
                                        "--seed 1x",
                                        "--seed ''"};
    write_input("a");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const program_result *result = program_run("cd '%s' && feed-images %s a", test_directory(), wrong[i]);
        CHECK_EQ(result->exit_code, 2);
        CHECK_CONTAINS(result->output, ": the value ");
    }
    CHECK_EQ(run("feed-images --seed 9223372036854775807 a")->exit_code, 1);
}

/* A write beyond the limit is an error with a message, not a signal. */
TEST(tools_report_the_file_size_limit)
{
    examples_write(test_path("a"), 4'000, (mr_record_writer_options){0});
    static const char *const commands[] = {"tfrecord-cat --merge -o x a", "tfrecord-cat --salvage x a",
                                           "tfrecord-cat --shuffle -o x a", "tfrecord-cat --json a > x"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const program_result *result = program_run("cd '%s' && (ulimit -f 8; %s)", test_directory(), commands[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, i < 3 ? "would exceed the size limit" : "File too large");
    }
}
