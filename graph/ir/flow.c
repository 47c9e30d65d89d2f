/* See flow.h. The rules are those of CondContext and WhileContext in TensorFlow's control_flow_ops.py. */
#include "graph/ir/flow.h"

#include <assert.h>
#include <string.h>

mr_flow_context *mr_flow_new(mr_graph *graph, bool is_loop)
{
    mr_flow_context *context = MR_ARENA_NEW(&graph->arena, mr_flow_context, 1);
    if (context == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a conditional or a loop");
        return nullptr;
    }
    *context = (mr_flow_context){.graph = graph,
                                 .outer = graph->flow,
                                 .is_loop = is_loop,
                                 .capture = mr_flow_capture,
                                 .complete = mr_flow_complete};
    return context;
}

mr_flow_context *mr_flow_enter(mr_graph *graph, mr_flow_context *context)
{
    mr_flow_context *before = graph->flow;
    graph->flow = context;
    return before;
}

mr_flow_context *mr_flow_of(const mr_node *node)
{
    return node->flow != nullptr && mr_node_flow(node) == MR_FLOW_EXIT ? node->flow->outer : node->flow;
}

mr_flow_context *mr_flow_loop(mr_flow_context *context)
{
    while (context != nullptr && !context->is_loop) context = context->outer;
    return context;
}

bool mr_flow_is_constant_enter(const mr_node *node)
{
    if (mr_node_flow(node) != MR_FLOW_ENTER) return false;
    const mr_attr *attr = mr_attrs_find(&node->attrs, "is_constant");
    return attr != nullptr && attr->kind == MR_ATTR_BOOL && attr->values[0].boolean;
}

mr_status mr_graph_check_complete(const mr_graph *graph, mr_error *error)
{
    MR_TRY(mr_graph_status(graph, error));
    if (graph->flow == nullptr) return MR_OK;
    return mr_fail(error, MR_FAILED_PRECONDITION, "the graph is not complete: %s %s has not ended",
                   graph->flow->is_loop ? "loop" : "conditional", mr_graph_scope(graph));
}

void mr_flow_check_current(mr_graph *graph, const mr_flow_context *context, const char *function)
{
    if (graph->status != MR_OK || graph->flow == context) return;
    (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: a conditional, a loop or a scope inside has not ended",
                        function);
}

/* ---- Values from outside ---- */

static mr_flow_value **bucket_of(mr_flow_context *context, mr_output value)
{
    return &context->values[((uint32_t)value.node->id * 31 + (uint32_t)value.index) % MR_FLOW_BUCKETS];
}

const mr_flow_value *mr_flow_find_value(mr_flow_context *context, mr_output value)
{
    for (const mr_flow_value *v = *bucket_of(context, value); v != nullptr; v = v->next)
        if (v->outside.node == value.node && v->outside.index == value.index) return v;
    return nullptr;
}

void mr_flow_set_value(mr_flow_context *context, mr_output outside, mr_output inside)
{
    if (outside.node == nullptr || inside.node == nullptr || outside.node->id < 0 || inside.node->id < 0) return;
    mr_flow_value *added = MR_ARENA_NEW(&context->graph->arena, mr_flow_value, 1);
    if (added == nullptr) {
        (void)mr_graph_fail(context->graph, MR_RESOURCE_EXHAUSTED, "no memory for a value of a loop");
        return;
    }
    mr_flow_value **bucket = bucket_of(context, outside);
    *added = (mr_flow_value){.outside = outside, .inside = inside, .next = *bucket};
    *bucket = added;
}

/* True if home is the context, or a conditional somewhere inside of it. */
static bool is_inside(const mr_flow_context *home, const mr_flow_context *context)
{
    for (; home != nullptr; home = home->outer) {
        if (home == context) return true;
        if (home->is_loop) return false;
    }
    return context == nullptr;
}

static const char *name_of(mr_flow_context *context, const char *consumer, const char *suffix)
{
    const char *name = mr_arena_printf(&context->graph->arena, "%s/%s", consumer, suffix);
    return name != nullptr ? name : suffix;
}

