/* The helpers declared in sparse.h. */
#include "kernels/sparse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In place of the indices of a tensor without any: a null pointer has no rows, not even empty ones. */
static const int64_t no_indices = 0;

/* Operators that word the faults of a sparse tensor's parts alike. */
typedef enum wording { VALIDATED, SERIALIZED, ELEMENTWISE, REDUCED, SET } wording;

static wording wording_of(const char *op)
{
    static const struct {
        const char *start;
        wording wording;
    } families[] = {{"Serialize", SERIALIZED},    {"Add", SERIALIZED},         {"SparseSplit", SERIALIZED},
                    {"SparseDense", ELEMENTWISE}, {"SparseSoft", ELEMENTWISE}, {"SparseReduce", REDUCED},
                    {"SparseToSparseSet", SET},   {"DenseToSparseSet", SET},   {"SetSize", SET}};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(op, families[i].start, strlen(families[i].start)) == 0) return families[i].wording;
    return VALIDATED;
}

#define FAIL(...) mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

static mr_status check_ranks(const mr_kernel_node *node, const mr_shape *indices, const mr_shape *values,
                             const mr_shape *shape, mr_error *error)
{
    wording words = wording_of(node->op);
    bool is_set = words == SET;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    (void)mr_shape_text(*indices, a, sizeof a);
    if (indices->rank != 2 && words == SERIALIZED)
        return FAIL("Input indices should be a matrix but received shape %s", a);
    if (indices->rank != 2 && words == ELEMENTWISE)
        return FAIL("Input sp_indices should be a matrix but received shape: %s", a);
    if (indices->rank != 2 && words != VALIDATED && values)
        return FAIL("indices and values rows (indexing dimension) must match. (indices = %" PRId64 ", values = %" PRId64
                    ")",
                    indices->rank > 0 ? indices->dims[0] : 0, values->rank > 0 ? values->dims[0] : 0);
    if (indices->rank != 2) return FAIL("Sparse indices must be rank 2 but is rank %d", indices->rank);
    if (words == ELEMENTWISE && values && (values->rank != 1 || shape->rank != 1))
        return FAIL("Inputs sp_values and sp_shape should be vectors but received shapes: %s and %s",
                    mr_shape_text(*values, a, sizeof a), mr_shape_text(*shape, b, sizeof b));
    if (values) (void)mr_shape_text(*values, a, sizeof a);
    if (values && values->rank != 1 && words == SERIALIZED)
        return FAIL("Input values should be a vector but received shape %s", a);
    if (values && values->rank != 1 && words != VALIDATED) return FAIL("vals must be a vec, but got: %s", a);
    if (values && values->rank != 1) return FAIL("Sparse values must be rank 1 but is rank %d", values->rank);
    (void)mr_shape_text(*shape, b, sizeof b);
    if (shape->rank == 1) return MR_OK;
    return words == SERIALIZED ? FAIL("Input shape should be a vector but received shape %s", b)
           : words == REDUCED  ? FAIL("Expected input_shape to be a vector; got shape: %s", b)
           : is_set            ? FAIL("Shape must be a 1D tensor.")
                               : FAIL("Sparse shape must be rank 1 but is rank %d", shape->rank);
}

