/* The suite "pipeline": stages and queues without images, compared with tf.data, torch and TensorFlow's queue. Each
 * peer is a process that measures itself for a few seconds, alternating with ours. */
#include "tools/bench/bench.h"

#include <millrace/dataset.h>
#include <millrace/queue.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1000000, COLUMNS = 64, BATCH = 256, BUFFER = 10000, QUEUE_ELEMENTS = 400000 };

/* ---- Millrace ---- */

/* Elements, or rows of batches, per second; 0 on an error. Takes ownership of the dataset. */
static double drain(mr_dataset *dataset, int threads, int64_t rows)
{
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status =
        mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, nullptr);
    mr_dataset_free(dataset);
    double start = bench_seconds();
    while (status == MR_OK) status = mr_iterator_next(iterator, &element, nullptr);
    double seconds = bench_seconds() - start;
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return status == MR_OUT_OF_RANGE ? (double)rows / seconds : 0;
}

static double shuffled_rows(const mr_tensor *table, int threads)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_from_slices(table, 1), .buffer_size = BUFFER, .seed = 1);
    return drain(mr_dataset_prefetch(mr_dataset_batch(d, BATCH), 2), threads, ROWS);
}

static mr_status add_one(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context, (void)random, (void)error;
    *mr_tensor_int64s(&output->tensors[0]) = *mr_tensor_int64s(&input->tensors[0]) + 1;
    output->count = 1;
    return MR_OK;
}

/* Uses batches of 1,000 on both sides, so that Python's time per element is not measured. */
static double mapped_numbers(int64_t count, int threads)
{
    static const mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 0}}};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, count, 1), add_one, nullptr, &spec);
    return drain(mr_dataset_batch(d, 1000), threads, count);
}

/* ---- The same for the tuner: infinite, without prefetch ---- */

static mr_dataset *endless_rows(const void *table)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_from_slices(table, 1), .buffer_size = BUFFER, .seed = 1);
    return mr_dataset_batch(mr_dataset_repeat(d, MR_INFINITE), BATCH);
}

static mr_dataset *endless_numbers(const void *)
{
    static const mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 0}}};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 10000000, 1), MR_INFINITE);
    return mr_dataset_batch(mr_dataset_map(d, add_one, nullptr, &spec), 1000);
}

static void *enqueue_all(void *argument)
{
    mr_queue *queue = argument;
    mr_tensor number = {0};
    mr_status status = mr_tensor_init_int64(&number, 7, nullptr);
    for (int i = 0; i < QUEUE_ELEMENTS && status == MR_OK; i++) status = mr_queue_enqueue(queue, &number, nullptr);
    mr_tensor_deinit(&number);
    mr_queue_close(queue, false);
    return nullptr;
}

/* Another thread enqueues; this one dequeues. */
static double queued_elements(void)
{
    mr_queue_options options = {
        .size = sizeof options, .capacity = 1000, .component_count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 0}}};
    mr_queue *queue = nullptr;
    pthread_t producer;
    if (mr_queue_new(MR_QUEUE_FIFO, &options, &queue, nullptr) != MR_OK) return 0;
    double start = bench_seconds();
    int64_t taken = 0;
    if (pthread_create(&producer, nullptr, enqueue_all, queue) == 0) {
        for (mr_tensor number = {0}; mr_queue_dequeue(queue, &number, nullptr) == MR_OK; taken++)
            mr_tensor_deinit(&number);
        pthread_join(producer, nullptr);
    }
    double seconds = bench_seconds() - start;
    mr_queue_unref(queue);
    return taken == QUEUE_ELEMENTS ? (double)taken / seconds : 0;
}

/* ---- Peers ---- */

static const char tf_head[] =
    "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n"
    "import time, threading, numpy as np, tensorflow as tf\n";

static const char tf_rows[] =
    "x = np.zeros((1000000, 64), np.float32)\n"
    "d = tf.data.Dataset.from_tensor_slices(x).shuffle(10000, seed=1).batch(256, num_parallel_calls=2).prefetch(2)\n"
    "n, t = 0, time.time()\n"
    "for b in d:\n"
    "    n += 256\n"
    "    if time.time() - t > 5: break\n"
    "print('value', n / (time.time() - t))\n";

static const char tf_map[] = "d = tf.data.Dataset.range(10**9).map(lambda x: x + 1).batch(1000)\n"
                             "n, t = 0, time.time()\n"
                             "for b in d:\n"
                             "    n += 1000\n"
                             "    if time.time() - t > 4: break\n"
                             "print('value', n / (time.time() - t))\n";

