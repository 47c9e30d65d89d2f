/* Sums, products and convolutions of quantized tensors. The integers wrap, as TensorFlow's do. */
#include "kernels/conv.h"
#include "kernels/quantized.h"

#include <string.h>

/* What both inputs have in common. */
typedef struct operand {
    mr_quantized type;
    mr_quantized_range range;
    int32_t zero; /* the number for 0, which may lie outside of the type */
} operand;

static mr_status read_operands(const mr_kernel_call *call, operand *a, operand *b, mr_error *error)
{
    operand *const operands[] = {a, b};
    for (int i = 0; i < 2; i++) {
        operand *o = operands[i];
        o->type = mr_quantized_of(call->inputs[i].dtype);
        MR_TRY(mr_quantized_read_range(call, 2 + 2 * i, &o->range, error));
        o->zero = (int32_t)(uint32_t)mr_quantize_unclamped(o->type, 0, o->range);
    }
    return MR_OK;
}

static mr_status check_order(const mr_kernel_call *call, const operand *a, const operand *b, mr_error *error)
{
    if (a->range.high > a->range.low && b->range.high > b->range.low) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "the maximum of each input must be larger than its minimum");
}

/* The range of products: a step of the result is a step of a times one of b. */
static mr_status put_product_range(mr_kernel_call *call, const operand *a, const operand *b, mr_error *error)
{
    mr_quantized type = mr_quantized_of(call->node->output_dtypes[0]);
    float step_a = (a->range.high - a->range.low) / (float)(a->type.highest - a->type.lowest);
    float step_b = (b->range.high - b->range.low) / (float)(b->type.highest - b->type.lowest);
    float step = step_a * step_b;
    return mr_quantized_put_range(call, 1, (mr_quantized_range){step * (float)type.lowest, step * (float)type.highest},
                                  error);
}

/* ---- Sums and products of elements ---- */

/* The larger input, and the smaller one, which is repeated. */
typedef struct pair {
    const uint8_t *full, *part;
    int64_t count, part_count;
    bool part_is_first;
} pair;

