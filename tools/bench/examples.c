/* Parsing, part of the suite "records": serialized Examples and SequenceExamples in memory are parsed to columns, in
 * batches of 512.
 *
 * The Examples are the first records of the peers' tabular file ($PEERS/data/tab.tfrecord: a label, 16 floats, 8 single
 * floats, up to 10 ids, 20 bytes), or of a file of the same form that is created here if that does not exist. The peer
 * is tf.io.parse_example in a tf.function with the same number of threads. It is measured with one batch after another,
 * in which TensorFlow uses all threads, and on several threads also with as many concurrent callers. The better result
 * counts. */
#include "tools/bench/bench.h"

#include "base/pool.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static constexpr int RECORDS = 51'200, BATCH = 512;
static constexpr int ROUNDS = 31, ROUNDS_MAX = 64, THREADS_MAX = 2;

/* ---- Features ---- */

static const mr_feature tabular[] = {
    {.name = "label", .dtype = MR_INT64, .shape = {.rank = 1, .dims = {1}}},
    {.name = "vec", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {16}}},
    {.name = "ids", .dtype = MR_INT64, .form = MR_VAR_LEN},
    {.name = "name", .dtype = MR_STRING},
    {.name = "f0", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f1", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f2", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f3", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f4", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f5", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f6", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
    {.name = "f7", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {1}}},
};
static const mr_feature context[] = {
    {.name = "id", .dtype = MR_INT64},
    {.name = "title", .dtype = MR_STRING},
};
static const mr_feature lists[] = {
    {.name = "frames", .dtype = MR_FLOAT, .form = MR_FIXED_LEN_SEQUENCE, .shape = {.rank = 1, .dims = {16}}},
    {.name = "labels", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE},
    {.name = "tokens", .dtype = MR_INT64, .form = MR_VAR_LEN},
    {.name = "words", .dtype = MR_STRING, .form = MR_RAGGED},
};

static const char python[] =
    "import sys,time,threading,tensorflow as tf\n"
    "path,what,count,n=sys.argv[1],sys.argv[2],int(sys.argv[3]),int(sys.argv[4])\n"
    "tf.config.threading.set_intra_op_parallelism_threads(n); tf.config.threading.set_inter_op_parallelism_threads(n)\n"
    "F,I,S=tf.float32,tf.int64,tf.string; L=tf.io.FixedLenFeature; V=tf.io.VarLenFeature\n"
    "Q=tf.io.FixedLenSequenceFeature\n"
    "if what=='examples':\n"
    "    spec={'label':L([1],I),'vec':L([16],F),'ids':V(I),'name':L([],S)}\n"
    "    for j in range(8): spec[f'f{j}']=L([1],F)\n"
    "    f=tf.function(lambda x: tf.io.parse_example(x,spec))\n"
    "else:\n"
    "    one={'id':L([],I),'title':L([],S)}\n"
    "    many={'frames':Q([16],F),'labels':Q([],I),'tokens':V(I),'words':tf.io.RaggedFeature(S,row_splits_dtype=I)}\n"
    "    f=tf.function(lambda x: tf.io.parse_sequence_example(x,one,many))\n"
    "b=list(tf.data.TFRecordDataset(path).take(count).batch(512))\n"
    "def run(part):\n"
    "    for x in part: f(x)\n"
    "run(b)\n"
    "t=[]; c=[]\n"
    "for r in range(7):\n"
    "    s=time.perf_counter(); p=time.process_time(); run(b); a=time.perf_counter()-s; "
    "c.append(time.process_time()-p)\n"
    "    if n>1:\n"
    "        w=[threading.Thread(target=run,args=(b[i::n],)) for i in range(n)]\n"
    "        s=time.perf_counter(); [x.start() for x in w]; [x.join() for x in w]\n"
    "        a=min(a,time.perf_counter()-s)\n"
    "    t.append(a)\n"
    "print('value', count/sorted(c if len(sys.argv)>5 else t)[3])\n";

/* Records per second, or per second of processor time; 0 if TensorFlow is not available. */
static double with_tensorflow(const char *path, const char *what, int count, int threads, bool of_processor)
{
    char script[PATH_MAX], command[3 * PATH_MAX];
    if (!bench_tensorflow_python()) return 0;
    snprintf(script, sizeof script, "%s/parse.py", bench_directory("records"));
    FILE *file = fopen(script, "w");
    if (!file) return 0;
    fputs(python, file);
    fclose(file);
    snprintf(command, sizeof command,
             "TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= '%s' '%s' '%s' %s %d %d %s 2>/dev/null",
             bench_tensorflow_python(), script, path, what, count, threads, of_processor ? "busy" : "");
    return bench_command(command);
}

