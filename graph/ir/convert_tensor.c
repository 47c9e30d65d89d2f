/* Conversion of TensorProto. It has all elements as bytes in tensor_content, or a list of the dtype, whose last value
 * is repeated to the shape's number of elements. The list is written if all elements are equal, otherwise the bytes. */
#include "graph/ir/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_shape_read(const Mr__TensorShapeProto *proto, mr_shape *shape, mr_error *error)
{
    *shape = MR_SCALAR;
    if (proto == nullptr) return MR_OK;
    if (proto->unknown_rank) {
        *shape = MR_SHAPE_UNKNOWN;
        return MR_OK;
    }
    if (proto->n_dim > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "a shape has %zu dimensions (at most %d)", proto->n_dim, MR_RANK_MAX);
    for (size_t i = 0; i < proto->n_dim; i++) {
        if (proto->dim[i]->size < -1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "a shape has a size of %" PRId64, proto->dim[i]->size);
        shape->dims[shape->rank++] = proto->dim[i]->size;
    }
    return MR_OK;
}

/* ---- Reading ---- */

/* The value list of a dtype: its elements and how they are stored. */
typedef struct values {
    const void *items;
    size_t count;
    size_t item_size_bytes;
} values;

static values find_values(const Mr__TensorProto *proto)
{
    switch (proto->dtype) {
    case MR_FLOAT:
        return (values){proto->float_val, proto->n_float_val, sizeof(float)};
    case MR_DOUBLE:
        return (values){proto->double_val, proto->n_double_val, sizeof(double)};
    case MR_INT64:
        return (values){proto->int64_val, proto->n_int64_val, sizeof(int64_t)};
    case MR_UINT32:
        return (values){proto->uint32_val, proto->n_uint32_val, sizeof(uint32_t)};
    case MR_UINT64:
        return (values){proto->uint64_val, proto->n_uint64_val, sizeof(uint64_t)};
    case MR_COMPLEX64:
        return (values){proto->scomplex_val, proto->n_scomplex_val / 2, 2 * sizeof(float)};
    case MR_COMPLEX128:
        return (values){proto->dcomplex_val, proto->n_dcomplex_val / 2, 2 * sizeof(double)};
    case MR_BOOL:
        return (values){proto->bool_val, proto->n_bool_val, sizeof(protobuf_c_boolean)};
    case MR_HALF:
    case MR_BFLOAT16:
        return (values){proto->half_val, proto->n_half_val, sizeof(int32_t)};
    default:
        return (values){proto->int_val, proto->n_int_val, sizeof(int32_t)};
    }
}

/* Stores one element. Integers of 4 bytes are narrowed to the low bytes of the dtype's size. */
static void store(const values *list, size_t index, mr_dtype dtype, uint8_t *target)
{
    const uint8_t *item = (const uint8_t *)list->items + index * list->item_size_bytes;
    size_t size_bytes = mr_dtype_size(dtype);
    if (dtype == MR_BOOL) {
        protobuf_c_boolean value;
        memcpy(&value, item, sizeof value);
        *target = value != 0;
        return;
    }
    memcpy(target, item, size_bytes); /* little-endian, as in all formats of millrace */
}

static mr_status read_list(const Mr__TensorProto *proto, mr_tensor *tensor, mr_error *error)
{
    values list = find_values(proto);
    size_t count = (size_t)mr_tensor_count(tensor), size_bytes = mr_dtype_size(tensor->dtype);
    uint8_t *target = tensor->data;
    if (list.count > count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of %zu elements has %zu values", count, list.count);
    if (list.count == 0 && count > 0) memset(target, 0, count * size_bytes);
    for (size_t i = 0; i < list.count; i++) store(&list, i, tensor->dtype, target + i * size_bytes);
    for (size_t i = list.count; list.count > 0 && i < count; i++)
        memcpy(target + i * size_bytes, target + (list.count - 1) * size_bytes, size_bytes);
    return MR_OK;
}

static mr_status read_content(const Mr__TensorProto *proto, mr_tensor *tensor, mr_error *error)
{
    size_t size_bytes = mr_tensor_size_bytes(tensor);
    if (proto->tensor_content.len != size_bytes)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of %zu bytes has %zu bytes of content", size_bytes,
                       proto->tensor_content.len);
    memcpy(tensor->data, proto->tensor_content.data, size_bytes);
    uint8_t *bytes = tensor->data;
    for (size_t i = 0; tensor->dtype == MR_BOOL && i < size_bytes; i++) bytes[i] = bytes[i] != 0;
    return MR_OK;
}

