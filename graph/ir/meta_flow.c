/* The control-flow contexts of an imported MetaGraphDef: to which loops and conditionals its nodes belong, as
 * from_control_flow_context_def of TensorFlow's control_flow_ops. Without them, a loop runs, but has no gradient.
 *
 * The file may be hostile. What the contexts say is checked against the nodes, and if anything does not fit, none of
 * them is used. */
#include "graph/ir/meta_flow.h"
#include "graph/ir/convert.h"
#include "graph/ir/flow.h"

#include <stdlib.h>
#include <string.h>

/* Of a context: comparisons of its values with those from outside; exits. */
constexpr size_t VALUES_MAX = 1 << 24, EXITS_MAX = 1 << 12;

typedef struct reading {
    mr_graph *graph;
    mr_arena *arena; /* for messages */
    int32_t first;   /* the first imported node */
    bool fits;
    mr_flow_context **flows; /* of each imported node */
} reading;

static void refuse(reading *r)
{
    r->fits = false;
}

/* An imported output; {0}, and nothing fits, if there is none of this name. */
static mr_output find(reading *r, const char *name)
{
    const mr_output output = *name != '\0' ? mr_graph_find_output(r->graph, name) : (mr_output){0};
    if (output.node != nullptr && output.node->id >= r->first) return output;
    refuse(r);
    return (mr_output){0};
}

/* ---- Contexts ---- */

static bool is_external(const Mr__ValuesDef *def, const char *name)
{
    for (size_t i = 0; i < def->n_external_values; i++)
        if (strcmp(def->external_values[i]->key, name) == 0) return true;
    return false;
}

/* The nodes of the context, which may also be of contexts inside of it; and what stands for outputs from outside. */
static void read_values(reading *r, mr_flow_context *context, const Mr__ValuesDef *def)
{
    if (def == nullptr) return;
    if (def->n_external_values > 0 && def->n_values > VALUES_MAX / def->n_external_values) refuse(r);
    for (size_t i = 0; i < def->n_values && r->fits; i++) {
        if (is_external(def, def->values[i])) continue;
        const mr_output value = find(r, def->values[i]);
        if (!r->fits) break;
        r->flows[value.node->id - r->first] = context;
        context->pops |= context->is_loop && strncmp(value.node->op, "StackPop", 8) == 0 &&
                         (value.node->op[8] == '\0' || strcmp(value.node->op + 8, "V2") == 0);
    }
    for (size_t i = 0; i < def->n_external_values && r->fits; i++) {
        const mr_output outside = find(r, def->external_values[i]->key),
                        inside = find(r, def->external_values[i]->value);
        if (r->fits) mr_flow_set_value(context, outside, inside);
    }
}

static mr_flow_context *context_new(reading *r, mr_flow_context *outer, bool is_loop)
{
    mr_flow_context *context = mr_flow_new(r->graph, is_loop);
    if (context == nullptr)
        refuse(r);
    else
        context->outer = outer;
    return context;
}

static void read_nested(reading *r, mr_flow_context *outer, Mr__ControlFlowContextDef *const *contexts, size_t count);

static void read_cond(reading *r, mr_flow_context *outer, const Mr__CondContextDef *def)
{
    mr_flow_context *context = context_new(r, outer, false);
    if (context == nullptr) return;
    context->pred = find(r, def->pred_name);
    context->pivot = find(r, def->pivot_name);
    context->branch = def->branch;
    if (def->branch != 0 && def->branch != 1) refuse(r);
    read_values(r, context, def->values_def);
    read_nested(r, context, def->nested_contexts, def->n_nested_contexts);
}

/* The frame of the loop, as its Enter nodes have it. */
static const char *frame_of(reading *r, const Mr__WhileContextDef *def)
{
    const mr_output enter = def->n_loop_enter_names > 0 ? find(r, def->loop_enter_names[0]) : (mr_output){0};
    const mr_attr *attr = enter.node != nullptr ? mr_attrs_find(&enter.node->attrs, "frame_name") : nullptr;
    if (attr != nullptr && attr->kind == MR_ATTR_STRING && attr->count == 1) return attr->values[0].string.data;
    refuse(r);
    return "";
}

static void read_while(reading *r, mr_flow_context *outer, const Mr__WhileContextDef *def)
{
    mr_flow_context *context = context_new(r, outer, true);
    if (context == nullptr) return;
    context->frame = frame_of(r, def);
    context->parallel_iterations = def->parallel_iterations;
    context->back_prop = def->back_prop != 0;
    context->swap_memory = def->swap_memory != 0;
    context->loop_cond = find(r, def->pivot_name);
    context->body_pivot = find(r, def->pivot_for_body_name);
    if (def->parallel_iterations < 1 || def->n_loop_exit_names > EXITS_MAX) refuse(r);
    for (size_t i = 0; i < def->n_loop_exit_names && r->fits; i++) {
        const mr_output exit = find(r, def->loop_exit_names[i]);
        if (r->fits) mr_flow_add_exit(context, exit);
    }
    read_values(r, context, def->values_def);
    read_nested(r, context, def->nested_contexts, def->n_nested_contexts);
    if (!r->fits) return;
    const mr_node *cond = context->loop_cond.node, *pivot = context->body_pivot.node;
    if (strcmp(cond->op, "LoopCond") != 0 || r->flows[cond->id - r->first] != context ||
        r->flows[pivot->id - r->first] != context)
        refuse(r);
}

