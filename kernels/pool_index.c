/* MaxPoolWithArgmax and its gradient: maxima with their positions. A position counts the elements of an image, or of
 * the batch with include_batch_in_index. */
#include "kernels/conv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct index_attrs {
    mr_window_attrs window;
    bool counts_batch;
} index_attrs;

typedef struct index_pool {
    int64_t batch, in_height, in_width, channels, out_height, out_width;
    int64_t window_y, window_x, stride_y, stride_x, pad_top, pad_left;
    const void *input;
    void *output;
    int64_t *positions;
    bool counts_batch;
} index_pool;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    index_attrs *attrs = prepared;
    attrs->counts_batch = mr_attr_bool_or(node->attrs, "include_batch_in_index", false);
    return mr_window_attrs_read(node, &attrs->window, error);
}

static mr_status geometry(const mr_kernel_call *call, mr_shape input, index_pool *p, mr_error *error)
{
    const index_attrs *attrs = call->prepared;
    int64_t after;
    if (input.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 4-dimensional (2)");
    *p = (index_pool){.batch = input.dims[0],
                      .in_height = input.dims[1],
                      .in_width = input.dims[2],
                      .channels = input.dims[3],
                      .window_y = attrs->window.window_y,
                      .window_x = attrs->window.window_x,
                      .stride_y = attrs->window.stride_y,
                      .stride_x = attrs->window.stride_x,
                      .counts_batch = attrs->counts_batch};
    MR_TRY(mr_window_geometry(call->node, &attrs->window, 0, p->in_height, p->window_y, &p->out_height, &p->pad_top,
                              &after, error));
    return mr_window_geometry(call->node, &attrs->window, 1, p->in_width, p->window_x, &p->out_width, &p->pad_left,
                              &after, error);
}

#define MAXIMA(dtype, type, suffix)                                                                                    \
    static void maxima_##suffix(void *context, int64_t begin, int64_t end)                                             \
    {                                                                                                                  \
        const index_pool *p = context;                                                                                 \
        const type *input = p->input;                                                                                  \
        int64_t count = p->out_height * p->out_width * p->channels;                                                    \
        for (int64_t out = begin * count; out < end * count; out++) {                                                  \
            int64_t c = out % p->channels, ox = out / p->channels % p->out_width;                                      \
            int64_t oy = out / p->channels / p->out_width % p->out_height, n = out / count;                            \
            int64_t y0 = oy * p->stride_y - p->pad_top, x0 = ox * p->stride_x - p->pad_left;                           \
            int64_t y1 = MR_MIN(y0 + p->window_y, p->in_height), x1 = MR_MIN(x0 + p->window_x, p->in_width);           \
            int64_t image = n * p->in_height * p->in_width * p->channels, chosen = -1;                                 \
            type most = 0;                                                                                             \
            for (int64_t y = MR_MAX(0, y0); y < y1; y++)                                                               \
                for (int64_t x = MR_MAX(0, x0); x < x1; x++) {                                                         \
                    int64_t at = (y * p->in_width + x) * p->channels + c;                                              \
                    if (chosen >= 0 && !(input[image + at] > most)) continue;                                          \
                    most = input[image + at];                                                                          \
                    chosen = at;                                                                                       \
                }                                                                                                      \
            ((type *)p->output)[out] = most;                                                                           \
            p->positions[out] = chosen < 0 ? -1 : p->counts_batch ? image + chosen : chosen;                           \
        }                                                                                                              \
    }
MR_EACH_NUMBER(MAXIMA)
#define MAXIMA_ROW(dtype, type, suffix) [dtype] = maxima_##suffix,
static const mr_pool_body maxima_loops[MR_DTYPE_COUNT] = {MR_EACH_NUMBER(MAXIMA_ROW)};

static mr_status max_pool_with_argmax(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool_with_argmax);
    const mr_tensor *input = &call->inputs[0];
    index_pool p;
    if (input->shape.rank == 4 && mr_tensor_count(input) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must not be empty (2)");
    MR_TRY(geometry(call, input->shape, &p, error));
    mr_shape shape = MR_SHAPE(p.batch, p.out_height, p.out_width, p.channels);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    MR_TRY(mr_kernel_output(call, 1, shape, error));
    int64_t count = mr_tensor_count(&call->outputs[0]);
    if (count == 0) return MR_OK;
    bool narrow = call->outputs[1].dtype == MR_INT32;
    p.input = input->data;
    p.output = call->outputs[0].data;
    p.positions = narrow ? malloc((size_t)count * sizeof(int64_t)) : call->outputs[1].data;
    if (p.positions == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_pool_for(call->device->pool, p.batch, 1, maxima_loops[input->dtype], &p);
    if (!narrow) return MR_OK;
    for (int64_t i = 0; i < count; i++) ((int32_t *)call->outputs[1].data)[i] = (int32_t)p.positions[i];
    free(p.positions);
    return MR_OK;
}

#define ADD(dtype, type, suffix)                                                                                       \
    static void add_##suffix(void *target, int64_t at, const void *source, int64_t from)                               \
    {                                                                                                                  \
        ((type *)target)[at] = (type)(((type *)target)[at] + ((const type *)source)[from]);                            \
    }
MR_EACH_WRAPPING_NUMBER(ADD)
#define ADD_ROW(dtype, type, suffix) [dtype] = add_##suffix,
static void (*const adders[MR_DTYPE_COUNT])(void *, int64_t, const void *,
                                            int64_t) = {MR_EACH_WRAPPING_NUMBER(ADD_ROW)};

static mr_status max_pool_grad_with_argmax(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool_grad_with_argmax);
    const mr_tensor *input = &call->inputs[0], *gradient = &call->inputs[1], *argmax = &call->inputs[2];
    index_pool p;
    MR_TRY(geometry(call, input->shape, &p, error));
    mr_shape shape = MR_SHAPE(p.batch, p.out_height, p.out_width, p.channels);
    if (!mr_shape_equal(gradient->shape, shape)) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected grad shape to be %s, but got grad shape %s", mr_shape_text(shape, a, sizeof a),
                              mr_shape_text(gradient->shape, b, sizeof b));
    }
    if (!mr_shape_equal(argmax->shape, shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected argmax shape to be %s, but got %s",
                              mr_shape_text(shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE),
                              mr_shape_text(argmax->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    mr_tensor *output = &call->outputs[0];
    int64_t count = mr_tensor_count(gradient), total = mr_tensor_count(input);
    memset(output->data, 0, mr_tensor_size_bytes(output));
    if (count == 0) return MR_OK;
    int64_t per_image = count / p.batch, image = total / p.batch;
    for (int64_t i = 0; i < count; i++) {
        int64_t at =
            argmax->dtype == MR_INT64 ? ((const int64_t *)argmax->data)[i] : ((const int32_t *)argmax->data)[i];
        int64_t low = p.counts_batch ? i / per_image * image : 0;
        if (at < low || at >= low + image)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Invalid input backprop index: %" PRId64 ", %" PRId64 ", %" PRId64, at, low,
                                  low + image);
        adders[output->dtype](output->data, p.counts_batch ? at : at + i / per_image * image, gradient->data, i);
    }
    return MR_OK;
}

#define ROW(name, function)                                                                                            \
    {.op = name, .run = function, .prepared_size_bytes = sizeof(index_attrs), .prepare = prepare}
static const mr_kernel kernels[] = {
    ROW("MaxPoolWithArgmax", max_pool_with_argmax),
    ROW("MaxPoolGradWithArgmax", max_pool_grad_with_argmax),
};
MR_KERNEL_FAMILY(pool_index);
