/* Archives as samples: data that listing (source_tar.c) keeps for reading (source_tar_read.c). */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_TAR_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_TAR_H

#include "tfrecord-make/columns.h"

#include <millrace/formats.h>

/* In row.label: no .cls; a .cls without a label. */
static constexpr int32_t TAR_LABEL_NONE = -1, TAR_LABEL_FAULT = -2;
/* Maximum size of a feature's name, which is a member's extension. */
static constexpr size_t TAR_KEY_BYTES = 256;

typedef struct archive {
    char *path;          /* owned */
    mr_input_file *file; /* owned; null: opened for each read */
} archive;

/* Consecutive members of a sample. */
typedef struct piece {
    uint64_t offset; /* of the header of the first member */
    uint32_t next;   /* one more than the number of the sample's next piece; 0: none */
} piece;

typedef struct archives {
    archive *items; /* owned */
    int32_t count;
    piece *pieces; /* owned; row.position is the number of the sample's first piece */
    uint32_t piece_count;
    columns fields; /* of the .json members */
    names labels;   /* while listing */
} archives;

/* The length of the part of a member's name that identifies its sample; *ending is the part after the dot. 0: none. */
size_t tar_sample_size(const char *name, const char **ending);
bool tar_is_image_ending(const char *ending);
/* Converts an extension to a feature's name. False: too long. */
bool tar_key(const char *ending, char *key, size_t size_bytes);
/* Reads a member of at most size_max bytes. */
mr_status tar_read_member(const mr_input_file *file, const mr_tar_member *member, uint64_t size_max,
                          source_bytes *bytes, mr_error *error);
extern const source_functions tar_functions;

#endif
