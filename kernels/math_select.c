/* Selects and clips elements: Select, SelectV2, ClipByValue. Select moves elements without reading them. */
#include "kernels/elementwise.h"
#include <inttypes.h>
#include <string.h>

typedef struct element16 {
    uint64_t words[2];
} element16;

/* Processes one row: `take` selects between the operands, whose steps are 0 or 1. */
#define ROW(type)                                                                                                      \
    {                                                                                                                  \
        type *to = target;                                                                                             \
        const type *x = then_row, *y = else_row;                                                                       \
        if (take_step == 1 && then_step == 1 && else_step == 1) {                                                      \
            MR_EACH_ELEMENT to[i] = take[i] ? x[i] : y[i];                                                             \
        } else {                                                                                                       \
            for (int64_t i = 0; i < count; i++) to[i] = take[i * take_step] ? x[i * then_step] : y[i * else_step];     \
        }                                                                                                              \
    }

static void select_row(void *target, const bool *take, int64_t take_step, const void *then_row, int64_t then_step,
                       const void *else_row, int64_t else_step, int64_t count, size_t size)
{
    switch (size) {
    case 1:
        ROW(uint8_t) break;
    case 2:
        ROW(uint16_t) break;
    case 4:
        ROW(uint32_t) break;
    case 8:
        ROW(uint64_t) break;
    default:
        ROW(element16) break;
    }
}

typedef struct select_job {
    int rank;
    int64_t dims[MR_RANK_MAX];
    int64_t strides[3][MR_RANK_MAX];
    const char *operands[3];
    char *target;
    size_t size;
} select_job;

static void select_rows(void *context, int64_t begin, int64_t end)
{
    const select_job *job = context;
    int last = job->rank - 1;
    int64_t inner = job->dims[last];
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, offset[3] = {0, 0, 0};
        for (int d = last - 1; d >= 0; d--) {
            int64_t index = rest % job->dims[d];
            rest /= job->dims[d];
            for (int o = 0; o < 3; o++) offset[o] += index * job->strides[o][d];
        }
        select_row(job->target + (size_t)(row * inner) * job->size, (const bool *)job->operands[0] + offset[0],
                   job->strides[0][last], job->operands[1] + (size_t)offset[1] * job->size, job->strides[1][last],
                   job->operands[2] + (size_t)offset[2] * job->size, job->strides[2][last], inner, job->size);
    }
}

static mr_status select_broadcast(mr_kernel_call *call, const mr_shape shapes[3], mr_shape wide, mr_error *error)
{
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, wide, &sink, error));
    if (sink.count == 0) return mr_sink_finish(call, &sink, MR_OK, error);
    select_job job = {.target = sink.data, .size = sink.element_size};
    int64_t strides[3][MR_RANK_MAX];
    for (int o = 0; o < 3; o++) {
        job.operands[o] = call->inputs[o].data;
        mr_broadcast_strides(shapes[o], wide, strides[o]);
    }
    for (int d = 0; d < wide.rank; d++) { /* merges dims that are contiguous in all three */
        if (wide.dims[d] == 1) continue;
        int p = job.rank - 1;
        bool join = job.rank > 0;
        for (int o = 0; join && o < 3; o++) join = job.strides[o][p] == strides[o][d] * wide.dims[d];
        if (join) {
            job.dims[p] *= wide.dims[d];
        } else {
            p = job.rank++;
            job.dims[p] = wide.dims[d];
        }
        for (int o = 0; o < 3; o++) job.strides[o][p] = strides[o][d];
    }
    if (job.rank == 0) {
        job.rank = 1;
        job.dims[0] = 1;
    }
    int64_t inner = job.dims[job.rank - 1];
    if (job.rank == 1 && inner >= 4 * MR_GRAIN && inner % 64 == 0) { /* split one long row */
        int64_t rows = inner / 64;
        job.rank = 2;
        job.dims[0] = rows;
        job.dims[1] = inner = 64;
        for (int o = 0; o < 3; o++) {
            job.strides[o][1] = job.strides[o][0];
            job.strides[o][0] *= 64;
        }
    }
    mr_pool_for(call->device->pool, sink.count / inner, MR_MAX(1, MR_GRAIN / inner), select_rows, &job);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status select_v2(mr_kernel_call *call, mr_error *error)
{
    mr_shape wide;
    char text[3][MR_SHAPE_TEXT_SIZE];
    if (mr_kernel_broadcast(call, call->inputs[1].shape, call->inputs[2].shape, &wide, nullptr) != MR_OK ||
        mr_kernel_broadcast(call, call->inputs[0].shape, wide, &wide, nullptr) != MR_OK)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "condition %s, then %s, and else %s must be broadcastable",
                              mr_shape_text(call->inputs[0].shape, text[0], sizeof text[0]),
                              mr_shape_text(call->inputs[1].shape, text[1], sizeof text[1]),
                              mr_shape_text(call->inputs[2].shape, text[2], sizeof text[2]));
    mr_shape shapes[3] = {call->inputs[0].shape, call->inputs[1].shape, call->inputs[2].shape};
    return select_broadcast(call, shapes, wide, error);
}

