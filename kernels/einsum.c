/* Einsum: sums over the labels of one operand alone, then one batched matrix product. Each operand is copied to
 * [batch labels, labels of the operand alone, labels that are multiplied and summed]; the product is copied to the
 * output, whose repeated labels are a diagonal. */
#include "base/einsum.h"
#include "kernels/matmul.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The labels of a group, with their sizes. */
typedef struct group {
    int count;
    int labels[MR_EINSUM_LABELS];
    int64_t size;
} group;

typedef struct einsum {
    mr_einsum equation;
    int64_t sizes[MR_EINSUM_LABELS]; /* -1: unused */
    group batch, alone[2], shared, summed[2];
} einsum;

static bool has(const mr_einsum_operand *operand, int label)
{
    for (int d = 0; d < operand->rank; d++)
        if (operand->labels[d] == label) return true;
    return false;
}

static mr_status add_label(const mr_kernel_call *call, einsum *e, group *to, int label, mr_error *error)
{
    to->labels[to->count++] = label;
    if (__builtin_mul_overflow(to->size, e->sizes[label], &to->size))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the dimensions are too large");
    return MR_OK;
}

static mr_status read_sizes(const mr_kernel_call *call, einsum *e, mr_error *error)
{
    for (int i = 0; i < MR_EINSUM_LABELS; i++) e->sizes[i] = -1;
    for (int i = 0; i < e->equation.input_count; i++)
        for (int d = 0; d < e->equation.inputs[i].rank; d++) {
            int label = (uint8_t)e->equation.inputs[i].labels[d];
            int64_t size = call->inputs[i].shape.dims[d], *known = &e->sizes[label];
            bool broadcasts = label >= MR_EINSUM_ELLIPSIS;
            if (*known == -1 || (broadcasts && *known == 1))
                *known = size;
            else if (size != *known && !(broadcasts && size == 1))
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "Expected dimension %" PRId64 " at axis %d of the input shaped %d but got "
                                      "dimension %" PRId64,
                                      *known, d, i, size);
        }
    return MR_OK;
}

static mr_status classify(const mr_kernel_call *call, einsum *e, mr_error *error)
{
    group *groups[] = {&e->batch, &e->alone[0], &e->alone[1], &e->shared, &e->summed[0], &e->summed[1]};
    for (int i = 0; i < 6; i++) *groups[i] = (group){.size = 1};
    for (int label = 0; label < MR_EINSUM_LABELS; label++) {
        if (e->sizes[label] < 0) continue;
        bool a = has(&e->equation.inputs[0], label), out = has(&e->equation.output, label);
        bool b = e->equation.input_count > 1 && has(&e->equation.inputs[1], label);
        group *to = a && b ? (out ? &e->batch : &e->shared) : out ? &e->alone[a ? 0 : 1] : &e->summed[a ? 0 : 1];
        MR_TRY(add_label(call, e, to, label, error));
    }
    return MR_OK;
}

/* The stride of a label in a tensor: the sum of those of its dimensions, or 0 if it is broadcast. */
static int64_t stride_of(const mr_einsum_operand *operand, mr_shape shape, int label)
{
    int64_t strides[MR_RANK_MAX], sum = 0;
    mr_shape_strides(shape, strides);
    for (int d = 0; d < operand->rank; d++)
        if (operand->labels[d] == label && !(label >= MR_EINSUM_ELLIPSIS && shape.dims[d] == 1)) sum += strides[d];
    return sum;
}

/* Appends the dimensions of a group to a copy between a dense array and a tensor. */
static void append(const einsum *e, const group *from, const mr_einsum_operand *operand, mr_shape shape, int64_t *dims,
                   int64_t *strides, int *rank)
{
    for (int i = 0; i < from->count; i++, ++*rank) {
        dims[*rank] = e->sizes[from->labels[i]];
        strides[*rank] = stride_of(operand, shape, from->labels[i]);
    }
}

/* Copies of scalars have one dimension, of one element. */
static void finish_dims(mr_copy *copy)
{
    if (copy->rank > 0) return;
    copy->rank = 1;
    copy->dims[0] = 1;
}

static void dense_strides(const int64_t *dims, int rank, int64_t *strides)
{
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= dims[d];
    }
}

#define SUM(dtype, type, suffix)                                                                                       \
    static void sum_##suffix(void *target, const void *source, int64_t rows, int64_t columns)                          \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            type sum = 0;                                                                                              \
            for (int64_t c = 0; c < columns; c++) sum += ((const type *)source)[r * columns + c];                      \
            ((type *)target)[r] = sum;                                                                                 \
        }                                                                                                              \
    }
SUM(MR_FLOAT, float, float)
SUM(MR_DOUBLE, double, double)
SUM(MR_INT32, uint32_t, int32)
SUM(MR_INT64, uint64_t, int64)

#define SUM_COMPLEX(type, suffix)                                                                                      \
    static void sum_##suffix(void *target, const void *source, int64_t rows, int64_t columns)                          \
    {                                                                                                                  \
        const type *from = source;                                                                                     \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            type re = 0, im = 0;                                                                                       \
            for (int64_t c = 0; c < columns; c++, from += 2) {                                                         \
                re += from[0];                                                                                         \
                im += from[1];                                                                                         \
            }                                                                                                          \
            ((type *)target)[2 * r] = re;                                                                              \
            ((type *)target)[2 * r + 1] = im;                                                                          \
        }                                                                                                              \
    }
SUM_COMPLEX(float, complex64)
SUM_COMPLEX(double, complex128)

