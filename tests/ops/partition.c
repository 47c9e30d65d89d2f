/* Samples of the operators of graph/ops/partition.c, and unit tests of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <math.h>

/* clang-format off */
SAMPLES(
    {"DynamicPartition", "float[4,3]; int32[4]=1,0,2,1", "num_partitions=3"},
    {"DynamicStitch", "int32[2]=1,3+int32[3]=0,2,1; float[2,4]+float[3,4]", ""},
    {"ParallelDynamicStitch", "int32[2]=1,3+int32[3]=0,2,1; float[2,4]+float[3,4]", ""},
    {"EditDistance", "int64[3,2]=0,0,0,1,1,0; int64[3]=5,6,7; int64[2]=2,3; "
                     "int64[2,2]=0,0,1,0; int64[2]=5,8; int64[2]=2,4", ""},
    {"ListDiff", "int32[4]=1,2,3,2; int32[2]=2,5", ""},
    {"Unique", "int32[5]=3,1,3,2,1", ""},
    {"UniqueV2", "float[2,3]; int64[1]=1", ""},
    {"UniqueWithCounts", "string[4]=a", ""},
    {"UniqueWithCountsV2", "float[2,3]; int64[1]=-1", ""})
/* clang-format on */

TEST(unique_nan_is_unequal_and_zeros_are_equal)
{
    mr_tensor outputs[OP_OUTPUTS_MAX], x = floats_of(MR_SHAPE(6), (float[]){1, NAN, -0.0f, 0, NAN, 1});
    static const int32_t expected[] = {0, 1, 2, 2, 3, 0};
    run_op(&(op_run){.op = "Unique", .inputs = {x}, .output_count = 2, .output_dtypes = {MR_FLOAT, MR_INT32}}, outputs);
    CHECK_EQ(mr_tensor_count(&outputs[0]), 4);
    CHECK(memcmp(outputs[1].data, expected, sizeof expected) == 0);
}

/* Each NaN has a place of its own in the table, so many of them do not take quadratic time. */
TEST(unique_many_nans)
{
    mr_tensor x = random_floats(MR_SHAPE(200000), 1), outputs[OP_OUTPUTS_MAX];
    for (int64_t i = 0; i < mr_tensor_count(&x); i++) mr_tensor_floats(&x)[i] = NAN;
    run_op(&(op_run){.op = "Unique", .inputs = {x}, .output_count = 2, .output_dtypes = {MR_FLOAT, MR_INT32}}, outputs);
    CHECK_EQ(mr_tensor_count(&outputs[0]), 200000);
}

TEST(partition_numbers_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(3), 1);
    (void)run_op_one(&(op_run){.op = "DynamicPartition",
                               .inputs = {x, INT32S(0, 1, 2)},
                               .output_count = 2,
                               .expect_error = "partitions[2] = 2 is not in [0, 2)"});
    (void)run_op_one(&(op_run){.op = "DynamicStitch",
                               .inputs = {INT32S(0, -1, 2), x},
                               .output_dtypes = {MR_FLOAT},
                               .expect_error = "indices[1] is out of range"});
}
