/* Views of profiles: figures, totals, order and text of a small graph, and what each option changes. */
#include "tests/train/profiles.h"

static mr_error error;

TEST(profile_scopes)
{
    mr_profile *profile;
    mr_graph *g = small_graph(2);
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    check_text(profile, MR_PROFILE_SCOPE, (mr_profile_options){.select = MR_PROFILE_PARAMS | MR_PROFILE_FLOAT_OPS},
               "node name | # parameters | # float_ops\n"
               "_TFProfRoot (--/15 params, --/32 flops)\n"
               "  net (0/8 params, 0/28 flops)\n"
               "    net/b (2, 2/2 params, 0/0 flops)\n"
               "    net/product (0/0 params, 24/24 flops)\n"
               "    net/sum (0/0 params, 4/4 flops)\n"
               "    net/w (3x2, 6/6 params, 0/0 flops)\n"
               "  out (0/0 params, 4/4 flops)\n"
               "  s (1, 1/1 params, 0/0 flops)\n"
               "  x (2x3, 6/6 params, 0/0 flops)\n");
    check_text(profile, MR_PROFILE_SCOPE, (mr_profile_options){MR_PROFILE_TRAINABLE_PARAMETERS},
               "node name | # parameters\n"
               "_TFProfRoot (--/6 params)\n"
               "  net (--/6 params)\n"
               "    net/w (3x2, 6/6 params)\n");
    check_text(profile, MR_PROFILE_SCOPE, (mr_profile_options){MR_PROFILE_FLOAT_OPERATIONS},
               "node name | # float_ops\n"
               "_TFProfRoot (--/32 flops)\n"
               "  net/product (24/24 flops)\n"
               "  net/sum (4/4 flops)\n"
               "  out (4/4 flops)\n");
    mr_profile_free(profile);
}

TEST(profile_inputs_of_nodes)
{
    mr_profile *profile;
    mr_graph *g = small_graph(-1);
    (void)mr_node_op(mr_graph_find(g, "out"));
    mr_node_add_control(mr_graph_find(g, "net/sum"), mr_graph_find(g, "s"));
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    check_text(profile, MR_PROFILE_GRAPH, (mr_profile_options){.select = MR_PROFILE_PARAMS | MR_PROFILE_OCCURRENCE},
               "node name | # parameters | op count (run|defined)\n"
               "_TFProfRoot (--/9 params, --/0|--/7)\n"
               "  out (0/9 params, 0/0|1/7)\n"
               "    net/sum (0/9 params, 0/0|1/6)\n"
               "      net/b (2, 2/2 params, 0/0|1/1)\n"
               "      net/product (0/6 params, 0/0|1/3)\n"
               "        net/w (3x2, 6/6 params, 0/0|1/1)\n"
               "        x (-1x3, 0/0 params, 0/0|1/1)\n"
               "      s (1, 1/1 params, 0/0|1/1)\n");
    /* Nodes that do not count are removed, so those below them move up. */
    check_text(profile, MR_PROFILE_GRAPH,
               (mr_profile_options){.select = MR_PROFILE_OP_TYPES, .account_type_regexes = MR_NAMES("VariableV2|Mul")},
               "node name | op types\n"
               "_TFProfRoot (_TFGraphParent)\n"
               "  out (Mul)\n"
               "    net/b (VariableV2)\n"
               "    net/w (VariableV2|_trainable_variables)\n");
    mr_profile_free(profile);
}

