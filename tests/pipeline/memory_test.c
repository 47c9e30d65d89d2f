/* Memory that stages retain between calls: it equals what they report and stays within the budget, and errors name the
 * stages that use most of it. */
#include "tests/pipeline/pipelines.h"

#include <malloc.h>

static constexpr size_t KIB = 1024;

static const mr_element_spec one_string = {.count = 1, .dtypes = {MR_STRING}, .shapes = {{.rank = 0}}};

/* Strings of 1,000 to 5,000 bytes, all different, without end. */
static mr_status next_string(void *context, void *state, mr_element *element, mr_error *error)
{
    (void)state;
    int64_t number = (*(int64_t *)context)++;
    char bytes[5000];
    memset(bytes, (int)('a' + number % 26), sizeof bytes);
    memcpy(bytes, &number, sizeof number);
    element->count = 1;
    return mr_tensor_init_string(&element->tensors[0], (mr_string){bytes, 1000 + (size_t)(number * 811 % 4001)}, error);
}

/* Keeps one row in ten. The rows are views into a block, and a view would retain the complete block. */
static mr_status is_tenth(void *context, const mr_element *input, bool *keep, mr_error *error)
{
    (void)context, (void)error;
    *keep = (int64_t)((const float *)input->tensors[0].data)[0] % 10 == 0;
    return MR_OK;
}

static mr_dataset *strings(int64_t *counter)
{
    return mr_dataset_generator(&(mr_generator){.next = next_string}, counter, &one_string);
}

static mr_dataset *rows(int64_t count)
{
    mr_error error = {0};
    mr_tensor table = {0};
    CHECK_OK(mr_tensor_init(&table, MR_FLOAT, MR_SHAPE(count, 256), &error));
    for (int64_t i = 0; i < count * 256; i++) mr_tensor_floats(&table)[i] = (float)(i / 256);
    mr_dataset *d = mr_dataset_from_slices(&table, 1);
    mr_tensor_deinit(&table);
    return d;
}

static mr_status key_of(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = (int64_t)(mr_tensor_strings(&input->tensors[0])->size_bytes % 7);
    return MR_OK;
}

static mr_status batch_group(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)key, (void)error;
    *output = mr_dataset_batch(window, 100);
    return MR_OK;
}

static mr_status strings_of(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)input, (void)error;
    *output = mr_dataset_shuffle(strings(context), .buffer_size = 40, .seed = 1);
    return MR_OK;
}

static const mr_element_spec string_batch = {.count = 1, .dtypes = {MR_STRING}, .shapes = {{.rank = 1, .dims = {-1}}}};

static mr_dataset *holder(int which, int64_t *counter)
{
    switch (which) {
    case 0:
        return mr_dataset_cache(strings(counter), nullptr);
    case 1:
        return mr_dataset_shuffle(strings(counter), .buffer_size = 500, .seed = 1);
    case 2:
        return mr_dataset_window(strings(counter), nullptr, nullptr, nullptr, .window_size = 300, .shift = 1);
    case 3:
        return mr_dataset_group_by_window(strings(counter), key_of, batch_group, nullptr, &string_batch,
                                          .window_size = 150);
    case 4:
        return mr_dataset_unique(strings(counter));
    case 5:
        return mr_dataset_unbatch(mr_dataset_batch(strings(counter), 600));
    case 6:
        return mr_dataset_interleave(mr_dataset_range(0, 50, 1), strings_of, counter, &one_string, .cycle_length = 12);
    case 7: /* one in ten of the rows of a block */
        return mr_dataset_cache(mr_dataset_filter(rows(20000), is_tenth, nullptr, .num_parallel_calls = 1), nullptr);
    default: /* shuffles cached elements: both stages use the same memory */
        return mr_dataset_shuffle(mr_dataset_cache(strings(counter), nullptr), .buffer_size = 500, .seed = 1);
    }
}
static constexpr int HOLDERS = 9;

static size_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static size_t held_bytes(mr_iterator *iterator)
{
    mr_stage_statistics stages[16];
    int32_t count = mr_iterator_statistics(iterator, stages, 16);
    size_t size_bytes = 0;
    for (int32_t i = 0; i < count; i++) size_bytes += stages[i].held_bytes;
    return size_bytes;
}

