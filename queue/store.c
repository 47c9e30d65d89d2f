/* The ring and the heap of a queue's elements: see store.h. */
#include "queue/store.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static bool is_ring(const mr_queue_store *store)
{
    return store->kind == MR_QUEUE_FIFO || store->kind == MR_QUEUE_PADDING_FIFO;
}

/* Elements that may still be returned; other threads can only decrease the number. */
static int64_t taken(const mr_queue_store *store)
{
    return store->taken - atomic_load_explicit(&store->released, memory_order_relaxed);
}

static void check(const mr_queue_store *store)
{
    (void)store;
    assert(store->width >= 1 && store->width <= MR_COMPONENTS_MAX);
    assert(store->count >= 0 && taken(store) >= 0);
    assert(store->count <= store->room - taken(store));
    assert(store->first >= 0 && (store->first < store->room || store->room == 0));
    assert(is_ring(store) || store->first == 0);
    assert((store->slots == nullptr) == (store->room == 0));
    assert(store->kind != MR_QUEUE_PRIORITY || (store->arrivals == nullptr) == (store->room == 0));
    assert(store->oldest <= 0 && store->newest >= 0);
}

void mr_queue_store_init(mr_queue_store *store, mr_queue_kind kind, int32_t width, uint64_t seed)
{
    *store = (mr_queue_store){.kind = kind, .width = width, .random_first = mr_random_at(seed, 0, 0, 0)};
    store->random = store->random_first;
    check(store);
}

void mr_queue_store_seed(mr_queue_store *store, uint64_t seed, uint64_t seed2)
{
    assert(store->kind == MR_QUEUE_RANDOM_SHUFFLE && store->count == 0);
    store->uses_philox = true;
    store->philox = store->philox_first = mr_philox_seed(seed, seed2);
    store->words_used = 4;
}

void mr_queue_store_reset(mr_queue_store *store)
{
    mr_tensor element[MR_COMPONENTS_MAX];
    while (store->count > 0) {
        mr_queue_store_take(store, element);
        for (int32_t c = 0; c < store->width; c++) mr_tensor_deinit(&element[c]);
        mr_queue_store_release(store, 1);
    }
    store->random = store->random_first;
    store->philox = store->philox_first;
    store->words_used = 4;
}

static mr_tensor *slot(const mr_queue_store *store, int64_t index)
{
    assert(index >= 0 && index < store->room);
    int64_t at = index < store->room - store->first ? store->first + index : index - (store->room - store->first);
    assert(at >= 0 && at < store->room);
    return &store->slots[(size_t)at * (size_t)store->width];
}

static void move(const mr_queue_store *store, mr_tensor *to, const mr_tensor *from)
{
    memcpy(to, from, (size_t)store->width * sizeof *to);
}

void mr_queue_store_deinit(mr_queue_store *store)
{
    check(store);
    assert(taken(store) == 0);
    for (int64_t i = 0; i < store->count; i++)
        for (int32_t c = 0; c < store->width; c++) mr_tensor_deinit(&slot(store, i)[c]);
    free(store->slots);
    free(store->arrivals);
    *store = (mr_queue_store){0};
}

bool mr_queue_store_reserve(mr_queue_store *store)
{
    constexpr int64_t ROOM_MIN = 16, ROOM_MAX = INT64_MAX / 4;
    check(store);
    if (store->count < store->room - taken(store)) return true;
    if (store->room > ROOM_MAX) return false;
    int64_t room = store->room == 0 ? ROOM_MIN : 2 * store->room;
    bool has_arrivals = store->kind == MR_QUEUE_PRIORITY;
    mr_tensor *slots = calloc((size_t)room, (size_t)store->width * sizeof *slots);
    int64_t *arrivals = has_arrivals ? calloc((size_t)room, sizeof *arrivals) : nullptr;
    if (slots == nullptr || (has_arrivals && arrivals == nullptr)) {
        free(slots);
        free(arrivals);
        return false;
    }
    for (int64_t i = 0; i < store->count; i++) move(store, &slots[(size_t)i * (size_t)store->width], slot(store, i));
    if (has_arrivals && store->count > 0) memcpy(arrivals, store->arrivals, (size_t)store->count * sizeof *arrivals);
    free(store->slots);
    free(store->arrivals);
    store->slots = slots;
    store->arrivals = arrivals;
    store->room = room;
    store->first = 0;
    check(store);
    assert(store->count < store->room - taken(store));
    return true;
}

