/* Samples of the operators of graph/ops/summary.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"HistogramSummary", "string[]=tag; float[5]", ""},
    {"ImageSummary", "string[]=tag; float[2,5,4,3]", ""},
    {"MergeSummary", "string[]=+string[2]=", ""},
    {"ScalarSummary", "string[]=tag; float[]", ""})
/* clang-format on */
