/* Elements of filter, zip, concatenate, flat_map, interleave and similar stages, compared with TensorFlow's. */
#include "tests/pipeline/pipelines.h"

static mr_status is_even(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context, (void)error;
    *stays = mr_tensor_int64s(&input->tensors[0])[0] % 2 == 0;
    return MR_OK;
}

static mr_status is_small(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)error;
    *stays = mr_tensor_int64s(&input->tensors[0])[0] < *(const int64_t *)context;
    return MR_OK;
}

static mr_status fail_at_three(void *context, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error)
{
    (void)context, (void)random;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    if (value % 5 == 3) return mr_fail(error, MR_DATA_LOSS, "three");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], value, error);
}

static mr_status add_ten(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)random;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], 10 * *(const int64_t *)context + value, error);
}

static void free_number(void *context)
{
    free(context);
}

/* lengths[i] elements: 10 i, 10 i + 1, … */
static mr_status tens(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    static const int64_t lengths[] = {3, 1, 4, 2, 5, 0, 2};
    (void)context, (void)error;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    int64_t *ten = malloc(sizeof *ten);
    *ten = value;
    *output = mr_dataset_map(mr_dataset_range(0, lengths[value], 1), add_ten, ten, &one_int64, .release = free_number);
    return MR_OK;
}

static mr_dataset *interleaved(int64_t cycle, int64_t block, bool parallel)
{
    return mr_dataset_interleave(mr_dataset_range(0, 7, 1), tens, nullptr, &one_int64, .cycle_length = cycle,
                                 .block_length = block, .parallel = parallel);
}

TEST(interleave_has_the_order_of_tensorflow)
{
    for (int parallel = 0; parallel < 2; parallel++) {
        CHECK_NUMBERS(interleaved(2, 1, parallel), 0, 10, 1, 2, 20, 21, 30, 22, 31, 23, 40, 41, 60, 42, 61, 43, 44);
        CHECK_NUMBERS(interleaved(2, 2, parallel), 0, 1, 10, 2, 20, 21, 30, 31, 22, 23, 40, 41, 42, 43, 60, 61, 44);
        CHECK_NUMBERS(interleaved(3, 2, parallel), 0, 1, 10, 20, 21, 2, 30, 31, 22, 23, 40, 41, 42, 43, 60, 61, 44);
    }
    CHECK_NUMBERS(mr_dataset_flat_map(mr_dataset_range(0, 4, 1), tens, nullptr, &one_int64), 0, 1, 2, 10, 20, 21, 22,
                  23, 30, 31);
}

TEST(filter_drops_elements_and_batches_the_rest)
{
    CHECK_NUMBERS(mr_dataset_filter(mr_dataset_range(0, 9, 1), is_even, nullptr), 0, 2, 4, 6, 8);
    mr_dataset *d = mr_dataset_batch(mr_dataset_filter(mr_dataset_range(0, 9, 1), is_even, nullptr), 2);
    CHECK_EQ(mr_dataset_cardinality(d), MR_CARDINALITY_UNKNOWN);
    CHECK_NUMBERS(d, 0, 2, 4, 6, 8);
    d = mr_dataset_repeat(mr_dataset_take(mr_dataset_filter(mr_dataset_range(0, 9, 1), is_even, nullptr), 2), 2);
    CHECK_NUMBERS(d, 0, 2, 0, 2);
    static const int64_t five = 5;
    CHECK_NUMBERS(mr_dataset_take_while(mr_dataset_range(3, 100, 1), is_small, (void *)&five), 3, 4);
}

TEST(ignored_errors_are_limited_by_the_budget)
{
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 11, 1), fail_at_three, nullptr, &one_int64);
    CHECK_NUMBERS(mr_dataset_ignore_errors(d), 0, 1, 2, 4, 5, 6, 7, 9, 10);
    d = mr_dataset_map(mr_dataset_range(0, 11, 1), fail_at_three, nullptr, &one_int64);
    CHECK_NUMBERS(mr_dataset_ignore_errors(mr_dataset_batch(d, 2)), 0, 1, 4, 5, 6, 7, 10);
    mr_error error = {0};
    d = mr_dataset_map(mr_dataset_range(0, 11, 1), fail_at_three, nullptr, &one_int64);
    d = mr_dataset_ignore_errors(d, .errors_max = 1);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    mr_dataset_free(d);
    mr_element element = {0};
    for (int i = 0; i < 7; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_EQ(mr_iterator_next(iterator, &element, &error), MR_DATA_LOSS);
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 9);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

