/* Samples of the operators of graph/ops/volume.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Conv3D", "float[2,4,5,3,2]; float[2,3,2,2,4]", "strides=1,1,2,1,1; padding=SAME"},
    {"Conv3D", "double[2,6,5,3,2]; double[2,3,2,2,4]", "strides=1,1,1,1,1; padding=VALID; dilations=1,2,1,2,1"},
    {"Conv3DBackpropInput", "float[2,4,5,3,2]; float[2,3,2,2,4]; float[2,4,3,3,4]", "strides=1,1,2,1,1; padding=SAME"},
    {"Conv3DBackpropInputV2", "int32[5]=2,4,5,3,2; float[2,3,2,2,4]; float[2,4,3,3,4]",
     "strides=1,1,2,1,1; padding=SAME"},
    {"Conv3DBackpropFilter", "float[2,4,5,3,2]; float[2,3,2,2,4]; float[2,4,3,3,4]", "strides=1,1,2,1,1; padding=SAME"},
    {"Conv3DBackpropFilterV2", "float[2,4,5,3,2]; int32[5]=2,3,2,2,4; float[2,4,3,3,4]",
     "strides=1,1,2,1,1; padding=SAME"},
    {"AvgPool3D", "float[2,4,5,3,2]", "ksize=1,2,3,2,1; strides=1,2,1,1,1; padding=VALID"},
    {"AvgPool3DGrad", "int32[5]=2,4,5,3,2; float[2,2,3,2,2]", "ksize=1,2,3,2,1; strides=1,2,1,1,1; padding=VALID"},
    {"MaxPool3D", "float[2,4,5,3,2]", "ksize=1,2,3,2,1; strides=1,2,1,1,1; padding=VALID"},
    {"MaxPool3DGrad", "float[2,4,5,3,2]; float[2,2,3,2,2]; float[2,2,3,2,2]",
     "ksize=1,2,3,2,1; strides=1,2,1,1,1; padding=VALID"},
    {"MaxPool3DGradGrad", "float[2,4,5,3,2]; float[2,2,3,2,2]; float[2,4,5,3,2]",
     "ksize=1,2,3,2,1; strides=1,2,1,1,1; padding=VALID"})
/* clang-format on */
