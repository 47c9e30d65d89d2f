/* --shuffle: writes all selected records in an order that depends only on the seed and their number.
 *
 * The position of each record in the new order is computed, so one sequential pass over the input can distribute the
 * records to buckets: bucket b receives the records of the b-th part of the new order. Then each bucket is loaded and
 * written in its order. Buckets are stored in one unnamed file, as chains of chunks; if everything fits into memory
 * there is one bucket and no file. All disk I/O is in large pieces. */
#include "common/file.h"
#include "common/random.h"
#include "tfrecord-cat/rewrite.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr uint64_t MEMORY_BYTES = (uint64_t)512 << 20;
static constexpr uint64_t MEMORY_BYTES_MIN = (uint64_t)4 << 20;
static constexpr size_t CHUNK_BYTES_MIN = (size_t)16 << 10;
static constexpr size_t CHUNK_BYTES_MAX = (size_t)1 << 20;
/* Precedes each record in a bucket: its position and size. */
static constexpr size_t HEAD_BYTES = 16;

typedef struct chunk {
    uint64_t offset, size_bytes; /* in the scratch file */
} chunk;

typedef struct bucket {
    uint64_t count, size_bytes; /* number of records; bytes including their heads */
    unsigned char *bytes;       /* owned; bytes not yet in the scratch file */
    size_t used, capacity;
    chunk *chunks; /* owned */
    size_t chunk_count, chunk_capacity;
} bucket;

/* The position of a record of the loaded bucket in the output, and its offset in the bucket. */
typedef struct entry {
    uint64_t position, offset, size_bytes;
} entry;

typedef struct shuffle {
    const totals *totals;
    permutation permutation;
    uint64_t memory_bytes, dealt;
    size_t chunk_bytes;
    uint64_t bucket_count;
    bucket *buckets; /* owned */
    int scratch;     /* -1: not needed */
    uint64_t scratch_bytes;
    const char *near;
    pass pass;
    mr_error error;
} shuffle;

/* ---- The scratch file ---- */

