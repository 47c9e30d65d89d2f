/* Suggestions for errors about names that do not exist. */
#ifndef MR_GRAPH_TRAIN_NEAR_NAMES_H
#define MR_GRAPH_TRAIN_NEAR_NAMES_H

#include <stddef.h>
#include <stdint.h>

constexpr int32_t MR_NEAR_NAMES_MAX = 3;

/* The candidates that are nearest to a name, best first. */
typedef struct mr_near_names {
    const char *name;
    const char *nearest[MR_NEAR_NAMES_MAX]; /* borrowed */
    int32_t distances[MR_NEAR_NAMES_MAX];
    int32_t count;
} mr_near_names;
/* Considers a candidate; one of equal distance comes after those before. */
void mr_near_names_add(mr_near_names *near, const char *candidate);
/* "; the nearest are a/w, b/w", or "" without candidates. Returns text. */
#define MR_NEAR_NAMES_SIZE 640
const char *mr_near_names_text(const mr_near_names *near, char *text, size_t size_bytes);

#endif
