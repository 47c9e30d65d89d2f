/* Quantized tensors: activations, pooling, normalization, resizing, concatenation and changes of the range. */
#include "kernels/quantized.h"

#include "kernels/conv.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int32_t get(const mr_tensor *tensor, int64_t index)
{
    return tensor->dtype == MR_QINT32  ? ((const int32_t *)tensor->data)[index]
           : tensor->dtype == MR_QINT8 ? ((const int8_t *)tensor->data)[index]
                                       : ((const uint8_t *)tensor->data)[index];
}

static void put(mr_tensor *tensor, int64_t index, int32_t number)
{
    if (tensor->dtype == MR_QINT32)
        ((int32_t *)tensor->data)[index] = number;
    else
        ((uint8_t *)tensor->data)[index] = (uint8_t)number;
}

/* ---- Activations ---- */

static mr_status clamp(mr_kernel_call *call, int low, float limit, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_quantized type = mr_quantized_of(input->dtype);
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, low, &range, error));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    int32_t least = mr_quantize(type, 0, range);
    int32_t most = isinf(limit) ? (int32_t)type.highest : mr_quantize(type, limit, range);
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++)
        put(&call->outputs[0], i, MR_MIN(MR_MAX(get(input, i), least), most));
    return mr_quantized_put_range(call, 1, range, error);
}

static mr_status relu(mr_kernel_call *call, mr_error *error)
{
    return clamp(call, 1, INFINITY, error);
}

static mr_status relu6(mr_kernel_call *call, mr_error *error)
{
    return clamp(call, 1, 6, error);
}

static mr_status relu_x(mr_kernel_call *call, mr_error *error)
{
    if (mr_tensor_count(&call->inputs[1]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "max_value must be a scalar");
    return clamp(call, 2, mr_tensor_floats(&call->inputs[1])[0], error);
}

/* ---- Pooling ---- */

static mr_status prepare_window(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    return mr_window_attrs_read(node, prepared, error);
}

typedef struct pooling {
    const mr_tensor *input;
    mr_tensor *output;
    int64_t window_y, window_x, stride_y, stride_x, top, left;
    bool averages;
} pooling;

static int32_t pool_one(const pooling *p, int64_t image, int64_t out_y, int64_t out_x, int64_t channel)
{
    const int64_t *dims = p->input->shape.dims;
    int64_t y = out_y * p->stride_y - p->top, x = out_x * p->stride_x - p->left, count = 0, sum = 0;
    int32_t most = INT32_MIN;
    for (int64_t i = MR_MAX(y, 0); i < MR_MIN(y + p->window_y, dims[1]); i++)
        for (int64_t j = MR_MAX(x, 0); j < MR_MIN(x + p->window_x, dims[2]); j++) {
            int32_t number = get(p->input, ((image * dims[1] + i) * dims[2] + j) * dims[3] + channel);
            most = MR_MAX(most, number);
            sum += number;
            count++;
        }
    if (count == 0) return 0;
    return p->averages ? (int32_t)(sum / count) : most;
}

static void pool_rows(void *context, int64_t begin, int64_t end)
{
    const pooling *p = context;
    const int64_t *dims = p->output->shape.dims;
    for (int64_t row = begin; row < end; row++)
        for (int64_t x = 0; x < dims[2]; x++)
            for (int64_t c = 0; c < dims[3]; c++)
                put(p->output, (row * dims[2] + x) * dims[3] + c, pool_one(p, row / dims[1], row % dims[1], x, c));
}

static mr_status pool(mr_kernel_call *call, bool averages, mr_error *error)
{
    const mr_window_attrs *attrs = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    mr_quantized_range range;
    int64_t height, width, ignored;
    MR_TRY(mr_quantized_read_range(call, 1, &range, error));
    if (input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
    pooling p = {.input = input,
                 .output = &call->outputs[0],
                 .window_y = attrs->window_y,
                 .window_x = attrs->window_x,
                 .stride_y = attrs->stride_y,
                 .stride_x = attrs->stride_x,
                 .averages = averages};
    const int64_t *dims = input->shape.dims;
    MR_TRY(mr_window_geometry(call->node, attrs, 0, dims[1], p.window_y, &height, &p.top, &ignored, error));
    MR_TRY(mr_window_geometry(call->node, attrs, 1, dims[2], p.window_x, &width, &p.left, &ignored, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], height, width, dims[3]), error));
    if (mr_tensor_count(&call->outputs[0]) > 0) mr_pool_for(call->device->pool, dims[0] * height, 1, pool_rows, &p);
    return mr_quantized_put_range(call, 1, range, error);
}

