/* Warm starts: the variables that a regular expression or a list selects, under their names in the checkpoint. */
#include "base/options.h"
#include "base/status.h"
#include "graph/train/near_names.h"
#include "graph/train/saver_items.h"
#include <millrace/ops.h>
#include <millrace/warm_start.h>

#include <stdlib.h>
#include <string.h>

typedef struct warming {
    mr_graph *graph;
    mr_arena arena;
    const mr_warm_start_options *options;
    mr_variable *variables;
    int32_t count;
    mr_assignment *assignments;
    bool *used; /* previous_names */
} warming;

/* ---- Selection ---- */

/* Whether the pattern matches the beginning of each name. A graph of its own evaluates the operator. */
static mr_status match(const mr_string *names, int32_t count, const char *pattern, mr_tensor *matches, mr_error *error)
{
    mr_arena arena = {0};
    mr_tensor all = {0};
    mr_session *session = nullptr;
    const char *complete = mr_arena_printf(&arena, "(?s:(?:%s).*)", pattern);
    mr_graph *graph = mr_graph_create();
    mr_status status = complete != nullptr && graph != nullptr ? MR_OK : mr_fail_memory(error, strlen(pattern));
    if (status == MR_OK) status = mr_tensor_init_strings(&all, MR_SHAPE(count), names, error);
    if (status == MR_OK) {
        mr_tensor text = {0};
        status = mr_tensor_init_string(&text, mr_string_from(complete), error);
        const mr_output input = mr_constant(graph, &all, "names");
        const mr_output result = mr_regex_full_match(graph, input, mr_constant(graph, &text, "pattern"));
        mr_tensor_deinit(&text);
        if (status == MR_OK) status = mr_session_new(graph, nullptr, &session, error);
        if (status == MR_OK)
            status = mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(result), matches, nullptr, 0, error);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "warm_start: pattern %.200s", pattern);
    }
    mr_session_free(session);
    mr_graph_free(graph);
    mr_tensor_deinit(&all);
    mr_arena_deinit(&arena);
    return status;
}

