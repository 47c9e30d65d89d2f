/* The sliding window: see record_stream.h. Plain files are read with large reads into a window that stays in the cache;
 * mapping them would save the copy, but a file cut short under a mapping kills the process. */
#include "records/record_stream.h"

#include "base/arena.h"
#include "records/file.h"
#include "records/record_format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static constexpr size_t INPUT_BYTES = (size_t)64 << 10;
static constexpr size_t WINDOW_MIN_BYTES = (size_t)4 << 10;
/* Enough for a header and every magic. */
static constexpr size_t PEEK_BYTES = 12;

struct mr_record_inflater {
    z_stream zlib;
    bool member_done; /* between two members of a GZIP file */
    bool input_ended;
    uint64_t input_offset; /* of the compressed bytes consumed, for messages */
    unsigned char input[INPUT_BYTES];
};

/* One read, repeated when a signal comes; *got 0 at the end. */
static mr_status read_some(mr_record_stream *stream, void *bytes, size_t size_bytes, size_t *got, mr_error *error)
{
    ssize_t result;
    do result = read(stream->descriptor, bytes, size_bytes);
    while (result < 0 && errno == EINTR);
    *got = result > 0 ? (size_t)result : 0;
    if (result >= 0) return MR_OK;
    stream->ended = true;
    return mr_file_fail(error, errno, "read", stream->name);
}

/* ---- Compression ---- */

mr_compression mr_record_compression_of(const void *start, size_t size_bytes)
{
    const unsigned char *bytes = start;
    uint64_t length;
    if (size_bytes >= PEEK_BYTES && mr_record_header_holds(bytes, &length)) return MR_COMPRESSION_NONE;
    if (size_bytes >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8) return MR_COMPRESSION_GZIP;
    /* Deflate with a window up to 32 KiB, no dictionary, the two bytes a multiple of 31. */
    if (size_bytes >= 2 && (bytes[0] & 0x0f) == 8 && bytes[0] >> 4 <= 7 && !(bytes[1] & 0x20) &&
        (bytes[0] * 256 + bytes[1]) % 31 == 0)
        return MR_COMPRESSION_ZLIB;
    return MR_COMPRESSION_NONE;
}

/* The name of a format that is not for us, by its first bytes; null otherwise. */
static const char *foreign_format(const unsigned char *bytes, size_t size_bytes)
{
    static const struct {
        const char *magic, *name;
        size_t size_bytes;
    } formats[] = {
        {"\x28\xb5\x2f\xfd", "Zstandard", 4},
        {"BZh", "bzip2", 3},
        {"\xfd\x37zXZ", "xz", 6},
        {"\x04\x22\x4d\x18", "LZ4", 4},
        {"\xff\x06\0\0sNaPpY", "Snappy", 10},
        {"PK\x03\x04", "ZIP", 4},
    };
    uint64_t length;
    if (size_bytes >= PEEK_BYTES && mr_record_header_holds(bytes, &length)) return nullptr;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (size_bytes >= formats[i].size_bytes && memcmp(bytes, formats[i].magic, formats[i].size_bytes) == 0)
            return formats[i].name;
    return nullptr;
}

static mr_status start_inflater(mr_record_stream *stream, mr_error *error)
{
    mr_record_inflater *inflater = calloc(1, sizeof(*inflater));
    if (!inflater) return mr_fail_memory(error, sizeof(*inflater));
    /* 32 + 15: the largest window, GZIP or ZLIB by its header. */
    if (inflateInit2(&inflater->zlib, 32 + 15) != Z_OK) {
        free(inflater);
        return mr_fail_memory(error, sizeof(*inflater));
    }
    /* What was peeked at is the compressed beginning. */
    size_t peeked = mr_record_stream_held(stream);
    assert(peeked <= INPUT_BYTES);
    memcpy(inflater->input, mr_record_stream_bytes(stream), peeked);
    inflater->zlib.next_in = inflater->input;
    inflater->zlib.avail_in = (uInt)peeked;
    stream->begin = stream->end = 0;
    inflater->input_ended = stream->ended;
    stream->ended = false;
    stream->inflater = inflater;
    return MR_OK;
}

static void end_damaged(mr_record_stream *stream, const char *reason)
{
    stream->ended = true;
    (void)mr_fail(&stream->fault, MR_DATA_LOSS, "%s: the compressed stream is %s at its byte %llu", stream->name,
                  reason, (unsigned long long)stream->inflater->input_offset);
}

/* Between members: another member follows, or zeros that pad the file, or nothing. */
static void next_member(mr_record_stream *stream)
{
    mr_record_inflater *inflater = stream->inflater;
    while (inflater->zlib.avail_in > 0 && *inflater->zlib.next_in == 0) {
        inflater->zlib.next_in++;
        inflater->zlib.avail_in--;
        inflater->input_offset++;
    }
    if (inflater->zlib.avail_in == 0) {
        stream->ended = inflater->input_ended;
        return;
    }
    inflater->member_done = false;
    (void)inflateReset(&inflater->zlib);
}

