/* The registry: all registered rows, parsed on first use and sorted by name, with their gradients. It never changes
 * afterwards, so lookups need no lock. */
#include "graph/ir/signature.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static const mr_op_table *const *op_tables;
static size_t op_table_count;
static const mr_gradient_table *const *gradient_tables;
static size_t gradient_table_count;

static once_flag parsed = ONCE_FLAG_INIT;
static mr_arena arena;
static const mr_op_def **defs;
static int32_t def_count;

void mr_op_tables_register(const mr_op_table *const *tables, size_t count)
{
    assert(op_tables == nullptr && defs == nullptr);
    op_tables = tables;
    op_table_count = count;
}

void mr_gradient_tables_register(const mr_gradient_table *const *tables, size_t count)
{
    assert(gradient_tables == nullptr && defs == nullptr);
    gradient_tables = tables;
    gradient_table_count = count;
}

static int compare_names(const void *a, const void *b)
{
    const mr_op_def *const *left = a, *const *right = b;
    return strcmp((*left)->op->name, (*right)->op->name);
}

static const mr_op_def *find(const char *name)
{
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

static const mr_op *row_named(const char *name)
{
    for (size_t i = 0; i < op_table_count; i++)
        for (size_t j = 0; j < op_tables[i]->count; j++)
            if (strcmp(op_tables[i]->ops[j].name, name) == 0) return &op_tables[i]->ops[j];
    return nullptr;
}

/* The row, with what it takes from another one; null if memory is exhausted. */
static const mr_op *complete_row(const mr_op *row)
{
    if (row->same_as == nullptr) return row;
    const mr_op *original = row_named(row->same_as);
    assert(original != nullptr && original->same_as == nullptr);
    mr_op *made = MR_ARENA_NEW(&arena, mr_op, 1);
    if (made == nullptr) return nullptr;
    *made = *original;
    made->name = row->name;
    if (row->attrs != nullptr) made->attrs = row->attrs;
    made->builder = row->builder;
    made->doc = row->doc;
    made->same_as = row->same_as;
    return made;
}

/* complete: every row was parsed; otherwise memory was exhausted. */
static void add_gradients([[maybe_unused]] bool complete)
{
    for (size_t i = 0; i < gradient_table_count; i++)
        for (size_t j = 0; j < gradient_tables[i]->count; j++) {
            const mr_gradient *gradient = &gradient_tables[i]->gradients[j];
            mr_op_def *def = (mr_op_def *)find(gradient->op);
            assert(def != nullptr ? def->gradient == nullptr : !complete);
            if (def != nullptr) def->gradient = gradient->function;
        }
    for (int32_t i = 0; i < def_count; i++) {
        const mr_op_def *original = defs[i]->op->same_as != nullptr ? find(defs[i]->op->same_as) : nullptr;
        if (original != nullptr) ((mr_op_def *)defs[i])->gradient = original->gradient;
    }
}

static void parse_tables(void)
{
    assert(op_tables != nullptr); /* see builtin/builtin.h */
    size_t total = 0;
    for (size_t i = 0; i < op_table_count; i++) total += op_tables[i]->count;
    mr_op_def *parsed_defs = MR_ARENA_NEW(&arena, mr_op_def, total);
    defs = MR_ARENA_NEW(&arena, const mr_op_def *, total);
    if (parsed_defs == nullptr || defs == nullptr) return;
    for (size_t i = 0; i < op_table_count; i++)
        for (size_t j = 0; j < op_tables[i]->count; j++) {
            mr_op_def *def = &parsed_defs[def_count];
            const mr_op *row = complete_row(&op_tables[i]->ops[j]);
            mr_status status = row != nullptr ? mr_op_def_parse(row, &arena, def, nullptr) : MR_RESOURCE_EXHAUSTED;
            assert(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
            if (status == MR_OK) defs[def_count++] = def;
        }
    qsort(defs, (size_t)def_count, sizeof *defs, compare_names);
    add_gradients((size_t)def_count == total);
}

const mr_op_def *mr_op_find(const char *name)
{
    call_once(&parsed, parse_tables);
    return find(name);
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
