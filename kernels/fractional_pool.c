/* FractionalMaxPool, FractionalAvgPool and their gradients. Height and width are divided into regions of two sizes; the
 * sequences of their starts are drawn with TensorFlow's random numbers, and are outputs that the gradients read. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

typedef struct fractional_attrs {
    float ratio[4];
    uint64_t seed, seed2;
    bool pseudo_random, overlapping, deterministic;
} fractional_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    fractional_attrs *attrs = prepared;
    const mr_attr *ratio = mr_attrs_find(node->attrs, "pooling_ratio");
    *attrs = (fractional_attrs){.seed = (uint64_t)mr_attr_int_or(node->attrs, "seed", 0),
                                .seed2 = (uint64_t)mr_attr_int_or(node->attrs, "seed2", 0),
                                .pseudo_random = mr_attr_bool_or(node->attrs, "pseudo_random", false),
                                .overlapping = mr_attr_bool_or(node->attrs, "overlapping", false),
                                .deterministic = mr_attr_bool_or(node->attrs, "deterministic", false)};
    if (ratio == nullptr) return MR_OK; /* a gradient */
    if (!attrs->deterministic && (attrs->seed != 0 || attrs->seed2 != 0))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Both seed and seed2 should be 0 if deterministic is false.");
    if (ratio->kind != MR_ATTR_FLOAT || ratio->count != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
    for (int i = 0; i < 4; i++) {
        attrs->ratio[i] = ratio->values[i].number;
        if (!(attrs->ratio[i] >= 1))
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "pooling_ratio cannot be smaller than 1, got: %g",
                                  (double)attrs->ratio[i]);
    }
    /* Seeds of 0 are random. The operator is not stateful in TensorFlow: its numbers are not saved with a session. */
    uint64_t seeds[2];
    if (attrs->seed == 0 && attrs->seed2 == 0 && getrandom(seeds, sizeof seeds, 0) == (ssize_t)sizeof seeds) {
        attrs->seed = seeds[0];
        attrs->seed2 = seeds[1];
    }
    if (attrs->ratio[0] != 1 || attrs->ratio[3] != 1)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED,
                              "Fractional %s pooling is not yet supported on the batch nor channel dimension.",
                              strstr(node->op, "Max") ? "max" : "average");
    return MR_OK;
}

/* ---- The regions ---- */

/* 32-bit numbers of a generator, in order. */
typedef struct words {
    mr_philox philox;
    uint32_t have[4];
    int used;
} words;

static uint32_t next_word(words *w)
{
    if (w->used == 4) {
        mr_philox_next(&w->philox, w->have);
        w->used = 0;
    }
    return w->have[w->used++];
}

/* The number of 128-bit samples that a sequence of `regions` reserves. */
static uint64_t samples_of(const fractional_attrs *attrs, int64_t regions)
{
    return attrs->pseudo_random ? 1 : ((uint64_t)regions + 3) / 4;
}

/* Sizes by the formula of Graham's "Fractional Max-Pooling": the differences of ceil(alpha · (u + i)). */
static void pseudo_random_sizes(int64_t length, int64_t regions, mr_philox philox, int64_t *sizes)
{
    words w = {.philox = philox, .used = 4};
    double alpha = (double)length / (double)regions;
    int64_t k = length / regions;
    double most = fmin((double)(k + 2) / alpha - 1, (double)(length + 1 - k) / alpha - (double)(regions - 1));
    uint32_t first = next_word(&w), second = next_word(&w);
    double u = mr_random_double(first, second) * most;
    int64_t previous = 1;
    for (int64_t i = 1; i <= regions; i++) {
        int64_t edge = i == regions ? length + 1 : (int64_t)ceil(alpha * ((double)i + u));
        sizes[i - 1] = edge - previous;
        previous = edge;
    }
}

