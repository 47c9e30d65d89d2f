/* Staging areas by key: maps from integers to tuples, whose tensors may arrive and be taken one by one. Both kinds keep
 * their tuples in the order of their keys; in TensorFlow only the ordered one does. */
#include "graph/state/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int64_t key;
    int32_t count;       /* tensors in the tuple */
    mr_tensor tensors[]; /* MR_DTYPE_INVALID: not set, or taken */
} entry;

/* In the order of their keys. */
typedef struct entries {
    entry **items;
    int64_t count, room;
} entries;

typedef struct area {
    mr_staging_area stage;
    int32_t width; /* tensors in a tuple; 0: no node has stated it */
    entries complete, incomplete;
} area;

static void free_entry(entry *e)
{
    if (!e) return;
    for (int32_t i = 0; i < e->count; i++) mr_tensor_deinit(&e->tensors[i]);
    free(e);
}

static void free_entries(entries *all)
{
    for (int64_t i = 0; i < all->count; i++) free_entry(all->items[i]);
    free(all->items);
    *all = (entries){0};
}

static void area_deinit(mr_resource *resource)
{
    area *a = (area *)resource;
    free_entries(&a->complete);
    free_entries(&a->incomplete);
    mr_condition_deinit(&a->stage.condition);
}

static void area_reset(mr_resource *resource)
{
    area *a = (area *)resource;
    pthread_mutex_lock(&a->stage.condition.mutex);
    free_entries(&a->complete);
    free_entries(&a->incomplete);
    a->stage.size_bytes = 0;
    mr_condition_changed(&a->stage.condition);
    pthread_mutex_unlock(&a->stage.condition.mutex);
}

static const mr_resource_class area_class = {
    .name = "staging map", .size_bytes = sizeof(area), .deinit = area_deinit, .reset = area_reset};
static const mr_resource_class ordered_class = {
    .name = "ordered staging map", .size_bytes = sizeof(area), .deinit = area_deinit, .reset = area_reset};

/* ---- Entries ---- */

