/* graph-run: reads a GraphDef or MetaGraphDef, feeds, runs, prints. See --help. */
#include "tools/graph-run/value.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <millrace/saver.h>
#include <millrace/session.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "graph-run runs a graph that TensorFlow 1 wrote.\n"
    "\n"
    "    graph-run model.pb --feed x='[[1, 2], [3, 4]]' --fetch y\n"
    "    graph-run model.ckpt-100.meta --restore model.ckpt-100 --feed image=@photo.npy --fetch softmax:0\n"
    "    graph-run train.meta --first init --target train_op --fetch loss --steps 50\n"
    "\n"
    "usage: graph-run [options] GRAPH\n"
    "\n"
    "  GRAPH                  a serialised GraphDef, or a MetaGraphDef when its name ends in .meta\n"
    "  -f, --feed NAME=VALUE  a number, a list in brackets, \"text\", or @FILE.npy; NAME is a node or NODE:OUTPUT\n"
    "  -o, --fetch NAME       an output to print; may be given more than once, as --feed and --target may\n"
    "  -t, --target NODE      a node that runs for its effect\n"
    "  -i, --first NODE       a node that runs once, alone, before the steps: an initializer\n"
    "  -r, --restore PREFIX   set the variables from a checkpoint before the steps\n"
    "  -n, --steps N          run so many times (default: 1), one line for each fetch of each run\n"
    "  -w, --write DIR        write fetches as DIR/NAME.npy (of the last step) instead of printing them\n"
    "  -d, --device DEVICE    for nodes that ask for none: /device:GPU:0\n"
    "  -j, --threads N        default: one for each processor\n"
    "  -p, --profile          the slowest operators of the last step\n"
    "  -l, --list             list the nodes instead of running\n"
    "  -h, --help             this text\n"
    "\n"
    "exit status: 0 done, 1 something failed, 2 the options are wrong\n";

constexpr int ITEMS_MAX = 256;

typedef struct options {
    const char *graph, *restore, *write, *device;
    const char *feeds[ITEMS_MAX], *fetches[ITEMS_MAX], *targets[ITEMS_MAX], *firsts[ITEMS_MAX];
    int feed_count, fetch_count, target_count, first_count;
    int64_t steps;
    int threads;
    bool list, profile;
} options;

/* Everything that a run needs. */
typedef struct run {
    mr_graph *graph;
    mr_session *session;
    mr_output feeds[ITEMS_MAX], fetches[ITEMS_MAX];
    mr_node *targets[ITEMS_MAX];
    mr_tensor values[ITEMS_MAX], results[ITEMS_MAX];
} run;

static int refuse(const char *format, const char *what)
{
    fputs("graph-run: ", stderr);
    fprintf(stderr, format, what);
    fputs("\ngraph-run --help shows how it is used\n", stderr);
    return 2;
}

static bool add(const char **items, int *count)
{
    if (*count == ITEMS_MAX) return false;
    items[(*count)++] = optarg;
    return true;
}

/* Returns 0 to go on, else the exit status plus 1. */
static int parse_options(int argc, char **argv, options *o)
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
                                          {"profile", 0, nullptr, 'p'},
                                          {"list", 0, nullptr, 'l'},
                                          {"help", 0, nullptr, 'h'},
                                          {0}};
    o->steps = 1;
    for (int option; (option = getopt_long(argc, argv, "f:o:t:i:r:n:w:d:j:plh", longs, nullptr)) != -1;) {
        bool fits = true;
        char *end = (char *)"";
        switch (option) {
        case 'f':
            fits = add(o->feeds, &o->feed_count);
            break;
        case 'o':
            fits = add(o->fetches, &o->fetch_count);
            break;
        case 't':
            fits = add(o->targets, &o->target_count);
            break;
        case 'i':
            fits = add(o->firsts, &o->first_count);
            break;
        case 'r':
            o->restore = optarg;
            break;
        case 'w':
            o->write = optarg;
            break;
        case 'd':
            o->device = optarg;
            break;
        case 'n':
            o->steps = strtoll(optarg, &end, 10);
            break;
        case 'j':
            o->threads = (int)strtol(optarg, &end, 10);
            break;
        case 'p':
            o->profile = true;
            break;
        case 'l':
            o->list = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 1;
        default:
            return refuse("%s", "this option is not known") + 1;
        }
        if (!fits) return refuse("%s: too many of one kind", optarg) + 1;
        if (*end || o->steps < 1 || o->threads < 0) return refuse("%s is not a number that fits here", optarg) + 1;
    }
    if (optind == argc) return refuse("%s", "which graph?") + 1;
    if (optind + 1 < argc) return refuse("%s: one graph at a time", argv[optind + 1]) + 1;
    o->graph = argv[optind];
    if (!o->list && o->fetch_count + o->target_count + o->first_count == 0)
        return refuse("%s", "nothing to run: give --fetch, --target or --list") + 1;
    return 0;
}

