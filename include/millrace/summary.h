/* Summaries of values in the graph (tf.summary), and event files, which TensorBoard shows.
 *
 * ```c
 * mr_error error = {0};
 * mr_event_writer *writer = nullptr;
 * if (mr_event_writer_open("run", &writer, &error) != MR_OK) return 1;
 * if (mr_event_writer_add_scalar(writer, 1, "loss", 0.5f, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * if (mr_event_writer_close(writer, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * ```
 *
 * One thread at a time for each writer. What plugins of TensorBoard read, and a reader of event files, is in events.h.
 * Options follow the rules of api.h; an option that a summary does not have is an error. */
#ifndef MILLRACE_SUMMARY_H
#define MILLRACE_SUMMARY_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Summaries in the graph ----
 *
 * Each returns a serialized Summary, a string scalar named SCOPE/name. Its tag is that name, or with a family
 * family/SCOPE/family/name, so that TensorBoard groups it by family. In name and family, characters other than ASCII
 * letters, digits and "_.-/" become "_", and leading slashes are dropped. */

typedef struct mr_summary_options {
    size_t size;          /* of this struct (api.h) */
    mr_names collections; /* to which the summary is added; default: MR_SUMMARIES. Of no_collections: none */
    bool no_collections;  /* add it to no collection; excludes collections */
    const char *family;   /* default: none. Not of text and PR curves */
    int32_t max_outputs;  /* of audio: clips of the batch that are written, at least 1; default 3 */
    /* Of tensors and PR curves: what TensorBoard shows as the title (default of a PR curve: its name), and below it,
     * in Markdown. */
    const char *display_name, *description;
    /* Of tensors: the plugin of TensorBoard that reads the summary, and the bytes for it, which need a plugin. */
    const char *plugin_name;
    mr_string plugin_data;
    /* Of PR curves: factors of the elements, float, of the labels' shape or one that is broadcast to it. Default: 1 */
    mr_output weights;
    int32_t threshold_count; /* of PR curves: from 0 to 1, 2 to 1,000,000; default 201 */
} mr_summary_options;
#define MR_SUMMARY_DEFAULTS .max_outputs = MR_COUNT_UNSET, .threshold_count = MR_COUNT_UNSET
#define MR_SUMMARY_(call, ...) MR_WITH_SIZE_(call, mr_summary_options, MR_SUMMARY_DEFAULTS, __VA_ARGS__)

/* value  a scalar of a real dtype */
MR_API mr_output mr_summary_scalar_(mr_graph *graph, const char *name, mr_output value,
                                    const mr_summary_options *options);
/* values  of a real dtype and any shape; running fails if one is not finite */
MR_API mr_output mr_summary_histogram_(mr_graph *graph, const char *name, mr_output values,
                                       const mr_summary_options *options);
/* Adds the first images_max images of the batch; at least 1 (tf.summary.image's default is 3).
 * images  [batch, height, width, channels], uint8, float, half or double; 1, 3 or 4 channels */
MR_API mr_output mr_summary_image_(mr_graph *graph, const char *name, mr_output images, int32_t images_max,
                                   const mr_summary_options *options);
/* audio        [batch, frames] or [batch, frames, channels], float, -1 to 1
 * sample_rate  in Hz, a float scalar */
MR_API mr_output mr_summary_audio_(mr_graph *graph, const char *name, mr_output audio, mr_output sample_rate,
                                   const mr_summary_options *options);
/* text  strings, shown as Markdown: a scalar, or a table of rank 1 or 2 */
MR_API mr_output mr_summary_text_(mr_graph *graph, const char *name, mr_output text, const mr_summary_options *options);
/* tensor  of any dtype and shape; it is written completely */
MR_API mr_output mr_summary_tensor_(mr_graph *graph, const char *name, mr_output tensor,
                                    const mr_summary_options *options);
/* The precision and the recall of a batch at each threshold (tensorboard.plugins.pr_curve.summary.op). The summary is
 * named SCOPE/name/pr_curves.
 *
 * labels       bool, of any shape
 * predictions  float, of the same shape; clipped to 0 to 1 */
