/* Functions of matrices: MatrixExponential, MatrixLogarithm, MatrixSquareRoot. All compute with complex doubles; of a
 * real matrix's result the real part is stored.
 *
 * The exponential is Higham's scaling and squaring with a Padé approximant of degree 13; square root and logarithm use
 * the Schur form, whose triangular factor is t (Björck and Hammarling; inverse scaling and squaring). */
#include "kernels/blas.h"
#include "kernels/complex_math.h"
#include "kernels/lapack.h"
#include <stdlib.h>
#include <string.h>

typedef mr_complex128 number;

constexpr int MATRICES_MAX = 8;

/* A batch of square matrices, and memory for some of them, column-major. */
typedef struct work {
    const mr_lapack *lapack;
    mr_dtype dtype;
    mr_matrices matrices;
    int n;
    int64_t elements;
    number *memory, *m[MATRICES_MAX];
    number *workspace; /* 64 * n + 1024 elements */
    double *real;
    int *pivots;
} work;

typedef bool function(work *w);

static void finish(work *w)
{
    free(w->memory);
    free(w->workspace);
    free(w->real);
    free(w->pivots);
}

static mr_status start(const mr_kernel_call *call, work *w, mr_error *error)
{
    *w = (work){.lapack = mr_lapack_of(MR_COMPLEX128), .dtype = call->inputs[0].dtype};
    MR_TRY(mr_matrices_square(call, 0, &w->matrices, error));
    w->n = w->matrices.rows;
    w->elements = (int64_t)w->n * w->n;
    mr_status status = mr_lapack_memory(call, MATRICES_MAX * w->elements, sizeof(number), (void **)&w->memory, error);
    if (status == MR_OK)
        status = mr_lapack_memory(call, 64 * (int64_t)w->n + 1024, sizeof(number), (void **)&w->workspace, error);
    if (status == MR_OK) status = mr_lapack_memory(call, w->n, sizeof(double), (void **)&w->real, error);
    if (status == MR_OK) status = mr_lapack_memory(call, w->n, sizeof(int), (void **)&w->pivots, error);
    for (int i = 0; i < MATRICES_MAX && status == MR_OK; i++) w->m[i] = w->memory + i * w->elements;
    if (status != MR_OK) finish(w);
    return status;
}

/* ---- Matrices ---- */

/* out = a · b */
static void multiply(const work *w, const number *a, const number *b, number *out)
{
    const int64_t n = w->n;
    memset(out, 0, (size_t)w->elements * sizeof *out);
    for (int64_t c = 0; c < n; c++)
        for (int64_t k = 0; k < n; k++) {
            const double *from = (const double *)(a + k * n), re = creal(b[c * n + k]), im = cimag(b[c * n + k]);
            double *to = (double *)(out + c * n);
            for (int64_t r = 0; r < n; r++) {
                to[2 * r] += from[2 * r] * re - from[2 * r + 1] * im;
                to[2 * r + 1] += from[2 * r] * im + from[2 * r + 1] * re;
            }
        }
}

static void add_scaled(const work *w, const number *a, double factor, number *out)
{
    for (int64_t i = 0; i < w->elements; i++) out[i] += factor * a[i];
}

static void add_diagonal(const work *w, double value, number *out)
{
    for (int64_t i = 0; i < w->n; i++) out[i * w->n + i] += value;
}

/* The largest sum of absolute values in a column. */
static double norm(const work *w, const number *a)
{
    double most = 0;
    for (int64_t c = 0; c < w->n; c++) {
        double sum = 0;
        for (int64_t r = 0; r < w->n; r++) sum += cabs(a[c * w->n + r]);
        if (!(sum <= most)) most = sum;
    }
    return most;
}

/* out = a · t · adjoint(a); scratch is another matrix */
static void transform_back(const work *w, const number *a, const number *t, number *scratch, number *out)
{
    const int64_t n = w->n;
    multiply(w, a, t, scratch);
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++) w->m[MATRICES_MAX - 1][c * n + r] = conj(a[r * n + c]);
    multiply(w, scratch, w->m[MATRICES_MAX - 1], out);
}

/* ---- The exponential of m[0], in m[0] ---- */

