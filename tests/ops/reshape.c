/* Samples of the operators of graph/ops/reshape.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"QuantizedReshape", "quint8[2,3]; int32[2]=3,2; float[]=-1; float[]=2", ""},
    {"Rank", "float[2,3]", ""},
    {"Shape", "float[2,3]", ""},
    {"ShapeN", "float[2,3]+float[4]", ""},
    {"Size", "float[2,3]", ""},
    {"ExpandDims", "float[2,3]; int32[]=1", ""},
    {"Reshape", "float[2,6]; int32[2]=3,-1", ""},
    {"Squeeze", "float[1,2,1,3]", "squeeze_dims=0,2"})
/* clang-format on */