static mr_status write_at(const shuffle *s, const void *bytes, size_t size, uint64_t offset, mr_error *error)
{
    const char *next = bytes;
    while (size > 0) {
        ssize_t written = pwrite(s->scratch, next, size < (1u << 30) ? size : 1u << 30, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return file_fail(error, errno, "write a temporary file next to", s->near);
        next += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return MR_OK;
}

static mr_status append_chunk(shuffle *s, bucket *bucket, const void *bytes, size_t size, mr_error *error)
{
    if (size == 0) return MR_OK;
    if (bucket->chunk_count == bucket->chunk_capacity) {
        size_t grown = bucket->chunk_capacity ? 2 * bucket->chunk_capacity : 16;
        chunk *chunks = realloc(bucket->chunks, grown * sizeof(chunk));
        if (!chunks) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for the list of chunks");
        bucket->chunks = chunks;
        bucket->chunk_capacity = grown;
    }
    assert(s->scratch >= 0 && bucket->chunk_count < bucket->chunk_capacity);
    MR_TRY(write_at(s, bytes, size, s->scratch_bytes, error));
    bucket->chunks[bucket->chunk_count++] = (chunk){s->scratch_bytes, size};
    s->scratch_bytes += size;
    return MR_OK;
}

/* Reads bytes of a bucket, at an offset in the bucket, from the scratch file. */
static mr_status read_bucket(const shuffle *s, const bucket *bucket, uint64_t offset, void *bytes, uint64_t size,
                             mr_error *error)
{
    char *next = bytes;
    uint64_t begin = 0;
    for (size_t i = 0; i < bucket->chunk_count && size > 0; begin += bucket->chunks[i++].size_bytes) {
        chunk chunk = bucket->chunks[i];
        if (offset >= begin + chunk.size_bytes) continue;
        uint64_t inside = offset - begin, piece = chunk.size_bytes - inside < size ? chunk.size_bytes - inside : size;
        size_t done;
        MR_TRY(file_read_at(s->scratch, s->near, chunk.offset + inside, next, (size_t)piece, &done, error));
        if (done < piece) return mr_fail(error, MR_DATA_LOSS, "the temporary file next to %s has shrunk", s->near);
        next += piece;
        offset += piece;
        size -= piece;
    }
    return MR_OK;
}

/* ---- Distribution ---- */

static mr_status put(shuffle *s, bucket *bucket, const void *bytes, size_t size, mr_error *error)
{
    if (size > bucket->capacity - bucket->used) {
        /* A single bucket in memory has exactly the size that was counted. */
        if (s->scratch < 0) return mr_fail(error, MR_ABORTED, "the files changed while they were read");
        MR_TRY(append_chunk(s, bucket, bucket->bytes, bucket->used, error));
        bucket->used = 0;
        if (size > bucket->capacity) return append_chunk(s, bucket, bytes, size, error);
    }
    assert(bucket->used <= bucket->capacity && size <= bucket->capacity - bucket->used);
    if (size > 0) memcpy(bucket->bytes + bucket->used, bytes, size);
    bucket->used += size;
    return MR_OK;
}

static mr_status deal(shuffle *s, mr_string record, mr_error *error)
{
    if (s->dealt == s->totals->records) return mr_fail(error, MR_ABORTED, "the files changed while they were read");
    uint64_t position = permutation_position(&s->permutation, s->dealt++);
    assert(position < s->totals->records);
    bucket *bucket = &s->buckets[(uint64_t)((unsigned __int128)position * s->bucket_count / s->totals->records)];
    if (!bucket->bytes) {
        bucket->capacity = s->scratch < 0 ? s->totals->size_bytes + HEAD_BYTES * s->totals->records : s->chunk_bytes;
        bucket->bytes = malloc(bucket->capacity);
        if (!bucket->bytes)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a bucket of %zu bytes", bucket->capacity);
    }
    uint64_t head[2] = {position, record.size_bytes};
    static_assert(sizeof head == HEAD_BYTES);
    MR_TRY(put(s, bucket, head, sizeof head, error));
    MR_TRY(put(s, bucket, record.data, record.size_bytes, error));
    bucket->count++;
    bucket->size_bytes += HEAD_BYTES + record.size_bytes;
    return MR_OK;
}

static bool deal_record(void *context, const record_position *position)
{
    shuffle *s = context;
    pass_add(&s->pass, 1);
    return deal(s, position->record, &s->error) == MR_OK;
}

/* Chooses the number of buckets so that one bucket, and then a chunk of each, fit into half of the memory. */
static mr_status plan(shuffle *s, mr_error *error)
{
    uint64_t size = s->totals->size_bytes + HEAD_BYTES * s->totals->records, half = s->memory_bytes / 2;
    s->bucket_count = 1;
    s->scratch = -1;
    if (size > half) {
        /* Buckets differ in size. */
        uint64_t most = half / CHUNK_BYTES_MIN, wanted = size / (half * 3 / 4) + 1;
        s->bucket_count = wanted < most ? wanted : most;
        uint64_t chunk = half / s->bucket_count;
        s->chunk_bytes = chunk < CHUNK_BYTES_MAX ? (size_t)chunk : CHUNK_BYTES_MAX;
        MR_TRY(scratch_open(s->near, &s->scratch, error));
    }
    s->buckets = calloc(s->bucket_count, sizeof(bucket));
    return s->buckets ? MR_OK : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for the list of buckets");
}

/* ---- Writing ---- */

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const entry *)a)->position, y = ((const entry *)b)->position;
    return x < y ? -1 : x > y;
}

/* Collects the heads of all records of a bucket; from memory if it is loaded. */
static mr_status list_entries(const shuffle *s, const bucket *bucket, const unsigned char *loaded, entry *entries,
                              mr_error *error)
{
    uint64_t offset = 0;
    for (uint64_t i = 0; i < bucket->count; i++) {
        uint64_t head[2];
        if (loaded)
            memcpy(head, loaded + offset, sizeof head);
        else
            MR_TRY(read_bucket(s, bucket, offset, head, sizeof head, error));
        offset += HEAD_BYTES;
        if (head[1] > bucket->size_bytes - offset)
            return mr_fail(error, MR_DATA_LOSS, "the temporary file next to %s was changed", s->near);
        entries[i] = (entry){head[0], offset, head[1]};
        offset += head[1];
    }
    if (offset != bucket->size_bytes)
        return mr_fail(error, MR_DATA_LOSS, "the temporary file next to %s was changed", s->near);
    qsort(entries, bucket->count, sizeof(entry), by_place);
    return MR_OK;
}

static mr_status write_entries(const shuffle *s, const bucket *bucket, const unsigned char *loaded,
                               const entry *entries, outputs *outputs, pass *pass, mr_error *error)
{
    char *room = nullptr;
    uint64_t room_bytes = 0;
    mr_status status = MR_OK;
    for (uint64_t i = 0; i < bucket->count && status == MR_OK; i++) {
        const char *bytes = loaded ? (const char *)loaded + entries[i].offset : nullptr;
        if (!loaded) {
            if (entries[i].size_bytes > room_bytes || !room) {
                free(room);
                room_bytes = entries[i].size_bytes;
                room = malloc(room_bytes + 1);
                if (!room) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a record");
            }
            status = read_bucket(s, bucket, entries[i].offset, room, entries[i].size_bytes, error);
            bytes = room;
        }
        if (status == MR_OK) status = outputs_append(outputs, (mr_string){bytes, entries[i].size_bytes}, error);
        pass_add(pass, 1);
    }
    free(room);
    return status;
}

