/* See images.h. */
#include "common/stats/images.h"

#include "common/progress.h"

#include <math.h>

/* Usual aspect ratios, width by height. An image counts for the nearest; beyond the outermost, for none. */
static const struct aspect {
    const char *name;
    double ratio;
} aspect_rows[IMAGES_ASPECTS] = {{"taller", 0},      {"1:2", 1.0 / 2}, {"9:16", 9.0 / 16}, {"2:3", 2.0 / 3},
                                 {"3:4", 3.0 / 4},   {"4:5", 4.0 / 5}, {"square", 1},      {"5:4", 5.0 / 4},
                                 {"4:3", 4.0 / 3},   {"3:2", 3.0 / 2}, {"16:9", 16.0 / 9}, {"2:1", 2},
                                 {"wider", INFINITY}};
/* Tolerance beyond 1:2 and 2:1. */
static constexpr double OUTERMOST = 1.06;

const char *images_aspect_name(int aspect)
{
    return aspect_rows[aspect].name;
}

const char *images_color_name(int color)
{
    static const char *const names[IMAGES_COLORS] = {"unknown", "gray", "RGB", "CMYK"};
    return names[color];
}

static int aspect_of(double ratio)
{
    if (ratio < aspect_rows[1].ratio / OUTERMOST) return 0;
    if (ratio > aspect_rows[IMAGES_ASPECTS - 2].ratio * OUTERMOST) return IMAGES_ASPECTS - 1;
    int nearest = 1;
    for (int i = 2; i < IMAGES_ASPECTS - 1; i++)
        if (fabs(log(ratio / aspect_rows[i].ratio)) < fabs(log(ratio / aspect_rows[nearest].ratio))) nearest = i;
    return nearest;
}

bool images_add(images *images, mr_status status, const mr_image_info *info, size_t size_bytes)
{
    images->size_bytes += size_bytes;
    if (info->format >= 0 && info->format < IMAGES_FORMATS) images->formats[info->format]++;
    if (status != MR_OK || info->width <= 0 || info->height <= 0) {
        if (status == MR_OK || status == MR_UNIMPLEMENTED)
            images->sizeless++;
        else
            images->damaged++;
        return true;
    }
    images->count++;
    if (info->color >= 0 && info->color < IMAGES_COLORS) images->colors[info->color]++;
    if (info->orientation >= 0 && info->orientation <= 8) images->orientations[info->orientation]++;
    images->aspects[aspect_of((double)info->width / info->height)]++;
    images->alpha += info->color != MR_COLOR_CMYK && (info->channels == 2 || info->channels == 4);
    images->deep += info->bits > 8;
    images->progressive += info->is_progressive;
    images->animated += info->is_animated;
    images->profiles += info->has_icc_profile;
    images->bytes.has_no_top = true;
    int64_t width = info->width, height = info->height, bytes = (int64_t)size_bytes;
    return numbers_add_ints(&images->widths, &width, 1) && numbers_add_ints(&images->heights, &height, 1) &&
           numbers_add_ints(&images->shorter, width < height ? &width : &height, 1) &&
           numbers_add_ints(&images->longer, width < height ? &height : &width, 1) &&
           numbers_add_ints(&images->bytes, &bytes, 1);
}

bool images_flush(images *images)
{
    return numbers_flush(&images->widths) && numbers_flush(&images->heights) && numbers_flush(&images->shorter) &&
           numbers_flush(&images->longer) && numbers_flush(&images->bytes);
}

static void add_counts(uint64_t *sums, const uint64_t *counts, int count)
{
    for (int i = 0; i < count; i++) sums[i] += counts[i];
}

