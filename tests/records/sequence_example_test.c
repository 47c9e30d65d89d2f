/* SequenceExamples: encoding, iteration and parsing, and detection of the kind of a record. tests/oracle compares the
 * rules with TensorFlow. */
#include "tests/test.h"

#include <millrace/example.h>

/* Two lists, whose values are added alternately, and a context. */
static mr_string two_lists(mr_sequence_encoder *encoder)
{
    mr_error error = {0};
    mr_string record;
    const int64_t tokens[] = {3, 1, 4, 1, 5};
    const mr_string tags[] = {MR_STR("x"), MR_STR("")};
    mr_example_add_int64(&encoder->context, "length", 3);
    mr_sequence_add_int64_list(encoder, "tokens", tokens, 2);
    mr_sequence_add_bytes_list(encoder, "tags", tags, 2);
    mr_sequence_add_int64_list(encoder, "tokens", nullptr, 0);
    mr_sequence_add_list(encoder, "nothing");
    mr_sequence_add_bytes_list(encoder, "tags", tags, 1);
    mr_sequence_add_int64_list(encoder, "tokens", tokens + 2, 3);
    CHECK_OK(mr_sequence_finish(encoder, &record, &error));
    return record;
}

TEST(sequence_example_steps_come_back_in_order)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record = two_lists(&encoder);
    mr_example_cursor context = {.record = record}, lists = {.record = record};
    mr_feature_view feature;
    CHECK_OK(mr_example_next_feature(&context, &feature, &error));
    CHECK(mr_string_equal(feature.name, MR_STR("length")));
    CHECK_STATUS(mr_example_next_feature(&context, &feature, &error), MR_OUT_OF_RANGE);
    mr_feature_list_view list;
    size_t count;
    CHECK_OK(mr_sequence_next_list(&lists, &list, &error));
    CHECK(mr_string_equal(list.name, MR_STR("nothing")));
    CHECK_OK(mr_feature_list_count(&list, &count, &error));
    CHECK_EQ(count, 0);
    CHECK_STATUS(mr_feature_list_next(&list, &feature, &error), MR_OUT_OF_RANGE);
    CHECK_OK(mr_sequence_next_list(&lists, &list, &error));
    CHECK(mr_string_equal(list.name, MR_STR("tags")));
    CHECK_OK(mr_feature_list_count(&list, &count, &error));
    CHECK_EQ(count, 2);
    CHECK_OK(mr_sequence_next_list(&lists, &list, &error));
    CHECK(mr_string_equal(list.name, MR_STR("tokens")));
    const size_t counts[] = {2, 0, 3};
    int64_t values[3];
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_feature_list_next(&list, &feature, &error));
        CHECK(mr_string_equal(feature.name, MR_STR("tokens")));
        CHECK_EQ(feature.kind, MR_FEATURE_INT64);
        CHECK_OK(mr_feature_count(&feature, &count, &error));
        CHECK_EQ(count, counts[i]);
        CHECK_OK(mr_feature_int64s(&feature, values, 3, &error));
    }
    CHECK_EQ(values[2], 5);
    CHECK_STATUS(mr_sequence_next_list(&lists, &list, &error), MR_OUT_OF_RANGE);
    mr_sequence_encoder_deinit(&encoder);
}

TEST(sequence_example_encoder_is_empty_after_finish_and_keeps_its_first_failure)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    char first[256];
    mr_string record = two_lists(&encoder);
    CHECK(record.size_bytes < sizeof first);
    size_t size = record.size_bytes;
    memcpy(first, record.data, size);
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    CHECK_EQ(record.size_bytes, 0);
    record = two_lists(&encoder);
    CHECK(mr_string_equal(record, (mr_string){first, size}));
    mr_example_add_int64(&encoder.context, "a", 1);
    mr_example_add_int64(&encoder.context, "a", 2);
    CHECK_STATUS(mr_sequence_finish(&encoder, &record, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"a\" was added twice");
    mr_sequence_encoder_deinit(&encoder);
}

