/* --sample: see walk.h. */
#include "common/random.h"
#include "tfrecord-cat/walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Separates these random numbers from others of the same seed. */
static constexpr uint64_t PURPOSE = 0x73616d706c65;

void sample_init(sample *sample, const options *options)
{
    *sample = (struct sample){.options = options};
}

void sample_deinit(sample *sample)
{
    for (size_t i = 0; i < sample->count; i++) free(sample->heap[i].bytes);
    free(sample->heap);
}

void sample_begin_file(sample *sample, const char *path)
{
    numbered numbered;
    sample->is_seekable = numbered_open(&numbered, path);
    numbered_close(&numbered);
}

/* By key, then by number. */
static bool is_before(const drawn *a, const drawn *b)
{
    return a->key != b->key ? a->key < b->key : a->number < b->number;
}

static void swap(drawn *a, drawn *b)
{
    drawn swapped = *a;
    *a = *b;
    *b = swapped;
}

/* Heap order: no record is greater than its parent. */
[[maybe_unused]] static bool is_heap_at(const drawn *heap, size_t count, size_t at)
{
    size_t child = 2 * at + 1;
    return (at == 0 || !is_before(&heap[(at - 1) / 2], &heap[at])) &&
           (child >= count || !is_before(&heap[at], &heap[child])) &&
           (child + 1 >= count || !is_before(&heap[at], &heap[child + 1]));
}

static void sift_up(drawn *heap, size_t at)
{
    [[maybe_unused]] size_t count = at + 1;
    for (; at > 0 && is_before(&heap[(at - 1) / 2], &heap[at]); at = (at - 1) / 2) swap(&heap[at], &heap[(at - 1) / 2]);
    assert(is_heap_at(heap, count, at));
}

static void sift_down(drawn *heap, size_t count)
{
    for (size_t at = 0;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1])) child++;
        if (child >= count || !is_before(&heap[at], &heap[child])) {
            assert(is_heap_at(heap, count, at));
            return;
        }
        swap(&heap[at], &heap[child]);
        at = child;
    }
}

static bool grow(sample *sample)
{
    if (sample->count < sample->capacity) return true;
    size_t capacity = sample->capacity ? 2 * sample->capacity : 64;
    drawn *grown = reallocarray(sample->heap, capacity, sizeof(drawn));
    if (!grown) return false;
    sample->heap = grown;
    sample->capacity = capacity;
    return true;
}

bool sample_offer(sample *sample, uint64_t number, const record_position *position)
{
    random_stream random = random_at(sample->options->seed, number, PURPOSE);
    drawn drawn = {.key = random_next64(&random), .number = number, .position = *position};
    if (sample->options->sample == 0) return true;
    bool is_full = sample->count == sample->options->sample;
    if (is_full && !is_before(&drawn, &sample->heap[0])) return true;
    if (!is_full && !grow(sample)) return print_no_memory(), false;
    if (!sample->is_seekable) {
        size_t size = position->record.size_bytes;
        drawn.bytes = malloc(size + 1);
        if (!drawn.bytes) return print_no_memory(), false;
        if (size > 0) memcpy(drawn.bytes, position->record.data, size);
        drawn.position.record.data = drawn.bytes;
    }
    assert(sample->count <= sample->options->sample && (is_full || sample->count < sample->capacity));
    if (is_full) {
        free(sample->heap[0].bytes);
        sample->heap[0] = drawn;
        sift_down(sample->heap, sample->count);
    } else {
        sample->heap[sample->count++] = drawn;
        sift_up(sample->heap, sample->count - 1);
    }
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = ((const drawn *)a)->number, right = ((const drawn *)b)->number;
    return (left > right) - (left < right);
}

int sample_deliver(sample *sample, take_record *take, void *context)
{
    numbered numbered = {};
    uint64_t taken = 0;
    int exit_code = 0;
    if (sample->count > 0) qsort(sample->heap, sample->count, sizeof(drawn), compare_numbers);
    for (size_t i = 0; i < sample->count && taken < sample->options->head && !ferror(stdout); i++) {
        const drawn *drawn = &sample->heap[i];
        record_position position = drawn->position;
        mr_error error = {0};
        if (!drawn->bytes) {
            if (numbered.path != position.path) numbered_close(&numbered);
            mr_status status = MR_OK;
            if (!numbered.file && !numbered_open(&numbered, position.path))
                status = mr_fail(&error, MR_ABORTED, "%s: changed while it was read", position.path);
            if (status == MR_OK && drawn->position.number >= mr_record_file_count(numbered.file))
                status = mr_fail(&error, MR_ABORTED, "%s: changed while it was read", position.path);
            if (status == MR_OK) status = numbered_read(&numbered, drawn->position.number, &position, &error);
            if (status != MR_OK) {
                exit_code = print_error(&error);
                continue;
            }
        }
        taken++;
        if (!take(context, &position)) break;
    }
    numbered_close(&numbered);
    return exit_code;
}
