/* Observation of a pipeline: digest, watchdog, trace, statistics; and cancellation. */
#include "tests/pipeline/pipelines.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

static mr_status uneven(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    for (volatile int i = 0; i < (value % 7 == 0 ? 20000 : 10); i++) {}
    if (value == 33) return mr_fail(error, MR_INVALID_ARGUMENT, "no 33 here");
    output->count = 1;
    ((int64_t *)output->tensors[0].data)[0] = value + (int64_t)mr_random_below(random, 1000);
    return MR_OK;
}

static uint64_t digest_with(int32_t threads, uint64_t seed, int64_t count, bool digest)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 300, 1), .seed = 3);
    d = mr_dataset_batch(mr_dataset_map(mr_dataset_repeat(d, 2), uneven, nullptr, &one_int64), 4);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_iterator_options options = {.size = sizeof options, .threads = threads, .seed = seed, .digest = digest};
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    for (int64_t i = 0; i < count; i++)
        if (mr_iterator_next(iterator, &element, &error) == MR_OUT_OF_RANGE) break;
    uint64_t value = mr_iterator_digest(iterator);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return value;
}

TEST(seen_digest_is_the_same_at_any_number_of_threads)
{
    uint64_t one = digest_with(1, 0, 1000, true);
    CHECK(one != 0);
    CHECK_EQ(digest_with(2, 0, 1000, true), one);
    CHECK_EQ(digest_with(7, 0, 1000, true), one);
    CHECK_EQ(digest_with(64, 0, 1000, true), one);
    CHECK(digest_with(2, 1, 1000, true) != one);
    CHECK(digest_with(2, 0, 100, true) != one);
    CHECK_EQ(digest_with(2, 0, 1000, false), 0);
}

/* ---- The watchdog ---- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_open;
    int calls, map_threads;
    uint64_t waited_ns, since_ns, number;
    char where[200];
} gate;

static mr_status stuck_at_5(void *context, const mr_element *input, mr_random *random, mr_element *output,
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
    gate *g = context;
    pthread_mutex_lock(&g->mutex);
    g->calls++;
    g->waited_ns = waited_ns;
    /* On a busy machine other elements may take that long too. */
    for (int32_t i = 0; i < count && !g->is_open; i++) {
        if (threads[i].stage == nullptr || strcmp(threads[i].stage, "map") != 0 || threads[i].is_waiting) continue;
        if (threads[i].number != 5) continue;
        g->map_threads++;
        g->number = threads[i].number;
        g->since_ns = threads[i].since_ns;
        memcpy(g->where, threads[i].where, sizeof g->where);
    }
    g->is_open = g->map_threads > 0;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static void check_watchdog(int32_t threads, bool is_inner)
{
    mr_error error = {0};
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 20, 1), stuck_at_5, &g, &one_int64, .num_parallel_calls = 1);
    /* zip reads from an inner pipeline. */
    if (is_inner) d = mr_dataset_zip((mr_dataset *[]){d, mr_dataset_range(0, 100, 1)}, 2);
    d = mr_dataset_batch(d, 4);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_iterator_options options = {.size = sizeof options,
                                   .threads = threads,
                                   .watchdog_ns = 20000000,
                                   .watchdog = open_gate,
                                   .watchdog_context = &g};
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    for (int i = 0; i < 5; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    CHECK(g.calls >= 1);
    CHECK(g.waited_ns >= 20000000);
    CHECK_EQ(g.map_threads, 1);
    CHECK_EQ(g.number, 5);
    CHECK_CONTAINS(g.where, "5");
    CHECK(g.since_ns > 0 && g.since_ns < (uint64_t)3600 * 1000000000u);
}

TEST(seen_watchdog_names_stage_and_element)
{
    check_watchdog(2, false);
    check_watchdog(1, false);
    check_watchdog(2, true);
}

