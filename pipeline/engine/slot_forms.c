/* Batches of elements that differ in size: padded, ragged and sparse (slot.h). */
#include "pipeline/engine/slot.h"

#include "base/stack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_slot_concatenate(const mr_tensor *rows, int32_t count, mr_dtype dtype, mr_shape shape, mr_tensor *result,
                              mr_error *error)
{
    size_t size_bytes = mr_dtype_size(dtype), used = 0;
    assert(count >= 1 && mr_shape_count(shape) >= 0);
    if (dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(result, dtype, shape, error));
        for (int32_t r = 0; r < count; r++) {
            size_t row_bytes = (size_t)mr_tensor_count(&rows[r]) * size_bytes;
            assert(rows[r].dtype == dtype && row_bytes <= mr_tensor_size_bytes(result) - used);
            if (row_bytes > 0) memcpy((char *)result->data + used, rows[r].data, row_bytes);
            used += row_bytes;
        }
        return MR_OK;
    }
    mr_string *elements = calloc((size_t)mr_shape_count(shape) + 1, sizeof *elements);
    if (elements == nullptr) return mr_fail_memory(error, (size_t)mr_shape_count(shape) * sizeof *elements);
    for (int32_t r = 0; r < count; r++) {
        size_t row_count = (size_t)mr_tensor_count(&rows[r]);
        assert(row_count <= (size_t)mr_shape_count(shape) - used);
        if (row_count > 0) memcpy(elements + used, rows[r].data, row_count * sizeof *elements);
        used += row_count;
    }
    mr_status status = mr_tensor_init_strings(result, shape, elements, error);
    free(elements);
    return status;
}

/* Limit of what a batch needs beyond the values of its elements: the budget, but at least LIMIT_MIN_BYTES, since the
 * next batch is always built. The sizes of a few hostile elements can multiply to more. */
static size_t limit_bytes(const mr_slot *slot)
{
    constexpr size_t LIMIT_MIN_BYTES = (size_t)1 << 30;
    size_t budget_bytes = slot->plan->run->budget->limit_bytes;
    return budget_bytes > LIMIT_MIN_BYTES ? budget_bytes : LIMIT_MIN_BYTES;
}

static mr_status fail_budget(const mr_slot *slot, int32_t component, const char *how, mr_error *error)
{
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "component %d: the %s batch exceeds the budget of %zu bytes",
                   component, how, slot->plan->run->budget->limit_bytes);
}

/* ---- Padded ---- */

/* The size of padded rows: as the pad specifies, or the longest. */
static mr_status padded_shape(const mr_slot *slot, int32_t component, mr_shape *shape, mr_error *error)
{
    const mr_tensor *rows = slot->columns[component].loose;
    const mr_shape *wanted = &slot->plan->columns[component].pad->shape;
    for (int32_t r = 0; r < slot->rows; r++) {
        if (rows[r].shape.rank != wanted->rank)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d: element %d has %d dimensions, expected %d",
                           component, r, rows[r].shape.rank, wanted->rank);
        for (int32_t d = 0; d < wanted->rank; d++) {
            int64_t size = rows[r].shape.dims[d];
            if (wanted->dims[d] >= 0 && size > wanted->dims[d])
                return mr_fail(
                    error, MR_INVALID_ARGUMENT,
                    "component %d: element %d has size %lld in dimension %d, larger than the padded size %lld",
                    component, r, (long long)size, d, (long long)wanted->dims[d]);
        }
    }
    *shape = mr_stack_shape(rows, slot->rows, *wanted);
    return mr_shape_count(*shape) >= 0 ? MR_OK : mr_fail_memory(error, SIZE_MAX);
}

