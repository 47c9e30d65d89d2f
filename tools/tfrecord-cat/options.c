/* The command line: at most one command, settings, files. */
#include "common/output.h"
#include "common/pool.h"
#include "tfrecord-cat/cat.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(options, field)

/* Commands that process records one by one, displayed or rewritten; "show" is the command without an option. */
#define SHOWING "show json csv"
#define REWRITING "merge split shuffle"
#define WALKING SHOWING " count schema stats extract html " REWRITING

const setting settings[] = {
    {"record", 'r', GROUP_SELECT, "N", SETTING_NUMBER, AT(record), "only record N, counted from 0 across all files",
     "A file with an index (see --index) is not scanned. A damaged region counts as one record.", .of = WALKING,
     .is_common = true},
    {"range", 0, GROUP_SELECT, "A:B", SETTING_TEXT, AT(range), "only records A to B - 1, counted like --record",
     "A and B are optional: \":100\" selects the first 100 records. In a file with an index, reading starts at A. A"
     " damaged region counts as one record. B may be beyond the last record, A may not; A:A selects nothing.",
     .of = WALKING, .is_common = true},
    {"where", 'w', GROUP_SELECT, "EXPR", SETTING_TEXT, AT(where_text), "only records that match EXPR; see --help where",
     "    image/class/label == 3 && image/width > 500\n"
     "    image/class/text =~ '^(cat|dog)$' || !exists(split)\n"
     "    image/object/bbox/xmin + 0.1 < image/object/bbox/xmax\n"
     "    bytes(image/encoded) > 100000 && size(ids) >= 2\n"
     "\n"
     "Comparisons are == != < <= > >=, =~ for a regular expression (extended, as in grep -E) and contains for a "
     "substring; they are combined with &&, || and !, and grouped with parentheses. Values are features, numbers, "
     "texts in \"…\" or '…' (with \\n"
     " \\t \\xff), and arithmetic with + - * / %.\n"
     "\n"
     "A feature is written by its name; if the name has characters other than letters, digits and _/.:@#$- it is "
     "written feature(\"a name\"). Put spaces around - and / in arithmetic.\n"
     "\n"
     "A comparison with a list is true if it is true for any of its values: ids == 7. Two lists are compared "
     "value by value, at the same index. !(ids == 7) selects the records without 7. If a feature is missing or "
     "empty, or a text is compared with a number, every comparison is false, including !=.\n"
     "\n"
     "In directories of tensorflow_datasets, classes can be written by name: label == 'cat', label =~ '^b'.\n"
     "\n"
     "exists(name) is true if the record has the feature, size(name) is the number of its values, steps(name) the "
     "number of steps of a feature list, bytes(name) the length of a text. A feature list stands for the values "
     "of all its steps.\n"
     "\n"
     "Limits: 16,384 characters, 1,000 operands and operators; =~ searches the first 65,536 bytes of a value.",
     .of = WALKING, .is_common = true},
    {"sample", 0, GROUP_SELECT, "N", SETTING_NUMBER, AT(sample), "N records chosen at random, in file order",
     "The choice depends only on --seed and the record numbers, so it is the same with and without an index, and "
     "from a pipe.\n"
     "\n"
     "Memory: 16 bytes for each record of the sample; for pipes, the records themselves.",
     .of = WALKING, .is_common = true},
    {"seed", 0, GROUP_SELECT, "S", SETTING_NUMBER, AT(seed), "seed of --sample and --shuffle (default: 0)", nullptr,
     .of = WALKING},
    {"head", 'n', GROUP_SELECT, "N", SETTING_NUMBER, AT(head), "at most N of the selected records", nullptr,
     .of = WALKING " dump", .is_common = true},

    {"features", 'f', GROUP_FORM, "A,B*", SETTING_TEXT, AT(features),
     "only these features; * and ? are wildcards, ! excludes",
     "\"*\" matches any characters, including \"/\"; \"?\" matches one. A pattern after \"!\" excludes what it "
     "matches: '!debug/*' selects all other features, 'image/*,!image/encoded' all of image/ except one. A "
     "backslash before *, ?, ! or a comma makes it literal.\n"
     "\n"
     "--merge, --split and --shuffle write records with only these features, whose bytes are unchanged. A pattern "
     "that matches no feature of any record is then an error, and so is a record that is not an Example.",
     .of = SHOWING " dump schema stats extract html " REWRITING, .is_common = true},
    {"rename", 0, GROUP_REWRITE, "OLD=NEW", SETTING_TEXT, AT(rename), "rename a feature; A=B,C=D for several",
     "Applies to features of Examples and contexts, and to feature lists. Two features of a record cannot get the "
     "same name. A backslash before =, a comma or a backslash makes it literal. --features uses the old names.",
     .of = REWRITING},
    {"crlf", 0, GROUP_FORM, nullptr, SETTING_FLAG, AT(is_crlf), "--csv: end lines with CR LF, as in RFC 4180", nullptr,
     .of = "csv"},
    {"bytes", 0, GROUP_FORM, "text|hex|base64", SETTING_CHOICE, AT(bytes_form), "encoding of bytes (default: text)",
     "With text, UTF-8 is printed as text; other bytes are described (\"JPEG 640×480\") in blocks and are base64 in "
     "JSON and CSV.",
     .of = SHOWING, .is_common = true},
    {"spec", 0, GROUP_FORM, "both|c|python", SETTING_CHOICE, AT(spec),
     "--schema: print one specification, without the table", nullptr, .of = "schema"},
    {"decode", 0, GROUP_FORM, nullptr, SETTING_FLAG, AT(decodes),
     "--verify: decode images completely, not only headers", nullptr, .of = "verify"},
    {"pretty", 0, GROUP_FORM, nullptr, SETTING_FLAG, AT(is_pretty), "indent the output of --json", nullptr,
     .of = "json stats"},
    {"svg", 0, GROUP_FORM, "FILE", SETTING_TEXT, AT(svg), "--stats: also write charts to one SVG file",
     "It replaces an earlier SVG of --stats; any other existing file only with --force.", .of = "stats"},
    {"jobs", 0, GROUP_FORM, "N", SETTING_NUMBER, AT(jobs), "number of threads (default: one for each processor)",
     nullptr, .of = "json count stats verify salvage index repair-index extract html " REWRITING, .is_common = true},
    {"raw", 0, GROUP_FORM, nullptr, SETTING_FLAG, AT(is_raw), "records are plain bytes, not Examples", nullptr,
     .of = "show json stats verify extract html", .is_common = true},

    {"out", 'o', GROUP_REWRITE, "FILE", SETTING_TEXT, AT(out), "output file; - is the standard output",
     "Shards are named after it: \"new.tfrecord\" becomes new-00000-of-00004.tfrecord and so on. A file appears "
     "when it is complete; no input is ever replaced.",
     .of = REWRITING, .is_common = true},
    {"compress", 0, GROUP_REWRITE, "none|gzip|zlib|seekable", SETTING_CHOICE, AT(compress),
     "compression of the output (default: none)",
     "seekable is GZIP that any reader accepts; with its index, records are read by number and by several threads.",
     .of = REWRITING},
    {"shards", 0, GROUP_REWRITE, "N", SETTING_NUMBER, AT(shards), "write N files of nearly the same size", nullptr,
     .of = "merge shuffle"},
    {"shard-size", 0, GROUP_REWRITE, "SIZE", SETTING_TEXT, AT(shard_size), "write files of about SIZE, such as 200M",
     "Measured before compression; K, M, G and T are powers of 1024.", .of = "merge shuffle"},
    {"memory", 0, GROUP_REWRITE, "SIZE", SETTING_TEXT, AT(memory),
     "memory limit of --shuffle and --diff (default: 512M)", nullptr, .of = "shuffle diff"},
    {"force", 0, GROUP_REWRITE, nullptr, SETTING_FLAG, AT(is_forced), "replace existing output files", nullptr,
     .of = REWRITING " salvage extract html stats"},
    {"unordered", 0, GROUP_CHECK, nullptr, SETTING_FLAG, AT(is_unordered), "--diff: ignore the order of records",
     nullptr, .of = "diff"},
    {"dali", 0, GROUP_CHECK, nullptr, SETTING_FLAG, AT(to_dali), "--index: also write DALI's format, FILE.idx", nullptr,
     .of = "index"},
    {"from-dali", 0, GROUP_CHECK, nullptr, SETTING_FLAG, AT(from_dali), "--index: import FILE.idx, written by DALI",
     "It is checked against every header of the file before it is used.", .of = "index"},

    {}};

