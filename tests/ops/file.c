/* Samples of the operators of graph/ops/file.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"ReadFile", "string[]=$DIR/model.index", ""},
    {"WriteFile", "string[]=$DIR/written; string[]=text", ""},
    {"MatchingFiles", "string[2]=$DIR/model*", ""})
/* clang-format on */
