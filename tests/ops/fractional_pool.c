/* Samples of the operators of graph/ops/fractional_pool.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"FractionalMaxPool", "float[2,7,6,3]",
     "pooling_ratio=1,1,1,1; seed=3; seed2=4; deterministic=true; overlapping=true"},
    {"FractionalAvgPool", "int32[2,7,6,3]", "pooling_ratio=1,1,1,1; pseudo_random=true"},
    {"FractionalMaxPoolGrad",
     "float[2,7,6,3]=1; float[2,4,3,3]=1; float[2,4,3,3]; int64[5]=0,2,4,6,7; int64[4]=0,2,4,6",
     "overlapping=true"},
    {"FractionalAvgPoolGrad", "int64[4]=2,7,6,3; float[2,4,3,3]; int64[5]=0,2,4,6,7; int64[4]=0,2,4,6", ""})
/* clang-format on */