TEST(profile_operators)
{
    mr_profile *profile = small_profile(2);
    check_text(profile, MR_PROFILE_OP,
               (mr_profile_options){.select = MR_PROFILE_PARAMS | MR_PROFILE_OCCURRENCE, .order_by = MR_PROFILE_PARAMS},
               "node name | # parameters | op occurrence (run|defined)\n"
               "VariableV2                   8 params (100.00%, 53.33%),        1|2\n"
               "Placeholder                   7 params (46.67%, 46.67%),        0|2\n"
               "AddV2                           0 params (0.00%, 0.00%),        1|1\n"
               "MatMul                          0 params (0.00%, 0.00%),        1|1\n"
               "Mul                             0 params (0.00%, 0.00%),        1|1\n"
               "extra                           0 params (0.00%, 0.00%),        1|1\n");
    check_text(profile, MR_PROFILE_OP,
               (mr_profile_options){.order_by = MR_PROFILE_MICROS, .min_micros = 4, .select = MR_PROFILE_CPU_MICROS},
               "node name | cpu execution time\n"
               "MatMul                           30us (100.00%, 50.00%)\n"
               "AddV2                             20us (50.00%, 33.33%)\n"
               "Mul                                6us (16.67%, 10.00%)\n"
               "extra                                3us (6.67%, 5.00%)\n");
    mr_profile_view *view =
        make_view(profile, MR_PROFILE_OP, (mr_profile_options){.account_type_regexes = MR_NAMES("Var.*", ".*cpu:0")});
    const mr_profile_entry *root = mr_profile_view_root(view);
    CHECK_EQ(root->child_count, 5);
    CHECK_STR(root->children[3]->name, "VariableV2");
    CHECK_EQ(root->children[3]->node_count, 2);
    CHECK_STR(root->children[3]->nodes[1]->name, "net/w");
    CHECK_EQ(root->children[3]->nodes[1]->own.micros, 1);
    CHECK_EQ(root->children[0]->total.micros, 60);
    CHECK_EQ(root->children[0]->size, sizeof(mr_profile_entry));
    mr_profile_view_free(view);
    mr_profile_free(profile);
}

static const mr_profile_entry *find_child(const mr_profile_entry *entry, const char *name)
{
    for (int32_t i = 0; i < entry->child_count; i++)
        if (strcmp(entry->children[i]->name, name) == 0) return entry->children[i];
    test_fail(__FILE__, __LINE__, "there is no %s", name);
}

TEST(profile_runs_and_steps)
{
    const int64_t third = 3, fifth = 5;
    mr_profile *profile = small_profile(2);
    mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){.step = &third});
    const mr_profile_entry *net = find_child(mr_profile_view_root(view), "net");
    const mr_profile_figures sum = find_child(net, "net/sum")->own, product = find_child(net, "net/product")->own;
    CHECK_EQ(sum.micros, 30);
    CHECK_EQ(sum.cpu_micros, 30);
    CHECK_EQ(sum.accelerator_micros, 0);
    CHECK_EQ(sum.run_count, 2);
    CHECK_EQ(sum.float_ops, 8);        /* of two calls */
    CHECK_EQ(sum.requested_bytes, 64); /* the outputs, as there is no other memory */
    CHECK_EQ(sum.peak_bytes, 64);
    CHECK_EQ(sum.residual_bytes, 0);
    CHECK_EQ(product.requested_bytes, 64);
    CHECK_EQ(product.peak_bytes, 32);
    CHECK_EQ(product.residual_bytes, 16);
    CHECK_EQ(product.output_bytes, 32);
    CHECK_EQ(net->total.micros, 71);
    CHECK_EQ(find_child(net, "net/w")->own.micros, 1); /* less than 1 µs */
    CHECK_EQ(find_child(mr_profile_view_root(view), "extra")->own.micros, 3);
    CHECK_STR(find_child(net, "net/w")->device, "/job:localhost/replica:0/task:0/device:cpu:0");
    CHECK_STR(find_child(net, "net/b")->device, "");
    mr_profile_view_free(view);

    view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){.step = &fifth});
    net = find_child(mr_profile_view_root(view), "net");
    CHECK_EQ(find_child(net, "net/w")->own.run_count, 0);
    CHECK_EQ(net->total.micros, 30);
    CHECK_EQ(find_child(mr_profile_view_root(view), "out")->own.float_ops, 0); /* it did not run in this step */
    mr_profile_view_free(view);

    view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){0}); /* averages over the steps of each node */
    net = find_child(mr_profile_view_root(view), "net");
    CHECK_EQ(find_child(net, "net/sum")->own.micros, 20);
    CHECK_EQ(find_child(net, "net/sum")->own.run_count, 1);
    CHECK_EQ(find_child(net, "net/w")->own.micros, 1);
    mr_profile_view_free(view);
    mr_profile_free(profile);
}

