/* Lists of tensors, the objects behind TensorFlow's TensorList: variants with value semantics.
 *
 * A list refers to items, which any number of lists share; a list has the first `count` of them. An item never changes
 * while the items are shared. But a list that has all of them can be extended by a list with one more item, in the
 * memory behind them: so a loop that appends n elements takes O(n) time, even if earlier lists are still referenced. */
#ifndef MR_GRAPH_STATE_TENSOR_LIST_H
#define MR_GRAPH_STATE_TENSOR_LIST_H

#include "graph/state/members.h"

typedef struct mr_list_items {
    atomic_int_fast32_t references;
    _Atomic int64_t count; /* items that some list has, or had */
    int64_t capacity;
    mr_tensor at[];
} mr_list_items;

typedef struct mr_list {
    mr_variant variant;
    mr_dtype dtype;
    mr_shape element_shape; /* as far as it is known */
    int32_t max_count;      /* -1: any number */
    int64_t count;
    mr_list_items *items; /* null: none */
} mr_list;

extern const mr_resource_class mr_list_class;

/* Sets output `index` to a new list without elements. */
mr_status mr_list_new(mr_kernel_call *call, int index, mr_dtype dtype, mr_shape element_shape, mr_list **list,
                      mr_error *error);
/* The list of an input, or an error. Borrowed. */
mr_status mr_list_at(const mr_kernel_call *call, int input, const mr_list **list, mr_error *error);
/* Checks that the elements have the attr element_dtype. */
mr_status mr_list_check_dtype(const mr_kernel_call *call, const mr_list *list, mr_error *error);
/* Sets output 0 to a list that equals that of input 0 and may be changed: the same one if nothing else refers to it. */
mr_status mr_list_change(mr_kernel_call *call, mr_list **list, mr_error *error);
/* The functions below change a list that mr_list_new or mr_list_change returned. */
/* Removes elements from the end, or appends elements that are not set. */
mr_status mr_list_resize(mr_list *list, int64_t count, mr_error *error);
/* Makes the items the list's own, so that they may be assigned, with room for `count`. */
mr_status mr_list_own(mr_list *list, int64_t count, mr_error *error);
mr_status mr_list_push(const mr_kernel_call *call, mr_list *list, const mr_tensor *element, mr_error *error);
/* The list's items are its own. */
mr_status mr_list_set(const mr_kernel_call *call, mr_list *list, int64_t index, const mr_tensor *element,
                      mr_error *error);

/* The element shape in input `index`, in which a scalar -1 is an unknown one. */
mr_status mr_list_shape_input(const mr_kernel_call *call, int input, mr_shape *shape, mr_error *error);

#endif