static mr_status max_pool(mr_kernel_call *call, mr_error *error)
{
    return pool(call, false, error);
}

static mr_status avg_pool(mr_kernel_call *call, mr_error *error)
{
    return pool(call, true, error);
}

/* ---- Concatenation ---- */

static mr_status concat_shape(mr_kernel_call *call, int count, int axis, mr_shape *shape, mr_error *error)
{
    *shape = call->inputs[1].shape;
    for (int i = 2; i <= count; i++) {
        mr_shape part = call->inputs[i].shape;
        bool fits = part.rank == shape->rank;
        for (int32_t d = 0; fits && d < part.rank; d++) fits = d == axis || part.dims[d] == shape->dims[d];
        if (!fits || __builtin_add_overflow(shape->dims[axis], part.dims[axis], &shape->dims[axis]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "ConcatOp : Dimensions of inputs should match: input %d does not fit the first", i);
    }
    return MR_OK;
}

/* Writes rows of `width` numbers, the first at number `first` of the output and the others `stride` after another. */
static void requantize_rows(mr_tensor *output, int64_t first, int64_t stride, const mr_tensor *part, int64_t rows,
                            int64_t width, mr_quantized_range from, mr_quantized_range to)
{
    mr_quantized type = mr_quantized_of(part->dtype);
    mr_dequantizer dequantizer = mr_dequantizer_of(type, from);
    mr_quantizer quantizer = mr_quantizer_of(type, to);
    bool is_same = from.low == to.low && from.high == to.high;
    for (int64_t i = 0; i < rows * width; i++) {
        int32_t number = get(part, i);
        if (!is_same) number = mr_quantizer_apply(quantizer, mr_dequantizer_apply(dequantizer, number));
        put(output, first + i / width * stride + i % width, number);
    }
}

static mr_status concat(mr_kernel_call *call, mr_error *error)
{
    int count = (call->node->input_count - 1) / 3, axis;
    mr_quantized_range range = {FLT_MAX, -FLT_MAX};
    int64_t given, first = 0;
    mr_shape shape;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(mr_kernel_single_int(call, 0, "concat_dim", &given, error));
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Concat dim tensor should be a scalar integer, but got shape %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    int rank = call->inputs[1].shape.rank;
    if (given < 0 || given >= rank) /* negative ones too */
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "ConcatOp : Expected concatenating dimensions in the range [0, %d), but got %" PRId64,
                              rank, given);
    axis = (int)given;
    MR_TRY(concat_shape(call, count, axis, &shape, error));
    for (int i = 1 + count; i < call->node->input_count; i++) {
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d must be a scalar", i);
        float limit = mr_tensor_floats(&call->inputs[i])[0];
        if (i <= 2 * count && limit < range.low) range.low = limit;
        if (i > 2 * count && limit > range.high) range.high = limit;
    }
    if (call->inputs[1].dtype == MR_QINT32) {
        float limit = fmaxf(fabsf(range.low), fabsf(range.high));
        range = (mr_quantized_range){-limit, limit};
    }
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t rows = mr_dims_product(&shape, 0, axis), inner = mr_dims_product(&shape, axis + 1, shape.rank);
    for (int i = 1; i <= count && mr_tensor_count(&call->outputs[0]) > 0; i++) {
        int64_t width = call->inputs[i].shape.dims[axis] * inner;
        mr_quantized_range from = {mr_tensor_floats(&call->inputs[i + count])[0],
                                   mr_tensor_floats(&call->inputs[i + 2 * count])[0]};
        if (width > 0)
            requantize_rows(&call->outputs[0], first, shape.dims[axis] * inner, &call->inputs[i], rows, width, from,
                            range);
        first += width;
    }
    return mr_quantized_put_range(call, 1, range, error);
}

/* ---- Normalization ---- */

/* The output has 10 bits after the binary point. */
constexpr float BATCH_NORM_LIMIT = 1 << 20;

typedef struct channel_line {
    int32_t scale, offset;
} channel_line;

/* The element of one of the vectors, input `index`, which is followed by its range. */
static mr_status vector_value(const mr_kernel_call *call, int index, int64_t channel, float *value, mr_error *error)
{
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, index + 1, &range, error));
    *value = mr_dequantize(mr_quantized_of(call->inputs[index].dtype), get(&call->inputs[index], channel), range);
    return MR_OK;
}

