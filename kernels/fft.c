/* FFT, IFFT, RFFT and IRFFT over one, two or three dimensions, computed in double (fft_plan.h). */
#include "kernels/fft_plan.h"
#include "kernels/gemm.h"
#include "kernels/slots.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef mr_fft_number number;

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

static number conjugate(number a)
{
    return (number){a.re, -a.im};
}

/* ---- Rows, eight at a time ---- */

/* The roots of a large circle as products: root(i) = coarse[i >> shift] · fine[i mod 2^shift]. */
typedef struct circle {
    number *coarse, *fine;
    int shift;
} circle;

static void circle_deinit(circle *c)
{
    free(c->coarse);
    free(c->fine);
}

static bool circle_init(circle *c, int64_t size, bool inverse)
{
    *c = (circle){0};
    while ((int64_t)1 << 2 * c->shift < size) c->shift++;
    const int64_t step = (int64_t)1 << c->shift, count = (size - 1) / step + 1;
    c->coarse = malloc((size_t)count * sizeof *c->coarse);
    c->fine = malloc((size_t)step * sizeof *c->fine);
    if (c->coarse == nullptr || c->fine == nullptr) return false;
    for (int64_t i = 0; i < count; i++) c->coarse[i] = mr_fft_root(i * step, size, inverse);
    for (int64_t i = 0; i < step && i < size; i++) c->fine[i] = mr_fft_root(i, size, inverse);
    return true;
}

/* Transforms a dimension of a dense array [outer, sizes…]. */
typedef struct pass {
    const mr_fft_plan *plan;
    number *data;
    int64_t size, inner; /* of the dimension; elements between two of its positions */
    int64_t rows;
    const circle *turns; /* null; or element k of each row is turned by the root k · row */
    bool inverse;
    mr_slots *slots; /* of the size of rows and scratch memory of the plan */
} pass;

/* The first element of a row. */
static number *row_at(const pass *p, int64_t row)
{
    assert(row >= 0 && row < p->rows);
    return p->data + row / p->inner * p->size * p->inner + row % p->inner;
}

static number turned(const circle *turns, number value, int64_t index)
{
    const number root =
        multiply(turns->coarse[index >> turns->shift], turns->fine[index & (((int64_t)1 << turns->shift) - 1)]);
    return multiply(value, root);
}

/* Groups [begin, end) of MR_FFT_LANES rows. */
static void run_groups(void *context, int64_t begin, int64_t end)
{
    const pass *p = context;
    int slot;
    mr_fft_lanes *lanes = (mr_fft_lanes *)mr_slot_acquire(p->slots, &slot);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * MR_FFT_LANES, used = MR_MIN(MR_FFT_LANES, p->rows - first);
        if (used < MR_FFT_LANES) memset(lanes, 0, (size_t)p->size * sizeof *lanes);
        number *rows[MR_FFT_LANES];
        for (int64_t lane = 0; lane < used; lane++) rows[lane] = row_at(p, first + lane);
        for (int64_t k = 0; k < p->size; k++)
            for (int64_t lane = 0; lane < used; lane++) {
                lanes[k].re[lane] = rows[lane][k * p->inner].re;
                lanes[k].im[lane] = rows[lane][k * p->inner].im;
            }
        mr_fft_run(p->plan, lanes, lanes + p->size);
        for (int64_t k = 0; k < p->size; k++)
            for (int64_t lane = 0; lane < used; lane++) {
                const number value = {lanes[k].re[lane], lanes[k].im[lane]};
                rows[lane][k * p->inner] = p->turns != nullptr ? turned(p->turns, value, k * (first + lane)) : value;
            }
    }
    mr_slot_release(p->slots, slot);
}

