/* Matrix products: one micro-kernel for all shapes, and the blocked loops of a matrix product around it.
 *
 * A tile is `rows` x 16, 32 or 48 floats of the result. It is kept in registers while the inner dimension is traversed:
 * each step multiplies one number of A for each row by as many numbers of B, one for each lane. A is read in place,
 * through strides, so neither a transposed matrix nor the patches of a convolution are copied. The inner dimension may
 * consist of segments at a fixed distance (the rows of a filter's window). B is best packed into panels of 16
 * columns. */
#ifndef MR_KERNELS_GEMM_H
#define MR_KERNELS_GEMM_H

#include "kernels/common.h"
#include "kernels/slots.h"

/* c[r][v*16 + lane] (+)= sum over s, k of a[r*a_row + k*a_step + s*a_segment] * b[v*b_next + (s*length + k)*b_step +
 * lane]. Strides count floats. Either a_row or a_step is 1. */
typedef struct mr_tile {
    const float *a;
    int64_t a_row, a_step, a_segment;
    const float *b;
    int64_t b_step, b_next;
    float *c;
    int64_t c_row;
    int64_t length, segments;
    int rows;    /* 1 … mr_tile_rows_max(vectors) */
    int vectors; /* of 16 columns: 1 … mr_tile_vectors_max(pairs) */
    int columns; /* number of columns stored, 1 … vectors * 16; B must be readable for all lanes */
    bool accumulate;
    bool pairs;        /* as of mr_gemm */
    const float *bias; /* null, or what is added to every row at the end: `columns` numbers */
    /* Null, or numbers that are needed next. Each step of the inner dimension prefetches a cache line of them, each
     * ahead_step floats further. Not if A has steps of 1 and B is packed. */
    const float *ahead;
    int64_t ahead_step;
    float *pack; /* null, or where the numbers of B are also stored: rows of 16, each vector pack_next further */
    int64_t pack_next;
    const float *next; /* next_count rows of next_length numbers that are needed next, each next_row further:
                        * mr_tile_packed prefetches as many of them as its length allows; other tiles don't */
    int64_t next_count, next_length, next_row;
} mr_tile;
void mr_tile_run(const mr_tile *tile);
/* The same for a packed A on AVX-512: an a_row of 1, an a_step of `rows`, one segment and 2 vectors, without pairs,
 * `ahead` and `pack`. B is packed, too, or in place. */
void mr_tile_packed(const mr_tile *tile);
/* The same for pairs and an a_step of 1, if the processor has AMX. */
bool mr_tile_has_amx(void);
void mr_tile_amx(const mr_tile *tile);
int mr_tile_vectors_max(bool pairs);
int mr_tile_rows_max(int vectors);
/* The vectors of the next tile where `columns` columns are left; the first tile of a row of tiles is the widest. Four
 * vectors are two tiles of two: a tile of one needs as many loads of A for half of the work. */
static inline int mr_tile_vectors(int64_t columns, int vectors_max)
{
    const int64_t vectors = (columns + 15) / 16;
    return vectors == 4 && vectors_max == 3 ? 2 : (int)MR_MIN(vectors, vectors_max);
}

/* Copies a [rows, columns] matrix with strides (row_stride, column_stride), one of which is 1, into panels of 16
 * columns, the last one padded with zeros: target[panel][row][16]. */
void mr_panels_pack(float *target, const float *source, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride);
static inline int64_t mr_panels_size(int64_t rows, int64_t columns)
{
    return (columns + 15) / 16 * 16 * rows;
}

/* Copies rows of A in the order in which a tile reads them: target[k][row]. Up to 15 numbers after the last one may be
 * changed, too.
 * rows    1 … 16
 * length  numbers of each row, at a distance of `step`; either that or row_stride is 1 */
void mr_rows_pack(float *target, const float *source, int rows, int64_t length, int64_t row_stride, int64_t step);

/* c [m, n] = a [m, k] · b [k, n], all row-major. a_transposed: a is stored as [k, m]; b_transposed: b is stored as [n,
 * k].
 * slots    each of at least mr_gemm_scratch floats, on 64 bytes; null if that is 0
 * threads  the result has the same bits at any number of threads */
typedef struct mr_gemm {
    int64_t m, n, k;
    const float *a, *b;
    bool a_transposed, b_transposed;
    float *c;
    bool accumulate;   /* c += a · b */
    bool pairs;        /* each number of a and b is a pair of bfloat16 numbers, the first one in the low bits, whose
                        * products are both added: k counts pairs. Needs mr_cpu_has_bf16. */
    const float *bias; /* null, or n numbers that are added to every row of the result */
    int64_t a_row, b_row, c_row; /* floats from one stored row to the next; 0: they follow each other */
} mr_gemm;
/* Products of more steps are added to the result in parts. */
constexpr int64_t MR_GEMM_STEPS_MAX = 512;
int64_t mr_gemm_scratch(const mr_gemm *gemm);
void mr_gemm_run(const mr_gemm *gemm, mr_slots *slots, mr_pool *pool);

/* A matrix and a vector, or two vectors: m, n or k of 1, without pairs, whose rows follow each other. mr_gemm_run calls
 * mr_gemv_run, which needs no scratch memory. */
bool mr_gemm_is_gemv(const mr_gemm *gemm);
void mr_gemv_run(const mr_gemm *gemm, mr_pool *pool);

/* The reference implementation of mr_gemm_run. */
void mr_gemm_plain(const mr_gemm *gemm);

/* Scratch memory of count floats for one call, which the device keeps for the next call. Not cleared. For a count of 0
 * *buffer is null and *floats is not. */
mr_status mr_scratch_new(mr_kernel_call *call, int64_t count, mr_buffer **buffer, float **floats, mr_error *error);

#endif
