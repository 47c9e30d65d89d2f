/* The internal part of checkpoints, which the Saver needs in addition to <millrace/saver.h>: slices of partitioned
 * variables, and the file "checkpoint" that names the latest checkpoints.
 *
 * PREFIX.index is a table (table.h). Its key "" holds a BundleHeaderProto; every other key holds a BundleEntryProto,
 * which gives the tensor's position in PREFIX.data-SHARD-of-SHARDS. The entry of a partitioned tensor lists its slices;
 * each slice has an entry of its own, under a key that encodes name and extent. The bytes of a numeric tensor are its
 * elements; those of a string tensor are the lengths as varints, their masked checksum, and the bytes of the
 * strings. */
#ifndef MR_RECORDS_CHECKPOINT_H
#define MR_RECORDS_CHECKPOINT_H

#include "base/arena.h"
#include <millrace/saver.h>

/* Part of a tensor: in each dimension, `length` elements from `start`. length -1: the complete dimension; start is then
 * 0. */
typedef struct mr_checkpoint_slice {
    int32_t rank;
    int64_t starts[MR_RANK_MAX];
    int64_t lengths[MR_RANK_MAX];
} mr_checkpoint_slice;

/* Parses the shape_and_slice argument of SaveV2 and RestoreV2: "" (the complete tensor: *is_slice is false), or the
 * full shape and the extents, "10 4 0,5:-".
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_checkpoint_slice_parse(mr_string text, bool *is_slice, mr_shape *full, mr_checkpoint_slice *slice,
                                    mr_error *error);

/* Writes a slice of tensor `key` with the full shape `full`. The slices of a key must not overlap. */
mr_status mr_checkpoint_write_slice(mr_checkpoint_writer *writer, const char *key, mr_shape full,
                                    const mr_checkpoint_slice *slice, const mr_tensor *value, mr_error *error);
/* Reads a slice of a tensor, whether it was saved complete or in other slices.
 * full    null, or the shape that the tensor must have
 * errors  MR_INVALID_ARGUMENT: another shape, or the slice is not inside it */
mr_status mr_checkpoint_read_slice(mr_checkpoint_reader *reader, const char *key, const mr_shape *full,
                                   const mr_checkpoint_slice *slice, mr_tensor *value, mr_error *error);

/* Writes a tensor of another checkpoint. Of a tensor in slices, those that the checkpoint contains are written. */
mr_status mr_checkpoint_copy(mr_checkpoint_reader *reader, const char *key, mr_checkpoint_writer *writer,
                             mr_error *error);

/* The key of a slice: TensorFlow's ordered code of (0, name, rank, start, length, …). Allocated in the arena. */
mr_status mr_checkpoint_slice_key(const char *name, const mr_checkpoint_slice *slice, mr_arena *arena, mr_string *key,
                                  mr_error *error);
/* The shape of the slice within `full`.
 * errors  MR_INVALID_ARGUMENT if the slice is not inside the shape */
mr_status mr_checkpoint_slice_shape(const mr_checkpoint_slice *slice, mr_shape full, mr_shape *shape, mr_error *error);

/* The file in a directory that names its checkpoints, unless a saver has another one. */
#define MR_CHECKPOINT_STATE_FILE "checkpoint"
/* The contents of DIRECTORY/checkpoint. Relative paths are joined with the directory. */
typedef struct mr_checkpoint_state {
    mr_arena arena;
    const char *latest; /* null: none */
    int32_t count;
    const char **paths; /* oldest first */
} mr_checkpoint_state;
/* file    in the directory; null: "checkpoint"
 * errors  MR_NOT_FOUND if the file does not exist, MR_DATA_LOSS if it is not in protobuf's text format */
mr_status mr_checkpoint_state_read(const char *directory, const char *file, mr_checkpoint_state *state,
                                   mr_error *error);
void mr_checkpoint_state_deinit(mr_checkpoint_state *state);
/* Replaces DIRECTORY/checkpoint. Paths inside the directory are written relative to it, so that the directory can be
 * moved. The last path is the latest. */
mr_status mr_checkpoint_state_write(const char *directory, const char *file, const char *const *paths, int32_t count,
                                    mr_error *error);
/* Whether the name can be that of such a file: not empty, without a slash. */
bool mr_checkpoint_state_name_is_valid(const char *file);
/* Removes a checkpoint's files. The index is removed first, so that it never exists without its data. */
mr_status mr_checkpoint_remove(const char *path, mr_error *error);

#endif
