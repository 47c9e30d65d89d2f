/* Crosses of features: SparseCross and its later forms. A row of the result has one value for each combination of one
 * feature from every column, the last column varying fastest: the features as text with a separator, or one hash.
 *
 * The number of rows comes from a tensor and may be anything. Loops therefore run over the rows that sparse columns
 * have, not over all of them. */
#include "kernels/sparse.h"
#include "kernels/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct column {
    const mr_tensor *values;
    const int64_t *indices; /* [count, 2]; null: dense */
    int64_t count;          /* sparse: number of values; dense: number of columns */
    int64_t first, last;    /* sparse: the values of the current row */
    int64_t chosen;         /* the feature of the current combination, from 0 */
} column;

typedef enum crossing { CROSS_TEXT, CROSS_HASH, CROSS_KEYED } crossing;

typedef struct cross {
    column *columns;
    int64_t column_count, sparse_count;
    int64_t rows, row; /* the current one; -1 at first */
    crossing kind;
    mr_string separator;
    uint64_t hash_key; /* CROSS_HASH */
    uint64_t buckets;  /* 0: none */
    bool is_strong;    /* CROSS_KEYED */
    uint64_t key[2];
} cross;

/* ---- The inputs ---- */

static mr_status check_sparse(const mr_kernel_call *call, int64_t i, int64_t sparse_count, bool text_only,
                              mr_error *error)
{
    const mr_tensor *indices = &call->inputs[i], *values = indices + sparse_count, *shape = values + sparse_count;
    char text[MR_SHAPE_TEXT_SIZE];
    if (indices->shape.rank != 2)
        return FAIL("Input indices should be a matrix but received shape %s at position %" PRId64,
                    mr_shape_text(indices->shape, text, sizeof text), i);
    if (indices->shape.dims[1] != 2)
        return FAIL("Expected D2 of index to be 2 got %" PRId64 " at position %" PRId64, indices->shape.dims[1], i);
    if (text_only && values->dtype == MR_INT64) return FAIL("Input values should be of internal type 7 but received 9");
    if (values->shape.rank != 1)
        return FAIL("Input values should be a vector but received shape %s at position %" PRId64,
                    mr_shape_text(values->shape, text, sizeof text), i);
    if (indices->shape.dims[0] != values->shape.dims[0])
        return FAIL("Expected size of values to be %" PRId64 " got %" PRId64 " at position %" PRId64,
                    indices->shape.dims[0], values->shape.dims[0], i);
    if (shape->shape.rank != 1)
        return FAIL("Input shapes should be a vector but received shape %s at position %" PRId64,
                    mr_shape_text(shape->shape, text, sizeof text), i);
    if (shape->shape.dims[0] != 2)
        return FAIL("shape should imply a 2D tensor, but got %s at position %" PRId64,
                    mr_shape_text(shape->shape, text, sizeof text), i);
    return MR_OK;
}

static mr_status check_dense(const mr_kernel_call *call, const mr_tensor *dense, int64_t i, bool text_only,
                             mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (text_only && dense->dtype == MR_INT64) return FAIL("Dense inputs should be of internal type 7 but received 9");
    if (dense->shape.rank != 2)
        return FAIL("Dense inputs should be a matrix but received shape %s at position %" PRId64,
                    mr_shape_text(dense->shape, text, sizeof text), i);
    return MR_OK;
}

