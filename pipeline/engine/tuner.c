/* The controller of the tuner: measures windows, chooses trials, and keeps or undoes them (tuner.h). */
#include "pipeline/engine/tuner.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Windows are long enough to distinguish rates that differ by a few percent. */
constexpr uint64_t WINDOW_NS = 100000000, SKIP_NS = 30000000, PAUSE_NS = 500000000;
constexpr uint64_t WINDOW_ELEMENTS = 8;
constexpr int32_t WINDOWS = 2, PATIENCE = 3, PATIENCE_MAX = 48, SETTLED_FACTOR = 5;
/* Below this share of waiting, the consumer has nothing to gain. */
constexpr double STARVED = 0.05;
/* Share of late reads from which more are requested ahead. */
constexpr double WAITED = 0.05;
/* FASTER: more threads or slots must gain this much. AS_FAST: fewer may lose no more than measurement noise. OFF: a
 * rate that differs by this share restarts the search. */
constexpr double FASTER = 1.03, AS_FAST = 0.98, OFF = 0.2;
/* A depth above DEPTH_PLENTY is tried with DEPTH_ENOUGH. */
constexpr int32_t DEPTH_PLENTY = 8, DEPTH_ENOUGH = 4;

void mr_tuner_init(mr_tuner *tuner, int32_t threads_max, int32_t processors, size_t budget_bytes)
{
    assert(threads_max >= 1 && processors >= 1);
    *tuner = (mr_tuner){.threads_max = threads_max,
                        .processors = processors,
                        .budget_bytes = budget_bytes,
                        .is_skipping = true,
                        .patience = PATIENCE};
}

void mr_tuner_skip(mr_tuner *tuner)
{
    tuner->is_skipping = true;
    tuner->until_ns = 0;
    tuner->until = 0;
}

bool mr_tuner_is_due(mr_tuner *tuner, uint64_t now_ns, uint64_t elements)
{
    uint64_t gap_ns = tuner->tick_ns == 0 ? 0 : now_ns - tuner->tick_ns;
    bool is_pause = gap_ns > PAUSE_NS && gap_ns / 8 > tuner->gap_ns;
    tuner->tick_ns = now_ns;
    tuner->gap_ns = (3 * tuner->gap_ns + gap_ns) / 4;
    /* The consumer did something else meanwhile, and all slots are full now. */
    if (is_pause) mr_tuner_skip(tuner);
    return now_ns >= tuner->until_ns && elements >= tuner->until;
}

/* ---- Windows ---- */

static void skip(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *top)
{
    tuner->is_skipping = true;
    tuner->windows = 0;
    tuner->rate = 0;
    tuner->until_ns = now_ns + SKIP_NS;
    tuner->until = elements + (uint64_t)(top->ready + 1) * (uint64_t)top->slot_rows;
}

static void begin_window(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *gauges,
                         int32_t count)
{
    uint64_t rows = 4 * (uint64_t)gauges[count - 1].slot_rows;
    uint64_t factor = tuner->phase == MR_TUNER_SETTLED ? SETTLED_FACTOR : 1;
    tuner->is_skipping = false;
    tuner->start_ns = now_ns;
    tuner->start = elements;
    tuner->until_ns = now_ns + WINDOW_NS * factor;
    tuner->until = elements + (rows > WINDOW_ELEMENTS ? rows : WINDOW_ELEMENTS);
    tuner->produced = gauges[count - 1].produced;
    for (int32_t i = 0; i < count; i++) {
        tuner->work_ns[i] = gauges[i].work_ns;
        tuner->starved_ns[i] = gauges[i].starved_ns;
        tuner->rows_requested[i] = gauges[i].rows_requested;
        tuner->rows_waited[i] = gauges[i].rows_waited;
    }
}

static mr_tuner_window end_window(const mr_tuner *tuner, uint64_t now_ns, uint64_t elements,
                                  const mr_engine_gauge *gauges, int32_t count)
{
    assert(now_ns >= tuner->start_ns && elements >= tuner->start && count >= 1);
    double ns = (double)(now_ns - tuner->start_ns);
    mr_tuner_window window = {.seconds = ns * 1e-9, .rate = (double)(elements - tuner->start) * 1e9 / ns};
    /* Slots that are ready are delivered in bursts. The true rate is no higher than that of production. */
    double produced = gauges[count - 1].produced - tuner->produced;
    if (gauges[count - 1].produced > 0 && produced * 1e9 / ns < window.rate) window.rate = produced * 1e9 / ns;
    for (int32_t i = 0; i < count; i++) {
        window.busy[i] = (double)(gauges[i].work_ns - tuner->work_ns[i]) / ns;
        window.starved[i] = (double)(gauges[i].starved_ns - tuner->starved_ns[i]) / ns;
        /* A wait that began before the window is counted completely when it ends. */
        if (window.starved[i] > 1) window.starved[i] = 1;
        uint64_t requested = gauges[i].rows_requested - tuner->rows_requested[i];
        double waited = (double)(gauges[i].rows_waited - tuner->rows_waited[i]);
        window.waited[i] = requested == 0 ? 0 : fmin(waited / (double)requested, 1);
    }
    return window;
}