static mr_status read_file(const char *path, char **bytes, size_t *size_bytes, mr_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) return mr_fail(error, MR_NOT_FOUND, "%s: %s", path, strerror(errno));
    *bytes = nullptr;
    *size_bytes = 0;
    for (size_t capacity = 1 << 16;; capacity *= 2) {
        char *larger = realloc(*bytes, capacity);
        if (!larger) break;
        *bytes = larger;
        *size_bytes += fread(*bytes + *size_bytes, 1, capacity - *size_bytes, file);
        if (*size_bytes < capacity) {
            bool failed = ferror(file) != 0;
            fclose(file);
            return failed ? mr_fail(error, MR_UNAVAILABLE, "%s: %s", path, strerror(errno)) : MR_OK;
        }
    }
    fclose(file);
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too large for the memory", path);
}

static mr_status load(const options *o, run *r, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0, length = strlen(o->graph);
    bool is_meta = length > 5 && strcmp(o->graph + length - 5, ".meta") == 0;
    mr_status status = read_file(o->graph, &bytes, &size, error);
    if (status == MR_OK) {
        r->graph = mr_graph_new();
        status = is_meta ? mr_graph_import_meta(r->graph, bytes, size, error)
                         : mr_graph_import(r->graph, bytes, size, nullptr, error);
        if (status != MR_OK) status = mr_fail_in(error, status, "%s", o->graph);
    }
    free(bytes);
    return status;
}

static void list_nodes(const mr_graph *graph)
{
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++) {
        const mr_node *node = mr_graph_node(graph, i);
        printf("%-24s %s", mr_node_op(node), mr_node_name(node));
        for (int32_t j = 0; j < mr_node_output_count(node); j++) {
            char shape[MR_SHAPE_TEXT_SIZE];
            mr_output output = {(mr_node *)node, j};
            printf("%s %s%s", j ? "," : "  ", mr_dtype_name(mr_output_dtype(output)),
                   mr_shape_text(mr_output_shape(output), shape, sizeof shape));
        }
        printf("\n");
    }
}

static mr_status find_output(const mr_graph *graph, const char *name, mr_output *output, mr_error *error)
{
    *output = mr_graph_find_output(graph, name);
    return output->node ? MR_OK
                        : mr_fail(error, MR_NOT_FOUND, "the graph has no output %s (--list shows its nodes)", name);
}

static mr_status find_node(const mr_graph *graph, const char *name, mr_node **node, mr_error *error)
{
    *node = mr_graph_find(graph, name);
    return *node ? MR_OK : mr_fail(error, MR_NOT_FOUND, "the graph has no node %s (--list shows its nodes)", name);
}

static mr_status find_all(const options *o, run *r, mr_error *error)
{
    for (int i = 0; i < o->feed_count; i++) {
        const char *equals = strchr(o->feeds[i], '=');
        if (!equals) return mr_fail(error, MR_INVALID_ARGUMENT, "--feed %s has no =", o->feeds[i]);
        char *name = strndup(o->feeds[i], (size_t)(equals - o->feeds[i]));
        mr_status status = find_output(r->graph, name, &r->feeds[i], error);
        if (status == MR_OK) status = value_parse(equals + 1, mr_output_dtype(r->feeds[i]), &r->values[i], error);
        if (status != MR_OK) status = mr_fail_in(error, status, "--feed %s", name);
        free(name);
        MR_TRY(status);
    }
    for (int i = 0; i < o->fetch_count; i++) MR_TRY(find_output(r->graph, o->fetches[i], &r->fetches[i], error));
    for (int i = 0; i < o->target_count; i++) MR_TRY(find_node(r->graph, o->targets[i], &r->targets[i], error));
    return MR_OK;
}

