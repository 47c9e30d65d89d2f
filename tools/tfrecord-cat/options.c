/* The command line of tfrecord-cat. */
#include "tools/tfrecord-cat/cat.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "tfrecord-cat shows what is in TFRecord files.\n"
    "\n"
    "    tfrecord-cat train-00000-of-00004.tfrecord | less\n"
    "    tfrecord-cat --count 'records/*.tfrecord'\n"
    "    tfrecord-cat --schema flowers-train@4.tfrecord\n"
    "    tfrecord-cat --verify records/*.tfrecord\n"
    "    tfrecord-cat --json --head 10 data.tfrecord | jq .features\n"
    "    gunzip < data.gz | tfrecord-cat --record 7 -\n"
    "\n"
    "usage: tfrecord-cat [options] FILE…\n"
    "\n"
    "  FILE is a path, a quoted glob, NAME@N for NAME-00000-of-0000N …, or - for the standard input. Files may be\n"
    "  plain, GZIP or ZLIB.\n"
    "\n"
    "  (no option)      each record as a readable block\n"
    "      --json       each record as a line of JSON: file, record, offset, features. Bytes that are not UTF-8 text\n"
    "                   are under \"base64\" instead of \"bytes\"\n"
    "  -c, --count      how many records each file has (headers only; data is not read)\n"
    "      --schema     all features: types, values for each record, presence; and the C to parse them with\n"
    "      --verify     check every checksum and every Example; each fault is a line with file, record, byte and kind\n"
    "  -n, --head N     only the first N records\n"
    "  -r, --record N   only record N, from 0, counted through all files\n"
    "      --raw        records are plain bytes, not Examples\n"
    "  -h, --help       this text\n"
    "\n"
    "exit status: 0 all is well, 1 a fault or a file that cannot be read, 2 the options are wrong\n";

static bool refuse(int *exit_code, const char *format, const char *text)
{
    fputs("tfrecord-cat: ", stderr);
    fprintf(stderr, format, text);
    fputs("\ntfrecord-cat --help shows how it is used\n", stderr);
    *exit_code = 2;
    return false;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

/* The index beside a record file: "records/" and a star, spelled out by the shell, names both. */
static bool is_index(const char *path)
{
    size_t length = strlen(path);
    if (length < 7 || strcmp(path + length - 6, ".index") != 0) return false;
    char *base = strndup(path, length - 6);
    bool is_beside = base && access(base, F_OK) == 0;
    free(base);
    return is_beside;
}

/* Adds the files of an argument. */
static bool add_paths(const char *pattern, options *options, int *exit_code)
{
    char **paths = nullptr;
    int32_t count = 1;
    mr_error error = {0};
    if (strcmp(pattern, "-") == 0) {
        paths = calloc(1, sizeof(char *));
        if (paths) paths[0] = strdup("-");
    } else if (mr_paths_match(pattern, &paths, &count, &error) != MR_OK) {
        fprintf(stderr, "tfrecord-cat: %s\n", error.message);
        options->has_missing = true;
        return true;
    }
    size_t size = (size_t)(options->path_count + count) * sizeof(char *);
    char **all = paths ? realloc(options->paths, size) : nullptr;
    if (!all) return refuse(exit_code, "%s", "no memory");
    memcpy(all + options->path_count, paths, (size_t)count * sizeof(char *));
    free(paths);
    options->paths = all;
    options->path_count += count;
    return true;
}

bool options_parse(int argc, char **argv, options *options, int *exit_code)
{
    static const struct option longs[] = {{"json", no_argument, nullptr, 'J'},
                                          {"count", no_argument, nullptr, 'c'},
                                          {"schema", no_argument, nullptr, 'S'},
                                          {"verify", no_argument, nullptr, 'V'},
                                          {"head", required_argument, nullptr, 'n'},
                                          {"record", required_argument, nullptr, 'r'},
                                          {"raw", no_argument, nullptr, 'R'},
                                          {"help", no_argument, nullptr, 'h'},
                                          {}};
    *options = (struct options){.head = UINT64_MAX};
    int option, modes = 0;
    while ((option = getopt_long(argc, argv, "cn:r:h", longs, nullptr)) != -1) {
        switch (option) {
        case 'J':
            options->mode = MODE_JSON, modes++;
            break;
        case 'c':
            options->mode = MODE_COUNT, modes++;
            break;
        case 'S':
            options->mode = MODE_SCHEMA, modes++;
            break;
        case 'V':
            options->mode = MODE_VERIFY, modes++;
            break;
        case 'R':
            options->is_raw = true;
            break;
        case 'n':
            if (!parse_number(optarg, &options->head))
                return refuse(exit_code, "--head: \"%s\" is not a number", optarg);
            break;
        case 'r':
            if (!parse_number(optarg, &options->record))
                return refuse(exit_code, "--record: \"%s\" is not a number", optarg);
            options->has_record = true;
            break;
        case 'h':
            fputs(help, stdout);
            *exit_code = 0;
            return false;
        default:
            fputs("tfrecord-cat --help shows how it is used\n", stderr);
            *exit_code = 2;
            return false;
        }
    }
    if (modes > 1) return refuse(exit_code, "%s", "only one of --json, --count, --schema and --verify");
    if (optind == argc && isatty(STDIN_FILENO)) {
        fputs(help, stderr);
        *exit_code = 2;
        return false;
    }
    if (optind == argc) return add_paths("-", options, exit_code);
    for (int i = optind; i < argc; i++)
        if ((argc - optind == 1 || !is_index(argv[i])) && !add_paths(argv[i], options, exit_code)) return false;
    return true;
}
