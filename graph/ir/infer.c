/* Shape inference of one node: calls the operator's shape function with the shapes and known values of the inputs, and
 * stores the result in the outputs. It runs once, when a node is built or imported. */
#include "graph/ir/graph.h"

#include <stdio.h>
#include <string.h>

static const mr_tensor *const_tensor(mr_output output)
{
    const mr_tensor *value = nullptr;
    if (output.node == nullptr || !mr_node_has_flag(output.node, MR_OP_CONSTANT)) return nullptr;
    return mr_attr_get_tensor(&output.node->attrs, "value", &value, nullptr) == MR_OK ? value : nullptr;
}

static const mr_partial *partial_of(mr_output output)
{
    bool exists = output.node != nullptr && output.index < output.node->output_count;
    return exists ? output.node->outputs[output.index].value : nullptr;
}

static bool is_whole(const mr_partial *partial)
{
    return partial != nullptr &&
           (partial->count >= 64 ? ~partial->known == 0 : partial->known + 1 == 1ull << partial->count);
}

static mr_status tensor_of_partial(const mr_partial *partial, mr_dtype dtype, mr_tensor *tensor, mr_error *error)
{
    MR_TRY(mr_tensor_init(tensor, dtype, partial->rank == 0 ? MR_SCALAR : MR_SHAPE(partial->count), error));
    for (int32_t i = 0; i < partial->count; i++)
        if (dtype == MR_INT64)
            mr_tensor_int64s(tensor)[i] = partial->values[i];
        else
            mr_tensor_int32s(tensor)[i] = (int32_t)partial->values[i];
    return MR_OK;
}

bool mr_output_constant(mr_output output, mr_tensor *value)
{
    const mr_tensor *tensor = const_tensor(output);
    if (tensor != nullptr) {
        *value = mr_tensor_ref(tensor);
        return true;
    }
    const mr_partial *partial = partial_of(output);
    return is_whole(partial) && tensor_of_partial(partial, mr_output_dtype(output), value, nullptr) == MR_OK;
}

/* The data of one call, in the graph's scratch arena. */
typedef struct work {
    mr_shape *inputs;
    mr_dtype *dtypes;
    const mr_tensor **constants;
    mr_tensor *folded; /* tensors created for this call */
    const mr_partial **partials;
    mr_shape *outputs;
    mr_shape *input_handles;
    mr_shape *output_handles;
} work;

static bool allocate(mr_arena *scratch, const mr_node *node, work *w)
{
    size_t inputs = (size_t)node->input_count + 1;
    mr_arena_reset(scratch);
    w->inputs = MR_ARENA_NEW(scratch, mr_shape, inputs);
    w->dtypes = MR_ARENA_NEW(scratch, mr_dtype, inputs);
    w->constants = MR_ARENA_NEW(scratch, const mr_tensor *, inputs);
    w->folded = MR_ARENA_NEW(scratch, mr_tensor, inputs);
    w->partials = MR_ARENA_NEW(scratch, const mr_partial *, inputs);
    w->outputs = MR_ARENA_NEW(scratch, mr_shape, (size_t)node->output_count + 1);
    w->input_handles = MR_ARENA_NEW(scratch, mr_shape, inputs);
    w->output_handles = MR_ARENA_NEW(scratch, mr_shape, (size_t)node->output_count + 1);
    return w->inputs != nullptr && w->dtypes != nullptr && w->constants != nullptr && w->folded != nullptr &&
           w->partials != nullptr && w->outputs != nullptr && w->input_handles != nullptr &&
           w->output_handles != nullptr;
}

static mr_status gather_inputs(const mr_node *node, work *w, mr_error *error)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        mr_output input = node->inputs[i];
        w->inputs[i] = mr_output_shape(input);
        w->dtypes[i] = mr_output_dtype(input);
        w->input_handles[i] =
            input.index < input.node->output_count ? input.node->outputs[input.index].handle : MR_SHAPE_UNKNOWN;
        w->constants[i] = const_tensor(input);
        w->partials[i] = partial_of(input);
        if (w->constants[i] == nullptr && is_whole(w->partials[i])) {
            MR_TRY(tensor_of_partial(w->partials[i], w->dtypes[i], &w->folded[i], error));
            w->constants[i] = &w->folded[i];
        }
    }
    for (int32_t i = 0; i < node->output_count; i++) w->outputs[i] = w->output_handles[i] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

/* "of [2,3], [4]: reason" */
static mr_status explain(const mr_node *node, mr_status status, mr_error *error)
{
    char text[512] = "", shape[MR_SHAPE_TEXT_SIZE];
    size_t length = 0;
    for (int32_t i = 0; i < node->input_count && length < sizeof text - MR_SHAPE_TEXT_SIZE - 8; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i == 0 ? "" : ", ",
                                   mr_shape_text(mr_output_shape(node->inputs[i]), shape, sizeof shape));
    return node->input_count == 0 ? status : mr_fail_prefix(error, status, "with inputs %s", text);
}

mr_status mr_node_infer(mr_node *node, mr_error *error)
{
    work w = {0};
    if (node->def == nullptr || node->def->op->shape == nullptr) return MR_OK;
    if (!allocate(&node->graph->scratch, node, &w)) return mr_fail_memory(error, sizeof w);
    mr_status status = gather_inputs(node, &w, error);
    if (status == MR_OK) {
        mr_shape_call call = {.node_name = node->name,
                              .op = node->def->op,
                              .attrs = &node->attrs,
                              .input_count = node->input_count,
                              .inputs = w.inputs,
                              .input_dtypes = w.dtypes,
                              .constants = w.constants,
                              .partials = w.partials,
                              .input_handles = w.input_handles,
                              .output_count = node->output_count,
                              .outputs = w.outputs,
                              .output_handles = w.output_handles};
        status = node->def->op->shape(&call, error);
        if (status != MR_OK) status = explain(node, status, error);
    }
    for (int32_t i = 0; i < node->input_count; i++) mr_tensor_deinit(&w.folded[i]);
    if (status != MR_OK) return status;
    for (int32_t i = 0; i < node->output_count; i++) {
        node->outputs[i].shape = w.outputs[i];
        node->outputs[i].handle = w.output_handles[i];
    }
    return mr_node_fold(node, error);
}
