/* The sliding window: see record_stream.h. Plain files are read in large blocks into a buffer that stays in the cache.
 * Mapping them would avoid the copy, but truncating a mapped file kills the process. */
#include "records/record/record_stream.h"

#include "base/status.h"
#include "records/io/file.h"
#include "records/record/record_format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

/* A larger buffer, allocated for a long record, is freed after that record. */
static constexpr size_t OWN_KEPT_BYTES = (size_t)32 << 20;
/* Enough for a header and for all magic numbers. */
static constexpr size_t PEEK_BYTES = 12;
static constexpr int GZIP_TRAILER_BYTES = 8;

struct mr_record_inflater {
    z_stream zlib;
    bool member_done; /* between two members of a GZIP file */
    int trailer_left; /* remaining trailer bytes of a member that was entered at a point, whose checksum covers more
                         than was read */
    bool is_raw;      /* inside such a member */
    bool input_ended;
    uint64_t input_offset; /* compressed bytes consumed, for messages */
};

/* ---- Compression ---- */

mr_compression mr_record_compression_of(const void *start, size_t size_bytes)
{
    const unsigned char *bytes = start;
    uint64_t length;
    if (size_bytes >= PEEK_BYTES && mr_record_header_is_valid(bytes, &length)) return MR_COMPRESSION_NONE;
    if (size_bytes >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8) return MR_COMPRESSION_GZIP;
    /* Deflate with a window of up to 32 KiB, no preset dictionary, and the two bytes a multiple of 31. */
    if (size_bytes >= 2 && (bytes[0] & 0x0f) == 8 && bytes[0] >> 4 <= 7 && !(bytes[1] & 0x20) &&
        (bytes[0] * 256 + bytes[1]) % 31 == 0)
        return MR_COMPRESSION_ZLIB;
    return MR_COMPRESSION_NONE;
}

/* The name of an unsupported format, detected by its first bytes; otherwise null. */
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
    if (size_bytes >= PEEK_BYTES && mr_record_header_is_valid(bytes, &length)) return nullptr;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (size_bytes >= formats[i].size_bytes && memcmp(bytes, formats[i].magic, formats[i].size_bytes) == 0)
            return formats[i].name;
    return nullptr;
}

static mr_status start_inflater(mr_record_stream *stream, mr_error *error)
{
    assert(stream->own == nullptr && stream->inflater == nullptr && stream->begin <= stream->end);
    mr_record_inflater *inflater = calloc(1, sizeof(*inflater));
    if (inflater == nullptr) return mr_fail_memory(error, sizeof(*inflater));
    /* 32 + 15: maximum window, GZIP or ZLIB detected by the header. */
    if (inflateInit2(&inflater->zlib, 32 + 15) != Z_OK) {
        free(inflater);
        return mr_fail_memory(error, sizeof(*inflater));
    }
    stream->own_bytes = mr_read_ring_block_bytes(stream->ring);
    stream->own = malloc(stream->own_bytes);
    if (stream->own == nullptr) {
        (void)inflateEnd(&inflater->zlib);
        free(inflater);
        return mr_fail_memory(error, stream->own_bytes);
    }
    /* The peeked bytes are the beginning of the compressed data; they stay in the ring's buffer until the next read. */
    inflater->zlib.next_in = (Bytef *)stream->window + stream->begin;
    inflater->zlib.avail_in = (uInt)mr_record_stream_held(stream);
    stream->window = stream->own;
    stream->begin = stream->end = 0;
    inflater->input_ended = stream->ended;
    stream->ended = false;
    stream->inflater = inflater;
    return MR_OK;
}

static void end_damaged(mr_record_stream *stream, const char *reason)
{
    assert(stream->inflater != nullptr && stream->fault.status == MR_OK);
    stream->ended = true;
    (void)mr_fail(&stream->fault, MR_DATA_LOSS, "%s: the compressed stream is %s at compressed byte %llu", stream->name,
                  reason, (unsigned long long)stream->inflater->input_offset);
}

