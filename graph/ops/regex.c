/* Regular expressions. */
#include "graph/ir/op.h"

static mr_status regex_full_match_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return mr_shape_unchanged(call, error);
}

static mr_status regex_replace_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    return mr_shape_unchanged(call, error);
}

static const mr_op regex_ops[] = {
    {.name = "RegexFullMatch",
     .signature = "input: string, pattern: string -> output: bool",
     .shape = regex_full_match_shape,
     .doc = "Reports whether each string matches the whole regular expression pattern."},
    {.name = "RegexReplace",
     .signature = "input: string, pattern: string, rewrite: string -> output: string",
     .attrs = "replace_global: bool = true",
     .shape = regex_replace_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Replaces the matches of the regular expression pattern in each string with rewrite."},
    {.name = "StaticRegexFullMatch",
     .signature = "input: string -> output: bool",
     .attrs = "pattern: string",
     .shape = mr_shape_unchanged,
     .doc = "Reports whether each string matches the whole regular expression pattern."},
    {.name = "StaticRegexReplace",
     .signature = "input: string -> output: string",
     .attrs = "pattern: string; rewrite: string; replace_global: bool = true",
     .shape = mr_shape_unchanged,
     .doc = "Replaces the matches of the regular expression pattern in each string with rewrite."},
};

const mr_op_table mr_ops_regex = {regex_ops, sizeof regex_ops / sizeof regex_ops[0]};
