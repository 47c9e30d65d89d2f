/* Rows to definitions: the parser of signatures and attrs, and the list of tables. Internal to graph/ir and graph/ops. */
#ifndef MR_GRAPH_IR_SIGNATURE_H
#define MR_GRAPH_IR_SIGNATURE_H

#include "graph/ir/op.h"

/* All families (graph/ops/ops.c). */
extern const mr_op_table *const mr_op_tables[];
extern const size_t mr_op_table_count;

/* Parses a row into *def, whose parts live in the arena. A row that cannot be parsed is our own mistake: the error says
 * where it begins, and the registry asserts that there is none. */
mr_status mr_op_def_parse(const mr_op *op, mr_arena *arena, mr_op_def *def, mr_error *error);
/* Gives back what defaults hold beside the arena. */
void mr_op_def_deinit(mr_op_def *def);
/* The attr of that name, or null. */
const mr_op_attr *mr_op_def_attr(const mr_op_def *def, const char *name);
/* True when an argument gives the attr's value, so that builders leave it out. */
bool mr_op_attr_is_deduced(const mr_op_def *def, const char *attr);

#endif
