/* Nodes of a Saver: one save and one restore of all items; sharded, one of each for the items of each device, of which
 * the saved parts are merged. A V1 checkpoint is saved by SaveSlices; RestoreV2 reads both versions. */
#include "graph/train/saver_nodes.h"

#include "proto/meta_graph.pb-c.h"
#include <millrace/ops.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The items of one device, or all. */
typedef struct shard {
    const char *device;
    int32_t count;
    const mr_saver_item **items;
} shard;

typedef struct making {
    mr_graph *graph;
    mr_arena *arena;
    bool is_v1, is_sharded;
    shard *shards; /* sorted by device */
    int32_t count;
    mr_output path;
} making;

static mr_output strings(mr_graph *graph, mr_shape shape, const mr_string *values, const char *name)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_strings(&tensor, shape, values, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

static void no_memory(const making *m)
{
    (void)mr_graph_fail(m->graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
}

/* ---- Shards ---- */

static int by_device(const void *a, const void *b)
{
    const shard *x = a, *y = b;
    return strcmp(x->device, y->device);
}

static shard *shard_of(making *m, const char *device)
{
    for (int32_t i = 0; i < m->count; i++)
        if (!m->is_sharded || strcmp(m->shards[i].device, device) == 0) return &m->shards[i];
    m->shards[m->count] = (shard){.device = m->is_sharded ? device : ""};
    return &m->shards[m->count++];
}

static void make_shards(making *m, const mr_saver_item *items, int32_t count)
{
    m->shards = MR_ARENA_NEW(m->arena, shard, (size_t)count);
    if (m->shards == nullptr) {
        no_memory(m);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        shard *s = shard_of(m, mr_node_device(items[i].ref.node));
        if (s->items == nullptr) s->items = MR_ARENA_NEW(m->arena, const mr_saver_item *, (size_t)count);
        if (s->items == nullptr) {
            no_memory(m);
            return;
        }
        s->items[s->count++] = &items[i];
    }
    qsort(m->shards, (size_t)m->count, sizeof *m->shards, by_device);
}

/* The CPU of the shard's machine. */
static void push_cpu(const making *m, const shard *s)
{
    mr_graph_push_device(m->graph, s->device);
    mr_graph_push_device(m->graph, m->is_sharded ? "/device:CPU:0" : "");
}

static void pop_cpu(const making *m)
{
    mr_graph_pop_device(m->graph);
    mr_graph_pop_device(m->graph);
}

/* ---- Save ---- */

/* Constants with the keys and slices of a shard, under the names of the operator that reads them. */
static bool make_keys(const making *m, const shard *s, const char *op, const char *slices_name, mr_output *keys,
                      mr_output *slices)
{
    mr_string *names = MR_ARENA_NEW(m->arena, mr_string, (size_t)s->count);
    mr_string *specs = MR_ARENA_NEW(m->arena, mr_string, (size_t)s->count);
    if (names == nullptr || specs == nullptr) {
        no_memory(m);
        return false;
    }
    for (int32_t i = 0; i < s->count; i++) {
        names[i] = mr_string_from(s->items[i]->key);
        specs[i] = s->items[i]->spec;
    }
    mr_graph_push_scope(m->graph, op);
    *keys = strings(m->graph, MR_SHAPE(s->count), names, "tensor_names");
    *slices = strings(m->graph, MR_SHAPE(s->count), specs, slices_name);
    return mr_graph_status(m->graph, nullptr) == MR_OK;
}

/* Returns the path, after it has been saved. */
static mr_output make_save(const making *m, const shard *s, mr_output path)
{
    mr_graph *graph = m->graph;
    mr_output keys, slices, *values = MR_ARENA_NEW(m->arena, mr_output, (size_t)s->count);
    if (values == nullptr) no_memory(m);
    if (values == nullptr || !make_keys(m, s, m->is_v1 ? "save" : "SaveV2",
                                        m->is_v1 ? "shapes_and_slices" : "shape_and_slices", &keys, &slices))
        return mr_graph_failed_output(graph);
    const char *name = mr_train_own_name(graph);
    mr_graph_pop_scope(graph);
    for (int32_t i = 0; i < s->count; i++)
        values[i] = s->items[i]->is_resource ? mr_read_variable_op(graph, s->items[i]->ref, s->items[i]->dtype)
                                             : s->items[i]->ref;
    const mr_outputs all = {values, s->count};
    mr_node *save = m->is_v1 ? mr_save_slices(graph, path, keys, slices, all, .name = name)
                             : mr_save_v2(graph, path, keys, slices, all, .name = name);
    mr_graph_push_control_dependencies(graph, &save, 1);
    mr_output done = mr_identity(graph, path, .name = "control_dependency");
    mr_graph_pop_control_dependencies(graph);
    return done;
}

/* A directory for the parts that no other process uses. */
static mr_output make_temporary(const making *m)
{
    struct timespec now = {0};
    (void)timespec_get(&now, TIME_UTC);
    const uint64_t unique = ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)(uintptr_t)m << 20);
    const char *suffix = mr_arena_printf(m->arena, "_temp_%016llx/part", (unsigned long long)unique);
    if (suffix == nullptr) no_memory(m);
    mr_graph_push_scope(m->graph, "StringJoin");
    const mr_string text = mr_string_from(suffix != nullptr ? suffix : "");
    const mr_output end = strings(m->graph, MR_SCALAR, &text, "inputs_1");
    const mr_output joined = mr_string_join(m->graph, MR_OUTPUTS(m->path, end), .name = mr_train_own_name(m->graph));
    mr_graph_pop_scope(m->graph);
    return joined;
}

