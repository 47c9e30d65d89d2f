/* Samples of the operators of graph/ops/bias.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"BiasAddV1", "float[2,4,3]; float[3]", ""},
    {"BiasAdd", "float[2,4,3]; float[3]", ""},
    {"BiasAdd", "float[2,3,4,5]; float[3]", "data_format=NCHW"},
    {"BiasAddGrad", "float[2,4,3]", ""},
    {"BiasAddGrad", "float[2,3,4,5]", "data_format=NCHW"})
/* clang-format on */
