/* The internals of a graph: nodes in an array in creation order, edges as (node, output index).
 *
 * Everything is allocated from the graph's arena and nothing is freed individually, so pointers to nodes, names and
 * attrs stay valid until mr_graph_free. A node's id is its index in graph->nodes: dense and never reused, so arrays
 * indexed by id serve as maps. A node enters the array only when it is complete and valid; every node that graph/run
 * sees has passed all checks against its operator. Inputs come before the node in the array, except in imported graphs,
 * which keep the order of the file, and for NextIteration. Tensors inside attrs are referenced; the graph releases them
 * when it is freed. */
#ifndef MR_GRAPH_IR_GRAPH_H
#define MR_GRAPH_IR_GRAPH_H

#include "base/arena.h"
#include "base/attr.h"
#include "graph/ir/op.h"
#include <millrace/graph.h>

typedef struct mr_node_output {
    mr_dtype dtype; /* without the reference flag; MR_DTYPE_INVALID for an unknown operator */
    bool is_ref;
    mr_shape shape;          /* as inferred, or narrowed by mr_output_set_shape */
    mr_shape handle;         /* of a variable's handle: the variable's shape; otherwise unknown */
    const mr_partial *value; /* null: nothing is known */
} mr_node_output;

/* An attr of an imported GraphDef that mr_attr cannot represent: its serialized AttrValue, exported unchanged. */
typedef struct mr_raw_attr {
    const char *name;
    const uint8_t *bytes;
    size_t size_bytes;
} mr_raw_attr;

struct mr_node {
    mr_graph *graph;
    int32_t id;           /* index in graph->nodes */
    const mr_op_def *def; /* null: an imported operator that this library does not know; such a node cannot run */
    struct mr_flow_context *flow; /* the conditional or loop that it belongs to (flow.h); null: none, or imported */
    const char *name;
    const char *op;     /* the operator's name, also if def is null */
    const char *device; /* as requested, normalized: "/device:GPU:0", "/job:worker/task:1"; "": none */
    int32_t input_count;
    mr_output *inputs;
    int32_t control_count;
    int32_t control_capacity;
    mr_node **controls; /* run before this node; no duplicates */
    int32_t output_count;
    mr_node_output *outputs;
    mr_attrs attrs; /* sorted by name; contains every attr of the operator, with defaults filled in, and attrs such as
                       "_class" */
    int32_t raw_attr_count;
    mr_raw_attr *raw_attrs;
    /* Other fields of NodeDef (debug info, full type), serialized, as imported. */
    const uint8_t *rest;
    size_t rest_size_bytes;
};

/* A map from strings to integers with open addressing; keys are borrowed. */
typedef struct mr_name_slot {
    const char *key;
    uint64_t hash;
    int32_t value;
} mr_name_slot;
typedef struct mr_name_table {
    mr_name_slot *slots;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
} mr_name_table;

/* Stack of pushed scopes. */
typedef struct mr_text_stack {
    const char **items;
    int32_t count;
    int32_t capacity;
} mr_text_stack;
/* A pushed device, or a function that chooses one. */
typedef struct mr_device_frame {
    const char *merged; /* with the devices around it; null: there are functions among them, or it is one */
    const char *own;    /* null: hides the frames around it */
    mr_device_function function;
    void *context;
} mr_device_frame;
/* A node beside which others are placed. */
typedef struct mr_colocation_frame {
    const mr_node *node; /* null: none; hides the frames around it */
} mr_colocation_frame;
/* Operators whose nodes get another gradient. */
typedef struct mr_gradient_override {
    const char *op, *gradient;
} mr_gradient_override;
/* What a variable is projected with after an update. */
typedef struct mr_constrained {
    const mr_node *ref; /* its reference or handle */
    mr_constraint constraint;
} mr_constrained;
/* A gradient that the program registered. */
typedef struct mr_custom_gradient {
    const char *name;
    mr_custom_gradient_function function;
    void *context;
} mr_custom_gradient;

/* Numbers of open scopes of each kind. */
typedef struct mr_open_scopes {
    int32_t names, variables, devices, colocations, controls, overrides;
} mr_open_scopes;

