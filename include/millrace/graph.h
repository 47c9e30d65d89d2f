/* Graphs: nodes, edges and names as in TensorFlow 1, built from C or read from a GraphDef.
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
 * A graph keeps its first error. A builder with an invalid input records the reason, with the node's scope and the
 * shapes, and returns an output that every later builder passes on. mr_session_new reports the error; mr_graph_status
 * returns it at any time. So the status need not be checked on every line of a model.
 *
 * Nodes are owned by their graph and live until mr_graph_free. One thread at a time for each graph. */
#ifndef MILLRACE_GRAPH_H
#define MILLRACE_GRAPH_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_graph mr_graph;
typedef struct mr_node mr_node;

/* One output of a node, passed by value; {0} means "no output". */
typedef struct mr_output {
    mr_node *node;
    int32_t index;
} mr_output;

/* A borrowed list of outputs: mr_add_n(g, MR_OUTPUTS(a, b, c)). */
typedef struct mr_outputs {
    const mr_output *items;
    int32_t count;
} mr_outputs;
#define MR_OUTPUTS(...) MR_LIST_(mr_outputs, mr_output, __VA_ARGS__)
/* The same from an array and its length: mr_add_n(g, MR_OUTPUTS_OF(towers, tower_count)). A literal in braces does not
 * compile there: the builders are macros, and the preprocessor would split the literal at its comma. */
#define MR_OUTPUTS_OF(outputs, output_count) MR_VALUE_(mr_outputs, (outputs), (output_count))

/* A borrowed list of integers: .strides = MR_INTS(1, 2, 2, 1). */
typedef struct mr_ints {
    const int64_t *items;
    int32_t count;
} mr_ints;
#define MR_INTS(...) MR_LIST_(mr_ints, int64_t, __VA_ARGS__)

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
#define MR_DTYPES(...) MR_LIST_(mr_dtypes, mr_dtype, __VA_ARGS__)
#define MR_SHAPES(...) MR_LIST_(mr_shapes, mr_shape, __VA_ARGS__)
#define MR_FLOATS(...) MR_LIST_(mr_floats, float, __VA_ARGS__)
#define MR_STRINGS(...) MR_LIST_(mr_strings, mr_string, __VA_ARGS__)

/* A borrowed list of names: MR_NAMES(MR_GLOBAL_VARIABLES, "mine"). */
typedef const char *mr_name;
typedef struct mr_names {
    const mr_name *items;
    int32_t count;
} mr_names;
#define MR_NAMES(...) MR_LIST_(mr_names, mr_name, __VA_ARGS__)

/* Consecutive outputs of one node, returned by operators whose number of outputs is an attribute. */
typedef struct mr_output_range {
    mr_node *node;
    int32_t first;
    int32_t count; /* 0 after an error of the graph */
} mr_output_range;
/* Returns output `index` of the range; after an error of the graph, an output that later builders pass on. */
MR_API mr_output mr_output_at(mr_output_range range, int32_t index);

/* A builder option: the shape is not specified. MR_SHAPE_UNKNOWN specifies an unknown shape. */
#define MR_SHAPE_UNSET MR_VALUE_(mr_shape, -2, {0})

MR_API mr_graph *mr_graph_new(void);        /* null if memory is exhausted */
MR_API void mr_graph_free(mr_graph *graph); /* null is allowed */

/* ---- The default graph of a thread ----
 *
 * For programs that would pass one graph through everything: mr_graph *g = mr_graph_default(). The functions of the
 * library take a graph in any case, and none uses the default graph by itself. Each thread has its own. */

/* Returns the graph that this thread pushed last, or else the thread's own, which the first call creates
 * (tf.get_default_graph). Null if memory is exhausted.
 * ownership  borrowed. The thread's own graph is freed by mr_graph_reset_default, or when the thread ends, and then its
 *            sessions must have been freed; the main thread's lasts until the process ends. Freeing it with
 *            mr_graph_free in its thread is allowed too; the next call creates another */
