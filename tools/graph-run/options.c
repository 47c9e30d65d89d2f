/* Parses the command line. An option that has no effect in combination with the others is an error that states its
 * purpose. */
#include "graph-run/options.h"

#include "common/output.h"
#include "common/text.h"
#include <errno.h>
#include <getopt.h>
#include <millrace/millrace.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "graph-run runs a graph written by TensorFlow 1.\n"
                           "\n"
                           "    graph-run model.pb --feed x='[[1, 2], [3, 4]]' --fetch y\n"
                           "    graph-run model.ckpt-100.meta --restore model.ckpt-100 \\\n"
                           "        --feed image=@photo.npy --fetch softmax:0\n"
                           "    graph-run train.meta --first init --target train_op --fetch loss --steps 50\n"
                           "\n"
                           "usage: graph-run [options] GRAPH\n"
                           "\n"
                           "  GRAPH                  serialized GraphDef, or MetaGraphDef if named *.meta\n"
                           "  -f, --feed NAME=VALUE  a number, a list in brackets, \"text\", or @FILE.npy;\n"
                           "                         NAME is a node or NODE:OUTPUT; repeatable\n"
                           "  -o, --fetch NAME       output to print; repeatable\n"
                           "  -t, --target NODE      node to run for its effect; repeatable\n"
                           "  -i, --first NODE       node to run once, alone, before the steps: an\n"
                           "                         initializer; repeatable\n"
                           "  -r, --restore PATH     set the variables from a checkpoint before the steps:\n"
                           "                         its prefix or .index file, or a directory or its file\n"
                           "                         `checkpoint` for the latest one there\n"
                           "  -n, --steps N          number of runs (1); each prints a line for each fetch\n"
                           "  -w, --write DIR        write fetches of the last step to DIR/NAME.npy instead\n"
                           "                         of printing them; creates DIR\n"
                           "  -d, --device DEVICE    device of nodes without one: /device:GPU:0\n"
                           "  -j, --threads N        number of threads, 1 to 1024 (one per processor)\n"
                           "  -p, --profile          print the slowest operators of the last step\n"
                           "  -l, --list             list the nodes instead of running\n"
                           "  -h, --help             print this help\n"
                           "      --version          print the version\n"
                           "\n"
                           "exit status: 0 success, 1 failure, 2 invalid options\n";

[[gnu::format(printf, 1, 2)]] static int refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("graph-run: ", stderr);
    text_print_sentence(stderr, text);
    fputs("\ntry 'graph-run --help'\n", stderr);
    return 2;
}

static int add(const char *option, const char **items, int *count)
{
    if (*optarg == '\0') return refuse("--%s: a name is missing", option);
    if (*count == ITEMS_MAX) return refuse("--%s is given more than %d times", option, ITEMS_MAX);
    items[(*count)++] = optarg;
    return -1;
}

static int set_text(const char *option, const char **value)
{
    if (*value) return refuse("--%s is given twice: %s, %s", option, *value, optarg);
    if (*optarg == '\0') return refuse("--%s: its value is empty", option);
    *value = optarg;
    return -1;
}

static int set_number(const char *option, int64_t max, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(optarg, &end, 10);
    if (*value != 0) return refuse("--%s is given twice: %lld, %s", option, (long long)*value, optarg);
    if (end == optarg || *end || errno == ERANGE || number < 1 || number > max)
        return refuse("--%s %s is not a number from 1 to %lld", option, optarg, (long long)max);
    *value = number;
    return -1;
}

static int parse_option(int option, options *o)
{
    switch (option) {
    case 'f':
        return add("feed", o->feeds, &o->feed_count);
    case 'o':
        return add("fetch", o->fetches, &o->fetch_count);
    case 't':
        return add("target", o->targets, &o->target_count);
    case 'i':
        return add("first", o->firsts, &o->first_count);
    case 'r':
        return set_text("restore", &o->restore);
    case 'w':
        return set_text("write", &o->write);
    case 'd':
        return set_text("device", &o->device);
    case 'n':
        return set_number("steps", INT64_MAX, &o->steps);
    case 'j':
        return set_number("threads", 1024, &o->threads);
    case 'p':
        o->profile = true;
        return -1;
    case 'l':
        o->list = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return 0;
    default:
        output_version("graph-run");
        return 0;
    }
}

typedef struct given {
    const char *option;
    bool is_given;
    const char *purpose;
} given;

static int check_effects(const options *o)
{
    bool has_step = o->fetch_count + o->target_count > 0;
    const given runs[] = {
        {"feed", o->feed_count > 0, "it sets inputs of a run"},
        {"fetch", o->fetch_count > 0, "it prints outputs of a run"},
        {"target", o->target_count > 0, "it runs a node"},
        {"first", o->first_count > 0, "it runs a node"},
        {"restore", o->restore, "it sets variables before a run"},
        {"steps", o->steps > 0, "it is the number of runs"},
        {"write", o->write, "it writes what a run fetches"},
        {"device", o->device, "it places the nodes of a run"},
        {"threads", o->threads > 0, "it is the number of threads of a run"},
        {"profile", o->profile, "it shows the times of a run"},
    };
    for (size_t i = 0; o->list && i < sizeof runs / sizeof *runs; i++)
        if (runs[i].is_given) return refuse("--%s has no effect with --list: %s", runs[i].option, runs[i].purpose);
    const given steps[] = {
        {"feed", o->feed_count > 0, "nodes of --first run without feeds"},
        {"restore", o->restore, "it sets variables that steps use"},
        {"steps", o->steps > 0, "it repeats fetches and targets; nodes of --first run once"},
        {"profile", o->profile, "it shows the times of the last step"},
    };
    for (size_t i = 0; !o->list && !has_step && i < sizeof steps / sizeof *steps; i++)
        if (steps[i].is_given)
            return refuse("--%s has no effect without --fetch or --target: %s", steps[i].option, steps[i].purpose);
    if (o->write && o->fetch_count == 0)
        return refuse("--write has no effect without --fetch: it writes what is fetched");
    return -1;
}

int options_parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {{"feed", 1, nullptr, 'f'},    {"fetch", 1, nullptr, 'o'},
                                          {"target", 1, nullptr, 't'},  {"first", 1, nullptr, 'i'},
                                          {"restore", 1, nullptr, 'r'}, {"steps", 1, nullptr, 'n'},
                                          {"write", 1, nullptr, 'w'},   {"device", 1, nullptr, 'd'},
                                          {"threads", 1, nullptr, 'j'}, {"profile", 0, nullptr, 'p'},
                                          {"list", 0, nullptr, 'l'},    {"help", 0, nullptr, 'h'},
                                          {"version", 0, nullptr, 'V'}, {0}};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":f:o:t:i:r:n:w:d:j:plh", longs, nullptr)) != -1;) {
        if (option == ':') return refuse("%s needs a value", argv[optind - 1]);
        if (option == '?' && optopt && optopt < 128) return refuse("-%c is not an option", optopt);
        if (option == '?') return refuse("%s is not an option", argv[optind - 1]);
        int status = parse_option(option, o);
        if (status >= 0) return status;
    }
    if (optind == argc) return refuse("missing GRAPH");
    if (optind + 1 < argc) return refuse("%s: only one graph can be run at a time", argv[optind + 1]);
    o->graph = argv[optind];
    return check_effects(o);
}

int options_check_work(const options *o)
{
    if (o->list || o->fetch_count + o->target_count + o->first_count > 0) return -1;
    return refuse("nothing to run: use --fetch, --target, --first or --list");
}