/* A TensorFlow loop inside each session run: no Python between elements. */
static const char tf_queue[] =
    "g = tf.Graph()\n"
    "with g.as_default():\n"
    "    N = 20000\n"
    "    q = tf.compat.v1.FIFOQueue(1000, [tf.int64], [[]])\n"
    "    c = lambda i: i < N\n"
    "    def put(i):\n"
    "        with tf.control_dependencies([q.enqueue([tf.constant(7, tf.int64)])]): return i + 1\n"
    "    def get(i):\n"
    "        with tf.control_dependencies([q.dequeue()]): return i + 1\n"
    "    p = tf.while_loop(c, put, [tf.constant(0)], parallel_iterations=1)\n"
    "    o = tf.while_loop(c, get, [tf.constant(0)], parallel_iterations=1)\n"
    "    with tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=2)) as s:\n"
    "        s.run([p, o])\n"
    "        t = time.time()\n"
    "        for _ in range(3): s.run([p, o])\n"
    "        print('value', 3 * N / (time.time() - t))\n";

static const char torch_rows[] = "import time, torch\n"
                                 "torch.set_num_threads(2)\n"
                                 "x = torch.zeros(1000000, 64)\n"
                                 "best = 0\n"
                                 "for _ in range(3):\n"
                                 "    t = time.time()\n"
                                 "    p = torch.randperm(1000000)\n"
                                 "    for i in range(0, 1000000, 256): b = x[p[i:i + 256]]\n"
                                 "    best = max(best, 1000000 / (time.time() - t))\n"
                                 "print('value', best)\n";

/* The number in the line "value" of a script's output; 0 if the interpreter does not exist. */
static double peer(const char *python, const char *head, const char *body)
{
    char path[600], command[1400];
    if (python == nullptr || access(python, X_OK) != 0) return 0;
    snprintf(path, sizeof path, "%s/peer.py", bench_directory("pipeline"));
    FILE *file = fopen(path, "w");
    if (file == nullptr) return 0;
    fprintf(file, "%s%s", head, body);
    if (fclose(file) != 0) return 0;
    snprintf(command, sizeof command, "'%s' %s 2>/dev/null", python, path);
    return bench_command(command);
}

static const char *torch_python(void)
{
    const char *path = bench_peers_path("venvs/torch/bin/python");
    return access(path, X_OK) == 0 ? path : nullptr;
}

BENCH(pipeline, "shuffle and batch, a trivial map, a queue between threads")
{
    enum { ROUNDS_MAX = 15 };
    int rounds = bench_rounds(report, 3), threads = bench_threads(report);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    const char *tf = bench_tensorflow_python(), *torch = torch_python();
    double rows[ROUNDS_MAX], numbers[ROUNDS_MAX], queued[ROUNDS_MAX];
    double their_rows[ROUNDS_MAX], their_numbers[ROUNDS_MAX], their_queued[ROUNDS_MAX], torch_gather[ROUNDS_MAX];
    mr_tensor table = {0};
    if (mr_tensor_init(&table, MR_FLOAT, MR_SHAPE(ROWS, COLUMNS), nullptr) != MR_OK) {
        bench_note(report, "No memory for %d rows of %d numbers.", ROWS, COLUMNS);
        return;
    }
    memset(table.data, 0, mr_tensor_size_bytes(&table));
    for (int i = 0; i < rounds; i++) {
        rows[i] = shuffled_rows(&table, threads);
        their_rows[i] = peer(tf, tf_head, tf_rows);
        torch_gather[i] = peer(torch, "", torch_rows);
        numbers[i] = mapped_numbers(10000000, threads);
        their_numbers[i] = peer(tf, tf_head, tf_map);
        queued[i] = queued_elements();
        their_queued[i] = peer(tf, tf_head, tf_queue);
    }
    bench_tuned(report, &(bench_tuned_task){"shuffle_batch", endless_rows, &table, 4000});
    bench_tuned(report, &(bench_tuned_task){"trivial_map", endless_numbers, nullptr, 4000});
    mr_tensor_deinit(&table);
    double ours = bench_median(rows, rounds);
    bench_row(report, (bench_result){"shuffle_batch", "rows/s", "tf.data", ours, bench_median(their_rows, rounds),
                                     false, 10, rounds});
    bench_row(report, (bench_result){"shuffle_batch", "rows/s", "torch, full set gathered", ours,
                                     bench_median(torch_gather, rounds), false, 1.5, rounds});
    bench_row(report, (bench_result){"trivial_map", "elements/s", "tf.data", bench_median(numbers, rounds),
                                     bench_median(their_numbers, rounds), false, 20, rounds});
    bench_row(report, (bench_result){"fifo_queue", "elements/s", "FIFOQueue in a session", bench_median(queued, rounds),
                                     bench_median(their_queued, rounds), false, 10, rounds});
    if (tf == nullptr) bench_note(report, "No TensorFlow: set MILLRACE_ORACLE_PYTHON to compare with it.");
    if (torch == nullptr) bench_note(report, "No torch: its interpreter is expected in $PEERS/venvs/torch.");
}
