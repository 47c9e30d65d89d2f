/* The operators that call functions. A call runs on the calling thread, in a frame of the function's program. */
#include "graph/run/function.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a call prepares: the function by name and attrs, which is found when it is first called. */
typedef struct callee {
    const char *name;
    const mr_attrs *attrs;
    bool gradient;
    mr_function *function; /* atomic; null until it is found */
} callee;

constexpr int32_t CALLEES_MAX = 8; /* of a Case; further branches are found again for each call */

typedef struct prepared_call {
    int32_t count;
    callee callees[CALLEES_MAX];
} prepared_call;

constexpr int32_t VALUES_ON_STACK = 16;

/* Arguments or results of a call, on the stack if there are few. */
typedef struct value_list {
    mr_tensor few[VALUES_ON_STACK];
    mr_tensor *items;
    int32_t count;
} value_list;

static mr_status list_init(value_list *list, int32_t count, mr_error *error)
{
    list->count = count;
    list->items = list->few;
    if (count > VALUES_ON_STACK) {
        list->items = calloc((size_t)count, sizeof *list->items);
        if (!list->items) return mr_fail_memory(error, (size_t)count * sizeof *list->items);
    } else {
        for (int32_t i = 0; i < count; i++) list->few[i] = (mr_tensor){0};
    }
    return MR_OK;
}

static void list_deinit(value_list *list)
{
    for (int32_t i = 0; i < list->count; i++) mr_tensor_deinit(&list->items[i]);
    if (list->items != list->few) free(list->items);
}

/* ---- Callees ---- */

static mr_status read_callee(const mr_kernel_node *node, const char *attr_name, int32_t index, callee *read,
                             mr_error *error)
{
    const mr_attr *attr = mr_attrs_find(node->attrs, attr_name);
    if (!attr || attr->kind != MR_ATTR_FUNCTION || index >= attr->count)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "attr %s is not a function", attr_name);
    *read = (callee){.name = attr->values[index].function.name, .attrs = attr->values[index].function.attrs};
    return MR_OK;
}

static mr_status find_function(const mr_kernel_call *call, const callee *known, mr_function **function, mr_error *error)
{
    callee *c = (callee *)known; /* only the atomic pointer changes, always to the same value */
    *function = __atomic_load_n(&c->function, __ATOMIC_ACQUIRE);
    if (*function) return MR_OK;
    /* Folding runs kernels without a session. */
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a function is called outside of a session");
    MR_TRY(mr_session_function(call->run->session, c->name, c->attrs, c->gradient, function, error));
    __atomic_store_n(&c->function, *function, __ATOMIC_RELEASE);
    return MR_OK;
}

static mr_status check_arguments(const mr_kernel_call *call, const callee *c, const mr_function *function,
                                 const mr_tensor *arguments, int32_t count, mr_error *error)
{
    if (mr_function_input_count(function) != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "function %s takes %d arguments, but gets %d",
                              c->name, (int)mr_function_input_count(function), (int)count);
    for (int32_t i = 0; i < count; i++)
        if (mr_function_input_dtype(function, i) != arguments[i].dtype)
            return mr_kernel_fail(
                call->node, error, MR_INVALID_ARGUMENT, "function %s: argument %d is a %s, but must be a %s", c->name,
                (int)i, mr_dtype_name(arguments[i].dtype), mr_dtype_name(mr_function_input_dtype(function, i)));
    return MR_OK;
}

static mr_status check_results(const mr_kernel_call *call, const callee *c, const mr_function *function,
                               const mr_dtype *dtypes, int32_t count, mr_error *error)
{
    if (mr_function_output_count(function) != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "function %s has %d results, but must have %d",
                              c->name, (int)mr_function_output_count(function), (int)count);
    for (int32_t i = 0; i < count; i++)
        if (mr_function_output_dtype(function, i) != dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "function %s: result %d is a %s, but must be a %s", c->name, (int)i,
                                  mr_dtype_name(mr_function_output_dtype(function, i)), mr_dtype_name(dtypes[i]));
    return MR_OK;
}

