/* The parallel scan of all records of files.
 *
 * A block passes through these stages, mostly on one thread:
 *
 *     claim ▶ read ▶ frame ▶ check, work ▶ deliver: take, damaged, file_done
 *
 * Blocks are numbered by tickets, in the order of the files. Reading, checking and work run concurrently, in any order.
 * Framing finds the records of a block, and from them the start of the next block, so it is done in ticket order: the
 * thread that has read the next block to frame frames it, and the following ones that have already been read. Framing
 * is cheap and determines the number of each block's first record. Finished blocks are delivered in ticket order in the
 * same way.
 *
 * No thread therefore waits for another as long as there are free blocks: it reads the next block, or checks one that
 * has been framed. If there are none, all blocks are read, framed or finished after a block that another thread is
 * processing. One mutex guards all shared state; no callback runs while it is locked. */
#include "base/options.h"
#include "base/pool.h"
#include "base/status.h"
#include "records/io/file.h"
#include "records/record/record_damage.h"
#include "records/record/record_reader.h"
#include "records/record/scan_block.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr size_t BLOCK_BYTES = (size_t)1 << 20;
static constexpr size_t BLOCK_MIN_BYTES = 4096;
static constexpr size_t BLOCK_MAX_BYTES = (size_t)1 << 30;
static constexpr int THREADS_MAX = 256;
/* How far a finished block may be ahead of the next one to deliver. */
static constexpr size_t RING = 1024;

/* The result of a ticket. */
typedef struct finished {
    bool is_finished;
    scan_block *block; /* null: there is nothing to deliver except the totals */
    scan_file *file;
    bool is_last;
    uint64_t records, size_bytes;
} finished;

typedef struct scan {
    const char *const *paths;
    int32_t path_count;
    const mr_record_scan_options *options;
    scan_settings settings;
    int threads;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* signals that there may be work to do */
    int sleepers;
    /* State of claiming. */
    int32_t next_path;
    scan_file *file; /* the file whose blocks are being claimed; null: open the next one */
    uint64_t next_part;
    uint64_t next_ticket;
    scan_block **free_blocks; /* a stack: the most recently used block is still in the cache */
    int free_count, block_count;
    /* State of framing. */
    scan_block *read[RING]; /* by ticket: read, but not framed */
    uint64_t next_frame;
    bool is_framing;
    scan_block **framed; /* a queue of at most block_count */
    int framed_first, framed_count;
    /* State of delivery. */
    uint64_t next_delivery;
    bool is_delivering;
    finished ring[RING];
    atomic_bool is_stopped;

    /* Used only by the delivering thread. */
    mr_record_totals totals;
    mr_status status;
    mr_error error;
} scan;

/* ---- Files ---- */

static void release(scan *scan, scan_file *file)
{
    assert(file->references > 0);
    if (--file->references > 0) return;
    scan_file_close(file);
    free(file);
}

/* Opens the next file of the list; false if out of memory. */
static bool open_next(scan *scan)
{
    assert(scan->file == nullptr);
    scan_file *file = calloc(1, sizeof(*file));
    if (file == nullptr) return false;
    file->number = scan->next_path;
    file->path = scan->paths[scan->next_path];
    file->references = 1;
    scan_file_open(file, &scan->settings);
    scan->next_path++;
    scan->file = file;
    scan->next_part = 0;
    return true;
}

/* ---- Claim ---- */

static void stop_locked(scan *scan, mr_status status, const mr_error *error)
{
    assert(status != MR_OK);
    if (scan->status == MR_OK) {
        scan->status = status;
        scan->error = *error;
    }
    atomic_store(&scan->is_stopped, true);
}

static void stop(scan *scan, mr_status status, const mr_error *error)
{
    pthread_mutex_lock(&scan->mutex);
    stop_locked(scan, status, error);
    pthread_mutex_unlock(&scan->mutex);
}

static void wake(scan *scan)
{
    assert(scan->sleepers >= 0);
    if (scan->sleepers > 0) pthread_cond_broadcast(&scan->changed);
}

/* Whether no more tickets will be assigned. */
static bool is_over(const scan *scan)
{
    return atomic_load(&scan->is_stopped) || (scan->file == nullptr && scan->next_path == scan->path_count);
}

