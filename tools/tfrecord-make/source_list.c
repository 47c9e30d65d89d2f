/* Lists: each row of a CSV or JSON Lines file names a picture, and says its label or the numbers to learn from it. The
 * other columns become features. A picture goes to its part by its path. */
#include "tools/tfrecord-make/make.h"
#include "tools/tfrecord-make/table.h"

#include "records/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In row.label while listing: no label, and a row that cannot be used (reading it again says why). */
static constexpr int32_t LABEL_NONE = -1, LABEL_FAULT = -2;

typedef struct list {
    table table;
    names labels; /* while listing: row.label is a number of these */
    int32_t path, label;
    int32_t *targets; /* owned */
    int32_t target_count;
    bool has_columns; /* path and label are known */
    char *folder;     /* owned; of the paths */
} list;

/* ---- Which column is what ---- */

/* The column that an option names, or the first of the usual names that is there; -1. */
static mr_status choose_column(const source *source, const list *list, const char *option, const char *asked,
                               const char *usual, int32_t *index, mr_error *error)
{
    mr_string name;
    *index = asked ? columns_find(&list->table.columns, asked) : -1;
    if (asked && *index < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no column \"%s\"", option, source->input, asked);
    while (*index < 0 && list_next(&usual, &name)) *index = (int32_t)names_find(&list->table.columns.names, name);
    return MR_OK;
}

static mr_status choose_targets(const source *source, list *list, mr_error *error)
{
    if (list->target_count > 0) return MR_OK;
    static const char usual[] = "target,targets,label,value,y";
    const char *next = source->in->targets ? source->in->targets : usual;
    bool is_asked = source->in->targets != nullptr;
    if (!is_asked && source->format != FORMAT_REGRESSION) return MR_OK;
    for (mr_string name; list_next(&next, &name);) {
        int32_t index = (int32_t)names_find(&list->table.columns.names, name);
        if (index < 0 && is_asked)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--target: %s has no column \"%.*s\"", source->input,
                           (int)name.size_bytes, name.data);
        if (index < 0) continue;
        int32_t *grown = realloc(list->targets, ((size_t)list->target_count + 1) * sizeof(int32_t));
        if (!grown) return mr_fail_memory(error, sizeof(int32_t));
        list->targets = grown;
        list->targets[list->target_count++] = index;
        if (!is_asked) break;
    }
    if (list->target_count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: which column holds the numbers to learn? --target A says it",
                       source->input);
    return MR_OK;
}

static const char usual_paths[] = "path,filename,file_name,filepath,file,image_path,image";

/* Of CSV all columns are known before the rows; of JSON Lines paths and targets are those of the first good row. */
static mr_status choose_columns(const source *source, list *list, mr_error *error)
{
    MR_TRY(choose_column(source, list, "--path-column", source->in->path_column, usual_paths, &list->path, error));
    MR_TRY(choose_targets(source, list, error));
    if (list->target_count == 0 || source->in->label_column)
        MR_TRY(choose_column(source, list, "--label-column", source->in->label_column, "label,class", &list->label,
                             error));
    if (list->path < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: which column holds the paths of the pictures? --path-column A says it, and --format table "
                       "that there are none",
                       source->input);
    list->has_columns = true;
    return MR_OK;
}

/* ---- Listing ---- */

typedef struct listing {
    source *source;
    list *list;
} listing;

static mr_status add_good_row(listing *listing, table_row *cells, row *row, mr_string path_text, mr_error *error)
{
    source *source = listing->source;
    list *list = listing->list;
    mr_string label;
    char *path = strndup(path_text.data, path_text.size_bytes), *full = nullptr;
    if (!path) return mr_fail_memory(error, path_text.size_bytes);
    mr_status status = source_note_path(source, path, error);
    if (status == MR_OK && table_text(&list->table, cells, list->label, &label)) {
        uint32_t number = 0;
        if (label.size_bytes == 0 || memchr(label.data, '\0', label.size_bytes))
            row->label = LABEL_FAULT;
        else if ((status = names_add(&list->labels, label, &number, error)) == MR_OK)
            row->label = (int32_t)number;
    } else if (list->label >= 0) {
        row->label = LABEL_FAULT;
    }
    struct stat about;
    if (status == MR_OK && *path != '/' && asprintf(&full, "%s/%s", list->folder, path) < 0) {
        full = nullptr;
        status = mr_fail_memory(error, strlen(path));
    }
    /* A file that is not there says so when it is read. */
    if (status == MR_OK && stat(full ? full : path, &about) == 0) {
        mr_file_stamp stamp = mr_file_stamp_from(&about);
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
               .place = offset,
               .detail = (uint32_t)cells->line_number,
               .label = LABEL_NONE};
    /* In JSON Lines a label may come with a later row. */
    if (!fault && (!list->has_columns || (list->table.is_json && list->label < 0)))
        MR_TRY(choose_columns(listing->source, list, error));
    if (!fault && table_text(&list->table, cells, list->path, &path) && path.size_bytes > 0 &&
        !memchr(path.data, '\0', path.size_bytes))
        return add_good_row(listing, cells, &row, path, error);
    char name[32];
    snprintf(name, sizeof(name), "line %" PRIu64, cells->line_number);
    row.name = name;
    row.label = LABEL_FAULT;
    return source_add_row(listing->source, &row, error);
}

