/* The operators that call a function of the program, in the language of a binding. */
#include "base/kernel.h"
#include "base/status.h"
#include "graph/abi/array.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One function for the process, set once; context is written before function. */
static _Atomic(mr_run_function) program_function;
static void *program_context;

void mr_run_set_function(mr_run_function function, void *context)
{
    program_context = context;
    atomic_store(&program_function, function);
}

struct mr_run_call {
    mr_kernel_call *call;
};

mr_status mr_run_return(mr_run_call *run, int32_t index, const mr_array *value, mr_error *error)
{
    mr_shape shape;
    if (run == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_run_return: call is null");
    const mr_kernel_node *node = run->call->node;
    if (value == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_run_return: value is null");
    if (index < 0 || index >= node->output_count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "there is no result %d", (int)index);
    mr_string token = mr_attr_string_or(node->attrs, "token", "");
    if (value->dtype != (int32_t)node->output_dtypes[index])
        return mr_fail(error, MR_INVALID_ARGUMENT, "%d-th value returned by %.*s is %s, but expects %s", (int)index,
                       (int)token.size_bytes, token.data, mr_dtype_name((mr_dtype)value->dtype),
                       mr_dtype_name(node->output_dtypes[index]));
    MR_TRY(mr_array_check(value, &shape, error));
    mr_tensor_deinit(&run->call->outputs[index]);
    return mr_array_copy(value, shape, &run->call->outputs[index], error);
}

static mr_status call_program(mr_kernel_call *call, const char *token, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    mr_run_function function = atomic_load(&program_function);
    if (function == nullptr)
        return mr_kernel_fail(node, error, MR_FAILED_PRECONDITION, "the program has no functions for graphs");
    mr_array *inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    if (inputs == nullptr) return mr_fail_memory(error, (size_t)node->input_count * sizeof *inputs);
    for (int32_t i = 0; i < node->input_count; i++) {
        inputs[i] = mr_array_of(call->inputs[i].dtype, call->inputs[i].shape);
        if (mr_dtype_size(call->inputs[i].dtype) > 0) inputs[i].data = mr_tensor_data(&call->inputs[i]);
        inputs[i].size_bytes = mr_tensor_size_bytes(&call->inputs[i]);
    }
    mr_run_call run = {.call = call};
    mr_error reason = {0};
    mr_status status = function(program_context, &run, token, inputs, node->input_count, node->output_count, &reason);
    free(inputs);
    if (status != MR_OK) return mr_kernel_fail(node, error, status, "%s", reason.message);
    for (int32_t i = 0; i < node->output_count; i++)
        if (call->outputs[i].dtype == MR_DTYPE_INVALID)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s returns no value %d", token, (int)i);
    return MR_OK;
}

static mr_status call_function(mr_kernel_call *call, mr_error *error)
{
    mr_string token = {0};
    MR_TRY(mr_attr_get_string(call->node->attrs, "token", &token, error));
    char *text = strndup(token.data != nullptr ? token.data : "", token.size_bytes);
    if (text == nullptr) return mr_fail_memory(error, token.size_bytes);
    mr_status status = call_program(call, text, error);
    free(text);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "PyFunc", .run = call_function},
    {.op = "PyFuncStateless", .run = call_function},
};
const mr_kernel_table mr_state_kernels_script = {kernels, sizeof kernels / sizeof kernels[0]};
