/* Samples of the operators of graph/ops/text.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"StringJoin", "string[2]=a+string[]=b", ""})
/* clang-format on */
