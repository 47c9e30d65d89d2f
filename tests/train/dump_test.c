/* Dumps: what a run computes is what the reader finds; selections, limits, damaged and foreign files. */
#include "tests/train/monitored.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct dumped {
    mr_graph *graph;
    mr_session *session;
    mr_dumper *dumper;
} dumped;

static dumped start(mr_graph *g, const mr_dump_options *options)
{
    mr_error error = {0};
    dumped d = {.graph = g};
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .no_optimization = true), &d.session, &error));
    CHECK_OK(mr_dumper_new(test_path("dumps"), options, &d.dumper, &error));
    return d;
}

static mr_status run_dumped(dumped *d, mr_feeds feeds, mr_outputs fetches, mr_error *error)
{
    const mr_watch *watch = nullptr;
    mr_tensor results[8] = {0};
    CHECK(fetches.count <= 8);
    mr_status status = mr_dumper_begin(d->dumper, d->graph, feeds, fetches, &watch, error);
    if (status != MR_OK) return status;
    status = mr_session_run_with(d->session, MR_OPTIONS(mr_run_options, .watch = watch), feeds, fetches, results,
                                 nullptr, 0, error);
    mr_dumper_end(d->dumper);
    for (int32_t i = 0; i < fetches.count; i++) mr_tensor_deinit(&results[i]);
    return status;
}

static void finish(dumped *d)
{
    mr_dumper_free(d->dumper);
    mr_session_free(d->session);
    mr_graph_free(d->graph);
}

/* The number of items of the node's output; *last: the index of the last one. */
static int count_of(const mr_dump *dump, const char *node, int32_t output, int32_t *last)
{
    int count = 0;
    for (int32_t i = 0; i < mr_dump_count(dump); i++) {
        const mr_dump_item *item = mr_dump_item_at(dump, i);
        if (strcmp(item->node, node) != 0 || item->output != output) continue;
        count++;
        *last = i;
    }
    return count;
}

static float float_of(const mr_dump *dump, int32_t index)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_dump_read(dump, index, &value, &error));
    CHECK_EQ(value.dtype, MR_FLOAT);
    float number = mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    return number;
}

TEST(a_dump_has_every_value_of_a_run)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "in/x");
    mr_output_range parts = mr_split(g, mr_constant_int32(g, 0), x, .num_split = 2, .name = "a/b/parts");
    mr_output sum = mr_add_v2(g, mr_output_at(parts, 0), mr_output_at(parts, 1), .name = "sum");
    mr_output text = mr_as_string(g, sum, .name = "text");
    dumped d = start(g, nullptr);
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(4), (float[]){1, 2, 30, 40}, &error));
    CHECK(mr_dumper_path(d.dumper) == nullptr);
    CHECK_OK(run_dumped(&d, MR_FEEDS({x, fed}), MR_OUTPUTS(text), &error));
    mr_dump *dump = nullptr;
    int32_t at = -1;
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), mr_dumper_count(d.dumper));
    CHECK_EQ(mr_dump_count(dump), 5); /* also the constant of the split */
    CHECK_EQ(count_of(dump, "a/b/parts", 1, &at), 1);
    CHECK(float_of(dump, at) == 30);
    CHECK_EQ(count_of(dump, "sum", 0, &at), 1);
    CHECK(float_of(dump, at) == 31);
    const mr_dump_item *item = mr_dump_item_at(dump, at);
    CHECK(strcmp(item->debug_op, "DebugIdentity") == 0);
    CHECK(strcmp(item->device, "/job:localhost/replica:0/task:0/device:CPU:0") == 0);
    CHECK(item->time_us > 1'600'000'000'000'000 && item->size_bytes > 8);
    CHECK_EQ(count_of(dump, "text", 0, &at), 1);
    CHECK_EQ(at, 4); /* the last one that was computed */
    mr_tensor words = {0};
    CHECK_OK(mr_dump_read(dump, at, &words, &error));
    CHECK(words.dtype == MR_STRING && mr_string_equal(mr_tensor_strings(&words)[1], mr_string_from("42.000000")));
    mr_tensor_deinit(&words);
    CHECK_STATUS(mr_dump_read(dump, 5, &words, &error), MR_OUT_OF_RANGE);
    CHECK_STATUS(mr_dump_read(dump, -1, &words, &error), MR_OUT_OF_RANGE);
    CHECK(mr_dump_item_at(dump, 5) == nullptr && mr_dumper_nonfinite(d.dumper) == nullptr);
    mr_dump_close(dump);

    char first[4096];
    snprintf(first, sizeof first, "%s", mr_dumper_path(d.dumper));
    CHECK_OK(run_dumped(&d, MR_FEEDS({x, fed}), MR_OUTPUTS(sum), &error));
    CHECK(strcmp(first, mr_dumper_path(d.dumper)) != 0); /* each run has its directory */
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 4);
    CHECK_EQ(mr_dumper_count(d.dumper), 9);
    mr_dump_close(dump);
    mr_tensor_deinit(&fed);
    finish(&d);
}

