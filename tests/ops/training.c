/* Samples of the operators of graph/ops/training.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"ApplyAdam", "&float[3]; &float[3]; &float[3]; float[]; float[]; float[]; float[]; float[]; float[]; float[3]",
     ""},
    {"ApplyGradientDescent", "&float[3]; float[]; float[3]", ""},
    {"ApplyMomentum", "&float[3]; &float[3]; float[]; float[3]; float[]", ""},
    {"ResourceApplyAdam",
     "@float[3]; @float[3]; @float[3]; float[]; float[]; float[]; float[]; float[]; float[]; float[3]", ""},
    {"ResourceApplyGradientDescent", "@float[3]; float[]; float[3]", ""},
    {"ResourceApplyMomentum", "@float[3]; @float[3]; float[]; float[3]; float[]", ""})
/* clang-format on */
