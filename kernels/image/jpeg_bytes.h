/* Byte stuffing in a JPEG's entropy-coded data: 0xff 0x00 stands for the byte 0xff; 0xff followed by another byte is a
 * marker. Plain C, AVX2 and AVX-512, selected by mr_cpu(). */
#ifndef MR_KERNELS_JPEG_BYTES_H
#define MR_KERNELS_JPEG_BYTES_H

#include "base/cpu.h"

#include <stddef.h>

/* The number of bytes that unstuff may write past the capacity. */
constexpr size_t mr_jpeg_bytes_slack = 64;

typedef struct mr_jpeg_bytes_table {
    /* Copies data without the stuffed zeros until target holds capacity bytes, or up to a marker or the end of the
     * source. Returns the number of bytes written and advances source past the bytes consumed: to a marker's 0xff, or
     * to a final 0xff. */
    size_t (*unstuff)(unsigned char *target, size_t capacity, const unsigned char **source, const unsigned char *end);
    /* The position of the next marker's 0xff; null if there is none before end. */
    const unsigned char *(*find_marker)(const unsigned char *source, const unsigned char *end);
} mr_jpeg_bytes_table;

/* The table of a level, which tests may choose; static. */
const mr_jpeg_bytes_table *mr_jpeg_bytes(mr_cpu_level level);

#endif
