/* The stack that is left, and the limit of nested calls that follows from it. */
#include "base/thread.h"
#include "tests/test.h"

#include <stdint.h>

typedef struct dive {
    int32_t depth, deepest; /* calls: until one is refused, and how many */
    size_t left_bytes;
    mr_status status;
    mr_error error;
} dive;

/* As deep as calls are allowed; each has a frame of 2 KiB at least. */
[[gnu::noinline]] static int32_t descend(dive *d, int32_t depth)
{
    char frame[2048];
    __asm__ volatile("" : : "r"(frame) : "memory");
    d->status = mr_nesting_check(depth, &d->error);
    d->deepest = depth;
    int32_t below = 0;
    if (d->status == MR_OK && depth < d->depth)
        below = descend(d, depth + 1);
    else
        d->left_bytes = mr_stack_left_bytes();
    __asm__ volatile("" : : "r"(frame) : "memory");
    return below + 1;
}

static void *start(void *context)
{
    (void)descend(context, 0);
    return nullptr;
}

static void dive_with(size_t stack_bytes, dive *d)
{
    pthread_t thread;
    pthread_attr_t attr;
    CHECK_EQ(pthread_attr_init(&attr), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attr, stack_bytes), 0);
    CHECK_EQ(pthread_create(&thread, &attr, start, d), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

TEST(thread_refuses_calls_that_its_stack_does_not_hold)
{
    for (size_t stack_bytes = (size_t)256 << 10; stack_bytes <= (size_t)512 << 10; stack_bytes *= 2) {
        dive d = {.depth = MR_NESTING_MAX};
        dive_with(stack_bytes, &d);
        CHECK_STATUS(d.status, MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(d.error.message, "bytes are left");
        CHECK(d.deepest > 1 && d.deepest < MR_NESTING_MAX);
        CHECK(d.left_bytes > ((size_t)100 << 10) && d.left_bytes <= (size_t)128 << 10);
    }
}

TEST(thread_refuses_calls_that_are_nested_too_deeply)
{
    dive d = {.depth = INT32_MAX};
    pthread_t thread;
    CHECK_EQ(mr_thread_create(&thread, start, &d), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_STATUS(d.status, MR_RESOURCE_EXHAUSTED);
    CHECK_EQ(d.deepest, MR_NESTING_MAX + 1);
    CHECK_CONTAINS(d.error.message, "more than 400 calls of functions inside each other");
    CHECK(d.left_bytes > (size_t)4 << 20 && d.left_bytes < SIZE_MAX);
}

TEST(thread_nesting_is_of_the_thread)
{
    CHECK_EQ(mr_nesting_set(7), 0);
    CHECK_EQ(mr_nesting(), 7);
    dive d = {0};
    dive_with((size_t)512 << 10, &d);
    CHECK_EQ(d.status, MR_OK);
    CHECK_EQ(mr_nesting_set(0), 7);
}
