/* Compares every gradient with finite differences. A table has one row for each operator; each row is tested once with
 * known shapes and once with sizes that are unknown while the graph is built. The function is sum(y * weights) with
 * random weights, in double if the operator has a double kernel. */
#include "base/random.h"
#include "builtin/builtin.h"
#include "graph/ir/op.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int INPUTS_MAX = 3;

typedef struct gradient_case {
    const char *op;
    const char *note; /* the variant */
    int input_count;
    mr_shape shapes[INPUTS_MAX];
    double low, high; /* range of input elements */
    mr_output (*build)(mr_graph *g, const mr_output *x);
} gradient_case;

#define INT(value) mr_constant_int32(g, value)
#define INTS(...) mr_constant_ints(g, MR_INTS(__VA_ARGS__))
#define S(...) MR_SHAPE(__VA_ARGS__)
#define LIKE(output) mr_cast(g, output, mr_output_dtype(x[0]))
#define NUMBER(value) LIKE(mr_constant_float(g, value))
#define BOOLS3                                                                                                         \
    mr_greater(g, mr_constant_int32s(g, S(3), (int32_t[]){1, 0, 1}, nullptr),                                          \
               mr_constant_int32s(g, MR_SCALAR, (int32_t[]){0}, nullptr))
#define CONV .strides = MR_INTS(1, 2, 1, 1), .padding = MR_SAME
#define BOXES mr_constant_floats(g, MR_SHAPE(2, 4), (float[]){0.1f, 0, 0.7f, 1.1f, 0.2f, 0.3f, 0.9f, 0.8f}, nullptr)
#define PAIR mr_constant_floats(g, MR_SHAPE(2), (float[]){1.3f, 0.7f}, nullptr)
#define SHIFT mr_constant_floats(g, MR_SHAPE(1, 8), (float[]){1, 0, 1, 0, 1, 0, 0, 0}, nullptr)
/* Symmetric and positive definite; a matrix that is neither, but invertible */
#define EYE mr_matrix_diag(g, mr_ones_like(g, mr_matrix_diag_part(g, x[0])))
#define DEFINITE mr_add_v2(g, mr_batch_mat_mul_v2(g, x[0], x[0], .adj_y = true), EYE)
#define UNEQUAL mr_add_v2(g, mr_add_v2(g, x[0], EYE), mr_add_v2(g, EYE, EYE))
#define Z mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128)
#define PARTS(z) mr_add_v2(g, mr_real(g, z, .Tout = MR_DOUBLE), mr_square(g, mr_imag(g, z, .Tout = MR_DOUBLE)))
#define POOL .ksize = MR_INTS(1, 2, 2, 1), .strides = MR_INTS(1, 2, 1, 1), .padding = MR_SAME
#define POOL3D .ksize = MR_INTS(1, 2, 2, 1, 1), .strides = MR_INTS(1, 1, 2, 1, 1), .padding = MR_SAME
#define MATRIX3x2 mr_constant_int32s(g, S(3, 2), (int32_t[]){1, 0, 0, 2, 1, 0}, nullptr)
#define ROWS3x2 mr_constant_int32s(g, S(3, 2), (int32_t[]){0, 2, 1, 0, 1, 1}, nullptr)
#define UNSORTED3x2 mr_constant_int32s(g, S(3, 2), (int32_t[]){1, 1, 0, 2, 1, 0}, nullptr)
#define LONG(value) mr_cast(g, value, MR_INT64)
#define PADDINGS mr_constant_int32s(g, S(2, 2), (int32_t[]){1, 2, 0, 1}, nullptr)

/* name, operator, note, shapes of inputs, range, expression */
/* Paddings or crops of one and two dimensions; rows 2 and 0, as index tuples. */
#define EDGE mr_reshape(g, INTS(1, 0), INTS(1, 2))
#define EDGES mr_reshape(g, INTS(1, 0, 0, 1), INTS(2, 2))
#define ROWS mr_reshape(g, INTS(2, 0), INTS(2, 1))

/* Rows through an array. */
static mr_output array_of_rows(mr_graph *g, mr_output x, bool reversed)
{
    mr_tensor_array_v3_outputs a = mr_tensor_array_v3(g, INT(3), MR_FLOAT);
    mr_output flow = mr_tensor_array_scatter_v3(g, a.handle, INTS(0, 1, 2), x, a.flow);
    mr_output order = reversed ? INTS(2, 0, 1) : INTS(0, 1, 2);
    return mr_tensor_array_gather_v3(g, a.handle, order, flow, MR_FLOAT);
}

/* A value that is written once, or also read twice. */
static mr_output array_of_one(mr_graph *g, mr_output x, bool twice)
{
    mr_tensor_array_v3_outputs a = mr_tensor_array_v3(g, INT(1), MR_FLOAT, .clear_after_read = false);
    mr_output flow = mr_tensor_array_write_v3(g, a.handle, INT(0), x, a.flow);
    mr_output read = mr_tensor_array_read_v3(g, a.handle, INT(0), flow, MR_FLOAT);
    return twice ? mr_mul(g, read, mr_tensor_array_read_v3(g, a.handle, INT(0), flow, MR_FLOAT)) : read;
}

/* Rows in pieces of one and two, joined again. */
static mr_output array_of_pieces(mr_graph *g, mr_output x, bool squared)
{
    mr_tensor_array_v3_outputs a = mr_tensor_array_v3(g, INT(2), MR_FLOAT);
    mr_output flow = mr_tensor_array_split_v3(g, a.handle, x, LONG(INTS(1, 2)), a.flow);
    mr_output all = mr_tensor_array_concat_v3(g, a.handle, flow, MR_FLOAT).value;
    return squared ? mr_mul(g, all, all) : all;
}

