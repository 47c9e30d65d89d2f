/* Strings and lists for the programs that the build runs. They end soon, so memory is never freed; without memory they
 * fail. */
#ifndef BUILD_PROGRAMS_TEXT_H
#define BUILD_PROGRAMS_TEXT_H

#include <stddef.h>
#include <stdio.h>

typedef struct list {
    void **items;
    size_t count;
} list;

void push(list *to, void *item);

/* Prints the message on a line of standard error and exits with 1. */
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *message, ...);

[[gnu::format(printf, 1, 2)]] char *format(const char *format, ...);

/* The strings between the separators; a text without one is a list of itself. */
list split(const char *text, const char *separator);
char *join(list strings, const char *separator);
char *replace(const char *text, const char *from, const char *to);
/* Without whitespace at both ends. */
char *strip(const char *text);

bool starts_with(const char *text, const char *prefix);
bool ends_with(const char *text, const char *suffix);
/* Whether a character is a letter of ASCII, a digit or an underscore. */
bool is_word(char character);
/* Number of such characters at the beginning. */
size_t word_length(const char *text);

/* A stream whose text is at *text after fclose. */
FILE *open_text(char **text);
/* Reads to the end of the stream. */
char *read_all(FILE *file);
/* Creates a file or replaces its contents. */
FILE *create_file(const char *path);
/* Closes a file that was written; fails if a write failed. */
void close_file(FILE *file, const char *path);
/* Its parent must exist; it may exist itself. */
void create_directory(const char *path);
const char *base_name(const char *path);

#endif
