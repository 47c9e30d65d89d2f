/* Pipelines as text: one line for each stage, with the builder's name, the name of a function, and numbers. Lines
 * operate on a stack of datasets: sources push one; "zip", "concatenate", "sample" and "choose" take several. There are
 * few functions. They are defined for elements of any structure of int64s, and random_pipelines_oracle.py implements
 * the same for tf.data.
 *
 *     range 0 37 1
 *     map affine
 *     window flat 3 2 1 0
 *
 * The key of an element is the sum of all its numbers, with wraparound. */
#ifndef MR_TESTS_PIPELINE_TEXT_H
#define MR_TESTS_PIPELINE_TEXT_H

#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_STACK_MAX = 8 };

typedef struct text_stack {
    mr_dataset *datasets[TEXT_STACK_MAX];
    int count;
} text_stack;

static inline int64_t key_of(const mr_element *element)
{
    uint64_t sum = 0;
    for (int32_t c = 0; c < element->count; c++)
        for (int64_t i = 0; i < mr_tensor_count(&element->tensors[c]); i++)
            sum += (uint64_t)mr_tensor_int64s(&element->tensors[c])[i];
    return (int64_t)sum;
}

static inline int64_t floor_mod(int64_t value, int64_t by)
{
    int64_t rest = value % by;
    return rest < 0 ? rest + by : rest;
}

/* ---- Functions from element to element ---- */

static inline int64_t text_affine(int64_t x)
{
    return (int64_t)(3 * (uint64_t)x + 1);
}
static inline int64_t text_mod(int64_t x)
{
    return floor_mod(x, 7);
}
static inline int64_t text_zero(int64_t x)
{
    (void)x;
    return 0;
}
static inline int64_t text_choice(int64_t x)
{
    return floor_mod((int64_t)(5 * (uint64_t)x), 7) % 2;
}

typedef int64_t (*text_number_function)(int64_t x);
static const text_number_function text_number_functions[] = {text_affine, text_mod, text_choice, text_zero};

/* Applies a function to every number; context is one of the functions above. */
static mr_status text_each(void *context, const mr_element *input, mr_random *random, mr_element *output,
                           mr_error *error)
{
    (void)random;
    for (int32_t c = 0; c < input->count; c++) {
        const mr_tensor *from = &input->tensors[c];
        mr_tensor *to = &output->tensors[c];
        /* If the sizes are known, the row is already allocated. */
        if (to->data == nullptr || !mr_shape_equal(to->shape, from->shape)) {
            MR_TRY(mr_tensor_init(to, MR_INT64, from->shape, error));
        }
        output->count = c + 1;
        for (int64_t i = 0; i < mr_tensor_count(from); i++)
            mr_tensor_int64s(to)[i] = (*(const text_number_function *)context)(mr_tensor_int64s(from)[i]);
    }
    return MR_OK;
}

/* Returns (first component, key). */
static mr_status text_pair(void *context, const mr_element *input, mr_random *random, mr_element *output,
                           mr_error *error)
{
    (void)context, (void)random;
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    MR_TRY(mr_tensor_init_int64(&output->tensors[1], key_of(input), error));
    output->count = 2;
    return MR_OK;
}

static mr_status text_first(void *context, const mr_element *input, mr_random *random, mr_element *output,
                            mr_error *error)
{
    (void)context, (void)random, (void)error;
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    return MR_OK;
}

static mr_status text_sum(void *context, const mr_element *input, mr_random *random, mr_element *output,
                          mr_error *error)
{
    (void)context, (void)random;
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], key_of(input), error);
}

/* Returns key modulo 4 elements: key, key + 1, … */
static mr_status text_spread(void *context, const mr_element *input, mr_random *random, mr_element *output,
                             mr_error *error)
{
    (void)context, (void)random;
    int64_t key = key_of(input), count = floor_mod(key, 4);
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, MR_SHAPE(count), error));
    output->count = 1;
    for (int64_t i = 0; i < count; i++)
        mr_tensor_int64s(&output->tensors[0])[i] = (int64_t)((uint64_t)key + (uint64_t)i);
    return MR_OK;
}

