/* Summaries and event files, which TensorBoard shows.
 *
 * ```c
 * mr_error error = {0};
 * mr_event_writer *writer = nullptr;
 * if (mr_event_writer_open("run", &writer, &error) != MR_OK) return 1;
 * if (mr_event_writer_add_scalar(writer, 1, "loss", 0.5f, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * if (mr_event_writer_close(writer, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * ```
 *
 * One thread at a time for each writer. */
#ifndef MILLRACE_SUMMARY_H
#define MILLRACE_SUMMARY_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Summaries of a value in the graph. Each returns a serialized Summary, a string scalar, with the tag SCOPE/name, and
 * is added to the collection "summaries". */
MR_API mr_output mr_summary_scalar(mr_graph *graph, const char *name, mr_output value);
MR_API mr_output mr_summary_histogram(mr_graph *graph, const char *name, mr_output values);
/* Adds the first images_max images of the batch; at least 1 (tf.summary.image's default is 3). */
MR_API mr_output mr_summary_image(mr_graph *graph, const char *name, mr_output images, int32_t images_max);
/* Returns one string with all summaries of the graph; {0} if there are none. */
MR_API mr_output mr_summary_merge_all(mr_graph *graph);

typedef struct mr_event_writer mr_event_writer;
/* Creates events.out.tfevents.SECONDS.HOST in directory. A missing directory is created. */
MR_API mr_status mr_event_writer_open(const char *directory, mr_event_writer **writer, mr_error *error);
/* summary  a serialized Summary, as computed by mr_summary_merge_all's output */
MR_API mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error);
MR_API mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                            mr_error *error);
MR_API mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error);
MR_API mr_status mr_event_writer_flush(mr_event_writer *writer, mr_error *error);
MR_API mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
