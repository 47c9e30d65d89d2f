#include "common/shard_name.h"

#include "common/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *shard_name(mr_string stem, uint64_t index, uint64_t count, const char *ending)
{
    char *name = nullptr;
    int size =
        asprintf(&name, "%.*s-%05" PRIu64 "-of-%05" PRIu64 "%s", (int)stem.size_bytes, stem.data, index, count, ending);
    return size < 0 ? nullptr : name;
}

const char *shard_number_find(const char *name)
{
    for (const char *at = strchr(name, '-'); at; at = strchr(at + 1, '-'))
        if (shard_number_end(at)) return at;
    return nullptr;
}

/* The text after a separator and at least five digits; null: it does not begin like that. */
static const char *number_end(const char *text, const char *separator)
{
    size_t length = strlen(separator);
    if (strncmp(text, separator, length) != 0) return nullptr;
    size_t digits = strspn(text + length, "0123456789");
    return digits >= 5 ? text + length + digits : nullptr;
}

const char *shard_number_end(const char *text)
{
    const char *end = number_end(text, "-");
    return end ? number_end(end, "-of-") : nullptr;
}

bool shard_is_partial(const char *rest)
{
    static const char *const endings[] = {FILE_PARTIAL, ".index" FILE_PARTIAL, FILE_PARTIAL ".index",
                                          FILE_PARTIAL ".index" FILE_PARTIAL};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(rest, endings[i]) == 0) return true;
    return false;
}