/* Claims a block with the next ticket; null: not possible now. Mutex locked. */
static scan_block *claim(scan *scan)
{
    assert(scan->next_delivery <= scan->next_ticket && scan->free_count <= scan->block_count);
    if (is_over(scan) || scan->free_count == 0 || scan->next_ticket - scan->next_delivery >= RING) return nullptr;
    if (scan->file == nullptr && !open_next(scan)) {
        mr_error error = {0};
        stop_locked(scan, mr_fail_memory(&error, sizeof(scan_file)), &error);
        wake(scan);
        return nullptr;
    }
    scan_block *block = scan->free_blocks[--scan->free_count];
    scan_file *file = scan->file;
    assert(file->references > 0 && block != nullptr);
    *block = (scan_block){.ticket = scan->next_ticket++,
                          .file = file,
                          .part = scan->next_part,
                          .bytes = block->bytes,
                          .capacity = block->capacity,
                          .entries = block->entries,
                          .entry_capacity = block->entry_capacity,
                          .reports = block->reports,
                          .report_count = block->report_count,
                          .report_capacity = block->report_capacity,
                          .runs = block->runs,
                          .run_capacity = block->run_capacity};
    file->references++;
    scan->next_part += file->mode == SCAN_SEGMENTS ? 1 : scan->settings.block_bytes;
    bool is_open = file->problem.status == MR_OK;
    if (!is_open || (file->mode == SCAN_PARTS && scan->next_part >= file->size_bytes) ||
        (file->mode == SCAN_SEGMENTS && scan->next_part >= file->index.point_count)) {
        block->is_last = true;
        scan->file = nullptr;
        release(scan, file);
    }
    return block;
}

/* ---- Frame ---- */

/* Frames the blocks that are next in order, unless another thread does so. Mutex locked; unlocked meanwhile. */
static void frame_ready(scan *scan)
{
    if (scan->is_framing) return;
    scan->is_framing = true;
    for (scan_block *block; (block = scan->read[scan->next_frame % RING]) != nullptr;) {
        assert(block->ticket == scan->next_frame && scan->next_frame < scan->next_ticket);
        scan->read[scan->next_frame % RING] = nullptr;
        pthread_mutex_unlock(&scan->mutex);
        if (!atomic_load(&scan->is_stopped)) scan_block_frame(block, &scan->settings);
        pthread_mutex_lock(&scan->mutex);
        scan_file *file = block->file;
        /* The file has no more blocks. */
        if (file->ended && file->mode != SCAN_PARTS && scan->file == file) {
            scan->file = nullptr;
            release(scan, file);
        }
        scan->next_frame++;
        assert(scan->framed_count < scan->block_count);
        scan->framed[(scan->framed_first + scan->framed_count++) % scan->block_count] = block;
        wake(scan);
    }
    scan->is_framing = false;
}

static scan_block *take_framed(scan *scan)
{
    assert(scan->framed_count >= 0 && scan->framed_count <= scan->block_count);
    if (scan->framed_count == 0) return nullptr;
    scan_block *block = scan->framed[scan->framed_first];
    assert(block != nullptr && block->ticket < scan->next_frame);
    scan->framed_first = (scan->framed_first + 1) % scan->block_count;
    scan->framed_count--;
    return block;
}

/* ---- Work ---- */

static mr_record_batch batch_of(const scan_block *block, const scan_run *run, int thread)
{
    assert(run->count > 0 && run->first + run->count <= block->entry_count);
    return (mr_record_batch){.file = block->file->number,
                             .thread = thread,
                             .path = block->file->path,
                             .first = block->first + run->first,
                             .count = run->count,
                             .records = &block->entries[run->first].record,
                             .result = run->result,
                             .bytes = block->bytes,
                             .offset = block->offset};
}

static void work_on(scan *scan, scan_block *block, int thread)
{
    assert(block->worked == 0);
    const mr_record_scan_options *options = scan->options;
    for (; block->worked < block->run_count; block->worked++) {
        scan_run *run = &block->runs[block->worked];
        mr_error error = {0};
        if (options->work == nullptr) continue;
        if (atomic_load_explicit(&scan->is_stopped, memory_order_relaxed)) return;
        mr_record_batch batch = batch_of(block, run, thread);
        mr_status status = options->work(options->context, &batch, &error);
        run->result = batch.result;
        if (status == MR_OK) continue;
        /* The records before this run are still delivered. */
        error.status = status;
        block->error = error;
        block->is_hiding = false;
        block->is_refused = true;
        return;
    }
}