static void sum_rows(mr_dtype dtype, void *target, const void *source, int64_t rows, int64_t columns)
{
    (dtype == MR_FLOAT       ? sum_float
     : dtype == MR_DOUBLE    ? sum_double
     : dtype == MR_INT32     ? sum_int32
     : dtype == MR_INT64     ? sum_int64
     : dtype == MR_COMPLEX64 ? sum_complex64
                             : sum_complex128)(target, source, rows, columns);
}

static mr_status allocate(const mr_kernel_call *call, const int64_t *factors, int count, size_t size, void **memory,
                          mr_error *error)
{
    int64_t bytes = (int64_t)size;
    bool fails = false;
    for (int i = 0; i < count; i++) fails |= __builtin_mul_overflow(bytes, factors[i], &bytes);
    *memory = fails ? nullptr : malloc((size_t)MR_MAX(bytes, 1));
    return *memory != nullptr ? MR_OK : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Copies input i to [batch, alone, shared] (i = 0) or [batch, shared, alone] and sums over its other labels. */
static mr_status load(mr_kernel_call *call, const einsum *e, int i, void **dense, mr_error *error)
{
    const mr_tensor *input = &call->inputs[i];
    const mr_einsum_operand *operand = &e->equation.inputs[i];
    const group *order[4] = {&e->batch, i == 0 ? &e->alone[0] : &e->shared, i == 0 ? &e->shared : &e->alone[1],
                             &e->summed[i]};
    size_t size = mr_dtype_size(input->dtype);
    mr_copy copy = {.element_size = size, .source = input->data};
    int64_t sizes[4];
    for (int g = 0; g < 4; g++) {
        append(e, order[g], operand, input->shape, copy.dims, copy.source_strides, &copy.rank);
        sizes[g] = order[g]->size;
    }
    void *wide;
    MR_TRY(allocate(call, sizes, 4, size, &wide, error));
    finish_dims(&copy);
    dense_strides(copy.dims, copy.rank, copy.target_strides);
    copy.target = wide;
    if (sizes[0] * sizes[1] * sizes[2] * sizes[3] > 0) mr_copy_strided(copy, call->device->pool);
    *dense = wide;
    if (e->summed[i].count == 0) return MR_OK;
    mr_status status = allocate(call, sizes, 3, size, dense, error);
    if (status == MR_OK) sum_rows(input->dtype, *dense, wide, sizes[0] * sizes[1] * sizes[2], sizes[3]);
    free(wide);
    return status;
}

/* Copies [batch, alone 0, alone 1] to the output. */
static void store(mr_kernel_call *call, const einsum *e, const void *dense)
{
    mr_tensor *output = &call->outputs[0];
    mr_copy copy = {.element_size = mr_dtype_size(output->dtype), .source = dense, .target = output->data};
    const group *order[3] = {&e->batch, &e->alone[0], &e->alone[1]};
    for (int g = 0; g < 3; g++)
        append(e, order[g], &e->equation.output, output->shape, copy.dims, copy.target_strides, &copy.rank);
    finish_dims(&copy);
    dense_strides(copy.dims, copy.rank, copy.source_strides);
    mr_copy_strided(copy, call->device->pool);
}

static mr_status multiply(mr_kernel_call *call, const einsum *e, mr_error *error)
{
    mr_dtype dtype = call->outputs[0].dtype;
    int64_t sizes[3] = {e->batch.size, e->alone[0].size, e->alone[1].size};
    void *a = nullptr, *b = nullptr, *c = nullptr;
    mr_status status = load(call, e, 0, &a, error);
    if (status == MR_OK && e->equation.input_count == 1) {
        store(call, e, a);
        free(a);
        return MR_OK;
    }
    if (status == MR_OK) status = load(call, e, 1, &b, error);
    if (status == MR_OK) status = allocate(call, sizes, 3, mr_dtype_size(dtype), &c, error);
    if (status == MR_OK) {
        mr_product product = {sizes[1], sizes[2], e->shared.size, a, b, c};
        mr_product_batch batch = {.shape = MR_SHAPE(sizes[0]), .a_strides = {1}, .b_strides = {1}};
        status = mr_product_run(call, dtype, &product, &batch, error);
    }
    if (status == MR_OK) store(call, e, c);
    free(a);
    free(b);
    free(c);
    return status;
}

static mr_status run(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(run);
    einsum e;
    int32_t ranks[2] = {-1, -1};
    mr_string equation;
    MR_TRY(mr_attr_get_string(call->node->attrs, "equation", &equation, error));
    int count = call->node->input_count;
    if (count > 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expecting 1 or 2 input subscripts in equation but got: %d", count);
    for (int i = 0; i < count; i++) ranks[i] = call->inputs[i].shape.rank;
    mr_error reason = {0};
    mr_status status = mr_einsum_parse(equation, count, ranks, &e.equation, &reason);
    if (status != MR_OK) return mr_kernel_fail(call->node, error, status, "%s", reason.message);
    MR_TRY(read_sizes(call, &e, error));
    MR_TRY(classify(call, &e, error));
    mr_shape shape = {.rank = e.equation.output.rank};
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = e.sizes[e.equation.output.labels[d]];
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0])); /* beside a diagonal, and empty sums */
    return multiply(call, &e, error);
}

static const mr_kernel kernels[] = {
    {.op = "Einsum", .types = "T: bfloat16, half, float, double, complex64, complex128, int32, int64", .run = run},
};
MR_KERNEL_FAMILY(einsum);
