/* tfrecord-cat --schema: the table, and the parser specifications. The .inc files are the output of --spec c and are
 * compiled here. tests/oracle runs the Python specifications. */
#include "tests/tools/program.h"

#include <millrace/record.h>

#include "tests/tools/cat_schema_features.inc"
#include "tests/tools/cat_schema_lists.inc"

static const char features_text[] = {
#embed "tests/tools/cat_schema_features.inc" suffix(, '\0')
};
static const char lists_text[] = {
#embed "tests/tools/cat_schema_lists.inc" suffix(, '\0')
};

static constexpr int RECORDS = 10;

static void write_example(mr_example_encoder *encoder, int i, mr_string *record)
{
    mr_error error = {0};
    const float box[] = {0, 1, 2, (float)i};
    const int64_t ids[] = {1, 2, 3};
    mr_example_add_int64(encoder, "label", i);
    mr_example_add_float_list(encoder, "box", box, 4);
    mr_example_add_int64_list(encoder, "ids", ids, (size_t)i % 4);
    if (i % 2) mr_example_add_bytes(encoder, "maybe", MR_STR("x"));
    if (i % 2)
        mr_example_add_float(encoder, "mixed */", 1);
    else
        mr_example_add_int64(encoder, "mixed */", 1);
    mr_example_add_int64_list(encoder, "never", nullptr, 0);
    mr_example_add_bytes(encoder, "gr\xc3\xbc\xc3\x9f \"dich\"\n*/", MR_STR("x"));
    mr_example_add_bytes(encoder, "\xff\x01", MR_STR("x"));
    CHECK_OK(mr_example_finish(encoder, record, &error));
}

static void write_sequence(mr_sequence_encoder *encoder, int i, mr_string *record)
{
    mr_error error = {0};
    const int64_t tokens[] = {5, 6, 7};
    mr_example_add_int64(&encoder->context, "length", i % 4);
    if (i) mr_example_add_float(&encoder->context, "weight", 1);
    mr_sequence_add_list(encoder, "nothing");
    mr_sequence_add_list(encoder, "tokens");
    for (int step = 0; step < i % 4; step++) {
        mr_sequence_add_int64_list(encoder, "tokens", tokens, 1);
        mr_sequence_add_int64_list(encoder, "pairs", tokens, 2);
        mr_sequence_add_int64_list(encoder, "words", tokens, (size_t)step + 1);
    }
    CHECK_OK(mr_sequence_finish(encoder, record, &error));
}

/* Writes the Examples or the SequenceExamples to a file and returns its path. records receives copies of the records;
 * the caller frees them. */
static const char *write_file(bool is_sequence, mr_string *records)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    const char *path = test_path("%s.tfrecord", is_sequence ? "sequences" : "examples");
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < RECORDS; i++) {
        mr_example_encoder example = {0};
        mr_sequence_encoder sequence = {0};
        if (is_sequence)
            write_sequence(&sequence, i, &records[i]);
        else
            write_example(&example, i, &records[i]);
        char *copy = malloc(records[i].size_bytes);
        records[i].data = memcpy(copy, records[i].data, records[i].size_bytes);
        CHECK_OK(mr_record_writer_append(writer, records[i].data, records[i].size_bytes, &error));
        mr_example_encoder_deinit(&example);
        mr_sequence_encoder_deinit(&sequence);
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    return path;
}

TEST(cat_schema_of_examples_is_a_header_that_parses_them)
{
    mr_error error = {0};
    mr_string records[RECORDS];
    mr_example_parser *parser = nullptr;
    static constexpr int COUNT = sizeof features / sizeof features[0];
    mr_tensor tensors[3 * COUNT];
    const char *path = write_file(false, records);
    CHECK_STR(program_run("tfrecord-cat --schema --spec c %s", path)->output, features_text);
    CHECK_OK(mr_example_parser_new(features, COUNT, &parser, &error));
    CHECK_OK(mr_example_parse(parser, records, RECORDS, false, tensors, &error));
    int32_t count = 0;
    for (int i = 0; i < COUNT; i++) count += mr_feature_tensor_count(&features[i]);
    for (int i = 0; i < count; i++) mr_tensor_deinit(&tensors[i]);
    for (int i = 0; i < RECORDS; i++) free((char *)records[i].data);
    mr_example_parser_free(parser);
}