/* Calls the function with arguments that it consumes. */
static mr_status call_function(mr_kernel_call *call, const callee *c, mr_tensor *arguments, int32_t argument_count,
                               mr_tensor *results, const mr_dtype *result_dtypes, int32_t result_count, mr_error *error)
{
    mr_function *function;
    MR_TRY(find_function(call, c, &function, error));
    MR_TRY(check_arguments(call, c, function, arguments, argument_count, error));
    MR_TRY(check_results(call, c, function, result_dtypes, result_count, error));
    return mr_function_call(function, call->run, call->depth + 1, arguments, results, error);
}

/* Inputs of the call from `first` on, as arguments. */
static void take_arguments(mr_kernel_call *call, int32_t first, value_list *arguments)
{
    for (int32_t i = 0; i < arguments->count; i++) arguments->items[i] = mr_kernel_take(call, first + i);
}

static mr_status call_with_inputs(mr_kernel_call *call, const callee *c, int32_t first, mr_error *error)
{
    value_list arguments;
    MR_TRY(list_init(&arguments, call->node->input_count - first, error));
    take_arguments(call, first, &arguments);
    mr_status status = call_function(call, c, arguments.items, arguments.count, call->outputs,
                                     call->node->output_dtypes, call->node->output_count, error);
    list_deinit(&arguments);
    return status;
}

/* ---- Calls ---- */

/* Nodes whose operator is the function's name have the function's attrs, and no attr f. */
static mr_status prepare_call(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    *p = (prepared_call){.count = 1, .callees = {{.name = node->op, .attrs = node->attrs}}};
    if (!mr_attrs_find(node->attrs, "f")) return MR_OK;
    return read_callee(node, "f", 0, &p->callees[0], error);
}

static mr_status run_call(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    return call_with_inputs(call, &p->callees[0], 0, error);
}

static mr_status run_remote_call(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    return call_with_inputs(call, &p->callees[0], 1, error);
}

static mr_status prepare_gradient(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    *p = (prepared_call){.count = 1};
    MR_TRY(read_callee(node, "f", 0, &p->callees[0], error));
    p->callees[0].gradient = true;
    return MR_OK;
}

/* ---- Conditionals ---- */

/* TensorFlow's rule for a condition of any type. */
static mr_status to_bool(const mr_kernel_node *node, const mr_tensor *tensor, bool *value, mr_error *error)
{
    if (tensor->shape.rank > 0) {
        *value = mr_tensor_count(tensor) > 0;
        return MR_OK;
    }
    size_t size = mr_dtype_size(tensor->dtype);
    const unsigned char *bytes = tensor->data;
    switch (tensor->dtype) {
    case MR_STRING:
        *value = mr_tensor_strings(tensor)[0].size_bytes > 0;
        return MR_OK;
    case MR_FLOAT:
        *value = mr_tensor_floats(tensor)[0] != 0;
        return MR_OK;
    case MR_DOUBLE:
        *value = mr_tensor_doubles(tensor)[0] != 0;
        return MR_OK;
    case MR_BOOL:
    case MR_INT8:
    case MR_UINT8:
    case MR_INT16:
    case MR_UINT16:
    case MR_INT32:
    case MR_UINT32:
    case MR_INT64:
    case MR_UINT64:
        *value = false;
        for (size_t i = 0; i < size; i++) *value |= bytes[i] != 0;
        return MR_OK;
    default:
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s cannot be converted to a bool",
                              mr_dtype_name(tensor->dtype));
    }
}

static mr_status run_to_bool(mr_kernel_call *call, mr_error *error)
{
    bool value;
    MR_TRY(to_bool(call->node, &call->inputs[0], &value, error));
    return mr_tensor_init_bool(&call->outputs[0], value, error);
}

static mr_status prepare_if(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    *p = (prepared_call){.count = 2};
    MR_TRY(read_callee(node, "then_branch", 0, &p->callees[0], error));
    return read_callee(node, "else_branch", 0, &p->callees[1], error);
}

static mr_status run_if(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    bool condition;
    MR_TRY(to_bool(call->node, &call->inputs[0], &condition, error));
    return call_with_inputs(call, &p->callees[condition ? 0 : 1], 1, error);
}

