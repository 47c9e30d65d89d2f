/* Cumulative sums, products and logarithms of sums along a dimension. The tensor is [outer, length, inner]: rows of
 * inner elements are combined one after the other, and blocks of rows are processed in parallel. */
#include "kernels/complex_math.h"
#include "kernels/vector_math.h"

typedef enum scan_kind { SUM, PRODUCT, LOG_SUM_EXP, SCAN_COUNT } scan_kind;

/* start    fills a row with the neutral element
 * step     to[i] = last[i] op from[i]; `to` and `last` may be the same
 * line     scans elements at the given stride, 1 or -1 */
typedef struct scanner {
    void (*start)(void *row, int64_t count);
    void (*step)(void *to, const void *last, const void *from, int64_t count);
    void (*line)(void *to, const void *from, int64_t count, int64_t stride, bool exclusive);
} scanner;

/* keep and read convert between an element and the type of the accumulator. */
#define SCANNER_OF(name, type, wide, neutral, keep, read, expression)                                                  \
    static void name##_start(void *row, int64_t count)                                                                 \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)row)[i] = keep(neutral);                                          \
    }                                                                                                                  \
    static void name##_step(void *target, const void *last, const void *from, int64_t count)                           \
    {                                                                                                                  \
        type *to = target;                                                                                             \
        const type *as = last, *bs = from;                                                                             \
        MR_EACH_ELEMENT                                                                                                \
        {                                                                                                              \
            const wide a = read(as[i]), b = read(bs[i]);                                                               \
            to[i] = keep(expression);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_line(void *target, const void *source, int64_t count, int64_t stride, bool exclusive)           \
    {                                                                                                                  \
        type *to = target, sum = keep(neutral);                                                                        \
        const type *from = source;                                                                                     \
        for (int64_t i = 0; i < count; i++, to += stride, from += stride) {                                            \
            const wide a = read(sum), b = read(*from);                                                                 \
            if (exclusive) *to = sum;                                                                                  \
            sum = keep(expression);                                                                                    \
            if (!exclusive) *to = sum;                                                                                 \
        }                                                                                                              \
    }
#define SAME(x) (x)
#define SCANNER(name, type, neutral, expression) SCANNER_OF(name, type, type, neutral, (type), SAME, expression)
/* Half types are rounded after each step. */
#define SCANNER_HALF(name, suffix, neutral, expression)                                                                \
    SCANNER_OF(name##_##suffix, uint16_t, float, neutral, mr_float_to_##suffix, mr_##suffix##_to_float, expression)
#define SCANNERS(dtype, type, suffix)                                                                                  \
    SCANNER(sum_##suffix, type, 0, a + b)                                                                              \
    SCANNER(product_##suffix, type, 1, a *b)
/* Products of uint16 would overflow int, so narrow integers are multiplied as uint32. */
#define SCANNERS_NARROW(type, suffix)                                                                                  \
    SCANNER(sum_##suffix, type, 0, (uint32_t)a + (uint32_t)b)                                                          \
    SCANNER(product_##suffix, type, 1, (uint32_t)a *(uint32_t)b)
SCANNERS(MR_FLOAT, float, float)
SCANNERS(MR_DOUBLE, double, double)
SCANNERS(MR_UINT32, uint32_t, uint32)
SCANNERS(MR_UINT64, uint64_t, uint64)
SCANNERS_NARROW(uint8_t, uint8)
SCANNERS_NARROW(uint16_t, uint16)
SCANNER(sum_complex64, mr_complex64, 0, a + b)
SCANNER(sum_complex128, mr_complex128, 0, a + b)
SCANNER(product_complex64, mr_complex64, 1, mr_complex_times(a, b))
SCANNER(product_complex128, mr_complex128, 1, mr_complex_times(a, b))
SCANNER_HALF(sum, half, 0, a + b)
SCANNER_HALF(sum, bfloat16, 0, a + b)
SCANNER_HALF(product, half, 1, a *b)
SCANNER_HALF(product, bfloat16, 1, a *b)

/* log(exp(a) + exp(b)). A NaN in b counts as a, as in TensorFlow. */
static float log_sum_exp_float(float a, float b)
{
    float least = b < a ? b : a, most = a < b ? b : a;
    return most == -INFINITY ? most : log1pf(expf(least - most)) + most;
}

static double log_sum_exp_double(double a, double b)
{
    double least = b < a ? b : a, most = a < b ? b : a;
    return most == -(double)INFINITY ? most : log1p(exp(least - most)) + most;
}

SCANNER(log_sum_exp_float, float, -INFINITY, log_sum_exp_float(a, b))
SCANNER(log_sum_exp_double, double, -(double)INFINITY, log_sum_exp_double(a, b))
SCANNER_HALF(log_sum_exp, half, -INFINITY, log_sum_exp_float(a, b))
SCANNER_HALF(log_sum_exp, bfloat16, -INFINITY, log_sum_exp_float(a, b))

#define ROW(name) {name##_start, name##_step, name##_line}
#define ROWS(dtype, suffix) [dtype] = {[SUM] = ROW(sum_##suffix), [PRODUCT] = ROW(product_##suffix)}
#define ROWS_REAL(dtype, suffix)                                                                                       \
    [dtype] = {[SUM] = ROW(sum_##suffix), [PRODUCT] = ROW(product_##suffix), [LOG_SUM_EXP] = ROW(log_sum_exp_##suffix)}
/* Signed integers wrap, and share the loops of the unsigned ones. */
static const scanner scanners[MR_DTYPE_COUNT][SCAN_COUNT] = {
    ROWS_REAL(MR_FLOAT, float), ROWS_REAL(MR_DOUBLE, double), ROWS_REAL(MR_HALF, half),
    ROWS(MR_INT8, uint8),       ROWS(MR_UINT8, uint8),        ROWS_REAL(MR_BFLOAT16, bfloat16),
    ROWS(MR_INT16, uint16),     ROWS(MR_UINT16, uint16),      ROWS(MR_COMPLEX64, complex64),
    ROWS(MR_INT32, uint32),     ROWS(MR_UINT32, uint32),      ROWS(MR_COMPLEX128, complex128),
    ROWS(MR_INT64, uint64),     ROWS(MR_UINT64, uint64),
};

typedef struct scan_job {
    scanner scanner;
    const char *source;
    char *target;
    size_t size;
    int64_t length, inner, blocks, block; /* each row is processed in blocks of at most `block` elements */
    bool exclusive, reverse;
} scan_job;

static void scan_units(void *context, int64_t begin, int64_t end)
{
    const scan_job *job = context;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t outer = unit / job->blocks, from = unit % job->blocks * job->block;
        int64_t count = MR_MIN(job->block, job->inner - from), last = -1;
        if (job->inner == 1) {
            size_t first = (size_t)(outer * job->length + (job->reverse ? job->length - 1 : 0)) * job->size;
            job->scanner.line(job->target + first, job->source + first, job->length, job->reverse ? -1 : 1,
                              job->exclusive);
            continue;
        }
        for (int64_t k = 0; k < job->length; k++) {
            int64_t position = job->reverse ? job->length - 1 - k : k;
            int64_t row = (outer * job->length + position) * job->inner + from;
            char *to = job->target + (size_t)row * job->size;
            if (k == 0) job->scanner.start(to, count);
            if (k > 0 || !job->exclusive) {
                const char *before = k == 0 ? to : job->target + (size_t)last * job->size;
                int64_t added = job->exclusive ? last : row;
                job->scanner.step(to, before, job->source + (size_t)added * job->size, count);
            }
            last = row;
        }
    }
}

static mr_status scan(mr_kernel_call *call, scan_kind kind, mr_error *error)
{
    constexpr int64_t BLOCK = 1024;
    const mr_tensor *input = &call->inputs[0];
    int rank = input->shape.rank;
    int64_t axis;
    if (call->inputs[1].shape.rank != 0) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "ScanOp: axis must be a scalar, not %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_int(call, 1, "axis", &axis, error));
    if (axis < -rank || axis >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "ScanOp: Expected scan axis in the range [%d, %d), but got %lld", -rank, rank,
                              (long long)(axis < 0 ? axis + rank : axis));
    if (axis < 0) axis += rank;
    scan_job job = {.scanner = scanners[input->dtype][kind],
                    .source = input->data,
                    .size = mr_dtype_size(input->dtype),
                    .length = input->shape.dims[axis],
                    .inner = mr_dims_product(&input->shape, (int)axis + 1, rank),
                    .exclusive = mr_attr_bool_or(call->node->attrs, "exclusive", false),
                    .reverse = mr_attr_bool_or(call->node->attrs, "reverse", false)};
    if (job.scanner.start == nullptr) return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    job.target = call->outputs[0].data;
    if (mr_tensor_count(input) == 0) return MR_OK;
    job.block = MR_MIN(job.inner, BLOCK);
    job.blocks = (job.inner + BLOCK - 1) / BLOCK;
    int64_t units = mr_dims_product(&input->shape, 0, (int)axis) * job.blocks;
    int64_t work = mr_tensor_count(input) / units * (kind == LOG_SUM_EXP ? 32 : 1);
    mr_pool_for(call->device->pool, units, MR_MAX(1, MR_GRAIN / MR_MAX(1, work)), scan_units, &job);
    return MR_OK;
}

static mr_status cumsum(mr_kernel_call *call, mr_error *error)
{
    return scan(call, SUM, error);
}

static mr_status cumprod(mr_kernel_call *call, mr_error *error)
{
    return scan(call, PRODUCT, error);
}

static mr_status cumulative_logsumexp(mr_kernel_call *call, mr_error *error)
{
    return scan(call, LOG_SUM_EXP, error);
}

static const mr_kernel kernels[] = {
    {.op = "Cumsum", .run = cumsum, .host_inputs = 1 << 1},
    {.op = "Cumprod", .run = cumprod, .host_inputs = 1 << 1},
    {.op = "CumulativeLogsumexp", .run = cumulative_logsumexp, .host_inputs = 1 << 1},
};
MR_KERNEL_FAMILY(scan);