/* ---- Deliver ---- */

static void end_file(scan *scan, scan_file *file, const mr_error *error)
{
    const mr_record_scan_options *options = scan->options;
    if (file->is_done) return;
    file->is_done = true;
    if (options->file_done == nullptr) {
        if (error->status != MR_OK) stop(scan, error->status, error);
        return;
    }
    mr_error problem = {0};
    mr_status status = options->file_done(options->context, file->number, &file->totals, error);
    if (status == MR_OK) return;
    (void)mr_fail(&problem, status, "%s", error->status != MR_OK ? error->message : "the scan was stopped");
    stop(scan, status, &problem);
}

static void count_records(scan *scan, scan_file *file, uint64_t records, uint64_t size_bytes)
{
    assert(!file->is_done);
    file->totals.records += records;
    file->totals.size_bytes += size_bytes;
    scan->totals.records += records;
    scan->totals.size_bytes += size_bytes;
}

/* Counts and reports a damaged range, and applies the damage policy. */
static void deliver_report(scan *scan, scan_file *file, const mr_record_damage *damage, const mr_error *problem)
{
    const mr_record_scan_options *options = scan->options;
    file->totals.lost++;
    file->totals.lost_bytes += damage->size_bytes;
    scan->totals.lost++;
    scan->totals.lost_bytes += damage->size_bytes;
    assert(file->totals.lost <= scan->totals.lost && file->totals.lost_bytes <= scan->totals.lost_bytes);
    mr_error error = *problem;
    if (options->damage == MR_DAMAGE_STOP) {
        end_file(scan, file, &error);
        return;
    }
    if (options->damaged != nullptr) options->damaged(options->context, damage, problem);
    if (options->damage_max == 0 || scan->totals.lost <= options->damage_max) return;
    (void)mr_fail(&error, MR_DATA_LOSS, "%s (damaged range %" PRIu64 ", at most %" PRIu64 " are allowed)",
                  problem->message, scan->totals.lost, options->damage_max);
    stop(scan, MR_DATA_LOSS, &error);
}

static mr_status copy_report(scan *scan, const scan_block *block, const scan_report *report, const mr_error *problem,
                             mr_error *error)
{
    mr_record_quarantine *quarantine = scan->options->quarantine;
    const mr_record_damage *damage = &report->damage;
    /* A reader has already written its damaged ranges to the quarantine. */
    if (report->message != nullptr || quarantine == nullptr || scan->options->damage == MR_DAMAGE_STOP) return MR_OK;
    if (!mr_record_quarantine_begin(quarantine, damage)) return MR_OK;
    assert(damage->offset >= block->offset && damage->offset - block->offset + damage->size_bytes <= block->held);
    const char *bytes = block->bytes + (damage->offset - block->offset);
    MR_TRY(mr_record_quarantine_add(quarantine, damage, problem, damage->offset, bytes, damage->size_bytes, error));
    return mr_record_quarantine_end(quarantine, damage, problem, error);
}

static mr_status deliver_run(scan *scan, scan_block *block, scan_run *run)
{
    const mr_record_scan_options *options = scan->options;
    count_records(scan, block->file, run->count, run->size_bytes);
    if (options->take == nullptr || (options->takes_results && run->result == nullptr)) return MR_OK;
    const mr_record_batch batch = batch_of(block, run, 0);
    run->result = nullptr;
    mr_error error = {0};
    mr_status status = options->take(options->context, &batch, &error);
    if (status != MR_OK) stop(scan, status, &error);
    return status;
}

/* ---- After a record that hides others, the rest of the file is read in order ---- */

typedef struct alone {
    scan *scan;
    scan_file *file;
} alone;

static void report_alone(void *context, const mr_record_damage *damage, const mr_error *problem)
{
    alone *alone = context;
    mr_record_damage located = *damage;
    located.path = alone->file->path;
    if (!atomic_load(&alone->scan->is_stopped)) deliver_report(alone->scan, alone->file, &located, problem);
}

static mr_status take_alone(scan *scan, scan_file *file, const mr_record_reader *reader, mr_string record,
                            mr_error *error)
{
    const mr_record_scan_options *options = scan->options;
    mr_record_batch batch = {.file = file->number,
                             .path = file->path,
                             .first = mr_record_reader_number(reader),
                             .count = 1,
                             .records = &record,
                             .bytes = record.data - MR_RECORD_HEADER_BYTES,
                             .offset = mr_record_reader_offset(reader)};
    if (options->work != nullptr) MR_TRY(options->work(options->context, &batch, error));
    count_records(scan, file, 1, record.size_bytes);
    bool is_taken = options->take != nullptr && (batch.result != nullptr || !options->takes_results);
    if (is_taken) return options->take(options->context, &batch, error);
    return MR_OK;
}

