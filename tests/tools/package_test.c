/* The installed tree: versions, man pages, completions, and programs built with the library. A test is skipped if its
 * programs (groff, bash, gcc, cmake, …) are not installed. */
#include "tests/tools/program.h"

#include <millrace/millrace.h>

static const char *const programs[] = {"tfrecord-make", "tfrecord-cat", "graph-run", "train-images", "feed-images"};
static constexpr int PROGRAMS = sizeof programs / sizeof programs[0];

/* Uses enough of the library that all of it is linked. */
static const char user_program[] = "#include <millrace/millrace.h>\n"
                                   "#include <stdio.h>\n"
                                   "int main(void)\n"
                                   "{\n"
                                   "    mr_graph *graph = mr_graph_new();\n"
                                   "    mr_session *session = 0;\n"
                                   "    mr_status status = mr_session_new(graph, 0, &session, 0);\n"
                                   "    puts(mr_status_name(status));\n"
                                   "    mr_session_free(session);\n"
                                   "    mr_graph_free(graph);\n"
                                   "    return 0;\n"
                                   "}\n";

static const char cmake_project[] = "cmake_minimum_required(VERSION 3.18)\n"
                                    "project(user C)\n"
                                    "find_package(millrace 0.1 REQUIRED)\n"
                                    "add_executable(user user.c)\n"
                                    "target_compile_options(user PRIVATE -std=gnu2x)\n"
                                    "target_link_libraries(user millrace::static)\n";

/* The installation prefix, which contains bin/, lib/ and share/. */
static const char *prefix(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/..", test_bin(""));
    return path;
}

static void need(const char *program)
{
    if (program_run("command -v %s", program)->exit_code != 0) test_skip("%s is not installed", program);
}

static void save(const char *name, const char *text)
{
    FILE *file = fopen(test_path("%s", name), "w");
    CHECK(file != nullptr);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

TEST(package_programs_print_their_version)
{
    for (int i = 0; i < PROGRAMS; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "%s (millrace) %s\n", programs[i], MR_VERSION);
        const program_result *result = program_run("%s --version", programs[i]);
        CHECK_EQ(result->exit_code, 0);
        CHECK_STR(result->output, expected);
    }
}

TEST(package_man_pages_have_no_warnings)
{
    static const char *const checkers[] = {"groff -man -ww -z", "mandoc -Tlint -W warning"};
    static const char *const sections[] = {"NAME",        "SYNOPSIS", "DESCRIPTION", "OPTIONS",
                                           "EXIT STATUS", "EXAMPLES", "SEE ALSO"};
    for (int i = 0; i < PROGRAMS; i++) {
        const program_result *result = program_run("cat %s/share/man/man1/%s.1", prefix(), programs[i]);
        CHECK_EQ(result->exit_code, 0);
        for (size_t j = 0; j < sizeof sections / sizeof sections[0]; j++) {
            char heading[32];
            snprintf(heading, sizeof heading, "\n.SH %s\n", sections[j]);
            CHECK_CONTAINS(result->output, heading);
        }
        for (size_t j = 0; j < sizeof checkers / sizeof checkers[0]; j++) {
            result = program_run("command -v %s >/dev/null || exit 0; %s %s/share/man/man1/%s.1", checkers[j],
                                 checkers[j], prefix(), programs[i]);
            CHECK_STR(result->output, "");
        }
    }
}

/* Every option of a help text has an entry in the man page. */
TEST(package_man_pages_have_every_option)
{
    for (int i = 0; i < PROGRAMS; i++) {
        const program_result *result = program_run(
            "%s --help | sed -n 's/^  \\(-., \\|    \\)\\?--\\([a-z-]*\\).*/\\2/p' | while read -r name; do "
            "sed 's/\\\\\\-/-/g' %s/share/man/man1/%s.1 | grep -q -e \"fB--$name.fR\" || echo $name; done",
            programs[i], prefix(), programs[i]);
        CHECK_STR(result->output, "");
    }
}

