/* Errors of linear algebra, in TensorFlow's words. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Cholesky", "float[2,2,2]=4,1,1,3", ""},
    {"BatchCholesky", "double[2,2,2]=4,1,1,3", ""},
    {"CholeskyGrad", "float[2,2,2]=2,0,1,3; float[2,2,2]", ""},
    {"BatchCholeskyGrad", "double[2,2,2]=2,0,1,3; double[2,2,2]", ""},
    {"MatrixExponential", "float[2,2,2]=1,2,1,0", ""},
    {"MatrixLogarithm", "complex64[2,2,2]=4,1,1,3", ""},
    {"MatrixSquareRoot", "double[2,2,2]=4,1,1,3", ""},
    {"TridiagonalSolve", "float[2,3,4]=1,2,5; float[2,4,2]", ""},
    {"TridiagonalSolve", "complex64[3,4]=1,2,5; complex64[4,2]", "partial_pivoting=false"},
    {"TridiagonalMatMul", "float[2,1,4]; float[2,1,4]; float[2,1,4]; float[2,4,3]", ""},
    {"MatrixInverse", "complex64[2,2,2]=4,1,1,3", "adjoint=true"},
    {"BatchMatrixInverse", "double[2,2,2]=4,1,1,3", ""},
    {"MatrixDeterminant", "float[3,2,2]", ""},
    {"BatchMatrixDeterminant", "complex128[3,2,2]", ""},
    {"LogMatrixDeterminant", "float[3,2,2]", ""},
    {"Lu", "float[3,2,2]=4,1,1,3", "output_idx_type=int64"},
    {"MatrixSolve", "float[2,2,2]=4,1,1,3; float[2,2,3]", "adjoint=true"},
    {"BatchMatrixSolve", "double[2,2,2]=4,1,1,3; double[2,2,3]", ""},
    {"MatrixTriangularSolve", "float[1,2,2]=4,1,1,3; float[2,2,3]", "lower=false; adjoint=true"},
    {"BatchMatrixTriangularSolve", "double[2,2,2]=4,1,1,3; double[2,2,3]", ""},
    {"MatrixSolveLs", "float[2,3,2]=1,2,3,5,7,9; float[2,3,4]; double[]=1", ""},
    {"BatchMatrixSolveLs", "double[2,2,3]=1,2,3,5,7,9; double[2,2,4]; double[]=0", "fast=false"})
/* clang-format on */

TEST(linalg_names_what_is_singular)
{
    float values[4] = {1, 2, 2, 4}, negative[4] = {1, 0, 0, -1};
    mr_tensor singular = floats_of(MR_SHAPE(2, 2), values), x = floats_of(MR_SHAPE(2, 2), negative), out[2];
    run_op(&(op_run){.op = "MatrixInverse", .inputs = {singular}, .expect_error = "Input is not invertible."}, out);
    run_op(&(op_run){.op = "MatrixSolve", .inputs = {singular, x}, .expect_error = "Input matrix is not invertible."},
           out);
    run_op(&(op_run){.op = "Cholesky",
                     .inputs = {x},
                     .expect_error = "Cholesky decomposition was not successful. The input might not be valid."},
           out);
}

/* The exponential of a rotation's generator, of a large number, and of a matrix that cannot be diagonalized. */
TEST(linalg_exponential)
{
    float values[12] = {0, -2, 2, 0, 40, 0, 0, -40, 1, 1, 0, 1};
    const double e = exp(1), expected[12] = {cos(2), -sin(2), sin(2), cos(2), exp(40), 0, 0, exp(-40), e, e, 0, e};
    mr_tensor x = floats_of(MR_SHAPE(3, 2, 2), values);
    mr_tensor result = run_op_one(&(op_run){.op = "MatrixExponential", .inputs = {x}});
    for (int i = 0; i < 12; i++)
        CHECK(fabs((double)mr_tensor_floats(&result)[i] - expected[i]) <= 1e-6 * fmax(fabs(expected[i]), 1e-6));
}

TEST(linalg_tridiagonal_systems_without_a_solution)
{
    float zeros[9] = {0}, ones[3] = {1, 1, 1};
    mr_tensor diagonals = floats_of(MR_SHAPE(3, 3), zeros), rhs = floats_of(MR_SHAPE(3, 1), ones);
    (void)run_op_one(&(op_run){
        .op = "TridiagonalSolve", .inputs = {diagonals, rhs}, .expect_error = "The matrix is not invertible."});
    (void)run_op_one(&(op_run){.op = "TridiagonalSolve",
                               .inputs = {diagonals, rhs},
                               .attrs = {{"partial_pivoting", 'b', .ints = {0}}},
                               .expect_error = "requires pivoting"});
}
