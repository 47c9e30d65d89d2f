/* Tables: see table.h. */
#include "tfrecord-make/table.h"

#include "tfrecord-make/make.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t LINE_SIZE_MAX = (size_t)16 << 20;
static constexpr size_t LINE_BYTES = (size_t)64 << 10, LINE_AT_BYTES = (size_t)4 << 10;

static mr_status fail_line(const table *table, uint64_t line, mr_status status, mr_error *error)
{
    return mr_fail_prefix(error, status, "%s: line %" PRIu64, mr_input_file_name(table->file), line);
}

/* ---- Columns of CSV ---- */

static mr_status add_cell(table *table, mr_string name, mr_error *error)
{
    int32_t index = -1, count = table->columns.count;
    if (name.size_bytes == 0) {
        table->nameless++;
    } else {
        MR_TRY(columns_add(&table->columns, name, &index, error));
        if (index < count)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the column \"%.*s\" occurs twice",
                           mr_input_file_name(table->file), (int)name.size_bytes, name.data);
    }
    int32_t *grown = realloc(table->cells, ((size_t)table->cell_count + 1) * sizeof(int32_t));
    if (!grown) return fail_memory(error, (size_t)table->cell_count * sizeof(int32_t));
    table->cells = grown;
    table->cells[table->cell_count++] = index;
    return MR_OK;
}

/* A first row with paths and numbers is not a header. */
static bool looks_like_values(const mr_csv_row *row)
{
    for (int32_t i = 0; i < row->count; i++) {
        mr_string cell = row->cells[i];
        char name[64];
        if (cell.size_bytes == 0) continue;
        if (column_type_of_text(cell) != COLUMN_BYTES) return true;
        size_t kept = cell.size_bytes < sizeof(name) - 1 ? cell.size_bytes : sizeof(name) - 1;
        memcpy(name, cell.data + cell.size_bytes - kept, kept);
        name[kept] = '\0';
        if (source_is_image_name(name)) return true;
    }
    return false;
}

/* Lines skipped by --skip-rows need not be valid CSV. */
static mr_status skip_rows(const table *table, mr_csv_reader *reader, mr_error *error)
{
    for (uint64_t i = 0; i < table->columns.in->skip_rows; i++) MR_TRY(mr_csv_reader_skip_line(reader, error));
    return MR_OK;
}

/* Sets the names of the columns from --columns, or from the row after those of --skip-rows. */
static mr_status read_header(table *table, mr_error *error)
{
    const source_options *in = table->columns.in;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row = nullptr;
    MR_TRY(mr_csv_reader_new(table->file, table->separator, &reader, error));
    mr_status status = skip_rows(table, reader, error);
    if (status == MR_OK && !in->columns) status = mr_csv_reader_next(reader, &row, error);
    if (status == MR_OUT_OF_RANGE)
        status = mr_fail(error, MR_NOT_FOUND, "%s: contains no rows", mr_input_file_name(table->file));
    assert(status != MR_OK || in->columns || row); /* a header was read */
    if (status == MR_OK && (row || in->skip_rows > 0))
        table->first = mr_csv_reader_offset(reader) + mr_csv_reader_text(reader).size_bytes;
    if (status == MR_OK && !in->columns && looks_like_values(row))
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "%s: line %" PRIu64
                         " contains values, not column names; name the columns with --columns A,B,…, and "
                         "add --skip-rows %" PRIu64 " to skip this line if it is a header of numbers",
                         mr_input_file_name(table->file), mr_csv_reader_line(reader), in->skip_rows + 1);
    for (int32_t i = 0; status == MR_OK && !in->columns && i < row->count; i++)
        status = add_cell(table, row->cells[i], error);
    mr_csv_reader_free(reader);
    return status;
}

