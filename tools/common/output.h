/* Output of a program: checks before files are replaced, and a standard output that reports a failed write with the
 * reason of the first failure, however long ago it was.
 *
 * ```c
 * int main(int argc, char **argv)
 * {
 *     output_open();
 *     …printf…
 *     return output_close("tfrecord-cat", 0);
 * }
 * ```
 *
 * stdio only keeps a flag: at exit, errno belongs to another call. So stdout is replaced by a stream with our own write
 * function. Its descriptor is STDOUT_FILENO; fileno(stdout) is -1. */
#ifndef MR_TOOLS_OUTPUT_H
#define MR_TOOLS_OUTPUT_H

#include <millrace/status.h>

/* Call before anything is printed or written: also makes a write beyond the file size limit (ulimit -f) an error
 * instead of a signal. If memory is short, stdout is unchanged. */
void output_open(void);
/* errno of the first write that failed; 0: none. Later output is discarded. For loops that print a lot. */
int output_error(void);
/* Records that output was lost, for example for lack of memory, as if a write had failed. number: an errno */
void output_lose(int number);
/* Flushes the output. If a write failed, prints "PROGRAM: cannot write the output: No space left on device" to the
 * standard error and returns 1. If the reader has closed the pipe, as head does, no message is printed, but the exit
 * code is 1. Otherwise returns exit_code. */
int output_close(const char *program, int exit_code);
/* Whether a file may be written to a path: nothing exists there, or a regular file and is_forced is set. Devices,
 * pipes, sockets and directories are never replaced.
 * errors  MR_ALREADY_EXISTS; the message names what exists */
mr_status output_check(const char *path, bool is_forced, mr_error *error);
/* Prints the output of --version: "tfrecord-cat (millrace) 0.1.0" and a newline. */
void output_version(const char *program);

#endif
