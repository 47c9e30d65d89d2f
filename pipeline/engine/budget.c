/* The budget: counting memory, and naming its holders in errors (pipeline.h).
 *
 * The counters are relaxed atomics. Each change is counted once when memory is reserved and once when it is released. A
 * temporarily inexact sum only affects how far is read ahead. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdio.h>

/* Smaller changes are collected before the budget is updated. */
constexpr size_t GRAIN_BYTES = 16384;

void mr_budget_add(const mr_run *run, mr_counters *counters, ptrdiff_t more_bytes)
{
    if (more_bytes == 0) return;
    assert(run->budget != nullptr);
    if (run->holder != nullptr) counters = run->holder;
    atomic_fetch_add_explicit(&run->budget->held_bytes, (size_t)more_bytes, memory_order_relaxed);
    if (counters != nullptr) atomic_fetch_add_explicit(&counters->held_bytes, (size_t)more_bytes, memory_order_relaxed);
}

bool mr_budget_has_room(const mr_run *run, size_t more_bytes)
{
    const mr_budget *budget = run->budget;
    size_t held_bytes = atomic_load_explicit(&budget->held_bytes, memory_order_relaxed), free_bytes;
    if (__builtin_sub_overflow(budget->limit_bytes, held_bytes, &free_bytes) || more_bytes > free_bytes) return false;
    if (budget->read_ahead_bytes == 0) return true;
    size_t kept_bytes = atomic_load_explicit(&budget->kept_bytes, memory_order_relaxed), ahead_bytes;
    if (__builtin_sub_overflow(held_bytes, kept_bytes, &ahead_bytes)) ahead_bytes = 0;
    return ahead_bytes <= budget->read_ahead_bytes && more_bytes <= budget->read_ahead_bytes - ahead_bytes;
}

/* "; shuffle holds 73400320 bytes, batch 1048576": the largest holders. */
static void name_holders(const mr_pipeline *pipeline, char *text, size_t capacity_bytes)
{
    constexpr int32_t NAMED = 3;
    size_t at = 0, before_bytes = SIZE_MAX;
    int32_t before = -1;
    text[0] = '\0';
    for (int32_t named = 0; pipeline != nullptr && named < NAMED && at < capacity_bytes; named++) {
        int32_t most = -1;
        size_t most_bytes = 0;
        for (int32_t i = 0; i < pipeline->counter_count; i++) {
            size_t bytes = atomic_load_explicit(&pipeline->counters[i].held_bytes, memory_order_relaxed);
            bool comes_later = bytes < before_bytes || (bytes == before_bytes && i > before);
            if (bytes <= most_bytes || !comes_later || bytes > PTRDIFF_MAX) continue;
            most = i;
            most_bytes = bytes;
        }
        if (most < 0) return;
        at += (size_t)snprintf(text + at, capacity_bytes - at, named == 0 ? "; %s holds %zu bytes" : ", %s %zu",
                               pipeline->counters[most].stage, most_bytes);
        before = most;
        before_bytes = most_bytes;
    }
}

mr_status mr_budget_keep(const mr_run *run, const char *stage, size_t more_bytes, mr_error *error)
{
    mr_budget *budget = run->budget;
    size_t before_bytes = atomic_fetch_add_explicit(&budget->kept_bytes, more_bytes, memory_order_relaxed), kept_bytes;
    if (!__builtin_add_overflow(before_bytes, more_bytes, &kept_bytes) && kept_bytes <= budget->limit_bytes)
        return MR_OK;
    mr_budget_release(run, more_bytes);
    char who[256];
    name_holders(budget->pipeline, who, sizeof who);
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: another %zu bytes exceed the budget of %zu bytes%s", stage,
                   more_bytes, budget->limit_bytes, who);
}

void mr_budget_release(const mr_run *run, size_t less_bytes)
{
    atomic_fetch_sub_explicit(&run->budget->kept_bytes, less_bytes, memory_order_relaxed);
}

/* ---- Stages ---- */

static const char *name_of(const mr_stage *stage)
{
    return stage->dataset != nullptr ? stage->dataset->kind->name : "the pipeline";
}

static bool is_small(const mr_stage *stage)
{
    return stage->kept_bytes + GRAIN_BYTES > stage->budgeted_bytes &&
           stage->budgeted_bytes + GRAIN_BYTES > stage->kept_bytes;
}

static void update_budget(mr_stage *stage)
{
    mr_budget_add(stage->run, stage->counters, (ptrdiff_t)(stage->kept_bytes - stage->budgeted_bytes));
    stage->budgeted_bytes = stage->kept_bytes;
}

mr_status mr_stage_keep(mr_stage *stage, size_t size_bytes, mr_error *error)
{
    size_t kept_bytes = stage->kept_bytes + size_bytes;
    assert(kept_bytes >= stage->kept_bytes);
    if (kept_bytes > stage->budgeted_bytes) {
        size_t before_bytes = stage->budgeted_bytes;
        mr_status status = MR_OK;
        if (kept_bytes - before_bytes >= GRAIN_BYTES)
            status = mr_budget_keep(stage->run, name_of(stage), kept_bytes - before_bytes, error);
        stage->is_too_large |= status != MR_OK;
        MR_TRY(status);
    }
    stage->kept_bytes = kept_bytes;
    if (!is_small(stage)) update_budget(stage);
    return MR_OK;
}

void mr_stage_release(mr_stage *stage, size_t size_bytes)
{
    assert(stage->kept_bytes >= size_bytes);
    stage->kept_bytes -= size_bytes;
    if (is_small(stage)) return;
    mr_budget_release(stage->run, stage->budgeted_bytes - stage->kept_bytes);
    update_budget(stage);
}

void mr_stage_keep_unlimited(mr_stage *stage, size_t *counted_bytes, size_t now_bytes)
{
    assert(stage->kept_bytes >= *counted_bytes);
    stage->kept_bytes += now_bytes - *counted_bytes;
    *counted_bytes = now_bytes;
    if (is_small(stage)) return;
    atomic_fetch_add_explicit(&stage->run->budget->kept_bytes, stage->kept_bytes - stage->budgeted_bytes,
                              memory_order_relaxed);
    update_budget(stage);
}

void mr_stage_release_all(mr_stage *stage)
{
    stage->kept_bytes = 0;
    if (stage->budgeted_bytes == 0) return;
    mr_budget_release(stage->run, stage->budgeted_bytes);
    update_budget(stage);
    assert(stage->budgeted_bytes == 0);
}

/* ---- Items ---- */

mr_status mr_item_keep(mr_stage *stage, mr_item *item, mr_error *error)
{
    if (item->payload == nullptr) return MR_OK;
    mr_status status = mr_payload_settle(item->payload, error);
    if (status == MR_OK) status = mr_stage_keep(stage, mr_payload_bytes(item->payload), error);
    if (status != MR_OK) mr_item_deinit(item);
    return status;
}

void mr_item_release(mr_stage *stage, const mr_item *item)
{
    if (item->payload != nullptr) mr_stage_release(stage, mr_payload_bytes(item->payload));
}
