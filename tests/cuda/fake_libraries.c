/* Matrix products and convolutions as defined by cuBLAS and cuDNN, in plain loops. */
#include "tests/cuda/fake_libraries.h"

#include "tests/cuda/fake.h"

#include <stdlib.h>

/* ---- cuBLAS: column-major ---- */

struct cublasContext {
    mr_cu_stream stream;
};

typedef struct product {
    bool transpose_a, transpose_b;
    int m, n, k, a_stride, b_stride, c_stride;
    float alpha, beta;
    const float *a, *b;
    float *c;
} product;

static void run_product(void *data)
{
    product *p = data;
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < p->m; i++) {
            double sum = 0;
            for (int l = 0; l < p->k; l++) {
                float a = p->transpose_a ? p->a[l + i * p->a_stride] : p->a[i + l * p->a_stride];
                float b = p->transpose_b ? p->b[j + l * p->b_stride] : p->b[l + j * p->b_stride];
                sum += (double)a * (double)b;
            }
            float *c = &p->c[i + j * p->c_stride];
            *c = p->alpha * (float)sum + (p->beta == 0 ? 0 : p->beta * *c);
        }
}

static mr_blas_result blas_create(mr_blas_handle *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? 0 : 3;
}

static mr_blas_result blas_destroy(mr_blas_handle handle)
{
    free(handle);
    return 0;
}

static mr_blas_result blas_set_stream(mr_blas_handle handle, mr_cu_stream stream)
{
    handle->stream = stream;
    return 0;
}

static mr_blas_result sgemm(mr_blas_handle handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,
                            const float *alpha, const float *a, int a_stride, const float *b, int b_stride,
                            const float *beta, float *c, int c_stride)
{
    bool ta = transpose_a == MR_BLAS_TRANSPOSED, tb = transpose_b == MR_BLAS_TRANSPOSED;
    if (m < 0 || n < 0 || k < 0 || a_stride < (ta ? k : m) || b_stride < (tb ? n : k) || c_stride < m) return 7;
    product p = {ta, tb, m, n, k, a_stride, b_stride, c_stride, *alpha, *beta, a, b, c};
    fake_queue(handle->stream, run_product, &p, sizeof p);
    return 0;
}

mr_status fake_open_blas(const mr_cuda_blas **blas, mr_error *error)
{
    static const mr_cuda_blas table = {blas_create, blas_destroy, blas_set_stream, sgemm};
    if (fake.no_blas) return mr_fail(error, MR_UNAVAILABLE, "cuBLAS is not installed (fake)");
    *blas = &table;
    return MR_OK;
}

/* ---- cuDNN: NHWC tensors, KRSC filters ---- */

struct cudnnContext {
    mr_cu_stream stream;
};
struct cudnnTensorStruct {
    int n, c, h, w;
};
struct cudnnFilterStruct {
    int k, c, h, w;
};
struct cudnnConvolutionStruct {
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
};

typedef struct convolving {
    struct cudnnTensorStruct x, y;
    struct cudnnFilterStruct w;
    struct cudnnConvolutionStruct v;
    float *in, *filter, *out;
    char target; /* 'x', 'y' or 'w': the result */
} convolving;

/* Visits every product of the convolution: y += x w, x += y w or w += x y. */
static void run_convolution(void *data)
{
    convolving *c = data;
    size_t x_count = (size_t)c->x.n * c->x.c * c->x.h * c->x.w, y_count = (size_t)c->y.n * c->y.c * c->y.h * c->y.w;
    size_t w_count = (size_t)c->w.k * c->w.c * c->w.h * c->w.w;
    float *made = c->target == 'x' ? c->in : c->target == 'y' ? c->out : c->filter;
    size_t made_count = c->target == 'x' ? x_count : c->target == 'y' ? y_count : w_count;
    for (size_t i = 0; i < made_count; i++) made[i] = 0;
    for (size_t i = 0; i < y_count; i++) {
        size_t k = i % (size_t)c->y.c, ow = i / (size_t)c->y.c % (size_t)c->y.w;
        size_t oh = i / (size_t)(c->y.c * c->y.w) % (size_t)c->y.h, n = i / (size_t)(c->y.c * c->y.w * c->y.h);
        for (int r = 0; r < c->w.h; r++)
            for (int s = 0; s < c->w.w; s++) {
                int h = (int)oh * c->v.stride_h + r * c->v.dilation_h - c->v.pad_h;
                int w = (int)ow * c->v.stride_w + s * c->v.dilation_w - c->v.pad_w;
                if (h < 0 || h >= c->x.h || w < 0 || w >= c->x.w) continue;
                for (int ch = 0; ch < c->x.c; ch++) {
                    size_t at_x =
                        ((n * (size_t)c->x.h + (size_t)h) * (size_t)c->x.w + (size_t)w) * (size_t)c->x.c + (size_t)ch;
                    size_t at_w =
                        ((k * (size_t)c->w.h + (size_t)r) * (size_t)c->w.w + (size_t)s) * (size_t)c->w.c + (size_t)ch;
                    if (c->target == 'y') c->out[i] += c->in[at_x] * c->filter[at_w];
                    if (c->target == 'x') c->in[at_x] += c->out[i] * c->filter[at_w];
                    if (c->target == 'w') c->filter[at_w] += c->in[at_x] * c->out[i];
                }
            }
    }
}

