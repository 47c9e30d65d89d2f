/* Opening cuBLAS and cuDNN: the newest installed version. */
#include "cuda/libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static void *open_any(const char *const *names, const char *what, mr_error *error)
{
    for (; *names != nullptr; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) return library;
    }
    const char *reason = dlerror();
    (void)mr_fail(error, MR_UNAVAILABLE, "%s is not installed (%s)", what, reason != nullptr ? reason : "not found");
    return nullptr;
}

/* MR_OPEN defines the function that opens one library and fills its table once. */
#define MR_LOAD(field, symbol, result, arguments)                                                                      \
    {                                                                                                                  \
        void *address = dlsym(library, #symbol);                                                                       \
        if (address == nullptr) {                                                                                      \
            (void)mr_fail(failure, MR_UNAVAILABLE, "%s is too old: it has no %s", what, #symbol);                      \
            return;                                                                                                    \
        }                                                                                                              \
        memcpy(&table->field, &address, sizeof address);                                                               \
    }
#define MR_OPEN(name, functions, title, ...)                                                                           \
    static mr_cuda_##name name##_table;                                                                                \
    static mr_error name##_error;                                                                                      \
    static void name##_fill(void)                                                                                      \
    {                                                                                                                  \
        static const char *const names[] = {__VA_ARGS__, nullptr};                                                     \
        const char *what = title;                                                                                      \
        mr_error *failure = &name##_error;                                                                             \
        mr_cuda_##name *table = &name##_table;                                                                         \
        void *library = open_any(names, what, failure);                                                                \
        if (library == nullptr) return;                                                                                \
        functions(MR_LOAD)                                                                                             \
    }                                                                                                                  \
    mr_status mr_cuda_##name##_open(const mr_cuda_##name **table, mr_error *error)                                     \
    {                                                                                                                  \
        static pthread_once_t once = PTHREAD_ONCE_INIT;                                                                \
        pthread_once(&once, name##_fill);                                                                              \
        *table = &name##_table;                                                                                        \
        return name##_error.status == MR_OK ? MR_OK : mr_fail(error, name##_error.status, "%s", name##_error.message); \
    }

MR_OPEN(blas, MR_CUDA_BLAS_FUNCTIONS, "cuBLAS", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
MR_OPEN(dnn, MR_CUDA_DNN_FUNCTIONS, "cuDNN", "libcudnn.so.9", "libcudnn.so.8")
