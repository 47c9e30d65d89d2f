/* Digests of datasets: changing any setting of any stage changes the digest, and a state saved before the change is
 * rejected after it. Settings that do not affect elements do not affect the digest. */
#include "pipeline/digest.h"
#include "tests/pipeline/pipelines.h"

#include <millrace/millrace.h>

/* A dataset that differs in one setting for each variant; null after the last one. */
typedef mr_dataset *(*family)(int variant);

static uint64_t digest_of(mr_dataset *dataset)
{
    mr_error error = {0};
    uint64_t digest = 0;
    CHECK_OK(mr_dataset_status(dataset, &error));
    CHECK_OK(mr_dataset_digest(dataset, &digest, &error));
    mr_dataset_free(dataset);
    return digest;
}

static void check_refused(family make, int from, int to, const char *name)
{
    mr_error error = {0};
    mr_iterator *one = nullptr, *other = nullptr;
    mr_tensor state = {0};
    mr_dataset *d = make(from), *e = make(to);
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &one, &error));
    CHECK_OK(mr_iterator_new(e, MR_OPTIONS(mr_iterator_options, .threads = 1), &other, &error));
    CHECK_OK(mr_iterator_save(one, &state, &error));
    CHECK_OK(mr_iterator_restore(one, &state, &error));
    if (mr_iterator_restore(other, &state, &error) != MR_INVALID_ARGUMENT)
        test_fail(__FILE__, __LINE__, "%s: the state of variant %d is restored in variant %d", name, from, to);
    mr_tensor_deinit(&state);
    mr_iterator_free(one);
    mr_iterator_free(other);
    mr_dataset_free(d);
    mr_dataset_free(e);
}

static void check_family(family make, const char *name)
{
    enum { VARIANTS_MAX = 80 };
    uint64_t digests[VARIANTS_MAX];
    int count = 0;
    for (mr_dataset *d; count < VARIANTS_MAX && (d = make(count)) != nullptr; count++) {
        digests[count] = digest_of(d);
        CHECK_EQ(digest_of(make(count)), digests[count]);
        for (int i = 0; i < count; i++)
            if (digests[i] == digests[count])
                test_fail(__FILE__, __LINE__, "%s: variants %d and %d have one digest", name, i, count);
        if (count > 0) check_refused(make, 0, count, name);
    }
    CHECK(count > 1);
}
#define CHECK_FAMILY(make) check_family((make), #make)

static mr_dataset *numbers(void)
{
    return mr_dataset_range(0, 12, 1);
}

static mr_tensor vector(int count, const int64_t *values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT64, MR_SHAPE(count), values, &error));
    return tensor;
}
#define VECTOR(...)                                                                                                    \
    vector((int)(sizeof(const int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static mr_tensor scalar(int64_t value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_int64(&tensor, value, &error));
    return tensor;
}

static mr_tensor words(const char *first, const char *second)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_strings(&tensor, MR_SHAPE(2), (mr_string[]){mr_string_from(first), mr_string_from(second)},
                                    &error));
    return tensor;
}

/* ---- Sources ---- */

static mr_dataset *range_family(int variant)
{
    const int64_t all[][3] = {{0, 9, 1}, {1, 9, 1}, {0, 10, 1}, {0, 9, 2}};
    return variant < 4 ? mr_dataset_range(all[variant][0], all[variant][1], all[variant][2]) : nullptr;
}

static mr_dataset *slices_family(int variant)
{
    mr_tensor parts[2] = {0};
    int count = 1;
    switch (variant) {
    case 0:
    case 5:
    case 6:
        parts[0] = VECTOR(1, 2, 3, 4);
        break;
    case 1:
        parts[0] = VECTOR(1, 2, 3, 5);
        break;
    case 2:
        parts[0] = VECTOR(1, 2, 3);
        break;
    case 3:
        parts[0] = words("ab", "c");
        break;
    case 4:
        parts[0] = words("a", "bc");
        break;
    default:
        return nullptr;
    }
    if (variant == 5) parts[count++] = VECTOR(1, 2, 3, 4);
    mr_dataset *d = variant == 6 ? mr_dataset_from_tensors(parts, count) : mr_dataset_from_slices(parts, count);
    for (int i = 0; i < count; i++) mr_tensor_deinit(&parts[i]);
    return d;
}

