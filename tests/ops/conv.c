/* Conv2D and its gradients: compares the fast kernels with the plain ones for random shapes, strides and paddings. */
#include "kernels/conv.h"
#include "kernels/winograd.h"
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
    {"Conv2DBackpropInput", "int32[2]=6,6; float[3,3,2,4]; float[1,3,3,4]", "strides=1,2,2,1; padding=SAME"},
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

static void check_conv(const mr_conv *v, mr_pool *pool, int threads, double tolerance)
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
    check_close(&fast, &plain, tolerance);
    mr_tensor alone = random_floats(output_shape, 4);
    mr_conv_forward(v, x.data, f.data, alone.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
    check_same_bits(&fast, &alone);

    mr_tensor dx = random_floats(input_shape, 4), dx_plain = random_floats(input_shape, 4);
    scratch = random_floats(MR_SHAPE(mr_conv_backward_input_scratch(v, threads) + 1), 5);
    mr_conv_backward_input(v, f.data, dy.data, dx.data, (mr_conv_scratch){scratch.data, threads}, pool);
    mr_conv_backward_input_plain(v, MR_FLOAT, f.data, dy.data, dx_plain.data, pool);
    check_close(&dx, &dx_plain, tolerance);
    mr_tensor dx_alone = random_floats(input_shape, 4);
    mr_conv_backward_input(v, f.data, dy.data, dx_alone.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
    check_same_bits(&dx, &dx_alone);

    mr_tensor df = random_floats(filter_shape, 4), df_plain = random_floats(filter_shape, 4),
              df_alone = random_floats(filter_shape, 4);
    scratch = random_floats(MR_SHAPE(mr_conv_backward_filter_scratch(v, threads) + 1), 5);
    mr_conv_backward_filter(v, x.data, dy.data, df.data, (mr_conv_scratch){scratch.data, threads}, pool);
    mr_conv_backward_filter_plain(v, MR_FLOAT, x.data, dy.data, df_plain.data, pool);
    check_close(&df, &df_plain, tolerance * fmax(1, sqrt((double)(v->batch * v->out_height * v->out_width)) / 16));
    mr_conv_backward_filter(v, x.data, dy.data, df_alone.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
    check_same_bits(&df, &df_alone);
}

/* Where Winograd's method is used: edges of every kind, channels that do not fill vectors, phases of a stride of 2. */
typedef struct tile_case {
    mr_conv conv;
    bool forward, input, filter;
} tile_case;

static mr_conv tile_conv(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t filters,
                         int64_t window, int64_t stride, int64_t before, int64_t after)
{
    mr_conv v = {.batch = batch,
                 .in_height = height,
                 .in_width = width,
                 .in_channels = channels,
                 .filter_height = window,
                 .filter_width = window,
                 .out_channels = filters,
                 .stride_y = stride,
                 .stride_x = stride,
                 .dilation_y = 1,
                 .dilation_x = 1,
                 .pad_top = before,
                 .pad_left = before,
                 .pad_bottom = after,
                 .pad_right = after};
    v.out_height = (height + before + after - window) / stride + 1;
    v.out_width = (width + before + after - window) / stride + 1;
    return v;
}

static void check_tiles(void)
{
    mr_error error = {0};
    mr_pool *pool;
    const tile_case cases[] = {
        {tile_conv(3, 16, 16, 32, 32, 3, 1, 1, 1), true, true, true},
        {tile_conv(1, 9, 14, 40, 33, 3, 1, 0, 0), true, false, false},
        {tile_conv(8, 9, 14, 40, 33, 3, 1, 0, 0), true, false, false},
        {tile_conv(7, 13, 10, 16, 48, 3, 1, 2, 0), true, true, true},
        {tile_conv(5, 12, 14, 33, 32, 5, 1, 2, 2), true, true, true},
        {tile_conv(6, 11, 16, 48, 20, 5, 1, 0, 3), true, true, true},
        {tile_conv(12, 16, 16, 32, 48, 5, 2, 1, 2), true, true, true},
        {tile_conv(11, 15, 17, 32, 32, 5, 2, 2, 2), true, true, true},
        {tile_conv(1, 19, 14, 35, 40, 5, 2, 0, 4), false, true, false},
        {tile_conv(9, 20, 20, 32, 32, 6, 2, 2, 2), true, true, true},
        {tile_conv(4, 32, 32, 3, 64, 5, 2, 1, 2), false, true, false},
        {tile_conv(1, 10, 11, 3, 64, 5, 2, 3, 3), false, true, false},
        {tile_conv(22, 6, 6, 352, 352, 3, 1, 1, 1), true, true, true},
        {tile_conv(33, 6, 6, 88, 104, 3, 1, 1, 1), true, true, true},
        {tile_conv(7, 64, 64, 44, 64, 5, 2, 1, 2), true, true, true},
        {tile_conv(4, 16, 16, 15, 32, 3, 1, 1, 1), false, true, false},
        {tile_conv(4, 16, 16, 32, 32, 3, 2, 1, 1), false, false, false},
    };
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tile_case *c = &cases[i];
        const bool is_used[] = {mr_winograd_has_forward(&c->conv), mr_winograd_has_input(&c->conv),
                                mr_winograd_has_filter(&c->conv)};
        if (is_used[0] != c->forward || is_used[1] != c->input || is_used[2] != c->filter)
            test_fail(__FILE__, __LINE__, "case %zu: forward %d, input %d, filter %d", i, is_used[0], is_used[1],
                      is_used[2]);
        double products = (double)(c->conv.filter_height * c->conv.filter_width) *
                          (double)MR_MAX(c->conv.in_channels, c->conv.out_channels);
        double results = (double)(c->conv.batch * c->conv.out_height * c->conv.out_width) *
                         (double)MR_MIN(c->conv.in_channels, c->conv.out_channels);
        if (test_is_sanitized() && products * results > 3e8) continue; /* the plain kernel takes a minute */
        check_conv(&c->conv, pool, 3, 1e-5 * sqrt(products));
    }
    mr_pool_free(pool);
}

/* Filters of 1 x 1 that are products of matrices, with pixels that a stride skips, and with groups of pixels. */
static void check_pointwise(void)
{
    mr_error error = {0};
    mr_pool *pool;
    const struct {
        mr_conv conv;
        bool is_used, has_filter;
    } cases[] = {
        {tile_conv(2, 9, 7, 70, 64, 1, 1, 0, 0), true, true},
        {tile_conv(2, 9, 7, 63, 80, 1, 1, 0, 0), true, false},
        {tile_conv(3, 8, 9, 130, 40, 1, 2, 0, 0), true, true},
        {tile_conv(2, 21, 20, 128, 48, 1, 3, 0, 0), true, true},
        {tile_conv(4, 17, 16, 129, 33, 1, 1, 0, 0), true, true},
        {tile_conv(8, 24, 25, 128, 70, 1, 2, 0, 0), true, true},
        {tile_conv(1, 5, 5, 300, 260, 1, 1, 0, 0), true, true},
        {tile_conv(2, 9, 7, 63, 64, 1, 1, 0, 0), false, false},
        {tile_conv(1, 3, 1, 64, 64, 1, 4, 0, 0), true, true},
        {tile_conv(9, 12, 13, 64, 256, 1, 1, 0, 0), true, true},
    };
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(mr_conv_is_pointwise(&cases[i].conv) == cases[i].is_used);
        CHECK(mr_conv_pointwise_has_filter(&cases[i].conv) == cases[i].has_filter);
        check_conv(&cases[i].conv, pool, 3, 1e-4);
    }
    mr_pool_free(pool);
}