static mr_status read_strings(const Mr__TensorProto *proto, mr_shape shape, size_t count, mr_import_budget *budget,
                              mr_tensor *tensor, mr_error *error)
{
    if (proto->tensor_content.len > 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "a tensor of strings has tensor_content");
    if (proto->n_string_val > count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of %zu elements has %zu strings", count,
                       proto->n_string_val);
    mr_string *strings = calloc(count + 1, sizeof *strings);
    if (strings == nullptr) return mr_fail_memory(error, count * sizeof *strings);
    size_t total = 0;
    for (size_t i = 0; i < count && proto->n_string_val > 0; i++) {
        size_t source = i < proto->n_string_val ? i : proto->n_string_val - 1;
        strings[i] = mr_proto_bytes(proto->string_val[source]);
        if (__builtin_add_overflow(total, strings[i].size_bytes, &total)) total = SIZE_MAX;
    }
    mr_status status = MR_OK;
    if (total > budget->tensor_bytes)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "a tensor of strings is larger than its file allows");
    else
        status = mr_tensor_init_strings(tensor, shape, strings, error);
    if (status == MR_OK) budget->tensor_bytes -= total;
    free(strings);
    return status;
}

mr_status mr_tensor_read(const Mr__TensorProto *proto, mr_import_budget *budget, mr_tensor *tensor, mr_error *error)
{
    mr_shape shape;
    *tensor = (mr_tensor){0};
    MR_TRY(mr_shape_read(proto->tensor_shape, &shape, error));
    mr_dtype dtype = proto->dtype > 0 && proto->dtype < MR_DTYPE_COUNT ? (mr_dtype)proto->dtype : MR_DTYPE_INVALID;
    size_t element = mr_dtype_size(dtype);
    int64_t count = mr_shape_count(shape);
    if (element == 0) return mr_fail(error, MR_UNIMPLEMENTED, "a tensor has type %d", proto->dtype);
    if (count < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor's shape is not fully known");
    if ((uint64_t)count > budget->tensor_bytes / element)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "a tensor of %" PRId64 " elements is larger than its file allows",
                       count);
    budget->tensor_bytes -= (size_t)count * element;
    if (dtype == MR_STRING) return read_strings(proto, shape, (size_t)count, budget, tensor, error);
    MR_TRY(mr_tensor_init(tensor, dtype, shape, error));
    mr_status status =
        proto->tensor_content.len > 0 ? read_content(proto, tensor, error) : read_list(proto, tensor, error);
    if (status != MR_OK) mr_tensor_deinit(tensor);
    return status;
}

/* ---- Writing ---- */

mr_status mr_shape_write(mr_shape shape, mr_arena *arena, Mr__TensorShapeProto **proto, mr_error *error)
{
    Mr__TensorShapeProto *made = MR_ARENA_NEW(arena, Mr__TensorShapeProto, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__tensor_shape_proto__init(made);
    *proto = made;
    made->unknown_rank = shape.rank < 0;
    if (shape.rank <= 0) return MR_OK;
    made->dim = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim *, (size_t)shape.rank);
    Mr__TensorShapeProto__Dim *dims = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim, (size_t)shape.rank);
    if (made->dim == nullptr || dims == nullptr) return mr_fail_memory(error, sizeof *dims);
    for (int32_t i = 0; i < shape.rank; i++) {
        mr__tensor_shape_proto__dim__init(&dims[i]);
        dims[i].size = shape.dims[i];
        made->dim[i] = &dims[i];
    }
    made->n_dim = (size_t)shape.rank;
    return MR_OK;
}

