/* Gradients of moving blocks: the movement back. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

#define REVERSED(name, op, ...)                                                                                        \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        call->grad_inputs[0] = NODE(op, call->grad_outputs[0] __VA_OPT__(, ) __VA_ARGS__);                             \
    }

REVERSED(space_to_batch_nd_gradient, "BatchToSpaceND", gradient_input(call, 1), gradient_input(call, 2))
REVERSED(batch_to_space_nd_gradient, "SpaceToBatchND", gradient_input(call, 1), gradient_input(call, 2))
REVERSED(space_to_batch_gradient, "BatchToSpace", gradient_input(call, 1))
REVERSED(batch_to_space_gradient, "SpaceToBatch", gradient_input(call, 1))
REVERSED(space_to_depth_gradient, "DepthToSpace")
REVERSED(depth_to_space_gradient, "SpaceToDepth")

static const mr_gradient gradients[] = {
    {"SpaceToBatchND", space_to_batch_nd_gradient}, {"BatchToSpaceND", batch_to_space_nd_gradient},
    {"SpaceToBatch", space_to_batch_gradient},      {"BatchToSpace", batch_to_space_gradient},
    {"SpaceToDepth", space_to_depth_gradient},      {"DepthToSpace", depth_to_space_gradient},
};

const mr_gradient_table mr_gradients_space = {gradients, sizeof gradients / sizeof gradients[0]};
