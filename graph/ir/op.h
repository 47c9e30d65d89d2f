/* Operator rows: TensorFlow's registry as data.
 *
 * A family of operators is one file in graph/ops/ with one table at its end; builtin/operators.c lists the tables. A
 * row has the operator's signature and attrs as text, in the syntax of TensorFlow's REGISTER_OP, its shape function,
 * and what passes need to know of it. Nothing outside of the family's files compares names of operators: the registry,
 * import and export, the typed builders of ops.h, planning, the check against TensorFlow's own OpDef and the operator
 * tests all read the rows. Gradients are in tables of their own, in FAMILY_gradient.c, because they use the builders
 * that are generated from the rows.
 *
 * Signature:  "input: T, filter: T -> output: T", "values: N * T, axis: Tidx -> output: T", "ref: Ref(T)",
 *             "components: Toutput_types" (a list(type) attr), "-> handle: resource".
 * Attrs:      "T: {float, double}; N: int >= 1; axis: int = 0; padding: {'SAME', 'VALID'}; shape: shape = {}". */
#ifndef MR_GRAPH_IR_OP_H
#define MR_GRAPH_IR_OP_H

#include "base/arena.h"
#include "base/attr.h"
#include <millrace/graph.h>

typedef struct mr_op mr_op;

/* A small integer tensor (rank 0 or 1) that is partially known while the graph is built: element i is values[i] if bit
 * i of known is set. Shapes that operators compute are inferred from it. */
#define MR_PARTIAL_MAX 64
typedef struct mr_partial {
    int32_t rank;
    int32_t count;
    uint64_t known;
    int64_t *values;
} mr_partial;

/* Input and output of a shape function. Shapes may be unknown. constants[i] is the value of input i if it is known
 * while the graph is built (a Const, or a value folded from constants), else null; partials[i] is what is known of its
 * integers, else null. Everything is borrowed. */
typedef struct mr_shape_call {
    const char *node_name;
    const mr_op *op;
    const mr_attrs *attrs;
    int32_t input_count;
    const mr_shape *inputs;
    const mr_dtype *input_dtypes;
    const mr_tensor *const *constants;
    const mr_partial *const *partials;
    const mr_shape *input_handles; /* of a variable's handle: the variable's shape */
    int32_t output_count;
    mr_shape *outputs;        /* MR_SHAPE_UNKNOWN on entry */
    mr_shape *output_handles; /* likewise */
} mr_shape_call;
typedef mr_status (*mr_shape_function)(mr_shape_call *call, mr_error *error);

/* Shape functions report only the reason; the registry prepends the node and the shapes of its inputs. Helpers: */
mr_status mr_shape_merge(mr_shape a, mr_shape b, mr_shape *merged, mr_error *error);
mr_status mr_shape_with_rank(mr_shape shape, int32_t rank, mr_shape *result, mr_error *error);
mr_status mr_shape_at_least(mr_shape shape, int32_t rank, mr_error *error);
mr_status mr_shape_broadcast(mr_shape a, mr_shape b, mr_shape *result, mr_error *error);
mr_status mr_shape_from_constant(const mr_tensor *constant, mr_shape *shape, mr_error *error); /* null: unknown rank */
mr_status mr_shape_unchanged(mr_shape_call *call, mr_error *error);                            /* output 0 as input 0 */
mr_status mr_shape_each(mr_shape_call *call, mr_error *error);                                 /* output i as input i */
mr_status mr_shape_scalar(mr_shape_call *call, mr_error *error);                               /* every output */
mr_status mr_shape_unknown(mr_shape_call *call, mr_error *error);
mr_status mr_shape_binary(mr_shape_call *call, mr_error *error);    /* broadcast of inputs 0 and 1 */
mr_status mr_shape_merge_all(mr_shape_call *call, mr_error *error); /* all inputs and output 0 have one shape */
/* Input `index` must be a scalar, a vector, a matrix, … or of unknown rank; otherwise the error names the input. */
mr_status mr_shape_expect_rank(const mr_shape_call *call, int32_t index, int32_t rank, mr_error *error);
/* Merges two sizes; -1 is unknown. */
mr_status mr_size_merge(int64_t a, int64_t b, int64_t *merged, mr_error *error);
/* The shape in input `index`, a vector of sizes in which -1 is unknown. The rank is unknown if nothing is known. */
mr_status mr_shape_from_input(const mr_shape_call *call, int32_t index, mr_shape *shape, mr_error *error);
/* The value of input `index` if it is a known integer scalar. */
bool mr_shape_input_integer(const mr_shape_call *call, int32_t index, int64_t *value);
/* Maps an axis in [-rank, rank) to [0, rank). */
mr_status mr_shape_axis(int64_t axis, int32_t rank, int32_t *result, mr_error *error);