/* Opens a reader that starts after the block's last entry. */
static mr_status open_alone(const scan_block *block, const mr_record_reader_options *options, mr_record_reader **reader,
                            mr_error *error)
{
    assert(block->is_hiding);
    const scan_file *file = block->file;
    uint64_t number = block->first + block->entry_count;
    if (file->mode == SCAN_SEGMENTS) {
        mr_record_reader_options rest = *options;
        rest.first = number;
        return mr_record_reader_open_through(file->path, &rest, reader, error);
    }
    int descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: cannot open the file again", file->path);
    return mr_record_reader_open_at(descriptor, file->path, block->hiding_offset, number, options, reader, error);
}

static void deliver_alone(scan *scan, const scan_block *block)
{
    scan_file *file = block->file;
    alone alone = {scan, file};
    const mr_record_reader_options options = {.size = sizeof options,
                                              .skip_checksums = scan->options->skip_checksums,
                                              .damage = scan->options->damage,
                                              .quarantine = scan->options->quarantine,
                                              .damaged = report_alone,
                                              .context = &alone};
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status = open_alone(block, &options, &reader, &error);
    while (status == MR_OK && !atomic_load(&scan->is_stopped)) {
        status = mr_record_reader_next(reader, &record, &error);
        if (status != MR_OK) break;
        status = take_alone(scan, file, reader, record, &error);
        if (status != MR_OK) stop(scan, status, &error);
    }
    if (status == MR_DATA_LOSS && scan->options->damage == MR_DAMAGE_STOP && !atomic_load(&scan->is_stopped)) {
        mr_record_damage damage = mr_record_reader_damage(reader);
        deliver_report(scan, file, &damage, &error);
    }
    mr_record_reader_close(reader);
    if (status == MR_OUT_OF_RANGE) error = (mr_error){0};
    if (!atomic_load(&scan->is_stopped)) end_file(scan, file, &error);
}

/* ---- Delivery in order ---- */

static void deliver_block(scan *scan, scan_block *block)
{
    assert(block->worked <= block->run_count && block->run_count <= block->entry_count);
    scan_file *file = block->file;
    scan_run *run = block->runs, *run_end = block->worked > 0 ? run + block->worked : run;
    const scan_report *report = block->reports;
    mr_error error = {0};
    for (size_t i = 0; i < block->entry_count && !file->is_done && !atomic_load(&scan->is_stopped);) {
        if (run < run_end && run->first == i) {
            if (deliver_run(scan, block, run) != MR_OK) return;
            i += run->count;
            assert(i <= block->entry_count);
            run++;
        } else if (block->entries[i].record.data == nullptr) {
            assert(report < block->reports + block->report_count && report->damage.record == block->first + i);
            mr_error problem = {0};
            scan_report_message(report, &problem);
            mr_status status = copy_report(scan, block, report, &problem, &error);
            if (status != MR_OK) {
                stop(scan, status, &error);
                return;
            }
            deliver_report(scan, file, &report->damage, &problem);
            report++;
            i++;
        } else {
            break; /* work returned an error */
        }
    }
    if (atomic_load(&scan->is_stopped) || file->is_done) return;
    if (block->is_refused)
        stop(scan, block->error.status, &block->error);
    else if (block->is_hiding)
        deliver_alone(scan, block);
    else if (block->error.status != MR_OK)
        end_file(scan, file, &block->error);
}

static void discard_results(scan *scan, scan_block *block)
{
    const mr_record_scan_options *options = scan->options;
    for (size_t i = 0; i < block->run_count; i++) {
        if (block->runs[i].result != nullptr && options->discard != nullptr)
            options->discard(options->context, block->runs[i].result);
        block->runs[i].result = nullptr;
    }
}

static void deliver(scan *scan, const finished *done)
{
    assert(done->is_finished && done->file != nullptr);
    if (done->block != nullptr) {
        deliver_block(scan, done->block);
        discard_results(scan, done->block);
    } else if (!done->file->is_done && !atomic_load(&scan->is_stopped)) {
        count_records(scan, done->file, done->records, done->size_bytes);
    }
    const mr_error none = {0};
    if (done->is_last && !atomic_load(&scan->is_stopped)) end_file(scan, done->file, &none);
}

