/* Freezing: parts of a graph, with constants instead of variables (tf.graph_util). */
#include "base/options.h"
#include "base/status.h"
#include "graph/ir/graph.h"
#include "graph/train/near_names.h"
#include "graph/train/rewrite.h"
#include <millrace/transform.h>

#include <string.h>

static mr_status check_arguments(const char *what, const void *graph, const mr_tensor *result, mr_error *error)
{
    if (graph == nullptr || result == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is null", what, graph == nullptr ? "graph" : "graph_def");
    return MR_OK;
}

static mr_status extract(mr_rewrite *r, mr_names outputs, mr_error *error)
{
    bool *marks = MR_ARENA_NEW(&r->arena, bool, (size_t)r->count + 1);
    if (marks == nullptr) return mr_fail_memory(error, (size_t)r->count);
    if (outputs.count == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: there are no outputs", r->what);
    MR_TRY(mr_rewrite_mark(r, "output", outputs, marks, error));
    return mr_rewrite_keep_reachable(r, marks, nullptr, error);
}

mr_status mr_graph_extract(const mr_graph *graph, mr_names outputs, mr_tensor *graph_def, mr_error *error)
{
    MR_TRY(check_arguments("mr_graph_extract", graph, graph_def, error));
    *graph_def = (mr_tensor){0};
    mr_rewrite r;
    mr_status status = mr_rewrite_init(&r, "mr_graph_extract", graph, error);
    if (status == MR_OK) status = extract(&r, outputs, error);
    if (status == MR_OK) status = mr_rewrite_finish(&r, graph_def, error);
    mr_rewrite_deinit(&r);
    return status;
}

/* ---- Variables ---- */

typedef struct freezing {
    mr_rewrite r;
    const mr_graph *graph;
    mr_session *session;
    const mr_freeze_options *options;
    bool *frozen; /* by node: a variable that becomes a constant, or a node that passes its handle on */
    mr_dtype *dtypes;
    int32_t source_count; /* of nodes in the graph; constants are added behind them */
} freezing;

static bool is_variable(const mr_rewrite *r, int32_t node)
{
    return mr_rewrite_is(r, node, "VariableV2") || mr_rewrite_is(r, node, "Variable") ||
           mr_rewrite_is(r, node, "VarHandleOp");
}

static bool has_name(mr_names names, const char *name)
{
    for (int32_t i = 0; i < names.count; i++)
        if (strcmp(names.items[i], name) == 0) return true;
    return false;
}

/* Every name of a list is a variable of the graph. */
static mr_status check_list(const freezing *f, const char *list, mr_names names, mr_error *error)
{
    const mr_rewrite *r = &f->r;
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has %d names at null", r->what, list, names.count);
    for (int32_t i = 0; i < names.count; i++) {
        char text[MR_NEAR_NAMES_SIZE];
        if (names.items[i] == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a name is null", r->what);
        const int32_t found = mr_name_table_get(&r->ids, names.items[i], -1);
        if (found >= 0 && is_variable(r, found)) continue;
        mr_near_names near = {.name = names.items[i]};
        for (int32_t j = 0; j < f->source_count; j++)
            if (is_variable(r, j)) mr_near_names_add(&near, r->nodes[j]->name);
        return mr_fail(error, MR_NOT_FOUND, "%s: %s has %.200s, which is not a variable%s", r->what, list,
                       names.items[i], mr_near_names_text(&near, text, sizeof text));
    }
    return MR_OK;
}

/* Identity, and the nodes that bring a handle into a branch or a loop. */
static bool passes_on(const mr_rewrite *r, int32_t node)
{
    const mr_op_def *def = mr_op_find(r->nodes[node]->op);
    if (mr_rewrite_type(r, node, "T", MR_FLOAT) != MR_RESOURCE || def == nullptr) return false;
    return mr_rewrite_is(r, node, "Identity") || def->op->flow == MR_FLOW_ENTER || def->op->flow == MR_FLOW_SWITCH;
}

/* Marks the variables that become constants, then the nodes that pass their handles on. */
static void find_frozen(freezing *f)
{
    const mr_rewrite *r = &f->r;
    for (int32_t i = 0; i < r->count; i++) {
        if (r->removed[i] || !is_variable(r, i)) continue;
        const mr_names white = f->options->whitelist;
        f->frozen[i] = (white.count == 0 || has_name(white, r->nodes[i]->name)) &&
                       !has_name(f->options->blacklist, r->nodes[i]->name);
        f->dtypes[i] = mr_rewrite_type(r, i, "dtype", MR_DTYPE_INVALID);
    }
    for (bool changes = true; changes;) {
        changes = false;
        for (int32_t i = 0; i < r->count; i++) {
            if (r->removed[i] || f->frozen[i] || !passes_on(r, i)) continue;
            const mr_rewrite_input input = mr_rewrite_data_input(r, i, 0);
            if (input.node < 0 || !f->frozen[input.node]) continue;
            f->frozen[i] = changes = true;
            f->dtypes[i] = f->dtypes[input.node];
        }
    }
}

/* Whether the node reads input `index` only, or is converted. */
static bool may_read(const freezing *f, int32_t node, int32_t index, bool is_handle)
{
    const mr_rewrite *r = &f->r;
    const mr_op_def *def = mr_op_find(r->nodes[node]->op);
    if (is_handle)
        return mr_rewrite_is(r, node, "ReadVariableOp") || mr_rewrite_is(r, node, "ResourceGather") || f->frozen[node];
    const mr_node *source = mr_graph_find(f->graph, r->nodes[node]->name);
    if (def == nullptr) return true;
    if (index < 32 && ((def->op->writes >> index) & 1) != 0) return false;
    /* A node that passes the reference on: RefIdentity, RefSwitch, … */
    for (int32_t i = 0; source != nullptr && i < source->output_count; i++)
        if (source->outputs[i].is_ref) return false;
    return true;
}

static mr_status check_readers(const freezing *f, mr_error *error)
{
    const mr_rewrite *r = &f->r;
    for (int32_t i = 0; i < r->count; i++)
        for (int32_t j = 0; !r->removed[i] && j < mr_rewrite_data_count(r, i); j++) {
            const mr_rewrite_input input = mr_rewrite_data_input(r, i, j);
            if (input.node < 0 || !f->frozen[input.node]) continue;
            const bool is_handle =
                !mr_rewrite_is(r, input.node, "VariableV2") && !mr_rewrite_is(r, input.node, "Variable");
            if (may_read(f, i, j, is_handle)) continue;
            return mr_fail(error, MR_FAILED_PRECONDITION,
                           "%s: the outputs depend on %.200s (%s), which %s %.200s; put the variable on the blacklist "
                           "to keep it",
                           r->what, r->nodes[i]->name, r->nodes[i]->op,
                           is_handle ? "uses the handle of the variable" : "changes the variable",
                           r->nodes[input.node]->name);
        }
    return MR_OK;
}

/* ---- Conversion ---- */

static mr_status freeze_variable(freezing *f, int32_t node, mr_error *error)
{
    mr_rewrite *r = &f->r;
    mr_tensor value = {0};
    mr_node *source = mr_graph_find(f->graph, r->nodes[node]->name);
    mr_status status = mr_session_read_variable(f->session, (mr_output){source, 0}, &value, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s", r->what);
    status = mr_rewrite_make_constant(r, node, &value, error);
    mr_tensor_deinit(&value);
    return status;
}

/* Keeps "_class", drops the other attrs and the control inputs: a constant can be read at any time. */
static mr_status begin_conversion(mr_rewrite *r, int32_t node, const char *op, size_t inputs, mr_error *error)
{
    Mr__NodeDef *def = r->nodes[node];
    Mr__AttrValue *location = (Mr__AttrValue *)mr_rewrite_attr(r, node, "_class");
    def->op = (char *)op;
    def->n_input = inputs;
    mr_rewrite_clear_attrs(r, node);
    return location != nullptr ? mr_rewrite_set_attr(r, node, "_class", location, error) : MR_OK;
}

static mr_status convert_read(freezing *f, int32_t node, mr_error *error)
{
    const mr_dtype dtype = mr_rewrite_type(&f->r, node, "dtype", MR_FLOAT);
    MR_TRY(begin_conversion(&f->r, node, "Identity", 1, error));
    return mr_rewrite_set_type(&f->r, node, "T", dtype, error);
}

static mr_status convert_gather(freezing *f, int32_t node, mr_error *error)
{
    mr_rewrite *r = &f->r;
    const Mr__AttrValue *batch = mr_rewrite_attr(r, node, "batch_dims");
    if (batch != nullptr && batch->i != 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: %.200s (ResourceGather) has batch_dims %lld; only 0 is supported",
                       r->what, r->nodes[node]->name, (long long)batch->i);
    const mr_dtype dtype = mr_rewrite_type(r, node, "dtype", MR_FLOAT);
    const mr_dtype indices = mr_rewrite_type(r, node, "Tindices", MR_INT32);
    mr_tensor axis = {0};
    MR_TRY(mr_tensor_init(&axis, indices, MR_SCALAR, error));
    memset(mr_tensor_data(&axis), 0, indices == MR_INT64 ? sizeof(int64_t) : sizeof(int32_t));
    const char *name = mr_arena_printf(&r->arena, "%s/axis", r->nodes[node]->name);
    const int32_t constant = name != nullptr ? mr_rewrite_add_constant(r, name, &axis, error) : -1;
    mr_tensor_deinit(&axis);
    if (constant < 0) return mr_fail_memory(error, 64);
    MR_TRY(begin_conversion(r, node, "GatherV2", 2, error));
    const char *inputs[] = {r->nodes[node]->input[0], r->nodes[node]->input[1], r->nodes[constant]->name};
    MR_TRY(mr_rewrite_set_inputs(r, node, inputs, 3, error));
    MR_TRY(mr_rewrite_set_type(r, node, "Tparams", dtype, error));
    MR_TRY(mr_rewrite_set_type(r, node, "Tindices", indices, error));
    return mr_rewrite_set_type(r, node, "Taxis", indices, error);
}

static mr_status convert(freezing *f, mr_error *error)
{
    mr_rewrite *r = &f->r;
    const int32_t count = r->count;
    for (int32_t i = 0; i < count; i++) {
        if (r->removed[i]) continue;
        const mr_rewrite_input input = mr_rewrite_data_input(r, i, 0);
        const bool reads = input.node >= 0 && f->frozen[input.node];
        if (reads && mr_rewrite_is(r, i, "ReadVariableOp"))
            MR_TRY(convert_read(f, i, error));
        else if (reads && mr_rewrite_is(r, i, "ResourceGather"))
            MR_TRY(convert_gather(f, i, error));
        else if (f->frozen[i] && !is_variable(r, i))
            MR_TRY(mr_rewrite_set_type(r, i, "T", f->dtypes[i], error));
    }
    for (int32_t i = 0; i < count; i++)
        if (!r->removed[i] && f->frozen[i] && is_variable(r, i)) MR_TRY(freeze_variable(f, i, error));
    return MR_OK;
}

static mr_status freeze(freezing *f, mr_names outputs, mr_error *error)
{
    mr_rewrite *r = &f->r;
    f->source_count = r->count;
    f->frozen = MR_ARENA_NEW(&r->arena, bool, (size_t)r->count + 1);
    f->dtypes = MR_ARENA_NEW(&r->arena, mr_dtype, (size_t)r->count + 1);
    if (f->frozen == nullptr || f->dtypes == nullptr) return mr_fail_memory(error, (size_t)r->count);
    MR_TRY(check_list(f, "whitelist", f->options->whitelist, error));
    MR_TRY(check_list(f, "blacklist", f->options->blacklist, error));
    MR_TRY(extract(r, outputs, error));
    find_frozen(f);
    MR_TRY(check_readers(f, error));
    return convert(f, error);
}

mr_status mr_graph_freeze(const mr_graph *graph, mr_session *session, mr_names outputs, const mr_freeze_options *given,
                          mr_tensor *graph_def, mr_error *error)
{
    static const mr_freeze_options defaults = {.size = sizeof defaults};
    mr_freeze_options options;
    MR_TRY(check_arguments("mr_graph_freeze", graph, graph_def, error));
    if (session == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_freeze: session is null");
    *graph_def = (mr_tensor){0};
    MR_TRY(MR_OPTIONS_READ(mr_freeze_options, &options, given != nullptr ? given : &defaults, error));
    freezing f = {.graph = graph, .session = session, .options = &options};
    mr_status status = mr_rewrite_init(&f.r, "mr_graph_freeze", graph, error);
    if (status == MR_OK) status = freeze(&f, outputs, error);
    if (status == MR_OK) status = mr_rewrite_finish(&f.r, graph_def, error);
    mr_rewrite_deinit(&f.r);
    return status;
}

/* ---- Training nodes ---- */

/* Splices a node out: its readers get its input 0. */
static mr_status splice(mr_rewrite *r, int32_t node, mr_error *error)
{
    mr_rewrite_replace_readers(r, (mr_rewrite_input){node, 0}, r->nodes[node]->input[0]);
    return mr_rewrite_remove(r, node, error);
}

static mr_status remove_training(mr_rewrite *r, mr_names protected_nodes, mr_error *error)
{
    bool *marks = MR_ARENA_NEW(&r->arena, bool, (size_t)r->count + 1);
    if (marks == nullptr) return mr_fail_memory(error, (size_t)r->count);
    MR_TRY(mr_rewrite_mark(r, "protected node", protected_nodes, marks, error));
    for (int32_t i = 0; i < r->count; i++)
        if (!marks[i] && mr_rewrite_is(r, i, "CheckNumerics")) MR_TRY(splice(r, i, error));
    for (int32_t i = 0; i < r->count; i++) {
        if (r->removed[i] || marks[i] || !mr_rewrite_is(r, i, "Identity")) continue;
        const bool has_controls = r->nodes[i]->n_input != 1;
        if (!has_controls && !mr_rewrite_is_read(r, i, -1)) MR_TRY(splice(r, i, error));
    }
    return MR_OK;
}

mr_status mr_graph_remove_training_nodes(const mr_graph *graph, mr_names protected_nodes, mr_tensor *graph_def,
                                         mr_error *error)
{
    MR_TRY(check_arguments("mr_graph_remove_training_nodes", graph, graph_def, error));
    *graph_def = (mr_tensor){0};
    mr_rewrite r;
    mr_status status = mr_rewrite_init(&r, "mr_graph_remove_training_nodes", graph, error);
    if (status == MR_OK) status = remove_training(&r, protected_nodes, error);
    if (status == MR_OK) status = mr_rewrite_finish(&r, graph_def, error);
    mr_rewrite_deinit(&r);
    return status;
}
