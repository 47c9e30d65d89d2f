/* Samples of the operators of graph/ops/complex.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Complex", "float[2,3]; float[3]", ""},
    {"Real", "complex64[2,3]", ""},
    {"Imag", "complex64[2,3]", ""},
    {"Conj", "complex64[2,3]", ""},
    {"Angle", "complex128[2,3]", "Tout=double"},
    {"ComplexAbs", "complex64[2,3]", ""})
/* clang-format on */
