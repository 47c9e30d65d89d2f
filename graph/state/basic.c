/* The operators that compute nothing: NoOp only has control edges, Placeholder fails unless it is fed, Assert fails
 * unless its condition is true. */
#include "base/show.h"
#include "graph/state/state.h"

#include <inttypes.h>
#include <stdio.h>

static mr_status placeholder(mr_kernel_call *call, mr_error *error)
{
    mr_dtype dtype = call->node->output_dtypes[0];
    mr_shape shape = MR_SHAPE_UNKNOWN;
    mr_error ignored = {0};
    if (mr_attr_get_shape(call->node->attrs, "shape", &shape, &ignored) != MR_OK) shape = MR_SHAPE_UNKNOWN;
    if (shape.rank <= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "You must feed a value for placeholder tensor '%s' with dtype %s",
                       call->node->name, mr_dtype_name(dtype));
    char text[MR_SHAPE_TEXT_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "You must feed a value for placeholder tensor '%s' with dtype %s and shape %s", call->node->name,
                   mr_dtype_name(dtype), mr_shape_text(shape, text, sizeof text));
}

static mr_status assert_holds(mr_kernel_call *call, mr_error *error)
{
    if (mr_tensor_count(&call->inputs[0]) == 1 && mr_tensor_bools(&call->inputs[0])[0]) return MR_OK;
    int64_t most = mr_attr_int_or(call->node->attrs, "summarize", 3);
    char text[MR_ERROR_SIZE / 2] = "";
    FILE *shown = fmemopen(text, sizeof text, "w"); /* what does not fit is cut off */
    if (shown == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int32_t i = 1; i < call->node->input_count; i++) {
        fputs(i > 1 ? " [" : "[", shown);
        mr_tensor_show(&call->inputs[i], most, shown);
        fputc(']', shown);
    }
    (void)fclose(shown);
    text[sizeof text - 1] = 0;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "assertion failed: %s", text);
}

static const mr_kernel kernels[] = {
    {.device = MR_DEVICE_CPU, .op = "NoOp"},
    {.device = MR_DEVICE_GPU, .op = "NoOp"},
    {.op = "ControlTrigger"},
    {.op = "Placeholder", .run = placeholder},
    {.op = "PlaceholderV2", .run = placeholder},
    {.op = "Assert", .run = assert_holds},
};
const mr_kernel_table mr_state_kernels_basic = {kernels, sizeof kernels / sizeof kernels[0]};
