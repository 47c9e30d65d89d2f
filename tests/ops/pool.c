/* Pooling: compares full vectors of channels with single channels, which the plain code for leftover channels
 * computes. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"MaxPoolV2", "float[2,5,4,3]; int32[4]=1,2,2,1; int32[4]=1,1,1,1", "padding=SAME"},
    {"MaxPoolGradV2", "float[2,5,4,3]; float[2,5,4,3]; float[2,5,4,3]; int32[4]=1,2,2,1; int32[4]=1,1,1,1",
     "padding=SAME"},
    {"MaxPoolGradGrad", "float[2,5,4,3]; float[2,4,3,3]; float[2,5,4,3]",
     "ksize=1,2,2,1; strides=1,1,1,1; padding=VALID"},
    {"MaxPoolGradGradV2", "float[2,5,4,3]; float[2,5,4,3]; float[2,5,4,3]; int32[4]=1,2,2,1; int32[4]=1,1,1,1",
     "padding=SAME"},
    {"MaxPoolWithArgmax", "float[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"MaxPoolWithArgmax", "int8[2,5,4,3]",
     "ksize=1,2,2,1; strides=1,1,1,1; padding=VALID; include_batch_in_index=true; Targmax=int32"},
    {"MaxPoolGradWithArgmax", "float[2,5,4,3]; float[2,5,4,3]; int64[2,5,4,3]=0,4,7,59",
     "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"MaxPool", "half[2,3,5,4]", "ksize=1,1,2,2; strides=1,1,1,1; padding=SAME; data_format=NCHW"},
    {"LRN", "float[2,5,4,3]", ""},
    {"LRNGrad", "float[2,5,4,3]; float[2,5,4,3]; float[2,5,4,3]", ""},
    {"AvgPool", "float[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"AvgPoolGrad", "int32[4]=2,5,4,3; float[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"MaxPool", "float[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"MaxPool", "float[2,5,4,6]", "ksize=1,1,1,3; strides=1,1,1,3; padding=SAME"},
    {"MaxPool", "float[2,6,4,16]",
     "ksize=1,2,2,1; strides=1,2,2,1; padding=EXPLICIT; explicit_paddings=0,0,1,1,0,0,0,0"},
    {"MaxPoolGrad", "float[2,6,4,16]; float[2,4,2,16]; float[2,4,2,16]",
     "ksize=1,2,2,1; strides=1,2,2,1; padding=EXPLICIT; explicit_paddings=0,0,1,1,0,0,0,0"},
    {"MaxPoolGrad", "int32[2,5,4,3]; int32[2,5,4,3]; int32[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"},
    {"MaxPoolGrad", "float[2,5,4,3]; float[2,5,4,3]; float[2,5,4,3]", "ksize=1,2,2,1; strides=1,1,1,1; padding=SAME"})
/* clang-format on */

/* The first `channels` channels of each pixel. */
static mr_tensor first_channels(const mr_tensor *tensor, int64_t channels)
{
    mr_shape shape = tensor->shape;
    int64_t whole = shape.dims[3];
    shape.dims[3] = channels;
    mr_tensor part = random_floats(shape, 0);
    for (int64_t i = 0; i < mr_tensor_count(&part); i++)
        mr_tensor_floats(&part)[i] = mr_tensor_floats(tensor)[i / channels * whole + i % channels];
    return part;
}

static void check_pool(int64_t height, int64_t width, int64_t window, int64_t stride, const char *padding)
{
    mr_tensor x = random_floats(MR_SHAPE(2, height, width, 32), 1), narrow = first_channels(&x, 31);
    for (int64_t i = 0; i < mr_tensor_count(&x); i++) /* many equal values: the first must win */
        mr_tensor_floats(&x)[i] = roundf(mr_tensor_floats(&x)[i] * 3);
    narrow = first_channels(&x, 31);
    op_run run = {.op = "MaxPool",
                  .inputs = {x},
                  .attrs = {{"ksize", 'i', 4, {1, window, window, 1}},
                            {"strides", 'i', 4, {1, stride, stride, 1}},
                            {"padding", 's', .text = padding}},
                  .threads = 3};
    mr_tensor y = run_op_one(&run), y_part = first_channels(&y, 31);
    run.inputs[0] = narrow;
    mr_tensor y_narrow = run_op_one(&run);
    check_same_bits(&y_part, &y_narrow);
    mr_tensor dy = random_floats(y.shape, 2), dy_narrow = first_channels(&dy, 31);
    run.op = "MaxPoolGrad";
    run.inputs[0] = x;
    run.inputs[1] = y;
    run.inputs[2] = dy;
    mr_tensor dx = run_op_one(&run), dx_part = first_channels(&dx, 31);
    run.inputs[0] = narrow;
    run.inputs[1] = y_narrow;
    run.inputs[2] = dy_narrow;
    mr_tensor dx_narrow = run_op_one(&run);
    check_same_bits(&dx_part, &dx_narrow);
}

TEST(pool_vectors_equal_single_channels)
{
    check_pool(8, 8, 2, 2, "VALID");
    check_pool(9, 7, 2, 2, "VALID");
    check_pool(9, 7, 2, 2, "SAME");
    check_pool(9, 10, 3, 2, "SAME");
    check_pool(7, 7, 3, 1, "VALID");
    check_pool(11, 10, 2, 3, "SAME");
    check_pool(5, 6, 1, 2, "SAME");
    check_pool(3, 3, 3, 3, "VALID");
}

TEST(pool_mean_counts_what_is_inside)
{
    mr_tensor x = floats_of(MR_SHAPE(1, 3, 3, 1), (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9});
    mr_tensor y = run_op_one(&(op_run){.op = "AvgPool",
                                       .inputs = {x},
                                       .attrs = {{"ksize", 'i', 4, {1, 2, 2, 1}},
                                                 {"strides", 'i', 4, {1, 2, 2, 1}},
                                                 {"padding", 's', .text = "SAME"}}});
    static const float means[] = {3, 4.5f, 7.5f, 9};
    for (int i = 0; i < 4; i++) CHECK(mr_tensor_floats(&y)[i] == means[i]);
}
