/* Invalid arguments of every builder in dataset.h: null, negative, zero and huge. Each must fail with a one-line
 * message, and so must creating an iterator from the dataset. Each case runs in its own process, so that a crash is
 * attributed to it. */
#include "tests/pipeline/pipelines.h"

#include <sys/wait.h>
#include <unistd.h>

static mr_dataset *numbers(void)
{
    return mr_dataset_range(0, 10, 1);
}

static mr_dataset *strings(void)
{
    mr_error error = {0};
    mr_tensor text = {0};
    CHECK_OK(mr_tensor_init_string(&text, MR_STR("text"), &error));
    mr_dataset *d = mr_dataset_from_tensors(&text, 1);
    mr_tensor_deinit(&text);
    return d;
}

static mr_dataset *vectors(void)
{
    return mr_dataset_batch(numbers(), 3);
}

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
static mr_status open_dataset(void *, const mr_element *, mr_dataset **output, mr_error *)
{
    *output = numbers();
    return MR_OK;
}
static mr_status pass_window(void *, mr_dataset *window, mr_dataset **output, mr_error *)
{
    *output = window;
    return MR_OK;
}
static mr_status pass_group(void *, int64_t, mr_dataset *window, mr_dataset **output, mr_error *)
{
    *output = window;
    return MR_OK;
}
static mr_status add(void *, const mr_element *, const mr_element *, mr_element *, mr_element *, mr_error *)
{
    return MR_OK;
}
static mr_status next(void *, void *, mr_element *, mr_error *e)
{
    return mr_fail(e, MR_OUT_OF_RANGE, "end");
}

static const mr_element_spec no_components = {0}, negative = {.count = -1}, huge = {.count = 1 << 30};
static const mr_element_spec bad_rank = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 100}}};
static const mr_element_spec bad_size = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{1, {-7}}}};
static const mr_element_spec bad_dtype = {.count = 1, .dtypes = {MR_RESOURCE}};
static const mr_element one_state = {.count = 0}, bad_state = {.count = 1 << 20}, negative_state = {.count = -1};
static const mr_element empty_state = {.count = 1};
static const double half[2] = {0.5, 0.5}, none[2] = {0, 0}, all_huge[2] = {1e308, 1e308}, below[2] = {-1, 2};
static const int64_t ascending[2] = {2, 4}, falling[2] = {4, 2}, sizes[3] = {1, 1, 1}, zeros[3] = {0, 0, 0};
static const int64_t huge_sizes[3] = {INT64_MAX, 1, 1};
static const mr_generator generator = {.next = next}, no_next = {0};
static const mr_feature nameless = {.name = nullptr, .dtype = MR_INT64};
static const mr_tensor empty, shapeless = {.dtype = MR_INT64, .shape = {.rank = -1}};
static const mr_tensor nowhere = {.dtype = MR_INT64, .shape = {1, {4}}};
static const mr_tensor ranked = {.dtype = MR_INT64, .shape = {.rank = 50}};
static const mr_tensor reversed = {.dtype = MR_INT64, .shape = {2, {4, -3}}};

static mr_dataset *two(mr_dataset **inputs)
{
    inputs[0] = numbers();
    return inputs[1] = numbers();
}

