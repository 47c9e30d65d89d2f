/* Programs as graphs: what mr_run_options.output_partition_graphs reports. */
#include "graph/run/trace.h"

#include "base/buffer.h"
#include "base/device.h"

#include <assert.h>
#include <string.h>

static const char *origin_name(const mr_origin *origin)
{
    return origin->name ? origin->name : origin->node ? origin->node->name : "";
}

char *mr_device_full_name(const mr_device *device, mr_arena *arena)
{
    return mr_arena_printf(arena, MR_TASK_NAME "%s", device->name);
}

char *mr_program_value_name(const mr_program *program, const mr_region *region, int32_t slot, mr_arena *arena)
{
    assert(slot >= 0 && slot < region->slot_count);
    const mr_origin *origin = &region->origins[slot];
    int number = (int)origin->index;
    switch (origin->kind) {
    case MR_ORIGIN_FEED:
        if (program->signature.is_function)
            return mr_arena_strdup(arena, program->signature.feeds[origin->index].node->name);
        return mr_arena_printf(arena, "_arg_%s_%d_%d", program->signature.feeds[origin->index].node->name,
                               (int)program->signature.feeds[origin->index].index, number);
    case MR_ORIGIN_COPY:
        return mr_arena_printf(arena, "%s/_copy_%d", origin_name(origin), (int)slot);
    case MR_ORIGIN_CONSTANT:
        if (!origin->node) return mr_arena_printf(arena, "_constant_%d", (int)slot); /* on another device */
        if (number > 0) return mr_arena_printf(arena, "ConstantFolding/%s-folded-%d", origin_name(origin), number);
        break;
    case MR_ORIGIN_OUTPUT:
        if (number > 0) return mr_arena_printf(arena, "%s:%d", origin_name(origin), number);
        break;
    }
    return mr_arena_strdup(arena, origin_name(origin));
}

/* ---- Nodes ---- */

typedef struct writer {
    const mr_program *program;
    mr_arena *arena;
    Mr__GraphDef *graph;
    size_t capacity;  /* of the graph's nodes */
    bool *is_written; /* by id: of the graph's nodes */
    mr_device *cpu;
} writer;

static mr_status add_node(writer *w, const char *name, const char *op, const mr_device *device, size_t input_capacity,
                          Mr__NodeDef **node, mr_error *error)
{
    Mr__NodeDef *made = *node = MR_ARENA_NEW(w->arena, Mr__NodeDef, 1);
    if (!made) return mr_fail_memory(error, sizeof *made);
    mr__node_def__init(made);
    made->name = (char *)name;
    made->op = (char *)op;
    made->device = device ? mr_device_full_name(device, w->arena) : "";
    made->input = MR_ARENA_NEW(w->arena, char *, input_capacity + 1);
    if (!name || !made->device || !made->input) return mr_fail_memory(error, input_capacity * sizeof(char *));
    assert(w->graph->n_node < w->capacity);
    w->graph->node[w->graph->n_node++] = made;
    return MR_OK;
}

static mr_status add_input(const writer *w, Mr__NodeDef *node, const mr_region *region, int32_t slot, mr_error *error)
{
    char *name = mr_program_value_name(w->program, region, slot, w->arena);
    if (!name) return mr_fail_memory(error, 64);
    node->input[node->n_input++] = name;
    return MR_OK;
}

static mr_status write_attrs(const writer *w, const mr_attrs *attrs, Mr__NodeDef *node, mr_error *error)
{
    size_t count = (size_t)attrs->count;
    Mr__AttrEntry *entries = MR_ARENA_NEW(w->arena, Mr__AttrEntry, count + 1);
    node->attr = MR_ARENA_NEW(w->arena, Mr__AttrEntry *, count + 1);
    if (!entries || !node->attr) return mr_fail_memory(error, count * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        mr__attr_entry__init(&entries[i]);
        entries[i].key = (char *)attrs->items[i].name;
        MR_TRY(mr_attr_write(&attrs->items[i], w->arena, &entries[i].value, error));
        node->attr[node->n_attr++] = &entries[i];
    }
    return MR_OK;
}

/* The attrs of a node with a dtype and one other. */
static mr_status write_two(const writer *w, const char *dtype_name, mr_dtype dtype, mr_attr other, Mr__NodeDef *node,
                           mr_error *error)
{
    mr_attr_value type = {.type = (int32_t)dtype};
    mr_attr items[2] = {{.name = dtype_name, .kind = MR_ATTR_TYPE, .count = 1, .values = &type}, other};
    return write_attrs(w, &(mr_attrs){2, items}, node, error);
}

