/* Estimates the cost of a pattern before regcomp sees it: regcomp expands x{2,9} into nine copies and x+ into two, also
 * of expanded parts, so that a short pattern can exhaust memory. Back-references, which take exponential time, are
 * refused. */
#include "common/regex_cost.h"

#include <ctype.h>
#include <string.h>

static constexpr size_t PATTERN_MAX = 1'000;
static constexpr int GROUPS_MAX = 100;
/* Maximum number of single characters and sets after expansion. */
static constexpr uint64_t COST_MAX = 5'000;

/* The end of a bracket expression that begins at `at`: "[]x]", "[^]x]", "[[:alpha:]]". */
static size_t set_end(mr_string pattern, size_t at)
{
    size_t i = at + 1;
    if (i < pattern.size_bytes && pattern.data[i] == '^') i++;
    if (i < pattern.size_bytes && pattern.data[i] == ']') i++;
    for (; i < pattern.size_bytes && pattern.data[i] != ']'; i++) {
        char kind = i + 1 < pattern.size_bytes ? pattern.data[i + 1] : 0;
        if (pattern.data[i] != '[' || !kind || !strchr(":.=", kind)) continue;
        for (i += 2; i + 1 < pattern.size_bytes && !(pattern.data[i] == kind && pattern.data[i + 1] == ']');) i++;
        i++;
    }
    return i;
}

/* The largest number in "{2,9}" at `at`; at least 1. */
static uint64_t repetitions(mr_string pattern, size_t at)
{
    uint64_t most = 1, number = 0;
    for (size_t i = at + 1; i < pattern.size_bytes && pattern.data[i] != '}'; i++) {
        bool is_digit = isdigit((unsigned char)pattern.data[i]);
        number = is_digit && number <= COST_MAX ? 10 * number + (uint64_t)(pattern.data[i] - '0') : 0;
        if (number > most) most = number;
    }
    return most;
}

const char *regex_fault(mr_string pattern)
{
    uint64_t sums[GROUPS_MAX + 1] = {0}, last = 0; /* sums of the open groups; cost of what a repetition would copy */
    int depth = 0;
    if (pattern.size_bytes > PATTERN_MAX) return "the pattern is too long";
    if (memchr(pattern.data, '\0', pattern.size_bytes)) return "a pattern cannot contain \\x00";
    for (size_t i = 0; i < pattern.size_bytes; i++) {
        char c = pattern.data[i];
        if (c == '+' || c == '{') {
            last *= c == '+' ? 2 : repetitions(pattern, i);
            if (last > COST_MAX) return "the pattern has too many repetitions";
            continue;
        }
        if (c == '*' || c == '?') continue;
        sums[depth] += last;
        last = 1;
        if (c == '\\' && i + 1 < pattern.size_bytes) {
            if (isdigit((unsigned char)pattern.data[i + 1])) return "back-references (\\1) are not supported";
            i++;
        } else if (c == '[') {
            i = set_end(pattern, i);
        } else if (c == '(') {
            if (depth == GROUPS_MAX) return "the pattern is nested too deeply";
            sums[++depth] = 0;
            last = 0;
        } else if (c == ')' && depth > 0) {
            last = sums[depth--] + 1;
        }
        if (sums[depth] + last > COST_MAX) return "the pattern has too many repetitions";
    }
    return nullptr;
}