/* out = high · (sum of coefficients[4..6]) + sum of coefficients[0..3], of the powers 0, 2, 4, 6 and 8, 10, 12 */
static void even_polynomial(const work *w, number *const powers[3], const double coefficients[7], number *scratch,
                            number *out)
{
    memset(scratch, 0, (size_t)w->elements * sizeof *scratch);
    for (int i = 0; i < 3; i++) add_scaled(w, powers[i], coefficients[4 + i], scratch);
    multiply(w, powers[2], scratch, out);
    for (int i = 0; i < 3; i++) add_scaled(w, powers[i], coefficients[1 + i], out);
    add_diagonal(w, coefficients[0], out);
}

static bool exponential(work *w)
{
    static const double even[7] =
        {64764752532480000, 7771770303897600, 129060195264000, 670442572800, 1323241920, 960960, 182},
                        odd[7] = {32382376266240000, 1187353796428800, 10559470521600, 33522128640, 40840800, 16380, 1};
    number *a = w->m[0], *const powers[3] = {w->m[1], w->m[2], w->m[3]}, *u = w->m[4], *v = w->m[5], *x = w->m[6];
    int squarings = 0, info;
    double size = norm(w, a);
    if (!isfinite(size)) return false;
    if (size > 5.371920351148152) (void)frexp(size / 5.371920351148152, &squarings);
    for (int64_t i = 0; i < w->elements; i++)
        a[i] = MR_COMPLEX_OF(ldexp(creal(a[i]), -squarings), ldexp(cimag(a[i]), -squarings));
    multiply(w, a, a, powers[0]);
    multiply(w, powers[0], powers[0], powers[1]);
    multiply(w, powers[0], powers[1], powers[2]);
    even_polynomial(w, powers, odd, x, v);
    multiply(w, a, v, u);
    even_polynomial(w, powers, even, x, v);
    for (int64_t i = 0; i < w->elements; i++) {
        x[i] = v[i] + u[i];
        v[i] -= u[i];
    }
    MR_BLAS(w->lapack->getrf(&w->n, &w->n, v, &w->n, w->pivots, &info));
    if (info != 0) return false;
    MR_BLAS(w->lapack->getrs("N", &w->n, &w->n, v, &w->n, w->pivots, x, &w->n, &info, 1));
    for (; squarings > 0; squarings--) {
        multiply(w, x, x, u);
        number *swapped = x;
        x = u;
        u = swapped;
    }
    if (x != a) memcpy(a, x, (size_t)w->elements * sizeof *a);
    return true;
}

/* ---- The square root and the logarithm of m[0], in m[0] ---- */

/* m[1] = the vectors of the Schur form, m[0] = t */
static bool schur(work *w)
{
    int info, lwork = 64 * w->n + 1024 - w->n;
    if (!isfinite(norm(w, w->m[0]))) return false;
    MR_BLAS(mr_lapack_schur(w->n, w->m[0], w->workspace + lwork, w->m[1], w->workspace, lwork, w->real, &info));
    return info == 0;
}

/* root = the upper triangular square root of t */
static void triangular_root(const work *w, const number *t, number *root)
{
    const int64_t n = w->n;
    memset(root, 0, (size_t)w->elements * sizeof *root);
    for (int64_t c = 0; c < n; c++) {
        root[c * n + c] = csqrt(t[c * n + c]);
        for (int64_t r = c - 1; r >= 0; r--) {
            number sum = t[c * n + r];
            for (int64_t k = r + 1; k < c; k++) sum -= mr_complex_times(root[k * n + r], root[c * n + k]);
            root[c * n + r] = sum / (root[r * n + r] + root[c * n + c]);
        }
    }
}

/* A real matrix whose root is not real has none. */
static bool has_root(const work *w, const number *root)
{
    double real = 0, imaginary = 0;
    for (int64_t i = 0; i < w->elements; i++) {
        real = fmax(real, fabs(creal(root[i])));
        imaginary = fmax(imaginary, fabs(cimag(root[i])));
    }
    return imaginary <= 1e-6 * real;
}

static bool square_root(work *w)
{
    if (!schur(w)) return false;
    triangular_root(w, w->m[0], w->m[2]);
    transform_back(w, w->m[1], w->m[2], w->m[3], w->m[0]);
    return w->dtype == MR_COMPLEX64 || w->dtype == MR_COMPLEX128 || has_root(w, w->m[0]);
}

