/* Parses the command line. An option that has no effect in combination with the others is an error that states its
 * purpose. */
#include "graph-run/options.h"

#include "graph-run/command.h"

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
                           "  GRAPH                  GraphDef, MetaGraphDef or SavedModel (its directory),\n"
                           "                         binary or text; without options: hints\n"
                           "  -f, --feed NAME=VALUE  a number, a list in brackets, \"text\", or @FILE.npy;\n"
                           "                         NAME is a node or NODE:OUTPUT; repeatable\n"
                           "      --feeds FILE       feeds from a .npz: the array x:0 is fed in each step,\n"
                           "                         x:0@3 in step 3; sets the number of steps\n"
                           "  -o, --fetch NAME       output to print; repeatable\n"
                           "  -t, --target NODE      node to run for its effect; repeatable\n"
                           "  -i, --first NODE       node to run once, alone, before the steps: an\n"
                           "                         initializer; repeatable\n"
                           "  -r, --restore PATH     set the variables from a checkpoint before the steps:\n"
                           "                         its prefix or .index file, or a directory or its file\n"
                           "                         `checkpoint` for the latest one there\n"
                           "      --save PREFIX      save the variables after the steps as PREFIX.index,\n"
                           "                         its data and PREFIX.meta; if it is killed while it\n"
                           "                         saves over a checkpoint, that one may be lost\n"
                           "  -n, --steps N          number of runs (1); each prints a line for each fetch;\n"
                           "                         the end of the input ends them earlier\n"
                           "      --queue-runners    fill the graph's queues by its QueueRunners\n"
                           "  -w, --write DIR        write fetches of the last step to DIR/NAME.npy instead\n"
                           "                         of printing them; creates DIR\n"
                           "      --out FILE         write fetches to a .npz: NAME, or of several steps\n"
                           "                         NAME@STEP\n"
                           "      --logdir DIR       write fetched summaries and scalars for TensorBoard\n"
                           "      --trace FILE       write the times of the last step for chrome://tracing\n"
                           "      --dump DIR         write the values of all nodes of each step to\n"
                           "                         DIR/run_TIME_NUMBER, as tfdbg does; names the first\n"
                           "                         NaN or infinity; nodes are run as they are\n"
                           "      --dump-nodes A,B*  dump only these nodes; * and ? are wildcards, ! excludes\n"
                           "      --seed N           seed of random operators without one\n"
                           "      --timeout SECONDS  limit of each run, also of --first and --restore\n"
                           "      --read-only        operators of the graph may not write files\n"
                           "      --no-optimization  run the nodes as they are in the graph: nothing is\n"
                           "                         folded, merged or fused\n"
                           "      --no-recompute     keep what the backward pass reads, instead of\n"
                           "                         computing it again: more memory, and faster\n"
                           "                         steps of convolutional networks\n"
                           "      --tags TAGS        graph of a SavedModel with several: serve,gpu\n"
                           "  -d, --device DEVICE    device of nodes without one: /device:GPU:0\n"
                           "  -j, --threads N        number of threads, 1 to 1024 (one per processor)\n"
                           "  -p, --profile[=VIEW]   print the slowest operators of the last step, or a VIEW\n"
                           "                         of its time, memory and float operations: op for\n"
                           "                         each kind of operator, scope for each name scope,\n"
                           "                         graph along the inputs of the nodes\n"
                           "      --pprof FILE       write the VIEW of --profile for pprof instead of\n"
                           "                         printing it: FILE.pb.gz\n"
                           "  -l, --list             list what the graph has instead of running\n"
                           "  -h, --help             print this help\n"
                           "      --version          print the version\n"
                           "\n"
                           "exit status: 0 success, 1 failure, 2 invalid options\n";

/* In a narrow terminal, descriptions are below their options. */
static void print_help(void)
{
    enum { DESCRIPTION = 25 }; /* its column in the text */
    static const char spaces[DESCRIPTION + 1] = "                         ";
    int columns = command_columns();
    if (columns >= 80) {
        fputs(help, stdout);
        return;
    }
    for (const char *line = help, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        bool is_option = end - line > DESCRIPTION && strncmp(line + DESCRIPTION - 2, "  ", 2) == 0;
        if (!is_option) {
            printf("%.*s\n", (int)(end - line), line);
            continue;
        }
        while (strncmp(end + 1, spaces, DESCRIPTION) == 0) end = strchr(end + 1, '\n');
        int length = DESCRIPTION;
        while (line[length - 1] == ' ') length--;
        printf("%.*s\n        ", length, line);
        text_wrap(stdout, line + DESCRIPTION, (size_t)(end - line) - DESCRIPTION, 8, 8, columns);
    }
}

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

