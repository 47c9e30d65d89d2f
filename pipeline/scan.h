/* A scan whose function may end the sequence. */
#ifndef MR_PIPELINE_SCAN_H
#define MR_PIPELINE_SCAN_H

#include "pipeline/pipeline.h"

/* Makes MR_OUT_OF_RANGE from the function of a scan, which must be new, the end of the sequence instead of an error.
 * Returns the scan. */
mr_dataset *mr_dataset_scan_can_end(mr_dataset *scan);

#endif
