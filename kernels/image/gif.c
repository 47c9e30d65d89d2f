/* GIF decoding.
 *
 * The file is read twice. The first time only counts the pixels of each frame: memory is allocated afterwards, and only
 * for frames whose data is complete. */
#include "base/bytes.h"
#include "kernels/image/frames.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr int CODES_MAX = 4096;
constexpr int64_t PIXELS_MAX = (int64_t)1 << 29; /* TensorFlow's limit for PNG */

typedef enum outcome { COMPLETE, TRUNCATED, DAMAGED, ENDS_EARLY } outcome;

/* Colors of a table; count 0: there is none. */
typedef struct table {
    const uint8_t *colors;
    int count;
} table;

typedef struct frame {
    size_t at; /* of its data, which starts with the size of the first codes */
    int left, top, width, height;
    bool interlaced;
    int transparent; /* a color; -1: none */
    table table;
} frame;

typedef struct gif {
    const uint8_t *bytes;
    size_t size_bytes, at;
    table table;
    int transparent; /* of the next frame, from an extension; -1: none */
    bool has_control;
    frame *frames;
    int64_t count, room;
} gif;

/* ---- Compressed pixels ---- */

/* The string of a code is that of its prefix and one more color. */
typedef struct codes {
    uint16_t prefix[CODES_MAX];
    uint16_t length[CODES_MAX];
    uint8_t last[CODES_MAX], first[CODES_MAX];
} codes;

/* Reads bits from a chain of blocks, each of which starts with its length. */
typedef struct bits {
    const uint8_t *bytes;
    size_t size_bytes, at;
    size_t left; /* in the current block */
    uint32_t word;
    int count;
} bits;

static outcome next_code(bits *bits, int width, int *code)
{
    while (bits->count < width) {
        if (bits->left == 0) {
            if (bits->at >= bits->size_bytes) return TRUNCATED;
            bits->left = bits->bytes[bits->at++];
            if (bits->left == 0) return DAMAGED; /* the end marker must come first */
            if (bits->size_bytes - bits->at < bits->left) return TRUNCATED;
        }
        bits->word |= (uint32_t)bits->bytes[bits->at++] << bits->count;
        bits->count += 8;
        bits->left--;
    }
    *code = (int)(bits->word & ((1u << width) - 1));
    bits->word >>= width;
    bits->count -= width;
    return COMPLETE;
}

/* Moves past the rest of the chain. */
static outcome skip_blocks(bits *bits)
{
    bits->at += bits->left;
    while (bits->at < bits->size_bytes) {
        size_t length = bits->bytes[bits->at++];
        if (length == 0) return COMPLETE;
        if (bits->size_bytes - bits->at < length) break;
        bits->at += length;
    }
    return TRUNCATED;
}

static void put_string(const codes *codes, int code, uint8_t *target, int64_t room)
{
    for (int64_t i = codes->length[code]; i-- > 0; code = codes->prefix[code])
        if (i < room) target[i] = codes->last[code];
}

/* Reads the pixels of a frame; *at is their position and becomes that of the next block.
 * target  null: the pixels are only counted */
static outcome read_pixels(const gif *gif, const frame *frame, codes *codes, uint8_t *target, size_t *at)
{
    bits bits = {.bytes = gif->bytes, .size_bytes = gif->size_bytes, .at = frame->at};
    if (bits.at >= bits.size_bytes) return TRUNCATED;
    int size = bits.bytes[bits.at++], code, before = -1; /* before: the code before, -1 after a clear code */
    if (size < 1 || size > 8) return TRUNCATED;          /* giflib's reason */
    int clear = 1 << size, next = clear + 2, width = size + 1;
    for (int i = 0; i < clear; i++) {
        codes->length[i] = 1;
        codes->first[i] = codes->last[i] = (uint8_t)i;
        codes->prefix[i] = 0;
    }
    for (int64_t left = (int64_t)frame->width * frame->height; left > 0;) {
        outcome outcome = next_code(&bits, width, &code);
        if (outcome != COMPLETE) return outcome;
        if (code == clear + 1) return ENDS_EARLY;
        if (code == clear) {
            next = clear + 2;
            width = size + 1;
            before = -1;
            continue;
        }
        if (code > next || (code >= clear && before < 0)) return DAMAGED;
        if (before >= 0 && next < CODES_MAX) {
            codes->prefix[next] = (uint16_t)before;
            codes->first[next] = codes->first[before];
            codes->last[next] = codes->first[code == next ? before : code];
            codes->length[next] = (uint16_t)(codes->length[before] + 1);
            if (++next == 1 << width && width < 12) width++;
        }
        if (target != nullptr) {
            put_string(codes, code, target, left);
            target += codes->length[code];
        }
        left -= codes->length[code];
        before = code;
    }
    outcome outcome = skip_blocks(&bits);
    *at = bits.at;
    return outcome;
}

