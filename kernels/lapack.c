/* The interface to LAPACK, whose routines are declared here: Debian's liblapack has no header for them. */
#include "kernels/lapack.h"
#include <math.h>
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
void dgesvd_(const char *, const char *, const int *, const int *, void *, const int *, double *, void *, const int *,
             void *, const int *, void *, const int *, int *, size_t, size_t);
void zgesvd_(const char *, const char *, const int *, const int *, void *, const int *, double *, void *, const int *,
             void *, const int *, void *, const int *, double *, int *, size_t, size_t);
void dsyev_(const char *, const char *, const int *, void *, const int *, double *, void *, const int *, int *, size_t,
            size_t);
void zheev_(const char *, const char *, const int *, void *, const int *, double *, void *, const int *, double *,
            int *, size_t, size_t);
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

static void gesvd_real(const char *job_u, const char *job_v, int m, int n, void *a, double *s, void *u, void *vt,
                       int ldvt, void *work, int lwork, double *real, int *info)
{
    (void)real;
    dgesvd_(job_u, job_v, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, info, 1, 1);
}

static void gesvd_complex(const char *job_u, const char *job_v, int m, int n, void *a, double *s, void *u, void *vt,
                          int ldvt, void *work, int lwork, double *real, int *info)
{
    zgesvd_(job_u, job_v, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, real, info, 1, 1);
}

static void heev_real(const char *job, int n, void *a, double *w, void *work, int lwork, double *real, int *info)
{
    (void)real;
    dsyev_(job, "L", &n, a, &n, w, work, &lwork, info, 1, 1);
}

static void heev_complex(const char *job, int n, void *a, double *w, void *work, int lwork, double *real, int *info)
{
    zheev_(job, "L", &n, a, &n, w, work, &lwork, real, info, 1, 1);
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
    static const mr_lapack real = {8,       false,   dgetrf_, dgetrs_,    dpotrf_,   dpotrs_,
                                   dtrtrs_, dgeqrf_, dorgqr_, gesvd_real, heev_real, gels_real};
    static const mr_lapack complex = {16,      true,    getrf_complex, zgetrs_,       zpotrf_,      zpotrs_,
                                      ztrtrs_, zgeqrf_, zungqr_,       gesvd_complex, heev_complex, gels_complex};
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

static void get(mr_dtype dtype, const void *source, int64_t i, double *re, double *im)
{
    *im = 0;
    if (dtype == MR_FLOAT) {
        *re = (double)((const float *)source)[i];
    } else if (dtype == MR_DOUBLE) {
        *re = ((const double *)source)[i];
    } else if (dtype == MR_COMPLEX64) {
        *re = (double)((const float *)source)[2 * i];
        *im = (double)((const float *)source)[2 * i + 1];
    } else {
        *re = ((const double *)source)[2 * i];
        *im = ((const double *)source)[2 * i + 1];
    }
}

static void put(mr_dtype dtype, void *target, int64_t i, double re, double im)
{
    if (dtype == MR_FLOAT) {
        ((float *)target)[i] = (float)re;
    } else if (dtype == MR_DOUBLE) {
        ((double *)target)[i] = re;
    } else if (dtype == MR_COMPLEX64) {
        ((float *)target)[2 * i] = (float)re;
        ((float *)target)[2 * i + 1] = (float)im;
    } else {
        ((double *)target)[2 * i] = re;
        ((double *)target)[2 * i + 1] = im;
    }
}

void mr_lapack_load(mr_dtype dtype, const void *source, int64_t rows, int64_t columns, bool target_complex,
                    void *target)
{
    double re, im;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++) {
            get(dtype, source, r * columns + c, &re, &im);
            put(target_complex ? MR_COMPLEX128 : MR_DOUBLE, target, c * rows + r, re, im);
        }
}

void mr_lapack_store(mr_dtype dtype, void *target, int64_t rows, int64_t columns, bool source_complex,
                     const void *source, int64_t lead)
{
    double re, im;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            get(source_complex ? MR_COMPLEX128 : MR_DOUBLE, source, c * lead + r, &re, &im);
            put(dtype, target, r * columns + c, re, im);
        }
}

bool mr_lapack_is_finite(mr_dtype dtype, const void *source, int64_t count)
{
    double re, im;
    for (int64_t i = 0; i < count; i++) {
        get(dtype, source, i, &re, &im);
        if (!isfinite(re) || !isfinite(im)) return false;
    }
    return true;
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
