/* The registry of operators that name a resource. */
#include "graph/state/state.h"

#include <assert.h>
#include <string.h>

static const mr_state_table *const *tables;
static size_t table_count;

void mr_state_tables_register(const mr_state_table *const *all, size_t count)
{
    assert(tables == nullptr);
    tables = all;
    table_count = count;
}

const mr_state_row *mr_state_find(const char *op)
{
    assert(tables != nullptr); /* see builtin/builtin.h */
    for (size_t i = 0; i < table_count; i++)
        for (size_t j = 0; j < tables[i]->count; j++)
            if (strcmp(tables[i]->rows[j].op, op) == 0) return &tables[i]->rows[j];
    return nullptr;
}
