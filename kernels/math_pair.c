/* Functions of two tensors of the same shape: Cross and ApproximateEqual. */
#include "kernels/common.h"
#include <math.h>

typedef struct pair_job {
    const mr_kernel_call *call;
    void *target;
    float tolerance;
} pair_job;

#define CROSS(dtype, type, suffix)                                                                                     \
    static void cross_##suffix(void *context, int64_t begin, int64_t end)                                              \
    {                                                                                                                  \
        const pair_job *job = context;                                                                                 \
        const type *a = job->call->inputs[0].data, *b = job->call->inputs[1].data;                                     \
        type *to = job->target;                                                                                        \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const type *u = a + 3 * i, *v = b + 3 * i;                                                                 \
            for (int k = 0; k < 3; k++) {                                                                              \
                int next = (k + 1) % 3, last = (k + 2) % 3;                                                            \
                to[3 * i + k] = (type)((type)(WIDE(u[next]) * v[last]) - (type)(WIDE(u[last]) * v[next]));             \
            }                                                                                                          \
        }                                                                                                              \
    }
/* Products of uint16 would overflow int. */
#define WIDE(x) _Generic(x, uint16_t: (uint32_t)(x), default: (x))
MR_EACH_WRAPPING_NUMBER(CROSS)

#define CROSS_HALF(suffix)                                                                                             \
    static void cross_##suffix(void *context, int64_t begin, int64_t end)                                              \
    {                                                                                                                  \
        const pair_job *job = context;                                                                                 \
        const uint16_t *a = job->call->inputs[0].data, *b = job->call->inputs[1].data;                                 \
        uint16_t *to = job->target;                                                                                    \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            float u[3], v[3];                                                                                          \
            for (int k = 0; k < 3; k++) {                                                                              \
                u[k] = mr_##suffix##_to_float(a[3 * i + k]);                                                           \
                v[k] = mr_##suffix##_to_float(b[3 * i + k]);                                                           \
            }                                                                                                          \
            for (int k = 0; k < 3; k++) {                                                                              \
                int next = (k + 1) % 3, last = (k + 2) % 3;                                                            \
                uint16_t first = mr_float_to_##suffix(u[next] * v[last]);                                              \
                uint16_t second = mr_float_to_##suffix(u[last] * v[next]);                                             \
                to[3 * i + k] = mr_float_to_##suffix(mr_##suffix##_to_float(first) - mr_##suffix##_to_float(second));  \
            }                                                                                                          \
        }                                                                                                              \
    }
CROSS_HALF(half)
CROSS_HALF(bfloat16)

#define CROSS_ROW(dtype, type, suffix) [dtype] = cross_##suffix,
static const mr_pool_body crosses[MR_DTYPE_COUNT] = {
    MR_EACH_WRAPPING_NUMBER(CROSS_ROW)[MR_HALF] = cross_half, [MR_BFLOAT16] = cross_bfloat16};

static mr_status cross(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    char a_text[MR_SHAPE_TEXT_SIZE], b_text[MR_SHAPE_TEXT_SIZE];
    if (!mr_shape_equal(a->shape, b->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Both inputs must be of same shape: %s vs. %s",
                              mr_shape_text(a->shape, a_text, sizeof a_text),
                              mr_shape_text(b->shape, b_text, sizeof b_text));
    if (a->shape.rank < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input must be at least 1D");
    if (a->shape.dims[a->shape.rank - 1] != 3)
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION,
                              "Cross-products are only defined for 3-element vectors.");
    if (crosses[a->dtype] == nullptr) return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_kernel_output(call, 0, a->shape, error));
    pair_job job = {.call = call, .target = call->outputs[0].data};
    mr_pool_for(call->device->pool, mr_tensor_count(a) / 3, MR_GRAIN / 4, crosses[a->dtype], &job);
    return MR_OK;
}

static void approximate_float(void *context, int64_t begin, int64_t end)
{
    const pair_job *job = context;
    const float *a = job->call->inputs[0].data, *b = job->call->inputs[1].data;
    for (int64_t i = begin; i < end; i++) ((bool *)job->target)[i] = fabsf(a[i] - b[i]) < job->tolerance;
}

static void approximate_double(void *context, int64_t begin, int64_t end)
{
    const pair_job *job = context;
    const double *a = job->call->inputs[0].data, *b = job->call->inputs[1].data;
    for (int64_t i = begin; i < end; i++) ((bool *)job->target)[i] = fabs(a[i] - b[i]) < (double)job->tolerance;
}

static mr_status approximate_equal(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    char a_text[MR_SHAPE_TEXT_SIZE], b_text[MR_SHAPE_TEXT_SIZE];
    if (!mr_shape_equal(a->shape, b->shape))
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT, "x and y must be of the same shape. x shape: %s. y shape: %s",
            mr_shape_text(a->shape, a_text, sizeof a_text), mr_shape_text(b->shape, b_text, sizeof b_text));
    MR_TRY(mr_kernel_output(call, 0, a->shape, error));
    pair_job job = {call, call->outputs[0].data, mr_attr_float_or(call->node->attrs, "tolerance", 1e-5f)};
    mr_pool_for(call->device->pool, mr_tensor_count(a), MR_GRAIN,
                a->dtype == MR_FLOAT ? approximate_float : approximate_double, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Cross", .run = cross},
    {.op = "ApproximateEqual", .types = "T: float, double", .run = approximate_equal},
};
MR_KERNEL_FAMILY(math_pair);
