/* MatMul and BatchMatMul. */
#include "kernels/matmul.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "kernels/transpose.h"
#include <assert.h>
#include <string.h>

/* The inner two dims of x and y as a product; an error if they do not match. */
static mr_status product_of(mr_kernel_call *call, bool x_transposed, bool y_transposed, mr_product *p, mr_error *error)
{
    mr_shape x = call->inputs[0].shape, y = call->inputs[1].shape;
    const int64_t *xd = x.dims + x.rank - 2, *yd = y.dims + y.rank - 2;
    *p = (mr_product){.a_transposed = x_transposed, .b_transposed = y_transposed};
    p->m = xd[x_transposed ? 1 : 0];
    p->k = xd[x_transposed ? 0 : 1];
    p->n = yd[y_transposed ? 0 : 1];
    p->a = call->inputs[0].data;
    p->b = call->inputs[1].data;
    if (p->k != yd[y_transposed ? 1 : 0]) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                              mr_shape_text(x, a, sizeof a), mr_shape_text(y, b, sizeof b));
    }
    return MR_OK;
}

static mr_status equal_ranks(const mr_kernel_call *call, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    mr_shape x = call->inputs[0].shape, y = call->inputs[1].shape;
    if (x.rank == y.rank) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[0] and In[1] has different ndims: %s vs. %s",
                          mr_shape_text(x, a, sizeof a), mr_shape_text(y, b, sizeof b));
}

/* Half types are computed in float, except products of pairs. */
static bool is_half_operand(const mr_kernel_call *call, const mr_product *p)
{
    return mr_kernel_has_half(call) && (call->inputs[0].dtype != MR_BFLOAT16 || !mr_product_is_pairs(p));
}

static mr_status mat_mul(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0];
    mr_product p;
    MR_TRY(equal_ranks(call, error));
    if (a->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[0] and In[1] ndims must be == 2: %d",
                              a->shape.rank);
    MR_TRY(product_of(call, mr_attr_bool_or(call->node->attrs, "transpose_a", false),
                      mr_attr_bool_or(call->node->attrs, "transpose_b", false), &p, error));
    const bool is_dots = a->dtype == MR_BFLOAT16 && mr_product_is_bfloat16_dots(&p);
    if (!is_dots && is_half_operand(call, &p)) return mr_kernel_as_float(call, mat_mul, error);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(p.m, p.n), error));
    p.c = call->outputs[0].data;
    if (is_dots) {
        mr_product_bfloat16_dots(&p, call->device->pool);
        return MR_OK;
    }
    if (a->dtype == MR_BFLOAT16) return mr_product_pairs_run(call, &p, nullptr, error);
    return mr_product_run(call, a->dtype, &p, nullptr, error);
}

/* Which operands of a batched product have heads: [batch, rows, heads, columns] instead of [batch, heads, rows,
 * columns]. */
typedef struct operand_heads {
    bool x, y, z;
} operand_heads;

static mr_status batch_shapes(const mr_kernel_call *call, const mr_shape *x, const mr_shape *y, mr_product_batch *batch,
                              mr_error *error)
{
    mr_shape x_batch = *x, y_batch = *y;
    x_batch.rank -= 2;
    y_batch.rank -= 2;
    if (mr_kernel_broadcast(call, x_batch, y_batch, &batch->shape, nullptr) != MR_OK) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                              mr_shape_text(*x, a, sizeof a), mr_shape_text(*y, b, sizeof b));
    }
    mr_broadcast_strides(x_batch, batch->shape, batch->a_strides);
    mr_broadcast_strides(y_batch, batch->shape, batch->b_strides);
    return MR_OK;
}

/* The distances of the matrices and rows of an operand with heads. Its own batch is the last two dimensions of the
 * products' batch, which has these strides. */
