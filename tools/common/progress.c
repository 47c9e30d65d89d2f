/* The progress line; see progress.h. One thread prints at a time; other threads only count. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static constexpr int64_t REDRAW_NS = 100'000'000;
static constexpr int64_t PLAIN_NS = 1'000'000'000;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

char *progress_size_text(uint64_t size_bytes, char text[PROGRESS_TEXT_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double size = (double)size_bytes;
    int unit = 0;
    for (; size >= 999.5 && unit < 5; unit++) size /= 1024;
    snprintf(text, PROGRESS_TEXT_SIZE, unit > 0 && size < 99.95 ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return text;
}

char *progress_time_text(double seconds, char text[PROGRESS_TEXT_SIZE])
{
    if (seconds < 9.95) {
        snprintf(text, PROGRESS_TEXT_SIZE, "%.1f s", seconds < 0 ? 0 : seconds);
        return text;
    }
    long total_seconds = seconds < 1e9 ? (long)(seconds + 0.5) : 1'000'000'000;
    if (total_seconds < 60)
        snprintf(text, PROGRESS_TEXT_SIZE, "%ld s", total_seconds);
    else if (total_seconds < 3600)
        snprintf(text, PROGRESS_TEXT_SIZE, "%ld:%02ld", total_seconds / 60, total_seconds % 60);
    else
        snprintf(text, PROGRESS_TEXT_SIZE, "%ld:%02ld:%02ld", total_seconds / 3600, total_seconds / 60 % 60,
                 total_seconds % 60);
    return text;
}

int progress_columns(int descriptor, int default_value)
{
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : default_value;
}

void progress_begin(progress *progress, const char *task, const char *unit, uint64_t total)
{
    memset(progress, 0, sizeof(*progress));
    progress->task = task;
    progress->unit = unit;
    progress->total = total;
    progress->begin_ns = now_ns();
    progress->is_terminal = isatty(STDERR_FILENO);
    atomic_init(&progress->next_ns, progress->begin_ns + (progress->is_terminal ? REDRAW_NS : PLAIN_NS));
    pthread_mutex_init(&progress->mutex, nullptr);
}

double progress_seconds(const progress *progress)
{
    return (double)(now_ns() - progress->begin_ns) * 1e-9;
}

/* "2013 of 2700 images  931/s  0.7 s left" */
static void describe(const progress *progress, uint64_t done, char *text, size_t size)
{
    char left[PROGRESS_TEXT_SIZE];
    double seconds = progress_seconds(progress), rate = seconds > 0 ? (double)done / seconds : 0;
    int used;
    if (progress->total > 0)
        used = snprintf(text, size, "%" PRIu64 " of %" PRIu64 " %s", done, progress->total, progress->unit);
    else
        used = snprintf(text, size, "%" PRIu64 " %s", done, progress->unit);
    if (rate > 0) used += snprintf(text + used, size - (size_t)used, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
    if (rate > 0 && progress->total >= done && progress->total > 0)
        used += snprintf(text + used, size - (size_t)used, "  %s left",
                         progress_time_text((double)(progress->total - done) / rate, left));
    if (progress->note[0]) (void)snprintf(text + used, size - (size_t)used, "  %s", progress->note);
}

static void draw(progress *progress, uint64_t done)
{
    static constexpr int BAR_MAX = 30;
    char text[256], bar[3 * BAR_MAX + 3] = "";
    describe(progress, done, text, sizeof(text));
    int columns = progress_columns(STDERR_FILENO, 80) - 1;
    int room = columns - (int)strlen(progress->task) - (int)strlen(text) - 4;
    if (progress->total > 0 && room >= 8) {
        int cells = room < BAR_MAX ? room : BAR_MAX;
        int full =
            (int)((double)cells * (double)(done < progress->total ? done : progress->total) / (double)progress->total);
        size_t used = 0;
        for (int i = 0; i < cells; i++)
            used += (size_t)snprintf(bar + used, sizeof(bar) - used, "%s", i < full ? "━" : "┄");
        (void)snprintf(bar + used, sizeof(bar) - used, "  ");
    }
    int text_room = columns - (int)strlen(progress->task) - 2;
    fprintf(stderr, "\r\033[K%s  %s%.*s", progress->task, bar, text_room > 0 ? text_room : 0, text);
    fflush(stderr);
    progress->is_shown = true;
}

static void print_plain(progress *progress, uint64_t done)
{
    char text[256];
    int tenth = progress->total > 0 ? (int)(10 * done / progress->total) : 0;
    bool is_next_tenth = progress->total > 0 ? tenth > progress->tenth && tenth < 10 : true;
    if (!is_next_tenth) return;
    progress->tenth = tenth;
    describe(progress, done, text, sizeof(text));
    fprintf(stderr, "%s: %s\n", progress->task, text);
}

void progress_add(progress *progress, uint64_t count)
{
    uint64_t done = atomic_fetch_add(&progress->done, count) + count;
    int64_t now = now_ns();
    if (now < atomic_load_explicit(&progress->next_ns, memory_order_relaxed)) return;
    if (pthread_mutex_trylock(&progress->mutex) != 0) return;
    /* Without a total, plain lines become less and less frequent. */
    int64_t wait = progress->is_terminal ? REDRAW_NS
                   : progress->total > 0 ? PLAIN_NS
                                         : PLAIN_NS + (now - progress->begin_ns) / 2;
    atomic_store(&progress->next_ns, now + wait);
    if (progress->is_terminal)
        draw(progress, done);
    else
        print_plain(progress, done);
    pthread_mutex_unlock(&progress->mutex);
}

void progress_note(progress *progress, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&progress->mutex);
    (void)vsnprintf(progress->note, sizeof(progress->note), format, args);
    pthread_mutex_unlock(&progress->mutex);
    va_end(args);
}

void progress_hide(progress *progress)
{
    pthread_mutex_lock(&progress->mutex);
    if (progress->is_shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->is_shown = false;
    pthread_mutex_unlock(&progress->mutex);
}

void progress_end(progress *progress)
{
    progress_hide(progress);
    pthread_mutex_destroy(&progress->mutex);
}
