/* Samples of the operators of graph/ops/transpose.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"InvertPermutation", "int32[3]=2,0,1", ""},
    {"BroadcastGradientArgs", "int32[2]=2,3; int32[1]=3", ""},
    {"BroadcastArgs", "int32[2]=2,3; int32[1]=3", ""},
    {"BroadcastTo", "float[3]; int32[2]=2,3", ""},
    {"Reverse", "float[2,3,4]; bool[3]=1,0,1", ""},
    {"ReverseV2", "float[2,3,4]; int32[2]=0,-1", ""},
    {"Tile", "float[2,3]; int32[2]=2,1", ""},
    {"Transpose", "float[2,3,4]; int32[3]=2,0,1", ""},
    {"ConjugateTranspose", "complex64[2,3,4]; int32[3]=2,0,1", ""})
/* clang-format on */
