/* FakeQuantWithMinMax…: rounds numbers to those that a few bits represent in a range, which is shifted a little so that
 * it contains 0, and the gradients. The range is one for the tensor, or one for each channel, the last dimension. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    float quantum_low, quantum_high; /* the integers */
} settings;

static mr_status prepare_settings(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    settings *s = prepared;
    int64_t bits = mr_attr_int_or(node->attrs, "num_bits", 8);
    if (bits < 2 || bits > 16)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "num_bits must be between 2 and 16, inclusive");
    s->quantum_low = mr_attr_bool_or(node->attrs, "narrow_range", false) ? 1 : 0;
    s->quantum_high = (float)((1 << bits) - 1);
    if (mr_attrs_find(node->attrs, "min") == nullptr) return MR_OK;
    float low = mr_attr_float_or(node->attrs, "min", -6), high = mr_attr_float_or(node->attrs, "max", 6);
    if (!(low < high))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "min has to be smaller than max, was: %g >= %g",
                              (double)low, (double)high);
    return MR_OK;
}

/* The shifted range. If both limits are 0, the results are 0, and gradients pass. */
typedef struct range {
    float low, high, scale, inverse, zero;
    bool is_zero;
} range;

static range shift_range(const settings *s, float low, float high)
{
    range r = {.is_zero = low == 0 && high == 0};
    r.scale = (high - low) / (s->quantum_high - s->quantum_low);
    float zero_point = s->quantum_low - low / r.scale;
    float nearest = zero_point < s->quantum_low    ? s->quantum_low
                    : zero_point > s->quantum_high ? s->quantum_high
                                                   : roundf(zero_point);
    r.low = (s->quantum_low - nearest) * r.scale;
    r.high = (s->quantum_high - nearest) * r.scale;
    r.inverse = 1 / r.scale;
    r.zero = floorf(-r.low * r.inverse + 0.5f);
    return r;
}

typedef struct fake_job {
    const float *inputs, *gradients;
    float *outputs;
    const range *ranges;
    int64_t channels; /* ranges for the last dimension; 1: one range */
} fake_job;

static inline float round_one(const range *r, float x)
{
    x = x > r->high ? r->high : x; /* keeps NaN */
    x = x < r->low ? r->low : x;
    float shifted = x - r->low;
    return floorf(shifted * r->inverse - r->zero + 0.5f) * r->scale;
}

static void round_piece(void *context, int64_t begin, int64_t end)
{
    const fake_job *job = context;
    const range first = job->ranges[0];
    if (job->channels > 1) {
        for (int64_t i = begin; i < end; i++) {
            const range *r = &job->ranges[i % job->channels];
            job->outputs[i] = r->is_zero ? 0 : round_one(r, job->inputs[i]);
        }
    } else if (first.is_zero) {
        memset(job->outputs + begin, 0, (size_t)(end - begin) * sizeof(float));
    } else {
        for (int64_t i = begin; i < end; i++) job->outputs[i] = round_one(&first, job->inputs[i]);
    }
}

static void gradient_piece(void *context, int64_t begin, int64_t end)
{
    const fake_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const range *r = &job->ranges[job->channels > 1 ? i % job->channels : 0];
        bool passes = r->is_zero || (job->inputs[i] >= r->low && job->inputs[i] <= r->high);
        job->outputs[i] = job->gradients[i] * (passes ? 1.0f : 0.0f);
    }
}

/* The ranges of a call: one from attrs, or from inputs `first` and `first + 1`. Free with free. */
static mr_status read_ranges(mr_kernel_call *call, int input, int first, bool per_channel, range **ranges,
                             int64_t *channels, mr_error *error)
{
    const settings *s = call->prepared;
    mr_shape shape = call->inputs[input].shape;
    static const char *const names[] = {"min", "max"};
    *channels = 1;
    if (per_channel && shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "inputs must be at least a vector");
    if (per_channel) *channels = shape.dims[shape.rank - 1];
    for (int i = 0; i < 2 && first > 0; i++) {
        const mr_tensor *limit = &call->inputs[first + i];
        if (limit->shape.rank != (per_channel ? 1 : 0))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`%s` must be rank %d but is rank %d",
                                  names[i], per_channel ? 1 : 0, limit->shape.rank);
        if (per_channel && limit->shape.dims[0] != *channels)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s has incorrect size, expected %" PRId64 " was %" PRId64, names[i], *channels,
                                  limit->shape.dims[0]);
    }
    *ranges = calloc((size_t)*channels + 1, sizeof **ranges);
    if (*ranges == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; i < *channels; i++) {
        float low =
            first > 0 ? mr_tensor_floats(&call->inputs[first])[i] : mr_attr_float_or(call->node->attrs, "min", -6);
        float high =
            first > 0 ? mr_tensor_floats(&call->inputs[first + 1])[i] : mr_attr_float_or(call->node->attrs, "max", 6);
        (*ranges)[i] = shift_range(s, low, high);
    }
    return MR_OK;
}

