/* RaggedFeature: the values of all rows, and their partitions, processed from the innermost to the outermost.
 *
 * A row (a record, or a step of a feature list) starts with its values as items. The trailing uniform partitions divide
 * the number of items by their lengths and become dimensions of the values. Each partition before them groups the items
 * of a row into parts, which are the items of the next partition. Every part begins where the previous one ends, so
 * that the splits of all rows follow from the lengths of their parts. The items that remain are the parts of each row
 * itself. */
#include "records/example/example_batch.h"

#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* A ragged output of a batch. */
typedef struct ragged {
    const mr_example_batch *batch;
    const mr_example_output *output;
    const mr_example_rows *rows;
    int64_t *items; /* number of items of each row */
    int64_t *keys;  /* values of a partition's feature in one row */
} ragged;

static const char *const kind_names[] = {"row splits", "row lengths",  "row starts",
                                         "row limits", "value rowids", "uniform row length"};

static mr_status fail_fit(const ragged *ragged, int64_t row, int32_t level, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    const mr_example_output *output = ragged->output;
    where[0] = '\0';
    (void)mr_example_where(ragged->batch, ragged->rows, row, where);
    if (output->kinds[level] == MR_UNIFORM_ROW_LENGTH)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s%s \"%.*s\": partition %" PRId32 " requires a multiple of %" PRId64 " items, found %" PRId64,
                       where, mr_example_noun(ragged->batch->parser), mr_example_shown(output->name), output->name.data,
                       level, output->lengths[level], ragged->items[row]);
    mr_string key = ragged->batch->parser->names[output->others[level]];
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s%s \"%.*s\": the %s in \"%.*s\" do not match %" PRId64 " values",
                   where, mr_example_noun(ragged->batch->parser), mr_example_shown(output->name), output->name.data,
                   kind_names[output->kinds[level]], mr_example_shown(key), key.data, ragged->items[row]);
}

/* ---- One row of one partition ----
 *
 * part_count returns the number of parts of a row's items, or -1 if the keys are invalid. put_parts writes the end of
 * each part, plus base. */

static int64_t part_count(mr_partition_kind kind, const int64_t *keys, int64_t count, int64_t items, bool single)
{
    int64_t before = 0;
    switch (kind) {
    case MR_ROW_SPLITS:
        if (count == 0) return items == 0 && !single ? 0 : -1;
        if (keys[0] != 0 || keys[count - 1] != items) return -1;
        break;
    case MR_ROW_LENGTHS:
        for (int64_t i = 0; i < count; before += keys[i++])
            if (keys[i] < 0 || keys[i] > items - before) return -1;
        return before == items ? count : -1;
    case MR_ROW_STARTS:
        if (count == 0) return items == 0 ? 0 : -1;
        if (keys[0] != 0 || keys[count - 1] > items) return -1;
        break;
    case MR_ROW_LIMITS:
        if (count == 0) return items == 0 ? 0 : -1;
        if (keys[count - 1] != items) return -1;
        break;
    case MR_VALUE_ROWIDS:
        if (count != items || (count > 0 && keys[count - 1] >= MR_VALUE_ROWID_LIMIT)) return -1;
        break;
    case MR_UNIFORM_ROW_LENGTH:
        assert(false);
        return -1;
    }
    for (int64_t i = 0; i < count; before = keys[i++])
        if (keys[i] < before) return -1;
    return kind == MR_ROW_SPLITS ? count - 1 : kind != MR_VALUE_ROWIDS ? count : count > 0 ? keys[count - 1] + 1 : 0;
}

static void put_parts(mr_partition_kind kind, const int64_t *keys, int64_t count, int64_t parts, int64_t items,
                      int64_t base, int64_t *ends)
{
    int64_t end = 0;
    for (int64_t i = 0; i < parts; i++) {
        switch (kind) {
        case MR_ROW_SPLITS:
            end = keys[i + 1];
            break;
        case MR_ROW_LENGTHS:
            end += keys[i];
            break;
        case MR_ROW_STARTS:
            end = i + 1 < count ? keys[i + 1] : items;
            break;
        case MR_ROW_LIMITS:
            end = keys[i];
            break;
        default:
            while (end < count && keys[end] <= i) end++;
        }
        assert(end >= 0 && end <= items);
        ends[i] = base + end;
    }
}

