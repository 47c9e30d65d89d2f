/* Runs the installed programs as a user does and captures their output. */
#ifndef MR_TESTS_TOOLS_PROGRAM_H
#define MR_TESTS_TOOLS_PROGRAM_H

#include "tests/test.h"

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct program_result {
    int exit_code;
    char output[1 << 16]; /* standard output and standard error, interleaved */
} program_result;

/* Runs a shell command with tfrecord-make, tfrecord-cat and the other programs on the PATH. The result is valid until
 * the next call. */
[[gnu::format(printf, 1, 2)]] static inline const program_result *program_run(const char *format, ...)
{
    static program_result result;
    static char command[8192];
    va_list args;
    char bin[1024];
    snprintf(bin, sizeof bin, "%s", test_bin("tfrecord-make"));
    char *slash = strrchr(bin, '/');
    CHECK(slash != nullptr);
    if (access(bin, X_OK) != 0) test_skip("%s is not built", bin);
    *slash = '\0';
    int used = snprintf(command, sizeof command, "PATH='%s':\"$PATH\"; exec 2>&1; ", bin);
    va_start(args, format);
    vsnprintf(command + used, sizeof command - (size_t)used, format, args);
    va_end(args);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != nullptr);
    size_t size = fread(result.output, 1, sizeof result.output - 1, pipe);
    result.output[size] = '\0';
    int status = pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return &result;
}

#endif
