/* Quantization: QuantizeV2 and Dequantize convert between floats and narrow integers, QuantizeAndDequantize simulates
 * both for training. A tensor has one range, or one for each slice along an axis. */
#include "kernels/common.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The tensor as [outer, slices, inner]; without an axis it is one slice. */
typedef struct slices {
    int64_t outer, count, inner;
} slices;

static slices slices_along(mr_shape shape, int64_t axis)
{
    if (axis < 0) return (slices){1, 1, mr_shape_count(shape)};
    return (slices){mr_dims_product(&shape, 0, (int)axis), shape.dims[axis],
                    mr_dims_product(&shape, (int)axis + 1, shape.rank)};
}

/* ---- QuantizeV2 and Dequantize ---- */

typedef enum mode { MODE_MIN_COMBINED, MODE_MIN_FIRST, MODE_SCALED } mode;

typedef struct quantization {
    mode mode;
    bool half_to_even, narrow;
    int64_t axis;
    float minimum_range;
    mr_dtype dtype; /* of the integers */
    double lowest, highest;
    int bits;
} quantization;

static mr_status prepare_quantization(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    static const struct {
        mr_dtype dtype;
        double lowest, highest;
        int bits;
    } ranges[] = {{MR_QINT8, INT8_MIN, INT8_MAX, 8},
                  {MR_QUINT8, 0, UINT8_MAX, 8},
                  {MR_QINT16, INT16_MIN, INT16_MAX, 16},
                  {MR_QUINT16, 0, UINT16_MAX, 16},
                  {MR_QINT32, INT32_MIN, INT32_MAX, 32}};
    quantization *q = prepared;
    mr_string mode = mr_attr_string_or(node->attrs, "mode", "MIN_COMBINED");
    mr_string round = mr_attr_string_or(node->attrs, "round_mode", "HALF_AWAY_FROM_ZERO");
    bool to_integers = node->input_dtypes[0] == MR_FLOAT;
    *q = (quantization){.mode = mr_string_equal(mode, MR_STR("SCALED"))      ? MODE_SCALED
                                : mr_string_equal(mode, MR_STR("MIN_FIRST")) ? MODE_MIN_FIRST
                                                                             : MODE_MIN_COMBINED,
                        .half_to_even = mr_string_equal(round, MR_STR("HALF_TO_EVEN")),
                        .narrow = mr_attr_bool_or(node->attrs, "narrow_range", false),
                        .axis = mr_attr_int_or(node->attrs, "axis", -1),
                        .minimum_range = mr_attr_float_or(node->attrs, "ensure_minimum_range", 0.01f),
                        .dtype = to_integers ? node->output_dtypes[0] : node->input_dtypes[0]};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].dtype != q->dtype) continue;
        q->lowest = ranges[i].lowest;
        q->highest = ranges[i].highest;
        q->bits = ranges[i].bits;
    }
    if (q->axis < -1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Axis must be at least -1. Found %" PRId64, q->axis);
    if (to_integers && q->half_to_even && q->mode != MODE_SCALED)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%.*s'.",
                              (int)mode.size_bytes, mode.data);
    if (!to_integers && node->output_dtypes[0] == MR_BFLOAT16 && q->mode != MODE_MIN_COMBINED)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%.*s'",
                              (int)mode.size_bytes, mode.data);
    return MR_OK;
}

/* How a slice is converted: (x - offset) · scale - shift or, for MIN_FIRST, round(x · scale) - shift. */
typedef struct conversion {
    const quantization *quantization;
    float low, high; /* the range that x is clamped to */
    float scale, shift;
} conversion;

static float rounded(const quantization *q, float value)
{
    return q->half_to_even ? rintf(value) : roundf(value);
}

