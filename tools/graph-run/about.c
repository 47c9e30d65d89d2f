#include "graph-run/about.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_one_of(const char *op, const char *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}
#define IS_ONE_OF(node, ...)                                                                                           \
    is_one_of(mr_node_op(node), (const char *const[]){__VA_ARGS__},                                                    \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static mr_status append_node(node_list *list, const mr_node *node, mr_error *error)
{
    mr_node **larger = realloc(list->items, ((size_t)list->count + 1) * sizeof *larger);
    if (!larger) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    list->items = larger;
    larger[list->count++] = (mr_node *)node;
    return MR_OK;
}

static bool is_placeholder(const mr_node *node)
{
    return IS_ONE_OF(node, "Placeholder", "PlaceholderV2", "PlaceholderWithDefault");
}

/* Whether the node belongs to a Saver: "save/Const", "save_1/Const". */
static bool is_of_saver(const mr_node *node)
{
    const char *rest = mr_node_name(node);
    if (!begins_with(rest, "save")) return false;
    rest += 4;
    if (*rest == '_') rest += 1 + strspn(rest + 1, "0123456789");
    return *rest == '/';
}

static bool is_assignment(const mr_node *node)
{
    return IS_ONE_OF(node, "Assign", "AssignVariableOp");
}

static bool is_restored(const mr_node *node)
{
    const mr_node *value = mr_node_input_count(node) > 1 ? mr_node_input(node, 1).node : nullptr;
    for (int depth = 0; value && depth < 3; depth++) {
        if (begins_with(mr_node_op(value), "Restore")) return true;
        value = mr_node_input_count(value) > 0 ? mr_node_input(value, 0).node : nullptr;
    }
    return false;
}

/* A NoOp that only runs initializers. */
static bool is_initializer(const mr_node *node)
{
    if (IS_ONE_OF(node, "MakeIterator", "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile",
                  "InitializeTableFromTextFileV2"))
        return true;
    if (strcmp(mr_node_op(node), "NoOp") != 0) return false;
    bool initializes = false; /* an assertion that is known to hold is a NoOp after others */
    for (int32_t i = 0; i < mr_node_control_count(node); i++) {
        const mr_node *control = mr_node_control(node, i);
        bool is_empty = strcmp(mr_node_op(control), "NoOp") == 0 && mr_node_control_count(control) == 0;
        if (is_assignment(control) ? is_restored(control) : !is_empty && !is_initializer(control)) return false;
        initializes = initializes || !is_empty;
    }
    return initializes;
}

static bool is_update(const mr_node *node)
{
    const char *op = mr_node_op(node);
    return begins_with(op, "Apply") || begins_with(op, "ResourceApply") || begins_with(op, "SparseApply") ||
           begins_with(op, "ResourceSparseApply");
}

/* ---- Marks of nodes ---- */

typedef struct mark {
    const mr_node *node;
    char value;
} mark;

/* Sorted by address. */
typedef struct marks {
    mark *items;
    size_t count;
} marks;

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const mark *)a)->node, y = (uintptr_t)((const mark *)b)->node;
    return x < y ? -1 : x > y;
}

static mr_status marks_init(const mr_graph *graph, marks *m, mr_error *error)
{
    m->count = (size_t)mr_graph_node_count(graph);
    m->items = calloc(m->count + 1, sizeof *m->items);
    if (!m->items) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (size_t i = 0; i < m->count; i++) m->items[i].node = mr_graph_node(graph, (int32_t)i);
    qsort(m->items, m->count, sizeof *m->items, by_address);
    return MR_OK;
}

static char *mark_of(const marks *m, const mr_node *node)
{
    mark key = {.node = node}, *found = bsearch(&key, m->items, m->count, sizeof key, by_address);
    return &found->value;
}

/* The nodes that group the updates of an optimizer, except those in another such group. */
static mr_status find_trains(const mr_graph *graph, const marks *m, node_list *trains, mr_error *error)
{
    enum { GROUP = 1, INNER = 2 };
    int32_t count = mr_graph_node_count(graph);
    bool found = true;
    for (size_t i = 0; i < m->count; i++) m->items[i].value = is_update(m->items[i].node) ? GROUP | INNER : 0;
    for (int round = 0; found && round < 8; round++) { /* nodes of a file are in any order */
        found = false;
        for (size_t i = 0; i < m->count; i++) {
            const mr_node *node = m->items[i].node;
            if (m->items[i].value & GROUP ||
                !IS_ONE_OF(node, "NoOp", "AssignAdd", "AssignAddVariableOp", "Identity", "Const"))
                continue;
            for (int32_t j = 0; j < mr_node_control_count(node); j++) {
                char *control = mark_of(m, mr_node_control(node, j));
                if (!(*control & GROUP)) continue;
                *control |= INNER;
                m->items[i].value |= GROUP;
                found = true;
            }
            /* The constant that a step counter adds runs after the updates. */
            for (int32_t j = 0; j < mr_node_input_count(node); j++) {
                char *input = mark_of(m, mr_node_input(node, j).node);
                if (!(*input & GROUP) || strcmp(mr_node_op(mr_node_input(node, j).node), "Const") != 0) continue;
                *input |= INNER;
                m->items[i].value |= GROUP;
                found = true;
            }
        }
    }
    for (int32_t i = 0; i < count; i++)
        if (*mark_of(m, mr_graph_node(graph, i)) == GROUP) MR_TRY(append_node(trains, mr_graph_node(graph, i), error));
    return MR_OK;
}

