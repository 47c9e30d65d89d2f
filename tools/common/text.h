/* Bytes of any kind as text that is safe to print: nothing of them reaches a terminal but printable characters. */
#ifndef MR_TOOLS_TEXT_H
#define MR_TOOLS_TEXT_H

#include <millrace/tensor.h>

#include <stdio.h>

/* Whether bytes are UTF-8, control characters included. */
bool text_is_utf8(mr_string bytes);
/* Whether bytes are UTF-8 without control characters other than line breaks and tabs. */
bool text_is_readable(mr_string bytes);
/* Prints bytes with everything that is not printable escaped (\n, \x1b, invalid UTF-8 byte by byte), cut with "…" at that
 * many columns; returns the columns used. */
int text_print(FILE *file, mr_string bytes, int columns_max);
/* The same into out, which has room for size bytes; cut earlier when they do not suffice. */
int text_copy(char *out, size_t size, mr_string bytes, int columns_max);
/* Prints a sentence of ours, in which quotes and backslashes stand for themselves; the rest as text_print does. */
void text_print_sentence(FILE *file, const char *sentence);
/* What text_print would use; counts to about 10,000. */
int text_columns(mr_string bytes);
/* How many bytes of a text that is safe already fit into columns_max; *columns is what they take. */
size_t text_fit(const char *text, int columns_max, int *columns);
/* "standard input" for "-". */
const char *text_path(const char *path);

#endif
