/* Import of a GraphDef. The bytes are not trusted: memory is bounded by their size, and the graph is changed only after
 * everything has been checked.
 *
 * First all nodes are created and named. Then the inputs are resolved by name. Then nodes are resolved and inferred in
 * an order in which inputs come first (Merge does not wait for its NextIterations). Finally they are added to the graph
 * in the file's order. A node of an unknown operator is kept unchanged; it has as many outputs as other nodes use. */
#include "base/options.h"
#include "graph/ir/convert.h"
#include "graph/ir/function.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct importing {
    mr_graph *graph;
    const Mr__GraphDef *def;
    const char *prefix; /* "", or ends with "/" */
    bool extends;       /* inputs that the file does not contain may be nodes of the graph */
    const mr_graph_import_options *options;
    bool *is_used; /* by mapping */
    mr_import_budget budget;
    mr_node **nodes; /* in the file's order */
    int32_t count;
    mr_name_table names; /* name in the file -> index */
    int32_t *seen;       /* by node: 1 + the last node that has it as a control input */
    mr_arena temporary;
} importing;

static mr_status in_node(const Mr__NodeDef *def, mr_status status, mr_error *error)
{
    return mr_fail_prefix(error, status, "node %.200s (%.80s)", def->name, def->op);
}

/* ---- Nodes without inputs ---- */

static mr_status keep_raw(importing *m, mr_node *node, const char *name, const Mr__AttrValue *value, mr_error *error)
{
    mr_raw_attr *attrs = mr_graph_grow(m->graph, node->raw_attrs, node->raw_attr_count, sizeof *attrs);
    mr_string bytes = {0};
    char *key = mr_arena_strdup(&m->graph->arena, name);
    if (attrs == nullptr || key == nullptr) return mr_fail_memory(error, sizeof *attrs);
    if (value != nullptr) MR_TRY(mr_proto_pack(value, &m->graph->arena, &bytes, error));
    int32_t at = node->raw_attr_count++;
    for (; at > 0 && strcmp(attrs[at - 1].name, key) > 0; at--) attrs[at] = attrs[at - 1];
    attrs[at] = (mr_raw_attr){key, (const uint8_t *)bytes.data, bytes.size_bytes};
    node->raw_attrs = attrs;
    return MR_OK;
}

/* "loc:@other" names a node of the same file. */
static mr_status move_location(importing *m, mr_attr *attr, mr_error *error)
{
    if (*m->prefix == '\0' || strcmp(attr->name, "_class") != 0 || attr->kind != MR_ATTR_STRING) return MR_OK;
    for (int32_t i = 0; i < attr->count; i++) {
        mr_string *text = &attr->values[i].string;
        if (text->size_bytes < 5 || memcmp(text->data, "loc:@", 5) != 0) continue;
        const char *moved =
            mr_arena_printf(&m->graph->arena, "loc:@%s%.*s", m->prefix, (int)(text->size_bytes - 5), text->data + 5);
        if (moved == nullptr) return mr_fail_memory(error, text->size_bytes);
        *text = mr_string_from(moved);
    }
    return MR_OK;
}

/* The frame of a loop: another import of the file has loops of its own. */
static mr_status move_frame(importing *m, const mr_node *node, mr_attr *attr, mr_error *error)
{
    if (*m->prefix == '\0' || mr_node_flow(node) != MR_FLOW_ENTER || strcmp(attr->name, "frame_name") != 0)
        return MR_OK;
    if (attr->kind != MR_ATTR_STRING || attr->is_list || attr->count != 1) return MR_OK;
    mr_string *text = &attr->values[0].string;
    const char *name = text->size_bytes > 0 ? text->data : "";
    const char *moved = mr_arena_printf(&m->graph->arena, "%s%.*s", m->prefix, (int)text->size_bytes, name);
    if (moved == nullptr) return mr_fail_memory(error, text->size_bytes);
    *text = mr_string_from(moved);
    return MR_OK;
}

/* Producers up to version 21 wrote the shape {} both for scalars and for unknown shapes, as TensorFlow knows. */
static void forget_old_shape(const importing *m, const Mr__NodeDef *def, mr_attr *attr)
{
    int32_t producer = m->def->versions != nullptr ? m->def->versions->producer : 0;
    if (producer > 21 || strcmp(def->op, "Placeholder") != 0 || strcmp(attr->name, "shape") != 0) return;
    if (attr->kind == MR_ATTR_SHAPE && !attr->is_list && attr->values[0].shape.rank == 0)
        attr->values[0].shape = MR_SHAPE_UNKNOWN;
}