/* Values of all dtypes, of every kind of shape, come back with their bits. */
TEST(dumped_values_have_the_same_bits)
{
    static const mr_dtype dtypes[] = {MR_FLOAT, MR_DOUBLE, MR_INT32,     MR_UINT8,      MR_INT16, MR_INT8,
                                      MR_INT64, MR_BOOL,   MR_COMPLEX64, MR_COMPLEX128, MR_HALF,  MR_BFLOAT16};
    static const mr_shape shapes[] = {
        MR_SCALAR, {.rank = 1, .dims = {0}}, {.rank = 2, .dims = {3, 5}}, {.rank = 3, .dims = {2, 0, 4}}};
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output fed[48], seen[48];
    mr_tensor values[48] = {0};
    mr_feed feeds[48];
    int count = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++, count++) {
            CHECK_OK(mr_tensor_init(&values[count], dtypes[i], shapes[j], &error));
            size_t size = mr_tensor_size_bytes(&values[count]);
            for (size_t b = 0; b < size; b++)
                ((uint8_t *)values[count].data)[b] =
                    dtypes[i] == MR_BOOL ? (uint8_t)(b % 2) : (uint8_t)(b * 37 % 120); /* finite */
            char name[32];
            snprintf(name, sizeof name, "v%d", count);
            fed[count] = mr_placeholder(g, dtypes[i], .shape = shapes[j]);
            seen[count] = mr_identity(g, fed[count], .name = name);
            feeds[count] = (mr_feed){fed[count], values[count]};
        }
    dumped d = start(g, nullptr);
    const mr_watch *watch = nullptr;
    mr_tensor results[48] = {0};
    CHECK_OK(mr_dumper_begin(d.dumper, g, (mr_feeds){feeds, count}, (mr_outputs){seen, count}, &watch, &error));
    CHECK_OK(mr_session_run_with(d.session, MR_OPTIONS(mr_run_options, .watch = watch), (mr_feeds){feeds, count},
                                 (mr_outputs){seen, count}, results, nullptr, 0, &error));
    mr_dumper_end(d.dumper);
    mr_dump *dump = nullptr;
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    for (int i = 0; i < count; i++) {
        char name[32];
        int32_t at = -1;
        mr_tensor read = {0};
        snprintf(name, sizeof name, "v%d", i);
        CHECK_EQ(count_of(dump, name, 0, &at), 1);
        CHECK_OK(mr_dump_read(dump, at, &read, &error));
        CHECK(read.dtype == values[i].dtype && mr_shape_equal(read.shape, values[i].shape));
        size_t size = mr_tensor_size_bytes(&read);
        CHECK(size == 0 || memcmp(read.data, values[i].data, size) == 0);
        mr_tensor_deinit(&read);
        mr_tensor_deinit(&results[i]);
        mr_tensor_deinit(&values[i]);
    }
    mr_dump_close(dump);
    finish(&d);
}

/* Every iteration is there, in its order, although many have the same time. */
TEST(a_dump_has_every_iteration_of_a_loop)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output v[1], result[1];
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_float(g, 0)), v, .name = "loop");
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_float(g, 100)), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add_v2(g, v[0], mr_constant_float(g, 1), .name = "next")), result);
    dumped d = start(g, nullptr);
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(result[0]), &error));
    mr_dump *dump = nullptr;
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    float expected = 1;
    for (int32_t i = 0; i < mr_dump_count(dump); i++) {
        if (strcmp(mr_dump_item_at(dump, i)->node, "loop/next") != 0) continue;
        CHECK(float_of(dump, i) == expected);
        expected++;
    }
    CHECK(expected == 101);
    mr_dump_close(dump);
    finish(&d);
}

