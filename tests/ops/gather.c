/* Samples of the operators of graph/ops/gather.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Where", "bool[2,3]=1,0", ""},
    {"Gather", "float[4,3]; int32[2]=0,3", ""},
    {"GatherNd", "float[4,3]; int32[2,1]=0,3", ""},
    {"GatherNd", "string[4,3]=a; int32[5,2]=0,1", ""},
    {"GatherV2", "float[2,4,3]; int32[5]=0,3; int32[]=1", ""},
    {"GatherV2", "float[2,4,3]; int32[2,5]=0,3; int32[]=1", "batch_dims=1"},
    {"OneHot", "int64[4]; int32[]=3; float[]=1; float[]=0", ""},
    {"ScatterNd", "int32[2,1]=0,3; float[2,3]; int32[2]=4,3", ""})
/* clang-format on */
