/* Pipelines that end on the fake GPU: elements, synchronization, saved states, errors, counters and traces. */
#include "tests/cuda/fake.h"
#include "tests/cuda/prefetch_run.h"
#include "tests/pipeline/pipelines.h"
#include "tests/pipeline/random_pipelines.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static constexpr int64_t ROWS = 64, WIDTH = 300;

/* Rows of floats and their numbers, in batches of 4. */
static mr_dataset *batches(int64_t count)
{
    mr_error error = {0};
    mr_tensor tensors[2];
    CHECK_OK(mr_tensor_init(&tensors[0], MR_FLOAT, MR_SHAPE(count, WIDTH), &error));
    CHECK_OK(mr_tensor_init(&tensors[1], MR_INT64, MR_SHAPE(count), &error));
    for (int64_t i = 0; i < count * WIDTH; i++) mr_tensor_floats(&tensors[0])[i] = (float)i;
    for (int64_t i = 0; i < count; i++) mr_tensor_int64s(&tensors[1])[i] = i;
    mr_dataset *d = mr_dataset_batch(mr_dataset_from_slices(tensors, 2), 4);
    mr_tensor_deinit(&tensors[0]);
    mr_tensor_deinit(&tensors[1]);
    return d;
}

static void check_nothing_is_left(void)
{
    CHECK_EQ(fake.contexts, 0);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.live_pinned, 0);
    CHECK_EQ(fake.live_events, 0);
    CHECK_EQ(fake.live_streams, 0);
}

static mr_iterator *iterate(mr_dataset *d, const mr_iterator_options *options)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, options, &iterator, &error));
    mr_dataset_free(d);
    return iterator;
}

TEST(prefetch_to_device_preserves_elements)
{
    mr_error error = {0};
    fake_register();
    for (int32_t depth = 0; depth < 5; depth++) {
        mr_dataset *d = mr_dataset_prefetch_to_device(batches(ROWS), "/gpu:0", depth);
        CHECK_EQ(mr_dataset_cardinality(d), ROWS / 4);
        CHECK(mr_shape_equal(mr_dataset_spec(d)->shapes[0], MR_SHAPE(-1, WIDTH)));
        mr_iterator *iterator = iterate(d, nullptr);
        mr_element element = {0};
        for (int64_t i = 0; i < ROWS / 4; i++) {
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
            CHECK_STR(mr_device_name(mr_tensor_device(&element.tensors[0])), "/device:GPU:0");
            mr_tensor rows, numbers;
            CHECK_OK(mr_tensor_to_host(&element.tensors[0], &rows, &error));
            CHECK_OK(mr_tensor_to_host(&element.tensors[1], &numbers, &error));
            for (int64_t r = 0; r < 4; r++) {
                CHECK_EQ(mr_tensor_int64s(&numbers)[r], 4 * i + r);
                CHECK(mr_tensor_floats(&rows)[r * WIDTH] == (4 * i + r) * WIDTH);
            }
            mr_tensor_deinit(&rows);
            mr_tensor_deinit(&numbers);
        }
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
        mr_iterator_free(iterator);
        check_nothing_is_left();
    }
}

static mr_status name_it(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context;
    (void)random;
    char text[32];
    snprintf(text, sizeof text, "number %lld", (long long)mr_tensor_int64s(&input->tensors[0])[0]);
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 2;
    return mr_tensor_init_string(&output->tensors[1], mr_string_from(text), error);
}
static const mr_element_spec named = {.count = 2, .dtypes = {MR_INT64, MR_STRING}};

static mr_dataset *named_batches(int64_t count)
{
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, count, 1), name_it, nullptr, &named, .own_input = true);
    return mr_dataset_batch(d, 5);
}

TEST(prefetch_to_device_leaves_strings_on_the_host)
{
    mr_error error = {0};
    fake_register();
    mr_iterator *iterator = iterate(mr_dataset_prefetch_to_device(named_batches(23), "/gpu:0", 2), nullptr);
    mr_element element = {0};
    for (int64_t i = 0; i < 23; i += 5) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK(mr_tensor_device(&element.tensors[0]) != nullptr && mr_tensor_device(&element.tensors[1]) == nullptr);
        char text[32];
        snprintf(text, sizeof text, "number %lld", (long long)i);
        CHECK(mr_string_equal(mr_tensor_strings(&element.tensors[1])[0], mr_string_from(text)));
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    /* Elements that consist of strings only. */
    mr_tensor text;
    CHECK_OK(mr_tensor_init_string(&text, MR_STR("dog"), &error));
    iterator = iterate(mr_dataset_prefetch_to_device(mr_dataset_from_tensors(&text, 1), "/gpu:0", 2), nullptr);
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_string_equal(mr_tensor_strings(&element.tensors[0])[0], MR_STR("dog")));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_tensor_deinit(&text);
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

