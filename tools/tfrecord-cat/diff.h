/* Comparison of two sets of record files. */
#ifndef MR_TOOLS_TFRECORD_CAT_DIFF_H
#define MR_TOOLS_TFRECORD_CAT_DIFF_H

#include "tfrecord-cat/rewrite.h"

/* Number of differences that are printed; all are counted. */
static constexpr uint64_t SHOWN_MAX = 10;

/* One side: the files of one FILE argument. */
typedef struct side {
    char *const *paths;
    int32_t count;
    const char *name; /* the argument's first path, for messages */
} side;

/* Reads the records of a side in order. Zero-initialized except for side. */
typedef struct side_reader {
    const side *side;
    int32_t file; /* the open file */
    mr_record_reader *reader;
    uint64_t number; /* of the record returned last, across all files */
    uint64_t seen;
} side_reader;
/* As mr_record_reader_next, over all files. */
mr_status side_next(side_reader *reader, mr_string *record, mr_error *error);
void side_deinit(side_reader *reader);

/* ---- diff_hash.c ---- */

typedef struct hash {
    uint64_t high, low;
} hash;
hash hash_of(mr_string record);
bool hash_is_same(hash a, hash b);

/* ---- diff_align.c ---- */

/* Maximum number of records of a side that are aligned at once. */
static constexpr size_t ALIGN_MAX = 4096;

typedef enum align_step { ALIGN_SAME, ALIGN_PAIR, ALIGN_ONLY_A, ALIGN_ONLY_B } align_step;
/* Consecutive records of a side. */
typedef struct align_row {
    const hash *hashes;
    size_t count;
    bool is_last; /* no records follow */
} align_row;

/* Memory for an alignment: 17 MiB. Null when there is none. */
typedef struct aligner aligner;
aligner *aligner_new(void);
void aligner_free(aligner *aligner);
/* Computes the steps (align_step) with the fewest changes until one row is used up, or both rows if no records follow.
 * Returns the number of steps.
 * path  valid until the next call */
size_t align(aligner *aligner, const align_row *a, const align_row *b, const uint8_t **path);

/* ---- diff_example.c, diff_ordered.c, diff_unordered.c ---- */

/* Prints the differences between two records as indented lines. */
void diff_records(mr_string a, mr_string b);
/* Compares records in order. Returns the exit code. */
int diff_ordered(const side *a, const side *b);
/* Compares records regardless of their order. Returns the exit code. */
int diff_unordered(const side *a, const side *b, uint64_t memory_bytes);

#endif
