/* Networks that run a cell over time: loops over TensorArrays, and steps without a loop. */
#include "graph/train/batch_check.h"
#include "graph/train/rnn_cell.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

/* What is common to the steps of one network. */
typedef struct network {
    mr_graph *graph;
    mr_rnn_cell *cell;
    mr_dtype dtype;
    int32_t count;     /* of states */
    mr_output lengths; /* int32; null: all steps count */
    mr_output zeros;   /* of an output past its sequence; with lengths */
} network;

static mr_output int32_scalar(mr_graph *graph, int32_t value, const char *name)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, name);
}

/* Element `index` of the shape, an int32 scalar. */
static mr_output size_of(mr_graph *graph, mr_output value, int32_t index, const char *name)
{
    const mr_shape shape = mr_output_shape(value);
    if (shape.rank > index && shape.dims[index] >= 0 && shape.dims[index] <= INT32_MAX)
        return int32_scalar(graph, (int32_t)shape.dims[index], name);
    return mr_strided_slice(graph, mr_shape_of(graph, value), mr_constant_ints(graph, MR_INTS(index)),
                            mr_constant_ints(graph, MR_INTS(index + 1)), mr_constant_ints(graph, MR_INTS(1)),
                            .shrink_axis_mask = 1, .name = name);
}

static bool read_options(mr_graph *graph, mr_rnn_options *o, const mr_rnn_options *given)
{
    if (graph == nullptr || !MR_LAYER_READ(mr_rnn_options, graph, o, given) || mr_graph_status(graph, nullptr) != MR_OK)
        return false;
    const mr_dtype dtype = o->sequence_length.node != nullptr ? mr_output_dtype(o->sequence_length) : MR_INT32;
    const mr_shape shape = o->sequence_length.node != nullptr ? mr_output_shape(o->sequence_length) : MR_SHAPE(-1);
    char text[MR_SHAPE_TEXT_SIZE];
    if ((dtype != MR_INT32 && dtype != MR_INT64) || (shape.rank >= 0 && shape.rank != 1))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "sequence_length is %s%s, but must be int32[batch] or int64[batch]", mr_dtype_name(dtype),
                            mr_shape_text(shape, text, sizeof text));
    return mr_graph_status(graph, nullptr) == MR_OK &&
           mr_train_check_count(graph, "parallel_iterations", o->parallel_iterations, 1);
}

/* Builds the cell, and what all steps share.
 * input   of one step, or of all: the last dimension has the features
 * states  receives the initial ones */