TEST(example_form_tells_what_a_record_is)
{
    mr_error error = {0};
    mr_sequence_encoder sequence = {0};
    mr_example_encoder plain = {0};
    mr_string record = two_lists(&sequence);
    CHECK_EQ(mr_example_form_of(record), MR_EXAMPLE_SEQUENCE);
    record.size_bytes--;
    CHECK_EQ(mr_example_form_of(record), MR_EXAMPLE_NONE);
    mr_example_add_int64(&plain, "a", 1);
    CHECK_OK(mr_example_finish(&plain, &record, &error));
    CHECK_EQ(mr_example_form_of(record), MR_EXAMPLE_PLAIN);
    CHECK_EQ(mr_example_form_of(MR_STR("")), MR_EXAMPLE_PLAIN);
    CHECK_EQ(mr_example_form_of(MR_STR("\x0a\x00")), MR_EXAMPLE_PLAIN);
    CHECK_EQ(mr_example_form_of(MR_STR("\x0a\x00\x12\x00")), MR_EXAMPLE_SEQUENCE);
    CHECK_EQ(mr_example_form_of(MR_STR("\x12\x00")), MR_EXAMPLE_SEQUENCE);
    /* A field 2 that is not a map of lists is an unknown field of an Example, which TensorFlow skips. */
    CHECK_EQ(mr_example_form_of(MR_STR("\x0a\x00\x12\x02hi")), MR_EXAMPLE_PLAIN);
    CHECK_EQ(mr_example_form_of(MR_STR("\x12\x02hi")), MR_EXAMPLE_NONE);
    CHECK_EQ(mr_example_form_of(MR_STR("\x08\x01")), MR_EXAMPLE_NONE);
    CHECK_EQ(mr_example_form_of(MR_STR("some text of a line")), MR_EXAMPLE_NONE);
    mr_sequence_encoder_deinit(&sequence);
    mr_example_encoder_deinit(&plain);
}

/* ---- Parsing ---- */

static const mr_feature context[] = {{.name = "length", .dtype = MR_INT64}};
static const mr_partition by_length[] = {{.kind = MR_ROW_LENGTHS, .key = "sizes"}};
static const mr_feature lists[] = {
    {.name = "frames", .dtype = MR_FLOAT, .form = MR_FIXED_LEN_SEQUENCE, .shape = {.rank = 1, .dims = {2}}},
    {.name = "tokens", .dtype = MR_INT64, .form = MR_VAR_LEN},
    {.name = "words", .dtype = MR_STRING, .form = MR_RAGGED},
    {.name = "parts",
     .dtype = MR_INT64,
     .form = MR_RAGGED,
     .value_key = "data",
     .partitions = by_length,
     .partition_count = 1,
     .splits_dtype = MR_INT32},
};
static constexpr int TENSORS = 1 + 2 + 3 + 3 + 4;

/* Record i has i steps of frames. */
static mr_string frames(mr_sequence_encoder *encoder, int i)
{
    mr_error error = {0};
    mr_string record;
    const mr_string words[] = {MR_STR("a"), MR_STR("bc")};
    const int64_t numbers[] = {2, 1, 3};
    mr_example_add_int64(&encoder->context, "length", i);
    mr_sequence_add_list(encoder, "frames");
    for (int j = 0; j < i; j++) {
        const float pair[] = {(float)i, (float)j};
        mr_sequence_add_float_list(encoder, "frames", pair, 2);
        mr_sequence_add_int64_list(encoder, "tokens", numbers, (size_t)j);
        mr_sequence_add_bytes_list(encoder, "words", words, 2 - (size_t)j % 2);
        mr_sequence_add_int64_list(encoder, "data", numbers, 3);
        mr_sequence_add_int64_list(encoder, "sizes", numbers, 2);
    }
    CHECK_OK(mr_sequence_finish(encoder, &record, &error));
    return record;
}

/* True if the tensor has this shape and all of its bytes equal `values`. */
static bool holds(const mr_tensor *tensor, mr_shape shape, const void *values)
{
    return mr_shape_equal(tensor->shape, shape) && memcmp(tensor->data, values, mr_tensor_size_bytes(tensor)) == 0;
}

