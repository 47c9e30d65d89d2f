/* A KLL sketch; see sketch.h. Capacities shrink by a third from the top level down. Upper levels are always sorted, so
 * moving keys up is a merge; only keys added at the bottom are sorted. */
#include "common/stats/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Capacity of the top level, in keys. */
static constexpr uint32_t TOP_CAPACITY = SKETCH_EXACT;
/* Minimum capacity of a level. */
static constexpr uint32_t LOW_CAPACITY = 8;
/* Number of keys that are sorted at once. */
static constexpr size_t AT_ONCE = 512;
/* Fewer keys than this are sorted by insertion. */
static constexpr size_t INSERTION_MAX = 24;

int64_t sketch_key(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

double sketch_value(int64_t key)
{
    double value;
    if (key < 0) key ^= INT64_MAX;
    memcpy(&value, &key, sizeof(value));
    return value;
}

/* A radix sort from the lowest byte; a byte that is the same in all keys costs no pass. */
static void sort_by_bytes(int64_t *keys, size_t count, int64_t *scratch)
{
    uint32_t counts[8][256] = {0};
    int64_t *from = keys, *to = scratch;
    for (size_t i = 0; i < count; i++) {
        uint64_t key = (uint64_t)keys[i] ^ (uint64_t)INT64_MIN;
        for (int byte = 0; byte < 8; byte++) counts[byte][key >> 8 * byte & 255]++;
    }
    for (int byte = 0; byte < 8; byte++) {
        uint32_t *places = counts[byte], sum = 0;
        uint64_t first = (uint64_t)from[0] ^ (uint64_t)INT64_MIN;
        if (places[first >> 8 * byte & 255] == count) continue;
        for (int i = 0; i < 256; i++) {
            uint32_t here = places[i];
            places[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[places[((uint64_t)from[i] ^ (uint64_t)INT64_MIN) >> 8 * byte & 255]++] = from[i];
        int64_t *other = from;
        from = to;
        to = other;
    }
    if (from != keys) memcpy(keys, from, count * sizeof(*keys));
}

void sketch_sort(int64_t *keys, size_t count, int64_t *scratch)
{
    if (count > INSERTION_MAX) {
        sort_by_bytes(keys, count, scratch);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        int64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static uint32_t capacity_of(const sketch *sketch, int level)
{
    uint32_t capacity = TOP_CAPACITY;
    for (int i = sketch->level_count - 1; i > level && capacity > LOW_CAPACITY; i--) capacity = (2 * capacity + 2) / 3;
    return capacity > LOW_CAPACITY ? capacity : LOW_CAPACITY;
}

static bool reserve(sketch_level *level, uint32_t count)
{
    if (count <= level->capacity) return true;
    uint32_t capacity = level->capacity < 8 ? 8 : level->capacity;
    while (capacity < count) capacity += capacity / 2;
    int64_t *grown = realloc(level->keys, capacity * sizeof(*grown));
    if (!grown) return false;
    level->keys = grown;
    level->capacity = capacity;
    return true;
}

/* Releases memory that a level needed only as the top level. */
static void shrink(sketch_level *level, uint32_t count)
{
    if (level->capacity <= 2 * count + LOW_CAPACITY || level->count > count) return;
    int64_t *less = realloc(level->keys, count * sizeof(*less));
    if (!less) return;
    level->keys = less;
    level->capacity = count;
}

/* Merges sorted keys into a sorted level that has room for them. */
static void merge_sorted(sketch_level *level, const int64_t *keys, uint32_t count)
{
    uint32_t left = level->count, to = left + count;
    level->count = to;
    while (count > 0) {
        if (left > 0 && level->keys[left - 1] > keys[count - 1])
            level->keys[--to] = level->keys[--left];
        else
            level->keys[--to] = keys[--count];
    }
}

static uint64_t toss(sketch *sketch, int64_t key, int level)
{
    uint64_t coin = (sketch->coin ^ (uint64_t)key) + ((uint64_t)level + 1) * 0x9e3779b97f4a7c15u;
    coin = (coin ^ coin >> 30) * 0xbf58476d1ce4e5b9u;
    coin = (coin ^ coin >> 27) * 0x94d049bb133111ebu;
    return sketch->coin = coin ^ coin >> 31;
}

/* Halves a level: every second key moves up, starting with the first or second as the coin decides; if the number is
 * odd, the smallest or largest key stays. */
static bool compact(sketch *sketch, int number)
{
    sketch_level *level = &sketch->levels[number], *above = level + 1;
    uint32_t half = level->count / 2;
    assert(half > 0 && number + 1 < SKETCH_LEVELS_MAX);
    if (!reserve(above, above->count + half)) return false;
    if (sketch->level_count == number + 1) sketch->level_count++;
    uint64_t coin = toss(sketch, level->keys[half], number);
    uint32_t stays = level->count & 1, begin = stays && coin & 2 ? 1 : 0;
    int64_t kept = level->keys[begin ? 0 : level->count - 1];
    for (uint32_t i = 0; i < half; i++) level->keys[i] = level->keys[begin + 2 * i + (coin & 1)];
    merge_sorted(above, level->keys, half);
    level->keys[0] = kept;
    level->count = stays;
    shrink(level, capacity_of(sketch, number));
    return true;
}

/* Compacts from the bottom until the sketch has its intended size. */
static bool compress(sketch *sketch)
{
    for (;;) {
        uint64_t count = 0, capacity = 0;
        int full = -1;
        for (int i = 0; i < sketch->level_count; i++) {
            uint32_t most = capacity_of(sketch, i);
            count += sketch->levels[i].count;
            capacity += most;
            if (full < 0 && sketch->levels[i].count >= most) full = i;
        }
        if (count <= capacity || full < 0 || full + 1 == SKETCH_LEVELS_MAX) return true;
        if (!compact(sketch, full)) return false;
    }
}

static bool add_sorted(sketch *sketch, const int64_t *keys, uint32_t count, int level)
{
    assert(level < SKETCH_LEVELS_MAX);
    if (!reserve(&sketch->levels[level], sketch->levels[level].count + count)) return false;
    if (sketch->level_count <= level) sketch->level_count = level + 1;
    merge_sorted(&sketch->levels[level], keys, count);
    sketch->weight += (uint64_t)count << level;
    return true;
}

bool sketch_add(sketch *sketch, const int64_t *keys, size_t count, int level)
{
    int64_t sorted[AT_ONCE], scratch[AT_ONCE];
    while (count > 0) {
        size_t part = count < AT_ONCE ? count : AT_ONCE;
        memcpy(sorted, keys, part * sizeof(*keys));
        sketch_sort(sorted, part, scratch);
        if (!add_sorted(sketch, sorted, (uint32_t)part, level) || !compress(sketch)) return false;
        keys += part;
        count -= part;
    }
    return true;
}

bool sketch_merge(sketch *sketch, const struct sketch *other)
{
    for (int i = 0; i < other->level_count; i++)
        if (other->levels[i].count > 0 && !add_sorted(sketch, other->levels[i].keys, other->levels[i].count, i))
            return false;
    return compress(sketch);
}

/* The level with the smallest remaining key; places are the indexes of the levels' next keys. */
static int least(const sketch *sketch, const uint32_t *places)
{
    int found = -1;
    for (int i = 0; i < sketch->level_count; i++) {
        if (places[i] == sketch->levels[i].count) continue;
        if (found < 0 || sketch->levels[i].keys[places[i]] < sketch->levels[found].keys[places[found]]) found = i;
    }
    return found;
}

int64_t sketch_quantile(const sketch *sketch, double rank)
{
    uint32_t places[SKETCH_LEVELS_MAX] = {0};
    uint64_t passed = 0, wanted = (uint64_t)ceil(rank * (double)sketch->weight);
    int64_t key = 0;
    for (int level; (level = least(sketch, places)) >= 0;) {
        key = sketch->levels[level].keys[places[level]++];
        passed += (uint64_t)1 << level;
        if (passed >= wanted) break;
    }
    return key;
}

uint64_t sketch_below(const sketch *sketch, int64_t key)
{
    uint64_t below = 0;
    for (int i = 0; i < sketch->level_count; i++) {
        const sketch_level *level = &sketch->levels[i];
        uint32_t begin = 0, end = level->count;
        while (begin < end) {
            uint32_t middle = begin + (end - begin) / 2;
            if (level->keys[middle] < key)
                begin = middle + 1;
            else
                end = middle;
        }
        below += (uint64_t)begin << i;
    }
    return below;
}

size_t sketch_size_bytes(const sketch *sketch)
{
    size_t size = sizeof(*sketch);
    for (int i = 0; i < SKETCH_LEVELS_MAX; i++) size += sketch->levels[i].capacity * sizeof(int64_t);
    return size;
}

void sketch_deinit(sketch *sketch)
{
    for (int i = 0; i < SKETCH_LEVELS_MAX; i++) free(sketch->levels[i].keys);
    *sketch = (struct sketch){0};
}
