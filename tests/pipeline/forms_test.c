/* Ragged and sparse elements: rows of a sparse tensor, and batches of elements of different sizes. */
#include "tests/pipeline/pipelines.h"

/* The components of an element as text, for example "[2,1] 0 1;[2] 5 6;[1] 5"; strings unquoted. */
static const char *text_of(const mr_element *element)
{
    static char text[2048];
    char shape[MR_SHAPE_TEXT_SIZE];
    size_t used = 0;
    for (int32_t c = 0; c < element->count; c++) {
        const mr_tensor *tensor = &element->tensors[c];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", c > 0 ? ";" : "",
                                 mr_shape_text(tensor->shape, shape, sizeof shape));
        for (int64_t i = 0; i < mr_tensor_count(tensor) && used < sizeof text; i++) {
            if (tensor->dtype == MR_STRING)
                used +=
                    (size_t)snprintf(text + used, sizeof text - used, " %.*s",
                                     (int)mr_tensor_strings(tensor)[i].size_bytes, mr_tensor_strings(tensor)[i].data);
            else
                used += (size_t)snprintf(text + used, sizeof text - used, " %lld",
                                         tensor->dtype == MR_INT32 ? (long long)mr_tensor_int32s(tensor)[i]
                                                                   : (long long)mr_tensor_int64s(tensor)[i]);
        }
    }
    return text;
}

/* Compares the elements of a dataset, or their error messages, with texts, and frees it. */
static void check_texts(mr_dataset *dataset, const char *const *texts, int count)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    for (int i = 0; i < count; i++) {
        mr_status status = mr_iterator_next(iterator, &element, &error);
        CHECK_CONTAINS(status == MR_OK ? text_of(&element) : error.message, texts[i]);
        if (status == MR_OK) CHECK_EQ(strlen(text_of(&element)), strlen(texts[i]));
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
}
#define CHECK_TEXTS(dataset, ...)                                                                                      \
    check_texts((dataset), (const char *const[]){__VA_ARGS__},                                                         \
                (int)(sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *)))

static void check_failed(mr_dataset *dataset, mr_status status, const char *message)
{
    mr_error error = {0};
    CHECK_STATUS(mr_dataset_status(dataset, &error), status);
    CHECK_CONTAINS(error.message, message);
    mr_dataset_free(dataset);
}

/* ---- Sparse slices ---- */

static mr_dataset *sparse(int64_t count, int64_t rank, const int64_t *states, const int64_t *sizes)
{
    mr_error error = {0};
    mr_tensor indices = {0}, values = {0}, shape = {0};
    CHECK_OK(mr_tensor_init_copy(&indices, MR_INT64, MR_SHAPE(count, rank), states, &error));
    CHECK_OK(mr_tensor_init(&values, MR_INT32, MR_SHAPE(count), &error));
    for (int32_t i = 0; i < count; i++) mr_tensor_int32s(&values)[i] = i + 1;
    CHECK_OK(mr_tensor_init_copy(&shape, MR_INT64, MR_SHAPE(rank), sizes, &error));
    mr_dataset *d = mr_dataset_from_sparse_slices(&indices, &values, &shape);
    mr_tensor_deinit(&indices);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&shape);
    return d;
}

