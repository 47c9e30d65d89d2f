/* Operators that move the elements of sparse tensors: order, reshape, rows, slices, concatenation, and to dense. */
#include "kernels/sparse.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

/* Creates output `index`, a matrix of indices. */
static mr_status matrix(mr_kernel_call *call, int index, int64_t rows, int64_t columns, int64_t **data, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, index, MR_SHAPE(rows, columns), error));
    *data = call->outputs[index].data;
    return MR_OK;
}

/* Creates the matrix of the rows at the positions. */
static mr_status take_rows(mr_kernel_call *call, int index, const mr_sparse *s, const int64_t *positions, int64_t count,
                           int64_t **data, mr_error *error)
{
    MR_TRY(matrix(call, index, count, s->rank, data, error));
    size_t row_bytes = (size_t)s->rank * sizeof(int64_t);
    for (int64_t i = 0; i < count && row_bytes > 0; i++)
        memcpy(*data + i * s->rank, s->indices + positions[i] * s->rank, row_bytes);
    return MR_OK;
}

static mr_status reorder(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    int64_t *order = nullptr, *rows;
    MR_TRY(mr_sparse_read_parts(call, 0, 1, 2, &s, error));
    mr_status status = mr_sparse_order(call, &s, nullptr, s.rank, &order, error);
    if (status == MR_OK) status = take_rows(call, 0, &s, order, s.count, &rows, error);
    if (status == MR_OK) status = mr_sparse_take(call, 1, s.values, order, s.count, nullptr, error);
    free(order);
    return status;
}

/* ---- SparseReshape ---- */

static mr_status dense_count(const mr_kernel_call *call, const int64_t *shape, int64_t rank, int64_t *count,
                             mr_error *error)
{
    *count = 1;
    for (int64_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(*count, shape[i], count)) return FAIL("the dense shape has too many elements");
    return MR_OK;
}

/* Stores the requested shape, with the size that stands for -1. */
static mr_status reshaped(const mr_kernel_call *call, const mr_sparse *s, int64_t *target, mr_error *error)
{
    int64_t rank = call->inputs[2].shape.dims[0], total, product = 1, unknown = -1;
    const int64_t *wanted = call->inputs[2].data;
    char a[MR_SPARSE_TEXT_SIZE], b[MR_SPARSE_TEXT_SIZE];
    MR_TRY(dense_count(call, s->shape, s->rank, &total, error));
    for (int64_t i = 0; i < rank; i++) {
        target[i] = wanted[i];
        if (wanted[i] == -1 && unknown >= 0)
            return FAIL("only one output dimension may be -1, not both %" PRId64 " and %" PRId64, unknown, i);
        if (wanted[i] < -1) return FAIL("size %" PRId64 " must be non-negative, not %" PRId64, i, wanted[i]);
        if (wanted[i] == -1)
            unknown = i;
        else if (__builtin_mul_overflow(product, wanted[i], &product))
            return FAIL("the requested shape has too many elements");
    }
    if (unknown >= 0) {
        if (product <= 0)
            return FAIL("reshape cannot infer the missing input size for an empty tensor unless all specified input "
                        "sizes are non-zero");
        target[unknown] = total / product;
        if (target[unknown] * product != total)
            return FAIL("Input to reshape is a SparseTensor with %" PRId64
                        " dense values, but the requested shape requires a multiple of %" PRId64
                        ". input_shape=[%s] output_shape=[%s]",
                        total, product, mr_sparse_text(s->shape, s->rank, ",", a, sizeof a),
                        mr_sparse_text(target, rank, ",", b, sizeof b));
        return MR_OK;
    }
    if (product != total)
        return FAIL("Input to reshape is a tensor with %" PRId64 " dense values, but the requested shape has %" PRId64
                    ". input_shape=[%s] output_shape=[%s]",
                    total, product, mr_sparse_text(s->shape, s->rank, ",", a, sizeof a),
                    mr_sparse_text(target, rank, ",", b, sizeof b));
    return MR_OK;
}

