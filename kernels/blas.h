/* BLAS and LAPACK, one call at a time. OpenBLAS without threads of its own takes its buffers from a table without
 * a lock, so two calls at once may work in the same buffer. */
#ifndef MR_KERNELS_BLAS_H
#define MR_KERNELS_BLAS_H

void mr_blas_lock(void);
void mr_blas_unlock(void);

#define MR_BLAS(call)                                                                                                  \
    do {                                                                                                               \
        mr_blas_lock();                                                                                                \
        call;                                                                                                          \
        mr_blas_unlock();                                                                                              \
    } while (0)

#endif
