/* TensorFlow's shuffle: a buffer of elements, and the numbers of its generator, so that the same seeds give the same
 * order; and a dataset of these numbers. mr_dataset_shuffle is faster and can be restored anywhere, but its order is
 * its own. */
#include "graph/data/dataset.h"

#include "base/random.h"
#include "pipeline/generator.h"
#include "pipeline/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* TensorFlow's SingleSampleAdapter: the words of a generator one by one. */
typedef struct words {
    mr_philox philox;
    uint32_t drawn[4];
    int used;
} words;

static words words_of(uint64_t seed, uint64_t seed2)
{
    return (words){.philox = mr_philox_seed(seed, seed2), .used = 4};
}

static uint32_t next_word(words *w)
{
    if (w->used == 4) {
        mr_philox_next(&w->philox, w->drawn);
        w->used = 0;
    }
    return w->drawn[w->used++];
}

typedef struct shuffle {
    mr_dataset *input;
    int64_t capacity;
    uint64_t seed, seed2;
    bool reshuffles;
    int64_t repeats; /* -1: without end */
} shuffle;

/* TensorFlow buffers elements of at most as many repetitions, and one element more. */
constexpr int REPETITIONS_MAX = 3;

typedef struct shuffling {
    const shuffle *shuffle;
    mr_stage *stage; /* keeps the elements */
    mr_run run;      /* of the input's pipelines */
    mr_inner input;
    words words;
    mr_item *elements; /* a ring of `room`: elements [first, first + count) */
    int64_t room, first, count;
    int64_t repetition;
    uint64_t seeding; /* of the words: in TensorFlow each repetition of each iteration draws seeds */
    /* The elements of different repetitions do not mix: the ring has those of the first one first. */
    int64_t slices[REPETITIONS_MAX + 2];
    int slice_count;
    bool has_ended;
} shuffling;

/* The seeds of one iteration of the input. */
static words words_of_iteration(const shuffle *s, uint64_t iteration)
{
    if (!s->reshuffles) return words_of(s->seed, s->seed2);
    words parent = words_of(s->seed, s->seed2);
    uint64_t skip = 2 * iteration;
    mr_philox_skip(&parent.philox, skip / 4);
    for (uint64_t i = 0; i < skip % 4; i++) (void)next_word(&parent);
    uint64_t first = next_word(&parent), second = next_word(&parent);
    return words_of(first, second);
}

static mr_status start_repetition(shuffling *s, mr_error *error)
{
    assert(s->slice_count >= 0 && s->slice_count <= REPETITIONS_MAX + 1 && !s->has_ended);
    if (s->slice_count == 0 || s->slices[s->slice_count - 1] > 0) s->slices[s->slice_count++] = 0;
    assert(s->slice_count <= REPETITIONS_MAX + 1);
    return mr_inner_open(&s->input, mr_dataset_ref(s->shuffle->input), &s->run, s->stage->run,
                         mr_dataset_spec(s->shuffle->input), 0, 0, error);
}

static void close_shuffle(void *, void *state)
{
    shuffling *s = state;
    if (!s) return;
    for (int64_t i = 0; i < s->count; i++) mr_item_deinit(&s->elements[(s->first + i) % s->room]);
    free(s->elements);
    mr_inner_close(&s->input);
    mr_stage_release_all(s->stage);
    s->stage->is_too_large = false;
    free(s);
}

static mr_status open_shuffle(void *context, mr_stage *stage, void **state, mr_error *error)
{
    shuffling *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    s->shuffle = context;
    s->stage = stage;
    mr_inner_run_init(&s->run, stage, true);
    s->run.threads = stage->run->threads;
    s->seeding = stage->iteration * (uint64_t)(s->shuffle->repeats > 0 ? s->shuffle->repeats : 1);
    s->words = words_of_iteration(s->shuffle, s->seeding);
    mr_status status = start_repetition(s, error);
    if (status != MR_OK) {
        close_shuffle(context, s);
        return status;
    }
    *state = s;
    return MR_OK;
}

