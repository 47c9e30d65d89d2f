/* Summaries in the graph, named and tagged as by tf.summary: NAME is the node, and with its scope the tag. */
#include "graph/train/summary.h"
#include "base/options.h"
#include "records/event/event.h"
#include <millrace/ops.h>
#include <string.h>

static bool is_tag_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_.-/", c));
}

const char *mr_summary_clean(mr_graph *graph, const char *name)
{
    while (*name == '/') name++;
    char *clean = mr_arena_strdup(&graph->arena, name);
    if (clean == nullptr) return (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a name"), "";
    size_t length = 0;
    for (const char *c = name; *c != '\0'; c++)
        if (((unsigned char)*c & 0xc0) != 0x80) clean[length++] = *c; /* one byte for each character */
    clean[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (!is_tag_character(clean[i])) clean[i] = '_';
    return clean;
}

static const char *useless_option(const mr_summary_options *o, int choices)
{
    if (o->family != nullptr && (choices & MR_SUMMARY_HAS_FAMILY) == 0) return "family";
    if (o->max_outputs != MR_COUNT_UNSET && (choices & MR_SUMMARY_HAS_MAX_OUTPUTS) == 0) return "max_outputs";
    if (o->display_name != nullptr && (choices & MR_SUMMARY_HAS_TITLE) == 0) return "display_name";
    if (o->description != nullptr && (choices & MR_SUMMARY_HAS_TITLE) == 0) return "description";
    if (o->plugin_name != nullptr && (choices & MR_SUMMARY_HAS_PLUGIN) == 0) return "plugin_name";
    if (o->plugin_data.size_bytes > 0 && (choices & MR_SUMMARY_HAS_PLUGIN) == 0) return "plugin_data";
    if (o->weights.node != nullptr && (choices & MR_SUMMARY_HAS_CURVE) == 0) return "weights";
    if (o->threshold_count != MR_COUNT_UNSET && (choices & MR_SUMMARY_HAS_CURVE) == 0) return "threshold_count";
    return nullptr;
}

static bool check_names(mr_graph *graph, const char *summary, mr_names names)
{
    bool is_good = names.count >= 0 && (names.count == 0 || names.items != nullptr);
    for (int32_t i = 0; is_good && i < names.count; i++) is_good = names.items[i] != nullptr && *names.items[i] != '\0';
    if (!is_good) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: a name in collections is empty", summary);
    return is_good;
}

bool mr_summary_read(mr_graph *graph, const char *name, const mr_summary_options *given, int choices,
                     mr_summary_options *options)
{
    mr_error error = {0};
    *options = (mr_summary_options){0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (name == nullptr || *mr_summary_clean(graph, name) == '\0') {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a summary has no name");
        return false;
    }
    mr_status status = MR_OPTIONS_READ(mr_summary_options, options, given, &error);
    if (status != MR_OK) return (void)mr_graph_fail(graph, status, "%s: %s", name, error.message), false;
    if (given == nullptr) options->max_outputs = options->threshold_count = MR_COUNT_UNSET;
    const char *useless = useless_option(options, choices);
    if (useless != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s has no effect for this summary", name, useless);
    if (options->no_collections && options->collections.count != 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: collections have no effect with no_collections", name);
    if (options->plugin_data.size_bytes > 0 && options->plugin_name == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: plugin_data has no effect without plugin_name", name);
    if (options->family != nullptr && *mr_summary_clean(graph, options->family) == '\0')
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: family is empty", name);
    if (options->max_outputs == MR_COUNT_UNSET) options->max_outputs = 3;
    if (options->threshold_count == MR_COUNT_UNSET) options->threshold_count = 201;
    if (options->max_outputs < 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: max_outputs is %d, but must be at least 1", name,
                            options->max_outputs);
    if (options->threshold_count < 2 || options->threshold_count > 1'000'000)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "%s: threshold_count is %d, but must be at least 2, and at most 1000000", name,
                            options->threshold_count);
    return check_names(graph, name, options->collections) && mr_graph_status(graph, nullptr) == MR_OK;
}

mr_output mr_summary_string(mr_graph *graph, const char *name, mr_string value)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_string(&tensor, value, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

mr_output mr_summary_begin(mr_graph *graph, const char *name, const mr_summary_options *options, const char *tag_name)
{
    const char *base = mr_summary_clean(graph, name), *family = nullptr;
    if (options->family != nullptr) {
        family = mr_summary_clean(graph, options->family);
        base = mr_arena_printf(&graph->arena, "%s/%s", family, base);
    }
    mr_graph_push_scope(graph, base != nullptr ? base : name);
    const char *tag = mr_graph_scope(graph);
    if (family != nullptr) tag = mr_arena_printf(&graph->arena, "%s/%s", family, tag);
    return mr_summary_string(graph, tag_name, mr_string_from(tag != nullptr ? tag : ""));
}

mr_output mr_summary_end(mr_graph *graph, mr_output summary, const mr_summary_options *options)
{
    mr_graph_pop_scope(graph);
    mr_names names = options->collections;
    if (names.count == 0 && !options->no_collections) mr_graph_add_to_collection(graph, MR_SUMMARIES, summary);
    for (int32_t i = 0; i < names.count; i++) mr_graph_add_to_collection(graph, names.items[i], summary);
    return summary;
}

mr_output mr_summary_scalar_(mr_graph *graph, const char *name, mr_output value, const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_summary_read(graph, name, given, MR_SUMMARY_HAS_FAMILY, &options)) return mr_graph_failed_output(graph);
    mr_output tag = mr_summary_begin(graph, name, &options, "tags");
    mr_output summary = mr_scalar_summary(graph, tag, value, .name = mr_train_own_name(graph));
    return mr_summary_end(graph, summary, &options);
}

mr_output mr_summary_histogram_(mr_graph *graph, const char *name, mr_output values, const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_summary_read(graph, name, given, MR_SUMMARY_HAS_FAMILY, &options)) return mr_graph_failed_output(graph);
    mr_output tag = mr_summary_begin(graph, name, &options, "tag");
    mr_output summary = mr_histogram_summary(graph, tag, values, .name = mr_train_own_name(graph));
    return mr_summary_end(graph, summary, &options);
}

mr_output mr_summary_image_(mr_graph *graph, const char *name, mr_output images, int32_t images_max,
                            const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_train_check_count(graph, "images_max", images_max, 1) ||
        !mr_summary_read(graph, name, given, MR_SUMMARY_HAS_FAMILY, &options))
        return mr_graph_failed_output(graph);
    mr_output tag = mr_summary_begin(graph, name, &options, "tag");
    mr_output summary =
        mr_image_summary(graph, tag, images, .max_images = images_max, .name = mr_train_own_name(graph));
    return mr_summary_end(graph, summary, &options);
}

mr_output mr_summary_audio_(mr_graph *graph, const char *name, mr_output audio, mr_output sample_rate,
                            const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_summary_read(graph, name, given, MR_SUMMARY_HAS_FAMILY | MR_SUMMARY_HAS_MAX_OUTPUTS, &options))
        return mr_graph_failed_output(graph);
    mr_output tag = mr_summary_begin(graph, name, &options, "tag");
    mr_output summary = mr_audio_summary_v2(graph, tag, audio, sample_rate, .max_outputs = options.max_outputs,
                                            .name = mr_train_own_name(graph));
    return mr_summary_end(graph, summary, &options);
}
