/* Samples of the operators of graph/ops/summary.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"AudioSummary", "string[]=tag; float[4,5,2]", "sample_rate=8000"},
    {"AudioSummaryV2", "string[]=tag; float[4,5,2]; float[]=8000", "max_outputs=2"},
    {"HistogramSummary", "string[]=tag; float[5]", ""},
    {"ImageSummary", "string[]=tag; float[2,5,4,3]", ""},
    {"MergeSummary", "string[]=+string[2]=", ""},
    {"ScalarSummary", "string[]=tag; float[]", ""},
    {"TensorSummary", "int16[2,3]", ""},
    {"TensorSummaryV2", "string[]=tag; float[2,3]; string[]=", ""})
/* clang-format on */
