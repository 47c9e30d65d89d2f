/* The record stream: a sliding window over the bytes of a record file: plain, GZIP or ZLIB, file or pipe.
 *
 * The bytes of the window are contiguous, so that a record in it is returned as a view. For a plain file the window is
 * inside the read buffer. Only the first part of a record that crosses a buffer boundary is copied, to the space before
 * the next buffer; a record longer than a buffer gets its own memory. That memory grows only as bytes are read, so an
 * invalid length costs no memory. */
#ifndef MR_RECORDS_RECORD_STREAM_H
#define MR_RECORDS_RECORD_STREAM_H

#include "records/io/read_ring.h"

#include <millrace/record.h>

typedef struct mr_record_inflater mr_record_inflater;

/* {0} is closed. */
typedef struct mr_record_stream {
    char *name; /* owned; the path, or "standard input" */
    int descriptor;
    bool is_open;
    bool ended; /* no bytes follow the window */
    mr_compression compression;
    mr_read_ring *ring;
    uint64_t base;                /* file offset at which the stream started */
    char *window;                 /* borrowed: points into the ring's buffer or own */
    char *own;                    /* owned: decompressed bytes, and records longer than a buffer; null until needed */
    size_t own_bytes;             /* its capacity */
    size_t begin, end;            /* bytes of the window that are available and not yet consumed */
    uint64_t offset;              /* of window[begin] in the uncompressed stream */
    mr_record_inflater *inflater; /* owned; null for plain files */
    mr_error fault;               /* why the stream ended early; otherwise MR_OK */
} mr_record_stream;

/* Detects the compression from the first bytes of a file; 12 are enough. */
mr_compression mr_record_compression_of(const void *bytes, size_t size_bytes);

/* path  "-" for standard input
 * errors  as mr_file_fail; MR_UNIMPLEMENTED for a compression that TFRecord files do not use, detected by its magic
 *         number */
mr_status mr_record_stream_open(mr_record_stream *stream, const char *path, const mr_read_options *options,
                                mr_error *error);
/* The same for the caller's descriptor, which the stream closes, also if this fails. */
mr_status mr_record_stream_open_at(mr_record_stream *stream, int descriptor, const char *name,
                                   const mr_read_options *options, mr_error *error);
void mr_record_stream_deinit(mr_record_stream *stream);

/* Extends the window to size_bytes, or to the end of the stream if fewer bytes are left: ended is then true.
 * errors out of memory, and read errors (the stream has then ended). Damage in a compressed stream is not an error
 * here:
 *         the stream ends, and fault is the reason */
mr_status mr_record_stream_need(mr_record_stream *stream, size_t size_bytes, mr_error *error);

/* The same, but waits for a pipe only until the deadline or a signal: *is_ready is then false. */
mr_status mr_record_stream_wait(mr_record_stream *stream, size_t size_bytes, uint64_t deadline_ms, bool *is_ready,
                                mr_error *error);
/* A deadline of a wait. timeout_ms  0: read what has arrived, without waiting; negative: none */
uint64_t mr_record_stream_deadline(int32_t timeout_ms);
/* Bytes available in the window. */
static inline size_t mr_record_stream_held(const mr_record_stream *stream)
{
    return stream->end - stream->begin;
}

static inline const char *mr_record_stream_bytes(const mr_record_stream *stream)
{
    return stream->window + stream->begin;
}

static inline void mr_record_stream_consume(mr_record_stream *stream, size_t size_bytes)
{
    stream->begin += size_bytes;
    stream->offset += size_bytes;
}

/* Bytes from offset to the end of a plain file, as currently known; UINT64_MAX for pipes and compressed files. */
uint64_t mr_record_stream_left(const mr_record_stream *stream);
/* Consumes all bytes to the end, without reading them if possible. */
void mr_record_stream_finish(mr_record_stream *stream);
/* Whether the stream can seek: only plain files. */
bool mr_record_stream_is_seekable(const mr_record_stream *stream);
/* Moves to that byte of a seekable stream, forward or backward. */
void mr_record_stream_seek(mr_record_stream *stream, uint64_t offset);

/* Whether the stream is a compressed file that can be decompressed from points. */
bool mr_record_stream_can_enter(const mr_record_stream *stream);
/* Continues at a point of a GZIP file: file_offset is in the compressed file, offset that of the decompressed bytes. */
void mr_record_stream_enter(mr_record_stream *stream, uint64_t file_offset, uint64_t offset);

#endif