static int set_seed(options *o)
{
    char *end;
    errno = 0;
    long long number = strtoll(optarg, &end, 10);
    if (o->has_seed) return refuse("--seed is given twice: %lld, %s", (long long)o->seed, optarg);
    if (end == optarg || *end || errno == ERANGE) return refuse("--seed %s is not an integer", optarg);
    o->seed = number;
    o->has_seed = true;
    return -1;
}

static int set_timeout(options *o)
{
    char *end;
    double seconds = strtod(optarg, &end);
    if (o->timeout > 0) return refuse("--timeout is given twice: %g, %s", o->timeout, optarg);
    if (end == optarg || *end || !(seconds >= 0.001 && seconds <= 1e9))
        return refuse("--timeout %s is not a number of seconds from 0.001 to 1000000000", optarg);
    o->timeout = seconds;
    return -1;
}

static int set_profile(options *o)
{
    static const char *const views[] = {"op", "scope", "graph"};
    o->profile = true;
    if (!optarg) return -1;
    if (o->profile_view) return refuse("--profile is given twice: %s, %s", o->profile_view, optarg);
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (strcmp(optarg, views[i]) == 0) o->profile_view = views[i];
    return o->profile_view ? -1 : refuse("--profile %s is not op, scope or graph", optarg);
}

/* Options without a letter. */
enum {
    FEEDS = 256,
    SAVE,
    LOGDIR,
    OUT,
    TRACE,
    SEED,
    TIMEOUT,
    TAGS,
    QUEUE_RUNNERS,
    READ_ONLY,
    NO_OPTIMIZATION,
    NO_RECOMPUTE,
    DUMP,
    DUMP_NODES,
    PPROF
};

static int parse_option(int option, options *o)
{
    switch (option) {
    case FEEDS:
        return set_text("feeds", &o->feeds_file);
    case SAVE:
        return set_text("save", &o->save);
    case LOGDIR:
        return set_text("logdir", &o->logdir);
    case OUT:
        return set_text("out", &o->out);
    case TRACE:
        return set_text("trace", &o->trace);
    case DUMP:
        return set_text("dump", &o->dump);
    case DUMP_NODES:
        return set_text("dump-nodes", &o->dump_nodes);
    case PPROF:
        return set_text("pprof", &o->pprof);
    case TAGS:
        return set_text("tags", &o->tags);
    case SEED:
        return set_seed(o);
    case TIMEOUT:
        return set_timeout(o);
    case QUEUE_RUNNERS:
        o->queue_runners = true;
        return -1;
    case READ_ONLY:
        o->read_only = true;
        return -1;
    case NO_OPTIMIZATION:
        o->no_optimization = true;
        return -1;
    case NO_RECOMPUTE:
        o->no_recompute = true;
        return -1;
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
        return set_profile(o);
    case 'l':
        o->list = true;
        return -1;
    case 'h':
        print_help();
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
        {"pprof", o->pprof, "it writes the times of a run"},
        {"feeds", o->feeds_file, "it sets inputs of a run"},
        {"save", o->save, "it saves the variables after a run"},
        {"queue-runners", o->queue_runners, "it runs nodes"},
        {"out", o->out, "it writes what a run fetches"},
        {"logdir", o->logdir, "it writes what a run fetches"},
        {"trace", o->trace, "it writes the times of a run"},
        {"dump", o->dump, "it writes the values of a run"},
        {"dump-nodes", o->dump_nodes, "it selects values of a run"},
        {"seed", o->has_seed, "it is the seed of a run"},
        {"timeout", o->timeout > 0, "it is the limit of a run"},
        {"read-only", o->read_only, "it limits a run"},
        {"no-optimization", o->no_optimization, "it changes how a run is planned"},
        {"no-recompute", o->no_recompute, "it changes how a run is planned"},
    };
    for (size_t i = 0; o->list && i < sizeof runs / sizeof *runs; i++)
        if (runs[i].is_given) return refuse("--%s has no effect with --list: %s", runs[i].option, runs[i].purpose);
    const given steps[] = {
        {"feed", o->feed_count > 0, "nodes of --first run without feeds"},
        {"restore", o->restore && !o->save, "it sets variables that steps use"},
        {"steps", o->steps > 0, "it repeats fetches and targets; nodes of --first run once"},
        {"profile", o->profile, "it shows the times of the last step"},
        {"feeds", o->feeds_file, "nodes of --first run without feeds"},
        {"queue-runners", o->queue_runners, "it feeds steps"},
        {"trace", o->trace, "it writes the times of the last step"},
        {"dump", o->dump, "it writes the values of steps"},
    };
    const given fetched[] = {{"write", o->write, "it writes what is fetched"},
                             {"out", o->out, "it writes what is fetched"},
                             {"logdir", o->logdir, "it writes what is fetched"}};
    const given work[] = {{"device", o->device, "it places the nodes of a run"},
                          {"threads", o->threads > 0, "it is the number of threads of a run"},
                          {"seed", o->has_seed, "it is the seed of a run"},
                          {"timeout", o->timeout > 0, "it is the limit of a run"},
                          {"read-only", o->read_only, "it limits a run"},
                          {"no-optimization", o->no_optimization, "it changes how a run is planned"},
                          {"no-recompute", o->no_recompute, "it changes how a run is planned"}};
    bool has_work = has_step || o->first_count > 0 || o->save;
    for (size_t i = 0; !o->list && !has_step && i < sizeof steps / sizeof *steps; i++)
        if (steps[i].is_given)
            return refuse("--%s has no effect without --fetch or --target: %s", steps[i].option, steps[i].purpose);
    for (size_t i = 0; !o->list && o->fetch_count == 0 && i < sizeof fetched / sizeof *fetched; i++)
        if (fetched[i].is_given)
            return refuse("--%s has no effect without --fetch: %s", fetched[i].option, fetched[i].purpose);
    for (size_t i = 0; !o->list && !has_work && i < sizeof work / sizeof *work; i++)
        if (work[i].is_given)
            return refuse("--%s has no effect without --fetch, --target or --first: %s", work[i].option,
                          work[i].purpose);
    if (o->dump_nodes && !o->dump)
        return refuse("--dump-nodes has no effect without --dump: it selects what is written");
    if (o->dump && o->no_optimization) return refuse("--no-optimization has no effect with --dump, which implies it");
    if (o->no_recompute && (o->dump || o->no_optimization))
        return refuse("--no-recompute has no effect with --%s, which computes nothing again",
                      o->dump ? "dump" : "no-optimization");
    if (o->pprof && !o->profile_view)
        return refuse("--pprof has no effect without --profile=VIEW: it writes this view");
    if (o->save && o->read_only) return refuse("--save contradicts --read-only: operators of the graph save it");
    return -1;
}

