/* Records as rows of CSV (commas, quotes doubled; CR LF with --crlf, as in RFC 4180). The columns are the features
 * selected by --features; without it, those of the first records that have at most one value and no binary bytes.
 * Records are kept until the columns are known. */
#include "common/query/patterns.h"
#include "common/query/values.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Number of records, and of their bytes, from which the columns are determined. */
static constexpr size_t KEPT_MAX = 1'000;
static constexpr size_t KEPT_BYTES_MAX = (size_t)16 << 20;
static constexpr size_t COLUMNS_MAX = 10'000;

typedef struct column {
    char *name; /* owned */
    size_t name_size, most;
    bool is_binary, is_list, is_taken;
} column;

/* A record kept until the header is written. */
typedef struct kept {
    record_position position;
    char *bytes; /* owned */
} kept;

typedef struct csv {
    const options *options;
    view view;
    out out;
    column *columns;
    size_t count, guess; /* records are similar: the likely column of the next name */
    const entry **cells; /* of the current record, for each column */
    kept kept[KEPT_MAX];
    size_t kept_count, kept_bytes;
    bool has_header, has_failed;
    record_position odd; /* the first record of its file that is not an Example */
    uint64_t odd_count;  /* number of such records in that file */
    uint64_t late;       /* records with features without a column */
    char late_name[60];
} csv;

static mr_string column_name(const column *column)
{
    return (mr_string){column->name, column->name_size};
}

static column *find_column(csv *csv, mr_string name)
{
    for (size_t i = 0; i < csv->count; i++) {
        size_t at = (csv->guess + i) % csv->count;
        if (!mr_string_equal(column_name(&csv->columns[at]), name)) continue;
        csv->guess = at + 1;
        return &csv->columns[at];
    }
    return nullptr;
}

/* Null: no memory, or too many columns. */
static column *add_column(csv *csv, mr_string name)
{
    char *copy = csv->count < COLUMNS_MAX ? malloc(name.size_bytes + 1) : nullptr;
    column *grown = copy ? reallocarray(csv->columns, csv->count + 1, sizeof(column)) : nullptr;
    if (!grown) {
        free(copy);
        return nullptr;
    }
    if (name.size_bytes > 0) memcpy(copy, name.data, name.size_bytes);
    csv->columns = grown;
    grown[csv->count] = (column){.name = copy, .name_size = name.size_bytes};
    csv->guess = csv->count + 1;
    return &grown[csv->count++];
}

/* ---- Header ---- */

static bool is_binary(const entry *entry)
{
    values values = values_of(&entry->feature);
    value value;
    if (entry->feature.kind != MR_FEATURE_BYTES) return false;
    while (values_next(&values, &value))
        if (!text_is_readable(value.bytes)) return true;
    return false;
}

static bool look_at(csv *csv, const record_position *position)
{
    if (view_read(&csv->view, csv->options->features, csv->options->is_raw, position->record, nullptr) != MR_OK)
        return true; /* reported when its row is written */
    for (size_t i = 0; i < csv->view.count; i++) {
        const entry *entry = &csv->view.entries[i];
        if (entry->is_hidden || entry->is_damaged) continue;
        column *column = find_column(csv, entry->name);
        if (!column) column = add_column(csv, entry->name);
        if (!column) return false;
        if (entry->count > column->most) column->most = entry->count;
        column->is_list |= entry->is_list;
        column->is_binary |= !entry->is_list && is_binary(entry);
    }
    return true;
}

/* A name without wildcards in --features is a column even if no record has it. */
static bool add_requested(csv *csv)
{
    const char *text = csv->options->features;
    mr_string pattern;
    while (pattern_next(&text, &pattern)) {
        if (pattern_has_wildcard(pattern) || pattern_is_exclusion(pattern)) continue;
        char *name = malloc(pattern.size_bytes + 1);
        if (!name) return false;
        mr_string requested = {name, pattern_unescape(pattern, name)};
        bool exists = find_column(csv, requested) != nullptr;
        bool is_good = exists || add_column(csv, requested) != nullptr;
        free(name);
        if (!is_good) return false;
    }
    return true;
}

static bool is_only_names(const char *features)
{
    mr_string pattern;
    if (!features) return false;
    while (pattern_next(&features, &pattern))
        if (pattern_has_wildcard(pattern) || pattern_is_exclusion(pattern)) return false;
    return true;
}

