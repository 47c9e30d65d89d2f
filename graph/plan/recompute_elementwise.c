/* Recompute elementwise: sums, differences and products that operators need at once, and other elementwise ones only
 * much later, are computed again there: the normalization of a layer, in its gradient. What they are computed from is
 * kept until then anyway. They become part of the calls that read them (see fuse_elementwise.c), so this costs little,
 * and saves the memory that they have in between, and the time to write and to read it. What is not needed at once is
 * computed there only. The results are the same.
 *
 * The session's option no_recompute turns the pass off. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int32_t FAR = 256;         /* positions in the topological order, of which a layer has about 100 */
constexpr int64_t BYTES_MIN = 65536; /* smaller values do not repay a computation */
constexpr int64_t SMALL = 16;        /* what has a part of that size may be kept longer for it */
constexpr int64_t UNKNOWN_DIM = 32;  /* the size of a batch that is not known, for an estimate */

typedef struct recomputer {
    mr_planner *planner;
    int32_t *position;                   /* by node */
    int32_t *last_use;                   /* by value: the position of the last node that reads it; or INT32_MAX */
    int32_t *again;                      /* by value: its second computation; -1: none */
    int32_t *first_reader, *next_reader; /* lists by value, and by node and input: numbers of inputs */
    int32_t *input_begin;                /* by node: the number of its first input */
    int32_t old_values;                  /* those that are not second computations */
    const bool *awaited;
} recomputer;

static int64_t estimated_bytes(const mr_plan_value *value)
{
    int64_t bytes = value->shape.rank < 0 ? 0 : (int64_t)mr_dtype_size(value->dtype);
    for (int i = 0; i < value->shape.rank; i++)
        if (__builtin_mul_overflow(bytes, value->shape.dims[i] < 0 ? UNKNOWN_DIM : value->shape.dims[i], &bytes))
            return INT64_MAX;
    return bytes;
}

static bool is_cheap(const recomputer *r, int32_t index)
{
    static const char *const ops[] = {"Add", "AddV2", "Mul", "Neg", "Sub"};
    const mr_planner *planner = r->planner;
    const mr_plan_node *node = &planner->nodes[index];
    if (!node->live || node->attrs || r->awaited[index] || node->control_count > 0 || node->outputs_at ||
        node->output_count != 1 || !mr_plan_may_drop(planner, node) || node->device->kind != MR_DEVICE_CPU)
        return false;
    const mr_plan_value *value = &planner->values[node->first_output];
    if (value->fetched || (value->dtype != MR_FLOAT && value->dtype != MR_DOUBLE)) return false;
    if (estimated_bytes(value) < BYTES_MIN) return false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(node->kernel->op, ops[i]) == 0) return true;
    return false;
}

/* Whether a reader can compute its operand in the same call. */
static bool absorbs(const mr_planner *planner, const mr_plan_node *node)
{
    mr_elementwise loops;
    const mr_dtype dtype = planner->values[node->inputs[0]].dtype;
    return node->kernel && !node->attrs && node->device->kind == MR_DEVICE_CPU && node->control_count == 0 &&
           node->kernel->elementwise && node->kernel->elementwise(dtype, &loops) &&
           (!loops.reduce || mr_plan_reduces_rows(planner, node));
}

typedef struct readers {
    int32_t near, far;   /* their numbers */
    int32_t first, last; /* positions of those that are far */
    int32_t first_node;
    bool is_absorbed; /* by all that are far */
} readers;

