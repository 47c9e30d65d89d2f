/* Samples of the operators of graph/ops/control.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Abort", "", "error_msg=stopped", "stopped"},
    {"RefSelect", "int32[]=1; &float[3]+&float[3]", "", "cannot be fetched"},
    {"Print", "float[2,3]; float[2]", "first_n=0"},
    {"RefIdentity", "&float[2,3]", ""},
    {"Assert", "bool[]=1; float[2]+string[]=a", ""},
    {"ControlTrigger", "", ""},
    {"Enter", "float[2]", "frame_name=loop", "cannot be fetched"},
    {"Exit", "float[2]", "", "is not inside a loop"},
    {"LoopCond", "bool[]=1", ""},
    {"Merge", "float[2]+float[2]", ""},
    {"NextIteration", "float[2]", "", "is not inside a loop"},
    {"NoOp", "", ""},
    {"RefEnter", "&float[2]", "frame_name=loop", "cannot be fetched"},
    {"RefExit", "&float[2]", "", "is not inside a loop"},
    {"RefMerge", "&float[2]+&float[2]", ""},
    {"RefNextIteration", "&float[2]", "", "is not inside a loop"},
    {"RefSwitch", "&float[2]; bool[]=1", "", "in a branch that did not run"},
    {"Switch", "float[2]; bool[]=1", "", "in a branch that did not run"})
/* clang-format on */
