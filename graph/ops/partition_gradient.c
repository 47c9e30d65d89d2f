/* Gradients of partitions: the rows of the gradients go back to where they came from. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>
#include <stdlib.h>

/* The numbers of the rows are partitioned like the rows, and stitch the gradients together. */
static void dynamic_partition_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output data = gradient_input(call, 0), partitions = gradient_input(call, 1);
    int64_t count = mr_attr_int_or(&call->node->attrs, "num_partitions", 0);
    mr_output *items = calloc((size_t)count * 2 + 1, sizeof *items);
    if (items == nullptr) {
        mr_gradient_fail(call, "out of memory");
        return;
    }
    mr_output size = mr_size(g, partitions);
    mr_output rows = mr_range(g, mr_constant_int32(g, 0), size, mr_constant_int32(g, 1));
    rows = mr_reshape(g, rows, mr_gradient_shape(call, partitions));
    mr_output_range parts = mr_dynamic_partition(g, rows, partitions, .num_partitions = count);
    for (int32_t i = 0; i < count; i++) {
        items[i] = mr_output_at(parts, i);
        items[count + i] = mr_gradient_or_zeros(call, i);
    }
    mr_output stitched =
        mr_dynamic_stitch(g, MR_OUTPUTS_OF(items, (int32_t)count), MR_OUTPUTS_OF(items + count, (int32_t)count));
    call->grad_inputs[0] = mr_reshape(g, stitched, mr_gradient_shape(call, data));
    free(items);
}

static void dynamic_stitch_gradient(mr_gradient_call *call)
{
    int64_t count = mr_attr_int_or(&call->node->attrs, "N", 0);
    for (int32_t i = 0; i < count; i++)
        call->grad_inputs[count + i] = mr_gather_v2(call->graph, call->grad_outputs[0], gradient_input(call, i),
                                                    mr_constant_int32(call->graph, 0));
}

static const mr_gradient gradients[] = {
    {"DynamicPartition", dynamic_partition_gradient},
    {"DynamicStitch", dynamic_stitch_gradient},
    {"ParallelDynamicStitch", dynamic_stitch_gradient},
};

const mr_gradient_table mr_gradients_partition = {gradients, sizeof gradients / sizeof gradients[0]};
