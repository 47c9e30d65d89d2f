/* Tables: each row of a CSV or JSON Lines file is a record of its columns. A row goes to its part by what is in it: so equal
 * rows are never on both sides, and rows may be added and moved. */
#include "tools/tfrecord-make/make.h"
#include "tools/tfrecord-make/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_status take_row(void *context, table_row *row, uint64_t offset, mr_string text, const mr_error *fault,
                          mr_error *error)
{
    source *source = context;
    char name[32];
    snprintf(name, sizeof(name), "line %" PRIu64, row->line_number);
    uint64_t hash = plan_hash(0, text.data, text.size_bytes);
    return source_add_row(source,
                          &(struct row){.name = name,
                                        .hash = hash,
                                        .facts_hash = hash,
                                        .size_bytes = text.size_bytes,
                                        .place = offset,
                                        .detail = (uint32_t)row->line_number,
                                        .label = -1},
                          error);
}

static mr_status add_features(const source *source, const row *row, const picture_facts *facts, const features *to,
                              mr_error *error)
{
    const table *table = source->detail;
    table_row cells = {0};
    mr_status status = table_read(table, row->place, row->detail, &cells, error);
    if (status == MR_OK) status = table_put_all(table, &cells, to, error);
    table_row_deinit(&cells);
    return status;
}

static void deinit(source *source)
{
    table_deinit(source->detail);
    free(source->detail);
}

mr_status source_table_open(source *source, mr_error *error)
{
    static const source_functions functions = {.add_features = add_features, .deinit = deinit};
    table *table = calloc(1, sizeof(*table));
    if (!table) return mr_fail_memory(error, sizeof(*table));
    source->detail = table;
    source->functions = &functions;
    source->row_noun = "row";
    source->names_are_places = true;
    MR_TRY(table_open(table, source->input, source->in, error));
    MR_TRY(table_scan(table, take_row, source, error));
    source->facts_hash = columns_hash(&table->columns, source->facts_hash);
    for (int32_t i = 0; i < table->nameless; i++)
        MR_TRY(source_note(source, "columns without a name left out", "a cell of the first line is empty", error));
    return MR_OK;
}
