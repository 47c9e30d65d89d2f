/* The list source: each row of a CSV or JSON Lines file names an image and contains its label or its numeric
 * targets. The other columns become features. The split of an image is a function of its path. */
#include "tfrecord-make/make.h"
#include "tfrecord-make/table.h"

#include "common/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In row.label while listing: no label; a row that cannot be used (reading it again returns the reason). */
static constexpr int32_t LABEL_NONE = -1, LABEL_FAULT = -2;

typedef struct list {
    table table;
    names labels;               /* while listing: row.label is an index into these */
    int32_t path, label, split; /* columns; -1: none */
    int32_t *targets;           /* owned */
    int32_t target_count;
    char *directory; /* owned; the directory of the paths */
} list;

/* ---- Roles of columns ---- */

/* Sets *index, if it is -1, to the column that an option names, or to the first of the usual names that exists. */
static mr_status choose_column(const source *source, const list *list, const char *option, const char *requested,
                               const char *usual, bool is_last, int32_t *index, mr_error *error)
{
    const columns *columns = &list->table.columns;
    if (*index < 0) *index = requested ? columns_find(columns, requested) : columns_find_usual(columns, usual);
    if (*index < 0 && requested && is_last)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no column \"%s\"", option, source->input, requested);
    return MR_OK;
}

static bool wants_targets(const source *source)
{
    return source->in->targets || source->format == FORMAT_REGRESSION;
}

static mr_status add_target(list *list, int32_t column, mr_error *error)
{
    int32_t *grown = realloc(list->targets, ((size_t)list->target_count + 1) * sizeof(int32_t));
    if (!grown) return fail_memory(error, sizeof(int32_t));
    list->targets = grown;
    list->targets[list->target_count++] = column;
    return MR_OK;
}

static mr_status choose_targets(const source *source, list *list, mr_error *error)
{
    const columns *columns = &list->table.columns;
    const char *next = source->in->targets;
    for (mr_string name; list_next(&next, &name);) {
        int32_t index = (int32_t)names_find(&columns->names, name);
        if (index < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--target: %s has no column \"%.*s\"", source->input,
                           (int)name.size_bytes, name.data);
        MR_TRY(add_target(list, index, error));
    }
    int32_t usual = next ? -1 : columns_find_usual(columns, "target,targets,label,value,y");
    if (usual >= 0) MR_TRY(add_target(list, usual, error));
    if (list->target_count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the target column is unknown; specify it with --target A",
                       source->input);
    return MR_OK;
}

static const char usual_paths[] = "path,filename,file_name,filepath,file,image_path,image";

/* In CSV all columns are known before the rows are read; in JSON Lines they are found with the rows. is_last: no
 * more columns can follow */
static mr_status choose_columns(const source *source, list *list, bool is_last, mr_error *error)
{
    const source_options *in = source->in;
    MR_TRY(choose_column(source, list, "--path-column", in->path_column, usual_paths, is_last, &list->path, error));
    if (!wants_targets(source) || in->label_column)
        MR_TRY(choose_column(source, list, "--label-column", in->label_column, "label,class", is_last, &list->label,
                             error));
    MR_TRY(table_choose_split(&list->table, source, is_last, &list->split, error));
    if (!is_last) return MR_OK;
    if (list->path < 0)
        return mr_fail(
            error, MR_INVALID_ARGUMENT,
            "%s: the column of image paths is unknown; specify it with --path-column A, or use --format table "
            "for a file without images",
            source->input);
    if (in->labels && list->label < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "--labels: %s has no column \"label\" or \"class\"; specify it with --label-column",
                       source->input);
    return wants_targets(source) && list->target_count == 0 ? choose_targets(source, list, error) : MR_OK;
}

/* ---- Listing ---- */

typedef struct listing {
    source *source;
    list *list;
} listing;

/* Gets the text of a cell that is not empty; false if there is none. */
static bool has_text(const table *table, table_row *cells, int32_t column, mr_string *text)
{
    return table_text(table, cells, column, text) && text->size_bytes > 0 &&
           !memchr(text->data, '\0', text->size_bytes);
}

/* Sets the row's label and split; LABEL_FAULT if one of them is missing. */
static mr_status set_label(listing *listing, table_row *cells, row *row, mr_error *error)
{
    list *list = listing->list;
    mr_string label;
    uint32_t number = 0;
    if (has_text(&list->table, cells, list->label, &label)) {
        MR_TRY(names_add(&list->labels, label, &number, error));
        row->label = (int32_t)number;
    } else if (list->label >= 0) {
        row->label = LABEL_FAULT;
    }
    if (list->split < 0) return MR_OK;
    MR_TRY(table_split(&list->table, cells, list->split, listing->source, &row->split, error));
    if (row->split == 0) row->label = LABEL_FAULT;
    return MR_OK;
}