TEST(zip_concatenate_and_enumerate_put_datasets_together)
{
    mr_dataset *both[] = {mr_dataset_filter(mr_dataset_range(0, 9, 1), is_even, nullptr), mr_dataset_range(10, 13, 1)};
    mr_dataset *d = mr_dataset_zip(both, 2);
    CHECK_EQ(mr_dataset_spec(d)->count, 2);
    CHECK_NUMBERS(d, 0, 2, 4);
    d = mr_dataset_concatenate(mr_dataset_range(0, 3, 1), mr_dataset_range(7, 9, 1));
    CHECK_EQ(mr_dataset_cardinality(d), 5);
    CHECK_NUMBERS(d, 0, 1, 2, 7, 8);
    CHECK_NUMBERS(mr_dataset_enumerate(mr_dataset_range(7, 10, 1), 4), 4, 5, 6);
    d = mr_dataset_concatenate(mr_dataset_range(0, 3, 1), mr_dataset_enumerate(mr_dataset_range(0, 3, 1), 0));
    mr_error error = {0};
    CHECK_EQ(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "concatenate: the datasets have different structures: 1 and 2 components");
    mr_dataset_free(d);
}

/* The error of the second element is returned once, at its position, and later elements follow. */
TEST(an_element_that_fails_below_a_stream_fails_alone)
{
    mr_dataset *d = mr_dataset_map(mr_dataset_range(2, 6, 1), fail_at_three, nullptr, &one_int64);
    d = mr_dataset_prefetch(mr_dataset_enumerate(mr_dataset_take_while(d, is_small, &(int64_t){100}), 0), 4);
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    mr_dataset_free(d);
    mr_element element = {0};
    static const mr_status expected[] = {MR_OK, MR_DATA_LOSS, MR_OK, MR_OK, MR_OUT_OF_RANGE};
    for (int i = 0; i < 5; i++) CHECK_EQ(mr_iterator_next(iterator, &element, &error), expected[i]);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

/* ---- Windows and groups ---- */

static mr_status as_it_is(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = window;
    return MR_OK;
}

static mr_status shuffled(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_shuffle(window);
    return MR_OK;
}

static mr_status modulo_three(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = mr_tensor_int64s(&input->tensors[0])[0] % 3;
    return MR_OK;
}

static mr_status batched(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)key, (void)error;
    *output = mr_dataset_batch(window, 3);
    return MR_OK;
}

static int64_t size_of_key(void *context, int64_t key)
{
    (void)context;
    return key + 2;
}

static const mr_element_spec int64_row = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};

