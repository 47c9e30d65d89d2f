#include "base/options.h"

#include <assert.h>
#include <string.h>

mr_status mr_options_read(void *options, size_t size, const void *given, const char *type, mr_error *error)
{
    /* More than any struct of options: such a size is not one. */
    constexpr size_t SIZE_LIMIT = 1 << 16;
    assert(size > sizeof size && size < SIZE_LIMIT);
    memset(options, 0, size);
    memcpy(options, &size, sizeof size);
    if (given == nullptr) return MR_OK;
    size_t given_size;
    memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size || given_size > SIZE_LIMIT)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: size is %zu: set it with MR_OPTIONS, or to the size of the variable", type, given_size);
    size_t common = given_size < size ? given_size : size;
    memcpy((char *)options + sizeof size, (const char *)given + sizeof size, common - sizeof size);
    for (size_t i = size; i < given_size; i++)
        if (((const char *)given)[i] != 0)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s: an option is set that this version of the library, %s, does not have", type,
                           mr_version());
    return MR_OK;
}
