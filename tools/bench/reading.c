/* Reading, part of the suite "records": all records of a file in the page cache are read in batches, with checksums
 * verified.
 *
 * There are three peers: tf.data's TFRecordDataset with batches, which TensorFlow users have; ISA-L's CRC32C over the
 * same file in memory, without framing and copies, where the file is mapped before or within the measured time; and
 * read(2) alone, which no reader that copies out of the page cache can beat. The process tfrecord-cat --verify is
 * compared with millrace's reader on the same file. */
#include "tools/bench/bench.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static constexpr size_t FILE_BYTES = (size_t)512 << 20;
static constexpr size_t PIECE_BYTES = (size_t)1 << 20;
static constexpr int ROUNDS = 9, ROUNDS_MAX = 64, THREADS_MAX = 64;

/* ---- Files, created once ---- */

static mr_status append_example(mr_record_writer *writer, const char *bytes, size_t size_bytes, int number,
                                mr_error *error)
{
    mr_example_encoder encoder = {0};
    mr_string record;
    mr_example_add_bytes(&encoder, "image/encoded_raw", (mr_string){bytes, size_bytes});
    mr_example_add_bytes(&encoder, "image/filename", MR_STR("image-000001.jpg"));
    mr_example_add_int64(&encoder, "image/class/label", number % 1000);
    mr_example_add_int64(&encoder, "image/height", 480);
    mr_example_add_int64(&encoder, "image/width", 640);
    mr_status status = mr_example_finish(&encoder, &record, error);
    if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, error);
    mr_example_encoder_deinit(&encoder);
    return status;
}

/* Creates records of one size. As Examples they are slightly longer. */
static bool make_file(const char *path, size_t record_bytes, bool is_example)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    struct stat about;
    if (stat(path, &about) == 0 && (size_t)about.st_size >= FILE_BYTES) return true;
    char *bytes = malloc(record_bytes);
    for (size_t i = 0; bytes && i < record_bytes; i++) bytes[i] = (char)(i * 2654435761u >> 13);
    if (!bytes ||
        mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .atomic = true), &writer, &error) != MR_OK) {
        free(bytes);
        return false;
    }
    mr_status status = MR_OK;
    for (int i = 0; status == MR_OK && mr_record_writer_size(writer) < FILE_BYTES; i++)
        status = is_example ? append_example(writer, bytes, record_bytes, i, &error)
                            : mr_record_writer_append(writer, bytes, record_bytes, &error);
    free(bytes);
    if (status == MR_OK) return mr_record_writer_close(writer, &error) == MR_OK;
    mr_record_writer_discard(writer);
    return false;
}

static const char *file_path(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.tfrecord", bench_directory("records"), name);
    return path;
}

/* ---- Millrace ---- */

/* Touches each record's view, as a consumer would. */
static mr_status touch(void *context, mr_record_batch *batch, mr_error *error)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < batch->count; i++) sum += batch->records[i].size_bytes + (uintptr_t)batch->records[i].data;
    __atomic_fetch_add((uint64_t *)context, sum, __ATOMIC_RELAXED);
    return MR_OK;
}

typedef struct speed {
    double bytes, records; /* per second */
} speed;

/* How often one run reads the file, so that the start of the process and of its threads does not matter. */
static constexpr int TIMES = 4;

static speed read_ours(const char *path, int threads)
{
    const char *paths[TIMES];
    for (int i = 0; i < TIMES; i++) paths[i] = path;
    mr_error error = {0};
    mr_record_totals totals;
    uint64_t sum = 0;
    double begin = bench_seconds();
    const mr_record_scan_options options = {.size = sizeof options, .threads = threads, .context = &sum, .work = touch};
    if (mr_record_scan(paths, TIMES, &options, &totals, &error) != MR_OK) return (speed){0};
    double seconds = bench_seconds() - begin;
    return (speed){(double)(totals.size_bytes + 16 * totals.records) / seconds, (double)totals.records / seconds};
}

static speed read_with_reader(const char *path)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    uint64_t bytes = 0, count = 0;
    double begin = bench_seconds();
    if (mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) return (speed){0};
    for (; mr_record_reader_next(reader, &record, &error) == MR_OK; count++) bytes += record.size_bytes + 16;
    mr_record_reader_close(reader);
    double seconds = bench_seconds() - begin;
    return (speed){(double)bytes / seconds, (double)count / seconds};
}

/* ---- read(2) ---- */

static double read_alone(const char *path)
{
    static char buffer[512 << 10];
    double begin = bench_seconds(), bytes = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (descriptor >= 0 && (got = read(descriptor, buffer, sizeof buffer)) > 0) bytes += (double)got;
    if (descriptor >= 0) close(descriptor);
    return bytes / (bench_seconds() - begin);
}

/* ---- ISA-L ---- */