TEST(forms_sparse_slices_are_the_rows)
{
    const int64_t states[] = {0, 1, 2, 0, 2, 3}, sizes[] = {4, 5};
    mr_dataset *d = sparse(3, 2, states, sizes);
    CHECK_EQ(mr_dataset_cardinality(d), 4);
    CHECK_EQ(mr_dataset_spec(d)->shapes[0].dims[0], -1);
    CHECK_EQ(mr_dataset_spec(d)->shapes[0].dims[1], 1);
    CHECK_TEXTS(d, "[1,1] 1;[1] 1;[1] 5", "[0,1];[0];[1] 5", "[2,1] 0 3;[2] 2 3;[1] 5", "[0,1];[0];[1] 5");
    CHECK_TEXTS(sparse(2, 1, (int64_t[]){0, 2}, (int64_t[]){3}), "[1,0];[1] 1;[0]", "[0,0];[0];[0]", "[1,0];[1] 2;[0]");
    CHECK_TEXTS(sparse(2, 3, (int64_t[]){1, 5, 0, 1, 2, 1}, (int64_t[]){2, 6, 2}), "[0,2];[0];[2] 6 2",
                "[2,2] 5 0 2 1;[2] 1 2;[2] 6 2");
    /* The cost of random order and of states does not depend on the number of rows. */
    d = sparse(1, 2, (int64_t[]){INT64_C(1) << 39, 1}, (int64_t[]){INT64_C(1) << 40, 2});
    CHECK_TEXTS(mr_dataset_take(mr_dataset_skip(d, INT64_C(1) << 39), 2), "[1,1] 1;[1] 1;[1] 2", "[0,1];[0];[1] 2");
    CHECK_EQ(mr_dataset_cardinality(d = sparse(0, 2, (int64_t[]){0}, (int64_t[]){0, 2})), 0);
    mr_dataset_free(d);
}

TEST(forms_sparse_slices_refuses_what_is_none)
{
    mr_error error = {0};
    check_failed(sparse(2, 2, (int64_t[]){2, 0, 0, 1}, (int64_t[]){3, 3}), MR_UNIMPLEMENTED,
                 "sparse_slices: the values must be ordered by row: value 1 is in row 0");
    check_failed(sparse(2, 2, (int64_t[]){0, 1, 5, 0}, (int64_t[]){3, 3}), MR_INVALID_ARGUMENT,
                 "value 1: index 5 in dimension 0 is out of range (size 3)");
    check_failed(sparse(2, 2, (int64_t[]){0, 1, 1, 3}, (int64_t[]){3, 3}), MR_INVALID_ARGUMENT,
                 "index 3 in dimension 1");
    check_failed(sparse(2, 2, (int64_t[]){-1, 1, 1, 2}, (int64_t[]){3, 3}), MR_INVALID_ARGUMENT,
                 "index -1 in dimension 0");
    check_failed(sparse(1, 2, (int64_t[]){0, 0}, (int64_t[]){2, -2}), MR_INVALID_ARGUMENT, "size -2 in dimension 1");
    mr_tensor matrix = {0}, vector = {0}, none = {0}, number = {0};
    CHECK_OK(mr_tensor_init_copy(&matrix, MR_INT64, MR_SHAPE(1, 2), (int64_t[]){0, 0}, &error));
    CHECK_OK(mr_tensor_init_copy(&vector, MR_INT64, MR_SHAPE(2), (int64_t[]){2, 2}, &error));
    CHECK_OK(mr_tensor_init(&none, MR_INT64, MR_SHAPE(0), &error));
    CHECK_OK(mr_tensor_init_int64(&number, 3, &error));
    check_failed(mr_dataset_from_sparse_slices(&vector, &vector, &vector), MR_INVALID_ARGUMENT, "indices must be a");
    check_failed(mr_dataset_from_sparse_slices(&matrix, &number, &vector), MR_INVALID_ARGUMENT, "values must be a");
    check_failed(mr_dataset_from_sparse_slices(&matrix, &matrix, &vector), MR_INVALID_ARGUMENT, "values must be a");
    check_failed(mr_dataset_from_sparse_slices(&matrix, &vector, &matrix), MR_INVALID_ARGUMENT, "dense shape must be");
    check_failed(mr_dataset_from_sparse_slices(&matrix, &vector, &vector), MR_INVALID_ARGUMENT,
                 "2 values, but 1 indices");
    mr_tensor one = {0}, long_one = {0};
    CHECK_OK(mr_tensor_rows(&vector, 0, 1, &one, &error));
    check_failed(mr_dataset_from_sparse_slices(&matrix, &one, &none), MR_INVALID_ARGUMENT, "without dimensions");
    check_failed(mr_dataset_from_sparse_slices(&matrix, &one, &one), MR_INVALID_ARGUMENT, "indices have 2 dimensions");
    check_failed(mr_dataset_from_sparse_slices(&long_one, &one, &one), MR_INVALID_ARGUMENT, "indices must be a");
    mr_tensor_deinit(&matrix);
    mr_tensor_deinit(&vector);
    mr_tensor_deinit(&none);
    mr_tensor_deinit(&number);
    mr_tensor_deinit(&one);
}

