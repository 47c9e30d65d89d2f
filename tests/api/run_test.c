/* millrace/run.h: graphs that are run by name with flat arrays. */
#include "tests/test.h"

#include <millrace/millrace.h>

#include <pthread.h>
#include <stddef.h>
#include <string.h>

static mr_error error;

/* A graph with x, y = 2x + 1; s, a copy of a string; w, a variable that is assigned x. */
static void export_graph(mr_tensor *bytes)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_add(g, mr_mul(g, x, mr_constant_float(g, 2)), mr_constant_float(g, 1), .name = "y");
    mr_identity(g, x, .name = "same");
    mr_identity(g, mr_placeholder(g, MR_STRING, .shape = MR_SHAPE_UNKNOWN, .name = "text"), .name = "s");
    mr_identity(g, mr_placeholder(g, MR_BOOL, .shape = MR_SHAPE_UNKNOWN, .name = "flags"), .name = "b");
    mr_output w = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "w");
    mr_assign_variable_op(g, w, x, .name = "assign");
    mr_read_variable_op(g, w, MR_FLOAT, .name = "read");
    CHECK_OK(mr_graph_export(g, bytes, &error));
    mr_graph_free(g);
}

static mr_runner *new_runner(void)
{
    mr_tensor bytes = {0};
    mr_runner *runner = nullptr;
    export_graph(&bytes);
    mr_string graph_def = mr_tensor_strings(&bytes)[0];
    CHECK_OK(mr_runner_new(graph_def.data, graph_def.size_bytes, nullptr, &runner, &error));
    mr_tensor_deinit(&bytes);
    return runner;
}

static mr_runner_step *prepare(mr_runner *runner, const char *feed, const char *fetch, const char *target)
{
    mr_runner_step *step = nullptr;
    CHECK_OK(mr_runner_prepare(runner, &feed, feed != nullptr, &fetch, fetch != nullptr, &target, target != nullptr,
                               &step, &error));
    return step;
}

static mr_array vector_of(float *numbers, int64_t count)
{
    return (mr_array){
        .dtype = MR_FLOAT, .rank = 1, .dims = {count}, .data = numbers, .size_bytes = (size_t)count * sizeof *numbers};
}

TEST(run_layout_is_fixed)
{
    static_assert(sizeof(mr_array) == 136 && offsetof(mr_array, data) == 104 && offsetof(mr_array, owner) == 128);
    static_assert(sizeof(mr_error) == 4 + MR_ERROR_SIZE && sizeof(mr_session_options) == 56);
    CHECK_EQ(mr_run_version(), MR_RUN_VERSION);
}

