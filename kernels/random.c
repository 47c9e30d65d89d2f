/* Random numbers, bit for bit equal to TensorFlow's. The four words of Philox sample g produce the outputs of group g,
 * so any thread can compute any group. TruncatedNormal rejects values and therefore reserves 256 samples for each
 * output of a group (tensorflow/core/kernels/random_op_cpu.h, core/lib/random/random_distributions.h). */
#include "kernels/random.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

constexpr int64_t SAMPLES_PER_OUTPUT = 256;

void mr_random_normal_floats(uint32_t x0, uint32_t x1, float out[2])
{
    float u = mr_random_float(x0);
    if (u < 1.0e-7f) u = 1.0e-7f;
    float angle = (float)(2.0 * 3.14159265358979323846 * (double)mr_random_float(x1));
    float radius = sqrtf(-2.0f * logf(u)), sine, cosine;
    sincosf(angle, &sine, &cosine);
    out[0] = sine * radius;
    out[1] = cosine * radius;
}

void mr_random_normal_doubles(const uint32_t words[4], double out[2])
{
    double u = mr_random_double(words[0], words[1]);
    if (u < 1.0e-7) u = 1.0e-7;
    double angle = 2 * 3.14159265358979323846 * mr_random_double(words[2], words[3]);
    double radius = sqrt(-2.0 * log(u)), sine, cosine;
    sincos(angle, &sine, &cosine);
    out[0] = sine * radius;
    out[1] = cosine * radius;
}

int mr_random_group_size(mr_dtype dtype)
{
    return mr_dtype_size(dtype) == 8 ? 2 : 4;
}

/* The values of one group. double represents the values of every type except int64. */
static void truncated_group(mr_words *w, mr_dtype dtype, double values[4])
{
    int have = 0, want = mr_random_group_size(dtype);
    while (have < want) {
        double pair[2];
        if (dtype == MR_DOUBLE) {
            uint32_t four[4];
            for (int i = 0; i < 4; i++) four[i] = mr_words_next(w);
            mr_random_normal_doubles(four, pair);
        } else {
            float floats[2];
            uint32_t x0 = mr_words_next(w), x1 = mr_words_next(w);
            mr_random_normal_floats(x0, x1, floats);
            pair[0] = (double)floats[0];
            pair[1] = (double)floats[1];
        }
        for (int i = 0; i < 2 && have < want; i++)
            if (fabs(pair[i]) < 2.0) values[have++] = pair[i];
    }
}

