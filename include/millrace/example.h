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
 * Parsing goes once over the wire bytes, straight into the columns of a batch; features that are not asked for are skipped.
 * The rules are those of tf.io.parse_example, also where they are not protobuf's:
 *
 *   - concatenated messages and a name that is there twice: the last wins. A later feature without any list is passed over
 *     for an earlier one, but for MR_VARIABLE, MR_SPARSE and MR_RAGGED in a batch it wins
 *   - a feature without a list is missing; an empty list is there and has no values
 *   - another kind than asked for is an error, even when empty
 *   - numbers may be packed or not, as the first tag says; of several packed chunks only the first is read
 *   - other fields of the Example are skipped; inside Features and its entries they are damage, as groups are everywhere
 *
 * Some things are stricter: a length that points behind its message is damage here, and TensorFlow reads what is there; the
 * places of MR_SPARSE are compared with its size, the partitions of MR_RAGGED with its values, in each record by itself. */
#ifndef MILLRACE_EXAMPLE_H
#define MILLRACE_EXAMPLE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Encode ---- */

/* An Example is at most this long, as any protobuf message. */
#define MR_EXAMPLE_SIZE_MAX ((size_t)INT32_MAX)

/* Zero-initialised memory is an empty encoder. The first failure (no memory, a name added twice) is kept and reported by
 * finish. Features are written in the order of their names, so equal Examples have equal bytes. */
typedef struct mr_example_encoder {
    struct mr_example_state *state;
} mr_example_encoder;
void mr_example_add_bytes(mr_example_encoder *encoder, const char *name, mr_string value); /* copied */
void mr_example_add_int64(mr_example_encoder *encoder, const char *name, int64_t value);
void mr_example_add_float(mr_example_encoder *encoder, const char *name, float value);
void mr_example_add_bytes_list(mr_example_encoder *encoder, const char *name, const mr_string *values, size_t count);
void mr_example_add_int64_list(mr_example_encoder *encoder, const char *name, const int64_t *values, size_t count);
void mr_example_add_float_list(mr_example_encoder *encoder, const char *name, const float *values, size_t count);
/* The serialised Example, borrowed from the encoder until the next add; the encoder is then empty again. */
mr_status mr_example_finish(mr_example_encoder *encoder, mr_string *record, mr_error *error);
void mr_example_encoder_deinit(mr_example_encoder *encoder);

/* A SequenceExample: its context is an Example's features, added to `context`; beside it are feature lists, a feature for
 * each step. A list begins with the first step that is added under its name; steps of several lists may take turns.
 * Zero-initialised memory is an empty encoder. Failures are kept and equal SequenceExamples have equal bytes, as above. */
typedef struct mr_sequence_encoder {
    mr_example_encoder context;
    struct mr_example_state *lists;
} mr_sequence_encoder;
/* One more step of the list `name`: values are copied; count may be 0. */
void mr_sequence_add_bytes_list(mr_sequence_encoder *encoder, const char *name, const mr_string *values, size_t count);
void mr_sequence_add_int64_list(mr_sequence_encoder *encoder, const char *name, const int64_t *values, size_t count);
void mr_sequence_add_float_list(mr_sequence_encoder *encoder, const char *name, const float *values, size_t count);
/* The list is there also when no step is added: an empty list is not a missing one. */
void mr_sequence_add_list(mr_sequence_encoder *encoder, const char *name);
/* The serialised SequenceExample, borrowed from the encoder until the next add; the encoder is then empty again. */
mr_status mr_sequence_finish(mr_sequence_encoder *encoder, mr_string *record, mr_error *error);
void mr_sequence_encoder_deinit(mr_sequence_encoder *encoder);

/* ---- Look at one Example, feature by feature ---- */

typedef enum mr_feature_kind {
    MR_FEATURE_NONE = 0,
    MR_FEATURE_BYTES,
    MR_FEATURE_FLOAT,
    MR_FEATURE_INT64
} mr_feature_kind;

/* A feature on the wire: views into the record. */
typedef struct mr_feature_view {
    mr_string name;
    mr_feature_kind kind;
    mr_string list; /* the serialised BytesList, FloatList or Int64List */
} mr_feature_view;

/* Walks the features in file order; {.record = …} begins. Names that are there twice appear each time.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS with the byte where the message is damaged */
typedef struct mr_example_walk {
    mr_string record;
    size_t offset;
    size_t inner_offset, inner_end; /* inside the current Features message */
} mr_example_walk;
mr_status mr_example_next_feature(mr_example_walk *walk, mr_feature_view *feature, mr_error *error);
/* Values of a view: count, then all of them into an array of at least that many. */
mr_status mr_feature_count(const mr_feature_view *feature, size_t *count, mr_error *error);
mr_status mr_feature_bytes(const mr_feature_view *feature, mr_string *values, size_t capacity, mr_error *error);
mr_status mr_feature_floats(const mr_feature_view *feature, float *values, size_t capacity, mr_error *error);
mr_status mr_feature_int64s(const mr_feature_view *feature, int64_t *values, size_t capacity, mr_error *error);
/* The one value of a feature by name; MR_NOT_FOUND when missing, MR_INVALID_ARGUMENT when of another kind or count. */
mr_status mr_example_get_int64(mr_string record, const char *name, int64_t *value, mr_error *error);
mr_status mr_example_get_bytes(mr_string record, const char *name, mr_string *value, mr_error *error);
mr_status mr_example_get_float(mr_string record, const char *name, float *value, mr_error *error);

