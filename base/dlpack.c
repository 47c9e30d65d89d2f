/* Exchange of tensors by DLPack: export (millrace/dlpack.h). Import: dlpack_import.c. */
#include "base/dlpack.h"

#include "base/buffer.h"
#include "base/device.h"
#include "base/status.h"

#include <assert.h>
#include <stdlib.h>

/* One allocation: the struct that is handed out, and what it points to. */
typedef struct exported {
    union {
        struct DLManagedTensorVersioned versioned;
        struct DLManagedTensor unversioned;
    };
    mr_buffer *buffer; /* retained */
    int64_t dims[MR_RANK_MAX], strides[MR_RANK_MAX];
} exported;

static void exported_free(exported *e)
{
    mr_buffer_unref(e->buffer);
    free(e);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    exported_free(self->context);
}

static void delete_unversioned(struct DLManagedTensor *self)
{
    exported_free(self->context);
}

bool mr_dlpack_dtype_code(mr_dtype dtype, uint8_t *code)
{
    switch (dtype) {
    case MR_INT8:
    case MR_INT16:
    case MR_INT32:
    case MR_INT64:
        *code = MR_DLPACK_INT;
        return true;
    case MR_UINT8:
    case MR_UINT16:
    case MR_UINT32:
    case MR_UINT64:
        *code = MR_DLPACK_UINT;
        return true;
    case MR_HALF:
    case MR_FLOAT:
    case MR_DOUBLE:
        *code = MR_DLPACK_FLOAT;
        return true;
    case MR_BFLOAT16:
        *code = MR_DLPACK_BFLOAT;
        return true;
    case MR_COMPLEX64:
    case MR_COMPLEX128:
        *code = MR_DLPACK_COMPLEX;
        return true;
    case MR_BOOL:
        *code = MR_DLPACK_BOOL;
        return true;
    default:
        return false;
    }
}

/* Checks that the tensor can be exported. */
static mr_status check(const mr_tensor *tensor, uint8_t *code, mr_error *error)
{
    if (tensor->dtype == MR_DTYPE_INVALID || mr_shape_count(tensor->shape) < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: the tensor is empty, or its shape is not fully known");
    if (!mr_dlpack_dtype_code(tensor->dtype, code))
        return mr_fail(error, MR_UNIMPLEMENTED, "DLPack: tensors of dtype %s cannot be exported",
                       mr_dtype_name(tensor->dtype));
    if (tensor->buffer == nullptr && mr_shape_count(tensor->shape) > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "DLPack: the tensor has no buffer that could be referenced");
    return MR_OK;
}

/* Waits until the elements are computed, and finds the number of the GPU. */
static mr_status locate(const mr_tensor *tensor, mr_dlpack_tensor *to, mr_error *error)
{
    mr_device *device = mr_tensor_device(tensor);
    to->device_type = MR_DLPACK_CPU;
    if (device == nullptr) return MR_OK;
    mr_device_kind kind = MR_DEVICE_CPU;
    int index = 0;
    MR_TRY(mr_device_parse(device->name, &kind, &index, error));
    assert(kind == MR_DEVICE_GPU);
    to->device_type = MR_DLPACK_CUDA;
    to->device_id = index;
    return device->functions->wait(device, error);
}

static mr_status describe(const mr_tensor *tensor, uint8_t code, exported *e, mr_dlpack_tensor *to, mr_error *error)
{
    MR_TRY(locate(tensor, to, error));
    const mr_shape *shape = &tensor->shape;
    /* Unsigned, because the product of the sizes around a size of 0 may overflow. */
    uint64_t stride = 1;
    for (int32_t i = shape->rank; i-- > 0;) {
        e->dims[i] = shape->dims[i];
        e->strides[i] = (int64_t)stride;
        stride *= shape->dims[i] > 0 ? (uint64_t)shape->dims[i] : 1;
    }
    to->data = mr_tensor_count(tensor) > 0 ? tensor->data : nullptr;
    to->rank = shape->rank;
    to->code = code;
    to->bits = (uint8_t)(8 * mr_dtype_size(tensor->dtype));
    to->lanes = 1;
    to->dims = e->dims;
    to->strides = e->strides;
    e->buffer = mr_buffer_ref(tensor->buffer);
    return MR_OK;
}

mr_status mr_tensor_to_dlpack(const mr_tensor *tensor, struct DLManagedTensorVersioned **managed, mr_error *error)
{
    uint8_t code = 0;
    if (managed != nullptr) *managed = nullptr;
    if (tensor == nullptr || managed == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_to_dlpack: %s is null",
                       tensor == nullptr ? "tensor" : "managed");
    MR_TRY(check(tensor, &code, error));
    exported *e = calloc(1, sizeof *e);
    if (e == nullptr) return mr_fail_memory(error, sizeof *e);
    bool is_shared = tensor->buffer != nullptr && !mr_buffer_is_unique(tensor->buffer);
    e->versioned = (struct DLManagedTensorVersioned){.major = MR_DLPACK_MAJOR,
                                                     .minor = MR_DLPACK_MINOR,
                                                     .context = e,
                                                     .deleter = delete_versioned,
                                                     .flags = is_shared ? MR_DLPACK_READ_ONLY : 0};
    mr_status status = describe(tensor, code, e, &e->versioned.tensor, error);
    if (status == MR_OK)
        *managed = &e->versioned;
    else
        exported_free(e);
    return status;
}

static mr_status export_unversioned(const mr_tensor *tensor, uint8_t code, struct DLManagedTensor **managed,
                                    mr_error *error)
{
    exported *e = calloc(1, sizeof *e);
    if (e == nullptr) return mr_fail_memory(error, sizeof *e);
    e->unversioned = (struct DLManagedTensor){.context = e, .deleter = delete_unversioned};
    mr_status status = describe(tensor, code, e, &e->unversioned.tensor, error);
    if (status == MR_OK)
        *managed = &e->unversioned;
    else
        exported_free(e);
    return status;
}

mr_status mr_tensor_to_dlpack_unversioned(const mr_tensor *tensor, struct DLManagedTensor **managed, mr_error *error)
{
    uint8_t code = 0;
    if (managed != nullptr) *managed = nullptr;
    if (tensor == nullptr || managed == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_to_dlpack_unversioned: %s is null",
                       tensor == nullptr ? "tensor" : "managed");
    MR_TRY(check(tensor, &code, error));
    if (tensor->buffer == nullptr || mr_buffer_is_unique(tensor->buffer))
        return export_unversioned(tensor, code, managed, error);
    if (mr_tensor_device(tensor) != nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "DLPack: the tensor's buffer on the GPU has other references, and the unversioned form cannot "
                       "mark it as read-only");
    mr_tensor copy = {0};
    MR_TRY(mr_tensor_init_copy(&copy, tensor->dtype, tensor->shape, tensor->data, error));
    mr_status status = export_unversioned(&copy, code, managed, error);
    mr_tensor_deinit(&copy);
    return status;
}
