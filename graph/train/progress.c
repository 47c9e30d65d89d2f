/* Progress of a run as text: "[=====>    ]  512/1000  loss 0.4312  1,250 images/s  0:12 left". */
#include "graph/train/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

constexpr double TERMINAL_SECONDS = 0.1; /* between updates of the line */
constexpr double LINE_SECONDS = 5;       /* between lines if the output is not a terminal */
constexpr double WINDOW_SECONDS = 2;
constexpr int BAR_WIDTH = 24, BAR_WIDTH_MIN = 4;
constexpr int COLUMNS = 60; /* maximum width on a terminal: a wrapped line cannot be overwritten */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void mr_progress_begin(mr_progress *progress, const mr_training_options *options, int64_t step)
{
    double time = now();
    *progress = (mr_progress){.options = options,
                              .first_step = step,
                              .step = step,
                              .start = time,
                              .shown = time,
                              .window_start = time,
                              .window_middle = time,
                              .window_start_step = step,
                              .window_middle_step = step};
}

void mr_progress_loss(mr_progress *progress, float loss)
{
    progress->has_loss = true;
    progress->loss = loss;
}

double mr_progress_rate(const mr_progress *progress)
{
    double seconds = now() - progress->window_start;
    return seconds > 1e-3 ? (double)(progress->step - progress->window_start_step) / seconds : 0;
}

typedef struct text {
    char *at;
    size_t room;
} text;

[[gnu::format(printf, 2, 3)]] static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(t->at, t->room, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length < t->room ? (size_t)length : t->room - 1;
    t->at += used;
    t->room -= used;
}

/* Puts the progress bar in front of `following` columns of text. */
static void put_bar(text *t, const mr_progress *p, int following)
{
    int64_t stop = p->options->last_step;
    int width = COLUMNS - 1 - following - (int)sizeof "[] ";
    if (width > BAR_WIDTH) width = BAR_WIDTH;
    if (!p->options->is_terminal || stop <= 0) {
        put(t, "step ");
        return;
    }
    if (width < BAR_WIDTH_MIN) return;
    int filled = (int)(p->step >= stop ? width : (double)p->step / (double)stop * width);
    put(t, "[");
    for (int i = 0; i < width; i++) put(t, "%c", i < filled ? '=' : i == filled ? '>' : ' ');
    put(t, "] ");
}

static void put_rate(text *t, const mr_progress *p, bool whole_run)
{
    double seconds = now() - p->start;
    double rate = whole_run && seconds > 0 ? (double)(p->step - p->first_step) / seconds : mr_progress_rate(p);
    if (rate <= 0) return;
    int64_t size = p->options->units_per_step;
    put(t, "  %.*f %s/s", rate * (double)size < 10 ? 1 : 0, rate * (double)size,
        p->options->unit != nullptr ? p->options->unit : "steps");
    if (whole_run || p->options->last_step <= p->step) return;
    double left = (double)(p->options->last_step - p->step) / rate;
    if (left < 360000) put(t, "  %d:%02d left", (int)left / 60, (int)left % 60);
}

static void show(mr_progress *p, bool last)
{
    if (p->options->progress == nullptr) return;
    char line[256], numbers[128];
    text t = {line, sizeof line - 1}; /* leaves room for the end of the line */
    text n = {numbers, sizeof numbers};
    put(&n, "%" PRId64, p->step);
    if (p->options->last_step > 0) put(&n, "/%" PRId64, p->options->last_step);
    if (p->has_loss) put(&n, "  loss %.4f", (double)p->loss);
    if (p->step > p->first_step)
        put_rate(&n, p, last);
    else if (last)
        put(&n, "  nothing left to do");
    if (p->options->is_terminal) put(&t, "\r");
    put_bar(&t, p, (int)strlen(numbers));
    put(&t, "%s", numbers);
    if (p->options->is_terminal) put(&t, "\033[K"); /* clears the rest of a longer earlier text */
    t.room++;
    if (last || !p->options->is_terminal) put(&t, "\n");
    p->options->progress(p->options->progress_context, line);
    p->shown = now();
    p->line_is_open = !last && p->options->is_terminal;
}

void mr_progress_step(mr_progress *progress, int64_t step)
{
    double time = now();
    progress->step = step;
    if (time - progress->window_middle > WINDOW_SECONDS) {
        progress->window_start = progress->window_middle;
        progress->window_start_step = progress->window_middle_step;
        progress->window_middle = time;
        progress->window_middle_step = step;
    }
    if (time - progress->shown >= (progress->options->is_terminal ? TERMINAL_SECONDS : LINE_SECONDS))
        show(progress, false);
}

void mr_progress_end(mr_progress *progress, int64_t step, bool done)
{
    if (progress->options == nullptr) return;
    progress->step = step;
    if (done || progress->line_is_open || step > progress->first_step) show(progress, true);
    progress->options = nullptr;
}