static mr_status add_good_row(listing *listing, table_row *cells, row *row, mr_string path_text, mr_error *error)
{
    source *source = listing->source;
    list *list = listing->list;
    char *path = strndup(path_text.data, path_text.size_bytes), *full = nullptr;
    if (!path) return fail_memory(error, path_text.size_bytes);
    filter_match(source, row, path);
    if (!filter_accepts(source, row)) {
        mr_status noted = filter_count_excluded(source, path, error);
        free(path);
        return noted;
    }
    mr_status status = source_note_path(source, path, error);
    if (status == MR_OK) status = set_label(listing, cells, row, error);
    struct stat about;
    if (status == MR_OK && *path != '/' && asprintf(&full, "%s/%s", list->directory, path) < 0) {
        full = nullptr;
        status = fail_memory(error, strlen(path));
    }
    /* A missing file is reported when it is read. */
    if (status == MR_OK && stat(full ? full : path, &about) == 0) {
        file_stamp stamp = file_stamp_from(&about);
        row->size_bytes = stamp.size_bytes;
        row->modified_ns = stamp.modified_ns;
    }
    row->name = path;
    if (status == MR_OK) status = source_add_row(source, row, error);
    free(full);
    free(path);
    return status;
}

static mr_status take_row(void *context, table_row *cells, uint64_t offset, mr_string text, const mr_error *fault,
                          mr_error *error)
{
    listing *listing = context;
    list *list = listing->list;
    mr_string path;
    row row = {.facts_hash = plan_hash(0, text.data, text.size_bytes),
               .size_bytes = text.size_bytes,
               .position = offset,
               .detail = (uint32_t)cells->line_number,
               .label = LABEL_NONE};
    if (!fault && list->table.is_json) MR_TRY(choose_columns(listing->source, list, false, error));
    if (!fault && has_text(&list->table, cells, list->path, &path))
        return add_good_row(listing, cells, &row, path, error);
    char name[32];
    snprintf(name, sizeof(name), "line %" PRIu64, cells->line_number);
    row.name = name;
    row.label = LABEL_FAULT;
    row.is_included = true; /* the row has no path */
    return source_add_row(listing->source, &row, error);
}

/* Replaces the numbers of label names by labels. A row's facts_hash includes its label, which may change when
 * classes are added. */
static mr_status set_labels(source *source, list *list, mr_error *error)
{
    int32_t *labels = nullptr;
    mr_status status = list->label >= 0 ? source_set_classes(source, &list->labels, 0, &labels, error) : MR_OK;
    for (int64_t i = 0; i < source->row_count && status == MR_OK; i++) {
        row *row = &source->rows[i];
        /* In JSON Lines, these are rows before the first one with such a column. */
        if (list->label >= 0 && row->label == LABEL_NONE) row->label = LABEL_FAULT;
        if (list->split >= 0 && row->split == 0) row->label = LABEL_FAULT;
        row->is_faulty = row->label == LABEL_FAULT;
        if (row->label >= 0) row->label = labels[row->label];
        const char *text = row->label >= 0 && source->class_count > 0 ? source->classes[row->label] : "";
        uint64_t label = (uint64_t)row->label;
        row->facts_hash = plan_hash(plan_hash(row->facts_hash, &label, sizeof(label)), text, strlen(text));
    }
    free(labels);
    names_deinit(&list->labels);
    return status;
}

/* ---- Reading ---- */

static mr_status fail_row(const source *source, const row *row, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: line %u: %s", source->input, row->detail, reason);
}

/* Returns the reason why a row could not be listed. */
static mr_status report_fault(const source *source, const list *list, const row *row, mr_error *error)
{
    table_row cells = {0};
    mr_string text;
    mr_status status = table_read(&list->table, row->position, row->detail, &cells, error);
    const char *reason = "no valid split name, such as train";
    if (status == MR_OK && list->label >= 0 && !has_text(&list->table, &cells, list->label, &text)) reason = "no label";
    if (status == MR_OK && !has_text(&list->table, &cells, list->path, &text)) reason = "no image path";
    table_row_deinit(&cells);
    if (status != MR_OK) return status;
    return fail_row(source, row, reason, error);
}

static mr_status read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    if (row->label == LABEL_FAULT) return report_fault(source, source->detail, row, error);
    return source_read_image(source, row, bytes, has_image, error);
}

