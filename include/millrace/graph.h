/* Graphs: nodes, edges, names, as TensorFlow 1 has them, built from C or read from a GraphDef.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
 * mr_output w = mr_constant_floats(g, MR_SHAPE(2, 1), (float[]){0.5f, -1.0f}, "w");
 * mr_output y = mr_mat_mul(g, x, w, .name = "y");
 * printf("%s computes %s\n", mr_node_name(y.node), mr_dtype_name(mr_output_dtype(y)));
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_graph_free(g);
 * ```
 *
 * A graph keeps its first error: a builder given a bad input records why, with the node's scope and the shapes, and
 * returns an output that every later builder passes on. Creating a session reports it; mr_graph_status does at any time.
 * So nobody checks a status on every line of a model.
 *
 * Nodes belong to their graph and live until mr_graph_free. One thread at a time for each graph. */
#ifndef MILLRACE_GRAPH_H
#define MILLRACE_GRAPH_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_graph mr_graph;
typedef struct mr_node mr_node;

/* One output of a node. A value; {0} means "no output". */
typedef struct mr_output {
    mr_node *node;
    int32_t index;
} mr_output;

/* A borrowed list of outputs: mr_add_n(g, MR_OUTPUTS(a, b, c)). */
typedef struct mr_outputs {
    const mr_output *items;
    int32_t count;
} mr_outputs;
#define MR_OUTPUTS(...)                                                                                                \
    ((mr_outputs){(mr_output[]){__VA_ARGS__}, (int32_t)(sizeof((mr_output[]){__VA_ARGS__}) / sizeof(mr_output))})
/* The same from an array and its length: mr_add_n(g, MR_OUTPUTS_OF(towers, tower_count)). A literal in braces does not
 * compile there: the builders are macros, and its comma would end an argument. */
#define MR_OUTPUTS_OF(outputs, output_count) ((mr_outputs){(outputs), (output_count)})

/* A borrowed list of integers: .strides = MR_INTS(1, 2, 2, 1). */
typedef struct mr_ints {
    const int64_t *items;
    int32_t count;
} mr_ints;
#define MR_INTS(...) ((mr_ints){(const int64_t[]){__VA_ARGS__}, (int32_t)MR_COUNT_ARGS_(__VA_ARGS__)})

/* Borrowed lists of other attributes: MR_DTYPES(MR_FLOAT, MR_INT64), MR_SHAPES(MR_SCALAR, MR_SHAPE(-1, 3)). */
typedef struct mr_dtypes {
    const mr_dtype *items;
    int32_t count;
} mr_dtypes;
typedef struct mr_shapes {
    const mr_shape *items;
    int32_t count;
} mr_shapes;
typedef struct mr_floats {
    const float *items;
    int32_t count;
} mr_floats;
typedef struct mr_strings {
    const mr_string *items;
    int32_t count;
} mr_strings;
#define MR_LIST_(list, type, ...)                                                                                      \
    ((list){(const type[]){__VA_ARGS__}, (int32_t)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type))})
#define MR_DTYPES(...) MR_LIST_(mr_dtypes, mr_dtype, __VA_ARGS__)
#define MR_SHAPES(...) MR_LIST_(mr_shapes, mr_shape, __VA_ARGS__)
#define MR_FLOATS(...) MR_LIST_(mr_floats, float, __VA_ARGS__)
#define MR_STRINGS(...) MR_LIST_(mr_strings, mr_string, __VA_ARGS__)

/* Consecutive outputs of one node, as the operators return them whose number of outputs an attribute gives. */
typedef struct mr_output_range {
    mr_node *node;
    int32_t first;
    int32_t count; /* 0 after an error of the graph */
} mr_output_range;
/* Output index of the range; after an error of the graph an output that later builders pass on. */
mr_output mr_output_at(mr_output_range range, int32_t index);

/* For builders whose options have defaults other than zero: the macro writes the defaults before the caller's options, which
 * replace them. This is intended, so the compiler's warning about it is off inside `call`. */
