/* Distance of names: the number of characters to insert, remove or replace (Levenshtein's). Equal last parts, as of
 * "old/w" and "new/w", count as one step at most for each character before them. */
#include "graph/train/near_names.h"

#include <stdio.h>
#include <string.h>

/* Longer names are compared by this many of their last characters. */
constexpr size_t COMPARED_MAX = 128;

static const char *tail(const char *name)
{
    const size_t length = strlen(name);
    return length > COMPARED_MAX ? name + length - COMPARED_MAX : name;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != nullptr ? slash + 1 : name;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t distance(const char *a, const char *b)
{
    int32_t row[COMPARED_MAX + 1];
    const size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++) row[j] = (int32_t)j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        int32_t diagonal = row[0];
        row[0] = (int32_t)i + 1;
        for (size_t j = 1; j <= length; j++) {
            const int32_t replaced = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

void mr_near_names_add(mr_near_names *near, const char *candidate)
{
    int32_t found = distance(tail(near->name), tail(candidate)) * 2;
    if (strcmp(last_part(near->name), last_part(candidate)) == 0) found /= 2;
    int32_t at = near->count;
    while (at > 0 && near->distances[at - 1] > found) at--;
    if (at == MR_NEAR_NAMES_MAX) return;
    if (near->count < MR_NEAR_NAMES_MAX) near->count++;
    for (int32_t i = near->count - 1; i > at; i--) {
        near->nearest[i] = near->nearest[i - 1];
        near->distances[i] = near->distances[i - 1];
    }
    near->nearest[at] = candidate;
    near->distances[at] = found;
}

const char *mr_near_names_text(const mr_near_names *near, char *text, size_t size_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < near->count && used < size_bytes; i++)
        used += (size_t)snprintf(text + used, size_bytes - used, "%s%.150s",
                                 i > 0             ? ", "
                                 : near->count > 1 ? "; the nearest are "
                                                   : "; there is ",
                                 near->nearest[i]);
    return text;
}
