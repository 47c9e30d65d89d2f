/* A hash table from feature names to their numbers; the parser looks up each entry of each record in it. Complete names
 * are compared, so a match is exact. */
#ifndef MR_RECORDS_EXAMPLE_NAMES_H
#define MR_RECORDS_EXAMPLE_NAMES_H

#include "base/bytes.h"

#include <millrace/tensor.h>

#include <string.h>

typedef struct mr_example_names {
    const mr_string *names; /* borrowed */
    int32_t count;
    uint64_t seed;
    uint32_t mask;
    int32_t *table; /* mask + 1 numbers, -1 for an empty cell */
} mr_example_names;

/* names  borrowed; each has a non-null pointer, even if it is empty
 * returns  false if memory is exhausted */
[[nodiscard]] bool mr_example_names_init(mr_example_names *table, const mr_string *names, int32_t count);
void mr_example_names_deinit(mr_example_names *table);

static inline bool mr_example_name_equal(const unsigned char *a, const unsigned char *b, size_t size)
{
    if (size < 8) {
        for (size_t i = 0; i < size; i++)
            if (a[i] != b[i]) return false;
        return true;
    }
    for (size_t i = 0; i + 8 < size; i += 8)
        if (mr_load_le64(a + i) != mr_load_le64(b + i)) return false;
    return mr_load_le64(a + size - 8) == mr_load_le64(b + size - 8);
}

static inline uint64_t mr_example_name_hash(const unsigned char *name, size_t size, uint64_t seed)
{
    uint64_t hash = seed ^ size;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        hash = (hash ^ mr_load_le64(name + i)) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    if (size % 8 != 0) {
        uint64_t word = 0;
        memcpy(&word, name + size / 8 * 8, size % 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The number of a name, or -1. */
static inline int32_t mr_example_name_find(const mr_example_names *table, const unsigned char *name, size_t size)
{
    for (uint32_t at = (uint32_t)mr_example_name_hash(name, size, table->seed) & table->mask;;
         at = (at + 1) & table->mask) {
        int32_t number = table->table[at];
        if (number < 0) return -1;
        const mr_string *known = &table->names[number];
        if (known->size_bytes == size && mr_example_name_equal(name, (const unsigned char *)known->data, size))
            return number;
    }
}

/* ---- Guessing ----
 *
 * Successive records of a file usually have the same features in the same order, so entry n is first compared with the
 * name of entry n of the previous record, and looked up only if it differs. */

/* Maximum number of entries of a record whose names are remembered. */
static constexpr size_t MR_EXAMPLE_GUESSES_MAX = 64;

/* The names of the previous record's entries, as views into its bytes, and their numbers (-1: not requested). */
typedef struct mr_example_guesses {
    size_t count;
    struct {
        const unsigned char *name;
        size_t size;
        int32_t number;
    } items[MR_EXAMPLE_GUESSES_MAX];
} mr_example_guesses;

static inline int32_t mr_example_guess(const mr_example_names *table, mr_example_guesses *guesses, size_t position,
                                       const unsigned char *name, size_t size)
{
    if (position < guesses->count && guesses->items[position].size == size &&
        mr_example_name_equal(name, guesses->items[position].name, size))
        return guesses->items[position].number;
    int32_t number = mr_example_name_find(table, name, size);
    if (position < MR_EXAMPLE_GUESSES_MAX && position <= guesses->count) {
        guesses->items[position].name = name;
        guesses->items[position].size = size;
        guesses->items[position].number = number;
        if (position == guesses->count) guesses->count++;
    }
    return number;
}

#endif
