/* The parser that turns rows into operator definitions. Internal to graph/ir. */
#ifndef MR_GRAPH_IR_SIGNATURE_H
#define MR_GRAPH_IR_SIGNATURE_H

#include "graph/ir/op.h"

/* Parses a row into *def, whose parts are allocated from the arena. A row that cannot be parsed is a programming error:
 * the message quotes the position, and the registry asserts that it does not happen. */
mr_status mr_op_def_parse(const mr_op *op, mr_arena *arena, mr_op_def *def, mr_error *error);
/* Releases the default values that are not allocated from the arena. */
void mr_op_def_deinit(mr_op_def *def);
/* The attr with that name, or null. */
const mr_op_attr *mr_op_def_attr(const mr_op_def *def, const char *name);
/* True if the attr's value follows from an argument, so that builders omit it. */
bool mr_op_attr_is_deduced(const mr_op_def *def, const char *attr);

#endif
