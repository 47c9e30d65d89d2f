/* The tuner's driver: measures engines and applies settings (tuner.h). It runs on the consumer's thread, between two
 * elements. Most calls only count; the clock is read at intervals. */
#include "pipeline/engine/tuner.h"

#include "base/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Target interval between clock reads; maximum number of elements between them. */
constexpr uint64_t TICK_NS = 4000000;
constexpr int32_t STRIDE_MAX = 256;

struct mr_tuning {
    mr_tuner tuner;
    const mr_budget *budget;
    int32_t count;
    mr_stage *engines[MR_TUNER_ENGINES_MAX];
    int32_t threads_first;
    uint64_t elements;
    int32_t stride, left; /* elements between clock reads; until the next one */
    uint64_t tick_ns;
    mr_tuned_function report;
    void *context;
    mr_tuned tuned;
};

mr_status mr_tuning_new(const mr_iterator_options *options, const mr_run *run, mr_tuning **tuning, mr_error *error)
{
    *tuning = nullptr;
    if (options->tune == MR_TUNE_OFF || (options->tune == MR_TUNE_AUTO && options->threads > 0)) return MR_OK;
    mr_tuning *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr_tuner_init(&made->tuner, run->threads, mr_processor_count(), run->budget->limit_bytes);
    made->budget = run->budget;
    made->threads_first =
        options->threads_first > 0 && options->threads_first < run->threads ? options->threads_first : run->threads;
    made->stride = made->left = 1;
    made->report = options->tuned;
    made->context = options->tuned_context;
    made->tuned.is_on = true;
    *tuning = made;
    return MR_OK;
}

void mr_tuning_free(mr_tuning *tuning)
{
    free(tuning);
}

void mr_tuning_add(mr_tuning *tuning, mr_stage *engine)
{
    assert(tuning->count >= 0 && tuning->count <= MR_TUNER_ENGINES_MAX);
    if (tuning->count < MR_TUNER_ENGINES_MAX) {
        tuning->engines[tuning->count++] = engine;
        return;
    }
    /* The consumer's engine must be the last. */
    memmove(tuning->engines, tuning->engines + 1, (MR_TUNER_ENGINES_MAX - 1) * sizeof *tuning->engines);
    tuning->engines[MR_TUNER_ENGINES_MAX - 1] = engine;
}

void mr_tuning_begin(mr_tuning *tuning)
{
    mr_engine_gauge gauge;
    int32_t others = 0, left = tuning->threads_first;
    for (int32_t i = 0; i < tuning->count; i++) {
        mr_engine_measure(tuning->engines[i], &gauge);
        if (gauge.threads > 0) others++;
    }
    /* From the consumer down. Remainders go to the engines above; an engine without a thread is run by its caller. */
    for (int32_t i = tuning->count - 1; i >= 0; i--) {
        mr_engine_measure(tuning->engines[i], &gauge);
        if (gauge.threads == 0) continue;
        others--;
        int32_t share = others > 0 ? (left + others) / (others + 1) : left;
        if (share > gauge.threads_max) share = gauge.threads_max;
        if (share < 1 && !gauge.may_be_inline) share = 1;
        mr_engine_set(tuning->engines[i], share, gauge.depth, 0);
        left = left > share ? left - share : 0;
    }
}

static void look(mr_tuning *tuning, uint64_t now_ns)
{
    assert(tuning->count >= 1 && tuning->count <= MR_TUNER_ENGINES_MAX);
    mr_engine_gauge gauges[MR_TUNER_ENGINES_MAX];
    mr_tuner_decision decision;
    size_t kept_bytes = atomic_load_explicit(&tuning->budget->kept_bytes, memory_order_relaxed), limit_bytes;
    if (__builtin_sub_overflow(tuning->budget->limit_bytes, kept_bytes, &limit_bytes)) limit_bytes = 0;
    size_t ahead_bytes = tuning->budget->read_ahead_bytes;
    if (ahead_bytes > 0 && limit_bytes > ahead_bytes) limit_bytes = ahead_bytes;
    tuning->tuner.budget_bytes = limit_bytes;
    for (int32_t i = 0; i < tuning->count; i++) mr_engine_measure(tuning->engines[i], &gauges[i]);
    if (!mr_tuner_step(&tuning->tuner, now_ns, tuning->elements, gauges, tuning->count, &decision)) return;
    if (decision.has_setting) {
        const mr_tuner_setting *setting = &decision.setting;
        assert(setting->engine >= 0 && setting->engine < tuning->count);
        mr_engine_set(tuning->engines[setting->engine], setting->threads, setting->depth, setting->reads);
        tuning->tuned.decisions++;
    }
    tuning->tuned.is_settled = tuning->tuner.phase == MR_TUNER_SETTLED;
    snprintf(tuning->tuned.line, sizeof tuning->tuned.line, "%s", decision.line);
    if (tuning->report != nullptr) tuning->report(tuning->context, decision.line);
}

static void tick(mr_tuning *tuning)
{
    uint64_t now_ns = mr_now_ns(), gap_ns = now_ns - tuning->tick_ns;
    tuning->tick_ns = now_ns;
    if (gap_ns < TICK_NS / 2 && tuning->stride < STRIDE_MAX) tuning->stride *= 2;
    if (gap_ns > TICK_NS * 2 && tuning->stride > 1) tuning->stride /= 2;
    assert(tuning->stride >= 1 && tuning->stride <= STRIDE_MAX);
    tuning->left = tuning->stride;
    if (mr_tuner_is_due(&tuning->tuner, now_ns, tuning->elements)) look(tuning, now_ns);
}

void mr_tuning_count(mr_tuning *tuning)
{
    tuning->elements++;
    if (--tuning->left <= 0 && tuning->count > 0) tick(tuning);
}

void mr_tuning_skip(mr_tuning *tuning)
{
    mr_tuner_skip(&tuning->tuner);
}

void mr_tuning_report(const mr_tuning *tuning, mr_tuned *tuned)
{
    *tuned = tuning->tuned;
}
