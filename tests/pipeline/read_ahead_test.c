/* Read-ahead: prefetch requests for elements of files, as long as they are useful. */
#include "pipeline/engine/engine_internal.h"
#include "tests/test.h"

#include <unistd.h>

enum { ELEMENTS = 4000, BATCH = 8 };

/* A simulated disk: a thread waits for an element unless it was prefetched. */
static struct {
    uint64_t cold_from; /* earlier elements are in memory */
    _Atomic bool requested[ELEMENTS];
    _Atomic int reads_ahead, waits;
} disk;

static mr_status disk_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)dataset, (void)error;
    if (number >= disk.cold_from && !disk.requested[number]) {
        disk.waits++;
        /* Sleep, as a thread that waits for a disk does. */
        usleep(1);
    }
    mr_value *value = &workspace->values[0];
    workspace->count = 1;
    value->dtype = MR_INT64;
    value->shape = MR_SCALAR;
    value->integer = (int64_t)number;
    value->data = &value->integer;
    return MR_OK;
}

static void disk_read_ahead(const mr_dataset *dataset, uint64_t number)
{
    (void)dataset;
    CHECK(number < ELEMENTS);
    CHECK(!disk.requested[number]);
    disk.requested[number] = true;
    disk.reads_ahead++;
}

static void disk_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    (void)dataset, (void)number;
    text[0] = '\0';
    (void)size_bytes;
}

static const mr_dataset_kind disk_kind = {.name = "disk",
                                          .role = MR_ROLE_SOURCE,
                                          .stage_size_bytes = sizeof(mr_stage),
                                          .functions = &mr_numbers_functions,
                                          .read = disk_read,
                                          .read_ahead = disk_read_ahead,
                                          .describe = disk_describe};

/* Reads all elements and checks them. */
static void read_disk(uint64_t cold_from, int32_t threads)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_iterator *iterator = nullptr;
    disk.cold_from = cold_from;
    disk.reads_ahead = disk.waits = 0;
    for (int i = 0; i < ELEMENTS; i++) disk.requested[i] = false;
    mr_dataset *d = mr_dataset_new(&disk_kind, nullptr, 0);
    CHECK(d != nullptr);
    d->count = ELEMENTS;
    d->spec = (mr_element_spec){.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    d->is_heavy = true;
    d = mr_dataset_prefetch(mr_dataset_batch(d, BATCH), 4);
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    mr_dataset_free(d);
    for (int64_t i = 0; i < ELEMENTS; i += BATCH) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        for (int64_t k = 0; k < BATCH; k++) CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[k], i + k);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

/* The engine omits the prefetch of some slots to measure its effect, less and less often. Only these wait. */
TEST(read_ahead_requests_cold_elements)
{
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        read_disk(0, threads);
        CHECK(disk.waits <= ELEMENTS / 20);
        CHECK_EQ(disk.reads_ahead + disk.waits, ELEMENTS);
    }
}

TEST(read_ahead_skips_elements_in_memory)
{
    read_disk(ELEMENTS, 2);
    CHECK_EQ(disk.waits, 0);
    CHECK(disk.reads_ahead < ELEMENTS / 4);
}

TEST(ahead_begins_again_when_elements_have_to_be_waited_for)
{
    read_disk(ELEMENTS / 2, 2);
    CHECK(disk.waits > 0 && disk.waits <= ELEMENTS / 2 / 10);
    CHECK(disk.reads_ahead < ELEMENTS / 2 + ELEMENTS / 4);
}
