/* Common code of reading and writing checkpoints: file names, and copies between a tensor and a slice of it. */
#ifndef MR_RECORDS_CHECKPOINT_PART_H
#define MR_RECORDS_CHECKPOINT_PART_H

#include "records/checkpoint/checkpoint.h"

/* "PREFIX.data-00000-of-00001", "PREFIX.index". Owned by the caller (free); null if memory is exhausted. */
char *mr_checkpoint_data_path(const char *prefix, int32_t shard, int32_t shard_count);
char *mr_checkpoint_index_path(const char *prefix);

/* The number of data files, from the checkpoint's header. */
int32_t mr_checkpoint_shard_count(const mr_checkpoint_reader *reader);

/* Copies a slice's elements between the full tensor's memory and the slice's own memory. The slice must be inside the
 * tensor. */
void mr_checkpoint_slice_copy(const mr_checkpoint_slice *slice, mr_shape full, size_t element_bytes, char *tensor,
                              char *part, bool into_tensor);

#endif
