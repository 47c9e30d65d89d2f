/* Samples of the operators of graph/ops/rnn.c. */
#include "tests/ops/sample.h"

#define CELL "float[2,3]; float[2,4]; float[2,4]; float[7,16]; float[4]; float[4]; float[4]; float[16]"
#define BLOCK "int64[]=4; float[5,2,3]; float[2,4]; float[2,4]; float[7,16]; float[4]; float[4]; float[4]; float[16]"
#define STEPS                                                                                                          \
    "; float[5,2,4]; float[5,2,4]; float[5,2,4]; float[5,2,4]; float[5,2,4]; float[5,2,4]; float[5,2,4]; "             \
    "float[5,2,4]; float[5,2,4]"

/* clang-format off */
SAMPLES(
    {"LSTMBlockCell", CELL, "use_peephole=true"},
    {"LSTMBlockCellGrad",
     CELL "; float[2,4]; float[2,4]; float[2,4]; float[2,4]; float[2,4]; float[2,4]; float[2,4]; float[2,4]",
     "use_peephole=true"},
    {"BlockLSTM", BLOCK, "use_peephole=true"},
    {"BlockLSTMV2", BLOCK, ""},
    {"BlockLSTMGrad", BLOCK STEPS, "use_peephole=true"},
    {"BlockLSTMGradV2", BLOCK STEPS, "use_peephole=false"},
    {"GRUBlockCell", "float[2,3]; float[2,4]; float[7,8]; float[7,4]; float[8]; float[4]", ""},
    {"GRUBlockCellGrad", "float[2,3]; float[2,4]; float[7,8]; float[7,4]; float[8]; float[4]; "
                         "float[2,4]; float[2,4]; float[2,4]; float[2,4]", ""})
/* clang-format on */
