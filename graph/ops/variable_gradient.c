/* Gradients of variables: that of a resource variable's value is that of its handle. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

static const mr_gradient gradients[] = {
    {"ReadVariableOp", mr_gradient_forward},
};

const mr_gradient_table mr_gradients_variable = {gradients, sizeof gradients / sizeof gradients[0]};