/* ---- What a record is ---- */

/* An Example and a SequenceExample begin alike: field 1 holds Features, the context of the latter. A record is
 *
 *   MR_EXAMPLE_SEQUENCE   when it has a field 2, every one of which is a map of names to lists of features
 *   MR_EXAMPLE_PLAIN      when it has a field 1 and no such field 2, or is empty
 *   MR_EXAMPLE_NONE       otherwise, and when its fields 1 are not maps of names to features: other bytes, or damage
 *
 * Values are not looked at, only names and kinds. */
typedef enum mr_example_form { MR_EXAMPLE_NONE = 0, MR_EXAMPLE_PLAIN, MR_EXAMPLE_SEQUENCE } mr_example_form;
mr_example_form mr_example_form_of(mr_string record);

/* ---- Look at one SequenceExample: its context with mr_example_next_feature, its feature lists with these ---- */

/* A list of features, one for each step: views into the record. */
typedef struct mr_feature_list_view {
    mr_string name;
    mr_string steps; /* the serialised FeatureList; mr_feature_list_next moves on in it */
} mr_feature_list_view;

/* Walks the feature lists in file order; {.record = …} begins, apart from the walk over the context. Names that are there
 * twice appear each time.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS with the byte where the message is damaged */
mr_status mr_sequence_next_list(mr_example_walk *walk, mr_feature_list_view *list, mr_error *error);
/* How many steps are left in a list. */
mr_status mr_feature_list_count(const mr_feature_list_view *list, size_t *count, mr_error *error);
/* The next step, with the list's name. A step may have no kind (MR_FEATURE_NONE), and each a kind of its own.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS */
mr_status mr_feature_list_next(mr_feature_list_view *list, mr_feature_view *step, mr_error *error);

/* ---- Parse into columns: tf.io.parse_example ---- */

typedef enum mr_feature_form {
    MR_FIXED = 0,      /* FixedLenFeature: [batch] + shape */
    MR_FIXED_SEQUENCE, /* FixedLenSequenceFeature, allow_missing: [batch, longest] + shape, padded with the default */
    MR_VARIABLE,       /* VarLenFeature: three tensors: indices [n, 2], values [n], dense shape [2] */
    MR_RAGGED,         /* RaggedFeature: values [n], row splits [batch + 1] of int64; splits [0] when single; then the
                          splits of each partition, the outermost first, but of uniform ones that nothing but uniform ones
                          follow: the last dimensions of the values are theirs */
    MR_SPARSE,         /* SparseFeature: three tensors: indices [n, 1 + rank], values [n], dense shape [1 + rank] */
} mr_feature_form;

/* How the values of a ragged feature are parted into rows (RaggedFeature.RowSplits and so on): by the values of another
 * feature of the same record, int64. What does not fit the values is an error, as with validate=True, in each record by
 * itself: in a batch TensorFlow moves values from one record to the next where their partitions fit them only together. */
typedef enum mr_partition_kind {
    MR_ROW_SPLITS = 0,     /* [0, …, n]; none at all for no values, but not when single */
    MR_ROW_LENGTHS,        /* their sum is n */
    MR_ROW_STARTS,         /* [0, …] */
    MR_ROW_LIMITS,         /* […, n] */
    MR_VALUE_ROWIDS,       /* a row for each value, never falling; below MR_VALUE_ROWID_LIMIT */
    MR_UNIFORM_ROW_LENGTH, /* no feature: every row has `length` values */
} mr_partition_kind;
#define MR_VALUE_ROWID_LIMIT (INT64_C(1) << 24)
typedef struct mr_partition {
    mr_partition_kind kind;
    const char *key; /* the other feature's name; null with MR_UNIFORM_ROW_LENGTH */
    int64_t length;  /* MR_UNIFORM_ROW_LENGTH; at least 1 */
} mr_partition;
#define MR_PARTITIONS_MAX (MR_RANK_MAX - 2)

