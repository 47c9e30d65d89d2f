/* Sparse and ragged features of Examples. tests/oracle compares the rules with TensorFlow; these tests check the
 * guarantees to callers, rules that are stricter than TensorFlow's, and invalid specifications. */
#include "tests/test.h"

#include <millrace/example.h>

static const char *const places[] = {"y", "x"};
static const mr_partition splits_then_pairs[] = {{.kind = MR_ROW_SPLITS, .key = "p"},
                                                 {.kind = MR_UNIFORM_ROW_LENGTH, .length = 2}};
static const mr_partition rowids[] = {{.kind = MR_VALUE_ROWIDS, .key = "q"}};
static const mr_feature features[] = {
    {.name = "grid",
     .dtype = MR_STRING,
     .form = MR_SPARSE,
     .value_key = "text",
     .index_keys = places,
     .shape = {.rank = 2, .dims = {4, 9}}},
    {.name = "text", .dtype = MR_STRING, .form = MR_VAR_LEN},
    {.name = "pairs",
     .dtype = MR_FLOAT,
     .form = MR_RAGGED,
     .value_key = "v",
     .partitions = splits_then_pairs,
     .partition_count = 2},
    {.name = "rows",
     .dtype = MR_FLOAT,
     .form = MR_RAGGED,
     .value_key = "v",
     .partitions = rowids,
     .partition_count = 1},
};
static constexpr int TENSORS = 3 + 3 + 3 + 3;

static mr_string example(mr_example_encoder *encoder)
{
    mr_error error = {0};
    mr_string record;
    const mr_string text[] = {MR_STR("b"), MR_STR("a"), MR_STR("c")};
    const float values[] = {1, 2, 3, 4};
    mr_example_add_bytes_list(encoder, "text", text, 3);
    mr_example_add_int64_list(encoder, "y", (const int64_t[]){1, 0, 1}, 3);
    mr_example_add_int64_list(encoder, "x", (const int64_t[]){2, 8, 5}, 3);
    mr_example_add_float_list(encoder, "v", values, 4);
    mr_example_add_int64_list(encoder, "p", (const int64_t[]){0, 0, 2}, 3);
    mr_example_add_int64_list(encoder, "q", (const int64_t[]){0, 0, 2, 2}, 4);
    CHECK_OK(mr_example_finish(encoder, &record, &error));
    return record;
}

static bool holds(const mr_tensor *tensor, mr_shape shape, const void *values)
{
    return mr_shape_equal(tensor->shape, shape) && memcmp(tensor->data, values, mr_tensor_size_bytes(tensor)) == 0;
}

TEST(example_sparse_and_ragged_features_share_entries_of_the_record)
{
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string records[2] = {example(&encoder)};
    mr_example_parser *parser = nullptr;
    mr_tensor tensors[TENSORS];
    CHECK_OK(mr_example_parser_new(features, 4, &parser, &error));
    CHECK_OK(mr_example_parse(parser, records, 2, false, tensors, &error));
    CHECK(holds(&tensors[0], MR_SHAPE(3, 3), (const int64_t[]){0, 0, 8, 0, 1, 2, 0, 1, 5}));
    CHECK(mr_string_equal(mr_tensor_strings(&tensors[1])[0], MR_STR("a")));
    CHECK(holds(&tensors[2], MR_SHAPE(3), (const int64_t[]){2, 4, 9}));
    CHECK(mr_string_equal(mr_tensor_strings(&tensors[4])[0], MR_STR("b")));
    CHECK(holds(&tensors[6], MR_SHAPE(2, 2), (const float[]){1, 2, 3, 4}));
    CHECK(holds(&tensors[7], MR_SHAPE(3), (const int64_t[]){0, 2, 2}));
    CHECK(holds(&tensors[8], MR_SHAPE(3), (const int64_t[]){0, 0, 2}));
    CHECK(holds(&tensors[10], MR_SHAPE(3), (const int64_t[]){0, 3, 3}));
    CHECK(holds(&tensors[11], MR_SHAPE(4), (const int64_t[]){0, 2, 2, 4}));
    for (int i = 0; i < TENSORS; i++) mr_tensor_deinit(&tensors[i]);
    mr_example_parser_free(parser);
    mr_example_encoder_deinit(&encoder);
}

/* The error message when the feature is parsed from a record. */
static const char *said(mr_example_encoder *encoder, const mr_feature *feature)
{
    static mr_error error;
    mr_string record;
    mr_example_parser *parser = nullptr;
    mr_tensor tensors[8];
    error = (mr_error){0};
    CHECK_OK(mr_example_finish(encoder, &record, &error));
    CHECK_OK(mr_example_parser_new(feature, 1, &parser, &error));
    CHECK_STATUS(mr_example_parse(parser, &record, 1, true, tensors, &error), MR_INVALID_ARGUMENT);
    mr_example_parser_free(parser);
    return error.message;
}

