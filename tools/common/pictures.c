/* See pictures.h. */
#include "tools/common/pictures.h"

#include "tools/common/progress.h"

#include <math.h>

/* Usual proportions, width by height. A picture counts for the nearest; one beyond the outermost for none. */
static const struct aspect {
    const char *name;
    double ratio;
} aspect_rows[PICTURES_ASPECTS] = {{"taller", 0},      {"1:2", 1.0 / 2}, {"9:16", 9.0 / 16}, {"2:3", 2.0 / 3},
                                   {"3:4", 3.0 / 4},   {"4:5", 4.0 / 5}, {"square", 1},      {"5:4", 5.0 / 4},
                                   {"4:3", 4.0 / 3},   {"3:2", 3.0 / 2}, {"16:9", 16.0 / 9}, {"2:1", 2},
                                   {"wider", INFINITY}};
/* How far beyond 1:2 and 2:1 still counts for them. */
static constexpr double OUTERMOST = 1.06;

const char *pictures_aspect_name(int aspect)
{
    return aspect_rows[aspect].name;
}

const char *pictures_color_name(int color)
{
    static const char *const names[PICTURES_COLORS] = {"unknown", "gray", "RGB", "CMYK"};
    return names[color];
}

static int aspect_of(double ratio)
{
    if (ratio < aspect_rows[1].ratio / OUTERMOST) return 0;
    if (ratio > aspect_rows[PICTURES_ASPECTS - 2].ratio * OUTERMOST) return PICTURES_ASPECTS - 1;
    int nearest = 1;
    for (int i = 2; i < PICTURES_ASPECTS - 1; i++)
        if (fabs(log(ratio / aspect_rows[i].ratio)) < fabs(log(ratio / aspect_rows[nearest].ratio))) nearest = i;
    return nearest;
}

bool pictures_add(pictures *pictures, mr_status status, const mr_image_info *info, size_t size_bytes)
{
    pictures->size_bytes += size_bytes;
    if (info->format >= 0 && info->format < PICTURES_FORMATS) pictures->formats[info->format]++;
    if (status != MR_OK || info->width <= 0 || info->height <= 0) {
        if (status == MR_OK || status == MR_UNIMPLEMENTED)
            pictures->sizeless++;
        else
            pictures->damaged++;
        return true;
    }
    pictures->count++;
    if (info->color >= 0 && info->color < PICTURES_COLORS) pictures->colors[info->color]++;
    if (info->orientation >= 0 && info->orientation <= 8) pictures->orientations[info->orientation]++;
    pictures->aspects[aspect_of((double)info->width / info->height)]++;
    pictures->alpha += info->color != MR_COLOR_CMYK && (info->channels == 2 || info->channels == 4);
    pictures->deep += info->bits > 8;
    pictures->progressive += info->progressive;
    pictures->animated += info->animated;
    pictures->profiles += info->profile;
    pictures->bytes.has_no_top = true;
    int64_t width = info->width, height = info->height, bytes = (int64_t)size_bytes;
    return numbers_add_ints(&pictures->widths, &width, 1) && numbers_add_ints(&pictures->heights, &height, 1) &&
           numbers_add_ints(&pictures->shorter, width < height ? &width : &height, 1) &&
           numbers_add_ints(&pictures->longer, width < height ? &height : &width, 1) &&
           numbers_add_ints(&pictures->bytes, &bytes, 1);
}

bool pictures_flush(pictures *pictures)
{
    return numbers_flush(&pictures->widths) && numbers_flush(&pictures->heights) && numbers_flush(&pictures->shorter) &&
           numbers_flush(&pictures->longer) && numbers_flush(&pictures->bytes);
}

static void add_counts(uint64_t *sums, const uint64_t *counts, int count)
{
    for (int i = 0; i < count; i++) sums[i] += counts[i];
}

bool pictures_merge(pictures *pictures, const struct pictures *other)
{
    numbers *sums[] = {&pictures->widths, &pictures->heights, &pictures->shorter, &pictures->longer, &pictures->bytes};
    const numbers *parts[] = {&other->widths, &other->heights, &other->shorter, &other->longer, &other->bytes};
    pictures->count += other->count;
    pictures->sizeless += other->sizeless;
    pictures->damaged += other->damaged;
    pictures->size_bytes += other->size_bytes;
    pictures->alpha += other->alpha;
    pictures->deep += other->deep;
    pictures->progressive += other->progressive;
    pictures->animated += other->animated;
    pictures->profiles += other->profiles;
    add_counts(pictures->formats, other->formats, PICTURES_FORMATS);
    add_counts(pictures->colors, other->colors, PICTURES_COLORS);
    add_counts(pictures->orientations, other->orientations, 9);
    add_counts(pictures->aspects, other->aspects, PICTURES_ASPECTS);
    pictures->bytes.has_no_top = true;
    for (int i = 0; i < 5; i++)
        if (!numbers_merge(sums[i], parts[i])) return false;
    return true;
}

