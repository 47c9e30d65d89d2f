/* The table source: each row of a CSV or JSON Lines file is a record of its columns. A hash of its contents chooses
 * the split of a row, so equal rows are always in the same split, and rows may be added and moved. */
#include "tfrecord-make/make.h"
#include "tfrecord-make/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In row.label: a row without a split, although other rows name one. */
static constexpr int32_t LABEL_NONE = -1, LABEL_FAULT = -2;

typedef struct rows {
    table table;
    int32_t split; /* the column of splits; -1: none */
} rows;

typedef struct listing {
    source *source;
    rows *rows;
} listing;

/* A table whose cells name images may be meant as a list: adds a warning. */
static mr_status look_for_images(listing *listing, table_row *cells, mr_error *error)
{
    const columns *columns = &listing->rows->table.columns;
    for (int32_t i = 0; i < columns->count; i++) {
        mr_string text;
        char name[64];
        if (!table_text(&listing->rows->table, cells, i, &text) || text.size_bytes == 0) continue;
        size_t size = text.size_bytes < sizeof(name) - 1 ? text.size_bytes : sizeof(name) - 1;
        memcpy(name, text.data + text.size_bytes - size, size);
        name[size] = '\0';
        if (!source_is_image_name(name)) continue;
        return source_remark(listing->source, error,
                             "warning: %s contains names of images and is stored as text; --path-column %s stores the "
                             "images",
                             columns->items[i].name, columns->items[i].name);
    }
    return MR_OK;
}

static mr_status take_row(void *context, table_row *cells, uint64_t offset, mr_string text, const mr_error *fault,
                          mr_error *error)
{
    listing *listing = context;
    source *source = listing->source;
    char name[32];
    snprintf(name, sizeof(name), "line %" PRIu64, cells->line_number);
    uint64_t hash = plan_hash(0, text.data, text.size_bytes);
    row row = {.name = name,
               .hash = hash,
               .facts_hash = hash,
               .size_bytes = text.size_bytes,
               .position = offset,
               .detail = (uint32_t)cells->line_number,
               .label = LABEL_NONE};
    if (!fault) {
        if (source->row_count == 0 && source->in->format == FORMAT_AUTO) MR_TRY(look_for_images(listing, cells, error));
        MR_TRY(table_choose_split(&listing->rows->table, source, false, &listing->rows->split, error));
        MR_TRY(table_split(&listing->rows->table, cells, listing->rows->split, source, &row.split, error));
    }
    return source_add_row(source, &row, error);
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    const rows *rows = source->detail;
    table_row cells = {0};
    mr_status status = table_read(&rows->table, row->position, row->detail, &cells, error);
    if (status == MR_OK && row->label == LABEL_FAULT)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: line %u: no split name in the column %s", source->input,
                         row->detail, rows->table.columns.items[rows->split].name);
    if (status == MR_OK) status = table_put_all(&rows->table, &cells, to, error);
    table_row_deinit(&cells);
    return status;
}

static void deinit(source *source)
{
    rows *rows = source->detail;
    table_deinit(&rows->table);
    free(rows);
}

mr_status source_table_open(source *source, mr_error *error)
{
    static const source_functions functions = {.add_features = add_features, .deinit = deinit};
    rows *rows = calloc(1, sizeof(*rows));
    if (!rows) return fail_memory(error, sizeof(*rows));
    rows->split = -1;
    source->detail = rows;
    source->functions = &functions;
    source->row_noun = "row";
    source->names_are_positions = true;
    table *table = &rows->table;
    MR_TRY(table_open(table, source->input, source->in, error));
    MR_TRY(source_set_kind(source, table->is_json ? INPUT_TABLE_JSON : INPUT_TABLE_CSV, error));
    MR_TRY(table_scan(table, take_row, &(listing){source, rows}, error));
    MR_TRY(table_choose_split(table, source, true, &rows->split, error));
    if (rows->split >= 0) table->columns.items[rows->split].is_taken = true;
    for (int64_t i = 0; i < source->row_count && rows->split >= 0; i++)
        if (source->rows[i].split == 0) source->rows[i].label = LABEL_FAULT;
    source->facts_hash = columns_hash(&table->columns, source->facts_hash);
    return table_report(table, source, error);
}
