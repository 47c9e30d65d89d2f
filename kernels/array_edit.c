/* EditDistance: the Levenshtein distance between the sequences of two sparse tensors. */
#include "kernels/common.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sparse tensor whose last dimension is the sequence. Consecutive entries with equal other indices are a sequence. */
typedef struct sequences {
    const int64_t *indices;
    const mr_tensor *values;
    int64_t count;
    int rank;
} sequences;

static mr_status read_sparse(mr_kernel_call *call, int first, const char *name, sequences *s, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[first], *values = &call->inputs[first + 1];
    const mr_tensor *shape = &call->inputs[first + 2];
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (indices->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s_indices should be a matrix, but got shape %s",
                              name, mr_shape_text(indices->shape, a, sizeof a));
    if (values->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s_values should be a vector, but got shape %s",
                              name, mr_shape_text(values->shape, a, sizeof a));
    if (shape->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s_shape should be a vector, but got shape %s",
                              name, mr_shape_text(shape->shape, a, sizeof a));
    if (shape->shape.dims[0] != indices->shape.dims[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected %s_shape.NumElements == #cols(%s_indices), their shapes are: %s and %s", name,
                              name, mr_shape_text(shape->shape, a, sizeof a),
                              mr_shape_text(indices->shape, b, sizeof b));
    if (values->shape.dims[0] != indices->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected %s_values.NumElements == #rows(%s_indices), their shapes are: %s and %s", name,
                              name, mr_shape_text(values->shape, a, sizeof a),
                              mr_shape_text(indices->shape, b, sizeof b));
    if (shape->shape.dims[0] > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    if (shape->shape.dims[0] < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input SparseTensors must have rank at least 2, but %s_shape rank is: %" PRId64, name,
                              shape->shape.dims[0]);
    *s = (sequences){indices->data, values, values->shape.dims[0], (int)shape->shape.dims[0]};
    return MR_OK;
}

/* The order of the sequences of two entries. */
static int compare(const sequences *a, int64_t i, const sequences *b, int64_t j)
{
    for (int d = 0; d < a->rank - 1; d++) {
        int64_t x = a->indices[i * a->rank + d], y = b->indices[j * b->rank + d];
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

static int64_t sequence_end(const sequences *s, int64_t begin)
{
    int64_t end = begin + 1;
    while (end < s->count && compare(s, begin, s, end) == 0) end++;
    return end;
}

static bool equal_values(const mr_tensor *a, int64_t i, const mr_tensor *b, int64_t j)
{
    size_t size = mr_dtype_size(a->dtype);
    switch (a->dtype) {
    case MR_STRING:
        return mr_string_equal(mr_tensor_strings(a)[i], mr_tensor_strings(b)[j]);
    case MR_FLOAT:
        return ((const float *)a->data)[i] == ((const float *)b->data)[j];
    case MR_DOUBLE:
        return ((const double *)a->data)[i] == ((const double *)b->data)[j];
    case MR_COMPLEX64:
        return ((const float *)a->data)[2 * i] == ((const float *)b->data)[2 * j] &&
               ((const float *)a->data)[2 * i + 1] == ((const float *)b->data)[2 * j + 1];
    case MR_COMPLEX128:
        return ((const double *)a->data)[2 * i] == ((const double *)b->data)[2 * j] &&
               ((const double *)a->data)[2 * i + 1] == ((const double *)b->data)[2 * j + 1];
    case MR_HALF:
        return mr_half_to_float(((const uint16_t *)a->data)[i]) == mr_half_to_float(((const uint16_t *)b->data)[j]);
    case MR_BFLOAT16:
        return mr_bfloat16_to_float(((const uint16_t *)a->data)[i]) ==
               mr_bfloat16_to_float(((const uint16_t *)b->data)[j]);
    default:
        return memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)j * size, size) == 0;
    }
}

/* The distance of two sequences; row has an element for each of b, plus 1. */
static int64_t distance(const sequences *a, int64_t a_begin, int64_t a_end, const sequences *b, int64_t b_begin,
                        int64_t b_end, int64_t *row)
{
    int64_t width = b_end - b_begin;
    assert(width >= 0);
    for (int64_t j = 0; j <= width; j++) row[j] = j;
    for (int64_t i = a_begin; i < a_end; i++) {
        int64_t diagonal = row[0]++;
        for (int64_t j = 1; j <= width; j++) {
            int64_t above = row[j];
            int64_t changed = diagonal + !equal_values(a->values, i, b->values, b_begin + j - 1);
            row[j] = MR_MIN(MR_MIN(above, row[j - 1]) + 1, changed);
            diagonal = above;
        }
    }
    return row[width];
}

static mr_status put(mr_kernel_call *call, const sequences *s, int64_t entry, const int64_t *strides, float value,
                     mr_error *error)
{
    mr_tensor *output = &call->outputs[0];
    int64_t at = 0;
    for (int d = 0; d < s->rank - 1; d++) /* wraps if the indices are wrong */
        at = (int64_t)((uint64_t)at + (uint64_t)s->indices[entry * s->rank + d] * (uint64_t)strides[d]);
    if (at < 0 || at >= mr_tensor_count(output))
        return mr_kernel_fail(call->node, error, MR_INTERNAL,
                              "Got an inner product %" PRId64
                              " which would require writing to outside of the buffer for "
                              "the output tensor (max elements %" PRId64 ")",
                              at, mr_tensor_count(output));
    mr_tensor_floats(output)[at] = value;
    return MR_OK;
}

/* Walks both lists of sequences in order. A sequence that only one of them has is compared with an empty one. */
static mr_status compare_all(mr_kernel_call *call, const sequences *hypothesis, const sequences *truth,
                             const int64_t *strides, int64_t *row, mr_error *error)
{
    bool normalize = mr_attr_bool_or(call->node->attrs, "normalize", true);
    int64_t i = 0, j = 0;
    while (i < hypothesis->count || j < truth->count) {
        int order = i >= hypothesis->count ? 1 : j >= truth->count ? -1 : compare(hypothesis, i, truth, j);
        int64_t i_end = order <= 0 ? sequence_end(hypothesis, i) : i, j_end = order >= 0 ? sequence_end(truth, j) : j;
        float value;
        if (order < 0)
            value = normalize ? INFINITY : (float)(i_end - i);
        else if (order > 0)
            value = normalize ? 1 : (float)(j_end - j);
        else
            value = (float)distance(truth, j, j_end, hypothesis, i, i_end, row);
        if (order == 0 && normalize) value /= (float)(j_end - j);
        MR_TRY(put(call, order <= 0 ? hypothesis : truth, order <= 0 ? i : j, strides, value, error));
        i = i_end;
        j = j_end;
    }
    return MR_OK;
}

static mr_status edit_distance(mr_kernel_call *call, mr_error *error)
{
    sequences hypothesis, truth;
    mr_shape shape = {0};
    int64_t strides[MR_RANK_MAX];
    MR_TRY(read_sparse(call, 0, "hypothesis", &hypothesis, error));
    MR_TRY(read_sparse(call, 3, "truth", &truth, error));
    if (hypothesis.rank != truth.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected hypothesis and truth to have matching ranks, but got %d and %d",
                              hypothesis.rank, truth.rank);
    shape.rank = truth.rank - 1;
    for (int d = 0; d < shape.rank; d++) {
        int64_t a = mr_tensor_int64s(&call->inputs[2])[d], b = mr_tensor_int64s(&call->inputs[5])[d];
        shape.dims[d] = MR_MAX(a, b);
        if (MR_MIN(a, b) < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= 0",
                                  MR_MIN(a, b));
    }
    if (mr_shape_count(shape) <= 0) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Got output shape %s which has 0 elements",
                              mr_shape_text(shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0]));
    mr_shape_strides(shape, strides);
    int64_t *row = malloc((size_t)(hypothesis.count + 1) * sizeof *row);
    if (row == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = compare_all(call, &hypothesis, &truth, strides, row, error);
    free(row);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "EditDistance", .run = edit_distance},
};
MR_KERNEL_FAMILY(array_edit);
