/* Example: TensorFlow's record of named features, encoded and parsed without protobuf objects.
 *
 * ```c
 * mr_error error = {0};
 * mr_example_encoder encoder = {0};
 * mr_example_add_int64(&encoder, "image/height", 480);
 * mr_example_add_bytes(&encoder, "image/format", MR_STR("jpeg"));
 * mr_string record = {0};
 * if (mr_example_finish(&encoder, &record, &error) != MR_OK) return 1;
 * printf("%zu bytes\n", record.size_bytes);
 * mr_example_encoder_deinit(&encoder);
 * ```
 *
 * The parser makes one pass over the wire bytes and writes directly into the columns of a batch. Features that are not
 * requested are skipped. The rules are those of tf.io.parse_example, including those that differ from protobuf's:
 *
 *   - Concatenated messages and duplicate names: the last one wins. A later feature without any list does not replace
 *     an earlier one, except for MR_VAR_LEN, MR_SPARSE and MR_RAGGED in a batch, where it does
 *   - A feature without a list is missing. An empty list is present and has no values
 *   - A list of another kind than requested is an error, even if it is empty
 *   - Numbers may be packed or not; the first tag decides. Of several packed chunks only the first is read
 *   - Other fields of the Example are skipped. Inside Features and its entries they are damage; groups are damage
 *     everywhere
 *
 * Some checks are stricter than TensorFlow's. A length that exceeds its message is damage; TensorFlow reads the bytes
 * that exist. The indices of MR_SPARSE are checked against its size, and the partitions of MR_RAGGED against its
 * values, in each record separately. */
#ifndef MILLRACE_EXAMPLE_H
#define MILLRACE_EXAMPLE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Encoding ---- */

/* Maximum size of an Example, as of any protobuf message. */
#define MR_EXAMPLE_SIZE_MAX ((size_t)INT32_MAX)

/* Zero-initialized memory is an empty encoder. The first failure (no memory, a duplicate name) is kept and reported by
 * finish. Features are written in the order of their names, so equal Examples have equal bytes. */
typedef struct mr_example_encoder {
    struct mr_example_state *state;
} mr_example_encoder;
MR_API void mr_example_add_bytes(mr_example_encoder *encoder, const char *name, mr_string value); /* value is copied */
MR_API void mr_example_add_int64(mr_example_encoder *encoder, const char *name, int64_t value);
MR_API void mr_example_add_float(mr_example_encoder *encoder, const char *name, float value);
MR_API void mr_example_add_bytes_list(mr_example_encoder *encoder, const char *name, const mr_string *values,
                                      size_t count);
MR_API void mr_example_add_int64_list(mr_example_encoder *encoder, const char *name, const int64_t *values,
                                      size_t count);
MR_API void mr_example_add_float_list(mr_example_encoder *encoder, const char *name, const float *values, size_t count);
/* Returns the serialized Example, borrowed from the encoder until the next add. The encoder is then empty again. */
MR_API mr_status mr_example_finish(mr_example_encoder *encoder, mr_string *record, mr_error *error);
MR_API void mr_example_encoder_deinit(mr_example_encoder *encoder);

/* A SequenceExample. Its context is an Example's features, which are added to `context`. Its feature lists have one
 * feature for each step. The first step added under a name starts a list; steps of several lists may be added in any
 * order. Zero-initialized memory is an empty encoder. The first failure is kept, and equal SequenceExamples have equal
 * bytes, as above. */
typedef struct mr_sequence_encoder {
    mr_example_encoder context;
    struct mr_example_state *lists;
} mr_sequence_encoder;
/* Add a step to the list `name`. Values are copied; count may be 0. */
MR_API void mr_sequence_add_bytes_list(mr_sequence_encoder *encoder, const char *name, const mr_string *values,
                                       size_t count);
MR_API void mr_sequence_add_int64_list(mr_sequence_encoder *encoder, const char *name, const int64_t *values,
                                       size_t count);
MR_API void mr_sequence_add_float_list(mr_sequence_encoder *encoder, const char *name, const float *values,
                                       size_t count);
