/* A record and its origin. */
#ifndef MR_TOOLS_COMMON_RECORD_POSITION_H
#define MR_TOOLS_COMMON_RECORD_POSITION_H

#include <millrace/tensor.h>

typedef struct record_position {
    const char *path;        /* borrowed; "-" is the standard input */
    uint64_t number, offset; /* in its file; the offset counts uncompressed bytes */
    mr_string record;        /* borrowed */
} record_position;

#endif
