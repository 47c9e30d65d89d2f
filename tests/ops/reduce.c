/* Reductions: compares every subset of axes with index arithmetic; NaN; results are bitwise equal at any number of
 * threads. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"All", "bool[2,3]; int32[1]=1", ""},
    {"Any", "bool[2,3]; int32[1]=-1", ""},
    {"ArgMax", "float[2,3]; int32[]=1", ""},
    {"ArgMin", "int32[2,3]; int32[]=0", ""},
    {"EuclideanNorm", "float[2,3]; int32[1]=1", ""},
    {"Max", "float[2,3,4]; int32[2]=0,2", ""},
    {"Mean", "float[2,3,4]; int32[2]=1,-1", "keep_dims=true"},
    {"Mean", "int32[2,3]; int32[1]=0", ""},
    {"Min", "int32[2,3]; int32[1]=1", ""},
    {"Prod", "int32[2,3]; int32[1]=1", ""},
    {"Sum", "int32[2,3,4]; int32[2]=1,2", ""},
    {"Sum", "half[2,3]; int64[1]=1", ""})
/* clang-format on */

TEST(reduce_every_subset_of_axes)
{
    mr_shape shape = MR_SHAPE(3, 40, 5, 23);
    mr_tensor x = random_floats(shape, 1);
    for (unsigned subset = 0; subset < 16; subset++) {
        int32_t axes[4];
        int count = 0;
        mr_shape kept = MR_SCALAR;
        for (int d = 0; d < 4; d++)
            if (subset >> d & 1)
                axes[count++] = d - 4;
            else
                kept.dims[kept.rank++] = shape.dims[d];
        mr_tensor sum = run_op_one(&(op_run){.op = "Sum", .inputs = {x, int32s_of(count, axes)}, .threads = 2});
        mr_tensor most = run_op_one(&(op_run){.op = "Max", .inputs = {x, int32s_of(count, axes)}, .threads = 2});
        CHECK(mr_shape_equal(sum.shape, kept));
        static double sums[3 * 40 * 5 * 23];
        static float largest[3 * 40 * 5 * 23];
        int64_t outputs = mr_shape_count(kept);
        for (int64_t i = 0; i < outputs; i++) sums[i] = 0, largest[i] = -INFINITY;
        for (int64_t i = 0; i < mr_tensor_count(&x); i++) {
            int64_t rest = i, at = 0, stride = 1;
            for (int d = 3; d >= 0; d--) {
                int64_t index = rest % shape.dims[d];
                rest /= shape.dims[d];
                if (subset >> d & 1) continue;
                at += index * stride;
                stride *= shape.dims[d];
            }
            sums[at] += (double)mr_tensor_floats(&x)[i];
            largest[at] = fmaxf(largest[at], mr_tensor_floats(&x)[i]);
        }
        for (int64_t i = 0; i < outputs; i++) {
            CHECK_NEAR((double)mr_tensor_floats(&sum)[i], sums[i], 1e-3);
            CHECK(mr_tensor_floats(&most)[i] == largest[i]);
        }
    }
}

TEST(reduce_is_the_same_at_any_number_of_threads)
{
    static const int64_t sizes[][2] = {{100003, 1}, {3001, 16}, {17, 5003}, {200, 300}};
    for (int i = 0; i < 4; i++)
        for (int32_t axis = 0; axis < 2; axis++) {
            mr_tensor x = random_floats(MR_SHAPE(sizes[i][0], sizes[i][1]), 1), axes = INT32S(axis);
            mr_tensor one = run_op_one(&(op_run){.op = "Mean", .inputs = {x, axes}, .threads = 1});
            mr_tensor four = run_op_one(&(op_run){.op = "Mean", .inputs = {x, axes}, .threads = 4});
            check_same_bits(&one, &four);
        }
}

TEST(reduce_carries_nan_and_checks_axes)
{
    mr_tensor x = floats_of(MR_SHAPE(2, 3), (float[]){1, NAN, 3, -1, -2, -INFINITY}), axis = INT32S(1);
    mr_tensor most = run_op_one(&(op_run){.op = "Max", .inputs = {x, axis}});
    CHECK(isnan(mr_tensor_floats(&most)[0]) && mr_tensor_floats(&most)[1] == -1);
    mr_tensor sum = run_op_one(&(op_run){.op = "Sum", .inputs = {x, axis}});
    CHECK(isnan(mr_tensor_floats(&sum)[0]) && mr_tensor_floats(&sum)[1] == -INFINITY);
    axis = INT32S(2);
    (void)run_op_one(&(op_run){.op = "Sum", .inputs = {x, axis}, .expect_error = "Invalid reduction dimension"});
}
