/* Statistics, trace and watchdog are read continuously by other threads while an iterator runs, is saved, restored,
 * initialized again and cancelled. ThreadSanitizer reports every unsynchronized access. */
#include "tests/pipeline/pipelines.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

typedef struct observer {
    mr_iterator *iterator;
    atomic_bool is_over;
    atomic_int watched;
    atomic_ullong elements;
} observer;

static void *read_statistics(void *argument)
{
    observer *o = argument;
    mr_stage_statistics stages[16];
    while (!atomic_load(&o->is_over)) {
        int32_t count = mr_iterator_statistics(o->iterator, stages, 16);
        uint64_t sum = 0;
        for (int32_t i = 0; i < count && i < 16; i++) {
            CHECK(stages[i].occupancy >= 0 && stages[i].occupancy <= 1);
            sum += stages[i].elements;
        }
        atomic_store(&o->elements, sum);
        (void)sched_yield();
    }
    return nullptr;
}

static void *read_text(void *argument)
{
    observer *o = argument;
    char text[4096];
    while (!atomic_load(&o->is_over)) {
        CHECK(mr_iterator_statistics_text(o->iterator, 80, text, sizeof text) < sizeof text);
        (void)sched_yield();
    }
    return nullptr;
}

/* Ends the trace in the middle of the run, and repeats the call until the run is over. */
static void *stop_trace(void *argument)
{
    observer *o = argument;
    for (int i = 0; i < 200 && !atomic_load(&o->is_over); i++) (void)sched_yield();
    CHECK(mr_iterator_trace_stop(o->iterator, nullptr) == MR_OK);
    while (!atomic_load(&o->is_over)) {
        CHECK(mr_iterator_trace_stop(o->iterator, nullptr) == MR_OK);
        (void)sched_yield();
    }
    return nullptr;
}

static void watch(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count)
{
    (void)waited_ns;
    observer *o = context;
    for (int32_t i = 0; i < count; i++) CHECK(memchr(threads[i].where, 0, sizeof threads[i].where) != nullptr);
    atomic_fetch_add(&o->watched, 1);
}

static mr_status count_up(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_range(0, mr_tensor_int64s(&input->tensors[0])[0] % 5, 1);
    return MR_OK;
}

static mr_status key_of(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = mr_tensor_int64s(&input->tensors[0])[0] % 3;
    return MR_OK;
}

static mr_status batch_of(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)key, (void)error;
    *output = mr_dataset_batch(window, 4);
    return MR_OK;
}

static const mr_element_spec batch_of_int64 = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{1, {-1}}}};

/* All chains deliver batches of int64, so that one iterator can run any of them. */
static mr_dataset *observed_chain(int which)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 200, 1), .seed = 3);
    switch (which) {
    case 0:
        d = mr_dataset_map(mr_dataset_repeat(d, 3), jitter, nullptr, &one_int64);
        return mr_dataset_prefetch(mr_dataset_batch(d, 7), 3);
    case 1:
        d = mr_dataset_interleave(d, count_up, nullptr, &one_int64, .cycle_length = 4, .parallel = true);
        return mr_dataset_prefetch(mr_dataset_batch(d, 7), 2);
    case 2:
        return mr_dataset_group_by_window(d, key_of, batch_of, nullptr, &batch_of_int64, .window_size = 4);
    default:
        d = mr_dataset_map(mr_dataset_shuffle(mr_dataset_batch(d, 3), .buffer_size = 5), jitter, nullptr, &one_int64);
        return mr_dataset_batch(d, 5);
    }
}

static uint64_t draw_next(uint64_t *draw)
{
    *draw = *draw * 6364136223846793005u + 1442695040888963407u;
    return *draw >> 33;
}

/* Calls what the owner of an iterator may call, in random order. */
static void run(mr_iterator *iterator, uint64_t *draw)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_tensor state = {0};
    mr_tuned tuned;
    bool has_state = false;
    for (int step = 0; step < 150; step++) {
        switch (draw_next(draw) % 16) {
        case 0: {
            mr_tensor saved = {0};
            CHECK_OK(mr_iterator_save(iterator, &saved, &error));
            mr_tensor_deinit(&state);
            state = saved;
            has_state = true;
            break;
        }
        case 1:
            if (has_state) CHECK_OK(mr_iterator_restore(iterator, &state, &error));
            break;
        case 2: {
            mr_dataset *d = observed_chain((int)(draw_next(draw) % 4));
            CHECK_OK(mr_iterator_initialize(iterator, d, &error));
            mr_dataset_free(d);
            has_state = false;
            break;
        }
        case 3:
            mr_iterator_tuned(iterator, &tuned);
            (void)mr_iterator_digest(iterator);
            break;
        default: {
            mr_status status = mr_iterator_next(iterator, &element, &error);
            if (status != MR_OUT_OF_RANGE) CHECK_OK(status);
        }
        }
    }
    mr_element_deinit(&element);
    mr_tensor_deinit(&state);
}

static void *cancel(void *argument)
{
    for (int i = 0; i < 50; i++) (void)sched_yield();
    mr_iterator_cancel(argument);
    return nullptr;
}

static void observe(int round, uint64_t *draw)
{
    static void *(*const readers[])(void *) = {read_statistics, read_text, stop_trace};
    constexpr int READERS = sizeof readers / sizeof *readers;
    mr_error error = {0};
    observer o = {0};
    mr_dataset *d = observed_chain(round % 4);
    mr_iterator_options options = {.size = sizeof options,
                                   .threads = (int32_t)(draw_next(draw) % 5),
                                   .watchdog_ns = 1 + draw_next(draw) % 20000,
                                   .watchdog = watch,
                                   .watchdog_context = &o,
                                   .digest = round % 2 == 0,
                                   .trace_path = test_path("trace-%d.json", round)};
    CHECK_OK(mr_iterator_new(d, &options, &o.iterator, &error));
    mr_dataset_free(d);
    pthread_t threads[READERS + 1];
    for (int i = 0; i < READERS; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, readers[i], &o), 0);
    run(o.iterator, draw);
    CHECK_EQ(pthread_create(&threads[READERS], nullptr, cancel, o.iterator), 0);
    mr_element element = {0};
    while (mr_iterator_next(o.iterator, &element, nullptr) == MR_OK) {}
    mr_element_deinit(&element);
    atomic_store(&o.is_over, true);
    for (int i = 0; i <= READERS; i++) pthread_join(threads[i], nullptr);
    mr_iterator_free(o.iterator);
}

TEST(observed_iterators_have_no_races)
{
    uint64_t draw = test_seed() * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < (test_is_sanitized() ? 12 : 24); round++) observe(round, &draw);
}