static void place_heads(const mr_shape *swapped, const mr_shape *batch, int64_t strides[MR_RANK_MAX], int64_t *matrix,
                        int64_t *row)
{
    const int64_t heads = swapped->dims[1], rows = swapped->dims[2], columns = swapped->dims[3];
    assert(swapped->rank == 4 && batch->rank >= 2);
    if (strides[batch->rank - 2] > 0) strides[batch->rank - 2] = rows * heads;
    *matrix = columns;
    *row = heads * columns;
}

static mr_status batch_product(mr_kernel_call *call, operand_heads heads, mr_error *error)
{
    const mr_tensor *x = &call->inputs[0], *y = &call->inputs[1];
    mr_product p;
    mr_product_batch batch = {};
    for (int i = 0; i < 2; i++)
        if (call->inputs[i].shape.rank < 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[%d] ndims must be >= 2: %d", i,
                                  call->inputs[i].shape.rank);
    MR_TRY(product_of(call, mr_attr_bool_or(call->node->attrs, "adj_x", false),
                      mr_attr_bool_or(call->node->attrs, "adj_y", false), &p, error));
    p.a_conjugated = p.a_transposed;
    p.b_conjugated = p.b_transposed;
    MR_TRY(batch_shapes(call, &x->shape, &y->shape, &batch, error));
    mr_shape shape = batch.shape;
    shape.dims[shape.rank++] = p.m;
    shape.dims[shape.rank++] = p.n;
    mr_shape stored = shape;
    if (heads.z) {
        stored.dims[1] = shape.dims[2];
        stored.dims[2] = shape.dims[1];
    }
    MR_TRY(mr_kernel_output(call, 0, stored, error));
    p.c = call->outputs[0].data;
    if (mr_shape_count(shape) == 0) return MR_OK;
    if (heads.x) place_heads(&x->shape, &batch.shape, batch.a_strides, &batch.a_matrix, &p.a_row);
    if (heads.y) place_heads(&y->shape, &batch.shape, batch.b_strides, &batch.b_matrix, &p.b_row);
    if (heads.z) {
        mr_shape_strides(batch.shape, batch.c_strides);
        place_heads(&shape, &batch.shape, batch.c_strides, &batch.c_matrix, &p.c_row);
    }
    if (x->dtype == MR_BFLOAT16) return mr_product_pairs_run(call, &p, &batch, error);
    return mr_product_run(call, x->dtype, &p, &batch, error);
}

static mr_status batch_mat_mul(mr_kernel_call *call, mr_error *error)
{
    mr_product p;
    if (call->inputs[0].shape.rank >= 2 && call->inputs[1].shape.rank >= 2) {
        MR_TRY(product_of(call, mr_attr_bool_or(call->node->attrs, "adj_x", false),
                          mr_attr_bool_or(call->node->attrs, "adj_y", false), &p, error));
        if (is_half_operand(call, &p)) return mr_kernel_as_float(call, batch_mat_mul, error);
    }
    return batch_product(call, (operand_heads){}, error);
}

/* The first version does not broadcast. */
static mr_status equal_batches(const mr_kernel_call *call, mr_error *error)
{
    const mr_shape *x = &call->inputs[0].shape, *y = &call->inputs[1].shape;
    MR_TRY(equal_ranks(call, error));
    for (int i = 0; i < x->rank - 2; i++)
        if (x->dims[i] != y->dims[i]) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "In[0].dim(%d) and In[1].dim(%d) must be the same: %s vs %s", i, i,
                                  mr_shape_text(*x, a, sizeof a), mr_shape_text(*y, b, sizeof b));
        }
    return MR_OK;
}

static mr_status batch_mat_mul_equal(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(equal_batches(call, error));
    return batch_mat_mul(call, error);
}

/* ---- Kernels that the planner uses (graph/plan/fuse_heads.c): as if operands with heads had been transposed ---- */

