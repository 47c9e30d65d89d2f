#include "tools/bench/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a Python script and reads its tasks. arguments: ending with null */
static bool start_script(peer *p, const char *library, const char *const *arguments)
{
    int ask[2], answer[2];
    char line[256], version[21];
    *p = (peer){0};
    signal(SIGPIPE, SIG_IGN);
    if (!arguments[0] || pipe2(ask, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) return false;
    p->process = fork();
    if (p->process == 0) {
        dup2(ask[0], 0);
        dup2(answer[1], 1);
        setenv("PYTHONPATH", "python", 1);
        execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    p->to = fdopen(ask[1], "w");
    p->from = fdopen(answer[0], "r");
    if (p->process <= 0 || !p->to || !p->from) return false;
    while (fgets(line, sizeof line, p->from)) {
        if (strncmp(line, "task ", 5) == 0) {
            char(*tasks)[64] = realloc(p->tasks, (p->task_count + 1) * sizeof *tasks);
            if (!tasks) return false;
            p->tasks = tasks;
            snprintf(tasks[p->task_count++], sizeof *tasks, "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
        }
        if (sscanf(line, "ready %20s", version) == 1) {
            snprintf(p->name, sizeof p->name, "%s %s", library, version);
            return true;
        }
    }
    return false;
}

bool peer_start(peer *p, int threads, const char *directory, const char *suite, const char *part)
{
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    return start_script(p, "TensorFlow",
                        (const char *const[]){bench_tensorflow_python(), "tools/bench/peer_run.py", count, directory,
                                              suite, part, nullptr});
}

bool peer_start_torch(peer *p, int threads, const char *part)
{
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    return start_script(p, "PyTorch",
                        (const char *const[]){bench_peers_path("venvs/torch/bin/python"),
                                              "tools/bench/peer_torch_networks.py", count, part, nullptr});
}

double peer_time(peer *p, const char *task, int count)
{
    char line[256];
    double seconds;
    p->library[0] = '\0';
    if (!p->to || fprintf(p->to, "%s %d\n", task, count) < 0 || fflush(p->to) != 0) return 0;
    while (fgets(line, sizeof line, p->from))
        if (sscanf(line, "value %lf %23s", &seconds, p->library) >= 1) return seconds;
    return 0;
}

bool peer_stop(peer *p)
{
    int status = -1;
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    free(p->tasks);
    return p->process > 0 && waitpid(p->process, &status, 0) == p->process && status == 0;
}
