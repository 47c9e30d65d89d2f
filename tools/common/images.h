/* What many images are like, from their headers: sizes, proportions, formats, colours, orientation.
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
 * Width and height are those of the pixels as they are stored, as decoding gives them: orientation is counted beside. */
#ifndef MR_TOOLS_IMAGES_H
#define MR_TOOLS_IMAGES_H

#include "tools/common/chart.h"
#include "tools/common/numbers.h"

#include <millrace/image.h>

#define IMAGES_FORMATS (MR_IMAGE_JPEG_2000 + 1)
#define IMAGES_COLORS (MR_COLOR_CMYK + 1)
#define IMAGES_ASPECTS 13
#define IMAGES_CHARTS_MAX 7

/* {0} is empty. One thread at a time. */
typedef struct images {
    uint64_t count;      /* whose size is known */
    uint64_t sizeless;   /* of a format that is only named */
    uint64_t damaged;    /* their header is */
    uint64_t size_bytes; /* of all */
    uint64_t formats[IMAGES_FORMATS], colors[IMAGES_COLORS], orientations[9], aspects[IMAGES_ASPECTS];
    uint64_t alpha, deep, progressive, animated, profiles; /* deep: 16 bits a channel */
    numbers widths, heights, shorter, longer, bytes;
} images;

/* Takes what mr_image_probe gave. A status of MR_INVALID_ARGUMENT is no image and is not to be added. False when there
 * is no memory. */
[[nodiscard]] bool images_add(images *images, mr_status status, const mr_image_info *info, size_t size_bytes);
[[nodiscard]] bool images_flush(images *images);
[[nodiscard]] bool images_merge(images *images, const struct images *other);
void images_deinit(images *images);

/* "taller than 1:2", "9:16", …, "square", …, "wider than 2:1"; static. */
const char *images_aspect_name(int aspect);
const char *images_color_name(int color);
/* Sizes, proportions, bytes; formats and colours where there are several, orientations where there are any.
 * bins    wanted in histograms
 * charts  room for IMAGES_CHARTS_MAX; returns how many were made */
int images_charts(const images *images, int bins, chart *charts);
/* A histogram of numbers; values count as `unit`. Empty when there are none. */
void images_histogram(chart *chart, const numbers *numbers, chart_scale scale, int bins, const char *title,
                      const char *note, const char *unit);

#endif