static mr_dnn_result dnn_create(mr_dnn_handle *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? 0 : 4;
}

static mr_dnn_result dnn_destroy(mr_dnn_handle handle)
{
    free(handle);
    return 0;
}

static const char *dnn_error_string(mr_dnn_result)
{
    return "CUDNN_STATUS_NOT_SUPPORTED";
}

static mr_dnn_result dnn_set_stream(mr_dnn_handle handle, mr_cu_stream stream)
{
    handle->stream = stream;
    return 0;
}

#define DESCRIPTOR(type, name)                                                                                         \
    static mr_dnn_result name##_new(mr_dnn_##type *made)                                                               \
    {                                                                                                                  \
        *made = calloc(1, sizeof **made);                                                                              \
        return *made ? 0 : 4;                                                                                          \
    }                                                                                                                  \
    static mr_dnn_result name##_free(mr_dnn_##type gone)                                                               \
    {                                                                                                                  \
        free(gone);                                                                                                    \
        return 0;                                                                                                      \
    }
DESCRIPTOR(tensor, tensor)
DESCRIPTOR(filter, filter)
DESCRIPTOR(convolution, convolution)

static mr_dnn_result tensor_set(mr_dnn_tensor tensor, unsigned format, unsigned type, int n, int c, int h, int w)
{
    if (format != MR_DNN_NHWC || type != MR_DNN_FLOAT || n < 1 || c < 1 || h < 1 || w < 1) return 3000;
    *tensor = (struct cudnnTensorStruct){n, c, h, w};
    return 0;
}

static mr_dnn_result filter_set(mr_dnn_filter filter, unsigned type, unsigned format, int k, int c, int h, int w)
{
    if (format != MR_DNN_NHWC || type != MR_DNN_FLOAT || k < 1 || c < 1 || h < 1 || w < 1) return 3000;
    *filter = (struct cudnnFilterStruct){k, c, h, w};
    return 0;
}

