/* The CSV reader. One function splits a row in memory. The reader moves a window over the file, calls the function, and
 * reads more data until the row is complete. Cells are views into the text; only cells with doubled quotes are
 * copied. */
#include "records/io/input_file.h"

#include "base/arguments.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t WINDOW_BYTES = (size_t)64 << 10;
static constexpr size_t ROW_AT_BYTES = (size_t)1 << 10;

/* ---- One row ---- */

/* The state of splitting a row. */
typedef struct split {
    mr_csv_row *row;
    const char *text;
    size_t size, at;
    size_t text_used; /* of row->text */
    bool is_end;
    char separator;
    int32_t stray; /* first cell (from 1) that contains a stray quote; 0: none */
} split;

/* The end of a cell: a separator, the end of the row, or unknown until more text is read. */
typedef enum cell_end { END_CELL, END_ROW, END_MORE } cell_end;

static mr_status fail_cell(const split *split, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "cell %d: %s", split->row->count + 1, reason);
}

static mr_status add_cell(split *split, mr_string cell, mr_error *error)
{
    mr_csv_row *row = split->row;
    assert(row->count >= 0 && row->count <= row->capacity);
    if (row->count == row->capacity) {
        if (row->count >= MR_CSV_CELLS_MAX)
            return mr_fail(error, MR_DATA_LOSS, "the row has more than %d cells", MR_CSV_CELLS_MAX);
        int32_t capacity = row->capacity ? 2 * row->capacity : 16;
        mr_string *grown = realloc(row->cells, (size_t)capacity * sizeof(mr_string));
        if (grown == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof(mr_string));
        row->cells = grown;
        row->capacity = capacity;
    }
    row->cells[row->count++] = cell;
    return MR_OK;
}

/* Consumes the end of a cell. A CR at the end of the text needs more text, since LF may follow. */
static cell_end take_end(split *split)
{
    assert(split->at <= split->size);
    if (split->at == split->size) return split->is_end ? END_ROW : END_MORE;
    char c = split->text[split->at++];
    if (c == split->separator) return END_CELL;
    if (c == '\r') {
        if (split->at == split->size && !split->is_end) return END_MORE;
        if (split->at < split->size && split->text[split->at] == '\n') split->at++;
    }
    return END_ROW;
}

static mr_status split_plain(split *split, cell_end *end, mr_error *error)
{
    size_t begin = split->at;
    while (split->at < split->size) {
        char c = split->text[split->at];
        if (c == split->separator || c == '\n' || c == '\r') break;
        if (c == '"' && !split->row->no_quotes && split->stray == 0) split->stray = split->row->count + 1;
        if (c == '\0') return fail_cell(split, "contains a NUL byte; not a text file", error);
        split->at++;
    }
    size_t size = split->at - begin;
    *end = take_end(split);
    return add_cell(split, size ? (mr_string){split->text + begin, size} : (mr_string){0}, error);
}

/* Copies the contents of a quoted cell, with doubled quotes reduced to one. row->text is as large as the text that is
 * split, so it has room for all cells of the row. */
static mr_status unquote(split *split, size_t begin, size_t end, mr_error *error)
{
    mr_csv_row *row = split->row;
    assert(begin <= end && end <= split->size);
    if (row->text_capacity < split->size) {
        /* Earlier cells point into the buffer, so it is allocated before the first of them and never replaced. */
        assert(split->text_used == 0);
        free(row->text);
        row->text_capacity = 0;
        row->text = malloc(split->size + 1);
        if (row->text == nullptr) return mr_fail_memory(error, split->size);
        row->text_capacity = split->size;
    }
    char *to = row->text + split->text_used, *first = to;
    for (size_t i = begin; i < end; i++) {
        *to++ = split->text[i];
        if (split->text[i] == '"') i++;
    }
    split->text_used += (size_t)(to - first);
    assert(split->text_used <= row->text_capacity);
    return add_cell(split, (mr_string){first, (size_t)(to - first)}, error);
}

static mr_status split_quoted(split *split, cell_end *end, mr_error *error)
{
    size_t begin = ++split->at;
    bool is_doubled = false;
    *end = END_MORE;
    for (;; split->at++) {
        if (split->at == split->size) {
            if (!split->is_end) return MR_OK;
            return fail_cell(split, "unterminated quote", error);
        }
        char c = split->text[split->at];
        if (c == '\0') return fail_cell(split, "contains a NUL byte; not a text file", error);
        if (c != '"') continue;
        if (split->at + 1 == split->size) {
            if (!split->is_end) return MR_OK;
            break;
        }
        if (split->text[split->at + 1] != '"') break;
        is_doubled = true;
        split->at++;
    }
    size_t close = split->at++;
    if (split->at < split->size) {
        char c = split->text[split->at];
        if (c != split->separator && c != '\n' && c != '\r')
            return fail_cell(split, "text after the closing quote; write a quote inside the cell as two quotes", error);
    }
    *end = take_end(split);
    if (is_doubled) return unquote(split, begin, close, error);
    return add_cell(split, (mr_string){split->text + begin, close - begin}, error);
}

