/* See loop_gradient.h. */
#include "graph/train/loop_history.h"

#include <assert.h>
#include <millrace/ops.h>

static bool is_good(const mr_graph *graph)
{
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_output mr_loop_find_kept(const mr_loop_gradient *loop, mr_output value)
{
    for (const mr_kept_value *v = loop->history; v != nullptr; v = v->next)
        if (v->forward.node == value.node && v->forward.index == value.index) return v->real;
    return (mr_output){0};
}

void mr_loop_keep(mr_loop_gradient *loop, mr_output forward, mr_output real)
{
    mr_graph *graph = loop->loops->graph;
    mr_kept_value *added = MR_ARENA_NEW(&graph->arena, mr_kept_value, 1);
    if (added == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the gradient of a loop");
        return;
    }
    *added = (mr_kept_value){.forward = forward, .real = real, .next = loop->history};
    loop->history = added;
}

/* ---- Stacks ---- */

static mr_node *trigger(mr_flow_context *context, mr_output index, const char *name)
{
    mr_node *node = mr_flow_add(context, MR_FLOW_TRIGGER, name, (mr_outputs){0}, false).node;
    if (node->id >= 0 && index.node->id >= 0) mr_node_add_control(index.node, node);
    return node;
}

static mr_node *sync_of(mr_loop_gradient *loop)
{
    if (loop->sync == nullptr) loop->sync = trigger(loop->context, loop->index, "b_sync");
    return loop->sync;
}

static mr_node *forward_sync_of(mr_loop_gradient *loop)
{
    if (loop->forward_sync == nullptr) loop->forward_sync = trigger(loop->forward, loop->forward_index, "f_sync");
    return loop->forward_sync;
}

/* Adds a stack, outside of the loops, on which the forward loop pushes the value in every iteration.
 * is_dead_branch  the value has one if the branch of its conditional is not mr_loop_taken */
mr_output mr_loop_push(mr_loop_gradient *loop, mr_output value, bool is_dead_branch)
{
    mr_graph *graph = loop->loops->graph;
    if (!is_good(graph)) return mr_graph_failed_output(graph);
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    (void)mr_flow_enter(graph, loop->loops->base);
    mr_output stack = mr_stack_v2(graph, mr_constant_int32(graph, -1), mr_output_dtype(value), .name = "f_acc");
    (void)mr_flow_enter(graph, nullptr);
    if (!is_good(graph)) {
        mr_graph_pop_control_dependencies(graph);
        return stack;
    }
    mr_output entered = mr_flow_capture(loop->forward, stack, mr_node_name(stack.node));
    mr_flow_context *home = mr_flow_of(value.node);
    (void)mr_flow_enter(graph, is_dead_branch ? home->outer : home);
    mr_output pushed = mr_stack_push_v2(graph, entered, value, .swap_memory = loop->forward->swap_memory);
    (void)mr_flow_enter(graph, nullptr);
    mr_graph_pop_control_dependencies(graph);
    if (!is_good(graph)) return stack;
    if (is_dead_branch) pushed.node->flow = home;
    mr_node_add_control(home == loop->forward ? loop->forward_index.node : forward_sync_of(loop), pushed.node);
    /* After the counter of this iteration: pushes of two iterations keep their order. */
    mr_node_add_control(pushed.node, loop->forward_index.node->inputs[0].node);
    return stack;
}

/* The conditional inside of which the value is, up to the context of the stack; null: none. */
static mr_flow_context *conditional_of(mr_output value, mr_output stack)
{
    for (mr_flow_context *c = value.node->flow; c != nullptr && c != stack.node->flow; c = c->outer)
        if (!c->is_loop) return c;
    return nullptr;
}

mr_output mr_loop_switch(mr_graph *graph, mr_output value, mr_output pred, int32_t branch)
{
    mr_output output = mr_switch(graph, value, pred).output_false;
    if (is_good(graph)) output.index = branch;
    return output;
}

/* Pops the value of the iteration in the backward loop. */
mr_output mr_loop_pop(mr_loop_gradient *loop, mr_output stack, mr_output value, bool is_dead_branch)
{
    mr_graph *graph = loop->loops->graph;
    if (!is_good(graph)) return mr_graph_failed_output(graph);
    mr_flow_context *conditional = conditional_of(value, stack);
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    (void)mr_flow_enter(graph, loop->context);
    if (conditional != nullptr) {
        mr_output pred = {0};
        for (const mr_loop_gradient *l = loop; l != nullptr && pred.node == nullptr; l = l->outer)
            pred = mr_loop_find_kept(l, conditional->pred);
        if (pred.node == nullptr) pred = conditional->pred;
        stack = mr_loop_switch(graph, stack, pred, is_dead_branch ? 1 - conditional->branch : conditional->branch);
    }
    mr_output popped = mr_stack_pop_v2(graph, stack, mr_output_dtype(value));
    (void)mr_flow_enter(graph, nullptr);
    mr_graph_pop_control_dependencies(graph);
    if (!is_good(graph)) return popped;
    if (mr_output_shape(value).rank >= 0) mr_output_set_shape(popped, mr_output_shape(value));
    if (loop->context->parallel_iterations > 1) mr_node_add_control(sync_of(loop), popped.node);
    return popped;
}

/* The Enter of a value that is the same in all iterations, also in conditionals of the loop (GetLoopConstantEnter);
 * null: it is not. */
static const mr_node *constant_enter_of(mr_output value)
{
    const mr_node *node = value.node;
    while (mr_node_flow(node) == MR_FLOW_SWITCH) node = node->inputs[0].node;
    return mr_flow_is_constant_enter(node) ? node : nullptr;
}

/* What stands for an output of the forward loop in the backward loop (GetRealValue). */
static mr_output forward_value(mr_loop_gradient *loop, mr_output value)
{
    mr_output real = mr_loop_find_kept(loop, value);
    if (real.node != nullptr) return real;
    mr_graph *graph = loop->loops->graph;
    mr_output current = value;
    mr_loop_gradient *owner = loop;
    for (const mr_node *enter; owner != nullptr && (enter = constant_enter_of(current)) != nullptr;) {
        current = enter->inputs[0];
        owner = owner->outer;
    }
    mr_tensor constant = {0};
    mr_flow_context *before = mr_flow_enter(graph, loop->context);
    if (owner == nullptr) { /* the same in all iterations */
        real = mr_flow_capture(loop->context, current, mr_graph_scope(graph));
    } else if (mr_output_constant(current, &constant)) {
        real = mr_constant(graph, &constant, nullptr);
        mr_tensor_deinit(&constant);
    } else {
        (void)mr_flow_enter(graph, loop->loops->base);
        mr_output stack = mr_loop_push(owner, current, false);
        (void)mr_flow_enter(graph, loop->context);
        real = mr_loop_pop(owner, stack, current, false);
        if (owner != loop) real = mr_flow_capture(loop->context, real, mr_graph_scope(graph));
    }
    (void)mr_flow_enter(graph, before);
    if (is_good(graph)) mr_loop_keep(loop, value, real);
    return real;
}

/* ---- Counters ---- */

/* A loop variable whose initial value is taken as it is: its Merge, and its Switch on loop_cond. */
mr_output mr_loop_enter_variable(mr_flow_context *loop, mr_output initial, const char *name)
{
    mr_output entered = mr_flow_add(loop, MR_FLOW_ENTER, name, MR_OUTPUTS(initial), false);
    if (entered.node->id >= 0 && mr_output_shape(initial).rank >= 0)
        mr_output_set_shape(entered, mr_output_shape(initial));
    return mr_flow_add(loop, MR_FLOW_MERGE, name, MR_OUTPUTS(entered, entered), false);
}

/* Counts the iterations of the forward loop; returns the total. */
static mr_output count_iterations(mr_loop_gradient *loop)
{
    mr_graph *graph = loop->loops->graph;
    mr_flow_context *context = loop->forward;
    mr_flow_context *before = mr_flow_enter(graph, context->outer);
    mr_output zero = mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){0}, "f_count");
    if (is_good(graph) && loop->outer != nullptr)
        mr_node_add_control(zero.node, loop->outer->forward_index.node->inputs[0].node);
    (void)mr_flow_enter(graph, context);
    mr_output merge = mr_loop_enter_variable(context, zero, "f_count");
    mr_output split = mr_flow_add(context, MR_FLOW_SWITCH, nullptr, MR_OUTPUTS(merge, context->loop_cond), false);
    mr_output total = mr_graph_failed_output(graph);
    if (is_good(graph)) {
        mr_output next =
            mr_add(graph, mr_loop_taken(split), mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){1}, "Add/y"));
        loop->forward_index = mr_flow_add(context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(next), false);
        mr_flow_close(merge, loop->forward_index);
        total = mr_flow_add(context, MR_FLOW_EXIT, "f_count", MR_OUTPUTS(split), false);
    }
    (void)mr_flow_enter(graph, before);
    return total;
}