/* ---- What was tried ---- */

static bool was_tried(const mr_tuner *tuner, mr_tuner_setting s)
{
    for (int32_t i = 0; i < tuner->tried_count; i++) {
        const mr_tuner_setting *t = &tuner->tried[i];
        if (t->engine == s.engine && t->threads == s.threads && t->depth == s.depth && t->reads == s.reads) return true;
    }
    return tuner->tried_count == MR_TUNER_TRIED_MAX;
}

static void note_tried(mr_tuner *tuner, mr_tuner_setting setting)
{
    assert(tuner->tried_count >= 0 && tuner->tried_count <= MR_TUNER_TRIED_MAX);
    if (tuner->tried_count < MR_TUNER_TRIED_MAX) tuner->tried[tuner->tried_count++] = setting;
}

/* If the rate with the previous setting has changed since before the trial, the machine has changed, and the trial says
 * nothing: forgets it. */
static void doubt(mr_tuner *tuner)
{
    constexpr double CHANGED = 0.15;
    constexpr int32_t DOUBTS_MAX = 8;
    tuner->is_doubted = false;
    if (fabs(tuner->rate - tuner->base) < CHANGED * tuner->base || tuner->doubts == DOUBTS_MAX) return;
    tuner->doubts++;
    tuner->tried_count--;
    if (tuner->rate < tuner->best) tuner->best = tuner->rate;
}

/* One engine has permanently more threads. Settings with more threads of other engines may be useful now: forgets those
 * trials. */
static void forget_others(mr_tuner *tuner, int32_t engine, const mr_engine_gauge *gauges)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < tuner->tried_count; i++) {
        mr_tuner_setting t = tuner->tried[i];
        assert(t.engine >= 0 && t.engine < MR_TUNER_ENGINES_MAX);
        if (t.engine == engine || t.threads <= gauges[t.engine].threads) tuner->tried[kept++] = t;
    }
    tuner->tried_count = kept;
}

/* ---- What to try ---- */

typedef struct chooser {
    const mr_tuner *tuner;
    const mr_engine_gauge *gauges;
    int32_t count, threads;
    const mr_tuner_window *window;
    mr_tuner_decision *decision;
} chooser;

static const char *plural(int32_t number)
{
    return number == 1 ? "" : "s";
}

/* Returns true, with the decision filled, if the setting is new, allowed, and has not been tried. */
[[gnu::format(printf, 3, 4)]] static bool propose(const chooser *c, mr_tuner_setting s, const char *format, ...)
{
    assert(s.engine >= 0 && s.engine < c->count && s.depth >= 1 && s.reads >= 0);
    const mr_engine_gauge *g = &c->gauges[s.engine];
    if (s.threads == g->threads && s.depth == g->depth && s.reads == g->reads) return false;
    if (s.threads < (g->may_be_inline ? 0 : 1) || s.threads > g->threads_max) return false;
    if (s.threads > g->threads && c->threads - g->threads + s.threads > c->tuner->threads_max) return false;
    if (was_tried(c->tuner, s)) return false;
    mr_tuner_decision *d = c->decision;
    *d = (mr_tuner_decision){.has_setting = true, .setting = s};
    size_t at = 0;
    if (s.threads != g->threads)
        at = (size_t)snprintf(d->line, sizeof d->line, "%s: %d -> %d threads: ", g->name, (int)g->threads,
                              (int)s.threads);
    else if (s.depth != g->depth)
        at = (size_t)snprintf(d->line, sizeof d->line, "%s: reads ahead %d -> %d slots: ", g->name, (int)g->depth,
                              (int)s.depth);
    else
        at = (size_t)snprintf(d->line, sizeof d->line, "%s: requests %d -> %d elements ahead:", g->name, (int)g->reads,
                              (int)s.reads);
    va_list arguments;
    va_start(arguments, format);
    if (at < sizeof d->line) vsnprintf(d->line + at, sizeof d->line - at, format, arguments);
    va_end(arguments);
    return true;
}