static mr_status reshape(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    int64_t *rows;
    MR_TRY(mr_sparse_read(call, 0, -1, 1, &s, error));
    if (call->inputs[2].shape.rank != 1)
        return FAIL("Target shape should be a vector but received a tensor of rank %d", call->inputs[2].shape.rank);
    int64_t rank = call->inputs[2].shape.dims[0];
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(rank), error));
    int64_t *target = call->outputs[1].data;
    MR_TRY(reshaped(call, &s, target, error));
    MR_TRY(matrix(call, 0, s.count, rank, &rows, error));
    for (int64_t i = 0; i < s.count; i++) {
        uint64_t at = 0;
        for (int64_t d = 0; d < s.rank; d++) {
            int64_t index = s.indices[i * s.rank + d];
            if (index < 0 || index >= s.shape[d])
                return FAIL("index %" PRId64 " of value %" PRId64 " is outside dimension %" PRId64 " of size %" PRId64,
                            index, i, d, s.shape[d]);
            at = at * (uint64_t)s.shape[d] + (uint64_t)index;
        }
        for (int64_t d = rank - 1; d >= 0; d--) {
            rows[i * rank + d] = (int64_t)(at % (uint64_t)target[d]);
            at /= (uint64_t)target[d];
        }
    }
    return MR_OK;
}

/* ---- SparseFillEmptyRows ---- */

/* Places each value in its row, in the order of the input, and one default value in each empty row.
 * ends  for each row, the position after its last value so far
 * from  for each output value, its position in the input or -1 */
static mr_status fill_rows(mr_kernel_call *call, const mr_sparse *s, int64_t *ends, int64_t **from, mr_error *error)
{
    int64_t rows = s->shape[0], total = 0, *map, *indices;
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(rows), error));
    bool *is_empty = call->outputs[2].data;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t row = s->indices[i * s->rank];
        if (row < 0 || row >= rows)
            return FAIL("indices(%" PRId64 ", 0) is invalid: %" PRId64 " >= %" PRId64, i, row, rows);
        ends[row]++;
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t count = ends[r];
        is_empty[r] = count == 0;
        ends[r] = total;
        total += count == 0 ? 1 : count;
    }
    MR_TRY(mr_sparse_memory(call, total, sizeof **from, from, error));
    for (int64_t i = 0; i < total; i++) (*from)[i] = -1;
    MR_TRY(matrix(call, 0, total, s->rank, &indices, error));
    if (total > 0) memset(indices, 0, mr_tensor_size_bytes(&call->outputs[0]));
    for (int64_t r = 0; r < rows; r++)
        if (is_empty[r]) indices[ends[r] * s->rank] = r;
    MR_TRY(mr_kernel_output(call, 3, MR_SHAPE(s->count), error));
    map = call->outputs[3].data;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t at = ends[s->indices[i * s->rank]]++;
        map[i] = at;
        (*from)[at] = i;
        memcpy(indices + at * s->rank, s->indices + i * s->rank, (size_t)s->rank * sizeof *indices);
    }
    return mr_sparse_take(call, 1, s->values, *from, total, call->inputs[3].data, error);
}

static mr_status fill_empty_rows(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *in = call->inputs;
    if (in[2].shape.rank != 1)
        return FAIL("dense_shape must be a vector, saw: %s", mr_shape_text(in[2].shape, text, sizeof text));
    if (in[0].shape.rank != 2)
        return FAIL("indices must be a matrix, saw: %s", mr_shape_text(in[0].shape, text, sizeof text));
    if (in[1].shape.rank != 1)
        return FAIL("values must be a vector, saw: %s", mr_shape_text(in[1].shape, text, sizeof text));
    if (in[2].shape.dims[0] != in[0].shape.dims[1])
        return FAIL("The length of `dense_shape` (%" PRId64 ") must match the second dimension of `indices` (%" PRId64
                    ").",
                    in[2].shape.dims[0], in[0].shape.dims[1]);
    if (in[0].shape.dims[0] != in[1].shape.dims[0])
        return FAIL("The length of `values` (%" PRId64 ") must match the first dimension of `indices` (%" PRId64 ").",
                    in[1].shape.dims[0], in[0].shape.dims[0]);
    if (in[3].shape.rank != 0)
        return FAIL("default_value must be a scalar, saw: %s", mr_shape_text(in[3].shape, text, sizeof text));
    if (in[2].shape.dims[0] == 0) return FAIL("Dense shape cannot be empty.");
    MR_TRY(mr_sparse_read_parts(call, 0, 1, 2, &s, error));
    for (int64_t d = 0; d < s.rank; d++)
        if (s.shape[d] < 0) return FAIL("Expected shape dimensions to be non-negative, got %" PRId64, s.shape[d]);
    if (s.shape[0] == 0 && s.count > 0)
        return FAIL("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %" PRId64, s.count);
    int64_t *ends = nullptr, *from = nullptr;
    mr_status status = mr_sparse_memory(call, s.shape[0], sizeof *ends, &ends, error);
    if (status == MR_OK) status = fill_rows(call, &s, ends, &from, error);
    free(ends);
    free(from);
    return status;
}

