/* Maps in worker processes have the results, order and states of mr_dataset_map. */
#include "tests/pipeline/crew.h"
#include "tests/pipeline/random_pipelines.h"

/* The functions of the crew, in this process. */
static mr_status each(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    const crew_task *task = context;
    int64_t seed = 0;
    if (*task == CREW_NOISE) {
        seed = (int64_t)mr_random_below(random, (uint64_t)1 << 63);
        seed ^= (int64_t)mr_random_below(random, (uint64_t)1 << 63);
    }
    for (int32_t c = 0; c < input->count; c++) {
        const mr_tensor *from = &input->tensors[c];
        mr_tensor to = {0};
        int64_t count = mr_tensor_count(from);
        if (from->dtype == MR_STRING) {
            MR_TRY(mr_tensor_init_strings(&to, from->shape, mr_tensor_strings(from), error));
            for (int64_t k = 0; k < count; k++) {
                char *bytes = (char *)mr_tensor_strings(&to)[k].data;
                for (size_t i = 0; i < mr_tensor_strings(&to)[k].size_bytes; i++) bytes[i]++;
            }
        } else {
            MR_TRY(mr_tensor_init_copy(&to, MR_INT64, from->shape, from->data, error));
            for (int64_t k = 0; k < count; k++)
                mr_tensor_int64s(&to)[k] = (int64_t)(3 * (uint64_t)mr_tensor_int64s(&to)[k] + 1 + (uint64_t)seed);
        }
        if (output->tensors[c].data != nullptr) {
            memcpy(output->tensors[c].data, to.data, mr_tensor_size_bytes(&to));
            mr_tensor_deinit(&to);
        } else {
            output->tensors[c] = to;
        }
        output->count = c + 1;
    }
    return MR_OK;
}

static mr_status spread(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context, (void)random;
    int64_t x = mr_tensor_int64s(&input->tensors[0])[0];
    char text[] = "aaa";
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(x % 5), error));
    output->count = 1;
    for (int64_t k = 0; k < x % 5; k++) mr_tensor_int64s(&output->tensors[0])[k] = x + k;
    mr_string string = {.data = text, .size_bytes = (size_t)(x % 4)};
    MR_TRY(mr_tensor_init_strings(&output->tensors[1], MR_SCALAR, &string, error));
    output->count = 2;
    return MR_OK;
}

static const crew_task tasks[] = {CREW_EACH, CREW_NOISE};

/* How the next dataset of a chain is mapped: by 0 (this process) to 3 processes. */
static int32_t processes_now;
static crew crews[512];
static int crews_used;

static mr_dataset *map(mr_dataset *d, crew_task task, const mr_element_spec *spec)
{
    mr_element_spec same = *mr_dataset_spec(d);
    if (spec == nullptr) spec = &same;
    if (processes_now == 0)
        return mr_dataset_map(d, spec == &same ? each : spread, (void *)&tasks[task % 2], spec, .seed = 9);
    CHECK(crews_used < 512);
    crew *c = &crews[crews_used++];
    *c = (crew){.task = task, .count = processes_now, .output = *spec, .is_random = task == CREW_NOISE};
    return crew_map_dataset(d, c);
}

static mr_dataset *map_each(mr_dataset *d)
{
    return map(d, CREW_EACH, nullptr);
}

static mr_status is_even(void *context, const mr_element *input, bool *keep, mr_error *error)
{
    (void)context, (void)error;
    *keep = mr_tensor_int64s(&input->tensors[0])[0] % 2 == 0;
    return MR_OK;
}

enum { CHAINS = 12 };

