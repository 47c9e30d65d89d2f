/* Variables by name in variable scopes, as tf.compat.v1.get_variable and variable_scope, and their initial values.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output inputs[2], towers[2];
 * for (int32_t i = 0; i < 2; i++) {
 *     inputs[i] = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 784));
 *     mr_graph_push_variable_scope(g, "tower", .reuse = MR_AUTO_REUSE);
 *     mr_variable w = mr_get_variable(g, "w", MR_SHAPE(784, 10), .initializer = {.kind = MR_INIT_HE_NORMAL},
 *                                     .regularizer = {.l2 = 1e-4f});
 *     towers[i] = mr_mat_mul(g, inputs[i], w.value);
 *     mr_graph_pop_variable_scope(g);
 * }
 * mr_variable count = mr_get_variable(g, "count", MR_SCALAR, .dtype = MR_INT32, .trainable = false,
 *                                     .use_resource = true);
 * mr_output next = mr_variable_assign_add(g, count, mr_constant_int32(g, 1));
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s and %s use tower/w; %s\n", mr_node_name(towers[0].node), mr_node_name(towers[1].node),
 *        mr_node_name(next.node));
 * mr_graph_free(g);
 * ```
 *
 * Options. Every options struct in this header follows the same rules:
 *   required   An option whose comment starts with "required" has no default value. Omitting it is an error.
 *   optional   Any other option has the default value that its comment states; it is TensorFlow's.
 *   zero       Zero is a value: .beta1 = 0 is a beta1 of 0. Where a comment says "0: …", zero is not a valid value of
 *              the option and has the stated meaning.
 *   limits     A value outside the limits in the comment is an error that names the layer and the option.
 *   no effect  An option that has no effect, given the others, is an error: beta1 of gradient descent, scale of
 *              MR_INIT_ZEROS.
 * Errors are MR_INVALID_ARGUMENT. Builders record them in the graph; mr_training_new returns them.
 *
 * The macros insert the default values before the caller's options. Code that calls the function behind a macro starts
 * with the same defaults: mr_dense_layer layer = {.size = sizeof layer, MR_DENSE_LAYER_DEFAULTS, .units = 10};
 *
 * These rules hold for layers.h, losses.h, optimizers.h and train.h too. */
#ifndef MILLRACE_VARIABLES_H
#define MILLRACE_VARIABLES_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value of a float option that was omitted. */
#define MR_UNSET (__builtin_nanf(""))
/* Value of a count or a number of steps that was omitted. */
#define MR_COUNT_UNSET INT32_MIN
/* Value of a layer's option `training` that was omitted. An explicit false differs: it allows the options that only
 * training uses, so that one function can build both the training and the evaluation graph. */
#define MR_TRAINING_UNSET (-1)
/* Value of an option that is true, false, or as in the enclosing variable scope. */
#define MR_INHERIT (-1)
/* An operator's seed of 0. A seed option of 0, the default, derives the seed from the graph's. */
#define MR_SEED_ZERO INT64_MIN

/* ---- Initializers ---- */

