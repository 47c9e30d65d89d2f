/* Construction of graphs: names, scopes, devices, control edges, attrs, the first error. */
#include "graph/ir/graph.h"
#include "tests/test.h"
#include <millrace/ops.h>

static mr_output zero(mr_graph *g)
{
    return mr_constant_float(g, 0);
}

TEST(names_count_up_as_in_tensorflow)
{
    mr_graph *g = mr_graph_new();
    CHECK_STR(mr_graph_unique_name(g, "a"), "a");
    CHECK_STR(mr_graph_unique_name(g, "a"), "a_1");
    CHECK_STR(mr_graph_unique_name(g, "a_1"), "a_1_1");
    CHECK_STR(mr_graph_unique_name(g, "a"), "a_2");
    /* Names that differ only in case clash; the given case is kept. */
    CHECK_STR(mr_graph_unique_name(g, "A"), "A_3");
    CHECK_STR(mr_graph_unique_name(g, "b_2"), "b_2");
    CHECK_STR(mr_graph_unique_name(g, "b"), "b");
    CHECK_STR(mr_graph_unique_name(g, "b"), "b_1");
    CHECK_STR(mr_graph_unique_name(g, "b"), "b_3");
    mr_graph_free(g);
}

TEST(scopes_nest_and_are_unique)
{
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "layer");
    CHECK_STR(mr_node_name(zero(g).node), "layer/Const");
    mr_graph_push_scope(g, "inner");
    CHECK_STR(mr_graph_scope(g), "layer/inner");
    CHECK_STR(mr_node_name(mr_relu(g, zero(g), .name = "r").node), "layer/inner/r");
    mr_graph_pop_scope(g);
    mr_graph_pop_scope(g);
    mr_graph_push_scope(g, "layer");
    CHECK_STR(mr_graph_scope(g), "layer_1");
    /* A name that ends with a slash reenters the scope of that name. */
    mr_graph_push_scope(g, "layer/");
    CHECK_STR(mr_node_name(zero(g).node), "layer/Const_1");
    mr_graph_push_scope(g, nullptr);
    CHECK_STR(mr_node_name(zero(g).node), "Const");
    for (int i = 0; i < 3; i++) mr_graph_pop_scope(g);
    CHECK_STR(mr_graph_scope(g), "");
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    mr_graph_free(g);
}

TEST(nodes_are_found_by_name)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4), .name = "x");
    mr_output_range parts = mr_split(g, mr_constant_int32(g, 1), x, .num_split = 2, .name = "parts");
    CHECK(mr_graph_find(g, "x") == x.node);
    CHECK(mr_graph_find(g, "y") == nullptr);
    mr_output second = mr_graph_find_output(g, "parts:1");
    CHECK(second.node == parts.node && second.index == 1);
    CHECK(mr_graph_find_output(g, "parts:2").node == nullptr);
    CHECK(mr_graph_find_output(g, "parts:-1").node == nullptr);
    CHECK(mr_graph_find_output(g, "parts:1x").node == nullptr);
    char text[MR_OUTPUT_NAME_SIZE];
    CHECK_STR(mr_output_name(mr_output_at(parts, 1), text, sizeof text), "parts:1");
    CHECK_EQ(parts.count, 2);
    CHECK_EQ(mr_node_input_count(parts.node), 2);
    CHECK(mr_node_input(parts.node, 1).node == x.node);
    mr_graph_free(g);
}

TEST(devices_merge)
{
    mr_graph *g = mr_graph_new();
    mr_graph_push_device(g, "/job:worker/task:1");
    mr_graph_push_device(g, "/gpu:0");
    CHECK_STR(mr_node_device(zero(g).node), "/job:worker/task:1/device:GPU:0");
    mr_graph_push_device(g, "/device:cpu:*");
    CHECK_STR(mr_node_device(zero(g).node), "/job:worker/task:1/device:cpu:0");
    mr_graph_push_device(g, nullptr);
    CHECK_STR(mr_node_device(zero(g).node), "");
    for (int i = 0; i < 4; i++) mr_graph_pop_device(g);
    mr_graph_push_device(g, "gpu 0");
    CHECK_EQ(mr_graph_status(g, nullptr), MR_INVALID_ARGUMENT);
    mr_graph_free(g);
}

TEST(control_scopes_leave_out_what_runs_after_already)
{
    mr_graph *g = mr_graph_new();
    mr_node *first = mr_no_op(g, .name = "first");
    mr_output x = zero(g);
    mr_graph_push_control_dependencies(g, &first, 1);
    mr_output inside = mr_relu(g, x);
    CHECK_EQ(mr_node_control_count(inside.node), 1);
    CHECK(mr_node_control(inside.node, 0) == first);
    /* The input already has a control edge from `first`. */
    CHECK_EQ(mr_node_control_count(mr_relu(g, inside).node), 0);
    mr_graph_push_control_dependencies(g, nullptr, 0);
    CHECK_EQ(mr_node_control_count(mr_relu(g, x).node), 0);
    mr_graph_pop_control_dependencies(g);
    mr_graph_pop_control_dependencies(g);
    CHECK_EQ(mr_node_control_count(mr_relu(g, x).node), 0);
    mr_node_add_control(x.node, first);
    mr_node_add_control(x.node, first);
    CHECK_EQ(mr_node_control_count(x.node), 1);
    mr_graph_free(g);
}

