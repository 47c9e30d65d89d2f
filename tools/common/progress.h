/* A line that says how far a long job is: a bar with rate and time left on a terminal, now and then a plain line
 * otherwise. Everything goes to the standard error, so that results can be piped.
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
    _Atomic int64_t next_ns; /* when the line is due again */
    int64_t begin_ns;
    int tenth;     /* of the plain lines, the last printed */
    bool is_shown; /* a line stands on the terminal */
    bool is_terminal;
    char note[64];
    pthread_mutex_t mutex;
} progress;

void progress_begin(progress *progress, const char *task, const char *unit, uint64_t total);
/* Counts and shows, at most ten times a second. Safe from any thread. */
void progress_add(progress *progress, uint64_t count);
/* A few words at the end of the line: "loss 0.31". Safe from any thread. */
[[gnu::format(printf, 2, 3)]] void progress_note(progress *progress, const char *format, ...);
/* Takes the line away, so that other text can be printed; it comes back with the next add. Safe from any thread. */
void progress_hide(progress *progress);
/* Takes the line away for good. */
void progress_end(progress *progress);
/* Since begin. */
double progress_seconds(const progress *progress);

/* "640 B", "83.1 KiB", "1.2 GiB" and "0.8 s", "1:05", "2:03:59" for people, into text, which is returned. */
#define PROGRESS_TEXT_SIZE 32
char *progress_size_text(uint64_t size_bytes, char text[PROGRESS_TEXT_SIZE]);
char *progress_time_text(double seconds, char text[PROGRESS_TEXT_SIZE]);
/* Columns of the terminal at a descriptor; default_value when it is none. */
int progress_columns(int descriptor, int default_value);

#endif
