/* Chart data, and charts on a terminal; chart_svg.c draws SVG. */
#include "common/chart/chart.h"

#include "common/progress.h"
#include "common/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Numbers ---- */

/* Formats an integer with digits in groups of three. */
static void group_digits(double value, char text[CHART_NUMBER_SIZE])
{
    char digits[CHART_NUMBER_SIZE];
    int length = snprintf(digits, sizeof(digits), "%.0f", fabs(value)), to = 0;
    if (value < 0) text[to++] = '-';
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = '\0';
}

char *chart_number(double value, char text[CHART_NUMBER_SIZE])
{
    if (value == floor(value) && fabs(value) < 1e10)
        group_digits(value + 0.0, text);
    else if (fabs(value) >= 9999.5 && fabs(value) < 1e10)
        group_digits(round(value), text);
    else
        snprintf(text, CHART_NUMBER_SIZE, fabs(value) >= 1e10 || fabs(value) < 1e-4 ? "%.3g" : "%.4g", value);
    return text;
}

char *chart_edge(chart_scale scale, double value, char text[CHART_NUMBER_SIZE])
{
    if (scale == CHART_BYTES && value >= 0 && value < 0x1p60) {
        static_assert(CHART_NUMBER_SIZE >= PROGRESS_TEXT_SIZE);
        progress_size_text((uint64_t)value, text);
        char *zero = strstr(text, ".0 ");
        if (zero) memmove(zero, zero + 2, strlen(zero + 2) + 1);
        return text;
    }
    return chart_number(value, text);
}

double chart_step(double span, int most)
{
    if (!(span > 0)) return 1;
    double step = fmax(span / most, 1e-290), power = pow(10, floor(log10(step))), part = step / power;
    return power * (part <= 1.0000001 ? 1 : part <= 2.0000001 ? 2 : part <= 5.0000001 ? 5 : 10);
}

bool chart_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* ---- Construction ---- */

void chart_begin(chart *chart, chart_kind kind, const char *title, const char *note, const char *unit)
{
    chart->kind = kind;
    chart->scale = CHART_LINEAR;
    chart->total = 0;
    chart->is_estimate = false;
    chart->count = 0;
    text_copy(chart->title, sizeof(chart->title), mr_string_from(title), 60);
    text_copy(chart->note, sizeof(chart->note), mr_string_from(note), 160);
    text_copy(chart->unit, sizeof(chart->unit), mr_string_from(unit), 20);
}

static chart_bar *new_bar(chart *chart, double value)
{
    assert(chart->count < CHART_BARS_MAX);
    chart_bar *bar = &chart->bars[chart->count++];
    *bar = (chart_bar){.value = value};
    return bar;
}

void chart_add_bar(chart *chart, mr_string label, double value)
{
    chart_bar *bar = new_bar(chart, value);
    text_copy(bar->label, sizeof(bar->label), label, 60);
    chart->total += value;
}

void chart_add_rest(chart *chart, const char *text, double value)
{
    chart_add_bar(chart, mr_string_from(text), value);
    chart->bars[chart->count - 1].is_rest = true;
}

/* ---- Bins ---- */

static constexpr int BINS_MAX = 60;
/* Values beyond these limits are in an open bin, so that spans do not overflow. */
static constexpr double EDGE_MAX = 1e300;
static_assert(BINS_MAX + 2 <= CHART_BARS_MAX);

/* Mantissas of logarithmic edges, from coarse to fine. */
static const struct series {
    int count;
    double mantissas[10];
} all_series[] = {
    {1, {1}}, {3, {1, 2, 5}}, {5, {1, 1.6, 2.5, 4, 6.3}}, {10, {1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8}}};
static constexpr int SERIES_COUNT = sizeof(all_series) / sizeof(*all_series);

static double log_edge(const struct series *series, int index)
{
    int decade = (int)floor((double)index / series->count);
    return pow(10, decade) * series->mantissas[index - decade * series->count];
}

/* The index of the last edge of a series that is not above a value. */
static int log_index(const struct series *series, double value)
{
    int index = ((int)floor(log10(value)) - 1) * series->count;
    while (log_edge(series, index + 1) <= value * 1.0000001) index++;
    return index;
}

static int log_edges(double low, double high, int wanted, double edges[BINS_MAX + 1])
{
    int begin = 0, end = 0, chosen = -1;
    for (int i = SERIES_COUNT - 1; i >= 0 && chosen < 0; i--) {
        begin = log_index(&all_series[i], low);
        end = log_index(&all_series[i], high) + 1;
        if (end - begin <= wanted || i == 0) chosen = i;
    }
    /* The range of all doubles has too many decades for one bin each. */
    int stride = (end - begin + wanted - 1) / wanted, count = 0;
    if (stride < 1) stride = 1;
    for (int i = begin; i < end + stride && count <= wanted + 1; i += stride)
        edges[count++] = log_edge(&all_series[chosen], i);
    return count;
}