static mr_status fill_empty_rows_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *map = &call->inputs[0], *gradients = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (map->shape.rank != 1)
        return FAIL("reverse_index_map must be a vector, saw: %s", mr_shape_text(map->shape, text, sizeof text));
    if (gradients->shape.rank != 1)
        return FAIL("grad_values must be a vector, saw: %s", mr_shape_text(gradients->shape, text, sizeof text));
    int64_t count = map->shape.dims[0], total = gradients->shape.dims[0];
    const int64_t *positions = map->data;
    mr_change_function add = mr_change_find(MR_CHANGE_ADD, gradients->dtype);
    size_t size = mr_dtype_size(gradients->dtype);
    bool *used = nullptr;
    for (int64_t i = 0; i < count; i++)
        if (positions[i] < 0 || positions[i] >= total)
            return FAIL("Elements in reverse index must be in [0, %" PRId64 ") but got %" PRId64, total, positions[i]);
    MR_TRY(mr_sparse_take(call, 0, gradients, positions, count, nullptr, error));
    MR_TRY(mr_kernel_output(call, 1, MR_SCALAR, error));
    memset(call->outputs[1].data, 0, size);
    MR_TRY(mr_sparse_memory(call, total, 1, &used, error));
    for (int64_t i = 0; i < count; i++) used[positions[i]] = true;
    for (int64_t i = 0; add && i < total; i++)
        if (!used[i]) add(call->outputs[1].data, (const char *)gradients->data + (size_t)i * size, 1, 1);
    free(used);
    return MR_OK;
}

/* ---- SparseSlice, SparseSplit, SparseConcat ---- */

static mr_status vector_input(const mr_kernel_call *call, int input, const char *name, int64_t length,
                              const int64_t **values, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    char text[MR_SHAPE_TEXT_SIZE];
    if (tensor->shape.rank != 1)
        return FAIL("Input %s should be a vector but received shape %s", name,
                    mr_shape_text(tensor->shape, text, sizeof text));
    if (tensor->shape.dims[0] != length)
        return FAIL("Expected %s to be a vector of length %" PRId64 " but got length %" PRId64, name, length,
                    tensor->shape.dims[0]);
    *values = tensor->data;
    return MR_OK;
}

static mr_status slice(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    const int64_t *start, *size;
    int64_t *kept = nullptr, *rows, count = 0;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    MR_TRY(vector_input(call, 3, "start", s.rank, &start, error));
    MR_TRY(vector_input(call, 4, "size", s.rank, &size, error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(s.rank), error));
    int64_t *shape = call->outputs[2].data;
    for (int64_t d = 0; d < s.rank; d++) {
        int64_t end, length;
        if (size[d] < 0) return FAIL("Expected a non-negative size, got %" PRId64, size[d]);
        if (__builtin_add_overflow(start[d], size[d], &end)) end = INT64_MAX;
        if (end > s.shape[d]) end = s.shape[d];
        if (__builtin_sub_overflow(end, start[d], &length)) return FAIL("start is too small");
        shape[d] = length > 0 ? length : 0;
    }
    MR_TRY(mr_sparse_memory(call, s.count, sizeof *kept, &kept, error));
    for (int64_t i = 0; i < s.count; i++) {
        bool inside = true;
        for (int64_t d = 0; d < s.rank && inside; d++) {
            int64_t index = s.indices[i * s.rank + d];
            inside = index >= start[d] && (uint64_t)index - (uint64_t)start[d] < (uint64_t)shape[d];
        }
        if (inside) kept[count++] = i;
    }
    mr_status status = take_rows(call, 0, &s, kept, count, &rows, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++)
        for (int64_t d = 0; d < s.rank; d++) rows[i * s.rank + d] -= start[d];
    if (status == MR_OK) status = mr_sparse_take(call, 1, s.values, kept, count, nullptr, error);
    free(kept);
    return status;
}