/* Whether nothing but its totals has to be delivered for a block. */
static bool is_plain(const scan *scan, const scan_block *block)
{
    return (scan->options->take == nullptr || scan->options->takes_results) && block->run_count <= 1 &&
           block->worked == block->run_count && block->report_count == 0 && block->error.status == MR_OK &&
           !block->is_hiding && !(block->run_count == 1 && block->runs[0].result != nullptr);
}

/* Delivers the blocks that are next in order, unless another thread does so. Mutex locked; unlocked meanwhile. */
static void deliver_ready(scan *scan)
{
    if (scan->is_delivering) return;
    scan->is_delivering = true;
    for (finished *next; (next = &scan->ring[scan->next_delivery % RING])->is_finished;) {
        finished done = *next;
        assert(done.block == nullptr || done.block->ticket == scan->next_delivery);
        next->is_finished = false;
        pthread_mutex_unlock(&scan->mutex);
        deliver(scan, &done);
        pthread_mutex_lock(&scan->mutex);
        if (done.block != nullptr) scan->free_blocks[scan->free_count++] = done.block;
        assert(scan->free_count <= scan->block_count);
        release(scan, done.file);
        scan->next_delivery++;
        assert(scan->next_delivery <= scan->next_frame);
        wake(scan);
    }
    scan->is_delivering = false;
}

/* Marks a block as finished. Mutex locked. */
static void finish(scan *scan, scan_block *block)
{
    assert(block->ticket >= scan->next_delivery && block->ticket < scan->next_frame);
    finished done = {.is_finished = true, .block = block, .file = block->file, .is_last = block->is_last};
    if (is_plain(scan, block)) {
        done.block = nullptr;
        if (block->run_count == 1) {
            done.records = block->runs[0].count;
            done.size_bytes = block->runs[0].size_bytes;
        }
        scan->free_blocks[scan->free_count++] = block;
        assert(scan->free_count <= scan->block_count);
        wake(scan);
    }
    assert(!scan->ring[block->ticket % RING].is_finished);
    scan->ring[block->ticket % RING] = done;
    deliver_ready(scan);
}

/* ---- Threads ---- */

static void work_thread(void *context, int64_t begin, int64_t end)
{
    scan *scan = context;
    pthread_mutex_lock(&scan->mutex);
    for (;;) {
        scan_block *block;
        if ((block = take_framed(scan)) != nullptr) {
            pthread_mutex_unlock(&scan->mutex);
            if (!atomic_load(&scan->is_stopped)) {
                scan_block_check(block, &scan->settings);
                work_on(scan, block, (int)begin);
            }
            pthread_mutex_lock(&scan->mutex);
            finish(scan, block);
        } else if ((block = claim(scan)) != nullptr) {
            pthread_mutex_unlock(&scan->mutex);
            scan_block_read(block, &scan->settings);
            pthread_mutex_lock(&scan->mutex);
            assert(scan->read[block->ticket % RING] == nullptr);
            scan->read[block->ticket % RING] = block;
            frame_ready(scan);
        } else if (is_over(scan)) {
            /* The remaining blocks are being processed by other threads. */
            break;
        } else {
            scan->sleepers++;
            pthread_cond_wait(&scan->changed, &scan->mutex);
            scan->sleepers--;
        }
    }
    wake(scan);
    pthread_mutex_unlock(&scan->mutex);
}

/* ---- mr_record_scan ---- */

/* At most one thread for each block, if their number is easy to determine. */
static int useful_threads(const char *const *paths, int32_t count, int threads, size_t block_bytes)
{
    assert(threads >= 1 && block_bytes > 0);
    uint64_t blocks = 0;
    for (int32_t i = 0; i < count && blocks < (uint64_t)threads; i++) {
        mr_file_stamp stamp;
        if (strcmp(paths[i], "-") == 0 || mr_file_stamp_of(paths[i], &stamp, nullptr) != MR_OK) return threads;
        blocks += 1 + stamp.size_bytes / block_bytes;
        /* A compressed file contains more than its size. */
        if (stamp.size_bytes > 0) blocks++;
    }
    return blocks < (uint64_t)threads ? (int)(blocks > 0 ? blocks : 1) : threads;
}

