/* The selected records in batches, for commands that need long for each: a batch is copied, worked on by several threads,
 * and then the next one is read. */
#ifndef MR_TOOLS_TFRECORD_CAT_BATCHES_H
#define MR_TOOLS_TFRECORD_CAT_BATCHES_H

#include "base/pool.h"
#include "tools/common/progress.h"
#include "tools/tfrecord-cat/cat.h"

/* A batch has at most so many records, of so many bytes together or one longer record. */
#define BATCH_RECORDS_MAX 4'096
#define BATCH_BYTES_MAX ((size_t)16 << 20)

typedef struct batch_item {
    place place;
    uint64_t ordinal; /* among the selected records */
    void *result;     /* the command's own; null at first */
} batch_item;

/* Takes items, with a pool to work on them; false ends. The progress line may be hidden and given a note. */
typedef bool take_batch(void *context, mr_pool *pool, progress *progress, batch_item *items, size_t count);
/* Returns the exit code of the walk.
 *
 * memory  as walk_records; 16 MiB or the longest record more */
int batches_run(const options *options, const char *task, take_batch *take, void *context);

#endif
