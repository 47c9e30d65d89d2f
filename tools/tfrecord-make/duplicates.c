/* Duplicate images. Equal bytes have equal sizes, so only images of a size that occurs at least twice are read and
 * hashed: in most directories few. Images are compared by a hash of 128 bits.
 *
 * Which image is the original and which the copy is determined by the plan's order, and so by names and seed. */
#include "tfrecord-make/make.h"

#include "common/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    int64_t row;
    uint64_t size_bytes, hash[2];
    uint64_t position;
    int32_t split;
    bool is_unread;  /* has no bytes to compare */
    bool has_failed; /* its fault is reported when its record is written */
} candidate;

typedef struct reading {
    const source *source;
    candidate *candidates;
    atomic_bool is_out_of_memory;
} reading;

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_sizes(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int order = compare(x->size_bytes, y->size_bytes);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int compare_contents(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int order = compare(x->hash[0], y->hash[0]);
    if (order == 0) order = compare(x->hash[1], y->hash[1]);
    if (order == 0) order = compare(x->size_bytes, y->size_bytes);
    if (order == 0) order = (x->split > y->split) - (x->split < y->split);
    if (order == 0) order = compare(x->position, y->position);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static void read_some(void *context, int64_t begin, int64_t end)
{
    reading *reading = context;
    source_bytes bytes = {0};
    for (int64_t i = begin; i < end; i++) {
        candidate *candidate = &reading->candidates[i];
        bool has_image = false;
        mr_status status =
            source_content(reading->source, &reading->source->rows[candidate->row], &bytes, &has_image, nullptr);
        if (status == MR_RESOURCE_EXHAUSTED) atomic_store(&reading->is_out_of_memory, true);
        candidate->has_failed = status != MR_OK;
        candidate->is_unread = status != MR_OK || !has_image || bytes.size_bytes == 0;
        if (candidate->is_unread) continue;
        candidate->size_bytes = bytes.size_bytes;
        for (uint64_t j = 0; j < 2; j++) candidate->hash[j] = plan_hash(5 + j, bytes.data, bytes.size_bytes);
    }
    free(bytes.data);
}

/* Sorts candidates by size and keeps those whose size occurs at least twice. */
static int64_t keep_equal_sizes(candidate *candidates, int64_t count)
{
    qsort(candidates, (size_t)count, sizeof(candidate), compare_sizes);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        bool before = i > 0 && candidates[i - 1].size_bytes == candidates[i].size_bytes;
        bool after = i + 1 < count && candidates[i + 1].size_bytes == candidates[i].size_bytes;
        /* Kept candidates are moved down to positions that `before` no longer reads. */
        candidate candidate = candidates[i];
        if (before || after) candidates[kept++] = candidate;
    }
    return kept;
}

static bool is_copy(const candidate *a, const candidate *b)
{
    return !a->is_unread && !b->is_unread && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] &&
           a->size_bytes == b->size_bytes;
}

#define COUNT(found, kind, original, copy)                                                                             \
    do {                                                                                                               \
        if ((found)->kind.count++ == 0) {                                                                              \
            (found)->kind.first = (original)->name;                                                                    \
            (found)->kind.other = (copy)->name;                                                                        \
        }                                                                                                              \
    } while (0)

/* candidates[0 … count) have the same bytes. The first of each class is the original. */
static void judge(const options *options, const source *source, const candidate *candidates, int64_t count,
                  duplicates_found *found)
{
    const row *first = &source->rows[candidates[0].row];
    for (int64_t i = 1; i < count; i++) {
        const row *row = &source->rows[candidates[i].row];
        if (candidates[i].split != candidates[0].split) COUNT(found, crossing, first, row);
        /* Finds an earlier candidate with the same label, or, without labels, with the same boxes and columns. */
        int64_t j = 0;
        while (j < i && (source->rows[candidates[j].row].label != row->label ||
                         (row->label < 0 && source->rows[candidates[j].row].facts_hash != row->facts_hash)))
            j++;
        if (j == i) {
            COUNT(found, contradicting, first, row);
            continue;
        }
        COUNT(found, same, &source->rows[candidates[j].row], row);
        if (options->duplicates == DUPLICATES_DROP) {
            found->is_dropped[candidates[i].row] = true;
            found->dropped++;
        }
    }
}

static mr_status find(const options *options, const source *source, const uint8_t *splits, pool *pool,
                      candidate *candidates, duplicates_found *found, mr_error *error)
{
    int64_t count = 0;
    for (int64_t i = 0; i < source->row_count; i++)
        if (!source_is_excluded(source, i))
            candidates[count++] = (candidate){.row = i, .size_bytes = source->rows[i].size_bytes};
    if (!source->sizes_include_more) count = keep_equal_sizes(candidates, count);
    reading reading = {.source = source, .candidates = candidates};
    pool_for(pool, count, 16, read_some, &reading);
    if (atomic_load(&reading.is_out_of_memory))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory while searching for duplicates");
    for (int64_t i = 0; i < count; i++) {
        if (!candidates[i].has_failed) continue;
        const row *row = &source->rows[candidates[i].row];
        if (found->unread++ == 0 || strcmp(row->name, found->first_unread) < 0) found->first_unread = row->name;
    }
    for (int64_t i = 0; i < count; i++) {
        candidates[i].split = splits[candidates[i].row];
        candidates[i].position = plan_position_of(options, &source->rows[candidates[i].row]);
    }
    qsort(candidates, (size_t)count, sizeof(candidate), compare_contents);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && is_copy(&candidates[begin], &candidates[end])) end++;
        judge(options, source, candidates + begin, end - begin, found);
    }
    return MR_OK;
}

mr_status duplicates_find(const options *options, const source *source, const uint8_t *splits, pool *pool,
                          duplicates_found *found, mr_error *error)
{
    *found = (duplicates_found){0};
    if (options->duplicates == DUPLICATES_IGNORE || !source->has_images) return MR_OK;
    size_t size = ((size_t)source->row_count + 1) * sizeof(candidate);
    candidate *candidates = malloc(size);
    found->is_dropped = calloc((size_t)source->row_count + 1, sizeof(bool));
    if (!candidates || !found->is_dropped) {
        free(candidates);
        return fail_memory(error, size);
    }
    mr_status status = find(options, source, splits, pool, candidates, found, error);
    free(candidates);
    if (status != MR_OK || options->duplicates != DUPLICATES_STOP) return status;
    if (found->same.count > 0)
        return mr_fail(error, MR_ALREADY_EXISTS, "%s and %s are the same image (--duplicates stop)", found->same.first,
                       found->same.other);
    if (found->contradicting.count > 0)
        return mr_fail(error, MR_ALREADY_EXISTS, "%s and %s are the same image in two classes (--duplicates stop)",
                       found->contradicting.first, found->contradicting.other);
    return MR_OK;
}

void duplicates_deinit(duplicates_found *found)
{
    free(found->is_dropped);
    *found = (duplicates_found){0};
}
