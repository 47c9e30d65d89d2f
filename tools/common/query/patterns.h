/* Lists of patterns that select names: "image*,!image/encoded,label".
 *
 * A pattern selects the names that it matches, one that begins with "!" excludes them; with exclusions only, all other
 * names are selected. "*" stands for any bytes, "?" for one byte; a backslash makes the next byte literal, also a
 * comma. */
#ifndef MR_TOOLS_COMMON_PATTERNS_H
#define MR_TOOLS_COMMON_PATTERNS_H

#include <millrace/tensor.h>

/* Whether a list selects a name; null selects all. */
bool patterns_select(const char *patterns, mr_string name);
/* Reads the next pattern of the list from *patterns on, including its backslashes, and advances; false at the end. */
bool pattern_next(const char **patterns, mr_string *pattern);
bool pattern_is_exclusion(mr_string pattern);
/* Whether a pattern, without its "!", matches a name. */
bool pattern_matches(mr_string pattern, mr_string name);
/* Whether a pattern contains * or ?; if not, the name it stands for, written to a buffer of the pattern's size. */
bool pattern_has_wildcard(mr_string pattern);
size_t pattern_unescape(mr_string pattern, char *name);

#endif