mr_status table_open(table *table, const char *path, const source_options *in, mr_error *error)
{
    *table = (struct table){.columns = {.in = in}};
    table->is_json = source_has_ending(path, ".jsonl .ndjson .jsonl.gz .ndjson.gz");
    table->separator = in->separator ? in->separator : source_has_ending(path, ".tsv .tsv.gz") ? '\t' : ',';
    MR_TRY(mr_input_file_open(path, true, &table->file, error));
    if (table->is_json) return MR_OK;
    const char *next = in->columns;
    for (mr_string name; list_next(&next, &name);) MR_TRY(add_cell(table, name, error));
    return read_header(table, error);
}

void table_deinit(table *table)
{
    columns_deinit(&table->columns);
    mr_input_file_close(table->file);
    free(table->cells);
    *table = (struct table){0};
}

void table_row_deinit(table_row *row)
{
    mr_csv_row_deinit(&row->csv);
    free(row->line.data);
    free(row->values);
    json_decref(row->object);
    *row = (table_row){0};
}

/* ---- One row ---- */

static mr_status check_cells(const table *table, const mr_csv_row *cells, mr_error *error)
{
    if (cells->count == table->cell_count) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "the row has %d cells, but %d columns have names", cells->count,
                   table->cell_count);
}

/* The CSV cell; data is null if it is missing. */
static mr_string csv_value(const table *table, const table_row *row, int32_t cell)
{
    mr_string text = row->cells->cells[cell];
    return text.data && list_has(table->columns.in->missing, text) ? (mr_string){0} : text;
}

/* Collects the fields of an object by column. */
typedef struct field_taker {
    columns *learning; /* null if the columns are known */
    const columns *columns;
    table_row *row;
} field_taker;

static mr_status take_value(void *context, mr_string name, const json_t *value, mr_error *error)
{
    field_taker *taker = context;
    table_row *row = taker->row;
    int32_t index = 0;
    if (taker->learning)
        MR_TRY(columns_add(taker->learning, name, &index, error));
    else
        index = (int32_t)names_find(&taker->columns->names, name);
    if (index < 0) return mr_fail(error, MR_DATA_LOSS, "the file has changed since it was first read");
    if (taker->learning) {
        bool is_text = json_is_string(value);
        mr_string text = {is_text ? json_string_value(value) : nullptr, is_text ? json_string_length(value) : 0};
        column_see(&taker->learning->items[index], column_type_of_json(value), row->line_number, text);
    }
    if (index >= row->value_capacity) {
        int32_t capacity = 2 * index + 16;
        const json_t **grown = realloc(row->values, (size_t)capacity * sizeof(json_t *));
        if (!grown) return fail_memory(error, (size_t)capacity * sizeof(json_t *));
        for (int32_t i = row->value_capacity; i < capacity; i++) grown[i] = nullptr;
        row->values = grown;
        row->value_capacity = capacity;
    }
    assert(index < row->value_capacity);
    row->values[index] = value;
    return MR_OK;
}

/* Parses a line of JSON Lines. learning: null if the columns are known */
static mr_status parse_line(const table *table, columns *learning, mr_string text, table_row *row, mr_error *error)
{
    json_decref(row->object);
    for (int32_t i = 0; i < row->value_capacity; i++) row->values[i] = nullptr;
    row->object = json_object_from(text.data, text.size_bytes, error);
    if (!row->object) return MR_DATA_LOSS;
    return json_each_field(row->object, take_value, &(field_taker){learning, &table->columns, row}, error);
}

/* ---- All rows ---- */

