/* The life of an engine's slots. A slot is in one of four states:
 *
 * unused     in the list `spare`, or with the worker that pulls: it is filled with items next
 * in flight  in the ring: its rows are taken, processed, and delivered
 * delivered  in the list `delivered`: the consumer may still reference its buffers. Unused again once it does not
 * freed      if the window or the budget shrank, or the consumer keeps too many
 *
 * Invariants: the slots in flight have the sequence numbers head to tail - 1, and the slot s is at s % ring_size.
 * ready_count of them are complete. Slots from fill on have rows that no worker has taken. Every slot in a list is
 * counted in the budget.
 * Lock order: the engine's mutex is held in every function, except mr_engine_free_slots, which is called when no thread
 * uses the engine any more. The trace's mutex is acquired after it. */
#include "pipeline/engine/engine_internal.h"

static void push(mr_slot **list, mr_slot *slot)
{
    assert(slot != nullptr && slot != *list);
    slot->next = *list;
    *list = slot;
}

static void free_list(mr_slot *list)
{
    while (list != nullptr) {
        mr_slot *next = list->next;
        mr_slot_free(list);
        list = next;
    }
}

/* Frees all slots that nobody references; for when the budget is exceeded. */
static void free_idle(mr_engine *engine)
{
    free_list(engine->spare);
    engine->spare = nullptr;
    for (mr_slot **link = &engine->delivered; *link != nullptr;) {
        mr_slot *slot = *link;
        assert(slot->plan == &engine->slots);
        if (mr_slot_is_free(slot)) {
            *link = slot->next;
            mr_slot_free(slot);
        } else {
            link = &slot->next;
        }
    }
}

/* Traces the slots in flight. Only for engines with threads: the others have at most one slot, or exist only
 * briefly. */
static void trace_slots(mr_engine *engine)
{
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr && engine->thread_count > 0)
        mr_trace_slots(trace, engine->plan.last->kind->name, engine->trace_number, mr_now_ns(),
                       engine->tail - engine->head, engine->ready_count);
}

/* A slot that nobody references, or null. If the consumer keeps more slots than the window and DELIVERED_MAX, the
 * engine releases its references: their memory belongs to the consumer and is no longer counted in the budget. */
mr_slot *mr_engine_take_slot(mr_engine *engine)
{
    constexpr int32_t DELIVERED_MAX = 4;
    int32_t held = 0;
    assert(mr_engine_is_consistent(engine));
    mr_slot *slot = engine->spare;
    if (slot != nullptr) {
        assert(mr_slot_is_free(slot));
        engine->spare = slot->next;
        return slot;
    }
    for (mr_slot **link = &engine->delivered; *link != nullptr;) {
        slot = *link;
        bool is_free = mr_slot_is_free(slot);
        if (!is_free && ++held <= mr_engine_window(engine) + DELIVERED_MAX) {
            link = &slot->next;
            continue;
        }
        *link = slot->next;
        if (is_free) return slot;
        mr_slot_free(slot);
    }
    return nullptr;
}

bool mr_engine_has_slot(const mr_engine *engine)
{
    if (engine->spare != nullptr) return true;
    for (const mr_slot *slot = engine->delivered; slot != nullptr; slot = slot->next)
        if (mr_slot_is_free(slot)) return true;
    return false;
}

void mr_engine_return_slot(mr_engine *engine, mr_slot *slot)
{
    assert(mr_engine_is_consistent(engine) && slot->rows == 0 && mr_slot_is_consistent(slot));
    mr_slot_account(slot);
    push(&engine->spare, slot);
}

void mr_engine_append_slot(mr_engine *engine, mr_slot *slot)
{
    assert(mr_engine_is_consistent(engine) && slot->rows > 0 && slot->taken == 0 && mr_slot_is_consistent(slot));
    assert(engine->tail - engine->head < (uint64_t)engine->ring_size);
    engine->flight[engine->tail++ % (uint64_t)engine->ring_size] = slot;
    trace_slots(engine);
}

void mr_engine_complete_slot(mr_engine *engine, mr_slot *slot)
{
    assert(mr_engine_is_consistent(engine) && !slot->is_complete && slot->done == slot->rows);
    mr_slot_account(slot);
    slot->is_complete = true;
    engine->ready_count++;
    trace_slots(engine);
    assert(slot->held_bytes >= mr_engine_slot_bytes(engine));
    size_t extra_bytes = slot->held_bytes - mr_engine_slot_bytes(engine);
    engine->extra_bytes -= engine->extra_bytes / 8;
    if (extra_bytes > engine->extra_bytes) engine->extra_bytes = extra_bytes;
}

void mr_engine_retire_head(mr_engine *engine, bool exceeds_budget)
{
    mr_slot *slot = mr_engine_head_slot(engine);
    assert(mr_engine_is_consistent(engine) && engine->head < engine->fill && mr_slot_is_consistent(slot));
    if (slot->is_complete) {
        assert(engine->ready_count > 0);
        engine->ready_count--;
    }
    if (exceeds_budget) free_idle(engine);
    if ((engine->surplus > 0 || exceeds_budget) && slot->done == slot->rows) {
        if (engine->surplus > 0) engine->surplus--;
        mr_slot_free(slot);
    } else {
        push(&engine->delivered, slot);
    }
    engine->flight[engine->head % (uint64_t)engine->ring_size] = nullptr;
    engine->head++;
    trace_slots(engine);
}

void mr_engine_discard_slots(mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine) && engine->active == 0);
    for (; engine->head < engine->tail; engine->head++)
        push(&engine->delivered, engine->flight[engine->head % (uint64_t)engine->ring_size]);
    for (mr_slot *slot = engine->delivered; slot != nullptr; slot = slot->next) mr_slot_clear(slot);
    engine->fill = engine->tail;
    engine->ready_count = 0;
    assert(mr_engine_is_consistent(engine));
}

void mr_engine_free_slots(mr_engine *engine)
{
    assert(engine->active == 0);
    for (; engine->head < engine->tail; engine->head++)
        mr_slot_free(engine->flight[engine->head % (uint64_t)engine->ring_size]);
    free_list(engine->spare);
    free_list(engine->delivered);
    engine->spare = engine->delivered = nullptr;
}
