/* What TensorFlow's debugger computes of tensors. It sends the results to debug_urls; here programs fetch them. */
#include "kernels/common.h"

#include <math.h>
#include <string.h>

static mr_status check_urls(const mr_kernel_call *call, mr_error *error)
{
    const mr_attr *urls = mr_attrs_find(call->node->attrs, "debug_urls");
    if (urls == nullptr || urls->count == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                          "debug_urls has %d entries, but a debugger is not supported", (int)urls->count);
}

static mr_status identity(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check_urls(call, error));
    call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
    return MR_OK;
}

#define NUMBER(dtype, type, suffix)                                                                                    \
    case dtype:                                                                                                        \
        return (double)((const type *)tensor->data)[index];
static double number_at(const mr_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
        MR_EACH_SIGNED(NUMBER)
        MR_EACH_UNSIGNED(NUMBER)
    case MR_BOOL:
        return ((const bool *)tensor->data)[index] ? 1 : 0;
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)tensor->data)[index]);
    default:
        return (double)mr_bfloat16_to_float(((const uint16_t *)tensor->data)[index]);
    }
}

static mr_status count_nans(mr_kernel_call *call, mr_error *error)
{
    int64_t found = 0;
    MR_TRY(check_urls(call, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(1), error));
    for (int64_t i = 0, count = mr_tensor_count(&call->inputs[0]); i < count; i++)
        found += isnan(number_at(&call->inputs[0], i));
    mr_tensor_int64s(&call->outputs[0])[0] = found;
    return MR_OK;
}

/* The order of the results. */
enum { INITIALIZED, COUNT, NANS, LOW, NEGATIVE, ZERO, POSITIVE, HIGH, LEAST, MOST, MEAN, VARIANCE, DTYPE, RANK, DIMS };

/* Numbers outside of the bounds count as infinities. */
static void summarize_elements(const mr_tensor *input, double lower, double upper, double *out)
{
    int64_t count = mr_tensor_count(input), finite = 0;
    double sum = 0;
    out[LEAST] = INFINITY;
    out[MOST] = -INFINITY;
    out[MEAN] = out[VARIANCE] = NAN;
    for (int64_t i = 0; i < count; i++) {
        double x = number_at(input, i);
        if (isnan(x)) {
            out[NANS]++;
            continue;
        }
        if (isinf(x)) {
            out[x < 0 ? LOW : HIGH]++;
            continue;
        }
        out[x <= lower ? LOW : x < 0 ? NEGATIVE : x >= upper ? HIGH : x > 0 ? POSITIVE : ZERO]++;
        out[LEAST] = fmin(out[LEAST], x);
        out[MOST] = fmax(out[MOST], x);
        finite++;
        sum += x;
    }
    if (finite == 0) return;
    out[MEAN] = sum / (double)finite;
    out[VARIANCE] = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = number_at(input, i);
        if (isfinite(x)) out[VARIANCE] += (x - out[MEAN]) * (x - out[MEAN]);
    }
    out[VARIANCE] /= (double)finite;
}

static mr_status summarize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    MR_TRY(check_urls(call, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(DIMS + input->shape.rank), error));
    double *out = call->outputs[0].data;
    memset(out, 0, mr_tensor_size_bytes(&call->outputs[0]));
    out[INITIALIZED] = 1;
    out[COUNT] = (double)mr_tensor_count(input);
    out[DTYPE] = (double)input->dtype;
    out[RANK] = (double)input->shape.rank;
    for (int32_t i = 0; i < input->shape.rank; i++) out[DIMS + i] = (double)input->shape.dims[i];
    summarize_elements(input, (double)mr_attr_float_or(call->node->attrs, "lower_bound", -INFINITY),
                       (double)mr_attr_float_or(call->node->attrs, "upper_bound", INFINITY), out);
    return MR_OK;
}

#define NUMBERS "T: bool, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64"
static const mr_kernel kernels[] = {
    {.op = "DebugIdentity", .run = identity},
    {.op = "DebugNanCount", .types = NUMBERS ", half, bfloat16", .run = count_nans},
    {.op = "DebugNumericSummary", .types = NUMBERS, .run = summarize},
};
MR_KERNEL_FAMILY(debug_summary);