typedef enum mr_initializer_kind {
    MR_INIT_DEFAULT =
        0, /* the variable scope's; if it has none: Glorot uniform, or zeros for dtypes without fractions */
    MR_INIT_ZEROS,
    MR_INIT_ONES,
    MR_INIT_CONSTANT,         /* scale, or the elements of values */
    MR_INIT_UNIFORM,          /* [-scale, scale), or [min, max) */
    MR_INIT_NORMAL,           /* mean, standard deviation scale */
    MR_INIT_TRUNCATED_NORMAL, /* mean, standard deviation scale before the truncation */
    MR_INIT_GLOROT_UNIFORM,
    MR_INIT_HE_NORMAL, /* truncated, as tf.initializers.he_normal */
    MR_INIT_GLOROT_NORMAL,
    MR_INIT_HE_UNIFORM,
    MR_INIT_LECUN_NORMAL,
    MR_INIT_LECUN_UNIFORM,
    MR_INIT_VARIANCE_SCALING,     /* scale, mode, distribution */
    MR_INIT_UNIFORM_UNIT_SCALING, /* scale: the factor */
    MR_INIT_ORTHOGONAL,           /* scale: the gain; at least 2 dimensions */
    MR_INIT_IDENTITY,             /* scale: the gain; a matrix */
    MR_INIT_DELTA_ORTHOGONAL,     /* scale: the gain; a kernel of 1 to 3 dimensions, with no more inputs than outputs */
    MR_INIT_VALUE,                /* value */
    MR_INIT_CONVOLUTION_ORTHOGONAL, /* scale: the gain; a kernel as for DELTA_ORTHOGONAL, of equal sizes up to 16 */
} mr_initializer_kind;
typedef enum mr_fan_mode { MR_FAN_IN = 0, MR_FAN_OUT, MR_FAN_AVG } mr_fan_mode;
typedef enum mr_distribution {
    MR_DISTRIBUTION_TRUNCATED_NORMAL = 0,
    MR_DISTRIBUTION_UNTRUNCATED_NORMAL,
    MR_DISTRIBUTION_UNIFORM,
} mr_distribution;
typedef struct mr_initializer {
    mr_initializer_kind kind;
    /* UNIFORM (without min and max), NORMAL, TRUNCATED_NORMAL: required, greater than 0. CONSTANT (without values): the
     * value, default 0. Kinds with a scale, factor or gain: greater than 0; 0: 1. No effect on others. Numbers are
     * finite, also in the variable's dtype; integers, if it is one of integers. */
    float scale;
    int64_t seed;                 /* of the random kinds; 0: derived from the graph's; MR_SEED_ZERO: 0 */
    float mean;                   /* of NORMAL and TRUNCATED_NORMAL; default 0 */
    float min, max;               /* of UNIFORM: min less than max; both 0: -scale and scale */
    mr_fan_mode mode;             /* of VARIANCE_SCALING; default MR_FAN_IN */
    mr_distribution distribution; /* of VARIANCE_SCALING; default MR_DISTRIBUTION_TRUNCATED_NORMAL */
    const mr_tensor *values;      /* of CONSTANT: the elements, in the variable's dtype; referenced */
    mr_output value;              /* of VALUE: required, an output of this graph */
} mr_initializer;

/* ---- Regularizers ---- */

/* Adds l1 * sum(|w|) + l2 * sum(w^2) / 2 to the collection "regularization_losses" (tf.contrib.layers.l1_regularizer,
 * l2_regularizer and l1_l2_regularizer). Both 0: none. Both finite, at least 0. */
typedef struct mr_regularizer {
    float l1, l2;
} mr_regularizer;

/* ---- Partitioners: how a variable is divided into parts along one axis ---- */

typedef enum mr_partitioner_kind {
    MR_PARTITION_DEFAULT = 0, /* the variable scope's; if it has none: one variable that is not partitioned */
    MR_PARTITION_FIXED_SIZE,  /* parts_max parts (tf.fixed_size_partitioner) */
    MR_PARTITION_AXIS_SIZE,   /* parts of at most size_bytes (tf.variable_axis_size_partitioner) */
    MR_PARTITION_MIN_MAX,     /* up to parts_max parts of at least size_bytes (tf.min_max_variable_partitioner) */
} mr_partitioner_kind;
typedef struct mr_partitioner {
    mr_partitioner_kind kind;
    int32_t axis;
    int32_t parts_max;  /* at least 1; required by FIXED_SIZE and MIN_MAX; AXIS_SIZE: 0: no limit */
    int64_t size_bytes; /* at least 1; required by AXIS_SIZE; MIN_MAX: 0: 256 KiB */
} mr_partitioner;

/* ---- Variables by name ---- */

/* What a variable scope does with names that exist. */
typedef enum mr_reuse {
    MR_REUSE_NONE = 0, /* as in the enclosing scope; outside of all scopes: a name that exists is an error */
    MR_REUSE,          /* a name that does not exist is an error */
    MR_AUTO_REUSE,     /* creates the variable if it does not exist */
} mr_reuse;

typedef struct mr_get_variable_options {
    size_t size; /* of this struct (api.h) */
    /* Add the variable to "trainable_variables". Default true; MR_INHERIT: unless it is a local variable. */
    int32_t trainable;
    int32_t use_resource;       /* a resource variable (VarHandleOp); default MR_INHERIT; without a scope's: false */
    mr_initializer initializer; /* default: the scope's */
    mr_dtype dtype;             /* default: the scope's; if it has none, that of initializer.value, or MR_FLOAT */
    mr_regularizer regularizer; /* default: the scope's */
    mr_partitioner partitioner; /* default: the scope's */
    mr_names collections;       /* default: "variables" */
    const char *caching_device; /* reads are copied to this device; default: the scope's */
    bool any_shape;             /* the shape may change; only with MR_INIT_VALUE (validate_shape=False in TensorFlow) */
    mr_constraint constraint;   /* default: the scope's. An existing variable keeps its own */
} mr_get_variable_options;
#define MR_GET_VARIABLE_DEFAULTS .trainable = true, .use_resource = MR_INHERIT
/* Returns the variable of this name, relative to the current variable scope: creates it, or, if the scope reuses
 * variables, returns the one that exists. Name scopes do not matter. The initializer's nodes are NAME/Initializer/….
 * shape   fully known. With MR_INIT_VALUE it may be MR_SHAPE_UNSET
 * errors  the name exists in a scope without reuse, or does not exist in one with reuse; another shape or dtype
 * A partitioned variable has no ref: its parts are in the collections, and its value is their concatenation. */
