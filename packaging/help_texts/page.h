/* What a program prints for --help, as parts. */
#ifndef PACKAGING_HELP_TEXTS_PAGE_H
#define PACKAGING_HELP_TEXTS_PAGE_H

#include "build/programs/text.h"

typedef enum block_kind {
    BLOCK_PARAGRAPH, /* text */
    BLOCK_LINES,     /* verbatim lines */
    BLOCK_OPTION,    /* an option, or an operand, whose name is "" */
    BLOCK_TITLE,     /* text: of a group of options */
} block_kind;

typedef struct block {
    block_kind kind;
    char *text;
    list lines;
    /* Of an option: */
    char letter; /* '\0': none */
    char *name, *argument;
    list details; /* blocks of --help NAME */
} block;

typedef struct section {
    char *title; /* "" if the options are not in groups */
    list blocks;
} section;

typedef struct page {
    const char *name;
    char *purpose, *version, *usage;
    list examples, description; /* blocks */
    list sections;
    list exit_status; /* strings: "0 success" */
    list topics;      /* strings */
    list options;     /* blocks: the options of all sections */
} page;

/* Runs the program with --help, and again for each topic or option that its help announces. */
page *page_read(const char *program);

/* date: "2026-11-22". others: names for SEE ALSO. */
void man_write(FILE *out, const page *p, const char *date, list others);

void bash_write(FILE *out, const page *p);
void zsh_write(FILE *out, const page *p);
void fish_write(FILE *out, const page *p);

#endif
