/* Gradients of operators that forward their input for control flow. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

static const mr_gradient gradients[] = {
    {"Print", mr_gradient_forward},
    {"RefIdentity", mr_gradient_forward},
};

const mr_gradient_table mr_gradients_control = {gradients, sizeof gradients / sizeof gradients[0]};
