/* Samples of the operators of graph/ops/checkpoint.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"MergeV2Checkpoints", "string[1]=$DIR/model; string[]=$DIR/merged", ""},
    {"RestoreV2", "string[]=$DIR/model; string[1]=w; string[1]=", "dtypes=float"},
    {"SaveV2", "string[]=$DIR/saved; string[1]=w; string[1]=; float[2,3]", ""},
    {"ShardedFilename", "string[]=model; int32[]=1; int32[]=4", ""})
/* clang-format on */
