/* tfrecord-cat: what is in record files, and other files made of them.
 *
 *     main.c      the table of commands
 *     options.c   the command line; the table of settings
 *     help.c      --help, composed of both tables
 *     inputs.c    what FILE may be: paths of record files
 *     walk.c      the selected records in turn
 *     NAME.c      a command: int NAME_run(const options *), and what only it needs
 *
 * A new command is a file with its run function, a row in main.c, and rows in options.c for settings of its own. Exit codes:
 * 0 fine, 1 a fault or a file that cannot be read, 2 wrong options. */
#ifndef MR_TOOLS_TFRECORD_CAT_H
#define MR_TOOLS_TFRECORD_CAT_H

#include "tools/common/text.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include "tools/tfrecord-cat/out.h"
#include "tools/tfrecord-cat/tfds.h"
#include "tools/tfrecord-cat/where.h"

#include <stdio.h>

typedef struct command command;

/* How bytes features are written: text where they are text, else as the command sees fit; or always encoded. */
typedef enum bytes_form { BYTES_TEXT, BYTES_HEX, BYTES_BASE64 } bytes_form;
/* What --schema prints: a table and both specifications, or one of them alone. */
typedef enum spec_form { SPEC_BOTH, SPEC_C, SPEC_PYTHON } spec_form;

/* Numbers that were not given are UINT64_MAX, texts nullptr. Texts are borrowed from the command line. */
typedef struct options {
    const command *command;
    const char *argument; /* of the command: "DIR" of --extract DIR */

    /* Files: "-" is the standard input. paths[i] comes from FILE argument number path_arguments[i]. */
    char **paths;
    int32_t *path_arguments;
    int32_t path_count, argument_count;
    bool
        has_missing; /* an argument matched nothing or a directory cannot be read, which was told; the exit code is 1 */
    tfds_set tfds;   /* of the files, where the command shows it or --where compares with a text; owned */

    /* Which records: walk_records does it all. */
    uint64_t record;                 /* only this one, counted through all files */
    const char *range;               /* "A:B", read into: */
    uint64_t range_begin, range_end; /* counted through all files; 0 and UINT64_MAX without --range and --record */
    const char *where_text;
    where *where; /* parsed; owned; null: all */
    uint64_t sample;
    uint64_t seed; /* 0 when not given */
    uint64_t head; /* at most so many */

    /* How. */
    uint64_t given;       /* a bit for each row of settings */
    const char *features; /* "a,b*": see view.h */
    const char *rename;   /* "OLD=NEW,…" */
    bool is_crlf;
    bool is_raw; /* records are bytes, not Examples */
    bool is_pretty;
    bool decodes;   /* --verify: every pixel */
    uint64_t jobs;  /* threads */
    int bytes_form; /* a bytes_form */
    int spec;       /* a spec_form */

    /* What is written, and where: rewrite.h. */
    const char *out;
    int compress; /* a compress_form */
    uint64_t shards;
    const char *shard_size, *memory; /* "200M" */
    bool is_forced;                  /* outputs may replace files */
    bool is_unordered;
    bool to_dali, from_dali;

    /* What a summary is written as. */
    bool is_json;    /* see takes_json */
    const char *svg; /* a file for charts */
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

/* A row of the table of commands: the option --NAME makes it the thing to do. */
struct command {
    const char *name; /* null for what is done without an option */
    char letter;      /* 'c' for -c; 0: none */
    group group;
    const char *argument; /* "DIR"; null: it takes none */
    int (*run)(const options *options);
    const char *help; /* one short sentence without a full stop; wrapped as it needs */
    /* For --help=NAME: paragraphs between empty lines, wrapped; lines that begin with a space stay as they are. Tells the
     * bound on memory. */
    const char *more;
    bool takes_json;   /* --json beside it is its form, not another command: is_json */
    bool knows_labels; /* shows what directories of tensorflow_datasets say */
};
/* Ends with a row without run. */
extern const command commands[];

/* A row of the table of settings: an option that is no command. */
typedef enum setting_kind {
    SETTING_FLAG,   /* bool */
    SETTING_NUMBER, /* uint64_t */
    SETTING_TEXT,   /* const char *, borrowed */
    SETTING_CHOICE, /* int: which of the words of argument, "text|hex|base64" */
} setting_kind;
typedef struct setting {
    const char *name;
    char letter;
    group group;
    const char *argument;
    setting_kind kind;
    size_t offset; /* in options */
    const char *help, *more;
    const char *of; /* commands on which it has an effect, "show merge"; beside any other it is an error */
    bool is_common; /* --help lists it; the others are in --help=NAME of their commands alone */
} setting;
/* Ends with a row without name. */
extern const setting settings[];

/* ---- options.c, help.c, inputs.c ---- */

/* False: exit at once with *exit_code; what there is to say has been said. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);
void options_deinit(options *options);
/* Tells what is wrong with the command line, and where help is; returns 2. */
[[gnu::format(printf, 1, 2)]] int refuse(const char *format, ...);
/* Of --jobs; without it one for each processor. */
int32_t thread_count(const options *options);
/* MiB of all files, for a progress bar; 0: not known before they are read. */
uint64_t total_mib(const options *options);
/* Whether a word is one of several, which spaces stand between; words may be null. */
bool has_word(const char *words, const char *word);
/* Decimal digits and nothing else. */
bool parse_number(const char *text, uint64_t *number);
/* The help, or with a topic that of one option; returns the exit code. */
int help_print(FILE *file, const char *topic);
/* Adds the record files that an argument means; false when there is no memory. What does not exist is told. An index
 * beside its file is left out unless the argument is the only one. */
bool inputs_add(options *options, const char *argument, bool is_only);

/* ---- walk.c ---- */

/* A record and where it is from. */
typedef struct place {
    const char *path;        /* "-" is the standard input */
    uint64_t number, offset; /* in its file; the offset is that of the uncompressed bytes */
    mr_string record;        /* until take returns */
} place;

/* Called for each record; false: no more are wanted. */
typedef bool take_record(void *context, const place *place);
/* Gives the records that the options select, in the order of the files: of a range by the index, then those that --where
 * takes, of these a sample, of that the head. Damage is told on the standard error and passed over. Returns the exit code.
 *
 * memory  the longest record, twice, and 2 MiB. A sample: 16 bytes for each of its records; of pipes and compressed files the
 *         records themselves */
int walk_records(const options *options, take_record *take, void *context);
/* The same for one file of the options, as if it were the only one. */
int walk_file(const options *options, int32_t file, take_record *take, void *context);
/* Whether fewer records than all are selected. */
bool walk_selects(const options *options);
/* Prints how many records are selected; returns the exit code. */
int walk_count(const options *options);
/* What a command makes of a record: text. Several threads may do so at once, each with a state of its own. */
typedef struct text_format {
    void *(*open)(const options *options, const void *shared); /* a state; null: no memory */
    mr_status (*put)(void *state, const place *place, out *out, mr_error *error);
    void (*close)(void *state);
    const void *shared;
} text_format;
/* Writes the texts of the selected records on the standard output, in their order. */
int walk_texts(const options *options, const text_format *format);
/* A sentence on the standard error, behind what was printed; returns 1. */
int complain(const mr_error *error);
/* The same with the record in front. */
int complain_of(const place *place, mr_error *error);
/* Reports that there is no memory; returns 1. */
int complain_memory(void);

/* ---- Commands ---- */

int show_run(const options *options);
int json_run(const options *options);
int csv_run(const options *options);
int about_run(const options *options);
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
