/* CTCLoss: the negative log probability of a label sequence, summed over all alignments with the inputs, and its
 * gradient (Graves et al., "Connectionist Temporal Classification", 2006). The blank is the last class. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

constexpr double LOG_ZERO = -__builtin_inf();

typedef struct ctc_attrs {
    bool collapses, merges, ignores_longer;
} ctc_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    (void)error;
    *(ctc_attrs *)prepared =
        (ctc_attrs){.collapses = mr_attr_bool_or(node->attrs, "preprocess_collapse_repeated", false),
                    .merges = mr_attr_bool_or(node->attrs, "ctc_merge_repeated", true),
                    .ignores_longer = mr_attr_bool_or(node->attrs, "ignore_longer_outputs_than_inputs", false)};
    return MR_OK;
}

typedef struct ctc_job {
    const ctc_attrs *attrs;
    mr_dtype dtype;
    int64_t batch, classes;
    const void *inputs;
    const int32_t *lengths;
    const int64_t *starts; /* labels of row b: values[starts[b], starts[b + 1]) */
    const int32_t *values;
    void *loss, *gradient;
    int out_of_memory;
} ctc_job;

static double log_sum(double a, double b)
{
    if (a == LOG_ZERO) return b;
    if (b == LOG_ZERO) return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

static double input_at(const ctc_job *job, int64_t t, int64_t b, int64_t c)
{
    int64_t at = (t * job->batch + b) * job->classes + c;
    return job->dtype == MR_FLOAT ? (double)((const float *)job->inputs)[at] : ((const double *)job->inputs)[at];
}

/* The labels with blanks before, between and after them. Labels of the blank's class end the sequence. */
static int64_t expand(const ctc_job *job, int64_t b, int32_t *path)
{
    const int32_t blank = (int32_t)job->classes - 1;
    int64_t count = 0;
    for (int64_t i = job->starts[b]; i < job->starts[b + 1]; i++) {
        if (i > job->starts[b] && job->attrs->collapses && job->values[i] == job->values[i - 1]) continue;
        if (job->values[i] >= blank) continue;
        path[count++] = blank;
        path[count++] = job->values[i];
    }
    path[count++] = blank;
    return count;
}

/* One row: y [steps, classes] probabilities; alpha and beta [steps, states]. */
typedef struct ctc_row {
    const ctc_attrs *attrs;
    int64_t steps, classes, states;
    const int32_t *path;
    double *y, *alpha, *beta;
} ctc_row;

static bool can_skip(const ctc_row *r, int64_t u, int64_t other)
{
    return r->path[u] != r->classes - 1 && !(r->attrs->merges && r->path[u] == r->path[other]);
}

static bool can_stay(const ctc_row *r, int64_t u)
{
    return r->attrs->merges || r->path[u] == r->classes - 1;
}

static void forward(const ctc_row *r)
{
    int64_t states = r->states;
    for (int64_t i = 0; i < r->steps * states; i++) r->alpha[i] = LOG_ZERO;
    for (int64_t u = 0; u < MR_MIN(2, states); u++) r->alpha[u] = log(r->y[r->path[u]]);
    for (int64_t t = 1; t < r->steps; t++) {
        const double *before = r->alpha + (t - 1) * states;
        for (int64_t u = MR_MAX(0, states - 2 * (r->steps - t)); u < MR_MIN(states, 2 * (t + 1)); u++) {
            double sum = can_stay(r, u) ? before[u] : LOG_ZERO;
            if (u > 0) sum = log_sum(sum, before[u - 1]);
            if (u > 1 && can_skip(r, u, u - 2)) sum = log_sum(sum, before[u - 2]);
            r->alpha[t * states + u] = log(r->y[t * r->classes + r->path[u]]) + sum;
        }
    }
}

static void backward(const ctc_row *r)
{
    int64_t states = r->states;
    for (int64_t i = 0; i < r->steps * states; i++) r->beta[i] = LOG_ZERO;
    for (int64_t u = MR_MAX(0, states - 2); u < states; u++) r->beta[(r->steps - 1) * states + u] = 0;
    for (int64_t t = r->steps - 2; t >= 0; t--) {
        const double *after = r->beta + (t + 1) * states, *y = r->y + (t + 1) * r->classes;
        for (int64_t u = MR_MAX(0, states - 2 * (r->steps - t)); u < MR_MIN(states, 2 * (t + 1)); u++) {
            double sum = can_stay(r, u) ? after[u] + log(y[r->path[u]]) : LOG_ZERO;
            if (u + 1 < states) sum = log_sum(sum, after[u + 1] + log(y[r->path[u + 1]]));
            if (u + 2 < states && can_skip(r, u, u + 2)) sum = log_sum(sum, after[u + 2] + log(y[r->path[u + 2]]));
            r->beta[t * states + u] = sum;
        }
    }
}

static void put(mr_dtype dtype, void *target, int64_t at, double value)
{
    if (dtype == MR_FLOAT)
        ((float *)target)[at] = (float)value;
    else
        ((double *)target)[at] = value;
}

static void put_gradient(const ctc_job *job, const ctc_row *r, int64_t b, double log_p, double *sums)
{
    for (int64_t t = 0; t < r->steps; t++) {
        for (int64_t c = 0; c < r->classes; c++) sums[c] = LOG_ZERO;
        for (int64_t u = 0; u < r->states; u++) {
            int64_t at = t * r->states + u;
            sums[r->path[u]] = log_sum(sums[r->path[u]], r->alpha[at] + r->beta[at]);
        }
        for (int64_t c = 0; c < r->classes; c++) {
            double y = r->y[t * r->classes + c];
            if (log_p != LOG_ZERO) y -= exp(sums[c] - log_p);
            put(job->dtype, job->gradient, (t * job->batch + b) * job->classes + c, y);
        }
    }
}

static bool run_row(const ctc_job *job, int64_t b)
{
    int64_t labels = job->starts[b + 1] - job->starts[b], steps = job->lengths[b], cells, total;
    if (steps == 0 || (job->attrs->ignores_longer && labels > steps)) return true;
    ctc_row r = {.attrs = job->attrs, .steps = steps, .classes = job->classes};
    int32_t *path = malloc((size_t)(2 * labels + 1) * sizeof *path);
    if (path == nullptr) return false;
    r.states = expand(job, b, path);
    r.path = path;
    bool fits = !__builtin_mul_overflow(2 * steps, r.states, &cells) &&
                !__builtin_add_overflow(cells, (steps + 1) * job->classes, &total) &&
                total < INT64_MAX / (int64_t)sizeof(double);
    r.y = fits ? malloc((size_t)total * sizeof(double)) : nullptr;
    if (r.y == nullptr) {
        free(path);
        return false;
    }
    double *sums = r.y + steps * job->classes;
    r.alpha = sums + job->classes;
    r.beta = r.alpha + steps * r.states;
    for (int64_t t = 0; t < steps; t++) {
        double most = LOG_ZERO, sum = 0, *y = r.y + t * job->classes;
        for (int64_t c = 0; c < job->classes; c++) most = fmax(most, input_at(job, t, b, c));
        for (int64_t c = 0; c < job->classes; c++) sum += y[c] = exp(input_at(job, t, b, c) - most);
        for (int64_t c = 0; c < job->classes; c++) y[c] /= sum;
    }
    forward(&r);
    backward(&r);
    double log_p = LOG_ZERO;
    for (int64_t u = 0; u < r.states; u++) log_p = log_sum(log_p, r.alpha[u] + r.beta[u]);
    put(job->dtype, job->loss, b, -log_p);
    put_gradient(job, &r, b, log_p, sums);
    free(r.y);
    free(path);
    return true;
}

static void run_rows(void *context, int64_t begin, int64_t end)
{
    ctc_job *job = context;
    for (int64_t b = begin; b < end; b++)
        if (!run_row(job, b)) __atomic_store_n(&job->out_of_memory, 1, __ATOMIC_RELAXED);
}

/* ---- Checks ---- */

/* The indices must be sorted and unique, as in a SparseTensor. Sets starts. */
static mr_status split_labels(const mr_kernel_call *call, int64_t batch, int64_t *starts, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[1];
    const int64_t *indices = tensor->data;
    int64_t count = tensor->shape.dims[0], row = 0, longest = 0;
    for (int64_t i = 0; i < count; i++) longest = MR_MAX(longest, indices[2 * i + 1]);
    for (int64_t i = 0; i < count; i++) {
        int64_t b = indices[2 * i], t = indices[2 * i + 1];
        const char *reason = nullptr;
        if (b < 0 || b >= batch || t < 0)
            reason = "is out of bounds";
        else if (i > 0 && (b < indices[2 * i - 2] || (b == indices[2 * i - 2] && t < indices[2 * i - 1])))
            reason = "is out of order. Many sparse ops require sorted indices.";
        else if (i > 0 && b == indices[2 * i - 2] && t == indices[2 * i - 1])
            reason = "is repeated";
        if (reason != nullptr)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "label SparseTensor is not valid: indices[%" PRId64 "] = [%" PRId64 ",%" PRId64
                                  "] %s: need 0 <= index < [%" PRId64 ",%" PRId64 "]",
                                  i, b, t, reason, batch, longest + 1);
        for (; row <= b; row++) starts[row] = i;
    }
    for (; row <= batch; row++) starts[row] = count;
    return MR_OK;
}

