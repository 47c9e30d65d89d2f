/* The suite "run": graphs that TensorFlow exports, run by both sides in turn. TensorFlow 2.15.1 runs in its own process
 * (peer_run.py) with the same number of threads. Results are medians over the rounds. */
#include "tools/bench/bench.h"

#include <millrace/formats.h>
#include <millrace/millrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr int NAMES_MAX = 8, ROUNDS_MAX = 31, TASKS_MAX = 16;

typedef struct peer {
    pid_t process;
    FILE *to, *from;
    char tasks[TASKS_MAX][64];
    int task_count;
} peer;

static bool peer_start(peer *p, int threads, const char *directory)
{
    int ask[2], answer[2];
    char line[256];
    const char *python = bench_tensorflow_python();
    *p = (peer){0};
    signal(SIGPIPE, SIG_IGN);
    if (!python || pipe(ask) != 0 || pipe(answer) != 0) return false;
    p->process = fork();
    if (p->process == 0) {
        char count[16];
        snprintf(count, sizeof count, "%d", threads);
        dup2(ask[0], 0);
        dup2(answer[1], 1);
        close(ask[1]);
        close(answer[0]);
        execl(python, python, "tools/bench/peer_run.py", count, directory, (char *)nullptr);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    p->to = fdopen(ask[1], "w");
    p->from = fdopen(answer[0], "r");
    if (p->process <= 0 || !p->to || !p->from) return false;
    while (fgets(line, sizeof line, p->from)) {
        if (strcmp(line, "ready\n") == 0) return true;
        if (p->task_count < TASKS_MAX && sscanf(line, "task %63[^\n]", p->tasks[p->task_count]) == 1) p->task_count++;
    }
    return false;
}

static double peer_time(peer *p, const char *task, int count)
{
    char line[256];
    double seconds;
    if (!p->to || fprintf(p->to, "%s %d\n", task, count) < 0 || fflush(p->to) != 0) return 0;
    while (fgets(line, sizeof line, p->from))
        if (sscanf(line, "value %lf", &seconds) == 1) return seconds;
    return 0;
}

static void peer_stop(peer *p)
{
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->process > 0) waitpid(p->process, nullptr, 0);
}

/* A task as the peer has written it. */
typedef struct task {
    const char *directory, *name;
    mr_string graph_def; /* owned */
    double divide;
    char names[3 * NAMES_MAX][160];
    int name_count;
    const char *feeds[NAMES_MAX], *fetches[NAMES_MAX], *targets[NAMES_MAX], *first;
    int feed_count, fetch_count, target_count;
    mr_tensor values[NAMES_MAX];
    mr_graph *graph;
    mr_session *session;
    mr_step *step;
} task;

static const char *keep(task *t, const char *name)
{
    if (t->name_count == 3 * NAMES_MAX) return "";
    snprintf(t->names[t->name_count], sizeof t->names[0], "%s", name);
    return t->names[t->name_count++];
}

static mr_status read_description(task *t, mr_error *error)
{
    char path[512], line[512], name[160], file[320];
    snprintf(path, sizeof path, "%s/%s.txt", t->directory, t->name);
    FILE *text = fopen(path, "r");
    mr_status status = text ? MR_OK : MR_NOT_FOUND;
    while (status == MR_OK && fgets(line, sizeof line, text)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "divide %lf", &t->divide) == 1) continue;
        if (t->feed_count < NAMES_MAX && sscanf(line, "feed %159s %319[^\n]", name, file) == 2) {
            t->feeds[t->feed_count] = keep(t, name);
            status = mr_npy_load(file, &t->values[t->feed_count++], error);
        } else if (t->fetch_count < NAMES_MAX && sscanf(line, "fetch %159s", name) == 1) {
            t->fetches[t->fetch_count++] = keep(t, name);
        } else if (t->target_count < NAMES_MAX && sscanf(line, "target %159s", name) == 1) {
            t->targets[t->target_count++] = keep(t, name);
        } else if (sscanf(line, "first %159s", name) == 1) {
            t->first = keep(t, name);
        }
    }
    if (text) fclose(text);
    return status;
}

static mr_status read_graph(task *t, mr_error *error)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.pb", t->directory, t->name);
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size > 0 ? malloc((size_t)size) : nullptr;
    bool is_read = text && fseek(file, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)size, file) == (size_t)size;
    if (file) fclose(file);
    t->graph_def = (mr_string){text, is_read ? (size_t)size : 0};
    if (is_read) return MR_OK;
    snprintf(error->message, sizeof error->message, "%s cannot be read", path);
    return MR_NOT_FOUND;
}

