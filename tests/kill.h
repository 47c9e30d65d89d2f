/* Kills a process after a given number of file changes in a directory, rather than after a given time. The kill
 * therefore happens in the middle of the work on slow and fast machines, and no test sleeps.
 *
 *     int watch = kill_watch(directory);
 *     pid_t child = fork();
 *     …
 *     int all = kill_at_change(child, watch, -1, &status); */
#ifndef MR_TESTS_KILL_H
#define MR_TESTS_KILL_H

#include "tests/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts to watch a directory; creates it if it does not exist. kill_at_change closes the watch. */
static inline int kill_watch(const char *directory)
{
    CHECK(mkdir(directory, 0777) == 0 || errno == EEXIST);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    CHECK(watch >= 0);
    CHECK(inotify_add_watch(watch, directory, IN_MODIFY | IN_CREATE | IN_CLOSE_WRITE | IN_MOVE | IN_DELETE) >= 0);
    return watch;
}

/* Reads the pending changes and returns their number: files created, written, closed, renamed and removed. */
static inline int kill_read_changes(int watch)
{
    alignas(struct inotify_event) char events[4096];
    int count = 0;
    for (ssize_t size; (size = read(watch, events, sizeof events)) > 0;)
        for (ssize_t at = 0; at < size; count++)
            at += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(void *)(events + at))->len);
    return count;
}

/* Waits for a child, which is killed at change `at` (0: immediately; -1: never). Returns the number of changes.
 * status  as returned by waitpid */
static inline int kill_at_change(pid_t child, int watch, int at, int *status)
{
    CHECK(child > 0);
    int process = (int)syscall(SYS_pidfd_open, child, 0), count = 0;
    CHECK(process >= 0);
    struct pollfd ready[2] = {{.fd = watch, .events = POLLIN}, {.fd = process, .events = POLLIN}};
    while (at < 0 || count < at) {
        CHECK(poll(ready, 2, -1) > 0);
        count += kill_read_changes(watch);
        if (ready[1].revents) break;
    }
    if (at >= 0) (void)kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, status, 0), child);
    close(process);
    close(watch);
    return count;
}

#endif
