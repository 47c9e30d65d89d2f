#include "base/thread.h"

#include <stdint.h>
#include <sys/resource.h>

constexpr size_t STACK_BYTES = (size_t)8 << 20;
/* Reserved for what a function's kernels need; of small stacks, half. */
constexpr size_t RESERVED_BYTES = (size_t)128 << 10;

static thread_local int32_t nesting;

int32_t mr_nesting(void)
{
    return nesting;
}

int32_t mr_nesting_set(int32_t now)
{
    int32_t before = nesting;
    nesting = now;
    return before;
}

/* ---- Stacks ---- */

/* The calling thread's stack: [low, high). */
typedef struct stack {
    uintptr_t low, high;
} stack;

static stack unknown_stack(uintptr_t here)
{
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    size_t size = is_limited ? (size_t)limit.rlim_cur : STACK_BYTES;
    return (stack){.low = here > size ? here - size : 0, .high = here + 1};
}

/* The main thread's stack cannot be found without /proc: then it is assumed to begin here. */
static stack find_stack(uintptr_t here)
{
    pthread_attr_t attr;
    void *low = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return unknown_stack(here);
    bool is_known = pthread_attr_getstack(&attr, &low, &size) == 0 && size > 0;
    (void)pthread_attr_destroy(&attr);
    return is_known ? (stack){.low = (uintptr_t)low, .high = (uintptr_t)low + size} : unknown_stack(here);
}

static const stack *stack_of_thread(uintptr_t here)
{
    static thread_local stack found;
    if (found.high == 0) found = find_stack(here);
    return &found;
}

size_t mr_stack_left_bytes(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const stack *stack = stack_of_thread(here);
    /* Coroutines run on stacks of their own. */
    return here < stack->low || here >= stack->high ? SIZE_MAX : here - stack->low;
}

mr_status mr_nesting_check(int32_t wanted, mr_error *error)
{
    if (wanted > MR_NESTING_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "more than %d calls of functions inside each other",
                       MR_NESTING_MAX);
    size_t left = mr_stack_left_bytes();
    const stack *stack = stack_of_thread((uintptr_t)__builtin_frame_address(0));
    size_t size = stack->high - stack->low, reserved = size / 2 < RESERVED_BYTES ? size / 2 : RESERVED_BYTES;
    if (left >= reserved) return MR_OK;
    return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                   "too many calls of functions inside each other for a stack of %zu bytes: %zu bytes are left", size,
                   left);
}

int mr_thread_create(pthread_t *thread, void *(*body)(void *context), void *context)
{
    pthread_attr_t attr;
    size_t size = 0;
    int failure = pthread_attr_init(&attr);
    if (failure != 0) return failure;
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < STACK_BYTES)
        (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    failure = pthread_create(thread, &attr, body, context);
    (void)pthread_attr_destroy(&attr);
    return failure;
}
