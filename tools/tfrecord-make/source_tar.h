/* Archives as samples: what listing (source_tar.c) keeps for reading (source_tar_read.c). */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_TAR_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_TAR_H

#include "tools/tfrecord-make/columns.h"

#include <millrace/formats.h>

/* In row.label: no .cls; one that holds no label. */
static constexpr int32_t TAR_LABEL_NONE = -1, TAR_LABEL_FAULT = -2;
/* Room for the name of a feature, which is a member's ending. */
static constexpr size_t TAR_KEY_BYTES = 256;

typedef struct archive {
    char *path;          /* owned */
    mr_input_file *file; /* owned; null: opened when it is read */
} archive;

/* Members of a sample that follow one another. */
typedef struct piece {
    uint64_t offset; /* of the first one's header */
    uint32_t next;   /* one more than the number of the piece where the sample goes on; 0: nowhere */
} piece;

typedef struct archives {
    archive *items; /* owned */
    int32_t count;
    piece *pieces; /* owned; row.place is the number of the first */
    uint32_t piece_count;
    columns fields; /* of the .json members */
    names labels;   /* while listing */
} archives;

/* The length of the part of a member's name that its sample shares, and what follows its dot; 0: none. */
size_t tar_sample_size(const char *name, const char **ending);
bool tar_is_image_ending(const char *ending);
/* A feature's name from an ending. False: too long. */
bool tar_key(const char *ending, char *key, size_t size_bytes);
/* Reads a member of at most size_max bytes. */
mr_status tar_read_member(const mr_input_file *file, const mr_tar_member *member, uint64_t size_max,
                          source_bytes *bytes, mr_error *error);
extern const source_functions tar_functions;

#endif
