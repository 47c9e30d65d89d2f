/* Child processes of the demo: the programs that a user would start by hand. */
#ifndef MR_TOOLS_DEMO_CHILD_H
#define MR_TOOLS_DEMO_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Starts MILLRACE_BIN/arguments[0] (or zig-out/bin/…) with null-terminated arguments, with output to the demo's own
 * output, and prints the command line. Returns the process, or -1 after printing the reason. */
pid_t child_start(const char *const *arguments);
/* Waits for the process to end; true if its exit status is 0. */
bool child_wait(pid_t process);
/* True while the process runs. When it has ended, *ok is whether its exit status was 0. */
bool child_running(pid_t process, bool *ok);
/* Starts and waits. */
bool child_run(const char *const *arguments);
/* Like child_run; prints the output and also stores its last text_size - 1 bytes in text. */
bool child_run_read(const char *const *arguments, char *text, size_t text_size);

#endif
