/* Loops over special functions. All types are computed in double. Each macro defines the loop `name`. */
#ifndef MR_KERNELS_SPECIAL_H
#define MR_KERNELS_SPECIAL_H

#include "kernels/elementwise.h"
#include <math.h>

#define MR_SPECIAL_UNARY_LOOP(name, type, expression)                                                                  \
    static void name(void *target, const void *source, int64_t count)                                                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const double x = (double)((const type *)source)[i];                                                        \
            ((type *)target)[i] = (type)(expression);                                                                  \
        }                                                                                                              \
    }
/* `expression` is a function of x. */
#define MR_SPECIAL_UNARY(name, expression)                                                                             \
    MR_SPECIAL_UNARY_LOOP(name##_float, float, expression)                                                             \
    MR_SPECIAL_UNARY_LOOP(name##_double, double, expression)                                                           \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        static const mr_unary unary = {.loops = {[MR_FLOAT] = name##_float, [MR_DOUBLE] = name##_double}};             \
        return mr_unary_run(call, &unary, error);                                                                      \
    }

#define MR_SPECIAL_BINARY_LOOP(name, type, expression)                                                                 \
    static void name(void *target, const void *a_row, const void *b_row, int64_t count, mr_operands operands)          \
    {                                                                                                                  \
        int64_t a_step = operands != MR_A_SCALAR, b_step = operands != MR_B_SCALAR;                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const double a = (double)((const type *)a_row)[i * a_step], b = (double)((const type *)b_row)[i * b_step]; \
            ((type *)target)[i] = (type)(expression);                                                                  \
        }                                                                                                              \
    }
/* `expression` is a function of a and b, the operands in this order. */
#define MR_SPECIAL_BINARY(name, expression)                                                                            \
    MR_SPECIAL_BINARY_LOOP(name##_float, float, expression)                                                            \
    MR_SPECIAL_BINARY_LOOP(name##_double, double, expression)                                                          \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        static const mr_binary binary = {.loops = {[MR_FLOAT] = name##_float, [MR_DOUBLE] = name##_double}};           \
        return mr_binary_run(call, &binary, error);                                                                    \
    }

#endif
