/* Conv2D and its gradients: compares the fast kernels with the plain ones for random shapes, strides and paddings. */
#include "kernels/conv.h"
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"FusedPadConv2D",
     "float[2,4,5,3]; int32[4,2]=0,0,1,1,1,1,0,0; float[2,3,3,2]", "mode=REFLECT; strides=1,1,1,1; padding=VALID"},
    {"FusedResizeAndPadConv2D",
     "float[2,4,5,3]; int32[2]=6,7; int32[4,2]=0,0,1,1,1,1,0,0; float[2,3,3,2]",
     "mode=REFLECT; strides=1,1,1,1; padding=VALID"},
    {"Conv2D", "float[2,5,4,3]; float[3,2,3,7]", "strides=1,1,1,1; padding=SAME"},
    {"Conv2D", "float[1,6,6,2]; float[3,3,2,4]",
     "strides=1,2,2,1; padding=EXPLICIT; explicit_paddings=0,0,1,1,1,1,0,0"},
    {"Conv2D", "double[2,5,4,3]; double[3,2,3,7]", "strides=1,2,2,1; padding=SAME; dilations=1,2,1,1"},
    {"Conv2DBackpropFilter", "float[1,6,6,2]; int32[4]=3,3,2,4; float[1,3,3,4]",
     "strides=1,2,2,1; padding=EXPLICIT; explicit_paddings=0,0,1,1,1,1,0,0"},
    {"Conv2DBackpropInput", "int32[4]=1,6,6,2; float[3,3,2,4]; float[1,3,3,4]",
     "strides=1,2,2,1; padding=EXPLICIT; explicit_paddings=0,0,1,1,1,1,0,0"},
    {"Conv2DBackpropFilter", "float[2,5,4,3]; int32[4]=3,2,3,7; float[2,5,4,7]", "strides=1,1,1,1; padding=SAME"},
    {"Conv2DBackpropInput", "int32[4]=2,5,4,3; float[3,2,3,7]; float[2,5,4,7]", "strides=1,1,1,1; padding=SAME"},
    {"DepthwiseConv2dNative", "float[2,5,4,3]; float[3,2,3,7]", "strides=1,1,1,1; padding=SAME"},
    {"DepthwiseConv2dNativeBackpropFilter", "float[2,5,4,3]; int32[4]=3,2,3,7; float[2,5,4,21]",
     "strides=1,1,1,1; padding=SAME"},
    {"DepthwiseConv2dNativeBackpropInput", "int32[4]=2,5,4,3; float[3,2,3,7]; float[2,5,4,21]",
     "strides=1,1,1,1; padding=SAME"})
/* clang-format on */

static int64_t pick(mr_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)mr_random_below(random, (uint64_t)(high - low + 1));
}

static mr_conv random_conv(mr_random *random)
{
    mr_conv v = {.batch = pick(random, 1, 4),
                 .in_height = pick(random, 1, 16),
                 .in_width = pick(random, 1, 33),
                 .in_channels = pick(random, 1, 36),
                 .filter_height = pick(random, 1, 5),
                 .filter_width = pick(random, 1, 5),
                 .out_channels = pick(random, 1, 50),
                 .stride_y = pick(random, 1, 3),
                 .stride_x = pick(random, 1, 3),
                 .dilation_y = 1,
                 .dilation_x = 1};
    v.pad_top = pick(random, 0, v.filter_height - 1);
    v.pad_bottom = MR_MAX(pick(random, 0, v.filter_height - 1), v.filter_height - v.in_height - v.pad_top);
    v.pad_left = pick(random, 0, v.filter_width - 1);
    v.pad_right = MR_MAX(pick(random, 0, v.filter_width - 1), v.filter_width - v.in_width - v.pad_left);
    v.out_height = (v.in_height + v.pad_top + v.pad_bottom - v.filter_height) / v.stride_y + 1;
    v.out_width = (v.in_width + v.pad_left + v.pad_right - v.filter_width) / v.stride_x + 1;
    return v;
}

static void check_conv(const mr_conv *v, mr_pool *pool, int threads)
{
    mr_shape input_shape = MR_SHAPE(v->batch, v->in_height, v->in_width, v->in_channels);
    mr_shape filter_shape = MR_SHAPE(v->filter_height, v->filter_width, v->in_channels, v->out_channels);
    mr_shape output_shape = MR_SHAPE(v->batch, v->out_height, v->out_width, v->out_channels);
    mr_tensor x = random_floats(input_shape, 1), f = random_floats(filter_shape, 2),
              dy = random_floats(output_shape, 3);
    mr_tensor fast = random_floats(output_shape, 4), plain = random_floats(output_shape, 4);
    mr_tensor scratch = random_floats(MR_SHAPE(mr_conv_forward_scratch(v, threads) + 1), 5);
    mr_conv_forward(v, x.data, f.data, fast.data, (mr_conv_scratch){scratch.data, threads}, pool);
    mr_conv_forward_plain(v, MR_FLOAT, x.data, f.data, plain.data, pool);
    check_close(&fast, &plain, 2e-5);

    mr_tensor dx = random_floats(input_shape, 4), dx_plain = random_floats(input_shape, 4);
    scratch = random_floats(MR_SHAPE(mr_conv_backward_input_scratch(v, threads) + 1), 5);
    mr_conv_backward_input(v, f.data, dy.data, dx.data, (mr_conv_scratch){scratch.data, threads}, pool);
    mr_conv_backward_input_plain(v, MR_FLOAT, f.data, dy.data, dx_plain.data, pool);
    check_close(&dx, &dx_plain, 2e-5);

    mr_tensor df = random_floats(filter_shape, 4), df_plain = random_floats(filter_shape, 4),
              df_alone = random_floats(filter_shape, 4);
    scratch = random_floats(MR_SHAPE(mr_conv_backward_filter_scratch(v, threads) + 1), 5);
    mr_conv_backward_filter(v, x.data, dy.data, df.data, (mr_conv_scratch){scratch.data, threads}, pool);
    mr_conv_backward_filter_plain(v, MR_FLOAT, x.data, dy.data, df_plain.data, pool);
    check_close(&df, &df_plain, 2e-5);
    mr_conv_backward_filter(v, x.data, dy.data, df_alone.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
    check_same_bits(&df, &df_alone);
}

static void check_convs(void)
{
    mr_error error = {0};
    mr_pool *pool;
    mr_random random = mr_random_at(test_seed(), 9, 0, 0);
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 40; i++) {
        mr_conv v = random_conv(&random);
        check_conv(&v, pool, 3);
    }
    mr_pool_free(pool);
}

