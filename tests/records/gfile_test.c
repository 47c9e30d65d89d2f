/* Files and directories: copies, links, special names, patterns, trees, a full disk. */
#include "tests/test.h"

#include <millrace/file.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_file(const char *path, mr_string contents)
{
    mr_error error = {0};
    CHECK_OK(mr_gfile_write(path, contents, &error));
}

static void check_contents(const char *path, mr_string expected)
{
    mr_error error = {0};
    mr_tensor contents = {0};
    CHECK_OK(mr_gfile_read(path, &contents, &error));
    CHECK(mr_string_equal(mr_tensor_strings(&contents)[0], expected));
    mr_tensor_deinit(&contents);
}

/* The strings, separated by "|". */
static const char *joined(const mr_tensor *names)
{
    static char text[4096];
    text[0] = '\0';
    size_t used = 0;
    for (int64_t i = 0; i < mr_tensor_count(names); i++) {
        mr_string name = mr_tensor_strings(names)[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? "|" : "", (int)name.size_bytes,
                                 name.data);
        CHECK(used < sizeof text);
    }
    return text;
}

static void check_glob(const char *pattern, const char *expected)
{
    mr_error error = {0};
    mr_tensor paths = {0};
    CHECK_OK(mr_gfile_glob(pattern, &paths, &error));
    CHECK_STR(joined(&paths), expected);
    mr_tensor_deinit(&paths);
}

