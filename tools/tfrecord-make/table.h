/* Tables: rows of a CSV or JSON Lines file.
 *
 * The complete file is read once to detect the columns and their types. After that, any thread can read any row again
 * at its offset. Memory: the columns, and one row. */
#ifndef MR_TOOLS_TFRECORD_MAKE_TABLE_H
#define MR_TOOLS_TFRECORD_MAKE_TABLE_H

#include "tfrecord-make/columns.h"

#include <millrace/formats.h>

typedef struct table {
    mr_input_file *file; /* owned */
    bool is_json;
    char separator;
    columns columns;
    int32_t *cells; /* CSV: the column of each cell; -1: a column without a name. Owned */
    int32_t cell_count, nameless;
    uint64_t first; /* offset of the first row of values */
} table;

/* One row, in memory that is reused between rows; {0} is empty. */
typedef struct table_row {
    mr_csv_row csv;
    const mr_csv_row *cells; /* borrowed: csv, or the reader's row */
    source_bytes line;
    json_t *object;        /* owned */
    const json_t **values; /* JSON Lines: by column; owned */
    int32_t value_capacity;
    char text[64]; /* text of a number */
    uint64_t line_number;
} table_row;

/* Opens a file and reads the names of its columns. Columns of JSON Lines are added as rows are read. */
mr_status table_open(table *table, const char *path, const source_options *in, mr_error *error);

/* Reads all rows in order and infers the columns' types. A row with a fault (too few cells, invalid JSON) is also
 * passed to take, so that it can be counted and reported like a damaged image. CSV whose rows cannot be separated ends
 * the scan.
 * fault  null for a good row
 * text   of the row, as stored in the file */
typedef mr_status (*table_take)(void *context, table_row *row, uint64_t offset, mr_string text, const mr_error *fault,
                                mr_error *error);
mr_status table_scan(table *table, table_take take, void *context, mr_error *error);

/* Adds remarks about the columns and declares them. Call it after all rows are read and columns are taken. */
mr_status table_report(const table *table, source *source, mr_error *error);

/* Sets *column, if it is -1, to the column of --split-column or to the column called split. is_last: a missing
 * --split-column is an error. */
mr_status table_choose_split(const table *table, const source *source, bool is_last, int32_t *column, mr_error *error);
/* The split that a row names; 0: none, or an invalid name. */
mr_status table_split(const table *table, table_row *row, int32_t column, source *source, int8_t *split,
                      mr_error *error);

/* Reads the row at an offset again; line_number is for messages. Safe from any thread. */
mr_status table_read(const table *table, uint64_t offset, uint64_t line_number, table_row *row, mr_error *error);
/* The cell as text. False: missing, a list, or no such column. Borrowed until the next call for this row. */
bool table_text(const table *table, table_row *row, int32_t column, mr_string *text);
/* Appends the numbers of a cell to a list. errors: missing, not a number, not finite */
typedef struct float_list {
    float *values; /* owned */
    size_t count, capacity;
} float_list;
mr_status table_floats(const table *table, table_row *row, int32_t column, float_list *list, mr_error *error);
/* Adds all columns that are not taken as features with the columns' names. Missing cells are missing features. */
mr_status table_put_all(const table *table, table_row *row, const features *to, mr_error *error);
void table_row_deinit(table_row *row);
void table_deinit(table *table);

#endif
