/* Bytes of a JPEG's entropy-coded data: 0xff followed by 0 stands for 0xff, 0xff followed by anything else is a marker.
 * Plain C, AVX2 and AVX-512 by what mr_cpu() says. */
#ifndef MR_KERNELS_JPEG_BYTES_H
#define MR_KERNELS_JPEG_BYTES_H

#include "base/cpu.h"

#include <stddef.h>

/* What unstuff may write past the capacity that it is given. */
constexpr size_t mr_jpeg_bytes_slack = 64;

typedef struct mr_jpeg_bytes_table {
    /* Copies data without the stuffed zeros until target holds capacity bytes, a marker comes or the source ends. Gives
     * the count of bytes written and leaves source behind what was taken: at a marker's 0xff, or at a last 0xff. */
    size_t (*unstuff)(unsigned char *target, size_t capacity, const unsigned char **source, const unsigned char *end);
    /* The next marker's 0xff; null when there is none before end. */
    const unsigned char *(*find_marker)(const unsigned char *source, const unsigned char *end);
} mr_jpeg_bytes_table;

/* The table of a level, which the caller may choose in tests; static. */
const mr_jpeg_bytes_table *mr_jpeg_bytes(mr_cpu_level level);

#endif
