/* Variable scopes, as tf.compat.v1.variable_scope: a stack of scopes beside the stack of name scopes, and the number of
 * scopes of each name, from which default names become unique. */
#include "base/options.h"
#include "graph/train/variable_store.h"

#include <assert.h>
#include <string.h>

/* ---- The store ---- */

mr_variable_store *mr_variable_store_of(mr_graph *graph)
{
    if (graph->variable_store != nullptr) return graph->variable_store;
    mr_variable_store *store = MR_ARENA_NEW(&graph->arena, mr_variable_store, 1);
    if (store == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for variables");
        return nullptr;
    }
    *store = (mr_variable_store){0};
    store->root = (mr_variable_scope){.graph = graph, .name = "", .name_scope = "", .use_resource = MR_INHERIT};
    graph->variable_store = store;
    return store;
}

mr_variable_scope *mr_variable_store_scope(mr_variable_store *store)
{
    return store->frame_count > 0 ? store->frames[store->frame_count - 1].scope : &store->root;
}

mr_stored_variable *mr_variable_store_find(const mr_graph *graph, const char *name)
{
    int32_t index = mr_name_table_get(&graph->variable_names, name, -1);
    return index < 0 ? nullptr : &graph->variable_store->variables[index];
}

bool mr_variable_store_add(mr_graph *graph, mr_stored_variable variable)
{
    mr_variable_store *store = mr_variable_store_of(graph);
    if (store == nullptr || graph->status != MR_OK) return false;
    mr_stored_variable *variables =
        mr_graph_grow(graph, store->variables, store->variable_count, sizeof *store->variables);
    mr_error error = {0};
    if (variables == nullptr ||
        mr_name_table_set(&graph->variable_names, variable.name, store->variable_count, &error) != MR_OK) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for variable %s", variable.name);
        return false;
    }
    store->variables = variables;
    variables[store->variable_count++] = variable;
    return true;
}

void mr_variable_set_initializer(mr_graph *graph, mr_output ref, mr_node *initializer, mr_output initial_value)
{
    for (int32_t i = 0; i < graph->collection_count; i++) {
        const mr_collection *c = &graph->collections[i];
        for (int32_t j = 0; c->kind == MR_COLLECTION_VARIABLES && j < c->count; j++) {
            if (c->variables[j].ref.node != ref.node) continue;
            c->variables[j].initializer = initializer;
            c->variables[j].initial_value = initial_value;
        }
    }
    const mr_variable_store *store = graph->variable_store;
    for (int32_t i = 0; store != nullptr && i < store->variable_count; i++) {
        mr_stored_variable *s = &store->variables[i];
        mr_variable *variables = s->parts != nullptr ? s->parts : &s->variable;
        for (int32_t j = 0; j < (s->parts != nullptr ? s->part_count : 1); j++) {
            if (variables[j].ref.node != ref.node) continue;
            variables[j].initializer = initializer;
            variables[j].initial_value = initial_value;
        }
    }
}

mr_node *mr_variable_initializer_of(const mr_graph *graph, mr_variable variable)
{
    for (int32_t i = 0; i < graph->collection_count; i++) {
        const mr_collection *c = &graph->collections[i];
        for (int32_t j = 0; c->kind == MR_COLLECTION_VARIABLES && j < c->count; j++)
            if (c->variables[j].ref.node == variable.ref.node) return c->variables[j].initializer;
    }
    return variable.initializer;
}

mr_variables mr_variable_parts(mr_graph *graph, mr_variable variable)
{
    if (graph == nullptr || graph->status != MR_OK || variable.value.node == nullptr) return (mr_variables){0};
    const mr_variable_store *store = graph->variable_store;
    for (int32_t i = 0; store != nullptr && i < store->variable_count; i++) {
        const mr_stored_variable *stored = &store->variables[i];
        if (stored->parts != nullptr && stored->variable.value.node == variable.value.node)
            return (mr_variables){stored->parts, stored->part_count};
    }
    mr_variable *copy = MR_ARENA_NEW(&graph->arena, mr_variable, 1);
    if (copy == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a variable");
        return (mr_variables){0};
    }
    *copy = variable;
    return (mr_variables){copy, 1};
}

/* ---- Numbers of scopes ---- */

static mr_scope_count *find_count(const mr_variable_store *store, const char *name)
{
    for (int32_t i = 0; i < store->count_count; i++)
        if (strcmp(store->counts[i].name, name) == 0) return &store->counts[i];
    return nullptr;
}

static bool count_scope(mr_graph *graph, mr_variable_store *store, const char *name)
{
    mr_scope_count *found = find_count(store, name);
    if (found != nullptr) {
        found->count++;
        return true;
    }
    mr_scope_count *counts = mr_graph_grow(graph, store->counts, store->count_count, sizeof *counts);
    if (counts == nullptr) return false;
    store->counts = counts;
    counts[store->count_count++] = (mr_scope_count){name, 1};
    return true;
}

