/* Staging areas: queues of tuples that every node with their name shares. */
#include "graph/state/stage.h"

#include "graph/run/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- What all areas have in common ---- */

static mr_status make_stage(const mr_kernel_call *call, const mr_resource_class *class, const char *container,
                            const char *name, mr_resource **resource, mr_error *error)
{
    mr_session *session = call->run->session;
    bool made = false;
    pthread_mutex_lock(&session->mutex);
    mr_status status = mr_resource_make(&session->resources, class, container, name, resource, &made, error);
    if (made) {
        mr_staging_area *stage = (mr_staging_area *)*resource;
        mr_condition_init(&stage->condition, false);
        stage->capacity = (uint64_t)mr_attr_int_or(call->node->attrs, "capacity", 0);
        stage->memory_limit_bytes = (uint64_t)mr_attr_int_or(call->node->attrs, "memory_limit", 0);
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}

mr_status mr_stage_named(const mr_kernel_call *call, const mr_resource_class *class, mr_staging_area **stage,
                         mr_error *error)
{
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a staging area is named outside of a session");
    mr_string container = mr_attr_string_or(call->node->attrs, "container", "");
    mr_string shared = mr_attr_string_or(call->node->attrs, "shared_name", "");
    mr_arena arena = {0};
    mr_resource *resource = nullptr;
    const char *in = mr_arena_strndup(&arena, container.data, container.size_bytes);
    const char *name =
        shared.size_bytes > 0 ? mr_arena_strndup(&arena, shared.data, shared.size_bytes) : call->node->name;
    mr_status status = in && name ? make_stage(call, class, in, name, &resource, error)
                                  : mr_fail_memory(error, container.size_bytes + shared.size_bytes);
    mr_arena_deinit(&arena);
    *stage = (mr_staging_area *)resource;
    return status;
}

uint64_t mr_stage_tensor_bytes(const mr_tensor *tensor)
{
    constexpr uint64_t STRING_BYTES = 24; /* of TensorFlow's strings */
    if (tensor->dtype != MR_STRING) return mr_tensor_size_bytes(tensor);
    uint64_t bytes = 0;
    int64_t count = mr_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) bytes += STRING_BYTES + mr_tensor_strings(tensor)[i].size_bytes;
    return bytes;
}

mr_status mr_stage_check_size(const mr_kernel_call *call, const mr_staging_area *stage, uint64_t size_bytes,
                              mr_error *error)
{
    if (stage->memory_limit_bytes == 0 || size_bytes <= stage->memory_limit_bytes) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED,
                          "Attempted to insert tensors with combined size of '%llu' bytes into Staging Area with a "
                          "memory limit of '%llu'.",
                          (unsigned long long)size_bytes, (unsigned long long)stage->memory_limit_bytes);
}

bool mr_stage_has_memory(const mr_staging_area *stage, uint64_t size_bytes)
{
    assert(stage->memory_limit_bytes == 0 || stage->size_bytes <= stage->memory_limit_bytes);
    return stage->memory_limit_bytes == 0 || size_bytes <= stage->memory_limit_bytes - stage->size_bytes;
}

/* ---- Stage and Unstage ---- */

typedef struct tuple tuple;
struct tuple {
    tuple *next;
    uint64_t size_bytes;
    int32_t count;
    mr_tensor tensors[]; /* owned */
};

typedef struct area {
    mr_staging_area stage;
    tuple *first, *last; /* the oldest first */
    uint64_t count;
} area;

static void free_tuple(tuple *t)
{
    for (int32_t i = 0; i < t->count; i++) mr_tensor_deinit(&t->tensors[i]);
    free(t);
}

static void free_tuples(tuple *first)
{
    while (first) {
        tuple *next = first->next;
        free_tuple(first);
        first = next;
    }
}

static void area_deinit(mr_resource *resource)
{
    area *a = (area *)resource;
    free_tuples(a->first);
    mr_condition_deinit(&a->stage.condition);
}

static void area_reset(mr_resource *resource)
{
    area *a = (area *)resource;
    pthread_mutex_lock(&a->stage.condition.mutex);
    free_tuples(a->first);
    a->first = a->last = nullptr;
    a->count = 0;
    a->stage.size_bytes = 0;
    mr_condition_changed(&a->stage.condition);
    pthread_mutex_unlock(&a->stage.condition.mutex);
}

static const mr_resource_class area_class = {
    .name = "staging area", .size_bytes = sizeof(area), .deinit = area_deinit, .reset = area_reset};

/* An attempt of a call: of stage with a tuple, of the others with an index. */
typedef struct attempt {
    mr_kernel_call *call;
    area *area;
    tuple *tuple;
    uint64_t index;
} attempt;

static mr_status begin(mr_kernel_call *call, attempt *t, mr_error *error)
{
    mr_staging_area *stage;
    MR_TRY(mr_stage_named(call, &area_class, &stage, error));
    *t = (attempt){.call = call, .area = (area *)stage};
    return MR_OK;
}