/* Inflates something into the window's free end, or ends the stream. */
static mr_status inflate_some(mr_record_stream *stream, mr_error *error)
{
    mr_record_inflater *inflater = stream->inflater;
    z_stream *zlib = &inflater->zlib;
    if (zlib->avail_in == 0 && !inflater->input_ended) {
        size_t got;
        MR_TRY(read_some(stream, inflater->input, INPUT_BYTES, &got, error));
        inflater->input_ended = got == 0;
        zlib->next_in = inflater->input;
        zlib->avail_in = (uInt)got;
    }
    if (inflater->member_done) {
        next_member(stream);
        if (inflater->member_done) return MR_OK;
    }
    size_t free_bytes = stream->capacity - stream->end;
    uInt input_before = zlib->avail_in;
    zlib->next_out = (Bytef *)stream->window + stream->end;
    zlib->avail_out = free_bytes < UINT32_MAX ? (uInt)free_bytes : UINT32_MAX;
    uInt output_before = zlib->avail_out;
    int result = inflate(zlib, Z_NO_FLUSH);
    inflater->input_offset += input_before - zlib->avail_in;
    stream->end += output_before - zlib->avail_out;
    if (result == Z_MEM_ERROR) {
        stream->ended = true;
        return mr_fail_memory(error, INPUT_BYTES);
    }
    if (result == Z_STREAM_END)
        inflater->member_done = true;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        end_damaged(stream, "damaged");
    else if (zlib->avail_in == 0 && inflater->input_ended && zlib->avail_out > 0)
        end_damaged(stream, "cut short");
    return MR_OK;
}

/* ---- The window ---- */

static mr_status read_plain(mr_record_stream *stream, mr_error *error)
{
    size_t got;
    MR_TRY(read_some(stream, stream->window + stream->end, stream->capacity - stream->end, &got, error));
    stream->end += got;
    if (got == 0) stream->ended = true;
    return MR_OK;
}

mr_status mr_record_stream_need(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    size_t held = mr_record_stream_held(stream);
    if (held >= size_bytes || stream->ended) return MR_OK;
    memmove(stream->window, stream->window + stream->begin, held);
    stream->begin = 0;
    stream->end = held;
    while (stream->end < size_bytes && !stream->ended) {
        if (stream->end == stream->capacity) {
            size_t grown = stream->capacity * 2 < size_bytes ? stream->capacity * 2 : size_bytes;
            char *window = realloc(stream->window, grown);
            if (!window) return mr_fail_memory(error, grown);
            stream->window = window;
            stream->capacity = grown;
        }
        MR_TRY(stream->inflater ? inflate_some(stream, error) : read_plain(stream, error));
    }
    return MR_OK;
}

uint64_t mr_record_stream_left(const mr_record_stream *stream)
{
    struct stat about;
    if (stream->inflater || fstat(stream->descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return UINT64_MAX;
    /* Where the kernel reads on is behind the window; the standard input may have begun in the middle of its file. */
    off_t place = lseek(stream->descriptor, 0, SEEK_CUR);
    if (place < 0) return UINT64_MAX;
    uint64_t behind = about.st_size > place ? (uint64_t)(about.st_size - place) : 0;
    return mr_record_stream_held(stream) + behind;
}

void mr_record_stream_finish(mr_record_stream *stream)
{
    uint64_t left = mr_record_stream_left(stream);
    stream->offset += left == UINT64_MAX ? mr_record_stream_held(stream) : left;
    stream->begin = stream->end = 0;
    stream->ended = true;
}

mr_status mr_record_stream_open(mr_record_stream *stream, const char *path, size_t window_bytes, mr_error *error)
{
    assert(!stream->is_open);
    bool is_input = strcmp(path, "-") == 0;
    *stream = (mr_record_stream){.descriptor = STDIN_FILENO};
    if (!is_input) MR_TRY(mr_file_open(path, &stream->descriptor, error));
    stream->is_open = true;
    stream->name = strdup(is_input ? "standard input" : path);
    stream->capacity = window_bytes < WINDOW_MIN_BYTES ? WINDOW_MIN_BYTES : window_bytes;
    stream->window = malloc(stream->capacity);
    if (!stream->name || !stream->window) {
        mr_record_stream_deinit(stream);
        return mr_fail_memory(error, window_bytes);
    }
    /* Only a hint; pipes do not take it. */
    (void)posix_fadvise(stream->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);

    /* The first read asks for little, so that what is peeked at fits the inflater's input. */
    size_t capacity = stream->capacity;
    stream->capacity = WINDOW_MIN_BYTES;
    mr_status status = mr_record_stream_need(stream, PEEK_BYTES, error);
    stream->capacity = capacity;
    const unsigned char *bytes = (const unsigned char *)mr_record_stream_bytes(stream);
    size_t held = mr_record_stream_held(stream);
    if (status == MR_OK) {
        const char *foreign = foreign_format(bytes, held);
        if (foreign)
            status =
                mr_fail(error, MR_UNIMPLEMENTED,
                        "%s: is %s; TFRecord files are plain, GZIP or ZLIB, so decompress it first", path, foreign);
    }
    if (status == MR_OK) {
        stream->compression = mr_record_compression_of(bytes, held);
        if (stream->compression != MR_COMPRESSION_NONE) status = start_inflater(stream, error);
    }
    if (status != MR_OK) mr_record_stream_deinit(stream);
    return status;
}

void mr_record_stream_deinit(mr_record_stream *stream)
{
    if (stream->inflater) {
        (void)inflateEnd(&stream->inflater->zlib);
        free(stream->inflater);
    }
    if (stream->is_open && stream->descriptor != STDIN_FILENO) (void)close(stream->descriptor);
    free(stream->window);
    free(stream->name);
    *stream = (mr_record_stream){0};
}
