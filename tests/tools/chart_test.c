/* Charts: bins with round bounds whose counts sum to the total, rows that fit the width, and SVG that is well-formed
 * for any name. */
#include "tests/test.h"
#include "tools/common/chart/chart.h"
#include "tools/common/text.h"

#include <expat.h>

/* count values, evenly distributed between least and most, and `far` more at most_far. */
typedef struct even {
    double least, most, count, far, most_far;
} even;

static double below_even(const void *context, double value)
{
    const even *e = context;
    double part = (value - e->least) / (e->most - e->least);
    return round(e->count * fmin(1, fmax(0, part))) + (value > e->most_far ? e->far : 0);
}

static void set_even(chart *chart, chart_scale scale, even e, int wanted)
{
    chart_begin(chart, CHART_HISTOGRAM, "title", "", "records");
    chart_set_bins(chart, scale, e.least, e.least, e.most, e.far > 0 ? e.most_far : e.most, e.count + e.far, wanted,
                   below_even, &e);
}

static double sum_of(const chart *chart)
{
    double sum = 0;
    for (int i = 0; i < chart->count; i++) sum += chart->bars[i].value;
    return sum;
}

TEST(chart_bins_are_round_and_add_up)
{
    static chart chart;
    set_even(&chart, CHART_INTEGERS, (even){.least = 3, .most = 997, .count = 5000}, 10);
    CHECK_EQ(chart.count, 10);
    CHECK_NEAR(chart.bars[0].begin, 0, 0);
    CHECK_NEAR(chart.bars[0].end, 100, 0);
    CHECK_NEAR(sum_of(&chart), 5000, 0);
    /* A few outliers are collected in one open bin; otherwise the histogram would have a single column. */
    set_even(&chart, CHART_INTEGERS, (even){.least = 100, .most = 199, .count = 5000, .far = 7, .most_far = 1e6}, 10);
    CHECK_EQ(chart.count, 11);
    CHECK(chart.bars[10].end == INFINITY);
    CHECK_NEAR(chart.bars[10].value, 7, 0);
    CHECK_NEAR(sum_of(&chart), 5007, 0);
    set_even(&chart, CHART_LINEAR, (even){.least = 0, .most = 1, .count = 1000}, 10);
    CHECK_EQ(chart.count, 10);
    CHECK_NEAR(chart.bars[9].end, 1, 1e-12);
    set_even(&chart, CHART_INTEGERS, (even){.least = 0, .most = 5, .count = 60}, 12);
    CHECK_EQ(chart.count, 6);
    CHECK_NEAR(sum_of(&chart), 60, 0);
    set_even(&chart, CHART_BYTES, (even){.least = 1000, .most = 1 << 20, .count = 60}, 12);
    CHECK_NEAR(chart.bars[0].begin, 512, 0);
    CHECK_NEAR(sum_of(&chart), 60, 0);
}

/* Every scale, over ranges from empty to all doubles. */
TEST(chart_bins_bear_any_span)
{
    static chart chart;
    const double ends[] = {-1.7e308, -3e9, -1, 0, 5e-324, 1e-9, 1, 1.0000001, 640, 9.3e18, 1.7e308};
    constexpr int count = sizeof ends / sizeof *ends;
    for (int scale = 0; scale < 4; scale++)
        for (int low = 0; low < count; low++)
            for (int high = low; high < count; high++)
                for (int wanted = 1; wanted <= 40; wanted += 13) {
                    even e = {.least = ends[low], .most = ends[high], .count = 100};
                    bool is_whole = scale == CHART_INTEGERS || scale == CHART_BYTES;
                    if (is_whole && (fabs(e.least) > 1e19 || fabs(e.most) > 1e19)) continue;
                    if (is_whole) e.least = floor(e.least), e.most = floor(e.most);
                    set_even(&chart, (chart_scale)scale, e, wanted);
                    CHECK(chart.count >= 1 && chart.count <= CHART_BARS_MAX);
                    CHECK_NEAR(sum_of(&chart), 100, 1e-9);
                    for (int i = 1; i < chart.count; i++) CHECK(chart.bars[i].begin == chart.bars[i - 1].end);
                    char *text = nullptr;
                    size_t size;
                    FILE *file = open_memstream(&text, &size);
                    chart_print(file, &chart, 60, true);
                    CHECK_EQ(chart_svg_write(file, "t", "n", &chart, 1), 0);
                    fclose(file);
                    free(text);
                }
}

/* The output of chart_print; valid until the next call. */
static const char *printed(const chart *chart, int columns, bool is_utf8)
{
    static char text[8192];
    FILE *file = fmemopen(text, sizeof text, "w");
    chart_print(file, chart, columns, is_utf8);
    fclose(file);
    return text;
}

static void check_columns(const char *text, int most)
{
    while (*text) {
        char line[4096];
        size_t length = strcspn(text, "\n");
        int columns;
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        (void)text_fit(line, INT32_MAX, &columns);
        if (columns > most) test_fail(__FILE__, __LINE__, "%d columns: %s", columns, line);
        text += length + (text[length] == '\n');
    }
}

static void make_bars(chart *chart)
{
    static char longest[3000];
    memset(longest, 'W', sizeof longest);
    chart_begin(
        chart, CHART_BARS, "a <title> & \"more\" of it, longer than anybody would make it, and longer still",
        "a note: 1 < 2, which needs more than one line when there are only so many columns, or even three lines", "x");
    chart_add_bar(chart, MR_STR("</text><script>alert(1)</script>&amp;"), 1'234'567);
    chart_add_bar(chart, MR_STR("line\nbreak \x1b[2J \xff\xfe ]]> \xef\xbf\xbf \xef\xbf\xbe"), 3);
    chart_add_bar(chart,
                  MR_STR("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x81\xa8\xe3\x81\xa6\xe3\x82\x82\xe9\x95"
                         "\xb7\xe3\x81\x84\xe5\x90\x8d\xe5\x89\x8d"),
                  0);
    chart_add_bar(chart, (mr_string){longest, sizeof longest}, 17);
    chart_add_bar(chart, (mr_string){nullptr, 0}, 1);
    chart_add_rest(chart, "… 988 more", 99);
}

