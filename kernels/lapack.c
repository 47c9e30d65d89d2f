/* The interface to LAPACK, whose routines are declared here: Debian's packages have no header for them. */
#include "kernels/lapack.h"
#include "kernels/blas.h"
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SHARED(p, un)                                                                                                  \
    void p##getrf_(const int *, const int *, void *, const int *, int *, int *);                                       \
    void p##getrs_(const char *, const int *, const int *, const void *, const int *, const int *, void *,             \
                   const int *, int *, size_t);                                                                        \
    void p##potrf_(const char *, const int *, void *, const int *, int *, size_t);                                     \
    void p##potrs_(const char *, const int *, const int *, const void *, const int *, void *, const int *, int *,      \
                   size_t);                                                                                            \
    void p##trtrs_(const char *, const char *, const char *, const int *, const int *, const void *, const int *,      \
                   void *, const int *, int *, size_t, size_t, size_t);                                                \
    void p##geqrf_(const int *, const int *, void *, const int *, void *, void *, const int *, int *);                 \
    void p##un##gqr_(const int *, const int *, const int *, void *, const int *, const void *, void *, const int *,    \
                     int *);
SHARED(d, or)
SHARED(z, un)
void dgesdd_(const char *, const int *, const int *, void *, const int *, double *, void *, const int *, void *,
             const int *, void *, const int *, int *, int *, size_t);
void zgesdd_(const char *, const int *, const int *, void *, const int *, double *, void *, const int *, void *,
             const int *, void *, const int *, double *, int *, int *, size_t);
void dsyevd_(const char *, const char *, const int *, void *, const int *, double *, void *, const int *, int *,
             const int *, int *, size_t, size_t);
void zheevd_(const char *, const char *, const int *, void *, const int *, double *, void *, const int *, double *,
             const int *, int *, const int *, int *, size_t, size_t);
void dgelss_(const int *, const int *, const int *, void *, const int *, void *, const int *, double *, const double *,
             int *, void *, const int *, int *);
void zgelss_(const int *, const int *, const int *, void *, const int *, void *, const int *, double *, const double *,
             int *, void *, const int *, double *, int *);
void zgeev_(const char *, const char *, const int *, void *, const int *, void *, void *, const int *, void *,
            const int *, void *, const int *, double *, int *, size_t, size_t);
void zgees_(const char *, const char *, void *, const int *, void *, const int *, int *, void *, void *, const int *,
            void *, const int *, double *, int *, int *, size_t, size_t);

/* LAPACK's own handler of invalid arguments ends the process. Ours does nothing: the routine returns info < 0. It also
 * keeps the Fortran library out of programs, together with the next function, which is all that LAPACK needs of it. */
[[gnu::weak]] void xerbla_(const char *name, const int *info, size_t length);
[[gnu::weak]] void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name;
    (void)info;
    (void)length;
}

[[gnu::weak]] void _gfortran_concat_string(size_t size, char *target, size_t a_size, const char *a, size_t b_size,
                                           const char *b);
[[gnu::weak]] void _gfortran_concat_string(size_t size, char *target, size_t a_size, const char *a, size_t b_size,
                                           const char *b)
{
    for (size_t i = 0; i < size; i++) target[i] = i < a_size ? a[i] : i - a_size < b_size ? b[i - a_size] : ' ';
}

static pthread_mutex_t blas_mutex = PTHREAD_MUTEX_INITIALIZER;

void mr_blas_lock(void)
{
    pthread_mutex_lock(&blas_mutex);
}

void mr_blas_unlock(void)
{
    pthread_mutex_unlock(&blas_mutex);
}

static void gesdd_real(const char *job, int m, int n, void *a, double *s, void *u, void *vt, int ldvt,
                       const mr_lapack_work *w, int *info)
{
    dgesdd_(job, &m, &n, a, &m, s, u, &m, vt, &ldvt, w->elements, &w->element_count, w->integers, info, 1);
}

