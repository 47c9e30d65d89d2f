/* FFT, IFFT, RFFT and IRFFT over one, two or three dimensions. A transform of one row is computed in double: by mixed
 * radices for sizes with small prime factors, otherwise as a convolution (Bluestein's algorithm). */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct number {
    double re, im;
} number;

constexpr int64_t RADIX_MAX = 31; /* a larger prime factor costs more than a convolution */

typedef struct fft_attrs {
    int rank;
    bool inverse, real;
} fft_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    (void)error;
    const char *op = node->op;
    if (strncmp(op, "Batch", 5) == 0) op += 5;
    const char *digit = strpbrk(op, "23");
    *(fft_attrs *)prepared = (fft_attrs){
        .rank = digit == nullptr ? 1 : *digit - '0', .inverse = op[0] == 'I', .real = strstr(op, "RFFT") != nullptr};
    return MR_OK;
}

static number multiply(number a, number b)
{
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* ---- One row ---- */

/* roots[i] = exp(±2πi · i / size). Bluestein's algorithm needs a transform of `wide` elements, a power of two. */
typedef struct plan {
    int64_t size;
    number *roots;
    struct plan *wide;        /* null: mixed radices */
    number *chirp, *response; /* size; wide->size, transformed */
} plan;

static void plan_free(plan *p)
{
    if (p == nullptr) return;
    plan_free(p->wide);
    free(p->roots);
    free(p->chirp);
    free(p->response);
    free(p);
}

/* Numbers of scratch memory that plan_run needs beside its input. */
static int64_t plan_scratch(const plan *p)
{
    return p->wide != nullptr ? 3 * p->wide->size : p->size + RADIX_MAX;
}

/* out[0, n) = transform of in[0], in[step], …; root_step: the step through the roots. */
static void mixed(const plan *p, int64_t n, const number *in, int64_t step, number *out, int64_t root_step,
                  number *scratch)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int64_t radix = n % 4 == 0 ? 4 : 2;
    while (n % radix != 0) radix++;
    int64_t rows = n / radix;
    for (int64_t r = 0; r < radix; r++)
        mixed(p, rows, in + r * step, step * radix, out + r * rows, root_step * radix, scratch);
    number part[RADIX_MAX];
    for (int64_t k = 0; k < rows; k++) {
        for (int64_t r = 0; r < radix; r++) part[r] = multiply(out[r * rows + k], p->roots[r * k * root_step]);
        for (int64_t q = 0; q < radix; q++) {
            number sum = part[0];
            for (int64_t r = 1; r < radix; r++) {
                number turned = multiply(part[r], p->roots[r * q % radix * rows * root_step]);
                sum.re += turned.re;
                sum.im += turned.im;
            }
            scratch[q] = sum;
        }
        for (int64_t q = 0; q < radix; q++) out[q * rows + k] = scratch[q];
    }
}

/* Transforms a row in place. */
static void plan_run(const plan *p, number *row, number *scratch)
{
    if (p->wide == nullptr) {
        mixed(p, p->size, row, 1, scratch, 1, scratch + p->size);
        memcpy(row, scratch, (size_t)p->size * sizeof *row);
        return;
    }
    int64_t wide = p->wide->size;
    number *x = scratch, *rest = scratch + wide;
    memset(x, 0, (size_t)wide * sizeof *x);
    for (int64_t i = 0; i < p->size; i++) x[i] = multiply(row[i], p->chirp[i]);
    plan_run(p->wide, x, rest);
    /* The inverse is the conjugate of the transform of the conjugate. */
    for (int64_t i = 0; i < wide; i++) {
        x[i] = multiply(x[i], p->response[i]);
        x[i].im = -x[i].im;
    }
    plan_run(p->wide, x, rest);
    for (int64_t i = 0; i < p->size; i++) {
        number value = {x[i].re / (double)wide, -x[i].im / (double)wide};
        row[i] = multiply(value, p->chirp[i]);
    }
}

static plan *plan_new(int64_t size, bool inverse);

static bool add_convolution(plan *p, bool inverse)
{
    int64_t wide = 1, size = p->size;
    while (wide < 2 * size) wide *= 2;
    p->wide = plan_new(wide, false);
    p->chirp = malloc((size_t)size * sizeof(number));
    p->response = calloc((size_t)wide, sizeof(number));
    number *scratch = p->wide != nullptr ? malloc((size_t)plan_scratch(p->wide) * sizeof(number)) : nullptr;
    if (p->chirp == nullptr || p->response == nullptr || scratch == nullptr) {
        free(scratch);
        return false;
    }
    for (int64_t i = 0; i < size; i++) {
        /* i² modulo 2 · size, to keep the angle small */
        double angle =
            M_PI * (double)(int64_t)((__uint128_t)i * (__uint128_t)i % (__uint128_t)(2 * size)) / (double)size;
        p->chirp[i] = (number){cos(angle), inverse ? sin(angle) : -sin(angle)};
        number conjugate = {p->chirp[i].re, -p->chirp[i].im};
        p->response[i] = conjugate;
        if (i > 0) p->response[wide - i] = conjugate;
    }
    plan_run(p->wide, p->response, scratch);
    free(scratch);
    return true;
}

