/* --stats as text: a block for each feature, then class balance and images as charts. Fits 60 columns. */
#include "common/progress.h"
#include "tfrecord-cat/stats_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Columns when the output is not a terminal, and the maximum. */
static constexpr int COLUMNS_PLAIN = 80, COLUMNS_MAX = 100;
static constexpr size_t TOP_SHOWN = 5;
static constexpr int SPARK_BINS = 16;

/* Items in sequence, wrapped to the width. */
typedef struct line {
    int columns, used;
    bool is_utf8;
} line;

[[gnu::format(printf, 2, 3)]] static void item(line *line, const char *format, ...)
{
    char text[256];
    int columns;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)text_fit(text, INT32_MAX, &columns);
    if (line->used > 0 && line->used + 2 + columns > line->columns) {
        putchar('\n');
        line->used = 0;
    }
    line->used += columns + 2;
    printf("  %s", text);
}

static void end_line(line *line)
{
    if (line->used > 0) putchar('\n');
    line->used = 0;
}

/* "16.7 %", "< 0.1 %" */
static const char *part(double value, double of, char text[16])
{
    double percent = of > 0 ? 100 * value / of : 0;
    snprintf(text, 16, percent > 0 && percent < 0.05 ? "< 0.1 %%" : "%.1f %%", percent);
    return text;
}

