/* Samples of the operators of graph/ops/select.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"ClipByValue", "float[2,3]; float[]=0; float[]=1", ""},
    {"Select", "bool[2]; float[2,3]; float[2,3]", ""},
    {"SelectV2", "bool[3]; float[2,3]; float[]", ""},
    {"SelectV2", "bool[2,1]; string[2,3]=a; string[3]=b", ""})
/* clang-format on */