static mr_status check_rows(const mr_kernel_call *call, cross *c, mr_error *error)
{
    const mr_tensor *shapes = call->inputs + 2 * c->sparse_count, *dense = shapes + c->sparse_count;
    int64_t dense_count = c->column_count - c->sparse_count;
    c->rows = c->sparse_count > 0 ? mr_tensor_int64s(&shapes[0])[0] : dense_count > 0 ? dense[0].shape.dims[0] : 0;
    if (c->rows < 0) return FAIL("The batch size must not be negative, got %" PRId64, c->rows);
    for (int64_t i = 0; i < c->sparse_count; i++)
        if (mr_tensor_int64s(&shapes[i])[0] != c->rows)
            return FAIL("Expected batch size %" PRId64 " got %" PRId64 " at position %" PRId64, c->rows,
                        mr_tensor_int64s(&shapes[i])[0], i);
    for (int64_t i = 0; i < dense_count; i++)
        if (dense[i].shape.dims[0] != c->rows)
            return FAIL("Expected batch size %" PRId64 " got %" PRId64 " at dense tensor %" PRId64, c->rows,
                        dense[i].shape.dims[0], i);
    return MR_OK;
}

/* after: number of inputs after the dense ones */
static mr_status read_columns(const mr_kernel_call *call, int64_t after, bool text_only, cross *c, mr_error *error)
{
    c->sparse_count = mr_attr_int_or(call->node->attrs, "N", 0);
    int64_t dense_count = call->node->input_count - 3 * c->sparse_count - after;
    if (c->sparse_count < 0 || c->sparse_count > call->node->input_count || dense_count < 0)
        return FAIL("the number of inputs does not match N");
    c->column_count = c->sparse_count + dense_count;
    for (int64_t i = 0; i < c->sparse_count; i++) MR_TRY(check_sparse(call, i, c->sparse_count, text_only, error));
    const mr_tensor *dense = call->inputs + 3 * c->sparse_count;
    for (int64_t i = 0; i < dense_count; i++) MR_TRY(check_dense(call, &dense[i], i, text_only, error));
    MR_TRY(check_rows(call, c, error));
    MR_TRY(mr_sparse_memory(call, c->column_count, sizeof *c->columns, &c->columns, error));
    for (int64_t i = 0; i < c->sparse_count; i++) {
        const mr_tensor *values = &call->inputs[c->sparse_count + i];
        c->columns[i] =
            (column){.values = values, .indices = mr_tensor_int64s(&call->inputs[i]), .count = values->shape.dims[0]};
    }
    for (int64_t i = 0; i < dense_count; i++)
        c->columns[c->sparse_count + i] = (column){.values = &dense[i], .count = dense[i].shape.dims[1]};
    return MR_OK;
}

/* ---- Rows ---- */

static void start(cross *c)
{
    c->row = -1;
    for (int64_t i = 0; i < c->sparse_count; i++) c->columns[i].first = c->columns[i].last = 0;
}

/* Moves to the values of the first row at or after `row`, which becomes that row; false if there is none. As in
 * TensorFlow, rows after one that is out of order are not found. */
static bool find_values(const cross *c, column *column, int64_t *row)
{
    for (;;) {
        column->first = column->last;
        if (column->first == column->count) return false;
        int64_t found = column->indices[2 * column->first];
        if (found < 0 || found >= c->rows) return false;
        if (column->first > 0 && found <= column->indices[2 * column->first - 2]) return false;
        while (column->last < column->count && column->indices[2 * column->last] == found) column->last++;
        if (found < *row) continue;
        *row = found;
        return true;
    }
}

/* Moves to the next row in which every column has a feature. */
static bool next_row(cross *c)
{
    int64_t row = c->row + 1;
    for (int64_t i = c->sparse_count; i < c->column_count; i++)
        if (c->columns[i].count == 0) return false;
    int64_t agreed = 0;
    for (int64_t i = 0; agreed < c->sparse_count; i = (i + 1) % c->sparse_count) {
        column *column = &c->columns[i];
        int64_t found = row;
        bool is_there = column->last > column->first && column->indices[2 * column->first] == row;
        if (!is_there && !find_values(c, column, &found)) return false;
        agreed = found == row ? agreed + 1 : 1;
        row = found;
    }
    c->row = row;
    return c->column_count > 0 && row < c->rows;
}

static int64_t feature_count(const column *column)
{
    return column->indices ? column->last - column->first : column->count;
}