#define CASES(C)                                                                                                       \
    C(neg, "Neg", "", (S(2, 3)), -2, 2, mr_neg(g, x[0]))                                                               \
    C(abs_, "Abs", "", (S(2, 3)), -2, 2, mr_abs(g, x[0]))                                                              \
    C(square, "Square", "", (S(2, 3)), -2, 2, mr_square(g, x[0]))                                                      \
    C(sqrt_, "Sqrt", "", (S(2, 3)), 0.5, 2, mr_sqrt(g, x[0]))                                                          \
    C(sqrt_grad, "SqrtGrad", "", (S(2, 3), S(2, 3)), 0.5, 2, mr_sqrt_grad(g, x[0], x[1]))                              \
    C(rsqrt, "Rsqrt", "", (S(2, 3)), 0.5, 2, mr_rsqrt(g, x[0]))                                                        \
    C(rsqrt_grad, "RsqrtGrad", "", (S(2, 3), S(2, 3)), 0.5, 2, mr_rsqrt_grad(g, x[0], x[1]))                           \
    C(reciprocal, "Reciprocal", "", (S(2, 3)), 0.5, 2, mr_reciprocal(g, x[0]))                                         \
    C(inv, "Inv", "", (S(2, 3)), 0.5, 2, mr_inv(g, x[0]))                                                              \
    C(exp_, "Exp", "", (S(2, 3)), -1, 1, mr_exp(g, x[0]))                                                              \
    C(expm1_, "Expm1", "", (S(2, 3)), -1, 1, mr_expm1(g, x[0]))                                                        \
    C(log_, "Log", "", (S(2, 3)), 0.5, 2, mr_log(g, x[0]))                                                             \
    C(log1p_, "Log1p", "", (S(2, 3)), -0.5, 2, mr_log1p(g, x[0]))                                                      \
    C(sin_, "Sin", "", (S(2, 3)), -2, 2, mr_sin(g, x[0]))                                                              \
    C(cos_, "Cos", "", (S(2, 3)), -2, 2, mr_cos(g, x[0]))                                                              \
    C(tanh_, "Tanh", "", (S(2, 3)), -2, 2, mr_tanh(g, x[0]))                                                           \
    C(tanh_grad, "TanhGrad", "", (S(2, 3), S(2, 3)), -0.9, 0.9, mr_tanh_grad(g, x[0], x[1]))                           \
    C(sigmoid, "Sigmoid", "", (S(2, 3)), -2, 2, mr_sigmoid(g, x[0]))                                                   \
    C(sigmoid_grad, "SigmoidGrad", "", (S(2, 3), S(2, 3)), 0.1, 0.9, mr_sigmoid_grad(g, x[0], x[1]))                   \
    C(erf_, "Erf", "", (S(2, 3)), -2, 2, mr_erf(g, x[0]))                                                              \
    C(erfinv, "Erfinv", "", (S(2, 3)), -0.8, 0.8, mr_erfinv(g, x[0]))                                                  \
    C(cast, "Cast", "", (S(2, 3)), -2, 2, LIKE(mr_cast(g, x[0], MR_FLOAT)))                                            \
    C(cumsum, "Cumsum", "", (S(2, 3)), -2, 2, mr_cumsum(g, x[0], INT(1)))                                              \
    C(cumsum_reverse, "Cumsum", "exclusive, reverse", (S(3, 2)), -2, 2,                                                \
      mr_cumsum(g, x[0], INT(0), .exclusive = true, .reverse = true))                                                  \
    C(tan_, "Tan", "", (S(2, 3)), -1, 1, mr_tan(g, x[0]))                                                              \
    C(asin_, "Asin", "", (S(2, 3)), -0.8, 0.8, mr_asin(g, x[0]))                                                       \
    C(acos_, "Acos", "", (S(2, 3)), -0.8, 0.8, mr_acos(g, x[0]))                                                       \
    C(atan_, "Atan", "", (S(2, 3)), -2, 2, mr_atan(g, x[0]))                                                           \
    C(sinh_, "Sinh", "", (S(2, 3)), -2, 2, mr_sinh(g, x[0]))                                                           \
    C(cosh_, "Cosh", "", (S(2, 3)), -2, 2, mr_cosh(g, x[0]))                                                           \
    C(asinh_, "Asinh", "", (S(2, 3)), -2, 2, mr_asinh(g, x[0]))                                                        \
    C(acosh_, "Acosh", "", (S(2, 3)), 1.2, 3, mr_acosh(g, x[0]))                                                       \
    C(atanh_, "Atanh", "", (S(2, 3)), -0.8, 0.8, mr_atanh(g, x[0]))                                                    \
    C(erfc_, "Erfc", "", (S(2, 3)), -2, 2, mr_erfc(g, x[0]))                                                           \
    C(lgamma_, "Lgamma", "", (S(2, 3)), 0.5, 3, mr_lgamma(g, x[0]))                                                    \
    C(digamma, "Digamma", "", (S(2, 3)), 0.5, 3, mr_digamma(g, x[0]))                                                  \
    C(ndtri, "Ndtri", "", (S(2, 3)), 0.1, 0.9, mr_ndtri(g, x[0]))                                                      \
    C(dawsn, "Dawsn", "", (S(2, 3)), -2, 2, mr_dawsn(g, x[0]))                                                         \
    C(expint, "Expint", "", (S(2, 3)), 0.5, 2, mr_expint(g, x[0]))                                                     \
    C(fresnel_cos, "FresnelCos", "", (S(2, 3)), -2, 2, mr_fresnel_cos(g, x[0]))                                        \
    C(fresnel_sin, "FresnelSin", "", (S(2, 3)), -2, 2, mr_fresnel_sin(g, x[0]))                                        \
    C(spence, "Spence", "", (S(2, 3)), 0.2, 0.9, mr_spence(g, x[0]))                                                   \
    C(bessel_i0, "BesselI0", "", (S(2, 3)), 0.5, 3, mr_bessel_i0(g, x[0]))                                             \
    C(bessel_i0e, "BesselI0e", "", (S(2, 3)), 0.5, 3, mr_bessel_i0e(g, x[0]))                                          \
    C(bessel_i1, "BesselI1", "", (S(2, 3)), 0.5, 3, mr_bessel_i1(g, x[0]))                                             \
    C(bessel_i1e, "BesselI1e", "", (S(2, 3)), 0.5, 3, mr_bessel_i1e(g, x[0]))                                          \
    C(bessel_k0, "BesselK0", "", (S(2, 3)), 0.5, 3, mr_bessel_k0(g, x[0]))                                             \
    C(bessel_k0e, "BesselK0e", "", (S(2, 3)), 0.5, 3, mr_bessel_k0e(g, x[0]))                                          \
    C(bessel_k1, "BesselK1", "", (S(2, 3)), 0.5, 3, mr_bessel_k1(g, x[0]))                                             \
    C(bessel_k1e, "BesselK1e", "", (S(2, 3)), 0.5, 3, mr_bessel_k1e(g, x[0]))                                          \
    C(bessel_j0, "BesselJ0", "", (S(2, 3)), 0.5, 3, mr_bessel_j0(g, x[0]))                                             \
    C(bessel_j1, "BesselJ1", "", (S(2, 3)), 0.5, 3, mr_bessel_j1(g, x[0]))                                             \
    C(bessel_y0, "BesselY0", "", (S(2, 3)), 0.5, 3, mr_bessel_y0(g, x[0]))                                             \
    C(bessel_y1, "BesselY1", "", (S(2, 3)), 0.5, 3, mr_bessel_y1(g, x[0]))                                             \
    C(reciprocal_grad, "ReciprocalGrad", "", (S(2, 3), S(2, 3)), 0.5, 2, mr_reciprocal_grad(g, x[0], x[1]))            \
    C(inv_grad, "InvGrad", "", (S(2, 3), S(2, 3)), 0.5, 2, mr_inv_grad(g, x[0], x[1]))                                 \
    C(igamma, "Igamma", "", (S(2, 3), S(3)), 0.5, 2, mr_igamma(g, x[0], x[1]))                                         \
    C(igammac, "Igammac", "", (S(2, 3), S(3)), 0.5, 2, mr_igammac(g, x[0], x[1]))                                      \
    C(mul_no_nan, "MulNoNan", "", (S(2, 3), S(3)), 0.5, 2, mr_mul_no_nan(g, x[0], x[1]))                               \
    C(atan2_, "Atan2", "", (S(2, 3), S(3)), 0.5, 2, mr_atan2(g, x[0], x[1]))                                           \
    C(xlogy, "Xlogy", "", (S(2, 3), S(3)), 0.5, 2, mr_xlogy(g, x[0], x[1]))                                            \
    C(xlog1py, "Xlog1py", "", (S(2, 3), S(3)), 0.5, 2, mr_xlog1py(g, x[0], x[1]))                                      \
    C(xdivy, "Xdivy", "", (S(2, 3), S(3)), 0.5, 2, mr_xdivy(g, x[0], x[1]))                                            \
    C(zeta, "Zeta", "", (S(2, 3)), 0.5, 2, mr_zeta(g, NUMBER(3), x[0]))                                                \
    C(polygamma, "Polygamma", "", (S(2, 3)), 0.5, 2, mr_polygamma(g, NUMBER(1), x[0]))                                 \
    C(betainc, "Betainc", "", (S(2, 3)), 0.2, 0.8, mr_betainc(g, NUMBER(2), NUMBER(3), x[0]))                          \
    C(next_after, "NextAfter", "", (S(2, 3)), 0.5, 2, mr_next_after(g, x[0], NUMBER(9)))                               \
    C(cross, "Cross", "", (S(2, 3), S(2, 3)), -2, 2, mr_cross(g, x[0], x[1]))                                          \
    C(cumprod, "Cumprod", "", (S(2, 3)), 0.5, 2, mr_cumprod(g, x[0], INT(1)))                                          \
    C(cumprod_reverse, "Cumprod", "exclusive, reverse", (S(3, 2)), 0.5, 2,                                             \
      mr_cumprod(g, x[0], INT(0), .exclusive = true, .reverse = true))                                                 \
    C(cumulative_logsumexp, "CumulativeLogsumexp", "", (S(2, 3)), -2, 2, mr_cumulative_logsumexp(g, x[0], INT(1)))     \
    C(segment_mean, "SegmentMean", "", (S(3, 2)), 0.5, 2, mr_segment_mean(g, x[0], INTS(0, 0, 2)))                     \
    C(segment_prod, "SegmentProd", "", (S(3, 2)), 0.5, 2, mr_segment_prod(g, x[0], INTS(0, 0, 2)))                     \
    C(unsorted_segment_prod, "UnsortedSegmentProd", "", (S(4, 2)), 0.5, 2,                                             \
      mr_unsorted_segment_prod(g, x[0], INTS(1, -1, 0, 1), INT(2)))                                                    \
    C(segment_min, "SegmentMin", "", (S(3, 2)), 0.5, 2, mr_segment_min(g, x[0], INTS(0, 0, 2)))                        \
    C(unsorted_segment_min, "UnsortedSegmentMin", "", (S(4, 2)), 0.5, 2,                                               \
      mr_unsorted_segment_min(g, x[0], INTS(1, -1, 0, 1), INT(2)))                                                     \
    C(segment_max, "SegmentMax", "", (S(3, 2)), 0.5, 2, mr_segment_max(g, x[0], INTS(0, 0, 2)))                        \
    C(unsorted_segment_max, "UnsortedSegmentMax", "", (S(4, 2)), 0.5, 2,                                               \
      mr_unsorted_segment_max(g, x[0], INTS(1, -1, 0, 1), INT(2)))                                                     \
    C(sparse_segment_sum, "SparseSegmentSum", "", (S(3, 2)), -2, 2,                                                    \
      mr_sparse_segment_sum(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1)))                                                    \
    C(sparse_segment_sum_given, "SparseSegmentSumWithNumSegments", "", (S(3, 2)), -2, 2,                               \
      mr_sparse_segment_sum_with_num_segments(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1), INT(4)))                          \
    C(sparse_segment_mean, "SparseSegmentMean", "", (S(3, 2)), -2, 2,                                                  \
      mr_sparse_segment_mean(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1)))                                                   \
    C(sparse_segment_mean_given, "SparseSegmentMeanWithNumSegments", "", (S(3, 2)), -2, 2,                             \
      mr_sparse_segment_mean_with_num_segments(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1), INT(4)))                         \
    C(sparse_segment_sqrt_n, "SparseSegmentSqrtN", "", (S(3, 2)), -2, 2,                                               \
      mr_sparse_segment_sqrt_n(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1)))                                                 \
    C(sparse_segment_sqrt_n_given, "SparseSegmentSqrtNWithNumSegments", "", (S(3, 2)), -2, 2,                          \
      mr_sparse_segment_sqrt_n_with_num_segments(g, x[0], INTS(2, 0, 2), INTS(0, 0, 1), INT(4)))                       \
    C(complex_, "Complex", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                             \
      mr_add_v2(g, mr_real(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128), .Tout = MR_DOUBLE),                    \
                mr_square(g, mr_imag(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128), .Tout = MR_DOUBLE))))        \
    C(real_, "Real", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                                   \
      mr_real(g, mr_square(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128)), .Tout = MR_DOUBLE))                   \
    C(imag_, "Imag", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                                   \
      mr_imag(g, mr_exp(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128)), .Tout = MR_DOUBLE))                      \
    C(angle_, "Angle", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                                 \
      mr_angle(g,                                                                                                      \
               mr_mul(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128),                                             \
                      mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128)),                                               \
               .Tout = MR_DOUBLE))                                                                                     \
    C(conj_, "Conj", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                                   \
      mr_imag(g,                                                                                                       \
              mr_mul(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128),                                              \
                     mr_reciprocal(g, mr_conj(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128)))),                  \
              .Tout = MR_DOUBLE))                                                                                      \
    C(complex_abs, "ComplexAbs", "", (S(2, 3), S(2, 3)), 0.5, 2,                                                       \
      mr_complex_abs(g, mr_sqrt(g, mr_sin(g, mr_complex(g, x[0], x[1], .Tout = MR_COMPLEX128))), .Tout = MR_DOUBLE))   \
    C(matrix_inverse, "MatrixInverse", "", (S(2, 2, 2)), -2, 2, mr_matrix_inverse(g, DEFINITE))                        \
    C(matrix_inverse_adjoint, "MatrixInverse", "adjoint", (S(2, 2)), 1, 2,                                             \
      mr_matrix_inverse(g, UNEQUAL, .adjoint = true))                                                                  \
    C(matrix_determinant, "MatrixDeterminant", "", (S(2, 3, 3)), -2, 2, mr_matrix_determinant(g, x[0]))                \
    C(log_matrix_determinant, "LogMatrixDeterminant", "", (S(2, 3, 3)), -2, 2,                                         \
      mr_log_matrix_determinant(g, DEFINITE).log_abs_determinant)                                                      \
    C(cholesky, "Cholesky", "", (S(2, 3, 3)), -2, 2, mr_cholesky(g, DEFINITE))                                         \
    C(matrix_solve, "MatrixSolve", "", (S(2, 2, 2), S(2, 2, 3)), -2, 2, mr_matrix_solve(g, DEFINITE, x[1]))            \
    C(matrix_solve_adjoint, "MatrixSolve", "adjoint", (S(2, 2), S(2, 3)), 1, 2,                                        \
      mr_matrix_solve(g, UNEQUAL, x[1], .adjoint = true))                                                              \
    C(matrix_triangular_solve, "MatrixTriangularSolve", "broadcast", (S(2, 2), S(3, 2, 2)), 0.5, 2,                    \
      mr_matrix_triangular_solve(g, x[0], x[1]))                                                                       \
    C(matrix_triangular_solve_upper, "MatrixTriangularSolve", "upper", (S(2, 2, 2), S(2, 2, 2)), 0.5, 2,               \
      mr_matrix_triangular_solve(g, x[0], x[1], .lower = false, .adjoint = true))                                      \
    C(self_adjoint_eig, "SelfAdjointEigV2", "values", (S(2, 3, 3)), -2, 2,                                             \
      mr_self_adjoint_eig_v2(g, x[0], .compute_v = false).e)                                                           \
    C(self_adjoint_eig_vectors, "SelfAdjointEigV2", "vectors", (S(3, 3)), -2, 2,                                       \
      mr_square(g, mr_self_adjoint_eig_v2(g, x[0]).v))                                                                 \
    C(fft, "FFT", "", (S(2, 3), S(2, 3)), 0.5, 2, PARTS(mr_fft(g, Z)))                                                 \
    C(fft2d, "FFT2D", "", (S(2, 3), S(2, 3)), 0.5, 2, PARTS(mr_fft2d(g, Z)))                                           \
    C(fft3d, "FFT3D", "", (S(2, 2, 3), S(2, 2, 3)), 0.5, 2, PARTS(mr_fft3d(g, Z)))                                     \
    C(ifft, "IFFT", "", (S(2, 3), S(2, 3)), 0.5, 2, PARTS(mr_ifft(g, Z)))                                              \
    C(ifft2d, "IFFT2D", "", (S(2, 3), S(2, 3)), 0.5, 2, PARTS(mr_ifft2d(g, Z)))                                        \
    C(ifft3d, "IFFT3D", "", (S(2, 2, 3), S(2, 2, 3)), 0.5, 2, PARTS(mr_ifft3d(g, Z)))                                  \
    C(rfft_even, "RFFT", "even", (S(2, 4)), -2, 2, PARTS(mr_rfft(g, x[0], INTS(4), .Tcomplex = MR_COMPLEX128)))        \
    C(rfft_cropped, "RFFT", "cropped", (S(2, 4)), -2, 2, PARTS(mr_rfft(g, x[0], INTS(3), .Tcomplex = MR_COMPLEX128)))  \
    C(rfft2d, "RFFT2D", "", (S(2, 3, 4)), -2, 2, PARTS(mr_rfft2d(g, x[0], INTS(3, 4), .Tcomplex = MR_COMPLEX128)))     \
    C(irfft, "IRFFT", "even", (S(2, 4), S(2, 4)), 0.5, 2, mr_irfft(g, Z, INTS(6), .Treal = MR_DOUBLE))                 \
    C(irfft_odd, "IRFFT", "odd", (S(2, 4), S(2, 4)), 0.5, 2, mr_irfft(g, Z, INTS(5), .Treal = MR_DOUBLE))              \
    C(irfft2d, "IRFFT2D", "", (S(2, 3, 3), S(2, 3, 3)), 0.5, 2, mr_irfft2d(g, Z, INTS(3, 4), .Treal = MR_DOUBLE))      \
    C(scale_and_translate, "ScaleAndTranslate", "", (S(1, 3, 4, 2)), -2, 2,                                            \
      LIKE(mr_scale_and_translate(g, mr_cast(g, x[0], MR_FLOAT), INTS(5, 3), PAIR, PAIR)))                             \
    C(projective_transform, "ImageProjectiveTransformV2", "", (S(1, 3, 4, 2)), -2, 2,                                  \
      mr_image_projective_transform_v2(g, x[0], SHIFT, INTS(3, 4), .interpolation = "NEAREST"))                        \
    C(projective_transform_v1, "ImageProjectiveTransform", "", (S(1, 3, 4, 2)), -2, 2,                                 \
      mr_image_projective_transform(g, x[0], SHIFT, .interpolation = "NEAREST"))                                       \
    C(projective_transform_v3, "ImageProjectiveTransformV3", "", (S(1, 3, 4, 2)), -2, 2,                               \
      mr_image_projective_transform_v3(g, x[0], SHIFT, INTS(3, 4), mr_constant_float(g, 2),                            \
                                       .interpolation = "NEAREST"))                                                    \
    C(resampler, "Resampler", "", (S(1, 3, 4, 2), S(1, 4, 2)), -2, 2, mr_resampler(g, x[0], x[1]))                     \
    C(add, "Add", "", (S(2, 3), S(2, 3)), -2, 2, mr_add(g, x[0], x[1]))                                                \
    C(add_v2, "AddV2", "row", (S(2, 3), S(3)), -2, 2, mr_add_v2(g, x[0], x[1]))                                        \
    C(add_column, "AddV2", "column and row", (S(2, 1), S(1, 3)), -2, 2, mr_add_v2(g, x[0], x[1]))                      \
    C(sub, "Sub", "scalar", (MR_SCALAR, S(2, 3)), -2, 2, mr_sub(g, x[0], x[1]))                                        \
    C(mul, "Mul", "column", (S(2, 3), S(2, 1)), -2, 2, mr_mul(g, x[0], x[1]))                                          \
    C(mul_same, "Mul", "", (S(2, 3), S(2, 3)), -2, 2, mr_mul(g, x[0], x[1]))                                           \
    C(div_, "Div", "", (S(2, 3), S(3)), 0.5, 2, mr_div(g, x[0], x[1]))                                                 \
    C(real_div, "RealDiv", "", (S(3), S(2, 3)), 0.5, 2, mr_real_div(g, x[0], x[1]))                                    \
    C(div_no_nan, "DivNoNan", "", (S(2, 3), S(2, 3)), 0.5, 2, mr_div_no_nan(g, x[0], x[1]))                            \
    C(floor_mod, "FloorMod", "", (S(2, 3)), 2.1, 2.9, mr_floor_mod(g, x[0], NUMBER(2.0f)))                             \
    C(squared_difference, "SquaredDifference", "", (S(2, 3), S(3)), -2, 2, mr_squared_difference(g, x[0], x[1]))       \
    C(pow_, "Pow", "", (S(2, 3), S(3)), 0.5, 2, mr_pow(g, x[0], x[1]))                                                 \
    C(maximum, "Maximum", "", (S(2, 3), S(3)), -2, 2, mr_maximum(g, x[0], x[1]))                                       \
    C(minimum, "Minimum", "", (S(2, 1), S(3)), -2, 2, mr_minimum(g, x[0], x[1]))                                       \
    C(add_n, "AddN", "", (S(2, 3), S(2, 3), S(2, 3)), -2, 2, mr_add_n(g, MR_OUTPUTS(x[0], x[1], x[2], x[0])))          \
    C(accumulate_n, "AccumulateNV2", "", (S(2, 3), S(2, 3)), -2, 2,                                                    \
      mr_accumulate_nv2(g, MR_OUTPUTS(x[0], x[1], x[0]), .shape = MR_SHAPE(2, 3)))                                     \
    C(select, "Select", "", (S(3), S(3)), -2, 2, mr_select(g, BOOLS3, x[0], x[1]))                                     \
    C(select_v2, "SelectV2", "", (S(2, 3), S(3)), -2, 2, mr_select_v2(g, BOOLS3, x[0], x[1]))                          \
    C(clip_by_value, "ClipByValue", "", (S(2, 3)), -2, 2, mr_clip_by_value(g, x[0], NUMBER(-1.03f), NUMBER(0.97f)))    \
    C(sum, "Sum", "", (S(2, 3, 2)), -2, 2, mr_sum(g, x[0], INTS(0, -1)))                                               \
    C(sum_keep, "Sum", "keep_dims", (S(2, 3)), -2, 2, mr_sum(g, x[0], INTS(1), .keep_dims = true))                     \
    C(sum_computed, "Sum", "axes not constant", (S(2, 3)), -2, 2,                                                      \
      mr_sum(g, x[0], mr_cast(g, mr_max(g, mr_ones_like(g, x[0]), INTS(0, 1)), MR_INT32)))                             \
    C(mean, "Mean", "", (S(2, 3)), -2, 2, mr_mean(g, x[0], INTS(0)))                                                   \
    C(prod, "Prod", "", (S(2, 3)), 0.5, 2, mr_prod(g, x[0], INTS(1)))                                                  \
    C(max, "Max", "", (S(2, 3)), -2, 2, mr_max(g, x[0], INTS(1)))                                                      \
    C(min, "Min", "", (S(2, 3)), -2, 2, mr_min(g, x[0], INTS(0)))                                                      \
    C(norm, "EuclideanNorm", "", (S(2, 3)), -2, 2, mr_euclidean_norm(g, x[0], INTS(1)))                                \
    C(mat_mul, "MatMul", "", (S(2, 3), S(3, 2)), -2, 2, mr_mat_mul(g, x[0], x[1]))                                     \
    C(mat_mul_ta, "MatMul", "transpose_a", (S(3, 2), S(3, 4)), -2, 2, mr_mat_mul(g, x[0], x[1], .transpose_a = true))  \
    C(mat_mul_tb, "MatMul", "transpose_b", (S(2, 3), S(4, 3)), -2, 2, mr_mat_mul(g, x[0], x[1], .transpose_b = true))  \
    C(mat_mul_tt, "MatMul", "both", (S(3, 2), S(4, 3)), -2, 2,                                                         \
      mr_mat_mul(g, x[0], x[1], .transpose_a = true, .transpose_b = true))                                             \
    C(batch_mat_mul, "BatchMatMul", "", (S(2, 2, 3), S(2, 3, 2)), -2, 2, mr_batch_mat_mul(g, x[0], x[1]))              \
    C(batch_mat_mul_v2, "BatchMatMulV2", "broadcast", (S(2, 2, 3), S(1, 2, 3)), -2, 2,                                 \
      mr_batch_mat_mul_v2(g, x[0], x[1], .adj_y = true))                                                               \
    C(identity, "Identity", "", (S(2, 3)), -2, 2, mr_identity(g, x[0]))                                                \
    C(identity_n, "IdentityN", "", (S(2, 3), S(2)), -2, 2, mr_output_at(mr_identity_n(g, MR_OUTPUTS(x[0], x[1])), 1))  \
    C(snapshot, "Snapshot", "", (S(2, 3)), -2, 2, mr_snapshot(g, x[0]))                                                \
    C(check_numerics, "CheckNumerics", "", (S(2, 3)), -2, 2, mr_check_numerics(g, x[0], .message = "m"))               \
    C(placeholder_with_default, "PlaceholderWithDefault", "", (S(2, 3)), -2, 2,                                        \
      mr_placeholder_with_default(g, x[0], .shape = S(2, 3)))                                                          \
    C(reshape, "Reshape", "", (S(2, 3)), -2, 2, mr_reshape(g, x[0], INTS(3, -1)))                                      \
    C(expand_dims, "ExpandDims", "", (S(2, 3)), -2, 2, mr_expand_dims(g, x[0], INT(1)))                                \
    C(squeeze, "Squeeze", "", (S(2, 1, 3)), -2, 2, mr_squeeze(g, x[0], .squeeze_dims = MR_INTS(1)))                    \
    C(fill, "Fill", "", (MR_SCALAR), -2, 2, mr_fill(g, INTS(2, 3), x[0]))                                              \
    C(transpose, "Transpose", "", (S(2, 3, 2)), -2, 2, mr_transpose(g, x[0], INTS(2, 0, 1)))                           \
    C(conjugate_transpose, "ConjugateTranspose", "", (S(2, 3, 2)), -2, 2,                                              \
      mr_conjugate_transpose(g, x[0], INTS(2, 0, 1)))                                                                  \
    C(tile, "Tile", "", (S(2, 3)), -2, 2, mr_tile(g, x[0], INTS(2, 3)))                                                \
    C(reverse, "ReverseV2", "", (S(2, 3)), -2, 2, mr_reverse_v2(g, x[0], INTS(1)))                                     \
    C(broadcast_to, "BroadcastTo", "", (S(2, 1)), -2, 2, mr_broadcast_to(g, x[0], INTS(3, 2, 2)))                      \
    C(concat_v2, "ConcatV2", "", (S(2, 3), S(2, 1)), -2, 2, mr_concat_v2(g, MR_OUTPUTS(x[0], x[1], x[0]), INT(-1)))    \
    C(concat, "Concat", "", (S(2, 3), S(1, 3)), -2, 2, mr_concat(g, INT(0), MR_OUTPUTS(x[0], x[1])))                   \
    C(pack, "Pack", "", (S(2, 3), S(2, 3)), -2, 2, mr_pack(g, MR_OUTPUTS(x[0], x[1]), .axis = 1))                      \
    C(unpack, "Unpack", "", (S(2, 3)), -2, 2, mr_output_at(mr_unpack(g, x[0], .num = 3, .axis = 1), 1))                \
    C(split, "Split", "", (S(2, 4)), -2, 2, mr_output_at(mr_split(g, INT(1), x[0], .num_split = 2), 1))                \
    C(split_v, "SplitV", "", (S(2, 4)), -2, 2,                                                                         \
      mr_output_at(mr_split_v(g, x[0], INTS(1, 3), INT(1), .num_split = 2), 0))                                        \
    C(slice, "Slice", "", (S(3, 4)), -2, 2, mr_slice(g, x[0], INTS(1, 0), INTS(2, 3)))                                 \
    C(strided_slice, "StridedSlice", "", (S(3, 4)), -2, 2,                                                             \
      mr_strided_slice(g, x[0], INTS(2, 0), INTS(0, 4), INTS(-1, 2)))                                                  \
    C(strided_slice_shrink, "StridedSlice", "shrink_axis_mask", (S(3, 4)), -2, 2,                                      \
      mr_strided_slice(g, x[0], INTS(1, 0), INTS(2, 4), INTS(1, 1), .shrink_axis_mask = 1))                            \
    C(strided_slice_grad, "StridedSliceGrad", "", (S(2)), -2, 2,                                                       \
      mr_strided_slice_grad(g, INTS(5), INTS(1), INTS(5), INTS(2), x[0]))                                              \
    C(pad, "Pad", "", (S(2, 3)), -2, 2, mr_pad(g, x[0], PADDINGS))                                                     \
    C(pad_v2, "PadV2", "", (S(2, 3)), -2, 2, mr_pad_v2(g, x[0], PADDINGS, NUMBER(7.0f)))                               \
    C(gather, "Gather", "", (S(3, 2)), -2, 2, mr_gather(g, x[0], INTS(2, 0, 2)))                                       \
    C(gather_v2, "GatherV2", "axis 0", (S(3, 2)), -2, 2, mr_gather_v2(g, x[0], MATRIX3x2, INT(0)))                     \
    C(gather_v2_inner, "GatherV2", "axis 1", (S(2, 3, 2)), -2, 2, mr_gather_v2(g, x[0], INTS(2, 0, 2, 1), INT(1)))     \
    C(gather_nd, "GatherNd", "", (S(2, 3)), -2, 2, mr_gather_nd(g, x[0], MATRIX3x2))                                   \
    C(sparse_to_dense, "SparseToDense", "", (S(3), MR_SCALAR), -2, 2,                                                  \
      mr_sparse_to_dense(g, ROWS3x2, INTS(2, 3), x[0], x[1]))                                                          \
    C(sparse_matmul, "SparseTensorDenseMatMul", "", (S(3), S(3, 2)), -2, 2,                                            \
      mr_sparse_tensor_dense_mat_mul(g, ROWS3x2, x[0], LONG(INTS(2, 3)), x[1]))                                        \
    C(sparse_matmul_adjoint, "SparseTensorDenseMatMul", "adjoint", (S(3), S(4, 2)), -2, 2,                             \
      mr_sparse_tensor_dense_mat_mul(g, ROWS3x2, x[0], LONG(INTS(2, 3)), x[1], .adjoint_a = true, .adjoint_b = true))  \
    C(sparse_reorder, "SparseReorder", "", (S(3)), -2, 2,                                                              \
      mr_sparse_reorder(g, LONG(UNSORTED3x2), x[0], LONG(INTS(2, 3))).output_values)                                   \
    C(sparse_add, "SparseAdd", "", (S(3), S(3)), -2, 2,                                                                \
      mr_sparse_add(g, LONG(ROWS3x2), x[0], LONG(INTS(2, 3)), LONG(ROWS3x2), x[1], LONG(INTS(2, 3)), NUMBER(0))        \
          .sum_values)                                                                                                 \
    C(sparse_fill_empty_rows, "SparseFillEmptyRows", "", (S(3), MR_SCALAR), -2, 2,                                     \
      mr_sparse_fill_empty_rows(g, LONG(ROWS3x2), x[0], LONG(INTS(4, 3)), x[1]).output_values)                         \
    C(sparse_slice, "SparseSlice", "", (S(3)), -2, 2,                                                                  \
      mr_sparse_slice(g, LONG(ROWS3x2), x[0], LONG(INTS(2, 3)), LONG(INTS(1, 0)), LONG(INTS(1, 2))).output_values)     \
    C(sparse_dense_add, "SparseTensorDenseAdd", "", (S(3), S(2, 3)), -2, 2,                                            \
      mr_sparse_tensor_dense_add(g, ROWS3x2, x[0], INTS(2, 3), x[1]))                                                  \
    C(scatter_nd, "ScatterNd", "", (S(3)), -2, 2, mr_scatter_nd(g, MATRIX3x2, x[0], INTS(2, 3)))                       \
    C(segment_sum, "SegmentSum", "", (S(3, 2)), -2, 2, mr_segment_sum(g, x[0], INTS(0, 0, 1)))                         \
    C(unsorted_segment_sum, "UnsortedSegmentSum", "", (S(3, 2)), -2, 2,                                                \
      mr_unsorted_segment_sum(g, x[0], INTS(1, -1, 0), INT(2)))                                                        \
    C(top_k, "TopKV2", "", (S(2, 4)), -2, 2, mr_top_kv2(g, x[0], INT(2)).values)                                       \
    C(relu, "Relu", "", (S(2, 3)), -2, 2, mr_relu(g, x[0]))                                                            \
    C(relu_grad, "ReluGrad", "", (S(2, 3)), -2, 2, mr_relu_grad(g, x[0], mr_stop_gradient(g, mr_sin(g, x[0]))))        \
    C(relu6, "Relu6", "", (S(2, 3)), -2, 8, mr_relu6(g, x[0]))                                                         \
    C(relu6_grad, "Relu6Grad", "", (S(2, 3), S(2, 3)), -2, 8, mr_relu6_grad(g, x[0], x[1]))                            \
    C(leaky_relu, "LeakyRelu", "", (S(2, 3)), -2, 2, mr_leaky_relu(g, x[0], .alpha = 0.3f))                            \
    C(leaky_relu_grad, "LeakyReluGrad", "", (S(2, 3), S(2, 3)), -2, 2,                                                 \
      mr_leaky_relu_grad(g, x[0], x[1], .alpha = 0.3f))                                                                \
    C(elu, "Elu", "", (S(2, 3)), -2, 2, mr_elu(g, x[0]))                                                               \
    C(elu_grad, "EluGrad", "", (S(2, 3), S(2, 3)), -0.9, 2, mr_elu_grad(g, x[0], x[1]))                                \
    C(selu, "Selu", "", (S(2, 3)), -2, 2, mr_selu(g, x[0]))                                                            \
    C(selu_grad, "SeluGrad", "", (S(2, 3), S(2, 3)), -0.9, 2, mr_selu_grad(g, x[0], x[1]))                             \
    C(softplus, "Softplus", "", (S(2, 3)), -2, 2, mr_softplus(g, x[0]))                                                \
    C(softplus_grad, "SoftplusGrad", "", (S(2, 3), S(2, 3)), -2, 2, mr_softplus_grad(g, x[0], x[1]))                   \
    C(softsign, "Softsign", "", (S(2, 3)), -2, 2, mr_softsign(g, x[0]))                                                \
    C(softsign_grad, "SoftsignGrad", "", (S(2, 3), S(2, 3)), -2, 2, mr_softsign_grad(g, x[0], x[1]))                   \
    C(softmax, "Softmax", "", (S(2, 3)), -2, 2, mr_softmax(g, x[0]))                                                   \
    C(log_softmax, "LogSoftmax", "", (S(2, 3)), -2, 2, mr_log_softmax(g, x[0]))                                        \
    C(cross_entropy, "SoftmaxCrossEntropyWithLogits", "", (S(2, 3), S(2, 3)), 0.1, 1,                                  \
      mr_softmax_cross_entropy_with_logits(g, x[0], mr_div(g, x[1], mr_sum(g, x[1], INTS(1), .keep_dims = true)))      \
          .loss)                                                                                                       \
    C(sparse_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits", "", (S(2, 3)), -2, 2,                               \
      mr_sparse_softmax_cross_entropy_with_logits(g, x[0], INTS(2, 0)).loss)                                           \
    C(ctc_loss, "CTCLoss", "", (S(4, 2, 3)), -2, 2,                                                                    \
      mr_ctc_loss_op(g, x[0], LONG(mr_reshape(g, INTS(0, 0, 0, 1, 1, 0), INTS(3, 2))), INTS(0, 1, 1), INTS(4, 2))      \
          .loss)                                                                                                       \
    C(l2_loss, "L2Loss", "", (S(2, 3)), -2, 2, mr_l2_loss(g, x[0]))                                                    \
    C(conv2d, "Conv2D", "", (S(2, 4, 3, 2), S(3, 2, 2, 3)), -1, 1, mr_conv2d(g, x[0], x[1], CONV))                     \
    C(conv2d_valid, "Conv2D", "VALID, dilated", (S(1, 5, 4, 1), S(2, 2, 1, 2)), -1, 1,                                 \
      mr_conv2d(g, x[0], x[1], .strides = MR_INTS(1, 1, 1, 1), .padding = MR_VALID, .dilations = MR_INTS(1, 2, 1, 1))) \
    C(conv2d_input, "Conv2DBackpropInput", "", (S(3, 2, 2, 3), S(2, 2, 3, 3)), -1, 1,                                  \
      mr_conv2d_backprop_input(g, INTS(2, 4, 3, 2), x[0], x[1], CONV))                                                 \
    C(conv2d_filter, "Conv2DBackpropFilter", "", (S(2, 4, 3, 2), S(2, 2, 3, 3)), -1, 1,                                \
      mr_conv2d_backprop_filter(g, x[0], INTS(3, 2, 2, 3), x[1], CONV))                                                \
    C(depthwise, "DepthwiseConv2dNative", "", (S(1, 4, 4, 2), S(2, 2, 2, 2)), -1, 1,                                   \
      mr_depthwise_conv2d_native(g, x[0], x[1], .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME))                   \
    C(conv3d, "Conv3D", "", (S(1, 3, 3, 2, 2), S(2, 2, 1, 2, 2)), -1, 1,                                               \
      mr_conv3d(g, x[0], x[1], .strides = MR_INTS(1, 1, 2, 1, 1), .padding = MR_SAME))                                 \
    C(conv3d_input, "Conv3DBackpropInputV2", "", (S(2, 2, 1, 2, 2), S(1, 2, 2, 2, 2)), -1, 1,                          \
      mr_conv3d_backprop_input_v2(g, INTS(1, 3, 3, 2, 2), x[0], x[1], .strides = MR_INTS(1, 1, 1, 1, 1),               \
                                  .padding = MR_VALID))                                                                \
    C(bias_add, "BiasAdd", "", (S(2, 2, 3), S(3)), -2, 2, mr_bias_add(g, x[0], x[1]))                                  \
    C(bias_add_grad, "BiasAddGrad", "", (S(2, 2, 3)), -2, 2, mr_bias_add_grad(g, x[0]))                                \
    C(max_pool, "MaxPool", "", (S(2, 4, 3, 2)), -2, 2, mr_max_pool(g, x[0], POOL))                                     \
    C(avg_pool, "AvgPool", "", (S(2, 4, 3, 2)), -2, 2, mr_avg_pool(g, x[0], POOL))                                     \
    C(avg_pool_grad, "AvgPoolGrad", "", (S(2, 2, 3, 2)), -2, 2, mr_avg_pool_grad(g, INTS(2, 4, 3, 2), x[0], POOL))     \
    C(max_pool3d, "MaxPool3D", "", (S(1, 3, 2, 2, 2)), -2, 2, mr_max_pool3d(g, x[0], POOL3D))                          \
    C(avg_pool3d, "AvgPool3D", "", (S(1, 3, 2, 2, 2)), -2, 2, mr_avg_pool3d(g, x[0], POOL3D))                          \
    C(lrn, "LRN", "", (S(1, 2, 2, 4)), -2, 2, mr_lrn(g, x[0], .depth_radius = 1, .bias = 2.0f, .alpha = 0.5f))         \
    C(resize_bilinear, "ResizeBilinear", "", (S(1, 3, 4, 2)), -2, 2, LIKE(mr_resize_bilinear(g, x[0], INTS(5, 3))))    \
    C(space_to_batch_nd, "SpaceToBatchND", "", (S(1, 3, 2)), -2, 2, mr_space_to_batch_nd(g, x[0], INTS(2), EDGE))      \
    C(batch_to_space_nd, "BatchToSpaceND", "", (S(2, 2, 2)), -2, 2, mr_batch_to_space_nd(g, x[0], INTS(2), EDGE))      \
    C(space_to_batch, "SpaceToBatch", "", (S(1, 3, 3, 1)), -2, 2, mr_space_to_batch(g, x[0], EDGES, .block_size = 2))  \
    C(batch_to_space, "BatchToSpace", "", (S(4, 2, 2, 1)), -2, 2, mr_batch_to_space(g, x[0], EDGES, .block_size = 2))  \
    C(space_to_depth, "SpaceToDepth", "", (S(1, 2, 4, 2)), -2, 2, mr_space_to_depth(g, x[0], .block_size = 2))         \
    C(depth_to_space, "DepthToSpace", "", (S(1, 1, 2, 8)), -2, 2, mr_depth_to_space(g, x[0], .block_size = 2))         \
    C(diag, "Diag", "", (S(3)), -2, 2, mr_diag(g, x[0]))                                                               \
    C(diag_part, "DiagPart", "", (S(3, 3)), -2, 2, mr_diag_part(g, x[0]))                                              \
    C(matrix_diag, "MatrixDiag", "", (S(2, 3)), -2, 2, mr_matrix_diag(g, x[0]))                                        \
    C(matrix_diag_v2, "MatrixDiagV2", "", (S(2, 3)), -2, 2,                                                            \
      mr_matrix_diag_v2(g, x[0], INTS(0, 1), INT(-1), INT(-1), NUMBER(1.0f)))                                          \
    C(matrix_diag_v3, "MatrixDiagV3", "", (S(2, 3)), -2, 2,                                                            \
      mr_matrix_diag_v3(g, x[0], INTS(-1, 0), INT(-1), INT(-1), NUMBER(1.0f)))                                         \
    C(matrix_diag_part, "MatrixDiagPart", "", (S(2, 2, 3)), -2, 2, mr_matrix_diag_part(g, x[0]))                       \
    C(matrix_diag_part_v2, "MatrixDiagPartV2", "", (S(2, 3)), -2, 2,                                                   \
      mr_matrix_diag_part_v2(g, x[0], INTS(-1, 1), NUMBER(1.0f)))                                                      \
    C(matrix_diag_part_v3, "MatrixDiagPartV3", "", (S(2, 3)), -2, 2,                                                   \
      mr_matrix_diag_part_v3(g, x[0], INTS(-1, 1), NUMBER(1.0f)))                                                      \
    C(matrix_set_diag, "MatrixSetDiag", "", (S(2, 3), S(2)), -2, 2, mr_matrix_set_diag(g, x[0], x[1]))                 \
    C(matrix_set_diag_v2, "MatrixSetDiagV2", "", (S(2, 3), S(2, 2)), -2, 2,                                            \
      mr_matrix_set_diag_v2(g, x[0], x[1], INTS(0, 1)))                                                                \
    C(matrix_set_diag_v3, "MatrixSetDiagV3", "", (S(2, 3), S(2, 2)), -2, 2,                                            \
      mr_matrix_set_diag_v3(g, x[0], x[1], INTS(0, 1)))                                                                \
    C(matrix_band_part, "MatrixBandPart", "", (S(3, 3)), -2, 2, mr_matrix_band_part(g, x[0], INT(1), INT(0)))          \
    C(dynamic_partition, "DynamicPartition", "", (S(3, 2)), -2, 2,                                                     \
      mr_output_at(mr_dynamic_partition(g, x[0], INTS(1, 0, 1), .num_partitions = 2), 1))                              \
    C(dynamic_stitch, "DynamicStitch", "", (S(2, 2), S(1, 2)), -2, 2,                                                  \
      mr_dynamic_stitch(g, MR_OUTPUTS(INTS(2, 0), INTS(1)), MR_OUTPUTS(x[0], x[1])))                                   \
    C(parallel_dynamic_stitch, "ParallelDynamicStitch", "", (S(2, 2), S(1, 2)), -2, 2,                                 \
      mr_parallel_dynamic_stitch(g, MR_OUTPUTS(INTS(2, 0), INTS(1)), MR_OUTPUTS(x[0], x[1])))                          \
    C(reverse_sequence, "ReverseSequence", "", (S(2, 3)), -2, 2,                                                       \
      mr_reverse_sequence(g, x[0], INTS(2, 3), .seq_dim = 1))                                                          \
    C(roll, "Roll", "", (S(2, 3)), -2, 2, mr_roll(g, x[0], INTS(1, 2), INTS(0, 1)))                                    \
    C(mirror_pad, "MirrorPad", "", (S(3, 3)), -2, 2, mr_mirror_pad(g, x[0], EDGES, .mode = MR_SYMMETRIC))              \
    C(mirror_pad_grad, "MirrorPadGrad", "", (S(4, 4)), -2, 2, mr_mirror_pad_grad(g, x[0], EDGES, .mode = MR_REFLECT))  \
    C(nth_element, "NthElement", "", (S(2, 5)), -2, 2, mr_nth_element(g, x[0], INT(2)))                                \
    C(array_rows, "TensorArrayScatterV3", "", (S(3, 2)), -2, 2, array_of_rows(g, x[0], false))                         \
    C(array_gather, "TensorArrayGatherV3", "", (S(3, 2)), -2, 2, array_of_rows(g, x[0], true))                         \
    C(array_read, "TensorArrayReadV3", "", (S(2)), -2, 2, array_of_one(g, x[0], false))                                \
    C(array_write, "TensorArrayWriteV3", "", (S(2)), -2, 2, array_of_one(g, x[0], true))                               \
    C(array_split, "TensorArraySplitV3", "", (S(3, 2)), -2, 2, array_of_pieces(g, x[0], false))                        \
    C(array_concat, "TensorArrayConcatV3", "", (S(3, 2)), -2, 2, array_of_pieces(g, x[0], true))                       \
    C(tensor_scatter_update, "TensorScatterUpdate", "", (S(4), S(2)), -2, 2,                                           \
      mr_tensor_scatter_update(g, x[0], ROWS, x[1]))                                                                   \
    C(tensor_scatter_add, "TensorScatterAdd", "", (S(4), S(2)), -2, 2, mr_tensor_scatter_add(g, x[0], ROWS, x[1]))     \
    C(tensor_scatter_sub, "TensorScatterSub", "", (S(4), S(2)), -2, 2, mr_tensor_scatter_sub(g, x[0], ROWS, x[1]))     \
    C(tensor_scatter_max, "TensorScatterMax", "", (S(4), S(2)), -2, 2, mr_tensor_scatter_max(g, x[0], ROWS, x[1]))     \
    C(tensor_scatter_min, "TensorScatterMin", "", (S(4), S(2)), -2, 2, mr_tensor_scatter_min(g, x[0], ROWS, x[1]))     \
    C(scatter_nd_add, "ScatterNdNonAliasingAdd", "", (S(4), S(2)), -2, 2,                                              \
      mr_scatter_nd_non_aliasing_add(g, x[0], ROWS, x[1]))                                                             \
    C(check_numerics_v2, "CheckNumericsV2", "", (S(2, 3)), -2, 2, mr_check_numerics_v2(g, x[0], .message = "m"))       \
    C(ensure_shape, "EnsureShape", "", (S(2, 3)), -2, 2, mr_ensure_shape(g, x[0], .shape = MR_SHAPE(2, 3)))            \
    C(debug_identity, "DebugGradientIdentity", "", (S(2, 3)), -2, 2, mr_debug_gradient_identity(g, x[0]))              \
    C(resize_bicubic, "ResizeBicubic", "", (S(1, 3, 4, 2)), -2, 2, LIKE(mr_resize_bicubic(g, x[0], INTS(5, 3))))       \
    C(crop_and_resize, "CropAndResize", "", (S(2, 5, 4, 2)), -2, 2,                                                    \
      LIKE(mr_crop_and_resize(g, x[0], BOXES, INTS(1, 0), INTS(3, 6))))                                                \
    C(resize_nearest, "ResizeNearestNeighbor", "", (S(1, 3, 4, 2)), -2, 2,                                             \
      mr_resize_nearest_neighbor(g, x[0], INTS(5, 3)))                                                                 \
    C(batch_norm, "FusedBatchNormV3", "training", (S(3, 2, 2, 2), S(2), S(2)), -1, 1,                                  \
      mr_fused_batch_norm_v3(g, x[0], x[1], x[2], mr_zeros_like(g, x[1]), mr_ones_like(g, x[1]), .epsilon = 0.01f).y)  \
    C(batch_norm_fixed, "FusedBatchNormV3", "not training", (S(3, 2, 2, 2), S(2), S(2)), -1, 1,                        \
      mr_fused_batch_norm_v3(g, x[0], x[1], x[2], mr_zeros_like(g, x[1]), mr_ones_like(g, x[1]), .epsilon = 0.01f,     \
                             .is_training = false)                                                                     \
          .y)                                                                                                          \
    C(batch_norm_v2, "FusedBatchNormV2", "", (S(3, 2, 2, 2), S(2), S(2)), -1, 1,                                       \
      mr_fused_batch_norm_v2(g, x[0], x[1], x[2], mr_zeros_like(g, x[1]), mr_ones_like(g, x[1]), .epsilon = 0.01f).y)  \
    C(batch_norm_v1, "FusedBatchNorm", "", (S(3, 2, 2, 2), S(2), S(2)), -1, 1,                                         \
      mr_fused_batch_norm(g, x[0], x[1], x[2], mr_zeros_like(g, x[1]), mr_ones_like(g, x[1]), .epsilon = 0.01f).y)

#define UNWRAP(...) __VA_ARGS__
#define FUNCTION(id, op, note, shapes, low, high, expression)                                                          \
    static mr_output build_##id(mr_graph *g, const mr_output *x)                                                       \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define ROW(id, op, note, shapes, low, high, expression)                                                               \
    {op, note, (int)(sizeof((mr_shape[]){UNWRAP shapes}) / sizeof(mr_shape)), {UNWRAP shapes}, low, high, build_##id},
CASES(FUNCTION)
static const gradient_case cases[] = {CASES(ROW)};

typedef struct checked {
    mr_graph *graph;
    mr_session *session;
    mr_dtype dtype;
    mr_error why;
    int count;
    mr_output inputs[INPUTS_MAX], loss, gradients[INPUTS_MAX];
    mr_tensor values[INPUTS_MAX];
} checked;

static double get(const mr_tensor *tensor, int64_t index)
{
    return tensor->dtype == MR_DOUBLE ? mr_tensor_doubles(tensor)[index] : (double)mr_tensor_floats(tensor)[index];
}

static void set(const mr_tensor *tensor, int64_t index, double value)
{
    if (tensor->dtype == MR_DOUBLE)
        mr_tensor_doubles(tensor)[index] = value;
    else
        mr_tensor_floats(tensor)[index] = (float)value;
}

/* Builds the graph of a case. False if the session reports that a node has no kernel for the dtype. */
static bool build(checked *c, const gradient_case *row, mr_dtype dtype, bool known_shapes)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, (uint64_t)(row - cases), 1);
    *c = (checked){.graph = mr_graph_new(), .dtype = dtype, .count = row->input_count};
    mr_graph *g = c->graph;
    for (int i = 0; i < c->count; i++) {
        mr_shape shape = row->shapes[i];
        CHECK_OK(mr_tensor_init(&c->values[i], dtype, shape, &error));
        for (int64_t j = 0; j < mr_tensor_count(&c->values[i]); j++) {
            double value = mr_random_range(&random, row->low, row->high);
            set(&c->values[i], j, fabs(value) < 0.05 ? value + 0.1 : value); /* avoid the kink at 0 */
        }
        for (int32_t j = 0; !known_shapes && j < shape.rank; j++) shape.dims[j] = -1;
        c->inputs[i] = mr_placeholder(g, dtype, .shape = shape);
    }
    mr_output y = row->build(g, c->inputs);
    if (dtype == MR_DOUBLE && mr_graph_status(g, nullptr) != MR_OK)
        return false; /* the operator supports only float here */
    CHECK_OK(mr_graph_status(g, &error));
    mr_tensor drawn = {0};
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &c->session, &error));
    mr_feed feeds[INPUTS_MAX];
    for (int i = 0; i < c->count; i++) feeds[i] = (mr_feed){c->inputs[i], c->values[i]};
    mr_feeds all = {feeds, c->count};
    mr_status status = mr_session_run(c->session, all, MR_OUTPUTS(y), &drawn, nullptr, 0, &c->why);
    if (status != MR_OK) return false;
    mr_tensor shaped = drawn;
    CHECK_OK(mr_tensor_init(&drawn, dtype, shaped.shape, &error)); /* the result may reuse the input's buffer */
    mr_tensor_deinit(&shaped);
    for (int64_t j = 0; j < mr_tensor_count(&drawn); j++) set(&drawn, j, mr_random_unit(&random));
    mr_output product = mr_mul(g, y, mr_constant(g, &drawn, "weights"));
    c->loss = mr_sum(g, product, mr_range(g, INT(0), mr_rank(g, product), INT(1)));
    mr_tensor_deinit(&drawn);
    mr_gradients(g, MR_OUTPUTS(c->loss), (mr_outputs){c->inputs, c->count}, nullptr, c->gradients);
    if (mr_graph_status(g, &error) != MR_OK)
        test_fail(__FILE__, __LINE__, "%s %s: %s", row->op, row->note, error.message);
    return true;
}