static mr_status scan_csv(table *table, table_take take, void *context, table_row *row, mr_error *error)
{
    mr_csv_reader *reader = nullptr;
    mr_status status = mr_csv_reader_new(table->file, table->separator, &reader, error);
    if (status == MR_OK) status = skip_rows(table, reader, error);
    while (status == MR_OK && (status = mr_csv_reader_next(reader, &row->cells, error)) == MR_OK) {
        uint64_t offset = mr_csv_reader_offset(reader);
        if (offset < table->first) continue;
        mr_error fault = {0};
        row->line_number = mr_csv_reader_line(reader);
        bool is_good = check_cells(table, row->cells, &fault) == MR_OK;
        for (int32_t i = 0; is_good && i < table->cell_count; i++) {
            mr_string text = csv_value(table, row, i);
            if (!text.data || table->cells[i] < 0) continue;
            column *column = &table->columns.items[table->cells[i]];
            if (column_is_open(column)) column_see(column, column_type_of_text(text), row->line_number, text);
        }
        status = take(context, row, offset, mr_csv_reader_text(reader), is_good ? nullptr : &fault, error);
    }
    mr_csv_reader_free(reader);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* The text of a line without its line ending, which may be CRLF. */
static mr_string without_end(const char *line, size_t length)
{
    if (length > 0 && line[length - 1] == '\r') length--;
    return (mr_string){line, length};
}

static mr_status fail_long_line(const table *table, uint64_t offset, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: the line at byte %" PRIu64 " is longer than %zu bytes",
                   mr_input_file_name(table->file), offset, LINE_SIZE_MAX);
}

static bool is_blank(mr_string text)
{
    for (size_t i = 0; i < text.size_bytes; i++)
        if (text.data[i] != ' ' && text.data[i] != '\t' && text.data[i] != '\r') return false;
    return true;
}

/* A sliding window over the file, in memory. */
typedef struct window {
    char *bytes; /* owned */
    size_t capacity, begin, end;
    uint64_t offset; /* of bytes[0] */
    bool has_ended;
} window;

/* Finds the next line, including its line ending; *size is 0 at the end. */
static mr_status next_line(const table *table, window *window, size_t *size, mr_error *error)
{
    assert(window->begin <= window->end && window->end <= window->capacity);
    for (size_t searched = 0;;) {
        size_t there = window->end - window->begin, done;
        char *line = window->bytes ? window->bytes + window->begin : window->bytes;
        char *end = there > searched ? memchr(line + searched, '\n', there - searched) : nullptr;
        if (end || window->has_ended) {
            *size = end ? (size_t)(end + 1 - line) : there;
            return MR_OK;
        }
        searched = there;
        if (window->begin > 0) memmove(window->bytes, line, there);
        window->offset += window->begin;
        window->begin = 0;
        window->end = there;
        if (there == window->capacity) {
            if (there >= LINE_SIZE_MAX) return fail_long_line(table, window->offset, error);
            size_t capacity = there ? 2 * there : LINE_BYTES;
            char *grown = realloc(window->bytes, capacity);
            if (!grown) return fail_memory(error, capacity);
            window->bytes = grown;
            window->capacity = capacity;
        }
        MR_TRY(mr_input_file_read(table->file, window->offset + there, window->bytes + there, window->capacity - there,
                                  &done, error));
        window->end += done;
        assert(window->begin == 0 && window->end <= window->capacity);
        window->has_ended = done == 0;
    }
}

static mr_status scan_lines(table *table, table_take take, void *context, window *window, table_row *row,
                            mr_error *error)
{
    for (uint64_t line = 1;; line++) {
        size_t size;
        MR_TRY(next_line(table, window, &size, error));
        if (size == 0) return MR_OK;
        const char *begin = window->bytes + window->begin;
        uint64_t offset = window->offset + window->begin;
        mr_string text = without_end(begin, size - (begin[size - 1] == '\n'));
        window->begin += size;
        if (is_blank(text)) continue;
        mr_error fault = {0};
        row->line_number = line;
        mr_status status = parse_line(table, &table->columns, text, row, &fault);
        if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", fault.message);
        MR_TRY(take(context, row, offset, text, status == MR_OK ? nullptr : &fault, error));
    }
}

