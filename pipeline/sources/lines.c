/* text_lines and csv: sources that read text files sequentially. The state contains the file and the byte offset in it,
 * so restoring is cheap. */
#include "base/options.h"
#include "pipeline/pipeline.h"
#include "pipeline/sources/csv_number.h"
#include "pipeline/sources/line_finder.h"

#include <assert.h>
#include <millrace/formats.h>
#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lines_settings {
    char **paths; /* owned */
    int32_t path_count;
    /* For each file: the number of its first element, plus 1; 0 if not reached yet. Shared by all iterators. */
    _Atomic uint64_t *begins;
    /* csv: */
    mr_csv_column *columns; /* in the arena; default_values are owned by defaults */
    mr_tensor *defaults;
    int32_t column_count;
    bool has_header;
    char separator;
    const char *na_value;
    int32_t cells; /* in every row; 0: any number */
    bool no_quotes;
} lines_settings;

typedef struct lines_stage {
    mr_stage stage;
    int32_t file;         /* being read */
    uint64_t file_begin;  /* number of the file's first element */
    mr_input_file *input; /* null: not open */
    char *window;         /* owned; bytes of the file from offset on */
    size_t capacity, begin, end;
    uint64_t offset; /* of window[begin] */
    bool ended;      /* no bytes of the file follow the window */
    bool is_past_header;
    mr_csv_row row;
    size_t counted_bytes;  /* of the window */
    mr_line_finder finder; /* of the file; for errors */
} lines_stage;

constexpr size_t WINDOW_BYTES = 256 << 10;
/* Memory for a long line is released at the end of its file. */
constexpr size_t WINDOW_KEPT_BYTES = 4 << 20;

static const lines_settings *settings_of(const lines_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t lines_digest(const mr_dataset *dataset)
{
    const lines_settings *s = dataset->settings;
    constexpr uint64_t PLACE_FORM = 2;
    uint64_t digest = mr_digest(PLACE_FORM, (uint64_t)s->column_count);
    for (int32_t i = 0; i < s->column_count; i++) {
        const mr_csv_column *column = &s->columns[i];
        digest = mr_digest(mr_digest(digest, (uint64_t)column->index), (uint64_t)column->dtype);
        digest = mr_digest(digest, column->default_value != nullptr);
        if (column->default_value != nullptr) digest = mr_digest_tensor(digest, column->default_value);
    }
    digest = mr_digest(mr_digest_text(digest, s->na_value), (uint64_t)s->cells);
    return mr_digest(digest, (uint64_t)s->no_quotes << 9 | (uint64_t)s->has_header << 8 | (unsigned char)s->separator);
}

static mr_status lines_digest_content(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const lines_settings *s = dataset->settings;
    *content = 0;
    return mr_digest_paths(content, (const char *const *)s->paths, s->path_count, error);
}

static void close_file(lines_stage *self)
{
    mr_input_file_close(self->input);
    mr_line_finder_reset(&self->finder);
    self->input = nullptr;
    if (self->capacity > WINDOW_KEPT_BYTES) {
        free(self->window);
        self->window = nullptr;
        self->capacity = 0;
        mr_stage_keep_unlimited(&self->stage, &self->counted_bytes, 0);
    }
    self->begin = self->end = 0;
    self->offset = 0;
    self->ended = self->is_past_header = false;
}

static mr_status lines_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    lines_stage *self = (lines_stage *)stage;
    close_file(self);
    self->file = 0;
    self->file_begin = 0;
    return mr_stage_begin_simple(stage, iteration, error);
}

