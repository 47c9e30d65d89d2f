/* --stats: what the features of many records hold, in bounded memory.
 *
 *     stats.c          the command: files to records to stats
 *     stats_gather.c   one record into stats, stats into stats
 *     stats_classes.c  labels and their texts
 *     stats_show.c     as text
 *     stats_json.c     as JSON
 *     stats_charts.c   as charts, for the terminal and SVG
 *
 * Records are gathered in parts that are cut the same way at any number of threads, and parts are merged in the order of
 * the records: the same files give the same figures, to the last digit, on any machine. */
#ifndef MR_TOOLS_TFRECORD_CAT_STATS_H
#define MR_TOOLS_TFRECORD_CAT_STATS_H

#include "tools/common/balance.h"
#include "tools/common/images.h"
#include "tools/tfrecord-cat/cat.h"

/* Features that are told apart; of more, the first by name. */
#define STATS_FEATURES_MAX 1000
/* Different classes that are counted exactly. */
#define STATS_CLASSES_MAX 65536
/* Bytes of a text that stand for it in a class. */
#define STATS_CLASS_TEXT_MAX (TOP_TEXT_MAX - 9)

/* How many values a feature has in a record, or steps a list. Mostly always the same number: a run of equal ones is held
 * back. */
typedef struct lengths {
    int64_t value;
    uint64_t times;
    numbers numbers;
} lengths;

/* A feature of Examples and of the context of SequenceExamples; or one of their feature lists. */
typedef struct column {
    mr_string name; /* owned */
    uint64_t hash;
    bool is_list;
    uint64_t records;  /* that have it, with or without a kind */
    uint64_t kinds[4]; /* records (of a list: steps) in which it has each mr_feature_kind */
    uint64_t values;   /* of all kinds */
    lengths lengths;   /* of records in which it has a kind */
    numbers integers, reals;
    texts texts;
    images *images; /* null until a value is one */
    uint64_t seen;  /* the serial of the last record that has it, and its place there */
    size_t seen_at;
} column;

/* Labels with their texts, from one or two features. */
typedef struct classes {
    top counts; /* of texts: 'n' and the label as 8 bytes, or 't' without label; then the text */
    uint64_t records;
} classes;
#define STATS_CLASSES 4

typedef struct stats {
    column **columns;
    size_t count, capacity;
    uint32_t *slots; /* hash table of index + 1 */
    size_t slot_count, guess;
    bool has_more;   /* features than STATS_FEATURES_MAX */
    uint64_t serial; /* of the record that is being gathered */
    uint64_t records, sequences, size_bytes;
    uint64_t strange; /* records that are no Example */
    char fault[256];  /* about the first of them */
    numbers sizes;    /* of records */
    classes classes[STATS_CLASSES];
    struct stats_scratch *scratch;
} stats;

/* ---- stats_gather.c ---- */

[[nodiscard]] stats *stats_new(void);
void stats_free(stats *stats);
/* Takes a record into account. A record that is no Example is counted as strange.
 * errors  MR_RESOURCE_EXHAUSTED: no memory, and nothing else */
mr_status stats_add(stats *stats, const options *options, const place *place, mr_error *error);
/* Ends a part; nothing is added to it any more. */
mr_status stats_flush(stats *stats, mr_error *error);
/* Both are flushed, or the target is new. */
mr_status stats_merge(stats *stats, const struct stats *part, mr_error *error);
/* After the last merge: features are in order, by name, lists behind features; those that no good record has are gone. */
mr_status stats_finish(stats *stats, mr_error *error);
int stats_kind_count(const column *column);
/* "int64", "mixed", …; static. */
const char *stats_kind_name(const column *column);

/* ---- stats_classes.c ---- */

/* The values of the features that may hold labels, found while a record is gathered. */
typedef struct class_views {
    mr_feature_view labels[STATS_CLASSES], texts[STATS_CLASSES];
} class_views;
/* Remembers the view when the feature is one of them. */
void stats_class_view(class_views *views, const mr_feature_view *feature);
/* Counts what a record's views hold. False when there is no memory.
 * tfds  gives labels without a text one; may be null */
[[nodiscard]] bool stats_classes_add(stats *stats, const class_views *views, const tfds *tfds);

/* All classes, most frequent first; owned, and null when there are none. False when there is no memory. */
[[nodiscard]] bool stats_classes_list(const classes *classes, balance_class **list, size_t *count);
/* "image/class/label"; static. */
const char *stats_classes_name(int index);

/* ---- stats_charts.c ---- */

typedef struct charts {
    chart *charts; /* owned */
    int count, capacity;
} charts;
/* Class balance, images; with is_all also numbers and lengths. False when there is no memory. */
[[nodiscard]] bool stats_charts(const stats *stats, int bins, bool is_all, charts *charts);
/* How a column's numbers lie, for a histogram of so many bins. */
void stats_number_chart(chart *chart, const numbers *numbers, int bins, const char *title, const char *note,
                        const char *unit);

/* ---- stats_show.c, stats_json.c ---- */

/* What the files were, beside their records. */
typedef struct stats_about {
    int32_t files, bad_files;
    uint64_t lost;    /* damaged places */
    const tfds *tfds; /* what their one directory says; null: nothing, or there are several */
} stats_about;
/* Both are false when there is no memory. */
[[nodiscard]] bool stats_show(const stats *stats, const stats_about *about);
[[nodiscard]] bool stats_json(const stats *stats, const stats_about *about, bool is_pretty);

#endif
