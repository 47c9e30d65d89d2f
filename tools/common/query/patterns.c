/* See patterns.h. */
#include "common/query/patterns.h"

#include <stdint.h>

bool pattern_next(const char **text, mr_string *pattern)
{
    const char *begin = *text, *end = begin;
    if (!begin) return false;
    while (*end && *end != ',') end += *end == '\\' && end[1] ? 2 : 1;
    *pattern = (mr_string){begin, (size_t)(end - begin)};
    *text = *end ? end + 1 : nullptr;
    return true;
}

bool pattern_is_exclusion(mr_string pattern)
{
    return pattern.size_bytes > 0 && pattern.data[0] == '!';
}

bool pattern_has_wildcard(mr_string pattern)
{
    for (size_t i = 0; i < pattern.size_bytes; i++) {
        if (pattern.data[i] == '\\')
            i++;
        else if (pattern.data[i] == '*' || pattern.data[i] == '?')
            return true;
    }
    return false;
}

size_t pattern_unescape(mr_string pattern, char *name)
{
    size_t size = 0;
    for (size_t i = 0; i < pattern.size_bytes; i++) {
        if (pattern.data[i] == '\\' && i + 1 < pattern.size_bytes) i++;
        name[size++] = pattern.data[i];
    }
    return size;
}

/* "*" matches any bytes, "?" one byte, a backslash makes the next byte literal. Only the last star is retried, so the
 * time is at most the product of both lengths. */
static bool glob_matches(mr_string pattern, mr_string name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;
    while (n < name.size_bytes) {
        bool is_escape = p + 1 < pattern.size_bytes && pattern.data[p] == '\\';
        if (p < pattern.size_bytes && pattern.data[p] == '*') {
            star = ++p;
            from = n;
        } else if (p < pattern.size_bytes &&
                   ((pattern.data[p] == '?' && !is_escape) || pattern.data[p + is_escape] == name.data[n])) {
            p += 1u + is_escape;
            n++;
        } else if (star != SIZE_MAX) {
            p = star;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size_bytes && pattern.data[p] == '*') p++;
    return p == pattern.size_bytes;
}

bool pattern_matches(mr_string pattern, mr_string name)
{
    if (pattern_is_exclusion(pattern)) pattern = (mr_string){pattern.data + 1, pattern.size_bytes - 1};
    return glob_matches(pattern, name);
}

bool patterns_select(const char *patterns, mr_string name)
{
    bool has_keep = false, is_kept = false;
    mr_string pattern;
    while (pattern_next(&patterns, &pattern)) {
        bool matches = pattern_matches(pattern, name);
        if (matches && pattern_is_exclusion(pattern)) return false;
        has_keep |= !pattern_is_exclusion(pattern);
        is_kept |= matches;
    }
    return is_kept || !has_keep;
}
