/* The summary's remarks about columns: see columns.h. */
#include "tfrecord-make/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_status columns_declare(const columns *columns, source *source, const char *prefix, mr_error *error)
{
    for (int32_t i = 0; i < columns->count; i++) {
        char *key = nullptr;
        if (columns->items[i].is_taken) continue;
        if (asprintf(&key, "%s%s", prefix, columns->items[i].name) < 0) return fail_memory(error, strlen(prefix));
        mr_status status = source_declare(source, key, error);
        free(key);
        MR_TRY(status);
    }
    return MR_OK;
}

/* Prints the columns of a type, such as "age, height int64"; nothing if there are none. */
static void list_columns(const columns *columns, column_type type, FILE *to, bool *is_first)
{
    static constexpr int32_t NAMES_MAX = 8;
    int32_t count = 0;
    for (int32_t i = 0; i < columns->count; i++) {
        const column *column = &columns->items[i];
        if (column->is_taken || column->type != type) continue;
        if (count == 0 && !*is_first) fputs("; ", to);
        if (count < NAMES_MAX) fprintf(to, "%s%s", count ? ", " : "", column->name);
        count++;
    }
    if (count == 0) return;
    *is_first = false;
    if (count > NAMES_MAX) fprintf(to, " and %d more", count - NAMES_MAX);
    fprintf(to, " %s", type == COLUMN_NONE ? "without a value" : column_type_name(type));
}

/* A column of numbers with a few other cells is more often a mistake than text. */
static mr_status report_odd(const column *column, source *source, column_position where, mr_error *error)
{
    char position[64];
    bool is_odd = column->type == COLUMN_BYTES && !column->is_given && column->others > 0;
    if (!is_odd || column->others >= column->numbers) return MR_OK;
    return source_remark(
        source, error,
        "warning: %s is bytes, because %" PRId64 " of its %" PRId64 " values %s not a number; the first is "
        "%s%s%s in %s. --types %s=float makes such rows an error",
        column->name, column->others, column->others + column->numbers, column->others == 1 ? "is" : "are",
        *column->odd_text ? "'" : "", column->odd_text, *column->odd_text ? "'" : "a text",
        where(source, column->odd_row, position, sizeof(position)), column->name);
}

mr_status columns_report(const columns *columns, source *source, const char *what, column_position where,
                         mr_error *error)
{
    char *text = nullptr;
    size_t size = 0;
    bool is_first = true;
    FILE *to = open_memstream(&text, &size);
    if (!to) return fail_memory(error, 1);
    for (int type = COLUMN_INT64; type <= COLUMN_BYTES; type++) list_columns(columns, (column_type)type, to, &is_first);
    list_columns(columns, COLUMN_NONE, to, &is_first);
    bool is_good = !ferror(to);
    is_good = fclose(to) == 0 && is_good && text;
    mr_status status = is_good ? MR_OK : fail_memory(error, size);
    if (status == MR_OK && !is_first) status = source_remark(source, error, "%s: %s", what, text);
    free(text);
    for (int32_t i = 0; i < columns->count && status == MR_OK; i++)
        status = report_odd(&columns->items[i], source, where, error);
    return status;
}