static mr_dataset *chain(int which)
{
    mr_dataset *d = mr_dataset_range(0, 200, 1);
    switch (which) {
    case 0:
        return map_each(d);
    case 1:
        return mr_dataset_batch(map_each(mr_dataset_shuffle(d, .seed = 3)), 7);
    case 2: /* components of fixed size with two dimensions; the last batch has another size */
        return map_each(mr_dataset_batch(map_each(d), 9, .drop_remainder = true));
    case 3:
        return map_each(mr_dataset_batch(d, 9));
    case 4: /* strings and rows without elements, in and out */
        return map_each(map(d, CREW_SPREAD, &crew_spread_spec));
    case 5:
        return mr_dataset_batch(mr_dataset_filter(map_each(d), is_even, nullptr), 4);
    case 6:
        return map(mr_dataset_repeat(mr_dataset_shuffle(d, .seed = 4), 2), CREW_NOISE, nullptr);
    case 7:
        return map_each(map_each(map_each(d)));
    case 8:
        return mr_dataset_shuffle(map_each(mr_dataset_filter(d, is_even, nullptr)), .buffer_size = 10, .seed = 1);
    case 9:
        return map_each(mr_dataset_take(d, 0));
    case 10:
        return mr_dataset_batch(map_each(mr_dataset_take(d, 1)), 3);
    default:
        return mr_dataset_prefetch(map(mr_dataset_skip(d, 150), CREW_SPREAD, &crew_spread_spec), 2);
    }
}

static void check_chain(chain_function function, int which)
{
    static uint64_t expected[ELEMENTS_MAX], found[ELEMENTS_MAX];
    processes_now = 0;
    int count = elements_of(function, which, 2, nullptr, expected);
    const int threads[] = {1, 2, 8};
    for (int t = 0; t < 3; t++) {
        crews_used = 0;
        processes_now = 1 + (which + t) % 3;
        CHECK_EQ(elements_of(function, which, threads[t], nullptr, found), count);
        for (int i = 0; i < count; i++)
            if (found[i] != expected[i])
                test_fail(__FILE__, __LINE__, "chain %d, %d threads, %d processes: element %d", which, threads[t],
                          processes_now, i);
        for (int i = 0; i < crews_used; i++) {
            CHECK_EQ(crews[i].releases, 1);
            CHECK_EQ(crews[i].ends, crews[i].starts);
        }
    }
}

/* A state that the map in this process saves is restored with processes, and the other way round. */
static void check_state(chain_function function, int which)
{
    static uint64_t whole[ELEMENTS_MAX], rest[ELEMENTS_MAX];
    mr_error error = {0};
    processes_now = 0;
    int count = elements_of(function, which, 2, nullptr, whole);
    for (int32_t p = 0; p < 3; p++) {
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_tensor state = {0};
        int at = count * (p + 1) / 4;
        crews_used = 0;
        processes_now = p;
        mr_dataset *d = function(which);
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 3), &iterator, &error));
        mr_dataset_free(d);
        for (int i = 0; i < at; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        processes_now = 2 - p;
        CHECK_EQ(elements_of(function, which, 1 + p, &state, rest), count - at);
        for (int i = at; i < count; i++)
            if (rest[i - at] != whole[i]) test_fail(__FILE__, __LINE__, "chain %d, state %d: element %d", which, at, i);
        mr_tensor_deinit(&state);
    }
}

TEST(processes_map_as_threads_do)
{
    for (int which = 0; which < CHAINS; which++) check_chain(chain, which);
}

TEST(processes_restore_states_of_threads)
{
    for (int which = 0; which < CHAINS; which++) check_state(chain, which);
}

static mr_dataset *random_chain(int which)
{
    static random_pipeline made;
    text_map_affine = nullptr;
    mr_dataset_free(random_pipeline_make(&made, test_seed() * 1000 + (uint64_t)which));
    /* More of the maps are those of processes. */
    for (char *at = made.text; (at = strstr(at, "map mod")) != nullptr;) {
        memmove(at + strlen("map affine"), at + strlen("map mod"), strlen(at + strlen("map mod")) + 1);
        memcpy(at, "map affine", strlen("map affine"));
    }
    text_map_affine = map_each;
    return text_build(made.text);
}

TEST(processes_in_random_pipelines)
{
    int count = test_is_sanitized() ? 10 : 40;
    for (int which = 0; which < count; which++) check_chain(random_chain, which);
    for (int which = 0; which < count; which++) check_state(random_chain, which);
}

TEST(two_iterators_share_processes)
{
    mr_error error = {0};
    crew c = {.count = 2};
    mr_dataset *d = crew_map_dataset(mr_dataset_range(0, 300, 1), &c);
    mr_iterator *iterators[2] = {0};
    mr_element element = {0};
    for (int i = 0; i < 2; i++)
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1 + 3 * i), &iterators[i], &error));
    mr_dataset_free(d);
    for (int64_t x = 0; x < 300; x++)
        for (int i = 0; i < 2; i++) {
            CHECK_OK(mr_iterator_next(iterators[i], &element, &error));
            CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 3 * x + 1);
        }
    mr_element_deinit(&element);
    mr_iterator_free(iterators[0]);
    CHECK_EQ(c.releases, 0);
    mr_iterator_free(iterators[1]);
    CHECK_EQ(c.releases, 1);
    CHECK(c.starts >= 1 && c.starts <= 2 && c.ends == c.starts);
}

