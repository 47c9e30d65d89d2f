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
    X(text) X(summary) X(image) X(iterator) X(function) X(queue) X(reader) X(dataset) \
    X(dataset_source) X(dataset_function) X(script) X(stack) X(tensor_array) X(tensor_list) \
    X(optional) X(variable_index) X(training_apply) X(sparse) X(sparse_sets) X(special) X(bitwise) \
    X(complex) X(scan) X(counting) X(segment) X(space) X(diagonal) X(partition) X(rearrange) \
    X(tensor_scatter) X(quantize) X(debug) X(random_stateless) X(candidate) X(image_resize) \
    X(image_box) X(image_color) X(audio) X(volume) X(morphology) X(fractional_pool) X(ctc) X(rnn) \
    X(linalg) X(decompose) X(fft) X(einsum) \
    X(regex) X(unicode) X(file) X(parsing) X(table) \
    X(barrier) X(accumulator) X(stage) X(temporary) X(dataset_window) \
    X(dataset_experimental) X(sparse_cross) X(image_sample) X(remap) X(sparse_map) X(critical) \
    X(session_tensor) X(record_input) X(quantized) X(dataset_resource) X(summary_writer) X(clustering)
/* clang-format on */

#define DECLARE(family) extern const mr_op_table mr_ops_##family;
FAMILIES(DECLARE)

void mr_builtin_register_operators(void)
{
#define ADDRESS(family) &mr_ops_##family,
    static const mr_op_table *const tables[] = {FAMILIES(ADDRESS)};
    mr_op_tables_register(tables, sizeof tables / sizeof tables[0]);
}