static mr_status read_attrs(importing *m, const Mr__NodeDef *def, mr_node *node, mr_error *error)
{
    if (def->n_attr > MR_ATTRS_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "too many attrs (%zu)", def->n_attr);
    for (size_t i = 0; i < def->n_attr; i++) {
        const Mr__AttrEntry *entry = def->attr[i];
        mr_attr attr = {0};
        mr_status status = MR_UNIMPLEMENTED;
        if (entry->value != nullptr)
            status = mr_attr_read(m->graph, entry->key, entry->value, &m->budget, &attr, error);
        if (status == MR_UNIMPLEMENTED) {
            MR_TRY(keep_raw(m, node, entry->key, entry->value, error));
            continue;
        }
        if (status != MR_OK) return mr_fail_prefix(error, status, "attr %.80s", entry->key);
        MR_TRY(move_location(m, &attr, error));
        MR_TRY(move_frame(m, node, &attr, error));
        forget_old_shape(m, def, &attr);
        MR_TRY(mr_node_put_attr(node, attr, error));
    }
    return MR_OK;
}

/* Keeps fields that have no meaning here as bytes. */
static mr_status keep_rest(importing *m, const Mr__NodeDef *def, mr_node *node, mr_error *error)
{
    bool has_rest =
        def->experimental_debug_info != nullptr || def->experimental_type != nullptr || def->base.n_unknown_fields > 0;
    if (!has_rest) return MR_OK;
    Mr__NodeDef rest = MR__NODE_DEF__INIT;
    mr_string bytes = {0};
    rest.experimental_debug_info = def->experimental_debug_info;
    rest.experimental_type = def->experimental_type;
    rest.base.n_unknown_fields = def->base.n_unknown_fields;
    rest.base.unknown_fields = def->base.unknown_fields;
    MR_TRY(mr_proto_pack(&rest, &m->graph->arena, &bytes, error));
    node->rest = (const uint8_t *)bytes.data;
    node->rest_size_bytes = bytes.size_bytes;
    return MR_OK;
}

static mr_status make_node(importing *m, int32_t index, mr_error *error)
{
    const Mr__NodeDef *def = m->def->node[index];
    mr_graph *graph = m->graph;
    if (!mr_node_name_is_valid(def->name))
        return mr_fail(error, MR_INVALID_ARGUMENT, "node %d: \"%.200s\" is not a valid node name", index, def->name);
    if (*def->op == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "node %.200s has no operator", def->name);
    if (mr_name_table_get(&m->names, def->name, -1) >= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "duplicate node %.200s", def->name);
    MR_TRY(mr_name_table_set(&m->names, def->name, index, error));
    mr_node *node = MR_ARENA_NEW(&graph->arena, mr_node, 1);
    if (node == nullptr) return mr_fail_memory(error, sizeof *node);
    *node = (mr_node){.graph = graph, .id = -1, .def = mr_op_find(def->op), .device = ""};
    if (node->def == nullptr) node->def = mr_function_library_op(graph->functions, def->op);
    node->name = mr_arena_printf(&graph->arena, "%s%s", m->prefix, def->name);
    node->op = node->def != nullptr ? node->def->op->name : mr_arena_strdup(&graph->arena, def->op);
    if (*def->device != '\0')
        node->device = mr_arena_strdup(&graph->arena, def->device);
    else
        node->device = mr_graph_scope_device(graph);
    if (node->name == nullptr || node->op == nullptr || node->device == nullptr) return mr_fail_memory(error, 64);
    if (mr_graph_find(graph, node->name) != nullptr)
        return mr_fail(error, MR_ALREADY_EXISTS, "node %.200s already exists in the graph", node->name);
    m->nodes[index] = node;
    mr_status status = read_attrs(m, def, node, error);
    if (status == MR_OK) status = keep_rest(m, def, node, error);
    return status == MR_OK ? MR_OK : in_node(def, status, error);
}

/* ---- Inputs ---- */