TEST(the_first_error_stays_and_names_the_node)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "model");
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3), .name = "x");
    mr_output bad = mr_mat_mul(g, x, x, .name = "product");
    mr_output after = mr_relu(g, bad);
    mr_fused_batch_norm_v3_outputs several = mr_fused_batch_norm_v3(g, after, x, x, x, x);
    CHECK_EQ(mr_output_dtype(several.batch_variance), MR_DTYPE_INVALID);
    CHECK_EQ(mr_output_at(mr_split(g, x, bad, .num_split = 3), 2).index, 0);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "model/product (MatMul): with inputs [2,3], [2,3]: a has rows of 3 elements, but b "
                             "has columns of 2");
    CHECK_EQ(mr_graph_node_count(g), 1);
    mr_graph_free(g);
}

TEST(builders_refuse_what_the_operator_does_not_take)
{
    const struct {
        const char *message;
        int which;
    } cases[] = {
        {"Conv2D (Conv2D): attr strides is missing", 0},
        {"Conv2D (Conv2D): attr padding is missing", 1},
        {"MaxPool (MaxPool): attr padding is \"REFLECT\", which is not an allowed value", 2},
        {"Add (Add): input 1 (y), i:0, is int32, but must be float as attr T says", 3},
        {"Split (Split): attr num_split is 0, below its minimum 1", 4},
        {"Relu (Relu): attr T is string, which this operator does not support", 5},
        {"Relu (Relu): input 0 is not an output of a graph", 6},
        {"Assign (Assign): input 0 (ref), x:0, must be a reference to a variable", 7},
        {"Frobnicate", 8},
        {"\"a b\" is not a valid node name", 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4, 4, 3), .name = "x");
        mr_output f = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3, 3, 3, 8));
        mr_output n = mr_placeholder(g, MR_INT32, .shape = MR_SCALAR, .name = "i");
        mr_ints ones = MR_INTS(1, 1, 1, 1);
        switch (cases[i].which) {
        case 0:
            mr_conv2d(g, x, f, .padding = MR_SAME);
            break;
        case 1:
            mr_conv2d(g, x, f, .strides = ones);
            break;
        case 2:
            mr_max_pool(g, x, .ksize = ones, .strides = ones, .padding = MR_REFLECT);
            break;
        case 3:
            mr_add(g, x, n);
            break;
        case 4:
            mr_split(g, n, x);
            break;
        case 5:
            mr_relu(g, mr_placeholder(g, MR_STRING));
            break;
        case 6:
            mr_relu(g, (mr_output){0});
            break;
        case 7:
            mr_assign(g, x, x);
            break;
        case 8: {
            mr_node_builder b = mr_node_begin(g, "Frobnicate", nullptr);
            mr_node_add_input(&b, x);
            CHECK(mr_node_finish(&b).node->id < 0);
            break;
        }
        default:
            mr_relu(g, x, .name = "a b");
        }
        CHECK(mr_graph_status(g, &error) != MR_OK);
        if (strstr(error.message, cases[i].message) == nullptr)
            test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", cases[i].message, error.message);
        mr_graph_free(g);
    }
}

TEST(options_left_out_have_the_default)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4, 4, 3));
    mr_output c = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3));
    CHECK_EQ(mr_output_shape(mr_placeholder(g, MR_FLOAT)).rank, -1);
    CHECK_EQ(mr_output_shape(mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR)).rank, 0);
    mr_node *left_out = mr_fused_batch_norm_v3(g, x, c, c, c, c).y.node;
    mr_node *given = mr_fused_batch_norm_v3(g, x, c, c, c, c, .is_training = false, .epsilon = 0).y.node;
    CHECK(mr_attr_bool_or(&left_out->attrs, "is_training", false));
    CHECK(!mr_attr_bool_or(&given->attrs, "is_training", true));
    CHECK_NEAR(mr_attr_float_or(&left_out->attrs, "epsilon", 0), 1e-4, 1e-10);
    CHECK_NEAR(mr_attr_float_or(&given->attrs, "epsilon", 1), 0, 0);
    CHECK(mr_string_equal(mr_attr_string_or(&given->attrs, "data_format", ""), MR_STR("NHWC")));
    CHECK_EQ(mr_attr_int_or(&mr_one_hot(g, mr_constant_int32(g, 1), mr_constant_int32(g, 3), mr_constant_float(g, 1),
                                        mr_constant_float(g, 0))
                                 .node->attrs,
                            "axis", 0),
             -1);
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    mr_graph_free(g);
}

