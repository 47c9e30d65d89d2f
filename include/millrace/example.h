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
 *     for an earlier one, but for MR_VARIABLE and MR_RAGGED in a batch it wins
 *   - a feature without a list is missing; an empty list is there and has no values
 *   - another kind than asked for is an error, even when empty
 *   - numbers may be packed or not, as the first tag says; of several packed chunks only the first is read
 *   - other fields of the Example are skipped; inside Features and its entries they are damage, as groups are everywhere
 *
 * One thing is stricter: a length that points behind its message is damage here, and TensorFlow reads what is there. */
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

/* ---- Parse into columns: tf.io.parse_example ---- */

typedef enum mr_feature_form {
    MR_FIXED = 0,      /* FixedLenFeature: [batch] + shape */
    MR_FIXED_SEQUENCE, /* FixedLenSequenceFeature, allow_missing: [batch, longest] + shape, padded with the default */
    MR_VARIABLE,       /* VarLenFeature: three tensors: indices [n, 2], values [n], dense shape [2] */
    MR_RAGGED, /* RaggedFeature: two tensors: values [n], row splits [batch + 1] of int64; splits [0] when single */
} mr_feature_form;

/* One feature that is asked for. dtype MR_FLOAT, MR_INT64 or MR_STRING. */
typedef struct mr_feature {
    const char *name;
    mr_dtype dtype;
    mr_feature_form form;
    mr_shape shape;            /* MR_FIXED, MR_FIXED_SEQUENCE; MR_SCALAR for one value */
    const mr_tensor *fallback; /* MR_FIXED: as many values as the shape has, or null: the feature must be there;
                                  MR_FIXED_SEQUENCE: one value to pad with, or null: 0 and "" */
} mr_feature;

/* Tensors that a feature gives: 1, 3 for MR_VARIABLE, 2 for MR_RAGGED. */
int32_t mr_feature_tensor_count(const mr_feature *feature);

/* A parser for one set of features; it holds its tables and no record. Copies what it needs of the features.
 * errors   MR_INVALID_ARGUMENT: a feature's name is twice there, a dtype or shape that cannot be, a fallback of wrong size
 * threads  parse is safe from any thread */
typedef struct mr_example_parser mr_example_parser;
mr_status mr_example_parser_new(const mr_feature *features, int32_t count, mr_example_parser **parser, mr_error *error);
void mr_example_parser_free(mr_example_parser *parser);

/* Finds the parser's features in one record, without copying: views[i] belongs to feature i, with kind MR_FEATURE_NONE when
 * it is missing. Rules as for a single record; kinds and counts are not compared with what the parser asks for.
 * errors   MR_DATA_LOSS with the byte where the message is damaged */
mr_status mr_example_find(const mr_example_parser *parser, mr_string record, mr_feature_view *views, mr_error *error);

/* Parses records into tensors, in the order of the features. One record parses to the same tensors without the batch
 * dimension when single is true (tf.io.parse_single_example; record_count is then 1).
 * tensors  owned by the caller; as many as the features give together
 * errors   MR_INVALID_ARGUMENT naming record number, feature and reason: missing, another kind, another length;
 *          MR_DATA_LOSS with the byte where the message is damaged */
mr_status mr_example_parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count, bool single,
                           mr_tensor *tensors, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
