/* Cast: every numeric type to every other; quantized types as the integers that store them.
 * Fractions are truncated, as in C. Half types are converted through float;
 * complex numbers lose their imaginary part. */
#include "base/halves.h"
#include "kernels/elementwise.h"
#include <string.h>

typedef void (*cast_loop)(void *target, const void *source, int64_t count);

#define EACH_INTEGER(X, ...)                                                                                           \
    X(MR_INT32, int32_t, int32, __VA_ARGS__)                                                                           \
    X(MR_INT64, int64_t, int64, __VA_ARGS__)                                                                           \
    X(MR_INT8, int8_t, int8, __VA_ARGS__)                                                                              \
    X(MR_INT16, int16_t, int16, __VA_ARGS__)                                                                           \
    X(MR_UINT8, uint8_t, uint8, __VA_ARGS__)                                                                           \
    X(MR_UINT16, uint16_t, uint16, __VA_ARGS__)                                                                        \
    X(MR_UINT32, uint32_t, uint32, __VA_ARGS__)                                                                        \
    X(MR_UINT64, uint64_t, uint64, __VA_ARGS__)                                                                        \
    X(MR_BOOL, bool, bool, __VA_ARGS__)
#define EACH_PLAIN(X, ...)                                                                                             \
    X(MR_FLOAT, float, float, __VA_ARGS__)                                                                             \
    X(MR_DOUBLE, double, double, __VA_ARGS__)                                                                          \
    EACH_INTEGER(X, __VA_ARGS__)

/* A real number converted to each type. NaN and numbers out of range become the lowest number of int32 or int64, as
 * with the x86 instructions; narrower types take the low bits of int32, and uint32 those of int64. TensorFlow's scalar
 * loops do the same; its vector loops saturate narrow types, so that its result depends on the position in the
 * tensor. */
#define LOW_BITS(type, name, wide_name, real)                                                                          \
    MR_INLINE type name##_of_##real(real x)                                                                            \
    {                                                                                                                  \
        return (type)wide_name##_of_##real(x);                                                                         \
    }
#define CONVERSIONS(real)                                                                                              \
    MR_INLINE int32_t int32_of_##real(real x)                                                                          \
    {                                                                                                                  \
        return x > (real) - 2147483649.0 && x < (real)2147483648.0 ? (int32_t)x : INT32_MIN;                           \
    }                                                                                                                  \
    MR_INLINE int64_t int64_of_##real(real x)                                                                          \
    {                                                                                                                  \
        return x >= (real) - 0x1p63 && x < (real)0x1p63 ? (int64_t)x : INT64_MIN;                                      \
    }                                                                                                                  \
    MR_INLINE uint64_t uint64_of_##real(real x)                                                                        \
    {                                                                                                                  \
        return x >= (real)0x1p63 && x < (real)0x1p64 ? (uint64_t)x : (uint64_t)int64_of_##real(x);                     \
    }                                                                                                                  \
    LOW_BITS(uint32_t, uint32, int64, real)                                                                            \
    LOW_BITS(int8_t, int8, int32, real)                                                                                \
    LOW_BITS(int16_t, int16, int32, real)                                                                              \
    LOW_BITS(uint8_t, uint8, int32, real)                                                                              \
    LOW_BITS(uint16_t, uint16, int32, real)                                                                            \
    MR_INLINE bool bool_of_##real(real x)                                                                              \
    {                                                                                                                  \
        return x != 0;                                                                                                 \
    }                                                                                                                  \
    MR_INLINE float float_of_##real(real x)                                                                            \
    {                                                                                                                  \
        return (float)x;                                                                                               \
    }                                                                                                                  \
    MR_INLINE double double_of_##real(real x)                                                                          \
    {                                                                                                                  \
        return (double)x;                                                                                              \
    }
CONVERSIONS(float)
CONVERSIONS(double)

#define LOOP(from_type, from_name, to_type, to_name, converted)                                                        \
    static void from_name##_to_##to_name(void *target, const void *source, int64_t count)                              \
    {                                                                                                                  \
        to_type *to = target;                                                                                          \
        const from_type *from = source;                                                                                \
        MR_EACH_ELEMENT to[i] = (to_type)(converted);                                                                  \
    }
#define INTEGER_LOOP(from_dtype, from_type, from_name, to_type, to_name)                                               \
    LOOP(from_type, from_name, to_type, to_name, from[i])
