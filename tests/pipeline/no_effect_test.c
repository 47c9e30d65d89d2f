/* Options that have no effect, and counts at their limits. */
#include "base/random.h"
#include "tests/pipeline/pipelines.h"
#include <millrace/queue.h>

static const mr_element_spec one = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{0}}};

static mr_dataset *numbers(void)
{
    return mr_dataset_range(0, 10, 1);
}
static mr_status keep(void *, const mr_element *, bool *stays, mr_error *)
{
    *stays = true;
    return MR_OK;
}
static mr_status key(void *, const mr_element *, int64_t *class, mr_error *)
{
    *class = 0;
    return MR_OK;
}
static int64_t two(void *, int64_t)
{
    return 2;
}
static mr_status add(void *, const mr_element *, const mr_element *, mr_element *, mr_element *, mr_error *)
{
    return MR_OK;
}
static mr_status open_dataset(void *, const mr_element *, mr_dataset **output, mr_error *)
{
    *output = numbers();
    return MR_OK;
}
static mr_status pass_group(void *, int64_t, mr_dataset *window, mr_dataset **output, mr_error *)
{
    *output = window;
    return MR_OK;
}
static void watch(void *, uint64_t, const mr_thread_work *, int32_t)
{
}

static void check_refused(mr_dataset *d, const char *reason)
{
    mr_error error = {0};
    CHECK_EQ(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, reason);
    mr_dataset_free(d);
}

TEST(no_effect_of_a_dataset_option)
{
    static const int64_t boundaries[1] = {2}, sizes[2] = {1, 1};
    static const mr_shape any = {1, {-1}};
    int context = 0;
    check_refused(mr_dataset_take_while(numbers(), keep, nullptr, .num_parallel_calls = 2),
                  "take_while: num_parallel_calls has no effect");
    check_refused(mr_dataset_scan(numbers(), &(mr_element){0}, add, nullptr, &one, .num_parallel_calls = 2),
                  "scan: num_parallel_calls has no effect");
    check_refused(mr_dataset_flat_map(numbers(), open_dataset, nullptr, &one, .num_parallel_calls = 2),
                  "flat_map: num_parallel_calls has no effect");
    check_refused(mr_dataset_ignore_errors(numbers(), .context = &context), "ignore_errors: context has no effect");
    check_refused(mr_dataset_group_by_window(numbers(), key, pass_group, nullptr, &one, .window_size = 3,
                                             .window_size_func = two),
                  "group_by_window: window_size has no effect");
    check_refused(mr_dataset_choose_from_datasets(&(mr_dataset *){numbers()}, 1, numbers(), .seed = 1),
                  "choose_from: seed has no effect");
    for (int i = 0; i < 2; i++) {
        mr_dataset *vectors = mr_dataset_batch(numbers(), 3);
        mr_bucket_options options = {.size = sizeof options,
                                     .no_padding = true,
                                     .pad_to_bucket_boundary = i == 0,
                                     .padded_shapes = i == 1 ? &any : nullptr};
        check_refused(mr_dataset_bucket_by_sequence_length_(vectors, key, nullptr, boundaries, 1, sizes, &options),
                      i == 0 ? "pad_to_bucket_boundary has no effect: there is no padding"
                             : "padded_shapes has no effect: there is no padding");
    }
}

static void check_iterator(mr_iterator_options options, const char *reason)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_dataset *d = numbers();
    CHECK_EQ(mr_iterator_new(d, &options, &iterator, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, reason);
    CHECK(iterator == nullptr);
    mr_dataset_free(d);
}

TEST(no_effect_of_an_iterator_option)
{
    int context = 0;
    check_iterator((mr_iterator_options){.threads = 2, .threads_first = 1}, "threads_first has no effect");
    check_iterator((mr_iterator_options){.tune = MR_TUNE_OFF, .threads_first = 1}, "threads_first has no effect");
    check_iterator((mr_iterator_options){.allocate_context = &context}, "allocate_context has no effect");
    check_iterator((mr_iterator_options){.watchdog = watch}, "watchdog has no effect");
    check_iterator((mr_iterator_options){.watchdog_ns = 1000}, "watchdog is null");
}

TEST(no_effect_of_a_queue_option)
{
    mr_error error = {0};
    mr_queue *queue = nullptr;
    mr_coordinator *coordinator = nullptr;
    mr_queue_options options = {
        .size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}, .seed = 1};
    CHECK_EQ(mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "seed has no effect");
    options = (mr_queue_options){
        .size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}, .min_after_dequeue = 1};
    CHECK_EQ(mr_queue_new(MR_QUEUE_PRIORITY, &options, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "min_after_dequeue has no effect");
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_EQ(mr_range_input_producer(4, MR_OPTIONS(mr_input_producer_options, .no_shuffle = true, .seed = 1),
                                     coordinator, &queue, &error),
             MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "seed has no effect");
    mr_coordinator_free(coordinator);
}

