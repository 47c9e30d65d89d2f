/* See name_filter.h. */
#include "graph/train/name_filter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

int32_t mr_train_filter_names(mr_graph *graph, mr_output *items, int32_t count, const char *pattern)
{
    int number = 0;
    size_t offset = 0;
    int32_t kept = 0;
    char name[MR_OUTPUT_NAME_SIZE];
    if (pattern == nullptr || *pattern == '\0') return count;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_ANCHORED, &number, &offset, nullptr);
    if (code == nullptr) {
        unsigned char reason[160] = "";
        pcre2_get_error_message(number, reason, sizeof reason);
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "scope \"%s\" is not a regular expression: %s at byte %zu",
                            pattern, (const char *)reason, offset);
        return 0;
    }
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, nullptr);
    if (match == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a regular expression");
    for (int32_t i = 0; match != nullptr && i < count; i++) {
        mr_output_name(items[i], name, sizeof name);
        int result = pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, match, nullptr);
        if (result >= 0) items[kept++] = items[i];
        if (result < 0 && result != PCRE2_ERROR_NOMATCH)
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "scope \"%s\" takes too long to match \"%s\"", pattern,
                                name);
    }
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return kept;
}
