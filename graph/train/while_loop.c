/* Loops: Enter, Merge, LoopCond, Switch, Identity, NextIteration and Exit for each variable, as WhileContext.BuildLoop
 * of TensorFlow's control_flow_ops. */
#include "base/options.h"
#include "graph/ir/flow.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

struct mr_while_loop {
    mr_graph *graph;
    mr_flow_context *context, *before;
    int32_t count;
    mr_output *merges, *switches;
    mr_shape *shapes; /* of the variables, in all iterations */
    bool is_in_body, is_ended, is_failed;
};

static mr_while_loop *fail(mr_while_loop *loop, const char *what)
{
    loop->is_failed = true;
    if (mr_graph_status(loop->graph, nullptr) == MR_OK)
        (void)mr_graph_fail(loop->graph, MR_INVALID_ARGUMENT, "%s", what);
    return loop;
}

static void set_failed(mr_graph *graph, mr_output *outputs, int32_t count)
{
    for (int32_t i = 0; outputs != nullptr && i < count; i++) outputs[i] = mr_graph_failed_output(graph);
}

/* Reads and checks the options; false after an error of the graph. */
static bool read_options(mr_graph *graph, const mr_while_loop_options *given, mr_outputs initial,
                         mr_while_loop_options *options)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_while_loop_options, options, given, &error);
    if (status == MR_OK && (initial.count < 1 || initial.items == nullptr))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "while: the loop has no variables");
    if (status == MR_OK && options->parallel_iterations < 1)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "while: parallel_iterations is %d, but must be at least 1",
                         options->parallel_iterations);
    if (status == MR_OK && options->shape_invariants.items != nullptr &&
        options->shape_invariants.count != initial.count)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "while: %d shape_invariants for %d variables",
                         options->shape_invariants.count, initial.count);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    return status == MR_OK;
}

static void enter_variables(mr_while_loop *loop, mr_outputs initial, mr_shapes invariants)
{
    mr_graph *graph = loop->graph;
    mr_flow_context *context = loop->context;
    for (int32_t i = 0; i < loop->count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        mr_output value = initial.items[i];
        if (value.node == nullptr || value.node->id < 0 || value.node->graph != graph) {
            (void)fail(loop, "an initial value is not an output of the graph");
            return;
        }
        loop->shapes[i] = invariants.items != nullptr ? invariants.items[i] : mr_output_shape(value);
        if (!mr_shape_compatible(loop->shapes[i], mr_output_shape(value))) {
            (void)fail(loop, "an initial value does not have the shape of its shape_invariants");
            return;
        }
        value = mr_flow_capture(context->outer, value, mr_graph_scope(graph));
        mr_output entered = mr_flow_add(context, MR_FLOW_ENTER, nullptr, MR_OUTPUTS(value), false);
        if (entered.node->id < 0) return;
        mr_flow_add_enter_controls(entered.node);
        if (loop->shapes[i].rank >= 0) mr_output_set_shape(entered, loop->shapes[i]);
        loop->merges[i] = mr_flow_add(context, MR_FLOW_MERGE, nullptr, MR_OUTPUTS(entered, entered), false);
    }
}

mr_while_loop *mr_while_loop_begin_(mr_graph *graph, mr_outputs initial, mr_output *variables,
                                    const mr_while_loop_options *given)
{
    if (graph == nullptr) return nullptr;
    mr_while_loop_options options;
    bool is_good = read_options(graph, given, initial, &options);
    int32_t count = initial.items != nullptr && initial.count > 0 ? initial.count : 0;
    set_failed(graph, variables, count);
    mr_while_loop *loop = MR_ARENA_NEW(&graph->arena, mr_while_loop, 1);
    if (loop == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a loop");
        return nullptr;
    }
    *loop = (mr_while_loop){.graph = graph, .before = graph->flow, .count = count, .is_failed = !is_good};
    mr_graph_push_scope(graph, is_good && options.name != nullptr ? options.name : "while");
    loop->merges = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count + 1);
    loop->switches = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count + 1);
    loop->shapes = MR_ARENA_NEW(&graph->arena, mr_shape, (size_t)count + 1);
    loop->context = mr_flow_new(graph, true);
    if (loop->merges == nullptr || loop->switches == nullptr || loop->shapes == nullptr || loop->context == nullptr)
        return fail(loop, "no memory");
    if (mr_graph_status(graph, nullptr) != MR_OK || !is_good) return fail(loop, "the options are not valid");
    if (variables == nullptr) return fail(loop, "the array of variables is null");
    mr_flow_context *context = loop->context;
    context->frame = mr_graph_unique_name(graph, "while_context");
    context->parallel_iterations = options.parallel_iterations;
    context->back_prop = options.back_prop;
    context->swap_memory = options.swap_memory;
    enter_variables(loop, initial, options.shape_invariants);
    if (mr_graph_status(graph, nullptr) != MR_OK) return fail(loop, "");
    for (int32_t i = 0; i < count; i++) variables[i] = loop->merges[i];
    context->body_pivot = loop->merges[0];
    (void)mr_flow_enter(graph, context);
    return loop;
}