static mr_output make_sharded_save(const making *m)
{
    mr_graph *graph = m->graph;
    const mr_output temporary = make_temporary(m);
    const mr_output count = mr_constant_int32s(graph, MR_SCALAR, &m->count, "num_shards");
    mr_output *parts = MR_ARENA_NEW(m->arena, mr_output, (size_t)m->count);
    mr_node **saved = MR_ARENA_NEW(m->arena, mr_node *, (size_t)m->count);
    if (parts == nullptr || saved == nullptr) {
        no_memory(m);
        return mr_graph_failed_output(graph);
    }
    for (int32_t i = 0; i < m->count; i++) {
        push_cpu(m, &m->shards[i]);
        mr_graph_push_scope(graph, "ShardedFilename");
        const mr_output number = mr_constant_int32s(graph, MR_SCALAR, &i, "shard");
        parts[i] = mr_sharded_filename(graph, temporary, number, count, .name = mr_train_own_name(graph));
        mr_graph_pop_scope(graph);
        saved[i] = make_save(m, &m->shards[i], parts[i]).node;
        pop_cpu(m);
    }
    push_cpu(m, &m->shards[m->count - 1]);
    mr_graph_push_control_dependencies(graph, saved, m->count);
    mr_graph_push_scope(graph, "MergeV2Checkpoints");
    const mr_output all = mr_pack(graph, MR_OUTPUTS_OF(parts, m->count), .name = "checkpoint_prefixes");
    mr_node *merge = mr_merge_v2_checkpoints(graph, all, m->path, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    mr_graph_push_control_dependencies(graph, &merge, 1);
    const mr_output done = mr_identity(graph, m->path, .name = "Identity");
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_control_dependencies(graph);
    pop_cpu(m);
    return done;
}

/* ---- Restore ---- */

/* The restored value in the shape of its variable. */
static mr_output reshaped(const making *m, const mr_saver_item *item, mr_output value)
{
    if (!item->reshapes) return value;
    assert(mr_shape_count(item->shape) >= 0);
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < item->shape.rank; i++) sizes[i] = (int32_t)item->shape.dims[i];
    mr_graph_push_scope(m->graph, "Reshape");
    const mr_output shape = mr_constant_int32s(m->graph, MR_SHAPE(item->shape.rank), sizes, "shape");
    const mr_output result = mr_reshape(m->graph, value, shape, .name = mr_train_own_name(m->graph));
    mr_graph_pop_scope(m->graph);
    return result;
}