/* A node of the graph that was there before; only if the import extends it. */
static mr_node *find_earlier(const importing *m, const char *name)
{
    return m->extends ? mr_graph_find(m->graph, name) : nullptr;
}

static mr_status add_control(importing *m, mr_node *node, mr_node *source, mr_error *error)
{
    mr_node **controls = mr_graph_grow(m->graph, node->controls, node->control_count, sizeof *controls);
    if (controls == nullptr) return mr_fail_memory(error, sizeof *controls);
    node->controls = controls;
    controls[node->control_count++] = source;
    return MR_OK;
}

/* Outputs of unknown operators: as many as are used, at least one. */
static mr_status add_opaque_outputs(mr_node *node, int32_t count, mr_error *error)
{
    mr_node_output *outputs = MR_ARENA_NEW(&node->graph->arena, mr_node_output, (size_t)count);
    if (outputs == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *outputs);
    for (int32_t i = 0; i < count; i++)
        outputs[i] = (mr_node_output){.shape = MR_SHAPE_UNKNOWN, .handle = MR_SHAPE_UNKNOWN};
    node->outputs = outputs;
    node->output_count = count;
    return MR_OK;
}

/* An input that is not in the file. */
static mr_status read_earlier_input(importing *m, mr_node *node, const char *name, int32_t index, bool is_control,
                                    mr_error *error)
{
    mr_node *source = find_earlier(m, name);
    if (source == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "input %.200s does not exist", name);
    if (!is_control && node->control_count > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %.200s follows a control input", name);
    if (!is_control) {
        if (source->def == nullptr && index >= source->output_count)
            MR_TRY(add_opaque_outputs(source, index + 1, error));
        return mr_node_append_input(node, (mr_output){source, index}, error);
    }
    for (int32_t i = 0; i < node->control_count; i++)
        if (node->controls[i] == source) return MR_OK;
    return add_control(m, node, source, error);
}

/* The number of an output after the colon of a name, 0 without a colon; -1: it is not a number. */
static int32_t output_number(const char *colon)
{
    char *end = nullptr;
    if (colon == nullptr) return 0;
    const long number = strtol(colon + 1, &end, 10);
    return colon[1] >= '0' && colon[1] <= '9' && *end == '\0' && number <= 1 << 20 ? (int32_t)number : -1;
}

/* The output that replaces an input; null: it is not mapped. */
static const mr_import_mapping *find_mapping(importing *m, const char *name, int32_t index, bool is_control)
{
    for (int32_t i = 0; i < m->options->input_map_count; i++) {
        const char *key = m->options->input_map[i].name;
        if ((*key == '^') != is_control) continue;
        key += is_control;
        const char *colon = is_control ? nullptr : strrchr(key, ':');
        const size_t length = colon != nullptr ? (size_t)(colon - key) : strlen(key);
        if (strlen(name) != length || memcmp(key, name, length) != 0) continue;
        if (!is_control && output_number(colon) != index) continue;
        m->is_used[i] = true;
        return &m->options->input_map[i];
    }
    return nullptr;
}

/* An input that the caller maps to an output of the graph. */
static mr_status read_mapped(importing *m, mr_node *node, mr_output output, bool is_control, mr_error *error)
{
    if (!is_control) return mr_node_append_input(node, output, error);
    for (int32_t i = 0; i < node->control_count; i++)
        if (node->controls[i] == output.node) return MR_OK;
    return add_control(m, node, output.node, error);
}

/* "name", "name:3", "^name" */
static mr_status read_input(importing *m, int32_t reader, char *text, mr_error *error)
{
    mr_node *node = m->nodes[reader];
    bool is_control = *text == '^';
    const char *name = text + is_control;
    int32_t index = 0;
    char *colon = is_control ? nullptr : strrchr(text, ':');
    if (colon != nullptr) {
        char *end = nullptr;
        long number = strtol(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || number > 1 << 20)
            return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.200s\" is not a valid input", text);
        index = (int32_t)number;
        *colon = '\0';
    }
    const mr_import_mapping *mapping = find_mapping(m, name, index, is_control);
    if (mapping != nullptr) return read_mapped(m, node, mapping->output, is_control, error);
    int32_t found = mr_name_table_get(&m->names, name, -1);
    if (found < 0) return read_earlier_input(m, node, name, index, is_control, error);
    mr_node *source = m->nodes[found];
    if (is_control) {
        if (m->seen[found] == reader + 1) return MR_OK;
        m->seen[found] = reader + 1;
        return add_control(m, node, source, error);
    }
    if (node->control_count > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %.200s follows a control input", name);
    if (source->def == nullptr && index >= source->output_count) source->output_count = index + 1;
    return mr_node_append_input(node, (mr_output){source, index}, error);
}

static mr_status join_inputs(importing *m, mr_error *error)
{
    for (int32_t i = 0; i < m->count; i++) {
        const Mr__NodeDef *def = m->def->node[i];
        for (size_t j = 0; j < def->n_input; j++) {
            mr_status status = read_input(m, i, def->input[j], error);
            if (status != MR_OK) return in_node(def, status, error);
        }
    }
    for (int32_t i = 0; i < m->count; i++)
        if (m->nodes[i]->def == nullptr)
            MR_TRY(
                add_opaque_outputs(m->nodes[i], m->nodes[i]->output_count > 0 ? m->nodes[i]->output_count : 1, error));
    return MR_OK;
}

/* ---- The order ---- */

static bool is_merge(const mr_node *node)
{
    return mr_node_flow(node) == MR_FLOW_MERGE;
}

static bool is_next_iteration(const mr_node *node)
{
    return mr_node_flow(node) == MR_FLOW_NEXT_ITERATION;
}

/* True for an edge that the order must respect. */
static bool orders(const mr_node *source, const mr_node *node)
{
    return !(is_merge(node) && is_next_iteration(source));
}

/* The consumers of each node, as one array with the index where each node's part begins. During the sort a node's id is
 * its index in the file. */
typedef struct followers {
    int32_t *begins; /* count + 1 */
    int32_t *targets;
    int32_t *waiting; /* number of inputs of each node that are not done */
} followers;

/* Nodes of the graph that was extended have their places already. During the sort a node of the file has its index in
 * the file as its id. */
static bool is_in_file(const importing *m, const mr_node *node)
{
    return node->id >= 0 && node->id < m->count && m->nodes[node->id] == node;
}

static void visit_edges(const importing *m, followers *f, bool fill)
{
    for (int32_t i = 0; i < m->count; i++) {
        const mr_node *node = m->nodes[i];
        for (int32_t j = 0; j < node->input_count + node->control_count; j++) {
            const mr_node *source =
                j < node->input_count ? node->inputs[j].node : node->controls[j - node->input_count];
            if (!orders(source, node) || !is_in_file(m, source)) continue;
            if (fill)
                f->targets[--f->begins[source->id + 1]] = i;
            else
                f->begins[source->id + 1]++, f->waiting[i]++;
        }
    }
}

static mr_status find_followers(importing *m, followers *f, mr_error *error)
{
    size_t count = (size_t)m->count;
    f->begins = MR_ARENA_NEW(&m->temporary, int32_t, count + 2);
    f->waiting = MR_ARENA_NEW(&m->temporary, int32_t, count + 1);
    if (f->begins == nullptr || f->waiting == nullptr) return mr_fail_memory(error, count * sizeof(int32_t));
    for (int32_t i = 0; i < m->count; i++) m->nodes[i]->id = i;
    visit_edges(m, f, false);
    /* begins[i + 1] becomes the end of part i. The parts are filled from their ends, so it is then their begin. */
    for (size_t i = 1; i <= count; i++) f->begins[i] += f->begins[i - 1];
    int32_t total = f->begins[count];
    f->targets = MR_ARENA_NEW(&m->temporary, int32_t, (size_t)total + 1);
    if (f->targets == nullptr) return mr_fail_memory(error, (size_t)total * sizeof(int32_t));
    visit_edges(m, f, true);
    f->begins[count + 1] = total;
    return MR_OK;
}

static mr_status find_order(importing *m, int32_t **order, mr_error *error)
{
    followers f = {0};
    MR_TRY(find_followers(m, &f, error));
    int32_t *queue = MR_ARENA_NEW(&m->temporary, int32_t, (size_t)m->count + 1);
    if (queue == nullptr) return mr_fail_memory(error, (size_t)m->count * sizeof *queue);
    int32_t done = 0, found = 0;
    for (int32_t i = 0; i < m->count; i++)
        if (f.waiting[i] == 0) queue[found++] = i;
    for (; done < found; done++) {
        int32_t node = queue[done];
        for (int32_t j = f.begins[node + 1]; j < f.begins[node + 2]; j++)
            if (--f.waiting[f.targets[j]] == 0) queue[found++] = f.targets[j];
    }
    for (int32_t i = 0; i < m->count; i++) m->nodes[i]->id = -1;
    for (int32_t i = 0; found < m->count && i < m->count; i++)
        if (f.waiting[i] > 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "node %s (%s) is part of a cycle", m->nodes[i]->name,
                           m->nodes[i]->op);
    *order = queue;
    return MR_OK;
}

/* ---- Resolving ---- */

static mr_status check_outputs_exist(const mr_node *node, bool all, mr_error *error)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        mr_output input = node->inputs[i];
        if (!all && !orders(input.node, node)) continue;
        if (input.index >= input.node->output_count)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is output %d of %s (%s), which has %d outputs", i,
                           input.index, input.node->name, input.node->op, input.node->output_count);
    }
    return MR_OK;
}