static mr_status slice_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *gradient = &call->inputs[0], *input = &call->inputs[1], *output = &call->inputs[3];
    const int64_t *start;
    if (gradient->shape.rank != 1 || input->shape.rank != 2 || output->shape.rank != 2)
        return FAIL("Input backprop_val_grad should be a vector, and the indices should be matrices");
    int64_t rank = input->shape.dims[1], count = input->shape.dims[0], kept = output->shape.dims[0], at = 0;
    if (output->shape.dims[1] != rank)
        return FAIL("The input and output should have the same ndims: got: %" PRId64 " and %" PRId64, rank,
                    output->shape.dims[1]);
    if (kept > count)
        return FAIL("# rows of output_indices should be not greater than of input_indices, got %" PRId64
                    " and %" PRId64,
                    kept, count);
    if (gradient->shape.dims[0] != kept)
        return FAIL("# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): got "
                    "%" PRId64 " and %" PRId64,
                    gradient->shape.dims[0], kept);
    MR_TRY(vector_input(call, 2, "start", rank, &start, error));
    static const char zero[16];
    int64_t *from = nullptr;
    MR_TRY(mr_sparse_memory(call, count, sizeof *from, &from, error));
    for (int64_t i = 0; i < count; i++) {
        const int64_t *row = (const int64_t *)input->data + i * rank,
                      *sliced = (const int64_t *)output->data + at * rank;
        bool same = at < kept;
        for (int64_t d = 0; d < rank && same; d++) same = (uint64_t)row[d] == (uint64_t)sliced[d] + (uint64_t)start[d];
        from[i] = same ? at++ : -1;
    }
    mr_status status = at == kept ? MR_OK
                                  : mr_kernel_fail(call->node, error, MR_INTERNAL,
                                                   "Elements of backprop_val_grad aren't all propagated. Num "
                                                   "elements:%" PRId64 ", used: %" PRId64,
                                                   kept, at);
    if (status == MR_OK) status = mr_sparse_take(call, 0, gradient, from, count, zero, error);
    free(from);
    return status;
}

/* The part with this index, of parts that are as equal as possible, the first ones one larger. */
static int64_t part_of(int64_t index, int64_t size, int64_t rest)
{
    return index < rest * (size + 1) ? index / (size + 1) : rest + (index - rest * (size + 1)) / size;
}

static mr_status put_part(mr_kernel_call *call, const mr_sparse *s, int part, int axis, int64_t begin, int64_t size,
                          const int64_t *positions, int64_t count, mr_error *error)
{
    int parts = call->node->output_count / 3;
    int64_t *rows, *shape;
    MR_TRY(take_rows(call, part, s, positions, count, &rows, error));
    for (int64_t i = 0; i < count; i++) rows[i * s->rank + axis] -= begin;
    MR_TRY(mr_sparse_take(call, parts + part, s->values, positions, count, nullptr, error));
    MR_TRY(mr_sparse_put(call, 2 * parts + part, s->shape, s->rank, error));
    shape = call->outputs[2 * parts + part].data;
    shape[axis] = size;
    return MR_OK;
}

static mr_status split(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    int64_t given, parts = call->node->output_count / 3, *positions = nullptr;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank != 0)
        return FAIL("Input axis should be a scalar but received shape %s",
                    mr_shape_text(call->inputs[0].shape, text, sizeof text));
    MR_TRY(mr_kernel_int(call, 0, "split_dim", &given, error));
    MR_TRY(mr_sparse_read_parts(call, 1, 2, 3, &s, error));
    MR_TRY(mr_sparse_check_inside(call, &s, error));
    MR_TRY(mr_sparse_check_shape(call, &s, error));
    if (given < -s.rank || given >= s.rank)
        return FAIL("Input axis should be in range [%" PRId64 ", %" PRId64 "), got %" PRId64, -s.rank, s.rank, given);
    int64_t axis = given < 0 ? given + s.rank : given, total = s.shape[axis];
    if (parts < 1 || parts > total)
        return FAIL("Input num_split should be between 1 and the splitting dimension size (%" PRId64 "), got %" PRId64,
                    total, parts);
    int64_t size = total / parts, rest = total % parts, begin = 0;
    MR_TRY(mr_sparse_memory(call, s.count, sizeof *positions, &positions, error));
    mr_status status = MR_OK;
    for (int part = 0; part < parts && status == MR_OK; part++) {
        int64_t count = 0, length = size + (part < rest);
        for (int64_t i = 0; i < s.count; i++)
            if (part_of(s.indices[i * s.rank + axis], size, rest) == part) positions[count++] = i;
        status = put_part(call, &s, part, (int)axis, begin, length, positions, count, error);
        begin += length;
    }
    free(positions);
    return status;
}