static double percent(double share)
{
    return share * 100;
}

static bool more_threads_for(const chooser *c, int32_t e)
{
    const mr_engine_gauge *g = &c->gauges[e];
    double busy = c->window->busy[e], starved = percent(c->window->starved[e]), seconds = c->window->seconds;
    if (g->threads == 0) {
        /* One thread relieves a caller that has other work. A caller that only waits gains nothing until there are
         * two. */
        int32_t first = starved > 50 ? 2 : 1, depth = g->depth < 2 ? 2 : g->depth;
        if (starved < percent(STARVED)) return false;
        for (int32_t k = 0; k < 2; k++)
            if (propose(c, (mr_tuner_setting){e, k == 0 ? first : 3 - first, depth, g->reads},
                        "its caller spent %.0f %% of %.2f s doing the work itself", starved, seconds))
                return true;
        return false;
    }
    /* A caller that helps counts as a thread. */
    if (g->is_cheap && g->threads + 1 >= c->tuner->processors) return false;
    if (busy < 0.6 * g->threads) return false;
    int32_t room = c->tuner->threads_max - c->threads;
    int32_t doubled = g->threads <= room ? 2 * g->threads : g->threads + room;
    if (doubled > g->threads_max) doubled = g->threads_max;
    for (int32_t target = doubled; target > g->threads; target = target > g->threads + 1 ? g->threads + 1 : 0)
        if (propose(c, (mr_tuner_setting){e, target, g->depth, g->reads},
                    "its caller waited %.0f %% of %.2f s, %d thread%s busy %.0f %%", starved, seconds, (int)g->threads,
                    plural(g->threads), percent(busy / g->threads)))
            return true;
    return false;
}

/* Tries the engines in the order of their work, busiest first. */
static bool more_threads(const chooser *c)
{
    bool is_seen[MR_TUNER_ENGINES_MAX] = {0};
    for (int32_t k = 0; k < c->count; k++) {
        int32_t most = -1;
        for (int32_t e = 0; e < c->count; e++)
            if (!is_seen[e] && (most < 0 || c->window->busy[e] > c->window->busy[most])) most = e;
        is_seen[most] = true;
        if (more_threads_for(c, most)) return true;
    }
    return false;
}

static bool fits(const chooser *c, int32_t engine, int32_t slots_more)
{
    double bytes = 0;
    for (int32_t e = 0; e < c->count; e++) bytes += (double)c->gauges[e].slots * (double)c->gauges[e].slot_bytes;
    return bytes + (double)slots_more * (double)c->gauges[engine].slot_bytes <= (double)c->tuner->budget_bytes;
}

static bool more_depth_for(const chooser *c, int32_t e)
{
    static const int32_t factors[] = {4, 16, 2};
    const mr_engine_gauge *g = &c->gauges[e];
    double idle = percent(1 - fmin(c->window->busy[e] / g->threads, 1));
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        int32_t target = factors[i] * g->depth;
        if (target > MR_DEPTH_MAX || !fits(c, e, target + 1 - g->slots)) continue;
        if (propose(c, (mr_tuner_setting){e, g->threads, target, g->reads},
                    "its caller waited %.0f %% of %.2f s, its threads were idle %.0f %%",
                    percent(c->window->starved[e]), c->window->seconds, idle))
            return true;
    }
    return false;
}

/* The caller waits, and so do the threads: some elements take longer than others. */
static bool more_depth(const chooser *c)
{
    for (int32_t e = c->count - 1; e >= 0; e--) {
        int32_t threads = c->gauges[e].threads;
        bool is_uneven = threads > 0 && c->window->starved[e] >= STARVED && c->window->busy[e] < 0.95 * threads;
        if (is_uneven && more_depth_for(c, e)) return true;
    }
    return false;
}

/* Threads sleep for rows that were requested: the requests came too late. */
static bool more_reads(const chooser *c)
{
    for (int32_t e = 0; e < c->count; e++) {
        const mr_engine_gauge *g = &c->gauges[e];
        double waited = c->window->waited[e];
        if (g->reads == 0 || waited < WAITED) continue;
        for (int32_t factor = 4; factor > 1; factor /= 2)
            if (factor * g->reads <= MR_READS_MAX &&
                propose(c, (mr_tuner_setting){e, g->threads, g->depth, factor * g->reads},
                        "its threads still slept for %.0f %% of the elements", percent(waited)))
                return true;
    }
    return false;
}

