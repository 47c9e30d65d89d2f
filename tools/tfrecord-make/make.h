/* tfrecord-make: converts images, lists and arrays to sharded records.
 *
 *     options.c      the command line; options_table.h: its options; options_check.c: options that have no effect
 *     help.c         --help
 *     source.h       the input as rows: class directories, lists, arrays, …; one source_*.c for each form
 *     filter.c       --include and --exclude
 *     splits.c       --split, --stratify, --group-by
 *     duplicates.c   images that occur more than once, by content
 *     estimate.c     estimated size of records
 *     plan.c         assigns rows to splits, shards and positions: a function of names and seed alone
 *     journal.c      which shards are finished, so that a run that was killed can be resumed
 *     label_files.c  labels.txt and label_map.pbtxt
 *     image.h        checks and conversion of one image; remark.c: the sentences about it
 *     shard.c        shards: read, converted and encoded on all threads, written in order
 *     worker.c       several processes, on one machine or many, that divide the work
 *     report.c       the summary as text; report_json.c: as JSON
 *     survey.h       --survey
 *     main.c         runs these steps in order */
#ifndef MR_TOOLS_TFRECORD_MAKE_H
#define MR_TOOLS_TFRECORD_MAKE_H

#include "common/pool.h"
#include "common/progress.h"
#include "tfrecord-make/image.h"
#include "tfrecord-make/source.h"

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
        double fraction; /* of all rows; unused if the input names the splits */
    } splits[SPLITS_MAX];
    int split_count;
    int64_t shards; /* for each split; 0: by size */
    uint64_t shard_bytes;
    uint64_t seed;
    int jobs;
    bool skip_bad;
    treatment treatment;
    duplicates duplicates;
    compression compression;
    int32_t worker, worker_count; /* 1…worker_count; 0: a single process */
    bool finish;                  /* join the parts written by workers */
    int32_t wait_s;               /* timeout for a worker that does not respond */
    source_options in;
    bool survey;     /* report only; write no records */
    const char *svg; /* output file of the survey's charts; or null */
    int32_t crop;    /* crop size of the planned training, in pixels */
    bool dry_run, json;
    bool stratify;
    const char *group_by;                                /* or null */
    const char *include[GLOBS_MAX], *exclude[GLOBS_MAX]; /* patterns for the paths of rows */
    int include_count, exclude_count;
    uint64_t given; /* one bit for each row of option_rows: the option is on the command line */
} options;

/* Parses the command line. False: exit at once with *exit_code; any message has already been printed. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);
void options_deinit(options *options);

/* ---- options_check.c ---- */

/* Records that an option was given. name: of a row of option_rows */
void options_give(options *options, const char *name);
bool options_is_given(const options *options, const char *name);
/* Reject options that have no effect: together with other options; on a kind of input; on input without images. */
mr_status options_check_mode(const options *options, mr_error *error);
mr_status options_check_input(const options *options, input_kind kind, mr_error *error);
mr_status options_check_images(const options *options, input_kind kind, mr_error *error);

/* ---- help.c ---- */

/* Prints the short help or a topic, as wide as the terminal and at most 80 columns. topic: null, the name of a topic
 * or of an option, or "all". False: no such topic exists, and nothing was printed. */
bool help_print(FILE *file, const char *topic);

/* ---- filter.c ---- */

/* Matches the patterns against one of a row's paths, which must not end in a slash. */
void filter_match(source *source, row *row, const char *path);
/* Whether a row is included; valid after all its paths have been matched. */
bool filter_accepts(const source *source, const row *row);
/* Counts the path of a row that is excluded. */
mr_status filter_count_excluded(source *source, const char *path, mr_error *error);
/* Whether a directory is read; a directory that is not read is counted. */
mr_status filter_accepts_directory(source *source, const char *path, bool *enters, mr_error *error);
/* Marks excluded rows; call it after all rows are listed. It is an error if no row remains or if a pattern of
 * --include matches nothing, and a warning if a pattern of --exclude matches nothing. */
mr_status filter_rows(source *source, mr_error *error);

/* ---- splits.c ---- */

/* Computes the split of each row from --split, --stratify and --group-by.
 * splits  owned by the caller, who calls free(), also after an error */
mr_status splits_choose(const options *options, const source *source, pool *pool, uint8_t **splits, mr_error *error);

/* ---- estimate.c ---- */

/* The size of a record: stored bytes * after / before, plus the bytes of its texts, plus fixed. */
typedef struct record_size {
    uint64_t before, after, fixed;
} record_size;
/* Estimates from a sample of records. The estimate is an upper bound: no record is expected to be larger. */
mr_status estimate_records(const options *options, const source *source, pool *pool, record_size *size,
                           mr_error *error);
uint64_t estimate_record(const record_size *size, const source *source, const row *row);

/* ---- plan.c ---- */

