/* Flags: the help, files of flags, rules, messages, mistakes. flags_oracle.py compares the parsing of command lines
 * with absl's. */
#include "tests/test.h"

#include <millrace/millrace.h>

typedef struct values {
    const char *name, *color;
    bool verbose, fast;
    int64_t steps;
    double rate;
    mr_names words, many;
    mr_ints numbers;
} values;

static mr_flags *define(values *v)
{
    *v = (values){.color = "red", .steps = 7, .rate = 0.001};
    mr_flags *flags = mr_flags_new("Trains a model on flowers.\nIt needs no data.");
    mr_flags_string(flags, "name", &v->name, "Name of the run.", .short_name = "n");
    mr_flags_enum(flags, "color", &v->color, MR_NAMES("red", "green"), "Color of the flowers.");
    mr_flags_bool(flags, "verbose", &v->verbose, "Print more.");
    mr_flags_bool(flags, "fast", &v->fast, nullptr);
    mr_flags_int(flags, "steps", &v->steps, "Number of steps.", .lower_bound = 1);
    mr_flags_float(flags, "rate", &v->rate, "Learning rate.", .lower_bound = 0, .upper_bound = 1);
    mr_flags_list(flags, "words", &v->words, "Words.");
    mr_flags_multi_string(flags, "many", &v->many,
                          "A text that is so long that it does not fit in one line of eighty columns of help.");
    mr_flags_multi_int(flags, "numbers", &v->numbers, "Numbers.");
    return flags;
}

#define PARSE(flags, error, ...)                                                                                       \
    mr_flags_parse((flags), (int)(sizeof((char *[]){"train", __VA_ARGS__}) / sizeof(char *)),                          \
                   (char *[]){"train", __VA_ARGS__}, (error))

