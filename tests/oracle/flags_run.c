/* Parses command lines for flags_oracle.py. Each line of standard input is a case: a letter for the options of parsing
 * (p: none, k: known_only, s: stop_at_first_argument, r: with the rules, l: with lists that are required) and the
 * arguments, separated by \x1f. Prints a line for each: "error", or the arguments that are not flags and the flags,
 * separated by \x1f. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 100 };

typedef struct values {
    const char *name, *other, *color;
    bool verbose, quiet;
    int64_t steps;
    double rate;
    mr_names list, many, shades, wanted, several;
    mr_ints numbers;
    mr_doubles rates;
} values;

static mr_flags *define(values *v, char mode)
{
    const bool has_rules = mode == 'r';
    static const char *const usual[] = {"one", "two"};
    mr_flags *flags = mr_flags_new(nullptr);
    *v = (values){.color = "red", .quiet = true, .steps = 7, .rate = 0.1, .list = {usual, 2}};
    mr_flags_string(flags, "name", &v->name, "a name", .short_name = "n", .required = has_rules);
    mr_flags_string(flags, "other", &v->other, "another name");
    mr_flags_enum(flags, "color", &v->color, MR_NAMES("red", "Green", "blue"), "a color", .case_insensitive = true);
    mr_flags_bool(flags, "verbose", &v->verbose, "print more", .short_name = "v");
    mr_flags_bool(flags, "quiet", &v->quiet, "print less");
    mr_flags_int(flags, "steps", &v->steps, "steps", .lower_bound = 1, .upper_bound = 1000);
    mr_flags_float(flags, "rate", &v->rate, "rate");
    mr_flags_list(flags, "list", &v->list, "a list");
    mr_flags_multi_string(flags, "many", &v->many, "texts");
    mr_flags_multi_int(flags, "numbers", &v->numbers, "numbers");
    mr_flags_multi_float(flags, "rates", &v->rates, "rates");
    mr_flags_multi_enum(flags, "shades", &v->shades, MR_NAMES("dark", "light"), "shades");
    if (mode == 'l') mr_flags_list(flags, "wanted", &v->wanted, "a list", .required = true);
    if (mode == 'l') mr_flags_multi_string(flags, "several", &v->several, "texts", .required = true);
    if (mode == 'l') mr_flags_mutually_exclusive(flags, MR_NAMES("wanted", "name"), false);
    if (has_rules) mr_flags_mutually_exclusive(flags, MR_NAMES("many", "numbers", "other"), true);
    if (has_rules) mr_flags_mutually_exclusive(flags, MR_NAMES("verbose", "quiet"), false);
    return flags;
}

static void print(const mr_flags *flags)
{
    mr_error error = {0};
    char *text = nullptr;
    const mr_names rest = mr_flags_arguments(flags);
    if (mr_flags_into_string(flags, &text, &error) != MR_OK) {
        printf("error: %s\n", error.message);
        return;
    }
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\n') *at = '\x1f';
    for (int32_t i = 0; i < rest.count; i++) printf("%s\x1f", rest.items[i]);
    printf("|\x1f%s\n", text);
    free(text);
}

int main(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin) != nullptr) {
        char *arguments[ARGUMENTS_MAX] = {"program"}, *rest = line, *part;
        int count = 1;
        values v;
        mr_error error = {0};
        line[strcspn(line, "\n")] = '\0';
        const char *mode = strsep(&rest, "\x1f");
        while ((part = strsep(&rest, "\x1f")) != nullptr && count < ARGUMENTS_MAX) arguments[count++] = part;
        mr_flags *flags = define(&v, *mode);
        const mr_flags_parse_options *options =
            MR_OPTIONS(mr_flags_parse_options, .known_only = *mode == 'k', .stop_at_first_argument = *mode == 's');
        if (mr_flags_parse_with(flags, count, arguments, options, &error) != MR_OK)
            printf("error: %s\n", error.message);
        else
            print(flags);
        mr_flags_free(flags);
    }
    return 0;
}
