/* The read ring: sequential reads of a file in large blocks, with read-ahead.
 *
 * If the file is in the page cache, each block is read into the same buffer, which stays in the processor's cache.
 * Otherwise the next blocks are requested with io_uring, into registered buffers, while the caller processes the
 * current one. Where io_uring is not available (containers, old kernels, MILLRACE_IO_URING=off), and for pipes, which
 * buffer data themselves, plain reads are used.
 *
 * Each block is preceded by space for bytes that the caller keeps from the block before. An item that crosses a block
 * boundary is made contiguous by copying only its first part.
 *
 * threads  one at a time */
#ifndef MR_RECORDS_READ_RING_H
#define MR_RECORDS_READ_RING_H

#include <millrace/status.h>
#include <stdint.h>

static constexpr size_t MR_READ_BLOCK_BYTES_MAX = (size_t)1 << 30;
static constexpr int32_t MR_READ_COUNT_MAX = 64;

typedef struct mr_read_options {
    size_t block_bytes; /* size of one read, at most the maximum; 0: 1 MiB; rounded up to a multiple of 4 KiB */
    int32_t count;      /* buffers, at most the maximum; 0: 4; read-ahead uses at least 2 */
    bool direct;        /* O_DIRECT if the file system supports it; never for pipes */
} mr_read_options;

typedef struct mr_read_ring mr_read_ring;

/* Reads start at the descriptor's current offset.
 * descriptor, name  borrowed; name is for messages */
mr_status mr_read_ring_open(int descriptor, const char *name, const mr_read_options *options, mr_read_ring **ring,
                            mr_error *error);
void mr_read_ring_free(mr_read_ring *ring);

size_t mr_read_ring_block_bytes(const mr_read_ring *ring);
/* Maximum number of kept bytes. */
size_t mr_read_ring_headroom(const mr_read_ring *ring);
/* Whether mr_read_ring_seek is allowed: false for pipes. */
bool mr_read_ring_is_seekable(const mr_read_ring *ring);
/* The file offset of the next byte; for pipes the number of bytes read since open. */
uint64_t mr_read_ring_offset(const mr_read_ring *ring);

/* Whether the next call returns bytes, or the end, without waiting. For bytes of a pipe it waits at most timeout_ms;
 * any signal ends the wait. */
bool mr_read_ring_wait(const mr_read_ring *ring, int timeout_ms);
/* Returns the next bytes, preceded by a copy of the kept bytes.
 * kept    the last bytes returned, where the previous call returned them or elsewhere; at most headroom
 * bytes   kept_bytes, then new bytes, together *size_bytes; no new bytes at the end. Valid until the next call
 * errors  as mr_file_fail; later calls return no bytes */
mr_status mr_read_ring_next(mr_read_ring *ring, const char *kept, size_t kept_bytes, char **bytes, size_t *size_bytes,
                            mr_error *error);
/* Reads once: up to size_bytes of the next bytes into the caller's memory. *done is their number, 0 only at the end, or
 * if size_bytes is 0. Invalidates the bytes returned by mr_read_ring_next. */
mr_status mr_read_ring_copy(mr_read_ring *ring, char *target, size_t size_bytes, size_t *done, mr_error *error);
/* Sets the offset of the next byte. The ring must be seekable. */
void mr_read_ring_seek(mr_read_ring *ring, uint64_t offset);
/* Whether io_uring is currently reading ahead. */
bool mr_read_ring_is_ahead(const mr_read_ring *ring);

#endif