static mr_status assemble_padded(mr_slot *slot, int32_t component, mr_tensor *result, mr_error *error)
{
    const mr_tensor *rows = slot->columns[component].loose;
    const mr_column_plan *plan = &slot->plan->columns[component];
    mr_shape row_shape;
    MR_TRY(padded_shape(slot, component, &row_shape, error));
    size_t element_bytes = mr_dtype_size(plan->dtype), row_bytes = 0, size_bytes = 0, largest = 0;
    for (int32_t r = 0; r < slot->rows; r++)
        if ((size_t)mr_tensor_count(&rows[r]) > largest) largest = (size_t)mr_tensor_count(&rows[r]);
    bool is_own_size = mr_shape_count(plan->pad->shape) >= 0 || (size_t)mr_shape_count(row_shape) == largest;
    if (__builtin_mul_overflow((size_t)mr_shape_count(row_shape), element_bytes, &row_bytes) ||
        __builtin_mul_overflow(row_bytes, (size_t)slot->rows, &size_bytes) ||
        (!is_own_size && size_bytes > limit_bytes(slot)))
        return fail_budget(slot, component, "padded", error);
    return mr_stack(rows, slot->rows, plan->dtype, row_shape, plan->pad->value.data, result, error);
}

/* ---- Ragged ---- */

/* Counts the entries of each level of row splits, without the leading 0; the last level counts the values.
 * errors  MR_RESOURCE_EXHAUSTED if the splits exceed the limit */
static mr_status count_entries(const mr_slot *slot, int32_t component, int64_t *entries, mr_error *error)
{
    const mr_column_plan *plan = &slot->plan->columns[component];
    const mr_tensor *rows = slot->columns[component].loose;
    size_t most = limit_bytes(slot) / sizeof(int64_t);
    for (int32_t r = 0; r < slot->rows; r++) {
        if (!mr_shape_compatible(rows[r].shape, plan->pad->shape)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d: element %d has shape %s, expected %s", component,
                           r, mr_shape_text(rows[r].shape, a, sizeof a), mr_shape_text(plan->pad->shape, b, sizeof b));
        }
        int64_t count = 1;
        for (int32_t level = 0; level <= plan->pad->ragged_rank; level++) {
            /* Rows without values have entries, too. */
            if (level > 0 && __builtin_mul_overflow(count, rows[r].shape.dims[level - 1], &count))
                return fail_budget(slot, component, "ragged", error);
            if (__builtin_add_overflow(entries[level], count, &entries[level]) ||
                (level < plan->pad->ragged_rank && (uint64_t)entries[level] > most))
                return fail_budget(slot, component, "ragged", error);
        }
    }
    return MR_OK;
}

static mr_status make_splits(const mr_slot *slot, int32_t component, int32_t level, int64_t count, mr_tensor *result,
                             mr_error *error)
{
    const mr_pad *pad = slot->plan->columns[component].pad;
    const mr_tensor *rows = slot->columns[component].loose;
    assert(level >= 0 && level < pad->ragged_rank);
    MR_TRY(mr_tensor_init(result, pad->splits_dtype, MR_SHAPE(count + 1), error));
    int64_t sum = 0, at = 0;
    bool is_narrow = pad->splits_dtype == MR_INT32;
    if (is_narrow)
        mr_tensor_int32s(result)[at++] = 0;
    else
        mr_tensor_int64s(result)[at++] = 0;
    for (int32_t r = 0; r < slot->rows; r++) {
        int64_t repeats = 1, length = rows[r].shape.dims[level];
        for (int32_t d = 0; d < level; d++) repeats *= rows[r].shape.dims[d];
        for (int64_t i = 0; i < repeats; i++) {
            sum += length;
            if (is_narrow)
                mr_tensor_int32s(result)[at++] = (int32_t)sum;
            else
                mr_tensor_int64s(result)[at++] = sum;
        }
    }
    return MR_OK;
}

/* The values, then the row splits, outermost first, as parse_example returns MR_RAGGED. */
static mr_status assemble_ragged(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error)
{
    const mr_column_plan *plan = &slot->plan->columns[component];
    const mr_tensor *rows = slot->columns[component].loose;
    int32_t ragged_rank = plan->pad->ragged_rank;
    int64_t entries[MR_RANK_MAX + 1] = {0};
    MR_TRY(count_entries(slot, component, entries, error));
    for (int32_t level = 1; level <= ragged_rank && plan->pad->splits_dtype == MR_INT32; level++)
        if (entries[level] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d: %lld rows or values exceed int32 row splits",
                           component, (long long)entries[level]);
    mr_shape shape = {.rank = 1 + plan->pad->shape.rank - ragged_rank, .dims = {entries[ragged_rank]}};
    for (int32_t d = 1; d < shape.rank; d++) shape.dims[d] = plan->pad->shape.dims[ragged_rank + d - 1];
    MR_TRY(mr_slot_concatenate(rows, slot->rows, plan->dtype, shape, &results[0], error));
    for (int32_t level = 0; level < ragged_rank; level++)
        MR_TRY(make_splits(slot, component, level, entries[level], &results[1 + level], error));
    return MR_OK;
}

