/* Looper threads: when they run, what ends them, mistakes. */
#include "tests/test.h"

#include <millrace/queue.h>

#include <stdatomic.h>
#include <time.h>

typedef struct loop {
    atomic_int starts, runs, stops, releases;
    int fail_start, fail_stop, fail_run; /* number of the run; 0: never */
    mr_coordinator *coordinator;
    int stop_at_run;
    double sleep_secs, first_sleep_secs;
    double times[100];
} loop;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static mr_status start(void *context, mr_error *error)
{
    loop *l = context;
    l->starts++;
    return l->fail_start ? mr_fail(error, MR_DATA_LOSS, "the start failed") : MR_OK;
}

static mr_status run(void *context, mr_error *error)
{
    loop *l = context;
    const int number = ++l->runs;
    if (number <= 100) l->times[number - 1] = now();
    const double secs = number == 1 && l->first_sleep_secs > 0 ? l->first_sleep_secs : l->sleep_secs;
    if (secs > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(secs * 1e9)}, nullptr);
    if (number == l->stop_at_run) mr_coordinator_request_stop(l->coordinator, nullptr);
    return number == l->fail_run ? mr_fail(error, MR_INTERNAL, "run %d failed", number) : MR_OK;
}

static mr_status stop(void *context, mr_error *error)
{
    loop *l = context;
    l->stops++;
    return l->fail_stop ? mr_fail(error, MR_DATA_LOSS, "the stop failed") : MR_OK;
}

static void release(void *context)
{
    ((loop *)context)->releases++;
}

static const mr_looper calls = {.start = start, .run = run, .stop = stop, .release = release};

static mr_status start_looper(loop *l, double interval_secs, mr_error *error)
{
    mr_looper looper = calls;
    looper.context = l;
    return mr_coordinator_start_looper(l->coordinator, interval_secs, &looper, error);
}

static mr_status run_until_stop(loop *l, double interval_secs, mr_error *error)
{
    CHECK_EQ(mr_coordinator_new(&l->coordinator, error), MR_OK);
    CHECK_EQ(start_looper(l, interval_secs, error), MR_OK);
    mr_status status = mr_coordinator_join(l->coordinator, -1, error);
    mr_coordinator_free(l->coordinator);
    CHECK_EQ(l->starts, 1);
    CHECK_EQ(l->releases, 1);
    return status;
}

TEST(loopers_without_interval_run_back_to_back)
{
    mr_error error = {0};
    loop l = {.stop_at_run = 1000};
    CHECK_OK(run_until_stop(&l, 0, &error));
    CHECK_EQ(l.runs, 1000);
    CHECK_EQ(l.stops, 1);
}

/* The first run is at once, and the others not before their times. */
TEST(loopers_keep_their_times)
{
    mr_error error = {0};
    loop l = {.stop_at_run = 5, .sleep_secs = 0.03};
    const double begin = now();
    CHECK_OK(run_until_stop(&l, 0.05, &error));
    CHECK_EQ(l.runs, 5);
    CHECK(l.times[0] - begin < 0.049);
    for (int i = 1; i < 5; i++) CHECK(l.times[i] - begin > 0.05 * i - 0.001);
}

/* After a run that takes longer than the interval, the next ones follow at once until they are on time again. */
TEST(loopers_catch_up)
{
    mr_error error = {0};
    loop l = {.stop_at_run = 9, .first_sleep_secs = 0.5};
    CHECK_OK(run_until_stop(&l, 0.05, &error));
    CHECK_EQ(l.runs, 9);
    CHECK(l.times[8] - l.times[1] < 0.3);
}

TEST(loopers_end_with_an_error)
{
    mr_error error = {0};
    loop l = {.fail_run = 3};
    CHECK_STATUS(run_until_stop(&l, 0, &error), MR_INTERNAL);
    CHECK_STR(error.message, "run 3 failed");
    CHECK_EQ(l.runs, 3);
    CHECK_EQ(l.stops, 0);
    loop other = {.fail_start = 1};
    CHECK_STATUS(run_until_stop(&other, 0, &error), MR_DATA_LOSS);
    CHECK_EQ(other.runs, 0);
}