static bool broadcast(mr_shape a, mr_shape b, mr_shape *shape)
{
    *shape = (mr_shape){.rank = MR_MAX(a.rank, b.rank)};
    for (int32_t i = 1; i <= shape->rank; i++) {
        int64_t x = i <= a.rank ? a.dims[a.rank - i] : 1, y = i <= b.rank ? b.dims[b.rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        shape->dims[shape->rank - i] = x == 1 ? y : x;
    }
    return true;
}

/* The smaller shape must be the end of the larger one. */
static mr_status match(mr_kernel_call *call, pair *p, mr_error *error)
{
    mr_shape shape, x = call->inputs[0].shape, y = call->inputs[1].shape;
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_shape_text(x, first, sizeof first);
    mr_shape_text(y, second, sizeof second);
    if (!broadcast(x, y, &shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", first, second);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t x_count = mr_tensor_count(&call->inputs[0]), y_count = mr_tensor_count(&call->inputs[1]);
    bool swapped = x_count == 1 || (y_count != 1 && x_count < y_count);
    *p = (pair){.full = call->inputs[swapped ? 1 : 0].data,
                .part = call->inputs[swapped ? 0 : 1].data,
                .count = mr_shape_count(shape),
                .part_count = swapped ? x_count : y_count,
                .part_is_first = swapped};
    mr_shape part = swapped ? x : y;
    int32_t leading = 0;
    while (leading < part.rank && part.dims[leading] == 1) leading++;
    bool is_end = (swapped ? y_count : x_count) == p->count;
    for (int32_t i = leading; i < part.rank; i++) is_end &= part.dims[i] == shape.dims[shape.rank - part.rank + i];
    if (is_end || p->part_count == 1 || p->count == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "Broadcast between %s and %s is not supported yet.",
                          first, second);
}

/* The numbers of a type of 8 bits in another range: a line through those of 0 and 1. */
typedef struct line {
    int64_t start;
    int32_t slope;
} line;

static line line_of(const operand *o, mr_quantized type, mr_quantized_range range)
{
    int64_t start = mr_quantize_unclamped(type, mr_dequantize(o->type, 0, o->range), range);
    int64_t next = mr_quantize_unclamped(type, mr_dequantize(o->type, 1, o->range), range);
    return (line){start, (int32_t)(uint32_t)((uint64_t)next - (uint64_t)start)};
}

static uint32_t on_line(line l, mr_quantized type, uint8_t number)
{
    int64_t value = (int64_t)((uint64_t)l.start + (uint64_t)((int64_t)number * l.slope));
    return (uint32_t)(int32_t)MR_MIN(MR_MAX(value, type.lowest), type.highest);
}

static mr_status add(mr_kernel_call *call, mr_error *error)
{
    operand x, y;
    pair p;
    MR_TRY(read_operands(call, &x, &y, error));
    MR_TRY(match(call, &p, error));
    MR_TRY(check_order(call, &x, &y, error));
    mr_quantized type = mr_quantized_of(MR_QINT32);
    float lowest = fminf(x.range.low, y.range.low), highest = fmaxf(x.range.high, y.range.high);
    float limit = fmaxf(fabsf(lowest), fabsf(highest)) * (1 << 14);
    mr_quantized_range range = {-limit, limit};
    const operand *full = p.part_is_first ? &y : &x, *part = p.part_is_first ? &x : &y;
    line full_line = line_of(full, type, range), part_line = line_of(part, type, range);
    uint32_t scalar =
        p.part_count == 1 ? (uint32_t)mr_quantize(type, mr_dequantize(part->type, p.part[0], part->range), range) : 0;
    uint32_t *sums = call->outputs[0].data;
    for (int64_t i = 0; i < p.count; i++)
        sums[i] = on_line(full_line, type, p.full[i]) +
                  (p.part_count == 1 ? scalar : on_line(part_line, type, p.part[i % p.part_count]));
    return mr_quantized_put_range(call, 1, range, error);
}

static mr_status multiply(mr_kernel_call *call, mr_error *error)
{
    operand x, y;
    pair p;
    MR_TRY(read_operands(call, &x, &y, error));
    MR_TRY(match(call, &p, error));
    MR_TRY(check_order(call, &x, &y, error));
    uint32_t full_zero = (uint32_t)(p.part_is_first ? y : x).zero, part_zero = (uint32_t)(p.part_is_first ? x : y).zero;
    uint32_t *products = call->outputs[0].data;
    for (int64_t i = 0; i < p.count; i++)
        products[i] = (p.full[i] - full_zero) * (p.part[i % p.part_count] - part_zero);
    return put_product_range(call, &x, &y, error);
}

static int32_t number_at(const mr_tensor *tensor, int64_t index)
{
    return tensor->dtype == MR_QINT8 ? ((const int8_t *)tensor->data)[index] : ((const uint8_t *)tensor->data)[index];
}

static mr_status add_bias(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *bias = &call->inputs[1];
    operand a, b;
    MR_TRY(read_operands(call, &a, &b, error));
    if (input->shape.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input tensor must be at least 2D");
    int64_t channels = input->shape.dims[input->shape.rank - 1];
    if (bias->shape.rank != 1 || bias->shape.dims[0] != channels)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Must provide as many biases as the last dimension of the input tensor");
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    mr_quantized type = mr_quantized_of(MR_QINT32);
    float limit = fmaxf(fmaxf(a.range.high, -a.range.low), fmaxf(b.range.high, -b.range.low)) * (1 << 17);
    mr_quantized_range range = {-limit, limit};
    uint32_t zero = (uint32_t)mr_quantize(type, 0, range);
    mr_quantizer quantizer = mr_quantizer_of(type, range);
    mr_dequantizer from_input = mr_dequantizer_of(a.type, a.range), from_bias = mr_dequantizer_of(b.type, b.range);
    uint32_t *sums = call->outputs[0].data;
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        uint32_t value = (uint32_t)mr_quantizer_apply(quantizer, mr_dequantizer_apply(from_input, number_at(input, i)));
        uint32_t added =
            (uint32_t)mr_quantizer_apply(quantizer, mr_dequantizer_apply(from_bias, number_at(bias, i % channels)));
        sums[i] = value + added + zero;
    }
    return mr_quantized_put_range(call, 1, range, error);
}

/* ---- Matrix products ---- */

/* The element [row, inner] of a is a[row * a_row + inner * a_inner]; b likewise. */
typedef struct product {
    const uint8_t *a, *b;
    uint32_t a_zero, b_zero, *out;
    int64_t columns, inner, a_row, a_inner, b_inner, b_column;
} product;

static void product_rows(void *context, int64_t begin, int64_t end)
{
    const product *p = context;
    for (int64_t row = begin; row < end; row++) {
        uint32_t *out = p->out + row * p->columns;
        memset(out, 0, (size_t)p->columns * sizeof *out);
        for (int64_t k = 0; k < p->inner; k++) {
            uint32_t a = p->a[row * p->a_row + k * p->a_inner] - p->a_zero;
            const uint8_t *b = p->b + k * p->b_inner;
            for (int64_t column = 0; column < p->columns; column++)
                out[column] += a * (b[column * p->b_column] - p->b_zero);
        }
    }
}

static mr_status mat_mul(mr_kernel_call *call, mr_error *error)
{
    mr_shape a = call->inputs[0].shape, b = call->inputs[1].shape;
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    operand x, y;
    int transpose_a = mr_attr_bool_or(call->node->attrs, "transpose_a", false);
    int transpose_b = mr_attr_bool_or(call->node->attrs, "transpose_b", false);
    MR_TRY(read_operands(call, &x, &y, error));
    MR_TRY(check_order(call, &x, &y, error));
    for (int i = 0; i < 2; i++)
        if (call->inputs[i].shape.rank != 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[%d] is not a matrix", i);
    if (a.dims[1 - transpose_a] != b.dims[transpose_b])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                              mr_shape_text(a, first, sizeof first), mr_shape_text(b, second, sizeof second));
    int64_t rows = a.dims[transpose_a], columns = b.dims[1 - transpose_b];
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows, columns), error));
    product p = {.a = call->inputs[0].data,
                 .b = call->inputs[1].data,
                 .a_zero = (uint32_t)x.zero,
                 .b_zero = (uint32_t)y.zero,
                 .out = call->outputs[0].data,
                 .columns = columns,
                 .inner = a.dims[1 - transpose_a],
                 .a_row = transpose_a ? 1 : a.dims[1],
                 .a_inner = transpose_a ? a.dims[1] : 1,
                 .b_inner = transpose_b ? 1 : b.dims[1],
                 .b_column = transpose_b ? b.dims[1] : 1};
    if (rows > 0 && columns > 0)
        mr_pool_for(call->device->pool, rows, MR_MAX(1, MR_GRAIN / MR_MAX(1, columns)), product_rows, &p);
    return put_product_range(call, &x, &y, error);
}