/* The index of the first entry whose key is not less. */
static int64_t find(const entries *all, int64_t key)
{
    int64_t begin = 0, end = all->count;
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (all->items[middle]->key < key)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static entry *at(const entries *all, int64_t index, int64_t key)
{
    return index < all->count && all->items[index]->key == key ? all->items[index] : nullptr;
}

static mr_status reserve(entries *all, mr_error *error)
{
    if (all->count < all->room) return MR_OK;
    int64_t room = all->room ? 2 * all->room : 64;
    assert(all->count == all->room);
    entry **larger = realloc(all->items, (size_t)room * sizeof(entry *));
    if (!larger) return mr_fail_memory(error, (size_t)room * sizeof(entry *));
    all->items = larger;
    all->room = room;
    return MR_OK;
}

static void add(entries *all, int64_t index, entry *e)
{
    assert(index >= 0 && index <= all->count && all->count < all->room);
    assert(index == 0 || all->items[index - 1]->key < e->key);
    assert(index == all->count || e->key < all->items[index]->key);
    memmove(all->items + index + 1, all->items + index, (size_t)(all->count - index) * sizeof(entry *));
    all->items[index] = e;
    all->count++;
}

static void erase(entries *all, int64_t index)
{
    assert(index >= 0 && index < all->count);
    all->count--;
    memmove(all->items + index, all->items + index + 1, (size_t)(all->count - index) * sizeof(entry *));
}

static bool has_tensor(const entry *e, bool all)
{
    int32_t set = 0;
    for (int32_t i = 0; i < e->count; i++) set += mr_member_is_set(&e->tensors[i]);
    return all ? set == e->count : set > 0;
}

/* ---- Calls ---- */

typedef struct attempt {
    mr_kernel_call *call;
    area *area;
    int64_t key;
    const int32_t *indices;
    int64_t index_count;
    const mr_tensor *values; /* put: one for each index */
    entry *made;             /* put: for a key that has none; owned */
    uint64_t size_bytes;     /* put: of the values */
    bool takes, any_key;     /* others: whether the tensors are removed; whether the key does not matter */
} attempt;

static mr_status check_order(const attempt *t, mr_error *error)
{
    for (int64_t i = 1; i < t->index_count; i++)
        if (t->indices[i - 1] >= t->indices[i])
            return mr_kernel_fail(t->call->node, error, MR_INVALID_ARGUMENT, "Indices are not strictly ordered");
    return MR_OK;
}

static mr_status check_index(const attempt *t, int64_t key, int32_t index, int32_t count, mr_error *error)
{
    if (index >= 0 && index < count) return MR_OK;
    return mr_kernel_fail(t->call->node, error, MR_INVALID_ARGUMENT,
                          "Index '%d' for key '%lld' was out of bounds '%d'.", (int)index, (long long)key, (int)count);
}

/* key_input: -1: none. The indices follow the key. */
static mr_status begin(mr_kernel_call *call, int32_t key_input, bool has_indices, attempt *t, mr_error *error)
{
    mr_staging_area *stage;
    bool is_ordered = strncmp(call->node->op, "Ordered", 7) == 0;
    MR_TRY(mr_stage_named(call, is_ordered ? &ordered_class : &area_class, &stage, error));
    *t = (attempt){.call = call, .area = (area *)stage};
    const mr_attr *dtypes = mr_attrs_find(call->node->attrs, "dtypes");
    pthread_mutex_lock(&stage->condition.mutex);
    if (t->area->width == 0 && dtypes) t->area->width = dtypes->count;
    pthread_mutex_unlock(&stage->condition.mutex);
    if (key_input >= 0 && mr_tensor_count(&call->inputs[key_input]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "key must be an int64 scalar");
    if (key_input >= 0) t->key = mr_tensor_int64s(&call->inputs[key_input])[0];
    if (!has_indices) return MR_OK;
    t->indices = mr_tensor_int32s(&call->inputs[key_input + 1]);
    t->index_count = mr_tensor_count(&call->inputs[key_input + 1]);
    return check_order(t, error);
}

/* ---- Adding ---- */

static void set_tensors(const attempt *t, entry *e)
{
    for (int64_t i = 0; i < t->index_count; i++) {
        assert(t->indices[i] >= 0 && t->indices[i] < e->count && !mr_member_is_set(&e->tensors[t->indices[i]]));
        e->tensors[t->indices[i]] = mr_tensor_ref(&t->values[i]);
    }
}

/* A second tuple of a key is ignored, as in TensorFlow. */
static void put_complete(attempt *t, entry *e)
{
    area *a = t->area;
    int64_t index = find(&a->complete, t->key);
    assert(e->key == t->key && has_tensor(e, true));
    if (at(&a->complete, index, t->key)) {
        for (int32_t i = 0; i < e->count; i++) a->stage.size_bytes -= mr_stage_tensor_bytes(&e->tensors[i]);
        free_entry(e);
        return;
    }
    add(&a->complete, index, e);
    mr_condition_changed(&a->stage.condition);
}

static mr_status put_part(attempt *t, mr_error *error)
{
    area *a = t->area;
    int64_t index = find(&a->incomplete, t->key);
    entry *present = at(&a->incomplete, index, t->key);
    for (int64_t i = 0; present && i < t->index_count; i++)
        if (mr_member_is_set(&present->tensors[t->indices[i]]))
            return mr_kernel_fail(t->call->node, error, MR_INVALID_ARGUMENT,
                                  "The tensor for index '%d' for key '%lld' was already initialized '%d'.",
                                  (int)t->indices[i], (long long)t->key, (int)a->width);
    a->stage.size_bytes += t->size_bytes;
    if (!present) {
        set_tensors(t, t->made);
        add(&a->incomplete, index, t->made);
        t->made = nullptr;
        return MR_OK;
    }
    set_tensors(t, present);
    if (!has_tensor(present, true)) return MR_OK;
    erase(&a->incomplete, index);
    put_complete(t, present);
    return MR_OK;
}

static bool try_put(void *context, mr_status *status, mr_error *error)
{
    attempt *t = context;
    area *a = t->area;
    bool is_part = t->index_count != t->made->count;
    if (!mr_stage_has_memory(&a->stage, t->size_bytes)) return false;
    if (!is_part && a->stage.capacity > 0 && (uint64_t)a->complete.count >= a->stage.capacity) return false;
    *status = reserve(&a->complete, error);
    if (*status == MR_OK) *status = reserve(&a->incomplete, error);
    if (*status != MR_OK) return true;
    if (is_part) {
        *status = put_part(t, error);
        return true;
    }
    a->stage.size_bytes += t->size_bytes;
    set_tensors(t, t->made);
    put_complete(t, t->made);
    t->made = nullptr;
    return true;
}

static mr_status check_put(attempt *t, mr_error *error)
{
    int32_t width = t->area->width;
    if (t->index_count != t->call->node->input_count - 2)
        return mr_kernel_fail(t->call->node, error, MR_INVALID_ARGUMENT, "there are %lld indices for %d values",
                              (long long)t->index_count, (int)t->call->node->input_count - 2);
    for (int64_t i = 0; i < t->index_count; i++) MR_TRY(check_index(t, t->key, t->indices[i], width, error));
    size_t size = sizeof(entry) + (size_t)width * sizeof(mr_tensor);
    t->made = calloc(1, size);
    if (!t->made) return mr_fail_memory(error, size);
    t->made->key = t->key;
    t->made->count = width;
    return mr_stage_check_size(t->call, &t->area->stage, t->size_bytes, error);
}

static mr_status put(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, 0, true, &t, error));
    int32_t count = call->node->input_count - 2;
    mr_tensor *values = calloc((size_t)MR_MAX(count, 1), sizeof *values);
    mr_status status = values ? MR_OK : mr_fail_memory(error, (size_t)count * sizeof *values);
    t.values = values;
    for (int32_t i = 0; i < count && status == MR_OK; i++) {
        status = mr_members_source(call, 2 + i, &values[i], error);
        if (status == MR_OK) t.size_bytes += mr_stage_tensor_bytes(&values[i]);
    }
    if (status == MR_OK) status = check_put(&t, error);
    if (status == MR_OK) status = mr_condition_run(&t.area->stage.condition, call, try_put, &t, error);
    free_entry(t.made);
    for (int32_t i = 0; values && i < count; i++) mr_tensor_deinit(&values[i]);
    free(values);
    return status;
}

