/* The share of the machine's limits that a task reaches, and the operators that its time is spent on. The limits are
 * measured: fused multiply-adds of floats in registers, and copies of memory. Float operations are those of the
 * operators' definitions, so an algorithm that needs fewer can exceed the peak. */
#include "kernels/vector.h"
#include "tools/bench/run.h"

#include <math.h>
#include <millrace/profiler.h>
#include <stdlib.h>
#include <string.h>

constexpr int CHAINS = 12; /* of additions that wait for each other: two units with a latency of four, and some more */
constexpr int OPERATORS_MAX = 64, SHOWN = 6;

/* Returns the number of float operations. */
MR_INLINE double multiply_add_body(volatile float *result, const bool fused)
{
    constexpr int steps = 400000;
    mr_vector sums[CHAINS], factor = mr_vector_of(*result), sum = {};
    MR_UNROLL
    for (int i = 0; i < CHAINS; i++) sums[i] = mr_vector_of((float)i);
    for (int step = 0; step < steps; step++) {
        MR_UNROLL
        for (int i = 0; i < CHAINS; i++) sums[i] = mr_vector_multiply_add(sums[i], factor, factor, fused);
    }
    for (int i = 0; i < CHAINS; i++) sum += sums[i];
    *result = mr_vector_sum(sum);
    return 2.0 * MR_LANES * CHAINS * steps;
}

MR_TARGET_AVX512 static double multiply_add_avx512(volatile float *result)
{
    return multiply_add_body(result, true);
}

MR_TARGET_AVX2 static double multiply_add_avx2(volatile float *result)
{
    return multiply_add_body(result, true);
}

static double multiply_add_plain(volatile float *result)
{
    return multiply_add_body(result, false);
}

/* Stores the float operations a second of one thread, the best of some rounds. */
static void *multiply_thread(void *context)
{
    double *rate = context;
    volatile float number = 0.999f; /* the sums are computed between the two times */
    for (int round = 0; round < 20; round++) {
        const double begin = bench_seconds();
        const double operations = mr_cpu() == MR_CPU_AVX512 ? multiply_add_avx512(&number)
                                  : mr_cpu() == MR_CPU_AVX2 ? multiply_add_avx2(&number)
                                                            : multiply_add_plain(&number);
        const double now = operations / (bench_seconds() - begin);
        if (now > *rate) *rate = now;
        number = number > 0 ? 0.999f : 0.998f;
    }
    return nullptr;
}

/* Stores the bytes that one thread reads and writes in a second. */
static void *copy_thread(void *context)
{
    constexpr size_t size_bytes = 64 << 20;
    double *rate = context;
    char *from = malloc(size_bytes), *to = malloc(size_bytes);
    if (from != nullptr && to != nullptr) memset(from, 1, size_bytes);
    for (int round = 0; round < 12 && from != nullptr && to != nullptr; round++) {
        const double begin = bench_seconds();
        memcpy(to, from, size_bytes);
        const double now = 2 * size_bytes / (bench_seconds() - begin);
        if (now > *rate) *rate = now;
        from[0] = to[1];
    }
    free(from);
    free(to);
    return nullptr;
}

/* The sum of what the threads reach at the same time. */
static double measure_threads(int threads, void *(*measure)(void *rate))
{
    constexpr int threads_max = 256;
    pthread_t started[threads_max];
    double rates[threads_max] = {0}, sum = 0;
    int count = 0;
    while (count < threads && count < threads_max &&
           pthread_create(&started[count], nullptr, measure, &rates[count]) == 0)
        count++;
    for (int i = 0; i < count; i++) pthread_join(started[i], nullptr);
    for (int i = 0; i < count; i++) sum += rates[i];
    return sum;
}

/* ---- The nodes that a task needs ---- */

/* Which nodes of the graph compute values that are used: plans leave out those that others only wait for, such as
 * gradients of what is fed. */
typedef struct needs {
    const mr_graph *graph;
    bool *nodes;
} needs;

static int32_t index_of(const mr_graph *graph, const mr_node *node)
{
    int32_t i = 0;
    while (mr_graph_node(graph, i) != node) i++;
    return i;
}

static void need(const needs *n, const mr_node *node)
{
    bool *is_needed = &n->nodes[index_of(n->graph, node)];
    if (*is_needed) return;
    *is_needed = true;
    for (int32_t i = 0; i < mr_node_input_count(node); i++) need(n, mr_node_input(node, i).node);
}

static void need_target(const needs *n, const mr_node *node)
{
    need(n, node);
    for (int32_t i = 0; strcmp(mr_node_op(node), "NoOp") == 0 && i < mr_node_control_count(node); i++)
        need_target(n, mr_node_control(node, i));
}