void mr_flow_add_enter_controls(mr_node *enter)
{
    mr_graph *graph = enter->graph;
    const mr_flow_context *loop = enter->flow;
    const mr_flow_context *outer_loop = mr_flow_loop(loop->outer);
    mr_error error = {0};
    int32_t first = graph->control_frame_count;
    while (first > 0 && !graph->control_frames[first - 1].clears) first--;
    for (int32_t i = first; i < graph->control_frame_count; i++) {
        const mr_control_frame *frame = &graph->control_frames[i];
        if (enter->inputs[0].node->id >= frame->first_id) continue;
        for (int32_t j = 0; j < frame->count; j++) {
            const mr_flow_context *home = mr_flow_of(frame->nodes[j]), *around = loop->outer;
            while (around != home && around != nullptr && around != outer_loop) around = around->outer;
            if (around == home && frame->nodes[j] != enter->inputs[0].node &&
                mr_node_append_control(enter, frame->nodes[j], &error) != MR_OK)
                (void)mr_graph_record(graph, MR_RESOURCE_EXHAUSTED, &error);
        }
    }
}

mr_output mr_flow_capture(mr_flow_context *context, mr_output value, const char *consumer)
{
    if (context == nullptr || value.node == nullptr || value.node->id < 0) return value;
    mr_graph *graph = context->graph;
    mr_flow_context *home = mr_flow_of(value.node);
    if (is_inside(home, context)) return value;
    const mr_flow_value *found = mr_flow_find_value(context, value);
    if (found != nullptr) return found->inside;
    mr_output inside;
    mr_flow_context *computing = mr_flow_loop(graph->flow);
    if (context->is_loop && computing != nullptr && computing->gradient != nullptr &&
        mr_flow_loop(home) == computing->forward) {
        inside = computing->forward_value(computing->gradient, value);
    } else {
        mr_output outside = mr_flow_capture(context->outer, value, consumer);
        mr_graph_push_scope(graph, ""); /* the consumer's name is complete */
        if (context->is_loop) {
            inside =
                mr_flow_add(context, MR_FLOW_ENTER, name_of(context, consumer, "Enter"), MR_OUTPUTS(outside), true);
            if (inside.node->id >= 0) mr_flow_add_enter_controls(inside.node);
        } else {
            inside = mr_flow_add(context, MR_FLOW_SWITCH, name_of(context, consumer, "Switch"),
                                 MR_OUTPUTS(outside, context->pred), false);
            inside.index = inside.node->id >= 0 ? context->branch : 0;
        }
        mr_graph_pop_scope(graph);
    }
    mr_flow_set_value(context, value, inside);
    return inside;
}

/* ---- Nodes that forward values ---- */

static bool has_constant_inputs(const mr_node *node)
{
    for (int32_t i = 0; i < node->input_count; i++)
        if (!mr_flow_is_constant_enter(node->inputs[i].node)) return false;
    return true;
}

static const char *operator_of(mr_flow kind, bool is_ref)
{
    switch (kind) {
    case MR_FLOW_SWITCH:
        return is_ref ? "RefSwitch" : "Switch";
    case MR_FLOW_MERGE:
        return is_ref ? "RefMerge" : "Merge";
    case MR_FLOW_ENTER:
        return is_ref ? "RefEnter" : "Enter";
    case MR_FLOW_EXIT:
        return is_ref ? "RefExit" : "Exit";
    case MR_FLOW_NEXT_ITERATION:
        return is_ref ? "RefNextIteration" : "NextIteration";
    case MR_FLOW_TRIGGER:
        return "ControlTrigger";
    case MR_FLOW_NONE:
        break;
    }
    return is_ref ? "RefIdentity" : "Identity";
}

