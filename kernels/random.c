/* Random numbers, bit for bit equal to TensorFlow's. The four words of Philox sample g produce the outputs of group g,
 * so any thread can compute any group. TruncatedNormal rejects values and therefore reserves 256 samples for each
 * output of a group (tensorflow/core/kernels/random_op_cpu.h, core/lib/random/random_distributions.h). */
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum distribution { UNIFORM, NORMAL, TRUNCATED, UNIFORM_INT } distribution;

typedef struct random_job {
    mr_philox philox;
    distribution distribution;
    mr_dtype dtype;
    void *target;
    int64_t count;
    int64_t low; /* UNIFORM_INT: [low, low + range) */
    uint64_t range;
} random_job;

constexpr int64_t SAMPLES_PER_OUTPUT = 256;

/* Two normal numbers from two words (four for doubles), by the Box-Muller transform. */
static void normal_floats(uint32_t x0, uint32_t x1, float out[2])
{
    float u = mr_random_float(x0);
    if (u < 1.0e-7f) u = 1.0e-7f;
    float angle = (float)(2.0 * 3.14159265358979323846 * (double)mr_random_float(x1));
    float radius = sqrtf(-2.0f * logf(u));
    out[0] = sinf(angle) * radius;
    out[1] = cosf(angle) * radius;
}

static void normal_doubles(const uint32_t words[4], double out[2])
{
    double u = mr_random_double(words[0], words[1]);
    if (u < 1.0e-7) u = 1.0e-7;
    double angle = 2 * 3.14159265358979323846 * mr_random_double(words[2], words[3]);
    double radius = sqrt(-2.0 * log(u));
    out[0] = sin(angle) * radius;
    out[1] = cos(angle) * radius;
}

/* A sequence of random words. */
typedef struct words {
    mr_philox philox;
    uint32_t have[4];
    int used;
} words;

static uint32_t next_word(words *w)
{
    if (w->used == 4) {
        mr_philox_next(&w->philox, w->have);
        w->used = 0;
    }
    return w->have[w->used++];
}

static int group_size(mr_dtype dtype)
{
    return dtype == MR_DOUBLE || dtype == MR_INT64 ? 2 : 4;
}

/* The values of one group. double represents the values of every type except int64. */
static void truncated_group(words *w, mr_dtype dtype, double values[4])
{
    int have = 0, want = group_size(dtype);
    while (have < want) {
        double pair[2];
        if (dtype == MR_DOUBLE) {
            uint32_t four[4];
            for (int i = 0; i < 4; i++) four[i] = next_word(w);
            normal_doubles(four, pair);
        } else {
            float floats[2];
            uint32_t x0 = next_word(w), x1 = next_word(w);
            normal_floats(x0, x1, floats);
            pair[0] = (double)floats[0];
            pair[1] = (double)floats[1];
        }
        for (int i = 0; i < 2 && have < want; i++)
            if (fabs(pair[i]) < 2.0) values[have++] = pair[i];
    }
}

static void real_group(const random_job *job, int64_t group, double values[4])
{
    mr_philox philox = job->philox;
    if (job->distribution == TRUNCATED) {
        mr_philox_skip(&philox, (uint64_t)(group * group_size(job->dtype) * SAMPLES_PER_OUTPUT / 4));
        words w = {.philox = philox, .used = 4};
        truncated_group(&w, job->dtype, values);
        return;
    }
    uint32_t x[4];
    mr_philox_skip(&philox, (uint64_t)group);
    mr_philox_next(&philox, x);
    if (job->distribution == NORMAL && job->dtype == MR_DOUBLE) {
        normal_doubles(x, values);
    } else if (job->distribution == NORMAL) {
        float floats[4];
        normal_floats(x[0], x[1], floats);
        normal_floats(x[2], x[3], floats + 2);
        for (int i = 0; i < 4; i++) values[i] = (double)floats[i];
    } else if (job->dtype == MR_DOUBLE) {
        for (int i = 0; i < 2; i++) values[i] = mr_random_double(x[2 * i], x[2 * i + 1]);
    } else {
        for (int i = 0; i < 4; i++)
            values[i] = job->dtype == MR_HALF       ? (double)(x[i] & 0x3ff) / 1024
                        : job->dtype == MR_BFLOAT16 ? (double)(x[i] & 0x7f) / 128
                                                    : (double)mr_random_float(x[i]);
    }
}

static void put_real(const random_job *job, int64_t i, double value)
{
    switch (job->dtype) {
    case MR_FLOAT:
        ((float *)job->target)[i] = (float)value;
        break;
    case MR_DOUBLE:
        ((double *)job->target)[i] = value;
        break;
    case MR_HALF:
        ((uint16_t *)job->target)[i] = mr_float_to_half((float)value);
        break;
    default:
        ((uint16_t *)job->target)[i] = mr_float_to_bfloat16((float)value);
        break;
    }
}

