#include "demo/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program_path(const char *program)
{
    static char path[4096];
    const char *bin = getenv("MILLRACE_BIN");
    snprintf(path, sizeof path, "%s/%s", bin ? bin : "zig-out/bin", program);
    return path;
}

static void show_command(const char *const *arguments)
{
    printf("   $");
    for (; *arguments; arguments++) {
        bool plain = (*arguments)[strcspn(*arguments, " *?'\"$;|&")] == 0;
        printf(plain ? " %s" : " '%s'", *arguments);
    }
    printf("\n");
    fflush(stdout);
}

/* output  -1: the demo's own */
static pid_t start(const char *const *arguments, int output)
{
    const char *path = program_path(arguments[0]);
    show_command(arguments);
    pid_t process = fork();
    if (process < 0) fprintf(stderr, "demo: cannot start %s: %s\n", path, strerror(errno));
    if (process != 0) return process;
    if (output >= 0) dup2(output, STDOUT_FILENO);
    execv(path, (char *const *)arguments);
    fprintf(stderr, "demo: cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

pid_t child_start(const char *const *arguments)
{
    return start(arguments, -1);
}

bool child_wait(pid_t process)
{
    int status = 0;
    if (process < 0) return false;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool child_running(pid_t process, bool *ok)
{
    int status = 0;
    if (process > 0 && waitpid(process, &status, WNOHANG) == 0) return true;
    *ok = process > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return false;
}

bool child_run(const char *const *arguments)
{
    return child_wait(child_start(arguments));
}

bool child_run_read(const char *const *arguments, char *text, size_t text_size)
{
    int ends[2];
    if (pipe(ends) != 0) return false;
    pid_t process = start(arguments, ends[1]);
    close(ends[1]);
    size_t used = 0;
    text[0] = 0;
    char piece[4096];
    for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) != 0;) {
        if (got < 0) {
            if (errno == EINTR) continue;
            break;
        }
        fwrite(piece, 1, (size_t)got, stdout);
        fflush(stdout);
        if ((size_t)got >= text_size) got = (ssize_t)text_size - 1;
        size_t room = text_size - 1 - used;
        if ((size_t)got > room) { /* keep the last bytes */
            size_t drop = (size_t)got - room;
            memmove(text, text + drop, used - drop);
            used -= drop;
        }
        memcpy(text + used, piece, (size_t)got);
        used += (size_t)got;
        text[used] = 0;
    }
    close(ends[0]);
    return child_wait(process);
}
