/* The watchdog: a thread that checks at intervals whether the consumer has waited too long, and then reports all notes.
 *
 * The callback is called without the mutex. */
#include "pipeline/engine/watch.h"

#include "pipeline/pipeline.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Maximum number of threads in a report; each takes a few hundred bytes. */
constexpr int32_t THREADS_TOLD = 256;

/* mutex guards the list of notes and is_stopping. */
struct mr_watch {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    mr_note *notes;
    uint64_t limit_ns;
    mr_watchdog_function report;
    void *context;
    _Atomic uint64_t since_ns; /* start of the consumer's wait; 0: it is not waiting */
    _Atomic uint32_t engines;
    pthread_t thread;
    bool has_thread, is_stopping;
    mr_thread_work *threads; /* THREADS_TOLD entries */
    mr_trace *trace;
};

void mr_watch_add(mr_watch *watch, mr_note *note)
{
    if (watch == nullptr) return;
    pthread_mutex_lock(&watch->mutex);
    assert(note->next == nullptr && note->previous == nullptr && watch->notes != note);
    note->previous = nullptr;
    note->next = watch->notes;
    if (note->next != nullptr) note->next->previous = note;
    watch->notes = note;
    pthread_mutex_unlock(&watch->mutex);
}

void mr_watch_remove(mr_watch *watch, mr_note *note)
{
    if (watch == nullptr) return;
    pthread_mutex_lock(&watch->mutex);
    assert(note->next == nullptr || note->next->previous == note);
    assert(note->previous == nullptr || note->previous->next == note);
    if (note->next != nullptr) note->next->previous = note->previous;
    if (note->previous != nullptr)
        note->previous->next = note->next;
    else if (watch->notes == note)
        watch->notes = note->next;
    note->next = note->previous = nullptr;
    pthread_mutex_unlock(&watch->mutex);
}

void mr_watch_wait(mr_watch *watch, uint64_t since_ns)
{
    atomic_store_explicit(&watch->since_ns, since_ns, memory_order_relaxed);
}

mr_trace *mr_watch_trace(mr_watch *watch)
{
    return watch == nullptr ? nullptr : watch->trace;
}

uint32_t mr_watch_engine(mr_watch *watch)
{
    return watch == nullptr ? 0 : atomic_fetch_add_explicit(&watch->engines, 1, memory_order_relaxed);
}

static void describe(const mr_note *note, const char *stage, uint64_t now_ns, mr_thread_work *work)
{
    uint64_t element = atomic_load_explicit(&note->element, memory_order_relaxed), number = element >> 2;
    uint64_t since_ns = atomic_load_explicit(&note->since_ns, memory_order_relaxed);
    mr_note_kind kind = (mr_note_kind)(element & 3);
    assert(kind == MR_NOTE_RECORD || kind == MR_NOTE_BATCH || kind == MR_NOTE_PULL);
    *work = (mr_thread_work){.stage = stage,
                             .is_waiting = kind == MR_NOTE_PULL,
                             .number = number,
                             .since_ns = since_ns == 0 || since_ns > now_ns ? 0 : now_ns - since_ns};
    if (stage == nullptr) return;
    /* A row that failed before it was read may have any number. */
    const mr_dataset *source = note->source;
    bool is_in_source = source != nullptr && (source->count < 0 || number < (uint64_t)source->count);
    if (kind == MR_NOTE_RECORD && is_in_source)
        source->kind->describe(source, number, work->where, sizeof work->where);
    else
        snprintf(work->where, sizeof work->where, kind == MR_NOTE_BATCH ? "batch %llu" : "element %llu",
                 (unsigned long long)number);
}

/* Lock held. A source exists as long as a note refers to it. */
static int32_t read_notes(mr_watch *watch, uint64_t now_ns)
{
    int32_t count = 0;
    for (const mr_note *note = watch->notes; note != nullptr && count < THREADS_TOLD; note = note->next) {
        const char *stage = atomic_load_explicit(&note->stage, memory_order_relaxed);
        assert(note->next == nullptr || note->next->previous == note);
        if (stage != nullptr || note->is_thread) describe(note, stage, now_ns, &watch->threads[count++]);
    }
    return count;
}

/* Lock held; released meanwhile. */
static void sleep_until(mr_watch *watch, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    (void)pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
}

/* Reports again after each further limit_ns. */
static void *watchdog_main(void *argument)
{
    mr_watch *watch = argument;
    uint64_t reported_ns = 0, interval_ns = watch->limit_ns / 4 + 1;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_stopping) {
        sleep_until(watch, mr_now_ns() + interval_ns);
        uint64_t now_ns = mr_now_ns(), since_ns = atomic_load_explicit(&watch->since_ns, memory_order_relaxed);
        if (watch->is_stopping || since_ns == 0 || now_ns < since_ns) continue;
        uint64_t from_ns = reported_ns > since_ns ? reported_ns : since_ns;
        if (now_ns - from_ns < watch->limit_ns) continue;
        int32_t count = read_notes(watch, now_ns);
        pthread_mutex_unlock(&watch->mutex);
        assert(count >= 0 && count <= THREADS_TOLD);
        watch->report(watch->context, now_ns - since_ns, watch->threads, count);
        reported_ns = now_ns;
        pthread_mutex_lock(&watch->mutex);
    }
    pthread_mutex_unlock(&watch->mutex);
    return nullptr;
}

static mr_status start_watchdog(mr_watch *watch, const mr_iterator_options *options, mr_error *error)
{
    constexpr uint64_t LIMIT_MAX_NS = (uint64_t)1 << 60;
    watch->limit_ns = options->watchdog_ns < LIMIT_MAX_NS ? options->watchdog_ns : LIMIT_MAX_NS;
    watch->report = options->watchdog;
    watch->context = options->watchdog_context;
    watch->threads = calloc(THREADS_TOLD, sizeof *watch->threads);
    if (watch->threads == nullptr) return mr_fail_memory(error, THREADS_TOLD * sizeof *watch->threads);
    if (pthread_create(&watch->thread, nullptr, watchdog_main, watch) != 0)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot start the watchdog's thread");
    watch->has_thread = true;
    return MR_OK;
}

mr_status mr_watch_new(const mr_iterator_options *options, mr_watch **watch, mr_error *error)
{
    *watch = nullptr;
    bool is_guarded = options->watchdog_ns > 0;
    if (!is_guarded && options->watchdog != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: watchdog has no effect: watchdog_ns is 0");
    if (!is_guarded && options->trace_path == nullptr) return MR_OK;
    if (is_guarded && options->watchdog == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: watchdog_ns is set, but watchdog is null");
    mr_watch *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&made->mutex, nullptr);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    mr_status status = MR_OK;
    if (options->trace_path != nullptr) status = mr_trace_new(options->trace_path, &made->trace, error);
    if (status == MR_OK && is_guarded) status = start_watchdog(made, options, error);
    if (status == MR_OK)
        *watch = made;
    else
        mr_watch_free(made);
    return status;
}

void mr_watch_free(mr_watch *watch)
{
    if (watch == nullptr) return;
    pthread_mutex_lock(&watch->mutex);
    watch->is_stopping = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    if (watch->has_thread) pthread_join(watch->thread, nullptr);
    assert(watch->notes == nullptr);
    mr_trace_free(watch->trace);
    free(watch->threads);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}