#define CASES                                                                                                          \
    C(mr_dataset_range(0, 10, 0))                                                                                      \
    C(mr_dataset_range(INT64_MIN, INT64_MAX, 1))                                                                       \
    C(mr_dataset_range(INT64_MAX, INT64_MIN, -1))                                                                      \
    C(mr_dataset_from_tensors(nullptr, 1))                                                                             \
    C(mr_dataset_from_tensors(&empty, 1))                                                                              \
    C(mr_dataset_from_tensors(&nowhere, 1))                                                                            \
    C(mr_dataset_from_tensors(&nowhere, -1))                                                                           \
    C(mr_dataset_from_slices(nullptr, 1))                                                                              \
    C(mr_dataset_from_slices(&shapeless, 1))                                                                           \
    C(mr_dataset_from_slices(&nowhere, 1))                                                                             \
    C(mr_dataset_from_slices(&ranked, 1))                                                                              \
    C(mr_dataset_from_slices(&reversed, 1))                                                                            \
    C(mr_dataset_from_slices(&nowhere, 1 << 30))                                                                       \
    C(mr_dataset_from_sparse_slices(nullptr, nullptr, nullptr))                                                        \
    C(mr_dataset_from_sparse_slices(&reversed, &nowhere, &nowhere))                                                    \
    C(mr_dataset_records(nullptr))                                                                                     \
    C(mr_dataset_records(""))                                                                                          \
    C(mr_dataset_record_files(nullptr, 1))                                                                             \
    C(mr_dataset_record_files((const char *[]){nullptr}, 1))                                                           \
    C(mr_dataset_record_files(nullptr, -1))                                                                            \
    C(mr_dataset_list_files(nullptr))                                                                                  \
    C(mr_dataset_image_directory(nullptr))                                                                             \
    C(mr_dataset_fixed_length(nullptr, 1))                                                                             \
    C(mr_dataset_fixed_length("x", 0))                                                                                 \
    C(mr_dataset_fixed_length("x", SIZE_MAX))                                                                          \
    C(mr_dataset_fixed_length("x", 1, .header_bytes = SIZE_MAX, .footer_bytes = SIZE_MAX))                             \
    C(mr_dataset_npy(nullptr, 1))                                                                                      \
    C(mr_dataset_npy((const char *[]){nullptr}, 1))                                                                    \
    C(mr_dataset_npy(nullptr, INT32_MAX))                                                                              \
    C(mr_dataset_tar(nullptr, (const char *[]){"jpg"}, 1))                                                             \
    C(mr_dataset_tar("x", nullptr, 1))                                                                                 \
    C(mr_dataset_tar("x", (const char *[]){nullptr}, 1))                                                               \
    C(mr_dataset_tar("x", nullptr, 0))                                                                                 \
    C(mr_dataset_text_lines(nullptr))                                                                                  \
    C(mr_dataset_csv(nullptr, nullptr, 1))                                                                             \
    C(mr_dataset_csv("/dev/null", nullptr, 1))                                                                         \
    C(mr_dataset_csv("/dev/null", nullptr, -1))                                                                        \
    C(mr_dataset_csv("/dev/null", (&(mr_csv_column){0, MR_INT64}), 1, .column_count = -1))                             \
    C(mr_dataset_csv("/dev/null", (&(mr_csv_column){-1, MR_INT64}), 1))                                                \
    C(mr_dataset_csv("/dev/null", (&(mr_csv_column){0, MR_VARIANT}), 1))                                               \
    C(mr_dataset_csv("/dev/null", (&(mr_csv_column){0, MR_INT64, &empty}), 1))                                         \
    C(mr_dataset_generator(nullptr, nullptr, &one_int64))                                                              \
    C(mr_dataset_generator(&no_next, nullptr, &one_int64))                                                             \
    C(mr_dataset_generator(&generator, nullptr, nullptr))                                                              \
    C(mr_dataset_generator(&generator, nullptr, &negative))                                                            \
    C(mr_dataset_shuffle(numbers(), .buffer_size = -1))                                                                \
    C(mr_dataset_shuffle(mr_dataset_repeat(numbers(), MR_INFINITE), .buffer_size = INT64_MAX))                         \
    C(mr_dataset_shuffle(mr_dataset_repeat(numbers(), MR_INFINITE)))                                                   \
    C(mr_dataset_repeat(mr_dataset_range(0, INT64_MAX / 2, 1), INT64_MAX))                                             \
    C(mr_dataset_shard(numbers(), 0, 0))                                                                               \
    C(mr_dataset_shard(numbers(), INT64_MAX, INT64_MAX))                                                               \
    C(mr_dataset_shard(numbers(), 2, -1))                                                                              \
    C(mr_dataset_prefetch(numbers(), -1))                                                                              \
    C(mr_dataset_prefetch_to_device(numbers(), nullptr, 1))                                                            \
    C(mr_dataset_prefetch_to_device(numbers(), "/cpu:0", -1))                                                          \
    C(mr_dataset_prefetch_to_device(numbers(), "nonsense", 1))                                                         \
    C(mr_dataset_copy_to_device(numbers(), nullptr))                                                                   \
    C(mr_dataset_with_options(numbers(), .threads = -1))                                                               \
    C(mr_dataset_with_options(numbers(), .threads = INT32_MAX))                                                        \
    C(mr_dataset_batch(numbers(), 0))                                                                                  \
    C(mr_dataset_batch(numbers(), -1))                                                                                 \
    C(mr_dataset_batch(numbers(), INT64_MAX))                                                                          \
    C(mr_dataset_distribute(numbers(), 0, 0, 0, MR_DISTRIBUTE_PAD))                                                    \
    C(mr_dataset_distribute(numbers(), INT64_MAX, 1, 0, MR_DISTRIBUTE_PAD))                                            \
    C(mr_dataset_distribute(numbers(), 4, 2, 2, MR_DISTRIBUTE_PAD))                                                    \
    C(mr_dataset_distribute(numbers(), 4, 2, -1, MR_DISTRIBUTE_PAD))                                                   \
    C(mr_dataset_distribute(numbers(), 4, 2, 0, (mr_distribute_policy)77))                                             \
    C(mr_dataset_padded_batch(numbers(), 0))                                                                           \
    C(mr_dataset_padded_batch(numbers(), 2, .padded_shapes = &bad_rank.shapes[0]))                                     \
    C(mr_dataset_padded_batch(vectors(), 2, .padded_shapes = &bad_size.shapes[0]))                                     \
    C(mr_dataset_padded_batch(numbers(), 2, .padding_values = &empty))                                                 \
    C(mr_dataset_padded_batch(vectors(), 2, .padding_values = &nowhere))                                               \
    C(mr_dataset_dense_to_ragged_batch(numbers(), 0))                                                                  \
    C(mr_dataset_dense_to_ragged_batch(numbers(), 2, .row_splits_dtype = MR_FLOAT))                                    \
    C(mr_dataset_dense_to_sparse_batch(numbers(), 0, MR_SCALAR))                                                       \
    C(mr_dataset_dense_to_sparse_batch(numbers(), 2, MR_SHAPE_UNKNOWN))                                                \
    C(mr_dataset_dense_to_sparse_batch(vectors(), 2, MR_SHAPE(-5)))                                                    \
    C(mr_dataset_dense_to_sparse_batch(vectors(), 2, ((mr_shape){.rank = 99})))                                        \
    C(mr_dataset_map(numbers(), nullptr, nullptr, &one_int64))                                                         \
    C(mr_dataset_map(numbers(), map, nullptr, nullptr))                                                                \
    C(mr_dataset_map(numbers(), map, nullptr, &no_components))                                                         \
    C(mr_dataset_map(numbers(), map, nullptr, &negative))                                                              \
    C(mr_dataset_map(numbers(), map, nullptr, &huge))                                                                  \
    C(mr_dataset_map(numbers(), map, nullptr, &bad_rank))                                                              \
    C(mr_dataset_map(numbers(), map, nullptr, &bad_size))                                                              \
    C(mr_dataset_map(numbers(), map, nullptr, &bad_dtype))                                                             \
    C(mr_dataset_map(numbers(), map, nullptr, &one_int64, .num_parallel_calls = -1))                                   \
    C(mr_dataset_map(numbers(), map, nullptr, &one_int64, .num_parallel_calls = INT32_MAX))                            \
    C(mr_dataset_filter(numbers(), nullptr, nullptr))                                                                  \
    C(mr_dataset_filter(numbers(), keep, nullptr, .num_parallel_calls = -1))                                           \
    C(mr_dataset_take_while(numbers(), nullptr, nullptr))                                                              \
    C(mr_dataset_ignore_errors(numbers(), .errors_max = -1))                                                           \
    C(mr_dataset_zip(nullptr, 1))                                                                                      \
    C(mr_dataset_zip(nullptr, 0))                                                                                      \
    C(mr_dataset_zip(nullptr, -1))                                                                                     \
    C(mr_dataset_concatenate(numbers(), strings()))                                                                    \
    C(mr_dataset_concatenate(mr_dataset_repeat(mr_dataset_range(0, 1, 1), (int64_t)1 << 62),                           \
                             mr_dataset_repeat(mr_dataset_range(0, 1, 1), (int64_t)1 << 62)))                          \
    C(mr_dataset_flat_map(numbers(), nullptr, nullptr, &one_int64))                                                    \
    C(mr_dataset_flat_map(numbers(), open_dataset, nullptr, nullptr))                                                  \
    C(mr_dataset_interleave(numbers(), nullptr, nullptr, &one_int64))                                                  \
    C(mr_dataset_interleave(numbers(), open_dataset, nullptr, &one_int64, .cycle_length = -1))                         \
    C(mr_dataset_interleave(numbers(), open_dataset, nullptr, &one_int64, .cycle_length = INT64_MAX))                  \
    C(mr_dataset_interleave(numbers(), open_dataset, nullptr, &one_int64, .block_length = -1))                         \
    C(mr_dataset_sample_from_datasets(nullptr, nullptr, 1))                                                            \
    C(mr_dataset_sample_from_datasets(nullptr, nullptr, 0))                                                            \
    C(mr_dataset_sample_from_datasets(nullptr, nullptr, -1))                                                           \
    C(mr_dataset_sample_from_datasets((two(pair), pair), all_huge, 2))                                                 \
    C(mr_dataset_sample_from_datasets((two(pair), pair), below, 2))                                                    \
    C(mr_dataset_sample_from_datasets((two(pair), pair), ((double[]){NAN, 1}), 2))                                     \
    C(mr_dataset_choose_from_datasets(nullptr, 1, numbers()))                                                          \
    C(mr_dataset_choose_from_datasets(nullptr, 0, numbers()))                                                          \
    C(mr_dataset_choose_from_datasets(nullptr, -5, numbers()))                                                         \
    C(mr_dataset_choose_from_datasets((two(pair), pair), 2, strings()))                                                \
    C(mr_dataset_scan(numbers(), nullptr, add, nullptr, &one_int64))                                                   \
    C(mr_dataset_scan(numbers(), &one_state, nullptr, nullptr, &one_int64))                                            \
    C(mr_dataset_scan(numbers(), &bad_state, add, nullptr, &one_int64))                                                \
    C(mr_dataset_scan(numbers(), &negative_state, add, nullptr, &one_int64))                                           \
    C(mr_dataset_scan(numbers(), &empty_state, add, nullptr, &one_int64))                                              \
    C(mr_dataset_scan(numbers(), &one_state, add, nullptr, nullptr))                                                   \
    C(mr_dataset_unique(vectors()))                                                                                    \
    C(mr_dataset_unbatch(numbers()))                                                                                   \
    C(mr_dataset_unbatch(mr_dataset_repeat(mr_dataset_batch(numbers(), 5, .drop_remainder = true), (int64_t)1 << 60))) \
    C(mr_dataset_rebatch(vectors(), 0))                                                                                \
    C(mr_dataset_rebatch(numbers(), 2))                                                                                \
    C(mr_dataset_assert_cardinality(numbers(), 11))                                                                    \
    C(mr_dataset_assert_cardinality(numbers(), INT64_MIN))                                                             \
    C(mr_dataset_rejection_resample(numbers(), nullptr, nullptr, half, 2))                                             \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, nullptr, 2))                                              \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, half, 0))                                                 \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, half, -1))                                                \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, half, INT32_MAX))                                         \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, none, 2))                                                 \
    C(mr_dataset_rejection_resample(numbers(), key, nullptr, half, 2, .initial_dist = below))                          \
    C(mr_dataset_snapshot(numbers(), nullptr))                                                                         \
    C(mr_dataset_window(numbers(), nullptr, nullptr, nullptr))                                                         \
    C(mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = -1))                                      \
    C(mr_dataset_window(numbers(), nullptr, nullptr, nullptr, .window_size = 3, .shift = -1))                          \
    C(mr_dataset_window(numbers(), pass_window, nullptr, nullptr, .window_size = 3))                                   \
    C(mr_dataset_group_by_window(numbers(), nullptr, pass_group, nullptr, &one_int64, .window_size = 2))               \
    C(mr_dataset_group_by_window(numbers(), key, nullptr, nullptr, &one_int64, .window_size = 2))                      \
    C(mr_dataset_group_by_window(numbers(), key, pass_group, nullptr, nullptr, .window_size = 2))                      \
    C(mr_dataset_group_by_window(numbers(), key, pass_group, nullptr, &one_int64))                                     \
    C(mr_dataset_group_by_window(numbers(), key, pass_group, nullptr, &one_int64, .window_size = -1))                  \
    C(mr_dataset_bucket_by_sequence_length(vectors(), nullptr, nullptr, ascending, 2, sizes))                          \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, nullptr, 2, sizes))                                \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, ascending, 2, nullptr))                            \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, ascending, 0, sizes))                              \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, ascending, -1, sizes))                             \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, falling, 2, sizes))                                \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, ascending, 2, zeros))                              \
    C(mr_dataset_bucket_by_sequence_length(vectors(), key, nullptr, ascending, 2, huge_sizes))                         \
    C(mr_dataset_parse_example(strings(), nullptr, 1))                                                                 \
    C(mr_dataset_parse_example(strings(), &nameless, 1))                                                               \
    C(mr_dataset_parse_example(strings(), &nameless, 0))                                                               \
    C(mr_dataset_parse_example(strings(), &nameless, -1))                                                              \
    C(mr_dataset_parse_example(numbers(), &nameless, 1))                                                               \
    C(mr_dataset_parse_sequence_example(strings(), nullptr, 0, nullptr, 0))                                            \
    C(mr_dataset_parse_sequence_example(strings(), nullptr, -1, nullptr, -1))                                          \
    C(mr_dataset_parse_sequence_example(strings(), nullptr, 1, nullptr, 0))                                            \
    C(mr_dataset_parse_sequence_example(strings(), &nameless, 1, nullptr, 0))                                          \
    C(mr_dataset_decode_image(numbers()))                                                                              \
    C(mr_dataset_decode_image(strings(), .component = -1))                                                             \
    C(mr_dataset_decode_image(strings(), .component = INT32_MAX))                                                      \
    C(mr_dataset_decode_image(strings(), .image = MR_OPTIONS(mr_image_options, .height = -1, .width = -1)))            \
    C(mr_dataset_decode_image(strings(),                                                                               \
                              .image = MR_OPTIONS(mr_image_options, .height = INT32_MAX, .width = INT32_MAX)))         \
    C(mr_dataset_decode_image(strings(), .num_parallel_calls = -1))

