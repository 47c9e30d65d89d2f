/* Arrays of handles: Pack, Gather, StridedSlice and other operators that move elements, for handles of resources and
 * for serialized sparse tensors.
 *
 * A tensor of several handles refers to an array, which has the handles of its elements. Only handles of named
 * resources can be elements: they own nothing, so that arrays never form a cycle. The kernel of the operator for int64
 * moves the positions of the handles, and for serialized sparse tensors that for strings moves their strings. */
#include "graph/state/serialized.h"

#include "kernels/common.h"

#include <stdlib.h>

typedef struct handle_array {
    mr_resource resource;
    void **handles; /* owned; what they point to is not */
    int64_t count;
} handle_array;

static void array_deinit(mr_resource *resource)
{
    free(((handle_array *)resource)->handles);
}

static const mr_resource_class array_class = {
    .name = "array of handles", .size_bytes = sizeof(handle_array), .deinit = array_deinit};

/* The inputs of a call whose handles have been replaced. */
typedef struct moved {
    mr_tensor *inputs;  /* owned; those that are not handles are borrowed */
    mr_dtype *dtypes;   /* owned; of the inputs, followed by those of the outputs */
    mr_attr_value type; /* of the elements that move */
    mr_attr *attrs;     /* owned */
    void **handles;     /* owned; at their positions */
    int64_t count;
} moved;

static bool is_handle(mr_dtype dtype)
{
    return dtype == MR_RESOURCE || dtype == MR_VARIANT;
}

/* Adds the handles of an input, and replaces it by their positions. */
static mr_status number_handles(const mr_kernel_call *call, int32_t index, moved *m, mr_error *error)
{
    const mr_tensor *input = &call->inputs[index];
    const handle_array *array = (const handle_array *)mr_tensor_resource(input, &array_class);
    int64_t count = mr_tensor_count(input);
    bool is_named = !input->buffer && input->data;
    if (array ? array->count != count : !is_named || count != 1)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "input %d is not a handle of a variable, queue, table or other named resource",
                              (int)index);
    void **handles = reallocarray(m->handles, (size_t)(m->count + count) + 1, sizeof *handles);
    if (!handles) return mr_fail_memory(error, (size_t)(m->count + count) * sizeof *handles);
    m->handles = handles;
    MR_TRY(mr_tensor_init(&m->inputs[index], MR_INT64, input->shape, error));
    for (int64_t i = 0; i < count; i++) {
        ((int64_t *)m->inputs[index].data)[i] = m->count;
        handles[m->count++] = array ? array->handles[i] : input->data;
    }
    return MR_OK;
}

static mr_status replace_input(const mr_kernel_call *call, int32_t index, moved *m, mr_error *error)
{
    mr_dtype dtype = m->dtypes[index] = call->node->input_dtypes[index];
    m->inputs[index] = call->inputs[index];
    m->inputs[index].buffer = nullptr;
    if (!is_handle(dtype)) return MR_OK;
    m->inputs[index] = (mr_tensor){0};
    m->dtypes[index] = dtype == MR_RESOURCE ? MR_INT64 : MR_STRING;
    if (dtype == MR_RESOURCE) return number_handles(call, index, m, error);
    const mr_tensor *strings = mr_serialized_strings(&call->inputs[index]);
    if (!strings)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "input %d is a variant other than a serialized sparse tensor", (int)index);
    m->inputs[index] = mr_tensor_ref(strings);
    return MR_OK;
}

/* The attrs of the node, with another type in place of that of the handles. */
static mr_status replace_attrs(const mr_attrs *attrs, moved *m, mr_error *error)
{
    m->attrs = calloc((size_t)attrs->count + 1, sizeof *m->attrs);
    if (!m->attrs) return mr_fail_memory(error, (size_t)attrs->count * sizeof *m->attrs);
    for (int32_t i = 0; i < attrs->count; i++) {
        mr_attr *attr = &m->attrs[i];
        *attr = attrs->items[i];
        if (attr->kind == MR_ATTR_TYPE && !attr->is_list && is_handle((mr_dtype)attr->values[0].type))
            attr->values = &m->type;
    }
    return MR_OK;
}