static mr_status write_strings(const mr_tensor *tensor, mr_arena *arena, Mr__TensorProto *proto, mr_error *error)
{
    size_t count = (size_t)mr_tensor_count(tensor);
    proto->string_val = MR_ARENA_NEW(arena, ProtobufCBinaryData, count + 1);
    if (proto->string_val == nullptr) return mr_fail_memory(error, count * sizeof *proto->string_val);
    for (size_t i = 0; i < count; i++) {
        mr_string string = mr_tensor_strings(tensor)[i];
        proto->string_val[i] = (ProtobufCBinaryData){string.size_bytes, (uint8_t *)string.data};
    }
    proto->n_string_val = count;
    return MR_OK;
}

/* Writes a single value to the list of the dtype. */
static mr_status write_value(const mr_tensor *tensor, mr_arena *arena, Mr__TensorProto *proto, mr_error *error)
{
    size_t size_bytes = mr_dtype_size(tensor->dtype);
    int32_t *whole = MR_ARENA_NEW(arena, int32_t, 1);
    uint8_t *copy = mr_arena_copy(arena, tensor->data, size_bytes);
    if (whole == nullptr || copy == nullptr) return mr_fail_memory(error, size_bytes);
    protobuf_c_boolean *boolean = (protobuf_c_boolean *)whole;
    switch (tensor->dtype) {
    case MR_FLOAT:
        proto->float_val = (float *)copy, proto->n_float_val = 1;
        break;
    case MR_DOUBLE:
        proto->double_val = (double *)copy, proto->n_double_val = 1;
        break;
    case MR_INT64:
        proto->int64_val = (int64_t *)copy, proto->n_int64_val = 1;
        break;
    case MR_UINT32:
        proto->uint32_val = (uint32_t *)copy, proto->n_uint32_val = 1;
        break;
    case MR_UINT64:
        proto->uint64_val = (uint64_t *)copy, proto->n_uint64_val = 1;
        break;
    case MR_COMPLEX64:
        proto->scomplex_val = (float *)copy, proto->n_scomplex_val = 2;
        break;
    case MR_COMPLEX128:
        proto->dcomplex_val = (double *)copy, proto->n_dcomplex_val = 2;
        break;
    case MR_BOOL:
        *boolean = *(bool *)tensor->data;
        proto->bool_val = boolean, proto->n_bool_val = 1;
        break;
    case MR_HALF:
    case MR_BFLOAT16:
        *whole = *(uint16_t *)tensor->data;
        proto->half_val = whole, proto->n_half_val = 1;
        break;
    default:
        *whole = tensor->dtype == MR_INT8 || tensor->dtype == MR_QINT8     ? *(int8_t *)tensor->data
                 : tensor->dtype == MR_INT16 || tensor->dtype == MR_QINT16 ? *(int16_t *)tensor->data
                 : size_bytes == 1                                         ? *(uint8_t *)tensor->data
                 : size_bytes == 2                                         ? *(uint16_t *)tensor->data
                                                                           : *(int32_t *)tensor->data;
        proto->int_val = whole, proto->n_int_val = 1;
    }
    return MR_OK;
}

static bool is_one_value(const mr_tensor *tensor)
{
    size_t size_bytes = mr_tensor_size_bytes(tensor), element = mr_dtype_size(tensor->dtype);
    const uint8_t *bytes = tensor->data;
    return size_bytes >= element && memcmp(bytes, bytes + element, size_bytes - element) == 0;
}

mr_status mr_tensor_write(const mr_tensor *tensor, mr_arena *arena, Mr__TensorProto **proto, mr_error *error)
{
    if (mr_dtype_size(tensor->dtype) == 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "a tensor of %s cannot be stored", mr_dtype_name(tensor->dtype));
    Mr__TensorProto *made = MR_ARENA_NEW(arena, Mr__TensorProto, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__tensor_proto__init(made);
    *proto = made;
    made->dtype = (int32_t)tensor->dtype;
    MR_TRY(mr_shape_write(tensor->shape, arena, &made->tensor_shape, error));
    if (mr_tensor_count(tensor) == 0) return MR_OK;
    if (tensor->dtype == MR_STRING) return write_strings(tensor, arena, made, error);
    if (is_one_value(tensor)) return write_value(tensor, arena, made, error);
    made->tensor_content = (ProtobufCBinaryData){mr_tensor_size_bytes(tensor), tensor->data};
    return MR_OK;
}
