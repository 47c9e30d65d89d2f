/* tfrecord-make: a folder of pictures becomes sharded records.
 *
 *     options.c   the command line
 *     scan.c      the folder: classes and their pictures
 *     plan.c      which picture goes to which split, shard and place: a function of names and seed alone
 *     journal.c   which shards are finished, so that a run that was killed goes on
 *     shard.c     a shard: read, check, encode on all threads; written in order
 *     main.c      all of it in order, and the summary */
#ifndef MR_TOOLS_TFRECORD_MAKE_H
#define MR_TOOLS_TFRECORD_MAKE_H

#include "base/pool.h"
#include "tools/common/progress.h"

#include <millrace/status.h>
#include <millrace/tensor.h>

#include <stdint.h>

/* ---- options.c ---- */

static constexpr int SPLITS_MAX = 8;

typedef struct options {
    const char *folder, *out;
    char *name; /* owned */
    struct {
        char name[64];
        double fraction; /* of all */
    } splits[SPLITS_MAX];
    int split_count;
    int64_t shards; /* of each split; 0: by size */
    uint64_t shard_bytes;
    uint64_t seed;
    int jobs;
    bool skip_bad;
    bool check; /* decode every picture */
} options;

/* Reads the command line. False: exit at once with *exit_code; what there is to say has been said. */
bool options_parse(int argc, char **argv, options *options, int *exit_code);

/* ---- scan.c ---- */

typedef struct picture {
    char *path; /* owned; below the folder, "class/name.jpg" */
    uint64_t size_bytes;
    int64_t modified_ns;
    uint64_t hash; /* of the path */
    int32_t label;
} picture;

typedef struct listing {
    char **classes; /* owned; sorted by bytes: the index is the label */
    int32_t class_count;
    picture *pictures; /* owned; sorted by path */
    int64_t picture_count;
    uint64_t size_bytes;
    int64_t left_out;     /* files that are no pictures by their names */
    char *left_out_first; /* owned; one of them, or null */
    int64_t loose;        /* pictures in no class folder */
} listing;

/* Finds classes and pictures. errors: a folder that cannot be read, or holds no pictures in class folders */
mr_status scan_folder(const char *folder, listing *listing, mr_error *error);
void listing_deinit(listing *listing);

/* ---- plan.c ---- */

typedef struct shard {
    char *path;       /* owned */
    const char *name; /* inside path: without the folder */
    int32_t split;
    int64_t begin, count;    /* of plan.order */
    uint64_t fingerprint[2]; /* of everything its bytes follow from */
} shard;

typedef struct plan {
    int64_t *order; /* owned; pictures by split and place */
    shard *shards;  /* owned */
    int32_t shard_count;
    int64_t split_counts[SPLITS_MAX];
    uint64_t split_bytes[SPLITS_MAX];
    int32_t split_shards[SPLITS_MAX];
} plan;

mr_status plan_make(const options *options, const listing *listing, plan *plan, mr_error *error);
void plan_deinit(plan *plan);
/* Mixes bytes into a 64-bit hash; 0 begins. The same on every machine. */
uint64_t plan_hash(uint64_t hash, const void *bytes, size_t size_bytes);

/* ---- journal.c ---- */

typedef struct journal {
    char *path; /* owned */
    struct journal_line {
        char *name; /* owned; of the shard */
        uint64_t fingerprint[2];
    } *lines; /* owned */
    int64_t line_count;
    int descriptor;
    int lock; /* on the folder: one run at a time */
} journal;

/* Opens the journal of out/name, and settles what lies around: half files are removed, shards that another program wrote
 * are an error. */
mr_status journal_open(const options *options, const plan *plan, journal *journal, mr_error *error);
/* Whether a shard is there as it would be made now. */
bool journal_has(const journal *journal, const shard *shard);
/* Notes a shard that is finished; before it is redone it has to be struck. */
mr_status journal_add(journal *journal, const shard *shard, mr_error *error);
mr_status journal_strike(journal *journal, const shard *shard, mr_error *error);
/* Removes shards of earlier runs with another number of shards. */
mr_status journal_finish(journal *journal, const options *options, const plan *plan, int64_t *removed, mr_error *error);
void journal_deinit(journal *journal);

/* ---- shard.c ---- */

typedef struct work {
    const options *options;
    const listing *listing;
    const plan *plan;
    mr_pool *pool;
    progress *progress;
    int64_t written, bad, reused;
    int64_t split_counts[SPLITS_MAX]; /* records that are there, reused or written */
} work;

/* Writes one shard and its index. Bad pictures are told on the standard error; when they are to stop the work, the status
 * is MR_CANCELLED. *bad counts those of this shard. */
mr_status shard_write(work *work, const shard *shard, int64_t *bad, mr_error *error);

#endif