static mr_status product_of_heads(mr_kernel_call *call, bool broadcasts, mr_error *error)
{
    const mr_attrs *attrs = call->node->attrs;
    const operand_heads heads = {mr_attr_bool_or(attrs, "x_heads", false), mr_attr_bool_or(attrs, "y_heads", false),
                                 mr_attr_bool_or(attrs, "z_heads", false)};
    mr_tensor inputs[2];
    mr_kernel_call swapped = *call;
    swapped.inputs = inputs;
    for (int i = 0; i < 2; i++) {
        inputs[i] = call->inputs[i];
        if (!(i == 0 ? heads.x : heads.y)) continue;
        assert(inputs[i].shape.rank == 4);
        inputs[i].shape.dims[1] = call->inputs[i].shape.dims[2];
        inputs[i].shape.dims[2] = call->inputs[i].shape.dims[1];
    }
    if (!broadcasts) MR_TRY(equal_batches(&swapped, error));
    return batch_product(&swapped, heads, error);
}

static mr_status batch_mat_mul_heads(mr_kernel_call *call, mr_error *error)
{
    return product_of_heads(call, false, error);
}

static mr_status batch_mat_mul_v2_heads(mr_kernel_call *call, mr_error *error)
{
    return product_of_heads(call, true, error);
}

/* Converts 8-bit integers to the type of the product: int32, or bfloat16's float. */
static mr_status widen_bytes(const mr_tensor *source, mr_dtype dtype, mr_tensor *target, mr_error *error)
{
    if (source->dtype != MR_INT8 && source->dtype != MR_UINT8) {
        *target = mr_tensor_ref(source);
        return MR_OK;
    }
    MR_TRY(mr_tensor_init(target, dtype, source->shape, error));
    for (int64_t i = 0, count = mr_tensor_count(source); i < count; i++) {
        int value = source->dtype == MR_INT8 ? ((const int8_t *)source->data)[i] : ((const uint8_t *)source->data)[i];
        if (dtype == MR_INT32)
            ((int32_t *)target->data)[i] = value;
        else
            ((float *)target->data)[i] = (float)value;
    }
    return MR_OK;
}

static mr_status batch_mat_mul_v3(mr_kernel_call *call, mr_error *error)
{
    mr_dtype dtype = call->node->output_dtypes[0];
    if (call->inputs[0].dtype == dtype && call->inputs[1].dtype == dtype) return batch_mat_mul(call, error);
    MR_HALF_AS_FLOAT(batch_mat_mul_v3);
    mr_tensor inputs[2] = {0};
    mr_kernel_call wide = *call;
    bool has_bytes = call->inputs[0].dtype != dtype || call->inputs[1].dtype != dtype;
    mr_status status = MR_OK;
    if (has_bytes && dtype != MR_INT32 && dtype != MR_FLOAT) status = mr_kernel_unsupported(call->node, error);
    if (status == MR_OK) status = widen_bytes(&call->inputs[0], dtype, &inputs[0], error);
    if (status == MR_OK) status = widen_bytes(&call->inputs[1], dtype, &inputs[1], error);
    if (status == MR_OK && (inputs[0].dtype != dtype || inputs[1].dtype != dtype))
        status = mr_kernel_unsupported(call->node, error);
    wide.inputs = inputs;
    if (status == MR_OK) status = batch_mat_mul(&wide, error);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&inputs[i]);
    return status;
}

/* ---- Kernels that the planner uses (graph/plan/fuse_products.c) ---- */

/* The rows of several matrices, one after the other. */
static float *append_rows(float *to, const mr_tensor *matrices, int count)
{
    for (int i = 0; i < count; i++) {
        size_t size_bytes = mr_tensor_size_bytes(&matrices[i]);
        if (size_bytes > 0) memcpy(to, matrices[i].data, size_bytes);
        to += size_bytes / sizeof *to;
    }
    return to;
}

