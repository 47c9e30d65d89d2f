/* ApplyGradientDescent, ApplyMomentum, ApplyAdam, by reference and by handle: one pass over the variable and its slots,
 * in place, with TensorFlow's formulas (core/kernels/training_ops.cc). */
#include "graph/state/state.h"

#include "kernels/common.h"
#include <math.h>

typedef struct numbers {
    void *variable, *first, *second; /* the slots: accum, or m and v */
    const void *gradient;
    double rate, momentum, beta1, beta2, epsilon;
    bool nesterov;
} numbers;

#define OPTIMIZERS(suffix, type, root)                                                                                 \
    MR_INLINE void descend_##suffix##_body(const numbers *n, int64_t begin, int64_t end)                               \
    {                                                                                                                  \
        type *restrict x = n->variable;                                                                                \
        const type *restrict g = n->gradient;                                                                          \
        const type rate = (type)n->rate;                                                                               \
        for (int64_t i = begin; i < end; i++) x[i] -= g[i] * rate;                                                     \
    }                                                                                                                  \
    MR_INLINE void momentum_##suffix##_body(const numbers *n, int64_t begin, int64_t end)                              \
    {                                                                                                                  \
        type *restrict x = n->variable, *restrict a = n->first;                                                        \
        const type *restrict g = n->gradient;                                                                          \
        const type rate = (type)n->rate, momentum = (type)n->momentum;                                                 \
        if (n->nesterov)                                                                                               \
            for (int64_t i = begin; i < end; i++) {                                                                    \
                a[i] = a[i] * momentum + g[i];                                                                         \
                x[i] -= g[i] * rate + a[i] * momentum * rate;                                                          \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t i = begin; i < end; i++) {                                                                    \
                a[i] = a[i] * momentum + g[i];                                                                         \
                x[i] -= a[i] * rate;                                                                                   \
            }                                                                                                          \
    }                                                                                                                  \
    MR_INLINE void adam_##suffix##_body(const numbers *n, int64_t begin, int64_t end)                                  \
    {                                                                                                                  \
        type *restrict x = n->variable, *restrict m = n->first, *restrict v = n->second;                               \
        const type *restrict g = n->gradient;                                                                          \
        const type rate = (type)n->rate, epsilon = (type)n->epsilon;                                                   \
        const type beta1 = (type)n->beta1, rest1 = 1 - (type)n->beta1, rest2 = 1 - (type)n->beta2;                     \
        if (n->nesterov)                                                                                               \
            for (int64_t i = begin; i < end; i++) {                                                                    \
                m[i] += (g[i] - m[i]) * rest1;                                                                         \
                v[i] += (g[i] * g[i] - v[i]) * rest2;                                                                  \
                x[i] -= (g[i] * rest1 + beta1 * m[i]) * rate / (root(v[i]) + epsilon);                                 \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t i = begin; i < end; i++) {                                                                    \
                m[i] += (g[i] - m[i]) * rest1;                                                                         \
                v[i] += (g[i] * g[i] - v[i]) * rest2;                                                                  \
                x[i] -= m[i] * rate / (root(v[i]) + epsilon);                                                          \
            }                                                                                                          \
    }                                                                                                                  \
    MR_LEVELS(descend_##suffix, (const numbers *n, int64_t begin, int64_t end), (n, begin, end))                       \
    MR_LEVELS(momentum_##suffix, (const numbers *n, int64_t begin, int64_t end), (n, begin, end))                      \
    MR_LEVELS(adam_##suffix, (const numbers *n, int64_t begin, int64_t end), (n, begin, end))
OPTIMIZERS(float, float, sqrtf)
OPTIMIZERS(double, double, sqrt)

typedef void (*const *level_table)(const numbers *n, int64_t begin, int64_t end);

typedef struct loop {
    void (*body)(const numbers *n, int64_t begin, int64_t end);
    const numbers *numbers;
} loop;

static void run_piece(void *context, int64_t begin, int64_t end)
{
    const loop *l = context;
    l->body(l->numbers, begin, end);
}

static double scalar(const mr_tensor *tensor)
{
    return tensor->dtype == MR_DOUBLE ? *mr_tensor_doubles(tensor) : (double)*mr_tensor_floats(tensor);
}

/* Slots and gradient must have the variable's shape; hyperparameters must be scalars. */
static mr_status check(mr_kernel_call *call, int slots, int gradient, mr_error *error)
{
    const mr_tensor *variable = &call->inputs[0];
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < call->node->input_count; i++) {
        const mr_tensor *input = &call->inputs[i];
        bool is_like = i < slots || i == gradient;
        if (input->dtype != variable->dtype)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but input %d is a %s",
                                  mr_dtype_name(variable->dtype), i, mr_dtype_name(input->dtype));
        if (is_like ? !mr_shape_equal(input->shape, variable->shape) : mr_tensor_count(input) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "the variable has shape %s, but input %d has shape %s and must have %s",
                                  mr_shape_text(variable->shape, wanted, sizeof wanted), i,
                                  mr_shape_text(input->shape, given, sizeof given),
                                  is_like ? "the same shape" : "a scalar shape");
    }
    return MR_OK;
}

static mr_status apply(mr_kernel_call *call, const numbers *n, level_table floats, level_table doubles)
{
    const mr_tensor *variable = &call->inputs[0];
    loop l = {.body = (variable->dtype == MR_DOUBLE ? doubles : floats)[mr_cpu()], .numbers = n};
    mr_pool_for(call->device->pool, mr_tensor_count(variable), MR_GRAIN, run_piece, &l);
    return MR_OK;
}

static mr_status apply_gradient_descent(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check(call, 1, 2, error));
    const mr_tensor *in = call->inputs;
    numbers n = {.variable = in[0].data, .rate = scalar(&in[1]), .gradient = in[2].data};
    return apply(call, &n, descend_float, descend_double);
}

