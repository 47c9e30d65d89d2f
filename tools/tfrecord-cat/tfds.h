/* What a directory of tensorflow_datasets says of its records: features.json (and NAME.labels.txt, the names of a ClassLabel),
 * dataset_info.json. Nested features have flat names in the records, "objects/label". */
#ifndef MR_TOOLS_TFRECORD_CAT_TFDS_H
#define MR_TOOLS_TFRECORD_CAT_TFDS_H

#include <millrace/tensor.h>

typedef struct tfds_feature {
    char *name;        /* owned; flat */
    char *meaning;     /* owned; "ClassLabel, 3 names", "Image png ? × ? × 3 of uint8" */
    char *labels_text; /* owned; all names of a ClassLabel */
    char **labels;     /* owned; into labels_text */
    size_t label_count;
    int64_t class_count; /* of a ClassLabel; -1: it is none */
} tfds_feature;

typedef struct tfds_split {
    char *name; /* owned */
    uint64_t records, size_bytes;
    size_t shard_count;
} tfds_split;

typedef struct tfds {
    char *directory; /* owned */
    tfds_feature *features;
    size_t feature_count;
    char *title, *description, *license; /* owned, may be null; "mnist 3.0.1" */
    tfds_split *splits;
    size_t split_count;
} tfds;

/* What the directories of several record files say. {} is empty. */
typedef struct tfds_set {
    tfds **items; /* owned */
    size_t count;
    bool has_fault; /* a file cannot be read, which was told */
} tfds_set;

/* Reads the directories that hold the paths. One without features.json is skipped; so is one whose files cannot be read,
 * after a message.
 * memory  64 MiB at most for each directory
 * errors  MR_RESOURCE_EXHAUSTED: no memory, and nothing else */
mr_status tfds_set_open(tfds_set *set, char *const *paths, int32_t count, mr_error *error);
void tfds_set_free(tfds_set *set);
/* Of the directory that holds path; null when it is none of tensorflow_datasets. */
const tfds *tfds_set_find(const tfds_set *set, const char *path);
/* By the name in records; null when there is none. */
const tfds_feature *tfds_find(const tfds *tfds, mr_string name);
/* The name of a class; null when it has none. */
const char *tfds_label(const tfds_feature *feature, int64_t number);

#endif
