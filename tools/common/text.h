/* Untrusted bytes as text that is safe to print: only printable characters reach a terminal. */
#ifndef MR_TOOLS_TEXT_H
#define MR_TOOLS_TEXT_H

#include <millrace/tensor.h>

#include <stdio.h>

/* Whether bytes are UTF-8, control characters included. */
bool text_is_utf8(mr_string bytes);
/* Whether bytes are UTF-8 without control characters other than line breaks and tabs. */
bool text_is_readable(mr_string bytes);
/* Prints bytes with everything that is not printable escaped (\n, \x1b, invalid UTF-8 byte by byte), cut with "…" at
 * columns_max columns; returns the number of columns used. */
int text_print(FILE *file, mr_string bytes, int columns_max);
/* The same into out, which has room for size bytes; cut earlier if they do not suffice. */
int text_copy(char *out, size_t size, mr_string bytes, int columns_max);
/* Prints one of our own messages: quotes and backslashes are unchanged, the rest is escaped as by text_print. */
void text_print_sentence(FILE *file, const char *sentence);
/* The number of columns that text_print would use; counts up to about 10,000. */
int text_columns(mr_string bytes);
/* The number of bytes of an already safe text that fit into columns_max; *columns is the number of columns they use. */
size_t text_fit(const char *text, int columns_max, int *columns);
/* Prints the words of our own text, wrapped to `columns`.
 * at      column of the first word
 * indent  column of the first word of the other lines */
void text_wrap(FILE *file, const char *text, size_t size_bytes, int at, int indent, int columns);
/* "standard input" for "-". */
const char *text_path(const char *path);

#endif