/* A consumer queues work on each batch, releases it immediately and never waits. The work must read its own batch. */
TEST(prefetch_to_device_waits_for_readers_of_its_memory)
{
    mr_error error = {0};
    fake_register();
    constexpr int64_t steps = 200;
    static float seen[steps];
    mr_dataset *d = mr_dataset_prefetch_to_device(mr_dataset_repeat(batches(ROWS), MR_INFINITE), "/gpu:0", 3);
    mr_iterator *iterator = iterate(d, nullptr);
    mr_element element = {0};
    mr_device *gpu = nullptr;
    CHECK_OK(mr_device_open("/gpu:0", &gpu, &error));
    for (int64_t i = 0; i < steps; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_OK(gpu->functions->copy_out(gpu, &seen[i], element.tensors[0].data, sizeof(float), &error));
        mr_element_deinit(&element);
    }
    CHECK_OK(gpu->functions->wait(gpu, &error));
    for (int64_t i = 0; i < steps; i++) CHECK(seen[i] == i % (ROWS / 4) * 4 * WIDTH);
    mr_iterator_free(iterator);
    mr_device_close(gpu);
    check_nothing_is_left();
}

/* Copies run on a separate stream, each with an event for which the queue waits; nobody waits for the queue itself; and
 * the number of driver calls and allocations in use does not depend on the number of elements. */
