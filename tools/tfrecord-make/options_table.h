/* Which option has an effect on which input and in which mode. An option that has none there is an error, which is
 * checked by options_check alone; tests/tools/make_options_test.c runs every option on every kind of input. */
#ifndef MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H
#define MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H

#include "tools/tfrecord-make/source.h"

typedef struct option_row {
    const char *name;
    uint32_t inputs;        /* input_kind bits */
    bool is_for_images;     /* has no effect on rows without an image */
    bool is_for_making;     /* has no effect with --survey */
    bool is_for_ranks;      /* has an effect only under mpirun, srun and the like */
    const char *needs;      /* an option without which this one has no effect; or null */
    const char *refuses[2]; /* options with which this one has no effect; or null */
} option_row;

static const option_row option_rows[] = {
    {"append-labels", INPUT_CLASSES, .needs = "labels"},
    {"columns", INPUT_CSV},
    {"compress", INPUT_ANY, .is_for_making = true},
    {"crop", INPUT_ANY, .is_for_images = true, .needs = "survey"},
    {"crop-ready", INPUT_ANY, .is_for_images = true, .is_for_making = true},
    {"duplicates", INPUT_ANY, .is_for_images = true},
    {"encode", INPUT_ANY, .is_for_images = true, .is_for_making = true},
    {"finish", INPUT_ANY, .is_for_making = true, .refuses = {"worker"}},
    {"format", INPUT_ANY},
    {"images", INPUT_LISTS | INPUT_COCO | INPUT_VOC},
    {"jobs", INPUT_ANY},
    {"key", INPUT_ANY, .is_for_making = true},
    {"keypoints", INPUT_COCO, .is_for_making = true},
    {"label-column", INPUT_LISTS},
    {"labels", INPUT_CLASSES},
    {"masks", INPUT_COCO, .is_for_making = true},
    {"missing", INPUT_CSV},
    {"name", INPUT_ANY, .is_for_making = true},
    {"no-check", INPUT_ANY, .is_for_images = true},
    {"on-error", INPUT_ANY, .is_for_making = true},
    {"out", INPUT_ANY, .is_for_making = true},
    {"path-column", INPUT_LISTS},
    {"picture", INPUT_NUMPY},
    {"quality", INPUT_ANY, .is_for_images = true},
    {"raw", INPUT_NUMPY, .is_for_making = true},
    {"separator", INPUT_CSV},
    {"shard-size", INPUT_ANY, .is_for_making = true, .refuses = {"shards"}},
    {"shards", INPUT_ANY, .is_for_making = true},
    {"shorter-side", INPUT_ANY, .is_for_images = true, .is_for_making = true},
    {"shuffle-seed", INPUT_ANY, .is_for_making = true},
    {"skip-rows", INPUT_CSV},
    {"split", INPUT_ANY},
    {"split-column", INPUT_LISTS | INPUT_TABLES, .refuses = {"split"}},
    {"survey", INPUT_ANY},
    {"svg", INPUT_ANY, .is_for_images = true, .needs = "survey"},
    {"target", INPUT_LISTS},
    {"types", INPUT_LISTS | INPUT_TABLES | INPUT_TAR},
    {"upright", INPUT_ANY & ~(uint32_t)INPUT_NUMPY, .is_for_images = true, .is_for_making = true},
    {"wait", INPUT_ANY, .is_for_making = true, .is_for_ranks = true, .refuses = {"worker", "finish"}},
    {"worker", INPUT_ANY, .is_for_making = true},
};
static constexpr int OPTION_ROW_COUNT = sizeof(option_rows) / sizeof(option_rows[0]);
static_assert(OPTION_ROW_COUNT <= 64, "options.given has a bit for each");

#endif