mr_output mr_flow_add(mr_flow_context *context, mr_flow kind, const char *name, mr_outputs inputs, bool is_constant)
{
    mr_graph *graph = context->graph;
    mr_flow_context *before = mr_flow_enter(graph, nullptr);
    bool is_ref = inputs.count > 0 && inputs.items[0].node != nullptr && inputs.items[0].node->id >= 0 &&
                  mr_output_is_ref(inputs.items[0]);
    const char *op = operator_of(kind, is_ref);
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_node_builder builder = mr_node_begin(graph, op, name != nullptr ? name : op);
    if (kind == MR_FLOW_MERGE)
        mr_node_add_input_list(&builder, inputs);
    else
        for (int32_t i = 0; i < inputs.count; i++) mr_node_add_input(&builder, inputs.items[i]);
    if (kind == MR_FLOW_ENTER) {
        mr_node_set_string(&builder, "frame_name", context->frame);
        mr_node_set_bool(&builder, "is_constant", is_constant);
        mr_node_set_int(&builder, "parallel_iterations", context->parallel_iterations);
    }
    mr_output output = mr_node_finish(&builder);
    mr_graph_pop_control_dependencies(graph);
    (void)mr_flow_enter(graph, before);
    if (output.node->id < 0) return output;
    output.node->flow = context;
    /* A constant has a value in every iteration; what takes only constants must wait until the iteration begins. */
    if (context->is_loop && kind != MR_FLOW_ENTER && inputs.count > 0 && has_constant_inputs(output.node))
        mr_node_add_control(output.node, context->body_pivot.node);
    return output;
}

void mr_flow_close(mr_output merge, mr_output next)
{
    if (merge.node->id < 0 || next.node->id < 0) return;
    assert(mr_node_flow(merge.node) == MR_FLOW_MERGE && merge.node->input_count == 2);
    merge.node->inputs[1] = next;
    __atomic_fetch_add(&merge.node->graph->version, 1, __ATOMIC_RELAXED);
}

void mr_flow_add_exit(mr_flow_context *loop, mr_output exit)
{
    mr_output *exits = mr_graph_grow(loop->graph, loop->exits, loop->exit_count, sizeof *exits);
    if (exits == nullptr) {
        (void)mr_graph_fail(loop->graph, MR_RESOURCE_EXHAUSTED, "no memory for a loop");
        return;
    }
    loop->exits = exits;
    exits[loop->exit_count++] = exit;
}

/* ---- Control edges ---- */

static bool runs_inside(const mr_node *node, const mr_flow_context *context)
{
    for (int32_t i = 0; i < node->control_count; i++)
        if (is_inside(mr_flow_of(node->controls[i]), context)) return true;
    return false;
}

mr_status mr_flow_complete(mr_node *node, mr_error *error)
{
    mr_flow_context *context = node->graph->flow, *loop = mr_flow_loop(context);
    assert(context != nullptr);
    int32_t count = node->control_count, external_count = 0;
    mr_node **controls = node->controls;
    node->controls = nullptr;
    node->control_count = node->control_capacity = 0;
    mr_node **external = MR_ARENA_NEW(&node->graph->arena, mr_node *, (size_t)count + 1);
    if (external == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *external);
    for (int32_t i = 0; i < count; i++) {
        if (loop == nullptr || mr_flow_loop(mr_flow_of(controls[i])) == loop)
            MR_TRY(mr_node_append_control(node, controls[i], error));
        else
            external[external_count++] = controls[i];
    }
    if (context->is_loop) {
        if (node->control_count == 0 && has_constant_inputs(node) && context->body_pivot.node != nullptr)
            MR_TRY(mr_node_append_control(node, context->body_pivot.node, error));
        for (int32_t i = 0; i < external_count; i++) {
            if (external[i]->output_count == 0) continue;
            mr_output inside = mr_flow_capture(context, (mr_output){external[i], 0}, node->name);
            if (inside.node->id >= 0) inside = mr_flow_add(context, MR_FLOW_NONE, nullptr, MR_OUTPUTS(inside), false);
            if (inside.node->id < 0) return mr_graph_status(node->graph, error);
            MR_TRY(mr_node_append_control(node, inside.node, error));
        }
    } else if (node->input_count == 0 && !runs_inside(node, context)) {
        MR_TRY(mr_node_append_control(node, context->pivot.node, error));
    }
    node->flow = context;
    return MR_OK;
}
