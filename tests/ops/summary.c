/* Samples of the operators of graph/ops/summary.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"TensorSummaryV2", "string[]=a; #resource[]=SummaryWriter; string[]=", "", "cannot be stored"},
    {"SummaryWriter", "", ""},
    {"CreateSummaryFileWriter",
     "#resource[]=SummaryWriter; string[]=$DIR/log; int32[]=10; int32[]=1000; string[]=.v2", ""},
    {"FlushSummaryWriter", "#resource[]=SummaryWriter", "", "not been created"},
    {"CloseSummaryWriter", "#resource[]=SummaryWriter", ""},
    {"WriteScalarSummary", "#resource[]=SummaryWriter; int64[]=3; string[]=a; float[]=2", "", "not been created"},
    {"WriteHistogramSummary", "#resource[]=SummaryWriter; int64[]=3; string[]=a; float[5]", "", "not been created"},
    {"WriteImageSummary",
     "#resource[]=SummaryWriter; int64[]=3; string[]=a; float[2,4,5,3]; uint8[4]", "", "not been created"},
    {"WriteAudioSummary",
     "#resource[]=SummaryWriter; int64[]=3; string[]=a; float[2,50]; float[]=8000", "", "not been created"},
    {"WriteSummary", "#resource[]=SummaryWriter; int64[]=3; float[2,3]; string[]=a; string[]=", "", "not been created"},
    {"WriteRawProtoSummary", "#resource[]=SummaryWriter; int64[]=3; string[]=", "", "not been created"},
    {"WriteGraphSummary", "#resource[]=SummaryWriter; int64[]=3; string[]=", "", "not been created"},
    {"ImportEvent", "#resource[]=SummaryWriter; string[]=", "", "not been created"},
    {"AudioSummary", "string[]=tag; float[4,5,2]", "sample_rate=8000"},
    {"AudioSummaryV2", "string[]=tag; float[4,5,2]; float[]=8000", "max_outputs=2"},
    {"HistogramSummary", "string[]=tag; float[5]", ""},
    {"ImageSummary", "string[]=tag; float[2,5,4,3]", ""},
    {"MergeSummary", "string[]=+string[2]=", ""},
    {"ScalarSummary", "string[]=tag; float[]", ""},
    {"TensorSummary", "int16[2,3]", ""},
    {"TensorSummaryV2", "string[]=tag; float[2,3]; string[]=", ""})
/* clang-format on */
