/* Barriers: tuples whose components arrive one by one, by key. A tuple with all of its components is ready; tuples are
 * taken in the order in which their keys arrived. Keys that arrive in one insertion have the same index.
 *
 * Locks: the condition's mutex guards the state. Calls that take tuples wait in the order of their arrival. */
#include "graph/state/condition.h"
#include "graph/state/members.h"
#include "graph/state/queue.h"

#include "base/mutex.h"
#include "base/stack.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tuple tuple;
struct tuple {
    tuple *next; /* in its bucket */
    mr_string key;
    uint64_t hash;
    int64_t index, arrival;
    int32_t missing;
    mr_tensor components[]; /* MR_DTYPE_INVALID: missing */
};

typedef struct barrier {
    mr_resource resource;
    mr_condition condition;
    int32_t component_count; /* 0: not created */
    mr_dtype *dtypes;
    mr_shape *shapes;
    bool is_closed, is_cancelled;
    int64_t next_index, next_arrival;
    tuple **buckets; /* incomplete tuples; a power of two of them, or none */
    int64_t bucket_count, incomplete_count;
    tuple **ready; /* a heap: the one with the least index, then arrival, first */
    int64_t ready_count, ready_room;
} barrier;

static void free_tuple(const barrier *b, tuple *t)
{
    for (int32_t i = 0; i < b->component_count; i++) mr_tensor_deinit(&t->components[i]);
    free((char *)t->key.data);
    free(t);
}

static void drop_incomplete(barrier *b)
{
    for (int64_t i = 0; i < b->bucket_count; i++)
        while (b->buckets[i]) {
            tuple *first = b->buckets[i];
            b->buckets[i] = first->next;
            free_tuple(b, first);
        }
    b->incomplete_count = 0;
}

static void drop_all(barrier *b)
{
    drop_incomplete(b);
    for (int64_t i = 0; i < b->ready_count; i++) free_tuple(b, b->ready[i]);
    b->ready_count = 0;
}

static void barrier_deinit(mr_resource *resource)
{
    barrier *b = (barrier *)resource;
    drop_all(b);
    free(b->buckets);
    free(b->ready);
    free(b->dtypes);
    free(b->shapes);
    mr_condition_deinit(&b->condition);
}

static void barrier_reset(mr_resource *resource)
{
    barrier *b = (barrier *)resource;
    pthread_mutex_lock(&b->condition.mutex);
    drop_all(b);
    b->is_closed = b->is_cancelled = false;
    b->next_index = INT64_MIN;
    mr_condition_changed(&b->condition);
    pthread_mutex_unlock(&b->condition.mutex);
}

static const mr_resource_class barrier_class = {
    .name = "barrier", .size_bytes = sizeof(barrier), .deinit = barrier_deinit, .reset = barrier_reset};

/* ---- Creation ---- */

static mr_status check_attrs(const mr_node *node, const mr_attr *types, const mr_attr *shapes, mr_error *error)
{
    if (!types || !shapes || types->kind != MR_ATTR_TYPE || shapes->kind != MR_ATTR_SHAPE ||
        shapes->count != types->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "All of the component shapes must be specified");
    if (mr_attr_int_or(&node->attrs, "capacity", -1) != -1)
        return mr_fail(
            error, MR_INVALID_ARGUMENT,
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a "
            "limited capacity.");
    for (int32_t i = 0; i < types->count; i++) {
        mr_dtype dtype = (mr_dtype)types->values[i].type;
        mr_shape shape = shapes->values[i].shape;
        if (mr_dtype_size(dtype) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has the unsupported dtype %s", (int)i,
                           mr_dtype_name(dtype));
        if (!mr_shape_is_known(shape))
            return mr_fail(error, MR_INVALID_ARGUMENT, "the shape of component %d is not fully known", (int)i);
        if (shape.rank >= MR_RANK_MAX || mr_shape_count(shape) < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the shape of component %d is too large", (int)i);
    }
    return MR_OK;
}

static mr_status check_shared(const barrier *b, const mr_attr *types, const mr_attr *shapes, mr_error *error)
{
    size_t count = (size_t)types->count;
    mr_components requested = {.count = types->count};
    mr_dtype *dtypes = calloc(count + 1, sizeof *dtypes);
    mr_shape *sizes = calloc(count + 1, sizeof *sizes);
    mr_status status = dtypes && sizes ? MR_OK : mr_fail_memory(error, count * sizeof *sizes);
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        dtypes[i] = (mr_dtype)types->values[i].type;
        sizes[i] = shapes->values[i].shape;
    }
    requested.dtypes = dtypes;
    requested.shapes = sizes;
    if (status == MR_OK)
        status = mr_components_check("barrier", b->resource.name,
                                     (mr_components){b->dtypes, b->shapes, b->component_count}, requested, error);
    free(dtypes);
    free(sizes);
    return status;
}