static mr_status text_fail(void *context, const mr_element *input, mr_random *random, mr_element *output,
                           mr_error *error)
{
    (void)context, (void)random;
    if (floor_mod(key_of(input), 5) == 3) return mr_fail(error, MR_DATA_LOSS, "a key that is 3 modulo 5");
    for (int32_t c = 0; c < input->count; c++) output->tensors[c] = mr_tensor_ref(&input->tensors[c]);
    output->count = input->count;
    return MR_OK;
}

static mr_status text_scan(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                           mr_element *output, mr_error *error)
{
    (void)context;
    uint64_t sum = (uint64_t)key_of(state) + (uint64_t)key_of(input);
    MR_TRY(mr_tensor_init_int64(&next_state->tensors[0], (int64_t)sum, error));
    next_state->count = 1;
    output->tensors[0] = mr_tensor_ref(&next_state->tensors[0]);
    output->count = 1;
    return MR_OK;
}

/* ---- Predicates, keys, datasets for elements ---- */

/* Keeps the element unless key modulo context[0] is context[1]. */
static mr_status text_filter(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)error;
    const int64_t *numbers = context;
    *stays = floor_mod(key_of(input), numbers[0]) != numbers[1];
    return MR_OK;
}

static mr_status text_below(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)error;
    *stays = key_of(input) < *(const int64_t *)context;
    return MR_OK;
}

static mr_status text_key(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)error;
    *key = floor_mod(key_of(input), *(const int64_t *)context);
    return MR_OK;
}

static mr_status text_odd(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = floor_mod(key_of(input), 2);
    return MR_OK;
}

static mr_status text_length(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)error;
    *key = input->tensors[0].shape.dims[0];
    return MR_OK;
}

/* The numbers 0, 1, … below key modulo 4. */
static mr_status text_count(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_range(0, floor_mod(key_of(input), 4), 1);
    return MR_OK;
}

/* The element itself, repeated key modulo 3 times. */
static mr_status text_same(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_repeat(mr_dataset_from_tensors(input->tensors, input->count), floor_mod(key_of(input), 3));
    return MR_OK;
}

static mr_status text_window_flat(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = window;
    return MR_OK;
}

static mr_status text_group_batch(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)key, (void)error;
    *output = mr_dataset_batch(window, ((const int64_t *)context)[1]);
    return MR_OK;
}

static inline mr_element_spec text_spec_batched(const mr_element_spec *spec)
{
    mr_element_spec batched = *spec;
    for (int32_t c = 0; c < spec->count; c++) {
        mr_shape *shape = &batched.shapes[c];
        memmove(&shape->dims[1], &shape->dims[0], (size_t)shape->rank * sizeof shape->dims[0]);
        shape->dims[0] = -1;
        shape->rank++;
    }
    return batched;
}

/* ---- Lines ---- */

typedef struct text_line {
    char word[24], function[24];
    int64_t n[6];
    int count;
} text_line;

/* Reads the next line and advances *text; false at its end. */
static inline bool text_line_read(const char **text, text_line *line)
{
    char words[160];
    size_t length = strcspn(*text, "\n");
    if (length == 0 || length >= sizeof words) return false;
    memcpy(words, *text, length);
    words[length] = 0;
    *text += length + ((*text)[length] == '\n');
    *line = (text_line){0};
    char *rest = nullptr;
    for (char *word = strtok_r(words, " ", &rest); word != nullptr; word = strtok_r(nullptr, " ", &rest)) {
        if (line->word[0] == 0)
            snprintf(line->word, sizeof line->word, "%s", word);
        else if (*word >= 'a' && *word <= 'z')
            snprintf(line->function, sizeof line->function, "%s", word);
        else if (line->count < 6)
            line->n[line->count++] = strtoll(word, nullptr, 10);
    }
    return line->word[0] != 0;
}

static inline void *text_numbers(const text_line *line)
{
    int64_t *numbers = malloc(sizeof line->n);
    if (numbers != nullptr) memcpy(numbers, line->n, sizeof line->n);
    return numbers;
}

static void text_numbers_free(void *numbers)
{
    free(numbers);
}

