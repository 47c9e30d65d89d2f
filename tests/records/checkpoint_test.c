/* Checkpoints: written values are read back, a partial checkpoint never exists, and damage is reported. */
#include "records/checkpoint/checkpoint.h"
#include "records/io/file.h"
#include "tests/test.h"

#include <unistd.h>

static void write_floats(mr_checkpoint_writer *writer, const char *key, mr_shape shape, float first)
{
    mr_error error = {0};
    mr_tensor value;
    CHECK_OK(mr_tensor_init(&value, MR_FLOAT, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&value); i++) mr_tensor_floats(&value)[i] = first + (float)i;
    CHECK_OK(mr_checkpoint_write(writer, key, &value, &error));
    mr_tensor_deinit(&value);
}

/* Keys "bias" [3], "name" (strings) [2], "step" (int64), "weights" [2,3], "empty" [0,4], "flag" (bool). */
static void write_sample(const char *path)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer;
    mr_tensor value;
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    write_floats(writer, "weights", MR_SHAPE(2, 3), 1);
    write_floats(writer, "bias", MR_SHAPE(3), 10);
    write_floats(writer, "empty", MR_SHAPE(0, 4), 0);
    CHECK_OK(mr_tensor_init_int64(&value, 1234567890123, &error));
    CHECK_OK(mr_checkpoint_write(writer, "step", &value, &error));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_tensor_init_bool(&value, true, &error));
    CHECK_OK(mr_checkpoint_write(writer, "flag", &value, &error));
    mr_tensor_deinit(&value);
    char text[300];
    memset(text, 'x', sizeof text);
    mr_string strings[] = {MR_STR("a\0b"), {text, sizeof text}};
    CHECK_OK(mr_tensor_init_strings(&value, MR_SHAPE(2), strings, &error));
    CHECK_OK(mr_checkpoint_write(writer, "name", &value, &error));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
}

TEST(checkpoint_reads_what_it_wrote)
{
    mr_error error = {0};
    mr_checkpoint_reader *reader;
    mr_tensor value;
    const char *path = test_path("deep/er/model.ckpt-7");
    write_sample(path);
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK_EQ(mr_checkpoint_count(reader), 6);
    mr_dtype dtype;
    mr_shape shape;
    CHECK_STR(mr_checkpoint_key(reader, 0, &dtype, &shape), "bias");
    CHECK_STR(mr_checkpoint_key(reader, 5, &dtype, &shape), "weights");
    CHECK(dtype == MR_FLOAT && mr_shape_equal(shape, MR_SHAPE(2, 3)));
    CHECK_OK(mr_checkpoint_read(reader, "weights", &value, &error));
    for (int i = 0; i < 6; i++) CHECK(mr_tensor_floats(&value)[i] == 1 + i);
    mr_tensor_deinit(&value);
    CHECK_OK(mr_checkpoint_read(reader, "step", &value, &error));
    CHECK_EQ(*mr_tensor_int64s(&value), 1234567890123);
    mr_tensor_deinit(&value);
    CHECK_OK(mr_checkpoint_read(reader, "empty", &value, &error));
    CHECK(mr_shape_equal(value.shape, MR_SHAPE(0, 4)));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_checkpoint_read(reader, "name", &value, &error));
    CHECK(mr_string_equal(mr_tensor_strings(&value)[0], MR_STR("a\0b")));
    CHECK_EQ(mr_tensor_strings(&value)[1].size_bytes, 300);
    mr_tensor_deinit(&value);
    CHECK(mr_checkpoint_has(reader, "flag") && !mr_checkpoint_has(reader, "fla"));
    CHECK_STATUS(mr_checkpoint_read(reader, "absent", &value, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "absent");
    mr_checkpoint_reader_close(reader);
}

