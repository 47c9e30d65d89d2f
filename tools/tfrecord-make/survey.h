/* --survey: what a set of images is like, before anything is made of it. Nothing is written but charts.
 *
 *     survey.c         every image is looked at, on all threads
 *     survey_report.c  figures, charts and advice */
#ifndef MR_TOOLS_TFRECORD_MAKE_SURVEY_H
#define MR_TOOLS_TFRECORD_MAKE_SURVEY_H

#include "tools/common/images.h"
#include "tools/tfrecord-make/make.h"

/* Faults that are told one by one. */
#define SURVEY_FAULTS 20
/* Images that are made smaller for a try. */
#define SURVEY_TRIES 24

typedef struct survey_fault {
    int64_t row;
    char reason[256];
} survey_fault;

/* Of some rows, or of all. */
typedef struct survey {
    images images;
    int64_t rows, without, faulty; /* without: rows that have no image */
    uint64_t usable_bytes;         /* of images without a fault */
    int64_t remarks[REMARK_COUNT];
    int64_t firsts[REMARK_COUNT]; /* a row of each; where there is one */
    survey_fault faults[SURVEY_FAULTS];
    int fault_count;
    /* Whose shorter side is above the one that would be advised, and what a shorter side of it leaves of all pixels. */
    int64_t large_count;
    uint64_t large_bytes;
    double pixels, pixels_left;
    int64_t small_count;         /* whose shorter side is below the crop */
    int64_t tries[SURVEY_TRIES]; /* large ones, drawn by the hashes of their names */
    int try_count;
    uint64_t tried_bytes, tried_left; /* before and after */
    int32_t advised;                  /* the shorter side */
} survey;

/* All of --survey. */
mr_status survey_run(options *options, mr_error *error);

/* Looks at all rows. The figures are the same at any number of threads.
 * memory  120 KiB and four images for each thread, beside the source */
mr_status survey_look(const options *options, const source *source, mr_pool *pool, survey *survey, mr_error *error);
void survey_deinit(survey *survey);

/* The shorter side from which random crops of so many pixels lose nothing that matters: crops of 8 % to 100 % of the area
 * have on average about 0.45 of the side. */
int32_t survey_side(int32_t crop);

/* Tells all of it, and writes the charts that options->svg asks for.
 * found  copies */
mr_status survey_report(const options *options, const source *source, const survey *survey,
                        const duplicates_found *found, mr_error *error);

#endif
