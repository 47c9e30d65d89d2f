/* The operators that compute nothing: NoOp only has control edges, Placeholder fails unless it is fed, Assert fails
 * unless its condition is true. */
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

/* "[1 2 3...]": at most `most` elements. */
static void show_tensor(const mr_tensor *tensor, int64_t most, char *text, size_t size)
{
    int64_t count = mr_tensor_count(tensor);
    size_t used = 0;
    used += (size_t)snprintf(text, size, "[");
    for (int64_t i = 0; i < count && i < most && used + 64 < size; i++) {
        char *at = text + used;
        size_t room = size - used;
        const char *gap = i > 0 ? " " : "";
        int written = 0;
        switch (tensor->dtype) {
        case MR_FLOAT:
            written = snprintf(at, room, "%s%g", gap, (double)mr_tensor_floats(tensor)[i]);
            break;
        case MR_DOUBLE:
            written = snprintf(at, room, "%s%g", gap, mr_tensor_doubles(tensor)[i]);
            break;
        case MR_INT32:
            written = snprintf(at, room, "%s%" PRId32, gap, mr_tensor_int32s(tensor)[i]);
            break;
        case MR_INT64:
            written = snprintf(at, room, "%s%" PRId64, gap, mr_tensor_int64s(tensor)[i]);
            break;
        case MR_UINT8:
            written = snprintf(at, room, "%s%u", gap, mr_tensor_uint8s(tensor)[i]);
            break;
        case MR_BOOL:
            written = snprintf(at, room, "%s%d", gap, mr_tensor_bools(tensor)[i]);
            break;
        case MR_STRING: {
            mr_string s = mr_tensor_strings(tensor)[i];
            written = snprintf(at, room, "%s%.*s", gap, s.size_bytes < 256 ? (int)s.size_bytes : 256, s.data);
            break;
        }
        default:
            written = snprintf(at, room, "%s?", gap);
            break;
        }
        used += written > 0 ? ((size_t)written < room ? (size_t)written : room - 1) : 0;
    }
    snprintf(text + used, size - used, count > most ? "...]" : "]");
}

static mr_status assert_holds(mr_kernel_call *call, mr_error *error)
{
    if (mr_tensor_count(&call->inputs[0]) == 1 && mr_tensor_bools(&call->inputs[0])[0]) return MR_OK;
    int64_t most = mr_attr_int_or(call->node->attrs, "summarize", 3);
    char text[MR_ERROR_SIZE / 2] = "";
    size_t used = 0;
    for (int32_t i = 1; i < call->node->input_count && used + 2 < sizeof text; i++) {
        if (i > 1) text[used++] = ' ';
        show_tensor(&call->inputs[i], most < 0 ? INT64_MAX : most, text + used, sizeof text - used);
        while (text[used]) used++;
    }
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