static mr_dataset *sparse_family(int variant)
{
    mr_error error = {0};
    int64_t indices[] = {0, 0, 0, 2, 1, 1}, sizes[] = {2, 3}, numbers_of_it[] = {7, 8, 9};
    if (variant > 3) return nullptr;
    if (variant == 1) indices[3] = 1;
    if (variant == 2) sizes[1] = 4;
    if (variant == 3) numbers_of_it[2] = 10;
    mr_tensor at = {0}, values = vector(3, numbers_of_it), shape = vector(2, sizes);
    CHECK_OK(mr_tensor_init_copy(&at, MR_INT64, MR_SHAPE(3, 2), indices, &error));
    mr_dataset *d = mr_dataset_from_sparse_slices(&at, &values, &shape);
    mr_tensor_deinit(&at);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&shape);
    return d;
}

static mr_status generate(void *context, void *state, mr_element *output, mr_error *error)
{
    (void)context, (void)state, (void)output;
    return mr_fail(error, MR_OUT_OF_RANGE, "end");
}

static mr_dataset *generator_family(int variant)
{
    const mr_element_spec specs[] = {
        one_int64,
        {.count = 1, .dtypes = {MR_FLOAT}, .shapes = {{.rank = 0}}},
        {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SHAPE(3)}},
        {.count = 2, .dtypes = {MR_INT64, MR_INT64}, .shapes = {{.rank = 0}, {.rank = 0}}},
    };
    if (variant == 4) return mr_dataset_random(1);
    if (variant == 5) return mr_dataset_random(2);
    return variant < 4 ? mr_dataset_generator(&(mr_generator){.next = generate}, nullptr, &specs[variant]) : nullptr;
}

TEST(digest_covers_sources_in_memory)
{
    CHECK_FAMILY(range_family);
    CHECK_FAMILY(slices_family);
    CHECK_FAMILY(sparse_family);
    CHECK_FAMILY(generator_family);
}

/* ---- Order and batches ---- */

static bool ignore_some(void *context, const mr_error *error)
{
    (void)context;
    return error->status == MR_DATA_LOSS;
}

static mr_dataset *order_family(int variant)
{
    switch (variant) {
    case 0:
        return numbers();
    case 1:
        return mr_dataset_shuffle(numbers(), .buffer_size = 4, .seed = 1);
    case 2:
        return mr_dataset_shuffle(numbers(), .buffer_size = 5, .seed = 1);
    case 3:
        return mr_dataset_shuffle(numbers(), .buffer_size = 4, .seed = 2);
    case 4:
        return mr_dataset_shuffle(numbers(), .buffer_size = 4, .seed = 1, .reshuffle_each_iteration = false);
    case 5:
        return mr_dataset_repeat(numbers(), 2);
    case 6:
        return mr_dataset_repeat(numbers(), MR_INFINITE);
    case 7:
        return mr_dataset_take(numbers(), 2);
    case 8:
        return mr_dataset_take(numbers(), 3);
    case 9:
        return mr_dataset_skip(numbers(), 2);
    case 10:
        return mr_dataset_skip(numbers(), 3);
    case 11:
        return mr_dataset_shard(numbers(), 2, 0);
    case 12:
        return mr_dataset_shard(numbers(), 3, 0);
    case 13:
        return mr_dataset_shard(numbers(), 2, 1);
    case 14:
        return mr_dataset_assert_cardinality(numbers(), 12);
    case 15:
        return mr_dataset_ignore_errors(numbers());
    case 16:
        return mr_dataset_ignore_errors(numbers(), .errors_max = 3);
    case 28:
        return mr_dataset_ignore_errors(numbers(), .ignores = ignore_some);
    case 17:
        return mr_dataset_enumerate(numbers(), 0);
    case 18:
        return mr_dataset_enumerate(numbers(), 1);
    case 19:
        return mr_dataset_zip((mr_dataset *[]){numbers(), mr_dataset_range(1, 13, 1)}, 2);
    case 20:
        return mr_dataset_zip((mr_dataset *[]){mr_dataset_range(1, 13, 1), numbers()}, 2);
    case 21:
        return mr_dataset_concatenate(numbers(), mr_dataset_range(1, 13, 1));
    case 22:
        return mr_dataset_concatenate(mr_dataset_range(1, 13, 1), numbers());
    case 23:
        return mr_dataset_unique(numbers());
    case 24:
        return mr_dataset_with_options(numbers(), .version = 1);
    case 25:
        return mr_dataset_with_options(numbers(), .version = 2);
    case 26:
        return mr_dataset_with_options(mr_dataset_take(numbers(), 3), .version = 1);
    case 27:
        return mr_dataset_take(mr_dataset_with_options(numbers(), .version = 1), 3);
    default:
        return nullptr;
    }
}

