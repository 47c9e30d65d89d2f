/* Read-ahead: see read_ring.h.
 *
 * The buffers are used cyclically. The last one returned belongs to the caller; the others are in flight, in file
 * order, once the page cache has been found empty:
 *
 *     … | returned | in flight: head … | free | …       head, tail: blocks counted from the beginning,
 *                                  tail                 block b is in buffer b % count
 *
 * A short or failed read is repeated with pread, which determines the reason. A feature that a kernel lacks or a
 * sandbox forbids therefore only costs speed. */
#include "records/io/read_ring.h"

#include "base/status.h"
#include "records/io/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static constexpr size_t BLOCK_BYTES = (size_t)1 << 20;
static constexpr size_t HEADROOM_MAX_BYTES = (size_t)64 << 10;
/* The alignment that O_DIRECT requires of offsets, addresses and sizes on all common devices. */
static constexpr size_t ALIGNMENT = 4096;
static constexpr int32_t COUNT = 4;
static constexpr int PIPE_BYTES = 1 << 20;

typedef struct block {
    uint64_t offset; /* file offset, aligned */
    int result;      /* result of the read */
    bool is_done;
} block;

struct mr_read_ring {
    int descriptor;
    const char *name;
    size_t block_bytes, headroom;
    int32_t count;
    bool is_seekable, is_direct;
    bool may_look;  /* preadv2 can report what the page cache contains */
    bool may_ahead; /* io_uring has not failed yet */
    bool ended;
    char *memory;    /* owned: count times (headroom + block) */
    int32_t current; /* index of the buffer that was returned */
    char *rest;      /* bytes of the current block that have not been returned */
    size_t rest_bytes;
    uint64_t offset; /* file offset of the first byte after the current block */

    struct io_uring uring;
    bool has_uring, is_registered;
    bool is_broken; /* the kernel may still write to memory */
    uint64_t head, tail;
    block blocks[MR_READ_COUNT_MAX];
};

static size_t round_up(size_t size)
{
    assert(size > 0 && size <= MR_READ_BLOCK_BYTES_MAX);
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void keep(char *start, const char *kept, size_t kept_bytes)
{
    if (kept_bytes > 0) memmove(start - kept_bytes, kept, kept_bytes);
}

static char *data_of(const mr_read_ring *ring, int32_t buffer)
{
    assert(buffer >= 0 && buffer < ring->count);
    return ring->memory + (size_t)buffer * (ring->headroom + ring->block_bytes) + ring->headroom;
}

static bool is_allowed(void)
{
    const char *choice = getenv("MILLRACE_IO_URING");
    return choice == nullptr || strcmp(choice, "off") != 0;
}

mr_status mr_read_ring_open(int descriptor, const char *name, const mr_read_options *options, mr_read_ring **ring,
                            mr_error *error)
{
    mr_read_ring *opened = calloc(1, sizeof(*opened));
    if (opened == nullptr) return mr_fail_memory(error, sizeof(*opened));
    size_t block_bytes = options->block_bytes ? options->block_bytes : BLOCK_BYTES;
    int32_t count = options->count ? options->count : COUNT;
    assert(block_bytes <= MR_READ_BLOCK_BYTES_MAX && count >= 1 && count <= MR_READ_COUNT_MAX);
    opened->descriptor = descriptor;
    opened->name = name;
    opened->block_bytes = round_up(block_bytes);
    opened->headroom = opened->block_bytes < HEADROOM_MAX_BYTES ? opened->block_bytes : HEADROOM_MAX_BYTES;
    opened->count = count;
    off_t position = lseek(descriptor, 0, SEEK_CUR);
    opened->is_seekable = position >= 0;
    opened->offset = position >= 0 ? (uint64_t)position : 0;
    opened->may_look = opened->is_seekable;
    opened->may_ahead = opened->is_seekable && opened->count > 1 && is_allowed();
    /* Best effort: failures are ignored. */
    if (!opened->is_seekable) (void)fcntl(descriptor, F_SETPIPE_SZ, PIPE_BYTES);
    if (opened->is_seekable && options->direct)
        opened->is_direct = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_DIRECT) == 0;
    size_t memory_bytes = (opened->headroom + opened->block_bytes) * (size_t)(opened->may_ahead ? opened->count : 1);
    opened->memory = aligned_alloc(ALIGNMENT, memory_bytes);
    if (opened->memory == nullptr) {
        free(opened);
        return mr_fail_memory(error, memory_bytes);
    }
    assert(opened->count >= 1 && opened->block_bytes % ALIGNMENT == 0);
    assert(opened->headroom % ALIGNMENT == 0 && opened->headroom <= opened->block_bytes);
    *ring = opened;
    return MR_OK;
}

