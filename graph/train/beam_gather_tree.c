/* Beams from their ends: the ids of all steps along the beams (tf.contrib.seq2seq.gather_tree). */
#include "graph/train/batch_check.h"
#include "graph/train/decoder.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

/* The ids of all steps along the beams, from the last step to the first; ids past the length are end_token.
 * initial  the beams: [batch, beam] */
static mr_output follow(mr_graph *graph, mr_output ids, mr_output parents, mr_output lengths, mr_output end,
                        mr_output initial)
{
    mr_output v[3];
    mr_output zero = int32_scalar(graph, 0), one = int32_scalar(graph, 1);
    mr_output time = mr_batch_size_scalar(graph, ids, 0), count = time;
    const mr_shape shape = mr_output_shape(ids), beam = MR_SHAPE(-1, -1),
                   element = MR_SHAPE(shape.dims[1], shape.dims[2]);
    /* An array without elements has no shape unless that is known: then there is one more, which is cut off. */
    const bool has_shape = mr_shape_count(element) >= 0;
    if (!has_shape) count = mr_add_v2(graph, time, one);
    mr_tensor_array_v3_outputs array =
        mr_tensor_array_v3(graph, count, MR_INT32, .element_shape = element, .name = "TensorArray");
    if (!has_shape) array.flow = mr_tensor_array_write_v3(graph, array.handle, time, initial, array.flow);
    const mr_shape shapes[] = {MR_SCALAR, MR_SCALAR, beam};
    mr_while_loop *loop = mr_while_loop_begin(graph, MR_OUTPUTS(mr_sub(graph, time, one), array.flow, initial), v,
                                              .back_prop = false, .shape_invariants = {shapes, 3});
    mr_while_loop_body(loop, mr_greater_equal(graph, v[0], zero), v);
    mr_output counts = mr_expand_dims(graph, mr_less(graph, v[0], lengths), one);
    mr_output own = mr_gather_v2(graph, mr_gather_v2(graph, ids, v[0], zero), v[2], one, .batch_dims = 1);
    mr_output parent = mr_gather_v2(graph, mr_gather_v2(graph, parents, v[0], zero), v[2], one, .batch_dims = 1);
    mr_output next = mr_select_v2(graph, counts, parent, v[2]);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(next, beam);
    v[1] = mr_tensor_array_write_v3(graph, array.handle, v[0], mr_select_v2(graph, counts, own, end), v[1]);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_sub(graph, v[0], one), v[1], next), v);
    mr_output all = mr_tensor_array_gather_v3(graph, array.handle, mr_range(graph, zero, count, one), v[1], MR_INT32,
                                              .element_shape = element);
    if (has_shape) return all;
    mr_output begin = mr_constant_ints(graph, MR_INTS(0, 0, 0)), rest = int32_scalar(graph, -1);
    return mr_slice(graph, all, begin, mr_pack(graph, MR_OUTPUTS(time, rest, rest)));
}

mr_output mr_beam_tree(mr_graph *graph, mr_output step_ids, mr_output parent_ids, mr_output lengths, int32_t end_token)
{
    mr_graph_push_scope(graph, "GatherTree");
    mr_output zero = int32_scalar(graph, 0), one = int32_scalar(graph, 1), end = int32_scalar(graph, end_token);
    mr_output beams = mr_range(graph, zero, mr_batch_size_scalar(graph, step_ids, 2), one);
    mr_output rows = mr_fill(graph,
                             mr_slice(graph, mr_shape_of(graph, step_ids), mr_constant_ints(graph, MR_INTS(1)),
                                      mr_constant_ints(graph, MR_INTS(2))),
                             zero);
    mr_output ids = follow(graph, step_ids, parent_ids, lengths, end, mr_add_v2(graph, rows, beams));
    mr_output is_end = mr_cast(graph, mr_equal(graph, ids, end), MR_INT32);
    mr_output ends_before = mr_cumsum(graph, is_end, zero, .exclusive = true);
    ids = mr_select_v2(graph, mr_greater(graph, ends_before, zero), end, ids);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(ids, mr_output_shape(step_ids));
    mr_graph_pop_scope(graph);
    return ids;
}

/* ---- Checks of the arguments ---- */

static bool check(mr_graph *graph, const char *argument, mr_output value, int32_t rank, const char *expected)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (value.node == nullptr || value.node->graph != graph)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "beam_gather_tree: %s is no output of the graph", argument);
    else if (mr_output_dtype(value) != MR_INT32 || mr_output_shape(value).rank != rank)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "beam_gather_tree: %s is %s%s, but must be int32%s", argument,
                            mr_dtype_name(mr_output_dtype(value)),
                            mr_shape_text(mr_output_shape(value), text, sizeof text), expected);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* The parents, which must have the shape of the ids. */
static mr_output guard_parents(mr_graph *graph, mr_output ids, mr_output parents)
{
    char one[MR_SHAPE_TEXT_SIZE], other[MR_SHAPE_TEXT_SIZE];
    const mr_shape shape = mr_output_shape(ids), own = mr_output_shape(parents);
    if (!mr_shape_compatible(shape, own))
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "beam_gather_tree: step_ids is int32%s, but parent_ids int32%s",
                             mr_shape_text(shape, one, sizeof one), mr_shape_text(own, other, sizeof other));
    if (mr_shape_count(shape) >= 0 && mr_shape_count(own) >= 0) return parents;
    mr_output sizes = mr_shape_of(graph, ids), own_sizes = mr_shape_of(graph, parents);
    mr_output is_equal = mr_all(graph, mr_equal(graph, sizes, own_sizes), mr_constant_ints(graph, MR_INTS(0)));
    mr_output text = mr_constant_string(graph, "beam_gather_tree: the shapes of step_ids and of parent_ids differ:");
    mr_node *check = mr_assert(graph, is_equal, MR_OUTPUTS(text, sizes, own_sizes));
    mr_graph_push_control_dependencies(graph, &check, 1);
    parents = mr_identity(graph, parents);
    mr_graph_pop_control_dependencies(graph);
    return parents;
}

mr_output mr_beam_gather_tree(mr_graph *graph, mr_output step_ids, mr_output parent_ids, mr_output lengths,
                              int32_t end_token)
{
    if (graph == nullptr) return (mr_output){0};
    if (mr_graph_status(graph, nullptr) != MR_OK || !check(graph, "step_ids", step_ids, 3, "[time,batch,beam]") ||
        !check(graph, "parent_ids", parent_ids, 3, "[time,batch,beam]") ||
        !check(graph, "lengths", lengths, 1, "[batch]"))
        return mr_graph_failed_output(graph);
    parent_ids = guard_parents(graph, step_ids, parent_ids);
    lengths = mr_batch_check(graph, lengths, "beam_gather_tree", mr_batch_size_of("step_ids", step_ids, 1),
                             mr_batch_size_of("lengths", lengths, 0), "");
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    return mr_beam_tree(graph, step_ids, parent_ids, lengths, end_token);
}