static void shuffled_sizes(int64_t length, int64_t regions, mr_philox philox, int64_t *sizes)
{
    words w = {.philox = philox, .used = 4};
    for (int64_t i = 0; i < regions; i++) sizes[i] = length / regions + (i < length % regions);
    for (int64_t i = 0; i + 1 < regions; i++) {
        int64_t other = i + (int64_t)(next_word(&w) % (uint32_t)(regions - i)), size = sizes[i];
        sizes[i] = sizes[other];
        sizes[other] = size;
    }
}

/* Writes the regions + 1 starts of the regions. */
static void draw(const fractional_attrs *attrs, int64_t length, int64_t regions, mr_philox philox, int64_t *starts)
{
    if (attrs->pseudo_random)
        pseudo_random_sizes(length, regions, philox, starts + 1);
    else
        shuffled_sizes(length, regions, philox, starts + 1);
    starts[0] = 0;
    for (int64_t i = 1; i <= regions; i++) starts[i] += starts[i - 1];
}

/* The end of region i: exclusive, at most length. */
static int64_t end_of(const int64_t *starts, int64_t i, bool overlapping, int64_t length)
{
    return MR_MIN(MR_MIN(starts[i + 1], length) + (overlapping ? 1 : 0), length);
}

/* ---- Pooling ---- */

typedef struct fractional {
    int64_t batch, in[2], out[2], channels;
    const int64_t *starts[2];
    bool overlapping;
    const void *input, *gradient;
    void *target;
} fractional;

#define EACH_REGION                                                                                                    \
    const fractional *f = context;                                                                                     \
    const int64_t image = f->in[0] * f->in[1] * f->channels, regions = f->out[0] * f->out[1] * f->channels;            \
    for (int64_t out = begin * regions; out < end * regions; out++)
#define REGION                                                                                                         \
    int64_t c = out % f->channels, rx = out / f->channels % f->out[1], ry = out / f->channels / f->out[1] % f->out[0]; \
    int64_t first = out / regions * image;                                                                             \
    int64_t y0 = f->starts[0][ry], y1 = end_of(f->starts[0], ry, f->overlapping, f->in[0]);                            \
    int64_t x0 = f->starts[1][rx], x1 = end_of(f->starts[1], rx, f->overlapping, f->in[1]);
#define EACH_INPUT                                                                                                     \
    for (int64_t y = y0; y < y1; y++)                                                                                  \
        for (int64_t x = x0; x < x1; x++)
#define AT (first + (y * f->in[1] + x) * f->channels + c)

