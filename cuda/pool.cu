/* Pooling of NHWC images. The backward pass gathers: each element of the input visits the windows that contain it, so
 * no two threads write to the same element and sums have a fixed order. */
#include "cuda/gpu.h"

typedef struct window {
    int begin_h, end_h, begin_w, end_w;
} window;

/* The part of an output's window inside the image. */
MR_GPU_FUNCTION window window_of(const mr_gpu_pool *a, int out_h, int out_w)
{
    int h = out_h * a->stride_h - a->pad_h, w = out_w * a->stride_w - a->pad_w;
    window result = {h > 0 ? h : 0, h + a->size_h < a->in_h ? h + a->size_h : a->in_h, w > 0 ? w : 0,
                     w + a->size_w < a->in_w ? w + a->size_w : a->in_w};
    return result;
}

/* The first output whose window contains coordinate `at`: the least o with o * stride - pad + size > at. */
MR_GPU_FUNCTION int first_window(int at, int pad, int size, int stride)
{
    int past = at + pad - size;
    return past < 0 ? 0 : past / stride + 1;
}

MR_GPU_FUNCTION int last_window(int at, int pad, int stride, int count)
{
    int last = (at + pad) / stride;
    return last < count ? last : count - 1;
}

/* i = ((n * height + h) * width + w) * channels + c */
MR_GPU_FUNCTION int64_t split(int64_t i, int height, int width, int channels, int *h, int *w, int *c)
{
    *c = (int)(i % channels);
    i /= channels;
    *w = (int)(i % width);
    i /= width;
    *h = (int)(i % height);
    return i / height;
}

MR_GPU_FUNCTION int64_t pixel(const mr_gpu_pool *a, int64_t n, int h, int w, int c)
{
    return ((n * a->in_h + h) * a->in_w + w) * a->channels + c;
}

/* The first of the largest elements of a window. */
MR_GPU_FUNCTION int64_t largest_of(const mr_gpu_pool *a, int64_t n, int out_h, int out_w, int c)
{
    window own = window_of(a, out_h, out_w);
    int64_t best = pixel(a, n, own.begin_h, own.begin_w, c);
    for (int h = own.begin_h; h < own.end_h; h++)
        for (int w = own.begin_w; w < own.end_w; w++) {
            int64_t at = pixel(a, n, h, w, c);
            if (a->in[at] > a->in[best]) best = at;
        }
    return best;
}

MR_GPU_KERNEL(max_pool, mr_gpu_pool)
{
    MR_GPU_EACH(i, a.batch * a.out_h * a.out_w * a.channels)
    {
        int h, w, c;
        int64_t n = split(i, a.out_h, a.out_w, a.channels, &h, &w, &c);
        a.out[i] = a.in[largest_of(&a, n, h, w, c)];
    }
}

MR_GPU_KERNEL(max_pool_grad, mr_gpu_pool)
{
    MR_GPU_EACH(i, a.batch * a.in_h * a.in_w * a.channels)
    {
        int h, w, c;
        int64_t n = split(i, a.in_h, a.in_w, a.channels, &h, &w, &c);
        int last_h = last_window(h, a.pad_h, a.stride_h, a.out_h),
            last_w = last_window(w, a.pad_w, a.stride_w, a.out_w);
        float sum = 0;
        for (int oh = first_window(h, a.pad_h, a.size_h, a.stride_h); oh <= last_h; oh++)
            for (int ow = first_window(w, a.pad_w, a.size_w, a.stride_w); ow <= last_w; ow++)
                if (largest_of(&a, n, oh, ow, c) == i)
                    sum += a.grad[((n * a.out_h + oh) * a.out_w + ow) * a.channels + c];
        a.out[i] = sum;
    }
}

MR_GPU_KERNEL(average_pool, mr_gpu_pool)
{
    MR_GPU_EACH(i, a.batch * a.out_h * a.out_w * a.channels)
    {
        int oh, ow, c;
        int64_t n = split(i, a.out_h, a.out_w, a.channels, &oh, &ow, &c);
        window own = window_of(&a, oh, ow);
        float sum = 0;
        for (int h = own.begin_h; h < own.end_h; h++)
            for (int w = own.begin_w; w < own.end_w; w++) sum += a.in[pixel(&a, n, h, w, c)];
        a.out[i] = sum / (float)((own.end_h - own.begin_h) * (own.end_w - own.begin_w));
    }
}

MR_GPU_KERNEL(average_pool_grad, mr_gpu_pool)
{
    MR_GPU_EACH(i, a.batch * a.in_h * a.in_w * a.channels)
    {
        int h, w, c;
        int64_t n = split(i, a.in_h, a.in_w, a.channels, &h, &w, &c);
        int last_h = last_window(h, a.pad_h, a.stride_h, a.out_h),
            last_w = last_window(w, a.pad_w, a.stride_w, a.out_w);
        float sum = 0;
        for (int oh = first_window(h, a.pad_h, a.size_h, a.stride_h); oh <= last_h; oh++)
            for (int ow = first_window(w, a.pad_w, a.size_w, a.stride_w); ow <= last_w; ow++) {
                window own = window_of(&a, oh, ow);
                sum += a.grad[((n * a.out_h + oh) * a.out_w + ow) * a.channels + c] /
                       (float)((own.end_h - own.begin_h) * (own.end_w - own.begin_w));
            }
        a.out[i] = sum;
    }
}
