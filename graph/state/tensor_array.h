/* Arrays of tensors, the objects behind TensorFlow's TensorArray.
 *
 * An element is written once, and read at most once if the array clears what is read. The array of gradients of an
 * array is one for each source; it adds what is written to the same element, and belongs to the array, so references
 * never form a cycle. Every array has a mutex, which guards its elements; an array is locked before its gradients. */
#ifndef MR_GRAPH_STATE_TENSOR_ARRAY_H
#define MR_GRAPH_STATE_TENSOR_ARRAY_H

#include "graph/state/members.h"

typedef struct mr_array_item {
    mr_tensor tensor; /* not set, but written: zeros of its shape; after it was cleared, only the shape is valid */
    bool written, read, cleared;
    bool is_own; /* a sum, whose buffer nothing else uses */
} mr_array_item;

typedef struct mr_array_gradient {
    char *source;
    mr_holder *array; /* a reference */
    struct mr_array_gradient *next;
} mr_array_gradient;

typedef struct mr_array {
    mr_holder holder;
    pthread_mutex_t mutex;
    mr_dtype dtype;
    char *name;
    mr_shape element_shape; /* as far as it is known */
    bool is_dynamic;        /* a write may enlarge it */
    bool clears;            /* a read releases the element */
    bool is_common_shape;   /* the first element determines element_shape */
    bool is_gradient;
    bool was_summed;
    bool is_closed;
    int32_t size;
    int32_t marked_size; /* elements of the last split or unpack; -1: none */
    int32_t capacity;    /* items that are allocated; those after them have not been written */
    mr_array_item *items;
    mr_array_gradient *gradients;
} mr_array;

/* A new array with one reference. The name is copied, with a suffix if that is not null: "name@suffix". */
mr_status mr_array_new(mr_string name, const char *suffix, mr_dtype dtype, int32_t size, mr_array **array,
                       mr_error *error);
mr_status mr_array_at(const mr_kernel_call *call, int input, mr_array **array, mr_error *error);
/* Makes the array, with the caller's reference, output 0: a handle. The operators V2 have names as handles: the run
 * then keeps the array until it ends. */
mr_status mr_array_put(mr_kernel_call *call, mr_array *array, mr_error *error);
/* The array of gradients for the source, with a reference for the caller. The array cannot grow afterwards.
 * prefix  dimensions that the gradients have before those of the elements */
mr_status mr_array_grad(const mr_kernel_call *call, mr_array *array, mr_string source, mr_shape prefix,
                        mr_array **gradient, mr_error *error);
/* The functions below need the lock. */
mr_status mr_array_check_open(const mr_kernel_call *call, const mr_array *array, mr_error *error);
mr_status mr_array_write(const mr_kernel_call *call, mr_array *array, int32_t index, const mr_tensor *value,
                         mr_error *error);
mr_status mr_array_read(const mr_kernel_call *call, mr_array *array, int32_t index, mr_tensor *value, mr_error *error);
void mr_array_close(mr_array *array);

#endif
