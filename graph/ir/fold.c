/* The helpers of fold functions, and the call of a node's fold function. */
#include "graph/ir/fold.h"

#include "graph/ir/graph.h"
#include <assert.h>

const mr_partial *mr_fold_input(const mr_folding *f, int32_t index)
{
    if (index >= f->node->input_count) return nullptr;
    mr_output output = f->node->inputs[index];
    return output.index < output.node->output_count ? output.node->outputs[output.index].value : nullptr;
}

bool mr_fold_knows(const mr_partial *partial, int32_t index)
{
    assert(index >= 0);
    return partial->known >> index & 1;
}

bool mr_fold_is_whole(const mr_partial *partial)
{
    for (int32_t i = 0; partial != nullptr && i < partial->count; i++)
        if (!mr_fold_knows(partial, i)) return false;
    return partial != nullptr;
}

bool mr_fold_scalar(const mr_folding *f, int32_t index, int64_t *value)
{
    const mr_partial *partial = mr_fold_input(f, index);
    if (partial == nullptr || partial->count != 1 || !mr_fold_knows(partial, 0)) return false;
    *value = partial->values[0];
    return true;
}

bool mr_fold_push(mr_folding *f, bool known, int64_t value)
{
    if (f->count == MR_PARTIAL_MAX) return false;
    if (known) f->known |= 1ull << f->count;
    f->values[f->count++] = known ? value : -1;
    return true;
}

bool mr_fold_push_element(mr_folding *f, const mr_partial *partial, int64_t index)
{
    return mr_fold_push(f, mr_fold_knows(partial, (int32_t)index), partial->values[index]);
}

bool mr_fold_copy(mr_folding *f, const mr_partial *partial)
{
    for (int32_t i = 0; partial != nullptr && i < partial->count; i++)
        if (!mr_fold_push_element(f, partial, i)) return false;
    return partial != nullptr;
}

bool mr_fold_fits(const mr_folding *f, int64_t value)
{
    return f->node->outputs[f->output].dtype == MR_INT64 || (value >= INT32_MIN && value <= INT32_MAX);
}

bool mr_fold_pass(mr_folding *f)
{
    return mr_fold_copy(f, mr_fold_input(f, f->output));
}

/* Identity, IdentityN and similar operators have one output for each input; all outputs of the others are computed from
 * the same inputs. */
static mr_status fold_output(mr_node *node, int32_t index, mr_fold_function fold, mr_error *error)
{
    mr_node_output *output = &node->outputs[index];
    bool is_integer = output->dtype == MR_INT32 || output->dtype == MR_INT64;
    if (!is_integer || output->shape.rank < 0 || output->shape.rank > 1) return MR_OK;
    mr_folding f = {.node = node, .output = index, .rank = output->shape.rank};
    if (!fold(&f) || f.known == 0) return MR_OK;
    int64_t expected = mr_shape_count(output->shape);
    if (expected >= 0 && expected != f.count) return MR_OK;
    mr_partial *value = MR_ARENA_NEW(&node->graph->arena, mr_partial, 1);
    if (value == nullptr) return mr_fail_memory(error, sizeof *value);
    *value = (mr_partial){.rank = f.rank, .count = f.count, .known = f.known};
    value->values = mr_arena_copy(&node->graph->arena, f.values, (size_t)f.count * sizeof f.values[0]);
    if (value->values == nullptr) return mr_fail_memory(error, sizeof f.values);
    for (int32_t i = 0; i < f.count; i++)
        if (mr_fold_knows(value, i) && !mr_fold_fits(&f, value->values[i])) value->known &= ~(1ull << i);
    if (f.rank == 1 && output->shape.dims[0] < 0) output->shape.dims[0] = f.count;
    output->value = value;
    return MR_OK;
}

mr_status mr_node_fold(mr_node *node, mr_error *error)
{
    mr_fold_function fold = node->def == nullptr ? nullptr : node->def->op->fold;
    for (int32_t i = 0; fold != nullptr && i < node->output_count; i++) MR_TRY(fold_output(node, i, fold, error));
    return MR_OK;
}
