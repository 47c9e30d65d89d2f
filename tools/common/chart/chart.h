/* Bar charts and histograms, for a terminal and as one SVG with a panel for each chart.
 *
 * ```c
 * chart chart = {0};
 * chart_begin(&chart, CHART_BARS, "classes", "2 classes", "records");
 * chart_add_bar(&chart, MR_STR("cat"), 120);
 * chart_add_bar(&chart, MR_STR("dog"), 80);
 * chart_print(stdout, &chart, 60, true);
 * if (chart_svg_write(stdout, "pets", "200 records", &chart, 1) != 0) return 1;
 * ```
 *
 * Labels may contain any bytes: what is not printable is escaped, what is too long is cut. A chart is a value of fixed
 * size (16 KiB); adding more than CHART_BARS_MAX bars is an assertion failure. */
#ifndef MR_TOOLS_COMMON_CHART_H
#define MR_TOOLS_COMMON_CHART_H

#include <millrace/tensor.h>

#include <stdio.h>

#define CHART_BARS_MAX 64

typedef enum chart_kind {
    CHART_BARS = 0,  /* a value for each name: horizontal bars */
    CHART_HISTOGRAM, /* counts between edges: columns in SVG, rows on a terminal */
} chart_kind;

/* Spacing and format of edges and ticks. */
typedef enum chart_scale {
    CHART_LINEAR = 0,
    CHART_INTEGERS, /* as CHART_LINEAR, with integer edges */
    CHART_LOG,      /* 1, 2, 5, 10, … */
    CHART_BYTES,    /* powers of two, "64 KiB" */
} chart_scale;

typedef struct chart_bar {
    char label[96]; /* CHART_BARS; safe text */
    double value;
    double begin, end; /* CHART_HISTOGRAM; −∞ and +∞ if the first and the last are open */
    bool is_rest;      /* "… 988 more": shown without a bar */
} chart_bar;

typedef struct chart {
    chart_kind kind;
    chart_scale scale;
    char title[128];
    char note[192];   /* one phrase below the title; may be empty */
    char unit[32];    /* unit of the values: "records" */
    double total;     /* the value that is 100 %: the sum of the bars unless set */
    bool is_estimate; /* counts are estimates, shown as "≈ 120" */
    int count;
    chart_bar bars[CHART_BARS_MAX];
} chart;

/* Clears the chart. Texts are copied; long ones are cut. */
void chart_begin(chart *chart, chart_kind kind, const char *title, const char *note, const char *unit);
void chart_add_bar(chart *chart, mr_string label, double value);
/* A row between bars that stands for omitted bars; its value counts towards the total. */
void chart_add_rest(chart *chart, const char *text, double value);

/* The number of counted values below a value. */
typedef double chart_below(const void *context, double value);
/* Computes a histogram's bins: about bins_wanted (at most 40) between round edges. If there are few outliers, the first
 * and the last bin are open.
 * least, most  of all values
 * low, high    range of nearly all values, for example the quantiles 0.005 and 0.995
 * total        number of all values */
void chart_set_bins(chart *chart, chart_scale scale, double least, double low, double high, double most, double total,
                    int bins_wanted, chart_below *below, const void *context);

/* Rows of label, bar, value and percentage, at most `columns` wide. Without is_utf8 in plain ASCII, except labels. */
void chart_print(FILE *file, const chart *chart, int columns, bool is_utf8);
/* A histogram as ▁▂▅█, one character for each bin, written to text, which is returned. */
#define CHART_SPARK_SIZE (CHART_BARS_MAX * 3 + 1)
char *chart_spark(const chart *chart, bool is_utf8, char text[CHART_SPARK_SIZE]);
/* Whether the terminal shows UTF-8, according to LC_ALL, LC_CTYPE or LANG. */
bool chart_is_utf8(void);

/* Writes a complete SVG: light or dark as the reader prefers, in two columns or, on a narrow screen, in one. Returns
 * nonzero when the file cannot be written. */
int chart_svg_write(FILE *file, const char *title, const char *note, const chart *charts, int count);
/* Whether the file starts as chart_svg_write writes it. False if it cannot be read. */
bool chart_svg_is_ours(const char *path);

/* ---- Number formatting ---- */

#define CHART_NUMBER_SIZE 32
/* "12,345", "0.0312", "1.5e+12": about six digits. */
char *chart_number(double value, char text[CHART_NUMBER_SIZE]);
/* An edge or tick of a scale: as chart_number, "64 KiB" for CHART_BYTES. */
char *chart_edge(chart_scale scale, double value, char text[CHART_NUMBER_SIZE]);
/* The round step (1, 2 or 5 times a power of ten) that divides a span into at most `most` parts. */
double chart_step(double span, int most);

#endif
