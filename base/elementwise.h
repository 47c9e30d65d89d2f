/* Elementwise operators, as their kernels describe them: the loop that computes a row, and the rule for the shapes of
 * the operands. Several of them that depend on each other can be one call, the kernel MR_ELEMENTWISE_OP, which computes
 * a piece of all results before the next piece, so that what only flows between them stays in the cache. */
#ifndef MR_BASE_ELEMENTWISE_H
#define MR_BASE_ELEMENTWISE_H

#include <millrace/tensor.h>

/* How a row's operands advance. */
typedef enum mr_operands {
    MR_BOTH_ROWS,
    MR_A_SCALAR, /* a is one element */
    MR_B_SCALAR,
} mr_operands;
/* Computes the elements of a row from those of one or two others. The target may be one of these. */
typedef void (*mr_unary_loop)(void *target, const void *source, int64_t count);
typedef void (*mr_binary_loop)(void *target, const void *a, const void *b, int64_t count, mr_operands operands);
/* Reduces a row to one element. The bits are those of the operator, for rows of up to MR_ROW_BYTES_MAX. */
typedef void (*mr_row_reduction)(void *target, const void *row, int64_t count);
constexpr int64_t MR_ROW_BYTES_MAX = 8192;

/* Which shapes a and b may have. The result has the shape of a, except where they are broadcast. */
typedef enum mr_operand_rule {
    MR_OPERANDS_BROADCAST,
    MR_OPERANDS_SAME_SHAPE,
    MR_OPERANDS_SAME_COUNT, /* as many elements; reported with another message */
    MR_OPERANDS_BIAS,       /* b is a vector that is added along the last dimension of a */
} mr_operand_rule;

typedef struct mr_elementwise {
    mr_unary_loop unary; /* null: there are two operands */
    mr_binary_loop binary;
    mr_operand_rule rule;
    mr_row_reduction reduce; /* set alone: the operator is no elementwise one, but a reduction of the last dimension */
} mr_elementwise;

/* Elementwise operators around reductions of the last dimension are one call, too, which computes some rows at a time:
 * what the result of a step has for each row. */
typedef enum mr_row_form {
    MR_ROW_WHOLE,    /* all elements of the row */
    MR_ROW_KEPT,     /* one element, in a last dimension of 1 */
    MR_ROW_DROPPED,  /* one element, without that dimension */
    MR_ROW_REPEATED, /* one element, which all of the row have */
} mr_row_form;

/* The shape of a result with one element for each row of another one, in the form MR_ROW_KEPT or MR_ROW_DROPPED. */
static inline mr_shape mr_narrow_shape(mr_shape wide, mr_row_form form)
{
    if (form == MR_ROW_KEPT)
        wide.dims[wide.rank - 1] = 1;
    else
        wide.rank--;
    return wide;
}

/* The attrs of MR_ELEMENTWISE_OP:
 *   forms     only if there are reductions: by step, an mr_row_form
 *   T         the dtype of all operands and results
 *   nodes     by step: the name of the node that it computes, for errors
 *   operands  two by step: the number of an input, or -1 - the number of an earlier step; the second of a step with one
 *             operand is the first
 *   ops       by step: the operator, whose kernel describes itself; one that moves elements of rows does not
 *   outputs   by output: the number of its step
 * The planner writes them; its strings end with a zero. */
#define MR_ELEMENTWISE_OP "_Elementwise"
constexpr int32_t MR_ELEMENTWISE_STEPS_MAX = 32, MR_ELEMENTWISE_INPUTS_MAX = 12, MR_ELEMENTWISE_OUTPUTS_MAX = 8;

#endif
