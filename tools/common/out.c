/* A growing text buffer, and numbers as text. */
#include "common/out.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <sys/types.h>

/* Bytes are encoded in pieces of at most this size, a multiple of three. */
static constexpr size_t PIECE_BYTES = 49'152;

char *out_room(out *out, size_t size)
{
    if (out->file && out->size > OUT_HELD_MAX) (void)out_write(out, out->file);
    assert(out->size <= out->capacity);
    if (out->capacity - out->size >= size) return out->bytes + out->size;
    size_t capacity = out->capacity ? out->capacity : 4'096;
    while (capacity - out->size < size && capacity <= SIZE_MAX / 2) capacity *= 2;
    char *grown = capacity - out->size >= size ? realloc(out->bytes, capacity) : nullptr;
    if (!grown) {
        out->has_failed = true;
        return nullptr;
    }
    out->bytes = grown;
    out->capacity = capacity;
    return grown + out->size;
}

void out_deinit(out *out)
{
    free(out->bytes);
    *out = (struct out){};
}

bool out_write(out *out, FILE *file)
{
    bool is_complete = !out->has_failed;
    if (out->size > 0) fwrite(out->bytes, 1, out->size, file);
    out->size = 0;
    out->has_failed = false;
    return is_complete;
}

static ssize_t append_stream(void *context, const char *bytes, size_t size)
{
    out *out = context;
    out_bytes(out, bytes, size);
    return out->has_failed ? 0 : (ssize_t)size;
}

FILE *out_stream(out *out)
{
    return fopencookie(out, "w", (cookie_io_functions_t){.write = append_stream});
}

