/* Samples of the operators of graph/ops/file.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"ImmutableConst", "", "dtype=float; shape=[3]; memory_region_name=none", "none"},
    {"ReadFile", "string[]=$DIR/model.index", ""},
    {"WriteFile", "string[]=$DIR/written; string[]=text", ""},
    {"MatchingFiles", "string[2]=$DIR/model*", ""})
/* clang-format on */