static bool is_named(void *context, const mr_watched *watched)
{
    return strcmp(watched->node, context) == 0 && strcmp(watched->op, "RealDiv") == 0;
}

static mr_graph *divisions(mr_output *last)
{
    mr_graph *g = mr_graph_new();
    mr_output one = mr_identity(g, mr_constant_float(g, 1), .name = "one"),
              zero = mr_identity(g, mr_constant_float(g, 0), .name = "zero");
    mr_output half = mr_real_div(g, one, mr_constant_float(g, 2), .name = "half");
    mr_output infinite = mr_real_div(g, half, zero, .name = "infinite");
    mr_output nan = mr_sub(g, infinite, infinite, .name = "nan");
    *last = mr_add_v2(g, nan, half, .name = "last");
    return g;
}

TEST(dumps_select_values)
{
    mr_error error = {0};
    mr_output last;
    mr_dump *dump = nullptr;
    int32_t at = -1;
    dumped d = start(divisions(&last), MR_OPTIONS(mr_dump_options, .nonfinite_only = true));
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error));
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 3);
    CHECK(strcmp(mr_dump_item_at(dump, 0)->node, "infinite") == 0);
    CHECK(strcmp(mr_dumper_nonfinite(d.dumper), "infinite:0") == 0);
    mr_dump_close(dump);
    finish(&d);

    d = start(divisions(&last), MR_OPTIONS(mr_dump_options, .selects = is_named, .context = "half"));
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error));
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 1);
    CHECK(float_of(dump, 0) == 0.5f);
    CHECK(strcmp(mr_dumper_nonfinite(d.dumper), "infinite:0") == 0); /* of all values */
    CHECK_OK(mr_dump_find(dump, mr_dump_has_inf_or_nan, nullptr, 0, &at, &error));
    CHECK_EQ(at, -1);
    mr_dump_close(dump);
    finish(&d);

    d = start(divisions(&last), nullptr);
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error));
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_OK(mr_dump_find(dump, mr_dump_has_inf_or_nan, nullptr, 0, &at, &error));
    CHECK(strcmp(mr_dump_item_at(dump, at)->node, "infinite") == 0);
    CHECK_OK(mr_dump_find(dump, mr_dump_has_inf_or_nan, nullptr, at + 1, &at, &error));
    CHECK(strcmp(mr_dump_item_at(dump, at)->node, "nan") == 0);
    CHECK_OK(mr_dump_find(dump, mr_dump_has_inf_or_nan, nullptr, INT32_MAX, &at, &error));
    CHECK_EQ(at, -1);
    mr_dump_close(dump);
    finish(&d);
}

/* One float of four bytes more than bytes_max. */
TEST(a_dump_has_a_limit)
{
    mr_error error = {0};
    mr_output last;
    mr_dump *dump = nullptr;
    dumped d = start(divisions(&last), MR_OPTIONS(mr_dump_options, .bytes_max = 9 * 4));
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error));
    CHECK_STATUS(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error), MR_RESOURCE_EXHAUSTED);
    CHECK(strstr(error.message, "bytes_max, 36") != nullptr);
    CHECK_EQ(mr_dumper_count(d.dumper), 9);
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 0); /* nothing of the second run */
    mr_dump_close(dump);
    finish(&d);
}

