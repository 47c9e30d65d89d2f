/* Writes V1 checkpoints, for graphs that save with them: the operators Save and SaveSlices. The format is described in
 * checkpoint_v1.c. */
#include "base/status.h"
#include "proto/bundle.pb-c.h"
#include "proto/proto.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/checkpoint/table.h"
#include "records/io/file.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    mr_string key, value;
} entry;

static mr_status make_shape(mr_shape shape, mr_arena *arena, Mr__TensorShapeProto **result, mr_error *error)
{
    size_t count = (size_t)shape.rank;
    Mr__TensorShapeProto *made = MR_ARENA_NEW(arena, Mr__TensorShapeProto, 1);
    Mr__TensorShapeProto__Dim *dims = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim, count + 1);
    if (made == nullptr || dims == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__tensor_shape_proto__init(made);
    made->dim = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim *, count + 1);
    if (made->dim == nullptr) return mr_fail_memory(error, count * sizeof *made->dim);
    for (; made->n_dim < count; made->n_dim++) {
        mr__tensor_shape_proto__dim__init(&dims[made->n_dim]);
        dims[made->n_dim].size = shape.dims[made->n_dim];
        made->dim[made->n_dim] = &dims[made->n_dim];
    }
    *result = made;
    return MR_OK;
}

static mr_status make_slice(const mr_checkpoint_slice *slice, mr_arena *arena, Mr__TensorSliceProto **result,
                            mr_error *error)
{
    size_t count = (size_t)slice->rank;
    Mr__TensorSliceProto *made = MR_ARENA_NEW(arena, Mr__TensorSliceProto, 1);
    Mr__TensorSliceProto__Extent *extents = MR_ARENA_NEW(arena, Mr__TensorSliceProto__Extent, count + 1);
    if (made == nullptr || extents == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__tensor_slice_proto__init(made);
    made->extent = MR_ARENA_NEW(arena, Mr__TensorSliceProto__Extent *, count + 1);
    if (made->extent == nullptr) return mr_fail_memory(error, count * sizeof *made->extent);
    for (; made->n_extent < count; made->n_extent++) {
        size_t i = made->n_extent;
        mr__tensor_slice_proto__extent__init(&extents[i]);
        if (slice->lengths[i] >= 0) {
            extents[i].start = slice->starts[i];
            extents[i].length = slice->lengths[i];
            extents[i].has_length_case = MR__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        }
        made->extent[i] = &extents[i];
    }
    *result = made;
    return MR_OK;
}

/* The elements of a short integer type as int32s. */
static mr_status widen(const mr_tensor *value, size_t count, mr_arena *arena, int32_t **result, mr_error *error)
{
    *result = MR_ARENA_NEW(arena, int32_t, count + 1);
    if (*result == nullptr) return mr_fail_memory(error, count * sizeof **result);
    for (size_t i = 0; i < count; i++) {
        switch (value->dtype) {
        case MR_INT8:
        case MR_QINT8:
            (*result)[i] = (int32_t)((const int8_t *)value->data)[i];
            break;
        case MR_INT16:
        case MR_QINT16:
            (*result)[i] = ((const int16_t *)value->data)[i];
            break;
        case MR_UINT8:
        case MR_QUINT8:
            (*result)[i] = ((const uint8_t *)value->data)[i];
            break;
        default:
            (*result)[i] = ((const uint16_t *)value->data)[i];
            break;
        }
    }
    return MR_OK;
}

static mr_status put_strings(const mr_tensor *value, size_t count, mr_arena *arena, Mr__TensorProto *data,
                             mr_error *error)
{
    data->string_val = MR_ARENA_NEW(arena, ProtobufCBinaryData, count + 1);
    if (data->string_val == nullptr) return mr_fail_memory(error, count * sizeof *data->string_val);
    for (; data->n_string_val < count; data->n_string_val++) {
        mr_string text = mr_tensor_strings(value)[data->n_string_val];
        data->string_val[data->n_string_val] = (ProtobufCBinaryData){text.size_bytes, (uint8_t *)text.data};
    }
    return MR_OK;
}

static mr_status put_bools(const mr_tensor *value, size_t count, mr_arena *arena, Mr__TensorProto *data,
                           mr_error *error)
{
    data->bool_val = MR_ARENA_NEW(arena, protobuf_c_boolean, count + 1);
    if (data->bool_val == nullptr) return mr_fail_memory(error, count * sizeof *data->bool_val);
    for (; data->n_bool_val < count; data->n_bool_val++)
        data->bool_val[data->n_bool_val] = ((const bool *)value->data)[data->n_bool_val];
    return MR_OK;
}

/* Lists of the tensor's own width borrow its memory. */
static mr_status make_data(const mr_tensor *value, mr_arena *arena, Mr__TensorProto *data, mr_error *error)
{
    size_t count = (size_t)mr_tensor_count(value);
    data->dtype = (int32_t)value->dtype;
    MR_TRY(make_shape(value->shape, arena, &data->tensor_shape, error));
#define LIST(field, factor) data->field = value->data, data->n_##field = (factor) * count
    switch (value->dtype) {
    case MR_STRING:
        return put_strings(value, count, arena, data, error);
    case MR_BOOL:
        return put_bools(value, count, arena, data, error);
    case MR_FLOAT:
        LIST(float_val, 1);
        return MR_OK;
    case MR_DOUBLE:
        LIST(double_val, 1);
        return MR_OK;
    case MR_INT32:
    case MR_QINT32:
        LIST(int_val, 1);
        return MR_OK;
    case MR_INT64:
        LIST(int64_val, 1);
        return MR_OK;
    case MR_UINT32:
        LIST(uint32_val, 1);
        return MR_OK;
    case MR_UINT64:
        LIST(uint64_val, 1);
        return MR_OK;
    case MR_COMPLEX64:
        LIST(scomplex_val, 2);
        return MR_OK;
    case MR_COMPLEX128:
        LIST(dcomplex_val, 2);
        return MR_OK;
    case MR_HALF:
    case MR_BFLOAT16:
        data->n_half_val = count;
        return widen(value, count, arena, &data->half_val, error);
    case MR_INT8:
    case MR_INT16:
    case MR_UINT8:
    case MR_UINT16:
    case MR_QINT8:
    case MR_QUINT8:
    case MR_QINT16:
    case MR_QUINT16:
        data->n_int_val = count;
        return widen(value, count, arena, &data->int_val, error);
    default:
        return mr_fail(error, MR_UNIMPLEMENTED, "type %s cannot be saved", mr_dtype_name(value->dtype));
    }
#undef LIST
}

static mr_status make_entry(const mr_checkpoint_v1_item *item, mr_arena *arena, entry *made, mr_error *error)
{
    Mr__SavedTensorSlices message = MR__SAVED_TENSOR_SLICES__INIT;
    Mr__SavedSlice slice = MR__SAVED_SLICE__INIT;
    Mr__TensorProto data = MR__TENSOR_PROTO__INIT;
    message.data = &slice;
    slice.name = (char *)item->key;
    slice.data = &data;
    MR_TRY(make_slice(&item->slice, arena, &slice.slice, error));
    MR_TRY(make_data(item->value, arena, &data, error));
    MR_TRY(mr_proto_pack(&message, arena, &made->value, error));
    return mr_checkpoint_slice_key(item->key, &item->slice, arena, &made->key, error);
}

/* Slices of the same tensor follow one another in the items. */
static mr_status make_header(const mr_checkpoint_v1_item *items, int32_t count, mr_arena *arena, mr_string *bytes,
                             mr_error *error)
{
    Mr__SavedTensorSlices message = MR__SAVED_TENSOR_SLICES__INIT;
    Mr__SavedTensorSliceMeta meta = MR__SAVED_TENSOR_SLICE_META__INIT;
    Mr__VersionDef versions = MR__VERSION_DEF__INIT;
    size_t most = (size_t)count + 1;
    Mr__SavedSliceMeta *tensors = MR_ARENA_NEW(arena, Mr__SavedSliceMeta, most);
    Mr__TensorSliceProto **slices = MR_ARENA_NEW(arena, Mr__TensorSliceProto *, most);
    meta.tensor = MR_ARENA_NEW(arena, Mr__SavedSliceMeta *, most);
    if (tensors == nullptr || slices == nullptr || meta.tensor == nullptr)
        return mr_fail_memory(error, most * sizeof *tensors);
    versions.producer = 1;
    meta.versions = &versions;
    message.meta = &meta;
    for (int32_t i = 0; i < count; i++) {
        bool is_next = i == 0 || strcmp(items[i - 1].key, items[i].key) != 0;
        Mr__SavedSliceMeta *tensor = &tensors[is_next ? meta.n_tensor++ : meta.n_tensor - 1];
        if (is_next) {
            mr__saved_slice_meta__init(tensor);
            tensor->name = (char *)items[i].key;
            tensor->type = (int32_t)items[i].value->dtype;
            tensor->slice = &slices[i];
            meta.tensor[meta.n_tensor - 1] = tensor;
            MR_TRY(make_shape(items[i].full, arena, &tensor->shape, error));
        }
        MR_TRY(make_slice(&items[i].slice, arena, &slices[i], error));
        tensor->n_slice++;
    }
    return mr_proto_pack(&message, arena, bytes, error);
}

static int by_key(const void *a, const void *b)
{
    return mr_table_compare(((const entry *)a)->key, ((const entry *)b)->key);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mr_checkpoint_v1_item *)a)->key, ((const mr_checkpoint_v1_item *)b)->key);
}

