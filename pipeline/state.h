/* State: the serialized state of a pipeline. Stages append their parts and read them back in the same order.
 *
 * Numbers are varints, so the state of a few stages takes a few dozen bytes. Readers validate all input: truncated or
 * oversized data is an error, and never causes a large allocation. */
#ifndef MR_PIPELINE_STATE_H
#define MR_PIPELINE_STATE_H

#include <millrace/tensor.h>

/* Maximum size of a state. Stages save references, not elements, so real states are far smaller. */
constexpr size_t MR_STATE_BYTES_MAX = (size_t)256 << 20;

/* {0} is empty. */
typedef struct mr_state {
    unsigned char *bytes; /* owned */
    size_t size_bytes, capacity_bytes;
} mr_state;

void mr_state_deinit(mr_state *state);
static inline void mr_state_clear(mr_state *state)
{
    state->size_bytes = 0;
}
mr_status mr_state_put(mr_state *state, uint64_t number, mr_error *error);
mr_status mr_state_put_bytes(mr_state *state, const void *bytes, size_t size_bytes, mr_error *error);
/* Appends the content of another state. */
mr_status mr_state_append(mr_state *state, const mr_state *other, mr_error *error);

/* dtype, shape and elements; for the few stages whose state is a value. */
mr_status mr_state_put_tensor(mr_state *state, const mr_tensor *tensor, mr_error *error);

/* Reads from borrowed bytes. */
typedef struct mr_state_reader {
    const unsigned char *next, *end;
} mr_state_reader;

mr_status mr_state_get(mr_state_reader *reader, uint64_t *number, mr_error *error);
/* A number ≤ most. */
mr_status mr_state_get_below(mr_state_reader *reader, uint64_t most, uint64_t *number, mr_error *error);
/* Fails unless the number is 0 or 1. */
mr_status mr_state_get_bool(mr_state_reader *reader, bool *is_true, mr_error *error);
/* The number of parts that follow, each of at least one byte: fails if it exceeds `most` or the remaining bytes. It is
 * therefore safe to allocate memory for them. */
mr_status mr_state_get_count(mr_state_reader *reader, uint64_t most, uint64_t *count, mr_error *error);
/* A view into the bytes that are read. */
mr_status mr_state_get_bytes(mr_state_reader *reader, const void **bytes, size_t *size_bytes, mr_error *error);
/* An owned tensor, with a valid dtype, shape and booleans. */
mr_status mr_state_get_tensor(mr_state_reader *reader, mr_tensor *tensor, mr_error *error);
/* Returns MR_INVALID_ARGUMENT: the bytes are not a state of this pipeline. */
mr_status mr_state_refuse(mr_error *error);
/* The same for MR_OUT_OF_RANGE, which means that the data are shorter than the state; restore must not return it. */
static inline mr_status mr_state_found(mr_status status, mr_error *error)
{
    return status == MR_OUT_OF_RANGE ? mr_state_refuse(error) : status;
}

#endif