static mr_status channel_of(const mr_kernel_call *call, int64_t channel, mr_quantized_range range, channel_line *line,
                            mr_error *error)
{
    float mean, variance, beta, gamma, epsilon = mr_attr_float_or(call->node->attrs, "variance_epsilon", 0);
    mr_quantized type = mr_quantized_of(MR_QINT32);
    MR_TRY(vector_value(call, 3, channel, &mean, error));
    MR_TRY(vector_value(call, 6, channel, &variance, error));
    MR_TRY(vector_value(call, 9, channel, &beta, error));
    MR_TRY(vector_value(call, 12, channel, &gamma, error));
    float scale = 1.0f / sqrtf(variance + epsilon);
    if (mr_attr_bool_or(call->node->attrs, "scale_after_normalization", false)) scale *= gamma;
    float product = -mean * scale;
    *line = (channel_line){mr_quantize(type, scale, range), mr_quantize(type, product + beta, range)};
    return MR_OK;
}

static mr_status batch_norm(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_quantized from = mr_quantized_of(input->dtype), type = mr_quantized_of(MR_QINT32);
    mr_quantized_range input_range, range = {-BATCH_NORM_LIMIT, BATCH_NORM_LIMIT};
    MR_TRY(mr_quantized_read_range(call, 1, &input_range, error));
    if (input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    int64_t channels = input->shape.dims[3], count = mr_tensor_count(input);
    for (int i = 3; i < 15; i += 3)
        if (call->inputs[i].shape.rank != 1 || call->inputs[i].shape.dims[0] != channels)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d must be a vector with an element for each channel", i);
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    int32_t one = mr_quantize(type, 1, range);
    for (int64_t c = 0; c < channels && count > 0; c++) {
        channel_line line;
        MR_TRY(channel_of(call, c, range, &line, error));
        for (int64_t i = c; i < count; i += channels) {
            uint32_t value = (uint32_t)mr_quantize(type, mr_dequantize(from, get(input, i), input_range), range);
            int32_t product = (int32_t)(value * (uint32_t)line.scale);
            put(&call->outputs[0], i, (int32_t)((uint32_t)(product / one) + (uint32_t)line.offset));
        }
    }
    return mr_quantized_put_range(call, 1, range, error);
}

/* The normalized elements of one channel of one image. */
static void normalize_channel(const uint8_t *input, float *output, int64_t count, int64_t stride, float scale,
                              float epsilon)
{
    int64_t total = 0;
    float squares = 0;
    for (int64_t i = 0; i < count; i++) total += input[i * stride];
    float mean = (float)total / (float)count;
    for (int64_t i = 0; i < count; i++) {
        float difference = scale * ((float)input[i * stride] - mean);
        squares += difference * difference;
    }
    float inverse = 1.0f / sqrtf(squares / (float)count + epsilon);
    for (int64_t i = 0; i < count; i++) output[i * stride] = scale * ((float)input[i * stride] - mean) * inverse;
}

static mr_quantized_range instance_range(const mr_kernel_call *call, const float *values, int64_t count)
{
    mr_quantized_range range = {mr_attr_float_or(call->node->attrs, "given_y_min", 0),
                                mr_attr_float_or(call->node->attrs, "given_y_max", 0)};
    float separation = mr_attr_float_or(call->node->attrs, "min_separation", 0.001f);
    if (!mr_attr_bool_or(call->node->attrs, "output_range_given", false)) {
        range = (mr_quantized_range){FLT_MAX, -FLT_MAX};
        for (int64_t i = 0; i < count; i++) {
            range.low = MR_MIN(values[i], range.low);
            range.high = MR_MAX(values[i], range.high);
        }
    }
    if (range.high - range.low < separation) range.high = range.low + separation;
    return range;
}

static mr_status instance_norm(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    float epsilon = mr_attr_float_or(call->node->attrs, "variance_epsilon", 1e-5f);
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, 1, &range, error));
    if (!(range.low < range.high))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_min must be less than input_max : %g >= %g", (double)range.low,
                              (double)range.high);
    if (input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be 4-dimensional");
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    const int64_t *dims = input->shape.dims;
    int64_t count = mr_tensor_count(input), image = count > 0 ? count / dims[0] : 0;
    float *values = calloc((size_t)count + 1, sizeof *values);
    if (!values)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %lld floats", (long long)count);
    for (int64_t n = 0; n < dims[0] && count > 0; n++)
        for (int64_t c = 0; c < dims[3]; c++)
            normalize_channel((const uint8_t *)input->data + n * image + c, values + n * image + c, image / dims[3],
                              dims[3], (range.high - range.low) / 255.0f, epsilon);
    range = instance_range(call, values, count);
    mr_quantizer quantizer = mr_quantizer_of(mr_quantized_of(MR_QUINT8), range);
    for (int64_t i = 0; i < count; i++) put(&call->outputs[0], i, mr_quantizer_apply(quantizer, values[i]));
    free(values);
    return mr_quantized_put_range(call, 1, range, error);
}

