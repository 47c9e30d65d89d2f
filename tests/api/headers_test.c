/* The installed headers, and a program that uses them, compile without warnings with the system's C and C++ compilers
 * (GCC on Debian). The build itself compiles the programs with Clang, links them and runs them. */
#include "tests/test.h"

#include <glob.h>
#include <sys/wait.h>

/* Runs a shell command and returns its exit status; text receives its output. */
static int shell(const char *command, char *text, size_t capacity_bytes)
{
    FILE *pipe = popen(command, "r");
    CHECK(pipe != nullptr);
    size_t size_bytes = fread(text, 1, capacity_bytes - 1, pipe);
    text[size_bytes] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Compiles a file. include is -I or -isystem: as system headers they allow calls without options, which -pedantic
 * rejects before C23 and C++20. */
static void compile(const char *compiler, const char *include, const char *file)
{
    char command[4096], text[4096];
    snprintf(command, sizeof command, "%s -fsyntax-only -Wall -Wextra -Wshadow -pedantic -Werror %s '%s' '%s' 2>&1",
             compiler, include, test_bin("../include"), file);
    if (shell(command, text, sizeof text) != 0) test_fail(__FILE__, __LINE__, "%s: %s", command, text);
}

static void compile_all(const char *compiler, const char *options, const char *ending, const char *user)
{
    char command[256], text[512];
    snprintf(command, sizeof command, "command -v %s", compiler);
    if (shell(command, text, sizeof text) != 0) test_skip("%s is not installed", compiler);
    snprintf(command, sizeof command, "%s %s", compiler, options);
    glob_t headers = {0};
    CHECK(glob(test_bin("../include/millrace/*.h"), 0, nullptr, &headers) == 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        const char *path = test_path("header%s", ending);
        FILE *file = fopen(path, "w");
        CHECK(file != nullptr);
        fprintf(file, "#include <millrace/%s>\n", strrchr(headers.gl_pathv[i], '/') + 1);
        fclose(file);
        compile(command, "-I", path);
    }
    globfree(&headers);
    const char *root = getenv("MILLRACE_ROOT");
    if (root == nullptr) return;
    snprintf(text, sizeof text, "%s/tests/users/%s", root, user);
    compile(command, "-isystem", text);
}

TEST(headers_compile_as_c11)
{
    compile_all("gcc", "-std=c11", ".c", "c11.c");
}

TEST(headers_compile_as_cxx17)
{
    compile_all("g++", "-std=c++17", ".cpp", "cxx17.cpp");
}