/* ---- Sparse ---- */

static mr_status check_sparse(const mr_slot *slot, int32_t component, int64_t *count, mr_error *error)
{
    const mr_shape *wanted = &slot->plan->columns[component].pad->shape;
    const mr_tensor *rows = slot->columns[component].loose;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    for (int32_t r = 0; r < slot->rows; r++) {
        if (rows[r].shape.rank != wanted->rank)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "element %d has shape %s, whose rank differs from that of the row shape %s", r,
                           mr_shape_text(rows[r].shape, a, sizeof a), mr_shape_text(*wanted, b, sizeof b));
        for (int32_t d = 0; d < wanted->rank; d++)
            if (wanted->dims[d] >= 0 && rows[r].shape.dims[d] > wanted->dims[d])
                return mr_fail(error, MR_DATA_LOSS, "element %d has shape %s, which is larger than the row shape %s", r,
                               mr_shape_text(rows[r].shape, a, sizeof a), mr_shape_text(*wanted, b, sizeof b));
        *count += mr_tensor_count(&rows[r]);
    }
    size_t index_bytes = (size_t)(wanted->rank + 1) * sizeof(int64_t);
    if ((uint64_t)*count > limit_bytes(slot) / index_bytes) return fail_budget(slot, component, "sparse", error);
    return MR_OK;
}

/* Indices, values and dense shape, as parse_example returns MR_SPARSE. */
static mr_status assemble_sparse(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error)
{
    const mr_column_plan *plan = &slot->plan->columns[component];
    const mr_tensor *rows = slot->columns[component].loose;
    int32_t rank = plan->pad->shape.rank;
    int64_t count = 0;
    MR_TRY(check_sparse(slot, component, &count, error));
    MR_TRY(mr_tensor_init(&results[0], MR_INT64, MR_SHAPE(count, rank + 1), error));
    MR_TRY(mr_slot_concatenate(rows, slot->rows, plan->dtype, MR_SHAPE(count), &results[1], error));
    MR_TRY(mr_tensor_init(&results[2], MR_INT64, MR_SHAPE(rank + 1), error));
    mr_shape longest = mr_stack_shape(rows, slot->rows, plan->pad->shape);
    mr_tensor_int64s(&results[2])[0] = slot->rows;
    for (int32_t d = 0; d < rank; d++) mr_tensor_int64s(&results[2])[1 + d] = longest.dims[d];
    int64_t *to = mr_tensor_int64s(&results[0]);
    for (int32_t r = 0; r < slot->rows; r++) {
        int64_t at[MR_RANK_MAX] = {0};
        for (int64_t i = 0; i < mr_tensor_count(&rows[r]); i++) {
            *to++ = r;
            for (int32_t d = 0; d < rank; d++) *to++ = at[d];
            for (int32_t d = rank - 1; d >= 0 && ++at[d] == rows[r].shape.dims[d]; d--) at[d] = 0;
        }
    }
    return MR_OK;
}

int32_t mr_pad_tensors(const mr_pad *pad)
{
    if (pad == nullptr) return 1;
    return pad->join == MR_JOIN_SPARSE ? 3 : pad->join == MR_JOIN_RAGGED ? 1 + pad->ragged_rank : 1;
}

mr_status mr_slot_assemble_pad(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error)
{
    const mr_pad *pad = slot->plan->columns[component].pad;
    assert(pad != nullptr && pad->join != MR_JOIN_EQUAL && slot->columns[component].loose != nullptr);
    if (pad->join == MR_JOIN_RAGGED) return assemble_ragged(slot, component, results, error);
    if (pad->join == MR_JOIN_SPARSE) return assemble_sparse(slot, component, results, error);
    return assemble_padded(slot, component, results, error);
}
