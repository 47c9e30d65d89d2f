/* Sparse tensors as strings: the indices, the values and the shape are serialized TensorProtos. As variants they are
 * the same strings (serialized.h). The kernels are here because kernels/ does not know the messages of graphs. */
#include "graph/ir/convert.h"
#include "graph/state/serialized.h"
#include "kernels/sparse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

/* What the strings of one call may unpack to. */
constexpr size_t TENSOR_BYTES_MAX = (size_t)1 << 32;

static mr_status to_text(const mr_tensor *tensor, mr_arena *arena, mr_string *text, mr_error *error)
{
    Mr__TensorProto *proto = nullptr;
    MR_TRY(mr_tensor_write(tensor, arena, &proto, error));
    return mr_proto_pack(proto, arena, text, error);
}

/* Writes the values at the positions as a sparse tensor without the first `skipped` dimensions. */
static mr_status part_to_texts(const mr_kernel_call *call, const mr_sparse *s, const int64_t *positions, int64_t count,
                               int64_t skipped, mr_arena *arena, mr_string texts[3], mr_error *error)
{
    mr_tensor indices = {0}, values = {0}, shape = {0};
    int64_t rank = s->rank - skipped;
    size_t size = mr_dtype_size(s->values->dtype);
    mr_status status = mr_tensor_init(&indices, MR_INT64, MR_SHAPE(count, rank), error);
    if (status == MR_OK) status = mr_tensor_init(&values, s->values->dtype, MR_SHAPE(count), error);
    if (status == MR_OK) status = mr_tensor_init_copy(&shape, MR_INT64, MR_SHAPE(rank), s->shape + skipped, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) {
        int64_t from = positions[i];
        if (rank > 0)
            memcpy((int64_t *)indices.data + i * rank, s->indices + from * s->rank + skipped,
                   (size_t)rank * sizeof(int64_t));
        memcpy((char *)values.data + (size_t)i * size, (const char *)s->values->data + (size_t)from * size, size);
    }
    if (status == MR_OK) status = to_text(&indices, arena, &texts[0], error);
    if (status == MR_OK) status = to_text(&values, arena, &texts[1], error);
    if (status == MR_OK) status = to_text(&shape, arena, &texts[2], error);
    mr_tensor_deinit(&indices);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&shape);
    (void)call;
    return status;
}

/* The sparse tensor in inputs 0 to 2 as a vector of three strings. */
static mr_status serialize_one(mr_kernel_call *call, mr_tensor *strings, mr_error *error)
{
    mr_sparse s;
    mr_string texts[3] = {0};
    mr_arena arena = {0};
    int64_t *positions = nullptr;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    MR_TRY(mr_sparse_memory(call, s.count, sizeof *positions, &positions, error));
    for (int64_t i = 0; i < s.count; i++) positions[i] = i;
    mr_status status = part_to_texts(call, &s, positions, s.count, 0, &arena, texts, error);
    if (status == MR_OK) status = mr_tensor_init_strings(strings, MR_SHAPE(3), texts, error);
    mr_arena_deinit(&arena);
    free(positions);
    return status;
}

/* One row of strings for each index of the first dimension. */
static mr_status serialize_rows(mr_kernel_call *call, const mr_sparse *s, const int64_t *order, mr_string *texts,
                                mr_arena *arena, mr_error *error)
{
    int64_t begin = 0, rows = s->shape[0];
    for (int64_t row = 0; row < rows; row++) {
        int64_t end = begin;
        while (end < s->count && s->indices[order[end] * s->rank] == row) end++;
        MR_TRY(part_to_texts(call, s, order + begin, end - begin, 1, arena, texts + 3 * row, error));
        begin = end;
    }
    return begin == s->count ? MR_OK : FAIL("the index of a value is outside dimension 0 of size %" PRId64, rows);
}

/* Its parts along dimension 0 as a matrix with a row for each. */
static mr_status serialize_parts(mr_kernel_call *call, mr_tensor *strings, mr_error *error)
{
    mr_sparse s;
    const int32_t first = 0;
    int64_t *order = nullptr;
    mr_string *texts = nullptr;
    mr_arena arena = {0};
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    if (s.rank <= 1) return FAIL("Rank of input SparseTensor should be > 1, but saw rank: %" PRId64, s.rank);
    MR_TRY(mr_sparse_order(call, &s, &first, 1, &order, error));
    mr_status status = mr_sparse_memory(call, s.shape[0], 3 * sizeof *texts, &texts, error);
    if (status == MR_OK) status = serialize_rows(call, &s, order, texts, &arena, error);
    if (status == MR_OK) status = mr_tensor_init_strings(strings, MR_SHAPE(s.shape[0], 3), texts, error);
    mr_arena_deinit(&arena);
    free(texts);
    free(order);
    return status;
}

