/* Handles: names of iterators that another thread, or a graph, may keep, and that say so when the iterator is gone.
 *
 * One table for the process. A handle is a place in it and how often that place has been given out, so a handle of a freed
 * iterator never names the next one. Whoever uses an iterator by its handle pins the place; free takes the name away first,
 * cancels, and waits until nobody is in. */
#ifndef MR_PIPELINE_ITERATOR_H
#define MR_PIPELINE_ITERATOR_H

#include <millrace/dataset.h>

typedef struct mr_handle {
    uint32_t index;
    uint64_t generation;
} mr_handle;

mr_status mr_handle_new(mr_iterator *iterator, mr_handle *handle, mr_error *error);
/* Cancels the iterator; nobody uses it by the handle any more when it returns. */
void mr_handle_retire(mr_handle handle, mr_iterator *iterator);
/* As an MR_STRING scalar. */
mr_status mr_handle_write(mr_handle handle, mr_tensor *tensor, mr_error *error);

/* Whether elements of one spec may be taken for elements of another: the same dtypes, shapes that do not exclude each other.
 * errors  MR_INVALID_ARGUMENT in one sentence */
mr_status mr_spec_check(const mr_element_spec *given, const mr_element_spec *wanted, mr_error *error);

#endif
