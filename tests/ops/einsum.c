/* Samples of the operator of graph/ops/einsum.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Einsum", "float[2,3,4]+float[2,4,5]", "equation=bij,bjk->bik"},
    {"Einsum", "float[2,3,4]+float[1,4,5]", "equation=...ij,...jk->k...i"},
    {"Einsum", "int32[3,3]+int32[3]", "equation=ii,k->ikk"},
    {"Einsum", "half[2,3,4]", "equation=abc->ca"})
/* clang-format on */