static mr_status write_end(writer *w, const char *name, const char *op, mr_dtype dtype, int32_t index,
                           Mr__NodeDef **node, mr_error *error)
{
    mr_attr_value number = {.integer = index};
    MR_TRY(add_node(w, name, op, w->cpu, 1, node, error));
    return write_two(w, "T", dtype, (mr_attr){.name = "index", .kind = MR_ATTR_INT, .count = 1, .values = &number},
                     *node, error);
}

/* ---- Constants ---- */

/* The elements of a tensor on a device, in the arena. */
static mr_status bring(const mr_tensor *tensor, mr_arena *arena, mr_tensor *brought, mr_error *error)
{
    mr_tensor host;
    *brought = *tensor;
    if (!mr_tensor_device(tensor)) return MR_OK;
    MR_TRY(mr_tensor_to_host(tensor, &host, error));
    size_t size_bytes = mr_tensor_size_bytes(&host);
    brought->data = mr_arena_alloc(arena, size_bytes + 1);
    if (brought->data && size_bytes > 0) memcpy(brought->data, host.data, size_bytes);
    brought->buffer = nullptr;
    mr_tensor_deinit(&host);
    return brought->data ? MR_OK : mr_fail_memory(error, size_bytes);
}

/* A constant, or the node that names a resource. */
static mr_status write_constant(writer *w, const mr_region *region, int32_t slot, mr_error *error)
{
    const mr_origin *origin = &region->origins[slot];
    const mr_tensor *value = &region->slots[slot];
    const char *name = mr_program_value_name(w->program, region, slot, w->arena);
    Mr__NodeDef *node;
    if (origin->node) w->is_written[origin->node->id] = true;
    if (origin->node && mr_state_find(origin->node->op)) {
        MR_TRY(add_node(w, name, origin->node->op, w->cpu, 0, &node, error));
        return write_attrs(w, &origin->node->attrs, node, error);
    }
    mr_attr_value content;
    MR_TRY(bring(value, w->arena, &content.tensor, error));
    MR_TRY(add_node(w, name, "Const", value->buffer && mr_tensor_device(value) ? mr_tensor_device(value) : w->cpu, 0,
                    &node, error));
    return write_two(w, "dtype", value->dtype,
                     (mr_attr){.name = "value", .kind = MR_ATTR_TENSOR, .count = 1, .values = &content}, node, error);
}

static mr_status write_constants(writer *w, mr_error *error)
{
    for (int32_t i = 0; i < w->program->region_count; i++) {
        const mr_region *region = &w->program->regions[i];
        for (int32_t j = 0; j < region->constant_count; j++)
            MR_TRY(write_constant(w, region, region->constants[j], error));
    }
    return MR_OK;
}

/* ---- Calls ---- */

/* A constant that runs after its control inputs has been written. */
static bool is_gate(const mr_call *call)
{
    return !call->kernel && !call->run;
}

static mr_status write_copy(writer *w, const mr_region *region, const mr_call *call, mr_error *error)
{
    mr_attr_value type = {.type = (int32_t)call->node.output_dtypes[0]};
    mr_attr attr = {.name = "T", .kind = MR_ATTR_TYPE, .count = 1, .values = &type};
    Mr__NodeDef *node;
    char *name = mr_program_value_name(w->program, region, call->first_output, w->arena);
    MR_TRY(add_node(w, name, "Identity", call->device, 1, &node, error));
    MR_TRY(add_input(w, node, region, call->inputs[0].slot, error));
    return write_attrs(w, &(mr_attrs){1, &attr}, node, error);
}

/* A straight loop (see mr_straight_loop) reads what its merges forward, not what its switches do: the graph's own input
 * has the meaning that TensorFlow gives it. */
static mr_status add_call_input(const writer *w, Mr__NodeDef *node, const mr_region *region, const mr_call *call,
                                int32_t input, mr_error *error)
{
    const mr_node *source = call->source;
    int32_t slot = call->inputs[input].slot;
    bool is_unchanged = call->input_count == source->input_count && call->node.attrs == &source->attrs;
    if (!region->straight.is_straight || region->origins[slot].kind != MR_ORIGIN_OUTPUT || !is_unchanged ||
        !w->is_written[source->inputs[input].node->id])
        return add_input(w, node, region, slot, error);
    mr_output own = source->inputs[input];
    char *name = own.index == 0 ? mr_arena_strdup(w->arena, own.node->name)
                                : mr_arena_printf(w->arena, "%s:%d", own.node->name, (int)own.index);
    if (!name) return mr_fail_memory(error, 64);
    node->input[node->n_input++] = name;
    return MR_OK;
}