/* Two runs of one step are one step; the outputs of a run complete shapes. */
TEST(profile_runs_complete_shapes)
{
    static const call calls[] = {{"net/product", 300, 20, 32, 4, 0, 0}, {"net/sum", 300, 1, 32, 4, 0, 0}};
    mr_profile *profile;
    mr_graph *g = small_graph(-1);
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    mr_profile_options options = {.select = MR_PROFILE_FLOAT_OPS};
    check_text(profile, MR_PROFILE_OP, options,
               "node name | # float_ops\n"
               "AddV2                        0 float_ops (0.00%, 0.00%)\n"
               "MatMul                       0 float_ops (0.00%, 0.00%)\n"
               "Mul                          0 float_ops (0.00%, 0.00%)\n"
               "Placeholder                  0 float_ops (0.00%, 0.00%)\n"
               "VariableV2                   0 float_ops (0.00%, 0.00%)\n");
    add_cpu_run(profile, 1, calls, 2);
    mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE, options);
    const mr_profile_entry *net = find_child(mr_profile_view_root(view), "net");
    CHECK_EQ(find_child(net, "net/sum")->own.float_ops, 8);
    CHECK_EQ(find_child(net, "net/product")->own.float_ops, 0); /* x is still unknown */
    mr_profile_view_free(view);
    add_cpu_run(profile, 1, calls, 2);
    view = make_view(profile, MR_PROFILE_SCOPE, options);
    net = find_child(mr_profile_view_root(view), "net");
    CHECK_EQ(find_child(net, "net/sum")->own.float_ops, 16);
    CHECK_EQ(find_child(net, "net/sum")->own.micros, 2);
    mr_profile_view_free(view);
    mr_profile_free(profile);
}

TEST(profile_accelerators)
{
    static const call scheduled[] = {{"net/product", 100, 5, 32, 4, 0, 0}, {"net/sum", 106, 1, 0, 0, 0, 0}};
    static const call kernels[] = {{"net/product:MatMul", 103, 200, 0, 0, 0, 0}, {"MEMCPYHtoD", 90, 3, 0, 0, 0, 0}};
    mr_profile *profile;
    mr_arena arena = {0};
    Mr__StepStats stats;
    mr_graph *g = small_graph(4);
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    begin_run(&arena, &stats);
    add_device(&arena, &stats, GPU, scheduled, 2);
    add_device(&arena, &stats, GPU "/stream:all", kernels, 2);
    add_device(&arena, &stats, GPU "/stream:14", kernels, 1); /* a part of stream:all */
    CHECK_OK(mr_profile_add_run(profile, 0, end_run(&arena, &stats), &error));
    mr_arena_deinit(&arena);
    mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){0});
    const mr_profile_figures total = find_child(mr_profile_view_root(view), "net")->total;
    CHECK_EQ(total.micros, 206);
    CHECK_EQ(total.accelerator_micros, 200);
    CHECK_EQ(total.cpu_micros, 6);
    CHECK_EQ(total.run_count, 2);
    mr_profile_view_free(view);

    mr_profile_advice *advice;
    CHECK_OK(mr_profile_advise(profile, &advice, &error));
    CHECK_STR(advice->items[advice->count - 1].checker, "AcceleratorUtilizationChecker");
    CHECK_STR(advice->items[advice->count - 1].text,
              "/job:localhost/replica:0/task:0/device:gpu:0 computes for 98.5 % of the step");
    mr_profile_advice_free(advice);
    mr_profile_free(profile);
}

