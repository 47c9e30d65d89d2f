/* The command line of tfrecord-make. */
#include "common/output.h"
#include "tfrecord-make/make.h"
#include "tfrecord-make/options_table.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int32_t QUALITY_USUAL = 90;
static constexpr int32_t CROP_USUAL = 224;

static bool usage_error(int *exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool print_no_memory(int *exit_code)
{
    fputs("tfrecord-make: out of memory while parsing the options\n", stderr);
    *exit_code = 1;
    return false;
}

static bool usage_error(int *exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tfrecord-make: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\nTry 'tfrecord-make --help'.\n", stderr);
    va_end(args);
    *exit_code = 2;
    return false;
}

/* Parses a whole number from 0 to limit, with an optional suffix K, M, G or T (powers of 1024) if units are allowed. */
static bool parse_number(const char *text, bool units, uint64_t limit, uint64_t *number)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0) return false;
    if (units && *end) {
        const char *letters = "KMGT", *letter = strchr(letters, *end >= 'a' ? *end - 'a' + 'A' : *end);
        if (!letter) return false;
        unsigned shift = 10 * (unsigned)(letter - letters + 1);
        if (value > UINT64_MAX >> shift) return false;
        value <<= shift;
        end++;
        if (strcmp(end, "iB") == 0)
            end += 2;
        else if (strcmp(end, "B") == 0)
            end++;
    }
    *number = value;
    return *end == '\0' && value <= limit;
}

/* Parses "train=0.9,validation=0.1". */
static bool parse_splits(char *text, options *options, int *exit_code)
{
    double sum = 0;
    options->split_count = 0;
    for (char *part; (part = strsep(&text, ","));) {
        char *equals = strchr(part, '='), *end = nullptr;
        if (options->split_count == SPLITS_MAX)
            return usage_error(exit_code, "--split: more than %d splits", SPLITS_MAX);
        if (equals) *equals = '\0';
        size_t length = strlen(part);
        if (!source_is_split_name((mr_string){part, length}))
            return usage_error(exit_code, "--split: \"%s\" is not a valid name for a split", part);
        double fraction = equals ? strtod(equals + 1, &end) : 1;
        if (equals && (end == equals + 1 || *end || !isfinite(fraction) || fraction <= 0 || fraction > 1))
            return usage_error(exit_code, "--split: \"%s\" is not a fraction between 0 and 1", equals + 1);
        for (int i = 0; i < options->split_count; i++)
            if (strcmp(options->splits[i].name, part) == 0)
                return usage_error(exit_code, "--split: \"%s\" is given twice", part);
        memcpy(options->splits[options->split_count].name, part, length + 1);
        options->splits[options->split_count++].fraction = fraction;
        sum += fraction;
    }
    if (options->split_count == 0 || fabs(sum - 1) > 1e-6)
        return usage_error(exit_code, "--split: the fractions add up to %g, not to 1", sum);
    return true;
}

/* The last name in a path: "photos" of "../photos/", "list" of "list.csv.gz". Owned by the caller. */
static char *input_name(const char *input)
{
    static const char endings[] = ".csv .tsv .jsonl .ndjson .json .npy .npz .tar .tgz";
    char *real = realpath(input, nullptr);
    const char *slash = strrchr(real ? real : input, '/');
    const char *name = slash ? slash + 1 : real ? real : input;
    char *copy = strdup(*name ? name : "images");
    free(real);
    if (copy && source_has_ending(copy, ".gz")) copy[strlen(copy) - 3] = '\0';
    if (copy && source_has_ending(copy, endings)) *strrchr(copy, '.') = '\0';
    return copy;
}

/* Parses one of several words. */
static bool parse_word(const char *option, const char *value, const char *const *words, int *which, int *exit_code)
{
    char list[128] = "";
    size_t used = 0;
    for (*which = 0; words[*which]; ++*which) {
        if (strcmp(words[*which], value) == 0) return true;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", *which > 0 ? ", " : "", words[*which]);
    }
    return usage_error(exit_code, "%s: \"%s\" is not one of %s", option, value, list);
}

