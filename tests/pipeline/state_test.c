/* Stages whose elements depend on earlier ones: scan, unique, unbatch, generators, and choices among datasets. The
 * expected values are those of TensorFlow 2.15. */
#include "tests/pipeline/pipelines.h"

static mr_status running_sum(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                             mr_element *output, mr_error *error)
{
    (void)context;
    int64_t sum = mr_tensor_int64s(&state->tensors[0])[0] + mr_tensor_int64s(&input->tensors[0])[0];
    MR_TRY(mr_tensor_init_int64(&next_state->tensors[0], sum, error));
    next_state->count = 1;
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], sum, error));
    output->count = 1;
    return MR_OK;
}

static mr_status add_up(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                        mr_error *error)
{
    (void)context;
    next_state->count = 1;
    return mr_tensor_init_int64(&next_state->tensors[0],
                                mr_tensor_int64s(&state->tensors[0])[0] + mr_tensor_int64s(&input->tensors[0])[0],
                                error);
}

static mr_status modulo_seven(void *context, const mr_element *input, mr_random *random, mr_element *output,
                              mr_error *error)
{
    (void)context, (void)random;
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], mr_tensor_int64s(&input->tensors[0])[0] * 5 % 7, error);
}

static mr_status parity(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = mr_tensor_int64s(&input->tensors[0])[0] % 10 < 9 ? 0 : 1;
    return MR_OK;
}

static mr_status length_of(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = mr_tensor_count(&input->tensors[0]);
    return MR_OK;
}

/* i mod 5 numbers of value i. */
static mr_status repeat_number(void *context, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error)
{
    (void)context, (void)random;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(value % 5), error));
    for (int64_t i = 0; i < value % 5; i++) mr_tensor_int64s(&output->tensors[0])[i] = value;
    output->count = 1;
    return MR_OK;
}

static const mr_element_spec int64_row = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};

/* Counts up from the iteration number. */
static mr_status counter_open(void *context, uint64_t iteration, void **state, mr_error *error)
{
    (void)context, (void)error;
    int64_t *count = malloc(sizeof *count);
    *count = (int64_t)iteration * 100;
    *state = count;
    return MR_OK;
}

static mr_status counter_next(void *context, void *state, mr_element *output, mr_error *error)
{
    int64_t *count = state;
    if (*count % 100 == *(const int64_t *)context) return mr_fail(error, MR_OUT_OF_RANGE, "end");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], (*count)++, error);
}

static void counter_close(void *context, void *state)
{
    (void)context;
    free(state);
}

static mr_dataset *counter(void)
{
    static const int64_t nine = 9;
    return mr_dataset_generator(&(mr_generator){.open = counter_open, .next = counter_next, .close = counter_close},
                                (void *)&nine, &one_int64);
}

static mr_element zero(void)
{
    mr_error error = {0};
    mr_element element = {0};
    CHECK_OK(mr_element_init(&element, 1, &error));
    CHECK_OK(mr_tensor_init_int64(&element.tensors[0], 0, &error));
    return element;
}

static mr_dataset *summed(mr_dataset *input)
{
    mr_element initial = zero();
    mr_dataset *d = mr_dataset_scan(input, &initial, running_sum, nullptr, &one_int64);
    mr_element_deinit(&initial);
    return d;
}

TEST(scan_reduce_unique_and_unbatch_equal_tensorflow)
{
    CHECK_NUMBERS(summed(mr_dataset_range(1, 6, 1)), 1, 3, 6, 10, 15);
    CHECK_NUMBERS(mr_dataset_repeat(summed(mr_dataset_range(1, 4, 1)), 2), 1, 3, 6, 1, 3, 6);
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 20, 1), modulo_seven, nullptr, &one_int64);
    CHECK_NUMBERS(mr_dataset_unique(d), 0, 5, 3, 1, 6, 4, 2);
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_unbatch(mr_dataset_batch(mr_dataset_range(0, 9, 1), 4)), 6), 0, 1, 2, 3, 4,
                  5);
    mr_element sum = zero();
    mr_error error = {0};
    d = mr_dataset_range(0, 101, 1);
    CHECK_OK(mr_dataset_reduce(d, &sum, add_up, nullptr, &error));
    CHECK_EQ(mr_tensor_int64s(&sum.tensors[0])[0], 5050);
    mr_element_deinit(&sum);
    mr_dataset_free(d);
}

TEST(generators_begin_again_for_every_pass)
{
    CHECK_NUMBERS(mr_dataset_repeat(mr_dataset_skip(counter(), 7), 2), 7, 8, 107, 108);
}

