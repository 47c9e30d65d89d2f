/* The structs of DLPack, as major version 1 of its ABI defines their layout. The names of the two managed structs are
 * those of DLPack's own header, so that programs may include that header together with millrace/dlpack.h; this one is
 * internal. */
#ifndef MR_BASE_DLPACK_H
#define MR_BASE_DLPACK_H

#include <millrace/dlpack.h>

#include <stddef.h>

enum {
    MR_DLPACK_MAJOR = 1,
    MR_DLPACK_MINOR = 0,
    /* Devices: */
    MR_DLPACK_CPU = 1,
    MR_DLPACK_CUDA = 2,
    MR_DLPACK_CUDA_HOST = 3, /* pinned host memory */
    /* Dtype codes: */
    MR_DLPACK_INT = 0,
    MR_DLPACK_UINT = 1,
    MR_DLPACK_FLOAT = 2,
    MR_DLPACK_BFLOAT = 4,
    MR_DLPACK_COMPLEX = 5,
    MR_DLPACK_BOOL = 6,
    /* Flags: */
    MR_DLPACK_READ_ONLY = 1,
};

typedef struct mr_dlpack_tensor {
    void *data; /* the first element is byte_offset bytes further on */
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *dims;
    int64_t *strides; /* in elements; null: row-major */
    uint64_t byte_offset;
} mr_dlpack_tensor;

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* may be null */
    uint64_t flags;
    mr_dlpack_tensor tensor;
};

struct DLManagedTensor {
    mr_dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self); /* may be null */
};

/* The code of a dtype; false if DLPack has no such dtype. */
bool mr_dlpack_dtype_code(mr_dtype dtype, uint8_t *code);

static_assert(sizeof(mr_dlpack_tensor) == 48 && offsetof(mr_dlpack_tensor, code) == 20);
static_assert(offsetof(struct DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(struct DLManagedTensorVersioned, tensor) == 32);
static_assert(sizeof(struct DLManagedTensor) == 64);

#endif
