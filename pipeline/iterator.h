/* Handles: identify iterators for other threads and graphs, also after the iterator has been freed.
 *
 * There is one table for each process. A handle is the index of an entry and the number of times the entry has been
 * used, so the handle of a freed iterator never identifies a later one. While an iterator is used by its handle, its
 * entry is pinned. Freeing the iterator first invalidates the entry, then cancels, and waits until no pin is left. */
#ifndef MR_PIPELINE_ITERATOR_H
#define MR_PIPELINE_ITERATOR_H

#include <millrace/dataset.h>

typedef struct mr_handle {
    uint32_t index;
    uint64_t generation;
} mr_handle;

mr_status mr_handle_new(mr_iterator *iterator, mr_handle *handle, mr_error *error);
/* Invalidates the handle and cancels the iterator. On return nobody uses the iterator by this handle. */
void mr_handle_retire(mr_handle handle, mr_iterator *iterator);
/* As an MR_STRING scalar. */
mr_status mr_handle_write(mr_handle handle, mr_tensor *tensor, mr_error *error);

/* Whether elements of spec `given` are valid where spec `wanted` is expected: equal dtypes, compatible shapes.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_spec_check(const mr_element_spec *given, const mr_element_spec *wanted, mr_error *error);

#endif
