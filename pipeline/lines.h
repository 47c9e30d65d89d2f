/* What the sources and readers of text lines share. */
#ifndef MR_PIPELINE_LINES_H
#define MR_PIPELINE_LINES_H

#include <millrace/tensor.h>

#include <string.h>

/* Takes every CR out of a line, in its place, as TensorFlow does. What remains of the last one, without an LF, is a line
 * only if it is not empty. line may be null when it is. */
static inline mr_string mr_line_without_returns(char *line, size_t size_bytes)
{
    char *first = size_bytes == 0 ? nullptr : memchr(line, '\r', size_bytes), *to = first;
    if (first == nullptr) return (mr_string){line, size_bytes};
    for (const char *from = first; from < line + size_bytes; from++)
        if (*from != '\r') *to++ = *from;
    return (mr_string){line, (size_t)(to - line)};
}

#endif
