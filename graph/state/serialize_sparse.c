/* Sparse tensors as strings: the indices, the values and the shape are serialized TensorProtos. As variants they are
 * the same strings (serialized.h). The kernels are here because kernels/ does not know the messages of graphs. */
#include "graph/ir/convert.h"
#include "graph/state/serialized.h"
#include "graph/state/sparse_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

/* What the strings of one call may unpack to. */
constexpr size_t TENSOR_BYTES_MAX = (size_t)1 << 32;

/* The sizes of all strings, as varints, then their bytes. */
static mr_status string_content(const mr_tensor *tensor, mr_arena *arena, ProtobufCBinaryData *content, mr_error *error)
{
    const mr_string *strings = mr_tensor_strings(tensor);
    int64_t count = mr_tensor_count(tensor);
    size_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        size += strings[i].size_bytes + 1;
        for (size_t rest = strings[i].size_bytes >> 7; rest > 0; rest >>= 7) size++;
    }
    uint8_t *bytes = MR_ARENA_NEW(arena, uint8_t, size);
    if (bytes == nullptr) return mr_fail_memory(error, size);
    *content = (ProtobufCBinaryData){size, bytes};
    for (int64_t i = 0; i < count; i++) {
        size_t rest = strings[i].size_bytes;
        for (; rest >= 0x80; rest >>= 7) *bytes++ = (uint8_t)(rest | 0x80);
        *bytes++ = (uint8_t)rest;
    }
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].size_bytes > 0) memcpy(bytes, strings[i].data, strings[i].size_bytes);
        bytes += strings[i].size_bytes;
    }
    return MR_OK;
}

/* As in TensorFlow, all elements are content, even equal ones and strings. */
static mr_status to_text(const mr_tensor *tensor, mr_arena *arena, mr_string *text, mr_error *error)
{
    Mr__TensorProto *proto = nullptr;
    mr_tensor empty = {.dtype = tensor->dtype, .shape = MR_SHAPE(0)};
    MR_TRY(mr_tensor_write(&empty, arena, &proto, error));
    MR_TRY(mr_shape_write(tensor->shape, arena, &proto->tensor_shape, error));
    if (mr_tensor_count(tensor) > 0 && tensor->dtype == MR_STRING)
        MR_TRY(string_content(tensor, arena, &proto->tensor_content, error));
    else if (mr_tensor_count(tensor) > 0)
        proto->tensor_content = (ProtobufCBinaryData){mr_tensor_size_bytes(tensor), tensor->data};
    return mr_proto_pack(proto, arena, text, error);
}

static mr_status part_to_texts(const mr_sparse_part *part, mr_arena *arena, mr_string texts[3], mr_error *error)
{
    MR_TRY(to_text(&part->indices, arena, &texts[0], error));
    MR_TRY(to_text(&part->values, arena, &texts[1], error));
    return to_text(&part->shape, arena, &texts[2], error);
}

static mr_status serialize(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    mr_string texts[3] = {0};
    mr_arena arena = {0};
    mr_sparse_part part = {0};
    MR_TRY(mr_sparse_read_parts(call, 0, 1, 2, &s, error));
    mr_status status = mr_sparse_part_of(call, &part, error);
    if (status == MR_OK) status = part_to_texts(&part, &arena, texts, error);
    if (status == MR_OK) status = mr_tensor_init_strings(&call->outputs[0], MR_SHAPE(3), texts, error);
    if (status == MR_OK) status = mr_serialized_to_graph(&call->outputs[0], call->node->output_dtypes[0], error);
    mr_sparse_part_deinit(&part);
    mr_arena_deinit(&arena);
    return status;
}

/* What becomes of the rows: three strings for each. */
typedef struct row_texts {
    mr_arena arena;
    mr_string *texts;
} row_texts;

static mr_status write_row(void *context, int64_t row, mr_sparse_part *part, mr_error *error)
{
    row_texts *rows = context;
    return part_to_texts(part, &rows->arena, rows->texts + 3 * row, error);
}

static mr_status serialize_many(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    row_texts rows = {0};
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    if (s.rank <= 1) return FAIL("Rank of input SparseTensor should be > 1, but saw rank: %" PRId64, s.rank);
    MR_TRY(mr_sparse_check_indices(call, &s, error));
    MR_TRY(mr_sparse_memory(call, s.shape[0], 3 * sizeof *rows.texts, &rows.texts, error));
    mr_status status = mr_sparse_rows(call, &s, write_row, &rows, error);
    if (status == MR_OK) status = mr_tensor_init_strings(&call->outputs[0], MR_SHAPE(s.shape[0], 3), rows.texts, error);
    if (status == MR_OK) status = mr_serialized_to_graph(&call->outputs[0], call->node->output_dtypes[0], error);
    mr_arena_deinit(&rows.arena);
    free(rows.texts);
    return status;
}

/* ---- Deserialization ---- */

