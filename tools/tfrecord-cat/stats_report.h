/* --stats: the report. stats.c gathers the statistics of files (common/stats/stats.h). */
#ifndef MR_TOOLS_TFRECORD_CAT_STATS_REPORT_H
#define MR_TOOLS_TFRECORD_CAT_STATS_REPORT_H

#include "common/stats/stats.h"
#include "tfrecord-cat/cat.h"

/* Facts about the files other than their records. */
typedef struct stats_about {
    int32_t files, bad_files;
    uint64_t lost;    /* damaged regions */
    const tfds *tfds; /* metadata of their directory; null: none, or several directories */
} stats_about;
/* Both return false when there is no memory. */
[[nodiscard]] bool stats_show(const stats *stats, const stats_about *about);
[[nodiscard]] bool stats_json(const stats *stats, const stats_about *about, bool is_pretty);

#endif
