/* The step counter, and learning rates that decay with it. */
#include "base/options.h"
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <float.h>
#include <math.h>
#include <string.h>

static mr_output as_float(mr_graph *graph, mr_output step)
{
    return mr_output_dtype(step) == MR_FLOAT ? step : mr_cast(graph, step, MR_FLOAT);
}

static mr_output number(mr_graph *graph, float value)
{
    return mr_constant_float(graph, value);
}

/* ---- What all decays share ---- */

/* Opens the scope of a decay, which is popped in any case. Whether the options are valid. */
static bool begin(mr_graph *graph, const char *name, const mr_decay_options *given, mr_decay_options *options)
{
    mr_error error = {0};
    if (graph == nullptr) return false;
    const mr_status status = MR_OPTIONS_READ(mr_decay_options, options, given, &error);
    mr_graph_push_scope(graph, status == MR_OK && options->name != nullptr ? options->name : name);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static mr_output end(mr_graph *graph, mr_output value)
{
    mr_graph_pop_scope(graph);
    return value;
}

static bool check_rate(mr_graph *graph, float learning_rate, mr_output output)
{
    if (output.node == nullptr) return mr_train_check_number(graph, "learning_rate", learning_rate, 0);
    if (!isnan(learning_rate)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "learning_rate and learning_rate_output are both given, but only one may be");
        return false;
    }
    const mr_shape shape = mr_output_shape(output);
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_output_dtype(output) == MR_FLOAT && shape.rank <= 0) return true; /* -1: unknown */
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "learning_rate_output is %s%s, but must be a float scalar",
                        mr_dtype_name(mr_output_dtype(output)), mr_shape_text(shape, text, sizeof text));
    return false;
}

static bool check(mr_graph *graph, mr_output step, float learning_rate, const mr_decay_options *options, int64_t steps)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (step.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "global_step is missing");
        return false;
    }
    return check_rate(graph, learning_rate, options->learning_rate_output) &&
           mr_train_check_count(graph, "decay_steps", steps, 1);
}

/* The learning rate at step 0. name null: of a constant */
static mr_output first_rate(mr_graph *graph, const char *name, float learning_rate, const mr_decay_options *options)
{
    if (options->learning_rate_output.node != nullptr) return options->learning_rate_output;
    return name != nullptr ? mr_train_float(graph, name, learning_rate) : number(graph, learning_rate);
}

/* global_step / decay_steps, rounded down if it is a staircase. */
static mr_output progress(mr_graph *graph, mr_output step, int64_t steps, bool staircase)
{
    mr_output part = mr_real_div(graph, as_float(graph, step), number(graph, (float)steps));
    return staircase ? mr_floor(graph, part) : part;
}

/* ---- Decays. The operations are in TensorFlow's order. ---- */

static mr_output exponential_decay(mr_graph *graph, mr_output first, mr_output step, int64_t steps, float decay,
                                   bool staircase)
{
    mr_output length = mr_train_float(graph, "decay_steps", (float)steps);
    mr_output factor = mr_train_float(graph, "decay_rate", decay);
    mr_output part = mr_real_div(graph, as_float(graph, step), length, .name = "truediv");
    if (staircase) part = mr_floor(graph, part);
    return mr_mul(graph, first, mr_pow(graph, factor, part), .name = mr_train_own_name(graph));
}

mr_output mr_exponential_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                    float decay_rate, bool staircase, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "ExponentialDecay", options, &o) && check(graph, global_step, learning_rate, &o, decay_steps) &&
        mr_train_check_number(graph, "decay_rate", decay_rate, FLT_MIN))
        value = exponential_decay(graph, first_rate(graph, "initial_learning_rate", learning_rate, &o), global_step,
                                  decay_steps, decay_rate, staircase);
    return end(graph, value);
}