#ifndef __cplusplus
#if defined(__clang__)
#define MR_WITH_DEFAULTS_(call)                                                                                        \
    __extension__({                                                                                                    \
        _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"")               \
            _Pragma("clang diagnostic ignored \"-Wshadow\"") __auto_type built_ = call;                                \
        _Pragma("clang diagnostic pop") built_;                                                                        \
    })
#else
#define MR_WITH_DEFAULTS_(call)                                                                                        \
    __extension__({                                                                                                    \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")                           \
            _Pragma("GCC diagnostic ignored \"-Woverride-init-side-effects\"")                                         \
                _Pragma("GCC diagnostic ignored \"-Wshadow\"") __auto_type built_ = call;                              \
        _Pragma("GCC diagnostic pop") built_;                                                                          \
    })
#endif
#endif

/* A shape that is not given, in the options of a builder; MR_SHAPE_UNKNOWN is one that is given as unknown. */
#define MR_SHAPE_UNSET ((mr_shape){.rank = -2})

mr_graph *mr_graph_new(void);        /* null when memory is exhausted */
void mr_graph_free(mr_graph *graph); /* null is allowed */

/* The first error recorded, or MR_OK. */
mr_status mr_graph_status(const mr_graph *graph, mr_error *error);
/* Records an error of a builder that is made of other builders (a layer); the first one stays. Returns {0}'s kin: an
 * output that later builders pass on. */
[[gnu::format(printf, 3, 4)]] mr_output mr_graph_fail(mr_graph *graph, mr_status status, const char *format, ...);

/* ---- Names, scopes, devices, control edges ---- */

/* Names of nodes made from now on begin with name + "/". A name that is taken gets "_1", "_2", … as in TensorFlow
 * (Graph.unique_name). Scopes nest; push and pop in pairs. mr_graph_scope is the current one, "a/b" or "". */
void mr_graph_push_scope(mr_graph *graph, const char *name);
void mr_graph_pop_scope(mr_graph *graph);
const char *mr_graph_scope(const mr_graph *graph);
/* The name that a node called name would get here, and mark it as taken. Owned by the graph. */
const char *mr_graph_unique_name(mr_graph *graph, const char *name);

/* Nodes made from now on ask for this device: "/device:GPU:0", "/cpu:0", "" for none. */
void mr_graph_push_device(mr_graph *graph, const char *device);
void mr_graph_pop_device(mr_graph *graph);

/* Nodes made from now on run after these. */
void mr_graph_push_control(mr_graph *graph, mr_node *const *nodes, int32_t count);
void mr_graph_pop_control(mr_graph *graph);

/* The seed of tf.set_random_seed; with an operator's own seed it makes the pair (seed, seed2) as TensorFlow's
 * random_seed.get_seed does. */
void mr_graph_set_seed(mr_graph *graph, int64_t seed);
/* The pair for an operator made now. op_seed null: the operator has none of its own. */
void mr_graph_seed_pair(mr_graph *graph, const int64_t *op_seed, int64_t *seed, int64_t *seed2);

/* ---- Nodes ---- */

mr_node *mr_graph_find(const mr_graph *graph, const char *name); /* null when there is none */
/* "conv1/Relu:0", or "conv1/Relu" for output 0. The result's node is null when the graph has no such output; a session that
 * is given such a result names it in its error. */
mr_output mr_graph_find_output(const mr_graph *graph, const char *name);
int32_t mr_graph_node_count(const mr_graph *graph);
mr_node *mr_graph_node(const mr_graph *graph, int32_t index); /* in the order they were made */
/* "conv1/Relu:0", as feeds and files name it; written to text, cut at size_bytes. Returns text. */
#define MR_OUTPUT_NAME_SIZE 512
char *mr_output_name(mr_output output, char *text, size_t size_bytes);

