/* IDEA */
#include "graph/ir/op.h"

static mr_status apply_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op training_ops[] = {
    {.name = "ApplyGradientDescent",
     .signature = "var: Ref(T), alpha: T, delta: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = apply_shape,
     .doc = "var -= alpha * delta."},
    {.name = "ApplyMomentum",
     .signature = "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = apply_shape,
     .doc = "accum = accum * momentum + grad; var -= lr * accum."},
    {.name = "ApplyAdam",
     .signature = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
                  "epsilon: T, grad: T -> out: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = apply_shape,
     .doc = "One step of Adam on var, with its moments m and v."},
    {.name = "ResourceApplyGradientDescent",
     .signature = "var: resource, alpha: T, delta: T ->",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "var -= alpha * delta, for a variable by handle."},
    {.name = "ResourceApplyMomentum",
     .signature = "var: resource, accum: resource, lr: T, grad: T, momentum: T ->",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "accum = accum * momentum + grad; var -= lr * accum, for variables by handle."},
    {.name = "ResourceApplyAdam",
     .signature = "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, "
                  "beta2: T, epsilon: T, grad: T ->",
     .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "One step of Adam on var, with its moments m and v, for variables by handle."},
};

const mr_op_table mr_op_table_training = {training_ops, sizeof training_ops / sizeof training_ops[0]};
