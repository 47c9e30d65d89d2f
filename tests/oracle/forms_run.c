/* Batches and slices of ragged and sparse elements, for forms_oracle.py. `forms_run THREADS` reads datasets from stdin,
 * one per line:
 *
 *     ragged SIZE DROP BITS DTYPE RANK SPEC… COUNT SHAPES…   elements of RANK dimensions, filled with 0, 1, 2 …
 *     sparse SIZE DROP ROW-RANK ROW… DTYPE RANK SPEC… COUNT SHAPES…
 *     slices RANK SIZES… COUNT INDICES…                      values 0, 1, 2 …
 *
 * For each dataset it prints one line per element, such as "[2] 0 1;[3] 0 2 2". At the first failure it prints "error"
 * and the status and reads no further elements. The last line is "end". */
#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = 64, VALUES_MAX = 512 };

static int64_t number(void)
{
    const char *word = strtok(nullptr, " \n");
    return word == nullptr ? 0 : strtoll(word, nullptr, 10);
}

typedef struct elements {
    mr_element_spec spec;
    int64_t count;
    mr_shape shapes[ELEMENTS_MAX];
    int64_t at, value; /* of the next element */
} elements;

static mr_status elements_next(void *context, void *state, mr_element *output, mr_error *error)
{
    (void)state;
    static char bytes[VALUES_MAX][24];
    static mr_string strings[VALUES_MAX];
    elements *e = context;
    if (e->at == e->count) return mr_fail(error, MR_OUT_OF_RANGE, "end");
    mr_shape shape = e->shapes[e->at++];
    int64_t count = mr_shape_count(shape);
    output->count = 1;
    if (e->spec.dtypes[0] == MR_INT32) {
        MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT32, shape, error));
        for (int64_t i = 0; i < count; i++) mr_tensor_int32s(&output->tensors[0])[i] = (int32_t)e->value++;
        return MR_OK;
    }
    for (int64_t i = 0; i < count && i < VALUES_MAX; i++)
        strings[i] = (mr_string){bytes[i], (size_t)snprintf(bytes[i], sizeof bytes[i], "%lld", (long long)e->value++)};
    return mr_tensor_init_strings(&output->tensors[0], shape, strings, error);
}

static mr_shape read_shape(void)
{
    mr_shape shape = {.rank = (int32_t)number()};
    for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = number();
    return shape;
}

static mr_dataset *read_elements(void)
{
    elements *e = calloc(1, sizeof *e);
    if (e == nullptr) return nullptr;
    const char *dtype = strtok(nullptr, " \n");
    e->spec.count = 1;
    e->spec.dtypes[0] = dtype != nullptr && strcmp(dtype, "string") == 0 ? MR_STRING : MR_INT32;
    e->spec.shapes[0] = read_shape();
    e->count = number();
    for (int64_t i = 0; i < e->count && i < ELEMENTS_MAX; i++) {
        e->shapes[i].rank = e->spec.shapes[0].rank;
        for (int32_t d = 0; d < e->shapes[i].rank; d++) e->shapes[i].dims[d] = number();
    }
    return mr_dataset_generator(&(mr_generator){.next = elements_next, .release = free}, e, &e->spec);
}

static mr_dataset *read_slices(void)
{
    static int64_t places[VALUES_MAX * 4];
    static int32_t numbers[VALUES_MAX];
    mr_tensor indices = {0}, values = {0}, sizes = {0};
    mr_shape shape = read_shape();
    int64_t count = number();
    for (int64_t i = 0; i < count * shape.rank; i++) places[i] = number();
    for (int32_t i = 0; i < count; i++) numbers[i] = i;
    mr_dataset *d = nullptr;
    if (mr_tensor_init_copy(&indices, MR_INT64, MR_SHAPE(count, shape.rank), places, nullptr) == MR_OK &&
        mr_tensor_init_copy(&values, MR_INT32, MR_SHAPE(count), numbers, nullptr) == MR_OK &&
        mr_tensor_init_copy(&sizes, MR_INT64, MR_SHAPE(shape.rank), shape.dims, nullptr) == MR_OK)
        d = mr_dataset_from_sparse_slices(&indices, &values, &sizes);
    mr_tensor_deinit(&indices);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&sizes);
    return d;
}

static mr_dataset *read_line(char *line)
{
    const char *word = strtok(line, " \n");
    if (word == nullptr || strcmp(word, "slices") == 0) return read_slices();
    int64_t size = number();
    bool drop = number() != 0;
    if (strcmp(word, "ragged") == 0) {
        mr_dtype splits_dtype = number() == 32 ? MR_INT32 : MR_INT64;
        return mr_dataset_dense_to_ragged_batch(read_elements(), size, .drop_remainder = drop,
                                                .row_splits_dtype = splits_dtype);
    }
    mr_shape row = read_shape();
    return mr_dataset_dense_to_sparse_batch(read_elements(), size, row, .drop_remainder = drop);
}

static void print(const mr_element *element)
{
    char text[MR_SHAPE_TEXT_SIZE];
    for (int32_t c = 0; c < element->count; c++) {
        const mr_tensor *t = &element->tensors[c];
        printf("%s%s", c == 0 ? "" : ";", mr_shape_text(t->shape, text, sizeof text));
        for (int64_t i = 0; i < mr_tensor_count(t); i++) {
            if (t->dtype == MR_STRING)
                printf(" %.*s", (int)mr_tensor_strings(t)[i].size_bytes, mr_tensor_strings(t)[i].data);
            else
                printf(" %lld",
                       t->dtype == MR_INT32 ? (long long)mr_tensor_int32s(t)[i] : (long long)mr_tensor_int64s(t)[i]);
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? (int)strtol(argv[1], nullptr, 10) : 1;
    for (char line[8192]; fgets(line, sizeof line, stdin);) {
        mr_dataset *d = read_line(line);
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, nullptr);
        while (status == MR_OK) {
            status = mr_iterator_next(iterator, &element, nullptr);
            if (status == MR_OK) print(&element);
        }
        if (status != MR_OUT_OF_RANGE) printf("error %d\n", (int)status);
        printf("end\n");
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
    return 0;
}