MR_API mr_output mr_summary_pr_curve_(mr_graph *graph, const char *name, mr_output labels, mr_output predictions,
                                      const mr_summary_options *options);
#define mr_summary_scalar(graph, name, value, ...)                                                                     \
    MR_SUMMARY_(mr_summary_scalar_((graph), (name), (value), &options_), __VA_ARGS__)
#define mr_summary_histogram(graph, name, values, ...)                                                                 \
    MR_SUMMARY_(mr_summary_histogram_((graph), (name), (values), &options_), __VA_ARGS__)
#define mr_summary_image(graph, name, images, images_max, ...)                                                         \
    MR_SUMMARY_(mr_summary_image_((graph), (name), (images), (images_max), &options_), __VA_ARGS__)
#define mr_summary_audio(graph, name, audio, sample_rate, ...)                                                         \
    MR_SUMMARY_(mr_summary_audio_((graph), (name), (audio), (sample_rate), &options_), __VA_ARGS__)
#define mr_summary_text(graph, name, text, ...)                                                                        \
    MR_SUMMARY_(mr_summary_text_((graph), (name), (text), &options_), __VA_ARGS__)
#define mr_summary_tensor(graph, name, tensor, ...)                                                                    \
    MR_SUMMARY_(mr_summary_tensor_((graph), (name), (tensor), &options_), __VA_ARGS__)
#define mr_summary_pr_curve(graph, name, labels, predictions, ...)                                                     \
    MR_SUMMARY_(mr_summary_pr_curve_((graph), (name), (labels), (predictions), &options_), __VA_ARGS__)

typedef struct mr_summary_merge_options {
    size_t size;          /* of this struct (api.h) */
    const char *name;     /* of the scope and of the node in it; default: "Merge" and "MergeSummary" */
    mr_names collections; /* of a merge of a list: to which it is added; default: none */
    const char *key;      /* of a merge of all: the collection; default: MR_SUMMARIES */
    /* Of a merge of all: a regular expression that matches the beginning of the names of the summaries that are
     * merged, "train/" for a scope. Default: all */
    const char *scope;
} mr_summary_merge_options;
/* Returns one string with the values of these summaries. Running fails with MR_INVALID_ARGUMENT if two have the same
 * tag.
 * summaries  string scalars; at least 1 */
MR_API mr_output mr_summary_merge_(mr_graph *graph, mr_outputs summaries, const mr_summary_merge_options *options);
/* The same for all summaries of a collection; {0} if there are none. */
MR_API mr_output mr_summary_merge_all_(mr_graph *graph, const mr_summary_merge_options *options);
#define mr_summary_merge(graph, summaries, ...)                                                                        \
    MR_WITH_SIZE_(mr_summary_merge_((graph), (summaries), &options_), mr_summary_merge_options, __VA_ARGS__)
#define mr_summary_merge_all(graph, ...)                                                                               \
    MR_WITH_SIZE_(mr_summary_merge_all_((graph), &options_), mr_summary_merge_options, __VA_ARGS__)

/* ---- Event files (tf.summary.FileWriter) ----
 *
 * Events are buffered, and are passed to the kernel when the buffer is full, when they are flushed, and flush_secs
 * after the last flush, at the next event. An error of writing leaves the file readable up to the last complete event.
 * Functions that add an event fail with MR_INVALID_ARGUMENT for a null or empty tag, with MR_RESOURCE_EXHAUSTED if the
 * disk is full, and with MR_UNAVAILABLE if the file is not writable. */

typedef struct mr_event_writer mr_event_writer;

typedef struct mr_event_writer_options {
    size_t size;                 /* of this struct (api.h) */
    const char *filename_suffix; /* appended to the file's name; no slash, at most 100 bytes */
    double flush_secs;           /* default 120; at least 0.001 */
} mr_event_writer_options;

/* Creates events.out.tfevents.SECONDS.HOST in directory. A missing directory is created. */
MR_API mr_status mr_event_writer_open(const char *directory, mr_event_writer **writer, mr_error *error);
/* The same with options, which may be null. */
MR_API mr_status mr_event_writer_open_with(const char *directory, const mr_event_writer_options *options,
                                           mr_event_writer **writer, mr_error *error);
