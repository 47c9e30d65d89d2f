/* Savers, exports, averages, decays and assertions without memory, with very long names, of other graphs, and twice. */
#include "tests/train/refused.h"

#include <stdlib.h>
#include <string.h>

/* ---- Each allocation fails in turn ---- */

/* What builds on a graph. Whether it succeeds: an error must be recorded in the graph otherwise. */
static void build_averages(mr_graph *g, mr_output x)
{
    (void)mr_moving_average_of(g, MR_OUTPUTS(x), nullptr, .decay = 0.5f, .zero_debias = true);
}

static void build_decays(mr_graph *g, mr_output x)
{
    const mr_decay_options options = {.size = sizeof options, .name = "rate", .learning_rate_output = x};
    (void)mr_cosine_decay_restarts_with(g, MR_UNSET, x, 10, 2, 1, 0, &options);
}

static void build_assertions(mr_graph *g, mr_output x)
{
    (void)mr_assert_equal(g, x, x, .message = "M");
    (void)mr_assert_positive(g, x);
    (void)mr_assert_rank_in(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN), MR_INTS(0, 1));
    (void)mr_is_strictly_increasing(g, x);
}

static void build_savers(mr_graph *g, mr_output x)
{
    mr_variable w = mr_variable_new(g, "w", x);
    const char *const keys[] = {"key"};
    mr_saver *saver = mr_saver_new(g, .defer_build = true, .variables = &w.ref, .variable_count = 1, .keys = keys);
    mr_saver_build(saver);
    mr_saver_free(saver);
}

static void build_norm(mr_graph *g, mr_output)
{
    mr_output image = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3));
    (void)mr_layer_batch_normalization(g, image, .training = true, .virtual_batch_size = 2);
}

static void build_cells(mr_graph *g, mr_output)
{
    mr_output input = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3)), state = input;
    mr_rnn_cell *cell = mr_residual_wrapper_with(g, mr_gru_cell(g, 3), nullptr);
    (void)mr_rnn_cell_call(g, mr_dropout_wrapper(g, cell, .state_keep_prob = 0.5f), input, &state, &state);
}

static void check_without_memory(void (*build)(mr_graph *, mr_output))
{
    bool is_good = false;
    for (long long number = 1; !is_good; number++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        const mr_output x = mr_constant_float(g, 1);
        CHECK(number < 5000);
        test_fail_allocation(test_allocations() + number);
        build(g, x);
        const bool was_hit = test_allocations() >= number;
        test_fail_allocation(0);
        const mr_status status = mr_graph_status(g, &error);
        CHECK(status == MR_OK || status == MR_RESOURCE_EXHAUSTED);
        is_good = status == MR_OK && was_hit;
        mr_graph_free(g);
    }
}

TEST(builders_of_training_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    check_without_memory(build_averages);
    check_without_memory(build_decays);
    check_without_memory(build_assertions);
    check_without_memory(build_savers);
    check_without_memory(build_norm);
    check_without_memory(build_cells);
}

static mr_graph *scoped_graph(void)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    mr_graph_push_variable_scope(g, "a");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(3, 2), .initializer = {.kind = MR_INIT_ONES});
    (void)mr_mat_mul(g, x, w.value, .name = "y");
    mr_graph_pop_variable_scope(g);
    mr_saver_free(mr_saver_new(g, .name = "unused"));
    mr_saver_free(mr_saver_new(g));
    return g;
}

TEST(exports_and_savers_of_files_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_graph *g = scoped_graph();
    mr_tensor meta = {0};
    const mr_meta_export_options options = {
        .size = sizeof options, .export_scope = "a", .strip_default_attrs = true, .clear_extraneous_savers = true};
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 20000);
        test_fail_allocation(test_allocations() + number);
        status = mr_graph_export_meta_with(g, &options, &meta, &error);
        test_fail_allocation(0);
        if (status != MR_OK) CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        CHECK((status == MR_OK) == (meta.buffer != nullptr));
    }
    mr_tensor_deinit(&meta);
    CHECK_OK(mr_graph_export_meta(g, &meta, &error));
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        mr_graph *copy = mr_graph_new();
        mr_saver *saver = nullptr;
        CHECK(number < 5000);
        CHECK_OK(mr_graph_import_meta(copy, bytes.data, bytes.size_bytes, &error));
        test_fail_allocation(test_allocations() + number);
        status = mr_saver_import(copy, &saver, &error);
        test_fail_allocation(0);
        CHECK((status == MR_OK) == (saver != nullptr));
        if (status == MR_OK) mr_saver_free(saver);
        mr_graph_free(copy);
    }
    mr_tensor_deinit(&meta);
    mr_graph_free(g);
}

TEST(lists_of_checkpoints_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_checkpoint_list *list = nullptr;
    CHECK_OK(mr_checkpoint_list_write(test_directory(), nullptr, MR_NAMES("a", "b"), &error));
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 100);
        test_fail_allocation(test_allocations() + number);
        status = mr_checkpoint_list_read(test_directory(), nullptr, &list, &error);
        test_fail_allocation(0);
        CHECK((status == MR_OK) == (list != nullptr));
    }
    CHECK_EQ(list->paths.count, 2);
    mr_checkpoint_list_free(list);
}

/* ---- Long names, and names with slashes ---- */

