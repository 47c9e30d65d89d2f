/* A public header, read as paragraphs: lines without an empty line between them, which are a comment and the
 * declarations that it describes. */
#ifndef DOCS_REFERENCE_HEADER_H
#define DOCS_REFERENCE_HEADER_H

#include "build/programs/text.h"

/* A paragraph, or the title of a section. */
typedef struct item {
    const char *title; /* null for a paragraph */
    int line;
    const char *comment; /* null: none */
    list declarations;
} item;

typedef struct header {
    const char *path, *name; /* the name ends in ".h" */
    char *page;              /* the name of its HTML file */
    const char *intro;       /* the opening comment; "" if there is none */
    list items;
} header;

/* Reads a header: without attributes, what only C++ sees, and internal macros, whose names end in an underscore. */
header *header_read(const char *path);

/* A declaration as it is shown: without the body of a macro or of an inline function. */
char *declaration_shown(const char *declaration);

/* The names that a declaration declares, constants of an enum included. */
list declaration_names(const char *declaration);

/* Whether a declaration describes itself: it has a comment or is an opaque type. */
bool declaration_is_described(const char *declaration);

/* Length of the name mr_… or MR_… at the beginning; 0: there is none. */
size_t name_length(const char *text);

#endif