/* The ring grows with its elements, so a large buffer_size costs nothing for a small dataset. */
static mr_status reserve(shuffling *s, mr_error *error)
{
    if (s->count < s->room) return MR_OK;
    assert(s->count == s->room);
    int64_t room = s->room ? 2 * s->room : 64;
    if (room > s->shuffle->capacity) room = s->shuffle->capacity;
    MR_TRY(mr_stage_keep(s->stage, (size_t)(room - s->room) * sizeof *s->elements, error));
    mr_item *larger = calloc((size_t)room, sizeof *larger);
    if (!larger) return mr_fail_memory(error, (size_t)room * sizeof *larger);
    for (int64_t i = 0; i < s->count; i++) larger[i] = s->elements[(s->first + i) % s->room];
    free(s->elements);
    s->elements = larger;
    s->room = room;
    s->first = 0;
    return MR_OK;
}

/* The next element of the input, or of its next repetition; has_ended after the last one. */
static mr_status next_input(shuffling *s, mr_item *item, mr_error *error)
{
    int64_t repeats = s->shuffle->repeats;
    for (int64_t empty = 0;; empty++) {
        if (mr_run_is_cancelled(s->stage->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        if (!s->input.is_open) MR_TRY(start_repetition(s, error)); /* it has failed before */
        mr_status status = mr_stage_next(s->input.pipeline.top, item, error);
        if (status != MR_OUT_OF_RANGE) return status;
        s->repetition++;
        s->has_ended = repeats < 0 ? empty > 0 || (s->repetition == 1 && s->count == 0) : s->repetition >= repeats;
        if (s->has_ended) return MR_OK;
        MR_TRY(start_repetition(s, error));
    }
}

/* The slices are the elements of the ring. */
[[maybe_unused]] static bool is_consistent(const shuffling *s)
{
    int64_t sliced = 0;
    for (int i = 0; i < s->slice_count; i++) sliced += s->slices[i];
    return sliced == s->count && s->count >= 0 && s->count <= s->room && s->room <= s->shuffle->capacity &&
           (s->room == 0 || (s->first >= 0 && s->first < s->room));
}

static mr_status fill(shuffling *s, mr_error *error)
{
    assert(is_consistent(s));
    if (s->stage->is_too_large)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the elements of the buffer exceed the budget of %zu bytes",
                       s->stage->run->budget->limit_bytes);
    while (s->count < s->shuffle->capacity && !s->has_ended && s->slice_count <= REPETITIONS_MAX) {
        mr_item item = {0};
        MR_TRY(reserve(s, error));
        MR_TRY(next_input(s, &item, error));
        if (s->has_ended) break;
        MR_TRY(mr_item_keep(s->stage, &item, error));
        s->elements[(s->first + s->count++) % s->room] = item;
        s->slices[s->slice_count - 1]++;
    }
    return MR_OK;
}

static void drop_empty_slices(shuffling *s)
{
    while (s->slices[0] == 0) {
        assert(s->slice_count > 1);
        memmove(s->slices, s->slices + 1, (size_t)--s->slice_count * sizeof s->slices[0]);
        s->words = words_of_iteration(s->shuffle, ++s->seeding);
    }
}

/* One of the elements at random takes the place of the oldest, which is next. */
static mr_status next_shuffled(void *, void *state, mr_element *output, mr_error *error)
{
    shuffling *s = state;
    MR_TRY(fill(s, error));
    if (s->count == 0) return mr_fail(error, MR_OUT_OF_RANGE, "End of sequence");
    drop_empty_slices(s);
    assert(is_consistent(s) && s->slices[0] > 0 && s->slices[0] <= s->count);
    int64_t drawn = (s->first + (int64_t)(next_word(&s->words) % (uint64_t)s->slices[0])) % s->room;
    mr_item taken = s->elements[drawn];
    s->elements[drawn] = s->elements[s->first];
    s->elements[s->first] = (mr_item){0};
    s->first = (s->first + 1) % s->room;
    s->count--;
    s->slices[0]--;
    mr_item_release(s->stage, &taken);
    mr_payload *payload = taken.payload;
    assert(payload && payload->count <= MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < payload->count; i++) {
        output->tensors[i] = payload->tensors[i];
        payload->tensors[i] = (mr_tensor){0};
    }
    output->count = payload->count;
    mr_item_deinit(&taken);
    return MR_OK;
}

static void release_shuffle(void *context)
{
    shuffle *s = context;
    mr_dataset_free(s->input);
    free(s);
}

/* If both seeds are 0, random ones are used. */
static void draw_seeds(int64_t *seed, int64_t *seed2)
{
    int64_t drawn[2];
    if (*seed != 0 || *seed2 != 0 || getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return;
    *seed = drawn[0];
    *seed2 = drawn[1];
}

/* The seeds are inputs 2 and 3, or those of a generator, the last input. */
static mr_status read_seeds(const mr_kernel_call *call, mr_data_seeds *seeds, mr_error *error)
{
    int32_t last = call->node->input_count - 1;
    bool has_generator = call->node->input_dtypes[last] == MR_RESOURCE, found = false;
    if (has_generator) MR_TRY(mr_data_seed_generator(call, last, seeds, &found, error));
    if (has_generator && last == 2 && !found)
        return mr_kernel_fail(call->node, error, MR_NOT_FOUND, "the seed generator has no seeds");
    if (!found) {
        MR_TRY(mr_data_int(call, 2, "seed", &seeds->seed, error));
        MR_TRY(mr_data_int(call, 3, "seed2", &seeds->seed2, error));
        seeds->reshuffles = mr_attr_bool_or(call->node->attrs, "reshuffle_each_iteration", true);
    }
    draw_seeds(&seeds->seed, &seeds->seed2);
    return MR_OK;
}

static mr_status shuffle_dataset(mr_kernel_call *call, mr_dataset *input, int64_t capacity, int64_t repeats,
                                 mr_dataset **shuffled, mr_error *error)
{
    mr_data_seeds seeds = {0};
    MR_TRY(read_seeds(call, &seeds, error));
    shuffle *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    *s = (shuffle){.input = mr_dataset_ref(input),
                   .capacity = capacity,
                   .repeats = repeats,
                   .seed = (uint64_t)seeds.seed,
                   .seed2 = (uint64_t)seeds.seed2,
                   .reshuffles = seeds.reshuffles};
    mr_generator generator = {.next = next_shuffled, .close = close_shuffle, .release = release_shuffle};
    *shuffled =
        mr_dataset_generator_open_in_stage(mr_dataset_generator(&generator, s, mr_dataset_spec(input)), open_shuffle);
    return MR_OK;
}

static mr_status shuffle_and_repeat(mr_kernel_call *call, int64_t repeats, mr_error *error)
{
    mr_dataset *input, *shuffled;
    int64_t capacity;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, "buffer_size", &capacity, error));
    if (capacity == -1) capacity = INT64_MAX / 4; /* all elements */
    if (capacity <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
    MR_TRY(shuffle_dataset(call, input, capacity, repeats, &shuffled, error));
    return mr_data_output(call, shuffled, error);
}

static mr_status run_shuffle(mr_kernel_call *call, mr_error *error)
{
    return shuffle_and_repeat(call, 1, error);
}

static mr_status run_shuffle_and_repeat(mr_kernel_call *call, mr_error *error)
{
    int64_t repeats;
    MR_TRY(mr_data_int(call, 4, "count", &repeats, error));
    if (repeats <= 0 && repeats != -1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "count must be greater than zero or equal to -1.");
    return shuffle_and_repeat(call, repeats, error);
}

/* ---- Random numbers ---- */

typedef struct numbers {
    uint64_t seed, seed2;
} numbers;

/* Each iteration has the same numbers. */
static mr_status open_numbers(void *context, uint64_t, void **state, mr_error *error)
{
    const numbers *n = context;
    words *w = malloc(sizeof *w);
    if (!w) return mr_fail_memory(error, sizeof *w);
    *w = words_of(n->seed, n->seed2);
    *state = w;
    return MR_OK;
}

static mr_status next_number(void *, void *state, mr_element *output, mr_error *error)
{
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], next_word(state), error));
    output->count = 1;
    return MR_OK;
}