TEST(profile_types_and_float_ops_of_the_program)
{
    mr_profile *profile = small_profile(4);
    CHECK_OK(mr_profile_add_type(profile, "out", "mine", &error));
    CHECK_OK(mr_profile_add_type(profile, "out", "mine", &error));
    CHECK_OK(mr_profile_set_float_ops(profile, "extra", 1234567, &error));
    check_text(profile, MR_PROFILE_SCOPE,
               (mr_profile_options){.account_type_regexes = MR_NAMES("mine", "extra"),
                                    .select = MR_PROFILE_OP_TYPES | MR_PROFILE_FLOAT_OPS},
               "node name | # float_ops | op types\n"
               "_TFProfRoot (--/1.23m flops, _kTFScopeParent)\n"
               "  extra (1.23m/1.23m flops, /job:localhost/replica:0/task:0/device:cpu:0|extra)\n"
               "  out (8/8 flops, /job:localhost/replica:0/task:0/device:cpu:0|Mul|mine)\n");
    CHECK_STATUS(mr_profile_add_type(profile, "none", "mine", &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_profile_add_type(profile, "out", "", &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_add_type(profile, "out", nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_set_float_ops(profile, "none", 1, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_profile_set_float_ops(profile, "out", -1, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_set_float_ops(nullptr, "out", 1, &error), MR_INVALID_ARGUMENT);
    mr_profile_free(profile);
}

/* Each option alone changes the text. */
TEST(profile_options_have_an_effect)
{
    const int64_t third = 3;
    const int32_t all = 2 * MR_PROFILE_OP_TYPES - 1;
    const mr_profile_options options[] = {
        {.step = &third, .select = all},
        {.min_bytes = 1, .select = all},
        {.min_peak_bytes = 1, .select = all},
        {.min_residual_bytes = 1, .select = all},
        {.min_output_bytes = 33, .select = all},
        {.min_micros = 7, .select = all},
        {.min_accelerator_micros = 1, .select = all},
        {.min_cpu_micros = 7, .select = all},
        {.min_params = 2, .select = all},
        {.min_float_ops = 5, .select = all},
        {.min_occurrence = 1, .select = all},
        {.max_depth = 2, .select = all},
        {.order_by = MR_PROFILE_MICROS, .select = all},
        {.select = MR_PROFILE_MICROS},
        {.account_type_regexes = MR_NAMES("Mul"), .select = all},
        {.start_name_regexes = MR_NAMES("net"), .select = all},
        {.trim_name_regexes = MR_NAMES("net"), .select = all},
        {.show_name_regexes = MR_NAMES("net.*"), .select = all},
        {.hide_name_regexes = MR_NAMES("out"), .select = all},
        {.account_displayed_op_only = true, .select = all},
    };
    mr_profile *profile = small_profile(4);
    mr_profile_view *base = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){.select = all});
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE, options[i]);
        if (strcmp(mr_profile_view_text(view), mr_profile_view_text(base)) == 0)
            test_fail(__FILE__, __LINE__, "options %zu have no effect", i);
        mr_profile_view_free(view);
    }
    for (int32_t column = 1; column <= MR_PROFILE_OP_TYPES; column *= 2) {
        mr_profile_view *view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){.select = column});
        CHECK(strlen(mr_profile_view_text(view)) < strlen(mr_profile_view_text(base)));
        mr_profile_view_free(view);
        if (column >= MR_PROFILE_DEVICE) continue;
        view = make_view(profile, MR_PROFILE_SCOPE, (mr_profile_options){.order_by = (mr_profile_column)column});
        CHECK_EQ(mr_profile_view_root(view)->child_count, 5);
        mr_profile_view_free(view);
    }
    mr_profile_view_free(base);
    mr_profile_free(profile);
}

TEST(profile_entries_below_hidden_ones_move_up)
{
    mr_profile *profile = small_profile(4);
    check_text(profile, MR_PROFILE_SCOPE,
               (mr_profile_options){.select = MR_PROFILE_PARAMS,
                                    .hide_name_regexes = MR_NAMES("net", "net/p.*"),
                                    .order_by = MR_PROFILE_PARAMS,
                                    .account_displayed_op_only = true,
                                    .trim_name_regexes = MR_NAMES("net/w")},
               "node name | # parameters\n"
               "_TFProfRoot (--/21 params)\n"
               "  x (4x3, 12/12 params)\n"
               "  net/w (3x2, 6/6 params)\n"
               "  net/b (2, 2/2 params)\n"
               "  s (1, 1/1 params)\n"
               "  extra (0/0 params)\n"
               "  net/sum (0/0 params)\n"
               "  out (0/0 params)\n");
    /* Hidden entries are part of the totals, unless only displayed ones are to be counted. */
    mr_profile_options options = {.select = MR_PROFILE_PARAMS, .show_name_regexes = MR_NAMES("net", "net/b")};
    check_text(profile, MR_PROFILE_SCOPE, options,
               "node name | # parameters\n"
               "_TFProfRoot (--/21 params)\n"
               "  net (0/8 params)\n"
               "    net/b (2, 2/2 params)\n");
    options.account_displayed_op_only = true;
    check_text(profile, MR_PROFILE_SCOPE, options,
               "node name | # parameters\n"
               "_TFProfRoot (--/2 params)\n"
               "  net (0/2 params)\n"
               "    net/b (2, 2/2 params)\n");
    check_text(profile, MR_PROFILE_GRAPH,
               (mr_profile_options){
                   .select = MR_PROFILE_PARAMS, .start_name_regexes = MR_NAMES("net/product", "s"), .max_depth = 2},
               "node name | # parameters\n"
               "_TFProfRoot (--/21 params)\n"
               "  net/product (0/18 params)\n"
               "  s (1, 1/1 params)\n");
    check_text(profile, MR_PROFILE_OP,
               (mr_profile_options){.select = MR_PROFILE_OCCURRENCE,
                                    .start_name_regexes = MR_NAMES("MatMul"),
                                    .trim_name_regexes = MR_NAMES("Var.*"),
                                    .hide_name_regexes = MR_NAMES("Mul")},
               "node name | op occurrence (run|defined)\n"
               "MatMul                          1|1\n"
               "Placeholder                     0|2\n");
    mr_profile_free(profile);
}

