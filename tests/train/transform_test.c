/* Freezing and transforms: values before and after, on random models, and what is refused. */
#include "tests/test.h"
#include <millrace/millrace.h>

static uint64_t state;

static float real(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 33) / 0x1p30f - 1;
}

static mr_output constant(mr_graph *g, mr_shape shape, float low, const char *name)
{
    float values[4096];
    for (int64_t i = 0; i < mr_shape_count(shape); i++) values[i] = low + (low > 0 ? fabsf(real()) : real());
    return mr_constant_floats(g, shape, values, name);
}

/* Imports a result, feeds x with the same elements, and fetches y. */
static void run(mr_string bytes, mr_shape shape, mr_tensor *y)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_tensor x = {0};
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_tensor_init(&x, MR_FLOAT, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&x); i++) mr_tensor_floats(&x)[i] = sinf((float)i);
    CHECK_OK(mr_session_run(session, MR_FEEDS({mr_graph_find_output(g, "x"), x}),
                            MR_OUTPUTS(mr_graph_find_output(g, "y")), y, nullptr, 0, &error));
    mr_tensor_deinit(&x);
    mr_session_free(session);
    mr_graph_free(g);
}

static void check_near(const mr_tensor *a, const mr_tensor *b, float tolerance)
{
    CHECK_EQ(mr_tensor_count(a), mr_tensor_count(b));
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        const float left = mr_tensor_floats(a)[i], right = mr_tensor_floats(b)[i];
        if (!(fabsf(left - right) <= tolerance * (1 + fabsf(left))))
            test_fail(__FILE__, __LINE__, "element %lld: %g, not %g", (long long)i, right, left);
    }
}

/* Number of nodes of an operator in a GraphDef. */
static int32_t count_ops(mr_string bytes, const char *op)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    int32_t count = 0;
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error));
    for (int32_t i = 0; i < mr_graph_node_count(g); i++) count += strcmp(mr_node_op(mr_graph_node(g, i)), op) == 0;
    mr_graph_free(g);
    return count;
}

/* Applies a transform to g and compares y before and after. Returns the result. */
static mr_tensor compare(mr_graph *g, mr_transform transform, mr_shape shape, float tolerance)
{
    mr_error error = {0};
    mr_tensor before = {0}, after = {0}, expected = {0}, found = {0};
    CHECK_OK(mr_graph_export(g, &before, &error));
    CHECK_OK(mr_graph_transform(g, MR_NAMES("x"), MR_NAMES("y"), (mr_transforms){&transform, 1}, &after, &error));
    run(mr_tensor_strings(&before)[0], shape, &expected);
    run(mr_tensor_strings(&after)[0], shape, &found);
    check_near(&expected, &found, tolerance);
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&expected);
    mr_tensor_deinit(&found);
    return after;
}

