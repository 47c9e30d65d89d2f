/* Use of iterators by their handles, from any thread and from graphs. The handle's entry is pinned during each call. */
#include "base/arguments.h"
#include "pipeline/handle.h"

#include "pipeline/pipeline.h"

static mr_status next_by_handle(const mr_tensor *handle, const mr_element_spec *spec, mr_element *element,
                                mr_error *error)
{
    mr_handle acquired;
    mr_iterator *iterator = nullptr;
    MR_TRY(mr_handle_acquire(handle, &acquired, &iterator, error));
    mr_status status = spec == nullptr ? MR_OK : mr_spec_check(mr_iterator_spec(iterator), spec, error);
    if (status == MR_OK) status = mr_iterator_next(iterator, element, error);
    mr_handle_release(acquired);
    if (status != MR_OK || spec == nullptr) return status;
    mr_element_spec found = {.count = element->count};
    for (int32_t i = 0; i < element->count; i++) {
        found.dtypes[i] = element->tensors[i].dtype;
        found.shapes[i] = element->tensors[i].shape;
    }
    return mr_spec_check(&found, spec, error);
}

mr_status mr_iterator_next_by_handle(const mr_tensor *handle, const mr_element_spec *spec, mr_element *element,
                                     mr_error *error)
{
    MR_REFUSE_NULL(handle, error);
    MR_REFUSE_NULL(element, error);
    mr_status status = next_by_handle(handle, spec, element, error);
    if (status != MR_OK) mr_element_deinit(element);
    return status;
}

mr_status mr_iterator_save_by_handle(const mr_tensor *handle, mr_tensor *state, mr_error *error)
{
    MR_REFUSE_NULL(handle, error);
    MR_REFUSE_NULL(state, error);
    mr_handle acquired;
    mr_iterator *iterator = nullptr;
    MR_TRY(mr_handle_acquire(handle, &acquired, &iterator, error));
    mr_status status = mr_iterator_save(iterator, state, error);
    mr_handle_release(acquired);
    return status;
}

mr_status mr_iterator_restore_by_handle(const mr_tensor *handle, const mr_tensor *state, mr_error *error)
{
    MR_REFUSE_NULL(handle, error);
    MR_REFUSE_NULL(state, error);
    mr_handle acquired;
    mr_iterator *iterator = nullptr;
    MR_TRY(mr_handle_acquire(handle, &acquired, &iterator, error));
    mr_status status = mr_iterator_restore(iterator, state, error);
    mr_handle_release(acquired);
    return status;
}