TEST(cardinality_is_asserted)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_assert_cardinality(counter(), 9);
    CHECK_EQ(mr_dataset_cardinality(d), 9);
    CHECK_NUMBERS(d, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    for (int64_t count = 8; count <= 10; count += 2) {
        d = mr_dataset_assert_cardinality(counter(), count);
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_status status;
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK) continue;
        CHECK_EQ(status, MR_FAILED_PRECONDITION);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
    d = mr_dataset_assert_cardinality(mr_dataset_range(0, 5, 1), 6);
    CHECK_EQ(mr_dataset_status(d, &error), MR_FAILED_PRECONDITION);
    mr_dataset_free(d);
}

TEST(batches_become_others)
{
    CHECK_NUMBERS(mr_dataset_rebatch(mr_dataset_batch(mr_dataset_range(0, 7, 1), 2), 3), 0, 1, 2, 3, 4, 5, 6);
    CHECK_NUMBERS(mr_dataset_rebatch(mr_dataset_batch(mr_dataset_range(0, 7, 1), 2), 3, .drop_remainder = true), 0, 1,
                  2, 3, 4, 5);
}

TEST(a_single_element_is_single)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(3, 6, 1), 5);
    CHECK_OK(mr_dataset_get_single_element(d, &element, &error));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[2], 5);
    mr_dataset_free(d);
    for (int64_t count = 0; count <= 2; count += 2) {
        d = mr_dataset_range(0, count, 1);
        CHECK_STATUS(mr_dataset_get_single_element(d, &element, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, count == 0 ? "is empty" : "has more than one");
        CHECK_EQ(element.count, 0);
        mr_dataset_free(d);
    }
    mr_element_deinit(&element);
}

TEST(datasets_are_chosen_from)
{
    mr_error error = {0};
    int64_t which[] = {0, 1, 1, 0, 2, 1, 2, 0};
    mr_tensor choices = {0};
    CHECK_OK(mr_tensor_init_copy(&choices, MR_INT64, MR_SHAPE(8), which, &error));
    mr_dataset *parts[] = {mr_dataset_range(0, 9, 1), mr_dataset_range(10, 12, 1), mr_dataset_range(20, 29, 1)};
    CHECK_NUMBERS(
        mr_dataset_choose_from_datasets(parts, 3, mr_dataset_from_slices(&choices, 1), .stop_on_empty_dataset = true),
        0, 10, 11, 1, 20);
    parts[0] = mr_dataset_range(0, 9, 1), parts[1] = mr_dataset_range(10, 12, 1),
    parts[2] = mr_dataset_range(20, 29, 1);
    CHECK_NUMBERS(mr_dataset_choose_from_datasets(parts, 3, mr_dataset_from_slices(&choices, 1)), 0, 10, 11, 1, 20, 21,
                  2);
    mr_tensor_deinit(&choices);
    /* Inputs are selected by weight until all have ended; no element is lost. */
    int64_t found[4096], count, from_first = 0;
    parts[0] = mr_dataset_range(0, 1000, 1), parts[1] = mr_dataset_range(1000, 2000, 1);
    count = numbers_of(mr_dataset_sample_from_datasets(parts, ((double[]){3, 1}), 2, .seed = 3), nullptr, found, 4096);
    CHECK_EQ(count, 2000);
    for (int i = 0; i < 800; i++) from_first += found[i] < 1000;
    CHECK(from_first > 540 && from_first < 660);
    /* Inputs of weight 0 are never selected, even if all weights are 0. */
    for (int zeros = 1; zeros <= 3; zeros++) {
        for (int i = 0; i < 3; i++) parts[i] = mr_dataset_range(0, 2, 1);
        double weights[] = {zeros < 2, 0, zeros < 3};
        CHECK_EQ(numbers_of(mr_dataset_sample_from_datasets(parts, weights, 3), nullptr, found, 4096), 6 - 2 * zeros);
    }
}