/* Adds the list without a step: an empty list is not a missing one. */
MR_API void mr_sequence_add_list(mr_sequence_encoder *encoder, const char *name);
/* Returns the serialized SequenceExample, borrowed from the encoder until the next add. The encoder is then empty
 * again. */
MR_API mr_status mr_sequence_finish(mr_sequence_encoder *encoder, mr_string *record, mr_error *error);
MR_API void mr_sequence_encoder_deinit(mr_sequence_encoder *encoder);

/* ---- Reading one Example, feature by feature ---- */

typedef enum mr_feature_kind {
    MR_FEATURE_NONE = 0,
    MR_FEATURE_BYTES,
    MR_FEATURE_FLOAT,
    MR_FEATURE_INT64
} mr_feature_kind;

/* A serialized feature. Borrowed from the record. */
typedef struct mr_feature_view {
    mr_string name;
    mr_feature_kind kind;
    mr_string list; /* the serialized BytesList, FloatList or Int64List */
} mr_feature_view;

/* Iterates over the features in file order; {.record = …} starts. Duplicate names are returned each time.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS with the byte offset of the damage */
typedef struct mr_example_cursor {
    mr_string record;
    size_t offset;
    size_t inner_offset, inner_end; /* inside the current Features message */
} mr_example_cursor;
MR_API mr_status mr_example_next_feature(mr_example_cursor *walk, mr_feature_view *feature, mr_error *error);
/* Read the values of a view: first the count, then all values into an array of at least count elements. */
MR_API mr_status mr_feature_count(const mr_feature_view *feature, size_t *count, mr_error *error);
MR_API mr_status mr_feature_bytes(const mr_feature_view *feature, mr_string *values, size_t capacity, mr_error *error);
MR_API mr_status mr_feature_floats(const mr_feature_view *feature, float *values, size_t capacity, mr_error *error);
MR_API mr_status mr_feature_int64s(const mr_feature_view *feature, int64_t *values, size_t capacity, mr_error *error);
/* Return the only value of the feature with this name.
 * errors  MR_NOT_FOUND: the feature is missing; MR_INVALID_ARGUMENT: another kind, or not exactly one value */
MR_API mr_status mr_example_get_int64(mr_string record, const char *name, int64_t *value, mr_error *error);
MR_API mr_status mr_example_get_bytes(mr_string record, const char *name, mr_string *value, mr_error *error);
MR_API mr_status mr_example_get_float(mr_string record, const char *name, float *value, mr_error *error);

/* ---- Type of a record ---- */

/* An Example and a SequenceExample start alike: field 1 holds Features, in a SequenceExample the context. A record is
 *
 *   MR_EXAMPLE_SEQUENCE   if it has a field 2, and every field 2 is a map of names to lists of features
 *   MR_EXAMPLE_PLAIN      if it has a field 1 and no such field 2, or is empty
 *   MR_EXAMPLE_NONE       otherwise, and if a field 1 is not a map of names to features: other data, or damage
 *
 * Values are not checked, only names and kinds. */
typedef enum mr_example_form { MR_EXAMPLE_NONE = 0, MR_EXAMPLE_PLAIN, MR_EXAMPLE_SEQUENCE } mr_example_form;
MR_API mr_example_form mr_example_form_of(mr_string record);

/* ---- Reading one SequenceExample: the context with mr_example_next_feature, the feature lists with these ---- */

/* A list of features, one for each step. Borrowed from the record. */
typedef struct mr_feature_list_view {
    mr_string name;
    mr_string steps; /* the serialized FeatureList; advanced by mr_feature_list_next */
} mr_feature_list_view;

/* Iterates over the feature lists in file order; {.record = …} starts. Use another walk than for the context. Duplicate
 * names are returned each time.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS with the byte offset of the damage */
MR_API mr_status mr_sequence_next_list(mr_example_cursor *walk, mr_feature_list_view *list, mr_error *error);
/* Counts the remaining steps of a list. */
MR_API mr_status mr_feature_list_count(const mr_feature_list_view *list, size_t *count, mr_error *error);
/* Returns the next step, with the list's name. A step may have no kind (MR_FEATURE_NONE); kinds may differ between
 * steps.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS */
