/* Tensors: a dtype and a shape, with a reference to a buffer. */
#include <millrace/tensor.h>

#include "base/buffer.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

mr_string mr_string_from(const char *text)
{
    return text == nullptr ? (mr_string){0} : (mr_string){text, strlen(text)};
}

bool mr_string_equal(mr_string a, mr_string b)
{
    return a.size_bytes == b.size_bytes && (a.size_bytes == 0 || memcmp(a.data, b.data, a.size_bytes) == 0);
}

/* The size in bytes of a tensor of this dtype and shape, checked for overflow. */
static mr_status tensor_bytes(mr_dtype dtype, mr_shape shape, size_t *size_bytes, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank > MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor has at most %d dimensions, not %" PRId32, MR_RANK_MAX,
                       shape.rank);
    int64_t count = mr_shape_count(shape);
    if (count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the shape %s of a tensor is too large or not fully known",
                       mr_shape_text(shape, text, sizeof text));
    size_t element_bytes = mr_dtype_size(dtype);
    if (element_bytes == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor cannot hold elements of dtype %s", mr_dtype_name(dtype));
    if ((uint64_t)count > (PTRDIFF_MAX - 4096) / element_bytes)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of %s %s exceeds the address space", mr_dtype_name(dtype),
                       mr_shape_text(shape, text, sizeof text));
    *size_bytes = (size_t)count * element_bytes;
    return MR_OK;
}