TEST(gfile_copies_and_renames)
{
    mr_error error = {0};
    mr_gfile_about about;
    CHECK(chdir(test_directory()) == 0);
    write_file("a", MR_STR("one\0two"));
    write_file("empty", (mr_string){0});
    check_contents("a", MR_STR("one\0two"));
    check_contents("empty", (mr_string){"", 0});
    CHECK(chmod("a", 0750) == 0);
    CHECK_OK(mr_gfile_copy("a", "b", false, &error));
    check_contents("b", MR_STR("one\0two"));
    struct stat mode;
    CHECK(stat("b", &mode) == 0 && (mode.st_mode & 0700) == 0700);
    CHECK_STATUS(mr_gfile_copy("empty", "b", false, &error), MR_ALREADY_EXISTS);
    CHECK_OK(mr_gfile_copy("a", "a", true, &error)); /* onto itself */
    check_contents("a", MR_STR("one\0two"));
    CHECK_OK(mr_gfile_copy("empty", "b", true, &error));
    check_contents("b", (mr_string){"", 0});
    CHECK(symlink("a", "link") == 0);
    CHECK_OK(mr_gfile_copy("empty", "link", true, &error)); /* the target of the link */
    check_contents("a", (mr_string){"", 0});
    CHECK(lstat("link", &mode) == 0 && S_ISLNK(mode.st_mode));
    CHECK_STATUS(mr_gfile_rename("a", "b", false, &error), MR_ALREADY_EXISTS);
    CHECK_OK(mr_gfile_rename("a", "b", true, &error));
    CHECK(!mr_gfile_exists("a") && mr_gfile_exists("b") && !mr_gfile_exists("link"));
    CHECK_OK(mr_gfile_stat("b", &about, &error));
    CHECK_EQ(about.length, 0);
    CHECK(about.mtime_nsec > 1'600'000'000'000'000'000);
    CHECK(!about.is_directory);
    CHECK_OK(mr_gfile_remove("b", &error));
    CHECK_STATUS(mr_gfile_remove("b", &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "cannot remove b: ");
}

TEST(gfile_errors_have_tensorflows_codes)
{
    mr_error error = {0};
    mr_tensor value = {0};
    mr_gfile_about about;
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(chdir(test_directory()) == 0);
    write_file("f", MR_STR("x"));
    CHECK_OK(mr_gfile_make_directories("d/e//f/", &error));
    CHECK_OK(mr_gfile_make_directories("d/e", &error));
    CHECK(symlink("loop", "loop") == 0);
    CHECK_STATUS(mr_gfile_make_directories("f", &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_make_directories("f/x", &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_read("d", &value, &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_read("none", &value, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_gfile_read("", &value, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_gfile_read(nullptr, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_gfile_write("d", MR_STR("x"), &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_write("new/", MR_STR("x"), &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_write("f/x", MR_STR("x"), &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_write("none/x", MR_STR("x"), &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_gfile_write(name, MR_STR("x"), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_gfile_copy("d", "x", false, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_gfile_stat("loop", &about, &error), MR_UNKNOWN);
    CHECK_STATUS(mr_gfile_stat("hdfs://x", &about, &error), MR_UNIMPLEMENTED);
    CHECK_STATUS(mr_gfile_list_directory("f", &value, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_gfile_remove("d", &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_delete_recursively("none", &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_gfile_walk("none", true, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK(!mr_gfile_exists(nullptr) && !mr_gfile_exists("hdfs://x") && !mr_gfile_is_directory("f"));
    CHECK(mr_gfile_is_directory("d/"));
    char url[4096];
    snprintf(url, sizeof url, "file://%s/f", test_directory());
    check_contents(url, MR_STR("x"));
}

TEST(gfile_patterns_match_within_components)
{
    mr_error error = {0};
    mr_tensor names = {0};
    CHECK(chdir(test_directory()) == 0);
    CHECK_OK(mr_gfile_make_directories("d/.hidden", &error));
    CHECK_OK(mr_gfile_make_directories("e", &error));
    write_file("d/a b\n\xff", MR_STR("x"));
    write_file("d/*", MR_STR("x"));
    write_file("d/[x]", MR_STR("x"));
    write_file("e/.h", MR_STR("x"));
    CHECK_OK(mr_gfile_list_directory("d", &names, &error));
    CHECK_STR(joined(&names), "*|.hidden|[x]|a b\n\xff");
    mr_tensor_deinit(&names);
    check_glob("d/*", "d/*|d/.hidden|d/[x]|d/a b\n\xff");
    check_glob("d/\\*", "d/*");
    check_glob("d/[[]x]", "d/[x]");
    check_glob("*/.h*", "d/.hidden|e/.h");
    check_glob("./?", "./d|./e");
    check_glob("d/../e/*", "d/../e/.h");
    check_glob("[!d]", "e");
    check_glob("none*", "");
    check_glob("", "");
}

TEST(gfile_deletes_links_not_their_targets)
{
    mr_error error = {0};
    CHECK(chdir(test_directory()) == 0);
    CHECK_OK(mr_gfile_make_directories("kept", &error));
    write_file("kept/f", MR_STR("x"));
    CHECK_OK(mr_gfile_make_directories("tree/a/b/c", &error));
    write_file("tree/a/-rf *", MR_STR("x"));
    CHECK(symlink("../../kept", "tree/a/link") == 0 && symlink("nothing", "tree/broken") == 0);
    CHECK(symlink("kept", "top") == 0 && mkfifo("tree/pipe", 0600) == 0);
    CHECK_OK(mr_gfile_delete_recursively("tree//", &error));
    CHECK(!mr_gfile_exists("tree"));
    check_contents("kept/f", MR_STR("x"));
    CHECK_OK(mr_gfile_delete_recursively("top/", &error));
    check_contents("kept/f", MR_STR("x"));
    CHECK_OK(mr_gfile_delete_recursively("kept/f", &error));
    CHECK(mr_gfile_is_directory("kept") && !mr_gfile_exists("kept/f"));
}

typedef struct visits {
    char text[1024];
    int left; /* the visit that fails; -1: none */
} visits;

static mr_status visit(void *context, const char *directory, const mr_tensor *subdirectories, const mr_tensor *files,
                       mr_error *error)
{
    visits *v = context;
    if (v->left-- == 0) return mr_fail(error, MR_ABORTED, "enough");
    size_t used = strlen(v->text);
    used += (size_t)snprintf(v->text + used, sizeof v->text - used, "%s:%s", directory, joined(subdirectories));
    snprintf(v->text + used, sizeof v->text - used, ":%s;", joined(files));
    return MR_OK;
}

TEST(gfile_walks_directories)
{
    mr_error error = {0};
    visits v = {.left = -1};
    CHECK(chdir(test_directory()) == 0);
    CHECK_OK(mr_gfile_make_directories("t/b/c", &error));
    write_file("t/f", MR_STR("x"));
    write_file("t/b/c/g", MR_STR("x"));
    CHECK(symlink("..", "t/b/up") == 0 && symlink("nothing", "t/x") == 0);
    CHECK_OK(mr_gfile_walk("t", true, visit, &v, &error));
    CHECK_STR(v.text, "t:b:f|x;t/b:c|up:;t/b/c::g;");
    v = (visits){.left = -1};
    CHECK_OK(mr_gfile_walk("t/", false, visit, &v, &error));
    CHECK_STR(v.text, "t/b/c::g;t/b:c|up:;t/:b:f|x;");
    v = (visits){.left = 1};
    CHECK_STATUS(mr_gfile_walk("t", true, visit, &v, &error), MR_ABORTED);
    CHECK_STATUS(mr_gfile_walk("none", true, visit, &v, &error), MR_NOT_FOUND);
}

/* A limit on the size of files stands for a full disk: writing fails in the same place. */
TEST(gfile_keeps_a_file_that_cannot_be_replaced)
{
    mr_error error = {0};
    CHECK(chdir(test_directory()) == 0);
    write_file("f", MR_STR("old"));
    CHECK_STATUS(mr_gfile_copy("f", "/dev/full", true, &error), MR_RESOURCE_EXHAUSTED);
    CHECK_STATUS(mr_gfile_write("/dev/full", MR_STR("x"), &error), MR_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(error.message, "disk is full");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1 << 16, 1 << 16};
        static char bytes[1 << 20];
        bool is_good = signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
        _exit(is_good && mr_gfile_write("f", (mr_string){bytes, sizeof bytes}, nullptr) != MR_OK ? 0 : 1);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    check_contents("f", MR_STR("old"));
    CHECK(!mr_gfile_exists("f.partial"));
}

TEST(gfile_makes_one_directory)
{
    mr_error error = {0};
    CHECK_OK(mr_gfile_make_directory(test_path("one"), &error));
    CHECK(mr_gfile_is_directory(test_path("one")));
    CHECK_OK(mr_gfile_make_directory(test_path("one"), &error)); /* again */
    CHECK_OK(mr_gfile_make_directory("", &error));
    CHECK_STATUS(mr_gfile_make_directory(test_path("a/b"), &error), MR_NOT_FOUND);
    CHECK_OK(mr_gfile_write(test_path("file"), MR_STR("x"), &error));
    CHECK_OK(mr_gfile_make_directory(test_path("file"), &error)); /* as in TensorFlow */
    CHECK(!mr_gfile_is_directory(test_path("file")));
    CHECK_STATUS(mr_gfile_make_directory(test_path("file/x"), &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_gfile_make_directory(nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_gfile_make_directory("hdfs://x", &error), MR_UNIMPLEMENTED);
}
