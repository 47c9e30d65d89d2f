/* The kinds of optimizers: their options, slots and update operators. */
#ifndef MR_GRAPH_TRAIN_OPTIMIZER_KINDS_H
#define MR_GRAPH_TRAIN_OPTIMIZER_KINDS_H

#include "graph/train/train.h"

/* The numbers among the options. Those that the update operator takes are constants of the graph. */
typedef enum mr_optimizer_number {
    MR_NUMBER_MOMENTUM,
    MR_NUMBER_BETA1,
    MR_NUMBER_BETA2,
    MR_NUMBER_EPSILON,
    MR_NUMBER_DECAY,
    MR_NUMBER_INITIAL_ACCUMULATOR,
    MR_NUMBER_L1,
    MR_NUMBER_L2,
    MR_NUMBER_L2_SHRINKAGE,
    MR_NUMBER_POWER,
    MR_NUMBER_WEIGHT_DECAY,
    MR_NUMBER_EETA,
    MR_NUMBER_BETA,
    MR_NUMBER_BASE, /* in the graph: its logarithm */
    MR_NUMBER_ALPHA,
    MR_NUMBER_COUNT,
} mr_optimizer_number;

constexpr int32_t MR_OPTIMIZER_SLOTS_MAX = 3;

/* The option of the operators that update a variable or a slot. */
#define MR_LOCKING(update) .use_locking = (update)->optimizer->use_locking

/* One update of a variable. */
typedef struct mr_optimizer_update {
    mr_graph *graph;
    const mr_optimizer *optimizer;
    mr_output variable, gradient, rate;
    /* Of a sparse gradient: the rows; without `repeats`, each index once. */
    mr_output values, indices;
    mr_output slots[MR_OPTIMIZER_SLOTS_MAX]; /* references */
    mr_output numbers[MR_NUMBER_COUNT];
    mr_output powers[2];  /* values of beta1_power and beta2_power */
    mr_output step;       /* of AdagradDA: the number of this step */
    mr_output sign_decay; /* of PowerSign and AddSign */
    const char *name;     /* of the variable */
} mr_optimizer_update;

typedef struct mr_optimizer_form {
    const char *name;               /* of slots and scope, unless the options have another */
    float learning_rate;            /* the default; NaN: required */
    float numbers[MR_NUMBER_COUNT]; /* defaults; NaN: the kind does not have it; -infinity: required */
    const char *slots;              /* initial values: '0', '1', or 'a' for the initial accumulator */
    bool has_powers, has_step, has_nesterov, has_sign_decay, has_skip_list;
    mr_output (*apply)(const mr_optimizer_update *update);
    mr_output (*apply_rows)(const mr_optimizer_update *update); /* of a sparse gradient */
    bool repeats;                                               /* apply_rows takes an index several times */
} mr_optimizer_form;

/* ---- Adam and its relatives (optimizer_adam.c) ---- */

/* Of a sparse gradient, as TensorFlow's: the moments decay everywhere, and the whole variable changes. */
mr_output mr_optimizer_adam_rows(const mr_optimizer_update *update);
/* Of a sparse gradient: only its rows change. */
mr_output mr_optimizer_lazy_adam_rows(const mr_optimizer_update *update);
/* The decay of weights of AdamW and MomentumW: of all weights, or of the rows of a sparse gradient. */
mr_node *mr_optimizer_decay(const mr_optimizer_update *update);
mr_node *mr_optimizer_decay_rows(const mr_optimizer_update *update);
mr_output mr_optimizer_adam_w_rows(const mr_optimizer_update *update);

/* What they share with other kinds. The value of a variable after the node, or now if it is null. */
mr_output mr_optimizer_value_after(mr_graph *graph, mr_output ref, mr_dtype dtype, mr_node *after);
/* moment = decay * moment, then + values in the rows of indices. Returns its value after that. */
mr_output mr_optimizer_move(const mr_optimizer_update *update, mr_output moment, mr_output decay, mr_output values);
/* decay * moment + (1 - decay) * values, in the rows of indices alone. Returns these rows.
 * node  receives what writes them */
mr_output mr_optimizer_move_rows(const mr_optimizer_update *update, mr_output moment, mr_output decay, mr_output values,
                                 mr_node **node);
mr_output mr_optimizer_rows_of(const mr_optimizer_update *update, mr_output ref);
mr_node *mr_optimizer_subtract_rows(const mr_optimizer_update *update, mr_output change);
/* 1, in the dtype of the gradient. */
mr_output mr_optimizer_one(const mr_optimizer_update *update);
/* The learning rate with the corrections of both moments. */
mr_output mr_optimizer_corrected_rate(const mr_optimizer_update *update, mr_output one);

/* ---- AdaMax and AMSGrad (optimizer_adamax.c) ---- */

mr_output mr_optimizer_ada_max(const mr_optimizer_update *update);
mr_output mr_optimizer_ada_max_rows(const mr_optimizer_update *update);
mr_output mr_optimizer_amsgrad(const mr_optimizer_update *update);
mr_output mr_optimizer_amsgrad_rows(const mr_optimizer_update *update);

/* ---- LARS and MomentumW (optimizer_lars.c) ---- */

/* Momentum, with that learning rate. */
mr_output mr_optimizer_momentum(const mr_optimizer_update *update, mr_output rate);
mr_output mr_optimizer_momentum_rows(const mr_optimizer_update *update);
mr_output mr_optimizer_lars(const mr_optimizer_update *update);
mr_output mr_optimizer_momentum_w(const mr_optimizer_update *update);
mr_output mr_optimizer_momentum_w_rows(const mr_optimizer_update *update);

/* ---- PowerSign and AddSign (optimizer_sign.c) ---- */

mr_output mr_optimizer_power_sign(const mr_optimizer_update *update);
mr_output mr_optimizer_power_sign_rows(const mr_optimizer_update *update);
mr_output mr_optimizer_add_sign(const mr_optimizer_update *update);
mr_output mr_optimizer_add_sign_rows(const mr_optimizer_update *update);

/* The form of the kind, centered or not. */
const mr_optimizer_form *mr_optimizer_form_of(const mr_optimizer *optimizer);
/* The name of its scope and slots. */
static inline const char *mr_optimizer_name(const mr_optimizer *optimizer, const mr_optimizer_form *form)
{
    return optimizer->name != nullptr ? optimizer->name : form->name;
}
/* The last part of the name of a slot's variable, before it is made unique. */
const char *mr_optimizer_slot_name(const mr_optimizer *optimizer, const mr_optimizer_form *form, int32_t index);
/* Fills in the defaults. Records an error for an option that is missing, out of range, or without effect, and returns
 * whether there is none. */
bool mr_optimizer_settle(mr_graph *graph, mr_optimizer *optimizer);
/* The value of a number, and its name, as constants of the graph have them. */
float mr_optimizer_value(const mr_optimizer *optimizer, mr_optimizer_number number, const char **name);

#endif
