/* Summaries in the graph, named and tagged as by tf.summary: NAME is the node, and with its scope the tag. */
#include "graph/train/train.h"
#include "records/event/event.h"
#include <millrace/ops.h>

typedef struct tagged {
    const char *own; /* the name of the node that makes the summary */
    mr_output tag;
} tagged;

static tagged begin(mr_graph *graph, const char *name, const char *tag_name, const char *suffix)
{
    mr_graph_push_scope(graph, name);
    const char *tag = mr_graph_scope(graph);
    if (*suffix != '\0') tag = mr_arena_printf(&graph->arena, "%s%s", tag, suffix);
    mr_tensor value = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_string(&value, mr_string_from(tag != nullptr ? tag : ""), &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    tagged result = {mr_train_own_name(graph), mr_constant(graph, &value, tag_name)};
    mr_tensor_deinit(&value);
    return result;
}

static mr_output end(mr_graph *graph, mr_output summary)
{
    mr_graph_pop_scope(graph);
    mr_graph_add_to_collection(graph, MR_SUMMARIES, summary);
    return summary;
}

mr_output mr_summary_scalar(mr_graph *graph, const char *name, mr_output value)
{
    tagged t = begin(graph, name, "tags", "");
    return end(graph, mr_scalar_summary(graph, t.tag, value, .name = t.own));
}

mr_output mr_summary_histogram(mr_graph *graph, const char *name, mr_output values)
{
    tagged t = begin(graph, name, "tag", "");
    return end(graph, mr_histogram_summary(graph, t.tag, values, .name = t.own));
}

mr_output mr_summary_image(mr_graph *graph, const char *name, mr_output images, int32_t images_max)
{
    if (!mr_train_check_count(graph, "images_max", images_max, 1)) return mr_graph_failed_output(graph);
    tagged t = begin(graph, name, "tag", "");
    return end(graph, mr_image_summary(graph, t.tag, images, .max_images = images_max, .name = t.own));
}

mr_output mr_summary_merge_all(mr_graph *graph)
{
    int32_t count = mr_graph_collection_count(graph, MR_SUMMARIES);
    if (count == 0) return (mr_output){0};
    mr_output *items = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count);
    if (items == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d summaries", count);
    for (int32_t i = 0; i < count; i++) items[i] = mr_graph_collection_item(graph, MR_SUMMARIES, i);
    mr_graph_push_scope(graph, "Merge");
    mr_output merged = mr_merge_summary(graph, MR_OUTPUTS_OF(items, count));
    mr_graph_pop_scope(graph);
    return merged;
}

mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error)
{
    mr_tensor graph_def = {0};
    MR_TRY(mr_graph_export(graph, &graph_def, error));
    mr_status status = mr_event_writer_add_graph_def(writer, mr_tensor_strings(&graph_def)[0], error);
    mr_tensor_deinit(&graph_def);
    return status;
}
