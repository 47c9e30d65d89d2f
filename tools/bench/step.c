/* The suite "step": the training step of the demo's network, and each of its kernels, compared with TensorFlow 2.15.1,
 * which runs in its own process (peer_step.py) with the same number of threads. The two sides alternate every few runs.
 * Results are medians over the rounds. */
#include "tools/bench/bench.h"

#include <millrace/millrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The demo's network: examples/train_images.c. */
constexpr int SIZE = 64, BATCH = 32, LAYERS = 4, TASKS_MAX = 64, ROUNDS_MAX = 31;
static const int filter_counts[LAYERS] = {16, 32, 64, 64};

/* ---- The peer ---- */

typedef struct peer {
    pid_t process;
    FILE *to, *from;
} peer;

static bool peer_start(peer *p, int threads)
{
    int ask[2], answer[2];
    const char *python = bench_tensorflow_python();
    *p = (peer){0};
    signal(SIGPIPE, SIG_IGN); /* a peer that exits early is reported as 0 */
    if (!python || pipe(ask) != 0 || pipe(answer) != 0) return false;
    p->process = fork();
    if (p->process == 0) {
        char count[16], size[16], batch[16];
        snprintf(count, sizeof count, "%d", threads);
        snprintf(size, sizeof size, "%d", SIZE);
        snprintf(batch, sizeof batch, "%d", BATCH);
        dup2(ask[0], 0);
        dup2(answer[1], 1);
        close(ask[1]);
        close(answer[0]);
        execl(python, python, "tools/bench/peer_step.py", count, size, batch, (char *)nullptr);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    p->to = fdopen(ask[1], "w");
    p->from = fdopen(answer[0], "r");
    return p->process > 0 && p->to && p->from;
}

/* Wall-clock time of a run, and processor time of all threads. Processor time is more reliable on a busy machine. */
typedef struct cost {
    double seconds, busy;
} cost;

/* Zero if the peer has exited. */
static cost peer_time(peer *p, const char *task, int count)
{
    char line[256];
    cost c = {0};
    if (!p->to || fprintf(p->to, "%s %d\n", task, count) < 0 || fflush(p->to) != 0) return c;
    while (fgets(line, sizeof line, p->from))
        if (sscanf(line, "value %lf %lf", &c.seconds, &c.busy) == 2) return c;
    return (cost){0};
}

static void peer_stop(peer *p)
{
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->process > 0) waitpid(p->process, nullptr, 0);
}

/* ---- Millrace ---- */

typedef struct task {
    char name[32];
    mr_node *target;
    mr_step *step;
} task;

typedef struct work {
    mr_graph *graph;
    mr_session *session;
    task tasks[TASKS_MAX];
    int count;
    mr_node *variables_ready;
} work;

/* A variable that no optimizer updates: normally distributed numbers, or ones if `normal` is false. */
static mr_output numbers(work *w, mr_shape shape, bool normal)
{
    mr_graph *g = w->graph;
    mr_output initial = mr_fill(g, mr_constant_ints(g, (mr_ints){shape.dims, shape.rank}), mr_constant_float(g, 1.0f));
    if (normal) {
        mr_output sizes = mr_constant_ints(g, (mr_ints){shape.dims, shape.rank});
        initial = mr_random_standard_normal(g, sizes, MR_FLOAT, .seed = 1, .seed2 = 2);
    }
    return mr_variable_new(g, "numbers", initial, .trainable = false).value;
}

/* Labels from 0 to 5. */
static mr_output labels(work *w)
{
    int64_t values[BATCH];
    mr_tensor tensor = {0};
    for (int i = 0; i < BATCH; i++) values[i] = i % 6;
    if (mr_tensor_init_copy(&tensor, MR_INT64, MR_SHAPE(BATCH), values, nullptr) != MR_OK) return (mr_output){0};
    mr_output output = mr_constant(w->graph, &tensor, "labels");
    mr_tensor_deinit(&tensor);
    return output;
}

static void add(work *w, mr_node *target, const char *format, int layer)
{
    task *t = &w->tasks[w->count++];
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    snprintf(t->name, sizeof t->name, format, layer);
    t->target = target;
}

static void add_network(work *w, mr_output images)
{
    mr_graph *g = w->graph;
    mr_output h = images;
    for (int i = 0; i < LAYERS; i++) {
        h = mr_layer_conv2d(g, h, .filters = filter_counts[i], .kernel_size = 3, .same = true, .use_bias = false,
                            .weight_decay = 1e-4f, .kernel_initializer = {.kind = MR_INIT_HE_NORMAL});
        h = mr_relu(g, mr_layer_batch_normalization(g, h, .training = true));
        h = mr_layer_max_pool(g, h, .pool_size = 2);
    }
    h = mr_layer_dropout(g, mr_layer_flatten(g, h), .rate = 0.3f, .training = true);
    (void)mr_loss_sparse_softmax_cross_entropy(g, labels(w), mr_layer_dense(g, h, .units = 6, .weight_decay = 1e-4f));
    add(w, mr_minimize(g, mr_adam(.learning_rate = 1e-3f), mr_loss_total(g), (mr_output){0}), "step", 0);
}

