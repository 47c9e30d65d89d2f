/* See glob.h. */
#include "tools/common/glob.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t NAME_MAX_BYTES = 255;

/* One name of a path against one of a pattern. */
static bool match_name(const char *pattern, size_t pattern_size, const char *name, size_t size)
{
    char part[NAME_MAX_BYTES + 1], text[NAME_MAX_BYTES + 1];
    if (pattern_size > NAME_MAX_BYTES || size > NAME_MAX_BYTES) return false;
    memcpy(part, pattern, pattern_size);
    part[pattern_size] = '\0';
    memcpy(text, name, size);
    text[size] = '\0';
    return fnmatch(part, text, 0) == 0;
}

static const char *next_name(const char *name)
{
    name += strcspn(name, "/");
    return *name ? name + 1 : nullptr;
}

/* Whether the names from `path` on begin with what the pattern says. As in matching of * alone, only the last ** is ever tried
 * again: what an earlier one could still take, the last one can. */
static bool match_names(const char *pattern, const char *path)
{
    const char *retry_pattern = nullptr, *retry_path = nullptr;
    for (;;) {
        if (!pattern) return true; /* a directory above, or the path itself */
        size_t size = strcspn(pattern, "/");
        if (size == 2 && memcmp(pattern, "**", 2) == 0) {
            retry_pattern = next_name(pattern);
            if (!retry_pattern) return path != nullptr;
            pattern = retry_pattern;
            retry_path = path;
            continue;
        }
        if (path && match_name(pattern, size, path, strcspn(path, "/"))) {
            pattern = next_name(pattern);
            path = next_name(path);
            continue;
        }
        if (!retry_pattern || !retry_path) return false;
        retry_path = next_name(retry_path);
        if (!retry_path) return false;
        pattern = retry_pattern;
        path = retry_path;
    }
}

bool glob_match(const char *pattern, const char *path)
{
    bool is_anywhere = !strchr(pattern, '/');
    pattern += *pattern == '/';
    if (!is_anywhere) return match_names(pattern, path);
    for (const char *name = path; name; name = next_name(name))
        if (match_name(pattern, strlen(pattern), name, strcspn(name, "/"))) return true;
    return false;
}
