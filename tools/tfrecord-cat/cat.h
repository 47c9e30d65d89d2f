/* tfrecord-cat: displays, checks, exports and rewrites record files.
 *
 *     main.c      the table of commands
 *     options.c   the command line; the table of settings
 *     help.c      --help, composed from both tables
 *     inputs.c    resolves FILE arguments to paths of record files
 *     walk.c      iterates over the selected records
 *     NAME.c      a command: int NAME_run(const options *), and its helpers
 *
 * A new command is a file with its run function, a row in main.c, and rows in options.c for settings of its own. Exit
 * codes: 0 success, 1 an error or an unreadable file, 2 invalid options. */
#ifndef MR_TOOLS_TFRECORD_CAT_H
#define MR_TOOLS_TFRECORD_CAT_H

#include "common/out.h"
#include "common/query/record_position.h"
#include "common/query/tfds.h"
#include "common/query/where.h"
#include "common/text.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <stdio.h>

typedef struct command command;

/* How bytes features are printed: as text if they are text, otherwise as the command chooses; or always encoded. */
typedef enum bytes_form { BYTES_TEXT, BYTES_HEX, BYTES_BASE64 } bytes_form;
/* What --schema prints: a table and both specifications, or only one specification. */
typedef enum spec_form { SPEC_BOTH, SPEC_C, SPEC_PYTHON } spec_form;

/* Unset numbers are UINT64_MAX, unset texts null. Texts are borrowed from the command line. */
typedef struct options {
    const command *command;
    const char *argument; /* argument of the command: "DIR" of --extract DIR */

    /* Files: "-" is the standard input. paths[i] comes from FILE argument number path_arguments[i]. */
    char **paths;
    int32_t *path_arguments;
    int32_t path_count, argument_count;
    bool has_missing; /* an argument matched nothing or a directory is unreadable, as reported; the exit code is 1 */
    tfds_set tfds;    /* tensorflow_datasets metadata, if the command shows it or --where compares texts; owned */

    /* Selection; see walk_records. */
    uint64_t record;                 /* only this record, numbered across all files */
    const char *range;               /* "A:B", parsed into: */
    uint64_t range_begin, range_end; /* numbered across all files; 0 and UINT64_MAX without --range and --record */
    const char *where_text;
    where *where; /* parsed; owned; null: all records */
    uint64_t sample;
    uint64_t seed; /* default 0 */
    uint64_t head; /* maximum number of records */

    /* Form of the output. */
    uint64_t given;       /* bit i: row i of settings was given */
    const char *features; /* "a,b*"; see view.h */
    const char *rename;   /* "OLD=NEW,…" */
    bool is_crlf;
    bool is_raw; /* records are bytes, not Examples */
    bool is_pretty;
    bool decodes;   /* --verify: decode every pixel */
    uint64_t jobs;  /* threads */
    int bytes_form; /* a bytes_form */
    int spec;       /* a spec_form */

    /* Output files; see rewrite.h. */
    const char *out;
    int compress; /* a compress_form */
    uint64_t shards;
    const char *shard_size, *memory; /* "200M" */
    bool is_forced;                  /* outputs may replace existing files */
    bool is_unordered;
    bool to_dali, from_dali;

    /* Form of a summary. */
    bool is_json;    /* see takes_json */
    const char *svg; /* file for charts */
} options;

typedef enum group {
    GROUP_SHOW,
    GROUP_SUMMARY,
    GROUP_CHECK,
    GROUP_EXPORT,
    GROUP_REWRITE,
    GROUP_SELECT,
    GROUP_FORM,
    GROUP_COUNT
} group;

/* A row of the command table: the option --NAME selects the command. */
struct command {
    const char *name; /* null: the command that runs without an option */
    char letter;      /* 'c' for -c; 0: none */
    group group;
    const char *argument; /* "DIR"; null: it takes none */
    int (*run)(const options *options);
    const char *help; /* one short phrase without a full stop; wrapped */
    /* For --help=NAME: paragraphs separated by empty lines, wrapped; lines that begin with a space are unchanged.
     * States the limit on memory. */
    const char *more;
    bool takes_json;   /* with --json the summary is printed as JSON (is_json); --json is no second command */
    bool takes_dumps;  /* FILE is the directory of a dump, not record files */
    bool knows_labels; /* uses the metadata of tensorflow_datasets directories */
};
/* Terminated by a row without run. */
extern const command commands[];

