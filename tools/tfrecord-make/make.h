/* tfrecord-make: images, lists and arrays become sharded records.
 *
 *     options.c     the command line; options_table.h: its options; options_check.c: options that have no effect
 *     help.c        --help
 *     source.h      the input as rows: class directories, lists, arrays, …; one source_*.c a form
 *     filter.c      --include and --exclude; splits.c: --split, --stratify, --group-by
 *     duplicates.c  images that are there more than once, by content
 *     estimate.c    how large records will be
 *     plan.c        which row goes to which split, shard and place: a function of names and seed alone
 *     journal.c     which shards are finished, so that a run that was killed goes on
 *     label_files.c labels.txt and label_map.pbtxt
 *     image.h     what is made of an image; remark.c: what is said about it
 *     shard.c       shards: read, treat, encode on all threads; written in order
 *     worker.c      several processes, on one machine or many, that share the work
 *     report.c      what is told; report_json.c: the same for programs
 *     survey.h      --survey
 *     main.c        all of it in order */
#ifndef MR_TOOLS_TFRECORD_MAKE_H
#define MR_TOOLS_TFRECORD_MAKE_H

#include "base/pool.h"
#include "tools/common/progress.h"
#include "tools/tfrecord-make/image.h"
#include "tools/tfrecord-make/source.h"

#include <millrace/record.h>
#include <millrace/status.h>
#include <millrace/tensor.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

/* ---- options.c ---- */

typedef enum duplicates { DUPLICATES_KEEP = 0, DUPLICATES_DROP, DUPLICATES_STOP, DUPLICATES_IGNORE } duplicates;
typedef enum compression { COMPRESS_NONE = 0, COMPRESS_GZIP, COMPRESS_ZLIB, COMPRESS_SEEKABLE } compression;

typedef struct options {
    const char *input, *out;
    char *name; /* owned */
    struct {
        char name[SPLIT_NAME_BYTES];
        double fraction; /* of all; not used where the input names the parts */
    } splits[SPLITS_MAX];
    int split_count;
    int64_t shards; /* of each split; 0: by size */
    uint64_t shard_bytes;
    uint64_t seed;
    int jobs;
    bool skip_bad;
    treatment treatment;
    duplicates duplicates;
    compression compression;
    int32_t worker, worker_count; /* 1…worker_count; 0: alone */
    bool finish;                  /* joins what workers made */
    int32_t wait_s;               /* for a worker that says nothing */
    source_options in;
    bool survey;     /* only look */
    const char *svg; /* of the survey; or null */
    int32_t crop;    /* that is to be trained with, in pixels */
    bool dry_run, json;
    bool stratify;
    const char *group_by;                                /* or null */
    const char *include[GLOBS_MAX], *exclude[GLOBS_MAX]; /* of paths of rows */
    int include_count, exclude_count;
    uint64_t given; /* a bit for each row of option_rows: it is on the command line */
} options;

/* Reads the command line. False: exit at once with *exit_code; what there is to say has been said. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);
void options_deinit(options *options);

/* ---- options_check.c ---- */

/* Notes that an option is on the command line. name: of a row of option_rows */
void options_give(options *options, const char *name);
bool options_is_given(const options *options, const char *name);
/* Refuse options that have no effect: beside other options; on a kind of input; on input without images. */
mr_status options_check_mode(const options *options, mr_error *error);
mr_status options_check_input(const options *options, input_kind kind, mr_error *error);
mr_status options_check_images(const options *options, input_kind kind, mr_error *error);

/* ---- help.c ---- */

/* The short help, or a topic, as wide as the terminal and at most 80 columns. topic: null, the name of a topic or of an option, or
 * "all". False: there is no such topic, and nothing was printed. */
bool help_print(FILE *file, const char *topic);

/* ---- filter.c ---- */

/* Tries the patterns on one of a row's paths, which has no slash at its end. */
void filter_see(source *source, row *row, const char *path);
/* Whether a row takes part, when all of its paths were seen. */
bool filter_keeps(const source *source, const row *row);
/* Counts the path of a row that does not. */
mr_status filter_note(source *source, const char *path, mr_error *error);
/* Whether a directory is read; one that is not is counted. */
mr_status filter_enters(source *source, const char *path, bool *enters, mr_error *error);
/* When all rows are listed: marks those that do not take part. An error when none is left, or a pattern of --include matches nothing;
 * a warning when one of --exclude does. */
mr_status filter_rows(source *source, mr_error *error);

/* ---- splits.c ---- */

/* The split of each row, by --split, --stratify and --group-by.
 * splits  owned by the caller: free(), also after an error */
mr_status splits_choose(const options *options, const source *source, mr_pool *pool, uint8_t **splits, mr_error *error);