TEST(run_with_options)
{
    float numbers[4] = {0};
    mr_runner *runner = new_runner();
    mr_runner_step *step = prepare(runner, "x", "y", nullptr);
    mr_array metadata, *feed = mr_runner_feeds(step);
    const char trace[] = "\x08\x03", no_options[] = "\xff\xff", pool[] = "\x18\x03";
    *feed = vector_of(numbers, 4);
    CHECK_OK(mr_runner_run_with(step, nullptr, 0, nullptr, &error));
    CHECK_OK(mr_runner_run_with(step, trace, 2, nullptr, &error));
    CHECK_OK(mr_runner_run_with(step, nullptr, 0, &metadata, &error));
    CHECK(metadata.dtype == MR_STRING && ((const mr_string *)metadata.data)->size_bytes == 0);
    mr_runner_release(metadata.owner);
    CHECK_OK(mr_runner_run_with(step, trace, 2, &metadata, &error));
    CHECK(((const mr_string *)metadata.data)->size_bytes > 0);
    CHECK(((float *)mr_runner_results(step)->data)[3] == 1);
    mr_runner_release(metadata.owner);
    CHECK_STATUS(mr_runner_run_with(step, no_options, 2, &metadata, &error), MR_INVALID_ARGUMENT);
    CHECK(metadata.owner == nullptr && strcmp(error.message, "Unparseable RunOptions proto") == 0);
    CHECK_STATUS(mr_runner_run_with(step, pool, 2, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_runner_run_with(step, nullptr, 2, nullptr, &error), MR_INVALID_ARGUMENT);
    feed->rank = -1;
    CHECK_STATUS(mr_runner_run_with(step, trace, 2, &metadata, &error), MR_INVALID_ARGUMENT);
    CHECK(metadata.owner == nullptr);
    CHECK_OK(mr_runner_reset(runner, nullptr, 0, &error));
    mr_runner_step_free(step);
    mr_runner_free(runner);
}

TEST(run_small_and_large_results)
{
    static float numbers[1000];
    mr_runner *runner = new_runner();
    mr_runner_step *step = prepare(runner, "x", "y:0", nullptr);
    mr_array *feed = mr_runner_feeds(step), *result = mr_runner_results(step);
    for (int64_t count = 0; count <= 1000; count += 100) {
        for (int64_t i = 0; i < count; i++) numbers[i] = (float)(i + count);
        *feed = vector_of(numbers, count);
        CHECK_OK(mr_runner_run(step, &error));
        CHECK_EQ(result->dtype, MR_FLOAT);
        CHECK_EQ(result->rank, 1);
        CHECK_EQ(result->dims[0], count);
        CHECK_EQ(result->size_bytes, (size_t)count * sizeof(float));
        CHECK_EQ(result->owner != nullptr, count > 128);
        for (int64_t i = 0; i < count; i++) CHECK(((float *)result->data)[i] == 2 * numbers[i] + 1);
    }
    mr_tensor *kept = result->owner;
    float *data = result->data;
    result->owner = nullptr;
    mr_runner_step_free(step);
    mr_runner_free(runner);
    CHECK(data[999] == 2 * numbers[999] + 1);
    data[999] = 0;
    mr_runner_release(kept);
}

/* A result that is the fed value has memory of its own, and so has a variable that is assigned one. */
TEST(run_never_keeps_fed_memory)
{
    static float numbers[1000];
    mr_runner *runner = new_runner();
    mr_runner_step *same = prepare(runner, "x", "same", nullptr), *fed = prepare(runner, "x", "x:0", nullptr);
    mr_runner_step *assign = prepare(runner, "x:0", nullptr, "assign"),
                   *read = prepare(runner, nullptr, "read", nullptr);
    mr_runner_step *steps[] = {same, fed};
    for (int i = 0; i < 2; i++) {
        numbers[500] = 7;
        *mr_runner_feeds(steps[i]) = vector_of(numbers, 1000);
        CHECK_OK(mr_runner_run(steps[i], &error));
        numbers[500] = 8;
        CHECK(((float *)mr_runner_results(steps[i])->data)[500] == 7);
    }
    *mr_runner_feeds(assign) = vector_of(numbers, 1000);
    CHECK_OK(mr_runner_run(assign, &error));
    numbers[500] = 9;
    CHECK_OK(mr_runner_run(read, &error));
    CHECK(((float *)mr_runner_results(read)->data)[500] == 8);
    ((float *)mr_runner_results(read)->data)[500] = 10;
    CHECK_OK(mr_runner_run(read, &error));
    CHECK(((float *)mr_runner_results(read)->data)[500] == 8);
    mr_runner_step_free(same);
    mr_runner_step_free(fed);
    mr_runner_step_free(assign);
    mr_runner_free(runner);
    mr_runner_step_free(read);
}

TEST(run_strings)
{
    mr_runner *runner = new_runner();
    mr_runner_step *step = prepare(runner, "text:0", "s:0", nullptr);
    char bytes[] = "ab\0cde";
    int64_t sizes[] = {2, 0, 4};
    *mr_runner_feeds(step) =
        (mr_array){.dtype = MR_STRING, .rank = 1, .dims = {3}, .data = bytes, .size_bytes = 6, .sizes = sizes};
    CHECK_OK(mr_runner_run(step, &error));
    const mr_string *strings = mr_runner_results(step)->data;
    CHECK_EQ(mr_runner_results(step)->size_bytes, 3 * sizeof(mr_string));
    CHECK(mr_string_equal(strings[0], MR_STR("ab")) && strings[1].size_bytes == 0);
    CHECK(mr_string_equal(strings[2], MR_STR("\0cde")));
    sizes[2] = 5;
    CHECK_STATUS(mr_runner_run(step, &error), MR_INVALID_ARGUMENT);
    sizes[2] = -1;
    CHECK_STATUS(mr_runner_run(step, &error), MR_INVALID_ARGUMENT);
    mr_runner_step_free(step);
    mr_runner_free(runner);
}

TEST(run_rejects_invalid_arrays)
{
    float numbers[4] = {0};
    mr_runner *runner = new_runner();
    mr_runner_step *step = prepare(runner, "x", "y", nullptr);
    mr_array valid = vector_of(numbers, 4), *feed = mr_runner_feeds(step);
    for (int i = 0; i < 9; i++) {
        mr_array bad = valid;
        if (i == 0) bad.rank = 9;
        if (i == 1) bad.rank = -1;
        if (i == 2) bad.dims[0] = -4;
        if (i == 3) bad.dims[0] = INT64_MAX;
        if (i == 4) bad.size_bytes = 15;
        if (i == 5) bad.data = nullptr;
        if (i == 6) bad.dtype = MR_DTYPE_COUNT;
        if (i == 7) bad.dtype = -1;
        if (i == 8) bad.dtype = MR_RESOURCE;
        *feed = bad;
        CHECK_STATUS(mr_runner_run(step, &error), MR_INVALID_ARGUMENT);
        CHECK(strstr(error.message, "feed 0") != nullptr && mr_runner_results(step)->data == nullptr);
    }
    *feed = valid;
    feed->dtype = MR_INT32;
    CHECK_STATUS(mr_runner_run(step, &error), MR_INVALID_ARGUMENT);
    *feed = valid;
    CHECK_OK(mr_runner_run(step, &error));
    mr_runner_step_free(step);
    step = prepare(runner, "flags", "b", nullptr);
    unsigned char flags[] = {0, 1, 2};
    *mr_runner_feeds(step) = (mr_array){.dtype = MR_BOOL, .rank = 1, .dims = {3}, .data = flags, .size_bytes = 3};
    CHECK_STATUS(mr_runner_run(step, &error), MR_INVALID_ARGUMENT);
    mr_runner_step_free(step);
    mr_runner_free(runner);
}

TEST(run_feeds_fetched_handles)
{
    float numbers[] = {1, 2, 3};
    mr_runner *runner = new_runner();
    mr_runner_step *handle = nullptr, *assign = prepare(runner, "x", nullptr, "assign");
    const char *fetch = "w:0";
    if (mr_runner_prepare(runner, nullptr, 0, &fetch, 1, nullptr, 0, &handle, &error) != MR_OK) {
        mr_runner_step_free(assign);
        mr_runner_free(runner);
        test_skip("%s", error.message);
    }
    *mr_runner_feeds(assign) = vector_of(numbers, 3);
    CHECK_OK(mr_runner_run(assign, &error));
    CHECK_OK(mr_runner_run(handle, &error));
    mr_array *result = mr_runner_results(handle);
    CHECK(result->dtype == MR_RESOURCE && result->data == nullptr && result->owner != nullptr);
    mr_runner_step *read = prepare(runner, "w:0", "read:0", nullptr);
    mr_runner_feeds(read)->owner = result->owner;
    CHECK_OK(mr_runner_run(read, &error));
    CHECK(mr_runner_feeds(read)->owner == nullptr && ((float *)mr_runner_results(read)->data)[2] == 3);
    mr_runner_step_free(read);
    mr_runner_step_free(assign);
    mr_runner_step_free(handle);
    mr_runner_free(runner);
}

TEST(run_names_that_do_not_exist)
{
    mr_runner *runner = new_runner();
    mr_array description;
    int32_t count = 0;
    mr_runner_step *step = nullptr;
    static const char *const missing[] = {"z", "x:1", "x:", "x:-1", "x:0:0", "x:99999999999", "", ":0"};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        CHECK_STATUS(mr_runner_describe(runner, missing[i], &description, &error), MR_NOT_FOUND);
        CHECK_STATUS(mr_runner_prepare(runner, nullptr, 0, &missing[i], 1, nullptr, 0, &step, &error), MR_NOT_FOUND);
        CHECK_STATUS(mr_runner_prepare(runner, &missing[i], 1, nullptr, 0, nullptr, 0, &step, &error), MR_NOT_FOUND);
        CHECK_STATUS(mr_runner_prepare(runner, nullptr, 0, nullptr, 0, &missing[i], 1, &step, &error), MR_NOT_FOUND);
        CHECK(step == nullptr);
    }
    CHECK_OK(mr_runner_describe(runner, "x:0", &description, &error));
    CHECK(description.dtype == MR_FLOAT && description.rank == 1 && description.dims[0] == -1);
    CHECK_OK(mr_runner_output_count(runner, "assign", &count, &error));
    CHECK_EQ(count, 0);
    CHECK_STATUS(mr_runner_output_count(runner, "z", &count, &error), MR_NOT_FOUND);
    mr_runner_free(runner);
}

