/* Values at and beyond the limits: positions, counts, weights and budgets. Nothing overflows, loops indefinitely or is
 * lost. */
#include "tests/pipeline/pipelines.h"

#include <pthread.h>

/* ---- Order stages with huge numbers ---- */

TEST(limits_of_ranges)
{
    CHECK_NUMBERS(mr_dataset_range(INT64_MAX - 2, INT64_MAX, 1), INT64_MAX - 2, INT64_MAX - 1);
    CHECK_NUMBERS(mr_dataset_range(INT64_MIN, INT64_MAX, INT64_MAX), INT64_MIN, -1, INT64_MAX - 1);
    CHECK_NUMBERS(mr_dataset_range(INT64_MAX, INT64_MIN, INT64_MIN), INT64_MAX, -1);
    CHECK_NUMBERS(mr_dataset_range(INT64_MIN, INT64_MAX, (int64_t)1 << 62), INT64_MIN, -((int64_t)1 << 62), 0,
                  (int64_t)1 << 62);
}

TEST(limits_of_take_skip_and_shard)
{
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_range(0, 2, 1), INT64_MAX), 0, 1);
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_range(0, 2, 1), INT64_MIN), 0, 1);
    CHECK_EQ(numbers_of(mr_dataset_skip(mr_dataset_range(0, 2, 1), INT64_MAX), nullptr, &(int64_t){0}, 1), 0);
    CHECK_EQ(numbers_of(mr_dataset_skip(mr_dataset_range(0, 2, 1), INT64_MIN), nullptr, &(int64_t){0}, 1), 0);
    mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 3, 1), MR_INFINITE);
    /* Positions past the end are the end; the sum of the skips must not wrap around. */
    for (int i = 0; i < 8; i++) d = mr_dataset_skip(d, INT64_MAX);
    CHECK_EQ(numbers_of(d, nullptr, &(int64_t){0}, 1), 0);
    CHECK_NUMBERS(mr_dataset_shard(mr_dataset_range(0, 3, 1), INT64_MAX, 2), 2);
    d = mr_dataset_shard(mr_dataset_repeat(mr_dataset_range(0, 3, 1), MR_INFINITE), INT64_MAX, INT64_MAX - 1);
    CHECK_EQ(numbers_of(d, nullptr, &(int64_t){0}, 1), 0);
    d = mr_dataset_shard(mr_dataset_skip(mr_dataset_random(1), INT64_MAX), (int64_t)1 << 61, 3);
    CHECK_EQ(numbers_of(d, nullptr, &(int64_t){0}, 1), 0);
}

static mr_status keep_all(void *, const mr_element *, bool *stays, mr_error *)
{
    *stays = true;
    return MR_OK;
}

TEST(limits_of_repeat)
{
    int64_t found[7];
    mr_dataset *d = mr_dataset_filter(mr_dataset_range(0, 3, 1), keep_all, nullptr);
    CHECK_EQ(numbers_of(mr_dataset_repeat(d, INT64_MAX), nullptr, found, 7), 7);
    CHECK_EQ(found[6], 0);
    d = mr_dataset_repeat(mr_dataset_repeat(mr_dataset_range(0, 1, 1), 1 << 30), (int64_t)1 << 32);
    CHECK_EQ(mr_dataset_cardinality(d), (int64_t)1 << 62);
    CHECK_EQ(numbers_of(mr_dataset_skip(d, ((int64_t)1 << 62) - 3), nullptr, found, 7), 3);
    d = mr_dataset_range(0, (int64_t)1 << 62, 1);
    CHECK_EQ(numbers_of(mr_dataset_skip(mr_dataset_shuffle(d), ((int64_t)1 << 62) - 3), nullptr, found, 7), 3);
}

