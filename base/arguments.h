/* Arguments of public functions. */
#ifndef MR_BASE_ARGUMENTS_H
#define MR_BASE_ARGUMENTS_H

#include <millrace/status.h>

/* Returns MR_INVALID_ARGUMENT from the calling public function, "mr_x: NAME is null", if a pointer is null. */
#define MR_REFUSE_NULL(pointer, error)                                                                                 \
    do {                                                                                                               \
        if ((pointer) == nullptr) return mr_fail((error), MR_INVALID_ARGUMENT, "%s: %s is null", __func__, #pointer);  \
    } while (0)
/* The same for a string that has bytes, but no data. */
#define MR_REFUSE_NULL_BYTES(string, error)                                                                            \
    do {                                                                                                               \
        if ((string).data == nullptr && (string).size_bytes > 0)                                                       \
            return mr_fail((error), MR_INVALID_ARGUMENT, "%s: %s is null, with %zu bytes", __func__, #string,          \
                           (string).size_bytes);                                                                       \
    } while (0)

#endif
