/* Warm starts: the variables that a regular expression or a list selects, under their names in the checkpoint. */
#include "graph/train/warm_start.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/train/near_names.h"
#include <millrace/ops.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct warming {
    mr_graph *graph;
    mr_arena arena;
    const mr_warm_start_options *options;
    mr_variable *variables;
    int32_t count;
    mr_assignment *assignments;
    int32_t assignment_count;
    const mr_saver_item *items;
    const char **keys;              /* in the checkpoint, one for each item */
    const mr_vocab_info **vocabs;   /* one for each item; null: it has no vocabulary */
    bool *used_names, *used_vocabs; /* previous_names, vocab_infos */
} warming;

/* ---- Selection ---- */

/* Whether the regular expression matches each complete name. A graph of its own evaluates the operator. */
static mr_status match_complete(const mr_string *names, int32_t count, const char *regex, mr_tensor *matches,
                                mr_error *error)
{
    mr_tensor all = {0};
    mr_session *session = nullptr;
    mr_graph *graph = mr_graph_create();
    mr_status status = graph != nullptr ? MR_OK : mr_fail_memory(error, strlen(regex));
    if (status == MR_OK) status = mr_tensor_init_strings(&all, MR_SHAPE(count), names, error);
    if (status == MR_OK) {
        mr_tensor text = {0};
        status = mr_tensor_init_string(&text, mr_string_from(regex), error);
        const mr_output input = mr_constant(graph, &all, "names");
        const mr_output result = mr_regex_full_match(graph, input, mr_constant(graph, &text, "pattern"));
        mr_tensor_deinit(&text);
        if (status == MR_OK) status = mr_session_new(graph, nullptr, &session, error);
        if (status == MR_OK)
            status = mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(result), matches, nullptr, 0, error);
    }
    mr_session_free(session);
    mr_graph_free(graph);
    mr_tensor_deinit(&all);
    return status;
}

/* Whether the pattern matches the beginning of each name. The pattern is evaluated alone first: errors quote it and not
 * the expression that contains it, and "a)(b" is refused. */
static mr_status match(const mr_string *names, int32_t count, const char *pattern, mr_tensor *matches, mr_error *error)
{
    mr_arena arena = {0};
    mr_tensor ignored = {0};
    const char *complete = mr_arena_printf(&arena, "(?s:(?:%s).*)", pattern);
    mr_status status = complete != nullptr ? MR_OK : mr_fail_memory(error, strlen(pattern));
    if (status == MR_OK) status = match_complete(names, count, pattern, &ignored, error);
    if (status == MR_OK) status = match_complete(names, count, complete, matches, error);
    if (status != MR_OK) status = mr_fail_prefix(error, status, "warm_start: pattern %.200s", pattern);
    mr_tensor_deinit(&ignored);
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
    assert(w->count == count);
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
        w->used_names[i] = true;
        previous = names.items[i].previous;
    }
    return previous;
}

static const mr_vocab_info *vocab_of(warming *w, const char *key)
{
    const mr_vocab_infos infos = w->options->vocab_infos;
    for (int32_t i = 0; i < infos.count; i++) {
        if (strcmp(infos.items[i].name, key) != 0) continue;
        w->used_vocabs[i] = true;
        return &infos.items[i];
    }
    return nullptr;
}

static mr_status not_among(const warming *w, const char *option, const char *name, mr_error *error)
{
    char text[MR_NEAR_NAMES_SIZE];
    mr_near_names near = {.name = name};
    for (int32_t j = 0; j < w->count; j++)
        if (j == 0 || strcmp(w->items[j].key, w->items[j - 1].key) != 0) mr_near_names_add(&near, w->items[j].key);
    return mr_fail(error, MR_NOT_FOUND, "warm_start: %s has %.200s, which is not among the variables%s", option, name,
                   mr_near_names_text(&near, text, sizeof text));
}

static mr_status check_used(const warming *w, mr_error *error)
{
    const mr_previous_names names = w->options->previous_names;
    const mr_vocab_infos infos = w->options->vocab_infos;
    for (int32_t i = 0; i < names.count; i++)
        if (!w->used_names[i]) return not_among(w, "previous_names", names.items[i].name, error);
    for (int32_t i = 0; i < infos.count; i++)
        if (!w->used_vocabs[i]) return not_among(w, "vocab_infos", infos.items[i].name, error);
    return MR_OK;
}

/* The key of each variable, or of each part of one: parts have the key of their variable. Variables without a
 * vocabulary are assignments. */
