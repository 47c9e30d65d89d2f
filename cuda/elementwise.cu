/* Element-wise kernels: one input, two inputs with broadcasting, sums of many inputs. */
#include "cuda/gpu.h"

#define UNARY(name, type, expression)                                                                                  \
    MR_GPU_KERNEL(name, mr_gpu_unary)                                                                                  \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.count)                                                                                        \
        {                                                                                                              \
            type x = ((const type *)a.in)[i];                                                                          \
            ((type *)a.out)[i] = (expression);                                                                         \
        }                                                                                                              \
    }

UNARY(neg_float, float, -x)
UNARY(abs_float, float, fabsf(x))
UNARY(square_float, float, x *x)
UNARY(sqrt_float, float, sqrtf(x))
UNARY(rsqrt_float, float, 1.0f / sqrtf(x))
UNARY(reciprocal_float, float, 1.0f / x)
UNARY(exp_float, float, expf(x))
UNARY(log_float, float, logf(x))
UNARY(tanh_float, float, tanhf(x))
UNARY(sigmoid_float, float, 1.0f / (1.0f + expf(-x)))
UNARY(relu_float, float, x < 0 ? 0 : x)
UNARY(relu6_float, float, x < 0 ? 0 : x > 6 ? 6 : x)

/* The indices of the operands' elements for element i of the result. */
MR_GPU_FUNCTION void locate(const mr_gpu_binary *a, int64_t i, int64_t *at_a, int64_t *at_b)
{
    *at_a = a->mode == MR_GPU_SCALAR_A ? 0 : i;
    *at_b = a->mode == MR_GPU_SCALAR_B ? 0 : i;
    if (a->mode != MR_GPU_STRIDED) return;
    *at_a = *at_b = 0;
    if (a->count <= UINT32_MAX) {
        uint32_t rest = (uint32_t)i;
        for (int d = a->rank - 1; d >= 0; d--) {
            uint32_t size = (uint32_t)a->dims[d], index = rest % size;
            rest /= size;
            *at_a += index * a->a_strides[d];
            *at_b += index * a->b_strides[d];
        }
        return;
    }
    for (int d = a->rank - 1; d >= 0; d--) {
        int64_t index = i % a->dims[d];
        i /= a->dims[d];
        *at_a += index * a->a_strides[d];
        *at_b += index * a->b_strides[d];
    }
}

#define BINARY(name, type, result, expression)                                                                         \
    MR_GPU_KERNEL(name, mr_gpu_binary)                                                                                 \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.count)                                                                                        \
        {                                                                                                              \
            int64_t at_a, at_b;                                                                                        \
            locate(&a, i, &at_a, &at_b);                                                                               \
            type x = ((const type *)a.a)[at_a], y = ((const type *)a.b)[at_b];                                         \
            ((result *)a.out)[i] = (result)(expression);                                                               \
        }                                                                                                              \
    }
#define COMPARISON(name, operation)                                                                                    \
    BINARY(name##_float, float, bool, x operation y)                                                                   \
    BINARY(name##_int32, int32_t, bool, x operation y)                                                                 \
    BINARY(name##_int64, int64_t, bool, x operation y)

BINARY(add_float, float, float, x + y)
BINARY(sub_float, float, float, x - y)
BINARY(mul_float, float, float, x *y)
BINARY(div_float, float, float, x / y)
BINARY(div_no_nan_float, float, float, y == 0 ? 0 : x / y)
BINARY(maximum_float, float, float, x < y ? y : x)
BINARY(minimum_float, float, float, y < x ? y : x)
BINARY(squared_difference_float, float, float, (x - y) * (x - y))
COMPARISON(equal, ==)
COMPARISON(not_equal, !=)
COMPARISON(less, <)
COMPARISON(less_equal, <=)
COMPARISON(greater, >)
COMPARISON(greater_equal, >=)

/* Gradients: x and y are the operator's inputs in its order. */
BINARY(relu_grad_float, float, float, y > 0 ? x : 0)
BINARY(relu6_grad_float, float, float, y > 0 && y < 6 ? x : 0)
BINARY(sigmoid_grad_float, float, float, y *x * (1 - x))
BINARY(tanh_grad_float, float, float, y * (1 - x * x))
BINARY(sqrt_grad_float, float, float, y * 0.5f / x)
BINARY(rsqrt_grad_float, float, float, -0.5f * y * (x * x * x))
BINARY(reciprocal_grad_float, float, float, -y *x *x)

#define SELECT(name, type)                                                                                             \
    MR_GPU_KERNEL(name, mr_gpu_select)                                                                                 \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.count)                                                                                        \
        {                                                                                                              \
            int64_t rest = i, take = 0, x = 0, y = 0;                                                                  \
            for (int d = a.rank - 1; d >= 0; d--) {                                                                    \
                int64_t index = rest % a.dims[d];                                                                      \
                rest /= a.dims[d];                                                                                     \
                take += index * a.strides[0][d];                                                                       \
                x += index * a.strides[1][d];                                                                          \
                y += index * a.strides[2][d];                                                                          \
            }                                                                                                          \
            ((type *)a.out)[i] = a.take[take] ? ((const type *)a.a)[x] : ((const type *)a.b)[y];                       \
        }                                                                                                              \
    }
SELECT(select_1, uint8_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)

MR_GPU_KERNEL(add_n_float, mr_gpu_add)
{
    MR_GPU_EACH(i, a.count)
    {
        float sum = a.in[0][i];
        for (int n = 1; n < a.inputs; n++) sum += a.in[n][i];
        a.out[i] = sum;
    }
}