static void int_group(const random_job *job, int64_t group)
{
    uint32_t x[4];
    mr_philox philox = job->philox;
    mr_philox_skip(&philox, (uint64_t)group);
    mr_philox_next(&philox, x);
    if (job->dtype == MR_INT64) {
        for (int64_t i = 0; i < 2 && group * 2 + i < job->count; i++) {
            uint64_t bits = x[2 * i] | (uint64_t)x[2 * i + 1] << 32;
            ((int64_t *)job->target)[group * 2 + i] = (int64_t)((uint64_t)job->low + bits % job->range);
        }
        return;
    }
    for (int64_t i = 0; i < 4 && group * 4 + i < job->count; i++)
        ((int32_t *)job->target)[group * 4 + i] = (int32_t)((uint32_t)job->low + x[i] % (uint32_t)job->range);
}

static void random_groups(void *context, int64_t begin, int64_t end)
{
    const random_job *job = context;
    int size = group_size(job->dtype);
    for (int64_t group = begin; group < end; group++) {
        if (job->distribution == UNIFORM_INT) {
            int_group(job, group);
            continue;
        }
        double values[4];
        real_group(job, group, values);
        for (int i = 0; i < size && group * size + i < job->count; i++) put_real(job, group * size + i, values[i]);
    }
}

static mr_philox reserve(mr_kernel_call *call, int64_t samples)
{
    return mr_kernel_reserve(call, (uint64_t)mr_attr_int_or(call->node->attrs, "seed", 0),
                             (uint64_t)mr_attr_int_or(call->node->attrs, "seed2", 0), (uint64_t)samples);
}

static mr_status run_job(mr_kernel_call *call, random_job *job, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    job->dtype = call->node->output_dtypes[0];
    job->target = call->outputs[0].data;
    job->count = mr_shape_count(shape);
    job->philox = reserve(call, job->count * SAMPLES_PER_OUTPUT);
    int size = group_size(job->dtype);
    mr_pool_for(call->device->pool, (job->count + size - 1) / size, 1024, random_groups, job);
    return MR_OK;
}

static mr_status random_uniform(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(random_job){.distribution = UNIFORM}, error);
}

static mr_status random_normal(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(random_job){.distribution = NORMAL}, error);
}

static mr_status truncated_normal(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(random_job){.distribution = TRUNCATED}, error);
}

static mr_status random_uniform_int(mr_kernel_call *call, mr_error *error)
{
    int64_t low, high;
    MR_TRY(mr_kernel_int(call, 1, "minval", &low, error));
    MR_TRY(mr_kernel_int(call, 2, "maxval", &high, error));
    if (low >= high)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Need minval < maxval, got %" PRId64 " >= %" PRId64, low, high);
    random_job job = {.distribution = UNIFORM_INT, .low = low, .range = (uint64_t)high - (uint64_t)low};
    return run_job(call, &job, error);
}

/* Shuffles the rows of dimension 0. */
static mr_status random_shuffle(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *value = &call->inputs[0];
    int64_t rows = value->shape.rank > 0 ? value->shape.dims[0] : 1, count = mr_tensor_count(value);
    if (rows <= 1 || count <= 1) {
        call->outputs[0] = mr_tensor_ref(value);
        return MR_OK;
    }
    mr_sink sink;
    words w = {.philox = reserve(call, (rows - 1 + 3) / 4), .used = 4};
    MR_TRY(mr_sink_init(call, 0, value->shape, &sink, error));
    size_t row_bytes = (size_t)(count / rows) * sink.element_size;
    memcpy(sink.data, value->data, (size_t)rows * row_bytes);
    for (int64_t i = 0; i + 1 < rows; i++) {
        char *a = (char *)sink.data + (size_t)i * row_bytes;
        char *b = a + (size_t)(next_word(&w) % (uint32_t)(rows - i)) * row_bytes;
        for (size_t at = 0; at < row_bytes && a != b; at++) {
            char byte = a[at];
            a[at] = b[at];
            b[at] = byte;
        }
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static const mr_kernel kernels[] = {
    {.op = "RandomUniform", .run = random_uniform, .host_inputs = 1 << 0},
    {.op = "RandomStandardNormal", .run = random_normal, .host_inputs = 1 << 0},
    {.op = "TruncatedNormal", .run = truncated_normal, .host_inputs = 1 << 0},
    {.op = "RandomUniformInt", .run = random_uniform_int, .host_inputs = 1 << 0 | 1 << 1 | 1 << 2},
    {.op = "RandomShuffle", .run = random_shuffle},
};
MR_KERNEL_FAMILY(random);