/* False: no memory. */
static bool run_pass(mr_kernel_call *call, pass p)
{
    mr_fft_plan *plan = mr_fft_plan_new(p.size, p.inverse);
    if (plan == nullptr) return false;
    const int64_t groups = (p.rows + MR_FFT_LANES - 1) / MR_FFT_LANES;
    const int64_t threads = MR_MIN(MR_MIN(groups, MR_SLOTS_MAX), mr_pool_thread_count(call->device->pool));
    const int64_t size = (p.size + mr_fft_scratch(plan)) * (int64_t)(sizeof(mr_fft_lanes) / sizeof(float));
    mr_buffer *buffer;
    float *floats;
    mr_slots slots;
    const bool fine = mr_scratch_new(call, size * threads, &buffer, &floats, nullptr) == MR_OK;
    if (fine) {
        mr_slots_init(&slots, floats, size, (int)threads);
        p.plan = plan;
        p.slots = &slots;
        mr_pool_for(call->device->pool, groups, MR_MAX(1, MR_GRAIN / 64 / p.size), run_groups, &p);
        mr_buffer_unref(buffer);
    }
    mr_fft_plan_free(plan);
    return fine;
}

/* ---- Long rows, one by one ----
 *
 * Eight long rows side by side would be far larger than the input. One row of a size with small factors is a matrix
 * whose columns and rows fill the lanes; any other row is convolved with such ones. */

/* The divisor of the size that is nearest to its root, from below. */
static int64_t divisor_of(int64_t size)
{
    int64_t best = 1;
    for (int64_t d = 1; d * d <= size; d++)
        if (size % d == 0) best = d;
    return best;
}

/* A row as a matrix [few, many]: its columns, turned, then its rows, then transposed.
 * copy  memory for as many elements */
static bool run_matrix(mr_kernel_call *call, number *row, number *copy, int64_t size, bool inverse)
{
    const int64_t few = divisor_of(size), many = size / few;
    circle turns;
    const pass columns = {.data = row, .size = few, .inner = many, .rows = many, .turns = &turns, .inverse = inverse};
    const pass rows = {.data = row, .size = many, .inner = 1, .rows = few, .inverse = inverse};
    const bool fine = circle_init(&turns, size, inverse) && run_pass(call, columns) && run_pass(call, rows);
    circle_deinit(&turns);
    if (!fine) return false;
    memcpy(copy, row, (size_t)size * sizeof *copy);
    for (int64_t i = 0; i < few; i++)
        for (int64_t j = 0; j < many; j++) row[j * few + i] = copy[i * many + j];
    return true;
}

/* What Bluestein's algorithm needs for rows of one size: see fft_plan.c. */
typedef struct convolution {
    int64_t size, wide;
    number *chirp, *response, *x; /* size; wide; wide */
} convolution;

static void convolution_deinit(convolution *c)
{
    free(c->chirp);
    free(c->response);
    free(c->x);
}

static bool convolution_init(mr_kernel_call *call, convolution *c, number *copy, bool inverse)
{
    c->chirp = malloc((size_t)c->size * sizeof *c->chirp);
    c->response = calloc((size_t)c->wide, sizeof *c->response);
    c->x = malloc((size_t)c->wide * sizeof *c->x);
    if (c->chirp == nullptr || c->response == nullptr || c->x == nullptr) return false;
    for (int64_t i = 0; i < c->size; i++) {
        c->chirp[i] = mr_fft_chirp(i, c->size, inverse);
        c->response[i] = conjugate(c->chirp[i]);
        if (i > 0) c->response[c->wide - i] = c->response[i];
    }
    return run_matrix(call, c->response, copy, c->wide, false);
}

static bool convolve(mr_kernel_call *call, const convolution *c, number *row, number *copy)
{
    memset(c->x + c->size, 0, (size_t)(c->wide - c->size) * sizeof *c->x);
    for (int64_t i = 0; i < c->size; i++) c->x[i] = multiply(row[i], c->chirp[i]);
    if (!run_matrix(call, c->x, copy, c->wide, false)) return false;
    /* The inverse is the conjugate of the transform of the conjugate. */
    for (int64_t i = 0; i < c->wide; i++) c->x[i] = conjugate(multiply(c->x[i], c->response[i]));
    if (!run_matrix(call, c->x, copy, c->wide, false)) return false;
    const double scale = 1 / (double)c->wide; /* a power of two */
    for (int64_t i = 0; i < c->size; i++) {
        const number value = conjugate(c->x[i]);
        row[i] = multiply((number){value.re * scale, value.im * scale}, c->chirp[i]);
    }
    return true;
}