/* The number of combinations in the current row. */
static bool count_row(const cross *c, int64_t *count)
{
    *count = 1;
    for (int64_t i = 0; i < c->column_count; i++)
        if (__builtin_mul_overflow(*count, feature_count(&c->columns[i]), count)) return false;
    return true;
}

static void next_combination(cross *c)
{
    for (int64_t i = c->column_count - 1; i >= 0; i--) {
        if (++c->columns[i].chosen < feature_count(&c->columns[i])) return;
        c->columns[i].chosen = 0;
    }
}

/* ---- Values ---- */

static int64_t position_of(const cross *c, const column *column)
{
    return (column->indices ? column->first : c->row * column->count) + column->chosen;
}

static void add_text(const cross *c, mr_text_builder *builder)
{
    for (int64_t i = 0; i < c->column_count; i++) {
        const column *column = &c->columns[i];
        int64_t at = position_of(c, column);
        char digits[24];
        if (i > 0) mr_text_add_string(builder, c->separator);
        if (column->values->dtype == MR_STRING)
            mr_text_add_string(builder, mr_tensor_strings(column->values)[at]);
        else
            mr_text_add(builder, digits,
                        (size_t)snprintf(digits, sizeof digits, "%" PRId64, mr_tensor_int64s(column->values)[at]));
    }
}

static uint64_t hash_of(const cross *c, const column *column)
{
    int64_t at = position_of(c, column);
    bool is_dense = column->indices == nullptr;
    if (column->values->dtype != MR_STRING && (c->kind == CROSS_HASH || (is_dense && !c->is_strong)))
        return (uint64_t)mr_tensor_int64s(column->values)[at];
    /* TensorFlow hashes the first 4 bytes of an integer, and no dense integers. */
    mr_string text = column->values->dtype == MR_STRING
                         ? mr_tensor_strings(column->values)[at]
                         : (mr_string){(const char *)(mr_tensor_int64s(column->values) + at), 4};
    return c->is_strong ? mr_text_hash_keyed(c->key, text) : mr_text_fingerprint(text.data, text.size_bytes);
}

static int64_t cross_hash(const cross *c)
{
    uint64_t hash = c->kind == CROSS_HASH ? c->hash_key : hash_of(c, &c->columns[0]);
    for (int64_t i = c->kind == CROSS_HASH ? 0 : 1; i < c->column_count; i++)
        hash = mr_text_fingerprint_join(hash, hash_of(c, &c->columns[i]));
    return (int64_t)(hash % (c->buckets > 0 ? c->buckets : (uint64_t)INT64_MAX));
}

static mr_status put_values(mr_kernel_call *call, cross *c, mr_text_output *texts, mr_error *error)
{
    int64_t *indices = mr_tensor_int64s(&call->outputs[0]), at = 0, count;
    mr_text_builder builder = {0};
    mr_status status = MR_OK;
    start(c);
    while (status == MR_OK && next_row(c)) {
        (void)count_row(c, &count);
        for (int64_t i = 0; i < c->column_count; i++) c->columns[i].chosen = 0;
        for (int64_t i = 0; i < count && status == MR_OK; i++, at++, next_combination(c)) {
            indices[2 * at] = c->row;
            indices[2 * at + 1] = i;
            if (c->kind == CROSS_TEXT) {
                add_text(c, &builder);
                status = mr_text_put(texts, at, &builder, error);
            } else {
                mr_tensor_int64s(&call->outputs[1])[at] = cross_hash(c);
            }
        }
    }
    mr_text_deinit(&builder);
    return status;
}

