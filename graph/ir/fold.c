/* Folding: computes what is known of small integer tensors while a graph is built, so that a shape computed by
 * operators (for example a reshape to a batch size packed with constants) is inferred as far as possible.
 *
 * A folding function gets a node and sets the values of one output. It returns false if nothing is known. Sums and
 * products outside the range of int32 are unknown. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct folding {
    const mr_node *node;
    int32_t output;
    int32_t rank; /* of the result: 0 or 1 */
    int32_t count;
    uint64_t known;
    int64_t values[MR_PARTIAL_MAX];
} folding;

static const mr_partial *input(const folding *f, int32_t index)
{
    if (index >= f->node->input_count) return nullptr;
    mr_output output = f->node->inputs[index];
    return output.index < output.node->output_count ? output.node->outputs[output.index].value : nullptr;
}

static bool knows(const mr_partial *partial, int32_t index)
{
    assert(index >= 0);
    return partial->known >> index & 1;
}

static bool whole(const mr_partial *partial)
{
    for (int32_t i = 0; partial != nullptr && i < partial->count; i++)
        if (!knows(partial, i)) return false;
    return partial != nullptr;
}

static bool scalar_input(const folding *f, int32_t index, int64_t *value)
{
    const mr_partial *partial = input(f, index);
    if (partial == nullptr || partial->count != 1 || !knows(partial, 0)) return false;
    *value = partial->values[0];
    return true;
}

static bool push(folding *f, bool known, int64_t value)
{
    if (f->count == MR_PARTIAL_MAX) return false;
    if (known) f->known |= 1ull << f->count;
    f->values[f->count++] = known ? value : -1;
    return true;
}

static bool push_element(folding *f, const mr_partial *partial, int64_t index)
{
    return push(f, knows(partial, (int32_t)index), partial->values[index]);
}

static bool copy_elements(folding *f, const mr_partial *partial)
{
    for (int32_t i = 0; partial != nullptr && i < partial->count; i++)
        if (!push_element(f, partial, i)) return false;
    return partial != nullptr;
}

/* ---- Where values come from ---- */

static bool fold_const(folding *f)
{
    const mr_tensor *value = nullptr;
    if (mr_attr_get_tensor(&f->node->attrs, "value", &value, nullptr) != MR_OK) return false;
    if (value->dtype != MR_INT32 && value->dtype != MR_INT64) return false;
    int64_t count = mr_tensor_count(value);
    for (int64_t i = 0; i < count; i++)
        if (!push(f, true, value->dtype == MR_INT64 ? mr_tensor_int64s(value)[i] : mr_tensor_int32s(value)[i]))
            return false;
    return true;
}

static bool fold_shape(folding *f)
{
    mr_shape shape = mr_output_shape(f->node->inputs[f->output]);
    for (int32_t i = 0; i < shape.rank; i++)
        if (!push(f, shape.dims[i] >= 0, shape.dims[i])) return false;
    return shape.rank >= 0;
}

static bool fold_rank(folding *f)
{
    mr_shape shape = mr_output_shape(f->node->inputs[0]);
    return shape.rank >= 0 && push(f, true, shape.rank);
}

static bool fold_size(folding *f)
{
    int64_t count = mr_shape_count(mr_output_shape(f->node->inputs[0]));
    return count >= 0 && push(f, true, count);
}

static bool fold_range(folding *f)
{
    int64_t start = 0, limit = 0, delta = 0;
    if (!scalar_input(f, 0, &start) || !scalar_input(f, 1, &limit) || !scalar_input(f, 2, &delta) || delta == 0)
        return false;
    for (int64_t value = start; delta > 0 ? value < limit : value > limit;) {
        if (!push(f, true, value)) return false;
        if (__builtin_add_overflow(value, delta, &value)) break; /* past the limit */
    }
    return true;
}

/* ---- Operators that move values ---- */

static bool fold_pass(folding *f)
{
    return copy_elements(f, input(f, f->output));
}

static bool fold_pack(folding *f)
{
    for (int32_t i = 0; i < f->node->input_count; i++) {
        const mr_partial *element = input(f, i);
        mr_shape shape = mr_output_shape(f->node->inputs[i]);
        if (shape.rank != 0) return false;
        if (!(element != nullptr ? push_element(f, element, 0) : push(f, false, 0))) return false;
    }
    return true;
}

static bool fold_unpack(folding *f)
{
    const mr_partial *vector = input(f, 0);
    return vector != nullptr && vector->rank == 1 && f->output < vector->count && push_element(f, vector, f->output);
}

static bool fold_concat(folding *f)
{
    for (int32_t i = 0; i + 1 < f->node->input_count; i++) {
        const mr_partial *piece = input(f, i);
        mr_shape shape = mr_output_shape(f->node->inputs[i]);
        if (shape.rank != 1 || shape.dims[0] < 0) return false;
        if (piece != nullptr) {
            if (!copy_elements(f, piece)) return false;
        } else {
            for (int64_t j = 0; j < shape.dims[0]; j++)
                if (!push(f, false, 0)) return false;
        }
    }
    return true;
}

