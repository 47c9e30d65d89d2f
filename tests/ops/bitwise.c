/* Samples of the operators of graph/ops/bitwise.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"BitwiseAnd", "int32[2,3]=1,6,-1; int32[3]=3,5,7", ""},
    {"BitwiseOr", "uint8[2,3]=1,6,255; uint8[3]=3,5,7", ""},
    {"BitwiseXor", "int64[2,3]=1,6,-1; int64[3]=3,5,7", ""},
    {"Invert", "int16[2,3]=1,6,-1", ""},
    {"LeftShift", "int8[2,3]=1,6,-1; int8[3]=3,-5,70", ""},
    {"RightShift", "int8[2,3]=1,6,-1; int8[3]=3,-5,70", ""},
    {"PopulationCount", "int32[2,3]=1,6,-1", ""})
/* clang-format on */
