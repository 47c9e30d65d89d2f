/* GroupByReducerDataset: reads the input to its end, and reduces the elements of each key to one. */
#include "graph/data/dataset.h"

#include "pipeline/generator.h"
#include "pipeline/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct reducer {
    mr_dataset *input;
    mr_data_function *key, *init, *reduce, *finalize;
    int32_t state_count, result_count;
} reducer;

typedef struct group {
    int64_t key;
    mr_tensor *state; /* state_count tensors; owned */
} group;

typedef struct reducing {
    const reducer *reducer;
    mr_stage *stage;
    mr_run run; /* of the input's pipeline */
    mr_inner input;
    group *groups; /* sorted by key */
    int64_t count, room, next;
    bool has_read;
} reducing;

static void release(void *context)
{
    reducer *r = context;
    mr_dataset_free(r->input);
    mr_data_function_free(r->key);
    mr_data_function_free(r->init);
    mr_data_function_free(r->reduce);
    mr_data_function_free(r->finalize);
    free(r);
}

static void free_state(const reducer *r, mr_tensor *state)
{
    for (int32_t i = 0; state && i < r->state_count; i++) mr_tensor_deinit(&state[i]);
    free(state);
}

static void close_reducer(void *, void *state)
{
    reducing *s = state;
    if (!s) return;
    for (int64_t i = 0; i < s->count; i++) free_state(s->reducer, s->groups[i].state);
    free(s->groups);
    mr_inner_close(&s->input);
    mr_stage_release_all(s->stage);
    free(s);
}

static mr_status open_reducer(void *context, mr_stage *stage, void **state, mr_error *error)
{
    reducing *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    s->reducer = context;
    s->stage = stage;
    mr_inner_run_init(&s->run, stage, true);
    s->run.threads = stage->run->threads;
    *state = s;
    return MR_OK;
}

static mr_status key_of(const reducer *r, const mr_element *input, int64_t *key, mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_data_function_call(r->key, input, nullptr, &result, 1, error));
    mr_status status = MR_OK;
    if (result.dtype == MR_INT64 && mr_tensor_count(&result) == 1)
        *key = mr_tensor_int64s(&result)[0];
    else
        status = mr_fail(error, MR_INVALID_ARGUMENT, "`key_func` must return a scalar int64.");
    mr_tensor_deinit(&result);
    return status;
}

/* A new state of the key. */
static mr_status init_state(const reducer *r, int64_t key, mr_tensor **state, mr_error *error)
{
    mr_tensor argument = {0};
    mr_tensor *made = calloc((size_t)r->state_count + 1, sizeof *made);
    if (!made) return mr_fail_memory(error, (size_t)r->state_count * sizeof *made);
    mr_status status = mr_tensor_init_int64(&argument, key, error);
    mr_element element = {.tensors = &argument, .count = 1};
    if (status == MR_OK) status = mr_data_function_call(r->init, &element, nullptr, made, r->state_count, error);
    mr_tensor_deinit(&argument);
    if (status == MR_OK)
        *state = made;
    else
        free_state(r, made);
    return status;
}

static mr_status insert(reducing *s, int64_t at, int64_t key, mr_error *error)
{
    mr_tensor *state = nullptr;
    assert(at >= 0 && at <= s->count && s->count <= s->room);
    assert((at == 0 || s->groups[at - 1].key < key) && (at == s->count || s->groups[at].key > key));
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : 16;
        MR_TRY(mr_stage_keep(s->stage, (size_t)(room - s->room) * (sizeof *s->groups + 64), error));
        group *larger = reallocarray(s->groups, (size_t)room, sizeof *larger);
        if (!larger) return mr_fail_memory(error, (size_t)room * sizeof *larger);
        s->groups = larger;
        s->room = room;
    }
    MR_TRY(init_state(s->reducer, key, &state, error));
    memmove(s->groups + at + 1, s->groups + at, (size_t)(s->count - at) * sizeof *s->groups);
    s->groups[at] = (group){key, state};
    s->count++;
    return MR_OK;
}

static mr_status group_of(reducing *s, int64_t key, group **found, mr_error *error)
{
    int64_t low = 0, high = s->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == s->count || s->groups[low].key != key) MR_TRY(insert(s, low, key, error));
    *found = &s->groups[low];
    return MR_OK;
}