TEST(processes_options)
{
    mr_error error = {0};
    mr_processes *processes = nullptr;
    crew c = {.count = 1, .memory = memfd_create("crew", 0)};
    mr_processes_options good = crew_options(&c), o = good;
    CHECK_STATUS(mr_processes_new(&good, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_processes_new(nullptr, &processes, &error), MR_INVALID_ARGUMENT);
    const int32_t counts[] = {0, -1, INT32_MIN, MR_PROCESSES_MAX + 1, INT32_MAX};
    for (int i = 0; i < 5; i++) {
        o.count = counts[i];
        CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "count");
    }
    o = good;
    o.start = nullptr;
    CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
    o = good;
    o.ended = nullptr;
    CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
    o = good;
    o.failed = nullptr;
    CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
    const int32_t memories[] = {-1, 1000000, INT32_MIN, 0};
    for (int i = 0; i < 3; i++) {
        o = good;
        o.memory = memories[i];
        CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "memory");
    }
    o = good;
    o.size = 1;
    CHECK_STATUS(mr_processes_new(&o, &processes, &error), MR_INVALID_ARGUMENT);
    CHECK(processes == nullptr && c.releases == 0);
    o = good;
    o.release = nullptr;
    CHECK_OK(mr_processes_new(&o, &processes, &error));
    mr_processes_free(processes);
    CHECK_STATUS(mr_processes_start(nullptr, &error), MR_INVALID_ARGUMENT);
    mr_processes_stop(nullptr);
    mr_processes_free(nullptr);
    close(c.memory);
}

TEST(processes_of_invalid_datasets_are_released)
{
    crew c = {0};
    mr_element_spec resource = {.count = 1, .dtypes = {MR_RESOURCE}};
    mr_dataset *failed[] = {
        mr_dataset_map_in_processes(mr_dataset_range(0, 1, 0), crew_new(&c), &one_int64, .seed = 1),
        mr_dataset_map_in_processes(mr_dataset_range(0, 1, 1), crew_new(&c), nullptr, .seed = 1),
        mr_dataset_map_in_processes(mr_dataset_range(0, 1, 1), nullptr, &one_int64, .seed = 1),
        mr_dataset_map_in_processes(mr_dataset_range(0, 1, 1), crew_new(&c), &resource, .seed = 1),
        mr_dataset_map_in_processes(mr_dataset_range(0, 1, 1), crew_new(&c), &one_int64, .num_parallel_calls = -1),
    };
    for (int i = 0; i < 5; i++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        CHECK_STATUS(mr_iterator_new(failed[i], nullptr, &iterator, &error), MR_INVALID_ARGUMENT);
        mr_dataset_free(failed[i]);
    }
    CHECK_EQ(c.releases, 4);
    CHECK_EQ(c.starts, 0);
}

TEST(processes_start_and_stop_in_any_order)
{
    mr_error error = {0};
    crew c = {.count = 3};
    mr_processes *processes = crew_new(&c);
    c.input = c.output = one_int64;
    mr_processes_stop(processes);
    CHECK_OK(mr_processes_start(processes, &error));
    CHECK_OK(mr_processes_start(processes, &error));
    CHECK_EQ(c.starts, 3);
    mr_dataset *d = mr_dataset_map_in_processes(mr_dataset_range(0, 100, 1), processes, &one_int64, .seed = 1);
    for (int pass = 0; pass < 3; pass++) {
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        for (int64_t x = 0; x < 100; x++) {
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
            CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 3 * x + 1);
        }
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        if (pass == 2) break;
        mr_processes_stop(processes);
        for (int32_t i = 0; i < 3; i++)
            if (c.pids[i] > 0) (void)crew_ended(&c, i, nullptr);
        mr_processes_stop(processes);
    }
    mr_dataset_free(d);
    CHECK_EQ(c.releases, 1);
    CHECK_EQ(c.ends, c.starts);
}