/* ---- Convolution ---- */

typedef struct convolution {
    mr_conv v;
    const uint8_t *input, *filter;
    uint32_t input_zero, filter_zero;
    uint32_t padding; /* what a position outside of the image adds for each filter element */
    int64_t left, top;
    uint32_t *out;
} convolution;

static void add_position(const convolution *c, const uint8_t *pixel, const uint8_t *filter, uint32_t *out)
{
    int64_t channels = c->v.out_channels;
    for (int64_t i = 0; i < c->v.in_channels; i++, filter += channels) {
        uint32_t value = pixel != nullptr ? pixel[i] - c->input_zero : c->padding;
        for (int64_t o = 0; o < channels; o++) out[o] += value * (filter[o] - c->filter_zero);
    }
}

static void convolve_rows(void *context, int64_t begin, int64_t end)
{
    const convolution *c = context;
    const mr_conv *v = &c->v;
    for (int64_t row = begin; row < end; row++)
        for (int64_t out_x = 0; out_x < v->out_width; out_x++) {
            uint32_t *out = c->out + (row * v->out_width + out_x) * v->out_channels;
            const uint8_t *image = c->input + row / v->out_height * v->in_height * v->in_width * v->in_channels;
            memset(out, 0, (size_t)v->out_channels * sizeof *out);
            for (int64_t fy = 0; fy < v->filter_height; fy++)
                for (int64_t fx = 0; fx < v->filter_width; fx++) {
                    int64_t y = row % v->out_height * v->stride_y - c->top + fy, x = out_x * v->stride_x - c->left + fx;
                    bool is_inside = y >= 0 && y < v->in_height && x >= 0 && x < v->in_width;
                    add_position(c, is_inside ? image + (y * v->in_width + x) * v->in_channels : nullptr,
                                 c->filter + (fy * v->filter_width + fx) * v->in_channels * v->out_channels, out);
                }
        }
}