TEST(prefetch_to_device_waits_for_events_alone)
{
    mr_error error = {0};
    fake_register();
    constexpr int64_t steps = 400;
    mr_dataset *d = mr_dataset_prefetch_to_device(mr_dataset_repeat(batches(ROWS), MR_INFINITE), "/gpu:0", 2);
    mr_iterator *iterator = iterate(d, MR_OPTIONS(mr_iterator_options, .threads = 1));
    mr_element element = {0};
    for (int64_t i = 0; i < 100; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    FAKE_SET(logs, true);
    const fake_gpu before = fake_state();
    long long allocations = test_allocations();
    for (int64_t i = 0; i < steps; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    long long more = test_allocations() - allocations;
    FAKE_SET(logs, false);
    const fake_gpu after = fake_state();
    CHECK_EQ(after.stream_waits, before.stream_waits);
    /* Two ready elements and one in use, of two tensors each; the host uses four more slots. */
    CHECK(after.allocations <= 6);
    CHECK(after.host_allocations <= 12);
    CHECK_EQ(after.copies_in - before.copies_in, after.async_copies - before.async_copies);
    CHECK(after.async_copies - before.async_copies >= 2 * (steps - 3));
    if (allocations >= 0) CHECK(more <= after.own_allocations - before.own_allocations + 60);
    int copies = 0, records = 0, queue_waits = 0;
    for (const char *at = after.log; *at != '\0'; at += 2) {
        CHECK(memcmp(at, "Cq", 2) != 0);
        copies += memcmp(at, "Cc", 2) == 0;
        records += memcmp(at, "Rc", 2) == 0;
        queue_waits += memcmp(at, "Wq", 2) == 0;
    }
    CHECK_EQ(queue_waits, steps);
    CHECK(copies >= 2 * (steps - 3) && records >= steps - 3);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    CHECK_EQ(fake.event_news, 2 + 2 * (fake.allocations + fake.host_allocations));
    check_nothing_is_left();
}

TEST(copy_to_device_copies_on_request)
{
    mr_error error = {0};
    fake_register();
    mr_iterator *iterator = iterate(mr_dataset_copy_to_device(batches(ROWS), "/gpu:0"), nullptr);
    mr_element element = {0};
    for (int64_t i = 0; i < ROWS / 4; i++) {
        CHECK_EQ(fake.async_copies, 2 * i);
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        mr_tensor numbers;
        CHECK_OK(mr_tensor_to_host(&element.tensors[1], &numbers, &error));
        CHECK_EQ(mr_tensor_int64s(&numbers)[3], 4 * i + 3);
        mr_tensor_deinit(&numbers);
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

/* ---- Order, state, digest ---- */

/* Odd-numbered chains are not seekable and have elements that fail. */
static mr_dataset *chain(int which)
{
    static random_pipeline made;
    mr_dataset_free(random_pipeline_make(&made, test_seed() * 100000 + (uint64_t)(which / 2)));
    for (char *at = made.text; which % 2 != 0 && (at = strstr(at, "ignore_errors")) != nullptr;)
        memcpy(at, "prefetch 3   ", 13);
    return text_build(made.text);
}

static mr_dataset *there(mr_dataset *d, int which)
{
    return which % 3 == 0 ? mr_dataset_copy_to_device(d, "/gpu:0")
                          : mr_dataset_prefetch_to_device(d, "/gpu:0", 1 + which % 4);
}

static mr_dataset *chain_there(int which)
{
    return there(chain(which), which);
}

/* A finite part of a chain on the device, also for infinite chains. */
static mr_dataset *short_chain_there(int which)
{
    return there(mr_dataset_take(chain(which), 100), which);
}

TEST(prefetch_to_device_keeps_order_and_state_of_random_pipelines)
{
    fake_register();
    for (int which = 0; which < 40; which++) {
        uint64_t here[ELEMENTS_MAX], away[ELEMENTS_MAX];
        int count = elements_of(chain, which, 2, nullptr, here);
        CHECK_EQ(elements_of(chain_there, which, 2, nullptr, away), count);
        for (int i = 0; i < count; i++)
            if (here[i] != away[i]) test_fail(__FILE__, __LINE__, "pipeline %d: element %d", which, i);
        check_restored(chain_there, which);
        check_nothing_is_left();
    }
    for (int which = 0; which < 12; which++) check_states(short_chain_there, which, (size_t)1 << 20);
    check_nothing_is_left();
}

/* Elements that are copied but not delivered are not consumed; states and digests equal those of a pipeline without a
 * device. */
TEST(prefetch_to_device_shares_states_and_digests_with_the_host)
{
    mr_error error = {0};
    fake_register();
    for (int which = 0; which < 30; which++) {
        mr_iterator_options options = {.size = sizeof options, .threads = 2, .digest = true};
        mr_iterator *here = iterate(chain(which), &options), *away = iterate(chain_there(which), &options);
        mr_element element = {0};
        mr_tensor states[2] = {0}, again = {0};
        for (int i = 0; i < 3 + which % 5; i++) {
            (void)mr_iterator_next(here, &element, nullptr);
            (void)mr_iterator_next(away, &element, nullptr);
        }
        CHECK_EQ(mr_iterator_digest(here), mr_iterator_digest(away));
        CHECK_OK(mr_iterator_save(here, &states[0], &error));
        CHECK_OK(mr_iterator_save(away, &states[1], &error));
        CHECK_OK(mr_iterator_restore(here, &states[1], &error));
        CHECK_OK(mr_iterator_restore(away, &states[0], &error));
        for (int i = 0; i < 20; i++) {
            mr_status status = mr_iterator_next(here, &element, nullptr);
            CHECK(mr_iterator_next(away, &element, nullptr) == status);
        }
        CHECK_EQ(mr_iterator_digest(here), mr_iterator_digest(away));
        CHECK_OK(mr_iterator_save(away, &again, &error));
        mr_tensor_deinit(&again);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&states[i]);
        mr_element_deinit(&element);
        mr_iterator_free(here);
        mr_iterator_free(away);
        check_nothing_is_left();
    }
}

TEST(prefetch_to_device_begins_another_dataset)
{
    mr_error error = {0};
    fake_register();
    mr_dataset *first = mr_dataset_prefetch_to_device(batches(ROWS), "/gpu:0", 2), *second = batches(8);
    mr_iterator *iterator = iterate(mr_dataset_ref(first), nullptr);
    mr_element element = {0}, kept = {0};
    CHECK_OK(mr_iterator_next(iterator, &kept, &error));
    CHECK_OK(mr_iterator_initialize(iterator, second, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_tensor_device(&element.tensors[0]) == nullptr);
    CHECK_OK(mr_iterator_initialize(iterator, first, &error));
    mr_dataset_free(first);
    mr_dataset_free(second);
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_tensor_device(&element.tensors[0]) != nullptr);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    /* A retained element stays valid after everything else has been freed. */
    mr_tensor numbers;
    CHECK_OK(mr_tensor_to_host(&kept.tensors[1], &numbers, &error));
    CHECK_EQ(mr_tensor_int64s(&numbers)[3], 3);
    mr_tensor_deinit(&numbers);
    mr_element_deinit(&kept);
    check_nothing_is_left();
}

/* ---- Errors ---- */

TEST(prefetch_to_device_is_the_last_stage)
{
    mr_error error = {0};
    fake_register();
    static const char *const devices[] = {"/gpu:0", "/cpu:0"};
    for (int i = 0; i < 2; i++) {
        mr_dataset *d = mr_dataset_prefetch_to_device(batches(8), devices[i], 2);
        d = mr_dataset_with_options(d, .threads = 1);
        CHECK_OK(mr_dataset_status(d, &error));
        d = mr_dataset_take(d, 3);
        CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
        CHECK_STR(error.message, "take: cannot follow prefetch_to_device, which must be the last dataset");
        mr_dataset_free(d);
        d = mr_dataset_ignore_errors(mr_dataset_copy_to_device(batches(8), devices[i]));
        CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
        CHECK_STR(error.message, "ignore_errors: cannot follow copy_to_device, which must be the last dataset");
        mr_dataset_free(d);
        mr_dataset *both[] = {batches(8), mr_dataset_prefetch_to_device(batches(8), devices[i], 2)};
        d = mr_dataset_zip(both, 2);
        CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
        mr_dataset_free(d);
        d = mr_dataset_copy_to_device(mr_dataset_prefetch_to_device(batches(8), devices[i], 2), "/gpu:0");
        CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
        mr_dataset_free(d);
        /* As in tf.data, prefetch and options may follow. */
        d = mr_dataset_with_options(mr_dataset_copy_to_device(batches(8), devices[i]), .threads = 3);
        d = mr_dataset_prefetch(d, 2);
        CHECK_OK(mr_dataset_status(d, &error));
        CHECK_EQ(mr_dataset_options_of(d)->threads, 3);
        mr_iterator *iterator = iterate(d, nullptr);
        mr_stage_statistics stages[8];
        CHECK_EQ(mr_iterator_statistics(iterator, stages, 8), 3);
        CHECK_STR(stages[2].stage, "prefetch_to_device");
        mr_iterator_free(iterator);
    }
    check_nothing_is_left();
}

static mr_status to_the_gpu(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context;
    (void)error;
    *output = mr_dataset_prefetch_to_device(window, "/gpu:0", 2);
    return MR_OK;
}

TEST(prefetch_to_device_is_not_for_datasets_inside)
{
    mr_error error = {0};
    fake_register();
    mr_dataset *d = mr_dataset_window(mr_dataset_range(0, 9, 1), to_the_gpu, nullptr, &one_int64, .window_size = 3);
    mr_iterator *iterator = iterate(d, nullptr);
    mr_element element = {0};
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "prefetch_to_device must end the complete pipeline");
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

TEST(prefetch_to_device_reports_its_failures)
{
    mr_error error = {0};
    fake_register();
    fake.device_count = 0;
    mr_dataset *d = mr_dataset_prefetch_to_device(batches(8), "/gpu:0", 2);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_UNAVAILABLE);
    CHECK_STR(error.message, "prefetch_to_device: there is no GPU 0: the driver reports 0");
    mr_dataset_free(d);
    d = mr_dataset_prefetch_to_device(batches(8), "nonsense", 2);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"nonsense\": not a device name");
    mr_dataset_free(d);
    d = mr_dataset_prefetch_to_device(batches(8), "/cpu:0", -1);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "prefetch_to_device: depth is -1, expected 0 to 1024");
    mr_dataset_free(d);
    check_nothing_is_left();
}