static mr_status plan_slice(mr_kernel_call *call, float low, float high, conversion *c, mr_error *error)
{
    const quantization *q = call->prepared;
    if (high < low)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_max_range must be larger than input_min_range.");
    float epsilon = fmaxf(1, fmaxf(fabsf(low), fabsf(high))) * q->minimum_range;
    *c = (conversion){.quantization = q, .low = fminf(0, low)};
    c->high = fmaxf(0, fmaxf(high, c->low + epsilon));
    float lowest = (float)q->lowest, highest = (float)q->highest, from_low, from_high;
    switch (q->mode) {
    case MODE_MIN_COMBINED:
        c->scale = (float)((q->highest - q->lowest) / (double)(c->high - c->low));
        c->shift = q->lowest < 0 ? (float)((q->highest - q->lowest + 1) / 2) : 0;
        break;
    case MODE_MIN_FIRST:
        c->scale = c->high == c->low ? 0 : (float)((exp2(q->bits) - 1) / (double)(c->high - c->low));
        c->shift = roundf(c->low * c->scale) - lowest;
        break;
    case MODE_SCALED:
        lowest = (float)(q->lowest + (q->narrow ? 1 : 0));
        from_low = lowest * c->low > 0 ? lowest / c->low : FLT_MAX;
        from_high = highest * c->high > 0 ? highest / c->high : FLT_MAX;
        c->scale = fminf(from_low, from_high);
        c->low = lowest / c->scale;
        c->high = highest / c->scale;
        if (fabsf(c->low) < FLT_MIN) c->low = 0; /* TensorFlow's threads flush subnormal numbers */
        break;
    }
    return MR_OK;
}

static float quantize_one(const conversion *c, float x)
{
    const quantization *q = c->quantization;
    float clamped = x < c->high ? x : c->high;
    clamped = clamped > c->low ? clamped : c->low;
    switch (q->mode) {
    case MODE_MIN_COMBINED:
        if (q->lowest < 0) return roundf((clamped - c->low) * c->scale - c->shift);
        return truncf((clamped - c->low) * c->scale + 0.5f);
    case MODE_MIN_FIRST:
        x = roundf(x * c->scale) - c->shift;
        x = fmaxf(x, (float)q->lowest);
        return fminf(x, q->bits == 32 ? 2147483520.0f : (float)q->highest);
    default:
        return rounded(q, clamped * c->scale);
    }
}

/* As the processor converts: a value outside of int32 becomes its smallest number. */
static int32_t as_int32(float value)
{
    return value >= -2147483648.0f && value < 2147483648.0f ? (int32_t)value : INT32_MIN;
}

static void put_quantized(void *data, mr_dtype dtype, int64_t i, float value)
{
    int32_t integer = as_int32(value);
    if (dtype == MR_QINT32)
        ((int32_t *)data)[i] = integer;
    else if (dtype == MR_QINT8 || dtype == MR_QUINT8)
        ((uint8_t *)data)[i] = (uint8_t)integer;
    else
        ((uint16_t *)data)[i] = (uint16_t)integer;
}

typedef struct quantize_job {
    const conversion *conversion;
    const float *source;
    void *target;
} quantize_job;

static void quantize_piece(void *context, int64_t begin, int64_t end)
{
    const quantize_job *job = context;
    mr_dtype dtype = job->conversion->quantization->dtype;
    for (int64_t i = begin; i < end; i++)
        put_quantized(job->target, dtype, i, quantize_one(job->conversion, job->source[i]));
}

/* Inputs 1 and 2 are the ranges: scalars, or vectors with an element for each slice. */
static mr_status check_ranges(mr_kernel_call *call, const quantization *q, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    static const char *const names[] = {"", "min_range", "max_range"};
    if (q->axis >= shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Axis must be less than input dimension(%d), got %" PRId64, shape.rank, q->axis);
    for (int i = 1; i < 3; i++) {
        int64_t count = mr_tensor_count(&call->inputs[i]);
        if (q->axis < 0 && count != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "If axis is not specified, %s must contain a single float element, but it contains "
                                  "%" PRId64 " elements",
                                  names[i], count);
        if (q->axis >= 0 && (call->inputs[i].shape.rank != 1 || count != shape.dims[q->axis]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "If axis is specified, %s must be a 1-D tensor whose size matches the axis dimension "
                                  "of the input and output tensors, but %s has %" PRId64 " elements and the axis "
                                  "dimension is of size %" PRId64,
                                  names[i], names[i], count, shape.dims[q->axis]);
    }
    return MR_OK;
}

static mr_status quantize(mr_kernel_call *call, mr_error *error)
{
    const quantization *q = call->prepared;
    mr_shape shape = call->inputs[0].shape;
    MR_TRY(check_ranges(call, q, error));
    slices s = slices_along(shape, q->axis);
    if (q->mode == MODE_MIN_FIRST && s.count != 1)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "MIN_FIRST mode is not implemented for Quantize with axis != -1.");
    mr_shape limits = q->axis < 0 ? MR_SCALAR : MR_SHAPE(s.count);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    MR_TRY(mr_kernel_output(call, 1, limits, error));
    MR_TRY(mr_kernel_output(call, 2, limits, error));
    size_t size = mr_dtype_size(q->dtype);
    bool has_elements = mr_tensor_count(&call->inputs[0]) > 0;
    for (int64_t i = 0; i < s.count; i++) {
        conversion c;
        MR_TRY(
            plan_slice(call, mr_tensor_floats(&call->inputs[1])[i], mr_tensor_floats(&call->inputs[2])[i], &c, error));
        mr_tensor_floats(&call->outputs[1])[i] = c.low;
        mr_tensor_floats(&call->outputs[2])[i] = c.high;
        for (int64_t o = 0; has_elements && o < s.outer; o++) {
            int64_t at = (o * s.count + i) * s.inner;
            quantize_job job = {&c, mr_tensor_floats(&call->inputs[0]) + at,
                                (char *)call->outputs[0].data + (size_t)at * size};
            mr_pool_for(call->device->pool, s.inner, MR_GRAIN, quantize_piece, &job);
        }
    }
    return MR_OK;
}

/* x · scale + offset, after `shift` is added. */
typedef struct dequantize_job {
    mr_dtype from, to;
    const void *source;
    void *target;
    float shift, scale, offset;
} dequantize_job;

static float quantized_at(mr_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case MR_QINT8:
        return (float)((const int8_t *)data)[i];
    case MR_QUINT8:
        return (float)((const uint8_t *)data)[i];
    case MR_QINT16:
        return (float)((const int16_t *)data)[i];
    case MR_QUINT16:
        return (float)((const uint16_t *)data)[i];
    default:
        return (float)((const int32_t *)data)[i];
    }
}

