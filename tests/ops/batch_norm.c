/* Compares batch normalization with sums in double: odd numbers of channels, means far from zero, any number of
 * threads, and fused Relu against a separate one. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"BatchNormWithGlobalNormalization", "float[2,5,4,3]; float[3]; float[3]=1,2,3; float[3]; float[3]",
     "variance_epsilon=0.1; scale_after_normalization=true"},
    {"BatchNormWithGlobalNormalizationGrad", "double[2,5,4,3]; double[3]; double[3]=1,2,3; double[3]; double[2,5,4,3]",
     "variance_epsilon=0.1; scale_after_normalization=false"},
    {"FusedBatchNorm", "float[2,5,4,3]; float[3]; float[3]; float[0]; float[0]", ""},
    {"FusedBatchNorm", "float[2,5,4,3]; float[3]; float[3]; float[3]; float[3]", "is_training=false"},
    {"FusedBatchNormV2", "float[2,5,4,3]; float[3]; float[3]; float[3]; float[3]", "is_training=false"},
    {"FusedBatchNormV3", "float[2,5,4,3]; float[3]; float[3]; float[3]; float[3]", "exponential_avg_factor=0.5"},
    {"FusedBatchNormV3", "half[2,3,5,4]; float[3]; float[3]; float[3]; float[3]",
     "data_format=NCHW; is_training=false"},
    {"FusedBatchNormGrad", "float[2,5,4,3]; float[2,5,4,3]; float[3]; float[3]; float[3]", ""},
    {"FusedBatchNormGradV2", "float[2,5,4,3]; float[2,5,4,3]; float[3]; float[3]; float[3]", ""},
    {"FusedBatchNormGradV3", "float[2,5,4,3]; float[2,5,4,3]; float[3]; float[3]; float[3]; float[3]", ""},
    {"FusedBatchNormGradV3", "float[2,5,4,3]; float[2,5,4,3]; float[3]; float[3]; float[3]; float[3]",
     "is_training=false"})
/* clang-format on */

static mr_tensor far_floats(mr_shape shape, uint64_t which, float mean)
{
    mr_tensor tensor = random_floats(shape, which);
    for (int64_t i = 0; i < mr_tensor_count(&tensor); i++) mr_tensor_floats(&tensor)[i] += mean;
    return tensor;
}

static void check_norm(mr_shape shape, float far)
{
    int64_t channels = shape.dims[3], rows = mr_shape_count(shape) / channels;
    mr_tensor x = far_floats(shape, 1, far), dy = random_floats(shape, 2), y[6], grad[5], alone[6];
    mr_tensor scale = random_floats(MR_SHAPE(channels), 3), offset = random_floats(MR_SHAPE(channels), 4);
    op_run run = {.op = "FusedBatchNormV3",
                  .inputs = {x, scale, offset, scale, offset},
                  .attrs = {{"epsilon", 'f', .number = 1e-3f}},
                  .output_count = 6,
                  .threads = 3};
    run_op(&run, y);
    op_run back = {.op = "FusedBatchNormGradV3",
                   .inputs = {dy, x, scale, y[3], y[4], y[5]},
                   .attrs = {{"epsilon", 'f', .number = 1e-3f}},
                   .output_count = 5,
                   .threads = 3};
    run_op(&back, grad);
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, variance = 0, sum = 0, product = 0, n = (double)rows;
        for (int64_t r = 0; r < rows; r++) mean += (double)mr_tensor_floats(&x)[r * channels + c] / n;
        for (int64_t r = 0; r < rows; r++)
            variance += pow((double)mr_tensor_floats(&x)[r * channels + c] - mean, 2) / n;
        CHECK_NEAR((double)mr_tensor_floats(&y[1])[c], mean, 1e-6 * fmax(1, (double)far));
        CHECK_NEAR((double)mr_tensor_floats(&y[4])[c], variance, 1e-5);
        CHECK_NEAR((double)mr_tensor_floats(&y[2])[c], variance * n / fmax(1, n - 1), 1e-5);
        double root = 1 / sqrt(variance + 1e-3), factor = (double)mr_tensor_floats(&scale)[c] * root;
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = r * channels + c;
            double centred = (double)mr_tensor_floats(&x)[at] - mean, g = (double)mr_tensor_floats(&dy)[at];
            CHECK_NEAR((double)mr_tensor_floats(&y[0])[at], centred * factor + (double)mr_tensor_floats(&offset)[c],
                       1e-4 * fmax(1, (double)far));
            sum += g;
            product += g * centred;
        }
        CHECK_NEAR((double)mr_tensor_floats(&grad[1])[c], product * root, 1e-3 * fmax(1, (double)far));
        CHECK_NEAR((double)mr_tensor_floats(&grad[2])[c], sum, 1e-3);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = r * channels + c;
            double centred = (double)mr_tensor_floats(&x)[at] - mean, g = (double)mr_tensor_floats(&dy)[at];
            CHECK_NEAR((double)mr_tensor_floats(&grad[0])[at],
                       factor * (g - sum / n - centred * product / n * root * root), 2e-4 * fmax(1, (double)far));
        }
    }
    run.threads = back.threads = 1;
    run_op(&run, alone);
    check_same_bits(&y[0], &alone[0]);
    run_op(&back, alone);
    for (int i = 0; i < 3; i++) check_same_bits(&grad[i], &alone[i]);
}