void pictures_deinit(pictures *pictures)
{
    numbers_deinit(&pictures->widths);
    numbers_deinit(&pictures->heights);
    numbers_deinit(&pictures->shorter);
    numbers_deinit(&pictures->longer);
    numbers_deinit(&pictures->bytes);
}

/* ---- Charts ---- */

static double below(const void *context, double value)
{
    return numbers_below(context, value);
}

void pictures_histogram(chart *chart, const numbers *numbers, chart_scale scale, int bins, const char *title,
                        const char *note, const char *unit)
{
    chart_begin(chart, CHART_HISTOGRAM, title, note, unit);
    if (numbers->count == 0) return;
    chart->is_estimate = !numbers_is_exact(numbers);
    chart_set_bins(chart, scale, numbers_least(numbers), numbers_quantile(numbers, 0.005),
                   numbers_quantile(numbers, 0.995), numbers_most(numbers), (double)numbers->count, bins, below,
                   numbers);
}

/* "32 to 4,000, half of them between 375 and 500" */
static void describe(const numbers *numbers, chart_scale scale, char *note, size_t size)
{
    char texts[4][CHART_NUMBER_SIZE];
    chart_edge(scale, numbers_least(numbers), texts[0]);
    chart_edge(scale, numbers_most(numbers), texts[1]);
    chart_edge(scale, numbers_quantile(numbers, 0.25), texts[2]);
    chart_edge(scale, numbers_quantile(numbers, 0.75), texts[3]);
    if (numbers->least == numbers->most)
        snprintf(note, size, "all %s", texts[0]);
    else
        snprintf(note, size, "%s to %s, half of them %s%s to %s", texts[0], texts[1],
                 numbers_is_exact(numbers) ? "" : "about ", texts[2], texts[3]);
}

static void aspects_chart(const pictures *pictures, chart *chart)
{
    char note[128];
    double tall = 0, square = (double)pictures->aspects[6], count = (double)pictures->count;
    for (int i = 0; i < 6; i++) tall += (double)pictures->aspects[i];
    snprintf(note, sizeof(note), "%.0f %% upright, %.0f %% about square, %.0f %% lying", 100 * tall / count,
             100 * square / count, 100 * (count - tall - square) / count);
    chart_begin(chart, CHART_BARS, "Aspect ratio, width by height", note, "pictures");
    int first = 0, last = PICTURES_ASPECTS - 1;
    while (pictures->aspects[first] == 0) first++;
    while (pictures->aspects[last] == 0) last--;
    for (int i = first; i <= last; i++)
        chart_add_bar(chart, mr_string_from(aspect_rows[i].name), (double)pictures->aspects[i]);
}

static void named_chart(chart *chart, const char *title, const uint64_t *counts, int count, const char *name(int))
{
    chart_begin(chart, CHART_BARS, title, "", "pictures");
    for (int i = 0; i < count; i++)
        if (counts[i] > 0) chart_add_bar(chart, mr_string_from(name(i)), (double)counts[i]);
}

static const char *format_name(int format)
{
    return format == MR_IMAGE_UNKNOWN ? "unknown" : mr_image_format_name((mr_image_format)format);
}

static const char *orientation_name(int orientation)
{
    static const char *const names[] = {"not said",    "1 upright",    "2 mirror",     "3 turn by 180°", "4 flip",
                                        "5 transpose", "6 turn right", "7 transverse", "8 turn left"};
    return names[orientation];
}

static int kinds_of(const uint64_t *counts, int count)
{
    int kinds = 0;
    for (int i = 0; i < count; i++) kinds += counts[i] > 0;
    return kinds;
}

int pictures_charts(const pictures *pictures, int bins, chart *charts)
{
    char note[128];
    int count = 0;
    if (pictures->count > 0) {
        describe(&pictures->shorter, CHART_INTEGERS, note, sizeof(note));
        pictures_histogram(&charts[count++], &pictures->shorter, CHART_INTEGERS, bins, "Shorter side, pixels", note,
                           "pictures");
        describe(&pictures->longer, CHART_INTEGERS, note, sizeof(note));
        pictures_histogram(&charts[count++], &pictures->longer, CHART_INTEGERS, bins, "Longer side, pixels", note,
                           "pictures");
        aspects_chart(pictures, &charts[count++]);
        describe(&pictures->bytes, CHART_BYTES, note, sizeof(note));
        pictures_histogram(&charts[count++], &pictures->bytes, CHART_BYTES, bins, "Bytes of a picture", note,
                           "pictures");
    }
    if (kinds_of(pictures->formats, PICTURES_FORMATS) > 0)
        named_chart(&charts[count++], "Format", pictures->formats, PICTURES_FORMATS, format_name);
    if (pictures->count > 0)
        named_chart(&charts[count++], "Colours", pictures->colors, PICTURES_COLORS, pictures_color_name);
    if (pictures->orientations[0] + pictures->orientations[1] < pictures->count)
        named_chart(&charts[count++], "EXIF orientation, and what it asks for", pictures->orientations, 9,
                    orientation_name);
    return count;
}
