/* Samples of the operators of graph/ops/variable.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Assign", "&float[2,3]; float[2,3]", ""},
    {"AssignAdd", "&int32[2,3]; int32[2,3]", ""},
    {"AssignAddVariableOp", "@float[2,3]; float[2,3]", ""},
    {"AssignSub", "&float[2,3]; float[2,3]", ""},
    {"AssignSubVariableOp", "@int64[2,3]; int64[2,3]", ""},
    {"AssignVariableOp", "@float[2,3]; float[2,3]", ""},
    {"DestroyResourceOp", "@float[2,3]", ""},
    {"IsVariableInitialized", "&float[2,3]", ""},
    {"ReadVariableOp", "@float[2,3]", "dtype=float"},
    {"ScatterAdd", "&float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ScatterSub", "&int32[4,3]; int64[2]=0,3; int32[2,3]", ""},
    {"ResourceScatterUpdate", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterAdd", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterSub", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ScatterMul", "&float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterMul", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ScatterDiv", "&float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterDiv", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ScatterMin", "&float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterMin", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ScatterMax", "&float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"ResourceScatterMax", "@float[4,3]; int32[2]=0,3; float[2,3]", ""},
    {"VariableShape", "@float[3]", ""},
    {"ScatterUpdate", "&float[4,3]; int32[2]=0,3; float[]", ""},
    {"ScatterUpdate", "&string[4,3]=old; int32[2]=0,3; string[2,3]=new", ""},
    {"VarHandleOp", "", "dtype=float; shape=[2,3]"},
    {"VarIsInitializedOp", "@float[2,3]", ""},
    {"Variable", "", "dtype=float; shape=[2,3]", "uninitialized"},
    {"VariableV2", "", "dtype=float; shape=[2,3]", "uninitialized"})
/* clang-format on */
