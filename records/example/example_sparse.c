/* SparseFeature: values from one feature and their indices from other features, one for each dimension. Each record
 * must have as many indices as values, all inside the dense shape. The values are then sorted by index, unless
 * already_sorted is set. */
#include "records/example/example_batch.h"

#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* A sparse output of a batch. */
typedef struct sparse {
    const mr_example_batch *batch;
    const mr_example_output *output;
    const mr_example_rows *values;
    const mr_example_rows *index_rows[MR_RANK_MAX];
    int32_t rank;
    int64_t *column;  /* the indices of one record in one dimension */
    int64_t *indices; /* of one record: [n, rank] */
    int64_t *order;   /* for one record: the value at each position of the sorted order */
    char *moved;      /* for one record: values to be sorted */
} sparse;

static mr_status gather(sparse *sparse, mr_error *error)
{
    const mr_example_parser *parser = sparse->batch->parser;
    const mr_example_output *output = sparse->output;
    char where[MR_EXAMPLE_WHERE_SIZE];
    sparse->values = mr_example_rows_of(sparse->batch, output->slot);
    for (int32_t d = 0; d < sparse->rank; d++) {
        sparse->index_rows[d] = mr_example_rows_of(sparse->batch, output->others[d]);
        assert(sparse->index_rows[d]->count == sparse->values->count);
        for (int64_t i = 0; i < sparse->values->count; i++) {
            uint32_t values = sparse->values->items[i].count, index_count = sparse->index_rows[d]->items[i].count;
            mr_string key = parser->names[output->others[d]];
            if (values != index_count)
                return mr_fail(error, MR_INVALID_ARGUMENT,
                               "%sfeature \"%.*s\" has %" PRIu32 " values, but \"%.*s\" has %" PRIu32 " indices",
                               mr_example_where(sparse->batch, nullptr, i, where), mr_example_shown(output->name),
                               output->name.data, values, mr_example_shown(key), key.data, index_count);
        }
    }
    return MR_OK;
}

/* Reads the indices of a record into `indices` and checks them against the dense shape. */
static mr_status read_indices(sparse *sparse, int64_t record, mr_error *error)
{
    const mr_example_output *output = sparse->output;
    char where[MR_EXAMPLE_WHERE_SIZE];
    int64_t count = sparse->values->items[record].count;
    assert(count <= sparse->values->longest);
    for (int32_t d = 0; d < sparse->rank; d++) {
        mr_example_row_values(MR_FEATURE_INT64, &sparse->index_rows[d]->items[record], sparse->column);
        for (int64_t i = 0; i < count; i++) {
            int64_t index = sparse->column[i];
            mr_string key = sparse->batch->parser->names[output->others[d]];
            if (index < 0 || index >= output->shape.dims[d])
                return mr_fail(error, MR_INVALID_ARGUMENT,
                               "%sfeature \"%.*s\": index %" PRId64 " in \"%.*s\" is not in [0, %" PRId64 ")",
                               mr_example_where(sparse->batch, nullptr, record, where), mr_example_shown(output->name),
                               output->name.data, index, mr_example_shown(key), key.data, output->shape.dims[d]);
            sparse->indices[i * sparse->rank + d] = index;
        }
    }
    return MR_OK;
}

static int compare_indices(const sparse *sparse, int64_t a, int64_t b)
{
    const int64_t *x = sparse->indices + a * sparse->rank, *y = sparse->indices + b * sparse->rank;
    for (int32_t d = 0; d < sparse->rank; d++)
        if (x[d] != y[d]) return x[d] < y[d] ? -1 : 1;
    return 0;
}

static int compare_order(const void *a, const void *b, void *context)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    int order = compare_indices(context, x, y);
    return order ? order : (x > y) - (x < y);
}

/* Sorts the indices of a record; false if its values need no reordering. */
static bool sort(sparse *sparse, int64_t count)
{
    bool is_sorted = true;
    for (int64_t i = 0; i < count; i++) {
        sparse->order[i] = i;
        is_sorted = is_sorted && (i == 0 || compare_indices(sparse, i - 1, i) <= 0);
    }
    if (is_sorted || sparse->output->already_sorted) return false;
    qsort_r(sparse->order, (size_t)count, sizeof *sparse->order, compare_order, sparse);
    return true;
}

static mr_status fill(sparse *sparse, int64_t *index, const mr_example_target *target, mr_error *error)
{
    mr_feature_kind kind = sparse->batch->parser->slots[sparse->output->slot].kind;
    size_t size = target->element_bytes;
    int64_t offset = 0;
    for (int64_t i = 0; i < sparse->values->count; i++) {
        const mr_example_row *row = &sparse->values->items[i];
        if (row->count == 0) continue;
        char *values = mr_example_target_at(target, offset);
        assert(offset + row->count <= sparse->values->total);
        MR_TRY(read_indices(sparse, i, error));
        mr_example_row_values(kind, row, values);
        if (sort(sparse, row->count)) {
            memcpy(sparse->moved, values, row->count * size);
            for (uint32_t j = 0; j < row->count; j++)
                memcpy(values + j * size, sparse->moved + (size_t)sparse->order[j] * size, size);
        }
        for (uint32_t j = 0; j < row->count; j++) {
            if (!sparse->batch->single) *index++ = i;
            for (int32_t d = 0; d < sparse->rank; d++) *index++ = sparse->indices[sparse->order[j] * sparse->rank + d];
        }
        offset += row->count;
    }
    return MR_OK;
}

static mr_status make(sparse *sparse, mr_tensor *tensors, mr_error *error)
{
    const mr_example_batch *batch = sparse->batch;
    int64_t total = sparse->values->total, rank = sparse->rank + !batch->single;
    mr_example_target target;
    MR_TRY(mr_tensor_init(&tensors[0], MR_INT64, MR_SHAPE(total, rank), error));
    MR_TRY(mr_example_target_open(&target, sparse->output->dtype, MR_SHAPE(total), &tensors[1], error));
    mr_status status = fill(sparse, mr_tensor_int64s(&tensors[0]), &target, error);
    if (status != MR_OK) {
        mr_example_target_drop(&target);
        return status;
    }
    MR_TRY(mr_example_target_close(&target, error));
    int64_t dense[MR_RANK_MAX + 1] = {batch->record_count};
    memcpy(dense + 1, sparse->output->shape.dims, (size_t)sparse->rank * sizeof *dense);
    return mr_tensor_init_copy(&tensors[2], MR_INT64, MR_SHAPE(rank), batch->single ? dense + 1 : dense, error);
}

mr_status mr_example_sparse(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error)
{
    sparse sparse = {.batch = batch, .output = output, .rank = output->shape.rank};
    MR_TRY(gather(&sparse, error));
    /* A record has fewer than 2^32 values, and the rank is small: no overflow. */
    size_t longest = (size_t)sparse.values->longest + 1, rank = (size_t)sparse.rank;
    int64_t *scratch = malloc(longest * (2 + rank) * sizeof(int64_t));
    sparse.moved = malloc(longest * mr_dtype_size(output->dtype));
    sparse.column = scratch;
    sparse.order = scratch != nullptr ? scratch + longest : nullptr;
    sparse.indices = scratch != nullptr ? scratch + 2 * longest : nullptr;
    mr_status status = scratch != nullptr && sparse.moved != nullptr ? make(&sparse, tensors, error)
                                                                     : mr_fail_memory(error, longest * 8);
    free(scratch);
    free(sparse.moved);
    return status;
}
