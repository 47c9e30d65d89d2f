/* records: reading, checksums, the Example parser.
 *
 * Reading is set beside read(2) of the same file alone, from the page cache into one buffer: what no reader can beat.
 * Parsing is set beside tf.io.parse_example on the same serialised Examples in batches of 128. */
#include "tools/bench/bench.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr size_t FILE_BYTES = (size_t)256 << 20;
static constexpr int ROUNDS_MAX = 64;
static constexpr int EXAMPLES = 16'384;
static constexpr int BATCH = 128;

/* A file of records of one size, made once. */
static bool make_file(const char *path, size_t record_bytes, size_t total_bytes)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    if (access(path, R_OK) == 0) return true;
    char *bytes = malloc(record_bytes);
    for (size_t i = 0; bytes && i < record_bytes; i++) bytes[i] = (char)(i * 2654435761u >> 13);
    if (!bytes || mr_record_writer_open(path, &(mr_record_writer_options){.atomic = true}, &writer, &error) != MR_OK) {
        free(bytes);
        return false;
    }
    mr_status status = MR_OK;
    while (status == MR_OK && mr_record_writer_size(writer) < total_bytes)
        status = mr_record_writer_append(writer, bytes, record_bytes, &error);
    free(bytes);
    if (status == MR_OK) return mr_record_writer_close(writer, &error) == MR_OK;
    mr_record_writer_abandon(writer);
    return false;
}

/* Bytes of records a second, checked; *records a second too. */
static double read_records(const char *path, double *records)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    double begin = bench_seconds();
    uint64_t bytes = 0, count = 0;
    if (mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) return 0;
    while (mr_record_reader_next(reader, &record, &error) == MR_OK) {
        bytes += record.size_bytes + 16;
        count++;
    }
    mr_record_reader_free(reader);
    double seconds = bench_seconds() - begin;
    *records = (double)count / seconds;
    return (double)bytes / seconds;
}

/* Bytes a second that read(2) copies out of the page cache. */
static double read_alone(const char *path)
{
    static char buffer[1 << 20];
    double begin = bench_seconds(), bytes = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (descriptor >= 0 && (got = read(descriptor, buffer, sizeof buffer)) > 0) bytes += (double)got;
    if (descriptor >= 0) close(descriptor);
    return bytes / (bench_seconds() - begin);
}

static void bench_reading(bench_report *report, size_t record_bytes, const char *task, double goal_gb)
{
    char path[1024];
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], records[ROUNDS_MAX];
    int rounds = bench_rounds(report, 9);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    snprintf(path, sizeof path, "%s/%zu.tfrecord", bench_folder("records"), record_bytes);
    if (!make_file(path, record_bytes, FILE_BYTES)) {
        bench_note(report, "%s: cannot be written", path);
        return;
    }
    (void)read_alone(path);
    for (int i = 0; i < rounds; i++) {
        theirs[i] = read_alone(path) / 1e9;
        ours[i] = read_records(path, &records[i]) / 1e9;
    }
    double median = bench_median(ours, rounds), peer = bench_median(theirs, rounds);
    bench_row(
        report,
        (bench_result){
            .task = task, .unit = "GB/s", .peer = "read(2) alone", .ours = median, .peer_value = peer, .runs = rounds});
    if (goal_gb > 0)
        bench_note(report, "%s: %.1f GB/s on one core, checked, of %.0f GB/s asked for", task, median, goal_gb);
    else if (record_bytes < 1000)
        bench_note(report, "%s: %.1f million records/s", task, bench_median(records, rounds) / 1e6);
}

