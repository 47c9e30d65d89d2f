/* Numbers of lines for error messages: rows are found by their bytes, and lines are counted only after an error. */
#ifndef MR_PIPELINE_SOURCES_LINE_FINDER_H
#define MR_PIPELINE_SOURCES_LINE_FINDER_H

#include "records/io/input_file.h"

/* Where the last number was found: the next search begins there, so that all searches read a file once. */
typedef struct mr_line_finder {
    mr_input_file *input;  /* null: not open */
    uint64_t offset, ends; /* line ends before the offset: LF, CRLF or CR */
    bool is_after_return;
} mr_line_finder;

/* The number, from 1, of the line that begins at the offset; 0: the file could not be read. */
uint64_t mr_line_find(mr_line_finder *finder, const char *path, uint64_t offset);
/* Closes the file. */
void mr_line_finder_reset(mr_line_finder *finder);

#endif