/* The names inside a scope start again when it ends. */
static void forget_inner_scopes(mr_variable_store *store, const char *name)
{
    size_t length = strlen(name);
    for (int32_t i = 0; i < store->count_count; i++) {
        const char *other = store->counts[i].name;
        if (strncmp(other, name, length) == 0 && other[length] == '/') store->counts[i].count = 0;
    }
}

static bool is_taken(const mr_variable_store *store, const char *name)
{
    const mr_scope_count *count = find_count(store, name);
    return count != nullptr && count->count > 0;
}

/* "outer/name", null without memory. */
static const char *join(mr_graph *graph, const char *outer, const char *name)
{
    return *outer == '\0' ? mr_arena_strdup(&graph->arena, name) : mr_arena_printf(&graph->arena, "%s/%s", outer, name);
}

static const char *unique_name(mr_graph *graph, const mr_variable_store *store, const char *outer, const char *prefix)
{
    const char *plain = join(graph, outer, prefix), *name = plain;
    for (int32_t i = 1; name != nullptr && is_taken(store, name); i++)
        name = mr_arena_printf(&graph->arena, "%s_%d", plain, i);
    return name;
}

const char *mr_variable_scope_free_name(mr_graph *graph, const char *default_name)
{
    mr_variable_store *store = mr_variable_store_of(graph);
    if (store == nullptr) return default_name;
    const char *outer = mr_variable_store_scope(store)->name;
    const char *name = unique_name(graph, store, outer, default_name);
    if (name == nullptr) return default_name;
    return *outer == '\0' ? name : name + strlen(outer) + 1;
}

/* ---- Scopes ---- */

/* Options replace what the scope has from the enclosing one. */
static bool apply_options(mr_graph *graph, mr_variable_scope *scope, const mr_variable_scope_options *options)
{
    if (!mr_initializer_is_omitted(&options->initializer)) scope->initializer = options->initializer;
    if (options->regularizer.l1 != 0 || options->regularizer.l2 != 0) scope->regularizer = options->regularizer;
    if (options->partitioner.kind != MR_PARTITION_DEFAULT) scope->partitioner = options->partitioner;
    if (options->dtype != MR_DTYPE_INVALID) scope->dtype = options->dtype;
    if (options->use_resource != MR_INHERIT) scope->use_resource = options->use_resource;
    if (options->constraint != nullptr) scope->constraint = options->constraint;
    if (options->caching_device != nullptr) {
        scope->caching_device = mr_arena_strdup(&graph->arena, options->caching_device);
        if (scope->caching_device == nullptr) return false;
    }
    if (options->custom_getter == nullptr) return true;
    mr_variable_getter_ *getter = MR_ARENA_NEW(&graph->arena, mr_variable_getter_, 1);
    if (getter == nullptr) return false;
    *getter = (mr_variable_getter_){options->custom_getter, options->getter_context, scope->getter};
    scope->getter = getter;
    return true;
}

static const char *wrong_options(const mr_graph *graph, const char *name, const mr_variable_scope_options *options)
{
    int given = (name != nullptr) + (options->scope != nullptr);
    if (given == 2) return "name and scope are both given, but only one may be";
    if (given == 0 && options->default_name == nullptr) return "a name, a default_name or a scope is required";
    if (given == 0 && options->reuse != MR_REUSE_NONE) return "reuse has no effect with a default_name, which is new";
    if ((unsigned)options->reuse > MR_AUTO_REUSE) return "reuse is not one of mr_reuse";
    if (options->scope != nullptr && options->scope->graph != graph) return "the scope belongs to another graph";
    if (options->use_resource < MR_INHERIT || options->use_resource > 1)
        return "use_resource must be true, false or MR_INHERIT";
    if (options->getter_context != nullptr && options->custom_getter == nullptr)
        return "getter_context has no effect without a custom_getter";
    return nullptr;
}

/* Opens the name scope. Returns false if there is none. */
static bool push_name_scope(mr_graph *graph, const char *name, const mr_variable_scope_options *options)
{
    if (options->no_auxiliary_name_scope) return false;
    if (options->scope != nullptr) {
        const char *slash = strrchr(options->scope->name, '/');
        name = slash != nullptr ? slash + 1 : options->scope->name;
    }
    if (*name == '\0') return false;
    mr_graph_push_scope(graph, name);
    return true;
}

