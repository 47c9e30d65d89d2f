#include "graph-run/command.h"

#include "common/out.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of the printable character at the start of a text; 0: it must be escaped. */
static size_t printable_length(const char *at)
{
    unsigned char first = (unsigned char)*at;
    char copy[32];
    if (first < 0x80) return first >= ' ' && first < 0x7f;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (strnlen(at, length) < length) return 0;
    (void)text_copy(copy, sizeof copy, (mr_string){at, length}, 8);
    return strncmp(copy, at, length) == 0 && copy[length] == '\0' ? length : 0;
}

static bool is_printable(const char *word)
{
    for (size_t length; *word; word += length)
        if ((length = printable_length(word)) == 0) return false;
    return true;
}

/* $'…', for words with characters that are not printable. */
static void put_escaped(out *o, const char *word)
{
    out_text(o, "$'");
    for (size_t length; *word; word += length) {
        char code[8];
        length = printable_length(word);
        if (*word == '\'' || *word == '\\') out_char(o, '\\');
        if (length > 0) {
            out_bytes(o, word, length);
            continue;
        }
        /* Three octal digits end the code, whatever follows. */
        snprintf(code, sizeof code, *word == '\n' ? "\\n" : "\\%03o", (unsigned char)*word);
        out_text(o, code);
        length = 1;
    }
    out_char(o, '\'');
}

/* A word for the shell: in quotes if it needs them. */
static void put_word(out *o, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
    if (*word && strspn(word, plain) == strlen(word)) return out_text(o, word);
    if (!is_printable(word)) return put_escaped(o, word);
    out_char(o, '\'');
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            out_text(o, "'\\''");
        else
            out_char(o, *c);
    out_char(o, '\'');
}

int command_columns(void)
{
    const char *text = getenv("COLUMNS");
    long given = text ? strtol(text, nullptr, 10) : 0;
    int columns = given > 0 && given < 10000 ? (int)given : 0;
    if (columns <= 0) columns = progress_columns(STDOUT_FILENO, 0);
    if (columns <= 0) columns = progress_columns(STDERR_FILENO, 80);
    return columns < 20 ? 20 : columns;
}

/* Prints a part of the command after a space, or on the next line if it does not fit. */
static void put_part(command_line *line, out *part)
{
    if (part->has_failed) output_lose(ENOMEM);
    int width = text_columns((mr_string){part->bytes ? part->bytes : "", part->size});
    /* Space for " \" after it. */
    if (line->column > 6 && line->column + 1 + width + 2 > line->columns) command_break(line);
    if (line->column > 6) putchar(' '), line->column++;
    fwrite(part->bytes ? part->bytes : "", 1, part->size, stdout);
    line->column += width;
    out_deinit(part);
}

void command_begin(command_line *line, const char *graph)
{
    out part = {0};
    *line = (command_line){.column = 0, .columns = command_columns()};
    out_text(&part, "    graph-run ");
    if (*graph == '-') out_text(&part, "./");
    put_word(&part, graph);
    put_part(line, &part);
}

void command_add(command_line *line, const char *option, const char *value)
{
    out part = {0};
    out_text(&part, option);
    if (value) out_char(&part, ' ');
    if (value) put_word(&part, value);
    put_part(line, &part);
}

void command_break(command_line *line)
{
    fputs(" \\\n      ", stdout);
    line->column = 6;
}

void command_end(command_line *line)
{
    putchar('\n');
    line->column = 0;
}