MR_API mr_graph *mr_graph_default(void);
/* Makes the graph this thread's default until it is popped (graph.as_default()). A graph may be pushed several times,
 * and in several threads, of which one at a time builds. At most 64 are pushed in a thread.
 * ownership  borrowed. A graph that is freed is popped in the thread that frees it; in others it must be popped before
 * errors     MR_RESOURCE_EXHAUSTED, recorded in the graph: too many, or no memory; it is not pushed then */
MR_API void mr_graph_push_default(mr_graph *graph);
/* Ends the last mr_graph_push_default of this thread, which must have been of this graph.
 * errors  MR_FAILED_PRECONDITION, recorded in the graph: it was of another one, or none is left; nothing is popped
 *         then */
MR_API void mr_graph_pop_default(mr_graph *graph);
/* Frees the thread's own graph; the next mr_graph_default creates another (tf.reset_default_graph).
 * errors  MR_FAILED_PRECONDITION: a graph is pushed in this thread; nothing is freed then */
MR_API mr_status mr_graph_reset_default(mr_error *error);

/* Returns the first recorded error, or MR_OK. */
MR_API mr_status mr_graph_status(const mr_graph *graph, mr_error *error);
/* Records an error of a builder that is composed of other builders (a layer). The first error is kept. Returns an
 * output that later builders pass on. */
MR_API MR_PRINTF_(3, 4) mr_output mr_graph_fail(mr_graph *graph, mr_status status, const char *format, ...);

/* ---- Names, scopes, devices, control edges ---- */

/* Names of nodes created from now on start with name + "/". A name that is in use gets a suffix "_1", "_2", … as in
 * TensorFlow (Graph.unique_name). Scopes nest; push and pop in pairs: to pop what was not pushed is an error of the
 * graph, as it is of all scopes below. mr_graph_scope returns the current one, "a/b" or "". */
MR_API void mr_graph_push_scope(mr_graph *graph, const char *name);
MR_API void mr_graph_pop_scope(mr_graph *graph);
MR_API const char *mr_graph_scope(const mr_graph *graph);
/* Returns the name that a node called name would get here, and marks it as used. Owned by the graph. */
MR_API const char *mr_graph_unique_name(mr_graph *graph, const char *name);

/* Nodes created from now on request this device: "/device:GPU:0", "/cpu:0", "" for none. */
MR_API void mr_graph_push_device(mr_graph *graph, const char *device);
MR_API void mr_graph_pop_device(mr_graph *graph);

/* The same with a function that chooses the device of each node when it has its inputs (tf.device(function)): "" for
 * none, null to leave it as it is. It cannot add nodes, and shapes are not known yet. The scopes inside of this one
 * have chosen already (mr_node_device); what the function returns replaces that, and the scopes around add what it
 * lacks.
 * context  borrowed until the scope is popped, with mr_graph_pop_device */
typedef const char *(*mr_device_function)(void *context, const mr_node *node);
MR_API void mr_graph_push_device_function(mr_graph *graph, mr_device_function function, void *context);

/* Nodes created from now on are placed on the device of this node, and stay beside it (tf.colocate_with): they get its
 * colocation group, "loc:@NAME". Device scopes around do not count. Null: no colocation, also not with the nodes of
 * scopes around (ignore_existing). */
MR_API void mr_graph_push_colocation(mr_graph *graph, const mr_node *node);
MR_API void mr_graph_pop_colocation(mr_graph *graph);

/* No node and no item of a collection can be added from now on: that is an error of the graph (tf.Graph.finalize). */
MR_API void mr_graph_finalize(mr_graph *graph);
MR_API bool mr_graph_is_finalized(const mr_graph *graph);

/* Nodes created from now on run after these. */
MR_API void mr_graph_push_control_dependencies(mr_graph *graph, mr_node *const *nodes, int32_t count);
MR_API void mr_graph_pop_control_dependencies(mr_graph *graph);

/* The graph-level seed, as tf.set_random_seed. Together with an operator's own seed it determines the pair (seed,
 * seed2) as TensorFlow's random_seed.get_seed does. Layers and initializers use it; the builders of ops.h take seed and
 * seed2 as they are: mr_graph_seed_pair. */
MR_API void mr_graph_set_seed(mr_graph *graph, int64_t seed);
/* Returns the pair for an operator created now.
 * op_seed  the operator's own seed; null: none */
