/* What a profile has: the nodes of a graph with their executions, from which views are made.
 *
 * Nodes are never removed; those of the graph come first, in its order. Everything is in the profile's arena. */
#ifndef MR_GRAPH_TRAIN_PROFILER_NODE_H
#define MR_GRAPH_TRAIN_PROFILER_NODE_H

#include "base/arena.h"
#include "graph/ir/graph.h"
#include <millrace/profiler.h>

/* A name has at most this number of scopes, so that the tree of scopes has a limited depth. */
constexpr int MR_PROFILE_SCOPES_MAX = 256;
#define MR_PROFILE_ROOT "_TFProfRoot"
#define MR_PROFILE_TRAINABLE "_trainable_variables"

/* The calls of a node in one step. float_ops and parameters are 0 here. */
typedef struct mr_profile_execution {
    int64_t step;
    mr_profile_figures figures;
    int64_t start_micros, end_micros;  /* of the first and the last call; 0: none was timed */
    struct mr_profile_execution *next; /* of a smaller step */
} mr_profile_execution;

typedef struct mr_profile_type {
    const char *name;
    struct mr_profile_type *next;
} mr_profile_type;

/* How the float operations of a node are counted (profiler_flops.c). */
typedef enum mr_flops_formula {
    MR_FLOPS_NONE = 0,
    MR_FLOPS_SET, /* by mr_profile_set_float_ops */
    MR_FLOPS_INPUT,
    MR_FLOPS_OUTPUT,
    MR_FLOPS_L2_LOSS,
    MR_FLOPS_REDUCTION,
    MR_FLOPS_POOL,
    MR_FLOPS_AVG_POOL_GRAD,
    MR_FLOPS_MAX_POOL_GRAD,
    MR_FLOPS_CONVOLUTION,
    MR_FLOPS_DEPTHWISE,
    MR_FLOPS_CONV_BACKPROP_INPUT,
    MR_FLOPS_CONV_BACKPROP_FILTER,
    MR_FLOPS_ADD_N,
    MR_FLOPS_MAT_MUL,
} mr_flops_formula;
typedef struct mr_flops_rule {
    mr_flops_formula formula;
    int64_t factor;       /* operations for each element */
    int64_t kernel_area;  /* the product of ksize */
    int64_t stride_area;  /* the product of the strides of height and width */
    int32_t reduced_axis; /* of a product: the axis of input 0 that is summed over, from the end */
} mr_flops_rule;

typedef struct mr_profile_input {
    int32_t node;  /* index in profile->nodes */
    int32_t index; /* output; -1: control input */
} mr_profile_input;

typedef struct mr_profile_node {
    const char *name, *op;
    mr_profile_input *inputs; /* control inputs last, by name */
    int32_t input_count;
    mr_shape *outputs; /* null if output_count is 0 */
    int32_t output_count;
    mr_shape shape; /* the attr; unknown: there is none */
    bool uses_nhwc; /* the attr data_format */
    mr_flops_rule flops;
    int64_t float_ops;      /* of one call */
    const char *device;     /* on which it ran, in lower case; null: it has not run */
    mr_profile_type *types; /* besides the operator and the device */
    mr_profile_execution *executions;
    const char **traces; /* the calls that created it, the outermost first: "model.py:12:layer" */
    int32_t trace_count;
} mr_profile_node;

struct mr_profile {
    mr_arena arena;
    mr_profile_node **nodes;
    int32_t node_count, node_capacity;
    int32_t graph_node_count;
    mr_name_table names; /* -> index in nodes */
    int64_t *steps;      /* ascending */
    int32_t step_count, step_capacity;
};

/* a + b and a · b, at most INT64_MAX. Neither may be negative. */
static inline int64_t mr_profile_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline int64_t mr_profile_multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Adds every figure. */
void mr_profile_figures_add(mr_profile_figures *total, const mr_profile_figures *figures);
/* The figures of a node in a step, or with step null the average over its steps; definition_count is 1. */
mr_profile_figures mr_profile_node_figures(const mr_profile_node *node, const int64_t *step);
/* Elements of the attr "shape". */
int64_t mr_profile_node_parameters(const mr_profile_node *node);
bool mr_profile_has_step(const mr_profile *profile, int64_t step);
/* Adds an empty node. The name is borrowed.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_profile_add_node(mr_profile *profile, const char *name, const char *op, mr_profile_node **node,
                              mr_error *error);
/* errors  MR_INVALID_ARGUMENT: too many scopes */
mr_status mr_profile_check_name(const char *name, mr_error *error);

#endif
