/* --survey: statistics and faults of a set of images. Only the charts are written.
 *
 *     survey.c         examines every image, on all threads
 *     survey_report.c  figures, charts and advice */
#ifndef MR_TOOLS_TFRECORD_MAKE_SURVEY_H
#define MR_TOOLS_TFRECORD_MAKE_SURVEY_H

#include "common/stats/images.h"
#include "tfrecord-make/make.h"

/* Maximum number of faults that are reported individually. */
#define SURVEY_FAULTS 20
/* Number of images that are resized as a sample. */
#define SURVEY_TRIES 24

typedef struct survey_fault {
    int64_t row;
    char reason[256];
} survey_fault;

/* Statistics of a range of rows, or of all. */
typedef struct survey {
    images images;
    int64_t rows, without, faulty; /* without: rows that have no image */
    uint64_t usable_bytes;         /* of images without a fault */
    int64_t remarks[REMARK_COUNT];
    int64_t firsts[REMARK_COUNT]; /* an example row for each remark that occurs */
    survey_fault faults[SURVEY_FAULTS];
    int fault_count;
    /* Images whose shorter side exceeds the advised one, and the pixels that remain of all images after that resize. */
    int64_t large_count;
    uint64_t large_bytes;
    double pixels, pixels_left;
    int64_t small_count;         /* images whose shorter side is below the crop size */
    int64_t tries[SURVEY_TRIES]; /* large images, sampled by the hashes of their names */
    int try_count;
    uint64_t tried_bytes, tried_left; /* total size before and after the resize */
    int32_t advised;                  /* the advised shorter side */
} survey;

/* Runs --survey. */
mr_status survey_run(options *options, mr_error *error);

/* Examines all rows. The figures are the same at any number of threads.
 * memory  120 KiB and four images for each thread, in addition to the source */
mr_status survey_look(const options *options, const source *source, pool *pool, survey *survey, mr_error *error);
void survey_deinit(survey *survey);

/* The shorter side above which random crops of `crop` pixels gain nothing that matters: crops of 8 % to 100 % of the
 * area have on average about 0.45 of the side. */
int32_t survey_side(int32_t crop);

/* Prints the report, and writes the charts if options->svg is set.
 * found  duplicates */
mr_status survey_report(const options *options, const source *source, const survey *survey,
                        const duplicates_found *found, mr_error *error);

#endif