/* Completes the file, and continues in a new one of the same directory. On an error, the writer has no file: adding an
 * event fails with MR_FAILED_PRECONDITION, and reopening may be repeated. */
MR_API mr_status mr_event_writer_reopen(mr_event_writer *writer, mr_error *error);
/* The path of the file; borrowed, until the writer is reopened or closed. */
MR_API const char *mr_event_writer_path(const mr_event_writer *writer);
/* Passes all events to the kernel. */
MR_API mr_status mr_event_writer_flush(mr_event_writer *writer, mr_error *error);
/* Flushes and frees; null is allowed. */
MR_API mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error);

/* Of the values with a tag, only the first one of a file is written with its metadata, as TensorBoard expects.
 * summary  a serialized Summary, as computed by mr_summary_merge_all's output
 * errors   MR_DATA_LOSS: not a Summary */
MR_API mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error);
MR_API mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                            mr_error *error);
/* Writes a serialized Event as it is, with its own step and time.
 * errors  MR_DATA_LOSS: not an Event */
MR_API mr_status mr_event_writer_add_event(mr_event_writer *writer, mr_string event, mr_error *error);
/* Writes the graph, with the shapes of its outputs, as an event of step 0, which TensorBoard's graph view reads. */
MR_API mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error);
/* The same from a serialized GraphDef or MetaGraphDef, at a step.
 * errors  MR_DATA_LOSS: not such a message */
MR_API mr_status mr_event_writer_add_graph_def(mr_event_writer *writer, int64_t step, mr_string graph_def,
                                               mr_error *error);
MR_API mr_status mr_event_writer_add_meta_graph_def(mr_event_writer *writer, int64_t step, mr_string meta_graph_def,
                                                    mr_error *error);
/* Writes a serialized RunMetadata (mr_run_options.metadata); TensorBoard's graph view shows it under the tag.
 * errors  MR_INVALID_ARGUMENT: the tag has been used; MR_DATA_LOSS: not a RunMetadata */
MR_API mr_status mr_event_writer_add_run_metadata(mr_event_writer *writer, int64_t step, const char *tag,
                                                  mr_string run_metadata, mr_error *error);

/* What a SessionLog tells. */
typedef enum mr_session_event { MR_SESSION_START = 1, MR_SESSION_STOP = 2, MR_SESSION_CHECKPOINT = 3 } mr_session_event;
/* Writes a SessionLog. When a new run starts at a step, TensorBoard hides what earlier runs wrote after that step.
 * checkpoint  its path, or null */
MR_API mr_status mr_event_writer_add_session_log(mr_event_writer *writer, int64_t step, mr_session_event event,
                                                 const char *checkpoint, mr_error *error);

/* ---- Values without a graph ---- */

/* values  of a real dtype and any shape
 * errors  MR_INVALID_ARGUMENT: a value is not finite */
MR_API mr_status mr_event_writer_add_histogram(mr_event_writer *writer, int64_t step, const char *tag,
                                               const mr_tensor *values, mr_error *error);
/* image   MR_UINT8 of [height, width, channels] with 1, 3 or 4 channels, which is encoded as PNG; or an encoded image,
 *         a scalar of dtype MR_STRING
 * errors  MR_INVALID_ARGUMENT: anything else; those of mr_image_probe */
MR_API mr_status mr_event_writer_add_image(mr_event_writer *writer, int64_t step, const char *tag,
                                           const mr_tensor *image, mr_error *error);
/* audio        MR_FLOAT of [frames] or [frames, channels], -1 to 1; written as WAV
 * sample_rate  in Hz, 1 to 2^32 - 1 */
MR_API mr_status mr_event_writer_add_audio(mr_event_writer *writer, int64_t step, const char *tag,
                                           const mr_tensor *audio, float sample_rate, mr_error *error);
/* text  Markdown, in UTF-8 */
MR_API mr_status mr_event_writer_add_text(mr_event_writer *writer, int64_t step, const char *tag, const char *text,
                                          mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