static mr_status check_row(const mr_kernel_call *call, const ctc_job *job, int64_t b, mr_error *error)
{
    bool ended = false;
    int64_t labels = job->starts[b + 1] - job->starts[b];
    if (labels == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Labels length is zero in batch %" PRId64, b);
    for (int64_t i = job->starts[b]; i < job->starts[b + 1]; i++) {
        int32_t label = job->values[i];
        if (i > job->starts[b] && job->attrs->collapses && label == job->values[i - 1]) continue;
        if (label >= job->classes - 1) {
            ended = true;
            continue;
        }
        if (ended)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Saw a non-null label (index >= num_classes - 1) following a null label, batch: "
                                  "%" PRId64 " num_classes: %" PRId64,
                                  b, job->classes);
        if (label < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "All labels must be nonnegative integers, batch: %" PRId64 " labels: %d", b, label);
    }
    if (!job->attrs->ignores_longer && labels > job->lengths[b])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Not enough time for target transition sequence (required: %" PRId64
                              ", available: %d)%" PRId64 "You can turn this error into a warning by using the flag "
                              "ignore_longer_outputs_than_inputs",
                              labels, job->lengths[b], b);
    return MR_OK;
}

static mr_status check_shapes(const mr_kernel_call *call, mr_error *error)
{
    mr_shape inputs = call->inputs[0].shape, indices = call->inputs[1].shape, values = call->inputs[2].shape;
    mr_shape lengths = call->inputs[3].shape;
    const char *reason = inputs.rank != 3                            ? "inputs is not a 3-Tensor"
                         : lengths.rank != 1                         ? "sequence_length is not a vector"
                         : indices.rank != 2 || indices.dims[1] != 2 ? "labels_indices is not a matrix"
                         : values.rank != 1                          ? "labels_values is not a vector"
                         : inputs.dims[2] >= INT32_MAX               ? "num_classes cannot exceed max int"
                         : inputs.dims[2] < 1                        ? "num_classes must be positive"
                         : inputs.dims[1] == 0                       ? "batch_size must not be 0"
                                                                     : nullptr;
    if (reason != nullptr) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s", reason);
    if (inputs.dims[1] != lengths.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "len(sequence_length) != batch_size.  len(sequence_length):  %" PRId64
                              " batch_size: %" PRId64,
                              lengths.dims[0], inputs.dims[1]);
    if (indices.dims[0] != values.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "labels_indices and labels_values must contain the same number of rows, but saw shapes: "
                              "[%" PRId64 ",2] vs. [%" PRId64 "]",
                              indices.dims[0], values.dims[0]);
    const int32_t *steps = call->inputs[3].data;
    for (int64_t b = 0; b < lengths.dims[0]; b++) {
        if (steps[b] > inputs.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "sequence_length(%" PRId64 ") <= %" PRId64, b,
                                  inputs.dims[0]);
        if (steps[b] < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "seq_len(%" PRId64 ") < 0", b);
    }
    return MR_OK;
}