TEST(limits_of_enumerate)
{
    mr_dataset *d = mr_dataset_enumerate(mr_dataset_range(0, 4, 1), INT64_MAX - 1);
    mr_iterator *it = nullptr;
    mr_error error = {0};
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &it, &error));
    for (int64_t number = INT64_MAX - 1;; number++) {
        CHECK_OK(mr_iterator_next(it, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], number);
        if (number == INT64_MAX) break;
    }
    for (int i = 2; i < 4; i++) CHECK_STATUS(mr_iterator_next(it, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "enumerate: element 3: 9223372036854775806 + 3 is larger than any int64");
    CHECK_STATUS(mr_iterator_next(it, &element, &error), MR_OUT_OF_RANGE);
    mr_element_deinit(&element);
    mr_iterator_free(it);
    mr_dataset_free(d);
    CHECK_NUMBERS(mr_dataset_enumerate(mr_dataset_range(0, 2, 1), INT64_MAX - 1), INT64_MAX - 1, INT64_MAX);
    CHECK_NUMBERS(mr_dataset_enumerate(mr_dataset_range(0, 2, 1), INT64_MIN), INT64_MIN, INT64_MIN + 1);
}

TEST(limits_of_buffers_windows_and_cycles)
{
    CHECK_EQ(numbers_of(mr_dataset_shuffle(mr_dataset_range(0, 9, 1), .buffer_size = INT64_MAX, .seed = UINT64_MAX),
                        nullptr, (int64_t[16]){0}, 16),
             9);
    mr_dataset *d = mr_dataset_range(0, 9, 1);
    CHECK_NUMBERS(mr_dataset_window(d, nullptr, nullptr, nullptr, .window_size = 2, .shift = 1 << 28, .stride = 3), 0,
                  3);
    CHECK_NUMBERS(mr_dataset_batch(mr_dataset_range(0, 3, 1), 1 << 20), 0, 1, 2);
    CHECK_NUMBERS(mr_dataset_prefetch(mr_dataset_range(0, 3, 1), INT32_MAX), 0, 1, 2);
    CHECK_NUMBERS(mr_dataset_assert_cardinality(mr_dataset_range(0, 3, 1), 3), 0, 1, 2);
}

TEST(limits_of_windows_larger_than_the_input)
{
    for (int64_t size = INT64_MAX; size > 2; size /= 2) {
        mr_dataset *d = mr_dataset_window(mr_dataset_range(0, 3, 1), nullptr, nullptr, nullptr, .window_size = size);
        CHECK_NUMBERS(mr_dataset_unbatch(d), 0, 1, 2);
        d = mr_dataset_window(mr_dataset_range(0, 3, 1), nullptr, nullptr, nullptr, .window_size = 2, .shift = size,
                              .stride = size);
        CHECK_NUMBERS(mr_dataset_unbatch(d), 0);
        d = mr_dataset_window(mr_dataset_range(0, 3, 1), nullptr, nullptr, nullptr, .window_size = size, .shift = 1,
                              .stride = size, .drop_remainder = true);
        CHECK_EQ(numbers_of(d, nullptr, &(int64_t){0}, 1), 0);
    }
}

TEST(limits_of_concatenations)
{
    int64_t found[402];
    for (int side = 0; side < 2; side++) {
        mr_dataset *d = mr_dataset_range(0, 2, 1);
        for (int i = 1; i <= 200; i++) {
            mr_dataset *next = mr_dataset_range(10 * i, 10 * i + 2, 1);
            d = side == 0 ? mr_dataset_concatenate(d, next) : mr_dataset_concatenate(next, d);
        }
        CHECK_EQ(mr_dataset_cardinality(d), 402);
        CHECK_EQ(numbers_of(d, nullptr, found, 402), 402);
        for (int i = 0; i <= 200; i++)
            for (int k = 0; k < 2; k++) CHECK_EQ(found[2 * i + k], 10 * (side == 0 ? i : 200 - i) + k);
    }
    mr_dataset *d = mr_dataset_range(0, 2, 1);
    for (int i = 0; i < 60; i++) d = mr_dataset_concatenate(mr_dataset_ref(d), d);
    mr_error error = {0};
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "more than 10000 datasets in a pipeline");
    mr_dataset_free(d);
}

