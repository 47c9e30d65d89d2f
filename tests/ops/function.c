/* Samples of the operators of graph/ops/function.c. Their graphs have no functions, so calls fail. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"_Arg", "", "T=float; index=0", "has no value outside of its function"},
    {"_Retval", "float[2]", "index=0"},
    {"PartitionedCall", "float[2]+int32[]", "Tout=float; f=missing", "is not defined"},
    {"StatefulPartitionedCall", "float[2]+int32[]", "Tout=float; f=missing", "is not defined"},
    {"RemoteCall", "string[]=/cpu:0; float[2]", "Tout=float; f=missing", "is not defined"},
    {"If", "bool[]=1; float[2]", "Tout=float; then_branch=missing; else_branch=missing", "is not defined"},
    {"StatelessIf", "bool[]=1; float[2]", "Tout=float; then_branch=missing; else_branch=missing", "is not defined"},
    {"While", "float[2]+int32[]", "cond=missing; body=missing", "is not defined"},
    {"StatelessWhile", "float[2]+int32[]", "cond=missing; body=missing", "is not defined"},
    {"Case", "int32[]=0; float[2]", "Tout=float; branches=missing", "is not defined"},
    {"StatelessCase", "int32[]=0; float[2]", "Tout=float; branches=missing", "is not defined"},
    {"For", "int32[]=0; int32[]=3; int32[]=1; float[2]", "body=missing", "is not defined"},
    {"SymbolicGradient", "float[2]+float[2]", "Tout=float; f=missing", "is not defined"},
    {"FakeParam", "", "dtype=float; shape=[2]"},
    {"ToBool", "float[]=2", ""},
    {"_ListToArray", "float[2]+float[2]", "T=float; N=2"},
    {"_ArrayToList", "float[2]", "out_types=float"})
/* clang-format on */
