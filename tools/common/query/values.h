/* Iteration over the values of a feature without an array: a record of 2 GiB may have 10⁹ values. */
#ifndef MR_TOOLS_COMMON_VALUES_H
#define MR_TOOLS_COMMON_VALUES_H

#include <millrace/example.h>

typedef struct value {
    mr_feature_kind kind;
    union {
        int64_t integer;
        float number;
        mr_string bytes; /* borrowed from the record */
    };
} value;

/* A position in a list. */
typedef struct values {
    const unsigned char *next, *end;
    mr_feature_kind kind;
    bool is_packed;
} values;

/* Starts at the first value of a feature that mr_feature_count accepts; of a damaged feature, the values before the
 * damage are returned. */
values values_of(const mr_feature_view *feature);
/* False at the end. */
bool values_next(values *values, value *value);

#endif
