/* ParameterizedTruncatedNormal: normal numbers between two bounds, with parameters for each row.
 *
 * Each row chooses one of three samplers by how far its bounds are from its mean, in standard deviations: normal,
 * uniform or exponential numbers, of which those outside the density are rejected. All rows use one sequence of
 * numbers, as TensorFlow's first thread does (tensorflow/core/kernels/parameterized_truncated_normal_op.cc). Every
 * operation is rounded to the result's type. */
#include "kernels/random.h"
#include <inttypes.h>
#include <math.h>

constexpr int ITERATIONS_MAX = 1000;
constexpr int64_t ROW_SAMPLES = 100; /* of equal rows */

typedef struct bounded {
    mr_philox philox;
    mr_dtype dtype;
    double mean, std, low, high; /* the bounds in standard deviations */
} bounded;

static double rounded(const bounded *b, double value)
{
    if (b->dtype == MR_DOUBLE) return value;
    if (b->dtype == MR_FLOAT) return (double)(float)value;
    return (double)mr_half_to_float(mr_float_to_half((float)value));
}
#define R(expression) rounded(b, expression)

/* The next group of uniform numbers: 2 doubles, or 4 of other types. */
static int next_uniforms(bounded *b, double out[4])
{
    uint32_t x[4];
    mr_philox_next(&b->philox, x);
    if (b->dtype == MR_DOUBLE) {
        out[0] = mr_random_double(x[0], x[1]);
        out[1] = mr_random_double(x[2], x[3]);
        return 2;
    }
    for (int i = 0; i < 4; i++)
        out[i] = b->dtype == MR_HALF ? (double)(x[i] & 0x3ff) / 1024 : (double)mr_random_float(x[i]);
    return 4;
}

static int next_normals(bounded *b, double out[4])
{
    uint32_t x[4];
    float floats[4];
    mr_philox_next(&b->philox, x);
    if (b->dtype == MR_DOUBLE) {
        mr_random_normal_doubles(x, out);
        return 2;
    }
    mr_random_normal_floats(x[0], x[1], floats);
    mr_random_normal_floats(x[2], x[3], floats + 2);
    for (int i = 0; i < 4; i++) out[i] = R((double)floats[i]);
    return 4;
}

static void put(const mr_tensor *output, int64_t index, double value)
{
    if (output->dtype == MR_DOUBLE)
        ((double *)output->data)[index] = value;
    else if (output->dtype == MR_FLOAT)
        ((float *)output->data)[index] = (float)value;
    else
        ((uint16_t *)output->data)[index] = mr_float_to_half((float)value);
}

static double placed(const bounded *b, double sample)
{
    return R(R(sample * b->std) + b->mean);
}

static bool fill_normal(bounded *b, const mr_tensor *output, int64_t at, int64_t end)
{
    int rejected = 0;
    while (at < end) {
        double x[4];
        int count = next_normals(b, x);
        for (int i = 0; i < count && at < end; i++) {
            if (x[i] >= b->low && x[i] <= b->high) {
                put(output, at++, placed(b, x[i]));
                rejected = 0;
            } else if (++rejected > ITERATIONS_MAX) {
                return false;
            }
        }
    }
    return true;
}

static bool fill_uniform(bounded *b, const mr_tensor *output, int64_t at, int64_t end)
{
    int rejected = 0;
    double range = R(b->high - b->low), offset = b->low < 0 ? 0 : R(b->low * b->low);
    while (at < end) {
        double x[4], u[4];
        int count = next_uniforms(b, x);
        (void)next_uniforms(b, u);
        for (int i = 0; i < count && at < end; i++) {
            double z = R(R(x[i] * range) + b->low), density = R(exp(R(R(offset - R(z * z)) / 2)));
            if (u[i] <= density) {
                put(output, at++, placed(b, z));
                rejected = 0;
            } else if (++rejected >= ITERATIONS_MAX) {
                return false;
            }
        }
    }
    return true;
}

static bool fill_exponential(bounded *b, const mr_tensor *output, int64_t at, int64_t end)
{
    int rejected = 0;
    double alpha = R(R(b->low + R(sqrt(R(R(b->low * b->low) + 4)))) / 2);
    while (at < end) {
        double x[4];
        int count = next_uniforms(b, x);
        for (int i = 0; i + 1 < count && at < end; i += 2) {
            double z = R(R(-R(log(x[i])) / alpha) + b->low);
            double distance = b->low < alpha ? R(alpha - z) : R(b->low - alpha);
            double density = R(exp(R(R(-distance * distance) / 2)));
            if (x[i + 1] <= density && z < b->high) {
                put(output, at++, placed(b, z));
                rejected = 0;
            } else if (++rejected >= ITERATIONS_MAX) {
                return false;
            }
        }
    }
    return true;
}

