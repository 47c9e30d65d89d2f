/* Samples of the operators of graph/ops/optional.c, and of variants in other operators. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"OptionalFromValue", "float[2,3]+int32[4]", ""},
    {"OptionalNone", "", ""},
    {"OptionalHasValue", "?float[2,3]", ""},
    {"OptionalGetValue", "?float[2,3]", "output_types=float; output_shapes=[2,3]"},
    {"AddN", "^float[2,3]+^float[2,3]", ""},
    {"AddN", "?float[2,3]+?float[2,3]", ""},
    {"ZerosLike", "^float[2,3]", ""},
    {"ZerosLike", "?float[2,3]", ""})
/* clang-format on */
