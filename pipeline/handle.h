/* Handles: identify iterators for other threads and graphs, also after the iterator has been freed.
 *
 * There is one table for each process. A handle is the index of an entry and the number of times the entry has been
 * used, so the handle of a freed iterator never identifies a later one. While an iterator is used by its handle, its
 * entry is pinned. Freeing the iterator first invalidates the entry, then cancels, and waits until no pin is left. */
#ifndef MR_PIPELINE_HANDLE_H
#define MR_PIPELINE_HANDLE_H

#include <millrace/dataset.h>

typedef struct mr_handle {
    uint32_t index;
    uint64_t generation;
} mr_handle;

mr_status mr_handle_new(mr_iterator *iterator, mr_handle *handle, mr_error *error);
/* From here on the handle cannot be acquired. */
void mr_handle_invalidate(mr_handle handle);
/* Waits until every acquired handle has been released, then frees the entry. The handle must be invalid, and the
 * iterator cancelled, so that no caller waits in it. */
void mr_handle_free(mr_handle handle);
/* The iterator of a handle in a tensor. It is not freed until mr_handle_release.
 * errors  MR_INVALID_ARGUMENT: not a handle; MR_NOT_FOUND: the iterator has been freed or is in another process */
mr_status mr_handle_acquire(const mr_tensor *tensor, mr_handle *handle, mr_iterator **iterator, mr_error *error);
void mr_handle_release(mr_handle handle);
/* As an MR_STRING scalar. */
mr_status mr_handle_write(mr_handle handle, mr_tensor *tensor, mr_error *error);

#endif
