/* graph-run: loads a GraphDef or MetaGraphDef, feeds and runs it, prints the results. See --help. */
#include "common/output.h"
#include "common/text.h"
#include "graph-run/options.h"
#include "graph-run/restore.h"
#include "graph-run/value.h"

#include <errno.h>
#include <inttypes.h>
#include <millrace/device.h>
#include <millrace/session.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state of a run. */
typedef struct run {
    mr_graph *graph;
    mr_session *session;
    mr_output feeds[ITEMS_MAX], fetches[ITEMS_MAX];
    mr_node *targets[ITEMS_MAX];
    mr_tensor values[ITEMS_MAX], results[ITEMS_MAX];
} run;

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
            int reason = ferror(file) ? errno : 0;
            fclose(file);
            return reason ? mr_fail(error, MR_UNAVAILABLE, "%s: %s", path, strerror(reason)) : MR_OK;
        }
    }
    fclose(file);
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too large for memory", path);
}

static mr_status load(const options *o, run *r, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0, length = strlen(o->graph);
    bool is_meta = length > 5 && strcmp(o->graph + length - 5, ".meta") == 0;
    mr_status status = read_file(o->graph, &bytes, &size, error);
    if (status == MR_OK) {
        r->graph = mr_graph_new();
        if (!r->graph)
            status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a graph");
        else
            status = is_meta ? mr_graph_import_meta(r->graph, bytes, size, error)
                             : mr_graph_import(r->graph, bytes, size, nullptr, error);
        if (status == MR_OK && mr_graph_node_count(r->graph) == 0)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "graph without nodes (%zu bytes)", size);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "%s", o->graph);
    }
    free(bytes);
    return status;
}

/* The number of spaces from the end of a text to a column; at least one. */
static int padding(const char *text, int column)
{
    int columns = text_columns(mr_string_from(text));
    return columns < column ? column - columns : 1;
}

static void list_nodes(const mr_graph *graph)
{
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++) {
        const mr_node *node = mr_graph_node(graph, i);
        text_print_sentence(stdout, mr_node_op(node));
        printf("%*s", padding(mr_node_op(node), 25), "");
        text_print_sentence(stdout, mr_node_name(node));
        for (int32_t j = 0; j < mr_node_output_count(node); j++) {
            char shape[MR_SHAPE_TEXT_SIZE];
            mr_output output = {(mr_node *)node, j};
            printf("%s %s%s", j ? "," : "  ", mr_dtype_name(mr_output_dtype(output)),
                   mr_shape_text(mr_output_shape(output), shape, sizeof shape));
        }
        printf("\n");
    }
}

static mr_status find_output(const mr_graph *graph, const char *name, bool is_fetch, mr_output *output, mr_error *error)
{
    *output = mr_graph_find_output(graph, name);
    if (output->node) return MR_OK;
    const char *colon = strrchr(name, ':');
    char *plain = strndup(name, colon ? (size_t)(colon - name) : strlen(name));
    const mr_node *node = plain ? mr_graph_find(graph, plain) : nullptr;
    free(plain);
    if (!node) return mr_fail(error, MR_NOT_FOUND, "the graph has no output %s (--list prints its nodes)", name);
    if (mr_node_output_count(node) > 0)
        return mr_fail(error, MR_NOT_FOUND, "%s (%s) has %d outputs; there is no %s", mr_node_name(node),
                       mr_node_op(node), (int)mr_node_output_count(node), name);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) has no outputs%s%s", mr_node_name(node), mr_node_op(node),
                   is_fetch ? "; run it with --target " : "", is_fetch ? mr_node_name(node) : "");
}

static mr_status find_node(const mr_graph *graph, const char *name, mr_node **node, mr_error *error)
{
    *node = mr_graph_find(graph, name);
    if (*node) return MR_OK;
    mr_output output = mr_graph_find_output(graph, name);
    if (output.node)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is an output; its node is %s", name, mr_node_name(output.node));
    return mr_fail(error, MR_NOT_FOUND, "the graph has no node %s (--list prints its nodes)", name);
}

