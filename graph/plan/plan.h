/* The planner: from a graph and a signature (feeds, fetches, targets) to a program, in passes, one file each:
 *   prune  selects the nodes that fetches and targets need, backwards, cut at feeds; numbers the values
 *   flow   finds the loop that each node belongs to, and the condition under which it runs
 *   place  chooses a device and a kernel for each node; handles of resources become constants
 *   fold   computes nodes whose inputs are constants
 *   share  merges equal nodes with equal inputs
 *   loosen  removes control edges that order nothing but computation
 *   drop   does not compute what nobody uses
 *   fuse   replaces chains for which a single kernel exists by one node
 *   fuse_pool  keeps the positions of MaxPool's maxima instead of its input
 *   fuse_products  replaces sums of matrix products, and transposes a matrix once that several products take transposed
 *   fuse_adam  updates the variable and the slots of Adam on sparse gradients in one pass
 *   fuse_heads  lets batched products read and write heads in place, which are not transposed for them
 *   recompute_elementwise  computes sums and products again that are needed much later
 *   fuse_elementwise  computes elementwise operators that depend on each other, and reductions of rows, in one call
 *   copy   inserts copies of values that are needed on another device
 *   order  chooses a sequence that respects edges, frees memory early and updates variables after their readers
 *   recompute  computes normalized activations again instead of keeping them for the backward pass
 *   segment  divides a program with conditionals or loops into parts that run, or do not run, together
 *   lower  turns values into slots and nodes into calls; each slot is released after its last use
 * The planner's own data is in its arena and is freed afterwards; what runs need is in the program's arena.
 *
 * A value is what flows along edges: a feed, a constant, or an output of a node. */
#ifndef MR_GRAPH_PLAN_PLAN_H
#define MR_GRAPH_PLAN_PLAN_H

#include "graph/run/program.h"
#include "graph/state/state.h"

/* What planning uses of a session, whose mutex is held meanwhile. The functions are called with the session. */
typedef struct mr_plan_context {
    mr_session *session;
    const mr_graph *graph;             /* the session's, or the body of a function */
    mr_node_states *states;            /* of that graph */
    const mr_session_options *options; /* device is "" if there is none */
    mr_device *cpu;
    mr_device *const *gpus; /* MR_DEVICES_MAX; null: not opened yet */
    mr_resource_table *resources;
    /* The GPU with that index, or null: the reason is noted and set in *error (nullable). */
    mr_device *(*open_gpu)(mr_session *session, int index, mr_error *error);
    mr_status (*node_state)(mr_session *session, mr_node_states *states, const mr_node *node, mr_node_state **state,
                            mr_error *error);
    /* Appends a line to the session's notes unless it already exists. */
    void (*note)(mr_session *session, const char *format, ...);
} mr_plan_context;

typedef enum mr_value_kind {
    MR_VALUE_FEED,
    MR_VALUE_CONSTANT,
    MR_VALUE_OUTPUT,
} mr_value_kind;

typedef struct mr_plan_value {
    mr_value_kind kind;
    int32_t producer; /* plan node; -1 for feeds */
    int32_t index;    /* of the output, or of the feed */
    mr_dtype dtype;
    bool is_ref;   /* the slot has a handle to a variable */
    int32_t named; /* of a constant handle with is_ref: the first value that names the same variable */
    mr_shape shape;
    mr_tensor constant; /* a reference, or a handle */
    int32_t region, condition;
    mr_device *home; /* where a constant or a variable's value is stored; null: in host memory */
    bool fetched;
    const mr_node *computes; /* of a call for several nodes: the one whose output it is; otherwise null */
} mr_plan_value;

typedef struct mr_plan_node {
    const mr_node *node;     /* for a copy: the node whose value it copies */
    int32_t place;           /* where it stands among those that could run: its number, or that of another node */
    const char *name;        /* of a second computation, for as long as the program; null: the node's */
    const mr_kernel *kernel; /* null: a constant or a handle, nothing to run */
    const mr_attrs *attrs;   /* null: the node's; otherwise those that fuse computed */
    mr_device *device;       /* null before the place pass */
    int32_t input_count;
    int32_t *inputs;          /* values */
    const bool *input_is_ref; /* the operator takes a reference at this input */
    int32_t output_count;
    int32_t first_output; /* its outputs are values first_output … */
    int32_t control_count;
    int32_t *controls; /* plan nodes */
    int32_t region;    /* the loop that it runs in: an index of the planner's regions; 0: none */
    int32_t condition; /* under which it runs; equal numbers: equal conditions; 0: always */
    int32_t segment;   /* set by the segment pass */
    bool live;         /* dead nodes are skipped */
    bool pinned;       /* a target: runs even if nothing uses its outputs */
    bool is_copy;
    mr_device *copy_from, *copy_to; /* null: host memory */
    mr_device *outputs_at;          /* a GPU on which a CPU node stores its outputs, except for strings */
} mr_plan_node;

/* Compares two nodes of one operator by its own attrs; attrs such as "_class" do not affect the result. */
bool mr_plan_attrs_equal(const mr_node *a, const mr_node *b);

