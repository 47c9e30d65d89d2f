/* Graphs for deployment: variables become constants, and nodes that only training uses are removed
 * (tf.graph_util and TensorFlow's graph transform tool).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
 * mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(2, 1), (float[]){1, 2}, "initial"));
 * (void)mr_mat_mul(g, x, w.value, .name = "y");
 * mr_session *session = nullptr;
 * mr_tensor frozen = {0}, small = {0};
 * if (mr_session_new(g, nullptr, &session, &error) != MR_OK) return 1;
 * if (mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error) != MR_OK) return 1;
 * if (mr_graph_freeze(g, session, MR_NAMES("y"), nullptr, &frozen, &error) != MR_OK) return 1;
 * mr_graph *deployed = mr_graph_new();
 * mr_string bytes = mr_tensor_strings(&frozen)[0];
 * if (mr_graph_import(deployed, bytes.data, bytes.size_bytes, nullptr, &error) != MR_OK) return 1;
 * mr_status status = mr_graph_transform(deployed, MR_NAMES("x"), MR_NAMES("y"),
 *                                       MR_TRANSFORMS({.kind = MR_TRANSFORM_FOLD_CONSTANTS},
 *                                                     {.kind = MR_TRANSFORM_QUANTIZE_WEIGHTS, .minimum_size = 2}),
 *                                       &small, &error);
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_tensor_deinit(&frozen);
 * mr_tensor_deinit(&small);
 * mr_session_free(session);
 * mr_graph_free(deployed);
 * mr_graph_free(g);
 * ```
 *
 * Every function leaves the graph unchanged and returns a serialized GraphDef, an MR_STRING scalar owned by the caller,
 * as mr_graph_export does: for a file, or for mr_graph_import. Functions and versions are those of the graph. Nodes are
 * named "y"; "y:0" is allowed too. A name that does not exist is MR_NOT_FOUND, with the nearest names that exist.
 * graph_def is empty after an error. */
#ifndef MILLRACE_TRANSFORM_H
#define MILLRACE_TRANSFORM_H

#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The nodes that the outputs depend on, control inputs included, in their order (tf.graph_util.extract_sub_graph).
 * outputs  at least one */
MR_API mr_status mr_graph_extract(const mr_graph *graph, mr_names outputs, mr_tensor *graph_def, mr_error *error);

typedef struct mr_freeze_options {
    size_t size;        /* of this struct (api.h) */
    mr_names whitelist; /* names of variables: only these become constants; default: all */
    mr_names blacklist; /* names of variables that stay variables */
} mr_freeze_options;
/* mr_graph_extract, with variables as constants that have their values in the session
 * (tf.graph_util.convert_variables_to_constants). Reads of a resource variable become Identity, and its ResourceGather
 * becomes GatherV2 with a constant "NAME/axis".
 * options  null: the defaults
 * errors   MR_FAILED_PRECONDITION: a variable that is not initialized, or a node that writes to one that would be a
 *          constant, or uses its handle otherwise */
MR_API mr_status mr_graph_freeze(const mr_graph *graph, mr_session *session, mr_names outputs,
                                 const mr_freeze_options *options, mr_tensor *graph_def, mr_error *error);

/* Removes CheckNumerics and Identity, whose readers then read its input (tf.graph_util.remove_training_nodes). An
 * Identity with control inputs stays, and so does one that is a control input.
 * protected_nodes  names of nodes that stay, such as the outputs; may be empty */
MR_API mr_status mr_graph_remove_training_nodes(const mr_graph *graph, mr_names protected_nodes, mr_tensor *graph_def,
                                                mr_error *error);

/* Named as in TensorFlow's tool: "strip_unused_nodes", … */
typedef enum mr_transform_kind {
    /* Keeps what the outputs need. The inputs become placeholders of their dtype and shape. */
    MR_TRANSFORM_STRIP_UNUSED_NODES = 1,
    /* Replaces nodes that depend on constants only by constants with their names; further outputs of a node become
     * "NAME__cf__1", …. Operators with state and control flow are kept. */
    MR_TRANSFORM_FOLD_CONSTANTS,
    /* Multiplies the weights of a Conv2D, DepthwiseConv2dNative or MatMul by the constant, one value for each output
     * channel, of the Mul that follows. */
    MR_TRANSFORM_FOLD_BATCH_NORMS,
    /* Folds FusedBatchNorm (V2, V3; not in training) and BatchNormWithGlobalNormalization into the weights of the
     * Conv2D or DepthwiseConv2dNative before them, also over a BiasAdd. A BiasAdd with the name of the normalization
     * remains. */
    MR_TRANSFORM_FOLD_OLD_BATCH_NORMS,
    /* Stores float constants in eight bits, from the smallest to the largest of their elements and 0, followed by a
     * Dequantize with the constant's name. Values differ by up to half a step, 1/255 of that range. */
    MR_TRANSFORM_QUANTIZE_WEIGHTS,
    /* Removes nodes of the given operators: their readers read input 0 instead. Outputs, nodes with control inputs, and
     * nodes whose further outputs are read, stay. */
    MR_TRANSFORM_REMOVE_NODES,
} mr_transform_kind;
typedef struct mr_transform {
    mr_transform_kind kind;
    mr_names ops;             /* of REMOVE_NODES: required, names of operators */
    int64_t minimum_size;     /* of QUANTIZE_WEIGHTS: smaller constants stay, in elements; 0: 1024 */
    int64_t maximum_constant; /* of FOLD_CONSTANTS: larger results are not stored, in bytes; 0: 10 MiB */
    bool ignore_errors;       /* of FOLD_CONSTANTS: nodes that fail are kept; default: the error is returned */
} mr_transform;
/* A borrowed list of transforms. */
typedef struct mr_transforms {
    const mr_transform *items;
    int32_t count;
} mr_transforms;
#define MR_TRANSFORMS(...) MR_LIST_(mr_transforms, mr_transform, __VA_ARGS__)

/* Applies transforms in their order. The outputs have the values that they had before, up to rounding, or within the
 * step of the quantization.
 * inputs   nodes that are fed; never folded. May be empty
 * outputs  nodes that are fetched; at least one. They keep their names
 * errors   MR_INVALID_ARGUMENT: an option without effect for its transform, or out of range */
MR_API mr_status mr_graph_transform(const mr_graph *graph, mr_names inputs, mr_names outputs, mr_transforms transforms,
                                    mr_tensor *graph_def, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