static mr_status write_call(writer *w, const mr_region *region, const mr_call *call, mr_error *error)
{
    const mr_node *source = call->source;
    Mr__NodeDef *node;
    if (is_gate(call)) return MR_OK;
    if (!call->kernel) return write_copy(w, region, call, error);
    size_t inputs = (size_t)call->input_count + (size_t)source->control_count;
    MR_TRY(add_node(w, call->node.name, call->node.op, call->device, inputs, &node, error));
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(add_call_input(w, node, region, call, i, error));
    for (int32_t i = 0; i < source->control_count; i++) {
        if (!w->is_written[source->controls[i]->id]) continue;
        char *name = mr_arena_printf(w->arena, "^%s", source->controls[i]->name);
        if (!name) return mr_fail_memory(error, 64);
        node->input[node->n_input++] = name;
    }
    return write_attrs(w, call->node.attrs, node, error);
}

static mr_status write_calls(writer *w, mr_error *error)
{
    const mr_program *program = w->program;
    for (int32_t i = 0; i < program->call_count; i++)
        if (program->calls[i].kernel) w->is_written[program->calls[i].source->id] = true;
    for (int32_t i = 0; i < program->call_count && program->segment_count == 0; i++)
        MR_TRY(write_call(w, &program->regions[0], &program->calls[i], error));
    for (int32_t i = 0; i < program->segment_count; i++) {
        const mr_segment *segment = &program->segments[i];
        for (int32_t j = segment->first_call; j < segment->end_call; j++)
            MR_TRY(write_call(w, &program->regions[segment->region], &program->calls[j], error));
    }
    return MR_OK;
}

/* ---- The graph ---- */

static mr_status write_feeds(writer *w, mr_error *error)
{
    const mr_signature *signature = &w->program->signature;
    Mr__NodeDef *node;
    for (int32_t i = 0; i < signature->feed_count; i++) {
        char *name = mr_program_value_name(w->program, &w->program->regions[0], w->program->feed_slots[i], w->arena);
        MR_TRY(write_end(w, name, "_Arg", mr_output_dtype(signature->feeds[i]), i, &node, error));
    }
    return MR_OK;
}

static mr_status write_fetches(writer *w, mr_error *error)
{
    const mr_signature *signature = &w->program->signature;
    Mr__NodeDef *node;
    for (int32_t i = 0; i < signature->fetch_count; i++) {
        mr_output fetch = signature->fetches[i];
        char *name = mr_arena_printf(w->arena, "_retval_%s_%d_%d", fetch.node->name, (int)fetch.index, (int)i);
        MR_TRY(write_end(w, name, "_Retval", mr_output_dtype(fetch), i, &node, error));
        MR_TRY(add_input(w, node, &w->program->regions[0], w->program->fetch_slots[i], error));
    }
    return MR_OK;
}

static size_t count_nodes(const mr_program *program)
{
    size_t count =
        (size_t)program->call_count + (size_t)program->signature.feed_count + (size_t)program->signature.fetch_count;
    for (int32_t i = 0; i < program->region_count; i++) count += (size_t)program->regions[i].constant_count;
    return count;
}

mr_status mr_program_write(const mr_program *program, const mr_graph *graph, mr_device *cpu, mr_arena *arena,
                           Mr__GraphDef **graph_def, mr_error *error)
{
    Mr__GraphDef *def = *graph_def = MR_ARENA_NEW(arena, Mr__GraphDef, 1);
    Mr__VersionDef *versions = MR_ARENA_NEW(arena, Mr__VersionDef, 1);
    writer w = {.program = program, .arena = arena, .graph = def, .capacity = count_nodes(program), .cpu = cpu};
    w.is_written = MR_ARENA_NEW(arena, bool, (size_t)graph->node_count + 1);
    if (!def || !versions || !w.is_written) return mr_fail_memory(error, (size_t)graph->node_count);
    mr__graph_def__init(def);
    mr__version_def__init(versions);
    versions->producer = graph->producer;
    versions->min_consumer = graph->min_consumer;
    def->versions = versions;
    def->node = MR_ARENA_NEW(arena, Mr__NodeDef *, w.capacity + 1);
    if (!def->node) return mr_fail_memory(error, w.capacity * sizeof *def->node);
    MR_TRY(write_feeds(&w, error));
    MR_TRY(write_constants(&w, error));
    MR_TRY(write_calls(&w, error));
    return write_fetches(&w, error);
}
