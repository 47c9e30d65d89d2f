/* What --schema knows of records: a column for each name. */
#ifndef MR_TOOLS_TFRECORD_CAT_SCHEMA_H
#define MR_TOOLS_TFRECORD_CAT_SCHEMA_H

#include "tools/tfrecord-cat/cat.h"

/* The least and the most of what was seen; most < least: nothing was. */
typedef struct bounds {
    uint64_t least, most;
} bounds;

typedef struct column {
    mr_string name; /* owned, with a NUL behind it */
    bool is_list;
    uint64_t kinds[4]; /* records or, of a feature list, steps with each mr_feature_kind */
    uint64_t present;  /* records that have it: a feature with a kind, a list whatever is in it */
    bounds values;     /* of a record or step, where it is there */
    bounds steps;      /* feature lists */
    bool has_empty;    /* a context feature without a kind: for SequenceExamples that is no values, not missing */
} column;

typedef struct schema {
    column *columns; /* sorted, once all records are seen: features first, then lists */
    size_t count;
    uint64_t examples, sequences; /* records */
} schema;

static inline uint64_t schema_records(const schema *schema)
{
    return schema->examples + schema->sequences;
}

/* The one kind that a column has; MR_FEATURE_NONE when there are several or none. */
mr_feature_kind column_kind(const column *column);
/* Whether it has one kind, and the same number of values, at least one, everywhere it is. */
bool column_is_fixed(const column *column);

/* ---- schema_spec.c ---- */

/* What asks for every column, as a C header and as a Python module. */
void schema_print_c(const schema *schema);
void schema_print_python(const schema *schema);

#endif