static mr_status find_feed(const char *text, run *r, int index, mr_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return mr_fail(error, MR_INVALID_ARGUMENT, "--feed %s: not NAME=VALUE", text);
    char *name = strndup(text, (size_t)(equals - text));
    if (!name) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = find_output(r->graph, name, false, &r->feeds[index], error);
    if (status == MR_OK) status = value_parse(equals + 1, mr_output_dtype(r->feeds[index]), &r->values[index], error);
    if (status != MR_OK) status = mr_fail_prefix(error, status, "--feed %s", name);
    free(name);
    return status;
}

/* The file of a fetch: "DIR/NAME.npy", with / and : of the name replaced by _. Null without memory. */
static char *result_path(const char *directory, const char *name)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s.npy", directory, name) < 0) return nullptr;
    for (char *at = path + strlen(directory) + 1; *at; at++)
        if (*at == '/' || *at == ':') *at = '_';
    return path;
}

static mr_status check_paths(const options *o, mr_error *error)
{
    mr_status status = MR_OK;
    for (int i = 0; i < o->fetch_count; i++)
        for (int j = 0; j < i && status == MR_OK; j++) {
            char *a = result_path(o->write, o->fetches[i]), *b = result_path(o->write, o->fetches[j]);
            if (!a || !b)
                status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
            else if (strcmp(a, b) == 0)
                status = mr_fail(error, MR_INVALID_ARGUMENT, "--fetch %s and --fetch %s would both be written to %s",
                                 o->fetches[j], o->fetches[i], a);
            free(a);
            free(b);
        }
    return status;
}

static mr_status find_all(const options *o, run *r, mr_error *error)
{
    for (int i = 0; i < o->feed_count; i++) MR_TRY(find_feed(o->feeds[i], r, i, error));
    for (int i = 0; i < o->fetch_count; i++) MR_TRY(find_output(r->graph, o->fetches[i], true, &r->fetches[i], error));
    for (int i = 0; i < o->target_count; i++) MR_TRY(find_node(r->graph, o->targets[i], &r->targets[i], error));
    return o->write ? check_paths(o, error) : MR_OK;
}

/* Creates the directory and its missing parents. */
static mr_status make_directory(const char *path, mr_error *error)
{
    char *part = strdup(path);
    if (!part) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = MR_OK;
    for (size_t i = 1; status == MR_OK && path[i - 1]; i++) {
        if (path[i] && path[i] != '/') continue;
        part[i] = '\0';
        struct stat about;
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || (stat(part, &about) == 0 && !S_ISDIR(about.st_mode))))
            status = mr_fail(error, MR_UNAVAILABLE, "--write: cannot create directory %s: %s", part, strerror(errno));
        part[i] = path[i];
    }
    free(part);
    return status;
}

static mr_status write_result(const char *directory, const char *name, const mr_tensor *value, mr_error *error)
{
    char *path = result_path(directory, name);
    if (!path) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = mr_npy_save(path, value, error);
    free(path);
    return status;
}

static mr_status show(const options *o, run *r, int64_t step, int64_t count, mr_error *error)
{
    for (int i = 0; i < o->fetch_count; i++) {
        if (o->write) {
            if (step + 1 == count) MR_TRY(write_result(o->write, o->fetches[i], &r->results[i], error));
            continue;
        }
        if (count > 1) printf("%" PRId64 " ", step + 1);
        char shape[MR_SHAPE_TEXT_SIZE];
        text_print_sentence(stdout, o->fetches[i]);
        printf(" %s%s%s", mr_dtype_name(r->results[i].dtype), mr_shape_text(r->results[i].shape, shape, sizeof shape),
               r->results[i].shape.rank > 1 ? "\n" : " ");
        value_print(stdout, &r->results[i], 10);
    }
    return output_error() ? mr_fail(error, MR_CANCELLED, "standard output is closed") : MR_OK;
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
    for (int32_t i = 0; i < count && i < 20; i++) {
        printf("%9.3f ms  %5.1f %%  %-24s ", (double)times[i].duration_ns / 1e6,
               100.0 * (double)times[i].duration_ns / (double)(total_ns ? total_ns : 1), times[i].op);
        text_print_sentence(stdout, times[i].node);
        printf("\n");
    }
}