MR_API void mr_graph_seed_pair(mr_graph *graph, const int64_t *op_seed, int64_t *seed, int64_t *seed2);

/* ---- Nodes ---- */

MR_API mr_node *mr_graph_find(const mr_graph *graph, const char *name); /* null if not found */
/* Finds "conv1/Relu:0", or "conv1/Relu" for output 0. If the graph has no such output, the result's node is null, and a
 * session that receives the result names the missing output in its error. */
MR_API mr_output mr_graph_find_output(const mr_graph *graph, const char *name);
MR_API int32_t mr_graph_node_count(const mr_graph *graph);
MR_API mr_node *mr_graph_node(const mr_graph *graph, int32_t index); /* in order of creation */
/* Writes the output's name as used for feeds and in files, "conv1/Relu:0", to text, truncated to size_bytes. Returns
 * text. */
#define MR_OUTPUT_NAME_SIZE 512
MR_API char *mr_output_name(mr_output output, char *text, size_t size_bytes);

MR_API mr_graph *mr_node_graph(const mr_node *node);
MR_API const char *mr_node_name(const mr_node *node);
MR_API const char *mr_node_op(const mr_node *node);
MR_API const char *mr_node_device(const mr_node *node);
MR_API int32_t mr_node_input_count(const mr_node *node);
MR_API mr_output mr_node_input(const mr_node *node, int32_t index);
MR_API int32_t mr_node_control_count(const mr_node *node);
MR_API mr_node *mr_node_control(const mr_node *node, int32_t index);
MR_API int32_t mr_node_output_count(const mr_node *node);
MR_API mr_dtype mr_output_dtype(mr_output output); /* without the reference flag */
MR_API bool mr_output_is_ref(mr_output output);
MR_API mr_shape mr_output_shape(mr_output output); /* as inferred */
/* Merges the known sizes into the output's shape (Tensor.set_shape). A contradiction is recorded as an error. */
MR_API void mr_output_set_shape(mr_output output, mr_shape shape);
MR_API void mr_node_add_control(mr_node *node, mr_node *before);

/* ---- Any operator by name. The typed builders of ops.h are based on these. ----
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
MR_API mr_node_builder mr_node_begin(mr_graph *graph, const char *op, const char *name); /* name null: op */
MR_API void mr_node_add_input(mr_node_builder *builder, mr_output input);
MR_API void mr_node_add_input_list(mr_node_builder *builder, mr_outputs inputs);
/* A null list or string, MR_DTYPE_INVALID or MR_SHAPE_UNSET leaves the attr at its default value. */
MR_API void mr_node_set_int(mr_node_builder *builder, const char *attr, int64_t value);
MR_API void mr_node_set_ints(mr_node_builder *builder, const char *attr, mr_ints values);
MR_API void mr_node_set_float(mr_node_builder *builder, const char *attr, float value);
MR_API void mr_node_set_bool(mr_node_builder *builder, const char *attr, bool value);
MR_API void mr_node_set_dtype(mr_node_builder *builder, const char *attr, mr_dtype value);
MR_API void mr_node_set_dtypes(mr_node_builder *builder, const char *attr, mr_dtypes values);
MR_API void mr_node_set_shape(mr_node_builder *builder, const char *attr, mr_shape value);
MR_API void mr_node_set_shapes(mr_node_builder *builder, const char *attr, mr_shapes values);
MR_API void mr_node_set_floats(mr_node_builder *builder, const char *attr, mr_floats values);
MR_API void mr_node_set_string(mr_node_builder *builder, const char *attr, const char *value);
MR_API void mr_node_set_strings(mr_node_builder *builder, const char *attr, mr_strings values);
MR_API void mr_node_set_tensor(mr_node_builder *builder, const char *attr,
                               const mr_tensor *value); /* adds a reference */
/* Functions of the graph's library, by name. */
MR_API void mr_node_set_function(mr_node_builder *builder, const char *attr, const char *function);
MR_API void mr_node_set_functions(mr_node_builder *builder, const char *attr, mr_strings functions);
MR_API void mr_node_set_device(mr_node_builder *builder, const char *device);
MR_API void mr_node_add_control_input(mr_node_builder *builder, mr_node *before);
/* Checks inputs and attrs against the operator's definition, infers type and number attrs, adds default values, infers
 * shapes. Returns output 0 (for an operator without outputs: the node with index 0). */
