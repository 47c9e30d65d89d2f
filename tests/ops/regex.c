/* Samples of the operators of graph/ops/regex.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"RegexFullMatch", "string[2]=abc; string[]=a(b|x).", ""},
    {"RegexReplace", "string[2]=abcabc; string[]=(b); string[]=[\\1]", ""},
    {"StaticRegexFullMatch", "string[2]=abc", "pattern=[a-c]*"},
    {"StaticRegexReplace", "string[2]=abcabc", "pattern=b; rewrite=x; replace_global=false"})
/* clang-format on */