static mr_output cosine_decay(mr_graph *graph, mr_output first, mr_output step, int64_t steps, float floor)
{
    mr_output length = mr_train_float(graph, "decay_steps", (float)steps);
    mr_output done = mr_real_div(graph, mr_minimum(graph, as_float(graph, step), length), length, .name = "truediv");
    mr_output angle = mr_mul(graph, mr_train_float(graph, "Const", 3.14159265f), done);
    mr_output wave = mr_add_v2(graph, mr_train_float(graph, "add/x", 1), mr_cos(graph, angle), .name = "add");
    mr_output half = mr_mul(graph, mr_train_float(graph, "mul/x", 0.5f), wave);
    mr_output scaled = mr_mul(graph, mr_train_float(graph, "mul/x", 1 - floor), half);
    mr_output share = mr_add_v2(graph, scaled, mr_train_float(graph, "add/y", floor), .name = "add");
    return mr_mul(graph, first, share, .name = mr_train_own_name(graph));
}

mr_output mr_cosine_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                               float alpha, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "CosineDecay", options, &o) && check(graph, global_step, learning_rate, &o, decay_steps) &&
        mr_train_check_range(graph, "alpha", alpha, 0, 1, true))
        value = cosine_decay(graph, first_rate(graph, "initial_learning_rate", learning_rate, &o), global_step,
                             decay_steps, alpha);
    return end(graph, value);
}

mr_output mr_natural_exp_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                    float decay_rate, bool staircase, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "NaturalExpDecay", options, &o) && check(graph, global_step, learning_rate, &o, decay_steps) &&
        mr_train_check_number(graph, "decay_rate", decay_rate, 0)) {
        mr_output exponent = mr_mul(graph, mr_neg(graph, number(graph, decay_rate)),
                                    progress(graph, global_step, decay_steps, staircase));
        value = mr_mul(graph, first_rate(graph, nullptr, learning_rate, &o), mr_exp(graph, exponent));
    }
    return end(graph, value);
}

mr_output mr_inverse_time_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                     float decay_rate, bool staircase, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "InverseTimeDecay", options, &o) && check(graph, global_step, learning_rate, &o, decay_steps) &&
        mr_train_check_number(graph, "decay_rate", decay_rate, 0)) {
        mr_output part = mr_mul(graph, number(graph, decay_rate), progress(graph, global_step, decay_steps, staircase));
        mr_output first = first_rate(graph, nullptr, learning_rate, &o);
        value = mr_real_div(graph, first, mr_add_v2(graph, number(graph, 1), part));
    }
    return end(graph, value);
}

mr_output mr_polynomial_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                   float last, float power, bool cycle, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "PolynomialDecay", options, &o) && check(graph, global_step, learning_rate, &o, decay_steps) &&
        mr_train_check_number(graph, "end", last, 0) && mr_train_check_number(graph, "power", power, 0)) {
        mr_output step = as_float(graph, global_step), steps = number(graph, (float)decay_steps);
        mr_output one = number(graph, 1), zero = number(graph, 0);
        if (cycle) {
            mr_output periods = mr_ceil(graph, mr_real_div(graph, step, steps));
            periods = mr_select(graph, mr_equal(graph, step, zero), one, periods);
            steps = mr_mul(graph, steps, periods);
        } else {
            step = mr_minimum(graph, step, steps);
        }
        mr_output rest = mr_sub(graph, one, mr_real_div(graph, step, steps));
        mr_output range = mr_sub(graph, first_rate(graph, nullptr, learning_rate, &o), number(graph, last));
        mr_output scaled = mr_mul(graph, range, mr_pow(graph, rest, number(graph, power)));
        value = mr_add_v2(graph, scaled, number(graph, last));
    }
    return end(graph, value);
}

mr_output mr_piecewise_constant_with(mr_graph *graph, mr_output global_step, mr_ints boundaries, mr_floats values,
                                     const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    const char *wrong = nullptr;
    (void)begin(graph, "PiecewiseConstant", options, &o);
    if (o.learning_rate_output.node != nullptr)
        wrong = "learning_rate_output has no effect";
    else if (boundaries.count < 1 || boundaries.items == nullptr || values.items == nullptr)
        wrong = "there are no boundaries";
    else if (values.count != boundaries.count + 1)
        wrong = "there must be one value more than boundaries";
    for (int32_t i = 1; wrong == nullptr && i < boundaries.count; i++)
        if (boundaries.items[i] <= boundaries.items[i - 1]) wrong = "the boundaries must increase";
    for (int32_t i = 0; wrong == nullptr && i < values.count; i++)
        if (!isfinite(values.items[i])) wrong = "the values must be finite";
    if (graph == nullptr) return value;
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s", wrong);
    } else if (mr_graph_status(graph, nullptr) == MR_OK) {
        mr_output step = mr_output_dtype(global_step) == MR_INT64 ? global_step : mr_cast(graph, global_step, MR_INT64);
        value = number(graph, values.items[boundaries.count]);
        for (int32_t i = boundaries.count - 1; i >= 0; i--) {
            mr_output is_before = mr_less_equal(graph, step, mr_constant_int64(graph, boundaries.items[i]));
            value = mr_select(graph, is_before, number(graph, values.items[i]), value);
        }
    }
    return end(graph, value);
}