/* The fifth element cannot be copied, or has no memory: its error is delivered in its position, once. */
TEST(prefetch_to_device_tells_of_an_element_that_does_not_get_there)
{
    mr_error error = {0};
    for (int kind = 0; kind < 2; kind++) {
        fake_register();
        mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 20, 1), 2);
        mr_iterator *iterator = iterate(mr_dataset_copy_to_device(d, "/gpu:0"), nullptr);
        mr_element element = {0}, kept[10] = {0};
        for (int i = 0; i < 10; i++) {
            if (i == 4 && kind == 0) FAKE_SET(fail_copies, 1);
            if (i == 4 && kind == 1) FAKE_SET(fail_allocations, 2);
            mr_status status = mr_iterator_next(iterator, &element, &error);
            if (i != 4) {
                CHECK_EQ(status, MR_OK);
                kept[i] = element;
                element = (mr_element){0};
                continue;
            }
            CHECK_EQ(status, kind == 0 ? MR_INTERNAL : MR_RESOURCE_EXHAUSTED);
            CHECK_CONTAINS(error.message, "copy_to_device: element 4: /device:GPU:0: ");
            CHECK_CONTAINS(error.message, kind == 0 ? "copy to the GPU" : "no GPU memory for");
        }
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
        for (int i = 0; i < 10; i++) {
            mr_tensor numbers;
            if (i == 4) continue;
            CHECK_OK(mr_tensor_to_host(&kept[i].tensors[0], &numbers, &error));
            CHECK_EQ(mr_tensor_int64s(&numbers)[1], 2 * i + 1);
            mr_tensor_deinit(&numbers);
            mr_element_deinit(&kept[i]);
        }
        mr_iterator_free(iterator);
        check_nothing_is_left();
    }
}