/* Input and output of a gradient function: the node and d/d(output i) in grad_outputs[i] ({0} if nothing depends on
 * it); the function stores d/d(input i), and leaves {0} where there is none. It uses the public builders; the scope is
 * already set. */
typedef struct mr_gradient_call {
    mr_graph *graph;
    mr_node *node;
    const mr_output *grad_outputs;
    mr_output *grad_inputs;
} mr_gradient_call;
typedef void (*mr_gradient_function)(mr_gradient_call *call);

typedef struct mr_gradient {
    const char *op;
    mr_gradient_function function;
} mr_gradient;

typedef struct mr_gradient_table {
    const mr_gradient *gradients;
    size_t count;
} mr_gradient_table;

/* Computes what is known of one output's value while the graph is built; false if nothing is known. See
 * graph/ir/fold.h. */
typedef struct mr_folding mr_folding;
typedef bool (*mr_fold_function)(mr_folding *folding);

/* Operators of conditionals and loops, which the session runs itself. */
typedef enum mr_flow {
    MR_FLOW_NONE,
    MR_FLOW_SWITCH,         /* forwards input 0 to one of two outputs */
    MR_FLOW_MERGE,          /* forwards the input that has a value. An edge from MR_FLOW_NEXT_ITERATION closes a loop */
    MR_FLOW_ENTER,          /* forwards its input into a loop */
    MR_FLOW_EXIT,           /* forwards its input out of a loop */
    MR_FLOW_NEXT_ITERATION, /* forwards its input to the next iteration */
    MR_FLOW_TRIGGER,        /* runs even if its control inputs do not */
} mr_flow;

typedef enum mr_op_flags {
    MR_OP_STATEFUL = 1 << 0, /* neither folded nor merged with equal nodes: random numbers, variables, files */
    MR_OP_COMMUTATIVE = 1 << 1,
    MR_OP_AGGREGATE = 1 << 2,
    MR_OP_NOT_DIFFERENTIABLE = 1 << 3, /* gradients stop here without an error (Shape, ArgMax, …) */
    MR_OP_ALLOWS_UNINITIALIZED = 1 << 4,
    MR_OP_CONSTANT = 1 << 5,    /* the output is the attr "value" */
    MR_OP_PLACEHOLDER = 1 << 6, /* if it is fed, control edges from it have no effect */
    MR_OP_GET_NEXT = 1 << 7,    /* the outputs are an element of iterator input 0, on the device of its pipeline */
    MR_OP_VIEW = 1 << 8,        /* output 0 may share the buffer of input 0 or of its variable */
    MR_OP_CALL = 1 << 9,        /* calls the function of that name in the graph's library */
    MR_OP_WAITS = 1 << 10,      /* may wait for another call of the same run, or of another one: queues */
    MR_OP_IDENTITY = 1 << 11,   /* output 0 is input 0, the only one */
    MR_OP_TRAINS = 1 << 12,     /* a step of an optimizer on a variable by handle */
    MR_OP_REPEATS = 1 << 13,    /* the output is a few numbers, repeated: it is computed as fast as it is read */
} mr_op_flags;

/* What an operator is to its neighbors in a fusion. */
typedef enum mr_fusion_role {
    MR_FUSION_NONE,
    MR_FUSION_ADD, /* of two operands, which may be broadcast */
    MR_FUSION_SUM, /* of any number of operands of one shape */
    MR_FUSION_MUL, /* of two operands, which may be broadcast */
    MR_FUSION_BIAS_ADD,
    MR_FUSION_RELU,
    MR_FUSION_SHAPE,
    MR_FUSION_RELU_GRAD,
    MR_FUSION_LEAKY_RELU,
    MR_FUSION_LEAKY_RELU_GRAD,
    MR_FUSION_MAX_POOL,
    MR_FUSION_MAX_POOL_GRAD,
    MR_FUSION_SQRT,
    MR_FUSION_DIV,         /* of two operands, which may be broadcast */
    MR_FUSION_ASSIGN,      /* to a variable by reference */
    MR_FUSION_SCATTER_ADD, /* the same */
    MR_FUSION_TRANSPOSE,
} mr_fusion_role;

