/* Outputs of the tools: no command replaces anything but regular files, and none replaces its input. */
#include "tests/tools/examples.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static mode_t type_of(const char *name)
{
    struct stat about;
    CHECK_EQ(lstat(test_path("%s", name), &about), 0);
    return about.st_mode & S_IFMT;
}

static const program_result *cat(const char *arguments)
{
    return program_run("cd '%s' && timeout 20 tfrecord-cat %s < /dev/null", test_directory(), arguments);
}

static void make_specials(void)
{
    CHECK_EQ(mkfifo(test_path("fifo"), 0600), 0);
    CHECK_EQ(mkdir(test_path("directory"), 0700), 0);
    CHECK_EQ(program_run("cd '%s' && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'",
                         test_directory())
                 ->exit_code,
             0);
    /* A device like /dev/null, if nodes can be created. */
    (void)!mknod(test_path("device"), S_IFCHR | 0600, makedev(1, 3));
}

TEST(cat_replaces_regular_files_only)
{
    static const char *const specials[] = {"fifo", "directory", "socket", "device"};
    static const char *const commands[] = {"--salvage %s", "--merge --out %s", "--shuffle --out %s"};
    examples_write(test_path("in"), 10, (mr_record_writer_options){0});
    make_specials();
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (access(test_path("%s", specials[i]), F_OK) != 0) continue;
        mode_t before = type_of(specials[i]);
        for (size_t j = 0; j < sizeof commands / sizeof *commands; j++)
            for (int forced = 0; forced < 2; forced++) {
                char arguments[200];
                int used = snprintf(arguments, sizeof arguments, commands[j], specials[i]);
                snprintf(arguments + used, sizeof arguments - (size_t)used, "%s in", forced ? " --force" : "");
                const program_result *result = cat(arguments);
                CHECK_EQ(result->exit_code, 1);
                CHECK_CONTAINS(result->output, "already exists as a ");
                CHECK_CONTAINS(result->output, specials[i]);
                CHECK_EQ(type_of(specials[i]), before);
            }
    }
    CHECK_STR(program_run("cd '%s' && ls | grep -c 'partial\\|report\\|index'", test_directory())->output, "0\n");
}

/* The files next to an output, its index, report and partial file, are checked too. */
TEST(cat_replaces_no_pipe_next_to_its_output)
{
    static const char *const names[] = {"o.index", "o.report", "o.partial", "o.report.partial", "o.partial.index"};
    examples_write(test_path("in"), 10, (mr_record_writer_options){0});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_EQ(mkfifo(test_path("%s", names[i]), 0600), 0);
        static const char *const commands[] = {"--salvage o in", "--merge --out o in", "--salvage o --force in",
                                               "--merge --compress gzip --out o --force in"};
        for (size_t j = 0; j < sizeof commands / sizeof *commands; j++) {
            const program_result *result = cat(commands[j]);
            CHECK(result->exit_code == 0 || result->exit_code == 1);
            if (result->exit_code == 1) CHECK_CONTAINS(result->output, names[i]);
            CHECK_EQ(type_of(names[i]), S_IFIFO);
            (void)unlink(test_path("o"));
            if (i != 0) (void)unlink(test_path("o.index"));
        }
        CHECK_EQ(unlink(test_path("%s", names[i])), 0);
    }
}

TEST(cat_creates_files_and_replaces_only_with_force)
{
    examples_write(test_path("in"), 10, (mr_record_writer_options){0});
    static const char *const commands[] = {"--salvage o in", "--merge --out o in"};
    for (size_t i = 0; i < 2; i++) {
        char forced[100];
        snprintf(forced, sizeof forced, "%s --force", commands[i]);
        CHECK_EQ(cat(commands[i])->exit_code, 0);
        const program_result *result = cat(commands[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "o: already exists; --force replaces it");
        CHECK_EQ(cat(forced)->exit_code, 0);
        CHECK_STR(cat("--count o")->output, "10\n");
        /* A dangling symbolic link counts as an existing file. */
        (void)unlink(test_path("o"));
        CHECK_EQ(symlink("nothing", test_path("o")), 0);
        CHECK_EQ(cat(commands[i])->exit_code, 1);
        CHECK_EQ(type_of("o"), S_IFLNK);
        CHECK_EQ(unlink(test_path("o")), 0);
        CHECK_EQ(unlink(test_path("o.index")), 0);
    }
    CHECK_EQ(cat("--salvage in --force in")->exit_code, 1);
    CHECK_STR(cat("--count in")->output, "10\n");
}

/* Two runs with one output: the second one fails and leaves the report of the first unchanged. */
TEST(cat_salvage_has_its_output_alone)
{
    examples_write(test_path("in"), 2'000, (mr_record_writer_options){0});
    CHECK_EQ(mkfifo(test_path("slow"), 0600), 0);
    const program_result *result = program_run(
        "cd '%s'; (head -c 50000 in; sleep 1; tail -c +50001 in | sed 's/Welt/WELT/') > slow & "
        "tfrecord-cat --salvage o slow > first & one=$!; sleep 0.4; timeout 10 tfrecord-cat --salvage o in; "
        "echo second $?; wait $one; echo first $?; grep -c 'bad data' o.report",
        test_directory());
    CHECK_CONTAINS(result->output, "second 1\n");
    CHECK_CONTAINS(result->output, "first 1\n");
    CHECK(atoi(strstr(result->output, "first 1\n") + 8) > 1000);
}