static mr_status fake(mr_kernel_call *call, bool per_channel, mr_error *error)
{
    range *ranges;
    int64_t channels;
    MR_TRY(read_ranges(call, 0, call->node->input_count > 1 ? 1 : 0, per_channel, &ranges, &channels, error));
    mr_status status = mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error);
    if (status == MR_OK && mr_tensor_count(&call->inputs[0]) > 0) {
        fake_job job = {.inputs = mr_tensor_floats(&call->inputs[0]),
                        .outputs = mr_tensor_floats(&call->outputs[0]),
                        .ranges = ranges,
                        .channels = channels};
        mr_pool_for(call->device->pool, mr_tensor_count(&call->inputs[0]), MR_GRAIN, round_piece, &job);
    }
    free(ranges);
    return status;
}

static mr_status fake_tensor(mr_kernel_call *call, mr_error *error)
{
    return fake(call, false, error);
}

static mr_status fake_channels(mr_kernel_call *call, mr_error *error)
{
    return fake(call, true, error);
}

/* The gradients of inputs outside of the range are added up for the limit that they exceed. */
static void sum_outside(const fake_job *job, int64_t count, float *low, float *high)
{
    memset(low, 0, (size_t)job->channels * sizeof *low);
    memset(high, 0, (size_t)job->channels * sizeof *high);
    constexpr int64_t BLOCK = 4096; /* long sums are sums of short ones, for accuracy */
    for (int64_t channel = 0; channel < job->channels; channel++) {
        const range *r = &job->ranges[channel];
        double below = 0, above = 0;
        for (int64_t begin = channel; begin < count && !r->is_zero; begin += BLOCK * job->channels) {
            float short_below = 0, short_above = 0;
            int64_t end = MR_MIN(count, begin + BLOCK * job->channels);
            for (int64_t i = begin; i < end; i += job->channels) {
                short_below += job->inputs[i] < r->low ? job->gradients[i] : 0;
                short_above += job->inputs[i] > r->high ? job->gradients[i] : 0;
            }
            below += (double)short_below;
            above += (double)short_above;
        }
        low[channel] = (float)below;
        high[channel] = (float)above;
    }
}

static mr_status fake_gradient(mr_kernel_call *call, bool per_channel, mr_error *error)
{
    const mr_tensor *gradients = &call->inputs[0], *inputs = &call->inputs[1];
    bool has_limits = call->node->input_count > 2;
    int64_t channels, count = mr_tensor_count(inputs);
    range *ranges;
    if (!has_limits) MR_TRY(mr_kernel_same_shape(call, 0, 1, error));
    if (!mr_shape_equal(gradients->shape, inputs->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "gradient and input must be the same size");
    MR_TRY(read_ranges(call, 1, has_limits ? 2 : 0, per_channel, &ranges, &channels, error));
    mr_status status = mr_kernel_output(call, 0, inputs->shape, error);
    for (int i = 1; status == MR_OK && has_limits && i < 3; i++)
        status = mr_kernel_output(call, i, per_channel ? MR_SHAPE(channels) : MR_SCALAR, error);
    if (status == MR_OK) {
        fake_job job = {.inputs = mr_tensor_floats(inputs),
                        .gradients = mr_tensor_floats(gradients),
                        .outputs = mr_tensor_floats(&call->outputs[0]),
                        .ranges = ranges,
                        .channels = channels};
        if (count > 0) mr_pool_for(call->device->pool, count, MR_GRAIN, gradient_piece, &job);
        if (has_limits && channels > 0)
            sum_outside(&job, count, mr_tensor_floats(&call->outputs[1]), mr_tensor_floats(&call->outputs[2]));
    }
    free(ranges);
    return status;
}

static mr_status fake_tensor_gradient(mr_kernel_call *call, mr_error *error)
{
    return fake_gradient(call, false, error);
}

static mr_status fake_channels_gradient(mr_kernel_call *call, mr_error *error)
{
    return fake_gradient(call, true, error);
}

/* clang-format off */
#define SETTINGS .prepared_size_bytes = sizeof(settings), .prepare = prepare_settings
/* clang-format on */

static const mr_kernel kernels[] = {
    {.op = "FakeQuantWithMinMaxArgs", .run = fake_tensor, SETTINGS},
    {.op = "FakeQuantWithMinMaxArgsGradient", .run = fake_tensor_gradient, SETTINGS},
    {.op = "FakeQuantWithMinMaxVars", .run = fake_tensor, SETTINGS},
    {.op = "FakeQuantWithMinMaxVarsGradient", .run = fake_tensor_gradient, SETTINGS},
    {.op = "FakeQuantWithMinMaxVarsPerChannel", .run = fake_channels, SETTINGS},
    {.op = "FakeQuantWithMinMaxVarsPerChannelGradient", .run = fake_channels_gradient, SETTINGS},
};
MR_KERNEL_FAMILY(fake_quantize);
