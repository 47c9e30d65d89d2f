/* Results of user functions are validated before use. Invalid counts, dtypes, shapes, sizes and pointers are errors of
 * the element, and nothing outside the results is read or freed. */
#include "tests/pipeline/pipelines.h"

/* ---- Outputs with one error each ---- */

static const mr_element_spec one_vector = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{1, {-1}}}};

enum { WRONGS = 15 };

static mr_status make_wrong(int which, mr_element *output, mr_error *error)
{
    mr_tensor *tensor = &output->tensors[0];
    MR_TRY(mr_tensor_init(tensor, MR_INT64, MR_SHAPE(4), error));
    output->count = 1;
    switch (which) {
    case 0:
        output->count = MR_COMPONENTS_MAX + 1;
        break;
    case 1:
        output->count = INT32_MAX;
        break;
    case 2:
        output->count = -1;
        break;
    case 3:
        output->count = INT32_MIN;
        break;
    case 4:
        output->count = 0;
        break;
    case 5: /* the second component is not set */
        output->count = 2;
        break;
    case 6:
        output->count = MR_COMPONENTS_MAX;
        break;
    case 7:
        tensor->dtype = MR_FLOAT;
        break;
    case 8:
        tensor->dtype = (mr_dtype)-5;
        break;
    case 9:
        tensor->shape.dims[0] = -1;
        break;
    case 10:
        tensor->shape.dims[0] = INT64_MIN;
        break;
    case 11:
        tensor->shape.rank = -1;
        break;
    case 12:
        tensor->shape.dims[0] = 1 << 20; /* more than the buffer holds */
        break;
    case 13:
        tensor->data = nullptr;
        break;
    default:
        mr_tensor_deinit(tensor);
        *tensor = (mr_tensor){.dtype = MR_INT64, .shape = MR_SHAPE(4)}; /* no data */
    }
    return MR_OK;
}

static mr_status wrong_map(void *context, const mr_element *, mr_random *, mr_element *output, mr_error *error)
{
    return make_wrong(*(const int *)context, output, error);
}

static mr_status wrong_next(void *context, void *, mr_element *output, mr_error *error)
{
    return make_wrong(*(const int *)context, output, error);
}

static mr_status wrong_output(void *context, const mr_element *state, const mr_element *, mr_element *next,
                              mr_element *output, mr_error *error)
{
    next->tensors[0] = mr_tensor_ref(&state->tensors[0]);
    next->count = 1;
    return make_wrong(*(const int *)context, output, error);
}

static mr_status wrong_state(void *context, const mr_element *, const mr_element *, mr_element *next,
                             mr_element *output, mr_error *error)
{
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(4), error));
    output->count = 1;
    return make_wrong(*(const int *)context, next, error);
}

static mr_dataset *scanned(mr_scan_function function, int *which)
{
    mr_error error = {0};
    mr_element state = {0};
    CHECK_OK(mr_element_init(&state, 1, &error));
    CHECK_OK(mr_tensor_init(&state.tensors[0], MR_INT64, MR_SHAPE(4), &error));
    mr_dataset *d = mr_dataset_scan(mr_dataset_range(0, 20, 1), &state, function, which, &one_vector);
    mr_element_deinit(&state);
    return d;
}

static mr_dataset *wrong_dataset(int stage, int *which)
{
    switch (stage) {
    case 0:
        return mr_dataset_map(mr_dataset_range(0, 20, 1), wrong_map, which, &one_vector);
    case 1:
        return mr_dataset_map(mr_dataset_batch(mr_dataset_range(0, 80, 1), 4), wrong_map, which, &one_vector);
    case 2:
        return mr_dataset_map(mr_dataset_range(0, 20, 1), wrong_map, which, &one_vector, .own_input = true);
    case 3:
        return mr_dataset_generator(&(mr_generator){.next = wrong_next}, which, &one_vector);
    case 4:
        return scanned(wrong_output, which);
    default:
        return scanned(wrong_state, which);
    }
}

TEST(callbacks_that_make_impossible_elements_are_errors)
{
    for (int stage = 0; stage < 6; stage++)
        for (int which = 0; which < WRONGS; which++) {
            mr_error error = {0};
            mr_iterator *iterator = nullptr;
            mr_element element = {0};
            mr_dataset *d = wrong_dataset(stage, &which);
            CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
            for (int i = 0; i < 20; i++) {
                error = (mr_error){0};
                mr_status status = mr_iterator_next(iterator, &element, &error);
                if (status != MR_INVALID_ARGUMENT || error.message[0] == '\0')
                    test_fail(__FILE__, __LINE__, "stage %d, output %d: %s: %s", stage, which, mr_status_name(status),
                              error.message);
            }
            mr_element_deinit(&element);
            mr_iterator_free(iterator);
            mr_dataset_free(d);
        }
}