static void print_omitted(const csv *csv)
{
    int printed = 0;
    for (size_t i = 0; i < csv->count; i++) {
        const column *column = &csv->columns[i];
        if (column->is_taken) continue;
        if (printed == 0) fputs("tfrecord-cat: --csv omits", stderr);
        if (printed++ == 4) break;
        fputs(printed > 1 ? ", " : " ", stderr);
        (void)text_print(stderr, column_name(column), 50);
        if (column->is_list)
            fputs(" (a feature list)", stderr);
        else if (column->most > 1)
            fprintf(stderr, " (up to %zu values)", column->most);
        else
            fputs(" (not text)", stderr);
    }
    if (printed > 4) fputs(", …", stderr);
    if (printed > 0) fputs("; use --features to select them\n", stderr);
}

static void put_text(out *out, mr_string text)
{
    bool needs_quotes = text.size_bytes == 0;
    for (size_t i = 0; i < text.size_bytes && !needs_quotes; i++)
        needs_quotes = strchr(",\"\r\n; ", text.data[i]) != nullptr; /* matches a NUL byte too */
    if (!needs_quotes) {
        out_bytes(out, text.data, text.size_bytes);
        return;
    }
    out_char(out, '"');
    for (size_t i = 0; i < text.size_bytes;) {
        const char *quote = memchr(text.data + i, '"', text.size_bytes - i);
        size_t size = quote ? (size_t)(quote - text.data) - i + 1 : text.size_bytes - i;
        out_bytes(out, text.data + i, size);
        if (quote) out_char(out, '"');
        i += size;
    }
    out_char(out, '"');
}

static bool write_header(csv *csv)
{
    bool is_first = true;
    csv->has_header = true;
    for (size_t i = 0; i < csv->count; i++) {
        column *column = &csv->columns[i];
        bool is_plain = column->most <= 1 && (!column->is_binary || csv->options->bytes_form != BYTES_TEXT);
        column->is_taken = !column->is_list && (csv->options->features || is_plain);
        if (!column->is_taken) continue;
        if (!is_first) out_char(&csv->out, ',');
        is_first = false;
        put_text(&csv->out, column_name(column));
    }
    if (!is_first) out_text(&csv->out, csv->options->is_crlf ? "\r\n" : "\n");
    bool has_memory = out_write(&csv->out, stdout);
    fflush(stdout);
    if (has_memory)
        print_omitted(csv);
    else
        csv->has_failed = print_no_memory();
    return has_memory;
}

/* ---- Rows ---- */

static void put_bytes(csv *csv, mr_string bytes)
{
    int form = csv->options->bytes_form;
    if (form == BYTES_TEXT && text_is_readable(bytes)) {
        put_text(&csv->out, bytes);
        return;
    }
    if (form == BYTES_TEXT) out_text(&csv->out, "base64:");
    if (form == BYTES_HEX)
        out_hex(&csv->out, bytes);
    else
        out_base64(&csv->out, bytes);
}

static void put_cell(csv *csv, const entry *entry)
{
    values values = values_of(&entry->feature);
    value value;
    for (bool is_first = true; values_next(&values, &value); is_first = false) {
        if (!is_first) out_char(&csv->out, ';');
        if (value.kind == MR_FEATURE_INT64)
            out_integer(&csv->out, value.integer);
        else if (value.kind == MR_FEATURE_FLOAT)
            out_float(&csv->out, value.number);
        else
            put_bytes(csv, value.bytes);
    }
}

static void fail_row(csv *csv, const record_position *position, mr_error *error)
{
    csv->has_failed = true;
    (void)print_record_error(position, error);
}

/* Prints one message for all records of a file that are not Examples. */
static void report_odd(csv *csv)
{
    mr_error error = {0};
    if (csv->odd_count == 0) return;
    if (csv->odd_count == 1)
        (void)mr_fail(&error, MR_INVALID_ARGUMENT, "not an Example; row skipped");
    else
        (void)mr_fail(&error, MR_INVALID_ARGUMENT, "not an Example; row skipped, like %" PRIu64 " more in this file",
                      csv->odd_count - 1);
    fail_row(csv, &csv->odd, &error);
    csv->odd_count = 0;
}

static void count_odd(csv *csv, const record_position *position)
{
    if (csv->odd_count > 0 && csv->odd.path != position->path) report_odd(csv);
    if (csv->odd_count++ == 0) csv->odd = *position;
}