static mr_status prepare_case(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    const mr_attr *branches = mr_attrs_find(node->attrs, "branches");
    *p = (prepared_call){.count = branches ? branches->count : 0};
    for (int32_t i = 0; i < p->count && i < CALLEES_MAX; i++)
        MR_TRY(read_callee(node, "branches", i, &p->callees[i], error));
    if (p->count == 0) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "there are no branches");
    return MR_OK;
}

static mr_status run_case(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    if (mr_tensor_count(&call->inputs[0]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "branch_index must be a scalar");
    int32_t branch = mr_tensor_int32s(&call->inputs[0])[0];
    if (branch < 0 || branch >= p->count) branch = p->count - 1;
    if (branch < CALLEES_MAX) return call_with_inputs(call, &p->callees[branch], 1, error);
    callee found;
    MR_TRY(read_callee(call->node, "branches", branch, &found, error));
    return call_with_inputs(call, &found, 1, error);
}

/* ---- Loops ---- */

static mr_status prepare_while(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    *p = (prepared_call){.count = 2};
    MR_TRY(read_callee(node, "cond", 0, &p->callees[0], error));
    return read_callee(node, "body", 0, &p->callees[1], error);
}

static mr_status check_condition(mr_kernel_call *call, const callee *c, const value_list *state, bool *goes_on,
                                 mr_error *error)
{
    value_list arguments;
    mr_tensor result = {0};
    mr_function *function;
    MR_TRY(find_function(call, c, &function, error));
    if (mr_function_output_count(function) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "function %s must have one result", c->name);
    mr_dtype dtype = mr_function_output_dtype(function, 0);
    MR_TRY(list_init(&arguments, state->count, error));
    for (int32_t i = 0; i < state->count; i++) arguments.items[i] = mr_tensor_ref(&state->items[i]);
    mr_status status = call_function(call, c, arguments.items, arguments.count, &result, &dtype, 1, error);
    list_deinit(&arguments);
    if (status == MR_OK) status = to_bool(call->node, &result, goes_on, error);
    mr_tensor_deinit(&result);
    return status;
}

/* Replaces the state by the results of the body. */
static mr_status run_body(mr_kernel_call *call, const callee *c, value_list *state, mr_error *error)
{
    value_list results;
    MR_TRY(list_init(&results, state->count, error));
    mr_status status = call_function(call, c, state->items, state->count, results.items, call->node->output_dtypes,
                                     results.count, error);
    for (int32_t i = 0; i < state->count && status == MR_OK; i++) {
        mr_tensor_deinit(&state->items[i]);
        state->items[i] = results.items[i];
        results.items[i] = (mr_tensor){0};
    }
    list_deinit(&results);
    return status;
}

static void give_outputs(mr_kernel_call *call, value_list *state)
{
    for (int32_t i = 0; i < state->count; i++) {
        call->outputs[i] = state->items[i];
        state->items[i] = (mr_tensor){0};
    }
}

static mr_status run_while(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    value_list state;
    bool goes_on = true;
    assert(call->node->input_count == call->node->output_count);
    MR_TRY(list_init(&state, call->node->input_count, error));
    take_arguments(call, 0, &state);
    mr_status status = check_condition(call, &p->callees[0], &state, &goes_on, error);
    while (status == MR_OK && goes_on) {
        status = run_body(call, &p->callees[1], &state, error);
        if (status == MR_OK) status = check_condition(call, &p->callees[0], &state, &goes_on, error);
    }
    if (status == MR_OK) give_outputs(call, &state);
    list_deinit(&state);
    return status;
}

static mr_status prepare_for(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    prepared_call *p = prepared;
    *p = (prepared_call){.count = 1};
    return read_callee(node, "body", 0, &p->callees[0], error);
}

static mr_status run_for_body(mr_kernel_call *call, const callee *c, int32_t number, value_list *state, mr_error *error)
{
    value_list arguments, results = {.items = results.few};
    MR_TRY(list_init(&arguments, state->count + 1, error));
    mr_status status = list_init(&results, state->count, error);
    if (status == MR_OK) status = mr_tensor_init_int32(&arguments.items[0], number, error);
    for (int32_t i = 0; i < state->count && status == MR_OK; i++) {
        arguments.items[i + 1] = state->items[i];
        state->items[i] = (mr_tensor){0};
    }
    if (status == MR_OK)
        status = call_function(call, c, arguments.items, arguments.count, results.items, call->node->output_dtypes,
                               results.count, error);
    for (int32_t i = 0; i < state->count && status == MR_OK; i++) {
        state->items[i] = results.items[i];
        results.items[i] = (mr_tensor){0};
    }
    list_deinit(&arguments);
    list_deinit(&results);
    return status;
}

static mr_status run_for(mr_kernel_call *call, mr_error *error)
{
    const prepared_call *p = call->prepared;
    int64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "start, limit and delta must be scalars");
        numbers[i] = mr_tensor_int32s(&call->inputs[i])[0];
    }
    int64_t start = numbers[0], limit = numbers[1], delta = numbers[2];
    bool valid = (delta > 0 && start <= limit) || (delta < 0 && start >= limit) || (delta == 0 && start == limit);
    if (!valid)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "delta does not lead from start to limit");
    value_list state;
    MR_TRY(list_init(&state, call->node->input_count - 3, error));
    take_arguments(call, 3, &state);
    mr_status status = MR_OK;
    for (int64_t i = start; status == MR_OK && (delta > 0 ? i < limit : i > limit); i += delta)
        status = run_for_body(call, &p->callees[0], (int32_t)i, &state, error);
    if (status == MR_OK) give_outputs(call, &state);
    list_deinit(&state);
    return status;
}

