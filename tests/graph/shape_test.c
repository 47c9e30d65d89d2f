/* Shape functions, tested through the public interface: the shape of an output, or the error.
 * tests/oracle/graph_oracle.py compares them with TensorFlow's. */
#include "tests/test.h"
#include <millrace/ops.h>

static mr_output of(mr_graph *g, mr_shape shape)
{
    return mr_placeholder(g, MR_FLOAT, .shape = shape);
}

static void check_shape(int line, mr_graph *g, mr_output output, mr_shape expected)
{
    char found[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    mr_error error = {0};
    if (mr_graph_status(g, &error) != MR_OK) test_fail(__FILE__, line, "%s", error.message);
    mr_shape_text(mr_output_shape(output), found, sizeof found);
    mr_shape_text(expected, wanted, sizeof wanted);
    if (strcmp(found, wanted) != 0) test_fail(__FILE__, line, "shape is %s, not %s", found, wanted);
}
#define CHECK_SHAPE(output, ...) check_shape(__LINE__, g, (output), __VA_ARGS__)

/* Checks that the last builder failed with a message that contains `text`. Returns a new graph. */
static mr_graph *check_failed(int line, mr_graph *g, const char *text)
{
    mr_error error = {0};
    if (mr_graph_status(g, &error) == MR_OK) test_fail(__FILE__, line, "no error: %s", text);
    if (strstr(error.message, text) == nullptr)
        test_fail(__FILE__, line, "\"%s\" is not in \"%s\"", text, error.message);
    mr_graph_free(g);
    return mr_graph_new();
}
#define CHECK_FAILED(text) (g = check_failed(__LINE__, g, (text)))

TEST(shapes_of_convolution_and_pooling)
{
    mr_graph *g = mr_graph_new();
    mr_output x = of(g, MR_SHAPE(-1, 28, 28, 3)), f = of(g, MR_SHAPE(5, 5, 3, 16));
    mr_ints ones = MR_INTS(1, 1, 1, 1), twos = MR_INTS(1, 2, 2, 1);
    CHECK_SHAPE(mr_conv2d(g, x, f, .strides = ones, .padding = MR_SAME), MR_SHAPE(-1, 28, 28, 16));
    CHECK_SHAPE(mr_conv2d(g, x, f, .strides = twos, .padding = MR_SAME), MR_SHAPE(-1, 14, 14, 16));
    CHECK_SHAPE(mr_conv2d(g, x, f, .strides = twos, .padding = MR_VALID), MR_SHAPE(-1, 12, 12, 16));
    CHECK_SHAPE(mr_conv2d(g, x, f, .strides = ones, .padding = MR_VALID, .dilations = twos), MR_SHAPE(-1, 20, 20, 16));
    CHECK_SHAPE(mr_conv2d(g, x, f, .strides = ones, .padding = MR_EXPLICIT,
                          .explicit_paddings = MR_INTS(0, 0, 1, 2, 0, 3, 0, 0)),
                MR_SHAPE(-1, 27, 27, 16));
    CHECK_SHAPE(mr_depthwise_conv2d_native(g, x, of(g, MR_SHAPE(3, 3, 3, 2)), .strides = ones, .padding = MR_SAME),
                MR_SHAPE(-1, 28, 28, 6));
    CHECK_SHAPE(mr_max_pool(g, x, .ksize = twos, .strides = twos, .padding = MR_VALID), MR_SHAPE(-1, 14, 14, 3));
    CHECK_SHAPE(mr_avg_pool(g, of(g, MR_SHAPE(1, 3, 7, 7)), .ksize = MR_INTS(1, 1, 3, 3),
                            .strides = MR_INTS(1, 1, 2, 2), .padding = MR_SAME, .data_format = MR_NCHW),
                MR_SHAPE(1, 3, 4, 4));
    CHECK_SHAPE(mr_conv2d(g, of(g, MR_SHAPE_UNKNOWN), f, .strides = ones, .padding = MR_SAME),
                MR_SHAPE(-1, -1, -1, 16));
    mr_conv2d(g, x, of(g, MR_SHAPE(3, 3, 4, 8)), .strides = ones, .padding = MR_SAME);
    CHECK_FAILED("input has 3 channels, filter takes 4");
    mr_conv2d(g, of(g, MR_SHAPE(1, 2, 2, 3)), of(g, MR_SHAPE(5, 5, 3, 8)), .strides = ones, .padding = MR_VALID);
    CHECK_FAILED("Computed output size would be negative");
    mr_max_pool(g, of(g, MR_SHAPE(1, 4, 4, 1)), .ksize = MR_INTS(2, 2), .strides = ones, .padding = MR_SAME);
    CHECK_FAILED("attr ksize has 2 values, but needs 4");
    mr_graph_free(g);
}

TEST(shapes_of_reshape)
{
    mr_graph *g = mr_graph_new();
    mr_output x = of(g, MR_SHAPE(4, 6)), open = of(g, MR_SHAPE(-1, 6));
    CHECK_SHAPE(mr_reshape(g, x, mr_constant_ints(g, MR_INTS(-1, 8))), MR_SHAPE(3, 8));
    CHECK_SHAPE(mr_reshape(g, open, mr_constant_ints(g, MR_INTS(-1, 2))), MR_SHAPE(-1, 2));
    CHECK_SHAPE(mr_reshape(g, x, mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(3))), MR_SHAPE(-1, -1, -1));
    CHECK_SHAPE(mr_reshape(g, x, mr_placeholder(g, MR_INT32)), MR_SHAPE_UNKNOWN);
    CHECK_SHAPE(mr_expand_dims(g, x, mr_constant_int32(g, -1)), MR_SHAPE(4, 6, 1));
    CHECK_SHAPE(mr_squeeze(g, of(g, MR_SHAPE(1, 4, 1))), MR_SHAPE(4));
    CHECK_SHAPE(mr_squeeze(g, of(g, MR_SHAPE(1, -1, 1)), .squeeze_dims = MR_INTS(-1)), MR_SHAPE(1, -1));
    mr_reshape(g, x, mr_constant_ints(g, MR_INTS(5, 5)));
    CHECK_FAILED("[4,6] has 24 elements, which do not fit [5,5]");
    mr_squeeze(g, of(g, MR_SHAPE(1, 2)), .squeeze_dims = MR_INTS(1));
    CHECK_FAILED("dimension 1 has size 2, not 1");
    mr_graph_free(g);
}

