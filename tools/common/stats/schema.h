/* The features of many records: the kinds of each, its numbers of values, and the number of records that have it.
 *
 * ```c
 * schema *schema = schema_new(nullptr, false);
 * if (!schema || schema_add(schema, record, &error) != MR_OK) …
 * schema_sort(schema);
 * for (size_t i = 0; i < schema->count; i++) … schema->columns[i] …
 * schema_free(schema);
 * ```
 *
 * One thread at a time. */
#ifndef MR_TOOLS_COMMON_SCHEMA_H
#define MR_TOOLS_COMMON_SCHEMA_H

#include "common/query/view.h"

/* Limits of a schema, for files in which every record has other names. */
#define SCHEMA_COLUMNS_MAX ((size_t)10'000)
#define SCHEMA_NAMES_SIZE_MAX ((size_t)16 << 20)

/* Minimum and maximum of the values seen; most < least: none were seen. */
typedef struct bounds {
    uint64_t least, most;
} bounds;

typedef struct schema_column {
    mr_string name; /* owned, NUL-terminated */
    bool is_list;
    uint64_t kinds[4]; /* records (of a feature list: steps) with each mr_feature_kind */
    uint64_t present;  /* records that have it: a feature with a kind, or a list with any content */
    bounds values;     /* per record or step that has it */
    bounds steps;      /* per record; feature lists only */
    bool has_empty;    /* a context feature has no kind: in SequenceExamples that means no values, not missing */
} schema_column;

typedef struct schema {
    schema_column *columns; /* owned */
    size_t count;
    uint64_t examples, sequences; /* numbers of records */
    bool is_full;                 /* there are more names than SCHEMA_COLUMNS_MAX and SCHEMA_NAMES_SIZE_MAX allow */

    /* Internal. */
    const char *features; /* borrowed */
    bool is_raw;
    view view;
    size_t capacity, names_bytes;
    uint32_t *table; /* columns by the hash of their name, plus one */
} schema;

/* features  as view_read; borrowed for the life of the schema
 * Returns null if there is no memory. */
schema *schema_new(const char *features, bool is_raw);
/* Null is allowed. */
void schema_free(struct schema *schema);
/* Adds a record.
 * errors  MR_DATA_LOSS: the record is not an Example, and is not counted; MR_RESOURCE_EXHAUSTED: no memory */
mr_status schema_add(struct schema *schema, mr_string record, mr_error *error);
/* Sorts the columns by name, features before lists; nothing may be added afterwards. */
void schema_sort(struct schema *schema);

static inline uint64_t schema_records(const schema *schema)
{
    return schema->examples + schema->sequences;
}

/* The only kind of a column; MR_FEATURE_NONE when there are several or none. */
mr_feature_kind schema_column_kind(const schema_column *column);
/* Whether it has one kind, and the same number of values, at least one, in every record that has it. */
bool schema_column_is_fixed(const schema_column *column);

#endif
