/* Samples of the operators of graph/ops/slice.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Slice", "float[4,5]; int32[2]=1,0; int32[2]=2,-1", ""},
    {"StridedSlice", "float[4,5]; int32[2]=0,4; int32[2]=4,0; int32[2]=2,-1", "end_mask=2"},
    {"StridedSlice", "float[4,5,3]; int32[3]=0,0,1; int32[3]=0,0,2; int32[3]=1,1,1",
     "ellipsis_mask=1; new_axis_mask=2; shrink_axis_mask=4"},
    {"StridedSliceGrad", "int32[2]=4,5; int32[2]=0,4; int32[2]=4,0; int32[2]=2,-1; float[2,4]", ""})
/* clang-format on */
