/* Random pipelines compared with themselves: with other numbers of threads, from a restored state, with elements that
 * fail, with allocations that fail, and cancelled at a random time. MILLRACE_RANDOM_PIPELINES sets their number,
 * MILLRACE_TEST_SEED the seed. */
#include "tests/pipeline/pipelines.h"
#include "tests/pipeline/random_pipelines.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static uint64_t first_seed(void)
{
    return test_seed() * 100000;
}

static int pipelines(int otherwise)
{
    const char *count = getenv("MILLRACE_RANDOM_PIPELINES");
    return count == nullptr ? otherwise : (int)strtol(count, nullptr, 10);
}

/* Pipeline `which` of this run; failed checks print this number. */
static mr_dataset *pipeline(int which)
{
    static random_pipeline made;
    return random_pipeline_make(&made, first_seed() + (uint64_t)which);
}

/* With elements that fail: each is an error at its position. */
static mr_dataset *failing_pipeline(int which)
{
    static random_pipeline made;
    mr_dataset_free(random_pipeline_make(&made, first_seed() + (uint64_t)which));
    for (char *at = made.text; (at = strstr(at, "ignore_errors")) != nullptr;) memcpy(at, "prefetch 3   ", 13);
    return text_build(made.text);
}

TEST(random_pipelines_are_the_same_at_any_number_of_threads)
{
    for (int which = 0; which < pipelines(60); which++) check_threads(pipeline, which);
}

/* Saves a state in the middle and restores it at another number of threads. */
static void check_a_state(chain_function chain, int which)
{
    mr_error error = {0};
    uint64_t whole[ELEMENTS_MAX], rest[ELEMENTS_MAX];
    int count = elements_of(chain, which, 2, nullptr, whole);
    random_pipeline draw = {.state = (uint64_t)which};
    int64_t at = random_below(&draw, count + 1);
    mr_dataset *d = chain(which);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor state = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 3), &iterator, &error));
    mr_dataset_free(d);
    for (int64_t i = 0; i < at; i++) (void)mr_iterator_next(iterator, &element, nullptr);
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    int64_t left = elements_of(chain, which, 1 + which % 4, &state, rest);
    mr_tensor_deinit(&state);
    if (count < ELEMENTS_MAX && left != count - at)
        test_fail(__FILE__, __LINE__, "pipeline %d restored at %lld of %d: %lld are left", which, (long long)at, count,
                  (long long)left);
    for (int64_t i = at; i < count; i++)
        if (rest[i - at] != whole[i])
            test_fail(__FILE__, __LINE__, "pipeline %d restored at %lld: element %lld", which, (long long)at,
                      (long long)i);
}

TEST(random_pipelines_continue_from_any_state)
{
    for (int which = 0; which < pipelines(60); which++) check_a_state(pipeline, which);
    for (int which = 0; which < pipelines(60); which++) check_restored(pipeline, which);
}

TEST(random_pipelines_with_elements_that_fail_keep_order_and_position)
{
    for (int which = 0; which < pipelines(60); which++) check_threads(failing_pipeline, which);
    for (int which = 0; which < pipelines(60); which++) check_a_state(failing_pipeline, which);
}

