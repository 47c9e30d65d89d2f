/* Complex numbers: composition, parts, and conjugates. */
#include "kernels/complex_math.h"

MR_BINARY_LOOP(compose_float, float, mr_complex64, __builtin_complex(a, b))
MR_BINARY_LOOP(compose_double, double, mr_complex128, __builtin_complex(a, b))

static mr_status compose(mr_kernel_call *call, mr_error *error)
{
    static const mr_binary binary = {.loops = {[MR_FLOAT] = compose_float, [MR_DOUBLE] = compose_double}};
    return mr_binary_run(call, &binary, error);
}

#define PART(name, expression64, expression128)                                                                        \
    MR_UNARY_LOOP(name##_complex64, mr_complex64, float, expression64)                                                 \
    MR_UNARY_LOOP(name##_complex128, mr_complex128, double, expression128)                                             \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        static const mr_unary unary = {.loops = {MR_COMPLEX_ROWS(name)}};                                              \
        return mr_unary_run(call, &unary, error);                                                                      \
    }
PART(real, crealf(x), creal(x))
PART(imaginary, cimagf(x), cimag(x))
PART(angle, atan2f(cimagf(x), crealf(x)), atan2(cimag(x), creal(x)))
PART(absolute, hypotf(crealf(x), cimagf(x)), hypot(creal(x), cimag(x)))

MR_COMPLEX_UNARY(conjugate, conj(z))
static mr_status conjugate(mr_kernel_call *call, mr_error *error)
{
    static const mr_unary unary = {.loops = {MR_COMPLEX_ROWS(conjugate)}};
    return mr_unary_run(call, &unary, error);
}

/* Rows for both precisions: the real type belongs to the complex one. */
#define BOTH(name, function)                                                                                           \
    {.op = name, .types = "T: complex64; Tout: float", .run = function},                                               \
    {                                                                                                                  \
        .op = name, .types = "T: complex128; Tout: double", .run = function                                            \
    }
static const mr_kernel kernels[] = {
    {.op = "Complex", .types = "T: float; Tout: complex64", .run = compose},
    {.op = "Complex", .types = "T: double; Tout: complex128", .run = compose},
    BOTH("Real", real),
    BOTH("Imag", imaginary),
    BOTH("Angle", angle),
    BOTH("ComplexAbs", absolute),
    {.op = "Conj", .types = "T: complex64, complex128", .run = conjugate},
};
MR_KERNEL_FAMILY(complex);