/* ---- Batches ---- */

/* Elements of given shapes, filled with 0, 1, 2 …, as strings if dtype is MR_STRING. */
typedef struct shapes_source {
    int count;
    mr_dtype dtype;
    mr_shape shapes[8];
} shapes_source;

static mr_status shapes_open(void *context, uint64_t iteration, void **state, mr_error *error)
{
    (void)context, (void)iteration;
    *state = calloc(2, sizeof(int));
    return *state != nullptr ? MR_OK : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
}

static mr_status shapes_next(void *context, void *state, mr_element *output, mr_error *error)
{
    const shapes_source *s = context;
    int *at = state;
    if (at[0] == s->count) return mr_fail(error, MR_OUT_OF_RANGE, "end");
    mr_shape shape = s->shapes[at[0]++];
    int64_t count = mr_shape_count(shape);
    output->count = 1;
    if (s->dtype == MR_INT32) {
        MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT32, shape, error));
        for (int64_t i = 0; i < count; i++) mr_tensor_int32s(&output->tensors[0])[i] = at[1]++;
        return MR_OK;
    }
    char bytes[16][8];
    mr_string strings[16];
    for (int64_t i = 0; i < count; i++)
        strings[i] = (mr_string){bytes[i], (size_t)snprintf(bytes[i], sizeof bytes[i], "s%d", at[1]++)};
    return mr_tensor_init_strings(&output->tensors[0], shape, strings, error);
}

static void shapes_close(void *context, void *state)
{
    (void)context;
    free(state);
}

static mr_dataset *shapes(const shapes_source *source, mr_shape shape)
{
    const mr_generator generator = {.open = shapes_open, .next = shapes_next, .close = shapes_close};
    const mr_element_spec spec = {.count = 1, .dtypes = {source->dtype}, .shapes = {shape}};
    return mr_dataset_generator(&generator, (void *)source, &spec);
}

static const shapes_source vectors = {5, MR_INT32, {MR_SHAPE(2), MR_SHAPE(0), MR_SHAPE(3), MR_SHAPE(1), MR_SHAPE(4)}};
static const shapes_source words = {3, MR_STRING, {MR_SHAPE(2), MR_SHAPE(0), MR_SHAPE(3)}};
static const shapes_source matrices = {4, MR_INT32, {MR_SHAPE(2, 2), MR_SHAPE(0, 3), MR_SHAPE(1, 0), MR_SHAPE(3, 1)}};
static const shapes_source pairs = {3, MR_INT32, {MR_SHAPE(1, 2), MR_SHAPE(0, 2), MR_SHAPE(2, 2)}};
static const shapes_source columns = {3, MR_INT32, {MR_SHAPE(2, 1), MR_SHAPE(2, 0), MR_SHAPE(2, 2)}};