/* Codes that getopt returns for table rows. */
enum { COMMAND_FIRST = 1'000, SETTING_FIRST = 2'000, OPTION_VERSION = 3'000, OPTIONS_MAX = 128 };

int usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tfrecord-cat: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\ntry 'tfrecord-cat --help'\n", stderr);
    va_end(args);
    return 2;
}

bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    /* The largest number means "not given". */
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *number != UINT64_MAX;
}

int32_t thread_count(const options *options)
{
    return options->jobs != UINT64_MAX ? (int32_t)options->jobs : processor_count();
}

/* Converts both tables to getopt's form; shorts has room for three characters a row. */
static void make_options(struct option *longs, char *shorts)
{
    size_t count = 0;
    for (int i = 0; commands[i].run; i++) {
        if (!commands[i].name) continue;
        assert(count < OPTIONS_MAX);
        longs[count++] = (struct option){commands[i].name, commands[i].argument ? required_argument : no_argument,
                                         nullptr, COMMAND_FIRST + i};
        if (commands[i].letter) *shorts++ = commands[i].letter;
        if (commands[i].letter && commands[i].argument) *shorts++ = ':';
    }
    for (int i = 0; settings[i].name; i++) {
        assert(count < OPTIONS_MAX);
        longs[count++] = (struct option){settings[i].name, settings[i].argument ? required_argument : no_argument,
                                         nullptr, SETTING_FIRST + i};
        if (settings[i].letter) *shorts++ = settings[i].letter;
        if (settings[i].letter && settings[i].argument) *shorts++ = ':';
    }
    longs[count++] = (struct option){"help", optional_argument, nullptr, 'h'};
    longs[count++] = (struct option){"version", no_argument, nullptr, OPTION_VERSION};
    longs[count] = (struct option){};
    *shorts++ = 'h';
    *shorts = '\0';
}