/* ---- estimate.c ---- */

/* A record takes stored bytes * after / before, the bytes of its texts, and fixed. */
typedef struct record_size {
    uint64_t before, after, fixed;
} record_size;
/* Makes a few records. An estimate from above: no record is expected to be larger. */
mr_status estimate_records(const options *options, const source *source, mr_pool *pool, record_size *size,
                           mr_error *error);
uint64_t estimate_record(const record_size *size, const source *source, const row *row);

/* ---- plan.c ---- */

typedef struct shard {
    char *path;       /* owned */
    const char *name; /* inside path: without the directory */
    int32_t split;
    int64_t begin, count;    /* of plan.order */
    uint64_t size_bytes;     /* of its rows */
    int32_t worker;          /* whose it is, 1…; of as many as the options say */
    uint64_t fingerprint[2]; /* of everything its bytes follow from */
} shard;

typedef struct plan {
    int64_t *order; /* owned; rows by split and place */
    int64_t row_count;
    shard *shards; /* owned */
    int32_t shard_count;
    int64_t split_counts[SPLITS_MAX];
    int32_t split_shards[SPLITS_MAX];
    uint64_t hash; /* of all shards, but for the times of files: the same on every machine */
} plan;

/* splits   of each row
 * dropped  a flag for each row that is left out; null: none
 * size     of records; used unless the options say how many files there are
 * errors   more files than names have digits for */
mr_status plan_make(const options *options, const source *source, const uint8_t *splits, const bool *dropped,
                    const record_size *size, plan *plan, mr_error *error);
void plan_deinit(plan *plan);
/* The position of a row in its split, which follows from its name and the seed. */
uint64_t plan_place_of(const options *options, const row *row);
/* Gives every shard to one of so many workers, with about the same bytes for each. */
mr_status plan_share(plan *plan, int32_t worker_count, mr_error *error);
/* Mixes bytes into a 64-bit hash; 0 begins. The same on every machine. */
uint64_t plan_hash(uint64_t hash, const void *bytes, size_t size_bytes);

/* ---- duplicates.c ---- */

/* What was found. Names are borrowed from the source. */
typedef struct duplicates_found {
    struct {
        int64_t count;
        const char *first, *other;
    } same, contradicting, crossing; /* copies in the same class; in other classes; in other splits */
    int64_t unread; /* images that could not be compared; what is wrong with them is reported with their records */
    const char *first_unread;
    int64_t dropped;
    bool *is_dropped; /* owned; of each row. Null: none */
} duplicates_found;

/* Finds images whose bytes are equal: those of equal size are read and hashed, the others cannot be. Under
 * DUPLICATES_DROP all but one of each class are dropped; under DUPLICATES_STOP any is an error. */
mr_status duplicates_find(const options *options, const source *source, const uint8_t *splits, mr_pool *pool,
                          duplicates_found *found, mr_error *error);
void duplicates_deinit(duplicates_found *found);

/* ---- journal.c ---- */

/* How often something was remarked, and one of the rows: a name. */
typedef struct remark_count {
    int64_t count;
    char *first; /* owned */
} remark_count;

/* What a finished shard came to. */
typedef struct shard_report {
    int64_t records, skipped;
    uint64_t size_bytes; /* of the file */
    remark_count remarks[REMARK_COUNT];
} shard_report;
void shard_report_deinit(shard_report *report);
mr_status shard_report_remark(shard_report *report, remark remark, int64_t count, const char *name, mr_error *error);
/* Adds one to another. */
mr_status shard_report_add(shard_report *sum, const shard_report *report, mr_error *error);

/* A shard as some journal has it. */
typedef struct journal_line {
    char *name; /* owned */
    uint64_t fingerprint[2];
    uint64_t plan;       /* the plan that it was made by */
    int64_t modified_ns; /* of the file */
    shard_report report;
} journal_line;

/* The state of one worker's journal: its last run. */
typedef struct journal_worker {
    int32_t worker, worker_count;
    uint64_t plan, run;
    int64_t row_count;
    bool is_done;
    char *failure; /* owned; why it stopped, or null */
} journal_worker;

typedef struct journal {
    const options *options; /* borrowed */
    journal_line *lines;    /* owned; of all journals, the last of each name */
    int64_t line_count;
    journal_worker *workers; /* owned */
    int32_t worker_count;
    bool has_others; /* other datasets have journals in the directory */
    char *path;      /* owned; our own, that of a worker or of all */
    int descriptor;  /* of path */
    int lock;        /* on the directory */
    pthread_mutex_t mutex;
} journal;

/* Opens our journal and reads all others of out/name. Before anything is written, looks at what the directory holds: parts of files
 * that a killed run left are removed; files that another program or another dataset wrote, and that would be replaced or read
 * together with ours, are an error. */
