/* Kernels at the limits of shapes and numbers: dimensions of 0 and 2^62, the extremes of integer types, numbers outside
 * the range of integers. The oracle makes the same comparison with TensorFlow where TensorFlow's result is defined. */
#include "tests/ops/run.h"

constexpr int64_t HUGE_SIZE = 1ll << 62;

static mr_tensor tensor_of(mr_dtype dtype, mr_shape shape, const void *elements)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, dtype, shape, elements, &error));
    return kept(tensor);
}
#define INT64S(...)                                                                                                    \
    tensor_of(MR_INT64, MR_SHAPE((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8)), (int64_t[]){__VA_ARGS__})
#define NOTHING(dtype, ...) tensor_of(dtype, MR_SHAPE(__VA_ARGS__), (char[1]){0})

TEST(limits_of_rows_without_elements)
{
    for (int t = 0; t < 3; t++) {
        mr_dtype dtype = (mr_dtype[]){MR_FLOAT, MR_DOUBLE, MR_INT32}[t];
        mr_tensor rows = NOTHING(dtype, HUGE_SIZE, 0), none = NOTHING(dtype, 0, 0);
        mr_tensor product = run_op_one(&(op_run){.op = "MatMul", .inputs = {rows, none}});
        CHECK(mr_shape_equal(product.shape, MR_SHAPE(HUGE_SIZE, 0)));
        mr_tensor batch = NOTHING(dtype, HUGE_SIZE, 0, 0, 3), matrix = NOTHING(dtype, 3, 0);
        product = run_op_one(&(op_run){.op = "BatchMatMulV2", .inputs = {rows, none}});
        CHECK(mr_shape_equal(product.shape, MR_SHAPE(HUGE_SIZE, 0)));
        product = run_op_one(&(op_run){.op = "BatchMatMulV2", .inputs = {batch, matrix}});
        CHECK(mr_shape_equal(product.shape, MR_SHAPE(HUGE_SIZE, 0, 0, 0)));
    }
}

static mr_tensor integer(int32_t value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_int32(&tensor, value, &error));
    return kept(tensor);
}

TEST(limits_of_indices_without_elements)
{
    mr_tensor rows = NOTHING(MR_INT32, HUGE_SIZE, 0), none = NOTHING(MR_FLOAT, 0, 3), one = random_floats(MR_SCALAR, 1);
    (void)run_op_one(
        &(op_run){.op = "GatherNd", .inputs = {none, rows}, .expect_error = "indices has too many index vectors"});
    (void)run_op_one(&(op_run){.op = "GatherNd", .inputs = {none, INT32S(0)}, .expect_error = "params is empty"});
    (void)run_op_one(&(op_run){
        .op = "ScatterNd", .inputs = {rows, none, INT32S(0, 3)}, .expect_error = "indices has too many index vectors"});
    mr_tensor hot = run_op_one(&(op_run){.op = "OneHot",
                                         .inputs = {rows, integer(3), one, one},
                                         .attrs = {{"axis", 'i', .ints = {1}}},
                                         .output_dtypes = {MR_FLOAT}});
    CHECK(mr_shape_equal(hot.shape, MR_SHAPE(HUGE_SIZE, 3, 0)));
    mr_tensor wide = NOTHING(MR_FLOAT, HUGE_SIZE, HUGE_SIZE, 0);
    mr_tensor taken = run_op_one(&(op_run){.op = "GatherV2", .inputs = {wide, INT32S(1, 2), integer(0)}});
    CHECK(mr_shape_equal(taken.shape, MR_SHAPE(2, HUGE_SIZE, 0)));
}

TEST(limits_of_moves_without_elements)
{
    mr_tensor wide = NOTHING(MR_FLOAT, HUGE_SIZE, 0, HUGE_SIZE);
    mr_tensor y = run_op_one(&(op_run){.op = "Transpose", .inputs = {wide, INT32S(2, 0, 1)}});
    CHECK(mr_shape_equal(y.shape, MR_SHAPE(HUGE_SIZE, HUGE_SIZE, 0)));
    (void)run_op_one(&(op_run){.op = "ReverseV2", .inputs = {wide, INT32S(0, 2)}});
    (void)run_op_one(&(op_run){
        .op = "ConcatV2", .inputs = {wide, wide, INT32S(0)}, .expect_error = "axis 0 of the result is too large"});
    (void)run_op_one(&(op_run){.op = "Pack", .inputs = {wide, wide}});
    mr_tensor longest = NOTHING(MR_FLOAT, INT64_MAX, 0),
              pads = tensor_of(MR_INT32, MR_SHAPE(2, 2), (int32_t[]){1, 0, 0, 0});
    for (int i = 0; i < 3; i++)
        (void)run_op_one(&(op_run){.op = (const char *[]){"Pad", "PadV2", "MirrorPad"}[i],
                                   .inputs = {longest, pads, i == 1 ? random_floats(MR_SCALAR, 1) : (mr_tensor){0}},
                                   .attrs = {{"mode", 's', .text = "SYMMETRIC"}},
                                   .expect_error = "dimension 0 becomes too large"});
    mr_tensor five = floats_of(MR_SHAPE(5), (float[]){0, 1, 2, 3, 4});
    mr_tensor first =
        run_op_one(&(op_run){.op = "StridedSlice", .inputs = {five, INT64S(1), INT64S(5), INT64S(INT64_MAX)}});
    CHECK(mr_tensor_count(&first) == 1 && mr_tensor_floats(&first)[0] == 1);
    first = run_op_one(&(op_run){.op = "StridedSlice", .inputs = {five, INT64S(3), INT64S(-6), INT64S(INT64_MIN)}});
    CHECK(mr_tensor_count(&first) == 1 && mr_tensor_floats(&first)[0] == 3);
}