TEST(shapes_of_joining_and_cutting)
{
    mr_graph *g = mr_graph_new();
    mr_output a = of(g, MR_SHAPE(2, -1)), b = of(g, MR_SHAPE(3, 5)), axis = mr_constant_int32(g, 0);
    CHECK_SHAPE(mr_concat_v2(g, MR_OUTPUTS(a, b), axis), MR_SHAPE(5, 5));
    CHECK_SHAPE(mr_pack(g, MR_OUTPUTS(b, b), .axis = -1), MR_SHAPE(3, 5, 2));
    CHECK_SHAPE(mr_output_at(mr_unpack(g, b, .num = 5, .axis = 1), 4), MR_SHAPE(3));
    CHECK_SHAPE(mr_output_at(mr_split(g, mr_constant_int32(g, 1), of(g, MR_SHAPE(2, 6)), .num_split = 3), 2),
                MR_SHAPE(2, 2));
    mr_output_range pieces =
        mr_split_v(g, of(g, MR_SHAPE(10, 2)), mr_constant_ints(g, MR_INTS(3, -1)), axis, .num_split = 2);
    CHECK_SHAPE(mr_output_at(pieces, 1), MR_SHAPE(7, 2));
    CHECK_SHAPE(
        mr_slice(g, of(g, MR_SHAPE(10, -1)), mr_constant_ints(g, MR_INTS(2, 0)), mr_constant_ints(g, MR_INTS(-1, 3))),
        MR_SHAPE(8, 3));
    mr_output image = of(g, MR_SHAPE(8, 6, 5, 4));
    /* image[..., 1:, newaxis, 0] and image[::-2, 3] */
    CHECK_SHAPE(mr_strided_slice(g, image, mr_constant_ints(g, MR_INTS(0, 1, 0, 0)),
                                 mr_constant_ints(g, MR_INTS(0, 0, 0, 1)), mr_constant_ints(g, MR_INTS(1, 1, 1, 1)),
                                 .ellipsis_mask = 1, .end_mask = 2, .new_axis_mask = 4, .shrink_axis_mask = 8),
                MR_SHAPE(8, 6, 4, 1));
    CHECK_SHAPE(mr_strided_slice(g, image, mr_constant_ints(g, MR_INTS(0, 3)), mr_constant_ints(g, MR_INTS(0, 4)),
                                 mr_constant_ints(g, MR_INTS(-2, 1)), .begin_mask = 1, .end_mask = 1,
                                 .shrink_axis_mask = 2),
                MR_SHAPE(4, 5, 4));
    mr_concat_v2(g, MR_OUTPUTS(of(g, MR_SHAPE(2, 3)), b), axis);
    CHECK_FAILED("Dimension 1 in both shapes must be equal, but are 3 and 5");
    mr_split(g, mr_constant_int32(g, 0), of(g, MR_SHAPE(7)), .num_split = 2);
    CHECK_FAILED("dimension 0 of size 7 cannot be split into 2 equal parts");
    mr_slice(g, of(g, MR_SHAPE(4)), mr_constant_ints(g, MR_INTS(3)), mr_constant_ints(g, MR_INTS(2)));
    CHECK_FAILED("dimension 0 of size 4 has no slice at 3 of size 2");
    mr_graph_free(g);
}