/* ---- Resizing ---- */

/* Which positions are blended: low + (high - low) · share. */
typedef struct blend {
    int64_t low, high;
    float share;
} blend;

static blend blend_at(const mr_kernel_call *call, int64_t index, float scale, int64_t size)
{
    bool is_centered = mr_attr_bool_or(call->node->attrs, "half_pixel_centers", false);
    float at = is_centered ? ((float)index + 0.5f) * scale - 0.5f : (float)index * scale;
    float whole = floorf(at);
    blend b = {MR_MAX((int64_t)whole, 0), MR_MIN((int64_t)ceilf(at), size - 1), at - whole};
    b.low = MR_MIN(b.low, b.high);
    return b;
}

static float resize_scale(const mr_kernel_call *call, int64_t from, int64_t to)
{
    bool aligns = mr_attr_bool_or(call->node->attrs, "align_corners", false);
    return aligns && to > 1 ? (float)(from - 1) / (float)(to - 1) : (float)from / (float)to;
}

/* Bytes: shares have 7 bits. */
static int32_t blend_bytes(const int32_t corners[4], blend x, blend y)
{
    int32_t x_share = (int32_t)(x.share * 128), y_share = (int32_t)(y.share * 128);
    int32_t top = corners[0] * 128 + (corners[1] - corners[0]) * x_share;
    int32_t bottom = corners[2] * 128 + (corners[3] - corners[2]) * x_share;
    int32_t out = top + (bottom - top) / 128 * y_share;
    return (out + 64) / 128;
}

/* qint32: shares have 30 bits. TensorFlow converts the numbers through float. */
static int32_t blend_integers(const int32_t corners[4], blend x, blend y)
{
    constexpr int64_t UNIT = (int64_t)1 << 30;
    int64_t x_share = (int64_t)(x.share * (float)UNIT), y_share = (int64_t)(y.share * (float)UNIT), values[4];
    for (int i = 0; i < 4; i++) values[i] = (int64_t)(float)corners[i];
    int64_t top = values[0] * UNIT + (values[1] - values[0]) * x_share;
    int64_t bottom = values[2] * UNIT + (values[3] - values[2]) * x_share;
    int64_t out = top + (bottom - top) / UNIT * y_share;
    return (int32_t)(uint32_t)((out + UNIT / 2) / UNIT);
}

static void resize_rows(const mr_kernel_call *call, mr_tensor *output)
{
    const mr_tensor *input = &call->inputs[0];
    const int64_t *from = input->shape.dims, *to = output->shape.dims;
    bool is_bytes = input->dtype == MR_QUINT8;
    float y_scale = resize_scale(call, from[1], to[1]), x_scale = resize_scale(call, from[2], to[2]);
    for (int64_t row = 0, index = 0; row < to[0] * to[1]; row++) {
        blend y = blend_at(call, row % to[1], y_scale, from[1]);
        int64_t image = row / to[1] * from[1];
        for (int64_t column = 0; column < to[2]; column++) {
            blend x = blend_at(call, column, x_scale, from[2]);
            for (int64_t c = 0; c < to[3]; c++) {
                int32_t corners[4];
                for (int i = 0; i < 4; i++)
                    corners[i] = get(
                        input, ((image + (i < 2 ? y.low : y.high)) * from[2] + (i % 2 ? x.high : x.low)) * to[3] + c);
                put(output, index++, is_bytes ? blend_bytes(corners, x, y) : blend_integers(corners, x, y));
            }
        }
    }
}

static mr_status resize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *size = &call->inputs[1];
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, 2, &range, error));
    if (input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    if (size->shape.rank != 1 || size->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape_t must have two elements");
    const int64_t *dims = input->shape.dims;
    int64_t height = mr_tensor_int32s(size)[0], width = mr_tensor_int32s(size)[1];
    if (height <= 0 || width <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output dimensions must be positive");
    if (dims[1] <= 0 || dims[2] <= 0 || dims[3] <= 0 || dims[1] > INT32_MAX || dims[2] > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input image must be of non-zero size");
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], height, width, dims[3]), error));
    if (height == dims[1] && width == dims[2] && mr_tensor_count(input) > 0)
        memcpy(call->outputs[0].data, input->data, mr_tensor_size_bytes(input));
    else
        resize_rows(call, &call->outputs[0]);
    return mr_quantized_put_range(call, 1, range, error);
}

/* ---- Changes of the range ---- */

