/* Exchange of tensors by DLPack: import (millrace/dlpack.h). Everything in the structs is checked, except that the
 * addresses they contain are those of their arrays. */
#include "base/dlpack.h"

#include "base/buffer.h"
#include "base/device.h"
#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The other library's struct, in one of the two forms. */
typedef struct source {
    struct DLManagedTensorVersioned *versioned;
    struct DLManagedTensor *unversioned;
    mr_device *device; /* retained; null: host memory */
} source;

static void call_deleter(const source *s)
{
    assert((s->versioned == nullptr) != (s->unversioned == nullptr));
    if (s->versioned != nullptr && s->versioned->deleter != nullptr) s->versioned->deleter(s->versioned);
    if (s->unversioned != nullptr && s->unversioned->deleter != nullptr) s->unversioned->deleter(s->unversioned);
}

static void release_source(void *context, void *data)
{
    source *s = context;
    (void)data;
    /* Steps that use the memory may still be queued. Their failure is reported by the next wait for their results. */
    if (s->device != nullptr) (void)s->device->functions->wait(s->device, nullptr);
    call_deleter(s);
    mr_device_close(s->device);
    free(s);
}

/* ---- Checks ---- */

typedef struct layout {
    mr_dtype dtype;
    mr_shape shape;
    size_t item_bytes, size_bytes; /* of an element, and of all elements without gaps */
    char *first;                   /* the element whose indices are all 0 */
    int64_t steps[MR_RANK_MAX];    /* in bytes; 0 for dimensions of size 1 */
    bool is_row_major, is_aligned;
} layout;

static mr_status read_dtype(const mr_dlpack_tensor *from, layout *l, mr_error *error)
{
    for (int dtype = 1; dtype < MR_DTYPE_COUNT; dtype++) {
        uint8_t code = 0;
        if (!mr_dlpack_dtype_code((mr_dtype)dtype, &code) || code != from->code) continue;
        l->item_bytes = mr_dtype_size((mr_dtype)dtype);
        if (8 * l->item_bytes != from->bits || from->lanes != 1) continue;
        l->dtype = (mr_dtype)dtype;
        return MR_OK;
    }
    return mr_fail(error, MR_UNIMPLEMENTED, "DLPack: no dtype has code %d, %d bits and %d lanes", from->code,
                   from->bits, from->lanes);
}