TEST(seen_watchdog_needs_a_function)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_dataset *d = mr_dataset_range(0, 20, 1);
    CHECK_STATUS(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .watchdog_ns = 1), &iterator, &error),
                 MR_INVALID_ARGUMENT);
    CHECK(iterator == nullptr);
    mr_dataset_free(d);
}

/* ---- The trace ---- */

TEST(seen_trace_is_valid_json)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_batch(
        mr_dataset_map(mr_dataset_range(0, 200, 1), stuck_at_5, &(gate){.is_open = true}, &one_int64), 10);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    const char *path = test_path("trace.json");
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2, .trace_path = path), &iterator, &error));
    while (mr_iterator_next(iterator, &element, &error) == MR_OK) {}
    CHECK_OK(mr_iterator_trace_stop(iterator, &error));
    CHECK_OK(mr_iterator_trace_stop(iterator, &error));
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    json_t *events = json_load_file(path, JSON_REJECT_DUPLICATES, nullptr);
    CHECK(json_is_array(events));
    int64_t rows = 0, workspaces = 0, counters = 0, batches = 0;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        const char *kind = json_string_value(json_object_get(event, "ph"));
        const char *name = json_string_value(json_object_get(event, "name"));
        CHECK(kind != nullptr && name != nullptr);
        workspaces += kind[0] == 'M';
        counters += kind[0] == 'C';
        if (kind[0] != 'X') continue;
        CHECK(json_number_value(json_object_get(event, "ts")) >= 0);
        CHECK(json_number_value(json_object_get(event, "dur")) >= 0);
        batches += strcmp(name, "batch") == 0;
        if (strcmp(name, "range+map") == 0)
            rows += json_integer_value(json_object_get(json_object_get(event, "args"), "rows"));
    }
    CHECK_EQ(rows, 200);
    CHECK_EQ(batches, 20);
    CHECK(workspaces >= 1 && workspaces <= 2);
    CHECK(counters >= 40);
    json_decref(events);
}

TEST(seen_trace_that_cannot_be_written)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 20, 1), 2);
    const char *path = test_path("none/trace.json");
    CHECK_STATUS(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .trace_path = path), &iterator, &error),
                 MR_UNAVAILABLE);
    CHECK_CONTAINS(error.message, "none/trace.json");
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .trace_path = "/dev/full"), &iterator, &error));
    for (int i = 0; i < 10; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_STATUS(mr_iterator_trace_stop(iterator, &error), MR_UNAVAILABLE);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* ---- Statistics ---- */

TEST(seen_statistics_text_fits)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = mr_dataset_batch(mr_dataset_shuffle(mr_dataset_range(0, 100000, 1)), 100);
    d = mr_dataset_prefetch(d, 3);
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    while (mr_iterator_next(iterator, &element, &error) == MR_OK) {}
    mr_stage_statistics s[8];
    CHECK_EQ(mr_iterator_statistics(iterator, s, 8), 4);
    CHECK_EQ(s[0].slots_max, 0);
    CHECK(s[3].slots_max >= 4);
    CHECK(s[3].occupancy >= 0 && s[3].occupancy <= 1);
    char text[1024];
    size_t size = mr_iterator_statistics_text(iterator, 60, text, sizeof text);
    CHECK_EQ(size, strlen(text));
    CHECK_CONTAINS(text, "shuffle");
    CHECK_CONTAINS(text, "100k");
    CHECK_CONTAINS(text, " held ");
    CHECK_EQ(s[1].held_bytes, 0);
    CHECK(s[3].held_bytes >= 2 * 800);
    int lines = 0;
    for (const char *line = text; *line != '\0'; lines++) {
        size_t width = strcspn(line, "\n");
        CHECK(width <= 60);
        line += width + 1;
    }
    CHECK_EQ(lines, 5);
    char small[10];
    CHECK_EQ(mr_iterator_statistics_text(iterator, 60, small, sizeof small), size);
    CHECK_EQ(strlen(small), 9);
    CHECK_EQ(mr_iterator_statistics_text(iterator, 60, nullptr, 0), size);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}
