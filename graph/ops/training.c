/* One optimizer step on one variable. */
#include "graph/ir/op.h"

/* The slots that follow the variable, and the gradient, must have the variable's shape; the other inputs are
 * scalars. */
static mr_status apply(mr_shape_call *call, int32_t slots, int32_t gradient, mr_error *error)
{
    mr_shape merged = call->inputs[0];
    for (int32_t i = 1; i < call->input_count; i++)
        if (i <= slots || i == gradient)
            MR_TRY(mr_shape_merge(merged, call->inputs[i], &merged, error));
        else
            MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    call->outputs[0] = merged;
    return MR_OK;
}

static mr_status apply_gradient_descent_shape(mr_shape_call *call, mr_error *error)
{
    return apply(call, 0, 2, error);
}

static mr_status apply_momentum_shape(mr_shape_call *call, mr_error *error)
{
    return apply(call, 1, 3, error);
}

static mr_status apply_adam_shape(mr_shape_call *call, mr_error *error)
{
    return apply(call, 2, 9, error);
}

static const mr_op training_ops[] = {
    {.name = "ApplyGradientDescent",
     .signature = "var: Ref(T), alpha: T, delta: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = apply_gradient_descent_shape,
     .fusion = {.gradient = 2},
     .writes = 0b1,
     .doc = "Performs a step of gradient descent: var -= alpha * delta."},
    {.name = "ApplyMomentum",
     .signature = "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = apply_momentum_shape,
     .fusion = {.gradient = 3},
     .writes = 0b11,
     .doc = "Performs a step of momentum: accum = accum * momentum + grad; var -= lr * accum."},
    {.name = "ApplyAdam",
     .signature = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
                  "epsilon: T, grad: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = apply_adam_shape,
     .fusion = {.gradient = 9},
     .writes = 0b111,
     .doc = "Performs a step of Adam on var with its moments m and v."},
    {.name = "ResourceApplyGradientDescent",
     .signature = "var: resource, alpha: T, delta: T ->",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_TRAINS,
     .fusion = {.gradient = 2},
     .writes = 0b1,
     .doc = "Performs a step of gradient descent on a resource variable: var -= alpha * delta."},
    {.name = "ResourceApplyMomentum",
     .signature = "var: resource, accum: resource, lr: T, grad: T, momentum: T ->",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_TRAINS,
     .fusion = {.gradient = 3},
     .writes = 0b11,
     .doc = "Performs a step of momentum on resource variables: accum = accum * momentum + grad; var -= lr * accum."},
    {.name = "ResourceApplyAdam",
     .signature = "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, "
                  "beta2: T, epsilon: T, grad: T ->",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_TRAINS,
     .fusion = {.gradient = 9},
     .writes = 0b111,
     .doc = "Performs a step of Adam on the resource variable var with its moments m and v."},
};

const mr_op_table mr_ops_training = {training_ops, sizeof training_ops / sizeof training_ops[0]};
