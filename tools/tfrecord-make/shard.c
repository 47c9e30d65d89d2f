/* The conveyor: writes shards on all threads.
 *
 * Rows are numbered across all shards to be written. A thread takes the next number and an empty slot; it reads, treats
 * and encodes the row in the slot's memory, and stores the slot under its number. The thread that stores the next
 * number to be appended appends that record and all that follow without a gap, while the other threads continue. So no
 * thread is dedicated to writing, a record is mostly written by the processor that has it in its cache, and the output
 * does not depend on the threads. The slot that was emptied last is reused first. A finished shard is synced and
 * renamed by one thread, concurrently with the work on the next shard.
 *
 * Lock order: no other lock is acquired while the conveyor's mutex is held. The number of slots, a small multiple of
 * the number of threads, bounds memory. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/interrupt.h"
#include "common/text.h"

#include <millrace/example.h>

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Slots for each thread: how many rows may be finished ahead of a slow row. */
static constexpr int SLOTS_FOR_THREAD = 4;

/* A row in progress, and memory that is reused for later rows. */
typedef struct slot {
    const row *row;
    mr_status status;
    mr_error error;
    source_bytes bytes;
    image image;
    mr_example_encoder encoder;
    mr_string record; /* borrowed from the encoder */
    struct slot *next_free;
} slot;

/* The shard that is being appended to. */
typedef struct target {
    mr_record_writer *writer;
    shard_report report;
    const shard *shard;
} target;

typedef struct conveyor {
    work *work;
    const shard *const *shards;
    int32_t shard_count;
    int threads;
    bool writes_recordless; /* shards without records are written, not postponed */
    mr_record_writer_options options;

    pthread_mutex_t mutex;
    pthread_cond_t moved; /* a slot was emptied, or the work has ended */
    slot *slots, *free;
    slot **waiting; /* indexed by number modulo slot_count */
    int64_t slot_count;
    int64_t taken, next, end; /* numbers: the next to take, the next to append, the end */
    int32_t taken_shard;      /* the shard of `taken`, and how many of its rows are taken */
    int64_t taken_in_shard;
    bool is_appending;
    mr_status status; /* the first failure */
    mr_error error;

    /* Owned by the thread that is appending. */
    target target;
    int32_t next_shard;
    int64_t next_in_shard;
    int64_t beat_ns;
} conveyor;

/* ---- One row ---- */

static mr_status encode(const work *work, slot *slot, mr_error *error)
{
    const source *source = work->source;
    bool has_image;
    slot->image.remarks = REMARK_BIT(slot->row->is_faulty ? REMARK_NO_ROW : REMARK_UNREADABLE);
    MR_TRY(source_image(source, slot->row, &slot->bytes, &has_image, error));
    slot->image.remarks = REMARK_BIT(REMARK_NO_ROW);
    if (has_image) {
        mr_string bytes = {slot->bytes.data, slot->bytes.size_bytes};
        mr_status status = image_treat(&work->options->treatment, slot->row->name, bytes, &slot->image, error);
        if (status != MR_OK) return source_fail_row(source, slot->row, status, error);
        slot->image.facts.remarks = &slot->image.remarks;
    }
    mr_status status =
        source_add_features(source, slot->row, has_image ? &slot->image.facts : nullptr, &slot->encoder, error);
    mr_status finished = mr_example_finish(&slot->encoder, &slot->record, status == MR_OK ? error : nullptr);
    if (status == MR_OK && finished != MR_OK) status = source_fail_row(source, slot->row, finished, error);
    if (status != MR_OK)
        slot->image.remarks = REMARK_BIT(REMARK_NO_ROW);
    else if (!has_image)
        slot->image.remarks = 0;
    return status;
}

/* ---- Appending ---- */

static mr_status open_target(conveyor *conveyor, mr_error *error)
{
    target *target = &conveyor->target;
    target->shard = conveyor->shards[conveyor->next_shard];
    MR_TRY(journal_claim(conveyor->work->journal, target->shard, error));
    return mr_record_writer_open(target->shard->path, &conveyor->options, &target->writer, error);
}

/* Removes the label files of another numbering before the first shard gets its final name. */
static mr_status replace_labels(work *work, mr_error *error)
{
    pthread_mutex_lock(&work->mutex);
    mr_status status = MR_OK;
    if (!work->replaces_labels) status = label_files_retire(work->source, work->journal, &work->has_retired, error);
    work->replaces_labels = status == MR_OK;
    pthread_mutex_unlock(&work->mutex);
    return status;
}