TEST(forms_ragged_batch_keeps_sizes)
{
    mr_shape any = MR_SHAPE(-1), square = MR_SHAPE(-1, -1);
    mr_dataset *d = mr_dataset_dense_to_ragged_batch(shapes(&vectors, any), 2);
    CHECK_EQ(mr_dataset_spec(d)->count, 2);
    CHECK_EQ(mr_dataset_spec(d)->dtypes[1], MR_INT64);
    CHECK_TEXTS(d, "[2] 0 1;[3] 0 2 2", "[4] 2 3 4 5;[3] 0 3 4", "[4] 6 7 8 9;[2] 0 4");
    d = mr_dataset_dense_to_ragged_batch(shapes(&vectors, any), 2, .drop_remainder = true,
                                         .row_splits_dtype = MR_INT32);
    CHECK_EQ(mr_dataset_spec(d)->dtypes[1], MR_INT32);
    CHECK_EQ(mr_dataset_spec(d)->shapes[1].dims[0], 3);
    CHECK_TEXTS(d, "[2] 0 1;[3] 0 2 2", "[4] 2 3 4 5;[3] 0 3 4");
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&words, any), 2), "[2] s0 s1;[3] 0 2 2",
                "[3] s2 s3 s4;[2] 0 3");
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&matrices, square), 2), "[4] 0 1 2 3;[3] 0 2 2;[3] 0 2 4",
                "[3] 4 5 6;[3] 0 1 4;[5] 0 0 1 2 3");
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&pairs, MR_SHAPE(-1, 2)), 2), "[1,2] 0 1;[3] 0 1 1",
                "[2,2] 2 3 4 5;[2] 0 2");
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&columns, MR_SHAPE(2, -1)), 2),
                "[2] 0 1;[3] 0 2 4;[5] 0 1 2 2 2", "[4] 2 3 4 5;[2] 0 2;[3] 0 2 4");
    /* Components of known shape have no splits. */
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(mr_dataset_enumerate(mr_dataset_range(5, 8, 1), 0), 2),
                "[2] 0 1;[2] 5 6", "[1] 2;[1] 7");
    /* If the rank is unknown, the sizes must be equal. */
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&vectors, MR_SHAPE_UNKNOWN), 2),
                "shapes in a batch must be equal", "shapes in a batch must be equal", "[1,4] 6 7 8 9");
}

TEST(forms_sparse_batch_has_all_values)
{
    mr_shape any = MR_SHAPE(-1), square = MR_SHAPE(-1, -1);
    CHECK_TEXTS(mr_dataset_dense_to_sparse_batch(shapes(&vectors, any), 2, MR_SHAPE(4)),
                "[2,2] 0 0 0 1;[2] 0 1;[2] 2 4", "[4,2] 0 0 0 1 0 2 1 0;[4] 2 3 4 5;[2] 2 4",
                "[4,2] 0 0 0 1 0 2 0 3;[4] 6 7 8 9;[2] 1 4");
    CHECK_TEXTS(mr_dataset_dense_to_sparse_batch(shapes(&vectors, any), 2, any, .drop_remainder = true),
                "[2,2] 0 0 0 1;[2] 0 1;[2] 2 2", "[4,2] 0 0 0 1 0 2 1 0;[4] 2 3 4 5;[2] 2 3");
    CHECK_TEXTS(mr_dataset_dense_to_sparse_batch(shapes(&matrices, square), 2, MR_SHAPE(3, -1)),
                "[4,3] 0 0 0 0 0 1 0 1 0 0 1 1;[4] 0 1 2 3;[3] 2 3 3", "[3,3] 1 0 0 1 1 0 1 2 0;[3] 4 5 6;[3] 2 3 1");
    CHECK_TEXTS(mr_dataset_dense_to_sparse_batch(mr_dataset_range(5, 8, 1), 2, MR_SCALAR), "[2,1] 0 1;[2] 5 6;[1] 2",
                "[1,1] 0;[1] 7;[1] 1");
    CHECK_TEXTS(mr_dataset_dense_to_sparse_batch(shapes(&words, MR_SHAPE_UNKNOWN), 3, any),
                "[5,2] 0 0 0 1 2 0 2 1 2 2;[5] s0 s1 s2 s3 s4;[2] 3 3");
}

