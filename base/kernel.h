/* Kernel: the code that computes one operator on one kind of device.
 *
 * A family of kernels is one file with one table at its end; kernels/kernels.c lists the tables. A kernel reads its
 * attributes once, in prepare, into a small struct of its own; run is then called every step, from one thread at a time
 * for each node, and uses call->device->pool for its loops. Kernels keep no state between steps: what must live longer
 * belongs to graph/state/. */
#ifndef MR_BASE_KERNEL_H
#define MR_BASE_KERNEL_H

#include "base/attr.h"
#include "base/device.h"
#include "base/random.h"

typedef struct mr_kernel mr_kernel;

/* What is fixed about a node, as a kernel sees it. Everything is borrowed and outlives the prepared kernel. */
typedef struct mr_kernel_node {
    const char *name; /* with its scope, for errors */
    const char *op;
    const mr_attrs *attrs; /* all attrs of the operator, defaults filled in */
    int32_t input_count;
    int32_t output_count;
    const mr_dtype *input_dtypes; /* without MR_DTYPE_REF */
    const mr_dtype *output_dtypes;
    const mr_device *device;
    uint32_t host_outputs; /* the kernel's */
} mr_kernel_node;

/* What the session keeps for a random operator over all its runs, plans and growths of the graph, and saves with the
 * variables, so that a resumed run draws what the unbroken one would have drawn. */
typedef struct mr_kernel_random {
    uint64_t seed,
        seed2;      /* drawn from the system by the session: used when the node's attrs are both 0, as TensorFlow */
    uint64_t draws; /* samples of 128 bits reserved so far */
} mr_kernel_random;

/* One execution of one node.
 * inputs   borrowed. Where may_reuse[i] is true the buffer is the caller's alone and the kernel may write its output
 *          into it (mr_kernel_forward does so)
 * outputs  empty on entry; the kernel makes each one, with mr_kernel_output or mr_kernel_forward or by itself */
typedef struct mr_kernel_call {
    const mr_kernel_node *node;
    const void *prepared; /* what prepare filled; null without one */
    mr_device *device;
    mr_tensor *inputs;
    const bool *may_reuse;
    mr_tensor *outputs;
    void *state;              /* graph/state/ operators: what the session keeps for this node; null elsewhere */
    uint64_t invocation;      /* times this node ran in this session before */
    mr_kernel_random *random; /* stateful operators: see mr_kernel_reserve; null elsewhere */
    void *session;            /* for graph/state/ only */
} mr_kernel_call;

typedef mr_status (*mr_kernel_run)(mr_kernel_call *call, mr_error *error);
typedef mr_status (*mr_kernel_prepare)(const mr_kernel_node *node, void *prepared, mr_error *error);

struct mr_kernel {
    const char *op;
    mr_device_kind device;
    /* Which type attrs it serves: "T: float, double; Tidx: int32, int64". Null: all that the operator allows. */
    const char *types;
    mr_kernel_run run;
    size_t prepared_size_bytes; /* 0: no prepare */
    mr_kernel_prepare prepare;
    /* Inputs that stay in host memory on a GPU (shapes, axes), and outputs likewise: bit i is input i; bit 31 all. */
    uint32_t host_inputs;
    uint32_t host_outputs;
    /* Inputs that are variables to change in place, by reference or by resource handle: bit i is input i. The session
     * gives the variable's value there — initialised, unshared, on the kernel's device — and holds the variable for the
     * call; the kernel writes the elements of inputs[i] and leaves the tensor as it is. Outputs that are references are
     * made by the session. So an optimizer's kernel is plain numbers, on every device. */
    uint32_t updates;
};

typedef struct mr_kernel_table {
    const mr_kernel *kernels;
    size_t count;
} mr_kernel_table;

/* The kernel of an operator on a device that serves these attrs, or null. Tables are registered at start. */
void mr_kernel_table_register(const mr_kernel_table *table);
const mr_kernel *mr_kernel_find(const char *op, mr_device_kind device, const mr_attrs *attrs);
/* For listings: calls visit for every registered kernel. */
void mr_kernel_each(void (*visit)(void *context, const mr_kernel *kernel), void *context);

/* Makes output `index` on the call's device with the node's dtype. */
mr_status mr_kernel_output(mr_kernel_call *call, int index, mr_shape shape, mr_error *error);
/* Makes output `index` from input `input` in place when that may be reused and has the bytes, else as mr_kernel_output.
 * The elements are then the input's or not set: read each before writing it. */
mr_status mr_kernel_forward(mr_kernel_call *call, int index, int input, mr_shape shape, mr_error *error);
/* The generator of a random operator at its place in the session's sequence, after which samples of 128 bits are taken:
 * TensorFlow's GuardedPhiloxRandom::ReserveSamples128. seed, seed2: the node's attrs. */
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
/* mr_fail_prefix with the node: "conv1/Conv2D (Conv2D): input has 3 channels, filter 4". */
[[gnu::format(printf, 4, 5)]] mr_status mr_kernel_fail(const mr_kernel_node *node, mr_error *error, mr_status status,
                                                       const char *format, ...);

#endif