static mr_status ctc_loss(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *inputs = &call->inputs[0];
    MR_TRY(check_shapes(call, error));
    int64_t batch = inputs->shape.dims[1];
    int64_t *starts = calloc((size_t)batch + 1, sizeof *starts);
    if (starts == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    ctc_job job = {.attrs = call->prepared,
                   .dtype = inputs->dtype,
                   .batch = batch,
                   .classes = inputs->shape.dims[2],
                   .inputs = inputs->data,
                   .lengths = call->inputs[3].data,
                   .starts = starts,
                   .values = call->inputs[2].data};
    mr_status status = split_labels(call, batch, starts, error);
    for (int64_t b = 0; b < batch && status == MR_OK; b++) status = check_row(call, &job, b, error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, MR_SHAPE(batch), error);
    if (status == MR_OK) status = mr_kernel_output(call, 1, inputs->shape, error);
    if (status == MR_OK) {
        memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0]));
        if (mr_tensor_count(inputs) > 0) memset(call->outputs[1].data, 0, mr_tensor_size_bytes(&call->outputs[1]));
        job.loss = call->outputs[0].data;
        job.gradient = call->outputs[1].data;
        mr_pool_for(call->device->pool, batch, 1, run_rows, &job);
        if (job.out_of_memory) status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    }
    free(starts);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "CTCLoss", .run = ctc_loss, .prepared_size_bytes = sizeof(ctc_attrs), .prepare = prepare},
};
MR_KERNEL_FAMILY(ctc_loss);