static mr_dataset *rows(void)
{
    return mr_dataset_batch(numbers(), 2);
}

static mr_dataset *batch_family(int variant)
{
    mr_tensor one = scalar(1), two = scalar(2);
    mr_dataset *d = nullptr;
    switch (variant) {
    case 0:
        d = mr_dataset_batch(numbers(), 2);
        break;
    case 1:
        d = mr_dataset_batch(numbers(), 3);
        break;
    case 2:
        d = mr_dataset_batch(numbers(), 2, .drop_remainder = true);
        break;
    case 3:
        d = mr_dataset_padded_batch(rows(), 2);
        break;
    case 4:
        d = mr_dataset_padded_batch(rows(), 3);
        break;
    case 5:
        d = mr_dataset_padded_batch(rows(), 2, .drop_remainder = true);
        break;
    case 6:
        d = mr_dataset_padded_batch(rows(), 2, .padded_shapes = &MR_SHAPE(5));
        break;
    case 7:
        d = mr_dataset_padded_batch(rows(), 2, .padded_shapes = &MR_SHAPE(6));
        break;
    case 8:
        d = mr_dataset_padded_batch(rows(), 2, .padding_values = &one);
        break;
    case 9:
        d = mr_dataset_padded_batch(rows(), 2, .padding_values = &two);
        break;
    case 10:
        d = mr_dataset_dense_to_ragged_batch(rows(), 2);
        break;
    case 11:
        d = mr_dataset_dense_to_ragged_batch(rows(), 3);
        break;
    case 12:
        d = mr_dataset_dense_to_ragged_batch(rows(), 2, .drop_remainder = true);
        break;
    case 13:
        d = mr_dataset_dense_to_ragged_batch(rows(), 2, .row_splits_dtype = MR_INT32);
        break;
    case 14:
        d = mr_dataset_dense_to_sparse_batch(rows(), 2, MR_SHAPE(5));
        break;
    case 15:
        d = mr_dataset_dense_to_sparse_batch(rows(), 2, MR_SHAPE(6));
        break;
    case 16:
        d = mr_dataset_dense_to_sparse_batch(rows(), 3, MR_SHAPE(5));
        break;
    case 17:
        d = mr_dataset_dense_to_sparse_batch(rows(), 2, MR_SHAPE(5), .drop_remainder = true);
        break;
    case 18:
        d = mr_dataset_unbatch(rows());
        break;
    case 19:
        d = mr_dataset_distribute(numbers(), 4, 2, 0, MR_DISTRIBUTE_PAD);
        break;
    case 20:
        d = mr_dataset_distribute(numbers(), 6, 2, 0, MR_DISTRIBUTE_PAD);
        break;
    case 21:
        d = mr_dataset_distribute(numbers(), 4, 2, 0, MR_DISTRIBUTE_DROP);
        break;
    case 22:
        d = mr_dataset_distribute(numbers(), 4, 2, 0, MR_DISTRIBUTE_MASK);
        break;
    default:
        break;
    }
    mr_tensor_deinit(&one);
    mr_tensor_deinit(&two);
    return d;
}

TEST(digest_covers_order_and_batches)
{
    CHECK_FAMILY(order_family);
    CHECK_FAMILY(batch_family);
}

/* ---- Stages with functions ---- */

static mr_status keep_all(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *stays = true;
    return MR_OK;
}

static mr_status made(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *output = mr_dataset_range(0, 2, 1);
    return MR_OK;
}

static mr_status step(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                      mr_element *output, mr_error *error)
{
    (void)context, (void)input, (void)error;
    next_state->tensors[0] = mr_tensor_ref(&state->tensors[0]);
    output->tensors[0] = mr_tensor_ref(&state->tensors[0]);
    next_state->count = output->count = 1;
    return MR_OK;
}

