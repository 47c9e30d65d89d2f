/* Distinct elements: Unique and ListDiff, with a hash table of slices of a tensor. As in TensorFlow, -0 equals 0 and a
 * NaN equals nothing, not even itself. */
#include "kernels/common.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The slices of a tensor along one axis. A slice is `outer` runs of `inner` elements. */
typedef struct slices {
    const char *data;
    mr_dtype dtype;
    size_t element_size;
    int64_t count, outer, inner;
} slices;

static const char *run_of(const slices *s, int64_t slice, int64_t run)
{
    return s->data + (size_t)((run * s->count + slice) * s->inner) * s->element_size;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static double as_double(mr_dtype dtype, const char *at)
{
    uint16_t half;
    float single;
    double number;
    switch (dtype) {
    case MR_DOUBLE:
    case MR_COMPLEX128:
        memcpy(&number, at, sizeof number);
        return number;
    case MR_FLOAT:
    case MR_COMPLEX64:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(dtype == MR_HALF ? mr_half_to_float(half) : mr_bfloat16_to_float(half));
    }
}

static bool is_floating(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16 ||
           dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128;
}

/* Complex numbers are compared as two real ones. */
static size_t number_size(const slices *s)
{
    return s->dtype == MR_COMPLEX64 ? 4 : s->dtype == MR_COMPLEX128 ? 8 : s->element_size;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t size)
{
    uint64_t word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash, word);
    }
    word = size;
    for (size_t i = 0; i < size; i++) word = word << 8 | (uint8_t)bytes[i];
    return mix(hash, word);
}

static uint64_t hash_run(const slices *s, const char *run, uint64_t hash)
{
    if (s->dtype == MR_STRING) {
        const mr_string *strings = (const mr_string *)run;
        for (int64_t i = 0; i < s->inner; i++) hash = hash_bytes(hash, strings[i].data, strings[i].size_bytes);
        return hash;
    }
    size_t bytes = (size_t)s->inner * s->element_size;
    if (!is_floating(s->dtype)) return hash_bytes(hash, run, bytes);
    size_t size = number_size(s);
    for (size_t at = 0; at < bytes; at += size) {
        double value = as_double(s->dtype, run + at) + 0.0; /* -0 becomes 0 */
        uint64_t word;
        memcpy(&word, &value, sizeof word);
        if (value != value) word = (uint64_t)(uintptr_t)(run + at); /* each NaN is an element of its own */
        hash = mix(hash, word);
    }
    return hash;
}

static uint64_t hash_slice(const slices *s, int64_t slice)
{
    uint64_t hash = 0;
    for (int64_t run = 0; run < s->outer; run++) hash = hash_run(s, run_of(s, slice, run), hash);
    return hash;
}

static bool equal_runs(const slices *s, const char *a, const char *b)
{
    if (s->dtype == MR_STRING) {
        for (int64_t i = 0; i < s->inner; i++)
            if (!mr_string_equal(((const mr_string *)a)[i], ((const mr_string *)b)[i])) return false;
        return true;
    }
    size_t bytes = (size_t)s->inner * s->element_size;
    if (!is_floating(s->dtype)) return memcmp(a, b, bytes) == 0;
    size_t size = number_size(s);
    for (size_t at = 0; at < bytes; at += size)
        if (!(as_double(s->dtype, a + at) == as_double(s->dtype, b + at))) return false;
    return true;
}

static bool equal_slices(const slices *a, int64_t i, const slices *b, int64_t j)
{
    for (int64_t run = 0; run < a->outer; run++)
        if (!equal_runs(a, run_of(a, i, run), run_of(b, j, run))) return false;
    return true;
}

/* An open hash table of slice numbers; -1 is a free place. */
typedef struct table {
    int64_t *places;
    uint64_t mask;
} table;

