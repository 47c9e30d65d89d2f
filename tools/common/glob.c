/* See glob.h. */
#include "common/glob.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t NAME_MAX_BYTES = 255;

/* Matches one name of a path against one of a pattern. */
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

/* The name after the next slash; null if there is none or the slash is the last byte. */
static const char *next_name(const char *name)
{
    name += strcspn(name, "/");
    return *name && name[1] ? name + 1 : nullptr;
}

/* Whether the names from `path` on begin with the pattern. As in matching of * alone, only the last ** is retried: the
 * last one can match anything that an earlier one could. */
static bool match_names(const char *pattern, const char *path, bool is_path_enough)
{
    const char *retry_pattern = nullptr, *retry_path = nullptr;
    for (;;) {
        if (!pattern && (path || is_path_enough)) return true; /* a parent directory, or the path itself */
        size_t size = pattern ? strcspn(pattern, "/") : 0;
        if (size == 2 && memcmp(pattern, "**", 2) == 0) {
            retry_pattern = next_name(pattern);
            if (!retry_pattern) return path && (is_path_enough || next_name(path));
            pattern = retry_pattern;
            retry_path = path;
            continue;
        }
        if (path && pattern && match_name(pattern, size, path, strcspn(path, "/"))) {
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
    size_t size = strlen(pattern);
    bool is_of_directories = size > 1 && pattern[size - 1] == '/',
         is_directory = *path && path[strlen(path) - 1] == '/';
    bool is_path_enough = !is_of_directories || is_directory;
    if (is_of_directories) size--;
    bool is_anywhere = !memchr(pattern, '/', size);
    if (!is_anywhere) return match_names(pattern + (*pattern == '/'), path, is_path_enough);
    for (const char *name = path; name; name = next_name(name))
        if ((is_path_enough || next_name(name)) && match_name(pattern, size, name, strcspn(name, "/"))) return true;
    return false;
}