static mr_status key(void *context, const mr_element *input, int64_t *result, mr_error *error)
{
    (void)context, (void)error;
    *result = mr_tensor_int64s(&input->tensors[0])[0] % 2;
    return MR_OK;
}

static mr_status group(void *context, int64_t which, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)which, (void)error;
    *output = window;
    return MR_OK;
}

static int64_t size_of_group(void *context, int64_t which)
{
    (void)context, (void)which;
    return 2;
}

static mr_dataset *scanned(int64_t initial)
{
    mr_tensor number = scalar(initial);
    const mr_element state = {.count = 1, .tensors = &number};
    mr_dataset *d = mr_dataset_scan(numbers(), &state, step, nullptr, &one_int64);
    mr_tensor_deinit(&number);
    return d;
}

static mr_dataset *function_family(int variant)
{
    const double halves[] = {0.5, 0.5}, quarters[] = {0.25, 0.75};
    const mr_element_spec unknown = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = -1}}};
    switch (variant) {
    case 0:
        return mr_dataset_map(numbers(), jitter, nullptr, &one_int64);
    case 1:
        return mr_dataset_map(numbers(), jitter, nullptr, &one_int64, .seed = 1);
    case 2:
        return mr_dataset_map(numbers(), jitter, nullptr, &unknown);
    case 3:
        return mr_dataset_filter(numbers(), keep_all, nullptr);
    case 4:
        return mr_dataset_take_while(numbers(), keep_all, nullptr);
    case 5:
        return mr_dataset_flat_map(numbers(), made, nullptr, &one_int64);
    case 6:
        return mr_dataset_flat_map(numbers(), made, nullptr, &unknown);
    case 7:
        return mr_dataset_interleave(numbers(), made, nullptr, &one_int64, .cycle_length = 2);
    case 8:
        return mr_dataset_interleave(numbers(), made, nullptr, &one_int64, .cycle_length = 3);
    case 9:
        return mr_dataset_interleave(numbers(), made, nullptr, &one_int64, .cycle_length = 2, .block_length = 2);
    case 10:
        return scanned(1);
    case 11:
        return scanned(2);
    case 12:
        return mr_dataset_rejection_resample(numbers(), key, nullptr, halves, 2);
    case 13:
        return mr_dataset_rejection_resample(numbers(), key, nullptr, quarters, 2);
    case 14:
        return mr_dataset_rejection_resample(numbers(), key, nullptr, halves, 2, .seed = 1);
    case 15:
        return mr_dataset_rejection_resample(numbers(), key, nullptr, halves, 2, .initial_dist = halves);
    case 16:
        return mr_dataset_rejection_resample(numbers(), key, nullptr, halves, 2, .initial_dist = quarters);
    case 17:
        return mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 2);
    case 18:
        return mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 3);
    case 19:
        return mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 2, .shift = 1);
    case 20:
        return mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 2, .stride = 2);
    case 21:
        return mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 2, .drop_remainder = true);
    case 22:
        return mr_dataset_group_by_window(numbers(), key, group, nullptr, &one_int64, .window_size = 2);
    case 23:
        return mr_dataset_group_by_window(numbers(), key, group, nullptr, &one_int64, .window_size = 3);
    case 24:
        return mr_dataset_group_by_window(numbers(), key, group, nullptr, &one_int64,
                                          .window_size_func = size_of_group);
    default:
        return nullptr;
    }
}

static mr_dataset *choice_family(int variant)
{
    mr_dataset *inputs[] = {numbers(), mr_dataset_range(5, 17, 1)};
    switch (variant) {
    case 0:
        return mr_dataset_sample_from_datasets(inputs, nullptr, 2);
    case 1:
        return mr_dataset_sample_from_datasets(inputs, nullptr, 2, .seed = 1);
    case 2:
        return mr_dataset_sample_from_datasets(inputs, nullptr, 2, .stop_on_empty_dataset = true);
    case 3:
        return mr_dataset_sample_from_datasets(inputs, ((double[]){1, 2}), 2);
    case 4:
        return mr_dataset_sample_from_datasets(inputs, ((double[]){1, 3}), 2);
    case 5:
        return mr_dataset_choose_from_datasets(inputs, 2, mr_dataset_range(0, 2, 1));
    case 6:
        return mr_dataset_choose_from_datasets(inputs, 2, mr_dataset_range(1, 2, 1));
    case 7:
        return mr_dataset_choose_from_datasets(inputs, 2, mr_dataset_range(0, 2, 1), .stop_on_empty_dataset = true);
    default:
        mr_dataset_free(inputs[0]);
        mr_dataset_free(inputs[1]);
        return nullptr;
    }
}

