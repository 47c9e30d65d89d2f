/* Charts as one self-contained SVG. Panels of equal width are arranged in two columns, each below the shorter column so
 * far; in a narrow window, style rules stack them at the width of the window. Colors follow the reader's preference for
 * light or dark. An image tag shows the SVG with the proportions of the two columns, even on a narrow page, so the
 * rules for narrow windows must not apply there: they also test the proportions. */
#include "common/chart/chart.h"

#include "common/file.h"

#include "common/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In user units, which are pixels if there is room. */
static constexpr int PANEL = 384, GAP = 16, HEAD = 64, WIDTH = 2 * PANEL + 3 * GAP;
static constexpr int PAD = 16, ROW = 22, PLOT_HEIGHT = 150, PLOT_LEFT = 52;
static constexpr int NOTE_WIDTH = PANEL - 2 * PAD, LABEL_WIDTH = 118, VALUE_WIDTH = 112;

static const char style[] =
    ":root{color-scheme:light dark}"
    "svg{display:block;margin:0 auto;max-width:100%;height:auto;background:#f6f6f4;font:12.5px "
    "system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',sans-serif}"
    "text{fill:#1c2127}"
    ".page{fill:#f6f6f4}.card{fill:#fff;stroke:#e2e2de}.bar{fill:#3468b4}.far{fill:#9db7dc}.track{fill:#f1f1ee}"
    ".grid{stroke:#e9e9e6}.axis{stroke:#a9afb6}"
    ".big{font-size:19px;font-weight:600}.title{font-size:14px;font-weight:600}.mute{fill:#626b75}"
    ".end{text-anchor:end}.mid{text-anchor:middle}.num{font-variant-numeric:tabular-nums}"
    "rect.bar:hover,rect.far:hover{opacity:.75}"
    "@media(prefers-color-scheme:dark){svg{background:#0f1216}text{fill:#e7eaee}.page{fill:#0f1216}"
    ".card{fill:#181c22;stroke:#2b313a}.bar{fill:#78a6ea}.far{fill:#40587c}.track{fill:#20252c}.grid{stroke:#272d35}"
    ".axis{stroke:#5a636e}.mute{fill:#9ba5b0}}";

/* Writes text with XML's special characters escaped and forbidden ones replaced. */
static void put_text(FILE *file, const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '&')
            fputs("&amp;", file);
        else if (*at == '<')
            fputs("&lt;", file);
        else if (*at == '>')
            fputs("&gt;", file);
        else if (*at == '"')
            fputs("&quot;", file);
        else if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0)
            fputs("\xef\xbf\xbd", file), at += 2;
        else if ((unsigned char)*at < 0x20)
            fputc('?', file);
        else
            fputc(*at, file);
    }
}

/* The length of the character at text, and its approximate width at 12.5 px. */
static size_t measure_character(const char *text, double *width)
{
    unsigned char byte = (unsigned char)*text;
    size_t length = 1;
    while ((text[length] & 0xc0) == 0x80) length++;
    *width = byte >= 0xe1                                  ? 12.5
             : byte >= 0x80                                ? 8
             : strchr("il.,:;'|!", byte)                   ? 3.7
             : strchr("fjrt()[]-/ I\"\\", byte)            ? 5
             : strchr("mwMW%@", byte)                      ? 11.5
             : (byte >= 'A' && byte <= 'Z') || byte == '&' ? 8.6
                                                           : 7.3;
    return length;
}

static double measure(const char *text)
{
    double sum = 0, width;
    for (; *text; text += measure_character(text, &width), sum += width) {}
    return sum;
}

/* Writes the text, or as much of it as fits followed by "…". */
static void put_cut(FILE *file, const char *text, double room)
{
    char cut[256];
    size_t at = 0;
    double sum = 0, width;
    if (measure(text) <= room) {
        put_text(file, text);
        return;
    }
    for (size_t length; text[at]; at += length, sum += width) {
        length = measure_character(text + at, &width);
        if (sum + width > room - 11 || at + length >= sizeof(cut)) break;
    }
    snprintf(cut, sizeof(cut), "%.*s", (int)at, text);
    put_text(file, cut);
    fputs("…", file);
}