MR_API mr_variable mr_get_variable_(mr_graph *graph, const char *name, mr_shape shape,
                                    const mr_get_variable_options *options);
#define mr_get_variable(graph, name, shape, ...)                                                                       \
    MR_WITH_SIZE_(mr_get_variable_((graph), (name), (shape), &options_), mr_get_variable_options,                      \
                  MR_GET_VARIABLE_DEFAULTS, __VA_ARGS__)
/* The same for a variable that is in "local_variables" and not trainable, and is not saved (tf.get_local_variable). */
#define mr_get_local_variable(graph, name, shape, ...)                                                                 \
    mr_get_variable((graph), (name), (shape), .trainable = false, .collections = MR_NAMES(MR_LOCAL_VARIABLES),         \
                    __VA_ARGS__)

/* A borrowed list of variables. */
typedef struct mr_variables {
    const mr_variable *items;
    int32_t count;
} mr_variables;
#define MR_VARIABLES(...) MR_LIST_(mr_variables, mr_variable, __VA_ARGS__)
/* The parts of a partitioned variable, in order; any other variable is its only part. Owned by the graph. */
MR_API mr_variables mr_variable_parts(mr_graph *graph, mr_variable variable);

/* ---- Variable scopes (tf.variable_scope) ---- */

typedef struct mr_variable_scope mr_variable_scope;

/* A request for a variable, as a custom getter receives it. Borrowed for the call. */
typedef struct mr_variable_request {
    mr_graph *graph;
    const char *name; /* complete: "tower/w" */
    mr_shape shape;
    mr_get_variable_options options;        /* the scope's defaults are filled in */
    mr_reuse reuse;                         /* the scope's */
    const struct mr_variable_getter_ *next; /* the getter of the enclosing scope */
} mr_variable_request;
/* Returns the variable, usually that of mr_variable_request_get for a changed copy of the request, with another value:
 * a moving average, or a quantized one. */
typedef mr_variable (*mr_variable_getter)(void *context, const mr_variable_request *request);
/* Calls the getter of the enclosing scope; without one, gets the variable. */
MR_API mr_variable mr_variable_request_get(const mr_variable_request *request);

typedef struct mr_variable_scope_options {
    size_t size;                    /* of this struct (api.h) */
    const char *default_name;       /* used instead of the name if that is null; made unique with "_1", "_2", … */
    const mr_variable_scope *scope; /* enter this scope again, wherever it was opened; name must be null */
    mr_reuse reuse;                 /* an error if default_name names the scope */
    /* The options below are defaults of variables in the scope, and of scopes in it. Omitted: as in the enclosing
     * scope, or as in `scope`. */
    mr_initializer initializer;
    mr_regularizer regularizer;
    mr_partitioner partitioner;
    mr_variable_getter custom_getter; /* called before that of the enclosing scope */
    void *getter_context;             /* borrowed; must exist as long as the scope is used */
    const char *caching_device;
    mr_dtype dtype;
    int32_t use_resource;         /* true, false; default MR_INHERIT */
    bool no_auxiliary_name_scope; /* do not open a name scope */
    mr_constraint constraint;     /* a default like those above */
} mr_variable_scope_options;
#define MR_VARIABLE_SCOPE_DEFAULTS .use_resource = MR_INHERIT
/* Opens a variable scope, and the name scope of the same name. Names of variables are relative to it. Push and pop in
 * pairs. The result can be entered again with .scope; owned by the graph. */
MR_API const mr_variable_scope *mr_graph_push_variable_scope_(mr_graph *graph, const char *name,
                                                              const mr_variable_scope_options *options);
#define mr_graph_push_variable_scope(graph, name, ...)                                                                 \
    MR_WITH_SIZE_(mr_graph_push_variable_scope_((graph), (name), &options_), mr_variable_scope_options,                \
                  MR_VARIABLE_SCOPE_DEFAULTS, __VA_ARGS__)
