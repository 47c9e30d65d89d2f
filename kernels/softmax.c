/* Softmax and the losses based on it. Each row is processed while it is in the cache: maximum, sum of exponentials,
 * result. The rows of a batch are distributed over the threads. InTopK and TopKV2 process rows in the same way. */
#include "kernels/vector.h"
#include "kernels/vector_math.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#pragma clang diagnostic ignored "-Wpass-failed"

/* Computes target[i] = exp(row[i] - shift) and their sum, in parts that stay in the first cache. */
MR_INLINE void exp_row_body(float *target, const float *row, int64_t count, float shift, float *sum)
{
    constexpr int64_t PART = 1024;
    mr_vector total = {};
    float rest = 0;
    for (int64_t from = 0; from < count; from += PART) {
        int64_t to = MR_MIN(count, from + PART), at = from;
        _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = from; i < to; i++) target[i] =
            mr_expf(row[i] - shift);
        for (; at + 16 <= to; at += 16) total += mr_vector_load(target + at);
        for (; at < to; at++) rest += target[at];
    }
    *sum = mr_vector_sum(total) + rest;
}
MR_LEVELS(exp_row, (float *target, const float *row, int64_t count, float shift, float *sum),
          (target, row, count, shift, sum))

/* The larger one in each lane; NaN if either is. */
MR_INLINE mr_vector larger(mr_vector a, mr_vector b)
{
    return mr_vector_choose((b > a) | (b != b), b, a);
}

MR_INLINE void largest_row_body(const float *row, int64_t count, float *largest)
{
    const mr_vector low = mr_vector_of(-INFINITY);
    mr_vector all[4] = {low, low, low, low};
    int64_t at = 0;
    for (; at + 64 <= count; at += 64) MR_UNROLL
    for (int i = 0; i < 4; i++) all[i] = larger(all[i], mr_vector_load(row + at + 16 * i));
    for (; at + 16 <= count; at += 16) all[0] = larger(all[0], mr_vector_load(row + at));
    float lanes[16];
    mr_vector one = larger(larger(all[0], all[1]), larger(all[2], all[3]));
    memcpy(lanes, &one, sizeof lanes);
    float found = -INFINITY;
    for (int i = 0; i < 16; i++) found = lanes[i] > found || lanes[i] != lanes[i] ? lanes[i] : found;
    for (; at < count; at++) found = row[at] > found || row[at] != row[at] ? row[at] : found;
    *largest = found;
}
MR_LEVELS(largest_row, (const float *row, int64_t count, float *largest), (row, count, largest))

/* Computes the row's softmax times a factor.
 * label  -1, or the class whose probability is reduced by one before: the gradient of the cross entropy
 * loss   null, or the cross entropy */
MR_INLINE void softmax_row_body(float *target, const float *row, int64_t count, int64_t label, float factor,
                                float *loss)
{
    float largest, sum;
    const float own = label >= 0 ? row[label] : 0; /* target may be row */
    largest_row_body(row, count, &largest);
    exp_row_body(target, row, count, largest, &sum);
    const float scale = 1.0f / sum, probability = label >= 0 ? target[label] * scale : 0;
    for (int64_t i = 0; i < count; i++) target[i] = target[i] * scale * factor;
    if (label >= 0) target[label] = (probability - 1) * factor;
    if (loss) *loss = (float)log((double)sum) - (own - largest);
}
MR_LEVELS(softmax_row, (float *target, const float *row, int64_t count, int64_t label, float factor, float *loss),
          (target, row, count, label, factor, loss))

static void softmax_row_float(float *target, const float *row, int64_t count, bool as_log)
{
    if (!as_log) {
        softmax_row[mr_cpu()](target, row, count, -1, 1, nullptr);
        return;
    }
    float largest, sum;
    largest_row[mr_cpu()](row, count, &largest);
    float chunk[512];
    double total = 0;
    for (int64_t at = 0; at < count; at += 512) {
        exp_row[mr_cpu()](chunk, row + at, MR_MIN(512, count - at), largest, &sum);
        total += (double)sum;
    }
    float log_sum = (float)log(total);
    for (int64_t i = 0; i < count; i++) target[i] = row[i] - largest - log_sum;
}