static mr_status fill_barrier(barrier *b, const mr_node *node, mr_error *error)
{
    const mr_attr *types = mr_attrs_find(&node->attrs, "component_types");
    const mr_attr *shapes = mr_attrs_find(&node->attrs, "shapes");
    MR_TRY(check_attrs(node, types, shapes, error));
    if (b->component_count > 0) return check_shared(b, types, shapes, error);
    size_t count = (size_t)types->count;
    free(b->dtypes);
    free(b->shapes);
    b->dtypes = calloc(count, sizeof *b->dtypes);
    b->shapes = calloc(count, sizeof *b->shapes);
    if (!b->dtypes || !b->shapes) return mr_fail_memory(error, count * sizeof *b->shapes);
    for (size_t i = 0; i < count; i++) {
        b->dtypes[i] = (mr_dtype)types->values[i].type;
        b->shapes[i] = shapes->values[i].shape;
    }
    b->component_count = types->count;
    b->next_index = INT64_MIN;
    return MR_OK;
}

static mr_status make_barrier(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,
                              mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &barrier_class, node, resource, &made, error));
    if (made) mr_condition_init(&((barrier *)*resource)->condition, true);
    return fill_barrier((barrier *)*resource, node, error);
}

static const mr_state_row rows[] = {
    {.op = "Barrier", .make = make_barrier},
};

const mr_state_table mr_state_barrier = {rows, sizeof rows / sizeof rows[0]};

static mr_status barrier_at(const mr_kernel_call *call, barrier **b, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &barrier_class, &resource, error));
    *b = (barrier *)resource;
    if ((*b)->component_count > 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "the barrier was not created");
}

/* ---- Incomplete tuples, by key ---- */

