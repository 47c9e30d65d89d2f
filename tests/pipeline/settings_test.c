/* Random pipelines with settings at and beyond their limits: budgets of 1 byte, no prefetch and huge prefetch, batches
 * larger than the data, up to 64 threads, tuned or not. One iterator executes random operations; the model is the array
 * of its elements. MILLRACE_RANDOM_PIPELINES sets their number, MILLRACE_TEST_SEED the seed. */
#include "tests/pipeline/pipelines.h"
#include "tests/pipeline/random_pipelines.h"

static int pipelines(void)
{
    const char *count = getenv("MILLRACE_RANDOM_PIPELINES");
    return count == nullptr ? 80 : (int)strtol(count, nullptr, 10);
}

/* A random pipeline, followed by stages that random_pipelines.h does not generate. */
static random_pipeline made;

static mr_dataset *extreme(int which)
{
    static const int32_t depths[] = {0, 1, 1024, INT32_MAX};
    mr_dataset_free(random_pipeline_make(&made, test_seed() * 100000 + 50000 + (uint64_t)which));
    size_t used = made.used;
    used += (size_t)snprintf(&made.text[used], 64, "prefetch %d\n", depths[random_below(&made, 4)]);
    if (random_below(&made, 3) == 0 && strstr(made.text, "batch") == nullptr && strstr(made.text, "spread") == nullptr)
        used += (size_t)snprintf(&made.text[used], 64, "padded_batch 100000 0\nprefetch %d\n",
                                 depths[random_below(&made, 4)]);
    return text_build(made.text);
}

typedef struct state {
    mr_tensor tensor;
    int at;
} state;

enum { STATES = 3 };

/* Checks the next element; returns false if the memory of a stage exceeds the budget. */
static bool step(mr_iterator *iterator, int which, const uint64_t *whole, int count, int *at, size_t budget_bytes)
{
    mr_error error = {0};
    mr_element element = {0};
    if (*at == ELEMENTS_MAX) return true;
    mr_status status = mr_iterator_next(iterator, &element, &error);
    if (status == MR_RESOURCE_EXHAUSTED && budget_bytes > 0 && strstr(error.message, "budget") != nullptr) return false;
    if ((status == MR_OUT_OF_RANGE) != (*at == count))
        test_fail(__FILE__, __LINE__, "pipeline %d, element %d of %d: %s %s\n%s", which, *at, count,
                  mr_status_name(status), error.message, made.text);
    if (status == MR_OUT_OF_RANGE) return true;
    uint64_t digest = status == MR_OK ? element_digest(0xcbf29ce484222325u, &element) : 0;
    if (digest != whole[*at])
        test_fail(__FILE__, __LINE__, "pipeline %d: element %d of %d is another one: %s\n%s", which, *at, count,
                  error.message, made.text);
    ++*at;
    mr_element_deinit(&element);
    return true;
}

static void move_about(int which, random_pipeline *draw, const uint64_t *whole, int count)
{
    static const int32_t threads[] = {1, 2, 7, 64};
    static const size_t budgets[] = {1, 4096, 65536, 0};
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    state states[STATES] = {0};
    mr_iterator_options options = {.size = sizeof options,
                                   .threads = threads[random_below(draw, 4)],
                                   .threads_first = (int32_t)random_below(draw, 80),
                                   .tune = (mr_tune)random_below(draw, 3),
                                   .budget_bytes = budgets[random_below(draw, 4)],
                                   .digest = random_below(draw, 2) == 0};
    if (options.tune != MR_TUNE_ON) options.threads_first = 0;
    mr_dataset *d = extreme(which);
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    int at = 0;
    bool fits = true;
    for (int i = 0; i < 120 && fits; i++) {
        state *p = &states[random_below(draw, STATES)];
        switch (random_below(draw, 12)) {
        case 0:
            mr_tensor_deinit(&p->tensor);
            CHECK_OK(mr_iterator_save(iterator, &p->tensor, &error));
            p->at = at;
            break;
        case 1:
            if (p->tensor.buffer == nullptr) break;
            mr_status status = mr_iterator_restore(iterator, &p->tensor, &error);
            fits = status != MR_RESOURCE_EXHAUSTED;
            if (fits) CHECK_OK(status);
            at = p->at;
            break;
        case 2:
            if (random_below(draw, 4) != 0) break;
            CHECK_OK(mr_iterator_initialize(iterator, d, &error));
            at = 0;
            break;
        default:
            fits = step(iterator, which, whole, count, &at, options.budget_bytes);
        }
    }
    for (int i = 0; i < STATES; i++) mr_tensor_deinit(&states[i].tensor);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(settings_at_their_limits_change_no_element)
{
    for (int which = 0; which < pipelines(); which++) {
        uint64_t whole[ELEMENTS_MAX];
        random_pipeline draw = {.state = test_seed() * 1000 + (uint64_t)which};
        int count = elements_of(extreme, which, 2, nullptr, whole);
        for (int round = 0; round < 2; round++) move_about(which, &draw, whole, count);
    }
}

/* ---- The shuffle's buffer, at sizes below, at and above the number of elements ---- */

static mr_status sum(void *context, const mr_element *state, const mr_element *input, mr_element *next,
                     mr_element *output, mr_error *error)
{
    (void)context, (void)error;
    next->tensors[0] = mr_tensor_ref(&state->tensors[0]);
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    next->count = output->count = 1;
    return MR_OK;
}

/* With an index, the shuffle can seek to any position; without one, it must read the data in sequence. */
static mr_dataset *buffered(int64_t count, int64_t buffer, bool is_stream, int64_t skip)
{
    mr_error error = {0};
    mr_element zero = {0};
    mr_dataset *d = mr_dataset_range(0, count, 1);
    CHECK_OK(mr_element_init(&zero, 1, &error));
    CHECK_OK(mr_tensor_init_int64(&zero.tensors[0], 0, &error));
    if (is_stream) d = mr_dataset_scan(d, &zero, sum, nullptr, &one_int64);
    mr_element_deinit(&zero);
    return mr_dataset_skip(mr_dataset_shuffle(d, .buffer_size = buffer, .seed = test_seed()), skip);
}

TEST(settings_of_the_shuffle_buffer)
{
    static const int64_t counts[] = {0, 1, 2, 5, 33};
    for (int c = 0; c < 5; c++)
        for (int b = 0; b < 6; b++)
            for (int is_stream = 0; is_stream < 2; is_stream++) {
                int64_t count = counts[c], found[40], rest[40];
                int64_t buffer = (int64_t[]){1, 2, count - 1, count, count + 1, 4096}[b];
                bool seen[40] = {false};
                if (buffer < 1) continue;
                CHECK_EQ(numbers_of(buffered(count, buffer, is_stream, 0), nullptr, found, 40), count);
                for (int64_t i = 0; i < count; i++) {
                    /* An element is delivered once, and not before it can be in the buffer. */
                    CHECK(found[i] >= 0 && found[i] < count && !seen[found[i]]);
                    if (buffer < count) CHECK(found[i] < i + buffer);
                    seen[found[i]] = true;
                }
                for (int64_t skip = 0; skip <= count; skip += count > 9 ? 4 : 1) {
                    CHECK_EQ(numbers_of(buffered(count, buffer, is_stream, skip), nullptr, rest, 40), count - skip);
                    CHECK(memcmp(rest, found + skip, (size_t)(count - skip) * sizeof *rest) == 0);
                }
            }
}
