/* Samples of the operators of graph/ops/pad.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"MirrorPad", "float[3,4]; int32[2,2]=1,1,2,2", "mode=REFLECT"},
    {"Pad", "float[3,4]; int32[2,2]=1,1,2,2", ""},
    {"PadV2", "float[3,4]; int32[2,2]=1,1,2,2; float[]=7", ""})
/* clang-format on */
