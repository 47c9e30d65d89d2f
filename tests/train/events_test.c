/* Event files written without a graph and read back; hyperparameters; the projector; the sentences for mistakes. */
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <unistd.h>

static const mr_event_message *next(mr_event_reader *reader)
{
    mr_error error = {0};
    const mr_event_message *event = nullptr;
    CHECK_OK(mr_event_reader_next(reader, &event, &error));
    return event;
}

TEST(event_values_are_read_as_written)
{
    mr_error error = {0};
    mr_event_writer *writer;
    mr_event_reader *reader;
    mr_tensor values = {0}, image = {0};
    const mr_event_message *event;
    int64_t numbers[] = {-3, 0, 5, 5};
    uint8_t pixels[12] = {9};
    CHECK_OK(mr_tensor_init_copy(&values, MR_INT64, MR_SHAPE(2, 2), numbers, &error));
    CHECK_OK(mr_tensor_init_copy(&image, MR_UINT8, MR_SHAPE(2, 6, 1), pixels, &error));
    CHECK_OK(mr_event_writer_open(test_directory(), &writer, &error));
    char *path = strdup(mr_event_writer_path(writer));
    CHECK_OK(mr_event_writer_add_histogram(writer, -7, "h", &values, &error));
    CHECK_OK(mr_event_writer_add_image(writer, 1, "i", &image, &error));
    CHECK_OK(mr_event_writer_add_text(writer, 2, "t", "words", &error));
    CHECK_OK(mr_event_writer_add_text(writer, INT64_MAX, "t", nullptr, &error));
    CHECK_OK(mr_event_writer_add_event(writer, MR_STR("\x10\x2a\x1a\x01v"), &error)); /* step 42, version "v" */
    CHECK_OK(mr_event_writer_flush(writer, &error));
    CHECK_OK(mr_event_reader_open(path, &reader, &error));
    event = next(reader);
    CHECK_EQ(event->kind, MR_EVENT_FILE_VERSION);
    CHECK(mr_string_equal(event->bytes, MR_STR("brain.Event:2")));
    event = next(reader);
    CHECK_EQ(event->step, -7);
    CHECK_STR(event->values[0].tag, "h");
    CHECK_NEAR(event->values[0].histogram.number, 4, 0);
    CHECK_NEAR(event->values[0].histogram.sum, 7, 0);
    event = next(reader);
    CHECK_EQ(event->values[0].image.width, 6);
    CHECK_EQ(event->values[0].image.channels, 1);
    event = next(reader);
    CHECK_STR(event->values[0].plugin_name, "text");
    CHECK(mr_string_equal(mr_tensor_strings(&event->values[0].tensor)[0], MR_STR("words")));
    event = next(reader);
    CHECK(event->step == INT64_MAX);
    CHECK_STR(event->values[0].plugin_name, ""); /* only the first value of a tag has metadata */
    event = next(reader);
    CHECK_EQ(event->step, 42);
    CHECK(event->wall_time == 0);
    CHECK_STATUS(mr_event_reader_next(reader, &event, &error), MR_OUT_OF_RANGE);
    CHECK(event == nullptr);
    mr_event_reader_close(reader);
    CHECK_OK(mr_event_writer_close(writer, &error));
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&image);
    free(path);
}

