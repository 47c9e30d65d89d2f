/* Injected failures. An installed program runs once for each call of a kind (allocation, write, read), and that call
 * fails. The run must either produce the same output as an undisturbed run, byte for byte, or fail with a message.
 *
 *     failing_each("tfrecord-cat", "--json --jobs 1 a.tfrecord", "allocation");
 *
 * Programs run in test_directory(). They write to its directory "o", which is removed before each run. */
#ifndef MR_TESTS_TOOLS_FAILING_H
#define MR_TESTS_TOOLS_FAILING_H

#include "tests/records/record_data.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct failing_result {
    int exit_code; /* 128 and above: killed by a signal */
    unsigned char *output, *errors;
    size_t output_size, errors_size;
    uint64_t written; /* digest of all names and bytes in "o" */
    uint64_t calls;   /* number of calls of the kind */
} failing_result;

static uint64_t failing_digest;

static int failing_add(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    size_t size = 0;
    /* An index contains the modification time of its file. */
    bool has_bytes = S_ISREG(about->st_mode) && !strstr(path, ".index");
    unsigned char *bytes = has_bytes ? file_load(path, &size) : nullptr;
    uint64_t value = 0xcbf29ce484222325;
    for (const char *at = path; *at; at++) value = (value ^ (unsigned char)*at) * 0x100000001b3;
    for (size_t i = 0; i < size; i++) value = (value ^ bytes[i]) * 0x100000001b3;
    failing_digest += value ^ value >> 29; /* independent of the order */
    free(bytes);
    (void)kind, (void)walk;
    return 0;
}

static int failing_remove(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about, (void)kind, (void)walk;
    return remove(path);
}

/* Runs in the child and does not return. arguments are separated by spaces. */
static void failing_exec(const char *program, const char *arguments, const char *kind, uint64_t number)
{
    char *words[64] = {(char *)program}, *rest = strdup(arguments), fails[64];
    int count = 1;
    for (char *word; (word = strsep(&rest, " ")) && count < 63;) words[count++] = word;
    snprintf(fails, sizeof fails, "%s:%llu", kind, (unsigned long long)number);
    char path[1024];
    snprintf(path, sizeof path, "%s", test_bin(program));
    bool is_ready = setenv("LD_PRELOAD", getenv("MILLRACE_PRELOAD"), 1) == 0 &&
                    setenv("MILLRACE_FAIL", fails, 1) == 0 && setenv("MILLRACE_FAIL_COUNT", "calls", 1) == 0 &&
                    setenv("LC_ALL", "C.UTF-8", 1) == 0;
    int input = open("/dev/null", O_RDONLY), output = open("output", O_WRONLY | O_CREAT | O_TRUNC, 0666),
        errors = open("errors", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (is_ready && dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(errors, 2) == 2) execv(path, words);
    _exit(99);
}

static inline failing_result failing_run(const char *program, const char *arguments, const char *kind, uint64_t number)
{
    static const unsigned char none[8];
    failing_result result = {0};
    file_save("calls", none, sizeof none);
    if (access("o", F_OK) == 0) CHECK_EQ(nftw("o", failing_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
    CHECK_EQ(mkdir("o", 0777), 0);
    pid_t child = fork();
    if (child == 0) failing_exec(program, arguments, kind, number);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.output = file_load("output", &result.output_size);
    result.errors = file_load("errors", &result.errors_size);
    failing_digest = 0;
    CHECK_EQ(nftw("o", failing_add, 16, FTW_PHYS), 0);
    result.written = failing_digest;
    size_t size;
    unsigned char *calls = file_load("calls", &size);
    memcpy(&result.calls, calls, sizeof result.calls);
    free(calls);
    return result;
}

static inline void failing_free(failing_result *result)
{
    free(result->output);
    free(result->errors);
}

/* Whether the failing run reports an error that the good run does not: on standard error, or in a line of its output
 * about something that cannot be read. */
static inline bool failing_has_message(const failing_result *bad, const failing_result *good)
{
    bool has_errors = bad->errors_size > 0 && (bad->errors_size != good->errors_size ||
                                               memcmp(bad->errors, good->errors, bad->errors_size) != 0);
    for (int i = 0; i < 2 && !has_errors; i++) {
        static const char *const words[] = {"memory", "cannot "};
        has_errors = strstr((char *)bad->output, words[i]) && !strstr((char *)good->output, words[i]);
    }
    return has_errors;
}

/* Each of the first FAILING_ALL calls fails in turn; after them, the distance between failing calls grows. */
#define FAILING_ALL 250

static inline void failing_each(const char *program, const char *arguments, const char *kind)
{
    if (test_is_sanitized() || !getenv("MILLRACE_PRELOAD")) test_skip("needs programs with the C library's malloc");
    CHECK_EQ(chdir(test_directory()), 0);
    failing_result good = failing_run(program, arguments, kind, 0);
    if (good.exit_code > 1 || (good.calls == 0 && *kind == 'a'))
        test_fail(__FILE__, __LINE__, "%s: exit code %d, %llu calls: %.*s", arguments, good.exit_code,
                  (unsigned long long)good.calls, (int)good.errors_size, (char *)good.errors);
    for (uint64_t n = 1; n <= good.calls; n += n < FAILING_ALL ? 1 : n / 40) {
        failing_result bad = failing_run(program, arguments, kind, n);
        bool is_same = bad.exit_code == good.exit_code && bad.written == good.written &&
                       bad.output_size == good.output_size && memcmp(bad.output, good.output, good.output_size) == 0;
        bool has_message = (bad.exit_code == 1 || bad.exit_code == 2) && failing_has_message(&bad, &good);
        if (!is_same && !has_message)
            test_fail(
                __FILE__, __LINE__, "%s %s: %s %llu of %llu fails: exit code %d, not %d: %.*s\n---- output:\n%.*s",
                program, arguments, kind, (unsigned long long)n, (unsigned long long)good.calls, bad.exit_code,
                good.exit_code, (int)bad.errors_size, (char *)bad.errors, (int)bad.output_size, (char *)bad.output);
        failing_free(&bad);
    }
    failing_free(&good);
}

#endif