/* Reads and checks the tensors. Returns the axis and the output's shape. */
static mr_status concat_inputs(mr_kernel_call *call, int count, mr_sparse *parts, int64_t *axis, int64_t *total,
                               mr_error *error)
{
    int64_t given = mr_attr_int_or(call->node->attrs, "concat_dim", 0), sum = 0;
    for (int i = 0; i < count; i++) {
        MR_TRY(mr_sparse_read_parts(call, i, count + i, 2 * count + i, &parts[i], error));
        if (mr_sparse_check_shape(call, &parts[i], nullptr) != MR_OK)
            return mr_kernel_fail(call->node, error, MR_INTERNAL, "Encountered overflow from large input shape.");
        if (parts[i].rank != parts[0].rank)
            return FAIL("Ranks of all input tensors must match: expected %" PRId64 " but got %" PRId64
                        " at position %d",
                        parts[0].rank, parts[i].rank, i);
    }
    int64_t rank = parts[0].rank;
    if (given < -rank || given >= rank)
        return FAIL("Concat dimension must be in range [%" PRId64 ", %" PRId64 "), got %" PRId64, -rank, rank, given);
    *axis = given < 0 ? given + rank : given;
    *total = 0;
    MR_TRY(mr_sparse_put(call, 2, parts[0].shape, rank, error));
    for (int i = 0; i < count; i++) {
        for (int64_t d = 0; d < rank; d++)
            if (d != *axis && parts[i].shape[d] != parts[0].shape[d])
                return FAIL("Input shapes must match: expected %" PRId64 " for dimension %" PRId64 " but got %" PRId64
                            " at position %d",
                            parts[0].shape[d], d, parts[i].shape[d], i);
        if (__builtin_add_overflow(sum, parts[i].shape[*axis], &sum) ||
            __builtin_add_overflow(*total, parts[i].count, total))
            return FAIL("the result is too large");
    }
    ((int64_t *)call->outputs[2].data)[*axis] = sum;
    return MR_OK;
}

/* Joins the tensors in `joined`, and then sorts them into the outputs. */
static mr_status concat_rows(mr_kernel_call *call, int count, const mr_sparse *parts, int64_t axis, mr_sparse *joined,
                             int64_t *rows, mr_error *error)
{
    int64_t at = 0, offset = 0, rank = joined->rank, *order = nullptr, *ordered;
    size_t size = mr_dtype_size(call->node->output_dtypes[1]);
    mr_sink sink;
    for (int i = 0; i < count; offset += parts[i++].shape[axis])
        for (int64_t j = 0; j < parts[i].count; j++, at++)
            for (int64_t d = 0; d < rank; d++)
                rows[at * rank + d] =
                    (int64_t)((uint64_t)parts[i].indices[j * rank + d] + (d == axis ? (uint64_t)offset : 0));
    joined->indices = rows;
    MR_TRY(mr_sparse_order(call, joined, nullptr, rank, &order, error));
    mr_status status = take_rows(call, 0, joined, order, joined->count, &ordered, error);
    if (status == MR_OK) status = mr_sink_init(call, 1, MR_SHAPE(joined->count), &sink, error);
    for (int64_t i = 0; status == MR_OK && i < joined->count; i++) {
        int64_t from = order[i];
        int part = 0;
        while (from >= parts[part].count) from -= parts[part++].count;
        memcpy((char *)sink.data + (size_t)i * size, (const char *)parts[part].values->data + (size_t)from * size,
               size);
    }
    free(order);
    return status == MR_OK ? mr_sink_finish(call, &sink, MR_OK, error) : status;
}

static mr_status concat(mr_kernel_call *call, mr_error *error)
{
    int count = call->node->input_count / 3;
    mr_sparse *parts = nullptr, joined = {0};
    int64_t axis, *rows = nullptr, elements;
    MR_TRY(mr_sparse_memory(call, count, sizeof *parts, &parts, error));
    mr_status status = concat_inputs(call, count, parts, &axis, &joined.count, error);
    joined.rank = parts[0].rank;
    if (status == MR_OK && __builtin_mul_overflow(joined.count, joined.rank, &elements))
        status = FAIL("the result is too large");
    if (status == MR_OK) status = mr_sparse_memory(call, elements, sizeof *rows, &rows, error);
    if (status == MR_OK) status = concat_rows(call, count, parts, axis, &joined, rows, error);
    free(rows);
    free(parts);
    return status;
}