/* Below, at and above each limit of mr_conv_filter_has_patches; the last ones need several parts. */
TEST(conv_of_large_filters_over_small_images)
{
    mr_error error = {0};
    mr_pool *pool;
    struct {
        int64_t batch, in, channels, filter, stride, pad, out_channels;
        bool has_patches;
    } cases[] = {
        {4, 4, 512, 1, 1, 0, 256, true},   {3, 4, 512, 1, 1, 0, 256, false}, {4, 4, 512, 1, 1, 0, 255, false},
        {9, 5, 120, 3, 2, 1, 130, true},   {2, 11, 131, 3, 1, 1, 112, true}, {2, 12, 131, 3, 1, 1, 112, false},
        {1, 9, 150, 5, 1, 2, 37, true},    {17, 6, 100, 4, 2, 0, 83, true},  {70, 4, 34, 8, 3, 3, 61, true},
        {70, 9, 90, 3, 1, 1, 163, true},   {2, 12, 350, 3, 1, 1, 333, true}, {23, 7, 1024, 2, 1, 0, 33, true},
        {3, 60, 200, 3, 1, 1, 584, false},
    };
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        typeof(*cases) c = cases[i];
        const int64_t out = (c.in + 2 * c.pad - c.filter) / c.stride + 1;
        mr_conv v = {c.batch,  c.in,     c.in, c.channels, c.filter, c.filter, out,   out,   c.out_channels,
                     c.stride, c.stride, 1,    1,          c.pad,    c.pad,    c.pad, c.pad, false};
        CHECK(mr_conv_filter_has_patches(&v) == c.has_patches);
        mr_shape input_shape = MR_SHAPE(v.batch, v.in_height, v.in_width, v.in_channels);
        mr_shape filter_shape = MR_SHAPE(v.filter_height, v.filter_width, v.in_channels, v.out_channels);
        mr_tensor x = random_floats(input_shape, 1), dy = random_floats(MR_SHAPE(v.batch, out, out, v.out_channels), 3);
        mr_tensor df = random_floats(filter_shape, 4), alone = random_floats(filter_shape, 4);
        mr_tensor plain = random_floats(filter_shape, 4);
        if (v.batch * out * out * mr_tensor_count(&df) > 2000000000) continue; /* the plain one takes too long */
        mr_tensor scratch = random_floats(MR_SHAPE(mr_conv_backward_filter_scratch(&v, 3)), 5);
        mr_conv_backward_filter(&v, x.data, dy.data, df.data, (mr_conv_scratch){scratch.data, 3}, pool);
        mr_conv_backward_filter(&v, x.data, dy.data, alone.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
        check_same_bits(&df, &alone);
        mr_conv_backward_filter_plain(&v, MR_FLOAT, x.data, dy.data, plain.data, pool);
        check_close(&df, &plain, 1e-4); /* sums of up to 5,670 numbers */
    }
    mr_pool_free(pool);
}

TEST(conv_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_convs();
}

TEST(conv_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_convs();
}

TEST(conv_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_convs();
}

TEST(conv_reports_shapes_that_do_not_match)
{
    mr_tensor x = random_floats(MR_SHAPE(1, 5, 5, 3), 1), f = random_floats(MR_SHAPE(3, 3, 4, 8), 2);
    op_run run = {.op = "Conv2D",
                  .inputs = {x, f},
                  .attrs = {{"strides", 'i', 4, {1, 1, 1, 1}}, {"padding", 's', .text = "SAME"}},
                  .expect_error = "input depth must be evenly divisible by filter depth: 3 vs 4"};
    (void)run_op_one(&run);
    run.inputs[1] = random_floats(MR_SHAPE(7, 7, 3, 8), 2);
    run.attrs[1].text = "VALID";
    run.expect_error = "Computed output size would be negative";
    (void)run_op_one(&run);
    run.attrs[0].ints[1] = 0;
    run.expect_error = "strides must be";
    (void)run_op_one(&run);
}

TEST(conv_in_nchw_is_the_transposed_one)
{
    mr_tensor x = random_floats(MR_SHAPE(2, 5, 6, 3), 1), f = random_floats(MR_SHAPE(3, 2, 3, 4), 2);
    op_run run = {.op = "Conv2D",
                  .inputs = {x, f},
                  .attrs = {{"strides", 'i', 4, {1, 1, 1, 1}}, {"padding", 's', .text = "SAME"}},
                  .threads = 2};
    mr_tensor y = run_op_one(&run);
    run.inputs[0] = run_op_one(&(op_run){.op = "Transpose", .inputs = {x, INT32S(0, 3, 1, 2)}});
    run.attrs[2] = (op_attr){"data_format", 's', .text = "NCHW"};
    mr_tensor turned = run_op_one(&run);
    mr_tensor back = run_op_one(&(op_run){.op = "Transpose", .inputs = {turned, INT32S(0, 2, 3, 1)}});
    check_close(&back, &y, 1e-5);
}