/* The row of a short option, coded as getopt returns its long name. */
static int row_of(int option)
{
    for (int i = 0; commands[i].run; i++)
        if (commands[i].letter == option) return COMMAND_FIRST + i;
    for (int i = 0; settings[i].name; i++)
        if (settings[i].letter == option) return SETTING_FIRST + i;
    return option;
}

/* Finds the index of a word in "a|b|c". */
static bool parse_choice(const char *choices, const char *text, int *choice)
{
    size_t length = strlen(text);
    *choice = 0;
    for (const char *at = choices; at; at = strchr(at, '|'), ++*choice) {
        if (*at == '|') at++;
        size_t size = strcspn(at, "|");
        if (size == length && memcmp(at, text, length) == 0) return true;
    }
    return false;
}

static bool take_setting(const setting *setting, const char *text, options *options)
{
    void *field = (char *)options + setting->offset;
    switch (setting->kind) {
    case SETTING_FLAG:
        *(bool *)field = true;
        return true;
    case SETTING_TEXT:
        *(const char **)field = text;
        return true;
    case SETTING_NUMBER:
        return parse_number(text, field);
    case SETTING_CHOICE:
        return parse_choice(setting->argument, text, field);
    }
    return false;
}

/* Parses "A:B"; both are optional. */
static bool parse_range(options *options)
{
    char begin[32];
    const char *colon = strchr(options->range, ':');
    size_t length = colon ? (size_t)(colon - options->range) : sizeof begin;
    if (length >= sizeof begin) return false;
    memcpy(begin, options->range, length);
    begin[length] = '\0';
    return (!*begin || parse_number(begin, &options->range_begin)) &&
           (!colon[1] || parse_number(colon + 1, &options->range_end));
}

/* Prints the expression with a caret below the error, shortened to fit a narrow terminal. */
static int print_where_error(const char *text, const where_error *error)
{
    enum { BEFORE = 30, SHOWN = 54 };
    size_t begin = error->at > BEFORE ? error->at - BEFORE : 0;
    while (begin > 0 && ((unsigned char)text[begin] & 0xc0) == 0x80) begin--;
    int caret = text_columns((mr_string){text + begin, error->at - begin}) + (begin > 0);
    fprintf(stderr, "tfrecord-cat: --where: %s\n  %s", error->message, begin > 0 ? "…" : "");
    (void)text_print(stderr, mr_string_from(text + begin), SHOWN);
    fprintf(stderr, "\n  %*s^\nsee 'tfrecord-cat --help where'\n", caret, "");
    return 2;
}

