/* The bytes of a record file as a window that slides over them: plain, GZIP or ZLIB, file or pipe.
 *
 * The window's bytes are contiguous, so a record in it is handed out as a view. Of a plain file the window lies in the
 * buffer that was read into; only the beginning of a record that crosses the edge of a buffer is copied, before the next
 * one, and a record longer than a buffer gets memory of its own. It grows only as far as bytes really come, so a length
 * that lies costs no memory. */
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
    bool ended; /* nothing comes after the window */
    mr_compression compression;
    mr_read_ring *ring;
    uint64_t base;                /* where in the file the stream began */
    char *window;                 /* borrowed: in the ring's buffer or in own */
    char *own;                    /* owned: what is inflated, and records longer than a buffer; null until needed */
    size_t own_bytes;             /* its capacity */
    size_t begin, end;            /* what is there and not yet consumed */
    uint64_t offset;              /* of window[begin] in the uncompressed stream */
    mr_record_inflater *inflater; /* owned; null for plain files */
    mr_error fault;               /* why the stream ended before its end; MR_OK when it did not */
} mr_record_stream;

/* What a file's first bytes (12 are enough) say. */
mr_compression mr_record_compression_of(const void *bytes, size_t size_bytes);

/* path  "-" for the standard input
 * errors  as mr_file_fail; MR_UNIMPLEMENTED for a compression that TFRecord files do not have, by its magic */
mr_status mr_record_stream_open(mr_record_stream *stream, const char *path, const mr_read_options *options,
                                mr_error *error);
/* The same over a descriptor of the caller's, which the stream closes, also when this fails. */
mr_status mr_record_stream_open_at(mr_record_stream *stream, int descriptor, const char *name,
                                   const mr_read_options *options, mr_error *error);
void mr_record_stream_deinit(mr_record_stream *stream);

/* Makes the window hold size_bytes, or all that is left when that is less: then ended is true.
 * errors  memory, and what reading the file reports (the stream has then ended). Damage of a compressed stream is no
 *         error here: the stream ends, and fault says why */
mr_status mr_record_stream_need(mr_record_stream *stream, size_t size_bytes, mr_error *error);

/* What the window holds. */
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

/* Bytes from offset to the end of a plain file, as far as is known now; UINT64_MAX for pipes and compressed files. */
uint64_t mr_record_stream_left(const mr_record_stream *stream);
/* Consumes everything to the end, without reading where that can be. */
void mr_record_stream_finish(mr_record_stream *stream);
/* Whether the stream has places: a plain file. */
bool mr_record_stream_is_seekable(const mr_record_stream *stream);
/* Goes to that byte of a seekable stream, forwards or backwards. */
void mr_record_stream_seek(mr_record_stream *stream, uint64_t offset);

/* Whether the stream is a compressed file that can be entered at points. */
bool mr_record_stream_can_enter(const mr_record_stream *stream);
/* Goes on at a point of a GZIP file: file_offset is the deflate stream's byte, offset that of what it gives. */
void mr_record_stream_enter(mr_record_stream *stream, uint64_t file_offset, uint64_t offset);

#endif