TEST(checkpoint_is_not_there_until_it_is_closed)
{
    mr_error error = {0};
    mr_checkpoint_reader *reader;
    mr_checkpoint_writer *writer;
    const char *path = test_path("model");
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    write_floats(writer, "weights", MR_SHAPE(1000, 300), 1);
    CHECK(!mr_file_exists(test_path("model.index")));
    CHECK(!mr_file_exists(test_path("model.data-00000-of-00001")));
    mr_checkpoint_writer_discard(writer);
    CHECK(!mr_file_exists(test_path("model.data-00000-of-00001.partial")));
    CHECK_STATUS(mr_checkpoint_reader_open(path, &reader, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "model.index");
}

/* What a process leaves that dies while it saves over a checkpoint: new data with the old index. */
TEST(checkpoint_interrupted_save_is_named)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer;
    mr_checkpoint_reader *reader;
    mr_tensor value;
    const char *path = test_path("model");
    write_sample(path);
    usleep(20'000);
    CHECK_OK(mr_checkpoint_writer_open(test_path("other"), &writer, &error));
    write_floats(writer, "weights", MR_SHAPE(100, 3), 5);
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    CHECK(rename(test_path("other.data-00000-of-00001"), test_path("model.data-00000-of-00001")) == 0);
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK_STATUS(mr_checkpoint_read(reader, "weights", &value, &error), MR_DATA_LOSS);
    CHECK(strstr(error.message,
                 "the data file is newer than its index; perhaps a save over this checkpoint was interrupted") !=
          nullptr);
    mr_checkpoint_reader_close(reader);
}

TEST(checkpoint_refuses_a_key_twice)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer;
    mr_tensor value;
    CHECK_OK(mr_checkpoint_writer_open(test_path("model"), &writer, &error));
    CHECK_OK(mr_tensor_init_float(&value, 1, &error));
    CHECK_OK(mr_checkpoint_write(writer, "w", &value, &error));
    CHECK_STATUS(mr_checkpoint_write(writer, "w", &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_write(writer, "", &value, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_checkpoint_write(writer, "a", &value, &error));
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    mr_tensor_deinit(&value);
}

/* Reads everything; returns the first status other than MR_OK. */
static mr_status read_all(const char *path, mr_error *error)
{
    mr_checkpoint_reader *reader;
    MR_TRY(mr_checkpoint_reader_open(path, &reader, error));
    mr_status status = MR_OK;
    for (int32_t i = 0; i < mr_checkpoint_count(reader) && status == MR_OK; i++) {
        mr_tensor value;
        status = mr_checkpoint_read(reader, mr_checkpoint_key(reader, i, nullptr, nullptr), &value, error);
        if (status == MR_OK) mr_tensor_deinit(&value);
    }
    mr_checkpoint_reader_close(reader);
    return status;
}

static void damage_each_byte(const char *path, const char *file)
{
    mr_error error = {0};
    char *bytes;
    size_t size_bytes;
    CHECK_OK(mr_file_read_all(file, 1 << 20, &bytes, &size_bytes, &error));
    for (size_t i = 0; i < size_bytes; i += 3) {
        bytes[i] ^= 0x41;
        CHECK_OK(mr_file_write_all(file, bytes, size_bytes, &error));
        bytes[i] ^= 0x41;
        mr_status status = read_all(path, &error);
        CHECK(status == MR_OK || status == MR_DATA_LOSS || status == MR_UNIMPLEMENTED);
    }
    CHECK_OK(mr_file_write_all(file, bytes, size_bytes / 2, &error));
    CHECK_STATUS(read_all(path, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, path);
    CHECK_OK(mr_file_write_all(file, bytes, size_bytes, &error));
    free(bytes);
}

TEST(checkpoint_damage_is_data_loss)
{
    mr_error error = {0};
    const char *path = test_path("model");
    write_sample(path);
    damage_each_byte(path, test_path("model.index"));
    CHECK_OK(read_all(path, &error));
    damage_each_byte(path, test_path("model.data-00000-of-00001"));
    CHECK_OK(read_all(path, &error));
    CHECK_OK(mr_file_remove(test_path("model.data-00000-of-00001"), &error));
    CHECK_STATUS(read_all(path, &error), MR_NOT_FOUND);
}

/* ---- Slices ---- */

TEST(checkpoint_slice_text)
{
    mr_error error = {0};
    mr_shape full;
    mr_checkpoint_slice slice;
    bool is_slice;
    CHECK_OK(mr_checkpoint_slice_parse(MR_STR(""), &is_slice, &full, &slice, &error));
    CHECK(!is_slice);
    CHECK_OK(mr_checkpoint_slice_parse(MR_STR("10 4 2,5:-"), &is_slice, &full, &slice, &error));
    CHECK(is_slice && mr_shape_equal(full, MR_SHAPE(10, 4)) && slice.starts[0] == 2 && slice.lengths[0] == 5);
    CHECK(slice.starts[1] == 0 && slice.lengths[1] == -1);
    const char *bad[] = {"10", "10 4", "10 4 0,5", "10 4 0,11:-", "10 4 0,5:-:-", "x 4 0,5:-", "10 4 0,5:- ", " "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(mr_checkpoint_slice_parse(mr_string_from(bad[i]), &is_slice, &full, &slice, &error),
                     MR_INVALID_ARGUMENT);
}

/* [4, 3] in slices of two rows; the value of each element is its position. */
static void write_slice(mr_checkpoint_writer *writer, const char *key, int64_t start, int64_t length)
{
    mr_error error = {0};
    mr_tensor value;
    CHECK_OK(mr_tensor_init(&value, MR_INT32, MR_SHAPE(length, 3), &error));
    for (int64_t i = 0; i < length * 3; i++) mr_tensor_int32s(&value)[i] = (int32_t)(start * 3 + i);
    mr_checkpoint_slice slice = {.rank = 2, .starts = {start, 0}, .lengths = {length, -1}};
    CHECK_OK(mr_checkpoint_write_slice(writer, key, MR_SHAPE(4, 3), &slice, &value, &error));
    mr_tensor_deinit(&value);
}

TEST(checkpoint_slices_are_put_together)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer;
    mr_checkpoint_reader *reader;
    mr_tensor value;
    const char *path = test_path("model");
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    write_slice(writer, "table", 2, 2);
    write_slice(writer, "table", 0, 2);
    write_slice(writer, "partial", 0, 2);
    write_slice(writer, "double", 0, 2);
    write_slice(writer, "double", 1, 2);
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK_EQ(mr_checkpoint_count(reader), 3);
    CHECK_OK(mr_checkpoint_read(reader, "table", &value, &error));
    for (int i = 0; i < 12; i++) CHECK_EQ(mr_tensor_int32s(&value)[i], i);
    mr_tensor_deinit(&value);
    mr_checkpoint_slice column = {.rank = 2, .starts = {1, 1}, .lengths = {3, 1}};
    CHECK_OK(mr_checkpoint_read_slice(reader, "table", nullptr, &column, &value, &error));
    CHECK(mr_shape_equal(value.shape, MR_SHAPE(3, 1)));
    for (int i = 0; i < 3; i++) CHECK_EQ(mr_tensor_int32s(&value)[i], 4 + 3 * i);
    mr_tensor_deinit(&value);
    CHECK_STATUS(mr_checkpoint_read(reader, "partial", &value, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "do not cover");
    CHECK_STATUS(mr_checkpoint_read(reader, "double", &value, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "overlap");
    mr_checkpoint_reader_close(reader);
}

/* ---- The file "checkpoint" ---- */

TEST(checkpoint_state_moves_with_its_directory)
{
    mr_error error = {0};
    char path[4096];
    const char *directory = test_directory();
    CHECK_STATUS(mr_latest_checkpoint(directory, path, sizeof path, &error), MR_NOT_FOUND);
    const char *paths[] = {test_path("model-1"), test_path("mo\"d\xc3\xa9l-2")};
    CHECK_OK(mr_checkpoint_state_write(directory, nullptr, paths, 2, &error));
    mr_checkpoint_state state;
    CHECK_OK(mr_checkpoint_state_read(directory, nullptr, &state, &error));
    CHECK_EQ(state.count, 2);
    CHECK_STR(state.latest, paths[1]);
    CHECK_STR(state.paths[0], paths[0]);
    mr_checkpoint_state_deinit(&state);
    char *text;
    size_t size_bytes;
    CHECK_OK(mr_file_read_all(test_path("checkpoint"), 4096, &text, &size_bytes, &error));
    CHECK_STR(text, "model_checkpoint_path: \"mo\\\"d\\303\\251l-2\"\n"
                    "all_model_checkpoint_paths: \"model-1\"\n"
                    "all_model_checkpoint_paths: \"mo\\\"d\\303\\251l-2\"\n");
    free(text);
    /* The named checkpoint does not exist at first. */
    CHECK_STATUS(mr_latest_checkpoint(directory, path, sizeof path, &error), MR_DATA_LOSS);
    write_sample(paths[1]);
    CHECK_OK(mr_latest_checkpoint(directory, path, sizeof path, &error));
    CHECK_STR(path, paths[1]);
    CHECK_STATUS(mr_latest_checkpoint(directory, path, 5, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_checkpoint_remove(paths[1], &error));
    CHECK(!mr_file_exists(test_path("mo\"d\xc3\xa9l-2.index")));
}

TEST(checkpoint_state_damaged)
{
    mr_error error = {0};
    mr_checkpoint_state state;
    const char *bad[] = {"model_checkpoint_path: x\n", "model_checkpoint_path: \"x\n", "model_checkpoint_path: \"\"",
                         "all_model_checkpoint_paths: \"a\\000b\"\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(mr_file_write_all(test_path("checkpoint"), bad[i], strlen(bad[i]), &error));
        CHECK_STATUS(mr_checkpoint_state_read(test_directory(), nullptr, &state, &error), MR_DATA_LOSS);
    }
    const char *good = "# written by hand\n\nmodel_checkpoint_path : '/abs/x'\r\nlast_preserved_timestamp: 1.5\n";
    CHECK_OK(mr_file_write_all(test_path("checkpoint"), good, strlen(good), &error));
    CHECK_OK(mr_checkpoint_state_read(test_directory(), nullptr, &state, &error));
    CHECK_STR(state.latest, "/abs/x");
    mr_checkpoint_state_deinit(&state);
}
