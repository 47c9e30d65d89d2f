/* Max pooling of floats in NHWC that keeps the positions of its maxima in a byte each, for a gradient that does not
 * read the input again: _MaxPoolPositions and _MaxPoolPositionsGrad; and _MaxPoolPositionsReluGrad, which includes
 * ReluGrad, for windows of Relu's output that do not overlap. They choose the position that MaxPoolGrad chooses
 * (pool.c). The planner, which sees to the types and sizes, puts them in the place of TensorFlow's nodes
 * (graph/plan/fuse_pool.c). */
#include "kernels/conv.h"
#include "kernels/vector.h"
#include <assert.h>
#include <float.h>

typedef uint8_t bytes __attribute__((vector_size(16)));
typedef uint8_t bytes_at __attribute__((vector_size(16), aligned(1), may_alias));

constexpr uint32_t NOT_POSITIVE = 0x80; /* of a position: the maximum; the rest is its place in the window */

typedef struct pool_attrs {
    mr_window_attrs window; /* first */
    int64_t size[2];        /* height and width of the input; of a gradient only */
} pool_attrs;

typedef struct pooling {
    int64_t batch, in_height, in_width, channels, out_height, out_width;
    int64_t window_y, window_x, stride_y, stride_x, top, left;
    bool is_apart;  /* windows do not overlap, and each overlaps the input */
    bool has_relu;  /* the gradient is multiplied by 0 where the maximum is not positive */
    bool is_filled; /* each position of the input is in a window */
    const float *input, *gradient;
    const bytes_at *chosen;
    float *target;
    bytes_at *positions;
} pooling;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    pool_attrs *attrs = prepared;
    *attrs = (pool_attrs){0};
    int32_t count = 0;
    if (mr_attrs_find(node->attrs, "input_size"))
        MR_TRY(mr_attr_get_ints(node->attrs, "input_size", attrs->size, 2, &count, error));
    return mr_window_attrs_read(node, &attrs->window, error);
}