static mr_status compute(mr_kernel_call *call, cross *c, mr_error *error)
{
    int64_t total = 0, widest = 0, count;
    start(c);
    while (next_row(c)) {
        if (!count_row(c, &count) || __builtin_add_overflow(total, count, &total))
            return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "too many crosses");
        widest = MR_MAX(widest, count);
    }
    int64_t shape[2] = {c->rows, widest};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(total, 2), error));
    MR_TRY(mr_sparse_put(call, 2, shape, 2, error));
    if (c->kind != CROSS_TEXT) {
        MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(total), error));
        return put_values(call, c, nullptr, error);
    }
    mr_text_output texts;
    MR_TRY(mr_text_begin(call, 1, MR_SHAPE(total), &texts, error));
    return mr_text_end(call, &texts, put_values(call, c, &texts, error), error);
}

static mr_status finish(mr_kernel_call *call, cross *c, mr_status status, mr_error *error)
{
    if (status == MR_OK) status = compute(call, c, error);
    free(c->columns);
    return status;
}

/* ---- The operators ---- */

typedef struct sparse_cross_attrs {
    uint64_t hash_key, buckets;
    bool text_only;
} sparse_cross_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *)
{
    const mr_attr *type = mr_attrs_find(node->attrs, "internal_type");
    *(sparse_cross_attrs *)prepared =
        (sparse_cross_attrs){.hash_key = (uint64_t)mr_attr_int_or(node->attrs, "hash_key", 0),
                             .buckets = (uint64_t)MR_MAX(mr_attr_int_or(node->attrs, "num_buckets", 0), 0),
                             .text_only = type && type->count == 1 && type->values[0].type == MR_STRING};
    return MR_OK;
}

static mr_status sparse_cross(mr_kernel_call *call, mr_error *error)
{
    const sparse_cross_attrs *a = call->prepared;
    cross c = {.kind = call->node->output_dtypes[1] == MR_STRING ? CROSS_TEXT : CROSS_HASH,
               .separator = MR_STR("_X_"),
               .hash_key = a->hash_key,
               .buckets = a->buckets};
    return finish(call, &c, read_columns(call, 0, a->text_only, &c, error), error);
}

static mr_status sparse_cross_v2(mr_kernel_call *call, mr_error *error)
{
    cross c = {.kind = CROSS_TEXT};
    mr_status status = read_columns(call, 1, false, &c, error);
    const mr_tensor *separator = &call->inputs[call->node->input_count - 1];
    if (status == MR_OK && separator->shape.rank != 0) status = FAIL("Input separator should be a scalar.");
    if (status == MR_OK) c.separator = mr_tensor_strings(separator)[0];
    return finish(call, &c, status, error);
}

static mr_status read_hashing(const mr_kernel_call *call, cross *c, mr_error *error)
{
    const mr_tensor *last = &call->inputs[call->node->input_count - 3];
    MR_TRY(read_columns(call, 3, false, c, error));
    if (mr_tensor_count(&last[0]) != 1 || mr_tensor_count(&last[1]) != 1)
        return FAIL("num_buckets and strong_hash must be scalars");
    if (mr_tensor_count(&last[2]) != 2)
        return FAIL("Input \"salt\" must have length 2 but has length %" PRId64, mr_tensor_count(&last[2]));
    c->buckets = (uint64_t)MR_MAX(mr_tensor_int64s(&last[0])[0], 0);
    c->is_strong = mr_tensor_bools(&last[1])[0];
    for (int i = 0; i < 2; i++) c->key[i] = (uint64_t)mr_tensor_int64s(&last[2])[i];
    return MR_OK;
}

static mr_status sparse_cross_hashed(mr_kernel_call *call, mr_error *error)
{
    cross c = {.kind = CROSS_KEYED};
    return finish(call, &c, read_hashing(call, &c, error), error);
}

static const mr_kernel kernels[] = {
    {.op = "SparseCross", .run = sparse_cross, .prepared_size_bytes = sizeof(sparse_cross_attrs), .prepare = prepare},
    {.op = "SparseCrossV2", .run = sparse_cross_v2},
    {.op = "SparseCrossHashed", .run = sparse_cross_hashed},
};
MR_KERNEL_FAMILY(sparse_cross);