size_t mr_read_ring_block_bytes(const mr_read_ring *ring)
{
    return ring->block_bytes;
}

size_t mr_read_ring_headroom(const mr_read_ring *ring)
{
    return ring->headroom;
}

bool mr_read_ring_is_seekable(const mr_read_ring *ring)
{
    return ring->is_seekable;
}

uint64_t mr_read_ring_offset(const mr_read_ring *ring)
{
    assert(ring->rest_bytes <= ring->offset);
    return ring->offset - ring->rest_bytes;
}

bool mr_read_ring_is_ahead(const mr_read_ring *ring)
{
    return ring->tail > ring->head;
}

/* ---- Plain reads ---- */

static uint64_t file_size(const mr_read_ring *ring)
{
    struct stat about;
    return fstat(ring->descriptor, &about) == 0 && S_ISREG(about.st_mode) ? (uint64_t)about.st_size : UINT64_MAX;
}

/* One read, repeated after a signal; *got is 0 at the end. */
static mr_status read_once(mr_read_ring *ring, char *target, size_t size_bytes, uint64_t offset, size_t *got,
                           mr_error *error)
{
    assert(size_bytes > 0);
    ssize_t result;
    do
        result = ring->is_seekable ? pread(ring->descriptor, target, size_bytes, (off_t)offset)
                                   : read(ring->descriptor, target, size_bytes);
    while (result < 0 && errno == EINTR);
    *got = result > 0 ? (size_t)result : 0;
    if (result >= 0) return MR_OK;
    ring->ended = true;
    return mr_file_fail(error, errno, "read", ring->name);
}

/* Continues after the first `done` bytes of a block until it is full or the file ends. */
static mr_status read_rest(mr_read_ring *ring, char *data, uint64_t offset, size_t *done, mr_error *error)
{
    assert(*done <= ring->block_bytes && offset % ALIGNMENT == 0);
    while (*done < ring->block_bytes && offset + *done < file_size(ring)) {
        size_t from = ring->is_direct ? *done / ALIGNMENT * ALIGNMENT : *done, got;
        MR_TRY(read_once(ring, data + from, ring->block_bytes - from, offset + from, &got, error));
        if (from + got <= *done) break;
        *done = from + got;
    }
    return MR_OK;
}

bool mr_read_ring_wait(const mr_read_ring *ring, int timeout_ms)
{
    if (ring->is_seekable || ring->ended || ring->rest_bytes > 0) return true;
    struct pollfd input = {.fd = ring->descriptor, .events = POLLIN};
    int result = poll(&input, 1, timeout_ms);
    return result > 0 || (result < 0 && errno != EINTR);
}

typedef enum look { LOOK_FOUND, LOOK_NOT_CACHED, LOOK_UNKNOWN } look;

/* Reads the part that is in the page cache, without waiting. */
static look read_cached(mr_read_ring *ring, char *target, size_t size_bytes, uint64_t offset, size_t *got)
{
    if (!ring->may_look) return LOOK_UNKNOWN;
    const struct iovec where = {.iov_base = target, .iov_len = size_bytes};
    ssize_t result = preadv2(ring->descriptor, &where, 1, (off_t)offset, RWF_NOWAIT);
    if (result > 0) {
        *got = (size_t)result;
        return LOOK_FOUND;
    }
    if (result < 0 && errno == EAGAIN) return LOOK_NOT_CACHED;
    if (result < 0 && errno != EINTR) ring->may_look = false;
    return LOOK_UNKNOWN;
}

/* ---- Read-ahead ---- */

static void stop_ahead(mr_read_ring *ring)
{
    if (ring->has_uring) io_uring_queue_exit(&ring->uring);
    ring->has_uring = ring->may_ahead = false;
}

static bool start_uring(mr_read_ring *ring)
{
    if (ring->has_uring) return true;
    if (io_uring_queue_init((unsigned)ring->count, &ring->uring, 0) != 0) {
        ring->may_ahead = false;
        return false;
    }
    ring->has_uring = true;
    struct iovec buffers[MR_READ_COUNT_MAX];
    for (int32_t i = 0; i < ring->count; i++)
        buffers[i] = (struct iovec){.iov_base = data_of(ring, i), .iov_len = ring->block_bytes};
    /* Registered memory is locked, and the process's limit may be low; without registration the kernel maps the buffer
     * for each read. */
    ring->is_registered = io_uring_register_buffers(&ring->uring, buffers, (unsigned)ring->count) == 0;
    return true;
}

