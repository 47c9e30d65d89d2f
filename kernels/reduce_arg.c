/* ArgMax and ArgMin. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The index of the maximum or minimum along one axis; the first one of equals. NaN is never chosen over a number. */
typedef struct arg_job {
    const void *source;
    int64_t *indices;
    int64_t count, inner;
    bool smallest;
} arg_job;

#define ARG_TYPE(dtype, type, suffix)                                                                                  \
    static void arg_##suffix(void *context, int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        const arg_job *job = context;                                                                                  \
        for (int64_t o = begin; o < end; o++) {                                                                        \
            const type *x = (const type *)job->source + o / job->inner * job->count * job->inner + o % job->inner;     \
            int64_t best = 0;                                                                                          \
            for (int64_t i = 1; i < job->count; i++) {                                                                 \
                type value = x[i * job->inner], most = x[best * job->inner];                                           \
                if ((job->smallest ? value < most : value > most) || (most != most && value == value)) best = i;       \
            }                                                                                                          \
            job->indices[o] = best;                                                                                    \
        }                                                                                                              \
    }
MR_EACH_NUMBER(ARG_TYPE)
#define ARG_HALF(suffix)                                                                                               \
    static void arg_##suffix(void *context, int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        const arg_job *job = context;                                                                                  \
        for (int64_t o = begin; o < end; o++) {                                                                        \
            const uint16_t *x = (const uint16_t *)job->source + o / job->inner * job->count * job->inner;              \
            x += o % job->inner;                                                                                       \
            int64_t best = 0;                                                                                          \
            float most = mr_##suffix##_to_float(x[0]);                                                                 \
            for (int64_t i = 1; i < job->count; i++) {                                                                 \
                float value = mr_##suffix##_to_float(x[i * job->inner]);                                               \
                bool better = job->smallest ? value < most : value > most;                                             \
                if (!better && !(isnan(most) && !isnan(value))) continue;                                              \
                best = i;                                                                                              \
                most = value;                                                                                          \
            }                                                                                                          \
            job->indices[o] = best;                                                                                    \
        }                                                                                                              \
    }
ARG_HALF(half)
ARG_HALF(bfloat16)
#define ARG_ROW(dtype, type, suffix) [dtype] = arg_##suffix,
static const mr_pool_body arg_loops[MR_DTYPE_COUNT] = {
    MR_EACH_NUMBER(ARG_ROW)[MR_BOOL] = arg_uint8, [MR_HALF] = arg_half, [MR_BFLOAT16] = arg_bfloat16};

static mr_status arg_extreme(mr_kernel_call *call, bool smallest, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t given;
    arg_job job = {.source = input->data, .inner = 1, .smallest = smallest};
    char text[MR_SHAPE_TEXT_SIZE];
    int rank = input->shape.rank;
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "dim must be a scalar, but received tensor of shape: %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    MR_TRY(mr_kernel_single_int(call, 1, "dim", &given, error));
    if (given < -rank || given >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected dimension in the range [%d, %d), but got %" PRId64, -rank, rank, given);
    int axis = (int)(given < 0 ? given + rank : given);
    mr_shape shape = {.rank = rank - 1};
    job.count = input->shape.dims[axis];
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = input->shape.dims[i < axis ? i : i + 1];
    job.inner = mr_dims_product(&input->shape, axis + 1, input->shape.rank);
    if (job.count == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Reduction axis %d is empty in shape %s", axis,
                              mr_shape_text(input->shape, text, sizeof text));
    if (arg_loops[input->dtype] == nullptr) return mr_kernel_unsupported(call->node, error);
    int64_t outputs = mr_shape_count(shape);
    job.indices = calloc((size_t)outputs + 1, sizeof *job.indices);
    if (job.indices == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_pool_for(call->device->pool, outputs, MR_MAX(1, MR_GRAIN / job.count), arg_loops[input->dtype], &job);
    mr_status status = mr_kernel_put_ints(call, 0, shape, job.indices, error);
    free(job.indices);
    return status;
}

static mr_status arg_max(mr_kernel_call *call, mr_error *error)
{
    return arg_extreme(call, false, error);
}

static mr_status arg_min(mr_kernel_call *call, mr_error *error)
{
    return arg_extreme(call, true, error);
}

static const mr_kernel kernels[] = {
    {.op = "ArgMax", .run = arg_max, .host_inputs = 1 << 1},
    {.op = "ArgMin", .run = arg_min, .host_inputs = 1 << 1},
};
MR_KERNEL_FAMILY(reduce_arg);
