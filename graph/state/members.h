/* Tensors as elements of stacks, arrays and lists: checks, rows, sums and concatenation. An element of dtype
 * MR_DTYPE_INVALID is not set. */
#ifndef MR_GRAPH_STATE_MEMBERS_H
#define MR_GRAPH_STATE_MEMBERS_H

#include "graph/state/state.h"
#include "kernels/common.h"

/* What a stack or an array starts with. */
typedef struct mr_holder {
    mr_resource resource;
    uint64_t number; /* in creation order, of all of the process */
} mr_holder;

/* What a list or an optional starts with. It never changes while more than one tensor refers to it. */
typedef struct mr_variant {
    mr_resource resource;
    int32_t depth;   /* 1, or more if an element is a variant: it is freed recursively, so this is limited */
    uint64_t oldest; /* the least number of a stack or an array that it refers to; UINT64_MAX: none */
} mr_variant;

/* A new holder or variant, with one reference. */
mr_status mr_holder_new(const mr_resource_class *class, mr_holder **holder, mr_error *error);
mr_status mr_variant_new(const mr_resource_class *class, mr_variant **variant, mr_error *error);
/* The variant that a scalar tensor of dtype MR_VARIANT refers to, or null. Borrowed. */
mr_variant *mr_tensor_variant(const mr_tensor *tensor);
/* Checks that a stack or an array may refer to the tensor: only to stacks and arrays that are newer than itself, as
 * loops inside of loops create them. References therefore never form a cycle.
 * errors  MR_UNIMPLEMENTED */
mr_status mr_holder_check(const mr_kernel_call *call, const mr_holder *holder, const mr_tensor *element,
                          mr_error *error);
/* Checks that a variant may refer to the tensor, and updates its depth and its oldest holder.
 * errors  MR_UNIMPLEMENTED */
mr_status mr_variant_check(const mr_kernel_call *call, mr_variant *variant, const mr_tensor *element, mr_error *error);

static inline bool mr_member_is_set(const mr_tensor *element)
{
    return element->dtype != MR_DTYPE_INVALID;
}
static inline bool mr_shape_is_known(mr_shape shape)
{
    for (int32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) return false;
    return shape.rank >= 0;
}
/* Merges two shapes, with TensorFlow's message if they contradict each other. */
mr_status mr_member_merge(const mr_kernel_call *call, mr_shape a, mr_shape b, mr_shape *merged, mr_error *error);
/* The shape without dimension 0. */
mr_shape mr_shape_tail(mr_shape shape);
/* size, followed by the dims of shape. */
mr_status mr_shape_prepend(const mr_kernel_call *call, int64_t size, mr_shape shape, mr_shape *result, mr_error *error);

/* The scalar int32 of an input. what: "index must be a scalar", for the error. */
mr_status mr_member_int(const mr_kernel_call *call, int input, const char *what, int32_t *value, mr_error *error);

/* A reference to the input, of which rows can be kept; a copy if it belongs to a variable that may change. */
mr_status mr_members_source(const mr_kernel_call *call, int input, mr_tensor *source, mr_error *error);
/* Rows [begin, end) of a tensor; with `drop`, one row without dimension 0. Nothing is copied. */
mr_status mr_members_rows(const mr_tensor *source, int64_t begin, int64_t end, bool drop, mr_tensor *rows,
                          mr_error *error);

/* Zeros of a dtype; for strings empty ones, for a variant one without a value. */
mr_status mr_members_zeros(const mr_kernel_call *call, mr_dtype dtype, mr_shape shape, mr_tensor *zeros,
                           mr_error *error);
/* Whether mr_members_add supports the dtype. */
bool mr_members_can_add(mr_dtype dtype);
/* *sum = a + b, which have the same shape and a dtype that can be added. sum is a new tensor unless it is a itself,
 * whose buffer is then changed. */
mr_status mr_members_add(const mr_kernel_call *call, const mr_tensor *a, const mr_tensor *b, mr_tensor *sum,
                         mr_error *error);

/* Output `index`, into which elements are copied one after another. */
typedef struct mr_joined {
    mr_sink sink;
    int64_t used;
} mr_joined;
/* errors  MR_UNIMPLEMENTED for handles and variants, of which there are only scalars */
mr_status mr_joined_init(mr_kernel_call *call, int index, mr_shape shape, mr_joined *join, mr_error *error);
/* Appends the element, or `zeros` zeros if it is not set. */
void mr_joined_add(mr_joined *join, const mr_tensor *element, int64_t zeros);
/* Must be called after a successful init. */
mr_status mr_joined_finish(mr_kernel_call *call, mr_joined *join, mr_error *error);

#endif