static mr_status write_items(const char *path, mr_checkpoint_v1_item *items, int32_t count, mr_arena *arena,
                             mr_table_builder *builder, mr_error *error)
{
    mr_string header = {0}, bytes = {0};
    entry *entries = MR_ARENA_NEW(arena, entry, (size_t)count + 1);
    if (entries == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *entries);
    qsort(items, (size_t)count, sizeof *items, by_name);
    MR_TRY(make_header(items, count, arena, &header, error));
    for (int32_t i = 0; i < count; i++) {
        mr_status status = make_entry(&items[i], arena, &entries[i], error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "%s: key %.200s", path, items[i].key);
    }
    qsort(entries, (size_t)count, sizeof *entries, by_key);
    for (int32_t i = 1; i < count; i++)
        if (by_key(&entries[i - 1], &entries[i]) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a tensor is saved twice", path);
    mr_table_add(builder, (mr_string){"", 0}, header);
    for (int32_t i = 0; i < count; i++) mr_table_add(builder, entries[i].key, entries[i].value);
    MR_TRY(mr_table_finish(builder, &bytes, error));
    return mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
}

mr_status mr_checkpoint_v1_write(const char *path, mr_checkpoint_v1_item *items, int32_t count, mr_error *error)
{
    mr_arena arena = {0};
    mr_table_builder builder = {0};
    mr_status status = write_items(path, items, count, &arena, &builder, error);
    mr_table_builder_deinit(&builder);
    mr_arena_deinit(&arena);
    return status;
}
