/* Samples of the operators of graph/ops/stack.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"StackV2", "int32[]=3", "elem_type=float"},
    {"StackPushV2", "~float[2,3]; float[2]", ""},
    {"StackPopV2", "~float[2,3]", "elem_type=float"},
    {"StackCloseV2", "~float[2,3]", ""},
    {"Stack", "", "elem_type=float", "cannot be fetched"},
    {"StackPush", "&string[2]; float[2]", "", "is not a stack"},
    {"StackPop", "&string[2]", "elem_type=float", "is not a stack"},
    {"StackClose", "&string[2]", "", "is not a stack"})
/* clang-format on */
