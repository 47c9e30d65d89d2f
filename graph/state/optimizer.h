/* The formulas of the optimizers, for graph/state/optimizer.c. */
#ifndef MR_GRAPH_STATE_OPTIMIZER_H
#define MR_GRAPH_STATE_OPTIMIZER_H

#include "kernels/common.h"

constexpr int MR_STEP_SLOTS = 4, MR_STEP_SCALARS = 6;

/* The operands of one step. Elements have the type of the function. */
typedef struct mr_step {
    void *slots[MR_STEP_SLOTS]; /* the variable and its slots, in the order of the inputs */
    const void *gradient;
    double _Complex scalars[MR_STEP_SCALARS]; /* in the order of the inputs */
    bool flag;                                /* use_nesterov, update_slots or multiply_linear_by_lr */
} mr_step;

/* Updates the elements [begin, end). */
typedef void (*mr_step_function)(const mr_step *step, int64_t begin, int64_t end);

/* Functions for each CPU level; null where TensorFlow has no kernel for the type. */
typedef struct mr_formula {
    const mr_step_function *floats, *doubles, *complex_floats, *complex_doubles;
} mr_formula;

extern const mr_formula mr_formula_gradient_descent, mr_formula_momentum, mr_formula_keras_momentum, mr_formula_adam,
    mr_formula_amsgrad, mr_formula_adamax, mr_formula_adadelta, mr_formula_adagrad, mr_formula_adagrad_v2,
    mr_formula_rmsprop, mr_formula_sparse_rmsprop, mr_formula_centered_rmsprop, mr_formula_sparse_centered_rmsprop,
    mr_formula_add_sign, mr_formula_power_sign;

/* With regularization: graph/state/optimizer_proximal.c. */
extern const mr_formula mr_formula_adagrad_da, mr_formula_sparse_adagrad_da, mr_formula_ftrl, mr_formula_sparse_ftrl,
    mr_formula_ftrl_v2, mr_formula_sparse_ftrl_v2, mr_formula_proximal_adagrad, mr_formula_proximal_gradient_descent;

/* A formula's loops. The statements use the element type T, the variable x, its slots a, b and c, the gradient g, the
 * scalars s, and n->flag; <tgmath.h> provides the functions of each type. */
#define MR_FORMULA_LOOP(name, suffix, type, ...)                                                                       \
    MR_INLINE void name##_##suffix##_body(const mr_step *n, int64_t begin, int64_t end)                                \
    {                                                                                                                  \
        typedef type T;                                                                                                \
        T *restrict x = n->slots[0];                                                                                   \
        [[maybe_unused]] T *restrict a = n->slots[1], *restrict b = n->slots[2], *restrict c = n->slots[3];            \
        const T *restrict g = n->gradient;                                                                             \
        const double _Complex *s = n->scalars;                                                                         \
        __VA_ARGS__                                                                                                    \
    }                                                                                                                  \
    MR_LEVELS(name##_##suffix, (const mr_step *n, int64_t begin, int64_t end), (n, begin, end))
#define MR_FORMULA_EACH for (int64_t i = begin; i < end; i++)

/* For float and double; half types use the float loop. */
#define MR_FORMULA_REAL(name, ...)                                                                                     \
    MR_FORMULA_LOOP(name, float, float, __VA_ARGS__)                                                                   \
    MR_FORMULA_LOOP(name, double, double, __VA_ARGS__)                                                                 \
    const mr_formula mr_formula_##name = {.floats = name##_float, .doubles = name##_double};
/* And for complex types. */
#define MR_FORMULA(name, ...)                                                                                          \
    MR_FORMULA_LOOP(name, float, float, __VA_ARGS__)                                                                   \
    MR_FORMULA_LOOP(name, double, double, __VA_ARGS__)                                                                 \
    MR_FORMULA_LOOP(name, complex64, float _Complex, __VA_ARGS__)                                                      \
    MR_FORMULA_LOOP(name, complex128, double _Complex, __VA_ARGS__)                                                    \
    const mr_formula mr_formula_##name = {name##_float, name##_double, name##_complex64, name##_complex128};

#endif