static bool run_long(mr_kernel_call *call, pass p)
{
    convolution c = {.size = p.size, .wide = mr_fft_wide(p.size)};
    number *line = malloc((size_t)p.size * sizeof *line);
    number *copy = malloc((size_t)MR_MAX(p.size, c.wide) * sizeof *copy);
    bool fine = line != nullptr && copy != nullptr && (c.wide == 0 || convolution_init(call, &c, copy, p.inverse));
    for (int64_t row = 0; fine && row < p.rows; row++) {
        number *at = row_at(&p, row);
        for (int64_t k = 0; k < p.size; k++) line[k] = at[k * p.inner];
        fine = c.wide > 0 ? convolve(call, &c, line, copy) : run_matrix(call, line, copy, p.size, p.inverse);
        for (int64_t k = 0; k < p.size; k++) at[k * p.inner] = line[k];
    }
    convolution_deinit(&c);
    free(line);
    free(copy);
    return fine;
}

/* ---- Dimensions ---- */

static mr_status transform(mr_kernel_call *call, number *data, int64_t total, int64_t size, int64_t inner, bool inverse,
                           mr_error *error)
{
    constexpr int64_t LONG = 2048, VERY_LONG = 65536, FEW = 4;
    const pass p = {.data = data, .size = size, .inner = inner, .rows = total / size, .inverse = inverse};
    const bool is_long = size >= VERY_LONG || (size >= LONG && p.rows < FEW);
    return (is_long ? run_long : run_pass)(call, p)
               ? MR_OK
               : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Elements [from, from + count) of a tensor. */
static void get(const mr_tensor *tensor, int64_t from, int64_t count, number *to)
{
    const float *floats = tensor->data;
    const double *doubles = tensor->data;
    switch (tensor->dtype) {
    case MR_FLOAT:
        for (int64_t i = 0; i < count; i++) to[i] = (number){(double)floats[from + i], 0};
        break;
    case MR_DOUBLE:
        for (int64_t i = 0; i < count; i++) to[i] = (number){doubles[from + i], 0};
        break;
    case MR_COMPLEX64:
        for (int64_t i = 0; i < count; i++)
            to[i] = (number){(double)floats[2 * (from + i)], (double)floats[2 * (from + i) + 1]};
        break;
    default:
        for (int64_t i = 0; i < count; i++) to[i] = (number){doubles[2 * (from + i)], doubles[2 * (from + i) + 1]};
    }
}

static void put(mr_tensor *tensor, int64_t to, int64_t count, const number *from, double scale)
{
    float *floats = tensor->data;
    double *doubles = tensor->data;
    switch (tensor->dtype) {
    case MR_FLOAT:
        for (int64_t i = 0; i < count; i++) floats[to + i] = (float)(from[i].re * scale);
        break;
    case MR_DOUBLE:
        for (int64_t i = 0; i < count; i++) doubles[to + i] = from[i].re * scale;
        break;
    case MR_COMPLEX64:
        for (int64_t i = 0; i < count; i++) {
            floats[2 * (to + i)] = (float)(from[i].re * scale);
            floats[2 * (to + i) + 1] = (float)(from[i].im * scale);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            doubles[2 * (to + i)] = from[i].re * scale;
            doubles[2 * (to + i) + 1] = from[i].im * scale;
        }
    }
}

/* The sizes of a transform, aligned to the right; unused leading ones are 1. */
typedef struct sizes {
    int64_t outer, in[3], full[3], out[3]; /* of the input, of the transform, of the output */
    int64_t total;                         /* outer · full */
} sizes;

/* What moves between tensors and the full complex array, row by row. */
typedef struct move {
    const sizes *sizes;
    const mr_tensor *input;
    mr_tensor *output;
    number *data;
    bool mirrored;
    double scale;
} move;

/* Splits a row's number, that of all but the last dimension, into the leading one and the positions of two others. */
static void split(int64_t row, const int64_t in[3], int64_t *outer, int64_t at[2])
{
    at[1] = row % in[1];
    at[0] = row / in[1] % in[0];
    *outer = row / in[1] / in[0];
}

/* Rows of the full array from the input; missing elements are 0, and IRFFT's are its conjugate symmetric ones. */
static void load_rows(void *context, int64_t begin, int64_t end)
{
    const move *m = context;
    const sizes *s = m->sizes;
    for (int64_t row = begin; row < end; row++) {
        int64_t outer, at[2], other[2];
        split(row, s->full, &outer, at);
        for (int d = 0; d < 2; d++) other[d] = (s->full[d] - at[d]) % s->full[d];
        number *to = m->data + row * s->full[2];
        const int64_t own = m->mirrored ? s->full[2] / 2 + 1 : s->full[2]; /* not mirrored */
        const bool inside = at[0] < s->in[0] && at[1] < s->in[1];
        const int64_t given = inside ? MR_MIN(own, s->in[2]) : 0;
        get(m->input, ((outer * s->in[0] + at[0]) * s->in[1] + at[1]) * s->in[2], given, to);
        for (int64_t k = given; k < own; k++) to[k] = (number){0};
        const bool other_inside = other[0] < s->in[0] && other[1] < s->in[1];
        const int64_t from = ((outer * s->in[0] + other[0]) * s->in[1] + other[1]) * s->in[2];
        for (int64_t k = own; k < s->full[2]; k++) {
            const int64_t position = s->full[2] - k;
            to[k] = (number){0};
            if (other_inside && position < s->in[2]) get(m->input, from + position, 1, &to[k]);
            to[k].im = -to[k].im;
        }
    }
}

/* Rows of the output. */
static void store_rows(void *context, int64_t begin, int64_t end)
{
    const move *m = context;
    const sizes *s = m->sizes;
    for (int64_t row = begin; row < end; row++) {
        int64_t outer, at[2];
        split(row, s->out, &outer, at);
        const number *from = m->data + ((outer * s->full[0] + at[0]) * s->full[1] + at[1]) * s->full[2];
        put(m->output, row * s->out[2], s->out[2], from, m->scale);
    }
}

/* The last dimension of a real transform: only elements of [0, full / 2] are read by the other dimensions. */
static mr_status run_sizes(mr_kernel_call *call, const sizes *s, bool inverse, bool mirrored, mr_error *error)
{
    size_t bytes;
    move m = {.sizes = s, .input = &call->inputs[0], .output = &call->outputs[0], .mirrored = mirrored};
    if (__builtin_mul_overflow((size_t)s->total, sizeof *m.data, &bytes))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_buffer *buffer;
    float *floats;
    MR_TRY(mr_scratch_new(call, (int64_t)(bytes / sizeof *floats), &buffer, &floats, error));
    m.data = (number *)floats;
    const int64_t grain = MR_MAX(1, MR_GRAIN / 8 / s->full[2]);
    mr_pool_for(call->device->pool, s->total / s->full[2], grain, load_rows, &m);
    mr_status status = MR_OK;
    int64_t inner = 1;
    for (int d = 2; d >= 0 && status == MR_OK; d--) {
        if (s->full[d] > 1) status = transform(call, m.data, s->total, s->full[d], inner, inverse, error);
        inner *= s->full[d];
    }
    m.scale = inverse ? 1.0 / (double)inner : 1;
    if (status == MR_OK) mr_pool_for(call->device->pool, mr_tensor_count(m.output) / s->out[2], grain, store_rows, &m);
    mr_buffer_unref(buffer);
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