TEST(windows_are_those_of_tensorflow)
{
    CHECK_NUMBERS(
        mr_dataset_window(mr_dataset_range(0, 7, 1), as_it_is, nullptr, &one_int64, .window_size = 3, .shift = 2), 0, 1,
        2, 2, 3, 4, 4, 5, 6, 6);
    CHECK_NUMBERS(mr_dataset_window(mr_dataset_range(0, 7, 1), nullptr, nullptr, nullptr, .window_size = 3, .shift = 1,
                                    .stride = 2, .drop_remainder = true),
                  0, 2, 4, 1, 3, 5, 2, 4, 6);
    CHECK_NUMBERS(
        mr_dataset_window(mr_dataset_range(0, 11, 1), nullptr, nullptr, nullptr, .window_size = 2, .shift = 5), 0, 1, 5,
        6, 10);
    mr_dataset *d = mr_dataset_window(mr_dataset_range(0, 7, 1), nullptr, nullptr, nullptr, .window_size = 0);
    CHECK_EQ(mr_dataset_status(d, nullptr), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
}

TEST(groups_are_those_of_tensorflow)
{
    CHECK_NUMBERS(mr_dataset_group_by_window(mr_dataset_range(0, 11, 1), modulo_three, batched, nullptr, &int64_row,
                                             .window_size = 3),
                  0, 3, 6, 1, 4, 7, 2, 5, 8, 9, 10);
    CHECK_NUMBERS(mr_dataset_group_by_window(mr_dataset_range(0, 11, 1), modulo_three, batched, nullptr, &int64_row,
                                             .window_size_func = size_of_key),
                  0, 3, 1, 4, 7, 6, 9, 10, 2, 5, 8);
}

static mr_status hundreds(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    mr_dataset *d = mr_dataset_range(100 * value, 100 * value + 9, 1);
    *output = mr_dataset_map(mr_dataset_shuffle(d, .buffer_size = 4), jitter, nullptr, &one_int64);
    return MR_OK;
}

static mr_dataset *evens(mr_dataset *input)
{
    return mr_dataset_filter(mr_dataset_map(input, jitter, nullptr, &one_int64), is_even, nullptr);
}

static const int64_t thirty = 30;

static mr_dataset *stream(int which)
{
    mr_dataset *d = mr_dataset_range(0, 40, 1);
    switch (which) {
    case 0:
        return evens(d);
    case 1:
        return mr_dataset_batch(evens(d), 4);
    case 2:
        return mr_dataset_shuffle(mr_dataset_repeat(evens(d), 3), .buffer_size = 7);
    case 3:
        return mr_dataset_prefetch(mr_dataset_batch(mr_dataset_shuffle(evens(d), .buffer_size = 60), 3), 2);
    case 4:
        return mr_dataset_repeat(mr_dataset_skip(mr_dataset_take(evens(mr_dataset_shuffle(d)), 12), 3), 3);
    case 5:
        return mr_dataset_interleave(mr_dataset_take(d, 7), hundreds, nullptr, &one_int64, .cycle_length = 3,
                                     .block_length = 2);
    case 6:
        d = mr_dataset_interleave(evens(mr_dataset_take(d, 9)), hundreds, nullptr, &one_int64, .cycle_length = 2,
                                  .parallel = true);
        return mr_dataset_prefetch(mr_dataset_batch(evens(mr_dataset_shuffle(d, .buffer_size = 11)), 2), 3);
    case 7:
        return mr_dataset_concatenate(mr_dataset_shuffle(mr_dataset_take(d, 9)), evens(mr_dataset_range(0, 30, 1)));
    case 8: {
        mr_dataset *parts[] = {evens(d), mr_dataset_repeat(mr_dataset_range(0, 7, 1), MR_INFINITE)};
        return mr_dataset_repeat(mr_dataset_enumerate(mr_dataset_zip(parts, 2), 0), 2);
    }
    case 9:
        d = mr_dataset_map(mr_dataset_repeat(d, 2), fail_at_three, nullptr, &one_int64);
        return mr_dataset_shuffle(mr_dataset_ignore_errors(d), .buffer_size = 9);
    case 10:
        d = mr_dataset_map(mr_dataset_repeat(d, 2), fail_at_three, nullptr, &one_int64);
        return mr_dataset_shuffle(mr_dataset_take_while(d, is_small, (void *)&thirty), .buffer_size = 9);
    case 11:
        return mr_dataset_flat_map(mr_dataset_take(d, 4), hundreds, nullptr, &one_int64);
    case 12:
        d = mr_dataset_concatenate(mr_dataset_take(d, 9), mr_dataset_range(50, 60, 1));
        return mr_dataset_batch(mr_dataset_shuffle(d), 4);
    case 13:
        d = mr_dataset_window(evens(d), shuffled, nullptr, &one_int64, .window_size = 4, .shift = 3);
        return mr_dataset_batch(mr_dataset_repeat(d, 2), 3);
    case 14:
        return mr_dataset_window(mr_dataset_shuffle(evens(d), .buffer_size = 6), nullptr, nullptr, nullptr,
                                 .window_size = 2, .shift = 3, .stride = 2);
    case 15:
        d = mr_dataset_map(mr_dataset_repeat(d, 2), fail_at_three, nullptr, &one_int64);
        return mr_dataset_group_by_window(mr_dataset_shuffle(d, .buffer_size = 6), modulo_three, batched, nullptr,
                                          &int64_row, .window_size_func = size_of_key);
    case 16:
        d = mr_dataset_group_by_window(evens(d), modulo_three, batched, nullptr, &int64_row, .window_size = 5);
        return mr_dataset_prefetch(mr_dataset_shuffle(mr_dataset_repeat(d, 2), .buffer_size = 4), 2);
    default:
        mr_dataset_free(d);
        return nullptr;
    }
}

constexpr int STREAMS = 17;

TEST(streams_are_the_same_at_any_number_of_threads)
{
    for (int which = 0; which < STREAMS; which++) check_threads(stream, which);
}

TEST(streams_go_on_from_every_element)
{
    for (int which = 0; which < STREAMS; which++) check_states(stream, which, 1024);
}

TEST(streams_restore_any_position)
{
    for (int which = 0; which < STREAMS; which++) check_restored(stream, which);
}

/* ---- Errors ---- */

static mr_status refuse(const mr_element *input, mr_error *error)
{
    if (input->count > 0 && mr_tensor_int64s(&input->tensors[0])[0] != 2) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "no two");
}