MR_API mr_output mr_node_finish(mr_node_builder *builder);
/* Returns the outputs of one output argument in the operator's signature: a single one ("y") or a list. */
MR_API mr_output_range mr_node_output_range(const mr_node *node, const char *argument);

/* ---- Constants and variables ---- */

MR_API mr_output mr_constant(mr_graph *graph, const mr_tensor *value, const char *name); /* name null: "Const" */
MR_API mr_output mr_constant_float(mr_graph *graph, float value);
MR_API mr_output mr_constant_int32(mr_graph *graph, int32_t value);
MR_API mr_output mr_constant_int64(mr_graph *graph, int64_t value);
MR_API mr_output mr_constant_bool(mr_graph *graph, bool value);
MR_API mr_output mr_constant_string(mr_graph *graph, const char *value);
MR_API mr_output mr_constant_floats(mr_graph *graph, mr_shape shape, const float *values, const char *name);
MR_API mr_output mr_constant_int32s(mr_graph *graph, mr_shape shape, const int32_t *values, const char *name);
/* An int32 vector from a list: mr_constant_ints(g, MR_INTS(-1, 784)). */
MR_API mr_output mr_constant_ints(mr_graph *graph, mr_ints values);

/* A variable as in TensorFlow 1: VariableV2, its initial value, "Assign" and "read". It is added to the collection
 * "variables" and, if trainable, to "trainable_variables". A resource variable is a VarHandleOp, "Assign" and
 * "Read/ReadVariableOp". */
typedef struct mr_variable {
    mr_output ref; /* the reference, or the handle (MR_RESOURCE): input of assign operators and optimizers; its name is
                        the checkpoint's key */
    mr_output value;         /* "read": input of computations */
    mr_node *initializer;    /* the initializer */
    mr_output initial_value; /* the initial value */
} mr_variable;
/* Projects the value of a variable, such as to a limited norm; an optimizer does so after each update (constraint of
 * tf.get_variable). Returns a value of the same dtype and shape. */
typedef mr_output (*mr_constraint)(mr_graph *graph, mr_output value);
typedef struct mr_variable_options {
    size_t size;                /* of this struct (api.h) */
    bool trainable;             /* add to "trainable_variables"; default true; no effect on a local variable */
    bool local;                 /* add to "local_variables" instead of "variables": not saved */
    bool use_resource;          /* a resource variable */
    bool any_shape;             /* the shape may change: validate_shape=False in TensorFlow */
    mr_names collections;       /* default: "variables"; no effect on a local variable is an error */
    const char *caching_device; /* "read" is on this device; default: the variable's */
    mr_constraint constraint;   /* default: none. Not of gradients that are sparse */
} mr_variable_options;
#define MR_VARIABLE_DEFAULTS .trainable = true
MR_API mr_variable mr_variable_new_(mr_graph *graph, const char *name, mr_output initial,
                                    const mr_variable_options *options);
#define mr_variable_new(graph, name, initial, ...)                                                                     \
    MR_WITH_SIZE_(mr_variable_new_((graph), (name), (initial), &options_), mr_variable_options, MR_VARIABLE_DEFAULTS,  \
                  __VA_ARGS__)
/* The variables of a collection, in the order they were added. */
#define MR_GLOBAL_VARIABLES "variables"
#define MR_TRAINABLE_VARIABLES "trainable_variables"
#define MR_LOCAL_VARIABLES "local_variables"
#define MR_MODEL_VARIABLES "model_variables"
#define MR_MOVING_AVERAGE_VARIABLES "moving_average_variables"
#define MR_METRIC_VARIABLES "metric_variables"
MR_API int32_t mr_graph_variable_count(const mr_graph *graph, const char *collection);
MR_API mr_variable mr_graph_variable(const mr_graph *graph, const char *collection, int32_t index);
/* Adds the variable to a collection: to one of those above as a variable, to any other by its name. */
MR_API void mr_graph_add_variable_to_collection(mr_graph *graph, const char *collection, mr_variable variable);
/* Creates a node that runs every initializer of the collection (tf.global_variables_initializer). */
MR_API mr_node *mr_initialize_variables(mr_graph *graph, const char *collection, const char *name);
/* Creates a NoOp that runs after these nodes (tf.group). */
MR_API mr_node *mr_group(mr_graph *graph, mr_node *const *nodes, int32_t count, const char *name);