/* ---- Taking and peeking ---- */

static mr_status check_outputs(const attempt *t, const entry *e, mr_error *error)
{
    const mr_kernel_node *node = t->call->node;
    int32_t first = t->any_key ? 1 : 0;
    if (t->index_count != node->output_count - first)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "output/indices size mismatch: %d vs. %lld",
                              (int)(node->output_count - first), (long long)t->index_count);
    for (int64_t i = 0; i < t->index_count; i++) {
        MR_TRY(check_index(t, e->key, t->indices[i], e->count, error));
        const mr_tensor *tensor = &e->tensors[t->indices[i]];
        if (!mr_member_is_set(tensor))
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "Tensor at index '%d' for key '%lld' has already been removed.", (int)t->indices[i],
                                  (long long)e->key);
        if (tensor->dtype != node->output_dtypes[first + i])
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "tensor %d of key '%lld' is a %s, not a %s",
                                  (int)t->indices[i], (long long)e->key, mr_dtype_name(tensor->dtype),
                                  mr_dtype_name(node->output_dtypes[first + i]));
    }
    return MR_OK;
}

static void move_tensors(const attempt *t, entry *e)
{
    int32_t first = t->any_key ? 1 : 0;
    for (int64_t i = 0; i < t->index_count; i++) {
        mr_tensor *tensor = &e->tensors[t->indices[i]];
        t->call->outputs[first + i] = mr_tensor_ref(tensor);
        if (!t->takes) continue;
        assert(t->area->stage.size_bytes >= mr_stage_tensor_bytes(tensor));
        t->area->stage.size_bytes -= mr_stage_tensor_bytes(tensor);
        mr_tensor_deinit(tensor);
        *tensor = (mr_tensor){0};
    }
}