static mr_status read_shape(const mr_dlpack_tensor *from, layout *l, mr_error *error)
{
    if (from->rank < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: ndim is %d", from->rank);
    if (from->rank > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "DLPack: ndim is %d, expected at most %d", from->rank, MR_RANK_MAX);
    if (from->rank > 0 && from->dims == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: shape is null");
    l->shape.rank = from->rank;
    for (int32_t i = 0; i < from->rank; i++) {
        l->shape.dims[i] = from->dims[i];
        if (from->dims[i] < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: dimension %d has size %lld", i,
                           (long long)from->dims[i]);
    }
    int64_t count = mr_shape_count(l->shape);
    if (count < 0 || __builtin_mul_overflow((size_t)count, l->item_bytes, &l->size_bytes) ||
        l->size_bytes > PTRDIFF_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: the tensor has too many elements");
    return MR_OK;
}

/* Converts the strides to bytes, and checks that no element's address overflows. */
static mr_status read_strides(const mr_dlpack_tensor *from, layout *l, mr_error *error)
{
    int64_t dense = (int64_t)l->item_bytes, low = 0, high = (int64_t)l->item_bytes;
    bool overflows = false;
    l->is_row_major = true;
    for (int32_t i = from->rank; i-- > 0;) {
        int64_t size = l->shape.dims[i], extent = 0;
        if (size == 1) continue;
        l->steps[i] = dense;
        if (from->strides != nullptr)
            overflows |= __builtin_mul_overflow(from->strides[i], (int64_t)l->item_bytes, &l->steps[i]);
        l->is_row_major &= l->steps[i] == dense;
        overflows |= __builtin_mul_overflow(l->steps[i], size - 1, &extent);
        int64_t *end = extent < 0 ? &low : &high;
        overflows |= __builtin_add_overflow(*end, extent, end);
        dense *= size; /* at most size_bytes */
    }
    uintptr_t address = (uintptr_t)l->first, end = 0;
    uint64_t below = low < 0 ? 0 - (uint64_t)low : 0;
    if (overflows || below > address || __builtin_add_overflow(address, (uintptr_t)high, &end))
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: the strides exceed the address space");
    return MR_OK;
}

static mr_status read_layout(const mr_dlpack_tensor *from, layout *l, mr_error *error)
{
    *l = (layout){0};
    MR_TRY(read_dtype(from, l, error));
    MR_TRY(read_shape(from, l, error));
    if (l->size_bytes == 0) return MR_OK;
    if (from->data == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: data is null");
    uintptr_t address = 0;
    if (__builtin_add_overflow((uintptr_t)from->data, from->byte_offset, &address))
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: byte_offset is %llu",
                       (unsigned long long)from->byte_offset);
    l->first = (char *)from->data + from->byte_offset;
    bool is_complex = from->code == MR_DLPACK_COMPLEX;
    l->is_aligned = address % (is_complex ? l->item_bytes / 2 : l->item_bytes) == 0;
    return read_strides(from, l, error);
}

/* Any other byte than 0 and 1 in a bool is undefined behavior. */
static mr_status check_bools(const layout *l, const char *elements, mr_error *error)
{
    if (l->dtype != MR_BOOL) return MR_OK;
    for (size_t i = 0; i < l->size_bytes; i++)
        if ((unsigned char)elements[i] > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: element %zu is a bool with the value %d", i,
                           (unsigned char)elements[i]);
    return MR_OK;
}

/* ---- Elements ---- */

/* Copies the elements of dimensions from `dimension` on, in row-major order; returns the end of the copy. */
static char *copy_elements(const layout *l, int32_t dimension, const char *from, char *to)
{
    int32_t rank = l->shape.rank;
    assert(dimension <= rank && rank <= MR_RANK_MAX);
    if (dimension < rank - 1) {
        for (int64_t i = 0; i < l->shape.dims[dimension]; i++)
            to = copy_elements(l, dimension + 1, from + i * l->steps[dimension], to);
        return to;
    }
    int64_t count = rank == 0 ? 1 : l->shape.dims[dimension], step = rank == 0 ? 0 : l->steps[dimension];
    for (int64_t i = 0; i < count; i++, to += l->item_bytes) memcpy(to, from + i * step, l->item_bytes);
    return to;
}

static mr_status copy_to_host(const source *s, const layout *l, mr_tensor *tensor, mr_error *error)
{
    mr_tensor copy = {0};
    MR_TRY(mr_tensor_init(&copy, l->dtype, l->shape, error));
    if (l->size_bytes > 0) {
        char *end = copy_elements(l, 0, l->first, copy.data);
        assert(end == (char *)copy.data + l->size_bytes);
        (void)end;
    }
    mr_status status = check_bools(l, copy.data, error);
    if (status != MR_OK) {
        mr_tensor_deinit(&copy);
        return status;
    }
    call_deleter(s);
    *tensor = copy;
    return MR_OK;
}

static mr_status reference(const source *s, const layout *l, mr_tensor *tensor, mr_error *error)
{
    source *kept = malloc(sizeof *kept);
    if (kept == nullptr) return mr_fail_memory(error, sizeof *kept);
    *kept = *s;
    mr_buffer *buffer = nullptr;
    mr_status status = mr_buffer_wrap(l->first, l->size_bytes, release_source, kept, &buffer, error);
    if (status != MR_OK) {
        free(kept);
        return status;
    }
    buffer->is_external = true;
    buffer->device = s->device;
    *tensor = (mr_tensor){l->dtype, l->shape, buffer, l->first};
    return MR_OK;
}

static mr_status import_cuda(source *s, const mr_dlpack_tensor *from, const layout *l, mr_tensor *tensor,
                             mr_error *error)
{
    if (l->size_bytes > 0 && (!l->is_row_major || !l->is_aligned))
        return mr_fail(error, MR_UNIMPLEMENTED, "DLPack: the elements on the GPU are not contiguous and aligned");
    MR_TRY(mr_device_retain(MR_DEVICE_GPU, from->device_id, &s->device, error));
    mr_status status = MR_OK;
    if (l->size_bytes > 0) {
        status = reference(s, l, tensor, error);
        if (status == MR_OK) return MR_OK;
    } else {
        status = mr_tensor_init_on(tensor, s->device, l->dtype, l->shape, error);
        if (status == MR_OK) call_deleter(s);
    }
    mr_device_close(s->device);
    return status;
}

static mr_status import(source *s, const mr_dlpack_tensor *from, mr_tensor *tensor, mr_error *error)
{
    layout l;
    MR_TRY(read_layout(from, &l, error));
    if (from->device_type == MR_DLPACK_CUDA) return import_cuda(s, from, &l, tensor, error);
    if (from->device_type != MR_DLPACK_CPU && from->device_type != MR_DLPACK_CUDA_HOST)
        return mr_fail(error, MR_UNIMPLEMENTED, "DLPack: memory of device type %d cannot be used", from->device_type);
    if (l.size_bytes == 0 || !l.is_row_major || !l.is_aligned) return copy_to_host(s, &l, tensor, error);
    MR_TRY(check_bools(&l, l.first, error));
    return reference(s, &l, tensor, error);
}

static mr_status check_arguments(const char *function, const void *managed, mr_tensor *tensor, mr_error *error)
{
    if (tensor != nullptr) *tensor = (mr_tensor){0};
    if (managed != nullptr && tensor != nullptr) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is null", function, managed == nullptr ? "managed" : "tensor");
}

mr_status mr_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, mr_tensor *tensor, mr_error *error)
{
    MR_TRY(check_arguments("mr_tensor_from_dlpack", managed, tensor, error));
    if (managed->major != MR_DLPACK_MAJOR)
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: the struct has major version %u, expected %d",
                       managed->major, MR_DLPACK_MAJOR);
    return import(&(source){.versioned = managed}, &managed->tensor, tensor, error);
}

mr_status mr_tensor_from_dlpack_unversioned(struct DLManagedTensor *managed, mr_tensor *tensor, mr_error *error)
{
    MR_TRY(check_arguments("mr_tensor_from_dlpack_unversioned", managed, tensor, error));
    return import(&(source){.unversioned = managed}, &managed->tensor, tensor, error);
}