/* ---- Collections: named lists of outputs (tf.add_to_collection) ---- */
MR_API void mr_graph_add_to_collection(mr_graph *graph, const char *collection, mr_output item);
MR_API int32_t mr_graph_collection_count(const mr_graph *graph, const char *collection);
MR_API mr_output mr_graph_collection_item(const mr_graph *graph, const char *collection, int32_t index);
/* The names of all collections, of outputs and of variables, in the order in which they were created
 * (tf.get_all_collection_keys). Some have no items that a program can read: those of imported MetaGraphDefs that are
 * neither outputs nor variables, and "savers". The contexts of conditionals and loops are in no collection unless they
 * were imported. A name is owned by the graph; null: index is not valid. */
MR_API int32_t mr_graph_collection_key_count(const mr_graph *graph);
MR_API const char *mr_graph_collection_key(const mr_graph *graph, int32_t index);
/* Removes all items, and the name, of outputs or of variables (tf.Graph.clear_collection). The nodes and variables
 * remain. No effect if there is no such collection.
 * errors  the graph is finalized; recorded in the graph */
MR_API void mr_graph_clear_collection(mr_graph *graph, const char *collection);
#define MR_LOSSES "losses"
#define MR_REGULARIZATION_LOSSES "regularization_losses"
#define MR_UPDATE_OPS "update_ops"
#define MR_SUMMARIES "summaries"

/* Adds a CheckNumerics for every half, float and double output in the graph, and returns a node that runs them all in
 * order: the first NaN or infinity fails the run, and the error names the output (tf.add_check_numerics_ops). Every
 * placeholder must be fed in such a run.
 * errors  such an output is in a conditional or a loop; recorded in the graph */
MR_API mr_node *mr_add_check_numerics_ops(mr_graph *graph);

/* ---- Gradients ---- */

/* Adds d(sum of ys)/dx for each x, as tf.gradients.
 * grad_ys    null: ones
 * gradients  gradients[i] is {0} if no y depends on xs[i]
 * names      under "gradients/"
 * errors     an operator between xs and ys without a gradient is recorded as an error that names it; so is a loop that
 *            was imported from a GraphDef */
MR_API void mr_gradients(mr_graph *graph, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys, mr_output *gradients);
/* Whether the gradient is sparse, as that of a variable that is only gathered from, outside of conditionals and loops;
 * then its rows, TensorFlow's IndexedSlices. Optimizers and clipping use the rows. The gradient itself is the dense
 * sum, which only runs if it is read.
 * values   receives [n, …], a row for each index
 * indices  receives [n]; an index may be there several times */
MR_API bool mr_gradient_rows(const mr_graph *graph, mr_output gradient, mr_output *values, mr_output *indices);

/* Builds the gradient of a node: d/d(input i) in grad_inputs[i], which are {0} at first and may stay so.
 * grad_outputs  d/d(output i); {0} if nothing depends on it */
typedef void (*mr_custom_gradient_function)(void *context, mr_graph *graph, mr_node *node,
                                            const mr_output *grad_outputs, mr_output *grad_inputs);
/* A gradient with this name (tf.RegisterGradient): of operators of that name, if they have none, and of overrides.
 * context  borrowed; must outlive the last call of mr_gradients */
MR_API void mr_graph_register_gradient(mr_graph *graph, const char *name, mr_custom_gradient_function function,
                                       void *context);
/* Nodes of this operator created from now on get the gradient of that name: a registered one, or that of another
 * operator (Graph.gradient_override_map). Push and pop in pairs. */
MR_API void mr_graph_push_gradient_override(mr_graph *graph, const char *op, const char *gradient);
MR_API void mr_graph_pop_gradient_override(mr_graph *graph);

/* ---- GraphDef and MetaGraphDef ---- */