static bool fewer_threads_for(const chooser *c, int32_t e, bool is_starved)
{
    const mr_engine_gauge *g = &c->gauges[e];
    double busy = c->window->busy[e];
    if (g->threads == 0) return false;
    int32_t needed = (int32_t)ceil(busy / 0.7);
    if (needed < 1) needed = 1;
    if (needed < g->threads &&
        propose(c, (mr_tuner_setting){e, needed, g->depth, g->reads}, "%d were busy %.0f %% of %.2f s", (int)g->threads,
                percent(busy / g->threads), c->window->seconds))
        return true;
    /* If the caller does much of the work, fewer threads may be as fast. */
    for (int32_t fewer = g->threads - 1; g->is_cheap && is_starved && fewer > 0; fewer--)
        if (propose(c, (mr_tuner_setting){e, fewer, g->depth, g->reads}, "its caller helped for %.0f %% of %.2f s",
                    percent(c->window->starved[e]), c->window->seconds))
            return true;
    /* Work that costs less than handing it over is done by the caller. */
    return is_starved && (busy < 1 || g->is_cheap) &&
           propose(c, (mr_tuner_setting){e, 0, g->depth, g->reads},
                   "they were busy %.0f %% of %.2f s, less than handing over may cost", percent(busy / g->threads),
                   c->window->seconds);
}

static bool fewer_threads(const chooser *c, bool is_starved)
{
    for (int32_t e = 0; e < c->count; e++)
        if (fewer_threads_for(c, e, is_starved)) return true;
    return false;
}

static bool fewer_slots(const chooser *c)
{
    for (int32_t e = 0; e < c->count; e++) {
        const mr_engine_gauge *g = &c->gauges[e];
        if (g->depth > DEPTH_PLENTY && g->threads > 0 &&
            propose(c, (mr_tuner_setting){e, g->threads, DEPTH_ENOUGH, g->reads},
                    "they hold %.1f MB and may be of no use", (double)g->slots * (double)g->slot_bytes * 1e-6))
            return true;
    }
    return false;
}

static bool too_many_threads(const chooser *c)
{
    int32_t processors = c->tuner->processors;
    for (int32_t e = 0; e < c->count; e++)
        if (c->gauges[e].threads > processors &&
            propose(c, (mr_tuner_setting){e, processors, c->gauges[e].depth, c->gauges[e].reads},
                    "there are %d processors", (int)processors))
            return true;
    return false;
}

static bool choose(const chooser *c)
{
    bool is_starved = c->window->starved[c->count - 1] >= STARVED;
    if (too_many_threads(c)) return true;
    if (is_starved && (more_reads(c) || more_threads(c) || more_depth(c))) return true;
    return fewer_threads(c, is_starved) || fewer_slots(c);
}

/* ---- Steps ---- */

/* In single elements, as in the other reports. */
static double elements_per_second(const mr_tuner *tuner, double rate)
{
    return rate * (tuner->batch > 0 ? tuner->batch : 1);
}

static bool settle(mr_tuner *tuner, mr_tuner_decision *decision)
{
    tuner->phase = MR_TUNER_SETTLED;
    tuner->off = 0;
    *decision = (mr_tuner_decision){0};
    snprintf(decision->line, sizeof decision->line, "settled at %.4g elements/s",
             elements_per_second(tuner, tuner->base));
    return true;
}

/* The current rate is known: starts the next trial, or settles. */
static bool try_next(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *gauges, int32_t count,
                     const mr_tuner_window *window, mr_tuner_decision *decision)
{
    chooser c = {tuner, gauges, count, 0, window, decision};
    for (int32_t e = 0; e < count; e++) c.threads += gauges[e].threads;
    if (!choose(&c)) return settle(tuner, decision);
    assert(decision->has_setting && decision->setting.engine >= 0 && decision->setting.engine < count);
    const mr_engine_gauge *changed = &gauges[decision->setting.engine];
    tuner->before = (mr_tuner_setting){decision->setting.engine, changed->threads, changed->depth, changed->reads};
    tuner->trial = decision->setting;
    note_tried(tuner, tuner->trial);
    tuner->phase = MR_TUNER_TRIAL;
    skip(tuner, now_ns, elements, &gauges[count - 1]);
    return true;
}

