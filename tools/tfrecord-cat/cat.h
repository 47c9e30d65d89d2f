/* tfrecord-cat: what is in record files.
 *
 *     options.c   the command line
 *     text.c      bytes of any kind as text that is safe to print
 *     show.c      a record as a readable block
 *     json.c      a record as a line of JSON
 *     schema.c    features of all records: types, lengths, presence, and how to ask for them
 *     verify.c    checksums and Examples
 *     main.c      files and records in turn */
#ifndef MR_TOOLS_TFRECORD_CAT_H
#define MR_TOOLS_TFRECORD_CAT_H

#include <millrace/example.h>
#include <millrace/record.h>

#include <stdio.h>

typedef enum mode { MODE_SHOW, MODE_JSON, MODE_COUNT, MODE_SCHEMA, MODE_VERIFY } mode;

typedef struct options {
    mode mode;
    bool is_raw;     /* records are bytes, not Examples */
    uint64_t head;   /* at most so many records; UINT64_MAX: all */
    bool has_record; /* only this one, counted through all files */
    uint64_t record;
    char **paths; /* owned; "-" is the standard input */
    int32_t path_count;
    bool has_missing; /* a pattern that matched nothing was told */
} options;

/* False: exit at once with *exit_code; what there is to say has been said. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);

/* A record and where it is from. */
typedef struct place {
    const char *path; /* "-" is the standard input */
    uint64_t number, offset;
    mr_string record;
} place;

/* ---- text.c ---- */

/* Whether bytes are UTF-8 without control characters other than line breaks and tabs. */
bool text_is_readable(mr_string bytes);
/* Prints bytes with everything that is not printable escaped (\n, \x1b, invalid UTF-8 byte by byte), cut with "…" at that
 * many columns; returns the columns used. */
int text_print(FILE *file, mr_string bytes, int columns_max);
int text_columns(mr_string bytes);
/* "standard input" for "-". */
const char *text_path(const char *path);

/* ---- show.c, json.c ---- */

void show_record(const place *place, bool is_raw);
void json_record(const place *place, bool is_raw);

/* ---- schema.c ---- */

typedef struct schema schema;
schema *schema_new(void);
/* Takes a record into account; MR_DATA_LOSS when it is no Example. */
mr_status schema_add(schema *schema, mr_string record, mr_error *error);
void schema_print(const schema *schema);
void schema_free(schema *schema);

/* ---- verify.c ---- */

/* Reads a whole file; every fault is a line on the standard output. Returns how many there were, or -1 when the file could
 * not be read, which was told. */
int64_t verify_file(const char *path, bool is_raw);

#endif
