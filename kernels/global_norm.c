/* BatchNormWithGlobalNormalization and its gradient: normalization with given means and variances. */
#include "kernels/common.h"
#include <math.h>
#include <stdlib.h>

typedef struct norm_attrs {
    float epsilon;
    bool scales;
} norm_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    norm_attrs *attrs = prepared;
    attrs->scales = mr_attr_bool_or(node->attrs, "scale_after_normalization", true);
    return mr_attr_get_float(node->attrs, "variance_epsilon", &attrs->epsilon, error);
}

/* Checks that x has rank 4, and that inputs [1, last) are vectors of its channels. */
static mr_status check(const mr_kernel_call *call, int last, mr_error *error)
{
    static const char *const names[] = {"input", "mean", "var", "beta", "gamma"};
    mr_shape x = call->inputs[0].shape;
    if (x.rank != 4) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    for (int i = 1; i < last; i++) {
        mr_shape vector = call->inputs[i].shape;
        const char *name = last == 4 && i == 3 ? "gamma" : names[i];
        if (vector.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 1-dimensional", name);
        if (vector.dims[0] != x.dims[3])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Must provide as many %ss as the last "
                                  "dimension of the input tensor",
                                  name);
    }
    return MR_OK;
}

#define NORMALIZE(type, square_root)                                                                                   \
    {                                                                                                                  \
        const type *x = call->inputs[0].data, *mean = call->inputs[1].data, *variance = call->inputs[2].data;          \
        const type *beta = call->inputs[3].data, *gamma = call->inputs[4].data;                                        \
        type *y = call->outputs[0].data;                                                                               \
        for (int64_t c = 0; c < channels; c++) {                                                                       \
            type scale = 1 / square_root(variance[c] + (type)attrs->epsilon);                                          \
            if (attrs->scales) scale *= gamma[c];                                                                      \
            for (int64_t i = c; i < count; i += channels) y[i] = (x[i] - mean[c]) * scale + beta[c];                   \
        }                                                                                                              \
    }

static mr_status normalize(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(normalize);
    const norm_attrs *attrs = call->prepared;
    MR_TRY(check(call, 5, error));
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    int64_t count = mr_tensor_count(&call->inputs[0]), channels = call->inputs[0].shape.dims[3];
    if (count == 0) return MR_OK;
    if (call->inputs[0].dtype == MR_FLOAT)
        NORMALIZE(float, sqrtf)
    else
        NORMALIZE(double, sqrt)
    return MR_OK;
}

#define GRADIENT(type, square_root)                                                                                    \
    {                                                                                                                  \
        const type *x = call->inputs[0].data, *mean = call->inputs[1].data, *variance = call->inputs[2].data;          \
        const type *gamma = call->inputs[3].data, *dy = call->inputs[4].data;                                          \
        type *out[5];                                                                                                  \
        for (int i = 0; i < 5; i++) out[i] = call->outputs[i].data;                                                    \
        for (int64_t c = 0; c < channels; c++) {                                                                       \
            double sum = 0, weighted = 0;                                                                              \
            type v = variance[c] + (type)attrs->epsilon, scale = 1 / square_root(v);                                   \
            type wide = attrs->scales ? scale * gamma[c] : scale;                                                      \
            for (int64_t i = c; i < count; i += channels) {                                                            \
                sum += (double)dy[i];                                                                                  \
                weighted += (double)dy[i] * (double)(x[i] - mean[c]);                                                  \
                out[0][i] = dy[i] * wide;                                                                              \
            }                                                                                                          \
            out[1][c] = -(type)sum * wide;                                                                             \
            out[2][c] = (type)(weighted * -0.5) * (wide / v);                                                          \
            out[3][c] = (type)sum;                                                                                     \
            out[4][c] = attrs->scales ? (type)weighted * scale : 0;                                                    \
        }                                                                                                              \
    }

static mr_status gradient(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(gradient);
    const norm_attrs *attrs = call->prepared;
    MR_TRY(check(call, 4, error));
    if (!mr_shape_equal(call->inputs[4].shape, call->inputs[0].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "backprop must have the shape of the input");
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    int64_t count = mr_tensor_count(&call->inputs[0]), channels = call->inputs[0].shape.dims[3];
    for (int i = 1; i < 5; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(channels), error));
    if (channels == 0) return MR_OK;
    if (call->inputs[0].dtype == MR_FLOAT)
        GRADIENT(float, sqrtf)
    else
        GRADIENT(double, sqrt)
    return MR_OK;
}

#define ROW(name, function)                                                                                            \
    {.op = name,                                                                                                       \
     .types = "T: half, float, double",                                                                                \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(norm_attrs),                                                                        \
     .prepare = prepare}
static const mr_kernel kernels[] = {
    ROW("BatchNormWithGlobalNormalization", normalize),
    ROW("BatchNormWithGlobalNormalizationGrad", gradient),
};
MR_KERNEL_FAMILY(global_norm);
