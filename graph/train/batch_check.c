/* See batch_check.h. */
#include "graph/train/batch_check.h"
#include <millrace/ops.h>

#include <assert.h>

mr_batch_size mr_batch_size_of(const char *what, mr_output value, int32_t axis)
{
    mr_batch_size size = {.what = what, .known = -1, .value = value, .axis = axis};
    if (value.node == nullptr || value.node->id < 0) return size;
    const mr_shape shape = mr_output_shape(value);
    assert(axis >= 0 && (shape.rank < 0 || axis < shape.rank));
    if (shape.rank >= 0) size.known = shape.dims[axis];
    return size;
}

mr_batch_size mr_batch_size_from(const char *what, mr_output scalar)
{
    mr_batch_size size = {.what = what, .known = -1, .size = scalar};
    mr_tensor constant = {0};
    if (scalar.node == nullptr || scalar.node->id < 0 || !mr_output_constant(scalar, &constant)) return size;
    if (constant.dtype == MR_INT32 && mr_tensor_count(&constant) == 1)
        size.known = *(const int32_t *)mr_tensor_data(&constant);
    mr_tensor_deinit(&constant);
    return size;
}

mr_output mr_batch_size_scalar(mr_graph *graph, mr_output value, int32_t axis)
{
    return mr_strided_slice(graph, mr_shape_of(graph, value), mr_constant_ints(graph, MR_INTS(axis)),
                            mr_constant_ints(graph, MR_INTS(axis + 1)), mr_constant_ints(graph, MR_INTS(1)),
                            .shrink_axis_mask = 1, .name = "strided_slice");
}

static mr_output scalar_of(mr_graph *graph, const mr_batch_size *size)
{
    if (size->known >= 0 && size->known <= INT32_MAX) return mr_constant_int32(graph, (int32_t)size->known);
    return size->size.node != nullptr ? size->size : mr_batch_size_scalar(graph, size->value, size->axis);
}

mr_output mr_batch_check(mr_graph *graph, mr_output guarded, const char *function, mr_batch_size first,
                         mr_batch_size second, const char *hint)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    if (first.known >= 0 && second.known >= 0) {
        if (first.known == second.known) return guarded;
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the batch size of %s is %lld, but that of %s is %lld%s",
                             function, first.what, (long long)first.known, second.what, (long long)second.known, hint);
    }
    const char *text = mr_arena_printf(&graph->arena, "%s: the batch sizes of %s and of %s differ%s:", function,
                                       first.what, second.what, hint);
    if (text == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a message");
    mr_graph_push_scope(graph, "assert_equal");
    const mr_output one = scalar_of(graph, &first), other = scalar_of(graph, &second);
    const mr_output is_equal = mr_equal(graph, one, other, .name = "Equal");
    mr_node *check = mr_assert(graph, is_equal, MR_OUTPUTS(mr_constant_string(graph, text), one, other));
    mr_graph_push_control_dependencies(graph, &check, 1);
    guarded = mr_identity(graph, guarded, .name = "checked");
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    return guarded;
}