void mr_while_loop_body(mr_while_loop *loop, mr_output test, mr_output *variables)
{
    if (loop == nullptr) return;
    mr_graph *graph = loop->graph;
    if (loop->is_in_body || loop->is_ended)
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "mr_while_loop_body: the test has ended already");
    loop->is_in_body = true;
    if (!loop->is_failed && !loop->is_ended) mr_flow_check_current(graph, loop->context, "mr_while_loop_body");
    set_failed(graph, variables, loop->count);
    if (loop->is_failed || mr_graph_status(graph, nullptr) != MR_OK || variables == nullptr) {
        (void)fail(loop, "the array of variables is null");
        return;
    }
    if (test.node != nullptr && test.node->id >= 0 && mr_output_dtype(test) != MR_BOOL) {
        (void)fail(loop, "the test must be a bool scalar");
        return;
    }
    mr_flow_context *context = loop->context;
    context->loop_cond = mr_loop_cond(graph, test);
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    for (int32_t i = 0; i < loop->count; i++)
        loop->switches[i] =
            mr_flow_add(context, MR_FLOW_SWITCH, nullptr, MR_OUTPUTS(loop->merges[i], context->loop_cond), false);
    for (int32_t i = 0; i < loop->count && mr_graph_status(graph, nullptr) == MR_OK; i++)
        variables[i] =
            mr_flow_add(context, MR_FLOW_NONE, nullptr, MR_OUTPUTS((mr_output){loop->switches[i].node, 1}), false);
    context->body_pivot = variables[0];
}

/* Checks that the value may follow the variable. */
static bool check_next(mr_while_loop *loop, int32_t index, mr_output next)
{
    mr_dtype dtype = mr_output_dtype(loop->merges[index]), next_dtype = mr_output_dtype(next);
    mr_shape shape = loop->shapes[index], next_shape = mr_output_shape(next);
    bool is_kept = shape.rank < 0 || next_shape.rank == shape.rank;
    for (int32_t i = 0; is_kept && i < shape.rank; i++)
        is_kept = shape.dims[i] < 0 || shape.dims[i] == next_shape.dims[i];
    char first[MR_SHAPE_TEXT_SIZE], later[MR_SHAPE_TEXT_SIZE];
    if (dtype != next_dtype)
        (void)mr_graph_fail(loop->graph, MR_INVALID_ARGUMENT,
                            "variable %d enters the loop as %s, but is %s after one iteration", index,
                            mr_dtype_name(dtype), mr_dtype_name(next_dtype));
    else if (!is_kept)
        (void)mr_graph_fail(loop->graph, MR_INVALID_ARGUMENT,
                            "variable %d enters the loop with shape %s, but has shape %s after one iteration; "
                            "shape_invariants can allow it to vary",
                            index, mr_shape_text(shape, first, sizeof first),
                            mr_shape_text(next_shape, later, sizeof later));
    return dtype == next_dtype && is_kept;
}

void mr_while_loop_end(mr_while_loop *loop, mr_outputs next, mr_output *finals)
{
    if (loop == nullptr || loop->is_ended) return;
    mr_graph *graph = loop->graph;
    mr_flow_context *context = loop->context;
    loop->is_ended = true;
    if (!loop->is_failed) mr_flow_check_current(graph, context, "mr_while_loop_end");
    set_failed(graph, finals, loop->count);
    if (!loop->is_failed && mr_graph_status(graph, nullptr) == MR_OK) {
        if (!loop->is_in_body)
            (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION,
                                "mr_while_loop_end: the loop has no body; call mr_while_loop_body");
        else if (next.count != loop->count || next.items == nullptr || finals == nullptr)
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%d next values for %d variables", next.count, loop->count);
    }
    for (int32_t i = 0; i < loop->count && next.items != nullptr; i++) {
        if (mr_graph_status(graph, nullptr) != MR_OK) break;
        mr_output value = mr_flow_capture(context, next.items[i], mr_graph_scope(graph));
        if (mr_graph_status(graph, nullptr) != MR_OK || !check_next(loop, i, value)) break;
        value = mr_flow_add(context, MR_FLOW_NEXT_ITERATION, nullptr, MR_OUTPUTS(value), false);
        mr_flow_close(loop->merges[i], value);
    }
    for (int32_t i = 0; i < loop->count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        finals[i] = mr_flow_add(context, MR_FLOW_EXIT, nullptr, MR_OUTPUTS(loop->switches[i]), false);
        mr_flow_add_exit(context, finals[i]);
    }
    (void)mr_flow_enter(graph, loop->before);
    mr_graph_pop_scope(graph);
}