static void check_same_kinds(const mr_tensor *a, const mr_tensor *b)
{
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        float x = mr_tensor_floats(a)[i], y = mr_tensor_floats(b)[i];
        bool is_same = isfinite(y) ? fabsf(x - y) <= 1e-4f * fmaxf(1, fabsf(y)) : isnan(y) ? isnan(x) : x == y;
        if (!is_same) test_fail(__FILE__, __LINE__, "element %lld is %g, not %g", (long long)i, (double)x, (double)y);
    }
}

/* A number that is not finite, or so large that transforms overflow, changes only what depends on it. */
TEST(conv_tiles_do_not_spread_infinities)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -2e38f};
    const mr_conv v = tile_conv(8, 14, 11, 32, 32, 3, 1, 0, 0);
    mr_shape input_shape = MR_SHAPE(v.batch, v.in_height, v.in_width, v.in_channels);
    mr_shape filter_shape = MR_SHAPE(3, 3, v.in_channels, v.out_channels);
    mr_shape output_shape = MR_SHAPE(v.batch, v.out_height, v.out_width, v.out_channels);
    CHECK(mr_winograd_has_forward(&v) && mr_winograd_has_input(&v) && mr_winograd_has_filter(&v));
    for (size_t i = 0; i < 3 * sizeof values / sizeof *values; i++) {
        mr_tensor x = random_floats(input_shape, 1), f = random_floats(filter_shape, 2);
        mr_tensor dy = random_floats(output_shape, 3), y = random_floats(output_shape, 4);
        mr_tensor y_plain = random_floats(output_shape, 4), dx = random_floats(input_shape, 4);
        mr_tensor dx_plain = random_floats(input_shape, 4);
        mr_tensor *changed = i % 3 == 0 ? &x : i % 3 == 1 ? &f : &dy;
        ((float *)changed->data)[mr_tensor_count(changed) * (int64_t)(i + 1) / 17] = values[i / 3];
        int64_t size = MR_MAX(mr_conv_forward_scratch(&v, 1), mr_conv_backward_input_scratch(&v, 1));
        size = MR_MAX(size, mr_conv_backward_filter_scratch(&v, 1));
        mr_tensor scratch = random_floats(MR_SHAPE(size), 5);
        mr_conv_forward(&v, x.data, f.data, y.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
        mr_conv_forward_plain(&v, MR_FLOAT, x.data, f.data, y_plain.data, nullptr);
        check_same_kinds(&y, &y_plain);
        if (i % 3 == 1) continue; /* its product with the zeros around an image is NaN, which the plain kernel skips */
        mr_conv_backward_input(&v, f.data, dy.data, dx.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
        mr_conv_backward_input_plain(&v, MR_FLOAT, f.data, dy.data, dx_plain.data, nullptr);
        check_same_kinds(&dx, &dx_plain);
        mr_tensor df = random_floats(filter_shape, 4), df_plain = random_floats(filter_shape, 4);
        mr_conv_backward_filter(&v, x.data, dy.data, df.data, (mr_conv_scratch){scratch.data, 1}, nullptr);
        mr_conv_backward_filter_plain(&v, MR_FLOAT, x.data, dy.data, df_plain.data, nullptr);
        check_same_kinds(&df, &df_plain);
    }
}

static void check_convs(void)
{
    mr_error error = {0};
    mr_pool *pool;
    mr_random random = mr_random_at(test_seed(), 9, 0, 0);
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 40; i++) {
        mr_conv v = random_conv(&random);
        check_conv(&v, pool, 3, 2e-5);
    }
    mr_pool_free(pool);
    check_tiles();
    check_pointwise();
}