/* The source of an edge back to a loop's start did not exist yet when the node was resolved. */
static mr_status check_back_edges(const mr_node *node, mr_error *error)
{
    MR_TRY(check_outputs_exist(node, true, error));
    for (int32_t i = 0; is_merge(node) && i < node->input_count; i++) {
        mr_dtype dtype = mr_output_dtype(node->inputs[i]);
        if (dtype != MR_DTYPE_INVALID && node->def != nullptr && dtype != node->outputs[0].dtype)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is %s, not %s", i, mr_dtype_name(dtype),
                           mr_dtype_name(node->outputs[0].dtype));
    }
    return MR_OK;
}

static mr_status resolve(importing *m, mr_error *error)
{
    int32_t *order = nullptr;
    MR_TRY(find_order(m, &order, error));
    for (int32_t i = 0; i < m->count; i++) {
        mr_node *node = m->nodes[order[i]];
        if (node->def == nullptr) continue;
        mr_status status = check_outputs_exist(node, false, error);
        if (status == MR_OK) status = mr_node_resolve(node, error);
        if (status == MR_OK) status = mr_node_infer(node, error);
        if (status != MR_OK) return in_node(m->def->node[order[i]], status, error);
    }
    for (int32_t i = 0; i < m->count; i++) {
        mr_status status = check_back_edges(m->nodes[i], error);
        if (status != MR_OK) return in_node(m->def->node[i], status, error);
    }
    return MR_OK;
}

