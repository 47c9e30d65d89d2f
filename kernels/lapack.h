/* LAPACK for batches of matrices. Matrices are converted to column-major double or complex double: float ones have the
 * same results up to rounding, and two variants of each routine are enough. */
#ifndef MR_KERNELS_LAPACK_H
#define MR_KERNELS_LAPACK_H

#include "kernels/common.h"

/* Workspace of a routine. */
typedef struct mr_lapack_sizes {
    int64_t elements; /* of the routine's type */
    int64_t reals;    /* complex routines only */
    int64_t integers;
} mr_lapack_sizes;
typedef struct mr_lapack_work {
    int element_count, real_count, integer_count;
    void *elements;
    double *reals;
    int *integers;
} mr_lapack_work;

/* LAPACK's routines for one type, with pointers to its elements as void *. */
typedef struct mr_lapack {
    size_t size; /* of an element */
    bool is_complex;
    void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
    void (*getrs)(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda, const int *pivots,
                  void *b, const int *ldb, int *info, size_t trans_length);
    void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t uplo_length);
    void (*potrs)(const char *uplo, const int *n, const int *nrhs, const void *a, const int *lda, void *b,
                  const int *ldb, int *info, size_t uplo_length);
    void (*trtrs)(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs, const void *a,
                  const int *lda, void *b, const int *ldb, int *info, size_t l1, size_t l2, size_t l3);
    void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *lwork,
                  int *info);
    void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                  const int *lwork, int *info);
    /* By division into smaller problems; the workspace has mr_lapack_gesdd_sizes or mr_lapack_heevd_sizes. */
    void (*gesdd)(const char *job, int m, int n, void *a, double *s, void *u, void *vt, int ldvt,
                  const mr_lapack_work *work, int *info);
    void (*heevd)(const char *job, int n, void *a, double *w, const mr_lapack_work *work, int *info);
    /* real: workspace of the complex routine */
    void (*gelss)(int m, int n, int nrhs, void *a, void *b, int ldb, double *s, void *work, int lwork, double *real,
                  int *rank, int *info);
} mr_lapack;

/* The routines for a dtype: float and double, or complex64 and complex128. */
const mr_lapack *mr_lapack_of(mr_dtype dtype);

mr_lapack_sizes mr_lapack_gesdd_sizes(int m, int n);
mr_lapack_sizes mr_lapack_heevd_sizes(int n);
/* Allocates workspace, which mr_lapack_work_free frees.
 * errors  MR_RESOURCE_EXHAUSTED: out of memory, or more than LAPACK can address */
mr_status mr_lapack_work_new(const mr_kernel_call *call, const mr_lapack *lapack, mr_lapack_sizes sizes,
                             mr_lapack_work *work, mr_error *error);
void mr_lapack_work_free(mr_lapack_work *work);

/* Complex routines for general matrices: eigenvalues and right eigenvectors (v null: only values); the Schur form
 * t = adjoint(z) · a · z in place of a. Work: 2 · n elements and n doubles or more. */
void mr_lapack_eig(int n, void *a, void *w, void *v, void *work, int lwork, double *real, int *info);
void mr_lapack_schur(int n, void *a, void *w, void *z, void *work, int lwork, double *real, int *info);

/* Row-major elements of any of the four dtypes to column-major ones of `target_complex` type, and back. */
void mr_lapack_load(mr_dtype dtype, const void *source, int64_t rows, int64_t columns, bool target_complex,
                    void *target);
/* lead: rows of the column-major source, of which the first `rows` are stored */
void mr_lapack_store(mr_dtype dtype, void *target, int64_t rows, int64_t columns, bool source_complex,
                     const void *source, int64_t lead);

/* The matrices of an input: its batch, and the sizes of one matrix, at most INT16_MAX.
 * errors  MR_INVALID_ARGUMENT: rank below 2; MR_RESOURCE_EXHAUSTED: too large */
typedef struct mr_matrices {
    mr_shape batch;
    int64_t count;
    int rows, columns;
} mr_matrices;
mr_status mr_matrices_of(const mr_kernel_call *call, int input, mr_matrices *matrices, mr_error *error);
/* The same, for square matrices. */
mr_status mr_matrices_square(const mr_kernel_call *call, int input, mr_matrices *matrices, mr_error *error);
mr_shape mr_matrices_shape(mr_shape batch, int64_t rows, int64_t columns);
/* Matrix i of a tensor with matrices of `elements` elements. */
static inline void *mr_matrix_at(const mr_tensor *tensor, int64_t i, int64_t elements)
{
    return (char *)tensor->data + (size_t)(i * elements) * mr_dtype_size(tensor->dtype);
}
bool mr_lapack_is_finite(mr_dtype dtype, const void *source, int64_t count);

/* Memory for elements; freed by the caller.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_lapack_memory(const mr_kernel_call *call, int64_t count, size_t size, void **memory, mr_error *error);

#endif