static void dequantize_piece(void *context, int64_t begin, int64_t end)
{
    const dequantize_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        float value = (quantized_at(job->from, job->source, i) + job->shift) * job->scale;
        value += job->offset;
        if (job->to == MR_FLOAT)
            ((float *)job->target)[i] = value;
        else
            ((uint16_t *)job->target)[i] = mr_float_to_bfloat16(value);
    }
}

static void plan_dequantize(const quantization *q, float low, float high, dequantize_job *job)
{
    float lowest = (float)(q->lowest + (q->narrow ? 1 : 0)), highest = (float)q->highest;
    job->shift = job->offset = 0;
    switch (q->mode) {
    case MODE_MIN_COMBINED:
        job->shift = q->lowest < 0 ? (highest - (float)q->lowest + 1) / 2 : 0;
        job->scale = (high - low) / (highest - (float)q->lowest);
        job->offset = low;
        break;
    case MODE_MIN_FIRST:
        job->scale = (float)((double)(high - low) / (exp2(q->bits) - 1));
        job->offset = (high == low ? low : roundf(low / job->scale) * job->scale) - (float)q->lowest * job->scale;
        break;
    case MODE_SCALED:
        job->scale = high / highest;
        if (q->lowest < 0) job->scale = MR_MAX(low / lowest, job->scale);
        break;
    }
}