TEST(cat_schema_of_sequences_is_a_header_that_parses_them)
{
    mr_error error = {0};
    mr_string records[RECORDS];
    mr_sequence_parser *parser = nullptr;
    static constexpr int CONTEXT = sizeof context / sizeof context[0], LISTS = sizeof lists / sizeof lists[0];
    mr_tensor tensors[3 * (CONTEXT + LISTS)];
    const char *path = write_file(true, records);
    CHECK_STR(program_run("tfrecord-cat --schema --spec c %s", path)->output, lists_text);
    CHECK_OK(mr_sequence_parser_new(context, CONTEXT, lists, LISTS, &parser, &error));
    CHECK_OK(mr_sequence_parse(parser, records, RECORDS, false, tensors, &error));
    int32_t count = 0;
    for (int i = 0; i < CONTEXT; i++) count += mr_feature_tensor_count(&context[i]);
    for (int i = 0; i < LISTS; i++) count += mr_sequence_tensor_count(&lists[i]);
    for (int i = 0; i < count; i++) mr_tensor_deinit(&tensors[i]);
    for (int i = 0; i < RECORDS; i++) free((char *)records[i].data);
    mr_sequence_parser_free(parser);
}

TEST(cat_schema_tables_show_types_bounds_and_presence)
{
    mr_string records[RECORDS];
    const char *path = write_file(false, records);
    const program_result *result = program_run("COLUMNS=60 tfrecord-cat --schema %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "10 records\n");
    CHECK_CONTAINS(result->output, "ids                int64  0 to 3        all\n");
    CHECK_CONTAINS(result->output, "maybe              bytes  1             50.0 %\n");
    CHECK_CONTAINS(result->output, "mixed */           mixed  1             all\n");
    CHECK_CONTAINS(result->output, "gr\xc3\xbc\xc3\x9f \\\"dich\\\"\\n*/  bytes");
    for (int i = 0; i < RECORDS; i++) free((char *)records[i].data);
    path = write_file(true, records);
    result = program_run("COLUMNS=80 tfrecord-cat --schema %s", path);
    CHECK_CONTAINS(result->output, "10 records, SequenceExamples\n");
    CHECK_CONTAINS(result->output, "feature list  type   steps         values/step   present\n");
    CHECK_CONTAINS(result->output, "tokens        int64  0 to 3        1             all\n");
    CHECK_CONTAINS(result->output, "words         int64  1 to 3        1 to 3        70.0 %\n");
    CHECK_CONTAINS(result->output, "nothing       none   0             -             all\n");
    CHECK_CONTAINS(result->output, "\"pairs\": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),");
    for (int i = 0; i < RECORDS; i++) free((char *)records[i].data);
}

TEST(cat_schema_of_countless_names_has_a_bound)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    const char *path = test_path("names.tfrecord");
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 12'000; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        mr_example_add_int64(&encoder, name, i);
        if (i % 1000 != 999) continue;
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    CHECK_CONTAINS(program_run("tfrecord-cat --schema %s | grep -a 'more names'", path)->output,
                   "only the first 10000 ");
}

TEST(cat_schema_names_a_record_that_is_not_an_example)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    const char *path = test_path("none.tfrecord");
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, "\x0a\x00", 2, &error));
    CHECK_OK(mr_record_writer_append(writer, "some text", 9, &error));
    CHECK_OK(mr_record_writer_append(writer, "\x08\x01", 2, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    const program_result *result = program_run("tfrecord-cat --schema %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "none.tfrecord: record 1 at byte 18: the Example is damaged at byte ");
    CHECK_CONTAINS(result->output, "record 2 at byte 43: neither an Example nor a SequenceExample");
    CHECK_CONTAINS(result->output, "1 record\n");
}