static mr_status prepare_conv(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_window_attrs *attrs = prepared;
    MR_TRY(mr_window_attrs_read(node, attrs, error));
    if (attrs->stride_y != attrs->stride_x)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Current implementation only supports equal length strides in the row and column "
                              "dimensions.");
    if (attrs->dilation_y != 1 || attrs->dilation_x != 1)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "dilations other than 1 are not supported");
    return MR_OK;
}

static mr_status conv2d(mr_kernel_call *call, mr_error *error)
{
    operand x, y;
    convolution c = {.input = call->inputs[0].data, .filter = call->inputs[1].data};
    mr_conv *v = &c.v;
    MR_TRY(read_operands(call, &x, &y, error));
    MR_TRY(mr_conv_geometry(call->node, call->prepared, call->inputs[0].shape, call->inputs[1].shape, v, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(v->batch, v->out_height, v->out_width, v->out_channels), error));
    c.out = call->outputs[0].data;
    c.input_zero = (uint32_t)x.zero;
    c.filter_zero = (uint32_t)y.zero;
    /* The border has the number for 0, cut to 8 bits, unless that is negative. */
    c.padding = x.zero < 0 ? 0 : (uint8_t)x.zero - c.input_zero;
    /* The window is centered, even if it does not reach all of the image. */
    int64_t more = ((const mr_window_attrs *)call->prepared)->padding == MR_PADDING_VALID ? 1 : 0;
    c.left = ((v->out_width - 1) * v->stride_x + v->filter_width - v->in_width + more) / 2;
    c.top = ((v->out_height - 1) * v->stride_y + v->filter_height - v->in_height + more) / 2;
    if (mr_tensor_count(&call->outputs[0]) > 0)
        mr_pool_for(call->device->pool, v->batch * v->out_height, 1, convolve_rows, &c);
    return put_product_range(call, &x, &y, error);
}

#define BYTES "T1: quint8; T2: quint8; Toutput: qint32"
static const mr_kernel kernels[] = {
    {.op = "QuantizedAdd", .types = BYTES, .run = add},
    {.op = "QuantizedMul", .types = BYTES, .run = multiply},
    {.op = "QuantizedMatMul", .types = BYTES, .run = mat_mul},
    {.op = "QuantizedBiasAdd", .types = "T1: quint8; T2: quint8; out_type: qint32", .run = add_bias},
    {.op = "QuantizedBiasAdd", .types = "T1: qint8; T2: qint8; out_type: qint32", .run = add_bias},
    {.op = "QuantizedConv2D",
     .types = "Tinput: quint8; Tfilter: quint8; out_type: qint32",
     .run = conv2d,
     .prepared_size_bytes = sizeof(mr_window_attrs),
     .prepare = prepare_conv},
};
MR_KERNEL_FAMILY(quantized_math);
