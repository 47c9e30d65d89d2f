/* Named columns whose types are learned from all their values, and values that become features by them: cells of CSV, and
 * fields of JSON objects, which are flattened: "size/w" of {"size": {"w": 3}}. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COLUMNS_H
#define MR_TOOLS_TFRECORD_MAKE_COLUMNS_H

#include "tools/tfrecord-make/source.h"

#include <jansson.h>

/* In the order in which one holds the values of the one before. */
typedef enum column_type { COLUMN_NONE = 0, COLUMN_INT64, COLUMN_FLOAT, COLUMN_BYTES } column_type;

typedef struct column {
    const char *name; /* borrowed from the columns' names */
    column_type type; /* the narrowest that holds all values seen; COLUMN_NONE when there were none */
    bool is_given;    /* by --types: values do not change it */
    bool is_taken;    /* the source has another use for it; it becomes no feature by itself */
    int64_t numbers,
        others;        /* values that are numbers, and that are not; counted until it is clear that it holds text */
    uint64_t odd_row;  /* of the first that is not: as column_see was told */
    char odd_text[32]; /* and its begin */
} column;

typedef struct columns {
    const source_options *in; /* borrowed */
    names names;
    column *items; /* owned */
    int32_t count, capacity;
} columns;

/* The column of a name; it is added when it is new, with its type of --types.
 * errors  too many columns */
mr_status columns_add(columns *columns, mr_string name, int32_t *index, mr_error *error);
int32_t columns_find(const columns *columns, const char *name); /* -1: none */
/* Names and types: what all records follow from. */
uint64_t columns_hash(const columns *columns, uint64_t hash);
/* errors  --types that cannot be read, or name a column that is not there */
mr_status columns_check_types(const columns *columns, const char *input, mr_error *error);
void columns_deinit(columns *columns);

/* Whole numbers with a zero before them are text, as codes are; "nan" and "inf" are floats. */
column_type column_type_of_text(mr_string text);
/* That of its values for a list, flat or nested; COLUMN_NONE for null and an empty list. Objects in lists are text. */
column_type column_type_of_json(const json_t *value);
const char *column_type_name(column_type type);
/* Widens a column by one of its values. row: where, for columns_report; text: what, as far as it fits */
void column_see(column *column, column_type type, uint64_t row, mr_string text);
/* Whether values still matter: not those of a column that is clearly text. */
bool column_is_open(const column *column);
/* columns_report.c: keeps remarks on the types that were found, and on columns of numbers in which some cells are none.
 * what  "columns", "fields of .json"
 * where the row of column_see in words, such as "line 12" */
typedef const char *(*column_place)(const source *source, uint64_t row, char *text, size_t size_bytes);
mr_status columns_report(const columns *columns, source *source, const char *what, column_place where, mr_error *error);
/* Declares all columns that are not taken, with a prefix, as features. */
mr_status columns_declare(const columns *columns, source *source, const char *prefix, mr_error *error);
/* The first column whose name is one of "a,b,…", without regard to capitals and to blanks around it; -1: none. */
int32_t columns_find_usual(const columns *columns, const char *usual);
/* Adds a value as the column's type says. errors: it cannot be of that type */
mr_status column_put_text(const column *column, mr_string text, const char *key, const features *to, mr_error *error);
mr_status column_put_json(const column *column, const json_t *value, const char *key, const features *to,
                          mr_error *error);

/* The elements of a tensor as a list: whole numbers and booleans int64, other numbers float, text bytes.
 * errors: a number too large for int64 or float; complex dtypes are the caller's mistake */
mr_status put_tensor(const mr_tensor *tensor, const char *key, const features *to, mr_error *error);

/* Calls take with the flat name and value of each field of an object; null values are passed over.
 * errors  an object nested too deep; what take says */
typedef mr_status (*take_field)(void *context, mr_string name, const json_t *value, mr_error *error);
mr_status json_each_field(const json_t *object, take_field take, void *context, mr_error *error);
/* Parses an object; null and a sentence otherwise. json_decref. */
json_t *json_object_from(const char *text, size_t size_bytes, mr_error *error);

/* Numbers of a text or JSON value, as floats. errors: no number, or too large for a float */
mr_status float_of_text(mr_string text, float *value, mr_error *error);
mr_status float_of_json(const json_t *value, float *number, mr_error *error);

/* Whether text is one of the names in a list "A,B,…"; a null list has none. */
bool list_has(const char *list, mr_string text);
/* The next of "A,B,…" from *next on. False at the end. */
bool list_next(const char **next, mr_string *name);

#endif
