/* Named columns whose types are inferred from all their values, and the conversion of values to features of these
 * types. Values are cells of CSV or fields of JSON objects, which are flattened: "size/w" of {"size": {"w": 3}}. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COLUMNS_H
#define MR_TOOLS_TFRECORD_MAKE_COLUMNS_H

#include "tfrecord-make/source.h"

#include <jansson.h>

/* Ordered: each type can represent the values of the previous one. */
typedef enum column_type { COLUMN_NONE = 0, COLUMN_INT64, COLUMN_FLOAT, COLUMN_BYTES } column_type;

typedef struct column {
    const char *name;        /* borrowed from the columns' names */
    column_type type;        /* the narrowest type for all values so far; COLUMN_NONE if there were none */
    bool is_given;           /* specified by --types: values do not change the type */
    bool is_taken;           /* used by the source for another purpose; not written as a feature by itself */
    int64_t numbers, others; /* counts of values that are numbers, and that are not; until the type is clear */
    uint64_t odd_row;        /* the first row whose value is not a number, as passed to column_see */
    char odd_text[32];       /* the beginning of that value */
} column;

typedef struct columns {
    const source_options *in; /* borrowed */
    names names;
    column *items; /* owned */
    int32_t count, capacity;
} columns;

/* The column of a name. A new column is added with its type of --types.
 * errors  too many columns */
mr_status columns_add(columns *columns, mr_string name, int32_t *index, mr_error *error);
int32_t columns_find(const columns *columns, const char *name); /* -1: none */
/* Hashes names and types, which determine all records. */
uint64_t columns_hash(const columns *columns, uint64_t hash);
/* errors  --types that cannot be parsed, or that name a column that does not exist */
mr_status columns_check_types(const columns *columns, const char *input, mr_error *error);
void columns_deinit(columns *columns);

/* The type of a value. Whole numbers with leading zeros are text, as in codes; "nan" and "inf" are floats. */
column_type column_type_of_text(mr_string text);
/* The type of a value; for a list, flat or nested, of its values. COLUMN_NONE for null and for an empty list.
 * Objects in lists are text. */
column_type column_type_of_json(const json_t *value);
const char *column_type_name(column_type type);
/* Widens the type of a column for one of its values. row: for columns_report; text: the value, truncated to fit */
void column_see(column *column, column_type type, uint64_t row, mr_string text);
/* Whether more values can change the type: not if the column is clearly text. */
bool column_is_open(const column *column);
/* columns_report.c: adds remarks about the inferred types, and about columns of numbers with a few other cells.
 * what   "columns", "fields of .json"
 * where  formats the row passed to column_see, such as "line 12" */
typedef const char *(*column_position)(const source *source, uint64_t row, char *text, size_t size_bytes);
mr_status columns_report(const columns *columns, source *source, const char *what, column_position where,
                         mr_error *error);
/* Declares all columns that are not taken as features, with a prefix. */
mr_status columns_declare(const columns *columns, source *source, const char *prefix, mr_error *error);
/* The first column whose name is one of "a,b,…", ignoring case and surrounding blanks; -1: none. */
int32_t columns_find_usual(const columns *columns, const char *usual);
/* Adds a value with the column's type. errors: the value does not have that type */
mr_status column_put_text(const column *column, mr_string text, const char *key, const features *to, mr_error *error);
mr_status column_put_json(const column *column, const json_t *value, const char *key, const features *to,
                          mr_error *error);

/* Adds the elements of a tensor as a list: whole numbers and booleans as int64, other numbers as float, text as bytes.
 * errors  a number too large for int64 or float; the caller must not pass complex dtypes */
mr_status put_tensor(const mr_tensor *tensor, const char *key, const features *to, mr_error *error);

/* Calls take with the flattened name and the value of each field of an object. Null values are skipped.
 * errors  an object nested too deeply; errors of take */
typedef mr_status (*take_field)(void *context, mr_string name, const json_t *value, mr_error *error);
mr_status json_each_field(const json_t *object, take_field take, void *context, mr_error *error);
/* Parses an object; null and an error otherwise. Free with json_decref. */
json_t *json_object_from(const char *text, size_t size_bytes, mr_error *error);

/* Convert a text or JSON value to float. errors: not a number, or too large for a float */
mr_status float_of_text(mr_string text, float *value, mr_error *error);
mr_status float_of_json(const json_t *value, float *number, mr_error *error);

/* Whether text is one of the names in a list "A,B,…"; a null list is empty. */
bool list_has(const char *list, mr_string text);
/* Reads the next name of "A,B,…" and advances *next. False at the end. */
bool list_next(const char **next, mr_string *name);

#endif
