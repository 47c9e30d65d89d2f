/* Samples of the operators of graph/ops/checkpoint.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"GenerateVocabRemapping", "string[]=$DIR/vocabulary; string[]=$DIR/vocabulary",
     "new_vocab_offset=1; num_new_vocab=2"},
    {"LoadAndRemapMatrix", "string[]=$DIR/model; string[]=m; int64[3]=2,-1,0; int64[2]=1,0; float[2]",
     "num_rows=3; num_cols=2; max_rows_in_memory=2"},
    {"MergeV2Checkpoints", "string[1]=$DIR/model; string[]=$DIR/merged", "delete_old_dirs=false"},
    {"RestoreV2", "string[]=$DIR/model; string[1]=w; string[1]=", "dtypes=float"},
    {"Restore", "string[]=$DIR/model; string[]=w", "dt=float"},
    {"RestoreSlice", "string[]=$DIR/model; string[]=w; string[]=", "dt=float"},
    {"Save", "string[]=$DIR/saved-v1; string[1]=w; float[2,3]", ""},
    {"SaveSlices", "string[]=$DIR/saved-v1; string[1]=w; string[1]=4 3 0,2:-; float[2,3]", ""},
    {"SaveV2", "string[]=$DIR/saved; string[1]=w; string[1]=; float[2,3]", ""},
    {"ShardedFilename", "string[]=model; int32[]=1; int32[]=4", ""},
    {"ShardedFilespec", "string[]=model; int32[]=4", ""})
/* clang-format on */