static bool begin(network *n, mr_graph *graph, mr_rnn_cell *cell, mr_output input, mr_output batch,
                  const mr_rnn_options *o, mr_output *states)
{
    const mr_shape shape = mr_output_shape(input);
    const int64_t features = shape.rank > 0 ? shape.dims[shape.rank - 1] : -1;
    *n = (network){
        .graph = graph, .cell = cell, .dtype = mr_output_dtype(input), .count = mr_rnn_cell_state_count(cell)};
    if (!mr_rnn_cell_build(graph, cell, features, n->dtype)) return false;
    if (o->initial_state != nullptr)
        for (int32_t i = 0; i < n->count; i++) states[i] = o->initial_state[i];
    else
        mr_rnn_cell_zero_state(graph, cell, batch, n->dtype, states);
    if (mr_graph_status(graph, nullptr) != MR_OK || !mr_rnn_check_states(graph, cell, states)) return false;
    if (o->sequence_length.node == nullptr) return true;
    mr_output lengths = o->sequence_length;
    if (mr_output_dtype(lengths) != MR_INT32) lengths = mr_cast(graph, lengths, MR_INT32, .name = "ToInt32");
    n->lengths = mr_identity(graph, lengths, .name = "sequence_length");
    n->lengths = mr_batch_check(graph, n->lengths, "a recurrent network", mr_batch_size_from("the inputs", batch),
                                mr_batch_size_of("sequence_length", n->lengths, 0), "");
    mr_output sizes =
        mr_pack(graph, MR_OUTPUTS(batch, int32_scalar(graph, (int32_t)mr_rnn_cell_output_size(cell), nullptr)));
    n->zeros = mr_fill(graph, sizes, mr_train_scalar(graph, "zeros/Const", n->dtype, 0), .name = "zeros");
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* One step; past a sequence the output is zero and the states stay. */
static mr_output step(const network *n, mr_output time, mr_output input, mr_output *states)
{
    mr_output next[MR_RNN_STATES_MAX];
    mr_output output = mr_rnn_cell_call(n->graph, n->cell, input, states, next);
    if (n->lengths.node == nullptr) {
        for (int32_t i = 0; i < n->count; i++) states[i] = next[i];
        return output;
    }
    mr_output is_past = mr_greater_equal(n->graph, time, n->lengths, .name = "GreaterEqual");
    for (int32_t i = 0; i < n->count; i++)
        states[i] =
            n->cell->states[i].is_time ? next[i] : mr_select(n->graph, is_past, states[i], next[i], .name = "Select");
    return mr_select(n->graph, is_past, n->zeros, output, .name = "Select");
}

/* ---- Loops ---- */

static mr_output swap_time(mr_graph *graph, mr_output value)
{
    return mr_transpose(graph, value, mr_constant_ints(graph, MR_INTS(1, 0, 2)), .name = "transpose");
}

static mr_output steps_of(mr_graph *graph, mr_output size)
{
    return mr_range(graph, int32_scalar(graph, 0, nullptr), size, int32_scalar(graph, 1, nullptr), .name = "range");
}

/* The loop's number of steps: that of the longest sequence, at least one. */
static mr_output loop_bound(const network *n, mr_output size)
{
    if (n->lengths.node == nullptr) return size;
    mr_output longest = mr_max(n->graph, n->lengths, mr_constant_ints(n->graph, MR_INTS(0)), .name = "Max");
    longest = mr_maximum(n->graph, int32_scalar(n->graph, 1, "Maximum/x"), longest, .name = "Maximum");
    return mr_minimum(n->graph, size, longest, .name = "Minimum");
}

/* inputs and result: [time, batch, features] */
static mr_output run_loop(const network *n, mr_output inputs, mr_output *states, const mr_rnn_options *o)
{
    mr_graph *graph = n->graph;
    mr_shape all = mr_output_shape(inputs);
    const mr_shape element = MR_SHAPE(all.dims[1], mr_rnn_cell_output_size(n->cell));
    mr_output size = size_of(graph, inputs, 0, "strided_slice"), time = int32_scalar(graph, 0, "time");
    mr_tensor_array_v3_outputs out =
        mr_tensor_array_v3(graph, size, n->dtype, .element_shape = element, .identical_element_shapes = true,
                           .tensor_array_name = "dynamic_rnn/output_0");
    mr_tensor_array_v3_outputs in =
        mr_tensor_array_v3(graph, size, n->dtype, .element_shape = MR_SHAPE(all.dims[1], all.dims[2]),
                           .identical_element_shapes = true, .tensor_array_name = "dynamic_rnn/input_0");
    mr_output in_flow =
        mr_tensor_array_scatter_v3(graph, in.handle, steps_of(graph, size), inputs, in.flow,
                                   .name = "TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3");
    mr_output bound = loop_bound(n, size);
    mr_output initial[MR_RNN_STATES_MAX + 2], variables[MR_RNN_STATES_MAX + 2];
    mr_shape shapes[MR_RNN_STATES_MAX + 2] = {MR_SCALAR, MR_SCALAR};
    initial[0] = time;
    initial[1] = out.flow;
    for (int32_t i = 0; i < n->count; i++) {
        initial[2 + i] = states[i];
        const mr_shape given = mr_output_shape(states[i]);
        const bool has_batch = given.rank == 2 && given.dims[0] == all.dims[1];
        shapes[2 + i] = mr_rnn_state_shape(n->cell, i, has_batch ? all.dims[1] : -1);
    }
    const int32_t count = 2 + n->count;
    mr_while_loop *loop = mr_while_loop_begin(
        graph, MR_OUTPUTS_OF(initial, count), variables, .parallel_iterations = o->parallel_iterations,
        .swap_memory = o->swap_memory, .shape_invariants = MR_VALUE_(mr_shapes, shapes, count));
    mr_while_loop_body(loop, mr_less(graph, variables[0], bound, .name = "Less"), variables);
    mr_output input = mr_tensor_array_read_v3(graph, in.handle, variables[0], in_flow, n->dtype);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(input, MR_SHAPE(all.dims[1], all.dims[2]));
    mr_output output = step(n, variables[0], input, variables + 2);
    variables[1] = mr_tensor_array_write_v3(graph, out.handle, variables[0], output, variables[1]);
    variables[0] = mr_add_v2(graph, variables[0], int32_scalar(graph, 1, nullptr), .name = "add");
    mr_while_loop_end(loop, MR_OUTPUTS_OF(variables, count), initial);
    for (int32_t i = 0; i < n->count; i++) states[i] = initial[2 + i];
    mr_output outputs =
        mr_tensor_array_gather_v3(graph, out.handle, steps_of(graph, size), initial[1], n->dtype,
                                  .element_shape = element, .name = "TensorArrayStack/TensorArrayGatherV3");
    if (mr_graph_status(graph, nullptr) == MR_OK)
        mr_output_set_shape(outputs, MR_SHAPE(all.dims[0], element.dims[0], element.dims[1]));
    return outputs;
}

/* In the current variable scope. */
static mr_output dynamic(mr_graph *graph, mr_rnn_cell *cell, mr_output inputs, mr_output *final,
                         const mr_rnn_options *o)
{
    mr_output states[MR_RNN_STATES_MAX];
    network n;
    (void)mr_layer_channels(graph, inputs, 3, 2, "a recurrent network");
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    if (!o->time_major) inputs = swap_time(graph, inputs);
    if (!begin(&n, graph, cell, inputs, size_of(graph, inputs, 1, "batch_size"), o, states))
        return mr_graph_failed_output(graph);
    mr_output outputs = run_loop(&n, inputs, states, o);
    for (int32_t i = 0; final != nullptr && i < n.count; i++) final[i] = states[i];
    return o->time_major ? outputs : swap_time(graph, outputs);
}

static void fail_all(mr_graph *graph, mr_output *outputs, int32_t count)
{
    for (int32_t i = 0; outputs != nullptr && i < count; i++) outputs[i] = mr_graph_failed_output(graph);
}

mr_output mr_dynamic_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_output inputs, mr_output *final,
                          const mr_rnn_options *given)
{
    mr_rnn_options o;
    fail_all(graph, final, mr_rnn_cell_state_count(cell));
    if (!read_options(graph, &o, given)) return mr_graph_failed_output(graph);
    mr_graph_push_variable_scope(graph, o.name != nullptr ? o.name : "rnn");
    mr_output outputs = dynamic(graph, cell, inputs, final, &o);
    mr_graph_pop_variable_scope(graph);
    return outputs;
}

