/* Products of bfloat16 numbers by instructions that multiply pairs: the operands become matrices of pairs along the
 * inner dimension, which gemm.h multiplies as it does floats. */
#include "base/buffer.h"
#include "base/halves.h"
#include "kernels/gemm.h"
#include "kernels/matmul.h"
#include <assert.h>

constexpr int64_t LEAST_WORK = 1 << 14; /* multiplications */

bool mr_product_is_pairs(const mr_product *p)
{
    if (!mr_cpu_has_bf16() || p->m < 2 || p->n < 2 || p->k < 2) return false;
    return (double)p->m * (double)p->n * (double)p->k >= (double)LEAST_WORK;
}

typedef uint32_t pair __attribute__((may_alias)); /* in the place of a float */

/* `count` matrices [rows, columns] of bfloat16 numbers. */
typedef struct operand {
    const uint16_t *source;
    pair *target;
    int64_t rows, columns;
    bool along_rows; /* a pair is two numbers of one row; otherwise of one column */
} operand;

static int64_t pairs_of(int64_t count)
{
    return (count + 1) / 2;
}

/* Pairs of rows of a matrix or, along rows, whole rows. The last number has zero beside it if their count is odd. */
static void make_pairs(void *context, int64_t begin, int64_t end)
{
    const operand *o = context;
    const int64_t columns = o->columns, of_matrix = pairs_of(o->rows), width = pairs_of(columns);
    for (int64_t i = begin; i < end && o->along_rows; i++) {
        const uint16_t *from = o->source + i * columns;
        pair *to = o->target + i * width;
        for (int64_t k = 0; k < columns / 2; k++) to[k] = from[2 * k] | (uint32_t)from[2 * k + 1] << 16;
        if (columns % 2) to[width - 1] = from[columns - 1];
    }
    for (int64_t i = begin; i < end && !o->along_rows; i++) {
        const int64_t row = i % of_matrix * 2;
        const uint16_t *low = o->source + (i / of_matrix * o->rows + row) * columns, *high = low + columns;
        pair *to = o->target + i * columns;
        if (row + 1 < o->rows)
            for (int64_t j = 0; j < columns; j++) to[j] = low[j] | (uint32_t)high[j] << 16;
        else
            for (int64_t j = 0; j < columns; j++) to[j] = low[j];
    }
}

/* Whether the numbers of the operand are pairs already. */
static bool is_paired(const operand *o)
{
    return o->along_rows && o->columns % 2 == 0;
}

/* Pairs of `count` matrices; the number of pairs in *size. */
static bool pairs_size(const operand *o, int64_t count, int64_t *size)
{
    *size = 0;
    if (is_paired(o)) return true;
    const int64_t rows = o->along_rows ? o->rows : pairs_of(o->rows);
    const int64_t columns = o->along_rows ? pairs_of(o->columns) : o->columns;
    return !__builtin_mul_overflow(rows, columns, size) && !__builtin_mul_overflow(*size, count, size);
}

static const void *set_pairs(operand *o, int64_t count, float *scratch, mr_pool *pool)
{
    if (is_paired(o)) return o->source;
    o->target = (pair *)scratch;
    const int64_t rows = count * (o->along_rows ? o->rows : pairs_of(o->rows));
    mr_pool_for(pool, rows, MR_MAX(1, MR_GRAIN / MR_MAX(1, o->columns)), make_pairs, o);
    return scratch;
}

typedef struct rounding {
    const float *source;
    uint16_t *target;
} rounding;

static void round_range(void *context, int64_t begin, int64_t end)
{
    const rounding *r = context;
    mr_floats_to_halves(r->target + begin, r->source + begin, end - begin, MR_BFLOAT16);
}

mr_status mr_product_pairs_run(mr_kernel_call *call, const mr_product *product, const mr_product_batch *batch,
                               mr_error *error)
{
    const mr_product *p = product;
    const int64_t c_count = mr_tensor_count(&call->outputs[0]);
    if (c_count == 0) return MR_OK; /* the other dims may then be so large that their products overflow */
    const int64_t a_count = mr_tensor_count(&call->inputs[0]) / (p->m * p->k);
    const int64_t b_count = mr_tensor_count(&call->inputs[1]) / (p->k * p->n);
    operand a = {.source = p->a, .rows = p->a_transposed ? p->k : p->m, .columns = p->a_transposed ? p->m : p->k};
    operand b = {.source = p->b, .rows = p->b_transposed ? p->n : p->k, .columns = p->b_transposed ? p->k : p->n};
    int64_t a_size, b_size, size;
    mr_buffer *buffer;
    float *scratch;
    assert(mr_product_is_pairs(p) && !p->accumulate && p->bias == nullptr);
    a.along_rows = !p->a_transposed;
    b.along_rows = p->b_transposed;
    if (!pairs_size(&a, a_count, &a_size) || !pairs_size(&b, b_count, &b_size) ||
        __builtin_add_overflow(a_size, b_size, &size) || __builtin_add_overflow(size, c_count, &size))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the scratch memory is too large");
    MR_TRY(mr_scratch_new(call, size, &buffer, &scratch, error));
    mr_product pairs = *p;
    pairs.pairs = true;
    pairs.k = pairs_of(p->k);
    pairs.c = scratch;
    pairs.a = set_pairs(&a, a_count, scratch + c_count, call->device->pool);
    pairs.b = set_pairs(&b, b_count, scratch + c_count + a_size, call->device->pool);
    mr_status status = mr_product_run(call, MR_FLOAT, &pairs, batch, error);
    rounding r = {scratch, p->c};
    if (status == MR_OK) mr_pool_for(call->device->pool, c_count, MR_GRAIN, round_range, &r);
    mr_buffer_unref(buffer);
    return status;
}
