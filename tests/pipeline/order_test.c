/* Elements and their order, by TensorFlow's rules. */
#include "tests/pipeline/pipelines.h"

static bool is_permutation(const int64_t *numbers, int64_t count)
{
    bool seen[1024] = {0};
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= count || seen[numbers[i]]) return false;
        seen[numbers[i]] = true;
    }
    return true;
}

TEST(pipeline_range)
{
    CHECK_NUMBERS(mr_dataset_range(0, 5, 1), 0, 1, 2, 3, 4);
    CHECK_NUMBERS(mr_dataset_range(5, 0, -2), 5, 3, 1);
    CHECK_NUMBERS(mr_dataset_range(INT64_MIN, INT64_MAX, INT64_MAX), INT64_MIN, -1, INT64_MAX - 1);
    int64_t none[1];
    CHECK_EQ(numbers_of(mr_dataset_range(3, 3, 1), nullptr, none, 1), 0);
    CHECK_EQ(numbers_of(mr_dataset_range(3, 5, -1), nullptr, none, 1), 0);
    mr_error error = {0};
    mr_dataset *bad = mr_dataset_batch(mr_dataset_range(0, 3, 0), 2);
    CHECK_STATUS(mr_dataset_status(bad, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "step is 0");
    mr_iterator *iterator = nullptr;
    CHECK_STATUS(mr_iterator_new(bad, nullptr, &iterator, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(bad);
}

TEST(pipeline_parts)
{
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_range(0, 9, 1), 3), 0, 1, 2);
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_range(0, 3, 1), -1), 0, 1, 2);
    CHECK_NUMBERS(mr_dataset_skip(mr_dataset_range(0, 5, 1), 3), 3, 4);
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_skip(mr_dataset_range(0, 9, 1), 2), 3), 2, 3, 4);
    CHECK_NUMBERS(mr_dataset_shard(mr_dataset_range(0, 10, 1), 3, 1), 1, 4, 7);
    CHECK_NUMBERS(mr_dataset_shard(mr_dataset_range(0, 10, 1), 3, 0), 0, 3, 6, 9);
    CHECK_NUMBERS(mr_dataset_repeat(mr_dataset_range(0, 3, 1), 2), 0, 1, 2, 0, 1, 2);
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_repeat(mr_dataset_range(0, 3, 1), MR_INFINITE), 7), 0, 1, 2, 0, 1, 2, 0);
    CHECK_NUMBERS(mr_dataset_shard(mr_dataset_repeat(mr_dataset_range(0, 4, 1), 2), 3, 2), 2, 1);
    CHECK_NUMBERS(mr_dataset_repeat(mr_dataset_take(mr_dataset_repeat(mr_dataset_range(0, 3, 1), MR_INFINITE), 4), 2),
                  0, 1, 2, 0, 0, 1, 2, 0);
    int64_t none[1];
    CHECK_EQ(numbers_of(mr_dataset_skip(mr_dataset_range(0, 3, 1), -1), nullptr, none, 1), 0);
    CHECK_EQ(numbers_of(mr_dataset_skip(mr_dataset_range(0, 3, 1), 7), nullptr, none, 1), 0);
    CHECK_EQ(numbers_of(mr_dataset_repeat(mr_dataset_range(0, 3, 1), 0), nullptr, none, 1), 0);
    CHECK_EQ(numbers_of(mr_dataset_shard(mr_dataset_range(0, 2, 1), 4, 3), nullptr, none, 1), 0);
}

TEST(pipeline_repeat_of_nothing_ends)
{
    int64_t none[1];
    CHECK_EQ(numbers_of(mr_dataset_repeat(mr_dataset_range(0, 0, 1), MR_INFINITE), nullptr, none, 1), 0);
    mr_dataset *d =
        mr_dataset_repeat(mr_dataset_batch(mr_dataset_range(0, 3, 1), 4, .drop_remainder = true), MR_INFINITE);
    CHECK_EQ(mr_dataset_cardinality(d), 0);
    CHECK_EQ(numbers_of(d, nullptr, none, 1), 0);
}