static mr_dataset *bucket_family(int variant)
{
    if (variant > 9) return nullptr;
    int64_t boundaries[] = {4, 8, 9}, sizes[] = {2, 3, 4, 5};
    mr_tensor one = scalar(1);
    mr_bucket_options options = {.size = sizeof options};
    int32_t count = 2;
    if (variant == 1) boundaries[1] = 7;
    if (variant == 2) sizes[2] = 5;
    if (variant == 3) count = 3;
    if (variant == 4) options.drop_remainder = true;
    if (variant == 5) options.pad_to_bucket_boundary = true;
    if (variant == 6) options.no_padding = true;
    if (variant == 7) options.padded_shapes = &MR_SHAPE(9);
    if (variant == 8) options.padded_shapes = &MR_SHAPE(10);
    if (variant == 9) options.padding_values = &one;
    mr_dataset *d = mr_dataset_bucket_by_sequence_length_(rows(), key, nullptr, boundaries, count, sizes, &options);
    mr_tensor_deinit(&one);
    return d;
}

TEST(digest_covers_stages_with_functions)
{
    CHECK_FAMILY(function_family);
    CHECK_FAMILY(choice_family);
    CHECK_FAMILY(bucket_family);
}

/* The digest covers the graph's nodes, so a graph needs no `version`. */
static mr_dataset *graph_family(int variant)
{
    if (variant > 3) return nullptr;
    mr_graph *g = mr_graph_new();
    mr_output n = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR);
    mr_output one = mr_add_v2(g, n, mr_constant_int64(g, variant == 1 ? 2 : 1));
    mr_output two = variant == 2 ? mr_square(g, one) : mr_add_v2(g, one, one);
    return mr_dataset_map_graph(numbers(), g, MR_OUTPUTS(n), variant == 3 ? MR_OUTPUTS(one) : MR_OUTPUTS(two));
}

TEST(digest_covers_graphs)
{
    CHECK_FAMILY(graph_family);
}

/* ---- Settings that do not affect elements ---- */

TEST(digest_leaves_out_what_changes_no_element)
{
    uint64_t plain = digest_of(numbers());
    CHECK_EQ(digest_of(mr_dataset_prefetch(numbers(), 3)), plain);
    CHECK_EQ(digest_of(mr_dataset_with_options(numbers(), .threads = 2, .budget_bytes = 1000)), plain);
    CHECK_EQ(digest_of(mr_dataset_copy_to_device(numbers(), "/cpu:0")), plain);
    uint64_t mapped = digest_of(mr_dataset_map(numbers(), jitter, nullptr, &one_int64));
    CHECK_EQ(
        digest_of(mr_dataset_map(numbers(), jitter, nullptr, &one_int64, .num_parallel_calls = 3, .own_input = true)),
        mapped);
    uint64_t interleaved = digest_of(mr_dataset_interleave(numbers(), made, nullptr, &one_int64, .cycle_length = 2));
    CHECK_EQ(
        digest_of(mr_dataset_interleave(numbers(), made, nullptr, &one_int64, .cycle_length = 2, .parallel = true)),
        interleaved);
    CHECK_EQ(digest_of(mr_dataset_cache(numbers(), "a")), digest_of(mr_dataset_cache(numbers(), "b")));
    CHECK_EQ(digest_of(mr_dataset_snapshot(numbers(), "a")),
             digest_of(mr_dataset_snapshot(numbers(), "b", .gzip = true)));
    /* The digest is the same for any worker and any number of workers. */
    uint64_t worker = digest_of(mr_dataset_distribute(numbers(), 12, 2, 0, MR_DISTRIBUTE_MASK));
    CHECK_EQ(digest_of(mr_dataset_distribute(numbers(), 12, 2, 1, MR_DISTRIBUTE_MASK)), worker);
    CHECK_EQ(digest_of(mr_dataset_distribute(numbers(), 12, 4, 3, MR_DISTRIBUTE_MASK)), worker);
}
