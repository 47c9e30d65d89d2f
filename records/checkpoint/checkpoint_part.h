/* Common code of reading and writing checkpoints: file names, and copies between a tensor and a slice of it. */
#ifndef MR_RECORDS_CHECKPOINT_PART_H
#define MR_RECORDS_CHECKPOINT_PART_H

#include "records/checkpoint/checkpoint.h"

/* "PREFIX.data-00000-of-00001", "PREFIX.index". Owned by the caller (free); null if memory is exhausted. */
char *mr_checkpoint_data_path(const char *prefix, int32_t shard, int32_t shard_count);
char *mr_checkpoint_index_path(const char *prefix);

/* Whether "PREFIX.suffix" can be the file of a graph: the checkpoint's own files have other names. */
bool mr_checkpoint_suffix_is_valid(const char *suffix);

/* Fails with MR_INVALID_ARGUMENT unless the directory is not null, and the file null or the name of a file.
 * function  for the message */
mr_status mr_checkpoint_check_names(const char *function, const char *directory, const char *file, mr_error *error);
/* Copies a path into the caller's memory; MR_INVALID_ARGUMENT if it does not fit. */
mr_status mr_checkpoint_copy_path(const char *from, char *path, size_t path_size, mr_error *error);

/* The number of data files, from the checkpoint's header. */
int32_t mr_checkpoint_shard_count(const mr_checkpoint_reader *reader);

/* Copies a slice's elements between the full tensor's memory and the slice's own memory. The slice must be inside the
 * tensor. */
void mr_checkpoint_slice_copy(const mr_checkpoint_slice *slice, mr_shape full, size_t element_bytes, char *tensor,
                              char *part, bool into_tensor);

/* The elements of a slice in a V1 checkpoint, from the value of its key.
 * arena   for the message
 * errors  without the file's name */
mr_status mr_checkpoint_v1_decode(mr_string bytes, mr_dtype dtype, mr_shape shape, mr_arena *arena, mr_tensor *value,
                                  mr_error *error);
/* The files of a V1 checkpoint: path itself, or its shards, path-00000-of-00002 and so on.
 * *paths  owned: free() each and the array. None if there is no such file */
mr_status mr_checkpoint_v1_files(const char *path, char ***paths, int32_t *count, mr_error *error);
/* Whether such a file exists. */
bool mr_checkpoint_is_v1(const char *path);

/* What a V1 checkpoint saves under one key: a tensor, or a slice of one. */
typedef struct mr_checkpoint_v1_item {
    const char *key;
    mr_shape full;             /* of the complete tensor */
    mr_checkpoint_slice slice; /* with length -1 in each dimension: the complete tensor */
    const mr_tensor *value;
} mr_checkpoint_v1_item;
/* Writes a V1 checkpoint of one file. Sorts the items.
 * errors  MR_INVALID_ARGUMENT: a slice occurs twice */
mr_status mr_checkpoint_v1_write(const char *path, mr_checkpoint_v1_item *items, int32_t count, mr_error *error);

#endif