/* Writes the digits of a number so that they finish at end; returns the first. */
static char *digits_before(char *end, uint64_t number)
{
    do *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

void out_integer(out *out, int64_t value)
{
    char digits[24], *end = digits + sizeof(digits);
    char *begin = digits_before(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0) *--begin = '-';
    out_bytes(out, begin, (size_t)(end - begin));
}

static double power_of_ten(int exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double result = 1;
    int left = exponent < 0 ? -exponent : exponent;
    for (; left > 22; left -= 22) result *= 1e22;
    result *= powers[left];
    return exponent < 0 ? 1 / result : result;
}

/* The fewest digits that read back as value, and the exponent of the last of them: six digits are enough for decimals
 * of six digits, nine for all floats. A decimal so close to the midpoint of two floats that the rounding error of a
 * double could matter is skipped in favor of one with more digits. value > 0 and finite. */
static uint64_t shortest(float value, int *exponent)
{
    int binary;
    (void)frexp((double)value, &binary);
    /* The estimate may be one too small: then one more digit is tried. */
    int magnitude = (int)floor((binary - 1) * 0.30102999566398120);
    uint64_t digits = 0;
    for (int precision = 6; precision <= 10; precision++) {
        *exponent = magnitude - precision + 1;
        double scale = power_of_ten(-*exponent);
        digits = (uint64_t)((double)value * scale + 0.5);
        double back = (double)digits / scale, margin = back * 0x1p-48;
        if ((float)(back - margin) == value && (float)(back + margin) == value) break;
    }
    while (digits > 0 && digits % 10 == 0) digits /= 10, ++*exponent;
    return digits;
}

void out_float(out *out, float value)
{
    if (isnan(value) || isinf(value)) {
        out_text(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    char *text = out_room(out, 64), *at = text;
    if (!text) return;
    if (signbit(value)) *at++ = '-';
    value = fabsf(value);
    int exponent = 0;
    uint64_t digits = value == 0 ? 0 : shortest(value, &exponent);
    char buffer[24], *end = buffer + sizeof(buffer), *begin = digits_before(end, digits);
    int count = (int)(end - begin), point = count + exponent; /* digits before the point */
    if (point > 9 || point < -4) {
        /* d.ddde-7 */
        *at++ = *begin++;
        if (count > 1) *at++ = '.';
        while (begin < end) *at++ = *begin++;
        *at++ = 'e';
        if (point - 1 < 0) *at++ = '-';
        begin = digits_before(end, (uint64_t)(point < 1 ? 1 - point : point - 1));
        while (begin < end) *at++ = *begin++;
    } else {
        if (point <= 0) *at++ = '0', *at++ = '.';
        for (int i = point; i < 0; i++) *at++ = '0';
        for (int i = 0; i < count || i < point; i++) {
            if (i == point && i > 0) *at++ = '.';
            *at++ = i < count ? begin[i] : '0';
        }
    }
    out->size += (size_t)(at - text);
}

static mr_string piece_of(mr_string bytes, size_t begin)
{
    size_t left = bytes.size_bytes - begin;
    return (mr_string){bytes.data + begin, left < PIECE_BYTES ? left : PIECE_BYTES};
}

static void hex_piece(out *out, mr_string bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *at = out_room(out, 2 * bytes.size_bytes);
    if (!at) return;
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        *at++ = digits[(unsigned char)bytes.data[i] >> 4];
        *at++ = digits[(unsigned char)bytes.data[i] & 15];
    }
    out->size += 2 * bytes.size_bytes;
}

void out_hex(out *out, mr_string bytes)
{
    for (size_t i = 0; i < bytes.size_bytes; i += PIECE_BYTES) hex_piece(out, piece_of(bytes, i));
}

static void base64_piece(out *out, mr_string bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = (const unsigned char *)bytes.data;
    size_t size = (bytes.size_bytes + 2) / 3 * 4, i = 0;
    char *at = out_room(out, size);
    if (!at) return;
    for (; i + 3 <= bytes.size_bytes; i += 3, at += 4) {
        uint32_t word = (uint32_t)b[i] << 16 | (uint32_t)b[i + 1] << 8 | b[i + 2];
        at[0] = digits[word >> 18];
        at[1] = digits[word >> 12 & 63];
        at[2] = digits[word >> 6 & 63];
        at[3] = digits[word & 63];
    }
    if (i < bytes.size_bytes) {
        bool has_two = i + 1 < bytes.size_bytes;
        uint32_t word = (uint32_t)b[i] << 16 | (has_two ? (uint32_t)b[i + 1] << 8 : 0);
        at[0] = digits[word >> 18];
        at[1] = digits[word >> 12 & 63];
        at[2] = has_two ? digits[word >> 6 & 63] : '=';
        at[3] = '=';
    }
    out->size += size;
}

void out_base64(out *out, mr_string bytes)
{
    for (size_t i = 0; i < bytes.size_bytes; i += PIECE_BYTES) base64_piece(out, piece_of(bytes, i));
}

void out_json_string(out *out, mr_string bytes, bool is_utf8)
{
    out_char(out, '"');
    for (size_t i = 0; i < bytes.size_bytes;) {
        /* A run of characters that need no escape. */
        size_t run = i;
        unsigned char byte = 0;
        for (; run < bytes.size_bytes && run - i < PIECE_BYTES; run++) {
            byte = (unsigned char)bytes.data[run];
            if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f || (byte >= 0x80 && !is_utf8)) break;
        }
        out_bytes(out, bytes.data + i, run - i);
        bool is_piece = run == bytes.size_bytes || run - i == PIECE_BYTES;
        i = run;
        if (is_piece) continue;
        i++;
        char escape[8];
        if (byte == '"' || byte == '\\')
            snprintf(escape, sizeof(escape), "\\%c", byte);
        else if (byte == '\n' || byte == '\t')
            snprintf(escape, sizeof(escape), "\\%c", byte == '\n' ? 'n' : 't');
        else
            snprintf(escape, sizeof(escape), "\\u%04x", byte >= 0x80 ? 0xfffdu : byte);
        out_text(out, escape);
    }
    out_char(out, '"');
}