#define LOOPS(dtype, type, sum_type, suffix, lowest)                                                                   \
    static void max_##suffix(void *context, int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        EACH_REGION                                                                                                    \
        {                                                                                                              \
            REGION type most = lowest;                                                                                 \
            EACH_INPUT if (((const type *)f->input)[AT] > most) most = ((const type *)f->input)[AT];                   \
            ((type *)f->target)[out] = most;                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void max_grad_##suffix(void *context, int64_t begin, int64_t end)                                           \
    {                                                                                                                  \
        EACH_REGION                                                                                                    \
        {                                                                                                              \
            REGION type most = 0;                                                                                      \
            int64_t chosen = -1;                                                                                       \
            EACH_INPUT                                                                                                 \
            {                                                                                                          \
                type value = ((const type *)f->input)[AT];                                                             \
                if (chosen >= 0 && !(value > most)) continue;                                                          \
                most = value;                                                                                          \
                chosen = AT;                                                                                           \
            }                                                                                                          \
            if (chosen >= 0) ((sum_type *)f->target)[chosen] += ((const sum_type *)f->gradient)[out];                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void mean_##suffix(void *context, int64_t begin, int64_t end)                                               \
    {                                                                                                                  \
        EACH_REGION                                                                                                    \
        {                                                                                                              \
            REGION sum_type sum = 0;                                                                                   \
            int64_t count = MR_MAX(0, y1 - y0) * MR_MAX(0, x1 - x0);                                                   \
            EACH_INPUT sum += ((const sum_type *)f->input)[AT];                                                        \
            ((type *)f->target)[out] = count == 0 ? 0 : (type)sum / (type)count;                                       \
        }                                                                                                              \
    }
#define EACH_FRACTIONAL(X)                                                                                             \
    X(MR_FLOAT, float, float, float, -__FLT_MAX__)                                                                     \
    X(MR_DOUBLE, double, double, double, -__DBL_MAX__)                                                                 \
    X(MR_INT32, int32_t, uint32_t, int32, INT32_MIN) X(MR_INT64, int64_t, uint64_t, int64, INT64_MIN)
EACH_FRACTIONAL(LOOPS)
#define LOOP_ROW(dtype, type, sum_type, suffix, lowest) [dtype] = {max_##suffix, mean_##suffix, max_grad_##suffix},
static const mr_pool_body loops[MR_DTYPE_COUNT][3] = {EACH_FRACTIONAL(LOOP_ROW)};

static mr_status pool(mr_kernel_call *call, int which, mr_error *error)
{
    const fractional_attrs *attrs = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = input->shape;
    if (shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
    for (int i = 0; i < 4; i++) {
        if ((double)shape.dims[i] < (double)attrs->ratio[i] || shape.dims[i] > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Pooling ratio is higher than input dimension size for dimension %d. Input dim "
                                  "size: %" PRId64 " pooling ratio: %g",
                                  i, shape.dims[i], (double)attrs->ratio[i]);
        shape.dims[i] = (int64_t)floorf((float)shape.dims[i] / attrs->ratio[i]);
        shape.dims[i] = MR_MIN(shape.dims[i], input->shape.dims[i]); /* a float can be rounded up */
    }
    fractional f = {.batch = shape.dims[0],
                    .in = {input->shape.dims[1], input->shape.dims[2]},
                    .out = {shape.dims[1], shape.dims[2]},
                    .channels = shape.dims[3],
                    .overlapping = attrs->overlapping,
                    .input = input->data};
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    /* A deterministic node draws the same regions in each run. */
    uint64_t samples[2] = {samples_of(attrs, f.out[0]), samples_of(attrs, f.out[1])};
    mr_philox philox = mr_philox_seed(attrs->seed, attrs->seed2);
    if (!attrs->deterministic) mr_philox_skip(&philox, call->invocation * (samples[0] + samples[1]));
    for (int i = 0; i < 2; i++) {
        MR_TRY(mr_kernel_output(call, 1 + i, MR_SHAPE(f.out[i] + 1), error));
        f.starts[i] = call->outputs[1 + i].data;
        draw(attrs, f.in[i], f.out[i], philox, call->outputs[1 + i].data);
        mr_philox_skip(&philox, samples[i]);
    }
    f.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) > 0)
        mr_pool_for(call->device->pool, f.batch, 1, loops[input->dtype][which], &f);
    return MR_OK;
}

static mr_status max_pool(mr_kernel_call *call, mr_error *error)
{
    return pool(call, 0, error);
}

static mr_status mean_pool(mr_kernel_call *call, mr_error *error)
{
    return pool(call, 1, error);
}

/* ---- Gradients ---- */

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

static void read_gradient(const mr_kernel_call *call, mr_shape input, const mr_tensor *gradient, fractional *f)
{
    const fractional_attrs *attrs = call->prepared;
    int first = call->node->input_count - 2;
    *f = (fractional){.batch = input.dims[0],
                      .in = {input.dims[1], input.dims[2]},
                      .out = {gradient->shape.dims[1], gradient->shape.dims[2]},
                      .channels = input.dims[3],
                      .starts = {call->inputs[first].data, call->inputs[first + 1].data},
                      .overlapping = attrs->overlapping,
                      .gradient = gradient->data};
}

/* As in TensorFlow, a wrong sequence of starts is one whose maxima differ from the output. */
static mr_status check_maxima(mr_kernel_call *call, fractional *f, mr_error *error)
{
    static const char *const message = "tensor_out_dup is not the same as tensor_out";
    const mr_tensor *output = &call->inputs[1];
    for (int i = 0; i < 2; i++) {
        if (call->inputs[3 + i].shape.dims[0] != f->out[i] + 1) return FAIL("%s", message);
        for (int64_t r = 0; r <= f->out[i]; r++)
            if (f->starts[i][r] < (r > 0 ? f->starts[i][r - 1] : 0) || f->starts[i][r] > f->in[i])
                return FAIL("%s", message);
    }
    mr_tensor maxima;
    MR_TRY(mr_tensor_init(&maxima, output->dtype, output->shape, error));
    f->target = maxima.data;
    mr_pool_for(call->device->pool, f->batch, 1, loops[output->dtype][0], f);
    bool same = true;
    int64_t count = mr_tensor_count(output);
    for (int64_t i = 0; i < count && same; i++) { /* not by bytes: 0 is equal to -0, and NaN to nothing */
        if (output->dtype == MR_FLOAT) same = mr_tensor_floats(output)[i] == mr_tensor_floats(&maxima)[i];
        if (output->dtype == MR_DOUBLE) same = mr_tensor_doubles(output)[i] == mr_tensor_doubles(&maxima)[i];
        if (output->dtype == MR_INT32) same = mr_tensor_int32s(output)[i] == mr_tensor_int32s(&maxima)[i];
        if (output->dtype == MR_INT64) same = mr_tensor_int64s(output)[i] == mr_tensor_int64s(&maxima)[i];
    }
    mr_tensor_deinit(&maxima);
    return same ? MR_OK : FAIL("%s", message);
}

static mr_status max_pool_grad(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"orig_input", "orig_output", "out_backprop"};
    const mr_tensor *input = &call->inputs[0], *gradient = &call->inputs[2];
    char text[MR_SHAPE_TEXT_SIZE];
    fractional f;
    for (int i = 0; i < 2; i++) {
        mr_shape shape = call->inputs[i].shape;
        (void)mr_shape_text(shape, text, sizeof text);
        if (mr_tensor_count(&call->inputs[i]) == 0) return FAIL("%s must not be empty, got shape %s", names[i], text);
        if (shape.rank != 4) return FAIL("%s should be a tensor of rank 4, got shape %s", names[i], text);
    }
    for (int i = 3; i < 5; i++)
        if (call->inputs[i].shape.rank != 1)
            return FAIL("%s_pooling_sequence must be a vector, received shape %s", i == 3 ? "row" : "col",
                        mr_shape_text(call->inputs[i].shape, text, sizeof text));
    mr_shape in = input->shape, out = call->inputs[1].shape;
    if (!mr_shape_equal(out, gradient->shape) || in.dims[0] != out.dims[0] || in.dims[3] != out.dims[3])
        return FAIL("tensor_out_dup is not the same as tensor_out: the shapes do not match");
    read_gradient(call, in, gradient, &f);
    f.input = input->data;
    MR_TRY(check_maxima(call, &f, error));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    mr_tensor *output = &call->outputs[0];
    memset(output->data, 0, mr_tensor_size_bytes(output));
    f.target = output->data;
    mr_pool_for(call->device->pool, f.batch, 1, loops[input->dtype][2], &f);
    return MR_OK;
}

/* The starts may decrease and exceed the input: such regions are empty. */
static mr_status check_mean_starts(const mr_kernel_call *call, int index, int64_t regions, mr_error *error)
{
    const fractional_attrs *attrs = call->prepared;
    const mr_tensor *tensor = &call->inputs[2 + index];
    const int64_t *starts = tensor->data;
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_tensor_count(tensor) <= regions)
        return FAIL("Given out_backprop shape %s, %s_seq_tensor must have at least %" PRId64
                    " elements, but got %" PRId64,
                    mr_shape_text(call->inputs[1].shape, text, sizeof text), index == 0 ? "row" : "col", regions + 1,
                    mr_tensor_count(tensor));
    for (int64_t i = 0; i < regions; i++)
        if (starts[i] < 0 || starts[i + 1] < (attrs->overlapping ? 0 : 1))
            return FAIL("%s sequence tensor values must not be negative, got region %" PRId64 " from %" PRId64
                        " to %" PRId64,
                        index == 0 ? "Row" : "Column", i, starts[i], starts[i + 1]);
    return MR_OK;
}