static void gesdd_complex(const char *job, int m, int n, void *a, double *s, void *u, void *vt, int ldvt,
                          const mr_lapack_work *w, int *info)
{
    zgesdd_(job, &m, &n, a, &m, s, u, &m, vt, &ldvt, w->elements, &w->element_count, w->reals, w->integers, info, 1);
}

static void heevd_real(const char *job, int n, void *a, double *values, const mr_lapack_work *w, int *info)
{
    dsyevd_(job, "L", &n, a, &n, values, w->elements, &w->element_count, w->integers, &w->integer_count, info, 1, 1);
}

static void heevd_complex(const char *job, int n, void *a, double *values, const mr_lapack_work *w, int *info)
{
    zheevd_(job, "L", &n, a, &n, values, w->elements, &w->element_count, w->reals, &w->real_count, w->integers,
            &w->integer_count, info, 1, 1);
}

/* The documented least sizes, and 64 columns for blocked algorithms. */
mr_lapack_sizes mr_lapack_gesdd_sizes(int m, int n)
{
    const int64_t most = MR_MAX(m, n), least = MR_MIN(m, n);
    return (mr_lapack_sizes){
        .elements = 4 * least * least + 7 * least + 66 * most + 1024,
        .reals = MR_MAX(5 * least * least + 5 * least, 2 * most * least + 2 * least * least + least) + 1,
        .integers = 8 * least + 1};
}

mr_lapack_sizes mr_lapack_heevd_sizes(int n)
{
    const int64_t size = n;
    return (mr_lapack_sizes){.elements = 2 * size * size + 72 * size + 64,
                             .reals = 2 * size * size + 5 * size + 1,
                             .integers = 5 * size + 3};
}

