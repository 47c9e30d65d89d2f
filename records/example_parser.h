/* The two halves of parsing: example_parser.c finds the features that are asked for in the wire bytes of each record,
 * example_columns.c turns what was found into tensors. Between them lies one mr_located for each record and feature. */
#ifndef MR_RECORDS_EXAMPLE_PARSER_H
#define MR_RECORDS_EXAMPLE_PARSER_H

#include "records/example_wire.h"

/* A feature that is asked for, and what follows from it. */
typedef struct mr_example_slot {
    mr_string name;
    mr_dtype dtype;
    mr_feature_kind kind;
    mr_feature_form form;
    mr_shape shape;
    int64_t stride;         /* values in shape */
    mr_tensor fallback;     /* shared; empty without one */
    int32_t tensor;         /* its first */
    bool is_kept_for_empty; /* in a batch a later feature without a list is passed over for an earlier one */
} mr_example_slot;

struct mr_example_parser {
    int32_t count, tensor_count;
    mr_example_slot *slots;
    char *names;
    uint64_t seed;
    uint32_t mask;
    int32_t *table; /* mask + 1 slot numbers, -1 for none */
};

/* Where a feature was found: its list, with its length before it. kind NONE: not found. */
typedef struct mr_located {
    const unsigned char *next;
    uint32_t size_bytes;
    mr_feature_kind kind;
} mr_located;

/* Makes the tensors of a slot, with a batch dimension unless single.
 * located  of record 0 and this slot; the next record's is slot_count further
 * counts   record_count numbers to work with */
mr_status mr_example_column(const mr_example_slot *slot, const mr_string *records, int64_t record_count, bool single,
                            mr_located *located, int32_t slot_count, int64_t *counts, mr_tensor *tensors,
                            mr_error *error);

/* "record 7: " or "" when single: how messages begin. */
#define MR_EXAMPLE_WHERE_SIZE 40
const char *mr_example_where(int64_t record, bool single, char text[MR_EXAMPLE_WHERE_SIZE]);

#endif