TEST(flags_set_variables)
{
    mr_error error = {0};
    values v;
    mr_flags *flags = define(&v);
    CHECK_EQ(mr_flags_count(flags, "steps"), 0);
    CHECK_OK(PARSE(flags, &error, "a", "--steps=3", "-n", "run", "--verbose", "--words= x ,\"y,z\"", "--many=1", "b",
                   "--many", "2", "--steps", "1_000", "--numbers=-5", "--", "--steps=4"));
    CHECK_EQ(v.steps, 1000);
    CHECK_STR(v.name, "run");
    CHECK(v.verbose && !v.fast);
    CHECK_STR(v.color, "red");
    CHECK(v.words.count == 2 && v.many.count == 2 && v.numbers.count == 1 && v.numbers.items[0] == -5);
    CHECK_STR(v.words.items[0], "x");
    CHECK_STR(v.words.items[1], "y,z");
    CHECK_STR(v.many.items[1], "2");
    const mr_names rest = mr_flags_arguments(flags);
    CHECK_EQ(rest.count, 3);
    CHECK_STR(rest.items[1], "b");
    CHECK_STR(rest.items[2], "--steps=4");
    CHECK_EQ(mr_flags_count(flags, "steps"), 2);
    CHECK_EQ(mr_flags_count(flags, "n"), 1);
    CHECK_EQ(mr_flags_count(flags, "other"), -1);
    CHECK(mr_flags_help(flags) == nullptr);
    /* Again: it adds to what was given. */
    CHECK_OK(PARSE(flags, &error, "--many=3", "--noverbose"));
    CHECK(v.many.count == 3 && !v.verbose && v.steps == 1000);
    CHECK_EQ(mr_flags_arguments(flags).count, 0);
    CHECK_OK(mr_flags_set(flags, "rate", "0.5", &error));
    CHECK_OK(mr_flags_set(flags, "fast", nullptr, &error));
    CHECK(v.rate == 0.5 && v.fast);
    CHECK_STATUS(mr_flags_set(flags, "rate", "2", &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_set(flags, "rate", nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_set(flags, "other", "2", &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_flags_set(flags, "help", "true", &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_flags_set(flags, nullptr, "2", &error), MR_NOT_FOUND);
    mr_flags_free(flags);
}

TEST(flags_have_help)
{
    mr_error error = {0};
    values v;
    mr_flags *flags = define(&v);
    CHECK_OK(PARSE(flags, &error, "--steps=3", "--help", "--steps=bad"));
    CHECK_STR(mr_flags_help(flags),
              "Trains a model on flowers.\nIt needs no data.\n\nUSAGE: train [flags]\nflags:\n\ntrain:\n"
              "  --color: <red|green>: Color of the flowers.\n    (default: 'red')\n"
              "  --[no]fast: (no help available)\n    (default: 'false')\n"
              "  --many: A text that is so long that it does not fit in one line of eighty\n"
              "    columns of help. Repeat this flag to specify a list of values.\n"
              "  -n,--name: Name of the run.\n"
              "  --numbers: Numbers. Repeat this flag to specify a list of values.\n    (an integer)\n"
              "  --rate: Learning rate.\n    (default: '0.001')\n    (a number in the range [0, 1])\n"
              "  --steps: Number of steps.\n    (default: '7')\n    (an integer >= 1)\n"
              "  --[no]verbose: Print more.\n    (default: 'false')\n"
              "  --words: Words.\n    (a comma separated list)\n"
              "\nTry --helpfull to get a list of all flags.\n");
    CHECK_OK(PARSE(flags, &error, "--helpfull"));
    CHECK_CONTAINS(mr_flags_help(flags), "  --flagfile: ");
    CHECK_CONTAINS(mr_flags_help(flags), "  --[no]help: ");
    CHECK_OK(PARSE(flags, &error, "--nohelp"));
    CHECK(mr_flags_help(flags) == nullptr);
    CHECK_OK(PARSE(flags, &error, "--helpshort"));
    CHECK(mr_flags_help(flags) != nullptr);
    mr_flags_free(flags);
    flags = mr_flags_new(nullptr);
    CHECK_OK(mr_flags_parse(flags, 2, (char *[]){"/usr/bin/prog", "-help"}, &error));
    CHECK_STR(mr_flags_help(flags),
              "USAGE: prog [flags]\nflags:\n\nprog:\n\nTry --helpfull to get a list of all flags.\n");
    mr_flags_free(flags);
}

static void check_error(const char *argument, const char *message)
{
    mr_error error = {0};
    values v;
    mr_flags *flags = define(&v);
    CHECK_STATUS(mr_flags_parse(flags, 2, (char *[]){"train", (char *)argument}, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, message);
    mr_flags_free(flags);
}

TEST(flags_report_mistakes_on_the_command_line)
{
    check_error("--stepz=3", "flag --stepz is not defined; the nearest is --steps");
    check_error("--verbos", "flag --verbos is not defined; the nearest is --verbose");
    check_error("--zzzzzzzzz", "flag --zzzzzzzzz is not defined");
    check_error("--steps", "flag --steps: no value");
    check_error("--flagfile", "flag --flagfile: no value");
    check_error("--undefok", "flag --undefok: no value");
    check_error("--noverbose=1", "flag --noverbose=1 takes no value");
    check_error("--steps=x", "flag --steps=x: the value is not an integer");
    check_error("--steps=0", "flag --steps=0: the value is not an integer >= 1");
    check_error("--steps=9223372036854775808", "flag --steps=9223372036854775808: the value does not fit in 64 bits");
    check_error("--rate=x", "flag --rate=x: the value is not a number");
    check_error("--rate=1.5", "flag --rate=1.5: the value is not a number in the range [0, 1]");
    check_error("--rate=nan", "flag --rate=nan: the value is not a number in the range [0, 1]");
    check_error("--color=blue", "flag --color=blue: the value is not one of red|green");
    check_error("--verbose=2", "flag --verbose=2: the value is not true, t, 1, false, f or 0");
    check_error("--words=\"a", "flag --words=\"a: the list has a quote without an end");
    check_error("--words=\"a\"b", "flag --words=\"a\"b: the list has text after a closing quote");
    check_error("--words=a\nb", "flag --words=a?b: the list has a line break outside of quotes");
}

/* ---- Rules ---- */

static mr_status is_even(void *context, const mr_flags *flags, mr_error *error)
{
    const values *v = context;
    CHECK(flags != nullptr);
    return v->steps % 2 == 0 ? MR_OK : mr_fail(error, MR_INVALID_ARGUMENT, "--steps must be even");
}

static mr_status fail_silently(void *, const mr_flags *, mr_error *)
{
    return MR_OUT_OF_RANGE;
}

TEST(validators_need_no_message)
{
    mr_error error = {.message = "old"};
    mr_flags *flags = mr_flags_new(nullptr);
    mr_flags_validator(flags, fail_silently, nullptr);
    CHECK_STATUS(PARSE(flags, &error, "a"), MR_OUT_OF_RANGE);
    CHECK_STR(error.message, "the validator failed");
    mr_flags_free(flags);
}

TEST(flags_follow_rules)
{
    mr_error error = {0};
    values v;
    const char *needed = nullptr, *given = "default";
    mr_flags *flags = define(&v);
    mr_flags_string(flags, "needed", &needed, nullptr, .required = true);
    mr_flags_string(flags, "given", &given, nullptr, .required = true);
    mr_flags_mutually_exclusive(flags, MR_NAMES("numbers", "words", "many"), true);
    mr_flags_mutually_exclusive(flags, MR_NAMES("verbose", "fast"), false);
    mr_flags_validator(flags, is_even, &v);
    CHECK_STATUS(PARSE(flags, &error, "--steps=2"), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "flag --needed is required");
    CHECK_STATUS(PARSE(flags, &error, "--needed="), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "one of the flags --numbers, --words, --many is required");
    CHECK_STATUS(PARSE(flags, &error, "--numbers=1", "--fast", "--verbose"), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "flags --verbose and --fast exclude each other");
    CHECK_STATUS(PARSE(flags, &error, "--nofast", "--steps=3"), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "--steps must be even");
    CHECK_OK(PARSE(flags, &error, "--steps=4"));
    CHECK_STATUS(PARSE(flags, &error, "--words=a"), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "flags --numbers and --words exclude each other");
    /* Help needs no valid flags. */
    CHECK_OK(PARSE(flags, &error, "--help"));
    CHECK_CONTAINS(mr_flags_help(flags), "  --needed: (no help available)\n    (required)\n");
    mr_flags_free(flags);
}

/* An empty list that was given is a value. */
TEST(flags_that_are_required_may_be_empty_lists)
{
    mr_error error = {0};
    mr_names list = {0}, many = {0};
    mr_flags *flags = mr_flags_new(nullptr);
    mr_flags_list(flags, "list", &list, nullptr, .required = true);
    mr_flags_multi_string(flags, "many", &many, nullptr, .required = true);
    CHECK_STATUS(PARSE(flags, &error, "--list="), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "flag --many is required");
    CHECK_OK(PARSE(flags, &error, "--many="));
    CHECK_EQ(list.count, 0);
    CHECK_EQ(many.count, 1);
    CHECK_STR(many.items[0], "");
    CHECK_EQ(mr_flags_count(flags, "list"), 1);
    mr_flags_free(flags);
}

/* ---- Files ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != nullptr && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(flags_are_written_and_read)
{
    mr_error error = {0};
    values v, copy;
    char *text = nullptr, *again = nullptr, argument[1024];
    mr_flags *flags = define(&v), *other = define(&copy);
    CHECK_OK(PARSE(flags, &error, "--words=a,\"b,\"\"c\"", "--many=x", "--many=y z", "--rate=1e-05", "--verbose",
                   "--numbers=1", "--numbers=2"));
    CHECK_OK(mr_flags_into_string(flags, &text, &error));
    CHECK_STR(text, "--color=red\n--nofast\n--many=x\n--many=y z\n--numbers=1\n--numbers=2\n--rate=1e-05\n--steps=7\n"
                    "--verbose\n--words=a,\"b,\"\"c\"\n");
    CHECK_OK(mr_flags_append_to_file(flags, test_path("flags"), &error));
    snprintf(argument, sizeof argument, "--flagfile=%s", test_path("flags"));
    CHECK_OK(mr_flags_parse(other, 2, (char *[]){"train", argument}, &error));
    CHECK_OK(mr_flags_into_string(other, &again, &error));
    CHECK_STR(again, text);
    free(again);
    /* A second time, the lines are appended. */
    CHECK_OK(mr_flags_append_to_file(flags, test_path("flags"), &error));
    CHECK_OK(mr_flags_parse(other, 2, (char *[]){"train", argument}, &error));
    CHECK_EQ(copy.many.count, 6);
    CHECK_OK(mr_flags_set(flags, "name", "a\nb", &error));
    CHECK_STATUS(mr_flags_into_string(flags, &again, &error), MR_INVALID_ARGUMENT);
    CHECK(again == nullptr);
    CHECK_STATUS(mr_flags_append_to_file(flags, test_path("flags"), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_append_to_file(other, test_path("no/flags"), &error), MR_NOT_FOUND);
    free(text);
    mr_flags_free(flags);
    mr_flags_free(other);
}

/* An empty list is written only where it takes the place of a default. */
TEST(flags_without_a_value_are_not_written)
{
    mr_error error = {0};
    char *text = nullptr;
    mr_names none = {0}, some = MR_NAMES("a");
    mr_flags *flags = mr_flags_new(nullptr);
    mr_flags_list(flags, "none", &none, nullptr);
    mr_flags_list(flags, "some", &some, nullptr);
    CHECK_OK(mr_flags_into_string(flags, &text, &error));
    CHECK_STR(text, "--some=a\n");
    free(text);
    CHECK_OK(PARSE(flags, &error, "--some="));
    CHECK_OK(mr_flags_into_string(flags, &text, &error));
    CHECK_STR(text, "--some=\n");
    free(text);
    mr_flags_free(flags);
}

static void check_file(const char *text, mr_status expected, const char *message)
{
    mr_error error = {0};
    values v;
    char argument[1024];
    mr_flags *flags = define(&v);
    if (text != nullptr) write_text(test_path("file"), text);
    snprintf(argument, sizeof argument, "--flagfile=%s", test_path("file"));
    CHECK_STATUS(mr_flags_parse(flags, 2, (char *[]){"train", argument}, &error), expected);
    CHECK_CONTAINS(error.message, message);
    mr_flags_free(flags);
}

TEST(files_of_flags_may_be_hostile)
{
    char text[4096];
    check_file(nullptr, MR_NOT_FOUND, "file");
    check_file("", MR_OK, "");
    check_file("--steps", MR_INVALID_ARGUMENT, "flag --steps: no value");
    check_file("--flagfile", MR_INVALID_ARGUMENT, "--flagfile without a file");
    snprintf(text, sizeof text, "--flagfile=%s\n", test_path("file"));
    check_file(text, MR_INVALID_ARGUMENT, "includes itself");
    snprintf(text, sizeof text, "--flagfile=%s\n", test_path("file-0"));
    for (int i = 0; i < 40; i++) {
        char line[2048];
        snprintf(line, sizeof line, "--flagfile=%s\n", test_path("file-%d", i + 1));
        write_text(test_path("file-%d", i), line);
    }
    check_file(text, MR_INVALID_ARGUMENT, "more than 32 levels deep");
    /* Each of 20 files includes the next one several times: without a limit of the total that would take forever. */
    for (int i = 0; i < 20; i++) {
        char line[2048];
        FILE *file = fopen(test_path("file-%d", i), "w");
        snprintf(line, sizeof line, "--flagfile=%s\n", test_path("file-%d", i + 1));
        for (int j = 0; j < 8; j++) CHECK(fputs(line, file) >= 0);
        CHECK_EQ(fclose(file), 0);
    }
    write_text(test_path("file-20"), "--steps=3\n");
    check_file(text, MR_RESOURCE_EXHAUSTED, "the files of flags have more than 1048576 bytes in all");
    FILE *file = fopen(test_path("file"), "w");
    for (int i = 0; i < (1 << 20) + 1; i++) fputc('\n', file);
    CHECK_EQ(fclose(file), 0);
    check_file(nullptr, MR_RESOURCE_EXHAUSTED, "larger than");
    file = fopen(test_path("file"), "w");
    CHECK(fwrite("--steps=3\0--steps=4", 1, 19, file) == 19 && fclose(file) == 0);
    check_file(nullptr, MR_INVALID_ARGUMENT, "null byte");
}

/* ---- Mistakes of the program ---- */

static void check_definition(mr_flags *flags, const char *message)
{
    mr_error error = {0};
    char *text = nullptr;
    const mr_status status = PARSE(flags, &error, "--help");
    CHECK(status == MR_INVALID_ARGUMENT || status == MR_ALREADY_EXISTS);
    CHECK_STR(error.message, message);
    CHECK(mr_flags_into_string(flags, &text, &error) == status && text == nullptr);
    CHECK(mr_flags_set(flags, "x", "1", &error) == status);
    mr_flags_free(flags);
}

TEST(definitions_of_flags_are_checked)
{
    mr_error error = {0};
    int64_t x = 3;
    double d = NAN;
    bool b = false;
    const char *s = "x";
    mr_names list = {0};
#define DEFINED(message, ...)                                                                                          \
    do {                                                                                                               \
        mr_flags *f = mr_flags_new(nullptr);                                                                           \
        mr_flags_int(f, "x", &x, nullptr);                                                                             \
        __VA_ARGS__;                                                                                                   \
        check_definition(f, message);                                                                                  \
    } while (0)
    DEFINED("flag --x is defined twice", mr_flags_bool(f, "x", &b, nullptr));
    DEFINED("flag --x is defined twice", mr_flags_bool(f, "b", &b, nullptr, .short_name = "x"));
    DEFINED("flag --b is defined twice", mr_flags_bool(f, "b", &b, nullptr, .short_name = "b"));
    DEFINED("flag --help is reserved", mr_flags_bool(f, "help", &b, nullptr));
    DEFINED("flag --helpfull is reserved", mr_flags_bool(f, "b", &b, nullptr, .short_name = "helpfull"));
    DEFINED("flag --undefok is reserved", mr_flags_bool(f, "undefok", &b, nullptr));
    DEFINED("a flag cannot have the name \"\"", mr_flags_bool(f, "", &b, nullptr));
    DEFINED("a flag cannot have the name \"(null)\"", mr_flags_bool(f, nullptr, &b, nullptr));
    DEFINED("a flag cannot have the name \"-b\"", mr_flags_bool(f, "-b", &b, nullptr));
    DEFINED("a flag cannot have the name \"a=b\"", mr_flags_bool(f, "a=b", &b, nullptr));
    DEFINED("flag --b cannot have the short name \" \"", mr_flags_bool(f, "b", &b, nullptr, .short_name = " "));
    DEFINED("flag --b: value is null", mr_flags_bool(f, "b", nullptr, nullptr));
    DEFINED("flag --b: bounds have no effect on a flag of this type", mr_flags_bool(f, "b", &b, "", .lower_bound = 0));
    DEFINED("flag --y: case_insensitive has no effect on a flag of this type",
            mr_flags_int(f, "y", &x, "", .case_insensitive = true));
    DEFINED("flag --y: the lower bound 3 is not at most the upper bound 2",
            mr_flags_int(f, "y", &x, "", .lower_bound = 3, .upper_bound = 2));
    DEFINED("flag --y: its default is not an integer >= 4", mr_flags_int(f, "y", &x, "", .lower_bound = 4));
    DEFINED("flag --d: its default is not a number <= 4", mr_flags_float(f, "d", &d, "", .upper_bound = 4));
    DEFINED("flag --s: its default is not one of a|b", mr_flags_enum(f, "s", &s, MR_NAMES("a", "b"), ""));
    DEFINED("flag --s: its values are not a list of texts", mr_flags_enum(f, "s", &s, (mr_names){0}, ""));
    DEFINED("flag --s: its values are not a list of texts", mr_flags_multi_enum(f, "s", &list, MR_NAMES(nullptr), ""));
    DEFINED("flag --s: its values are not a list of texts",
            mr_flags_enum(f, "s", &s, ((mr_names){(const char *[]){"a"}, -1}), ""));
    DEFINED("flag --l: its default is not a list of values",
            mr_flags_list(f, "l", (&(mr_names){(const char *[]){"a", nullptr}, 2}), ""));
    DEFINED("flag --l: its default is not a list of values", mr_flags_list(f, "l", (&(mr_names){nullptr, 1}), ""));
    DEFINED("flag --l: its default is not a list of values",
            mr_flags_multi_string(f, "l", (&(mr_names){(const char *[]){"a"}, -1}), ""));
    DEFINED("flag --l: its default is not a list of values",
            mr_flags_multi_enum(f, "l", (&(mr_names){(const char *[]){nullptr}, 1}), MR_NAMES("a"), ""));
    DEFINED("flag --l: its default is not a list of values", mr_flags_multi_int(f, "l", (&(mr_ints){nullptr, 3}), ""));
    DEFINED("flag --l: its default is not a list of values",
            mr_flags_multi_int(f, "l", (&(mr_ints){nullptr, -1}), "", .required = true));
    DEFINED("flag --l: its default is not a list of values",
            mr_flags_multi_float(f, "l", (&(mr_doubles){nullptr, 3}), ""));
    DEFINED("mr_flags_mutually_exclusive: names are not a list of at least 2",
            mr_flags_mutually_exclusive(f, MR_NAMES("x"), false));
    DEFINED("mr_flags_mutually_exclusive: there is no flag --y",
            mr_flags_mutually_exclusive(f, MR_NAMES("x", "y"), false));
    DEFINED("mr_flags_mutually_exclusive: of --x and --b, only one is a boolean flag", mr_flags_bool(f, "b", &b, ""),
            mr_flags_mutually_exclusive(f, MR_NAMES("x", "b"), false));
    DEFINED("mr_flags_validator: check is null", mr_flags_validator(f, nullptr, nullptr));

    mr_flags *flags = mr_flags_new(nullptr);
    CHECK_STATUS(mr_flags_parse(nullptr, 0, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_parse(flags, 0, (char *[]){nullptr}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_parse(flags, 1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_parse(flags, 2, (char *[]){"a", nullptr}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_into_string(flags, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_append_to_file(flags, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_flags_append_to_file(nullptr, "flags", &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "mr_flags_append_to_file");
    mr_flags_free(flags);
    mr_flags_free(nullptr);
    mr_flags_bool(nullptr, "b", &b, "");
    mr_flags_mutually_exclusive(nullptr, MR_NAMES("x", "y"), false);
    mr_flags_validator(nullptr, nullptr, nullptr);
    CHECK(mr_flags_help(nullptr) == nullptr && mr_flags_count(nullptr, "x") == -1);
    CHECK_EQ(mr_flags_arguments(nullptr).count, 0);
}

/* ---- No memory ---- */

static mr_status use_flags(mr_error *error)
{
    values v;
    char *text = nullptr;
    mr_flags *flags = define(&v);
    if (flags == nullptr) return MR_RESOURCE_EXHAUSTED;
    mr_flags_mutually_exclusive(flags, MR_NAMES("name", "words"), false);
    mr_status status = PARSE(flags, error, "a", "--steps=3", "--many=x", "--many=y", "--words=a,\"b\"", "--undefok=x",
                             "--x", "--numbers=1", "--rate=0.5");
    if (status == MR_OK) status = mr_flags_into_string(flags, &text, error);
    if (status == MR_OK) status = PARSE(flags, error, "--helpfull");
    if (status == MR_OK) CHECK(mr_flags_help(flags) != nullptr && v.many.count == 2 && v.steps == 3);
    free(text);
    mr_flags_free(flags);
    return status;
}

TEST(flags_survive_failed_allocations)
{
    mr_error error = {0};
    if (test_allocations() < 0 || test_is_sanitized()) test_skip("allocations are not counted here");
    const long long before = test_allocations();
    CHECK_OK(use_flags(&error));
    const long long count = test_allocations() - before;
    CHECK(count > 0);
    for (long long n = 1; n <= count; n++) {
        test_fail_allocation(test_allocations() + n);
        const mr_status status = use_flags(&error);
        test_fail_allocation(0);
        CHECK(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
    }
}
