/* Bytes as text. Records come from anywhere, so nothing of them reaches the terminal but printable characters. */
#include "tools/tfrecord-cat/cat.h"

#include <string.h>

/* The UTF-8 character at the start of bytes: its length, 0 when there is none. */
static size_t character(mr_string bytes, uint32_t *code)
{
    const unsigned char *b = (const unsigned char *)bytes.data;
    size_t length = b[0] < 0x80                   ? 1
                    : b[0] >= 0xc2 && b[0] < 0xe0 ? 2
                    : (b[0] & 0xf0) == 0xe0       ? 3
                    : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
                                                  : 0;
    if (length == 0 || length > bytes.size_bytes) return 0;
    uint32_t value = length == 1 ? b[0] : b[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (b[i] & 0x3f);
    }
    /* Longer than needed, surrogates, beyond Unicode. */
    if ((length == 3 && value < 0x800) || (length == 4 && (value < 0x10000 || value > 0x10ffff)) ||
        (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

/* Not for a terminal: controls, and the marks that turn the direction of writing. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

bool text_is_readable(mr_string bytes)
{
    for (size_t i = 0, length; i < bytes.size_bytes; i += length) {
        uint32_t code;
        length = character((mr_string){bytes.data + i, bytes.size_bytes - i}, &code);
        if (length == 0 || (is_control(code) && code != '\n' && code != '\t' && code != '\r')) return false;
    }
    return true;
}

/* One character as it is printed, into out; its length in the bytes. *columns is what it takes. */
static size_t escape(mr_string bytes, char out[16], int *columns)
{
    uint32_t code;
    size_t length = character(bytes, &code);
    if (length == 0) {
        *columns = snprintf(out, 16, "\\x%02x", (unsigned char)bytes.data[0]);
        return 1;
    }
    const char *named = code == '\n'   ? "\\n"
                        : code == '\t' ? "\\t"
                        : code == '\r' ? "\\r"
                        : code == '"'  ? "\\\""
                        : code == '\\' ? "\\\\"
                                       : nullptr;
    if (named)
        *columns = snprintf(out, 16, "%s", named);
    else if (is_control(code))
        *columns = snprintf(out, 16, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
    else {
        memcpy(out, bytes.data, length);
        out[length] = '\0';
        *columns = 1;
    }
    return length;
}

int text_print(FILE *file, mr_string bytes, int columns_max)
{
    int used = 0;
    for (size_t i = 0, length; i < bytes.size_bytes; i += length) {
        char out[16];
        int columns;
        length = escape((mr_string){bytes.data + i, bytes.size_bytes - i}, out, &columns);
        bool is_last = i + length == bytes.size_bytes;
        if (used + columns > columns_max - (is_last ? 0 : 1)) {
            fputs("…", file);
            return used + 1;
        }
        fputs(out, file);
        used += columns;
    }
    return used;
}

int text_columns(mr_string bytes)
{
    int used = 0;
    for (size_t i = 0, length; i < bytes.size_bytes && used < 10'000; i += length) {
        char out[16];
        int columns;
        length = escape((mr_string){bytes.data + i, bytes.size_bytes - i}, out, &columns);
        used += columns;
    }
    return used;
}

const char *text_path(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}
