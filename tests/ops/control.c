/* Samples of the operators of graph/ops/control.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Print", "float[2,3]; float[2]", ""},
    {"RefIdentity", "&float[2,3]", ""},
    {"Assert", "bool[]=1; float[2]+string[]=a", ""},
    {"ControlTrigger", "", ""},
    {"Enter", "float[2]", "frame_name=loop"},
    {"Exit", "float[2]", ""},
    {"LoopCond", "bool[]=1", ""},
    {"Merge", "float[2]+float[2]", ""},
    {"NextIteration", "float[2]", ""},
    {"NoOp", "", ""},
    {"RefEnter", "&float[2]", "frame_name=loop"},
    {"RefExit", "&float[2]", ""},
    {"RefMerge", "&float[2]+&float[2]", ""},
    {"RefNextIteration", "&float[2]", ""},
    {"RefSwitch", "&float[2]; bool[]=1", ""},
    {"Switch", "float[2]; bool[]=1", ""})
/* clang-format on */
