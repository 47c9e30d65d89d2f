/* Invalid arguments of sessions, runners, models and checkpoints: null pointers, negative counts, and tensors that the
 * program made and that are none. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

#include <string.h>

static mr_error error;

/* The call is refused with a message that contains the text. */
#define REFUSED(call, text)                                                                                            \
    do {                                                                                                               \
        error = (mr_error){0};                                                                                         \
        CHECK_EQ((int)(call), (int)MR_INVALID_ARGUMENT);                                                               \
        if (strstr(error.message, text) == nullptr)                                                                    \
            test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", error.message, text);                                 \
    } while (0)

static const mr_outputs no_outputs;

TEST(session_arguments)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1), p = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN, .name = "p");
    mr_session *s = nullptr;
    mr_step *step = nullptr;
    mr_tensor r[2] = {0};
    mr_node *target = x.node;
    CHECK(mr_session_new(nullptr, nullptr, &s, &error) != MR_OK && strstr(error.message, "mr_graph_new"));
    REFUSED(mr_session_new(g, nullptr, nullptr, &error), "session is null");
    REFUSED(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = -5), &s, &error),
            "session.threads is -5, but must be at least 0");
    CHECK_OK(mr_session_new(g, nullptr, &s, &error));
    for (int32_t count = -1; count > -4; count--) {
        REFUSED(mr_session_run(s, (mr_feeds){nullptr, count}, MR_OUTPUTS(x), r, nullptr, 0, &error),
                "feeds: the count");
        REFUSED(mr_session_run(s, MR_NO_FEEDS, (mr_outputs){&x, count}, r, nullptr, 0, &error), "fetches: the count");
        REFUSED(mr_session_run(s, MR_NO_FEEDS, MR_OUTPUTS(x), r, &target, count, &error), "targets: the count");
        REFUSED(mr_session_prepare(s, &p, count, MR_OUTPUTS(x), nullptr, 0, &step, &error), "feeds: the count");
        REFUSED(mr_session_prepare(s, nullptr, 0, (mr_outputs){&x, count}, nullptr, 0, &step, &error), "fetches");
        REFUSED(mr_session_prepare(s, nullptr, 0, MR_OUTPUTS(x), nullptr, count, &step, &error), "targets");
    }
    REFUSED(mr_session_run(nullptr, MR_NO_FEEDS, no_outputs, nullptr, nullptr, 0, &error), "session is null");
    REFUSED(mr_session_run(s, (mr_feeds){nullptr, 1}, no_outputs, nullptr, nullptr, 0, &error), "feeds is null");
    REFUSED(mr_session_run(s, MR_NO_FEEDS, (mr_outputs){nullptr, 1}, r, nullptr, 0, &error), "fetches is null");
    REFUSED(mr_session_run(s, MR_NO_FEEDS, MR_OUTPUTS(x), nullptr, nullptr, 0, &error), "results is null");
    REFUSED(mr_session_run(s, MR_NO_FEEDS, no_outputs, nullptr, nullptr, 1, &error), "targets is null");
    REFUSED(mr_session_prepare(s, nullptr, 0, MR_OUTPUTS(x), nullptr, 0, nullptr, &error), "step is null");
    REFUSED(mr_session_prepare(nullptr, nullptr, 0, MR_OUTPUTS(x), nullptr, 0, &step, &error), "session is null");
    CHECK(step == nullptr);
    CHECK_OK(mr_session_prepare(s, &p, 1, MR_OUTPUTS(p), nullptr, 0, &step, &error));
    REFUSED(mr_step_run(nullptr, r, r, &error), "step is null");
    REFUSED(mr_step_run(step, nullptr, r, &error), "values is null");
    REFUSED(mr_step_run(step, r, nullptr, &error), "results is null");
    REFUSED(mr_session_read_variable(s, x, nullptr, &error), "value is null");
    REFUSED(mr_session_read_variable(nullptr, x, r, &error), "session is null");
    REFUSED(mr_session_write_variable(s, x, nullptr, &error), "value is null");
    REFUSED(mr_cancellation_new(nullptr, &error), "cancellation is null");
    mr_session_cancel(nullptr);
    mr_cancellation_cancel(nullptr);
    mr_session_trace(nullptr, true);
    CHECK_EQ(mr_session_trace_times(nullptr, nullptr, 3), 0);
    CHECK_EQ(mr_session_trace_times(s, nullptr, 3), 0);
    CHECK(mr_session_log(nullptr)[0] == '\0');
    mr_session_free(s);
    mr_graph_free(g);
}