/* One feature that is asked for. dtype MR_FLOAT, MR_INT64 or MR_STRING. */
typedef struct mr_feature {
    const char *name;
    mr_dtype dtype;
    mr_feature_form form;
    mr_shape shape;            /* MR_FIXED, MR_FIXED_SEQUENCE; MR_SCALAR for one value. MR_SPARSE: the size; rank ≥ 1 */
    const mr_tensor *fallback; /* MR_FIXED: as many values as the shape has, or null: the feature must be there;
                                  MR_FIXED_SEQUENCE: one value to pad with, or null: 0 and "" */
    /* MR_RAGGED, MR_SPARSE: the feature that holds the values; null: name. Several may ask for one, under other names. */
    const char *value_key;
    /* MR_SPARSE: for each dimension of shape the feature with the values' places in it, int64, from 0 below its size. */
    const char *const *index_keys;
    bool already_sorted; /* MR_SPARSE: leave values in their order; otherwise they are sorted by place */
    /* MR_RAGGED, the outermost first; at most MR_PARTITIONS_MAX. */
    const mr_partition *partitions;
    int32_t partition_count;
    mr_dtype splits_dtype; /* MR_RAGGED: MR_INT64 or MR_INT32; 0: MR_INT64 */
    bool allow_missing; /* MR_FIXED_SEQUENCE of a SequenceExample: a missing list is one without steps, not an error */
} mr_feature;

/* Tensors that a feature gives: 1, 3 for MR_VARIABLE and MR_SPARSE, 2 and more for MR_RAGGED. */
int32_t mr_feature_tensor_count(const mr_feature *feature);
/* dtype and shape of the feature's tensor `index`, unknown sizes -1.
 * batch  records in a batch; -1: unknown; MR_SINGLE: no batch dimension */
#define MR_SINGLE INT64_C(-2)
void mr_feature_tensor_spec(const mr_feature *feature, int64_t batch, int32_t index, mr_dtype *dtype, mr_shape *shape);

/* A parser for one set of features; it holds its tables and no record. Copies what it needs of the features.
 * errors   MR_INVALID_ARGUMENT: two features of one name, or one feature of the record asked for in ways that exclude each
 *          other (MR_VARIABLE goes with MR_SPARSE, and MR_RAGGED with itself, of one dtype); a dtype, shape, size or
 *          partition that cannot be; a fallback of wrong size
 * threads  parse is safe from any thread */
typedef struct mr_example_parser mr_example_parser;
mr_status mr_example_parser_new(const mr_feature *features, int32_t count, mr_example_parser **parser, mr_error *error);
void mr_example_parser_free(mr_example_parser *parser);

/* Finds the parser's features in one record, without copying: views[i] belongs to feature i (its values), with kind
 * MR_FEATURE_NONE when it is missing. Rules as for a single record; kinds and counts are not compared with what the parser
 * asks for.
 * errors   MR_DATA_LOSS with the byte where the message is damaged */
mr_status mr_example_find(const mr_example_parser *parser, mr_string record, mr_feature_view *views, mr_error *error);

/* Parses records into tensors, in the order of the features. One record parses to the same tensors without the batch
 * dimension when single is true (tf.io.parse_single_example; record_count is then 1).
 * tensors  owned by the caller; as many as the features give together
 * errors   MR_INVALID_ARGUMENT naming record number, feature and reason: missing, another kind, another length, a partition
 *          or place that does not fit; or for a negative count, or one other than 1 with single. MR_DATA_LOSS with the byte
 *          where the message is damaged */
mr_status mr_example_parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count, bool single,
                           mr_tensor *tensors, mr_error *error);

/* ---- Parse SequenceExamples into columns: tf.io.parse_sequence_example ----
 *
 * The context is parsed like an Example, to MR_FIXED, MR_VARIABLE and MR_RAGGED features. Of each feature list come
 *
 *   MR_FIXED_SEQUENCE  two tensors: [batch, longest] + shape, every step one shape full, padded with 0 and ""; and the
 *                      lengths [batch], [] when single. A missing list is an error unless allow_missing
 *   MR_VARIABLE        indices [n, 3] of record, step, place; values [n]; dense shape [3]
 *   MR_RAGGED          values [n]; row splits of the records' steps [batch + 1], [0] when single; of the steps' values;
 *                      then those of the partitions, which part each step's values by the same step of another list
 *
 * Here, unlike in an Example, a feature without a list is there and has no values, and the last of a name always wins. Three
 * forms that no writer makes are read as protobuf means them, where TensorFlow fails or loses its place: a value before
 * its name, and more bytes behind the list of a step, be they another packed chunk or other fields. A batch of no records is fine,
 * whatever is asked for. */

int32_t mr_sequence_tensor_count(const mr_feature *list);
void mr_sequence_tensor_spec(const mr_feature *list, int64_t batch, int32_t index, mr_dtype *dtype, mr_shape *shape);

/* As mr_example_parser_new; a name may be both in the context and among the lists. */
typedef struct mr_sequence_parser mr_sequence_parser;
mr_status mr_sequence_parser_new(const mr_feature *context, int32_t context_count, const mr_feature *lists,
                                 int32_t list_count, mr_sequence_parser **parser, mr_error *error);
void mr_sequence_parser_free(mr_sequence_parser *parser);

/* As mr_example_parse; the tensors of the context come first. Errors name the step too. */
mr_status mr_sequence_parse(const mr_sequence_parser *parser, const mr_string *records, int64_t record_count,
                            bool single, mr_tensor *tensors, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
