/* Child processes of the demo: the programs that a user would start by hand, started and watched. */
#ifndef MR_TOOLS_DEMO_CHILD_H
#define MR_TOOLS_DEMO_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Starts MILLRACE_BIN/arguments[0] (or zig-out/bin/…) with the null-terminated arguments, its output our own, and shows
 * the command line. Returns the process, or -1 after saying why. */
pid_t child_start(const char *const *arguments);
/* Waits for the end; true when the exit status is 0. */
bool child_wait(pid_t process);
/* True while it runs; when it has ended, *ok says whether its exit status was 0. */
bool child_running(pid_t process, bool *ok);
/* Starts and waits. */
bool child_run(const char *const *arguments);
/* Runs it, shows its output, and keeps the end of it in text. */
bool child_run_read(const char *const *arguments, char *text, size_t text_size);

#endif