/* Below, at and above each limit of mr_conv_has_patches; the last ones need several parts. */
TEST(conv_of_large_filters_over_small_images)
{
    mr_error error = {0};
    mr_pool *pool;
    struct {
        mr_conv conv;
        bool output, input, filter; /* whether patches are used */
    } cases[] = {
        {tile_conv(4, 4, 4, 512, 256, 1, 1, 0, 0), true, true, true},
        {tile_conv(3, 4, 4, 512, 256, 1, 1, 0, 0), false, false, false},
        {tile_conv(4, 4, 4, 512, 255, 1, 1, 0, 0), false, false, false},
        {tile_conv(9, 5, 5, 120, 130, 3, 2, 1, 1), true, true, true},
        {tile_conv(7, 6, 8, 120, 130, 3, 2, 0, 1), true, true, true},
        {tile_conv(2, 11, 11, 131, 112, 3, 1, 1, 1), true, true, true},
        {tile_conv(2, 12, 12, 131, 112, 3, 1, 1, 1), false, false, false},
        {tile_conv(1, 9, 9, 150, 37, 5, 1, 2, 2), true, true, true},
        {tile_conv(17, 6, 6, 100, 83, 4, 2, 0, 0), true, true, true},
        {tile_conv(9, 9, 7, 90, 95, 4, 3, 1, 2), true, true, true},
        {tile_conv(30, 11, 9, 350, 43, 3, 4, 0, 0), true, true, true}, /* positions that no window contains */
        {tile_conv(70, 4, 4, 34, 61, 8, 3, 3, 3), true, true, true},
        {tile_conv(70, 9, 9, 90, 163, 3, 1, 1, 1), true, true, true},
        {tile_conv(2, 12, 12, 350, 333, 3, 1, 1, 1), true, false, true},
        {tile_conv(1, 23, 24, 200, 292, 3, 2, 0, 1), true, false, false},
        {tile_conv(1, 23, 24, 200, 291, 3, 2, 0, 1), false, false, false},
        {tile_conv(1, 12, 13, 500, 466, 3, 1, 1, 1), true, false, true},
        {tile_conv(1, 12, 13, 500, 467, 3, 1, 1, 1), true, true, true},
        {tile_conv(30, 7, 7, 1024, 33, 2, 1, 0, 0), true, true, true},
        {tile_conv(3, 60, 60, 200, 584, 3, 1, 1, 1), false, false, false},
    };
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mr_conv *v = &cases[i].conv;
        const int64_t filter = v->filter_height * v->filter_width * v->in_channels * v->out_channels;
        CHECK(mr_conv_has_patches(v, MR_CONV_OUTPUT) == cases[i].output);
        CHECK(mr_conv_has_patches(v, MR_CONV_INPUT) == cases[i].input);
        CHECK(mr_conv_has_patches(v, MR_CONV_FILTER) == cases[i].filter);
        const int64_t limit = test_is_sanitized() ? 200'000'000 : 2'000'000'000; /* else the plain one takes too long */
        if (v->batch * v->out_height * v->out_width * filter > limit) continue;
        const double sum = (double)(v->filter_height * v->filter_width * MR_MAX(v->in_channels, v->out_channels));
        check_conv(v, pool, 3, 1e-5 * sqrt(sum));
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
    run.inputs[1] = random_floats(MR_SHAPE(3, 3, 1, 6), 2);
    run.expect_error = "a convolution in groups is not supported: the input's depth is 3, the filter's 1";
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
