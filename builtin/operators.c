/* The list of operator families: graph/ops/FAMILY.c has the table mr_ops_FAMILY. It is a file of its own because the
 * generator of <millrace/ops.h> is linked with the rows alone. */
#include "builtin/builtin.h"

#include "graph/ir/op.h"

/* clang-format off */
#define FAMILIES(X) \
    X(constant) X(identity) X(reshape) X(concat) X(slice) X(gather) \
    X(transpose) X(pad) X(binary) X(select) X(unary) X(reduce) \
    X(matmul) X(conv) X(bias) X(activation) X(pool) X(batch_norm) \
    X(softmax) X(random) X(variable) X(training) X(control) X(checkpoint) \
    X(text) X(summary) X(image) X(iterator)
/* clang-format on */

#define DECLARE(family) extern const mr_op_table mr_ops_##family;
FAMILIES(DECLARE)

void mr_builtin_register_operators(void)
{
#define ADDRESS(family) &mr_ops_##family,
    static const mr_op_table *const tables[] = {FAMILIES(ADDRESS)};
    mr_op_tables_register(tables, sizeof tables / sizeof tables[0]);
}
