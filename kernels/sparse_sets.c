/* Operations on sets: the values in the last dimension of a tensor, dense or sparse, are a set for each position in the
 * other dimensions (a group). Results are sorted. */
#include "kernels/sparse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

typedef enum operation { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION } operation;

typedef struct prepared {
    operation operation;
    bool validates;
} prepared;

/* An operand. A sparse one is read group by group. */
typedef struct operand {
    const mr_tensor *values;
    const mr_tensor *dense; /* null if sparse */
    mr_sparse sparse;
    int64_t rank, shape[MR_RANK_MAX];
    int64_t at; /* the next row of a sparse operand */
} operand;

typedef union item {
    int64_t number;
    mr_string string;
} item;

/* Sorted values without repeats. */
typedef struct set {
    item *items;
    int64_t count, capacity;
} set;

typedef struct results {
    set values;
    int64_t *groups; /* the group of each value, by number */
    int64_t largest; /* size of a set */
    int64_t capacity;
} results;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    static const char *const names[] = {"a-b", "b-a", "intersection", "union"};
    prepared *p = memory;
    p->validates = mr_attr_bool_or(node->attrs, "validate_indices", true);
    if (strcmp(node->op, "SetSize") == 0) return MR_OK;
    mr_string given = mr_attr_string_or(node->attrs, "set_operation", "");
    for (int i = 0; i < 4; i++)
        if (given.size_bytes == strlen(names[i]) && strncasecmp(given.data, names[i], given.size_bytes) == 0) {
            p->operation = (operation)i;
            return MR_OK;
        }
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Invalid set_operation %.*s.",
                          (int)MR_MIN(given.size_bytes, 100), given.data);
}

/* ---- Operands ---- */

static mr_status read_dense(const mr_kernel_call *call, int input, operand *o, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    char text[MR_SHAPE_TEXT_SIZE];
    *o = (operand){.values = tensor, .dense = tensor, .rank = tensor->shape.rank};
    memcpy(o->shape, tensor->shape.dims, sizeof o->shape);
    if (o->rank < 2)
        return FAIL("Shape %s has rank %" PRId64 " < 2", mr_shape_text(tensor->shape, text, sizeof text), o->rank);
    return MR_OK;
}

static mr_status read_sparse(const mr_kernel_call *call, int first, operand *o, mr_error *error)
{
    const prepared *p = call->prepared;
    *o = (operand){.values = &call->inputs[first + 1]};
    MR_TRY(mr_sparse_read(call, first, first + 1, first + 2, &o->sparse, error));
    o->rank = o->sparse.rank;
    if (o->rank < 2) return FAIL("Invalid rank %" PRId64 ".", o->rank);
    if (o->rank > MR_RANK_MAX) return FAIL("more than %d dimensions", MR_RANK_MAX);
    memcpy(o->shape, o->sparse.shape, (size_t)o->rank * sizeof o->shape[0]);
    if (p->validates) return mr_sparse_check_indices(call, &o->sparse, error);
    for (int64_t i = 0; i < o->sparse.count * o->rank; i++)
        if (o->sparse.indices[i] < 0 || o->sparse.indices[i] >= o->shape[i % o->rank])
            return FAIL("indices[%" PRId64 "] is out of bounds", i / o->rank);
    return MR_OK;
}

/* The number of groups, or the number of a sparse row's group. */
static mr_status group_count(const mr_kernel_call *call, const operand *o, int64_t *count, mr_error *error)
{
    *count = 1;
    for (int64_t d = 0; d < o->rank - 1; d++)
        if (__builtin_mul_overflow(*count, o->shape[d], count)) return FAIL("the shape has too many elements");
    return MR_OK;
}

static int64_t group_of(const operand *o, int64_t row)
{
    int64_t group = 0;
    for (int64_t d = 0; d < o->rank - 1; d++) group = group * o->shape[d] + o->sparse.indices[row * o->rank + d];
    return group;
}

static mr_status check_shapes(const mr_kernel_call *call, const operand *a, const operand *b, mr_error *error)
{
    char left[MR_SPARSE_TEXT_SIZE], right[MR_SPARSE_TEXT_SIZE];
    bool same = a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)(a->rank - 1) * sizeof a->shape[0]) == 0;
    if (same) return MR_OK;
    return FAIL("Mismatched shapes [%s] vs [%s]", mr_sparse_text(a->shape, a->rank - 1, ",", left, sizeof left),
                mr_sparse_text(b->shape, b->rank - 1, ",", right, sizeof right));
}

/* ---- Sets ---- */