/* ---- Files ---- */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static mr_status put_example(mr_example_encoder *encoder, uint64_t *state, mr_string *record, mr_error *error)
{
    float values[24];
    int64_t ids[10];
    char text[24], name[8];
    for (int i = 0; i < 24; i++) values[i] = (float)next(state) / 1e9f - 1;
    for (int i = 0; i < 10; i++) ids[i] = (int64_t)(next(state) % (1 << 20));
    for (int i = 0; i < 20; i++) text[i] = (char)('a' + next(state) % 26);
    mr_example_add_int64(encoder, "label", (int64_t)(next(state) % 1000));
    mr_example_add_float_list(encoder, "vec", values, 16);
    mr_example_add_int64_list(encoder, "ids", ids, next(state) % 11);
    mr_example_add_bytes(encoder, "name", (mr_string){text, 20});
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "f%d", i);
        mr_example_add_float(encoder, name, values[16 + i]);
    }
    return mr_example_finish(encoder, record, error);
}

/* Up to 40 steps. */
static mr_status put_sequence(mr_sequence_encoder *encoder, uint64_t *state, mr_string *record, mr_error *error)
{
    float frame[16];
    int64_t tokens[8];
    mr_string words[4];
    for (int i = 0; i < 4; i++) words[i] = (mr_string){&"abcdefghijklmnop"[i], 3 + next(state) % 8};
    mr_example_add_int64(&encoder->context, "id", (int64_t)next(state));
    mr_example_add_bytes(&encoder->context, "title", MR_STR("the title of it"));
    for (uint64_t step = 1 + next(state) % 40; step > 0; step--) {
        for (int i = 0; i < 16; i++) frame[i] = (float)next(state) / 1e9f - 1;
        for (int i = 0; i < 8; i++) tokens[i] = (int64_t)(next(state) % 30'000);
        mr_sequence_add_float_list(encoder, "frames", frame, 16);
        mr_sequence_add_int64_list(encoder, "labels", tokens, 1);
        mr_sequence_add_int64_list(encoder, "tokens", tokens, next(state) % 9);
        mr_sequence_add_bytes_list(encoder, "words", words, next(state) % 5);
    }
    return mr_sequence_finish(encoder, record, error);
}

static bool make_file(const char *path, bool is_sequence, int count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder example = {0};
    mr_sequence_encoder sequence = {0};
    uint64_t state = 1;
    if (access(path, R_OK) == 0) return true;
    if (mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .atomic = true), &writer, &error) != MR_OK)
        return false;
    mr_status status = MR_OK;
    for (int i = 0; i < count && status == MR_OK; i++) {
        mr_string record;
        status = is_sequence ? put_sequence(&sequence, &state, &record, &error)
                             : put_example(&example, &state, &record, &error);
        if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, &error);
    }
    mr_example_encoder_deinit(&example);
    mr_sequence_encoder_deinit(&sequence);
    if (status == MR_OK) return mr_record_writer_close(writer, &error) == MR_OK;
    mr_record_writer_discard(writer);
    return false;
}

/* ---- Millrace ---- */

typedef struct work {
    const mr_string *records; /* views into `bytes` */
    int count;
    mr_example_parser *example;
    mr_sequence_parser *sequence; /* exactly one of the two parsers is set */
    int32_t tensor_count;
    atomic_bool has_failed;
} work;

static void parse_batches(void *context_, int64_t begin, int64_t end)
{
    work *work = context_;
    mr_tensor tensors[64];
    for (int64_t i = begin; i < end; i++) {
        const mr_string *records = work->records + i * BATCH;
        int64_t count = work->count - i * BATCH < BATCH ? work->count - i * BATCH : BATCH;
        mr_status status = work->example ? mr_example_parse(work->example, records, count, false, tensors, nullptr)
                                         : mr_sequence_parse(work->sequence, records, count, false, tensors, nullptr);
        if (status != MR_OK) atomic_store(&work->has_failed, true);
        for (int32_t j = 0; status == MR_OK && j < work->tensor_count; j++) mr_tensor_deinit(&tensors[j]);
    }
}

