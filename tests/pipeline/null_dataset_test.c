/* A null dataset as an argument is an error of the caller: the message names the stage and never reports a lack of
 * memory. A dataset whose allocation failed is not an error of the caller. */
#include "tests/pipeline/pipelines.h"

static const mr_element_spec one = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{0}}};
static const double half[2] = {0.5, 0.5};
static const int64_t boundaries[1] = {2}, sizes[2] = {1, 1};
static const mr_feature feature = {.name = "x", .dtype = MR_INT64};

static mr_status map(void *c, const mr_element *i, mr_random *r, mr_element *o, mr_error *e)
{
    return jitter(c, i, r, o, e);
}
static mr_status keep(void *, const mr_element *, bool *stays, mr_error *)
{
    *stays = true;
    return MR_OK;
}
static mr_status key(void *, const mr_element *, int64_t *class, mr_error *)
{
    *class = 0;
    return MR_OK;
}
static mr_status add(void *, const mr_element *, const mr_element *, mr_element *, mr_element *, mr_error *)
{
    return MR_OK;
}
static mr_status no_dataset(void *, const mr_element *, mr_dataset **, mr_error *)
{
    return MR_OK;
}
static mr_status no_window(void *, mr_dataset *window, mr_dataset **, mr_error *)
{
    mr_dataset_free(window);
    return MR_OK;
}
static mr_status no_group(void *, int64_t, mr_dataset *window, mr_dataset **, mr_error *)
{
    mr_dataset_free(window);
    return MR_OK;
}

static int released;

static void count_release(void *)
{
    released++;
}

static mr_dataset *pair_of(mr_dataset *first, mr_dataset *second, int which)
{
    mr_dataset *inputs[2] = {first, second};
    if (which == 0) return mr_dataset_zip(inputs, 2);
    if (which == 1) return mr_dataset_sample_from_datasets(inputs, nullptr, 2);
    return mr_dataset_choose_from_datasets(inputs, 2, mr_dataset_range(0, 2, 1));
}

#define NUMBERS mr_dataset_range(0, 10, 1)
/* Every builder over the input d. R: with a context that must be released. */
#define BUILDERS(d, C, R)                                                                                              \
    C("shuffle", mr_dataset_shuffle(d))                                                                                \
    C("repeat", mr_dataset_repeat(d, 2))                                                                               \
    C("take", mr_dataset_take(d, 2))                                                                                   \
    C("skip", mr_dataset_skip(d, 2))                                                                                   \
    C("shard", mr_dataset_shard(d, 2, 0))                                                                              \
    C("prefetch", mr_dataset_prefetch(d, 2))                                                                           \
    C("prefetch_to_device", mr_dataset_prefetch_to_device(d, "/cpu:0", 1))                                             \
    C("copy_to_device", mr_dataset_copy_to_device(d, "/cpu:0"))                                                        \
    C("options", mr_dataset_with_options(d, .threads = 1))                                                             \
    C("batch", mr_dataset_batch(d, 2))                                                                                 \
    C("distribute", mr_dataset_distribute(d, 4, 2, 0, MR_DISTRIBUTE_PAD))                                              \
    C("padded_batch", mr_dataset_padded_batch(d, 2))                                                                   \
    C("dense_to_ragged_batch", mr_dataset_dense_to_ragged_batch(d, 2))                                                 \
    C("dense_to_sparse_batch", mr_dataset_dense_to_sparse_batch(d, 2, MR_SCALAR))                                      \
    R("map", mr_dataset_map(d, map, nullptr, &one, .release = count_release))                                          \
    R("filter", mr_dataset_filter(d, keep, nullptr, .release = count_release))                                         \
    R("take_while", mr_dataset_take_while(d, keep, nullptr, .release = count_release))                                 \
    C("ignore_errors", mr_dataset_ignore_errors(d))                                                                    \
    C("zip", pair_of(d, NUMBERS, 0))                                                                                   \
    C("zip", pair_of(NUMBERS, d, 0))                                                                                   \
    C("sample_from", pair_of(d, NUMBERS, 1))                                                                           \
    C("sample_from", pair_of(NUMBERS, d, 1))                                                                           \
    C("choose_from", pair_of(d, NUMBERS, 2))                                                                           \
    C("choose_from", mr_dataset_choose_from_datasets(&(mr_dataset *){NUMBERS}, 1, d))                                  \
    C("concatenate", mr_dataset_concatenate(d, NUMBERS))                                                               \
    C("concatenate", mr_dataset_concatenate(NUMBERS, d))                                                               \
    C("enumerate", mr_dataset_enumerate(d, 0))                                                                         \
    R("flat_map", mr_dataset_flat_map(d, no_dataset, nullptr, &one, .release = count_release))                         \
    R("interleave", mr_dataset_interleave(d, no_dataset, nullptr, &one, .release = count_release))                     \
    R("scan", mr_dataset_scan(d, &(mr_element){0}, add, nullptr, &one, .release = count_release))                      \
    C("unique", mr_dataset_unique(d))                                                                                  \
    C("unbatch", mr_dataset_unbatch(d))                                                                                \
    C("unbatch", mr_dataset_rebatch(d, 2))                                                                             \
    C("assert_cardinality", mr_dataset_assert_cardinality(d, 10))                                                      \
    R("rejection_resample", mr_dataset_rejection_resample(d, key, nullptr, half, 2, .release = count_release))         \
    C("cache", mr_dataset_cache(d, nullptr))                                                                           \
    C("snapshot", mr_dataset_snapshot(d, test_path("snapshot")))                                                       \
    R("window", mr_dataset_window(d, nullptr, nullptr, nullptr, .window_size = 2, .release = count_release))           \
    R("group_by_window",                                                                                               \
      mr_dataset_group_by_window(d, key, no_group, nullptr, &one, .window_size = 2, .release = count_release))         \
    R("bucket_by_sequence_length",                                                                                     \
      mr_dataset_bucket_by_sequence_length(d, key, nullptr, boundaries, 1, sizes, .release = count_release))           \
    C("parse_example", mr_dataset_parse_example(d, &feature, 1))                                                       \
    C("parse_sequence_example", mr_dataset_parse_sequence_example(d, &feature, 1, nullptr, 0))                         \
    C("decode_image", mr_dataset_decode_image(d))