mr_status mr_lapack_work_new(const mr_kernel_call *call, const mr_lapack *lapack, mr_lapack_sizes sizes,
                             mr_lapack_work *work, mr_error *error)
{
    *work = (mr_lapack_work){0};
    if (MR_MAX(sizes.elements, sizes.reals) > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the matrices are too large");
    work->element_count = (int)sizes.elements;
    work->integer_count = (int)sizes.integers;
    MR_TRY(mr_lapack_memory(call, sizes.elements, lapack->size, &work->elements, error));
    MR_TRY(mr_lapack_memory(call, sizes.integers, sizeof(int), (void **)&work->integers, error));
    if (!lapack->is_complex) return MR_OK;
    work->real_count = (int)sizes.reals;
    return mr_lapack_memory(call, sizes.reals, sizeof(double), (void **)&work->reals, error);
}

void mr_lapack_work_free(mr_lapack_work *work)
{
    free(work->elements);
    free(work->reals);
    free(work->integers);
    *work = (mr_lapack_work){0};
}

/* LU factors of a square complex matrix. LAPACK's zgetrf compares |re| + |im| to choose a pivot; TensorFlow, and
 * therefore this function, the absolute value. */
static void getrf_complex(const int *rows, const int *columns, void *matrix, const int *lead, int *pivots, int *info)
{
    double *a = matrix;
    const int64_t n = *rows, step = 2 * (int64_t)*lead;
    (void)columns;
    *info = 0;
    for (int64_t k = 0; k < n; k++) {
        double most = -1, *diagonal = a + k * step + 2 * k;
        int64_t chosen = k;
        for (int64_t r = k; r < n; r++) {
            double re = a[k * step + 2 * r], im = a[k * step + 2 * r + 1], size = re * re + im * im;
            if (size > most) {
                most = size;
                chosen = r;
            }
        }
        pivots[k] = (int)chosen + 1;
        for (int64_t c = 0; c < n && chosen != k; c++)
            for (int part = 0; part < 2; part++) {
                double *x = a + c * step + part, swapped = x[2 * k];
                x[2 * k] = x[2 * chosen];
                x[2 * chosen] = swapped;
            }
        if (!(most > 0)) {
            if (*info == 0) *info = (int)k + 1;
            continue;
        }
        const double re = diagonal[0] / most, im = -diagonal[1] / most; /* the inverse */
        for (int64_t r = k + 1; r < n; r++) {
            double *x = a + k * step + 2 * r, old = x[0];
            x[0] = old * re - x[1] * im;
            x[1] = old * im + x[1] * re;
        }
        for (int64_t c = k + 1; c < n; c++) {
            const double *column = a + k * step, x = a[c * step + 2 * k], y = a[c * step + 2 * k + 1];
            double *to = a + c * step;
            for (int64_t r = k + 1; r < n; r++) {
                to[2 * r] -= column[2 * r] * x - column[2 * r + 1] * y;
                to[2 * r + 1] -= column[2 * r] * y + column[2 * r + 1] * x;
            }
        }
    }
}

static const double machine_precision = -1;

static void gels_real(int m, int n, int nrhs, void *a, void *b, int ldb, double *s, void *work, int lwork, double *real,
                      int *rank, int *info)
{
    (void)real;
    dgelss_(&m, &n, &nrhs, a, &m, b, &ldb, s, &machine_precision, rank, work, &lwork, info);
}

static void gels_complex(int m, int n, int nrhs, void *a, void *b, int ldb, double *s, void *work, int lwork,
                         double *real, int *rank, int *info)
{
    zgelss_(&m, &n, &nrhs, a, &m, b, &ldb, s, &machine_precision, rank, work, &lwork, real, info);
}

const mr_lapack *mr_lapack_of(mr_dtype dtype)
{
    static const mr_lapack real = {8,       false,   dgetrf_, dgetrs_,    dpotrf_,    dpotrs_,
                                   dtrtrs_, dgeqrf_, dorgqr_, gesdd_real, heevd_real, gels_real};
    static const mr_lapack complex = {16,      true,    getrf_complex, zgetrs_,       zpotrf_,       zpotrs_,
                                      ztrtrs_, zgeqrf_, zungqr_,       gesdd_complex, heevd_complex, gels_complex};
    return dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 ? &complex : &real;
}

void mr_lapack_eig(int n, void *a, void *w, void *v, void *work, int lwork, double *real, int *info)
{
    zgeev_("N", v != nullptr ? "V" : "N", &n, a, &n, w, nullptr, &n, v, &n, work, &lwork, real, info, 1, 1);
}

void mr_lapack_schur(int n, void *a, void *w, void *z, void *work, int lwork, double *real, int *info)
{
    int selected;
    zgees_("V", "N", nullptr, &n, a, &n, &selected, w, z, &n, work, &lwork, real, nullptr, info, 1, 1);
}

/* target[c][r] = source[r][c], in blocks that fit into the first cache. */
#define TRANSPOSE(suffix, from, to, ...)                                                                               \
    static void transpose_##suffix(const void *source, int64_t source_step, void *target, int64_t target_step,         \
                                   int64_t rows, int64_t columns)                                                      \
    {                                                                                                                  \
        for (int64_t r0 = 0; r0 < rows; r0 += 16)                                                                      \
            for (int64_t c0 = 0; c0 < columns; c0 += 16)                                                               \
                for (int64_t c = c0; c < MR_MIN(c0 + 16, columns); c++)                                                \
                    for (int64_t r = r0; r < MR_MIN(r0 + 16, rows); r++) {                                             \
                        const from x = ((const from *)source)[r * source_step + c];                                    \
                        ((to *)target)[c * target_step + r] = __VA_ARGS__;                                             \
                    }                                                                                                  \
    }
