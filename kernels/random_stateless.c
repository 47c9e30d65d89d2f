/* Random numbers that are a function of their seed, and samples of classes (Multinomial).
 *
 * A seed is not used as the key directly: Philox scrambles it into a key and the upper half of the counter
 * (tensorflow/core/kernels/stateless_random_ops.cc). The operators V2 take both from their inputs. */
#include "kernels/random.h"
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

constexpr int32_t ALGORITHM_PHILOX = 1, ALGORITHM_AUTOMATIC = 3;

mr_status mr_random_from_seed(mr_kernel_call *call, int index, mr_philox *philox, mr_error *error)
{
    const mr_tensor *seed = &call->inputs[index];
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t values[2];
    int count = 0;
    if (seed->shape.rank != 1 || seed->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "seed must have shape [2], not %s",
                              mr_shape_text(seed->shape, text, sizeof text));
    if (seed->dtype != MR_INT32 && seed->dtype != MR_INT64)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid seed type: %s",
                              mr_dtype_name(seed->dtype));
    MR_TRY(mr_kernel_ints(call, index, "seed", values, 2, &count, error));
    uint64_t first = (uint64_t)values[0], second = (uint64_t)values[1];
    mr_philox scramble = {
        .key = {0x3ec8f720, 0x02461e29},
        .counter = {(uint32_t)first, (uint32_t)(first >> 32), (uint32_t)second, (uint32_t)(second >> 32)},
    };
    uint32_t words[4];
    mr_philox_next(&scramble, words);
    *philox = (mr_philox){.key = {words[0], words[1]}, .counter = {0, 0, words[2], words[3]}};
    return MR_OK;
}

mr_status mr_random_from_key(mr_kernel_call *call, mr_philox *philox, mr_error *error)
{
    const mr_tensor *key = &call->inputs[1], *counter = &call->inputs[2], *algorithm = &call->inputs[3];
    char text[MR_SHAPE_TEXT_SIZE];
    if (algorithm->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input 3 (0-based) must have shape [], not %s",
                              mr_shape_text(algorithm->shape, text, sizeof text));
    if (key->shape.rank != 1 || key->shape.dims[0] != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "key must have shape [1], not %s. (Note that batched keys are not supported yet.)",
                              mr_shape_text(key->shape, text, sizeof text));
    if (counter->shape.rank != 1 || counter->shape.dims[0] < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "counter must be a vector with length at least 2; got shape: %s. (Note that batched "
                              "counters are not supported yet.)",
                              mr_shape_text(counter->shape, text, sizeof text));
    int32_t number = mr_tensor_int32s(algorithm)[0];
    if (number != ALGORITHM_PHILOX && number != ALGORITHM_AUTOMATIC)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported algorithm id: %" PRId32, number);
    uint64_t k = ((const uint64_t *)key->data)[0];
    const uint64_t *c = counter->data;
    *philox = (mr_philox){.key = {(uint32_t)k, (uint32_t)(k >> 32)},
                          .counter = {(uint32_t)c[0], (uint32_t)(c[0] >> 32), (uint32_t)c[1], (uint32_t)(c[1] >> 32)}};
    return MR_OK;
}

