/* A set of tags: a sorted array, because there are few and most additions are of one that is known. */
#include "records/event/tags.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The index of the first tag that is not less. */
static size_t lower_bound(const mr_tag_set *set, const char *tag)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(set->items[middle], tag) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool mr_tag_set_contains(const mr_tag_set *set, const char *tag)
{
    size_t at = lower_bound(set, tag);
    return at < set->count && strcmp(set->items[at], tag) == 0;
}

mr_status mr_tag_set_add(mr_tag_set *set, const char *tag, mr_error *error)
{
    size_t at = lower_bound(set, tag);
    if (at < set->count && strcmp(set->items[at], tag) == 0) return MR_OK;
    if (set->count == set->capacity) {
        size_t capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
        char **items = reallocarray(set->items, capacity, sizeof *items);
        if (items == nullptr) return mr_fail_memory(error, capacity * sizeof *items);
        set->items = items;
        set->capacity = capacity;
    }
    char *copy = strdup(tag);
    if (copy == nullptr) return mr_fail_memory(error, strlen(tag));
    memmove(set->items + at + 1, set->items + at, (set->count - at) * sizeof *set->items);
    set->items[at] = copy;
    set->count++;
    assert(set->count <= set->capacity);
    return MR_OK;
}

void mr_tag_set_deinit(mr_tag_set *set)
{
    for (size_t i = 0; i < set->count; i++) free(set->items[i]);
    free(set->items);
    *set = (mr_tag_set){0};
}
