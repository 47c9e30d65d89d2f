/* A file's bytes in order, in large blocks, read ahead.
 *
 * What the page cache holds is read block by block into one buffer, which stays in the processor's cache. When it holds
 * nothing, the next blocks are asked of io_uring, into registered buffers, while the caller works on this one. Where
 * io_uring is not allowed (containers, old kernels, MILLRACE_IO_URING=off), and for pipes, whose reading ahead is the
 * pipe's own, plain reads do the same.
 *
 * Before each block there is room for what the caller keeps of the one before it, so that a piece that crosses the edge of
 * a block becomes whole by copying its first part alone.
 *
 * threads  one at a time */
#ifndef MR_RECORDS_READ_RING_H
#define MR_RECORDS_READ_RING_H

#include <millrace/status.h>
#include <stdint.h>

typedef struct mr_read_options {
    size_t block_bytes; /* of one read; 0: 1 MiB; rounded up to 4 KiB */
    int32_t count;      /* buffers; 0: 4; at least 2 are used for reading ahead */
    bool direct;        /* O_DIRECT where the file system has it; never for pipes */
} mr_read_options;

typedef struct mr_read_ring mr_read_ring;

/* Begins where the descriptor stands.
 * descriptor, name  borrowed; name is for messages */
mr_status mr_read_ring_open(int descriptor, const char *name, const mr_read_options *options, mr_read_ring **ring,
                            mr_error *error);
void mr_read_ring_free(mr_read_ring *ring);

size_t mr_read_ring_block_bytes(const mr_read_ring *ring);
/* The most that may be kept. */
size_t mr_read_ring_headroom(const mr_read_ring *ring);
/* Whether the file has places: then seek works. */
bool mr_read_ring_is_seekable(const mr_read_ring *ring);
/* Of the next byte that comes, in the file; for pipes since open. */
uint64_t mr_read_ring_offset(const mr_read_ring *ring);

/* The next bytes, with a copy of the kept ones before them.
 * kept    the last bytes that came, where the call before gave them or elsewhere; at most headroom
 * bytes   kept_bytes and then new ones, together *size_bytes; no new ones at the end. Valid until the next call
 * errors  as mr_file_fail; nothing comes after that */
mr_status mr_read_ring_next(mr_read_ring *ring, const char *kept, size_t kept_bytes, char **bytes, size_t *size_bytes,
                            mr_error *error);
/* The next size_bytes into memory of the caller's, or as many as there are: *done says how many. What next gave before is
 * no longer valid. */
mr_status mr_read_ring_copy(mr_read_ring *ring, char *target, size_t size_bytes, size_t *done, mr_error *error);
/* What comes next begins there. Only when seekable. */
void mr_read_ring_seek(mr_read_ring *ring, uint64_t offset);
/* Whether blocks are being read ahead by io_uring now. */
bool mr_read_ring_is_ahead(const mr_read_ring *ring);

#endif