/* ---- Blocks of the file ---- */

static bool read_table(gif *gif, unsigned flags, table *table)
{
    *table = (struct table){0};
    if ((flags & 0x80) == 0) return true;
    int count = 2 << (flags & 7);
    if (gif->size_bytes - gif->at < 3 * (size_t)count) return false;
    *table = (struct table){gif->bytes + gif->at, count};
    gif->at += 3 * (size_t)count;
    return true;
}

/* An extension; the first graphics control block before a frame specifies its transparent color. */
static outcome read_extension(gif *gif)
{
    if (gif->size_bytes - gif->at < 2) return TRUNCATED;
    const uint8_t *block = gif->bytes + gif->at;
    bits bits = {.bytes = gif->bytes, .size_bytes = gif->size_bytes, .at = gif->at + 1};
    outcome outcome = skip_blocks(&bits);
    if (outcome == COMPLETE && block[0] == 0xf9 && block[1] > 0 && !gif->has_control) {
        gif->has_control = true;
        if (block[1] == 4 && (block[2] & 1) != 0) gif->transparent = block[5];
    }
    gif->at = bits.at;
    return outcome;
}

static mr_status add_frame(gif *gif, const frame *frame, mr_error *error)
{
    if (gif->count == gif->room) {
        int64_t room = gif->room == 0 ? 16 : 2 * gif->room;
        struct frame *frames = realloc(gif->frames, (size_t)room * sizeof *frames);
        if (!frames) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for the frames of a GIF");
        gif->frames = frames;
        gif->room = room;
    }
    gif->frames[gif->count++] = *frame;
    return MR_OK;
}

/* Reads an image descriptor and checks the pixels. */
static mr_status read_frame(gif *gif, codes *codes, outcome *outcome, mr_error *error)
{
    const uint8_t *bytes = gif->bytes + gif->at;
    *outcome = TRUNCATED;
    if (gif->size_bytes - gif->at < 9) return MR_OK;
    frame frame = {.left = (int)mr_load_le16(bytes),
                   .top = (int)mr_load_le16(bytes + 2),
                   .width = (int)mr_load_le16(bytes + 4),
                   .height = (int)mr_load_le16(bytes + 6),
                   .interlaced = (bytes[8] & 0x40) != 0,
                   .transparent = gif->transparent};
    gif->at += 9;
    if (!read_table(gif, bytes[8], &frame.table)) return MR_OK;
    if (frame.table.count == 0) frame.table = gif->table;
    frame.at = gif->at;
    *outcome = DAMAGED;
    if (frame.width == 0 || frame.height == 0) return MR_OK;
    *outcome = read_pixels(gif, &frame, codes, nullptr, &gif->at);
    gif->transparent = -1;
    gif->has_control = false;
    return *outcome == COMPLETE ? add_frame(gif, &frame, error) : MR_OK;
}

static const char *reason(outcome outcome)
{
    return outcome == TRUNCATED    ? "Failed to read from given file"
           : outcome == ENDS_EARLY ? "Image EOF detected, before image complete"
                                   : "Image is defective, decoding aborted";
}

/* Reads the blocks up to the end, or to the first one that is not complete. */
static mr_status read_blocks(gif *gif, codes *codes, mr_error *error)
{
    const char *why = nullptr;
    outcome outcome = COMPLETE;
    while (why == nullptr && outcome == COMPLETE) {
        if (gif->at >= gif->size_bytes) {
            outcome = TRUNCATED;
            break;
        }
        uint8_t kind = gif->bytes[gif->at++];
        if (kind == ';') break;
        if (kind == '!')
            outcome = read_extension(gif);
        else if (kind == ',')
            MR_TRY(read_frame(gif, codes, &outcome, error));
        else
            why = "Wrong record type detected";
    }
    if (outcome != COMPLETE) why = reason(outcome);
    if (gif->count == 0 || outcome == ENDS_EARLY)
        return mr_fail(error, MR_INVALID_ARGUMENT, "failed to slurp gif file: %s",
                       why != nullptr ? why : "No image descriptor detected");
    return MR_OK;
}