/* Serializes the graph to a GraphDef, an MR_STRING scalar owned by the caller. Unknown attrs, functions and versions
 * that were imported are exported again. */
MR_API mr_status mr_graph_export(const mr_graph *graph, mr_tensor *graph_def, mr_error *error);
/* Adds the nodes of a serialized GraphDef, which may be hostile.
 * prefix  added to the names; null or "": none
 * errors  MR_INVALID_ARGUMENT with the node and the reason; the graph is then unchanged */
MR_API mr_status mr_graph_import(mr_graph *graph, const void *bytes, size_t size_bytes, const char *prefix,
                                 mr_error *error);
/* Replaces an input of the imported nodes. */
typedef struct mr_import_mapping {
    const char *name; /* in the file: "x:0", "x" for output 0, "^x" for a control input (of `output`'s node) */
    mr_output output; /* of the graph */
} mr_import_mapping;
typedef struct mr_graph_import_options {
    size_t size;        /* of this struct (api.h) */
    const char *prefix; /* added to the names; null or "": none */
    const mr_import_mapping *input_map;
    int32_t input_map_count;
    mr_names return_elements; /* names in the file: outputs "y:0", or nodes "y" */
    mr_output *returned;      /* receives one output for each; of a node, its output 0 */
} mr_graph_import_options;
/* tf.import_graph_def.
 * errors  those of mr_graph_import; MR_INVALID_ARGUMENT: a name that is mapped is no input in the file, or one that is
 *         to be returned does not exist there. The graph is then unchanged */
MR_API mr_status mr_graph_import_with(mr_graph *graph, const void *bytes, size_t size_bytes,
                                      const mr_graph_import_options *options, mr_error *error);
/* MetaGraphDef: the GraphDef with the shapes of outputs in attrs "_output_shapes", collections (variables as
 * VariableDef) and a SaverDef if there is one (tf.train.export_meta_graph). Conditionals and loops are in the
 * collections cond_context and while_context: without them, loops of an imported graph run, but have no gradients. */
MR_API mr_status mr_graph_export_meta(const mr_graph *graph, mr_tensor *meta_graph_def, mr_error *error);
MR_API mr_status mr_graph_import_meta(mr_graph *graph, const void *bytes, size_t size_bytes, mr_error *error);
typedef struct mr_meta_export_options {
    size_t size;          /* of this struct (api.h) */
    bool clear_devices;   /* nodes request no device, so that they run on other machines */
    mr_names collections; /* those that are written; default: all */
    /* Without attrs that have their default value, for readers that do not know attrs which are newer than they are. */
    bool strip_default_attrs;
    /* Only the nodes in this scope, with names and collections relative to it. An input from outside, "x:1" or "^x",
     * has the name "$unbound_inputs_x:1" or "^$unbound_inputs_x", and must be mapped when the file is imported.
     * Default: all nodes */
    const char *export_scope;
    /* Without the nodes of savers, unless the graph's SaverDef names them, and without the collection "savers". */
    bool clear_extraneous_savers;
} mr_meta_export_options;
/* The same with the options of tf.train.export_meta_graph; null: the defaults. */
MR_API mr_status mr_graph_export_meta_with(const mr_graph *graph, const mr_meta_export_options *options,
                                           mr_tensor *meta_graph_def, mr_error *error);
typedef struct mr_meta_import_options {
    size_t size; /* of this struct (api.h) */
    /* Added, with a slash, to the names of nodes and variables, and to what collections and the SaverDef name; made
     * unique in the graph. A collection's items of unknown types are kept as they are. Null or "": none. Variables of
     * the file's checkpoints keep their keys: run the node PREFIX/save/restore_all. */
    const char *prefix;
    bool clear_devices; /* nodes request no device */
    /* As in mr_graph_import_options. Of a file with export_scope, all that "unbound_inputs" names. */
    const mr_import_mapping *input_map;
    int32_t input_map_count;
} mr_meta_import_options;
/* The same with the options of tf.train.import_meta_graph (import_scope is the prefix); null: the defaults. */
MR_API mr_status mr_graph_import_meta_with(mr_graph *graph, const void *bytes, size_t size_bytes,
                                           const mr_meta_import_options *options, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
