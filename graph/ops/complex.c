/* Complex numbers: composition and parts. */
#include "graph/ir/op.h"

static const mr_op complex_ops[] = {
    {.name = "Complex",
     .signature = "real: T, imag: T -> out: Tout",
     .attrs = "T: {float, double} = float; Tout: {complex64, complex128} = complex64",
     .shape = mr_shape_binary,
     .doc = "Returns the complex numbers with the parts real and imag."},
    {.name = "Real",
     .signature = "input: T -> output: Tout",
     .attrs = "T: {complex64, complex128} = complex64; Tout: {float, double} = float",
     .shape = mr_shape_unchanged,
     .doc = "Returns the real part of complex numbers."},
    {.name = "Imag",
     .signature = "input: T -> output: Tout",
     .attrs = "T: {complex64, complex128} = complex64; Tout: {float, double} = float",
     .shape = mr_shape_unchanged,
     .doc = "Returns the imaginary part of complex numbers."},
    {.name = "Conj",
     .signature = "input: T -> output: T",
     .attrs = "T: {complex64, complex128, variant} = complex64",
     .shape = mr_shape_unchanged,
     .doc = "Returns the complex conjugate of input element-wise."},
    {.name = "Angle",
     .signature = "input: T -> output: Tout",
     .attrs = "T: {complex64, complex128} = complex64; Tout: {float, double} = float",
     .shape = mr_shape_unchanged,
     .doc = "Returns the argument of complex numbers, in [-pi, pi]."},
    {.name = "ComplexAbs",
     .signature = "x: T -> y: Tout",
     .attrs = "T: {complex64, complex128} = complex64; Tout: {float, double} = float",
     .shape = mr_shape_unchanged,
     .doc = "Returns the absolute value of complex numbers."},
};

const mr_op_table mr_ops_complex = {complex_ops, sizeof complex_ops / sizeof complex_ops[0]};