static void finish(checked *c)
{
    for (int i = 0; i < c->count; i++) mr_tensor_deinit(&c->values[i]);
    mr_session_free(c->session);
    mr_graph_free(c->graph);
}

static mr_status run(checked *c, mr_output fetch, mr_tensor *result, mr_error *error)
{
    mr_feed feeds[INPUTS_MAX];
    for (int i = 0; i < c->count; i++) feeds[i] = (mr_feed){c->inputs[i], c->values[i]};
    return mr_session_run(c->session, (mr_feeds){feeds, c->count}, MR_OUTPUTS(fetch), result, nullptr, 0, error);
}

static double loss_at(checked *c, int input, int64_t index, double value)
{
    mr_error error = {0};
    mr_tensor result = {0};
    double before = get(&c->values[input], index);
    set(&c->values[input], index, value);
    CHECK_OK(run(c, c->loss, &result, &error));
    set(&c->values[input], index, before);
    double loss = get(&result, 0);
    mr_tensor_deinit(&result);
    return loss;
}

static void compare(checked *c, const gradient_case *row, bool known_shapes)
{
    double step = c->dtype == MR_DOUBLE ? 1e-5 : 4e-3, tolerance = c->dtype == MR_DOUBLE ? 1e-7 : 6e-3;
    bool through_float = strcmp(row->op, "Cast") == 0 || strcmp(row->op, "ResizeBilinear") == 0 ||
                         strcmp(row->op, "ResizeBicubic") == 0 || strcmp(row->op, "CropAndResize") == 0 ||
                         strcmp(row->op, "ScaleAndTranslate") == 0;
    if (through_float) step = 4e-3, tolerance = 6e-3;
    for (int i = 0; i < c->count; i++) {
        mr_error error = {0};
        mr_tensor gradient = {0};
        if (c->gradients[i].node != nullptr) CHECK_OK(run(c, c->gradients[i], &gradient, &error));
        if (c->gradients[i].node != nullptr && !mr_shape_equal(gradient.shape, row->shapes[i]))
            test_fail(__FILE__, __LINE__, "%s %s: the gradient of input %d has another shape", row->op, row->note, i);
        for (int64_t j = 0; j < mr_tensor_count(&c->values[i]); j++) {
            double at = get(&c->values[i], j);
            double slope = (loss_at(c, i, j, at + step) - loss_at(c, i, j, at - step)) / (2 * step);
            double built = gradient.buffer != nullptr ? get(&gradient, j) : 0;
            if (!(fabs(slope - built) <= tolerance * (1 + fabs(slope))))
                test_fail(__FILE__, __LINE__, "%s %s, shapes %s, input %d, element %d: slope %.9g, gradient %.9g",
                          row->op, row->note, known_shapes ? "known" : "unknown", i, (int)j, slope, built);
        }
        mr_tensor_deinit(&gradient);
    }
}