static mr_status scan_json(table *table, table_take take, void *context, table_row *row, mr_error *error)
{
    size_t done;
    unsigned char mark[3] = {0};
    window window = {0};
    MR_TRY(mr_input_file_read(table->file, 0, mark, sizeof(mark), &done, error));
    if (done >= 2 && (mark[0] ^ mark[1]) == 1 && mark[0] >= 0xfe)
        return mr_fail(error, MR_UNIMPLEMENTED,
                       "%s: UTF-16 is not supported; convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8)",
                       mr_input_file_name(table->file));
    if (memcmp(mark, "\xef\xbb\xbf", 3) == 0) window.offset = 3;
    mr_status status = scan_lines(table, take, context, &window, row, error);
    free(window.bytes);
    return status;
}

/* Reads the line at an offset into row->line. */
static mr_status read_line(const table *table, uint64_t offset, table_row *row, mr_string *text, mr_error *error)
{
    for (size_t size = LINE_AT_BYTES;; size *= 4) {
        size_t done;
        if (size > LINE_SIZE_MAX) size = LINE_SIZE_MAX;
        MR_TRY(source_bytes_reserve(&row->line, size, error));
        MR_TRY(mr_input_file_read(table->file, offset, row->line.data, size, &done, error));
        const char *end = memchr(row->line.data, '\n', done);
        if (!end && done == size) {
            if (size < LINE_SIZE_MAX) continue;
            return fail_long_line(table, offset, error);
        }
        *text = without_end(row->line.data, end ? (size_t)(end - row->line.data) : done);
        return MR_OK;
    }
}

mr_status table_scan(table *table, table_take take, void *context, mr_error *error)
{
    table_row row = {0};
    mr_status status =
        table->is_json ? scan_json(table, take, context, &row, error) : scan_csv(table, take, context, &row, error);
    table_row_deinit(&row);
    if (status != MR_OK) return status;
    return columns_check_types(&table->columns, mr_input_file_name(table->file), error);
}

mr_status table_read(const table *table, uint64_t offset, uint64_t line_number, table_row *row, mr_error *error)
{
    mr_status status;
    row->line_number = line_number;
    if (table->is_json) {
        mr_string text = {0};
        MR_TRY(read_line(table, offset, row, &text, error));
        status = parse_line(table, nullptr, text, row, error);
    } else {
        status = mr_csv_row_at(table->file, offset, table->separator, &row->csv, error);
        if (status != MR_OK) return status;
        row->cells = &row->csv;
        status = check_cells(table, row->cells, error);
    }
    return status == MR_OK ? MR_OK : fail_line(table, line_number, status, error);
}

/* ---- Values ---- */

static int32_t cell_of(const table *table, int32_t column)
{
    int32_t i = 0;
    while (i < table->cell_count && table->cells[i] != column) i++;
    return i;
}

static const json_t *json_value(const table_row *row, int32_t column)
{
    return column < row->value_capacity ? row->values[column] : nullptr;
}

bool table_text(const table *table, table_row *row, int32_t column, mr_string *text)
{
    if (column < 0) return false;
    if (!table->is_json) {
        *text = csv_value(table, row, cell_of(table, column));
        return text->data != nullptr;
    }
    const json_t *value = json_value(row, column);
    if (!value || json_is_array(value)) return false;
    if (json_is_string(value)) {
        *text = (mr_string){json_string_value(value), json_string_length(value)};
        return true;
    }
    if (json_is_integer(value))
        snprintf(row->text, sizeof(row->text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        snprintf(row->text, sizeof(row->text), "%s", json_is_true(value) ? "true" : "false");
    if (json_is_real(value)) snprintf(row->text, sizeof(row->text), "%.17g", json_real_value(value));
    *text = mr_string_from(row->text);
    return true;
}

static mr_status add_float(float_list *list, float value, mr_error *error)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        float *grown = realloc(list->values, capacity * sizeof(float));
        if (!grown) return fail_memory(error, capacity * sizeof(float));
        list->values = grown;
        list->capacity = capacity;
    }
    assert(list->count < list->capacity);
    list->values[list->count++] = value;
    return MR_OK;
}

