/* Runs programs for the tests of the examples, with the arguments that a user would give. */
#ifndef MR_TESTS_EXAMPLES_H
#define MR_TESTS_EXAMPLES_H

#include "tests/test.h"
#include <sys/wait.h>

/* Runs a program and returns its output, in static storage.
 * expected  the exit status */
static inline const char *example_run(const char *program, const char *arguments, int expected)
{
    static char text[8192];
    char command[4096];
    snprintf(command, sizeof command, "%s %s 2>&1", test_bin(program), arguments);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != nullptr);
    size_t size = fread(text, 1, sizeof text - 1, pipe);
    text[size] = '\0';
    int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        test_fail(__FILE__, __LINE__, "%s: status %d: %s", command, status, text);
    return text;
}

/* Under ThreadSanitizer, which a complete training would keep busy for a minute: runs the program for a few steps, and
 * returns true. */
static inline bool example_run_shortly(const char *program, const char *arguments)
{
#if __has_feature(thread_sanitizer)
    (void)example_run(program, arguments, 0);
    return true;
#else
    (void)program, (void)arguments;
    return false;
#endif
}

/* The number that follows the label in the output. */
static inline double example_number(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    if (at == nullptr) test_fail(__FILE__, __LINE__, "\"%s\" is not in: %s", label, text);
    return atof(at + strlen(label));
}

#endif