TEST(freeze_makes_constants_of_both_kinds_of_variables)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    mr_variable w = mr_variable_new(g, "w", constant(g, MR_SHAPE(3, 2), 0, "initial_w"));
    mr_variable b = mr_variable_new(g, "b", constant(g, MR_SHAPE(2), 0, "initial_b"), .use_resource = true);
    mr_variable t = mr_variable_new(g, "t", constant(g, MR_SHAPE(5, 2), 0, "initial_t"), .use_resource = true);
    mr_output row = mr_resource_gather(g, t.ref, mr_constant_int32(g, 3), MR_FLOAT, .name = "row");
    mr_output y = mr_add(g, mr_add(g, mr_mat_mul(g, x, w.value), b.value), row, .name = "y");
    (void)mr_assign_add(g, w.ref, w.value, .name = "update");
    (void)y;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    mr_session *session = nullptr;
    mr_tensor frozen = {0}, kept = {0}, expected = {0}, found = {0}, input = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_STATUS(mr_graph_freeze(g, session, MR_NAMES("y"), nullptr, &frozen, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_graph_freeze(g, session, MR_NAMES("y:0"), nullptr, &frozen, &error));
    CHECK_OK(mr_tensor_init(&input, MR_FLOAT, MR_SHAPE(4, 3), &error));
    for (int i = 0; i < 12; i++) mr_tensor_floats(&input)[i] = sinf((float)i);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, input}), MR_OUTPUTS(y), &expected, nullptr, 0, &error));
    run(mr_tensor_strings(&frozen)[0], MR_SHAPE(4, 3), &found);
    check_near(&expected, &found, 0);
    CHECK_EQ(count_ops(mr_tensor_strings(&frozen)[0], "GatherV2"), 1);
    CHECK_EQ(count_ops(mr_tensor_strings(&frozen)[0], "Const"), 5);
    CHECK_EQ(count_ops(mr_tensor_strings(&frozen)[0], "VarHandleOp"), 0);
    CHECK_OK(mr_graph_freeze(g, session, MR_NAMES("y"), MR_OPTIONS(mr_freeze_options, .blacklist = MR_NAMES("b")),
                             &kept, &error));
    CHECK_EQ(count_ops(mr_tensor_strings(&kept)[0], "ReadVariableOp"), 1);
    CHECK_EQ(count_ops(mr_tensor_strings(&kept)[0], "VariableV2"), 0);
    mr_tensor_deinit(&kept);
    CHECK_STATUS(mr_graph_freeze(g, session, MR_NAMES("update"), nullptr, &kept, &error), MR_FAILED_PRECONDITION);
    CHECK(strstr(error.message, "update (AssignAdd), which changes the variable w"));
    CHECK_STATUS(mr_graph_freeze(g, session, MR_NAMES("yy"), nullptr, &kept, &error), MR_NOT_FOUND);
    CHECK(strstr(error.message, "the output yy is not in the graph; the nearest are y"));
    CHECK_STATUS(mr_graph_freeze(g, session, MR_NAMES("y"), MR_OPTIONS(mr_freeze_options, .whitelist = MR_NAMES("x")),
                                 &kept, &error),
                 MR_NOT_FOUND);
    CHECK_STATUS(mr_graph_freeze(g, session, (mr_names){0}, nullptr, &kept, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_freeze(g, nullptr, MR_NAMES("y"), nullptr, &kept, &error), MR_INVALID_ARGUMENT);
    for (mr_tensor *t0[] = {&frozen, &expected, &found, &input}, **at = t0; at < t0 + 4; at++) mr_tensor_deinit(*at);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(remove_training_nodes_splices)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output a = mr_identity(g, mr_check_numerics(g, mr_identity(g, x), .message = "bad"), .name = "a");
    mr_node *after = a.node;
    mr_graph_push_control_dependencies(g, &after, 1);
    mr_output b = mr_identity(g, x, .name = "b");
    mr_graph_pop_control_dependencies(g);
    (void)mr_identity(g, mr_mul(g, a, b), .name = "y");
    mr_tensor result = {0}, before = {0}, expected = {0}, found = {0};
    CHECK_OK(mr_graph_remove_training_nodes(g, MR_NAMES("y"), &result, &error));
    CHECK_EQ(count_ops(mr_tensor_strings(&result)[0], "CheckNumerics"), 0);
    CHECK_EQ(count_ops(mr_tensor_strings(&result)[0], "Identity"), 3);
    CHECK_OK(mr_graph_export(g, &before, &error));
    run(mr_tensor_strings(&before)[0], MR_SHAPE(5), &expected);
    run(mr_tensor_strings(&result)[0], MR_SHAPE(5), &found);
    check_near(&expected, &found, 0);
    for (mr_tensor *t[] = {&result, &before, &expected, &found}, **at = t; at < t + 4; at++) mr_tensor_deinit(*at);
    mr_graph_free(g);
}

TEST(transforms_keep_values_of_normalized_convolutions)
{
    state = test_seed();
    for (int round = 0; round < 12; round++) {
        mr_graph *g = mr_graph_new();
        const int64_t in = 1 + round % 3, out = 2 + round % 4;
        const bool is_depthwise = round % 2 == 1, is_biased = round % 3 == 0, is_old = round % 4 == 3;
        const int64_t channels = is_depthwise ? in * out : out;
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 5, 5, in), .name = "x");
        mr_output w = mr_identity(g, constant(g, MR_SHAPE(3, 3, in, out), 0, "w"), .name = "w/read");
        mr_output h = is_depthwise
                          ? mr_depthwise_conv2d_native(g, x, w, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME)
                          : mr_conv2d(g, x, w, .strides = MR_INTS(1, 2, 2, 1), .padding = MR_SAME);
        if (is_biased) h = mr_bias_add(g, h, constant(g, MR_SHAPE(channels), 0, "bias"));
        mr_output scale = constant(g, MR_SHAPE(channels), 0, "scale"), offset = constant(g, MR_SHAPE(channels), 0, "o");
        mr_output mean = constant(g, MR_SHAPE(channels), 0, "mean"), variance = constant(g, MR_SHAPE(channels), 1, "v");
        if (is_old)
            (void)mr_batch_norm_with_global_normalization(g, h, mean, variance, offset, scale,
                                                          .variance_epsilon = 0.01f,
                                                          .scale_after_normalization = round % 8 == 3, .name = "y");
        else
            (void)mr_fused_batch_norm(g, h, scale, offset, mean, variance, .is_training = false, .name = "y");
        mr_tensor result =
            compare(g, (mr_transform){.kind = MR_TRANSFORM_FOLD_OLD_BATCH_NORMS}, MR_SHAPE(2, 5, 5, in), 2e-5f);
        CHECK_EQ(
            count_ops(mr_tensor_strings(&result)[0], is_old ? "BatchNormWithGlobalNormalization" : "FusedBatchNorm"),
            0);
        CHECK_EQ(count_ops(mr_tensor_strings(&result)[0], "BiasAdd"), 1);
        mr_tensor_deinit(&result);
        mr_graph_free(g);
    }
}