/* A kernel that computes neighboring nodes. It is used if the values between them have no other reader. */
typedef struct mr_fusion {
    const char *kernel;      /* for this operator together with its neighbor */
    mr_fusion_role consumer; /* of the operator that reads output 0; or none */
    mr_fusion_role producer; /* of the operator that computes input 0; or none */
    const char *activation;  /* the kernel's attr activation_mode */
    const char *sum; /* the kernel for a sum (AddN) of several of these: all first inputs, then all second ones, … */
    /* A matrix product: the kernels for a product that is added to a matrix (AddV2), for one to which a vector is added
     * (BiasAdd, AddV2), and for the transpose of b, which several share. */
    const char *accumulate, *bias, *transpose;
    /* MaxPool: the kernel whose output 1 has the positions of the maxima. MaxPoolGrad: those that read them, also
     * together with ReluGrad. */
    const char *positions, *relu_positions;
    const char *recompute; /* a normalization: the kernel that computes output 0 again */
    int32_t gradient;      /* a step of an optimizer: the input that the kernel multiplies by a number, a last input */
    const char *heads;     /* a batched product: the kernel that reads and writes heads in place */
    const char *adam;      /* AssignSub: the kernel that also moves the slots of Adam on sparse gradients */
    const char *scaled;    /* a loss: the kernel whose output 1 is multiplied by a column (Mul), its third input */
} mr_fusion;

struct mr_op {
    const char *name;
    const char *signature;
    const char *attrs;
    mr_shape_function shape;
    mr_fold_function fold; /* null: nothing is known of the outputs' values while the graph is built */
    mr_fusion_role role;   /* what it is to operators that are fused with it */
    mr_fusion fusion;
    unsigned flags;
    mr_flow flow;
    uint32_t writes; /* inputs, references or handles, whose variable or other resource it changes: bit i is input i */
    const char *builder; /* the builder's name in ops.h; null: TensorFlow's name in snake case */
    const char *doc;
    /* Another name of this operator. Its signature, and attrs if they are null here, are of that operator's row, which
     * has no same_as; so are its shape function, its flags, its kernels and its gradient. */
    const char *same_as;
};
/* The operator whose kernels it has. */
static inline const char *mr_op_kernel_name(const mr_op *op)
{
    return op->same_as != nullptr ? op->same_as : op->name;
}

typedef struct mr_op_table {
    const mr_op *ops;
    size_t count;
} mr_op_table;

/* ---- The signature, parsed on first use of each operator ---- */

typedef struct mr_op_argument {
    const char *name;
    mr_dtype dtype;          /* fixed, or MR_DTYPE_INVALID if an attr specifies it */
    const char *type_attr;   /* "T" */
    const char *number_attr; /* "N" of "N * T" */
    const char *types_attr;  /* a list(type) attr: one argument of several dtypes */
    bool is_ref;
} mr_op_argument;

typedef struct mr_op_attr {
    const char *name;
    mr_attr_kind kind;
    bool is_list;
    bool has_default;
    mr_attr_value default_value; /* for a list: default_list */
    mr_attr default_list;
    bool has_minimum;
    int64_t minimum;
    uint32_t allowed_types;       /* bit i: dtype i; 0: any */
    int32_t allowed_string_count; /* 0: any */
    const char *const *allowed_strings;
} mr_op_attr;

typedef struct mr_op_def {
    const mr_op *op;
    mr_gradient_function gradient; /* null: none, see MR_OP_NOT_DIFFERENTIABLE */
    int32_t input_count;
    const mr_op_argument *inputs;
    int32_t output_count;
    const mr_op_argument *outputs;
    int32_t attr_count;
    const mr_op_attr *attrs;
} mr_op_def;

/* Register all tables; the lists are borrowed permanently. Call each once, before the first lookup. */
void mr_op_tables_register(const mr_op_table *const *tables, size_t count);
void mr_gradient_tables_register(const mr_gradient_table *const *tables, size_t count);

/* Null if there is no such operator. Thread-safe. */
const mr_op_def *mr_op_find(const char *name);
int32_t mr_op_count(void);
const mr_op_def *mr_op_at(int32_t index); /* sorted by name */

#endif
