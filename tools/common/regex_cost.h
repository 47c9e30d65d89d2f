/* Refuses patterns that are dangerous to compile. */
#ifndef MR_TOOLS_REGEX_COST_H
#define MR_TOOLS_REGEX_COST_H

#include <millrace/status.h>
#include <millrace/tensor.h>

/* Why a pattern must not be passed to regcomp; null: it may be. Static storage. */
const char *regex_fault(mr_string pattern);

#endif