static mr_status table_init(mr_kernel_call *call, table *t, int64_t count, mr_error *error)
{
    uint64_t size = 16;
    while (size < (uint64_t)count * 2) size *= 2;
    t->mask = size - 1;
    t->places = malloc(size * sizeof *t->places);
    if (t->places == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    memset(t->places, 0xff, size * sizeof *t->places);
    return MR_OK;
}

/* The place of a slice equal to slice i of s, or the free place where it belongs. `of` are the slices in the table. */
static int64_t *table_find(const table *t, const slices *of, const slices *s, int64_t i)
{
    uint64_t at = hash_slice(s, i);
    at ^= at >> 32;
    for (;; at++) {
        int64_t *place = &t->places[at & t->mask];
        if (*place < 0 || equal_slices(s, i, of, *place)) return place;
    }
}

static void put_integer(mr_tensor *tensor, int64_t i, int64_t value)
{
    if (tensor->dtype == MR_INT64)
        ((int64_t *)tensor->data)[i] = value;
    else
        ((int32_t *)tensor->data)[i] = (int32_t)value;
}

static int64_t get_integer(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

/* ---- Unique ---- */

static mr_status unique_axis(mr_kernel_call *call, int *axis, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    *axis = 0;
    int64_t count = 0, given = 0;
    if (call->node->input_count > 1) {
        const mr_tensor *axes = &call->inputs[1];
        count = mr_tensor_count(axes);
        if (axes->shape.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis expects a 1D vector.");
        if (count > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "axis does not support input tensors larger than 1 elements");
        if (count == 1) given = get_integer(axes, 0);
    }
    if (count == 0 && input->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "unique expects a 1D vector.");
    if (given < -input->shape.rank || given >= input->shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis has to be between [0, %d)",
                              input->shape.rank);
    *axis = (int)(given < 0 ? given + input->shape.rank : given);
    return MR_OK;
}

/* Numbers the distinct slices in order of appearance: stores each slice's number in output 1 and the first slice of
 * each number in firsts. */
static mr_status number_slices(mr_kernel_call *call, const slices *s, int64_t *firsts, int64_t *found, mr_error *error)
{
    table t;
    MR_TRY(table_init(call, &t, s->count, error));
    int64_t *numbers = call->outputs[1].dtype == MR_INT64 ? call->outputs[1].data : nullptr;
    int32_t *narrow = call->outputs[1].data;
    *found = 0;
    assert(narrow != nullptr);
    for (int64_t i = 0; i < s->count; i++) {
        int64_t *place = table_find(&t, s, s, i), number;
        if (*place < 0) {
            number = (*found)++;
            firsts[number] = *place = i;
        } else {
            number = numbers ? numbers[*place] : narrow[*place];
        }
        put_integer(&call->outputs[1], i, number);
    }
    free(t.places);
    return MR_OK;
}

static mr_status put_unique(mr_kernel_call *call, const slices *s, int axis, const int64_t *firsts, int64_t found,
                            mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    mr_sink sink;
    shape.dims[axis] = found;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    size_t bytes = (size_t)s->inner * s->element_size;
    for (int64_t run = 0; sink.count > 0 && run < s->outer; run++)
        for (int64_t i = 0; i < found; i++)
            memcpy((char *)sink.data + (size_t)(run * found + i) * bytes, run_of(s, firsts[i], run), bytes);
    MR_TRY(mr_sink_finish(call, &sink, MR_OK, error));
    if (call->node->output_count < 3) return MR_OK;
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(found), error));
    mr_tensor *counts = &call->outputs[2];
    memset(counts->data, 0, mr_tensor_size_bytes(counts));
    for (int64_t i = 0; i < s->count; i++) {
        int64_t number = get_integer(&call->outputs[1], i);
        put_integer(counts, number, get_integer(counts, number) + 1);
    }
    return MR_OK;
}

static mr_status unique(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int axis;
    MR_TRY(unique_axis(call, &axis, error));
    if (call->node->output_dtypes[1] == MR_INT32 && mr_tensor_count(input) > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "unique does not support input tensors larger than %d elements", INT32_MAX);
    slices s = {.data = input->data,
                .dtype = input->dtype,
                .element_size = mr_dtype_size(input->dtype),
                .count = input->shape.dims[axis],
                .outer = mr_dims_product(&input->shape, 0, axis),
                .inner = mr_dims_product(&input->shape, axis + 1, input->shape.rank)};
    if (mr_tensor_count(input) == 0) s.outer = 0; /* all slices are empty and equal */
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(s.count), error));
    int64_t *firsts = calloc((size_t)s.count + 1, sizeof *firsts), found;
    if (firsts == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = number_slices(call, &s, firsts, &found, error);
    if (status == MR_OK) status = put_unique(call, &s, axis, firsts, found, error);
    free(firsts);
    return status;
}

/* ---- ListDiff ---- */

static mr_status list_diff(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"x", "y"};
    slices lists[2];
    for (int i = 0; i < 2; i++) {
        const mr_tensor *list = &call->inputs[i];
        if (list->shape.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s should be a 1D vector.", names[i]);
        lists[i] = (slices){list->data, list->dtype, mr_dtype_size(list->dtype), list->shape.dims[0], 1, 1};
    }
    if (call->node->output_dtypes[1] == MR_INT32 && lists[0].count > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x too large for int32 indexing");
    int64_t *kept = calloc((size_t)lists[0].count + 1, sizeof *kept), found = 0;
    table t;
    if (kept == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = table_init(call, &t, lists[1].count, error);
    if (status == MR_OK) {
        for (int64_t i = 0; i < lists[1].count; i++) {
            int64_t *place = table_find(&t, &lists[1], &lists[1], i);
            if (*place < 0) *place = i;
        }
        for (int64_t i = 0; i < lists[0].count; i++)
            if (*table_find(&t, &lists[1], &lists[0], i) < 0) kept[found++] = i;
        free(t.places);
        mr_sink sink;
        status = mr_sink_init(call, 0, MR_SHAPE(found), &sink, error);
        if (status == MR_OK) {
            for (int64_t i = 0; i < found; i++)
                memcpy((char *)sink.data + (size_t)i * sink.element_size, run_of(&lists[0], kept[i], 0),
                       sink.element_size);
            status = mr_sink_finish(call, &sink, MR_OK, error);
        }
        if (status == MR_OK) status = mr_kernel_put_ints(call, 1, MR_SHAPE(found), kept, error);
    }
    free(kept);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "Unique", .run = unique},           {.op = "UniqueV2", .run = unique},
    {.op = "UniqueWithCounts", .run = unique}, {.op = "UniqueWithCountsV2", .run = unique},
    {.op = "ListDiff", .run = list_diff},
};
MR_KERNEL_FAMILY(array_set);