#define LOOPS(to_type, to_name)                                                                                        \
    LOOP(float, float, to_type, to_name, to_name##_of_float(from[i]))                                                  \
    LOOP(double, double, to_type, to_name, to_name##_of_double(from[i]))                                               \
    EACH_INTEGER(INTEGER_LOOP, to_type, to_name)
LOOPS(float, float)
LOOPS(double, double)
LOOPS(int32_t, int32)
LOOPS(int64_t, int64)
LOOPS(int8_t, int8)
LOOPS(int16_t, int16)
LOOPS(uint8_t, uint8)
LOOPS(uint16_t, uint16)
LOOPS(uint32_t, uint32)
LOOPS(uint64_t, uint64)
LOOPS(bool, bool)

#define CELL(from_dtype, from_type, from_name, to_name) [from_dtype] = from_name##_to_##to_name,
/* casts[to][from] */
static const cast_loop casts[MR_DTYPE_COUNT][MR_DTYPE_COUNT] = {
    [MR_FLOAT] = {EACH_PLAIN(CELL, float)},   [MR_DOUBLE] = {EACH_PLAIN(CELL, double)},
    [MR_INT32] = {EACH_PLAIN(CELL, int32)},   [MR_INT64] = {EACH_PLAIN(CELL, int64)},
    [MR_INT8] = {EACH_PLAIN(CELL, int8)},     [MR_INT16] = {EACH_PLAIN(CELL, int16)},
    [MR_UINT8] = {EACH_PLAIN(CELL, uint8)},   [MR_UINT16] = {EACH_PLAIN(CELL, uint16)},
    [MR_UINT32] = {EACH_PLAIN(CELL, uint32)}, [MR_UINT64] = {EACH_PLAIN(CELL, uint64)},
    [MR_BOOL] = {EACH_PLAIN(CELL, bool)},
};

typedef struct cast_job {
    cast_loop loop;
    mr_dtype from, to;
    size_t from_size, to_size;
    char *target;
    const char *source;
} cast_job;

static void cast_piece(void *context, int64_t begin, int64_t end);

static bool is_complex(mr_dtype dtype)
{
    return dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128;
}

static mr_dtype real_of(mr_dtype dtype)
{
    return dtype == MR_COMPLEX64 ? MR_FLOAT : MR_DOUBLE;
}

/* Complex numbers are converted through double, their real parts through their own type, as in TensorFlow. */
static void cast_complex(const cast_job *job, char *target, const char *source, int64_t count)
{
    constexpr int64_t CHUNK = 256;
    double numbers[2 * CHUNK], parts[CHUNK];
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = MR_MIN(CHUNK, count - at);
        const char *from = source + (size_t)at * job->from_size;
        char *to = target + (size_t)at * job->to_size;
        if (is_complex(job->from) && is_complex(job->to)) {
            casts[MR_DOUBLE][real_of(job->from)](numbers, from, 2 * n);
            casts[real_of(job->to)][MR_DOUBLE](to, numbers, 2 * n);
        } else if (is_complex(job->from)) {
            mr_dtype real = real_of(job->from);
            for (int64_t i = 0; i < n; i++) {
                if (real == MR_FLOAT)
                    ((float *)parts)[i] = ((const float *)from)[2 * i];
                else
                    parts[i] = ((const double *)from)[2 * i];
            }
            cast_piece(&(cast_job){casts[job->to][real], real, job->to, mr_dtype_size(real), job->to_size, to,
                                   (const char *)parts},
                       0, n);
        } else {
            mr_dtype real = real_of(job->to);
            cast_piece(&(cast_job){casts[real][job->from], job->from, real, job->from_size, mr_dtype_size(real),
                                   (char *)parts, from},
                       0, n);
            for (int64_t i = 0; i < n; i++) {
                numbers[2 * i] = real == MR_FLOAT ? (double)((const float *)parts)[i] : parts[i];
                numbers[2 * i + 1] = 0;
            }
            casts[real][MR_DOUBLE](to, numbers, 2 * n);
        }
    }
}

static void cast_piece(void *context, int64_t begin, int64_t end)
{
    const cast_job *job = context;
    constexpr int64_t CHUNK = 512;
    const char *source = job->source + (size_t)begin * job->from_size;
    char *target = job->target + (size_t)begin * job->to_size;
    if (is_complex(job->from) || is_complex(job->to)) {
        cast_complex(job, target, source, end - begin);
        return;
    }
    if (!mr_is_half(job->from) && !mr_is_half(job->to)) {
        job->loop(target, source, end - begin);
        return;
    }
    float chunk[CHUNK];
    for (int64_t at = 0; at < end - begin; at += CHUNK) {
        int64_t count = MR_MIN(CHUNK, end - begin - at);
        const void *from = source + (size_t)at * job->from_size;
        void *to = target + (size_t)at * job->to_size;
        if (mr_is_half(job->from))
            mr_halves_to_floats(chunk, from, count, job->from);
        else
            casts[MR_FLOAT][job->from](chunk, from, count);
        if (mr_is_half(job->to))
            mr_floats_to_halves(to, chunk, count, job->to);
        else
            casts[job->to][MR_FLOAT](to, chunk, count);
    }
}

/* The type of the table that stands for a half or complex one. */
static mr_dtype plain(mr_dtype dtype)
{
    return mr_is_half(dtype) ? MR_FLOAT : is_complex(dtype) ? real_of(dtype) : dtype;
}

/* The integer type of a quantized one: the numbers are cast, without their range. */
static mr_dtype unquantized(mr_dtype dtype)
{
    switch (dtype) {
    case MR_QINT8:
        return MR_INT8;
    case MR_QUINT8:
        return MR_UINT8;
    case MR_QINT16:
        return MR_INT16;
    case MR_QUINT16:
        return MR_UINT16;
    case MR_QINT32:
        return MR_INT32;
    default:
        return dtype;
    }
}

static mr_status cast(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_dtype to = call->node->output_dtypes[0];
    cast_job job = {.from = unquantized(input->dtype), .to = unquantized(to), .source = input->data};
    if (job.from == job.to) {
        call->outputs[0] = mr_tensor_ref(input);
        call->outputs[0].dtype = to;
        return MR_OK;
    }
    job.loop = casts[job.to][job.from];
    if (casts[plain(job.to)][plain(job.from)] == nullptr)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "Cast %s to %s is not supported",
                              mr_dtype_name(input->dtype), mr_dtype_name(to));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    job.from_size = mr_dtype_size(job.from);
    job.to_size = mr_dtype_size(job.to);
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, mr_tensor_count(input), MR_GRAIN, cast_piece, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {{.op = "Cast", .run = cast}};
MR_KERNEL_FAMILY(cast);
