/* The operators of regular expressions. */
#include "kernels/regex.h"
#include "kernels/text.h"

static mr_status prefix(const mr_kernel_node *node, mr_status status, mr_error *error)
{
    return mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}

static mr_status regex_init(const mr_kernel_node *node, mr_string pattern, bool is_full, mr_regex *r, mr_error *error)
{
    mr_status status = mr_regex_init(r, pattern, is_full, error);
    return status == MR_INVALID_ARGUMENT ? prefix(node, status, error) : status;
}

/* ---- Full matches ---- */

static mr_status full_match(mr_kernel_call *call, mr_string pattern, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_regex r;
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    MR_TRY(regex_init(call->node, pattern, true, &r, error));
    mr_status status = MR_OK;
    for (int64_t i = 0, count = mr_tensor_count(input); i < count && status == MR_OK; i++) {
        bool matches;
        status = mr_regex_matches_all(&r, mr_tensor_strings(input)[i], &matches, error);
        mr_tensor_bools(&call->outputs[0])[i] = matches;
    }
    mr_regex_deinit(&r);
    return status == MR_OK ? status : prefix(call->node, status, error);
}

static mr_status scalar_text(mr_kernel_call *call, int input, const char *what, mr_string *text, mr_error *error)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[input].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be scalar, but received %s", what,
                              mr_shape_text(call->inputs[input].shape, shape, sizeof shape));
    *text = mr_tensor_strings(&call->inputs[input])[0];
    return MR_OK;
}

static mr_status regex_full_match(mr_kernel_call *call, mr_error *error)
{
    mr_string pattern;
    MR_TRY(scalar_text(call, 1, "Pattern", &pattern, error));
    return full_match(call, pattern, error);
}

static mr_status static_full_match(mr_kernel_call *call, mr_error *error)
{
    return full_match(call, mr_attr_string_or(call->node->attrs, "pattern", ""), error);
}

/* The static forms report an invalid pattern before the first run. */
static mr_status prepare_static(const mr_kernel_node *node, void *, mr_error *error)
{
    mr_regex r;
    MR_TRY(regex_init(node, mr_attr_string_or(node->attrs, "pattern", ""), false, &r, error));
    mr_regex_deinit(&r);
    return MR_OK;
}

/* ---- Replacement ---- */

/* The largest number of a group in the rewrite string. */
static uint32_t largest_group(mr_string rewrite)
{
    uint32_t largest = 0;
    for (size_t i = 0; i + 1 < rewrite.size_bytes; i++) {
        if (rewrite.data[i] != '\\') continue;
        char c = rewrite.data[++i];
        if (c >= '0' && c <= '9') largest = MR_MAX(largest, (uint32_t)(c - '0'));
    }
    return largest;
}

/* Appends the rewrite string with its groups; false at an invalid escape sequence, after what precedes it. */
static bool add_rewrite(const mr_regex *r, mr_string text, mr_string rewrite, mr_text_builder *result)
{
    const size_t *groups = mr_regex_groups(r);
    uint32_t count = pcre2_get_ovector_count(r->match);
    for (size_t i = 0; i < rewrite.size_bytes; i++) {
        char c = rewrite.data[i];
        if (c != '\\') {
            mr_text_add(result, &c, 1);
            continue;
        }
        c = ++i < rewrite.size_bytes ? rewrite.data[i] : '\0';
        uint32_t group = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : UINT32_MAX;
        if (c == '\\')
            mr_text_add(result, &c, 1);
        else if (group >= count)
            return false;
        else if (groups[2 * group] != PCRE2_UNSET && groups[2 * group + 1] >= groups[2 * group])
            mr_text_add(result, text.data + groups[2 * group], groups[2 * group + 1] - groups[2 * group]);
    }
    return true;
}

/* Replaces one match, or all of them. RE2's rule for empty matches: not where the previous match ended. */
static mr_status replace_one(const mr_regex *r, mr_string text, mr_string rewrite, bool all, mr_text_builder *result,
                             mr_error *error)
{
    const size_t *groups = mr_regex_groups(r);
    size_t at = 0, previous_end = SIZE_MAX;
    while (at <= text.size_bytes) {
        bool found;
        MR_TRY(mr_regex_find(r, text, at, &found, error));
        if (!found) break;
        size_t begin = groups[0], end = MR_MAX(groups[1], groups[0]);
        mr_text_add(result, text.data + at, begin - at);
        if (begin == end && begin == previous_end) { /* one character further */
            int32_t c;
            bool is_valid;
            size_t length = begin < text.size_bytes ? mr_utf8_decode(text, begin, &c, &is_valid) : 1;
            if (begin < text.size_bytes) mr_text_add(result, text.data + begin, length);
            at = begin + length;
            continue;
        }
        if (!add_rewrite(r, text, rewrite, result) && !all) {
            result->size_bytes = 0;
            at = 0;
            break;
        }
        at = previous_end = end;
        if (!all) break;
    }
    if (at < text.size_bytes) mr_text_add(result, text.data + at, text.size_bytes - at);
    return MR_OK;
}

static mr_status replace(mr_kernel_call *call, mr_string pattern, mr_string rewrite, mr_error *error)
{
    bool all = mr_attr_bool_or(call->node->attrs, "replace_global", true);
    mr_regex r;
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(regex_init(call->node, pattern, false, &r, error));
    mr_status status = mr_text_begin(call, 0, call->inputs[0].shape, &output, error);
    if (status != MR_OK) {
        mr_regex_deinit(&r);
        return status;
    }
    uint32_t groups = 0;
    pcre2_pattern_info(r.code, PCRE2_INFO_CAPTURECOUNT, &groups);
    bool can_rewrite = largest_group(rewrite) <= groups;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        mr_string one = mr_tensor_strings(&call->inputs[0])[i];
        output.items[i] = one;
        if (!can_rewrite) continue;
        status = replace_one(&r, one, rewrite, all, &text, error);
        if (status != MR_OK) status = prefix(call->node, status, error);
        output.items[i] = (mr_string){0};
        if (status == MR_OK) status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    mr_regex_deinit(&r);
    return mr_text_end(call, &output, status, error);
}

static mr_status regex_replace(mr_kernel_call *call, mr_error *error)
{
    mr_string pattern, rewrite;
    MR_TRY(scalar_text(call, 1, "Pattern", &pattern, error));
    MR_TRY(scalar_text(call, 2, "Rewrite", &rewrite, error));
    return replace(call, pattern, rewrite, error);
}

static mr_status static_replace(mr_kernel_call *call, mr_error *error)
{
    return replace(call, mr_attr_string_or(call->node->attrs, "pattern", ""),
                   mr_attr_string_or(call->node->attrs, "rewrite", ""), error);
}

static const mr_kernel kernels[] = {
    {.op = "RegexFullMatch", .run = regex_full_match},
    {.op = "RegexReplace", .run = regex_replace},
    {.op = "StaticRegexFullMatch", .run = static_full_match, .prepared_size_bytes = 1, .prepare = prepare_static},
    {.op = "StaticRegexReplace", .run = static_replace, .prepared_size_bytes = 1, .prepare = prepare_static},
};
MR_KERNEL_FAMILY(string_regex);
