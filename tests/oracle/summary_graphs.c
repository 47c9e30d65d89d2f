/* Builds and runs the summaries of summary_oracle.py, and writes them to an event file: `summary_graphs DIRECTORY`.
 * Each summary is one event, whose step is its number. */
#include <millrace/millrace.h>

#include <stdio.h>

enum { COUNT = 9 };

static mr_output sequence(mr_graph *g, mr_shape shape)
{
    float values[240];
    for (int64_t i = 0; i < mr_shape_count(shape); i++) values[i] = (float)(i * 29 % 41) / 41.0f;
    return mr_constant_floats(g, shape, values, nullptr);
}

static void build(mr_graph *g, mr_output *summaries)
{
    mr_output x = sequence(g, MR_SHAPE(2, 3, 4)), scalar = mr_constant_float(g, 0.25f);
    mr_output text = mr_constant_string(g, "# title");
    mr_graph_push_scope(g, "outer");
    summaries[0] = mr_summary_scalar(g, "loss", scalar, .family = "my family");
    summaries[1] = mr_summary_histogram(g, "/weights", x);
    summaries[2] = mr_summary_image(g, "images", sequence(g, MR_SHAPE(4, 3, 5, 3)), 2);
    summaries[3] = mr_summary_audio(g, "sound", sequence(g, MR_SHAPE(4, 20, 2)), mr_constant_float(g, 8000),
                                    .max_outputs = 2, .family = "f");
    summaries[4] = mr_summary_text(g, "notes", text);
    mr_graph_pop_scope(g);
    summaries[5] = mr_summary_tensor(g, "tensor", x, .display_name = "Title", .description = "what it is",
                                     .family = "g", .plugin_name = "p", .plugin_data = MR_STR("data"));
    mr_output labels = mr_greater(g, sequence(g, MR_SHAPE(40)), mr_constant_float(g, 0.6f));
    mr_output predictions = mr_sub(g, mr_constant_float(g, 1.1f), sequence(g, MR_SHAPE(40)));
    summaries[6] = mr_summary_pr_curve(g, "pr", labels, predictions);
    summaries[7] = mr_summary_pr_curve(g, "pr", labels, predictions, .threshold_count = 7, .display_name = "d",
                                       .weights = sequence(g, MR_SHAPE(40)), .collections = MR_NAMES("c"));
    summaries[8] = mr_summary_merge_all(g, .scope = "outer/(n|w)");
}

static mr_status run(mr_graph *g, const char *directory, mr_error *error)
{
    mr_output summaries[COUNT];
    mr_tensor results[COUNT] = {0};
    mr_session *session = nullptr;
    mr_event_writer *writer = nullptr;
    build(g, summaries);
    MR_TRY(mr_graph_status(g, error));
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_event_writer_open(directory, &writer, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS_OF(summaries, COUNT), results, nullptr, 0, error));
    for (int i = 0; i < COUNT; i++) {
        MR_TRY(mr_event_writer_add(writer, i, mr_tensor_strings(&results[i])[0], error));
        printf("%s\n", mr_node_name(summaries[i].node));
        mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
    printf("summaries %d\n", mr_graph_collection_count(g, MR_SUMMARIES));
    return mr_event_writer_close(writer, error);
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    if (argc != 2 || g == nullptr) return 1;
    mr_status status = run(g, argv[1], &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    mr_graph_free(g);
    return status != MR_OK;
}