/* ---- Adding to the graph ---- */

static mr_status keep_library(importing *m, mr_error *error)
{
    mr_graph *graph = m->graph;
    mr_string bytes = {0};
    if (m->def->library == nullptr) return MR_OK;
    MR_TRY(mr_proto_pack(m->def->library, &graph->arena, &bytes, error));
    bool is_known = bytes.size_bytes == graph->library_size_bytes &&
                    (bytes.size_bytes == 0 || memcmp(bytes.data, graph->library, bytes.size_bytes) == 0);
    if (is_known) return MR_OK;
    /* The concatenation of two messages is one message with the functions of both. */
    uint8_t *joined = mr_arena_alloc(&graph->arena, graph->library_size_bytes + bytes.size_bytes + 1);
    if (joined == nullptr) return mr_fail_memory(error, bytes.size_bytes);
    if (graph->library_size_bytes > 0) memcpy(joined, graph->library, graph->library_size_bytes);
    memcpy(joined + graph->library_size_bytes, bytes.data, bytes.size_bytes);
    graph->library = joined;
    graph->library_size_bytes += bytes.size_bytes;
    return MR_OK;
}

static mr_status check_versions(importing *m, mr_error *error)
{
    constexpr int32_t ours = 1645;
    const Mr__VersionDef *versions = m->def->versions;
    if (versions != nullptr && versions->min_consumer > ours)
        return mr_fail(error, MR_UNIMPLEMENTED, "the graph requires TensorFlow graph version %d or later; this is %d",
                       versions->min_consumer, ours);
    return MR_OK;
}

static void keep_versions(importing *m)
{
    const Mr__VersionDef *versions = m->def->versions;
    if (versions == nullptr) return;
    if (versions->producer > 0 && versions->producer < m->graph->producer) m->graph->producer = versions->producer;
    if (versions->min_consumer > m->graph->min_consumer) m->graph->min_consumer = versions->min_consumer;
}