static mr_dataset *build(int which)
{
    mr_dataset *pair[2] = {0};
    int number = 0;
    (void)pair;
#define C(...)                                                                                                         \
    if (number++ == which) return __VA_ARGS__;
    CASES
#undef C
    return nullptr;
}

static const char *const names[] = {
#define C(...) #__VA_ARGS__,
    CASES
#undef C
};

/* Runs in a child process. Returns 0 if the case fails as expected. */
static int run_case(int which)
{
    const char *text = names[which];
    mr_error error = {0}, again = {0};
    mr_iterator *iterator = nullptr;
    mr_dataset *d = build(which);
    mr_status status = mr_dataset_status(d, &error);
    if (status == MR_OK || status == MR_RESOURCE_EXHAUSTED || error.message[0] == '\0' ||
        strchr(error.message, '\n') != nullptr) {
        fprintf(stderr, "%s: %s: \"%s\"\n", text, mr_status_name(status), error.message);
        return 1;
    }
    bool is_same = mr_iterator_new(d, nullptr, &iterator, &again) == status && iterator == nullptr;
    (void)mr_dataset_cardinality(d);
    (void)mr_dataset_spec(d);
    /* Later stages return the same error. */
    d = mr_dataset_prefetch(mr_dataset_take(d, 3), 1);
    is_same &= mr_dataset_status(d, &again) == status && strcmp(error.message, again.message) == 0;
    mr_dataset_free(d);
    if (!is_same) fprintf(stderr, "%s: the error is not passed on: \"%s\"\n", text, again.message);
    return is_same ? 0 : 1;
}

TEST(builders_refuse_impossible_arguments)
{
    constexpr int COUNT = 0
#define C(...) +1
        CASES
#undef C
        ;
    int failures = 0;
    for (int which = 0; which < COUNT; which++) {
        fflush(nullptr);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(run_case(which));
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFSIGNALED(status))
            fprintf(stderr, "case %d (%s): %s\n", which, names[which], strsignal(WTERMSIG(status)));
        failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    CHECK_EQ(failures, 0);
}
