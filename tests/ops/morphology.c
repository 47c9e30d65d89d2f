/* Samples of the operators of graph/ops/morphology.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Dilation2D", "float[2,5,4,3]; float[3,2,3]", "strides=1,2,1,1; rates=1,1,2,1; padding=SAME"},
    {"Dilation2DBackpropInput", "float[2,5,4,3]; float[3,2,3]; float[2,3,4,3]",
     "strides=1,2,1,1; rates=1,1,2,1; padding=SAME"},
    {"Dilation2DBackpropFilter", "int16[2,5,4,3]; int16[3,2,3]; int16[2,3,4,3]",
     "strides=1,2,1,1; rates=1,1,2,1; padding=SAME"})
/* clang-format on */