/* ---- Recursion ---- */

static mr_status map_to_itself(void *context, const mr_element *, mr_dataset **output, mr_error *)
{
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    *output = context != nullptr ? mr_dataset_flat_map(mr_dataset_range(0, 2, 1), map_to_itself, context, &spec)
                                 : mr_dataset_interleave(mr_dataset_range(0, 2, 1), map_to_itself, nullptr, &spec,
                                                         .cycle_length = 2, .parallel = true);
    return MR_OK;
}

TEST(limits_of_datasets_of_themselves)
{
    for (int i = 0; i < 2; i++) {
        mr_dataset *d = nullptr;
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_error error = {0};
        CHECK_OK(map_to_itself(i == 0 ? nullptr : &d, nullptr, &d, &error));
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, "more than 400 calls");
        mr_iterator_free(iterator);
        mr_element_deinit(&element);
        mr_dataset_free(d);
    }
}

/* ---- Weights ---- */

/* Counts how often each of two inputs was selected among the first `count` elements. Input i has sizes[i] elements of
 * value i. */
static void sample(double first, double second, const int64_t sizes[2], int64_t count, int64_t seen[2])
{
    mr_dataset *inputs[2];
    for (int i = 0; i < 2; i++) {
        inputs[i] = mr_dataset_repeat(mr_dataset_range(i, i + 1, 1), sizes[i]);
    }
    mr_dataset *d = mr_dataset_sample_from_datasets(inputs, ((double[]){first, second}), 2, .seed = test_seed());
    int64_t *found = calloc((size_t)count + 1, sizeof *found);
    CHECK(found != nullptr);
    int64_t total = numbers_of(d, nullptr, found, count);
    seen[0] = seen[1] = 0;
    for (int64_t i = 0; i < total; i++) seen[found[i]]++;
    free(found);
}

/* When the other inputs have ended, the remaining one is selected at once, however small its weight is. */
TEST(limits_of_weights_that_are_nearly_zero)
{
    static const double small[] = {1e-12, 1e-100, 1e-300, 5e-324};
    int64_t seen[2];
    for (int i = 0; i < 4; i++) {
        sample(1, small[i], (int64_t[]){50, 60}, 200, seen);
        CHECK_EQ(seen[0], 50);
        CHECK_EQ(seen[1], 60);
        sample(small[i], 1, (int64_t[]){50, 60}, 200, seen);
        CHECK_EQ(seen[0], 50);
        CHECK_EQ(seen[1], 60);
        sample(small[i], small[i], (int64_t[]){50, 60}, 200, seen);
        CHECK_EQ(seen[0] + seen[1], 110);
    }
    sample(1, 0, (int64_t[]){50, 60}, 200, seen);
    CHECK_EQ(seen[0], 50);
    CHECK_EQ(seen[1], 0);
    sample(1.5e308, 1e307, (int64_t[]){50, 60}, 200, seen);
    CHECK_EQ(seen[0] + seen[1], 110);
}

TEST(limits_of_weights_keep_the_parts)
{
    int64_t seen[2];
    sample(3, 1, (int64_t[]){1 << 20, 1 << 20}, 20000, seen);
    CHECK(seen[0] > 14500 && seen[0] < 15500);
}

static mr_status class_of(void *, const mr_element *input, int64_t *class, mr_error *)
{
    *class = mr_tensor_int64s(&input->tensors[0])[0] % 2;
    return MR_OK;
}

/* Only the class with the smallest initial probability remains. */
TEST(limits_of_resampling)
{
    static const double half[] = {0.5, 0.5}, rare[] = {1 - 5e-324, 5e-324};
    int64_t found[2048];
    mr_dataset *d =
        mr_dataset_rejection_resample(mr_dataset_range(0, 2000, 1), class_of, nullptr, half, 2, .initial_dist = rare);
    int64_t count = numbers_of(d, nullptr, found, 2048);
    CHECK_EQ(count, 1000);
    for (int64_t i = 0; i < count; i++) CHECK_EQ(found[i], 1);
}