/* A function that fails may leave an invalid output. */
static mr_status fail_halfway(void *context, const mr_element *, mr_random *, mr_element *output, mr_error *error)
{
    MR_TRY(make_wrong(*(const int *)context, output, error));
    return mr_fail(error, MR_INTERNAL, "halfway");
}

TEST(callbacks_that_fail_may_leave_anything)
{
    for (int which = 0; which < WRONGS; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 8, 1), fail_halfway, &which, &one_vector);
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        for (int i = 0; i < 8; i++) {
            CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INTERNAL);
            CHECK_CONTAINS(error.message, "halfway");
        }
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

/* ---- Reduce, keys, datasets ---- */

static mr_status reduce_wrong(void *context, const mr_element *, const mr_element *, mr_element *next, mr_error *error)
{
    MR_TRY(mr_tensor_init_int64(&next->tensors[0], 1, error));
    next->count = *(const int32_t *)context;
    return MR_OK;
}

TEST(callbacks_of_reduce_are_checked)
{
    const int32_t counts[] = {-1, INT32_MIN, MR_COMPONENTS_MAX + 1, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        mr_error error = {0};
        mr_element state = {0};
        CHECK_OK(mr_element_init(&state, 1, &error));
        CHECK_OK(mr_tensor_init_int64(&state.tensors[0], 0, &error));
        mr_dataset *d = mr_dataset_range(0, 3, 1);
        CHECK_STATUS(mr_dataset_reduce(d, &state, reduce_wrong, (void *)&counts[i], &error), MR_INVALID_ARGUMENT);
        CHECK_EQ(state.count, 1);
        CHECK_STATUS(mr_dataset_reduce(d, &state, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
        mr_element_deinit(&state);
        mr_dataset_free(d);
    }
}

static mr_status any_key(void *context, const mr_element *, int64_t *key, mr_error *)
{
    *key = *(const int64_t *)context;
    return MR_OK;
}

static int64_t any_size(void *context, int64_t)
{
    return *(const int64_t *)context;
}

static mr_status zero_key(void *, const mr_element *, int64_t *key, mr_error *)
{
    *key = 0;
    return MR_OK;
}

static mr_status no_dataset(void *, int64_t, mr_dataset *window, mr_dataset **output, mr_error *)
{
    mr_dataset_free(window);
    *output = nullptr;
    return MR_OK;
}

static mr_status pass_group(void *, int64_t, mr_dataset *window, mr_dataset **output, mr_error *)
{
    *output = window;
    return MR_OK;
}

static mr_status no_dataset_of(void *, const mr_element *, mr_dataset **output, mr_error *)
{
    *output = nullptr;
    return MR_OK;
}

/* The first call returns an error whose message contains `part`. */
static void check_fails(mr_dataset *d, const char *part)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    mr_status status = mr_iterator_next(iterator, &element, &error);
    CHECK(status != MR_OK && status != MR_OUT_OF_RANGE);
    CHECK_CONTAINS(error.message, part);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(callbacks_that_make_no_key_size_or_dataset)
{
    static const double half[] = {0.5, 0.5};
    const int64_t numbers[] = {-1, 2, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++)
        check_fails(mr_dataset_rejection_resample(mr_dataset_range(0, 9, 1), any_key, (void *)&numbers[i], half, 2),
                    "class");
    const int64_t sizes[] = {0, -1, INT64_MIN};
    for (int i = 0; i < 3; i++)
        check_fails(mr_dataset_group_by_window(mr_dataset_range(0, 9, 1), zero_key, pass_group, (void *)&sizes[i],
                                               &one_int64, .window_size_func = any_size),
                    "window");
    check_fails(mr_dataset_group_by_window(mr_dataset_range(0, 9, 1), zero_key, no_dataset, nullptr, &one_int64,
                                           .window_size = 2),
                "dataset");
    check_fails(mr_dataset_flat_map(mr_dataset_range(0, 9, 1), no_dataset_of, nullptr, &one_int64), "flat_map");
    check_fails(
        mr_dataset_choose_from_datasets((mr_dataset *[]){mr_dataset_range(0, 9, 1)}, 1, mr_dataset_range(7, 9, 1)),
        "choose_from");
}

/* ---- Memory for batches ---- */

static mr_status no_buffer(void *, size_t, mr_buffer **buffer, mr_error *)
{
    *buffer = nullptr;
    return MR_OK;
}

static mr_status small_buffer(void *, size_t, mr_buffer **buffer, mr_error *error)
{
    return mr_buffer_new(8, buffer, error);
}

TEST(callbacks_that_allocate_too_little)
{
    for (int which = 0; which < 2; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 90, 1), 30);
        mr_iterator_options options = {.size = sizeof options, .allocate = which == 0 ? no_buffer : small_buffer};
        CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "expected 240");
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}