/* The depth is limited by that of messages. */
static void read_nested(reading *r, mr_flow_context *outer, Mr__ControlFlowContextDef *const *contexts, size_t count)
{
    for (size_t i = 0; i < count && r->fits; i++) {
        if (contexts[i]->ctxt_case == MR__CONTROL_FLOW_CONTEXT_DEF__CTXT_WHILE_CTXT)
            read_while(r, outer, contexts[i]->while_ctxt);
        else if (contexts[i]->ctxt_case == MR__CONTROL_FLOW_CONTEXT_DEF__CTXT_COND_CTXT)
            read_cond(r, outer, contexts[i]->cond_ctxt);
    }
}

static void read_collection(reading *r, const Mr__CollectionDef *def, bool is_while)
{
    if (def->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST) return refuse(r);
    for (size_t i = 0; i < def->bytes_list->n_value && r->fits; i++) {
        const mr_string bytes = mr_proto_bytes(def->bytes_list->value[i]);
        Mr__WhileContextDef *loop = nullptr;
        Mr__CondContextDef *conditional = nullptr;
        const mr_status status = is_while
                                     ? mr_proto_unpack_as(while_context_def, bytes, r->arena, &loop, nullptr)
                                     : mr_proto_unpack_as(cond_context_def, bytes, r->arena, &conditional, nullptr);
        if (status != MR_OK) return refuse(r);
        if (is_while)
            read_while(r, nullptr, loop);
        else
            read_cond(r, nullptr, conditional);
    }
}

/* ---- Checks ---- */

static mr_flow_context *flow_of(const reading *r, const mr_node *node)
{
    return node->id >= r->first ? r->flows[node->id - r->first] : nullptr;
}

/* Each output that the node uses is of its context, or from around it, as the gradients of loops require: only an Enter
 * leads into a loop, and only an Exit out of it. */
static bool check_inputs(const reading *r, const mr_node *node, const mr_flow_context *context)
{
    const mr_flow kind = mr_node_flow(node);
    mr_flow_context *loop = mr_flow_loop((mr_flow_context *)context);
    if (kind == MR_FLOW_ENTER) loop = mr_flow_loop(loop->outer);
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_node *input = node->inputs[i].node;
        mr_flow_context *home = flow_of(r, input);
        if (mr_node_flow(input) == MR_FLOW_EXIT && home != nullptr) home = home->outer;
        if (mr_flow_loop(home) != loop) return false;
    }
    return true;
}

static bool is_kind(mr_output output, mr_flow kind)
{
    return output.node != nullptr && mr_node_flow(output.node) == kind;
}

static bool check_enter(const mr_node *node, const mr_flow_context *context)
{
    const mr_attr *attr = mr_attrs_find(&node->attrs, "frame_name");
    return attr != nullptr && attr->kind == MR_ATTR_STRING && attr->count == 1 &&
           strcmp(attr->values[0].string.data, context->frame) == 0;
}

static bool check_node(const reading *r, const mr_node *node)
{
    const mr_flow_context *context = flow_of(r, node);
    const mr_flow kind = mr_node_flow(node);
    const bool is_loop = context != nullptr && context->is_loop;
    if (!is_loop && (kind == MR_FLOW_ENTER || kind == MR_FLOW_EXIT || kind == MR_FLOW_NEXT_ITERATION)) return false;
    if (!check_inputs(r, node, context)) return false;
    if (kind == MR_FLOW_ENTER) return check_enter(node, context);
    if (kind == MR_FLOW_EXIT) {
        const mr_output from = node->inputs[0];
        bool is_listed = false;
        for (int32_t i = 0; i < context->exit_count; i++) is_listed |= context->exits[i].node == node;
        return is_listed && is_kind(from, MR_FLOW_SWITCH) && from.index == 0 && flow_of(r, from.node) == context;
    }
    if (kind == MR_FLOW_SWITCH && is_loop) {
        const bool is_variable = is_kind(node->inputs[0], MR_FLOW_MERGE) &&
                                 flow_of(r, node->inputs[0].node) == context &&
                                 is_kind(node->inputs[0].node->inputs[0], MR_FLOW_ENTER);
        return !is_variable || node->inputs[1].node == context->loop_cond.node;
    }
    if (kind == MR_FLOW_MERGE && is_loop && is_kind(node->inputs[0], MR_FLOW_ENTER))
        return node->input_count == 2 && is_kind(node->inputs[1], MR_FLOW_NEXT_ITERATION);
    return true;
}

/* ---- All of it ---- */

bool mr_is_context_collection(const char *name)
{
    return strcmp(name, "while_context") == 0 || strcmp(name, "cond_context") == 0;
}

void mr_graph_read_contexts(mr_graph *graph, const Mr__MetaGraphDef *meta, int32_t first, mr_arena *arena)
{
    const int32_t count = graph->node_count - first, missing = graph->missing_count;
    if (graph->flow != nullptr || graph->status != MR_OK || count <= 0) return;
    reading r = {.graph = graph, .arena = arena, .first = first, .fits = true};
    r.flows = MR_ARENA_NEW(arena, mr_flow_context *, (size_t)count);
    bool any = false;
    if (r.flows == nullptr) return;
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (entry->value == nullptr || !mr_is_context_collection(entry->key)) continue;
        read_collection(&r, entry->value, strcmp(entry->key, "while_context") == 0);
        any = true;
    }
    graph->missing_count = missing;
    for (int32_t i = 0; i < count && r.fits; i++) r.fits = check_node(&r, graph->nodes[first + i]);
    if (!any || !r.fits || graph->status != MR_OK) return;
    for (int32_t i = 0; i < count; i++) {
        graph->nodes[first + i]->flow = r.flows[i];
        if (r.flows[i] != nullptr) r.flows[i]->imported_count++;
    }
}
