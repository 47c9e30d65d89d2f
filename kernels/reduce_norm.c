/* Sums of squares: L2Loss and EuclideanNorm. */
#include "base/halves.h"
#include "kernels/complex_math.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"
#include <stdlib.h>

/* Half the sum of squares, computed in pieces of fixed size that are added in order. */
typedef struct square_job {
    const void *source;
    double *sums;
    mr_dtype dtype;
} square_job;
constexpr int64_t SQUARE_PIECE = 16384;

MR_INLINE double squares_body(const float *x, int64_t count)
{
    mr_vector s0 = {}, s1 = {};
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        mr_vector a = mr_vector_load(x + i), b = mr_vector_load(x + i + 16);
        s0 += a * a;
        s1 += b * b;
    }
    float rest = 0;
    for (; i < count; i++) rest += x[i] * x[i];
    return (double)mr_vector_sum(s0 + s1) + (double)rest;
}

static void square_pieces(void *context, int64_t begin, int64_t end)
{
    const square_job *job = context;
    double sum = 0;
    if (job->dtype == MR_FLOAT) {
        sum = squares_body((const float *)job->source + begin, end - begin);
    } else if (job->dtype == MR_DOUBLE) {
        for (int64_t i = begin; i < end; i++)
            sum += ((const double *)job->source)[i] * ((const double *)job->source)[i];
    } else {
        const uint16_t *bits = job->source;
        for (int64_t i = begin; i < end; i++) {
            float x = job->dtype == MR_HALF ? mr_half_to_float(bits[i]) : mr_bfloat16_to_float(bits[i]);
            sum += (double)(x * x);
        }
    }
    job->sums[begin / SQUARE_PIECE] = sum;
}

static mr_status l2_loss(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t count = mr_tensor_count(input), pieces = (count + SQUARE_PIECE - 1) / SQUARE_PIECE;
    double few[64], *sums = pieces <= 64 ? few : malloc((size_t)pieces * sizeof *sums), sum = 0;
    if (sums == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    square_job job = {input->data, sums, input->dtype};
    mr_pool_for(call->device->pool, count, SQUARE_PIECE, square_pieces, &job);
    for (int64_t i = 0; i < pieces; i++) sum += sums[i];
    if (sums != few) free(sums);
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    void *output = call->outputs[0].data;
    if (job.dtype == MR_FLOAT)
        *(float *)output = (float)(sum / 2);
    else if (job.dtype == MR_DOUBLE)
        *(double *)output = sum / 2;
    else
        *(uint16_t *)output =
            job.dtype == MR_HALF ? mr_float_to_half((float)(sum / 2)) : mr_float_to_bfloat16((float)(sum / 2));
    return MR_OK;
}

/* The Euclidean norm: the squares are stored, summed, and the root is taken in place. */

#define NORM(dtype, type, wide, suffix)                                                                                \
    static void squares_##suffix(void *target, const void *source, int64_t count)                                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const wide x = (wide)((const type *)source)[i];                                                            \
            ((type *)target)[i] = (type)(x * x);                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void root_##suffix(void *target, int64_t count)                                                             \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)target)[i] = (type)sqrt((double)((type *)target)[i]);             \
    }
#define EACH_NORM(X)                                                                                                   \
    X(MR_FLOAT, float, float, float)                                                                                   \
    X(MR_DOUBLE, double, double, double)                                                                               \
    X(MR_INT32, int32_t, uint32_t, int32)                                                                              \
    X(MR_INT64, int64_t, uint64_t, int64)                                                                              \
    X(MR_INT8, int8_t, uint32_t, int8)                                                                                 \
    X(MR_INT16, int16_t, uint32_t, int16)                                                                              \
    X(MR_UINT8, uint8_t, uint32_t, uint8)                                                                              \
    X(MR_UINT16, uint16_t, uint32_t, uint16)                                                                           \
    X(MR_UINT32, uint32_t, uint32_t, uint32)                                                                           \
    X(MR_UINT64, uint64_t, uint64_t, uint64)
EACH_NORM(NORM)
MR_COMPLEX_UNARY(squares, MR_COMPLEX_OF(creal(z) * creal(z) + cimag(z) * cimag(z), 0))

static void root_complex64(void *target, int64_t count)
{
    root_float(target, 2 * count);
}

static void root_complex128(void *target, int64_t count)
{
    root_double(target, 2 * count);
}

typedef struct norm {
    void (*squares)(void *target, const void *source, int64_t count);
    void (*root)(void *target, int64_t count);
} norm;
#define NORM_ROW(dtype, type, wide, suffix) [dtype] = {squares_##suffix, root_##suffix},
static const norm norms[MR_DTYPE_COUNT] = {
    EACH_NORM(NORM_ROW)[MR_COMPLEX64] = {squares_complex64, root_complex64}, [MR_COMPLEX128] = {squares_complex128,
                                                                                                root_complex128}};

static mr_status euclidean_norm(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    bool halves = mr_is_half(input->dtype), reduced[MR_RANK_MAX];
    mr_dtype dtype = halves ? MR_FLOAT : input->dtype;
    int64_t count = mr_tensor_count(input), divisor;
    mr_shape shape;
    MR_TRY(mr_reduce_shape(call, &shape, reduced, &divisor, error));
    if (norms[dtype].squares == nullptr) return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t outputs = mr_tensor_count(&call->outputs[0]);
    size_t size = mr_dtype_size(dtype);
    char *squares = malloc((size_t)(count + outputs + 1) * size);
    if (squares == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (halves) mr_halves_to_floats((float *)squares, input->data, count, input->dtype);
    norms[dtype].squares(squares, halves ? squares : input->data, count);
    char *sums = squares + (size_t)count * size;
    void *target = halves ? sums : call->outputs[0].data;
    mr_status status = mr_reduce_sum(call, dtype, squares, target, reduced, error);
    if (status == MR_OK) norms[dtype].root(target, outputs);
    if (status == MR_OK && halves)
        mr_floats_to_halves(call->outputs[0].data, (const float *)sums, outputs, input->dtype);
    free(squares);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "L2Loss", .types = "T: float, double, half, bfloat16", .run = l2_loss},
    {.op = "EuclideanNorm", .run = euclidean_norm, .host_inputs = 1 << 1},
};
MR_KERNEL_FAMILY(reduce_norm);
