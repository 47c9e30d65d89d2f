/* Combining rows that belong to one segment: sum, product, maximum and minimum of any dtype. */
#ifndef MR_KERNELS_SEGMENT_ROWS_H
#define MR_KERNELS_SEGMENT_ROWS_H

#include "kernels/common.h"

typedef enum mr_segment_kind {
    MR_SEGMENT_SUM,
    MR_SEGMENT_PRODUCT,
    MR_SEGMENT_MAXIMUM,
    MR_SEGMENT_MINIMUM,
    MR_SEGMENT_KIND_COUNT,
} mr_segment_kind;

/* fill     sets count accumulators to the neutral element; that of a maximum is the lowest finite number
 * combine  accumulator[i] op= row[i]. A NaN in a row does not change a maximum or minimum
 * divide   accumulator[i] /= divisor, a number of rows or its square root */
typedef struct mr_segment_rows {
    void (*fill)(void *accumulator, int64_t count);
    void (*combine)(void *accumulator, const void *row, int64_t count);
    void (*divide)(void *accumulator, int64_t count, double divisor);
} mr_segment_rows;

/* What the sum of a segment is divided by. */
typedef enum mr_segment_divisor { MR_SEGMENT_UNDIVIDED, MR_SEGMENT_BY_COUNT, MR_SEGMENT_BY_ROOT } mr_segment_divisor;
double mr_segment_divisor_of(mr_segment_divisor divisor, int64_t count);

/* The functions of a dtype; null where there are none: complex numbers have no order. */
const mr_segment_rows *mr_segment_rows_find(mr_segment_kind kind, mr_dtype dtype);

#endif
