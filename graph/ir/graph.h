/* The inside of a graph: nodes in an array in the order they were made, edges as (node, output index).
 *
 * Everything lives in the graph's arena; nothing is freed singly, so pointers to nodes, names and attrs stay valid until
 * mr_graph_free. A node's id is its index in graph->nodes: dense, never reused, so arrays by id serve as maps. A node
 * enters the array only when it is whole and valid; what graph/run sees has passed every check against its operator.
 * Inputs come before the node in the array, but for imported graphs, whose file order is kept, and for NextIteration.
 * Tensors inside attrs are shared; the graph gives them back when it is freed. */
#ifndef MR_GRAPH_IR_GRAPH_H
#define MR_GRAPH_IR_GRAPH_H

#include "base/arena.h"
#include "base/attr.h"
#include "graph/ir/op.h"
#include <millrace/graph.h>

typedef struct mr_node_output {
    mr_dtype dtype; /* without the reference mark; MR_DTYPE_INVALID for an operator that is not known here */
    bool is_ref;
    mr_shape shape;          /* as inferred, or narrowed by mr_output_set_shape */
    mr_shape handle;         /* of a variable's handle: the variable's shape; unknown elsewhere */
    const mr_partial *value; /* null: nothing is known */
} mr_node_output;

/* An attr that came in a GraphDef and fits no mr_attr: its serialised AttrValue, which goes out again as it came. */
typedef struct mr_raw_attr {
    const char *name;
    const uint8_t *bytes;
    size_t size_bytes;
} mr_raw_attr;

struct mr_node {
    mr_graph *graph;
    int32_t id;           /* index in graph->nodes */
    const mr_op_def *def; /* null: an imported operator that is not known here; such a node cannot run */
    const char *name;
    const char *op;     /* the operator's name, also when def is null */
    const char *device; /* as asked for, "" for none; normalised: "/device:GPU:0", "/job:worker/task:1" */
    int32_t input_count;
    mr_output *inputs;
    int32_t control_count;
    int32_t control_capacity;
    mr_node **controls; /* run before this one; each once */
    int32_t output_count;
    mr_node_output *outputs;
    mr_attrs
        attrs; /* sorted by name; every attr of the operator is there, defaults filled in, and "_class" and its kin */
    int32_t raw_attr_count;
    mr_raw_attr *raw_attrs;
    /* NodeDef's rarer fields (debug info, full type), serialised, as imported. */
    const uint8_t *rest;
    size_t rest_size_bytes;
};

/* A map from strings to numbers, open addressing; keys are borrowed. */
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

/* Pushed scopes, devices and control edges. */
typedef struct mr_text_stack {
    const char **items;
    int32_t count;
    int32_t capacity;
} mr_text_stack;
typedef struct mr_control_frame {
    mr_node **nodes;
    int32_t count;
    int32_t first_id; /* nodes from this id on were made inside the frame and run after it already */
    bool clears;      /* hides the frames outside */
} mr_control_frame;
/* A tensor that attrs share. */
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
    mr_variable *variables; /* of the kind VARIABLES */
    bool *trainable;        /* likewise */
    mr_string *rest;        /* likewise: VariableDefs of what else was imported (slices, aggregation), serialised */
    const uint8_t *raw;     /* a serialised CollectionDef */
    size_t raw_size_bytes;
} mr_collection;

/* Something that C code gave to a node and no GraphDef can hold: the dataset behind an iterator. */
typedef struct mr_binding {
    const mr_node *node;
    void *object;
    void (*release)(void *object); /* called by mr_graph_free */
    struct mr_binding *next;
} mr_binding;

/* Names of outputs that were not found are kept for error messages up to this many. */
constexpr int32_t MR_MISSING_MAX = 64;

struct mr_graph {
    mr_arena arena;
    mr_arena scratch; /* of one call, reset at its end */
    mr_held_tensor *held;
    mr_binding *bindings;
    mr_node **nodes;
    int32_t node_count;
    int32_t node_capacity;
    uint64_t version;    /* steps with every change that could invalidate a plan */
    mr_name_table ids;   /* node name -> id */
    mr_name_table taken; /* lower-case name -> how often it was asked for, as Graph.unique_name counts */
    mr_node *failed;     /* what outputs of failed builders point to; never in nodes */
    mr_status status;
    char *error_message;
    mr_text_stack scopes; /* whole scopes: "a", "a/b" */
    mr_text_stack devices;
    mr_control_frame *control_frames;
    int32_t control_frame_count;
    int32_t control_frame_capacity;
    bool has_seed;
    int64_t seed;
    int64_t seed_count; /* operators without a seed of their own so far */
    /* Names that mr_graph_find_output did not find: its result for name i is {nullptr, -1 - i}. */
    int32_t missing_count;
    const char *missing[MR_MISSING_MAX];
    int32_t collection_count;
    int32_t collection_capacity;
    mr_collection *collections;
    /* Of imported GraphDefs and MetaGraphDefs: serialised FunctionDefLibrary, VersionDef, SaverDef; null without. */
    const uint8_t *library;
    size_t library_size_bytes;
    int32_t producer; /* versions.producer of the import, or of TensorFlow 2.15 */
    int32_t min_consumer;
    const uint8_t *saver_def;
    size_t saver_def_size_bytes;
};