/* ---- All rows of one partition ---- */

static mr_status divide(const ragged *ragged, int32_t level, mr_error *error)
{
    int64_t length = ragged->output->lengths[level];
    assert(length > 0);
    for (int64_t i = 0; i < ragged->rows->count; i++)
        if (ragged->items[i] % length != 0) return fail_fit(ragged, i, level, error);
    for (int64_t i = 0; i < ragged->rows->count; i++) ragged->items[i] /= length;
    return MR_OK;
}

static mr_status uniform(const ragged *ragged, int32_t level, mr_tensor *tensor, mr_error *error)
{
    MR_TRY(divide(ragged, level, error));
    int64_t parts = 0;
    for (int64_t i = 0; i < ragged->rows->count; i++) parts += ragged->items[i];
    MR_TRY(mr_tensor_init(tensor, MR_INT64, MR_SHAPE(parts + 1), error));
    int64_t *splits = mr_tensor_int64s(tensor);
    for (int64_t i = 0; i <= parts; i++) splits[i] = i * ragged->output->lengths[level];
    return MR_OK;
}

/* The rows of a partition's feature. Each record must have as many of them as it has rows of values. */
static mr_status key_rows(const ragged *ragged, int32_t level, const mr_example_rows **keys, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    const mr_example_output *output = ragged->output;
    *keys = mr_example_rows_of(ragged->batch, output->others[level]);
    for (int64_t i = 0; ragged->rows->splits != nullptr && i < ragged->batch->record_count; i++) {
        int64_t steps = ragged->rows->splits[i + 1] - ragged->rows->splits[i];
        int64_t others = (*keys)->splits[i + 1] - (*keys)->splits[i];
        mr_string key = ragged->batch->parser->names[output->others[level]];
        if (steps != others)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%sfeature list \"%.*s\" has %" PRId64 " steps, but its partition \"%.*s\" has %" PRId64,
                           mr_example_where(ragged->batch, nullptr, i, where), mr_example_shown(output->name),
                           output->name.data, steps, mr_example_shown(key), key.data, others);
    }
    assert((*keys)->count == ragged->rows->count);
    return MR_OK;
}

static mr_status part(const ragged *ragged, int32_t level, mr_tensor *tensor, mr_error *error)
{
    const mr_example_rows *keys;
    mr_partition_kind kind = ragged->output->kinds[level];
    if (kind == MR_UNIFORM_ROW_LENGTH) return uniform(ragged, level, tensor, error);
    MR_TRY(key_rows(ragged, level, &keys, error));
    bool single = ragged->batch->single && ragged->batch->parser->scope != MR_SCOPE_LISTS;
    int64_t total = 0;
    for (int64_t i = 0; i < keys->count; i++) {
        if (keys->items[i].count > 0) mr_example_row_values(MR_FEATURE_INT64, &keys->items[i], ragged->keys);
        int64_t parts = part_count(kind, ragged->keys, keys->items[i].count, ragged->items[i], single);
        if (parts < 0) return fail_fit(ragged, i, level, error);
        total += parts;
    }
    MR_TRY(mr_tensor_init(tensor, MR_INT64, MR_SHAPE(total + 1), error));
    int64_t *ends = mr_tensor_int64s(tensor), base = 0;
    *ends++ = 0;
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t count = keys->items[i].count, items = ragged->items[i];
        if (count > 0) mr_example_row_values(MR_FEATURE_INT64, &keys->items[i], ragged->keys);
        int64_t parts = part_count(kind, ragged->keys, count, items, single);
        assert(parts >= 0);
        put_parts(kind, ragged->keys, count, parts, items, base, ends);
        ends += parts;
        base += items;
        ragged->items[i] = parts;
    }
    assert(ends == mr_tensor_int64s(tensor) + total + 1);
    return MR_OK;
}

/* ---- Complete batches ---- */

