/* A growable text buffer: a record is formatted here and then written at once. Numbers are formatted without printf,
 * which would take most of the time. */
#ifndef MR_TOOLS_COMMON_OUT_H
#define MR_TOOLS_COMMON_OUT_H

#include <millrace/tensor.h>

#include <stdio.h>
#include <string.h>

/* {} is empty. */
typedef struct out {
    char *bytes; /* owned */
    size_t size, capacity;
    bool has_failed; /* out of memory: text added since is lost */
    FILE *file;      /* borrowed, may be null: receives text early once it exceeds OUT_HELD_MAX */
} out;
#define OUT_HELD_MAX ((size_t)1 << 20)

/* Reserves size more bytes, which the caller fills and adds to size; null: no memory. */
char *out_room(out *out, size_t size);
void out_deinit(out *out);
/* Writes the text and empties the buffer. False when memory did not suffice for all of it. */
bool out_write(out *out, FILE *file);
/* A stream that appends to out and reports lack of memory, which open_memstream does not. Null: no memory. */
FILE *out_stream(out *out);

static inline void out_bytes(out *out, const void *bytes, size_t size)
{
    char *room = out_room(out, size);
    if (!room || size == 0) return;
    memcpy(room, bytes, size);
    out->size += size;
}

static inline void out_text(out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}

static inline void out_char(out *out, char c)
{
    out_bytes(out, &c, 1);
}

void out_integer(out *out, int64_t value);
/* The shortest digits that read back as this float; "nan", "inf" and "-inf". */
void out_float(out *out, float value);
void out_hex(out *out, mr_string bytes);
void out_base64(out *out, mr_string bytes);
/* A JSON string; each byte of invalid UTF-8 becomes U+FFFD. */
void out_json_string(out *out, mr_string bytes, bool is_utf8);

#endif
