/* Profiles: hostile RunMetadata, options that are refused, deep graphs, no memory; and the float operations of each
 * formula. */
#include "tests/train/profiles.h"

static mr_error error;

TEST(profile_refuses_what_is_no_run)
{
    mr_profile *profile;
    mr_graph *g = small_graph(2);
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    const mr_string bad[] = {{nullptr, 0}, MR_STR("\xff"), MR_STR("\x0a\x05"), MR_STR("\x0a\x04\x0a\x02\x12\x09")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(mr_profile_add_run(profile, 0, bad[i], &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_add_run(profile, -1, MR_STR("\x0a\x00"), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "step is -1, less than 0");
    CHECK_STATUS(mr_profile_add_run(nullptr, 0, MR_STR("\x0a\x00"), &error), MR_INVALID_ARGUMENT);
    const int64_t step = 0;
    mr_profile_view *view;
    CHECK_STATUS(
        mr_profile_view_new(profile, MR_PROFILE_OP, MR_OPTIONS(mr_profile_options, .step = &step), &view, &error),
        MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "no run was added");
    CHECK_OK(mr_profile_add_run(profile, 0, MR_STR("\x0a\x00"), &error));
    CHECK_OK(mr_profile_view_new(profile, MR_PROFILE_OP, MR_OPTIONS(mr_profile_options, .step = &step), &view, &error));
    mr_profile_view_free(view);
    mr_profile_free(profile);
    CHECK_STATUS(mr_profile_new(nullptr, &profile, &error), MR_INVALID_ARGUMENT);
    CHECK(profile == nullptr);
    CHECK_STATUS(mr_profile_view_new(nullptr, MR_PROFILE_OP, nullptr, &view, &error), MR_INVALID_ARGUMENT);
}

TEST(profile_refuses_null_arguments)
{
    mr_profile *profile;
    mr_profile_view *view;
    mr_profile_advice *advice;
    mr_graph *g = small_graph(2);
    CHECK_STATUS(mr_profile_new(g, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_new: profile is null");
    CHECK_STATUS(mr_profile_new(nullptr, &profile, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_new: graph is null");
    CHECK_OK(mr_profile_new(g, &profile, &error));
    CHECK_STATUS(mr_profile_add_run(nullptr, 0, MR_STR("\x0a\x00"), &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_add_run: profile is null");
    CHECK_STATUS(mr_profile_add_run(profile, 0, (mr_string){nullptr, 5}, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_add_run: run_metadata is null");
    CHECK_STATUS(mr_profile_view_new(profile, MR_PROFILE_OP, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_view_new: view is null");
    CHECK_STATUS(mr_profile_view_new(nullptr, MR_PROFILE_OP, nullptr, &view, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_view_new: profile is null");
    CHECK_STATUS(mr_profile_advise(profile, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_advise: advice is null");
    CHECK_STATUS(mr_profile_advise(nullptr, &advice, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "mr_profile_advise: profile is null");
    CHECK(mr_profile_view_root(nullptr) == nullptr);
    CHECK(mr_profile_view_text(nullptr) == nullptr);
    mr_profile_free(profile);
    mr_graph_free(g);
}

/* Bytes of a valid run are changed at random. What is accepted can be viewed in every way. */
TEST(profile_runs_with_changed_bytes)
{
    static const call calls[] = {{"net/product", 110, 40, 32, 4, 64, 16},
                                 {"net/sum:detail", 180, 20, 32, 4, 0, 0},
                                 {"a/b/c", 220, 3, 0, 0, 0, 0}};
    mr_arena arena = {0};
    Mr__StepStats stats;
    begin_run(&arena, &stats);
    add_device(&arena, &stats, CPU, calls, 3);
    add_device(&arena, &stats, GPU "/stream:all", calls, 2);
    const mr_string bytes = end_run(&arena, &stats);
    uint64_t random = test_seed() * 0x9e3779b97f4a7c15u + 1;
    int accepted = 0;
    mr_graph *g = small_graph(-1);
    for (int i = 0; i < 2000; i++) {
        char *changed = mr_arena_copy(&arena, bytes.data, bytes.size_bytes);
        mr_profile *profile;
        CHECK_OK(mr_profile_new(g, &profile, &error));
        for (int j = 0; j <= i % 3; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            changed[(random >> 33) % bytes.size_bytes] = (char)(random >> 56);
        }
        const mr_status status =
            mr_profile_add_run(profile, i, (mr_string){changed, bytes.size_bytes - (size_t)(i % 7 == 0)}, &error);
        CHECK(status == MR_OK || status == MR_INVALID_ARGUMENT);
        accepted += status == MR_OK;
        for (int kind = MR_PROFILE_SCOPE; kind <= MR_PROFILE_OP; kind++)
            mr_profile_view_free(make_view(profile, (mr_profile_kind)kind, (mr_profile_options){.select = 0xfff}));
        mr_profile_advice *advice;
        CHECK_OK(mr_profile_advise(profile, &advice, &error));
        mr_profile_advice_free(advice);
        mr_profile_free(profile);
    }
    CHECK(accepted > 100 && accepted < 2000);
    mr_graph_free(g);
    mr_arena_deinit(&arena);
}

TEST(profile_names_and_numbers_of_a_hostile_run)
{
    char deep[2 * 300 + 2];
    for (size_t i = 0; i + 1 < sizeof deep; i++) deep[i] = i % 2 == 0 ? 'a' : '/';
    deep[sizeof deep - 1] = '\0';
    const call calls[] = {{"", 1, 1, 0, 0, 0, 0},
                          {"//", 1, 1, 0, 0, 0, 0},
                          {"\x1b[2J\n", 1, 1, 0, 0, 0, 0},
                          {"big", 1, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                          {"big/b", INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                          {"small", 1, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN},
                          {"never", -5, 1, 1, 1, 1, 1}};
    mr_profile *profile;
    mr_graph *g = mr_graph_new();
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    add_cpu_run(profile, INT64_MAX, calls, sizeof calls / sizeof *calls);
    check_text(profile, MR_PROFILE_SCOPE,
               (mr_profile_options){.select = MR_PROFILE_CPU_MICROS | MR_PROFILE_OUTPUT_BYTES | MR_PROFILE_BYTES},
               "node name | requested bytes | output bytes | cpu execution time\n"
               "_TFProfRoot (--/9223372036854.78MB, --/9223372036854.78MB, --/9223372036854.78sec)\n"
               "   (0B/0B, 0B/0B, 1us/2us)\n"
               "    / (0B/0B, 0B/0B, 0us/1us)\n"
               "      // (0B/0B, 0B/0B, 1us/1us)\n"
               "  \\x1b[2J\\x0a (0B/0B, 0B/0B, 1us/1us)\n"
               "  big (9223372036854.78MB/9223372036854.78MB, 9223372036854.78MB/9223372036854.78MB, "
               "9223372036854.78sec/9223372036854.78sec)\n"
               "    big/b (9223372036854.78MB/9223372036854.78MB, 9223372036854.78MB/9223372036854.78MB, "
               "9223372036854.78sec/9223372036854.78sec)\n"
               "  never (0B/0B, 0B/0B, 0us/0us)\n"
               "  small (0B/0B, 0B/0B, 1us/1us)\n");
    mr_arena arena = {0};
    Mr__StepStats stats;
    const call too_deep[] = {{"first", 1, 1, 0, 0, 0, 0}, {deep, 1, 1, 0, 0, 0, 0}};
    begin_run(&arena, &stats);
    add_device(&arena, &stats, CPU, too_deep, 2);
    CHECK_STATUS(mr_profile_add_run(profile, 0, end_run(&arena, &stats), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "has more than 256 scopes");
    mr_arena_deinit(&arena);
    mr_profile_view *view = make_view(profile, MR_PROFILE_OP, (mr_profile_options){0});
    CHECK(strstr(mr_profile_view_text(view), "first") == nullptr); /* the profile is unchanged */
    mr_profile_view_free(view);
    mr_profile_free(profile);
}

TEST(profile_refuses_options)
{
    const int64_t step = 4;
    const struct {
        mr_profile_kind kind;
        mr_profile_options options;
        mr_status status;
        const char *part;
    } cases[] = {
        {MR_PROFILE_SCOPE, {.step = &step}, MR_NOT_FOUND, "no run of step 4 was added; there are 3, 5"},
        {MR_PROFILE_SCOPE, {.min_bytes = -1}, MR_INVALID_ARGUMENT, "min_bytes is -1, less than 0"},
        {MR_PROFILE_SCOPE, {.min_peak_bytes = -1}, MR_INVALID_ARGUMENT, "min_peak_bytes is -1"},
        {MR_PROFILE_SCOPE, {.min_residual_bytes = -1}, MR_INVALID_ARGUMENT, "min_residual_bytes is -1"},
        {MR_PROFILE_SCOPE, {.min_output_bytes = -1}, MR_INVALID_ARGUMENT, "min_output_bytes is -1"},
        {MR_PROFILE_SCOPE, {.min_micros = -1}, MR_INVALID_ARGUMENT, "min_micros is -1"},
        {MR_PROFILE_SCOPE, {.min_accelerator_micros = -1}, MR_INVALID_ARGUMENT, "min_accelerator_micros is -1"},
        {MR_PROFILE_SCOPE, {.min_cpu_micros = -1}, MR_INVALID_ARGUMENT, "min_cpu_micros is -1"},
        {MR_PROFILE_SCOPE, {.min_params = -1}, MR_INVALID_ARGUMENT, "min_params is -1"},
        {MR_PROFILE_SCOPE, {.min_float_ops = INT64_MIN}, MR_INVALID_ARGUMENT, "min_float_ops is -9223372036854775808"},
        {MR_PROFILE_SCOPE, {.min_occurrence = -1}, MR_INVALID_ARGUMENT, "min_occurrence is -1"},
        {MR_PROFILE_OP, {.min_occurrence = 1}, MR_INVALID_ARGUMENT, "min_occurrence has no effect"},
        {MR_PROFILE_GRAPH, {.max_depth = -1}, MR_INVALID_ARGUMENT, "max_depth is -1"},
        {MR_PROFILE_GRAPH, {.max_depth = 10001}, MR_INVALID_ARGUMENT, "max_depth is 10001, more than 10000"},
        {MR_PROFILE_SCOPE, {.select = 4096}, MR_INVALID_ARGUMENT, "a column that does not exist: 0x1000"},
        {MR_PROFILE_SCOPE, {.select = INT32_MIN}, MR_INVALID_ARGUMENT, "a column that does not exist: 0x80000000"},
        {MR_PROFILE_SCOPE, {.order_by = 3}, MR_INVALID_ARGUMENT, "order_by is no column: 0x3"},
        {MR_PROFILE_SCOPE, {.order_by = MR_PROFILE_DEVICE}, MR_INVALID_ARGUMENT, "MR_PROFILE_DEVICE, which has no"},
        {MR_PROFILE_SCOPE, {.order_by = MR_PROFILE_OP_TYPES}, MR_INVALID_ARGUMENT, "OP_TYPES, which has no order"},
        {(mr_profile_kind)4, {0}, MR_INVALID_ARGUMENT, "4 is no kind of view"},
        {MR_PROFILE_SCOPE,
         {.account_type_regexes = MR_NAMES("a", "(")},
         MR_INVALID_ARGUMENT,
         "account_type_regexes[1]: Invalid pattern: (, error: missing )"},
        {MR_PROFILE_SCOPE, {.start_name_regexes = MR_NAMES("[")}, MR_INVALID_ARGUMENT, "start_name_regexes[0]: "},
        {MR_PROFILE_OP, {.trim_name_regexes = MR_NAMES("(?=a)")}, MR_INVALID_ARGUMENT, "trim_name_regexes[0]: "},
        {MR_PROFILE_OP, {.show_name_regexes = MR_NAMES("*")}, MR_INVALID_ARGUMENT, "show_name_regexes[0]: "},
        {MR_PROFILE_OP, {.hide_name_regexes = MR_NAMES(nullptr)}, MR_INVALID_ARGUMENT, "hide_name_regexes[0] is null"},
        {MR_PROFILE_OP, {.hide_name_regexes = {nullptr, 1}}, MR_INVALID_ARGUMENT, "the list hide_name_regexes"},
    };
    mr_profile *profile = small_profile(4);
    mr_profile_view *view;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_profile_options options = cases[i].options;
        options.size = sizeof options;
        CHECK_STATUS(mr_profile_view_new(profile, cases[i].kind, &options, &view, &error), cases[i].status);
        CHECK_CONTAINS(error.message, cases[i].part);
        CHECK(view == nullptr);
    }
    mr_profile_options unsized = {0};
    CHECK_STATUS(mr_profile_view_new(profile, MR_PROFILE_OP, &unsized, &view, &error), MR_INVALID_ARGUMENT);
    for (int64_t i = 100; i < 200; i++) add_cpu_run(profile, i, nullptr, 0);
    CHECK_STATUS(
        mr_profile_view_new(profile, MR_PROFILE_OP, MR_OPTIONS(mr_profile_options, .step = &step), &view, &error),
        MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "there are 3, 5, 100, 101, ");
    CHECK_CONTAINS(error.message, ", …");
    mr_profile_free(profile);
}

/* A name on which a backtracking match would take very long. */
TEST(profile_patterns_have_a_limit)
{
    const call calls[] = {{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 1, 1, 0, 0, 0, 0}};
    mr_profile *profile = small_profile(4);
    mr_profile_view *view;
    add_cpu_run(profile, 3, calls, 1);
    CHECK_STATUS(mr_profile_view_new(profile, MR_PROFILE_SCOPE,
                                     MR_OPTIONS(mr_profile_options, .show_name_regexes = MR_NAMES("(a|aa)+[bc]")),
                                     &view, &error),
                 MR_RESOURCE_EXHAUSTED);
    mr_profile_free(profile);
}

/* The graph view of a chain is as deep as the chain. */
TEST(profile_of_a_long_chain)
{
    enum { LENGTH = 50000 };
    mr_profile *profile;
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "x");
    for (int i = 0; i < LENGTH; i++) x = mr_neg(g, x);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    mr_profile_view *view = make_view(profile, MR_PROFILE_GRAPH, (mr_profile_options){0});
    const mr_profile_entry *entry = mr_profile_view_root(view);
    CHECK_EQ(entry->total.float_ops, 2 * LENGTH);
    for (int depth = 1; depth < 100; depth++) entry = entry->children[0];
    CHECK_EQ(entry->child_count, 0);
    CHECK_EQ(entry->total.float_ops, 2 * (LENGTH - 98));
    mr_profile_view_free(view);
    view = make_view(profile, MR_PROFILE_GRAPH,
                     (mr_profile_options){.show_name_regexes = MR_NAMES("x"), .max_depth = 10000});
    CHECK_EQ(mr_profile_view_root(view)->child_count, 0); /* x is deeper */
    mr_profile_view_free(view);
    view =
        make_view(profile, MR_PROFILE_GRAPH,
                  (mr_profile_options){.start_name_regexes = MR_NAMES("x"), .account_type_regexes = MR_NAMES("P.*")});
    CHECK_EQ(mr_profile_view_root(view)->child_count, 1);
    mr_profile_view_free(view);
    mr_profile_free(profile);
}

TEST(profiles_without_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    static const call calls[] = {{"net/product", 110, 40, 32, 4, 64, 16}, {"extra", 220, 3, 0, 0, 0, 0}};
    mr_arena arena = {0};
    Mr__StepStats stats;
    begin_run(&arena, &stats);
    add_device(&arena, &stats, CPU, calls, 2);
    const mr_string bytes = end_run(&arena, &stats);
    mr_graph *g = small_graph(-1);
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        mr_profile *profile = nullptr;
        mr_profile_view *view = nullptr;
        mr_profile_advice *advice = nullptr;
        CHECK(number < 2000);
        test_fail_allocation(test_allocations() + number);
        status = mr_profile_new(g, &profile, &error);
        if (status == MR_OK) status = mr_profile_add_run(profile, 0, bytes, &error);
        if (status == MR_OK) status = mr_profile_add_type(profile, "out", "mine", &error);
        if (status == MR_OK)
            status = mr_profile_view_new(profile, MR_PROFILE_SCOPE,
                                         MR_OPTIONS(mr_profile_options, .select = 0xfff,
                                                    .show_name_regexes = MR_NAMES("n.*|o.*"),
                                                    .account_type_regexes = MR_NAMES("M.*", "mine")),
                                         &view, &error);
        if (status == MR_OK) status = mr_profile_advise(profile, &advice, &error);
        test_fail_allocation(0);
        if (status != MR_OK && status != MR_RESOURCE_EXHAUSTED) test_fail(__FILE__, __LINE__, "%s", error.message);
        mr_profile_free(profile);
        mr_profile_view_free(view);
        mr_profile_advice_free(advice);
    }
    mr_graph_free(g);
    mr_arena_deinit(&arena);
}

/* ---- Float operations ---- */

static int64_t float_ops_of(mr_graph *g, mr_output output)
{
    mr_profile *profile;
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE,
                                      (mr_profile_options){.start_name_regexes = MR_NAMES(mr_node_name(output.node))});
    CHECK_EQ(mr_profile_view_root(view)->child_count, 1);
    const int64_t float_ops = mr_profile_view_root(view)->children[0]->own.float_ops;
    mr_profile_view_free(view);
    mr_profile_free(profile);
    return float_ops;
}

TEST(profile_float_operations)
{
    mr_graph *g = mr_graph_new();
#define INPUT(...) mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(__VA_ARGS__))
    const mr_output a = INPUT(2, 3, 4), b = INPUT(2, 5, 3), empty = INPUT(0, 3), image = INPUT(2, 8, 6, 3);
    const mr_output filter = INPUT(3, 2, 3, 5), unknown = INPUT(-1, 3), one = mr_constant_int32(g, 1);
    CHECK_EQ(float_ops_of(g, mr_rsqrt(g, a)), 48);
    CHECK_EQ(float_ops_of(g, mr_softmax(g, a)), 120);
    CHECK_EQ(float_ops_of(g, mr_squared_difference(g, a, a)), 48);
    CHECK_EQ(float_ops_of(g, mr_l2_loss(g, a)), 71);
    CHECK_EQ(float_ops_of(g, mr_l2_loss(g, empty)), 0);
    CHECK_EQ(float_ops_of(g, mr_sum(g, a, one)), 16); /* 24 − 8 */
    CHECK_EQ(float_ops_of(g, mr_mean(g, a, one)), 24);
    CHECK_EQ(float_ops_of(g, mr_sum(g, empty, mr_constant_int32(g, 0))), 0);
    CHECK_EQ(float_ops_of(g, mr_square(g, unknown)), 0);
    CHECK_EQ(float_ops_of(g, mr_tanh(g, a)), 0); /* no formula */
    mr_output sum = mr_add_n(g, MR_OUTPUTS(a, a, a));
    mr_node_add_control(sum.node, b.node);
    CHECK_EQ(float_ops_of(g, sum), 48);
    CHECK_EQ(float_ops_of(g, mr_batch_mat_mul(g, b, a)), 2 * 3 * 2 * 5 * 4);
    CHECK_EQ(float_ops_of(g, mr_batch_mat_mul_v2(g, a, INPUT(2, 3, 7), .adj_x = true)), 2 * 3 * 2 * 4 * 7);
    CHECK_EQ(float_ops_of(g, mr_mat_mul(g, INPUT(3, 4), INPUT(3, 5), .transpose_a = true)), 2 * 3 * 4 * 5);
    const mr_output conv = mr_conv2d(g, image, filter, .strides = MR_INTS(1, 2, 2, 1), .padding = MR_SAME);
    CHECK_EQ(float_ops_of(g, conv), 2 * (3 * 2 * 3) * (2 * 4 * 3 * 5));
    const mr_output sizes = mr_constant_ints(g, MR_INTS(2, 8, 6, 3)), kernel = mr_constant_ints(g, MR_INTS(3, 2, 3, 5));
    CHECK_EQ(float_ops_of(g, mr_conv2d_backprop_input(g, sizes, filter, conv, .strides = MR_INTS(1, 2, 2, 1),
                                                      .padding = MR_SAME)),
             2 * 288 * 90 / (3 * 4));
    CHECK_EQ(float_ops_of(g, mr_conv2d_backprop_filter(g, image, kernel, conv, .strides = MR_INTS(1, 2, 2, 1),
                                                       .padding = MR_SAME)),
             2 * 288 * 90 / (3 * 4));
    const mr_output pool =
        mr_max_pool(g, image, .ksize = MR_INTS(1, 2, 2, 1), .strides = MR_INTS(1, 2, 2, 1), .padding = MR_VALID);
    CHECK_EQ(float_ops_of(g, pool), 4 * 72);
    CHECK_EQ(float_ops_of(g, mr_max_pool_grad(g, image, pool, pool, .ksize = MR_INTS(1, 2, 2, 1),
                                              .strides = MR_INTS(1, 2, 2, 1), .padding = MR_VALID)),
             5 * 72);
    /* The formula of pools is for NHWC only. */
    CHECK_EQ(float_ops_of(g, mr_max_pool(g, image, .ksize = MR_INTS(1, 1, 2, 2), .strides = MR_INTS(1, 1, 2, 2),
                                         .padding = MR_VALID, .data_format = MR_NCHW)),
             0);
    mr_graph_free(g);
#undef INPUT
}
