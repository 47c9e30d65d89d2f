/* Samples of the operators of graph/ops/counting.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Bincount", "int32[2,3]=0,1,4; int32[]=3; float[2,3]", ""},
    {"DenseBincount", "int32[2,3]=0,1,4; int32[]=3; float[2,3]", ""},
    {"DenseBincount", "int64[5]=0,1,4; int64[]=3; int32[0]", "binary_output=true"},
    {"RaggedBincount", "int64[4]=0,2,2,5; int32[5]=0,1,4; int32[]=3; float[5]", ""},
    {"SparseBincount", "int64[3,2]=0,1,1,0,1,2; int32[3]=0,1,4; int64[2]=2,3; int32[]=5; float[3]", ""},
    {"HistogramFixedWidth", "float[2,3]; float[2]=0,5; int32[]=4", ""},
    {"Bucketize", "float[2,3]", "boundaries=2.5"},
    {"LowerBound", "float[2,4]=1,2,2,5; float[2,3]=0,2,6", ""},
    {"UpperBound", "int32[2,4]=1,2,2,5; int32[2,3]=0,2,6", ""})
/* clang-format on */
