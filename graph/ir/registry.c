/* The registry: all rows of graph/ops, parsed on first use and sorted by name. It never changes afterwards, so lookups
 * need no lock. */
#include "graph/ir/signature.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static once_flag parsed = ONCE_FLAG_INIT;
static mr_arena arena;
static const mr_op_def **defs;
static int32_t def_count;

static int compare_names(const void *a, const void *b)
{
    const mr_op_def *const *left = a, *const *right = b;
    return strcmp((*left)->op->name, (*right)->op->name);
}

static void parse_tables(void)
{
    size_t total = 0;
    for (size_t i = 0; i < mr_op_table_count; i++) total += mr_op_tables[i]->count;
    mr_op_def *parsed_defs = MR_ARENA_NEW(&arena, mr_op_def, total);
    defs = MR_ARENA_NEW(&arena, const mr_op_def *, total);
    if (parsed_defs == nullptr || defs == nullptr) return;
    for (size_t i = 0; i < mr_op_table_count; i++)
        for (size_t j = 0; j < mr_op_tables[i]->count; j++) {
            mr_op_def *def = &parsed_defs[def_count];
            mr_status status = mr_op_def_parse(&mr_op_tables[i]->ops[j], &arena, def, nullptr);
            assert(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
            if (status == MR_OK) defs[def_count++] = def;
        }
    qsort(defs, (size_t)def_count, sizeof *defs, compare_names);
}

const mr_op_def *mr_op_find(const char *name)
{
    call_once(&parsed, parse_tables);
    int32_t low = 0, high = def_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(defs[middle]->op->name, name);
        if (order == 0) return defs[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return nullptr;
}

int32_t mr_op_count(void)
{
    call_once(&parsed, parse_tables);
    return def_count;
}

const mr_op_def *mr_op_at(int32_t index)
{
    call_once(&parsed, parse_tables);
    assert(index >= 0 && index < def_count);
    return defs[index];
}
