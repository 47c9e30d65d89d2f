/* Samples of the operators of graph/ops/summary.c. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/ops.h>
#include <millrace/session.h>
#include <unistd.h>

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

TEST(summary_writers_open_no_file_in_a_read_only_session)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_graph *g = mr_graph_new();
    mr_node_builder handle = mr_node_begin(g, "SummaryWriter", nullptr);
    mr_output writer = mr_node_finish(&handle);
    mr_node *create =
        mr_create_summary_file_writer(g, writer, mr_constant_string(g, test_path("log")), mr_constant_int32(g, 10),
                                      mr_constant_int32(g, 1000), mr_constant_string(g, ".v2"));
    CHECK_OK(mr_graph_status(g, &error));
    mr_session_options options = {.size = sizeof options, .read_only = true};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    mr_status status = mr_session_run(session, (mr_feeds){0}, (mr_outputs){0}, nullptr, &create, 1, &error);
    CHECK_EQ(status, MR_PERMISSION_DENIED);
    CHECK(access(test_path("log"), F_OK) != 0);
    mr_session_free(session);
    mr_graph_free(g);
}
