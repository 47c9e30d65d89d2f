/* Samples of the operators of graph/ops/matmul.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"MatMul", "float[2,3]; float[3,4]", ""},
    {"MatMul", "int32[3,2]; int32[4,3]", "transpose_a=true; transpose_b=true"},
    {"BatchMatMul", "float[5,2,3]; float[5,3,4]", ""},
    {"BatchMatMulV2", "float[5,2,3]; float[1,3,4]", ""},
    {"BatchMatMulV2", "complex64[2,3,2]; complex64[5,2,4,3]", "adj_x=true; adj_y=true"},
    {"BatchMatMulV3", "int8[2,3]; uint8[5,3,4]", "Tout=int32"},
    {"SparseMatMul", "bfloat16[3,2]; float[3,4]", "transpose_a=true; a_is_sparse=true"},
    {"BatchMatMulV2", "int32[2,3]; int32[5,3,4]", ""})
/* clang-format on */
