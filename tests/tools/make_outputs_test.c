/* Existing files in the output directory: files of another dataset are never replaced, and the check precedes all
 * writes. */
#include "tests/tools/make_inputs.h"

/* Creates d/cat and d/dog, or other classes. */
static void make_classes(const char *directory, const char *a, const char *b)
{
    mkdir(test_path("%s", directory), 0777);
    mkdir(test_path("%s/%s", directory, a), 0777);
    mkdir(test_path("%s/%s", directory, b), 0777);
    for (int i = 0; i < 4; i++) make_png(test_path("%s/%s/%d.png", directory, i % 2 ? a : b, i), i, 5, 5);
}

[[gnu::format(printf, 1, 2)]] static const program_result *make_more(const char *format, ...)
{
    char arguments[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return program_run("cd '%s' && tfrecord-make %s", test_directory(), arguments);
}

/* The names and checksums of everything in out. */
static const char *state(void)
{
    static char text[2][1 << 14];
    static int next;
    next = !next;
    const program_result *result =
        program_run("cd '%s/out' && find . -type f | sort | xargs -d '\\n' cksum", test_directory());
    snprintf(text[next], sizeof text[next], "%s", result->output);
    return text[next];
}

/* Checks that the run, and a dry run, fail and change nothing. */
static void check_refused(const char *arguments, const char *reason)
{
    const char *before = state();
    const program_result *result = make_more("--out out %s", arguments);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, reason);
    CHECK_STR(state(), before);
    result = make_more("--out out --dry-run %s", arguments);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, reason);
    CHECK_STR(state(), before);
}

TEST(make_outputs_of_others_are_not_replaced)
{
    make_classes("d", "cat", "dog");
    make_classes("e", "ape", "eel");
    make_classes("f", "cat", "dog");
    make_pngs("p", 3);
    save_text("c.json", "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}], \"categories\": [{\"id\": 1, \"name\": "
                        "\"dog\"}], \"annotations\": []}");
    /* Files that tfrecord-make did not write. */
    static const struct {
        const char *name, *input, *reason;
    } cases[] = {
        {"labels.txt", "d", "out/labels.txt: does not belong to this dataset"},
        {"labels.txt", "--worker 1/2 d", "out/labels.txt: does not belong to this dataset"},
        {"labels.txt", "--json d", "out/labels.txt: does not belong to this dataset"},
        {"label_map.pbtxt", "--images p c.json", "out/label_map.pbtxt: does not belong to this dataset"},
        {"d-train-00000-of-00001.tfrecord", "d", "was not written for this dataset and would be replaced"},
        {"d-train-00001-of-00002.tfrecord", "d", "was not written for this dataset and would be read together"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(program_run("cd '%s' && rm -rf out && mkdir out", test_directory())->exit_code, 0);
        file_save(test_path("out/%s", cases[i].name), "mine\n", 5);
        check_refused(cases[i].input, cases[i].reason);
    }
    /* An existing file with the same text is no conflict, and --labels FILE may be that file. */
    CHECK_EQ(program_run("cd '%s' && rm -rf out && mkdir out", test_directory())->exit_code, 0);
    file_save(test_path("out/labels.txt"), "cat\ndog\n", 8);
    CHECK_EQ(make_more("--out out d")->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && rm -rf out && mkdir out", test_directory())->exit_code, 0);
    file_save(test_path("out/labels.txt"), "dog\ncat", 7);
    CHECK_EQ(make_more("--out out --labels out/labels.txt d")->exit_code, 0);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "dog\ncat\n");
}

TEST(make_outputs_of_two_datasets_share_one_directory)
{
    make_classes("d", "cat", "dog");
    make_classes("e", "ape", "eel");
    make_classes("f", "cat", "dog");
    CHECK_EQ(make_more("--out out d")->exit_code, 0);
    check_refused("e", "out/labels.txt: does not belong to this dataset and contains other classes");
    CHECK_EQ(make_more("--out out f")->exit_code, 0);
    /* One of the two datasets gets another class. */
    make_classes("d", "cow", "dog");
    check_refused("d", "out/labels.txt: also belongs to another dataset in this directory and contains other classes");
    CHECK_EQ(program_run("cd '%s' && rm out/*f* out/.f.journal", test_directory())->exit_code, 0);
    CHECK_EQ(make_more("--out out d")->exit_code, 0);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "cat\ncow\ndog\n");
    /* A file that has been edited by hand does not count as written by a run. */
    make_classes("d", "bee", "dog");
    file_save(test_path("out/labels.txt"), "cat\ncow\ndog\nfly\n", 16);
    check_refused("d", "out/labels.txt: does not belong to this dataset");
    CHECK_EQ(make_more("--out out --labels out/labels.txt --append-labels d")->exit_code, 0);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "cat\ncow\ndog\nfly\nbee\n");
}

/* A shard that a killed run left under its final name, before its line was in the journal. */
TEST(make_outputs_of_a_killed_run_are_replaced)
{
    make_classes("d", "cat", "dog");
    CHECK_EQ(make_more("--out out --shards 2 d")->exit_code, 0);
    for (int lines = 1; lines < 9; lines++) {
        CHECK_EQ(program_run(
                     "cd '%s/out' && head -%d .d.journal >j; cp j .d.journal; for f in *.tfrecord; do grep -q $f j || "
                     "rm $f $f.index; done; rm j",
                     test_directory(), lines)
                     ->exit_code,
                 0);
        CHECK_EQ(make_more("--out out --shards 2 d")->exit_code, 0);
        CHECK_EQ(program_run("cd '%s/out' && tfrecord-cat --verify .", test_directory())->exit_code, 0);
    }
    /* Two workers, then the run that joins their parts. */
    for (int i = 1; i <= 2; i++) CHECK_EQ(make_more("--out two --name d --shards 2 --worker %d/2 d", i)->exit_code, 0);
    CHECK_EQ(make_more("--out two --name d --shards 2 --finish d")->exit_code, 0);
    CHECK_EQ(make_more("--out two --name d --shards 3 d")->exit_code, 0);
    make_classes("d", "cow", "dog");
    CHECK_EQ(make_more("--out two --name d --shards 3 d")->exit_code, 0);
}