static item item_at(const mr_tensor *values, int64_t i)
{
    switch (values->dtype) {
    case MR_INT8:
        return (item){((const int8_t *)values->data)[i]};
    case MR_INT16:
        return (item){((const int16_t *)values->data)[i]};
    case MR_INT32:
        return (item){((const int32_t *)values->data)[i]};
    case MR_UINT8:
        return (item){((const uint8_t *)values->data)[i]};
    case MR_UINT16:
        return (item){((const uint16_t *)values->data)[i]};
    case MR_STRING:
        return (item){.string = mr_tensor_strings(values)[i]};
    default:
        return (item){((const int64_t *)values->data)[i]};
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = ((const item *)a)->number, y = ((const item *)b)->number;
    return x < y ? -1 : x > y;
}

static int compare_strings(const void *a, const void *b)
{
    mr_string x = ((const item *)a)->string, y = ((const item *)b)->string;
    size_t size = MR_MIN(x.size_bytes, y.size_bytes);
    int order = size > 0 ? memcmp(x.data, y.data, size) : 0;
    return order != 0 ? order : x.size_bytes < y.size_bytes ? -1 : x.size_bytes > y.size_bytes;
}

typedef int (*compare_function)(const void *a, const void *b);

static mr_status add_item(const mr_kernel_call *call, set *s, item value, mr_error *error)
{
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 64;
        item *items = realloc(s->items, (size_t)capacity * sizeof *items);
        if (!items) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
        s->items = items;
        s->capacity = capacity;
    }
    s->items[s->count++] = value;
    return MR_OK;
}

static void sort_set(set *s, compare_function compare)
{
    int64_t kept = 0;
    if (s->count > 1) qsort(s->items, (size_t)s->count, sizeof *s->items, compare);
    for (int64_t i = 0; i < s->count; i++)
        if (kept == 0 || compare(&s->items[kept - 1], &s->items[i]) != 0) s->items[kept++] = s->items[i];
    s->count = kept;
}

/* The operand's set of a group. The rows of a sparse one are consumed if they are next. */
static mr_status fill_set(const mr_kernel_call *call, operand *o, int64_t group, set *s, compare_function compare,
                          mr_error *error)
{
    s->count = 0;
    if (o->dense) {
        int64_t width = o->shape[o->rank - 1];
        for (int64_t i = 0; i < width; i++) MR_TRY(add_item(call, s, item_at(o->values, group * width + i), error));
    } else {
        for (; o->at < o->sparse.count && group_of(o, o->at) == group; o->at++)
            MR_TRY(add_item(call, s, item_at(o->values, o->at), error));
    }
    sort_set(s, compare);
    return MR_OK;
}

static mr_status add_result(const mr_kernel_call *call, results *r, item value, int64_t group, mr_error *error)
{
    if (r->values.count == r->capacity) {
        int64_t capacity = r->capacity ? 2 * r->capacity : 64;
        int64_t *groups = realloc(r->groups, (size_t)capacity * sizeof *groups);
        if (!groups) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
        r->groups = groups;
        r->capacity = capacity;
    }
    r->groups[r->values.count] = group;
    return add_item(call, &r->values, value, error);
}

/* Merges two sorted sets. */
static mr_status apply(const mr_kernel_call *call, const set *a, const set *b, int64_t group, compare_function compare,
                       results *r, mr_error *error)
{
    const prepared *p = call->prepared;
    int64_t i = 0, j = 0, before = r->values.count;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare(&a->items[i], &b->items[j]);
        bool in_a = order <= 0, in_b = order >= 0;
        item value = in_a ? a->items[i] : b->items[j];
        bool keeps = p->operation == UNION          ? true
                     : p->operation == INTERSECTION ? in_a && in_b
                     : p->operation == A_MINUS_B    ? !in_b
                                                    : !in_a;
        if (keeps) MR_TRY(add_result(call, r, value, group, error));
        i += in_a;
        j += in_b;
    }
    r->largest = MR_MAX(r->largest, r->values.count - before);
    return MR_OK;
}

/* Stores the value as the output's dtype. */
static void store(const mr_sink *sink, mr_dtype dtype, int64_t i, item value)
{
    if (dtype == MR_STRING) {
        ((mr_string *)sink->data)[i] = value.string;
        return;
    }
    /* Little-endian: the low bytes are the narrower number. */
    memcpy((char *)sink->data + (size_t)i * sink->element_size, &value.number, sink->element_size);
}