TEST(example_errors_name_invalid_positions_and_partitions)
{
    mr_example_encoder encoder = {0};
    const float values[] = {1, 2, 3, 4};
    mr_example_add_bytes(&encoder, "text", MR_STR("b"));
    mr_example_add_int64(&encoder, "y", 3);
    CHECK_STR(said(&encoder, &features[0]), "feature \"grid\" has 1 values, but \"x\" has 0 indices");
    mr_example_add_bytes(&encoder, "text", MR_STR("b"));
    mr_example_add_int64(&encoder, "y", 3);
    mr_example_add_int64(&encoder, "x", 9);
    CHECK_STR(said(&encoder, &features[0]), "feature \"grid\": index 9 in \"x\" is not in [0, 9)");
    mr_example_add_float_list(&encoder, "v", values, 3);
    CHECK_STR(said(&encoder, &features[2]), "feature \"pairs\": partition 1 requires a multiple of 2 items, found 3");
    mr_example_add_float_list(&encoder, "v", values, 4);
    CHECK_STR(said(&encoder, &features[2]), "feature \"pairs\": the row splits in \"p\" do not match 2 values");
    /* A row number that would create a huge number of rows. */
    mr_example_add_float_list(&encoder, "v", values, 1);
    mr_example_add_int64(&encoder, "q", INT64_MAX);
    CHECK_STR(said(&encoder, &features[3]), "feature \"rows\": the value rowids in \"q\" do not match 1 values");
    mr_example_add_float_list(&encoder, "v", values, 1);
    mr_example_add_float(&encoder, "q", 0);
    CHECK_STR(said(&encoder, &features[3]), "feature \"q\" holds float, not int64");
    mr_example_encoder_deinit(&encoder);
}

TEST(example_parser_refuses_entries_that_exclude_each_other)
{
    mr_error error = {0};
    mr_example_parser *parser = nullptr;
    const char *index = "i";
    mr_feature pair[] = {{.name = "s",
                          .dtype = MR_INT64,
                          .form = MR_SPARSE,
                          .value_key = "v",
                          .index_keys = &index,
                          .shape = MR_SHAPE(3)},
                         {.name = "v", .dtype = MR_INT64, .form = MR_VAR_LEN}};
    CHECK_OK(mr_example_parser_new(pair, 2, &parser, &error));
    mr_example_parser_free(parser);
    pair[1].form = MR_FIXED_LEN;
    CHECK_STATUS(mr_example_parser_new(pair, 2, &parser, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "feature \"v\" is requested twice");
    pair[1].form = MR_RAGGED;
    CHECK_STATUS(mr_example_parser_new(pair, 2, &parser, &error), MR_INVALID_ARGUMENT);
    pair[1] = (mr_feature){.name = "v", .dtype = MR_FLOAT, .form = MR_VAR_LEN};
    CHECK_STATUS(mr_example_parser_new(pair, 2, &parser, &error), MR_INVALID_ARGUMENT);
    pair[1] = (mr_feature){.name = "s", .dtype = MR_FLOAT, .form = MR_VAR_LEN};
    CHECK_STATUS(mr_example_parser_new(pair, 2, &parser, &error), MR_INVALID_ARGUMENT);
    const mr_partition no_length = {.kind = MR_UNIFORM_ROW_LENGTH}, no_key = {.kind = MR_ROW_SPLITS};
    const mr_feature wrong[] = {
        {.name = "a", .dtype = MR_INT64, .form = MR_SPARSE, .index_keys = &index},
        {.name = "a", .dtype = MR_INT64, .form = MR_SPARSE, .shape = MR_SHAPE(3)},
        {.name = "a", .dtype = MR_INT64, .form = MR_SPARSE, .shape = MR_SHAPE(-1), .index_keys = &index},
        {.name = "a", .dtype = MR_INT64, .form = MR_RAGGED, .partitions = &no_length, .partition_count = 1},
        {.name = "a", .dtype = MR_INT64, .form = MR_RAGGED, .partitions = &no_key, .partition_count = 1},
        {.name = "a", .dtype = MR_INT64, .form = MR_RAGGED, .splits_dtype = MR_FLOAT},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_STATUS(mr_example_parser_new(&wrong[i], 1, &parser, &error), MR_INVALID_ARGUMENT);
}

TEST(example_every_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_example_encoder encoder = {0};
    mr_string records[2] = {example(&encoder)};
    int failures = 0;
    for (int n = 1;; n++) {
        mr_error error = {0};
        mr_example_parser *parser = nullptr;
        mr_tensor tensors[TENSORS];
        long long before = test_allocations();
        test_fail_allocation(before + n);
        mr_status status = mr_example_parser_new(features, 4, &parser, &error);
        if (status == MR_OK) status = mr_example_parse(parser, records, 2, false, tensors, &error);
        for (int i = 0; i < TENSORS && status == MR_OK; i++) mr_tensor_deinit(&tensors[i]);
        mr_example_parser_free(parser);
        long long used = test_allocations() - before;
        test_fail_allocation(0);
        if (used < n) break;
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        failures++;
    }
    CHECK(failures > 20);
    mr_example_encoder_deinit(&encoder);
}