static void write_row(csv *csv, const record_position *position)
{
    mr_error error = {0};
    mr_status status = view_read(&csv->view, csv->options->features, csv->options->is_raw, position->record, &error);
    if (status == MR_OK && csv->view.form == MR_EXAMPLE_NONE) {
        count_odd(csv, position);
        return;
    }
    if (status == MR_OK && csv->view.is_damaged)
        status = mr_fail(&error, MR_DATA_LOSS, "the values of a feature are damaged");
    if (status != MR_OK) {
        fail_row(csv, position, &error);
        return;
    }
    bool is_late = false;
    memset(csv->cells, 0, csv->count * sizeof(entry *));
    for (size_t i = 0; i < csv->view.count; i++) {
        const entry *entry = &csv->view.entries[i];
        if (entry->is_hidden || entry->is_list) continue;
        const column *column = find_column(csv, entry->name);
        if (column) {
            csv->cells[column - csv->columns] = entry;
            continue;
        }
        if (csv->late == 0 && !is_late) (void)text_copy(csv->late_name, sizeof(csv->late_name), entry->name, 50);
        is_late = true;
    }
    csv->late += is_late;
    bool is_first = true;
    for (size_t i = 0; i < csv->count; i++) {
        if (!csv->columns[i].is_taken) continue;
        if (!is_first) out_char(&csv->out, ',');
        is_first = false;
        if (csv->cells[i]) put_cell(csv, csv->cells[i]);
    }
    if (!is_first) out_text(&csv->out, csv->options->is_crlf ? "\r\n" : "\n");
    if (out_write(&csv->out, stdout)) return;
    (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory for its text");
    fail_row(csv, position, &error);
}

/* Writes the header, then the rows of the records kept so far. */
static bool begin_rows(csv *csv)
{
    bool is_good = true;
    for (size_t i = 0; i < csv->kept_count && is_good; i++) is_good = look_at(csv, &csv->kept[i].position);
    is_good = is_good && add_requested(csv);
    csv->cells = is_good ? calloc(csv->count + 1, sizeof(entry *)) : nullptr;
    if (!csv->cells) {
        mr_error error = {0};
        (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "more than %zu columns, or no memory for them", COLUMNS_MAX);
        (void)print_error(&error);
        csv->has_failed = true;
        return false;
    }
    if (!write_header(csv)) return false;
    for (size_t i = 0; i < csv->kept_count; i++) {
        write_row(csv, &csv->kept[i].position);
        free(csv->kept[i].bytes);
    }
    csv->kept_count = 0;
    return true;
}

static bool keep(csv *csv, const record_position *position)
{
    size_t size = position->record.size_bytes;
    kept kept = {.position = *position, .bytes = malloc(size + 1)};
    if (!kept.bytes) {
        mr_error error = {0};
        (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory to keep it");
        fail_row(csv, position, &error);
        return false;
    }
    if (size > 0) memcpy(kept.bytes, position->record.data, size);
    assert(!csv->has_header && csv->kept_count < KEPT_MAX);
    kept.position.record.data = kept.bytes;
    csv->kept[csv->kept_count++] = kept;
    csv->kept_bytes += size;
    return true;
}

static bool csv_one(void *context, const record_position *position)
{
    csv *csv = context;
    if (csv->has_header) {
        write_row(csv, position);
        return true;
    }
    if (!keep(csv, position)) return false;
    return (csv->kept_count < KEPT_MAX && csv->kept_bytes < KEPT_BYTES_MAX) || begin_rows(csv);
}

int csv_run(const options *options)
{
    csv *csv = calloc(1, sizeof(struct csv));
    if (!csv) return print_no_memory();
    csv->options = options;
    csv->out.file = stdout;
    bool is_good = !is_only_names(options->features) || begin_rows(csv);
    int exit_code = is_good ? walk_records(options, csv_one, csv) : 1;
    if (is_good && !csv->has_header && !csv->has_failed) (void)begin_rows(csv);
    report_odd(csv);
    if (csv->late > 0) {
        fflush(stdout);
        fprintf(stderr, "tfrecord-cat: %" PRIu64 " record%s features without a column, such as \"%s\"\n", csv->late,
                csv->late == 1 ? " has" : "s have", csv->late_name);
    }
    if (csv->has_failed) exit_code = 1;
    for (size_t i = 0; i < csv->kept_count; i++) free(csv->kept[i].bytes);
    for (size_t i = 0; i < csv->count; i++) free(csv->columns[i].name);
    free(csv->columns);
    free(csv->cells);
    view_deinit(&csv->view);
    out_deinit(&csv->out);
    free(csv);
    return exit_code;
}