/* out += weight · x · inverse(1 + node · x), of upper triangular matrices */
static void add_fraction(const work *w, const number *x, double node, double weight, number *scratch, number *out)
{
    const int64_t n = w->n;
    /* Rows of y, with y · (1 + node · x) = x. */
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r <= c; r++) {
            number sum = x[c * n + r];
            for (int64_t k = r; k < c; k++) sum -= node * mr_complex_times(scratch[k * n + r], x[c * n + k]);
            scratch[c * n + r] = sum / (1 + node * x[c * n + c]);
            out[c * n + r] += weight * scratch[c * n + r];
        }
}

/* out = log(1 + x) by Gauss-Legendre quadrature of the integral of x / (1 + s x) over s in [0, 1] */
static void log_near_one(const work *w, const number *x, number *scratch, number *out)
{
    constexpr int degree = 9;
    memset(out, 0, (size_t)w->elements * sizeof *out);
    for (int i = 0; i < degree; i++) {
        double at = cos(3.14159265358979323846 * (i + 0.75) / (degree + 0.5)), slope = 0;
        for (int step = 0; step < 10; step++) { /* Newton's method for a root of the Legendre polynomial */
            double before = 1, value = at;
            for (int k = 2; k <= degree; k++) {
                double next = ((2 * k - 1) * at * value - (k - 1) * before) / k;
                before = value;
                value = next;
            }
            slope = degree * (at * value - before) / (at * at - 1);
            at -= value / slope;
        }
        add_fraction(w, x, (1 + at) / 2, 1 / ((1 - at * at) * slope * slope), scratch, out);
    }
}

static bool logarithm(work *w)
{
    const int64_t n = w->n;
    number *t = w->m[2], *root = w->m[3];
    int roots = 0;
    if (!schur(w)) return false;
    memcpy(t, w->m[0], (size_t)w->elements * sizeof *t);
    for (;; roots++) {
        add_diagonal(w, -1, t);
        double size = norm(w, t);
        if (!isfinite(size) || roots == 100) return false;
        if (size < 0.25) break;
        add_diagonal(w, 1, t);
        triangular_root(w, t, root);
        number *swapped = t;
        t = root;
        root = swapped;
    }
    log_near_one(w, t, root, w->m[4]);
    for (int64_t c = 0; c < n; c++) {
        for (int64_t r = 0; r < c; r++) w->m[4][c * n + r] *= ldexp(1, roots);
        w->m[4][c * n + c] = clog(w->m[0][c * n + c]);
    }
    transform_back(w, w->m[1], w->m[4], w->m[5], w->m[0]);
    return true;
}

/* ---- The operators ---- */

/* A matrix without a result becomes NaN. */
static mr_status run(mr_kernel_call *call, function *compute, mr_error *error)
{
    work w;
    MR_TRY(start(call, &w, error));
    mr_status status = mr_kernel_output(call, 0, call->inputs[0].shape, error);
    for (int64_t i = 0; i < w.matrices.count && w.n > 0 && status == MR_OK; i++) {
        mr_lapack_load(w.dtype, mr_matrix_at(&call->inputs[0], i, w.elements), w.n, w.n, true, w.m[0]);
        if (!compute(&w))
            for (int64_t k = 0; k < w.elements; k++) w.m[0][k] = MR_COMPLEX_OF(NAN, NAN);
        mr_lapack_store(w.dtype, mr_matrix_at(&call->outputs[0], i, w.elements), w.n, w.n, true, w.m[0], w.n);
    }
    finish(&w);
    return status;
}

static mr_status matrix_exponential(mr_kernel_call *call, mr_error *error)
{
    return run(call, exponential, error);
}

static mr_status matrix_logarithm(mr_kernel_call *call, mr_error *error)
{
    return run(call, logarithm, error);
}

static mr_status matrix_square_root(mr_kernel_call *call, mr_error *error)
{
    return run(call, square_root, error);
}

#define TYPES "T: float, double, complex64, complex128"
static const mr_kernel kernels[] = {
    {.op = "MatrixExponential", .types = TYPES, .run = matrix_exponential},
    {.op = "MatrixLogarithm", .run = matrix_logarithm},
    {.op = "MatrixSquareRoot", .types = TYPES, .run = matrix_square_root},
};
MR_KERNEL_FAMILY(matrix_function);
