/* Tensors: typed, shaped values in reference-counted buffers.
 *
 * ```c
 * mr_error error = {0};
 * mr_tensor weights = {0};
 * if (mr_tensor_init(&weights, MR_FLOAT, MR_SHAPE(3, 2), &error) != MR_OK) return 1;
 * float *values = mr_tensor_floats(&weights);
 * for (int64_t i = 0; i < mr_tensor_count(&weights); i++) values[i] = 0.5f;
 * mr_tensor_deinit(&weights);
 * ```
 *
 * A tensor is a small value: dtype, shape and a reference to a buffer. Copying the struct does not add a reference; use
 * mr_tensor_ref for that. Elements are row-major and contiguous. Zero-initialized memory ({0}) is the empty tensor. */
#ifndef MILLRACE_TENSOR_H
#define MILLRACE_TENSOR_H

#include <millrace/status.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's DataType, with its numbers (tensorflow/core/framework/types.proto). */
typedef enum mr_dtype {
    MR_DTYPE_INVALID = 0,
    MR_FLOAT = 1,
    MR_DOUBLE = 2,
    MR_INT32 = 3,
    MR_UINT8 = 4,
    MR_INT16 = 5,
    MR_INT8 = 6,
    MR_STRING = 7,
    MR_COMPLEX64 = 8,
    MR_INT64 = 9,
    MR_BOOL = 10,
    MR_QINT8 = 11,
    MR_QUINT8 = 12,
    MR_QINT32 = 13,
    MR_BFLOAT16 = 14,
    MR_QINT16 = 15,
    MR_QUINT16 = 16,
    MR_UINT16 = 17,
    MR_COMPLEX128 = 18,
    MR_HALF = 19,
    MR_RESOURCE = 20,
    MR_VARIANT = 21,
    MR_UINT32 = 22,
    MR_UINT64 = 23,
    MR_DTYPE_COUNT = 24,
} mr_dtype;

/* A dtype's number plus MR_DTYPE_REF is its reference type in GraphDefs (DT_FLOAT_REF = 101). */
#define MR_DTYPE_REF 100

/* Size of one element in memory; sizeof(mr_string) for MR_STRING, 0 for MR_RESOURCE, MR_VARIANT and invalid dtypes. */
MR_API size_t mr_dtype_size(mr_dtype dtype);
/* TensorFlow's name in OpDefs and in Python: "float", "int64", "bfloat16"; "invalid" for an invalid dtype. Static. */
MR_API const char *mr_dtype_name(mr_dtype dtype);
/* The dtype with this name: one that mr_dtype_name returns, "float32", "float64" or "DT_FLOAT"; MR_DTYPE_INVALID if
 * unknown. */
MR_API mr_dtype mr_dtype_parse(const char *name);

/* Maximum number of dimensions of a shape. */
#define MR_RANK_MAX 12

/* rank -1: unknown rank. dims[i] -1: unknown size. Unused dims are 0. */
typedef struct mr_shape {
    int32_t rank;
    int64_t dims[MR_RANK_MAX];
} mr_shape;

/* MR_SHAPE(2, 3) is a shape of rank 2, MR_SCALAR a shape of rank 0. The first size of MR_SHAPE(-1, 3) is unknown. */
#define MR_SHAPE(...) MR_VALUE_(mr_shape, (int32_t)MR_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__})
#define MR_SCALAR MR_VALUE_(mr_shape, 0, {0})
#define MR_SHAPE_UNKNOWN MR_VALUE_(mr_shape, -1, {0})

/* Number of elements of a fully known shape (1 for a scalar); -1 if a size is unknown or the product exceeds
 * INT64_MAX. */
MR_API int64_t mr_shape_count(mr_shape shape);
MR_API bool mr_shape_equal(mr_shape a, mr_shape b);
/* True if both can describe the same tensor: equal wherever both are known. */
MR_API bool mr_shape_compatible(mr_shape a, mr_shape b);
/* Writes "[?,28,28]", "[]" or "<unknown>" to text, truncated to size_bytes, and returns text. */
#define MR_SHAPE_TEXT_SIZE 288
MR_API char *mr_shape_text(mr_shape shape, char *text, size_t size_bytes);

/* A string element: size_bytes bytes at data, not terminated. Borrowed from the tensor's buffer. */
typedef struct mr_string {
    const char *data;
    size_t size_bytes;
} mr_string;
#define MR_STR(literal) MR_VALUE_(mr_string, (literal), sizeof(literal) - 1)
MR_API mr_string mr_string_from(const char *text); /* borrows text, up to its terminator */
MR_API bool mr_string_equal(mr_string a, mr_string b);

/* Reference-counted bytes. All functions are thread-safe; access to the bytes is not synchronized. */
typedef struct mr_buffer mr_buffer;
/* Allocates host memory, 64-byte aligned, not cleared.
 * errors  MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_buffer_new(size_t size_bytes, mr_buffer **buffer, mr_error *error);
/* Wraps memory of another owner. The last mr_buffer_unref calls release(context, data) once. */
MR_API mr_status mr_buffer_wrap(void *data, size_t size_bytes, void (*release)(void *context, void *data),
                                void *context, mr_buffer **buffer, mr_error *error);
