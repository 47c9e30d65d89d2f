/* Pooling of floats in NHWC, which works on vectors of channels, compared with that of doubles, which does not; and the
 * largest and smallest of floats with the plain order. All numbers are small integers with many ties, so every sum is
 * exact. */
#include "tests/ops/run.h"

#include <math.h>

typedef struct layer {
    int64_t batch, height, width, channels, window_y, window_x, stride_y, stride_x;
    const char *padding;
} layer;

/* The same integers as floats or doubles. */
static mr_tensor integers(mr_dtype dtype, mr_shape shape, uint64_t which)
{
    mr_error error = {0};
    mr_tensor tensor;
    mr_random random = mr_random_at(test_seed(), which, 0, 0);
    CHECK_OK(mr_tensor_init(&tensor, dtype, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&tensor); i++) {
        const float number = (float)mr_random_below(&random, 5) * 6 - 12;
        if (dtype == MR_FLOAT)
            ((float *)tensor.data)[i] = number;
        else
            ((double *)tensor.data)[i] = (double)number;
    }
    return kept(tensor);
}

static mr_tensor run_layer(const layer *l, const char *op, const mr_tensor *inputs, int count, int threads)
{
    op_run run = {.op = op, .threads = threads};
    for (int i = 0; i < count; i++) run.inputs[i] = inputs[i];
    run.attrs[0] = (op_attr){.name = "ksize", .kind = 'i', .count = 4, .ints = {1, l->window_y, l->window_x, 1}};
    run.attrs[1] = (op_attr){.name = "strides", .kind = 'i', .count = 4, .ints = {1, l->stride_y, l->stride_x, 1}};
    run.attrs[2] = (op_attr){.name = "padding", .kind = 's', .text = l->padding};
    if (strcmp(op, "AvgPoolGrad") == 0) run.output_dtypes[0] = inputs[1].dtype;
    return kept(run_op_one(&run));
}

static void check_equal(const layer *l, const char *op, const mr_tensor *floats, const mr_tensor *doubles)
{
    CHECK(mr_shape_equal(floats->shape, doubles->shape));
    for (int64_t i = 0; i < mr_tensor_count(floats); i++) {
        const double found = (double)((const float *)floats->data)[i], wanted = ((const double *)doubles->data)[i];
        if (!(fabs(found - wanted) <= 1e-6 * (fabs(wanted) + 1)))
            test_fail(__FILE__, __LINE__, "%s of %lld channels, %lld x %lld by %lld x %lld: number %lld is %g, not %g",
                      op, (long long)l->channels, (long long)l->window_y, (long long)l->window_x,
                      (long long)l->stride_y, (long long)l->stride_x, (long long)i, found, wanted);
    }
}

static void check_layer(const layer *l, int threads)
{
    mr_tensor forward[2], results[2][4];
    const mr_shape shape = MR_SHAPE(l->batch, l->height, l->width, l->channels);
    const int32_t dims[] = {(int32_t)l->batch, (int32_t)l->height, (int32_t)l->width, (int32_t)l->channels};
    for (int i = 0; i < 2; i++) {
        const mr_dtype dtype = i ? MR_DOUBLE : MR_FLOAT;
        const mr_tensor x = integers(dtype, shape, 1);
        forward[i] = results[i][0] = run_layer(l, "MaxPool", &x, 1, threads);
        results[i][1] = run_layer(l, "AvgPool", &x, 1, threads);
        const mr_tensor gradient = integers(dtype, forward[i].shape, 2);
        results[i][2] = run_layer(l, "MaxPoolGrad", (mr_tensor[]){x, forward[i], gradient}, 3, threads);
        results[i][3] = run_layer(l, "AvgPoolGrad", (mr_tensor[]){int32s_of(4, dims), gradient}, 2, threads);
    }
    static const char *const ops[] = {"MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad"};
    for (int k = 0; k < 4; k++) check_equal(l, ops[k], &results[0][k], &results[1][k]);
}