/* start, start + 1, … in sequence: a source without an index. */
static mr_status text_generator_open(void *context, uint64_t iteration, void **state, mr_error *error)
{
    (void)context, (void)iteration;
    *state = calloc(1, sizeof(int64_t));
    return *state == nullptr ? mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory") : MR_OK;
}

static mr_status text_generator_next(void *context, void *state, mr_element *output, mr_error *error)
{
    const int64_t *numbers = context;
    int64_t *at = state;
    if (*at == numbers[1]) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], numbers[0] + (*at)++, error);
}

static void text_generator_close(void *context, void *state)
{
    (void)context;
    free(state);
}

static inline mr_dataset *text_generator(void *numbers)
{
    static const mr_generator generator = {.open = text_generator_open,
                                           .next = text_generator_next,
                                           .close = text_generator_close,
                                           .release = text_numbers_free};
    static const mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 0}}};
    return numbers == nullptr ? nullptr : mr_dataset_generator(&generator, numbers, &spec);
}

/* Rows of a sparse matrix of rows x columns, with a value at every `by`-th position. */
static inline mr_dataset *text_sparse(int64_t rows, int64_t columns, int64_t by)
{
    mr_tensor indices = {0}, values = {0}, shape = {0};
    int64_t count = (rows * columns + by - 1) / by;
    mr_dataset *d = nullptr;
    if (mr_tensor_init(&indices, MR_INT64, MR_SHAPE(count, 2), nullptr) == MR_OK &&
        mr_tensor_init(&values, MR_INT64, MR_SHAPE(count), nullptr) == MR_OK &&
        mr_tensor_init_copy(&shape, MR_INT64, MR_SHAPE(2), (int64_t[]){rows, columns}, nullptr) == MR_OK) {
        for (int64_t i = 0; i < count; i++) {
            mr_tensor_int64s(&indices)[2 * i] = i * by / columns;
            mr_tensor_int64s(&indices)[2 * i + 1] = i * by % columns;
            mr_tensor_int64s(&values)[i] = i * 5 % 13;
        }
        d = mr_dataset_from_sparse_slices(&indices, &values, &shape);
    }
    mr_tensor_deinit(&indices);
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&shape);
    return d;
}

/* `count` rows of up to three components: a scalar, two numbers, and a scalar. */
static inline mr_dataset *text_slices(int64_t count, int64_t components)
{
    mr_tensor tensors[3] = {0};
    bool made = true;
    for (int64_t c = 0; c < components && made; c++) {
        made = mr_tensor_init(&tensors[c], MR_INT64, c == 1 ? MR_SHAPE(count, 2) : MR_SHAPE(count), nullptr) == MR_OK;
        for (int64_t i = 0; made && i < mr_tensor_count(&tensors[c]); i++)
            mr_tensor_int64s(&tensors[c])[i] = i * (7 + c) % 11 - 3;
    }
    mr_dataset *d = made ? mr_dataset_from_slices(tensors, (int32_t)components) : nullptr;
    for (int c = 0; c < 3; c++) mr_tensor_deinit(&tensors[c]);
    return d;
}

/* Not null: applies "map affine" (processes_test.c). */
static mr_dataset *(*text_map_affine)(mr_dataset *d);

static inline mr_dataset *text_map(mr_dataset *d, const char *function)
{
    if (text_map_affine != nullptr && strcmp(function, "affine") == 0) return text_map_affine(d);
    static const char *const names[] = {"affine", "mod", "choice", "zero"};
    mr_element_spec spec = *mr_dataset_spec(d);
    for (int i = 0; i < 4; i++)
        if (strcmp(function, names[i]) == 0)
            return mr_dataset_map(d, text_each, (void *)&text_number_functions[i], &spec);
    if (strcmp(function, "fail") == 0) return mr_dataset_map(d, text_fail, nullptr, &spec, .own_input = true);
    if (strcmp(function, "pair") == 0) {
        spec = (mr_element_spec){.count = 2, .dtypes = {MR_INT64, MR_INT64}, .shapes = {spec.shapes[0], MR_SCALAR}};
        return mr_dataset_map(d, text_pair, nullptr, &spec);
    }
    spec = (mr_element_spec){.count = 1, .dtypes = {MR_INT64}, .shapes = {spec.shapes[0]}};
    if (strcmp(function, "first") == 0) return mr_dataset_map(d, text_first, nullptr, &spec);
    spec.shapes[0] = strcmp(function, "sum") == 0 ? MR_SCALAR : MR_SHAPE(-1);
    return mr_dataset_map(d, strcmp(function, "sum") == 0 ? text_sum : text_spread, nullptr, &spec);
}