TEST(limits_of_reductions_without_elements)
{
    mr_tensor wide = NOTHING(MR_FLOAT, HUGE_SIZE, HUGE_SIZE, 0);
    mr_tensor sum = run_op_one(&(op_run){.op = "Sum", .inputs = {wide, INT32S(0, 1)}});
    CHECK(mr_shape_equal(sum.shape, MR_SHAPE(0)));
    mr_tensor places =
        run_op_one(&(op_run){.op = "ArgMax", .inputs = {wide, int32_of(0)}, .output_dtypes = {MR_INT64}});
    CHECK(mr_shape_equal(places.shape, MR_SHAPE(HUGE_SIZE, 0)));
    mr_tensor chosen = run_op_one(&(op_run){
        .op = "SelectV2",
        .inputs = {NOTHING(MR_BOOL, HUGE_SIZE, 1, 0), random_floats(MR_SCALAR, 1), NOTHING(MR_FLOAT, 1, HUGE_SIZE, 0)},
        .output_dtypes = {MR_FLOAT}});
    CHECK(mr_shape_equal(chosen.shape, MR_SHAPE(HUGE_SIZE, HUGE_SIZE, 0)));
}

static void check_batch_norm(mr_shape shape, bool training)
{
    int64_t channels = shape.dims[3];
    mr_tensor x = random_floats(shape, 1), scale = random_floats(MR_SHAPE(channels), 2), outputs[OP_OUTPUTS_MAX];
    run_op(&(op_run){.op = "FusedBatchNorm",
                     .inputs = {x, scale, scale, scale, scale},
                     .attrs = {{"is_training", 'b', .ints = {training}}},
                     .output_count = 5},
           outputs);
    CHECK(mr_shape_equal(outputs[0].shape, shape));
    for (int64_t c = 0; c < channels; c++) CHECK(isnan(mr_tensor_floats(&outputs[1])[c]));
    run_op(&(op_run){.op = "FusedBatchNormGrad",
                     .inputs = {x, x, scale, scale, scale},
                     .attrs = {{"is_training", 'b', .ints = {training}}},
                     .output_count = 5},
           outputs);
    for (int64_t c = 0; c < channels; c++)
        CHECK(mr_tensor_floats(&outputs[1])[c] == 0 && mr_tensor_floats(&outputs[2])[c] == 0);
}

TEST(limits_of_batch_norm_without_elements)
{
    for (int training = 0; training < 2; training++) {
        check_batch_norm(MR_SHAPE(2, 5, 4, 0), training);
        check_batch_norm(MR_SHAPE(0, 5, 4, 3), training);
        check_batch_norm(MR_SHAPE(2, 0, HUGE_SIZE, 3), training);
        check_batch_norm(MR_SHAPE(HUGE_SIZE, HUGE_SIZE, 4, 0), training);
    }
}

TEST(limits_of_windows)
{
    op_attr attrs[] = {
        {"ksize", 'i', 4, {1, 2, 2, 1}}, {"padding", 's', .text = "VALID"}, {"strides", 'i', 4, {1, 1, 1, 1}}};
    op_run pool = {.op = "MaxPool", .inputs = {random_floats(MR_SHAPE(2, 1, 4, 3), 1)}};
    memcpy(pool.attrs, attrs, sizeof attrs);
    mr_tensor y = run_op_one(&pool); /* as in TensorFlow: if one element is missing for a window, the output has no
                                        rows */
    CHECK(mr_shape_equal(y.shape, MR_SHAPE(2, 0, 3, 3)));
    pool.inputs[0] = random_floats(MR_SHAPE(2, 0, 4, 3), 1);
    pool.expect_error = "Computed output size would be negative";
    (void)run_op_one(&pool);
    pool.inputs[0] = NOTHING(MR_FLOAT, 0, HUGE_SIZE, 4, 3);
    pool.expect_error = "is too large";
    (void)run_op_one(&pool);
}

