/* Opening libcuda. On a machine without a GPU the library does not exist, which is not a fault. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
    mr_cuda_driver table;
    mr_error error; /* status MR_OK: the table is filled */
} opened;

static void open_driver(void)
{
    mr_error *error = &opened.error;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        (void)mr_fail(error, MR_UNAVAILABLE, "no NVIDIA driver is installed (%s)", dlerror());
        return;
    }
#define LOAD(field, symbol, result, arguments)                                                                         \
    {                                                                                                                  \
        void *address = dlsym(library, #symbol);                                                                       \
        if (address == nullptr) {                                                                                      \
            (void)mr_fail(error, MR_UNAVAILABLE, "the NVIDIA driver is too old: it has no %s", #symbol);               \
            return;                                                                                                    \
        }                                                                                                              \
        memcpy(&opened.table.field, &address, sizeof address);                                                         \
    }
    MR_CUDA_DRIVER_FUNCTIONS(LOAD)
#undef LOAD
    mr_cu_result result = opened.table.init(0);
    if (result != 0) {
        const char *text = nullptr;
        (void)opened.table.error_string(result, &text);
        (void)mr_fail(error, MR_UNAVAILABLE, "the NVIDIA driver cannot be initialized: %s",
                      text != nullptr ? text : "unknown");
    }
}

mr_status mr_cuda_driver_open(const mr_cuda_driver **driver, mr_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    *driver = &opened.table;
    return opened.error.status == MR_OK ? MR_OK : mr_fail(error, opened.error.status, "%s", opened.error.message);
}

mr_status mr_cuda_check(const mr_cuda_driver *driver, mr_cu_result result, const char *action, mr_error *error)
{
    if (result == 0) return MR_OK;
    const char *text = nullptr;
    if (driver->error_string(result, &text) != 0 || text == nullptr) text = "an unnamed error";
    mr_status status = result == MR_CU_OUT_OF_MEMORY ? MR_RESOURCE_EXHAUSTED : MR_INTERNAL;
    return mr_fail(error, status, "%s: %s (CUDA error %u)", action, text, result);
}
