/* ReduceDataset: runs a dataset to its end. */
#include "graph/data/dataset.h"
#include "graph/state/serialized.h"

#include <stdlib.h>

typedef struct reduction {
    mr_kernel_call *call;
    mr_data_function *function;
    mr_iterator *iterator;
    mr_element state, input; /* the state's tensors are owned */
    int32_t count;           /* tensors in the state */
} reduction;

static mr_status reduce_all(reduction *r, mr_error *error)
{
    for (;;) {
        mr_tensor results[MR_COMPONENTS_MAX] = {0};
        mr_status status = mr_data_next(r->call, r->iterator, &r->input, error);
        if (status == MR_OUT_OF_RANGE) return MR_OK;
        if (status == MR_OK)
            status = mr_data_function_call(r->function, &r->state, &r->input, results, r->count, error);
        MR_TRY(status);
        for (int32_t i = 0; i < r->count; i++) {
            mr_tensor_deinit(&r->state.tensors[i]);
            r->state.tensors[i] = results[i];
        }
    }
}

static mr_status check_state(const mr_kernel_call *call, int32_t count, mr_error *error)
{
    if (count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a state of more than %d tensors",
                              MR_COMPONENTS_MAX);
    if (count != call->node->output_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "a state of %d tensors, but %d outputs",
                              (int)count, (int)call->node->output_count);
    for (int32_t i = 0; i < count; i++)
        if (call->inputs[1 + i].dtype != call->node->output_dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output %d is not of the type of the state",
                                  (int)i);
    return MR_OK;
}

static mr_status take_outputs(reduction *r, mr_error *error)
{
    for (int32_t i = 0; i < r->count; i++)
        MR_TRY(mr_serialized_to_graph(&r->state.tensors[i], r->call->node->output_dtypes[i], error));
    for (int32_t i = 0; i < r->count; i++)
        if (r->state.tensors[i].dtype != r->call->node->output_dtypes[i])
            return mr_kernel_fail(r->call->node, error, MR_INVALID_ARGUMENT, "the function changes the state's types");
    for (int32_t i = 0; i < r->count; i++) {
        r->call->outputs[i] = r->state.tensors[i];
        r->state.tensors[i] = (mr_tensor){0};
    }
    return MR_OK;
}

static mr_status reduce(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    const mr_attr *types = mr_attrs_find(call->node->attrs, "Tstate");
    mr_tensor state[MR_COMPONENTS_MAX] = {0};
    reduction r = {.call = call, .count = types ? types->count : 0, .state = {.tensors = state}};
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(check_state(call, r.count, error));
    MR_TRY(mr_data_function_new(call, "f", 1 + r.count, call->node->input_count - 1 - r.count, &r.function, error));
    mr_status status = MR_OK;
    for (int32_t i = 0; i < r.count; i++) state[i] = mr_tensor_ref(&call->inputs[1 + i]);
    r.state.count = r.count;
    status = mr_iterator_new(input, nullptr, &r.iterator, error);
    if (status == MR_OK) status = reduce_all(&r, error);
    if (status == MR_OK) status = take_outputs(&r, error);
    mr_iterator_free(r.iterator);
    mr_element_deinit(&r.input);
    for (int32_t i = 0; i < r.count; i++) mr_tensor_deinit(&state[i]);
    mr_data_function_free(r.function);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "ReduceDataset", .run = reduce},
};
const mr_kernel_table mr_data_kernels_reduce = {kernels, sizeof kernels / sizeof kernels[0]};