static void check_norms(void)
{
    check_norm(MR_SHAPE(2, 3, 5, 7), 0);
    check_norm(MR_SHAPE(3, 20, 11, 16), 100);
    check_norm(MR_SHAPE(1, 9, 9, 117), 3);
    check_norm(MR_SHAPE(1, 1, 1, 3), 0);
}

TEST(batch_norm_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_norms();
}

TEST(batch_norm_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_norms();
}

TEST(batch_norm_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_norms();
}

TEST(batch_norm_with_relu_inside_is_relu_after)
{
    for (int64_t channels = 5; channels < 120; channels += 37) {
        mr_shape shape = MR_SHAPE(3, 8, 9, channels);
        mr_tensor x = random_floats(shape, 1), dy = random_floats(shape, 2), y[6], fused[6], grad[5], fused_grad[5];
        mr_tensor scale = random_floats(MR_SHAPE(channels), 3), offset = random_floats(MR_SHAPE(channels), 4);
        op_run run = {
            .op = "FusedBatchNormV3", .inputs = {x, scale, offset, scale, offset}, .output_count = 6, .threads = 2};
        run_op(&run, y);
        mr_tensor relu = run_op_one(&(op_run){.op = "Relu", .inputs = {y[0]}});
        run.op = "_FusedBatchNormEx";
        run.attrs[0] = (op_attr){"activation_mode", 's', .text = "Relu"};
        run.attrs[1] = (op_attr){"keeps_factors", 'b', .ints = {1}};
        run_op(&run, fused);
        check_same_bits(&fused[0], &relu);
        mr_tensor passed = run_op_one(&(op_run){.op = "ReluGrad", .inputs = {dy, relu}});
        op_run back = {.op = "FusedBatchNormGradV3", .inputs = {passed, x, scale, y[3], y[4], y[5]}, .output_count = 5};
        run_op(&back, grad);
        back.op = "_FusedBatchNormGradEx";
        back.inputs[0] = dy;
        back.inputs[5] = fused[5];
        back.attrs[0] = run.attrs[0];
        check_same_bits(&fused[3], &y[3]);
        run_op(&back, fused_grad);
        /* ReluGrad multiplies, so its zeros have signs. */
        for (int i = 0; i < 3; i++) check_close(&grad[i], &fused_grad[i], 0);
    }
}

/* The sum and Relu after a normalization, and the same computed again: in both layouts, for batches of one image beside
 * larger ones and for empty batches. */
TEST(batch_norm_with_a_sum_inside_is_the_sum_after)
{
    static const int64_t batches[][2] = {{3, 3}, {1, 1}, {3, 1}, {1, 3}, {0, 0}, {0, 1}, {1, 0}};
    for (int i = 0; i < 7 * 2 * 4; i++) {
        const int64_t channels = 5 + 37 * (i / 14), *batch = batches[i % 7];
        const bool nchw = i / 7 % 2 == 1;
        mr_shape shape = nchw ? MR_SHAPE(batch[0], channels, 4, 9) : MR_SHAPE(batch[0], 4, 9, channels);
        mr_tensor x = random_floats(shape, 1), y[6], fused[6];
        shape.dims[0] = batch[1];
        mr_tensor side = random_floats(shape, 2);
        mr_tensor scale = random_floats(MR_SHAPE(channels), 3), offset = random_floats(MR_SHAPE(channels), 4);
        const op_attr format = {"data_format", 's', .text = nchw ? "NCHW" : "NHWC"};
        op_run run = {.op = "FusedBatchNormV3",
                      .inputs = {x, scale, offset, scale, offset},
                      .attrs = {format},
                      .output_count = 6,
                      .threads = 2};
        run_op(&run, y);
        mr_tensor sum = run_op_one(&(op_run){.op = "AddV2", .inputs = {y[0], side}});
        mr_tensor relu = run_op_one(&(op_run){.op = "Relu", .inputs = {sum}});
        run.op = "_FusedBatchNormEx";
        run.inputs[5] = side;
        run.attrs[1] = (op_attr){"activation_mode", 's', .text = "Relu"};
        run.attrs[2] = (op_attr){"keeps_factors", 'b', .ints = {1}};
        run_op(&run, fused);
        check_same_bits(&fused[0], &relu);
        for (int k = 1; k < 5; k++) check_same_bits(&fused[k], &y[k]);
        op_run again = {.op = "_FusedBatchNormApply",
                        .inputs = {x, fused[3], fused[5], side},
                        .attrs = {format, run.attrs[1]},
                        .output_count = 1};
        mr_tensor repeated = run_op_one(&again);
        check_same_bits(&repeated, &relu);
        again.inputs[3] = (mr_tensor){0};
        again.attrs[1] = (op_attr){0};
        mr_tensor alone = run_op_one(&again);
        check_same_bits(&alone, &y[0]);
    }
}

