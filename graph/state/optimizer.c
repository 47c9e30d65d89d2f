/* The optimizers, by reference and by handle, with dense and with sparse gradients: checks of the inputs, and loops
 * over TensorFlow's formulas (optimizer_formulas.c, optimizer_proximal.c).
 *
 * An operator is an optimizer's name with a prefix: Apply, ResourceApply, SparseApply or ResourceSparseApply. A sparse
 * gradient has rows for some rows of the variable; the rows are updated one after the other, so that duplicates count
 * in their order. Half types are converted block by block.
 *
 * The planner (graph/plan/fuse_steps.c) may add a last input to those with a dense gradient: a number by which it is
 * multiplied. */
#include "graph/state/optimizer.h"
#include "base/halves.h"

#include "graph/state/change.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef enum role {
    ROLE_NONE,
    ROLE_SLOT,
    ROLE_GRADIENT, /* with sparse gradients, the indices follow */
    ROLE_SCALAR,
    ROLE_POSITIVE,
    ROLE_POSITIVE_RATE, /* of FTRL */
    ROLE_NOT_NEGATIVE,
    ROLE_NOT_POSITIVE,
} role;

typedef struct argument {
    role role, sparse; /* how strictly the value is checked depends on the form */
    const char *name;
} argument;

typedef struct rule {
    const char *name;
    const char *flag; /* the attr that is mr_step.flag */
    const mr_formula *dense, *sparse;
    bool needs_elements; /* a sparse gradient must have rows of at least one element */
    argument inputs[12]; /* after the variable */
} rule;

#define SLOT(name) {ROLE_SLOT, ROLE_SLOT, name}
#define SCALAR(name) {ROLE_SCALAR, ROLE_SCALAR, name}
#define GRADIENT(name) {ROLE_GRADIENT, ROLE_GRADIENT, name}
#define L1 "l1 regularization strength"
#define L2 "l2 regularization strength"
#define FTRL_SCALARS                                                                                                   \
    {ROLE_SCALAR, ROLE_POSITIVE_RATE, "lr"}, {ROLE_SCALAR, ROLE_NOT_NEGATIVE, L1},                                     \
    {                                                                                                                  \
        ROLE_SCALAR, ROLE_NOT_NEGATIVE, L2                                                                             \
    }
#define FTRL_POWER {ROLE_SCALAR, ROLE_NOT_POSITIVE, "lr_power"}
#define ADAM_SCALARS                                                                                                   \
    SCALAR("beta1_power"), SCALAR("beta2_power"), SCALAR("lr"), SCALAR("beta1"), SCALAR("beta2"), SCALAR("epsilon")
#define RMSPROP_SCALARS SCALAR("lr"), SCALAR("rho"), SCALAR("momentum"), SCALAR("epsilon")