/* ---- The heap ---- */

static int64_t priority(const mr_queue_store *store, int64_t index)
{
    return mr_tensor_int64s(slot(store, index))[0];
}

static bool is_before(const mr_queue_store *store, int64_t a, int64_t b)
{
    int64_t x = priority(store, a), y = priority(store, b);
    assert(a == b || store->arrivals[a] != store->arrivals[b]);
    return x != y ? x < y : store->arrivals[a] < store->arrivals[b];
}

static void swap(mr_queue_store *store, int64_t a, int64_t b)
{
    mr_tensor kept[MR_COMPONENTS_MAX];
    move(store, kept, slot(store, a));
    move(store, slot(store, a), slot(store, b));
    move(store, slot(store, b), kept);
    int64_t arrival = store->arrivals[a];
    store->arrivals[a] = store->arrivals[b];
    store->arrivals[b] = arrival;
}

static void push(mr_queue_store *store, const mr_tensor *element, int64_t arrival)
{
    int64_t at = store->count++;
    move(store, slot(store, at), element);
    store->arrivals[at] = arrival;
    for (; at > 0 && is_before(store, at, (at - 1) / 2); at = (at - 1) / 2) swap(store, at, (at - 1) / 2);
    assert(!is_before(store, at, 0) || at == 0);
}

static void pop(mr_queue_store *store, mr_tensor *element)
{
    int64_t last = store->count - 1;
    if (last > 0) swap(store, 0, last);
    move(store, element, slot(store, last));
    for (int64_t at = 0;;) {
        int64_t child = 2 * at + 1;
        if (child >= last) break;
        if (child + 1 < last && is_before(store, child + 1, child)) child++;
        if (!is_before(store, child, at)) break;
        swap(store, child, at);
        at = child;
    }
    assert(last == 0 || !is_before(store, 0, last)); /* `last` is the popped element's slot */
    store->count--;
}

/* ---- All kinds ---- */

void mr_queue_store_put(mr_queue_store *store, const mr_tensor *element)
{
    check(store);
    assert(store->count < store->room - taken(store));
    if (store->kind == MR_QUEUE_PRIORITY)
        push(store, element, store->newest++);
    else
        move(store, slot(store, store->count++), element);
    check(store);
}

static int64_t draw(mr_queue_store *store)
{
    if (!store->uses_philox) return (int64_t)mr_random_below(&store->random, (uint64_t)store->count);
    if (store->words_used == 4) {
        mr_philox_next(&store->philox, store->words);
        store->words_used = 0;
    }
    return (int64_t)(store->words[store->words_used++] % (uint64_t)store->count);
}

void mr_queue_store_take(mr_queue_store *store, mr_tensor *element)
{
    check(store);
    assert(store->count > 0);
    if (store->kind == MR_QUEUE_PRIORITY) {
        pop(store, element);
    } else if (store->kind == MR_QUEUE_RANDOM_SHUFFLE) {
        int64_t drawn = draw(store);
        int64_t last = store->count - 1;
        move(store, element, slot(store, drawn));
        if (drawn != last) move(store, slot(store, drawn), slot(store, last));
        store->count--;
    } else {
        move(store, element, slot(store, 0));
        if (++store->first == store->room) store->first = 0;
        store->count--;
    }
    store->taken++;
    check(store);
}

void mr_queue_store_release(mr_queue_store *store, int64_t count)
{
    assert(count >= 0);
    atomic_fetch_add_explicit(&store->released, count, memory_order_relaxed);
}

void mr_queue_store_return(mr_queue_store *store, const mr_tensor *elements, int64_t count)
{
    check(store);
    assert(count >= 0 && count <= taken(store));
    for (int64_t i = count - 1; i >= 0; i--) {
        const mr_tensor *element = &elements[(size_t)i * (size_t)store->width];
        store->taken--;
        if (store->kind == MR_QUEUE_PRIORITY) {
            push(store, element, --store->oldest);
        } else if (is_ring(store)) {
            if (--store->first < 0) store->first = store->room - 1;
            store->count++;
            move(store, slot(store, 0), element);
        } else {
            move(store, slot(store, store->count++), element);
        }
    }
    check(store);
}