TEST(pipeline_batch)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 7, 1), 3);
    CHECK_EQ(mr_dataset_cardinality(d), 3);
    CHECK_EQ(mr_dataset_spec(d)->shapes[0].dims[0], -1);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    const int64_t sizes[] = {3, 3, 1};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(sizes[i])));
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    CHECK_EQ(element.count, 0);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    d = mr_dataset_batch(mr_dataset_range(0, 7, 1), 3, .drop_remainder = true);
    CHECK_EQ(mr_dataset_cardinality(d), 2);
    CHECK_EQ(mr_dataset_spec(d)->shapes[0].dims[0], 3);
    CHECK_NUMBERS(d, 0, 1, 2, 3, 4, 5);
    /* Stages after batch count batches. */
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_batch(mr_dataset_range(0, 7, 1), 2), 2), 0, 1, 2, 3);
    CHECK_NUMBERS(mr_dataset_skip(mr_dataset_batch(mr_dataset_range(0, 7, 1), 2), 2), 4, 5, 6);
    CHECK_NUMBERS(mr_dataset_shard(mr_dataset_batch(mr_dataset_range(0, 7, 1), 2), 2, 1), 2, 3, 6);
    CHECK_NUMBERS(mr_dataset_repeat(mr_dataset_batch(mr_dataset_range(0, 3, 1), 2), 2), 0, 1, 2, 0, 1, 2);
    /* A batch may span epochs when repeat is before it. */
    CHECK_NUMBERS(mr_dataset_take(mr_dataset_batch(mr_dataset_repeat(mr_dataset_range(0, 3, 1), 2), 2), 2), 0, 1, 2, 0);
}

TEST(pipeline_batch_of_batches)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_batch(mr_dataset_batch(mr_dataset_range(0, 12, 1), 2), 3);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(3, 2)));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[5], 5);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    /* Elements of different shapes cannot be batched. */
    d = mr_dataset_batch(mr_dataset_batch(mr_dataset_range(0, 5, 1), 2), 3);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "shapes in a batch must be equal");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_shuffle_before_repeat_keeps_epochs_apart)
{
    const int64_t buffers[] = {0, 1, 7, 40, 100, 1000};
    for (int b = 0; b < 6; b++) {
        mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 100, 1), .buffer_size = buffers[b], .seed = 3);
        int64_t numbers[300];
        CHECK_EQ(numbers_of(mr_dataset_repeat(d, 3), nullptr, numbers, 300), 300);
        for (int e = 0; e < 3; e++) CHECK(is_permutation(numbers + 100 * e, 100));
        bool is_same = memcmp(numbers, numbers + 100, 100 * sizeof(int64_t)) == 0;
        CHECK_EQ(is_same, buffers[b] == 1);
        /* With a buffer of B, the element at position p is one of the first p + B. */
        for (int64_t i = 0; i < 300 && buffers[b] > 0; i++) CHECK(numbers[i] < i % 100 + buffers[b]);
    }
}

TEST(pipeline_shuffle_of_every_iteration)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 50, 1), .seed = 3, .reshuffle_each_iteration = false);
    int64_t numbers[100];
    CHECK_EQ(numbers_of(mr_dataset_repeat(d, 2), nullptr, numbers, 100), 100);
    CHECK(is_permutation(numbers, 50));
    CHECK(memcmp(numbers, numbers + 50, 50 * sizeof(int64_t)) == 0);
}

TEST(pipeline_shuffle_after_repeat_mixes_epochs)
{
    mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 10, 1), 10);
    int64_t numbers[100];
    CHECK_EQ(numbers_of(mr_dataset_shuffle(d, .seed = 5), nullptr, numbers, 100), 100);
    CHECK(!is_permutation(numbers, 10));
    int counts[10] = {0};
    for (int i = 0; i < 100; i++) counts[numbers[i]]++;
    for (int i = 0; i < 10; i++) CHECK_EQ(counts[i], 10);
    /* Shuffling infinite data requires a buffer size. */
    mr_error error = {0};
    d = mr_dataset_shuffle(mr_dataset_repeat(mr_dataset_range(0, 10, 1), MR_INFINITE));
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
    d = mr_dataset_shuffle(mr_dataset_repeat(mr_dataset_range(0, 10, 1), MR_INFINITE), .buffer_size = 30);
    CHECK_EQ(numbers_of(d, nullptr, numbers, 100), 100);
    CHECK(!is_permutation(numbers, 10));
}