static void real_group(const mr_random_fill *job, int64_t group, double values[4])
{
    mr_philox philox = job->philox;
    if (job->distribution == MR_RANDOM_TRUNCATED) {
        mr_philox_skip(&philox, (uint64_t)(group * mr_random_group_size(job->dtype) * SAMPLES_PER_OUTPUT / 4));
        mr_words w = {.philox = philox, .used = 4};
        truncated_group(&w, job->dtype, values);
        return;
    }
    uint32_t x[4];
    mr_philox_skip(&philox, (uint64_t)group);
    mr_philox_next(&philox, x);
    if (job->distribution == MR_RANDOM_NORMAL && job->dtype == MR_DOUBLE) {
        mr_random_normal_doubles(x, values);
    } else if (job->distribution == MR_RANDOM_NORMAL) {
        float floats[4];
        mr_random_normal_floats(x[0], x[1], floats);
        mr_random_normal_floats(x[2], x[3], floats + 2);
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

static void put_real(const mr_random_fill *job, int64_t i, double value)
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

static void int_group(const mr_random_fill *job, int64_t group)
{
    uint32_t x[4];
    mr_philox philox = job->philox;
    bool is_full = job->distribution == MR_RANDOM_FULL_INT;
    mr_philox_skip(&philox, (uint64_t)group);
    mr_philox_next(&philox, x);
    if (mr_random_group_size(job->dtype) == 2) {
        for (int64_t i = 0; i < 2 && group * 2 + i < job->count; i++) {
            uint64_t bits = x[2 * i] | (uint64_t)x[2 * i + 1] << 32;
            ((uint64_t *)job->target)[group * 2 + i] = is_full ? bits : (uint64_t)job->low + bits % job->range;
        }
        return;
    }
    for (int64_t i = 0; i < 4 && group * 4 + i < job->count; i++)
        ((uint32_t *)job->target)[group * 4 + i] = is_full ? x[i] : (uint32_t)job->low + x[i] % (uint32_t)job->range;
}

/* ---- Floats, eight groups at a time ---- */

typedef uint64_t lanes __attribute__((vector_size(64)));
constexpr int LANES = 8;

/* Samples first, first + step, … of Philox as base/random.c computes them, with a word of each in the low half of each
 * lane. */
MR_INLINE void philox_lanes(const mr_philox *philox, uint64_t first, uint64_t step, lanes words[4])
{
    const uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32;
    const uint64_t high = philox->counter[2] | (uint64_t)philox->counter[3] << 32;
    const lanes index = (lanes){0, 1, 2, 3, 4, 5, 6, 7} * step + first, mask = (lanes){} + UINT32_MAX,
                counter = index + low;
    const lanes carried = (lanes){} + high - (lanes)(counter < index);
    lanes c0 = counter & mask, c1 = counter >> 32, c2 = carried & mask, c3 = carried >> 32;
    uint32_t k0 = philox->key[0], k1 = philox->key[1];
    MR_UNROLL
    for (int round = 0; round < 10; round++) {
        const lanes product0 = c0 * 0xd2511f53, product1 = c2 * 0xcd9e8d57;
        c0 = (product1 >> 32) ^ c1 ^ k0;
        c1 = product1 & mask;
        c2 = (product0 >> 32) ^ c3 ^ k1;
        c3 = product0 & mask;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

/* Groups [begin, end), a multiple of LANES. */
MR_INLINE void uniform_floats_body(const mr_random_fill *job, int64_t begin, int64_t end)
{
    float *target = (float *)job->target + 4 * begin;
    for (int64_t group = begin; group < end; group += LANES, target += 4 * LANES) {
        lanes words[4];
        uint64_t pairs[2][LANES];
        philox_lanes(&job->philox, (uint64_t)group, 1, words);
        /* The bits of floats in [1, 2), two words in each lane. */
        for (int i = 0; i < 2; i++) {
            const lanes bits = (words[2 * i] & 0x7fffff) | (words[2 * i + 1] & 0x7fffff) << 32 | 0x3f8000003f800000;
            memcpy(pairs[i], &bits, sizeof bits);
        }
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < 2; i++) memcpy(target + 4 * lane + 2 * i, &pairs[i][lane], sizeof pairs[i][lane]);
        for (int i = 0; i < 4 * LANES; i++) target[i] -= 1.0f;
    }
}
MR_LEVELS(uniform_floats, (const mr_random_fill *job, int64_t begin, int64_t end), (job, begin, end))

/* The same for normal floats, truncated or not. */
MR_INLINE void normal_floats_body(const mr_random_fill *job, int64_t begin, int64_t end)
{
    const bool is_truncated = job->distribution == MR_RANDOM_TRUNCATED;
    const uint64_t step = is_truncated ? SAMPLES_PER_OUTPUT : 1;
    for (int64_t group = begin; group < end; group += LANES) {
        lanes words[4];
        uint64_t lists[4][LANES];
        philox_lanes(&job->philox, (uint64_t)group * step, step, words);
        memcpy(lists, words, sizeof lists);
        for (int64_t lane = 0; lane < LANES; lane++) {
            float *target = (float *)job->target + 4 * (group + lane);
            mr_random_normal_floats((uint32_t)lists[0][lane], (uint32_t)lists[1][lane], target);
            mr_random_normal_floats((uint32_t)lists[2][lane], (uint32_t)lists[3][lane], target + 2);
            bool is_accepted = true;
            for (int i = 0; i < 4; i++) is_accepted = is_accepted && fabsf(target[i]) < 2.0f;
            if (is_accepted || !is_truncated) continue;
            double values[4] = {0};
            real_group(job, group + lane, values);
            for (int i = 0; i < 4; i++) target[i] = (float)values[i];
        }
    }
}
MR_LEVELS(normal_floats, (const mr_random_fill *job, int64_t begin, int64_t end), (job, begin, end))

/* Fills the whole groups of [begin, end) of floats and returns where the others begin. */
static int64_t fill_floats(const mr_random_fill *job, int64_t begin, int64_t end)
{
    const int64_t whole = MR_MIN(end, job->count / 4) - begin;
    if (job->dtype != MR_FLOAT || job->distribution >= MR_RANDOM_INT || whole < LANES) return begin;
    end = begin + whole / LANES * LANES;
    (job->distribution == MR_RANDOM_UNIFORM ? uniform_floats : normal_floats)[mr_cpu()](job, begin, end);
    return end;
}

static void random_groups(void *context, int64_t begin, int64_t end)
{
    const mr_random_fill *job = context;
    int size = mr_random_group_size(job->dtype);
    for (int64_t group = fill_floats(job, begin, end); group < end; group++) {
        if (job->distribution >= MR_RANDOM_INT) {
            int_group(job, group);
            continue;
        }
        double values[4] = {0};
        real_group(job, group, values);
        for (int i = 0; i < size && group * size + i < job->count; i++) put_real(job, group * size + i, values[i]);
    }
}

mr_philox mr_random_reserve(mr_kernel_call *call, int64_t samples)
{
    return mr_kernel_reserve(call, (uint64_t)mr_attr_int_or(call->node->attrs, "seed", 0),
                             (uint64_t)mr_attr_int_or(call->node->attrs, "seed2", 0), (uint64_t)samples);
}

mr_status mr_random_shape(const mr_kernel_call *call, mr_shape *shape, mr_error *error)
{
    if (call->inputs[0].shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "shape must be a vector of {int32,int64}, got shape []");
    return mr_kernel_shape(call, 0, shape, error);
}

void mr_random_run_fill(mr_random_fill *fill, mr_pool *pool)
{
    int size = mr_random_group_size(fill->dtype);
    mr_pool_for(pool, (fill->count + size - 1) / size, 1024, random_groups, fill);
}

static mr_status run_job(mr_kernel_call *call, mr_random_fill *job, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_random_shape(call, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    job->dtype = call->node->output_dtypes[0];
    job->target = call->outputs[0].data;
    job->count = mr_shape_count(shape);
    job->philox = mr_random_reserve(call, job->count * SAMPLES_PER_OUTPUT);
    mr_random_run_fill(job, call->device->pool);
    return MR_OK;
}

static mr_status random_uniform(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(mr_random_fill){.distribution = MR_RANDOM_UNIFORM}, error);
}

static mr_status random_normal(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(mr_random_fill){.distribution = MR_RANDOM_NORMAL}, error);
}

static mr_status truncated_normal(mr_kernel_call *call, mr_error *error)
{
    return run_job(call, &(mr_random_fill){.distribution = MR_RANDOM_TRUNCATED}, error);
}

static mr_status random_uniform_int(mr_kernel_call *call, mr_error *error)
{
    int64_t low, high;
    for (int i = 1; i < 3; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 0-D, got shape %s",
                                  i == 1 ? "minval" : "maxval",
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_int(call, 1, "minval", &low, error));
    MR_TRY(mr_kernel_int(call, 2, "maxval", &high, error));
    if (low >= high)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Need minval < maxval, got %" PRId64 " >= %" PRId64, low, high);
    mr_random_fill job = {.distribution = MR_RANDOM_INT, .low = low, .range = (uint64_t)high - (uint64_t)low};
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
    mr_words w = {.philox = mr_random_reserve(call, (rows - 1 + 3) / 4), .used = 4};
    MR_TRY(mr_sink_init(call, 0, value->shape, &sink, error));
    size_t row_bytes = (size_t)(count / rows) * sink.element_size;
    memcpy(sink.data, value->data, (size_t)rows * row_bytes);
    for (int64_t i = 0; i + 1 < rows; i++) {
        char *a = (char *)sink.data + (size_t)i * row_bytes;
        char *b = a + (size_t)(mr_words_next(&w) % (uint32_t)(rows - i)) * row_bytes;
        for (size_t at = 0; at < row_bytes && a != b; at++) {
            char byte = a[at];
            a[at] = b[at];
            b[at] = byte;
        }
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* The rows of a rectangle at a random position. The first word chooses x if there is a choice, the next one y. */
static mr_status random_crop(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *image = &call->inputs[0];
    int64_t size[2];
    int count;
    MR_TRY(mr_kernel_ints(call, 1, "shape_t", size, 2, &count, error));
    if (image->shape.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 3-dimensional");
    if (count != 2) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape_t must have two elements");
    int64_t height = image->shape.dims[0], width = image->shape.dims[1], channels = image->shape.dims[2];
    if (size[0] < 0 || size[1] < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the size must not be negative");
    if (width < size[1])
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION,
                              "width must be >= target_width: width = %" PRId64 ", target_width = %" PRId64, width,
                              size[1]);
    if (height < size[0])
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION,
                              "height must be >= target_height: height = %" PRId64 ", target_height = %" PRId64, height,
                              size[0]);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(size[0], size[1], channels), error));
    mr_words w = {.philox = mr_random_reserve(call, 1), .used = 4};
    int64_t x = width > size[1] ? (int64_t)(mr_words_next(&w) % (uint64_t)(width - size[1] + 1)) : 0;
    int64_t y = height > size[0] ? (int64_t)(mr_words_next(&w) % (uint64_t)(height - size[0] + 1)) : 0;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    size_t pixel = (size_t)channels * mr_dtype_size(image->dtype), row = (size_t)size[1] * pixel;
    for (int64_t i = 0; i < size[0]; i++)
        memcpy((char *)call->outputs[0].data + (size_t)i * row,
               (const char *)image->data + (size_t)((y + i) * width + x) * pixel, row);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "RandomUniform", .run = random_uniform, .host_inputs = 1 << 0},
    {.op = "RandomStandardNormal", .run = random_normal, .host_inputs = 1 << 0},
    {.op = "TruncatedNormal", .run = truncated_normal, .host_inputs = 1 << 0},
    {.op = "RandomUniformInt", .run = random_uniform_int, .host_inputs = 1 << 0 | 1 << 1 | 1 << 2},
    {.op = "RandomShuffle", .run = random_shuffle},
    {.op = "RandomCrop", .run = random_crop},
};
MR_KERNEL_FAMILY(random);