typedef unsigned crc32_iscsi(unsigned char *bytes, int size_bytes, unsigned seed);

typedef struct mapped {
    unsigned char *bytes;
    size_t size_bytes;
    int threads, times;
    crc32_iscsi *crc;
} mapped;

typedef struct part {
    const mapped *mapped;
    int number;
    unsigned crc;
} part;

/* Each thread processes every threads-th piece. */
static void *crc_part(void *argument)
{
    part *part = argument;
    const mapped *m = part->mapped;
    for (int i = 0; i < m->times; i++)
        for (size_t at = (size_t)part->number * PIECE_BYTES; at < m->size_bytes;
             at += (size_t)m->threads * PIECE_BYTES) {
            size_t size = m->size_bytes - at < PIECE_BYTES ? m->size_bytes - at : PIECE_BYTES;
            part->crc ^= m->crc(m->bytes + at, (int)size, ~0u);
        }
    return nullptr;
}

static double crc_mapped(const mapped *m)
{
    pthread_t threads[THREADS_MAX];
    part parts[THREADS_MAX];
    double begin = bench_seconds();
    for (int i = 0; i < m->threads; i++) {
        parts[i] = (part){m, i, 0};
        if (i > 0) pthread_create(&threads[i], nullptr, crc_part, &parts[i]);
    }
    crc_part(&parts[0]);
    for (int i = 1; i < m->threads; i++) pthread_join(threads[i], nullptr);
    return m->times * (double)m->size_bytes / (bench_seconds() - begin);
}

static bool map_file(const char *path, mapped *m)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (descriptor < 0 || fstat(descriptor, &about) != 0) return false;
    m->size_bytes = (size_t)about.st_size;
    m->bytes = mmap(nullptr, m->size_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    close(descriptor);
    return m->bytes != MAP_FAILED;
}

/* Bytes per second for the checksum of a mapped file, and for mapping it, computing its checksum and unmapping it,
 * once. */
static bool read_with_isal(const char *path, int threads, double *mapped_before, double *mapping)
{
    void *library = dlopen("libisal.so.2", RTLD_NOW);
    mapped m = {.threads = threads, .times = TIMES};
    m.crc = library ? (crc32_iscsi *)(uintptr_t)dlsym(library, "crc32_iscsi") : nullptr;
    if (!m.crc || !map_file(path, &m)) return false;
    *mapped_before = crc_mapped(&m);
    munmap(m.bytes, m.size_bytes);
    m.times = 1;
    double begin = bench_seconds();
    if (!map_file(path, &m)) return false;
    (void)crc_mapped(&m);
    munmap(m.bytes, m.size_bytes);
    *mapping = (double)m.size_bytes / (bench_seconds() - begin);
    return true;
}

static void beside_isal(bench_report *report, const char *path, int threads, const char *task)
{
    double ours[ROUNDS_MAX], before[ROUNDS_MAX] = {0}, mapping[ROUNDS_MAX] = {0};
    int rounds = bench_rounds(report, ROUNDS);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (int i = 0; i < rounds; i++) {
        (void)read_with_isal(path, threads, &before[i], &mapping[i]);
        ours[i] = read_ours(path, threads).bytes / 1e9;
    }
    double median = bench_median(ours, rounds);
    bench_row(report, (bench_result){.task = task,
                                     .unit = "GB/s",
                                     .peer = "ISA-L CRC32C, mapped before",
                                     .ours = median,
                                     .peer_value = bench_median(before, rounds) / 1e9,
                                     .goal = 0.6,
                                     .runs = rounds});
    bench_row(report, (bench_result){.task = task,
                                     .unit = "GB/s",
                                     .peer = "mapping and ISA-L CRC32C",
                                     .ours = median,
                                     .peer_value = bench_median(mapping, rounds) / 1e9,
                                     .runs = rounds});
}

/* ---- tf.data ---- */

static const char python[] =
    "import sys,time,os\n"
    "os.environ['TF_CPP_MIN_LOG_LEVEL']='3'; os.environ['CUDA_VISIBLE_DEVICES']=''\n"
    "import tensorflow as tf\n"
    "path,batch,threads,seconds=sys.argv[1],int(sys.argv[2]),int(sys.argv[3]),float(sys.argv[4])\n"
    "tf.config.threading.set_intra_op_parallelism_threads(threads)\n"
    "tf.config.threading.set_inter_op_parallelism_threads(threads)\n"
    "o=tf.data.Options(); o.threading.private_threadpool_size=threads; o.deterministic=False\n"
    "d=tf.data.TFRecordDataset(path,buffer_size=1<<20).batch(batch,drop_remainder=True).repeat().with_options(o)\n"
    "i=iter(d)\n"
    "for _ in range(20): next(i)\n"
    "rates=[]\n"
    "for _ in range(5):\n"
    "    n,s=0,time.perf_counter()\n"
    "    while time.perf_counter()-s<seconds: next(i); n+=batch\n"
    "    rates.append(n/(time.perf_counter()-s))\n"
    "print('value',sorted(rates)[2])\n";

