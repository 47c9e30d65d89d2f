/* Statistics of images from their headers: sizes, aspect ratios, formats, colors, orientations.
 *
 * ```c
 * images images = {0};
 * mr_image_info info = {0};
 * mr_status status = mr_image_probe(bytes, size_bytes, &info, nullptr);
 * if (!images_add(&images, status, &info, size_bytes) || !images_flush(&images)) return 1;
 * static chart charts[IMAGES_CHARTS_MAX];
 * int count = images_charts(&images, "image/encoded", 10, charts);
 * images_deinit(&images);
 * ```
 *
 * Width and height are those of the stored pixels, as decoding returns them; orientation is counted separately. */
#ifndef MR_TOOLS_COMMON_IMAGES_H
#define MR_TOOLS_COMMON_IMAGES_H

#include "common/chart/chart.h"
#include "common/stats/numbers.h"

#include <millrace/image.h>

#define IMAGES_FORMATS (MR_IMAGE_JPEG_2000 + 1)
#define IMAGES_COLORS (MR_COLOR_CMYK + 1)
#define IMAGES_ASPECTS 13
#define IMAGES_CHARTS_MAX 7

/* {0} is empty. One thread at a time. */
typedef struct images {
    uint64_t count;      /* images of known size */
    uint64_t sizeless;   /* of a format that is recognized but not parsed */
    uint64_t damaged;    /* damaged header */
    uint64_t size_bytes; /* of all images */
    uint64_t formats[IMAGES_FORMATS], colors[IMAGES_COLORS], orientations[9], aspects[IMAGES_ASPECTS];
    uint64_t alpha, deep, progressive, animated, profiles; /* deep: 16 bits per channel */
    numbers widths, heights, shorter, longer, bytes;
} images;

/* Adds a result of mr_image_probe. A status of MR_INVALID_ARGUMENT means not an image and must not be added. False when
 * there is no memory. */
[[nodiscard]] bool images_add(images *images, mr_status status, const mr_image_info *info, size_t size_bytes);
[[nodiscard]] bool images_flush(images *images);
[[nodiscard]] bool images_merge(images *images, const struct images *other);
void images_deinit(images *images);

/* "taller than 1:2", "9:16", …, "square", …, "wider than 2:1"; static storage. */
const char *images_aspect_name(int aspect);
const char *images_color_name(int color);
/* Charts of sizes, aspect ratios and bytes; of formats and colors if there are several, of orientations if there are
 * any.
 * bins    wanted in histograms
 * charts  room for IMAGES_CHARTS_MAX; returns the number of charts */
int images_charts(const images *images, int bins, chart *charts);
/* A histogram of numbers; `unit` is what they count. Empty when there are none. */
void images_histogram(chart *chart, const numbers *numbers, chart_scale scale, int bins, const char *title,
                      const char *note, const char *unit);

#endif
