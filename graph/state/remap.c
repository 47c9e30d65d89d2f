/* GenerateVocabRemapping, LoadAndRemapMatrix: matrices of a checkpoint for another vocabulary. */
#include "graph/state/table.h"
#include "kernels/common.h"
#include "records/checkpoint/checkpoint.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A scalar string input, null-terminated, in the arena. */
static mr_status text_input(mr_kernel_call *call, mr_arena *arena, int input, const char *what, const char **text,
                            mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    char shape[MR_SHAPE_TEXT_SIZE];
    if (mr_tensor_count(tensor) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s should be a single string, but got %s", what,
                              mr_shape_text(tensor->shape, shape, sizeof shape));
    mr_string value = mr_tensor_strings(tensor)[0];
    if (value.size_bytes == 0 || memchr(value.data, 0, value.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s cannot be empty.", what);
    *text = mr_arena_strndup(arena, value.data, value.size_bytes);
    return *text ? MR_OK : mr_fail_memory(error, value.size_bytes);
}

/* ---- Vocabularies ---- */

/* Reads a file into a table that only this call uses, and that *handle owns. */
static mr_status read_vocabulary(const char *path, bool by_line, int64_t size, mr_table_state **result,
                                 mr_tensor *handle, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&mr_table_class, &resource, error));
    mr_table_state *table = *result = (mr_table_state *)resource;
    pthread_mutex_init(&table->mutex, nullptr);
    *handle = mr_tensor_take_resource(MR_RESOURCE, resource);
    table->kind = MR_TABLE_HASH;
    table->key_dtype = by_line ? MR_INT64 : MR_STRING;
    table->value_dtype = by_line ? MR_STRING : MR_INT64;
    table->key_shape = table->value_shape = MR_SCALAR;
    table->key_size = table->value_size = 1;
    mr_table_file file = {.path = path,
                          .key_index = by_line ? -1 : -2,
                          .value_index = by_line ? -2 : -1,
                          .vocab_size = size,
                          .delimiter = '\t'};
    return mr_table_read_file(table, &file, error);
}

/* Writes the old line number of each new word from `offset` on, and counts the words that have one. */
static mr_status map_words(mr_table_state *words, mr_table_state *lines, int64_t offset, mr_tensor *remapping,
                           int32_t *present, mr_error *error)
{
    mr_string empty = {"", 0}, word;
    int64_t none = -1, line, *to = mr_tensor_int64s(remapping);
    mr_tensor key = {.dtype = MR_INT64, .data = &line}, text = {.dtype = MR_STRING, .data = &word};
    mr_tensor no_word = {.dtype = MR_STRING, .data = &empty}, no_line = {.dtype = MR_INT64, .data = &none};
    for (int64_t i = 0, count = mr_tensor_count(remapping); i < count; i++) {
        mr_arena arena = {0};
        line = offset + i;
        mr_status status = mr_table_find_values(words, &key, &no_word, false, (char *)&word, &arena, error);
        if (status == MR_OK)
            status = mr_table_find_values(lines, &text, &no_line, false, (char *)&to[i], &arena, error);
        mr_arena_deinit(&arena);
        MR_TRY(status);
        if (to[i] >= 0) ++*present;
    }
    return MR_OK;
}

static mr_status generate_vocab_remapping(mr_kernel_call *call, mr_error *error)
{
    int64_t offset = mr_attr_int_or(call->node->attrs, "new_vocab_offset", 0), last;
    int64_t count = mr_attr_int_or(call->node->attrs, "num_new_vocab", 0);
    const char *new_path, *old_path;
    mr_table_state *words = nullptr, *lines = nullptr;
    mr_tensor handles[2] = {0};
    mr_arena arena = {0};
    int32_t present = 0;
    mr_status status = text_input(call, &arena, 0, "new_vocab_file", &new_path, error);
    if (status == MR_OK) status = text_input(call, &arena, 1, "old_vocab_file", &old_path, error);
    if (status == MR_OK) status = read_vocabulary(new_path, true, -1, &words, &handles[0], error);
    if (status == MR_OK && (__builtin_add_overflow(offset, count, &last) || last > mr_table_count(words)))
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                "lookup table size must be larger than last new vocab entry's line: %.200s has %lld "
                                "words, but the words from %lld on, %lld of them, are read",
                                new_path, (long long)mr_table_count(words), (long long)offset, (long long)count);
    if (status == MR_OK)
        status = read_vocabulary(old_path, false, mr_attr_int_or(call->node->attrs, "old_vocab_size", -1), &lines,
                                 &handles[1], error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, MR_SHAPE(count), error);
    if (status == MR_OK) status = mr_kernel_output(call, 1, MR_SCALAR, error);
    if (status == MR_OK) status = map_words(words, lines, offset, &call->outputs[0], &present, error);
    if (status == MR_OK) mr_tensor_int32s(&call->outputs[1])[0] = present;
    mr_tensor_deinit(&handles[0]);
    mr_tensor_deinit(&handles[1]);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Matrices ---- */