/* Whether an argument gives a value to an option that has none: --version=3. */
static bool has_unused_value(const char *argument, const struct option *longs, int found)
{
    const char *equals = strncmp(argument, "--", 2) == 0 ? strchr(argument, '=') : nullptr;
    for (const struct option *each = longs; equals && each->name; each++)
        if (each->val == found && !each->has_arg &&
            strncmp(each->name, argument + 2, (size_t)(equals - argument) - 2) == 0)
            return true;
    return false;
}

int options_parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {{"feed", 1, nullptr, 'f'},
                                          {"fetch", 1, nullptr, 'o'},
                                          {"target", 1, nullptr, 't'},
                                          {"first", 1, nullptr, 'i'},
                                          {"restore", 1, nullptr, 'r'},
                                          {"steps", 1, nullptr, 'n'},
                                          {"write", 1, nullptr, 'w'},
                                          {"device", 1, nullptr, 'd'},
                                          {"threads", 1, nullptr, 'j'},
                                          {"profile", 2, nullptr, 'p'},
                                          {"list", 0, nullptr, 'l'},
                                          {"help", 0, nullptr, 'h'},
                                          {"feeds", 1, nullptr, FEEDS},
                                          {"save", 1, nullptr, SAVE},
                                          {"logdir", 1, nullptr, LOGDIR},
                                          {"out", 1, nullptr, OUT},
                                          {"pprof", 1, nullptr, PPROF},
                                          {"trace", 1, nullptr, TRACE},
                                          {"seed", 1, nullptr, SEED},
                                          {"timeout", 1, nullptr, TIMEOUT},
                                          {"dump", 1, nullptr, DUMP},
                                          {"dump-nodes", 1, nullptr, DUMP_NODES},
                                          {"tags", 1, nullptr, TAGS},
                                          {"queue-runners", 0, nullptr, QUEUE_RUNNERS},
                                          {"read-only", 0, nullptr, READ_ONLY},
                                          {"no-optimization", 0, nullptr, NO_OPTIMIZATION},
                                          {"no-recompute", 0, nullptr, NO_RECOMPUTE},
                                          {"version", 0, nullptr, 'V'},
                                          {0}};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":f:o:t:i:r:n:w:d:j:plh", longs, nullptr)) != -1;) {
        if (option == ':') return refuse("%s needs a value", argv[optind - 1]);
        if (option == '?' && has_unused_value(argv[optind - 1], longs, optopt))
            return refuse("%s: this option has no value", argv[optind - 1]);
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

bool options_run_something(const options *o)
{
    return o->fetch_count + o->target_count + o->first_count > 0 || o->save;
}
