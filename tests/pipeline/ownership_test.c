/* Who may change the memory of a delivered element: a unique buffer belongs to the consumer alone. */
#include "tests/pipeline/pipelines.h"
#include "tests/pipeline/random_pipelines.h"

static mr_iterator *iterate(mr_dataset *dataset, int threads)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    mr_dataset_free(dataset);
    return iterator;
}

TEST(delivered_batch_is_the_consumers_alone)
{
    mr_error error = {0};
    mr_iterator *iterator = iterate(mr_dataset_prefetch(mr_dataset_batch(mr_dataset_range(0, 100, 1), 10), 2), 2);
    mr_element element = {0};
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_buffer_is_unique(element.tensors[0].buffer));
    mr_tensor other = mr_tensor_ref(&element.tensors[0]);
    CHECK(!mr_buffer_is_unique(other.buffer));
    CHECK(!mr_buffer_is_unique(element.tensors[0].buffer));
    mr_tensor_deinit(&other);
    CHECK(mr_buffer_is_unique(element.tensors[0].buffer));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

TEST(batch_that_outlives_its_pool_has_an_exact_owner)
{
    mr_error error = {0};
    mr_iterator *iterator = iterate(mr_dataset_batch(mr_dataset_range(0, 20, 1), 10), 1);
    mr_element element = {0};
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_tensor other = mr_tensor_ref(&element.tensors[0]);
    mr_iterator_free(iterator);
    CHECK(!mr_buffer_is_unique(other.buffer));
    mr_element_deinit(&element);
    CHECK(mr_buffer_is_unique(other.buffer));
    CHECK_EQ(mr_tensor_int64s(&other)[9], 9);
    mr_tensor_deinit(&other);
}

TEST(memory_that_the_dataset_uses_again_is_never_unique)
{
    mr_error error = {0};
    mr_tensor rows = {0};
    CHECK_OK(mr_tensor_init(&rows, MR_INT64, MR_SHAPE(6, 4), &error));
    memset(rows.data, 0, mr_tensor_size_bytes(&rows));
    mr_dataset *datasets[] = {
        mr_dataset_repeat(mr_dataset_from_tensors(&rows, 1), 3),
        mr_dataset_repeat(mr_dataset_from_slices(&rows, 1), 2),
        mr_dataset_repeat(mr_dataset_cache(mr_dataset_batch(mr_dataset_range(0, 12, 1), 3), nullptr), 2),
    };
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++) {
        mr_iterator *iterator = iterate(datasets[i], 1);
        mr_element element = {0};
        int elements = 0;
        for (; mr_iterator_next(iterator, &element, &error) == MR_OK; elements++)
            if (mr_buffer_is_unique(element.tensors[0].buffer))
                memset(element.tensors[0].data, 0xff, mr_tensor_size_bytes(&element.tensors[0]));
            else
                CHECK(((const unsigned char *)element.tensors[0].data)[0] < 12);
        CHECK(elements > 2);
        mr_iterator_free(iterator);
    }
    CHECK_EQ(mr_tensor_int64s(&rows)[0], 0);
    mr_tensor_deinit(&rows);
}

static mr_status take_input(void *context, const mr_element *input, mr_random *random, mr_element *output,
                            mr_error *error)
{
    mr_tensor *taken = context;
    mr_tensor_deinit(taken);
    *taken = input->tensors[0];
    input->tensors[0] = (mr_tensor){0};
    CHECK(mr_buffer_is_unique(taken->buffer));
    output->tensors[0] = mr_tensor_ref(taken);
    output->count = 1;
    return MR_OK;
}

TEST(function_that_owns_its_input_may_take_it_over)
{
    mr_error error = {0};
    mr_tensor taken = {0};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};
    mr_dataset *batches = mr_dataset_batch(mr_dataset_range(0, 10, 1), 4);
    mr_iterator *iterator =
        iterate(mr_dataset_map(batches, take_input, &taken, &spec, .own_input = true, .num_parallel_calls = 1), 1);
    mr_element element = {0};
    int64_t sum = 0;
    while (mr_iterator_next(iterator, &element, &error) == MR_OK)
        for (int64_t i = 0; i < mr_tensor_count(&element.tensors[0]); i++)
            sum += mr_tensor_int64s(&element.tensors[0])[i];
    CHECK_EQ(sum, 45);
    mr_iterator_free(iterator);
    CHECK_EQ(mr_tensor_int64s(&taken)[1], 9);
    mr_tensor_deinit(&taken);
}

/* Overwrites what is unique, after it has been added to the digest. */
static uint64_t digest_of(int seed, int threads, bool overwrites)
{
    mr_error error = {0};
    static random_pipeline made;
    mr_iterator *iterator = iterate(random_pipeline_make(&made, test_seed() * 100000 + (uint64_t)seed), threads);
    mr_element element = {0};
    uint64_t digest = 0;
    mr_status status = MR_OK;
    for (int i = 0; i < 400; i++) {
        status = mr_iterator_next(iterator, &element, &error);
        if (status == MR_OUT_OF_RANGE) break;
        digest = mix(digest, &status, sizeof status);
        if (status != MR_OK) continue;
        digest = element_digest(digest, &element);
        for (int32_t c = 0; c < element.count && overwrites; c++) {
            const mr_tensor *tensor = &element.tensors[c];
            if (tensor->dtype != MR_STRING && mr_buffer_is_unique(tensor->buffer))
                memset(tensor->data, 0x5a, mr_tensor_size_bytes(tensor));
        }
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return digest;
}

TEST(elements_do_not_change_when_the_consumer_overwrites_what_is_unique)
{
    for (int seed = 1; seed <= 150; seed++) {
        uint64_t expected = digest_of(seed, 1, false);
        CHECK_EQ(digest_of(seed, 1, true), expected);
        CHECK_EQ(digest_of(seed, 3, true), expected);
    }
}