TEST(limits_of_integers_wrap)
{
    mr_tensor most = INT32S(INT32_MAX, INT32_MIN), one = INT32S(1, -1);
    mr_tensor sum = run_op_one(&(op_run){.op = "AddN", .inputs = {most, one}});
    CHECK(mr_tensor_int32s(&sum)[0] == INT32_MIN && mr_tensor_int32s(&sum)[1] == INT32_MAX);
    mr_tensor total = run_op_one(&(op_run){.op = "Sum", .inputs = {INT32S(INT32_MAX, INT32_MAX), INT32S(0)}});
    CHECK_EQ(mr_tensor_int32s(&total)[0], -2);
    total = run_op_one(&(op_run){.op = "Prod", .inputs = {INT32S(INT32_MIN, 3), INT32S(0)}});
    CHECK_EQ(mr_tensor_int32s(&total)[0], INT32_MIN);
    mr_tensor mean = run_op_one(&(op_run){.op = "Mean", .inputs = {INT32S(INT32_MAX, INT32_MAX), INT32S(0)}});
    CHECK_EQ(mr_tensor_int32s(&mean)[0], INT32_MAX);
    int8_t ones[256];
    memset(ones, 1, sizeof ones);
    mean = run_op_one(&(op_run){.op = "Mean", .inputs = {tensor_of(MR_INT8, MR_SHAPE(256), ones), INT32S(0)}});
    CHECK_EQ(*(int8_t *)mean.data, 1);
    mr_tensor range =
        run_op_one(&(op_run){.op = "Range", .inputs = {INT32S(INT32_MIN), INT32S(INT32_MAX), INT32S(INT32_MAX)}});
    CHECK(mr_tensor_count(&range) == 3 && mr_tensor_int32s(&range)[2] == INT32_MAX - 1);
    mr_tensor offsets[2];
    mr_tensor sizes = INT64S(INT64_MAX);
    run_op(&(op_run){.op = "ConcatOffset",
                     .inputs = {int32_of(0), sizes, sizes},
                     .output_count = 2,
                     .output_dtypes = {MR_INT64, MR_INT64}},
           offsets);
    CHECK_EQ(mr_tensor_int64s(&offsets[1])[0], INT64_MAX);
}

TEST(limits_of_casts_to_integers)
{
    float odd[] = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e19f, 300.5f, -1.5f};
    int32_t as_int32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 300, -1};
    int64_t as_int64[] = {INT64_MIN, INT64_MIN, INT64_MIN, 3000000000, -3000000000, INT64_MIN, 300, -1};
    uint8_t as_uint8[] = {0, 0, 0, 0, 0, 0, 44, 255};
    for (int d = 0; d < 2; d++) {
        double doubles[8];
        for (int i = 0; i < 8; i++) doubles[i] = (double)odd[i];
        mr_tensor x = tensor_of(d ? MR_DOUBLE : MR_FLOAT, MR_SHAPE(8), d ? (void *)doubles : odd);
        mr_tensor y = run_op_one(&(op_run){.op = "Cast", .inputs = {x}, .output_dtypes = {MR_INT32}});
        CHECK(memcmp(y.data, as_int32, sizeof as_int32) == 0);
        y = run_op_one(&(op_run){.op = "Cast", .inputs = {x}, .output_dtypes = {MR_INT64}});
        CHECK(memcmp(y.data, as_int64, sizeof as_int64) == 0);
        y = run_op_one(&(op_run){.op = "Cast", .inputs = {x}, .output_dtypes = {MR_UINT8}});
        CHECK(memcmp(y.data, as_uint8, sizeof as_uint8) == 0);
    }
}

/* As in TensorFlow: the result has the first operand's shape. */
TEST(limits_of_gradients_of_results_take_any_shape_with_as_many_elements)
{
    static const char *const ops[] = {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "TanhGrad", "SigmoidGrad"};
    const mr_shape shapes[] = {MR_SHAPE(2, 3), MR_SHAPE(6), MR_SHAPE(3, 2), MR_SHAPE(1, 6, 1)};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int j = 0; j < 16; j++) {
            mr_tensor y = random_floats(shapes[j / 4], 1), dy = random_floats(shapes[j % 4], 2), same = dy;
            same.shape = y.shape;
            mr_tensor z = run_op_one(&(op_run){.op = ops[i], .inputs = {y, dy}});
            mr_tensor expected = run_op_one(&(op_run){.op = ops[i], .inputs = {y, same}});
            CHECK(mr_shape_equal(z.shape, y.shape));
            CHECK(memcmp(z.data, expected.data, 6 * sizeof(float)) == 0);
        }
}

TEST(limits_of_gradients_that_do_not_broadcast)
{
    static const char *const ops[] = {"SqrtGrad", "RsqrtGrad",    "ReciprocalGrad", "TanhGrad", "SigmoidGrad",
                                      "ReluGrad", "Relu6Grad",    "EluGrad",        "SeluGrad", "SoftplusGrad",
                                      "InvGrad",  "SoftsignGrad", "LeakyReluGrad"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        (void)run_op_one(&(op_run){.op = ops[i],
                                   .inputs = {random_floats(MR_SHAPE(2, 3), 1), random_floats(MR_SHAPE(3), 2)},
                                   .expect_error = "shape"});
}