static mr_variable_scope *new_scope(mr_graph *graph, mr_variable_store *store, const char *name,
                                    const mr_variable_scope_options *options)
{
    const mr_variable_scope *outer = mr_variable_store_scope(store);
    mr_variable_scope *scope = MR_ARENA_NEW(&graph->arena, mr_variable_scope, 1);
    if (scope == nullptr) return nullptr;
    *scope = options->scope != nullptr ? *options->scope : *outer;
    if (options->reuse != MR_REUSE_NONE) scope->reuse = options->reuse;
    if (options->scope == nullptr) {
        const char *plain = name != nullptr ? name : options->default_name;
        /* A scope of an empty name adds nothing to the names of its variables. */
        scope->name = name == nullptr  ? unique_name(graph, store, outer->name, plain)
                      : *plain == '\0' ? outer->name
                                       : join(graph, outer->name, plain);
        scope->name_scope = mr_graph_scope(graph);
    }
    return scope->name != nullptr && apply_options(graph, scope, options) ? scope : nullptr;
}

/* A frame is pushed in any case, so that push and pop stay paired after an error. */
static void push_frame(mr_graph *graph, mr_variable_store *store, mr_scope_frame frame)
{
    mr_scope_frame *frames = mr_graph_grow(graph, store->frames, store->frame_count, sizeof *frames);
    if (frames == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a variable scope");
        if (frame.has_name_scope) mr_graph_pop_scope(graph);
        return;
    }
    store->frames = frames;
    frames[store->frame_count++] = frame;
}

static bool keep_counts(mr_graph *graph, const mr_variable_store *store, mr_scope_frame *frame)
{
    frame->counts = MR_ARENA_NEW(&graph->arena, mr_scope_count, (size_t)store->count_count + 1);
    if (frame->counts == nullptr) return false;
    if (store->count_count > 0)
        memcpy(frame->counts, store->counts, (size_t)store->count_count * sizeof *store->counts);
    frame->count_count = store->count_count;
    return true;
}

const mr_variable_scope *mr_graph_push_variable_scope_(mr_graph *graph, const char *name,
                                                       const mr_variable_scope_options *given)
{
    static const mr_variable_scope_options defaults = {.size = sizeof defaults, MR_VARIABLE_SCOPE_DEFAULTS};
    if (graph == nullptr) return nullptr;
    mr_variable_store *store = mr_variable_store_of(graph);
    if (store == nullptr) return nullptr;
    mr_variable_scope_options options;
    mr_error error = {0};
    mr_status status =
        MR_OPTIONS_READ(mr_variable_scope_options, &options, given != nullptr ? given : &defaults, &error);
    const char *wrong = status != MR_OK ? error.message : wrong_options(graph, name, &options);
    mr_scope_frame frame = {.scope = mr_variable_store_scope(store)};
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable scope %s: %s", name != nullptr ? name : "", wrong);
    } else {
        frame.has_name_scope = push_name_scope(graph, name != nullptr ? name : options.default_name, &options);
        mr_variable_scope *scope = new_scope(graph, store, name, &options);
        bool done = scope != nullptr && count_scope(graph, store, scope->name) &&
                    (options.scope == nullptr || keep_counts(graph, store, &frame));
        if (done)
            frame.scope = scope;
        else
            (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a variable scope");
    }
    push_frame(graph, store, frame);
    return frame.scope;
}

void mr_graph_pop_variable_scope(mr_graph *graph)
{
    if (graph == nullptr) return;
    mr_variable_store *store = graph->variable_store;
    if (!mr_graph_check_open(graph, store != nullptr ? store->frame_count : 0, graph->floor.variables,
                             "mr_graph_pop_variable_scope", "variable scope"))
        return;
    assert(store != nullptr);
    mr_scope_frame frame = store->frames[--store->frame_count];
    if (frame.counts != nullptr) {
        /* The next scope must not be added behind the end of the copy. */
        mr_scope_count *counts = MR_ARENA_NEW(&graph->arena, mr_scope_count, 2 * (size_t)frame.count_count + 2);
        if (counts != nullptr) memcpy(counts, frame.counts, (size_t)frame.count_count * sizeof *counts);
        store->counts = counts;
        store->count_count = counts != nullptr ? frame.count_count : 0;
    } else {
        forget_inner_scopes(store, frame.scope->name);
    }
    if (frame.has_name_scope) mr_graph_pop_scope(graph);
}

const mr_variable_scope *mr_graph_variable_scope(mr_graph *graph)
{
    mr_variable_store *store = graph != nullptr ? mr_variable_store_of(graph) : nullptr;
    return store != nullptr ? mr_variable_store_scope(store) : nullptr;
}

void mr_graph_reuse_variables(mr_graph *graph)
{
    mr_variable_store *store = graph != nullptr ? mr_variable_store_of(graph) : nullptr;
    if (store != nullptr) mr_variable_store_scope(store)->reuse = MR_REUSE;
}

const char *mr_variable_scope_name(const mr_variable_scope *scope)
{
    return scope != nullptr ? scope->name : "";
}

const char *mr_variable_scope_name_scope(const mr_variable_scope *scope)
{
    return scope != nullptr ? scope->name_scope : "";
}

mr_reuse mr_variable_scope_reuse(const mr_variable_scope *scope)
{
    return scope != nullptr ? scope->reuse : MR_REUSE_NONE;
}
