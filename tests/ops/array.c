/* Operators that move elements: strings, limits, and untrusted indices. */
#include "tests/ops/run.h"

static mr_tensor strings_of(mr_shape shape, const mr_string *values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_strings(&tensor, shape, values, &error));
    return tensor;
}

static mr_tensor scalar(int32_t value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_int32(&tensor, value, &error));
    return kept(tensor);
}

TEST(array_strings_are_gathered_and_joined)
{
    mr_tensor words = strings_of(MR_SHAPE(3), (mr_string[]){MR_STR("one"), MR_STR(""), MR_STR("three")});
    mr_tensor taken = run_op_one(&(op_run){.op = "GatherV2", .inputs = {words, INT32S(2, 0), scalar(0)}});
    CHECK_EQ(mr_tensor_count(&taken), 2);
    CHECK(mr_string_equal(mr_tensor_strings(&taken)[0], MR_STR("three")));
    mr_tensor_deinit(&words); /* the output has its own copy of the bytes */
    CHECK(mr_string_equal(mr_tensor_strings(&taken)[1], MR_STR("one")));
    mr_tensor joined =
        run_op_one(&(op_run){.op = "Pack", .inputs = {taken, taken}, .attrs = {{"axis", 'i', .ints = {1}}}});
    CHECK(mr_shape_equal(joined.shape, MR_SHAPE(2, 2)));
    CHECK(mr_string_equal(mr_tensor_strings(&joined)[3], MR_STR("one")));
}

TEST(array_indices_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(3, 4), 1), zero = scalar(0);
    (void)run_op_one(&(op_run){
        .op = "GatherV2", .inputs = {x, INT32S(0, 3), zero}, .expect_error = "indices[1] = 3 is not in [0, 3)"});
    (void)run_op_one(&(op_run){.op = "GatherV2", .inputs = {x, INT32S(-1), zero}, .expect_error = "indices[0] = -1"});
    (void)run_op_one(&(op_run){.op = "GatherV2",
                               .inputs = {x, zero, scalar(2)},
                               .expect_error = "Shape must be at least rank 3 but is rank 2"});
    (void)run_op_one(
        &(op_run){.op = "GatherNd",
                  .inputs = {x, INT32S(0, 1, 2)},
                  .expect_error = "index innermost dimension length must be <= params rank; saw: 3 vs. 2"});
    (void)run_op_one(&(op_run){.op = "Slice",
                               .inputs = {x, INT32S(1, 2), INT32S(1, 3)},
                               .expect_error = "Expected size[1] in [0, 2], but got 3"});
    (void)run_op_one(&(op_run){.op = "Slice",
                               .inputs = {x, INT32S(INT32_MAX, 0), INT32S(1, 1)},
                               .expect_error = "Expected begin[0] in [0, 3]"});
    (void)run_op_one(
        &(op_run){.op = "Transpose", .inputs = {x, INT32S(0, 0)}, .expect_error = "1 is missing from {0,0}."});
    (void)run_op_one(
        &(op_run){.op = "Reshape", .inputs = {x, INT32S(5, -1)}, .expect_error = "requires a multiple of 5"});
    (void)run_op_one(&(op_run){.op = "Reshape",
                               .inputs = {x, INT32S(INT32_MAX, INT32_MAX, INT32_MAX)},
                               .expect_error = "the shape is too large"});
    (void)run_op_one(&(op_run){.op = "Fill", .inputs = {INT32S(-2), x}, .expect_error = "Dimension -2 must be >= 0"});
    (void)run_op_one(&(op_run){
        .op = "Tile", .inputs = {x, INT32S(-1, 1)}, .expect_error = "Expected multiples[0] >= 0, but got -1"});
    (void)run_op_one(
        &(op_run){.op = "ReverseV2", .inputs = {x, INT32S(1, -1)}, .expect_error = "axis 1 specified more than once."});
    (void)run_op_one(&(op_run){.op = "ExpandDims",
                               .inputs = {x, INT32S(5)},
                               .expect_error = "Tried to expand dim index 5 for tensor with 2 dimensions."});
    (void)run_op_one(&(op_run){
        .op = "BroadcastTo", .inputs = {x, INT32S(2, 4)}, .expect_error = "Incompatible shapes: [3,4] vs. [2,4]"});
    (void)run_op_one(&(op_run){
        .op = "InvertPermutation", .inputs = {INT32S(0, 0)}, .expect_error = "0 is duplicated in the input."});
    (void)run_op_one(&(op_run){.op = "ConcatV2",
                               .inputs = {x, random_floats(MR_SHAPE(2, 5), 2), zero},
                               .expect_error = "ConcatOp : Dimension 1 in both shapes must be equal"});
}

TEST(array_transpose_equals_index_arithmetic)
{
    mr_shape shape = MR_SHAPE(3, 37, 2, 50);
    mr_tensor x = random_floats(shape, 1);
    static const int32_t orders[][4] = {{3, 1, 0, 2}, {0, 3, 2, 1}, {1, 0, 3, 2},
                                        {0, 1, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1}};
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        mr_tensor y = run_op_one(&(op_run){.op = "Transpose", .inputs = {x, int32s_of(4, orders[o])}, .threads = 2});
        for (int64_t i = 0; i < mr_tensor_count(&y); i++) {
            int64_t at[4], rest = i, from = 0;
            for (int d = 3; d >= 0; d--) {
                at[orders[o][d]] = rest % y.shape.dims[d];
                rest /= y.shape.dims[d];
            }
            for (int d = 0; d < 4; d++) from = from * shape.dims[d] + at[d];
            CHECK(mr_tensor_floats(&y)[i] == mr_tensor_floats(&x)[from]);
        }
    }
}

TEST(array_strided_slices)
{
    mr_tensor x = floats_of(MR_SHAPE(5), (float[]){0, 1, 2, 3, 4});
    mr_tensor back = run_op_one(&(op_run){.op = "StridedSlice", .inputs = {x, INT32S(-1), INT32S(-6), INT32S(-2)}});
    CHECK(mr_shape_equal(back.shape, MR_SHAPE(3)));
    CHECK(mr_tensor_floats(&back)[0] == 4 && mr_tensor_floats(&back)[2] == 0);
    mr_tensor one = run_op_one(&(op_run){.op = "StridedSlice",
                                         .inputs = {x, INT32S(-2), INT32S(0), INT32S(1)},
                                         .attrs = {{"shrink_axis_mask", 'i', .ints = {1}}}});
    CHECK(one.shape.rank == 0 && mr_tensor_floats(&one)[0] == 3);
    (void)run_op_one(&(op_run){.op = "StridedSlice",
                               .inputs = {x, INT32S(0), INT32S(1), INT32S(0)},
                               .expect_error = "strides[0] must be non-zero"});
    (void)run_op_one(&(op_run){.op = "StridedSlice",
                               .inputs = {x, INT32S(0, 0), INT32S(1, 1), INT32S(1, 1)},
                               .expect_error = "Index out of range using input dim 1; input has only 1 dims"});
}