static int32_t node_of_input(const recomputer *r, int32_t input)
{
    int32_t low = 0, high = r->planner->node_count;
    while (high - low > 1) { /* the last node whose inputs begin there or before */
        const int32_t middle = low + (high - low) / 2;
        if (r->input_begin[middle] <= input)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static readers find_readers(const recomputer *r, int32_t value, int32_t position)
{
    readers found = {.first = INT32_MAX, .is_absorbed = true};
    for (int32_t i = r->first_reader[value]; i >= 0; i = r->next_reader[i]) {
        const int32_t node = node_of_input(r, i), at = r->position[node];
        if (at - position <= FAR) {
            found.near++;
            continue;
        }
        found.far++;
        if (at < found.first) {
            found.first = at;
            found.first_node = node;
        }
        if (at > found.last) found.last = at;
        found.is_absorbed &= absorbs(r->planner, &r->planner->nodes[node]);
    }
    return found;
}

/* Whether a value is in memory about the position in any case, or is a small part of what is not kept for it. */
static bool is_there(const recomputer *r, int32_t value, int32_t position, int64_t bytes)
{
    const mr_plan_value *v = &r->planner->values[value];
    if (v->is_ref || mr_plan_variable_of(r->planner, value) >= 0) return false;
    if (v->kind != MR_VALUE_OUTPUT || v->fetched || value >= r->old_values || r->again[value] >= 0) return true;
    return r->last_use[value] >= position - FAR || estimated_bytes(v) <= bytes / SMALL;
}

static mr_status compute_again(recomputer *r, int32_t index, mr_error *error)
{
    mr_planner *planner = r->planner;
    const mr_plan_node *node = &planner->nodes[index];
    const int32_t output = node->first_output;
    const readers found = find_readers(r, output, r->position[index]);
    if (found.far == 0 || !found.is_absorbed || found.last - found.first > FAR) return MR_OK;
    assert(found.first > r->position[index] + FAR && found.last >= found.first && output < r->old_values);
    const int64_t bytes = estimated_bytes(&planner->values[output]);
    for (int32_t i = 0; i < node->input_count; i++)
        if (!is_there(r, node->inputs[i], found.first, bytes)) return MR_OK;
    mr_plan_node second = *node;
    mr_plan_value value = planner->values[output];
    second.place = planner->nodes[found.first_node].place;
    second.inputs = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)node->input_count);
    if (!second.inputs) return mr_fail_memory(error, sizeof second);
    for (int32_t i = 0; i < node->input_count; i++) {
        const int32_t input = node->inputs[i], again = input < r->old_values ? r->again[input] : -1;
        second.inputs[i] = again >= 0 ? again : input;
        if (second.inputs[i] < r->old_values && r->last_use[input] < found.last) r->last_use[input] = found.last;
    }
    if (found.near > 0) MR_TRY(mr_plan_second_name(planner, node->node, &second.name, error));
    MR_TRY(mr_plan_add_node(planner, second, &value.producer, error));
    MR_TRY(mr_plan_add_value(planner, value, &r->again[output], error));
    planner->nodes[value.producer].first_output = r->again[output];
    planner->nodes[index].live = found.near > 0; /* otherwise it is only computed later */
    for (int32_t i = r->first_reader[output]; i >= 0; i = r->next_reader[i]) {
        const int32_t reader = node_of_input(r, i);
        if (r->position[reader] - r->position[index] > FAR)
            planner->nodes[reader].inputs[i - r->input_begin[reader]] = r->again[output];
    }
    return MR_OK;
}

static mr_status find_uses(recomputer *r, const int32_t *order, int32_t count, mr_error *error)
{
    mr_planner *planner = r->planner;
    const size_t nodes = (size_t)planner->node_count + 1, values = (size_t)planner->value_count + 1;
    int32_t inputs = 0;
    r->position = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    r->input_begin = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    r->last_use = MR_ARENA_NEW(&planner->arena, int32_t, values);
    r->again = MR_ARENA_NEW(&planner->arena, int32_t, values);
    r->first_reader = MR_ARENA_NEW(&planner->arena, int32_t, values);
    if (!r->position || !r->input_begin || !r->last_use || !r->again || !r->first_reader)
        return mr_fail_memory(error, values * sizeof *r->again);
    for (int32_t i = 0; i < planner->node_count; i++) {
        r->input_begin[i] = inputs;
        inputs += planner->nodes[i].input_count;
    }
    r->next_reader = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)inputs + 1);
    if (!r->next_reader) return mr_fail_memory(error, (size_t)inputs * sizeof *r->next_reader);
    for (int32_t i = 0; i < planner->value_count; i++) r->again[i] = r->first_reader[i] = -1;
    for (int32_t at = 0; at < count; at++) {
        const mr_plan_node *node = &planner->nodes[order[at]];
        r->position[order[at]] = at;
        for (int32_t j = 0; j < node->input_count; j++) {
            const int32_t value = node->inputs[j], input = r->input_begin[order[at]] + j;
            r->last_use[value] = at;
            r->next_reader[input] = r->first_reader[value];
            r->first_reader[value] = input;
        }
    }
    return MR_OK;
}

mr_status mr_plan_recompute_elementwise(mr_planner *planner, mr_error *error)
{
    recomputer r = {.planner = planner, .old_values = planner->value_count};
    int32_t *order, count;
    bool *awaited;
    if (planner->context->options->no_recompute || planner->has_flow) return MR_OK;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    MR_TRY(mr_plan_awaited(planner, &awaited, error));
    r.awaited = awaited;
    MR_TRY(find_uses(&r, order, count, error));
    for (int32_t i = 0; i < count; i++)
        if (is_cheap(&r, order[i])) MR_TRY(compute_again(&r, order[i], error));
    return MR_OK;
}