/* Makes the backward loop: as many iterations as count says. */
static void count_backwards(mr_loop_gradient *loop, mr_output count)
{
    mr_graph *graph = loop->loops->graph;
    mr_flow_context *context = loop->context;
    mr_output one = mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){1}, "b_count");
    mr_flow_context *before = mr_flow_enter(graph, context);
    mr_output merge = mr_loop_enter_variable(context, count, "b_count");
    context->body_pivot = merge;
    mr_output test = mr_greater_equal(graph, merge, one);
    context->loop_cond = mr_loop_cond(graph, test, .name = "b_count");
    mr_output split = mr_flow_add(context, MR_FLOW_SWITCH, nullptr, MR_OUTPUTS(merge, context->loop_cond), false);
    if (is_good(graph)) {
        mr_output next = mr_sub(graph, mr_loop_taken(split), one);
        context->body_pivot = next;
        loop->index = mr_flow_add(context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(next), false);
        mr_flow_close(merge, loop->index);
        mr_output end = mr_flow_add(context, MR_FLOW_EXIT, "b_count", MR_OUTPUTS(split), false);
        /* Pops of an inner loop: those of one execution before those of the next. */
        if (is_good(graph) && loop->outer != nullptr) mr_node_add_control(sync_of(loop->outer), end.node);
    }
    (void)mr_flow_enter(graph, before);
}

