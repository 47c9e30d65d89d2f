/* What a program writes: files that it may replace, and a standard output that reports a failed write: with the reason of the first write that failed, however long ago it was.
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
 * stdio keeps only a flag: by the time of exit, errno belongs to another call. So stdout becomes a stream whose writes are
 * ours. Its descriptor is STDOUT_FILENO; fileno(stdout) is -1. */
#ifndef MR_TOOLS_OUTPUT_H
#define MR_TOOLS_OUTPUT_H

#include <millrace/status.h>

/* To be called before anything is printed. If memory is short, stdout stays as it is. */
void output_open(void);
/* errno of the first write that failed; 0: none. What is printed after it is lost. For loops that print a lot. */
int output_error(void);
/* Notes that something could not be printed, for want of memory say: as if a write had failed. number: an errno */
void output_lose(int number);
/* Writes what is still buffered. If a write failed, prints "PROGRAM: cannot write the output: No space left on device" to
 * the standard error and returns 1. A reader that has closed its end, as head does, is no error worth a message, but the exit
 * code is 1. Otherwise returns exit_code. */
int output_close(const char *program, int exit_code);
/* Whether a file may be written under a path: nothing is there, or a regular file is and --force was given. Devices, pipes,
 * sockets and directories are never replaced.
 * errors  MR_ALREADY_EXISTS with a sentence that names what is there */
mr_status output_check(const char *path, bool is_forced, mr_error *error);
/* What --version prints: "tfrecord-cat (millrace) 0.1.0" and a line break. */
void output_version(const char *program);

#endif