static void close_numbers(void *, void *state)
{
    free(state);
}

static mr_status run_random(mr_kernel_call *call, mr_error *error)
{
    int64_t seed, seed2;
    MR_TRY(mr_data_int(call, 0, "seed", &seed, error));
    MR_TRY(mr_data_int(call, 1, "seed2", &seed2, error));
    numbers *n = calloc(1, sizeof *n);
    if (!n) return mr_fail_memory(error, sizeof *n);
    draw_seeds(&seed, &seed2);
    *n = (numbers){.seed = (uint64_t)seed, .seed2 = (uint64_t)seed2};
    mr_generator generator = {.open = open_numbers, .next = next_number, .close = close_numbers, .release = free};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    return mr_data_output(call, mr_dataset_generator(&generator, n, &spec), error);
}

/* ---- Sampling: each element is kept with a probability ---- */

typedef struct sampler {
    mr_dataset *input;
    float rate;
    uint64_t seed, seed2;
} sampler;

typedef struct sampling {
    const sampler *sampler;
    mr_stage *stage;
    mr_run run; /* of the input's pipeline */
    mr_inner input;
    words words;
} sampling;

static void close_sampling(void *, void *state)
{
    sampling *s = state;
    if (!s) return;
    mr_inner_close(&s->input);
    free(s);
}