static mr_status append_all(importing *m, mr_error *error)
{
    mr_graph *graph = m->graph;
    int32_t before = graph->node_count;
    mr_status status = keep_library(m, error);
    for (int32_t i = 0; i < m->count && status == MR_OK; i++) {
        status = mr_graph_mark_name(graph, m->nodes[i]->name, error);
        if (status == MR_OK) status = mr_graph_append(graph, m->nodes[i], error);
    }
    if (status == MR_OK) {
        keep_versions(m);
        return MR_OK;
    }
    mr_graph_truncate(graph, before);
    return status;
}

/* ---- What the caller maps, and gets ---- */

static mr_status check_mappings(const importing *m, mr_error *error)
{
    const mr_graph_import_options *o = m->options;
    if (o->input_map_count < 0 || (o->input_map == nullptr && o->input_map_count > 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_import_with: input_map is not a list");
    if (o->return_elements.count < 0 || (o->return_elements.items == nullptr && o->return_elements.count > 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_import_with: return_elements is not a list");
    if (o->return_elements.count > 0 && o->returned == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_import_with: returned is null");
    for (int32_t i = 0; i < o->input_map_count; i++) {
        const mr_import_mapping *mapping = &o->input_map[i];
        if (mapping->name == nullptr || mapping->output.node == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "mapping %d has no %s", (int)i,
                           mapping->name == nullptr ? "name" : "output");
        if (mapping->output.node->graph != m->graph)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the output for %.200s belongs to another graph", mapping->name);
        if (mapping->output.index < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the output for %.200s has the index %d", mapping->name,
                           (int)mapping->output.index);
        for (int32_t j = 0; j < i; j++)
            if (strcmp(o->input_map[j].name, mapping->name) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "%.200s is mapped twice", mapping->name);
    }
    for (int32_t i = 0; i < o->return_elements.count; i++)
        if (o->return_elements.items[i] == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "return_elements: name %d is null", (int)i);
    return MR_OK;
}

static mr_status check_all_used(const importing *m, mr_error *error)
{
    for (int32_t i = 0; i < m->options->input_map_count; i++)
        if (!m->is_used[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.200s\" is mapped, but no node of the graph has this input",
                           m->options->input_map[i].name);
    return MR_OK;
}

/* Finds the outputs that are to be returned: "y:0", or "y" for output 0. */
static mr_status find_returned(importing *m, mr_output *outputs, mr_error *error)
{
    for (int32_t i = 0; i < m->options->return_elements.count; i++) {
        const char *text = m->options->return_elements.items[i], *colon = strrchr(text, ':');
        const int32_t index = output_number(colon);
        const size_t length = colon != nullptr ? (size_t)(colon - text) : strlen(text);
        char *name = mr_arena_strndup(&m->temporary, text, length);
        if (name == nullptr) return mr_fail_memory(error, length);
        const int32_t found = mr_name_table_get(&m->names, name, -1);
        if (found < 0 || index < 0 || (colon != nullptr && index >= m->nodes[found]->output_count))
            return mr_fail(error, MR_INVALID_ARGUMENT, "the graph has no \"%.200s\" to be returned", text);
        outputs[i] = (mr_output){m->nodes[found], index};
    }
    return MR_OK;
}

static mr_status import_nodes(importing *m, mr_error *error)
{
    if (m->def->n_node > INT32_MAX / 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "too many nodes (%zu)", m->def->n_node);
    m->count = (int32_t)m->def->n_node;
    m->nodes = MR_ARENA_NEW(&m->temporary, mr_node *, m->def->n_node + 1);
    m->seen = MR_ARENA_NEW(&m->temporary, int32_t, m->def->n_node + 1);
    if (m->nodes == nullptr || m->seen == nullptr) return mr_fail_memory(error, m->def->n_node * sizeof *m->nodes);
    MR_TRY(check_versions(m, error));
    if (m->def->library != nullptr) MR_TRY(mr_graph_add_functions(m->graph, m->def->library, error));
    for (int32_t i = 0; i < m->count; i++) MR_TRY(make_node(m, i, error));
    MR_TRY(join_inputs(m, error));
    MR_TRY(check_all_used(m, error));
    MR_TRY(resolve(m, error));
    mr_output *returned = MR_ARENA_NEW(&m->temporary, mr_output, (size_t)m->options->return_elements.count + 1);
    if (returned == nullptr) return mr_fail_memory(error, sizeof *returned);
    MR_TRY(find_returned(m, returned, error));
    MR_TRY(append_all(m, error));
    for (int32_t i = 0; i < m->options->return_elements.count; i++) m->options->returned[i] = returned[i];
    return MR_OK;
}

static mr_status read_graph(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes,
                            const mr_graph_import_options *options, bool extends, mr_error *error)
{
    const char *prefix = options->prefix;
    constexpr size_t slack_bytes = 256 << 20;
    size_t scaled = size_bytes < SIZE_MAX / 256 ? size_bytes * 128 : SIZE_MAX / 2;
    importing m = {.graph = graph, .def = graph_def, .prefix = "", .extends = extends, .options = options};
    MR_TRY(check_mappings(&m, error));
    m.is_used = MR_ARENA_NEW(&m.temporary, bool, (size_t)options->input_map_count + 1);
    if (m.is_used == nullptr) return mr_fail_memory(error, (size_t)options->input_map_count);
    m.budget.tensor_bytes = slack_bytes + scaled / 8;
    if (prefix != nullptr && *prefix != '\0') {
        const char *unique = mr_graph_unique_name(graph, prefix);
        m.prefix = mr_arena_printf(&graph->arena, "%s/", unique);
        if (m.prefix == nullptr) return mr_fail_memory(error, strlen(prefix));
    }
    mr_held_tensor *held = graph->held;
    graph->arena.limit_bytes = graph->arena.allocated_bytes + slack_bytes / 4 + scaled;
    mr_status status = import_nodes(&m, error);
    graph->arena.limit_bytes = 0;
    for (; status != MR_OK && graph->held != held; graph->held = graph->held->next)
        mr_tensor_deinit(&graph->held->tensor);
    mr_name_table_deinit(&m.names);
    mr_arena_deinit(&m.temporary);
    return status;
}

mr_status mr_graph_read(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes, const char *prefix,
                        mr_error *error)
{
    const mr_graph_import_options options = {.size = sizeof options, .prefix = prefix};
    return read_graph(graph, graph_def, size_bytes, &options, false, error);
}

mr_status mr_graph_read_with(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes,
                             const mr_graph_import_options *options, mr_error *error)
{
    return read_graph(graph, graph_def, size_bytes, options, false, error);
}

static mr_status import_bytes(mr_graph *graph, const void *bytes, size_t size_bytes,
                              const mr_graph_import_options *options, bool extends, mr_error *error)
{
    const char *prefix = options->prefix;
    MR_TRY(mr_graph_status(graph, error));
    if (graph->is_finalized)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the graph is finalized: nothing can be imported");
    if (bytes == nullptr && size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_import: bytes is null");
    if (prefix != nullptr && *prefix != '\0' && !mr_node_name_is_valid(prefix))
        return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.200s\" is not a valid prefix", prefix);
    mr_arena arena = {0};
    Mr__GraphDef *graph_def = nullptr;
    mr_status status = mr_proto_unpack_as(graph_def, ((mr_string){bytes, size_bytes}), &arena, &graph_def, error);
    if (status == MR_DATA_LOSS) status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "not a GraphDef");
    if (status == MR_OK) status = read_graph(graph, graph_def, size_bytes, options, extends, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_graph_import_with(mr_graph *graph, const void *bytes, size_t size_bytes,
                               const mr_graph_import_options *given, mr_error *error)
{
    mr_graph_import_options options;
    MR_TRY(MR_OPTIONS_READ(mr_graph_import_options, &options, given, error));
    return import_bytes(graph, bytes, size_bytes, &options, false, error);
}

mr_status mr_graph_import(mr_graph *graph, const void *bytes, size_t size_bytes, const char *prefix, mr_error *error)
{
    const mr_graph_import_options options = {.size = sizeof options, .prefix = prefix};
    return import_bytes(graph, bytes, size_bytes, &options, false, error);
}

mr_status mr_graph_extend(mr_graph *graph, const void *bytes, size_t size_bytes, mr_error *error)
{
    const mr_graph_import_options options = {.size = sizeof options};
    return import_bytes(graph, bytes, size_bytes, &options, true, error);
}
