/* The parser of Examples and of both halves of a SequenceExample: internal types, and how the work is divided.
 *
 *     example_spec.c      the requested features (outputs) and the entries of a record that they need (slots)
 *     example_parser.c    finds the slots in the wire bytes of each record: one mr_located for each record and slot
 *     example_rows.c      checks and counts the lists of a slot: one row for each record, or for each step of a list
 *     example_columns.c   converts rows to tensors: fixed, sequence, variable; writes values into tensors
 *     example_ragged.c, example_sparse.c      the forms that combine several slots
 *     example_sequence_parser.c, example_sequence_columns.c      both halves together; the tensors of feature lists */
#ifndef MR_RECORDS_EXAMPLE_BATCH_H
#define MR_RECORDS_EXAMPLE_BATCH_H

#include "records/example/example_fault.h"
#include "records/example/example_names.h"
#include "records/example/example_wire.h"

/* ---- Requested features ---- */

/* The kinds of outputs. Outputs of different uses cannot share a slot. */
typedef enum mr_example_use { MR_USE_DENSE, MR_USE_SPARSE, MR_USE_RAGGED } mr_example_use;

/* An entry of the record that at least one output needs. Its name is in mr_example_parser.names. */
typedef struct mr_example_slot {
    mr_dtype dtype;
    mr_feature_kind kind;
    mr_example_use use;
    bool has_rows; /* set if an output needs its rows */
} mr_example_slot;

/* A requested feature and the values derived from it. */
typedef struct mr_example_output {
    mr_string name;
    mr_feature_form form;
    mr_dtype dtype;
    mr_shape shape;          /* MR_SCALAR where the form has none */
    int64_t stride;          /* values in shape; 1 where the form has none */
    mr_tensor default_value; /* referenced; empty if there is none */
    bool already_sorted, allow_missing;
    mr_dtype splits_dtype;
    int32_t slot;  /* of the values */
    int32_t first; /* index of its first tensor */
    /* MR_SPARSE: shape.rank index slots; MR_RAGGED: the partitions and their slots (-1: uniform) */
    int32_t others[MR_RANK_MAX];
    mr_partition_kind kinds[MR_RANK_MAX];
    int64_t lengths[MR_RANK_MAX];
    int32_t partition_count;
    int32_t ragged_count; /* partitions before the trailing uniform ones, which are dimensions of the values */
} mr_example_output;

/* What the slots of a parser are: features of an Example, features of a context, or feature lists. */
typedef enum mr_example_scope { MR_SCOPE_EXAMPLE, MR_SCOPE_CONTEXT, MR_SCOPE_LISTS } mr_example_scope;

struct mr_example_parser {
    mr_example_scope scope;
    int32_t slot_count, output_count, tensor_count;
    mr_example_slot *slots;
    mr_string *names; /* of the slots */
    mr_example_output *outputs;
    char *text; /* storage of all names; owned */
    mr_example_names table;
};

mr_status mr_example_parser_make(mr_example_scope scope, const mr_feature *features, int32_t count,
                                 mr_example_parser **parser, mr_error *error);
mr_feature_kind mr_example_kind_of(mr_dtype dtype);
/* The number of partitions of a ragged feature, without the trailing uniform ones. */
int32_t mr_example_ragged_count(const mr_feature *feature);

/* ---- Located slots ---- */

/* The position of a slot in a record: a list preceded by its length, or a complete FeatureList. kind is MR_FEATURE_NONE
 * if the record does not have it. */
typedef struct mr_located {
    const unsigned char *next;
    uint32_t size_bytes;
    mr_feature_kind kind;
} mr_located;

/* Walks a Features or FeatureLists message and stores the position of each slot. If a name occurs several times, the
 * last occurrence wins.
 * position  counts entries over all messages of one record
 * located   of the first slot; that of the next slot is `stride` elements further
 * single    Examples only: features without a list are skipped, whichever output needs them
 * returns   null, or the position of the damage */
const unsigned char *mr_example_locate(const mr_example_parser *parser, mr_wire features, bool single,
                                       mr_example_guesses *guesses, size_t *position, mr_located *located,
                                       int64_t stride);

/* ---- Rows ---- */

typedef struct mr_example_row {
    const unsigned char *list;
    uint32_t size_bytes, count; /* count: of values */
} mr_example_row;