/* The end of the first line of a text that has to fit. */
static size_t break_line(const char *text, double room)
{
    size_t at = 0, end = 0;
    double sum = 0, width;
    for (size_t length; text[at]; at += length, sum += width) {
        length = measure_character(text + at, &width);
        if (text[at] == ' ') end = at;
        if (sum + width > room && end > 0) return end;
    }
    return at;
}

static int note_lines(const chart *chart)
{
    if (!chart->note[0]) return 0;
    return chart->note[break_line(chart->note, NOTE_WIDTH)] ? 2 : 1;
}

static int head_height(const chart *chart)
{
    return 38 + 17 * note_lines(chart);
}

static int panel_height(const chart *chart)
{
    if (chart->kind == CHART_BARS) return head_height(chart) + ROW * chart->count + 10;
    return head_height(chart) + 8 + PLOT_HEIGHT + 32;
}

static void put_head(FILE *file, const chart *chart, int height)
{
    fprintf(file, "<rect class=\"card\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", PANEL - 1,
            height - 1);
    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"27\">", PAD);
    put_cut(file, chart->title, (PANEL - 2 * PAD) / 1.15);
    fputs("</text>\n", file);
    char line[sizeof(chart->note)];
    size_t end = break_line(chart->note, NOTE_WIDTH);
    if (end > 0) {
        snprintf(line, sizeof(line), "%.*s", (int)end, chart->note);
        fprintf(file, "<text class=\"mute\" x=\"%d\" y=\"45\">", PAD);
        put_text(file, line);
        fputs("</text>\n", file);
    }
    if (chart->note[end]) {
        fprintf(file, "<text class=\"mute\" x=\"%d\" y=\"62\">", PAD);
        put_cut(file, chart->note + end + 1, NOTE_WIDTH);
        fputs("</text>\n", file);
    }
}

static void put_part(FILE *file, const chart *chart, double value)
{
    double part = chart->total > 0 ? 100 * value / chart->total : 0;
    fprintf(file, part > 0 && part < 0.05 ? "&lt; 0.1 %%" : "%.1f %%", part);
}

static double greatest(const chart *chart)
{
    double most = 0;
    for (int i = 0; i < chart->count; i++)
        if (!chart->bars[i].is_rest && chart->bars[i].value > most) most = chart->bars[i].value;
    return most > 0 ? most : 1;
}

/* ---- Horizontal bars ---- */

static void put_bars(FILE *file, const chart *chart)
{
    char number[CHART_NUMBER_SIZE];
    double most = greatest(chart), labels = 0;
    for (int i = 0; i < chart->count; i++) labels = fmax(labels, measure(chart->bars[i].label));
    if (labels > LABEL_WIDTH) labels = LABEL_WIDTH;
    double left = round(PAD + labels + 10), room = PANEL - PAD - VALUE_WIDTH - left;
    for (int i = 0; i < chart->count; i++) {
        const chart_bar *bar = &chart->bars[i];
        int y = head_height(chart) + ROW * i + 2;
        fputs("<g><title>", file);
        put_text(file, bar->label);
        fprintf(file, ": %s ", chart_number(bar->value, number));
        put_text(file, chart->unit);
        fputs("</title>\n", file);
        fprintf(file, "<text class=\"%s\" x=\"%g\" y=\"%d\">", bar->is_rest ? "end mute" : "end", left - 8, y + 13);
        put_cut(file, bar->label, labels + 6);
        fputs("</text>\n", file);
        if (!bar->is_rest) {
            double width = bar->value > 0 ? fmax(1, room * bar->value / most) : 0;
            fprintf(file, "<rect class=\"track\" x=\"%g\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"2\"/>\n", left, y,
                    room);
            fprintf(file, "<rect class=\"bar\" x=\"%g\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"2\"/>\n", left, y,
                    width);
        }
        fprintf(file, "<text class=\"end num\" x=\"%d\" y=\"%d\">%s</text>\n", PANEL - PAD - 58, y + 13, number);
        fprintf(file, "<text class=\"end num mute\" x=\"%d\" y=\"%d\">", PANEL - PAD, y + 13);
        put_part(file, chart, bar->value);
        fputs("</text></g>\n", file);
    }
}

