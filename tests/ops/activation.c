/* Samples of the operators of graph/ops/activation.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Elu", "float[2,3]", ""},
    {"LeakyRelu", "float[2,3]", ""},
    {"Relu", "float[2,3]", ""},
    {"Relu6", "float[2,3]", ""},
    {"Selu", "float[2,3]", ""},
    {"Softplus", "float[2,3]", ""},
    {"Softsign", "float[2,3]", ""},
    {"EluGrad", "float[2,3]; float[2,3]", ""},
    {"LeakyReluGrad", "float[2,3]; float[2,3]", ""},
    {"Relu6Grad", "float[2,3]; float[2,3]", ""},
    {"ReluGrad", "float[2,3]; float[2,3]", ""},
    {"SeluGrad", "float[2,3]; float[2,3]", ""},
    {"SoftplusGrad", "float[2,3]; float[2,3]", ""},
    {"SoftsignGrad", "float[2,3]; float[2,3]", ""})
/* clang-format on */
