/* See batches.h. */
#include "tfrecord-cat/batches.h"

#include "tfrecord-cat/walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Memory that one long record needed is released. */
static constexpr size_t KEPT_BYTES = 2 * BATCH_BYTES_MAX;

typedef struct batches {
    take_batch *take;
    void *context;
    pool *pool;
    progress progress;
    batch_item *items;
    size_t count;
    char *bytes;
    size_t size, capacity;
    uint64_t ordinal, read_bytes;
    bool is_over, has_failed;
} batches;

/* False to stop. */
static bool flush(batches *batches)
{
    const char *at = batches->bytes;
    uint64_t units = batches->read_bytes >> 20;
    if (batches->count == 0 || batches->is_over) return !batches->is_over;
    for (size_t i = 0; i < batches->count; i++) {
        batches->items[i].position.record.data = at;
        at += batches->items[i].position.record.size_bytes;
    }
    assert(at == batches->bytes + batches->size);
    if (!batches->take(batches->context, batches->pool, &batches->progress, batches->items, batches->count))
        batches->is_over = true;
    batches->read_bytes += batches->size;
    progress_add(&batches->progress, (batches->read_bytes >> 20) - units);
    batches->count = batches->size = 0;
    if (batches->capacity > KEPT_BYTES) {
        free(batches->bytes);
        batches->bytes = nullptr;
        batches->capacity = 0;
    }
    return !batches->is_over;
}

static bool gather(void *context, const record_position *position)
{
    batches *batches = context;
    size_t size = position->record.size_bytes;
    if ((batches->count == BATCH_RECORDS_MAX || batches->size + size > BATCH_BYTES_MAX) && !flush(batches))
        return false;
    if (batches->size + size > batches->capacity) {
        size_t capacity = size > BATCH_BYTES_MAX ? size : BATCH_BYTES_MAX;
        char *grown = realloc(batches->bytes, capacity);
        if (!grown) {
            batches->has_failed = print_no_memory();
            return false;
        }
        batches->bytes = grown;
        batches->capacity = capacity;
    }
    assert(batches->count < BATCH_RECORDS_MAX && size <= batches->capacity - batches->size);
    if (size > 0) memcpy(batches->bytes + batches->size, position->record.data, size);
    batches->items[batches->count++] = (batch_item){.position = *position, .ordinal = batches->ordinal++};
    batches->size += size;
    return true;
}

int batches_run(const options *options, const char *task, take_batch *take, void *context)
{
    batches batches = {.take = take, .context = context};
    mr_error error = {0};
    batches.items = malloc(BATCH_RECORDS_MAX * sizeof(batch_item));
    if (!batches.items) return print_no_memory();
    if (pool_new(thread_count(options), &batches.pool, &error) != MR_OK) {
        free(batches.items);
        return print_error(&error);
    }
    progress_begin(&batches.progress, task, "MiB", walk_selects(options) ? 0 : total_mib(options));
    int exit_code = walk_records(options, gather, &batches);
    (void)flush(&batches);
    progress_end(&batches.progress);
    pool_free(batches.pool);
    free(batches.items);
    free(batches.bytes);
    return batches.has_failed ? 1 : exit_code;
}