mr_status mr_tensor_init(mr_tensor *tensor, mr_dtype dtype, mr_shape shape, mr_error *error)
{
    if (tensor == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init: tensor is null");
    *tensor = (mr_tensor){0};
    size_t size_bytes = 0;
    MR_TRY(tensor_bytes(dtype, shape, &size_bytes, error));
    mr_buffer *buffer;
    MR_TRY(mr_buffer_new(size_bytes, &buffer, error));
    *tensor = (mr_tensor){.dtype = dtype, .shape = shape, .buffer = buffer, .data = mr_buffer_data(buffer)};
    if (dtype == MR_STRING) memset(tensor->data, 0, size_bytes);
    return MR_OK;
}

mr_status mr_tensor_init_copy(mr_tensor *tensor, mr_dtype dtype, mr_shape shape, const void *elements, mr_error *error)
{
    if (dtype == MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init_copy: strings need mr_tensor_init_strings");
    MR_TRY(mr_tensor_init(tensor, dtype, shape, error));
    size_t size_bytes = mr_tensor_size_bytes(tensor);
    if (size_bytes > 0 && elements == nullptr) {
        mr_tensor_deinit(tensor);
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init_copy: elements is null");
    }
    if (size_bytes > 0) memcpy(tensor->data, elements, size_bytes);
    return MR_OK;
}

mr_status mr_tensor_init_strings(mr_tensor *tensor, mr_shape shape, const mr_string *elements, mr_error *error)
{
    if (tensor == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init_strings: tensor is null");
    *tensor = (mr_tensor){0};
    size_t head_bytes = 0;
    MR_TRY(tensor_bytes(MR_STRING, shape, &head_bytes, error));
    int64_t count = mr_shape_count(shape);
    if (count > 0 && elements == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init_strings: elements is null");
    size_t total_bytes = head_bytes;
    for (int64_t i = 0; i < count; i++) {
        if (elements[i].data == nullptr && elements[i].size_bytes > 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_init_strings: element %" PRId64 " is null", i);
        if (__builtin_add_overflow(total_bytes, elements[i].size_bytes, &total_bytes))
            return mr_fail_memory(error, SIZE_MAX);
    }
    mr_buffer *buffer;
    MR_TRY(mr_buffer_new(total_bytes, &buffer, error));
    mr_string *strings = mr_buffer_data(buffer);
    char *bytes = (char *)strings + head_bytes;
    for (int64_t i = 0; i < count; i++) {
        size_t size_bytes = elements[i].size_bytes;
        if (size_bytes > 0) memcpy(bytes, elements[i].data, size_bytes);
        strings[i] = (mr_string){bytes, size_bytes};
        bytes += size_bytes;
    }
    assert(bytes == (char *)strings + total_bytes);
    *tensor = (mr_tensor){.dtype = MR_STRING, .shape = shape, .buffer = buffer, .data = strings};
    return MR_OK;
}

mr_status mr_tensor_init_float(mr_tensor *tensor, float value, mr_error *error)
{
    return mr_tensor_init_copy(tensor, MR_FLOAT, MR_SCALAR, &value, error);
}

mr_status mr_tensor_init_int32(mr_tensor *tensor, int32_t value, mr_error *error)
{
    return mr_tensor_init_copy(tensor, MR_INT32, MR_SCALAR, &value, error);
}

mr_status mr_tensor_init_int64(mr_tensor *tensor, int64_t value, mr_error *error)
{
    return mr_tensor_init_copy(tensor, MR_INT64, MR_SCALAR, &value, error);
}

mr_status mr_tensor_init_bool(mr_tensor *tensor, bool value, mr_error *error)
{
    return mr_tensor_init_copy(tensor, MR_BOOL, MR_SCALAR, &value, error);
}

mr_status mr_tensor_init_string(mr_tensor *tensor, mr_string value, mr_error *error)
{
    return mr_tensor_init_strings(tensor, MR_SCALAR, &value, error);
}

mr_tensor mr_tensor_ref(const mr_tensor *tensor)
{
    mr_buffer_ref(tensor->buffer);
    return *tensor;
}

void mr_tensor_deinit(mr_tensor *tensor)
{
    if (tensor == nullptr) return;
    mr_buffer_unref(tensor->buffer);
    *tensor = (mr_tensor){0};
}

mr_status mr_tensor_reshape(const mr_tensor *tensor, mr_shape shape, mr_tensor *reshaped, mr_error *error)
{
    if (tensor == nullptr || reshaped == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_reshape: %s is null",
                       tensor == nullptr ? "tensor" : "reshaped");
    int64_t count = mr_shape_count(shape);
    if (count < 0 || count != mr_tensor_count(tensor)) {
        char from[MR_SHAPE_TEXT_SIZE], to[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of shape %s cannot be reshaped to %s",
                       mr_shape_text(tensor->shape, from, sizeof from), mr_shape_text(shape, to, sizeof to));
    }
    *reshaped = mr_tensor_ref(tensor);
    reshaped->shape = shape;
    return MR_OK;
}

mr_status mr_tensor_rows(const mr_tensor *tensor, int64_t begin, int64_t end, mr_tensor *rows, mr_error *error)
{
    if (tensor == nullptr || rows == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_tensor_rows: %s is null", tensor == nullptr ? "tensor" : "rows");
    if (tensor->shape.rank < 1) return mr_fail(error, MR_INVALID_ARGUMENT, "a scalar has no rows");
    int64_t count = tensor->shape.dims[0];
    if (begin < 0 || end < begin || end > count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "rows %" PRId64 " to %" PRId64 " are out of range: the tensor has %" PRId64 " rows", begin, end,
                       count);
    size_t row_bytes = count > 0 ? mr_tensor_size_bytes(tensor) / (size_t)count : 0;
    assert(row_bytes * (size_t)count == mr_tensor_size_bytes(tensor));
    *rows = mr_tensor_ref(tensor);
    rows->shape.dims[0] = end - begin;
    rows->data = (unsigned char *)tensor->data + (size_t)begin * row_bytes;
    return MR_OK;
}

mr_dtype mr_tensor_dtype(const mr_tensor *tensor)
{
    return tensor->dtype;
}

int32_t mr_tensor_rank(const mr_tensor *tensor)
{
    return tensor->shape.rank;
}

int64_t mr_tensor_dim(const mr_tensor *tensor, int32_t dimension)
{
    return dimension >= 0 && dimension < tensor->shape.rank ? tensor->shape.dims[dimension] : -1;
}

void *mr_tensor_data(const mr_tensor *tensor)
{
    return tensor->data;
}

int64_t mr_tensor_count(const mr_tensor *tensor)
{
    return tensor->dtype == MR_DTYPE_INVALID ? 0 : mr_shape_count(tensor->shape);
}

size_t mr_tensor_size_bytes(const mr_tensor *tensor)
{
    return (size_t)mr_tensor_count(tensor) * mr_dtype_size(tensor->dtype);
}

/* For access by the CPU. */
static void *elements(const mr_tensor *tensor, mr_dtype dtype)
{
    assert(tensor->dtype == dtype);
    assert(tensor->buffer == nullptr || tensor->buffer->device == nullptr);
    (void)dtype;
    return tensor->data;
}

float *mr_tensor_floats(const mr_tensor *tensor)
{
    return elements(tensor, MR_FLOAT);
}

double *mr_tensor_doubles(const mr_tensor *tensor)
{
    return elements(tensor, MR_DOUBLE);
}

int32_t *mr_tensor_int32s(const mr_tensor *tensor)
{
    return elements(tensor, MR_INT32);
}

int64_t *mr_tensor_int64s(const mr_tensor *tensor)
{
    return elements(tensor, MR_INT64);
}

uint8_t *mr_tensor_uint8s(const mr_tensor *tensor)
{
    return elements(tensor, MR_UINT8);
}

bool *mr_tensor_bools(const mr_tensor *tensor)
{
    return elements(tensor, MR_BOOL);
}

const mr_string *mr_tensor_strings(const mr_tensor *tensor)
{
    return elements(tensor, MR_STRING);
}