static void add_kernels(work *w, int layer, int side, int channels)
{
    mr_graph *g = w->graph;
    int filters = filter_counts[layer - 1];
    mr_output x = numbers(w, MR_SHAPE(BATCH, side, side, channels), true);
    mr_output y = numbers(w, MR_SHAPE(BATCH, side, side, filters), true);
    mr_output dy = numbers(w, MR_SHAPE(BATCH, side, side, filters), true);
    mr_output filter = numbers(w, MR_SHAPE(3, 3, channels, filters), true);
    mr_output ones = numbers(w, MR_SHAPE(filters), false);
    mr_output none = mr_fill(g, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 0.0f));
    mr_ints one = MR_INTS(1, 1, 1, 1), two = MR_INTS(1, 2, 2, 1);
    mr_output x_shape = mr_constant_ints(g, MR_INTS(BATCH, side, side, channels));
    mr_output filter_shape = mr_constant_ints(g, MR_INTS(3, 3, channels, filters));
    add(w, mr_conv2d(g, x, filter, .strides = one, .padding = MR_SAME).node, "conv%d", layer);
    add(w, mr_conv2d_backprop_input(g, x_shape, filter, dy, .strides = one, .padding = MR_SAME).node, "conv%d_input",
        layer);
    add(w, mr_conv2d_backprop_filter(g, x, filter_shape, dy, .strides = one, .padding = MR_SAME).node, "conv%d_filter",
        layer);
    add(w, mr_fused_batch_norm_v3(g, y, ones, ones, none, none).y.node, "norm%d", layer);
    add(w, mr_fused_batch_norm_grad_v3(g, dy, y, ones, ones, ones, none).x_backprop.node, "norm%d_grad", layer);
    add(w, mr_relu(g, y).node, "relu%d", layer);
    add(w, mr_relu_grad(g, dy, y).node, "relu%d_grad", layer);
    add(w, mr_max_pool(g, y, .ksize = two, .strides = two, .padding = MR_VALID).node, "pool%d", layer);
}

static mr_status prepare(work *w, int threads, mr_error *error)
{
    mr_graph *g = w->graph;
    mr_graph_set_seed(g, 1);
    add_network(w, numbers(w, MR_SHAPE(BATCH, SIZE, SIZE, 3), true));
    for (int layer = 1, side = SIZE, channels = 3; layer <= LAYERS; layer++, side /= 2) {
        add_kernels(w, layer, side, channels);
        channels = filter_counts[layer - 1];
    }
    w->variables_ready = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    MR_TRY(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = threads), &w->session, error));
    MR_TRY(mr_session_run(w->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w->variables_ready, 1, error));
    for (int i = 0; i < w->count; i++)
        MR_TRY(mr_session_prepare(w->session, nullptr, 0, (mr_outputs){0}, &w->tasks[i].target, 1, &w->tasks[i].step,
                                  error));
    return MR_OK;
}

static double busy_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static mr_status run(const task *t, int count, cost *c, mr_error *error)
{
    double start = bench_seconds(), busy = busy_seconds();
    for (int i = 0; i < count; i++) MR_TRY(mr_step_run(t->step, nullptr, nullptr, error));
    *c = (cost){(bench_seconds() - start) / count, (busy_seconds() - busy) / count};
    return MR_OK;
}

static mr_status measure(bench_report *report, const task *t, peer *p, mr_error *error)
{
    double ours[ROUNDS_MAX], peers[ROUNDS_MAX], our_busy[ROUNDS_MAX], peer_busy[ROUNDS_MAX];
    cost c;
    int rounds = bench_rounds(report, 9), count = 1;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    MR_TRY(run(t, 2, &c, error));
    while (count < 100 && (double)count * c.seconds < 0.05) count++;
    for (int r = 0; r < rounds; r++) {
        MR_TRY(run(t, count, &c, error));
        ours[r] = c.seconds;
        our_busy[r] = c.busy;
        c = peer_time(p, t->name, count);
        peers[r] = c.seconds;
        peer_busy[r] = c.busy;
    }
    bench_row(report, (bench_result){.task = t->name,
                                     .unit = "ms",
                                     .peer = "TensorFlow 2.15.1",
                                     .ours = bench_median(ours, rounds) * 1e3,
                                     .peer_value = bench_median(peers, rounds) * 1e3,
                                     .less_is_better = true,
                                     .goal = strcmp(t->name, "step") == 0 ? 1 : 0,
                                     .runs = rounds});
    bench_note(report, "%-14s processor time: %8.2f ms, TensorFlow %8.2f ms", t->name,
               bench_median(our_busy, rounds) * 1e3, bench_median(peer_busy, rounds) * 1e3);
    return MR_OK;
}

BENCH(step, "the training step of the demo's network, complete and by kernel")
{
    mr_error error = {0};
    static work w;
    peer p;
    int threads = bench_threads(report);
    w = (work){.graph = mr_graph_new()};
    if (!peer_start(&p, threads)) bench_note(report, "step: no Python with TensorFlow to compare with");
    mr_status status = prepare(&w, threads, &error);
    for (int i = 0; i < w.count && status == MR_OK; i++) status = measure(report, &w.tasks[i], &p, &error);
    if (status == MR_OK)
        bench_note(report, "step: batch %d of %d x %d images, %d threads on both sides", BATCH, SIZE, SIZE, threads);
    else
        bench_note(report, "step: %s", error.message);
    peer_stop(&p);
    mr_session_free(w.session);
    mr_graph_free(w.graph);
}
