/* GeneratorDataset: the elements that a function of the graph returns one by one. Dataset.from_generator uses it.
 *
 * init_func makes the state of an iteration, next_func returns the next element and fails with OutOfRange at the end,
 * finalize_func is called once for each state: at the end, or when the iteration is given up. */
#include "graph/data/dataset.h"

#include <stdlib.h>

typedef struct generation {
    mr_data_function *init, *next, *finalize;
    int32_t output_count;
} generation;

/* One iteration. The tensors are those of init_func. */
typedef struct iteration {
    bool is_finalized;
    mr_element state;
    mr_tensor tensors[];
} iteration;

static void release_generation(void *context)
{
    generation *g = context;
    mr_data_function_free(g->init);
    mr_data_function_free(g->next);
    mr_data_function_free(g->finalize);
    free(g);
}

static mr_status finalize(const generation *g, iteration *i, mr_error *error)
{
    if (i->is_finalized) return MR_OK;
    i->is_finalized = true;
    int32_t count = mr_data_function_output_count(g->finalize);
    mr_tensor *ignored = calloc((size_t)count + 1, sizeof *ignored);
    if (!ignored) return mr_fail_memory(error, (size_t)count * sizeof *ignored);
    mr_status status = mr_data_function_call(g->finalize, &i->state, nullptr, ignored, count, error);
    for (int32_t k = 0; k < count; k++) mr_tensor_deinit(&ignored[k]);
    free(ignored);
    return status;
}

static void close_iteration(void *context, void *state)
{
    iteration *i = state;
    if (!i) return;
    (void)finalize(context, i, nullptr);
    for (int32_t k = 0; k < i->state.count; k++) mr_tensor_deinit(&i->tensors[k]);
    free(i);
}

static mr_status open_iteration(void *context, uint64_t, void **state, mr_error *error)
{
    const generation *g = context;
    int32_t count = mr_data_function_output_count(g->init);
    iteration *i = calloc(1, sizeof *i + (size_t)count * sizeof i->tensors[0]);
    if (!i) return mr_fail_memory(error, sizeof *i);
    i->state.tensors = i->tensors;
    mr_status status = mr_data_function_call(g->init, nullptr, nullptr, i->tensors, count, error);
    if (status != MR_OK) {
        free(i);
        return status;
    }
    i->state.count = count;
    *state = i;
    return MR_OK;
}

static mr_status next_element(void *context, void *state, mr_element *output, mr_error *error)
{
    const generation *g = context;
    iteration *i = state;
    mr_tensor results[MR_COMPONENTS_MAX] = {0};
    mr_status status = mr_data_function_call(g->next, &i->state, nullptr, results, g->output_count, error);
    if (status == MR_OUT_OF_RANGE) {
        MR_TRY(finalize(g, i, error));
        return mr_fail(error, MR_OUT_OF_RANGE, "End of sequence");
    }
    MR_TRY(status);
    for (int32_t k = 0; k < g->output_count; k++) output->tensors[k] = results[k];
    output->count = g->output_count;
    return MR_OK;
}

static int32_t captured_count(const mr_kernel_call *call, const char *attr)
{
    const mr_attr *types = mr_attrs_find(call->node->attrs, attr);
    return types ? types->count : 0;
}

/* The inputs are the tensors that each function captured; those of init_func include its arguments. */
static mr_status new_functions(const mr_kernel_call *call, generation *g, mr_error *error)
{
    int32_t init = captured_count(call, "Tinit_func_args"), next = captured_count(call, "Tnext_func_args");
    int32_t last = captured_count(call, "Tfinalize_func_args");
    MR_TRY(mr_data_function_new(call, "init_func", 0, init, &g->init, error));
    MR_TRY(mr_data_function_new(call, "next_func", init, next, &g->next, error));
    return mr_data_function_new(call, "finalize_func", init + next, last, &g->finalize, error);
}

static mr_status generate(mr_kernel_call *call, mr_error *error)
{
    mr_element_spec spec;
    MR_TRY(mr_data_spec(call, &spec, error));
    generation *g = calloc(1, sizeof *g);
    if (!g) return mr_fail_memory(error, sizeof *g);
    g->output_count = spec.count;
    mr_status status = new_functions(call, g, error);
    if (status != MR_OK) {
        release_generation(g);
        return status;
    }
    mr_generator generator = {
        .open = open_iteration, .next = next_element, .close = close_iteration, .release = release_generation};
    return mr_data_output(call, mr_dataset_generator(&generator, g, &spec), error);
}

static const mr_kernel kernels[] = {
    {.op = "GeneratorDataset", .run = generate},
};
const mr_kernel_table mr_data_kernels_generator = {kernels, sizeof kernels / sizeof kernels[0]};
