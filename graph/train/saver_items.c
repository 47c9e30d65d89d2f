#include "graph/train/saver_items.h"
#include "proto/meta_graph.pb-c.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The variable of a reference or handle, and the serialized fields that say which slice it is. */
static mr_variable find_variable(const mr_graph *graph, mr_output ref, mr_string *rest)
{
    *rest = (mr_string){0};
    for (int32_t i = 0; i < graph->collection_count; i++) {
        const mr_collection *c = &graph->collections[i];
        for (int32_t j = 0; c->kind == MR_COLLECTION_VARIABLES && j < c->count; j++) {
            if (c->variables[j].ref.node != ref.node) continue;
            *rest = c->rest[j];
            return c->variables[j];
        }
    }
    return (mr_variable){.ref = ref};
}

static bool take_sizes(int64_t *sizes, int32_t rank, size_t count, const int64_t *given)
{
    if (count != (size_t)rank) return false;
    for (int32_t i = 0; i < rank; i++) sizes[i] = given[i];
    return true;
}

/* "10 4 0,5:0,4" */
static const char *spec_of(mr_arena *arena, const mr_saver_item *item)
{
    char text[64 * MR_RANK_MAX] = "";
    size_t used = 0;
    for (int32_t i = 0; i < item->full.rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%lld ", (long long)item->full.dims[i]);
    for (int32_t i = 0; i < item->full.rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld,%lld", i > 0 ? ":" : "",
                                 (long long)item->slice.starts[i], (long long)item->slice.lengths[i]);
    return mr_arena_strdup(arena, text);
}

/* Reads the SaveSliceInfoDef; false if it does not describe a part of the item's shape. */
static bool take_slice(mr_arena *arena, mr_saver_item *item, const Mr__SaveSliceInfoDef *info)
{
    const int32_t rank = (int32_t)info->n_full_shape;
    if (info->n_full_shape > MR_RANK_MAX || rank != item->shape.rank) return false;
    item->full.rank = item->slice.rank = rank;
    if (!take_sizes(item->full.dims, rank, info->n_full_shape, info->full_shape) ||
        !take_sizes(item->slice.starts, rank, info->n_var_offset, info->var_offset) ||
        !take_sizes(item->slice.lengths, rank, info->n_var_shape, info->var_shape))
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (item->slice.lengths[i] != item->shape.dims[i]) return false;
    item->is_slice = true;
    item->key = mr_arena_strdup(arena, info->full_name);
    item->spec = mr_string_from(spec_of(arena, item));
    return true;
}

static bool describe(mr_graph *graph, mr_arena *arena, mr_saver_item *item, mr_output ref, const char *key,
                     bool reshapes)
{
    mr_string rest;
    mr_variable variable = find_variable(graph, ref, &rest);
    *item = (mr_saver_item){.ref = ref, .key = mr_node_name(ref.node), .spec = MR_STR(""), .reshapes = reshapes};
    item->is_resource = mr_output_dtype(ref) == MR_RESOURCE;
    item->dtype = item->is_resource ? mr_variable_dtype_of(variable) : mr_output_dtype(ref);
    item->shape = item->is_resource ? mr_variable_shape_of(variable) : mr_output_shape(ref);
    bool fits = true;
    if (rest.size_bytes > 0) {
        Mr__VariableDef *def = mr__variable_def__unpack(nullptr, rest.size_bytes, (const uint8_t *)rest.data);
        if (def != nullptr && def->save_slice_info_def != nullptr)
            fits = take_slice(arena, item, def->save_slice_info_def);
        if (def != nullptr) mr__variable_def__free_unpacked(def, nullptr);
    }
    if (key != nullptr) item->key = mr_arena_strdup(arena, key);
    if (key != nullptr && *key == '\0')
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver's key of the variable %s is empty",
                            mr_node_name(ref.node));
    else if (reshapes && mr_shape_count(item->shape) < 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the saver's reshape needs the shape of the variable %s, which is not known",
                            mr_node_name(ref.node));
    else if (!fits)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the slice of the variable %s is not one of its shape",
                            mr_node_name(ref.node));
    else if (item->key == nullptr || (item->is_slice && item->spec.data == nullptr))
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static int by_key(const void *a, const void *b)
{
    const mr_saver_item *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    return order != 0 ? order : x->order < y->order ? -1 : 1;
}

static void mark_trainable(const mr_graph *graph, mr_saver_item *items, int32_t count)
{
    for (int32_t i = 0; i < mr_graph_variable_count(graph, MR_TRAINABLE_VARIABLES); i++) {
        const mr_output trainable = mr_graph_variable(graph, MR_TRAINABLE_VARIABLES, i).ref;
        for (int32_t j = 0; j < count; j++) items[j].is_trainable |= items[j].ref.node == trainable.node;
    }
}