/* Records per second; 0 if TensorFlow is not available. */
static double read_with_tensorflow(const char *path, int batch, int threads)
{
    char script[512], command[PATH_MAX + 1024];
    if (!bench_tensorflow_python()) return 0;
    snprintf(script, sizeof script, "%s/read.py", bench_directory("records"));
    FILE *file = fopen(script, "w");
    if (!file) return 0;
    fputs(python, file);
    fclose(file);
    snprintf(command, sizeof command, "'%s' '%s' '%s' %d %d 0.5 2>/dev/null", bench_tensorflow_python(), script, path,
             batch, threads);
    return bench_command(command);
}

static void beside_tensorflow(bench_report *report, const char *path, int batch, const char *task, double goal)
{
    double ours[ROUNDS_MAX];
    int rounds = bench_rounds(report, ROUNDS), threads = bench_threads(report);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (int i = 0; i < rounds; i++) ours[i] = read_ours(path, threads).records;
    char peer[64];
    snprintf(peer, sizeof peer, "tf.data, batches of %d", batch);
    bench_row(report, (bench_result){.task = task,
                                     .unit = "records/s",
                                     .peer = peer,
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = read_with_tensorflow(path, batch, threads),
                                     .goal = goal,
                                     .runs = rounds});
}

/* ---- The reader alone ---- */

static void beside_read(bench_report *report, const char *path, const char *task)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], records[ROUNDS_MAX];
    int rounds = bench_rounds(report, ROUNDS);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (int i = 0; i < rounds; i++) {
        theirs[i] = read_alone(path) / 1e9;
        speed speed = read_with_reader(path);
        ours[i] = speed.bytes / 1e9;
        records[i] = speed.records / 1e6;
    }
    bench_row(report, (bench_result){.task = task,
                                     .unit = "GB/s",
                                     .peer = "read(2) alone",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .runs = rounds});
    bench_note(report, "%s: %.1f million records/s by mr_record_reader, one thread", task,
               bench_median(records, rounds));
}

/* ---- tfrecord-cat --verify ---- */

extern char **environ;

/* Bytes per second of the process, from start to exit; 0 if it reports a fault. */
static double verify(const char *path, int threads)
{
    char program[PATH_MAX], jobs[16];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 16);
    struct stat about;
    if (length < 0 || stat(path, &about) != 0) return 0;
    program[length] = '\0';
    snprintf(strrchr(program, '/') + 1, 16, "tfrecord-cat");
    snprintf(jobs, sizeof jobs, "%d", threads);
    char *arguments[4 + TIMES + 1] = {program, "--verify", "--jobs", jobs};
    for (int i = 0; i < TIMES; i++) arguments[4 + i] = (char *)path;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child;
    int status = 1;
    double begin = bench_seconds();
    if (posix_spawn(&child, program, &actions, nullptr, arguments, environ) == 0) (void)waitpid(child, &status, 0);
    double seconds = bench_seconds() - begin;
    posix_spawn_file_actions_destroy(&actions);
    return status == 0 ? TIMES * (double)about.st_size / seconds : 0;
}

static void bench_verify(bench_report *report, const char *path, const char *task)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = bench_rounds(report, ROUNDS), threads = bench_threads(report);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (int i = 0; i < rounds; i++) {
        theirs[i] = read_ours(path, threads).bytes / 1e9;
        ours[i] = verify(path, threads) / 1e9;
    }
    bench_row(report, (bench_result){.task = task,
                                     .unit = "GB/s",
                                     .peer = "our reading alone",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .goal = 0.8,
                                     .runs = rounds});
}

void bench_records_reading(bench_report *report)
{
    const char *path = file_path("4096");
    int threads = bench_threads(report);
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    if (make_file(path, 4096, false)) {
        (void)read_alone(path);
        beside_tensorflow(report, path, 256, "read_4k", 8);
        beside_isal(report, path, 1, "read_4k_1_thread");
        if (threads > 1) beside_isal(report, path, threads, "read_4k_threads");
        beside_read(report, path, "read_4k_reader");
    }
    path = file_path("64");
    if (make_file(path, 64, false)) {
        (void)read_alone(path);
        beside_tensorflow(report, path, 4096, "read_64", 20);
        beside_read(report, path, "read_64_reader");
    }
    path = file_path("100000");
    if (make_file(path, 100'000, false)) {
        (void)read_alone(path);
        beside_isal(report, path, 1, "read_100k_1_thread");
        beside_read(report, path, "read_100k_reader");
    }
    path = file_path("examples-4k");
    if (make_file(path, 4000, true)) {
        (void)read_alone(path);
        bench_verify(report, path, "verify_4k");
    }
}
