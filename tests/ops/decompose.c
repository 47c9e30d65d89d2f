/* Decompositions: the signs of the factors are not determined, so their product is compared with the matrix. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Qr", "float[2,4,3]", ""},
    {"Qr", "complex64[2,4,3]", "full_matrices=true"},
    {"Svd", "float[2,4,3]", "full_matrices=true"},
    {"Svd", "complex128[2,3,4]", "full_matrices=false"},
    {"BatchSvd", "double[2,4,3]", "compute_uv=false"},
    {"SelfAdjointEig", "float[2,2,2]=4,1,1,3", ""},
    {"BatchSelfAdjointEig", "double[2,2,2]=4,1,1,3", ""},
    {"SelfAdjointEigV2", "complex64[2,2,2]=4,1,1,3", ""},
    {"BatchSelfAdjointEigV2", "double[2,2,2]=4,1,1,3", "compute_v=false"},
    {"Eig", "float[2,2,2]=4,1,2,3", "Tout=complex64"})
/* clang-format on */

/* The product of x [rows, inner], columns scaled by s if it is given, and the transpose of y [columns, inner]. */
static mr_tensor rebuilt(const mr_tensor *x, const mr_tensor *s, const mr_tensor *y)
{
    int64_t rows = x->shape.dims[0], inner = x->shape.dims[1], columns = y->shape.dims[0];
    mr_tensor result = random_floats(MR_SHAPE(rows, columns), 0);
    for (int64_t i = 0; i < rows * columns; i++) {
        float sum = 0;
        for (int64_t k = 0; k < inner; k++)
            sum += mr_tensor_floats(x)[i / columns * inner + k] * (s != nullptr ? mr_tensor_floats(s)[k] : 1) *
                   mr_tensor_floats(y)[i % columns * inner + k];
        mr_tensor_floats(&result)[i] = sum;
    }
    return result;
}

static void check_identity(const mr_tensor *columns)
{
    int64_t rows = columns->shape.dims[0], count = columns->shape.dims[1];
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b < count; b++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++)
                sum +=
                    (double)mr_tensor_floats(columns)[r * count + a] * (double)mr_tensor_floats(columns)[r * count + b];
            CHECK(fabs(sum - (a == b)) < 1e-4);
        }
}

TEST(decompose_svd_rebuilds_the_matrix)
{
    static const int64_t sizes[][2] = {{5, 5}, {7, 3}, {3, 7}, {1, 4}, {40, 30}, {20, 90}, {150, 140}};
    for (int i = 0; i < 7; i++) {
        mr_tensor x = random_floats(MR_SHAPE(sizes[i][0], sizes[i][1]), 1), out[3];
        run_op(&(op_run){.op = "Svd", .inputs = {x}, .output_count = 3}, out);
        mr_tensor again = rebuilt(&out[1], &out[0], &out[2]);
        check_close(&again, &x, 1e-4);
        check_identity(&out[1]);
        check_identity(&out[2]);
    }
}

TEST(decompose_eigenvectors_rebuild_the_matrix)
{
    for (int64_t n = 1; n < 150; n += n < 30 ? 7 : 50) {
        mr_tensor x = random_floats(MR_SHAPE(n, n), 1), out[2];
        for (int64_t i = 0; i < n * n; i++)
            if (i / n < i % n) mr_tensor_floats(&x)[i] = mr_tensor_floats(&x)[i % n * n + i / n];
        run_op(&(op_run){.op = "SelfAdjointEigV2", .inputs = {x}, .output_count = 2}, out);
        mr_tensor again = rebuilt(&out[1], &out[0], &out[1]);
        check_close(&again, &x, 1e-4);
        check_identity(&out[1]);
    }
}

/* x · v = v · diag(e), in complex numbers. */
TEST(decompose_eig_has_eigenvectors)
{
    constexpr int64_t n = 9;
    mr_tensor x = random_floats(MR_SHAPE(n, n), 1), out[2];
    run_op(&(op_run){.op = "Eig", .inputs = {x}, .output_count = 2, .output_dtypes = {MR_COMPLEX64, MR_COMPLEX64}},
           out);
    const float *e = out[0].data, *v = out[1].data;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++) {
            float re = 0, im = 0, v_re = v[2 * (r * n + c)], v_im = v[2 * (r * n + c) + 1];
            for (int64_t k = 0; k < n; k++) {
                re += mr_tensor_floats(&x)[r * n + k] * v[2 * (k * n + c)];
                im += mr_tensor_floats(&x)[r * n + k] * v[2 * (k * n + c) + 1];
            }
            CHECK(fabsf(re - (v_re * e[2 * c] - v_im * e[2 * c + 1])) < 1e-4f);
            CHECK(fabsf(im - (v_re * e[2 * c + 1] + v_im * e[2 * c])) < 1e-4f);
        }
}

TEST(decompose_rejects_what_is_not_finite)
{
    float values[4] = {1, 2, 2, NAN};
    mr_tensor x = floats_of(MR_SHAPE(2, 2), values), out[3];
    run_op(&(op_run){.op = "SelfAdjointEigV2",
                     .inputs = {x},
                     .output_count = 2,
                     .expect_error = "Self-adjoint eigen decomposition was not successful"},
           out);
    run_op(&(op_run){.op = "Svd", .inputs = {x}, .output_count = 3}, out);
    CHECK(isnan(mr_tensor_floats(&out[0])[0]));
}
