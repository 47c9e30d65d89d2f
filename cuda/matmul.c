/* Matrix products with cuBLAS, which is column-major: our row-major c = a b is c' = b' a' for cuBLAS. */
#include "cuda/matmul.h"

#include "cuda/kernels.h"
#include "kernels/common.h"

#include <limits.h>

mr_status mr_cuda_multiply(mr_kernel_call *call, const mr_cuda_product *p, mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    if (p->rows == 0 || p->columns == 0) return MR_OK;
    if (p->rows > INT_MAX || p->columns > INT_MAX || p->inner > INT_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the matrices are too large for a GPU");
    if (p->inner == 0) {
        if (p->beta == 1) return MR_OK;
        MR_TRY(mr_cuda_enter(device, error));
        size_t size_bytes = (size_t)(p->rows * p->columns) * sizeof(float);
        mr_cu_result result = device->driver->fill_bytes((mr_cu_pointer)(uintptr_t)p->c, 0, size_bytes, device->stream);
        return mr_cuda_result(device, result, "fill", error);
    }
    MR_TRY(mr_cuda_blas_handle(device, error));
    float alpha = 1;
    int rows = (int)p->rows, columns = (int)p->columns, inner = (int)p->inner;
    pthread_mutex_lock(&device->mutex);
    mr_blas_result result = device->blas->sgemm(
        device->blas_handle, p->transpose_b ? MR_BLAS_TRANSPOSED : MR_BLAS_PLAIN,
        p->transpose_a ? MR_BLAS_TRANSPOSED : MR_BLAS_PLAIN, columns, rows, inner, &alpha, p->b,
        p->transpose_b ? inner : columns, p->a, p->transpose_a ? rows : inner, &p->beta, p->c, columns);
    pthread_mutex_unlock(&device->mutex);
    if (result == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INTERNAL, "%s: cuBLAS failed (error %u)", device->device.name, result);
}

static mr_status matmul(mr_kernel_call *call, mr_error *error)
{
    mr_shape a = call->inputs[0].shape, b = call->inputs[1].shape;
    bool transpose_a = mr_attr_bool_or(call->node->attrs, "transpose_a", false);
    bool transpose_b = mr_attr_bool_or(call->node->attrs, "transpose_b", false);
    bool fits = a.rank == 2 && b.rank == 2 && a.dims[!transpose_a] == b.dims[transpose_b];
    if (!fits) {
        char left[MR_SHAPE_TEXT_SIZE], right[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "matrices of shapes %s and %s cannot be multiplied", mr_shape_text(a, left, sizeof left),
                              mr_shape_text(b, right, sizeof right));
    }
    mr_cuda_product product = {.a = call->inputs[0].data,
                               .b = call->inputs[1].data,
                               .rows = a.dims[transpose_a],
                               .columns = b.dims[!transpose_b],
                               .inner = a.dims[!transpose_a],
                               .transpose_a = transpose_a,
                               .transpose_b = transpose_b};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(product.rows, product.columns), error));
    product.c = call->outputs[0].data;
    return mr_cuda_multiply(call, &product, error);
}

static const mr_kernel kernels[] = {
    {.op = "MatMul", .device = MR_DEVICE_GPU, .types = "T: float", .run = matmul},
};

MR_CUDA_FAMILY(matmul);