static void softmax_row_double(double *target, const double *row, int64_t count, bool as_log)
{
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) largest = row[i] > largest || row[i] != row[i] ? row[i] : largest;
    for (int64_t i = 0; i < count; i++) sum += exp(row[i] - largest);
    double log_sum = log(sum);
    for (int64_t i = 0; i < count; i++) target[i] = as_log ? row[i] - largest - log_sum : exp(row[i] - largest) / sum;
}

typedef struct softmax_job {
    mr_dtype dtype;
    const void *logits;
    void *target;
    int64_t classes;
    bool as_log;
    /* only for losses */
    const void *labels;
    void *loss;
    int64_t logit_row_step, logit_step, label_row_step, label_step; /* 0 where an operand is repeated */
} softmax_job;

static void softmax_rows(void *context, int64_t begin, int64_t end)
{
    const softmax_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t at = row * job->classes;
        if (job->dtype == MR_FLOAT)
            softmax_row_float((float *)job->target + at, (const float *)job->logits + at, job->classes, job->as_log);
        else
            softmax_row_double((double *)job->target + at, (const double *)job->logits + at, job->classes, job->as_log);
    }
}

static mr_status softmax_as(mr_kernel_call *call, bool as_log, mr_error *error)
{
    const mr_tensor *logits = &call->inputs[0];
    if (logits->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "logits must have >= 1 dimension, got []");
    softmax_job job = {.dtype = logits->dtype, .logits = logits->data, .as_log = as_log};
    job.classes = logits->shape.dims[logits->shape.rank - 1];
    int64_t count = mr_tensor_count(logits);
    MR_TRY(mr_kernel_forward(call, 0, 0, logits->shape, error));
    job.target = call->outputs[0].data;
    if (count > 0)
        mr_pool_for(call->device->pool, count / job.classes, MR_MAX(1, MR_GRAIN / 8 / job.classes), softmax_rows, &job);
    return MR_OK;
}

static mr_status softmax(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(softmax);
    return softmax_as(call, false, error);
}

static mr_status log_softmax(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(log_softmax);
    return softmax_as(call, true, error);
}

/* loss = sum(labels · (log sum exp - logits)), backprop = softmax - labels. */
#define LOSS_ROW(type, exp_function, log_function)                                                                     \
    {                                                                                                                  \
        const type *x = (const type *)job->logits + row * job->logit_row_step;                                         \
        const type *labels = (const type *)job->labels + row * job->label_row_step;                                    \
        type *backprop = (type *)job->target + row * job->classes, largest = -(type)INFINITY;                          \
        double sum = 0, loss = 0;                                                                                      \
        for (int64_t i = 0; i < job->classes; i++) {                                                                   \
            type value = x[i * job->logit_step];                                                                       \
            largest = value > largest || value != value ? value : largest;                                             \
        }                                                                                                              \
        for (int64_t i = 0; i < job->classes; i++) {                                                                   \
            backprop[i] = exp_function(x[i * job->logit_step] - largest);                                              \
            sum += (double)backprop[i];                                                                                \
        }                                                                                                              \
        type log_sum = (type)log(sum), scale = (type)(1 / sum);                                                        \
        for (int64_t i = 0; i < job->classes; i++) {                                                                   \
            type label = labels[i * job->label_step];                                                                  \
            loss += (double)(label * (log_sum - (x[i * job->logit_step] - largest)));                                  \
            backprop[i] = backprop[i] * scale - label;                                                                 \
        }                                                                                                              \
        ((type *)job->loss)[row] = (type)loss;                                                                         \
    }

