#include "common/shard_name.h"

#include "common/file.h"

#include <string.h>

const char *shard_number_end(const char *text)
{
    static const char shape[] = "-00000-of-00000";
    for (const char *at = shape; *at; at++, text++)
        if (*at == '0' ? *text < '0' || *text > '9' : *text != *at) return nullptr;
    return text;
}

bool shard_is_partial(const char *rest)
{
    static const char *const endings[] = {FILE_PARTIAL, ".index" FILE_PARTIAL, FILE_PARTIAL ".index",
                                          FILE_PARTIAL ".index" FILE_PARTIAL};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(rest, endings[i]) == 0) return true;
    return false;
}