/* a_0ᵀ · b_0 + a_1ᵀ · b_1 + … with inputs a_0, a_1, …, b_0, b_1, … */
static mr_status sum_of_mat_muls(mr_kernel_call *call, mr_error *error)
{
    const int count = call->node->input_count / 2;
    const mr_tensor *a = call->inputs, *b = call->inputs + count;
    mr_product p = {.a_transposed = true};
    assert(count >= 1);
    for (int i = 0; i < count; i++) {
        char left[MR_SHAPE_TEXT_SIZE], right[MR_SHAPE_TEXT_SIZE];
        const mr_shape x = a[i].shape, y = b[i].shape;
        if (x.rank != 2 || y.rank != 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[0] and In[1] ndims must be == 2: %d",
                                  x.rank != 2 ? x.rank : y.rank);
        if (x.dims[0] != y.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Matrix size-incompatible: In[0]: %s, In[1]: %s", mr_shape_text(x, left, sizeof left),
                                  mr_shape_text(y, right, sizeof right));
        if (x.dims[1] != a[0].shape.dims[1] || y.dims[1] != b[0].shape.dims[1])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Inputs to operation must have the same size and shape. Input 0: %s != input %d: %s",
                                  mr_shape_text(MR_SHAPE(a[0].shape.dims[1], b[0].shape.dims[1]), left, sizeof left), i,
                                  mr_shape_text(MR_SHAPE(x.dims[1], y.dims[1]), right, sizeof right));
        p.k += x.dims[0];
    }
    p.m = a[0].shape.dims[1];
    p.n = b[0].shape.dims[1];
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(p.m, p.n), error));
    p.c = call->outputs[0].data;
    int64_t floats;
    if (__builtin_mul_overflow(p.k, p.m + p.n, &floats))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the scratch memory is too large");
    mr_buffer *buffer;
    float *rows;
    MR_TRY(mr_scratch_new(call, floats, &buffer, &rows, error));
    p.a = rows;
    p.b = rows ? append_rows(rows, a, count) : nullptr;
    if (rows) append_rows(rows + p.k * p.m, b, count);
    mr_status status = mr_product_run(call, MR_FLOAT, &p, nullptr, error);
    mr_buffer_unref(buffer);
    return status;
}

/* The product and an operand of another shape than the fused kernel's: as the operator that adds them does it. */
static mr_status add_product(mr_kernel_call *call, const char *op, mr_product *p, const mr_tensor *operand,
                             mr_error *error)
{
    const mr_kernel *add = mr_kernel_find(op, MR_DEVICE_CPU, call->node->attrs);
    mr_tensor inputs[2] = {[1] = *operand};
    if (add == nullptr) return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_tensor_init(&inputs[0], MR_FLOAT, MR_SHAPE(p->m, p->n), error));
    p->c = inputs[0].data;
    mr_status status = mr_product_run(call, MR_FLOAT, p, nullptr, error);
    mr_kernel_node node = *call->node;
    node.input_count = 2;
    mr_kernel_call sum = *call;
    sum.node = &node;
    sum.inputs = inputs;
    sum.may_reuse = nullptr;
    if (status == MR_OK) status = add->run(&sum, error);
    mr_tensor_deinit(&inputs[0]);
    return status;
}

/* The product of two matrices among the inputs. */
static mr_status fused_product(const mr_kernel_call *call, int32_t first, mr_product *p, mr_error *error)
{
    mr_kernel_call product = *call;
    product.inputs = call->inputs + first;
    const mr_shape a = product.inputs[0].shape, b = product.inputs[1].shape;
    if (a.rank != 2 || b.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[0] and In[1] ndims must be == 2: %d",
                              a.rank != 2 ? a.rank : b.rank);
    return product_of(&product, mr_attr_bool_or(call->node->attrs, "transpose_a", false),
                      mr_attr_bool_or(call->node->attrs, "transpose_b", false), p, error);
}