bool images_merge(images *images, const struct images *other)
{
    numbers *sums[] = {&images->widths, &images->heights, &images->shorter, &images->longer, &images->bytes};
    const numbers *parts[] = {&other->widths, &other->heights, &other->shorter, &other->longer, &other->bytes};
    images->count += other->count;
    images->sizeless += other->sizeless;
    images->damaged += other->damaged;
    images->size_bytes += other->size_bytes;
    images->alpha += other->alpha;
    images->deep += other->deep;
    images->progressive += other->progressive;
    images->animated += other->animated;
    images->profiles += other->profiles;
    add_counts(images->formats, other->formats, IMAGES_FORMATS);
    add_counts(images->colors, other->colors, IMAGES_COLORS);
    add_counts(images->orientations, other->orientations, 9);
    add_counts(images->aspects, other->aspects, IMAGES_ASPECTS);
    images->bytes.has_no_top = true;
    for (int i = 0; i < 5; i++)
        if (!numbers_merge(sums[i], parts[i])) return false;
    return true;
}

void images_deinit(images *images)
{
    numbers_deinit(&images->widths);
    numbers_deinit(&images->heights);
    numbers_deinit(&images->shorter);
    numbers_deinit(&images->longer);
    numbers_deinit(&images->bytes);
}

/* ---- Charts ---- */

static double below(const void *context, double value)
{
    return numbers_below(context, value);
}

void images_histogram(chart *chart, const numbers *numbers, chart_scale scale, int bins, const char *title,
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

static void aspects_chart(const images *images, chart *chart)
{
    char note[128];
    double tall = 0, square = (double)images->aspects[6], count = (double)images->count;
    for (int i = 0; i < 6; i++) tall += (double)images->aspects[i];
    snprintf(note, sizeof(note), "%.0f %% portrait, %.0f %% about square, %.0f %% landscape", 100 * tall / count,
             100 * square / count, 100 * (count - tall - square) / count);
    chart_begin(chart, CHART_BARS, "Aspect ratio, width by height", note, "images");
    int first = 0, last = IMAGES_ASPECTS - 1;
    while (images->aspects[first] == 0) first++;
    while (images->aspects[last] == 0) last--;
    for (int i = first; i <= last; i++)
        chart_add_bar(chart, mr_string_from(aspect_rows[i].name), (double)images->aspects[i]);
}

static void named_chart(chart *chart, const char *title, const uint64_t *counts, int count, const char *name(int))
{
    chart_begin(chart, CHART_BARS, title, "", "images");
    for (int i = 0; i < count; i++)
        if (counts[i] > 0) chart_add_bar(chart, mr_string_from(name(i)), (double)counts[i]);
}

static const char *format_name(int format)
{
    return format == MR_IMAGE_UNKNOWN ? "unknown" : mr_image_format_name((mr_image_format)format);
}

static const char *orientation_name(int orientation)
{
    static const char *const names[] = {"not set",     "1 upright",      "2 mirror",     "3 rotate by 180°", "4 flip",
                                        "5 transpose", "6 rotate right", "7 transverse", "8 rotate left"};
    return names[orientation];
}

static int kinds_of(const uint64_t *counts, int count)
{
    int kinds = 0;
    for (int i = 0; i < count; i++) kinds += counts[i] > 0;
    return kinds;
}

int images_charts(const images *images, int bins, chart *charts)
{
    char note[128];
    int count = 0;
    if (images->count > 0) {
        describe(&images->shorter, CHART_INTEGERS, note, sizeof(note));
        images_histogram(&charts[count++], &images->shorter, CHART_INTEGERS, bins, "Shorter side, pixels", note,
                         "images");
        describe(&images->longer, CHART_INTEGERS, note, sizeof(note));
        images_histogram(&charts[count++], &images->longer, CHART_INTEGERS, bins, "Longer side, pixels", note,
                         "images");
        aspects_chart(images, &charts[count++]);
        describe(&images->bytes, CHART_BYTES, note, sizeof(note));
        images_histogram(&charts[count++], &images->bytes, CHART_BYTES, bins, "Bytes of an image", note, "images");
    }
    if (kinds_of(images->formats, IMAGES_FORMATS) > 0)
        named_chart(&charts[count++], "Format", images->formats, IMAGES_FORMATS, format_name);
    if (images->count > 0) named_chart(&charts[count++], "Colors", images->colors, IMAGES_COLORS, images_color_name);
    if (images->orientations[0] + images->orientations[1] < images->count)
        named_chart(&charts[count++], "EXIF orientation and its correction", images->orientations, 9, orientation_name);
    return count;
}