static int byte_edges(double low, double high, int wanted, double edges[BINS_MAX + 1])
{
    int begin = (int)floor(log2(low)), end = (int)floor(log2(high)) + 1, parts = 1, count = 0;
    while (parts < 4 && begin >= 3 && 2 * parts * (end - begin) <= wanted) parts *= 2;
    int stride = (end - begin + wanted - 1) / wanted;
    for (int i = begin; i < end + stride && count <= BINS_MAX; i += stride)
        for (int part = 0; part < parts && count <= BINS_MAX; part++) {
            edges[count++] = round(exp2(i + (double)part / parts));
            if (i >= end && part == 0) return count;
        }
    return count;
}

static int linear_edges(double low, double high, bool is_integral, int wanted, double edges[BINS_MAX + 1])
{
    double step = chart_step(fmax(high - low, 1e-12 * fmax(fabs(low), fabs(high))), wanted);
    if (is_integral && step < 1) step = 1;
    double begin = floor(low / step + 1e-9), end = is_integral ? floor(high / step) + 1 : ceil(high / step - 1e-9);
    int count = 0;
    if (end <= begin) end = begin + 1;
    for (double i = begin; i <= end && count <= BINS_MAX; i++) edges[count++] = i * step;
    return count;
}

void chart_set_bins(chart *chart, chart_scale scale, double least, double low, double high, double most, double total,
                    int bins_wanted, chart_below *below, const void *context)
{
    assert(bins_wanted > 0 && bins_wanted <= 40);
    if (scale == CHART_LOG && high <= 1e-300) scale = CHART_LINEAR;
    bool is_log = scale == CHART_LOG || scale == CHART_BYTES;
    double edges[BINS_MAX + 1];
    chart->scale = scale;
    chart->count = 0;
    chart->total = total;
    if (!(total > 0)) return;
    /* Outliers are beyond half the span of nearly all values. */
    double span = is_log ? 0 : high - low;
    if (least >= low - span / 2 && (!is_log || least > 0)) low = least;
    if (most <= high + span / 2) high = most;
    low = fmax(low, -EDGE_MAX);
    high = fmin(high, EDGE_MAX);
    if (is_log) {
        double floor_of_log = scale == CHART_BYTES ? 1 : 1e-300;
        low = low < floor_of_log ? floor_of_log : low;
        high = high < low ? low : high;
    }
    int count = scale == CHART_BYTES ? byte_edges(low, high, bins_wanted, edges)
                : is_log             ? log_edges(low, high, bins_wanted, edges)
                                     : linear_edges(low, high, scale == CHART_INTEGERS, bins_wanted, edges);
    assert(count >= 2 && count <= BINS_MAX + 1);
    double before = 0;
    if (least < edges[0] && (before = below(context, edges[0])) > 0) {
        chart_bar *bar = new_bar(chart, before);
        bar->begin = -INFINITY, bar->end = edges[0];
    }
    bool is_open = most > edges[count - 1] || (most == edges[count - 1] && scale == CHART_INTEGERS);
    for (int i = 0; i + 1 < count; i++) {
        double upto = i + 2 == count && !is_open ? total : below(context, edges[i + 1]);
        chart_bar *bar = new_bar(chart, upto - before);
        bar->begin = edges[i], bar->end = edges[i + 1];
        before = upto;
    }
    if (is_open && total > before) {
        chart_bar *bar = new_bar(chart, total - before);
        bar->begin = edges[count - 1], bar->end = INFINITY;
    }
}

/* ---- Terminal ---- */

/* Columns of the longest bar, and minimum width of labels. */
static constexpr int BAR_MIN = 4, BAR_MAX = 40, LABEL_MIN = 6;

/* The name of a histogram row. */
static void name_bin(const chart *chart, const chart_bar *bar, bool is_utf8, char text[96])
{
    char begin[CHART_NUMBER_SIZE], end[CHART_NUMBER_SIZE];
    chart_edge(chart->scale, bar->begin, begin);
    if (bar->begin == -INFINITY)
        snprintf(text, 96, "< %s", chart_edge(chart->scale, bar->end, end));
    else if (bar->end == INFINITY)
        snprintf(text, 96, is_utf8 ? "≥ %s" : ">= %s", begin);
    else if (chart->scale == CHART_INTEGERS && bar->end - bar->begin == 1)
        snprintf(text, 96, "%s", begin);
    else {
        double last = chart->scale == CHART_INTEGERS ? bar->end - 1 : bar->end;
        snprintf(text, 96, is_utf8 ? "%s – %s" : "%s - %s", begin, chart_edge(chart->scale, last, end));
    }
}

