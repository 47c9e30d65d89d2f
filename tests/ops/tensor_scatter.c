/* Samples of the operators of graph/ops/tensor_scatter.c, and unit tests of scattering. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"TensorScatterUpdate", "float[4,3]; int32[2,1]=1,3; float[2,3]", ""},
    {"TensorScatterAdd", "float[4,3]; int32[2,1]=1,1; float[2,3]", ""},
    {"TensorScatterSub", "float[4,3]; int32[2,2]=1,0,3,2; float[2]", ""},
    {"TensorScatterMax", "float[4,3]; int32[2,1]=1,3; float[2,3]", ""},
    {"TensorScatterMin", "float[4,3]; int32[2,1]=1,3; float[2,3]", ""},
    {"ScatterNdNonAliasingAdd", "float[4,3]; int32[2,1]=1,3; float[2,3]", ""})
/* clang-format on */

static mr_tensor column(const int32_t *values, int64_t count)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT32, MR_SHAPE(count, 1), values, &error));
    return kept(tensor);
}

TEST(scatter_indices_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(3), 1), one = floats_of(MR_SHAPE(1), (float[]){1});
    (void)run_op_one(&(op_run){.op = "TensorScatterAdd",
                               .inputs = {x, column((int32_t[]){5}, 1), one},
                               .expect_error = "indices[0] = [5] does not index into shape [3]"});
    (void)run_op_one(&(op_run){.op = "ScatterNd",
                               .inputs = {column((int32_t[]){-1}, 1), one, INT32S(3)},
                               .output_dtypes = {MR_FLOAT},
                               .expect_error = "indices[0] = [-1] does not index into shape [3]"});
    (void)run_op_one(&(op_run){.op = "ScatterNd",
                               .inputs = {column((int32_t[]){1}, 1), x, INT32S(3)},
                               .output_dtypes = {MR_FLOAT},
                               .expect_error = "must match dimensions [0,1) of updates[shape=[3]]"});
}

/* Strings at the same index are appended, as in TensorFlow. */
TEST(scatter_strings)
{
    mr_error error = {0};
    mr_tensor words = {0};
    CHECK_OK(
        mr_tensor_init_strings(&words, MR_SHAPE(3), (mr_string[]){MR_STR("a"), MR_STR("b"), MR_STR("cd")}, &error));
    words = kept(words);
    mr_tensor y = run_op_one(&(op_run){.op = "ScatterNd",
                                       .inputs = {column((int32_t[]){1, 0, 1}, 3), words, INT32S(3)},
                                       .output_dtypes = {MR_STRING}});
    CHECK(mr_string_equal(mr_tensor_strings(&y)[0], MR_STR("b")));
    CHECK(mr_string_equal(mr_tensor_strings(&y)[1], MR_STR("acd")));
    CHECK(mr_string_equal(mr_tensor_strings(&y)[2], MR_STR("")));
}