mr_status mr_sparse_read_parts(const mr_kernel_call *call, int indices, int values, int shape, mr_sparse *sparse,
                               mr_error *error)
{
    const mr_tensor *in = call->inputs;
    const mr_kernel_node *node = call->node;
    const char *op = node->op;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(check_ranks(node, &in[indices].shape, values >= 0 ? &in[values].shape : nullptr, &in[shape].shape, error));
    *sparse = (mr_sparse){.indices = in[indices].data ? in[indices].data : &no_indices,
                          .values = values >= 0 ? &in[values] : nullptr,
                          .shape = in[shape].data,
                          .count = in[indices].shape.dims[0],
                          .rank = in[indices].shape.dims[1]};
    if (in[indices].dtype != MR_INT64 || in[shape].dtype != MR_INT64)
        return FAIL("the indices and the shape must be int64");
    bool is_many = strcmp(op, "AddManySparseToTensorsMap") == 0, is_cwise = strncmp(op, "SparseDenseCwise", 16) == 0;
    bool is_listed = strcmp(op, "SerializeManySparse") == 0 || strcmp(op, "SparseConcat") == 0 ||
                     strcmp(op, "SparseSoftmax") == 0 || wording_of(op) == REDUCED || wording_of(op) == SET;
    int64_t value_count = values >= 0 ? in[values].shape.dims[0] : sparse->count, rank = in[shape].shape.dims[0];
    (void)mr_shape_text(in[indices].shape, text, sizeof text);
    if (value_count != sparse->count)
        return is_many ? FAIL("Number of values must match first dimension of indices. Got %" PRId64
                              " values, indices shape: %s",
                              value_count, text)
               : is_cwise
                   ? FAIL("The first dimension of values and indices should match. (%" PRId64 " vs. %" PRId64 ")",
                          value_count, sparse->count)
               : is_listed ? FAIL("indices and values rows (indexing dimension) must match. (indices = %" PRId64
                                  ", values = %" PRId64 ")",
                                  sparse->count, value_count)
                           : FAIL("Number of elements in indices (%" PRId64 ") and values (%" PRId64 ") do not match",
                                  sparse->count, value_count);
    if (rank != sparse->rank)
        return is_many || is_cwise ? FAIL("Number of dimensions must match second dimension of indices. Got %" PRId64
                                          " dimensions, indices shape: %s",
                                          rank, text)
               : is_listed && rank > 1
                   ? FAIL("Order length must be SparseTensor rank.")
                   : FAIL("Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match", sparse->rank, rank);
    return MR_OK;
}

mr_status mr_sparse_check_shape(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    int64_t count = 1;
    for (int64_t i = 0; i < sparse->rank; i++)
        if (sparse->shape[i] < 0)
            return FAIL("Expected shape dimensions to be non-negative, got %" PRId64, sparse->shape[i]);
    for (int64_t i = 0; i < sparse->rank; i++) {
        int64_t before = count;
        if (__builtin_mul_overflow(before, sparse->shape[i], &count))
            return FAIL("Encountered overflow when multiplying %" PRId64 " with %" PRId64 ", result: -1", before,
                        sparse->shape[i]);
    }
    return MR_OK;
}

mr_status mr_sparse_read(const mr_kernel_call *call, int indices, int values, int shape, mr_sparse *sparse,
                         mr_error *error)
{
    MR_TRY(mr_sparse_read_parts(call, indices, values, shape, sparse, error));
    return mr_sparse_check_shape(call, sparse, error);
}

mr_status mr_sparse_check_inside(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    char text[MR_SPARSE_TEXT_SIZE];
    for (int64_t i = 0; i < sparse->count; i++)
        for (int64_t d = 0; d < sparse->rank; d++) {
            const int64_t *row = sparse->indices + i * sparse->rank;
            if (row[d] >= 0 && row[d] < sparse->shape[d]) continue;
            return FAIL("Sparse index tuple indices[%" PRId64 ", :] = [%s] is out of bounds", i,
                        mr_sparse_text(row, sparse->rank, ", ", text, sizeof text));
        }
    return MR_OK;
}

char *mr_sparse_text(const int64_t *values, int64_t count, const char *separator, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? separator : "", values[i]);
    return text;
}

int mr_sparse_compare(const int64_t *a, const int64_t *b, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t column = columns ? columns[i] : i;
        if (a[column] != b[column]) return a[column] < b[column] ? -1 : 1;
    }
    return 0;
}

