/* Functions: the FunctionDefLibrary of a graph, and the bodies of its functions as graphs of their own.
 *
 * A graph and the bodies made from it share one library, which belongs to the graph and only grows. A node whose
 * operator is the name of a function is a call of it: mr_function_library_op returns the definition that such nodes
 * have. */
#ifndef MR_GRAPH_IR_FUNCTION_H
#define MR_GRAPH_IR_FUNCTION_H

#include "graph/ir/graph.h"

typedef struct Mr__FunctionDefLibrary Mr__FunctionDefLibrary;

typedef struct mr_function_library mr_function_library;

/* Adds the functions and gradients of a message to the graph's library.
 * errors  MR_INVALID_ARGUMENT: a function is already there with another definition, or has a bad signature */
mr_status mr_graph_add_functions(mr_graph *graph, const Mr__FunctionDefLibrary *library, mr_error *error);
/* The operator definition of calls of the function, or null if the library does not have it. */
const mr_op_def *mr_function_library_op(const mr_function_library *library, const char *function);
/* The function that computes the gradient of a function, as the library says; null: none. */
const char *mr_function_library_gradient(const mr_function_library *library, const char *function);
/* Sets an attr that is a function with values for its attrs, which are copied; null: none. */
void mr_node_set_instance(mr_node_builder *builder, const char *attr, const char *function, const mr_attrs *attrs);

/* A function's body for given attrs. */
typedef struct mr_function_body {
    mr_graph *graph; /* owned */
    int32_t input_count, output_count, target_count;
    mr_output *inputs; /* outputs of its _Arg nodes */
    mr_output *outputs;
    mr_node **targets; /* nodes that run for their side effects */
} mr_function_body;

/* Makes the body of a function. attrs: the values of the function's attrs; others are ignored.
 * errors  MR_NOT_FOUND: no such function; MR_INVALID_ARGUMENT: a bad definition; the error names the function */
mr_status mr_function_body_init(mr_function_body *body, const mr_graph *graph, const char *function,
                                const mr_attrs *attrs, mr_error *error);
void mr_function_body_deinit(mr_function_body *body);

#endif
