/* The features of many records: the kinds of each, its numbers of values, and the number of records that have it. */
#include "tfrecord-cat/schema.h"

#include "common/progress.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limits memory for a file in which every record has other names. */
static constexpr size_t COLUMNS_MAX = 10'000;
static constexpr size_t NAMES_BYTES_MAX = 16 << 20;
static constexpr size_t TABLE_SIZE = 1 << 15;

typedef struct gathering {
    const options *options;
    schema schema;
    view view;
    size_t capacity, names_bytes;
    uint32_t *table; /* columns by the hash of their name, plus one */
    bool is_full, has_failed;
} gathering;

mr_feature_kind column_kind(const column *column)
{
    mr_feature_kind found = MR_FEATURE_NONE;
    for (int kind = MR_FEATURE_BYTES; kind <= (int)MR_FEATURE_INT64; kind++) {
        if (column->kinds[kind] == 0) continue;
        if (found != MR_FEATURE_NONE) return MR_FEATURE_NONE;
        found = (mr_feature_kind)kind;
    }
    return found;
}

bool column_is_fixed(const column *column)
{
    return column_kind(column) != MR_FEATURE_NONE && column->values.least == column->values.most &&
           column->values.most > 0 && !column->has_empty;
}

/* ---- Gathering ---- */

static void widen(bounds *bounds, uint64_t value)
{
    if (value < bounds->least) bounds->least = value;
    if (value > bounds->most) bounds->most = value;
}

/* Null: too many columns, or no memory. */
static column *add_column(gathering *gathering, mr_string name, bool is_list, uint32_t *slot)
{
    schema *schema = &gathering->schema;
    gathering->is_full = gathering->is_full || schema->count == COLUMNS_MAX ||
                         name.size_bytes > NAMES_BYTES_MAX - gathering->names_bytes;
    if (gathering->is_full) return nullptr;
    if (schema->count == gathering->capacity) {
        size_t capacity = gathering->capacity ? 2 * gathering->capacity : 64;
        column *grown = reallocarray(schema->columns, capacity, sizeof(column));
        if (!grown) return nullptr;
        schema->columns = grown;
        gathering->capacity = capacity;
    }
    char *copy = malloc(name.size_bytes + 1);
    if (!copy) return nullptr;
    if (name.size_bytes > 0) memcpy(copy, name.data, name.size_bytes);
    copy[name.size_bytes] = '\0';
    gathering->names_bytes += name.size_bytes;
    assert(schema->count < gathering->capacity && schema->count < COLUMNS_MAX && *slot == 0);
    column *made = &schema->columns[schema->count++];
    *made = (column){
        .name = {copy, name.size_bytes}, .is_list = is_list, .values = {UINT64_MAX, 0}, .steps = {UINT64_MAX, 0}};
    *slot = (uint32_t)schema->count;
    return made;
}

static column *find_column(gathering *gathering, mr_string name, bool is_list)
{
    uint64_t hash = 0xcbf29ce484222325 + is_list;
    for (size_t i = 0; i < name.size_bytes; i++) hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3;
    for (size_t at = (size_t)(hash ^ hash >> 29);; at++) {
        uint32_t *slot = &gathering->table[at & (TABLE_SIZE - 1)];
        if (*slot == 0) return add_column(gathering, name, is_list, slot);
        column *column = &gathering->schema.columns[*slot - 1];
        if (column->is_list == is_list && mr_string_equal(column->name, name)) return column;
    }
}

static void add_feature(column *column, const entry *entry)
{
    column->kinds[entry->feature.kind]++;
    column->has_empty |= entry->feature.kind == MR_FEATURE_NONE;
    if (entry->feature.kind == MR_FEATURE_NONE) return;
    column->present++;
    widen(&column->values, entry->count);
}

static void add_list(column *column, const entry *entry)
{
    mr_feature_list_view steps = entry->list;
    mr_feature_view step;
    size_t count;
    column->present++;
    widen(&column->steps, entry->count);
    while (mr_feature_list_next(&steps, &step, nullptr) == MR_OK && mr_feature_count(&step, &count, nullptr) == MR_OK) {
        column->kinds[step.kind]++;
        widen(&column->values, count);
    }
}

/* Reports why a record is not an Example, as far as possible. */
static mr_status fail_form(mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK) continue;
    if (status != MR_OUT_OF_RANGE) return status;
    return mr_fail(error, MR_DATA_LOSS, "neither an Example nor a SequenceExample");
}

static mr_status add_record(gathering *gathering, mr_string record, mr_error *error)
{
    view *view = &gathering->view;
    MR_TRY(view_read(view, gathering->options->features, gathering->options->is_raw, record, error));
    if (view->form == MR_EXAMPLE_NONE) return fail_form(record, error);
    if (view->is_damaged) return mr_fail(error, MR_DATA_LOSS, "the values of a feature are damaged");
    if (view->form == MR_EXAMPLE_SEQUENCE)
        gathering->schema.sequences++;
    else
        gathering->schema.examples++;
    for (size_t i = 0; i < view->count; i++) {
        const entry *entry = &view->entries[i];
        if (entry->is_hidden) continue;
        column *column = find_column(gathering, entry->name, entry->is_list);
        if (!column && !gathering->is_full) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        if (!column) continue;
        if (entry->is_list)
            add_list(column, entry);
        else
            add_feature(column, entry);
    }
    return MR_OK;
}