static const rule rules[] = {
    {"GradientDescent", nullptr, &mr_formula_gradient_descent, nullptr, false, {SCALAR("alpha"), GRADIENT("delta")}},
    {"Momentum",
     "use_nesterov",
     &mr_formula_momentum,
     &mr_formula_momentum,
     false,
     {SLOT("accum"), SCALAR("lr"), GRADIENT("grad"), SCALAR("momentum")}},
    {"KerasMomentum",
     "use_nesterov",
     &mr_formula_keras_momentum,
     &mr_formula_keras_momentum,
     false,
     {SLOT("accum"), SCALAR("lr"), GRADIENT("grad"), SCALAR("momentum")}},
    {"Adam", "use_nesterov", &mr_formula_adam, nullptr, false, {SLOT("m"), SLOT("v"), ADAM_SCALARS, GRADIENT("grad")}},
    {"AdamWithAmsgrad",
     nullptr,
     &mr_formula_amsgrad,
     nullptr,
     false,
     {SLOT("m"), SLOT("v"), SLOT("vhat"), ADAM_SCALARS, GRADIENT("grad")}},
    {"AdaMax",
     nullptr,
     &mr_formula_adamax,
     nullptr,
     false,
     {SLOT("m"), SLOT("v"), SCALAR("beta1_power"), SCALAR("lr"), SCALAR("beta1"), SCALAR("beta2"), SCALAR("epsilon"),
      GRADIENT("grad")}},
    {"Adadelta",
     nullptr,
     &mr_formula_adadelta,
     &mr_formula_adadelta,
     false,
     {SLOT("accum"), SLOT("accum_update"), SCALAR("lr"), SCALAR("rho"), SCALAR("epsilon"), GRADIENT("grad")}},
    {"Adagrad",
     "update_slots",
     &mr_formula_adagrad,
     &mr_formula_adagrad,
     true,
     {SLOT("accum"), SCALAR("lr"), GRADIENT("grad")}},
    {"AdagradV2",
     "update_slots",
     &mr_formula_adagrad_v2,
     &mr_formula_adagrad_v2,
     true,
     {SLOT("accum"), SCALAR("lr"), SCALAR("epsilon"), GRADIENT("grad")}},
    {"AdagradDA",
     nullptr,
     &mr_formula_adagrad_da,
     &mr_formula_sparse_adagrad_da,
     true,
     {SLOT("accum"), SLOT("accum"), GRADIENT("grad"), SCALAR("lr"), SCALAR(L1), SCALAR(L2), SCALAR("global_step")}},
    {"RMSProp",
     nullptr,
     &mr_formula_rmsprop,
     &mr_formula_sparse_rmsprop,
     false,
     {SLOT("ms"), SLOT("mom"), RMSPROP_SCALARS, GRADIENT("grad")}},
    {"CenteredRMSProp",
     nullptr,
     &mr_formula_centered_rmsprop,
     &mr_formula_sparse_centered_rmsprop,
     false,
     {SLOT("mg"), SLOT("ms"), SLOT("mom"), RMSPROP_SCALARS, GRADIENT("grad")}},
    {"Ftrl",
     "multiply_linear_by_lr",
     &mr_formula_ftrl,
     &mr_formula_sparse_ftrl,
     true,
     {SLOT("accum"), SLOT("linear"), GRADIENT("grad"), FTRL_SCALARS, FTRL_POWER}},
    {"FtrlV2",
     "multiply_linear_by_lr",
     &mr_formula_ftrl_v2,
     &mr_formula_sparse_ftrl_v2,
     true,
     {SLOT("accum"),
      SLOT("linear"),
      GRADIENT("grad"),
      FTRL_SCALARS,
      {ROLE_SCALAR, ROLE_NOT_NEGATIVE, "l2 shrinkage regularization strength"},
      FTRL_POWER}},
    {"ProximalAdagrad",
     nullptr,
     &mr_formula_proximal_adagrad,
     &mr_formula_proximal_adagrad,
     true,
     {SLOT("accum"),
      {ROLE_POSITIVE, ROLE_POSITIVE, "lr"},
      {ROLE_NOT_NEGATIVE, ROLE_NOT_NEGATIVE, L1},
      {ROLE_NOT_NEGATIVE, ROLE_NOT_NEGATIVE, L2},
      GRADIENT("grad")}},
    {"ProximalGradientDescent",
     nullptr,
     &mr_formula_proximal_gradient_descent,
     &mr_formula_proximal_gradient_descent,
     true,
     {SCALAR("alpha"), SCALAR(L1), SCALAR(L2), GRADIENT("delta")}},
    {"AddSign",
     nullptr,
     &mr_formula_add_sign,
     nullptr,
     false,
     {SLOT("m"), SCALAR("lr"), SCALAR("alpha"), SCALAR("sign_decay"), SCALAR("beta"), GRADIENT("grad")}},
    {"PowerSign",
     nullptr,
     &mr_formula_power_sign,
     nullptr,
     false,
     {SLOT("m"), SCALAR("lr"), SCALAR("logbase"), SCALAR("sign_decay"), SCALAR("beta"), GRADIENT("grad")}},
};

typedef struct prepared {
    const rule *rule;
    bool is_sparse, flag;
    int scale; /* 0, or the input by which a dense gradient is multiplied, after the operator's own */
    mr_binary_loop multiply;
} prepared;

static const char *after(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : text;
}

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    prepared *p = memory;
    const char *plain = after(node->op, "Resource"), *name = after(plain, "Sparse");
    p->is_sparse = name != plain;
    name = after(name, "Apply");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !p->rule; i++)
        if (strcmp(rules[i].name, name) == 0) p->rule = &rules[i];
    if (!p->rule) return mr_kernel_fail(node, error, MR_INTERNAL, "no such optimizer");
    if (p->rule->flag) p->flag = mr_attr_bool_or(node->attrs, p->rule->flag, false);
    int count = 1;
    for (const argument *a = p->rule->inputs; a->role != ROLE_NONE; a++) count++;
    if (p->is_sparse || node->input_count == count) return MR_OK;
    const mr_kernel *product = mr_kernel_find("Mul", MR_DEVICE_CPU, node->attrs);
    mr_elementwise loops;
    if (!product || !product->elementwise || !product->elementwise(mr_attr_type_or(node->attrs, "T", MR_FLOAT), &loops))
        return mr_kernel_fail(node, error, MR_INTERNAL, "no product of the gradient's type");
    p->scale = count;
    p->multiply = loops.binary;
    return MR_OK;
}