mr_status mr_serialized_inputs(mr_kernel_call *call, bool parts, mr_tensor *strings, mr_error *error)
{
    return parts ? serialize_parts(call, strings, error) : serialize_one(call, strings, error);
}

static mr_status serialize(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(serialize_one(call, &call->outputs[0], error));
    return mr_serialized_to_graph(&call->outputs[0], call->node->output_dtypes[0], error);
}

static mr_status serialize_many(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(serialize_parts(call, &call->outputs[0], error));
    return mr_serialized_to_graph(&call->outputs[0], call->node->output_dtypes[0], error);
}

/* ---- Deserialization ---- */

/* A sparse tensor that was read. */
typedef struct part {
    mr_tensor indices, values, shape;
} part;

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
                           part *p, mr_error *error)
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

/* Joins the parts: the dimensions of `lead` come before theirs. */
static mr_status join(mr_kernel_call *call, mr_shape lead, const part *parts, int64_t count, mr_error *error)
{
    int64_t rank = parts[0].shape.shape.dims[0], total = 0, columns = lead.rank + rank, at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (parts[i].shape.shape.dims[0] != rank)
            return FAIL("Inconsistent shape across SparseTensors: rank prior to SparseTensor[%" PRId64 "] was: %" PRId64
                        " but rank of SparseTensor[%" PRId64 "] is: %" PRId64,
                        i, rank, i, parts[i].shape.shape.dims[0]);
        total += parts[i].values.shape.dims[0];
    }
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(total, columns), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(columns), error));
    int64_t *indices = call->outputs[0].data, *shape = call->outputs[2].data;
    for (int d = 0; d < lead.rank; d++) shape[d] = lead.dims[d];
    for (int64_t d = 0; d < rank; d++) {
        shape[lead.rank + d] = 0;
        for (int64_t i = 0; i < count; i++)
            shape[lead.rank + d] = MR_MAX(shape[lead.rank + d], mr_tensor_int64s(&parts[i].shape)[d]);
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 1, MR_SHAPE(total), &sink, error));
    for (int64_t i = 0; i < count; i++) {
        int64_t rows = parts[i].values.shape.dims[0];
        if (rows > 0)
            memcpy((char *)sink.data + (size_t)at * sink.element_size, parts[i].values.data,
                   (size_t)rows * sink.element_size);
        for (int64_t r = 0; r < rows; r++, at++) {
            int64_t rest = i, *row = indices + at * columns;
            for (int d = lead.rank - 1; d >= 0; d--) {
                row[d] = rest % lead.dims[d];
                rest /= lead.dims[d];
            }
            if (rank > 0)
                memcpy(row + lead.rank, mr_tensor_int64s(&parts[i].indices) + r * rank, (size_t)rank * sizeof *row);
        }
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

mr_status mr_serialized_outputs(mr_kernel_call *call, const mr_tensor *strings, mr_error *error)
{
    mr_shape lead = strings->shape;
    lead.rank--;
    int64_t count = mr_shape_count(lead);
    part *parts = nullptr;
    mr_import_budget budget = {TENSOR_BYTES_MAX};
    if (count < 1) return FAIL("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    MR_TRY(mr_sparse_memory(call, count, sizeof *parts, &parts, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++)
        status = read_part(call, mr_tensor_strings(strings) + 3 * i, i, &budget, &parts[i], error);
    if (status == MR_OK) status = join(call, lead, parts, count, error);
    for (int64_t i = 0; i < count; i++) {
        mr_tensor_deinit(&parts[i].indices);
        mr_tensor_deinit(&parts[i].values);
        mr_tensor_deinit(&parts[i].shape);
    }
    free(parts);
    return status;
}

static mr_status deserialize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (input->dtype == MR_VARIANT) input = mr_serialized_strings(input);
    if (!input) return FAIL("the variant is not a serialized sparse tensor");
    mr_shape shape = input->shape;
    bool is_matrix = strcmp(call->node->op, "DeserializeManySparse") == 0;
    if (shape.rank < 1) return FAIL("Serialized sparse should have non-zero rank but received shape []");
    if (is_matrix && shape.rank != 2)
        return FAIL("Serialized sparse should be a matrix but received shape %s",
                    mr_shape_text(shape, text, sizeof text));
    if (shape.dims[shape.rank - 1] != 3)
        return FAIL("Serialized sparse should have 3 as the last dimension but received shape %s",
                    mr_shape_text(shape, text, sizeof text));
    return mr_serialized_outputs(call, input, error);
}

static const mr_kernel kernels[] = {
    {.op = "SerializeSparse", .run = serialize},
    {.op = "SerializeManySparse", .run = serialize_many},
    {.op = "DeserializeSparse", .run = deserialize},
    {.op = "DeserializeManySparse", .run = deserialize},
};
const mr_kernel_table mr_state_kernels_serialize_sparse = {kernels, sizeof kernels / sizeof kernels[0]};