TEST(profile_of_an_empty_graph)
{
    mr_profile *profile;
    mr_graph *g = mr_graph_new();
    CHECK_OK(mr_profile_new(g, &profile, &error));
    check_text(profile, MR_PROFILE_SCOPE, (mr_profile_options){.select = MR_PROFILE_PARAMS},
               "node name | # parameters\n_TFProfRoot (--/0 params)\n");
    check_text(profile, MR_PROFILE_GRAPH, (mr_profile_options){.select = MR_PROFILE_DEVICE},
               "node name | assigned devices\n_TFProfRoot ()\n");
    check_text(profile, MR_PROFILE_OP, (mr_profile_options){.select = MR_PROFILE_FLOAT_OPS},
               "node name | # float_ops\n");
    mr_profile_advice *advice;
    CHECK_OK(mr_profile_advise(profile, &advice, &error));
    CHECK_EQ(advice->count, 0);
    mr_profile_advice_free(advice);
    add_cpu_run(profile, 0, nullptr, 0);
    CHECK_OK(mr_profile_advise(profile, &advice, &error));
    CHECK_EQ(advice->count, 0);
    mr_profile_advice_free(advice);
    mr_profile_free(profile);
    mr_graph_free(g);
    mr_profile_free(nullptr);
    mr_profile_view_free(nullptr);
    mr_profile_advice_free(nullptr);
}

TEST(profile_advice)
{
    mr_profile_advice *advice;
    mr_profile *profile = small_profile(4);
    static const call normal[] = {{"BatchNorm/mul", 100, 5000, 32, 4, 0, 0}};
    add_cpu_run(profile, 5, normal, 1);
    CHECK_OK(mr_profile_advise(profile, &advice, &error));
    CHECK_EQ(advice->count, 5);
    CHECK_STR(advice->items[0].checker, "ExpensiveOperationChecker");
    CHECK_STR(advice->items[0].text,
              "operator BatchNorm/mul takes 5.000 ms, 98.8 % of the time (0.000 ms on accelerators)");
    CHECK_CONTAINS(advice->items[1].text, "operator MatMul takes 0.030 ms");
    CHECK_CONTAINS(advice->items[3].text, "scope BatchNorm takes 5.000 ms");
    CHECK_STR(advice->items[4].checker, "OperationChecker");
    CHECK_CONTAINS(advice->items[4].text, "BatchNorm/mul belongs to a batch normalization of single operators");
    mr_profile_advice_free(advice);
    mr_profile_free(profile);
}

TEST(profile_views_are_written)
{
    mr_profile *profile = small_profile(4);
    mr_profile_view *view = make_view(profile, MR_PROFILE_OP, (mr_profile_options){0});
    mr_profile_free(profile); /* the view is independent */
    CHECK_OK(mr_profile_view_write(view, test_path("view.txt"), &error));
    char text[4096] = "";
    FILE *file = fopen(test_path("view.txt"), "r");
    CHECK(file != nullptr);
    CHECK(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    CHECK_STR(text, mr_profile_view_text(view));
    CHECK_STATUS(mr_profile_view_write(view, test_path("none/view.txt"), &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_profile_view_write(view, "", &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_view_write(view, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_profile_view_write_pprof(view, test_path("view.pb.gz"), &error)); /* profiler_oracle.py reads them */
    CHECK_STATUS(mr_profile_view_write_pprof(view, test_path("none/view"), &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_profile_view_write_pprof(view, "", &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_view_write_pprof(nullptr, "a", &error), MR_INVALID_ARGUMENT);
    mr_profile_view_free(view);
}