static plan *plan_new(int64_t size, bool inverse)
{
    if (size < 1 || size > INT64_MAX / 256) return nullptr;
    plan *p = calloc(1, sizeof *p);
    if (p == nullptr) return nullptr;
    p->size = size;
    int64_t rest = size;
    for (int64_t radix = 2; radix <= RADIX_MAX; radix++)
        while (rest % radix == 0) rest /= radix;
    bool fine;
    if (rest != 1) {
        fine = add_convolution(p, inverse);
    } else {
        p->roots = malloc((size_t)size * sizeof(number));
        fine = p->roots != nullptr;
        for (int64_t i = 0; fine && i < size; i++) {
            double angle = 2 * M_PI * (double)i / (double)size;
            p->roots[i] = (number){cos(angle), inverse ? sin(angle) : -sin(angle)};
        }
    }
    if (fine) return p;
    plan_free(p);
    return nullptr;
}

/* ---- Dimensions ---- */

/* Transforms dimension `axis` of a dense array [outer, sizes…]. */
typedef struct pass {
    const plan *plan;
    number *data;
    int64_t size, inner; /* of the dimension; elements between two of its positions */
    int out_of_memory;
} pass;

static void run_rows(void *context, int64_t begin, int64_t end)
{
    pass *p = context;
    number *row = calloc((size_t)(p->size + plan_scratch(p->plan)), sizeof *row);
    if (row == nullptr) {
        __atomic_store_n(&p->out_of_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        number *first = p->data + i / p->inner * p->size * p->inner + i % p->inner;
        for (int64_t k = 0; k < p->size; k++) row[k] = first[k * p->inner];
        plan_run(p->plan, row, row + p->size);
        for (int64_t k = 0; k < p->size; k++) first[k * p->inner] = row[k];
    }
    free(row);
}

static mr_status transform(mr_kernel_call *call, number *data, int64_t total, int64_t size, int64_t inner, bool inverse,
                           mr_error *error)
{
    plan *p = plan_new(size, inverse);
    pass one = {.plan = p, .data = data, .size = size, .inner = inner, .out_of_memory = p == nullptr};
    if (p != nullptr) mr_pool_for(call->device->pool, total / size, MR_MAX(1, MR_GRAIN / 8 / size), run_rows, &one);
    plan_free(p);
    return !one.out_of_memory ? MR_OK : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
}

static number get(const mr_tensor *tensor, int64_t i)
{
    const float *floats = tensor->data;
    const double *doubles = tensor->data;
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (number){(double)floats[i], 0};
    case MR_DOUBLE:
        return (number){doubles[i], 0};
    case MR_COMPLEX64:
        return (number){(double)floats[2 * i], (double)floats[2 * i + 1]};
    default:
        return (number){doubles[2 * i], doubles[2 * i + 1]};
    }
}

static void put(mr_tensor *tensor, int64_t i, number value)
{
    float *floats = tensor->data;
    double *doubles = tensor->data;
    if (tensor->dtype == MR_FLOAT) {
        floats[i] = (float)value.re;
    } else if (tensor->dtype == MR_DOUBLE) {
        doubles[i] = value.re;
    } else if (tensor->dtype == MR_COMPLEX64) {
        floats[2 * i] = (float)value.re;
        floats[2 * i + 1] = (float)value.im;
    } else {
        doubles[2 * i] = value.re;
        doubles[2 * i + 1] = value.im;
    }
}

/* Splits an index of an array with these trailing sizes into the index of the leading dimensions and positions. */
static void split(int64_t index, const int64_t sizes[3], int64_t *outer, int64_t at[3])
{
    for (int d = 2; d >= 0; d--) {
        at[d] = index % sizes[d];
        index /= sizes[d];
    }
    *outer = index;
}

/* The sizes of a transform, aligned to the right; unused leading ones are 1. */
typedef struct sizes {
    int64_t outer, in[3], full[3], out[3]; /* of the input, of the transform, of the output */
    int64_t total;                         /* outer · full */
} sizes;

/* Copies the input to the full complex array; missing elements are 0, and IRFFT's are its conjugate symmetric ones. */
static void load(const mr_tensor *input, const sizes *s, bool mirrored, number *data)
{
    int64_t outer, at[3];
    for (int64_t i = 0; i < s->total; i++) {
        split(i, s->full, &outer, at);
        bool mirror = mirrored && at[2] > s->full[2] / 2, inside = true;
        int64_t from = outer;
        for (int d = 0; d < 3; d++) {
            int64_t position = mirror ? (s->full[d] - at[d]) % s->full[d] : at[d];
            inside &= position < s->in[d];
            from = from * s->in[d] + position;
        }
        data[i] = inside ? get(input, from) : (number){0};
        if (mirror) data[i].im = -data[i].im;
    }
}