TEST(transforms_fold_factors_constants_and_quantize)
{
    state = test_seed();
    for (int round = 0; round < 8; round++) {
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 8), .name = "x");
        mr_output w = constant(g, round % 2 == 0 ? MR_SHAPE(8, 6) : MR_SHAPE(6, 8), 0, "w");
        mr_output factor = mr_rsqrt(g, constant(g, round == 3 ? MR_SHAPE(1) : MR_SHAPE(6), 1, "variance"));
        mr_output h = mr_mat_mul(g, x, w, .transpose_b = round % 2 == 1);
        (void)(round < 4 ? mr_mul(g, h, factor, .name = "y") : mr_mul(g, factor, h, .name = "y"));
        mr_tensor folded = compare(g, (mr_transform){.kind = MR_TRANSFORM_FOLD_CONSTANTS}, MR_SHAPE(3, 8), 1e-6f);
        CHECK_EQ(count_ops(mr_tensor_strings(&folded)[0], "Rsqrt"), 0);
        mr_graph *second = mr_graph_new();
        mr_error error = {0};
        mr_string bytes = mr_tensor_strings(&folded)[0];
        CHECK_OK(mr_graph_import(second, bytes.data, bytes.size_bytes, nullptr, &error));
        mr_tensor product =
            compare(second, (mr_transform){.kind = MR_TRANSFORM_FOLD_BATCH_NORMS}, MR_SHAPE(3, 8), 1e-5f);
        CHECK_EQ(count_ops(mr_tensor_strings(&product)[0], "Mul"), 0);
        mr_tensor small = compare(second, (mr_transform){.kind = MR_TRANSFORM_QUANTIZE_WEIGHTS, .minimum_size = 7},
                                  MR_SHAPE(3, 8), 0.05f);
        CHECK_EQ(count_ops(mr_tensor_strings(&small)[0], "Dequantize"), 1);
        for (mr_tensor *t[] = {&folded, &product, &small}, **at = t; at < t + 3; at++) mr_tensor_deinit(*at);
        mr_graph_free(second);
        mr_graph_free(g);
    }
}

