/* The test harness. A test is a function that registers itself. Each test runs in a process of its own, so a crash or a
 * leak affects only that test. The runner prints one line for each failure and ends with "N passed, N failed".
 *
 * TEST(tensor_rows_share_bytes)
 * {
 *     mr_error error = {0};
 *     mr_tensor tensor = {0};
 *     CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE(3, 2), &error));
 *     CHECK_EQ(mr_tensor_count(&tensor), 6);
 *     mr_tensor_deinit(&tensor);
 * }
 *
 * A failed CHECK ends the test. To run only tests whose name or file contains "tensor": ./zigw build test -- tensor */
#ifndef MR_TESTS_TEST_H
#define MR_TESTS_TEST_H

#include <math.h>
#include <millrace/status.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_case {
    const char *file;
    const char *name;
    void (*run)(void);
    struct test_case *next;
} test_case;
void test_register(test_case *test);

#define TEST(test_name)                                                                                                \
    static void test_name(void);                                                                                       \
    [[gnu::constructor]] static void test_name##_register(void)                                                        \
    {                                                                                                                  \
        static test_case test = {.file = __FILE__, .name = #test_name, .run = test_name};                              \
        test_register(&test);                                                                                          \
    }                                                                                                                  \
    static void test_name(void)

/* Prints file, line and text, and ends this test as failed. */
[[noreturn, gnu::format(printf, 3, 4)]] void test_fail(const char *file, int line, const char *format, ...);
/* Ends this test as skipped, with a reason: the system lacks what it needs (root, a tmpfs, …). */
[[noreturn, gnu::format(printf, 1, 2)]] void test_skip(const char *format, ...);
/* A directory for this test only, removed when the test ends. */
const char *test_directory(void);
/* directory/name, in static storage; each result stays valid for the next 7 calls. */
[[gnu::format(printf, 1, 2)]] const char *test_path(const char *format, ...);
/* The seed of this run: MILLRACE_TEST_SEED, or 1 by default. Every failure message includes it. */
uint64_t test_seed(void);
/* The path of a built program, in MILLRACE_BIN or by default in zig-out/bin. */
const char *test_bin(const char *program);
/* The number of allocations in this process so far, on all threads; -1 if the C library is not glibc. */
long long test_allocations(void);
/* Makes the allocation that test_allocations counts as `number` fail, on any thread; 0: none. */
void test_fail_allocation(long long number);
/* The same for `count` consecutive allocations, as in a temporary shortage of memory. */
void test_fail_allocations(long long number, long long count);
/* Makes every allocation of more than size_bytes fail; 0: no limit. */
void test_limit_allocation(size_t size_bytes);
/* True with AddressSanitizer and ThreadSanitizer, which use additional memory and make allocations of their own. */
bool test_is_sanitized(void);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) test_fail(__FILE__, __LINE__, "%s is false", #condition);                                    \
    } while (0)
/* Requires a variable `mr_error error` in scope. */
#define CHECK_OK(call)                                                                                                 \
    do {                                                                                                               \
        mr_status test_status_ = (call);                                                                               \
        if (test_status_ != MR_OK)                                                                                     \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, mr_status_name(test_status_), error.message);           \
    } while (0)
#define CHECK_STATUS(call, expected)                                                                                   \
    do {                                                                                                               \
        mr_status test_status_ = (call), test_expected_ = (expected);                                                  \
        if (test_status_ != test_expected_)                                                                            \
            test_fail(__FILE__, __LINE__, "%s is %s, not %s", #call, mr_status_name(test_status_),                     \
                      mr_status_name(test_expected_));                                                                 \
    } while (0)
/* Integers; CHECK or CHECK_NEAR for floats. */
#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        static_assert(_Generic((a), float: 0, double: 0, default: 1) &&                                                \
                      _Generic((b), float: 0, double: 0, default: 1));                                                 \
        long long test_a_ = (long long)(a), test_b_ = (long long)(b);                                                  \
        if (test_a_ != test_b_) test_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #a, test_a_, #b, test_b_);     \
    } while (0)
#define CHECK_NEAR(a, b, tolerance)                                                                                    \
    do {                                                                                                               \
        double test_a_ = (a), test_b_ = (b);                                                                           \
        if (!(fabs(test_a_ - test_b_) <= (tolerance)))                                                                 \
            test_fail(__FILE__, __LINE__, "%s is %.9g, %s is %.9g", #a, test_a_, #b, test_b_);                         \
    } while (0)
#define CHECK_STR(a, b)                                                                                                \
    do {                                                                                                               \
        const char *test_a_ = (a), *test_b_ = (b);                                                                     \
        if (!test_a_ || !test_b_ || strcmp(test_a_, test_b_) != 0)                                                     \
            test_fail(__FILE__, __LINE__, "%s is \"%s\", %s is \"%s\"", #a, test_a_ ? test_a_ : "(null)", #b,          \
                      test_b_ ? test_b_ : "(null)");                                                                   \
    } while (0)
#define CHECK_CONTAINS(text, part)                                                                                     \
    do {                                                                                                               \
        const char *test_a_ = (text), *test_b_ = (part);                                                               \
        if (!test_a_ || !strstr(test_a_, test_b_))                                                                     \
            test_fail(__FILE__, __LINE__, "\"%s\" does not contain \"%s\"", test_a_ ? test_a_ : "(null)", test_b_);    \
    } while (0)

#endif