/* ---- Options without effect ---- */

bool list_contains(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, length) == 0 && (at[length] == ' ' || !at[length])) return true;
    }
    return false;
}

static const char *command_name(const command *command)
{
    return command->name ? command->name : "show";
}

/* "showing records, --json and --csv" */
static void list_commands(const char *of, char *text, size_t size)
{
    size_t used = 0;
    for (const char *at = of, *end; *at; at = end + (*end == ' ')) {
        end = at + strcspn(at, " ");
        const char *before = at == of ? "" : *end ? ", " : " and ";
        bool is_show = end - at == 4 && memcmp(at, "show", 4) == 0;
        int wrote = is_show ? snprintf(text + used, size - used, "%sshowing records", before)
                            : snprintf(text + used, size - used, "%s--%.*s", before, (int)(end - at), at);
        assert(wrote > 0 && (size_t)wrote < size - used);
        used += (size_t)wrote;
    }
}

static bool is_given(const options *options, const void *field)
{
    size_t offset = (size_t)((const char *)field - (const char *)options);
    for (int i = 0; settings[i].name; i++)
        if (settings[i].offset == offset) return options->given >> i & 1;
    assert(false && "not a setting");
    return false;
}

/* Rejects options that require or exclude another one; returns 0 or the exit code. */
static int check_pairs(const options *options)
{
    bool has_sample = options->sample != UINT64_MAX;
    if (is_given(options, &options->seed) && !has_sample && options->command->run != shuffle_run)
        return usage_error("--seed is for --sample and --shuffle");
    if (options->is_pretty && options->command->run == stats_run && !options->is_json)
        return usage_error("--pretty is for --json");
    if (options->is_forced && options->command->run == stats_run && !options->svg)
        return usage_error("--force is for --svg with --stats");
    if (options->memory && options->command->run == diff_run && !options->is_unordered)
        return usage_error("--memory is for --unordered with --diff");
    if (options->shards != UINT64_MAX && options->shard_size)
        return usage_error("--shards and --shard-size: only one of them");
    if (options->features && options->is_raw) return usage_error("--features and --raw: plain bytes have no features");
    if (options->decodes && options->is_raw) return usage_error("--decode and --raw: plain bytes have no images");
    if (options->is_forced && options->out && strcmp(options->out, "-") == 0)
        return usage_error("--force and --out -: the standard output replaces no file");
    return 0;
}

/* Rejects options that have no effect on the command; returns 0 or the exit code. */
static int check_effects(const options *options)
{
    for (int i = 0; settings[i].name; i++) {
        char text[400];
        if (!(options->given >> i & 1) || list_contains(settings[i].of, command_name(options->command))) continue;
        list_commands(settings[i].of, text, sizeof text);
        if (!options->command->name)
            return usage_error("--%s is for %s, not for showing records", settings[i].name, text);
        return usage_error("--%s is for %s, not for --%s", settings[i].name, text, options->command->name);
    }
    return check_pairs(options);
}

/* Derives values from several settings; returns 0 or the exit code. */
static int settle(options *options)
{
    options->range_end = UINT64_MAX;
    if (options->seed == UINT64_MAX) options->seed = 0;
    if (options->range && options->record != UINT64_MAX) return usage_error("--record and --range: only one of them");
    if (options->range && !parse_range(options)) return usage_error("--range: \"%s\" is not A:B", options->range);
    if (options->range_begin > options->range_end)
        return usage_error("--range: %s ends before it begins", options->range);
    if (options->record != UINT64_MAX) {
        options->range_begin = options->record;
        options->range_end = options->record + 1;
    }
    if (options->jobs == 0 || (options->jobs != UINT64_MAX && options->jobs > 1024))
        return usage_error("--jobs: must be from 1 to 1024");
    int exit_code = check_effects(options);
    if (exit_code != 0) return exit_code;
    where_error error;
    if (options->where_text && !(options->where = where_parse(options->where_text, &error)))
        return print_where_error(options->where_text, &error);
    return 0;
}

