/* Place: where a pipeline stands, as bytes. Stages append their part and read it back in the same order.
 *
 * Numbers are varints, so that a place of a few stages is a few dozen bytes. A reader trusts nothing: what is cut short or
 * too large is an error, never memory. */
#ifndef MR_PIPELINE_STATE_H
#define MR_PIPELINE_STATE_H

#include <millrace/tensor.h>

/* A place holds at most this; buffers of stages are references, not elements, so it is far away. */
constexpr size_t MR_STATE_BYTES_MAX = (size_t)256 << 20;

/* {0} is empty. */
typedef struct mr_state {
    unsigned char *bytes; /* owned */
    size_t size_bytes, capacity_bytes;
} mr_state;

void mr_state_deinit(mr_state *place);
static inline void mr_state_clear(mr_state *place)
{
    place->size_bytes = 0;
}
mr_status mr_state_put(mr_state *place, uint64_t number, mr_error *error);
mr_status mr_state_put_bytes(mr_state *place, const void *bytes, size_t size_bytes, mr_error *error);
/* What the other place holds, as if it had been put here. */
mr_status mr_state_append(mr_state *place, const mr_state *other, mr_error *error);

/* dtype, shape and elements: for the few stages whose state is a value and no reference. */
mr_status mr_state_put_tensor(mr_state *place, const mr_tensor *tensor, mr_error *error);

/* Reads from borrowed bytes. */
typedef struct mr_state_reader {
    const unsigned char *next, *end;
} mr_state_reader;

mr_status mr_state_get(mr_state_reader *reader, uint64_t *number, mr_error *error);
/* A number of at most `most`. */
mr_status mr_state_get_below(mr_state_reader *reader, uint64_t most, uint64_t *number, mr_error *error);
/* 0 or 1. */
mr_status mr_state_get_bool(mr_state_reader *reader, bool *is_true, mr_error *error);
/* A number of parts that follow, each of which takes a byte at least: at most `most`, and no more than there are bytes, so
 * that it is safe to make room for them. */
mr_status mr_state_get_count(mr_state_reader *reader, uint64_t most, uint64_t *count, mr_error *error);
/* A view into what is read. */
mr_status mr_state_get_bytes(mr_state_reader *reader, const void **bytes, size_t *size_bytes, mr_error *error);
/* A tensor of its own, which the caller deinits. Its dtype, shape and booleans are valid ones. */
mr_status mr_state_get_tensor(mr_state_reader *reader, mr_tensor *tensor, mr_error *error);
/* MR_INVALID_ARGUMENT: what was read cannot be the state of this pipeline. */
mr_status mr_state_refuse(mr_error *error);
/* The same for a status that says that the data are shorter than the state: what a restore must not return. */
static inline mr_status mr_state_found(mr_status status, mr_error *error)
{
    return status == MR_OUT_OF_RANGE ? mr_state_refuse(error) : status;
}

#endif
