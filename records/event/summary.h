/* Summaries: the values that TensorBoard shows, as serialized Summary messages.
 *
 * Each function builds one message in an arena. Tags are bytes from the graph; they are copied. */
#ifndef MR_RECORDS_SUMMARY_H
#define MR_RECORDS_SUMMARY_H

#include "base/arena.h"
#include <millrace/tensor.h>

/* ScalarSummary: one value for each tag. */
mr_status mr_summary_pack_scalars(const mr_string *tags, const float *values, int64_t count, mr_arena *arena,
                                  mr_string *summary, mr_error *error);

/* ---- Histograms: TensorFlow's buckets, 10 % wide from 1e-12 to 1e20, both signs ---- */

#define MR_HISTOGRAM_BUCKETS 1551

typedef struct mr_histogram {
    double limits[MR_HISTOGRAM_BUCKETS]; /* upper bounds, ascending */
    double counts[MR_HISTOGRAM_BUCKETS];
    double min, max, number, sum, sum_squares;
} mr_histogram;
void mr_histogram_init(mr_histogram *histogram);
void mr_histogram_add(mr_histogram *histogram, double value); /* finite */
/* HistogramSummary of a histogram; runs of empty buckets are joined, as TensorFlow writes them. */
mr_status mr_summary_pack_histogram(mr_string tag, const mr_histogram *histogram, mr_arena *arena, mr_string *summary,
                                    mr_error *error);

/* ---- Images ---- */

/* One encoded image (PNG). */
typedef struct mr_summary_encoded_image {
    int32_t height, width, channels;
    mr_string encoded;
} mr_summary_encoded_image;
/* ImageSummary: tags are "tag/image/0", "tag/image/1", …, or "tag/image" when the operator's max_images is 1. */
mr_status mr_summary_pack_images(mr_string tag, const mr_summary_encoded_image *images, int32_t count, bool is_single,
                                 mr_arena *arena, mr_string *summary, mr_error *error);

/* ---- Audio ---- */

/* AudioSummary: clips encoded as WAV, all with the same properties; tags as for images, "tag/audio/0". */
mr_status mr_summary_pack_audio(mr_string tag, const mr_string *encoded, int32_t count, bool is_single, float rate,
                                int64_t channels, int64_t frames, mr_arena *arena, mr_string *summary, mr_error *error);

/* ---- Merge ---- */

/* MergeSummary: all values of all summaries, in order.
 * errors  MR_INVALID_ARGUMENT if two values have the same tag, or a summary is damaged */
mr_status mr_summary_pack_merged(const mr_string *summaries, int64_t count, mr_arena *arena, mr_string *summary,
                                 mr_error *error);

#endif
