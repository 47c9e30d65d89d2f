/* What many pictures are like, from their headers: sizes, proportions, formats, colours, orientation.
 *
 * ```c
 * pictures pictures = {0};
 * mr_image_info info = {0};
 * mr_status status = mr_image_probe(bytes, size_bytes, &info, nullptr);
 * if (!pictures_add(&pictures, status, &info, size_bytes) || !pictures_flush(&pictures)) return 1;
 * static chart charts[PICTURES_CHARTS_MAX];
 * int count = pictures_charts(&pictures, "image/encoded", 10, charts);
 * pictures_deinit(&pictures);
 * ```
 *
 * Width and height are those of the pixels as they are stored, as decoding gives them: orientation is counted beside. */
#ifndef MR_TOOLS_PICTURES_H
#define MR_TOOLS_PICTURES_H

#include "tools/common/chart.h"
#include "tools/common/numbers.h"

#include <millrace/image.h>

#define PICTURES_FORMATS (MR_IMAGE_JPEG_2000 + 1)
#define PICTURES_COLORS (MR_COLOR_CMYK + 1)
#define PICTURES_ASPECTS 13
#define PICTURES_CHARTS_MAX 7

/* {0} is empty. One thread at a time. */
typedef struct pictures {
    uint64_t count;      /* whose size is known */
    uint64_t sizeless;   /* of a format that is only named */
    uint64_t damaged;    /* their header is */
    uint64_t size_bytes; /* of all */
    uint64_t formats[PICTURES_FORMATS], colors[PICTURES_COLORS], orientations[9], aspects[PICTURES_ASPECTS];
    uint64_t alpha, deep, progressive, animated, profiles; /* deep: 16 bits a channel */
    numbers widths, heights, shorter, longer, bytes;
} pictures;

/* Takes what mr_image_probe gave. A status of MR_INVALID_ARGUMENT is no picture and is not to be added. False when there
 * is no memory. */
[[nodiscard]] bool pictures_add(pictures *pictures, mr_status status, const mr_image_info *info, size_t size_bytes);
[[nodiscard]] bool pictures_flush(pictures *pictures);
[[nodiscard]] bool pictures_merge(pictures *pictures, const struct pictures *other);
void pictures_deinit(pictures *pictures);

/* "taller than 1:2", "9:16", …, "square", …, "wider than 2:1"; static. */
const char *pictures_aspect_name(int aspect);
const char *pictures_color_name(int color);
/* Sizes, proportions, bytes; formats and colours where there are several, orientations where there are any.
 * bins    wanted in histograms
 * charts  room for PICTURES_CHARTS_MAX; returns how many were made */
int pictures_charts(const pictures *pictures, int bins, chart *charts);
/* A histogram of numbers; values count as `unit`. Empty when there are none. */
void pictures_histogram(chart *chart, const numbers *numbers, chart_scale scale, int bins, const char *title,
                        const char *note, const char *unit);

#endif
