/* Variables of one run: they start with zeros and exist until they are destroyed, or until the run ends.
 *
 * A run has a table of them. One that is destroyed stays in the table without a value, because references to it may
 * still be in use. */
#include "graph/state/run.h"

#include "base/mutex.h"
#include "kernels/common.h"

#include <assert.h>
#include <string.h>

static mr_status make_value(mr_kernel_call *call, mr_tensor *value, mr_error *error)
{
    mr_shape shape = MR_SHAPE_UNKNOWN;
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &shape, error));
    for (int32_t i = 0; i < MR_MAX(shape.rank, 1); i++)
        if (shape.rank < 0 || (shape.rank > 0 && shape.dims[i] < 0))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shape is not fully known");
    mr_dtype dtype = call->node->output_dtypes[0];
    if (mr_dtype_size(dtype) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "a variable cannot be a %s",
                              mr_dtype_name(dtype));
    MR_TRY(mr_tensor_init_on(value, call->device, dtype, shape, error));
    if (mr_tensor_size_bytes(value) > 0) memset(value->data, 0, mr_tensor_size_bytes(value));
    return MR_OK;
}

/* The caller holds the run's mutex. */
static mr_status add_variable(const mr_kernel_call *call, const char *name, mr_variable_state **variable,
                              mr_error *error)
{
    mr_resource *resource;
    bool made = false;
    assert(mr_mutex_is_held(&call->run->mutex));
    MR_TRY(mr_resource_make(&call->run->temporaries, &mr_variable_class, "", name, &resource, &made, error));
    mr_variable_state *v = *variable = (mr_variable_state *)resource;
    if (made) pthread_mutex_init(&v->mutex, nullptr);
    if (v->initialized)
        return mr_kernel_fail(call->node, error, MR_ALREADY_EXISTS, "Resource %s of the run already exists", name);
    v->dtype = call->node->output_dtypes[0];
    v->device = call->device;
    v->shape = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static mr_status make_variable(mr_kernel_call *call, mr_error *error)
{
    mr_string asked = mr_attr_string_or(call->node->attrs, "var_name", "");
    mr_variable_state *variable = nullptr;
    mr_tensor value = {0};
    mr_arena arena = {0};
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a variable of a run outside of a session");
    const char *name = asked.size_bytes > 0 ? mr_arena_strndup(&arena, asked.data, asked.size_bytes) : call->node->name;
    mr_status status = name ? make_value(call, &value, error) : mr_fail_memory(error, asked.size_bytes);
    pthread_mutex_lock(&call->run->mutex);
    if (status == MR_OK) status = add_variable(call, name, &variable, error);
    if (status == MR_OK) status = mr_variable_write(variable, &value, true, true, error);
    pthread_mutex_unlock(&call->run->mutex);
    mr_tensor_deinit(&value);
    mr_arena_deinit(&arena);
    if (status == MR_OK) call->outputs[0] = mr_tensor_of_resource(variable->dtype, &variable->resource);
    return status;
}

static mr_status take_value(const mr_kernel_call *call, const char *name, mr_tensor *value, mr_error *error)
{
    assert(mr_mutex_is_held(&call->run->mutex));
    mr_variable_state *v = (mr_variable_state *)mr_resource_find(&call->run->temporaries, &mr_variable_class, "", name);
    if (!v || !v->initialized)
        return mr_kernel_fail(call->node, error, MR_NOT_FOUND, "Resource %s of the run does not exist.", name);
    if (v->dtype != call->node->output_dtypes[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable %s is a %s, not a %s", name,
                              mr_dtype_name(v->dtype), mr_dtype_name(call->node->output_dtypes[0]));
    pthread_mutex_lock(&v->mutex);
    *value = v->value;
    v->value = (mr_tensor){0};
    v->initialized = false;
    pthread_mutex_unlock(&v->mutex);
    return MR_OK;
}

/* Nothing changes the value afterwards, so it is not copied. */
static mr_status destroy_variable(mr_kernel_call *call, mr_error *error)
{
    mr_string asked = mr_attr_string_or(call->node->attrs, "var_name", "");
    mr_tensor value = {0};
    mr_arena arena = {0};
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a variable of a run outside of a session");
    const char *name = mr_arena_strndup(&arena, asked.data ? asked.data : "", asked.size_bytes);
    mr_status status = name ? MR_OK : mr_fail_memory(error, asked.size_bytes);
    pthread_mutex_lock(&call->run->mutex);
    if (status == MR_OK) status = take_value(call, name, &value, error);
    pthread_mutex_unlock(&call->run->mutex);
    mr_arena_deinit(&arena);
    if (status == MR_OK && value.buffer && value.buffer->is_mutable) value.buffer->is_mutable = false;
    if (status == MR_OK) call->outputs[0] = value;
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "TemporaryVariable", .run = make_variable},
    {.op = "DestroyTemporaryVariable", .run = destroy_variable},
};
const mr_kernel_table mr_state_kernels_temporary = {kernels, sizeof kernels / sizeof kernels[0]};
