#include "graph-run/explain.h"
#include "graph-run/command.h"

#include "common/file.h"
#include "common/output.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The number of spaces from the end of a text to a column; at least one. */
static int padding(const char *text, int column)
{
    int columns = text_columns(mr_string_from(text));
    return columns < column ? column - columns : 1;
}

static void print_output(mr_output output)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    printf(" %s%s", mr_dtype_name(mr_output_dtype(output)),
           mr_shape_text(mr_output_shape(output), shape, sizeof shape));
}

/* ---- --list ---- */

static void list_nodes(const mr_graph *graph)
{
    printf("nodes: %d\n", (int)mr_graph_node_count(graph));
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++) {
        const mr_node *node = mr_graph_node(graph, i);
        text_print_sentence(stdout, mr_node_op(node));
        printf("%*s", padding(mr_node_op(node), 25), "");
        text_print_sentence(stdout, mr_node_name(node));
        for (int32_t j = 0; j < mr_node_output_count(node); j++) {
            fputs(j ? "," : " ", stdout);
            print_output((mr_output){(mr_node *)node, j});
        }
        printf("\n");
    }
}

static void list_names(const char *title, const node_list *list, bool with_shape)
{
    if (list->count == 0) return;
    printf("%s: %d\n", title, (int)list->count);
    for (int32_t i = 0; i < list->count; i++) {
        mr_output output = {list->items[i], 0};
        fputs("  ", stdout);
        text_print_sentence(stdout, mr_node_name(list->items[i]));
        if (with_shape && mr_node_output_count(list->items[i]) > 0) {
            if (mr_output_dtype(output) == MR_RESOURCE)
                printf(" (resource)");
            else
                print_output(output);
        }
        printf("\n");
    }
}

static void list_collections(const mr_model_about *info)
{
    if (info->collection_count > 0) printf("collections: %d\n", (int)info->collection_count);
    for (int32_t i = 0; i < info->collection_count; i++) {
        const mr_model_collection *c = &info->collections[i];
        fputs("  ", stdout);
        text_print_sentence(stdout, c->name);
        printf(": %d", (int)c->count);
        for (int32_t j = 0; c->items && j < c->count && j < 8; j++) {
            printf(j ? ", " : " (");
            text_print_sentence(stdout, c->items[j]);
        }
        puts(!c->items || c->count == 0 ? "" : c->count > 8 ? ", …)" : ")");
    }
}

static void list_tensors(const char *kind, const mr_model_tensor *tensors, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        char shape[MR_SHAPE_TEXT_SIZE];
        printf("    %s ", kind);
        text_print_sentence(stdout, tensors[i].key);
        printf(" = ");
        text_print_sentence(stdout, *tensors[i].name ? tensors[i].name : "(not a dense tensor)");
        printf(" %s%s\n", mr_dtype_name(tensors[i].dtype), mr_shape_text(tensors[i].shape, shape, sizeof shape));
    }
}

static void list_signatures(const mr_model_about *info)
{
    if (info->signature_count > 0) printf("signatures: %d\n", (int)info->signature_count);
    for (int32_t i = 0; i < info->signature_count; i++) {
        const mr_model_signature *s = &info->signatures[i];
        fputs("  ", stdout);
        text_print_sentence(stdout, s->key);
        printf(*s->method ? " (" : "");
        text_print_sentence(stdout, s->method);
        puts(*s->method ? ")" : "");
        list_tensors("input", s->inputs, s->input_count);
        list_tensors("output", s->outputs, s->output_count);
    }
}

static void list_queue_runners(const mr_model_about *info)
{
    if (info->queue_runner_count > 0) printf("queue runners: %d\n", (int)info->queue_runner_count);
    for (int32_t i = 0; i < info->queue_runner_count; i++) {
        fputs("  ", stdout);
        text_print_sentence(stdout, info->queue_runners[i].queue);
        printf(" (%d threads)\n", (int)info->queue_runners[i].enqueue_count);
    }
}

static void print_format(const mr_model_about *info)
{
    printf("%s%s", info->format, info->is_text ? " in text format" : "");
    if (*info->tags) {
        printf(" (");
        text_print_sentence(stdout, info->tags);
        printf(")");
    }
    if (*info->tensorflow_version) {
        printf(" of TensorFlow ");
        text_print_sentence(stdout, info->tensorflow_version);
    }
}

mr_status list_graph(mr_model *model, mr_error *error)
{
    const mr_model_about *info = mr_model_info(model);
    about a;
    mr_status status = about_find(model, &a, error);
    if (status == MR_OK) {
        printf("format: ");
        print_format(info);
        printf("\n");
        list_names("feeds", &a.feeds, true);
        list_names("variables", &a.variables, true);
        list_names("initializers", &a.initializers, false);
        list_names("train operators", &a.trains, false);
        list_names("losses", &a.losses, false);
        list_names("summaries", &a.summaries, false);
        list_names("iterators", &a.iterators, false);
        list_queue_runners(info);
        list_collections(info);
        list_signatures(info);
        if (*info->saver_restore) {
            printf("saver: ");
            text_print_sentence(stdout, info->saver_save);
            printf(", ");
            text_print_sentence(stdout, info->saver_restore);
            printf("\n");
        }
        list_nodes(mr_model_graph(model));
    }
    about_deinit(&a);
    return status;
}