mr_graph *mr_node_graph(const mr_node *node);
const char *mr_node_name(const mr_node *node);
const char *mr_node_op(const mr_node *node);
const char *mr_node_device(const mr_node *node);
int32_t mr_node_input_count(const mr_node *node);
mr_output mr_node_input(const mr_node *node, int32_t index);
int32_t mr_node_control_count(const mr_node *node);
mr_node *mr_node_control(const mr_node *node, int32_t index);
int32_t mr_node_output_count(const mr_node *node);
mr_dtype mr_output_dtype(mr_output output); /* without the reference mark */
bool mr_output_is_ref(mr_output output);
mr_shape mr_output_shape(mr_output output); /* as inferred */
/* Narrows what is known of the shape (Tensor.set_shape); one that contradicts is recorded as an error. */
void mr_output_set_shape(mr_output output, mr_shape shape);
void mr_node_add_control(mr_node *node, mr_node *before);

/* ---- Any operator by name. The typed builders of ops.h are made of these. ----
 *
 * mr_node_builder b = mr_node_begin(g, "Conv2D", "conv1");
 * mr_node_add_input(&b, image);
 * mr_node_add_input(&b, filter);
 * mr_node_set_ints(&b, "strides", MR_INTS(1, 1, 1, 1));
 * mr_node_set_string(&b, "padding", "SAME");
 * mr_output h = mr_node_finish(&b); */
typedef struct mr_node_builder {
    mr_graph *graph;
    mr_node *node;
} mr_node_builder;
mr_node_builder mr_node_begin(mr_graph *graph, const char *op, const char *name); /* name null: the operator's */
void mr_node_add_input(mr_node_builder *builder, mr_output input);
void mr_node_add_input_list(mr_node_builder *builder, mr_outputs inputs);
/* What is not given leaves the attr at its default: a null list or string, MR_DTYPE_INVALID, MR_SHAPE_UNSET. */
void mr_node_set_int(mr_node_builder *builder, const char *attr, int64_t value);
void mr_node_set_ints(mr_node_builder *builder, const char *attr, mr_ints values);
void mr_node_set_float(mr_node_builder *builder, const char *attr, float value);
void mr_node_set_bool(mr_node_builder *builder, const char *attr, bool value);
void mr_node_set_type(mr_node_builder *builder, const char *attr, mr_dtype value);
void mr_node_set_types(mr_node_builder *builder, const char *attr, mr_dtypes values);
void mr_node_set_shape(mr_node_builder *builder, const char *attr, mr_shape value);
void mr_node_set_shapes(mr_node_builder *builder, const char *attr, mr_shapes values);
void mr_node_set_floats(mr_node_builder *builder, const char *attr, mr_floats values);
void mr_node_set_string(mr_node_builder *builder, const char *attr, const char *value);
void mr_node_set_strings(mr_node_builder *builder, const char *attr, mr_strings values);
void mr_node_set_tensor(mr_node_builder *builder, const char *attr, const mr_tensor *value); /* takes its own share */
void mr_node_set_function(mr_node_builder *builder, const char *attr, const char *function);
void mr_node_set_device(mr_node_builder *builder, const char *device);
void mr_node_add_control_input(mr_node_builder *builder, mr_node *before);
/* Checks inputs and attrs against the operator, deduces type and number attrs, fills defaults, infers shapes.
 * Returns output 0 (for an operator without outputs: the node with index 0). */
mr_output mr_node_finish(mr_node_builder *builder);
/* The outputs that one name of the operator's signature stands for: "y", or a list's. */
mr_output_range mr_node_output_range(const mr_node *node, const char *argument);

/* ---- Constants and variables ---- */

mr_output mr_constant(mr_graph *graph, const mr_tensor *value, const char *name); /* name null: "Const" */
mr_output mr_constant_float(mr_graph *graph, float value);
mr_output mr_constant_int32(mr_graph *graph, int32_t value);
mr_output mr_constant_int64(mr_graph *graph, int64_t value);
mr_output mr_constant_bool(mr_graph *graph, bool value);
mr_output mr_constant_string(mr_graph *graph, const char *value);
mr_output mr_constant_floats(mr_graph *graph, mr_shape shape, const float *values, const char *name);
mr_output mr_constant_int32s(mr_graph *graph, mr_shape shape, const int32_t *values, const char *name);
/* A vector of int32 from a list: mr_constant_ints(g, MR_INTS(-1, 784)). */
mr_output mr_constant_ints(mr_graph *graph, mr_ints values);