/* Input 0 · input 1 + input 2, a vector that is added to every row. */
static mr_status mat_mul_bias(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *bias = &call->inputs[2];
    mr_product p;
    MR_TRY(fused_product(call, 0, &p, error));
    if (bias->shape.rank != 1 || bias->shape.dims[0] != p.n) return add_product(call, "BiasAdd", &p, bias, error);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(p.m, p.n), error));
    p.c = call->outputs[0].data;
    p.bias = bias->data;
    return mr_product_run(call, MR_FLOAT, &p, nullptr, error);
}

/* Input 0 + input 1 · input 2, in the memory of input 0 if nothing else uses it. A product whose parts would be added
 * to input 0 one by one is computed before, as if the two were not one call. */
static mr_status accumulate_mat_mul(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *sum = &call->inputs[0], *a = &call->inputs[1], *b = &call->inputs[2];
    mr_product p;
    MR_TRY(fused_product(call, 1, &p, error));
    const mr_shape shape = MR_SHAPE(p.m, p.n);
    if (!mr_shape_equal(sum->shape, shape) || p.k > MR_GEMM_STEPS_MAX)
        return add_product(call, "AddV2", &p, sum, error);
    const void *before = sum->data;
    const size_t size_bytes = mr_tensor_size_bytes(sum);
    if (sum->buffer == a->buffer || sum->buffer == b->buffer)
        MR_TRY(mr_kernel_output(call, 0, shape, error)); /* the product still reads it */
    else
        MR_TRY(mr_kernel_forward(call, 0, 0, shape, error));
    p.c = call->outputs[0].data;
    if (p.c != before && size_bytes > 0) memcpy(p.c, before, size_bytes);
    p.accumulate = true;
    return mr_product_run(call, MR_FLOAT, &p, nullptr, error);
}

typedef struct transpose_job {
    const float *source;
    float *target;
    int64_t rows, columns; /* of the source */
} transpose_job;

constexpr int64_t TRANSPOSED_ROWS = 16; /* at a time */

/* Rows of the source, which are columns of the target. */
static void transpose_rows(void *context, int64_t begin, int64_t end)
{
    const transpose_job *job = context;
    const int64_t from = begin * TRANSPOSED_ROWS, to = MR_MIN(end * TRANSPOSED_ROWS, job->rows);
    mr_transpose(job->target + from, job->rows, job->source + from * job->columns, job->columns, job->columns,
                 to - from, sizeof(float));
}

static mr_status transpose_matrix(mr_kernel_call *call, mr_error *error)
{
    const mr_shape shape = call->inputs[0].shape;
    if (shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[0] and In[1] ndims must be == 2: %d",
                              shape.rank);
    transpose_job job = {call->inputs[0].data, nullptr, shape.dims[0], shape.dims[1]};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(job.columns, job.rows), error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, (job.rows + TRANSPOSED_ROWS - 1) / TRANSPOSED_ROWS,
                MR_MAX(1, MR_GRAIN / TRANSPOSED_ROWS / MR_MAX(1, job.columns)), transpose_rows, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "_SumOfMatMuls", .run = sum_of_mat_muls},
    {.op = "_AccumulateMatMul", .run = accumulate_mat_mul},
    {.op = "_TransposeMatrix", .run = transpose_matrix},
    {.op = "_MatMulBias", .run = mat_mul_bias},
    {.op = "MatMul", .run = mat_mul},
    {.op = "_BatchMatMulHeads", .types = "T: float", .run = batch_mat_mul_heads},
    {.op = "_BatchMatMulV2Heads", .types = "T: float", .run = batch_mat_mul_v2_heads},
    {.op = "BatchMatMul", .run = batch_mat_mul_equal},
    {.op = "BatchMatMulV2", .run = batch_mat_mul},
    {.op = "BatchMatMulV3", .run = batch_mat_mul_v3},
    {.op = "SparseMatMul", .run = mat_mul},
};
MR_KERNEL_FAMILY(matmul);