TEST(forms_batches_refuse_what_does_not_fit)
{
    mr_shape any = MR_SHAPE(-1);
    mr_error error = {0};
    mr_element element = {0};
    mr_iterator *iterator = nullptr;
    mr_dataset *d = mr_dataset_dense_to_sparse_batch(shapes(&vectors, any), 2, MR_SHAPE(2));
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "element 0 has shape [3], which is larger than the row shape [2]");
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_DATA_LOSS);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    d = mr_dataset_dense_to_sparse_batch(shapes(&matrices, MR_SHAPE(-1, -1)), 2, MR_SHAPE(5));
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "element 0 has shape [2,2], whose rank differs from that of the row shape [5]");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    /* Rows without values still need splits. */
    const shapes_source hollow = {1, MR_INT32, {MR_SHAPE(INT64_C(1) << 40, 0)}};
    CHECK_TEXTS(mr_dataset_dense_to_ragged_batch(shapes(&hollow, MR_SHAPE(-1, -1)), 2), "exceeds the budget");

    check_failed(mr_dataset_dense_to_sparse_batch(mr_dataset_enumerate(mr_dataset_range(0, 3, 1), 0), 2, MR_SCALAR),
                 MR_INVALID_ARGUMENT, "elements have 2 components, expected 1");
    check_failed(mr_dataset_dense_to_sparse_batch(mr_dataset_range(0, 3, 1), 0, MR_SCALAR), MR_INVALID_ARGUMENT,
                 "size is 0, expected 1 to");
    check_failed(mr_dataset_dense_to_sparse_batch(shapes(&vectors, any), 2, MR_SHAPE(-2)), MR_INVALID_ARGUMENT,
                 "size -2 in dimension 0");
    check_failed(mr_dataset_dense_to_sparse_batch(shapes(&vectors, any), 2, MR_SHAPE_UNKNOWN), MR_INVALID_ARGUMENT,
                 "row_shape has -1 dimensions");
    check_failed(mr_dataset_dense_to_ragged_batch(shapes(&vectors, any), 2, .row_splits_dtype = MR_FLOAT),
                 MR_INVALID_ARGUMENT, "row_splits_dtype is float");
    check_failed(mr_dataset_dense_to_ragged_batch(shapes(&vectors, any), 0), MR_INVALID_ARGUMENT,
                 "size is 0, expected 1 to");
}

/* ---- Threads and states ---- */

/* `number` modulo 5 random values. */
static mr_status spread(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context;
    int64_t count = mr_tensor_int64s(&input->tensors[0])[0] % 5;
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(count), error));
    output->count = 1;
    for (int64_t i = 0; i < count; i++)
        mr_tensor_int64s(&output->tensors[0])[i] = (int64_t)mr_random_below(random, 1000);
    return MR_OK;
}

static mr_status stays_when_some(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context, (void)error;
    *stays = input->tensors[0].shape.dims[0] != 2;
    return MR_OK;
}

static mr_dataset *chain(int which)
{
    static const mr_element_spec vector = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};
    mr_dataset *d = mr_dataset_map(mr_dataset_shuffle(mr_dataset_range(0, 41, 1), .seed = 1), spread, nullptr, &vector);
    mr_dataset *sliced = sparse(4, 2, (int64_t[]){0, 1, 3, 0, 3, 3, 30, 2}, (int64_t[]){37, 5});
    mr_dataset *used = which < 4 ? d : sliced;
    mr_dataset_free(which < 4 ? sliced : d);
    switch (which) {
    case 0:
        return mr_dataset_prefetch(mr_dataset_dense_to_ragged_batch(mr_dataset_repeat(used, 2), 4), 2);
    case 1:
        return mr_dataset_repeat(
            mr_dataset_shuffle(mr_dataset_dense_to_sparse_batch(used, 3, MR_SHAPE(-1)), .buffer_size = 4), 2);
    case 2:
        return mr_dataset_dense_to_ragged_batch(mr_dataset_filter(mr_dataset_zip(&used, 1), stays_when_some, nullptr),
                                                3, .drop_remainder = true);
    case 3:
        return mr_dataset_dense_to_ragged_batch(mr_dataset_dense_to_ragged_batch(used, 3), 2,
                                                .row_splits_dtype = MR_INT32);
    case 4:
        return mr_dataset_repeat(mr_dataset_shuffle(used, .seed = 2), 2);
    default:
        return mr_dataset_dense_to_ragged_batch(mr_dataset_shuffle(used, .buffer_size = 7), 5);
    }
}

TEST(forms_are_the_same_at_any_number_of_threads_and_from_any_position)
{
    for (int which = 0; which < 6; which++) {
        check_threads(chain, which);
        check_states(chain, which, 4096);
        check_restored(chain, which);
    }
}
