/* What --schema gathers from records: a column for each feature name. */
#ifndef MR_TOOLS_TFRECORD_CAT_SCHEMA_H
#define MR_TOOLS_TFRECORD_CAT_SCHEMA_H

#include "tfrecord-cat/cat.h"

/* Minimum and maximum of the values seen; most < least: none were seen. */
typedef struct bounds {
    uint64_t least, most;
} bounds;

typedef struct column {
    mr_string name; /* owned, NUL-terminated */
    bool is_list;
    uint64_t kinds[4]; /* records (of a feature list: steps) with each mr_feature_kind */
    uint64_t present;  /* records that have it: a feature with a kind, or a list with any content */
    bounds values;     /* per record or step that has it */
    bounds steps;      /* per record; feature lists only */
    bool has_empty;    /* a context feature has no kind: in SequenceExamples that means no values, not missing */
} column;

typedef struct schema {
    column *columns; /* sorted after the last record: features first, then lists */
    size_t count;
    uint64_t examples, sequences; /* numbers of records */
} schema;

static inline uint64_t schema_records(const schema *schema)
{
    return schema->examples + schema->sequences;
}

/* The only kind of a column; MR_FEATURE_NONE when there are several or none. */
mr_feature_kind column_kind(const column *column);
/* Whether it has one kind, and the same number of values, at least one, in every record that has it. */
bool column_is_fixed(const column *column);

/* ---- schema_spec.c ---- */

/* Prints a specification that parses every column, as a C header and as a Python module. */
void schema_print_c(const schema *schema);
void schema_print_python(const schema *schema);

#endif
