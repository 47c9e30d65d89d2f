/* Operators that generate tensors: fills, ranges, zeros and ones. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static mr_status fill(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    mr_sink sink;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dims must represent a vector, got shape %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    if (mr_tensor_count(&call->inputs[1]) != 1) {
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "value must represent a scalar, got shape %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    }
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_fill_elements(sink.data, call->inputs[1].data, sink.element_size, sink.count, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status fill_like(mr_kernel_call *call, bool ones, mr_error *error)
{
    mr_dtype dtype = call->node->output_dtypes[0];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, call->inputs[0].shape, &sink, error));
    union {
        char bytes[16];
        float f;
        double d;
        uint16_t h;
        uint8_t i;
    } element = {0};
    if (ones) {
        if (dtype == MR_FLOAT || dtype == MR_COMPLEX64)
            element.f = 1;
        else if (dtype == MR_DOUBLE || dtype == MR_COMPLEX128)
            element.d = 1;
        else if (dtype == MR_HALF)
            element.h = 0x3c00;
        else if (dtype == MR_BFLOAT16)
            element.h = 0x3f80;
        else
            element.i = 1; /* little-endian integers and bool */
    }
    if (!sink.is_string) mr_fill_elements(sink.data, &element, sink.element_size, sink.count, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status zeros_like(mr_kernel_call *call, mr_error *error)
{
    return fill_like(call, false, error);
}

static mr_status ones_like(mr_kernel_call *call, mr_error *error)
{
    return fill_like(call, true, error);
}

/* The number of elements start, start + delta, … before limit; -1 if delta is 0 or has the wrong sign. */
static int64_t range_count_double(double start, double limit, double delta)
{
    if (delta == 0 || isnan(start) || isnan(limit) || isnan(delta)) return -1;
    if ((delta > 0) ? start >= limit : start <= limit)
        return delta > 0 ? (start > limit ? -1 : 0) : (start < limit ? -1 : 0);
    double count = ceil(fabs((limit - start) / delta));
    return count < 9e18 ? (int64_t)count : -1;
}

static int64_t range_count_int64(int64_t start, int64_t limit, int64_t delta)
{
    if (delta == 0 || (delta > 0 && start > limit) || (delta < 0 && start < limit)) return -1;
    uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    uint64_t count = distance / step + (distance % step != 0);
    return count <= INT64_MAX ? (int64_t)count : -1;
}

#define RANGE_TYPE(dtype, type, sum_type, wide)                                                                        \
    case dtype: {                                                                                                      \
        type start = *(type *)call->inputs[0].data, limit = *(type *)call->inputs[1].data;                             \
        type delta = *(type *)call->inputs[2].data;                                                                    \
        count = range_count_##wide(start, limit, delta);                                                               \
        if (count < 0) break;                                                                                          \
        MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count), error));                                                     \
        type *out = call->outputs[0].data;                                                                             \
        for (int64_t i = 0; i < count; i++) out[i] = (type)((sum_type)start + (sum_type)i * (sum_type)delta);          \
        return MR_OK;                                                                                                  \
    }

static mr_status range_error(mr_kernel_call *call, mr_error *error)
{
    double values[3];
    for (int i = 0; i < 3; i++) {
        const mr_tensor *tensor = &call->inputs[i];
        values[i] = tensor->dtype == MR_FLOAT    ? (double)*(const float *)tensor->data
                    : tensor->dtype == MR_DOUBLE ? *(const double *)tensor->data
                    : tensor->dtype == MR_INT64  ? (double)*(const int64_t *)tensor->data
                                                 : (double)*(const int32_t *)tensor->data;
    }
    if (values[2] == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Requires delta != 0: %g", values[2]);
    if (values[2] > 0 ? values[0] <= values[1] : values[0] >= values[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Requires ((limit - start) / delta) <= 9223372036854775807");
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %.9g/%.9g",
                          values[2] > 0 ? "<=" : ">=", values[2] > 0 ? ">" : "<", values[0], values[1]);
}

static mr_status range(mr_kernel_call *call, mr_error *error)
{
    int64_t count = -1;
    static const char *const names[] = {"start", "limit", "delta"};
    for (int i = 0; i < 3; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        mr_shape shape = call->inputs[i].shape;
        if (mr_tensor_count(&call->inputs[i]) != 1 || shape.rank > 1) /* [1] as in TensorFlow's old graphs */
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar, not shape %s", names[i],
                                  mr_shape_text(shape, text, sizeof text));
    }
    switch (call->inputs[0].dtype) {
        RANGE_TYPE(MR_FLOAT, float, float, double)
        RANGE_TYPE(MR_DOUBLE, double, double, double)
        RANGE_TYPE(MR_INT32, int32_t, uint32_t, int64)
        RANGE_TYPE(MR_INT64, int64_t, uint64_t, int64)
    default:
        break;
    }
    return range_error(call, error);
}

static mr_status lin_space(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"start", "stop", "num"};
    int64_t count;
    for (int i = 0; i < 3; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar, not shape %s", names[i],
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_int(call, 2, "num", &count, error));
    if (count < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Requires num > 0: %" PRId64, count);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count), error));
    if (call->inputs[0].dtype == MR_DOUBLE) {
        double start = *(double *)call->inputs[0].data, stop = *(double *)call->inputs[1].data;
        double *out = call->outputs[0].data, step = count > 1 ? (stop - start) / (double)(count - 1) : 0;
        for (int64_t i = 0; i < count; i++) out[i] = start + step * (double)i;
        out[0] = start; /* also if the step is not a number */
        if (count > 1) out[count - 1] = stop;
        return MR_OK;
    }
    float start = *(float *)call->inputs[0].data, stop = *(float *)call->inputs[1].data;
    float *out = call->outputs[0].data, step = count > 1 ? (stop - start) / (float)(count - 1) : 0;
    for (int64_t i = 0; i < count; i++) out[i] = start + step * (float)i;
    out[0] = start;
    if (count > 1) out[count - 1] = stop;
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Fill", .run = fill, .host_inputs = 1 << 0},
    {.op = "ZerosLike", .run = zeros_like},
    {.op = "OnesLike", .run = ones_like},
    {.op = "Range", .types = "Tidx: float, double, int32, int64", .run = range},
    {.op = "LinSpace", .types = "T: float, double", .run = lin_space},
};
MR_KERNEL_FAMILY(array_fill);
