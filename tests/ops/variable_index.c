/* Samples of the operators of graph/ops/variable_index.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"CountUpTo", "&int32[]=3", "limit=1000"},
    {"ResourceCountUpTo", "@int64[]=3", "limit=1000; T=int64"},
    {"ResourceGather", "@float[4,3]; int32[2]=0,3", "dtype=float"},
    {"ResourceGatherNd", "@float[4,3]; int32[2,1]=0,3", "dtype=float"},
    {"ScatterNdUpdate", "&float[4,3]; int32[2,1]=0,3; float[2,3]", ""},
    {"ResourceScatterNdUpdate", "@float[4,3]; int64[2,2]=0,1,3,2; float[2]", ""},
    {"ScatterNdAdd", "&float[4,3]; int32[2,1]=0,3; float[2,3]", ""},
    {"ResourceScatterNdAdd", "@float[4,3]; int64[2,2]=0,1,3,2; float[2]", ""},
    {"ScatterNdSub", "&float[4,3]; int32[2,1]=0,3; float[2,3]", ""},
    {"ResourceScatterNdSub", "@float[4,3]; int64[2,2]=0,1,3,2; float[2]", ""},
    {"ScatterNdMin", "&float[4,3]; int32[2,1]=0,3; float[2,3]", ""},
    {"ResourceScatterNdMin", "@float[4,3]; int64[2,2]=0,1,3,2; float[2]", ""},
    {"ScatterNdMax", "&float[4,3]; int32[2,1]=0,3; float[2,3]", ""},
    {"ResourceScatterNdMax", "@float[4,3]; int64[2,2]=0,1,3,2; float[2]", ""},
    {"ResourceScatterNdUpdate", "@string[4,3]=old; int32[2,1]=0,3; string[2,3]=new", ""},
    {"StridedSliceAssign", "&float[4,3]; int32[2]=1,0; int32[2]=3,2; int32[2]=1,1; float[2,2]", ""},
    {"ResourceStridedSliceAssign", "@float[4,3]; int32[2]=1,0; int32[2]=3,2; int32[2]=1,1; float[2]", ""},
    {"TensorStridedSliceUpdate", "float[4,3]; int32[2]=1,0; int32[2]=3,2; int32[2]=1,1; float[2,2]", ""})
/* clang-format on */
