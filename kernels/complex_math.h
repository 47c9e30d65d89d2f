/* Complex numbers in kernels. Loops of complex64 compute in double, so that both types share their expressions. */
#ifndef MR_KERNELS_COMPLEX_MATH_H
#define MR_KERNELS_COMPLEX_MATH_H

#include "kernels/elementwise.h"
#include <complex.h>
#include <math.h>

typedef float _Complex mr_complex64;
typedef double _Complex mr_complex128;

#define MR_COMPLEX_OF(real, imaginary) __builtin_complex((double)(real), (double)(imaginary))

/* The plain formula: an infinite operand gives NaN, where the C operator would search for a better result. */
MR_INLINE mr_complex128 mr_complex_times(mr_complex128 a, mr_complex128 b)
{
    return MR_COMPLEX_OF(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* log(1 + z), accurate near 0. */
static inline mr_complex128 mr_complex_log1p(mr_complex128 z)
{
    double a = creal(z), b = cimag(z), excess = a * (2.0 + a) + b * b; /* |1 + z|^2 - 1 */
    if (!(fabs(excess) < 0.5)) return clog(1.0 + z);
    return MR_COMPLEX_OF(0.5 * log1p(excess), atan2(b, 1.0 + a));
}

/* Defines the two loops of a unary operator, `expression` of z, which is double _Complex. */
#define MR_COMPLEX_UNARY(name, expression)                                                                             \
    MR_COMPLEX_UNARY_LOOP(name##_complex64, mr_complex64, expression)                                                  \
    MR_COMPLEX_UNARY_LOOP(name##_complex128, mr_complex128, expression)
#define MR_COMPLEX_UNARY_LOOP(name, type, expression)                                                                  \
    static void name(void *target, const void *source, int64_t count)                                                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const mr_complex128 z = ((const type *)source)[i];                                                         \
            ((type *)target)[i] = (type)(expression);                                                                  \
        }                                                                                                              \
    }
/* The two loops of a binary operator, `expression` of a and b. out_type is type, or bool for comparisons. */
#define MR_COMPLEX_BINARY_LOOP(name, type, out_type, expression)                                                       \
    static void name(void *target, const void *a_row, const void *b_row, int64_t count, mr_operands operands)          \
    {                                                                                                                  \
        int64_t a_step = operands != MR_A_SCALAR, b_step = operands != MR_B_SCALAR;                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const mr_complex128 a = ((const type *)a_row)[i * a_step], b = ((const type *)b_row)[i * b_step];          \
            ((out_type *)target)[i] = (out_type)(expression);                                                          \
        }                                                                                                              \
    }
#define MR_COMPLEX_BINARY(name, expression)                                                                            \
    MR_COMPLEX_BINARY_LOOP(name##_complex64, mr_complex64, mr_complex64, expression)                                   \
    MR_COMPLEX_BINARY_LOOP(name##_complex128, mr_complex128, mr_complex128, expression)
/* The loops in a table that is indexed by dtype. */
#define MR_COMPLEX_ROWS(name) [MR_COMPLEX64] = name##_complex64, [MR_COMPLEX128] = name##_complex128

#endif