/* ---- Checks, with TensorFlow's messages ---- */

static double _Complex scalar_of(const mr_tensor *tensor)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return *(const float *)tensor->data;
    case MR_DOUBLE:
        return *(const double *)tensor->data;
    case MR_HALF:
        return mr_half_to_float(*(const uint16_t *)tensor->data);
    case MR_BFLOAT16:
        return mr_bfloat16_to_float(*(const uint16_t *)tensor->data);
    case MR_INT64:
        return (double)*(const int64_t *)tensor->data;
    case MR_COMPLEX64:
        return *(const float _Complex *)tensor->data;
    case MR_COMPLEX128:
        return *(const double _Complex *)tensor->data;
    default:
        return 0;
    }
}

static bool is_allowed(const mr_kernel_call *call, role role, double value)
{
    const prepared *p = call->prepared;
    switch (role) {
    case ROLE_POSITIVE:
        return value > 0;
    case ROLE_POSITIVE_RATE:
        return value > 0 || (p->flag && value == 0);
    case ROLE_NOT_NEGATIVE:
        return value >= 0;
    case ROLE_NOT_POSITIVE:
        return value <= 0;
    default:
        return true;
    }
}

static mr_status check_scalar(const mr_kernel_call *call, const mr_tensor *input, role role, const char *name,
                              double _Complex *value, mr_error *error)
{
    static const char *const kinds[] = {[ROLE_SCALAR] = "scalar",
                                        [ROLE_POSITIVE] = "positive scalar",
                                        [ROLE_POSITIVE_RATE] =
                                            "positive scalar (or zero if multiply_linear_by_lr is set)",
                                        [ROLE_NOT_NEGATIVE] = "non-negative scalar",
                                        [ROLE_NOT_POSITIVE] = "non-positive scalar"};
    bool fits = input->shape.rank == 0;
    if (fits) {
        *value = scalar_of(input);
        fits = is_allowed(call, role, (double)*value);
    }
    char text[MR_SHAPE_TEXT_SIZE];
    if (fits) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s is not a %s: %s", name, kinds[role],
                          mr_shape_text(input->shape, text, sizeof text));
}

static mr_status check_like(const mr_kernel_call *call, const mr_tensor *input, const char *name, mr_error *error)
{
    const mr_tensor *variable = &call->inputs[0];
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    if (mr_shape_equal(input->shape, variable->shape)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "var and %s do not have the same shape%s %s", name,
                          mr_shape_text(variable->shape, wanted, sizeof wanted),
                          mr_shape_text(input->shape, given, sizeof given));
}