typedef struct mr_control_frame {
    mr_node **nodes;
    int32_t count;
    int32_t first_id;             /* nodes from this id on were created inside the frame and already run after it */
    bool clears;                  /* hides the enclosing frames, and the conditionals and loops */
    struct mr_flow_context *flow; /* the context outside of a frame that hides it */
} mr_control_frame;
/* A tensor referenced by attrs. */
typedef struct mr_held_tensor {
    mr_tensor tensor;
    struct mr_held_tensor *next;
} mr_held_tensor;

typedef enum mr_collection_kind {
    MR_COLLECTION_OUTPUTS,   /* node_list: names of outputs and nodes */
    MR_COLLECTION_VARIABLES, /* bytes_list: VariableDefs */
    MR_COLLECTION_RAW,       /* anything else, as imported */
} mr_collection_kind;
typedef struct mr_collection {
    const char *name;
    mr_collection_kind kind;
    int32_t count;
    int32_t capacity;
    mr_output *outputs;     /* index -1: the node itself */
    mr_variable *variables; /* if the kind is MR_COLLECTION_VARIABLES */
    bool *trainable;        /* likewise */
    mr_string *rest;        /* likewise: other imported fields of the VariableDefs (slices, aggregation), serialized */
    const uint8_t *raw;     /* a serialized CollectionDef */
    size_t raw_size_bytes;
} mr_collection;

/* An object that C code attached to a node and that a GraphDef cannot represent: the dataset of an iterator. */
typedef struct mr_binding {
    const mr_node *node;
    void *object;
    void (*release)(void *object); /* called by mr_graph_free */
    struct mr_binding *next;
} mr_binding;

/* Names of outputs that were not found are kept for error messages, up to this number. */
constexpr int32_t MR_MISSING_MAX = 64;

struct mr_graph {
    mr_arena arena;
    mr_arena scratch; /* for one call, reset at its end */
    mr_held_tensor *held;
    mr_binding *bindings;
    mr_node **nodes;
    int32_t node_count;
    int32_t node_capacity;
    uint64_t version;    /* incremented by every change that could invalidate a plan; atomic: runs read it */
    mr_name_table ids;   /* node name -> id */
    mr_name_table taken; /* lower-case name -> number of requests, as counted by Graph.unique_name */
    mr_node *failed;     /* outputs of failed builders refer to it; never in nodes */
    mr_status status;
    char *error_message;
    mr_text_stack scopes; /* complete scopes: "a", "a/b" */
    mr_device_frame *devices;
    int32_t device_count;
    mr_colocation_frame *colocations;
    int32_t colocation_count;
    mr_gradient_override *overrides;
    int32_t override_count;
    mr_custom_gradient *custom_gradients;
    int32_t custom_gradient_count;
    mr_constrained *constrained;
    int32_t constrained_count;
    bool is_finalized;
    bool is_choosing_device; /* a device function is running: it cannot add nodes */
    mr_control_frame *control_frames;
    int32_t control_frame_count;
    int32_t control_frame_capacity;
    struct mr_flow_context *flow; /* the conditional or loop that is being built (flow.h); null: none */
    /* Scopes that must not be closed: those around the function of the caller's that is running
     * (graph/train/open_scopes.h). */
    mr_open_scopes floor;
    bool has_seed;
    int64_t seed;
    int64_t seed_count; /* operators without a seed of their own so far */
    /* Names that mr_graph_find_output did not find: its result for name i is {nullptr, -1 - i}. */
    int32_t missing_count;
    const char *missing[MR_MISSING_MAX];
    int32_t collection_count;
    int32_t collection_capacity;
    mr_collection *collections;
    /* Variables by name and variable scopes (graph/train/variable_store.h); in the arena, null until the first use. */
    struct mr_variable_store *variable_store;
    mr_name_table variable_names; /* complete name -> index in the store */
    /* From imported GraphDefs and MetaGraphDefs: serialized FunctionDefLibrary, VersionDef and SaverDef; null if there
     * are none. */
    const uint8_t *library;
    size_t library_size_bytes;
    /* The same, unpacked (function.h). A function's body borrows the library of its graph. */
    struct mr_function_library *functions;
    bool borrows_functions;
    int32_t producer; /* versions.producer of the import, or that of TensorFlow 2.15 */
    int32_t min_consumer;
    const uint8_t *saver_def;
    size_t saver_def_size_bytes;
    struct mr_sparse_rows *sparse_rows; /* sparse_rows.h */
    int32_t sparse_rows_count;
};