static void check_null(const char *stage, mr_dataset *d, int releases)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK(d != nullptr);
    mr_status status = mr_iterator_new(d, nullptr, &iterator, &error);
    if (status != MR_INVALID_ARGUMENT || strncmp(error.message, stage, strlen(stage)) != 0 ||
        strstr(error.message, "is null") == nullptr)
        test_fail(__FILE__, __LINE__, "%s: %s: \"%s\"", stage, mr_status_name(status), error.message);
    mr_dataset_free(d);
    if (released != releases) test_fail(__FILE__, __LINE__, "%s: %d releases, not %d", stage, released, releases);
    released = 0;
}

TEST(null_datasets_are_mistakes_of_the_caller)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_EQ(mr_iterator_new(nullptr, nullptr, &iterator, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the dataset is null");
#define C(stage, builder) check_null(stage, builder, 0);
#define R(stage, builder) check_null(stage, builder, 1);
    BUILDERS((mr_dataset *)nullptr, C, R)
#undef C
#undef R
}

static void check_no_memory(const char *stage, mr_dataset *d, int releases)
{
    mr_error error = {0};
    mr_dataset *behind = mr_dataset_take(mr_dataset_ref(d), 3);
    if (mr_dataset_status(d, &error) != MR_RESOURCE_EXHAUSTED ||
        mr_dataset_status(behind, &error) != MR_RESOURCE_EXHAUSTED)
        test_fail(__FILE__, __LINE__, "%s: \"%s\"", stage, error.message);
    CHECK_EQ(mr_dataset_cardinality(d), MR_CARDINALITY_UNKNOWN);
    mr_dataset_free(behind);
    mr_dataset_free(d);
    if (released != releases) test_fail(__FILE__, __LINE__, "%s: %d releases, not %d", stage, released, releases);
    released = 0;
}

/* The allocation of the source fails, or every allocation. */
TEST(null_datasets_do_not_come_from_a_lack_of_memory)
{
    if (test_allocations() < 0) return;
    const char *path = test_path("warm");
    (void)path;
    for (int all = 0; all < 2; all++) {
#define FAILING (test_fail_allocations(test_allocations() + 1, all ? 1000000 : 1), NUMBERS)
#define C(stage, builder)                                                                                              \
    {                                                                                                                  \
        mr_dataset *made = builder;                                                                                    \
        test_fail_allocations(0, 0);                                                                                   \
        check_no_memory(stage, made, 0);                                                                               \
    }
#define R(stage, builder)                                                                                              \
    {                                                                                                                  \
        mr_dataset *made = builder;                                                                                    \
        test_fail_allocations(0, 0);                                                                                   \
        check_no_memory(stage, made, 1);                                                                               \
    }
        BUILDERS(FAILING, C, R)
#undef C
#undef R
    }
}

static void check_element(mr_dataset *d, const char *stage)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_EQ(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, stage);
    CHECK_CONTAINS(error.message, "the function returned no dataset");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(null_datasets_of_functions)
{
    check_element(mr_dataset_flat_map(NUMBERS, no_dataset, nullptr, &one), "flat_map");
    check_element(mr_dataset_interleave(NUMBERS, no_dataset, nullptr, &one), "interleave");
    check_element(mr_dataset_interleave(NUMBERS, no_dataset, nullptr, &one, .parallel = true), "interleave");
    check_element(mr_dataset_window(NUMBERS, no_window, nullptr, &one, .window_size = 2), "window");
    check_element(mr_dataset_group_by_window(NUMBERS, key, no_group, nullptr, &one, .window_size = 2),
                  "group_by_window");
}