static mr_status check_rows(const mr_kernel_call *call, const rule *rule, int gradient, mr_error *error)
{
    const mr_tensor *variable = &call->inputs[0], *grad = &call->inputs[gradient],
                    *indices = &call->inputs[gradient + 1];
    if (variable->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "var must be at least 1 dimensional");
    if (indices->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices must be one-dimensional");
    for (int i = 1; i < variable->shape.rank; i++)
        if (i >= grad->shape.rank || grad->shape.dims[i] != variable->shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "var and grad must match in dimension %d", i);
    int64_t count = indices->shape.dims[0], rows = variable->shape.dims[0];
    if (grad->shape.rank != variable->shape.rank || grad->shape.dims[0] != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "grad must be the same size as indices in the first dimension.");
    if (rule->needs_elements && mr_dims_product(&variable->shape, 1, variable->shape.rank) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Inner dimension should be greater than zero.");
    for (int64_t i = 0; i < count; i++) {
        int64_t row = mr_change_index(indices, i);
        if (row >= 0 && row < rows) continue;
        if (rule->sparse == &mr_formula_keras_momentum)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "indices[%" PRId64 "] = %" PRId64 " is not in [0, %" PRId64 ")", i, row, rows);
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Index %" PRId64 " at offset %" PRId64 " in indices is out of range", row, i);
    }
    return MR_OK;
}

/* Checks the inputs and collects the operands. Returns the number of slots, with the variable, and the gradient's
 * index. */
static mr_status read_inputs(const mr_kernel_call *call, mr_step *step, int *slots, int *gradient, mr_error *error)
{
    const prepared *p = call->prepared;
    const mr_tensor *variable = &call->inputs[0];
    int scalars = 0, at = 1;
    *slots = 1;
    step->slots[0] = variable->data;
    step->flag = p->flag;
    for (const argument *a = p->rule->inputs; a->role != ROLE_NONE; a++, at++) {
        const mr_tensor *input = &call->inputs[at];
        role role = p->is_sparse ? a->sparse : a->role;
        if (role <= ROLE_GRADIENT && input->dtype != variable->dtype)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "var is a %s, but %s is a %s",
                                  mr_dtype_name(variable->dtype), a->name, mr_dtype_name(input->dtype));
        if (role == ROLE_SLOT) {
            MR_TRY(check_like(call, input, a->name, error));
            step->slots[(*slots)++] = input->data;
        } else if (role == ROLE_GRADIENT) {
            *gradient = at;
            step->gradient = input->data;
            if (p->is_sparse)
                at++;
            else
                MR_TRY(check_like(call, input, a->name, error));
        } else {
            MR_TRY(check_scalar(call, input, role, a->name, &step->scalars[scalars++], error));
        }
    }
    return p->is_sparse ? check_rows(call, p->rule, *gradient, error) : MR_OK;
}

/* ---- Loops ---- */

typedef struct loop {
    const mr_step *step;
    mr_step_function function;
    mr_dtype dtype;
    int slots;
    const void *scale;       /* null, or a number by which the gradient is multiplied before */
    mr_binary_loop multiply; /* that of Mul */
} loop;

/* Runs the loop on parts of the gradient, multiplied before. */
static void run_scaled(const loop *l, int64_t begin, int64_t end)
{
    constexpr int64_t BLOCK = 512;
    alignas(64) char buffer[BLOCK * sizeof(double)];
    mr_step inner = *l->step;
    const size_t size = mr_dtype_size(l->dtype);
    assert(l->dtype == MR_FLOAT || l->dtype == MR_DOUBLE);
    inner.gradient = buffer;
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t count = MR_MIN(BLOCK, end - at);
        const void *from = (const char *)l->step->gradient + (size_t)at * size;
        for (int i = 0; i < l->slots; i++) inner.slots[i] = (char *)l->step->slots[i] + (size_t)at * size;
        l->multiply(buffer, from, l->scale, count, MR_B_SCALAR);
        l->function(&inner, 0, count);
    }
}

/* Runs the loop for float on elements of a half type. */
static void run_narrow(const loop *l, const mr_step *step, int64_t begin, int64_t end)
{
    constexpr int64_t BLOCK = 256;
    float buffers[MR_STEP_SLOTS + 1][BLOCK];
    mr_step inner = *step;
    for (int i = 0; i < l->slots; i++) inner.slots[i] = buffers[i];
    inner.gradient = buffers[MR_STEP_SLOTS];
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t count = MR_MIN(BLOCK, end - at);
        for (int s = 0; s <= l->slots; s++) {
            const void *elements = s < l->slots ? step->slots[s] : step->gradient;
            assert(elements != nullptr);
            const uint16_t *from = (const uint16_t *)elements + at;
            float *to = buffers[s < l->slots ? s : MR_STEP_SLOTS];
            mr_halves_to_floats(to, from, count, l->dtype);
        }
        l->function(&inner, 0, count);
        for (int s = 0; s < l->slots; s++)
            mr_floats_to_halves((uint16_t *)step->slots[s] + at, buffers[s], count, l->dtype);
    }
}

static void run_piece(void *context, int64_t begin, int64_t end)
{
    const loop *l = context;
    if (l->scale)
        run_scaled(l, begin, end);
    else if (mr_is_half(l->dtype))
        run_narrow(l, l->step, begin, end);
    else
        l->function(l->step, begin, end);
}

static void run_rows(const mr_kernel_call *call, const loop *l, int gradient)
{
    const mr_tensor *variable = &call->inputs[0], *indices = &call->inputs[gradient + 1];
    int64_t width = mr_dims_product(&variable->shape, 1, variable->shape.rank);
    size_t row_bytes = (size_t)width * mr_dtype_size(variable->dtype);
    for (int64_t i = 0; width > 0 && i < indices->shape.dims[0]; i++) {
        mr_step row = *l->step;
        loop inner = *l;
        inner.step = &row;
        size_t offset = (size_t)mr_change_index(indices, i) * row_bytes;
        for (int s = 0; s < l->slots; s++) row.slots[s] = (char *)row.slots[s] + offset;
        row.gradient = (const char *)row.gradient + (size_t)i * row_bytes;
        run_piece(&inner, 0, width);
    }
}