/* With given statistics the gradient does not depend on x, however large that is. */
TEST(batch_norm_gradient_with_given_statistics)
{
    for (int i = 0; i < 4; i++) {
        const bool nchw = i % 2 == 1;
        const int64_t channels = i < 2 ? 3 : 35;
        mr_shape shape = nchw ? MR_SHAPE(2, channels, 3, 4) : MR_SHAPE(2, 3, 4, channels);
        mr_tensor x = random_floats(shape, 1), dy = random_floats(shape, 2), one[5], other[5];
        mr_tensor scale = random_floats(MR_SHAPE(channels), 3), variance = random_floats(MR_SHAPE(channels), 4);
        for (int64_t c = 0; c < channels; c++) mr_tensor_floats(&variance)[c] = fabsf(mr_tensor_floats(&variance)[c]);
        op_run run = {
            .op = "FusedBatchNormGradV3",
            .inputs = {dy, x, scale, scale, variance, scale},
            .attrs = {{"is_training", 'b', .ints = {0}}, {"data_format", 's', .text = nchw ? "NCHW" : "NHWC"}},
            .output_count = 5};
        run_op(&run, one);
        for (int64_t k = 0; k < mr_tensor_count(&x); k += 2) mr_tensor_floats(&x)[k] = k % 4 ? -INFINITY : NAN;
        run_op(&run, other);
        check_same_bits(&one[0], &other[0]);
        check_same_bits(&one[2], &other[2]);
    }
}

TEST(batch_norm_in_nchw_is_the_transposed_one)
{
    mr_tensor x = random_floats(MR_SHAPE(3, 4, 5, 6), 1), dy = random_floats(MR_SHAPE(3, 4, 5, 6), 2), y[6], grad[5];
    mr_tensor scale = random_floats(MR_SHAPE(6), 3), offset = random_floats(MR_SHAPE(6), 4), turned[6], turned_grad[5];
    op_run run = {.op = "_FusedBatchNormEx",
                  .inputs = {x, scale, offset, scale, offset},
                  .attrs = {{"activation_mode", 's', .text = "Relu"}, {"keeps_factors", 'b', .ints = {1}}},
                  .output_count = 6};
    run_op(&run, y);
    op_run back = {.op = "_FusedBatchNormGradEx",
                   .inputs = {dy, x, scale, y[3], y[4], y[5]},
                   .attrs = {{"activation_mode", 's', .text = "Relu"}},
                   .output_count = 5};
    run_op(&back, grad);
    run.attrs[2] = back.attrs[1] = (op_attr){"data_format", 's', .text = "NCHW"};
    mr_tensor to = INT32S(0, 3, 1, 2), from = INT32S(0, 2, 3, 1);
    run.inputs[0] = back.inputs[1] = run_op_one(&(op_run){.op = "Transpose", .inputs = {x, to}});
    run_op(&run, turned);
    mr_tensor again = run_op_one(&(op_run){.op = "Transpose", .inputs = {turned[0], from}});
    check_close(&again, &y[0], 1e-5);
    back.inputs[0] = run_op_one(&(op_run){.op = "Transpose", .inputs = {dy, to}});
    run_op(&back, turned_grad);
    again = run_op_one(&(op_run){.op = "Transpose", .inputs = {turned_grad[0], from}});
    check_close(&again, &grad[0], 1e-5);
    check_close(&turned_grad[1], &grad[1], 1e-5);
    check_close(&turned_grad[2], &grad[2], 1e-5);
}
