/* Samples of the operators of graph/ops/segment.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"SegmentSum", "float[4,3]; int32[4]=0,0,1,3", ""},
    {"SegmentMean", "half[4,3]; int32[4]=0,0,1,3", ""},
    {"SegmentProd", "int32[4,3]; int64[4]=0,0,1,3", ""},
    {"SegmentMin", "float[4,3]; int32[4]=0,0,1,3", ""},
    {"SegmentMax", "float[4,3]; int32[4]=0,0,1,3", ""},
    {"UnsortedSegmentSum", "float[4,3]; int32[4]=0,2,1,-1; int32[]=3", ""},
    {"UnsortedSegmentSum", "int32[4,5,3]; int64[4,5]; int32[]=3", ""},
    {"UnsortedSegmentProd", "float[4,3]; int32[4]=0,2,1,-1; int32[]=3", ""},
    {"UnsortedSegmentMin", "float[4,3]; int32[4]=0,2,1,-1; int32[]=3", ""},
    {"UnsortedSegmentMax", "float[4,3]; int32[4]=0,2,1,-1; int64[]=3", ""},
    {"SparseSegmentSum", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3", ""},
    {"SparseSegmentMean", "half[4,3]; int64[5]=0,3,1,1,2; int32[5]=0,0,1,3,3", ""},
    {"SparseSegmentSqrtN", "float[4,3]; int32[5]=0,3,1,1,2; int64[5]=0,0,1,3,3", ""},
    {"SparseSegmentSumWithNumSegments", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentMeanWithNumSegments", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentSqrtNWithNumSegments", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentSumGrad", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentMeanGrad", "half[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentSqrtNGrad", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentSumGradV2", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentMeanGradV2", "float[4,3]; int64[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""},
    {"SparseSegmentSqrtNGradV2", "float[4,3]; int32[5]=0,3,1,1,2; int32[5]=0,0,1,3,3; int32[]=6", ""})
/* clang-format on */