/* Fills elements [at, end) from the row's parameters. */
static mr_status fill_row(mr_kernel_call *call, bounded *b, double low, double high, int64_t at, int64_t end,
                          mr_error *error)
{
    const mr_tensor *output = &call->outputs[0];
    if (!(b->std > 0 && low < high && (isfinite(low) || isfinite(high))))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid parameters");
    if ((isinf(low) && low < 0) || high < b->mean) {
        double swapped = low;
        low = high;
        high = swapped;
        b->std = -b->std;
    }
    b->low = R(R(low - b->mean) / b->std);
    b->high = R(R(high - b->mean) / b->std);
    double factor = R(sqrt(R(R(b->low * b->low) + 4)));
    double cutoff = R(R(2 * R(exp(R(0.5 + R(R(b->low * R(b->low - factor)) / 4))))) / R(b->low + factor));
    double inside = R(1.3);
    const char *name;
    bool is_done;
    if ((b->low < -inside && b->high >= 0) || (b->high > inside && b->low <= 0)) {
        name = "randn";
        is_done = fill_normal(b, output, at, end);
    } else if (R(b->high - b->low) < cutoff) {
        name = "uniform";
        is_done = fill_uniform(b, output, at, end);
    } else {
        name = "exponential distribution";
        is_done = fill_exponential(b, output, at, end);
    }
    if (is_done) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INTERNAL,
                          "TruncatedNormal %s rejection sampler failed to accept a sample.", name);
}

static double parameter_at(const mr_tensor *tensor, int64_t row)
{
    int64_t index = mr_tensor_count(tensor) == 1 ? 0 : row;
    if (tensor->dtype == MR_DOUBLE) return ((const double *)tensor->data)[index];
    if (tensor->dtype == MR_FLOAT) return (double)((const float *)tensor->data)[index];
    return (double)mr_half_to_float(((const uint16_t *)tensor->data)[index]);
}

/* Whether a parameter is one number; only means and stdevs may also be vectors of one. */
static bool is_common(const mr_tensor *tensor, bool or_vector)
{
    return tensor->shape.rank == 0 || (or_vector && tensor->shape.dims[0] == 1);
}

static mr_status parameterized_truncated_normal(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"shape", "means", "stddevs", "minvals", "maxvals"};
    char text[MR_SHAPE_TEXT_SIZE];
    mr_shape shape;
    if (call->inputs[0].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input shape should be a vector, got shape: %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    if (shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape tensor must not be empty, got []");
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_shape_count(shape), rows = shape.dims[0], each = rows > 0 ? count / rows : 0;
    for (int i = 1; i <= 4; i++)
        if (call->inputs[i].shape.rank > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input %s should be a scalar or vector, got shape: %s", names[i],
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    bool are_common = true;
    for (int i = 1; i <= 4; i++) are_common &= is_common(&call->inputs[i], i <= 2);
    for (int i = 1; i <= 4 && !are_common; i++) {
        int64_t have = mr_tensor_count(&call->inputs[i]);
        if (have != 1 && have != rows)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input %s should have length 1 or shape[0], got shape: %s", names[i],
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    }
    if (are_common) {
        rows = (count + ROW_SAMPLES - 1) / ROW_SAMPLES;
        each = ROW_SAMPLES;
    }
    bounded b = {.dtype = call->outputs[0].dtype};
    uint64_t reserved = (uint64_t)rows * 2 * (uint64_t)ITERATIONS_MAX * (uint64_t)(each + 3) / 4;
    b.philox = mr_random_reserve(call, (int64_t)reserved);
    for (int64_t row = 0; row < rows && count > 0; row++) {
        b.mean = parameter_at(&call->inputs[1], row);
        b.std = parameter_at(&call->inputs[2], row);
        MR_TRY(fill_row(call, &b, parameter_at(&call->inputs[3], row), parameter_at(&call->inputs[4], row), row * each,
                        MR_MIN((row + 1) * each, count), error));
    }
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "ParameterizedTruncatedNormal",
     .types = "dtype: half, float, double",
     .run = parameterized_truncated_normal},
};
MR_KERNEL_FAMILY(random_bounded);