TEST(runs_of_a_dumper_follow_one_another)
{
    mr_error error = {0};
    mr_output last;
    const mr_watch *watch = nullptr;
    dumped d = start(divisions(&last), nullptr);
    CHECK_OK(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, MR_OUTPUTS(last), &watch, &error));
    CHECK_STATUS(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, MR_OUTPUTS(last), &watch, &error),
                 MR_FAILED_PRECONDITION);
    CHECK(watch == nullptr);
    mr_dumper_end(d.dumper);
    mr_dumper_end(d.dumper);
    mr_dumper_end(nullptr);
    CHECK_OK(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, (mr_outputs){0}, &watch, &error));
    mr_dumper *none = nullptr;
    CHECK_STATUS(mr_dumper_new("", nullptr, &none, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_new(nullptr, nullptr, &none, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_begin(nullptr, d.graph, MR_NO_FEEDS, (mr_outputs){0}, &watch, &error), MR_INVALID_ARGUMENT);
    mr_dumper_free(none);
    mr_dumper_end(d.dumper);
    const mr_output wrong = {last.node, 9};
    CHECK_STATUS(mr_dumper_new("x", nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_begin(d.dumper, d.graph, (mr_feeds){nullptr, 2}, (mr_outputs){0}, &watch, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, (mr_outputs){&last, -1}, &watch, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, (mr_outputs){&wrong, 1}, &watch, &error),
                 MR_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "fetches[0]") != nullptr);
    CHECK_STATUS(mr_dump_open("x", nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dump_read_file("x", nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dump_read(nullptr, 0, &(mr_tensor){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dump_find(nullptr, mr_dump_has_inf_or_nan, nullptr, 0, &(int32_t){0}, &error), MR_INVALID_ARGUMENT);
    const mr_watch empty = {0};
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run_with(d.session, MR_OPTIONS(mr_run_options, .watch = &empty), MR_NO_FEEDS,
                                     MR_OUTPUTS(last), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    finish(&d);
}

static mr_status refuse(void *context, const mr_watched *watched, mr_error *error)
{
    (void)error;
    return strcmp(watched->node, context) == 0 ? MR_ABORTED : MR_OK;
}

TEST(a_watch_can_end_a_run)
{
    mr_error error = {0};
    mr_output last;
    mr_tensor result = {0};
    dumped d = start(divisions(&last), nullptr);
    const mr_watch at_call = {.see = refuse, .context = "nan"}, at_constant = {.see = refuse, .context = "Const"};
    CHECK_STATUS(mr_session_run_with(d.session, MR_OPTIONS(mr_run_options, .watch = &at_call), MR_NO_FEEDS,
                                     MR_OUTPUTS(last), &result, nullptr, 0, &error),
                 MR_ABORTED);
    CHECK_STATUS(mr_session_run_with(d.session, MR_OPTIONS(mr_run_options, .watch = &at_constant), MR_NO_FEEDS,
                                     MR_OUTPUTS(last), &result, nullptr, 0, &error),
                 MR_ABORTED);
    CHECK_OK(mr_session_run(d.session, MR_NO_FEEDS, MR_OUTPUTS(last), &result, nullptr, 0, &error));
    mr_tensor_deinit(&result);
    finish(&d);
}

/* A variable, and what assigns to it, have the value of that time. */
TEST(references_have_the_values_of_their_variables)
{
    mr_error error = {0};
    model m = build();
    mr_dump *dump = nullptr;
    int32_t at = -1;
    mr_tensor result = {0};
    mr_node *init = mr_initialize_variables(m.graph, MR_GLOBAL_VARIABLES, "init");
    mr_output raised = mr_assign_add(m.graph, m.w.ref, mr_constant_float(m.graph, 4), .name = "raised");
    dumped d = start(m.graph, nullptr);
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, (mr_outputs){0}, &error)); /* nothing is computed */
    CHECK_OK(mr_session_run(d.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(raised), &error));
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(count_of(dump, "w", 0, &at), 1);
    CHECK(float_of(dump, at) == 1);
    CHECK_EQ(count_of(dump, "raised", 0, &at), 1);
    CHECK(float_of(dump, at) == 5);
    mr_dump_close(dump);
    mr_tensor_deinit(&result);
    finish(&d);
}

/* ---- Hooks ---- */

TEST(dumping_hooks_dump_each_run)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .hooks = MR_HOOKS(mr_dumping_hook(test_path("dumps")), mr_stop_at_step_hook(.last_step = 3))),
        &session, &error));
    CHECK_OK(run_all(session, &m, &error));
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    CHECK_EQ(files(test_path("dumps"), "run_"), 3);
    mr_graph_free(m.graph);

    m = build();
    CHECK_STATUS(
        mr_monitored_session_new(m.graph,
                                 MR_OPTIONS(mr_monitored_session_options,
                                            .hooks = MR_HOOKS(mr_dumping_hook(test_path("a")), mr_dumping_hook(""))),
                                 &session, &error),
        MR_INVALID_ARGUMENT);
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .hooks = MR_HOOKS(mr_dumping_hook(test_path("a")), mr_dumping_hook(test_path("b")))),
        &session, &error));
    CHECK_STATUS(run(session, &m, &error), MR_ALREADY_EXISTS);
    CHECK_STATUS(mr_monitored_session_close(session, MR_ALREADY_EXISTS, &error), MR_ALREADY_EXISTS);
    mr_graph_free(m.graph);
}