static bool parse_worker(const char *value, options *options, int *exit_code)
{
    int used = 0;
    if (sscanf(value, "%" SCNd32 "/%" SCNd32 "%n", &options->worker, &options->worker_count, &used) == 2 &&
        !value[used] && options->worker >= 1 && options->worker <= options->worker_count &&
        options->worker_count <= 100'000)
        return true;
    return usage_error(exit_code, "--worker: \"%s\" is not of the form I/N, such as 1/8 … 8/8", value);
}

static bool parse_on_error(const char *value, options *options, int *exit_code)
{
    static const char *const words[] = {"stop", "skip", nullptr};
    int which;
    if (!parse_word("--on-error", value, words, &which, exit_code)) return false;
    options->skip_bad = which == 1;
    return true;
}

static bool add_glob(const char *option, const char *glob, const char **globs, int *count, int *exit_code)
{
    if (!*glob) return usage_error(exit_code, "%s: the pattern is empty", option);
    if (*count == GLOBS_MAX) return usage_error(exit_code, "%s: more than %d patterns", option, GLOBS_MAX);
    globs[(*count)++] = glob;
    return true;
}

/* Options for the treatment of images. */
static bool parse_image_option(int option, options *options, int *exit_code)
{
    static const char *const encodings[] = {"keep", "jpeg", "png", nullptr}, *const duplicates[] = {"keep", "drop",
                                                                                                    "stop", "ignore",
                                                                                                    nullptr};
    treatment *treatment = &options->treatment;
    uint64_t number;
    int which;
    switch (option) {
    case OPTION_NO_CHECK:
        treatment->check = false;
        return true;
    case OPTION_SHORTER_SIDE:
        if (!parse_number(optarg, false, 65'000, &number) || number == 0)
            return usage_error(exit_code, "--shorter-side: \"%s\" is not a number of pixels from 1 to 65000", optarg);
        treatment->shorter_side = (int32_t)number;
        return true;
    case OPTION_QUALITY:
        if (!parse_number(optarg, false, 100, &number) || number == 0)
            return usage_error(exit_code, "--quality: \"%s\" is not a number from 1 to 100", optarg);
        treatment->quality = (int32_t)number;
        return true;
    case OPTION_UPRIGHT:
        return treatment->upright = true;
    case OPTION_CROP_READY:
        return treatment->crop_ready = true;
    case OPTION_ENCODE:
        if (!parse_word("--encode", optarg, encodings, &which, exit_code)) return false;
        treatment->encoding = (image_encoding)which;
        return true;
    case OPTION_CROP:
        if (!parse_number(optarg, false, 65'000, &number) || number == 0)
            return usage_error(exit_code, "--crop: \"%s\" is not a number of pixels from 1 to 65000", optarg);
        options->crop = (int32_t)number;
        return true;
    default:
        assert(option == OPTION_DUPLICATES);
        if (!parse_word("--duplicates", optarg, duplicates, &which, exit_code)) return false;
        options->duplicates = (enum duplicates)which;
        return true;
    }
}

/* Options for the output files. */
static bool parse_output_option(int option, options *options, int *exit_code)
{
    static const char *const compressions[] = {"none", "gzip", "zlib", "seekable", nullptr};
    uint64_t number;
    int which;
    switch (option) {
    case 'o':
        options->out = optarg;
        return *optarg || usage_error(exit_code, "--out: the name is empty");
    case 'n':
        if (!*optarg || strpbrk(optarg, "/\n") || strlen(optarg) > 150)
            return usage_error(exit_code, "--name: \"%s\" is not a valid prefix of a file name", optarg);
        free(options->name);
        options->name = strdup(optarg);
        return options->name || print_no_memory(exit_code);
    case 's':
        if (!parse_number(optarg, false, UINT64_MAX, &options->seed))
            return usage_error(exit_code, "--shuffle-seed: \"%s\" is not a whole number", optarg);
        return true;
    case OPTION_SPLIT:
        return parse_splits(optarg, options, exit_code);
    case OPTION_STRATIFY:
        return options->stratify = true;
    case OPTION_GROUP_BY:
        options->group_by = optarg;
        return *optarg ||
               usage_error(exit_code,
                           "--group-by: the key is empty; give the name of a feature or a pattern with parentheses");
    case OPTION_SHARDS:
        if (!parse_number(optarg, false, 99'999, &number) || number == 0)
            return usage_error(exit_code, "--shards: \"%s\" is not a number from 1 to 99999", optarg);
        options->shards = (int64_t)number;
        return true;
    case OPTION_SHARD_SIZE:
        if (!parse_number(optarg, true, (uint64_t)1 << 50, &number) || number == 0)
            return usage_error(exit_code, "--shard-size: \"%s\" is not a size such as 128M or 1G", optarg);
        options->shard_bytes = number;
        return true;
    default:
        assert(option == OPTION_COMPRESS);
        if (!parse_word("--compress", optarg, compressions, &which, exit_code)) return false;
        options->compression = (compression)which;
        return true;
    }
}

/* Options for the run. */
static bool parse_run_option(int option, options *options, int *exit_code)
{
    uint64_t number;
    switch (option) {
    case 'j':
        if (!parse_number(optarg, false, 1024, &number) || number == 0)
            return usage_error(exit_code, "--jobs: \"%s\" is not a number from 1 to 1024", optarg);
        options->jobs = (int)number;
        return true;
    case OPTION_ON_ERROR:
        return parse_on_error(optarg, options, exit_code);
    case OPTION_WORKER:
        return parse_worker(optarg, options, exit_code);
    case OPTION_FINISH:
        return options->finish = true;
    case OPTION_SURVEY:
        return options->survey = true;
    case OPTION_DRY_RUN:
        return options->dry_run = true;
    case OPTION_JSON:
        return options->json = true;
    case OPTION_SVG:
        options->svg = optarg;
        return *optarg || usage_error(exit_code, "--svg: the name is empty");
    default:
        assert(option == OPTION_WAIT);
        if (!parse_number(optarg, false, 1'000'000, &number) || number == 0)
            return usage_error(exit_code, "--wait: \"%s\" is not a number of seconds", optarg);
        options->wait_s = (int32_t)number;
        return true;
    }
}

static bool parse_option(const option_row *row, options *options, int *exit_code)
{
    const char *reason;
    if (row->code >= SOURCE_OPTION)
        return source_option(row->code, optarg, &options->in, &reason) || usage_error(exit_code, "%s", reason);
    if (row->code == OPTION_INCLUDE)
        return add_glob("--include", optarg, options->include, &options->include_count, exit_code);
    if (row->code == OPTION_EXCLUDE)
        return add_glob("--exclude", optarg, options->exclude, &options->exclude_count, exit_code);
    switch (row->topic) {
    case TOPIC_OUTPUT:
        return parse_output_option(row->code, options, exit_code);
    case TOPIC_IMAGES:
        return parse_image_option(row->code, options, exit_code);
    default:
        return row->code == OPTION_CROP ? parse_image_option(row->code, options, exit_code)
                                        : parse_run_option(row->code, options, exit_code);
    }
}

/* ---- Combinations of options ---- */

/* Checks what options_table.h cannot express: the value of one option may leave another without effect. */
static bool check_values(const options *options, int *exit_code)
{
    const treatment *treatment = &options->treatment;
    if (treatment->encoding == ENCODE_PNG && (treatment->quality > 0 || treatment->crop_ready))
        return usage_error(exit_code, "%s has no effect with --encode png, which leaves no JPEG",
                           treatment->quality > 0 ? "--quality" : "--crop-ready");
    if (options->split_count == 1 && (options->stratify || options->group_by))
        return usage_error(exit_code, "%s has no effect with a single split",
                           options->stratify ? "--stratify" : "--group-by");
    if (options->survey && (options->duplicates == DUPLICATES_DROP || options->duplicates == DUPLICATES_STOP))
        return usage_error(exit_code, "--survey supports only --duplicates keep and --duplicates ignore");
    return true;
}

/* ---- The command line ---- */

static void add_longs(struct option *longs, char *letters)
{
    for (int i = 0; i < OPTION_ROW_COUNT; i++) {
        const option_row *row = &option_rows[i];
        int argument = !row->argument ? no_argument : *row->argument == '[' ? optional_argument : required_argument;
        longs[i] = (struct option){row->name, argument, nullptr, row->code};
        if (!row->letter) continue;
        *letters++ = row->letter;
        if (argument == required_argument) *letters++ = ':';
    }
    longs[OPTION_ROW_COUNT] = (struct option){};
    *letters = '\0';
}

/* Handles --help [TOPIC] and --version. */
static bool print_about(int code, int argc, char **argv, int *exit_code)
{
    *exit_code = 0;
    if (code == 'V') {
        output_version("tfrecord-make");
        return false;
    }
    const char *topic = optarg ? optarg : optind < argc ? argv[optind] : nullptr;
    if (help_print(stdout, topic)) return false;
    return usage_error(exit_code, "no help topic \"%s\"", topic);
}

static bool finish_options(int argc, char **argv, options *options, int *exit_code)
{
    if (optind == argc) return usage_error(exit_code, "INPUT is missing: a directory of images, a list, …");
    if (optind + 1 < argc)
        return usage_error(exit_code, "more than one INPUT: \"%s\" and \"%s\"", argv[optind], argv[optind + 1]);
    mr_error error = {0};
    if (options_check_mode(options, &error) != MR_OK) return usage_error(exit_code, "%s", error.message);
    if (!options->out && !options->survey) return usage_error(exit_code, "--out DIR is missing");
    if (!check_values(options, exit_code)) return false;
    if (options->crop == 0) options->crop = CROP_USUAL;
    treatment *treatment = &options->treatment;
    treatment->encode_all = treatment->quality > 0 && treatment->shorter_side == 0 && !treatment->upright &&
                            treatment->encoding == ENCODE_KEEP;
    if (treatment->quality == 0) treatment->quality = QUALITY_USUAL;
    options->input = argv[optind];
    if (!options->name) options->name = input_name(options->input);
    return options->name || print_no_memory(exit_code);
}

bool options_parse(int argc, char **argv, options *options, int *exit_code)
{
    struct option longs[OPTION_ROW_COUNT + 1];
    char letters[2 * OPTION_ROW_COUNT + 1];
    *options = (struct options){.treatment.check = true,
                                .shard_bytes = (uint64_t)200 << 20,
                                .wait_s = 120,
                                .split_count = 2,
                                .splits = {{"train", 0.9}, {"validation", 0.1}}};
    add_longs(longs, letters);
    for (int code; (code = getopt_long(argc, argv, letters, longs, nullptr)) != -1;) {
        if (code == 'h' || code == 'V') return print_about(code, argc, argv, exit_code);
        int i = 0;
        while (i < OPTION_ROW_COUNT && option_rows[i].code != code) i++;
        if (i == OPTION_ROW_COUNT) {
            fputs("Try 'tfrecord-make --help'.\n", stderr);
            *exit_code = 2;
            return false;
        }
        if (!parse_option(&option_rows[i], options, exit_code)) return false;
        options_give(options, option_rows[i].name);
    }
    if (argc == 1) {
        (void)help_print(stderr, nullptr);
        *exit_code = 2;
        return false;
    }
    return finish_options(argc, argv, options, exit_code);
}

void options_deinit(options *options)
{
    free(options->name);
    options->name = nullptr;
    source_options_deinit(&options->in);
}
