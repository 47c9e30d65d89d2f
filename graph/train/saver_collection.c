/* Savers that exist as nodes: what an imported saver saves is read from its SaveV2 and SaveSlices nodes. */
#include "graph/train/saver_collection.h"

#include "base/status.h"
#include "graph/ir/convert.h"
#include "graph/train/saver_nodes.h"
#include "proto/meta_graph.pb-c.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- The collection ---- */

static mr_status unpack(const mr_graph *graph, mr_arena *arena, Mr__CollectionDef **def, mr_error *error)
{
    const mr_collection *found = mr_graph_find_collection(graph, MR_SAVERS);
    *def = nullptr;
    if (found == nullptr || found->kind != MR_COLLECTION_RAW) return MR_OK;
    const mr_string raw = {(const char *)found->raw, found->raw_size_bytes};
    MR_TRY(mr_proto_unpack_as(collection_def, raw, arena, def, error));
    if ((*def)->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST) *def = nullptr;
    return MR_OK;
}

int32_t mr_saver_collection_count(const mr_graph *graph)
{
    mr_arena arena = {0};
    Mr__CollectionDef *def;
    const mr_status status = unpack(graph, &arena, &def, nullptr);
    const size_t count = status == MR_OK && def != nullptr ? def->bytes_list->n_value : 0;
    mr_arena_deinit(&arena);
    return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

mr_status mr_saver_collection_store(mr_graph *graph, mr_error *error)
{
    if (mr_graph_find_collection(graph, MR_SAVERS) != nullptr || graph->saver_def_size_bytes == 0) return MR_OK;
    Mr__CollectionDef def = MR__COLLECTION_DEF__INIT;
    Mr__CollectionDef__BytesList list = MR__COLLECTION_DEF__BYTES_LIST__INIT;
    ProtobufCBinaryData item = {graph->saver_def_size_bytes, (uint8_t *)graph->saver_def};
    mr_string bytes = {0};
    list.n_value = 1;
    list.value = &item;
    def.kind_case = MR__COLLECTION_DEF__KIND_BYTES_LIST;
    def.bytes_list = &list;
    MR_TRY(mr_proto_pack(&def, &graph->arena, &bytes, error));
    mr_collection *made = mr_graph_make_collection(graph, MR_SAVERS, MR_COLLECTION_RAW);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->raw = (const uint8_t *)bytes.data;
    made->raw_size_bytes = bytes.size_bytes;
    return MR_OK;
}

/* ---- What a saver saves ---- */

typedef struct reading {
    mr_graph *graph;
    mr_arena *arena;
    int32_t count;
    mr_output *refs;
    const char **keys; /* null: that of a part, which its variable has */
} reading;

static bool is_save(const mr_node *node)
{
    return strcmp(node->op, "SaveV2") == 0 || strcmp(node->op, "SaveSlices") == 0;
}

/* The variable whose value an input of a save node is: its reference, or a read of it, perhaps copied. */
static mr_output variable_of(mr_output value)
{
    constexpr int DEPTH_MAX = 8;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (mr_output_is_ref(value) || mr_output_dtype(value) == MR_RESOURCE) return value;
        const char *op = value.node->op;
        if ((strcmp(op, "Identity") != 0 && strcmp(op, "ReadVariableOp") != 0) || value.node->input_count == 0) break;
        value = value.node->inputs[0];
    }
    return (mr_output){0};
}

static bool is_variable(const mr_graph *graph, mr_output ref)
{
    for (int32_t i = 0; i < graph->collection_count; i++) {
        const mr_collection *c = &graph->collections[i];
        for (int32_t j = 0; c->kind == MR_COLLECTION_VARIABLES && j < c->count; j++)
            if (c->variables[j].ref.node == ref.node && c->variables[j].ref.index == ref.index) return true;
    }
    return false;
}

/* The strings of a constant, as many as expected; null: it is none. */
static const mr_string *constants(const mr_node *node, int32_t expected)
{
    const mr_attr *value = strcmp(node->op, "Const") == 0 ? mr_attrs_find(&node->attrs, "value") : nullptr;
    if (value == nullptr || value->kind != MR_ATTR_TENSOR || value->count != 1) return nullptr;
    const mr_tensor *tensor = &value->values[0].tensor;
    return tensor->dtype == MR_STRING && mr_tensor_count(tensor) == expected ? mr_tensor_strings(tensor) : nullptr;
}

static bool add_item(reading *r, mr_output value, mr_string key, mr_string spec)
{
    const mr_output ref = variable_of(value);
    if (ref.node == nullptr || !is_variable(r->graph, ref) || memchr(key.data, 0, key.size_bytes) != nullptr)
        return false;
    const char *copy = mr_arena_strndup(&r->graph->arena, key.data, key.size_bytes);
    r->refs[r->count] = ref;
    r->keys[r->count++] = spec.size_bytes > 0 ? nullptr : copy;
    return copy != nullptr;
}

/* Inputs are the path, the keys, the slices, and the values. */
static bool add_items(reading *r, const mr_node *save, int32_t capacity)
{
    const int32_t count = save->input_count - 3;
    if (count < 0 || count > capacity - r->count) return false;
    const mr_string *keys = constants(save->inputs[1].node, count);
    const mr_string *specs = constants(save->inputs[2].node, count);
    if (keys == nullptr || specs == nullptr) return false;
    for (int32_t i = 0; i < count; i++)
        if (!add_item(r, save->inputs[3 + i], keys[i], specs[i])) return false;
    return true;
}