/* Numbers of label names become labels; a row's facts hold its label, which may change when classes come. */
static mr_status set_labels(source *source, list *list, mr_error *error)
{
    int32_t *labels = nullptr;
    mr_status status = list->label >= 0 ? source_set_classes(source, &list->labels, 0, &labels, error) : MR_OK;
    for (int64_t i = 0; i < source->row_count && status == MR_OK; i++) {
        row *row = &source->rows[i];
        if (list->label >= 0 && row->label == LABEL_NONE) row->label = LABEL_FAULT;
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

/* Says what is wrong with a row that could not be listed. */
static mr_status tell_fault(const source *source, const list *list, const row *row, mr_error *error)
{
    table_row cells = {0};
    mr_string path;
    mr_status status = table_read(&list->table, row->place, row->detail, &cells, error);
    bool has_path = status == MR_OK && table_text(&list->table, &cells, list->path, &path) && path.size_bytes > 0 &&
                    !memchr(path.data, '\0', path.size_bytes);
    table_row_deinit(&cells);
    if (status != MR_OK) return status;
    return fail_row(source, row, has_path ? "no label" : "no path of a picture", error);
}

static mr_status read_picture(const source *source, const row *row, source_bytes *bytes, bool *has_picture,
                              mr_error *error)
{
    if (row->label == LABEL_FAULT) return tell_fault(source, source->detail, row, error);
    return source_read_picture(source, row, bytes, has_picture, error);
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

static mr_status add_features(const source *source, const row *row, const picture_facts *facts, const features *to,
                              mr_error *error)
{
    const list *list = source->detail;
    table_row cells = {0};
    put_bytes(to, "image/filename", mr_string_from(row->name));
    if (row->label >= 0) put_int64(to, "image/class/label", row->label);
    if (row->label >= 0 && source->class_count > 0)
        put_bytes(to, "image/class/text", mr_string_from(source->classes[row->label]));
    mr_status status = table_read(&list->table, row->place, row->detail, &cells, error);
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
    free(list->folder);
    free(list);
}

static mr_status find_folder(const source *source, list *list, mr_error *error)
{
    const char *slash = strrchr(source->input, '/');
    if (source->in->images)
        list->folder = strdup(source->in->images);
    else
        list->folder =
            slash ? strndup(source->input, (size_t)(slash - source->input) + (slash == source->input)) : strdup(".");
    return list->folder ? MR_OK : mr_fail_memory(error, strlen(source->input));
}

static mr_status take_first(void *context, table_row *row, uint64_t offset, mr_string text, const mr_error *fault,
                            mr_error *error)
{
    return fault ? MR_OK : MR_CANCELLED;
}

/* Whether a file that nobody said more about is a list: it has a column with a usual name of paths. */
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
    const char *next = usual_paths;
    *result = false;
    for (mr_string name; list_next(&next, &name);) *result |= names_find(&columns->names, name) >= 0;
    table_deinit(&first);
    return status;
}

mr_status source_list_open(source *source, mr_error *error)
{
    static const source_functions functions = {.picture = read_picture, .add_features = add_features, .deinit = deinit};
    list *list = calloc(1, sizeof(*list));
    if (!list) return mr_fail_memory(error, sizeof(*list));
    source->detail = list;
    source->functions = &functions;
    list->label = -1;
    MR_TRY(table_open(&list->table, source->input, source->in, error));
    bool has_paths;
    MR_TRY(is_list(source, list, &has_paths, error));
    if (!has_paths) {
        deinit(source);
        source->functions = nullptr;
        source->format = FORMAT_TABLE;
        return source_table_open(source, error);
    }
    source->has_pictures = true;
    MR_TRY(find_folder(source, list, error));
    source->folder = list->folder;
    if (!list->table.is_json) MR_TRY(choose_columns(source, list, error));
    MR_TRY(table_scan(&list->table, take_row, &(listing){source, list}, error));
    if (list->has_columns) {
        columns *columns = &list->table.columns;
        columns->items[list->path].is_taken = true;
        if (list->label >= 0) columns->items[list->label].is_taken = true;
        for (int32_t i = 0; i < list->target_count; i++) columns->items[list->targets[i]].is_taken = true;
    }
    source->facts_hash = columns_hash(&list->table.columns, source->facts_hash);
    for (int32_t i = 0; i < list->target_count; i++)
        source->facts_hash = plan_hash(source->facts_hash, &list->targets[i], sizeof(int32_t));
    for (int32_t i = 0; i < list->table.nameless; i++)
        MR_TRY(source_note(source, "columns without a name left out", "a cell of the first line is empty", error));
    return set_labels(source, list, error);
}