static void need_task(const needs *n, const task *t)
{
    for (int i = 0; i < t->target_count; i++) need_target(n, mr_graph_find(t->graph, t->targets[i]));
    for (int i = 0; i < t->fetch_count; i++) need(n, mr_graph_find_output(t->graph, t->fetches[i]).node);
}

/* ---- Figures ---- */

typedef struct figures {
    struct {
        const char *name;
        double micros;
    } operators[OPERATORS_MAX];
    int count;
    double micros, float_ops;
} figures;

static void add_entry(figures *f, const needs *n, const mr_profile_entry *entry)
{
    for (int i = 0; i < entry->node_count; i++) {
        const mr_node *node = mr_graph_find(n->graph, entry->nodes[i]->name);
        if (node != nullptr && n->nodes[index_of(n->graph, node)])
            f->float_ops += (double)entry->nodes[i]->own.float_ops;
    }
    f->micros += (double)entry->own.micros;
    if (f->count < OPERATORS_MAX && *entry->name != '_') {
        f->operators[f->count].name = entry->name;
        f->operators[f->count++].micros = (double)entry->own.micros;
    }
    for (int i = 0; i < entry->child_count; i++) add_entry(f, n, entry->children[i]);
}

static void report_figures(bench_report *report, const char *name, const figures *f, double seconds, double peak)
{
    char text[256] = "";
    for (int i = 0; i < f->count && i < SHOWN; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %.0f %%", i ? ", " : "", f->operators[i].name,
                 100 * f->operators[i].micros / f->micros);
    }
    bench_note(report, "%s: %.2f GFLOP a step, %.0f GFLOP/s, %.2f of the peak; time: %s", name, f->float_ops / 1e9,
               f->float_ops / seconds / 1e9, f->float_ops / seconds / peak, text);
}

static mr_status trace(task *t, mr_tensor *metadata, mr_error *error)
{
    mr_feed feeds[RUN_NAMES_MAX];
    mr_node *targets[RUN_NAMES_MAX];
    const mr_run_options options = {.size = sizeof options, .metadata = metadata, .trace = true};
    for (int i = 0; i < t->feed_count; i++)
        feeds[i] = (mr_feed){mr_graph_find_output(t->graph, t->feeds[i]), t->values[i]};
    for (int i = 0; i < t->target_count; i++) targets[i] = mr_graph_find(t->graph, t->targets[i]);
    return mr_session_run_with(t->session, &options, (mr_feeds){feeds, t->feed_count}, (mr_outputs){0}, nullptr,
                               targets, t->target_count, error);
}

mr_status bench_run_share(bench_report *report, const char *name, task *t, double seconds, mr_error *error)
{
    static double peak = 0;
    /* The largest so far: a machine that others use can be slow for a while. */
    peak = fmax(peak, measure_threads(bench_threads(report), multiply_thread));
    mr_tensor metadata = {0};
    mr_profile *profile = nullptr;
    mr_profile_view *view = nullptr;
    const mr_profile_options options = {.size = sizeof options,
                                        .max_depth = 10000,
                                        .order_by = MR_PROFILE_MICROS,
                                        .select = MR_PROFILE_MICROS | MR_PROFILE_FLOAT_OPS};
    mr_status status = trace(t, &metadata, error);
    if (status == MR_OK) status = mr_profile_new(t->graph, &profile, error);
    if (status == MR_OK) status = mr_profile_add_run(profile, 0, mr_tensor_strings(&metadata)[0], error);
    if (status == MR_OK) status = mr_profile_view_new(profile, MR_PROFILE_OP, &options, &view, error);
    const needs n = {t->graph, calloc((size_t)mr_graph_node_count(t->graph), sizeof(bool))};
    if (status == MR_OK && n.nodes != nullptr) {
        figures f = {0};
        need_task(&n, t);
        add_entry(&f, &n, mr_profile_view_root(view));
        report_figures(report, name, &f, seconds, peak);
    }
    free(n.nodes);
    mr_profile_view_free(view);
    mr_profile_free(profile);
    mr_tensor_deinit(&metadata);
    return status;
}

void bench_run_bandwidth(bench_report *report, const char *name, const task *t, double seconds)
{
    static double limit = 0;
    if (limit == 0) limit = measure_threads(bench_threads(report), copy_thread);
    bench_note(report, "%s: %.1f GB/s, %.2f of a copy in memory", name, t->bytes / seconds / 1e9,
               t->bytes / seconds / limit);
}