static mr_dnn_result convolution_set(mr_dnn_convolution v, int pad_h, int pad_w, int stride_h, int stride_w,
                                     int dilation_h, int dilation_w, unsigned mode, unsigned type)
{
    if (mode != MR_DNN_CROSS_CORRELATION || type != MR_DNN_FLOAT || pad_h < 0 || pad_w < 0) return 3000;
    *v = (struct cudnnConvolutionStruct){pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
    return 0;
}

static mr_dnn_result convolution_math(mr_dnn_convolution, unsigned)
{
    return 0;
}

/* The output's size must match the descriptors. */
static bool fits(const struct cudnnTensorStruct *x, const struct cudnnFilterStruct *w,
                 const struct cudnnConvolutionStruct *v, const struct cudnnTensorStruct *y)
{
    int h = (x->h + 2 * v->pad_h - ((w->h - 1) * v->dilation_h + 1)) / v->stride_h + 1;
    int width = (x->w + 2 * v->pad_w - ((w->w - 1) * v->dilation_w + 1)) / v->stride_w + 1;
    return y->h == h && y->w == width && y->n == x->n && y->c == w->k && x->c == w->c;
}

/* The first choice is rejected, the second is not deterministic, and the third fails when it runs, so the fourth must
 * be used. */
static mr_dnn_result list_choices(bool good, int capacity, int *count, mr_dnn_choice *choices)
{
    *count = 0;
    if (!good || fake.dnn_refuses || capacity < 4) return 3000;
    choices[0] = (mr_dnn_choice){.algorithm = 6, .status = 3000, .determinism = 1};
    choices[1] = (mr_dnn_choice){.algorithm = 0, .workspace_bytes = 4096};
    choices[2] = (mr_dnn_choice){.algorithm = 5, .workspace_bytes = 4096, .determinism = 1};
    choices[3] = (mr_dnn_choice){.algorithm = 1, .workspace_bytes = 4096, .determinism = 1};
    *count = 4;
    return 0;
}

static mr_dnn_result forward_choices(mr_dnn_handle, mr_dnn_tensor x, mr_dnn_filter w, mr_dnn_convolution v,
                                     mr_dnn_tensor y, int capacity, int *count, mr_dnn_choice *choices)
{
    return list_choices(fits(x, w, v, y), capacity, count, choices);
}

static mr_dnn_result input_choices(mr_dnn_handle, mr_dnn_filter w, mr_dnn_tensor dy, mr_dnn_convolution v,
                                   mr_dnn_tensor dx, int capacity, int *count, mr_dnn_choice *choices)
{
    return list_choices(fits(dx, w, v, dy), capacity, count, choices);
}

static mr_dnn_result filter_choices(mr_dnn_handle, mr_dnn_tensor x, mr_dnn_tensor dy, mr_dnn_convolution v,
                                    mr_dnn_filter dw, int capacity, int *count, mr_dnn_choice *choices)
{
    return list_choices(fits(x, dw, v, dy), capacity, count, choices);
}

static mr_dnn_result start(mr_dnn_handle handle, convolving c, unsigned algorithm, size_t workspace_bytes)
{
    if (algorithm != 1 || workspace_bytes != 4096) return 2000;
    fake.dnn_runs++;
    fake_queue(handle->stream, run_convolution, &c, sizeof c);
    return 0;
}

static mr_dnn_result forward(mr_dnn_handle handle, const void *, mr_dnn_tensor x, const void *x_data, mr_dnn_filter w,
                             const void *w_data, mr_dnn_convolution v, unsigned algorithm, void *,
                             size_t workspace_bytes, const void *, mr_dnn_tensor y, void *y_data)
{
    convolving c = {*x, *y, *w, *v, (float *)x_data, (float *)w_data, y_data, 'y'};
    return start(handle, c, algorithm, workspace_bytes);
}

static mr_dnn_result input(mr_dnn_handle handle, const void *, mr_dnn_filter w, const void *w_data, mr_dnn_tensor dy,
                           const void *dy_data, mr_dnn_convolution v, unsigned algorithm, void *,
                           size_t workspace_bytes, const void *, mr_dnn_tensor dx, void *dx_data)
{
    convolving c = {*dx, *dy, *w, *v, dx_data, (float *)w_data, (float *)dy_data, 'x'};
    return start(handle, c, algorithm, workspace_bytes);
}

static mr_dnn_result filter(mr_dnn_handle handle, const void *, mr_dnn_tensor x, const void *x_data, mr_dnn_tensor dy,
                            const void *dy_data, mr_dnn_convolution v, unsigned algorithm, void *,
                            size_t workspace_bytes, const void *, mr_dnn_filter dw, void *dw_data)
{
    convolving c = {*x, *dy, *dw, *v, (float *)x_data, dw_data, (float *)dy_data, 'w'};
    return start(handle, c, algorithm, workspace_bytes);
}

mr_status fake_open_dnn(const mr_cuda_dnn **dnn, mr_error *error)
{
    static const mr_cuda_dnn table = {
        .create = dnn_create,
        .destroy = dnn_destroy,
        .error_string = dnn_error_string,
        .set_stream = dnn_set_stream,
        .tensor_new = tensor_new,
        .tensor_free = tensor_free,
        .tensor_set = tensor_set,
        .filter_new = filter_new,
        .filter_free = filter_free,
        .filter_set = filter_set,
        .convolution_new = convolution_new,
        .convolution_free = convolution_free,
        .convolution_set = convolution_set,
        .convolution_math = convolution_math,
        .forward_choices = forward_choices,
        .forward = forward,
        .input_choices = input_choices,
        .input = input,
        .filter_choices = filter_choices,
        .filter = filter,
    };
    if (fake.no_dnn) return mr_fail(error, MR_UNAVAILABLE, "cuDNN is not installed (fake)");
    *dnn = &table;
    return MR_OK;
}