/* The last dimension of a real transform: only elements of [0, full / 2] are read by the other dimensions. */
static mr_status run_sizes(mr_kernel_call *call, const sizes *s, bool inverse, bool mirrored, mr_error *error)
{
    size_t bytes;
    mr_tensor *output = &call->outputs[0];
    number *data = __builtin_mul_overflow((size_t)s->total, sizeof *data, &bytes) ? nullptr : calloc(1, bytes);
    if (data == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    load(&call->inputs[0], s, mirrored, data);
    mr_status status = MR_OK;
    int64_t inner = 1, count = mr_tensor_count(output), outer, at[3];
    for (int d = 2; d >= 0 && status == MR_OK; d--) {
        if (s->full[d] > 1) status = transform(call, data, s->total, s->full[d], inner, inverse, error);
        inner *= s->full[d];
    }
    double scale = inverse ? 1.0 / (double)inner : 1;
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        split(i, s->out, &outer, at);
        number value = data[((outer * s->full[0] + at[0]) * s->full[1] + at[1]) * s->full[2] + at[2]];
        put(output, i, (number){value.re * scale, value.im * scale});
    }
    free(data);
    return status;
}

/* Reads fft_length and checks that the input has as many elements as it needs. */
static mr_status read_lengths(const mr_kernel_call *call, const fft_attrs *attrs, int64_t lengths[3], mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    int count;
    if (call->inputs[1].shape.rank != 1 || call->inputs[1].shape.dims[0] != attrs->rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "fft_length must have shape [%d]", attrs->rank);
    MR_TRY(mr_kernel_ints(call, 1, "fft_length", lengths, 3, &count, error));
    for (int i = 0; i < attrs->rank; i++) {
        if (lengths[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %" PRId64,
                                  i, lengths[i]);
        bool halved = attrs->inverse && i == attrs->rank - 1;
        int64_t needed = halved && lengths[i] > 0 ? lengths[i] / 2 + 1 : lengths[i];
        int64_t size = shape.dims[shape.rank - attrs->rank + i];
        if (size != 0 && size < needed)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input dimension %d must have length of at least %" PRId64 " but got: %" PRId64,
                                  shape.rank - attrs->rank + i, needed, size);
    }
    return MR_OK;
}

static mr_status run(mr_kernel_call *call, mr_error *error)
{
    const fft_attrs *attrs = call->prepared;
    mr_shape shape = call->inputs[0].shape;
    int64_t lengths[3];
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank < attrs->rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input must have rank of at least %d but got: %s",
                              attrs->rank, mr_shape_text(shape, text, sizeof text));
    int first = shape.rank - attrs->rank;
    sizes s = {.outer = mr_dims_product(&shape, 0, first), .in = {1, 1, 1}, .full = {1, 1, 1}, .out = {1, 1, 1}};
    if (attrs->real) MR_TRY(read_lengths(call, attrs, lengths, error));
    mr_dtype in = call->inputs[0].dtype, out = call->node->output_dtypes[0];
    bool fits =
        attrs->inverse ? (in == MR_COMPLEX128) == (out == MR_DOUBLE) : (in == MR_DOUBLE) == (out == MR_COMPLEX128);
    if (attrs->real && !fits)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Wrong types for %s real FFT: in=%d out=%d",
                              attrs->inverse ? "backward" : "forward", (int)in, (int)out);
    for (int i = 0; i < attrs->rank; i++) {
        int d = 3 - attrs->rank + i;
        s.in[d] = shape.dims[first + i];
        s.full[d] = s.out[d] = attrs->real ? lengths[i] : s.in[d];
    }
    if (attrs->real && !attrs->inverse && s.out[2] > 0) s.out[2] = s.out[2] / 2 + 1;
    for (int i = 0; i < attrs->rank; i++) shape.dims[first + i] = s.out[3 - attrs->rank + i];
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    if (mr_tensor_count(&call->inputs[0]) == 0) {
        memset(output->data, 0, mr_tensor_size_bytes(output));
        return MR_OK;
    }
    s.total = s.outer;
    for (int d = 0; d < 3; d++)
        if (__builtin_mul_overflow(s.total, s.full[d], &s.total))
            return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the transform is too large");
    return run_sizes(call, &s, attrs->inverse, attrs->real && attrs->inverse, error);
}

#define ROW(name, host)                                                                                                \
    {.op = name, .run = run, .prepared_size_bytes = sizeof(fft_attrs), .prepare = prepare, .host_inputs = host}
static const mr_kernel kernels[] = {
    ROW("FFT", 0),         ROW("FFT2D", 0),        ROW("FFT3D", 0),        ROW("IFFT", 0),        ROW("IFFT2D", 0),
    ROW("IFFT3D", 0),      ROW("BatchFFT", 0),     ROW("BatchFFT2D", 0),   ROW("BatchFFT3D", 0),  ROW("BatchIFFT", 0),
    ROW("BatchIFFT2D", 0), ROW("BatchIFFT3D", 0),  ROW("RFFT", 1 << 1),    ROW("RFFT2D", 1 << 1), ROW("RFFT3D", 1 << 1),
    ROW("IRFFT", 1 << 1),  ROW("IRFFT2D", 1 << 1), ROW("IRFFT3D", 1 << 1),
};
MR_KERNEL_FAMILY(fft);