static void check_range(size_t begin, size_t end)
{
    for (size_t i = begin; i < end && i < sizeof cases / sizeof *cases; i++)
        for (int known_shapes = 0; known_shapes < 2; known_shapes++) {
            checked c;
            if (!build(&c, &cases[i], MR_DOUBLE, known_shapes)) {
                finish(&c);
                bool builds = build(&c, &cases[i], MR_FLOAT, known_shapes);
                if (!builds && strstr(c.why.message, "No OpKernel") != nullptr) {
                    finish(&c);
                    continue;
                }
                if (!builds)
                    test_fail(__FILE__, __LINE__, "%s %s cannot run: %s", cases[i].op, cases[i].note, c.why.message);
            }
            compare(&c, &cases[i], known_shapes);
            finish(&c);
        }
}

TEST(gradients_of_elementwise_operators_are_slopes)
{
    check_range(0, 40);
}

TEST(gradients_of_array_operators_are_slopes)
{
    check_range(40, 85);
}

TEST(gradients_of_network_operators_are_slopes)
{
    check_range(85, sizeof cases / sizeof *cases);
}

TEST(gradients_every_operator_with_one_has_a_case)
{
    static const char *const elsewhere[] = {
        "PreventGradient", "Print", "RandomGamma", "ReadVariableOp", "RefIdentity", "ResourceGather",
        "ResourceGatherNd",
        /* The results are steps; the gradients are those of TensorFlow. */
        "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel",
        "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"};
    mr_builtin_register();
    for (int32_t i = 0; i < mr_op_count(); i++) {
        const mr_op *op = mr_op_at(i)->op;
        bool found = mr_op_at(i)->gradient == nullptr;
        for (size_t j = 0; !found && j < sizeof cases / sizeof *cases; j++) found = strcmp(cases[j].op, op->name) == 0;
        for (size_t j = 0; !found && j < sizeof elsewhere / sizeof *elsewhere; j++)
            found = strcmp(elsewhere[j], op->name) == 0;
        if (!found) test_fail(__FILE__, __LINE__, "%s has a gradient that no case checks", op->name);
    }
}

