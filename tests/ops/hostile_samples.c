/* The list of all samples. */
#include "tests/ops/sample.h"

#include <assert.h>

static hostile_sample_table *first;

void hostile_samples_register(hostile_sample_table *table)
{
    table->next = first;
    first = table;
}

int hostile_sample_count(void)
{
    int count = 0;
    for (const hostile_sample_table *table = first; table != nullptr; table = table->next) count += table->count;
    return count;
}

const hostile_sample *hostile_sample_at(int index)
{
    const hostile_sample_table *table = first;
    for (; index >= table->count; table = table->next) index -= table->count;
    assert(index >= 0);
    return &table->samples[index];
}