MR_API mr_status mr_feature_list_next(mr_feature_list_view *list, mr_feature_view *step, mr_error *error);

/* ---- Parsing into columns: tf.io.parse_example ---- */

typedef enum mr_feature_form {
    MR_FIXED_LEN = 0,      /* FixedLenFeature: [batch] + shape */
    MR_FIXED_LEN_SEQUENCE, /* FixedLenSequenceFeature: [batch, longest] + shape, padded with default_value */
    MR_VAR_LEN,            /* VarLenFeature, three tensors: indices [n, 2], values [n], dense shape [2] */
    MR_RAGGED, /* RaggedFeature: values [n] and int64 row splits [batch + 1] ([0] for a single record), then the
                          splits of each partition, outermost first. Uniform partitions at the end have no splits: they
                          are the last dimensions of the values */
    MR_SPARSE, /* SparseFeature, three tensors: indices [n, 1 + rank], values [n], dense shape [1 + rank] */
} mr_feature_form;

/* How the values of a ragged feature are partitioned into rows (RaggedFeature.RowSplits and so on): by the int64 values
 * of another feature of the same record. Partitions that do not match the values are an error in each record
 * separately, as with validate=True. In a batch, TensorFlow moves values from one record to the next if their
 * partitions match only together. n is the number of items to partition: values, or rows of the next inner one. */
typedef enum mr_partition_kind {
    MR_ROW_SPLITS = 0,     /* [0, …, n]; may be empty if there are no values, except for a single record */
    MR_ROW_LENGTHS,        /* the sum is n */
    MR_ROW_STARTS,         /* [0, …] */
    MR_ROW_LIMITS,         /* […, n] */
    MR_VALUE_ROWIDS,       /* the row of each value, not decreasing; less than MR_VALUE_ROWID_LIMIT */
    MR_UNIFORM_ROW_LENGTH, /* no feature: every row has `length` values */
} mr_partition_kind;
#define MR_VALUE_ROWID_LIMIT (INT64_C(1) << 24)
typedef struct mr_partition {
    mr_partition_kind kind;
    const char *key; /* the other feature's name; null with MR_UNIFORM_ROW_LENGTH */
    int64_t length;  /* MR_UNIFORM_ROW_LENGTH; at least 1 */
} mr_partition;
#define MR_PARTITIONS_MAX (MR_RANK_MAX - 2)

/* One requested feature.
 * dtype  MR_FLOAT, MR_INT64 or MR_STRING */
typedef struct mr_feature {
    const char *name;
    mr_dtype dtype;
    mr_feature_form form;
    mr_shape shape; /* MR_FIXED_LEN, MR_FIXED_LEN_SEQUENCE; MR_SCALAR for one value. MR_SPARSE: the size; rank ≥ 1 */
    const mr_tensor *default_value; /* MR_FIXED_LEN: as many values as the shape has; null: the feature is required.
                                       MR_FIXED_LEN_SEQUENCE: one value for the padding; null: 0 and "" */
    /* MR_RAGGED, MR_SPARSE: the feature that holds the values; null: name. Several features may use the same one, under
     * different names. */
    const char *value_key;
    /* MR_SPARSE: for each dimension of shape, the feature with the values' indices in that dimension: int64, from 0 to
     * size - 1. */
    const char *const *index_keys;
    bool already_sorted; /* MR_SPARSE: keep the values in their order; otherwise they are sorted by index */
    /* MR_RAGGED: outermost first; at most MR_PARTITIONS_MAX. */
    const mr_partition *partitions;
    int32_t partition_count;
    mr_dtype splits_dtype; /* MR_RAGGED: MR_INT64 or MR_INT32; 0: MR_INT64 */
    bool allow_missing; /* MR_FIXED_LEN_SEQUENCE of a SequenceExample: a missing list is an empty list, not an error */
} mr_feature;

/* Number of tensors of a feature: 1; 3 for MR_VAR_LEN and MR_SPARSE; 2 or more for MR_RAGGED. */
MR_API int32_t mr_feature_tensor_count(const mr_feature *feature);
/* Returns dtype and shape of the feature's tensor `index`. Unknown sizes are -1.
 * batch  records in a batch; -1: unknown; MR_SINGLE: no batch dimension */
