/* Worker processes that end, fail, do not answer or damage the shared memory. */
#include "tests/pipeline/crew.h"

typedef struct outcome {
    int64_t elements, errors;
    mr_status status; /* of the last error */
    char message[MR_ERROR_SIZE];
} outcome;

/* Reads all elements and frees the dataset. It must end: each element is delivered or fails once. */
static outcome read_all(mr_dataset *d, int32_t threads, size_t budget_bytes, int64_t most)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    outcome found = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads, .budget_bytes = budget_bytes),
                             &iterator, &error));
    mr_dataset_free(d);
    for (mr_status status; (status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE;) {
        if (status == MR_OK) {
            found.elements++;
            (void)element_digest(1, &element);
        } else {
            found.errors++;
            found.status = status;
            CHECK(status == error.status && error.message[0] != '\0');
            memcpy(found.message, error.message, sizeof found.message);
        }
        if (found.elements + found.errors > most) test_fail(__FILE__, __LINE__, "no end: %s", found.message);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return found;
}

TEST(a_process_that_ends_is_one_error)
{
    int64_t seven = 7;
    for (int32_t threads = 1; threads <= 8; threads *= 2)
        for (int kind = 0; kind < 3; kind++) {
            crew c = {.count = 1 + threads % 3};
            *(kind == 0 ? &c.die_at : kind == 1 ? &c.exit_at : &c.fail_at) = &seven;
            outcome found = read_all(crew_map_dataset(mr_dataset_range(0, 50, 1), &c), threads, 0, 50);
            CHECK_EQ(found.elements, 49);
            CHECK_EQ(found.errors, 1);
            CHECK_STATUS(found.status, kind == 2 ? MR_DATA_LOSS : MR_ABORTED);
            CHECK_CONTAINS(found.message, kind == 2 ? "described: bad" : "the process has ended with status");
            CHECK_CONTAINS(found.message, "element 7");
            CHECK_EQ(c.ends, c.starts);
        }
}

/* In chains, in batches and with results of variable size. */
TEST(a_process_that_ends_in_a_chain)
{
    int64_t seven = 7;
    crew a = {.count = 1}, b = {.count = 2, .task = CREW_SPREAD, .output = crew_spread_spec};
    a.die_at = b.exit_at = &seven;
    mr_dataset *d = crew_map_dataset(crew_map_dataset(mr_dataset_range(0, 40, 1), &a), &b);
    outcome found = read_all(d, 3, 0, 40);
    CHECK_EQ(found.elements, 38); /* 7, and 2, which becomes 7 */
    CHECK_EQ(found.errors, 2);
    crew c = {.die_at = &seven};
    found = read_all(mr_dataset_batch(crew_map_dataset(mr_dataset_range(0, 40, 1), &c), 4), 3, 0, 10);
    CHECK_EQ(found.elements, 9);
    CHECK_EQ(found.errors, 1);
}

TEST(an_idle_process_that_is_killed_is_replaced)
{
    mr_error error = {0};
    crew c = {.count = 1};
    mr_processes *processes = crew_new(&c);
    c.input = c.output = one_int64;
    CHECK_OK(mr_processes_start(processes, &error));
    siginfo_t info;
    CHECK(kill(c.pids[0], SIGKILL) == 0);
    CHECK(waitid(P_PID, (id_t)c.pids[0], &info, WEXITED | WNOWAIT) == 0);
    mr_dataset *d = mr_dataset_map_in_processes(mr_dataset_range(0, 20, 1), processes, &one_int64, .seed = 1);
    outcome found = read_all(d, 2, 0, 20);
    CHECK_EQ(found.elements, 20);
    CHECK_EQ(c.starts, 2);
    CHECK_EQ(c.ends, 2);
}

TEST(a_start_that_fails)
{
    mr_error error = {0};
    crew c = {.count = 2, .failing_starts = 1};
    mr_processes *processes = crew_new(&c);
    c.input = c.output = one_int64;
    CHECK_STATUS(mr_processes_start(processes, &error), MR_UNAVAILABLE);
    CHECK_OK(mr_processes_start(processes, &error));
    mr_processes_free(processes);
    CHECK_EQ(c.starts, 2);
    crew always = {.failing_starts = 1000000};
    outcome found = read_all(crew_map_dataset(mr_dataset_range(0, 30, 1), &always), 4, 0, 30);
    CHECK_EQ(found.errors, 30);
    CHECK_STATUS(found.status, MR_UNAVAILABLE);
    CHECK_CONTAINS(found.message, "no process can be started");
    crew once = {.failing_starts = 1, .count = 1};
    found = read_all(crew_map_dataset(mr_dataset_range(0, 30, 1), &once), 1, 0, 30);
    CHECK_EQ(found.errors, 1);
    CHECK_EQ(found.elements, 29);
}

static mr_status start_stream(void *context, int32_t index, int32_t *socket, mr_error *error)
{
    crew *c = context;
    (void)index, (void)error;
    *socket = (int32_t)c->value;
    return MR_OK;
}

static mr_status ended_nothing(void *context, int32_t index, mr_error *error)
{
    (void)context, (void)index, (void)error;
    return MR_OK;
}

TEST(a_start_without_a_socket)
{
    const int sockets[] = {-1, 1000000, 0};
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_processes *processes = nullptr;
        crew c = {.count = 1, .memory = memfd_create("crew", 0), .value = (uint64_t)sockets[i]};
        mr_processes_options options = crew_options(&c);
        options.start = start_stream;
        options.ended = ended_nothing;
        CHECK(pthread_mutex_init(&c.mutex, nullptr) == 0);
        CHECK_OK(mr_processes_new(&options, &processes, &error));
        CHECK_STATUS(mr_processes_start(processes, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "SOCK_SEQPACKET");
        mr_processes_free(processes);
    }
}

/* ---- Damage ---- */

/* Each element is delivered or fails, with a status that `expected` lists; 0: any. */
static outcome read_damaged(crew *c, int32_t threads)
{
    c->count = 1 + threads % 2;
    outcome found = read_all(crew_map_dataset(mr_dataset_range(0, 24, 1), c), threads, 0, 48);
    CHECK_EQ(c->ends, c->starts);
    CHECK_EQ(c->releases, 1);
    return found;
}

static const uint64_t hostile[] = {1,
                                   7,
                                   63,
                                   64,
                                   13,
                                   4096,
                                   (uint64_t)1 << 20,
                                   (uint64_t)1 << 31,
                                   (uint64_t)1 << 32,
                                   ((uint64_t)1 << 36) - 64,
                                   (uint64_t)1 << 36,
                                   ((uint64_t)1 << 36) + 64,
                                   (uint64_t)1 << 61,
                                   (uint64_t)1 << 62,
                                   ((uint64_t)1 << 63) - 1,
                                   (uint64_t)1 << 63,
                                   UINT64_MAX - 63,
                                   UINT64_MAX - 7,
                                   UINT64_MAX};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

TEST(damaged_fields_of_results)
{
    for (uint64_t at = 0; at < 6; at++)
        for (int i = 0; i < HOSTILE; i++) {
            crew c = {.task = CREW_SPREAD, .output = crew_spread_spec, .target = CREW_FIELD, .at = at};
            c.value = hostile[i];
            outcome found = read_damaged(&c, 1 + 3 * (i % 2));
            CHECK_EQ(found.elements + found.errors, 24);
            if (at <= 2 && hostile[i] >= (uint64_t)1 << 20) CHECK_EQ(found.errors, 24);
            if (found.errors > 0) CHECK(found.status == MR_INTERNAL || found.status == MR_INVALID_ARGUMENT);
        }
}

TEST(damaged_sizes_of_strings)
{
    mr_string strings[6] = {0};
    for (int i = 0; i < HOSTILE; i++)
        for (uint64_t at = 0; at < 3; at++) {
            mr_error error = {0};
            mr_tensor tensor = {0};
            for (int k = 0; k < 6; k++) strings[k] = (mr_string){.data = "abcdef", .size_bytes = (size_t)k};
            CHECK_OK(mr_tensor_init_strings(&tensor, MR_SHAPE(2, 3), strings, &error));
            crew c = {.target = CREW_TEXT, .at = at, .value = hostile[i]};
            outcome found = read_all(crew_map_dataset(mr_dataset_from_slices(&tensor, 1), &c), 2, 0, 2);
            mr_tensor_deinit(&tensor);
            CHECK_EQ(found.elements + found.errors, 2);
            if (hostile[i] > 64) CHECK_EQ(found.errors, 2);
            if (found.errors > 0) CHECK_STATUS(found.status, MR_INTERNAL);
        }
}

TEST(damaged_rows)
{
    int64_t all = 3;
    for (int i = 0; i < HOSTILE; i++) {
        crew status = {.target = CREW_ROW, .at = 0, .value = hostile[i]};
        outcome found = read_damaged(&status, 2);
        CHECK_EQ(found.errors, 24);
        /* The offset of a description. */
        crew offset = {.target = CREW_ROW, .at = 1, .value = hostile[i], .fail_at = &all};
        found = read_damaged(&offset, 2);
        CHECK_EQ(found.errors, 1);
        if (hostile[i] >= (uint64_t)1 << 20) CHECK_STATUS(found.status, MR_INTERNAL);
    }
}

TEST(damaged_progress_of_a_process_that_ends)
{
    for (int i = 0; i < HOSTILE; i++)
        for (uint64_t at = 0; at < 2; at++) {
            crew c = {.target = CREW_PROGRESS, .at = at, .value = hostile[i]};
            outcome found = read_damaged(&c, 2);
            CHECK_EQ(found.elements + found.errors, 24);
            CHECK(found.errors > 0);
        }
}

TEST(damaged_answers)
{
    for (int i = 0; i < HOSTILE; i++) {
        crew c = {.target = CREW_ANSWER, .value = hostile[i]};
        outcome found = read_damaged(&c, 2);
        CHECK_EQ(found.elements + found.errors, hostile[i] > MR_PROCESSES_AREA_BYTES ? found.errors : 24);
        if (hostile[i] > MR_PROCESSES_AREA_BYTES) CHECK(found.elements == 0 && found.errors > 0);
    }
    const uint64_t sizes[] = {0, 1, 7, 16, 24};
    for (int i = 0; i < 5; i++) {
        crew c = {.target = CREW_SHORT, .at = sizes[i]};
        outcome found = read_damaged(&c, 2);
        CHECK(found.errors > 0 && found.errors + found.elements == 24); /* one for each block */
        CHECK_STATUS(found.status, MR_ABORTED);
    }
    crew twice = {.target = CREW_TWICE};
    outcome found = read_damaged(&twice, 1);
    CHECK_EQ(found.elements, 24);
}

TEST(an_overwritten_area)
{
    const uint64_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (int i = 0; i < 5; i++)
        for (int spreads = 0; spreads < 2; spreads++) {
            crew c = {.target = CREW_ALL, .at = (uint64_t)1 << 20, .value = values[i]};
            if (spreads == 1) {
                c.task = CREW_SPREAD;
                c.output = crew_spread_spec;
            }
            outcome found = read_damaged(&c, 2);
            CHECK_EQ(found.elements + found.errors, 24);
            if (values[i] != 0) CHECK_EQ(found.errors, 24);
        }
}

/* ---- Cancellation and memory ---- */

static void *cancel_soon(void *iterator)
{
    const struct timespec while_processes_sleep = {.tv_nsec = 50000000};
    nanosleep(&while_processes_sleep, nullptr);
    mr_iterator_cancel(iterator);
    return nullptr;
}

/* An iterator over a map whose processes sleep from this element on. */
static mr_iterator *sleeping_iterator(crew *c, int64_t *sleep_at, int32_t threads)
{
    mr_error error = {0};
    *c = (crew){.sleep_at = sleep_at};
    mr_dataset *d = mr_dataset_prefetch(crew_map_dataset(mr_dataset_range(0, 1000, 1), c), 4);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    mr_dataset_free(d);
    return iterator;
}

/* Both processes may sleep before the first element is complete: it may share a slot with those that put them to
 * sleep. */
TEST(cancel_while_a_process_works)
{
    for (int32_t threads = 1; threads <= 8; threads *= 2) {
        int64_t five = 5;
        crew c;
        mr_iterator *iterator = sleeping_iterator(&c, &five, threads);
        pthread_t canceller;
        CHECK(pthread_create(&canceller, nullptr, cancel_soon, iterator) == 0);
        mr_error error = {0};
        mr_element element = {0};
        mr_status status = MR_OK;
        while (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
        CHECK_STATUS(status, MR_CANCELLED);
        pthread_join(canceller, nullptr);
        mr_iterator_free(iterator);
        CHECK_EQ(c.ends, c.starts);
    }
}

TEST(iterator_is_freed_while_a_process_works)
{
    for (int32_t threads = 1; threads <= 4; threads *= 2) {
        int64_t zero = 0;
        crew c;
        mr_iterator *iterator = sleeping_iterator(&c, &zero, threads);
        const struct timespec while_processes_start = {.tv_nsec = 20000000};
        nanosleep(&while_processes_start, nullptr);
        mr_iterator_free(iterator);
        CHECK_EQ(c.ends, c.starts);
    }
}

TEST(elements_larger_than_an_area)
{
    const int64_t sizes[] = {(int64_t)1 << 34, (int64_t)1 << 58, (int64_t)1 << 60, INT64_MAX};
    for (int i = 0; i < 4; i++) {
        crew large = {.output = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {sizes[i]}}}}};
        crew small = {.output = one_int64};
        large.input = one_int64;
        small.input = large.output;
        mr_dataset *d = mr_dataset_range(0, 10, 1);
        d = mr_dataset_map_in_processes(d, crew_new(&large), &large.output, .seed = 1);
        d = mr_dataset_map_in_processes(d, crew_new(&small), &small.output, .seed = 1);
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        mr_dataset_free(d);
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, "map");
        mr_iterator_free(iterator);
    }
}