MR_API mr_buffer *mr_buffer_ref(mr_buffer *buffer); /* null is allowed and returns null */
MR_API void mr_buffer_unref(mr_buffer *buffer);     /* null is allowed */
MR_API void *mr_buffer_data(const mr_buffer *buffer);
MR_API size_t mr_buffer_size(const mr_buffer *buffer);
/* True if the caller's reference is the only one, so that the bytes may be modified in place. The reference of a
 * pipeline to whose pool the memory returns does not count. Never true for memory that another library shares: see
 * mr_tensor_from_dlpack in dlpack.h. */
MR_API bool mr_buffer_is_unique(const mr_buffer *buffer);

typedef struct mr_tensor {
    mr_dtype dtype;
    mr_shape shape;    /* fully known */
    mr_buffer *buffer; /* reference; null for the empty tensor */
    void *data;        /* the first element, inside buffer; a device address on a GPU. Borrowed from buffer */
} mr_tensor;

/* Creates a tensor with a new buffer. Elements are not initialized (MR_STRING: all empty). The target is overwritten.
 * errors   MR_INVALID_ARGUMENT: the shape is not fully known, negative or too large, or the dtype has no elements;
 *          MR_RESOURCE_EXHAUSTED: no memory */
MR_API mr_status mr_tensor_init(mr_tensor *tensor, mr_dtype dtype, mr_shape shape, mr_error *error);
/* Creates a tensor and copies count x dtype size bytes from elements (not for MR_STRING). */
MR_API mr_status mr_tensor_init_copy(mr_tensor *tensor, mr_dtype dtype, mr_shape shape, const void *elements,
                                     mr_error *error);
/* Creates a string tensor. Everything is copied into one buffer: first the elements, then their bytes. */
MR_API mr_status mr_tensor_init_strings(mr_tensor *tensor, mr_shape shape, const mr_string *elements, mr_error *error);
/* Scalars of the common dtypes. */
MR_API mr_status mr_tensor_init_float(mr_tensor *tensor, float value, mr_error *error);
MR_API mr_status mr_tensor_init_int32(mr_tensor *tensor, int32_t value, mr_error *error);
MR_API mr_status mr_tensor_init_int64(mr_tensor *tensor, int64_t value, mr_error *error);
MR_API mr_status mr_tensor_init_bool(mr_tensor *tensor, bool value, mr_error *error);
MR_API mr_status mr_tensor_init_string(mr_tensor *tensor, mr_string value, mr_error *error);
/* Adds a reference to the same buffer; nothing is copied. */
MR_API mr_tensor mr_tensor_ref(const mr_tensor *tensor);
/* Releases the reference and empties the struct. An empty tensor is allowed. */
MR_API void mr_tensor_deinit(mr_tensor *tensor);
/* The same bytes with another shape of as many elements; nothing is copied.
 * errors  MR_INVALID_ARGUMENT: another number of elements */
MR_API mr_status mr_tensor_reshape(const mr_tensor *tensor, mr_shape shape, mr_tensor *reshaped, mr_error *error);
/* A reference to rows [begin, end) of dimension 0; nothing is copied. */
MR_API mr_status mr_tensor_rows(const mr_tensor *tensor, int64_t begin, int64_t end, mr_tensor *rows, mr_error *error);

/* The fields, for programs that must not depend on the size of mr_tensor. */
MR_API mr_dtype mr_tensor_dtype(const mr_tensor *tensor);
MR_API int32_t mr_tensor_rank(const mr_tensor *tensor);
MR_API int64_t mr_tensor_dim(const mr_tensor *tensor, int32_t dimension); /* -1: no such dimension */
MR_API void *mr_tensor_data(const mr_tensor *tensor);                     /* borrowed; a device address on a GPU */

MR_API int64_t mr_tensor_count(const mr_tensor *tensor);
MR_API size_t mr_tensor_size_bytes(const mr_tensor *tensor); /* count x dtype size; for strings without their bytes */

/* The elements. Both the dtype and that they are in host memory are asserted: see mr_tensor_to_host in device.h.
 * Borrowed. */
MR_API float *mr_tensor_floats(const mr_tensor *tensor);
MR_API double *mr_tensor_doubles(const mr_tensor *tensor);
MR_API int32_t *mr_tensor_int32s(const mr_tensor *tensor);
MR_API int64_t *mr_tensor_int64s(const mr_tensor *tensor);
MR_API uint8_t *mr_tensor_uint8s(const mr_tensor *tensor);
MR_API bool *mr_tensor_bools(const mr_tensor *tensor);
MR_API const mr_string *mr_tensor_strings(const mr_tensor *tensor);

/* Bit patterns of IEEE half and bfloat16. Conversion from float rounds to nearest even. */
MR_API float mr_half_to_float(uint16_t half);
MR_API uint16_t mr_float_to_half(float value);
MR_API float mr_bfloat16_to_float(uint16_t bfloat16);
MR_API uint16_t mr_float_to_bfloat16(float value);

#ifdef __cplusplus
}
#endif
#endif