/* Reads the first records of a file. The records point into *bytes, which the caller frees. */
static int load(const char *path, mr_string *records, int most, char **bytes)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    size_t size = 0, capacity = (size_t)1 << 30;
    int count = 0;
    *bytes = malloc(capacity); /* pages that are not touched use no memory */
    if (!*bytes || mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) return 0;
    while (count < most && mr_record_reader_next(reader, &record, &error) == MR_OK &&
           size + record.size_bytes <= capacity) {
        memcpy(*bytes + size, record.data, record.size_bytes);
        records[count++] = (mr_string){*bytes + size, record.size_bytes};
        size += record.size_bytes;
    }
    mr_record_reader_close(reader);
    return count;
}

/* of_processor: measures records per second of processor time of all threads, which hardly depends on the load of the
 * machine. */
static void measure_on(bench_report *report, work *work, const char *path, const char *what, const char *peer,
                       int threads, bool of_processor)
{
    double ours[ROUNDS_MAX];
    char task[64];
    int rounds = bench_rounds(report, ROUNDS);
    mr_error error = {0};
    mr_pool *pool = nullptr;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    if (mr_pool_new(threads, &pool, &error) != MR_OK) return;
    double peer_value = 0;
    for (int i = -1; i < rounds; i++) {
        if (i == rounds / 2) peer_value = with_tensorflow(path, what, work->count, threads, of_processor);
        double begin = of_processor ? bench_processor_seconds() : bench_seconds();
        mr_pool_for(pool, (work->count + BATCH - 1) / BATCH, 1, parse_batches, work);
        if (i >= 0) ours[i] = work->count / ((of_processor ? bench_processor_seconds() : bench_seconds()) - begin);
    }
    mr_pool_free(pool);
    snprintf(task, sizeof task, "parse_%s, %d thread%s", what, threads, threads > 1 ? "s" : "");
    bench_row(report, (bench_result){.task = task,
                                     .unit = of_processor ? "records/busy s" : "records/s",
                                     .peer = peer,
                                     .ours = atomic_load(&work->has_failed) ? 0 : bench_median(ours, rounds),
                                     .peer_value = peer_value,
                                     .goal = work->example ? 5 : 0,
                                     .runs = rounds});
}

static void measure(bench_report *report, work *work, const char *path, const char *what, const char *peer)
{
    for (int threads = 1; threads <= THREADS_MAX && threads <= mr_processor_count(); threads++) {
        measure_on(report, work, path, what, peer, threads, false);
        measure_on(report, work, path, what, peer, threads, true);
    }
}

static void bench_tabular(bench_report *report, mr_string *records)
{
    mr_error error = {0};
    char path[PATH_MAX], *bytes = nullptr;
    snprintf(path, sizeof path, "%s", bench_peers_path("data/tab.tfrecord"));
    if (access(path, R_OK) != 0) {
        snprintf(path, sizeof path, "%s/tabular.tfrecord", bench_directory("records"));
        if (!make_file(path, false, RECORDS)) return;
    }
    work work = {.records = records};
    for (size_t i = 0; i < sizeof tabular / sizeof *tabular; i++)
        work.tensor_count += mr_feature_tensor_count(&tabular[i]);
    work.count = load(path, records, RECORDS, &bytes);
    if (mr_example_parser_new(tabular, sizeof tabular / sizeof *tabular, &work.example, &error) == MR_OK)
        measure(report, &work, path, "examples", "tf.io.parse_example");
    mr_example_parser_free(work.example);
    free(bytes);
}

static void bench_sequences(bench_report *report, mr_string *records)
{
    mr_error error = {0};
    char path[PATH_MAX], *bytes = nullptr;
    snprintf(path, sizeof path, "%s/sequences.tfrecord", bench_directory("records"));
    if (!make_file(path, true, RECORDS / 5)) return;
    work work = {.records = records};
    for (size_t i = 0; i < sizeof context / sizeof *context; i++)
        work.tensor_count += mr_feature_tensor_count(&context[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) work.tensor_count += mr_sequence_tensor_count(&lists[i]);
    work.count = load(path, records, RECORDS / 5, &bytes);
    if (mr_sequence_parser_new(context, sizeof context / sizeof *context, lists, sizeof lists / sizeof *lists,
                               &work.sequence, &error) == MR_OK)
        measure(report, &work, path, "sequences", "tf.io.parse_sequence_example");
    mr_sequence_parser_free(work.sequence);
    free(bytes);
}

void bench_parsing(bench_report *report)
{
    mr_string *records = calloc(RECORDS, sizeof *records);
    if (!records) return;
    bench_tabular(report, records);
    bench_sequences(report, records);
    free(records);
}

BENCH(examples, "parsing of Examples and SequenceExamples, part of the suite records")
{
    bench_parsing(report);
}
