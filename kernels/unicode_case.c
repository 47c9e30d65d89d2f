/* Upper and lower case of text, with the rules of Unicode that no language changes. */
#include "kernels/unicode.h"

#include <string.h>

static bool is_among(const mr_character_range *ranges, int count, int32_t c)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= c;
}

/* Whether the next character that is not ignored is a letter with a case. */
static bool meets_cased(int32_t c, bool *met)
{
    if (is_among(mr_unicode_ignorable, mr_unicode_ignorable_count, c)) return false;
    *met = is_among(mr_unicode_cased, mr_unicode_cased_count, c);
    return true;
}

/* Whether the sigma at byte `at` ends a word. */
static bool is_final_sigma(mr_string text, size_t at, size_t length)
{
    bool before = false, after = false, is_valid;
    int32_t c;
    for (size_t i = at; i > 0;) {
        size_t start = i - 1;
        while (start > 0 && i - start < 4 && mr_utf8_is_trail(text.data[start])) start--;
        if (mr_utf8_decode(text, start, &c, &is_valid) != i - start) c = 0xfffd;
        if (meets_cased(c, &before)) break;
        i = start;
    }
    for (size_t i = at + length; before && i < text.size_bytes;) {
        i += mr_utf8_decode(text, i, &c, &is_valid);
        if (meets_cased(c, &after)) break;
    }
    return before && !after;
}

/* Ranges may interleave, so all of those that start before c are candidates. */
static int32_t map(const mr_case_range *ranges, int count, int32_t c)
{
    for (int i = 0; i < count && ranges[i].first <= c; i++)
        if (c <= ranges[i].last && (c - ranges[i].first) % ranges[i].step == 0) return c + ranges[i].delta;
    return c;
}

static void add(mr_text_builder *result, int32_t c)
{
    char bytes[4];
    mr_text_add(result, bytes, mr_utf8_encode(c, bytes));
}

static void add_upper(mr_text_builder *result, int32_t c)
{
    int low = 0, high = mr_unicode_upper_special_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (mr_unicode_upper_special[middle].character < c)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == mr_unicode_upper_special_count || mr_unicode_upper_special[low].character != c) {
        add(result, map(mr_unicode_upper, mr_unicode_upper_count, c));
        return;
    }
    for (int i = 0; i < 3 && mr_unicode_upper_special[low].to[i]; i++) add(result, mr_unicode_upper_special[low].to[i]);
}

void mr_unicode_change_case(mr_string text, bool to_upper, mr_text_builder *result)
{
    const char *end = text.size_bytes > 0 ? memchr(text.data, 0, text.size_bytes) : nullptr;
    if (end != nullptr) text.size_bytes = (size_t)(end - text.data);
    for (size_t at = 0, length; at < text.size_bytes; at += length) {
        int32_t c;
        bool is_valid;
        length = mr_utf8_decode(text, at, &c, &is_valid);
        if (to_upper) {
            add_upper(result, c);
        } else if (c == 0x130) { /* I with a dot */
            add(result, 'i');
            add(result, 0x307);
        } else if (c == 0x3a3 && is_final_sigma(text, at, length)) {
            add(result, 0x3c2);
        } else {
            add(result, map(mr_unicode_lower, mr_unicode_lower_count, c));
        }
    }
}
