/* Arguments of public functions, below, at and above their limits: in every build type, the functions return a
 * status. */
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
        {.level = 6},
        {.seek_bytes = 1},
        {.compression = MR_COMPRESSION_GZIP, .seek_bytes = SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_record_writer_options options = wrong[i];
        options.size = sizeof options;
        CHECK_STATUS(mr_record_writer_open(path, &options, &writer, &error), MR_INVALID_ARGUMENT);
        CHECK(access(path, F_OK) != 0);
    }
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    CHECK_STATUS(mr_record_writer_append(writer, "", MR_RECORD_SIZE_MAX + 1, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_record_writer_append(writer, "", 0, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
}

TEST(record_reader_refuses_options_out_of_range)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_record_quarantine *quarantine = nullptr;
    const char *path = test_path("r");
    record_write(path, 3, 100, (mr_record_writer_options){0});
    CHECK_OK(mr_record_quarantine_open(test_path("quarantine"), &quarantine, &error));
    const struct {
        mr_record_reader_options options;
        const char *message;
    } wrong[] = {
        {{.damage = (mr_damage_policy)2}, "unknown damage policy 2"},
        {{.damage = (mr_damage_policy)-1}, "unknown damage policy -1"},
        {{.damage_max = 1}, "damage_max has no effect without MR_DAMAGE_SKIP"},
        {{.quarantine = quarantine}, "quarantine has no effect without MR_DAMAGE_SKIP"},
        {{.buffer_bytes = ((size_t)1 << 30) + 1}, "buffer_bytes is 1073741825, but must be at most 1073741824"},
        {{.buffer_count = -1}, "buffer_count is -1, but must be in [0, 64]"},
        {{.buffer_count = 65}, "buffer_count is 65, but must be in [0, 64]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_record_reader_options own = wrong[i].options, *o = &own;
        own.size = sizeof own;
        CHECK_STATUS(mr_record_reader_open(path, o, &reader, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, wrong[i].message);
        if (o->buffer_bytes > 0 || o->buffer_count != 0) continue;
        const mr_record_scan_options scan = {
            .size = sizeof scan, .damage = o->damage, .damage_max = o->damage_max, .quarantine = o->quarantine};
        CHECK_STATUS(mr_record_scan(&path, 1, &scan, nullptr, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, wrong[i].message);
    }
    CHECK_STATUS(mr_record_scan(&path, 1, MR_OPTIONS(mr_record_scan_options, .threads = -1), nullptr, &error),
                 MR_INVALID_ARGUMENT);
    mr_record_writer *writer;
    CHECK_STATUS(mr_record_writer_open(test_path("negative"), MR_OPTIONS(mr_record_writer_options, .threads = -1),
                                       &writer, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "threads is -1, but must be at least 0");
    CHECK_OK(mr_record_reader_open(path, MR_OPTIONS(mr_record_reader_options, .buffer_count = 64), &reader, &error));
    mr_record_reader_close(reader);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
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