TEST(event_writer_reopens_in_a_new_file)
{
    mr_error error = {0};
    mr_event_writer *writer;
    mr_event_reader *reader;
    mr_event_writer_options options = {.size = sizeof options, .filename_suffix = ".s"};
    CHECK_OK(mr_event_writer_open_with(test_directory(), &options, &writer, &error));
    char *first = strdup(mr_event_writer_path(writer));
    CHECK_OK(mr_event_writer_add_text(writer, 1, "t", "a", &error));
    CHECK_OK(mr_event_writer_add_run_metadata(writer, 1, "run", (mr_string){0}, &error));
    CHECK_OK(mr_event_writer_reopen(writer, &error));
    CHECK(strcmp(first, mr_event_writer_path(writer)) != 0);
    CHECK_CONTAINS(mr_event_writer_path(writer), ".s");
    CHECK_OK(mr_event_writer_add_text(writer, 2, "t", "b", &error));
    CHECK_STATUS(mr_event_writer_add_run_metadata(writer, 2, "run", (mr_string){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"run\" of run metadata has been used");
    char *second = strdup(mr_event_writer_path(writer));
    CHECK_OK(mr_event_writer_close(writer, &error));
    CHECK_OK(mr_event_reader_open(second, &reader, &error));
    next(reader);
    CHECK_STR(next(reader)->values[0].plugin_name, "text"); /* each file has its metadata */
    mr_event_reader_close(reader);
    /* A file that is still being written ends in the middle of a record. */
    CHECK_OK(mr_event_reader_open(first, &reader, &error));
    mr_event_reader_close(reader);
    CHECK(truncate(first, 60) == 0);
    const mr_event_message *event;
    CHECK_OK(mr_event_reader_open(first, &reader, &error));
    next(reader);
    CHECK_STATUS(mr_event_reader_next(reader, &event, &error), MR_DATA_LOSS);
    mr_event_reader_close(reader);
    free(first);
    free(second);
}

#define FAILS(expected, call)                                                                                          \
    CHECK_STATUS((call), MR_INVALID_ARGUMENT);                                                                         \
    CHECK_CONTAINS(error.message, expected)

TEST(event_writer_names_mistakes)
{
    mr_error error = {0};
    mr_event_writer *w;
    mr_tensor text = {0}, bad = {0}, empty = {0}, numbers = {0};
    float values[] = {1, NAN};
    CHECK_OK(mr_tensor_init_string(&text, MR_STR("no image"), &error));
    CHECK_OK(mr_tensor_init_copy(&bad, MR_FLOAT, MR_SHAPE(2), values, &error));
    CHECK_OK(mr_tensor_init(&numbers, MR_FLOAT, MR_SHAPE(0, 3), &error));
    mr_event_writer_options options = {.size = sizeof options, .filename_suffix = "a/b"};
    FAILS("no slash", mr_event_writer_open_with(test_directory(), &options, &w, &error));
    options = (mr_event_writer_options){.size = sizeof options, .flush_secs = -1};
    FAILS("flush_secs is -1", mr_event_writer_open_with(test_directory(), &options, &w, &error));
    FAILS("is empty", mr_event_writer_open("", &w, &error));
    CHECK_OK(mr_event_writer_open(test_directory(), &w, &error));
    FAILS("no tag", mr_event_writer_add_scalar(w, 1, nullptr, 1, &error));
    FAILS("no tag", mr_event_writer_add_text(w, 1, "", "t", &error));
    FAILS("h: value 1 of the histogram is NaN", mr_event_writer_add_histogram(w, 1, "h", &bad, &error));
    FAILS("not of dtype string", mr_event_writer_add_histogram(w, 1, "h", &text, &error));
    FAILS("not of dtype invalid", mr_event_writer_add_histogram(w, 1, "h", nullptr, &error));
    FAILS("not float and [2]", mr_event_writer_add_image(w, 1, "i", &bad, &error));
    FAILS("not invalid and", mr_event_writer_add_image(w, 1, "i", &empty, &error));
    FAILS("i: ", mr_event_writer_add_image(w, 1, "i", &text, &error));
    FAILS("sample_rate is 0", mr_event_writer_add_audio(w, 1, "a", &bad, 0, &error));
    FAILS("not string and []", mr_event_writer_add_audio(w, 1, "a", &text, 8000, &error));
    FAILS("session event 9", mr_event_writer_add_session_log(w, 1, (mr_session_event)9, nullptr, &error));
    CHECK_OK(mr_event_writer_add_histogram(w, 1, "h", &numbers, &error));
    CHECK_STATUS(mr_event_writer_add_graph_def(w, 1, MR_STR("\x0a\xff"), &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_event_writer_add_meta_graph_def(w, 1, MR_STR("\x0a\xff"), &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_event_writer_add_run_metadata(w, 1, "r", MR_STR("\x0a\xff"), &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_event_writer_add_event(w, MR_STR("\x0a\xff"), &error), MR_DATA_LOSS);
    CHECK_OK(mr_event_writer_close(w, &error));
    mr_tensor_deinit(&text);
    mr_tensor_deinit(&bad);
    mr_tensor_deinit(&numbers);
}

TEST(hparams_and_projector_name_mistakes)
{
    mr_error error = {0};
    mr_event_writer *w;
    mr_hparam twice[] = {{.name = "a", .type = MR_HPARAM_BOOL}, {.name = "a", .type = MR_HPARAM_BOOL}};
    mr_hparam untyped = {.name = "a"}, unnamed = {.type = MR_HPARAM_BOOL};
    mr_hparam_info info = {.name = "x", .type = MR_HPARAM_STRING, .has_interval = true};
    mr_hparam_metric metric = {.tag = "m", .is_training = true, .is_validation = true};
    CHECK_OK(mr_event_writer_open(test_directory(), &w, &error));
    FAILS("a is given twice", mr_event_writer_add_hparams_start(w, twice, 2, nullptr, &error));
    FAILS("type 0 is not one of", mr_event_writer_add_hparams_start(w, &untyped, 1, nullptr, &error));
    FAILS("hyperparameter 0 has no name", mr_event_writer_add_hparams_start(w, &unnamed, 1, nullptr, &error));
    FAILS("has -1 items", mr_event_writer_add_hparams_start(w, twice, -1, nullptr, &error));
    FAILS("has 2 items, but is null", mr_event_writer_add_hparams_start(w, nullptr, 2, nullptr, &error));
    CHECK_OK(mr_event_writer_add_hparams_start(w, nullptr, 0, nullptr, &error));
    FAILS("status 0", mr_event_writer_add_hparams_end(w, (mr_hparams_status)0, 0, &error));
    FAILS("the time is", mr_event_writer_add_hparams_end(w, MR_HPARAMS_SUCCESS, NAN, &error));
    mr_hparams_experiment_options o = {.size = sizeof o, .hparams = &info, .hparam_count = 1};
    FAILS("x: an interval is of float64", mr_event_writer_add_hparams_experiment(w, &o, &error));
    o = (mr_hparams_experiment_options){.size = sizeof o, .metrics = &metric, .metric_count = 1};
    FAILS("metric m is both", mr_event_writer_add_hparams_experiment(w, &o, &error));
    CHECK_OK(mr_event_writer_add_hparams_experiment(w, nullptr, &error));
    CHECK_OK(mr_event_writer_close(w, &error));
    mr_projector_embedding e = {0};
    FAILS("embedding 0 has neither", mr_projector_config_write(test_directory(), nullptr, &e, 1, &error));
    e = (mr_projector_embedding){.tensor_name = "t", .sprite_width = 3};
    FAILS("a sprite has a path", mr_projector_config_write(test_directory(), nullptr, &e, 1, &error));
    e = (mr_projector_embedding){.tensor_name = "t", .rows = 3};
    FAILS("rows and columns are 3 and 0", mr_projector_config_write(test_directory(), nullptr, &e, 1, &error));
    FAILS("has -1 items", mr_projector_config_write(test_directory(), nullptr, nullptr, -1, &error));
    FAILS("is empty", mr_projector_config_write("", nullptr, nullptr, 0, &error));
    CHECK_OK(mr_projector_config_write(test_path("new/logs"), nullptr, nullptr, 0, &error));
}

/* Copies the records of a file many times, with some bytes changed. */
static int64_t write_damaged(const char *from, const char *to)
{
    mr_error error = {0};
    mr_record_reader *reader;
    mr_record_writer *writer;
    mr_string record;
    uint32_t random = 1;
    int64_t count = 0;
    CHECK_OK(mr_record_writer_open(to, nullptr, &writer, &error));
    for (int round = 0; round < 300; round++) {
        CHECK_OK(mr_record_reader_open(from, nullptr, &reader, &error));
        while (mr_record_reader_next(reader, &record, &error) == MR_OK) {
            char *bytes = malloc(record.size_bytes + 1);
            memcpy(bytes, record.data, record.size_bytes);
            for (int change = 0; change < round % 5; change++) {
                random = random * 1664525 + 1013904223;
                bytes[(random >> 8) % record.size_bytes] = (char)(random >> 3);
            }
            CHECK_OK(mr_record_writer_append(writer, bytes, record.size_bytes, &error));
            free(bytes);
            count++;
        }
        mr_record_reader_close(reader);
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    return count;
}

TEST(event_reader_continues_after_hostile_events)
{
    mr_error error = {0};
    mr_event_writer *writer;
    mr_event_reader *reader;
    mr_tensor values = {0}, image = {0};
    const mr_event_message *event;
    float numbers[] = {-3, 0, 5, 5};
    CHECK_OK(mr_tensor_init_copy(&values, MR_FLOAT, MR_SHAPE(2, 2), numbers, &error));
    CHECK_OK(mr_tensor_init_copy(&image, MR_UINT8, MR_SHAPE(2, 2, 1), numbers, &error));
    CHECK_OK(mr_event_writer_open(test_directory(), &writer, &error));
    char *path = strdup(mr_event_writer_path(writer));
    CHECK_OK(mr_event_writer_add_scalar(writer, 1, "s", 1, &error));
    CHECK_OK(mr_event_writer_add_histogram(writer, 1, "h", &values, &error));
    CHECK_OK(mr_event_writer_add_image(writer, 1, "i", &image, &error));
    CHECK_OK(mr_event_writer_add_audio(writer, 1, "a", &values, 8000, &error));
    CHECK_OK(mr_event_writer_add_text(writer, 2, "t", "words", &error));
    CHECK_OK(mr_event_writer_add_session_log(writer, 3, MR_SESSION_CHECKPOINT, "c", &error));
    CHECK_OK(mr_event_writer_add_run_metadata(writer, 3, "run", (mr_string){0}, &error));
    CHECK_OK(mr_event_writer_close(writer, &error));
    int64_t count = write_damaged(path, test_path("damaged")), good = 0, bad = 0;
    CHECK_OK(mr_event_reader_open(test_path("damaged"), &reader, &error));
    for (mr_status status = MR_OK; status != MR_OUT_OF_RANGE;) {
        status = mr_event_reader_next(reader, &event, &error);
        CHECK(status == MR_OK || status == MR_DATA_LOSS || status == MR_OUT_OF_RANGE);
        good += status == MR_OK;
        bad += status == MR_DATA_LOSS;
        for (int32_t i = 0; status == MR_OK && i < event->value_count; i++) CHECK(event->values[i].tag != nullptr);
    }
    CHECK_EQ(good + bad, count);
    CHECK(good > count / 5 && bad > 0);
    mr_event_reader_close(reader);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&image);
    free(path);
}
