/* Gradients of the nodes that direct values: Switch, Merge, Enter, Exit and NextIteration, as in TensorFlow's
 * control_flow_grad.py. */
#include "graph/train/loop_history.h"

#include <millrace/ops.h>
#include <string.h>

static bool is_good(const mr_graph *graph)
{
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static bool has_shape(mr_output output)
{
    mr_shape shape = mr_output_shape(output);
    return shape.rank >= 0 && mr_shape_count(shape) >= 0;
}

/* Zeros of the shape: a constant vector, or the output of Shape. */
static mr_output zeros_of(mr_graph *graph, mr_output shape, mr_dtype dtype)
{
    mr_output zero = mr_constant_float(graph, 0);
    if (dtype != MR_FLOAT) zero = mr_cast(graph, zero, dtype);
    return mr_fill(graph, shape, zero);
}

static mr_output constant_zeros(mr_graph *graph, mr_shape shape, mr_dtype dtype, const char *name)
{
    constexpr int64_t CONST_MAX = 1000; /* more elements are filled when they are needed */
    if (mr_shape_count(shape) > CONST_MAX) {
        int64_t sizes[MR_RANK_MAX];
        for (int32_t i = 0; i < shape.rank; i++) sizes[i] = shape.dims[i];
        return zeros_of(graph, mr_constant_ints(graph, (mr_ints){sizes, shape.rank}), dtype);
    }
    mr_tensor zeros = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init(&zeros, dtype, shape, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    if (mr_tensor_size_bytes(&zeros) > 0) memset(zeros.data, 0, mr_tensor_size_bytes(&zeros));
    mr_output output = mr_constant(graph, &zeros, name);
    mr_tensor_deinit(&zeros);
    return output;
}

/* ---- Zeros ---- */

/* Keeps the shape of the value, which only runs forwards know, and fills zeros of that shape in the backward loop. */
static mr_output zeros_from_history(mr_loop_gradient *loop, mr_output shape, mr_dtype dtype, bool is_dead_branch)
{
    mr_graph *graph = loop->loops->graph;
    mr_flow_context *before = mr_flow_enter(graph, loop->loops->base);
    mr_output stack = mr_loop_push(loop, shape, is_dead_branch);
    (void)mr_flow_enter(graph, loop->context);
    mr_output zeros = zeros_of(graph, mr_loop_pop(loop, stack, shape, is_dead_branch), dtype);
    (void)mr_flow_enter(graph, before);
    return zeros;
}

static mr_output shape_in(mr_graph *graph, mr_flow_context *context, mr_output value)
{
    mr_flow_context *before = mr_flow_enter(graph, context);
    mr_output shape = mr_shape_of(graph, value);
    (void)mr_flow_enter(graph, before);
    return shape;
}

mr_output mr_loop_gradient_zeros(mr_loop_gradients *loops, mr_output exit)
{
    mr_graph *graph = loops->graph;
    mr_loop_gradient *outer = mr_loop_gradient_of(loops, exit.node, true);
    mr_flow_context *before = mr_flow_enter(graph, outer != nullptr ? outer->context : loops->base);
    mr_output zeros;
    if (has_shape(exit))
        zeros = constant_zeros(graph, mr_output_shape(exit), mr_output_dtype(exit), nullptr);
    else if (outer == nullptr)
        zeros = mr_zeros_like(graph, exit);
    else
        zeros = zeros_from_history(outer, shape_in(graph, exit.node->flow->outer, exit), mr_output_dtype(exit), false);
    (void)mr_flow_enter(graph, before);
    return zeros;
}

/* Zeros for the branch of a conditional that was not taken: {value if it was, zeros if not} are merged. */
static mr_output zeros_of_branch(mr_loop_gradients *loops, mr_node *node)
{
    mr_graph *graph = loops->graph;
    mr_flow_context *conditional = node->flow;
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, node, false);
    mr_output value = node->inputs[0];
    int32_t other = 1 - conditional->branch;
    mr_dtype dtype = mr_output_dtype(value);
    if (loop == nullptr) {
        mr_output guarded = mr_loop_switch(graph, value, conditional->pred, other);
        mr_output shape = mr_shape_of(graph, guarded);
        mr_node *pivot = mr_identity(graph, guarded).node; /* TensorFlow's optimizer replaces a shape by a constant */
        mr_graph_push_control_dependencies(graph, &pivot, 1);
        mr_output zeros = zeros_of(graph, shape, dtype);
        mr_graph_pop_control_dependencies(graph);
        return zeros;
    }
    if (has_shape(value)) {
        mr_output pred = mr_loop_find_kept(loop, conditional->pred);
        if (pred.node == nullptr) pred = loop->context->forward_value(loop, conditional->pred);
        return mr_loop_switch(graph, constant_zeros(graph, mr_output_shape(value), dtype, nullptr), pred, other);
    }
    mr_flow_context *before = mr_flow_enter(graph, conditional->outer);
    mr_output guarded = mr_loop_switch(graph, value, conditional->pred, other);
    mr_output shape = mr_shape_of(graph, guarded);
    (void)mr_flow_enter(graph, before);
    if (!is_good(graph)) return shape;
    guarded.node->flow = shape.node->flow = conditional;
    return zeros_from_history(loop, shape, dtype, true);
}

/* ---- Gradients of the nodes that direct values ---- */

static void switch_gradient(mr_loop_gradients *loops, mr_node *node, const mr_output *grads, mr_output *results)
{
    mr_graph *graph = loops->graph;
    mr_flow_context *home = node->flow;
    if (home == nullptr) {
        mr_output pred = node->inputs[1], zeros = {0};
        if (grads[0].node == nullptr || grads[1].node == nullptr) zeros = mr_zeros_like(graph, node->inputs[0]);
        mr_output if_false = mr_loop_switch(graph, grads[0].node != nullptr ? grads[0] : zeros, pred, 0);
        mr_output if_true = mr_loop_switch(graph, grads[1].node != nullptr ? grads[1] : zeros, pred, 1);
        results[0] = mr_merge(graph, MR_OUTPUTS(if_false, if_true)).output;
        return;
    }
    if (!home->is_loop) {
        if (grads[home->branch].node == nullptr) return;
        mr_output both[2] = {grads[0], grads[1]};
        if (both[1 - home->branch].node == nullptr) both[1 - home->branch] = zeros_of_branch(loops, node);
        results[0] = mr_merge(graph, MR_OUTPUTS_OF(both, 2), .name = "cond_grad").output;
        return;
    }
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, node, false);
    if (loop == nullptr) return;
    for (mr_back_edge *e = loop->edges; e != nullptr; e = e->next)
        if (e->forward_switch == node) { /* the second visit, from the body */
            if (grads[1].node == nullptr) return;
            mr_output next = mr_flow_add(loop->context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(grads[1]), false);
            mr_flow_close(e->merge, next);
            return;
        }
    if (grads[0].node == nullptr) return;
    mr_back_edge *edge = MR_ARENA_NEW(&graph->arena, mr_back_edge, 1);
    if (edge == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the gradient of a loop");
        return;
    }
    mr_output merge = mr_flow_add(loop->context, MR_FLOW_MERGE, "b_switch", MR_OUTPUTS(grads[0], grads[0]), false);
    *edge = (mr_back_edge){.forward_switch = node, .merge = merge, .next = loop->edges};
    loop->edges = edge;
    results[0] = merge;
}

