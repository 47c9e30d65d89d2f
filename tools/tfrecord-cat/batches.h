/* The selected records in batches, for commands that spend long on each record: a batch is copied and processed by
 * several threads before the next one is read. */
#ifndef MR_TOOLS_TFRECORD_CAT_BATCHES_H
#define MR_TOOLS_TFRECORD_CAT_BATCHES_H

#include "common/pool.h"
#include "common/progress.h"
#include "tfrecord-cat/cat.h"

/* Limits of a batch: records, and their bytes in total (or one longer record). */
#define BATCH_RECORDS_MAX 4'096
#define BATCH_BYTES_MAX ((size_t)16 << 20)

typedef struct batch_item {
    record_position position;
    uint64_t ordinal; /* number among the selected records */
    void *result;     /* owned by the command; initially null */
} batch_item;

/* Processes items, on a pool if needed; false stops. May hide the progress line or set its note. */
typedef bool take_batch(void *context, pool *pool, progress *progress, batch_item *items, size_t count);
/* Returns the exit code of the walk.
 *
 * memory  as walk_records, plus 16 MiB or the longest record */
int batches_run(const options *options, const char *task, take_batch *take, void *context);

#endif