static mr_status put_results(mr_kernel_call *call, const operand *a, const results *r, mr_error *error)
{
    int64_t count = r->values.count, rank = a->rank, position = 0;
    mr_sink sink;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count, rank), error));
    MR_TRY(mr_sparse_put(call, 2, a->shape, rank, error));
    int64_t *indices = call->outputs[0].data;
    ((int64_t *)call->outputs[2].data)[rank - 1] = r->largest;
    for (int64_t i = 0; i < count; i++) {
        int64_t group = r->groups[i];
        position = i > 0 && r->groups[i - 1] == group ? position + 1 : 0;
        indices[i * rank + rank - 1] = position;
        for (int64_t d = rank - 2; d >= 0; d--) {
            indices[i * rank + d] = group % a->shape[d];
            group /= a->shape[d];
        }
    }
    MR_TRY(mr_sink_init(call, 1, MR_SHAPE(count), &sink, error));
    for (int64_t i = 0; i < count; i++) store(&sink, a->values->dtype, i, r->values.items[i]);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* The next group to process. All groups of a dense operand are processed, unless it has no elements. */
static int64_t next_group(const operand *a, const operand *b, int64_t group, int64_t groups)
{
    int64_t next = groups;
    const operand *operands[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const operand *o = operands[i];
        if (o->dense && o->shape[o->rank - 1] > 0) return group + 1;
        if (!o->dense && o->at < o->sparse.count) next = MR_MIN(next, group_of(o, o->at));
    }
    return next;
}

static mr_status run_operation(mr_kernel_call *call, operand *a, operand *b, mr_error *error)
{
    set left = {0}, right = {0};
    results r = {0};
    int64_t groups;
    compare_function compare = a->values->dtype == MR_STRING ? compare_strings : compare_numbers;
    MR_TRY(check_shapes(call, a, b, error));
    MR_TRY(group_count(call, a, &groups, error));
    mr_status status = MR_OK;
    for (int64_t g = next_group(a, b, -1, groups); status == MR_OK && g < groups; g = next_group(a, b, g, groups)) {
        status = fill_set(call, a, g, &left, compare, error);
        if (status == MR_OK) status = fill_set(call, b, g, &right, compare, error);
        if (status == MR_OK) status = apply(call, &left, &right, g, compare, &r, error);
    }
    if (status == MR_OK) status = put_results(call, a, &r, error);
    free(left.items);
    free(right.items);
    free(r.values.items);
    free(r.groups);
    return status;
}

static mr_status dense_dense(mr_kernel_call *call, mr_error *error)
{
    operand a, b;
    MR_TRY(read_dense(call, 0, &a, error));
    MR_TRY(read_dense(call, 1, &b, error));
    return run_operation(call, &a, &b, error);
}

static mr_status dense_sparse(mr_kernel_call *call, mr_error *error)
{
    operand a, b;
    MR_TRY(read_dense(call, 0, &a, error));
    MR_TRY(read_sparse(call, 1, &b, error));
    return run_operation(call, &a, &b, error);
}

static mr_status sparse_sparse(mr_kernel_call *call, mr_error *error)
{
    operand a, b;
    MR_TRY(read_sparse(call, 0, &a, error));
    MR_TRY(read_sparse(call, 3, &b, error));
    return run_operation(call, &a, &b, error);
}

static mr_status set_size(mr_kernel_call *call, mr_error *error)
{
    operand o;
    set values = {0};
    MR_TRY(read_sparse(call, 0, &o, error));
    mr_shape shape = {.rank = (int32_t)o.rank - 1};
    memcpy(shape.dims, o.shape, (size_t)shape.rank * sizeof o.shape[0]);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) > 0) memset(output->data, 0, mr_tensor_size_bytes(output));
    mr_status status = MR_OK;
    while (status == MR_OK && o.at < o.sparse.count) {
        int64_t group = group_of(&o, o.at);
        status =
            fill_set(call, &o, group, &values, o.values->dtype == MR_STRING ? compare_strings : compare_numbers, error);
        mr_tensor_int32s(output)[group] = (int32_t)values.count;
    }
    free(values.items);
    return status;
}

#define SETS(name, function) {.op = name, .run = function, .prepared_size_bytes = sizeof(prepared), .prepare = prepare}
static const mr_kernel kernels[] = {
    SETS("DenseToDenseSetOperation", dense_dense),
    SETS("DenseToSparseSetOperation", dense_sparse),
    SETS("SparseToSparseSetOperation", sparse_sparse),
    SETS("SetSize", set_size),
};
MR_KERNEL_FAMILY(sparse_sets);