/* ---- SparseToDense ---- */

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

static mr_status dense_shape(mr_kernel_call *call, mr_shape *shape, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    char text[MR_SHAPE_TEXT_SIZE];
    if (in[0].shape.rank > 2)
        return FAIL("sparse_indices should be a scalar, vector, or matrix, got shape %s",
                    mr_shape_text(in[0].shape, text, sizeof text));
    int64_t count = in[0].shape.rank > 0 ? in[0].shape.dims[0] : 1,
            rank = in[0].shape.rank > 1 ? in[0].shape.dims[1] : 1;
    if (in[1].shape.rank != 1)
        return FAIL("output_shape must be rank 1, got shape %s", mr_shape_text(in[1].shape, text, sizeof text));
    if (in[1].shape.dims[0] != rank)
        return FAIL("output_shape has incorrect number of elements: %" PRId64 " should be: %" PRId64,
                    in[1].shape.dims[0], rank);
    if (in[2].shape.rank != 0 && (in[2].shape.rank != 1 || in[2].shape.dims[0] != count))
        return FAIL("sparse_values has incorrect shape %s, should be [] or [%" PRId64 "]",
                    mr_shape_text(in[2].shape, text, sizeof text), count);
    if (in[3].shape.rank != 0) return FAIL("default_value should be a scalar.");
    return mr_kernel_shape(call, 1, shape, error);
}

/* Stores the rows as int64 and checks them. */
static mr_status dense_indices(mr_kernel_call *call, const mr_shape *shape, int64_t count, int64_t *rows,
                               mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_sparse s = {.indices = rows, .shape = shape->dims, .count = count, .rank = shape->rank};
    assert(rows != nullptr || shape->rank == 0);
    for (int64_t i = 0; i < count * shape->rank; i++) rows[i] = integer_at(&call->inputs[0], i);
    if (mr_attr_bool_or(call->node->attrs, "validate_indices", true)) return mr_sparse_check_indices(call, &s, error);
    for (int64_t i = 0; i < count * shape->rank; i++)
        if (rows[i] < 0 || rows[i] >= shape->dims[i % shape->rank])
            return FAIL("Indices are not valid (out of bounds).  Shape: %s", mr_shape_text(*shape, text, sizeof text));
    return MR_OK;
}

static mr_status to_dense(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    mr_sink sink;
    int64_t strides[MR_RANK_MAX], *rows = nullptr;
    MR_TRY(dense_shape(call, &shape, error));
    const mr_tensor *values = &call->inputs[2];
    int64_t count = call->inputs[0].shape.rank > 0 ? call->inputs[0].shape.dims[0] : 1;
    if (shape.rank > 0) MR_TRY(mr_sparse_memory(call, mr_tensor_count(&call->inputs[0]), sizeof *rows, &rows, error));
    mr_status status = dense_indices(call, &shape, count, rows, error);
    if (status == MR_OK) status = mr_sink_init(call, 0, shape, &sink, error);
    if (status == MR_OK) {
        mr_fill_elements(sink.data, call->inputs[3].data, sink.element_size, sink.count, call->device->pool);
        mr_shape_strides(shape, strides);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = 0;
            assert(rows != nullptr || shape.rank == 0);
            for (int d = 0; d < shape.rank; d++) at += rows[i * shape.rank + d] * strides[d];
            memcpy((char *)sink.data + (size_t)at * sink.element_size,
                   (const char *)values->data + (values->shape.rank == 0 ? 0 : (size_t)i * sink.element_size),
                   sink.element_size);
        }
        status = mr_sink_finish(call, &sink, MR_OK, error);
    }
    free(rows);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "SparseReorder", .run = reorder},
    {.op = "SparseReshape", .run = reshape},
    {.op = "SparseFillEmptyRows", .run = fill_empty_rows},
    {.op = "SparseFillEmptyRowsGrad",
     .types = "T: half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
              "complex128",
     .run = fill_empty_rows_grad},
    {.op = "SparseSlice", .run = slice},
    {.op = "SparseSliceGrad", .run = slice_grad},
    {.op = "SparseSplit", .run = split},
    {.op = "SparseConcat", .run = concat},
    {.op = "SparseToDense", .run = to_dense},
};
MR_KERNEL_FAMILY(sparse_move);