static mr_status json_floats(const json_t *value, float_list *list, mr_error *error)
{
    float number;
    if (!json_is_array(value)) {
        MR_TRY(float_of_json(value, &number, error));
        return add_float(list, number, error);
    }
    for (size_t i = 0; i < json_array_size(value); i++) MR_TRY(json_floats(json_array_get(value, i), list, error));
    return MR_OK;
}

static mr_status fail_column(const table *table, const table_row *row, int32_t column, mr_status status,
                             mr_error *error)
{
    return mr_fail_prefix(error, status, "%s: line %" PRIu64 ", column %s", mr_input_file_name(table->file),
                          row->line_number, table->columns.items[column].name);
}

mr_status table_floats(const table *table, table_row *row, int32_t column, float_list *list, mr_error *error)
{
    mr_status status;
    float number;
    mr_string text;
    const json_t *value = table->is_json ? json_value(row, column) : nullptr;
    if (value)
        status = json_floats(value, list, error);
    else if (table->is_json || !table_text(table, row, column, &text))
        status = mr_fail(error, MR_INVALID_ARGUMENT, "the cell is empty");
    else if ((status = float_of_text(text, &number, error)) == MR_OK && !isfinite(number))
        status = mr_fail(error, MR_INVALID_ARGUMENT, "\"%.*s\" is not a valid target", (int)text.size_bytes, text.data);
    else if (status == MR_OK)
        status = add_float(list, number, error);
    return status == MR_OK ? MR_OK : fail_column(table, row, column, status, error);
}

/* ---- Splits ---- */

mr_status table_choose_split(const table *table, const source *source, bool is_last, int32_t *column, mr_error *error)
{
    const char *requested = source->in->split_column;
    if (*column < 0 && source_takes_splits(source))
        *column = requested ? columns_find(&table->columns, requested) : columns_find_usual(&table->columns, "split");
    if (*column < 0 && requested && is_last)
        return mr_fail(error, MR_INVALID_ARGUMENT, "--split-column: %s has no column \"%s\"", source->input, requested);
    return MR_OK;
}

mr_status table_split(const table *table, table_row *row, int32_t column, source *source, int8_t *split,
                      mr_error *error)
{
    mr_string text;
    *split = 0;
    return table_text(table, row, column, &text) ? source_find_split(source, text, split, error) : MR_OK;
}

/* ---- Remarks ---- */

static const char *name_line(const source *source, uint64_t row, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "line %" PRIu64, row);
    return text;
}

mr_status table_report(const table *table, source *source, mr_error *error)
{
    int32_t split = columns_find_usual(&table->columns, "split");
    MR_TRY(columns_report(&table->columns, source, "columns", name_line, error));
    for (int32_t i = 0; i < table->nameless; i++)
        MR_TRY(source_note(source, "column without a name left out|columns without a name left out",
                           "a cell of the first line is empty", error));
    if (split >= 0 && !table->columns.items[split].is_taken && !source_takes_splits(source))
        MR_TRY(source_remark(source, error, "the column %s becomes a feature, not the split: --split is given",
                             table->columns.items[split].name));
    return columns_declare(&table->columns, source, "", error);
}

mr_status table_put_all(const table *table, table_row *row, const features *to, mr_error *error)
{
    int32_t count = table->is_json ? table->columns.count : table->cell_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t index = table->is_json ? i : table->cells[i];
        const column *column = index < 0 ? nullptr : &table->columns.items[index];
        mr_status status = MR_OK;
        if (!column || column->is_taken) continue;
        if (table->is_json) {
            const json_t *value = json_value(row, index);
            if (value) status = column_put_json(column, value, column->name, to, error);
        } else {
            mr_string text = csv_value(table, row, i);
            if (text.data) status = column_put_text(column, text, column->name, to, error);
        }
        if (status != MR_OK) return fail_column(table, row, index, status, error);
    }
    return MR_OK;
}
