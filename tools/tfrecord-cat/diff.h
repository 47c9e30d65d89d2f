/* Two sets of record files side by side. */
#ifndef MR_TOOLS_TFRECORD_CAT_DIFF_H
#define MR_TOOLS_TFRECORD_CAT_DIFF_H

#include "tools/tfrecord-cat/rewrite.h"

/* So many differences are shown; all are counted. */
static constexpr uint64_t SHOWN_MAX = 10;

/* One side: the files of one FILE argument. */
typedef struct side {
    char *const *paths;
    int32_t count;
    const char *name; /* the argument's first path, for people */
} side;

/* Records of a side in order. {0}-initialised but for side. */
typedef struct side_reader {
    const side *side;
    int32_t file; /* that is open */
    mr_record_reader *reader;
    uint64_t number; /* of the record returned last, through all files */
    uint64_t seen;
} side_reader;
/* As mr_record_reader_next, over all files. */
mr_status side_next(side_reader *reader, mr_string *record, mr_error *error);
void side_deinit(side_reader *reader);

/* Prints in what two records differ, in indented lines. */
void diff_records(mr_string a, mr_string b);
/* The same records, whatever their order? Returns the exit code. */
int diff_unordered(const side *a, const side *b, uint64_t memory_bytes);

#endif
