/* Cache files when memory or the disk runs out: the n-th allocation fails, or the n-th byte does not fit. The delivered
 * elements are correct, no incomplete file exists, and the next pass writes the file. */
#include "tests/pipeline/pipelines.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 40 };

static mr_dataset *cached(const char *path)
{
    return mr_dataset_cache(mr_dataset_map(mr_dataset_range(0, COUNT, 1), jitter, nullptr, &one_int64, .seed = 5),
                            path);
}

/* Runs two passes and returns the first failure. The elements equal those of the pipeline without a cache. */
static mr_status run(const char *path, const int64_t *expected, mr_error *error)
{
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = mr_dataset_repeat(cached(path), 2);
    mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, error);
    mr_dataset_free(d);
    for (int i = 0; status == MR_OK && i < 2 * COUNT; i++) {
        status = mr_iterator_next(iterator, &element, error);
        if (status == MR_OK && mr_tensor_int64s(&element.tensors[0])[0] != expected[i % COUNT])
            test_fail(__FILE__, __LINE__, "element %d is another one", i);
    }
    if (status == MR_OK) status = mr_iterator_next(iterator, &element, error);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return status;
}

static void check_complete(const char *path, const int64_t *expected)
{
    mr_error error = {0};
    CHECK_STATUS(run(path, expected, &error), MR_OUT_OF_RANGE);
    CHECK_EQ(access(path, F_OK), 0);
    CHECK(access(test_path("faults.cache.partial"), F_OK) != 0);
}

TEST(cache_file_survives_any_allocation_failing)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    int64_t expected[COUNT];
    const char *path = strdup(test_path("faults.cache"));
    CHECK_EQ(numbers_of(cached(path), nullptr, expected, COUNT), COUNT);
    check_complete(path, expected);
    bool was_reached = true;
    int failures = 0;
    for (int n = 1; was_reached && n < 3000; n++) {
        mr_error error = {0};
        /* In every other iteration a file exists. */
        if (n % 2 == 0) (void)unlink(path);
        long long number = test_allocations() + n;
        test_fail_allocation(number);
        mr_status status = run(path, expected, &error);
        test_fail_allocation(0);
        was_reached = test_allocations() >= number;
        failures += status != MR_OUT_OF_RANGE;
        if (status != MR_OUT_OF_RANGE && status != MR_RESOURCE_EXHAUSTED)
            test_fail(__FILE__, __LINE__, "allocation %d failing is %s: %s", n, mr_status_name(status), error.message);
        check_complete(path, expected);
    }
    CHECK(!was_reached && failures > 20);
    free((void *)path);
}

TEST(cache_file_survives_a_full_disk)
{
    int64_t expected[COUNT];
    struct stat about;
    struct rlimit before, limit;
    const char *path = strdup(test_path("faults.cache"));
    CHECK_EQ(numbers_of(cached(path), nullptr, expected, COUNT), COUNT);
    check_complete(path, expected);
    CHECK(stat(path, &about) == 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (off_t size = 0; size < about.st_size; size += 1 + about.st_size / 20) {
        mr_error error = {0};
        (void)unlink(path);
        limit = (struct rlimit){.rlim_cur = (rlim_t)size, .rlim_max = before.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        mr_status status = run(path, expected, &error);
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, "faults.cache");
        CHECK(access(path, F_OK) != 0);
        check_complete(path, expected);
    }
    free((void *)path);
}