/* Keeps all free buffers in flight. offset: of block `tail`. */
static void submit_free(mr_read_ring *ring, uint64_t offset)
{
    assert(ring->has_uring && ring->head <= ring->tail && offset % ALIGNMENT == 0);
    unsigned requested = 0;
    for (; ring->tail - ring->head + 1 < (uint64_t)ring->count; ring->tail++, offset += ring->block_bytes) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
        if (entry == nullptr) break;
        int32_t buffer = (int32_t)(ring->tail % (uint64_t)ring->count);
        ring->blocks[buffer] = (block){.offset = offset};
        if (ring->is_registered)
            io_uring_prep_read_fixed(entry, ring->descriptor, data_of(ring, buffer), (unsigned)ring->block_bytes,
                                     offset, buffer);
        else
            io_uring_prep_read(entry, ring->descriptor, data_of(ring, buffer), (unsigned)ring->block_bytes, offset);
        io_uring_sqe_set_data64(entry, (uint64_t)buffer);
        requested++;
    }
    assert(ring->tail - ring->head < (uint64_t)ring->count);
    if (requested == 0) return;
    int submitted = io_uring_submit(&ring->uring);
    /* Reads that the kernel did not accept are not in flight; those blocks are read when they are needed. */
    for (unsigned i = submitted > 0 ? (unsigned)submitted : 0; i < requested; i++) {
        block *refused = &ring->blocks[(ring->tail - requested + i) % (uint64_t)ring->count];
        refused->is_done = true;
        refused->result = -EAGAIN;
    }
    if (submitted < (int)requested) ring->may_ahead = false;
}

/* Waits until the read into that buffer has completed. */
static void wait_for(mr_read_ring *ring, block *wanted)
{
    assert(wanted->is_done || ring->has_uring);
    while (!wanted->is_done) {
        struct io_uring_cqe *completed;
        int result = io_uring_wait_cqe(&ring->uring, &completed);
        if (result == -EINTR || result == -EAGAIN) continue;
        /* Never observed. It is then unknown when the reads complete. */
        if (result != 0) {
            ring->is_broken = true;
            stop_ahead(ring);
            for (int32_t i = 0; i < ring->count; i++)
                if (!ring->blocks[i].is_done) ring->blocks[i] = (block){ring->blocks[i].offset, -EIO, true};
            return;
        }
        assert(io_uring_cqe_get_data64(completed) < (uint64_t)ring->count);
        block *back = &ring->blocks[io_uring_cqe_get_data64(completed)];
        back->result = completed->res;
        back->is_done = true;
        io_uring_cqe_seen(&ring->uring, completed);
    }
}

static void drain(mr_read_ring *ring)
{
    assert(ring->head <= ring->tail);
    for (; ring->head < ring->tail; ring->head++) wait_for(ring, &ring->blocks[ring->head % (uint64_t)ring->count]);
}

void mr_read_ring_free(mr_read_ring *ring)
{
    if (ring == nullptr) return;
    drain(ring);
    if (ring->has_uring) io_uring_queue_exit(&ring->uring);
    if (!ring->is_broken) free(ring->memory);
    free(ring);
}

/* Starts reading ahead at this offset, if more than one block is left and io_uring is available. */
static void begin_ahead(mr_read_ring *ring, uint64_t aligned)
{
    assert(ring->head == ring->tail);
    if (!ring->may_ahead || file_size(ring) <= aligned + ring->block_bytes || !start_uring(ring)) return;
    /* Block `head - 1` is the returned one, whose bytes the caller may still keep. */
    ring->head = ring->tail = (uint64_t)ring->current + 1;
    submit_free(ring, aligned);
}

/* ---- Blocks ---- */

/* Reads the block at an aligned offset into the current buffer and waits for it; the first `skipped` bytes are not
 * needed. */
static mr_status read_block(mr_read_ring *ring, uint64_t aligned, size_t skipped, size_t *got, mr_error *error)
{
    assert(ring->head == ring->tail && skipped < ALIGNMENT);
    char *data = data_of(ring, ring->current);
    size_t from = ring->is_direct ? 0 : skipped;
    MR_TRY(read_once(ring, data + from, ring->block_bytes - from, aligned + from, got, error));
    *got += from;
    return MR_OK;
}