/* Converts counts to a tensor of splits. */
static mr_status splits_of(const int64_t *counts, int64_t count, mr_tensor *tensor, mr_error *error)
{
    MR_TRY(mr_tensor_init(tensor, MR_INT64, MR_SHAPE(count + 1), error));
    int64_t *splits = mr_tensor_int64s(tensor);
    splits[0] = 0;
    for (int64_t i = 0; i < count; i++) splits[i + 1] = splits[i] + counts[i];
    return MR_OK;
}

static mr_status narrow(const ragged *ragged, mr_tensor *tensor, mr_error *error)
{
    mr_tensor wide = *tensor;
    *tensor = (mr_tensor){0};
    mr_status status = mr_tensor_init(tensor, MR_INT32, wide.shape, error);
    int64_t count = mr_tensor_count(&wide);
    mr_string name = ragged->output->name;
    if (status == MR_OK && count > 0 && mr_tensor_int64s(&wide)[count - 1] > INT32_MAX)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\": its row splits do not fit in int32",
                         mr_example_shown(name), name.data);
    for (int64_t i = 0; status == MR_OK && i < count; i++)
        mr_tensor_int32s(tensor)[i] = (int32_t)mr_tensor_int64s(&wide)[i];
    mr_tensor_deinit(&wide);
    return status;
}

static mr_status make(const ragged *ragged, mr_tensor *tensors, mr_error *error)
{
    const mr_example_batch *batch = ragged->batch;
    const mr_example_output *output = ragged->output;
    bool is_list = batch->parser->scope == MR_SCOPE_LISTS;
    mr_shape shape = MR_SHAPE(ragged->rows->total);
    for (int64_t i = 0; i < ragged->rows->count; i++) ragged->items[i] = ragged->rows->items[i].count;
    int32_t first_part = is_list ? 3 : 2;
    for (int32_t level = output->partition_count - 1; level >= output->ragged_count; level--)
        MR_TRY(divide(ragged, level, error));
    for (int32_t level = output->ragged_count; level < output->partition_count; level++) {
        shape.dims[0] /= output->lengths[level];
        shape.dims[shape.rank++] = output->lengths[level];
    }
    MR_TRY(mr_example_values(batch, output->slot, ragged->rows, shape, &tensors[0], error));
    for (int32_t level = output->ragged_count - 1; level >= 0; level--)
        MR_TRY(part(ragged, level, &tensors[first_part + level], error));
    if (is_list) {
        MR_TRY(splits_of(ragged->items, ragged->rows->count, &tensors[2], error));
        MR_TRY(batch->single ? mr_tensor_init(&tensors[1], MR_INT64, MR_SHAPE(0), error)
                             : mr_tensor_init_copy(&tensors[1], MR_INT64, MR_SHAPE(batch->record_count + 1),
                                                   ragged->rows->splits, error));
    } else {
        MR_TRY(batch->single ? mr_tensor_init(&tensors[1], MR_INT64, MR_SHAPE(0), error)
                             : splits_of(ragged->items, ragged->rows->count, &tensors[1], error));
    }
    for (int32_t i = 1; output->splits_dtype == MR_INT32 && i < first_part + output->ragged_count; i++)
        MR_TRY(narrow(ragged, &tensors[i], error));
    return MR_OK;
}

mr_status mr_example_ragged(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error)
{
    assert(output->ragged_count >= 0 && output->ragged_count <= output->partition_count);
    ragged ragged = {.batch = batch, .output = output};
    int64_t longest = 0;
    ragged.rows = mr_example_rows_of(batch, output->slot);
    for (int32_t level = 0; level < output->ragged_count; level++) {
        if (output->others[level] < 0) continue;
        const mr_example_rows *keys = mr_example_rows_of(batch, output->others[level]);
        if (keys->longest > longest) longest = keys->longest;
    }
    size_t size = ((size_t)ragged.rows->count + (size_t)longest + 1) * sizeof(int64_t);
    ragged.items = calloc(1, size);
    if (ragged.items == nullptr) return mr_fail_memory(error, size);
    ragged.keys = ragged.items + ragged.rows->count;
    mr_status status = make(&ragged, tensors, error);
    free(ragged.items);
    return status;
}