/* Version 1: the condition has the operands' shape, or is a scalar, or a vector that selects complete rows. */
static mr_status select_v1(mr_kernel_call *call, mr_error *error)
{
    mr_shape take = call->inputs[0].shape, wide = call->inputs[1].shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (take.rank == 1 && wide.rank != 1) {
        if (wide.rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "'then' must be at least a vector, but saw shape: []");
        if (take.dims[0] != wide.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Number of batches of 'then' must match size of 'cond', but saw: %" PRId64
                                  " vs. %" PRId64,
                                  wide.dims[0], take.dims[0]);
    }
    if (!mr_shape_equal(wide, call->inputs[2].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "'then' and 'else' must have the same size.  but received: %s vs. %s",
                              mr_shape_text(wide, a, sizeof a), mr_shape_text(call->inputs[2].shape, b, sizeof b));
    if (take.rank == 1 && wide.rank > 1 && take.dims[0] == wide.dims[0]) {
        take.rank = wide.rank;
        for (int i = 1; i < wide.rank; i++) take.dims[i] = 1;
    }
    if (call->inputs[0].shape.rank != 0 && (call->inputs[0].shape.rank != 1 || wide.rank == 1))
        MR_TRY(mr_kernel_same_shape(call, 0, 1, error));
    mr_shape shapes[3] = {take, wide, wide};
    return select_broadcast(call, shapes, wide, error);
}

/* max(min(x, high), low), so that low wins if it exceeds high; the bounds are scalars or have x's shape. */
#define CLIP(dtype, type, suffix)                                                                                      \
    static void clip_##suffix(const mr_kernel_call *call, void *target, const void *source, int64_t begin,             \
                              int64_t end)                                                                             \
    {                                                                                                                  \
        const type *x = source, *low = call->inputs[1].data, *high = call->inputs[2].data;                             \
        int64_t low_step = call->inputs[1].shape.rank > 0, high_step = call->inputs[2].shape.rank > 0;                 \
        type *to = target;                                                                                             \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            type l = low[i * low_step], h = high[i * high_step], v = x[i];                                             \
            v = v > h ? h : v;                                                                                         \
            to[i] = v < l ? l : v;                                                                                     \
        }                                                                                                              \
    }
MR_EACH_NUMBER(CLIP)
#define CLIP_HALF(suffix)                                                                                              \
    static void clip_##suffix(const mr_kernel_call *call, void *target, const void *source, int64_t begin,             \
                              int64_t end)                                                                             \
    {                                                                                                                  \
        const uint16_t *low = call->inputs[1].data, *high = call->inputs[2].data;                                      \
        int64_t low_step = call->inputs[1].shape.rank > 0, high_step = call->inputs[2].shape.rank > 0;                 \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            float l = mr_##suffix##_to_float(low[i * low_step]), h = mr_##suffix##_to_float(high[i * high_step]);      \
            float v = mr_##suffix##_to_float(((const uint16_t *)source)[i]);                                           \
            v = v > h ? h : v;                                                                                         \
            ((uint16_t *)target)[i] = mr_float_to_##suffix(v < l ? l : v);                                             \
        }                                                                                                              \
    }
CLIP_HALF(half)
CLIP_HALF(bfloat16)

typedef void (*clip_function)(const mr_kernel_call *call, void *target, const void *source, int64_t begin, int64_t end);
#define CLIP_ROW(dtype, type, suffix) [dtype] = clip_##suffix,
static const clip_function clips[MR_DTYPE_COUNT] = {MR_EACH_NUMBER(CLIP_ROW)[MR_HALF] = clip_half, [MR_BFLOAT16] =
                                                                                                       clip_bfloat16};

typedef struct clip_job {
    const mr_kernel_call *call;
    clip_function clip;
    void *target;
    const void *source;
} clip_job;

static void clip_piece(void *context, int64_t begin, int64_t end)
{
    const clip_job *job = context;
    job->clip(job->call, job->target, job->source, begin, end);
}

static mr_status clip_by_value(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    char text[3][MR_SHAPE_TEXT_SIZE];
    clip_job job = {call, clips[input->dtype], nullptr, input->data};
    if (job.clip == nullptr) return mr_kernel_unsupported(call->node, error);
    for (int i = 1; i < 3; i++)
        if (call->inputs[i].shape.rank != 0 && !mr_shape_equal(call->inputs[i].shape, input->shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "clip_value_min and clip_value_max must be either of the same shape as input, or a "
                                  "scalar. input shape: %sclip_value_min shape: %sclip_value_max shape: %s",
                                  mr_shape_text(input->shape, text[0], sizeof text[0]),
                                  mr_shape_text(call->inputs[1].shape, text[1], sizeof text[1]),
                                  mr_shape_text(call->inputs[2].shape, text[2], sizeof text[2]));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, mr_tensor_count(input), MR_GRAIN, clip_piece, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Select", .run = select_v1},
    {.op = "SelectV2", .run = select_v2},
    {.op = "ClipByValue", .run = clip_by_value},
};
MR_KERNEL_FAMILY(math_select);