static mr_status open_sampling(void *context, mr_stage *stage, void **state, mr_error *error)
{
    sampling *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    s->sampler = context;
    s->stage = stage;
    s->words = words_of(s->sampler->seed, s->sampler->seed2);
    mr_inner_run_init(&s->run, stage, true);
    s->run.threads = stage->run->threads;
    mr_status status = mr_inner_open(&s->input, mr_dataset_ref(s->sampler->input), &s->run, stage->run,
                                     mr_dataset_spec(s->sampler->input), 0, 0, error);
    if (status == MR_OK)
        *state = s;
    else
        close_sampling(context, s);
    return status;
}

static mr_status next_sampled(void *, void *state, mr_element *output, mr_error *error)
{
    sampling *s = state;
    mr_item item = {0};
    for (;;) {
        if (mr_run_is_cancelled(s->stage->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        if (!s->input.is_open) return mr_fail(error, MR_OUT_OF_RANGE, "End of sequence");
        MR_TRY(mr_stage_next(s->input.pipeline.top, &item, error));
        if (mr_random_float(next_word(&s->words)) < s->sampler->rate) break;
        mr_item_deinit(&item);
    }
    for (int32_t i = 0; i < item.payload->count; i++) {
        output->tensors[i] = item.payload->tensors[i];
        item.payload->tensors[i] = (mr_tensor){0};
    }
    output->count = item.payload->count;
    mr_item_deinit(&item);
    return MR_OK;
}

static void release_sampler(void *context)
{
    sampler *s = context;
    mr_dataset_free(s->input);
    free(s);
}

static mr_status run_sampling(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t seed, seed2;
    MR_TRY(mr_data_input(call, 0, &input, error));
    if (mr_tensor_count(&call->inputs[1]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "rate must be a scalar");
    MR_TRY(mr_data_int(call, 2, "seed", &seed, error));
    MR_TRY(mr_data_int(call, 3, "seed2", &seed2, error));
    draw_seeds(&seed, &seed2);
    sampler *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    *s = (sampler){.input = mr_dataset_ref(input),
                   .rate = mr_tensor_floats(&call->inputs[1])[0],
                   .seed = (uint64_t)seed,
                   .seed2 = (uint64_t)seed2};
    mr_generator generator = {.next = next_sampled, .close = close_sampling, .release = release_sampler};
    return mr_data_output(
        call,
        mr_dataset_generator_open_in_stage(mr_dataset_generator(&generator, s, mr_dataset_spec(input)), open_sampling),
        error);
}

static const mr_kernel kernels[] = {
    {.op = "ShuffleDatasetV2", .run = run_shuffle},
    {.op = "ShuffleDatasetV3", .run = run_shuffle},
    {.op = "ShuffleAndRepeatDatasetV2", .run = run_shuffle_and_repeat},
    {.op = "SamplingDataset", .run = run_sampling},
    {.op = "ShuffleDataset", .run = run_shuffle},
    {.op = "ShuffleAndRepeatDataset", .run = run_shuffle_and_repeat},
    {.op = "RandomDataset", .run = run_random},
};
const mr_kernel_table mr_data_kernels_shuffle = {kernels, sizeof kernels / sizeof kernels[0]};
