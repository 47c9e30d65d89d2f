/* Class balance as a chart.
 *
 * ```c
 * balance_class classes[] = {{.count = 120, .has_label = true, .text = MR_STR("cat")},
 *                            {.count = 80, .has_label = true, .label = 1, .text = MR_STR("dog")}};
 * chart chart = {0};
 * balance_chart(&chart, "Classes", "records", classes, 2, 200, true);
 * ``` */
#ifndef MR_TOOLS_COMMON_BALANCE_H
#define MR_TOOLS_COMMON_BALANCE_H

#include "common/chart/chart.h"

typedef struct balance_class {
    uint64_t count;
    bool has_label;
    int64_t label;
    mr_string text; /* borrowed; may be empty */
} balance_class;

/* All classes in the order of their labels, or, of many classes, the largest and the smallest; with a note on their
 * number, the ratio of their sizes, and missing labels.
 * classes   at least one; sorted in place
 * total     the count that is 100 %
 * is_exact  false: there are more classes, and counts are estimates */
void balance_chart(chart *chart, const char *title, const char *unit, balance_class *classes, size_t count,
                   uint64_t total, bool is_exact);

#endif
