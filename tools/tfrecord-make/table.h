/* Rows of columns in a file: CSV, or JSON Lines.
 *
 * The whole file is read once to learn the columns and their types; after that any row is read again at its place, from
 * any thread. Memory: the columns, and one row. */
#ifndef MR_TOOLS_TFRECORD_MAKE_TABLE_H
#define MR_TOOLS_TFRECORD_MAKE_TABLE_H

#include "tools/tfrecord-make/columns.h"

#include <millrace/formats.h>

typedef struct table {
    mr_input_file *file; /* owned */
    bool is_json;
    char separator;
    columns columns;
    int32_t *cells; /* CSV: the column of each cell; -1: a column without a name. Owned */
    int32_t cell_count, nameless;
    uint64_t first; /* where the first row of values begins */
} table;

/* One row, in memory that is kept between rows; {0} is empty. */
typedef struct table_row {
    mr_csv_row csv;
    const mr_csv_row *cells; /* borrowed: csv, or the reader's */
    source_bytes line;
    json_t *object;        /* owned */
    const json_t **values; /* JSON Lines: by column; owned */
    int32_t value_capacity;
    char text[64]; /* of a number */
    uint64_t line_number;
} table_row;

/* Opens a file and learns the names of its columns; those of JSON Lines come with the rows. */
mr_status table_open(table *table, const char *path, const source_options *in, mr_error *error);

/* Reads all rows in order and learns the columns' types. A row with a fault (too few cells, no JSON) is given to take all
 * the same, so that it can be counted, and told like an image that is bad; CSV whose rows cannot be told apart ends it.
 * fault  null for a good row
 * text   of the row, as it lies in the file */
typedef mr_status (*table_take)(void *context, table_row *row, uint64_t offset, mr_string text, const mr_error *fault,
                                mr_error *error);
mr_status table_scan(table *table, table_take take, void *context, mr_error *error);

/* Remarks on the columns and declares them; when all rows are read, and columns are taken. */
mr_status table_report(const table *table, source *source, mr_error *error);

/* The column of --split-column, or the one that is called split, while *column is -1. is_last: it is an error when there is
 * no column of --split-column. */
mr_status table_choose_split(const table *table, const source *source, bool is_last, int32_t *column, mr_error *error);
/* The part that a row names; 0: none, or one that cannot be. */
mr_status table_split(const table *table, table_row *row, int32_t column, source *source, int8_t *split,
                      mr_error *error);

/* Reads the row at an offset again; line_number is for messages. Safe from any thread. */
mr_status table_read(const table *table, uint64_t offset, uint64_t line_number, table_row *row, mr_error *error);
/* The cell as text. False: missing, a list, or without a column. Borrowed until the next call for this row. */
bool table_text(const table *table, table_row *row, int32_t column, mr_string *text);
/* Adds the numbers of a cell behind those that are there. errors: missing, no number, not finite */
typedef struct float_list {
    float *values; /* owned */
    size_t count, capacity;
} float_list;
mr_status table_floats(const table *table, table_row *row, int32_t column, float_list *list, mr_error *error);
/* Adds all columns that are not taken as features of their names; missing cells are missing features. */
mr_status table_put_all(const table *table, table_row *row, const features *to, mr_error *error);
void table_row_deinit(table_row *row);
void table_deinit(table *table);

#endif