/* ---- Histograms ---- */

typedef struct plot {
    double left, right, top, bottom, most;
    double bin;      /* width of one bin */
    int first, last; /* range of bins that are not open */
} plot;

/* Grid lines and numbers on the left. The top of the axis is a tick. */
static void put_counts(FILE *file, const chart *chart, plot *plot)
{
    char number[CHART_NUMBER_SIZE];
    double step = chart_step(greatest(chart), 4);
    if (step < 1) step = 1;
    plot->most = step * ceil(greatest(chart) / step - 1e-9);
    for (double value = 0; value <= plot->most * 1.0001; value += step) {
        double y = plot->bottom - (plot->bottom - plot->top) * value / plot->most;
        fprintf(file, "<path class=\"%s\" d=\"M%g %.1fH%g\"/>\n", value > 0 ? "grid" : "axis", plot->left,
                round(y) + .5, plot->right);
        fprintf(file, "<text class=\"end num mute\" x=\"%g\" y=\"%.1f\">%s</text>\n", plot->left - 8, y + 4.5,
                value >= 1e6 ? (snprintf(number, sizeof(number), "%gM", value / 1e6), number)
                             : chart_number(value, number));
    }
}

static double edge_of(const chart *chart, const plot *plot, int index)
{
    return index <= plot->last ? chart->bars[index].begin : chart->bars[plot->last].end;
}

/* Whether an edge gets a number if only every stride-th may have one. */
static bool is_tick(const chart *chart, const plot *plot, int index, int stride)
{
    double value = edge_of(chart, plot, index);
    if (chart->scale == CHART_BYTES) {
        double exponent = log2(value);
        return fabs(exponent - round(exponent)) < 1e-6 && (int)round(exponent) % stride == 0;
    }
    if (chart->scale == CHART_LOG) {
        double mantissa = value / pow(10, floor(log10(value) + 1e-9));
        bool is_one = fabs(mantissa - 1) < 1e-6, is_few = fabs(mantissa - 2) < 1e-6 || fabs(mantissa - 5) < 1e-6;
        if (stride == 1) return is_one || is_few;
        return is_one && (int)round(log10(value)) % (stride - 1) == 0;
    }
    double step = chart->bars[plot->first].end - chart->bars[plot->first].begin;
    return llround(fmod(value / step, 1e15)) % stride == 0;
}

/* Whether step × stride is 1, 2, 2.5 or 5 times a power of ten. */
static bool is_round(const chart *chart, const plot *plot, int stride)
{
    if (chart->scale == CHART_LOG || chart->scale == CHART_BYTES) return true;
    double step = stride * (chart->bars[plot->first].end - chart->bars[plot->first].begin);
    double mantissa = step / pow(10, floor(log10(step) + 1e-9));
    return fabs(mantissa - 1) < 1e-6 || fabs(mantissa - 2) < 1e-6 || fabs(mantissa - 2.5) < 1e-6 ||
           fabs(mantissa - 5) < 1e-6;
}

/* Whether each bin is one integer, which is printed below its center. */
static bool is_single(const chart *chart, const plot *plot)
{
    return chart->scale == CHART_INTEGERS && chart->bars[plot->first].end - chart->bars[plot->first].begin == 1;
}

static int choose_stride(const chart *chart, const plot *plot)
{
    for (int stride = 1; stride < 1000; stride++) {
        int ticks = 0;
        for (int i = plot->first; i <= plot->last + !is_single(chart, plot); i++)
            ticks += is_tick(chart, plot, i, stride);
        if (ticks <= 6 && is_round(chart, plot, stride)) return stride;
    }
    return 1000;
}

/* Numbers below the axis that do not overlap: earlier ones take precedence. */
typedef struct edge_row {
    double y, spans[64][2];
    int count;
} edge_row;

