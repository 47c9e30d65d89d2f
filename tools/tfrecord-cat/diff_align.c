/* Aligns two rows of hashes with the fewest changed, inserted and deleted records: the edit distance, computed row by
 * row, with one step stored for each pair of prefixes. */
#include "tfrecord-cat/diff.h"

#include <assert.h>
#include <stdlib.h>

struct aligner {
    uint8_t *steps;            /* owned; (a_count + 1) × (b_count + 1) */
    uint16_t *costs;           /* owned; one row */
    uint8_t *path;             /* owned */
    uint64_t *a_keys, *b_keys; /* owned; for has_common */
};

aligner *aligner_new(void)
{
    static_assert(2 * ALIGN_MAX < UINT16_MAX);
    aligner *made = calloc(1, sizeof(*made));
    if (!made) return nullptr;
    made->steps = malloc((size_t)(ALIGN_MAX + 1) * (ALIGN_MAX + 1));
    made->costs = calloc(ALIGN_MAX + 1, sizeof(*made->costs));
    made->path = malloc(2 * ALIGN_MAX);
    made->a_keys = calloc(ALIGN_MAX, sizeof(*made->a_keys));
    made->b_keys = calloc(ALIGN_MAX, sizeof(*made->b_keys));
    if (made->steps && made->costs && made->path && made->a_keys && made->b_keys) return made;
    aligner_free(made);
    return nullptr;
}

void aligner_free(aligner *aligner)
{
    if (!aligner) return;
    free(aligner->steps);
    free(aligner->costs);
    free(aligner->path);
    free(aligner->a_keys);
    free(aligner->b_keys);
    free(aligner);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_keys(const hash *hashes, size_t count, uint64_t *keys)
{
    for (size_t i = 0; i < count; i++) keys[i] = hashes[i].high;
    qsort(keys, count, sizeof(*keys), by_value);
}

/* Whether any record may be on both sides; saves most of the work when two files have nothing in common. */
static bool has_common(const aligner *aligner, const align_row *a, const align_row *b)
{
    sort_keys(a->hashes, a->count, aligner->a_keys);
    sort_keys(b->hashes, b->count, aligner->b_keys);
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (aligner->a_keys[i] == aligner->b_keys[j]) return true;
        if (aligner->a_keys[i] < aligner->b_keys[j])
            i++;
        else
            j++;
    }
    return false;
}

/* The end of a path: one row is used up. The rest of the other row counts as changes if no more records follow. */
typedef struct ending {
    size_t i, j, cost;
} ending;

static void offer(ending *best, size_t i, size_t j, size_t cost)
{
    if (cost < best->cost || (cost == best->cost && i + j > best->i + best->j)) *best = (ending){i, j, cost};
}

/* Fills in the steps; returns the best ending. */
static ending fill(const aligner *aligner, const align_row *a, const align_row *b)
{
    size_t columns = b->count + 1;
    uint16_t *costs = aligner->costs;
    ending best = {.cost = SIZE_MAX};
    for (size_t j = 0; j < columns; j++) {
        costs[j] = (uint16_t)j;
        aligner->steps[j] = ALIGN_ONLY_B;
    }
    for (size_t i = 1; i <= a->count; i++) {
        uint8_t *steps = aligner->steps + i * columns;
        uint16_t before = costs[0];
        offer(&best, i - 1, b->count, costs[b->count] + (b->is_last ? a->count - (i - 1) : 0));
        costs[0] = (uint16_t)i;
        steps[0] = ALIGN_ONLY_A;
        for (size_t j = 1; j < columns; j++) {
            bool is_same = hash_is_same(a->hashes[i - 1], b->hashes[j - 1]);
            uint16_t pair = (uint16_t)(before + !is_same), only_a = (uint16_t)(costs[j] + 1),
                     only_b = (uint16_t)(costs[j - 1] + 1), least = only_a < only_b ? only_a : only_b;
            before = costs[j];
            costs[j] = pair <= least ? pair : least;
            steps[j] = pair <= least     ? (is_same ? ALIGN_SAME : ALIGN_PAIR)
                       : only_a < only_b ? ALIGN_ONLY_A
                                         : ALIGN_ONLY_B;
        }
    }
    for (size_t j = 0; j < columns; j++) offer(&best, a->count, j, costs[j] + (a->is_last ? b->count - j : 0));
    return best;
}

size_t align(aligner *aligner, const align_row *a, const align_row *b, const uint8_t **path)
{
    assert(a->count <= ALIGN_MAX && b->count <= ALIGN_MAX);
    size_t least = a->count < b->count ? a->count : b->count, length = 0;
    *path = aligner->path;
    if (!has_common(aligner, a, b)) {
        for (; length < least; length++) aligner->path[length] = ALIGN_PAIR;
        return length;
    }
    ending end = fill(aligner, a, b);
    /* The path is collected backwards and then reversed. */
    for (size_t i = end.i, j = end.j; i > 0 || j > 0;) {
        uint8_t step = aligner->steps[i * (b->count + 1) + j];
        aligner->path[length++] = step;
        i -= step != ALIGN_ONLY_B;
        j -= step != ALIGN_ONLY_A;
    }
    assert(length <= a->count + b->count);
    for (size_t i = 0; i < length / 2; i++) {
        uint8_t step = aligner->path[i];
        aligner->path[i] = aligner->path[length - 1 - i];
        aligner->path[length - 1 - i] = step;
    }
    return length;
}