TEST(classes_are_resampled)
{
    int64_t found[4096], ones = 0;
    mr_dataset *d = mr_dataset_range(0, 10'000, 1);
    d = mr_dataset_rejection_resample(d, parity, nullptr, ((double[]){0.5, 0.5}), 2, .seed = 5);
    int64_t count = numbers_of(d, nullptr, found, 4096);
    for (int64_t i = 0; i < count; i++) ones += found[i];
    CHECK(count > 1500 && count < 2500);
    CHECK(ones * 2 > count * 9 / 10 && ones * 2 < count * 11 / 10);
}

TEST(padded_batches_are_those_of_tensorflow)
{
    mr_dataset *d = mr_dataset_map(mr_dataset_range(1, 8, 1), repeat_number, nullptr, &int64_row);
    CHECK_NUMBERS(mr_dataset_padded_batch(d, 3), 1, 0, 0, 2, 2, 0, 3, 3, 3, 4, 4, 4, 4, 0, 0, 0, 0, 6, 0, 0, 0, 7, 7);
    mr_error error = {0};
    mr_tensor minus = {0};
    CHECK_OK(mr_tensor_init_int64(&minus, -1, &error));
    d = mr_dataset_map(mr_dataset_range(1, 4, 1), repeat_number, nullptr, &int64_row);
    d = mr_dataset_padded_batch(d, 2, .padded_shapes = &MR_SHAPE(4), .padding_values = &minus, .drop_remainder = true);
    CHECK_NUMBERS(d, 1, -1, -1, -1, 2, 2, -1, -1);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    d = mr_dataset_map(mr_dataset_range(1, 4, 1), repeat_number, nullptr, &int64_row);
    d = mr_dataset_padded_batch(d, 3, .padded_shapes = &MR_SHAPE(2));
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_EQ(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "element 2 has size 3 in dimension 0, larger than the padded size 2") != nullptr);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    mr_tensor_deinit(&minus);
    d = mr_dataset_map(mr_dataset_range(1, 12, 1), repeat_number, nullptr, &int64_row);
    d = mr_dataset_bucket_by_sequence_length(d, length_of, nullptr, ((int64_t[]){2, 4}), 2, ((int64_t[]){2, 2, 1}));
    CHECK_NUMBERS(d, 2, 2, 0, 3, 3, 3, 4, 4, 4, 4, 1, 0, 7, 7, 0, 8, 8, 8, 9, 9, 9, 9, 6, 0, 11);
}

static mr_dataset *chain(int which)
{
    mr_dataset *d = mr_dataset_range(0, 40, 1),
               *jittered = mr_dataset_map(mr_dataset_ref(d), jitter, nullptr, &one_int64);
    mr_dataset *parts[] = {mr_dataset_take(mr_dataset_ref(jittered), 9), counter(), mr_dataset_ref(d)};
    mr_dataset *made = nullptr;
    switch (which) {
    case 0:
        made = summed(mr_dataset_shuffle(mr_dataset_ref(jittered)));
        break;
    case 1:
        made = mr_dataset_unique(
            mr_dataset_map(mr_dataset_repeat(mr_dataset_ref(d), 2), modulo_seven, nullptr, &one_int64));
        break;
    case 2:
        made = mr_dataset_batch(mr_dataset_unbatch(mr_dataset_batch(mr_dataset_ref(jittered), 7)), 3);
        break;
    case 3:
        made = mr_dataset_shuffle(mr_dataset_repeat(counter(), 3), .buffer_size = 8);
        break;
    case 4:
        made = mr_dataset_repeat(mr_dataset_sample_from_datasets(parts, ((double[]){1, 2, 3}), 3), 2);
        parts[0] = parts[1] = parts[2] = nullptr;
        break;
    case 5:
        made = mr_dataset_rejection_resample(mr_dataset_ref(d), parity, nullptr, ((double[]){0.2, 0.8}), 2);
        break;
    case 6:
        made = mr_dataset_map(mr_dataset_ref(d), repeat_number, nullptr, &int64_row);
        made = mr_dataset_repeat(mr_dataset_padded_batch(made, 4), 2);
        break;
    case 7:
        made = mr_dataset_map(mr_dataset_shuffle(mr_dataset_ref(d)), repeat_number, nullptr, &int64_row);
        made = mr_dataset_bucket_by_sequence_length(made, length_of, nullptr, ((int64_t[]){1, 2, 4}), 3,
                                                    ((int64_t[]){3, 2, 2, 4}));
        break;
    case 8:
        made = mr_dataset_take(mr_dataset_shuffle(mr_dataset_random(7), .buffer_size = 5), 50);
        break;
    default:
        break;
    }
    for (int i = 0; i < 3; i++) mr_dataset_free(parts[i]);
    mr_dataset_free(jittered);
    mr_dataset_free(d);
    return made;
}

constexpr int CHAINS = 9;

TEST(stages_with_state_are_the_same_at_any_number_of_threads)
{
    for (int which = 0; which < CHAINS; which++) check_threads(chain, which);
}

TEST(stages_with_state_go_on_from_every_element)
{
    for (int which = 0; which < CHAINS; which++) check_states(chain, which, 1024);
}

TEST(stages_with_state_restore_any_position)
{
    for (int which = 0; which < CHAINS; which++) check_restored(chain, which);
}
