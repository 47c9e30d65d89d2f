/* Statistics of the features of many records, in bounded memory.
 *
 *     stats_gather.c   adds a record, merges statistics
 *     stats_classes.c  labels and their texts
 *     stats_charts.c   charts for the terminal and SVG
 *
 * Records are gathered in parts whose boundaries do not depend on the number of threads, and parts are merged in record
 * order: the same files give the same figures, to the last digit, on any machine. */
#ifndef MR_TOOLS_COMMON_STATS_H
#define MR_TOOLS_COMMON_STATS_H

#include "common/chart/balance.h"
#include "common/query/record_position.h"
#include "common/query/tfds.h"
#include "common/stats/images.h"

#include <millrace/example.h>

/* Maximum number of features; if there are more, the first by name. */
#define STATS_FEATURES_MAX 1000
/* Number of distinct classes that are counted exactly. */
#define STATS_CLASSES_MAX 65536
/* Bytes of a text that identify a class. */
#define STATS_CLASS_TEXT_MAX (TOP_TEXT_MAX - 9)

/* Number of values of a feature in a record, or of steps of a list. It is mostly constant, so a run of equal numbers is
 * kept and added at its end. */
typedef struct lengths {
    int64_t value;
    uint64_t times;
    numbers numbers;
} lengths;

/* A feature of Examples and of the context of SequenceExamples, or a feature list. */
typedef struct column {
    mr_string name; /* owned */
    uint64_t hash;
    bool is_list;
    uint64_t records;  /* records that have it, with or without a kind */
    uint64_t kinds[4]; /* records (of a list: steps) with each mr_feature_kind */
    uint64_t values;   /* of all kinds */
    lengths lengths;   /* for records in which it has a kind */
    numbers integers, reals;
    texts texts;
    images *images; /* null until a value is an image */
    uint64_t seen;  /* serial of the last record that has it, and its index there */
    size_t seen_at;
} column;

/* Labels with their texts, from one or two features. */
typedef struct classes {
    top counts; /* of keys: 'n' and the label as 8 bytes, or 't' without a label; then the text */
    uint64_t records;
} classes;
#define STATS_CLASSES 4

typedef struct stats {
    column **columns;
    size_t count, capacity;
    uint32_t *slots; /* hash table of index + 1 */
    size_t slot_count, guess;
    bool has_more;   /* more features than STATS_FEATURES_MAX */
    uint64_t serial; /* of the current record */
    uint64_t records, sequences, size_bytes;
    uint64_t strange; /* records that are not Examples */
    char fault[256];  /* describes the first of them */
    numbers sizes;    /* record sizes in bytes */
    classes classes[STATS_CLASSES];
    struct stats_scratch *scratch;
} stats;

/* ---- stats_gather.c ---- */

[[nodiscard]] stats *stats_new(void);
void stats_free(stats *stats);
/* What is read of the records. All pointers are borrowed. */
typedef struct stats_selection {
    const char *features; /* patterns (patterns.h), null: all */
    bool is_raw;          /* records are not parsed: only their sizes */
    const tfds_set *tfds; /* names labels that have no text */
} stats_selection;
/* Adds a record. A record that is not an Example is counted as strange.
 * errors  MR_RESOURCE_EXHAUSTED: no memory; no other errors */
mr_status stats_add(stats *stats, const stats_selection *selection, const record_position *position, mr_error *error);
/* Ends a part; nothing may be added afterwards. */
mr_status stats_flush(stats *stats, mr_error *error);
/* Both must be flushed, or the target new. */
mr_status stats_merge(stats *stats, const struct stats *part, mr_error *error);
/* Call after the last merge. Sorts features by name, lists after features, and removes features that no good record
 * has. */
mr_status stats_finish(stats *stats, mr_error *error);
int stats_kind_count(const column *column);
/* "int64", "mixed", …; static storage. */
const char *stats_kind_name(const column *column);

/* ---- stats_classes.c ---- */

/* The values of the features that may hold labels, found while a record is gathered. */
typedef struct class_views {
    mr_feature_view labels[STATS_CLASSES], texts[STATS_CLASSES];
} class_views;
/* Stores the view if the feature is one of them. */
void stats_class_view(class_views *views, const mr_feature_view *feature);
/* Counts the classes of a record. False when there is no memory.
 * tfds  names labels that have no text; may be null */
[[nodiscard]] bool stats_classes_add(stats *stats, const class_views *views, const tfds *tfds);

/* All classes, most frequent first; owned, null when there are none. False when there is no memory. */
[[nodiscard]] bool stats_classes_list(const classes *classes, balance_class **list, size_t *count);
/* "image/class/label"; static storage. */
const char *stats_classes_name(int index);

/* ---- stats_charts.c ---- */

typedef struct charts {
    chart *charts; /* owned */
    int count, capacity;
} charts;
/* Class balance and images; with is_all also numbers and lengths. False when there is no memory. */
[[nodiscard]] bool stats_charts(const stats *stats, int bins, bool is_all, charts *charts);
/* A histogram of a column's numbers with about `bins` bins. */
void stats_number_chart(chart *chart, const numbers *numbers, int bins, const char *title, const char *note,
                        const char *unit);

#endif
