/* InitializeTableFromTextFile: a key and a value for each line of a file. */
#include "graph/state/table.h"

#include "kernels/text.h"
#include "records/io/file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t FILE_MAX_BYTES = (size_t)4 << 30;
constexpr int64_t LINE_NUMBER = -1, COMPLETE_LINE = -2;

/* The lists that are filled from the file. */
typedef struct columns {
    mr_text_builder keys, values; /* elements */
    int64_t count;
} columns;

static mr_status check_index(const char *what, int64_t index, mr_dtype dtype, mr_error *error)
{
    if (index == LINE_NUMBER && dtype != MR_INT64)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s index for line number requires table %s dtype of int64, got %s",
                       what, what[0] == 'K' ? "key" : "value", mr_dtype_name(dtype));
    if (index == COMPLETE_LINE && dtype != MR_STRING && dtype != MR_INT32 && dtype != MR_INT64)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s index for whole line requires string or integer table %s, got %s", what,
                       what[0] == 'K' ? "key" : "value", mr_dtype_name(dtype));
    return MR_OK;
}

/* The part of a line that an index requests. */
static mr_status find_token(const mr_table_file *file, mr_string line, int64_t number, int64_t index, mr_string *token,
                            mr_error *error)
{
    *token = line;
    for (int64_t i = 0; index >= 0; i++) {
        const char *end = token->size_bytes > 0 ? memchr(token->data, file->delimiter, token->size_bytes) : nullptr;
        size_t size = end ? (size_t)(end - token->data) : token->size_bytes;
        if (i == index) {
            token->size_bytes = size;
            return MR_OK;
        }
        if (!end)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Invalid number of columns in %s line %" PRId64 " (%.*s) : expected at least %" PRId64
                           " got %" PRId64,
                           file->path, number, (int)MR_MIN(line.size_bytes, (size_t)200), line.data,
                           MR_MAX(file->key_index, file->value_index) + 1, i + 1);
        *token = (mr_string){end + 1, token->size_bytes - size - 1};
    }
    return MR_OK;
}

static mr_status add_element(const mr_table_file *file, mr_string line, int64_t number, int64_t index, mr_dtype dtype,
                             mr_text_builder *column, mr_error *error)
{
    union {
        int32_t int32;
        int64_t int64;
        float number;
        double wide;
        mr_string text;
    } element = {.int64 = (int64_t)((uint64_t)number + (uint64_t)file->offset)};
    mr_string token;
    MR_TRY(find_token(file, line, number, index, &token, error));
    bool is_valid = true;
    if (index == LINE_NUMBER)
        is_valid = dtype == MR_INT64;
    else if (dtype == MR_INT32)
        is_valid = mr_text_to_int32(token, &element.int32);
    else if (dtype == MR_INT64)
        is_valid = mr_text_to_int64(token, &element.int64);
    else if (dtype == MR_FLOAT)
        is_valid = mr_text_to_float(token, &element.number);
    else if (dtype == MR_DOUBLE)
        is_valid = mr_text_to_double(token, &element.wide);
    else if (dtype == MR_STRING)
        element.text = token;
    else
        return mr_fail(error, MR_INVALID_ARGUMENT, "Data type %s not supported.", mr_dtype_name(dtype));
    if (!is_valid)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Field %.*s in line %" PRId64 " is not a valid %s.",
                       (int)MR_MIN(token.size_bytes, (size_t)200), token.data, number, mr_dtype_name(dtype));
    /* TensorFlow adds the offset to int32 values too. */
    if (dtype == MR_INT32) element.int32 = (int32_t)((uint32_t)element.int32 + (uint32_t)file->offset);
    mr_text_add(column, &element, mr_dtype_size(dtype));
    return MR_OK;
}

/* Reads the next line, without its end; carriage returns are removed in place. False at the end of the file. */
static bool take_line(char *bytes, size_t size, size_t *at, mr_string *line)
{
    if (*at >= size) return false;
    char *start = bytes + *at, *end = memchr(start, '\n', size - *at);
    size_t length = end ? (size_t)(end - start) : size - *at, kept = 0;
    *at += length + (end != nullptr);
    for (size_t i = 0; i < length; i++)
        if (start[i] != '\r') start[kept++] = start[i];
    *line = (mr_string){start, kept};
    return end != nullptr || kept > 0;
}

static mr_status read_lines(const mr_table_state *table, const mr_table_file *file, char *bytes, size_t size,
                            columns *c, mr_error *error)
{
    mr_string line;
    size_t at = 0;
    for (; c->count != file->vocab_size && take_line(bytes, size, &at, &line); c->count++) {
        if (line.size_bytes == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid content in %s: empty line found at position %zu.",
                           file->path, at);
        MR_TRY(add_element(file, line, c->count, file->key_index, table->key_dtype, &c->keys, error));
        MR_TRY(add_element(file, line, c->count, file->value_index, table->value_dtype, &c->values, error));
    }
    if (file->vocab_size >= 0 && c->count < file->vocab_size)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid vocab_size in %s: expected %" PRId64 " but got %" PRId64,
                       file->path, file->vocab_size, c->count);
    if (c->count == 0) return mr_fail(error, MR_OUT_OF_RANGE, "%s: end of file", file->path);
    return c->keys.failed || c->values.failed ? mr_fail_memory(error, size) : MR_OK;
}

mr_status mr_table_read_file(mr_table_state *table, const mr_table_file *file, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0;
    columns c = {0};
    MR_TRY(check_index("Key", file->key_index, table->key_dtype, error));
    MR_TRY(check_index("Value", file->value_index, table->value_dtype, error));
    MR_TRY(mr_file_read_all(file->path, FILE_MAX_BYTES, &bytes, &size, error));
    mr_status status = mr_table_is_ready(table) ? MR_OK : read_lines(table, file, bytes, size, &c, error);
    mr_tensor keys = {.dtype = table->key_dtype, .shape = MR_SHAPE(c.count), .data = c.keys.data};
    mr_tensor values = {.dtype = table->value_dtype, .shape = MR_SHAPE(c.count), .data = c.values.data};
    if (status == MR_OK && !mr_table_is_ready(table)) status = mr_table_initialize(table, &keys, &values, error);
    mr_text_deinit(&c.keys);
    mr_text_deinit(&c.values);
    free(bytes);
    return status;
}