static void put_edge(FILE *file, edge_row *row, double x, const char *sign, const char *text)
{
    double half = (measure(sign) + measure(text)) / 2;
    if (x + half > PANEL - 6) x = PANEL - 6 - half;
    if (x - half < 6) x = 6 + half;
    for (int i = 0; i < row->count; i++)
        if (x - half < row->spans[i][1] + 4 && x + half > row->spans[i][0] - 4) return;
    assert(row->count < 64);
    row->spans[row->count][0] = x - half;
    row->spans[row->count++][1] = x + half;
    fprintf(file, "<text class=\"mid num mute\" x=\"%.1f\" y=\"%g\">%s%s</text>\n", x, row->y,
            *sign == '<' ? "&lt; " : sign, text);
}

/* Numbers below the open bins, then at round edges. */
static void put_edges(FILE *file, const chart *chart, const plot *plot)
{
    char number[CHART_NUMBER_SIZE];
    edge_row row = {.y = plot->bottom + 18};
    bool is_middle = is_single(chart, plot);
    int stride = choose_stride(chart, plot);
    if (plot->last + 1 < chart->count)
        put_edge(file, &row, plot->right - plot->bin / 2, "≥ ",
                 chart_edge(chart->scale, chart->bars[plot->last + 1].begin, number));
    if (plot->first > 0)
        put_edge(file, &row, plot->left + plot->bin / 2, "< ", chart_edge(chart->scale, chart->bars[0].end, number));
    for (int i = plot->first; i <= plot->last + !is_middle; i++) {
        double x = plot->left + plot->bin * (i + (is_middle ? .5 : 0));
        if (!is_tick(chart, plot, i, stride)) continue;
        fprintf(file, "<path class=\"axis\" d=\"M%.1f %gv4\"/>\n", x, plot->bottom);
        put_edge(file, &row, x, "", chart_edge(chart->scale, edge_of(chart, plot, i), number));
    }
}

static void put_histogram(FILE *file, const chart *chart)
{
    plot plot = {.left = PLOT_LEFT, .right = PANEL - PAD - 4, .top = head_height(chart) + 8, .last = chart->count - 1};
    plot.bottom = plot.top + PLOT_HEIGHT;
    if (chart->count == 0) return;
    plot.bin = (plot.right - plot.left) / chart->count;
    if (chart->bars[0].begin == -INFINITY && chart->count > 1) plot.first++;
    if (chart->bars[plot.last].end == INFINITY && plot.last > plot.first) plot.last--;
    put_counts(file, chart, &plot);
    double gap = is_single(chart, &plot) ? fmin(plot.bin * 0.15, 8) : plot.bin > 6 ? 1 : 0.5;
    for (int i = 0; i < chart->count; i++) {
        const chart_bar *bar = &chart->bars[i];
        char begin[CHART_NUMBER_SIZE], end[CHART_NUMBER_SIZE], value[CHART_NUMBER_SIZE];
        bool is_open = i < plot.first || i > plot.last;
        double height = (plot.bottom - plot.top) * bar->value / plot.most;
        if (bar->value > 0 && height < 1) height = 1;
        fprintf(file, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s><title>",
                is_open ? "far" : "bar", plot.left + plot.bin * i + gap / 2, plot.bottom - height, plot.bin - gap,
                height, plot.bin > 8 && height > 4 ? " rx=\"1.5\"" : "");
        chart_edge(chart->scale, bar->begin, begin);
        chart_edge(chart->scale, bar->end, end);
        if (i < plot.first)
            fprintf(file, "below %s", end);
        else if (i > plot.last)
            fprintf(file, "from %s", begin);
        else
            fprintf(file, "%s – %s", begin, end);
        fprintf(file, ": %s%s ", chart->is_estimate ? "≈" : "", chart_number(bar->value, value));
        put_text(file, chart->unit);
        fputs(" (", file);
        put_part(file, chart, bar->value);
        fputs(")</title></rect>\n", file);
    }
    fprintf(file, "<path class=\"axis\" d=\"M%g %.1fH%g\"/>\n", plot.left, round(plot.bottom) + .5, plot.right);
    put_edges(file, chart, &plot);
}

/* ---- Document ---- */

