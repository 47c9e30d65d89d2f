/* The suite "records": reading (reading.c), indexes (indexing.c), checksums, parsing (examples.c) and tfrecord-make
 * (make.c). */
#include "tools/bench/bench.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr size_t BLOCK_BYTES = (size_t)256 << 20;
static constexpr int ROUNDS_MAX = 64;

/* CRC32C of 4 KiB pieces of a block larger than any cache, compared with the sum of the block's words. */
static void bench_checksum(bench_report *report)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = bench_rounds(report, 9);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    uint64_t *block = malloc(BLOCK_BYTES);
    if (!block) return;
    memset(block, 0x5a, BLOCK_BYTES);
    volatile uint64_t sink = 0;
    for (int i = 0; i < rounds; i++) {
        double begin = bench_seconds();
        uint32_t crc = 0;
        for (size_t at = 0; at < BLOCK_BYTES; at += 4096) crc ^= mr_crc32c(0, (char *)block + at, 4096);
        double middle = bench_seconds();
        uint64_t sum = 0;
        for (size_t at = 0; at < BLOCK_BYTES / 8; at++) sum += block[at];
        double end = bench_seconds();
        sink = sink + sum + crc;
        ours[i] = (double)BLOCK_BYTES / (middle - begin) / 1e9;
        theirs[i] = (double)BLOCK_BYTES / (end - middle) / 1e9;
    }
    free(block);
    bench_row(report, (bench_result){.task = "crc32c_4k",
                                     .unit = "GB/s",
                                     .peer = "sum of the words",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .runs = rounds});
}

BENCH(records, "reading and checking records, CRC32C, parsing Examples")
{
    bench_records_reading(report);
    bench_indexing(report);
    bench_checksum(report);
    bench_parsing(report);
    bench_making(report);
}