mr_loop_gradient *mr_loop_gradient_of(const mr_loop_gradients *loops, const mr_node *node, bool is_before)
{
    const mr_flow_context *loop = mr_flow_loop(is_before ? mr_flow_of(node) : node->flow);
    for (mr_loop_gradient *l = loops->first; l != nullptr && loop != nullptr; l = l->next)
        if (l->forward == loop) return l;
    return nullptr;
}

mr_loop_gradient *mr_loop_gradient_add(mr_loop_gradients *loops, const mr_node *exit)
{
    mr_graph *graph = loops->graph;
    mr_loop_gradient *loop = mr_loop_gradient_of(loops, exit, false);
    if (loop != nullptr) return loop;
    loop = MR_ARENA_NEW(&graph->arena, mr_loop_gradient, 1);
    if (loop == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the gradient of a loop");
        return nullptr;
    }
    *loop = (mr_loop_gradient){.loops = loops, .next = loops->first, .forward = exit->flow};
    loop->outer = mr_loop_gradient_of(loops, exit, true);
    loop->exits.pending = exit->flow->exit_count;
    mr_output total = count_iterations(loop);
    mr_flow_context *around = loop->forward->outer;
    if (loop->outer != nullptr) {
        mr_output stack = mr_loop_push(loop->outer, total, false);
        around = loop->outer->context;
        (void)mr_flow_enter(graph, around);
        total = mr_loop_pop(loop->outer, stack, total, false);
    }
    (void)mr_flow_enter(graph, around);
    loop->context = mr_flow_new(graph, true);
    if (loop->context != nullptr && is_good(graph)) {
        mr_flow_context *context = loop->context;
        const char *name = loop->forward->frame;
        context->frame = mr_graph_unique_name(graph, name);
        context->parallel_iterations = loop->forward->parallel_iterations;
        context->back_prop = loop->forward->back_prop;
        context->swap_memory = loop->forward->swap_memory;
        context->gradient = loop;
        context->forward = loop->forward;
        context->forward_value = forward_value;
        count_backwards(loop, total);
    }
    (void)mr_flow_enter(graph, loops->base);
    if (!is_good(graph)) return nullptr;
    loops->first = loop;
    return loop;
}

mr_flow_context *mr_loop_gradient_context(const mr_loop_gradient *loop)
{
    return loop->context;
}

mr_loop_exits *mr_loop_gradient_exits(mr_loop_gradient *loop)
{
    return &loop->exits;
}
