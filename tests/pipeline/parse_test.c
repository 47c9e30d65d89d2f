/* The parsing stages: their specs, and the tensors of features that need several components. */
#include "tests/test.h"

#include <millrace/dataset.h>

static constexpr int RECORDS = 5;

/* A dataset of string scalars: record i is a SequenceExample with i steps. */
static mr_dataset *sequences(void)
{
    mr_error error = {0};
    mr_sequence_encoder encoders[RECORDS] = {};
    mr_string records[RECORDS];
    mr_tensor tensor = {0};
    for (int i = 0; i < RECORDS; i++) {
        mr_example_add_int64(&encoders[i].context, "id", i);
        mr_sequence_add_list(&encoders[i], "tokens");
        for (int64_t step = 0; step < i; step++) mr_sequence_add_int64_list(&encoders[i], "tokens", &step, 1);
        CHECK_OK(mr_sequence_finish(&encoders[i], &records[i], &error));
    }
    CHECK_OK(mr_tensor_init_strings(&tensor, MR_SHAPE(RECORDS), records, &error));
    for (int i = 0; i < RECORDS; i++) mr_sequence_encoder_deinit(&encoders[i]);
    mr_dataset *d = mr_dataset_from_slices(&tensor, 1);
    mr_tensor_deinit(&tensor);
    return d;
}

static const mr_feature context[] = {{.name = "id", .dtype = MR_INT64}};
static const mr_feature lists[] = {{.name = "tokens", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE}};

TEST(pipeline_parses_sequence_examples_alone_and_in_batches)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = mr_dataset_parse_sequence_example(sequences(), context, 1, lists, 1);
    CHECK_OK(mr_dataset_status(d, &error));
    CHECK_EQ(mr_dataset_spec(d)->count, 3);
    CHECK_STR(mr_dataset_spec(d)->names[2], "tokens");
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < RECORDS; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], i);
        CHECK(mr_shape_equal(element.tensors[1].shape, MR_SHAPE(i)));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[2])[0], i);
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    d = mr_dataset_parse_sequence_example(mr_dataset_batch(sequences(), 3), context, 1, lists, 1);
    CHECK(mr_shape_equal(mr_dataset_spec(d)->shapes[1], MR_SHAPE(-1, -1)));
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_shape_equal(element.tensors[1].shape, MR_SHAPE(3, 2)));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_shape_equal(element.tensors[1].shape, MR_SHAPE(2, 4)));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[7], 3);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_parse_sequence_example_refuses_what_cannot_be)
{
    mr_error error = {0};
    const mr_feature fixed = {.name = "tokens", .dtype = MR_INT64};
    mr_dataset *d = mr_dataset_parse_sequence_example(sequences(), nullptr, 0, &fixed, 1);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "parse_sequence_example: feature \"tokens\"");
    mr_dataset_free(d);
    d = mr_dataset_parse_sequence_example(sequences(), nullptr, 0, nullptr, 0);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
    d = mr_dataset_parse_sequence_example(mr_dataset_range(0, 3, 1), context, 1, lists, 1);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
}

/* Frees the keys and partitions of the features once the dataset has been created. */
static mr_dataset *parse_parted(mr_dataset *input)
{
    char key[] = "lengths", index[] = "place";
    const char *index_keys[] = {index};
    mr_partition partition = {.kind = MR_ROW_LENGTHS, .key = key};
    mr_feature features[] = {
        {.name = "rows",
         .dtype = MR_FLOAT,
         .form = MR_RAGGED,
         .value_key = "v",
         .partitions = &partition,
         .partition_count = 1},
        {.name = "sparse",
         .dtype = MR_INT64,
         .form = MR_SPARSE,
         .value_key = "place",
         .index_keys = index_keys,
         .shape = MR_SHAPE(9)},
    };
    mr_dataset *d = mr_dataset_parse_example(input, features, 2);
    memset(key, 0, sizeof key);
    memset(index, 0, sizeof index);
    memset(features, 0, sizeof features);
    return d;
}

TEST(pipeline_parses_ragged_and_sparse_features)
{
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    mr_tensor tensor = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_example_add_float_list(&encoder, "v", (const float[]){1, 2, 3}, 3);
    mr_example_add_int64_list(&encoder, "lengths", (const int64_t[]){2, 1}, 2);
    mr_example_add_int64_list(&encoder, "place", (const int64_t[]){8, 5}, 2);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_tensor_init_strings(&tensor, MR_SHAPE(1), &record, &error));
    mr_example_encoder_deinit(&encoder);
    mr_dataset *d = parse_parted(mr_dataset_batch(mr_dataset_repeat(mr_dataset_from_slices(&tensor, 1), 2), 2));
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_EQ(mr_dataset_spec(d)->count, 6);
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    const int64_t splits[] = {0, 2, 3, 5, 6}, indices[] = {0, 5, 0, 8, 1, 5, 1, 8};
    CHECK(memcmp(element.tensors[2].data, splits, sizeof splits) == 0);
    CHECK(memcmp(element.tensors[3].data, indices, sizeof indices) == 0);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}
