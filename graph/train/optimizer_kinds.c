/* See optimizer_kinds.h. Defaults are those of tf.compat.v1.train. */
#include "graph/train/optimizer_kinds.h"
#include <millrace/ops.h>

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#define NONE __builtin_nanf("")
#define REQUIRED (-__builtin_inff())

/* ---- Updates ---- */

static mr_output as_output(mr_node *node)
{
    return (mr_output){node, 0};
}

/* The operator for a reference variable, or the one for a resource variable, whose inputs are the same. */
#define APPLY(name, ...)                                                                                               \
    (mr_output_dtype(u->variable) == MR_RESOURCE                                                                       \
         ? as_output(mr_resource_apply_##name(u->graph, u->variable, __VA_ARGS__, MR_LOCKING(u)))                      \
         : mr_apply_##name(u->graph, u->variable, __VA_ARGS__, MR_LOCKING(u)))

static mr_output descend(const mr_optimizer_update *u)
{
    return APPLY(gradient_descent, u->rate, u->gradient);
}

static mr_output momentum(const mr_optimizer_update *u)
{
    return mr_optimizer_momentum(u, u->rate);
}

static mr_output adam(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    return APPLY(adam, u->slots[0], u->slots[1], u->powers[0], u->powers[1], u->rate, n[MR_NUMBER_BETA1],
                 n[MR_NUMBER_BETA2], n[MR_NUMBER_EPSILON], u->gradient);
}

static mr_output adam_w(const mr_optimizer_update *u)
{
    mr_node *decayed = mr_optimizer_decay(u);
    mr_graph_push_control_dependencies(u->graph, &decayed, 1);
    const mr_output update = adam(u);
    mr_graph_pop_control_dependencies(u->graph);
    return update;
}

static mr_output adagrad(const mr_optimizer_update *u)
{
    return APPLY(adagrad, u->slots[0], u->rate, u->gradient);
}

static mr_output adadelta(const mr_optimizer_update *u)
{
    return APPLY(adadelta, u->slots[0], u->slots[1], u->rate, u->numbers[MR_NUMBER_DECAY],
                 u->numbers[MR_NUMBER_EPSILON], u->gradient);
}

static mr_output rms_prop(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    return APPLY(rms_prop, u->slots[0], u->slots[1], u->rate, n[MR_NUMBER_DECAY], n[MR_NUMBER_MOMENTUM],
                 n[MR_NUMBER_EPSILON], u->gradient);
}

static mr_output centered_rms_prop(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    return APPLY(centered_rms_prop, u->slots[1], u->slots[0], u->slots[2], u->rate, n[MR_NUMBER_DECAY],
                 n[MR_NUMBER_MOMENTUM], n[MR_NUMBER_EPSILON], u->gradient);
}

static mr_output ftrl(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (u->optimizer->l2_shrinkage > 0)
        return APPLY(ftrl_v2, u->slots[0], u->slots[1], u->gradient, u->rate, n[MR_NUMBER_L1], n[MR_NUMBER_L2],
                     n[MR_NUMBER_L2_SHRINKAGE], n[MR_NUMBER_POWER]);
    return APPLY(ftrl, u->slots[0], u->slots[1], u->gradient, u->rate, n[MR_NUMBER_L1], n[MR_NUMBER_L2],
                 n[MR_NUMBER_POWER]);
}

static mr_output adagrad_da(const mr_optimizer_update *u)
{
    return APPLY(adagrad_da, u->slots[0], u->slots[1], u->gradient, u->rate, u->numbers[MR_NUMBER_L1],
                 u->numbers[MR_NUMBER_L2], u->step);
}

static mr_output proximal_descend(const mr_optimizer_update *u)
{
    return APPLY(proximal_gradient_descent, u->rate, u->numbers[MR_NUMBER_L1], u->numbers[MR_NUMBER_L2], u->gradient);
}

static mr_output proximal_adagrad(const mr_optimizer_update *u)
{
    return APPLY(proximal_adagrad, u->slots[0], u->rate, u->numbers[MR_NUMBER_L1], u->numbers[MR_NUMBER_L2],
                 u->gradient);
}

/* ---- Updates of the rows that a sparse gradient has (optimizer_adam.c has Adam's) ---- */

#define APPLY_ROWS(name, ...)                                                                                          \
    (mr_output_dtype(u->variable) == MR_RESOURCE                                                                       \
         ? as_output(mr_resource_sparse_apply_##name(u->graph, u->variable, __VA_ARGS__, MR_LOCKING(u)))               \
         : mr_sparse_apply_##name(u->graph, u->variable, __VA_ARGS__, MR_LOCKING(u)))

static mr_output descend_rows(const mr_optimizer_update *u)
{
    if (mr_output_dtype(u->variable) != MR_RESOURCE)
        return mr_scatter_sub(u->graph, u->variable, u->indices, mr_mul(u->graph, u->values, u->rate), MR_LOCKING(u));
    mr_output change = mr_mul(u->graph, mr_neg(u->graph, u->values), u->rate);
    return as_output(mr_resource_scatter_add(u->graph, u->variable, u->indices, change));
}

static mr_output adagrad_rows(const mr_optimizer_update *u)
{
    return APPLY_ROWS(adagrad, u->slots[0], u->rate, u->values, u->indices);
}

static mr_output adadelta_rows(const mr_optimizer_update *u)
{
    return APPLY_ROWS(adadelta, u->slots[0], u->slots[1], u->rate, u->numbers[MR_NUMBER_DECAY],
                      u->numbers[MR_NUMBER_EPSILON], u->values, u->indices);
}

static mr_output rms_prop_rows(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    return APPLY_ROWS(rms_prop, u->slots[0], u->slots[1], u->rate, n[MR_NUMBER_DECAY], n[MR_NUMBER_MOMENTUM],
                      n[MR_NUMBER_EPSILON], u->values, u->indices);
}

static mr_output centered_rms_prop_rows(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    return APPLY_ROWS(centered_rms_prop, u->slots[1], u->slots[0], u->slots[2], u->rate, n[MR_NUMBER_DECAY],
                      n[MR_NUMBER_MOMENTUM], n[MR_NUMBER_EPSILON], u->values, u->indices);
}

static mr_output ftrl_rows(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (u->optimizer->l2_shrinkage > 0)
        return APPLY_ROWS(ftrl_v2, u->slots[0], u->slots[1], u->values, u->indices, u->rate, n[MR_NUMBER_L1],
                          n[MR_NUMBER_L2], n[MR_NUMBER_L2_SHRINKAGE], n[MR_NUMBER_POWER]);
    return APPLY_ROWS(ftrl, u->slots[0], u->slots[1], u->values, u->indices, u->rate, n[MR_NUMBER_L1], n[MR_NUMBER_L2],
                      n[MR_NUMBER_POWER]);
}

static mr_output adagrad_da_rows(const mr_optimizer_update *u)
{
    return APPLY_ROWS(adagrad_da, u->slots[0], u->slots[1], u->values, u->indices, u->rate, u->numbers[MR_NUMBER_L1],
                      u->numbers[MR_NUMBER_L2], u->step);
}

static mr_output proximal_descend_rows(const mr_optimizer_update *u)
{
    return APPLY_ROWS(proximal_gradient_descent, u->rate, u->numbers[MR_NUMBER_L1], u->numbers[MR_NUMBER_L2], u->values,
                      u->indices);
}

static mr_output proximal_adagrad_rows(const mr_optimizer_update *u)
{
    return APPLY_ROWS(proximal_adagrad, u->slots[0], u->rate, u->numbers[MR_NUMBER_L1], u->numbers[MR_NUMBER_L2],
                      u->values, u->indices);
}

/* ---- Kinds ---- */

/* Momentum, beta1, beta2, epsilon, decay, initial accumulator, l1, l2, shrinkage, power, weight decay; of ALL_NUMBERS
 * also eeta, beta, base, alpha. */
#define ALL_NUMBERS(...) {__VA_ARGS__}
#define NUMBERS(...) ALL_NUMBERS(__VA_ARGS__, NONE, NONE, NONE, NONE)
static const mr_optimizer_form forms[] = {
    [MR_GRADIENT_DESCENT] = {"GradientDescent", NONE,
                             NUMBERS(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE), "",
                             .apply = descend, .apply_rows = descend_rows, .repeats = true},
    [MR_MOMENTUM] = {"Momentum", NONE, NUMBERS(REQUIRED, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE),
                     "0", .apply = momentum, .has_nesterov = true, .apply_rows = mr_optimizer_momentum_rows},
    [MR_ADAM] = {"Adam", 0.001f, NUMBERS(NONE, 0.9f, 0.999f, 1e-8f, NONE, NONE, NONE, NONE, NONE, NONE, NONE), "00",
                 .has_powers = true, .apply = adam, .apply_rows = mr_optimizer_adam_rows},
    [MR_ADAGRAD] = {"Adagrad", NONE, NUMBERS(NONE, NONE, NONE, NONE, NONE, 0.1f, NONE, NONE, NONE, NONE, NONE), "a",
                    .apply = adagrad, .apply_rows = adagrad_rows},
    [MR_ADADELTA] = {"Adadelta", 0.001f, NUMBERS(NONE, NONE, NONE, 1e-8f, 0.95f, NONE, NONE, NONE, NONE, NONE, NONE),
                     "00", .apply = adadelta, .apply_rows = adadelta_rows},
    [MR_RMS_PROP] = {"RMSProp", NONE, NUMBERS(0, NONE, NONE, 1e-10f, 0.9f, NONE, NONE, NONE, NONE, NONE, NONE), "10",
                     .apply = rms_prop, .apply_rows = rms_prop_rows},
    [MR_FTRL] = {"Ftrl", NONE, NUMBERS(NONE, NONE, NONE, NONE, NONE, 0.1f, 0, 0, 0, -0.5f, NONE), "a0", .apply = ftrl,
                 .apply_rows = ftrl_rows},
    [MR_ADAGRAD_DA] = {"AdagradDA", NONE, NUMBERS(NONE, NONE, NONE, NONE, NONE, 0.1f, 0, 0, NONE, NONE, NONE), "0a",
                       .has_step = true, .apply = adagrad_da, .apply_rows = adagrad_da_rows},
    [MR_PROXIMAL_GRADIENT_DESCENT] = {"ProximalGradientDescent", NONE,
                                      NUMBERS(NONE, NONE, NONE, NONE, NONE, NONE, 0, 0, NONE, NONE, NONE), "",
                                      .apply = proximal_descend, .apply_rows = proximal_descend_rows},
    [MR_PROXIMAL_ADAGRAD] = {"ProximalAdagrad", NONE,
                             NUMBERS(NONE, NONE, NONE, NONE, NONE, 0.1f, 0, 0, NONE, NONE, NONE), "a",
                             .apply = proximal_adagrad, .apply_rows = proximal_adagrad_rows},
    [MR_LAZY_ADAM] = {"Adam", 0.001f, NUMBERS(NONE, 0.9f, 0.999f, 1e-8f, NONE, NONE, NONE, NONE, NONE, NONE, NONE),
                      "00", .has_powers = true, .apply = adam, .apply_rows = mr_optimizer_lazy_adam_rows},
    [MR_ADAM_W] = {"AdamW", 0.001f, NUMBERS(NONE, 0.9f, 0.999f, 1e-8f, NONE, NONE, NONE, NONE, NONE, NONE, REQUIRED),
                   "00", .has_powers = true, .apply = adam_w, .apply_rows = mr_optimizer_adam_w_rows},
    [MR_LARS] = {"LARSOptimizer", NONE,
                 ALL_NUMBERS(0.9f, NONE, NONE, 0, NONE, NONE, NONE, NONE, NONE, NONE, 0.0001f, 0.001f, NONE, NONE,
                             NONE),
                 "0", .has_nesterov = true, .has_skip_list = true, .apply = mr_optimizer_lars,
                 .apply_rows = mr_optimizer_momentum_rows},
    [MR_MOMENTUM_W] = {"MomentumW", NONE,
                       NUMBERS(REQUIRED, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, REQUIRED), "0",
                       .has_nesterov = true, .apply = mr_optimizer_momentum_w,
                       .apply_rows = mr_optimizer_momentum_w_rows},
    [MR_AMSGRAD] = {"AMSGrad", 0.001f, NUMBERS(NONE, 0.9f, 0.999f, 1e-8f, NONE, NONE, NONE, NONE, NONE, NONE, NONE),
                    "000", .has_powers = true, .apply = mr_optimizer_amsgrad, .apply_rows = mr_optimizer_amsgrad_rows},
    [MR_ADA_MAX] = {"AdaMax", 0.001f, NUMBERS(NONE, 0.9f, 0.999f, 1e-8f, NONE, NONE, NONE, NONE, NONE, NONE, NONE),
                    "00", .has_powers = true, .apply = mr_optimizer_ada_max, .apply_rows = mr_optimizer_ada_max_rows},
    [MR_POWER_SIGN] = {"PowerSignOptimizer", 0.1f,
                       ALL_NUMBERS(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0.9f,
                                   (float)M_E, NONE),
                       "0", .has_sign_decay = true, .apply = mr_optimizer_power_sign,
                       .apply_rows = mr_optimizer_power_sign_rows},
    [MR_ADD_SIGN] = {"AddSignOptimizer", 0.1f,
                     ALL_NUMBERS(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0.9f, NONE, 1),
                     "0", .has_sign_decay = true, .apply = mr_optimizer_add_sign,
                     .apply_rows = mr_optimizer_add_sign_rows},
};
constexpr size_t FORM_COUNT = sizeof forms / sizeof *forms;
static const mr_optimizer_form centered = {"RMSProp",
                                           NONE,
                                           NUMBERS(0, NONE, NONE, 1e-10f, 0.9f, NONE, NONE, NONE, NONE, NONE, NONE),
                                           "100",
                                           .apply = centered_rms_prop,
                                           .apply_rows = centered_rms_prop_rows};

const char *mr_optimizer_slot_name(const mr_optimizer *optimizer, const mr_optimizer_form *form, int32_t index)
{
    const char *own = index == 0 ? optimizer->accum_name : optimizer->linear_name;
    return optimizer->kind == MR_FTRL && own != nullptr ? own : mr_optimizer_name(optimizer, form);
}

const mr_optimizer_form *mr_optimizer_form_of(const mr_optimizer *optimizer)
{
    if (optimizer->kind == MR_RMS_PROP && optimizer->centered) return &centered;
    return (size_t)optimizer->kind < FORM_COUNT ? &forms[optimizer->kind] : nullptr;
}

/* ---- Options ---- */

static const struct {
    const char *name;
    size_t offset;
    float min, max; /* max itself is not valid */
} numbers[MR_NUMBER_COUNT] = {
    [MR_NUMBER_MOMENTUM] = {"momentum", offsetof(mr_optimizer, momentum), 0, INFINITY},
    [MR_NUMBER_BETA1] = {"beta1", offsetof(mr_optimizer, beta1), 0, 1},
    [MR_NUMBER_BETA2] = {"beta2", offsetof(mr_optimizer, beta2), 0, 1},
    [MR_NUMBER_EPSILON] = {"epsilon", offsetof(mr_optimizer, epsilon), 0, INFINITY},
    [MR_NUMBER_DECAY] = {"decay", offsetof(mr_optimizer, decay), 0, INFINITY},
    [MR_NUMBER_INITIAL_ACCUMULATOR] = {"initial_accumulator_value", offsetof(mr_optimizer, initial_accumulator_value),
                                       0, INFINITY},
    [MR_NUMBER_L1] = {"l1_regularization_strength", offsetof(mr_optimizer, l1), 0, INFINITY},
    [MR_NUMBER_L2] = {"l2_regularization_strength", offsetof(mr_optimizer, l2), 0, INFINITY},
    [MR_NUMBER_L2_SHRINKAGE] = {"l2_shrinkage", offsetof(mr_optimizer, l2_shrinkage), 0, INFINITY},
    [MR_NUMBER_POWER] = {"learning_rate_power", offsetof(mr_optimizer, learning_rate_power), -INFINITY, 1e-30f},
    [MR_NUMBER_WEIGHT_DECAY] = {"weight_decay", offsetof(mr_optimizer, weight_decay), 0, INFINITY},
    [MR_NUMBER_EETA] = {"eeta", offsetof(mr_optimizer, eeta), 0, INFINITY},
    [MR_NUMBER_BETA] = {"beta", offsetof(mr_optimizer, beta), 0, 1},
    [MR_NUMBER_BASE] = {"base", offsetof(mr_optimizer, base), FLT_MIN, INFINITY},
    [MR_NUMBER_ALPHA] = {"alpha", offsetof(mr_optimizer, alpha), 0, INFINITY},
};

float mr_optimizer_value(const mr_optimizer *optimizer, mr_optimizer_number number, const char **name)
{
    const float value = *(const float *)((const char *)optimizer + numbers[number].offset);
    *name = number == MR_NUMBER_BASE ? "logbase" : numbers[number].name;
    return number == MR_NUMBER_BASE ? (float)log((double)value) : value;
}

static bool fail(mr_graph *graph, const char *optimizer, const char *option, const char *what)
{
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s%s", optimizer, option, what);
    return false;
}

static bool check_scalar(mr_graph *graph, const char *option, mr_output rate)
{
    const mr_dtype dtype = mr_output_dtype(rate);
    const mr_shape shape = mr_output_shape(rate);
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_train_is_floating(dtype) && shape.rank <= 0) return true; /* -1: unknown */
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is %s%s, but must be a scalar of floating point", option,
                        mr_dtype_name(dtype), mr_shape_text(shape, text, sizeof text));
    return false;
}

static bool settle_rate(mr_graph *graph, const mr_optimizer_form *form, mr_optimizer *o)
{
    bool has_output = o->learning_rate_output.node != nullptr, has_rate = !isnan(o->learning_rate);
    if (has_output && !has_rate) return check_scalar(graph, "learning_rate_output", o->learning_rate_output);
    if (has_output)
        return fail(graph, form->name, "learning_rate and learning_rate_output",
                    " are both given, but only one may be");
    if (!has_rate) o->learning_rate = form->learning_rate;
    if (isnan(o->learning_rate))
        return fail(graph, form->name, "a learning rate is required: ", "learning_rate or learning_rate_output");
    if (!isfinite(o->learning_rate) || o->learning_rate < 0)
        return fail(graph, form->name, "learning_rate", " must be finite and at least 0");
    return true;
}

static bool settle_number(mr_graph *graph, const mr_optimizer_form *form, mr_optimizer *o, mr_optimizer_number number)
{
    float *value = (float *)((char *)o + numbers[number].offset), usual = form->numbers[number];
    const char *name = numbers[number].name;
    if (isnan(usual) && !isnan(*value)) return fail(graph, form->name, name, " has no effect for this optimizer");
    if (isnan(usual)) return true;
    if (isnan(*value) && usual == REQUIRED) return fail(graph, form->name, name, " is required");
    if (isnan(*value)) *value = usual;
    if (isfinite(*value) && *value >= numbers[number].min && *value < numbers[number].max) return true;
    char limits[80];
    if (number == MR_NUMBER_BASE)
        snprintf(limits, sizeof limits, " is %g, but must be finite and greater than 0", (double)*value);
    else if (isinf(numbers[number].max))
        snprintf(limits, sizeof limits, " is %g, but must be finite and at least 0", (double)*value);
    else if (number == MR_NUMBER_POWER)
        snprintf(limits, sizeof limits, " is %g, but must be finite and at most 0", (double)*value);
    else
        snprintf(limits, sizeof limits, " is %g, but must be at least 0 and less than 1", (double)*value);
    return fail(graph, form->name, name, limits);
}

/* Those of single kinds: LARS, PowerSign, AddSign. */
static bool settle_lists(mr_graph *graph, const mr_optimizer_form *form, const mr_optimizer *o)
{
    const mr_names skipped = o->skip_list;
    if (skipped.count != 0 && !form->has_skip_list)
        return fail(graph, form->name, "skip_list", " has no effect for this optimizer");
    bool is_good = skipped.count == 0 || (skipped.count > 0 && skipped.items != nullptr);
    for (int32_t i = 0; is_good && i < skipped.count; i++) is_good = skipped.items[i] != nullptr;
    if (!is_good) return fail(graph, form->name, "skip_list", " is not a valid list of names");
    if (o->sign_decay.node == nullptr) return true;
    if (!form->has_sign_decay) return fail(graph, form->name, "sign_decay", " has no effect for this optimizer");
    return check_scalar(graph, "sign_decay", o->sign_decay);
}

bool mr_optimizer_settle(mr_graph *graph, mr_optimizer *optimizer)
{
    const mr_optimizer_form *form = mr_optimizer_form_of(optimizer);
    if (form == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "unknown optimizer kind %d", (int)optimizer->kind);
        return false;
    }
    if (!settle_rate(graph, form, optimizer)) return false;
    if (optimizer->name != nullptr && !mr_node_name_is_valid(optimizer->name)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: \"%.200s\" is not a valid name", form->name,
                            optimizer->name);
        return false;
    }
    if (optimizer->nesterov && !form->has_nesterov)
        return fail(graph, form->name, "nesterov", " has no effect for this optimizer");
    const char *const names[] = {optimizer->accum_name, optimizer->linear_name};
    for (size_t i = 0; i < 2; i++) {
        if (names[i] == nullptr) continue;
        if (optimizer->kind != MR_FTRL)
            return fail(graph, form->name, i == 0 ? "accum_name" : "linear_name", " has no effect for this optimizer");
        if (!mr_node_name_is_valid(names[i]))
            return fail(graph, form->name, i == 0 ? "accum_name" : "linear_name", " is not a valid name");
    }
    if (optimizer->centered && optimizer->kind != MR_RMS_PROP)
        return fail(graph, form->name, "centered", " has no effect for this optimizer");
    if (!settle_lists(graph, form, optimizer)) return false;
    for (int32_t i = 0; i < MR_NUMBER_COUNT; i++)
        if (!settle_number(graph, form, optimizer, (mr_optimizer_number)i)) return false;
    return true;
}