TEST(names_may_be_long_or_have_slashes)
{
    mr_error error = {0};
    char *name = malloc(2'001);
    CHECK(name != nullptr);
    memset(name, 'n', 2'000);
    name[2'000] = '\0';
    for (int i = 0; i < 3; i++) {
        mr_graph *g = mr_graph_new();
        const char *used = i == 0 ? name : i == 1 ? "a/b/c" : "a.b-c_d";
        mr_output x = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, "x");
        mr_output s = mr_constant_int64(g, 1);
        const mr_decay_options named = {.size = sizeof named, .name = used};
        CHECK(strncmp(mr_node_name(mr_exponential_decay_with(g, 1, s, 1, 1, false, &named).node), used, strlen(used)) ==
              0);
        (void)mr_moving_average_of(g, MR_OUTPUTS(x), nullptr, .decay = 0.5f, .name = used, .zero_debias = true);
        (void)mr_assert_positive(g, x, .name = used, .message = used);
        mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
        (void)mr_minimize(g, mr_ftrl(.learning_rate = 1, .accum_name = used, .linear_name = used),
                          mr_l2_loss(g, w.value), (mr_output){0});
        mr_saver *saver = mr_saver_new(g, .name = used, .defer_build = true);
        mr_saver_build(saver);
        (void)mr_variable_assign_with(g, w, x, MR_OPTIONS(mr_variable_assign_options, .name = used));
        CHECK_OK(mr_graph_status(g, &error));
        mr_session *session = nullptr;
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        const mr_saver_save_options file = {.size = sizeof file, .latest_filename = name},
                                    graph = {.size = sizeof graph, .meta_graph_suffix = name};
        if (i == 0) {
            CHECK(mr_saver_save_with(saver, session, test_path("m"), 1, &file, &error) != MR_OK);
            CHECK(!mr_checkpoint_exists(test_path("m-1"))); /* what is not named is removed */
            CHECK(mr_saver_save_with(saver, session, test_path("m"), 1, &graph, &error) != MR_OK);
            CHECK(!mr_checkpoint_exists(test_path("m-1")));
        }
        CHECK_OK(mr_saver_save(saver, session, test_path("m"), 1, &error));
        mr_tensor meta = {0};
        CHECK(mr_graph_export_meta_with(g, MR_OPTIONS(mr_meta_export_options, .export_scope = used), &meta, &error) ==
              MR_OK);
        mr_tensor_deinit(&meta);
        mr_session_free(session);
        mr_saver_free(saver);
        mr_graph_free(g);
    }
    free(name);
}

TEST(wrong_names_are_refused)
{
    static const char *const names[] = {"a b", "\n", "_x", "-", "ü", "a//b?"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mr_error error = {0};
        for (int what = 0; what < 4; what++) {
            mr_graph *g = mr_graph_new();
            mr_output x = mr_constant_float(g, 1);
            mr_variable w = mr_variable_new(g, "w", x);
            const mr_decay_options named = {.size = sizeof named, .name = names[i]};
            if (what == 0) (void)mr_cosine_decay_with(g, 1, x, 1, 0, &named);
            if (what == 1) (void)mr_assert_positive(g, x, .name = names[i]);
            if (what == 2)
                (void)mr_variable_assign_with(g, w, x, MR_OPTIONS(mr_variable_assign_options, .name = names[i]));
            if (what == 3) mr_saver_free(mr_saver_new(g, .name = names[i]));
            /* "_x" is a valid name inside of a scope only; what a graph accepts, it can export and import. */
            if (mr_graph_status(g, &error) == MR_OK) {
                mr_tensor def = {0};
                mr_graph *copy = mr_graph_new();
                CHECK_OK(mr_graph_export(g, &def, &error));
                const mr_string bytes = mr_tensor_strings(&def)[0];
                CHECK_OK(mr_graph_import(copy, bytes.data, bytes.size_bytes, nullptr, &error));
                mr_tensor_deinit(&def);
                mr_graph_free(copy);
            }
            mr_graph_free(g);
        }
    }
}

/* ---- Other graphs, the wrong order, twice ---- */

TEST(outputs_of_other_graphs_are_refused)
{
    mr_graph *other = mr_graph_new();
    const mr_output foreign = mr_constant_float(other, 1);
    mr_variable theirs = mr_variable_new(other, "w", foreign);
    mr_graph *g = mr_graph_new();
    const mr_decay_options options = {.size = sizeof options, .learning_rate_output = foreign};
    (void)mr_exponential_decay_with(g, MR_UNSET, mr_constant_int64(g, 1), 1, 1, false, &options);
    check_refused(g, "another graph");
    g = mr_graph_new();
    (void)mr_exponential_decay_with(g, 1, foreign, 1, 1, false, nullptr);
    check_refused(g, "another graph");
    g = mr_graph_new();
    (void)mr_variable_assign_with(g, theirs, mr_constant_float(g, 1), nullptr);
    check_refused(g, "another graph");
    g = mr_graph_new();
    (void)mr_moving_average(g, &theirs, 1, nullptr, .decay = 0.5f);
    check_refused(g, "another graph");
    g = mr_graph_new();
    (void)mr_assert_equal(g, mr_constant_float(g, 1), mr_constant_float(g, 1), .data = MR_OUTPUTS(foreign));
    check_refused(g, "another graph");
    mr_graph_free(other);
}

TEST(builders_after_finalize_are_refused)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1);
    mr_saver *saver = mr_saver_new(g, .defer_build = true, .allow_empty = true);
    mr_graph_finalize(g);
    mr_saver_build(saver); /* nothing to add */
    mr_error error = {0};
    CHECK_OK(mr_graph_status(g, &error));
    mr_saver_free(saver);
    (void)mr_assert_positive(g, x);
    check_refused(g, "finalized");
}
