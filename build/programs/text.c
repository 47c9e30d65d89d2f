#include "build/programs/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void fail(const char *message, ...)
{
    va_list args;
    va_start(args, message);
    vfprintf(stderr, message, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void push(list *to, void *item)
{
    if ((to->count & (to->count - 1)) == 0) { // full: the capacity is 0 or a power of two
        to->items = realloc(to->items, (to->count == 0 ? 1 : 2 * to->count) * sizeof *to->items);
        if (to->items == nullptr) fail("out of memory");
    }
    to->items[to->count++] = item;
}

char *format(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) fail("out of memory");
    va_end(args);
    return text;
}

list split(const char *text, const char *separator)
{
    list parts = {0};
    for (const char *end; (end = strstr(text, separator)) != nullptr; text = end + strlen(separator))
        push(&parts, format("%.*s", (int)(end - text), text));
    push(&parts, format("%s", text));
    return parts;
}

char *join(list strings, const char *separator)
{
    char *text;
    FILE *out = open_text(&text);
    for (size_t i = 0; i < strings.count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : separator, (const char *)strings.items[i]);
    fclose(out);
    return text;
}

char *replace(const char *text, const char *from, const char *to)
{
    return join(split(text, from), to);
}

char *strip(const char *text)
{
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
    return format("%.*s", (int)length, text);
}

bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool ends_with(const char *text, const char *suffix)
{
    return strlen(text) >= strlen(suffix) && strcmp(text + strlen(text) - strlen(suffix), suffix) == 0;
}

bool is_word(char character)
{
    return isalnum((unsigned char)character) || character == '_';
}

size_t word_length(const char *text)
{
    size_t length = 0;
    while (is_word(text[length])) length++;
    return length;
}

FILE *open_text(char **text)
{
    static size_t size;
    FILE *file = open_memstream(text, &size);
    if (file == nullptr) fail("out of memory");
    return file;
}

char *read_all(FILE *file)
{
    char *text, part[4096];
    FILE *out = open_text(&text);
    for (size_t size; (size = fread(part, 1, sizeof part, file)) > 0;) fwrite(part, 1, size, out);
    fclose(out);
    return text;
}

FILE *create_file(const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == nullptr) fail("%s: %s", path, strerror(errno));
    return file;
}

void close_file(FILE *file, const char *path)
{
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) fail("%s: cannot be written", path);
}

void create_directory(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) fail("%s: %s", path, strerror(errno));
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}