/* The name that mr_graph_find_output did not find and returned `output` for; null for any other output. */
const char *mr_graph_missing_name(const mr_graph *graph, mr_output output);

/* ---- Names (names.c) ---- */

/* The value of key, or default_value. */
int32_t mr_name_table_get(const mr_name_table *table, const char *key, int32_t default_value);
/* Sets or replaces; the key must outlive the table. */
mr_status mr_name_table_set(mr_name_table *table, const char *key, int32_t value, mr_error *error);
void mr_name_table_deinit(mr_name_table *table);
/* TensorFlow's rule for the name of a node; a name inside a scope may begin with any of its characters. */
bool mr_node_name_is_valid(const char *name);
bool mr_scope_name_is_valid(const char *name);
/* Marks a name that came from outside as taken. */
mr_status mr_graph_mark_name(mr_graph *graph, const char *name, mr_error *error);
/* "/job:a/device:GPU:0" of "/gpu:0" inside "/job:a"; null and a message when it is no device. */
const char *mr_device_name_merge(mr_arena *arena, const char *outer, const char *inner, mr_error *error);

/* ---- Bindings (binding.c) ---- */

/* Gives the object to the node; the graph releases it. When this fails the object is still the caller's. */
mr_status mr_graph_bind(mr_graph *graph, const mr_node *node, void *object, void (*release)(void *object),
                        mr_error *error);
/* The object whose release is that function, or null. */
void *mr_graph_bound(const mr_node *node, void (*release)(void *object));
/* For mr_graph_free, before the arena goes. */
void mr_graph_release_bindings(mr_graph *graph);

/* ---- Collections (collection.c) ---- */

mr_collection *mr_graph_find_collection(const mr_graph *graph, const char *name);
/* Found or made; null when it is there with another kind, or without memory. */
mr_collection *mr_graph_make_collection(mr_graph *graph, const char *name, mr_collection_kind kind);
mr_status mr_graph_add_variable(mr_graph *graph, const char *collection, mr_variable variable, bool trainable,
                                mr_string rest, mr_error *error);

/* ---- Nodes ---- */

/* Memory of the graph's arena that grows by doubling: room for count + 1 elements, of which count are kept. */
[[nodiscard]] void *mr_graph_grow(mr_graph *graph, void *items, int32_t count, size_t element_size_bytes);
mr_output mr_graph_failed_output(const mr_graph *graph);
/* Records what an mr_error says. */
mr_output mr_graph_record(mr_graph *graph, mr_status status, const mr_error *error);
/* A share of the tensor that lives as long as the graph. */
mr_status mr_graph_keep_tensor(mr_graph *graph, const mr_tensor *tensor, mr_tensor *held, mr_error *error);
/* Adds a whole node under its name, which must not be there yet. */
mr_status mr_graph_append(mr_graph *graph, mr_node *node, mr_error *error);
/* Takes the nodes from node_count on out again; nothing may point to them. */
void mr_graph_truncate(mr_graph *graph, int32_t node_count);
/* The serialised SaverDef that goes into MetaGraphDefs. */
mr_status mr_graph_set_saver_def(mr_graph *graph, mr_string saver_def, mr_error *error);
/* The control edge node <- before, unless it is there. */
mr_status mr_node_append_control(mr_node *node, mr_node *before, mr_error *error);
mr_status mr_node_append_input(mr_node *node, mr_output input, mr_error *error);
/* Sets or replaces an attr; its values are the graph's (mr_attr_copy makes them so). */
mr_status mr_node_put_attr(mr_node *node, mr_attr attr, mr_error *error);
/* A copy whose name, values and tensors are the graph's. */
mr_status mr_attr_copy(mr_graph *graph, const mr_attr *attr, mr_attr *copy, mr_error *error);
/* The attr of a GraphDef that ask for one value. */
mr_status mr_node_put_value(mr_node *node, const char *name, mr_attr_kind kind, mr_attr_value value, mr_error *error);

/* Checks inputs and attrs against the operator, fills defaults, sets outputs. Errors name the node. (resolve.c) */
mr_status mr_node_resolve(mr_node *node, mr_error *error);
/* Runs the shape function and folds what is known of the values. Inputs must have been inferred. (infer.c) */
mr_status mr_node_infer(mr_node *node, mr_error *error);
/* What is known of the node's outputs' values, from its inputs' (fold.c). Outputs' shapes must be there. */
mr_status mr_node_fold(mr_node *node, mr_error *error);
/* The constant value of an output: a Const's tensor, or one that is folded from constants. False when it is not known.
 * The caller deinits it. */
bool mr_output_constant(mr_output output, mr_tensor *value);
/* How many tensors one argument of a signature stands for. */
mr_status mr_argument_count(const mr_op_argument *argument, const mr_attrs *attrs, int32_t *count, mr_error *error);
/* The dtype of tensor `index` of an argument; MR_DTYPE_INVALID when its attr is missing. */
mr_dtype mr_argument_dtype(const mr_op_argument *argument, const mr_attrs *attrs, int32_t index);

#endif