mr_status mr_sparse_check_indices(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error)
{
    char row_text[MR_SPARSE_TEXT_SIZE], shape_text[MR_SPARSE_TEXT_SIZE];
    const int64_t *rows = sparse->indices ? sparse->indices : &no_indices;
    for (int64_t i = 0; i < sparse->count; i++) {
        const int64_t *row = rows + i * sparse->rank;
        bool inside = true;
        for (int64_t d = 0; d < sparse->rank && inside; d++) inside = row[d] >= 0 && row[d] < sparse->shape[d];
        int order = i == 0 ? -1 : mr_sparse_compare(row - sparse->rank, row, nullptr, sparse->rank);
        if (inside && order < 0) continue;
        (void)mr_sparse_text(row, sparse->rank, ",", row_text, sizeof row_text);
        if (!inside)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "indices[%" PRId64 "] = [%s] is out of bounds: need 0 <= index < [%s]", i, row_text,
                                  mr_sparse_text(sparse->shape, sparse->rank, ",", shape_text, sizeof shape_text));
        if (order > 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "indices[%" PRId64 "] = [%s] is out of order. Many sparse ops require sorted "
                                  "indices. Use `tf.sparse.reorder` to create a correctly ordered copy.",
                                  i, row_text);
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices[%" PRId64 "] = [%s] is repeated", i,
                              row_text);
    }
    return MR_OK;
}

mr_status mr_sparse_memory(const mr_kernel_call *call, int64_t count, size_t size, void *memory, mr_error *error)
{
    size_t bytes;
    void *allocated = nullptr;
    if (count >= 0 && !__builtin_mul_overflow((size_t)count, size, &bytes)) allocated = calloc(bytes ? bytes : 1, 1);
    memcpy(memory, &allocated, sizeof allocated);
    return allocated
               ? MR_OK
               : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED,
                                "OOM when allocating tensor with shape[%" PRId64 "] of %zu bytes each", count, size);
}

/* Merges the sorted runs [begin, middle) and [middle, end). */
static void merge(const mr_sparse *s, const int32_t *columns, int64_t count, const int64_t *from, int64_t *to,
                  int64_t begin, int64_t middle, int64_t end)
{
    int64_t a = begin, b = middle;
    for (int64_t i = begin; i < end; i++) {
        bool second = a == middle || (b < end && mr_sparse_compare(s->indices + from[b] * s->rank,
                                                                   s->indices + from[a] * s->rank, columns, count) < 0);
        to[i] = second ? from[b++] : from[a++];
    }
}

mr_status mr_sparse_order(const mr_kernel_call *call, const mr_sparse *sparse, const int32_t *columns, int64_t count,
                          int64_t **order, mr_error *error)
{
    int64_t n = sparse->count, *to;
    bool is_sorted = true;
    MR_TRY(mr_sparse_memory(call, n, sizeof **order, order, error));
    for (int64_t i = 0; i < n; i++) {
        const int64_t *row = sparse->indices + i * sparse->rank;
        (*order)[i] = i;
        is_sorted = is_sorted && (i == 0 || mr_sparse_compare(row - sparse->rank, row, columns, count) <= 0);
    }
    if (is_sorted) return MR_OK;
    mr_status status = mr_sparse_memory(call, n, sizeof *to, &to, error);
    for (int64_t run = 1; status == MR_OK && run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run)
            merge(sparse, columns, count, *order, to, begin, MR_MIN(begin + run, n), MR_MIN(begin + 2 * run, n));
        int64_t *merged = to;
        to = *order;
        *order = merged;
    }
    free(to);
    return status;
}

mr_status mr_sparse_take(mr_kernel_call *call, int index, const mr_tensor *values, const int64_t *positions,
                         int64_t count, const void *fill, mr_error *error)
{
    mr_sink sink;
    MR_TRY(mr_sink_init(call, index, MR_SHAPE(count), &sink, error));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)sink.data + (size_t)i * sink.element_size,
               positions[i] < 0 ? fill : (const char *)values->data + (size_t)positions[i] * sink.element_size,
               sink.element_size);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

mr_status mr_sparse_put(mr_kernel_call *call, int index, const int64_t *values, int64_t count, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, index, MR_SHAPE(count), error));
    if (count > 0) memcpy(call->outputs[index].data, values, (size_t)count * sizeof *values);
    return MR_OK;
}