/* Appends more of the file to the window. */
static mr_status read_more(lines_stage *self, mr_error *error)
{
    assert(self->input != nullptr && self->begin <= self->end && self->end <= self->capacity);
    if (self->begin > 0) {
        memmove(self->window, self->window + self->begin, self->end - self->begin);
        self->end -= self->begin;
        self->begin = 0;
    }
    if (self->capacity - self->end < WINDOW_BYTES) {
        size_t capacity = self->capacity + self->capacity / 2 + WINDOW_BYTES;
        if (self->end > MR_LINE_SIZE_MAX)
            return mr_fail(error, MR_DATA_LOSS, "%s: the line at byte %llu is longer than %zu bytes",
                           mr_input_file_name(self->input), (unsigned long long)self->offset, MR_LINE_SIZE_MAX);
        char *window = realloc(self->window, capacity);
        if (window == nullptr) return mr_fail_memory(error, capacity);
        self->window = window;
        self->capacity = capacity;
        mr_stage_keep_unlimited(&self->stage, &self->counted_bytes, capacity);
    }
    size_t done = 0;
    assert(self->begin == 0 && self->capacity - self->end >= WINDOW_BYTES);
    MR_TRY(mr_input_file_read(self->input, self->offset + self->end, self->window + self->end,
                              self->capacity - self->end, &done, error));
    self->ended = done == 0;
    self->end += done;
    self->stage.counters->bytes += done;
    return MR_OK;
}

static void consume(lines_stage *self, size_t size_bytes)
{
    assert(size_bytes <= self->end - self->begin);
    self->begin += size_bytes;
    self->offset += size_bytes;
}

/* The bytes read and not consumed. The window is null before the first read. */
static const char *unread(const lines_stage *self)
{
    return self->window == nullptr ? "" : self->window + self->begin;
}

/* Removes every CR of a line in place, as TensorFlow does. The last piece of a file, without an LF, is a line only if
 * it is not empty after that. line may be null if it is empty. */
static mr_string without_returns(char *line, size_t size_bytes)
{
    char *first = size_bytes == 0 ? nullptr : memchr(line, '\r', size_bytes), *to = first;
    if (first == nullptr) return (mr_string){line, size_bytes};
    for (const char *from = first; from < line + size_bytes; from++)
        if (*from != '\r') *to++ = *from;
    return (mr_string){line, (size_t)(to - line)};
}

/* The next line. errors: MR_OUT_OF_RANGE at the end of the file */
static mr_status next_line(lines_stage *self, mr_string *line, mr_error *error)
{
    size_t looked = 0;
    for (;;) {
        size_t held = self->end - self->begin;
        const char *from = unread(self);
        const char *end = held > looked ? memchr(from + looked, '\n', held - looked) : nullptr;
        if (end == nullptr && !self->ended) {
            looked = held;
            MR_TRY(read_more(self, error));
            continue;
        }
        assert(looked <= held);
        if (end == nullptr && held == 0) return mr_fail(error, MR_OUT_OF_RANGE, "end of file");
        size_t size_bytes = end == nullptr ? held : (size_t)(end - from);
        *line = without_returns(self->window + self->begin, size_bytes);
        consume(self, size_bytes + (end != nullptr));
        if (end == nullptr && line->size_bytes == 0) return mr_fail(error, MR_OUT_OF_RANGE, "end of file");
        return MR_OK;
    }
}

/* An error of the row at the offset: names its line too, if the file can be read again. */
static mr_status fail_row(lines_stage *self, uint64_t offset, mr_status status, const char *reason, mr_error *error)
{
    const uint64_t line = mr_line_find(&self->finder, settings_of(self)->paths[self->file], offset);
    const char *name = mr_input_file_name(self->input);
    if (line == 0)
        return mr_fail(error, status, "%s: the row at byte %llu: %s", name, (unsigned long long)offset, reason);
    return mr_fail(error, status, "%s: line %llu, at byte %llu: %s", name, (unsigned long long)line,
                   (unsigned long long)offset, reason);
}

/* The next CSV row. errors: as above. A bad row whose end cannot be found is the last one of its file. */
static mr_status next_row(lines_stage *self, mr_error *error)
{
    for (;;) {
        size_t used = 0;
        mr_error reason = {0};
        mr_string text = {unread(self), self->end - self->begin};
        mr_status status = mr_csv_split(&self->row, text, self->ended, settings_of(self)->separator, &used, &reason);
        if (status == MR_OUT_OF_RANGE && !self->ended) {
            MR_TRY(read_more(self, error));
            continue;
        }
        if (status == MR_OK || status == MR_OUT_OF_RANGE) {
            consume(self, status == MR_OK ? used : text.size_bytes);
            return status == MR_OK ? MR_OK : mr_fail(error, MR_OUT_OF_RANGE, "end of file");
        }
        (void)fail_row(self, self->offset, status, reason.message, error);
        if (used > 0) {
            consume(self, used);
            return status;
        }
        consume(self, text.size_bytes);
        assert(self->begin == self->end);
        self->ended = true;
        self->begin = self->end = 0;
        return status;
    }
}