/* Keeps the report of a shard without records; see write_recordless. */
static mr_status postpone(work *work, target *target, mr_error *error)
{
    mr_record_writer_discard(target->writer);
    target->writer = nullptr;
    pthread_mutex_lock(&work->mutex);
    size_t size = ((size_t)work->postponed_count + 1) * sizeof(postponed_shard);
    postponed_shard *grown = realloc(work->postponed, size);
    if (grown) {
        work->postponed = grown;
        grown[work->postponed_count++] = (postponed_shard){target->shard, target->report};
        target->report = (shard_report){0};
    }
    pthread_mutex_unlock(&work->mutex);
    shard_report_deinit(&target->report);
    return grown ? MR_OK : fail_memory(error, size);
}

/* Completes a shard: gives the file its final name and adds its line to the journal. Runs on one of the threads,
 * concurrently with the work on the next shard. */
static mr_status close_target(conveyor *conveyor, target *target, mr_error *error)
{
    work *work = conveyor->work;
    if (target->report.records == 0 && !conveyor->writes_recordless) return postpone(work, target, error);
    mr_status status = replace_labels(work, error);
    if (status == MR_OK)
        status = mr_record_writer_close(target->writer, error);
    else
        mr_record_writer_discard(target->writer);
    target->writer = nullptr;
    if (status == MR_OK) status = journal_add(work->journal, work->plan, target->shard, &target->report, error);
    if (status == MR_OK) {
        pthread_mutex_lock(&work->mutex);
        work->written += target->report.records;
        work->finished++;
        status = shard_report_add(&work->splits[target->shard->split], &target->report, error);
        pthread_mutex_unlock(&work->mutex);
    }
    shard_report_deinit(&target->report);
    return status;
}

/* Reports a row that cannot be used. The options decide whether this ends the work. */
static mr_status skip(conveyor *conveyor, slot *slot, mr_error *error)
{
    const work *work = conveyor->work;
    if (slot->status == MR_RESOURCE_EXHAUSTED && !work->options->skip_bad)
        return mr_fail(error, slot->status, "%s", slot->error.message);
    progress_hide(work->progress);
    fputs("tfrecord-make: ", stderr);
    text_print_sentence(stderr, slot->error.message);
    fputc('\n', stderr);
    if (!work->options->skip_bad) return mr_fail(error, MR_CANCELLED, "stopped at a row that cannot be used");
    conveyor->target.report.skipped++;
    return MR_OK;
}

static mr_status append(conveyor *conveyor, slot *slot, mr_error *error)
{
    target *target = &conveyor->target;
    if (slot->status != MR_OK) {
        MR_TRY(skip(conveyor, slot, error));
    } else {
        MR_TRY(mr_record_writer_append(target->writer, slot->record.data, slot->record.size_bytes, error));
        target->report.records++;
    }
    uint32_t remarks = slot->image.remarks;
    for (int i = 0; remarks != 0; i++, remarks >>= 1)
        if ((remarks & 1) != 0) MR_TRY(shard_report_remark(&target->report, (remark)i, 1, slot->row->name, error));
    return MR_OK;
}

/* Shows processes that wait for this one that it is alive. */
static void beat(conveyor *conveyor)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    int64_t now = (int64_t)time.tv_sec * 1'000'000'000 + time.tv_nsec;
    if (now - conveyor->beat_ns < 1'000'000'000) return;
    conveyor->beat_ns = now;
    journal_touch(conveyor->work->journal);
}

/* Shards without rows may occur between others. */
static mr_status write_empty_shards(conveyor *conveyor, mr_error *error)
{
    while (conveyor->next_shard < conveyor->shard_count && conveyor->shards[conveyor->next_shard]->count == 0) {
        MR_TRY(open_target(conveyor, error));
        target whole = conveyor->target;
        conveyor->target = (target){0};
        MR_TRY(close_target(conveyor, &whole, error));
        conveyor->next_shard++;
    }
    return MR_OK;
}

/* Appends the next slot in order. If that completes the shard, *whole receives the target. */
static mr_status append_next(conveyor *conveyor, slot *slot, target *whole, mr_error *error)
{
    assert(conveyor->next_shard < conveyor->shard_count && !whole->writer);
    if (!conveyor->target.writer) {
        MR_TRY(write_empty_shards(conveyor, error));
        MR_TRY(open_target(conveyor, error));
    }
    MR_TRY(append(conveyor, slot, error));
    beat(conveyor);
    if (++conveyor->next_in_shard < conveyor->target.shard->count) return MR_OK;
    *whole = conveyor->target;
    conveyor->target = (target){0};
    conveyor->next_in_shard = 0;
    conveyor->next_shard++;
    return MR_OK;
}

/* ---- The threads ---- */

static void fail(conveyor *conveyor, mr_status status, const mr_error *error)
{
    if (conveyor->status == MR_OK) {
        conveyor->status = status;
        conveyor->error = *error;
    }
    pthread_cond_broadcast(&conveyor->moved);
}