/* The completions that bash offers for these words; the last one is incomplete. */
static const char *complete_in_bash(const char *program, const char *words)
{
    return program_run("bash -c 'source %s/share/bash-completion/completions/%s; COMP_WORDS=(%s %s); "
                       "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); $(complete -p %s | sed \"s/.*-F //; s/ .*//\"); "
                       "echo \"${COMPREPLY[@]}\"'",
                       prefix(), program, program, words, program)
        ->output;
}

TEST(package_completes_options_in_bash)
{
    need("bash");
    CHECK_STR(complete_in_bash("tfrecord-make", "--shar"), "--shards --shard-size\n");
    CHECK_STR(complete_in_bash("tfrecord-make", "--help su"), "survey\n");
    CHECK_STR(complete_in_bash("tfrecord-cat", "--bytes \"\""), "text hex base64\n");
    CHECK_STR(complete_in_bash("tfrecord-cat", "--compress = g"), "gzip\n");
    CHECK_STR(complete_in_bash("tfrecord-cat", "--from"), "--from-dali\n");
    CHECK_STR(complete_in_bash("graph-run", "model.pb --fe"), "--feed --feeds --fetch\n");
    CHECK_STR(complete_in_bash("train-images", "a"), "\n");
}

TEST(package_completes_options_in_fish)
{
    need("fish");
    const program_result *result = program_run("HOME=%s fish -N -c 'source %s/share/fish/vendor_completions.d/"
                                               "tfrecord-make.fish; complete -C \"tfrecord-make --shard\" | cut -f 1'",
                                               test_directory(), prefix());
    CHECK_CONTAINS(result->output, "--shards\n");
    CHECK_CONTAINS(result->output, "--shard-size\n");
}

TEST(package_completions_for_zsh_are_valid)
{
    need("zsh");
    for (int i = 0; i < PROGRAMS; i++) {
        const program_result *result = program_run("zsh -n %s/share/zsh/site-functions/_%s", prefix(), programs[i]);
        CHECK_STR(result->output, "");
        CHECK_EQ(result->exit_code, 0);
    }
}

/* A library that is built with a sanitizer needs its runtime, which only the program has. The shared library is not
 * installed then. */
static void need_plain_library(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/lib/libmillrace.so", prefix());
    if (access(path, F_OK) != 0) test_skip("the library is built with a sanitizer");
}

TEST(package_is_found_by_pkg_config)
{
    need_plain_library();
    need("gcc");
    need("pkg-config");
    save("user.c", user_program);
    /* -l:libmillrace.a, because the tree may also contain the shared library. */
    const program_result *result =
        program_run("cd %s && export PKG_CONFIG_PATH=%s/lib/pkgconfig && gcc -std=gnu2x user.c -o user "
                    "$(pkg-config --cflags --libs --static libmillrace | sed 's/-lmillrace/-l:libmillrace.a/') && "
                    "pkg-config --modversion libmillrace && ./user",
                    test_directory(), prefix());
    CHECK_STR(result->output, MR_VERSION "\nOK\n");
}

TEST(package_is_found_by_cmake)
{
    need_plain_library();
    need("gcc");
    need("cmake");
    save("user.c", user_program);
    save("CMakeLists.txt", cmake_project);
    const program_result *result =
        program_run("cd %s && cmake -S . -B build -DCMAKE_C_COMPILER=gcc -DCMAKE_PREFIX_PATH=%s && "
                    "cmake --build build && build/user",
                    test_directory(), prefix());
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
    CHECK_CONTAINS(result->output, "\nOK\n");
    /* A request for another minor version is rejected. */
    result = program_run("cd %s && sed -i 's/millrace 0.1/millrace 0.2/' CMakeLists.txt && cmake -S . -B other "
                         "-DCMAKE_PREFIX_PATH=%s",
                         test_directory(), prefix());
    CHECK(result->exit_code != 0);
    CHECK_CONTAINS(result->output, "compatible with requested version");
}
