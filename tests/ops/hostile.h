/* Hostile input for every operator: each row's valid sample is mutated in one to three places, built into a graph and
 * run in a session. No case may crash, hang, allocate without bound or contradict the inferred shape. */
#ifndef MR_TESTS_OPS_HOSTILE_H
#define MR_TESTS_OPS_HOSTILE_H

#include "base/random.h"
#include "graph/ir/graph.h"
#include "graph/ir/signature.h"
#include "tests/ops/sample.h"
#include "tests/test.h"
#include <millrace/session.h>

enum { HOSTILE_INPUTS_MAX = 20, HOSTILE_VALUES_MAX = 24, HOSTILE_ATTRS_MAX = 16, HOSTILE_OUTPUTS_MAX = 40 };

typedef enum hostile_form {
    HOSTILE_TENSOR,
    HOSTILE_REF,            /* a variable by reference */
    HOSTILE_HANDLE,         /* a variable by handle */
    HOSTILE_OTHER_HANDLE,   /* the handle of an iterator */
    HOSTILE_NAMED_HANDLE,   /* the handle that the operator `text` gives */
    HOSTILE_NULL_HANDLE,    /* a fed resource tensor without a resource */
    HOSTILE_FIRST_VARIABLE, /* the variable of the first input again */
    HOSTILE_LIST,           /* a list of the rows of the tensor */
    HOSTILE_OPTIONAL,       /* an optional with the tensor */
    HOSTILE_STACK,          /* a stack with the tensor */
    HOSTILE_ARRAY,          /* an array of the rows of the tensor */
} hostile_form;

/* How the operator gets a tensor. */
typedef enum hostile_source {
    HOSTILE_CONST,
    HOSTILE_FED,         /* the placeholder has the shape of the value */
    HOSTILE_FED_PARTIAL, /* the placeholder's shape specifies every second size */
    HOSTILE_FED_UNKNOWN, /* the placeholder's rank is unknown */
    HOSTILE_SOURCE_COUNT
} hostile_source;

typedef struct hostile_input {
    hostile_form form;
    hostile_source source;
    mr_dtype dtype;
    mr_shape shape;
    bool opens_argument; /* the first tensor of an argument */
    bool is_uninitialized;
    int value_count; /* 0: the fixed pattern */
    int64_t values[HOSTILE_VALUES_MAX];
    int special; /* for a float: 1 + an index into the special numbers, for the first element; 0: none */
    const char *text;
} hostile_input;

typedef struct hostile_attr {
    const char *name;
    mr_attr_kind kind;
    bool is_list;
    int32_t count;
    int64_t ints[HOSTILE_VALUES_MAX]; /* ints, types and bools */
    float number;
    const char *text;
    mr_shape shape;
} hostile_attr;

typedef struct hostile_case {
    const mr_op_def *def;
    int input_count;
    hostile_input inputs[HOSTILE_INPUTS_MAX];
    int attr_count;
    hostile_attr attrs[HOSTILE_ATTRS_MAX];
    bool is_patient;     /* what an operator waits for is there, if late on a busy machine */
    bool with_gradients; /* after the operator, build and run its gradients with respect to its inputs */
} hostile_case;

/* The result of a run: the outputs if status is MR_OK. */
typedef struct hostile_result {
    mr_status status;
    bool was_built; /* graph construction accepted the node */
    mr_error error;
    int32_t output_count;
    mr_tensor outputs[HOSTILE_OUTPUTS_MAX];
} hostile_result;

/* Fails the test if the sample's text is invalid. */
void hostile_parse(const hostile_sample *sample, hostile_case *parsed);
/* Changes the case in one place. */
void hostile_mutate(hostile_case *changed, mr_random *random);
/* One line with the operator, its inputs and attrs. */
void hostile_describe(const hostile_case *described, char *text, size_t size_bytes);
/* Builds and runs the case. Fails the test if an output contradicts its inferred shape or dtype, or a gradient has
 * another shape than its input. */
void hostile_run(const hostile_case *run, hostile_result *result);
void hostile_result_deinit(hostile_result *result);
/* The value of an input. */
mr_status hostile_tensor(const hostile_input *input, mr_tensor *tensor, mr_error *error);

#endif
