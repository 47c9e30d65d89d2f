/* Samples of the operators of graph/ops/ctc.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"CTCLoss", "float[5,2,4]; int64[4,2]=0,0,0,1,1,0,1,1; int32[4]=0,1,2,2; int32[2]=4,5", ""},
    {"CTCGreedyDecoder", "float[5,2,4]; int32[2]=4,5", "merge_repeated=true"},
    {"CTCBeamSearchDecoder", "float[5,2,4]; int32[2]=4,5", "beam_width=6; top_paths=3"})
/* clang-format on */