typedef struct shard {
    char *path;       /* owned */
    const char *name; /* points into path, after the directory */
    int32_t split;
    int64_t begin, count;    /* range of plan.order */
    uint64_t size_bytes;     /* of its rows */
    int32_t worker;          /* which worker writes it, 1…worker_count */
    uint64_t fingerprint[2]; /* of everything that determines its bytes */
} shard;

typedef struct plan {
    int64_t *order; /* owned; rows sorted by split and position */
    int64_t row_count;
    shard *shards; /* owned */
    int32_t shard_count;
    int64_t split_counts[SPLITS_MAX];
    int32_t split_shards[SPLITS_MAX];
    uint64_t hash; /* of all shards, without the modification times of files: the same on every machine */
} plan;

/* splits   of each row
 * dropped  a flag for each row that is left out; null: none
 * size     of records; unused if the options specify the number of files
 * errors   more files than file names have digits for */
mr_status plan_make(const options *options, const source *source, const uint8_t *splits, const bool *dropped,
                    const record_size *size, plan *plan, mr_error *error);
void plan_deinit(plan *plan);
/* The position of a row in its split: a function of its name and the seed. */
uint64_t plan_position_of(const options *options, const row *row);
/* Assigns every shard to one of worker_count workers, with about the same number of bytes for each. */
mr_status plan_share(plan *plan, int32_t worker_count, mr_error *error);
/* Mixes bytes into a 64-bit hash; the initial hash is 0. The result is the same on every machine. */
uint64_t plan_hash(uint64_t hash, const void *bytes, size_t size_bytes);

/* ---- duplicates.c ---- */

/* The duplicates that were found. Names are borrowed from the source. */
typedef struct duplicates_found {
    struct {
        int64_t count;
        const char *first, *other;
    } same, contradicting, crossing; /* copies in the same class; in other classes; in other splits */
    int64_t unread; /* images that could not be compared; their faults are reported with their records */
    const char *first_unread;
    int64_t dropped;
    bool *is_dropped; /* owned; of each row. Null: none */
} duplicates_found;

/* Finds images whose bytes are equal. Only images of equal size are read and hashed. DUPLICATES_DROP drops all but
 * one image of each class; under DUPLICATES_STOP any duplicate is an error. */
mr_status duplicates_find(const options *options, const source *source, const uint8_t *splits, pool *pool,
                          duplicates_found *found, mr_error *error);
void duplicates_deinit(duplicates_found *found);

/* ---- journal.c ---- */

/* How often a remark occurred, and the name of one of the rows. */
typedef struct remark_count {
    int64_t count;
    char *first; /* owned */
} remark_count;

/* The totals of a finished shard. */
typedef struct shard_report {
    int64_t records, skipped;
    uint64_t size_bytes; /* of the file */
    remark_count remarks[REMARK_COUNT];
} shard_report;
void shard_report_deinit(shard_report *report);
mr_status shard_report_remark(shard_report *report, remark remark, int64_t count, const char *name, mr_error *error);
/* Adds report to sum. */
mr_status shard_report_add(shard_report *sum, const shard_report *report, mr_error *error);

/* A finished shard, as recorded in a journal. */
typedef struct journal_line {
    char *name; /* owned */
    uint64_t fingerprint[2];
    uint64_t plan;       /* hash of the plan that it was written by */
    int64_t modified_ns; /* of the file */
    shard_report report;
} journal_line;

/* The last run recorded in one worker's journal. */
typedef struct journal_worker {
    int32_t worker, worker_count;
    uint64_t plan, run;
    int64_t row_count;
    bool is_done;
    char *failure; /* owned; the error that stopped the run, or null */
} journal_worker;

typedef struct journal {
    const options *options; /* borrowed */
    journal_line *lines;    /* owned; from all journals, the last line for each name */
    int64_t line_count;
    journal_worker *workers; /* owned */
    int32_t worker_count;
    bool has_others; /* the directory contains journals of other datasets */
    char *path;      /* owned; this process's own journal: of a worker, or of the whole run */
    int descriptor;  /* of path */
    int lock;        /* descriptor of the lock on the directory */
    pthread_mutex_t mutex;
} journal;

/* Opens this process's journal and reads all other journals of out/name. Checks the output directory before anything
 * is written: partial files left by a killed run are removed; files written by another program or another dataset
 * that would be replaced, or read together with this dataset's files, are an error. */
mr_status journal_open(const options *options, const source *source, const plan *plan, uint64_t run, journal *journal,
                       mr_error *error);
/* Reads all journals without a lock and writes nothing; the errors are the same. The result is only for
 * journal_find. */
mr_status journal_inspect(const options *options, const source *source, const plan *plan, journal *journal,
                          mr_error *error);
/* Reads all journals again. Not safe concurrently with other calls. */
mr_status journal_read(journal *journal, mr_error *error);
/* The line of a shard that exists exactly as it would be written now, or null. any_time: ignore the modification
 * times of input files, which may differ between machines. */