TEST(sequence_example_lists_become_columns)
{
    mr_error error = {0};
    mr_sequence_encoder encoders[3] = {};
    mr_string records[3];
    mr_sequence_parser *parser = nullptr;
    mr_tensor tensors[TENSORS];
    for (int i = 0; i < 3; i++) records[i] = frames(&encoders[i], i);
    CHECK_OK(mr_sequence_parser_new(context, 1, lists, 4, &parser, &error));
    CHECK_OK(mr_sequence_parse(parser, records, 3, false, tensors, &error));
    CHECK(holds(&tensors[0], MR_SHAPE(3), (const int64_t[]){0, 1, 2}));
    CHECK(holds(&tensors[1], MR_SHAPE(3, 2, 2), (const float[]){0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 1}));
    CHECK(holds(&tensors[2], MR_SHAPE(3), (const int64_t[]){0, 1, 2}));
    CHECK(holds(&tensors[3], MR_SHAPE(1, 3), (const int64_t[]){2, 1, 0}));
    CHECK(holds(&tensors[4], MR_SHAPE(1), (const int64_t[]){2}));
    CHECK(holds(&tensors[5], MR_SHAPE(3), (const int64_t[]){3, 2, 1}));
    CHECK(mr_string_equal(mr_tensor_strings(&tensors[6])[3], MR_STR("bc")));
    CHECK(holds(&tensors[7], MR_SHAPE(4), (const int64_t[]){0, 0, 1, 3}));
    CHECK(holds(&tensors[8], MR_SHAPE(4), (const int64_t[]){0, 2, 4, 5}));
    CHECK(holds(&tensors[9], MR_SHAPE(9), (const int64_t[]){2, 1, 3, 2, 1, 3, 2, 1, 3}));
    CHECK(holds(&tensors[10], MR_SHAPE(4), (const int32_t[]){0, 0, 1, 3}));
    CHECK(holds(&tensors[11], MR_SHAPE(4), (const int32_t[]){0, 2, 4, 6}));
    CHECK(holds(&tensors[12], MR_SHAPE(7), (const int32_t[]){0, 2, 3, 5, 6, 8, 9}));
    for (int i = 0; i < TENSORS; i++) mr_tensor_deinit(&tensors[i]);
    CHECK_OK(mr_sequence_parse(parser, &records[1], 1, true, tensors, &error));
    CHECK(holds(&tensors[0], MR_SCALAR, (const int64_t[]){1}));
    CHECK(holds(&tensors[1], MR_SHAPE(1, 2), (const float[]){1, 0}));
    CHECK(holds(&tensors[2], MR_SCALAR, (const int64_t[]){1}));
    CHECK(holds(&tensors[5], MR_SHAPE(2), (const int64_t[]){1, 0}));
    CHECK(mr_shape_equal(tensors[7].shape, MR_SHAPE(0)));
    CHECK(holds(&tensors[8], MR_SHAPE(2), (const int64_t[]){0, 2}));
    for (int i = 0; i < TENSORS; i++) mr_tensor_deinit(&tensors[i]);
    CHECK_OK(mr_sequence_parse(parser, records, 0, false, tensors, &error));
    CHECK(mr_shape_equal(tensors[1].shape, MR_SHAPE(0, 0, 2)));
    for (int i = 0; i < TENSORS; i++) mr_tensor_deinit(&tensors[i]);
    mr_sequence_parser_free(parser);
    for (int i = 0; i < 3; i++) mr_sequence_encoder_deinit(&encoders[i]);
}

/* Parses one list of one record, in a batch after an empty record; returns the error message, or "". */
static const char *parse_list(mr_sequence_encoder *encoder, const mr_feature *list)
{
    static mr_error error;
    mr_sequence_parser *parser = nullptr;
    mr_tensor tensors[8];
    mr_string records[2] = {{}};
    error = (mr_error){0};
    CHECK_OK(mr_sequence_finish(encoder, &records[1], &error));
    CHECK_OK(mr_sequence_parser_new(nullptr, 0, list, 1, &parser, &error));
    if (mr_sequence_parse(parser, records, 2, false, tensors, &error) == MR_OK) {
        for (int i = 0; i < mr_sequence_tensor_count(list); i++) mr_tensor_deinit(&tensors[i]);
        error.message[0] = '\0';
    }
    mr_sequence_parser_free(parser);
    return error.message;
}