mr_status journal_open(const options *options, const source *source, const plan *plan, uint64_t run, journal *journal,
                       mr_error *error);
/* Reads all journals without a lock, with the same errors, and writes nothing: for journal_find alone. */
mr_status journal_look(const options *options, const source *source, const plan *plan, journal *journal,
                       mr_error *error);
/* Reads all journals anew. Not beside other calls. */
mr_status journal_read(journal *journal, mr_error *error);
/* The line of a shard that is there as it would be made now, or null. any_time: also when files have other times than they had
 * where it was made. */
const journal_line *journal_find(const journal *journal, const plan *plan, const shard *shard, bool any_time);
/* Notes that a shard is about to be written, so that its file is ours. Safe from any thread. */
mr_status journal_claim(journal *journal, const shard *shard, mr_error *error);
/* Whether an earlier run wrote a text of this hash into a file; notes that this run did. */
bool journal_has_text(const journal *journal, const char *name, uint64_t hash);
mr_status journal_add_text(journal *journal, const char *name, uint64_t hash, mr_error *error);
/* Notes a shard that is finished, and its size in the report. Safe from any thread. */
mr_status journal_add(journal *journal, const plan *plan, const shard *shard, shard_report *report, mr_error *error);
/* The last word of a run: all is done, or why not (failure). */
mr_status journal_say_end(journal *journal, uint64_t run, const char *failure, mr_error *error);
/* Shows others that this process is alive: our journal gets the present time. Safe from any thread. */
void journal_beat(journal *journal);
/* Removes shards of earlier runs with another number of shards. */
mr_status journal_finish(journal *journal, const plan *plan, int64_t *removed, mr_error *error);
/* Removes the plan's shards, and our journal unless it knows of others. */
mr_status journal_discard(journal *journal, const plan *plan, mr_error *error);
void journal_deinit(journal *journal);

/* ---- label_files.c ---- */

/* Writes labels.txt, a line for each class, so that line n + 1 names label n (empty where none has that number); for boxes
 * also label_map.pbtxt, which TensorFlow's Object Detection API reads. Nothing when there are no classes. */
mr_status label_files_write(const source *source, journal *journal, mr_error *error);
/* errors  MR_ALREADY_EXISTS: one of them is there, has another text, and no earlier run of this dataset alone wrote it */
mr_status label_files_check(const source *source, journal *journal, mr_error *error);

/* ---- shard.c ---- */

typedef struct work {
    const options *options;
    const source *source;
    const plan *plan;
    journal *journal;
    mr_pool *pool;
    progress *progress;
    const duplicates_found *found;
    int64_t row_count, rows_done; /* that this process is to write, and how far it came */
    pthread_mutex_t mutex;        /* of what follows */
    int64_t written, reused;      /* records */
    int32_t finished;             /* shards */
    shard_report splits[SPLITS_MAX];
} work;

/* Writes shards and their indexes, in this order, on all threads. Rows that cannot be used are told on the standard error; when
 * they are to stop the work, the status is MR_CANCELLED. */
mr_status shards_write(work *work, const shard *const *shards, int32_t count, mr_error *error);

/* ---- worker.c ---- */

/* Under mpirun, srun and the like: sets worker and worker_count when the options do not. *run tells this launch from another;
 * 0 when nothing does. */
void worker_detect(options *options, bool *launched, uint64_t *run);
/* Whether a launcher gave this process a rank. */
bool worker_has_rank(void);
/* Waits until the other workers have finished, and says which is the first that has not. */
mr_status worker_wait(work *work, uint64_t run, mr_error *error);
/* Checks that every shard is there, made by one plan, with an index that fits; adds up work->splits. */
mr_status worker_join(work *work, mr_error *error);

/* ---- report.c ---- */

/* Prints a sentence, made safe, and broken between words where a terminal would break it anywhere; the lines that follow the
 * first are indented. */
[[gnu::format(printf, 1, 2)]] void say(const char *format, ...);

void report_source(const options *options, const source *source);
void report_duplicates(const options *options, const duplicates_found *found);
/* What this process wrote, and where a signal stopped it. */
void report_part(const work *work, double seconds);
void report_interrupted(const work *work);
/* What would be written, and how many files are finished already (--dry-run). */
void report_planned(const work *work, int32_t finished);
/* The whole. joined: of parts that several processes made; seconds may then be 0. */
void report_made(const work *work, double seconds, int64_t removed, bool joined);

/* ---- report_json.c ---- */

/* The summary as one JSON object: of what was written, or under --dry-run of what would be.
 * planned  the files that are finished already, under --dry-run */
mr_status report_json(const work *work, double seconds, int64_t removed, int32_t planned, mr_error *error);

#endif