TEST(loopers_may_fail_at_their_end)
{
    mr_error error = {0};
    CHECK_STATUS(run_until_stop(&(loop){.stop_at_run = 2, .fail_stop = 1}, 0, &error), MR_DATA_LOSS);
    CHECK_STR(error.message, "the stop failed");
    /* An earlier error is the one that is returned. */
    loop one = {.fail_run = 3}, two = {.fail_stop = 1};
    CHECK_OK(mr_coordinator_new(&one.coordinator, &error));
    two.coordinator = one.coordinator;
    CHECK_OK(start_looper(&two, 100, &error));
    CHECK_OK(start_looper(&one, 0, &error));
    CHECK_STATUS(mr_coordinator_join(one.coordinator, -1, &error), MR_INTERNAL);
    CHECK_EQ(two.stops, 1);
    /* Each group has its own. */
    mr_coordinator_clear_stop(one.coordinator);
    CHECK_OK(start_looper(&two, 100, &error));
    mr_coordinator_request_stop(one.coordinator, nullptr);
    CHECK_STATUS(mr_coordinator_join(one.coordinator, -1, &error), MR_DATA_LOSS);
    mr_coordinator_free(one.coordinator);
}

static mr_status fail_after_stop(void *, mr_coordinator *coordinator, mr_error *error)
{
    (void)mr_coordinator_wait_for_stop(coordinator, -1);
    return mr_fail(error, MR_DATA_LOSS, "late");
}

static mr_status fail_silently(void *, mr_error *)
{
    return MR_ABORTED;
}

TEST(errors_after_a_stop_are_dropped)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_OK(mr_coordinator_start(coordinator, &(mr_member){.run = fail_after_stop}, &error));
    mr_coordinator_request_stop(coordinator, nullptr);
    CHECK_OK(mr_coordinator_join(coordinator, -1, &error));
    mr_coordinator_clear_stop(coordinator);
    CHECK_OK(mr_coordinator_start_looper(coordinator, 0, &(mr_looper){.run = fail_silently}, &error));
    CHECK_STATUS(mr_coordinator_join(coordinator, -1, &error), MR_ABORTED);
    CHECK_STR(error.message, mr_status_name(MR_ABORTED));
    mr_coordinator_free(coordinator);
}

/* A stop ends the wait for the next run, however far it is. */
TEST(loopers_stop_while_they_wait)
{
    mr_error error = {0};
    loop l = {0};
    CHECK_OK(mr_coordinator_new(&l.coordinator, &error));
    CHECK_OK(start_looper(&l, 1e300, &error));
    while (l.runs == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, nullptr);
    mr_coordinator_request_stop(l.coordinator, nullptr);
    CHECK_OK(mr_coordinator_join(l.coordinator, -1, &error));
    CHECK_EQ(l.runs, 1);
    CHECK_EQ(l.stops, 1);
    /* After the stop, a new looper does not run. */
    CHECK_OK(start_looper(&l, 0, &error));
    CHECK_OK(mr_coordinator_join(l.coordinator, -1, &error));
    CHECK_EQ(l.runs, 1);
    CHECK_EQ(l.starts, 2);
    CHECK_EQ(l.stops, 2);
    mr_coordinator_free(l.coordinator);
}

TEST(loopers_refuse_mistakes)
{
    mr_error error = {0};
    loop l = {0};
    const double bad[] = {-1, NAN, INFINITY, -INFINITY, -1e-300};
    CHECK_OK(mr_coordinator_new(&l.coordinator, &error));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_STATUS(start_looper(&l, bad[i], &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_coordinator_start_looper(l.coordinator, 1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_coordinator_start_looper(l.coordinator, 1, &(mr_looper){.start = start}, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_coordinator_start_looper(nullptr, 1, &calls, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(l.starts + l.runs + l.releases, 0);
    mr_coordinator_free(l.coordinator);
}