/* ---- Arguments ---- */

static mr_status run_argument(mr_kernel_call *call, mr_error *error)
{
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the argument has no value outside of its function");
}

static mr_status run_result(mr_kernel_call *, mr_error *)
{
    return MR_OK;
}

static mr_status run_fake(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = MR_SCALAR;
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &shape, error));
    if (shape.rank < 0) shape = MR_SHAPE(0);
    for (int32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = 0;
    mr_dtype dtype = call->node->output_dtypes[0];
    if (mr_dtype_size(dtype) > 0) {
        MR_TRY(mr_kernel_output(call, 0, shape, error));
        if (dtype != MR_STRING) memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0]));
        return MR_OK;
    }
    call->outputs[0] = (mr_tensor){.dtype = dtype, .shape = MR_SCALAR}; /* a handle of nothing */
    return MR_OK;
}

static mr_status run_pass(mr_kernel_call *call, mr_error *error)
{
    int32_t count = call->node->output_count;
    for (int32_t i = 0; i < count; i++)
        if (call->node->input_count != count || call->node->input_dtypes[i] != call->node->output_dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "inputs and outputs have different types");
    for (int32_t i = 0; i < count; i++) call->outputs[i] = mr_kernel_take(call, i);
    return MR_OK;
}

#define CALL(name, runner, preparer)                                                                                   \
    {.op = name, .run = runner, .prepare = preparer, .prepared_size_bytes = sizeof(prepared_call)}
static const mr_kernel kernels[] = {
    {.op = "_Arg", .run = run_argument},
    {.op = "_Retval", .run = run_result},
    {.op = "FakeParam", .run = run_fake},
    {.op = "ToBool", .run = run_to_bool},
    {.op = "_ListToArray", .run = run_pass},
    {.op = "_ArrayToList", .run = run_pass},
    CALL("PartitionedCall", run_call, prepare_call),
    CALL("StatefulPartitionedCall", run_call, prepare_call),
    CALL("RemoteCall", run_remote_call, prepare_call),
    CALL("SymbolicGradient", run_call, prepare_gradient),
    CALL("If", run_if, prepare_if),
    CALL("StatelessIf", run_if, prepare_if),
    CALL("Case", run_case, prepare_case),
    CALL("StatelessCase", run_case, prepare_case),
    CALL("While", run_while, prepare_while),
    CALL("StatelessWhile", run_while, prepare_while),
    CALL("For", run_for, prepare_for),
};
const mr_kernel_table mr_state_kernels_calls = {kernels, sizeof kernels / sizeof kernels[0]};