/* Reverses time within the lengths. value: [batch, time, features], or with time_major [time, batch, features] */
static mr_output reverse(mr_graph *graph, mr_output value, const mr_rnn_options *o)
{
    const int32_t time = o->time_major ? 0 : 1;
    if (o->sequence_length.node == nullptr)
        return mr_reverse_v2(graph, value, mr_constant_ints(graph, MR_INTS(time)), .name = "ReverseV2");
    return mr_reverse_sequence(graph, value, o->sequence_length, .seq_dim = time, .batch_dim = 1 - time,
                               .name = "ReverseSequence");
}

void mr_bidirectional_dynamic_rnn_(mr_graph *graph, mr_rnn_cell *forward, mr_rnn_cell *backward, mr_output inputs,
                                   mr_output outputs[2], mr_output *finals, const mr_rnn_options *given)
{
    mr_rnn_options o;
    const int32_t first = mr_rnn_cell_state_count(forward);
    fail_all(graph, outputs, 2);
    fail_all(graph, finals, first + mr_rnn_cell_state_count(backward));
    if (!read_options(graph, &o, given)) return;
    mr_rnn_options back = o;
    if (o.initial_state != nullptr) back.initial_state = o.initial_state + first;
    mr_graph_push_variable_scope(graph, o.name != nullptr ? o.name : "bidirectional_rnn");
    mr_graph_push_variable_scope(graph, "fw");
    outputs[0] = dynamic(graph, forward, inputs, finals, &o);
    mr_graph_pop_variable_scope(graph);
    mr_graph_push_variable_scope(graph, "bw");
    mr_output reversed =
        dynamic(graph, backward, reverse(graph, inputs, &o), finals != nullptr ? finals + first : nullptr, &back);
    mr_graph_pop_variable_scope(graph);
    outputs[1] = reverse(graph, reversed, &o);
    mr_graph_pop_variable_scope(graph);
}

/* ---- Without loops ---- */

static bool check_inputs(mr_graph *graph, mr_outputs inputs)
{
    if (inputs.count >= 1 && inputs.items != nullptr) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there are no inputs");
    return false;
}

