/* Workspace: the memory that one worker keeps between elements, and the components of the element it is processing. */
#include "base/element.h"
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Maximum size of the record, the scratch memory and the image scratch, each, that is kept for the next element. */
constexpr size_t KEPT_BYTES = (size_t)4 << 20;

void mr_value_deinit(mr_value *value)
{
    mr_tensor_deinit(&value->tensor);
    value->data = nullptr;
    value->is_in_row = false;
}

void mr_workspace_clear(mr_workspace *workspace)
{
    assert(workspace->count >= 0 && workspace->count <= MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < workspace->count; i++) mr_value_deinit(&workspace->values[i]);
    mr_tensor_deinit(&workspace->keep);
    workspace->count = 0;
    workspace->is_dropped = false;
    mr_arena_reset(&workspace->scratch);
}

void mr_workspace_deinit(mr_workspace *workspace)
{
    mr_workspace_clear(workspace);
    mr_arena_deinit(&workspace->scratch);
    mr_image_scratch_free(workspace->image);
    mr_workspace_take_bytes(workspace, nullptr, 0);
    mr_element_clear_all(&workspace->output);
    mr_element_deinit(&workspace->output);
    *workspace = (mr_workspace){.reserve = workspace->reserve, .stop = workspace->stop};
}

void mr_workspace_take_bytes(mr_workspace *workspace, char *bytes, size_t size_bytes)
{
    assert(workspace->bytes != nullptr || workspace->capacity_bytes == 0);
    assert(bytes != nullptr || size_bytes == 0);
    if (workspace->is_mapped)
        munmap(workspace->bytes, workspace->capacity_bytes);
    else
        free(workspace->bytes);
    workspace->bytes = bytes;
    workspace->capacity_bytes = size_bytes;
    workspace->is_mapped = false;
}

mr_status mr_workspace_reserve(mr_workspace *workspace, size_t size_bytes, mr_error *error)
{
    if (size_bytes <= workspace->capacity_bytes) return MR_OK;
    /* A buffer that is kept gets room to grow; one that is freed after the element does not need it. */
    size_t capacity_bytes = size_bytes > KEPT_BYTES ? size_bytes : size_bytes + size_bytes / 2;
    mr_workspace_take_bytes(workspace, nullptr, 0);
    if (capacity_bytes <= KEPT_BYTES) {
        char *bytes = malloc(capacity_bytes);
        if (bytes == nullptr) return mr_fail_memory(error, capacity_bytes);
        mr_workspace_take_bytes(workspace, bytes, capacity_bytes);
        return MR_OK;
    }
    assert(workspace->bytes == nullptr && workspace->reserve != nullptr);
    /* mmap: malloc would keep the memory that one thread after the other frees. */
    workspace->reserve(workspace, capacity_bytes);
    char *bytes = mmap(nullptr, capacity_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return mr_fail_memory(error, capacity_bytes);
    mr_workspace_take_bytes(workspace, bytes, capacity_bytes);
    workspace->is_mapped = true;
    return MR_OK;
}

static size_t workspace_bytes(const mr_workspace *workspace)
{
    return workspace->capacity_bytes + workspace->scratch.allocated_bytes + mr_image_scratch_bytes(workspace->image) +
           (size_t)workspace->output.capacity * sizeof *workspace->output.tensors;
}

size_t mr_workspace_trim(mr_workspace *workspace)
{
    assert(workspace->count == 0);
    size_t size_bytes = workspace_bytes(workspace);
    if (size_bytes <= KEPT_BYTES) return size_bytes;
    if (workspace->capacity_bytes > KEPT_BYTES) mr_workspace_take_bytes(workspace, nullptr, 0);
    if (workspace->scratch.allocated_bytes > KEPT_BYTES) mr_arena_deinit(&workspace->scratch);
    if (mr_image_scratch_bytes(workspace->image) > KEPT_BYTES) {
        mr_image_scratch_free(workspace->image);
        workspace->image = nullptr;
    }
    return workspace_bytes(workspace);
}

void mr_value_take(mr_value *value, mr_tensor *tensor)
{
    assert(value->tensor.buffer == nullptr);
    value->dtype = tensor->dtype;
    value->shape = tensor->shape;
    value->data = tensor->data;
    value->is_in_row = false;
    value->tensor = *tensor;
    *tensor = (mr_tensor){0};
}

mr_status mr_value_to_tensor(mr_value *value, mr_tensor *tensor, mr_error *error)
{
    assert(mr_shape_count(value->shape) >= 0);
    if (value->tensor.buffer != nullptr) {
        *tensor = value->tensor;
        value->tensor = (mr_tensor){0};
        return MR_OK;
    }
    if (value->dtype == MR_STRING) return mr_tensor_init_strings(tensor, value->shape, value->data, error);
    return mr_tensor_init_copy(tensor, value->dtype, value->shape, value->data, error);
}

mr_element mr_workspace_view(mr_workspace *workspace)
{
    assert(workspace->count >= 0 && workspace->count <= MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < workspace->count; i++) {
        const mr_value *value = &workspace->values[i];
        workspace->input[i] = value->tensor.buffer != nullptr
                                  ? value->tensor
                                  : (mr_tensor){value->dtype, value->shape, nullptr, (void *)value->data};
    }
    return (mr_element){.count = workspace->count, .tensors = workspace->input};
}

mr_status mr_fail_out_of_range(mr_error *error)
{
    mr_error reason = error == nullptr ? (mr_error){0} : *error;
    return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned OUT_OF_RANGE: %s", reason.message);
}

mr_status mr_stage_fail_prefix(const mr_stage *stage, const char *what, uint64_t number, mr_status status,
                               mr_error *error)
{
    if (status == MR_OK) return MR_OK;
    if (status == MR_OUT_OF_RANGE) status = mr_fail_out_of_range(error);
    return mr_fail_prefix(error, status, "%s: %s %llu", stage->dataset->kind->name, what, (unsigned long long)number);
}