static bool fold_slice(folding *f)
{
    const mr_partial *vector = input(f, 0);
    int64_t begin = 0, size = 0;
    if (vector == nullptr || vector->rank != 1 || !scalar_input(f, 1, &begin) || !scalar_input(f, 2, &size))
        return false;
    if (begin < 0 || begin > vector->count) return false;
    if (size < 0) size = vector->count - begin;
    if (size > vector->count - begin) return false;
    for (int64_t i = 0; i < size; i++)
        if (!push_element(f, vector, begin + i)) return false;
    return true;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static bool fold_strided_slice(folding *f)
{
    const mr_attrs *attrs = &f->node->attrs;
    const mr_partial *vector = input(f, 0);
    int64_t begin = 0, end = 0, stride = 0;
    if (vector == nullptr || vector->rank != 1 || !scalar_input(f, 3, &stride) || stride == 0) return false;
    if (mr_attr_int_or(attrs, "ellipsis_mask", 0) != 0 || mr_attr_int_or(attrs, "new_axis_mask", 0) != 0) return false;
    bool no_begin = mr_attr_int_or(attrs, "begin_mask", 0) & 1, no_end = mr_attr_int_or(attrs, "end_mask", 0) & 1;
    bool is_single = mr_attr_int_or(attrs, "shrink_axis_mask", 0) & 1;
    if (!no_begin && !scalar_input(f, 1, &begin)) return false;
    if (!no_end && !is_single && !scalar_input(f, 2, &end)) return false;
    int64_t count = vector->count;
    if (begin < 0) begin += count;
    if (is_single) return begin >= 0 && begin < count && push_element(f, vector, begin);
    if (end < 0) end += count;
    stride = clamp(stride, -count - 1, count + 1); /* a larger step also takes at most one element */
    begin = no_begin ? (stride > 0 ? 0 : count - 1) : stride > 0 ? clamp(begin, 0, count) : clamp(begin, -1, count - 1);
    end = no_end ? (stride > 0 ? count : -1) : stride > 0 ? clamp(end, 0, count) : clamp(end, -1, count - 1);
    for (; stride > 0 ? begin < end : begin > end; begin += stride)
        if (!push_element(f, vector, begin)) return false;
    return true;
}

static bool fold_gather(folding *f)
{
    const mr_partial *vector = input(f, 0), *indices = input(f, 1);
    int64_t axis = 0;
    if (vector == nullptr || vector->rank != 1 || !whole(indices)) return false;
    if (f->node->input_count > 2 && (!scalar_input(f, 2, &axis) || axis != 0)) return false;
    for (int32_t i = 0; i < indices->count; i++)
        if (indices->values[i] < 0 || indices->values[i] >= vector->count ||
            !push_element(f, vector, indices->values[i]))
            return false;
    return true;
}

static bool fold_fill(folding *f)
{
    int64_t value = 0, count = mr_shape_count(f->node->outputs[0].shape);
    if (count < 0 || count > MR_PARTIAL_MAX || !scalar_input(f, 1, &value)) return false;
    for (int64_t i = 0; i < count; i++) (void)push(f, true, value);
    return true;
}

static bool fold_invert_permutation(folding *f)
{
    const mr_partial *permutation = input(f, 0);
    if (!whole(permutation)) return false;
    for (int32_t i = 0; i < permutation->count; i++) (void)push(f, false, 0);
    for (int32_t i = 0; i < permutation->count; i++) {
        int64_t target = permutation->values[i];
        if (target < 0 || target >= permutation->count || f->known >> target & 1) return false;
        f->values[target] = i;
        f->known |= 1ull << target;
    }
    return true;
}

/* ---- Arithmetic ---- */

typedef bool (*binary_function)(int64_t a, int64_t b, int64_t *result);

static bool add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static bool subtract(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_sub_overflow(a, b, result);
}

static bool multiply(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

static bool divide(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *result = a / b;
    return true;
}

static bool divide_down(int64_t a, int64_t b, int64_t *result)
{
    if (!divide(a, b, result)) return false;
    if (a % b != 0 && (a < 0) != (b < 0)) --*result;
    return true;
}

static bool remainder_down(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0) return false;
    int64_t rest = b == -1 ? 0 : a % b; /* INT64_MIN % -1 traps */
    *result = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return true;
}

static bool larger(int64_t a, int64_t b, int64_t *result)
{
    *result = a > b ? a : b;
    return true;
}

static bool smaller(int64_t a, int64_t b, int64_t *result)
{
    *result = a < b ? a : b;
    return true;
}

static bool fits(const folding *f, int64_t value)
{
    return f->node->outputs[f->output].dtype == MR_INT64 || (value >= INT32_MIN && value <= INT32_MAX);
}

static bool fold_binary(folding *f, binary_function function)
{
    const mr_partial *a = input(f, 0), *b = input(f, 1);
    if (a == nullptr || b == nullptr) return false;
    if (a->count != b->count && a->count != 1 && b->count != 1) return false;
    int32_t count = a->count == 1 ? b->count : a->count;
    for (int32_t i = 0; i < count; i++) {
        int32_t at_a = a->count == 1 ? 0 : i, at_b = b->count == 1 ? 0 : i;
        int64_t value = 0;
        bool known = knows(a, at_a) && knows(b, at_b) && function(a->values[at_a], b->values[at_b], &value);
        if (!push(f, known && fits(f, value), value)) return false;
    }
    return true;
}

static bool fold_add(folding *f)
{
    return fold_binary(f, add);
}

static bool fold_sub(folding *f)
{
    return fold_binary(f, subtract);
}

static bool fold_mul(folding *f)
{
    return fold_binary(f, multiply);
}

static bool fold_div(folding *f)
{
    return fold_binary(f, divide);
}

static bool fold_floor_div(folding *f)
{
    return fold_binary(f, divide_down);
}

static bool fold_floor_mod(folding *f)
{
    return fold_binary(f, remainder_down);
}

static bool fold_maximum(folding *f)
{
    return fold_binary(f, larger);
}

static bool fold_minimum(folding *f)
{
    return fold_binary(f, smaller);
}

/* Reduces all elements. The result is a scalar, or a vector of one element if dimensions are kept. */
static bool fold_all(folding *f, binary_function function, int64_t start)
{
    const mr_partial *values = input(f, 0), *axes = input(f, 1);
    if (!whole(values) || axes == nullptr || (values->rank == 1 && axes->count != 1)) return false;
    int64_t result = start;
    for (int32_t i = 0; i < values->count; i++)
        if (!function(result, values->values[i], &result) || !fits(f, result)) return false;
    return push(f, true, result);
}

static bool fold_sum(folding *f)
{
    return fold_all(f, add, 0);
}

static bool fold_prod(folding *f)
{
    return fold_all(f, multiply, 1);
}

/* ---- The table ---- */

static const struct {
    const char *op;
    bool (*fold)(folding *f);
} folds[] = {
    {"Add", fold_add},
    {"AddV2", fold_add},
    {"Cast", fold_pass},
    {"ConcatV2", fold_concat},
    {"Const", fold_const},
    {"Div", fold_div},
    {"ExpandDims", fold_pass},
    {"Fill", fold_fill},
    {"FloorDiv", fold_floor_div},
    {"FloorMod", fold_floor_mod},
    {"Gather", fold_gather},
    {"GatherV2", fold_gather},
    {"Identity", fold_pass},
    {"IdentityN", fold_pass},
    {"InvertPermutation", fold_invert_permutation},
    {"Maximum", fold_maximum},
    {"Minimum", fold_minimum},
    {"Mul", fold_mul},
    {"Pack", fold_pack},
    {"PreventGradient", fold_pass},
    {"Prod", fold_prod},
    {"Range", fold_range},
    {"Rank", fold_rank},
    {"Reshape", fold_pass},
    {"Shape", fold_shape},
    {"ShapeN", fold_shape},
    {"Size", fold_size},
    {"Slice", fold_slice},
    {"Snapshot", fold_pass},
    {"Squeeze", fold_pass},
    {"StopGradient", fold_pass},
    {"StridedSlice", fold_strided_slice},
    {"Sub", fold_sub},
    {"Sum", fold_sum},
    {"Unpack", fold_unpack},
};

static bool (*find_fold(const char *op))(folding *)
{
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
        if (strcmp(folds[i].op, op) == 0) return folds[i].fold;
    return nullptr;
}

/* Identity, IdentityN and similar operators have one output for each input; all outputs of the others are computed from
 * the same inputs. */
static mr_status fold_output(mr_node *node, int32_t index, bool (*fold)(folding *), mr_error *error)
{
    mr_node_output *output = &node->outputs[index];
    bool is_integer = output->dtype == MR_INT32 || output->dtype == MR_INT64;
    if (!is_integer || output->shape.rank < 0 || output->shape.rank > 1) return MR_OK;
    folding f = {.node = node, .output = index, .rank = output->shape.rank};
    if (!fold(&f) || f.known == 0) return MR_OK;
    int64_t expected = mr_shape_count(output->shape);
    if (expected >= 0 && expected != f.count) return MR_OK;
    mr_partial *value = MR_ARENA_NEW(&node->graph->arena, mr_partial, 1);
    if (value == nullptr) return mr_fail_memory(error, sizeof *value);
    *value = (mr_partial){.rank = f.rank, .count = f.count, .known = f.known};
    value->values = mr_arena_copy(&node->graph->arena, f.values, (size_t)f.count * sizeof f.values[0]);
    if (value->values == nullptr) return mr_fail_memory(error, sizeof f.values);
    for (int32_t i = 0; i < f.count; i++)
        if (knows(value, i) && !fits(&f, value->values[i])) value->known &= ~(1ull << i);
    if (f.rank == 1 && output->shape.dims[0] < 0) output->shape.dims[0] = f.count;
    output->value = value;
    return MR_OK;
}

mr_status mr_node_fold(mr_node *node, mr_error *error)
{
    bool (*fold)(folding *) = find_fold(node->op);
    for (int32_t i = 0; fold != nullptr && i < node->output_count; i++) MR_TRY(fold_output(node, i, fold, error));
    return MR_OK;
}