static inline mr_dataset *text_flat(mr_dataset *d, const text_line *line)
{
    bool same = strcmp(line->function, "same") == 0;
    mr_element_spec spec = *mr_dataset_spec(d);
    if (!same) spec = (mr_element_spec){.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    mr_dataset_function function = same ? text_same : text_count;
    if (strcmp(line->word, "flat_map") == 0) return mr_dataset_flat_map(d, function, nullptr, &spec);
    return mr_dataset_interleave(d, function, nullptr, &spec, .cycle_length = line->n[0], .block_length = line->n[1],
                                 .parallel = line->n[2] != 0);
}

static inline mr_dataset *text_scanned(mr_dataset *d)
{
    mr_tensor number = {0};
    if (mr_tensor_init_int64(&number, 0, nullptr) != MR_OK) return mr_dataset_free(d), nullptr;
    const mr_element zero = {.count = 1, .tensors = &number};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    d = mr_dataset_scan(d, &zero, text_scan, nullptr, &spec);
    mr_tensor_deinit(&number);
    return d;
}

/* Stages whose functions use numbers of the line. */
static inline mr_dataset *text_with_numbers(mr_dataset *d, const text_line *l)
{
    const char *word = l->word;
    mr_element_spec batched = text_spec_batched(mr_dataset_spec(d));
    void *numbers = text_numbers(l);
    if (numbers == nullptr) return mr_dataset_free(d), nullptr;
    if (strcmp(word, "filter") == 0) return mr_dataset_filter(d, text_filter, numbers, .release = text_numbers_free);
    if (strcmp(word, "take_while") == 0)
        return mr_dataset_take_while(d, text_below, numbers, .release = text_numbers_free);
    if (strcmp(word, "group") == 0)
        return mr_dataset_group_by_window(d, text_key, text_group_batch, numbers, &batched, .window_size = l->n[1],
                                          .release = text_numbers_free);
    free(numbers);
    const int64_t boundaries[] = {2, 3}, sizes[] = {l->n[0], l->n[1], l->n[2]};
    return mr_dataset_bucket_by_sequence_length(d, text_length, nullptr, boundaries, 2, sizes,
                                                .drop_remainder = l->n[3] != 0);
}

static inline mr_dataset *text_stage(mr_dataset *d, const text_line *l)
{
    const char *word = l->word;
    const int64_t *n = l->n;
    if (strcmp(word, "map") == 0) return text_map(d, l->function);
    if (strcmp(word, "flat_map") == 0 || strcmp(word, "interleave") == 0) return text_flat(d, l);
    if (strcmp(word, "repeat") == 0) return mr_dataset_repeat(d, n[0]);
    if (strcmp(word, "take") == 0) return mr_dataset_take(d, n[0]);
    if (strcmp(word, "skip") == 0) return mr_dataset_skip(d, n[0]);
    if (strcmp(word, "shard") == 0) return mr_dataset_shard(d, n[0], n[1]);
    if (strcmp(word, "shuffle") == 0)
        return mr_dataset_shuffle(d, .buffer_size = n[0], .seed = 3, .reshuffle_each_iteration = n[1] == 0);
    if (strcmp(word, "batch") == 0) return mr_dataset_batch(d, n[0], .drop_remainder = n[1] != 0);
    if (strcmp(word, "padded_batch") == 0) return mr_dataset_padded_batch(d, n[0], .drop_remainder = n[1] != 0);
    if (strcmp(word, "unbatch") == 0) return mr_dataset_unbatch(d);
    if (strcmp(word, "prefetch") == 0) return mr_dataset_prefetch(d, (int32_t)n[0]);
    if (strcmp(word, "enumerate") == 0) return mr_dataset_enumerate(d, n[0]);
    if (strcmp(word, "scan") == 0) return text_scanned(d);
    if (strcmp(word, "unique") == 0) return mr_dataset_unique(d);
    if (strcmp(word, "cache") == 0) return mr_dataset_cache(d, nullptr);
    if (strcmp(word, "ragged") == 0) return mr_dataset_dense_to_ragged_batch(d, n[0], .drop_remainder = n[1] != 0);
    if (strcmp(word, "sparse_batch") == 0) {
        mr_shape row = {.rank = mr_dataset_spec(d)->shapes[0].rank, .dims = {-1, -1, -1, -1}};
        return mr_dataset_dense_to_sparse_batch(d, n[0], row);
    }
    if (strcmp(word, "distribute") == 0) return mr_dataset_distribute(d, n[0], n[1], n[2], MR_DISTRIBUTE_DROP);
    if (strcmp(word, "assert") == 0) return mr_dataset_assert_cardinality(d, n[0]);
    if (strcmp(word, "resample") == 0) {
        static const double half[] = {0.5, 0.5};
        return mr_dataset_rejection_resample(d, text_odd, nullptr, half, 2, .initial_dist = half);
    }
    if (strcmp(word, "ignore_errors") == 0) return mr_dataset_ignore_errors(d);
    if (strcmp(word, "window") == 0) {
        bool flat = strcmp(l->function, "flat") == 0;
        mr_element_spec spec = *mr_dataset_spec(d);
        return mr_dataset_window(d, flat ? text_window_flat : nullptr, nullptr, flat ? &spec : nullptr,
                                 .window_size = n[0], .shift = n[1], .stride = n[2], .drop_remainder = n[3] != 0);
    }
    return text_with_numbers(d, l);
}

/* Applies one line to the stack. */
static inline void text_apply(text_stack *stack, const text_line *l)
{
    mr_dataset **top = &stack->datasets[stack->count];
    if (strcmp(l->word, "range") == 0) {
        *top = mr_dataset_range(l->n[0], l->n[1], l->n[2]);
        stack->count++;
    } else if (strcmp(l->word, "slices") == 0) {
        *top = text_slices(l->n[0], l->n[1]);
        stack->count++;
    } else if (strcmp(l->word, "generator") == 0) {
        *top = text_generator(text_numbers(l));
        stack->count++;
    } else if (strcmp(l->word, "sparse") == 0) {
        *top = text_sparse(l->n[0], l->n[1], l->n[2]);
        stack->count++;
    } else if (strcmp(l->word, "random") == 0) {
        *top = mr_dataset_random((uint64_t)l->n[0]);
        stack->count++;
    } else if (strcmp(l->word, "tensors") == 0) {
        int64_t number = l->n[0];
        mr_tensor tensor = {0};
        *top = mr_tensor_init_int64(&tensor, number, nullptr) == MR_OK ? mr_dataset_from_tensors(&tensor, 1) : nullptr;
        mr_tensor_deinit(&tensor);
        stack->count++;
    } else if (strcmp(l->word, "sample") == 0) {
        top[-2] = mr_dataset_sample_from_datasets(&top[-2], nullptr, 2, .seed = 5);
        stack->count--;
    } else if (strcmp(l->word, "zip") == 0) {
        top[-2] = mr_dataset_zip(&top[-2], 2);
        stack->count--;
    } else if (strcmp(l->word, "concatenate") == 0) {
        top[-2] = mr_dataset_concatenate(top[-2], top[-1]);
        stack->count--;
    } else if (strcmp(l->word, "choose") == 0) {
        top[-3] = mr_dataset_choose_from_datasets(&top[-3], 2, top[-1], .stop_on_empty_dataset = l->n[0] != 0);
        stack->count -= 2;
    } else {
        top[-1] = text_stage(top[-1], l);
    }
}

/* The dataset that a complete text describes. Null, or a failed dataset, if an allocation fails. */
static inline mr_dataset *text_build(const char *text)
{
    text_stack stack = {0};
    text_line line;
    while (text_line_read(&text, &line)) text_apply(&stack, &line);
    return stack.datasets[0];
}

#endif
