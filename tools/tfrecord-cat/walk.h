/* Internals shared by walk.c and sample.c. */
#ifndef MR_TOOLS_TFRECORD_CAT_WALK_H
#define MR_TOOLS_TFRECORD_CAT_WALK_H

#include "tfrecord-cat/cat.h"

/* A file whose records are read by number. */
typedef struct numbered {
    const char *path;
    mr_record_file *file;
    uint64_t number, offset; /* a record and its offset */
    void *bytes;             /* owned; the record read last */
    size_t capacity;
} numbered;

/* False when records cannot be read by number: a pipe, a compressed file without an index, damaged headers. */
bool numbered_open(numbered *numbered, const char *path);
/* The record is valid until the next read. */
mr_status numbered_read(numbered *numbered, uint64_t number, record_position *position, mr_error *error);
void numbered_close(numbered *numbered);

/* A record of a sample. */
typedef struct drawn {
    uint64_t key;    /* the smallest keys form the sample */
    uint64_t number; /* across all files */
    record_position position;
    char *bytes; /* owned; null if the file can be read again */
} drawn;

/* Every record has a key computed from seed and number; the N smallest keys are the sample, so the result does not
 * depend on how records are found. The largest key of the sample is at the top of a heap. */
typedef struct sample {
    const options *options;
    drawn *heap; /* owned */
    size_t count, capacity;
    bool is_seekable; /* the current file can be read by number */
} sample;

void sample_init(sample *sample, const options *options);
void sample_begin_file(sample *sample, const char *path);
/* False: no memory, as reported. */
bool sample_offer(sample *sample, uint64_t number, const record_position *position);
/* Passes the records to take, in order; returns the exit code. */
int sample_deliver(sample *sample, take_record *take, void *context);
void sample_deinit(sample *sample);

/* State of a walk across files. */
typedef struct walk {
    const options *options;
    take_record *take;
    void *context;
    where_state *where;
    sample *sample;
    uint64_t before; /* records in the files before this one */
    uint64_t taken;
    bool is_done, has_failed;
} walk;

/* Prefixes the message with file, record and byte offset. */
void name_position(const record_position *position, mr_error *error);

#endif