/* Between members: another member follows, or zero padding, or nothing. */
static void next_member(mr_record_stream *stream)
{
    mr_record_inflater *inflater = stream->inflater;
    assert(inflater->member_done && inflater->trailer_left >= 0 && inflater->trailer_left <= GZIP_TRAILER_BYTES);
    while (inflater->zlib.avail_in > 0 && (inflater->trailer_left > 0 || *inflater->zlib.next_in == 0)) {
        if (inflater->trailer_left > 0) inflater->trailer_left--;
        inflater->zlib.next_in++;
        inflater->zlib.avail_in--;
        inflater->input_offset++;
    }
    if (inflater->zlib.avail_in == 0) {
        if (inflater->input_ended && inflater->trailer_left > 0) end_damaged(stream, "truncated");
        stream->ended = inflater->input_ended;
        return;
    }
    inflater->member_done = inflater->is_raw = false;
    (void)inflateReset2(&inflater->zlib, 32 + 15);
}

/* Decompresses into the free end of the window, or ends the stream. */
static mr_status inflate_some(mr_record_stream *stream, mr_error *error)
{
    assert(stream->window == stream->own && stream->end < stream->own_bytes);
    mr_record_inflater *inflater = stream->inflater;
    z_stream *zlib = &inflater->zlib;
    if (zlib->avail_in == 0 && !inflater->input_ended) {
        size_t got;
        char *input;
        mr_status status = mr_read_ring_next(stream->ring, nullptr, 0, &input, &got, error);
        if (status != MR_OK) {
            stream->ended = true;
            return status;
        }
        inflater->input_ended = got == 0;
        zlib->next_in = (Bytef *)input;
        zlib->avail_in = (uInt)got;
    }
    if (inflater->member_done) {
        next_member(stream);
        if (inflater->member_done) return MR_OK;
    }
    size_t free_bytes = stream->own_bytes - stream->end;
    uInt input_before = zlib->avail_in;
    zlib->next_out = (Bytef *)stream->window + stream->end;
    zlib->avail_out = free_bytes < UINT32_MAX ? (uInt)free_bytes : UINT32_MAX;
    uInt output_before = zlib->avail_out;
    int result = inflate(zlib, Z_NO_FLUSH);
    inflater->input_offset += input_before - zlib->avail_in;
    stream->end += output_before - zlib->avail_out;
    assert(stream->end <= stream->own_bytes);
    if (result == Z_MEM_ERROR) {
        stream->ended = true;
        return mr_fail_memory(error, (size_t)1 << MAX_WBITS);
    }
    if (result == Z_STREAM_END) {
        inflater->member_done = true;
        inflater->trailer_left = inflater->is_raw ? GZIP_TRAILER_BYTES : 0;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        end_damaged(stream, "damaged");
    } else if (zlib->avail_in == 0 && inflater->input_ended && zlib->avail_out > 0) {
        end_damaged(stream, "truncated");
    }
    return MR_OK;
}

/* ---- The window ---- */

/* Grows `own` to size_bytes; its contents are kept. */
static mr_status grow_own(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    assert(stream->window != stream->own || stream->end <= stream->own_bytes);
    if (size_bytes <= stream->own_bytes) return MR_OK;
    char *own = realloc(stream->own, size_bytes);
    if (own == nullptr) return mr_fail_memory(error, size_bytes);
    if (stream->window == stream->own) stream->window = own;
    stream->own = own;
    stream->own_bytes = size_bytes;
    return MR_OK;
}

/* Doubles a full `own`, up to size_bytes. */
static mr_status make_room(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    assert(stream->window == stream->own && stream->begin == 0 && stream->end < size_bytes);
    if (stream->end < stream->own_bytes) return MR_OK;
    return grow_own(stream, stream->own_bytes * 2 < size_bytes ? stream->own_bytes * 2 : size_bytes, error);
}

/* Moves the bytes of the window to the beginning of `own`. */
static void move_to_front(mr_record_stream *stream)
{
    size_t held = mr_record_stream_held(stream);
    assert(held <= stream->own_bytes);
    if (stream->begin > 0) memmove(stream->own, stream->window + stream->begin, held);
    stream->begin = 0;
    stream->end = held;
}

static mr_status extend_inflated(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    assert(stream->window == stream->own && stream->begin <= stream->end);
    move_to_front(stream);
    MR_TRY(make_room(stream, size_bytes, error));
    return inflate_some(stream, error);
}

