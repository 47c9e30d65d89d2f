/* Stacks of tensors. A stack refers to what is pushed, and copies nothing. Its mutex guards everything after it.
 *
 * swap_memory has no effect: it saves GPU memory in TensorFlow, and stacks are in host memory here. */
#include "base/mutex.h"
#include "graph/state/members.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stack {
    mr_holder holder;
    mr_dtype dtype;
    int32_t max_size;
    char *name;
    pthread_mutex_t mutex;
    bool is_closed;
    mr_tensor *items;
    int64_t count, capacity;
} stack;

static void clear(stack *s)
{
    for (int64_t i = 0; i < s->count; i++) mr_tensor_deinit(&s->items[i]);
    free(s->items);
    s->items = nullptr;
    s->count = s->capacity = 0;
}

static void stack_deinit(mr_resource *resource)
{
    stack *s = (stack *)resource;
    clear(s);
    free(s->name);
    pthread_mutex_destroy(&s->mutex);
}

static const mr_resource_class stack_class = {
    .name = "stack", .kind = MR_RESOURCE_HOLDER, .size_bytes = sizeof(stack), .deinit = stack_deinit};

/* "name_3": the attr, or the node's name, and the number of the run. */
static char *stack_name(const mr_kernel_call *call)
{
    mr_string given = mr_attr_string_or(call->node->attrs, "stack_name", "");
    if (given.size_bytes == 0) given = mr_string_from(call->node->name);
    size_t size = given.size_bytes + 24;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%.*s_%" PRIu64, (int)given.size_bytes, given.data, (uint64_t)call->invocation);
    return name;
}

static mr_status new_stack(mr_kernel_call *call, int32_t max_size, mr_error *error)
{
    mr_holder *holder;
    MR_TRY(mr_holder_new(&stack_class, &holder, error));
    stack *s = (stack *)holder;
    pthread_mutex_init(&s->mutex, nullptr);
    s->dtype = mr_attr_type_or(call->node->attrs, "elem_type", MR_DTYPE_INVALID);
    s->max_size = max_size;
    s->name = stack_name(call);
    call->outputs[0] = mr_tensor_take_resource(call->node->output_dtypes[0], &holder->resource);
    return s->name ? MR_OK : mr_fail_memory(error, 24);
}

static mr_status open_stack(mr_kernel_call *call, mr_error *error)
{
    int32_t max_size = INT32_MAX;
    if (call->node->input_count > 0) MR_TRY(mr_member_int(call, 0, "Stack size must be a scalar", &max_size, error));
    return new_stack(call, max_size < 0 ? INT32_MAX : max_size, error);
}

static mr_status stack_at(const mr_kernel_call *call, stack **s, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &stack_class, &resource, error));
    *s = (stack *)resource;
    return MR_OK;
}

static mr_status check_open(const mr_kernel_call *call, const stack *s, mr_error *error)
{
    if (!s->is_closed) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Stack[%s] has already been closed.", s->name);
}

static mr_status push_locked(const mr_kernel_call *call, stack *s, const mr_tensor *element, mr_error *error)
{
    assert(mr_mutex_is_held(&s->mutex) && s->count >= 0 && s->count <= s->capacity);
    MR_TRY(check_open(call, s, error));
    if (s->count >= s->max_size)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Stack[%s] overflowed its max_size (%d)", s->name,
                              (int)s->max_size);
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 16;
        mr_tensor *larger = realloc(s->items, (size_t)capacity * sizeof *larger);
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        s->items = larger;
        s->capacity = capacity;
    }
    s->items[s->count++] = mr_tensor_ref(element);
    return MR_OK;
}

static mr_status push(mr_kernel_call *call, mr_error *error)
{
    stack *s;
    const mr_tensor *element = &call->inputs[1];
    MR_TRY(stack_at(call, &s, error));
    if (element->dtype != s->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Must have type %s but got %s",
                              mr_dtype_name(s->dtype), mr_dtype_name(element->dtype));
    MR_TRY(mr_holder_check(call, &s->holder, element, error));
    pthread_mutex_lock(&s->mutex);
    mr_status status = push_locked(call, s, element, error);
    pthread_mutex_unlock(&s->mutex);
    if (status == MR_OK) call->outputs[0] = mr_tensor_ref(element);
    return status;
}

static mr_status pop_locked(mr_kernel_call *call, stack *s, mr_error *error)
{
    assert(mr_mutex_is_held(&s->mutex) && s->count >= 0 && s->count <= s->capacity);
    MR_TRY(check_open(call, s, error));
    if (s->count == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Stack[%s] is empty when calling Pop().",
                              s->name);
    call->outputs[0] = s->items[--s->count];
    return MR_OK;
}

static mr_status pop(mr_kernel_call *call, mr_error *error)
{
    stack *s;
    MR_TRY(stack_at(call, &s, error));
    pthread_mutex_lock(&s->mutex);
    mr_status status = pop_locked(call, s, error);
    pthread_mutex_unlock(&s->mutex);
    if (status == MR_OK && s->dtype != call->node->output_dtypes[0]) {
        mr_tensor_deinit(&call->outputs[0]);
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Stack[%s] has elements of type %s, not %s",
                              s->name, mr_dtype_name(s->dtype), mr_dtype_name(call->node->output_dtypes[0]));
    }
    return status;
}

static mr_status close_stack(mr_kernel_call *call, mr_error *error)
{
    stack *s;
    MR_TRY(stack_at(call, &s, error));
    pthread_mutex_lock(&s->mutex);
    clear(s);
    s->is_closed = true;
    pthread_mutex_unlock(&s->mutex);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "StackV2", .run = open_stack},       {.op = "Stack", .run = open_stack},
    {.op = "StackPushV2", .run = push},         {.op = "StackPush", .run = push},
    {.op = "StackPopV2", .run = pop},           {.op = "StackPop", .run = pop},
    {.op = "StackCloseV2", .run = close_stack}, {.op = "StackClose", .run = close_stack},
};
const mr_kernel_table mr_state_kernels_stack = {kernels, sizeof kernels / sizeof kernels[0]};
