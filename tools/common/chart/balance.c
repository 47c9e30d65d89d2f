/* See balance.h. */
#include "common/chart/balance.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With more classes than this, only the largest and the smallest are shown. */
static constexpr size_t CLASSES_SHOWN = 16, CLASSES_MOST = 9, CLASSES_LEAST = 4;
/* Beyond this range labels are arbitrary numbers, and missing ones mean nothing. */
static constexpr int64_t LABEL_MAX = 1 << 20;

static int compare_labels(const void *a, const void *b)
{
    const balance_class *x = a, *y = b;
    if (x->has_label != y->has_label) return x->has_label ? -1 : 1;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    size_t common = x->text.size_bytes < y->text.size_bytes ? x->text.size_bytes : y->text.size_bytes;
    int order = common > 0 ? memcmp(x->text.data, y->text.data, common) : 0;
    return order ? order : (x->text.size_bytes > y->text.size_bytes) - (x->text.size_bytes < y->text.size_bytes);
}

static int compare_counts(const void *a, const void *b)
{
    const balance_class *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return compare_labels(a, b);
}

static void add_class(chart *chart, const balance_class *class)
{
    char label[160];
    size_t used = 0, size = class->text.size_bytes;
    /* The label of a class whose text is its number is printed once. */
    if (class->has_label) used = (size_t)snprintf(label, sizeof(label), "%" PRId64, class->label);
    if (size > 0 && used == size && memcmp(label, class->text.data, size) == 0) size = 0;
    if (class->has_label)
        used = (size_t)snprintf(label, sizeof(label), "%" PRId64 "%s", class->label, size > 0 ? " " : "");
    if (size > sizeof(label) - used) size = sizeof(label) - used;
    if (size > 0) memcpy(label + used, class->text.data, size);
    chart_add_bar(chart, (mr_string){label, used + size}, (double)class->count);
}

/* The number of labels between the minimum and the maximum that do not occur; 0 if that is meaningless. Classes must be
 * sorted by label. */
static size_t count_missing(const balance_class *classes, size_t count)
{
    size_t labels = 1;
    for (size_t i = 0; i < count; i++) {
        if (!classes[i].has_label || classes[i].label < 0 || classes[i].label > LABEL_MAX) return 0;
        labels += i > 0 && classes[i].label != classes[i - 1].label;
    }
    return (size_t)(classes[count - 1].label - classes[0].label) + 1 - labels;
}

/* "6 classes; the largest is 1.2 times the smallest; labels 0 to 7: 2 do not occur" */
static void describe(const balance_class *classes, size_t count, bool is_exact, char *note, size_t size)
{
    char number[CHART_NUMBER_SIZE];
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = classes[i].count < least ? classes[i].count : least;
        most = classes[i].count > most ? classes[i].count : most;
    }
    int used = snprintf(note, size, "%s%s class%s", is_exact ? "" : "more than ", chart_number((double)count, number),
                        count == 1 ? "" : "es");
    if (count == 1 || !is_exact) return;
    double ratio = least > 0 ? (double)most / (double)least : INFINITY;
    if (least == 0)
        used += snprintf(note + used, size - (size_t)used, "; some are empty");
    else if (ratio < 1.05)
        used += snprintf(note + used, size - (size_t)used, ratio > 1 ? ", about equally large" : ", equally large");
    else
        used += snprintf(note + used, size - (size_t)used, "; the largest is %s times the smallest",
                         chart_number(ratio < 10 ? round(10 * ratio) / 10 : round(ratio), number));
    size_t missing = count_missing(classes, count);
    if (missing > 0)
        (void)snprintf(note + used, size - (size_t)used, "; labels %" PRId64 " to %" PRId64 ": %s %s not occur",
                       classes[0].label, classes[count - 1].label, chart_number((double)missing, number),
                       missing == 1 ? "does" : "do");
}

void balance_chart(chart *chart, const char *title, const char *unit, balance_class *classes, size_t count,
                   uint64_t total, bool is_exact)
{
    char note[192], rest[64], number[CHART_NUMBER_SIZE];
    assert(count > 0);
    qsort(classes, count, sizeof(*classes), compare_labels);
    describe(classes, count, is_exact, note, sizeof(note));
    chart_begin(chart, CHART_BARS, title, note, unit);
    if (count <= CLASSES_SHOWN) {
        for (size_t i = 0; i < count; i++) add_class(chart, &classes[i]);
    } else {
        double between = 0;
        qsort(classes, count, sizeof(*classes), compare_counts);
        for (size_t i = 0; i < CLASSES_MOST; i++) add_class(chart, &classes[i]);
        for (size_t i = CLASSES_MOST; i < count - CLASSES_LEAST; i++) between += (double)classes[i].count;
        snprintf(rest, sizeof(rest), "… %s more", chart_number((double)(count - CLASSES_MOST - CLASSES_LEAST), number));
        chart_add_rest(chart, rest, between);
        for (size_t i = count - CLASSES_LEAST; i < count; i++) add_class(chart, &classes[i]);
    }
    chart->total = (double)total;
}