/* Distributes each gradient over its region, in doubles as TensorFlow does. */
#define SPREAD(type, suffix)                                                                                           \
    static void spread_##suffix(const fractional *f, double *sums)                                                     \
    {                                                                                                                  \
        const int64_t image = f->in[0] * f->in[1] * f->channels, regions = f->out[0] * f->out[1] * f->channels;        \
        for (int64_t out = 0; out < f->batch * regions; out++) {                                                       \
            REGION double part = (double)((const type *)f->gradient)[out] / ((double)(y1 - y0) * (double)(x1 - x0));   \
            EACH_INPUT sums[AT] += part;                                                                               \
        }                                                                                                              \
    }
SPREAD(float, float)
SPREAD(double, double)
SPREAD(int32_t, int32)
SPREAD(int64_t, int64)

static mr_status mean_pool_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *gradient = &call->inputs[1];
    mr_shape shape;
    fractional f;
    static const char *const names[] = {"Batch", "Rows", "Columns", "Depth"};
    if (call->inputs[0].shape.rank != 1 || mr_tensor_count(&call->inputs[0]) != 4)
        return FAIL("original input tensor shape must be1-dimensional and 4 elements");
    if (gradient->shape.rank != 4) return FAIL("out_backprop must be 4-dimensional");
    for (int i = 0; i < 4; i++)
        if (gradient->shape.dims[i] == 0) return FAIL("out_backprop must be positive for all dimension, got:0");
    for (int i = 0; i < 2; i++) MR_TRY(check_mean_starts(call, i, gradient->shape.dims[1 + i], error));
    for (int i = 0; i < 4; i++)
        if (mr_tensor_int64s(&call->inputs[0])[i] == 0) return FAIL("%s dimension of input must not be 0", names[i]);
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    if (gradient->shape.dims[0] != shape.dims[0] || gradient->shape.dims[3] != shape.dims[3])
        return FAIL("out_backprop and the input must have the same batch and channels");
    read_gradient(call, shape, gradient, &f);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    int64_t count = mr_tensor_count(output);
    if (count == 0) return MR_OK;
    double *sums = calloc((size_t)count, sizeof *sums);
    if (sums == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (mr_tensor_count(gradient) > 0)
        (output->dtype == MR_FLOAT    ? spread_float
         : output->dtype == MR_DOUBLE ? spread_double
         : output->dtype == MR_INT32  ? spread_int32
                                      : spread_int64)(&f, sums);
    for (int64_t i = 0; i < count; i++) {
        double sum = fmin(fmax(sums[i], -0x1p62), 0x1p62);
        if (output->dtype == MR_FLOAT) ((float *)output->data)[i] = (float)sums[i];
        if (output->dtype == MR_DOUBLE) ((double *)output->data)[i] = sums[i];
        if (output->dtype == MR_INT32) ((int32_t *)output->data)[i] = (int32_t)(int64_t)sum;
        if (output->dtype == MR_INT64) ((int64_t *)output->data)[i] = (int64_t)sum;
    }
    free(sums);
    return MR_OK;
}

#define ROW(name, function, host)                                                                                      \
    {.op = name,                                                                                                       \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(fractional_attrs),                                                                  \
     .prepare = prepare,                                                                                               \
     .host_inputs = host}
static const mr_kernel kernels[] = {
    ROW("FractionalMaxPool", max_pool, 0),
    ROW("FractionalMaxPoolGrad", max_pool_grad, 0),
    ROW("FractionalAvgPool", mean_pool, 0),
    ROW("FractionalAvgPoolGrad", mean_pool_grad, 1 << 0),
};
MR_KERNEL_FAMILY(fractional_pool);
