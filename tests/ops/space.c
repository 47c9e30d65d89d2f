/* Samples of the operators of graph/ops/space.c, and errors of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"SpaceToBatchND", "float[2,3,4,2]; int32[2]=2,3; int32[2,2]=1,0,0,2", ""},
    {"BatchToSpaceND", "float[12,3,2,2]; int32[2]=2,3; int32[2,2]=1,0,0,2", ""},
    {"SpaceToBatch", "float[2,3,5,2]; int32[2,2]=1,0,0,1", "block_size=2"},
    {"BatchToSpace", "float[8,3,2,2]; int32[2,2]=1,0,0,2", "block_size=2"},
    {"SpaceToDepth", "float[2,4,6,3]", "block_size=2"},
    {"SpaceToDepth", "float[2,3,4,6,4]", "block_size=2; data_format=NCHW_VECT_C"},
    {"DepthToSpace", "float[2,3,5,8]", "block_size=2"},
    {"DepthToSpace", "float[2,8,3,5]", "block_size=2; data_format=NCHW"},
    {"ExtractImagePatches", "float[2,7,6,3]", "ksizes=1,3,2,1; strides=1,2,1,1; rates=1,1,2,1; padding=SAME"},
    {"ExtractVolumePatches", "float[2,4,5,6,3]", "ksizes=1,3,2,1,1; strides=1,2,1,2,1; padding=VALID"})
/* clang-format on */

/* NCHW must be the transposition of NHWC. */
TEST(space_depth_formats_agree)
{
    mr_tensor x = random_floats(MR_SHAPE(2, 3, 5, 8), 1), channels_first, y, z;
    op_attr block = {"block_size", 'i', .ints = {2}};
    channels_first = run_op_one(&(op_run){.op = "Transpose", .inputs = {x, INT32S(0, 3, 1, 2)}});
    y = run_op_one(&(op_run){.op = "DepthToSpace", .inputs = {x}, .attrs = {block}, .threads = 2});
    y = run_op_one(&(op_run){.op = "Transpose", .inputs = {y, INT32S(0, 3, 1, 2)}});
    op_attr format = {"data_format", 's', .text = "NCHW"};
    z = run_op_one(&(op_run){.op = "DepthToSpace", .inputs = {channels_first}, .attrs = {block, format}});
    check_same_bits(&z, &y);
    z = run_op_one(&(op_run){.op = "SpaceToDepth", .inputs = {z}, .attrs = {block, format}});
    check_same_bits(&z, &channels_first);
}

TEST(space_blocks_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(2, 3, 4), 1), zero = {0}, negative = {0};
    mr_error error = {0};
    CHECK_OK(mr_tensor_init_copy(&zero, MR_INT32, MR_SHAPE(1, 2), (int32_t[]){0, 0}, &error));
    CHECK_OK(mr_tensor_init_copy(&negative, MR_INT32, MR_SHAPE(1, 2), (int32_t[]){-1, 0}, &error));
    zero = kept(zero);
    negative = kept(negative);
    (void)run_op_one(&(op_run){.op = "SpaceToBatchND",
                               .inputs = {x, INT32S(2), zero},
                               .expect_error = "padded_shape[0]=3 is not divisible by block_shape[0]=2"});
    (void)run_op_one(&(op_run){.op = "SpaceToBatchND",
                               .inputs = {x, INT32S(0), zero},
                               .expect_error = "All values in block_shape must be positive, got value, 0 at index 0."});
    (void)run_op_one(&(op_run){
        .op = "SpaceToBatchND", .inputs = {x, INT32S(1), negative}, .expect_error = "Paddings must be non-negative"});
    (void)run_op_one(&(op_run){.op = "BatchToSpaceND",
                               .inputs = {x, INT32S(3), zero},
                               .expect_error = "not divisible by product of block sizes (3)"});
}