static bool is_empty(const lines_settings *s, mr_string cell)
{
    return cell.size_bytes == 0 || (s->na_value != nullptr && mr_string_equal(cell, mr_string_from(s->na_value)));
}

static mr_status take_cells(lines_stage *self, uint64_t offset, mr_payload *payload, mr_error *error)
{
    const lines_settings *s = settings_of(self);
    assert(payload->count == s->column_count);
    if (s->cells > 0 && self->row.count != s->cells) {
        char text[64];
        snprintf(text, sizeof text, "the row has %d cells, expected %d", self->row.count, s->cells);
        return fail_row(self, offset, MR_INVALID_ARGUMENT, text, error);
    }
    for (int32_t i = 0; i < s->column_count; i++) {
        const mr_csv_column *column = &s->columns[i];
        mr_error reason = {0};
        mr_status status = MR_OK;
        if (column->index >= self->row.count) {
            status = mr_fail(&reason, MR_INVALID_ARGUMENT, "is missing: the row has %d cells", self->row.count);
        } else if (is_empty(s, self->row.cells[column->index])) {
            if (column->default_value != nullptr)
                payload->tensors[i] = mr_tensor_ref(column->default_value);
            else
                status = mr_fail(&reason, MR_INVALID_ARGUMENT, "is empty and has no default value");
        } else if (column->dtype == MR_STRING) {
            status = mr_tensor_init_string(&payload->tensors[i], self->row.cells[column->index], &reason);
        } else {
            status = mr_csv_number(self->row.cells[column->index], column->dtype, &payload->tensors[i], &reason);
        }
        if (status != MR_OK) {
            mr_error named = {0};
            (void)mr_fail(&named, status, "column %d %s", column->index, reason.message);
            return fail_row(self, offset, status, named.message, error);
        }
    }
    return MR_OK;
}

static mr_status open_next(lines_stage *self, mr_error *error)
{
    const lines_settings *s = settings_of(self);
    assert(self->input == nullptr && self->file >= 0 && self->file_begin <= self->stage.position);
    if (self->file >= s->path_count) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    atomic_store_explicit(&s->begins[self->file], self->file_begin + 1, memory_order_relaxed);
    return mr_input_file_open(s->paths[self->file], true, &self->input, error);
}

/* The next element of the open file. errors: MR_OUT_OF_RANGE at its end */
static mr_status next_element(lines_stage *self, mr_payload *payload, mr_error *error)
{
    const lines_settings *s = settings_of(self);
    mr_string line = {0};
    if (s->columns == nullptr) {
        MR_TRY(next_line(self, &line, error));
        return mr_tensor_init_string(&payload->tensors[0], line, error);
    }
    bool is_header = s->has_header && !self->is_past_header;
    self->is_past_header = true;
    if (is_header) MR_TRY(next_row(self, error));
    uint64_t offset = self->offset;
    MR_TRY(next_row(self, error));
    return take_cells(self, offset, payload, error);
}

static mr_status lines_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    lines_stage *self = (lines_stage *)stage;
    mr_payload *payload = mr_payload_new(stage->dataset->spec.count);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    item->payload = payload;
    for (;;) {
        mr_status status = self->input == nullptr ? open_next(self, error) : MR_OK;
        if (status != MR_OK) {
            mr_item_deinit(item);
            return status == MR_OUT_OF_RANGE ? status : mr_fail_prefix(error, status, "%s", stage->dataset->kind->name);
        }
        status = next_element(self, payload, error);
        if (status == MR_OUT_OF_RANGE) {
            close_file(self);
            self->file++;
            self->file_begin = stage->position;
            continue;
        }
        if (status == MR_OK) {
            mr_stream_number(stage, item);
            return MR_OK;
        }
        mr_item_deinit(item);
        if (status != MR_UNAVAILABLE) stage->position++;
        return mr_fail_prefix(error, status, "%s", stage->dataset->kind->name);
    }
}