TEST(pipeline_shuffle_of_batches)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_batch(mr_dataset_range(0, 40, 1), 4), .seed = 9);
    int64_t numbers[80];
    CHECK_EQ(numbers_of(mr_dataset_repeat(d, 2), nullptr, numbers, 80), 80);
    CHECK(is_permutation(numbers, 40));
    CHECK(is_permutation(numbers + 40, 40));
    for (int b = 0; b < 20; b++)
        for (int i = 0; i < 4; i++) CHECK_EQ(numbers[4 * b + i], numbers[4 * b] + i);
}

TEST(pipeline_seeds_differ)
{
    int64_t a[64], b[64], c[64], d[64];
    numbers_of(mr_dataset_shuffle(mr_dataset_range(0, 64, 1), .seed = 1), nullptr, a, 64);
    numbers_of(mr_dataset_shuffle(mr_dataset_range(0, 64, 1), .seed = 1), nullptr, b, 64);
    numbers_of(mr_dataset_shuffle(mr_dataset_range(0, 64, 1), .seed = 2), nullptr, c, 64);
    numbers_of(mr_dataset_shuffle(mr_dataset_range(0, 64, 1), .seed = 1), MR_OPTIONS(mr_iterator_options, .seed = 5), d,
               64);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK(memcmp(a, c, sizeof a) != 0);
    CHECK(memcmp(a, d, sizeof a) != 0);
}

TEST(pipeline_cardinality)
{
    struct {
        mr_dataset *dataset;
        int64_t count;
    } cases[] = {
        {mr_dataset_repeat(mr_dataset_range(0, 10, 3), 5), 20},
        {mr_dataset_repeat(mr_dataset_range(0, 10, 3), MR_INFINITE), MR_INFINITE},
        {mr_dataset_take(mr_dataset_repeat(mr_dataset_range(0, 10, 3), MR_INFINITE), 9), 9},
        {mr_dataset_skip(mr_dataset_repeat(mr_dataset_range(0, 10, 3), MR_INFINITE), 9), MR_INFINITE},
        {mr_dataset_shard(mr_dataset_range(0, 10, 1), 4, 1), 3},
        {mr_dataset_prefetch(mr_dataset_batch(mr_dataset_range(0, 10, 1), 4), 2), 3},
        {mr_dataset_repeat(mr_dataset_range(0, 0, 1), MR_INFINITE), 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(mr_dataset_cardinality(cases[i].dataset), cases[i].count);
        mr_dataset_free(cases[i].dataset);
    }
}

TEST(pipeline_slices_and_tensors)
{
    mr_error error = {0};
    mr_tensor components[2] = {0};
    CHECK_OK(mr_tensor_init(&components[0], MR_FLOAT, MR_SHAPE(4, 2), &error));
    for (int i = 0; i < 8; i++) mr_tensor_floats(&components[0])[i] = (float)i;
    mr_string words[] = {MR_STR("zero"), MR_STR(""), MR_STR("two"), MR_STR("three")};
    CHECK_OK(mr_tensor_init_strings(&components[1], MR_SHAPE(4), words, &error));
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_from_slices(components, 2), .seed = 1);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 3), 1);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    int rows = 0;
    while (mr_iterator_next(iterator, &element, &error) == MR_OK) {
        CHECK_EQ(element.count, 2);
        int64_t count = element.tensors[0].shape.dims[0];
        CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(count, 2)));
        CHECK(mr_shape_equal(element.tensors[1].shape, MR_SHAPE(count)));
        for (int64_t r = 0; r < count; r++, rows++) {
            int row = (int)mr_tensor_floats(&element.tensors[0])[2 * r] / 2;
            CHECK(mr_string_equal(mr_tensor_strings(&element.tensors[1])[r], words[row]));
        }
    }
    CHECK_EQ(rows, 4);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    d = mr_dataset_repeat(mr_dataset_from_tensors(components, 2), 2);
    mr_tensor_deinit(&components[0]);
    mr_tensor_deinit(&components[1]);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(4, 2)));
        CHECK(mr_string_equal(mr_tensor_strings(&element.tensors[1])[3], words[3]));
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_first_error_is_kept)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_prefetch(mr_dataset_batch(mr_dataset_shard(mr_dataset_range(0, 9, 1), 2, 2), 0), -1);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "shard: index 2 of 2");
    mr_dataset_free(d);
    d = mr_dataset_records(test_path("none-*.tfrecord"));
    CHECK_STATUS(mr_dataset_status(d, &error), MR_NOT_FOUND);
    mr_dataset_free(d);
}
