/* Part of the suite "records": indexes and seekable GZIP.
 *
 * Counting and indexing a file is compared with DALI's tfrecord2idx on the same file in the page cache, without the
 * startup time of Python. Seekable GZIP is read by all threads and compared with a single reader of the same stream. */
#include "tools/bench/bench.h"

#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr size_t GIB = (size_t)1 << 30;
static constexpr size_t PACKED_BYTES = (size_t)96 << 20;
static constexpr int ROUNDS_MAX = 32;

/* Bytes that deflate compresses to about half, like tables of numbers. */
static void fill(char *bytes, size_t size, uint64_t number)
{
    uint64_t state = number * 0x9e3779b97f4a7c15 + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        bytes[i] = (char)(i % 2 ? state >> 60 : state >> 56);
    }
}

/* Creates the file if it does not exist; false if it cannot be written. */
static bool make_records(const char *path, size_t record_bytes, size_t total_bytes, mr_record_writer_options options)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    if (access(path, R_OK) == 0) return true;
    char *bytes = malloc(record_bytes);
    options.size = sizeof options;
    options.atomic = true;
    if (!bytes || mr_record_writer_open(path, &options, &writer, &error) != MR_OK) {
        free(bytes);
        return false;
    }
    mr_status status = MR_OK;
    fill(bytes, record_bytes, 0);
    while (status == MR_OK && mr_record_writer_size(writer) < total_bytes) {
        if (options.compression != MR_COMPRESSION_NONE) fill(bytes, record_bytes, mr_record_writer_count(writer));
        status = mr_record_writer_append(writer, bytes, record_bytes, &error);
    }
    free(bytes);
    if (status == MR_OK) return mr_record_writer_close(writer, &error) == MR_OK;
    mr_record_writer_discard(writer);
    return false;
}

/* ---- Indexing ---- */

/* Counts the records, builds and writes the index; 0 on failure. */
static double index_ms(const char *path, int threads)
{
    mr_error error = {0};
    mr_record_index index = {0};
    double begin = bench_seconds();
    mr_status status = mr_record_index_build(path, threads, &index, &error);
    if (status == MR_OK) status = mr_record_index_write(path, &index, &error);
    double end = bench_seconds();
    mr_record_index_deinit(&index);
    return status == MR_OK ? (end - begin) * 1e3 : 0;
}

/* Runs the installed tfrecord2idx, which measures its own time. */
static double dali_ms(const char *path)
{
    static const char script[] = "import os,sys,time,runpy\n"
                                 "tool,source=sys.argv[1:3]; target=source+\".idx\"\n"
                                 "sys.argv=[tool,source,target]\n"
                                 "begin=time.perf_counter()\n"
                                 "runpy.run_path(tool)\n"
                                 "print(\"value\",(time.perf_counter()-begin)*1e3)\n"
                                 "os.remove(target)\n";
    char command[4096];
    const char *tool = getenv("MILLRACE_TFRECORD2IDX");
    if (!tool) tool = bench_peers_path("venvs/dali/bin/tfrecord2idx");
    if (access(tool, X_OK) != 0) return 0;
    snprintf(command, sizeof command, "$(sed -n '1s/^#!//p' '%s') -c '%s' '%s' '%s'", tool, script, tool, path);
    return bench_command(command);
}

static void bench_index(bench_report *report, const char *task, size_t record_bytes, size_t total_bytes, int rounds)
{
    char path[1024];
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    snprintf(path, sizeof path, "%s/index-%zu.tfrecord", bench_directory("records"), record_bytes);
    if (!make_records(path, record_bytes, total_bytes, (mr_record_writer_options){0})) {
        bench_note(report, "%s: cannot be written", path);
        return;
    }
    (void)index_ms(path, bench_threads(report));
    for (int i = 0; i < rounds; i++) {
        ours[i] = index_ms(path, bench_threads(report));
        theirs[i] = dali_ms(path);
    }
    bench_row(report, (bench_result){.task = task,
                                     .unit = "ms",
                                     .peer = "DALI tfrecord2idx",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .less_is_better = true,
                                     .goal = 10,
                                     .runs = rounds});
}

/* ---- Seekable GZIP ---- */

static double read_packed(const char *path, int threads)
{
    mr_error error = {0};
    mr_record_totals totals = {0};
    double begin = bench_seconds();
    if (threads > 0) {
        const mr_record_scan_options options = {.size = sizeof options, .threads = threads};
        (void)mr_record_scan(&path, 1, &options, &totals, &error);
    } else {
        mr_record_reader *reader = nullptr;
        mr_string record;
        if (mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) return 0;
        while (mr_record_reader_next(reader, &record, &error) == MR_OK) totals.size_bytes += record.size_bytes;
        mr_record_reader_close(reader);
    }
    return (double)totals.size_bytes / (bench_seconds() - begin) / 1e6;
}

static void bench_seekable(bench_report *report)
{
    char path[1024];
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = bench_rounds(report, 5);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    snprintf(path, sizeof path, "%s/seekable.tfrecord.gz", bench_directory("records"));
    const mr_record_writer_options options = {.size = sizeof options,
                                              .compression = MR_COMPRESSION_GZIP,
                                              .index = true,
                                              .seek_bytes = MR_RECORD_SEEK_BYTES,
                                              .threads = bench_threads(report)};
    if (!make_records(path, 4096, PACKED_BYTES, options)) {
        bench_note(report, "%s: cannot be written", path);
        return;
    }
    for (int i = 0; i < rounds; i++) {
        ours[i] = read_packed(path, bench_threads(report));
        theirs[i] = read_packed(path, 0);
    }
    bench_row(report, (bench_result){.task = "read_seekable_gzip",
                                     .unit = "MB/s",
                                     .peer = "sequential stream",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .runs = rounds});
}

void bench_indexing(bench_report *report)
{
    int rounds = bench_rounds(report, 3);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    bench_index(report, "index_4k", 4096, GIB, rounds);
    bench_index(report, "index_100k", 100'000, GIB, rounds);
    /* DALI needs 20 s for 1 GiB of these records. */
    bench_index(report, "index_64", 64, GIB / 4, 1);
    bench_seekable(report);
}