/* Which old row, or column, each new one is; null ids: the same. */
typedef struct axis {
    const int64_t *ids;
    int64_t count, present;
    int64_t lowest, highest; /* of the old ones */
} axis;

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static mr_status fail_twice(const mr_kernel_call *call, const axis *axis, int64_t id, mr_error *error)
{
    int64_t first = 0;
    while (axis->ids[first] != id) first++;
    int64_t second = first + 1;
    while (axis->ids[second] != id) second++;
    return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                          "Old ID %" PRId64 " is mapped to both new ID %" PRId64 " and %" PRId64
                          ", which is not supported.",
                          id, first, second);
}

/* Checks that no old number occurs twice and that all are below `size`. */
static mr_status check_axis(const mr_kernel_call *call, const char *what, axis *axis, int64_t size, mr_error *error)
{
    if (axis->ids == nullptr) {
        axis->present = axis->count;
        return MR_OK;
    }
    int64_t *sorted = malloc((size_t)MR_MAX(axis->count, 1) * sizeof *sorted);
    if (!sorted) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %s", what);
    for (int64_t i = 0; i < axis->count; i++)
        if (axis->ids[i] >= 0) sorted[axis->present++] = axis->ids[i];
    if (axis->present > 0) qsort(sorted, (size_t)axis->present, sizeof *sorted, compare);
    mr_status status = MR_OK;
    for (int64_t i = 1; i < axis->present && status == MR_OK; i++)
        if (sorted[i] == sorted[i - 1]) status = fail_twice(call, axis, sorted[i], error);
    axis->lowest = axis->present > 0 ? sorted[0] : 0;
    axis->highest = axis->present > 0 ? sorted[axis->present - 1] : -1;
    if (status == MR_OK && axis->highest >= size)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                "%s has the old ID %" PRId64 ", but the tensor has only %" PRId64, what, axis->highest,
                                size);
    free(sorted);
    return status;
}

static mr_status find_tensor(const mr_kernel_call *call, const mr_checkpoint_reader *reader, const char *name,
                             mr_shape *shape, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    for (int32_t i = 0; i < mr_checkpoint_count(reader); i++) {
        mr_dtype dtype;
        if (strcmp(mr_checkpoint_key(reader, i, &dtype, shape), name) != 0) continue;
        if (dtype != MR_FLOAT)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Tensor %s has invalid type %s instead of expected type float", name,
                                  mr_dtype_name(dtype));
        if (shape->rank == 2) return MR_OK;
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tensor %s has shape %s of invalid rank %d instead of expected shape of rank 2.", name,
                              mr_shape_text(*shape, text, sizeof text), shape->rank);
    }
    return mr_kernel_fail(call->node, error, MR_NOT_FOUND, "Key %s not found in checkpoint", name);
}

/* The number of elements without an old one must be that of the initial values. */
static mr_status check_values(const mr_kernel_call *call, const axis *rows, const axis *columns, mr_error *error)
{
    int64_t all, given = mr_tensor_count(&call->inputs[4]), missing;
    if (__builtin_mul_overflow(rows->count, columns->count, &all)) all = INT64_MAX;
    missing = all - rows->present * columns->present;
    if (given < missing)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "initializing_values contained %" PRId64 " elements, but more missing values remain.",
                              given);
    if (given > missing)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "initializing_values contained %" PRId64 " elements, but only %" PRId64
                              " elements were used to fill in missing values.",
                              given, missing);
    return MR_OK;
}

/* Copies the rows of the result that are in old rows [begin, begin + part's rows). */
static void copy_rows(mr_tensor *matrix, const mr_tensor *part, int64_t begin, const axis *rows, const axis *columns)
{
    int64_t width = part->shape.dims[1];
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t old = rows->ids[r] - begin;
        if (rows->ids[r] < 0 || old < 0 || old >= part->shape.dims[0]) continue;
        const float *from = mr_tensor_floats(part) + old * width;
        float *to = mr_tensor_floats(matrix) + r * columns->count;
        for (int64_t c = 0; c < columns->count; c++) {
            int64_t column = columns->ids ? columns->ids[c] : c;
            if (column >= 0) to[c] = from[column];
        }
    }
}