/* Computes the position of each panel: x and y in two columns, and y in one. Returns the heights of both layouts. */
static void arrange(const chart *charts, int count, int (*places)[3], int heights[2])
{
    int columns[2] = {HEAD, HEAD}, single = HEAD;
    for (int i = 0; i < count; i++) {
        int column = columns[1] < columns[0], height = panel_height(&charts[i]) + GAP;
        places[i][0] = GAP + column * (PANEL + GAP);
        places[i][1] = columns[column];
        places[i][2] = single;
        columns[column] += height;
        single += height;
    }
    heights[0] = columns[0] > columns[1] ? columns[0] : columns[1];
    heights[1] = single;
}

/* Rules for narrow windows: everything is enlarged by `scale`, in user units of the wide layout. */
static void put_narrow_rules(FILE *file, int (*places)[3], int count, const int heights[2])
{
    double scale = (double)WIDTH / (PANEL + 2 * GAP), shape = (double)WIDTH / heights[0];
    fprintf(file,
            "@media(max-width:699px) and (max-aspect-ratio:%d/1000),(max-width:699px) and (min-aspect-ratio:%d/1000){",
            (int)(shape * 970), (int)(shape * 1030) + 1);
    fprintf(file, "svg{width:100vw;max-width:none;height:%.2fvw}.page{height:%.1fpx}", 100 * scale * heights[1] / WIDTH,
            scale * heights[1]);
    fprintf(file, "#head{transform:scale(%.4f)}", scale);
    for (int i = 0; i < count; i++)
        fprintf(file, "#p%d{transform:translate(%.1fpx,%.1fpx) scale(%.4f)}", i, scale * GAP, scale * places[i][2],
                scale);
    fputs("}", file);
}

/* The first bytes of every SVG, up to the width. */
static const char svg_start[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ";

bool chart_svg_is_ours(const char *path)
{
    char expected[sizeof svg_start + 16];
    int length = snprintf(expected, sizeof expected, "%s%d ", svg_start, WIDTH);
    return file_begins_with(path, expected, (size_t)length);
}

int chart_svg_write(FILE *file, const char *title, const char *note, const chart *charts, int count)
{
    int(*places)[3] = calloc((size_t)count + 1, sizeof(*places)), heights[2];
    char safe_title[256], safe_note[256];
    if (!places) return -1;
    text_copy(safe_title, sizeof(safe_title), mr_string_from(title), 80);
    text_copy(safe_note, sizeof(safe_note), mr_string_from(note), 120);
    arrange(charts, count, places, heights);
    fprintf(file,
            "%s%d %d\" width=\"%d\" height=\"%d\""
            " preserveAspectRatio=\"xMinYMin meet\" role=\"img\">\n<title>",
            svg_start, WIDTH, heights[0], WIDTH, heights[0]);
    put_text(file, safe_title);
    fputs("</title>\n<meta xmlns=\"http://www.w3.org/1999/xhtml\" name=\"viewport\""
          " content=\"width=device-width,initial-scale=1\"/>\n<style>",
          file);
    fputs(style, file);
    put_narrow_rules(file, places, count, heights);
    fprintf(file, "</style>\n<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", WIDTH, heights[0]);
    fprintf(file, "<g id=\"head\"><text class=\"big\" x=\"%d\" y=\"30\">", GAP + 2);
    put_cut(file, safe_title, (PANEL - 4) / 1.52);
    fprintf(file, "</text>\n<text class=\"mute\" x=\"%d\" y=\"50\">", GAP + 2);
    put_cut(file, safe_note, PANEL - 4);
    fputs("</text></g>\n", file);
    for (int i = 0; i < count; i++) {
        fprintf(file, "<g id=\"p%d\" transform=\"translate(%d,%d)\">\n", i, places[i][0], places[i][1]);
        put_head(file, &charts[i], panel_height(&charts[i]));
        if (charts[i].kind == CHART_BARS)
            put_bars(file, &charts[i]);
        else
            put_histogram(file, &charts[i]);
        fputs("</g>\n", file);
    }
    fputs("</svg>\n", file);
    free(places);
    return ferror(file) ? -1 : 0;
}
