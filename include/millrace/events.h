/* Event files, read; and what the plugins HParams and Projector of TensorBoard read.
 *
 * ```c
 * mr_error error = {0};
 * mr_event_reader *reader = nullptr;
 * const mr_event_message *event = nullptr;
 * if (mr_event_reader_open("run/events.out.tfevents.1700000000.host", &reader, &error) != MR_OK) return 1;
 * mr_status status;
 * while ((status = mr_event_reader_next(reader, &event, &error)) == MR_OK)
 *     for (int32_t i = 0; i < event->value_count; i++)
 *         if (event->values[i].kind == MR_EVENT_VALUE_SCALAR)
 *             printf("%lld %s %g\n", (long long)event->step, event->values[i].tag, (double)event->values[i].scalar);
 * if (status != MR_OUT_OF_RANGE) fprintf(stderr, "%s\n", error.message);
 * mr_event_reader_close(reader);
 * ```
 *
 * One thread at a time for each reader. */
#ifndef MILLRACE_EVENTS_H
#define MILLRACE_EVENTS_H

#include <millrace/summary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Reading (tf.train.summary_iterator) ---- */

typedef enum mr_event_kind {
    MR_EVENT_NONE = 0, /* of a kind that is not known */
    MR_EVENT_FILE_VERSION,
    MR_EVENT_GRAPH_DEF,
    MR_EVENT_SUMMARY,
    MR_EVENT_LOG_MESSAGE,
    MR_EVENT_SESSION_LOG,
    MR_EVENT_RUN_METADATA,
    MR_EVENT_META_GRAPH_DEF,
} mr_event_kind;

typedef enum mr_event_value_kind {
    MR_EVENT_VALUE_NONE = 0, /* of a kind that is not known */
    MR_EVENT_VALUE_SCALAR,
    MR_EVENT_VALUE_IMAGE,
    MR_EVENT_VALUE_HISTOGRAM,
    MR_EVENT_VALUE_AUDIO,
    MR_EVENT_VALUE_TENSOR, /* what plugins read: text, and the values of newer versions of TensorFlow */
} mr_event_value_kind;

/* An encoded image: PNG, JPEG or GIF. */
typedef struct mr_event_image {
    int32_t height, width, channels;
    mr_string encoded;
} mr_event_image;

/* counts[i] values are in [limits[i - 1], limits[i]). */
typedef struct mr_event_histogram {
    double min, max, number, sum, sum_squares;
    const double *limits, *counts;
    int64_t bucket_count;
} mr_event_histogram;

/* An encoded clip. */
typedef struct mr_event_audio {
    float sample_rate; /* in Hz */
    int64_t channels, frames;
    mr_string encoded;
    const char *content_type; /* "audio/wav" */
} mr_event_audio;

/* One value of a summary. The members of other kinds are zero. */
typedef struct mr_event_value {
    const char *tag; /* or the node's name, if there is no tag */
    mr_event_value_kind kind;
    float scalar;
    mr_event_image image;
    mr_event_histogram histogram;
    mr_event_audio audio;
    mr_tensor tensor;
    /* Metadata, which only the first value of a tag has; "" and empty if there is none. */
    const char *plugin_name, *display_name, *description;
    mr_string plugin_data;
} mr_event_value;

typedef struct mr_event_message {
    double wall_time; /* seconds since 1970 */
    int64_t step;
    mr_event_kind kind;
    /* The file's version, the log message, or the serialized GraphDef, MetaGraphDef or RunMetadata. */
    mr_string bytes;
    const char *tag; /* of run metadata; otherwise null */
    mr_session_event session;
    const char *checkpoint_path; /* of a session log; otherwise null */
    const mr_event_value *values;
    int32_t value_count; /* of a summary */
} mr_event_message;

typedef struct mr_event_reader mr_event_reader;
/* path    of an event file, which may be compressed
 * errors  those of mr_record_reader_open */
MR_API mr_status mr_event_reader_open(const char *path, mr_event_reader **reader, mr_error *error);
/* event   owned by the reader, with all that it refers to, until the next call
 * errors  MR_OUT_OF_RANGE at the end of the file; MR_DATA_LOSS: a damaged record, the incomplete one at the end of a
 *         file that is being written, or one that is not an Event. The next call continues after it if it can */
