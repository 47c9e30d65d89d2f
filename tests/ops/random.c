/* Samples of the operators of graph/ops/random.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Multinomial", "float[2,3]; int32[]=4", ""},
    {"RandomShuffle", "float[4,3]", ""},
    {"RandomStandardNormal", "int32[2]=2,3", "dtype=float"},
    {"RandomUniform", "int32[2]=2,3", "dtype=float"},
    {"RandomUniformInt", "int32[2]=2,3; int32[]=0; int32[]=9", ""},
    {"TruncatedNormal", "int32[2]=2,3", "dtype=double"})
/* clang-format on */