mr_status mr_csv_split(mr_csv_row *row, mr_string text, bool is_end, char separator, size_t *used, mr_error *error)
{
    MR_REFUSE_NULL(row, error);
    MR_REFUSE_NULL(used, error);
    split split = {.row = row,
                   .text = text.data,
                   .size = text.size_bytes,
                   .is_end = is_end,
                   .separator = separator ? separator : ','};
    row->count = 0;
    *used = 0;
    while (!row->keep_empty_lines && split.at < split.size &&
           (split.text[split.at] == '\n' || split.text[split.at] == '\r'))
        split.at++;
    if (split.at == split.size) return MR_OUT_OF_RANGE;
    cell_end end = END_CELL;
    while (end == END_CELL) {
        if (!row->no_quotes && split.at < split.size && split.text[split.at] == '"')
            MR_TRY(split_quoted(&split, &end, error));
        else
            MR_TRY(split_plain(&split, &end, error));
    }
    if (end == END_MORE) return MR_OUT_OF_RANGE;
    *used = split.at;
    assert(split.at <= split.size && row->count > 0);
    if (split.stray > 0)
        return mr_fail(error, MR_DATA_LOSS, "cell %d: a quote inside an unquoted cell; write \"…\"\"…\"", split.stray);
    return MR_OK;
}

void mr_csv_row_deinit(mr_csv_row *row)
{
    if (row == nullptr) return;
    free(row->cells);
    free(row->text);
    free(row->buffer);
    *row = (mr_csv_row){0};
}

static mr_status fail_long(const char *name, uint64_t offset, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: the row at byte %" PRIu64 " has more than %zu bytes; is a quote unterminated?", name, offset,
                   MR_CSV_ROW_SIZE_MAX);
}

/* ---- A row at an offset ---- */

mr_status mr_csv_row_at(const mr_input_file *file, uint64_t offset, char separator, mr_csv_row *row, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(row, error);
    for (size_t size = ROW_AT_BYTES;; size *= 4) {
        if (size > MR_CSV_ROW_SIZE_MAX + 2) size = MR_CSV_ROW_SIZE_MAX + 2;
        if (row->buffer_capacity < size) {
            char *grown = realloc(row->buffer, size);
            if (grown == nullptr) return mr_fail_memory(error, size);
            row->buffer = grown;
            row->buffer_capacity = size;
        }
        size_t done = 0, used;
        MR_TRY(mr_input_file_read(file, offset, row->buffer, size, &done, error));
        assert(done <= size);
        mr_status status = mr_csv_split(row, (mr_string){row->buffer, done}, done < size, separator, &used, error);
        if (status == MR_OUT_OF_RANGE && done == size) {
            if (size < MR_CSV_ROW_SIZE_MAX + 2) continue;
            return fail_long(mr_input_file_name(file), offset, error);
        }
        if (status == MR_OUT_OF_RANGE)
            return mr_fail(error, MR_DATA_LOSS, "%s: no row at byte %" PRIu64, mr_input_file_name(file), offset);
        if (status != MR_OK)
            return mr_fail_prefix(error, status, "%s: at byte %" PRIu64, mr_input_file_name(file), offset);
        return MR_OK;
    }
}

/* ---- All rows in order ---- */

struct mr_csv_reader {
    const mr_input_file *file;
    mr_csv_row row;
    char separator;
    char *window; /* owned */
    size_t capacity, begin, end;
    uint64_t offset;         /* of window[0] in the file */
    size_t row_begin;        /* offset in the window of the last row */
    uint64_t line, row_line; /* line: number of the line at window[begin] */
    bool has_ended;
};

mr_status mr_csv_reader_new(const mr_input_file *file, char separator, mr_csv_reader **reader, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(reader, error);
    unsigned char mark[4] = {0};
    size_t done = 0;
    *reader = nullptr;
    MR_TRY(mr_input_file_read(file, 0, mark, sizeof(mark), &done, error));
    bool is_utf16 = done >= 2 && ((mark[0] == 0xff && mark[1] == 0xfe) || (mark[0] == 0xfe && mark[1] == 0xff));
    if (is_utf16)
        return mr_fail(error, MR_UNIMPLEMENTED,
                       "%s: UTF-16 is not supported; convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8)",
                       mr_input_file_name(file));
    mr_csv_reader *created = calloc(1, sizeof(*created));
    if (created != nullptr) created->window = malloc(WINDOW_BYTES);
    if (created == nullptr || created->window == nullptr) {
        free(created);
        return mr_fail_memory(error, WINDOW_BYTES);
    }
    created->file = file;
    created->separator = separator ? separator : ',';
    created->capacity = WINDOW_BYTES;
    created->line = created->row_line = 1;
    if (done >= 3 && memcmp(mark, "\xef\xbb\xbf", 3) == 0) created->offset = 3;
    *reader = created;
    return MR_OK;
}