/* ---- Files of others ---- */

static void put(const char *path, const void *bytes, size_t size)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(descriptor >= 0 && write(descriptor, bytes, size) == (ssize_t)size);
    close(descriptor);
}

TEST(what_is_not_a_dump_is_refused)
{
    mr_error error = {0};
    mr_dump *dump = nullptr;
    mr_tensor value = {0};
    CHECK_STATUS(mr_dump_open("", &dump, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dump_open(nullptr, &dump, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_dump_open(test_path("none"), &dump, &error), MR_NOT_FOUND);
    CHECK(mkdir(test_path("d"), 0700) == 0);
    CHECK_STATUS(mr_dump_open(test_path("d"), &dump, &error), MR_INVALID_ARGUMENT);
    put(test_path("d/_tfdbg_graph_hash1_2"), "", 0); /* as in the directory of a device */
    CHECK_STATUS(mr_dump_open(test_path("d"), &dump, &error), MR_INVALID_ARGUMENT);
    CHECK(mkdir(test_path("d/_tfdbg_device_,job_localhost"), 0700) == 0);
    CHECK_OK(mr_dump_open(test_path("d"), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 0);
    mr_dump_close(dump);
    static const char *const names[] = {"x",
                                        "x_0_DebugIdentity",
                                        "x_0_DebugIdentity_",
                                        "x_DebugIdentity_12",
                                        "_0_DebugIdentity_12",
                                        "x_0__12",
                                        "x_4294967296_DebugIdentity_12",
                                        "x_0_DebugIdentity_1234567890123456789",
                                        "x_-1_DebugIdentity_12"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = test_path("d/_tfdbg_device_,job_localhost/%s", names[i]);
        put(path, "", 0);
        CHECK_STATUS(mr_dump_open(test_path("d"), &dump, &error), MR_DATA_LOSS);
        CHECK(strstr(error.message, names[i]) != nullptr);
        CHECK(unlink(path) == 0);
    }
    put(test_path("d/_tfdbg_device_,job_localhost/x_0_DebugIdentity_12-3"), "\x0a\x02nono", 6);
    CHECK_OK(mr_dump_open(test_path("d"), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 1);
    CHECK_EQ(mr_dump_item_at(dump, 0)->time_us, 12);
    CHECK(strcmp(mr_dump_item_at(dump, 0)->device, "/job:localhost") == 0);
    CHECK_STATUS(mr_dump_read(dump, 0, &value, &error), MR_DATA_LOSS);
    mr_dump_close(dump);
    /* A handle, as TensorFlow writes it: dtype 20, and its fields. */
    put(test_path("d/_tfdbg_device_,job_localhost/x_0_DebugIdentity_12-3"),
        "\x2a\x0e\x0a\x0c\x42\x0a\x08\x14\x22\x00\x72\x04\x0a\x02/a", 16);
    CHECK_OK(mr_dump_read_file(test_path("d/_tfdbg_device_,job_localhost/x_0_DebugIdentity_12-3"), &value, &error));
    CHECK_EQ(value.dtype, MR_DTYPE_INVALID);
    CHECK(mkfifo(test_path("d/_tfdbg_device_,job_localhost/pipe_0_DebugIdentity_12"), 0600) == 0);
    CHECK_STATUS(mr_dump_open(test_path("d"), &dump, &error), MR_DATA_LOSS); /* it would block a reader */
    const char *pipe = test_path("d/_tfdbg_device_,job_localhost/pipe_0_DebugIdentity_12");
    CHECK_STATUS(mr_dump_read_file(pipe, &value, &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_dump_read_file(test_path("d"), &value, &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_dump_read_file(test_path("none"), &value, &error), MR_NOT_FOUND);
}

/* Every prefix and many changes of a file give a value or an error. */
TEST(damaged_dumps_are_reported)
{
    mr_error error = {0};
    mr_output last;
    mr_dump *dump = nullptr;
    mr_tensor value = {0};
    dumped d = start(divisions(&last), nullptr);
    CHECK_OK(run_dumped(&d, MR_NO_FEEDS, MR_OUTPUTS(last), &error));
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    uint8_t bytes[1024];
    int descriptor = open(mr_dump_item_at(dump, 0)->path, O_RDONLY);
    ssize_t size = read(descriptor, bytes, sizeof bytes);
    close(descriptor);
    CHECK(size > 40 && size < (ssize_t)sizeof bytes);
    const char *path = test_path("damaged");
    for (ssize_t i = 0; i < size; i++) {
        put(path, bytes, (size_t)i);
        mr_status status = mr_dump_read_file(path, &value, &error);
        CHECK(status == MR_DATA_LOSS || (status == MR_OK && value.dtype == MR_DTYPE_INVALID));
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1u << bit);
            put(path, bytes, (size_t)size);
            status = mr_dump_read_file(path, &value, &error);
            CHECK(status == MR_OK || status == MR_DATA_LOSS || status == MR_UNIMPLEMENTED);
            mr_tensor_deinit(&value);
            bytes[i] ^= (uint8_t)(1u << bit);
        }
    }
    mr_dump_close(dump);
    finish(&d);
}

/* A name from outside that would leave the directory. */
TEST(names_of_nodes_do_not_leave_the_dump)
{
    static const char *const names[] = {"../x", "a/../../x", "a//x", "a/./x", "a/", "_tfdbg_graph_x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mr_error error = {0};
        mr_watched watched = {.node = names[i], .op = "Const", .device = "/device:CPU:0", .time_us = 1};
        mr_tensor value = {0};
        const mr_watch *watch = nullptr;
        mr_output last;
        dumped d = start(divisions(&last), nullptr);
        CHECK_OK(mr_tensor_init_float(&value, 1, &error));
        watched.value = &value;
        CHECK_OK(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, MR_OUTPUTS(last), &watch, &error));
        CHECK_STATUS(watch->see(watch->context, &watched, &error), MR_INVALID_ARGUMENT);
        CHECK(strstr(error.message, names[i]) != nullptr);
        mr_tensor_deinit(&value);
        finish(&d);
    }
}

/* ---- Threads ---- */

typedef struct worker {
    pthread_t thread;
    const mr_watch *watch;
    int number;
} worker;

static void *show_values(void *context)
{
    worker *w = context;
    char name[32];
    mr_error error = {0};
    for (int i = 0; i < 50; i++) {
        mr_tensor value = {0};
        snprintf(name, sizeof name, "n%d", i % 5);
        CHECK_OK(mr_tensor_init_float(&value, (float)w->number, &error));
        const mr_watched watched = {.node = name,
                                    .op = "Add",
                                    .output = w->number % 2,
                                    .device = "/device:CPU:0",
                                    .time_us = 7,
                                    .value = &value};
        CHECK_OK(w->watch->see(w->watch->context, &watched, &error));
        mr_tensor_deinit(&value);
    }
    return nullptr;
}

TEST(threads_write_values_of_one_time)
{
    mr_error error = {0};
    mr_output last;
    mr_dump *dump = nullptr;
    worker workers[4];
    dumped d = start(divisions(&last), nullptr);
    const mr_watch *watch = nullptr;
    CHECK_OK(mr_dumper_begin(d.dumper, d.graph, MR_NO_FEEDS, MR_OUTPUTS(last), &watch, &error));
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.watch = watch, .number = i};
        CHECK(pthread_create(&workers[i].thread, nullptr, show_values, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, nullptr);
    mr_dumper_end(d.dumper);
    CHECK_OK(mr_dump_open(mr_dumper_path(d.dumper), &dump, &error));
    CHECK_EQ(mr_dump_count(dump), 200);
    CHECK_EQ(mr_dumper_count(d.dumper), 200);
    mr_dump_close(dump);
    finish(&d);
}