/* The checksum over 4 KiB pieces of a block that fits no cache, beside the sum of its words. */
static void bench_checksum(bench_report *report)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = bench_rounds(report, 9);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    uint64_t *block = malloc(FILE_BYTES);
    if (!block) return;
    memset(block, 0x5a, FILE_BYTES);
    volatile uint64_t sink = 0;
    for (int i = 0; i < rounds; i++) {
        double begin = bench_seconds();
        uint32_t crc = 0;
        for (size_t at = 0; at < FILE_BYTES; at += 4096) crc ^= mr_crc32c(0, (char *)block + at, 4096);
        double middle = bench_seconds();
        uint64_t sum = 0;
        for (size_t at = 0; at < FILE_BYTES / 8; at++) sum += block[at];
        double end = bench_seconds();
        sink = sink + sum + crc;
        ours[i] = (double)FILE_BYTES / (middle - begin) / 1e9;
        theirs[i] = (double)FILE_BYTES / (end - middle) / 1e9;
    }
    free(block);
    bench_row(report, (bench_result){.task = "crc32c_4k",
                                     .unit = "GB/s",
                                     .peer = "sum of the words",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .runs = rounds});
}

/* ---- Parsing: an Example as object detection has them ---- */

static const mr_feature features[] = {
    {.name = "image/class/label", .dtype = MR_INT64},
    {.name = "image/class/text", .dtype = MR_STRING},
    {.name = "image/filename", .dtype = MR_STRING},
    {.name = "image/height", .dtype = MR_INT64},
    {.name = "image/object/bbox/xmin", .dtype = MR_FLOAT, .form = MR_VARIABLE},
    {.name = "image/object/bbox/ymin", .dtype = MR_FLOAT, .form = MR_VARIABLE},
    {.name = "image/object/label", .dtype = MR_INT64, .form = MR_VARIABLE},
    {.name = "image/score", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {8}}},
    {.name = "image/width", .dtype = MR_INT64},
};
static constexpr int FEATURES = sizeof features / sizeof features[0];

static bool make_examples(const char *path)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    if (access(path, R_OK) == 0) return true;
    if (mr_record_writer_open(path, &(mr_record_writer_options){.atomic = true}, &writer, &error) != MR_OK)
        return false;
    mr_status status = MR_OK;
    for (int i = 0; i < EXAMPLES && status == MR_OK; i++) {
        float values[8];
        int64_t labels[8];
        char name[32];
        mr_string record;
        for (int j = 0; j < 8; j++) {
            values[j] = (float)(i + j) / 100;
            labels[j] = (i * 7 + j) % 90;
        }
        snprintf(name, sizeof name, "picture-%06d.jpg", i);
        mr_example_add_int64(&encoder, "image/class/label", i % 1000);
        mr_example_add_bytes(&encoder, "image/class/text", MR_STR("daisy"));
        mr_example_add_bytes(&encoder, "image/filename", mr_string_from(name));
        mr_example_add_int64(&encoder, "image/height", 480);
        mr_example_add_int64(&encoder, "image/width", 640);
        mr_example_add_float_list(&encoder, "image/object/bbox/xmin", values, (size_t)(i % 6));
        mr_example_add_float_list(&encoder, "image/object/bbox/ymin", values, (size_t)(i % 6));
        mr_example_add_int64_list(&encoder, "image/object/label", labels, (size_t)(i % 6));
        mr_example_add_float_list(&encoder, "image/score", values, 8);
        mr_example_add_bytes(&encoder, "not/asked/for", MR_STR("some more bytes that are skipped"));
        status = mr_example_finish(&encoder, &record, &error);
        if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, &error);
    }
    mr_example_encoder_deinit(&encoder);
    if (status == MR_OK) return mr_record_writer_close(writer, &error) == MR_OK;
    mr_record_writer_abandon(writer);
    return false;
}