/* The oldest block in flight becomes the current one. */
static mr_status take_ahead(mr_read_ring *ring, size_t skipped, const char *kept, size_t kept_bytes, size_t *got,
                            mr_error *error)
{
    assert(ring->head < ring->tail && kept_bytes <= ring->headroom);
    int32_t buffer = (int32_t)(ring->head % (uint64_t)ring->count);
    wait_for(ring, &ring->blocks[buffer]);
    block arrived = ring->blocks[buffer];
    assert(arrived.is_done && buffer != ring->current);
    char *data = data_of(ring, buffer);
    *got = arrived.result > 0 ? (size_t)arrived.result : 0;
    ring->head++;
    MR_TRY(read_rest(ring, data, arrived.offset, got, error));
    /* Copied before the buffer that contains them is overwritten. */
    keep(data + skipped, kept, kept_bytes);
    ring->current = buffer;
    if (*got == ring->block_bytes && ring->may_ahead)
        submit_free(ring, arrived.offset + (ring->tail - ring->head + 1) * ring->block_bytes);
    return MR_OK;
}

/* Fetches the next block: rest and rest_bytes are its bytes, none at the end, preceded by the kept bytes. */
static mr_status fetch(mr_read_ring *ring, const char *kept, size_t kept_bytes, mr_error *error)
{
    assert(ring->rest_bytes == 0 && kept_bytes <= ring->headroom);
    size_t skipped = ring->is_seekable ? (size_t)(ring->offset % ALIGNMENT) : 0, got = 0;
    uint64_t aligned = ring->offset - skipped;
    if (ring->tail > ring->head && ring->blocks[ring->head % (uint64_t)ring->count].offset != aligned) drain(ring);
    look found = LOOK_UNKNOWN;
    if (ring->tail == ring->head) {
        /* Copied before this buffer is overwritten. O_DIRECT also reads the bytes before the offset, which are the same
         * again. */
        char *data = data_of(ring, ring->current);
        keep(data + skipped, kept, kept_bytes);
        kept = data + skipped - kept_bytes;
        if (ring->is_direct)
            begin_ahead(ring, aligned);
        else
            found = read_cached(ring, data + skipped, ring->block_bytes - skipped, ring->offset, &got);
        if (found == LOOK_NOT_CACHED) begin_ahead(ring, aligned);
        if (found == LOOK_FOUND)
            got += skipped;
        else if (ring->tail == ring->head)
            MR_TRY(read_block(ring, aligned, skipped, &got, error));
    }
    if (ring->tail > ring->head) MR_TRY(take_ahead(ring, skipped, kept, kept_bytes, &got, error));
    assert(got <= ring->block_bytes);
    ring->rest = data_of(ring, ring->current) + skipped;
    ring->rest_bytes = got > skipped ? got - skipped : 0;
    ring->offset += ring->rest_bytes;
    ring->ended = ring->rest_bytes == 0;
    return MR_OK;
}

mr_status mr_read_ring_next(mr_read_ring *ring, const char *kept, size_t kept_bytes, char **bytes, size_t *size_bytes,
                            mr_error *error)
{
    assert(kept_bytes <= ring->headroom);
    if (ring->rest_bytes == 0 && !ring->ended) {
        MR_TRY(fetch(ring, kept, kept_bytes, error));
        *bytes = ring->rest - kept_bytes;
    } else {
        /* The rest of the block after mr_read_ring_copy, or nothing. */
        char *start = ring->rest_bytes > 0 ? ring->rest : data_of(ring, ring->current);
        keep(start, kept, kept_bytes);
        *bytes = start - kept_bytes;
    }
    *size_bytes = kept_bytes + ring->rest_bytes;
    ring->rest_bytes = 0;
    return MR_OK;
}

mr_status mr_read_ring_copy(mr_read_ring *ring, char *target, size_t size_bytes, size_t *done, mr_error *error)
{
    *done = 0;
    if (size_bytes == 0) return MR_OK;
    if (ring->rest_bytes == 0 && !ring->ended && (ring->is_direct || mr_read_ring_is_ahead(ring)))
        MR_TRY(fetch(ring, nullptr, 0, error));
    if (ring->rest_bytes > 0) {
        *done = size_bytes < ring->rest_bytes ? size_bytes : ring->rest_bytes;
        memcpy(target, ring->rest, *done);
        ring->rest += *done;
        ring->rest_bytes -= *done;
    } else if (!ring->ended) {
        MR_TRY(read_once(ring, target, size_bytes, ring->offset, done, error));
        ring->offset += *done;
        ring->ended = *done == 0;
    }
    assert(*done <= size_bytes);
    return MR_OK;
}

void mr_read_ring_seek(mr_read_ring *ring, uint64_t offset)
{
    assert(ring->is_seekable);
    ring->offset = offset;
    ring->rest_bytes = 0;
    ring->ended = false;
}
