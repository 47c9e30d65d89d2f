/* The values of a feature one by one, without an array for them: a record of 2 GiB may hold a thousand million. */
#ifndef MR_TOOLS_TFRECORD_CAT_VALUES_H
#define MR_TOOLS_TFRECORD_CAT_VALUES_H

#include <millrace/example.h>

typedef struct value {
    mr_feature_kind kind;
    union {
        int64_t integer;
        float number;
        mr_string bytes; /* borrowed from the record */
    };
} value;

/* A place in a list. */
typedef struct values {
    const unsigned char *next, *end;
    mr_feature_kind kind;
    bool is_packed;
} values;

/* From the first on, of a feature that mr_feature_count takes; of a damaged one those before the damage are given. */
values values_of(const mr_feature_view *feature);
/* False at the end. */
bool values_next(values *values, value *value);

#endif
