/* The command line of tfrecord-make. */
#include "tools/tfrecord-make/make.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int32_t QUALITY_USUAL = 90;
static constexpr int32_t CROP_USUAL = 224;

static bool refuse(int *exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(int *exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tfrecord-make: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\ntfrecord-make --help shows how it is used\n", stderr);
    va_end(args);
    *exit_code = 2;
    return false;
}

/* A whole number from 0 to limit, with an optional K, M, G or T (times 1024) when units are allowed. */
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

/* "train=0.9,validation=0.1" */
static bool parse_splits(char *text, options *options, int *exit_code)
{
    double sum = 0;
    options->split_count = 0;
    for (char *part; (part = strsep(&text, ","));) {
        char *equals = strchr(part, '='), *end = nullptr;
        if (options->split_count == SPLITS_MAX) return refuse(exit_code, "--split: at most %d parts", SPLITS_MAX);
        if (equals) *equals = '\0';
        size_t length = strlen(part);
        if (!source_is_split_name((mr_string){part, length}))
            return refuse(exit_code, "--split: \"%s\" cannot be the name of a part", part);
        double fraction = equals ? strtod(equals + 1, &end) : 1;
        if (equals && (end == equals + 1 || *end || !isfinite(fraction) || fraction <= 0 || fraction > 1))
            return refuse(exit_code, "--split: \"%s\" is not a part between 0 and 1", equals + 1);
        for (int i = 0; i < options->split_count; i++)
            if (strcmp(options->splits[i].name, part) == 0)
                return refuse(exit_code, "--split: \"%s\" is there twice", part);
        memcpy(options->splits[options->split_count].name, part, length + 1);
        options->splits[options->split_count++].fraction = fraction;
        sum += fraction;
    }
    if (options->split_count == 0 || fabs(sum - 1) > 1e-6)
        return refuse(exit_code, "--split: the parts add up to %g, not to 1", sum);
    return true;
}

/* The last name in a path: "photos" of "../photos/", "list" of "list.csv.gz". Owned. */
static char *input_name(const char *input)
{
    static const char endings[] = ".csv .tsv .jsonl .ndjson .json .npy .npz .tar .tgz";
    char *real = realpath(input, nullptr);
    const char *slash = strrchr(real ? real : input, '/');
    const char *name = slash ? slash + 1 : real ? real : input;
    char *copy = strdup(*name ? name : "pictures");
    free(real);
    if (copy && source_has_ending(copy, ".gz")) copy[strlen(copy) - 3] = '\0';
    if (copy && source_has_ending(copy, endings)) *strrchr(copy, '.') = '\0';
    return copy;
}

/* One of a few words. */
static bool parse_word(const char *option, const char *value, const char *const *words, int *which, int *exit_code)
{
    char list[128] = "";
    size_t used = 0;
    for (*which = 0; words[*which]; ++*which) {
        if (strcmp(words[*which], value) == 0) return true;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", *which > 0 ? ", " : "", words[*which]);
    }
    return refuse(exit_code, "%s: \"%s\" is none of %s", option, value, list);
}

static bool parse_worker(const char *value, options *options, int *exit_code)
{
    int used = 0;
    if (sscanf(value, "%" SCNd32 "/%" SCNd32 "%n", &options->worker, &options->worker_count, &used) == 2 &&
        !value[used] && options->worker >= 1 && options->worker <= options->worker_count &&
        options->worker_count <= 100'000)
        return true;
    return refuse(exit_code, "--worker: \"%s\" is not I/N, such as 1/8 … 8/8", value);
}

enum {
    PICTURE_OPTION = 500,
    SHORTER_SIDE = PICTURE_OPTION,
    QUALITY,
    UPRIGHT,
    CROP_READY,
    ENCODE,
    DUPLICATES,
    COMPRESS,
    WORKER,
    FINISH,
    WAIT,
    SURVEY,
    SVG,
    CROP
};

/* What came later than the letters. */
static bool parse_picture_option(int option, options *options, int *exit_code)
{
    static const char *const encodings[] = {"keep", "jpeg", "png", nullptr},
                             *const duplicates[] = {"keep", "drop", "stop", "ignore", nullptr},
                             *const compressions[] = {"none", "gzip", "zlib", "seekable", nullptr};
    treatment *treatment = &options->treatment;
    uint64_t number;
    int which;
    switch (option) {
    case SHORTER_SIDE:
        if (!parse_number(optarg, false, 65'000, &number) || number == 0)
            return refuse(exit_code, "--shorter-side: \"%s\" is not a number of pixels from 1 to 65000", optarg);
        treatment->shorter_side = (int32_t)number;
        return true;
    case QUALITY:
        if (!parse_number(optarg, false, 100, &number) || number == 0)
            return refuse(exit_code, "--quality: \"%s\" is not a number from 1 to 100", optarg);
        treatment->quality = (int32_t)number;
        return true;
    case UPRIGHT:
        return treatment->upright = true;
    case CROP_READY:
        return treatment->crop_ready = true;
    case ENCODE:
        if (!parse_word("--encode", optarg, encodings, &which, exit_code)) return false;
        treatment->encoding = (picture_encoding)which;
        return true;
    case DUPLICATES:
        if (!parse_word("--duplicates", optarg, duplicates, &which, exit_code)) return false;
        options->duplicates = (enum duplicates)which;
        return true;
    case COMPRESS:
        if (!parse_word("--compress", optarg, compressions, &which, exit_code)) return false;
        options->compression = (compression)which;
        return true;
    case WORKER:
        return parse_worker(optarg, options, exit_code);
    case FINISH:
        return options->finish = true;
    case SURVEY:
        return options->survey = true;
    case SVG:
        options->svg = optarg;
        return true;
    case CROP:
        if (!parse_number(optarg, false, 65'000, &number) || number == 0)
            return refuse(exit_code, "--crop: \"%s\" is not a number of pixels from 1 to 65000", optarg);
        options->crop = (int32_t)number;
        return true;
    default:
        if (!parse_number(optarg, false, 1'000'000, &number) || number == 0)
            return refuse(exit_code, "--wait: \"%s\" is not a number of seconds", optarg);
        options->wait_s = (int32_t)number;
        return true;
    }
}

static bool parse_option(int option, options *options, int *exit_code)
{
    uint64_t number;
    switch (option) {
    case 'o':
        options->out = optarg;
        return true;
    case 'n':
        if (!*optarg || strpbrk(optarg, "/\n") || strlen(optarg) > 150)
            return refuse(exit_code, "--name: \"%s\" cannot begin the name of a file", optarg);
        free(options->name);
        options->name = strdup(optarg);
        return true;
    case 'S':
        return parse_splits(optarg, options, exit_code);
    case 'N':
        if (!parse_number(optarg, false, 99'999, &number) || number == 0)
            return refuse(exit_code, "--shards: \"%s\" is not a number from 1 to 99999", optarg);
        options->shards = (int64_t)number;
        return true;
    case 'B':
        if (!parse_number(optarg, true, (uint64_t)1 << 50, &number) || number == 0)
            return refuse(exit_code, "--shard-size: \"%s\" is not a size such as 128M or 1G", optarg);
        options->shard_bytes = number;
        return true;
    case 's':
        if (!parse_number(optarg, false, UINT64_MAX, &options->seed))
            return refuse(exit_code, "--shuffle-seed: \"%s\" is not a whole number", optarg);
        return true;
    case 'j':
        if (!parse_number(optarg, false, 1024, &number) || number == 0)
            return refuse(exit_code, "--jobs: \"%s\" is not a number from 1 to 1024", optarg);
        options->jobs = (int)number;
        return true;
    case 'E':
        options->skip_bad = strcmp(optarg, "skip") == 0;
        if (!options->skip_bad && strcmp(optarg, "stop") != 0)
            return refuse(exit_code, "--on-error: \"%s\" is neither stop nor skip", optarg);
        return true;
    case 'C':
        options->treatment.check = false;
        return true;
    default:
        if (option >= PICTURE_OPTION && option < SOURCE_OPTION) return parse_picture_option(option, options, exit_code);
        if (option >= SOURCE_OPTION) {
            const char *reason;
            return source_option(option, optarg, &options->in, &reason) || refuse(exit_code, "%s", reason);
        }
        fputs("tfrecord-make --help shows how it is used\n", stderr);
        *exit_code = 2;
        return false;
    }
}

/* The long name of what getopt_long returned. */
static const char *option_name(const struct option *longs, int option)
{
    while (longs->name && longs->val != option) longs++;
    return longs->name;
}

bool options_parse(int argc, char **argv, options *options, int *exit_code)
{
    static const struct option longs[] = {{"out", required_argument, nullptr, 'o'},
                                          {"name", required_argument, nullptr, 'n'},
                                          {"split", required_argument, nullptr, 'S'},
                                          {"shards", required_argument, nullptr, 'N'},
                                          {"shard-size", required_argument, nullptr, 'B'},
                                          {"shuffle-seed", required_argument, nullptr, 's'},
                                          {"jobs", required_argument, nullptr, 'j'},
                                          {"on-error", required_argument, nullptr, 'E'},
                                          {"no-check", no_argument, nullptr, 'C'},
                                          {"shorter-side", required_argument, nullptr, SHORTER_SIDE},
                                          {"quality", required_argument, nullptr, QUALITY},
                                          {"upright", no_argument, nullptr, UPRIGHT},
                                          {"crop-ready", no_argument, nullptr, CROP_READY},
                                          {"encode", required_argument, nullptr, ENCODE},
                                          {"duplicates", required_argument, nullptr, DUPLICATES},
                                          {"compress", required_argument, nullptr, COMPRESS},
                                          {"worker", required_argument, nullptr, WORKER},
                                          {"finish", no_argument, nullptr, FINISH},
                                          {"wait", required_argument, nullptr, WAIT},
                                          {"survey", no_argument, nullptr, SURVEY},
                                          {"svg", required_argument, nullptr, SVG},
                                          {"crop", required_argument, nullptr, CROP},
                                          {"help", no_argument, nullptr, 'h'},
                                          SOURCE_LONG_OPTIONS,
                                          {}};
    *options = (struct options){.treatment.check = true,
                                .shard_bytes = (uint64_t)200 << 20,
                                .wait_s = 120,
                                .split_count = 2,
                                .splits = {{"train", 0.9}, {"validation", 0.1}}};
    int option;
    while ((option = getopt_long(argc, argv, "o:n:s:j:h", longs, nullptr)) != -1) {
        if (option == 'h') {
            help_print(stdout);
            *exit_code = 0;
            return false;
        }
        if (!parse_option(option, options, exit_code)) return false;
        options_give(options, option_name(longs, option));
    }
    if (argc == 1) {
        help_print(stderr);
        *exit_code = 2;
        return false;
    }
    if (optind == argc) return refuse(exit_code, "which INPUT: a folder of pictures, a list, …?");
    if (optind + 1 < argc)
        return refuse(exit_code, "one INPUT at a time, not \"%s\" and \"%s\"", argv[optind], argv[optind + 1]);
    mr_error error = {0};
    if (options_check_mode(options, &error) != MR_OK) return refuse(exit_code, "%s", error.message);
    if (options->crop == 0) options->crop = CROP_USUAL;
    if (!options->out && !options->survey) return refuse(exit_code, "where to? --out DIR is missing");
    treatment *treatment = &options->treatment;
    treatment->encode_all = treatment->quality > 0 && treatment->shorter_side == 0 && !treatment->upright &&
                            treatment->encoding == ENCODE_KEEP;
    if (treatment->quality == 0) treatment->quality = QUALITY_USUAL;
    options->input = argv[optind];
    if (!options->name) options->name = input_name(options->input);
    if (!options->name) return refuse(exit_code, "no memory");
    return true;
}