/* Loads a bucket, unless long records have made it too large, and writes it. */
static mr_status write_bucket(shuffle *s, bucket *bucket, outputs *outputs, mr_error *error)
{
    if (bucket->count == 0) return MR_OK;
    unsigned char *loaded = nullptr;
    mr_status status = MR_OK;
    entry *entries = calloc(bucket->count, sizeof(entry));
    if (!entries) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a bucket's records");
    if (s->scratch < 0) {
        loaded = bucket->bytes;
        bucket->bytes = nullptr;
    } else {
        status = append_chunk(s, bucket, bucket->bytes, bucket->used, error);
        free(bucket->bytes);
        bucket->bytes = nullptr;
        if (status == MR_OK && bucket->size_bytes <= s->memory_bytes && (loaded = malloc(bucket->size_bytes)))
            status = read_bucket(s, bucket, 0, loaded, bucket->size_bytes, error);
    }
    if (status == MR_OK) status = list_entries(s, bucket, loaded, entries, error);
    if (status == MR_OK) status = write_entries(s, bucket, loaded, entries, outputs, &s->pass, error);
    free(loaded);
    free(entries);
    free(bucket->chunks);
    bucket->chunks = nullptr;
    return status;
}

/* Moves the remaining bytes to the scratch file, so that from now on only one bucket is in memory. */
static mr_status settle(shuffle *s, mr_error *error)
{
    for (uint64_t i = 0; i < s->bucket_count && s->scratch >= 0; i++) {
        bucket *bucket = &s->buckets[i];
        MR_TRY(append_chunk(s, bucket, bucket->bytes, bucket->used, error));
        bucket->used = 0;
        free(bucket->bytes);
        bucket->bytes = nullptr;
    }
    return MR_OK;
}

static int shuffle_records(shuffle *s, const options *options, outputs *outputs)
{
    mr_error *error = &s->error;
    if (s->totals->records > 0 && plan(s, error) == MR_OK) {
        pass_begin(&s->pass, "deal", s->totals->records);
        int exit_code = rewrite_walk(options, deal_record, s);
        pass_end(&s->pass);
        if (error->status == MR_OK && exit_code != 0) return outputs_reject_damage(options, exit_code);
        if (error->status == MR_OK && s->dealt != s->totals->records)
            (void)mr_fail(error, MR_ABORTED, "the files changed while they were read");
        if (error->status == MR_OK) (void)settle(s, error);
        pass_begin(&s->pass, "shuffle", s->totals->records);
        for (uint64_t i = 0; i < s->bucket_count && error->status == MR_OK; i++)
            (void)write_bucket(s, &s->buckets[i], outputs, error);
        pass_end(&s->pass);
    }
    if (error->status == MR_OK) (void)outputs_finish(outputs, error);
    if (error->status != MR_OK) return print_error(error);
    outputs_report(outputs);
    return 0;
}

static void shuffle_deinit(shuffle *s)
{
    for (uint64_t i = 0; s->buckets && i < s->bucket_count; i++) {
        free(s->buckets[i].bytes);
        free(s->buckets[i].chunks);
    }
    free(s->buckets);
    if (s->scratch >= 0) (void)close(s->scratch);
}

int shuffle_run(const options *options)
{
    struct options own = *options;
    outputs outputs = {0};
    totals totals;
    shuffle s = {.totals = &totals, .memory_bytes = MEMORY_BYTES, .near = options->out, .scratch = -1};
    if (!options->out) return usage_error("--shuffle: missing --out FILE");
    if (options->memory && (!parse_size(options->memory, &s.memory_bytes) || s.memory_bytes < MEMORY_BYTES_MIN))
        return usage_error("--memory: \"%s\" is not a size of at least 4M", options->memory);
    int exit_code = totals_read(&own, options->out, &totals);
    exit_code = exit_code == 0 ? outputs_begin(&outputs, options, outputs_need_totals(options) ? &totals : nullptr)
                               : outputs_reject_damage(options, exit_code);
    if (exit_code == 0) {
        if (totals.records > 0) s.permutation = permutation_init(totals.records, options->seed);
        exit_code = shuffle_records(&s, &own, &outputs);
    }
    shuffle_deinit(&s);
    outputs_deinit(&outputs);
    totals_deinit(&totals);
    return exit_code;
}