/* Moves the initializers that others run to the end. */
static void sort_initializers(about *a)
{
    node_list *list = &a->initializers;
    int32_t top = 0;
    for (int32_t i = 0; i < list->count; i++) {
        bool is_inner = false;
        for (int32_t j = 0; j < list->count && !is_inner; j++)
            for (int32_t k = 0; k < mr_node_control_count(list->items[j]) && !is_inner; k++)
                is_inner = mr_node_control(list->items[j], k) == list->items[i];
        if (is_inner) continue;
        mr_node *node = list->items[i];
        for (int32_t j = i; j > top; j--) list->items[j] = list->items[j - 1];
        list->items[top++] = node;
    }
    a->top_initializers = top;
}

/* ---- Losses ---- */

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_float_scalar(const mr_node *node)
{
    mr_output output = {(mr_node *)node, 0};
    if (mr_node_output_count(node) != 1 || mr_output_shape(output).rank > 0) return false;
    mr_dtype dtype = mr_output_dtype(output);
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF;
}

/* Whether the node is an average of what is true or false: an accuracy. */
static bool is_share(const mr_node *node)
{
    if (!IS_ONE_OF(node, "Mean") || mr_node_input_count(node) == 0) return false;
    const mr_node *cast = mr_node_input(node, 0).node;
    return cast && IS_ONE_OF(cast, "Cast") && mr_node_input_count(cast) == 1 &&
           mr_output_dtype(mr_node_input(cast, 0)) == MR_BOOL;
}

/* 0: not a loss; more: the more likely. */
static int loss_rank(const mr_node *node)
{
    static const char *const words[] = {"loss", "cost", "error", "cross_entropy", "xentropy"};
    const char *name = mr_node_name(node), *part = last_part(name);
    if (!is_float_scalar(node) || begins_with(name, "gradients") || is_of_saver(node)) return 0;
    if (is_share(node) || strstr(part, "accuracy")) return 0;
    if (IS_ONE_OF(node, "Const", "Placeholder", "PlaceholderWithDefault", "VariableV2", "Variable", "Assign")) return 0;
    int depth = 0;
    for (const char *c = name; *c; c++) depth += *c == '/';
    if (strcmp(part, "total_loss") == 0) return 500 - depth;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(part, words[i]) == 0) return 400 - depth;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(part, words[i])) return 300 - depth;
    bool is_value = IS_ONE_OF(node, "Mean", "Sum", "Add", "AddV2", "AddN", "Mul", "RealDiv", "Div", "DivNoNan");
    for (size_t i = 0; is_value && i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return 200 - depth;
    return is_value && begins_with(part, "Mean") ? 100 - depth : 0;
}

/* Whether the collection "losses" of the file contains the node's output. */
static bool is_collected(mr_model *model, const mr_node *node)
{
    const mr_model_about *info = mr_model_info(model);
    size_t length = strlen(mr_node_name(node));
    for (int32_t i = 0; i < info->collection_count; i++)
        for (int32_t j = 0; info->collections[i].items && j < info->collections[i].count; j++) {
            const char *item = info->collections[i].items[j];
            if (strcmp(info->collections[i].name, "losses") == 0 && strncmp(item, mr_node_name(node), length) == 0 &&
                (item[length] == '\0' || strcmp(item + length, ":0") == 0))
                return true;
        }
    return false;
}

static int rank_of(mr_model *model, const mr_node *node)
{
    int rank = loss_rank(node);
    return is_float_scalar(node) && is_collected(model, node) ? 1000 + rank : rank;
}

static mr_status find_losses(mr_model *model, node_list *losses, mr_error *error)
{
    const mr_graph *graph = mr_model_graph(model);
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++)
        if (rank_of(model, mr_graph_node(graph, i)) > 0) MR_TRY(append_node(losses, mr_graph_node(graph, i), error));
    for (int32_t i = 1; i < losses->count; i++) /* stable; there are few */
        for (int32_t j = i; j > 0 && rank_of(model, losses->items[j - 1]) < rank_of(model, losses->items[j]); j--) {
            mr_node *node = losses->items[j];
            losses->items[j] = losses->items[j - 1];
            losses->items[j - 1] = node;
        }
    if (losses->count > 8) losses->count = 8;
    return MR_OK;
}

/* ---- All ---- */