static mr_status read_header(gif *gif, mr_error *error)
{
    if (gif->size_bytes < 6)
        return mr_fail(error, MR_INVALID_ARGUMENT, "failed to open gif file: Failed to read from given file");
    gif->at = 13;
    if (gif->size_bytes < 13 || !read_table(gif, gif->bytes[10], &gif->table))
        return mr_fail(error, MR_INVALID_ARGUMENT, "failed to open gif file: No screen descriptor detected");
    return MR_OK;
}

/* ---- Painting ---- */

/* The image row of the n-th line in the file. */
static int row_of(int line, int height, bool interlaced)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4 && interlaced; pass++) {
        int rows = height > starts[pass] ? (height - starts[pass] + steps[pass] - 1) / steps[pass] : 0;
        if (line < rows) return starts[pass] + line * steps[pass];
        line -= rows;
    }
    return line;
}

static mr_status paint(const frame *frame, int64_t number, const uint8_t *pixels, uint8_t *canvas, int width,
                       int height, mr_error *error)
{
    if (frame->table.count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "missing color map for frame %lld", (long long)number);
    int right = frame->left + frame->width < width ? frame->left + frame->width : width;
    for (int line = 0; line < frame->height; line++) {
        int64_t y = frame->top + row_of(line, frame->height, frame->interlaced);
        const uint8_t *from = pixels + (int64_t)line * frame->width;
        for (int x = frame->left; x < right && y < height; x++) {
            int color = from[x - frame->left];
            if (color == frame->transparent) continue;
            if (color >= frame->table.count)
                return mr_fail(error, MR_INVALID_ARGUMENT, "found color index %d outside of color map range %d", color,
                               frame->table.count);
            memcpy(canvas + (y * width + x) * 3, frame->table.colors + 3 * color, 3);
        }
    }
    return MR_OK;
}

static mr_status paint_frames(const gif *gif, codes *codes, bool first_only, mr_tensor *frames, mr_error *error)
{
    int width = 0, height = 0;
    int64_t most = 0, count = first_only ? 1 : gif->count;
    for (int64_t i = 0; i < gif->count; i++) {
        const frame *frame = &gif->frames[i];
        width = frame->width > width ? frame->width : width;
        height = frame->height > height ? frame->height : height;
        if ((int64_t)frame->width * frame->height > most) most = (int64_t)frame->width * frame->height;
    }
    int64_t area = (int64_t)width * height;
    assert(area > 0); /* frames without pixels have been refused */
    if (count > (PIXELS_MAX - 1) / area)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the GIF is too large: %lld frames of %d x %d pixels",
                       (long long)count, width, height);
    uint8_t *pixels = malloc((size_t)most);
    if (!pixels) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a frame of a GIF");
    mr_status status = mr_tensor_init(frames, MR_UINT8, MR_SHAPE(count, height, width, 3), error);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        uint8_t *canvas = (uint8_t *)frames->data + i * area * 3;
        size_t end;
        if (i == 0)
            memset(canvas, 0, (size_t)area * 3);
        else
            memcpy(canvas, canvas - area * 3, (size_t)area * 3);
        (void)read_pixels(gif, &gif->frames[i], codes, pixels, &end);
        status = paint(&gif->frames[i], i, pixels, canvas, width, height, error);
    }
    free(pixels);
    if (status != MR_OK) mr_tensor_deinit(frames);
    return status;
}

mr_status mr_gif_decode(const void *bytes, size_t size_bytes, bool first_only, mr_tensor *frames, mr_error *error)
{
    gif gif = {.bytes = bytes, .size_bytes = size_bytes, .transparent = -1};
    codes *codes = malloc(sizeof *codes);
    *frames = (mr_tensor){0};
    if (!codes) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory to decode a GIF");
    mr_status status = read_header(&gif, error);
    if (status == MR_OK) status = read_blocks(&gif, codes, error);
    if (status == MR_OK) status = paint_frames(&gif, codes, first_only, frames, error);
    free(gif.frames);
    free(codes);
    return status;
}