/* Nodes that are added may use earlier ones, as data and as control inputs; variables keep their values. */
TEST(run_extend)
{
    float numbers[] = {1, 2, 3};
    mr_runner *runner = new_runner();
    mr_runner_step *assign = prepare(runner, "x", nullptr, "assign"), *y = prepare(runner, "x", "y", nullptr);
    *mr_runner_feeds(assign) = vector_of(numbers, 3);
    CHECK_OK(mr_runner_run(assign, &error));

    static const char more[] = "\n\x20\n\x01z\x12\x06Square\x1a\x06read:0\x1a\x02^y*\x07\n\x01T\x12\x02\x30\x01";
    CHECK_OK(mr_runner_extend(runner, more, sizeof more - 1, &error));
    CHECK_STATUS(mr_runner_extend(runner, more, sizeof more - 1, &error), MR_ALREADY_EXISTS);
    mr_runner_step *z = prepare(runner, "x", "z", nullptr);
    *mr_runner_feeds(z) = vector_of(numbers, 3);
    CHECK_OK(mr_runner_run(z, &error));
    CHECK(((float *)mr_runner_results(z)->data)[2] == 9);
    *mr_runner_feeds(y) = vector_of(numbers, 3);
    CHECK_OK(mr_runner_run(y, &error));

    static const char missing[] = "\n\x1a\n\x01q\x12\x06Square\x1a\x04none*\x07\n\x01T\x12\x02\x30\x01";
    CHECK_STATUS(mr_runner_extend(runner, missing, sizeof missing - 1, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_runner_extend(runner, "garbage", 7, &error), MR_INVALID_ARGUMENT);

    mr_array graph = {0};
    mr_runner *copy = nullptr;
    CHECK_OK(mr_runner_export(runner, &graph, &error));
    const mr_string *bytes = graph.data;
    CHECK_OK(mr_runner_new(bytes->data, bytes->size_bytes, nullptr, &copy, &error));
    mr_runner_release(graph.owner);
    int32_t count = 0;
    CHECK_OK(mr_runner_output_count(copy, "z", &count, &error));
    mr_runner_free(copy);
    mr_runner_step_free(z);
    mr_runner_step_free(y);
    mr_runner_step_free(assign);
    mr_runner_free(runner);
}

typedef struct repeated_runs {
    mr_runner *runner;
    int failures;
} repeated_runs;

static void *run_repeatedly(void *context)
{
    repeated_runs *runs = context;
    mr_runner_step *step = prepare(runs->runner, "x", "y", nullptr);
    for (int i = 0; i < 200; i++) {
        float numbers[] = {(float)i};
        *mr_runner_feeds(step) = vector_of(numbers, 1);
        if (mr_runner_run(step, nullptr) != MR_OK) runs->failures++;
        if (((float *)mr_runner_results(step)->data)[0] != 2 * numbers[0] + 1) runs->failures++;
    }
    mr_runner_step_free(step);
    return nullptr;
}

TEST(run_while_the_graph_is_extended)
{
    repeated_runs runs[4] = {0};
    pthread_t threads[4];
    mr_runner *runner = new_runner();
    for (int i = 0; i < 4; i++) {
        runs[i].runner = runner;
        CHECK(pthread_create(&threads[i], nullptr, run_repeatedly, &runs[i]) == 0);
    }
    for (char name = 'A'; name <= 'Z'; name++) {
        char more[] = "\n\x1c\n\x01?\x12\x06Square\x1a\x06read:0*\x07\n\x01T\x12\x02\x30\x01";
        more[4] = name;
        CHECK_OK(mr_runner_extend(runner, more, sizeof more - 1, &error));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], nullptr);
        CHECK_EQ(runs[i].failures, 0);
    }
    mr_runner_free(runner);
}

