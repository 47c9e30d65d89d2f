/* Samples of the operators of graph/ops/scan.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Cumsum", "float[2,3,4]; int32[]=1", ""},
    {"Cumprod", "int32[2,3,4]; int64[]=-1", "exclusive=true; reverse=true"},
    {"CumulativeLogsumexp", "double[2,3,4]; int32[]=0", "reverse=true"})
/* clang-format on */