/* Reads minval and maxval from inputs `first` and `first` + 1. */
static mr_status read_range(mr_kernel_call *call, int first, mr_random_fill *fill, mr_error *error)
{
    int64_t bounds[2];
    static const char *const names[] = {"minval", "maxval"};
    for (int i = 0; i < 2; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[first + i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 0-D, got shape %s", names[i],
                                  mr_shape_text(call->inputs[first + i].shape, text, sizeof text));
        MR_TRY(mr_kernel_int(call, first + i, names[i], &bounds[i], error));
    }
    if (bounds[0] >= bounds[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Need minval < maxval, got %" PRId64 " >= %" PRId64, bounds[0], bounds[1]);
    fill->low = bounds[0];
    fill->range = (uint64_t)bounds[1] - (uint64_t)bounds[0];
    return MR_OK;
}

static mr_status run_fill(mr_kernel_call *call, mr_distribution distribution, bool is_keyed, mr_error *error)
{
    mr_shape shape;
    mr_random_fill fill = {.distribution = distribution, .dtype = call->node->output_dtypes[0]};
    MR_TRY(is_keyed ? mr_random_from_key(call, &fill.philox, error)
                    : mr_random_from_seed(call, 1, &fill.philox, error));
    MR_TRY(mr_random_shape(call, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    fill.count = mr_shape_count(shape);
    if (fill.count == 0) return MR_OK;
    if (distribution == MR_RANDOM_INT) MR_TRY(read_range(call, is_keyed ? 4 : 2, &fill, error));
    fill.target = call->outputs[0].data;
    mr_random_run_fill(&fill, call->device->pool);
    return MR_OK;
}

#define FILL(name, distribution, is_keyed)                                                                             \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return run_fill(call, distribution, is_keyed, error);                                                          \
    }
FILL(seeded_uniform, MR_RANDOM_UNIFORM, false)
FILL(seeded_normal, MR_RANDOM_NORMAL, false)
FILL(seeded_truncated, MR_RANDOM_TRUNCATED, false)
FILL(seeded_int, MR_RANDOM_INT, false)
FILL(seeded_full_int, MR_RANDOM_FULL_INT, false)
FILL(keyed_uniform, MR_RANDOM_UNIFORM, true)
FILL(keyed_normal, MR_RANDOM_NORMAL, true)
FILL(keyed_truncated, MR_RANDOM_TRUNCATED, true)
FILL(keyed_int, MR_RANDOM_INT, true)
FILL(keyed_full_int, MR_RANDOM_FULL_INT, true)

static mr_status get_algorithm(mr_kernel_call *call, mr_error *error)
{
    int last = call->node->output_count - 1;
    MR_TRY(mr_kernel_output(call, last, MR_SCALAR, error));
    mr_tensor_int32s(&call->outputs[last])[0] = ALGORITHM_PHILOX;
    return MR_OK;
}

static mr_status get_key_counter(mr_kernel_call *call, mr_error *error)
{
    mr_philox philox;
    MR_TRY(mr_random_from_seed(call, 0, &philox, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(1), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(2), error));
    ((uint64_t *)call->outputs[0].data)[0] = philox.key[0] | (uint64_t)philox.key[1] << 32;
    ((uint64_t *)call->outputs[1].data)[0] = 0;
    ((uint64_t *)call->outputs[1].data)[1] = philox.counter[2] | (uint64_t)philox.counter[3] << 32;
    return call->node->output_count == 3 ? get_algorithm(call, error) : MR_OK;
}

/* ---- Generators whose state is a variable ---- */

constexpr int STATE_WORDS = 3;               /* the counter, then the key */
constexpr uint64_t SAMPLES_PER_NUMBER = 256; /* that a skip of 1 reserves */

mr_status mr_random_from_state(mr_kernel_call *call, int first, int64_t algorithm, uint64_t numbers, mr_philox *philox,
                               mr_error *error)
{
    mr_tensor *state = &call->inputs[0];
    if (state->dtype != MR_INT64)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "dtype of RNG state variable must be int64, not %s", mr_dtype_name(state->dtype));
    if (state->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "RNG state must have one and only one dimension, not %d", (int)state->shape.rank);
    if (algorithm != ALGORITHM_PHILOX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported algorithm id: %" PRId64, algorithm);
    if (state->shape.dims[0] < STATE_WORDS + first)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "For the Philox algorithm, the size of state must be at least %d; got %" PRId64,
                              STATE_WORDS + first, state->shape.dims[0]);
    uint64_t *counter = (uint64_t *)state->data + first, before = counter[0];
    *philox = (mr_philox){.key = {(uint32_t)counter[2], (uint32_t)(counter[2] >> 32)},
                          .counter = {(uint32_t)counter[0], (uint32_t)(counter[0] >> 32), (uint32_t)counter[1],
                                      (uint32_t)(counter[1] >> 32)}};
    uint64_t high = (uint64_t)((unsigned __int128)numbers * SAMPLES_PER_NUMBER >> 64);
    counter[0] += numbers * SAMPLES_PER_NUMBER;
    counter[1] += high + (counter[0] < before);
    return MR_OK;
}

/* Advances the generator in the variable, input 0. */
static mr_status skip_numbers(mr_kernel_call *call, int64_t algorithm, uint64_t delta, mr_error *error)
{
    mr_philox ignored;
    return mr_random_from_state(call, 0, algorithm, delta, &ignored, error);
}

static mr_status read_and_skip(mr_kernel_call *call, mr_error *error)
{
    mr_tensor old = {0};
    for (int i = 1; i < 3; i++)
        if (call->inputs[i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar",
                                  i == 1 ? "alg" : "delta");
    MR_TRY(mr_tensor_init_copy(&old, MR_INT64, MR_SHAPE(STATE_WORDS), (int64_t[STATE_WORDS]){0}, error));
    bool has_words = call->inputs[0].dtype == MR_INT64 && mr_tensor_count(&call->inputs[0]) >= STATE_WORDS;
    for (int i = 0; i < STATE_WORDS && has_words; i++)
        mr_tensor_int64s(&old)[i] = mr_tensor_int64s(&call->inputs[0])[i];
    mr_status status =
        skip_numbers(call, mr_tensor_int32s(&call->inputs[1])[0], ((const uint64_t *)call->inputs[2].data)[0], error);
    if (status == MR_OK)
        call->outputs[0] = old;
    else
        mr_tensor_deinit(&old);
    return status;
}

static mr_status skip(mr_kernel_call *call, mr_error *error)
{
    int64_t algorithm, delta;
    MR_TRY(mr_kernel_int(call, 1, "algorithm", &algorithm, error));
    MR_TRY(mr_kernel_int(call, 2, "delta", &delta, error));
    return skip_numbers(call, algorithm, (uint64_t)delta, error);
}

/* As read_range, for unsigned numbers. */
static mr_status read_unsigned_range(mr_kernel_call *call, int first, mr_random_fill *fill, mr_error *error)
{
    uint64_t bounds[2];
    for (int i = 0; i < 2; i++) {
        const mr_tensor *bound = &call->inputs[first + i];
        if (bound->shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 0-D",
                                  i == 0 ? "minval" : "maxval");
        bounds[i] = bound->dtype == MR_UINT32 ? ((const uint32_t *)bound->data)[0] : ((const uint64_t *)bound->data)[0];
    }
    if (bounds[0] >= bounds[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Need minval < maxval, got %" PRIu64 " >= %" PRIu64, bounds[0], bounds[1]);
    fill->low = (int64_t)bounds[0];
    fill->range = bounds[1] - bounds[0];
    return MR_OK;
}

/* The inputs are the variable, the algorithm, the shape, and for MR_RANDOM_INT the limits. */
static mr_status stateful_fill(mr_kernel_call *call, mr_distribution distribution, mr_error *error)
{
    mr_random_fill fill = {.distribution = distribution, .dtype = call->node->output_dtypes[0]};
    mr_shape shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input 1 (0-based) must have shape [], not %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    bool is_unsigned = fill.dtype == MR_UINT32 || fill.dtype == MR_UINT64;
    if (distribution == MR_RANDOM_INT)
        MR_TRY(is_unsigned ? read_unsigned_range(call, 3, &fill, error) : read_range(call, 3, &fill, error));
    MR_TRY(mr_kernel_shape(call, 2, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    fill.count = mr_shape_count(shape);
    MR_TRY(mr_random_from_state(call, 0, mr_tensor_int64s(&call->inputs[1])[0], (uint64_t)fill.count, &fill.philox,
                                error));
    fill.target = call->outputs[0].data;
    if (fill.count > 0) mr_random_run_fill(&fill, call->device->pool);
    return MR_OK;
}

#define STATEFUL(name, distribution)                                                                                   \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return stateful_fill(call, distribution, error);                                                               \
    }
STATEFUL(stateful_uniform, MR_RANDOM_UNIFORM)
STATEFUL(stateful_normal, MR_RANDOM_NORMAL)
STATEFUL(stateful_truncated, MR_RANDOM_TRUNCATED)
STATEFUL(stateful_int, MR_RANDOM_INT)
STATEFUL(stateful_full_int, MR_RANDOM_FULL_INT)

/* The oldest form: the first element of the variable is the algorithm. */
static mr_status stateful_normal_v1(mr_kernel_call *call, mr_error *error)
{
    mr_random_fill fill = {.distribution = MR_RANDOM_NORMAL, .dtype = call->node->output_dtypes[0]};
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    fill.count = mr_shape_count(shape);
    const mr_tensor *state = &call->inputs[0];
    bool has_algorithm = state->dtype == MR_INT64 && mr_tensor_count(state) > 0;
    MR_TRY(mr_random_from_state(call, 1, has_algorithm ? mr_tensor_int64s(state)[0] : ALGORITHM_PHILOX,
                                (uint64_t)fill.count, &fill.philox, error));
    fill.target = call->outputs[0].data;
    if (fill.count > 0) mr_random_run_fill(&fill, call->device->pool);
    return MR_OK;
}

static mr_status system_ints(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_random_shape(call, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    char *target = call->outputs[0].data;
    for (size_t left = mr_tensor_size_bytes(&call->outputs[0]); left > 0;) {
        ssize_t drawn = getrandom(target, left, 0);
        if (drawn < 0 && errno != EINTR)
            return mr_kernel_fail(call->node, error, MR_UNAVAILABLE, "the system has no random numbers");
        target += MR_MAX(drawn, 0);
        left -= (size_t)MR_MAX(drawn, 0);
    }
    return MR_OK;
}

/* ---- Multinomial ---- */

typedef struct multinomial_job {
    mr_philox philox;
    const mr_tensor *logits;
    mr_tensor *output;
    int64_t classes, samples;
    double *sums; /* rows x classes */
} multinomial_job;

static double logit_at(const mr_tensor *logits, int64_t index)
{
    switch (logits->dtype) {
    case MR_FLOAT:
        return (double)((const float *)logits->data)[index];
    case MR_DOUBLE:
        return ((const double *)logits->data)[index];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)logits->data)[index]);
    default:
        return (double)mr_bfloat16_to_float(((const uint16_t *)logits->data)[index]);
    }
}

/* The lowest finite value of the type, which is subtracted from the logits of a row without finite ones. */
static double lowest(mr_dtype dtype)
{
    return dtype == MR_DOUBLE  ? -DBL_MAX
           : dtype == MR_HALF  ? -65504.0
           : dtype == MR_FLOAT ? (double)-FLT_MAX
                               : (double)mr_bfloat16_to_float(0xff7f);
}

/* Sums of exp(logit - greatest logit), up to each class; logits that are not finite count nothing. */
static double sum_classes(const multinomial_job *job, int64_t row, double *sums)
{
    double greatest = lowest(job->logits->dtype), total = 0;
    for (int64_t i = 0; i < job->classes; i++) {
        double logit = logit_at(job->logits, row * job->classes + i);
        if (isfinite(logit)) greatest = fmax(greatest, logit);
    }
    for (int64_t i = 0; i < job->classes; i++) {
        double logit = logit_at(job->logits, row * job->classes + i);
        if (isfinite(logit)) total += exp(logit - greatest);
        sums[i] = total;
    }
    return total;
}

/* The first class whose sum is above the number. */
static int64_t find_class(const double *sums, int64_t count, double number)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (number < sums[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* All rows use one sequence of numbers, two words for each sample, as TensorFlow's first thread does. */
static void multinomial_rows(void *context, int64_t begin, int64_t end)
{
    const multinomial_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        double *sums = job->sums + row * job->classes;
        double total = sum_classes(job, row, sums);
        int64_t first = row * job->samples;
        mr_words words = {.philox = job->philox, .used = 4};
        mr_philox_skip(&words.philox, (uint64_t)first / 2);
        if (first % 2 != 0) (void)mr_words_next64(&words);
        for (int64_t i = 0; i < job->samples; i++) {
            int64_t class = find_class(sums, job->classes, mr_words_double(&words) * total);
            if (job->output->dtype == MR_INT32)
                ((int32_t *)job->output->data)[first + i] = (int32_t)class;
            else
                ((int64_t *)job->output->data)[first + i] = class;
        }
    }
}

static mr_status run_multinomial(mr_kernel_call *call, bool is_stateless, mr_error *error)
{
    const mr_tensor *logits = &call->inputs[0], *number = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    multinomial_job job = {.logits = logits, .output = &call->outputs[0]};
    if (is_stateless) MR_TRY(mr_random_from_seed(call, 2, &job.philox, error));
    if (logits->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "logits should be a matrix, got shape %s",
                              mr_shape_text(logits->shape, text, sizeof text));
    if (number->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_samples should be a scalar, got shape %s",
                              mr_shape_text(number->shape, text, sizeof text));
    job.samples = mr_tensor_int32s(number)[0];
    int64_t rows = logits->shape.dims[0];
    job.classes = logits->shape.dims[1];
    if (job.samples < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_samples should be nonnegative, got %" PRId64,
                              job.samples);
    if (rows > INT32_MAX || job.classes > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s cannot exceed max int",
                              rows > INT32_MAX ? "batch_size" : "num_classes");
    if (job.classes == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_classes should be positive, got 0");
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows, job.samples), error));
    if (rows == 0 || job.samples == 0) return MR_OK;
    /* TensorFlow reserves 256 samples for each output, with both factors rounded in int32. */
    uint32_t outputs = (uint32_t)rows * ((uint32_t)(job.samples + 3) / 4 * 4 * 2);
    if (!is_stateless) job.philox = mr_random_reserve(call, (int64_t)(int32_t)outputs * 256);
    job.sums = malloc((size_t)(rows * job.classes) * sizeof *job.sums);
    if (!job.sums)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " classes",
                              rows * job.classes);
    mr_pool_for(call->device->pool, rows, MR_MAX(1, 256 / (job.samples + job.classes)), multinomial_rows, &job);
    free(job.sums);
    return MR_OK;
}

static mr_status multinomial(mr_kernel_call *call, mr_error *error)
{
    return run_multinomial(call, false, error);
}

static mr_status stateless_multinomial(mr_kernel_call *call, mr_error *error)
{
    return run_multinomial(call, true, error);
}

#define SHAPES "shape_dtype: int32, int64"
#define FLOATS "dtype: half, bfloat16, float, double; " SHAPES
#define HOST(operator, function, ...) {.op = operator, .run = function, .host_inputs = 1u << 31, __VA_ARGS__}

static const mr_kernel kernels[] = {
    HOST("StatelessRandomUniform", seeded_uniform),
    HOST("StatelessRandomNormal", seeded_normal),
    HOST("StatelessTruncatedNormal", seeded_truncated),
    HOST("StatelessRandomUniformInt", seeded_int),
    HOST("StatelessRandomUniformFullInt", seeded_full_int),
    HOST("StatelessRandomUniformV2", keyed_uniform),
    HOST("StatelessRandomNormalV2", keyed_normal),
    HOST("StatelessTruncatedNormalV2", keyed_truncated),
    HOST("StatelessRandomUniformIntV2", keyed_int, .types = "dtype: int32, int64"),
    HOST("StatelessRandomUniformFullIntV2", keyed_full_int),
    HOST("StatelessRandomGetKeyCounter", get_key_counter),
    HOST("StatelessRandomGetKeyCounterAlg", get_key_counter),
    HOST("StatelessRandomGetAlg", get_algorithm),
    HOST("RngReadAndSkip", read_and_skip, .host_outputs = 1u << 31, .updates = 1),
    HOST("RngSkip", skip, .updates = 1),
    HOST("StatefulUniform", stateful_uniform, .types = FLOATS, .updates = 1),
    HOST("StatefulStandardNormal", stateful_normal_v1, .types = FLOATS, .updates = 1),
    HOST("StatefulStandardNormalV2", stateful_normal, .types = FLOATS, .updates = 1),
    HOST("StatefulTruncatedNormal", stateful_truncated, .types = FLOATS, .updates = 1),
    HOST("StatefulUniformInt", stateful_int, .types = "dtype: int32, int64, uint32, uint64; " SHAPES, .updates = 1),
    HOST("StatefulUniformFullInt", stateful_full_int, .types = "dtype: int32, int64, uint32, uint64; " SHAPES,
         .updates = 1),
    HOST("NonDeterministicInts", system_ints, .types = "dtype: int32, int64, uint32, uint64; " SHAPES),
    {.op = "Multinomial", .types = "T: half, bfloat16, float, double", .run = multinomial},
    {.op = "StatelessMultinomial", .types = "T: half, bfloat16, float, double", .run = stateless_multinomial},
};
MR_KERNEL_FAMILY(random_stateless);
