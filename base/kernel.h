/* Kernels: the implementation of one operator on one kind of device.
 *
 * A family of kernels is one file with a table at its end; builtin/builtin.c lists the tables. A kernel reads its
 * attributes once, in prepare, into a small struct of its own. run is then called in every step, for each node from one
 * thread at a time, and uses call->device->pool for its loops. Kernels keep no state between steps; persistent state
 * belongs to graph/state/. */
#ifndef MR_BASE_KERNEL_H
#define MR_BASE_KERNEL_H

#include "base/attr.h"
#include "base/device.h"
#include "base/elementwise.h"
#include "base/random.h"

typedef struct mr_kernel mr_kernel;
typedef struct mr_run_context mr_run_context; /* graph/state/run.h */

/* The constant properties of a node. Everything is borrowed and outlives the prepared kernel. */
typedef struct mr_kernel_node {
    const char *name; /* including its scope; for error messages */
    const char *op;
    const mr_attrs *attrs; /* all attrs of the operator, including default values */
    int32_t input_count;
    int32_t output_count;
    const mr_dtype *input_dtypes; /* without MR_DTYPE_REF */
    const mr_dtype *output_dtypes;
    const mr_device *device;
    uint32_t host_outputs; /* of the kernel */
} mr_kernel_node;

/* The state of a random operator, kept by the session across runs, plans and extensions of the graph, and saved with
 * the variables. A resumed run therefore draws the same numbers as an uninterrupted one. */
typedef struct mr_kernel_random {
    uint64_t seed,
        seed2;      /* drawn from the system by the session; used if both seeds of the node are 0, as in TensorFlow */
    uint64_t draws; /* 128-bit samples reserved so far */
} mr_kernel_random;

/* One execution of one node.
 * inputs   borrowed. If may_reuse[i] is true, the caller owns the only reference, and the kernel may write its output
 *          into the buffer and take the reference (mr_kernel_forward does so): inputs[i].buffer is then null
 * outputs  empty on entry; the kernel creates each one, with mr_kernel_output, with mr_kernel_forward or by itself */
typedef struct mr_kernel_call {
    const mr_kernel_node *node;
    const void *prepared; /* filled by prepare; null if the kernel has none */
    mr_device *device;
    mr_tensor *inputs;
    const bool *may_reuse;
    mr_tensor *outputs;
    void *state;              /* graph/state/ operators: the session's state of this node; null otherwise */
    uint64_t invocation;      /* number of earlier runs of this node in this session */
    mr_kernel_random *random; /* stateful operators: see mr_kernel_reserve; null otherwise */
    mr_run_context *run;      /* of which the call is a part; null while planning */
    int32_t depth;            /* of calls of functions around it */
    /* Of an operator with MR_OP_WAITS. If it may not wait, and would have to, the kernel sets would_wait and returns
     * MR_OK without outputs and without any effect. It is called again later. */
    bool may_wait, would_wait;
} mr_kernel_call;

typedef mr_status (*mr_kernel_run)(mr_kernel_call *call, mr_error *error);
typedef mr_status (*mr_kernel_prepare)(const mr_kernel_node *node, void *prepared, mr_error *error);

struct mr_kernel {
    const char *op;
    mr_device_kind device;
    /* The type attrs it supports: "T: float, double; Tidx: int32, int64". Null: all that the operator allows. */
    const char *types;
    mr_kernel_run run;
    size_t prepared_size_bytes; /* 0: no prepare */
    mr_kernel_prepare prepare;
    /* Inputs (shapes, axes) and outputs that stay in host memory on a GPU: bit i is input or output i; bit 31 is
     * all. */
    uint32_t host_inputs;
    uint32_t host_outputs;
    /* Inputs that are variables to update in place, by reference or by resource handle: bit i is input i. The session
     * passes the variable's value, initialized, unshared and on the kernel's device, and locks the variable for the
     * call. The kernel writes the elements of inputs[i] and must not replace the tensor. The session creates outputs
     * that are references. An optimizer's kernel therefore only computes numbers, on every device. */
    uint32_t updates;
    /* CPU, elementwise operators: describes the kernel for inputs of that dtype; false if it needs more than a loop. Of
     * a kernel with two operands the loop is used instead of run if both are scalars: counters, conditions, losses. */
    bool (*elementwise)(mr_dtype dtype, mr_elementwise *elementwise);
};

typedef struct mr_kernel_table {
    const mr_kernel *kernels;
    size_t count;
} mr_kernel_table;

/* Finds the kernel of an operator on a device that supports these attrs, or null. Tables are registered at startup. */
void mr_kernel_table_register(const mr_kernel_table *table);
const mr_kernel *mr_kernel_find(const char *op, mr_device_kind device, const mr_attrs *attrs);
/* Calls visit for every registered kernel. */
void mr_kernel_each(void (*visit)(void *context, const mr_kernel *kernel), void *context);

/* Fails because a tensor of that shape, without negative sizes, has no memory or too many elements; with TensorFlow's
 * codes and messages. */
mr_status mr_kernel_fail_memory(const mr_kernel_call *call, mr_dtype dtype, mr_shape shape, mr_error *error);
/* Allocates output `index` on the call's device with the node's dtype. */
mr_status mr_kernel_output(mr_kernel_call *call, int index, mr_shape shape, mr_error *error);
/* Creates output `index` in place of input `input` if that buffer may be reused and has the same size in bytes,
 * otherwise as mr_kernel_output. The elements are then either the input's or uninitialized: read each one before
 * writing it. A reused buffer moves to the output: the input keeps its data and shape, but not its reference. */
mr_status mr_kernel_forward(mr_kernel_call *call, int index, int input, mr_shape shape, mr_error *error);
/* An input as an owned tensor: the caller's reference if it may be reused, otherwise another one. */
static inline mr_tensor mr_kernel_take(mr_kernel_call *call, int input)
{
    mr_tensor taken = call->inputs[input];
    if (call->may_reuse && call->may_reuse[input])
        call->inputs[input].buffer = nullptr;
    else
        (void)mr_buffer_ref(taken.buffer);
    return taken;
}
/* The generator of a random operator, at its position in the session's sequence; reserves `samples` 128-bit samples.
 * TensorFlow's GuardedPhiloxRandom::ReserveSamples128.
 * seed, seed2  the node's attrs */
static inline mr_philox mr_kernel_reserve(mr_kernel_call *call, uint64_t seed, uint64_t seed2, uint64_t samples)
{
    mr_kernel_random *random = call->random;
    if (random && seed == 0 && seed2 == 0) {
        seed = random->seed;
        seed2 = random->seed2;
    }
    mr_philox philox = mr_philox_seed(seed, seed2);
    if (random) mr_philox_skip(&philox, __atomic_fetch_add(&random->draws, samples, __ATOMIC_RELAXED));
    return philox;
}
/* Reports an error prefixed with the node: "conv1/Conv2D (Conv2D): input has 3 channels, but filter has 4". */
[[gnu::format(printf, 4, 5)]] mr_status mr_kernel_fail(const mr_kernel_node *node, mr_error *error, mr_status status,
                                                       const char *format, ...);

/* The error of an operator that has no kernel for the types of the node: MR_INVALID_ARGUMENT. */
mr_status mr_kernel_unsupported(const mr_kernel_node *node, mr_error *error);

#endif