TEST(stages_report_their_memory)
{
    if (test_is_sanitized()) test_skip("a sanitizer has memory of its own");
    for (int which = 0; which < HOLDERS; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        int64_t counter = 0;
        mr_dataset *d = holder(which, &counter);
        size_t before_bytes = allocated_bytes();
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, &error));
        for (int i = 0; i < 700; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
        mr_element_deinit(&element);
        size_t taken_bytes = allocated_bytes() - before_bytes, held = held_bytes(iterator);
        /* Rows of a batch, and strings before and after assembly, are counted separately. */
        if (held + held / 8 + 64 * KIB < taken_bytes || held > taken_bytes + taken_bytes / 2 + 64 * KIB)
            test_fail(__FILE__, __LINE__, "holder %d says %zu bytes, and has %zu", which, held, taken_bytes);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

/* Stages that need more memory than is left report the amount and the stages that use most; they remain failed until
 * they begin again. */
TEST(stages_over_budget_name_the_largest_users)
{
    static const char *const names[] = {"cache", "shuffle", "window", "group_by_window", "unique"};
    for (int which = 0; which < 5; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_status status = MR_OK;
        int64_t counter = 0;
        mr_dataset *d = holder(which, &counter);
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1, .budget_bytes = 512 * KIB), &iterator,
                                 &error));
        for (int i = 0; i < 2000 && status == MR_OK; i++) {
            status = mr_iterator_next(iterator, &element, &error);
            CHECK(held_bytes(iterator) <= 600 * KIB);
        }
        CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, names[which]);
        CHECK_CONTAINS(error.message, "bytes exceed the budget of 524288 bytes");
        CHECK_CONTAINS(error.message, " holds ");
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, names[which]);
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

/* Cached elements in a shuffle buffer take no additional memory; the elements of two caches do. */
TEST(stages_share_one_budget)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    int64_t counters[2] = {0};
    mr_iterator_options options = {.size = sizeof options, .threads = 1, .budget_bytes = 2048 * KIB};
    mr_dataset *d = mr_dataset_cache(mr_dataset_take(strings(&counters[0]), 400), nullptr);
    d = mr_dataset_repeat(mr_dataset_shuffle(d, .buffer_size = 400, .seed = 1), 2);
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    for (int i = 0; i < 800; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_iterator_free(iterator);
    mr_dataset *two[] = {mr_dataset_cache(mr_dataset_take(strings(&counters[0]), 400), nullptr),
                         mr_dataset_cache(mr_dataset_take(strings(&counters[1]), 400), nullptr)};
    mr_dataset *both = mr_dataset_zip(two, 2);
    mr_status status = MR_OK;
    CHECK_OK(mr_iterator_new(both, &options, &iterator, &error));
    while (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
    CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(error.message, "cache holds");
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(both);
    mr_dataset_free(d);
}

/* Released memory is available to other stages: from a cache that restarts at another position, a shuffle whose buffer
 * runs empty, a window that has ended. */
TEST(stages_release_the_memory_they_reserved)
{
    for (int which = 1; which < 4; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_status status = MR_OK;
        int64_t counter = 0;
        mr_dataset *d = holder(which, &counter);
        mr_dataset *some = mr_dataset_take(d, 600);
        CHECK_OK(mr_iterator_new(some, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, &error));
        size_t first = 0, last = 0;
        mr_tensor state = {0};
        for (int i = 0; i < 300; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
        first = held_bytes(iterator);
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        for (int times = 0; times < 3; times++) {
            counter = 0;
            CHECK_OK(mr_iterator_restore(iterator, &state, &error));
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
            last = held_bytes(iterator);
            if (last > first + first / 2 + 64 * KIB || last < first / 4)
                test_fail(__FILE__, __LINE__, "holder %d held %zu bytes, and now %zu", which, first, last);
        }
        while (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
        CHECK_EQ(status, MR_OUT_OF_RANGE);
        mr_tensor_deinit(&state);
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(some);
    }
}