/* Adds the variables of a collection that the pattern matches. */
static mr_status select_pattern(warming *w, const char *collection, const char *pattern, mr_error *error)
{
    const int32_t all = mr_graph_variable_count(w->graph, collection);
    mr_string *names = MR_ARENA_NEW(&w->arena, mr_string, (size_t)all + 1);
    mr_variable *grown = MR_ARENA_NEW(&w->arena, mr_variable, (size_t)w->count + (size_t)all + 1);
    mr_tensor matches = {0};
    if (names == nullptr || grown == nullptr) return mr_fail_memory(error, (size_t)all * sizeof *grown);
    if (pattern == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: a name is null");
    if (all == 0) return MR_OK;
    for (int32_t i = 0; i < all; i++) {
        const char *name =
            mr_arena_printf(&w->arena, "%s:0", mr_node_name(mr_graph_variable(w->graph, collection, i).ref.node));
        if (name == nullptr) return mr_fail_memory(error, 64);
        names[i] = mr_string_from(name);
    }
    MR_TRY(match(names, all, pattern, &matches, error));
    if (w->count > 0) memcpy(grown, w->variables, (size_t)w->count * sizeof *grown);
    const bool *selected = mr_tensor_data(&matches);
    for (int32_t i = 0; i < all; i++)
        if (selected[i]) grown[w->count++] = mr_graph_variable(w->graph, collection, i);
    mr_tensor_deinit(&matches);
    w->variables = grown;
    return MR_OK;
}

static mr_status select_given(warming *w, mr_error *error)
{
    const mr_variables given = w->options->variables;
    int32_t count = 0;
    if (given.items == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: variables is null");
    for (int32_t i = 0; i < given.count; i++) count += mr_variable_parts(w->graph, given.items[i]).count;
    w->variables = MR_ARENA_NEW(&w->arena, mr_variable, (size_t)count + 1);
    if (w->variables == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *w->variables);
    for (int32_t i = 0; i < given.count; i++) {
        const mr_variables parts = mr_variable_parts(w->graph, given.items[i]);
        for (int32_t j = 0; j < parts.count; j++) w->variables[w->count++] = parts.items[j];
        if (parts.count == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: variable %d does not exist", i);
    }
    return MR_OK;
}

static mr_status select_variables(warming *w, mr_error *error)
{
    const mr_warm_start_options *o = w->options;
    const int32_t given = (o->pattern != nullptr) + (o->names.count != 0) + (o->variables.count != 0);
    if (given > 1 || o->names.count < 0 || o->variables.count < 0 || (o->names.count > 0 && o->names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "warm_start: the variables are selected by one of pattern, names and variables");
    if (o->variables.count > 0) return select_given(w, error);
    for (int32_t i = 0; i < o->names.count; i++)
        MR_TRY(select_pattern(w, MR_GLOBAL_VARIABLES, o->names.items[i], error));
    return o->names.count > 0
               ? MR_OK
               : select_pattern(w, MR_TRAINABLE_VARIABLES, o->pattern != nullptr ? o->pattern : ".*", error);
}

/* ---- Names in the checkpoint ---- */

/* The name in the checkpoint of a variable with this key. */
static const char *previous_of(warming *w, const char *key)
{
    const mr_previous_names names = w->options->previous_names;
    const char *previous = key;
    for (int32_t i = 0; i < names.count; i++) {
        if (strcmp(names.items[i].name, key) != 0) continue;
        w->used[i] = true;
        previous = names.items[i].previous;
    }
    return previous;
}

static mr_status check_used(const warming *w, const mr_saver_item *items, int32_t count, mr_error *error)
{
    char text[MR_NEAR_NAMES_SIZE];
    const mr_previous_names names = w->options->previous_names;
    for (int32_t i = 0; i < names.count; i++) {
        if (w->used[i]) continue;
        mr_near_names near = {.name = names.items[i].name};
        for (int32_t j = 0; j < count; j++)
            if (j == 0 || strcmp(items[j].key, items[j - 1].key) != 0) mr_near_names_add(&near, items[j].key);
        return mr_fail(error, MR_NOT_FOUND, "warm_start: previous_names has %.200s, which is not among the variables%s",
                       names.items[i].name, mr_near_names_text(&near, text, sizeof text));
    }
    return MR_OK;
}

/* One assignment for each variable, or for each part of one: parts have the key of their variable. */
static mr_status assign_keys(warming *w, mr_error *error)
{
    mr_output *refs = MR_ARENA_NEW(&w->arena, mr_output, (size_t)w->count + 1);
    int32_t count = 0, item_count = 0;
    w->used = MR_ARENA_NEW(&w->arena, bool, (size_t)w->options->previous_names.count + 1);
    w->assignments = MR_ARENA_NEW(&w->arena, mr_assignment, (size_t)w->count + 1);
    if (refs == nullptr || w->used == nullptr || w->assignments == nullptr)
        return mr_fail_memory(error, (size_t)w->count * sizeof *refs);
    for (int32_t i = 0; i < w->count; i++) {
        bool is_known = false;
        for (int32_t j = 0; j < count; j++) is_known |= refs[j].node == w->variables[i].ref.node;
        if (!is_known) refs[count++] = w->variables[i].ref;
    }
    const mr_saver_options options = {.size = sizeof options, .variables = refs, .variable_count = count};
    const mr_saver_item *items = mr_saver_items_new(w->graph, &w->arena, &options, &item_count);
    if (items == nullptr) return mr_graph_status(w->graph, error);
    for (int32_t i = 0; i < item_count; i++) {
        mr_assignment *a = &w->assignments[i];
        a->from = previous_of(w, items[i].key);
        for (int32_t j = 0; j < w->count; j++)
            if (w->variables[j].ref.node == items[i].ref.node) a->variable = w->variables[j];
    }
    w->count = item_count;
    return check_used(w, items, item_count, error);
}

static mr_status warm(warming *w, const char *checkpoint, mr_error *error)
{
    const mr_previous_names names = w->options->previous_names;
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: previous_names is not a list");
    for (int32_t i = 0; i < names.count; i++)
        if (names.items[i].name == nullptr || names.items[i].previous == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: a name of previous_names is null");
    MR_TRY(select_variables(w, error));
    if (w->count == 0)
        return mr_fail(error, MR_NOT_FOUND, "warm_start: %s%.200s selects no variable",
                       w->options->pattern != nullptr ? "pattern "
                       : w->options->names.count > 0  ? "the list of names"
                                                      : "the graph has no trainable variables: the default",
                       w->options->pattern != nullptr ? w->options->pattern : "");
    MR_TRY(assign_keys(w, error));
    return mr_init_from_checkpoint(w->graph, checkpoint, (mr_assignments){w->assignments, w->count}, error);
}

mr_status mr_warm_start(mr_graph *graph, const char *checkpoint, const mr_warm_start_options *given, mr_error *error)
{
    static const mr_warm_start_options defaults = {.size = sizeof defaults};
    mr_warm_start_options options;
    if (graph == nullptr || checkpoint == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: %s is null", graph == nullptr ? "graph" : "checkpoint");
    MR_TRY(mr_graph_status(graph, error));
    MR_TRY(MR_OPTIONS_READ(mr_warm_start_options, &options, given != nullptr ? given : &defaults, error));
    warming w = {.graph = graph, .options = &options};
    const mr_status status = warm(&w, checkpoint, error);
    mr_arena_deinit(&w.arena);
    return status;
}