static mr_status make_blocks(scan *scan, mr_error *error)
{
    /* Two blocks for each thread: a slow block delays the delivery of the others, so each thread may have a finished
     * one waiting. */
    int count = scan->threads * 2;
    scan->free_blocks = calloc((size_t)count, sizeof(scan_block *));
    scan->framed = calloc((size_t)count, sizeof(scan_block *));
    if (scan->free_blocks == nullptr || scan->framed == nullptr)
        return mr_fail_memory(error, (size_t)count * sizeof(scan_block *));
    for (; scan->block_count < count; scan->block_count++) {
        scan_block *block = calloc(1, sizeof(*block));
        if (block == nullptr) return mr_fail_memory(error, sizeof(*block));
        scan->free_blocks[scan->free_count++] = block;
    }
    assert(scan->free_count == scan->block_count);
    return MR_OK;
}

static mr_status run_threads(scan *scan, mr_error *error)
{
    if (scan->threads == 1) {
        work_thread(scan, 0, 1);
        return MR_OK;
    }
    mr_pool *pool = nullptr;
    MR_TRY(mr_pool_new(scan->threads, &pool, error));
    mr_pool_for(pool, scan->threads, 1, work_thread, scan);
    mr_pool_free(pool);
    return MR_OK;
}

static mr_status check_options(const mr_record_scan_options *o, mr_error *error)
{
    if (o->threads < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_record_scan: threads is %" PRId32 ", but must be at least 0",
                       o->threads);
    return mr_damage_check_options("mr_record_scan", o->damage, o->damage_max, o->quarantine, error);
}

mr_status mr_record_scan(const char *const *paths, int32_t count, const mr_record_scan_options *given,
                         mr_record_totals *totals, mr_error *error)
{
    mr_record_scan_options own, *options = &own;
    if (totals != nullptr) *totals = (mr_record_totals){0};
    if (count < 0 || (count > 0 && paths == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_record_scan: count is %" PRId32 "%s", count,
                       paths != nullptr ? "" : ", but paths is null");
    for (int32_t i = 0; i < count; i++)
        if (paths[i] == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "mr_record_scan: path %" PRId32 " is null", i);
    MR_TRY(MR_OPTIONS_READ(mr_record_scan_options, options, given, error));
    MR_TRY(check_options(options, error));
    scan *scan = calloc(1, sizeof(*scan));
    if (scan == nullptr) return mr_fail_memory(error, sizeof(*scan));
    size_t block_bytes = options->block_bytes ? options->block_bytes : BLOCK_BYTES;
    if (block_bytes < BLOCK_MIN_BYTES) block_bytes = BLOCK_MIN_BYTES;
    if (block_bytes > BLOCK_MAX_BYTES) block_bytes = BLOCK_MAX_BYTES;
    int threads = options->threads > 0 ? options->threads : mr_processor_count();
    scan->paths = paths;
    scan->path_count = count;
    scan->options = options;
    scan->threads = useful_threads(paths, count, threads < THREADS_MAX ? threads : THREADS_MAX, block_bytes);
    scan->settings = (scan_settings){.block_bytes = (block_bytes + 4095) / 4096 * 4096,
                                     .skip_checksums = options->skip_checksums,
                                     .direct = options->direct,
                                     .damage = options->damage,
                                     .quarantine = options->quarantine};
    (void)pthread_mutex_init(&scan->mutex, nullptr);
    (void)pthread_cond_init(&scan->changed, nullptr);
    mr_status status = make_blocks(scan, error);
    if (status == MR_OK) status = run_threads(scan, error);
    if (status == MR_OK && scan->status != MR_OK) {
        status = scan->status;
        if (error != nullptr) *error = scan->error;
    }
    assert(scan->sleepers == 0 && !scan->is_framing && !scan->is_delivering);
    assert(scan->framed_count == 0 && scan->free_count == scan->block_count);
    if (totals != nullptr) *totals = scan->totals;
    if (scan->file != nullptr) release(scan, scan->file);
    for (int i = 0; i < scan->free_count; i++) {
        scan_block_deinit(scan->free_blocks[i]);
        free(scan->free_blocks[i]);
    }
    free(scan->framed);
    free(scan->free_blocks);
    (void)pthread_cond_destroy(&scan->changed);
    (void)pthread_mutex_destroy(&scan->mutex);
    free(scan);
    return status;
}