/* Appends slots in order while the next one is available. Called with the mutex held, which is released meanwhile. */
static void drain(conveyor *conveyor)
{
    for (;;) {
        assert(conveyor->next <= conveyor->taken && conveyor->taken <= conveyor->end);
        assert(conveyor->taken - conveyor->next <= conveyor->slot_count);
        slot **waiting = &conveyor->waiting[conveyor->next % conveyor->slot_count], *slot = *waiting;
        if (conveyor->is_appending || !slot || conveyor->status != MR_OK) return;
        assert(slot->row && !slot->next_free);
        *waiting = nullptr;
        conveyor->is_appending = true;
        pthread_mutex_unlock(&conveyor->mutex);
        mr_error error = {0};
        target whole = {0};
        mr_status status = append_next(conveyor, slot, &whole, &error);
        pthread_mutex_lock(&conveyor->mutex);
        assert(conveyor->is_appending);
        conveyor->is_appending = false;
        conveyor->next++;
        slot->row = nullptr;
        slot->next_free = conveyor->free;
        conveyor->free = slot;
        if (status != MR_OK) fail(conveyor, status, &error);
        pthread_cond_signal(&conveyor->moved);
        if (!whole.writer) continue;
        pthread_mutex_unlock(&conveyor->mutex);
        status = close_target(conveyor, &whole, &error);
        pthread_mutex_lock(&conveyor->mutex);
        if (status != MR_OK) fail(conveyor, status, &error);
    }
}

/* Takes the next row and a slot for it; null if no row is left or the work has ended. The mutex is held. */
static slot *take(conveyor *conveyor)
{
    while (!conveyor->free && conveyor->status == MR_OK) pthread_cond_wait(&conveyor->moved, &conveyor->mutex);
    if (interrupt_signal() && conveyor->status == MR_OK) {
        mr_error error = {0};
        fail(conveyor, mr_fail(&error, MR_CANCELLED, "interrupted"), &error);
    }
    if (conveyor->status != MR_OK || conveyor->taken == conveyor->end) return nullptr;
    slot *slot = conveyor->free;
    assert(!slot->row); /* the slot is not in use */
    conveyor->free = slot->next_free;
    slot->next_free = nullptr;
    while (conveyor->taken_in_shard == conveyor->shards[conveyor->taken_shard]->count) {
        conveyor->taken_shard++;
        conveyor->taken_in_shard = 0;
    }
    const work *work = conveyor->work;
    assert(conveyor->taken_shard < conveyor->shard_count);
    const shard *shard = conveyor->shards[conveyor->taken_shard];
    slot->row = &work->source->rows[work->plan->order[shard->begin + conveyor->taken_in_shard++]];
    return slot;
}

static void run_thread(void *context, int64_t begin, int64_t end)
{
    conveyor *conveyor = context;
    pthread_mutex_lock(&conveyor->mutex);
    while (conveyor->taken < conveyor->end) {
        slot *slot = take(conveyor);
        if (!slot) break;
        int64_t number = conveyor->taken++;
        pthread_mutex_unlock(&conveyor->mutex);
        slot->error = (mr_error){0};
        slot->status = encode(conveyor->work, slot, &slot->error);
        progress_add(conveyor->work->progress, 1);
        pthread_mutex_lock(&conveyor->mutex);
        assert(!conveyor->waiting[number % conveyor->slot_count]);
        conveyor->waiting[number % conveyor->slot_count] = slot;
        drain(conveyor);
    }
    pthread_mutex_unlock(&conveyor->mutex);
}

static void free_slots(conveyor *conveyor)
{
    for (int64_t i = 0; conveyor->slots && i < conveyor->slot_count; i++) {
        free(conveyor->slots[i].bytes.data);
        image_deinit(&conveyor->slots[i].image);
        mr_example_encoder_deinit(&conveyor->slots[i].encoder);
    }
    free(conveyor->slots);
    free(conveyor->waiting);
}

static mr_status make_slots(conveyor *conveyor, mr_error *error)
{
    conveyor->slot_count = (int64_t)conveyor->threads * SLOTS_FOR_THREAD;
    conveyor->slots = calloc((size_t)conveyor->slot_count, sizeof(slot));
    conveyor->waiting = calloc((size_t)conveyor->slot_count, sizeof(slot *));
    if (!conveyor->slots || !conveyor->waiting) return fail_memory(error, sizeof(slot));
    for (int64_t i = 0; i < conveyor->slot_count; i++) {
        conveyor->slots[i].next_free = conveyor->free;
        conveyor->free = &conveyor->slots[i];
    }
    return MR_OK;
}