/* The shared memory is in the budget, and a small one does not stop the pipeline. */
TEST(the_budget_counts_shared_memory)
{
    static constexpr size_t MIB = (size_t)1 << 20;
    for (size_t budget_bytes = 1; budget_bytes <= 64 * MIB; budget_bytes *= 64) {
        crew c = {.count = 2, .task = CREW_GROW, .output = crew_grow_spec};
        crew after = {.count = 1};
        mr_dataset *d = crew_map_dataset(crew_map_dataset(mr_dataset_range(0, 60, 1), &c), &after);
        outcome found = read_all(d, 8, budget_bytes, 60);
        CHECK_EQ(found.elements, 60);
    }
    mr_error error = {0};
    int64_t eight = 8;
    crew c = {.count = 2, .task = CREW_FIRST, .output = one_int64, .sleep_at = &eight};
    mr_tensor rows = {0};
    CHECK_OK(mr_tensor_init(&rows, MR_INT64, MR_SHAPE(64, 131072), &error));
    for (int64_t i = 0; i < 64; i++) mr_tensor_int64s(&rows)[i * 131072] = i;
    mr_dataset *d = mr_dataset_prefetch(crew_map_dataset(mr_dataset_from_slices(&rows, 1), &c), 16);
    mr_tensor_deinit(&rows);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 4), &iterator, &error));
    mr_element element = {0};
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    size_t held_bytes = 0;
    for (int tries = 0; tries < 2000 && held_bytes < MIB; tries++) {
        mr_stage_statistics statistics[8];
        int32_t count = mr_iterator_statistics(iterator, statistics, 8);
        held_bytes = 0;
        for (int32_t i = 0; i < count && i < 8; i++) held_bytes += statistics[i].held_bytes;
        (void)usleep(1000);
    }
    CHECK(held_bytes >= MIB); /* results are small, and the rows of the source are not counted */
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}