static mr_status add(reducing *s, const mr_element *input, mr_error *error)
{
    const reducer *r = s->reducer;
    mr_tensor results[MR_COMPONENTS_MAX] = {0};
    group *g = nullptr;
    int64_t key;
    MR_TRY(key_of(r, input, &key, error));
    MR_TRY(group_of(s, key, &g, error));
    mr_element state = {.tensors = g->state, .count = r->state_count};
    MR_TRY(mr_data_function_call(r->reduce, &state, input, results, r->state_count, error));
    for (int32_t i = 0; i < r->state_count; i++) {
        mr_tensor_deinit(&g->state[i]);
        g->state[i] = results[i];
    }
    return MR_OK;
}

static mr_status read_all(reducing *s, mr_error *error)
{
    const mr_dataset *input = s->reducer->input;
    if (!s->input.is_open)
        MR_TRY(mr_inner_open(&s->input, mr_dataset_ref(s->reducer->input), &s->run, s->stage->run,
                             mr_dataset_spec(input), 0, 0, error));
    for (;;) {
        mr_item item = {0};
        if (mr_run_is_cancelled(s->stage->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        mr_status status = mr_stage_next(s->input.pipeline.top, &item, error);
        if (status == MR_OUT_OF_RANGE) return MR_OK;
        MR_TRY(status);
        mr_element element = {.tensors = item.payload->tensors, .count = item.payload->count};
        status = add(s, &element, error);
        mr_item_deinit(&item);
        MR_TRY(status);
    }
}

static mr_status next_group(void *, void *state, mr_element *output, mr_error *error)
{
    reducing *s = state;
    const reducer *r = s->reducer;
    if (!s->has_read) {
        MR_TRY(read_all(s, error));
        s->has_read = true;
        mr_inner_close(&s->input);
    }
    if (s->next == s->count) return mr_fail(error, MR_OUT_OF_RANGE, "End of sequence");
    mr_element reduced = {.tensors = s->groups[s->next++].state, .count = r->state_count};
    MR_TRY(mr_data_function_call(r->finalize, &reduced, nullptr, output->tensors, r->result_count, error));
    output->count = r->result_count;
    return MR_OK;
}

static mr_status make_functions(const mr_kernel_call *call, reducer *r, mr_error *error)
{
    static const char *const types[] = {"Tkey_func_other_arguments", "Tinit_func_other_arguments",
                                        "Treduce_func_other_arguments", "Tfinalize_func_other_arguments"};
    static const char *const names[] = {"key_func", "init_func", "reduce_func", "finalize_func"};
    mr_data_function **const functions[] = {&r->key, &r->init, &r->reduce, &r->finalize};
    int32_t first = 1;
    for (int i = 0; i < 4; i++) {
        const mr_attr *captured = mr_attrs_find(call->node->attrs, types[i]);
        int32_t count = captured ? captured->count : 0;
        MR_TRY(mr_data_function_new(call, names[i], first, count, functions[i], error));
        first += count;
    }
    r->state_count = mr_data_function_output_count(r->init);
    if (r->state_count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a state of more than %d tensors",
                              MR_COMPONENTS_MAX);
    if (mr_data_function_output_count(r->reduce) != r->state_count || mr_data_function_output_count(r->key) != 1 ||
        mr_data_function_output_count(r->finalize) != r->result_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the functions return other numbers of tensors than key, state and element");
    return MR_OK;
}

static mr_status group_by_reducer(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_element_spec spec;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_spec(call, &spec, error));
    reducer *r = calloc(1, sizeof *r);
    if (!r) return mr_fail_memory(error, sizeof *r);
    *r = (reducer){.input = mr_dataset_ref(input), .result_count = spec.count};
    mr_status status = make_functions(call, r, error);
    if (status != MR_OK) {
        release(r);
        return status;
    }
    mr_generator generator = {.next = next_group, .close = close_reducer, .release = release};
    return mr_data_output(
        call, mr_dataset_generator_open_in_stage(mr_dataset_generator(&generator, r, &spec), open_reducer), error);
}

static const mr_kernel kernels[] = {
    {.op = "GroupByReducerDataset", .run = group_by_reducer},
};
const mr_kernel_table mr_data_kernels_reducer = {kernels, sizeof kernels / sizeof kernels[0]};