static uint64_t hash_key(mr_string key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.size_bytes; i++) hash = (hash ^ (unsigned char)key.data[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static tuple **find(const barrier *b, mr_string key, uint64_t hash)
{
    assert(b->bucket_count > 0 && (b->bucket_count & (b->bucket_count - 1)) == 0);
    tuple **at = &b->buckets[hash & (uint64_t)(b->bucket_count - 1)];
    while (*at && ((*at)->hash != hash || (*at)->key.size_bytes != key.size_bytes ||
                   (key.size_bytes > 0 && memcmp((*at)->key.data, key.data, key.size_bytes) != 0)))
        at = &(*at)->next;
    return at;
}

static mr_status grow_buckets(barrier *b, mr_error *error)
{
    if (b->incomplete_count < b->bucket_count) return MR_OK;
    int64_t count = b->bucket_count ? 2 * b->bucket_count : 64;
    tuple **larger = calloc((size_t)count, sizeof *larger);
    if (!larger) return mr_fail_memory(error, (size_t)count * sizeof *larger);
    for (int64_t i = 0; i < b->bucket_count; i++)
        while (b->buckets[i]) {
            tuple *first = b->buckets[i];
            tuple **bucket = &larger[first->hash & (uint64_t)(count - 1)];
            b->buckets[i] = first->next;
            first->next = *bucket;
            *bucket = first;
        }
    free(b->buckets);
    b->buckets = larger;
    b->bucket_count = count;
    return MR_OK;
}

/* Finds the place of the key's tuple, which is created if needed. */
static mr_status find_or_add(barrier *b, mr_string key, tuple ***place, bool *is_new, mr_error *error)
{
    uint64_t hash = hash_key(key);
    MR_TRY(grow_buckets(b, error));
    *place = find(b, key, hash);
    if (**place) return MR_OK;
    size_t size = sizeof(tuple) + (size_t)b->component_count * sizeof(mr_tensor);
    tuple *made = calloc(1, size);
    char *copy = malloc(key.size_bytes + 1);
    if (!made || !copy) {
        free(made);
        free(copy);
        return mr_fail_memory(error, size + key.size_bytes);
    }
    if (key.size_bytes > 0) memcpy(copy, key.data, key.size_bytes);
    *made = (tuple){.key = {copy, key.size_bytes}, .hash = hash, .index = b->next_index, .missing = b->component_count};
    **place = made;
    b->incomplete_count++;
    *is_new = true;
    return MR_OK;
}

/* ---- Ready tuples ---- */

static bool is_before(const tuple *a, const tuple *b)
{
    return a->index != b->index ? a->index < b->index : a->arrival < b->arrival;
}

static mr_status reserve_ready(barrier *b, mr_error *error)
{
    if (b->ready_count < b->ready_room) return MR_OK;
    int64_t room = b->ready_room ? 2 * b->ready_room : 64;
    tuple **larger = realloc(b->ready, (size_t)room * sizeof(tuple *));
    if (!larger) return mr_fail_memory(error, (size_t)room * sizeof(tuple *));
    b->ready = larger;
    b->ready_room = room;
    return MR_OK;
}

static void push_ready(barrier *b, tuple *t)
{
    assert(t->missing == 0 && b->ready_count < b->ready_room);
    int64_t at = b->ready_count++;
    t->arrival = b->next_arrival++;
    for (; at > 0 && is_before(t, b->ready[(at - 1) / 2]); at = (at - 1) / 2) b->ready[at] = b->ready[(at - 1) / 2];
    b->ready[at] = t;
}

static tuple *pop_ready(barrier *b)
{
    assert(b->ready_count > 0);
    tuple *first = b->ready[0], *last = b->ready[--b->ready_count];
    int64_t at = 0;
    for (int64_t child = 1; child < b->ready_count; child = 2 * at + 1) {
        if (child + 1 < b->ready_count && is_before(b->ready[child + 1], b->ready[child])) child++;
        if (!is_before(b->ready[child], last)) break;
        b->ready[at] = b->ready[child];
        at = child;
    }
    b->ready[at] = last;
    assert(b->ready_count == 0 || !is_before(b->ready[0], first));
    return first;
}

/* ---- Insertion ---- */

typedef struct insertion {
    const mr_kernel_call *call;
    barrier *barrier;
    int32_t component;
    const mr_string *keys;
    int64_t count;
    mr_tensor values; /* owned */
    bool has_new;
} insertion;

static const char *bool_text(bool value)
{
    return value ? "1" : "0";
}

static mr_status refuse(const insertion *n, mr_error *error)
{
    const barrier *b = n->barrier;
    return mr_kernel_fail(n->call->node, error, MR_CANCELLED,
                          "Barrier %s is closed.  Pending enqueues cancelled: %s.  Number of new insertions: %lld.  "
                          "Number of incomplete keys: %lld.",
                          b->resource.name, bool_text(b->is_cancelled), (long long)n->count,
                          (long long)b->incomplete_count);
}

static mr_status insert_one(insertion *n, int64_t i, mr_error *error)
{
    barrier *b = n->barrier;
    mr_string key = n->keys[i];
    tuple **place;
    bool is_known = b->incomplete_count > 0 && *find(b, key, hash_key(key));
    if (b->is_closed && !is_known)
        return mr_kernel_fail(n->call->node, error, MR_CANCELLED,
                              "Barrier %s is closed, but attempted to insert a brand new key: %.*s.  Pending enqueues "
                              "cancelled: %s.  Insertion index: %lld.  Number of incomplete keys: %lld.",
                              b->resource.name, (int)MR_MIN(key.size_bytes, 200), key.data ? key.data : "",
                              bool_text(b->is_cancelled), (long long)i, (long long)b->incomplete_count);
    MR_TRY(reserve_ready(b, error));
    MR_TRY(find_or_add(b, key, &place, &n->has_new, error));
    tuple *t = *place;
    if (mr_member_is_set(&t->components[n->component]))
        return mr_kernel_fail(
            n->call->node, error, MR_INVALID_ARGUMENT, "Key %.*s already has a value for component %d in barrier %s",
            (int)MR_MIN(key.size_bytes, 200), key.data ? key.data : "", (int)n->component, b->resource.name);
    MR_TRY(mr_members_rows(&n->values, i, i + 1, true, &t->components[n->component], error));
    assert(t->missing > 0 && t->missing <= b->component_count);
    if (--t->missing > 0) return MR_OK;
    assert(*place == t && b->incomplete_count > 0);
    *place = t->next;
    b->incomplete_count--;
    push_ready(b, t);
    return MR_OK;
}

/* Keys before one that is refused stay inserted, as in TensorFlow. */
static mr_status insert_all(insertion *n, mr_error *error)
{
    barrier *b = n->barrier;
    mr_status status = MR_OK;
    pthread_mutex_lock(&b->condition.mutex);
    if (b->is_closed && (b->is_cancelled || (n->count > 0 && b->incomplete_count == 0))) status = refuse(n, error);
    for (int64_t i = 0; i < n->count && status == MR_OK; i++) status = insert_one(n, i, error);
    if (n->has_new) b->next_index++;
    mr_condition_changed(&b->condition);
    pthread_mutex_unlock(&b->condition.mutex);
    return status;
}

static mr_status check_values(const mr_kernel_call *call, const barrier *b, int32_t component, mr_error *error)
{
    const mr_tensor *keys = &call->inputs[1], *values = &call->inputs[2];
    char given[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    if (values->dtype != b->dtypes[component])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Signature mismatch, have: %s expected: %s for component %d",
                              mr_dtype_name(values->dtype), mr_dtype_name(b->dtypes[component]), (int)component);
    if (mr_tensor_count(keys) > 0 && mr_tensor_count(values) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tensors with no elements are not supported %s: received shape %s", b->resource.name,
                              mr_shape_text(values->shape, given, sizeof given));
    if (keys->shape.rank != 1 || values->shape.rank < 1 || keys->shape.dims[0] != values->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "keys must be a vector with a key for each row of values, found shapes %s and %s",
                              mr_shape_text(keys->shape, given, sizeof given),
                              mr_shape_text(values->shape, wanted, sizeof wanted));
    mr_shape shape = mr_shape_tail(values->shape);
    if (mr_tensor_count(keys) > 0 && !mr_shape_equal(shape, b->shapes[component]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape mismatch in tuple component %d. Expected %s, got %s", (int)component + 2,
                              mr_shape_text(b->shapes[component], wanted, sizeof wanted),
                              mr_shape_text(shape, given, sizeof given));
    return MR_OK;
}

static mr_status insert_many(mr_kernel_call *call, mr_error *error)
{
    barrier *b;
    MR_TRY(barrier_at(call, &b, error));
    int64_t component = mr_attr_int_or(call->node->attrs, "component_index", 0);
    if (component < 0 || component >= b->component_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The component ID is out of range %lld > num_components (= %d)", (long long)component,
                              (int)b->component_count);
    MR_TRY(check_values(call, b, (int32_t)component, error));
    insertion n = {.call = call,
                   .barrier = b,
                   .component = (int32_t)component,
                   .keys = mr_tensor_strings(&call->inputs[1]),
                   .count = mr_tensor_count(&call->inputs[1])};
    MR_TRY(mr_members_source(call, 2, &n.values, error));
    mr_status status = insert_all(&n, error);
    mr_tensor_deinit(&n.values);
    return status;
}

/* ---- Taking ---- */

typedef struct taking {
    mr_kernel_call *call;
    barrier *barrier;
    int32_t count;
    bool may_be_fewer;
} taking;

static mr_status stack_values(const taking *g, tuple **taken, int64_t count, mr_tensor *elements, mr_error *error)
{
    mr_tensor *outputs = g->call->outputs;
    for (int32_t c = 0; c < g->barrier->component_count; c++) {
        for (int64_t i = 0; i < count; i++) elements[i] = taken[i]->components[c];
        MR_TRY(
            mr_stack(elements, count, g->barrier->dtypes[c], g->barrier->shapes[c], nullptr, &outputs[2 + c], error));
    }
    return MR_OK;
}

static mr_status fill_outputs(const taking *g, tuple **taken, int64_t count, mr_error *error)
{
    size_t room = (size_t)MR_MAX(count, 1);
    mr_tensor *elements = calloc(room, sizeof *elements);
    mr_string *keys = calloc(room, sizeof *keys);
    mr_status status = elements && keys ? MR_OK : mr_fail_memory(error, room * sizeof *elements);
    if (status == MR_OK) status = mr_kernel_output(g->call, 0, MR_SHAPE(count), error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) {
        mr_tensor_int64s(&g->call->outputs[0])[i] = taken[i]->index;
        keys[i] = taken[i]->key;
    }
    if (status == MR_OK) status = mr_tensor_init_strings(&g->call->outputs[1], MR_SHAPE(count), keys, error);
    if (status == MR_OK) status = stack_values(g, taken, count, elements, error);
    free(elements);
    free(keys);
    return status;
}

/* Tuples of which no outputs can be made return to the barrier. */
static mr_status take(const taking *g, int64_t count, mr_error *error)
{
    barrier *b = g->barrier;
    assert(count >= 0 && count <= b->ready_count && mr_mutex_is_held(&b->condition.mutex));
    tuple **taken = calloc((size_t)MR_MAX(count, 1), sizeof(tuple *));
    if (!taken) return mr_fail_memory(error, (size_t)count * sizeof(tuple *));
    for (int64_t i = 0; i < count; i++) taken[i] = pop_ready(b);
    mr_status status = fill_outputs(g, taken, count, error);
    if (status != MR_OK)
        for (int32_t i = 0; i < g->call->node->output_count; i++) {
            mr_tensor_deinit(&g->call->outputs[i]);
            g->call->outputs[i] = (mr_tensor){0};
        }
    for (int64_t i = 0; i < count; i++) {
        if (status == MR_OK)
            free_tuple(b, taken[i]);
        else
            push_ready(b, taken[i]);
    }
    free(taken);
    return status;
}

static bool try_take(void *context, mr_status *status, mr_error *error)
{
    const taking *g = context;
    barrier *b = g->barrier;
    int64_t wanted = g->count, available = b->ready_count;
    if (b->is_closed && g->may_be_fewer) wanted = MR_MIN(wanted, available);
    if (b->is_closed && !g->may_be_fewer) available += b->incomplete_count;
    if (b->is_closed && available < MR_MAX(wanted, 1)) {
        *status = mr_kernel_fail(g->call->node, error, MR_OUT_OF_RANGE,
                                 "Barrier '%s' is closed and has insufficient elements (requested %lld, total size "
                                 "%lld)",
                                 b->resource.name, (long long)wanted, (long long)available);
        return true;
    }
    if (b->ready_count < wanted) return false;
    *status = take(g, wanted, error);
    mr_condition_changed(&b->condition);
    return true;
}

static mr_status check_timeout(const mr_kernel_node *node, void *, mr_error *error)
{
    if (mr_attr_int_or(node->attrs, "timeout_ms", -1) == -1) return MR_OK;
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Timeout not supported yet.");
}

static mr_status take_many(mr_kernel_call *call, mr_error *error)
{
    taking g = {.call = call, .may_be_fewer = mr_attr_bool_or(call->node->attrs, "allow_small_batch", false)};
    MR_TRY(barrier_at(call, &g.barrier, error));
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_elements must be a scalar.");
    g.count = mr_tensor_int32s(&call->inputs[1])[0];
    if (g.count < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_elements must not be negative, found %d",
                              (int)g.count);
    bool equal = call->node->output_count == g.barrier->component_count + 2;
    for (int32_t i = 0; equal && i < g.barrier->component_count; i++)
        equal = call->node->output_dtypes[2 + i] == g.barrier->dtypes[i];
    if (!equal)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Signature mismatch: the barrier %s has other component types", g.barrier->resource.name);
    return mr_condition_run(&g.barrier->condition, call, try_take, &g, error);
}

/* ---- Closing, and sizes ---- */

static mr_status close_barrier(mr_kernel_call *call, mr_error *error)
{
    barrier *b;
    bool cancels = mr_attr_bool_or(call->node->attrs, "cancel_pending_enqueues", false);
    MR_TRY(barrier_at(call, &b, error));
    mr_status status = MR_OK;
    pthread_mutex_lock(&b->condition.mutex);
    if (b->is_closed && (b->is_cancelled || !cancels)) {
        status = mr_kernel_fail(call->node, error, MR_CANCELLED, "Barrier '%s' is already closed.", b->resource.name);
    } else {
        b->is_closed = true;
        b->is_cancelled = cancels;
        if (cancels) drop_incomplete(b);
        mr_condition_changed(&b->condition);
    }
    pthread_mutex_unlock(&b->condition.mutex);
    return status;
}

static mr_status count_tuples(mr_kernel_call *call, bool ready, mr_error *error)
{
    barrier *b;
    MR_TRY(barrier_at(call, &b, error));
    pthread_mutex_lock(&b->condition.mutex);
    int64_t count = ready ? b->ready_count : b->incomplete_count;
    pthread_mutex_unlock(&b->condition.mutex);
    return mr_tensor_init_int32(&call->outputs[0], (int32_t)MR_MIN(count, INT32_MAX), error);
}

static mr_status ready_size(mr_kernel_call *call, mr_error *error)
{
    return count_tuples(call, true, error);
}

static mr_status incomplete_size(mr_kernel_call *call, mr_error *error)
{
    return count_tuples(call, false, error);
}

static const mr_kernel kernels[] = {
    {.op = "BarrierInsertMany", .run = insert_many},
    {.op = "BarrierTakeMany", .run = take_many, .prepare = check_timeout, .prepared_size_bytes = 1},
    {.op = "BarrierClose", .run = close_barrier},
    {.op = "BarrierReadySize", .run = ready_size},
    {.op = "BarrierIncompleteSize", .run = incomplete_size},
};
const mr_kernel_table mr_state_kernels_barrier = {kernels, sizeof kernels / sizeof kernels[0]};