/* The name that mr_graph_find_output did not find when it returned `output`; null for any other output. */
const char *mr_graph_missing_name(const mr_graph *graph, mr_output output);

/* ---- Names (names.c) ---- */

/* The value of key, or default_value. */
int32_t mr_name_table_get(const mr_name_table *table, const char *key, int32_t default_value);
/* Sets or replaces a value. The key must outlive the table. */
mr_status mr_name_table_set(mr_name_table *table, const char *key, int32_t value, mr_error *error);
void mr_name_table_deinit(mr_name_table *table);
/* TensorFlow's rule for node names. Inside a scope, a name may start with any of the allowed characters. */
bool mr_node_name_is_valid(const char *name);
bool mr_scope_name_is_valid(const char *name);
/* Whether a scope can be closed: more than `floor` are open. Otherwise an error of the graph. */
bool mr_graph_check_open(mr_graph *graph, int32_t count, int32_t floor, const char *function, const char *kind);
/* Marks an imported name as used. */
mr_status mr_graph_mark_name(mr_graph *graph, const char *name, mr_error *error);
/* Merges device names: "/gpu:0" inside "/job:a" gives "/job:a/device:GPU:0". Null, with an error, if a name is
 * invalid. */
const char *mr_device_name_merge(mr_arena *arena, const char *outer, const char *inner, mr_error *error);

/* ---- Devices and colocation (placement.c) ---- */

/* The device that a node gets when it is created here, before its inputs are known; "" if functions choose it. */
const char *mr_graph_scope_device(const mr_graph *graph);
/* Chooses the node's device, and adds its colocation groups, when its inputs are known. */
mr_status mr_node_place(mr_node *node, mr_error *error);

/* ---- Overridden gradients (override.c) ---- */

/* Adds the attr _gradient_op_type if the node's operator is overridden here. */
mr_status mr_node_override_gradient(mr_node *node, mr_error *error);
/* The name under which the node's gradient is looked up: its operator's, or that of the override. */
const char *mr_node_gradient_name(const mr_node *node);
/* Null: the program has registered none of this name. */
const mr_custom_gradient *mr_graph_custom_gradient(const mr_graph *graph, const char *name);

/* ---- Bindings (binding.c) ---- */

/* Attaches the object to the node; the graph releases it. On failure the caller keeps ownership. */
mr_status mr_graph_bind(mr_graph *graph, const mr_node *node, void *object, void (*release)(void *object),
                        mr_error *error);
/* The object that was bound with this release function, or null. */
void *mr_graph_bound(const mr_node *node, void (*release)(void *object));
/* Called by mr_graph_free before the arena is freed. */
void mr_graph_release_bindings(mr_graph *graph);

/* ---- Collections (collection.c) ---- */

mr_collection *mr_graph_find_collection(const mr_graph *graph, const char *name);
/* Finds or creates the collection. Null if it exists with another kind, or if no memory is available. */
mr_collection *mr_graph_make_collection(mr_graph *graph, const char *name, mr_collection_kind kind);
/* True for the collections whose items are VariableDefs in a MetaGraphDef. */
bool mr_collection_holds_variables(const char *name);
mr_status mr_graph_add_variable(mr_graph *graph, const char *collection, mr_variable variable, bool trainable,
                                mr_string rest, mr_error *error);

/* mr_graph_status, and an error if a conditional or a loop has not ended (flow.c). */
mr_status mr_graph_check_complete(const mr_graph *graph, mr_error *error);

/* ---- Variables (variable.c) ---- */

/* Computes the initial value of a variable, in the scope NAME/Initializer. */
typedef mr_output (*mr_initial_function)(mr_graph *graph, const void *context);
/* mr_variable_new, with the value that the function computes.
 * name   may be complete: "a/w"
 * slice  serialized fields of the VariableDef: that of a part of a partitioned variable */