static void check_layers(void)
{
    static const int64_t channels[] = {1, 3, 15, 16, 17, 32, 48, 50};
    mr_random random = mr_random_at(test_seed(), 5, 0, 0);
    for (int i = 0; i < 120; i++) {
        layer l = {.batch = 1 + (int64_t)mr_random_below(&random, 3), .channels = channels[i % 8]};
        l.window_y = 1 + (int64_t)mr_random_below(&random, 4);
        l.window_x = 1 + (int64_t)mr_random_below(&random, 4);
        l.stride_y = 1 + (int64_t)mr_random_below(&random, 3);
        l.stride_x = 1 + (int64_t)mr_random_below(&random, 3);
        l.height = l.window_y + (int64_t)mr_random_below(&random, 9);
        l.width = l.window_x + (int64_t)mr_random_below(&random, 9);
        l.padding = i % 3 ? "SAME" : "VALID";
        check_layer(&l, 1 + i % 3);
    }
}

/* As the definition goes on: a later number replaces an earlier one if it is better or NaN. */
static float extreme_of(const float *numbers, int64_t count, int64_t step, bool largest)
{
    float best = largest ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const float number = numbers[i * step];
        if (number != number || (largest ? number > best : number < best)) best = number;
    }
    return best;
}

static void check_extremes(void)
{
    mr_random random = mr_random_at(test_seed(), 6, 0, 0);
    for (int i = 0; i < 160; i++) {
        const int64_t rows = 1 + (int64_t)mr_random_below(&random, 40);
        const int64_t columns = 1 + (int64_t)mr_random_below(&random, i % 5 ? 200 : 20000);
        mr_tensor x = kept(random_floats(MR_SHAPE(rows, columns), (uint64_t)i));
        float *numbers = x.data;
        if (i % 4 == 1) numbers[mr_random_below(&random, (uint64_t)(rows * columns))] = NAN;
        if (i % 4 == 2) numbers[mr_random_below(&random, (uint64_t)(rows * columns))] = -INFINITY;
        for (int axis = 0; axis < 2; axis++) {
            const bool largest = i & 1;
            const op_run run = {
                .op = largest ? "Max" : "Min", .inputs = {x, int32s_of(1, &(int32_t){axis})}, .threads = 1 + i % 3};
            const mr_tensor y = kept(run_op_one(&run));
            for (int64_t k = 0; k < mr_tensor_count(&y); k++) {
                const float found = ((const float *)y.data)[k];
                const float wanted = axis ? extreme_of(numbers + k * columns, columns, 1, largest)
                                          : extreme_of(numbers + k, rows, columns, largest);
                CHECK(found == wanted || (found != found && wanted != wanted));
            }
        }
    }
}

TEST(pool_floats_plain)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_layers();
    check_extremes();
}

TEST(pool_floats_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_layers();
    check_extremes();
}

TEST(pool_floats_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_layers();
    check_extremes();
}

/* Of a window that begins with NaN the first element has the gradient, as in TensorFlow. */
TEST(pool_gradient_of_not_a_number)
{
    mr_tensor x = random_floats(MR_SHAPE(1, 3, 3, 16), 1), gradient = random_floats(MR_SHAPE(1, 2, 2, 16), 2);
    for (int64_t c = 0; c < 16; c++) ((float *)x.data)[c] = NAN;
    const layer l = {.window_y = 2, .window_x = 2, .stride_y = 1, .stride_x = 1, .padding = "VALID"};
    const mr_tensor y = run_layer(&l, "MaxPool", &x, 1, 1);
    const mr_tensor dx = run_layer(&l, "MaxPoolGrad", (mr_tensor[]){kept(x), y, kept(gradient)}, 3, 1);
    for (int64_t c = 0; c < 16; c++) CHECK(((const float *)dx.data)[c] == ((const float *)gradient.data)[c]);
}
