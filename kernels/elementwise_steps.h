/* The steps of a call that computes several elementwise nodes, and its job: shared by elementwise_chain.c and
 * elementwise_rows.c. */
#ifndef MR_KERNELS_ELEMENTWISE_STEPS_H
#define MR_KERNELS_ELEMENTWISE_STEPS_H

#include "kernels/elementwise.h"

#include <assert.h>

/* Buffers for the results of steps, which are on the stack. Chains that need more are computed step by step. */
constexpr int32_t MR_STEP_BUFFERS_MAX = 16;
/* Between the buffers of a call, so that they do not all begin in the same sets of the cache. */
constexpr size_t MR_STEP_BUFFER_GAP = 192;

/* Operands are numbers of inputs, or -1 - the number of a step. */
typedef struct mr_step {
    mr_elementwise loops;
    mr_row_form form;
    bool moves; /* the same elements in another shape; loops.unary copies them */
    int32_t a, b;
    int32_t output; /* -1: none */
    int32_t buffer; /* of a result that is no output, or is repeated in its rows; otherwise -1 */
    const char *node, *op;
} mr_step;

typedef struct mr_chain {
    mr_dtype dtype;
    bool has_rows; /* reductions: the forms of the steps differ */
    int32_t input_count, step_count, output_count, buffer_count;
    mr_step steps[MR_ELEMENTWISE_STEPS_MAX];
    int32_t last_step[MR_ELEMENTWISE_INPUTS_MAX]; /* that reads the input */
} mr_chain;

/* How a loop reads its operands, of which at most one is a single element. */
static inline mr_operands mr_operands_of(bool a_scalar, bool b_scalar)
{
    assert(!a_scalar || !b_scalar);
    return a_scalar ? MR_A_SCALAR : b_scalar ? MR_B_SCALAR : MR_BOTH_ROWS;
}

/* Where the inputs and outputs of a call are. Inputs are read before outputs take their place. */
typedef struct mr_chain_data {
    const char *inputs[MR_ELEMENTWISE_INPUTS_MAX];
    char *outputs[MR_ELEMENTWISE_OUTPUTS_MAX];
    bool replaces_input[MR_ELEMENTWISE_OUTPUTS_MAX]; /* the output has the memory of an input */
} mr_chain_data;

/* ---- Chains with reductions ---- */

/* Whether the shapes of the results are what the forms of their steps say, so that mr_rows_run can compute them. *wide:
 * that of a whole result. */
bool mr_rows_fit(const mr_chain *chain, const mr_shape *inputs, const mr_shape *results, mr_shape *wide);
/* Computes the outputs, which have been allocated. */
void mr_rows_run(const mr_chain *chain, const mr_shape *inputs, mr_shape wide, const mr_chain_data *data,
                 mr_pool *pool);

#endif
