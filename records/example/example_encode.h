/* What the encoders of Example and SequenceExample share: named features, serialised as they are added, in one buffer. */
#ifndef MR_RECORDS_EXAMPLE_ENCODE_H
#define MR_RECORDS_EXAMPLE_ENCODE_H

#include "records/example/example_wire.h"

/* A name and a serialised Feature, both in parts. */
typedef struct mr_encoded {
    size_t name_offset, name_size;
    size_t feature_offset, feature_size;
} mr_encoded;

/* A feature list that has no step: feature_size of its entry. */
#define MR_ENCODED_NO_STEP SIZE_MAX

/* Bytes that grow. */
typedef struct mr_encoded_bytes {
    unsigned char *data;
    size_t size, capacity;
} mr_encoded_bytes;

struct mr_example_state {
    mr_encoded_bytes parts; /* names and serialised Features, as they were added */
    mr_encoded_bytes record;
    mr_encoded *entries;
    size_t count, capacity;
    mr_error fault; /* the first */
};

/* Never null: without memory a state whose fault says so. */
struct mr_example_state *mr_encoded_state(struct mr_example_state **state);
void mr_encoded_add_bytes(struct mr_example_state **state, const char *name, const mr_string *values, size_t count);
void mr_encoded_add_int64s(struct mr_example_state **state, const char *name, const int64_t *values, size_t count);
void mr_encoded_add_floats(struct mr_example_state **state, const char *name, const float *values, size_t count);
/* A name alone, with feature_size MR_ENCODED_NO_STEP. */
void mr_encoded_add_name(struct mr_example_state **state, const char *name);

/* Sorts the entries by name, in the order they were added where names are equal. */
void mr_encoded_sort(struct mr_example_state *state);
int mr_encoded_compare_names(const struct mr_example_state *state, const mr_encoded *a, const mr_encoded *b);
/* The bytes of Features, when sorted. errors: the first fault of an add; a name that is there twice */
mr_status mr_encoded_features_size(const struct mr_example_state *state, size_t *size_bytes, mr_error *error);
unsigned char *mr_encoded_put_features(const struct mr_example_state *state, unsigned char *next);

/* Room for size more bytes, or null. */
unsigned char *mr_encoded_reserve(mr_encoded_bytes *target, size_t size);
/* Tag and length of a field of size bytes. */
unsigned char *mr_encoded_put_head(unsigned char *next, int field, size_t size);
/* A field of so many bytes, with its head. */
size_t mr_encoded_field_size(size_t size);

/* Empties a state that mr_encoded_state gave, its fault too. */
void mr_encoded_clear(struct mr_example_state **state);
void mr_encoded_free(struct mr_example_state *state); /* null is allowed */

#endif