/* ---- What to try first ---- */

/* The checkpoint that belongs to the file: "run/line-0" of "run/line-0.meta", or the directory that names one. Owned;
 * null: none was found. */
static char *find_checkpoint(const char *path)
{
    size_t length = strlen(path);
    char *name = nullptr, *found = nullptr;
    if (length > 5 && strcmp(path + length - 5, ".meta") == 0) {
        char *prefix = strndup(path, length - 5);
        if (!prefix) output_lose(ENOMEM);
        if (prefix && asprintf(&name, "%s.index", prefix) >= 0 && (file_exists(name) || file_exists(prefix)))
            found = prefix;
        else
            free(prefix);
        free(name);
        name = nullptr;
    }
    const char *slash = strrchr(path, '/');
    if (!found) {
        char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
        if (!directory) output_lose(ENOMEM);
        if (directory && asprintf(&name, "%scheckpoint", directory) >= 0 && file_exists(name))
            found = directory;
        else
            free(directory);
        free(name);
    }
    return found;
}

/* A value that one would expect of a scalar. */
static const char *scalar_value(mr_output output, const char *name, bool trains)
{
    switch (mr_output_dtype(output)) {
    case MR_BOOL:
        return trains ? "true" : "false";
    case MR_STRING:
        return "text";
    case MR_FLOAT:
    case MR_DOUBLE:
    case MR_HALF:
        if (strstr(name, "keep")) return trains ? "0.5" : "1";
        if (strstr(name, "drop")) return trains ? "0.5" : "0";
        if (strstr(name, "rate") || strcmp(name, "lr") == 0) return "0.001";
        return "1";
    default:
        return "1";
    }
}

static void print_feeds(command_line *line, const node_list *feeds, bool trains)
{
    for (int32_t i = 0; i < feeds->count; i++) {
        const char *name = mr_node_name(feeds->items[i]);
        mr_output output = {feeds->items[i], 0};
        char *word = nullptr;
        bool is_scalar = mr_output_shape(output).rank == 0;
        const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
        const char *value = is_scalar ? scalar_value(output, base, trains) : nullptr;
        if ((value ? asprintf(&word, "%s=%s", name, value) : asprintf(&word, "%s=@%s.npy", name, base)) < 0)
            return output_lose(ENOMEM);
        command_break(line);
        command_add(line, "--feed", word);
        free(word);
    }
}

static void describe_feeds(const node_list *feeds)
{
    bool has_file = false;
    for (int32_t i = 0; i < feeds->count; i++) {
        mr_output output = {feeds->items[i], 0};
        if (mr_output_shape(output).rank == 0) continue;
        if (!has_file) printf("  where the files, which numpy.save writes, contain\n");
        has_file = true;
        fputs("    ", stdout);
        text_print_sentence(stdout, mr_node_name(feeds->items[i]));
        fputs(":", stdout);
        print_output(output);
        printf("\n");
    }
}

typedef struct command {
    const char *path, *checkpoint;
    const mr_graph *graph;
    const about *about;
    bool queue_runners, has_first, trains;
} command;

/* The initializers that must run: with a checkpoint, those of what it does not contain. */
static void print_firsts(command_line *line, const command *c)
{
    int printed = 0;
    for (int32_t i = 0; c->has_first && i < c->about->top_initializers && printed < 8; i++) {
        const mr_node *node = c->about->initializers.items[i];
        if (c->checkpoint && about_is_saved(c->graph, node)) continue;
        command_add(line, "--first", mr_node_name(node));
        printed++;
    }
}

static void print_command(const command *c, const node_list *feeds, const char *target, const char *fetch)
{
    command_line line;
    command_begin(&line, c->path);
    print_firsts(&line, c);
    if (c->checkpoint) command_add(&line, "--restore", c->checkpoint);
    if (c->queue_runners) command_add(&line, "--queue-runners", nullptr);
    print_feeds(&line, feeds, target != nullptr);
    if (target || fetch) command_break(&line);
    if (target) command_add(&line, "--target", target);
    if (fetch) command_add(&line, "--fetch", fetch);
    if (c->trains) {
        command_add(&line, "--steps", "100");
        if (fetch) command_add(&line, "--logdir", "logs");
        if (c->about->variables.count > 0) command_add(&line, "--save", "trained/model");
    }
    command_end(&line);
}

static void count_line(const char *what, const node_list *list, bool with_shape)
{
    if (list->count == 0) return;
    printf("  %s: ", what);
    for (int32_t i = 0; i < list->count && i < 6; i++) {
        if (i) fputs(", ", stdout);
        text_print_sentence(stdout, mr_node_name(list->items[i]));
        if (with_shape) print_output((mr_output){list->items[i], 0});
    }
    if (list->count > 6) printf(", … (%d)", (int)list->count);
    printf("\n");
}