TEST(chart_rows_fit_the_terminal)
{
    static chart chart;
    make_bars(&chart);
    check_columns(printed(&chart, 60, true), 60);
    check_columns(printed(&chart, 40, true), 40);
    CHECK_CONTAINS(printed(&chart, 60, true), "1,234,567 100.0 %\n");
    CHECK_CONTAINS(printed(&chart, 60, true), "███");
    CHECK_CONTAINS(printed(&chart, 60, true), "line\\nbreak \\x1b");
    CHECK(strchr(printed(&chart, 60, true), '\x1b') == nullptr);
    CHECK_CONTAINS(printed(&chart, 60, false), "####");
    CHECK(strstr(printed(&chart, 60, false), "█") == nullptr);
    set_even(&chart, CHART_INTEGERS, (even){.least = 0, .most = 999, .count = 1000}, 10);
    CHECK_CONTAINS(printed(&chart, 60, true), "  100 – 199  ████");
    CHECK_CONTAINS(printed(&chart, 60, true), "100  10.0 %\n");
    set_even(&chart, CHART_BYTES, (even){.least = 1 << 10, .most = 1e6, .count = 1e9}, 10);
    check_columns(printed(&chart, 60, true), 60);
    char spark[CHART_SPARK_SIZE];
    chart.bars[0].value = chart.bars[1].value = 0;
    CHECK(strncmp(chart_spark(&chart, true, spark), "  ▁", 5) == 0);
}

typedef struct seen {
    int rects, scripts, depth;
    char text[20000];
} seen;

static void XMLCALL begin_element(void *context, const char *name, const char **attributes)
{
    seen *seen = context;
    seen->rects += strcmp(name, "rect") == 0;
    seen->scripts += strcmp(name, "script") == 0;
    for (; *attributes; attributes += 2)
        CHECK(strstr(attributes[1], "nan") == nullptr && strstr(attributes[1], "inf") == nullptr);
}

static void XMLCALL take_text(void *context, const char *text, int length)
{
    seen *seen = context;
    size_t used = strlen(seen->text);
    CHECK(used + (size_t)length < sizeof seen->text);
    memcpy(seen->text + used, text, (size_t)length);
}

TEST(chart_svg_is_well_formed_and_escapes)
{
    static chart charts[6];
    static seen seen;
    make_bars(&charts[0]);
    set_even(&charts[1], CHART_INTEGERS, (even){.least = 0, .most = 5, .count = 1000}, 24);
    set_even(&charts[2], CHART_BYTES, (even){.least = 64, .most = 65536, .count = 1000, .far = 3, .most_far = 1e12},
             24);
    set_even(&charts[3], CHART_LOG, (even){.least = 0.001, .most = 1000, .count = 1000}, 24);
    set_even(&charts[4], CHART_LINEAR, (even){.least = 0.5, .most = 0.5, .count = 1000}, 24);
    chart_begin(&charts[5], CHART_HISTOGRAM, "nothing", "", "records");
    char *text = nullptr;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    CHECK_EQ(chart_svg_write(file, "<a> & 'b' \"c\" \x01\xff", "</svg>", charts, 6), 0);
    fclose(file);
    XML_Parser parser = XML_ParserCreate("UTF-8");
    XML_SetUserData(parser, &seen);
    XML_SetStartElementHandler(parser, begin_element);
    XML_SetCharacterDataHandler(parser, take_text);
    if (XML_Parse(parser, text, (int)size, 1) != XML_STATUS_OK)
        test_fail(__FILE__, __LINE__, "line %d: %s", (int)XML_GetCurrentLineNumber(parser),
                  XML_ErrorString(XML_GetErrorCode(parser)));
    XML_ParserFree(parser);
    CHECK_EQ(seen.scripts, 0);
    CHECK(seen.rects > 50);
    CHECK_CONTAINS(seen.text, "</text><script>alert(1)</script>&amp;: 1,234,567 x");
    CHECK_CONTAINS(seen.text, "prefers-color-scheme:dark");
    CHECK_CONTAINS(seen.text, "1 KiB");
    free(text);
}

TEST(chart_numbers_are_for_people)
{
    char text[CHART_NUMBER_SIZE];
    CHECK_STR(chart_number(0, text), "0");
    CHECK_STR(chart_number(-0.0, text), "0");
    CHECK_STR(chart_number(1234567, text), "1,234,567");
    CHECK_STR(chart_number(-1000, text), "-1,000");
    CHECK_STR(chart_number(0.031250001, text), "0.03125");
    CHECK_STR(chart_number(12345.678, text), "12,346");
    CHECK_STR(chart_number(1.5e12, text), "1.5e+12");
    CHECK_STR(chart_number(1e-9, text), "1e-09");
    CHECK_STR(chart_edge(CHART_BYTES, 65536, text), "64 KiB");
    CHECK_STR(chart_edge(CHART_BYTES, 1 << 20, text), "1 MiB");
    CHECK_NEAR(chart_step(100, 10), 10, 1e-9);
    CHECK_NEAR(chart_step(101, 10), 20, 1e-9);
    CHECK_NEAR(chart_step(0.7, 4), 0.2, 1e-9);
}