/* What the node is to its neighbors in a fusion; none if it does not run, or already runs another kernel. */
static inline mr_fusion_role mr_plan_fusion_role(const mr_plan_node *node)
{
    if (!node->live || !node->kernel || node->attrs || node->is_copy || !node->node->def) return MR_FUSION_NONE;
    return node->node->def->op->role;
}

/* A loop (TensorFlow's frame), or region 0, everything outside of loops. */
typedef struct mr_plan_region {
    int32_t parent; /* -1: region 0 */
    mr_string name; /* frame_name, borrowed */
    int32_t entry;  /* the condition in the parent under which the loop is entered */
    int32_t level;  /* of nesting; 0: region 0 */
    int32_t depth;  /* of the last segment of the parent that enters it; see the segment pass */
} mr_plan_region;

/* Nodes that run, or do not run, together. */
typedef struct mr_plan_segment {
    int32_t region, condition, depth;
    bool is_merge;    /* one conditional merge */
    bool waits;       /* one node that may wait */
    uint64_t waiting; /* nodes that wait and come before it; bit 63: those from the 64th on */
    int32_t node_count;
} mr_plan_segment;

/* An edge that only orders two nodes. */
typedef struct mr_plan_edge {
    int32_t from, to; /* plan nodes */
} mr_plan_edge;

typedef struct mr_planner {
    const mr_plan_context *context;
    const mr_signature *signature;
    mr_arena arena;
    mr_arena kept; /* owned by the program afterwards */
    mr_plan_node *nodes;
    int32_t node_count, node_capacity;
    mr_plan_value *values;
    int32_t value_count, value_capacity;
    int32_t *fetch_values;
    int32_t *order; /* plan nodes: the live ones that have a kernel */
    int32_t order_count;
    bool uses_gpu;
    bool has_shared_names; /* of reference variables */
    bool has_flow; /* it has conditionals or loops, or several nodes that wait; otherwise there is one segment */
    mr_plan_region *regions;
    int32_t region_count, region_capacity;
    mr_plan_edge *loop_edges; /* set by the flow pass: what enters a loop comes before what leaves it */
    int32_t loop_edge_count;
    mr_plan_segment *segments; /* set by the segment pass, with the edges of variables */
    int32_t segment_count;
    mr_plan_edge *order_edges;
    int32_t order_edge_count, order_edge_capacity;
    mr_program *program; /* made by the lower pass */
} mr_planner;

/* ---- The passes ---- */