static mr_status lines_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    const lines_stage *self = (const lines_stage *)stage;
    MR_TRY(mr_state_put(state, (uint64_t)self->file, error));
    MR_TRY(mr_state_put(state, self->file_begin, error));
    MR_TRY(mr_state_put(state, self->is_past_header, error));
    return mr_state_put(state, self->offset, error);
}

static mr_status lines_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    lines_stage *self = (lines_stage *)stage;
    uint64_t file = 0, file_begin = 0, offset = 0;
    bool is_past_header = false;
    MR_TRY(mr_state_get_below(reader, (uint64_t)settings_of(self)->path_count, &file, error));
    MR_TRY(mr_state_get_below(reader, stage->position, &file_begin, error));
    MR_TRY(mr_state_get_bool(reader, &is_past_header, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &offset, error));
    close_file(self);
    self->file = (int32_t)file;
    self->file_begin = file_begin;
    if (offset == 0) return MR_OK;
    MR_TRY(mr_state_found(open_next(self, error), error));
    if (offset > mr_input_file_size(self->input)) return mr_state_refuse(error);
    self->offset = offset;
    self->is_past_header = is_past_header;
    return MR_OK;
}

static mr_status lines_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    lines_stage *self = (lines_stage *)stage;
    stage->is_seekable = false;
    self->row.keep_empty_lines = true;
    self->row.no_quotes = settings_of(self)->no_quotes;
    return MR_OK;
}

static void lines_stage_deinit(mr_stage *stage)
{
    lines_stage *self = (lines_stage *)stage;
    close_file(self);
    mr_csv_row_deinit(&self->row);
    free(self->window);
}

static void lines_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    const lines_settings *s = dataset->settings;
    int32_t file = -1;
    uint64_t begin = 0;
    for (int32_t i = 0; i < s->path_count; i++) {
        uint64_t found = atomic_load_explicit(&s->begins[i], memory_order_relaxed);
        if (found == 0 || found - 1 > number) continue;
        file = i;
        begin = found - 1;
    }
    const char *what = s->columns == nullptr ? "line" : "row";
    if (file < 0)
        snprintf(text, size_bytes, "%s %llu of all files", what, (unsigned long long)number + 1);
    else
        snprintf(text, size_bytes, "%s: %s %llu", s->paths[file], what, (unsigned long long)(number - begin) + 1);
}

static void lines_deinit(mr_dataset *dataset)
{
    lines_settings *s = dataset->settings;
    mr_paths_free(s->paths, s->path_count);
    for (int32_t i = 0; i < s->column_count; i++) mr_tensor_deinit(&s->defaults[i]);
}

static const mr_stage_functions lines_functions = {.begin = lines_begin,
                                                   .next = lines_next,
                                                   .seek = mr_stage_seek_forward,
                                                   .deinit = lines_stage_deinit,
                                                   .save = lines_save,
                                                   .restore = lines_restore};

static const mr_dataset_kind text_kind = {.name = "text_lines",
                                          .role = MR_ROLE_SOURCE,
                                          .digest = lines_digest,
                                          .digest_content = lines_digest_content,
                                          .stage_size_bytes = sizeof(lines_stage),
                                          .functions = &lines_functions,
                                          .prepare = lines_prepare,
                                          .describe = lines_describe,
                                          .deinit = lines_deinit};
static const mr_dataset_kind csv_kind = {.name = "csv",
                                         .role = MR_ROLE_SOURCE,
                                         .digest = lines_digest,
                                         .digest_content = lines_digest_content,
                                         .stage_size_bytes = sizeof(lines_stage),
                                         .functions = &lines_functions,
                                         .prepare = lines_prepare,
                                         .describe = lines_describe,
                                         .deinit = lines_deinit};