TEST(gradients_accumulate_and_stop)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output other = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "other");
    mr_output twice = mr_add_v2(g, mr_square(g, x), mr_mul(g, x, mr_stop_gradient(g, x)), .name = "twice");
    mr_output gradients[3];
    mr_gradients(g, MR_OUTPUTS(twice), MR_OUTPUTS(x, other, twice), nullptr, gradients);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(gradients[1].node == nullptr);
    CHECK_STR(mr_node_name(gradients[2].node), "gradients/grad_ys_0");
    CHECK_STR(mr_node_name(gradients[0].node), "gradients/AddN");
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor three = {0}, result = {0};
    CHECK_OK(mr_tensor_init_float(&three, 3, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(gradients[0]), &result, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&result)[0], 2 * 3 + 3, 0);
    mr_tensor_deinit(&three);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(gradients_name_the_operator_without_one)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = S(3));
    mr_output y = mr_prevent_gradient(g, x, .message = "frozen", .name = "wall");
    mr_output gradient;
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    CHECK_STATUS(mr_graph_status(g, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "wall");
    CHECK_CONTAINS(error.message, "frozen");
    mr_graph_free(g);
}

/* The gradient of Prod if some factors are zero. */
TEST(gradients_of_prod_with_zeros)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_floats(g, S(3, 3), (float[]){2, 0, 5, 0, 0, 7, 1, 2, 3}, "x");
    mr_output gradient;
    mr_gradients(g, MR_OUTPUTS(mr_prod(g, x, INTS(1))), MR_OUTPUTS(x), nullptr, &gradient);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(gradient), &result, nullptr, 0, &error));
    static const float expected[] = {0, 10, 0, 0, 0, 0, 6, 3, 2};
    for (int i = 0; i < 9; i++) CHECK_NEAR(mr_tensor_floats(&result)[i], expected[i], 1e-6);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}