/* Imports the graph, initializes it and runs the task once. */
static mr_status start(task *t, int threads, mr_error *error)
{
    mr_output feeds[NAMES_MAX], fetches[NAMES_MAX];
    mr_node *targets[NAMES_MAX], *first;
    mr_tensor results[NAMES_MAX] = {0};
    t->graph = mr_graph_new();
    mr_status status = mr_graph_import(t->graph, t->graph_def.data, t->graph_def.size_bytes, nullptr, error);
    mr_session_options options = {.size = sizeof options, .threads = threads};
    if (status == MR_OK) status = mr_session_new(t->graph, &options, &t->session, error);
    first = t->first ? mr_graph_find(t->graph, t->first) : nullptr;
    if (status == MR_OK && first)
        status = mr_session_run(t->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &first, 1, error);
    for (int i = 0; i < t->feed_count; i++) feeds[i] = mr_graph_find_output(t->graph, t->feeds[i]);
    for (int i = 0; i < t->fetch_count; i++) fetches[i] = mr_graph_find_output(t->graph, t->fetches[i]);
    for (int i = 0; i < t->target_count; i++) targets[i] = mr_graph_find(t->graph, t->targets[i]);
    if (status == MR_OK)
        status = mr_session_prepare(t->session, feeds, t->feed_count, (mr_outputs){fetches, t->fetch_count}, targets,
                                    t->target_count, &t->step, error);
    if (status == MR_OK) status = mr_step_run(t->step, t->values, results, error);
    for (int i = 0; i < t->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}

static void stop(task *t)
{
    mr_session_free(t->session);
    mr_graph_free(t->graph);
    t->session = nullptr;
    t->graph = nullptr;
    t->step = nullptr;
}

/* The average time of a run; count 0: of import and first run. */
static mr_status our_time(task *t, int count, int threads, double *seconds, mr_error *error)
{
    double begin = bench_seconds();
    if (count == 0) {
        mr_status status = start(t, threads, error);
        *seconds = bench_seconds() - begin;
        stop(t);
        return status;
    }
    if (!t->step) MR_TRY(start(t, threads, error));
    begin = bench_seconds();
    for (int i = 0; i < count; i++) {
        mr_tensor results[NAMES_MAX] = {0};
        MR_TRY(mr_step_run(t->step, t->values, results, error));
        for (int j = 0; j < t->fetch_count; j++) mr_tensor_deinit(&results[j]);
    }
    *seconds = (bench_seconds() - begin) / count / t->divide;
    return MR_OK;
}

static mr_status measure(bench_report *report, task *t, peer *p, double goal, mr_error *error)
{
    double ours[ROUNDS_MAX], peers[ROUNDS_MAX], seconds = 0;
    int threads = bench_threads(report), rounds = bench_rounds(report, 7), count = 1;
    bool is_import = strncmp(t->name, "import", 6) == 0;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    MR_TRY(our_time(t, is_import ? 0 : 1, threads, &seconds, error));
    while (!is_import && count < 20000 && (double)count * seconds * t->divide < 0.1) count *= 2;
    if (is_import) count = 0;
    (void)peer_time(p, t->name, count > 0 ? 1 : 0);
    for (int r = 0; r < rounds; r++) {
        MR_TRY(our_time(t, count, threads, &ours[r], error));
        peers[r] = peer_time(p, t->name, count);
    }
    bench_row(report, (bench_result){.task = t->name,
                                     .unit = "us",
                                     .peer = "TensorFlow 2.15.1",
                                     .ours = bench_median(ours, rounds) * 1e6,
                                     .peer_value = bench_median(peers, rounds) * 1e6,
                                     .less_is_better = true,
                                     .goal = goal,
                                     .runs = rounds});
    return MR_OK;
}

static double goal_of(const char *name)
{
    static const struct {
        const char *name;
        double goal;
    } goals[] = {{"chain of adds", 8},          {"one fed add", 5}, {"while_loop", 10}, {"mlp adam", 1.3},
                 {"import of 10,000 nodes", 5}, {"ptb lstm", 1.5},  {"word2vec", 2}};
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++)
        if (strcmp(goals[i].name, name) == 0) return goals[i].goal;
    return 0;
}

BENCH(run, "graphs that TensorFlow exports: small operators, loops, import, training steps")
{
    peer p;
    const char *directory = bench_directory("run");
    if (!peer_start(&p, bench_threads(report), directory))
        bench_note(report, "run: no Python with TensorFlow, which writes the graphs");
    for (int i = 0; i < p.task_count; i++) {
        mr_error error = {0};
        static task t;
        t = (task){.directory = directory, .name = p.tasks[i], .divide = 1};
        mr_status status = read_description(&t, &error);
        if (status == MR_OK) status = read_graph(&t, &error);
        if (status == MR_OK) status = measure(report, &t, &p, goal_of(t.name), &error);
        if (status != MR_OK) bench_note(report, "run: %s: %s", t.name, error.message);
        stop(&t);
        for (int j = 0; j < t.feed_count; j++) mr_tensor_deinit(&t.values[j]);
        free((char *)t.graph_def.data);
    }
    peer_stop(&p);
}
