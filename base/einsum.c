/* Parses the equations of Einsum. */
#include "base/einsum.h"

#include <string.h>

static int letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* Parses one subscript. An ellipsis stands for `ellipsis` dimensions; -1: for as many as the rank leaves. */
static mr_status parse_operand(const char *text, size_t size, int32_t rank, int ellipsis, mr_einsum_operand *operand,
                               int *found, mr_error *error)
{
    int letters = 0, dots = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ') continue;
        if (letter(text[i]) >= 0) {
            letters++;
        } else if (size - i >= 3 && memcmp(text + i, "...", 3) == 0) {
            dots++;
            i += 2;
        } else {
            return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid character(s) in subscript: %.*s", (int)(size & 255),
                           text);
        }
    }
    if (dots > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expected at most one ellipsis in subscript: %.*s",
                       (int)(size & 255), text);
    if (ellipsis < 0) ellipsis = rank - letters;
    if (rank >= 0 && (dots == 0 ? letters != rank : letters > rank))
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expected input of rank %s%d but got rank %d for subscript: %.*s",
                       dots > 0 ? "at least " : "", letters, rank, (int)(size & 255), text);
    if (letters + (dots > 0 ? ellipsis : 0) > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    *operand = (mr_einsum_operand){0};
    *found = dots > 0 ? ellipsis : 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ') continue;
        if (letter(text[i]) >= 0) {
            operand->labels[operand->rank++] = (int8_t)letter(text[i]);
            continue;
        }
        for (int d = ellipsis - 1; d >= 0; d--) operand->labels[operand->rank++] = (int8_t)(MR_EINSUM_ELLIPSIS + d);
        i += 2;
    }
    return MR_OK;
}

mr_status mr_einsum_parse(mr_string equation, int count, const int32_t *ranks, mr_einsum *einsum, mr_error *error)
{
    const char *text = equation.data;
    size_t size = equation.size_bytes, arrow = size;
    int arrows = 0, ellipsis = 0;
    *einsum = (mr_einsum){.input_count = count};
    for (size_t i = 0; i + 1 < size; i++) {
        if (text[i] != '-' || text[i + 1] != '>') continue;
        if (arrows++ == 0) arrow = i;
    }
    if (arrows != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expecting exactly one '->' in einsum equation: %.*s",
                       (int)(size & 255), text);
    int commas = 0;
    for (size_t i = 0; i < arrow; i++) commas += text[i] == ',';
    if (commas > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expecting 1 or 2 input subscripts in equation '%.*s' but got: %d",
                       (int)(size & 255), text, commas + 1);
    if (commas + 1 != count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expected %d inputs for equation %.*s but got: %d", commas + 1,
                       (int)(size & 255), text, count);
    size_t begin = 0;
    for (int i = 0; i < count; i++) {
        size_t end = begin;
        int found;
        while (end < arrow && text[end] != ',') end++;
        MR_TRY(parse_operand(text + begin, end - begin, ranks[i], -1, &einsum->inputs[i], &found, error));
        ellipsis = found > ellipsis ? found : ellipsis;
        begin = end + 1;
    }
    int found;
    MR_TRY(parse_operand(text + arrow + 2, size - arrow - 2, -1, ellipsis, &einsum->output, &found, error));
    if (found < ellipsis) return mr_fail(error, MR_UNIMPLEMENTED, "an ellipsis that is summed over");
    for (int d = 0; d < einsum->output.rank; d++) {
        bool known = false;
        for (int i = 0; i < count; i++)
            for (int e = 0; e < einsum->inputs[i].rank; e++)
                known |= einsum->inputs[i].labels[e] == einsum->output.labels[d];
        int label = (uint8_t)einsum->output.labels[d];
        if (!known)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Einsum output subscripts for equation '%.*s' has label '%c' which is not present in the "
                           "input subscripts",
                           (int)(size & 255), text, label < 26 ? 'a' + label : 'A' + label - 26);
    }
    return MR_OK;
}