static mr_status moved_init(const mr_kernel_call *call, moved *m, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    size_t dtypes = (size_t)node->input_count + (size_t)node->output_count;
    m->inputs = calloc((size_t)node->input_count + 1, sizeof *m->inputs);
    m->dtypes = calloc(dtypes + 1, sizeof *m->dtypes);
    if (!m->inputs || !m->dtypes) return mr_fail_memory(error, dtypes * sizeof *m->inputs);
    for (int32_t i = 0; i < node->input_count; i++) MR_TRY(replace_input(call, i, m, error));
    bool is_variant = node->output_dtypes[0] == MR_VARIANT;
    m->type.type = is_variant ? MR_STRING : MR_INT64;
    for (int32_t i = 0; i < node->output_count; i++) m->dtypes[node->input_count + i] = (mr_dtype)m->type.type;
    return replace_attrs(node->attrs, m, error);
}

static void moved_deinit(const mr_kernel_call *call, moved *m)
{
    for (int32_t i = 0; m->inputs && i < call->node->input_count; i++) mr_tensor_deinit(&m->inputs[i]);
    free(m->inputs);
    free(m->dtypes);
    free(m->attrs);
    free(m->handles);
}

/* Replaces positions by handles: one by the handle itself, several by an array. */
static mr_status take_handles(const moved *m, mr_tensor *tensor, mr_error *error)
{
    mr_resource *resource;
    int64_t count = mr_tensor_count(tensor);
    const int64_t *positions = tensor->data;
    if (!m->handles) return mr_fail(error, MR_INTERNAL, "there are no handles");
    mr_tensor made = {.dtype = MR_RESOURCE, .shape = tensor->shape};
    if (tensor->shape.rank == 0) {
        made.data = m->handles[positions[0]];
        mr_tensor_deinit(tensor);
        *tensor = made;
        return MR_OK;
    }
    MR_TRY(mr_resource_new(&array_class, &resource, error));
    handle_array *array = (handle_array *)resource;
    made = mr_tensor_take_resource(MR_RESOURCE, resource);
    made.shape = tensor->shape;
    array->handles = calloc((size_t)count + 1, sizeof *array->handles);
    if (!array->handles) {
        mr_tensor_deinit(&made);
        return mr_fail_memory(error, (size_t)count * sizeof *array->handles);
    }
    array->count = count;
    for (int64_t i = 0; i < count; i++) array->handles[i] = m->handles[positions[i]];
    mr_tensor_deinit(tensor);
    *tensor = made;
    return MR_OK;
}

static mr_status run_moved(mr_kernel_call *call, moved *m, mr_error *error)
{
    mr_attrs attrs = {.count = call->node->attrs->count, .items = m->attrs};
    const mr_kernel *kernel = mr_kernel_find(call->node->op, MR_DEVICE_CPU, &attrs);
    if (!kernel || kernel->prepare) return mr_kernel_unsupported(call->node, error);
    mr_kernel_node node = *call->node;
    node.attrs = &attrs;
    node.input_dtypes = m->dtypes;
    node.output_dtypes = m->dtypes + node.input_count;
    mr_kernel_call inner = *call;
    inner.node = &node;
    inner.inputs = m->inputs;
    inner.may_reuse = nullptr;
    MR_TRY(kernel->run(&inner, error));
    for (int32_t i = 0; i < node.output_count; i++)
        MR_TRY(node.output_dtypes[i] == MR_STRING ? mr_serialized_wrap(&call->outputs[i], error)
                                                  : take_handles(m, &call->outputs[i], error));
    return MR_OK;
}

static mr_status move(mr_kernel_call *call, mr_error *error)
{
    moved m = {0};
    mr_status status = call->node->output_count > 0 ? moved_init(call, &m, error) : MR_INTERNAL;
    if (status == MR_OK) status = run_moved(call, &m, error);
    for (int32_t i = 0; status != MR_OK && i < call->node->output_count; i++) {
        mr_tensor_deinit(&call->outputs[i]);
        call->outputs[i] = (mr_tensor){0};
    }
    moved_deinit(call, &m);
    return status;
}

#define MOVES(name, attr) {.op = name, .types = attr ": resource, variant", .run = move}
static const mr_kernel kernels[] = {
    MOVES("Pack", "T"),           MOVES("Unpack", "T"),       MOVES("Concat", "T"),
    MOVES("ConcatV2", "T"),       MOVES("Gather", "Tparams"), MOVES("GatherV2", "Tparams"),
    MOVES("GatherNd", "Tparams"), MOVES("Slice", "T"),        MOVES("StridedSlice", "T"),
};
const mr_kernel_table mr_state_kernels_handles = {kernels, sizeof kernels / sizeof kernels[0]};