static bool try_get(void *context, mr_status *status, mr_error *error)
{
    attempt *t = context;
    entries *all = &t->area->complete;
    int64_t index = t->any_key ? 0 : find(all, t->key);
    if (index >= all->count || (!t->any_key && !at(all, index, t->key))) return false;
    entry *e = all->items[index];
    *status = check_outputs(t, e, error);
    if (*status == MR_OK && t->any_key) *status = mr_tensor_init_int64(&t->call->outputs[0], e->key, error);
    if (*status != MR_OK) return true;
    move_tensors(t, e);
    if (t->takes && !has_tensor(e, false)) {
        erase(all, index);
        free_entry(e);
    }
    if (t->takes) mr_condition_changed(&t->area->stage.condition);
    return true;
}

static mr_status get(mr_kernel_call *call, bool takes, bool any_key, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, any_key ? -1 : 0, true, &t, error));
    t.takes = takes;
    t.any_key = any_key;
    return mr_condition_run(&t.area->stage.condition, call, try_get, &t, error);
}

static mr_status unstage(mr_kernel_call *call, mr_error *error)
{
    return get(call, true, false, error);
}

static mr_status unstage_any(mr_kernel_call *call, mr_error *error)
{
    return get(call, true, true, error);
}

static mr_status peek(mr_kernel_call *call, mr_error *error)
{
    return get(call, false, false, error);
}

/* ---- Sizes ---- */

static mr_status count_entries(mr_kernel_call *call, bool complete, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, -1, false, &t, error));
    pthread_mutex_lock(&t.area->stage.condition.mutex);
    int64_t count = complete ? t.area->complete.count : t.area->incomplete.count;
    pthread_mutex_unlock(&t.area->stage.condition.mutex);
    return mr_tensor_init_int32(&call->outputs[0], (int32_t)MR_MIN(count, INT32_MAX), error);
}

static mr_status size(mr_kernel_call *call, mr_error *error)
{
    return count_entries(call, true, error);
}

static mr_status incomplete_size(mr_kernel_call *call, mr_error *error)
{
    return count_entries(call, false, error);
}

static mr_status clear(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, -1, false, &t, error));
    area *a = t.area;
    pthread_mutex_lock(&a->stage.condition.mutex);
    free_entries(&a->complete);
    free_entries(&a->incomplete);
    a->stage.size_bytes = 0;
    mr_condition_changed(&a->stage.condition);
    pthread_mutex_unlock(&a->stage.condition.mutex);
    return MR_OK;
}

#define BOTH(name, ...)                                                                                                \
    {.op = name, __VA_ARGS__},                                                                                         \
    {                                                                                                                  \
        .op = "Ordered" name, __VA_ARGS__                                                                              \
    }
static const mr_kernel kernels[] = {
    BOTH("MapStage", .run = put),   BOTH("MapUnstage", .run = unstage),
    BOTH("MapPeek", .run = peek),   BOTH("MapUnstageNoKey", .run = unstage_any),
    BOTH("MapSize", .run = size),   BOTH("MapIncompleteSize", .run = incomplete_size),
    BOTH("MapClear", .run = clear),
};
const mr_kernel_table mr_state_kernels_map_stage = {kernels, sizeof kernels / sizeof kernels[0]};