static mr_status refuse_predicate(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context;
    *stays = true;
    return refuse(input, error);
}

static mr_status refuse_key(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context;
    *key = 0;
    return refuse(input, error);
}

static mr_status refuse_dataset(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context;
    *output = mr_dataset_range(0, 1, 1);
    return refuse(input, error);
}

static mr_status make_bad_dataset(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_range(0, 1, mr_tensor_int64s(&input->tensors[0])[0] != 2);
    return MR_OK;
}

static mr_status refuse_scan(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                             mr_element *output, mr_error *error)
{
    (void)context, (void)state, (void)next_state;
    output->count = 1;
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    return refuse(input, error);
}

static mr_status refuse_window(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context;
    *output = window;
    return ++*(int *)context == 3 ? mr_fail(error, MR_DATA_LOSS, "no two") : MR_OK;
}

static mr_status refuse_group(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)key;
    return refuse_window(context, window, output, error);
}

static mr_status generate_two(void *context, void *state, mr_element *output, mr_error *error)
{
    (void)state;
    if (++*(int *)context == 3) return mr_fail(error, MR_DATA_LOSS, "no two");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], 0, error);
}

/* The first error of the dataset. */
static const char *error_of(mr_dataset *dataset)
{
    static mr_error error;
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status = MR_OK;
    error = (mr_error){0};
    CHECK_OK(mr_iterator_new(dataset, nullptr, &iterator, &error));
    while (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
    CHECK(status != MR_OUT_OF_RANGE);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return error.message;
}

TEST(stream_errors_name_the_stage_and_the_element)
{
    mr_dataset *(*from)(int64_t, int64_t, int64_t) = mr_dataset_range;
    const mr_element_spec *one = &one_int64;
    int calls[4] = {0};
    CHECK_STR(error_of(mr_dataset_take_while(from(0, 9, 1), refuse_predicate, nullptr)),
              "take_while: element 2: no two");
    CHECK_STR(error_of(mr_dataset_flat_map(from(0, 9, 1), refuse_dataset, nullptr, one)),
              "flat_map: element 2: no two");
    CHECK_STR(error_of(mr_dataset_interleave(from(0, 9, 1), make_bad_dataset, nullptr, one)),
              "interleave: element 2: range: step is 0");
    CHECK_STR(error_of(mr_dataset_scan(from(0, 9, 1), &(mr_element){0}, refuse_scan, nullptr, one)),
              "scan: element 2: no two");
    CHECK_STR(
        error_of(mr_dataset_group_by_window(from(0, 9, 1), refuse_key, refuse_group, &calls[3], one, .window_size = 5)),
        "group_by_window: element 2: no two");
    CHECK_STR(
        error_of(mr_dataset_group_by_window(from(3, 9, 1), refuse_key, refuse_group, &calls[0], one, .window_size = 1)),
        "group_by_window: window 3: no two");
    CHECK_STR(error_of(mr_dataset_window(from(0, 9, 1), refuse_window, &calls[1], one, .window_size = 1)),
              "window: window 2: no two");
    mr_dataset *numbered = mr_dataset_enumerate(mr_dataset_range(1, 9, 1), 0);
    CHECK_STR(error_of(mr_dataset_map(numbered, fail_at_three, nullptr, one)), "map: element 3: three");
    double target[] = {1};
    CHECK_STR(error_of(mr_dataset_rejection_resample(from(0, 9, 1), refuse_key, nullptr, target, 1)),
              "rejection_resample: element 2: no two");
    CHECK_STR(error_of(mr_dataset_generator(&(mr_generator){.next = generate_two}, &calls[2], one)),
              "generator: element 2: no two");
}
