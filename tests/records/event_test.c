/* Event files and summaries, written by the library and read back through protobuf; the parser's nesting limit and
 * unknown fields. */
#include "proto/event.pb-c.h"
#include "proto/proto.h"
#include "records/event/event.h"
#include "records/event/summary.h"
#include "tests/test.h"

#include <float.h>
#include <millrace/record.h>

static Mr__Event *next_event(mr_record_reader *reader, mr_arena *arena)
{
    mr_error error = {0};
    mr_string record;
    Mr__Event *event;
    CHECK_OK(mr_record_reader_next(reader, &record, &error));
    CHECK_OK(mr_proto_unpack_as(event, record, arena, &event, &error));
    return event;
}

TEST(event_file_begins_with_its_version)
{
    mr_error error = {0};
    mr_event_writer *writer;
    mr_record_reader *reader;
    mr_string record;
    mr_arena arena = {0};
    CHECK_OK(mr_event_writer_open(test_path("logs/run"), &writer, &error));
    char *path = strdup(mr_event_writer_path(writer));
    CHECK_CONTAINS(path, "logs/run/events.out.tfevents.");
    CHECK_OK(mr_event_writer_add_scalar(writer, 5, "loss", 0.25f, &error));
    CHECK_OK(mr_event_writer_add_session_log(writer, 6, MR_SESSION_CHECKPOINT, "model-6", &error));
    CHECK_STATUS(mr_event_writer_add(writer, 7, MR_STR("\x0a\xff"), &error), MR_DATA_LOSS);
    CHECK_OK(mr_event_writer_close(writer, &error));
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    Mr__Event *event = next_event(reader, &arena);
    CHECK_STR(event->file_version, "brain.Event:2");
    CHECK(event->wall_time > 1.6e9);
    event = next_event(reader, &arena);
    CHECK_EQ(event->step, 5);
    CHECK_STR(event->summary->value[0]->tag, "loss");
    CHECK_NEAR(event->summary->value[0]->simple_value, 0.25, 0);
    event = next_event(reader, &arena);
    CHECK_STR(event->session_log->checkpoint_path, "model-6");
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
    mr_arena_deinit(&arena);
    free(path);
}

TEST(event_files_of_one_second_are_two)
{
    mr_error error = {0};
    mr_event_writer *a, *b;
    CHECK_OK(mr_event_writer_open(test_directory(), &a, &error));
    CHECK_OK(mr_event_writer_open(test_directory(), &b, &error));
    CHECK(strcmp(mr_event_writer_path(a), mr_event_writer_path(b)) != 0);
    CHECK_OK(mr_event_writer_close(a, &error));
    CHECK_OK(mr_event_writer_close(b, &error));
}

static Mr__Summary *unpack(mr_string bytes, mr_arena *arena)
{
    mr_error error = {0};
    Mr__Summary *summary;
    CHECK_OK(mr_proto_unpack_as(summary, bytes, arena, &summary, &error));
    return summary;
}

TEST(summary_histogram_joins_empty_buckets)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_string bytes;
    mr_histogram *histogram = malloc(sizeof *histogram);
    CHECK(histogram != nullptr);
    mr_histogram_init(histogram);
    mr_histogram_add(histogram, 0);
    mr_histogram_add(histogram, 0);
    mr_histogram_add(histogram, -DBL_MAX);
    CHECK_OK(mr_summary_pack_histogram(MR_STR("h"), histogram, &arena, &bytes, &error));
    const Mr__HistogramProto *proto = unpack(bytes, &arena)->value[0]->histo;
    /* -DBL_MAX is the lower end of its bucket, which follows one empty bucket. */
    CHECK_EQ(proto->n_bucket, 5);
    CHECK(proto->bucket[1] == 1);
    CHECK(proto->bucket[3] == 2);
    CHECK_NEAR(proto->bucket_limit[2], 0, 0);
    CHECK_NEAR(proto->bucket_limit[3], 1e-12, 0);
    CHECK(proto->bucket_limit[4] == DBL_MAX);
    CHECK(proto->num == 3);
    free(histogram);
    mr_arena_deinit(&arena);
}

TEST(summary_merge_refuses_a_tag_twice)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_string parts[2], merged, tags[] = {MR_STR("a"), MR_STR("b"), MR_STR("a")};
    float values[] = {1, 2, 3};
    CHECK_OK(mr_summary_pack_scalars(tags, values, 2, &arena, &parts[0], &error));
    CHECK_OK(mr_summary_pack_scalars(tags + 2, values + 2, 1, &arena, &parts[1], &error));
    CHECK_STATUS(mr_summary_pack_merged(parts, 2, &arena, &merged, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "tag a");
    CHECK_OK(mr_summary_pack_merged(parts, 1, &arena, &merged, &error));
    CHECK_EQ(unpack(merged, &arena)->n_value, 2);
    mr_arena_deinit(&arena);
}

TEST(summary_images_are_numbered)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_string bytes;
    mr_summary_encoded_image images[] = {{2, 3, 1, MR_STR("x")}, {2, 3, 1, MR_STR("y")}};
    CHECK_OK(mr_summary_pack_images(MR_STR("in"), images, 2, false, &arena, &bytes, &error));
    CHECK_STR(unpack(bytes, &arena)->value[1]->tag, "in/image/1");
    CHECK_EQ(unpack(bytes, &arena)->value[1]->image->width, 3);
    CHECK_OK(mr_summary_pack_images(MR_STR("in"), images, 1, true, &arena, &bytes, &error));
    CHECK_STR(unpack(bytes, &arena)->value[0]->tag, "in/image");
    mr_arena_deinit(&arena);
}

TEST(proto_refuses_deep_nesting)
{
    mr_error error = {0};
    mr_arena arena = {0};
    /* AttrValue.list.func.attr.value …: each iteration wraps the message in four tags and lengths. */
    uint8_t bytes[4096];
    size_t end = sizeof bytes, begin = end;
    static const uint8_t tags[] = {0x12, 0x12, 0x4a, 0x0a}; /* value, attr, func, list: innermost first */
    for (int depth = 0; depth < 200; depth++) {
        size_t length = end - begin;
        if (length >= 0x80) bytes[--begin] = (uint8_t)(length >> 7);
        bytes[--begin] = (uint8_t)((length & 0x7f) | (length >= 0x80 ? 0x80 : 0));
        bytes[--begin] = tags[depth % 4];
    }
    Mr__AttrValue *value;
    mr_string message = {(const char *)bytes + begin, end - begin};
    CHECK_STATUS(mr_proto_unpack_as(attr_value, message, &arena, &value, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "too deep");
    mr_arena_deinit(&arena);
}

TEST(proto_keeps_unknown_fields)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_string message = MR_STR("\x0a\x04loss\xfa\x07\x03xyz"), packed; /* tag, and field 127 */
    Mr__Summary__Value *value;
    CHECK_OK(mr_proto_unpack_as(summary__value, message, &arena, &value, &error));
    CHECK_STR(value->tag, "loss");
    CHECK_OK(mr_proto_pack(value, &arena, &packed, &error));
    CHECK(mr_string_equal(packed, message));
    mr_arena_deinit(&arena);
}