mr_status about_find(mr_model *model, about *a, mr_error *error)
{
    const mr_graph *graph = mr_model_graph(model);
    *a = (about){0};
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++) {
        const mr_node *node = mr_graph_node(graph, i);
        node_list *list = nullptr;
        size_t length = strlen(mr_node_op(node));
        if (is_placeholder(node) && !is_of_saver(node))
            list = &a->feeds;
        else if (IS_ONE_OF(node, "VariableV2", "Variable", "VarHandleOp"))
            list = &a->variables;
        else if (IS_ONE_OF(node, "Iterator", "IteratorV2", "OneShotIterator"))
            list = &a->iterators;
        else if (is_initializer(node))
            list = &a->initializers;
        else if ((length > 7 && strcmp(mr_node_op(node) + length - 7, "Summary") == 0) ||
                 IS_ONE_OF(node, "TensorSummaryV2", "ImageSummary", "AudioSummaryV2"))
            list = &a->summaries;
        if (list) MR_TRY(append_node(list, node, error));
    }
    sort_initializers(a);
    marks m = {0};
    mr_status status = marks_init(graph, &m, error);
    if (status == MR_OK) status = find_trains(graph, &m, &a->trains, error);
    free(m.items);
    return status == MR_OK ? find_losses(model, &a->losses, error) : status;
}

void about_deinit(about *a)
{
    node_list *lists[] = {&a->feeds,  &a->variables, &a->initializers, &a->trains,
                          &a->losses, &a->iterators, &a->summaries};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(lists[i]->items);
    *a = (about){0};
}

/* Appends the nodes that others need, themselves included; the values of fed outputs need nothing. */
static mr_status find_needed(const mr_graph *graph, mr_node *const *nodes, int32_t count, const mr_output *feeds,
                             int32_t feed_count, node_list *needed, mr_error *error)
{
    marks m = {0};
    node_list open = {0};
    mr_status status = marks_init(graph, &m, error);
    for (int32_t i = 0; status == MR_OK && i < count; i++) status = append_node(&open, nodes[i], error);
    while (status == MR_OK && open.count > 0) {
        const mr_node *node = open.items[--open.count];
        char *seen = mark_of(&m, node);
        if (*seen) continue;
        *seen = 1;
        status = append_node(needed, node, error);
        for (int32_t i = 0; status == MR_OK && i < mr_node_input_count(node); i++) {
            mr_output input = mr_node_input(node, i);
            bool is_fed = false;
            for (int32_t j = 0; j < feed_count && !is_fed; j++)
                is_fed = feeds[j].node == input.node && feeds[j].index == input.index;
            if (!is_fed) status = append_node(&open, input.node, error);
        }
        for (int32_t i = 0; status == MR_OK && i < mr_node_control_count(node); i++)
            status = append_node(&open, mr_node_control(node, i), error);
    }
    free(open.items);
    free(m.items);
    return status;
}

mr_status about_needs(const mr_graph *graph, mr_node *const *nodes, int32_t count, node_list *feeds, mr_error *error)
{
    node_list needed = {0};
    *feeds = (node_list){0};
    mr_status status = find_needed(graph, nodes, count, nullptr, 0, &needed, error);
    for (int32_t i = 0; status == MR_OK && i < needed.count; i++)
        if (IS_ONE_OF(needed.items[i], "Placeholder", "PlaceholderV2"))
            status = append_node(feeds, needed.items[i], error);
    free(needed.items);
    return status;
}

mr_status about_find_inputs(const mr_graph *graph, mr_node *const *nodes, int32_t count, const mr_output *feeds,
                            int32_t feed_count, about_inputs *inputs, mr_error *error)
{
    node_list needed = {0};
    *inputs = (about_inputs){0};
    mr_status status = find_needed(graph, nodes, count, feeds, feed_count, &needed, error);
    for (int32_t i = 0; status == MR_OK && i < needed.count; i++) {
        const char *op = mr_node_op(needed.items[i]);
        inputs->has_queue = inputs->has_queue || begins_with(op, "QueueDequeue") || begins_with(op, "ReaderRead");
        inputs->has_iterator = inputs->has_iterator || begins_with(op, "IteratorGetNext");
    }
    free(needed.items);
    return status;
}

static bool is_local_variable(const mr_graph *graph, const mr_node *node)
{
    for (int32_t i = 0; i < mr_graph_variable_count(graph, MR_LOCAL_VARIABLES); i++)
        if (mr_graph_variable(graph, MR_LOCAL_VARIABLES, i).ref.node == node) return true;
    return false;
}

bool about_is_saved(const mr_graph *graph, const mr_node *initializer)
{
    if (is_assignment(initializer))
        return mr_node_input_count(initializer) > 0 && !is_local_variable(graph, mr_node_input(initializer, 0).node);
    bool is_saved = strcmp(mr_node_op(initializer), "NoOp") == 0;
    for (int32_t i = 0; is_saved && i < mr_node_control_count(initializer); i++)
        is_saved = about_is_saved(graph, mr_node_control(initializer, i));
    return is_saved;
}
