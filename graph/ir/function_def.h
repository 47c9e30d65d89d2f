/* The library of functions as messages. Internal to function.c, function_body.c and the graph's lifetime. */
#ifndef MR_GRAPH_IR_FUNCTION_DEF_H
#define MR_GRAPH_IR_FUNCTION_DEF_H

#include "graph/ir/convert.h"
#include "graph/ir/function.h"

typedef struct mr_library_function {
    const Mr__FunctionDef *def; /* in the arena of the library's graph */
    mr_op_def call;             /* of nodes that call it by its name */
} mr_library_function;

struct mr_function_library {
    int32_t function_count;
    mr_library_function **functions;
    mr_name_table names; /* name -> function */
    int32_t gradient_count;
    const char **gradient_functions;
    mr_name_table gradients; /* function -> gradient function */
};

/* Null if the library does not have the function. */
const mr_library_function *mr_function_library_find(const mr_function_library *library, const char *function);

/* Sorts the entries of map fields by key, here and in the messages that it contains, so that equal ones have equal
 * bytes. */
void mr_function_sort_maps(ProtobufCMessage *message);

#endif
