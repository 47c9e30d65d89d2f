/* Help and version of tfrecord-make, and a standard output that cannot be written. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/millrace.h>

#include <ctype.h>

static const char *const topics[] = {"output", "images", "sources", "columns", "survey", "run"};
static constexpr int TOPICS = sizeof topics / sizeof topics[0];

/* The number of lines, and the columns of the longest one. */
static void measure(const char *text, int *lines, int *columns)
{
    int at = 0;
    *lines = *columns = 0;
    for (; *text; text++) {
        if (*text == '\n') {
            ++*lines;
            at = 0;
        } else if (((unsigned char)*text & 0xc0) != 0x80) {
            at++;
        }
        if (at > *columns) *columns = at;
    }
}

/* The number of lines of a help text that begin with the option. */
static int count_option(const char *text, const char *name)
{
    int count = 0;
    char label[64];
    size_t size = (size_t)snprintf(label, sizeof label, "--%s", name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "      --", 8) != 0 && !(strncmp(line, "  -", 3) == 0 && strncmp(line + 4, ", --", 4) == 0))
            continue;
        count += strncmp(line + 6, label, size) == 0 && strchr(" \n", line[6 + size]) != nullptr;
    }
    return count;
}

/* The names of all options, separated by blanks. getopt_long lists them when an abbreviation is ambiguous; a letter
 * with which only one option begins is completed to that option. */
static const char *option_names(void)
{
    static char names[4096];
    names[0] = '\0';
    for (char letter = 'a'; letter <= 'z'; letter++) {
        const program_result *result = program_run("tfrecord-make --%c=", letter);
        const char *list = strstr(result->output, "possibilities:");
        if (!list) list = strstr(result->output, "option '--");
        for (; list && (list = strstr(list, "'--")); list++) {
            char name[64];
            CHECK_EQ(sscanf(list, "'--%63[a-z-]", name), 1);
            if (name[1] != '\0') strcat(strcat(names, name), " ");
        }
    }
    return names;
}

TEST(make_help_has_every_option_in_exactly_one_topic)
{
    static char texts[TOPICS][1 << 13];
    for (int i = 0; i < TOPICS; i++) {
        const program_result *result = program_run("tfrecord-make --help %s", topics[i]);
        CHECK_EQ(result->exit_code, 0);
        CHECK(strlen(result->output) < sizeof texts[i]);
        strcpy(texts[i], result->output);
    }
    char names[4096], *rest = names;
    snprintf(names, sizeof names, "%s", option_names());
    int count = 0;
    for (char *name; (name = strtok_r(rest, " ", &rest)); count++) {
        int found = 0;
        for (int i = 0; i < TOPICS; i++) found += count_option(texts[i], name);
        if (found != 1) test_fail(__FILE__, __LINE__, "--%s is in %d topics", name, found);
        /* Help for an option by its name, unless a topic has that name. */
        bool is_topic = false;
        for (int i = 0; i < TOPICS; i++) is_topic |= strcmp(name, topics[i]) == 0;
        if (!is_topic) CHECK_EQ(count_option(program_run("tfrecord-make --help %s", name)->output, name), 1);
    }
    CHECK(count > 35);
}

TEST(make_help_fits_the_screen)
{
    int lines, columns;
    const program_result *result = program_run("tfrecord-make --help");
    CHECK_EQ(result->exit_code, 0);
    measure(result->output, &lines, &columns);
    CHECK(lines <= 24 && columns <= 80);
    for (int i = 0; i < TOPICS; i++) CHECK_CONTAINS(result->output, topics[i]);
    result = program_run("tfrecord-make --help=all");
    measure(result->output, &lines, &columns);
    CHECK(lines > 100 && columns <= 80);
    result = program_run("tfrecord-make --help nonsense");
    CHECK_EQ(result->exit_code, 2);
    CHECK_CONTAINS(result->output, "no help topic \"nonsense\"");
    result = program_run("tfrecord-make");
    CHECK_EQ(result->exit_code, 2);
    CHECK_CONTAINS(result->output, "usage: tfrecord-make");
}

TEST(make_prints_its_version)
{
    const program_result *result = program_run("tfrecord-make --version");
    CHECK_EQ(result->exit_code, 0);
    CHECK_STR(result->output, "tfrecord-make (millrace) " MR_VERSION "\n");
}

TEST(make_fails_when_its_output_cannot_be_written)
{
    static const char *const commands[] = {"--help",
                                           "--version",
                                           "--help all",
                                           "--out out photos",
                                           "--out out --json photos",
                                           "--out out --dry-run photos",
                                           "--survey photos"};
    static const char image[] = "not an image";
    CHECK_EQ(program_run("mkdir -p %s/photos/a", test_directory())->exit_code, 0);
    file_save(test_path("photos/a/1.jpg"), image, sizeof image - 1);
    CHECK_EQ(program_run("cd %s; photographs --out photos --count 6", test_directory())->exit_code, 0);
    CHECK_EQ(remove(test_path("photos/a/1.jpg")), 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const program_result *result = program_run("cd %s; tfrecord-make %s >/dev/full", test_directory(), commands[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "tfrecord-make: cannot write the output: No space left on device\n");
        /* A closed descriptor is an error; a reader that closes its pipe is not reported. */
        result = program_run("cd %s; tfrecord-make %s >&-", test_directory(), commands[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "Bad file descriptor");
        result =
            program_run("cd %s; { tfrecord-make %s; echo $? >code; } | true; cat code", test_directory(), commands[i]);
        CHECK(strstr(result->output, "cannot write") == nullptr);
    }
}

/* Options that have no effect because of other options; options_table.h covers the others. */
TEST(make_refuses_options_whose_value_has_no_effect)
{
    static const struct {
        const char *arguments, *reason;
    } cases[] = {
        {"--survey --duplicates drop x", "--survey supports only"},
        {"--out o --encode png --quality 80 x", "--quality has no effect"},
        {"--out o --encode png --crop-ready x", "--crop-ready has no effect"},
        {"--out o --split train=1 --stratify x", "--stratify has no effect"},
        {"--out o --exclude '' x", "the pattern is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const program_result *result = program_run("cd %s; tfrecord-make %s", test_directory(), cases[i].arguments);
        CHECK_CONTAINS(result->output, cases[i].reason);
        CHECK_EQ(result->exit_code, 2);
    }
}