TEST(shapes_of_arithmetic_and_reductions)
{
    mr_graph *g = mr_graph_new();
    mr_output a = of(g, MR_SHAPE(-1, 1, 4)), b = of(g, MR_SHAPE(3, 1));
    CHECK_SHAPE(mr_add(g, a, b), MR_SHAPE(-1, 3, 4));
    CHECK_SHAPE(mr_select_v2(g, mr_greater(g, a, b), a, mr_constant_float(g, 0)), MR_SHAPE(-1, 3, 4));
    CHECK_SHAPE(mr_sum(g, a, mr_constant_ints(g, MR_INTS(0, -1))), MR_SHAPE(1));
    CHECK_SHAPE(mr_mean(g, a, mr_constant_int32(g, 2), .keep_dims = true), MR_SHAPE(-1, 1, 1));
    CHECK_SHAPE(mr_max(g, a, mr_placeholder(g, MR_INT32)), MR_SHAPE_UNKNOWN);
    CHECK_SHAPE(mr_arg_max(g, a, mr_constant_int32(g, 1)), MR_SHAPE(-1, 4));
    CHECK_SHAPE(mr_mat_mul(g, of(g, MR_SHAPE(3, 2)), of(g, MR_SHAPE(3, 5)), .transpose_a = true), MR_SHAPE(2, 5));
    CHECK_SHAPE(mr_batch_mat_mul_v2(g, of(g, MR_SHAPE(7, 1, 2, 3)), of(g, MR_SHAPE(6, 3, 4))), MR_SHAPE(7, 6, 2, 4));
    CHECK_SHAPE(mr_transpose(g, a, mr_constant_ints(g, MR_INTS(2, 0, 1))), MR_SHAPE(4, -1, 1));
    CHECK_SHAPE(mr_one_hot(g, mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1)), mr_constant_int32(g, 10),
                           mr_constant_float(g, 1), mr_constant_float(g, 0)),
                MR_SHAPE(-1, 10));
    mr_add(g, of(g, MR_SHAPE(2)), of(g, MR_SHAPE(3)));
    CHECK_FAILED("Dimensions must be equal, but are 2 and 3");
    mr_sum(g, of(g, MR_SHAPE(2)), mr_constant_int32(g, 1));
    CHECK_FAILED("dimension 1 is not in [-1, 1)");
    mr_bias_add(g, of(g, MR_SHAPE(2, 3)), of(g, MR_SHAPE(4)));
    CHECK_FAILED("value has 3 channels, bias 4");
    mr_graph_free(g);
}

TEST(shapes_of_variables_by_handle)
{
    mr_graph *g = mr_graph_new();
    mr_output handle = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(2, 3));
    CHECK_SHAPE(handle, MR_SCALAR);
    CHECK_SHAPE(mr_read_variable_op(g, mr_identity(g, handle), MR_FLOAT), MR_SHAPE(2, 3));
    mr_assign_variable_op(g, handle, of(g, MR_SHAPE(2, 4)));
    mr_assign_variable_op(g, handle, of(g, MR_SHAPE(3)), .validate_shape = true);
    CHECK_FAILED("Shapes must be equal rank, but are 2 and 1");
    mr_graph_free(g);
}