/* (1 + cos(pi * part)) / 2 */
static mr_output wave(mr_graph *graph, mr_output part, float factor)
{
    mr_output angle = mr_mul(graph, number(graph, 3.14159265f), part);
    return mr_mul(graph, number(graph, factor), mr_add_v2(graph, number(graph, 1), mr_cos(graph, angle)));
}

mr_output mr_cosine_decay_restarts_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                        int64_t first_decay_steps, float t_mul, float m_mul, float alpha,
                                        const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "SGDRDecay", options, &o) && check(graph, global_step, learning_rate, &o, first_decay_steps) &&
        mr_train_check_number(graph, "t_mul", t_mul, 1) && mr_train_check_number(graph, "m_mul", m_mul, 0) &&
        mr_train_check_range(graph, "alpha", alpha, 0, 1, true)) {
        mr_output part = progress(graph, global_step, first_decay_steps, false), period;
        mr_output one = number(graph, 1), t = number(graph, t_mul);
        if (t_mul == 1) {
            period = mr_floor(graph, part);
            part = mr_sub(graph, part, period);
        } else {
            mr_output less = mr_sub(graph, one, t);
            mr_output inner = mr_log(graph, mr_sub(graph, one, mr_mul(graph, part, less)));
            period = mr_floor(graph, mr_real_div(graph, inner, mr_log(graph, t)));
            mr_output length = mr_pow(graph, t, period);
            mr_output sum = mr_real_div(graph, mr_sub(graph, one, length), less);
            part = mr_real_div(graph, mr_sub(graph, part, sum), length);
        }
        mr_output height = mr_pow(graph, number(graph, m_mul), period);
        mr_output decayed = mr_mul(graph, height, wave(graph, part, 0.5f));
        decayed = mr_add_v2(graph, mr_mul(graph, number(graph, 1 - alpha), decayed), number(graph, alpha));
        value = mr_mul(graph, first_rate(graph, nullptr, learning_rate, &o), decayed);
    }
    return end(graph, value);
}

/* A random number of mean 0, whose variance decreases with the step. */
static mr_output noise(mr_graph *graph, mr_output step, const mr_noisy_decay_options *o)
{
    int64_t seed, seed2;
    mr_train_seed_pair(graph, o->seed, &seed, &seed2);
    mr_output fall = mr_pow(graph, mr_add_v2(graph, number(graph, 1), step), number(graph, o->variance_decay));
    mr_output deviation = mr_sqrt(graph, mr_real_div(graph, number(graph, o->initial_variance), fall));
    mr_output scalar = mr_constant_int32s(graph, MR_SHAPE(0), nullptr, nullptr);
    mr_output drawn = mr_random_standard_normal(graph, scalar, MR_FLOAT, .seed = seed, .seed2 = seed2);
    return mr_mul(graph, drawn, deviation);
}

/* noisy  null: no noise */
static mr_output linear_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                     float periods, float alpha, float beta, const mr_decay_options *options,
                                     const mr_noisy_decay_options *noisy)
{
    if (!check(graph, global_step, learning_rate, options, decay_steps) ||
        !mr_train_check_number(graph, "periods", periods, 0) || !mr_train_check_number(graph, "alpha", alpha, 0) ||
        !mr_train_check_number(graph, "beta", beta, 0))
        return mr_graph_failed_output(graph);
    mr_output steps = number(graph, (float)decay_steps);
    mr_output step = mr_minimum(graph, as_float(graph, global_step), steps);
    mr_output linear = mr_real_div(graph, mr_sub(graph, steps, step), steps);
    if (noisy != nullptr) linear = mr_add_v2(graph, linear, noise(graph, step, noisy));
    mr_output part = mr_mul(graph, number(graph, 2 * periods), mr_real_div(graph, step, steps));
    mr_output decayed = mr_mul(graph, mr_add_v2(graph, number(graph, alpha), linear), wave(graph, part, 0.5f));
    mr_output first = first_rate(graph, nullptr, learning_rate, options);
    return mr_mul(graph, first, mr_add_v2(graph, decayed, number(graph, beta)));
}

