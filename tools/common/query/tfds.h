/* Metadata of a tensorflow_datasets directory: features.json, NAME.labels.txt (the names of a ClassLabel) and
 * dataset_info.json. Nested features have flat names in the records, "objects/label". */
#ifndef MR_TOOLS_COMMON_TFDS_H
#define MR_TOOLS_COMMON_TFDS_H

#include <millrace/tensor.h>

typedef struct tfds_feature {
    char *name;        /* owned; flat */
    char *meaning;     /* owned; "ClassLabel, 3 names", "Image png ? × ? × 3 of uint8" */
    char *labels_text; /* owned; all names of a ClassLabel */
    char **labels;     /* owned; point into labels_text */
    size_t label_count;
    int64_t class_count; /* of a ClassLabel; -1: not a ClassLabel */
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

/* Metadata of the directories of several record files. {} is empty. */
typedef struct tfds_set {
    tfds **items; /* owned */
    size_t count;
    bool has_fault; /* a file could not be read, as reported */
} tfds_set;

/* Reads the directories that contain the paths. A directory without features.json is skipped; one whose files cannot be
 * read is reported and skipped.
 * report  called with the error of a file that cannot be read
 * memory  at most 64 MiB for each directory
 * errors  MR_RESOURCE_EXHAUSTED: no memory; no other errors */
mr_status tfds_set_open(tfds_set *set, char *const *paths, int32_t count, void (*report)(const mr_error *error),
                        mr_error *error);
void tfds_set_free(tfds_set *set);
/* The directory that contains path; null when it is not one of tensorflow_datasets. */
const tfds *tfds_set_find(const tfds_set *set, const char *path);
/* Finds a feature by its name in records; null when there is none. */
const tfds_feature *tfds_find(const tfds *tfds, mr_string name);
/* The name of a class; null when it has none. */
const char *tfds_label(const tfds_feature *feature, int64_t number);

#endif