mr_status mr_plan_prune(mr_planner *planner, mr_error *error);
mr_status mr_plan_flow(mr_planner *planner, mr_error *error);
mr_status mr_plan_place(mr_planner *planner, mr_error *error);
mr_status mr_plan_fold(mr_planner *planner, mr_error *error);
/* After folding: checks that every live node that is not a constant has a kernel. The error names the first without. */
mr_status mr_plan_check_kernels(const mr_planner *planner, mr_error *error);
mr_status mr_plan_share(mr_planner *planner, mr_error *error);
mr_status mr_plan_loosen(mr_planner *planner, mr_error *error);
mr_status mr_plan_drop(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_pool(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_products(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_steps(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_adam(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_heads(mr_planner *planner, mr_error *error);
mr_status mr_plan_recompute_elementwise(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse_elementwise(mr_planner *planner, mr_error *error);
mr_status mr_plan_copy(mr_planner *planner, mr_error *error);
mr_status mr_plan_order(mr_planner *planner, mr_error *error);
mr_status mr_plan_recompute(mr_planner *planner, mr_error *error);
mr_status mr_plan_segments(mr_planner *planner, mr_error *error);
mr_status mr_plan_lower(mr_planner *planner, mr_error *error);

/* ---- Helpers of the passes ---- */

/* False if the session's options forbid optimizations. */
static inline bool mr_plan_optimizes(const mr_planner *planner)
{
    return !planner->context->options->no_optimization;
}
/* Adds a value or node and sets *index. Existing indices stay valid. A node without a place gets its own. */
mr_status mr_plan_add_value(mr_planner *planner, mr_plan_value value, int32_t *index, mr_error *error);
mr_status mr_plan_add_node(mr_planner *planner, mr_plan_node node, int32_t *index, mr_error *error);
/* The attrs and another one, sorted by name, for as long as the program. Null: there is no memory. */
const mr_attrs *mr_plan_attrs_with(mr_planner *planner, const mr_attrs *attrs, mr_attr attr);
/* TensorFlow's name for a second computation of the node, with a number if the graph has it. */
mr_status mr_plan_second_name(mr_planner *planner, const mr_node *node, const char **name, mr_error *error);
/* All live nodes, inputs before their consumers, otherwise by their places.
 * errors  MR_INVALID_ARGUMENT naming a node of a cycle */
mr_status mr_plan_topological(mr_planner *planner, int32_t **order, int32_t *count, mr_error *error);
/* The value that decides a Switch node, without the Identity nodes between. */
int32_t mr_plan_predicate(const mr_planner *planner, const mr_plan_node *node);
/* True if that input of a merge comes from the previous iteration of its loop. */
bool mr_plan_is_back_edge(const mr_planner *planner, const mr_plan_node *node, int32_t input);
/* True for a constant or a dropped node with control inputs, in a program with conditionals or loops: it runs after
 * them and computes nothing. */
bool mr_plan_is_gate(const mr_planner *planner, const mr_plan_node *node);
/* By value: the number of inputs of live nodes that read it, plus one if it is fetched. */
mr_status mr_plan_uses(mr_planner *planner, int32_t **uses, mr_error *error);
/* By node: whether a live node waits for it by a control edge. */
mr_status mr_plan_awaited(mr_planner *planner, bool **awaited, mr_error *error);
/* By node: whether it comes after a node that updates a variable of TensorFlow 1's reference kind, in this iteration
 * or in an earlier one. */
mr_status mr_plan_after_updates(mr_planner *planner, bool **after, mr_error *error);
/* Whether a node that reads the value can read it at another time with the same result: the value is not in the memory
 * of a reference variable, or the node does not come after an update, and so all updates wait for it. */
bool mr_plan_reads_freely(const mr_planner *planner, const bool *after_updates, int32_t node, int32_t value);
/* Whether a value stands for something that changes: a variable, or another resource. */
bool mr_plan_depends_on_state(const mr_planner *planner, int32_t index);
/* Whether the node only computes outputs, and computes them whenever its inputs are computed. */
bool mr_plan_may_drop(const mr_planner *planner, const mr_plan_node *node);
/* Replaces such a node by an order without work: those that wait for it wait for what it waited for. */
mr_status mr_plan_drop_node(mr_planner *planner, mr_plan_node *node, mr_error *error);
/* Sets live on exactly the nodes that fetches and pinned nodes need. */
void mr_plan_sweep(mr_planner *planner);
/* The handle behind a value that is a reference or a resource: the value of the node that names the variable, the first
 * one if several name a reference variable. -1 if it comes from elsewhere. */
int32_t mr_plan_handle(const mr_planner *planner, int32_t value);
/* True if the kernel has that input (output) in host memory. */
static inline bool mr_plan_on_host(uint32_t mask, int32_t index)
{
    return (mask >> 31 & 1) != 0 || (index < 31 && (mask >> index & 1) != 0);
}
/* The handle of the variable whose buffer the value may share: it was read from the variable, or is a view of such a
 * value. -1: none. */
int32_t mr_plan_variable_of(const mr_planner *planner, int32_t value);
/* True if the node changes the variable of the handle at that input. A kernel of a fusion changes more than the
 * operator of its node. */
static inline bool mr_plan_updates(const mr_plan_node *node, int32_t input)
{
    if (node->is_copy || input >= 32) return false;
    const uint32_t writes = node->node->def->op->writes | (node->kernel ? node->kernel->updates : 0);
    return (writes >> input & 1) != 0;
}
/* True if the node may wait for another one, of this run or of another. */
static inline bool mr_plan_waits(const mr_plan_node *node)
{
    return !node->is_copy && mr_node_has_flag(node->node, MR_OP_WAITS);
}
/* Whether the node reduces the last dimension of floats or doubles, of a number of elements that is known, with a
 * function for rows. */
bool mr_plan_reduces_rows(const mr_planner *planner, const mr_plan_node *node);
/* Whether the node gives the same elements another shape, or repeats them, in a way that is known. */
bool mr_plan_moves_rows(const mr_planner *planner, const mr_plan_node *node);
/* What the results of elementwise nodes, reductions and moves of rows, in topological order, have for each row if all
 * are computed row by row. wide: the shape of what is reduced. False: they cannot be. */
bool mr_plan_row_forms(const mr_planner *planner, const int32_t *members, int32_t count, mr_shape wide,
                       mr_row_form *forms);
/* Whether a value, of one of the first `count` members or from elsewhere, has one element for a row. */
bool mr_plan_is_one_of_row(const mr_planner *planner, const int32_t *members, const mr_row_form *forms, int32_t count,
                           int32_t value);
/* The node that computes the guard's value, or -1. */
int32_t mr_plan_guard_node(const mr_planner *planner);
/* True for a merge whose inputs all come from the same iteration. */
bool mr_plan_is_conditional_merge(const mr_planner *planner, const mr_plan_node *node);
/* Size of a value in bytes; 0 if it is not known. */
size_t mr_plan_value_bytes(const mr_plan_value *value);

/* Plans what the signature asks for. The signature must outlive the program.
 * errors  the graph's first error; those of the passes, which name nodes */
mr_status mr_plan_make(const mr_signature *signature, const mr_plan_context *context, mr_program **program,
                       mr_error *error);
/* Finds or creates the resource of a node that names one, on the device that the place pass chooses for it.
 * errors  MR_INVALID_ARGUMENT if the node's operator names no resource; those of making it */
mr_status mr_plan_resource(const mr_plan_context *context, const mr_node *node, mr_resource **resource,
                           mr_error *error);
#endif