/* The output of a signature, or a node at the end of the graph that looks like a prediction. Null: none. */
static const char *find_prediction(mr_model *model)
{
    static const char *const names[] = {"predictions", "prediction", "softmax", "Softmax",       "logits",
                                        "output",      "outputs",    "y",       "probabilities", "line"};
    const mr_model_about *info = mr_model_info(model);
    const mr_graph *graph = mr_model_graph(model);
    for (int32_t i = 0; i < info->signature_count; i++)
        for (int32_t j = 0; j < info->signatures[i].output_count; j++)
            if (*info->signatures[i].outputs[j].name && strcmp(info->signatures[i].key, "__saved_model_init_op") != 0)
                return info->signatures[i].outputs[j].name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const mr_node *node = mr_graph_find(graph, names[i]);
        if (node && mr_node_output_count(node) > 0 && strcmp(mr_node_op(node), "Placeholder") != 0) return names[i];
    }
    for (int32_t i = mr_graph_node_count(graph) - 1; i >= 0; i--)
        if (strcmp(mr_node_op(mr_graph_node(graph, i)), "Softmax") == 0) return mr_node_name(mr_graph_node(graph, i));
    return nullptr;
}

static mr_status suggest(mr_model *model, const command *c, mr_node *target, const char *fetch, mr_error *error)
{
    const mr_graph *graph = mr_model_graph(model);
    mr_node *nodes[2];
    int32_t count = 0;
    node_list feeds;
    mr_output output = fetch ? mr_graph_find_output(graph, fetch) : (mr_output){0};
    if (target) nodes[count++] = target;
    if (output.node) nodes[count++] = output.node;
    MR_TRY(about_needs(graph, nodes, count, &feeds, error));
    print_command(c, &feeds, target ? mr_node_name(target) : nullptr, fetch);
    describe_feeds(&feeds);
    free(feeds.items);
    return MR_OK;
}

static mr_status explain(mr_model *model, const about *a, const char *path, const char *checkpoint, mr_error *error)
{
    const mr_model_about *info = mr_model_info(model);
    command c = {.path = path,
                 .checkpoint = checkpoint,
                 .graph = mr_model_graph(model),
                 .about = a,
                 .queue_runners = info->queue_runner_count > 0,
                 .has_first = !*info->variables};
    const char *prediction = find_prediction(model);
    const char *loss = a->losses.count > 0 ? mr_node_name(a->losses.items[0]) : nullptr;
    bool has_state = a->variables.count > 0 && !*info->variables;
    if (!has_state) c.checkpoint = nullptr;
    command_line line;
    printf("\nwhat to try next\n");
    printf("  all of it:\n");
    command_begin(&line, path);
    command_add(&line, "--list", nullptr);
    command_end(&line);
    if (has_state && !checkpoint) printf("  no checkpoint was found next to the file: name one with --restore PATH\n");
    if (prediction) {
        printf("  predict:\n");
        MR_TRY(suggest(model, &c, nullptr, prediction, error));
    }
    if (a->trains.count > 0) {
        c.trains = true;
        printf(loss ? "  train, write a loss curve for TensorBoard, and save the variables:\n"
                    : "  train, and save the variables:\n");
        MR_TRY(suggest(model, &c, a->trains.items[0], loss, error));
    }
    if (!prediction && a->trains.count == 0)
        printf("  run:\n    graph-run … --fetch NAME, where NAME is one of the nodes that --list prints\n");
    return MR_OK;
}

mr_status explain_graph(mr_model *model, const char *path, mr_error *error)
{
    const mr_model_about *info = mr_model_info(model);
    about a;
    mr_status status = about_find(model, &a, error);
    text_print_sentence(stdout, path);
    printf(": ");
    print_format(info);
    printf(", %d nodes\n", (int)mr_graph_node_count(mr_model_graph(model)));
    if (status == MR_OK) {
        count_line("feeds", &a.feeds, true);
        if (a.variables.count > 0)
            printf("  variables: %d%s\n", (int)a.variables.count,
                   *info->variables ? ", restored from the directory" : "");
        count_line("initializers", &a.initializers, false);
        count_line("train operators", &a.trains, false);
        count_line("losses", &a.losses, false);
        count_line("iterators", &a.iterators, false);
        if (info->queue_runner_count > 0)
            printf("  queue runners: %d (--queue-runners starts them)\n", (int)info->queue_runner_count);
        for (int32_t i = 0; i < info->signature_count; i++) {
            printf(i ? ", " : "  signatures: ");
            text_print_sentence(stdout, info->signatures[i].key);
        }
        if (info->signature_count > 0) printf("\n");
        char *checkpoint = find_checkpoint(path);
        if (checkpoint && !*info->variables) {
            printf("  checkpoint: ");
            text_print_sentence(stdout, checkpoint);
            printf("\n");
        }
        status = explain(model, &a, path, checkpoint, error);
        free(checkpoint);
    }
    about_deinit(&a);
    return status;
}