static void loss_rows(void *context, int64_t begin, int64_t end)
{
    const softmax_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        if (job->dtype == MR_FLOAT)
            LOSS_ROW(float, mr_expf, logf)
        else
            LOSS_ROW(double, exp, log)
    }
}

static mr_status cross_entropy(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(cross_entropy);
    const mr_tensor *logits = &call->inputs[0], *labels = &call->inputs[1];
    mr_shape a = logits->shape, b = labels->shape, wide = {.rank = 2};
    bool fits = a.rank == 2 && b.rank == 2;
    for (int i = 0; fits && i < 2; i++) {
        fits = a.dims[i] == b.dims[i] || a.dims[i] == 1 || b.dims[i] == 1;
        wide.dims[i] = a.dims[i] == 1 ? b.dims[i] : a.dims[i];
    }
    if (!fits) {
        char a_text[MR_SHAPE_TEXT_SIZE], b_text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                              mr_shape_text(a, a_text, sizeof a_text), mr_shape_text(b, b_text, sizeof b_text));
    }
    softmax_job job = {.dtype = logits->dtype, .logits = logits->data, .labels = labels->data, .classes = wide.dims[1]};
    job.logit_row_step = a.dims[0] == 1 ? 0 : a.dims[1];
    job.logit_step = a.dims[1] == 1 ? 0 : 1;
    job.label_row_step = b.dims[0] == 1 ? 0 : b.dims[1];
    job.label_step = b.dims[1] == 1 ? 0 : 1;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(wide.dims[0]), error));
    MR_TRY(mr_kernel_output(call, 1, wide, error));
    job.loss = call->outputs[0].data;
    job.target = call->outputs[1].data;
    if (mr_shape_count(wide) > 0)
        mr_pool_for(call->device->pool, wide.dims[0], MR_MAX(1, MR_GRAIN / 8 / job.classes), loss_rows, &job);
    else
        memset(job.loss, 0, mr_tensor_size_bytes(&call->outputs[0]));
    return MR_OK;
}

static int64_t label_at(const mr_tensor *labels, int64_t i)
{
    return labels->dtype == MR_INT64 ? ((const int64_t *)labels->data)[i] : ((const int32_t *)labels->data)[i];
}

typedef struct sparse_job {
    mr_dtype dtype;
    const void *logits;
    const mr_tensor *labels;
    const void *scale; /* null, or a factor of each row of backprop */
    void *loss, *backprop;
    int64_t classes;
} sparse_job;

static void sparse_row_float(const sparse_job *job, int64_t row)
{
    const float *x = (const float *)job->logits + row * job->classes;
    float *backprop = (float *)job->backprop + row * job->classes;
    softmax_row[mr_cpu()](backprop, x, job->classes, label_at(job->labels, row),
                          job->scale ? ((const float *)job->scale)[row] : 1, (float *)job->loss + row);
}

static void sparse_row_double(const sparse_job *job, int64_t row)
{
    const double *x = (const double *)job->logits + row * job->classes;
    double *backprop = (double *)job->backprop + row * job->classes;
    int64_t label = label_at(job->labels, row);
    double own = x[label], largest = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < job->classes; i++) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (int64_t i = 0; i < job->classes; i++) sum += backprop[i] = exp(x[i] - largest);
    for (int64_t i = 0; i < job->classes; i++) backprop[i] *= 1 / sum;
    backprop[label] -= 1;
    ((double *)job->loss)[row] = log(sum) - (own - largest);
    for (int64_t i = 0; i < job->classes && job->scale; i++) backprop[i] *= ((const double *)job->scale)[row];
}

static void sparse_rows(void *context, int64_t begin, int64_t end)
{
    const sparse_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        if (job->dtype == MR_FLOAT)
            sparse_row_float(job, row);
        else
            sparse_row_double(job, row);
    }
}

