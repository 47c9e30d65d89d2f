/* Read-ahead: tells the system which bytes will be needed soon, so that several reads are in progress while the threads
 * process what has arrived. The tuner chooses the number of rows.
 *
 * For files that are in memory this would waste time. Therefore, at intervals, one slot is not requested. If no thread
 * had to sleep for its rows, requests stop until a thread sleeps again. */
#include "pipeline/engine/engine_internal.h"

#include <assert.h>
#include <sys/resource.h>

/* Maximum number of slots between those that are not requested. The gap doubles each time a probe shows that requests
 * are needed. */
constexpr uint64_t PROBE_GAP_MAX = 4096;

static int64_t rows_waiting(const mr_engine *engine)
{
    int64_t waiting = 0;
    for (uint64_t s = engine->fill; s < engine->tail && waiting < engine->reads; s++) {
        const mr_slot *slot = engine->flight[s % (uint64_t)engine->ring_size];
        assert(mr_slot_is_consistent(slot));
        waiting += slot->rows - slot->taken;
    }
    return waiting;
}

bool mr_engine_wants_read_ahead(const mr_engine *engine)
{
    return engine->reads_ahead && rows_waiting(engine) < engine->reads;
}

int32_t mr_engine_read_ahead_rows(const mr_engine *engine)
{
    if (!engine->reads_ahead || engine->tail == engine->probe) return -1;
    int64_t ahead = engine->reads - rows_waiting(engine);
    return ahead > 0 ? (int32_t)ahead : 0;
}

void mr_engine_claim_read_ahead(mr_engine *engine, mr_slot *slot, int32_t taken, int32_t *begin, int32_t *end)
{
    *begin = *end = 0;
    if (slot->requested < 0) return;
    assert(taken >= 0 && taken <= slot->rows && mr_slot_is_consistent(slot));
    int64_t wanted = (int64_t)taken + engine->reads;
    *begin = slot->requested > taken ? slot->requested : taken;
    *end = wanted < slot->rows ? (int32_t)wanted : slot->rows;
    if (*end < *begin) *end = *begin;
    slot->requested = *end;
}

void mr_engine_read_ahead(const mr_engine *engine, const mr_slot *slot, int32_t begin, int32_t end)
{
    const mr_dataset *source = engine->plan.source;
    assert(begin >= 0 && end <= slot->rows);
    assert(begin >= end || (engine->can_read_ahead && source->count >= 0));
    /* Others may be processing these rows; only their items are constant. The item of a row that failed when it was
     * pulled may have any number. */
    for (int32_t row = begin; row < end; row++)
        if (slot->items[row].payload == nullptr && slot->items[row].number < (uint64_t)source->count)
            source->kind->read_ahead(source, slot->items[row].number);
}

void mr_engine_measure_read_ahead(mr_engine *engine, const mr_slot *slot)
{
    if (!engine->can_read_ahead) return;
    assert(slot->done == slot->rows);
    if (slot->requested >= 0) {
        engine->rows_requested += (uint64_t)slot->rows;
        engine->rows_waited += slot->waits;
        return;
    }
    bool had_to_wait = slot->waits * 16 > (uint64_t)slot->rows;
    engine->reads_ahead = had_to_wait;
    if (!had_to_wait)
        engine->probe_gap = 1;
    else if (engine->probe_gap < PROBE_GAP_MAX)
        engine->probe_gap *= 2;
    engine->probe = engine->tail + engine->probe_gap;
}

uint64_t mr_engine_sleep_count(const mr_engine *engine)
{
    struct rusage usage;
    if (!engine->can_read_ahead || getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
    return (uint64_t)usage.ru_nvcsw;
}