/* A failed element is reported once and skipped: a pipeline that ends without failures also ends with them. */
TEST(random_pipelines_with_elements_that_fail_end)
{
    for (int which = 0; which < pipelines(60); which++) {
        static random_pipeline made;
        mr_dataset_free(random_pipeline_make(&made, first_seed() + (uint64_t)which));
        if (random_top(&made)->endless) continue;
        mr_error error = {0};
        mr_dataset *d = failing_pipeline(which);
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
        mr_dataset_free(d);
        int count = 0;
        for (mr_status status; (status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE;) {
            if (status == MR_FAILED_PRECONDITION) break; /* assert_cardinality fails at the end */
            if (count++ > 4 * RANDOM_ELEMENTS_MAX)
                test_fail(__FILE__, __LINE__, "pipeline %d does not end: %s", which, error.message);
        }
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
    }
}

/* Failures below stages that read their input again, skip elements, or delay some. */
static const struct {
    const char *text;
    int elements, failures;
} failing_texts[] = {
    /* A failed element is not cached, and fails again. */
    {"range 0 12 1\nmap fail\nprefetch 1\ncache\nrepeat 3\n", 30, 6},
    {"range 0 12 1\nmap fail\nprefetch 1\ncache\nrepeat 3\nskip 4\n", 27, 5},
    /* Skipped elements may fail. */
    {"range 0 12 1\nmap fail\nprefetch 1\nwindow flat 1 1 1 0\nrepeat 1\nskip 5\n", 6, 1},
    {"range 0 30 1\nmap fail\nprefetch 1\nwindow flat 1 1 1 0\nrepeat 2\nshard 3 1\nbatch 4 0\n", 1, 4},
    /* Shuffled globally, or with a buffer over data with an index and without one. */
    {"range 0 30 1\nmap fail\nprefetch 1\nenumerate 0\nshuffle 100 0\nrepeat 2\n", 48, 12},
    {"range 0 30 1\nmap fail\nprefetch 1\nenumerate 0\nshuffle 7 0\nrepeat 2\n", 48, 12},
    {"range 0 30 1\nmap fail\nprefetch 1\nscan\nshuffle 7 0\nrepeat 2\n", 48, 12},
    /* A used buffer is filled again, and so is a batch that was dropped because it was incomplete. */
    {"range 0 12 1\nmap fail\nprefetch 1\ncache\nshuffle 4 0\nrepeat 2\n", 20, 4},
    {"range 5 24 1\nmap fail\nprefetch 1\nfilter 4 0\nbatch 3 1\nrepeat 2\n", 4, 6},
};

static mr_dataset *failing_text(int which)
{
    return text_build(failing_texts[which].text);
}

TEST(elements_that_fail_are_reported_once_and_keep_their_position)
{
    for (int which = 0; which < (int)(sizeof failing_texts / sizeof *failing_texts); which++) {
        uint64_t found[ELEMENTS_MAX];
        int count = elements_of(failing_text, which, 2, nullptr, found), failures = 0;
        for (int i = 0; i < count; i++) failures += found[i] == 0;
        if (count - failures != failing_texts[which].elements || failures != failing_texts[which].failures)
            test_fail(__FILE__, __LINE__, "text %d: %d elements and %d failures", which, count - failures, failures);
        check_threads(failing_text, which);
        check_states(failing_text, which, 4096);
    }
}

/* Each pass is shuffled again, so that other batches are dropped: passes have different lengths, which a seek must take
 * into account. */
TEST(passes_of_unequal_length_are_not_counted_as_equal)
{
    static const char passes[] = "range 0 24 1\nshuffle 100 0\nbatch 3 0\nfilter 2 0\nrepeat 6\n";
    char rest[sizeof passes + 16];
    int64_t all[1024], some[1024];
    snprintf(rest, sizeof rest, "%sskip 9\n", passes);
    int64_t count = numbers_of(text_build(passes), nullptr, all, 1024);
    CHECK_EQ(numbers_of(text_build(rest), nullptr, some, 1024), count - 27);
    for (int64_t i = 27; i < count; i++) CHECK_EQ(some[i - 27], all[i]);
}

/* ---- Failing allocations ---- */

/* Possible positions of an iterator among the elements that it delivers with enough memory. An element whose allocation
 * failed counts as one element or as none. */
typedef struct faulty_run {
    const char *how;
    int which;
    const uint64_t *whole;
    int count; /* ELEMENTS_MAX: there may be more */
    bool at[ELEMENTS_MAX + 1];
} faulty_run;

static void begin_at(faulty_run *run, int at)
{
    memset(run->at, 0, sizeof run->at);
    run->at[at] = true;
}

static bool is_anywhere(const faulty_run *run)
{
    for (int i = 0; i <= run->count; i++)
        if (run->at[i]) return true;
    return false;
}

static void step_lacking(faulty_run *run, const mr_error *error)
{
    if (error->message[0] == 0 || strchr(error->message, '\n') != nullptr)
        test_fail(__FILE__, __LINE__, "%s, pipeline %d: no sentence: '%s'", run->how, run->which, error->message);
    for (int i = run->count; i-- > 0;) run->at[i + 1] |= run->at[i];
}

static void step_over(faulty_run *run, uint64_t digest, const char *message)
{
    for (int i = run->count; i-- > 0;) run->at[i + 1] = run->at[i] && run->whole[i] == digest;
    run->at[0] = false;
    if (!is_anywhere(run))
        test_fail(__FILE__, __LINE__, "%s, pipeline %d: another element than with enough memory: %s", run->how,
                  run->which, message);
}

/* Runs to the end, or until the iterator permanently reports a lack of memory. */
static void run_on(faulty_run *run, mr_iterator *iterator, mr_element *element)
{
    constexpr int LACKS_MAX = 200;
    mr_error error = {0};
    for (int lacks = 0; lacks < LACKS_MAX;) {
        if (run->count == ELEMENTS_MAX && run->at[run->count]) return;
        mr_status status = mr_iterator_next(iterator, element, &error);
        lacks = status == MR_RESOURCE_EXHAUSTED ? lacks + 1 : 0;
        if (status == MR_OUT_OF_RANGE && run->count < ELEMENTS_MAX && !run->at[run->count])
            test_fail(__FILE__, __LINE__, "%s, pipeline %d ends too early", run->how, run->which);
        if (status == MR_OUT_OF_RANGE) return;
        if (status == MR_RESOURCE_EXHAUSTED)
            step_lacking(run, &error);
        else
            step_over(run, status == MR_OK ? element_digest(0xcbf29ce484222325u, element) : 0, error.message);
    }
}

/* Makes some consecutive allocations fail, starting at a random one of the run. */
static void lack(random_pipeline *draw, long long of)
{
    static const int in_a_row[] = {1, 1, 1, 2, 5, 40};
    int64_t number = random_below(draw, of < 2 ? 2 : of);
    test_fail_allocations(test_allocations() + 1 + number, in_a_row[random_below(draw, 6)]);
}

/* The elements after a state are correct, in whichever iterator it is restored. */
static void check_rest(faulty_run *run, mr_iterator *iterator, const mr_tensor *state, mr_element *element)
{
    mr_error error = {0};
    mr_status status = mr_iterator_restore(iterator, state, &error);
    if (status != MR_OK)
        test_fail(__FILE__, __LINE__, "%s, pipeline %d: cannot be gone to: %s", run->how, run->which, error.message);
    run_on(run, iterator, element);
}

/* Creates one iterator, reads elements, saves and restores while allocations fail. */
static void check_lack(chain_function chain, int which, int threads, random_pipeline *draw, const uint64_t *whole,
                       int count, long long allocations)
{
    faulty_run run = {.which = which, .whole = whole, .count = count};
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor state = {0}, later = {0};
    const mr_iterator_options options = {.size = sizeof options, .threads = threads};
    mr_dataset *d = chain(which);
    int at = (int)random_below(draw, count < 60 ? count + 1 : 60);
    if (random_below(draw, 2) == 0) {
        run.how = "memory is short from the beginning";
        lack(draw, allocations);
        mr_status status = mr_iterator_new(d, &options, &iterator, &error);
        CHECK(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
        begin_at(&run, 0);
        if (status == MR_OK) run_on(&run, iterator, &element);
        test_fail_allocation(0);
    } else {
        run.how = "memory is short later";
        CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
        for (int i = 0; i < at; i++) (void)mr_iterator_next(iterator, &element, &error);
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        begin_at(&run, at);
        lack(draw, allocations);
        for (int64_t more = random_below(draw, 9); more > 0 && !run.at[count]; more--) {
            mr_status status = mr_iterator_next(iterator, &element, &error);
            if (status == MR_OUT_OF_RANGE) break;
            if (status == MR_RESOURCE_EXHAUSTED)
                step_lacking(&run, &error);
            else
                step_over(&run, status == MR_OK ? element_digest(0xcbf29ce484222325u, &element) : 0, error.message);
        }
        mr_status saved = mr_iterator_save(iterator, &later, &error);
        CHECK(saved == MR_OK || saved == MR_RESOURCE_EXHAUSTED);
        faulty_run rest = run;
        run_on(&run, iterator, &element);
        test_fail_allocation(0);
        if (saved == MR_OK) {
            run = rest;
            run.how = "a state that was saved while memory was short";
            check_rest(&run, iterator, &later, &element);
        }
        run.how = "a state that was restored while memory was short";
        lack(draw, allocations);
        mr_status restored = mr_iterator_restore(iterator, &state, &error);
        CHECK(restored == MR_OK || restored == MR_RESOURCE_EXHAUSTED);
        begin_at(&run, at);
        if (restored == MR_OK) run_on(&run, iterator, &element);
        if (restored != MR_OK) CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_RESOURCE_EXHAUSTED);
        test_fail_allocation(0);
        run.how = "the same state again";
        begin_at(&run, at);
        check_rest(&run, iterator, &state, &element);
    }
    mr_tensor_deinit(&state);
    mr_tensor_deinit(&later);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* Delivered elements are correct and in order. If an allocation fails, the iterator reports it and either continues
 * after that element or keeps its position. After a restore it works normally. */
TEST(random_pipelines_without_memory_report_it_and_lose_nothing_else)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    static const int threads[] = {1, 2, 7};
    for (int which = 0; which < pipelines(100); which++) {
        random_pipeline draw = {.state = first_seed() + (uint64_t)which};
        uint64_t whole[ELEMENTS_MAX];
        long long before = test_allocations();
        int count = elements_of(failing_pipeline, which, 2, nullptr, whole);
        long long allocations = test_allocations() - before;
        for (int round = 0; round < 3; round++)
            check_lack(failing_pipeline, which, threads[round], &draw, whole, count, allocations);
    }
}

TEST(a_failed_restore_leaves_an_iterator_that_reports_it)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    static const char text[] = "range 0 40 1\nscan\nwindow flat 4 1 1 0\n";
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor state = {0};
    mr_dataset *d = text_build(text);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 9; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_status status = MR_RESOURCE_EXHAUSTED;
    for (int n = 1; status != MR_OK && n < 1000; n++) {
        test_fail_allocation(test_allocations() + n);
        status = mr_iterator_restore(iterator, &state, &error);
        test_fail_allocation(0);
        CHECK((mr_iterator_next(iterator, &element, &error) == MR_OK) == (status == MR_OK));
    }
    CHECK_OK(status);
    mr_tensor_deinit(&state);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

typedef struct consumer {
    mr_iterator *iterator;
    atomic_int taken;
    mr_status status;
} consumer;

static void *consume(void *argument)
{
    consumer *c = argument;
    mr_element element = {0};
    do {
        c->status = mr_iterator_next(c->iterator, &element, nullptr);
        atomic_fetch_add(&c->taken, 1);
    } while (c->status == MR_OK || c->status == MR_DATA_LOSS);
    mr_element_deinit(&element);
    return nullptr;
}

TEST(random_pipelines_are_cancelled_at_any_moment)
{
    for (int which = 0; which < pipelines(60); which++) {
        random_pipeline draw = {.state = (uint64_t)which};
        mr_error error = {0};
        /* Infinite, so that it does not end before it is cancelled. */
        mr_dataset *d = mr_dataset_repeat(which % 2 == 0 ? pipeline(which) : failing_pipeline(which), MR_INFINITE);
        consumer c = {0};
        pthread_t thread;
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1 + which % 3), &c.iterator, &error));
        mr_dataset_free(d);
        CHECK(pthread_create(&thread, nullptr, consume, &c) == 0);
        int64_t moment = random_below(&draw, 100);
        for (int64_t i = 0; i < 10 * moment && atomic_load(&c.taken) < moment; i++) (void)sched_yield();
        mr_iterator_cancel(c.iterator);
        pthread_join(thread, nullptr);
        CHECK(c.status == MR_CANCELLED || c.status == MR_OUT_OF_RANGE || c.status == MR_FAILED_PRECONDITION);
        mr_iterator_free(c.iterator);
    }
}

/* Predicates after batch drop complete batches. */
TEST(filter_after_batch_drops_batches)
{
    mr_dataset *d = text_build("range 15 20 1\nbatch 1 0\nfilter 5 2\nrepeat 2\n");
    CHECK_NUMBERS(d, 15, 16, 18, 19, 15, 16, 18, 19);
}