mr_saver_item *mr_saver_items_new(mr_graph *graph, mr_arena *arena, const mr_saver_options *options, int32_t *count)
{
    const bool all = options->variables == nullptr;
    *count = all ? mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES) : options->variable_count;
    mr_saver_item *items = *count > 0 ? MR_ARENA_NEW(arena, mr_saver_item, (size_t)*count) : nullptr;
    if (*count <= 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver has no variables to save");
    else if (items == nullptr)
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
    if (mr_graph_status(graph, nullptr) != MR_OK || items == nullptr) return nullptr;
    for (int32_t i = 0; i < *count; i++) {
        const mr_output ref = all ? mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i).ref : options->variables[i];
        if (ref.node == nullptr) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "variable %d of the saver does not exist; the parts of a partitioned variable are "
                                "saved one by one (mr_variable_parts)",
                                (int)i);
            return nullptr;
        }
        if (!describe(graph, arena, &items[i], ref, options->keys != nullptr ? options->keys[i] : nullptr,
                      options->reshape))
            return nullptr;
        items[i].order = i;
    }
    qsort(items, (size_t)*count, sizeof *items, by_key);
    for (int32_t i = 0; i < *count; i++)
        assert(items[i].key != nullptr && items[i].is_slice == (items[i].spec.size_bytes > 0));
    for (int32_t i = 1; i < *count; i++)
        if (strcmp(items[i - 1].key, items[i].key) == 0 && !(items[i - 1].is_slice && items[i].is_slice)) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver has two variables with the key %s",
                                items[i].key);
            return nullptr;
        }
    mark_trainable(graph, items, *count);
    return items;
}

mr_status mr_saver_item_write(const mr_saver_item *item, mr_checkpoint_writer *writer, const mr_tensor *value,
                              mr_error *error)
{
    return item->is_slice ? mr_checkpoint_write_slice(writer, item->key, item->full, &item->slice, value, error)
                          : mr_checkpoint_write(writer, item->key, value, error);
}

mr_status mr_saver_item_read(const mr_saver_item *item, mr_checkpoint_reader *reader, const char *path,
                             mr_tensor *value, mr_error *error)
{
    if (item->is_slice)
        MR_TRY(mr_checkpoint_read_slice(reader, item->key, &item->full, &item->slice, value, error));
    else
        MR_TRY(mr_checkpoint_read(reader, item->key, value, error));
    if (value->dtype == item->dtype && mr_shape_compatible(value->shape, item->shape)) return MR_OK;
    if (value->dtype == item->dtype && item->reshapes && mr_tensor_count(value) == mr_shape_count(item->shape)) {
        value->shape = item->shape;
        return MR_OK;
    }
    char ours[MR_SHAPE_TEXT_SIZE], theirs[MR_SHAPE_TEXT_SIZE];
    mr_status status =
        mr_fail(error, MR_INVALID_ARGUMENT, "%s: variable %s is %s %s in the graph but %s %s in the checkpoint", path,
                item->key, mr_dtype_name(item->dtype), mr_shape_text(item->shape, ours, sizeof ours),
                mr_dtype_name(value->dtype), mr_shape_text(value->shape, theirs, sizeof theirs));
    mr_tensor_deinit(value);
    return status;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != nullptr ? slash + 1 : name;
}

/* A key of the checkpoint with the item's dtype and shape and the same last part of its name. Null: none. */
static const char *near_key(const mr_saver_item *item, const mr_checkpoint_reader *reader)
{
    for (int32_t i = 0; i < mr_checkpoint_count(reader); i++) {
        mr_dtype dtype;
        mr_shape shape;
        const char *key = mr_checkpoint_key(reader, i, &dtype, &shape);
        const mr_shape wanted = item->is_slice ? item->full : item->shape;
        if (dtype == item->dtype && mr_shape_compatible(shape, wanted) &&
            strcmp(last_part(key), last_part(item->key)) == 0)
            return key;
    }
    return nullptr;
}

mr_status mr_saver_items_check(const mr_saver_item *items, int32_t count, mr_checkpoint_reader *reader,
                               const char *path, mr_error *error)
{
    constexpr int32_t NAMES_MAX = 5;
    char names[1024] = "", near[512] = "";
    size_t used = 0;
    int32_t missing = 0;
    for (int32_t i = 0; i < count; i++) {
        if (mr_checkpoint_has(reader, items[i].key) || (i > 0 && strcmp(items[i].key, items[i - 1].key) == 0)) continue;
        const char *key = *near == '\0' ? near_key(&items[i], reader) : nullptr;
        if (key != nullptr) snprintf(near, sizeof near, "; it has %s", key);
        if (missing++ < NAMES_MAX && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", items[i].key);
    }
    if (missing == 0) return MR_OK;
    char others[32] = "";
    if (missing > NAMES_MAX) snprintf(others, sizeof others, " and %d others", (int)(missing - NAMES_MAX));
    return mr_fail(error, MR_NOT_FOUND, "%s has no variable %s%s, which the graph requires%s", path, names, others,
                   near);
}
