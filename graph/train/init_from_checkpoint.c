/* Initializers that restore: tf.train.init_from_checkpoint. First every assignment is resolved to variables and keys
 * and checked against the checkpoint; only then are nodes added and initializers replaced. */
#include "graph/train/near_names.h"
#include "graph/train/variable_store.h"
#include "graph/train/warm_start.h"
#include <millrace/ops.h>

#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One variable, or the parts of one, and its key. */
typedef struct target {
    const char *key;
    mr_saver_item *items;
    int32_t count;
} target;

typedef struct restoring {
    mr_graph *graph;
    mr_arena arena;
    char path[4096]; /* of the checkpoint */
    mr_checkpoint_reader *reader;
    target *targets;
    int32_t count;
    int32_t capacity;
} restoring;

/* ---- The checkpoint ---- */

mr_status mr_warm_start_open(const char *checkpoint, char *path, size_t size, mr_checkpoint_reader **reader,
                             mr_error *error)
{
    struct stat about;
    const size_t length = strlen(checkpoint);
    if (stat(checkpoint, &about) == 0 && S_ISDIR(about.st_mode)) {
        MR_TRY(mr_latest_checkpoint(checkpoint, path, size, error));
    } else if (length >= size) {
        return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: the path is too long", checkpoint);
    } else {
        memcpy(path, checkpoint, length + 1);
    }
    return mr_checkpoint_reader_open(path, reader, error);
}

static mr_status missing_key(const restoring *r, const char *key, const char *variable, mr_error *error)
{
    char text[MR_NEAR_NAMES_SIZE];
    mr_near_names near = {.name = key};
    for (int32_t i = 0; i < mr_checkpoint_count(r->reader); i++)
        mr_near_names_add(&near, mr_checkpoint_key(r->reader, i, nullptr, nullptr));
    return mr_fail(error, MR_NOT_FOUND, "%s has no key %.200s, from which %.200s is initialized%s", r->path, key,
                   variable, mr_near_names_text(&near, text, sizeof text));
}

static mr_status missing_variable(const restoring *r, const char *name, const char *reason, mr_error *error)
{
    char text[MR_NEAR_NAMES_SIZE];
    mr_near_names near = {.name = name};
    const mr_variable_store *store = r->graph->variable_store;
    for (int32_t i = 0; store != nullptr && i < store->variable_count; i++)
        mr_near_names_add(&near, store->variables[i].name);
    return mr_fail(error, MR_NOT_FOUND, "init_from_checkpoint: %s %.200s%s", reason, name,
                   mr_near_names_text(&near, text, sizeof text));
}

static mr_status check_item(const restoring *r, const mr_saver_item *item, const char *key, mr_error *error)
{
    char ours[MR_SHAPE_TEXT_SIZE], theirs[MR_SHAPE_TEXT_SIZE];
    const mr_shape wanted = item->is_slice ? item->full : item->shape;
    for (int32_t i = 0; i < mr_checkpoint_count(r->reader); i++) {
        mr_dtype dtype;
        mr_shape shape;
        if (strcmp(mr_checkpoint_key(r->reader, i, &dtype, &shape), key) != 0) continue;
        if (dtype == item->dtype && mr_shape_compatible(shape, wanted)) return MR_OK;
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s is %s %s in the graph, but %.200s is %s %s", r->path,
                       mr_node_name(item->ref.node), mr_dtype_name(item->dtype),
                       mr_shape_text(wanted, ours, sizeof ours), key, mr_dtype_name(dtype),
                       mr_shape_text(shape, theirs, sizeof theirs));
    }
    return missing_key(r, key, mr_node_name(item->ref.node), error);
}

/* ---- Resolving ---- */

/* Adds a target: the key, and a variable or its parts. */
static mr_status add_target(restoring *r, const char *key, const mr_variable *parts, int32_t count, const char *name,
                            mr_error *error)
{
    if (!mr_checkpoint_has(r->reader, key)) return missing_key(r, key, name, error);
    mr_output *refs = MR_ARENA_NEW(&r->arena, mr_output, (size_t)count + 1);
    const char **keys = MR_ARENA_NEW(&r->arena, const char *, (size_t)count + 1);
    if (r->count == r->capacity) {
        const int32_t capacity = r->capacity * 2 + 16;
        target *grown = MR_ARENA_NEW(&r->arena, target, (size_t)capacity);
        if (grown == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *grown);
        if (r->count > 0) memcpy(grown, r->targets, (size_t)r->count * sizeof *grown);
        r->targets = grown;
        r->capacity = capacity;
    }
    if (refs == nullptr || keys == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *refs);
    for (int32_t i = 0; i < count; i++) {
        refs[i] = parts[i].ref;
        keys[i] = key;
        if (refs[i].node != nullptr && refs[i].node->graph != r->graph)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "init_from_checkpoint: the variable for %.200s is not of this graph", key);
    }
    const mr_saver_options options = {.size = sizeof options, .variables = refs, .variable_count = count, .keys = keys};
    target *added = &r->targets[r->count];
    added->key = key;
    added->items = mr_saver_items_new(r->graph, &r->arena, &options, &added->count);
    if (added->items == nullptr) return mr_graph_status(r->graph, error);
    for (int32_t i = 0; i < added->count; i++) MR_TRY(check_item(r, &added->items[i], key, error));
    r->count++;
    return MR_OK;
}

