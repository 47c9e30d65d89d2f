/* Samples from distributions whose parameters are tensors: gamma, Poisson, and binomial distributions.
 *
 * Each output starts at a multiple of 256 samples of the generator, so any thread can compute it. The algorithms are
 * Marsaglia's and Tsang's (transformation and rejection), Knuth's for Poisson rates below 10, and Hörmann's transformed
 * rejection for others (tensorflow/core/kernels/random_op.cc, random_poisson_op.cc, random_binomial_op.cc). */
#include "kernels/random.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

constexpr int64_t SAMPLES_PER_OUTPUT = 256;
constexpr int64_t PARAMETERS_PER_PIECE = 64;

static double number_at(const mr_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (double)((const float *)tensor->data)[index];
    case MR_DOUBLE:
        return ((const double *)tensor->data)[index];
    case MR_INT32:
        return ((const int32_t *)tensor->data)[index];
    case MR_INT64:
        return (double)((const int64_t *)tensor->data)[index];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)tensor->data)[index]);
    default:
        return (double)mr_bfloat16_to_float(((const uint16_t *)tensor->data)[index]);
    }
}

/* Integers that do not fit become the least one, as on x86. */
static void put_number(const mr_tensor *tensor, int64_t index, double value)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        ((float *)tensor->data)[index] = (float)value;
        break;
    case MR_DOUBLE:
        ((double *)tensor->data)[index] = value;
        break;
    case MR_INT32:
        ((int32_t *)tensor->data)[index] = value > -0x1p31 - 1 && value < 0x1p31 ? (int32_t)value : INT32_MIN;
        break;
    case MR_INT64:
        ((int64_t *)tensor->data)[index] = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
        break;
    case MR_HALF:
        ((uint16_t *)tensor->data)[index] = mr_float_to_half((float)value);
        break;
    default:
        ((uint16_t *)tensor->data)[index] = mr_float_to_bfloat16((float)value);
        break;
    }
}

/* ---- One sample ---- */

/* Pairs of doubles from one generator; the second of a pair is used first. */
typedef struct doubles {
    mr_philox philox;
    double uniforms[2], normals[2];
    int uniform_count, normal_count;
} doubles;

static double next_uniform(doubles *d)
{
    if (d->uniform_count == 0) {
        uint32_t words[4];
        mr_philox_next(&d->philox, words);
        d->uniforms[0] = mr_random_double(words[0], words[1]);
        d->uniforms[1] = mr_random_double(words[2], words[3]);
        d->uniform_count = 2;
    }
    return d->uniforms[--d->uniform_count];
}

static double next_normal(doubles *d)
{
    if (d->normal_count == 0) {
        uint32_t words[4];
        mr_philox_next(&d->philox, words);
        mr_random_normal_doubles(words, d->normals);
        d->normal_count = 2;
    }
    return d->normals[--d->normal_count];
}

static double gamma_sample(doubles *d, double alpha)
{
    if (!(alpha > 0) || isinf(alpha)) return NAN;
    if (alpha == 1) return -log1p(-next_uniform(d));
    bool is_small = alpha < 1;
    double shift = alpha + (is_small ? 2.0 / 3 : -1.0 / 3), scale = 1.0 / 3 / sqrt(shift);
    for (;;) {
        double x = next_normal(d), v = 1 + scale * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = next_uniform(d);
        if (u >= 1 - 0.0331 * (x * x) * (x * x) && log(u) >= 0.5 * x * x + shift * (1 - v + log(v))) continue;
        double result = shift * v;
        if (is_small) result *= pow(next_uniform(d), 1 / alpha);
        return result;
    }
}

static double poisson_small(doubles *d, double rate)
{
    double limit = exp(-rate), product = 1, count = 0;
    for (;; count += 1) {
        product *= next_uniform(d);
        if (product <= limit) return count;
    }
}