static mr_status geometry(const mr_kernel_call *call, mr_shape input, pooling *p, mr_error *error)
{
    const mr_window_attrs *attrs = &((const pool_attrs *)call->prepared)->window;
    int64_t bottom, right;
    if (input.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
    assert(!attrs->nchw && input.dims[3] % MR_LANES == 0 && attrs->window_y * attrs->window_x <= NOT_POSITIVE);
    *p = (pooling){.batch = input.dims[0],
                   .in_height = input.dims[1],
                   .in_width = input.dims[2],
                   .channels = input.dims[3],
                   .window_y = attrs->window_y,
                   .window_x = attrs->window_x,
                   .stride_y = attrs->stride_y,
                   .stride_x = attrs->stride_x};
    MR_TRY(
        mr_window_geometry(call->node, attrs, 0, p->in_height, p->window_y, &p->out_height, &p->top, &bottom, error));
    MR_TRY(mr_window_geometry(call->node, attrs, 1, p->in_width, p->window_x, &p->out_width, &p->left, &right, error));
    p->is_apart = p->window_y <= p->stride_y && p->window_x <= p->stride_x && p->out_height > 0 && p->out_width > 0 &&
                  MR_MAX(p->top, bottom) < p->window_y && MR_MAX(p->left, right) < p->window_x;
    p->is_filled = p->is_apart && p->window_y == p->stride_y && p->window_x == p->stride_x &&
                   p->out_height * p->stride_y - p->top >= p->in_height &&
                   p->out_width * p->stride_x - p->left >= p->in_width;
    return MR_OK;
}

/* The part of a window that is in the input, and the place in the window of its first position. */
typedef struct window {
    int64_t y0, y1, x0, x1;
    uint32_t first;
} window;

static window window_at(const pooling *p, int64_t oy, int64_t ox)
{
    const int64_t y = oy * p->stride_y - p->top, x = ox * p->stride_x - p->left;
    window w = {MR_MAX(0, y), MR_MIN(y + p->window_y, p->in_height), MR_MAX(0, x), MR_MIN(x + p->window_x, p->in_width),
                0};
    if (w.y0 >= w.y1 || w.x0 >= w.x1) return (window){0};
    w.first = (uint32_t)((w.y0 - y) * p->window_x + w.x0 - x);
    assert(w.first < NOT_POSITIVE);
    return w;
}

/* 16 channels of a window. */
MR_INLINE void choose_maximum(const pooling *p, window w, const float *image, float *target, bytes_at *position)
{
    const mr_vector least = mr_vector_of(-FLT_MAX); /* the maximum of infinities below 0 and NaN, too */
    mr_vector most = least, best = least;           /* the gradient's maximum: NaN if that is the first one */
    mr_vector_bits chosen = w.first - (mr_vector_bits){};
    if (w.y0 < w.y1) best = mr_vector_load(image + (w.y0 * p->in_width + w.x0) * p->channels);
    for (int64_t y = w.y0; y < w.y1; y++)
        for (int64_t x = w.x0; x < w.x1; x++) {
            const mr_vector value = mr_vector_load(image + (y * p->in_width + x) * p->channels);
            const mr_vector_bits here = w.first + (uint32_t)((y - w.y0) * p->window_x + x - w.x0) - (mr_vector_bits){};
            const mr_vector_mask larger = value > best;
            most = mr_vector_choose(value > most, value, most);
            best = mr_vector_choose(larger, value, best);
            chosen = (here & (mr_vector_bits)larger) | (chosen & ~(mr_vector_bits)larger);
        }
    mr_vector_store(target, most);
    *position = __builtin_convertvector(chosen | (~(mr_vector_bits)(best > 0) & NOT_POSITIVE), bytes);
}

/* A unit of work is a row of outputs. */
MR_INLINE void maxima_body(const pooling *p, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        const float *image = p->input + row / p->out_height * p->in_height * p->in_width * p->channels;
        const int64_t at = row * p->out_width * p->channels;
        float *target = p->target + at;
        bytes_at *position = p->positions + at / MR_LANES;
        for (int64_t ox = 0; ox < p->out_width; ox++) {
            const window w = window_at(p, row % p->out_height, ox);
            for (int64_t c = 0; c < p->channels; c += MR_LANES, target += MR_LANES)
                choose_maximum(p, w, image + c, target, position++);
        }
    }
}
MR_LEVELS(maxima, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

/* 16 channels of a window: the gradient at the positions that were chosen. */
MR_INLINE void store_gradient(const pooling *p, window w, mr_vector gradient, bytes position, float *image, bool adds)
{
    const mr_vector_bits chosen = __builtin_convertvector(position, mr_vector_bits);
    const mr_vector_bits place = chosen & (NOT_POSITIVE - 1);
    if (p->has_relu) gradient *= mr_vector_choose(chosen < NOT_POSITIVE, mr_vector_of(1), (mr_vector){});
    const mr_vector_bits left = (mr_vector_bits)gradient;
    for (int64_t y = w.y0; y < w.y1; y++)
        for (int64_t x = w.x0; x < w.x1; x++) {
            float *to = image + (y * p->in_width + x) * p->channels;
            const uint32_t here = w.first + (uint32_t)((y - w.y0) * p->window_x + x - w.x0);
            const mr_vector part = (mr_vector)(left & (mr_vector_bits)(place == here));
            mr_vector_store(to, adds ? mr_vector_load(to) + part : part);
        }
}

/* A unit of work is a row of outputs if they fill rows of the input; otherwise an image, to which its windows add in
 * their order. */
MR_INLINE void gradients_body(const pooling *p, int64_t begin, int64_t end)
{
    const int64_t size = p->in_height * p->in_width * p->channels, rows = p->is_filled ? 1 : p->out_height;
    for (int64_t row = begin * rows; row < end * rows; row++) {
        const int64_t at = row * p->out_width * p->channels;
        const float *gradient = p->gradient + at;
        const bytes_at *position = p->chosen + at / MR_LANES;
        float *image = p->target + row / p->out_height * size;
        if (!p->is_filled && row % p->out_height == 0) memset(image, 0, (size_t)size * sizeof *image);
        for (int64_t ox = 0; ox < p->out_width; ox++) {
            const window w = window_at(p, row % p->out_height, ox);
            for (int64_t c = 0; c < p->channels; c += MR_LANES, gradient += MR_LANES)
                store_gradient(p, w, mr_vector_load(gradient), *position++, image + c, !p->is_apart);
        }
    }
}
MR_LEVELS(gradients, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

static void run_maxima(void *context, int64_t begin, int64_t end)
{
    maxima[mr_cpu()](context, begin, end);
}

static void run_gradients(void *context, int64_t begin, int64_t end)
{
    gradients[mr_cpu()](context, begin, end);
}

static mr_status max_pool(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    pooling p;
    MR_TRY(geometry(call, input->shape, &p, error));
    const mr_shape shape = MR_SHAPE(p.batch, p.out_height, p.out_width, p.channels);
    for (int i = 0; i < 2; i++) MR_TRY(mr_kernel_output(call, i, shape, error));
    p.input = input->data;
    p.target = call->outputs[0].data;
    p.positions = call->outputs[1].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    const int64_t row = p.out_width * p.channels * MR_MIN(p.window_y, p.in_height) * MR_MIN(p.window_x, p.in_width);
    mr_pool_for(call->device->pool, p.batch * p.out_height, MR_MAX(1, 2 * MR_GRAIN / MR_MAX(1, row)), run_maxima, &p);
    return MR_OK;
}

static mr_status run_gradient(mr_kernel_call *call, bool has_relu, mr_error *error)
{
    const mr_tensor *positions = &call->inputs[0], *gradient = &call->inputs[1];
    const int64_t *size = ((const pool_attrs *)call->prepared)->size;
    const mr_shape shape = MR_SHAPE(positions->shape.dims[0], size[0], size[1], positions->shape.dims[3]);
    pooling p;
    assert(positions->dtype == MR_UINT8 && gradient->dtype == MR_FLOAT && positions->shape.rank == 4);
    MR_TRY(geometry(call, shape, &p, error));
    assert(positions->shape.dims[1] == p.out_height && positions->shape.dims[2] == p.out_width);
    if (!mr_shape_equal(gradient->shape, positions->shape)) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected grad shape to be %s, but got %s",
                              mr_shape_text(positions->shape, a, sizeof a),
                              mr_shape_text(gradient->shape, b, sizeof b));
    }
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    p.chosen = positions->data;
    p.gradient = gradient->data;
    p.target = call->outputs[0].data;
    p.has_relu = has_relu;
    assert(!has_relu || p.is_apart || mr_tensor_count(gradient) == 0);
    if (mr_tensor_count(gradient) == 0) {
        memset(p.target, 0, mr_tensor_size_bytes(&call->outputs[0]));
        return MR_OK;
    }
    const int64_t row = p.in_width * p.channels * p.window_y;
    if (p.is_filled)
        mr_pool_for(call->device->pool, p.batch * p.out_height, MR_MAX(1, MR_GRAIN / row), run_gradients, &p);
    else
        mr_pool_for(call->device->pool, p.batch, 1, run_gradients, &p);
    return MR_OK;
}

static mr_status max_pool_grad(mr_kernel_call *call, mr_error *error)
{
    return run_gradient(call, false, error);
}

static mr_status max_pool_relu_grad(mr_kernel_call *call, mr_error *error)
{
    return run_gradient(call, true, error);
}

#define ROW(name, function)                                                                                            \
    {.op = name, .types = "T: float", .run = function, .prepared_size_bytes = sizeof(pool_attrs), .prepare = prepare}
static const mr_kernel kernels[] = {
    ROW("_MaxPoolPositions", max_pool),
    ROW("_MaxPoolPositionsGrad", max_pool_grad),
    ROW("_MaxPoolPositionsReluGrad", max_pool_relu_grad),
};
MR_KERNEL_FAMILY(pool_positions);
