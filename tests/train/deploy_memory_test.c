/* Each allocation fails in turn: freezing, transforms, SavedModels and initial values return an error, and the next
 * call succeeds. */
#include "tests/test.h"
#include <millrace/millrace.h>

typedef struct model {
    mr_graph *g;
    mr_session *session;
    mr_output x, y;
} model;

static model build(void)
{
    mr_error error = {0};
    model m = {.g = mr_graph_new()};
    m.x = mr_placeholder(m.g, MR_FLOAT, .shape = MR_SHAPE(-1, 4, 4, 2), .name = "x");
    const mr_initializer ones = {.kind = MR_INIT_ONES};
    mr_variable w = mr_get_variable(m.g, "w", MR_SHAPE(2, 2, 2, 3), .initializer = ones);
    mr_variable r = mr_get_variable(m.g, "r", MR_SHAPE(3), .initializer = ones, .use_resource = true);
    mr_output h = mr_conv2d(m.g, m.x, w.value, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME);
    h = mr_fused_batch_norm(m.g, h, r.value, r.value, r.value, r.value, .is_training = false).y;
    m.y = mr_mul(m.g, h, mr_sqrt(m.g, mr_constant_float(m.g, 4)), .name = "y");
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(m.g, nullptr, &m.session, &error));
    CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    return m;
}

TEST(freeze_and_transforms_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    model m = build();
    mr_tensor frozen = {0}, result = {0};
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 5000);
        test_fail_allocation(test_allocations() + number);
        status = mr_graph_freeze(m.g, m.session, MR_NAMES("y"), nullptr, &frozen, &error);
        test_fail_allocation(0);
        if (status != MR_OK) CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        CHECK((status == MR_OK) == (frozen.buffer != nullptr));
    }
    mr_graph *g = mr_graph_new();
    const mr_string bytes = mr_tensor_strings(&frozen)[0];
    const mr_transform list[] = {{.kind = MR_TRANSFORM_STRIP_UNUSED_NODES},
                                 {.kind = MR_TRANSFORM_FOLD_CONSTANTS},
                                 {.kind = MR_TRANSFORM_FOLD_OLD_BATCH_NORMS},
                                 {.kind = MR_TRANSFORM_FOLD_BATCH_NORMS},
                                 {.kind = MR_TRANSFORM_QUANTIZE_WEIGHTS, .minimum_size = 4}};
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error));
    status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 20000);
        test_fail_allocation(test_allocations() + number);
        status = mr_graph_transform(g, MR_NAMES("x"), MR_NAMES("y"), (mr_transforms){list, 5}, &result, &error);
        test_fail_allocation(0);
        if (status != MR_OK) CHECK(*error.message != '\0');
        CHECK((status == MR_OK) == (result.buffer != nullptr));
    }
    mr_tensor_deinit(&frozen);
    mr_tensor_deinit(&result);
    mr_graph_free(g);
    mr_session_free(m.session);
    mr_graph_free(m.g);
}

TEST(saved_models_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number += 3) {
        mr_error error = {0};
        model m = build();
        CHECK(number < 5000);
        test_fail_allocation(test_allocations() + number);
        status =
            mr_saved_model_simple_save(m.g, m.session, test_path("saved-%lld", number), MR_NAMED_OUTPUTS({"x", m.x}),
                                       MR_NAMED_OUTPUTS({"y", m.y}), nullptr, &error);
        test_fail_allocation(0);
        if (status != MR_OK) CHECK(*error.message != '\0');
        mr_session_free(m.session);
        mr_graph_free(m.g);
    }
}

TEST(initial_values_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    model saved = build();
    mr_saver *saver = mr_saver_new(saved.g);
    CHECK_OK(mr_saver_save(saver, saved.session, test_path("model"), -1, &error));
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        model m = build();
        CHECK(number < 5000);
        test_fail_allocation(test_allocations() + number);
        status = mr_warm_start(m.g, test_path("model"), nullptr, &error);
        test_fail_allocation(0);
        if (status != MR_OK) CHECK(*error.message != '\0');
        mr_session_free(m.session);
        mr_graph_free(m.g);
    }
    mr_saver_free(saver);
    mr_session_free(saved.session);
    mr_graph_free(saved.g);
}
