/* What reading and writing of checkpoints share: names of files, copies between a tensor and a slice of it. */
#ifndef MR_RECORDS_CHECKPOINT_PART_H
#define MR_RECORDS_CHECKPOINT_PART_H

#include "records/checkpoint/checkpoint.h"

/* "PREFIX.data-00000-of-00001", "PREFIX.index"; malloced, null without memory. */
char *mr_checkpoint_data_path(const char *prefix, int32_t shard, int32_t shard_count);
char *mr_checkpoint_index_path(const char *prefix);

/* Data files of the checkpoint, as its header says. */
int32_t mr_checkpoint_shard_count(const mr_checkpoint_reader *reader);

/* Copies a slice's elements between the full tensor's memory and the slice's own; the slice lies inside (checked). */
void mr_checkpoint_slice_copy(const mr_checkpoint_slice *slice, mr_shape full, size_t element_bytes, char *whole,
                              char *part, bool into_whole);

#endif
