/* The results of --stats as charts. */
#include "common/stats/stats.h"

#include "common/text.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of features, besides classes and images, that get a panel. */
static constexpr int PANELS_MAX = 24;

static chart *add(charts *charts, int count)
{
    if (charts->count + count > charts->capacity) {
        int capacity = charts->count + count + 8;
        chart *grown = realloc(charts->charts, (size_t)capacity * sizeof(*grown));
        if (!grown) return nullptr;
        charts->charts = grown;
        charts->capacity = capacity;
    }
    charts->count += count;
    return &charts->charts[charts->count - count];
}

/* ---- Classes ---- */

static bool add_classes(const stats *stats, charts *charts)
{
    for (int i = 0; i < STATS_CLASSES; i++) {
        size_t count;
        balance_class *entries;
        bool has_memory = stats_classes_list(&stats->classes[i], &entries, &count);
        if (has_memory && count == 0) continue;
        char title[96];
        snprintf(title, sizeof(title), "Classes: %s", stats_classes_name(i));
        chart *chart = has_memory ? add(charts, 1) : nullptr;
        const top *counts = &stats->classes[i].counts;
        if (chart) balance_chart(chart, title, "values", entries, count, counts->total, counts->error == 0);
        free(entries);
        if (!chart) return false;
    }
    return true;
}

/* ---- Images ---- */

static void prefix_title(chart *chart, mr_string name)
{
    char title[sizeof(chart->title)], safe[64];
    text_copy(safe, sizeof(safe), name, 32);
    snprintf(title, sizeof(title), "%s: %.60s", safe, chart->title);
    memcpy(chart->title, title, sizeof(title));
}

static bool add_images(const stats *stats, int bins, charts *charts)
{
    int with_images = 0;
    for (size_t i = 0; i < stats->count; i++) with_images += stats->columns[i]->images != nullptr;
    for (size_t i = 0; i < stats->count; i++) {
        const column *column = stats->columns[i];
        if (!column->images) continue;
        chart *first = add(charts, IMAGES_CHARTS_MAX);
        if (!first) return false;
        int made = images_charts(column->images, bins, first);
        charts->count -= IMAGES_CHARTS_MAX - made;
        for (int j = 0; j < made && with_images > 1; j++) prefix_title(&first[j], column->name);
    }
    return true;
}

/* ---- Numbers ---- */

void stats_number_chart(chart *chart, const numbers *numbers, int bins, const char *title, const char *note,
                        const char *unit)
{
    double low = numbers_quantile(numbers, 0.05), high = numbers_quantile(numbers, 0.95);
    chart_scale scale = numbers->is_real ? CHART_LINEAR : CHART_INTEGERS;
    if (low > 0 && high > 50 * low) scale = CHART_LOG;
    images_histogram(chart, numbers, scale, bins, title, note, unit);
}

static bool add_numbers(const numbers *numbers, mr_string name, const char *what, const char *unit, int bins,
                        charts *charts)
{
    if (numbers->count < 2 || numbers->least == numbers->most) return true;
    char title[128], safe[96], note[160], mean[CHART_NUMBER_SIZE], std[CHART_NUMBER_SIZE], median[CHART_NUMBER_SIZE];
    text_copy(safe, sizeof(safe), name, 48);
    snprintf(title, sizeof(title), "%s%s", safe, what);
    snprintf(note, sizeof(note), "mean %s ± %s, median %s", chart_number(numbers_mean(numbers), mean),
             chart_number(numbers_std(numbers), std), chart_number(numbers_quantile(numbers, 0.5), median));
    chart *chart = add(charts, 1);
    if (!chart) return false;
    stats_number_chart(chart, numbers, bins, "", note, unit);
    memcpy(chart->title, title, sizeof(chart->title)); /* already safe */
    return true;
}

static bool is_class(const stats *stats, mr_string name)
{
    for (int i = 0; i < STATS_CLASSES; i++)
        if (stats->classes[i].records > 0 && mr_string_equal(name, mr_string_from(stats_classes_name(i)))) return true;
    return false;
}

static bool add_columns(const stats *stats, int bins, charts *charts)
{
    int most = charts->count + PANELS_MAX;
    for (size_t i = 0; i < stats->count && charts->count < most; i++) {
        const column *column = stats->columns[i];
        if (!is_class(stats, column->name) &&
            (!add_numbers(&column->integers, column->name, "", "values", bins, charts) ||
             !add_numbers(&column->reals, column->name, "", "values", bins, charts)))
            return false;
        if (!column->images &&
            !add_numbers(&column->texts.lengths, column->name, ", bytes of a value", "values", bins, charts))
            return false;
        if (!add_numbers(&column->lengths.numbers, column->name,
                         column->is_list ? ", steps a record" : ", values a record", "records", bins, charts))
            return false;
    }
    return true;
}

bool stats_charts(const stats *stats, int bins, bool is_all, charts *charts)
{
    if (!add_classes(stats, charts) || !add_images(stats, bins, charts)) return false;
    if (!is_all) return true;
    if (charts->count == 0 && stats->sizes.count > 0 && stats->sizes.least < stats->sizes.most) {
        chart *chart = add(charts, 1);
        if (!chart) return false;
        images_histogram(chart, &stats->sizes, CHART_BYTES, bins, "Bytes of a record", "", "records");
    }
    return add_columns(stats, bins, charts);
}
