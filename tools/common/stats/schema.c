/* See schema.h. */
#include "common/stats/schema.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t TABLE_SIZE = 1 << 15;

mr_feature_kind schema_column_kind(const schema_column *column)
{
    mr_feature_kind found = MR_FEATURE_NONE;
    for (int kind = MR_FEATURE_BYTES; kind <= (int)MR_FEATURE_INT64; kind++) {
        if (column->kinds[kind] == 0) continue;
        if (found != MR_FEATURE_NONE) return MR_FEATURE_NONE;
        found = (mr_feature_kind)kind;
    }
    return found;
}

bool schema_column_is_fixed(const schema_column *column)
{
    return schema_column_kind(column) != MR_FEATURE_NONE && column->values.least == column->values.most &&
           column->values.most > 0 && !column->has_empty;
}

/* ---- Gathering ---- */

static void widen(bounds *bounds, uint64_t value)
{
    if (value < bounds->least) bounds->least = value;
    if (value > bounds->most) bounds->most = value;
}

/* Null: too many columns, or no memory. */
static schema_column *add_column(struct schema *schema, mr_string name, bool is_list, uint32_t *slot)
{
    schema->is_full = schema->is_full || schema->count == SCHEMA_COLUMNS_MAX ||
                      name.size_bytes > SCHEMA_NAMES_SIZE_MAX - schema->names_bytes;
    if (schema->is_full) return nullptr;
    if (schema->count == schema->capacity) {
        size_t capacity = schema->capacity ? 2 * schema->capacity : 64;
        schema_column *grown = reallocarray(schema->columns, capacity, sizeof(schema_column));
        if (!grown) return nullptr;
        schema->columns = grown;
        schema->capacity = capacity;
    }
    char *copy = malloc(name.size_bytes + 1);
    if (!copy) return nullptr;
    if (name.size_bytes > 0) memcpy(copy, name.data, name.size_bytes);
    copy[name.size_bytes] = '\0';
    schema->names_bytes += name.size_bytes;
    assert(schema->count < schema->capacity && schema->count < SCHEMA_COLUMNS_MAX && *slot == 0);
    schema_column *added = &schema->columns[schema->count++];
    *added = (schema_column){
        .name = {copy, name.size_bytes}, .is_list = is_list, .values = {UINT64_MAX, 0}, .steps = {UINT64_MAX, 0}};
    *slot = (uint32_t)schema->count;
    return added;
}

static schema_column *find_column(struct schema *schema, mr_string name, bool is_list)
{
    uint64_t hash = 0xcbf29ce484222325 + is_list;
    for (size_t i = 0; i < name.size_bytes; i++) hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3;
    for (size_t at = (size_t)(hash ^ hash >> 29);; at++) {
        uint32_t *slot = &schema->table[at & (TABLE_SIZE - 1)];
        if (*slot == 0) return add_column(schema, name, is_list, slot);
        schema_column *column = &schema->columns[*slot - 1];
        if (column->is_list == is_list && mr_string_equal(column->name, name)) return column;
    }
}

static void add_feature(schema_column *column, const entry *entry)
{
    column->kinds[entry->feature.kind]++;
    column->has_empty |= entry->feature.kind == MR_FEATURE_NONE;
    if (entry->feature.kind == MR_FEATURE_NONE) return;
    column->present++;
    widen(&column->values, entry->count);
}

static void add_list(schema_column *column, const entry *entry)
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

mr_status schema_add(struct schema *schema, mr_string record, mr_error *error)
{
    view *view = &schema->view;
    MR_TRY(view_read(view, schema->features, schema->is_raw, record, error));
    if (view->form == MR_EXAMPLE_NONE) return fail_form(record, error);
    if (view->is_damaged) return mr_fail(error, MR_DATA_LOSS, "the values of a feature are damaged");
    if (view->form == MR_EXAMPLE_SEQUENCE)
        schema->sequences++;
    else
        schema->examples++;
    for (size_t i = 0; i < view->count; i++) {
        const entry *entry = &view->entries[i];
        if (entry->is_hidden) continue;
        schema_column *column = find_column(schema, entry->name, entry->is_list);
        if (!column && !schema->is_full) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        if (!column) continue;
        if (entry->is_list)
            add_list(column, entry);
        else
            add_feature(column, entry);
    }
    return MR_OK;
}

/* ---- A schema ---- */

schema *schema_new(const char *features, bool is_raw)
{
    schema *created = calloc(1, sizeof(*created));
    uint32_t *table = created ? calloc(TABLE_SIZE, sizeof(uint32_t)) : nullptr;
    if (!table) {
        free(created);
        return nullptr;
    }
    *created = (schema){.features = features, .is_raw = is_raw, .table = table};
    return created;
}

static int compare_columns(const void *a, const void *b)
{
    const schema_column *x = a, *y = b;
    if (x->is_list != y->is_list) return x->is_list - y->is_list;
    size_t shorter = x->name.size_bytes < y->name.size_bytes ? x->name.size_bytes : y->name.size_bytes;
    int order = memcmp(x->name.data, y->name.data, shorter);
    return order ? order : (x->name.size_bytes > y->name.size_bytes) - (x->name.size_bytes < y->name.size_bytes);
}

void schema_sort(struct schema *schema)
{
    if (schema->count > 0) qsort(schema->columns, schema->count, sizeof(schema_column), compare_columns);
}

void schema_free(struct schema *schema)
{
    if (!schema) return;
    for (size_t i = 0; i < schema->count; i++) free((char *)schema->columns[i].name.data);
    free(schema->columns);
    free(schema->table);
    view_deinit(&schema->view);
    free(schema);
}
