/* Samples of the operators of graph/ops/concat.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Concat", "int32[]=1; float[2,3]+float[2,4]", ""},
    {"ConcatOffset", "int32[]=1; int32[2]=2,3+int32[2]=2,4", ""},
    {"ConcatV2", "float[2,3]+float[2,4]; int32[]=1", ""},
    {"ConcatV2", "string[2]=a+string[3]=b; int32[]=0", ""},
    {"Pack", "float[2,3]+float[2,3]", "axis=1"},
    {"Split", "int32[]=1; float[2,4]", "num_split=2"},
    {"SplitV", "float[2,5]; int64[2]=2,-1; int32[]=1", "num_split=2"},
    {"Unpack", "float[2,3]", "num=2"})
/* clang-format on */