static double poisson_large(doubles *d, double rate)
{
    double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
        double u = next_uniform(d) - 0.5, v = next_uniform(d), distance = 0.5 - fabs(u);
        double k = floor((2 * a / distance + b) * u + rate + 0.43);
        if (distance >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
        if (k < 0 || (distance < 0.013 && v > distance)) continue;
        double s = log(v * inverse_alpha / (a / (distance * distance) + b));
        if (s <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

static double poisson_sample(doubles *d, double rate)
{
    if (!isfinite(rate) || rate < 0) return NAN;
    return rate < 10 ? poisson_small(d, rate) : poisson_large(d, rate);
}

/* ---- All samples ---- */

typedef struct each_job {
    mr_philox philox;
    double (*sample)(doubles *d, double parameter);
    const mr_tensor *parameters;
    const mr_tensor *output;
    int64_t samples, parameter_count;
} each_job;

/* Output i is sample i % samples of parameter i / samples; the parameters are the last dimension of the result. */
static void each_piece(void *context, int64_t begin, int64_t end)
{
    const each_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        doubles d = {.philox = job->philox};
        int64_t parameter = i / job->samples;
        mr_philox_skip(&d.philox, (uint64_t)(i * SAMPLES_PER_OUTPUT));
        put_number(job->output, i % job->samples * job->parameter_count + parameter,
                   job->sample(&d, number_at(job->parameters, parameter)));
    }
}

static mr_status run_each(mr_kernel_call *call, double (*sample)(doubles *, double), mr_error *error)
{
    const mr_tensor *parameters = &call->inputs[1];
    mr_shape samples, shape;
    if (call->inputs[0].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape must be a vector of {int32,int64}");
    MR_TRY(mr_kernel_shape(call, 0, &samples, error));
    shape = samples;
    if (samples.rank + parameters->shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < parameters->shape.rank; i++) shape.dims[shape.rank++] = parameters->shape.dims[i];
    if (mr_shape_count(shape) < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape has too many elements");
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_shape_count(shape);
    if (count == 0) return MR_OK;
    each_job job = {.philox = mr_random_reserve(call, count * SAMPLES_PER_OUTPUT),
                    .sample = sample,
                    .parameters = parameters,
                    .output = &call->outputs[0],
                    .samples = mr_shape_count(samples),
                    .parameter_count = mr_tensor_count(parameters)};
    mr_pool_for(call->device->pool, count, PARAMETERS_PER_PIECE, each_piece, &job);
    return MR_OK;
}

static mr_status random_gamma(mr_kernel_call *call, mr_error *error)
{
    return run_each(call, gamma_sample, error);
}

static mr_status random_poisson(mr_kernel_call *call, mr_error *error)
{
    return run_each(call, poisson_sample, error);
}

/* The same numbers for a shape that already ends with the parameters' shape. */
static mr_status run_stateless(mr_kernel_call *call, int input, mr_philox philox, double (*sample)(doubles *, double),
                               mr_error *error)
{
    const mr_tensor *parameters = &call->inputs[input];
    mr_shape shape;
    MR_TRY(mr_random_shape(call, &shape, error));
    int lead = shape.rank - parameters->shape.rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < parameters->shape.rank; i++) fits = shape.dims[lead + i] == parameters->shape.dims[i];
    if (!fits)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape passed in must end with broadcasted shape.");
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_shape_count(shape);
    if (count == 0) return MR_OK;
    each_job job = {.philox = philox,
                    .sample = sample,
                    .parameters = parameters,
                    .output = &call->outputs[0],
                    .samples = count / mr_tensor_count(parameters),
                    .parameter_count = mr_tensor_count(parameters)};
    mr_pool_for(call->device->pool, count, PARAMETERS_PER_PIECE, each_piece, &job);
    return MR_OK;
}

static mr_status seeded_gamma(mr_kernel_call *call, mr_error *error)
{
    mr_philox philox;
    MR_TRY(mr_random_from_seed(call, 1, &philox, error));
    return run_stateless(call, 2, philox, gamma_sample, error);
}

static mr_status keyed_gamma(mr_kernel_call *call, mr_error *error)
{
    mr_philox philox;
    MR_TRY(mr_random_from_key(call, &philox, error));
    return run_stateless(call, 4, philox, gamma_sample, error);
}

static mr_status seeded_poisson(mr_kernel_call *call, mr_error *error)
{
    mr_philox philox;
    MR_TRY(mr_random_from_seed(call, 1, &philox, error));
    return run_stateless(call, 2, philox, poisson_sample, error);
}

/* ---- Binomial numbers of trials ---- */

/* The sum of geometric numbers: quick if there are few successes. */
static double binomial_small(doubles *d, double count, double probability)
{
    double trials = 0, successes = 0, scale = log1p(-probability);
    for (;; successes += 1) {
        trials += ceil(log(next_uniform(d)) / scale);
        if (trials > count) return successes;
    }
}

/* What Stirling's approximation of log(k!) misses. */
static double stirling_tail(double k)
{
    static const double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return first[(int)k];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Hörmann's transformed rejection with a squeeze. */
static double binomial_large(doubles *d, double count, double probability)
{
    double std = sqrt(count * probability * (1 - probability)), ratio = probability / (1 - probability);
    double b = 1.15 + 2.53 * std, a = -0.0873 + 0.0248 * b + 0.01 * probability, c = count * probability + 0.5;
    double alpha = (2.83 + 5.1 / b) * std, mode = floor((count + 1) * probability);
    for (;;) {
        double u = next_uniform(d) - 0.5, v = next_uniform(d), distance = 0.5 - fabs(u);
        double k = floor((2 * a / distance + b) * u + c);
        if (distance >= 0.07 && v <= 0.92 - 4.2 / b) return k;
        if (k < 0 || k > count) continue;
        double bound = (mode + 0.5) * log((mode + 1) / (ratio * (count - mode + 1))) +
                       (count + 1) * log((count - mode + 1) / (count - k + 1)) +
                       (k + 0.5) * log(ratio * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                       stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
        if (log(v * alpha / (a / (distance * distance) + b)) <= bound) return k;
    }
}

/* The sample of output i. The quick algorithm reserves fewer samples of the generator. */
static double binomial_sample(mr_philox philox, int64_t i, double count, double probability)
{
    constexpr int64_t SAMPLES_PER_SMALL_OUTPUT = 42;
    if (!isfinite(count) || isnan(probability)) return NAN;
    if (count <= 0 || probability <= 0) return 0;
    if (probability >= 1) return count;
    bool is_likely = probability > 0.5;
    double p = is_likely ? 1 - probability : probability;
    bool is_small = count * p < 10;
    doubles d = {.philox = philox};
    mr_philox_skip(&d.philox, (uint64_t)(i * (is_small ? SAMPLES_PER_SMALL_OUTPUT : SAMPLES_PER_OUTPUT)));
    double k = is_small ? binomial_small(&d, count, p) : binomial_large(&d, count, p);
    return is_likely ? count - k : k;
}

typedef struct binomial_job {
    mr_philox philox;
    const mr_tensor *counts, *probabilities, *output;
    mr_shape shape; /* of both parameters */
    int64_t count_strides[MR_RANK_MAX], probability_strides[MR_RANK_MAX];
    int64_t samples, parameter_count;
} binomial_job;

static void binomial_piece(void *context, int64_t begin, int64_t end)
{
    const binomial_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t parameter = i / job->samples, rest = parameter, count = 0, probability = 0;
        for (int axis = job->shape.rank - 1; axis >= 0; axis--) {
            int64_t at = rest % job->shape.dims[axis];
            rest /= job->shape.dims[axis];
            count += at * job->count_strides[axis];
            probability += at * job->probability_strides[axis];
        }
        put_number(
            job->output, i % job->samples * job->parameter_count + parameter,
            binomial_sample(job->philox, i, number_at(job->counts, count), number_at(job->probabilities, probability)));
    }
}

/* Strides of an operand in the broadcast shape; false if it does not broadcast. */
static bool broadcast_strides(const mr_shape *operand, const mr_shape *shape, int64_t strides[MR_RANK_MAX])
{
    int offset = shape->rank - operand->rank;
    int64_t own[MR_RANK_MAX];
    mr_shape_strides(*operand, own);
    for (int d = 0; d < shape->rank; d++) strides[d] = 0;
    for (int d = 0; d < operand->rank; d++) {
        if (operand->dims[d] != 1 && operand->dims[d] != shape->dims[d + offset]) return false;
        strides[d + offset] = operand->dims[d] == 1 ? 0 : own[d];
    }
    return true;
}

/* The shape of both operands together; false if they do not broadcast. */
static bool broadcast_both(const mr_shape *a, const mr_shape *b, mr_shape *shape)
{
    const mr_shape *shorter = a->rank < b->rank ? a : b;
    *shape = a->rank < b->rank ? *b : *a;
    for (int d = 0; d < shorter->rank; d++) {
        int64_t *size = &shape->dims[shape->rank - shorter->rank + d];
        if (*size == 1) *size = shorter->dims[d];
        if (*size != shorter->dims[d] && shorter->dims[d] != 1) return false;
    }
    return true;
}

/* The generator is a seed, or a variable, which the algorithm and the shape follow. */
static mr_status run_binomial(mr_kernel_call *call, bool is_stateful, mr_error *error)
{
    int first = is_stateful ? 3 : 2;
    const mr_tensor *counts = &call->inputs[first], *probabilities = &call->inputs[first + 1];
    binomial_job job = {.counts = counts, .probabilities = probabilities, .output = &call->outputs[0]};
    char text[2][MR_SHAPE_TEXT_SIZE];
    mr_shape shape;
    if (!is_stateful) MR_TRY(mr_random_from_seed(call, 1, &job.philox, error));
    MR_TRY(mr_kernel_shape(call, is_stateful ? 2 : 0, &shape, error));
    if (!broadcast_both(&counts->shape, &probabilities->shape, &job.shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "counts and probs must have compatible batch dimensions: %s vs. %s",
                              mr_shape_text(counts->shape, text[0], sizeof text[0]),
                              mr_shape_text(probabilities->shape, text[1], sizeof text[1]));
    int lead = shape.rank - job.shape.rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < job.shape.rank; i++) fits = shape.dims[lead + i] == job.shape.dims[i];
    if (!fits)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape passed in must end with broadcasted shape.");
    (void)broadcast_strides(&counts->shape, &job.shape, job.count_strides);
    (void)broadcast_strides(&probabilities->shape, &job.shape, job.probability_strides);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_shape_count(shape);
    if (count == 0) return MR_OK;
    job.parameter_count = mr_shape_count(job.shape);
    job.samples = count / job.parameter_count;
    if (is_stateful) {
        int64_t algorithm;
        uint64_t numbers = (uint64_t)job.parameter_count * 200 * (uint64_t)(job.samples + 3) / 4;
        MR_TRY(mr_kernel_int(call, 1, "algorithm", &algorithm, error));
        MR_TRY(mr_random_from_state(call, 0, algorithm, numbers, &job.philox, error));
    }
    mr_pool_for(call->device->pool, count, PARAMETERS_PER_PIECE, binomial_piece, &job);
    return MR_OK;
}

static mr_status seeded_binomial(mr_kernel_call *call, mr_error *error)
{
    return run_binomial(call, false, error);
}

static mr_status stateful_binomial(mr_kernel_call *call, mr_error *error)
{
    return run_binomial(call, true, error);
}

/* ---- The derivative of a gamma sample with respect to alpha ---- */

/* The derivative of lgamma: recurrence up to 10, then the asymptotic series. */
static double digamma(double x)
{
    double shift = 0;
    while (x < 10) {
        shift -= 1 / x;
        x += 1;
    }
    double square = 1 / (x * x);
    double series =
        square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
    return shift + log(x) - 0.5 / x - series;
}

/* d sample / d alpha = -(dP/dalpha) / (dP/dx) for the distribution function P(alpha, x), by its power series. */
static double gamma_series(double alpha, double x)
{
    double r = alpha, c = 1, sum = 1, dc = 0, dsum = 0;
    for (int i = 0; i < 2000; i++) {
        r += 1;
        double term = x / r, dterm = -x / (r * r);
        dc = term * dc + dterm * c;
        dsum += dc;
        c *= term;
        sum += c;
        if (fabs(dc) <= 0x1p-53 * fabs(dsum)) break;
    }
    return -(dsum + sum * (log(x) - digamma(alpha + 1))) * x / alpha;
}

/* The same by the continued fraction of 1 - P. */
static double gamma_fraction(double alpha, double x)
{
    double y = 1 - alpha, z = x + y + 1, c = 0;
    double p2 = 1, q2 = x, p1 = x + 1, q1 = z * x, value = p1 / q1;
    double dp2 = 0, dq2 = 0, dp1 = 0, dq1 = -x, derivative = (dp1 - value * dq1) / q1;
    for (int i = 0; i < 2000; i++) {
        c += 1, y += 1, z += 2;
        double p = p1 * z - p2 * y * c, q = q1 * z - q2 * y * c;
        double dp = dp1 * z - p1 - dp2 * y * c + p2 * c, dq = dq1 * z - q1 - dq2 * y * c + q2 * c;
        bool is_done = false;
        if (q != 0) {
            double before = derivative;
            value = p / q;
            derivative = (dp - value * dq) / q;
            is_done = fabs(derivative - before) <= 0x1p-53;
        }
        if (is_done) break;
        p2 = p1, p1 = p, q2 = q1, q1 = q, dp2 = dp1, dp1 = dp, dq2 = dq1, dq1 = dq;
        if (fabs(p) > 0x1p52) {
            p2 *= 0x1p-52, p1 *= 0x1p-52, q2 *= 0x1p-52, q1 *= 0x1p-52;
            dp2 *= 0x1p-52, dp1 *= 0x1p-52, dq2 *= 0x1p-52, dq1 *= 0x1p-52;
        }
    }
    return (derivative + value * (log(x) - digamma(alpha))) * x;
}

/* As in TensorFlow, 0 where the density of the sample is not a normal number of the dtype. */
static double gamma_derivative(double alpha, double sample, mr_dtype dtype)
{
    const double least = log(dtype == MR_DOUBLE ? DBL_MIN : (double)FLT_MIN);
    if (sample == 0) return 0;
    if (isnan(sample) || isnan(alpha) || sample < 0 || alpha <= 0) return NAN;
    if (isinf(sample) || isinf(alpha)) return sample;
    const bool is_upper = sample > 1 && sample > alpha;
    if (alpha * log(sample) - sample - lgamma(alpha) < least) return is_upper ? -0.0 : 0;
    return is_upper ? gamma_fraction(alpha, sample) : gamma_series(alpha, sample);
}

typedef struct derivative_job {
    const mr_tensor *alpha, *sample, *output;
    int64_t alpha_strides[MR_RANK_MAX], sample_strides[MR_RANK_MAX];
} derivative_job;

static void derivative_piece(void *context, int64_t begin, int64_t end)
{
    const derivative_job *job = context;
    const mr_shape *shape = &job->output->shape;
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i, alpha = 0, sample = 0;
        for (int d = shape->rank - 1; d >= 0; d--) {
            int64_t at = rest % shape->dims[d];
            rest /= shape->dims[d];
            alpha += at * job->alpha_strides[d];
            sample += at * job->sample_strides[d];
        }
        put_number(job->output, i,
                   gamma_derivative(number_at(job->alpha, alpha), number_at(job->sample, sample), job->alpha->dtype));
    }
}

static mr_status random_gamma_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *alpha = &call->inputs[0], *sample = &call->inputs[1];
    bool is_alpha_longer = alpha->shape.rank >= sample->shape.rank;
    mr_shape shape = is_alpha_longer ? alpha->shape : sample->shape;
    const mr_shape *other = is_alpha_longer ? &sample->shape : &alpha->shape;
    for (int d = 0; d < other->rank; d++) {
        int64_t *size = &shape.dims[shape.rank - other->rank + d];
        if (*size == 1) *size = other->dims[d];
    }
    derivative_job job = {.alpha = alpha, .sample = sample, .output = &call->outputs[0]};
    char text[2][MR_SHAPE_TEXT_SIZE];
    if (!broadcast_strides(&alpha->shape, &shape, job.alpha_strides) ||
        !broadcast_strides(&sample->shape, &shape, job.sample_strides) || mr_shape_count(shape) < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                              mr_shape_text(alpha->shape, text[0], sizeof text[0]),
                              mr_shape_text(sample->shape, text[1], sizeof text[1]));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_pool_for(call->device->pool, mr_shape_count(shape), 256, derivative_piece, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "RandomGamma", .run = random_gamma},
    {.op = "RandomGammaGrad", .run = random_gamma_grad},
    {.op = "StatelessRandomGammaV2", .run = seeded_gamma},
    {.op = "StatelessRandomGammaV3", .run = keyed_gamma},
    {.op = "StatelessRandomPoisson", .run = seeded_poisson},
    {.op = "StatelessRandomBinomial", .run = seeded_binomial},
    {.op = "StatefulRandomBinomial", .run = stateful_binomial, .host_inputs = 1u << 31, .updates = 1},
    {.op = "RandomPoisson", .run = random_poisson},
    {.op = "RandomPoissonV2", .run = random_poisson},
};
MR_KERNEL_FAMILY(random_each);