static mr_status add_stored(restoring *r, const char *key, const mr_stored_variable *stored, mr_error *error)
{
    return stored->parts != nullptr ? add_target(r, key, stored->parts, stored->part_count, stored->name, error)
                                    : add_target(r, key, &stored->variable, 1, stored->name, error);
}

static int by_name(const void *a, const void *b)
{
    const mr_stored_variable *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* A part of a partitioned variable, which is an entry of its own. */
static bool is_part(const mr_graph *graph, const char *name, mr_arena *arena)
{
    const char *end = strstr(name, "/part_");
    const char *whole = end != nullptr ? mr_arena_strndup(arena, name, (size_t)(end - name)) : nullptr;
    const mr_stored_variable *found = whole != nullptr ? mr_variable_store_find(graph, whole) : nullptr;
    return found != nullptr && found->parts != nullptr;
}

/* Assigns "old/" to "new/". */
static mr_status add_scope(restoring *r, const mr_assignment *a, mr_error *error)
{
    const mr_variable_store *store = r->graph->variable_store;
    const int32_t all = store != nullptr ? store->variable_count : 0;
    const char *scope = strcmp(a->to, "/") == 0 ? "" : a->to, *from = strcmp(a->from, "/") == 0 ? "" : a->from;
    const mr_stored_variable **found = MR_ARENA_NEW(&r->arena, const mr_stored_variable *, (size_t)all + 1);
    int32_t count = 0;
    if (found == nullptr) return mr_fail_memory(error, (size_t)all * sizeof *found);
    for (int32_t i = 0; i < all; i++)
        if (strncmp(store->variables[i].name, scope, strlen(scope)) == 0 &&
            !is_part(r->graph, store->variables[i].name, &r->arena))
            found[count++] = &store->variables[i];
    if (count == 0) return missing_variable(r, a->to, "no variable is in the scope", error);
    qsort(found, (size_t)count, sizeof *found, by_name);
    for (int32_t i = 0; i < count; i++) {
        const char *key = mr_arena_printf(&r->arena, "%s%s", from, found[i]->name + strlen(scope));
        if (key == nullptr) return mr_fail_memory(error, strlen(found[i]->name));
        MR_TRY(add_stored(r, key, found[i], error));
    }
    return MR_OK;
}

static bool is_scope(const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && name[length - 1] == '/';
}

static mr_status add_assignment(restoring *r, const mr_assignment *a, mr_error *error)
{
    if (a->from == nullptr || *a->from == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "init_from_checkpoint: an assignment has no key of the checkpoint");
    if (a->to == nullptr) {
        const mr_variables parts = mr_variable_parts(r->graph, a->variable);
        if (a->variable.ref.node != nullptr) return add_target(r, a->from, &a->variable, 1, a->from, error);
        if (parts.count > 0 && parts.items[0].ref.node != nullptr)
            return add_target(r, a->from, parts.items, parts.count, a->from, error);
        return mr_fail(error, MR_INVALID_ARGUMENT, "init_from_checkpoint: %.200s is assigned to nothing", a->from);
    }
    if (a->variable.value.node != nullptr || a->variable.ref.node != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "init_from_checkpoint: %.200s is assigned to both %.200s and a variable", a->from, a->to);
    const mr_stored_variable *stored = mr_variable_store_find(r->graph, a->to);
    if (is_scope(a->from) != is_scope(a->to))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "init_from_checkpoint: \"%.200s\" is assigned to \"%.200s\", but a scope, which ends with /, "
                       "can only be assigned to a scope",
                       a->from, a->to);
    if (is_scope(a->to)) return add_scope(r, a, error);
    return stored != nullptr ? add_stored(r, a->from, stored, error)
                             : missing_variable(r, a->to, "there is no variable", error);
}