/* A copy that fails after it was queued is reported with the next element; nothing waits indefinitely. */
TEST(prefetch_to_device_tells_of_a_copy_that_failed_on_its_way)
{
    mr_error error = {0};
    fake_register();
    mr_dataset *d = mr_dataset_prefetch_to_device(mr_dataset_repeat(batches(ROWS), MR_INFINITE), "/gpu:0", 2);
    mr_iterator *iterator = iterate(d, nullptr);
    mr_element element = {0};
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    FAKE_SET(fail_event_wait, 700);
    mr_status status = MR_OK;
    for (int i = 0; i < 10 && status == MR_OK; i++) status = mr_iterator_next(iterator, &element, &error);
    CHECK_EQ(status, MR_INTERNAL);
    CHECK_CONTAINS(error.message,
                   "prefetch_to_device: the previous element: /device:GPU:0: wait for a copy: an illegal");
    FAKE_SET(fail_event_wait, 0);
    for (int i = 0; i < 10; i++) status = mr_iterator_next(iterator, &element, &error);
    CHECK_EQ(status, MR_OK);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

TEST(prefetch_to_device_fails_without_memory_and_leaks_nothing)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    fake_register();
    bool is_through = false;
    for (int n = 1; n < 400 && !is_through; n++) {
        mr_iterator *iterator = nullptr;
        mr_dataset *source = batches(8);
        test_fail_allocation(test_allocations() + n);
        mr_dataset *d = mr_dataset_prefetch_to_device(source, "/gpu:0", 2);
        mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, &error);
        is_through = test_allocations() >= 0 && status == MR_OK;
        test_fail_allocation(0);
        if (status != MR_OK) CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
        check_nothing_is_left();
    }
    CHECK(is_through);
}

/* ---- Counters and traces ---- */

