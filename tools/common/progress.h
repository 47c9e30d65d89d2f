/* A progress line for long jobs: a bar with rate and remaining time on a terminal, occasional plain lines otherwise.
 * Everything goes to the standard error, so that results can be piped.
 *
 * ```c
 * progress progress;
 * progress_begin(&progress, "train", "images", 2700);
 * for (int i = 0; i < 2700; i++) progress_add(&progress, 1);
 * progress_end(&progress);
 * ``` */
#ifndef MR_TOOLS_PROGRESS_H
#define MR_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct progress {
    const char *task, *unit; /* borrowed */
    uint64_t total;          /* 0: not known */
    _Atomic uint64_t done;
    _Atomic int64_t next_ns; /* when to print the line again */
    int64_t begin_ns;
    int tenth;     /* last tenth that was printed as a plain line */
    bool is_shown; /* a line is on the terminal */
    bool is_terminal;
    char note[64];
    pthread_mutex_t mutex;
} progress;

void progress_begin(progress *progress, const char *task, const char *unit, uint64_t total);
/* Counts, and prints at most ten times a second. Safe from any thread. */
void progress_add(progress *progress, uint64_t count);
/* Sets a short note at the end of the line: "loss 0.31". Safe from any thread. */
[[gnu::format(printf, 2, 3)]] void progress_note(progress *progress, const char *format, ...);
/* Erases the line so that other text can be printed; the next add prints it again. Safe from any thread. */
void progress_hide(progress *progress);
/* Erases the line permanently. */
void progress_end(progress *progress);
/* Seconds since progress_begin. */
double progress_seconds(const progress *progress);

/* Formats "640 B", "83.1 KiB", "1.2 GiB" and "0.8 s", "1:05", "2:03:59" into text, which is returned. */
#define PROGRESS_TEXT_SIZE 32
char *progress_size_text(uint64_t size_bytes, char text[PROGRESS_TEXT_SIZE]);
char *progress_time_text(double seconds, char text[PROGRESS_TEXT_SIZE]);
/* Columns of the terminal at a descriptor; default_value if it is not a terminal. */
int progress_columns(int descriptor, int default_value);

#endif