/* Moves the window to the ring's next buffer, preceded by the remaining bytes of the window. */
static mr_status slide(mr_record_stream *stream, mr_error *error)
{
    size_t held = mr_record_stream_held(stream), size;
    char *bytes;
    const char *window = held > 0 ? stream->window + stream->begin : nullptr;
    assert(stream->inflater == nullptr && held <= mr_read_ring_headroom(stream->ring));
    MR_TRY(mr_read_ring_next(stream->ring, window, held, &bytes, &size, error));
    assert(size >= held);
    stream->window = bytes;
    stream->begin = 0;
    stream->end = size;
    stream->ended = size == held;
    if (stream->own_bytes > OWN_KEPT_BYTES) {
        free(stream->own);
        stream->own = nullptr;
        stream->own_bytes = 0;
    }
    return MR_OK;
}

/* Assembles a long record in its own memory, which doubles as bytes arrive. */
static mr_status gather(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    assert(stream->inflater == nullptr && mr_record_stream_held(stream) < size_bytes);
    size_t held = mr_record_stream_held(stream), got;
    if (stream->own != nullptr && stream->window == stream->own) {
        move_to_front(stream);
    } else {
        size_t room = held + mr_read_ring_block_bytes(stream->ring);
        MR_TRY(grow_own(stream, room < size_bytes ? room : size_bytes, error));
        assert(stream->own != nullptr);
        if (held > 0) memcpy(stream->own, stream->window + stream->begin, held);
        stream->window = stream->own;
        stream->begin = 0;
        stream->end = held;
    }
    MR_TRY(make_room(stream, size_bytes, error));
    size_t end = stream->own_bytes < size_bytes ? stream->own_bytes : size_bytes;
    MR_TRY(mr_read_ring_copy(stream->ring, stream->own + stream->end, end - stream->end, &got, error));
    assert(got <= end - stream->end);
    stream->ended = got == 0;
    stream->end += got;
    return MR_OK;
}

/* Reads once, to extend the window towards size_bytes. */
static mr_status extend(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    size_t held = mr_record_stream_held(stream);
    assert(stream->is_open && stream->begin <= stream->end && held < size_bytes && !stream->ended);
    mr_status status;
    if (stream->inflater != nullptr)
        status = extend_inflated(stream, size_bytes, error);
    else if (held <= mr_read_ring_headroom(stream->ring) && size_bytes - held <= mr_read_ring_block_bytes(stream->ring))
        status = slide(stream, error);
    else
        status = gather(stream, size_bytes, error);
    if (status != MR_OK && status != MR_RESOURCE_EXHAUSTED) stream->ended = true;
    return status;
}

mr_status mr_record_stream_need(mr_record_stream *stream, size_t size_bytes, mr_error *error)
{
    while (mr_record_stream_held(stream) < size_bytes && !stream->ended) MR_TRY(extend(stream, size_bytes, error));
    return MR_OK;
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1'000'000;
}

uint64_t mr_record_stream_deadline(int32_t timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : timeout_ms == 0 ? 0 : clock_ms() + (uint64_t)timeout_ms;
}

/* Of a poll: -1 without a deadline, 0 after it. */
static int left_ms(uint64_t deadline_ms)
{
    if (deadline_ms == UINT64_MAX) return -1;
    uint64_t now_ms = clock_ms();
    return deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0;
}

mr_status mr_record_stream_wait(mr_record_stream *stream, size_t size_bytes, uint64_t deadline_ms, bool *is_ready,
                                mr_error *error)
{
    for (bool is_first = true;; is_first = false) {
        *is_ready = true;
        if (mr_record_stream_held(stream) >= size_bytes || stream->ended) return MR_OK;
        int timeout_ms = left_ms(deadline_ms);
        bool has_input = stream->inflater != nullptr && stream->inflater->zlib.avail_in > 0;
        /* The deadline also holds while bytes arrive as fast as they are read. Files are not waited for. */
        bool is_late = timeout_ms == 0 && deadline_ms > 0 && !is_first && !mr_read_ring_is_seekable(stream->ring);
        if (is_late || (!has_input && !mr_read_ring_wait(stream->ring, timeout_ms))) {
            *is_ready = false;
            return MR_OK;
        }
        MR_TRY(extend(stream, size_bytes, error));
    }
}

