/* Samples of the operators of graph/ops/constant.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"OnesLike", "float[2,3]", ""},
    {"ZerosLike", "float[2,3]", ""},
    {"ZerosLike", "string[2]=a", ""},
    {"Fill", "int32[2]=2,3; float[]=1", ""},
    {"Fill", "int64[2]=2,3; string[]=a", ""},
    {"LinSpace", "float[]=1; float[]=9; int32[]=4", ""},
    {"Range", "int32[]=1; int32[]=9; int32[]=2", ""},
    {"Range", "float[]=1; float[]=9; float[]=2", ""},
    {"Const", "", "dtype=float; value=float[2,3]"},
    {"Placeholder", "", "dtype=float", "You must feed"},
    {"PlaceholderV2", "", "dtype=float; shape=[2,3]", "You must feed"},
    {"PlaceholderWithDefault", "float[2,3]", "shape=[2,3]"})
/* clang-format on */