/* All lists of a slot in a batch. */
typedef struct mr_example_rows {
    int64_t count; /* records, or steps of all records */
    mr_example_row *items;
    int64_t capacity;
    int64_t total, longest; /* number of values: of all rows, of the longest row */
    int64_t *splits;        /* feature lists: record i has the rows splits[i] to splits[i + 1] - 1 */
    int64_t most;           /* feature lists: maximum number of rows of a record */
} mr_example_rows;

/* A batch that is being parsed. */
typedef struct mr_example_batch {
    const mr_example_parser *parser;
    const mr_string *records;
    int64_t record_count;
    bool single;
    mr_located *located;     /* record_count entries for each slot, ordered by slot */
    mr_example_rows *rows;   /* one for each slot */
    mr_example_fault *fault; /* set by the functions that report errors; null: not requested. Borrowed */
} mr_example_batch;

/* Allocates the tables of a batch and empties the tensors. mr_example_batch_deinit may be called after a failure. */
mr_status mr_example_batch_init(mr_example_batch *batch, const mr_example_parser *parser, const mr_string *records,
                                int64_t record_count, bool single, mr_tensor *tensors, mr_error *error);
void mr_example_batch_deinit(mr_example_batch *batch);

static inline const mr_located *mr_example_located(const mr_example_batch *batch, int64_t record, int32_t slot)
{
    return batch->located + slot * batch->record_count + record;
}

/* Rows are created record by record, right after the record was located, while its bytes are in cache. Begin allocates;
 * add checks and counts the lists of all slots in a record. Records must be added in order. */
mr_status mr_example_rows_begin(const mr_example_batch *batch, mr_error *error);
mr_status mr_example_rows_add(const mr_example_batch *batch, int64_t record, mr_error *error);
static inline const mr_example_rows *mr_example_rows_of(const mr_example_batch *batch, int32_t slot)
{
    return &batch->rows[slot];
}
/* Writes the row->count values of a row. */
void mr_example_row_values(mr_feature_kind kind, const mr_example_row *row, void *values);

/* ---- Errors: "record 7: step 2: feature "a" …" ---- */

#define MR_EXAMPLE_WHERE_SIZE 72
/* The prefix of a message about a row; rows null: `row` is a record. */
const char *mr_example_where(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row,
                             char text[MR_EXAMPLE_WHERE_SIZE]);
const char *mr_example_noun(const mr_example_parser *parser); /* "feature", "feature list" */
/* The number of bytes of a name that messages show. */
int mr_example_shown(mr_string name);
mr_status mr_example_fail_damaged(const mr_example_batch *batch, int64_t record, const unsigned char *at,
                                  mr_error *error);
mr_status mr_example_fail_kind(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row, int32_t slot,
                               mr_feature_kind found, mr_error *error);
mr_status mr_example_fail_list(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row, int64_t record,
                               int32_t slot, const unsigned char *at, mr_error *error);
mr_status mr_example_fail_missing(const mr_example_batch *batch, int64_t record, int32_t slot, mr_error *error);
mr_status mr_example_fail_count(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row,
                                const mr_example_output *output, size_t count, mr_error *error);

/* ---- Columns ---- */

/* The destination of a tensor's values. Numbers are written directly into the tensor; strings are collected as views
 * and copied by close. */
typedef struct mr_example_target {
    mr_tensor *tensor;
    mr_shape shape;
    size_t element_bytes;
    char *values;
    mr_string *views; /* owned; null for numbers */
} mr_example_target;
mr_status mr_example_target_open(mr_example_target *target, mr_dtype dtype, mr_shape shape, mr_tensor *tensor,
                                 mr_error *error);
static inline void *mr_example_target_at(const mr_example_target *target, int64_t element)
{
    return target->values + (size_t)element * target->element_bytes;
}
mr_status mr_example_target_close(mr_example_target *target, mr_error *error);
void mr_example_target_drop(mr_example_target *target); /* instead of close, after a failure */

/* All values of a slot, in the order of its rows, as a tensor of this shape, which must have as many elements. */
mr_status mr_example_values(const mr_example_batch *batch, int32_t slot, const mr_example_rows *rows, mr_shape shape,
                            mr_tensor *tensor, mr_error *error);

/* The tensors of an output of an Example or a context. */
mr_status mr_example_column(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error);
mr_status mr_example_sparse(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error);
/* The tensors of a ragged output of any scope: values, splits of the records, (of the steps,) of the partitions. */
mr_status mr_example_ragged(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error);
/* The tensors of a feature list. */
mr_status mr_sequence_column(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                             mr_error *error);
/* All outputs of a batch whose records have been located. */
mr_status mr_example_columns(const mr_example_batch *batch, mr_tensor *tensors, mr_error *error);

#endif