static mr_record_writer_options writer_options(const options *options, int threads)
{
    mr_record_writer_options writer = {.size = sizeof writer, .index = true, .atomic = true};
    if (options->compression == COMPRESS_ZLIB) writer.compression = MR_COMPRESSION_ZLIB;
    if (options->compression == COMPRESS_GZIP || options->compression == COMPRESS_SEEKABLE)
        writer.compression = MR_COMPRESSION_GZIP;
    if (options->compression == COMPRESS_SEEKABLE) {
        writer.seek_bytes = MR_RECORD_SEEK_BYTES;
        writer.threads = threads;
    }
    return writer;
}

/* Writes shards in order with the threads of the pool; null: on the caller's thread. */
static mr_status run_conveyor(work *work, const shard *const *shards, int32_t count, pool *pool, mr_error *error)
{
    conveyor conveyor = {
        .work = work, .shards = shards, .shard_count = count, .threads = pool ? pool_thread_count(pool) : 1};
    conveyor.options = writer_options(work->options, conveyor.threads);
    for (int32_t i = 0; i < count; i++) conveyor.end += shards[i]->count;
    pthread_mutex_init(&conveyor.mutex, nullptr);
    pthread_cond_init(&conveyor.moved, nullptr);
    mr_status status = make_slots(&conveyor, error);
    if (status == MR_OK) {
        pool_for(pool, conveyor.threads, 1, run_thread, &conveyor);
        if (conveyor.status == MR_OK) conveyor.status = write_empty_shards(&conveyor, &conveyor.error);
        status = conveyor.status;
        if (status != MR_OK && error) *error = conveyor.error;
    }
    assert(status != MR_OK ||
           (conveyor.next == conveyor.end && conveyor.next_shard == count && !conveyor.target.writer));
    mr_record_writer_discard(conveyor.target.writer);
    shard_report_deinit(&conveyor.target.report);
    free_slots(&conveyor);
    pthread_cond_destroy(&conveyor.moved);
    pthread_mutex_destroy(&conveyor.mutex);
    return status;
}

/* Shards that are each compressed as one stream, which only one thread at a time can do: each has its own conveyor. */
typedef struct streams {
    work *work;
    const shard *const *shards;
    pthread_mutex_t mutex;
    mr_status status; /* the first failure */
    mr_error error;
} streams;

static void write_streams(void *context, int64_t begin, int64_t end)
{
    streams *streams = context;
    for (int64_t i = begin; i < end; i++) {
        pthread_mutex_lock(&streams->mutex);
        bool over = streams->status != MR_OK;
        pthread_mutex_unlock(&streams->mutex);
        if (over) return;
        mr_error error = {0};
        mr_status status = run_conveyor(streams->work, &streams->shards[i], 1, nullptr, &error);
        if (status == MR_OK) continue;
        pthread_mutex_lock(&streams->mutex);
        if (streams->status == MR_OK) {
            streams->status = status;
            streams->error = error;
        }
        pthread_mutex_unlock(&streams->mutex);
    }
}

/* Writes the shards without records, which were postponed: a run without a single record must not replace the files
 * of an earlier one. A worker writes them in any case, because the others may have records. */
static mr_status write_recordless(work *work, mr_error *error)
{
    mr_status status = MR_OK;
    bool is_written = work->written + work->reused > 0 || work->options->worker_count > 0;
    for (int32_t i = 0; i < work->postponed_count; i++) {
        postponed_shard *postponed = &work->postponed[i];
        conveyor conveyor = {.work = work, .shards = &postponed->shard, .shard_count = 1, .writes_recordless = true};
        conveyor.options = writer_options(work->options, 1);
        if (is_written && status == MR_OK) status = open_target(&conveyor, error);
        target target = conveyor.target;
        if (target.writer) {
            target.report = postponed->report;
            postponed->report = (shard_report){0};
            status = close_target(&conveyor, &target, error);
        }
        shard_report_deinit(&postponed->report);
    }
    free(work->postponed);
    work->postponed = nullptr;
    work->postponed_count = 0;
    return status;
}

static mr_status write_with_records(work *work, const shard *const *shards, int32_t count, mr_error *error)
{
    if (work->options->compression != COMPRESS_GZIP && work->options->compression != COMPRESS_ZLIB)
        return run_conveyor(work, shards, count, work->pool, error);
    streams streams = {.work = work, .shards = shards};
    pthread_mutex_init(&streams.mutex, nullptr);
    pool_for(work->pool, count, 1, write_streams, &streams);
    pthread_mutex_destroy(&streams.mutex);
    if (streams.status != MR_OK && error) *error = streams.error;
    return streams.status;
}

mr_status shards_write(work *work, const shard *const *shards, int32_t count, mr_error *error)
{
    mr_status status = write_with_records(work, shards, count, error);
    if (status == MR_OK) return write_recordless(work, error);
    for (int32_t i = 0; i < work->postponed_count; i++) shard_report_deinit(&work->postponed[i].report);
    free(work->postponed);
    work->postponed = nullptr;
    work->postponed_count = 0;
    return status;
}