TEST(sequence_example_errors_name_record_step_and_list)
{
    mr_sequence_encoder encoder = {0};
    const int64_t numbers[] = {1, 2, 3};
    mr_feature fixed = {.name = "a", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .shape = MR_SHAPE(2)};
    CHECK_STR(parse_list(&encoder, &fixed), "record 0: feature list \"a\" is missing");
    fixed.allow_missing = true;
    CHECK_STR(parse_list(&encoder, &fixed), "");
    mr_sequence_add_int64_list(&encoder, "a", numbers, 2);
    mr_sequence_add_int64_list(&encoder, "a", numbers, 3);
    CHECK_STR(parse_list(&encoder, &fixed),
              "record 1: step 1: feature list \"a\" has 3 values, but shape [2] requires 2");
    mr_sequence_add_int64_list(&encoder, "a", numbers, 2);
    mr_sequence_add_float_list(&encoder, "a", nullptr, 0);
    CHECK_STR(parse_list(&encoder, &fixed), "record 1: step 1: feature list \"a\" holds float, not int64");
    mr_feature parted = lists[3];
    mr_sequence_add_int64_list(&encoder, "data", numbers, 3);
    mr_sequence_add_int64_list(&encoder, "sizes", numbers, 3);
    CHECK_STR(parse_list(&encoder, &parted),
              "record 1: step 0: feature list \"parts\": the row lengths in \"sizes\" do not match 3 values");
    mr_sequence_add_int64_list(&encoder, "data", numbers, 3);
    CHECK_STR(parse_list(&encoder, &parted),
              "record 1: feature list \"parts\" has 1 steps, but its partition \"sizes\" has 0");
    mr_sequence_encoder_deinit(&encoder);
}

TEST(sequence_example_parser_refuses_what_cannot_be)
{
    mr_error error = {0};
    mr_sequence_parser *parser = nullptr;
    mr_tensor one = {0};
    CHECK_OK(mr_tensor_init_int64(&one, 1, &error));
    const mr_feature bad_lists[] = {
        {.name = "a", .dtype = MR_INT64},
        {.name = "a", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .default_value = &one},
        {.name = "a", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .shape = MR_SHAPE(0)},
    };
    const char *key = "i";
    const mr_feature bad_context[] = {
        {.name = "a", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE},
        {.name = "a", .dtype = MR_INT64, .form = MR_SPARSE, .shape = MR_SHAPE(3), .index_keys = &key},
    };
    for (size_t i = 0; i < sizeof bad_lists / sizeof *bad_lists; i++)
        CHECK_STATUS(mr_sequence_parser_new(nullptr, 0, &bad_lists[i], 1, &parser, &error), MR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof bad_context / sizeof *bad_context; i++)
        CHECK_STATUS(mr_sequence_parser_new(&bad_context[i], 1, nullptr, 0, &parser, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&one);
}

static mr_status everything(const mr_string *records, mr_error *error)
{
    mr_sequence_parser *parser = nullptr;
    mr_tensor tensors[TENSORS];
    MR_TRY(mr_sequence_parser_new(context, 1, lists, 4, &parser, error));
    mr_status status = mr_sequence_parse(parser, records, 2, false, tensors, error);
    for (int i = 0; i < TENSORS && status == MR_OK; i++) mr_tensor_deinit(&tensors[i]);
    mr_sequence_parser_free(parser);
    MR_TRY(status);
    mr_sequence_encoder encoder = {0};
    mr_string record;
    mr_example_add_int64(&encoder.context, "a", 1);
    mr_sequence_add_int64_list(&encoder, "b", nullptr, 0);
    status = mr_sequence_finish(&encoder, &record, error);
    mr_sequence_encoder_deinit(&encoder);
    return status;
}

TEST(sequence_example_every_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_sequence_encoder encoders[2] = {};
    const mr_string records[] = {frames(&encoders[0], 2), frames(&encoders[1], 3)};
    int failures = 0;
    for (int n = 1;; n++) {
        mr_error error = {0};
        long long before = test_allocations();
        test_fail_allocation(before + n);
        mr_status status = everything(records, &error);
        long long used = test_allocations() - before;
        test_fail_allocation(0);
        if (used < n) break;
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        CHECK(error.message[0] != '\0');
        failures++;
    }
    CHECK(failures > 20);
    for (int i = 0; i < 2; i++) mr_sequence_encoder_deinit(&encoders[i]);
}