const journal_line *journal_find(const journal *journal, const plan *plan, const shard *shard, bool any_time);
/* Records that a shard is about to be written, so that its file counts as this dataset's. Safe from any thread. */
mr_status journal_claim(journal *journal, const shard *shard, mr_error *error);
/* Whether an earlier run wrote a text with this hash to a file. journal_add_text records that this run did. */
bool journal_has_text(const journal *journal, const char *name, uint64_t hash);
mr_status journal_add_text(journal *journal, const char *name, uint64_t hash, mr_error *error);
/* Records a finished shard and stores its file size in the report. Safe from any thread. */
mr_status journal_add(journal *journal, const plan *plan, const shard *shard, shard_report *report, mr_error *error);
/* Records the end of a run: success, or its error (failure). */
mr_status journal_add_end(journal *journal, uint64_t run, const char *failure, mr_error *error);
/* Shows other processes that this one is alive: updates the modification time of its journal. Safe from any thread. */
void journal_touch(journal *journal);
/* Removes shards of earlier runs that are not in the plan: they had another number of shards, or other splits.
 * removed  receives the number of shards that existed */
mr_status journal_finish(journal *journal, const plan *plan, int64_t *removed, mr_error *error);
/* Removes the shards of a plan without records, and this process's journal unless it lists other files that exist.
 * plan  null: none of its shards was written */
mr_status journal_discard(journal *journal, const plan *plan, mr_error *error);
void journal_deinit(journal *journal);

/* ---- label_files.c ---- */

/* Writes labels.txt with one line for each class: line n + 1 is the name of label n, and is empty if no class has
 * that number. For boxes it also writes label_map.pbtxt, which TensorFlow's Object Detection API reads. Writes
 * nothing if there are no classes. */
mr_status label_files_write(const source *source, journal *journal, mr_error *error);
/* errors  MR_ALREADY_EXISTS: one of them exists with another text, and no earlier run of this dataset alone wrote it */
mr_status label_files_check(const source *source, journal *journal, mr_error *error);
/* Removes the label files that an earlier run of this dataset wrote and that this run will not write unchanged, so that
 * labels.txt never exists together with shards that use other labels. The file of --labels is kept: its labels remain
 * valid.
 * has_retired  set to true if a file was removed */
mr_status label_files_retire(const source *source, journal *journal, bool *has_retired, mr_error *error);

/* ---- shard.c ---- */

/* A shard of which no row can be used. */
typedef struct postponed_shard {
    const shard *shard;
    shard_report report;
} postponed_shard;

typedef struct work {
    const options *options;
    const source *source;
    const plan *plan;
    journal *journal;
    pool *pool;
    progress *progress;
    const duplicates_found *found;
    int64_t row_count, rows_done; /* rows that this process writes, and how many of them are done */
    pthread_mutex_t mutex;        /* protects the members below */
    int64_t written, reused;      /* records */
    int32_t finished;             /* shards */
    postponed_shard *postponed;   /* owned; written last */
    int32_t postponed_count;
    bool replaces_labels, has_retired; /* label files were checked before the first shard; one of them was removed */
    shard_report splits[SPLITS_MAX];
} work;

/* Writes shards and their indexes, in this order, on all threads; those without records last, and only if this process
 * is a worker or has records. Rows that cannot be used are reported on standard error; if they stop the work, the
 * status is MR_CANCELLED. */
mr_status shards_write(work *work, const shard *const *shards, int32_t count, mr_error *error);

/* ---- worker.c ---- */

/* Under mpirun, srun or a similar launcher: sets worker and worker_count unless the options specify them. *run
 * identifies this launch; 0 if the launcher provides no identifier. */
void worker_detect(options *options, bool *launched, uint64_t *run);
/* Whether a launcher assigned a rank to this process. */
bool worker_has_rank(void);
/* Waits until the other workers have finished; the error names the first that has not. */
mr_status worker_wait(work *work, uint64_t run, mr_error *error);
/* Checks that every shard exists, was written by the same plan and has a matching index; adds up work->splits. */
mr_status worker_join(work *work, mr_error *error);

/* ---- report.c ---- */

/* Prints a sentence with control characters escaped, and wraps it at words to the width of the terminal.
 * Continuation lines are indented. */
[[gnu::format(printf, 1, 2)]] void print_wrapped(const char *format, ...);

void report_source(const options *options, const source *source);
void report_duplicates(const options *options, const duplicates_found *found);
/* report_part prints what this process wrote; report_interrupted, where a signal stopped it. */
void report_part(const work *work, double seconds);
void report_interrupted(const work *work);
/* What would be written, and how many files are already finished (--dry-run). */
void report_planned(const work *work, int32_t finished);
/* The complete summary. joined: the parts were written by several processes; seconds may then be 0. */
void report_made(const work *work, double seconds, int64_t removed, bool joined);

/* ---- report_json.c ---- */

/* The summary as one JSON object: what was written, or with --dry-run what would be.
 * planned  the number of files that are already finished, with --dry-run */
mr_status report_json(const work *work, double seconds, int64_t removed, int32_t planned, mr_error *error);

#endif
