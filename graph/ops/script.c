/* Calls of functions in the language of a binding. */
#include "graph/ir/op.h"

static const mr_op script_ops[] = {
    {.name = "PyFunc",
     .signature = "input: Tin -> output: Tout",
     .attrs = "token: string; Tin: list(type) >= 0; Tout: list(type) >= 0",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls the function of the program that token identifies, in each run."},
    {.name = "PyFuncStateless",
     .signature = "input: Tin -> output: Tout",
     .attrs = "token: string; Tin: list(type) >= 0; Tout: list(type) >= 0",
     .shape = mr_shape_unknown,
     .doc = "Calls the function of the program that token identifies, whose result depends only on its inputs."},
};
const mr_op_table mr_ops_script = {script_ops, sizeof script_ops / sizeof script_ops[0]};