/* Follows what the saver's result depends on up to its save nodes. False: it saves something other than variables. */
static bool read_items(reading *r, mr_node *result)
{
    const int32_t count = mr_graph_node_count(r->graph);
    bool *is_seen = MR_ARENA_NEW(r->arena, bool, (size_t)count + 1);
    mr_node **queue = MR_ARENA_NEW(r->arena, mr_node *, (size_t)count + 1);
    int32_t queued = 0, capacity = 0;
    if (is_seen == nullptr || queue == nullptr) return false;
    queue[queued++] = result;
    is_seen[result->id] = true;
    for (int32_t at = 0; at < queued; at++) {
        const mr_node *node = queue[at];
        if (is_save(node)) {
            capacity += node->input_count;
            continue;
        }
        for (int32_t i = 0; i < node->input_count + node->control_count; i++) {
            mr_node *next = i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
            if (!is_seen[next->id]) queue[queued++] = next;
            is_seen[next->id] = true;
        }
    }
    assert(queued <= count);
    r->refs = MR_ARENA_NEW(r->arena, mr_output, (size_t)capacity + 1);
    r->keys = MR_ARENA_NEW(r->arena, const char *, (size_t)capacity + 1);
    if (r->refs == nullptr || r->keys == nullptr) return false;
    for (int32_t at = 0; at < queued; at++)
        if (is_save(queue[at]) && !add_items(r, queue[at], capacity)) return false;
    return r->count > 0;
}

/* Whether the items are all global variables under their names, so that the saver is one of everything. */
static bool is_everything(const reading *r)
{
    const int32_t count = mr_graph_variable_count(r->graph, MR_GLOBAL_VARIABLES);
    if (r->count != count) return false;
    bool *is_saved = MR_ARENA_NEW(r->arena, bool, (size_t)mr_graph_node_count(r->graph));
    if (is_saved == nullptr) return false;
    for (int32_t i = 0; i < r->count; i++) {
        if (r->keys[i] != nullptr && strcmp(r->keys[i], mr_node_name(r->refs[i].node)) != 0) return false;
        is_saved[r->refs[i].node->id] = true;
    }
    for (int32_t i = 0; i < count; i++)
        if (!is_saved[mr_graph_variable(r->graph, MR_GLOBAL_VARIABLES, i).ref.node->id]) return false;
    return true;
}

/* ---- The saver ---- */

static mr_saver *adopt(reading *r, const Mr__SaverDef *def)
{
    const float hours = def->keep_checkpoint_every_n_hours;
    mr_saver_options options = {.size = sizeof options, MR_SAVER_DEFAULTS};
    options.max_to_keep = def->max_to_keep > 0 ? def->max_to_keep : 0;
    if (options.max_to_keep > 0 && isfinite(hours) && hours > 0) options.keep_checkpoint_every_n_hours = (double)hours;
    if (def->version != 2) options.write_version = MR_CHECKPOINT_V1;
    if (!is_everything(r)) {
        options.variables = r->refs;
        options.keys = r->keys;
        options.variable_count = r->count;
    }
    return mr_saver_adopt(r->graph, &options);
}

/* Null: it saves something other than variables, or its nodes do not exist. */
static mr_status from_def(mr_graph *graph, mr_string bytes, mr_arena *arena, mr_saver **saver, mr_error *error)
{
    Mr__SaverDef *def;
    MR_TRY(mr_proto_unpack_as(saver_def, bytes, arena, &def, error));
    const mr_output result = mr_graph_find_output(graph, def->save_tensor_name);
    reading r = {.graph = graph, .arena = arena};
    if (result.node == nullptr || !read_items(&r, result.node)) return MR_OK;
    *saver = adopt(&r, def);
    if (mr_graph_status(graph, error) != MR_OK) {
        mr_saver_free(*saver);
        *saver = nullptr;
        return mr_graph_status(graph, error);
    }
    return MR_OK;
}

static mr_status find(mr_graph *graph, mr_arena *arena, mr_saver **saver, mr_error *error)
{
    Mr__CollectionDef *collection;
    MR_TRY(unpack(graph, arena, &collection, error));
    if (collection == nullptr || collection->bytes_list->n_value == 0) return MR_OK;
    const mr_string bytes = mr_proto_bytes(collection->bytes_list->value[0]);
    MR_TRY(from_def(graph, bytes, arena, saver, error));
    return *saver != nullptr ? mr_graph_set_saver_def(graph, bytes, error) : MR_OK;
}

mr_status mr_saver_collection_find(mr_graph *graph, mr_saver **saver, mr_error *error)
{
    mr_arena arena = {0};
    *saver = nullptr;
    const mr_status status = find(graph, &arena, saver, error);
    mr_arena_deinit(&arena);
    return status != MR_OK ? mr_fail_prefix(error, status, "collection " MR_SAVERS) : MR_OK;
}

mr_status mr_saver_import(mr_graph *graph, mr_saver **saver, mr_error *error)
{
    mr_arena arena = {0};
    if (graph == nullptr || saver == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saver_import: %s is null", graph == nullptr ? "graph" : "saver");
    *saver = nullptr;
    MR_TRY(mr_graph_status(graph, error));
    if (graph->saver_def_size_bytes == 0)
        return mr_fail(error, MR_NOT_FOUND,
                       "mr_saver_import: the graph has no saver: it was not imported from a MetaGraphDef with one");
    const mr_string bytes = {(const char *)graph->saver_def, graph->saver_def_size_bytes};
    mr_status status = from_def(graph, bytes, &arena, saver, error);
    if (status == MR_OK && *saver == nullptr)
        status = mr_fail(error, MR_UNIMPLEMENTED,
                         "mr_saver_import: the graph's saver saves something other than its variables");
    mr_arena_deinit(&arena);
    return status == MR_DATA_LOSS ? mr_fail_prefix(error, status, "mr_saver_import: SaverDef") : status;
}