static bool is_json(const command *command)
{
    return command->run == json_run;
}

/* Whether one of two commands is --json used as the output form of the other. */
static bool is_json_form(const command *a, const command *b)
{
    return (is_json(a) && b->takes_json) || (is_json(b) && a->takes_json);
}

/* Parses the command, settings and help; returns 0 to continue, else the exit code plus one. */
static int parse_options(int argc, char **argv, options *options)
{
    struct option longs[OPTIONS_MAX + 3];
    char shorts[3 * OPTIONS_MAX];
    make_options(longs, shorts);
    int option;
    while ((option = getopt_long(argc, argv, shorts, longs, nullptr)) != -1) {
        if (option == '?') {
            fputs("try 'tfrecord-cat --help'\n", stderr);
            return 2 + 1;
        }
        if (option == 'h') {
            if (!optarg && optind < argc) optarg = argv[optind]; /* --help where, --help --where */
            return help_print(stdout, optarg) + 1;
        }
        if (option == OPTION_VERSION) {
            output_version("tfrecord-cat");
            return 0 + 1;
        }
        option = row_of(option);
        if (option >= SETTING_FIRST) {
            const setting *setting = &settings[option - SETTING_FIRST];
            uint64_t bit = UINT64_C(1) << (option - SETTING_FIRST);
            if (setting->kind != SETTING_FLAG && (options->given & bit))
                return usage_error("--%s is given twice", setting->name) + 1;
            options->given |= bit;
            if (setting->argument && !*optarg) return usage_error("--%s: its value is empty", setting->name) + 1;
            if (!take_setting(setting, optarg, options))
                return usage_error("--%s: \"%s\" is not %s", setting->name, optarg,
                                   setting->kind == SETTING_CHOICE ? setting->argument : "a number") +
                       1;
            continue;
        }
        const command *command = &commands[option - COMMAND_FIRST];
        bool is_form = options->command && is_json_form(options->command, command);
        options->is_json |= is_form;
        if (is_form && is_json(command)) continue;
        if (options->command && options->command != command && !is_form)
            return usage_error("--%s and --%s: only one of them", options->command->name, command->name) + 1;
        if (command->argument && options->command == command)
            return usage_error("--%s is given twice", command->name) + 1;
        if (command->argument && !*optarg) return usage_error("--%s: its value is empty", command->name) + 1;
        options->command = command;
        options->argument = optarg;
    }
    return 0;
}

static void report_fault(const mr_error *error)
{
    (void)print_error(error);
}

bool options_parse(int argc, char **argv, options *options, int *exit_code)
{
    *options = (struct options){};
    for (int i = 0; settings[i].name; i++)
        if (settings[i].kind == SETTING_NUMBER) *(uint64_t *)((char *)options + settings[i].offset) = UINT64_MAX;
    int done = parse_options(argc, argv, options);
    if (!options->command)
        for (options->command = commands; options->command->name;) options->command++;
    if (done == 0 && (done = settle(options)) != 0) done++;
    if (done == 0 && optind == argc && isatty(STDIN_FILENO)) done = (help_print(stderr, nullptr), 2 + 1);
    if (done == 0 && optind == argc && !inputs_add(options, "-", true)) done = usage_error("no memory") + 1;
    for (int i = optind; i < argc && done == 0; i++)
        if (!inputs_add(options, argv[i], argc - optind == 1)) done = usage_error("no memory") + 1;
    mr_error error = {0};
    bool has_labels = options->command->knows_labels || (options->where && where_has_text(options->where));
    if (done == 0 && has_labels && !options->is_raw &&
        tfds_set_open(&options->tfds, options->paths, options->path_count, report_fault, &error) != MR_OK)
        done = print_error(&error) + 1;
    options->has_missing |= options->tfds.has_fault;
    if (done == 0) return true;
    options_deinit(options);
    *exit_code = done - 1;
    return false;
}

void options_deinit(options *options)
{
    where_free(options->where);
    tfds_set_free(&options->tfds);
    mr_paths_free(options->paths, options->path_count);
    free(options->path_arguments);
}
