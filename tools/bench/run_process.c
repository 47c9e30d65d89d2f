#include "tools/bench/run.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr double START_LIMIT_MS = 20;

/* ---- Process start ---- */

/* The time of a process whose output goes to /dev/null; 0: it failed. */
static double process_seconds(const char *const *arguments)
{
    pid_t process;
    int status = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    double begin = bench_seconds();
    bool is_started = posix_spawnp(&process, arguments[0], &actions, nullptr, (char *const *)arguments, environ) == 0;
    if (is_started) waitpid(process, &status, 0);
    double end = bench_seconds();
    posix_spawn_file_actions_destroy(&actions);
    return is_started && status == 0 ? end - begin : 0;
}

void bench_run_start(bench_report *report, const peer *p, const char *directory, const char *name)
{
    const char *programs = getenv("MILLRACE_BIN");
    char program[512], graph[512], feed[512];
    double ours[RUN_ROUNDS_MAX];
    int rounds = bench_rounds(report, 21);
    if (rounds > RUN_ROUNDS_MAX) rounds = RUN_ROUNDS_MAX;
    snprintf(program, sizeof program, "%s/graph-run", programs ? programs : "zig-out/bin");
    snprintf(graph, sizeof graph, "%s/%s.pb", directory, name);
    snprintf(feed, sizeof feed, "x:0=@%s/%s_0.npy", directory, name);
    for (int i = 0; i < rounds; i++) {
        ours[i] = process_seconds((const char *[]){program, graph, "--feed", feed, "--fetch", "y:0", nullptr});
        if (ours[i] == 0) {
            bench_note(report, "run: %s: %s failed", name, program);
            return;
        }
    }
    bench_row(report, (bench_result){.task = name,
                                     .unit = "ms",
                                     .peer = p->name,
                                     .ours = bench_median(ours, rounds) * 1e3,
                                     .peer_value = 1e3 * process_seconds((const char *[]){
                                                             bench_tensorflow_python(), "tools/bench/peer_process.py",
                                                             "start", directory, name, nullptr}),
                                     .less_is_better = true,
                                     .limit = START_LIMIT_MS,
                                     .runs = rounds});
}

/* ---- Memory ---- */

/* A value of /proc/self/status such as "VmHWM:", in MB. */
static double status_mb(const char *key)
{
    char line[256];
    double kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kb = strtod(line + strlen(key), nullptr);
    if (file) fclose(file);
    return kb / 1024;
}

static const char *const memory_units[] = {"MB", "MB in all"}; /* growth by the task, and the process */

/* Ours alone, of the task SUITE/TASK. Runs in a process of its own, which bench_run_memory starts. */
BENCH(memory, "memory of a training step, part of the suites run and networks")
{
    char suite[64] = "run", name[160] = "mlp adam";
    mr_error error = {0};
    task t;
    (void)sscanf(bench_part(report), "%63[^/]/%159[^\n]", suite, name);
    mr_status status = task_init(&t, bench_directory(suite), name, &error);
    double before = status_mb("VmRSS:");
    if (status == MR_OK) status = task_start(&t, bench_threads(report), &error);
    for (int i = 1; i < 10 && status == MR_OK; i++) status = task_run(&t, &error);
    const double most = status_mb("VmHWM:"), values[] = {most - before, most};
    for (int i = 0; i < 2 && status == MR_OK; i++)
        bench_row(report, (bench_result){.task = bench_part(report)[0] ? bench_part(report) : name,
                                         .unit = memory_units[i],
                                         .peer = "",
                                         .ours = values[i],
                                         .runs = 1});
    if (status != MR_OK) bench_note(report, "memory: %s; \"%s\" writes the graph", error.message, suite);
    (void)task_stop(&t, &error);
    task_deinit(&t);
}

/* The values of the two rows of the suite "memory" that a process prints. */
static void our_memory(const char *command, double values[2])
{
    char keys[2][64];
    for (int i = 0; i < 2; i++) snprintf(keys[i], sizeof keys[i], "\"unit\": \"%s\", \"ours\": ", memory_units[i]);
    bench_command_numbers(command, (const char *const[]){keys[0], keys[1]}, values, 2);
}

void bench_run_memory(bench_report *report, const peer *p, const char *suite, const char *name, const char *task,
                      double goal)
{
    double ours[2][RUN_ROUNDS_MAX], peers[2][RUN_ROUNDS_MAX];
    int rounds = bench_rounds(report, 3);
    char our_command[512], peer_command[1024], row[128];
    if (rounds > RUN_ROUNDS_MAX) rounds = RUN_ROUNDS_MAX;
    snprintf(our_command, sizeof our_command, "/proc/%d/exe 'memory:%s/%s' --json --threads %d", (int)getpid(), suite,
             task, bench_threads(report));
    snprintf(peer_command, sizeof peer_command, "%s tools/bench/peer_process.py memory %s '%s' %d",
             bench_tensorflow_python(), bench_directory(suite), task, bench_threads(report));
    for (int i = 0; i < rounds; i++) {
        double values[2];
        our_memory(our_command, values);
        for (int k = 0; k < 2; k++) ours[k][i] = values[k];
        bench_command_numbers(peer_command, (const char *const[]){"value ", "process "}, values, 2);
        for (int k = 0; k < 2; k++) peers[k][i] = values[k];
    }
    for (int k = 0; k < 2; k++) {
        snprintf(row, sizeof row, k == 0 ? "%s" : "%s, process", name);
        bench_row(report, (bench_result){.task = row,
                                         .unit = "MB",
                                         .peer = p->name,
                                         .ours = bench_median(ours[k], rounds),
                                         .peer_value = bench_median(peers[k], rounds),
                                         .less_is_better = true,
                                         .goal = goal,
                                         .runs = rounds});
    }
}