static const char python[] =
    "import sys,time,tensorflow as tf\n"
    "tf.config.threading.set_intra_op_parallelism_threads(1); tf.config.threading.set_inter_op_parallelism_threads(1)\n"
    "F,I,S=tf.float32,tf.int64,tf.string; L=tf.io.FixedLenFeature; V=tf.io.VarLenFeature\n"
    "spec={'image/class/label':L([],I),'image/class/text':L([],S),'image/filename':L([],S),'image/height':L([],I),"
    "'image/object/bbox/xmin':V(F),'image/object/bbox/ymin':V(F),'image/object/label':V(I),'image/score':L([8],F),"
    "'image/width':L([],I)}\n"
    "f=tf.function(lambda x: tf.io.parse_example(x,spec))\n"
    "b=list(tf.data.TFRecordDataset(sys.argv[1]).batch(128))\n"
    "for x in b: f(x)\n"
    "t=[]\n"
    "for _ in range(7):\n"
    "    s=time.perf_counter()\n"
    "    for x in b: f(x)\n"
    "    t.append(time.perf_counter()-s)\n"
    "print('value', 128*len(b)/sorted(t)[3])\n";

/* Examples a second of tf.io.parse_example inside a tf.function, on one thread; 0 without TensorFlow. */
static double parse_with_tensorflow(const char *path)
{
    char script[1024], command[4096];
    if (!bench_tensorflow_python()) return 0;
    snprintf(script, sizeof script, "%s/parse.py", bench_folder("records"));
    FILE *file = fopen(script, "w");
    if (!file) return 0;
    fputs(python, file);
    fclose(file);
    snprintf(command, sizeof command, "TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= '%s' '%s' '%s' 2>/dev/null",
             bench_tensorflow_python(), script, path);
    return bench_command(command);
}

static double parse_all(const mr_example_parser *parser, const mr_string *records)
{
    mr_error error = {0};
    mr_tensor tensors[3 * FEATURES];
    int32_t tensor_count = 0;
    for (int i = 0; i < FEATURES; i++) tensor_count += mr_feature_tensor_count(&features[i]);
    double begin = bench_seconds();
    for (int i = 0; i < EXAMPLES; i += BATCH) {
        if (mr_example_parse(parser, records + i, BATCH, false, tensors, &error) != MR_OK) return 0;
        for (int j = 0; j < tensor_count; j++) mr_tensor_deinit(&tensors[j]);
    }
    return EXAMPLES / (bench_seconds() - begin);
}

static void bench_parsing(bench_report *report)
{
    mr_error error = {0};
    char path[1024];
    mr_record_reader *reader = nullptr;
    mr_example_parser *parser = nullptr;
    mr_string record, *records = calloc(EXAMPLES, sizeof(mr_string));
    double ours[ROUNDS_MAX];
    int count = 0, rounds = bench_rounds(report, 9);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    snprintf(path, sizeof path, "%s/examples.tfrecord", bench_folder("records"));
    if (!records || !make_examples(path) || mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK ||
        mr_example_parser_new(features, FEATURES, &parser, &error) != MR_OK) {
        bench_note(report, "parse_example: %s", error.message);
        mr_record_reader_free(reader);
        free(records);
        return;
    }
    while (count < EXAMPLES && mr_record_reader_next(reader, &record, &error) == MR_OK) {
        char *copy = malloc(record.size_bytes + 1);
        memcpy(copy, record.data, record.size_bytes);
        records[count++] = (mr_string){copy, record.size_bytes};
    }
    mr_record_reader_free(reader);
    for (int i = 0; i < rounds && count == EXAMPLES; i++) ours[i] = parse_all(parser, records);
    bench_row(report, (bench_result){.task = "parse_example",
                                     .unit = "Examples/s per core",
                                     .peer = "tf.io.parse_example",
                                     .ours = count == EXAMPLES ? bench_median(ours, rounds) : 0,
                                     .peer_value = parse_with_tensorflow(path),
                                     .goal = 5,
                                     .runs = rounds});
    for (int i = 0; i < count; i++) free((char *)records[i].data);
    free(records);
    mr_example_parser_free(parser);
}

BENCH(records, "records read and checked, CRC32C, Examples parsed")
{
    bench_reading(report, 4096, "read_4k", 5);
    bench_reading(report, 64, "read_64", 0);
    bench_reading(report, 100'000, "read_100k", 0);
    bench_checksum(report);
    bench_parsing(report);
}
