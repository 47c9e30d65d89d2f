/* Every option of tfrecord-cat with every command: the option either changes the output, or is an error that names the
 * commands that accept it. */
#include "tests/tools/examples.h"
#include "tests/tools/failing.h"

/* The commands that are run. They write to "o". */
static const char *const commands[] = {
    "",
    "--json",
    "--csv",
    "--about",
    "--count",
    "--schema",
    "--stats",
    "--verify",
    "--salvage o/s",
    "--index",
    "--repair-index",
    "--diff",
    "--diff --unordered",
    "--extract o/e",
    "--html o/h",
    "--merge --out o/m",
    "--split 2 --out o/s",
    "--shuffle --out o/x",
};

static const struct option {
    const char *text;   /* with a value that changes the output of every command on which the option has an effect */
    const char *silent; /* commands that accept it although it does not change their output; "*": all */
} options[] = {
    {"--record 2", ""},       {"--range 1:3", ""},
    {"--where label==3", ""}, {"--sample 2", ""},
    {"--seed 9", ""},         {"--head 2", ""},
    {"--features text", ""},  {"--rename label=number", ""},
    {"--crlf", ""},           {"--bytes hex", ""},
    {"--spec c", ""},         {"--decode", "*"},
    {"--pretty", ""},         {"--svg o/c.svg", ""},
    {"--jobs 2", "*"},        {"--raw", "--extract --verify"}, /* no image is bad and no record is damaged */
    {"--out o/y", "*"},       {"--compress zlib", ""},
    {"--shards 3", ""},       {"--shard-size 200", ""},
    {"--memory 64M", "*"},    {"--force", "*"},
    {"--unordered", "*"},     {"--dali", "*"}, /* writes next to the input */
    {"--from-dali", "*"},
};
#define COUNT(list) (sizeof list / sizeof *list)

static failing_result run(const char *command, const char *option)
{
    char arguments[300];
    bool is_diff = strncmp(command, "--diff", 6) == 0;
    snprintf(arguments, sizeof arguments, "%s%s%s%s%s", command, *command ? " " : "", option, *option ? " " : "",
             is_diff ? "a b" : "a");
    return failing_run("tfrecord-cat", arguments, "write", 0);
}

static bool is_same(const failing_result *a, const failing_result *b)
{
    return a->exit_code == b->exit_code && a->written == b->written && a->output_size == b->output_size &&
           memcmp(a->output, b->output, a->output_size) == 0;
}

/* Matches "--head is for …, not for --verify", or an error for two options that exclude each other. */
static bool is_refusal(const failing_result *result, const char *option)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option, " "), option);
    const char *text = (const char *)result->errors;
    return result->exit_code == 2 && strstr(text, name) &&
           (strstr(text, " is for ") || strstr(text, ": only one of them") || strstr(text, " is given twice"));
}

/* Whether a list contains the command, by its first word. */
static bool has_command(const char *list, const char *command)
{
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(command, " "), command);
    return *name && strstr(list, name);
}

TEST(cat_has_no_option_without_effect)
{
    if (test_is_sanitized() || !getenv("MILLRACE_PRELOAD")) test_skip("needs the installed programs");
    examples_write(test_path("a"), 6, (mr_record_writer_options){0});
    examples_write_from(test_path("b"), 1, 6, (mr_record_writer_options){0});
    CHECK_EQ(chdir(test_directory()), 0);
    int refused = 0, taken = 0;
    for (size_t i = 0; i < COUNT(commands); i++) {
        failing_result without = run(commands[i], "");
        CHECK(without.exit_code <= 1);
        for (size_t j = 0; j < COUNT(options); j++) {
            failing_result with = run(commands[i], options[j].text);
            bool is_silent = strcmp(options[j].silent, "*") == 0 || has_command(options[j].silent, commands[i]);
            bool is_refused = is_refusal(&with, options[j].text);
            if (!is_refused && (with.exit_code == 2 || (!is_silent && is_same(&with, &without))))
                test_fail(__FILE__, __LINE__, "%s %s: exit code %d: %s", commands[i], options[j].text, with.exit_code,
                          (char *)with.errors);
            refused += is_refused;
            taken += !is_refused;
            failing_free(&with);
        }
        failing_free(&without);
    }
    CHECK(refused > 200 && taken > 100);
}

static void check_refused(const char *arguments, const char *part)
{
    const program_result *result = program_run("cd '%s' && tfrecord-cat %s", test_directory(), arguments);
    if (result->exit_code != 2 || !strstr(result->output, part))
        test_fail(__FILE__, __LINE__, "%s: %d: %s", arguments, result->exit_code, result->output);
}

TEST(cat_usage_error_names_the_commands_of_an_option)
{
    examples_write(test_path("a"), 2, (mr_record_writer_options){0});
    check_refused("--verify --head 3 a",
                  "--head is for showing records, --json, --csv, --count, --schema, "
                  "--stats, --extract, --html, --merge, --split, --shuffle and --dump, not for --verify\n");
    check_refused("--svg x a", "--svg is for --stats, not for showing records\n");
    check_refused("--split 2 --shards 3 --out x a", "--shards is for --merge and --shuffle, not for --split\n");
    check_refused("--stats --pretty a", "--pretty is for --json\n");
    check_refused("--json --seed 3 a", "--seed is for --sample and --shuffle\n");
    check_refused("--diff --memory 64M a a", "--memory is for --unordered with --diff\n");
    check_refused("--merge --shards 2 --shard-size 1M --out x a", "--shards and --shard-size: only one of them\n");
    check_refused("--json --raw --features x a", "--features and --raw");
    check_refused("--verify --raw --decode a", "--decode and --raw");
    check_refused("--merge --force --out - a", "--force and --out -");
    check_refused("--features a --features b a", "--features is given twice\n");
    CHECK_EQ(program_run("tfrecord-cat --stats --json --pretty %s", test_path("a"))->exit_code, 0);
}
