/* Samples of the operators of graph/ops/rearrange.c, and unit tests of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <math.h>

/* clang-format off */
SAMPLES(
    {"Bitcast", "float[3,2]", "type=complex64"},
    {"Bitcast", "float[3,2]", "type=uint8"},
    {"ReverseSequence", "float[2,3,4]; int64[3]=0,2,1", "seq_dim=0; batch_dim=1"},
    {"Roll", "float[2,3,4]; int32[2]=1,-2; int32[2]=0,2", ""},
    {"UnravelIndex", "int32[3]=0,5,7; int32[2]=2,4", ""},
    {"MirrorPadGrad", "float[5,7]; int32[2,2]=1,1,2,2", "mode=REFLECT"},
    {"TileGrad", "float[4,3]; int32[2]=2,3", ""},
    {"ParallelConcat", "float[1,3]+float[1,3]", "shape=[2,3]"},
    {"InplaceUpdate", "float[4,3]; int32[2]=1,3; float[2,3]", ""},
    {"InplaceAdd", "float[4,3]; int32[2]=1,3; float[2,3]", ""},
    {"InplaceSub", "float[4,3]; int32[2]=1,3; float[2,3]", ""},
    {"DeepCopy", "float[2,3]", ""},
    {"Empty", "int32[2]=2,3", "dtype=float; init=true"},
    {"TopK", "float[2,5]", "k=3"},
    {"NthElement", "float[2,5]; int32[]=2", ""})
/* clang-format on */

/* Of equal elements the first comes first, a NaN is larger than all numbers, and rows do not depend on threads. */
TEST(top_k_order)
{
    mr_tensor outputs[OP_OUTPUTS_MAX], k = kept((mr_tensor){0}), x;
    mr_error error = {0};
    CHECK_OK(mr_tensor_init_int32(&k, 4, &error));
    k = kept(k);
    x = floats_of(MR_SHAPE(2, 5), (float[]){1, 3, NAN, 3, 2, 0, 0, 0, -1, 5});
    static const int32_t expected[] = {2, 1, 3, 4, 4, 0, 1, 2};
    run_op(&(op_run){.op = "TopKV2", .inputs = {x, k}, .output_count = 2, .output_dtypes = {MR_FLOAT, MR_INT32}},
           outputs);
    CHECK(memcmp(outputs[1].data, expected, sizeof expected) == 0);
    (void)run_op_one(&(op_run){.op = "TopKV2",
                               .inputs = {random_floats(MR_SHAPE(2, 3), 1), k},
                               .output_count = 2,
                               .expect_error = "input must have at least k columns. Had 3, needed 4"});
}

/* Tile is the gradient's inverse: every element is repeated, so the sum is a multiple. */
TEST(tile_grad_sums_repetitions)
{
    mr_tensor x = random_floats(MR_SHAPE(3, 2), 1);
    mr_tensor tiled = run_op_one(&(op_run){.op = "Tile", .inputs = {x, INT32S(2, 4)}});
    mr_tensor sum = run_op_one(&(op_run){.op = "TileGrad", .inputs = {tiled, INT32S(2, 4)}});
    CHECK(mr_shape_equal(sum.shape, x.shape));
    for (int64_t i = 0; i < 6; i++) CHECK(fabsf(mr_tensor_floats(&sum)[i] - 8 * mr_tensor_floats(&x)[i]) < 1e-5f);
}

TEST(nth_element_equals_sorted)
{
    mr_tensor x = random_floats(MR_SHAPE(1, 301), 3), top[OP_OUTPUTS_MAX];
    mr_error error = {0};
    mr_tensor all = {0};
    CHECK_OK(mr_tensor_init_int32(&all, 301, &error));
    all = kept(all);
    run_op(&(op_run){.op = "TopKV2", .inputs = {x, all}, .output_count = 2, .output_dtypes = {MR_FLOAT, MR_INT32}},
           top);
    for (int32_t n = 0; n < 301; n += 50) {
        mr_tensor at = {0};
        CHECK_OK(mr_tensor_init_int32(&at, n, &error));
        at = kept(at);
        mr_tensor y = run_op_one(&(op_run){.op = "NthElement", .inputs = {x, at}});
        CHECK(mr_tensor_floats(&y)[0] == mr_tensor_floats(&top[0])[300 - n]);
    }
}
