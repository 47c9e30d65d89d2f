/* The list of all kernel tables. A new family must be added to FAMILIES. */
#include "kernels/kernels.h"
#include <pthread.h>

#define FAMILIES(X)                                                                                                    \
    X(array_view)                                                                                                      \
    X(array_join)                                                                                                      \
    X(array_slice)                                                                                                     \
    X(array_index)                                                                                                     \
    X(array_fill)                                                                                                      \
    X(math_unary)                                                                                                      \
    X(math_binary)                                                                                                     \
    X(math_select)                                                                                                     \
    X(cast) X(reduce) X(activation) X(softmax) X(matmul) X(conv) X(pool) X(batch_norm) X(random) X(image_ops)

#define DECLARE(name) extern const mr_kernel_table mr_kernels_##name;
FAMILIES(DECLARE)
#undef DECLARE

static void register_all(void)
{
#define REGISTER(name) mr_kernel_table_register(&mr_kernels_##name);
    FAMILIES(REGISTER)
#undef REGISTER
}

void mr_kernels_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_all);
}
