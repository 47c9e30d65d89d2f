/* The formulas of the optimizers without regularization: one pass over the variable and its slots, in place. The order
 * of the operations is TensorFlow's. */
#include "graph/state/optimizer.h"

#include <tgmath.h>

#define EACH MR_FORMULA_EACH

/* var -= alpha * delta. Scalars: alpha. */
MR_FORMULA(gradient_descent, const T rate = (T)s[0]; EACH x[i] -= g[i] * rate;)

/* Slot: accum. Scalars: lr, momentum. */
MR_FORMULA(
    momentum, const T rate = (T)s[0], momentum = (T)s[1]; if (n->flag) EACH {
        a[i] = a[i] * momentum + g[i];
        x[i] -= g[i] * rate + a[i] * momentum * rate;
    } else EACH {
        a[i] = a[i] * momentum + g[i];
        x[i] -= a[i] * rate;
    })

/* Slot: accum, which contains the learning rate. Scalars: lr, momentum. */
MR_FORMULA(
    keras_momentum, const T rate = (T)s[0], momentum = (T)s[1]; if (n->flag) EACH {
        a[i] = a[i] * momentum - g[i] * rate;
        x[i] += a[i] * momentum - g[i] * rate;
    } else EACH {
        a[i] = a[i] * momentum - g[i] * rate;
        x[i] += a[i];
    })

/* Slots: m, v. Scalars: beta1_power, beta2_power, lr, beta1, beta2, epsilon. */
MR_FORMULA(
    adam, const T one = 1, rate = (T)s[2] * sqrt(one - (T)s[1]) / (one - (T)s[0]), epsilon = (T)s[5];
    const T beta1 = (T)s[3], rest1 = one - beta1, rest2 = one - (T)s[4]; if (n->flag) EACH {
        a[i] += (g[i] - a[i]) * rest1;
        b[i] += (g[i] * g[i] - b[i]) * rest2;
        x[i] -= (g[i] * rest1 + beta1 * a[i]) * rate / (sqrt(b[i]) + epsilon);
    } else EACH {
        a[i] += (g[i] - a[i]) * rest1;
        b[i] += (g[i] * g[i] - b[i]) * rest2;
        x[i] -= a[i] * rate / (sqrt(b[i]) + epsilon);
    })

/* Slots: m, v, vhat, the maximum of v. Scalars as for Adam. */
MR_FORMULA_REAL(
    amsgrad, const T one = 1, rate = (T)s[2] * sqrt(one - (T)s[1]) / (one - (T)s[0]), epsilon = (T)s[5];
    const T rest1 = one - (T)s[3], rest2 = one - (T)s[4]; EACH {
        a[i] += (g[i] - a[i]) * rest1;
        b[i] += (g[i] * g[i] - b[i]) * rest2;
        c[i] = c[i] < b[i] ? b[i] : c[i];
        x[i] -= a[i] * rate / (sqrt(c[i]) + epsilon);
    })

/* Slots: m, v. Scalars: beta1_power, lr, beta1, beta2, epsilon. */
MR_FORMULA_REAL(
    adamax, const T one = 1, rate = (T)s[1] / (one - (T)s[0]), rest = one - (T)s[2];
    const T beta2 = (T)s[3], epsilon = (T)s[4]; EACH {
        a[i] += (g[i] - a[i]) * rest;
        const T decayed = beta2 * b[i], size = fabs(g[i]);
        b[i] = decayed < size ? size : decayed;
        x[i] -= rate * (a[i] / (b[i] + epsilon));
    })

/* Slots: accum, accum_update. Scalars: lr, rho, epsilon. */
MR_FORMULA(
    adadelta, const T one = 1, rate = (T)s[0], rho = (T)s[1], epsilon = (T)s[2], rest = one - rho; EACH {
        a[i] = a[i] * rho + g[i] * g[i] * rest;
        const T update = sqrt(b[i] + epsilon) * (one / sqrt(a[i] + epsilon)) * g[i];
        x[i] -= update * rate;
        b[i] = b[i] * rho + update * update * rest;
    })

