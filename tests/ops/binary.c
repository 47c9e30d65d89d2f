/* Samples of the operators of graph/ops/binary.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Add", "int32[2,3]; int32[3]", ""},
    {"AddV2", "float[2,3]; float[3]", ""},
    {"Div", "int32[2,3]; int32[3]=1,2,3", ""},
    {"DivNoNan", "float[2,3]; float[3]", ""},
    {"Equal", "int32[2,3]; int32[3]", ""},
    {"Equal", "string[2,3]=a; string[3]=b", ""},
    {"FloorDiv", "int32[2,3]; int32[3]=1,2,-1", ""},
    {"FloorMod", "int64[2,3]; int64[3]=1,2,-1", ""},
    {"Greater", "float[2,3]; float[3]", ""},
    {"GreaterEqual", "int32[2,3]; int32[3]", ""},
    {"Less", "float[2,3]; float[3]", ""},
    {"LessEqual", "float[2,3]; float[3]", ""},
    {"LogicalAnd", "bool[2,3]; bool[3]", ""},
    {"LogicalOr", "bool[2,3]; bool[3]", ""},
    {"Maximum", "float[2,3]; float[3]", ""},
    {"Minimum", "int32[2,3]; int32[3]", ""},
    {"Mod", "int32[2,3]; int32[3]=1,2,-1", ""},
    {"Mul", "int32[2,3]; int32[3]", ""},
    {"NotEqual", "float[2,3]; float[3]", ""},
    {"MulNoNan", "float[2,3]; float[3]", ""},
    {"TruncateDiv", "int32[2,3]; int32[3]=1,2,3", ""},
    {"TruncateMod", "int64[2,3]; int64[3]=1,2,-1", ""},
    {"Atan2", "float[2,3]; float[3]", ""},
    {"Pow", "int32[2,3]; int32[3]", ""},
    {"RealDiv", "float[2,3]; float[3]", ""},
    {"SquaredDifference", "int32[2,3]; int32[3]", ""},
    {"Sub", "int64[2,3]; int64[3]", ""},
    {"AddN", "int32[2,3]+int32[2,3]+int32[2,3]", ""})
/* clang-format on */