TEST(run_after_close)
{
    float numbers[] = {1};
    mr_runner *runner = new_runner();
    mr_runner_step *step = prepare(runner, "x", "y", nullptr), *other = nullptr;
    mr_runner_close(runner);
    mr_runner_close(runner);
    *mr_runner_feeds(step) = vector_of(numbers, 1);
    CHECK_STATUS(mr_runner_run(step, &error), MR_CANCELLED);
    CHECK_STATUS(mr_runner_prepare(runner, nullptr, 0, nullptr, 0, nullptr, 0, &other, &error), MR_CANCELLED);
    mr_runner_free(runner);
    mr_runner_step_free(step);
}

/* Every allocation of a run may fail; nothing leaks, and a later run succeeds. */
TEST(run_without_memory)
{
    static float numbers[1000];
    if (test_allocations() < 0) test_skip("allocations are not counted");
    mr_runner *runner = new_runner();
    mr_status status = MR_RESOURCE_EXHAUSTED;
    for (int failing = 1; status != MR_OK && failing < 1000; failing++) {
        mr_runner_step *step = nullptr;
        const char *feed = "x", *fetches[] = {"y", "same"};
        test_fail_allocation(test_allocations() + failing);
        status = mr_runner_prepare(runner, &feed, 1, fetches, 2, nullptr, 0, &step, &error);
        if (status == MR_OK) {
            *mr_runner_feeds(step) = vector_of(numbers, 1000);
            status = mr_runner_run(step, &error);
        }
        test_fail_allocation(0);
        CHECK(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
        mr_runner_step_free(step);
    }
    CHECK_OK(status);
    mr_runner_free(runner);
}