TEST(prefetch_to_device_counts)
{
    mr_error error = {0};
    fake_register();
    mr_iterator *iterator = iterate(mr_dataset_prefetch_to_device(batches(ROWS), "/gpu:0", 3), nullptr);
    mr_element element = {0};
    for (int i = 0; i < 10; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_stage_statistics stages[8];
    CHECK_EQ(mr_iterator_statistics(iterator, stages, 8), 3);
    CHECK_STR(stages[2].stage, "prefetch_to_device");
    CHECK_EQ(stages[2].elements, 10);
    CHECK_EQ(stages[2].slots_max, 3);
    CHECK_EQ(stages[2].threads, 1);
    CHECK(stages[2].bytes >= 10 * 4 * (WIDTH * sizeof(float) + sizeof(int64_t)));
    CHECK_STR(stages[1].stage, "batch");
    CHECK(stages[1].elements >= 10);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_open;
    char seen[4096];
} gate;

static mr_status pass_gate(void *context, const mr_element *input, mr_random *random, mr_element *output,
                           mr_error *error)
{
    (void)random;
    (void)error;
    gate *g = context;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    pthread_mutex_lock(&g->mutex);
    while (value == 5 && !g->is_open) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
    output->count = 1;
    ((int64_t *)output->tensors[0].data)[0] = value;
    return MR_OK;
}

static void open_gate(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count)
{
    (void)waited_ns;
    gate *g = context;
    pthread_mutex_lock(&g->mutex);
    for (int32_t i = 0; i < count; i++) {
        size_t used = strlen(g->seen);
        if (threads[i].stage != nullptr)
            snprintf(g->seen + used, sizeof g->seen - used, "%s %s%s;", threads[i].is_waiting ? "waits for" : "does",
                     threads[i].stage, threads[i].where[0] != '\0' ? "" : "?");
    }
    /* Until then the threads have not come to the gate. */
    g->is_open = strstr(g->seen, "does map;") && strstr(g->seen, "waits for batch;");
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

TEST(prefetch_to_device_is_watched_and_traced)
{
    mr_error error = {0};
    fake_register();
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 9, 1), pass_gate, &g, &one_int64);
    d = mr_dataset_prefetch_to_device(mr_dataset_batch(d, 1), "/gpu:0", 2);
    const char *path = test_path("trace.json");
    mr_iterator *iterator = iterate(d, MR_OPTIONS(mr_iterator_options, .threads = 1, .watchdog_ns = 20000000,
                                                  .watchdog = open_gate, .watchdog_context = &g, .trace_path = path));
    mr_element element = {0};
    for (int i = 0; i < 9; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_OK(mr_iterator_trace_stop(iterator, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    CHECK_CONTAINS(g.seen, "does map;");
    CHECK_CONTAINS(g.seen, "waits for batch;");
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    CHECK(file != nullptr);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CHECK_CONTAINS(text, "\"name\":\"prefetch_to_device 0\"");
    CHECK_CONTAINS(text, "\"name\":\"slots of prefetch_to_device");
    CHECK_CONTAINS(text, "{\"ph\":\"X\",\"name\":\"prefetch_to_device\"");
    check_nothing_is_left();
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

TEST(prefetch_to_device_is_cancelled_at_any_moment)
{
    fake_register();
    for (int which = 0; which < 40; which++) {
        random_pipeline draw = {.state = (uint64_t)which};
        mr_dataset *d = mr_dataset_repeat(chain(which), MR_INFINITE);
        d = mr_dataset_prefetch_to_device(d, "/gpu:0", 1 + which % 3);
        consumer c = {.iterator = iterate(d, MR_OPTIONS(mr_iterator_options, .threads = 1 + which % 3))};
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, consume, &c) == 0);
        int64_t moment = random_below(&draw, 100);
        for (int64_t i = 0; i < 10 * moment && atomic_load(&c.taken) < moment; i++) (void)sched_yield();
        mr_iterator_cancel(c.iterator);
        pthread_join(thread, nullptr);
        CHECK(c.status == MR_CANCELLED || c.status == MR_OUT_OF_RANGE || c.status == MR_FAILED_PRECONDITION);
        mr_iterator_free(c.iterator);
        check_nothing_is_left();
    }
}

/* The prefetch distance exceeds the host's memory budget. */
TEST(prefetch_to_device_goes_on_with_a_small_budget)
{
    mr_error error = {0};
    fake_register();
    mr_dataset *d = mr_dataset_prefetch_to_device(mr_dataset_repeat(batches(ROWS), 3), "/gpu:0", 16);
    mr_iterator *iterator = iterate(d, MR_OPTIONS(mr_iterator_options, .threads = 2, .budget_bytes = 6000));
    mr_element element = {0};
    int count = 0;
    while (mr_iterator_next(iterator, &element, &error) == MR_OK) count++;
    CHECK_EQ(count, 3 * ROWS / 4);
    mr_iterator_free(iterator);
    check_nothing_is_left();
}

/* The checks and measurements that the kit runs on a real GPU. */
TEST(prefetch_to_device_passes_the_kit)
{
    mr_error error = {0};
    prefetch_times times;
    fake_register();
    CHECK_OK(prefetch_compare("/device:GPU:0", &error));
    prefetch_size size = {.batch = 4, .side = 8, .rows = 16, .steps = 10};
    CHECK_OK(prefetch_time("/device:GPU:0", size, &times, &error));
    CHECK(times.alone_s > 0 && times.step_s > 0 && times.beside_s > 0 && times.inside_s > 0);
    check_nothing_is_left();
}
