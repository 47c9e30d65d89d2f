/* Checkpoint parts that the Saver needs beyond <millrace/saver.h>: slices of partitioned variables, and the file
 * "checkpoint" that names the latest ones.
 *
 * PREFIX.index is a table (table.h): key "" holds a BundleHeaderProto, every other key a BundleEntryProto that says where
 * the tensor lies in PREFIX.data-SHARD-of-SHARDS. A partitioned tensor's entry lists its slices; each slice has an entry
 * of its own, under a key that encodes name and extent. A number tensor's bytes are its elements; a string tensor's are
 * the lengths as varints, their masked checksum, and the bytes. */
#ifndef MR_RECORDS_CHECKPOINT_H
#define MR_RECORDS_CHECKPOINT_H

#include "base/arena.h"
#include <millrace/saver.h>

/* Part of a tensor: in each dimension, length elements from start. length -1: the whole dimension, start is then 0. */
typedef struct mr_checkpoint_slice {
    int32_t rank;
    int64_t starts[MR_RANK_MAX];
    int64_t lengths[MR_RANK_MAX];
} mr_checkpoint_slice;

/* Parses what SaveV2 and RestoreV2 take as shape_and_slice: "" (the whole tensor: *is_slice is false), or the full shape
 * and the extents, "10 4 0,5:-".
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_checkpoint_slice_parse(mr_string text, bool *is_slice, mr_shape *full, mr_checkpoint_slice *slice,
                                    mr_error *error);

/* Writes a slice of the tensor key, whose full shape is given. Slices of one key must not overlap. */
mr_status mr_checkpoint_write_slice(mr_checkpoint_writer *writer, const char *key, mr_shape full,
                                    const mr_checkpoint_slice *slice, const mr_tensor *value, mr_error *error);
/* Reads a slice of a tensor, however that was saved. */
mr_status mr_checkpoint_read_slice(mr_checkpoint_reader *reader, const char *key, const mr_checkpoint_slice *slice,
                                   mr_tensor *value, mr_error *error);

/* The key of a slice: TensorFlow's ordered code of (0, name, rank, start, length, …). In the arena. */
mr_status mr_checkpoint_slice_key(const char *name, const mr_checkpoint_slice *slice, mr_arena *arena, mr_string *key,
                                  mr_error *error);
/* The slice's own shape within full. errors: MR_INVALID_ARGUMENT when it does not lie inside. */
mr_status mr_checkpoint_slice_shape(const mr_checkpoint_slice *slice, mr_shape full, mr_shape *shape, mr_error *error);

/* What directory/checkpoint says. Paths are put together with the directory. */
typedef struct mr_checkpoint_state {
    mr_arena arena;
    const char *latest; /* null: none */
    int32_t count;
    const char **paths; /* oldest first */
} mr_checkpoint_state;
/* errors  MR_NOT_FOUND when there is no such file, MR_DATA_LOSS when it is not in protobuf's text form */
mr_status mr_checkpoint_state_read(const char *directory, mr_checkpoint_state *state, mr_error *error);
void mr_checkpoint_state_deinit(mr_checkpoint_state *state);
/* Replaces directory/checkpoint. Paths inside the directory are written relative to it, so that the directory can be moved. The
 * last path is the latest. */
mr_status mr_checkpoint_state_write(const char *directory, const char *const *paths, int32_t count, mr_error *error);
/* Removes a checkpoint's files: the index first, so that it is never there without its data. */
mr_status mr_checkpoint_remove(const char *path, mr_error *error);

#endif
