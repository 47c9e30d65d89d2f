/* What is wrong with a record, for callers that word messages themselves. */
#ifndef MR_RECORDS_EXAMPLE_FAULT_H
#define MR_RECORDS_EXAMPLE_FAULT_H

#include <millrace/example.h>

typedef enum mr_fault_kind {
    MR_FAULT_NONE,    /* no error, or one of another kind, such as no memory */
    MR_FAULT_MISSING, /* a feature is missing */
    MR_FAULT_DTYPE,   /* a feature has another dtype */
    MR_FAULT_COUNT,   /* a feature has another number of values */
    MR_FAULT_DAMAGED, /* the record, or the list of a feature, cannot be parsed */
} mr_fault_kind;

typedef struct mr_example_fault {
    mr_fault_kind kind;
    bool in_context, in_lists; /* of a SequenceExample; otherwise an Example */
    int64_t record, step;      /* step -1: not in a feature list, or missing */
    mr_string name;            /* borrowed from the parser; empty for a damaged record */
    mr_feature_form form;
    mr_dtype dtype, found; /* as requested, as it is */
    mr_shape shape;        /* as requested */
    size_t count;          /* of values */
} mr_example_fault;

/* As mr_example_parse and mr_sequence_parse.
 * fault  not null; set also without an error */
mr_status mr_example_parse_checked(const mr_example_parser *parser, const mr_string *records, int64_t record_count,
                                   bool single, mr_tensor *tensors, mr_example_fault *fault, mr_error *error);
mr_status mr_sequence_parse_checked(const mr_sequence_parser *parser, const mr_string *records, int64_t record_count,
                                    bool single, mr_tensor *tensors, mr_example_fault *fault, mr_error *error);

#endif