/* The floats for the least and the greatest number; the least is at most 0. */
static mr_quantized_range used_range(const mr_tensor *input, mr_quantized_range range)
{
    mr_quantized type = mr_quantized_of(MR_QINT32);
    const int32_t *numbers = input->data;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        least = MR_MIN(least, numbers[i]);
        most = MR_MAX(most, numbers[i]);
    }
    float low = mr_dequantize(type, least, range);
    return (mr_quantized_range){low < 0 ? low : 0, mr_dequantize(type, most, range)};
}

/* From qint32 to quint8, with 16 bits after the binary point. */
static void narrow(const mr_tensor *input, mr_quantized_range from, mr_quantized_range to, uint8_t *output)
{
    float width = from.high - from.low, new_width = to.high - to.low;
    float inverse = new_width == 0 ? 0 : (float)(255.0 / (double)new_width);
    float middle = (float)((double)(from.low + from.high) / 2.0);
    bool is_empty = new_width == 0;
    int64_t scale = is_empty ? 0 : mr_double_to_int64(255.0 * 65536 * (double)width / (double)new_width);
    int64_t input_offset = mr_double_to_int64((double)(middle * inverse * 65536.0f));
    int64_t output_offset = is_empty ? 0 : mr_double_to_int64(65536 * ((double)to.low * 255.0) / (double)new_width);
    uint64_t offset = (uint64_t)input_offset - (uint64_t)output_offset + 32768;
    const int32_t *numbers = input->data;
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        int64_t product = (int64_t)((uint64_t)(int64_t)numbers[i] * (uint64_t)scale) >> 32;
        int64_t value = (int64_t)((uint64_t)product + offset) >> 16;
        output[i] = (uint8_t)MR_MIN(MR_MAX(value, 0), 255);
    }
}

static mr_status find_range(mr_kernel_call *call, mr_error *error)
{
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, 1, &range, error));
    return mr_quantized_put_range(call, 0, used_range(&call->inputs[0], range), error);
}

static mr_status shrink(mr_kernel_call *call, mr_error *error)
{
    mr_quantized_range range;
    MR_TRY(mr_quantized_read_range(call, 1, &range, error));
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    mr_quantized_range used = used_range(&call->inputs[0], range);
    narrow(&call->inputs[0], range, used, call->outputs[0].data);
    return mr_quantized_put_range(call, 1, used, error);
}

static mr_status requantize(mr_kernel_call *call, mr_error *error)
{
    mr_quantized_range range, requested;
    MR_TRY(mr_quantized_read_range(call, 1, &range, error));
    MR_TRY(mr_quantized_read_range(call, 3, &requested, error));
    if (!(requested.low <= 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "requested_output_min must be <= 0, but got %g",
                              (double)requested.low);
    if (!(requested.high >= 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "requested_output_max must be >= 0, but got %g",
                              (double)requested.high);
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    narrow(&call->inputs[0], range, requested, call->outputs[0].data);
    return mr_quantized_put_range(call, 1, requested, error);
}

#define SAME_TYPE(operator, function)                                                                                  \
    {.op = operator, .types = "Tinput: quint8; out_type: quint8", .run = function},                                    \
    {                                                                                                                  \
        .op = operator, .types = "Tinput: qint32; out_type: qint32", .run = function                                   \
    }
#define POOL(operator, function)                                                                                       \
    {.op = operator,                                                                                                   \
     .types = "T: quint8, qint8",                                                                                      \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(mr_window_attrs),                                                                   \
     .prepare = prepare_window}
static const mr_kernel kernels[] = {
    SAME_TYPE("QuantizedRelu", relu),
    SAME_TYPE("QuantizedRelu6", relu6),
    SAME_TYPE("QuantizedReluX", relu_x),
    POOL("QuantizedMaxPool", max_pool),
    POOL("QuantizedAvgPool", avg_pool),
    {.op = "QuantizedConcat", .types = "T: quint8, qint32", .run = concat},
    {.op = "QuantizedBatchNormWithGlobalNormalization", .types = "Tinput: quint8; out_type: qint32", .run = batch_norm},
    {.op = "QuantizedInstanceNorm", .types = "T: quint8", .run = instance_norm},
    {.op = "QuantizedResizeBilinear", .types = "T: quint8, qint32", .run = resize},
    {.op = "QuantizeDownAndShrinkRange", .types = "Tinput: qint32; out_type: quint8", .run = shrink},
    {.op = "RequantizationRange", .types = "Tinput: qint32", .run = find_range},
    {.op = "Requantize", .types = "Tinput: qint32; out_type: quint8", .run = requantize},
};
MR_KERNEL_FAMILY(quantized);
