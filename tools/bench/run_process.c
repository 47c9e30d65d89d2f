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
    double growth = status_mb("VmHWM:") - before;
    if (status == MR_OK)
        bench_row(report, (bench_result){.task = bench_part(report)[0] ? bench_part(report) : name,
                                         .unit = "MB",
                                         .peer = "",
                                         .ours = growth,
                                         .runs = 1});
    else
        bench_note(report, "memory: %s; \"%s\" writes the graph", error.message, suite);
    (void)task_stop(&t, &error);
    task_deinit(&t);
}

void bench_run_memory(bench_report *report, const peer *p, const char *suite, const char *name, const char *task,
                      double goal)
{
    double ours[RUN_ROUNDS_MAX], peers[RUN_ROUNDS_MAX];
    int rounds = bench_rounds(report, 3);
    char our_command[512], peer_command[1024];
    if (rounds > RUN_ROUNDS_MAX) rounds = RUN_ROUNDS_MAX;
    snprintf(our_command, sizeof our_command, "/proc/%d/exe 'memory:%s/%s' --json --threads %d", (int)getpid(), suite,
             task, bench_threads(report));
    snprintf(peer_command, sizeof peer_command, "%s tools/bench/peer_process.py memory %s '%s' %d",
             bench_tensorflow_python(), bench_directory(suite), task, bench_threads(report));
    for (int i = 0; i < rounds; i++) {
        bench_command_numbers(our_command, (const char *const[]){"\"ours\": "}, &ours[i], 1);
        peers[i] = bench_command(peer_command);
    }
    bench_row(report, (bench_result){.task = name,
                                     .unit = "MB",
                                     .peer = p->name,
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(peers, rounds),
                                     .less_is_better = true,
                                     .goal = goal,
                                     .runs = rounds});
}