mr_variable mr_variable_build(mr_graph *graph, const char *name, mr_initial_function initial, const void *context,
                              const mr_variable_options *options, mr_string slice);

/* The constraint of a variable; null: none. */
mr_constraint mr_variable_constraint(const mr_graph *graph, const mr_node *ref);

/* mr_graph_new, when the operators are registered already. */
mr_graph *mr_graph_create(void);
/* mr_graph_default, with mr_graph_create and mr_graph_free (default_graph.c). */
mr_graph *mr_graph_default_or_create(mr_graph *(*create)(void), void (*free_created)(mr_graph *graph));
/* The graph is freed: it is no default graph of this thread any longer. */
void mr_graph_forget_default(const mr_graph *graph);

/* ---- Nodes ---- */

/* True if the node's operator is known and its row has the flag. */
static inline bool mr_node_has_flag(const mr_node *node, mr_op_flags flag)
{
    return node->def != nullptr && (node->def->op->flags & flag) != 0;
}
static inline mr_flow mr_node_flow(const mr_node *node)
{
    return node->def != nullptr ? node->def->op->flow : MR_FLOW_NONE;
}
/* Grows an array in the graph's arena by doubling: room for count + 1 elements; the first count are kept. */
[[nodiscard]] void *mr_graph_grow(mr_graph *graph, void *items, int32_t count, size_t element_size_bytes);
mr_output mr_graph_failed_output(const mr_graph *graph);
/* Records the error of a failed call as the graph's. */
mr_output mr_graph_record(mr_graph *graph, mr_status status, const mr_error *error);
/* Adds a reference to the tensor that lasts as long as the graph. */
mr_status mr_graph_keep_tensor(mr_graph *graph, const mr_tensor *tensor, mr_tensor *held, mr_error *error);
/* Adds a complete node under its name, which must not exist yet. */
mr_status mr_graph_append(mr_graph *graph, mr_node *node, mr_error *error);
/* Removes the nodes from node_count on. Nothing may point to them. */
void mr_graph_truncate(mr_graph *graph, int32_t node_count);
/* Stores the serialized SaverDef that is exported with MetaGraphDefs. */
mr_status mr_graph_set_saver_def(mr_graph *graph, mr_string saver_def, mr_error *error);
/* Adds the control edge before -> node if it does not exist. */
mr_status mr_node_append_control(mr_node *node, mr_node *before, mr_error *error);
mr_status mr_node_append_input(mr_node *node, mr_output input, mr_error *error);
/* Sets or replaces an attr. Its values must be owned by the graph (see mr_attr_copy). */
mr_status mr_node_put_attr(mr_node *node, mr_attr attr, mr_error *error);
/* Copies an attr. Name, values and tensors of the copy are owned by the graph. */
mr_status mr_attr_copy(mr_graph *graph, const mr_attr *attr, mr_attr *copy, mr_error *error);
/* Sets an attr with a single value. */
mr_status mr_node_put_value(mr_node *node, const char *name, mr_attr_kind kind, mr_attr_value value, mr_error *error);

/* Checks inputs and attrs against the operator, fills in defaults and sets the outputs. Errors name the node.
 * (resolve.c) */
mr_status mr_node_resolve(mr_node *node, mr_error *error);
/* Runs the shape function and folds known values. The inputs must have been inferred. (infer.c) */
mr_status mr_node_infer(mr_node *node, mr_error *error);
/* Computes what is known of the values of the node's outputs from its inputs (fold.c). The shapes of the outputs must
 * be set. */
mr_status mr_node_fold(mr_node *node, mr_error *error);
/* The constant value of an output: a Const's tensor, or one folded from constants. False if it is not known. The caller
 * must deinit the tensor. */
bool mr_output_constant(mr_output output, mr_tensor *value);
/* The number of tensors of one argument of a signature. */
mr_status mr_argument_count(const mr_op_argument *argument, const mr_attrs *attrs, int32_t *count, mr_error *error);
/* The dtype of tensor `index` of an argument; MR_DTYPE_INVALID if its attr is missing. */
mr_dtype mr_argument_dtype(const mr_op_argument *argument, const mr_attrs *attrs, int32_t index);

#endif