/* A key of a sketch or table as a number, integers with all digits. */
static const char *key_text(const numbers *numbers, int64_t key, char text[CHART_NUMBER_SIZE])
{
    if (numbers->is_real || llabs(key / 2) < 5'000'000'000) return chart_number(numbers_value(numbers, key), text);
    snprintf(text, CHART_NUMBER_SIZE, "%" PRId64, key);
    return text;
}

static void show_presence(line *line, const stats *stats, const column *column)
{
    char text[16], number[CHART_NUMBER_SIZE];
    uint64_t missing = stats->records - column->records;
    if (column->is_list && missing == 0)
        item(line, "list in all records");
    else if (missing == 0)
        item(line, "in all records");
    else
        item(line, "in %s, missing in %s", part((double)column->records, (double)stats->records, text),
             chart_number((double)missing, number));
    if (column->kinds[0] > 0) item(line, "%s without a list", chart_number((double)column->kinds[0], number));
    for (int kind = 1; kind < 4 && stats_kind_count(column) > 1; kind++) {
        static const char *const names[] = {"", "bytes", "float", "int64"};
        item(line, "%s in %s", names[kind], chart_number((double)column->kinds[kind], number));
    }
}

/* "2,700 values, 1 a record" */
static void show_lengths(line *line, const column *column)
{
    char total[CHART_NUMBER_SIZE], least[CHART_NUMBER_SIZE], most[CHART_NUMBER_SIZE], mean[CHART_NUMBER_SIZE],
        median[CHART_NUMBER_SIZE];
    const numbers *lengths = &column->lengths.numbers;
    chart_number(numbers_least(lengths), least);
    chart_number(numbers_most(lengths), most);
    const char *plural = column->values == 1 ? "" : "s";
    chart_number((double)column->values, total);
    if (lengths->count == 0)
        item(line, "%s value%s", total, plural);
    else if (lengths->least == lengths->most && column->is_list)
        item(line, "%s value%s, %s step%s a record", total, plural, least, lengths->least == 1 ? "" : "s");
    else if (lengths->least == lengths->most)
        item(line, "%s value%s, %s a record", total, plural, least);
    else
        item(line, "%s value%s, %s to %s %sa record, mean %s, median %s", total, plural, least, most,
             column->is_list ? "steps " : "", chart_number(numbers_mean(lengths), mean),
             chart_number(numbers_quantile(lengths, 0.5), median));
}

static void show_moments(line *line, const numbers *numbers)
{
    static chart chart;
    char text[CHART_NUMBER_SIZE], spark[CHART_SPARK_SIZE];
    if (numbers->count == 0) return;
    if (numbers->least == numbers->most) {
        item(line, "all %s", key_text(numbers, numbers->least, text));
        return;
    }
    stats_number_chart(&chart, numbers, SPARK_BINS, "", "", "");
    item(line, "min %s", key_text(numbers, numbers->least, text));
    item(line, "max %s", key_text(numbers, numbers->most, text));
    item(line, "mean %s", chart_number(numbers_mean(numbers), text));
    item(line, "std %s", chart_number(numbers_std(numbers), text));
    item(line, "%s%s%s", line->is_utf8 ? "" : "|", chart_spark(&chart, line->is_utf8, spark), line->is_utf8 ? "" : "|");
    end_line(line);
}

static void show_quantiles(line *line, const numbers *numbers)
{
    static const double ranks[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
    char text[CHART_NUMBER_SIZE];
    if (numbers->count < 2 || numbers->least == numbers->most) return;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        int64_t key = numbers_quantile_key(numbers, ranks[i]);
        if (ranks[i] == 0.5)
            item(line, "median %s", key_text(numbers, key, text));
        else
            item(line, "%.0f %%: %s", 100 * ranks[i], key_text(numbers, key, text));
    }
    end_line(line);
}

/* Prints frequent values: all if there are few, else those that exceed the table's error. */
static void show_top(line *line, const top *top, const numbers *numbers, uint64_t total, const tfds_feature *meaning)
{
    top_entry entries[TOP_SHOWN];
    char value[160], text[16];
    size_t count = top_list(top, entries, TOP_SHOWN);
    double floor = top->error == 0 ? 1 : fmax(2 * (double)top->error, 0.005 * (double)total);
    bool has_any = false;
    for (size_t i = 0; i < count; i++) {
        if ((double)entries[i].count < floor || (top->count > TOP_SHOWN && entries[i].count < 2)) break;
        if (!has_any) item(line, "most frequent:");
        has_any = true;
        const char *label = numbers && !numbers->is_real ? tfds_label(meaning, entries[i].number) : nullptr;
        if (label) {
            int used = snprintf(value, sizeof(value), "%" PRId64 " ", entries[i].number);
            text_copy(value + used, sizeof(value) - (size_t)used, mr_string_from(label), 28);
        } else if (numbers) {
            key_text(numbers, entries[i].number, value);
        } else {
            value[0] = '"';
            text_copy(value + 1, sizeof(value) - 2, entries[i].text, 28);
            size_t end = strlen(value);
            value[end] = '"', value[end + 1] = '\0';
        }
        item(line, "%s %s%s", value,
             top->error == 0 ? ""
             : line->is_utf8 ? "≈"
                             : "~",
             part((double)entries[i].count, (double)total, text));
    }
    if (has_any && top->error == 0 && top->count > count) item(line, "(%s distinct)", chart_number(top->count, value));
    if (!has_any && count > 0) item(line, "nearly all distinct");
    end_line(line);
}

static void show_numbers(line *line, const numbers *numbers, const tfds_feature *meaning)
{
    char text[16];
    double total = (double)numbers_total(numbers);
    if (total == 0) return;
    if (numbers->zeros > 0 && numbers->least != numbers->most)
        item(line, "%s are 0", part((double)numbers->zeros, total, text));
    if (numbers->nans > 0) item(line, "%" PRIu64 " NaN", numbers->nans);
    if (numbers->infinities[1] > 0) item(line, "%" PRIu64 " +inf", numbers->infinities[1]);
    if (numbers->infinities[0] > 0) item(line, "%" PRIu64 " -inf", numbers->infinities[0]);
    end_line(line);
    show_moments(line, numbers);
    show_quantiles(line, numbers);
    if (numbers->least != numbers->most) show_top(line, &numbers->top, numbers, numbers->count, meaning);
    end_line(line);
}

static void show_texts(line *line, const column *column)
{
    const texts *texts = &column->texts;
    const numbers *lengths = &texts->lengths;
    char text[16], sizes[4][PROGRESS_TEXT_SIZE], number[CHART_NUMBER_SIZE];
    if (lengths->count == 0) return;
    progress_size_text((uint64_t)lengths->least, sizes[0]);
    progress_size_text((uint64_t)lengths->most, sizes[1]);
    progress_size_text((uint64_t)(numbers_mean(lengths) + 0.5), sizes[2]);
    progress_size_text((uint64_t)numbers_quantile(lengths, 0.5), sizes[3]);
    if (lengths->least == lengths->most)
        item(line, "%s each", sizes[0]);
    else
        item(line, "%s to %s, mean %s, median %s", sizes[0], sizes[1], sizes[2], sizes[3]);
    if (lengths->zeros > 0) item(line, "%s empty", part((double)lengths->zeros, (double)lengths->count, text));
    end_line(line);
    uint64_t images = column->images ? column->images->count + column->images->sizeless : 0;
    uint64_t others = lengths->count - images - (column->images ? column->images->damaged : 0);
    if (images > 0) item(line, "%s image%s", chart_number((double)images, number), images == 1 ? "" : "s");
    if (column->images && column->images->damaged > 0)
        item(line, "%s with a damaged header", chart_number((double)column->images->damaged, number));
    if (column->images && others > 0) item(line, "%s that are not images", chart_number((double)others, number));
    end_line(line);
    if (!column->images && texts->long_count < lengths->count)
        show_top(line, &texts->top, nullptr, lengths->count, nullptr);
}

static void show_column(line *line, const stats *stats, const column *column, const tfds *tfds)
{
    char name[512];
    text_copy(name, sizeof(name), column->name, line->columns - 8);
    printf("\n%s  %s\n", name, stats_kind_name(column));
    show_presence(line, stats, column);
    show_lengths(line, column);
    end_line(line);
    show_numbers(line, &column->integers, tfds_find(tfds, column->name));
    show_numbers(line, &column->reals, nullptr);
    show_texts(line, column);
}

static const char *plural(uint64_t count, const char *what, char text[64])
{
    char number[CHART_NUMBER_SIZE];
    snprintf(text, 64, "%s %s%s", chart_number((double)count, number), what, count == 1 ? "" : "s");
    return text;
}

static void show_head(line *line, const stats *stats, const stats_about *about)
{
    char text[64], size[PROGRESS_TEXT_SIZE], sizes[3][PROGRESS_TEXT_SIZE];
    printf("%s", plural(stats->records, "record", text));
    if (stats->sequences > 0) printf(" (%s)", plural(stats->sequences, "SequenceExample", text));
    printf(", %s in %s\n", progress_size_text(stats->size_bytes, size), plural((uint64_t)about->files, "file", text));
    if (stats->sizes.count > 0) {
        item(line, "bytes of a record: %s to %s, median %s", progress_size_text((uint64_t)stats->sizes.least, sizes[0]),
             progress_size_text((uint64_t)stats->sizes.most, sizes[1]),
             progress_size_text((uint64_t)numbers_quantile(&stats->sizes, 0.5), sizes[2]));
        end_line(line);
    }
    if (about->lost > 0) printf("  without %s\n", plural(about->lost, "damaged region", text));
    if (about->bad_files > 0) printf("  without all of %s\n", plural((uint64_t)about->bad_files, "file", text));
    if (stats->strange > 0) printf("  without %s that are not Examples\n", plural(stats->strange, "record", text));
    if (stats->has_more) printf("  only the first %d features by name\n", STATS_FEATURES_MAX);
}

bool stats_show(const stats *stats, const stats_about *about)
{
    int columns = progress_columns(STDOUT_FILENO, COLUMNS_PLAIN);
    line line = {.columns = columns < COLUMNS_MAX ? columns : COLUMNS_MAX, .is_utf8 = chart_is_utf8()};
    charts charts = {0};
    show_head(&line, stats, about);
    for (size_t i = 0; i < stats->count; i++) show_column(&line, stats, stats->columns[i], about->tfds);
    bool has_memory = stats_charts(stats, 10, false, &charts);
    for (int i = 0; i < charts.count && has_memory; i++) {
        putchar('\n');
        chart_print(stdout, &charts.charts[i], line.columns, line.is_utf8);
    }
    free(charts.charts);
    return has_memory;
}
