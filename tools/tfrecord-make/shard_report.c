/* Totals of shards: counts, and one example for each remark. */
#include "tfrecord-make/make.h"

#include "common/arena.h"

#include <stdlib.h>
#include <string.h>

void shard_report_deinit(shard_report *report)
{
    for (int i = 0; i < REMARK_COUNT; i++) free(report->remarks[i].first);
    *report = (shard_report){0};
}

mr_status shard_report_remark(shard_report *report, remark remark, int64_t count, const char *name, mr_error *error)
{
    remark_count *counted = &report->remarks[remark];
    counted->count += count;
    if (counted->first || count == 0) return MR_OK;
    counted->first = strdup(name);
    return counted->first ? MR_OK : fail_memory(error, strlen(name));
}

mr_status shard_report_add(shard_report *sum, const shard_report *report, mr_error *error)
{
    sum->records += report->records;
    sum->skipped += report->skipped;
    sum->size_bytes += report->size_bytes;
    for (int i = 0; i < REMARK_COUNT; i++)
        if (report->remarks[i].count > 0)
            MR_TRY(shard_report_remark(sum, (remark)i, report->remarks[i].count, report->remarks[i].first, error));
    return MR_OK;
}