static mr_status apply_momentum(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check(call, 2, 3, error));
    const mr_tensor *in = call->inputs;
    numbers n = {.variable = in[0].data,
                 .first = in[1].data,
                 .rate = scalar(&in[2]),
                 .gradient = in[3].data,
                 .momentum = scalar(&in[4]),
                 .nesterov = mr_attr_bool_or(call->node->attrs, "use_nesterov", false)};
    return apply(call, &n, momentum_float, momentum_double);
}

static mr_status apply_adam(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check(call, 3, 9, error));
    const mr_tensor *in = call->inputs;
    numbers n = {.variable = in[0].data,
                 .first = in[1].data,
                 .second = in[2].data,
                 .beta1 = scalar(&in[6]),
                 .beta2 = scalar(&in[7]),
                 .epsilon = scalar(&in[8]),
                 .gradient = in[9].data,
                 .nesterov = mr_attr_bool_or(call->node->attrs, "use_nesterov", false)};
    double beta1_power = scalar(&in[3]), beta2_power = scalar(&in[4]), rate = scalar(&in[5]);
    if (in[0].dtype == MR_DOUBLE)
        n.rate = rate * sqrt(1 - beta2_power) / (1 - beta1_power);
    else
        n.rate = (float)rate * sqrtf(1 - (float)beta2_power) / (1 - (float)beta1_power);
    return apply(call, &n, adam_float, adam_double);
}

static const mr_kernel kernels[] = {
    {.op = "ApplyGradientDescent", .types = "T: float, double", .run = apply_gradient_descent, .updates = 0b1},
    {.op = "ResourceApplyGradientDescent", .types = "T: float, double", .run = apply_gradient_descent, .updates = 0b1},
    {.op = "ApplyMomentum", .types = "T: float, double", .run = apply_momentum, .updates = 0b11},
    {.op = "ResourceApplyMomentum", .types = "T: float, double", .run = apply_momentum, .updates = 0b11},
    {.op = "ApplyAdam", .types = "T: float, double", .run = apply_adam, .updates = 0b111},
    {.op = "ResourceApplyAdam", .types = "T: float, double", .run = apply_adam, .updates = 0b111},
};
const mr_kernel_table mr_state_kernels_optimizer = {kernels, sizeof kernels / sizeof kernels[0]};
