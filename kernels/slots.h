/* Scratch memory for concurrent pieces of work. A piece uses any free slot, so no thread index is needed. */
#ifndef MR_KERNELS_SLOTS_H
#define MR_KERNELS_SLOTS_H

#include "kernels/common.h"
#include <assert.h>
#include <stdatomic.h>

constexpr int MR_SLOTS_MAX = 256;

typedef struct mr_slots {
    float *floats;
    int64_t size; /* of one, in floats */
    int count;
    atomic_bool in_use[MR_SLOTS_MAX];
} mr_slots;

/* floats  count slots of size floats, at most MR_SLOTS_MAX of which are used; not owned */
static inline void mr_slots_init(mr_slots *s, float *floats, int64_t size, int count)
{
    s->floats = floats;
    s->size = size;
    s->count = MR_MIN(count, MR_SLOTS_MAX);
    for (int i = 0; i < s->count; i++) atomic_init(&s->in_use[i], false);
}

/* Waits while all are in use. */
static inline float *mr_slot_acquire(mr_slots *s, int *index)
{
    assert(s->count > 0 && (s->floats != nullptr || s->size == 0));
    for (int i = 0;; i = (i + 1) % s->count)
        if (!atomic_exchange_explicit(&s->in_use[i], true, memory_order_acquire)) {
            *index = i;
            return s->floats + i * s->size;
        }
}

static inline void mr_slot_release(mr_slots *s, int index)
{
    assert(index >= 0 && index < s->count && atomic_load_explicit(&s->in_use[index], memory_order_relaxed));
    atomic_store_explicit(&s->in_use[index], false, memory_order_release);
}

#endif
