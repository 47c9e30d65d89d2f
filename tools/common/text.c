/* See text.h. */
#include "common/text.h"

#include <string.h>

/* Decodes the UTF-8 character at the start of bytes; returns its length, 0 if there is none. */
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
    /* Overlong forms, surrogates, beyond Unicode. */
    if ((length == 3 && value < 0x800) || (length == 4 && (value < 0x10000 || value > 0x10ffff)) ||
        (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

/* Unsafe on a terminal: control characters, and marks that change the direction of text. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

/* Columns of a printable character: 2 for East Asian characters and pictographs, 0 for combining marks. */
static int width_of(uint32_t code)
{
    if ((code >= 0x300 && code < 0x370) || (code >= 0xfe00 && code < 0xfe10)) return 0;
    bool is_wide = (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xa4d0 && code != 0x303f) ||
                   (code >= 0xac00 && code < 0xd7a4) || (code >= 0xf900 && code < 0xfb00) ||
                   (code >= 0xfe30 && code < 0xfe70) || (code >= 0xff00 && code < 0xff61) ||
                   (code >= 0xffe0 && code < 0xffe7) || (code >= 0x1f300 && code < 0x1fb00) ||
                   (code >= 0x20000 && code < 0x3fffe);
    return is_wide ? 2 : 1;
}

bool text_is_utf8(mr_string bytes)
{
    for (size_t i = 0, length; i < bytes.size_bytes; i += length) {
        uint64_t word = 0;
        uint32_t code;
        length = 8;
        if (bytes.size_bytes - i >= 8) memcpy(&word, bytes.data + i, 8);
        if (bytes.size_bytes - i >= 8 && (word & 0x8080808080808080) == 0) continue;
        length = character((mr_string){bytes.data + i, bytes.size_bytes - i}, &code);
        if (length == 0) return false;
    }
    return true;
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

/* Writes one character in printable form to out; returns its length in the input. *columns is its width. */
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
        *columns = width_of(code);
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

void text_print_sentence(FILE *file, const char *sentence)
{
    mr_string rest = mr_string_from(sentence);
    while (rest.size_bytes > 0) {
        char out[16];
        int columns;
        size_t length = escape(rest, out, &columns);
        bool is_plain = *rest.data == '"' || *rest.data == '\\';
        fputs(is_plain ? (char[]){*rest.data, '\0'} : out, file);
        rest = (mr_string){rest.data + length, rest.size_bytes - length};
    }
}

int text_copy(char *out, size_t size, mr_string bytes, int columns_max)
{
    static constexpr size_t CUT = sizeof("…");
    int used = 0;
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0, length; i < bytes.size_bytes; i += length) {
        char one[16];
        int columns;
        length = escape((mr_string){bytes.data + i, bytes.size_bytes - i}, one, &columns);
        bool is_last = i + length == bytes.size_bytes;
        if (used + columns > columns_max - (is_last ? 0 : 1) || at + strlen(one) + CUT > size) {
            snprintf(out + at, size - at, "…");
            return used + 1;
        }
        at += (size_t)snprintf(out + at, size - at, "%s", one);
        used += columns;
    }
    return used;
}

size_t text_fit(const char *text, int columns_max, int *columns)
{
    size_t at = 0, size = strlen(text);
    *columns = 0;
    for (size_t length; at < size; at += length) {
        uint32_t code = '?';
        length = character((mr_string){text + at, size - at}, &code);
        if (length == 0) length = 1;
        int width = width_of(code);
        if (*columns + width > columns_max) break;
        *columns += width;
    }
    return at;
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

/* Columns of a word of our own text, which is printed unchanged. */
static int word_columns(mr_string word)
{
    int used = 0;
    for (size_t i = 0, length; i < word.size_bytes; i += length) {
        uint32_t code = '?';
        length = character((mr_string){word.data + i, word.size_bytes - i}, &code);
        if (length == 0) length = 1;
        used += width_of(code);
    }
    return used;
}

void text_wrap(FILE *file, const char *text, size_t size_bytes, int at, int indent, int columns)
{
    bool is_first = true;
    for (size_t i = 0; i < size_bytes;) {
        size_t length = 0;
        while (i + length < size_bytes && text[i + length] != ' ' && text[i + length] != '\n') length++;
        int width = word_columns((mr_string){text + i, length});
        if (!is_first && at + 1 + width > columns) {
            fprintf(file, "\n%*s", indent, "");
            at = indent;
            is_first = true;
        }
        if (!is_first) at += fprintf(file, " ");
        fwrite(text + i, 1, length, file);
        at += width;
        is_first = false;
        i += length;
        while (i < size_bytes && (text[i] == ' ' || text[i] == '\n')) i++;
    }
    fputc('\n', file);
}

const char *text_path(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}