static mr_status sparse_cross_entropy(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(sparse_cross_entropy);
    const bool is_scaled = call->node->input_count == 3;
    const mr_tensor *logits = &call->inputs[0], *labels = &call->inputs[1];
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    mr_shape_text(logits->shape, a, sizeof a);
    mr_shape_text(labels->shape, b, sizeof b);
    if (logits->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "logits must be 2-D, but got shape %s", a);
    if (labels->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "labels must be 1-D, but got shape %s", b);
    if (labels->shape.dims[0] != logits->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "logits and labels must have the same first dimension, got logits shape %s and labels "
                              "shape %s",
                              a, b);
    int64_t rows = logits->shape.dims[0], classes = logits->shape.dims[1];
    if (classes == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Must have at least one class, but got logits shape %s", a);
    for (int64_t i = 0; i < rows; i++) {
        int64_t label = label_at(labels, i);
        if (label < 0 || label >= classes)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Received a label value of %" PRId64
                                  " which is outside the valid range of [0, %" PRId64 ")",
                                  label, classes);
    }
    sparse_job job = {.dtype = logits->dtype, .logits = logits->data, .labels = labels, .classes = classes};
    if (is_scaled && mr_tensor_count(&call->inputs[2]) != rows)
        return mr_kernel_fail(call->node, error, MR_INTERNAL, "the scale has not one element for each row");
    if (is_scaled) job.scale = call->inputs[2].data;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows), error));
    MR_TRY(mr_kernel_forward(call, 1, 0, logits->shape, error));
    job.loss = call->outputs[0].data;
    job.backprop = call->outputs[1].data;
    if (rows > 0) mr_pool_for(call->device->pool, rows, MR_MAX(1, MR_GRAIN / 8 / classes), sparse_rows, &job);
    return MR_OK;
}

/* True if fewer than k classes have a higher score than the target; false if the target is out of range or a score is
 * not finite. */
static mr_status in_top_k_of(mr_kernel_call *call, int64_t k, mr_error *error)
{
    const mr_tensor *predictions = &call->inputs[0], *targets = &call->inputs[1];
    if (predictions->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "predictions must be 2-dimensional");
    if (targets->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "targets must be 1-dimensional");
    if (predictions->shape.dims[0] != targets->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "First dimension of predictions %" PRId64 " must match length of targets %" PRId64,
                              predictions->shape.dims[0], targets->shape.dims[0]);
    int64_t rows = predictions->shape.dims[0], classes = predictions->shape.dims[1];
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows), error));
    for (int64_t row = 0; row < rows; row++) {
        const float *scores = (const float *)predictions->data + row * classes;
        int64_t target = label_at(targets, row), above = 0;
        bool usable = target >= 0 && target < classes && isfinite(scores[target]);
        for (int64_t i = 0; usable && i < classes; i++) {
            usable = isfinite(scores[i]);
            above += scores[i] > scores[target];
        }
        ((bool *)call->outputs[0].data)[row] = usable && above < k;
    }
    return MR_OK;
}

static mr_status in_top_k(mr_kernel_call *call, mr_error *error)
{
    return in_top_k_of(call, mr_attr_int_or(call->node->attrs, "k", 0), error);
}

static mr_status in_top_k_v2(mr_kernel_call *call, mr_error *error)
{
    int64_t k;
    MR_TRY(mr_kernel_int(call, 2, "k", &k, error));
    return in_top_k_of(call, k, error);
}

static const mr_kernel kernels[] = {
    {.op = "Softmax", .run = softmax},
    {.op = "LogSoftmax", .run = log_softmax},
    {.op = "SoftmaxCrossEntropyWithLogits", .run = cross_entropy},
    {.op = "SparseSoftmaxCrossEntropyWithLogits", .run = sparse_cross_entropy},
    {.op = "_ScaledSparseSoftmaxCrossEntropyWithLogits", .types = "T: float, double", .run = sparse_cross_entropy},
    {.op = "InTopK", .run = in_top_k},
    {.op = "InTopKV2", .run = in_top_k_v2, .host_inputs = 1 << 2},
};
MR_KERNEL_FAMILY(softmax);