static mr_status assign_keys(warming *w, mr_error *error)
{
    const size_t size = (size_t)w->count + 1;
    mr_output *refs = MR_ARENA_NEW(&w->arena, mr_output, size);
    int32_t count = 0, item_count = 0;
    w->used_names = MR_ARENA_NEW(&w->arena, bool, (size_t)w->options->previous_names.count + 1);
    w->used_vocabs = MR_ARENA_NEW(&w->arena, bool, (size_t)w->options->vocab_infos.count + 1);
    w->assignments = MR_ARENA_NEW(&w->arena, mr_assignment, size);
    w->keys = MR_ARENA_NEW(&w->arena, const char *, size);
    w->vocabs = MR_ARENA_NEW(&w->arena, const mr_vocab_info *, size);
    if (refs == nullptr || w->used_names == nullptr || w->used_vocabs == nullptr || w->assignments == nullptr ||
        w->keys == nullptr || w->vocabs == nullptr)
        return mr_fail_memory(error, size * sizeof *refs);
    for (int32_t i = 0; i < w->count; i++) {
        bool is_known = false;
        for (int32_t j = 0; j < count; j++) is_known |= refs[j].node == w->variables[i].ref.node;
        if (!is_known) refs[count++] = w->variables[i].ref;
    }
    const mr_saver_options options = {.size = sizeof options, .variables = refs, .variable_count = count};
    w->items = mr_saver_items_new(w->graph, &w->arena, &options, &item_count);
    if (w->items == nullptr) return mr_graph_status(w->graph, error);
    for (int32_t i = 0; i < item_count; i++) {
        w->keys[i] = previous_of(w, w->items[i].key);
        w->vocabs[i] = vocab_of(w, w->items[i].key);
        if (w->vocabs[i] != nullptr) continue;
        mr_assignment *a = &w->assignments[w->assignment_count++];
        a->from = w->keys[i];
        for (int32_t j = 0; j < w->count; j++)
            if (w->variables[j].ref.node == w->items[i].ref.node) a->variable = w->variables[j];
    }
    assert(item_count == count && w->assignment_count <= item_count);
    w->count = item_count;
    return check_used(w, error);
}

/* ---- Vocabularies ---- */

static mr_status check_options(const mr_warm_start_options *o, mr_error *error)
{
    const mr_previous_names names = o->previous_names;
    const mr_vocab_infos infos = o->vocab_infos;
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: previous_names is not a list");
    if (infos.count < 0 || (infos.count > 0 && infos.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: vocab_infos is not a list");
    for (int32_t i = 0; i < names.count; i++) {
        if (names.items[i].name == nullptr || names.items[i].previous == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: a name of previous_names is null");
        for (int32_t j = 0; j < i; j++)
            if (strcmp(names.items[i].name, names.items[j].name) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: previous_names has %.200s twice",
                               names.items[i].name);
    }
    for (int32_t i = 0; i < infos.count; i++) {
        if (infos.items[i].name == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: a name of vocab_infos is null");
        for (int32_t j = 0; j < i; j++)
            if (strcmp(infos.items[i].name, infos.items[j].name) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: vocab_infos has %.200s twice",
                               infos.items[i].name);
    }
    return MR_OK;
}

/* Checks all vocabularies before the graph is changed. path: receives the checkpoint's */
static mr_status check_vocabs(const warming *w, const char *checkpoint, char *path, size_t size, mr_error *error)
{
    mr_checkpoint_reader *reader = nullptr;
    if (w->options->vocab_infos.count == 0) return MR_OK;
    mr_status status = mr_warm_start_open(checkpoint, path, size, &reader, error);
    for (int32_t i = 0; i < w->count && status == MR_OK; i++)
        if (w->vocabs[i] != nullptr)
            status = mr_warm_start_vocab_check(w->vocabs[i], &w->items[i], w->keys[i], reader, path, error);
    mr_checkpoint_reader_close(reader);
    return status;
}

/* Outside of the caller's scopes, as a change of variables that exist already. */
static mr_status apply_vocabs(const warming *w, const char *path, mr_error *error)
{
    mr_graph_push_control_dependencies(w->graph, nullptr, 0);
    for (int32_t i = 0; i < w->count; i++)
        if (w->vocabs[i] != nullptr) mr_warm_start_vocab(w->graph, w->vocabs[i], &w->items[i], w->keys[i], path);
    mr_graph_pop_control_dependencies(w->graph);
    return mr_graph_status(w->graph, error);
}

static mr_status warm(warming *w, const char *checkpoint, mr_error *error)
{
    char path[4096] = "";
    MR_TRY(check_options(w->options, error));
    MR_TRY(select_variables(w, error));
    if (w->count == 0)
        return mr_fail(error, MR_NOT_FOUND, "warm_start: %s%.200s selects no variable",
                       w->options->pattern != nullptr ? "pattern "
                       : w->options->names.count > 0  ? "the list of names"
                                                      : "the graph has no trainable variables: the default",
                       w->options->pattern != nullptr ? w->options->pattern : "");
    MR_TRY(assign_keys(w, error));
    MR_TRY(check_vocabs(w, checkpoint, path, sizeof path, error));
    if (w->assignment_count > 0)
        MR_TRY(mr_init_from_checkpoint(w->graph, checkpoint, (mr_assignments){w->assignments, w->assignment_count},
                                       error));
    return apply_vocabs(w, path, error);
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
