/* Shared parts of the commands that write record files: output files, and temporary disk space for data that does not
 * fit into memory. */
#ifndef MR_TOOLS_TFRECORD_CAT_REWRITE_H
#define MR_TOOLS_TFRECORD_CAT_REWRITE_H

#include "common/progress.h"
#include "tfrecord-cat/cat.h"

/* Parses "640", "64K", "1.5M", "2G", "200MB", "1GiB": powers of 1024. */
bool parse_size(const char *text, uint64_t *size_bytes);

/* The values of --compress. */
typedef enum compress_form { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZLIB, COMPRESS_SEEKABLE } compress_form;

/* ---- totals.c ---- */

/* Totals of the selected records, known before anything is written. */
typedef struct totals {
    uint64_t records, size_bytes; /* including 16 bytes of framing per record */
    int copy_descriptor;          /* -1: no copy */
    char copy_path[64], *copy_paths[1];
    int32_t copy_argument;
} totals;
/* Reads everything once. Standard input and pipes, which cannot be read twice, are copied to a temporary file, and
 * options, which must be the caller's own copy, are changed to name it. Returns the exit code; damage is an error.
 * near    a path in the directory for the copy
 * totals  must not be moved while the options are in use */
int totals_read(options *options, const char *near, totals *totals);
void totals_deinit(totals *totals);

/* Opens an unnamed file in the directory of near (or a named one, unlinked at once, if the file system has no unnamed
 * files). It disappears when the descriptor is closed, however the program ends. */
mr_status scratch_open(const char *near, int *descriptor, mr_error *error);

/* Prints a path as text that is safe on a terminal. */
void print_path(FILE *file, const char *path);

/* A progress bar, shown only on a terminal. */
typedef struct pass {
    progress progress;
    bool is_shown;
} pass;
void pass_begin(pass *pass, const char *task, uint64_t records);
void pass_add(pass *pass, uint64_t records);
void pass_end(pass *pass);

/* ---- rewrite_features.c ---- */

/* Whether records are changed: --features or --rename is given. */
bool rewrites_features(const options *options);
/* As walk_records, for records reduced to the features that --features selects and renamed by --rename. Errors: a
 * record that is not an Example, a new name that another feature has, and a name that occurs in no record.
 *
 * memory  as walk_records, plus twice the longest record */
int rewrite_walk(const options *options, take_record *take, void *context);

/* ---- partial.c ---- */

/* Creates the partial file of an output, or opens the existing one, and locks it.
 * descriptor  -1 on errors
 * errors      MR_UNAVAILABLE if another run has locked it */
mr_status partial_lock(const char *path, int *descriptor, mr_error *error);
/* Removes the file, unless it has been renamed to its final name, and unlocks it. */
void partial_unlock(const char *path, int descriptor);
/* Removes the partial files that killed runs left of options->out and its shards, whatever their number.
 * stem_length  of options->out: the position of shard numbers
 * but          a path that is kept
 * errors       MR_INVALID_ARGUMENT if one of them is an input */
mr_status partial_remove_all(const options *options, size_t stem_length, const char *but, mr_error *error);

/* ---- outputs.c ---- */

/* Whether a path is one of the input files, under any name. */
bool is_input(const options *options, const char *path);
/* Checks that the file path + suffix is not one of the inputs, under any name.
 * errors  MR_INVALID_ARGUMENT */
mr_status output_reject_input(const options *options, const char *path, const char *suffix, mr_error *error);
/* Checks that a command may write the file path + suffix: it is not an input, and does not exist, or is a regular file
 * and --force is set, or an index of ours: a run that was killed can leave one without its file.
 * errors  MR_INVALID_ARGUMENT, MR_ALREADY_EXISTS */
mr_status output_allow(const options *options, const char *path, const char *suffix, mr_error *error);

/* One file or numbered shards, written one after the other and renamed when all are complete. Call outputs_deinit in
 * any case. */
typedef struct outputs {
    mr_record_writer_options writing;
    bool is_stream;
    char *lock_path; /* owned; OUT.partial */
    int lock;
    char **paths; /* owned; final paths */
    uint64_t count;
    uint64_t total_bytes; /* of all records; divided among shards by the offset of each record */
    uint64_t bytes;       /* appended so far */
    uint64_t records;
    uint64_t next;  /* shards before this one are complete, except the open one */
    uint64_t named; /* shards before this one have their final names */
    mr_record_writer *writer;
} outputs;

/* Number of shards: --shards (or the command's own number), --shard-size, else one file without a number. 0: the
 * options are invalid, as reported. */
uint64_t outputs_shards(const options *options, const totals *totals);
/* Whether the totals are needed before the first record is written. */
bool outputs_need_totals(const options *options);
/* Chooses the file names and refuses inputs, and existing files without --force. Nothing is written yet. Returns the
 * exit code; errors are reported.
 * totals  null: one file */
int outputs_begin(outputs *outputs, const options *options, const totals *totals);
/* Appends to the current shard. */
mr_status outputs_append(outputs *outputs, mr_string record, mr_error *error);
/* Finishes the last file, creates empty shards that received no record, and renames all. */
mr_status outputs_finish(outputs *outputs, mr_error *error);
/* Reports that nothing is written because of earlier errors; returns the exit code of the failure. */
int outputs_reject_damage(const options *options, int exit_code);
/* Prints a summary of what was written, unless it went to the standard output. */
void outputs_report(const outputs *outputs);
/* Removes unfinished files. */
void outputs_deinit(outputs *outputs);

#endif
