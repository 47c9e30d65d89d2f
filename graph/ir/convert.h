/* Between protobuf's structs and ours: tensors, shapes, attrs. What is read lives in the graph; what is written lives in
 * the arena that is given, or borrows from the graph. */
#ifndef MR_GRAPH_IR_CONVERT_H
#define MR_GRAPH_IR_CONVERT_H

#include "graph/ir/graph.h"
#include "proto/graph.pb-c.h"
#include "proto/proto.h"

/* More attrs than this has no node; they are kept sorted as they come. */
#define MR_ATTRS_MAX 4096

/* What reading may still take for tensors, so that a few bytes cannot ask for all memory: a Const's list of values
 * repeats its last one to the end of its shape. */
typedef struct mr_import_budget {
    size_t tensor_bytes;
} mr_import_budget;

/* errors  MR_INVALID_ARGUMENT: no such tensor; MR_UNIMPLEMENTED: a kind that mr_tensor or mr_shape cannot hold */
mr_status mr_shape_read(const Mr__TensorShapeProto *proto, mr_shape *shape, mr_error *error);
mr_status mr_tensor_read(const Mr__TensorProto *proto, mr_import_budget *budget, mr_tensor *tensor, mr_error *error);
/* An attr of the graph; one that no mr_attr can hold gives MR_UNIMPLEMENTED, and is kept as bytes by the caller. */
mr_status mr_attr_read(mr_graph *graph, const char *name, const Mr__AttrValue *proto, mr_import_budget *budget,
                       mr_attr *attr, mr_error *error);

mr_status mr_shape_write(mr_shape shape, mr_arena *arena, Mr__TensorShapeProto **proto, mr_error *error);
mr_status mr_tensor_write(const mr_tensor *tensor, mr_arena *arena, Mr__TensorProto **proto, mr_error *error);
mr_status mr_attr_write(const mr_attr *attr, mr_arena *arena, Mr__AttrValue **proto, mr_error *error);

/* The whole graph as a message in the arena (export.c). */
mr_status mr_graph_write(const mr_graph *graph, mr_arena *arena, Mr__GraphDef **graph_def, mr_error *error);
/* Adds the nodes of a message (import.c). size_bytes: of the bytes that it came from. */
mr_status mr_graph_read(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes, const char *prefix,
                        mr_error *error);

#endif