/* Prints a bar of `length` eighths of a character. */
static void print_bar(FILE *file, int length, int columns, bool is_utf8)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int used = 0;
    if (!is_utf8) length = (length + 4) / 8 * 8;
    for (; length >= 8; length -= 8, used++) fputs(is_utf8 ? "█" : "#", file);
    if (length > 0) fputs(eighths[length], file), used++;
    fprintf(file, "%*s", columns - used, "");
}

static int columns_of(const char *text)
{
    int columns;
    (void)text_fit(text, INT32_MAX, &columns);
    return columns;
}

static void print_wrapped(FILE *file, const char *text, int indent, int columns)
{
    int at = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        int width = 0;
        for (size_t i = 0; i < length; i++) width += (text[i] & 0xc0) != 0x80;
        if (at > 0 && at + 1 + width > columns) fputc('\n', file), at = 0;
        at += at == 0 ? fprintf(file, "%*s", indent, "") : fprintf(file, " ");
        fwrite(text, 1, length, file);
        at += width;
        text += length + strspn(text + length, " ");
    }
    if (at > 0) fputc('\n', file);
}

/* Prints a label in `columns` columns, cut if necessary. It is already safe: escaping it again would double its
 * escapes. */
static void print_label(FILE *file, const char *label, int columns, bool is_right, bool is_utf8)
{
    int used;
    size_t size = text_fit(label, columns, &used);
    bool is_cut = label[size] != '\0';
    if (is_cut) size = text_fit(label, columns - 1, &used);
    int left = columns - used - is_cut;
    fprintf(file, "  %*s%.*s%s%*s", is_right ? left : 0, "", (int)size, label,
            !is_cut   ? ""
            : is_utf8 ? "…"
                      : "~",
            is_right ? 0 : left, "");
}

/* The text to the left of a bar: a name, or the edges of a bin. */
static const char *label_of(const chart *chart, const chart_bar *bar, bool is_utf8, char text[96])
{
    if (chart->kind == CHART_BARS) return bar->label;
    name_bin(chart, bar, is_utf8, text);
    return text;
}

static const char *value_of(const chart *chart, const chart_bar *bar, bool is_utf8, char text[96])
{
    char number[CHART_NUMBER_SIZE];
    snprintf(text, 96, "%s%s", !chart->is_estimate ? "" : is_utf8 ? "≈" : "~", chart_number(bar->value, number));
    return text;
}

void chart_print(FILE *file, const chart *chart, int columns, bool is_utf8)
{
    int label_columns = 0, value_columns = 1, label_most = columns * 2 / 5;
    double most = 0;
    char text[96];
    print_wrapped(file, chart->title, 0, columns);
    print_wrapped(file, chart->note, 2, columns);
    for (int i = 0; i < chart->count; i++) {
        const chart_bar *bar = &chart->bars[i];
        char value_text[96];
        int label = columns_of(label_of(chart, bar, is_utf8, text)),
            value = columns_of(value_of(chart, bar, is_utf8, value_text));
        if (label > label_columns) label_columns = label < label_most ? label : label_most;
        if (value > value_columns) value_columns = value;
        if (!bar->is_rest && bar->value > most) most = bar->value;
    }
    int room = columns - label_columns - value_columns - 14;
    if (room < BAR_MIN)
        label_columns = label_columns > LABEL_MIN + BAR_MIN - room ? label_columns - BAR_MIN + room : LABEL_MIN;
    room = room > BAR_MAX ? BAR_MAX : room < BAR_MIN ? BAR_MIN : room;
    for (int i = 0; i < chart->count; i++) {
        const chart_bar *bar = &chart->bars[i];
        print_label(file, label_of(chart, bar, is_utf8, text), label_columns, chart->kind == CHART_HISTOGRAM, is_utf8);
        fputs("  ", file);
        print_bar(file, bar->is_rest || most <= 0 ? 0 : (int)ceil(bar->value / most * 8 * room), room, is_utf8);
        const char *value = value_of(chart, bar, is_utf8, text);
        fprintf(file, "  %*s%s", value_columns - columns_of(value), "", value);
        if (chart->total > 0) fprintf(file, " %5.1f %%", 100 * bar->value / chart->total);
        fputc('\n', file);
    }
}

char *chart_spark(const chart *chart, bool is_utf8, char text[CHART_SPARK_SIZE])
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[] = " .:-=+*#@";
    double most = 0;
    size_t at = 0;
    for (int i = 0; i < chart->count; i++) most = chart->bars[i].value > most ? chart->bars[i].value : most;
    text[0] = '\0';
    for (int i = 0; i < chart->count; i++) {
        int level = most > 0 ? (int)ceil(chart->bars[i].value / most * 8) : 0;
        if (is_utf8)
            at += (size_t)snprintf(text + at, CHART_SPARK_SIZE - at, "%s", eighths[level]);
        else
            at += (size_t)snprintf(text + at, CHART_SPARK_SIZE - at, "%c", ascii[level]);
    }
    return text;
}
