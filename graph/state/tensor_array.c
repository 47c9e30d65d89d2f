/* The operators of arrays of tensors. The old forms have a reference as handle, and otherwise the same inputs. */
#include "graph/state/tensor_array.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Arrays ---- */

static mr_status put_flow(mr_kernel_call *call, int index, mr_error *error)
{
    if (call->node->output_count <= index) return MR_OK;
    MR_TRY(mr_kernel_output(call, index, MR_SCALAR, error));
    mr_tensor_floats(&call->outputs[index])[0] = 0;
    return MR_OK;
}

static mr_status pass_flow(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *flow = &call->inputs[call->node->input_count - 1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (flow->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "flow_in must be a scalar, but had shape: %s",
                              mr_shape_text(flow->shape, text, sizeof text));
    call->outputs[0] = mr_tensor_ref(flow);
    return MR_OK;
}

static mr_status open_array(mr_kernel_call *call, mr_error *error)
{
    const mr_attrs *attrs = call->node->attrs;
    char name[512];
    mr_array *array;
    int32_t size;
    mr_shape element_shape;
    mr_string given = mr_attr_string_or(attrs, "tensor_array_name", "");
    MR_TRY(mr_member_int(call, 0, "TensorArray size must be scalar", &size, error));
    if (size < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Size should be >= 0.");
    MR_TRY(mr_attr_get_shape(attrs, "element_shape", &element_shape, error));
    /* Names of arrays in a run must differ; names of nodes do. */
    if (given.size_bytes == 0 || call->node->output_dtypes[0] == MR_STRING) given = mr_string_from(call->node->name);
    int length = given.size_bytes < 400 ? (int)given.size_bytes : 400;
    snprintf(name, sizeof name, "%.*s_%" PRIu64, length, given.data, (uint64_t)call->invocation);
    MR_TRY(mr_array_new(mr_string_from(name), nullptr, mr_attr_type_or(attrs, "dtype", MR_FLOAT), size, &array, error));
    array->element_shape = element_shape;
    array->is_dynamic = mr_attr_bool_or(attrs, "dynamic_size", false);
    array->clears = mr_attr_bool_or(attrs, "clear_after_read", true);
    array->is_common_shape = mr_attr_bool_or(attrs, "identical_element_shapes", false);
    MR_TRY(mr_array_put(call, array, error));
    return put_flow(call, 1, error);
}

static mr_status grad(mr_kernel_call *call, mr_error *error)
{
    mr_array *array, *gradient;
    mr_string source;
    mr_shape prefix = MR_SCALAR;
    MR_TRY(mr_attr_get_string(call->node->attrs, "source", &source, error));
    MR_TRY(mr_array_at(call, 0, &array, error));
    if (call->node->input_count > 2) MR_TRY(mr_kernel_shape(call, 2, &prefix, error));
    MR_TRY(mr_array_grad(call, array, source, prefix, &gradient, error));
    MR_TRY(mr_array_put(call, gradient, error));
    return put_flow(call, 1, error);
}

static mr_status size_of(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    MR_TRY(mr_array_at(call, 0, &array, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = mr_array_check_open(call, array, error);
    mr_tensor_int32s(&call->outputs[0])[0] = array->size;
    pthread_mutex_unlock(&array->mutex);
    return status;
}

static mr_status close_array(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    MR_TRY(mr_array_at(call, 0, &array, error));
    pthread_mutex_lock(&array->mutex);
    mr_array_close(array);
    pthread_mutex_unlock(&array->mutex);
    return MR_OK;
}

/* The array of the handle, whose elements must have the dtype. */
static mr_status array_to_write(const mr_kernel_call *call, mr_dtype dtype, mr_array **array, mr_error *error)
{
    MR_TRY(mr_array_at(call, 0, array, error));
    if ((*array)->dtype == dtype) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "TensorArray dtype is %s but Op is trying to write dtype %s.", mr_dtype_name((*array)->dtype),
                          mr_dtype_name(dtype));
}

static mr_status array_to_read(const mr_kernel_call *call, mr_array **array, mr_error *error)
{
    mr_dtype dtype = call->node->output_dtypes[0];
    MR_TRY(mr_array_at(call, 0, array, error));
    if ((*array)->dtype == dtype) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "TensorArray dtype is %s but Op requested dtype %s.",
                          mr_dtype_name((*array)->dtype), mr_dtype_name(dtype));
}

/* ---- One element ---- */

static mr_status write(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    int32_t index;
    MR_TRY(mr_member_int(call, 1, "TensorArray index must be scalar", &index, error));
    MR_TRY(array_to_write(call, call->inputs[2].dtype, &array, error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = mr_array_write(call, array, index, &call->inputs[2], error);
    pthread_mutex_unlock(&array->mutex);
    return status == MR_OK ? pass_flow(call, error) : status;
}

static mr_status read(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    int32_t index;
    MR_TRY(mr_member_int(call, 1, "TensorArray index must be scalar", &index, error));
    MR_TRY(array_to_read(call, &array, error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = mr_array_read(call, array, index, &call->outputs[0], error);
    pthread_mutex_unlock(&array->mutex);
    return status;
}

/* ---- Rows ---- */

static mr_status check_vector(const mr_kernel_call *call, int input, const char *what, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[input].shape.rank == 1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected %s to be a vector, but received shape: %s",
                          what, mr_shape_text(call->inputs[input].shape, text, sizeof text));
}

static mr_status check_rows(const mr_kernel_call *call, const mr_tensor *value, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (value->shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input value for unpack must be at least a vector but received shape: %s",
                              mr_shape_text(value->shape, text, sizeof text));
    if (value->shape.dims[0] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor dim0 too large to unpack");
    return MR_OK;
}

/* Writes rows i of value to the elements indices[i]; without indices to elements i. */
static mr_status write_rows(mr_kernel_call *call, mr_array *array, int input, const int32_t *indices, mr_error *error)
{
    mr_tensor source, row;
    MR_TRY(mr_members_source(call, input, &source, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < source.shape.dims[0] && status == MR_OK; i++) {
        status = mr_members_rows(&source, i, i + 1, true, &row, error);
        if (status != MR_OK) break;
        status = mr_array_write(call, array, indices ? indices[i] : (int32_t)i, &row, error);
        mr_tensor_deinit(&row);
    }
    mr_tensor_deinit(&source);
    return status;
}

static mr_status scatter_locked(mr_kernel_call *call, mr_array *array, mr_error *error)
{
    const int32_t *indices = mr_tensor_int32s(&call->inputs[1]);
    int32_t last = -1;
    MR_TRY(mr_array_check_open(call, array, error));
    for (int64_t i = 0; i < mr_tensor_count(&call->inputs[1]); i++) last = MR_MAX(last, indices[i]);
    if (!array->is_dynamic && last >= array->size)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Max scatter index must be < array size (%d vs. %d)", (int)last, (int)array->size);
    return write_rows(call, array, 2, indices, error);
}

static mr_status scatter(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[1], *value = &call->inputs[2];
    mr_array *array;
    MR_TRY(array_to_write(call, value->dtype, &array, error));
    MR_TRY(check_rows(call, value, error));
    MR_TRY(check_vector(call, 1, "indices", error));
    if (mr_tensor_count(indices) != value->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected len(indices) == values.shape[0], but saw: %" PRId64 " vs. %" PRId64,
                              mr_tensor_count(indices), value->shape.dims[0]);
    pthread_mutex_lock(&array->mutex);
    mr_status status = scatter_locked(call, array, error);
    pthread_mutex_unlock(&array->mutex);
    return status == MR_OK ? pass_flow(call, error) : status;
}

static mr_status unpack_locked(mr_kernel_call *call, mr_array *array, mr_error *error)
{
    int64_t rows = call->inputs[1].shape.dims[0], size = array->size;
    MR_TRY(mr_array_check_open(call, array, error));
    if (array->is_dynamic) size = MR_MAX(size, rows);
    if (rows != size)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "Input value must have first dimension equal to the array size (%" PRId64 " vs. %" PRId64 ")", rows, size);
    if (!array->is_gradient) array->marked_size = (int32_t)rows;
    return write_rows(call, array, 1, nullptr, error);
}

static mr_status unpack(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    MR_TRY(array_to_write(call, call->inputs[1].dtype, &array, error));
    MR_TRY(check_rows(call, &call->inputs[1], error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = unpack_locked(call, array, error);
    pthread_mutex_unlock(&array->mutex);
    return status == MR_OK ? pass_flow(call, error) : status;
}

/* ---- Parts ---- */

static mr_status check_lengths(const mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *value = &call->inputs[1], *lengths = &call->inputs[2];
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t total = 0;
    if (lengths->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected lengths to be a vector, received shape: %s",
                              mr_shape_text(lengths->shape, text, sizeof text));
    if (lengths->shape.dims[0] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected lengths to have < max int32 entries");
    for (int64_t i = 0; i < lengths->shape.dims[0]; i++) {
        int64_t length = mr_tensor_int64s(lengths)[i];
        if (length < 0 || __builtin_add_overflow(total, length, &total))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid value in lengths: %" PRId64, length);
    }
    mr_shape_text(value->shape, text, sizeof text);
    if (value->shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected value to be at least a vector, but received shape: %s", text);
    if (total != value->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is %" PRId64
                              " and value's shape is: %s",
                              total, text);
    return MR_OK;
}

static mr_status split_locked(mr_kernel_call *call, mr_array *array, mr_error *error)
{
    const mr_tensor *lengths = &call->inputs[2];
    int64_t count = lengths->shape.dims[0], size = array->size, begin = 0;
    mr_tensor source, part;
    MR_TRY(mr_array_check_open(call, array, error));
    if (array->is_dynamic) size = MR_MAX(size, count);
    if (size != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray's size is not equal to the size of lengths (%" PRId64 " vs. %" PRId64
                              "), and the TensorArray is not marked as dynamically resizeable",
                              size, count);
    if (!array->is_gradient) array->marked_size = (int32_t)count;
    MR_TRY(mr_members_source(call, 1, &source, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        int64_t end = begin + mr_tensor_int64s(lengths)[i];
        status = mr_members_rows(&source, begin, end, false, &part, error);
        if (status != MR_OK) break;
        status = mr_array_write(call, array, (int32_t)i, &part, error);
        mr_tensor_deinit(&part);
        begin = end;
    }
    mr_tensor_deinit(&source);
    return status;
}

static mr_status split(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    MR_TRY(check_lengths(call, error));
    MR_TRY(array_to_write(call, call->inputs[1].dtype, &array, error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = split_locked(call, array, error);
    pthread_mutex_unlock(&array->mutex);
    return status == MR_OK ? pass_flow(call, error) : status;
}

/* ---- Stacking and concatenating ---- */

static void release(mr_tensor *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) mr_tensor_deinit(&values[i]);
    free(values);
}

/* Reads the elements indices[i], without indices elements i. Needs the lock. */
static mr_status read_many(const mr_kernel_call *call, mr_array *array, const int32_t *indices, int64_t count,
                           mr_tensor **values, mr_error *error)
{
    mr_tensor *read = *values = calloc((size_t)count, sizeof *read);
    if (!read) return mr_fail_memory(error, (size_t)count * sizeof *read);
    for (int64_t i = 0; i < count; i++) {
        mr_status status = mr_array_read(call, array, indices ? indices[i] : (int32_t)i, &read[i], error);
        if (status == MR_OK) continue;
        release(read, i);
        return status;
    }
    return MR_OK;
}

static mr_status join_values(mr_kernel_call *call, mr_shape shape, const mr_tensor *values, int64_t count,
                             mr_error *error)
{
    mr_joined join;
    MR_TRY(mr_joined_init(call, 0, shape, &join, error));
    for (int64_t i = 0; i < count; i++) mr_joined_add(&join, &values[i], 0);
    return mr_joined_finish(call, &join, error);
}

/* The result of no elements has a size of 0, and the other sizes from an attr. */
static mr_status join_nothing(mr_kernel_call *call, const char *what, mr_shape element, const char *verb,
                              mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_shape shape;
    if (!mr_shape_is_known(element))
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "TensorArray has size zero, but %s %s is not fully defined. Currently only static shapes "
                              "are supported when %s zero-size TensorArrays.",
                              what, mr_shape_text(element, text, sizeof text), verb);
    MR_TRY(mr_shape_prepend(call, 0, element, &shape, error));
    return mr_kernel_output(call, 0, shape, error);
}

static mr_status stack_values(mr_kernel_call *call, mr_shape element, const mr_tensor *values, int64_t count,
                              mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_shape shape;
    assert(values != nullptr && count > 0);
    mr_shape_text(values[0].shape, first, sizeof first);
    if (!mr_shape_compatible(element, values[0].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray was passed element_shape %s which does not match the Tensor at index 0: %s",
                              mr_shape_text(element, second, sizeof second), first);
    for (int64_t i = 1; i < count; i++)
        if (!mr_shape_equal(values[0].shape, values[i].shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "TensorArray has inconsistent shapes.  Index 0 has shape: %s but index %" PRId64
                                  " has shape: %s",
                                  first, i, mr_shape_text(values[i].shape, second, sizeof second));
    MR_TRY(mr_shape_prepend(call, count, values[0].shape, &shape, error));
    return join_values(call, shape, values, count, error);
}

/* TensorArrayGather; TensorArrayPack, which has no indices. */
static mr_status gather(mr_kernel_call *call, mr_error *error)
{
    bool is_pack = call->node->input_count == 2;
    mr_array *array;
    mr_shape element;
    mr_tensor *values = nullptr;
    MR_TRY(array_to_read(call, &array, error));
    MR_TRY(mr_attr_get_shape(call->node->attrs, "element_shape", &element, error));
    if (!is_pack) MR_TRY(check_vector(call, 1, "indices", error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = mr_member_merge(call, array->element_shape, element, &array->element_shape, error);
    if (status == MR_OK) status = mr_array_check_open(call, array, error);
    int64_t count = is_pack ? array->size : mr_tensor_count(&call->inputs[1]);
    if (is_pack && array->is_gradient && array->marked_size >= 0) count = array->marked_size;
    const int32_t *indices = is_pack ? nullptr : mr_tensor_int32s(&call->inputs[1]);
    if (status == MR_OK && count > 0) status = read_many(call, array, indices, count, &values, error);
    pthread_mutex_unlock(&array->mutex);
    MR_TRY(status);
    if (count == 0) return join_nothing(call, "element shape", element, "packing", error);
    status = stack_values(call, element, values, count, error);
    release(values, count);
    return status;
}

static mr_status concat_shape(const mr_kernel_call *call, mr_shape element, const mr_tensor *values, int64_t count,
                              mr_shape *shape, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (values[i].shape.rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Concat saw a scalar shape at index %" PRId64
                                  " but requires at least vectors.  Did you mean to call pack?",
                                  i);
        mr_shape expected = mr_shape_tail(values[0].shape), found = mr_shape_tail(values[i].shape);
        mr_shape_text(found, second, sizeof second);
        if (i == 0 && !mr_shape_compatible(element, found))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "TensorArray was passed element_shape_except0 %s but index 0 has (excepting "
                                  "dimension 0) shape: %s which does not match.",
                                  mr_shape_text(element, first, sizeof first), second);
        if (!mr_shape_equal(expected, found))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: %s "
                                  "but index %" PRId64 " has (excepting dimension 0) shape: %s",
                                  mr_shape_text(expected, first, sizeof first), i, second);
        if (__builtin_add_overflow(total, values[i].shape.dims[0], &total))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the result is too large");
    }
    assert(values != nullptr && count > 0);
    *shape = values[0].shape;
    shape->dims[0] = total;
    return MR_OK;
}

static mr_status concat_values(mr_kernel_call *call, mr_shape element, const mr_tensor *values, int64_t count,
                               mr_error *error)
{
    mr_shape shape;
    MR_TRY(concat_shape(call, element, values, count, &shape, error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(count), error));
    for (int64_t i = 0; i < count; i++) mr_tensor_int64s(&call->outputs[1])[i] = values[i].shape.dims[0];
    return join_values(call, shape, values, count, error);
}

static mr_status concat(mr_kernel_call *call, mr_error *error)
{
    mr_array *array;
    mr_shape element;
    mr_tensor *values = nullptr;
    MR_TRY(array_to_read(call, &array, error));
    MR_TRY(mr_attr_get_shape(call->node->attrs, "element_shape_except0", &element, error));
    pthread_mutex_lock(&array->mutex);
    mr_status status = mr_array_check_open(call, array, error);
    int64_t count = array->is_gradient && array->marked_size >= 0 ? array->marked_size : array->size;
    if (status == MR_OK && count > 0) status = read_many(call, array, nullptr, count, &values, error);
    pthread_mutex_unlock(&array->mutex);
    MR_TRY(status);
    if (count == 0) {
        MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(0), error));
        return join_nothing(call, "element_shape_except0", element, "concatenating", error);
    }
    status = concat_values(call, element, values, count, error);
    release(values, count);
    return status;
}

#define BOTH(name, function)                                                                                           \
    {.op = name "V3", .run = function}, {.op = name "V2", .run = function},                                            \
    {                                                                                                                  \
        .op = name, .run = function                                                                                    \
    }
static const mr_kernel kernels[] = {
    BOTH("TensorArray", open_array),
    {.op = "TensorArrayGrad", .run = grad},
    {.op = "TensorArrayGradV2", .run = grad},
    {.op = "TensorArrayGradV3", .run = grad},
    {.op = "TensorArrayGradWithShape", .run = grad},
    BOTH("TensorArrayWrite", write),
    BOTH("TensorArrayRead", read),
    BOTH("TensorArrayGather", gather),
    BOTH("TensorArrayScatter", scatter),
    BOTH("TensorArrayConcat", concat),
    BOTH("TensorArraySplit", split),
    BOTH("TensorArraySize", size_of),
    BOTH("TensorArrayClose", close_array),
    {.op = "TensorArrayPack", .run = gather},
    {.op = "TensorArrayUnpack", .run = unpack},
};
const mr_kernel_table mr_state_kernels_tensor_array = {kernels, sizeof kernels / sizeof kernels[0]};
