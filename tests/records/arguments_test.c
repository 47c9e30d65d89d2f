/* Arguments of the public functions below, at and above their limits: every build returns a status. */
#include "tests/records/record_data.h"

#include <millrace/example.h>
#include <unistd.h>

TEST(record_writer_refuses_options_out_of_range)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    const char *path = test_path("w");
    static const mr_record_writer_options wrong[] = {
        {.compression = (mr_compression)3},
        {.compression = (mr_compression)-1},
        {.compression = MR_COMPRESSION_GZIP, .level = -1},
        {.compression = MR_COMPRESSION_GZIP, .level = 10},
        {.compression = MR_COMPRESSION_ZLIB, .seek_bytes = 1000},
        {.seek_bytes = 1},
        {.compression = MR_COMPRESSION_GZIP, .seek_bytes = SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(mr_record_writer_open(path, &wrong[i], &writer, &error), MR_INVALID_ARGUMENT);
        CHECK(access(path, F_OK) != 0);
    }
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    CHECK_STATUS(mr_record_writer_append(writer, "", MR_RECORD_SIZE_MAX + 1, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_record_writer_append(writer, "", 0, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
}

TEST(example_parse_refuses_counts_out_of_range)
{
    mr_error error = {0};
    mr_example_parser *parser = nullptr;
    mr_sequence_parser *sequence = nullptr;
    mr_tensor tensors[8] = {0};
    const mr_feature features[] = {{"label", MR_INT64}};
    const mr_string records[2] = {0};
    static const struct {
        int64_t count;
        bool single;
    } wrong[] = {{-1, false}, {INT64_MIN, false}, {-1, true}, {0, true}, {2, true}};
    CHECK_STATUS(mr_example_parser_new(features, -1, &parser, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_example_parser_new(features, 1, &parser, &error));
    CHECK_OK(mr_sequence_parser_new(features, 1, nullptr, 0, &sequence, &error));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(mr_example_parse(parser, records, wrong[i].count, wrong[i].single, tensors, &error),
                     MR_INVALID_ARGUMENT);
        CHECK_STATUS(mr_sequence_parse(sequence, records, wrong[i].count, wrong[i].single, tensors, &error),
                     MR_INVALID_ARGUMENT);
    }
    mr_sequence_parser_free(sequence);
    mr_example_parser_free(parser);
}
