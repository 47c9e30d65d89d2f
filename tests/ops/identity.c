/* Samples of the operators of graph/ops/identity.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"CheckNumerics", "float[2,3]", "message=checked"},
    {"Identity", "float[2,3]", ""},
    {"IdentityN", "float[2,3]+int32[4]", ""},
    {"PreventGradient", "float[2,3]", ""},
    {"Snapshot", "float[2,3]", ""},
    {"StopGradient", "float[2,3]", ""})
/* clang-format on */
