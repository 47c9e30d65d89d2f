/* A block of a record file, as processed by one of several threads; see record_scan.c for how the threads are ordered.
 *
 * read     of a file with short records: the next part of the file, regardless of where records start
 * frame    in order: finds the records that start in the block from their headers, and the start of the next block
 * check    reads the rest of the last record, and computes the checksums */
#ifndef MR_RECORDS_SCAN_BLOCK_H
#define MR_RECORDS_SCAN_BLOCK_H

#include "records/record/gzip_seek.h"

#include <millrace/record.h>

typedef enum scan_mode {
    SCAN_PARTS,    /* short records: the file is split into parts of a block's size, which are read before they are
                      framed */
    SCAN_HEADERS,  /* long records: headers are read in order, data afterwards */
    SCAN_SEGMENTS, /* seekable GZIP with a valid index: a segment is decompressed and framed out of order */
    SCAN_IN_ORDER, /* pipes and other compressed files: a reader reads in order */
} scan_mode;

struct scan_block;

typedef struct scan_file {
    int32_t number; /* index in the list of files */
    const char *path;
    scan_mode mode;
    int descriptor;        /* for headers and the ends of records; -1: none */
    int direct_descriptor; /* for parts; -1: none */
    uint64_t size_bytes;
    mr_record_index index;    /* SCAN_SEGMENTS */
    mr_gzip_seek *seek;       /* SCAN_SEGMENTS */
    mr_record_reader *reader; /* SCAN_IN_ORDER */
    mr_string pending;        /* SCAN_IN_ORDER: a record that has been read but is not in a block yet */
    bool is_pending;
    struct scan_block *framed; /* the block that receives the reported damage */
    mr_error problem;          /* why the file cannot be opened */

    /* Used only by the thread that is framing. */
    uint64_t offset, record; /* of the next record */
    uint32_t gzip_crc;       /* SCAN_SEGMENTS: of all segments so far */
    bool ended;

    int32_t references; /* guarded by the scan's mutex */

    /* Used only by the delivering thread. */
    mr_record_totals totals;
    bool is_done;
} scan_file;

/* A record's position until its bytes are available. */
typedef union scan_entry {
    struct {
        uint64_t at; /* of its header, in the block; UINT64_MAX for a damaged range */
        uint64_t size_bytes;
    };
    mr_string record; /* data is null for a damaged range */
} scan_entry;
static_assert(sizeof(scan_entry) == sizeof(mr_string));

typedef struct scan_report {
    mr_record_damage damage;
    uint32_t computed, stored; /* for bad data, whose message is created when it is reported */
    char *message;             /* owned; reported by a reader */
} scan_report;

/* Consecutive valid entries. */
typedef struct scan_run {
    size_t first, count;
    uint64_t size_bytes;
    void *result;
} scan_run;

typedef struct scan_block {
    uint64_t ticket;
    scan_file *file;
    uint64_t part; /* SCAN_PARTS: file offset; SCAN_SEGMENTS: number of the point */
    bool is_last;  /* the file's last block */

    char *bytes; /* owned, as are the arrays below */
    size_t capacity, held;
    uint64_t offset;   /* of bytes[0] in the stream */
    uint32_t gzip_crc; /* SCAN_SEGMENTS: of the bytes */
    scan_entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t first; /* number of entries[0] */
    scan_report *reports;
    size_t report_count, report_capacity;
    scan_run *runs;
    size_t run_count, run_capacity;
    size_t worked;   /* runs for which work has returned MR_OK */
    mr_error error;  /* applies after the entries: ends the file */
    bool is_refused; /* the error was returned by work */
    bool is_hiding;  /* after the entries is a damaged record that hides others: the file is then read in order from
                      there */
    uint64_t hiding_offset;
} scan_block;

typedef struct scan_settings {
    size_t block_bytes;
    bool skip_checksums;
    bool direct;
    mr_damage_policy damage;
    mr_record_quarantine *quarantine;
} scan_settings;

/* If the file cannot be opened, its problem is set. */
void scan_file_open(scan_file *file, const scan_settings *settings);
void scan_file_close(scan_file *file);

/* A failure is stored in the block's error. */
void scan_block_read(scan_block *block, const scan_settings *settings);
void scan_block_frame(scan_block *block, const scan_settings *settings);
void scan_block_check(scan_block *block, const scan_settings *settings);
/* Writes the report's message. */
void scan_report_message(const scan_report *report, mr_error *problem);
void scan_block_deinit(scan_block *block);

#endif
