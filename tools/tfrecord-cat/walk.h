/* What walk.c and sample.c share. */
#ifndef MR_TOOLS_TFRECORD_CAT_WALK_H
#define MR_TOOLS_TFRECORD_CAT_WALK_H

#include "tools/tfrecord-cat/cat.h"

/* A file read by number. */
typedef struct numbered {
    const char *path;
    mr_record_file *file;
    uint64_t number, offset; /* a record, and where it lies */
    void *bytes;             /* owned; of the record read last */
    size_t capacity;
} numbered;

/* False when it cannot be read so: a pipe, a compressed file without an index, headers that are damaged. */
bool numbered_open(numbered *numbered, const char *path);
/* The record is good until the next read. */
mr_status numbered_read(numbered *numbered, uint64_t number, place *place, mr_error *error);
void numbered_close(numbered *numbered);

/* A record of a sample. */
typedef struct drawn {
    uint64_t key;    /* what it is drawn by */
    uint64_t number; /* through all files */
    place place;
    char *bytes; /* owned; null where the file can be read again */
} drawn;

/* Every record has a key that follows from seed and number; the N least keys are the sample. So it does not matter in which
 * way records are found. The greatest key drawn so far is at the top of a heap. */
typedef struct sample {
    const options *options;
    drawn *heap; /* owned */
    size_t count, capacity;
    bool is_seekable; /* the file at hand can be read by number */
} sample;

void sample_init(sample *sample, const options *options);
void sample_begin_file(sample *sample, const char *path);
/* False: no memory, which was told. */
bool sample_offer(sample *sample, uint64_t number, const place *place);
/* The records, in order; returns the exit code. */
int sample_give(sample *sample, take_record *take, void *context);
void sample_deinit(sample *sample);

/* What goes from file to file. */
typedef struct walk {
    const options *options;
    take_record *take;
    void *context;
    where_state *where;
    sample *sample;
    uint64_t before; /* records of the files before this one */
    uint64_t taken;
    bool is_done, has_failed;
} walk;

/* Puts file, record and byte before the message. */
void name_place(const place *place, mr_error *error);

#endif