static void merge_gradient(mr_loop_gradients *loops, mr_node *node, const mr_output *grads, mr_output *results)
{
    mr_graph *graph = loops->graph;
    mr_flow_context *home = mr_flow_of(node->inputs[0].node);
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, node, false);
    if (home != nullptr && home->is_loop) {
        mr_output split =
            mr_switch(graph, grads[0], loop != nullptr ? loop->context->loop_cond : home->loop_cond).output_false;
        for (int32_t i = 0; i < 2; i++) results[i] = i == 0 ? split : mr_loop_taken(split);
        return;
    }
    if (home != nullptr) {
        mr_output pred = home->pred;
        if (loop != nullptr) {
            mr_output real = mr_loop_find_kept(loop, pred);
            if (real.node == nullptr) {
                mr_flow_context *before = mr_flow_enter(graph, loops->base);
                mr_output stack = mr_loop_push(loop, pred, false);
                (void)mr_flow_enter(graph, before);
                real = mr_loop_pop(loop, stack, pred, false);
                (void)mr_flow_enter(graph, before);
                if (is_good(graph)) mr_loop_keep(loop, pred, real);
            }
            pred = real;
        }
        mr_output split = mr_switch(graph, grads[0], pred, .name = "cond_grad").output_false;
        for (int32_t i = 0; i < 2; i++) results[i] = i == 0 ? split : mr_loop_taken(split);
        return;
    }
    mr_output index = {node, 1};
    for (int32_t i = 0; i < node->input_count; i++) {
        mr_output is_it = mr_equal(graph, index, mr_constant_int32(graph, i));
        results[i] = mr_loop_switch(graph, grads[0], is_it, 1);
    }
}

static void exit_gradient(mr_loop_gradients *loops, mr_node *node, mr_output grad, mr_output *results)
{
    mr_graph *graph = loops->graph;
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, node, false);
    if (loop == nullptr) return;
    if (node->flow->gradient != nullptr || node->flow->pops) {
        (void)mr_graph_fail(graph, MR_UNIMPLEMENTED,
                            "gradients: %s leaves the gradient of a loop; gradients of "
                            "gradients of loops are not supported",
                            node->name);
        return;
    }
    mr_output entered = mr_flow_add(loop->context, MR_FLOW_ENTER, "b_exit", MR_OUTPUTS(grad), false);
    if (entered.node->id >= 0 && mr_output_shape(grad).rank >= 0) mr_output_set_shape(entered, mr_output_shape(grad));
    results[0] = entered;
}