MR_API void mr_graph_pop_variable_scope(mr_graph *graph);
/* The current scope, that of the graph if none is open (tf.get_variable_scope). Null if memory is exhausted. */
MR_API const mr_variable_scope *mr_graph_variable_scope(mr_graph *graph);
/* The current scope reuses variables from now on (tf.get_variable_scope().reuse_variables()). */
MR_API void mr_graph_reuse_variables(mr_graph *graph);
/* "tower/layer", or "" for the graph's. */
MR_API const char *mr_variable_scope_name(const mr_variable_scope *scope);
/* The name scope that was opened with it: "tower_1/layer". */
MR_API const char *mr_variable_scope_name_scope(const mr_variable_scope *scope);
MR_API mr_reuse mr_variable_scope_reuse(const mr_variable_scope *scope);

/* ---- What is done with a variable, of either kind ---- */

/* Returns the variable's value at this point: after the nodes of the current control dependencies. */
MR_API mr_output mr_variable_read_value(mr_graph *graph, mr_variable variable);
MR_API mr_dtype mr_variable_dtype_of(mr_variable variable);
MR_API mr_shape mr_variable_shape_of(mr_variable variable);
MR_API bool mr_variable_is_resource(mr_variable variable);
/* Each returns the value after the update; for a reference variable, the reference.
 * value  of the variable's dtype and shape */
MR_API mr_output mr_variable_assign(mr_graph *graph, mr_variable variable, mr_output value);
MR_API mr_output mr_variable_assign_add(mr_graph *graph, mr_variable variable, mr_output value);
MR_API mr_output mr_variable_assign_sub(mr_graph *graph, mr_variable variable, mr_output value);
typedef struct mr_variable_assign_options {
    size_t size;      /* of this struct (api.h) */
    const char *name; /* of the node that assigns; default: the operator's */
    /* The attr of the operator, of a reference: TensorFlow then holds the variable's lock. Runs of this library are the
     * same with and without it. Default false, as of tf.Variable.assign; without options, the operator's default, which
     * is true for an assignment */
    bool use_locking;
} mr_variable_assign_options;
/* The same with options, which may be null. */
MR_API mr_output mr_variable_assign_with(mr_graph *graph, mr_variable variable, mr_output value,
                                         const mr_variable_assign_options *options);
MR_API mr_output mr_variable_assign_add_with(mr_graph *graph, mr_variable variable, mr_output value,
                                             const mr_variable_assign_options *options);
MR_API mr_output mr_variable_assign_sub_with(mr_graph *graph, mr_variable variable, mr_output value,
                                             const mr_variable_assign_options *options);
/* Update of the rows with these indices: variable[indices[i]] op= updates[i], in the order of i. */
typedef enum mr_scatter_kind {
    MR_SCATTER_UPDATE = 0,
    MR_SCATTER_ADD,
    MR_SCATTER_SUB,
    MR_SCATTER_MUL,
    MR_SCATTER_DIV,
    MR_SCATTER_MIN,
    MR_SCATTER_MAX,
} mr_scatter_kind;
MR_API mr_output mr_variable_scatter(mr_graph *graph, mr_variable variable, mr_scatter_kind kind, mr_output indices,
                                     mr_output updates);
/* Adds 1 and returns the value before; MR_OUT_OF_RANGE at limit. Of an int32 or int64 scalar. */
MR_API mr_output mr_variable_count_up_to(mr_graph *graph, mr_variable variable, int64_t limit);
/* The value, or the initial value if the variable is not initialized yet: for initial values that depend on other
 * variables (Variable.initialized_value). */
MR_API mr_output mr_variable_initialized_value(mr_graph *graph, mr_variable variable);
/* A bool scalar (tf.is_variable_initialized). */
MR_API mr_output mr_variable_is_initialized(mr_graph *graph, mr_variable variable);
/* The names of the variables that are not initialized, a vector of strings: empty when all are ready
 * (tf.report_uninitialized_variables).
 * variables  count 0: all in "variables" and "local_variables" */
MR_API mr_output mr_report_uninitialized_variables(mr_graph *graph, mr_variables variables, const char *name);
/* An output that fails with MR_FAILED_PRECONDITION until all variables are initialized.
 * variables  as above */
MR_API mr_output mr_assert_variables_initialized(mr_graph *graph, mr_variables variables);
/* A node that runs the initializers of these variables (tf.variables_initializer). name null: "init". */
MR_API mr_node *mr_variables_initializer(mr_graph *graph, mr_variables variables, const char *name);

#ifdef __cplusplus
}
#endif
#endif