MR_API mr_status mr_event_reader_next(mr_event_reader *reader, const mr_event_message **event, mr_error *error);
MR_API void mr_event_reader_close(mr_event_reader *reader); /* null is allowed */

/* ---- Hyperparameters (tensorboard.plugins.hparams) ----
 *
 * The experiment is written once, to the directory that contains those of the runs. Each run has a writer, which writes
 * its hyperparameters first, then metrics as scalars, then its end. */

/* Which member of mr_hparam is the value. */
typedef enum mr_hparam_type { MR_HPARAM_STRING = 1, MR_HPARAM_BOOL = 2, MR_HPARAM_FLOAT64 = 3 } mr_hparam_type;

typedef struct mr_hparam {
    const char *name;
    mr_hparam_type type;
    const char *text; /* of a string */
    bool flag;        /* of a bool */
    double number;    /* of a float64 */
} mr_hparam;

typedef struct mr_hparams_start_options {
    size_t size;            /* of this struct (api.h) */
    const char *group_name; /* runs of one group are shown as one; default: none */
    const char *model_uri, *monitor_url;
    double start_time_secs; /* since 1970; default: now */
} mr_hparams_start_options;
/* Writes the hyperparameters of a run.
 * hparams  count of them, with different names; null if count is 0
 * options  may be null */
MR_API mr_status mr_event_writer_add_hparams_start(mr_event_writer *writer, const mr_hparam *hparams, int32_t count,
                                                   const mr_hparams_start_options *options, mr_error *error);

/* How a run has ended, or that it goes on. */
typedef enum mr_hparams_status {
    MR_HPARAMS_SUCCESS = 1,
    MR_HPARAMS_FAILURE = 2,
    MR_HPARAMS_RUNNING = 3
} mr_hparams_status;
/* end_time_secs  since 1970; 0: now */
MR_API mr_status mr_event_writer_add_hparams_end(mr_event_writer *writer, mr_hparams_status status,
                                                 double end_time_secs, mr_error *error);

/* A hyperparameter of an experiment: any value, one of a list, or a float64 in an interval. */
typedef struct mr_hparam_info {
    const char *name;
    mr_hparam_type type;
    const char *display_name, *description; /* may be null */
    const mr_hparam *discrete;              /* the values, of this type and without names; null: any */
    int32_t discrete_count;
    bool has_interval;
    double min, max;
} mr_hparam_info;

/* A metric of an experiment: the scalar with this tag in the directory group of each run. */
typedef struct mr_hparam_metric {
    const char *group, *tag;                /* group may be null: the run's own directory */
    const char *display_name, *description; /* may be null */
    bool is_training, is_validation;        /* at most one */
} mr_hparam_metric;

typedef struct mr_hparams_experiment_options {
    size_t size; /* of this struct (api.h) */
    const char *description, *user;
    double time_created_secs; /* since 1970; default: now */
    const mr_hparam_info *hparams;
    int32_t hparam_count;
    const mr_hparam_metric *metrics;
    int32_t metric_count;
} mr_hparams_experiment_options;
MR_API mr_status mr_event_writer_add_hparams_experiment(mr_event_writer *writer,
                                                        const mr_hparams_experiment_options *options, mr_error *error);

/* ---- Embeddings (tensorboard.plugins.projector) ---- */

/* An embedding matrix [rows, size] that the projector shows. All strings but the name may be null. */
typedef struct mr_projector_embedding {
    const char *tensor_name;             /* of the variable in the checkpoint; required unless tensor_path is given */
    const char *metadata_path;           /* a file of labels, one for each row */
    const char *bookmarks_path;          /* a JSON file */
    const char *tensor_path;             /* a TSV file of the rows, instead of the checkpoint */
    int64_t rows, columns;               /* of the file; 0: unknown */
    const char *sprite_path;             /* one image of all rows' pictures, row by row */
    int32_t sprite_width, sprite_height; /* of one picture, in pixels */
} mr_projector_embedding;
/* Writes directory/projector_config.pbtxt. A missing directory is created, an existing file is replaced.
 *
 * checkpoint  model_checkpoint_path; null: the directory's newest. TensorBoard looks for a relative path in its own
 *             working directory, not in this one
 * errors      MR_INVALID_ARGUMENT: an embedding without a name, or sizes of a sprite without its path */
MR_API mr_status mr_projector_config_write(const char *directory, const char *checkpoint,
                                           const mr_projector_embedding *embeddings, int32_t count, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