static void fill_missing(mr_kernel_call *call, const axis *rows, const axis *columns)
{
    const float *next = mr_tensor_floats(&call->inputs[4]);
    float *to = mr_tensor_floats(&call->outputs[0]);
    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t c = 0; c < columns->count; c++, to++)
            if (rows->ids[r] < 0 || (columns->ids && columns->ids[c] < 0)) *to = *next++;
}

static mr_status load_rows(mr_kernel_call *call, mr_checkpoint_reader *reader, const char *name, const axis *rows,
                           const axis *columns, mr_error *error)
{
    int64_t most = mr_attr_int_or(call->node->attrs, "max_rows_in_memory", -1);
    if (columns->present == 0) return MR_OK;
    for (int64_t begin = rows->lowest; begin <= rows->highest;) {
        int64_t count = rows->highest - begin + 1;
        if (most > 0) count = MR_MIN(count, most);
        mr_checkpoint_slice slice = {.rank = 2, .starts = {begin, 0}, .lengths = {count, -1}};
        mr_tensor part = {0};
        MR_TRY(mr_checkpoint_read_slice(reader, name, nullptr, &slice, &part, error));
        copy_rows(&call->outputs[0], &part, begin, rows, columns);
        mr_tensor_deinit(&part);
        begin += count;
    }
    return MR_OK;
}

static mr_status remap(mr_kernel_call *call, mr_checkpoint_reader *reader, const char *name, axis *rows, axis *columns,
                       mr_error *error)
{
    mr_shape shape;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(find_tensor(call, reader, name, &shape, error));
    if (columns->ids == nullptr && columns->count != shape.dims[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tensor %s has shape %s, where the size of its 2nd dimension is %" PRId64
                              " instead of being equal to num_cols=%" PRId64,
                              name, mr_shape_text(shape, text, sizeof text), shape.dims[1], columns->count);
    MR_TRY(check_axis(call, "row_remapping", rows, shape.dims[0], error));
    MR_TRY(check_axis(call, "col_remapping", columns, shape.dims[1], error));
    MR_TRY(check_values(call, rows, columns, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows->count, columns->count), error));
    MR_TRY(load_rows(call, reader, name, rows, columns, error));
    fill_missing(call, rows, columns);
    return MR_OK;
}

static mr_status load_and_remap_matrix(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *row_ids = &call->inputs[2], *column_ids = &call->inputs[3];
    char text[MR_SHAPE_TEXT_SIZE];
    axis rows = {.ids = mr_tensor_int64s(row_ids), .count = mr_attr_int_or(call->node->attrs, "num_rows", 0)};
    axis columns = {.ids = mr_tensor_count(column_ids) > 0 ? mr_tensor_int64s(column_ids) : nullptr,
                    .count = mr_attr_int_or(call->node->attrs, "num_cols", 1)};
    if (row_ids->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The `row_remapping` tensor must be 1-D, got a tensor of shape %s",
                              mr_shape_text(row_ids->shape, text, sizeof text));
    if (row_ids->shape.dims[0] != rows.count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Size of row_remapping is %" PRId64 " instead of being equal to num_rows=%" PRId64,
                              row_ids->shape.dims[0], rows.count);
    if (columns.ids && mr_tensor_count(column_ids) != columns.count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Provided col_remapping, but its size is %" PRId64
                              " instead of being equal to num_cols=%" PRId64,
                              mr_tensor_count(column_ids), columns.count);
    mr_arena arena = {0};
    mr_checkpoint_reader *reader = nullptr;
    const char *path, *name;
    mr_status status = text_input(call, &arena, 0, "ckpt_path", &path, error);
    if (status == MR_OK) status = text_input(call, &arena, 1, "old_tensor_name", &name, error);
    if (status == MR_OK) status = mr_checkpoint_reader_open(path, &reader, error);
    if (status == MR_OK) status = remap(call, reader, name, &rows, &columns, error);
    mr_checkpoint_reader_close(reader);
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "GenerateVocabRemapping", .run = generate_vocab_remapping},
    {.op = "LoadAndRemapMatrix", .run = load_and_remap_matrix},
};
const mr_kernel_table mr_state_kernels_remap = {kernels, sizeof kernels / sizeof kernels[0]};
