/* The formulas of the optimizers with L1 and L2 regularization: one pass over the variable and its slots, in place. The
 * order of the operations is TensorFlow's. */
#include "graph/state/optimizer.h"

#include <tgmath.h>

#define EACH MR_FORMULA_EACH
#define SIGN(x) ((T)((x) > 0) - (T)((x) < 0))
#define POSITIVE(x) ((x) < 0 ? (T)0 : (x))

/* Slots: gradient_accumulator, gradient_squared_accumulator. Scalars: lr, l1, l2, global_step. */
MR_FORMULA_REAL(
    adagrad_da, const T rate = (T)s[0], l1 = (T)s[1], l2 = (T)s[2], step = (T)s[3]; EACH {
        a[i] += g[i];
        b[i] += g[i] * g[i];
        const T top = l1 > 0 ? rate * (T)-1 * SIGN(a[i]) * POSITIVE(fabs(a[i]) - step * l1) : rate * a[i] * (T)-1;
        x[i] = top / (l2 * (step * rate) + sqrt(b[i]));
    })
MR_FORMULA_REAL(
    sparse_adagrad_da, const T rate = (T)s[0], l1 = (T)s[1], l2 = (T)s[2], step = (T)s[3]; EACH {
        a[i] += g[i];
        b[i] += g[i] * g[i];
        const T top = l1 > 0 ? (T)-1 * SIGN(a[i]) * POSITIVE(fabs(a[i]) / step - l1) : (T)-1 * (a[i] / step);
        x[i] = top / (l2 + sqrt(b[i]) / (step * rate));
    })

/* Slots: accum, linear. Scalars: lr, l1, l2, lr_power. With multiply_linear_by_lr, linear contains the learning rate.
 * shrunk  the gradient with the L2 shrinkage
 * root    maps the old and the new accum to their power
 * rest    maps the limit, l1, and linear to what remains of linear, with the opposite sign */
#define FTRL_LOOP(shrunk, root, rest)                                                                                  \
    EACH                                                                                                               \
    {                                                                                                                  \
        const T sum = a[i] + g[i] * g[i], power = root(sum), growth = power - root(a[i]);                              \
        const T limit = n->flag ? l1 * rate : l1;                                                                      \
        b[i] += n->flag ? (shrunk) * rate - growth * x[i] : (shrunk) - growth / rate * x[i];                           \
        const T bottom = n->flag ? power + (T)2 * l2 * rate : power / rate + (T)2 * l2;                                \
        x[i] = rest(limit, b[i], bottom);                                                                              \
        a[i] = sum;                                                                                                    \
    }
#define POWER(value) pow(value, -lr_power)
#define SELECT(limit, linear, bottom) (fabs(linear) > (limit) ? ((limit) * SIGN(linear) - (linear)) / (bottom) : (T)0)
#define CLAMP(limit, linear, bottom)                                                                                   \
    (((linear) > (limit) ? (limit) - (linear) : (linear) < -(limit) ? -(limit) - (linear) : (T)0) / (bottom))
#define FTRL(name, power, shrunk, rest)                                                                                \
    MR_FORMULA_REAL(name, const T rate = (T)s[0], l1 = (T)s[1], l2 = (T)s[2], lr_power = (T)s[power];                  \
                    if (lr_power == (T) - 0.5) FTRL_LOOP(shrunk, sqrt, rest) else FTRL_LOOP(shrunk, POWER, rest))
FTRL(ftrl, 3, g[i], SELECT)
FTRL(sparse_ftrl, 3, g[i], CLAMP)
/* Scalars: lr, l1, l2, l2_shrinkage, lr_power. */
FTRL(ftrl_v2, 4, g[i] + (T)2 * (T)s[3] * x[i], SELECT)
FTRL(sparse_ftrl_v2, 4, g[i] + (T)2 * (T)s[3] * x[i], CLAMP)

/* Replaces x by what remains of it after a proximal step with a learning rate. */
#define SHRINK(x, rate) ((l1 > 0 ? SIGN(x) * POSITIVE(fabs(x) - (rate) * l1) : (x)) / ((T)1 + l2 * (rate)))

/* Slot: accum. Scalars: lr, l1, l2. */
MR_FORMULA_REAL(
    proximal_adagrad, const T l1 = (T)s[1], l2 = (T)s[2]; EACH {
        a[i] += g[i] * g[i];
        const T rate = (T)s[0] * ((T)1 / sqrt(a[i])), moved = x[i] - g[i] * rate;
        x[i] = SHRINK(moved, rate);
    })

/* Scalars: alpha, l1, l2. */
MR_FORMULA_REAL(
    proximal_gradient_descent, const T rate = (T)s[0], l1 = (T)s[1], l2 = (T)s[2]; EACH {
        const T moved = x[i] - g[i] * rate;
        x[i] = SHRINK(moved, rate);
    })