/* Slot: accum. Scalars: lr. */
MR_FORMULA(adagrad, const T one = 1, rate = (T)s[0]; if (n->flag) EACH a[i] += g[i] * g[i];
           EACH x[i] -= g[i] * rate * (one / sqrt(a[i]));)

/* Slot: accum. Scalars: lr, epsilon. */
MR_FORMULA(adagrad_v2, const T rate = (T)s[0], epsilon = (T)s[1]; if (n->flag) EACH a[i] += g[i] * g[i];
           EACH x[i] -= g[i] * rate / (sqrt(a[i]) + epsilon);)

/* Slots: ms, mom. Scalars: lr, rho, momentum, epsilon. */
MR_FORMULA(
    rmsprop, const T rate = (T)s[0], rest = (T)1 - (T)s[1], momentum = (T)s[2], epsilon = (T)s[3]; EACH {
        a[i] += (g[i] * g[i] - a[i]) * rest;
        b[i] = b[i] * momentum + (g[i] * rate) / sqrt(a[i] + epsilon);
        x[i] -= b[i];
    })
MR_FORMULA(
    sparse_rmsprop, const T one = 1, rate = (T)s[0], rho = (T)s[1], momentum = (T)s[2], epsilon = (T)s[3]; EACH {
        a[i] = a[i] * rho + g[i] * g[i] * (one - rho);
        b[i] = b[i] * momentum + (one / sqrt(a[i] + epsilon)) * rate * g[i];
        x[i] -= b[i];
    })

/* Slots: mg, ms, mom. Scalars: lr, rho, momentum, epsilon. */
MR_FORMULA(
    centered_rmsprop, const T rate = (T)s[0], rest = (T)1 - (T)s[1], momentum = (T)s[2], epsilon = (T)s[3]; EACH {
        b[i] += (g[i] * g[i] - b[i]) * rest;
        a[i] += (g[i] - a[i]) * rest;
        c[i] = c[i] * momentum + (g[i] * rate) / sqrt(b[i] - a[i] * a[i] + epsilon);
        x[i] -= c[i];
    })
MR_FORMULA(
    sparse_centered_rmsprop, const T one = 1, rate = (T)s[0], rho = (T)s[1], rest = one - rho;
    const T momentum = (T)s[2], epsilon = (T)s[3]; EACH {
        b[i] = b[i] * rho + g[i] * g[i] * rest;
        a[i] = a[i] * rho + g[i] * rest;
        c[i] = c[i] * momentum + (one / sqrt(b[i] + epsilon - a[i] * a[i])) * rate * g[i];
        x[i] -= c[i];
    })

/* -1, 0 or 1. */
#define SIGN(x) ((T)((x) > 0) - (T)((x) < 0))

/* Slot: m. Scalars: lr, alpha, sign_decay, beta. */
MR_FORMULA_REAL(
    add_sign, const T rate = (T)s[0], alpha = (T)s[1], decay = (T)s[2], beta = (T)s[3], rest = (T)1 - beta; EACH {
        a[i] = a[i] * beta + g[i] * rest;
        x[i] -= rate * (alpha + decay * (SIGN(g[i]) * SIGN(a[i]))) * g[i];
    })

/* Slot: m. Scalars: lr, logbase, sign_decay, beta. The scale has one of three values. */
MR_FORMULA_REAL(
    power_sign, const T rate = (T)s[0], power = (T)s[1] * (T)s[2], beta = (T)s[3], rest = (T)1 - beta;
    const T up = exp(power), down = exp(-power); EACH {
        a[i] = a[i] * beta + g[i] * rest;
        const T sign = SIGN(g[i]) * SIGN(a[i]), scale = sign > 0 ? up : sign < 0 ? down : (T)1;
        x[i] -= rate * scale * g[i];
    })