static mr_step_function function_of(const mr_formula *formula, mr_dtype dtype)
{
    const mr_step_function *levels = dtype == MR_DOUBLE       ? formula->doubles
                                     : dtype == MR_COMPLEX64  ? formula->complex_floats
                                     : dtype == MR_COMPLEX128 ? formula->complex_doubles
                                                              : formula->floats;
    return levels ? levels[mr_cpu()] : nullptr;
}

static mr_status run_step(mr_kernel_call *call, mr_error *error)
{
    const prepared *p = call->prepared;
    const mr_tensor *variable = &call->inputs[0];
    mr_step step = {0};
    loop l = {.step = &step, .dtype = variable->dtype};
    int gradient = 0;
    MR_TRY(read_inputs(call, &step, &l.slots, &gradient, error));
    /* Rows of one element use the dense form, as in TensorFlow. */
    bool is_wide = p->is_sparse && mr_dims_product(&variable->shape, 1, variable->shape.rank) > 1;
    bool is_dual = p->rule->sparse == &mr_formula_sparse_adagrad_da;
    l.function = function_of(p->is_sparse && (is_wide || !is_dual) ? p->rule->sparse : p->rule->dense, l.dtype);
    if (!l.function)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "var has the unsupported type %s",
                              mr_dtype_name(l.dtype));
    if (p->scale > 0) {
        const mr_tensor *scale = &call->inputs[p->scale];
        if (scale->dtype != l.dtype || scale->shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INTERNAL, "the scale of the gradient is not a number");
        l.scale = scale->data;
        l.multiply = p->multiply;
    }
    if (p->is_sparse)
        run_rows(call, &l, gradient);
    else
        mr_pool_for(call->device->pool, mr_tensor_count(variable), MR_GRAIN, run_piece, &l);
    return MR_OK;
}

#define STEP(name, variables, allowed)                                                                                 \
    {.op = name,                                                                                                       \
     .types = "T: " allowed,                                                                                           \
     .run = run_step,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare,                                                                                               \
     .updates = variables}
#define HANDLE(name, variables, allowed) STEP("Resource" name, variables, allowed)
#define BOTH(name, variables, allowed) STEP(name, variables, allowed), HANDLE(name, variables, allowed)
#define SPARSE(name, variables, allowed)                                                                               \
    BOTH("Apply" name, variables, allowed), BOTH("SparseApply" name, variables, allowed)
#define WIDE "float, double"
#define REAL "half, bfloat16, " WIDE
#define ANY REAL ", complex64, complex128"
static const mr_kernel kernels[] = {
    BOTH("ApplyGradientDescent", 0b1, ANY),
    BOTH("ApplyMomentum", 0b11, ANY),
    BOTH("SparseApplyMomentum", 0b11, ANY),
    HANDLE("ApplyKerasMomentum", 0b11, ANY),
    HANDLE("SparseApplyKerasMomentum", 0b11, ANY),
    BOTH("ApplyAdam", 0b111, ANY),
    HANDLE("ApplyAdamWithAmsgrad", 0b1111, REAL),
    BOTH("ApplyAdaMax", 0b111, REAL),
    SPARSE("Adadelta", 0b111, ANY),
    SPARSE("Adagrad", 0b11, ANY),
    SPARSE("AdagradV2", 0b11, ANY),
    SPARSE("AdagradDA", 0b111, WIDE),
    SPARSE("RMSProp", 0b111, ANY),
    SPARSE("CenteredRMSProp", 0b1111, ANY),
    SPARSE("Ftrl", 0b111, REAL),
    SPARSE("FtrlV2", 0b111, REAL),
    SPARSE("ProximalAdagrad", 0b11, WIDE),
    SPARSE("ProximalGradientDescent", 0b1, WIDE),
    BOTH("ApplyAddSign", 0b11, REAL),
    BOTH("ApplyPowerSign", 0b11, REAL),
};
const mr_kernel_table mr_state_kernels_optimizer = {kernels, sizeof kernels / sizeof kernels[0]};