TEST(session_feeds_that_are_no_tensors)
{
    mr_graph *g = mr_graph_new();
    mr_output p = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN, .name = "p");
    mr_session *s = nullptr;
    mr_tensor r = {0};
    CHECK_OK(mr_session_new(g, nullptr, &s, &error));
    const struct {
        mr_tensor value;
        const char *text;
    } cases[] = {
        {{.dtype = MR_FLOAT}, "data"},
        {{.dtype = MR_FLOAT, .shape = {.rank = -1}}, "dimensions"},
        {{.dtype = MR_FLOAT, .shape = {.rank = MR_RANK_MAX + 1}}, "dimensions"},
        {{.dtype = MR_FLOAT, .shape = MR_SHAPE(-3)}, "not fully known"},
        {{.dtype = MR_FLOAT, .shape = MR_SHAPE(INT64_MAX, 4)}, "too large"},
        {{.dtype = (mr_dtype)77}, "Cannot feed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED(mr_session_run(s, MR_FEEDS({p, cases[i].value}), MR_OUTPUTS(p), &r, nullptr, 0, &error), cases[i].text);
    mr_tensor empty = {.dtype = MR_FLOAT, .shape = MR_SHAPE(0, 3)};
    CHECK_OK(mr_session_run(s, MR_FEEDS({p, empty}), MR_OUTPUTS(p), &r, nullptr, 0, &error));
    mr_tensor_deinit(&r);
    mr_session_free(s);
    mr_graph_free(g);
}

TEST(session_variants)
{
    mr_graph *g = mr_graph_new();
    mr_output shape = mr_constant_ints(g, (mr_ints){(const int64_t[]){0}, 0}), x = mr_constant_float(g, 3);
    mr_output list = mr_tensor_list_reserve(g, shape, mr_constant_int32(g, 2), MR_FLOAT);
    mr_output set = mr_tensor_list_set_item(g, list, mr_constant_int32(g, 1), x);
    mr_output fed = mr_placeholder(g, MR_VARIANT, .shape = MR_SCALAR, .name = "list");
    mr_output item = mr_tensor_list_get_item(g, fed, mr_constant_int32(g, 1), shape, MR_FLOAT);
    mr_output more = mr_tensor_list_push_back(g, fed, x), length = mr_tensor_list_length(g, more);
    mr_session *s = nullptr;
    mr_tensor variant = {0}, r[2] = {0};
    CHECK_OK(mr_session_new(g, nullptr, &s, &error));
    CHECK_OK(mr_session_run(s, MR_NO_FEEDS, MR_OUTPUTS(set), &variant, nullptr, 0, &error));
    CHECK_EQ(variant.dtype, MR_VARIANT);
    for (int i = 0; i < 3; i++) { /* the fed list does not change */
        mr_feeds feeds = MR_FEEDS({fed, variant});
        CHECK_OK(mr_session_run(s, feeds, MR_OUTPUTS(item, length), r, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&r[0])[0] == 3);
        CHECK_EQ(mr_tensor_int32s(&r[1])[0], 3);
        mr_tensor_deinit(&r[0]);
        mr_tensor_deinit(&r[1]);
    }
    mr_tensor_deinit(&variant);
    mr_session_free(s);
    mr_graph_free(g);
}

TEST(runner_arguments)
{
    mr_graph *g = mr_graph_new();
    mr_tensor bytes = {0};
    mr_runner *runner = nullptr;
    mr_runner_step *step = nullptr;
    mr_array array = {0};
    int32_t count = 0;
    const char *name = "Const";
    (void)mr_constant_float(g, 1);
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    mr_string def = mr_tensor_strings(&bytes)[0];
    REFUSED(mr_runner_new(def.data, def.size_bytes, nullptr, nullptr, &error), "runner is null");
    REFUSED(mr_runner_new(nullptr, 8, nullptr, &runner, &error), "graph_def is null");
    CHECK_OK(mr_runner_new(def.data, def.size_bytes, nullptr, &runner, &error));
    REFUSED(mr_runner_extend(nullptr, def.data, def.size_bytes, &error), "runner is null");
    REFUSED(mr_runner_extend(runner, nullptr, 8, &error), "graph_def is null");
    REFUSED(mr_runner_export(nullptr, &array, &error), "runner is null");
    REFUSED(mr_runner_export(runner, nullptr, &error), "result is null");
    REFUSED(mr_runner_describe(nullptr, name, &array, &error), "runner is null");
    REFUSED(mr_runner_describe(runner, nullptr, &array, &error), "null");
    REFUSED(mr_runner_describe(runner, name, nullptr, &error), "description is null");
    REFUSED(mr_runner_output_count(nullptr, name, &count, &error), "runner is null");
    REFUSED(mr_runner_output_count(runner, nullptr, &count, &error), "name is null");
    REFUSED(mr_runner_output_count(runner, name, nullptr, &error), "count is null");
    REFUSED(mr_runner_prepare(nullptr, nullptr, 0, &name, 1, nullptr, 0, &step, &error), "runner is null");
    REFUSED(mr_runner_prepare(runner, nullptr, 0, &name, 1, nullptr, 0, nullptr, &error), "step is null");
    REFUSED(mr_runner_prepare(runner, nullptr, 1, &name, 1, nullptr, 0, &step, &error), "feeds is null");
    REFUSED(mr_runner_prepare(runner, nullptr, 0, nullptr, 1, nullptr, 0, &step, &error), "fetches is null");
    REFUSED(mr_runner_prepare(runner, nullptr, 0, &name, 1, nullptr, 1, &step, &error), "targets is null");
    REFUSED(mr_runner_prepare(runner, nullptr, -1, &name, 1, nullptr, 0, &step, &error), "feeds: the count");
    REFUSED(mr_runner_run(nullptr, &error), "step is null");
    REFUSED(mr_runner_run_with(nullptr, nullptr, 0, nullptr, &error), "step is null");
    REFUSED(mr_runner_reset(nullptr, nullptr, 0, &error), "runner is null");
    CHECK(mr_runner_feeds(nullptr) == nullptr && mr_runner_results(nullptr) == nullptr);
    mr_runner_clear(nullptr);
    mr_runner_close(nullptr);
    mr_runner_cancel(nullptr);
    mr_runner_free(runner);
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
}

TEST(model_and_checkpoint_arguments)
{
    mr_model *model = nullptr;
    mr_checkpoint_reader *reader = nullptr;
    mr_checkpoint_writer *writer = nullptr;
    char path[64];
    REFUSED(mr_model_open(nullptr, nullptr, &model, &error), "path is null");
    REFUSED(mr_model_open("x", nullptr, nullptr, &error), "model is null");
    REFUSED(mr_model_initialize(nullptr, nullptr, &error), "model is null");
    REFUSED(mr_model_restore(nullptr, nullptr, "x", &error), "model is null");
    REFUSED(mr_model_save(nullptr, nullptr, "x", &error), "model is null");
    CHECK(mr_model_graph(nullptr) == nullptr && mr_model_info(nullptr) == nullptr);
    REFUSED(mr_checkpoint_reader_open(nullptr, &reader, &error), "path is null");
    REFUSED(mr_checkpoint_reader_open("x", nullptr, &error), "reader is null");
    REFUSED(mr_checkpoint_read(nullptr, "x", &(mr_tensor){0}, &error), "reader is null");
    CHECK(mr_checkpoint_count(nullptr) == 0 && !mr_checkpoint_has(nullptr, "x"));
    CHECK(mr_checkpoint_key(nullptr, 0, nullptr, nullptr) == nullptr);
    REFUSED(mr_checkpoint_writer_open(nullptr, &writer, &error), "path is null");
    REFUSED(mr_checkpoint_write(nullptr, "x", &(mr_tensor){0}, &error), "writer is null");
    REFUSED(mr_checkpoint_writer_close(nullptr, &error), "writer is null");
    REFUSED(mr_latest_checkpoint(nullptr, path, sizeof path, &error), "directory is null");
    REFUSED(mr_saver_save(nullptr, nullptr, "x", -1, &error), "session is null");
    REFUSED(mr_saver_restore(nullptr, nullptr, "x", &error), "session is null");
}