/* In the current variable scope. */
static void static_steps(mr_graph *graph, mr_rnn_cell *cell, mr_outputs inputs, mr_output *outputs, mr_output *final,
                         const mr_rnn_options *o)
{
    mr_output states[MR_RNN_STATES_MAX];
    network n;
    if (!check_inputs(graph, inputs)) return;
    (void)mr_layer_channels(graph, inputs.items[0], 2, 1, "a recurrent network");
    if (mr_graph_status(graph, nullptr) != MR_OK ||
        !begin(&n, graph, cell, inputs.items[0], size_of(graph, inputs.items[0], 0, "batch_size"), o, states))
        return;
    for (int32_t i = 0; i < inputs.count; i++)
        outputs[i] = step(&n, n.lengths.node != nullptr ? int32_scalar(graph, i, "time") : (mr_output){0},
                          inputs.items[i], states);
    for (int32_t i = 0; final != nullptr && i < n.count; i++) final[i] = states[i];
}

/* Options that only a loop has. */
static bool check_static(mr_graph *graph, const mr_rnn_options *o)
{
    const char *option = o->time_major ? "time_major" : o->swap_memory ? "swap_memory" : nullptr;
    if (option == nullptr) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect on a network without a loop", option);
    return false;
}

void mr_static_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_outputs inputs, mr_output *outputs, mr_output *final,
                    const mr_rnn_options *given)
{
    mr_rnn_options o;
    fail_all(graph, outputs, inputs.count);
    fail_all(graph, final, mr_rnn_cell_state_count(cell));
    if (!read_options(graph, &o, given) || !check_static(graph, &o)) return;
    mr_graph_push_variable_scope(graph, o.name != nullptr ? o.name : "rnn");
    static_steps(graph, cell, inputs, outputs, final, &o);
    mr_graph_pop_variable_scope(graph);
}

/* The values in reverse order; within the lengths, if there are any. */
static void reverse_list(mr_graph *graph, mr_outputs values, mr_output *reversed, mr_output lengths)
{
    if (lengths.node == nullptr) {
        for (int32_t i = 0; i < values.count; i++) reversed[i] = values.items[values.count - 1 - i];
        return;
    }
    mr_output all = mr_pack(graph, values, .name = "stack");
    mr_output back = mr_reverse_sequence(graph, all, lengths, .seq_dim = 0, .batch_dim = 1, .name = "ReverseSequence");
    mr_output_range parts = mr_unpack(graph, back, .num = values.count, .name = "unstack");
    for (int32_t i = 0; i < values.count; i++) reversed[i] = mr_output_at(parts, i);
}

static void both_directions(mr_graph *graph, mr_rnn_cell *forward, mr_rnn_cell *backward, mr_outputs inputs,
                            mr_output *outputs, mr_output *finals, const mr_rnn_options *o)
{
    const int32_t first = mr_rnn_cell_state_count(forward);
    mr_rnn_options back = *o;
    if (o->initial_state != nullptr) back.initial_state = o->initial_state + first;
    mr_output *lists =
        check_inputs(graph, inputs) ? mr_rnn_alloc(graph, 3 * (size_t)inputs.count * sizeof *lists) : nullptr;
    if (lists == nullptr) return;
    mr_output *ahead = lists, *turned = lists + inputs.count, *behind = lists + 2 * (size_t)inputs.count;
    fail_all(graph, lists, 3 * inputs.count);
    mr_graph_push_variable_scope(graph, "fw");
    static_steps(graph, forward, inputs, ahead, finals, o);
    mr_graph_pop_variable_scope(graph);
    mr_graph_push_variable_scope(graph, "bw");
    reverse_list(graph, inputs, turned, o->sequence_length);
    static_steps(graph, backward, MR_OUTPUTS_OF(turned, inputs.count), behind,
                 finals != nullptr ? finals + first : nullptr, &back);
    mr_graph_pop_variable_scope(graph);
    reverse_list(graph, MR_OUTPUTS_OF(behind, inputs.count), turned, o->sequence_length);
    for (int32_t i = 0; i < inputs.count; i++)
        outputs[i] =
            mr_concat_v2(graph, MR_OUTPUTS(ahead[i], turned[i]), int32_scalar(graph, 1, nullptr), .name = "concat");
}

void mr_static_bidirectional_rnn_(mr_graph *graph, mr_rnn_cell *forward, mr_rnn_cell *backward, mr_outputs inputs,
                                  mr_output *outputs, mr_output *finals, const mr_rnn_options *given)
{
    mr_rnn_options o;
    fail_all(graph, outputs, inputs.count);
    fail_all(graph, finals, mr_rnn_cell_state_count(forward) + mr_rnn_cell_state_count(backward));
    if (!read_options(graph, &o, given) || !check_static(graph, &o)) return;
    mr_graph_push_variable_scope(graph, o.name != nullptr ? o.name : "bidirectional_rnn");
    both_directions(graph, forward, backward, inputs, outputs, finals, &o);
    mr_graph_pop_variable_scope(graph);
}
