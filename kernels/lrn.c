/* LRN, local response normalization over the channels, and its gradient. */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>

typedef struct lrn_attrs {
    int64_t radius;
    float bias, alpha, beta;
} lrn_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    lrn_attrs *attrs = prepared;
    *attrs = (lrn_attrs){.radius = mr_attr_int_or(node->attrs, "depth_radius", 5),
                         .bias = mr_attr_float_or(node->attrs, "bias", 1),
                         .alpha = mr_attr_float_or(node->attrs, "alpha", 1),
                         .beta = mr_attr_float_or(node->attrs, "beta", 0.5f)};
    if (attrs->radius < 0 || attrs->radius > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "depth_radius = %" PRId64 " larger than int max",
                              attrs->radius);
    return MR_OK;
}

typedef struct lrn_job {
    const lrn_attrs *attrs;
    int64_t channels;
    const float *input, *output, *gradient;
    float *target;
} lrn_job;

static float norm_at(const lrn_job *job, const float *row, int64_t from, int64_t to)
{
    float sum = 0;
    for (int64_t k = from; k < to; k++) sum += row[k] * row[k];
    return job->attrs->bias + job->attrs->alpha * sum;
}

static void window(const lrn_job *job, int64_t c, int64_t *from, int64_t *to)
{
    *from = MR_MAX(0, c - job->attrs->radius);
    *to = MR_MIN(job->channels, c + job->attrs->radius + 1);
}

static void forward(void *context, int64_t begin, int64_t end)
{
    const lrn_job *job = context;
    float beta = job->attrs->beta;
    for (int64_t i = begin; i < end; i++) {
        const float *row = job->input + i * job->channels;
        for (int64_t c = 0; c < job->channels; c++) {
            int64_t from, to;
            window(job, c, &from, &to);
            float norm = norm_at(job, row, from, to);
            float scale = beta == 1.0f ? 1 / norm : beta == 0.5f ? 1 / sqrtf(norm) : expf(logf(norm) * -beta);
            job->target[i * job->channels + c] = row[c] * scale;
        }
    }
}

static void backward(void *context, int64_t begin, int64_t end)
{
    const lrn_job *job = context;
    const float alpha = job->attrs->alpha, beta = job->attrs->beta;
    for (int64_t i = begin; i < end; i++) {
        const float *row = job->input + i * job->channels, *output = job->output + i * job->channels;
        const float *gradient = job->gradient + i * job->channels;
        float *target = job->target + i * job->channels;
        for (int64_t c = 0; c < job->channels; c++) target[c] = 0;
        for (int64_t c = 0; c < job->channels; c++) {
            int64_t from, to;
            window(job, c, &from, &to);
            float norm = norm_at(job, row, from, to);
            for (int64_t k = from; k < to; k++) {
                float part = -2.0f * alpha * beta * row[k] * output[c] / norm;
                if (k == c) part += powf(norm, -beta);
                target[k] += part * gradient[c];
            }
        }
    }
}

static mr_status run_rows(mr_kernel_call *call, lrn_job *job, const mr_tensor *input, mr_pool_body body,
                          mr_error *error)
{
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    int64_t count = mr_tensor_count(input);
    if (count == 0) return MR_OK;
    job->attrs = call->prepared;
    job->channels = input->shape.dims[3];
    job->input = input->data;
    job->target = call->outputs[0].data;
    int64_t work = job->channels * MR_MIN(job->channels, 2 * MR_MAX(0, job->attrs->radius) + 1);
    mr_pool_for(call->device->pool, count / job->channels, MR_MAX(1, MR_GRAIN / 4 / work), body, job);
    return MR_OK;
}

static mr_status lrn(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(lrn);
    const mr_tensor *input = &call->inputs[0];
    if (input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "in must be 4-dimensional");
    lrn_job job = {0};
    return run_rows(call, &job, input, forward, error);
}

static mr_status lrn_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(lrn_grad);
    const mr_tensor *gradient = &call->inputs[0], *image = &call->inputs[1], *output = &call->inputs[2];
    if (gradient->shape.rank != 4 || image->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "inputs must be 4-dimensional");
    if (!mr_shape_equal(gradient->shape, image->shape) || !mr_shape_equal(image->shape, output->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_grads, input_image, and out_image should have the same shape");
    lrn_job job = {.output = output->data, .gradient = gradient->data};
    return run_rows(call, &job, image, backward, error);
}

static const mr_kernel kernels[] = {
    {.op = "LRN", .run = lrn, .prepared_size_bytes = sizeof(lrn_attrs), .prepare = prepare},
    {.op = "LRNGrad", .run = lrn_grad, .prepared_size_bytes = sizeof(lrn_attrs), .prepare = prepare},
};
MR_KERNEL_FAMILY(lrn);
