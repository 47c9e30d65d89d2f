/* The list of the GPU's kernel tables. A new family adds one line. */
#include "cuda/kernels.h"

#define FAMILIES(X)                                                                                                    \
    X(elementwise) X(reduce) X(batch_norm) X(pool) X(softmax) X(conv) X(matmul) X(array) X(random) X(training)

#define DECLARE(name) extern const mr_kernel_table mr_cuda_kernels_##name;
FAMILIES(DECLARE)

void mr_cuda_kernels_register(void)
{
#define REGISTER(name) mr_kernel_table_register(&mr_cuda_kernels_##name);
    FAMILIES(REGISTER)
}