/* A variable as TensorFlow 1 makes one: VariableV2, its initial value, "Assign" and "read"; in the collections
 * "variables" and, when trainable, "trainable_variables". */
typedef struct mr_variable {
    mr_output ref;     /* the reference: what assigns and optimizers take, and the checkpoint's key */
    mr_output value;   /* "read": what computations take */
    mr_node *assign;   /* the initializer */
    mr_output initial; /* the initial value */
} mr_variable;
typedef struct mr_variable_options {
    bool not_trainable;
    bool local; /* in "local_variables" instead of "variables": not saved */
} mr_variable_options;
mr_variable mr_variable_new_(mr_graph *graph, const char *name, mr_output initial, const mr_variable_options *options);
#define mr_variable_new(graph, name, initial, ...)                                                                     \
    mr_variable_new_((graph), (name), (initial), &(mr_variable_options){__VA_ARGS__})
/* The variables of a collection in the order they were added. */
#define MR_GLOBAL_VARIABLES "variables"
#define MR_TRAINABLE_VARIABLES "trainable_variables"
#define MR_LOCAL_VARIABLES "local_variables"
int32_t mr_graph_variable_count(const mr_graph *graph, const char *collection);
mr_variable mr_graph_variable(const mr_graph *graph, const char *collection, int32_t index);
/* One node that runs every initializer of the collection (tf.global_variables_initializer). */
mr_node *mr_initialize_variables(mr_graph *graph, const char *collection, const char *name);
/* A NoOp that runs after these. */
mr_node *mr_group(mr_graph *graph, mr_node *const *nodes, int32_t count, const char *name);

/* ---- Collections: named lists of nodes' outputs (tf.add_to_collection) ---- */
void mr_graph_add_to_collection(mr_graph *graph, const char *collection, mr_output item);
int32_t mr_graph_collection_count(const mr_graph *graph, const char *collection);
mr_output mr_graph_collection_item(const mr_graph *graph, const char *collection, int32_t index);
#define MR_LOSSES "losses"
#define MR_REGULARIZATION_LOSSES "regularization_losses"
#define MR_UPDATE_OPS "update_ops"
#define MR_SUMMARIES "summaries"

/* ---- Gradients ---- */

/* d(sum of ys)/dx for each x, as tf.gradients. grad_ys may be null (ones). gradients[i] is {0} where y does not depend
 * on x. Names are under "gradients/". An operator on the way without a gradient is recorded as an error that names it. */
void mr_gradients(mr_graph *graph, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys, mr_output *gradients);

/* ---- GraphDef and MetaGraphDef ---- */

/* Serialised GraphDef, owned by the caller through the tensor (an MR_STRING scalar). Unknown attrs, functions and
 * versions that were imported come out again. */
mr_status mr_graph_export(const mr_graph *graph, mr_tensor *graph_def, mr_error *error);
/* Adds the nodes of a serialised GraphDef, names under prefix (null or "": as they are). Bytes may be hostile.
 * errors   MR_INVALID_ARGUMENT naming the node and what is wrong with it; the graph is then as it was */
mr_status mr_graph_import(mr_graph *graph, const void *bytes, size_t size_bytes, const char *prefix, mr_error *error);
/* MetaGraphDef: the GraphDef, collections (variables as VariableDef) and a SaverDef when there is one. */
mr_status mr_graph_export_meta(const mr_graph *graph, mr_tensor *meta_graph_def, mr_error *error);
mr_status mr_graph_import_meta(mr_graph *graph, const void *bytes, size_t size_bytes, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