mr_output mr_linear_cosine_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                      float periods, float alpha, float beta, const mr_decay_options *options)
{
    mr_decay_options o = {0};
    mr_output value = mr_graph_failed_output(graph);
    if (begin(graph, "LinearCosineDecay", options, &o))
        value = linear_cosine_decay(graph, learning_rate, global_step, decay_steps, periods, alpha, beta, &o, nullptr);
    return end(graph, value);
}

static float number_or(float value, float default_value)
{
    return isnan(value) ? default_value : value;
}

mr_output mr_noisy_linear_cosine_decay_(mr_graph *graph, float learning_rate, mr_output global_step,
                                        int64_t decay_steps, const mr_noisy_decay_options *given)
{
    if (graph == nullptr) return (mr_output){0};
    const mr_decay_options none = {.size = sizeof none};
    mr_noisy_decay_options o = {0};
    mr_error error = {0};
    mr_output value = mr_graph_failed_output(graph);
    mr_status status = MR_OPTIONS_READ(mr_noisy_decay_options, &o, given, &error);
    mr_graph_push_scope(graph, status == MR_OK && o.name != nullptr ? o.name : "NoisyLinearCosineDecay");
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    const char *useless = nullptr;
    if (o.initial_variance == 0 && !isnan(o.variance_decay)) useless = "variance_decay";
    if (o.initial_variance == 0 && o.seed != 0) useless = "seed";
    if (status == MR_OK && useless != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect when initial_variance is 0", useless);
    o.initial_variance = number_or(o.initial_variance, 1);
    o.variance_decay = number_or(o.variance_decay, 0.55f);
    if (mr_graph_status(graph, nullptr) == MR_OK &&
        mr_train_check_number(graph, "initial_variance", o.initial_variance, 0) &&
        mr_train_check_number(graph, "variance_decay", o.variance_decay, 0))
        value = linear_cosine_decay(graph, learning_rate, global_step, decay_steps, number_or(o.periods, 0.5f),
                                    number_or(o.alpha, 0), number_or(o.beta, 0.001f), &none, &o);
    return end(graph, value);
}

/* ---- Without options ---- */

mr_output mr_exponential_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                               float decay_rate, bool staircase)
{
    return mr_exponential_decay_with(graph, learning_rate, global_step, decay_steps, decay_rate, staircase, nullptr);
}

mr_output mr_natural_exp_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                               float decay_rate, bool staircase)
{
    return mr_natural_exp_decay_with(graph, learning_rate, global_step, decay_steps, decay_rate, staircase, nullptr);
}

mr_output mr_inverse_time_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                float decay_rate, bool staircase)
{
    return mr_inverse_time_decay_with(graph, learning_rate, global_step, decay_steps, decay_rate, staircase, nullptr);
}

mr_output mr_polynomial_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                              float last, float power, bool cycle)
{
    return mr_polynomial_decay_with(graph, learning_rate, global_step, decay_steps, last, power, cycle, nullptr);
}

mr_output mr_piecewise_constant(mr_graph *graph, mr_output global_step, mr_ints boundaries, mr_floats values)
{
    return mr_piecewise_constant_with(graph, global_step, boundaries, values, nullptr);
}

mr_output mr_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps, float alpha)
{
    return mr_cosine_decay_with(graph, learning_rate, global_step, decay_steps, alpha, nullptr);
}

mr_output mr_cosine_decay_restarts(mr_graph *graph, float learning_rate, mr_output global_step,
                                   int64_t first_decay_steps, float t_mul, float m_mul, float alpha)
{
    return mr_cosine_decay_restarts_with(graph, learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha,
                                         nullptr);
}

mr_output mr_linear_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                 float periods, float alpha, float beta)
{
    return mr_linear_cosine_decay_with(graph, learning_rate, global_step, decay_steps, periods, alpha, beta, nullptr);
}
