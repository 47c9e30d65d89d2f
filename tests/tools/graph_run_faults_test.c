/* graph-run under injected failures of allocations, writes and reads: its output is complete, or it reports the failure
 * and exits with 1. */
#include "tests/tools/graph_run_graphs.h"

#define main graph_run_main
#include "tools/graph-run/about.c"
#include "tools/graph-run/command.c"
#include "tools/graph-run/dumps.c"
#include "tools/graph-run/events.c"
#include "tools/graph-run/explain.c"
#include "tools/graph-run/feeds.c"
#include "tools/graph-run/hints.c"
#include "tools/graph-run/main.c"
#include "tools/graph-run/npz.c"
#include "tools/graph-run/options.c"
#include "tools/graph-run/outputs.c"
#include "tools/graph-run/queue_runners.c"
#include "tools/graph-run/restore.c"
#include "tools/graph-run/trace.c"
#include "tools/graph-run/value.c"
#include "tools/graph-run/watchdog.c"
#undef main

#include <fcntl.h>

/* Runs graph-run in a child process in which allocation number `fail` fails; 0: none. Returns its exit code. The child
 * writes the number of its allocations to the file "count". */
static int run_in_child(int argc, char **argv, long long fail)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int out = open(test_path("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int err = open(test_path("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out < 0 || err < 0 || chdir(test_directory()) != 0) _exit(99);
        dup2(out, 1);
        dup2(err, 2);
        optind = 0;
        long long before = test_allocations();
        if (fail > 0) test_fail_allocation(before + fail);
        int code = graph_run_main(argc, argv);
        test_fail_allocation(0);
        FILE *count = fopen("count", "w");
        if (count) fprintf(count, "%lld", test_allocations() - before);
        if (count) fclose(count);
        fflush(stdout);
        _exit(code);
    }
    int how = 0;
    CHECK_EQ(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how)) test_fail(__FILE__, __LINE__, "allocation %lld: signal %d", fail, WTERMSIG(how));
    return WEXITSTATUS(how);
}

static char *load_text(const char *name)
{
    size_t size_bytes;
    char *bytes = (char *)file_load(test_path("%s", name), &size_bytes);
    char *text = malloc(size_bytes + 1);
    memcpy(text, bytes, size_bytes);
    text[size_bytes] = '\0';
    free(bytes);
    return text;
}

static void fail_allocations(int argc, char **argv, int runs)
{
    CHECK_EQ(run_in_child(argc, argv, 0), 0);
    char *expected = load_text("out"), *text = load_text("count");
    long long count = strtoll(text, nullptr, 10);
    CHECK(count > 0 && *expected != '\0');
    free(text);
    long long stride = count / runs + 1;
    for (long long n = 1 + (long long)(test_seed() % (uint64_t)stride); n <= count; n += stride) {
        int code = run_in_child(argc, argv, n);
        char *out = load_text("out"), *err = load_text("err");
        bool right = code == 0 && strcmp(out, expected) == 0;
        bool reported = code == 1 && strncmp(err, "graph-run: ", 11) == 0 && strlen(err) > 12;
        if (!right && !reported)
            test_fail(__FILE__, __LINE__, "allocation %lld of %lld: exit code %d, output \"%s\", errors \"%s\"", n,
                      count, code, out, err);
        free(out);
        free(err);
    }
    free(expected);
}

TEST(graph_run_survives_failed_allocations)
{
    if (test_allocations() < 0 || test_is_sanitized()) test_skip("allocations are not counted here");
    graph_run_make_model();
    char *const list[] = {"graph-run", "model.meta", "--list", nullptr};
    char *const fetch[] = {"graph-run", "model.meta", "--restore", "run",   "--threads", "1", "--feed", "x=[1, 2]",
                           "--fetch",   "y",          "--target",  "train", "--steps",   "2", nullptr};
    char *const strings[] = {"graph-run", "model.pb",   "--threads", "1", "--feed", "string=[\"a\", \"b\"]",
                             "--fetch",   "string_out", nullptr};
    fail_allocations(3, (char **)list, 150);
    fail_allocations(14, (char **)fetch, 250);
    fail_allocations(8, (char **)strings, 100);
}

TEST(graph_run_reports_output_that_cannot_be_written)
{
    graph_run_make_model();
    static const char *const cases[] = {"--help",
                                        "--version",
                                        "model.meta --list",
                                        "model.meta --restore run --feed x=[1] --fetch y",
                                        "model.meta --restore run --feed x=[1] --fetch y --steps 100000",
                                        "model.meta --restore run --feed x=[1] --fetch y --profile"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "%s >/dev/full", cases[i]);
        CHECK_CONTAINS(graph_run(arguments, 1), "cannot write the output: ");
    }
    const program_result *result =
        program_run("cd %s && mkdir small && (trap '' XFSZ; ulimit -f 0; graph-run model.meta "
                    "--restore run --feed x=[1] --fetch y --write small)",
                    test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "graph-run: cannot write small/y.npy");
    CHECK_STR(program_run("ls %s/small", test_directory())->output, "");
}

TEST(graph_run_reports_input_that_cannot_be_read)
{
    graph_run_make_model();
    CHECK_EQ(program_run("cd %s && head -c 100 run/m-2.index > run/m-9.index && cp run/m-2.data-00000-of-00001 "
                         "run/m-8.data-00000-of-00001 && "
                         "cp run/m-2.index run/m-8.index && truncate -s 3 run/m-8.data-00000-of-00001 && "
                         "mkdir broken && echo junk > broken/checkpoint && printf 'NUMPY' > bad.npy && mkdir dir.npy",
                         test_directory())
                 ->exit_code,
             0);
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"model.meta --restore run/m-9 --fetch w/read", "m-9.index"},
        {"model.meta --restore run/m-8 --fetch w/read", "m-8.data"},
        {"model.meta --restore broken --fetch w/read", "broken/checkpoint"},
        {"model.meta --restore run --feed x=@bad.npy --fetch y", "bad.npy"},
        {"model.meta --restore run --feed x=@dir.npy --fetch y", "dir.npy"},
        {"model.meta --restore run --feed x=@none.npy --fetch y", "none.npy"},
        {"run --list", "run: "},
        {"bad.npy --list", "bad.npy: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_CONTAINS(graph_run(cases[i].arguments, 1), cases[i].part);
}