static mr_status dequantize(mr_kernel_call *call, mr_error *error)
{
    const quantization *q = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    static const char *const names[] = {"", "input_min_tensor", "input_max_tensor"};
    if (q->axis >= input->shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Axis must be less than input dimension(%d), got %" PRId64, input->shape.rank, q->axis);
    slices s = slices_along(input->shape, q->axis);
    for (int i = 1; i < 3; i++)
        if (mr_tensor_count(&call->inputs[i]) != s.count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s must have as many elements as input on the dequantization axis (%" PRId64
                                  "), got %" PRId64 ", expected %" PRId64,
                                  names[i], q->axis, mr_tensor_count(&call->inputs[i]), s.count);
    if (q->mode == MODE_MIN_FIRST && s.count != 1)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    if (mr_tensor_count(input) == 0) return MR_OK;
    dequantize_job job = {.from = q->dtype, .to = call->outputs[0].dtype};
    for (int64_t i = 0; i < s.count; i++) {
        plan_dequantize(q, mr_tensor_floats(&call->inputs[1])[i], mr_tensor_floats(&call->inputs[2])[i], &job);
        for (int64_t o = 0; o < s.outer; o++) {
            size_t at = (size_t)((o * s.count + i) * s.inner);
            job.source = (const char *)input->data + at * mr_dtype_size(job.from);
            job.target = (char *)call->outputs[0].data + at * mr_dtype_size(job.to);
            mr_pool_for(call->device->pool, s.inner, MR_GRAIN, dequantize_piece, &job);
        }
    }
    return MR_OK;
}

/* ---- QuantizeAndDequantize ---- */

typedef struct simulation {
    bool is_signed, is_given, narrow, half_up;
    int64_t bits, axis;
} simulation;

static mr_status prepare_simulation(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    simulation *s = prepared;
    *s = (simulation){
        .is_signed = mr_attr_bool_or(node->attrs, "signed_input", true),
        .is_given = mr_attr_bool_or(node->attrs, "range_given", false),
        .narrow = mr_attr_bool_or(node->attrs, "narrow_range", false),
        .half_up = mr_string_equal(mr_attr_string_or(node->attrs, "round_mode", "HALF_TO_EVEN"), MR_STR("HALF_UP")),
        .bits = mr_attr_int_or(node->attrs, "num_bits", 8),
        .axis = mr_attr_int_or(node->attrs, "axis", -1)};
    if (s->axis < -1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Axis must be at least -1. Found %" PRId64, s->axis);
    return MR_OK;
}

/* A float or double scalar as double. */
static double number_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_DOUBLE ? mr_tensor_doubles(tensor)[i] : (double)mr_tensor_floats(tensor)[i];
}

/* Defines for a type the conversion of one slice: of `outer` rows of `inner` elements, `stride` apart. */
#define SIMULATE(type, RINT, FLOOR, MAXIMUM)                                                                           \
    static void simulate_##type(const simulation *s, int64_t bits, const type *source, type *target, int64_t outer,    \
                                int64_t stride, int64_t inner, type low, type high)                                    \
    {                                                                                                                  \
        if (!s->is_given) {                                                                                            \
            low = (type)INFINITY;                                                                                      \
            high = (type) - INFINITY;                                                                                  \
            for (int64_t o = 0; o < outer; o++)                                                                        \
                for (int64_t i = 0; i < inner; i++) {                                                                  \
                    type x = source[o * stride + i];                                                                   \
                    low = x < low ? x : low;                                                                           \
                    high = x > high ? x : high;                                                                        \
                }                                                                                                      \
        }                                                                                                              \
        int64_t most = s->is_signed ? (1ll << (bits - 1)) - 1 : (int64_t)((1ull << bits) - 1);                         \
        int64_t least = s->is_signed ? -(1ll << (bits - 1)) + (s->narrow ? 1 : 0) : 0;                                 \
        type from_low = (type)least * low > 0 ? (type)least / low : MAXIMUM;                                           \
        type from_high = (type)most * high > 0 ? (type)most / high : MAXIMUM, scale, inverse;                          \
        if (from_low < from_high) {                                                                                    \
            scale = from_low;                                                                                          \
            inverse = low / (type)least;                                                                               \
            high = (type)most * inverse;                                                                               \
        } else {                                                                                                       \
            scale = from_high;                                                                                         \
            inverse = high / (type)most;                                                                               \
            low = (type)least * inverse;                                                                               \
        }                                                                                                              \
        for (int64_t o = 0; o < outer; o++)                                                                            \
            for (int64_t i = 0; i < inner; i++) {                                                                      \
                type x = source[o * stride + i];                                                                       \
                if (s->is_given) {                                                                                     \
                    x = high < x ? high : x;                                                                           \
                    x = x < low ? low : x;                                                                             \
                }                                                                                                      \
                x *= scale;                                                                                            \
                target[o * stride + i] = (s->half_up ? FLOOR(x + (type)0.5) : RINT(x)) * inverse;                      \
            }                                                                                                          \
    }
SIMULATE(float, rintf, floorf, FLT_MAX)
SIMULATE(double, rint, floor, DBL_MAX)

/* Checks axis and the inputs `first` and `first + 1`, the ranges. */
static mr_status check_simulation(mr_kernel_call *call, int64_t axis, int input, int first, int64_t *count,
                                  mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    static const char *const names[] = {"input_min", "input_max"};
    if (axis >= shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Axis should be in range [-1, %d). Received: %" PRId64, shape.rank, axis);
    *count = axis < 0 ? 1 : shape.dims[axis];
    for (int i = 0; i < 2 && first > 0; i++)
        if (mr_tensor_count(&call->inputs[first + i]) != *count ||
            call->inputs[first + i].shape.rank != (axis < 0 ? 0 : 1)) {
            char text[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Shape must be rank %d for %s and have %" PRId64 " elements, but is %s",
                                  axis < 0 ? 0 : 1, names[i], *count,
                                  mr_shape_text(call->inputs[first + i].shape, text, sizeof text));
        }
    return MR_OK;
}

static mr_status simulate(mr_kernel_call *call, mr_error *error)
{
    const simulation *s = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    bool has_inputs = call->node->input_count > 1;
    int64_t bits = s->bits, count;
    if (call->node->input_count > 3) {
        if (call->inputs[3].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_bits must be a scalar");
        MR_TRY(mr_kernel_int(call, 3, "num_bits", &bits, error));
    }
    if (bits <= 0 || bits >= (s->is_signed ? 62 : 63))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "num_bits is out of range: %" PRId64 " with signed_input_ %d", bits, s->is_signed);
    MR_TRY(check_simulation(call, s->axis, 0, has_inputs && s->is_given ? 1 : 0, &count, error));
    double low = (double)mr_attr_float_or(call->node->attrs, "input_min", 0);
    double high = (double)mr_attr_float_or(call->node->attrs, "input_max", 0);
    slices parts = slices_along(input->shape, s->axis);
    bool single = s->axis < 0; /* only then TensorFlow refuses NaN */
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    for (int64_t i = 0; i < count; i++) {
        if (s->is_given && has_inputs) {
            low = number_at(&call->inputs[1], i);
            high = number_at(&call->inputs[2], i);
        }
        if (s->is_given && (single ? !(low <= high) : low > high))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid range: input_min %g > input_max %g",
                                  low, high);
        if (mr_tensor_count(input) == 0) continue;
        int64_t stride = parts.count * parts.inner, at = i * parts.inner;
        if (input->dtype == MR_DOUBLE)
            simulate_double(s, bits, mr_tensor_doubles(input) + at, mr_tensor_doubles(&call->outputs[0]) + at,
                            parts.outer, stride, parts.inner, low, high);
        else
            simulate_float(s, bits, mr_tensor_floats(input) + at, mr_tensor_floats(&call->outputs[0]) + at, parts.outer,
                           stride, parts.inner, (float)low, (float)high);
    }
    return MR_OK;
}

/* The gradient of V4: passes where the input is in its range. The ranges have none. */
static mr_status simulate_gradient(mr_kernel_call *call, mr_error *error)
{
    const simulation *s = call->prepared;
    const mr_tensor *gradient = &call->inputs[0], *input = &call->inputs[1];
    int64_t count;
    if (!mr_shape_equal(gradient->shape, input->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "gradient and input must be the same size");
    MR_TRY(check_simulation(call, s->axis, 1, 2, &count, error));
    slices parts = slices_along(input->shape, s->axis);
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    for (int i = 1; i < 3; i++) {
        MR_TRY(mr_kernel_output(call, i, call->inputs[i + 1].shape, error));
        memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
    }
    int64_t elements = mr_tensor_count(input);
    for (int64_t i = 0; i < elements; i++) {
        int64_t slice = i / parts.inner % parts.count;
        double x = number_at(input, i);
        bool is_inside = x >= number_at(&call->inputs[2], slice) && x <= number_at(&call->inputs[3], slice);
        if (input->dtype == MR_DOUBLE)
            mr_tensor_doubles(&call->outputs[0])[i] = mr_tensor_doubles(gradient)[i] * (is_inside ? 1 : 0);
        else
            mr_tensor_floats(&call->outputs[0])[i] = mr_tensor_floats(gradient)[i] * (is_inside ? 1 : 0);
    }
    return MR_OK;
}

/* clang-format off */
#define QUANTIZATION .prepared_size_bytes = sizeof(quantization), .prepare = prepare_quantization
#define SIMULATION .types = "T: float, double", .prepared_size_bytes = sizeof(simulation), .prepare = prepare_simulation
/* clang-format on */

static const mr_kernel kernels[] = {
    {.op = "QuantizeV2", .run = quantize, QUANTIZATION},
    {.op = "Dequantize", .run = dequantize, QUANTIZATION},
    {.op = "QuantizeAndDequantize", .run = simulate, SIMULATION},
    {.op = "QuantizeAndDequantizeV2", .run = simulate, SIMULATION},
    {.op = "QuantizeAndDequantizeV3", .run = simulate, SIMULATION},
    {.op = "QuantizeAndDequantizeV4", .run = simulate, SIMULATION},
    {.op = "QuantizeAndDequantizeV4Grad", .run = simulate_gradient, SIMULATION},
};
MR_KERNEL_FAMILY(quantize);
