/* Regular expressions with the syntax of RE2, compiled once and matched any number of times. */
#ifndef MR_KERNELS_REGEX_H
#define MR_KERNELS_REGEX_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <millrace/tensor.h>
#include <pcre2.h>

/* One thread at a time. */
typedef struct mr_regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
} mr_regex;

/* is_full  a match must comprise the complete text
 * errors   MR_INVALID_ARGUMENT with RE2's reason; regex is then empty */
mr_status mr_regex_init(mr_regex *regex, mr_string pattern, bool is_full, mr_error *error);
void mr_regex_deinit(mr_regex *regex); /* an empty one is allowed */

/* Finds the first match at or after `start`; its groups are then in mr_regex_groups.
 * errors  MR_RESOURCE_EXHAUSTED after a million steps */
mr_status mr_regex_find(const mr_regex *regex, mr_string text, size_t start, bool *found, mr_error *error);
/* Whether the complete text matches, of which every byte must be UTF-8. The regex must have been initialized with
 * is_full. */
mr_status mr_regex_matches_all(const mr_regex *regex, mr_string text, bool *matches, mr_error *error);
/* Start and end of each group of the last match; group 0 is the match itself. */
static inline const size_t *mr_regex_groups(const mr_regex *regex)
{
    return pcre2_get_ovector_pointer(regex->match);
}

#endif
