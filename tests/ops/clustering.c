/* Samples of the operators of graph/ops/clustering.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"KmeansPlusPlusInitialization", "float[5,3]; int64[]=2; int64[]=7; int64[]=3", ""},
    {"KMC2ChainInitialization", "float[6]; int64[]=7", ""},
    {"NearestNeighbors", "float[5,3]; float[4,3]; int64[]=2", ""})
/* clang-format on */