#define MR_SINGLE INT64_C(-2)
MR_API void mr_feature_tensor_spec(const mr_feature *feature, int64_t batch, int32_t index, mr_dtype *dtype,
                                   mr_shape *shape);

/* A parser for one set of features. It holds no record. The features are copied.
 * errors   MR_INVALID_ARGUMENT: duplicate feature names; forms that cannot be combined for one feature of the record
 *          (MR_VAR_LEN can be combined with MR_SPARSE, and MR_RAGGED with MR_RAGGED, of the same dtype); an invalid
 *          dtype, shape, size or partition; a default_value of the wrong size
 * threads  parse may be called from any thread */
typedef struct mr_example_parser mr_example_parser;
MR_API mr_status mr_example_parser_new(const mr_feature *features, int32_t count, mr_example_parser **parser,
                                       mr_error *error);
MR_API void mr_example_parser_free(mr_example_parser *parser);

/* Finds the parser's features in one record, without copying. views[i] belongs to feature i (its values); its kind is
 * MR_FEATURE_NONE if the feature is missing. The rules are those for a single record. Kinds and counts are not checked.
 * errors   MR_DATA_LOSS with the byte offset of the damage */
MR_API mr_status mr_example_find(const mr_example_parser *parser, mr_string record, mr_feature_view *views,
                                 mr_error *error);

/* Parses records into tensors, in the order of the features.
 * single   parse one record to tensors without the batch dimension (tf.io.parse_single_example); record_count must be 1
 * tensors  owned by the caller; the sum of the features' tensor counts
 * errors   MR_INVALID_ARGUMENT with record number, feature and reason: missing, another kind, another length, a
 *          partition or index that does not match; MR_DATA_LOSS with the byte offset of the damage */
MR_API mr_status mr_example_parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count,
                                  bool single, mr_tensor *tensors, mr_error *error);

/* ---- Parsing SequenceExamples into columns: tf.io.parse_sequence_example ----
 *
 * The context is parsed like an Example, to MR_FIXED_LEN, MR_VAR_LEN and MR_RAGGED features. The tensors of a feature
 * list are
 *
 *   MR_FIXED_LEN_SEQUENCE  two: [batch, longest] + shape, where every step has exactly this shape, padded with 0 and
 *   "";
 *                      and the lengths [batch], [] for a single record. A missing list is an error unless allow_missing
 *                      is set
 *   MR_VAR_LEN        indices [n, 3] (record, step, position), values [n], dense shape [3]
 *   MR_RAGGED          values [n]; row splits of the records' steps [batch + 1], [0] for a single record; row splits of
 *                      the steps' values; then those of the partitions, which divide each step's values by the same
 *                      step of another list
 *
 * Unlike in an Example, a feature without a list is present and has no values, and the last one of a name always wins.
 * Three encodings that no writer produces are read as protobuf specifies, where TensorFlow fails or reads wrong data: a
 * value before its name, and, after the list of a step, another packed chunk or other fields. A batch of no records is
 * valid for any features. */

/* As mr_feature_tensor_count and mr_feature_tensor_spec, for a feature list. */
MR_API int32_t mr_sequence_tensor_count(const mr_feature *list);
MR_API void mr_sequence_tensor_spec(const mr_feature *list, int64_t batch, int32_t index, mr_dtype *dtype,
                                    mr_shape *shape);

/* As mr_example_parser_new. A name may be used in the context and among the lists. */
typedef struct mr_sequence_parser mr_sequence_parser;
MR_API mr_status mr_sequence_parser_new(const mr_feature *context, int32_t context_count, const mr_feature *lists,
                                        int32_t list_count, mr_sequence_parser **parser, mr_error *error);
MR_API void mr_sequence_parser_free(mr_sequence_parser *parser);

/* As mr_example_parse. The tensors of the context come first. Errors also name the step. */
MR_API mr_status mr_sequence_parse(const mr_sequence_parser *parser, const mr_string *records, int64_t record_count,
                                   bool single, mr_tensor *tensors, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
