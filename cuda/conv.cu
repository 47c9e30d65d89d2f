/* Convolutions as matrix products: copies the windows of images to rows of a matrix, and back. Transposes filters for
 * cuDNN, which requires the output channel first. */
#include "cuda/gpu.h"

/* out is [batch, out_h, out_w, size_h, size_w, channels]; elements outside the image are zeros. */
MR_GPU_KERNEL(columns_from, mr_gpu_columns)
{
    MR_GPU_EACH(i, a.batch * a.out_h * a.out_w * a.size_h * a.size_w * a.channels)
    {
        int64_t rest = i;
        int c = (int)(rest % a.channels);
        rest /= a.channels;
        int kw = (int)(rest % a.size_w);
        rest /= a.size_w;
        int kh = (int)(rest % a.size_h);
        rest /= a.size_h;
        int ow = (int)(rest % a.out_w);
        rest /= a.out_w;
        int oh = (int)(rest % a.out_h);
        int64_t n = rest / a.out_h;
        int h = oh * a.stride_h + kh * a.dilation_h - a.pad_h, w = ow * a.stride_w + kw * a.dilation_w - a.pad_w;
        bool inside = h >= 0 && h < a.in_h && w >= 0 && w < a.in_w;
        a.out[i] = inside ? a.in[((n * a.in_h + h) * a.in_w + w) * a.channels + c] : 0.0f;
    }
}

/* For each element of the image, adds the values of that element in all windows that contain it. */
MR_GPU_KERNEL(columns_to, mr_gpu_columns)
{
    MR_GPU_EACH(i, a.batch * a.in_h * a.in_w * a.channels)
    {
        int64_t rest = i;
        int c = (int)(rest % a.channels);
        rest /= a.channels;
        int w = (int)(rest % a.in_w);
        rest /= a.in_w;
        int h = (int)(rest % a.in_h);
        int64_t n = rest / a.in_h;
        float sum = 0;
        for (int kh = 0; kh < a.size_h; kh++) {
            int oh = h + a.pad_h - kh * a.dilation_h;
            if (oh < 0 || oh % a.stride_h != 0 || oh / a.stride_h >= a.out_h) continue;
            for (int kw = 0; kw < a.size_w; kw++) {
                int ow = w + a.pad_w - kw * a.dilation_w;
                if (ow < 0 || ow % a.stride_w != 0 || ow / a.stride_w >= a.out_w) continue;
                int64_t row = (n * a.out_h + oh / a.stride_h) * a.out_w + ow / a.stride_w;
                sum += a.in[((row * a.size_h + kh) * a.size_w + kw) * a.channels + c];
            }
        }
        a.out[i] = sum;
    }
}

MR_GPU_KERNEL(transpose, mr_gpu_transpose)
{
    MR_GPU_EACH(i, a.rows * a.columns) a.out[i] = a.in[i % a.rows * a.columns + i / a.rows];
}