/* A row of the setting table: an option that is not a command. */
typedef enum setting_kind {
    SETTING_FLAG,   /* bool */
    SETTING_NUMBER, /* uint64_t */
    SETTING_TEXT,   /* const char *, borrowed */
    SETTING_CHOICE, /* int: index of a word of argument, "text|hex|base64" */
} setting_kind;
typedef struct setting {
    const char *name;
    char letter;
    group group;
    const char *argument;
    setting_kind kind;
    size_t offset; /* of the field in options */
    const char *help, *more;
    const char *of; /* commands it applies to, "show merge"; an error with any other */
    bool is_common; /* listed by --help; others appear only in --help=NAME of their commands */
} setting;
/* Terminated by a row without name. */
extern const setting settings[];

/* ---- options.c, help.c, inputs.c ---- */

/* False: exit at once with *exit_code; any message has been printed. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);
void options_deinit(options *options);
/* Prints an error about the command line and a pointer to --help; returns 2. */
[[gnu::format(printf, 1, 2)]] int usage_error(const char *format, ...);
/* The value of --jobs; default: one thread for each processor. */
int32_t thread_count(const options *options);
/* Size of all files in MiB, for a progress bar; 0: not known before they are read. */
uint64_t total_mib(const options *options);
/* Whether a word is in a space-separated list, which may be null. */
bool list_contains(const char *words, const char *word);
/* Accepts only decimal digits. */
bool parse_number(const char *text, uint64_t *number);
/* Prints the help, or that of one option if topic is given; returns the exit code. */
int help_print(FILE *file, const char *topic);
/* Adds the record files that an argument stands for; false when there is no memory. Missing files are reported. The
 * index of a file is skipped unless the argument is the only one. */
bool inputs_add(options *options, const char *argument, bool is_only);

/* ---- walk.c ---- */

/* Called for each record, which is valid until the call returns; false stops. */
typedef bool take_record(void *context, const record_position *position);
/* Passes the selected records to take, in file order: the range, found by the index; of these the records that match
 * --where; of these a sample; of these the head. Damage is reported on the standard error and skipped. Returns the exit
 * code.
 *
 * memory  2 MiB and twice the longest record. A sample: 16 bytes for each of its records; for pipes and compressed
 *         files, the records themselves */
int walk_records(const options *options, take_record *take, void *context);
/* The same for one file of the options, as if it were the only one. */
int walk_file(const options *options, int32_t file, take_record *take, void *context);
/* Whether the options may select fewer than all records. */
bool walk_selects(const options *options);
/* Prints the number of selected records; returns the exit code. */
int walk_count(const options *options);
/* Formats a record as text. Several threads may do so concurrently, each with its own state. */
typedef struct text_format {
    void *(*open)(const options *options, const void *shared); /* a state; null: no memory */
    mr_status (*put)(void *state, const record_position *position, out *out, mr_error *error);
    void (*close)(void *state);
    const void *shared;
} text_format;
/* Writes the texts of the selected records to the standard output, in order. */
int walk_texts(const options *options, const text_format *format);
/* Prints an error on the standard error, after flushing the standard output; returns 1. */
int print_error(const mr_error *error);
/* The same, prefixed with the record's position. */
int print_record_error(const record_position *position, mr_error *error);
/* Reports that memory is exhausted; returns 1. */
int print_no_memory(void);

/* ---- Commands ---- */

int show_run(const options *options);
int json_run(const options *options);
int csv_run(const options *options);
int about_run(const options *options);
int dump_run(const options *options);
int count_run(const options *options);
int schema_run(const options *options);
int stats_run(const options *options);
int verify_run(const options *options);
int index_run(const options *options);
int repair_index_run(const options *options);
int diff_run(const options *options);
int merge_run(const options *options);
int split_run(const options *options);
int shuffle_run(const options *options);
int salvage_run(const options *options);
int extract_run(const options *options);
int html_run(const options *options);

#endif