/* All elements of an infinite input are dropped: cancel ends the iteration. */
static void *cancel_soon(void *argument)
{
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, nullptr);
    mr_iterator_cancel(argument);
    return nullptr;
}

static mr_status drop_all(void *, const mr_element *, bool *stays, mr_error *)
{
    *stays = false;
    return MR_OK;
}

static mr_dataset *endless(int which)
{
    static const double odd_only[] = {0, 1};
    mr_dataset *even = mr_dataset_repeat(mr_dataset_range(0, 100, 2), MR_INFINITE);
    switch (which) {
    case 0:
        return mr_dataset_rejection_resample(even, class_of, nullptr, odd_only, 2, .initial_dist = odd_only);
    case 1: /* all choices select an input that has ended */
        mr_dataset_free(even);
        return mr_dataset_choose_from_datasets(((mr_dataset *[]){mr_dataset_range(0, 0, 1), mr_dataset_range(0, 9, 1)}),
                                               2, mr_dataset_repeat(mr_dataset_range(0, 1, 1), MR_INFINITE));
    case 2:
        return mr_dataset_filter(even, drop_all, nullptr);
    default:
        return mr_dataset_batch(mr_dataset_unique(mr_dataset_filter(even, drop_all, nullptr)), 4);
    }
}

TEST(limits_of_what_never_stays_can_be_cancelled)
{
    for (int which = 0; which < 4; which++)
        for (int32_t threads = 1; threads <= 2; threads++) {
            mr_error error = {0};
            mr_iterator *iterator = nullptr;
            mr_element element = {0};
            pthread_t canceller;
            mr_dataset *d = endless(which);
            CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
            CHECK_EQ(pthread_create(&canceller, nullptr, cancel_soon, iterator), 0);
            CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_CANCELLED);
            pthread_join(canceller, nullptr);
            mr_iterator_free(iterator);
            mr_dataset_free(d);
        }
}

/* ---- A budget smaller than an element ---- */

static mr_status widen(void *context, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    (void)context;
    if (output->tensors[0].data == nullptr)
        MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(4096), error));
    output->count = 1;
    for (int i = 0; i < 4096; i++) ((int64_t *)output->tensors[0].data)[i] = mr_tensor_int64s(&input->tensors[0])[0];
    return MR_OK;
}

/* Elements of 32 KiB, of known or unknown shape, single, batched and padded: all are delivered with a budget of 1
 * byte. */
TEST(limits_of_the_budget_let_the_next_element_pass)
{
    static const mr_element_spec known = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{1, {4096}}}};
    static const mr_element_spec unknown = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{1, {-1}}}};
    for (int which = 0; which < 6; which++)
        for (int32_t threads = 1; threads <= 3; threads++)
            for (size_t budget_bytes = 1; budget_bytes <= 1 << 20; budget_bytes <<= 10) {
                mr_dataset *d =
                    mr_dataset_map(mr_dataset_range(0, 20, 1), widen, nullptr, which % 2 == 0 ? &known : &unknown);
                if (which / 2 == 1) d = mr_dataset_batch(d, 3);
                if (which / 2 == 2) d = mr_dataset_padded_batch(d, 3);
                d = mr_dataset_prefetch(d, 4);
                mr_error error = {0};
                mr_iterator *iterator = nullptr;
                mr_element element = {0};
                mr_iterator_options options = {
                    .size = sizeof options, .threads = threads, .budget_bytes = budget_bytes};
                CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
                int64_t rows = 0;
                mr_status status;
                while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK)
                    rows += mr_tensor_count(&element.tensors[0]) / 4096;
                if (status != MR_OUT_OF_RANGE || rows != 20)
                    test_fail(__FILE__, __LINE__, "dataset %d, %d threads, %zu bytes: %lld rows, then %s", which,
                              threads, budget_bytes, (long long)rows, error.message);
                mr_iterator_free(iterator);
                mr_dataset_free(d);
            }
}
