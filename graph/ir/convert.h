/* Conversion between protobuf's structs and those of the graph: tensors, shapes and attrs. Values that are read are
 * stored in the graph; messages that are written are stored in the given arena or borrow from the graph. */
#ifndef MR_GRAPH_IR_CONVERT_H
#define MR_GRAPH_IR_CONVERT_H

#include "graph/ir/graph.h"
#include "proto/graph.pb-c.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/proto.h"

/* Maximum number of attrs of a node. They are kept sorted by insertion. */
#define MR_ATTRS_MAX 4096

/* What an import may still allocate for tensors. It keeps a few bytes of input from requesting all memory: the value
 * list of a Const repeats its last value to the end of its shape. */
typedef struct mr_import_budget {
    size_t tensor_bytes;
} mr_import_budget;

/* errors  MR_INVALID_ARGUMENT for an invalid tensor or shape; MR_UNIMPLEMENTED for a kind that mr_tensor or mr_shape
 * cannot represent */
mr_status mr_shape_read(const Mr__TensorShapeProto *proto, mr_shape *shape, mr_error *error);
mr_status mr_tensor_read(const Mr__TensorProto *proto, mr_import_budget *budget, mr_tensor *tensor, mr_error *error);
/* Reads an attr into the graph. Returns MR_UNIMPLEMENTED for one that mr_attr cannot represent; the caller keeps its
 * bytes. */
mr_status mr_attr_read(mr_graph *graph, const char *name, const Mr__AttrValue *proto, mr_import_budget *budget,
                       mr_attr *attr, mr_error *error);

mr_status mr_shape_write(mr_shape shape, mr_arena *arena, Mr__TensorShapeProto **proto, mr_error *error);
mr_status mr_tensor_write(const mr_tensor *tensor, mr_arena *arena, Mr__TensorProto **proto, mr_error *error);
mr_status mr_attr_write(const mr_attr *attr, mr_arena *arena, Mr__AttrValue **proto, mr_error *error);

/* Writes the complete graph as a message in the arena (export.c). */
mr_status mr_graph_write(const mr_graph *graph, mr_arena *arena, Mr__GraphDef **graph_def, mr_error *error);
/* Adds the shapes of outputs to such a message, as the attr "_output_shapes" (Graph.as_graph_def(add_shapes=True)). */
mr_status mr_graph_write_shapes(const mr_graph *graph, Mr__GraphDef *graph_def, mr_arena *arena, mr_error *error);
/* Writes the definition of an operator, without descriptions (op_def_write.c). */
mr_status mr_op_def_write(const mr_op_def *def, mr_arena *arena, Mr__OpDef **result, mr_error *error);
/* Writes the definitions of the operators that the graph and the functions of its library use, sorted by name; without
 * those that are not known here. */
mr_status mr_op_list_write(const Mr__GraphDef *graph_def, mr_arena *arena, Mr__OpList **result, mr_error *error);
/* Writes a MetaGraphDef with these shapes as a message in the arena (meta.c). */
mr_status mr_graph_write_meta(const mr_graph *graph, mr_arena *arena, Mr__MetaGraphDef **meta, mr_error *error);
/* The same with options, which are checked, changed by them. */
mr_status mr_graph_write_meta_with(const mr_graph *graph, const mr_meta_export_options *options, mr_arena *arena,
                                   Mr__MetaGraphDef **meta, mr_error *error);
/* Adds the nodes of a message (import.c). size_bytes: size of the serialized message. */
mr_status mr_graph_read(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes, const char *prefix,
                        mr_error *error);
mr_status mr_graph_read_with(mr_graph *graph, const Mr__GraphDef *graph_def, size_t size_bytes,
                             const mr_graph_import_options *options, mr_error *error);
/* As mr_graph_import without a prefix, but inputs may also be nodes that the graph already has. */
mr_status mr_graph_extend(mr_graph *graph, const void *bytes, size_t size_bytes, mr_error *error);

#endif
