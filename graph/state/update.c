/* AssignAdd, AssignSub and CountUpTo: in-place updates. The session passes the variable's elements, without other
 * references, as input 0 (see mr_kernel.updates). */
#include "graph/state/change.h"

#include <inttypes.h>
#include <string.h>

typedef struct change_loop {
    mr_change_function function;
    char *target;
    const char *source;
    size_t size;
} change_loop;

static void change_piece(void *context, int64_t begin, int64_t end)
{
    const change_loop *loop = context;
    loop->function(loop->target + (size_t)begin * loop->size, loop->source + (size_t)begin * loop->size, end - begin,
                   1);
}

static mr_status change_whole(mr_kernel_call *call, mr_change change, mr_error *error)
{
    const mr_tensor *target = &call->inputs[0], *source = &call->inputs[1];
    mr_change_function function = mr_change_find(change, target->dtype);
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    if (target->dtype != source->dtype || !function)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but the value is a %s",
                              mr_dtype_name(target->dtype), mr_dtype_name(source->dtype));
    if (!mr_shape_equal(target->shape, source->shape))
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "Cannot update variable with shape %s using a Tensor with shape %s, shapes must be equal.",
            mr_shape_text(target->shape, wanted, sizeof wanted), mr_shape_text(source->shape, given, sizeof given));
    change_loop loop = {
        .function = function, .target = target->data, .source = source->data, .size = mr_dtype_size(target->dtype)};
    mr_pool_for(call->device->pool, mr_tensor_count(target), MR_GRAIN, change_piece, &loop);
    return MR_OK;
}

static mr_status assign_add(mr_kernel_call *call, mr_error *error)
{
    return change_whole(call, MR_CHANGE_ADD, error);
}

static mr_status assign_sub(mr_kernel_call *call, mr_error *error)
{
    return change_whole(call, MR_CHANGE_SUB, error);
}

/* Returns the counter's value and adds 1. */
static mr_status count_up_to(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *counter = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t limit = mr_attr_int_or(call->node->attrs, "limit", 0);
    if (counter->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input is not a scalar: %s",
                              mr_shape_text(counter->shape, text, sizeof text));
    if (counter->dtype != call->node->output_dtypes[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, not a %s",
                              mr_dtype_name(counter->dtype), mr_dtype_name(call->node->output_dtypes[0]));
    int64_t before = mr_change_index(counter, 0);
    if (before >= limit) return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE, "Reached limit of %" PRId64, limit);
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    memcpy(call->outputs[0].data, counter->data, mr_dtype_size(counter->dtype));
    if (counter->dtype == MR_INT64)
        *(int64_t *)counter->data = before + 1;
    else
        *(int32_t *)counter->data = (int32_t)((uint32_t)before + 1);
    return MR_OK;
}

#define NUMBERS                                                                                                        \
    "half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128"
static const mr_kernel kernels[] = {
    {.op = "AssignAdd", .types = "T: " NUMBERS, .run = assign_add, .updates = 1},
    {.op = "AssignSub", .types = "T: " NUMBERS, .run = assign_sub, .updates = 1},
    {.op = "AssignAddVariableOp", .types = "dtype: " NUMBERS, .run = assign_add, .updates = 1},
    {.op = "AssignSubVariableOp", .types = "dtype: " NUMBERS, .run = assign_sub, .updates = 1},
    {.op = "CountUpTo", .run = count_up_to, .updates = 1},
    {.op = "ResourceCountUpTo", .run = count_up_to, .updates = 1},
};
const mr_kernel_table mr_state_kernels_update = {kernels, sizeof kernels / sizeof kernels[0]};
