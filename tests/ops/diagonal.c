/* Samples of the operators of graph/ops/diagonal.c, and errors of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Diag", "float[2,3]", ""},
    {"DiagPart", "float[2,3,2,3]", ""},
    {"MatrixDiag", "float[2,3]", ""},
    {"MatrixDiagV2", "float[4,2,3]; int32[2]=-1,0; int32[]=4; int32[]=3; float[]", ""},
    {"MatrixDiagV3", "float[4,2,3]; int32[2]=-1,0; int32[]=-1; int32[]=-1; float[]", "align=LEFT_RIGHT"},
    {"MatrixDiagPart", "float[2,3,4]", ""},
    {"MatrixDiagPartV2", "float[2,3,4]; int32[2]=-1,2; float[]", ""},
    {"MatrixDiagPartV3", "float[2,3,4]; int32[2]=-1,2; float[]", "align=RIGHT_RIGHT"},
    {"MatrixSetDiag", "float[2,3,4]; float[2,3]", ""},
    {"MatrixSetDiagV2", "float[2,3,4]; float[2,2,3]; int32[2]=0,1", ""},
    {"MatrixSetDiagV3", "float[2,3,4]; float[2,2,3]; int32[2]=0,1", "align=LEFT_LEFT"},
    {"MatrixBandPart", "float[2,3,4]; int64[]=1; int64[]=-1", ""},
    {"BatchMatrixDiag", "float[2,3]", ""},
    {"BatchMatrixDiagPart", "float[2,3,4]", ""},
    {"BatchMatrixSetDiag", "float[2,3,4]; float[2,3]", ""},
    {"BatchMatrixBandPart", "float[2,3,4]; int64[]=1; int64[]=0", ""})
/* clang-format on */

TEST(diagonal_ranges_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(3, 4), 1), value = floats_of(MR_SCALAR, (float[]){0});
    (void)run_op_one(&(op_run){.op = "MatrixDiagPartV3",
                               .inputs = {x, INT32S(3, 2), value},
                               .expect_error = "lower_diag_index must not be larger than upper_diag_index: 3 > 2"});
    (void)run_op_one(&(op_run){.op = "MatrixDiagPartV3",
                               .inputs = {x, INT32S(-3, 2), value},
                               .expect_error = "lower_diag_index is out of bound: -3. It must be between -3 and 4"});
    (void)run_op_one(&(op_run){.op = "MatrixDiagPartV3",
                               .inputs = {x, INT32S(0, INT32_MAX), value},
                               .expect_error = "upper_diag_index is out of bound"});
    (void)run_op_one(&(op_run){.op = "MatrixSetDiag",
                               .inputs = {x, floats_of(MR_SHAPE(1), (float[]){1})},
                               .expect_error = "Expected diagonal shape: [3]"});
}
