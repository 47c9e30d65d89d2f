/* Between mr_array and tensors. What a caller wrote into an array is not trusted, except for addresses. */
#include "graph/abi/array.h"

#include "base/status.h"

#include <stdlib.h>

mr_array mr_array_of(mr_dtype dtype, mr_shape shape)
{
    mr_array array = {.dtype = (int32_t)dtype, .rank = shape.rank};
    for (int32_t i = 0; i < shape.rank; i++) array.dims[i] = shape.dims[i];
    return array;
}

static mr_status read_shape(const mr_array *array, mr_shape *shape, mr_error *error)
{
    if (array->rank < 0 || array->rank > MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor has at most %d dimensions, not %d", MR_RANK_MAX,
                       (int)array->rank);
    *shape = (mr_shape){.rank = array->rank};
    for (int32_t i = 0; i < array->rank; i++) {
        if (array->dims[i] < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d has size %lld", (int)i, (long long)array->dims[i]);
        shape->dims[i] = array->dims[i];
    }
    if (mr_shape_count(*shape) < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "the array has too many elements");
    return MR_OK;
}

static mr_status read_strings(const mr_array *array, mr_shape shape, mr_tensor *value, mr_error *error)
{
    int64_t count = mr_shape_count(shape);
    if ((uint64_t)count > SIZE_MAX / sizeof(mr_string)) return mr_fail_memory(error, SIZE_MAX);
    mr_string *strings = malloc(((size_t)count + 1) * sizeof *strings);
    if (strings == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *strings);
    size_t left_bytes = array->size_bytes;
    const char *at = array->data;
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        int64_t size_bytes = array->sizes[i];
        if (size_bytes < 0 || (uint64_t)size_bytes > left_bytes) {
            status = mr_fail(error, MR_INVALID_ARGUMENT, "the sizes of strings exceed size_bytes");
            break;
        }
        strings[i] = (mr_string){at, (size_t)size_bytes};
        if (size_bytes > 0) at += size_bytes;
        left_bytes -= (size_t)size_bytes;
    }
    if (status == MR_OK) status = mr_tensor_init_strings(value, shape, strings, error);
    free(strings);
    return status;
}

/* Any other byte than 0 and 1 in a bool is undefined behavior. */
static mr_status check_bools(const mr_array *array, mr_error *error)
{
    const unsigned char *bytes = array->data;
    unsigned char any = 0;
    for (size_t i = 0; i < array->size_bytes; i++) any |= bytes[i];
    return any <= 1 ? MR_OK : mr_fail(error, MR_INVALID_ARGUMENT, "a bool is neither 0 nor 1");
}

mr_array mr_array_of_bytes(mr_tensor *owner)
{
    return (mr_array){
        .dtype = MR_STRING, .data = mr_tensor_data(owner), .size_bytes = mr_tensor_size_bytes(owner), .owner = owner};
}

mr_status mr_array_check(const mr_array *array, mr_shape *shape, mr_error *error)
{
    MR_TRY(read_shape(array, shape, error));
    int64_t count = mr_shape_count(*shape);
    if (array->data == nullptr && array->size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the data of %zu bytes is null", array->size_bytes);
    if (array->dtype == MR_STRING)
        return count > 0 && array->sizes == nullptr ? mr_fail(error, MR_INVALID_ARGUMENT, "sizes is null") : MR_OK;
    size_t element_bytes = array->dtype > 0 ? mr_dtype_size((mr_dtype)array->dtype) : 0, size_bytes = 0;
    if (element_bytes == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor cannot hold elements of dtype %d", (int)array->dtype);
    if (__builtin_mul_overflow((size_t)count, element_bytes, &size_bytes) || size_bytes != array->size_bytes)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the size of the array, %zu bytes, does not match its shape",
                       array->size_bytes);
    return array->dtype == MR_BOOL ? check_bools(array, error) : MR_OK;
}

mr_status mr_array_copy(const mr_array *array, mr_shape shape, mr_tensor *tensor, mr_error *error)
{
    if (array->dtype == MR_STRING) return read_strings(array, shape, tensor, error);
    return mr_tensor_init_copy(tensor, (mr_dtype)array->dtype, shape, array->data, error);
}