static bool is_kept(const mr_tuner *tuner)
{
    bool is_more = tuner->trial.threads > tuner->before.threads ||
                   (tuner->trial.threads == tuner->before.threads &&
                    (tuner->trial.depth > tuner->before.depth || tuner->trial.reads > tuner->before.reads));
    if (is_more) return tuner->rate >= FASTER * tuner->base;
    /* The second comparison prevents many small losses from adding up. */
    bool is_small = tuner->rate >= AS_FAST * tuner->base && tuner->rate >= AS_FAST * AS_FAST * tuner->best;
    return is_small || tuner->rate >= tuner->base;
}

static bool undo(mr_tuner *tuner, const mr_engine_gauge *gauges, mr_tuner_decision *decision)
{
    const mr_tuner_setting *trial = &tuner->trial, *before = &tuner->before;
    assert(tuner->phase == MR_TUNER_TRIAL && trial->engine == before->engine);
    const char *name = gauges[before->engine].name;
    *decision = (mr_tuner_decision){.has_setting = true, .setting = *before};
    char change[96];
    if (trial->threads != before->threads)
        snprintf(change, sizeof change, "%d -> %d threads", (int)trial->threads, (int)before->threads);
    else if (trial->depth != before->depth)
        snprintf(change, sizeof change, "reads ahead %d -> %d slots", (int)trial->depth, (int)before->depth);
    else
        snprintf(change, sizeof change, "requests %d -> %d elements ahead", (int)trial->reads, (int)before->reads);
    snprintf(decision->line, sizeof decision->line, "%s: %s: %.4g elements/s, %.4g before", name, change,
             elements_per_second(tuner, tuner->rate), elements_per_second(tuner, tuner->base));
    tuner->phase = MR_TUNER_BASE;
    tuner->is_doubted = true;
    return true;
}

/* Restarts the search if the rate has differed for `patience` windows. Each restart doubles the patience. */
static bool watch_rate(mr_tuner *tuner, const mr_tuner_window *window, mr_tuner_decision *decision)
{
    tuner->off = fabs(window->rate - tuner->base) > OFF * tuner->base ? tuner->off + 1 : 0;
    if (tuner->off < tuner->patience) return false;
    *decision = (mr_tuner_decision){0};
    snprintf(decision->line, sizeof decision->line, "searches again:%.4g elements/s, %.4g before",
             elements_per_second(tuner, window->rate), elements_per_second(tuner, tuner->base));
    tuner->patience = 2 * tuner->patience < PATIENCE_MAX ? 2 * tuner->patience : PATIENCE_MAX;
    tuner->tried_count = tuner->doubts = 0;
    tuner->best = 0;
    tuner->phase = MR_TUNER_BASE;
    return true;
}

bool mr_tuner_step(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *gauges, int32_t count,
                   mr_tuner_decision *decision)
{
    assert(count >= 1 && count <= MR_TUNER_ENGINES_MAX);
    const mr_engine_gauge *top = &gauges[count - 1];
    tuner->batch = top->batch_rows;
    if (tuner->is_skipping) {
        begin_window(tuner, now_ns, elements, gauges, count);
        return false;
    }
    mr_tuner_window window = end_window(tuner, now_ns, elements, gauges, count);
    begin_window(tuner, now_ns, elements, gauges, count);
    if (tuner->phase == MR_TUNER_SETTLED) {
        if (!watch_rate(tuner, &window, decision)) return false;
        skip(tuner, now_ns, elements, top);
        return true;
    }
    tuner->windows++;
    if (window.rate > tuner->rate) tuner->rate = window.rate;
    bool is_plain =
        tuner->phase == MR_TUNER_TRIAL && (tuner->rate > 1.3 * tuner->base || tuner->rate < tuner->base / 2);
    if (tuner->windows < WINDOWS && !is_plain) return false;
    if (tuner->phase == MR_TUNER_TRIAL && !is_kept(tuner)) {
        (void)undo(tuner, gauges, decision);
        skip(tuner, now_ns, elements, top);
        return true;
    }
    if (tuner->phase == MR_TUNER_TRIAL) {
        note_tried(tuner, tuner->before);
        if (tuner->trial.threads > tuner->before.threads) forget_others(tuner, tuner->trial.engine, gauges);
    }
    if (tuner->is_doubted) doubt(tuner);
    tuner->base = tuner->rate;
    if (tuner->base > tuner->best) tuner->best = tuner->base;
    tuner->windows = 0;
    tuner->rate = 0;
    return try_next(tuner, now_ns, elements, gauges, count, &window, decision);
}
