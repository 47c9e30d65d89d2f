/* The operators of conditionals and loops. They have kernels without a function: the session runs them. */
#include "graph/state/state.h"

static const mr_kernel kernels[] = {
    {.op = "Switch"},   {.op = "RefSwitch"}, {.op = "Merge"},   {.op = "RefMerge"},      {.op = "Enter"},
    {.op = "RefEnter"}, {.op = "Exit"},      {.op = "RefExit"}, {.op = "NextIteration"}, {.op = "RefNextIteration"},
};
const mr_kernel_table mr_state_kernels_control = {kernels, sizeof kernels / sizeof kernels[0]};
