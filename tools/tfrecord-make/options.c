/* The command line of tfrecord-make. */
#include "tools/tfrecord-make/make.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "tfrecord-make turns a folder of pictures, one folder a class, into TFRecord files.\n"
    "\n"
    "    tfrecord-make --out records photos\n"
    "    tfrecord-make --out records --name flowers --split train=0.8,validation=0.1,test=0.1 photos\n"
    "\n"
    "    photos/daisy/1.jpg          records/photos-train-00000-of-00004.tfrecord  (and .index)\n"
    "    photos/daisy/2.png    ->    records/photos-validation-00000-of-00001.tfrecord\n"
    "    photos/rose/7.jpg           records/labels.txt   (line n+1 names label n: 0 daisy, 1 rose)\n"
    "\n"
    "usage: tfrecord-make --out DIR [options] FOLDER\n"
    "\n"
    "  -o, --out DIR            where the files go; made when it is not there\n"
    "  -n, --name NAME          how file names begin (default: the name of FOLDER)\n"
    "      --split NAME=PART,…  parts that add up to 1 (default: train=0.9,validation=0.1). Which part a picture\n"
    "                           goes to follows from its path alone, and stays when others are added\n"
    "      --shards N           files for each part\n"
    "      --shard-size SIZE    or: as many files as keep each near this size (default: 128M)\n"
    "  -s, --shuffle-seed S     the order in the files (default: 0)\n"
    "  -j, --jobs N             threads (default: one for each processor). The bytes are the same for any number\n"
    "      --on-error stop      the first picture that cannot be used ends the run (default)\n"
    "      --on-error skip      such pictures are listed, counted and left out\n"
    "      --no-check           read only the headers of pictures; otherwise each is decoded once as a check\n"
    "  -h, --help               this text\n"
    "\n"
    "Pictures are .jpg, .jpeg and .png files, also in folders below a class folder; other files and hidden ones are "
    "left\n"
    "out. The bytes of a picture go into its record as they are. Each record is an Example with the keys\n"
    "\n"
    "    image/encoded   image/format ('jpeg', 'png')            image/colorspace ('RGB', 'Gray', 'CMYK')\n"
    "    image/height    image/width     image/channels          image/filename ('daisy/1.jpg')\n"
    "    image/class/label (0 is the first class)                image/class/text ('daisy')\n"
    "\n"
    "A file has its final name only when it is whole. A run that was killed goes on where it was; a run that is\n"
    "repeated does only what has changed (DIR/.NAME.journal remembers what was made of what).\n"
    "\n"
    "exit status: 0 done, 1 something failed, 2 the options are wrong\n";

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
        if (length == 0 || length >= sizeof(options->splits[0].name) || strpbrk(part, "/@*?[\n"))
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

/* The last name in a path: "photos" of "../photos/". Owned. */
static char *folder_name(const char *folder)
{
    char *real = realpath(folder, nullptr);
    const char *slash = strrchr(real ? real : folder, '/');
    const char *name = slash ? slash + 1 : real ? real : folder;
    char *copy = strdup(*name ? name : "pictures");
    free(real);
    return copy;
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
        options->check = false;
        return true;
    default:
        fputs("tfrecord-make --help shows how it is used\n", stderr);
        *exit_code = 2;
        return false;
    }
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
                                          {"help", no_argument, nullptr, 'h'},
                                          {}};
    *options = (struct options){.check = true,
                                .shard_bytes = (uint64_t)128 << 20,
                                .split_count = 2,
                                .splits = {{"train", 0.9}, {"validation", 0.1}}};
    int option;
    while ((option = getopt_long(argc, argv, "o:n:s:j:h", longs, nullptr)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            *exit_code = 0;
            return false;
        }
        if (!parse_option(option, options, exit_code)) return false;
    }
    if (argc == 1) {
        fputs(help, stderr);
        *exit_code = 2;
        return false;
    }
    if (optind == argc) return refuse(exit_code, "which FOLDER of pictures?");
    if (optind + 1 < argc)
        return refuse(exit_code, "one FOLDER at a time, not \"%s\" and \"%s\"", argv[optind], argv[optind + 1]);
    if (!options->out) return refuse(exit_code, "where to? --out DIR is missing");
    options->folder = argv[optind];
    if (!options->name) options->name = folder_name(options->folder);
    if (!options->name) return refuse(exit_code, "no memory");
    return true;
}
