/* See top.h. The table uses open addressing with linear probing and is at most half full. A text's slot stores its
 * hash; the bytes are in a separate array. Nothing is removed individually: a full table is rebuilt from the entries
 * that remain. */
#include "common/stats/top.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct top_slot {
    uint64_t key;   /* the number, or the text's hash */
    uint64_t count; /* 0: free */
    uint32_t text_size;
} top_slot;

static uint64_t mix(uint64_t key)
{
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

static uint64_t hash_text(mr_string text)
{
    uint64_t hash = text.size_bytes * 0x9e3779b97f4a7c15u, word;
    size_t at = 0;
    for (; at + 8 <= text.size_bytes; at += 8) {
        memcpy(&word, text.data + at, 8);
        hash = mix(hash ^ word);
    }
    word = 0;
    if (at < text.size_bytes) memcpy(&word, text.data + at, text.size_bytes - at);
    return mix(hash ^ word);
}

static uint32_t limit_of(const top *top)
{
    return top->limit ? top->limit : TOP_LIMIT;
}

static bool is_there(const top *top, uint32_t slot, uint64_t key, mr_string text)
{
    if (top->slots[slot].key != key) return false;
    return !top->is_text || (top->slots[slot].text_size == text.size_bytes &&
                             (text.size_bytes == 0 ||
                              memcmp(top->texts + (size_t)slot * TOP_TEXT_MAX, text.data, text.size_bytes) == 0));
}

/* The value's slot, or the free slot for it. */
static uint32_t find(const top *top, uint64_t key, mr_string text)
{
    uint32_t mask = top->capacity - 1, slot = (uint32_t)mix(key) & mask;
    while (top->slots[slot].count > 0 && !is_there(top, slot, key, text)) slot = (slot + 1) & mask;
    return slot;
}

static void put(top *top, uint64_t key, mr_string text, uint64_t count)
{
    uint32_t slot = find(top, key, text);
    top_slot *found = &top->slots[slot];
    if (found->count == 0) {
        *found = (top_slot){.key = key, .text_size = (uint32_t)text.size_bytes};
        if (text.size_bytes > 0) memcpy(top->texts + (size_t)slot * TOP_TEXT_MAX, text.data, text.size_bytes);
        top->count++;
    }
    found->count += count;
}

static mr_string text_of(const top *top, uint32_t slot)
{
    if (!top->is_text) return (mr_string){0};
    return (mr_string){top->texts + (size_t)slot * TOP_TEXT_MAX, top->slots[slot].text_size};
}

/* Rebuilds the table with `capacity` slots, with `less` subtracted from all counts. */
static bool rebuild(top *top, uint32_t capacity, uint64_t less)
{
    struct top made = *top;
    made.capacity = capacity;
    made.count = 0;
    made.slots = calloc(capacity, sizeof(top_slot));
    made.texts = top->is_text ? malloc((size_t)capacity * TOP_TEXT_MAX) : nullptr;
    if (!made.slots || (top->is_text && !made.texts)) {
        free(made.slots);
        free(made.texts);
        return false;
    }
    for (uint32_t i = 0; i < top->capacity; i++)
        if (top->slots[i].count > less) put(&made, top->slots[i].key, text_of(top, i), top->slots[i].count - less);
    made.error += less;
    free(top->slots);
    free(top->texts);
    *top = made;
    return true;
}

/* The count that would be at index `position` if counts were sorted in descending order. */
static uint64_t select_count(uint64_t *counts, size_t count, size_t position)
{
    size_t begin = 0, end = count;
    for (;;) {
        uint64_t pivot = counts[begin + (end - begin) / 2];
        size_t above = begin, below = end;
        /* Move counts above the pivot to the front, those below it to the back. */
        for (size_t i = begin; i < below;) {
            uint64_t at = counts[i];
            if (at > pivot)
                counts[i++] = counts[above], counts[above++] = at;
            else if (at < pivot)
                counts[i] = counts[--below], counts[below] = at;
            else
                i++;
        }
        if (position >= above && position < below) return pivot;
        if (position < above)
            end = above;
        else
            begin = below;
    }
}

/* Subtracts from all counts so that at most half of the values remain. */
static bool prune(top *top)
{
    uint64_t *counts = malloc(top->count * sizeof(*counts)), less = UINT64_MAX;
    if (!counts) return false;
    size_t count = 0, above = 0;
    for (uint32_t i = 0; i < top->capacity; i++) {
        if (top->slots[i].count == 0) continue;
        counts[count++] = top->slots[i].count;
        if (top->slots[i].count < less) less = top->slots[i].count;
    }
    for (size_t i = 0; i < count; i++) above += counts[i] > less;
    /* Usually most values were seen once. */
    if (above > limit_of(top) / 2) less = select_count(counts, count, limit_of(top) / 2);
    free(counts);
    return rebuild(top, top->capacity, less);
}

static bool add(top *top, uint64_t key, mr_string text, uint64_t count)
{
    assert(count > 0);
    if (top->capacity == 0 && !rebuild(top, 16, 0)) return false;
    top->total += count;
    uint32_t slot = find(top, key, text);
    if (top->slots[slot].count > 0) {
        top->slots[slot].count += count;
        return true;
    }
    if (top->count == limit_of(top) && !prune(top)) return false;
    if (2 * (top->count + 1) > top->capacity && !rebuild(top, 2 * top->capacity, 0)) return false;
    put(top, key, text, count);
    return true;
}

bool top_add_number(top *top, int64_t number, uint64_t count)
{
    assert(!top->is_text);
    return add(top, (uint64_t)number, (mr_string){0}, count);
}

bool top_add_text(top *top, mr_string text, uint64_t count)
{
    assert(top->is_text && text.size_bytes <= TOP_TEXT_MAX);
    return add(top, hash_text(text), text, count);
}

bool top_merge(top *top, const struct top *other)
{
    assert(top->is_text == other->is_text);
    uint64_t total = top->total + other->total;
    for (uint32_t i = 0; i < other->capacity; i++)
        if (other->slots[i].count > 0 && !add(top, other->slots[i].key, text_of(other, i), other->slots[i].count))
            return false;
    top->error += other->error;
    top->total = total;
    return true;
}

static top_entry entry_of(const top *top, uint32_t slot)
{
    top_entry entry = {.count = top->slots[slot].count, .text = text_of(top, slot)};
    if (!top->is_text) entry.number = (int64_t)top->slots[slot].key;
    return entry;
}

static int compare_entries(const void *a, const void *b)
{
    const top_entry *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    size_t common = x->text.size_bytes < y->text.size_bytes ? x->text.size_bytes : y->text.size_bytes;
    int order = common > 0 ? memcmp(x->text.data, y->text.data, common) : 0;
    if (order != 0) return order;
    return x->text.size_bytes < y->text.size_bytes ? -1 : x->text.size_bytes > y->text.size_bytes;
}

/* Inserts the entry into sorted ones; the last may be dropped. */
static size_t insert(top_entry *entries, size_t count, size_t most, top_entry entry)
{
    size_t at = count;
    if (count < most)
        count++;
    else if (compare_entries(&entry, &entries[--at]) >= 0)
        return count;
    for (; at > 0 && compare_entries(&entry, &entries[at - 1]) < 0; at--) entries[at] = entries[at - 1];
    entries[at] = entry;
    return count;
}

size_t top_list(const top *top, top_entry *entries, size_t most)
{
    size_t count = 0;
    if (most == 0) return 0;
    for (uint32_t i = 0; i < top->capacity; i++) {
        if (top->slots[i].count == 0) continue;
        if (most >= top->count)
            entries[count++] = entry_of(top, i);
        else
            count = insert(entries, count, most, entry_of(top, i));
    }
    if (most >= top->count && count > 0) qsort(entries, count, sizeof(*entries), compare_entries);
    return count;
}

uint64_t top_number_count(const top *top, int64_t number)
{
    return top->capacity ? top->slots[find(top, (uint64_t)number, (mr_string){0})].count : 0;
}

uint64_t top_text_count(const top *top, mr_string text)
{
    return top->capacity ? top->slots[find(top, hash_text(text), text)].count : 0;
}

uint64_t top_below(const top *top, int64_t number)
{
    uint64_t below = 0;
    for (uint32_t i = 0; i < top->capacity; i++)
        if ((int64_t)top->slots[i].key < number) below += top->slots[i].count;
    return below;
}

int64_t top_quantile(const top *top, double rank)
{
    uint64_t sum = 0;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (uint32_t i = 0; i < top->capacity; i++) {
        int64_t number = (int64_t)top->slots[i].key;
        if (top->slots[i].count == 0) continue;
        sum += top->slots[i].count;
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    if (sum == 0) return 0;
    uint64_t wanted = (uint64_t)ceil(rank * (double)sum);
    /* The smallest number with enough counts at or below it. */
    while (least < most) {
        int64_t middle = least + (int64_t)(((uint64_t)most - (uint64_t)least) / 2);
        if (top_below(top, middle + 1) >= wanted)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}

size_t top_size_bytes(const top *top)
{
    return sizeof(*top) + top->capacity * (sizeof(top_slot) + (top->is_text ? TOP_TEXT_MAX : 0));
}

void top_deinit(top *top)
{
    free(top->slots);
    free(top->texts);
    top->slots = nullptr;
    top->texts = nullptr;
    top->count = top->capacity = 0;
}
