/* One optimizer step on a variable, element by element, with TensorFlow's formulas and order of operations. */
#include "cuda/gpu.h"

MR_GPU_KERNEL(apply_gradient_descent, mr_gpu_apply)
{
    float rate = *a.rate;
    MR_GPU_EACH(i, a.count) a.variable[i] -= rate * a.gradient[i];
}

MR_GPU_KERNEL(apply_momentum, mr_gpu_apply)
{
    float rate = *a.rate, momentum = *a.momentum;
    MR_GPU_EACH(i, a.count)
    {
        float gradient = a.gradient[i], m = a.m[i] * momentum + gradient;
        a.m[i] = m;
        a.variable[i] -= a.nesterov ? gradient * rate + m * momentum * rate : m * rate;
    }
}

MR_GPU_KERNEL(apply_adam, mr_gpu_apply)
{
    float beta1 = *a.beta1, beta2 = *a.beta2, epsilon = *a.epsilon;
    float rate = *a.rate * sqrtf(1 - *a.beta2_power) / (1 - *a.beta1_power);
    MR_GPU_EACH(i, a.count)
    {
        float gradient = a.gradient[i], m = a.m[i], v = a.v[i];
        m += (gradient - m) * (1 - beta1);
        v += (gradient * gradient - v) * (1 - beta2);
        a.m[i] = m;
        a.v[i] = v;
        float step = a.nesterov ? gradient * (1 - beta1) + beta1 * m : m;
        a.variable[i] -= step * rate / (sqrtf(v) + epsilon);
    }
}

MR_GPU_KERNEL(assign_add, mr_gpu_apply)
{
    MR_GPU_EACH(i, a.count) a.variable[i] += a.gradient[i];
}

MR_GPU_KERNEL(assign_sub, mr_gpu_apply)
{
    MR_GPU_EACH(i, a.count) a.variable[i] -= a.gradient[i];
}