TEST(seeds_pair_as_in_tensorflow)
{
    mr_graph *g = mr_graph_new();
    int64_t five = 5, none = 0, seed = -1, seed2 = -1;
    mr_graph_seed_pair(g, nullptr, &seed, &seed2);
    CHECK(seed == 0 && seed2 == 0);
    mr_graph_seed_pair(g, &five, &seed, &seed2);
    CHECK(seed == 87654321 && seed2 == 5);
    mr_graph_set_seed(g, 0);
    mr_graph_seed_pair(g, nullptr, &seed, &seed2);
    CHECK(seed == 0 && seed2 == INT32_MAX);
    mr_graph_set_seed(g, 7);
    mr_graph_seed_pair(g, nullptr, &seed, &seed2);
    CHECK(seed == 7 && seed2 == 1);
    mr_graph_seed_pair(g, &none, &seed, &seed2);
    CHECK(seed == 7 && seed2 == 0);
    mr_graph_free(g);
}

TEST(variables_are_named_and_collected_as_in_tensorflow)
{
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "q");
    mr_variable a = mr_variable_new(g, "w", zero(g));
    mr_variable b = mr_variable_new(g, "w", zero(g), .trainable = false);
    mr_variable c = mr_variable_new(g, "count", zero(g), .local = true);
    mr_graph_pop_scope(g);
    CHECK_STR(mr_node_name(a.ref.node), "q/w");
    CHECK_STR(mr_node_name(a.initializer), "q/w/Assign");
    CHECK_STR(mr_node_name(a.value.node), "q/w/read");
    CHECK_STR(mr_node_name(b.value.node), "q/w_1/read");
    CHECK(mr_output_is_ref(a.ref) && !mr_output_is_ref(a.value));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 2);
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 1);
    CHECK(mr_graph_variable(g, MR_LOCAL_VARIABLES, 0).ref.node == c.ref.node);
    CHECK(mr_graph_collection_item(g, MR_GLOBAL_VARIABLES, 1).node == b.ref.node);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_STR(mr_node_name(init), "init");
    CHECK_EQ(mr_node_control_count(init), 2);
    mr_graph_add_to_collection(g, MR_LOSSES, a.value);
    CHECK_EQ(mr_graph_collection_count(g, MR_LOSSES), 1);
    CHECK(mr_graph_collection_item(g, MR_LOSSES, 0).node == a.value.node);
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    mr_graph_free(g);
}

TEST(known_values_follow_shapes_through_operators)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 3));
    mr_output shape = mr_shape_of(g, x);
    mr_output batch = mr_strided_slice(g, shape, mr_constant_ints(g, MR_INTS(0)), mr_constant_ints(g, MR_INTS(1)),
                                       mr_constant_ints(g, MR_INTS(1)), .shrink_axis_mask = 1);
    mr_output rest = mr_slice(g, shape, mr_constant_ints(g, MR_INTS(1)), mr_constant_ints(g, MR_INTS(-1)));
    mr_output count = mr_prod(g, rest, mr_constant_ints(g, MR_INTS(0)));
    mr_tensor value = {0};
    CHECK(mr_output_constant(count, &value));
    CHECK_EQ(mr_tensor_int32s(&value)[0], 28 * 28 * 3);
    mr_tensor_deinit(&value);
    CHECK(!mr_output_constant(batch, &value));
    mr_output flat = mr_reshape(g, x, mr_pack(g, MR_OUTPUTS(batch, count)));
    CHECK(mr_shape_equal(mr_output_shape(flat), MR_SHAPE(-1, 28 * 28 * 3)));
    mr_output joined = mr_concat_v2(g, MR_OUTPUTS(mr_constant_ints(g, MR_INTS(7)), rest), mr_constant_int32(g, 0));
    CHECK(mr_shape_equal(mr_output_shape(mr_fill(g, joined, zero(g))), MR_SHAPE(7, 28, 28, 3)));
    mr_output halves = mr_floor_div(g, rest, mr_constant_int32(g, 2));
    CHECK(mr_shape_equal(mr_output_shape(mr_fill(g, halves, zero(g))), MR_SHAPE(14, 14, 1)));
    mr_output_range apart = mr_unpack(g, shape, .num = 4);
    CHECK(mr_output_constant(mr_output_at(apart, 3), &value));
    CHECK_EQ(mr_tensor_int32s(&value)[0], 3);
    mr_tensor_deinit(&value);
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    mr_graph_free(g);
}

TEST(shapes_can_be_narrowed)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT);
    mr_output_set_shape(x, MR_SHAPE(-1, 3));
    mr_output_set_shape(x, MR_SHAPE(2, -1));
    CHECK(mr_shape_equal(mr_output_shape(x), MR_SHAPE(2, 3)));
    mr_output_set_shape(x, MR_SHAPE(4, 3));
    CHECK_EQ(mr_graph_status(g, nullptr), MR_INVALID_ARGUMENT);
    mr_graph_free(g);
}
