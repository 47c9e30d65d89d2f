/* The hash table of names. It has at least four cells for each name, and several seeds are tried to avoid collisions:
 * finding a requested name usually takes one comparison, rejecting another name usually none. */
#include "records/example/example_names.h"

#include <assert.h>
#include <stdlib.h>

/* Fills the table with a seed. Returns the number of names that are not in the cell of their hash. Equal names stay in
 * order. */
static int32_t fill(mr_example_names *table, uint64_t seed)
{
    assert(table->count >= 0 && (uint32_t)table->count <= table->mask);
    int32_t displaced = 0;
    table->seed = seed;
    for (uint32_t i = 0; i <= table->mask; i++) table->table[i] = -1;
    for (int32_t i = 0; i < table->count; i++) {
        mr_string name = table->names[i];
        uint32_t home =
            (uint32_t)mr_example_name_hash((const unsigned char *)name.data, name.size_bytes, seed) & table->mask;
        uint32_t at = home;
        while (table->table[at] >= 0) at = (at + 1) & table->mask;
        table->table[at] = i;
        displaced += at != home;
    }
    return displaced;
}

bool mr_example_names_init(mr_example_names *table, const mr_string *names, int32_t count)
{
    uint32_t size = 8;
    while (size < 4 * (uint32_t)count) size *= 2;
    *table = (mr_example_names){
        .names = names, .count = count, .mask = size - 1, .table = malloc(size * sizeof *table->table)};
    if (table->table == nullptr) return false;
    assert((size & (size - 1)) == 0 && size >= 4 * (uint32_t)count);
    uint64_t best_seed = 0;
    int32_t best = INT32_MAX;
    for (uint64_t seed = 0; seed < 32 && best > 0; seed++) {
        int32_t displaced = fill(table, seed);
        if (displaced < best) {
            best = displaced;
            best_seed = seed;
        }
    }
    (void)fill(table, best_seed);
    return true;
}

void mr_example_names_deinit(mr_example_names *table)
{
    free(table->table);
    *table = (mr_example_names){0};
}