uint64_t mr_record_stream_left(const mr_record_stream *stream)
{
    struct stat about;
    if (stream->inflater != nullptr || fstat(stream->descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return UINT64_MAX;
    uint64_t size = (uint64_t)about.st_size, position = stream->base + stream->offset;
    return size > position ? size - position : mr_record_stream_held(stream);
}

void mr_record_stream_finish(mr_record_stream *stream)
{
    assert(stream->begin <= stream->end);
    uint64_t left = mr_record_stream_left(stream);
    stream->offset += left == UINT64_MAX ? mr_record_stream_held(stream) : left;
    stream->begin = stream->end = 0;
    stream->ended = true;
}

void mr_record_stream_enter(mr_record_stream *stream, uint64_t file_offset, uint64_t offset)
{
    mr_record_inflater *inflater = stream->inflater;
    assert(inflater != nullptr && mr_read_ring_is_seekable(stream->ring));
    mr_read_ring_seek(stream->ring, stream->base + file_offset);
    (void)inflateReset2(&inflater->zlib, -15);
    inflater->zlib.avail_in = 0;
    inflater->input_ended = inflater->member_done = false;
    inflater->is_raw = true;
    inflater->input_offset = file_offset;
    stream->begin = stream->end = 0;
    stream->offset = offset;
    stream->ended = false;
}

bool mr_record_stream_can_enter(const mr_record_stream *stream)
{
    return stream->inflater != nullptr && mr_read_ring_is_seekable(stream->ring);
}

bool mr_record_stream_is_seekable(const mr_record_stream *stream)
{
    return stream->inflater == nullptr && mr_read_ring_is_seekable(stream->ring);
}

void mr_record_stream_seek(mr_record_stream *stream, uint64_t offset)
{
    assert(mr_record_stream_is_seekable(stream));
    if (offset >= stream->offset && offset - stream->offset <= mr_record_stream_held(stream)) {
        mr_record_stream_consume(stream, (size_t)(offset - stream->offset));
        return;
    }
    mr_read_ring_seek(stream->ring, stream->base + offset);
    stream->begin = stream->end = 0;
    stream->offset = offset;
    stream->ended = false;
}

/* Detects the format from the first bytes. */
static mr_status recognise(mr_record_stream *stream, mr_error *error)
{
    MR_TRY(mr_record_stream_need(stream, PEEK_BYTES, error));
    const unsigned char *bytes = (const unsigned char *)mr_record_stream_bytes(stream);
    size_t held = mr_record_stream_held(stream);
    const char *foreign = foreign_format(bytes, held);
    if (foreign != nullptr)
        return mr_fail(error, MR_UNIMPLEMENTED,
                       "%s: is %s; TFRecord files are plain, GZIP or ZLIB, so decompress it first", stream->name,
                       foreign);
    stream->compression = mr_record_compression_of(bytes, held);
    return stream->compression == MR_COMPRESSION_NONE ? MR_OK : start_inflater(stream, error);
}

mr_status mr_record_stream_open_at(mr_record_stream *stream, int descriptor, const char *name,
                                   const mr_read_options *options, mr_error *error)
{
    assert(!stream->is_open);
    *stream = (mr_record_stream){.descriptor = descriptor, .is_open = true, .name = strdup(name)};
    mr_status status = stream->name != nullptr
                           ? mr_read_ring_open(descriptor, stream->name, options, &stream->ring, error)
                           : mr_fail_memory(error, strlen(name));
    if (status == MR_OK) {
        /* Only a hint; fails for pipes. */
        (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
        stream->base = mr_read_ring_offset(stream->ring);
        status = recognise(stream, error);
    }
    if (status != MR_OK) mr_record_stream_deinit(stream);
    return status;
}

mr_status mr_record_stream_open(mr_record_stream *stream, const char *path, const mr_read_options *options,
                                mr_error *error)
{
    bool is_input = strcmp(path, "-") == 0;
    int descriptor = STDIN_FILENO;
    mr_read_options own = *options;
    /* O_DIRECT would remain set on standard input, which other processes share. */
    if (is_input)
        own.direct = false;
    else
        MR_TRY(mr_file_open(path, &descriptor, error));
    return mr_record_stream_open_at(stream, descriptor, is_input ? "standard input" : path, &own, error);
}

void mr_record_stream_deinit(mr_record_stream *stream)
{
    assert(stream->is_open || (stream->ring == nullptr && stream->own == nullptr && stream->inflater == nullptr));
    if (stream->inflater != nullptr) {
        (void)inflateEnd(&stream->inflater->zlib);
        free(stream->inflater);
    }
    mr_read_ring_free(stream->ring);
    if (stream->is_open && stream->descriptor != STDIN_FILENO) (void)close(stream->descriptor);
    free(stream->own);
    free(stream->name);
    *stream = (mr_record_stream){0};
}