/* Sets every variable of the graph that the checkpoint has. */
static mr_status restore(const options *o, run *r, mr_error *error)
{
    mr_checkpoint_reader *reader = nullptr;
    MR_TRY(mr_checkpoint_reader_open(o->restore, &reader, error));
    mr_status status = MR_OK;
    int set = 0;
    for (int32_t i = 0; status == MR_OK && i < mr_checkpoint_count(reader); i++) {
        const char *key = mr_checkpoint_key(reader, i, nullptr, nullptr);
        mr_node *node = mr_graph_find(r->graph, key);
        if (!node) continue;
        const char *op = mr_node_op(node);
        if (strcmp(op, "VariableV2") != 0 && strcmp(op, "Variable") != 0 && strcmp(op, "VarHandleOp") != 0) continue;
        mr_tensor value = {0};
        status = mr_checkpoint_read(reader, key, &value, error);
        if (status == MR_OK) status = mr_session_write_variable(r->session, (mr_output){node, 0}, &value, error);
        mr_tensor_deinit(&value);
        set++;
    }
    mr_checkpoint_reader_free(reader);
    if (status == MR_OK && set == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s has none of the graph's variables", o->restore);
    return status;
}

static mr_status write_result(const char *folder, const char *name, const mr_tensor *value, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s.npy", folder, name) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (char *at = path + strlen(folder) + 1; *at; at++)
        if (*at == '/' || *at == ':') *at = '_';
    mr_status status = mr_npy_save(path, value, error);
    free(path);
    return status;
}

static mr_status show(const options *o, run *r, int64_t step, mr_error *error)
{
    for (int i = 0; i < o->fetch_count; i++) {
        if (o->write) {
            if (step + 1 == o->steps) MR_TRY(write_result(o->write, o->fetches[i], &r->results[i], error));
            continue;
        }
        if (o->steps > 1) printf("%" PRId64 " ", step + 1);
        char shape[MR_SHAPE_TEXT_SIZE];
        printf("%s %s%s%s", o->fetches[i], mr_dtype_name(r->results[i].dtype),
               mr_shape_text(r->results[i].shape, shape, sizeof shape), r->results[i].shape.rank > 1 ? "\n" : " ");
        value_print(stdout, &r->results[i], 10);
    }
    return MR_OK;
}

static int by_duration(const void *a, const void *b)
{
    const mr_node_time *x = a, *y = b;
    return x->duration_ns < y->duration_ns ? 1 : x->duration_ns > y->duration_ns ? -1 : 0;
}

static void show_profile(const mr_session *session)
{
    static mr_node_time times[65536];
    int32_t count = mr_session_trace_times(session, times, 65536);
    uint64_t total_ns = 0;
    for (int32_t i = 0; i < count; i++) total_ns += times[i].duration_ns;
    qsort(times, (size_t)count, sizeof times[0], by_duration);
    printf("%d calls, %.3f ms\n", (int)count, (double)total_ns / 1e6);
    for (int32_t i = 0; i < count && i < 20; i++)
        printf("%9.3f ms  %5.1f %%  %-24s %s\n", (double)times[i].duration_ns / 1e6,
               100.0 * (double)times[i].duration_ns / (double)total_ns, times[i].op, times[i].node);
}

static mr_status run_steps(const options *o, run *r, mr_error *error)
{
    mr_session_options session = {.thread_count = o->threads, .device = o->device};
    MR_TRY(mr_session_new(r->graph, &session, &r->session, error));
    MR_TRY(find_all(o, r, error));
    for (int i = 0; i < o->first_count; i++) {
        mr_node *first;
        MR_TRY(find_node(r->graph, o->firsts[i], &first, error));
        MR_TRY(mr_session_run(r->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &first, 1, error));
    }
    if (o->restore) MR_TRY(restore(o, r, error));
    if (o->fetch_count + o->target_count == 0) return MR_OK;
    mr_step *step;
    MR_TRY(mr_session_prepare(r->session, r->feeds, o->feed_count, (mr_outputs){r->fetches, o->fetch_count}, r->targets,
                              o->target_count, &step, error));
    for (int64_t i = 0; i < o->steps; i++) {
        mr_session_trace(r->session, o->profile && i + 1 == o->steps);
        MR_TRY(mr_step_run(step, r->values, r->results, error));
        mr_status status = show(o, r, i, error);
        for (int j = 0; j < o->fetch_count; j++) mr_tensor_deinit(&r->results[j]);
        MR_TRY(status);
    }
    fputs(mr_session_notes(r->session), stderr);
    if (o->profile) show_profile(r->session);
    return MR_OK;
}

int main(int argc, char **argv)
{
    static options o;
    static run r;
    int wrong = parse_options(argc, argv, &o);
    if (wrong) return wrong - 1;
    mr_error error = {0};
    mr_status status = load(&o, &r, &error);
    if (status == MR_OK && o.list)
        list_nodes(r.graph);
    else if (status == MR_OK)
        status = run_steps(&o, &r, &error);
    for (int i = 0; i < o.feed_count; i++) mr_tensor_deinit(&r.values[i]);
    mr_session_free(r.session);
    mr_graph_free(r.graph);
    if (status == MR_OK && fflush(stdout) != 0)
        status = mr_fail(&error, MR_UNAVAILABLE, "the output cannot be written");
    if (status == MR_OK) return 0;
    fprintf(stderr, "graph-run: %s\n", error.message);
    return 1;
}
