/* A block of a record file, as one of several threads reads it: see record_scan.c for how the threads take turns.
 *
 * read     of a file with short records, the next part of the file, whatever begins in it
 * frame    in turn: where the records that begin in the block lie, going by their headers, and where the next block's begin
 * check    the rest of the last record is read, and the checksums are computed */
#ifndef MR_RECORDS_SCAN_BLOCK_H
#define MR_RECORDS_SCAN_BLOCK_H

#include "records/io/gzip_seek.h"

#include <millrace/record.h>

typedef enum scan_way {
    SCAN_PARTS,    /* short records: the file is cut into parts of a block's size, a part is read before its turn */
    SCAN_HOPS,     /* long ones: headers are read in turn, data afterwards */
    SCAN_SEGMENTS, /* seekable GZIP with a fresh index: a segment is inflated and framed before its turn */
    SCAN_IN_ORDER, /* pipes and other compressed files: a reader reads in turn */
} scan_way;

struct scan_block;

typedef struct scan_file {
    int32_t number; /* in the list */
    const char *path;
    scan_way way;
    int descriptor;        /* for headers and ends of records; -1: none */
    int direct_descriptor; /* for parts; -1: none */
    uint64_t size_bytes;
    mr_record_index index;    /* SCAN_SEGMENTS */
    mr_gzip_seek *seek;       /* SCAN_SEGMENTS */
    mr_record_reader *reader; /* SCAN_IN_ORDER */
    mr_string pending;        /* SCAN_IN_ORDER: a record that was read and has no block yet */
    bool is_pending;
    struct scan_block *framed; /* whom its damage is told to */
    mr_error problem;          /* why it cannot be opened */

    /* Of whoever has the turn. */
    uint64_t offset, record; /* of the next record */
    uint32_t gzip_crc;       /* SCAN_SEGMENTS: of all segments so far */
    bool ended;

    int32_t references; /* under the scan's mutex */

    /* Of whoever delivers. */
    mr_record_totals totals;
    bool is_done;
} scan_file;

/* A record's place until its bytes are there. */
typedef union scan_entry {
    struct {
        uint64_t at; /* of its header, in the block; UINT64_MAX for a damaged place */
        uint64_t size_bytes;
    };
    mr_string record; /* data is null for a damaged place */
} scan_entry;
static_assert(sizeof(scan_entry) == sizeof(mr_string));

typedef struct scan_loss {
    mr_record_damage damage;
    uint32_t computed, stored; /* of bad data, whose sentence is made when it is told */
    char *message;             /* owned; of what a reader found */
} scan_loss;

/* Good entries that follow each other. */
typedef struct scan_run {
    size_t first, count;
    uint64_t size_bytes;
    void *result;
} scan_run;

typedef struct scan_block {
    uint64_t ticket;
    scan_file *file;
    uint64_t part; /* SCAN_PARTS: where it begins in the file; SCAN_SEGMENTS: which point */
    bool is_last;  /* of its file */

    char *bytes; /* owned, as the arrays below */
    size_t capacity, held;
    uint64_t offset;   /* of bytes[0] in the stream */
    uint32_t gzip_crc; /* SCAN_SEGMENTS: of the bytes */
    scan_entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t first; /* number of entries[0] */
    scan_loss *losses;
    size_t loss_count, loss_capacity;
    scan_run *runs;
    size_t run_count, run_capacity;
    size_t worked;   /* runs that work was called for with success */
    mr_error error;  /* behind the entries: ends the file */
    bool is_refused; /* that error is work's */
    bool
        is_hiding; /* behind the entries is a damaged record that hides others: the file is read on in order from there */
    uint64_t hiding_offset;
} scan_block;

typedef struct scan_settings {
    size_t block_bytes;
    bool skip_checksums;
    bool direct;
    mr_damage_policy damage;
    mr_record_quarantine *quarantine;
} scan_settings;

/* A file that cannot be opened is one with a problem. */
void scan_file_open(scan_file *file, const scan_settings *settings);
void scan_file_close(scan_file *file);

/* Failures are the block's error. */
void scan_block_read(scan_block *block, const scan_settings *settings);
void scan_block_frame(scan_block *block, const scan_settings *settings);
void scan_block_check(scan_block *block, const scan_settings *settings);
/* The sentence about a loss. */
void scan_loss_tell(const scan_loss *loss, mr_error *problem);
void scan_block_deinit(scan_block *block);

#endif