/* Prints notes, which are lines that contain names from the graph. */
static void show_notes(const char *notes)
{
    for (const char *end; (end = strchr(notes, '\n')); notes = end + 1) {
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)(end - notes), notes);
        text_print_sentence(stderr, line);
        fputc('\n', stderr);
    }
}

/* Only an invalid device name is an error here. If the machine lacks the device, the session reports it and runs on the
 * CPU. */
static mr_status check_device(const char *name, mr_error *error)
{
    mr_device *device = nullptr;
    mr_status status = mr_device_open(name, &device, error);
    mr_device_close(device);
    return status == MR_INVALID_ARGUMENT ? mr_fail_prefix(error, status, "--device") : MR_OK;
}

static mr_status prepare(const options *o, run *r, mr_error *error)
{
    mr_session_options session = {.size = sizeof session, .threads = (int)o->threads, .device = o->device};
    if (o->device) MR_TRY(check_device(o->device, error));
    MR_TRY(mr_session_new(r->graph, &session, &r->session, error));
    MR_TRY(find_all(o, r, error));
    if (o->write) MR_TRY(make_directory(o->write, error));
    for (int i = 0; i < o->first_count; i++) {
        mr_node *first;
        MR_TRY(find_node(r->graph, o->firsts[i], &first, error));
        MR_TRY(mr_session_run(r->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &first, 1, error));
    }
    return o->restore ? restore_variables(r->graph, r->session, o->restore, error) : MR_OK;
}

static mr_status run_steps(const options *o, run *r, int64_t count, mr_error *error)
{
    mr_step *step;
    MR_TRY(mr_session_prepare(r->session, r->feeds, o->feed_count, (mr_outputs){r->fetches, o->fetch_count}, r->targets,
                              o->target_count, &step, error));
    for (int64_t i = 0; i < count; i++) {
        mr_session_trace(r->session, o->profile && i + 1 == count);
        MR_TRY(mr_step_run(step, r->values, r->results, error));
        mr_status status = show(o, r, i, count, error);
        for (int j = 0; j < o->fetch_count; j++) mr_tensor_deinit(&r->results[j]);
        MR_TRY(status);
    }
    show_notes(mr_session_log(r->session));
    if (o->profile) show_profile(r->session);
    return MR_OK;
}

/* Everything after option parsing; returns the exit code. */
static int run_graph(const options *o, run *r)
{
    mr_error error = {0};
    mr_status status = load(o, r, &error);
    int exit_code = status == MR_OK ? options_check_work(o) : -1;
    if (exit_code >= 0) return exit_code;
    if (status == MR_OK && o->list) {
        list_nodes(r->graph);
    } else {
        if (status == MR_OK) status = prepare(o, r, &error);
        if (status == MR_OK && o->fetch_count + o->target_count > 0)
            status = run_steps(o, r, o->steps > 0 ? o->steps : 1, &error);
    }
    if (status == MR_OK) return 0;
    /* output_close reports why the output failed. */
    if (output_error()) return 1;
    fputs("graph-run: ", stderr);
    text_print_sentence(stderr, error.message);
    fputc('\n', stderr);
    return 1;
}

int main(int argc, char **argv)
{
    static options o;
    static run r;
    output_open();
    int exit_code = options_parse(argc, argv, &o);
    if (exit_code < 0) exit_code = run_graph(&o, &r);
    for (int i = 0; i < o.feed_count; i++) mr_tensor_deinit(&r.values[i]);
    mr_session_free(r.session);
    mr_graph_free(r.graph);
    return output_close("graph-run", exit_code);
}