static mr_dataset *make(const mr_dataset_kind *kind, const char *pattern)
{
    mr_dataset *dataset = mr_dataset_new(kind, nullptr, sizeof(lines_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    lines_settings *s = dataset->settings;
    mr_error error = {0};
    dataset->count = MR_CARDINALITY_UNKNOWN;
    dataset->spec = (mr_element_spec){.count = 1, .dtypes = {MR_STRING}, .shapes = {MR_SCALAR}};
    if (mr_paths_match(pattern, &s->paths, &s->path_count, &error) != MR_OK) {
        s->paths = nullptr;
        s->path_count = 0;
        return mr_dataset_fail(dataset, error.status, "%s: %s", kind->name, error.message);
    }
    s->begins = MR_ARENA_NEW(&dataset->arena, _Atomic uint64_t, (size_t)s->path_count);
    if (s->begins == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
    return dataset;
}

mr_dataset *mr_dataset_text_lines(const char *pattern)
{
    return make(&text_kind, pattern);
}

static mr_status take_column(lines_settings *s, int32_t i, const mr_csv_column *column, mr_error *error)
{
    s->columns[i] = *column;
    s->columns[i].default_value = nullptr;
    bool is_known = column->dtype == MR_FLOAT || column->dtype == MR_DOUBLE || column->dtype == MR_INT32 ||
                    column->dtype == MR_INT64 || column->dtype == MR_STRING;
    if (!is_known)
        return mr_fail(error, MR_INVALID_ARGUMENT, "column %d: invalid dtype %s", column->index,
                       mr_dtype_name(column->dtype));
    if (column->index < 0 || (i > 0 && column->index <= s->columns[i - 1].index))
        return mr_fail(error, MR_INVALID_ARGUMENT, "column indices must be ascending, from 0");
    if (column->default_value == nullptr) return MR_OK;
    if (column->default_value->dtype != column->dtype || mr_tensor_count(column->default_value) != 1 ||
        !mr_tensor_is_complete(column->default_value))
        return mr_fail(error, MR_INVALID_ARGUMENT, "column %d: default_value must be one value of %s", column->index,
                       mr_dtype_name(column->dtype));
    return mr_tensor_reshape(column->default_value, MR_SCALAR, &s->defaults[i], error);
}

mr_dataset *mr_dataset_csv_(const char *pattern, const mr_csv_column *columns, int32_t count,
                            const mr_csv_options *given)
{
    mr_csv_options options;
    mr_error error = {0};
    mr_dataset *dataset = make(&csv_kind, pattern);
    if (mr_dataset_failed(dataset)) return dataset;
    if (MR_OPTIONS_READ(mr_csv_options, &options, given, &error) != MR_OK) return mr_dataset_fail_with(dataset, &error);
    lines_settings *s = dataset->settings;
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "csv: %d columns, expected 1 to %d", count,
                               MR_COMPONENTS_MAX);
    if (mr_dataset_failed(mr_dataset_require(dataset, columns != nullptr, "columns"))) return dataset;
    assert(columns != nullptr);
    s->columns = MR_ARENA_NEW(&dataset->arena, mr_csv_column, (size_t)count);
    s->defaults = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)count);
    if (options.column_count < 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "csv: column_count is %d, expected at least 0",
                               options.column_count);
    s->has_header = options.has_header;
    s->cells = options.column_count;
    s->no_quotes = options.no_quotes;
    s->separator = options.separator == '\0' ? ',' : options.separator;
    if (options.na_value != nullptr) s->na_value = mr_arena_strdup(&dataset->arena, options.na_value);
    if (s->columns == nullptr || s->defaults == nullptr || (options.na_value != nullptr && s->na_value == nullptr))
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "csv: no memory");
    dataset->spec.count = count;
    for (int32_t i = 0; i < count; i++) {
        s->column_count = i + 1;
        if (take_column(s, i, &columns[i], &error) != MR_OK)
            return mr_dataset_fail(dataset, error.status, "csv: %s", error.message);
        if (columns[i].default_value != nullptr) s->columns[i].default_value = &s->defaults[i];
        dataset->spec.dtypes[i] = columns[i].dtype;
        dataset->spec.shapes[i] = MR_SCALAR;
    }
    return dataset;
}