/* Reads a varint; false at the end of the bytes. */
static bool read_size(mr_string bytes, size_t *at, size_t *size)
{
    *size = 0;
    for (int shift = 0; shift < 35 && *at < bytes.size_bytes; shift += 7) {
        uint8_t byte = (uint8_t)bytes.data[(*at)++];
        *size |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* TensorFlow writes strings as the content of the tensor: the sizes of all strings, then their bytes. */
static mr_status read_strings(const Mr__TensorProto *proto, mr_tensor *tensor, mr_error *error)
{
    mr_shape shape;
    mr_string bytes = mr_proto_bytes(proto->tensor_content);
    MR_TRY(mr_shape_read(proto->tensor_shape, &shape, error));
    int64_t count = mr_shape_count(shape);
    size_t at = 0;
    if (count < 0 || (uint64_t)count > bytes.size_bytes)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%lld strings in %zu bytes", (long long)count, bytes.size_bytes);
    mr_string *strings = malloc((size_t)MR_MAX(count, 1) * sizeof *strings);
    if (!strings) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    bool fits = true;
    for (int64_t i = 0; i < count && fits; i++) fits = read_size(bytes, &at, &strings[i].size_bytes);
    for (int64_t i = 0; i < count && fits; i++) {
        fits = strings[i].size_bytes <= bytes.size_bytes - at;
        strings[i].data = bytes.data + at;
        if (fits) at += strings[i].size_bytes;
    }
    mr_status status = fits ? mr_tensor_init_strings(tensor, shape, strings, error)
                            : mr_fail(error, MR_INVALID_ARGUMENT, "the strings are cut short");
    free(strings);
    return status;
}

static mr_status from_text(mr_string text, mr_import_budget *budget, mr_tensor *tensor, mr_error *error)
{
    mr_arena arena = {0};
    Mr__TensorProto *proto = nullptr;
    mr_status status = mr_proto_unpack_as(tensor_proto, text, &arena, &proto, error);
    bool is_content = status == MR_OK && proto->dtype == (int)MR_STRING && proto->tensor_content.len > 0;
    if (is_content) status = proto->tensor_shape ? read_strings(proto, tensor, error) : MR_INVALID_ARGUMENT;
    if (status == MR_OK && !is_content) status = mr_tensor_read(proto, budget, tensor, error);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status read_part(const mr_kernel_call *call, const mr_string *texts, int64_t at, mr_import_budget *budget,
                           mr_sparse_part *p, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_dtype dtype = call->node->output_dtypes[1];
    mr_tensor *tensors[] = {&p->indices, &p->values, &p->shape};
    for (int i = 0; i < 3; i++)
        if (from_text(texts[i], budget, tensors[i], error) != MR_OK)
            return FAIL("Could not parse serialized proto: serialized_sparse[%" PRId64 ", %d]", at, i);
    if (p->indices.dtype != MR_INT64 || p->indices.shape.rank != 2)
        return FAIL("Expected serialized_sparse[%" PRId64 ", 0] to represent an index matrix but received shape %s", at,
                    mr_shape_text(p->indices.shape, text, sizeof text));
    if (p->values.shape.rank != 1)
        return FAIL("Expected serialized_sparse[%" PRId64 ", 1] to represent a values vector but received shape %s", at,
                    mr_shape_text(p->values.shape, text, sizeof text));
    if (p->shape.dtype != MR_INT64 || p->shape.shape.rank != 1)
        return FAIL("Expected serialized_sparse[%" PRId64 ", 2] to represent a shape vector but received shape %s", at,
                    mr_shape_text(p->shape.shape, text, sizeof text));
    if (p->values.dtype != dtype)
        return FAIL("Requested SparseTensor of type %s but SparseTensor[%" PRId64 "].values.dtype() == %s",
                    mr_dtype_name(dtype), at, mr_dtype_name(p->values.dtype));
    if (p->indices.shape.dims[0] != p->values.shape.dims[0])
        return FAIL("Expected row counts of SparseTensor[%" PRId64 "].indices and SparseTensor[%" PRId64
                    "].values to match but they do not: %" PRId64 " vs. %" PRId64,
                    at, at, p->indices.shape.dims[0], p->values.shape.dims[0]);
    if (p->indices.shape.dims[1] != p->shape.shape.dims[0])
        return FAIL("Expected column counts of SparseTensor[%" PRId64 "].indices to match size of SparseTensor[%" PRId64
                    "].shape but they do not: %" PRId64 " vs. %" PRId64,
                    at, at, p->indices.shape.dims[1], p->shape.shape.dims[0]);
    return MR_OK;
}

static mr_status deserialize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (input->dtype == MR_VARIANT) input = mr_serialized_strings(input);
    if (!input) return FAIL("the variant is not a serialized sparse tensor");
    mr_shape lead = input->shape;
    bool is_matrix = strcmp(call->node->op, "DeserializeManySparse") == 0;
    if (lead.rank < 1) return FAIL("Serialized sparse should have non-zero rank but received shape []");
    if (is_matrix && lead.rank != 2)
        return FAIL("Serialized sparse should be a matrix but received shape %s",
                    mr_shape_text(lead, text, sizeof text));
    if (lead.dims[lead.rank - 1] != 3)
        return FAIL("Serialized sparse should have 3 as the last dimension but received shape %s",
                    mr_shape_text(lead, text, sizeof text));
    lead.rank--;
    int64_t count = mr_shape_count(lead);
    mr_sparse_part *parts = nullptr;
    mr_import_budget budget = {TENSOR_BYTES_MAX};
    if (count < 1) return FAIL("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    MR_TRY(mr_sparse_memory(call, count, sizeof *parts, &parts, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++)
        status = read_part(call, mr_tensor_strings(input) + 3 * i, i, &budget, &parts[i], error);
    if (status == MR_OK) status = mr_sparse_join(call, lead, parts, count, error);
    for (int64_t i = 0; i < count; i++) mr_sparse_part_deinit(&parts[i]);
    free(parts);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "SerializeSparse", .run = serialize},
    {.op = "SerializeManySparse", .run = serialize_many},
    {.op = "DeserializeSparse", .run = deserialize},
    {.op = "DeserializeManySparse", .run = deserialize},
};
const mr_kernel_table mr_state_kernels_serialize_sparse = {kernels, sizeof kernels / sizeof kernels[0]};