static mr_status put_targets(const list *list, table_row *cells, const features *to, mr_error *error)
{
    float_list values = {0};
    mr_status status = MR_OK;
    for (int32_t i = 0; i < list->target_count && status == MR_OK; i++)
        status = table_floats(&list->table, cells, list->targets[i], &values, error);
    if (status == MR_OK && list->target_count > 0) put_float_list(to, "image/target", values.values, values.count);
    free(values.values);
    return status;
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    const list *list = source->detail;
    table_row cells = {0};
    put_bytes(to, "image/filename", mr_string_from(row->name));
    if (row->label >= 0) put_int64(to, "image/class/label", row->label);
    if (row->label >= 0 && source->class_count > 0)
        put_bytes(to, "image/class/text", mr_string_from(source->classes[row->label]));
    mr_status status = table_read(&list->table, row->position, row->detail, &cells, error);
    if (status == MR_OK) status = put_targets(list, &cells, to, error);
    if (status == MR_OK) status = table_put_all(&list->table, &cells, to, error);
    table_row_deinit(&cells);
    return status;
}

/* ---- Opening ---- */

static void deinit(source *source)
{
    list *list = source->detail;
    table_deinit(&list->table);
    names_deinit(&list->labels);
    free(list->targets);
    free(list->directory);
    free(list);
}

static mr_status find_directory(const source *source, list *list, mr_error *error)
{
    const char *slash = strrchr(source->input, '/');
    if (source->in->images)
        list->directory = strdup(source->in->images);
    else
        list->directory =
            slash ? strndup(source->input, (size_t)(slash - source->input) + (slash == source->input)) : strdup(".");
    return list->directory ? MR_OK : fail_memory(error, strlen(source->input));
}

static mr_status take_first(void *context, table_row *row, uint64_t offset, mr_string text, const mr_error *fault,
                            mr_error *error)
{
    return fault ? MR_OK : MR_CANCELLED;
}

/* Whether a file of unspecified format is a list: it has a column with a usual name for paths. */
static mr_status is_list(source *source, const list *list, bool *result, mr_error *error)
{
    const source_options *in = source->in;
    *result = true;
    if (in->format != FORMAT_AUTO || in->path_column) return MR_OK;
    table first = {0};
    mr_status status = MR_OK;
    const columns *columns = &list->table.columns;
    if (list->table.is_json) {
        status = table_open(&first, source->input, in, error);
        if (status == MR_OK) status = table_scan(&first, take_first, nullptr, error);
        if (status == MR_CANCELLED) status = MR_OK;
        columns = &first.columns;
    }
    *result = columns_find_usual(columns, usual_paths) >= 0;
    table_deinit(&first);
    return status;
}

/* Marks the columns that are not features of their own, and declares the features. */
static mr_status declare(source *source, list *list, mr_error *error)
{
    column *columns = list->table.columns.items;
    columns[list->path].is_taken = true;
    if (list->label >= 0) columns[list->label].is_taken = true;
    if (list->split >= 0) columns[list->split].is_taken = true;
    for (int32_t i = 0; i < list->target_count; i++) columns[list->targets[i]].is_taken = true;
    MR_TRY(source_declare(source, "image/filename", error));
    if (list->label >= 0) MR_TRY(source_declare(source, "image/class/label", error));
    if (list->label >= 0) MR_TRY(source_declare(source, "image/class/text", error));
    if (list->target_count > 0) MR_TRY(source_declare(source, "image/target", error));
    return table_report(&list->table, source, error);
}

/* Lists the rows of a file that is known to be a list. */
static mr_status open_list(source *source, list *list, mr_error *error)
{
    source->has_images = true;
    MR_TRY(source_set_kind(source, list->table.is_json ? INPUT_LIST_JSON : INPUT_LIST_CSV, error));
    MR_TRY(find_directory(source, list, error));
    source->directory = list->directory;
    if (!list->table.is_json) MR_TRY(choose_columns(source, list, true, error));
    MR_TRY(table_scan(&list->table, take_row, &(listing){source, list}, error));
    /* Without columns there is no valid row: reading each returns its fault. */
    if (list->table.columns.count == 0) return set_labels(source, list, error);
    MR_TRY(choose_columns(source, list, true, error));
    MR_TRY(declare(source, list, error));
    source->facts_hash = columns_hash(&list->table.columns, source->facts_hash);
    for (int32_t i = 0; i < list->target_count; i++)
        source->facts_hash = plan_hash(source->facts_hash, &list->targets[i], sizeof(int32_t));
    return set_labels(source, list, error);
}

mr_status source_list_open(source *source, mr_error *error)
{
    static const source_functions functions = {.image = read_image, .add_features = add_features, .deinit = deinit};
    list *list = calloc(1, sizeof(*list));
    if (!list) return fail_memory(error, sizeof(*list));
    source->detail = list;
    source->functions = &functions;
    list->path = list->label = list->split = -1;
    MR_TRY(table_open(&list->table, source->input, source->in, error));
    bool has_paths;
    MR_TRY(is_list(source, list, &has_paths, error));
    if (has_paths) return open_list(source, list, error);
    deinit(source);
    source->functions = nullptr;
    source->format = FORMAT_TABLE;
    return source_table_open(source, error);
}
