/* The equations of Einsum: "ab,bc->ac", "...ij,...jk->...ik". */
#ifndef MR_BASE_EINSUM_H
#define MR_BASE_EINSUM_H

#include <millrace/tensor.h>

/* Labels: 0 … 51 are a … z and A … Z; MR_EINSUM_ELLIPSIS + i is dimension i of the ellipsis, counted from the last
 * one. */
constexpr int MR_EINSUM_ELLIPSIS = 52;
constexpr int MR_EINSUM_LABELS = MR_EINSUM_ELLIPSIS + MR_RANK_MAX;

/* The dimensions of one operand, in order. */
typedef struct mr_einsum_operand {
    int rank;
    int8_t labels[MR_RANK_MAX];
} mr_einsum_operand;

typedef struct mr_einsum {
    int input_count;
    mr_einsum_operand inputs[2];
    mr_einsum_operand output;
} mr_einsum;

/* Parses an equation with `count` inputs of the given ranks.
 * errors  MR_INVALID_ARGUMENT, with the reason */
mr_status mr_einsum_parse(mr_string equation, int count, const int32_t *ranks, mr_einsum *einsum, mr_error *error);

#endif