static mr_node *make_restore(const making *m, const shard *s, const char *name)
{
    mr_graph *graph = m->graph;
    mr_output keys, slices;
    mr_dtype *dtypes = MR_ARENA_NEW(m->arena, mr_dtype, (size_t)s->count);
    mr_node **assigns = MR_ARENA_NEW(m->arena, mr_node *, (size_t)s->count);
    if (dtypes == nullptr || assigns == nullptr) no_memory(m);
    if (dtypes == nullptr || assigns == nullptr || !make_keys(m, s, "RestoreV2", "shape_and_slices", &keys, &slices))
        return mr_graph_failed_output(graph).node;
    for (int32_t i = 0; i < s->count; i++) dtypes[i] = s->items[i]->dtype;
    const mr_output_range values = mr_restore_v2(graph, m->path, keys, slices, .dtypes = (mr_dtypes){dtypes, s->count},
                                                 .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    for (int32_t i = 0; i < s->count; i++) {
        const mr_output value = reshaped(m, s->items[i], mr_output_at(values, i)), ref = s->items[i]->ref;
        assigns[i] = s->items[i]->is_resource ? mr_assign_variable_op(graph, ref, mr_identity(graph, value))
                                              : mr_assign(graph, ref, value).node;
    }
    return mr_group(graph, assigns, s->count, name);
}

static mr_node *make_sharded_restore(const making *m)
{
    mr_node **restored = MR_ARENA_NEW(m->arena, mr_node *, (size_t)m->count);
    if (restored == nullptr) {
        no_memory(m);
        return mr_graph_failed_output(m->graph).node;
    }
    for (int32_t i = 0; i < m->count; i++) {
        push_cpu(m, &m->shards[i]);
        restored[i] = make_restore(m, &m->shards[i], "restore_shard");
        pop_cpu(m);
    }
    return mr_group(m->graph, restored, m->count, "restore_all");
}

/* ---- All ---- */

/* Stores the SaverDef for the MetaGraphDef. */
static void describe(const making *m, const mr_saver_options *options, mr_output save, mr_node *restore)
{
    char path_name[MR_OUTPUT_NAME_SIZE], save_name[MR_OUTPUT_NAME_SIZE];
    const double hours = options->keep_checkpoint_every_n_hours;
    Mr__SaverDef def = MR__SAVER_DEF__INIT;
    def.filename_tensor_name = mr_output_name(m->path, path_name, sizeof path_name);
    def.save_tensor_name = mr_output_name(save, save_name, sizeof save_name);
    def.restore_op_name = (char *)mr_node_name(restore);
    def.max_to_keep = options->max_to_keep;
    def.keep_checkpoint_every_n_hours = hours > 0 ? (float)hours : 10000;
    def.version = m->is_v1 ? 1 : 2;
    def.sharded = m->is_sharded;
    size_t size_bytes = mr__saver_def__get_packed_size(&def);
    uint8_t *bytes = mr_arena_alloc(&m->graph->arena, size_bytes);
    if (bytes == nullptr) return;
    m->graph->saver_def_size_bytes = mr__saver_def__pack(&def, bytes);
    m->graph->saver_def = bytes;
}

void mr_saver_make_nodes(mr_graph *graph, mr_arena *arena, const mr_saver_item *items, int32_t count,
                         const mr_saver_options *options)
{
    making m = {.graph = graph,
                .arena = arena,
                .is_v1 = options->write_version == MR_CHECKPOINT_V1,
                .is_sharded = options->sharded != 0};
    make_shards(&m, items, count);
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    mr_graph_push_scope(graph, "");
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_graph_push_scope(graph, options->name != nullptr ? options->name : "save");
    mr_output model = strings(graph, MR_SCALAR, &MR_STR("model"), "filename/input");
    mr_output file = mr_placeholder_with_default(graph, model, .shape = MR_SCALAR, .name = "filename");
    m.path = mr_placeholder_with_default(graph, file, .shape = MR_SCALAR, .name = "Const");
    mr_output save = m.is_sharded ? make_sharded_save(&m) : make_save(&m, &m.shards[0], m.path);
    mr_node *restore = m.is_sharded ? make_sharded_restore(&m) : make_restore(&m, &m.shards[0], "restore_all");
    mr_graph_pop_scope(graph);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    if (mr_graph_status(graph, nullptr) == MR_OK) describe(&m, options, save, restore);
}