typedef struct complex_float {
    float re, im;
} complex_float;
typedef struct complex_double {
    double re, im;
} complex_double;
TRANSPOSE(float_double, float, double, (double)x)
TRANSPOSE(double_float, double, float, (float)x)
TRANSPOSE(double_double, double, double, x)
TRANSPOSE(float_complex, float, complex_double, (complex_double){(double)x, 0})
TRANSPOSE(double_complex, double, complex_double, (complex_double){x, 0})
TRANSPOSE(widened, complex_float, complex_double, (complex_double){(double)x.re, (double)x.im})
TRANSPOSE(narrowed, complex_double, complex_float, (complex_float){(float)x.re, (float)x.im})
TRANSPOSE(complex, complex_double, complex_double, x)
TRANSPOSE(complex_float, complex_double, float, (float)x.re)
TRANSPOSE(complex_double, complex_double, double, x.re)
TRANSPOSE(double_narrowed, double, complex_float, (complex_float){(float)x, 0})

void mr_lapack_load(mr_dtype dtype, const void *source, int64_t rows, int64_t columns, bool target_complex,
                    void *target)
{
    assert(target_complex || dtype == MR_FLOAT || dtype == MR_DOUBLE);
    (dtype == MR_FLOAT       ? target_complex ? transpose_float_complex : transpose_float_double
     : dtype == MR_DOUBLE    ? target_complex ? transpose_double_complex : transpose_double_double
     : dtype == MR_COMPLEX64 ? transpose_widened
                             : transpose_complex)(source, columns, target, rows, rows, columns);
}

void mr_lapack_store(mr_dtype dtype, void *target, int64_t rows, int64_t columns, bool source_complex,
                     const void *source, int64_t lead)
{
    assert(dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128);
    (dtype == MR_FLOAT       ? source_complex ? transpose_complex_float : transpose_double_float
     : dtype == MR_DOUBLE    ? source_complex ? transpose_complex_double : transpose_double_double
     : dtype == MR_COMPLEX64 ? source_complex ? transpose_narrowed : transpose_double_narrowed
     : source_complex        ? transpose_complex
                             : transpose_double_complex)(source, lead, target, columns, columns, rows);
}

/* True if all numbers are finite. */
#define IS_FINITE(suffix, type)                                                                                        \
    static bool is_finite_##suffix(const type *x, int64_t count)                                                       \
    {                                                                                                                  \
        bool finite = true;                                                                                            \
        for (int64_t i = 0; i < count; i++) finite &= isfinite(x[i]);                                                  \
        return finite;                                                                                                 \
    }
IS_FINITE(float, float)
IS_FINITE(double, double)
bool mr_lapack_is_finite(mr_dtype dtype, const void *source, int64_t count)
{
    const int64_t parts = dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 ? 2 * count : count;
    return dtype == MR_FLOAT || dtype == MR_COMPLEX64 ? is_finite_float(source, parts)
                                                      : is_finite_double(source, parts);
}

mr_status mr_matrices_of(const mr_kernel_call *call, int input, mr_matrices *matrices, mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    if (shape.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input tensor %d must have rank >= 2, got %d",
                              input, shape.rank);
    int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
    if (rows > INT16_MAX || columns > INT16_MAX)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the matrices are too large");
    shape.rank -= 2;
    *matrices = (mr_matrices){shape, mr_shape_count(shape), (int)rows, (int)columns};
    return MR_OK;
}

mr_status mr_matrices_square(const mr_kernel_call *call, int input, mr_matrices *matrices, mr_error *error)
{
    MR_TRY(mr_matrices_of(call, input, matrices, error));
    if (matrices->rows == matrices->columns) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input matrix must be square.");
}

mr_shape mr_matrices_shape(mr_shape batch, int64_t rows, int64_t columns)
{
    batch.dims[batch.rank++] = rows;
    batch.dims[batch.rank++] = columns;
    return batch;
}

mr_status mr_lapack_memory(const mr_kernel_call *call, int64_t count, size_t size, void **memory, mr_error *error)
{
    size_t bytes;
    *memory = __builtin_mul_overflow((size_t)MR_MAX(count, 1), size, &bytes) ? nullptr : malloc(bytes);
    return *memory != nullptr ? MR_OK : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
}
