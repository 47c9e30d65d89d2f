/* A KLL sketch: quantiles of a long stream in a few kilobytes.
 *
 * ```c
 * sketch sketch = {0};
 * for (int64_t i = 0; i < 1000000; i++)
 *     if (!sketch_add(&sketch, &i, 1, 0)) return 1;
 * printf("median %" PRId64 "\n", sketch_quantile(&sketch, 0.5));
 * sketch_deinit(&sketch);
 * ```
 *
 * A level holds keys that each represent 2^level keys of the stream. When a level is full, it is sorted and every
 * second key moves one level up. A quantile is always a key that was added.
 *
 * Error: the key returned for rank r has a true rank within r ± SKETCH_RANK_ERROR (99 times out of 100; with fewer than
 * SKETCH_EXACT keys, exactly r). The error does not grow with the stream, nor with the number and order of merges.
 * Memory: at most 24 KiB for 2^50 keys.
 * KLL's random choices are computed from the keys, so the same calls give the same sketch on any machine. */
#ifndef MR_TOOLS_COMMON_SKETCH_H
#define MR_TOOLS_COMMON_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#define SKETCH_RANK_ERROR 0.01
#define SKETCH_EXACT 512
#define SKETCH_LEVELS_MAX 56

typedef struct sketch_level {
    int64_t *keys; /* owned */
    uint32_t count, capacity;
} sketch_level;

/* {0} is empty. One thread at a time. */
typedef struct sketch {
    sketch_level levels[SKETCH_LEVELS_MAX];
    int level_count;
    uint64_t weight; /* number of keys of the stream that the sketch represents */
    uint64_t coin;
} sketch;

/* Adds keys, each representing 2^level keys of the stream. Pass few keys at a time (hundreds): they are in memory at
 * once. False when there is no memory. */
[[nodiscard]] bool sketch_add(sketch *sketch, const int64_t *keys, size_t count, int level);
/* Adds the contents of another sketch. False when there is no memory. */
[[nodiscard]] bool sketch_merge(sketch *sketch, const struct sketch *other);
/* The key below which a fraction `rank` (0 … 1) of the stream lies; 0 when empty. */
int64_t sketch_quantile(const sketch *sketch, double rank);
/* The approximate number of keys of the stream below `key`. */
uint64_t sketch_below(const sketch *sketch, int64_t key);
size_t sketch_size_bytes(const sketch *sketch);
void sketch_deinit(sketch *sketch);

/* Maps doubles to keys in the same order; no NaN. */
int64_t sketch_key(double value);
double sketch_value(int64_t key);

/* Sorts keys in ascending order; scratch has room for count keys. */
void sketch_sort(int64_t *keys, size_t count, int64_t *scratch);

#endif