static mr_status new_tuple(const mr_kernel_call *call, tuple **made, mr_error *error)
{
    size_t size = sizeof(tuple) + (size_t)call->node->input_count * sizeof(mr_tensor);
    tuple *t = *made = calloc(1, size);
    if (!t) return mr_fail_memory(error, size);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < call->node->input_count && status == MR_OK; i++) {
        status = mr_members_source(call, i, &t->tensors[i], error);
        if (status != MR_OK) break;
        t->count++;
        t->size_bytes += mr_stage_tensor_bytes(&t->tensors[i]);
    }
    if (status != MR_OK) free_tuple(t);
    return status;
}

static bool try_stage(void *context, mr_status *, mr_error *)
{
    attempt *t = context;
    area *a = t->area;
    mr_staging_area *stage = &a->stage;
    if (stage->capacity > 0 && a->count >= stage->capacity) return false;
    if (!mr_stage_has_memory(stage, t->tuple->size_bytes)) return false;
    assert((a->first == nullptr) == (a->count == 0) && (a->last == nullptr) == (a->count == 0));
    assert(a->last == nullptr || a->last->next == nullptr);
    stage->size_bytes += t->tuple->size_bytes;
    if (a->last)
        a->last->next = t->tuple;
    else
        a->first = t->tuple;
    a->last = t->tuple;
    a->count++;
    t->tuple = nullptr;
    mr_condition_changed(&stage->condition);
    return true;
}

static mr_status stage_tuple(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    tuple *made;
    MR_TRY(begin(call, &t, error));
    MR_TRY(new_tuple(call, &made, error));
    t.tuple = made;
    mr_status status = mr_stage_check_size(call, &t.area->stage, made->size_bytes, error);
    if (status == MR_OK) status = mr_condition_run(&t.area->stage.condition, call, try_stage, &t, error);
    if (t.tuple) free_tuple(t.tuple);
    return status;
}

/* A tuple of other tensors than the node's outputs is an error, and stays. */
static mr_status fill_outputs(const mr_kernel_call *call, const tuple *t, mr_error *error)
{
    if (t->count != call->node->output_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Mismatch stage/unstage: %d vs. %d",
                              (int)t->count, (int)call->node->output_count);
    for (int32_t i = 0; i < t->count; i++)
        if (t->tensors[i].dtype != call->node->output_dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor %d is a %s, not a %s", (int)i,
                                  mr_dtype_name(t->tensors[i].dtype), mr_dtype_name(call->node->output_dtypes[i]));
    for (int32_t i = 0; i < t->count; i++) call->outputs[i] = mr_tensor_ref(&t->tensors[i]);
    return MR_OK;
}

static bool try_unstage(void *context, mr_status *status, mr_error *error)
{
    attempt *t = context;
    area *a = t->area;
    if (!a->first) return false;
    *status = fill_outputs(t->call, a->first, error);
    if (*status != MR_OK) return true;
    t->tuple = a->first;
    a->first = t->tuple->next;
    if (!a->first) a->last = nullptr;
    assert(a->count > 0 && a->stage.size_bytes >= t->tuple->size_bytes);
    a->count--;
    a->stage.size_bytes -= t->tuple->size_bytes;
    assert((a->first == nullptr) == (a->count == 0) && (a->count > 0 || a->stage.size_bytes == 0));
    mr_condition_changed(&a->stage.condition);
    return true;
}

static mr_status unstage(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, &t, error));
    mr_status status = mr_condition_run(&t.area->stage.condition, call, try_unstage, &t, error);
    if (t.tuple) free_tuple(t.tuple);
    return status;
}

static bool try_peek(void *context, mr_status *status, mr_error *error)
{
    const attempt *t = context;
    if (t->index >= t->area->count) return false;
    const tuple *at = t->area->first;
    for (uint64_t i = 0; i < t->index; i++) at = at->next;
    assert(at != nullptr);
    *status = fill_outputs(t->call, at, error);
    return true;
}

static mr_status peek(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    int32_t index;
    MR_TRY(mr_member_int(call, 0, "index must be scalar", &index, error));
    MR_TRY(begin(call, &t, error));
    t.index = (uint64_t)(int64_t)index; /* there is never a tuple with a negative index: waits, as in TensorFlow */
    return mr_condition_run(&t.area->stage.condition, call, try_peek, &t, error);
}

static mr_status size(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, &t, error));
    pthread_mutex_lock(&t.area->stage.condition.mutex);
    uint64_t count = t.area->count;
    pthread_mutex_unlock(&t.area->stage.condition.mutex);
    return mr_tensor_init_int32(&call->outputs[0], (int32_t)MR_MIN(count, (uint64_t)INT32_MAX), error);
}

static mr_status clear(mr_kernel_call *call, mr_error *error)
{
    attempt t;
    MR_TRY(begin(call, &t, error));
    area *a = t.area;
    pthread_mutex_lock(&a->stage.condition.mutex);
    tuple *tuples = a->first;
    a->first = a->last = nullptr;
    a->count = 0;
    a->stage.size_bytes = 0;
    mr_condition_changed(&a->stage.condition);
    pthread_mutex_unlock(&a->stage.condition.mutex);
    free_tuples(tuples);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Stage", .run = stage_tuple}, {.op = "Unstage", .run = unstage},  {.op = "StagePeek", .run = peek},
    {.op = "StageSize", .run = size},    {.op = "StageClear", .run = clear},
};
const mr_kernel_table mr_state_kernels_stage = {kernels, sizeof kernels / sizeof kernels[0]};
