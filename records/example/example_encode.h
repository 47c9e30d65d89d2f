/* Common code of the Example and SequenceExample encoders: named features, serialized into one buffer as they are
 * added. */
#ifndef MR_RECORDS_EXAMPLE_ENCODE_H
#define MR_RECORDS_EXAMPLE_ENCODE_H

#include "records/example/example_wire.h"

/* Offsets and sizes of a name and its serialized Feature in `parts`. */
typedef struct mr_encoded {
    size_t name_offset, name_size;
    size_t feature_offset, feature_size;
} mr_encoded;

/* feature_size of the entry of a feature list without steps. */
#define MR_ENCODED_NO_STEP SIZE_MAX

/* A growable byte buffer. */
typedef struct mr_encoded_bytes {
    unsigned char *data;
    size_t size, capacity;
} mr_encoded_bytes;

struct mr_example_state {
    mr_encoded_bytes parts; /* names and serialized Features, in the order they were added */
    mr_encoded_bytes record;
    mr_encoded *entries;
    size_t count, capacity;
    mr_error fault; /* the first error of an add */
};

/* The state, created on first use. Never null: if memory is exhausted, a static state whose fault reports it. */
struct mr_example_state *mr_encoded_state(struct mr_example_state **state);
void mr_encoded_add_bytes(struct mr_example_state **state, const char *name, const mr_string *values, size_t count);
void mr_encoded_add_int64s(struct mr_example_state **state, const char *name, const int64_t *values, size_t count);
void mr_encoded_add_floats(struct mr_example_state **state, const char *name, const float *values, size_t count);
/* Adds a name without a Feature; the entry's feature_size is MR_ENCODED_NO_STEP. */
void mr_encoded_add_name(struct mr_example_state **state, const char *name);

/* Sorts the entries by name. Entries of equal names stay in the order they were added. */
void mr_encoded_sort(struct mr_example_state *state);
int mr_encoded_compare_names(const struct mr_example_state *state, const mr_encoded *a, const mr_encoded *b);
/* The size of the serialized Features message; the entries must be sorted.
 * errors  the first error of an add; MR_INVALID_ARGUMENT if a name was added twice */
mr_status mr_encoded_features_size(const struct mr_example_state *state, size_t *size_bytes, mr_error *error);
unsigned char *mr_encoded_put_features(const struct mr_example_state *state, unsigned char *next);

/* Reserves size more bytes; null if memory is exhausted. */
unsigned char *mr_encoded_reserve(mr_encoded_bytes *target, size_t size);
/* Writes the tag and the length of a field of size bytes. */
unsigned char *mr_encoded_put_head(unsigned char *next, int field, size_t size);
/* The size of a field of size bytes, including tag and length. */
size_t mr_encoded_field_size(size_t size);

/* Empties a state returned by mr_encoded_state and clears its error. */
void mr_encoded_clear(struct mr_example_state **state);
void mr_encoded_free(struct mr_example_state *state); /* null is allowed */

#endif
