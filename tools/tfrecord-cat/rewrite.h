/* What the commands that write record files share: where the records go, and room on the disk for what does not fit into
 * memory. */
#ifndef MR_TOOLS_TFRECORD_CAT_REWRITE_H
#define MR_TOOLS_TFRECORD_CAT_REWRITE_H

#include "tools/common/progress.h"
#include "tools/tfrecord-cat/cat.h"

/* "640", "64K", "1.5M", "2G", "200MB", "1GiB": powers of 1024. */
bool parse_size(const char *text, uint64_t *size_bytes);

/* The words of --compress. */
typedef enum compress_form { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZLIB, COMPRESS_SEEKABLE } compress_form;

/* ---- totals.c ---- */

/* What the options select, known before anything is written. */
typedef struct totals {
    uint64_t records, size_bytes; /* with the 16 bytes of frame around each record */
    int copy_descriptor;          /* -1: there is no copy */
    char copy_path[64], *copy_paths[1];
    int32_t copy_argument;
} totals;
/* Reads everything once. Standard input and pipes, which cannot be read twice, are copied into room on the disk, and the
 * options, which are the caller's own, then name the copy. Returns the exit code; damage is a failure.
 * near    a path in the directory for the copy
 * totals  stays where it is as long as the options are used */
int totals_read(options *options, const char *near, totals *totals);
void totals_deinit(totals *totals);

/* An unnamed file in the directory of near (or, where that has none, a named one that is removed at once): gone when the
 * descriptor is closed, however the program ends. */
mr_status scratch_open(const char *near, int *descriptor, mr_error *error);

/* A path as text that is safe on a terminal. */
void print_path(FILE *file, const char *path);

/* A progress bar on a terminal, and nothing elsewhere. */
typedef struct pass {
    progress progress;
    bool is_shown;
} pass;
void pass_begin(pass *pass, const char *task, uint64_t records);
void pass_add(pass *pass, uint64_t records);
void pass_end(pass *pass);

/* ---- rewrite_features.c ---- */

/* Whether records are changed on the way: --features, --rename. */
bool rewrites_features(const options *options);
/* As walk_records, of records with the features that --features leaves, under the names that --rename gives them. A record
 * that is no Example, a feature whose new name another one has, and a name that no record has are failures.
 *
 * memory  as walk_records; the longest record, twice, more */
int rewrite_walk(const options *options, take_record *take, void *context);

/* ---- partial.c ---- */

/* Makes the half file of an output, or takes the one that is there, and holds it.
 * descriptor  -1 on errors
 * errors      MR_UNAVAILABLE when another run has it */
mr_status partial_lock(const char *path, int *descriptor, mr_error *error);
/* Removes it, unless it has its final name, and lets it go. */
void partial_unlock(const char *path, int descriptor);
/* Removes what runs that were killed left of options->out and its shards, however many those were.
 * stem_length  of options->out: where numbers go
 * but          a path that stays
 * errors       MR_INVALID_ARGUMENT when one of them is an input */
mr_status partial_remove_all(const options *options, size_t stem_length, const char *but, mr_error *error);

/* ---- outputs.c ---- */

/* Whether a path is one of the files that are read, under whatever name. */
bool is_input(const options *options, const char *path);
/* Whether a command may write a record file under this path, and its index beside it: it is not an input, and as
 * output_check.
 * errors  MR_INVALID_ARGUMENT, MR_ALREADY_EXISTS */
mr_status output_allow(const options *options, const char *path, mr_error *error);

/* One file or numbered shards, written one after the other; they get their names when all are whole. outputs_deinit in any
 * case. */
typedef struct outputs {
    mr_record_writer_options writing;
    bool is_stream;
    char *lock_path; /* owned; OUT.partial */
    int lock;
    char **paths; /* owned; the final ones */
    uint64_t count;
    uint64_t total_bytes; /* that are shared out among the shards, by where a record begins */
    uint64_t bytes;       /* appended so far */
    uint64_t records;
    uint64_t next;  /* shards before this one are whole, but for the open one */
    uint64_t named; /* shards before this one have their names */
    mr_record_writer *writer;
} outputs;

/* How many shards the options ask for: --shards (or the command's own number), --shard-size, else one and no numbers.
 * 0: the options are wrong, which was told. */
uint64_t outputs_shards(const options *options, const totals *totals);
/* Whether shards have to be counted before the first record is written. */
bool outputs_need_totals(const options *options);
/* Names the files and refuses those that are inputs, or are there without --force. Nothing is written yet. Returns the
 * exit code, with what is wrong told.
 * totals  null: one file */
int outputs_begin(outputs *outputs, const options *options, const totals *totals);
/* Appends to the shard whose turn it is. */
mr_status outputs_append(outputs *outputs, mr_string record, mr_error *error);
/* Ends the last file, makes those that got no record, and gives all their names. */
mr_status outputs_finish(outputs *outputs, mr_error *error);
/* Reports that nothing is written because of what was reported before; returns the exit code of the failure. */
int outputs_refuse_damage(const options *options, int exit_code);
/* Says what was written, unless it went to the standard output. */
void outputs_report(const outputs *outputs);
/* What is not finished is removed. */
void outputs_deinit(outputs *outputs);

#endif