static bool gather(void *context, const record_position *position)
{
    gathering *gathering = context;
    mr_error error = {0};
    if (add_record(gathering, position->record, &error) == MR_OK) return true;
    (void)complain_of(position, &error);
    gathering->has_failed = true;
    return error.status != MR_RESOURCE_EXHAUSTED;
}

/* ---- The table ---- */

static int compare_columns(const void *a, const void *b)
{
    const column *x = a, *y = b;
    if (x->is_list != y->is_list) return x->is_list - y->is_list;
    size_t shorter = x->name.size_bytes < y->name.size_bytes ? x->name.size_bytes : y->name.size_bytes;
    int order = memcmp(x->name.data, y->name.data, shorter);
    return order ? order : (x->name.size_bytes > y->name.size_bytes) - (x->name.size_bytes < y->name.size_bytes);
}

static const char *type_name(const column *column)
{
    static const char *const names[] = {"none", "bytes", "float", "int64"};
    mr_feature_kind kind = column_kind(column);
    bool is_mixed = kind == MR_FEATURE_NONE && column->kinds[1] + column->kinds[2] + column->kinds[3] > 0;
    return is_mixed ? "mixed" : names[kind];
}

static void print_bounds(bounds bounds)
{
    char text[48] = "-";
    if (bounds.least == bounds.most)
        snprintf(text, sizeof(text), "%" PRIu64, bounds.most);
    else if (bounds.least < bounds.most)
        snprintf(text, sizeof(text), "%" PRIu64 " to %" PRIu64, bounds.least, bounds.most);
    printf("  %-12s", text);
}

static void print_presence(uint64_t present, uint64_t records)
{
    double part = 100.0 * (double)present / (double)records;
    if (present == records)
        printf("  all\n");
    else if (part >= 99.95)
        printf("  all but %" PRIu64 "\n", records - present);
    else
        printf("  %.1f %%\n", part);
}

static void print_table(const schema *schema, bool is_list)
{
    int columns = progress_columns(STDOUT_FILENO, 100), fixed = is_list ? 46 : 32, name = 7;
    int most = columns - fixed > 12 ? columns - fixed : 12;
    uint64_t records = schema_records(schema);
    bool is_first = true;
    for (size_t i = 0; i < schema->count; i++) {
        int used = text_columns(schema->columns[i].name);
        if (schema->columns[i].is_list == is_list && used > name) name = used < most ? used : most;
    }
    if (is_list && name < 12) name = 12;
    for (size_t i = 0; i < schema->count; i++) {
        const column *column = &schema->columns[i];
        if (column->is_list != is_list) continue;
        if (is_first)
            printf("\n%-*s  %-5s%s  %-12s  %s\n", name,
                   is_list             ? "feature list"
                   : schema->sequences ? "context"
                                       : "feature",
                   "type", is_list ? "  steps       " : "", is_list ? "values/step" : "values", "present");
        is_first = false;
        int used = text_print(stdout, column->name, name);
        printf("%*s  %-5s", name - used, "", type_name(column));
        if (is_list) print_bounds(column->steps);
        print_bounds(column->values);
        print_presence(column->present, records);
    }
}

static void print_schema(const gathering *gathering)
{
    const schema *schema = &gathering->schema;
    uint64_t records = schema_records(schema);
    printf("%" PRIu64 " record%s", records, records == 1 ? "" : "s");
    if (schema->sequences > 0 && schema->examples > 0)
        printf(": %" PRIu64 " SequenceExamples, the others Examples\n", schema->sequences);
    else
        printf(schema->sequences == 0   ? "\n"
               : schema->sequences == 1 ? ", a SequenceExample\n"
                                        : ", SequenceExamples\n");
    print_table(schema, false);
    print_table(schema, true);
    if (gathering->is_full)
        printf("\nThere are more names: only the first %zu (%zu MiB) are distinguished.\n", schema->count,
               NAMES_BYTES_MAX >> 20);
    if (schema->count == 0) return;
    printf("\n---- C ----\n\n");
    schema_print_c(schema);
    printf("\n---- Python ----\n\n");
    schema_print_python(schema);
}

int schema_run(const options *options)
{
    gathering gathering = {.options = options, .table = calloc(TABLE_SIZE, sizeof(uint32_t))};
    schema *schema = &gathering.schema;
    if (!gathering.table) {
        mr_error error = {0};
        (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory");
        return complain(&error);
    }
    int exit_code = walk_records(options, gather, &gathering);
    if (gathering.has_failed) exit_code = 1;
    if (schema->count > 0) qsort(schema->columns, schema->count, sizeof(column), compare_columns);
    if (schema_records(schema) > 0 || exit_code == 0) {
        if (options->spec == SPEC_BOTH)
            print_schema(&gathering);
        else if (options->spec == SPEC_C)
            schema_print_c(schema);
        else
            schema_print_python(schema);
    }
    for (size_t i = 0; i < schema->count; i++) free((char *)schema->columns[i].name.data);
    free(schema->columns);
    free(gathering.table);
    view_deinit(&gathering.view);
    return exit_code;
}