/* Sums the gradients of a value that is the same in all iterations. */
static mr_output accumulate(mr_loop_gradient *loop, mr_node *enter, mr_output grad)
{
    mr_graph *graph = loop->loops->graph;
    mr_flow_context *context = loop->context;
    mr_dtype dtype = mr_output_dtype(grad);
    mr_output initial;
    mr_flow_context *before = mr_flow_enter(graph, context->outer);
    if (has_shape(grad))
        initial = constant_zeros(graph, mr_output_shape(grad), dtype, "b_acc");
    else if (loop->outer != nullptr)
        initial =
            zeros_from_history(loop->outer, shape_in(graph, loop->forward->outer, enter->inputs[0]), dtype, false);
    else
        initial = zeros_of(graph, mr_shape_of(graph, enter->inputs[0]), dtype);
    (void)mr_flow_enter(graph, context);
    mr_output total = mr_graph_failed_output(graph);
    if (is_good(graph)) {
        mr_output merge = mr_loop_enter_variable(context, initial, "b_acc");
        mr_output split = mr_flow_add(context, MR_FLOW_SWITCH, nullptr, MR_OUTPUTS(merge, context->loop_cond), false);
        mr_output sum = is_good(graph) ? mr_add(graph, mr_loop_taken(split), grad) : total;
        mr_flow_close(merge, mr_flow_add(context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(sum), false));
        total = mr_flow_add(context, MR_FLOW_EXIT, "b_acc", MR_OUTPUTS(split), false);
    }
    (void)mr_flow_enter(graph, before);
    return total;
}

static void enter_gradient(mr_loop_gradients *loops, mr_node *node, mr_output grad, mr_output *results)
{
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, node, false);
    if (loop == nullptr || !node->flow->back_prop)
        results[0] = grad;
    else if (mr_flow_is_constant_enter(node))
        results[0] = accumulate(loop, node, grad);
    else
        results[0] = mr_flow_add(loop->context, MR_FLOW_EXIT, nullptr, MR_OUTPUTS(grad), false);
}

bool mr_loop_gradient_handles(const mr_node *node)
{
    mr_flow flow = mr_node_flow(node);
    return flow != MR_FLOW_NONE && flow != MR_FLOW_TRIGGER;
}

void mr_loop_gradient_call(mr_loop_gradients *loops, mr_node *node, const mr_output *grads, mr_output *results)
{
    mr_flow flow = mr_node_flow(node);
    if (node->flow == nullptr && flow != MR_FLOW_SWITCH && flow != MR_FLOW_MERGE) {
        (void)mr_graph_fail(loops->graph, MR_UNIMPLEMENTED,
                            "gradients: node %s (%s) is part of an imported loop whose control-flow context is not "
                            "known: that needs a MetaGraphDef with the collection while_context",
                            node->name, node->op);
        return;
    }
    switch (flow) {
    case MR_FLOW_SWITCH:
        switch_gradient(loops, node, grads, results);
        break;
    case MR_FLOW_MERGE:
        if (grads[0].node != nullptr) merge_gradient(loops, node, grads, results);
        break;
    case MR_FLOW_EXIT:
        exit_gradient(loops, node, grads[0], results);
        break;
    case MR_FLOW_ENTER:
        enter_gradient(loops, node, grads[0], results);
        break;
    case MR_FLOW_NEXT_ITERATION:
        results[0] = grads[0];
        break;
    case MR_FLOW_NONE:
    case MR_FLOW_TRIGGER:
        break;
    }
}

void mr_loop_gradients_finish(mr_loop_gradients *loops)
{
    mr_graph *graph = loops->graph;
    for (mr_loop_gradient *loop = loops->first; loop != nullptr; loop = loop->next)
        for (const mr_back_edge *e = loop->edges; e != nullptr && is_good(graph); e = e->next) {
            mr_output entered = e->merge.node->inputs[0];
            if (entered.node != e->merge.node->inputs[1].node) continue;
            mr_flow_context *before = mr_flow_enter(graph, loop->context->outer);
            mr_output zeros;
            if (has_shape(entered)) {
                (void)mr_flow_enter(graph, loop->context);
                zeros = constant_zeros(graph, mr_output_shape(entered), mr_output_dtype(entered), nullptr);
            } else {
                mr_output shape = mr_shape_of(graph, entered.node->inputs[0]);
                zeros = zeros_of(graph, shape, mr_output_dtype(entered));
                (void)mr_flow_enter(graph, loop->context);
                zeros = mr_flow_capture(loop->context, zeros, mr_graph_scope(graph));
            }
            mr_flow_close(e->merge,
                          mr_flow_add(loop->context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(zeros), false));
            (void)mr_flow_enter(graph, before);
        }
}