TEST(transforms_strip_and_remove)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output raw = mr_placeholder(g, MR_STRING, .shape = MR_SHAPE(-1), .name = "raw");
    mr_output x = mr_string_to_number(g, raw, .name = "x");
    mr_output pieces[3];
    mr_output_range split = mr_split(g, mr_constant_int32(g, 0),
                                     mr_constant_floats(g, MR_SHAPE(3), (float[]){1, 2, 3}, "c"), .num_split = 3);
    for (int i = 0; i < 3; i++) pieces[i] = mr_output_at(split, i);
    mr_output sum = mr_add(g, x, mr_mul(g, pieces[1], pieces[2]));
    (void)mr_identity(g, mr_identity(g, sum), .name = "y");
    (void)mr_square(g, sum, .name = "unused");
    const mr_transform list[] = {{.kind = MR_TRANSFORM_STRIP_UNUSED_NODES},
                                 {.kind = MR_TRANSFORM_REMOVE_NODES, .ops = MR_NAMES("Identity")},
                                 {.kind = MR_TRANSFORM_FOLD_CONSTANTS}};
    mr_tensor result = {0}, y = {0};
    CHECK_OK(mr_graph_transform(g, MR_NAMES("x"), MR_NAMES("y"), (mr_transforms){list, 3}, &result, &error));
    const mr_string bytes = mr_tensor_strings(&result)[0];
    CHECK_EQ(count_ops(bytes, "Square") + count_ops(bytes, "StringToNumber") + count_ops(bytes, "Split"), 0);
    CHECK_EQ(count_ops(bytes, "Placeholder"), 1);
    CHECK_EQ(count_ops(bytes, "Const"), 1);
    CHECK_EQ(count_ops(bytes, "Identity"), 1);
    run(bytes, MR_SHAPE(4), &y);
    for (int i = 0; i < 4; i++) CHECK(fabsf(mr_tensor_floats(&y)[i] - sinf((float)i) - 6) < 1e-5f);
    mr_tensor_deinit(&y);
    mr_tensor_deinit(&result);
    const struct {
        mr_transform transform;
        const char *message;
    } wrong[] = {
        {{0}, "transform 0 has the kind 0"},
        {{.kind = MR_TRANSFORM_REMOVE_NODES}, "remove_nodes without names"},
        {{.kind = MR_TRANSFORM_REMOVE_NODES, .ops = MR_NAMES("Nothing")}, "there is no operator Nothing"},
        {{.kind = MR_TRANSFORM_FOLD_CONSTANTS, .minimum_size = 3}, "fold_constants: minimum_size has no effect"},
        {{.kind = MR_TRANSFORM_QUANTIZE_WEIGHTS, .minimum_size = -1}, "minimum_size is negative"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(mr_graph_transform(g, MR_NAMES("x"), MR_NAMES("y"), (mr_transforms){&wrong[i].transform, 1},
                                        &result, &error),
                     MR_INVALID_ARGUMENT);
        if (strstr(error.message, wrong[i].message) == nullptr)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, error.message);
    }
    CHECK_STATUS(mr_graph_transform(g, MR_NAMES("X"), MR_NAMES("y"), (mr_transforms){0}, &result, &error),
                 MR_NOT_FOUND);
    CHECK_STATUS(mr_graph_transform(g, MR_NAMES("x"), (mr_names){0}, (mr_transforms){0}, &result, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_extract(g, MR_NAMES("^y"), &result, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_extract(nullptr, MR_NAMES("y"), &result, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(g);
}

TEST(freeze_reads_variables_in_branches_and_loops)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "x"), v[2], looped[2], branched = {0};
    mr_variable r = mr_variable_new(g, "r", constant(g, MR_SHAPE(2), 1, "initial"), .use_resource = true);
    mr_output zero = mr_constant_int32(g, 0);
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(zero, x), v, .parallel_iterations = 10);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_add(g, mr_constant_int32(g, 1), mr_constant_int32(g, 2))), v);
    mr_output step = mr_add(g, v[0], mr_constant_int32(g, 1));
    mr_while_loop_end(loop, MR_OUTPUTS(step, mr_mul(g, v[1], mr_variable_read_value(g, r))), looped);
    mr_cond *cond = mr_cond_begin(g, mr_less(g, mr_constant_float(g, 1), mr_constant_float(g, 2)));
    mr_cond_else(cond, MR_OUTPUTS(mr_variable_read_value(g, r)));
    mr_cond_end(cond, MR_OUTPUTS(mr_neg(g, mr_variable_read_value(g, r))), &branched);
    mr_output y = mr_add(g, looped[1], branched, .name = "y");
    mr_session *session = nullptr;
    mr_tensor frozen = {0}, folded = {0}, expected = {0}, found = {0}, input = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &r.initializer, 1, &error));
    CHECK_OK(mr_graph_freeze(g, session, MR_NAMES("y"), nullptr, &frozen, &error));
    CHECK_EQ(count_ops(mr_tensor_strings(&frozen)[0], "ReadVariableOp"), 0);
    CHECK_OK(mr_tensor_init(&input, MR_FLOAT, MR_SHAPE(2), &error));
    for (int i = 0; i < 2; i++) mr_tensor_floats(&input)[i] = sinf((float)i);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, input}), MR_OUTPUTS(y), &expected, nullptr, 0, &error));
    run(mr_tensor_strings(&frozen)[0], MR_SHAPE(2), &found);
    check_near(&expected, &found, 0);
    mr_tensor_deinit(&found);
    mr_graph *second = mr_graph_new();
    const mr_string bytes = mr_tensor_strings(&frozen)[0];
    CHECK_OK(mr_graph_import(second, bytes.data, bytes.size_bytes, nullptr, &error));
    const mr_transform list[] = {{.kind = MR_TRANSFORM_FOLD_CONSTANTS}, {.kind = MR_TRANSFORM_STRIP_UNUSED_NODES}};
    CHECK_OK(mr_graph_transform(second, MR_NAMES("x"), MR_NAMES("y"), (mr_transforms){list, 2}, &folded, &error));
    run(mr_tensor_strings(&folded)[0], MR_SHAPE(2), &found);
    check_near(&expected, &found, 0);
    for (mr_tensor *t[] = {&frozen, &folded, &expected, &found, &input}, **at = t; at < t + 5; at++)
        mr_tensor_deinit(*at);
    mr_session_free(session);
    mr_graph_free(second);
    mr_graph_free(g);
}