static int by_key(const void *a, const void *b)
{
    const mr_assignment *const *x = a, *const *y = b;
    const int order = strcmp((*x)->from != nullptr ? (*x)->from : "", (*y)->from != nullptr ? (*y)->from : "");
    return order != 0 ? order : *x < *y ? -1 : 1;
}

static mr_status resolve(restoring *r, mr_assignments assignments, mr_error *error)
{
    const mr_assignment **order = MR_ARENA_NEW(&r->arena, const mr_assignment *, (size_t)assignments.count);
    if (order == nullptr) return mr_fail_memory(error, (size_t)assignments.count * sizeof *order);
    for (int32_t i = 0; i < assignments.count; i++) order[i] = &assignments.items[i];
    qsort(order, (size_t)assignments.count, sizeof *order, by_key);
    for (int32_t i = 0; i < assignments.count; i++) MR_TRY(add_assignment(r, order[i], error));
    return MR_OK;
}

/* ---- The nodes ---- */

static mr_output string_vector(mr_graph *graph, const char *text, const char *name)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    const mr_string value = mr_string_from(text);
    const mr_status status = mr_tensor_init_strings(&tensor, MR_SHAPE(1), &value, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    const mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

static mr_output restore(restoring *r, const target *t, const mr_saver_item *item)
{
    mr_graph *graph = r->graph;
    mr_tensor path = {0};
    mr_error error = {0};
    const mr_status status = mr_tensor_init_string(&path, mr_string_from(r->path), &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    /* RestoreV2 runs on the CPU of the variable's machine; the variable may be elsewhere. */
    mr_graph_push_device(graph, mr_node_device(item->ref.node));
    mr_graph_push_device(graph, "/device:CPU:0");
    mr_graph_push_scope(graph, "checkpoint_initializer");
    const mr_output prefix = mr_constant(graph, &path, "prefix");
    mr_tensor_deinit(&path);
    const mr_output keys = string_vector(graph, t->key, "tensor_names");
    const mr_output slices = string_vector(graph, item->is_slice ? item->spec.data : "", "shape_and_slices");
    const mr_output_range values =
        mr_restore_v2(graph, prefix, keys, slices, .dtypes = MR_DTYPES(item->dtype), .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    const mr_output value = mr_output_at(values, 0);
    mr_graph_pop_device(graph);
    mr_graph_pop_device(graph);
    if (graph->status == MR_OK) mr_output_set_shape(value, item->shape);
    return value;
}

void mr_warm_start_assign(mr_graph *graph, const mr_saver_item *item, mr_output value)
{
    mr_graph_push_device(graph, mr_node_device(item->ref.node));
    mr_node *node = item->is_resource ? mr_assign_variable_op(graph, item->ref, mr_identity(graph, value))
                                      : mr_assign(graph, item->ref, value).node;
    mr_graph_pop_device(graph);
    if (graph->status == MR_OK) mr_variable_set_initializer(graph, item->ref, node, value);
}

/* Outside of the caller's scopes, as a change of variables that exist already. */
static mr_status make_nodes(restoring *r, mr_error *error)
{
    mr_graph *graph = r->graph;
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    for (int32_t i = 0; i < r->count; i++)
        for (int32_t j = 0; j < r->targets[i].count; j++) {
            const mr_saver_item *item = &r->targets[i].items[j];
            mr_warm_start_assign(graph, item, restore(r, &r->targets[i], item));
        }
    mr_graph_pop_control_dependencies(graph);
    return mr_graph_status(graph, error);
}

mr_status mr_init_from_checkpoint(mr_graph *graph, const char *checkpoint, mr_assignments assignments, mr_error *error)
{
    if (graph == nullptr || checkpoint == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "init_from_checkpoint: %s is null",
                       graph == nullptr ? "graph" : "checkpoint");
    MR_TRY(mr_graph_status(graph, error));
    if (assignments.items == nullptr || assignments.count <= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "init_from_checkpoint: there are no assignments");
    restoring *r = calloc(1, sizeof *r);
    if (r == nullptr) return mr_fail_memory(error, sizeof *r);
    r->graph = graph;
    mr_status status = mr_warm_start_open(checkpoint, r->path, sizeof r->path, &r->reader, error);
    if (status == MR_OK) status = resolve(r, assignments, error);
    mr_checkpoint_reader_close(r->reader);
    if (status == MR_OK) status = make_nodes(r, error);
    mr_arena_deinit(&r->arena);
    free(r);
    return status;
}