void mr_csv_reader_free(mr_csv_reader *reader)
{
    if (reader == nullptr) return;
    mr_csv_row_deinit(&reader->row);
    free(reader->window);
    free(reader);
}

/* Extends the window by at least one byte, or sets has_ended. */
static mr_status read_more(mr_csv_reader *reader, mr_error *error)
{
    assert(reader->begin <= reader->end && reader->end <= reader->capacity);
    size_t kept = reader->end - reader->begin, done = 0;
    if (reader->begin > 0) {
        memmove(reader->window, reader->window + reader->begin, kept);
        reader->offset += reader->begin;
        reader->begin = 0;
        reader->end = kept;
    }
    if (kept == reader->capacity) {
        if (kept > MR_CSV_ROW_SIZE_MAX) {
            const mr_status status = fail_long(mr_input_file_name(reader->file), reader->offset, error);
            return mr_fail_prefix(error, status, "line %" PRIu64, reader->line);
        }
        size_t capacity = kept > 0 ? 2 * kept : WINDOW_BYTES;
        char *grown = realloc(reader->window, capacity);
        if (grown == nullptr) return mr_fail_memory(error, capacity);
        reader->window = grown;
        reader->capacity = capacity;
    }
    assert(kept == reader->end && kept < reader->capacity);
    MR_TRY(mr_input_file_read(reader->file, reader->offset + kept, reader->window + kept, reader->capacity - kept,
                              &done, error));
    reader->end += done;
    reader->has_ended = done == 0;
    return MR_OK;
}

/* Counts the line ends of a text: LF, CRLF and CR each count once. */
static uint64_t count_lines(const char *text, size_t size)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) lines++;
        if (text[i] == '\r') lines++;
    }
    return lines;
}

mr_status mr_csv_reader_next(mr_csv_reader *reader, const mr_csv_row **row, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    MR_REFUSE_NULL(row, error);
    size_t used;
    for (;;) {
        mr_string text = {reader->window + reader->begin, reader->end - reader->begin};
        mr_status status = mr_csv_split(&reader->row, text, reader->has_ended, reader->separator, &used, error);
        if (status == MR_OK) break;
        if (status == MR_OUT_OF_RANGE && reader->has_ended) return mr_fail(error, status, "no more rows");
        if (status != MR_OUT_OF_RANGE) {
            /* The line of the error itself is unknown if the row spans several lines, so report where the row
             * begins. */
            size_t blank = 0;
            while (blank < text.size_bytes && (text.data[blank] == '\n' || text.data[blank] == '\r')) blank++;
            return mr_fail_prefix(error, status, "%s: line %" PRIu64, mr_input_file_name(reader->file),
                                  reader->line + count_lines(text.data, blank));
        }
        MR_TRY(read_more(reader, error));
    }
    size_t blank = 0;
    const char *text = reader->window + reader->begin;
    while (text[blank] == '\n' || text[blank] == '\r') blank++;
    assert(blank <= used && used <= reader->end - reader->begin);
    reader->row_line = reader->line + count_lines(text, blank);
    reader->line += count_lines(text, used);
    reader->row_begin = reader->begin + blank;
    reader->begin += used;
    *row = &reader->row;
    return MR_OK;
}

mr_status mr_csv_reader_skip_line(mr_csv_reader *reader, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    for (;;) {
        assert(reader->begin <= reader->end && reader->end <= reader->capacity);
        const char *text = reader->window + reader->begin;
        size_t size = reader->end - reader->begin, blank = 0;
        while (blank < size && (text[blank] == '\n' || text[blank] == '\r')) blank++;
        size_t used = blank;
        while (used < size && text[used] != '\n' && text[used] != '\r') used++;
        if (used < size || reader->has_ended) {
            if (used == blank) return mr_fail(error, MR_OUT_OF_RANGE, "no more rows");
            reader->row_line = reader->line + count_lines(text, blank);
            reader->line = reader->row_line;
            reader->row_begin = reader->begin + blank;
            reader->begin += used;
            return MR_OK;
        }
        MR_TRY(read_more(reader, error));
    }
}

uint64_t mr_csv_reader_offset(const mr_csv_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->offset + reader->row_begin;
}

mr_string mr_csv_reader_text(const mr_csv_reader *reader)
{
    if (reader == nullptr) return (mr_string){0};
    assert(reader->row_begin <= reader->begin);
    return (mr_string){reader->window + reader->row_begin, reader->begin - reader->row_begin};
}

uint64_t mr_csv_reader_line(const mr_csv_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->row_line;
}
