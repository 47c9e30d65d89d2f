/* tfrecord-make under injected failures. In several modes the n-th allocation, write and read fails in turn. A run
 * creates the same files as an undisturbed run, or exits with 1 and a message. It leaves no partial file, and a second
 * run of the same command creates the expected files. */
#include "tests/tools/failing.h"
#include "tests/tools/make_inputs.h"

#include <dirent.h>

/* Saves two classes of three images, one of them a copy, and a list of some of them. */
static void make_files(void)
{
    CHECK_EQ(chdir(test_directory()), 0);
    CHECK_EQ(mkdir("photos", 0777), 0);
    make_pngs("photos/cat", 3);
    make_pngs("photos/dog", 2);
    CHECK_EQ(program_run("cd %s; cp photos/cat/2.png photos/dog/copy.png", test_directory())->exit_code, 0);
    save_text("photos/l.csv", "path,label,who\ncat/0.png,a,1\ncat/1.png,a,2\ndog/0.png,b,1\n");
}

/* A digest of the names and bytes of the record files and labels, independent of their order; counts the partial files
 * in *half. */
static uint64_t look(int *half)
{
    uint64_t digest = 0;
    DIR *directory = opendir("o");
    CHECK(directory != nullptr);
    *half = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *name = entry->d_name, *end = strrchr(name, '.');
        *half += strstr(name, ".partial") != nullptr;
        if (!end || (strcmp(end, ".tfrecord") != 0 && strcmp(end, ".txt") != 0)) continue;
        char path[512];
        snprintf(path, sizeof path, "o/%s", name);
        size_t size;
        unsigned char *bytes = file_load(path, &size);
        uint64_t value = 0xcbf29ce484222325;
        for (const char *at = name; *at; at++) value = (value ^ (unsigned char)*at) * 0x100000001b3;
        for (size_t i = 0; i < size; i++) value = (value ^ bytes[i]) * 0x100000001b3;
        digest += value ^ value >> 29;
        free(bytes);
    }
    closedir(directory);
    return digest;
}

/* The number of lines, which does not depend on the times in them. */
static int count_lines(const failing_result *result)
{
    int lines = 0;
    for (size_t i = 0; i < result->output_size; i++) lines += result->output[i] == '\n';
    return lines;
}

static void check_each(const char *arguments, const char *kind)
{
    if (test_is_sanitized() || !getenv("MILLRACE_PRELOAD")) test_skip("needs programs with the C library's malloc");
    failing_result good = failing_run("tfrecord-make", arguments, kind, 0);
    int half, lines = count_lines(&good);
    uint64_t files = look(&half);
    CHECK_EQ(good.exit_code, 0);
    CHECK(good.calls > 0 || *kind != 'a');
    /* Each of the first calls fails in turn, then calls at growing distances that depend on the seed. */
    for (uint64_t n = 1; n <= good.calls; n += n < 40 ? 1 : n / 12 + test_seed() % 3) {
        failing_result bad = failing_run("tfrecord-make", arguments, kind, n);
        bool has_failed = bad.exit_code == 1 && bad.errors_size > 0;
        uint64_t made = look(&half);
        bool is_right = bad.exit_code == 0 && made == files &&
                        (count_lines(&bad) == lines || strstr((char *)bad.output, "could not be read"));
        if (!(has_failed || is_right) || half > 0)
            test_fail(__FILE__, __LINE__, "%s: %s %llu of %llu fails: exit code %d, %d half files: %.*s\n---- %.*s",
                      arguments, kind, (unsigned long long)n, (unsigned long long)good.calls, bad.exit_code, half,
                      (int)bad.errors_size, (char *)bad.errors, (int)bad.output_size, (char *)bad.output);
        failing_free(&bad);
    }
    failing_free(&good);
}

static const char *const kinds[] = {"allocation", "write", "read"};

#define FAILING_TEST(name, arguments)                                                                                  \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        make_files();                                                                                                  \
        for (int i = 0; i < 3; i++) check_each(arguments, kinds[i]);                                                   \
    }

FAILING_TEST(make_failing_calls_of_a_directory, "--jobs 2 --out o photos")
FAILING_TEST(make_failing_calls_of_conversion, "--jobs 1 --out o --encode jpeg --shorter-side 9 --shard-size 1K photos")
FAILING_TEST(make_failing_calls_of_a_list, "--jobs 1 --out o --json --group-by who --compress gzip photos/l.csv")
FAILING_TEST(make_failing_calls_of_a_dry_run, "--jobs 1 --out o --dry-run --stratify --exclude copy* photos")

TEST(make_can_resume_after_any_failing_call)
{
    make_files();
    if (test_is_sanitized() || !getenv("MILLRACE_PRELOAD")) test_skip("needs programs with the C library's malloc");
    static const char arguments[] = "--jobs 1 --out o --shards 2 photos";
    failing_result good = failing_run("tfrecord-make", arguments, "write", 0);
    int half;
    uint64_t files = look(&half);
    for (uint64_t n = 1; n <= good.calls; n++) {
        failing_result bad = failing_run("tfrecord-make", arguments, "write", n);
        failing_free(&bad);
        CHECK_EQ(program_run("cd %s; tfrecord-make %s", test_directory(), arguments)->exit_code, 0);
        CHECK(look(&half) == files);
        CHECK_EQ(half, 0);
    }
    failing_free(&good);
}

TEST(make_failing_reads_hide_no_copy)
{
    make_files();
    if (test_is_sanitized() || !getenv("MILLRACE_PRELOAD")) test_skip("needs programs with the C library's malloc");
    failing_result bad = failing_run("tfrecord-make", "--jobs 1 --out o photos", "read", 1);
    CHECK_EQ(bad.exit_code, 0);
    CHECK_CONTAINS((char *)bad.output, "1 image could not be read and compared with others: ");
    failing_free(&bad);
}