TEST(no_effect_of_a_reader_option)
{
    mr_error error = {0};
    mr_reader *reader = nullptr;
    mr_reader_options lines = {.size = sizeof lines, .skip_header_lines = 1},
                      lengths = {.size = sizeof lengths, .record_bytes = 4};
    CHECK_EQ(mr_reader_new(MR_READER_TF_RECORD, &lines, &reader, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "skip_header_lines has no effect");
    CHECK_EQ(mr_reader_new(MR_READER_TEXT_LINE, &lengths, &reader, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "have no effect");
}

/* ---- Limits, as in TensorFlow 2.15.1 ---- */

static int64_t count_elements(mr_dataset *d, int64_t most)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    int64_t count = 0;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    while (count < most && mr_iterator_next(iterator, &element, &error) == MR_OK) count++;
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return count;
}

TEST(negative_counts_are_without_limit)
{
    static const int64_t counts[] = {-1, -2, -7, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        mr_dataset *all = mr_dataset_take(numbers(), counts[i]), *none = mr_dataset_skip(numbers(), counts[i]);
        mr_dataset *endless = mr_dataset_repeat(numbers(), counts[i]);
        CHECK_EQ(mr_dataset_cardinality(all), 10);
        CHECK_EQ(mr_dataset_cardinality(none), 0);
        CHECK_EQ(mr_dataset_cardinality(endless), MR_INFINITE);
        CHECK_EQ(count_elements(all, 100), 10);
        CHECK_EQ(count_elements(none, 100), 0);
        CHECK_EQ(count_elements(endless, 100), 100);
        mr_dataset *unknown = mr_dataset_filter(numbers(), keep, nullptr);
        mr_dataset *checked = mr_dataset_assert_cardinality(mr_dataset_ref(unknown), counts[i]);
        if (counts[i] == MR_INFINITE)
            CHECK_EQ(mr_dataset_status(checked, nullptr), MR_OK);
        else
            check_refused(mr_dataset_ref(checked), "assert_cardinality: invalid count -");
        mr_dataset_free(checked);
        mr_dataset_free(unknown);
    }
}

TEST(negative_capacities_are_unbounded)
{
    static const mr_queue_kind kinds[] = {MR_QUEUE_FIFO, MR_QUEUE_RANDOM_SHUFFLE, MR_QUEUE_PADDING_FIFO,
                                          MR_QUEUE_PRIORITY};
    static const int64_t capacities[] = {-1, -5, INT64_MIN};
    mr_error error = {0};
    for (int k = 0; k < 4; k++)
        for (int c = 0; c < 3; c++) {
            mr_queue *queue = nullptr;
            mr_tensor value = {0};
            mr_queue_options options = {
                .size = sizeof options, .capacity = capacities[c], .component_count = 1, .dtypes = {MR_INT64}};
            CHECK_OK(mr_queue_new(kinds[k], &options, &queue, &error));
            CHECK_OK(mr_tensor_init(&value, MR_INT64, MR_SCALAR, &error));
            mr_tensor_int64s(&value)[0] = 1;
            for (int i = 0; i < 100; i++) CHECK_OK(mr_queue_enqueue(queue, &value, &error));
            CHECK_EQ(mr_queue_size(queue), 100);
            mr_tensor_deinit(&value);
            mr_queue_unref(queue);
        }
    mr_queue *queue = nullptr;
    mr_queue_options full = {.size = sizeof full, .capacity = 0, .component_count = 1, .dtypes = {MR_INT64}};
    CHECK_EQ(mr_queue_new(MR_QUEUE_RANDOM_SHUFFLE, &full, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &full, &queue, &error));
    mr_queue_unref(queue);
}

TEST(queue_shapes_that_are_too_large)
{
    mr_error error = {0};
    mr_queue *queue = nullptr;
    for (int k = MR_QUEUE_FIFO; k <= MR_QUEUE_PADDING_FIFO; k++) {
        mr_queue_options options = {.size = sizeof options,
                                    .capacity = 4,
                                    .component_count = 1,
                                    .dtypes = {MR_FLOAT},
                                    .shapes = {MR_SHAPE((int64_t)1 << 62, 2)}};
        CHECK_EQ(mr_queue_new((mr_queue_kind)k, &options, &queue, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "[4611686018427387904,2], which is too large");
    }
    mr_queue_options options = {
        .size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_FLOAT}, .shapes = {MR_SHAPE(-1, 2)}};
    CHECK_EQ(mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "an unknown dimension");
}

TEST(empty_paths_are_refused_by_the_builder)
{
    check_refused(mr_dataset_cache(numbers(), ""), "cache: path is an empty string");
    check_refused(mr_dataset_snapshot(numbers(), ""), "snapshot: directory is an empty string");
}

/* The limit may be computed by the user. */
TEST(random_numbers_below_nothing)
{
    mr_random random = mr_random_at(1, 2, 3, 4);
    CHECK_EQ(mr_random_below(&random, 0), 0);
    CHECK_EQ(mr_random_below(&random, 1), 0);
}
